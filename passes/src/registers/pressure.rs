//! Peak register pressure of a thread's tiles.
//!
//! The tiles that are live at a statement are those whose elements are read later. Each counts with the registers of
//! its layout. A tile does not count if copies load it directly in front of the one statement that reads it, because
//! the assembler may load it piece by piece. If both operands of a product are loaded so, the smaller one counts:
//! instructions use all of it for each piece of the other. An unaligned tile counts twice, as the words that cover it.
//! [`super::overhead`] adds the other registers.

use super::code;
use super::overhead::{Code, overhead};
use super::thread::Context;
use crate::analysis::live_ranges;
use crate::analysis::uses::{all_stmts, for_each_read, place_of, stmt_exprs};
use crate::analysis::views::{for_each_tile, plain_var};
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::target::{REGISTERS_PER_THREAD, Target};
use tilec_ir::typing::resolve_view;

/// The point of highest register pressure.
#[derive(Copy, Clone, Debug)]
pub(crate) struct PeakPressure {
    /// The first statement at that pressure.
    pub(crate) at: Stmt,
    /// Registers of tiles.
    pub(crate) tiles: u64,
    /// Other registers.
    pub(crate) other: u64,
    /// The code properties that the other registers follow from.
    pub(crate) code: Code,
}

/// The point of highest pressure in a role. `None`: it has no tiles, or a tile that is too large by itself, which is
/// refused elsewhere.
pub(crate) fn peak_of_role(k: &Kernel, deferred: &Deferred, context: &Context, target: Target) -> Option<PeakPressure> {
    let mut tiles = BTreeMap::new();
    for s in all_stmts(k, context.body) {
        let (StmtData::Var { value, .. } | StmtData::Let { value, .. }) = k.stmts[s] else { continue };
        if let Some(tile) = live_ranges::declared(k, deferred, value, s) {
            tiles.insert(value, live_ranges::registers(k, value, &tile, context.threads));
        }
    }
    if tiles.is_empty() || tiles.values().any(|&n| n > u64::from(REGISTERS_PER_THREAD)) {
        return None;
    }
    let loads = Loads::of(k, deferred, context.body);
    for (tile, times) in &mut tiles {
        if loads.unaligned.contains(tile) {
            *times *= 2;
        }
    }
    for piece in loads.in_pieces(&tiles) {
        tiles.remove(&piece);
    }
    let code = code::of(k, deferred, context, target);
    let mut walk = Walk { k, deferred, tiles, code, most: None };
    walk.block(context.body, BTreeSet::new());
    walk.most
}

/// Loads of tiles from memory, and the readers of tiles.
struct Loads<'a> {
    k: &'a Kernel,
    /// For each tile, the copies that fill it, if nothing else does.
    fills: BTreeMap<Value, Vec<Stmt>>,
    /// The tiles that take over another tile's elements: the statement, and the other tile.
    taken_over: BTreeMap<Value, (Stmt, Value)>,
    /// The statements that read each tile.
    readers: BTreeMap<Value, Vec<Stmt>>,
    /// Tiles that are filled in aligned words and shifted into place.
    unaligned: BTreeSet<Value>,
}

