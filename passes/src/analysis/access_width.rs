//! The widest access that a view of global memory provably allows, and the reason against wider ones.

use super::facts::{Facts, Stride, contiguous_dim, strides};
use tilec_ir::diag::counted;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::print::print_expr;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{ResolvedView, ViewDim};

/// Bytes of the widest memory access of a thread.
pub const MAX_ACCESS_BYTES: u32 = 16;

/// An access width in elements, and why it is not wider.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Width {
    /// Elements per access, a power of two.
    pub elems: u32,
    /// The reason against a 16-byte access; empty if there is none.
    pub why: String,
    /// The precondition that would help, as source text; empty if none would.
    pub missing: String,
    /// Whether an access moves all elements that a thread has.
    pub all_of_thread: bool,
    /// The tensor whose window begins inside of a full access, whatever sizes and tiles are.
    pub inside: Option<Value>,
}

/// The element type of a place or tensor, once specialised.
pub fn elem_of(k: &Kernel, base: Value) -> Option<Elem> {
    match k.values[base].def.elem()? {
        ElemRef::Known(elem) => Some(elem),
        ElemRef::Param(_) => None,
    }
}

/// The element type of a place or tensor.
///
/// # Panics
/// The value is something else, or the kernel is not specialised.
pub(crate) fn known_elem(k: &Kernel, base: Value) -> Elem {
    elem_of(k, base).unwrap_or_else(|| panic!("bug: `{}` has no element type", k.values[base].name))
}

/// The extents of a tile.
///
/// # Panics
/// The value is no tile, or the kernel is not specialised.
pub(crate) fn tile_shape(k: &Kernel, tile: Value) -> Vec<u64> {
    let shape = k.tile_ty(tile).and_then(|t| k.const_shape(&t.shape));
    shape.unwrap_or_else(|| panic!("bug: the extents of `{}` are not known", k.values[tile].name))
}

/// The number of slots of a channel.
///
/// # Panics
/// The value is no channel, or the kernel is not specialised.
pub(crate) fn slots_of(k: &Kernel, channel: Value) -> u64 {
    let slots = tilec_ir::placement::slots(k, channel);
    slots.unwrap_or_else(|| panic!("bug: the slots of `{}` are not known", k.values[channel].name))
}

/// The dimension of the *window* (dropped dimensions not counted, transposition applied) that has stride 1.
pub fn window_contiguous_dim(k: &Kernel, view: &ResolvedView) -> Option<usize> {
    let dim = contiguous_dim(k, view.base)?;
    let kept: Vec<usize> = kept_dims(view);
    let position = kept.iter().position(|&d| d == dim)?;
    Some(if view.transposed { kept.len() - 1 - position } else { position })
}

/// The dimensions of the base that the window keeps, in order.
pub fn kept_dims(view: &ResolvedView) -> Vec<usize> {
    let kept = |d: &ViewDim| !matches!(d, ViewDim::Fixed(_));
    view.dims.iter().enumerate().filter(|(_, d)| kept(d)).map(|(i, _)| i).collect()
}

/// The widest access to a window of a tensor whose tile has `shape` (in window order).
pub fn global_width(k: &Kernel, facts: &Facts, view: &ResolvedView, shape: &[u64]) -> Width {
    let Some(elem) = elem_of(k, view.base) else { return narrow("the element type is not known", "") };
    global_width_up_to(k, facts, view, shape, (elem, u64::from(elem.per(MAX_ACCESS_BYTES))))
}

