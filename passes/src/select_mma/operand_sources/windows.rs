//! Windows of buffers that wgmma reads where they are.
//!
//! A descriptor has the address of a first element, so an operand may begin inside of a buffer: where a period of the
//! swizzle begins across its rows, and along the rows with an instruction's depth, or a panel if the instruction reads it transposed.

use crate::analysis::access_width::known_elem;
use crate::analysis::contiguous_dim::smem_contiguous;
use crate::analysis::wgmma::{COLUMNS, DEPTH_BYTES};
use crate::refusal::Refused;
use tilec_ir::kernel::{Kernel, Mma};
use tilec_ir::layout::extent_bits;
use tilec_ir::layout::hardware::{PERIOD, descriptor, panels, rows};
use tilec_ir::typing::{operand_shape, resolve_view};

/// Checks that wgmma reads an operand of a product, which is a window of a buffer, from where it is.
pub(in crate::select_mma) fn readable(k: &Kernel, mma: &Mma, second: bool) -> Result<(), Refused> {
    let e = if second { mma.b } else { mma.a };
    let view = resolve_view(k, e).expect("bug: a window of a buffer is not one");
    let name = &k.values[view.base].name;
    let shape = operand_shape(k, mma, second).ok_or("the extents of the product are not known")?;
    let Some(start) = view.constant_start(k, &shape) else {
        let why = format!("the window of `{name}` that is an operand is not at a constant place inside of it");
        return Err(Refused::from(why).help("copy the operand into a separate buffer"));
    };
    let whole = k.tile_ty(view.base).and_then(|tile| k.const_shape(&tile.shape)).expect("bug: a buffer has no extents");
    let elem = known_elem(k, view.base).size();
    let contiguous = smem_contiguous(k, view.base).unwrap_or(whole.len() - 1);
    // In the order of the buffer's dimensions.
    let along = usize::from(second == view.transposed);
    let extents = if view.transposed { [shape[1], shape[0]] } else { shape };
    let (lines, depth) = (extents[1 - along].min(COLUMNS), u64::from(elem.per(DEPTH_BYTES)));
    let layout = panels(&whole, contiguous, elem, false);
    let read = layout.and_then(|layout| {
        let d = descriptor(&layout, elem, (1 - along, extent_bits(lines)), (along, depth.ilog2()))?;
        let window = ([extents[1 - along], extents[along]], [lines, depth]);
        d.reads_window(&layout, elem, along, [start[0], start[1]], window).then_some(())
    });
    read.ok_or_else(|| {
        let panel = rows(whole[contiguous], elem, false).map_or(PERIOD, |x| u64::from(elem.per(x.row_bytes() as u32)));
        let inner = if contiguous == along { depth } else { panel };
        let why = format!(
            "the window of `{name}` begins at {} x {}: wgmma reads one that begins at a multiple of {inner} elements along dimension {contiguous}, and of {PERIOD} along the other",
            start[0], start[1]
        );
        Refused::from(why).help("copy the operand into a separate buffer")
    })
}
