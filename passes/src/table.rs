//! The table of passes in their order: name, summary, and whether each can be disabled. It depends on no pass, so every pass may use it.

/// A row of the pipeline.
pub struct PassInfo {
    /// Name: file, command line, tests, remark kind.
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// Whether it cannot be switched off.
    pub required: bool,
    /// Whether it makes roles and wgmma products, or decisions that these need: without it there are none.
    pub(crate) for_roles: bool,
    /// Whether it decides register layouts: without it, a width in the text may be for other layouts.
    pub(crate) for_layouts: bool,
    /// Whether it expands loops with stages: without it, no stages are decided.
    pub(crate) for_stages: bool,
}

impl PassInfo {
    const fn new(name: &'static str, summary: &'static str) -> PassInfo {
        PassInfo { name, summary, required: false, for_roles: false, for_layouts: false, for_stages: false }
    }

    const fn required(self) -> PassInfo {
        PassInfo { required: true, ..self }
    }

    const fn for_roles(self) -> PassInfo {
        PassInfo { for_roles: true, ..self }
    }

    const fn for_layouts(self) -> PassInfo {
        PassInfo { for_layouts: true, ..self }
    }

    const fn for_stages(self) -> PassInfo {
        PassInfo { for_stages: true, ..self }
    }
}

/// The pipeline, in order.
pub const PASSES: &[PassInfo] = &[
    PassInfo::new("flatten-loops", "merges a nest of loops around a product into one"),
    PassInfo::new("align-rows", "adds kernels that copy operands whose layout TMA or wgmma cannot read"),
    PassInfo::new("choose", "chooses values for `auto` parameters by predicting the time of every legal combination"),
    PassInfo::new("specialize", "binds compile-time parameters, folds constants, checks what can be checked")
        .required(),
    PassInfo::new(
        "select-mma",
        "selects the instruction of every product; makes its fragments explicit register tiles",
    )
    .for_roles()
    .for_layouts(),
    PassInfo::new("stage-stores", "stores wgmma results through shared memory with TMA"),
    PassInfo::new("assign-layouts", "decides which thread holds and moves which element").for_roles().for_layouts(),
    PassInfo::new("defer-reductions", "reduces sums and extremes of a loop across lanes once, after the loop"),
    PassInfo::new("vectorize", "decides the access width of every copy").for_roles(),
    PassInfo::new("swizzle", "finds the cheapest conflict-free shared-memory layouts").for_roles(),
    PassInfo::new(
        "schedule-loops",
        "decides when the statements of loops with wgmma run: channels, pipeline stages, cycles",
    )
    .for_roles(),
    PassInfo::new(
        "pipeline",
        "turns buffers filled in a loop into channels; decides how far ahead they are filled, and when fragments are loaded",
    ),
    PassInfo::new("residue", "decides which reductions begin with their ragged tile"),
    PassInfo::new("expand", "expands scheduled loops into prologue, steady state, drain and roles")
        .for_roles()
        .for_stages(),
    PassInfo::new("skip-scaling", "lets a warp skip rescaling if all its factors are 1"),
    PassInfo::new("predicate", "drops bounds checks that cannot fail"),
    PassInfo::new("schedule", "orders loads, products and stores inside loop bodies"),
    PassInfo::new("reuse-loads", "takes elements that a thread has loaded in another window from its registers"),
    PassInfo::new("overlap-launches", "enables programmatic dependent launch"),
    PassInfo::new("contract", "contracts multiply-add pairs into `fma`, which rounds once").required(),
    PassInfo::new("hand-over", "computes mbarrier arrival counts and `expect_tx` bytes").required(),
    PassInfo::new("place-shared", "assigns shared-memory addresses to buffers and channels"),
    PassInfo::new("barriers", "places the barriers that shared memory needs, and proves that they suffice").required(),
];

/// The row of a pass.
///
/// # Panics
/// There is no pass of this name.
pub(crate) fn pass(name: &str) -> &'static PassInfo {
    PASSES.iter().find(|pass| pass.name == name).unwrap_or_else(|| panic!("bug: there is no pass `{name}`"))
}
