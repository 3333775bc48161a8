//! Shared memory by banks: where a tile lies, and which lanes of an access meet in a bank.

use super::lines::{self, ACROSS, PIECE};
use super::picture::{Picture, Room};
use super::svg::{Anchor, BAD, Svg, TINTS};
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::kernel::{Kernel, ValueDef};
use tilec_ir::layout::access::{BANK_BYTES, BANKS, phase_lane_bits};
use tilec_ir::types::{ElemRef, TileTy};
use tilec_ptx::report::SharedReport;

/// Bytes of all banks.
const ROW: u64 = lines::LINE;
/// Rows of memory that a picture of a tile has.
const ROWS: u64 = 8;
/// Size of a bank in a picture.
const CELL: (f64, f64) = (26.0, 20.0);
const MARGIN: (f64, f64) = (74.0, 56.0);

/// What a phase of an access touches: of each bank the words, and the lanes of each.
type Touched = BTreeMap<u64, BTreeMap<u64, Vec<u32>>>;

/// The words of the lanes of a phase, by bank; word: its number in shared memory.
fn touched(lanes: &[u64], phase: u32, bytes: u32) -> Touched {
    let per_phase = 1u32 << phase_lane_bits(bytes);
    let mut out = Touched::new();
    for lane in phase * per_phase..(phase + 1) * per_phase {
        let at = lanes.iter().enumerate().filter(|(bit, _)| lane >> bit & 1 == 1).fold(0, |at, (_, col)| at ^ col);
        // Addresses are aligned to the access.
        let first = at / u64::from(bytes.max(1)) * u64::from(bytes.max(1));
        for word in first / BANK_BYTES..=(first + u64::from(bytes.max(1)) - 1) / BANK_BYTES {
            out.entry(word % BANKS).or_default().entry(word).or_default().push(lane);
        }
    }
    out
}

/// The phases of an access, a picture each, and how many wavefronts each takes.
fn phases(access: &SharedReport) -> Vec<(Svg, usize)> {
    let count = 1u32 << (5 - phase_lane_bits(access.access_bytes));
    (0..count).map(|phase| one_phase(access, phase, count)).collect()
}

fn one_phase(access: &SharedReport, phase: u32, count: u32) -> (Svg, usize) {
    let touched = touched(&access.lanes, phase, access.access_bytes);
    let rows: BTreeSet<u64> = touched.values().flat_map(|words| words.keys().map(|w| w / BANKS)).collect();
    let waves = touched.values().map(BTreeMap::len).max().unwrap_or(1);
    let per_phase = 1u32 << phase_lane_bits(access.access_bytes);
    let what = if access.store { "store to" } else { "load from" };
    let title = format!(
        "{} bytes a thread, a {what} {}: phase {} of {count}, lanes {} to {}: {waves} wavefront{}",
        access.access_bytes,
        access.buffer,
        phase + 1,
        phase * per_phase,
        (phase + 1) * per_phase - 1,
        if waves == 1 { "" } else { "s, because words of one bank are served one after the other" }
    );
    let height = MARGIN.1 + rows.len() as f64 * CELL.1 + 10.0;
    let mut svg = Svg::new(MARGIN.0 + BANKS as f64 * CELL.0 + 8.0, height, &title);
    svg.colored(MARGIN.0 - 6.0, MARGIN.1 - 8.0, Anchor::End, "#555555", "bank");
    svg.rect((MARGIN.0, MARGIN.1), (BANKS as f64 * CELL.0, rows.len() as f64 * CELL.1), "#ffffff");
    for bank in 0..BANKS {
        let x = MARGIN.0 + bank as f64 * CELL.0;
        svg.colored(x + CELL.0 / 2.0, MARGIN.1 - 8.0, Anchor::Middle, "#555555", &bank.to_string());
        for (i, row) in rows.iter().enumerate() {
            let y = MARGIN.1 + i as f64 * CELL.1;
            let words = touched.get(&bank);
            let lanes = words.and_then(|w| w.get(&(row * BANKS + bank)));
            let conflict = words.is_some_and(|w| w.len() > 1);
            if let Some(lanes) = lanes {
                let fill = if conflict { BAD } else { TINTS[lanes[0] as usize % TINTS.len()] };
                svg.rect((x, y), CELL, fill);
                let (color, sign) = if conflict { ("#ffffff", "!") } else { ("#1a1a1a", "") };
                let more = if lanes.len() > 1 { "+" } else { "" };
                svg.colored(x + CELL.0 / 2.0, y + 14.0, Anchor::Middle, color, &format!("{}{more}{sign}", lanes[0]));
            }
        }
    }
    for (i, row) in rows.iter().enumerate() {
        let y = MARGIN.1 + i as f64 * CELL.1 + 14.0;
        svg.colored(MARGIN.0 - 6.0, y, Anchor::End, "#555555", &format!("+{}", row * ROW));
    }
    (svg, waves)
}

