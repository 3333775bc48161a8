//! The order in which blocks compute the tiles of the result.
//!
//! Where blocks walk over tiles, the walk is in the program after the last pass, and its numbers are computed from there. Elsewhere the hardware begins
//! blocks in the order of their numbers, of which `raster` in the schedule makes indices.

use super::budget::registers_of;
use super::lines::DIM;
use super::machine::Machine;
use super::path::windows::{Numbers, value_of};
use super::picture::{Picture, Room};
use super::svg::{Anchor, Key, Svg, TINTS};
use crate::compile::CompiledKernel;
use std::collections::BTreeMap;
use tilec_ir::diag::counted;
use tilec_ir::entities::{Block, Value};
use tilec_ir::extents::raster;
use tilec_ir::kernel::{Kernel, StmtData, ValueDef};
use tilec_ir::target::Target;
use tilec_passes::choose::Card;
use tilec_passes::occupancy::Occupancy;

/// Tiles that are drawn at most along an axis.
const MOST: i64 = 24;
/// Waves that the legend lists.
const LISTED: usize = 2 * TINTS.len();
/// Tiles along an axis where no sizes are known.
const GUESS: [i64; 2] = [12, 12];
const CELL: (f64, f64) = (38.0, 20.0);
const MARGIN: (f64, f64) = (60.0, 46.0);

/// Tiles of a walk that are computed at most; longer ones are not drawn.
const COMPUTED: usize = 1 << 14;
/// When each tile is computed: how many others are begun before, and in which wave it is begun.
type Order = BTreeMap<Tile, (i64, i64)>;
/// A tile: its indices along the first two axes of the grid as it is written.
type Tile = (i64, i64);
/// Its indices along all axes.
type Indices = (Tile, Vec<i64>);

/// The pictures: one, of a grid of two axes or more.
pub(super) fn pictures(
    target: Target,
    kernel: &CompiledKernel,
    machine: Option<&Machine>,
    prefix: &str,
) -> Vec<Picture> {
    let written = &kernel.tile.specialized;
    let [rows, columns, ..] = written.grid[..] else { return Vec::new() };
    let name = |v: Value| written.values[v].name.as_str();
    let names = (name(rows.index), name(columns.index));
    let layers: Vec<&str> = written.grid[2..].iter().map(|axis| name(axis.index)).collect();
    let sizes = sizes(kernel);
    let numbers = |k: &Kernel| -> Numbers {
        let of = k.sizes.iter().filter_map(|&v| Some((v, *sizes.get(&k.values[v].name)?)));
        of.collect()
    };
    let own = numbers(written);
    let Some(extents) = value_of(written, rows.extent, &own).zip(value_of(written, columns.extent, &own)) else {
        return Vec::new();
    };
    let last = &kernel.tile.kernel;
    let predicted = kernel.tile.prediction.as_ref().and_then(|p| Card::from_name(p.card));
    let card = predicted.unwrap_or_else(|| Card::of(target));
    let (registers, _) = registers_of(kernel, machine);
    let threads = kernel.contract.block.iter().map(|&n| u64::from(n)).product();
    let resident = Occupancy::new(target, threads, registers, kernel.report.smem_bytes).resident();
    let at_once = i64::from(card.sms).saturating_mul(i64::try_from(resident).unwrap_or(1)).max(1);
    let fits = format!(
        "A wave is what fits at once on the {} multiprocessors of {}, {} on each: {at_once} blocks. That blocks begin in the order of their numbers is usual, and not promised.",
        card.sms,
        card.name,
        counted(resident as usize, "block")
    );
    let (order, waves) = match walked(last, (names, &layers), &numbers(last), at_once) {
        Some(walk) => {
            let how = walk.how(&fits, &layers);
            (walk.order, Waves { ranges: walk.waves, how })
        }
        None => {
            let order = by_blocks(last, extents, at_once);
            let all = extents.0.saturating_mul(extents.1);
            let range = |wave: i64| (wave * at_once, (wave + 1).saturating_mul(at_once).min(all) - 1);
            let ranges = order.values().map(|&(_, wave)| (wave, range(wave))).collect();
            let blocks = match layers[..] {
                [] => "One block a tile.".to_owned(),
                _ => format!(
                    "One block for each tile and `{}`. Drawn: the tiles of the first of these.",
                    layers.join("`, `")
                ),
            };
            (order, Waves { ranges, how: format!("{blocks} {fits}") })
        }
    };
    if order.is_empty() {
        return Vec::new();
    }
    let of: Vec<String> = sizes.iter().map(|(name, n)| format!("{name}={n}")).collect();
    let title = format!(
        "Order in which the tiles of the result are computed: {} along {} (down) and {} along {} (across), with {}",
        counted(usize::try_from(extents.0).unwrap_or(0), "tile"),
        names.0,
        counted(usize::try_from(extents.1).unwrap_or(0), "tile"),
        names.1,
        of.join(" ")
    );
    let svg = draw(&order, extents, (&waves, &title));
    vec![Picture { title, span: written.name_span, ..Picture::new(Room::Time, format!("{prefix}grid"), svg) }]
}

