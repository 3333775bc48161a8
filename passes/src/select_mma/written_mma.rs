//! Products with a written instruction (`mma<fma>(a, b, acc)`) whose operands are not in registers yet.

use super::tiles::{Owners, TileMisfit};
use super::{Atom, Cx};
use crate::select_mma::atoms::available;
use crate::select_mma::operands::scheduled_tile;
use tilec_ir::atoms::Inputs;
use tilec_ir::bits::Bits;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Span};
use tilec_ir::fix_locations::FixLocation;
use tilec_ir::kernel::Kernel;
use tilec_ir::target::MAX_THREADS;
use tilec_ir::types::Elem;

/// Refuses a written instruction that is not legal for the target, the types or the warp tile (`wm x wn x k_extent`).
pub(super) fn check(
    k: &Kernel,
    cx: &mut Cx<'_>,
    span: Span,
    atom: Atom,
    (inputs, acc): (Inputs, Elem),
    (wm, wn, k_extent): (u64, u64, u64),
) -> Result<Atom, Reported> {
    let (row, target) = (atom.row(), cx.options.target);
    let (m, n, kk) = row.log2_shape;
    exists(k, cx, span, (atom, true))?;
    let why = if row.types_for(inputs, acc).is_none() {
        format!("`{}` has no {inputs} inputs with {} accumulation", row.name, acc.name())
    } else if wm < 1 << m || wn < 1 << n || k_extent < 1 << kk {
        format!("`{}` does not fit a {wm}x{wn} warp tile and a reduction of {k_extent}", row.name)
    } else {
        return Ok(atom);
    };
    Err(cx.report(refused(k, span, why).with_note(available(target))))
}

/// Refuses a written instruction that the target does not have. `span`: the product; `alone`: no layout is written for
/// the instruction.
pub(super) fn exists(k: &Kernel, cx: &mut Cx<'_>, span: Span, (atom, alone): (Atom, bool)) -> Result<(), Reported> {
    let (row, target) = (atom.row(), cx.options.target);
    if target.at_least(row.first) {
        return Ok(());
    }
    let why = format!("`{}` needs {} or later, the target is {}", row.name, row.first.name(), target.name());
    let d = if alone { refused(k, span, why) } else { Diagnostic::error(codes::NO_ATOM, span, why) };
    Err(cx.report(d.with_note(available(target))))
}

/// The error, with the way out to remove the instruction.
fn refused(k: &Kernel, span: Span, why: String) -> Diagnostic {
    Diagnostic::error(codes::NO_ATOM, span, why).with_left_out(k.spot(span, FixLocation::Atom))
}

/// The tile of a warpgroup: as scheduled, else of 64 rows and columns; sets the thread count.
pub(super) fn warp_tile(
    k: &mut Kernel,
    cx: &mut Cx<'_>,
    (bm, bn): (u64, u64),
    acc: Bits,
    span: Span,
) -> Result<(u64, u64), Reported> {
    let mut refuse = |at: Span, message: String, note: &str| {
        Err(cx.report(Diagnostic::error(codes::WARP_TILE, at, message).with_note(note)))
    };
    let (wm, wn) = match scheduled_tile(k) {
        Some(Some(tile)) => tile,
        Some(None) => return refuse(span, "the warp tile is not constant".to_owned(), "give it numbers"),
        None => (bm.min(64), bn.min(64)),
    };
    let threads = k.schedule.threads.and_then(|e| k.as_int(e));
    // An invalid thread count matches no tile.
    let written = threads.map(|t| u64::try_from(t).unwrap_or(0));
    let needed = match Owners::Warpgroups.fit((bm, bn), (wm, wn), acc, written) {
        Ok(needed) => needed,
        Err(TileMisfit::Divides) => {
            let at = k.schedule.warp_tile.map_or(span, |(m, n)| k.expr_spans[m].to(k.expr_spans[n]));
            let note = "both extents must be powers of two and at most those of the accumulator";
            return refuse(at, format!("warp tile {wm}x{wn} does not divide the {bm}x{bn} accumulator"), note);
        }
        Err(TileMisfit::Registers(registers)) => {
            let message = format!("a {wm}x{wn} warp tile needs {registers} accumulator registers per thread");
            return refuse(span, message, "a thread has 255 registers; use more warps (a smaller `warp_tile`)");
        }
        Err(TileMisfit::TooMany(needed)) => {
            let message =
                format!("{bm}x{bn} in {wm}x{wn} warp tiles needs {needed} threads, a block has at most {MAX_THREADS}");
            return refuse(span, message, "enlarge `warp_tile`");
        }
        Err(TileMisfit::Threads(needed)) => {
            let t = threads.expect("threads are written");
            let message = format!("{bm}x{bn} in {wm}x{wn} warp tiles takes {needed} threads, the schedule says {t}");
            return refuse(span, message, "remove `threads` or change `warp_tile`");
        }
    };
    if threads.is_none() {
        k.schedule.threads = Some(k.int(needed as i64, span));
    }
    if k.schedule.warp_tile.is_none() {
        k.schedule.warp_tile = Some((k.int(wm as i64, span), k.int(wn as i64, span)));
    }
    Ok((wm, wn))
}
