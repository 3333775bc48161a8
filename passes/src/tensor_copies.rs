//! Copies that TMA can do: boxes of a tensor, by a tensor map that the host encodes at launch.
//!
//! A tensor map has an address, extents and strides in multiples of 16 bytes (`cuTensorMapEncodeTiled`). Elements past
//! an extent read as zero, as in the language.

use crate::analysis::access_width::{
    MAX_ACCESS_BYTES, elem_of, global_width, known_elem, tile_shape, window_contiguous_dim,
};
use crate::analysis::contiguous_dim::smem_contiguous;
use crate::analysis::facts::{Facts, Stride, contiguous_dim, strides};
use crate::refusal::Refused;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData};
use tilec_ir::layout::hardware::{self, panels};
use tilec_ir::padded::im2col;
use tilec_ir::print::print_expr;
use tilec_ir::target::{MAX_TENSOR_RANK, Target};
use tilec_ir::typing::{ResolvedView, resolve_view};
use tilec_ir::window_ends::own_end;

/// Checks that TMA can copy a window of a tensor to the whole `buffer`. The error says why not.
pub(crate) fn fits(
    k: &Kernel,
    facts: &Facts,
    target: Target,
    from: &ResolvedView,
    buffer: Value,
    attrs: &CopyAttrs,
) -> Result<(), Refused> {
    if elem_of(k, from.base) != elem_of(k, buffer) && k.tensor_ty(from.base).is_some() {
        return Err(format!("the copy of `{}` converts", k.values[from.base].name).into());
    }
    fits_unconverted(k, facts, target, from, buffer, attrs)
}

/// [`fits`], as if the buffer had elements of the tensor's type.
pub(crate) fn fits_unconverted(
    k: &Kernel,
    facts: &Facts,
    target: Target,
    from: &ResolvedView,
    buffer: Value,
    attrs: &CopyAttrs,
) -> Result<(), Refused> {
    let name = &k.values[from.base].name;
    let Some(tensor) = k.tensor_ty(from.base) else { return Err("it does not copy from a tensor".into()) };
    if !target.has_tensor_copies() {
        return Err(format!("{} has no TMA copies", target.name()).into());
    }
    let shape = k.tile_ty(buffer).and_then(|t| k.const_shape(&t.shape));
    let (Some(shape), Some(elem)) = (shape, elem_of(k, from.base)) else {
        return Err("its types are not known".into());
    };
    if attrs.fill.is_some() {
        return Err(
            format!("the copy of `{name}` fills elements outside the bounds with another number than zero").into()
        );
    }
    if attrs.when.is_some() || attrs.reduce.is_some() || attrs.keep || attrs.is_prefetch() || attrs.is_asynchronous() {
        return Err(format!("the copy of `{name}` has attributes").into());
    }
    if attrs.vec.is_some() || attrs.unaligned().is_some() || attrs.threads.is_some() || attrs.is_matrix() {
        return Err(Refused::by_request(format!("how threads copy `{name}` is written")));
    }
    if tensor.pointers
        || tensor.shape.len() > MAX_TENSOR_RANK
        || tensor.padded.is_empty() && (0..tensor.shape.len()).any(|d| tensor.modes(d).is_some())
    {
        return Err(format!(
            "`{name}` has several addresses, more than {MAX_TENSOR_RANK} dimensions, or one of several modes"
        )
        .into());
    }
    if !tensor.repeats.is_empty() {
        return Err(format!("`{name}` repeats along a dimension that the host does not know").into());
    }
    if from.is_gathered() {
        return Err(format!("the copy of `{name}` gathers rows: TMA copies boxes of a tensor").into());
    }
    own_end(k, from).map_err(|why| format!("the window of `{name}` {why}"))?;
    if from.transposed {
        return Err(format!("`{name}` is transposed").into());
    }
    in_order(k, from, buffer, &shape)?;
    if !tensor.padded.is_empty() {
        wide(k, facts, from, &shape)?;
        pixels(k, facts, from, buffer, &shape)?;
    } else if !boxed(k, facts, from) {
        wide(k, facts, from, &shape)?;
    }
    let contiguous = contiguous_dim(k, from.base).and_then(|dim| from.base_dims().iter().position(|&d| d == dim));
    match contiguous.and_then(|d| panels(&shape, d, elem.size(), false)) {
        Some(_) => Ok(()),
        None => Err(short_rows(k, from, buffer, (&shape, contiguous)).unwrap_or_else(|| {
            format!("`{name}`'s tile has several panels of rows whose number is not a multiple of 8").into()
        })),
    }
}

