//! Warp-level instructions for a product, and the tiles that they fit.

use crate::Cx;
use crate::analysis::wgmma::is_rows;
use tilec_ir::atoms::{Atom, AtomRow, Inputs};
use tilec_ir::bits::Bits;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Span};
use tilec_ir::target::{Target, WARP};
use tilec_ir::types::Elem;

/// Whether operand tiles that are not contiguous along the reduction are transposed on their way to shared memory.
pub(crate) fn transposes(row: &AtomRow, elem: Elem) -> bool {
    row.sums() && elem.bits() == 8
}

/// Depth of a fragment along the reduction. `along`: the element size of each operand that is contiguous along the
/// reduction.
pub(crate) fn slice_depth(row: &AtomRow, along: [Option<Bits>; 2], k_extent: u64) -> u64 {
    let natural = u64::from(row.k);
    let wide = |elem: Option<Bits>| match elem {
        None => natural,
        Some(elem) if row.sums() => u64::from(elem.per(16)).max(natural),
        // Scalar products hold slices in registers: a depth of two keeps them few.
        Some(_) => 2,
    };
    along.map(wide).into_iter().max().unwrap_or(natural).min(k_extent)
}

/// The best instruction for a product with a warp tile of `wm x wn` and a reduction of `k_extent`; without
/// `tensor_cores` scalar multiply-add.
pub(crate) fn best_atom(
    target: Target,
    tensor_cores: bool,
    (inputs, acc): (Inputs, Elem),
    (wm, wn, k_extent): (u64, u64, u64),
) -> Option<Atom> {
    Atom::all().find(|atom| {
        let row = atom.row();
        let there = !row.asynchronous()
            && target.at_least(row.first)
            && (!row.sums() || tensor_cores && target.cc() <= row.last_native_cc);
        there && row.types_for(inputs, acc).is_some() && fits(*atom, (wm, wn, k_extent))
    })
}

/// Rows and columns of the smallest tile that contains such a tile and that a product of the target computes, on tensor
/// cores if they have these types; `None`: there is no such product, or there is one for the tile itself.
pub(crate) fn least_tile(
    target: Target,
    types: (Inputs, Elem),
    (rows, columns, depth): (u64, u64, u64),
) -> Option<(u64, u64)> {
    let depth = depth.checked_next_power_of_two()?;
    let own = (rows.checked_next_power_of_two()?, columns.checked_next_power_of_two()?);
    let able = Atom::all().map(Atom::row).filter(|row| {
        let there = !row.asynchronous() && target.at_least(row.first) && depth >= 1 << row.log2_shape.2;
        there && (!row.sums() || target.cc() <= row.last_native_cc) && row.types_for(types.0, types.1).is_some()
    });
    // Without tensor cores products are not transposed.
    let tiles = able.flat_map(|row| {
        let (m, n, _) = row.log2_shape;
        let transposed = row.tensor_core.then_some((1u64 << n, 1u64 << m));
        [Some((1 << m, 1 << n)), transposed].map(|tile| (row.tensor_core, tile))
    });
    let larger = tiles.filter_map(|(cores, tile)| tile.map(|(m, n)| (!cores, own.0.max(m), own.1.max(n))));
    let (_, m, n) = larger.min_by_key(|&(scalar, m, n)| (scalar, m.saturating_mul(n)))?;
    let side = |all: u64, own: u64, least: u64| if own < least { least } else { all };
    Some((side(rows, own.0, m), side(columns, own.1, n))).filter(|&least| least != (rows, columns))
}

/// Whether only the transposed product of a warp tile is one of tensor cores.
pub(crate) fn transposed_on_cores(target: Target, types: (Inputs, Elem), tile: (u64, u64, u64)) -> bool {
    let on_cores = |tile| best_atom(target, true, types, tile).is_some_and(|atom| atom.row().tensor_core);
    !on_cores(tile) && on_cores(transposed(tile))
}

/// The warp tile of the transposed product.
pub(crate) fn transposed((wm, wn, depth): (u64, u64, u64)) -> (u64, u64, u64) {
    (wn, wm, depth)
}

/// Whether a warp tile is at least as large as the instruction.
pub(crate) fn fits(atom: Atom, (wm, wn, depth): (u64, u64, u64)) -> bool {
    let (m, n, k) = atom.row().log2_shape;
    wm >= 1 << m && wn >= 1 << n && depth >= 1 << k
}

