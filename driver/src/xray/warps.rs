//! The accumulators of products by warps: who has which block of 8x8 elements, in which registers.

use super::lines::DIM;
use super::picture::{Picture, Room};
use super::registers::Registers;
use super::svg::{Anchor, Key, Svg, TINTS};
use super::threads::ThreadGroup;
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::entities::Value;
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::layout::{RegLayout, shape_bits};
use tilec_ir::target::WARP;
use tilec_ir::types::{Elem, ElemRef};

/// Rows and columns of a block.
const BLOCK: u64 = 8;
/// Blocks that are drawn at most, along rows and columns.
const MOST: (u64, u64) = (32, 8);
const CELL: (f64, f64) = (92.0, 20.0);
const MARGIN: (f64, f64) = (84.0, 40.0);

/// Who has a block: warps, and registers of them.
type Held = BTreeMap<(u64, u64), (BTreeSet<u64>, BTreeSet<u64>)>;

/// A picture of each register tile that an instruction of tensor cores adds to.
pub(super) fn pictures(kernel: &Kernel, prefix: &str) -> Vec<Picture> {
    let mut out = Vec::new();
    let mut seen: Vec<Value> = Vec::new();
    for s in kernel.statements() {
        let StmtData::Assign { dst, src } = kernel.stmts[s] else { continue };
        let ExprData::Mma(mma) = &kernel.exprs[src] else { continue };
        let Some(row) = mma.atom.map(|a| a.row()).filter(|_| !seen.contains(&dst)) else { continue };
        seen.push(dst);
        let ValueDef::Var(tile) = &kernel.values[dst].def else { continue };
        let Some((layout, shape)) = tile.reg_layout.as_ref().zip(kernel.const_shape(&tile.shape)) else { continue };
        let ([.., rows, columns], ElemRef::Known(elem)) = (&shape[..], tile.elem) else { continue };
        let (rows, columns) = (*rows, *columns);
        let own = &kernel.values[dst];
        let text = shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let shown = (rows.div_ceil(BLOCK).min(MOST.0), columns.div_ceil(BLOCK).min(MOST.1));
        let first = |all: u64, shown: u64, word: &str| {
            if shown * BLOCK < all { format!("; the first {} of {all} {word}", shown * BLOCK) } else { String::new() }
        };
        let part = first(rows, shown.0, "rows") + &first(columns, shown.1, "columns");
        let title = format!(
            "Accumulator {}[{text}] of {}: which warp holds each block of 8x8 elements, in which registers{part}",
            own.name, row.name
        );
        let note = ThreadGroup::of_tile(kernel, dst).note();
        let svg = draw(&held(layout, elem, &shape, shown), shown, (&title, note));
        let name = format!("{prefix}warps-{}", own.name);
        out.push(Picture { title, span: own.span, ..Picture::new(Room::Pictures, name, svg) });
    }
    out
}

fn held(layout: &RegLayout, elem: Elem, shape: &[u64], shown: (u64, u64)) -> Held {
    let bits = shape_bits(shape);
    let mut out = Held::new();
    for thread in 0..1u64 << layout.thread_bits() {
        for value in 0..1u64 << layout.value_bits() {
            let at = layout.coords(thread, value, &bits);
            let [ref front @ .., row, column] = at[..] else { continue };
            let block = (row / BLOCK, column / BLOCK);
            let inside = at.iter().zip(shape).all(|(x, n)| x < n) && block.0 < shown.0 && block.1 < shown.1;
            if inside && front.iter().all(|&x| x == 0) {
                let (warps, registers) = out.entry(block).or_default();
                warps.insert(thread / u64::from(WARP));
                let of = Registers::of(elem, value);
                registers.extend(of.first..of.first + of.count);
            }
        }
    }
    out
}

/// `w0`, `r0-3`, `r0,4`, `r0..9`: numbers that follow one another, two, or some between these.
fn numbers(letter: char, all: &BTreeSet<u64>) -> String {
    let (Some(&a), Some(&b)) = (all.first(), all.last()) else { return String::new() };
    match all.len() as u64 {
        1 => format!("{letter}{a}"),
        n if n == b - a + 1 => format!("{letter}{a}-{b}"),
        2 => format!("{letter}{a},{b}"),
        _ => format!("{letter}{a}..{b}"),
    }
}

