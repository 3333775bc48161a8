//! Addresses in words: which element of which tensor, which byte of which shared tile.

use super::memory::Memory;
use crate::compile::report_json::Tile;
use crate::run::bind::{ADDRESS_BYTES, TensorPlan};
use crate::run::simulate::report_context::ReportContext;
use tilec_sim::{BLOCKS_APART, Program};

/// Distance of global allocations (a power of two); see the simulator's memory.
const APART: u64 = 1 << 36;

/// Text for an address inside a tensor that belongs to no element.
pub(super) const IN_A_GAP: &str = "in a gap between elements";

/// A byte of a part of a tensor, counted from the part's element 0, in words. All of an ordinary tensor is its part 0.
pub(super) fn in_tensor(plan: &TensorPlan, part: u64, byte: i64) -> String {
    let name = if plan.pointers {
        let rest = vec![".."; plan.modes.len().saturating_sub(1)].join(", ");
        format!("{}[{part}, {rest}]", plan.name)
    } else {
        plan.name.clone()
    };
    let Ok(at) = u64::try_from(byte) else {
        return format!("{} bytes in front of `{name}`, {}", byte.unsigned_abs(), shape(plan));
    };
    let bytes = plan.elem.bytes_of(plan.part_span());
    // The first of the elements that share the byte.
    let size = u64::from(plan.elem.bits());
    let (number, inside) = (at * 8 / size, at * 8 % size != 0);
    let mut order: Vec<usize> = (usize::from(plan.pointers)..plan.shape.len()).collect();
    order.sort_by_key(|&d| std::cmp::Reverse(plan.strides[d]));
    let mut index = vec![0; plan.shape.len()];
    if plan.pointers {
        index[0] = part;
    }
    let mut left = 0;
    if !find(plan, &order, number, &mut index, &mut 1000) {
        // Greedily, from the largest stride on: mostly the element in front.
        left = number;
        for d in order {
            index[d] = left.checked_div(plan.strides[d]).unwrap_or(0).min(plan.shape[d].saturating_sub(1));
            left -= index[d] * plan.strides[d];
        }
    }
    let element = format!("`{}[{}]`", plan.name, plan.grouped(&index));
    match left {
        0 if !inside => format!("{element} of {}", shape(plan)),
        0 => format!("inside {element} of {}", shape(plan)),
        _ if at < bytes => {
            let plural = if left == 1 { "" } else { "s" };
            format!("{left} element{plural} after {element}, {IN_A_GAP} of {}", shape(plan))
        }
        _ if at == bytes => format!("right after the end of `{name}`, {}", shape(plan)),
        _ => format!("{} bytes after the end of `{name}`, {}", at - bytes, shape(plan)),
    }
}

/// A byte of the array of a tensor's addresses, counted from its first, in words.
fn in_table(plan: &TensorPlan, byte: i64) -> String {
    let (name, parts) = (&plan.name, plan.parts());
    match u64::try_from(byte).map(|at| at / ADDRESS_BYTES) {
        Ok(i) if i < parts => format!("address {i} of the {parts} in the array `{name}`, {}", shape(plan)),
        Ok(_) => format!("after the end of the {parts} addresses of the array `{name}`, {}", shape(plan)),
        Err(_) => format!("in front of the {parts} addresses of the array `{name}`, {}", shape(plan)),
    }
}

/// Finds the index of an offset, going through the dimensions in this order, that of falling strides; where elements overlap,
/// the one whose first of these are largest. Gives up when `tries` is used up.
fn find(plan: &TensorPlan, order: &[usize], offset: u64, index: &mut [u64], tries: &mut u32) -> bool {
    let Some((&d, rest)) = order.split_first() else { return offset == 0 };
    let reach = |d: &usize| plan.shape[*d].saturating_sub(1).saturating_mul(plan.strides[*d]);
    let inner = rest.iter().map(reach).fold(0u64, u64::saturating_add);
    let mut digit = offset.checked_div(plan.strides[d]).unwrap_or(0).min(plan.shape[d].saturating_sub(1));
    loop {
        let left = offset - digit * plan.strides[d];
        if left > inner || *tries == 0 {
            return false;
        }
        *tries -= 1;
        index[d] = digit;
        if find(plan, rest, left, index, tries) {
            return true;
        }
        match digit.checked_sub(1) {
            Some(next) if plan.strides[d] > 0 => digit = next,
            _ => return false,
        }
    }
}

