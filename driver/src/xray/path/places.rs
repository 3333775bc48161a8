//! Where elements lie: in a tensor, and in a tile after the last pass.

use super::super::registers::held;
use super::super::threads::ThreadGroup;
use super::split;
use super::windows::Numbers;
use tilec_ir::bits::Bits;
use tilec_ir::diag::counted;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::facts::{Stride, contiguous_dim, strides};
use tilec_ir::kernel::{Kernel, StmtData, ValueDef};
use tilec_ir::layout::SmemLayout;
use tilec_ir::print::print_expr;
use tilec_ir::target::SECTOR_BYTES;
use tilec_ir::types::{Elem, ElemRef, Scratch};
use tilec_ir::typing::resolve_view;

/// Banks of shared memory, and bytes of each.
const BANKS: u64 = tilec_ir::layout::access::BANKS;
const BANK_BYTES: u64 = tilec_ir::layout::access::BANK_BYTES;
/// Byte and sector of an element of a tensor, in words: along the dimension in which its memory is contiguous. Empty: its type is not known.
/// `sizes`: the values of sizes, as far as they are known.
pub(super) fn in_tensor(k: &Kernel, v: Value, coords: &[u64], sizes: &Numbers) -> String {
    let Some(elem) = elem_of(k, v) else { return String::new() };
    if let Some(place) = split::in_memory(k, v, (elem.size(), coords), sizes) {
        return place;
    }
    let Some(along) = contiguous_dim(k, v).filter(|&d| d < coords.len()) else {
        return "; its neighbours in memory are a stride away along every dimension".to_owned();
    };
    let all: Option<Vec<u64>> = (0..coords.len()).map(|d| fixed_stride(k, v, d)).collect();
    // Where every stride is a number, so is the distance from the first element.
    if let Some(all) = all {
        let index = all.iter().zip(coords).map(|(stride, c)| stride * c).sum();
        return format!("; {} of the tensor: sector {}", byte(elem, index), sector(elem, index));
    }
    let line = match (coords.len(), along) {
        (1, _) => "the tensor".to_owned(),
        (rank, d) if d + 1 == rank => "its row".to_owned(),
        (rank, d) if d + 2 == rank => "its column".to_owned(),
        (_, d) => format!("its line along dimension {d}"),
    };
    let index = coords[along];
    let first = if coords.len() == 1 { "" } else { ", if that begins with one" };
    format!("; {} of {line}: sector {} of {SECTOR_BYTES} bytes{first}", byte(elem, index), sector(elem, index))
}

/// The same, where memory names the coordinates along the dimensions in `named`.
pub(super) fn in_named_rows(k: &Kernel, v: Value, coords: &[u64], named: &[usize]) -> String {
    let Some(elem) = elem_of(k, v) else { return String::new() };
    let Some(along) = contiguous_dim(k, v).filter(|&d| d < coords.len()) else {
        return "; its neighbours in memory are a stride away along every dimension".to_owned();
    };
    if named.contains(&along) {
        return format!(
            "; memory names the elements along the contiguous dimension: each access uses {} of a sector of {SECTOR_BYTES} bytes",
            counted(elem.bytes_of(1).max(1) as usize, "byte")
        );
    }
    let (byte, sector) = (byte(elem, coords[along]), sector(elem, coords[along]));
    format!("; {byte} of that row: sector {sector} of {SECTOR_BYTES} bytes, if that begins with one")
}

fn fixed_stride(k: &Kernel, v: Value, d: usize) -> Option<u64> {
    match strides(k, v, d)?[..] {
        [Stride::Const(n)] => u64::try_from(n).ok(),
        _ => None,
    }
}

fn sector(elem: Elem, index: u64) -> u64 {
    elem.size().byte_with(index) / u64::from(SECTOR_BYTES)
}

/// `byte 10`; of elements that share one `byte 2, bits 4 to 7`.
fn byte(elem: Elem, index: u64) -> String {
    format!("byte {}{}", elem.size().byte_with(index), bits(elem.size(), index))
}

/// The bits of its byte that an element has, if these are not all: those with lower numbers have the lower bits.
fn bits(size: Bits, index: u64) -> String {
    match u64::from(size.get()) {
        own if own < 8 => {
            let from = index * own % 8;
            format!(", bits {from} to {}", from + own - 1)
        }
        _ => String::new(),
    }
}

/// The memory by which blocks pass partial sums of a tile to one another, if they do.
fn passed_through(k: &Kernel, tile: Value) -> Option<(&str, &'static str)> {
    k.statement_data().find_map(|s| {
        let StmtData::Copy { src, dst, .. } = s else { return None };
        let from = resolve_view(k, *src).filter(|from| from.base == tile);
        let to = resolve_view(k, *dst).filter(|_| from.is_some())?;
        let memory = match k.tensor_ty(to.base)?.scratch? {
            Scratch::Cluster => "distributed shared memory",
            _ => "scratch memory",
        };
        Some((k.values[to.base].name.as_str(), memory))
    })
}

