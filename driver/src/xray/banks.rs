//! Shared memory by banks: the addresses of a tile, and which lanes of an access conflict.

use super::lines::{self, ACROSS, DIM, PIECE};
use super::picture::{Picture, Room};
use super::svg::{Anchor, BAD, INK, Key, Svg, TINTS};
use crate::compile::attribution;
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::diag::counted;
use tilec_ir::kernel::{Kernel, ValueDef};
use tilec_ir::layout::SmemLayout;
use tilec_ir::layout::access::{BANK_BYTES, BANKS, phase_lane_bits};
use tilec_ir::types::{Elem, ElemRef, TileTy};
use tilec_ptx::report::SharedReport;

/// Bytes of all banks.
const ROW: u64 = lines::LINE;
/// Rows of memory that a picture of a tile has at most.
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
    let what = if access.store { "stores to" } else { "loads from" };
    let title = format!(
        "Banks of shared memory while a warp {what} {}, {} bytes a thread: phase {} of {count}, lanes {} to {}, {}",
        access.buffer,
        access.access_bytes,
        phase + 1,
        phase * per_phase,
        (phase + 1) * per_phase - 1,
        counted(waves, "wavefront")
    );
    let height = MARGIN.1 + rows.len() as f64 * CELL.1 + 10.0;
    let mut svg = Svg::new(MARGIN.0 + BANKS as f64 * CELL.0 + 8.0, height, &title);
    svg.colored(MARGIN.0 - 6.0, MARGIN.1 - 8.0, Anchor::End, DIM, "bank");
    svg.rect((MARGIN.0, MARGIN.1), (BANKS as f64 * CELL.0, rows.len() as f64 * CELL.1), "#ffffff");
    let (mut shared, mut conflicts) = (false, false);
    for bank in 0..BANKS {
        let x = MARGIN.0 + bank as f64 * CELL.0;
        svg.colored(x + CELL.0 / 2.0, MARGIN.1 - 8.0, Anchor::Middle, DIM, &bank.to_string());
        for (i, row) in rows.iter().enumerate() {
            let y = MARGIN.1 + i as f64 * CELL.1;
            let words = touched.get(&bank);
            let lanes = words.and_then(|w| w.get(&(row * BANKS + bank)));
            let conflict = words.is_some_and(|w| w.len() > 1);
            if let Some(lanes) = lanes {
                let fill = if conflict { BAD } else { TINTS[lanes[0] as usize % TINTS.len()] };
                svg.rect((x, y), CELL, fill);
                let (color, sign) = if conflict { ("#ffffff", "!") } else { (INK, "") };
                let more = if lanes.len() > 1 { "+" } else { "" };
                (shared, conflicts) = (shared || lanes.len() > 1, conflicts || conflict);
                svg.colored(x + CELL.0 / 2.0, y + 14.0, Anchor::Middle, color, &format!("{}{more}{sign}", lanes[0]));
            }
        }
    }
    for (i, row) in rows.iter().enumerate() {
        let y = MARGIN.1 + i as f64 * CELL.1 + 14.0;
        svg.colored(MARGIN.0 - 6.0, y, Anchor::End, DIM, &format!("+{}", row * ROW));
    }
    svg.key(
        Key::Cell(TINTS[0]),
        "a word of 4 bytes; the number is the lane that moves it, and a lane's words have one tint",
    );
    if shared {
        svg.key(Key::Text("5+"), "several lanes move the word, the first of which is lane 5");
    }
    if conflicts {
        svg.key(Key::Cell(BAD), "with `!`: a bank that several words are wanted of. It serves a word a wavefront");
    }
    svg.note("A column is a bank, a row the 128 bytes of all banks; +128: bytes from where lane 0 begins. Rows that nobody touches are left out.");
    if count > 1 {
        let part = format!(
            "The hardware serves {per_phase} lanes of {} bytes at a time: a phase, which takes a wavefront where no bank is wanted twice.",
            access.access_bytes
        );
        svg.note(part);
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
    for a in accesses.iter().filter(|a| !a.by_index) {
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
            "Banks of shared memory while a warp {} {}, {} bytes a thread: {}{bad}",
            if a.store { "stores to" } else { "loads from" },
            a.buffer,
            a.access_bytes,
            counted(a.wavefronts as usize, "wavefront")
        );
        let divided = attribution::divided(kernel, a);
        let done = |mut svg: Svg| {
            divided.iter().for_each(|text| svg.note(text));
            svg.done()
        };
        let mut frames: Vec<String> = all.into_iter().map(|(svg, _)| done(svg)).collect();
        let first = if frames.len() == 1 { frames.remove(0) } else { String::new() };
        let name = format!("{prefix}banks-{}-{kind}{number}", a.buffer);
        out.push(Picture { title, frames, span: a.span, ..Picture::new(Room::Memory, name, first) });
    }
    out
}

