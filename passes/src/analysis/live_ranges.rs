//! Live ranges of register tiles.

use crate::analysis::uses::{mentions, stmt_exprs};
use tilec_ir::bits::Bits;
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::layout::{RegLayout, UsedRegisters};
use tilec_ir::target::{WARP, WARPGROUP};
use tilec_ir::types::ElemRef;
use tilec_ir::typing::{Type, layout_of, let_init, resolve_view, type_of};

/// A register tile.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    /// Its extents.
    pub(crate) shape: Vec<u64>,
    /// Size of an element.
    pub(crate) elem: Bits,
}

impl Tile {
    /// Registers of a thread that hold it in the accumulator layout of `warpgroups` that share its rows. Tiles with one
    /// number for each row or column are replicated over threads.
    pub(crate) fn of_warpgroups(&self, groups: u64) -> u64 {
        let threads = groups * u64::from(WARPGROUP * WARP);
        let elements = match self.shape[..] {
            [1, columns] => columns.div_ceil(4),
            [rows, 1] => (rows * 4).div_ceil(threads),
            _ => self.shape.iter().product::<u64>().div_ceil(threads),
        };
        self.elem.words(elements)
    }
}

/// Registers of a thread that hold a tile: by its layout, or an equal share if no layout is decided.
pub(crate) fn registers(k: &Kernel, v: Value, tile: &Tile, threads: u64) -> u64 {
    let layout = match &k.values[v].def {
        ValueDef::Var(t) => t.reg_layout.clone(),
        ValueDef::Let => let_init(k, v).and_then(|init| layout_of(k, init)),
        _ => None,
    };
    let elements = match layout {
        Some(layout) => elements_per_thread(&layout, &tile.shape),
        None => tile.shape.iter().product::<u64>() / threads.max(1),
    };
    let components = match &k.values[v].def {
        ValueDef::Let => let_init(k, v).and_then(|init| k.tuples(init)).map_or(1, |tuples| tuples.args.len() as u64),
        _ => 1,
    };
    tile.elem.words(elements) * components
}

/// Elements of a tile that a thread holds.
pub(crate) fn elements_per_thread(layout: &RegLayout, shape: &[u64]) -> u64 {
    let all = 1usize << layout.value_bits().min(32);
    UsedRegisters::of(layout, shape).map_or(all, |held| held.count(all)) as u64
}

/// The register tile that a statement declares; `None` for names whose expressions are computed where they are used.
pub(crate) fn declared(k: &Kernel, deferred: &Deferred, v: Value, s: Stmt) -> Option<Tile> {
    let known = |elem: ElemRef| match elem {
        ElemRef::Known(elem) => Some(elem.size()),
        ElemRef::Param(_) => None,
    };
    let of = |e: Expr| match type_of(k, e) {
        Ok(Type::Tile(tile)) => tile.known_shape().zip(known(tile.elem)),
        _ => None,
    };
    let found = match k.stmts[s] {
        StmtData::Var { .. } => k.tile_ty(v).and_then(|t| k.const_shape(&t.shape).zip(known(t.elem))),
        StmtData::Let { init, .. } if deferred.init(v).is_none() && resolve_view(k, init).is_none() => of(init),
        _ => None,
    };
    found.filter(|(shape, _)| !shape.is_empty()).map(|(shape, elem)| Tile { shape, elem })
}

/// A variable that is a tile with known extents.
pub(crate) fn tile_of(k: &Kernel, v: Value) -> Option<Tile> {
    let t = k.tile_ty(v)?;
    let ElemRef::Known(elem) = t.elem else { return None };
    let shape = k.const_shape(&t.shape).filter(|shape| !shape.is_empty())?;
    Some(Tile { shape, elem: elem.size() })
}