/// The instruction for a warp tile. `explained`: adds to the error if there is none.
pub(crate) fn choose_atom(
    cx: &mut Cx<'_>,
    span: Span,
    (inputs, acc): (Inputs, Elem),
    (wm, wn, k_extent): (u64, u64, u64),
    explained: impl FnOnce(Diagnostic) -> Diagnostic,
) -> Result<Atom, Reported> {
    let target = cx.options.target;
    let best = best_atom(target, cx.enabled, (inputs, acc), (wm, wn, k_extent));
    if let Some(atom) = best.filter(|atom| atom.row().tensor_core) {
        return Ok(atom);
    }
    if let Some(atom) = best {
        if cx.enabled {
            let message = format!(
                "no tensor-core product of {} has {inputs} inputs with {} accumulation in a {wm}x{wn}x{k_extent} warp tile: {}",
                target.name(),
                acc.name(),
                if atom.row().sums() { "scalar sums of four products" } else { "scalar multiply-add" }
            );
            if !matches!(inputs.a, Elem::F32 | Elem::F64) {
                cx.warn(Diagnostic::warning(codes::SCALAR_PRODUCT, span, message).with_note(available(target)));
            } else {
                cx.remark(span, message);
            }
        }
        return Ok(atom);
    }
    Err(cx.report(explained(
        Diagnostic::error(
            codes::NO_ATOM,
            span,
            format!(
                "no product of {inputs} inputs with {} accumulation for a {wm}x{wn}x{k_extent} warp tile on {}",
                acc.name(),
                target.name()
            ),
        )
        .with_note(larger_tile(target, inputs, acc).unwrap_or_else(|| way_out(target, inputs, acc))),
    )))
}

/// The rows of the atom table that a target has natively.
fn native(target: Target) -> impl Iterator<Item = &'static AtomRow> {
    Atom::all().map(Atom::row).filter(move |r| target.at_least(r.first) && target.cc() <= r.last_native_cc)
}

/// The smallest tiles of a target's products of these types, if it has any: then the extents are the reason.
fn larger_tile(target: Target, inputs: Inputs, acc: Elem) -> Option<String> {
    let smallest = |tensor_core: bool| {
        let able = native(target).filter(|r| r.tensor_core == tensor_core && r.types_for(inputs, acc).is_some());
        let (m, n, k) = able.map(|r| r.log2_shape).min_by_key(|&(m, n, k)| (m + n + k, m))?;
        Some(format!("{}x{}x{}", 1 << m, 1 << n, 1 << k))
    };
    let tiles = match (smallest(true), smallest(false)) {
        (Some(cores), Some(scalar)) => format!("{cores} on tensor cores and {scalar} without"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => return None,
    };
    Some(format!(
        "the smallest tile of these types is {tiles} (rows x columns x depth); write a larger one: what is beyond the end of a tensor reads as zero and is not stored"
    ))
}

/// What to do about a product that a target does not have: conversions of both inputs that it has, or its products.
fn way_out(target: Target, inputs: Inputs, acc: Elem) -> String {
    let has =
        |elem: Elem| native(target).any(|r| r.tensor_core && r.types_for(Inputs { a: elem, b: elem }, acc).is_some());
    let narrow = |elem: Elem| elem.is_float() && elem.bits() <= 8;
    let wider = [Elem::F16, Elem::BF16].into_iter().find(|&elem| has(elem));
    match wider.filter(|_| narrow(inputs.a) || narrow(inputs.b)) {
        Some(elem) => {
            let name = elem.name();
            let first = Target::ALL.iter().find(|t| {
                let rows = Atom::all().map(Atom::row).filter(|r| t.at_least(r.first) && r.tensor_core);
                rows.into_iter().any(|r| r.types_for(inputs, acc).is_some())
            });
            let later = first.map_or_else(String::new, |t| format!("; {} and later have it", t.name()));
            format!("convert the inputs, `cast<{name}>(..)`: all numbers of {inputs} are exact in {name}{later}")
        }
        None => available(target),
    }
}

/// The tensor-core products that a target has natively for these types and a warp tile of `wm x wn`, with any depth.
pub(crate) fn tensor_cores(
    target: Target,
    inputs: Inputs,
    acc: Elem,
    (wm, wn): (u64, u64),
) -> impl Iterator<Item = Atom> {
    Atom::all().filter(move |atom| {
        let row = atom.row();
        let (m, n, _) = row.log2_shape;
        let native =
            !row.asynchronous() && target.at_least(row.first) && target.cc() <= row.last_native_cc && row.tensor_core;
        native && row.types_for(inputs, acc).is_some() && wm >= 1 << m && wn >= 1 << n
    })
}

/// The products of a target from the atom table, as text.
pub(crate) fn available(target: Target) -> String {
    let list: Vec<String> = native(target)
        .map(|r| {
            let (m, n, k) = r.log2_shape;
            let types: Vec<String> = r.types.iter().map(|t| format!("{}→{}", t.inputs, t.acc.name())).collect();
            format!("{} ({}; warp tiles from {}x{}x{})", r.name, types.join(", "), 1 << m, 1 << n, 1 << k)
        })
        .collect();
    format!("{} has {}", target.name(), list.join("; "))
}

/// Whether an extent `b` of a block tile divides into extents `w` of warps, or of warpgroups.
pub(crate) fn divides(w: u64, b: u64, warpgroups: bool) -> bool {
    let shared_out = b.is_power_of_two() || warpgroups && is_rows(b);
    w > 0 && (w == b || w.is_power_of_two() && shared_out && b.is_multiple_of(w))
}

/// Registers of a thread for the accumulator of a warp tile.
pub(crate) fn accumulator_registers(wm: u64, wn: u64, acc: Bits) -> u64 {
    acc.bytes_of(wm.saturating_mul(wn) / u64::from(WARP)) / 4
}
