//! The premises of a fast path: which of them fails where, and what would have it hold.

use super::advice::Advice;
use super::answer::{Decision, Known};
use super::{by_parameters, larger_tiles, made, said, source_changes, tried, ways_out};
use crate::compile::CompiledKernel;
use crate::compile::demands;
use crate::compile::explain;
use crate::compile::implied::without_implied;
use crate::compile::unrepeated::unrepeated;
use tilec_ir::demands::{Property, What};
use tilec_ir::diag::{Diagnostic, Span};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ENDLESS, ExprData, Kernel, StmtData, ValueData, ValueDef};
use tilec_ir::missed_paths::FastPath;
use tilec_ir::typing::{resolve_view, type_of};
use tilec_passes::analysis::access_width::MAX_ACCESS_BYTES;

/// Why a fast path is not taken.
#[derive(Default)]
pub(super) struct Premise {
    /// Facts, a line each.
    pub(super) facts: Vec<String>,
    /// What passes said.
    pub(super) decisions: Vec<Decision>,
    /// What would change it.
    pub(super) advice: Vec<Advice>,
}

/// What passes said of the fast path that was not taken, and what the source itself decides at these places.
pub(super) fn premise(
    known: &Known<'_>,
    path: Option<FastPath>,
    kernel: &CompiledKernel,
    places: &[Span],
    what: What,
) -> Premise {
    let Some(path) = path else { return Premise::default() };
    // Accesses between shared memory and registers may be narrow, too; no demand is about them.
    let of_these = |d: &&Diagnostic| path != FastPath::Wide || places.contains(&d.span);
    let own: Vec<&Diagnostic> = demands::declined(kernel.tile.demanding(), path).filter(of_these).collect();
    let mut own = match path {
        FastPath::Wide => tried::of_widths(known, kernel, own),
        _ => own.into_iter().cloned().collect(),
    };
    let mut decisions: Vec<Decision> = Vec::new();
    for pass in explain::pass_names() {
        let said: Vec<&Diagnostic> = own.iter().filter(|d| d.kind == Some(pass)).collect();
        if !said.is_empty() {
            decisions.push(said::decision(known, pass, &said));
        }
    }
    let mut written = written(kernel, path, places);
    let awaits = path == FastPath::Ahead && !kernel.tile.awaited.is_empty();
    let in_registers = kernel.tile.awaited.iter().flat_map(|own| &own.loads).any(|load| !load.stored);
    // Of written roles no pass decides, and the clock says what they wait for.
    let by_clock = path == FastPath::Ahead && kernel.tile.block_time.is_some();
    if path == FastPath::Ahead && decisions.is_empty() && !awaits && !by_clock {
        written.extend(not_ahead(&kernel.tile.specialized));
    }
    if !written.is_empty() {
        let said: Vec<&Diagnostic> = written.iter().collect();
        decisions.push(said::decision(known, "source", &said));
    }
    own.append(&mut written);
    let mut facts = Vec::new();
    let mut advice = advised(known, kernel, &own, &mut facts);
    by_alignment(known, kernel, (path, what), &own, &mut advice);
    if !decisions.is_empty() && !advice.iter().any(Advice::is_option) {
        let ordered = by_parameters::ordered(known, kernel, what);
        if let Some((option, change)) = ordered {
            advice.insert(0, Advice::by(format!("{option}: `{what}` holds with it"), Some(change)));
        } else if path == FastPath::Wide {
            match larger_tiles::of_wider_accesses(known, kernel, places) {
                Ok(wider) => advice.insert(0, wider),
                Err(fact) => facts.extend(fact),
            }
        }
    }
    if path == FastPath::Banks {
        let made = made::by_passes(known, kernel);
        facts.extend(made.facts);
        advice.extend(made.advice);
        advice.extend(tried::of_conflicts(known, kernel));
    }
    if awaits && in_registers && advice.is_empty() {
        advice.push(Advice::by_hand(
            "copy what is loaded to registers through a buffer (`let s = smem ..`), which has slots; factors of rows or columns multiply the result after the loop instead",
        ));
    }
    if decisions.is_empty() && facts.is_empty() && advice.is_empty() && !by_clock {
        let (own, ways) = undecided(known, kernel, (path, places), what);
        facts.extend(own);
        advice.extend(ways);
    }
    if path == FastPath::TensorLoads && decisions.is_empty() && demands::has_path(known.program.target, path) {
        // Tiles come by TMA for wgmma products: what keeps these away keeps TMA away.
        let products = premise(known, Some(FastPath::Wgmma), kernel, places, What::Has(Property::Wgmma));
        decisions = products.decisions;
        advice.extend(products.advice);
    }
    Premise { facts, decisions, advice }
}