/// Position of an element of a tile after the last pass: its registers, or its address in shared memory. `None`: there is no such tile, or it has no layout.
pub(super) fn in_tile(k: &Kernel, v: Value, coords: &[u64], team: &ThreadGroup) -> Option<(&'static str, String)> {
    let shape = k.const_shape(shape_of(k, v)).filter(|shape| shape.len() == coords.len())?;
    let tile = k.tile_ty(v)?;
    let elem = elem_of(k, v)?;
    if let Some(layout) = &tile.reg_layout {
        let passed = passed_through(k, v).map_or(String::new(), |(name, memory)| {
            format!("; blocks share the reduction, and pass partial sums through `{name}` ({memory}) to the one that stores the result")
        });
        let held = held(team, layout, elem, &shape, coords);
        return Some(("registers", held + &passed));
    }
    if let Some(layout) = &tile.smem_layout {
        let index = layout.offset(coords);
        let byte = elem.size().byte_with(index);
        let plain = layout
            .to_cute()
            .filter(|(swizzle, _)| swizzle.is_some())
            .and_then(|(_, cute)| SmemLayout::from_cute(None, &cute).ok())
            .map(|plain| elem.size().byte_with(plain.offset(coords)))
            .filter(|&plain| plain != byte);
        let moved = plain.map_or(String::new(), |plain| format!(" ({plain} without the swizzle)"));
        let slots = match &k.values[v].def {
            ValueDef::Channel { slots, .. } => format!(" of each of {} slots", print_expr(k, *slots)),
            _ => String::new(),
        };
        let bank = k.shared_places[v].map_or(byte, |p| p.offset + byte) / BANK_BYTES % BANKS;
        let first = if slots.is_empty() { "" } else { ", in slot 0" };
        let base = k.shared_places[v]
            .map_or(String::new(), |p| format!("; byte {} of the block's shared memory{first}", p.offset + byte));
        let own = if slots.is_empty() { " of the tile" } else { "" };
        let bits = bits(elem.size(), index);
        return Some(("shared memory", format!("byte {byte}{bits}{own}{slots}{moved}, bank {bank}{base}")));
    }
    None
}

/// The extents of a tensor or a tile.
pub(super) fn shape_of(k: &Kernel, v: Value) -> &[Expr] {
    match &k.values[v].def {
        ValueDef::Tensor(t) => &t.shape,
        ValueDef::Var(t) | ValueDef::Smem(t) | ValueDef::Channel { tile: t, .. } => &t.shape,
        _ => &[],
    }
}

/// Whether a name is an alias of a window.
pub(super) fn is_alias(k: &Kernel, v: Value) -> bool {
    matches!(k.values[v].def, ValueDef::Let) && k.let_init(v).is_some_and(|init| resolve_view(k, init).is_some())
}

/// Its element type, if that is known.
pub(super) fn elem_of(k: &Kernel, v: Value) -> Option<Elem> {
    match k.values[v].def.elem()? {
        ElemRef::Known(elem) => Some(elem),
        ElemRef::Param(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_lie_along_the_contiguous_dimension() {
        let source = "kernel t(A: gmem f16[M, N], B: gmem f16[M, N] col, C: gmem i4[M, N], D: gmem f32[M], E: gmem f32[16, 8] strides (8, 1),
            F: gmem f32[M, N] strides (N * 2, 2), G: gmem f16[O, M, N] col) grid (b: 4) {}";
        let module = tilec_ir::parser::parse(source, &mut tilec_ir::diag::Sink::new()).expect("it parses");
        let k = &module.kernels[0];
        let of = |name: &str, coords: &[u64]| {
            in_tensor(
                k,
                k.values.keys().find(|&v| k.values[v].name == name).expect("a tensor"),
                coords,
                &Numbers::new(),
            )
        };
        assert_eq!(of("A", &[3, 37]), "; byte 74 of its row: sector 2 of 32 bytes, if that begins with one");
        assert_eq!(of("B", &[3, 37]), "; byte 6 of its column: sector 0 of 32 bytes, if that begins with one");
        assert_eq!(of("G", &[9, 3, 37]), "; byte 6 of its column: sector 0 of 32 bytes, if that begins with one");
        assert_eq!(
            of("C", &[3, 69]),
            "; byte 34, bits 4 to 7 of its row: sector 1 of 32 bytes, if that begins with one"
        );
        assert_eq!(of("D", &[9]), "; byte 36 of the tensor: sector 1");
        assert_eq!(of("E", &[3, 5]), "; byte 116 of the tensor: sector 3");
        assert_eq!(of("F", &[3, 5]), "; its neighbours in memory are a stride away along every dimension");
    }
}