/// Tiles that are begun at once.
struct Waves {
    /// The first and the last tile of each.
    ranges: BTreeMap<i64, (i64, i64)>,
    /// Who computes them, in words.
    how: String,
}

/// The raised number of a tile whose wave has the tint of an earlier one: how often the tints have come; none: for the first time.
fn raised(wave: i64) -> String {
    let digit = |c: char| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(c.to_digit(10).unwrap_or(0) as usize).unwrap_or(c);
    match wave / TINTS.len() as i64 {
        0 => String::new(),
        n => (n + 1).to_string().chars().map(digit).collect(),
    }
}

fn tint(wave: i64) -> &'static str {
    TINTS[usize::try_from(wave).unwrap_or(0) % TINTS.len()]
}

/// Sizes: those that were chosen for.
fn sizes(kernel: &CompiledKernel) -> BTreeMap<String, i64> {
    let chosen = kernel.tile.prediction.as_ref().map(|p| p.sizes.iter().cloned().collect::<BTreeMap<_, _>>());
    let k = &kernel.tile.specialized;
    let mut all = chosen.unwrap_or_default();
    for (i, &v) in k.sizes.iter().enumerate() {
        all.entry(k.values[v].name.clone()).or_insert(GUESS[i % 2] * 128);
    }
    all
}

/// The numbers of the blocks that compute the tiles that are drawn: the first index grows first, or as lowering has it with `raster`: the launch is
/// (rows * group, columns / group).
fn by_blocks(k: &Kernel, (rows, columns): Tile, wave: i64) -> Order {
    let group = raster(k).max(1);
    let number = |r: i64, c: i64| match group {
        1 => c.saturating_mul(rows).saturating_add(r),
        _ => (c / group).saturating_mul(rows.saturating_mul(group)).saturating_add(r * group + c % group),
    };
    let shown = (0..rows.min(MOST)).flat_map(|r| (0..columns.min(MOST)).map(move |c| (r, c)));
    shown.map(|(r, c)| ((r, c), number(r, c))).map(|(tile, n)| (tile, (n, n / wave))).collect()
}

/// The tiles that blocks compute, as the names of the axes say that the program after the last pass declares.
#[derive(Default)]
struct Walk {
    order: Order,
    /// The first and the last tile of each wave.
    waves: BTreeMap<i64, (i64, i64)>,
    /// Blocks of the launch, tiles that one of them has at most, and blocks that share a tile at most.
    blocks: usize,
    most: usize,
    parts: usize,
    /// Blocks stay for several tiles.
    persistent: bool,
}

impl Walk {
    fn how(&self, fits: &str, layers: &[&str]) -> String {
        let blocks = counted(self.blocks, "block");
        let own = match self.persistent {
            true => format!(
                "A persistent grid: {blocks}, with at most {} each. A wave is the first of each block, then the second of each.",
                counted(self.most, "tile")
            ),
            false => format!("{blocks}. {fits}"),
        };
        let own = match layers {
            [] => own,
            _ => format!(
                "{own} Drawn: the first tile of each place; tiles with another `{}` count too.",
                layers.join("`, `")
            ),
        };
        match self.parts {
            0 | 1 => own,
            n => format!(
                "{own} Up to {n} blocks share a tile along the reduction; it is begun when the first of them is."
            ),
        }
    }

    /// With the tiles of each wave, in the order in which they are begun.
    fn number(mut self, turns: Vec<Vec<Indices>>) -> Walk {
        // Of each tile how many are begun before it, and by how many blocks it is.
        let mut shared: BTreeMap<Indices, (i64, usize)> = BTreeMap::new();
        for (wave, all) in (0..).zip(turns).flat_map(|(wave, tiles)| tiles.into_iter().map(move |tile| (wave, tile))) {
            let (tile, next) = (all.0, shared.len() as i64);
            let (own, blocks) = shared.entry(all).or_insert((next, 0));
            *blocks += 1;
            let (n, begun) = *self.order.entry(tile).or_insert((*own, wave));
            let range = self.waves.entry(begun).or_insert((n, n));
            *range = (range.0.min(n), range.1.max(n));
        }
        self.parts = shared.into_values().map(|(_, blocks)| blocks).max().unwrap_or(0);
        self
    }
}

