//! Loop-carried values of loops over tiles of a chosen size.
//!
//! A value that is declared in front of such a loop and used after it must be the same for every division of the range
//! into tiles. So it is reset to something that does not change, or it is one of these, possibly combined with
//! invariant values: a sum (of products and `sum`s along the range, of values for each position), an extreme (`max(x,
//! maximum(..))`), or a sum of exponentials that an extreme rescales (`scaled`). Stores in the loop are for each
//! position, at that position, or the same for all tiles. Atomic stores (`add`) may store a tile's part of a sum or an
//! extreme (`stores`).
//!
//! Elements past the end of the range read as zero, and must not change the result. A sum must be of values that are
//! zero there; an extreme must be of values that are masked (`select(k + iota(x, 1) < K, x, -1.0e30)`) or nowhere less
//! than zero. A tile may have a sum or an extreme for each place in it that is combined after the loop (`spread`). A mask counts if it provably leaves no element past the end ([`Inequalities`]). For example, rows of
//! causal attention are bounded by their own positions, and stored rows are in front of the end.
//!
//! A tile from a channel counts as the window that the producer put into it, if both loops run over the same tiles
//! (`Channels`).

mod dependence_kind;
mod exponent;
mod guard;
mod join;
mod live_after_loop;
mod report;
mod scaled;
mod spread;
mod stores;
mod tiles;
mod values;

use crate::analysis::inequalities::Inequalities;
use crate::analysis::past_end::Pad;
use crate::analysis::uses::all_stmts;
use crate::caller::Caller;
use dependence_kind::{Kind, Scale, mixed};
use exponent::Scales;
use live_after_loop::is_needed;
use report::{What, Wrong, reported};
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::diag::Diagnostic;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, Kernel, StmtData, ValueDef};
use tilec_ir::loop_ends::meaning;
use tilec_ir::ops::ReduceOp;
use tilec_ir::types::Elem;
use tilec_ir::typing::{Extent, Type, resolve_view, same_product, type_of};
pub(super) use tiles::Loop;
use tiles::{Tiles, literal};
use values::{converted, is_whole};

/// The values that loops over tiles put into channels.
#[derive(Default)]
pub(super) struct Channels(Vec<(Value, Loop, Kind)>);

impl Channels {
    /// The values that these loops put into channels, including values computed from other channels.
    pub(super) fn of(known: &Inequalities<'_>, loops: &[Loop]) -> Channels {
        let k = known.kernel();
        let mut channels = Channels::default();
        if k.values.keys().all(|v| !is_channel(k, v)) {
            return channels;
        }
        // Twice, because a channel may be read in front of the loop that fills it in the text.
        for _ in 0..2 {
            let found = loops.iter().flat_map(|of| {
                let puts = Tiles::of_loop(known, of, of.padded, &channels).puts;
                puts.into_iter().map(|(channel, kind)| (channel, *of, kind))
            });
            channels = Channels(found.collect());
        }
        channels
    }

    /// The value that the loop `of` takes from a channel.
    fn taken(&self, k: &Kernel, channel: Value, of: &Loop) -> Option<Kind> {
        let mut puts = self.0.iter().filter(|put| put.0 == channel).peekable();
        puts.peek()?;
        let same = |a, b| same_product(k, meaning(k, a), meaning(k, b));
        let own = puts.filter(|(_, other, _)| same(other.size, of.size) && same(other.end, of.end)).map(|put| put.2);
        let alike = own.reduce(|a, b| if a == b { a } else { Kind::Other { carried: false } });
        let kind = alike.unwrap_or(Kind::Other { carried: false });
        Some(if kind.is_carried() { Kind::Other { carried: false } } else { kind })
    }
}

