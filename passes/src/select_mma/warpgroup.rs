//! The `wgmma` instruction: its shape, types and registers.

use crate::Options;
use crate::analysis::wgmma::ROWS;
pub(crate) use crate::analysis::wgmma::THREE;
use crate::refusal::Refused;
use crate::registers::overhead::ACCUMULATORS;
use crate::roles::{consumer_registers, registers_at_start};
use crate::select_mma::atoms::fits;
use crate::select_mma::operands::known;
use tilec_ir::atoms::{Atom, Inputs, Unit};
use tilec_ir::entities::Value;
use tilec_ir::kernel::{Kernel, Mma};
use tilec_ir::target::{MAX_THREADS, Target, WARP, WARPGROUP};
use tilec_ir::types::Elem;

/// The instruction for these input and sum types, with any tile.
pub(crate) fn atom(target: Target, (inputs, acc): (Inputs, Elem)) -> Option<Atom> {
    Atom::all().find(|a| {
        let row = a.row();
        row.asynchronous() && target.at_least(row.first) && row.types_for(inputs, acc).is_some()
    })
}

/// Whether the instruction reads operands in both orders: contiguous along the reduction or along the other dimension.
pub(crate) fn reads_both_orders(input: Elem) -> bool {
    input.bits() == 16
}

/// Whether the instruction's A may come from registers, for sources of any order: threads read whole elements of a
/// buffer, and several elements of less than 32 bits in a register would come from different rows.
pub(crate) fn reads_registers(input: Elem) -> bool {
    input.bits() == 32
}

/// How a wgmma product is computed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct WgmmaForm {
    /// Whether it is transposed.
    pub(crate) swap: bool,
    /// Whether the instruction's A comes from registers: then this operand is A, transposed or not.
    pub(crate) registers: bool,
}

/// Default depth of sums before promotion.
pub(crate) const PROMOTE: u64 = 128;

/// The depth of sums by `atom` in the tensor core before promotion (`scheduled`: in the schedule); `None`: no
/// promotion. f16 sums have fewer bits than the instruction keeps, so promotion would gain nothing.
pub(crate) fn promoted(atom: Atom, acc: Elem, scheduled: Option<u64>) -> Option<u64> {
    atom.row().short_sums.filter(|_| acc == Elem::F32)?;
    Some(scheduled.unwrap_or(PROMOTE)).filter(|&depth| depth > 0)
}

/// [`promoted`] with the depth in the schedule of a specialised kernel.
pub(crate) fn promoted_of(k: &Kernel, atom: Atom, acc: Elem) -> Option<u64> {
    promoted(atom, acc, k.schedule.promote.and_then(|e| k.as_int(e)).and_then(|n| u64::try_from(n).ok()))
}

/// Whether the instruction can compute a tile in whole rows and columns, and a thread has registers for the sums.
pub(crate) fn works(atom: Atom, (wm, wn): (u64, u64), swap: bool, registers: u64) -> bool {
    let (rows, cols) = if swap { (wn, wm) } else { (wm, wn) };
    let whole = matches!(atom.row().unit, Unit::Warpgroup(_));
    let extents = rows.is_power_of_two() && atom.row().has_columns(cols);
    whole && extents && fits(atom, (rows, cols, u64::from(atom.row().k))) && registers <= ACCUMULATORS
}

/// Registers of a thread for the sums of `wm x wn`, and for A with depth `depth` if it comes from registers.
pub(crate) fn tiles_of(
    atom: Atom,
    ((wm, wn), depth): ((u64, u64), u64),
    way: WgmmaForm,
    (acc, sums): (Elem, u64),
) -> u64 {
    let lanes = 32u64 << atom.row().unit.warp_bits();
    let input = atom.row().types.first().map_or(Elem::F32.size(), |t| t.inputs.size());
    let rows = if way.swap { wn } else { wm };
    let fragment = if way.registers { input.bytes_of(rows * depth) } else { 0 };
    (acc.bytes_of(sums * wm * wn) + fragment) / lanes / 4
}

/// Warps of a block whose warpgroups compute `wm x wn` each.
fn warps((bm, bn): (u64, u64), (wm, wn): (u64, u64)) -> u32 {
    warps_of(bm / wm.max(1) * (bn / wn.max(1)))
}

/// Warps of this number of warpgroups.
fn warps_of(groups: u64) -> u32 {
    let warps = groups.saturating_mul(u64::from(WARPGROUP));
    u32::try_from(warps).unwrap_or(MAX_THREADS).min(MAX_THREADS / WARP)
}

/// Registers of a thread in a block whose warpgroups compute `wm x wn` each.
pub(crate) fn room(k: &Kernel, block: (u64, u64), tile: (u64, u64)) -> Option<u64> {
    u64::try_from(consumer_registers(k, warps(block, tile))).ok()
}

/// Registers that the assembler needs for an instruction in addition to its sums and to A in registers (ptxas 12.9 and
/// 13.0; else it fails with C7602).
const INSTRUCTION: u64 = 26;
const LEFT: u64 = 4;

/// Checks that a thread has enough registers for an instruction at the start of the block; registers that it gets later
/// do not count. `Err`: the required and the available number.
pub(crate) fn assembles(
    k: &Kernel,
    groups: u64,
    tile: (u64, u64),
    way: WgmmaForm,
    acc: Elem,
) -> Result<(), (u64, u64)> {
    let cols = if way.swap { tile.0 } else { tile.1 };
    let sums = acc.bytes_of(ROWS * cols) / u64::from(WARPGROUP * WARP) / 4;
    let wanted = sums + INSTRUCTION + if way.registers { LEFT } else { 0 };
    let has = u64::try_from(registers_at_start(k, warps_of(groups))).unwrap_or(0);
    if wanted <= has { Ok(()) } else { Err((wanted, has)) }
}

/// The element type of an accumulator.
pub(crate) fn acc_elem(k: &Kernel, acc: Value) -> Option<Elem> {
    known(k.tile_ty(acc).map(|t| t.elem))
}

/// The instruction for a product, if the target has one and no other is written.
pub(super) fn instruction(options: &Options, mma: &Mma, types: (Inputs, Elem)) -> Result<Atom, Refused> {
    let none = || format!("{} has none for these types", options.target.name());
    let atom = atom(options.target, types).ok_or_else(none)?;
    match mma.atom {
        Some(written) if written != atom => Err(Refused::by_request("another instruction is written")),
        _ => Ok(atom),
    }
}
