//! The widest access a view of global memory provably allows, and what stops a wider one.

use super::facts::{Facts, Stride, contiguous_dim, strides};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::Kernel;
use tilec_ir::print::print_expr;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{ResolvedView, ViewDim};

/// Bytes of the widest memory access of a thread.
pub const MAX_ACCESS_BYTES: u32 = 16;

/// An access width in elements, and why it is not wider.
#[derive(Clone, Debug, PartialEq)]
pub struct Width {
    /// Elements per access, a power of two.
    pub elems: u32,
    /// What stops a 16-byte access; empty if nothing does.
    pub why: String,
    /// The precondition that would help, as source text; empty if none would.
    pub missing: String,
}

/// The element type of a place or tensor, once specialised.
pub fn elem_of(k: &Kernel, base: Value) -> Option<Elem> {
    match k.values[base].def.elem()? {
        ElemRef::Known(elem) => Some(elem),
        ElemRef::Param(_) => None,
    }
}

/// The element type of a place or tensor that has one.
///
/// # Panics
/// It has none: something else than a place, or a kernel that is not specialised.
pub(crate) fn known_elem(k: &Kernel, base: Value) -> Elem {
    elem_of(k, base).unwrap_or_else(|| panic!("bug: `{}` has no element type", k.values[base].name))
}

/// The extents of a tile.
///
/// # Panics
/// It is none, or the kernel is not specialised.
pub(crate) fn tile_shape(k: &Kernel, tile: Value) -> Vec<u64> {
    let shape = k.tile_ty(tile).and_then(|t| k.const_shape(&t.shape));
    shape.unwrap_or_else(|| panic!("bug: the extents of `{}` are not known", k.values[tile].name))
}

/// The slots of a channel.
///
/// # Panics
/// It is none, or the kernel is not specialised.
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
    let full = u64::from(elem.per(MAX_ACCESS_BYTES));
    let name = &k.values[view.base].name;
    let Some(dim) = contiguous_dim(k, view.base) else {
        return narrow(&format!("no dimension of `{name}` has stride 1"), "");
    };
    let Some(window_dim) = window_contiguous_dim(k, view) else {
        return narrow(&format!("the window has a single element along the contiguous dimension of `{name}`"), "");
    };
    let mut width = Width { elems: full as u32, why: String::new(), missing: String::new() };
    // Every precondition that a full access lacks, not only the one that limits it most: they are needed together.
    let mut all_missing: Vec<String> = Vec::new();
    let mut hopeless = false;
    let mut limit = |elems: u64, why: &dyn Fn() -> String, missing: &dyn Fn() -> String| {
        if elems < full {
            match missing() {
                fact if fact.is_empty() => hopeless = true,
                fact if !all_missing.contains(&fact) => all_missing.push(fact),
                _ => {}
            }
        }
        if elems < u64::from(width.elems) {
            width = Width { elems: elems as u32, why: why(), missing: String::new() };
        }
    };
    if let Some(align) = k.tensor_ty(view.base).and_then(|t| t.align) {
        limit(u64::from(elem.per(align)), &|| format!("`{name}` is declared with `align {align}`"), &String::new);
    }
    let extent = shape[window_dim];
    limit(extent, &|| format!("the tile is {extent} elements wide along the contiguous dimension"), &String::new);
    let lacks = |text: &str, factor: &str| {
        (format!("`{text}` is not known to be a multiple of {full}"), format!("{factor} % {full} == 0"))
    };
    let multiple = |e: Expr| {
        let text = print_expr(k, e);
        lacks(&text, &parenthesised(k, e, &text))
    };
    let named = |v: Value| lacks(&k.values[v].name, &k.values[v].name);
    // A run of elements must not reach beyond the extent; of several modes, beyond that of the innermost.
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
                limit(facts.divisor(k, e).min(full), &|| multiple(e).0, &String::new);
            }
            // Within the innermost mode elements are neighbours.
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
                    // What makes the extent a multiple does so with its products.
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
    if !hopeless {
        width.missing = all_missing.join(", ");
    }
    width
}

fn narrow(why: &str, missing: &str) -> Width {
    Width { elems: 1, why: why.to_owned(), missing: missing.to_owned() }
}

fn parenthesised(k: &Kernel, e: Expr, text: &str) -> String {
    if k.children(e).is_empty() { text.to_owned() } else { format!("({text})") }
}