/// What messages advise. The preconditions that several of them request are requested once, in one clause, without those
/// that given sizes contradict.
pub(super) fn advised(
    known: &Known<'_>,
    kernel: &CompiledKernel,
    said: &[Diagnostic],
    facts: &mut Vec<String>,
) -> Vec<Advice> {
    let mut needs: Vec<&str> = said.iter().flat_map(|d| d.needs.split(", ")).filter(|need| !need.is_empty()).collect();
    unrepeated(&mut needs);
    let (mut met, contradicted) = tried::possible(known, kernel, &needs);
    without_implied(&mut met);
    facts.extend(contradicted);
    let mut all = Vec::new();
    if !met.is_empty() {
        all.push(ways_out::of_preconditions(known, kernel, &met.join(", "), ""));
    }
    for d in said {
        let own = ways_out::of_diagnostic(known, kernel, d);
        all.extend(own.into_iter().filter(|advice| !advice.asks_for(&d.needs)));
    }
    all
}

/// A larger alignment that a parameter of the source gives, in place of the preconditions that messages request.
fn by_alignment(
    known: &Known<'_>,
    kernel: &CompiledKernel,
    (path, what): (FastPath, What),
    said: &[Diagnostic],
    advice: &mut Vec<Advice>,
) {
    if path != FastPath::Wide || said.iter().all(|d| d.needs.is_empty()) {
        return;
    }
    if let Some((option, change)) = by_parameters::aligned(known, kernel, what) {
        advice.retain(|advice| !advice.declares());
        advice.insert(0, Advice::by(format!("`{option}`: `{what}` holds with it"), Some(change)));
    }
}

/// What is written in the source, so that no pass decides it: widths of accesses, layouts of buffers.
fn written(kernel: &CompiledKernel, path: FastPath, places: &[Span]) -> Vec<Diagnostic> {
    let (k, report) = (&kernel.tile.specialized, &kernel.lowered);
    let says = |span: Span, text: String, way_out: &str, word: &str| {
        let d = Diagnostic::remark("", span, text.clone()).with_why(text).with_note(way_out);
        d.with_left_out(k.clause(span, word))
    };
    match path {
        FastPath::Wide => {
            let copies = k.stmts.iter().filter(|(s, _)| places.contains(&k.stmt_spans[*s]));
            let vec = |(s, data): (Stmt, &StmtData)| match data {
                StmtData::Copy { attrs, .. } => Some((k.stmt_spans[s], attrs.vec?)),
                _ => None,
            };
            let text = |(span, n)| {
                let way_out =
                    "leave `vec` out: `vectorize` takes the widest access that it can prove, and says what is missing";
                says(span, format!("`vec {n}` is written"), way_out, "vec")
            };
            copies.filter_map(vec).map(text).collect()
        }
        FastPath::Banks => {
            let conflicts = |name: &str| report.shared.iter().any(|s| s.buffer == name && s.conflicts() > 0);
            let fixed = |def: &ValueDef| matches!(def, ValueDef::Smem(tile) if tile.smem_layout.is_some());
            let buffers = k.values.iter().filter(|(_, v)| fixed(&v.def) && conflicts(&v.name));
            let said = |(v, own): (Value, &ValueData)| {
                let text = format!("the layout of `{}` is written", own.name);
                let way_out =
                    format!("leave `layout` of `{}` out: `swizzle` looks for one without conflicts", own.name);
                says(own.span, text, &way_out, "layout").with_left_out(source_changes::layout_clause(k, v))
            };
            buffers.map(said).collect()
        }
        FastPath::Wgmma => {
            let atom = |s: Stmt| match k.stmts[s] {
                StmtData::Assign { src, .. } => match &k.exprs[src] {
                    ExprData::Mma(mma) => Some((k.stmt_spans[s], mma.atom?.row().name)),
                    _ => None,
                },
                _ => None,
            };
            let text = |(span, name)| {
                let way_out = "leave the instruction out, `mma(a, b, acc)`: `select-mma` takes wgmma where it can, and says what is missing";
                says(span, format!("`mma<{name}>` is written"), way_out, "")
            };
            let written = k.statements().into_iter().filter_map(atom).map(text);
            let operands = k.statements().into_iter().flat_map(|s| match k.stmts[s] {
                StmtData::Assign { src, .. } => match &k.exprs[src] {
                    ExprData::Mma(mma) => vec![mma.a, mma.b],
                    _ => Vec::new(),
                },
                _ => Vec::new(),
            });
            let mut buffers: Vec<Value> = operands.filter_map(|e| Some(resolve_view(k, e)?.base)).collect();
            unrepeated(&mut buffers);
            let laid_out = buffers.into_iter().filter_map(|v| Some((v, source_changes::layout_clause(k, v)?)));
            let layouts = laid_out.map(|(v, clause)| {
                let own = &k.values[v];
                let text = format!("the layout of `{}` is written", own.name);
                let way_out = format!("leave `layout` of `{}` out", own.name);
                says(own.span, text, &way_out, "layout").with_left_out(Some(clause))
            });
            written.chain(layouts).collect()
        }
        _ => Vec::new(),
    }
}

