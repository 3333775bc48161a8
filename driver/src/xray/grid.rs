//! The order in which blocks compute the tiles of the result.
//!
//! Where blocks walk over tiles, the walk is in the program after the last pass, and its numbers are computed from there. Elsewhere the hardware begins
//! blocks in the order of their numbers, of which `raster` in the schedule makes indices.

use super::budget::registers_of;
use super::lines::DIM;
use super::machine::Machine;
use super::path::{Numbers, value_of};
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
/// Tiles along an axis where no sizes are known.
const GUESS: [i64; 2] = [12, 12];
const CELL: (f64, f64) = (38.0, 20.0);
const MARGIN: (f64, f64) = (60.0, 46.0);

/// Tiles of a walk that are computed at most; longer ones are not drawn.
const COMPUTED: usize = 1 << 14;
/// When each tile is computed: how many are begun before.
type Order = BTreeMap<Tile, i64>;
/// A tile: its indices along the first two axes of the grid as it is written.
type Tile = (i64, i64);

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
    let (order, waves) = match walked(last, names, &numbers(last)) {
        Some((order, blocks)) => {
            let how = format!(
                "A persistent grid: {blocks} blocks, each of which computes several tiles. A wave is the first tile of each block, then the second of each, in the order of the blocks."
            );
            (order, Waves { tiles: blocks, how })
        }
        None => {
            let (registers, _) = registers_of(kernel, machine);
            let threads = kernel.contract.block.iter().map(|&n| u64::from(n)).product();
            let resident = Occupancy::new(target, threads, registers, kernel.report.smem_bytes).resident();
            let tiles = i64::from(card.sms).saturating_mul(i64::try_from(resident).unwrap_or(1));
            let how = format!(
                "One block a tile. A wave is what fits at once on the {} multiprocessors of {}, {} on each: {tiles} tiles. That blocks begin in the order of their numbers is usual, and not promised.",
                card.sms,
                card.name,
                counted(resident as usize, "block")
            );
            (by_blocks(last, extents), Waves { tiles, how })
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

/// Tiles that are computed at once.
struct Waves {
    /// How many tiles a wave has.
    tiles: i64,
    /// Who computes them, in words.
    how: String,
}

impl Waves {
    fn of(&self, tile: i64) -> i64 {
        tile / self.tiles.max(1)
    }

    fn tint(wave: i64) -> &'static str {
        TINTS[usize::try_from(wave).unwrap_or(0) % TINTS.len()]
    }
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
fn by_blocks(k: &Kernel, (rows, columns): Tile) -> Order {
    let group = raster(k).max(1);
    let number = |r: i64, c: i64| match group {
        1 => c.saturating_mul(rows).saturating_add(r),
        _ => (c / group).saturating_mul(rows.saturating_mul(group)).saturating_add(r * group + c % group),
    };
    let shown = (0..rows.min(MOST)).flat_map(|r| (0..columns.min(MOST)).map(move |c| (r, c)));
    shown.map(|(r, c)| ((r, c), number(r, c))).collect()
}

/// The tiles of a walk, what the names of the axes come to for each block and turn of the loop that declares them; and how many blocks walk.
fn walked(k: &Kernel, names: (&str, &str), sizes: &Numbers) -> Option<(Order, i64)> {
    let cta = k.grid.first()?;
    let blocks = value_of(k, cta.extent, sizes)?;
    let (var, start, end, step, body) = k.stmts.values().find_map(|s| match s {
        StmtData::For { var, start, end, step, body, .. } if declares(k, *body, names.0).is_some() => {
            Some((*var, *start, *end, *step, *body))
        }
        _ => None,
    })?;
    let (row, column) = (declares(k, body, names.0)?, declares(k, body, names.1)?);
    // Of each block its tiles; they are computed turn by turn.
    let mut turns: Vec<Vec<Tile>> = Vec::new();
    let mut count = 0;
    for block in 0..blocks {
        let mut numbers = sizes.clone();
        numbers.insert(cta.index, block);
        let (mut at, end, step) =
            (value_of(k, start, &numbers)?, value_of(k, end, &numbers)?, value_of(k, step, &numbers)?);
        let mut turn = 0;
        while at < end {
            numbers.insert(var, at);
            let tile = (value_of(k, row, &numbers)?, value_of(k, column, &numbers)?);
            if turns.len() <= turn {
                turns.push(Vec::new());
            }
            turns[turn].push(tile);
            (at, turn, count) = (at.checked_add(step.max(1))?, turn + 1, count + 1);
            if count > COMPUTED {
                return Some((Order::new(), blocks));
            }
        }
    }
    let mut order = Order::new();
    for (n, tile) in (0..).zip(turns.into_iter().flatten()) {
        order.entry(tile).or_insert(n);
    }
    Some((order, blocks))
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
            svg.rect((x, y), CELL, number.map_or("#ffffff", |&n| Waves::tint(waves.of(n))));
            if let Some(&n) = number {
                let wave = waves.of(n);
                seen.entry(wave).or_insert((wave * waves.tiles, (wave + 1) * waves.tiles - 1));
                svg.text(x + CELL.0 / 2.0, y + 14.0, Anchor::Middle, &n.to_string());
            }
        }
    }
    svg.key(Key::Text("17"), "a tile; 17 others are begun before it");
    for (wave, (first, last)) in seen.iter().take(TINTS.len()) {
        svg.key(
            Key::Cell(Waves::tint(*wave)),
            format!("wave {wave}: tiles {first} to {}", last.min(&(rows * columns - 1))),
        );
    }
    if seen.len() > TINTS.len() {
        svg.note(format!("Later waves, to wave {}, repeat the same colours.", seen.keys().next_back().unwrap_or(&0)));
    }
    svg.note(&*waves.how);
    if (shown_rows, shown_columns) != (rows, columns) {
        svg.note(format!(
            "Drawn: the first {shown_rows} of {rows} rows and {shown_columns} of {columns} columns of tiles."
        ));
    }
    svg.done()
}
