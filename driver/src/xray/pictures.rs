//! Pictures of layouts, drawn from the layouts themselves.

use super::budget;
use super::machine::Machine;
use super::measured::Measured;
use super::picture::{Picture, Room};
use super::registers::Registers;
use super::svg::{Anchor, Key, Svg, TINTS};
use super::threads::ThreadGroup;
use super::{banks, boxes, grid, operands, path, roles, sectors, slots, time, warps};
use crate::compile::Compiled;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use tilec_ir::entities::Value;
use tilec_ir::kernel::{Kernel, StmtData, ValueDef};
use tilec_ir::layout::RegLayout;
use tilec_ir::target::WARP;
use tilec_ir::types::{Elem, ElemRef};

/// Rows and columns that are drawn at most.
const MOST: [u64; 2] = [16, 16];
/// Width at least, and height, of an element.
const CELL: [u64; 2] = [58, 20];
/// Space for the numbers of rows and columns.
const MARGIN: [u64; 2] = [34, 40];
/// Who has an element: the least thread that does, the number of the value in it, and how many threads do.
type Holder = (u64, u64, u64);

/// The pictures of a program, in the order of its kernels; of each by room.
pub(super) fn pictures(program: &Compiled, machine: Option<&Machine>, measured: &[Measured]) -> Vec<Picture> {
    let several = program.kernels.len() > 1;
    let mut out = Vec::new();
    for k in &program.kernels {
        let kernel = &k.tile.kernel;
        let prefix = if several { format!("{}.", kernel.name) } else { String::new() };
        // Passes that copy statements leave the values of the originals behind.
        let declared: BTreeSet<Value> = kernel
            .statement_data()
            .filter_map(|s| match s {
                StmtData::Var { value, .. } => Some(*value),
                _ => None,
            })
            .collect();
        for v in kernel.values.keys().filter(|v| declared.contains(v)) {
            let Some((svg, title)) = register_tile(kernel, v) else { continue };
            let (own, span) = (&kernel.values[v].name, kernel.values[v].span);
            out.push(Picture { title, span, ..Picture::new(Room::Pictures, format!("{prefix}{own}"), svg) });
        }
        out.extend(warps::pictures(kernel, &prefix));
        out.extend(banks::pictures(kernel, &k.lowered.shared, &prefix));
        out.extend(boxes::pictures(&k.lowered.boxes, &prefix));
        out.extend(operands::pictures(&k.lowered.operands, &prefix));
        out.extend(sectors::pictures(kernel, &k.lowered.copies, &prefix));
        out.extend(path::draw::pictures(program, k, &prefix));
        let scheduled = time::pictures(k, &prefix);
        // Slots that no schedule shows are those of written roles, or of warpgroups that share the tensor cores.
        let own =
            if scheduled.iter().any(|p| p.title.starts_with(time::SLOTS)) { None } else { slots::picture(k, &prefix) };
        out.extend(scheduled);
        out.extend(roles::picture(k, &prefix));
        out.extend(own);
        out.extend(grid::pictures(program.target, k, machine, &prefix));
        out.extend(budget::pictures(program, k, machine, measured, &prefix));
    }
    // Roles may have tiles of one name: what is the same is drawn once, and what is not gets a number.
    let mut named: Vec<Picture> = Vec::new();
    for mut p in out {
        let alike = |old: &Picture| (old.room, &old.svg, &old.frames) == (p.room, &p.svg, &p.frames);
        if named.iter().any(|old| old.name == p.name && alike(old)) {
            continue;
        }
        let taken = |name: &str| named.iter().any(|old| old.name == name);
        let free = (2..).map(|n| format!("{}-{n}", p.name)).find(|name| !taken(name));
        if taken(&p.name) {
            p.name = free.expect("some number is free");
        }
        named.push(p);
    }
    let mut out = named;
    for p in out.iter_mut().filter(|p| !p.span.is_none()) {
        p.line = program.source.position(p.span.start as usize).line;
    }
    out
}

