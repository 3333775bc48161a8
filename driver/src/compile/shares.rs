//! Which statements a figure of the model is made of: the copies with most bytes, the products, the loop that waits.
//!
//! The model predicts a kernel as a whole. What a statement has of that is read off the kernel and the emitter's report: bytes of a copy's
//! window, wavefronts of an access to shared memory.

use tilec_ir::diag::{Span, counted};
use tilec_ir::entities::{Block, Expr, Stmt};
use tilec_ir::kernel::{Kernel, StmtData, ValueDef};
use tilec_ir::types::ElemRef;
use tilec_ir::typing::{copy_shape, resolve_view};
use tilec_passes::choose::{Prediction, Term};
use tilec_ptx::report::Report;

/// Statements with what each has.
pub(super) type Places = Vec<(Span, String)>;

/// A copy from or to a tensor.
struct Moved {
    span: Span,
    tensor: String,
    bytes: u64,
    in_loop: bool,
    store: bool,
}

/// The copies with most bytes: of those in a loop if there are any, as these run more often.
pub(super) fn copies(k: &Kernel) -> Places {
    most(moved(k))
}

/// The statements that a term of the predicted time is for.
pub(super) fn of_term(k: &Kernel, report: &Report, p: &Prediction, term: Term) -> Places {
    let has = |what: &str| format!("{what}: {:.1} us of {:.1} predicted", p.terms.of(term) * 1e6, p.seconds * 1e6);
    match term {
        Term::Memory | Term::L2 => copies(k),
        Term::Products => report.mma.iter().map(|m| (m.span, has(&format!("`{}`", m.atom)))).collect(),
        Term::Shared => {
            let mut all: Vec<_> = report.shared.iter().collect();
            all.sort_by_key(|s| (!s.in_loop, std::cmp::Reverse(s.conflicts()), std::cmp::Reverse(s.wavefronts)));
            all.iter().take(2).map(|s| accesses(s)).collect()
        }
        Term::Latency => loops(k).into_iter().map(|s| (s, has("waits for loads and dependent instructions"))).collect(),
        Term::Barriers => loops(k).into_iter().map(|s| (s, has("barriers"))).collect(),
        Term::Ends => most(moved(k).into_iter().filter(|m| m.store).collect()),
        Term::Uneven => {
            let axes = k.grid.iter().map(|axis| k.expr_spans[axis.extent]).filter(|s| !s.is_none());
            axes.take(1).map(|s| (s, has(&format!("{:.0} blocks are {:.2} waves", p.blocks, p.waves)))).collect()
        }
    }
}

/// The buffers and channels with most bytes of shared memory.
pub(super) fn buffers(k: &Kernel, report: &Report) -> Places {
    let mut tiles: Vec<_> = report.tiles.iter().map(|t| (t.bytes * t.slots, t)).collect();
    tiles.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let place = |(bytes, t): (u64, &tilec_ptx::report::TileReport)| {
        let value = k.values.values().find(|v| v.name == t.name)?;
        let slots = if t.slots > 1 { format!(", {} slots of {}", t.slots, t.bytes) } else { String::new() };
        Some((value.span, format!("`{}` has {bytes} bytes{slots}", t.name)))
    };
    tiles.into_iter().filter_map(place).collect()
}

/// The register tiles that take most, where they are declared.
pub(super) fn registers(k: &Kernel) -> Places {
    let tiles = register_tiles(k).into_iter().filter(|(.., span)| !span.is_none());
    let text = |(words, text, span)| (span, format!("{text} takes {words} registers of a thread"));
    tiles.map(text).take(3).collect()
}

/// Register tiles by the registers that a thread has for each, most first: registers, the tile in words, where it is declared.
pub(crate) fn register_tiles(k: &Kernel) -> Vec<(u64, String, Span)> {
    let mut all: Vec<(u64, String, Span)> = Vec::new();
    for value in k.values.values() {
        let ValueDef::Var(tile) = &value.def else { continue };
        let (Some(layout), ElemRef::Known(elem)) = (&tile.reg_layout, tile.elem) else { continue };
        let words = elem.words(1u64 << layout.value_bits());
        let shape: Vec<String> = k.const_shape(&tile.shape).unwrap_or_default().iter().map(u64::to_string).collect();
        all.push((words, format!("`{}`, {}[{}],", value.name, elem.name(), shape.join(", ")), value.span));
    }
    all.sort_by_key(|(words, ..)| std::cmp::Reverse(*words));
    all
}

