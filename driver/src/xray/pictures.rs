//! Pictures of layouts, drawn from the layouts themselves.

use crate::compile::Compiled;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tilec_ir::entities::Value;
use tilec_ir::kernel::{Kernel, ValueDef};
use tilec_ir::layout::RegLayout;
use tilec_ir::target::WARP;

/// A picture.
#[derive(Clone, Debug, Serialize)]
pub struct Picture {
    /// Its name: that of the tile, behind that of the kernel and a dot where there are several kernels.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The line of the source that the tile was declared at; 0: none.
    pub line: usize,
    /// The picture.
    pub svg: String,
}

/// Rows and columns that are drawn at most.
const MOST: [u64; 2] = [16, 16];
/// Width and height of an element.
const CELL: [u64; 2] = [58, 20];
/// Space for the numbers of rows and columns.
const MARGIN: [u64; 2] = [34, 40];
/// Light tints of the colours by Okabe and Ito, one for each warp in turn. The numbers say the same.
const TINTS: [&str; 8] = ["#cfe6f5", "#fde7c2", "#c5ebdd", "#f9d9c4", "#f0dbe8", "#fbf6c4", "#dcecf7", "#e6e6e6"];

/// Who has an element: the least thread that does, the register in it, and how many threads do.
type Holder = (u64, u64, u64);

/// The pictures of a program, in the order of its kernels and declarations.
pub(super) fn pictures(program: &Compiled) -> Vec<Picture> {
    let several = program.kernels.len() > 1;
    let mut out = Vec::new();
    for k in &program.kernels {
        let kernel = &k.tile.kernel;
        for v in kernel.values.keys() {
            let Some((svg, title)) = register_tile(kernel, v) else { continue };
            let (own, span) = (&kernel.values[v].name, kernel.values[v].span);
            let name = if several { format!("{}.{own}", kernel.name) } else { own.clone() };
            let line = if span.is_none() { 0 } else { program.source.position(span.start as usize).line };
            out.push(Picture { name, title, line, svg });
        }
    }
    out
}

/// Which thread holds which element of a register tile, in which register; none: it is no tile with a layout.
fn register_tile(kernel: &Kernel, v: Value) -> Option<(String, String)> {
    let ValueDef::Var(tile) = &kernel.values[v].def else { return None };
    let layout = tile.reg_layout.as_ref()?;
    let shape: Vec<u64> =
        tile.shape.iter().map(|&e| kernel.as_int(e).and_then(|n| u64::try_from(n).ok())).collect::<Option<_>>()?;
    let text = shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    // The last two dimensions; a single one is a row.
    let drawn = shape.len().saturating_sub(2);
    let [rows, columns] = match shape[drawn..] {
        [rows, columns] => [rows, columns],
        [columns] => [1, columns],
        _ => return None,
    };
    let window = [rows.min(MOST[0]), columns.min(MOST[1])];
    let mut title = format!("{}[{text}]: thread and register of each element", kernel.values[v].name);
    if window != [rows, columns] {
        let _ = write!(title, ", the first {} of {rows} rows and {} of {columns} columns", window[0], window[1]);
    }
    if drawn > 0 {
        let _ = write!(title, ", at the first place along the dimensions in front");
    }
    Some((draw(&holders(layout, &shape, window), window, &title), title))
}

/// Who has each element of the window, by row and column.
fn holders(layout: &RegLayout, shape: &[u64], window: [u64; 2]) -> BTreeMap<(u64, u64), Holder> {
    // An extent that is no power of two counts as the next one.
    let bits: Vec<u32> = shape.iter().map(|n| n.next_power_of_two().trailing_zeros()).collect();
    let mut held: BTreeMap<(u64, u64), Holder> = BTreeMap::new();
    for thread in 0..1u64 << layout.thread_bits() {
        for value in 0..1u64 << layout.value_bits() {
            let at = layout.coords(thread, value, &bits);
            let (front, last) = at.split_at(at.len().saturating_sub(2));
            let (row, column) = match *last {
                [row, column] => (row, column),
                [column] => (0, column),
                _ => continue,
            };
            if front.iter().all(|&x| x == 0) && row < window[0] && column < window[1] {
                held.entry((row, column)).and_modify(|h| h.2 += 1).or_insert((thread, value, 1));
            }
        }
    }
    held
}

fn draw(held: &BTreeMap<(u64, u64), Holder>, window: [u64; 2], title: &str) -> String {
    let (width, height) = (MARGIN[0] + window[1] * CELL[0] + 4, MARGIN[1] + window[0] * CELL[1] + 4);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"monospace\" font-size=\"11\" role=\"img\">\n<title>{title}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n<text x=\"4\" y=\"14\">{title}</text>\n"
    );
    for column in 0..window[1] {
        let x = MARGIN[0] + column * CELL[0] + CELL[0] / 2;
        let _ = writeln!(
            out,
            "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555555\">{column}</text>",
            MARGIN[1] - 6
        );
    }
    for row in 0..window[0] {
        let y = MARGIN[1] + row * CELL[1] + 14;
        let _ =
            writeln!(out, "<text x=\"{}\" y=\"{y}\" text-anchor=\"end\" fill=\"#555555\">{row}</text>", MARGIN[0] - 6);
    }
    for (&(row, column), &(thread, value, threads)) in held {
        let (x, y) = (MARGIN[0] + column * CELL[0], MARGIN[1] + row * CELL[1]);
        let tint = TINTS[usize::try_from(thread / u64::from(WARP) % TINTS.len() as u64).unwrap_or(0)];
        let also = if threads > 1 { format!("×{threads}") } else { String::new() };
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" fill=\"{tint}\" stroke=\"#888888\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">t{thread}{also} r{value}</text>",
            CELL[0],
            CELL[1],
            x + CELL[0] / 2,
            y + 14
        );
    }
    out.push_str("</svg>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight columns by two rows over four lanes with two registers along the columns, and a bit of the thread that says nothing.
    #[test]
    fn every_element_of_the_window_has_its_holder() {
        // Column-major: bit 0 is the row, bits 1 to 3 the column.
        let layout = RegLayout::new(vec![2, 1], vec![4, 8, 0], 4).expect("a layout");
        let held = holders(&layout, &[2, 8], [2, 8]);
        assert_eq!(held.len(), 16);
        assert_eq!(held[&(0, 0)], (0, 0, 2));
        assert_eq!(held[&(0, 1)], (0, 1, 2));
        assert_eq!(held[&(1, 0)], (0, 2, 2));
        assert_eq!(held[&(0, 2)], (1, 0, 2));
        assert_eq!(held[&(1, 7)], (3, 3, 2));
        let svg = draw(&held, [2, 8], "x");
        assert_eq!((svg.matches("<rect").count(), svg.matches("t3×2 r3").count()), (17, 1), "{svg}");
    }
}