/// Why no pass had a fast path to decide about.
fn undecided(
    known: &Known<'_>,
    kernel: &CompiledKernel,
    (path, places): (FastPath, &[Span]),
    what: What,
) -> (Vec<String>, Vec<Advice>) {
    if let Some(lacking) = demands::lacking(known.program.target, path) {
        return (vec![lacking], Vec::new());
    }
    let facts = match path {
        FastPath::TensorLoads if kernel.report.mma.is_empty() => {
            vec!["the compiler itself uses TMA loads for the slots of wgmma products, and the kernel has no product: roles that are written may have them (`role`, `copy .. tma`)".to_owned()]
        }
        FastPath::TensorLoads => {
            vec![
                "the compiler itself uses TMA loads for the slots of wgmma products, and the kernel has none because:"
                    .to_owned(),
            ]
        }
        FastPath::Ahead => vec!["the kernel has no loop: nothing is there to run ahead of".to_owned()],
        FastPath::Banks if known.options.disabled.contains("swizzle") => {
            return (Vec::new(), vec![Advice::by_hand("`swizzle` is switched off (`--disable-pass`)")]);
        }
        FastPath::Banks => vec![
            "`swizzle` found no layout with fewer conflicts: what is stored and what is loaded want different ones"
                .to_owned(),
        ],
        FastPath::Wide if places.iter().any(|&span| widest(kernel, span).is_some()) => {
            let mut facts: Vec<String> = places.iter().filter_map(|&span| widest(kernel, span)).collect();
            unrepeated(&mut facts);
            facts
        }
        _ => vec![format!("no pass decides about `{what}` here, or the pass is switched off (`--disable-pass`)")],
    };
    (facts, Vec::new())
}

/// What bounds the elements of an access of a statement, where some of what it accesses has larger elements and is accessed in full width.
fn widest(kernel: &CompiledKernel, span: Span) -> Option<String> {
    let own = || kernel.lowered.copies.iter().filter(|c| c.span == span);
    let full = own().find(|c| c.global_bytes.max(c.shared_bytes) >= MAX_ACCESS_BYTES)?;
    let name = if full.tensor.is_empty() { &full.dst } else { &full.src };
    Some(format!(
        "a thread moves the same number of elements of everything that the statement accesses, and `{name}` has {MAX_ACCESS_BYTES} bytes in them: smaller elements take narrower accesses"
    ))
}

/// Whether statements bring tiles from tensors to shared memory, and whether to registers.
pub(super) fn loads(k: &Kernel, body: Block) -> (bool, bool) {
    let (mut buffers, mut registers) = (false, false);
    k.walk(body, &mut |k, _, s| {
        let global = |e: Expr| resolve_view(k, e).is_some_and(|view| k.tensor_ty(view.base).is_some());
        if let StmtData::Copy { src, dst, .. } = k.stmts[s] {
            let space = resolve_view(k, dst).map(|to| to.space(k));
            buffers |= reads_tensor(k, src) && space.is_some_and(|space| space.is_of_block());
            registers |= global(src) && space.is_none_or(|space| space.in_registers());
        }
        registers |= k.stmts[s].exprs().into_iter().any(|e| reads_tensor(k, e));
    });
    (buffers, registers)
}

/// Whether statements read single elements of tensors alone.
fn reads_single_elements(k: &Kernel, body: Block) -> bool {
    let mut single = true;
    k.walk(body, &mut |k, _, s| {
        let read = k.stmts[s].exprs().into_iter().filter(|&e| reads_tensor(k, e));
        single &= read.into_iter().all(|e| type_of(k, e).is_ok_and(|ty| ty.rank() == 0));
    });
    single
}

/// Why no loop was asked whether its loads may run ahead, and what would have them.
fn not_ahead(k: &Kernel) -> Vec<Diagnostic> {
    let mut said: Vec<Diagnostic> = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        let StmtData::For { var, body, end, .. } = k.stmts[s] else { return };
        let (buffers, registers) = loads(k, body);
        let what = match k.as_int(end) == Some(ENDLESS) {
            true => "the `while` loop".to_owned(),
            false => format!("the loop over `{}`", k.values[var].name),
        };
        let (why, way_out) = match (buffers, registers) {
            (true, _) => {
                (format!("{what} fills buffers, and the pass is switched off"), "leave `--disable-pass` out".to_owned())
            }
            (false, true) if reads_single_elements(k, body) => (
                format!("{what} loads single elements straight to registers; only tiles in shared memory have slots"),
                "load what all iterations need in front of the loop".to_owned(),
            ),
            (false, true) => (
                format!("{what} loads straight to registers; only tiles in shared memory have slots"),
                "copy the tiles through a buffer: `let s = smem ..` in front of the loop, and in it `copy X[..] -> s`"
                    .to_owned(),
            ),
            (false, false) => {
                (format!("{what} loads nothing"), "nothing to change: there is no load to run ahead".to_owned())
            }
        };
        let d = Diagnostic::remark("", k.values[var].span, why.clone()).with_why(why).with_note(way_out);
        if !said.contains(&d) {
            said.push(d);
        }
    });
    said
}

/// Whether an expression reads a window of a tensor.
fn reads_tensor(k: &Kernel, e: Expr) -> bool {
    resolve_view(k, e).is_some_and(|view| k.tensor_ty(view.base).is_some())
        || k.children(e).into_iter().any(|e| reads_tensor(k, e))
}