/// Checks that a buffer has the order of the window that is copied to it. Without a written order it takes that.
pub(crate) fn in_order(k: &Kernel, from: &ResolvedView, buffer: Value, shape: &[u64]) -> Result<(), Refused> {
    let Some(tile) = k.tile_ty(buffer) else { return Ok(()) };
    let written = tile.order.is_some() || tile.smem_layout.is_some();
    let is_line = shape.iter().filter(|&&n| n > 1).count() <= 1;
    if !written || is_line || smem_contiguous(k, buffer) == window_contiguous_dim(k, from) {
        return Ok(());
    }
    let (name, of) = (&k.values[from.base].name, &k.values[buffer].name);
    let why = format!("the copy transposes `{name}`: `{of}` is written in the other order");
    Err(Refused::from(why).help(&format!("leave the order of `{of}` out: it takes that of the tensor")))
}

/// That the rows of a tile are too short for the layouts which asynchronous copies fill, and how they would be long enough.
pub(crate) fn short_rows(
    k: &Kernel,
    from: &ResolvedView,
    buffer: Value,
    (shape, along): (&[u64], Option<usize>),
) -> Option<Refused> {
    let (tensor, elem, along) = (k.tensor_ty(from.base)?, elem_of(k, buffer)?.size(), along?);
    let long = |d: usize| hardware::rows(shape[d], elem, false).is_some();
    if long(along) {
        return None;
    }
    let name = &k.values[from.base].name;
    let least = (1..).map(|log2| 1u64 << log2).find(|&n| hardware::rows(n, elem, false).is_some())?;
    let has = shape[along];
    let mut help = format!("tiles with {least} elements along dimension {along} of `{name}`, not {has}");
    // A matrix may be stored in the other order; no instruction reduces so few elements in any.
    if let ([_, _], [_, _]) = (shape, tensor.shape.as_slice())
        && long(1 - along)
        && !is_reduced(k, buffer, along)
    {
        help.push_str(&format!("; or `{name}` in the order `{}`", if along == 0 { "row" } else { "col" }));
    }
    Some(Refused::from(format!("rows of `{name}`'s tile are shorter than 32 bytes")).help(&help))
}

/// Whether a product reduces a dimension of a buffer.
fn is_reduced(k: &Kernel, buffer: Value, dim: usize) -> bool {
    let reduces = |e: Expr, own: usize| {
        resolve_view(k, e).is_some_and(|view| view.base == buffer && dim == if view.transposed { 1 - own } else { own })
    };
    k.statement_data().any(|s| match *s {
        StmtData::Assign { src, .. } => {
            matches!(&k.exprs[src], ExprData::Mma(mma) if reduces(mma.a, 1) || reduces(mma.b, 0))
        }
        _ => false,
    })
}

/// Whether a window consists of boxes of a tensor, wherever the tensor ends: the host can encode its tensor map, and
/// boxes begin at multiples of 16 bytes. Otherwise TMA stops the kernel (`CUDA_ERROR_ILLEGAL_INSTRUCTION`).
pub(crate) fn boxed(k: &Kernel, facts: &Facts, from: &ResolvedView) -> bool {
    let (Some(elem), Some(_)) = (elem_of(k, from.base), contiguous_dim(k, from.base)) else { return false };
    elem.bits() >= 8 && begins_inside_group(k, facts, from).is_none() && no_descriptor(k, facts, from.base).is_none()
}

/// Checks that a window of a padded tensor consists of pixels and channels, as im2col mode requires. The error says why
/// not.
fn pixels(k: &Kernel, facts: &Facts, from: &ResolvedView, buffer: Value, shape: &[u64]) -> Result<(), Refused> {
    let name = &k.values[from.base].name;
    let of = im2col(k, from.base).map_err(|why| format!("`{name}` is padded, and {why}"))?;
    if from.transposed
        || from.base_dims().len() != 2
        || ![of.window, of.pixels].iter().all(|d| from.base_dims().contains(d))
    {
        return Err(format!("a window of `{name}`, which is padded, is not of pixels and channels").into());
    }
    // A box has the channels of one pixel offset of the window.
    let elem = known_elem(k, buffer).size();
    let layout = k.tile_ty(buffer).and_then(|t| t.smem_layout.clone());
    let channel = from.base_dims().iter().position(|&d| d == of.window);
    let layout = layout.or_else(|| panels(shape, channel?, elem, false));
    let channels = layout.and_then(|l| hardware::boxes(&l, shape, elem)).and_then(|b| b.extents.first().copied());
    let Some(channels) = channels else { return Ok(()) };
    let starts = from.dims[of.window].starts();
    let begins = starts.iter().all(|&e| facts.is_multiple(k, e, channels));
    let modes = k.tensor_ty(from.base).and_then(|t| t.modes(of.window));
    let innermost = modes.and_then(|modes| modes.last()).map(|m| m.extent);
    match innermost {
        Some(e) if begins && facts.is_multiple(k, e, channels) => Ok(()),
        Some(e) => {
            let text = print_expr(k, e);
            let why = format!(
                "`{text}` is not known to be a multiple of {channels}, so a tile may have several pixels in a row"
            );
            Err(Refused::from(why).missing(&format!("{text} % {channels} == 0")))
        }
        // With a single pixel offset, the whole dimension is channels.
        None if begins => Ok(()),
        None => Err(format!("the window of `{name}` begins within a group of {channels} channels").into()),
    }
}

