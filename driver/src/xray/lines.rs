//! Lines of shared memory: pieces of 16 bytes by banks.

use super::svg::{Anchor, INK, Svg};
use std::collections::BTreeMap;
use tilec_ir::layout::access::BANK_BYTES;
pub(super) use tilec_ir::layout::access::BANKS;

/// Bytes of all banks.
pub(super) const LINE: u64 = BANKS * BANK_BYTES;
/// Bytes of a piece: what a lane moves at most, and what an exchange moves as a whole.
pub(super) const PIECE: u64 = 16;
/// Pieces of a line.
pub(super) const ACROSS: u64 = LINE / PIECE;
/// Height of a line.
pub(super) const HIGH: f64 = 20.0;
/// Width of a piece that has room for words above it.
const ROOMY: f64 = 64.0;
/// Text next to a picture.
pub(super) const DIM: &str = "#555555";

/// A piece as it is drawn.
pub(super) struct Piece {
    pub(super) fill: &'static str,
    pub(super) text: String,
}

/// Draws lines of memory, each from a multiple of [`LINE`]; `pieces` by their first byte. The banks are above, the bytes in front.
pub(super) fn draw(svg: &mut Svg, (left, top): (f64, f64), wide: f64, lines: &[u64], pieces: &BTreeMap<u64, Piece>) {
    svg.colored(left - 6.0, top - 8.0, Anchor::End, DIM, "banks");
    for piece in 0..ACROSS {
        let to = if wide < ROOMY { "-" } else { " to " };
        let banks = format!("{}{to}{}", piece * PIECE / BANK_BYTES, (piece + 1) * PIECE / BANK_BYTES - 1);
        svg.colored(left + (piece as f64 + 0.5) * wide, top - 8.0, Anchor::Middle, DIM, &banks);
    }
    for (i, &line) in lines.iter().enumerate() {
        let y = top + i as f64 * HIGH;
        svg.colored(left - 6.0, y + 14.0, Anchor::End, DIM, &format!("+{line}"));
        svg.rect((left, y), (ACROSS as f64 * wide, HIGH), "#ffffff");
    }
    // Of one colour after the other: a shape each.
    let shown = lines
        .iter()
        .zip(0..)
        .flat_map(|(&line, i)| pieces.range(line..line + LINE).map(move |(b, p)| (i, b - line, p)));
    let mut shown: Vec<(u64, u64, &Piece)> = shown.collect();
    shown.sort_by_key(|&(_, _, p)| p.fill);
    for (i, byte, p) in shown {
        let (x, y) = (left + (byte / PIECE) as f64 * wide, top + i as f64 * HIGH);
        svg.rect((x, y), (wide, HIGH), p.fill);
        svg.colored(x + wide / 2.0, y + 14.0, Anchor::Middle, INK, &p.text);
    }
}