/// Pictures of the accesses to shared memory, and of the tiles there.
pub(super) fn pictures(kernel: &Kernel, accesses: &[SharedReport], prefix: &str) -> Vec<Picture> {
    let mut out = Vec::new();
    for value in kernel.values.values() {
        let (ValueDef::Smem(tile) | ValueDef::Channel { tile, .. }) = &value.def else { continue };
        if let Some((title, svg)) = tile_picture(kernel, &value.name, tile) {
            let name = format!("{prefix}smem-{}", value.name);
            out.push(Picture { title, span: value.span, ..Picture::new(Room::Memory, name, svg) });
        }
    }
    let mut seen: Vec<(&str, bool, u32, &[u64])> = Vec::new();
    for a in accesses {
        let key = (a.buffer.as_str(), a.store, a.access_bytes, &a.lanes[..]);
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let kind = if a.store { "store" } else { "load" };
        let number = seen.iter().filter(|s| s.0 == a.buffer && s.1 == a.store).count();
        let number = if number > 1 { format!("-{number}") } else { String::new() };
        let all = phases(a);
        let conflicts = all.iter().map(|(_, waves)| waves - 1).sum::<usize>();
        let bad =
            if conflicts > 0 { format!(", {conflicts} wavefronts more than its width needs") } else { String::new() };
        let title = format!(
            "{kind} of {} bytes a thread at {}, numbers are lanes of a warp: {} wavefronts{bad}",
            a.access_bytes, a.buffer, a.wavefronts
        );
        let mut frames: Vec<String> = all.into_iter().map(|(svg, _)| svg.done()).collect();
        let first = if frames.len() == 1 { frames.remove(0) } else { String::new() };
        let name = format!("{prefix}banks-{}-{kind}{number}", a.buffer);
        out.push(Picture { title, frames, span: a.span, ..Picture::new(Room::Memory, name, first) });
    }
    out
}

/// Which elements lie in which banks, for the first rows of memory.
fn tile_picture(kernel: &Kernel, name: &str, tile: &TileTy) -> Option<(String, String)> {
    let layout = tile.smem_layout.as_ref()?;
    let ElemRef::Known(elem) = tile.elem else { return None };
    let shape = kernel.const_shape(&tile.shape)?;
    let mut pieces: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let count: u64 = shape.iter().product();
    for n in 0..count {
        // The last dimension varies first.
        let mut rest = n;
        let mut coords: Vec<u64> = shape
            .iter()
            .rev()
            .map(|&e| {
                let c = rest % e;
                rest /= e;
                c
            })
            .collect();
        coords.reverse();
        let byte = elem.bytes_of(layout.offset(&coords));
        if byte < ROWS * ROW && byte % PIECE == 0 {
            pieces.entry(byte).or_insert(coords);
        }
    }
    let dims: Vec<String> = shape.iter().map(u64::to_string).collect();
    let title = format!(
        "{name}, {}[{}], in shared memory: a row is the 32 banks, a cell 16 bytes, named by the element that it begins with",
        elem.name(),
        dims.join(", ")
    );
    let wide = 104.0;
    let mut svg = Svg::new(MARGIN.0 + ACROSS as f64 * wide + 8.0, MARGIN.1 + ROWS as f64 * lines::HIGH + 10.0, &title);
    let drawn = pieces.into_iter().map(|(byte, coords)| {
        // The same colour: the same columns, so that a swizzle shows.
        let natural = coords.last().map_or(0, |c| elem.bytes_of(*c) / PIECE % ACROSS);
        let text: Vec<String> = coords.iter().map(u64::to_string).collect();
        let fill = TINTS[natural as usize % TINTS.len()];
        (byte, lines::Piece { fill, text: format!("[{}]", text.join(", ")) })
    });
    let rows: Vec<u64> = (0..ROWS).map(|row| row * ROW).collect();
    lines::draw(&mut svg, MARGIN, wide, &rows, &drawn.collect());
    Some((title, svg.done()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilec_ir::diag::Span;
    use tilec_ir::layout::wavefronts_by_rank;

    fn access(lanes: Vec<u64>, bytes: u32) -> SharedReport {
        let w = wavefronts_by_rank(&lanes, bytes);
        SharedReport {
            span: Span::default(),
            buffer: "a".to_owned(),
            store: false,
            access_bytes: bytes,
            ideal_wavefronts: w.phases,
            wavefronts: w.wavefronts,
            lanes,
            in_loop: true,
        }
    }

    /// The pictures count what the rank says: rows of 128 bytes read down a column meet in one bank, swizzled they do not.
    #[test]
    fn phases_show_the_wavefronts_that_the_report_counts() {
        let down = access(vec![128, 256, 512, 1024, 2048], 16);
        let swizzled = access(vec![128 ^ 16, 256 ^ 32, 512 ^ 64, 1024, 2048], 16);
        let along = access(vec![4, 8, 16, 32, 64], 4);
        for (a, phases_of, conflicts) in [(&down, 4, true), (&swizzled, 4, false), (&along, 1, false)] {
            let all = phases(a);
            assert_eq!(all.len(), phases_of);
            let sum: usize = all.iter().map(|(_, waves)| waves).sum();
            assert_eq!(sum, a.wavefronts as usize);
            let red = all.into_iter().any(|(svg, _)| svg.done().contains(BAD));
            assert_eq!(red, conflicts);
        }
    }
}