/// Reports loop-carried values that depend on a choice.
pub(super) fn check(known: &Inequalities<'_>, of: &Loop, channels: &Channels, caller: Caller) -> Vec<Diagnostic> {
    let k = known.kernel();
    let tiles = Tiles::of_loop(known, of, of.padded, channels);
    let wrong = tiles.wrong(of.stmt);
    if wrong.is_empty() {
        return Vec::new();
    }
    // Faults that remain if no elements are past the end.
    let whole = Tiles::of_loop(known, of, false, channels);
    let others: Vec<What> = whole.wrong(of.stmt).into_iter().map(|wrong| wrong.what).collect();
    let behind = |wrong: &Wrong| !others.contains(&wrong.what);
    wrong
        .iter()
        .map(|wrong| reported(k, of, wrong, behind(wrong).then(|| whole.combines(wrong.what)), caller))
        .collect()
}

/// The variable, buffer or tensor to which a statement stores.
fn changed_by(k: &Kernel, s: Stmt) -> Option<Value> {
    match k.stmts[s] {
        StmtData::Assign { dst, .. } => Some(dst),
        StmtData::Copy { dst, ref attrs, .. } if !attrs.is_prefetch() => resolve_view(k, dst).map(|view| view.base),
        _ => None,
    }
}

/// A statement and all statements inside it.
fn under(k: &Kernel, s: Stmt) -> Vec<Stmt> {
    let inside = k.sub_blocks(s).into_iter().flat_map(|b| all_stmts(k, b));
    std::iter::once(s).chain(inside).collect()
}