/// `f16 [520, 136]`, with strides unless the tensor is packed.
pub(super) fn shape(plan: &TensorPlan) -> String {
    let pointers = if plan.pointers { " by pointers" } else { "" };
    let mut packed = vec![1; plan.shape.len()];
    for d in (1..plan.shape.len()).rev() {
        packed[d - 1] = packed[d] * plan.shape[d];
    }
    let strides =
        if packed == plan.strides { String::new() } else { format!(" with strides [{}]", plan.grouped(&plan.strides)) };
    format!("{} [{}]{strides}{pointers}", plan.elem.name(), plan.grouped(&plan.shape))
}

/// A global address: the tensor whose allocation contains it, the part of it (`None`: the array of addresses), and the
/// byte offset there.
fn place<'a>(scene: &ReportContext<'a>, memory: &Memory, address: u64) -> Option<(&'a TensorPlan, Option<u64>, i64)> {
    let areas = scene.bound.tensors.iter().zip(&memory.tensors).flat_map(|(plan, placed)| {
        let parts = placed.parts.iter().zip(0u64..).map(move |(start, part)| (plan, Some(part), *start));
        parts.chain(placed.table.iter().map(move |start| (plan, None, *start)))
    });
    let (plan, part, start) = areas.min_by_key(|(.., start)| start.abs_diff(address))?;
    if start.abs_diff(address) > APART / 2 {
        return None;
    }
    Some((plan, part, i64::try_from(i128::from(address) - i128::from(start)).ok()?))
}

/// A global address in words: of a tensor, or of a variable of the PTX.
pub(super) fn global(scene: &ReportContext<'_>, memory: &Memory, program: &Program, address: u64) -> Option<String> {
    match place(scene, memory, address) {
        Some((plan, Some(part), byte)) => Some(in_tensor(plan, part, byte)),
        Some((plan, None, byte)) => Some(in_table(plan, byte)),
        None => program.global_variable(address).map(|(name, bytes, at)| in_variable(name, bytes, at)),
    }
}

/// The text before the name of a PTX variable in messages.
pub(super) const OF_VARIABLE: &str = "the variable `";

/// A byte in or near a variable of `bytes` bytes.
fn in_variable(name: &str, bytes: u64, at: i64) -> String {
    match u64::try_from(at) {
        Err(_) => format!("{} bytes in front of {OF_VARIABLE}{name}`, {bytes} bytes", at.unsigned_abs()),
        Ok(at) if at < bytes => format!("byte {at} of {OF_VARIABLE}{name}`, {bytes} bytes"),
        Ok(at) if at == bytes => format!("right after the end of {OF_VARIABLE}{name}`, {bytes} bytes"),
        Ok(at) => format!("{} bytes after the end of {OF_VARIABLE}{name}`, {bytes} bytes", at - bytes),
    }
}

/// The name of the tensor that has an element at a global address.
pub(super) fn tensor<'a>(scene: &ReportContext<'a>, memory: &Memory, address: u64) -> Option<&'a str> {
    place(scene, memory, address).filter(|(_, part, _)| part.is_some()).map(|(plan, ..)| plan.name.as_str())
}

/// A shared address: the tile of the compiler that covers it, else the variable of the PTX; in a cluster also whose.
pub(super) fn shared(scene: &ReportContext<'_>, program: Option<&Program>, address: u64) -> Option<String> {
    if scene.contract.cluster.iter().product::<u32>() <= 1 {
        return of_block(scene, program, address);
    }
    let (rank, address) = (address / BLOCKS_APART, address % BLOCKS_APART);
    of_block(scene, program, address).map(|what| format!("{what} in block {rank} of the cluster"))
}

fn of_block(scene: &ReportContext<'_>, program: Option<&Program>, address: u64) -> Option<String> {
    let tiles: Vec<String> = scene
        .origin
        .tiles
        .get(scene.at)
        .into_iter()
        .flat_map(|tiles| tiles.iter())
        .filter_map(|t| in_tile(t, address))
        .collect();
    if !tiles.is_empty() {
        return Some(tiles.join(", or "));
    }
    let (name, byte) = program?.shared_variable(&scene.contract.entry, address)?;
    Some(format!("byte {byte} of `{name}`"))
}