impl Loads<'_> {
    fn of<'a>(k: &'a Kernel, deferred: &Deferred, body: Block) -> Loads<'a> {
        let mut loads = Loads {
            k,
            fills: BTreeMap::new(),
            taken_over: BTreeMap::new(),
            readers: BTreeMap::new(),
            unaligned: BTreeSet::new(),
        };
        for s in all_stmts(k, body) {
            let written = match &k.stmts[s] {
                StmtData::Copy { src, dst, attrs } => {
                    let loaded = resolve_view(k, *src).is_some_and(|view| view.space(k).is_memory());
                    if let Some(whole) = plain_var(k, *dst).filter(|_| loaded) {
                        loads.fills.entry(whole).or_default().push(s);
                        loads.unaligned.extend(attrs.unaligned().map(|_| whole));
                    }
                    if let (Some(from), Some(to)) = (plain_var(k, *src), plain_var(k, *dst)) {
                        loads.taken_over.insert(to, (s, from));
                    }
                    Some(*dst)
                }
                StmtData::Let { value, .. } if deferred.init(*value).is_some() => continue,
                _ => None,
            };
            for e in stmt_exprs(k, s).into_iter().filter(|&e| Some(e) != written) {
                for_each_tile(k, deferred, e, &mut |v| {
                    let readers = loads.readers.entry(v).or_default();
                    if readers.last() != Some(&s) {
                        readers.push(s);
                    }
                });
            }
        }
        loads
    }

    /// Tiles of which the assembler only holds pieces.
    fn in_pieces(&self, tiles: &BTreeMap<Value, u64>) -> Vec<Value> {
        let mut pieces: BTreeSet<Value> = self.fills.keys().copied().filter(|&v| self.is_in_pieces(v)).collect();
        pieces.extend(self.taken_over.keys().copied().filter(|&v| self.is_stored_in_pieces(v)));
        for s in self.readers.values().flatten() {
            let StmtData::Assign { src, .. } = self.k.stmts[*s] else { continue };
            let ExprData::Mma(mma) = &self.k.exprs[src] else { continue };
            if let (Some(a), Some(b)) = (plain_var(self.k, mma.a), plain_var(self.k, mma.b))
                && pieces.contains(&a)
                && pieces.contains(&b)
            {
                pieces.remove(if tiles.get(&a) > tiles.get(&b) { &b } else { &a });
            }
        }
        pieces.into_iter().collect()
    }

    /// Whether a single statement reads a tile, and each copy that fills it is in front of that statement in the same
    /// block. There may be no waits or long computations in between.
    fn is_in_pieces(&self, tile: Value) -> bool {
        let readers = self.readers.get(&tile).map_or(&[][..], |readers| readers);
        let [reader] = readers[..] else { return readers.is_empty() };
        let (block, end) = place_of(self.k, reader);
        self.fills[&tile].iter().all(|&s| {
            let (own, at) = place_of(self.k, s);
            own == block && at < end && self.k.blocks[block][at + 1..end].iter().all(|&t| self.passes(t))
        })
    }

    /// Whether a tile takes over elements of a tile that stays live, and is only stored: then lanes exchange pieces
    /// when these are stored.
    fn is_stored_in_pieces(&self, tile: Value) -> bool {
        let k = self.k;
        let (taken, from) = self.taken_over[&tile];
        let stores = |s: Stmt| match k.stmts[s] {
            StmtData::Copy { dst, .. } => resolve_view(k, dst).is_some_and(|view| view.space(k).is_memory()),
            _ => false,
        };
        let [store] = self.readers.get(&tile).map_or(&[][..], |readers| readers) else { return false };
        let ((block, at), (own, behind)) = (place_of(k, taken), place_of(k, *store));
        let lives_on = |&s: &Stmt| {
            let (other, place) = place_of(k, s);
            s != taken && (other != block || place > at)
        };
        let lives = self.readers.get(&from).is_some_and(|readers| readers.iter().any(lives_on));
        stores(*store) && own == block && behind > at && lives
    }

    /// Whether the assembler may move a load past a statement.
    fn passes(&self, s: Stmt) -> bool {
        match self.k.stmts[s] {
            StmtData::Copy { .. } | StmtData::Let { .. } | StmtData::Var { .. } => true,
            StmtData::Assign { src, .. } => !matches!(self.k.exprs[src], ExprData::Mma(_)),
            _ => false,
        }
    }
}

/// A backward walk over the text.
struct Walk<'a> {
    k: &'a Kernel,
    deferred: &'a Deferred,
    /// The tiles, and the registers of a thread for each.
    tiles: BTreeMap<Value, u64>,
    /// Code properties of each statement.
    code: BTreeMap<Stmt, Code>,
    most: Option<PeakPressure>,
}

/// Tiles whose elements are read later.
type Live = BTreeSet<Value>;

impl Walk<'_> {
    /// The live tiles in front of a block, from those after it.
    fn block(&mut self, block: Block, behind: Live) -> Live {
        self.k.blocks[block].iter().rev().fold(behind, |live, &s| self.stmt(s, live))
    }

    fn stmt(&mut self, s: Stmt, mut live: Live) -> Live {
        let k = self.k;
        self.note(s, &live);
        match &k.stmts[s] {
            StmtData::For { body, .. } => {
                // Values that are carried between iterations: repeated until no more tiles are live.
                loop {
                    let mut more = self.block(*body, live.clone());
                    more.extend(&live);
                    if more == live {
                        break;
                    }
                    live = more;
                }
            }
            StmtData::If { then, otherwise, .. } => {
                let skipped = match otherwise {
                    Some(other) => self.block(*other, live.clone()),
                    None => live.clone(),
                };
                live = self.block(*then, live);
                live.extend(skipped);
            }
            StmtData::Let { value, .. } | StmtData::Var { value, .. } => {
                live.remove(value);
            }
            StmtData::Assign { dst, .. } => {
                live.remove(dst);
            }
            StmtData::Copy { dst, .. } => {
                if let ExprData::Ref(whole) = k.exprs[*dst] {
                    live.remove(&whole);
                }
            }
            _ => live = k.sub_blocks(s).into_iter().fold(live, |live, b| self.block(b, live)),
        }
        let written = match k.stmts[s] {
            StmtData::Copy { dst, .. } => Some(dst),
            _ => None,
        };
        for e in stmt_exprs(k, s).into_iter().filter(|&e| Some(e) != written) {
            self.read(e, &mut live);
        }
        self.note(s, &live);
        live
    }

    /// Adds the tiles that an expression reads, also through deferred names.
    fn read(&self, e: Expr, live: &mut Live) {
        let mut named = BTreeSet::new();
        let mut rest = vec![e];
        while let Some(e) = rest.pop() {
            for_each_read(self.k, e, &mut |v| match self.deferred.init(v) {
                Some(init) => rest.extend(Some(init).filter(|_| named.insert(v))),
                None => live.extend(self.tiles.contains_key(&v).then_some(v)),
            });
        }
    }

    fn note(&mut self, s: Stmt, live: &Live) {
        let tiles = live.iter().filter_map(|v| self.tiles.get(v)).sum::<u64>();
        let code = self.code[&s];
        let beside = overhead(&code);
        if self.most.is_none_or(|most| tiles + beside >= most.tiles + most.other) {
            self.most = Some(PeakPressure { at: s, tiles, other: beside, code });
        }
    }
}