fn draw(held: &Held, (rows, columns): (u64, u64), (title, team): (&str, Option<String>)) -> String {
    let at = |row: u64, column: u64| (MARGIN.0 + column as f64 * CELL.0, MARGIN.1 + row as f64 * CELL.1);
    let (width, height) = at(rows, columns);
    let mut svg = Svg::new(width + 4.0, height + 4.0, title);
    for column in 0..columns {
        let (x, y) = at(0, column);
        svg.colored(x + CELL.0 / 2.0, y - 6.0, Anchor::Middle, DIM, &(column * BLOCK).to_string());
    }
    for row in 0..rows {
        let (x, y) = at(row, 0);
        svg.colored(x - 6.0, y + 14.0, Anchor::End, DIM, &(row * BLOCK).to_string());
    }
    for (&(row, column), (warps, registers)) in held {
        let (x, y) = at(row, column);
        let warp = warps.first().copied().unwrap_or(0);
        svg.rect((x, y), CELL, TINTS[warp as usize % TINTS.len()]);
        let text = format!("{} {}", numbers('w', warps), numbers('r', registers));
        svg.text(x + CELL.0 / 2.0, y + 14.0, Anchor::Middle, &text);
    }
    // Where a block's elements are in two registers, each lane has both; elsewhere lanes have others in others.
    if held.values().all(|(warps, registers)| warps.len() == 1 && registers.len() == 2) {
        svg.key(
            Key::Text("w3 r4-5"),
            "warp 3; each of its lanes has 2 of the 64 elements, in registers 4 and 5 of the tile's",
        );
    } else if held.values().all(|(warps, registers)| warps.len() == 1 && registers.len() == 1) {
        svg.key(
            Key::Text("w3 r4"),
            "warp 3; each of its lanes has 2 of the 64 elements, both in register 4 of the tile's",
        );
    } else {
        svg.key(Key::Text("w3 r4..47"), "warp 3; its lanes have the elements in some of the tile's registers 4 to 47");
    }
    let warps: BTreeSet<u64> = held.values().filter_map(|(warps, _)| warps.first().copied()).collect();
    for warp in warps.iter().take(TINTS.len()) {
        svg.key(Key::Cell(TINTS[*warp as usize % TINTS.len()]), format!("warp {warp}"));
    }
    if warps.len() > TINTS.len() {
        svg.note("Further warps repeat the same colours.");
    }
    if let Some(team) = team {
        svg.note(team);
    }
    svg.note("Numbers at the left and at the top are the first row and the first column of a block.");
    svg.done()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What two registers of a lane are is said of pictures alone whose blocks are so.
    #[test]
    fn registers_apart_are_not_called_a_pair() {
        let block =
            |registers: &[u64]| Held::from([((0, 0), (BTreeSet::from([3]), registers.iter().copied().collect()))]);
        assert!(draw(&block(&[4, 5]), (1, 1), ("x", None)).contains("each of its lanes has 2"));
        let apart = draw(&block(&[0, 1, 40, 43]), (1, 1), ("x", None));
        assert!(apart.contains(">w3 r0..43<") && apart.contains("in some of") && !apart.contains("has 2"), "{apart}");
    }

    /// The accumulator of a warpgroup: four warps with 16 rows each, whose lower eight rows are other registers.
    #[test]
    fn warps_have_rows_by_sixteen() {
        // Row-major of 64 by 16: bits 0 to 5 the row, 6 to 9 the column.
        let threads = vec![2 << 6, 4 << 6, 1, 2, 4, 16, 32];
        let layout = RegLayout::new(vec![1 << 6, 8, 8 << 6], threads, 10).expect("a layout");
        let held = held(&layout, Elem::F32, &[64, 16], (8, 2));
        let text = |row, column| {
            let (w, r) = &held[&(row, column)];
            format!("{} {}", numbers('w', w), numbers('r', r))
        };
        assert_eq!([text(0, 0), text(1, 0), text(0, 1), text(7, 1)], ["w0 r0-1", "w0 r2-3", "w0 r4-5", "w3 r6-7"]);
        assert_eq!(held.len(), 16);
    }
}