/// The tiles of blocks whose indices are names that a pass has declared: in a loop over tiles, or once. `None`: they are those of the grid.
fn walked(k: &Kernel, (names, layers): ((&str, &str), &[&str]), sizes: &Numbers, at_once: i64) -> Option<Walk> {
    let extents: Vec<i64> = k.grid.iter().map(|axis| value_of(k, axis.extent, sizes)).collect::<Option<_>>()?;
    let mut found = None;
    k.walk(k.body, &mut |k, block, _| found = found.or(declares(k, block, names.0).map(|row| (block, row))));
    let (body, row) = found?;
    let of_grid = |name: &str| k.grid.iter().find(|axis| k.values[axis.index].name == name).map(|axis| axis.index);
    let index = |name: &str, numbers: &Numbers| match declares(k, body, name) {
        Some(index) => value_of(k, index, numbers),
        None => numbers.get(&of_grid(name)?).copied(),
    };
    let around = k.stmts.values().find_map(|s| match s {
        StmtData::For { var, start, end, step, body: own, .. } if *own == body => Some((*var, *start, *end, *step)),
        _ => None,
    });
    let mut walk = Walk { persistent: around.is_some(), ..Walk::default() };
    // Of each block its tiles; they are computed turn by turn.
    let mut turns: Vec<Vec<Indices>> = Vec::new();
    let mut count = 0;
    let blocks = extents.iter().try_fold(1i64, |n, &extent| n.checked_mul(extent.max(0)))?;
    walk.blocks = usize::try_from(blocks).ok()?;
    for block in 0..blocks {
        let mut numbers = sizes.clone();
        let mut rest = block;
        for (axis, extent) in k.grid.iter().zip(&extents) {
            numbers.insert(axis.index, rest % extent);
            rest /= extent;
        }
        let (mut at, end, step) = match around {
            Some((_, start, end, step)) => {
                (value_of(k, start, &numbers)?, value_of(k, end, &numbers)?, value_of(k, step, &numbers)?)
            }
            None => (0, 1, 1),
        };
        // Blocks that do not stay are in waves of so many.
        let mut turn = if walk.persistent { 0 } else { usize::try_from(block / at_once).ok()? };
        while at < end {
            numbers.extend(around.map(|(var, ..)| (var, at)));
            let tile = (value_of(k, row, &numbers)?, index(names.1, &numbers)?);
            let layer = layers.iter().map(|name| index(name, &numbers)).collect::<Option<Vec<i64>>>()?;
            turns.resize_with(turns.len().max(turn + 1), Vec::new);
            turns[turn].push((tile, layer));
            (at, turn, count) = (at.checked_add(step.max(1))?, turn + 1, count + 1);
            walk.most = walk.most.max(turn);
            if count > COMPUTED {
                return Some(walk);
            }
        }
    }
    Some(walk.number(turns))
}

/// What a `let` of this name in a block is; a name that is there already has a number after it.
fn declares(k: &Kernel, block: Block, name: &str) -> Option<tilec_ir::entities::Expr> {
    k.blocks[block].iter().find_map(|&s| match k.stmts[s] {
        StmtData::Let { value, init } if matches!(k.values[value].def, ValueDef::Let) => {
            let own = k.values[value].name.as_str();
            let rest = own.strip_prefix(name)?;
            let same = rest.is_empty() || rest.strip_prefix('_').is_some_and(|n| n.parse::<u32>().is_ok());
            same.then_some(init)
        }
        _ => None,
    })
}

fn draw(order: &Order, (rows, columns): Tile, (waves, title): (&Waves, &str)) -> String {
    let (shown_rows, shown_columns) = (rows.min(MOST), columns.min(MOST));
    let height = MARGIN.1 + shown_rows as f64 * CELL.1 + 10.0;
    let mut svg = Svg::new(MARGIN.0 + shown_columns as f64 * CELL.0 + 8.0, height, title);
    let mut seen: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    for c in 0..shown_columns {
        let x = MARGIN.0 + (c as f64 + 0.5) * CELL.0;
        svg.colored(x, MARGIN.1 - 8.0, Anchor::Middle, DIM, &c.to_string());
    }
    for r in 0..shown_rows {
        let y = MARGIN.1 + r as f64 * CELL.1;
        svg.colored(MARGIN.0 - 6.0, y + 14.0, Anchor::End, DIM, &r.to_string());
        for c in 0..shown_columns {
            let x = MARGIN.0 + c as f64 * CELL.0;
            let number = order.get(&(r, c));
            svg.rect((x, y), CELL, number.map_or("#ffffff", |&(_, wave)| tint(wave)));
            if let Some(&(n, wave)) = number {
                seen.extend(waves.ranges.get(&wave).map(|&range| (wave, range)));
                svg.text(x + CELL.0 / 2.0, y + 14.0, Anchor::Middle, &format!("{n}{}", raised(wave)));
            }
        }
    }
    svg.key(Key::Text("17"), "a tile; 17 others are begun before it");
    for (wave, (first, last)) in seen.iter().take(LISTED) {
        let sign = match raised(*wave) {
            none if none.is_empty() => String::new(),
            sign => format!(", with {sign}"),
        };
        svg.key(Key::Cell(tint(*wave)), format!("wave {wave}{sign}: tiles {first} to {last}"));
    }
    if seen.keys().any(|&wave| !raised(wave).is_empty()) {
        svg.note(format!(
            "{} tints come again: a raised number says for which time, so 17² is in the wave {0} after that of a plain 17 of its tint.",
            TINTS.len()
        ));
    }
    if seen.len() > LISTED {
        svg.note(format!("Later waves, to wave {}, are not listed.", seen.keys().next_back().unwrap_or(&0)));
    }
    svg.note(&*waves.how);
    if (shown_rows, shown_columns) != (rows, columns) {
        svg.note(format!(
            "Drawn: the first {shown_rows} of {rows} rows and {shown_columns} of {columns} columns of tiles."
        ));
    }
    svg.done()
}