fn in_tile(tile: &Tile, address: u64) -> Option<String> {
    let from = address.checked_sub(tile.offset)?;
    let slot = from.checked_div(tile.stride).unwrap_or(0);
    let byte = from - slot * tile.stride;
    if slot >= tile.slots || byte >= tile.bytes {
        return None;
    }
    Some(match tile.slots {
        1 => format!("byte {byte} of tile `{}`", tile.name),
        n => format!("byte {byte} of slot {slot} (of {n}) of `{}`", tile.name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Access;
    use tilec_ir::types::Elem;

    fn plan(shape: [u64; 2], strides: [u64; 2]) -> TensorPlan {
        let span = (shape[0] - 1) * strides[0] + (shape[1] - 1) * strides[1] + 1;
        TensorPlan {
            reads_gaps: false,
            name: "A".to_owned(),
            elem: Elem::F16,
            access: Access::Read,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            modes: vec![1, 1],
            span,
            pointers: false,
        }
    }

    #[test]
    fn bytes_become_elements_gaps_and_surroundings() {
        let packed = plan([4, 6], [6, 1]);
        assert_eq!(in_tensor(&packed, 0, 2 * (3 * 6 + 5)), "`A[3, 5]` of f16 [4, 6]");
        assert_eq!(in_tensor(&packed, 0, 3), "inside `A[0, 1]` of f16 [4, 6]");
        assert_eq!(in_tensor(&packed, 0, 48), "right after the end of `A`, f16 [4, 6]");
        assert_eq!(in_tensor(&packed, 0, 50), "2 bytes after the end of `A`, f16 [4, 6]");
        assert_eq!(in_tensor(&packed, 0, -16), "16 bytes in front of `A`, f16 [4, 6]");
        let by_columns = plan([4, 6], [1, 4]);
        assert_eq!(in_tensor(&by_columns, 0, 2 * (3 + 5 * 4)), "`A[3, 5]` of f16 [4, 6] with strides [1, 4]");
        let padded = plan([4, 6], [8, 1]);
        let gap = "2 elements after `A[1, 5]`, in a gap between elements of f16 [4, 6] with strides [8, 1]";
        assert_eq!(in_tensor(&padded, 0, 2 * (8 + 7)), gap);
        let broadcast = plan([4, 6], [0, 1]);
        assert_eq!(in_tensor(&broadcast, 0, 10), "`A[0, 5]` of f16 [4, 6] with strides [0, 1]");
    }

    #[test]
    fn parts_of_an_array_of_pointers_have_an_index() {
        let one = plan([4, 6], [8, 1]);
        let (shape, strides, modes) = (vec![3, 4, 6], vec![30, 8, 1], vec![1; 3]);
        let array = TensorPlan { shape, strides, modes, span: 90, pointers: true, ..one };
        let what = "f16 [3, 4, 6] with strides [30, 8, 1] by pointers";
        assert_eq!(in_tensor(&array, 2, 2 * (3 * 8 + 5)), format!("`A[2, 3, 5]` of {what}"));
        assert_eq!(in_tensor(&array, 1, 60), format!("right after the end of `A[1, .., ..]`, {what}"));
        assert_eq!(in_tensor(&array, 0, -4), format!("4 bytes in front of `A[0, .., ..]`, {what}"));
        assert_eq!(in_table(&array, 17), format!("address 2 of the 3 in the array `A`, {what}"));
        assert_eq!(in_table(&array, 24), format!("after the end of the 3 addresses of the array `A`, {what}"));
    }

    #[test]
    fn overlapping_elements_are_found() {
        // Windows of 3 of an image of 2 x 5, by rows of 4 positions of stride 1: 0 1 2, 1 2 3, ..
        let windows = TensorPlan {
            shape: vec![2, 3, 3],
            strides: vec![5, 1, 1],
            modes: vec![2, 1],
            span: 10,
            ..plan([1, 1], [1, 1])
        };
        let of = "of f16 [(2, 3), 3] with strides [(5, 1), 1]";
        assert_eq!(in_tensor(&windows, 0, 2 * 4), format!("`A[(0, 2), 2]` {of}"));
        assert_eq!(in_tensor(&windows, 0, 2 * 6), format!("`A[(1, 1), 0]` {of}"));
        // Strides that are no multiples of each other.
        let odd = TensorPlan { shape: vec![3, 3], strides: vec![5, 3], span: 17, ..plan([1, 1], [1, 1]) };
        assert_eq!(in_tensor(&odd, 0, 2 * 6), "`A[0, 2]` of f16 [3, 3] with strides [5, 3]");
    }

    #[test]
    fn slots_of_rings_are_told_apart() {
        let tile = Tile { name: "a".to_owned(), offset: 1024, bytes: 512, slots: 3, stride: 2048 };
        assert_eq!(in_tile(&tile, 1024 + 2048 + 7).as_deref(), Some("byte 7 of slot 1 (of 3) of `a`"));
        for outside in [1023, 1024 + 512, 1024 + 3 * 2048] {
            assert_eq!(in_tile(&tile, outside), None, "{outside}");
        }
        let buffer = Tile { slots: 1, stride: 512, ..tile };
        assert_eq!(in_tile(&buffer, 1030).as_deref(), Some("byte 6 of tile `a`"));
    }
}