/// The live range of a tile in the text.
pub(crate) struct Range {
    pub(crate) value: Value,
    pub(crate) tile: Tile,
    /// First and last statement, numbered in the order of the text.
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// The live ranges of all register tiles of a kernel.
pub(crate) struct Ranges {
    pub(crate) tiles: Vec<Range>,
    order: Order,
}

impl Ranges {
    /// The number of a statement in the order of the text.
    pub(crate) fn position(&self, s: Stmt) -> Option<usize> {
        self.order.stmts.iter().position(|&t| t == s)
    }
}

/// The register tiles that are live at each statement, in the order of the text. A tile that a statement reads for the
/// last time shares registers with the tile that the statement writes, because elements are computed one after the
/// other.
pub(crate) fn tiles(k: &Kernel) -> Vec<Vec<Tile>> {
    let ranges = ranges(k);
    let mut at = vec![Vec::new(); ranges.order.stmts.len()];
    for range in &ranges.tiles {
        at[range.from..range.to.max(range.from + 1)].iter_mut().for_each(|tiles| tiles.push(range.tile.clone()));
    }
    at
}

/// Elements of all register tiles of a block at the point of most register pressure.
pub(crate) fn most_elements(k: &Kernel) -> u64 {
    let elements = |tiles: &Vec<Tile>| tiles.iter().map(|t| t.shape.iter().product::<u64>()).sum::<u64>();
    tiles(k).iter().map(elements).max().unwrap_or(0)
}

/// Registers per thread that tiles take at the point of most register pressure, with this number of warpgroups.
pub(crate) fn most_of_warpgroups(k: &Kernel, groups: u64) -> u64 {
    let at = |tiles: &Vec<Tile>| tiles.iter().map(|t| t.of_warpgroups(groups)).sum::<u64>();
    tiles(k).iter().map(at).max().unwrap_or(0)
}

/// Like [`most_of_warpgroups`], at these statements and those inside them. `groups`: the number of warpgroups that
/// share a tile.
pub(crate) fn peak_within(k: &Kernel, places: &[Stmt], groups: impl Fn(&Tile) -> u64) -> u64 {
    let mut order = Order::default();
    order.walk(k, k.body);
    let mut inside = vec![false; order.stmts.len()];
    for (at, _) in order.stmts.iter().enumerate().filter(|(_, s)| places.contains(s)) {
        let end = order.loops.iter().find(|l| l.0 == at).map_or(at + 1, |l| l.1);
        inside[at..end].fill(true);
    }
    let of = |tiles: &Vec<Tile>| tiles.iter().map(|t| t.of_warpgroups(groups(t))).sum::<u64>();
    tiles(k).iter().zip(inside).filter(|(_, inside)| *inside).map(|(tiles, _)| of(tiles)).max().unwrap_or(0)
}

/// The live range of each register tile.
pub(crate) fn ranges(k: &Kernel) -> Ranges {
    let deferred = Deferred::of(k);
    let mut order = Order::default();
    order.walk(k, k.body);
    let mut tiles = Vec::new();
    for (from, &s) in order.stmts.iter().enumerate() {
        let (StmtData::Var { value, .. } | StmtData::Let { value, .. }) = k.stmts[s] else { continue };
        let Some(tile) = declared(k, &deferred, value, s) else { continue };
        let from = order.written(k, value, from);
        let to = order.last_use(k, value, from);
        tiles.push(Range { value, tile, from, to });
    }
    Ranges { tiles, order }
}

/// Statements in the order of the text, and the extent of each loop.
#[derive(Default)]
struct Order {
    stmts: Vec<Stmt>,
    loops: Vec<(usize, usize)>,
}

impl Order {
    fn walk(&mut self, k: &Kernel, block: Block) {
        for &s in &k.blocks[block] {
            let first = self.stmts.len();
            self.stmts.push(s);
            k.sub_blocks(s).into_iter().for_each(|b| self.walk(k, b));
            if matches!(k.stmts[s], StmtData::For { .. }) {
                self.loops.push((first, self.stmts.len()));
            }
        }
    }

    /// The first write of a value declared at `from`, if it has none before: a copy of the whole tile.
    fn written(&self, k: &Kernel, v: Value, from: usize) -> usize {
        if !matches!(k.stmts[self.stmts[from]], StmtData::Var { init: None, .. }) {
            return from;
        }
        let first = (from + 1..self.stmts.len()).find(|&i| self.uses(k, i, v));
        let whole = |&i: &usize| match k.stmts[self.stmts[i]] {
            StmtData::Copy { src, dst, .. } => {
                matches!(k.exprs[dst], ExprData::Ref(w) if w == v) && !mentions(k, src, v)
            }
            _ => false,
        };
        first.filter(whole).unwrap_or(from)
    }

    fn uses(&self, k: &Kernel, i: usize, v: Value) -> bool {
        let s = self.stmts[i];
        stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, v))
            || matches!(k.stmts[s], StmtData::Assign { dst, .. } if dst == v)
    }

    /// The last statement that uses a value declared at `from`. If a loop carries the value, the end of that loop.
    fn last_use(&self, k: &Kernel, v: Value, from: usize) -> usize {
        let places = (from + 1..self.stmts.len()).filter(|&i| self.uses(k, i, v));
        let lasts = places.map(|i| {
            let around =
                self.loops.iter().filter(|(first, end)| (first..end).contains(&&i) && !(first..end).contains(&&from));
            around.map(|&(_, end)| end).max().unwrap_or(i)
        });
        lasts.max().unwrap_or(from)
    }
}

/// The register tile that a statement sets to zero.
pub(crate) fn zeroed(k: &Kernel, s: Stmt) -> Option<Value> {
    let (value, e) = match k.stmts[s] {
        StmtData::Var { value, init: Some(e) } => (value, e),
        StmtData::Assign { dst, src } => (dst, src),
        _ => return None,
    };
    let zero = match k.exprs[e] {
        ExprData::Int(0) => true,
        ExprData::Float(bits) => f64::from_bits(bits) == 0.0,
        _ => false,
    };
    zero.then_some(value)
}