/// Copies in loops by which threads fill shared memory from tensors, TMA apart.
pub(super) fn filled_by_threads(k: &Kernel) -> Places {
    let mut out: Places = Vec::new();
    walk(k, k.body, false, &mut |s, in_loop| {
        let StmtData::Copy { src, dst, attrs } = &k.stmts[s] else { return };
        let fills = resolve_view(k, *dst).is_some_and(|to| to.space(k).is_of_block()) && tensor_of(k, *src).is_some();
        let place = (k.stmt_spans[s], "loaded by threads".to_owned());
        if in_loop && fills && !attrs.is_tensor() && !out.contains(&place) {
            out.push(place);
        }
    });
    out
}

fn accesses(s: &tilec_ptx::report::SharedReport) -> (Span, String) {
    let access = if s.store { "a store to" } else { "a load from" };
    let least = match s.conflicts() {
        0 => ", as few as its width needs".to_owned(),
        _ => format!(", not {}", s.ideal_wavefronts),
    };
    let wavefronts = counted(s.wavefronts as usize, "wavefront");
    (s.span, format!("{access} `{}` takes {wavefronts} a warp{least}", s.buffer))
}

/// The copies with most bytes, and their share.
fn most(mut all: Vec<Moved>) -> Places {
    if all.iter().any(|m| m.in_loop) {
        all.retain(|m| m.in_loop);
    }
    all.sort_by_key(|m| std::cmp::Reverse(m.bytes));
    let sum: u64 = all.iter().map(|m| m.bytes).sum();
    let text = |m: Moved| {
        let (does, often) =
            (if m.store { "stores" } else { "loads" }, if m.in_loop { "in an iteration" } else { "once" });
        let share = (100 * m.bytes).div_ceil(sum.max(1));
        (m.span, format!("{does} {} bytes of `{}` {often}, {share} % of what a block moves there", m.bytes, m.tensor))
    };
    all.into_iter().take(2).map(text).collect()
}

/// Copies from or to tensors, a statement of the source once: what a pass made several of counts as its largest.
fn moved(k: &Kernel) -> Vec<Moved> {
    let mut out: Vec<Moved> = Vec::new();
    walk(k, k.body, false, &mut |s, in_loop| {
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { return };
        let Some(shape) = copy_shape(k, src, dst) else { return };
        for (e, store) in [(src, false), (dst, true)] {
            let Some((tensor, bits)) = tensor_of(k, e) else { continue };
            let bytes = (shape.iter().product::<u64>() * bits).div_ceil(8);
            let span = k.stmt_spans[s];
            match out.iter_mut().find(|m| m.span == span && m.store == store) {
                Some(m) => (m.bytes, m.in_loop) = (m.bytes.max(bytes), m.in_loop || in_loop),
                None => out.push(Moved { span, tensor, bytes, in_loop, store }),
            }
        }
    });
    out.retain(|m| !m.span.is_none());
    out
}

/// A tensor that a copy reads or writes, and the bits of its elements.
fn tensor_of(k: &Kernel, e: Expr) -> Option<(String, u64)> {
    let base = resolve_view(k, e)?.base;
    let elem = k.values[base].def.elem()?;
    k.tensor_ty(base)?;
    let ElemRef::Known(elem) = elem else { return None };
    Some((k.values[base].name.clone(), elem.size().get().into()))
}

/// The variables of the loops in which copies or products are.
fn loops(k: &Kernel) -> Vec<Span> {
    let mut out: Vec<Span> = Vec::new();
    walk(k, k.body, false, &mut |s, _| {
        let StmtData::For { var, body, unroll: false, .. } = &k.stmts[s] else { return };
        let works = |&s: &Stmt| matches!(k.stmts[s], StmtData::Copy { .. } | StmtData::Assign { .. });
        let span = k.values[*var].span;
        if k.blocks[*body].iter().any(works) && !span.is_none() && !out.contains(&span) {
            out.push(span);
        }
    });
    out
}

fn walk(k: &Kernel, block: Block, in_loop: bool, each: &mut dyn FnMut(Stmt, bool)) {
    for &s in &k.blocks[block] {
        each(s, in_loop);
        let inner = in_loop || matches!(k.stmts[s], StmtData::For { .. });
        for sub in k.sub_blocks(s) {
            walk(k, sub, inner, each);
        }
    }
}
