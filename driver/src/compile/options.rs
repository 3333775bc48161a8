//! Options of a compilation.

use std::collections::BTreeSet;
use tilec_ir::demands::Demand;
use tilec_ir::target::Target;
use tilec_passes::caller::Caller;
use tilec_passes::choose::Card;

/// Values of run-time sizes, by name.
pub type Sizes = Vec<(String, i64)>;

/// How to compile.
#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// The name of the source in messages, in the PTX and in the report.
    pub source_name: String,
    /// The chip to compile for.
    pub target: Target,
    /// Compile-time parameters, name and value as text. A file with several kernels gives each what it declares.
    pub defines: Vec<(String, String)>,
    /// Sizes for which `auto` parameters are chosen. Absent sizes are large. Several entries give variants, one for
    /// each different choice, and a rule that selects one at launch.
    pub sizes: Vec<Sizes>,
    /// Variants by definitions, in the order in which they are tried at launch: the first whose preconditions hold. Empty: none.
    pub variants: Vec<Vec<(String, String)>>,
    /// Sizes that are 0: kernels are compiled as if they had `where K == 0`.
    pub zeros: Vec<String>,
    /// Sizes that no kernel takes are an error; otherwise the host must check them.
    pub refuse_sizes: bool,
    /// The card for which they are chosen; `None`: the default card of the target.
    pub card: Option<&'static Card>,
    /// The caller, whose syntax messages use for options: command-line options or keyword arguments.
    pub caller: Caller,
    /// Passes that make only plain decisions.
    pub disabled: BTreeSet<String>,
    /// Passes taken to be switched off where `auto` parameters are chosen; `None`: those that are. It keeps the tile of a
    /// program whose passes are switched off one after the other.
    pub disabled_in_choice: Option<BTreeSet<String>>,
    /// Remarks of these kinds are errors.
    pub deny: BTreeSet<String>,
    /// Demands on the code of every kernel, besides the kernel's own.
    pub demands: Vec<Demand>,
    /// Passes (or [`PARSED`](crate::compile::PARSED)) after which the program's text is stored.
    pub keep: Keep,
    /// Whether stored texts have the source lines of their lines.
    pub keep_places: bool,
    /// Verify the program after every pass.
    pub verify_each: bool,
    /// The reports say what each copy and access of shared memory became, which takes a tenth of a compilation.
    pub report_accesses: bool,
    /// Demands that do not hold are warnings: the program is looked at, and not used.
    pub show_broken: bool,
}

/// The passes after which the program's text is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Keep {
    /// After every pass.
    All,
    /// After these.
    After(BTreeSet<String>),
}

impl Default for Keep {
    fn default() -> Keep {
        Keep::After(BTreeSet::new())
    }
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions {
            source_name: "input.tile".to_owned(),
            target: Target::Sm70,
            defines: Vec::new(),
            sizes: Vec::new(),
            variants: Vec::new(),
            zeros: Vec::new(),
            refuse_sizes: true,
            card: None,
            caller: Caller::default(),
            disabled: BTreeSet::new(),
            disabled_in_choice: None,
            deny: BTreeSet::new(),
            demands: Vec::new(),
            keep: Keep::default(),
            keep_places: false,
            verify_each: cfg!(debug_assertions),
            report_accesses: true,
            show_broken: false,
        }
    }
}

impl CompileOptions {
    /// Whether the text after `pass` is stored.
    pub(crate) fn keeps(&self, pass: &str) -> bool {
        match &self.keep {
            Keep::All => true,
            Keep::After(passes) => passes.contains(pass),
        }
    }

    /// What is the same for all kernels and variants.
    pub(crate) fn pass_options(&self) -> tilec_passes::Options {
        let mut options = tilec_passes::Options::new(self.target);
        options.verify_each = self.verify_each;
        options.disabled.clone_from(&self.disabled);
        options.card = self.card;
        options.caller = self.caller;
        options
    }

    /// The options of file passes for a variant; `None`: for all variants.
    pub(crate) fn file_options(&self, variant: Option<&[(String, String)]>) -> tilec_passes::Options {
        let mut options = self.pass_options();
        options.defines = self.defines.iter().chain(variant.into_iter().flatten()).cloned().collect();
        if variant.is_none() {
            // One call launches any of the variants: they are kernels, and take the same.
            options.disabled.insert(ALIGN_ROWS.to_owned());
        }
        options
    }
}

/// The pass that makes a sequence of a kernel.
pub(crate) const ALIGN_ROWS: &str = "align-rows";
