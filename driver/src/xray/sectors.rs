//! Windows of global memory by sectors of 32 bytes: what the lanes of a warp touch with one access.

use super::picture::{Picture, Room};
use super::svg::{Anchor, BAD, Svg, TINTS};
use std::collections::{BTreeMap, BTreeSet};
use tilec_ptx::report::CopyReport;

/// Bytes of a sector.
const SECTOR: u64 = tilec_ir::target::SECTOR_BYTES as u64;
/// Rows and sectors that are drawn at most.
const MOST: (usize, u64) = (32, 32);
const CELL: (f64, f64) = (34.0, 20.0);
const MARGIN: (f64, f64) = (74.0, 56.0);

/// Pictures of the copies between global memory and threads.
pub(super) fn pictures(copies: &[CopyReport], prefix: &str) -> Vec<Picture> {
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
            "{} bytes a thread of {} by one access of a warp: {:.0} % of the bytes of its sectors are used",
            c.global_bytes,
            c.tensor,
            100.0 * c.sector_use
        );
        let svg = draw(c, &title);
        out.push(Picture {
            title,
            span: c.span,
            ..Picture::new(Room::Memory, format!("{prefix}sectors-{}{number}", c.tensor), svg)
        });
    }
    out
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

fn draw(c: &CopyReport, title: &str) -> String {
    let rows = touched(c);
    let all: BTreeSet<u64> = rows.values().flat_map(|s| s.keys().copied()).collect();
    let first = all.first().copied().unwrap_or(0);
    let count = all.last().map_or(1, |l| l - first + 1).min(MOST.1);
    let shown = rows.len().min(MOST.0);
    let mut svg =
        Svg::new((MARGIN.0 + count as f64 * CELL.0 + 8.0).max(560.0), MARGIN.1 + shown as f64 * CELL.1 + 10.0, title);
    svg.colored(MARGIN.0 - 6.0, MARGIN.1 - 8.0, Anchor::End, "#555555", "byte");
    for s in 0..count {
        let x = MARGIN.0 + s as f64 * CELL.0;
        svg.colored(x + CELL.0 / 2.0, MARGIN.1 - 8.0, Anchor::Middle, "#555555", &((first + s) * SECTOR).to_string());
    }
    for (i, (_, sectors)) in rows.iter().take(shown).enumerate() {
        let y = MARGIN.1 + i as f64 * CELL.1;
        svg.colored(MARGIN.0 - 6.0, y + 14.0, Anchor::End, "#555555", &format!("row {i}"));
        for s in 0..count {
            let x = MARGIN.0 + s as f64 * CELL.0;
            let lanes = sectors.get(&(first + s));
            // Bytes of the sector that some lane asks for.
            let used: u64 = lanes.map_or(0, |l| (l.len() as u64 * u64::from(c.global_bytes)).min(SECTOR));
            let fill = match lanes {
                None => "#ffffff",
                Some(_) if used < SECTOR => BAD,
                Some(l) => TINTS[l[0] / 4 % TINTS.len()],
            };
            svg.rect((x, y), CELL, fill);
            if let Some(l) = lanes {
                let part = used < SECTOR;
                let text = match (l.first(), l.last()) {
                    (Some(a), Some(b)) if a != b => format!("{a}-{b}{}", if part { "!" } else { "" }),
                    (Some(a), _) => format!("{a}{}", if part { "!" } else { "" }),
                    _ => String::new(),
                };
                svg.colored(
                    x + CELL.0 / 2.0,
                    y + 14.0,
                    Anchor::Middle,
                    if part { "#ffffff" } else { "#1a1a1a" },
                    &text,
                );
            }
        }
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
            tensor: "A".to_owned(),
            lanes,
            gathered: false,
            why: String::new(),
            in_loop: false,
        }
    }

    #[test]
    fn sectors_that_are_used_in_part_are_marked() {
        let whole = copy((0..32).map(|lane| (lane / 8, lane % 8 * 16)).collect(), 16);
        let parts = copy((0..32).map(|lane| (lane, 0)).collect(), 4);
        let (whole, parts) = (draw(&whole, "whole"), draw(&parts, "parts"));
        assert!(!whole.contains(BAD) && whole.matches("h-34z").count() == 16, "{whole}");
        assert_eq!(parts.matches("!<").count(), 32, "{parts}");
    }
}