/// Like [`global_width`], for accesses of at most `full` elements.
pub(crate) fn global_width_up_to(
    k: &Kernel,
    facts: &Facts,
    view: &ResolvedView,
    shape: &[u64],
    (elem, full): (Elem, u64),
) -> Width {
    let name = &k.values[view.base].name;
    let Some(dim) = contiguous_dim(k, view.base) else {
        return narrow(&format!("no dimension of `{name}` has stride 1"), "");
    };
    let Some(window_dim) = window_contiguous_dim(k, view) else {
        return narrow(&format!("the window has a single element along the contiguous dimension of `{name}`"), "");
    };
    let mut limits = Limits::new(full);
    let mut limit =
        |elems: u64, why: &dyn Fn() -> String, missing: &dyn Fn() -> String| limits.limit(elems, why, missing);
    let (mut beside, mut inside) = (None, None);
    if let Some(align) = k.tensor_ty(view.base).and_then(|t| t.align) {
        limit(u64::from(elem.per(align)), &|| format!("`{name}` is declared with `align {align}`"), &String::new);
    }
    if view.gathers_by_element(k) {
        limit(1, &|| format!("elements of `{name}` are gathered one by one"), &String::new);
    }
    let extent = shape[window_dim];
    limit(
        extent,
        &|| format!("the tile is {} wide along the contiguous dimension", counted(extent as usize, "element")),
        &String::new,
    );
    let lacks = |text: &str, factor: &str| {
        (format!("`{text}` is not known to be a multiple of {full}"), format!("{factor} % {full} == 0"))
    };
    let multiple = |e: Expr| {
        let text = print_expr(k, e);
        lacks(&text, &parenthesised(k, e, &text))
    };
    let named = |v: Value| lacks(&k.values[v].name, &k.values[v].name);
    // A run of elements must not reach beyond the extent; for several modes, that of the innermost mode.
    let extent = k.tensor_ty(view.base).and_then(|t| match t.modes(dim) {
        Some(modes) => modes.last().map(|m| m.extent),
        None => t.shape.get(dim).copied(),
    });
    if let Some(extent) = extent {
        limit(facts.divisor(k, extent).min(full), &|| multiple(extent).0, &|| multiple(extent).1);
    }
    for p in k.tensor_ty(view.base).iter().flat_map(|t| &t.padded) {
        limit(facts.divisor_of_value(k, p.stride).min(full), &|| named(p.stride).0, &|| named(p.stride).1);
    }
    for (d, window) in view.dims.iter().enumerate() {
        let mut steps = strides(k, view.base, d);
        if d == dim {
            let starts = match window {
                ViewDim::From { starts, end } => starts.iter().chain(end).copied().collect(),
                ViewDim::Fixed(e) => vec![*e],
                ViewDim::Gather(_) => {
                    limit(
                        1,
                        &|| format!("elements of `{name}` are gathered along its contiguous dimension"),
                        &String::new,
                    );
                    Vec::new()
                }
            };
            for e in starts {
                let why = || never(k, e, full).unwrap_or_else(|| multiple(e).0);
                limit(facts.divisor(k, e).min(full), &why, &String::new);
                if facts.divisor(k, e) < full {
                    beside = beside.or(never(k, e, full));
                    inside = inside.or(begins_inside(k, e, full).then_some(view.base));
                }
            }
            // Within the innermost mode, elements are neighbours.
            steps.as_mut().and_then(Vec::pop);
        }
        match steps {
            Some(steps) => steps.into_iter().for_each(|s| match s {
                Stride::Const(s) => {
                    let part = if s == 0 { full } else { 1 << s.unsigned_abs().trailing_zeros().min(20) };
                    limit(part.min(full), &|| format!("dimension {d} of `{name}` has stride {s}"), &String::new);
                }
                Stride::Value(v) => {
                    limit(facts.divisor_of_value(k, v).min(full), &|| named(v).0, &|| named(v).1);
                }
                Stride::Computed(e) => {
                    // A product of extents is a multiple of what each factor is.
                    let factors = |e| tilec_ir::typing::factors(k, &[e]);
                    let follows = |extent: &Expr| {
                        let (product, part) = (factors(e), factors(*extent));
                        part.0 == 1 && part.1.iter().all(|f| product.1.contains(f))
                    };
                    let needed = extent.filter(follows).unwrap_or(e);
                    limit(facts.divisor(k, e).min(full), &|| multiple(e).0, &|| multiple(needed).1);
                }
            }),
            None => limit(1, &|| format!("the strides of `{name}` are not known"), &String::new),
        }
    }
    Width { inside, ..limits.width(beside) }
}

/// Collects the limits of an access.
struct Limits {
    full: u64,
    width: Width,
    /// Every precondition that a full access lacks, not only the most limiting one: all are needed together.
    missing: Vec<String>,
    /// Some limit remains whatever is declared.
    hopeless: bool,
    /// A precondition would remove the reported limit.
    declarable: bool,
}

impl Limits {
    fn new(full: u64) -> Limits {
        let width = Width { elems: full as u32, ..Width::default() };
        Limits { full, width, missing: Vec::new(), hopeless: false, declarable: false }
    }

    /// Limits the access to `elems` elements, with the reason and the precondition that would help.
    fn limit(&mut self, elems: u64, why: &dyn Fn() -> String, missing: &dyn Fn() -> String) {
        if elems >= self.full {
            return;
        }
        let fact = missing();
        let declarable = !fact.is_empty();
        self.hopeless |= !declarable;
        // Among equal limits, one that no precondition removes is reported.
        let sooner = elems == u64::from(self.width.elems) && self.declarable && !declarable;
        if elems < u64::from(self.width.elems) || sooner {
            self.width = Width { elems: elems as u32, why: why(), ..Width::default() };
            self.declarable = declarable;
        }
        if declarable && !self.missing.contains(&fact) {
            self.missing.push(fact);
        }
    }

    /// The width; `beside`: another reason against a full access.
    fn width(mut self, beside: Option<String>) -> Width {
        if let Some(beside) = beside.filter(|beside| *beside != self.width.why) {
            self.width.why = format!("{}; and {beside}", self.width.why);
        }
        if !self.hopeless {
            self.width.missing = self.missing.join(", ");
        }
        self.width
    }
}

