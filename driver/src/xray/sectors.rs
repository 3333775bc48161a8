//! Windows of global memory by sectors of 32 bytes: what the lanes of a warp touch with one access.

use super::picture::{Picture, Room};
use super::svg::{Anchor, BAD, INK, Key, Svg, TINTS};
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::facts::contiguous_dim;
use tilec_ir::kernel::Kernel;
use tilec_ptx::report::CopyReport;

/// Bytes of a sector.
const SECTOR: u64 = tilec_ir::target::SECTOR_BYTES as u64;
/// Rows and sectors that are drawn at most.
const MOST: (usize, u64) = (32, 32);
const CELL: (f64, f64) = (48.0, 20.0);
const MARGIN: (f64, f64) = (74.0, 56.0);

/// Pictures of the copies between global memory and threads.
pub(super) fn pictures(kernel: &Kernel, copies: &[CopyReport], prefix: &str) -> Vec<Picture> {
    let mut out: Vec<Picture> = Vec::new();
    let mut seen: Vec<(&str, &[(u64, u64)])> = Vec::new();
    for c in copies.iter().filter(|c| c.global_bytes > 0 && !c.lanes.is_empty()) {
        let key = (c.tensor.as_str(), &c.lanes[..]);
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let number = seen.iter().filter(|s| s.0 == c.tensor).count();
        let number = if number > 1 { format!("-{number}") } else { String::new() };
        let title = format!(
            "Sectors of {} in global memory that one access of a warp touches, {} bytes a thread: {:.0} % of their bytes are used",
            c.tensor,
            c.global_bytes,
            100.0 * c.sector_use
        );
        let svg = draw(c, line_of(kernel, &c.tensor), &title);
        out.push(Picture {
            title,
            span: c.span,
            ..Picture::new(Room::Memory, format!("{prefix}sectors-{}{number}", c.tensor), svg)
        });
    }
    out
}

/// What elements that are adjacent in memory are: a row, or a column of a tensor whose order is `col`.
fn line_of(kernel: &Kernel, tensor: &str) -> &'static str {
    let v = kernel.params.iter().copied().find(|&v| kernel.values[v].name == tensor);
    let of = v.and_then(|v| Some((contiguous_dim(kernel, v)?, kernel.tensor_ty(v)?.shape.len())));
    match of {
        Some((_, 1)) => "run",
        Some((d, rank)) if d + 2 == rank => "column",
        Some((d, rank)) if d + 1 != rank => "line",
        _ => "row",
    }
}

/// Lanes by row and sector.
fn touched(c: &CopyReport) -> BTreeMap<u64, BTreeMap<u64, Vec<usize>>> {
    let mut rows: BTreeMap<u64, BTreeMap<u64, Vec<usize>>> = BTreeMap::new();
    for (lane, &(row, byte)) in c.lanes.iter().enumerate() {
        for sector in byte / SECTOR..=(byte + u64::from(c.global_bytes) - 1) / SECTOR {
            rows.entry(row).or_default().entry(sector).or_default().push(lane);
        }
    }
    rows
}

/// Bytes of a sector that some of the lanes request.
fn used(c: &CopyReport, lanes: &[usize], sector: u64) -> u64 {
    let of = |lane: &usize| c.lanes[*lane].1..c.lanes[*lane].1 + u64::from(c.global_bytes);
    let inside = |byte: &u64| byte / SECTOR == sector;
    lanes.iter().flat_map(of).filter(inside).collect::<BTreeSet<u64>>().len() as u64
}

/// Lanes that follow one another, two, or some between these.
fn lanes_in_words(lanes: &[usize]) -> String {
    match *lanes {
        [] => String::new(),
        [one] => one.to_string(),
        [a, .., b] if b - a + 1 == lanes.len() => format!("{a}-{b}"),
        [a, b] => format!("{a},{b}"),
        [a, .., b] => format!("{a}..{b}"),
    }
}