impl<'d> Tiles<'d> {
    /// The values after an iteration; `padded`: the last tile may have positions past the end.
    fn of_loop(known: &'d Inequalities<'d>, of: &Loop, padded: bool, channels: &Channels) -> Tiles<'d> {
        let k = known.kernel();
        let (var, body) = match k.stmts[of.stmt] {
            StmtData::For { var, body, .. } => (var, body),
            ref other => unreachable!("no loop over tiles: {other:?}"),
        };
        let mut tiles = Tiles {
            k,
            known,
            behind: known.behind_tiles(var, of.size, of.end, of.numbers),
            var,
            size: of.size,
            numbers: of.numbers,
            padded,
            stored: Vec::new(),
            over_tile: BTreeSet::new(),
            kinds: BTreeMap::new(),
            outer: Vec::new(),
            at: BTreeMap::new(),
            stores: BTreeMap::new(),
            puts: BTreeMap::new(),
            begins_with: BTreeMap::new(),
            guarded: BTreeSet::new(),
            shape: None,
            scales: Scales::default(),
        };
        let inside = k.blocks[body].iter().flat_map(|&s| under(k, s)).collect::<Vec<Stmt>>();
        tiles.places(&inside);
        for &(channel, ..) in &channels.0 {
            tiles.kinds.extend(channels.taken(k, channel, of).map(|kind| (channel, kind)));
        }
        tiles.block(body);
        tiles
    }

    /// Initialises the values in front of an iteration.
    fn places(&mut self, inside: &[Stmt]) {
        let k = self.k;
        let (mut own, mut changed, mut held) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
        for s in all_stmts(k, k.body) {
            changed.extend(changed_by(k, s));
            let init = match k.stmts[s] {
                StmtData::Var { value, init: Some(init) } => Some((value, literal(k, init))),
                StmtData::Assign { dst, src } => Some((dst, literal(k, src))),
                _ => changed_by(k, s).map(|v| (v, None)),
            };
            if let Some((v, number)) = init.filter(|_| !inside.contains(&s)) {
                held.entry(v).and_modify(|held| *held = if *held == number { number } else { None }).or_insert(number);
            }
        }
        self.begins_with = held.into_iter().filter_map(|(v, number)| Some((v, number?))).collect();
        let zero = self.begins_with.iter().filter(|(v, number)| **number == 0.0 && !changed.contains(v));
        self.kinds = zero.map(|(&v, _)| (v, Kind::Zero)).collect();
        for &s in inside {
            match k.stmts[s] {
                StmtData::Let { value, .. } | StmtData::Var { value, .. } | StmtData::Alloc { value, .. } => {
                    own.insert(value);
                }
                StmtData::Copy { dst, ref attrs, .. } if !attrs.is_prefetch() => {
                    self.stored.extend(resolve_view(k, dst).filter(|view| view.space(k).has_bounds()));
                }
                _ => {}
            }
            let Some(v) = changed_by(k, s) else { continue };
            if !k.values[v].def.space().has_bounds() && !is_channel(k, v) {
                self.kinds.insert(v, Kind::Old(v));
            }
        }
        self.outer = self.kinds.keys().copied().filter(|v| !own.contains(v)).collect();
    }

    /// Values and stores that depend on the number of tiles.
    fn wrong(&self, s: Stmt) -> Vec<Wrong> {
        let k = self.k;
        let mut wrong = Vec::new();
        for &v in &self.outer {
            let fine = match self.kinds[&v] {
                Kind::Zero | Kind::Fixed => true,
                Kind::Old(w) | Kind::Grown(w, ..) => w == v,
                Kind::Scaled(w, scale) => w == v && self.ends_with(scale),
                Kind::Spread { of, op, axis } => of == v && self.is_reduced(s, v, op, axis),
                _ => false,
            };
            if !fine && is_needed(k, s, v) {
                wrong.push(Wrong { what: What::Carried(v), span: self.at.get(&v).map_or(k.values[v].span, |at| at.0) });
            }
        }
        let stores = self.stores.iter();
        let mut stores: Vec<Wrong> =
            stores.map(|(&s, &carried)| Wrong { what: What::Stored(s, carried), span: k.stmt_spans[s] }).collect();
        stores.sort_by_key(|wrong| (wrong.span.start, wrong.span.end));
        wrong.extend(stores);
        wrong
    }

    /// How a value is combined with those of other tiles.
    fn combines(&self, what: What) -> ReduceOp {
        match what {
            What::Carried(v) => match self.kinds[&v] {
                Kind::Grown(_, op, _) | Kind::Spread { op, .. } => op,
                // The largest exponential determines the scale.
                Kind::Scaled(..) => ReduceOp::Maximum,
                _ => ReduceOp::Sum,
            },
            What::Stored(s, _) => match self.k.stmts[s] {
                StmtData::Copy { ref attrs, .. } => attrs.reduce.and_then(stores::reduction).unwrap_or(ReduceOp::Sum),
                _ => ReduceOp::Sum,
            },
        }
    }

    fn block(&mut self, b: Block) {
        let k = self.k;
        for &s in &k.blocks[b] {
            self.stmt(s);
        }
    }

    fn stmt(&mut self, s: Stmt) {
        let k = self.k;
        match k.stmts[s] {
            StmtData::Let { value, init } if resolve_view(k, init).is_none_or(|view| !view.space(k).has_bounds()) => {
                let kind = self.of_tile(init, init);
                self.kinds.insert(value, kind);
            }
            StmtData::Var { value, init } => {
                let kind = init.map_or(Kind::Fixed, |e| self.of_tile(e, e));
                self.kinds.insert(value, kind);
            }
            StmtData::Alloc { value, .. } => {
                self.kinds.insert(value, Kind::Fixed);
            }
            StmtData::Assign { dst, src } => {
                let mut kind = self.of_tile(src, src);
                if matches!(kind, Kind::Other { carried: true } | Kind::Exponent(_)) {
                    self.shape = self.shape_of(src);
                    kind = self.spread(dst, src).unwrap_or(kind);
                    self.shape = None;
                }
                self.set(dst, kind, s);
            }
            StmtData::Copy { src, dst, ref attrs } if !attrs.is_prefetch() => self.copy(s, [src, dst], attrs),
            StmtData::For { var, start, end, step, body, .. } => {
                let bounds = [start, end, step].map(|e| self.of(e));
                let fixed = bounds.iter().all(|kind| kind.is_fixed());
                if k.as_int(start) == Some(0) && same_product(k, meaning(k, end), meaning(k, self.size)) {
                    self.over_tile.insert(var);
                }
                self.kinds.insert(var, if fixed { Kind::Fixed } else { mixed(&bounds) });
                self.repeated(s, body, if fixed { Kind::Fixed } else { mixed(&bounds) });
            }
            StmtData::If { cond, then, otherwise } => {
                let (cond, before) = (self.of(cond), self.kinds.clone());
                self.block(then);
                let then = std::mem::replace(&mut self.kinds, before);
                otherwise.into_iter().for_each(|b| self.block(b));
                self.either(&then, cond, s);
            }
            StmtData::Ordered { body } | StmtData::Role { body, .. } => self.block(body),
            _ => {}
        }
    }

    /// Whether the iteration ends with the extreme to which a sum of exponentials is scaled, and guards treat it
    /// correctly.
    fn ends_with(&self, scale: Scale) -> bool {
        let Some(&Kind::Grown(v, op, own)) = self.kinds.get(&scale.extreme) else { return false };
        let guarded = self.guarded.contains(&(v, op != ReduceOp::Maximum));
        v == scale.extreme && own == Some(scale.last) && !guarded
    }

    /// The kind of an expression with the shape of `tile`, or with its own shape.
    fn of_tile(&mut self, e: Expr, tile: Expr) -> Kind {
        self.shape = self.shape_of(e).or_else(|| self.shape_of(tile));
        let kind = self.of(e);
        self.shape = None;
        kind
    }

    fn shape_of(&self, e: Expr) -> Option<Vec<Extent>> {
        match type_of(self.k, e) {
            Ok(Type::Tile(tile)) => Some(tile.shape),
            _ => None,
        }
    }

    fn set(&mut self, dst: Value, kind: Kind, s: Stmt) {
        let joins = matches!(kind, Kind::Old(v) | Kind::Grown(v, ..) | Kind::Spread { of: v, .. } | Kind::Scaled(v, _) if v == dst)
            || kind.is_fixed();
        let at = self.at.entry(dst).or_insert((self.k.stmt_spans[s], joins));
        if at.1 {
            *at = (self.k.stmt_spans[s], joins);
        }
        self.kinds.insert(dst, kind);
    }

    fn copy(&mut self, s: Stmt, [src, dst]: [Expr; 2], attrs: &CopyAttrs) {
        let k = self.k;
        let mut kind = self.of_tile(src, dst);
        if let (Kind::Each { axes, .. }, Some(fill)) = (kind, attrs.fill.filter(|fill| !fill.is_zero())) {
            kind = Kind::Each { axes, pad: fill.value(Elem::F64).map_or(Pad::UNKNOWN, Pad::fill) };
        }
        if let Some(when) = attrs.when.map(|e| self.of(e)).filter(|when| !when.is_fixed()) {
            kind = mixed(&[kind, when]);
        }
        let Some(view) = resolve_view(k, dst) else { return };
        if view.space(k).has_bounds() {
            self.store(s, kind, [src, dst], attrs);
            return;
        }
        let elem = k.tile_ty(view.base).map(|tile| tile.elem);
        if let Some((from, to)) = type_of(k, src).ok().and_then(|t| t.elem()).zip(elem) {
            kind = converted(kind, from, to);
        }
        if view.transposed {
            kind = kind.transposed();
        }
        if is_channel(k, view.base) {
            let put = if is_whole(&view) && !attrs.keep { kind } else { mixed(&[kind]) };
            let all = self.puts.entry(view.base).or_insert(put);
            *all = if *all == put { put } else { mixed(&[*all, put]) };
            return;
        }
        let before = self.kinds.get(&view.base).copied().unwrap_or(Kind::Fixed);
        if attrs.keep || attrs.reduce.is_some() || !is_whole(&view) {
            // The other elements keep old values, and values for each position are not combined with those of other
            // tiles.
            let each = matches!(kind, Kind::Each { .. }) || matches!(before, Kind::Each { .. });
            let joins = !each && before != Kind::Old(view.base) && attrs.reduce.is_none();
            kind = if joins { before.join(kind) } else { mixed(&[before, kind]) };
        }
        self.set(view.base, kind, s);
    }
}

fn is_channel(k: &Kernel, v: Value) -> bool {
    matches!(k.values[v].def, ValueDef::Channel { .. })
}