/// The message that an index is never a multiple of `full`, with tile extents that would make it one; `None`: a
/// precondition can make it one.
fn never(k: &Kernel, e: Expr, full: u64) -> Option<String> {
    if !is_of_indices(k, e) {
        return None;
    }
    let text = print_expr(k, e);
    let near = nearest(k, e, full).map(|n| {
        let below = n / full * full;
        format!(": with {below} or {} for {n} it is", below + full)
    });
    Some(format!("`{text}` is not always a multiple of {full}{}", near.unwrap_or_default()))
}

/// Whether an index is no multiple of `full`, with any sizes and tiles.
fn begins_inside(k: &Kernel, e: Expr, full: u64) -> bool {
    is_of_indices(k, e) && nearest(k, e, full).is_none()
}

/// The extent of tiles that an index multiplies, if multiples of `full` near it would make the index one.
fn nearest(k: &Kernel, e: Expr, full: u64) -> Option<u64> {
    let ExprData::Op { op: Op::Mul, args } = &k.exprs[e] else { return None };
    let step = args.iter().find_map(|&a| k.as_int(a)).and_then(|n| u64::try_from(n).ok());
    step.filter(|&n| n > full && !n.is_multiple_of(full))
}

/// Whether an index consists only of numbers, block indices and loop variables, so that no precondition helps.
fn is_of_indices(k: &Kernel, e: Expr) -> bool {
    match &k.exprs[e] {
        ExprData::Int(_) => true,
        ExprData::Ref(v) => matches!(k.values[*v].def, ValueDef::Grid | ValueDef::Loop),
        ExprData::Op { args, .. } => args.iter().all(|&e| is_of_indices(k, e)),
        _ => false,
    }
}

fn narrow(why: &str, missing: &str) -> Width {
    Width { elems: 1, why: why.to_owned(), missing: missing.to_owned(), ..Width::default() }
}

fn parenthesised(k: &Kernel, e: Expr, text: &str) -> String {
    if k.children(e).is_empty() { text.to_owned() } else { format!("({text})") }
}

/// The access width to a window of shared memory; `window_dim`: its contiguous dimension.
pub(crate) fn shared_width(
    k: &Kernel,
    facts: &Facts,
    view: &ResolvedView,
    elem: Elem,
    shape: &[u64],
    window_dim: Option<usize>,
) -> Width {
    let full = elem.per(MAX_ACCESS_BYTES);
    let name = &k.values[view.base].name;
    // The copied tile has fewer dimensions if `reshape` changes its indices.
    let Some(dim) = window_dim.filter(|&dim| dim < shape.len()) else {
        return Width { elems: 1, why: format!("`{name}` has no contiguous dimension"), ..Width::default() };
    };
    let mut width = Width { elems: full, ..Width::default() };
    let extent = shape[dim].min(u64::from(full)) as u32;
    if extent < width.elems {
        width = Width { elems: extent, why: format!("the window of `{name}` is {extent} wide"), ..Width::default() };
    }
    let Some(&base_dim) = view.base_dims().get(dim) else {
        return Width { elems: 1, why: format!("`{name}` has no such dimension"), ..Width::default() };
    };
    let gathered = matches!(view.dims.get(base_dim), Some(ViewDim::Gather(_)));
    if gathered || view.gathers_by_element(k) {
        let why = format!("elements of `{name}` are gathered one by one");
        return Width { elems: 1, why, ..Width::default() };
    }
    if let Some(ViewDim::From { starts, end }) = view.dims.get(base_dim) {
        let starts = starts.iter().map(|&e| (e, "starts"));
        for (e, does) in starts.chain(end.iter().map(|&e| (e, "ends"))) {
            let divisor = facts.divisor(k, e).min(u64::from(full)) as u32;
            if divisor < width.elems {
                let why = format!("the window of `{name}` {does} at a multiple of {divisor}");
                width = Width { elems: divisor, why, ..Width::default() };
            }
        }
    }
    if let Some(layout) = k.tile_ty(view.base).and_then(|t| t.smem_layout.as_ref()) {
        let cols = layout.dim_cols(base_dim);
        let run = cols.iter().enumerate().take_while(|(i, c)| **c == 1 << i).count() as u32;
        // Bits of another dimension inside the run would interrupt it.
        let others: u64 = (0..layout.dim_bits().len())
            .filter(|&d| d != base_dim)
            .flat_map(|d| layout.dim_cols(d))
            .fold(0, |a, c| a | c);
        let high: u64 = cols.iter().skip(run as usize).fold(others, |a, c| a | c);
        let run = run.min(if high == 0 { run } else { high.trailing_zeros() });
        if 1 << run < width.elems {
            let why = format!("{} elements of `{name}` are contiguous in its layout", 1 << run);
            width = Width { elems: 1 << run, why, ..Width::default() };
        }
    }
    width
}