/// Which thread holds which element of a register tile, in which register; none: it is not a tile with a layout.
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
    let mut title = format!(
        "Register tile {}[{text}]: which thread holds each element, in which of its registers",
        kernel.values[v].name
    );
    if window != [rows, columns] {
        let cut = |shown: u64, all: u64, word: &str| (shown < all).then(|| format!("{shown} of {all}{word}"));
        let words = if shape.len() == 1 { ["", ""] } else { [" rows", " columns"] };
        let parts: Vec<String> =
            [cut(window[0], rows, words[0]), cut(window[1], columns, words[1])].into_iter().flatten().collect();
        let _ = write!(title, "; the first {}", parts.join(" and "));
    }
    if drawn > 0 {
        let _ = write!(title, "; the first place along the dimensions in front");
    }
    let ElemRef::Known(elem) = tile.elem else { return None };
    let note = ThreadGroup::of_tile(kernel, v).note();
    Some((draw(&holders(layout, &shape, window), elem, window, (&title, note)), title))
}

/// Who has each element of the window, by row and column.
fn holders(layout: &RegLayout, shape: &[u64], window: [u64; 2]) -> BTreeMap<(u64, u64), Holder> {
    // An extent that is not a power of two counts as the next one.
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

/// The tint of a thread: that of its warp.
fn tint(thread: u64) -> &'static str {
    TINTS[usize::try_from(thread / u64::from(WARP) % TINTS.len() as u64).unwrap_or(0)]
}

fn draw(
    held: &BTreeMap<(u64, u64), Holder>,
    elem: Elem,
    window: [u64; 2],
    (title, team): (&str, Option<String>),
) -> String {
    let text = |&(thread, value, threads): &Holder| {
        let also = if threads > 1 { format!("\u{d7}{threads}") } else { String::new() };
        format!("t{thread}{also} {}", Registers::of(elem, value).short())
    };
    let [left, top, least, high] = [MARGIN[0], MARGIN[1], CELL[0], CELL[1]].map(|n| n as f64);
    let wide = held.values().map(|h| Svg::wide(&text(h)) + 6.0).fold(least, f64::max);
    let at = |row: u64, column: u64| (left + column as f64 * wide, top + row as f64 * high);
    let (width, height) = at(window[0], window[1]);
    let mut svg = Svg::new(width + 4.0, height + 4.0, title);
    for column in 0..window[1] {
        let (x, y) = at(0, column);
        svg.colored(x + wide / 2.0, y - 6.0, Anchor::Middle, "#555555", &column.to_string());
    }
    for row in 0..window[0] {
        let (x, y) = at(row, 0);
        svg.colored(x - 6.0, y + 14.0, Anchor::End, "#555555", &row.to_string());
    }
    for (&(row, column), holder) in held {
        let (x, y) = at(row, column);
        svg.rect((x, y), (wide, high), tint(holder.0));
        svg.text(x + wide / 2.0, y + 14.0, Anchor::Middle, &text(holder));
    }
    svg.key(Key::Text("t12 r3"), "thread 12 of those that hold the tile, register 3 of the tile's in that thread");
    if elem.size().shares_registers() && elem != Elem::Bool {
        svg.key(Key::Text("r3+16"), "from bit 16 of register 3: several elements share a register of 32 bits");
    }
    if held.values().any(|h| h.2 > 1) {
        svg.key(Key::Text("t12\u{d7}4"), "4 threads hold the element; 12 is the first");
    }
    // Warps in the order of their numbers, as far as there are some here.
    let warps: BTreeSet<u64> = held.values().map(|h| h.0 / u64::from(WARP)).collect();
    for warp in warps {
        let (first, last) = (warp * u64::from(WARP), (warp + 1) * u64::from(WARP) - 1);
        svg.key(Key::Cell(tint(first)), format!("warp {warp}: threads {first} to {last}"));
    }
    if let Some(team) = team {
        svg.note(team);
    }
    svg.note("Numbers at the left are rows, numbers at the top are columns of the tile.");
    svg.done()
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
        let svg = draw(&held, Elem::F32, [2, 8], ("x", None));
        assert_eq!((svg.matches("h-58z").count(), svg.matches("t3×2 r3").count()), (16, 1), "{svg}");
    }
}