fn draw(c: &CopyReport, line: &str, title: &str) -> String {
    let rows = touched(c);
    let all: BTreeSet<u64> = rows.values().flat_map(|s| s.keys().copied()).collect();
    let first = all.first().copied().unwrap_or(0);
    let count = all.last().map_or(1, |l| l - first + 1).min(MOST.1);
    let shown = rows.len().min(MOST.0);
    // Lanes of a sector: the next sector has another tint.
    let each = (SECTOR / u64::from(c.global_bytes.max(1))).max(1) as usize;
    let mut svg =
        Svg::new((MARGIN.0 + count as f64 * CELL.0 + 8.0).max(560.0), MARGIN.1 + shown as f64 * CELL.1 + 10.0, title);
    let (mut parts, mut between) = (false, false);
    svg.colored(MARGIN.0 - 6.0, MARGIN.1 - 8.0, Anchor::End, "#555555", "byte");
    for s in 0..count {
        let x = MARGIN.0 + s as f64 * CELL.0;
        svg.colored(x + CELL.0 / 2.0, MARGIN.1 - 8.0, Anchor::Middle, "#555555", &((first + s) * SECTOR).to_string());
    }
    for (i, (_, sectors)) in rows.iter().take(shown).enumerate() {
        let y = MARGIN.1 + i as f64 * CELL.1;
        svg.colored(MARGIN.0 - 6.0, y + 14.0, Anchor::End, "#555555", &format!("{line} {i}"));
        for s in 0..count {
            let x = MARGIN.0 + s as f64 * CELL.0;
            let lanes = sectors.get(&(first + s));
            // Bytes of the sector that some lane requests.
            let used = lanes.map_or(0, |l| used(c, l, first + s));
            let fill = match lanes {
                None => "#ffffff",
                Some(_) if used < SECTOR => BAD,
                Some(l) => TINTS[l[0] / each % TINTS.len()],
            };
            svg.rect((x, y), CELL, fill);
            if let Some(l) = lanes {
                let part = used < SECTOR;
                parts |= part;
                between |= l.len() > 2 && l[l.len() - 1] - l[0] >= l.len();
                let text = format!("{}{}", lanes_in_words(l), if part { "!" } else { "" });
                svg.colored(x + CELL.0 / 2.0, y + 14.0, Anchor::Middle, if part { "#ffffff" } else { INK }, &text);
            }
        }
    }
    svg.key(
        Key::Cell(TINTS[0]),
        "a sector of 32 bytes; the numbers are the lanes that touch it. The tint changes from sector to sector",
    );
    if between {
        svg.key(Key::Text("0..6"), "some lanes from 0 to 6");
    }
    if parts {
        svg.key(Key::Cell(BAD), "with `!`: a sector of which a part is used; the memory moves all of it");
    }
    let drawn = match line {
        "row" => "A row is a row of the tensor".to_owned(),
        "run" => "A row of the picture is a run of adjacent elements".to_owned(),
        "line" => "A row of the picture is a line of the tensor along its contiguous dimension".to_owned(),
        _ => format!("A row of the picture is a {line} of the tensor"),
    };
    svg.note(format!(
        "{drawn}, in the order of the lanes; numbers above are bytes of the {line}, for {line}s that begin at multiples of a sector."
    ));
    if rows.len() > shown || all.last().is_some_and(|l| l - first >= count) {
        svg.note("Further rows and sectors are not drawn.");
    }
    if c.gathered {
        svg.note("Elements are gathered: each is taken to be in a sector of its own.");
    }
    svg.done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilec_ir::diag::Span;

    fn copy(lanes: Vec<(u64, u64)>, bytes: u32) -> CopyReport {
        CopyReport {
            span: Span::default(),
            src: "A".to_owned(),
            dst: "a".to_owned(),
            global_bytes: bytes,
            shared_bytes: 0,
            accesses: 1,
            sector_use: 1.0,
            sector_use_of_runs: 1.0,
            sectors: 4,
            tensor: "A".to_owned(),
            lanes,
            gathered: false,
            single: false,
            why: String::new(),
            in_loop: false,
        }
    }

    #[test]
    fn sectors_that_are_used_in_part_are_marked() {
        let whole = copy((0..32).map(|lane| (lane / 8, lane % 8 * 16)).collect(), 16);
        let parts = copy((0..32).map(|lane| (lane, 0)).collect(), 4);
        let (whole, parts) = (draw(&whole, "row", "whole"), draw(&parts, "row", "parts"));
        assert!(!whole.contains(BAD) && whole.matches("h-48z").count() == 16, "{whole}");
        assert_eq!(parts.matches("!<").count(), 32, "{parts}");
        // Lanes that request the same bytes use them once.
        let same = draw(&copy(vec![(0, 0); 32], 4), "row", "same");
        assert!(same.contains(">0-31!<") && same.contains(BAD), "{same}");
        let turns = draw(
            &copy((0..32).map(|lane| (lane / 4, lane % 2 * 32 + lane / 2 % 2 * 16)).collect(), 16),
            "row",
            "turns",
        );
        assert!(turns.contains(">0,2<") && turns.contains(">29,31<"), "{turns}");
    }
}