/// Checks that a window of a tensor consists of pieces of 16 bytes. The error says why not.
pub(crate) fn wide(k: &Kernel, facts: &Facts, from: &ResolvedView, shape: &[u64]) -> Result<(), Refused> {
    let name = &k.values[from.base].name;
    if from.transposed {
        return Err(format!("`{name}` is transposed").into());
    }
    let width = global_width(k, facts, from, shape);
    let full = known_elem(k, from.base).per(MAX_ACCESS_BYTES);
    if width.elems < full { Err(Refused::from(width.why).missing(&width.missing)) } else { Ok(()) }
}

/// Bytes of a buffer; without a layout yet, in panels as TMA fills them.
pub(crate) fn slot_bytes(k: &Kernel, v: Value) -> u64 {
    let (shape, elem) = (tile_shape(k, v), known_elem(k, v).size());
    let panels = || smem_contiguous(k, v).and_then(|d| panels(&shape, d, elem, false));
    let layout = k.tile_ty(v).and_then(|tile| tile.smem_layout.clone()).or_else(panels);
    hardware::tile_bytes(layout.as_ref(), &shape, elem)
}

/// Why a box would begin inside of a group of 16 bytes of a row, which stops the kernel
/// (`CUDA_ERROR_ILLEGAL_INSTRUCTION`); `None`: it does not.
pub(crate) fn begins_inside_group(k: &Kernel, facts: &Facts, window: &ResolvedView) -> Option<String> {
    let full = u64::from(known_elem(k, window.base).per(MAX_ACCESS_BYTES));
    let starts = contiguous_dim(k, window.base).map(|d| window.dims[d].starts())?;
    let odd = starts.iter().copied().find(|&e| !facts.divisor(k, e).is_multiple_of(full))?;
    let (name, at) = (&k.values[window.base].name, print_expr(k, odd));
    Some(format!(
        "the window of `{name}` begins at `{at}` along its rows, which is not known to be a multiple of {full}, 16 bytes"
    ))
}

/// Why the host cannot encode a tensor map of a tensor, and the precondition that would help, if any.
pub(crate) fn no_descriptor(k: &Kernel, facts: &Facts, tensor: Value) -> Option<(String, String)> {
    let name = &k.values[tensor].name;
    let elem = elem_of(k, tensor)?;
    let full = u64::from(elem.per(MAX_ACCESS_BYTES));
    let Some(contiguous) = contiguous_dim(k, tensor) else {
        return Some((format!("no dimension of `{name}` has stride 1"), String::new()));
    };
    let ty = k.tensor_ty(tensor)?;
    if !facts.divisor(k, ty.shape[contiguous]).is_multiple_of(u64::from(elem.per(1))) {
        return Some((format!("rows of `{name}`, whose elements share bytes, may end inside of one"), String::new()));
    }
    if let Some(align) = ty.align.filter(|&a| a < MAX_ACCESS_BYTES) {
        return Some((format!("`{name}` is declared with `align {align}`"), String::new()));
    }
    let lacks = |text: String| {
        let why = format!("`{text}` is not known to be a multiple of {full}, which makes 16 bytes");
        (why, format!("{text} % {full} == 0"))
    };
    (0..ty.shape.len()).filter(|&d| d != contiguous).find_map(|d| match strides(k, tensor, d) {
        Some(steps) => steps.into_iter().find_map(|step| match step {
            Stride::Const(n) if !n.unsigned_abs().is_multiple_of(full) => {
                Some((format!("dimension {d} of `{name}` has stride {n}"), String::new()))
            }
            Stride::Value(v) if !facts.divisor_of_value(k, v).is_multiple_of(full) => {
                Some(lacks(k.values[v].name.clone()))
            }
            Stride::Computed(e) if !facts.divisor(k, e).is_multiple_of(full) => {
                Some((lacks(print_expr(k, e)).0, String::new()))
            }
            _ => None,
        }),
        None => Some((format!("the strides of `{name}` are not known"), String::new())),
    })
}