/// Which elements are in which banks, for the first rows of memory.
fn tile_picture(kernel: &Kernel, name: &str, tile: &TileTy) -> Option<(String, String)> {
    let layout = tile.smem_layout.as_ref()?;
    let ElemRef::Known(elem) = tile.elem else { return None };
    let shape = kernel.const_shape(&tile.shape)?;
    let all = elem.bytes_of(layout.dims().iter().product());
    let rows = drawn_rows(layout, elem, all);
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
        let place = layout.offset(&coords);
        let byte = elem.size().byte_with(place);
        if elem.size().makes_up(place, PIECE) && rows.contains(&(byte / ROW * ROW)) {
            pieces.entry(byte).or_insert(coords);
        }
    }
    let dims: Vec<String> = shape.iter().map(u64::to_string).collect();
    let title = format!("Where elements of {name}, {}[{}], lie in shared memory", elem.name(), dims.join(", "));
    let wide = 104.0;
    let height = MARGIN.1 + rows.len() as f64 * lines::HIGH + 10.0;
    let mut svg = Svg::new(MARGIN.0 + ACROSS as f64 * wide + 8.0, height, &title);
    // Of each tint the elements along the last dimension that have it.
    let mut tints: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    let each = (0..).take_while(|&n| elem.size().byte_with(n) < PIECE).count() as u64;
    let drawn = pieces.into_iter().map(|(byte, coords)| {
        // The same colour: the same columns, so that a swizzle shows.
        let last = coords.last().copied().unwrap_or(0);
        let tint = elem.size().byte_with(last) / PIECE % ACROSS;
        tints.entry(tint).or_default().insert(last);
        let text: Vec<String> = coords.iter().map(u64::to_string).collect();
        let fill = TINTS[tint as usize % TINTS.len()];
        (byte, lines::Piece { fill, text: format!("[{}]", text.join(", ")) })
    });
    lines::draw(&mut svg, MARGIN, wide, &rows, &drawn.collect());
    let last = shape.len().saturating_sub(1);
    let along = if tile.smem_layout.as_ref().is_some_and(|l| in_pieces(l, last, each)) { each } else { 1 };
    for (tint, starts) in &tints {
        let few: Vec<String> = starts
            .iter()
            .take(3)
            .map(|&n| match along {
                1 => n.to_string(),
                _ => format!("{n} to {}", n + along - 1),
            })
            .collect();
        let more = if starts.len() > few.len() { ", .." } else { "" };
        svg.key(Key::Cell(TINTS[*tint as usize % TINTS.len()]), format!("column {}{more}", few.join(", ")));
    }
    svg.note(format!("A cell is 16 bytes, {}, named by the coordinates of the first. A row of cells is the 128 bytes of all 32 banks; +128: bytes from where the tile begins.", counted(each as usize, "element")));
    svg.note(formula(layout, elem));
    if rows.iter().zip(0..).any(|(&row, i)| row != i * ROW) {
        svg.note("Rows are those where the swizzle changes; the rows between are as the one in front of them.");
    }
    Some((title, svg.done()))
}

/// Whether elements along a dimension follow one another in pieces of as many.
fn in_pieces(layout: &SmemLayout, dim: usize, count: u64) -> bool {
    let cols = layout.dim_cols(dim);
    (0..count.trailing_zeros() as usize).all(|bit| cols.get(bit).is_none_or(|&c| c == 1 << bit))
}

/// The bytes of memory that are drawn, from where each row of them begins: enough for every value of the swizzle, where these are few.
fn drawn_rows(layout: &SmemLayout, elem: Elem, bytes: u64) -> Vec<u64> {
    let swizzle = layout.to_cute().and_then(|(swizzle, _)| swizzle).filter(|s| !s.is_identity() && s.s() > 0);
    let apart = swizzle.map_or(ROW, |s| elem.bytes_of(1 << (s.m() + s.s().unsigned_abs()))).max(ROW);
    (0..ROWS).map(|i| i * apart).filter(|&row| row < bytes).collect()
}

/// The address of an element, as a formula.
fn formula(layout: &SmemLayout, elem: Elem) -> String {
    let Some((swizzle, places)) = layout.to_cute() else {
        return "No CuTe layout with one swizzle gives the address of an element: the address is the XOR of one term for each coordinate bit.".to_owned();
    };
    let unit = match elem.bytes_of(1) {
        1 => "bytes".to_owned(),
        n if n > 1 => format!("elements of {n} bytes"),
        _ => "elements".to_owned(),
    };
    let Some(s) = swizzle.filter(|s| !s.is_identity()) else {
        return format!("No swizzle: the CuTe layout gives the address of an element: {places}, in {unit}.");
    };
    let (low, high) = (elem.bytes_of(1 << s.m()), elem.bytes_of(1 << (s.m() + s.s().unsigned_abs())));
    let (to, from) = if s.s() > 0 { (low, high) } else { (high, low) };
    format!(
        "Swizzle: byte = p XOR {to} * ((p / {from}) mod {}), where p is the byte of the CuTe layout {places}, in {unit}. In CuTe: Swizzle<{},{},{}> of places in elements.",
        1u64 << s.b(),
        s.b(),
        s.m(),
        s.s()
    )
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
            stmt: None,
            accesses: 1,
            buffer: "a".to_owned(),
            store: false,
            access_bytes: bytes,
            ideal_wavefronts: w.phases,
            wavefronts: w.wavefronts,
            lanes,
            by_index: false,
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
