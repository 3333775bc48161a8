//! What loops over tiles of a chosen size carry from tile to tile.
//!
//! What is declared in front of such a loop and is still needed behind it must come out the same however the range is cut into tiles. So it is begun anew with something that does
//! not change; or it is a sum (of products and `sum`s along the range, of values for each position), an extreme (`max(x, maximum(..))`), or a sum of exponentials that is divided by
//! that of an extreme (`scaled`), by itself or with what does not change. What is stored in the loop must not depend on how far such a sum is.
//!
//! What is behind the end of the range reads as zero, and must make no difference: a sum is of what is zero there, an extreme of what is masked
//! (`select(k + iota(x, 1) < K, x, -1.0e30)`) or nowhere less than zero. That a bound of positions from above is right is the author's word: rows of causal attention, for instance, are
//! bounded by their own positions.

mod exponent;
mod kind;
mod needed;
mod scaled;
mod tiles;
mod values;

use crate::analysis::uses::all_stmts;
use exponent::Scales;
use kind::{Kind, Pad, Scale, mixed};
use needed::is_needed;
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Span};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, Kernel, StmtData};
use tilec_ir::loop_ends::meaning;
use tilec_ir::types::Elem;
use tilec_ir::typing::{resolve_view, same_product, type_of};
use tiles::{Tiles, literal, pad_of};
use values::{is_whole, is_wider, rounded};

/// A body is looked at so often until what it leaves stays the same.
const ROUNDS: usize = 8;

/// A loop over tiles of a chosen size.
pub(super) struct Loop {
    pub(super) stmt: Stmt,
    /// What is chosen.
    pub(super) parameter: Value,
    /// The extent of a tile.
    pub(super) size: Expr,
    /// The variable is the number of a tile, not its first position.
    pub(super) numbers: bool,
    /// The last tile may have positions behind it.
    pub(super) padded: bool,
}

/// Says what a loop carries that depends on a choice.
pub(super) fn check(k: &Kernel, of: &Loop) -> Vec<Diagnostic> {
    let &Loop { stmt: s, parameter, size, numbers, padded } = of;
    let StmtData::For { var, body, .. } = k.stmts[s] else { return Vec::new() };
    let inside = k.blocks[body].iter().flat_map(|&s| under(k, s)).collect::<Vec<Stmt>>();
    let mut tiles = Tiles {
        k,
        var,
        size,
        numbers,
        padded,
        stored: BTreeSet::new(),
        over_tile: BTreeSet::new(),
        kinds: BTreeMap::new(),
        at: BTreeMap::new(),
        stores: Vec::new(),
        scales: Scales::default(),
    };
    let own = tiles.places(&inside);
    let outer: Vec<Value> = tiles.kinds.keys().copied().filter(|v| !own.contains(v)).collect();
    tiles.block(body);
    let mut wrong = Vec::new();
    for v in outer {
        let fine = match tiles.kinds[&v] {
            Kind::Zero | Kind::Fixed => true,
            Kind::Old(w) | Kind::Grown(w, ..) => w == v,
            Kind::Scaled(w, scale) => w == v && tiles.ends_with(scale),
            _ => false,
        };
        if !fine && is_needed(k, s, v) {
            let name = &k.values[v].name;
            let span = tiles.at.get(&v).copied().unwrap_or(k.values[v].span);
            wrong.push(diagnostic(
                k,
                span,
                &format!("`{name}` is carried from tile to tile by more than a sum or an extreme"),
                parameter,
            ));
        }
    }
    tiles.stores.sort_by_key(|span| (span.start, span.end));
    tiles.stores.dedup();
    for &span in &tiles.stores {
        wrong.push(diagnostic(k, span, "what is stored depends on the tiles in front of this one", parameter));
    }
    wrong
}

fn diagnostic(k: &Kernel, span: Span, what: &str, parameter: Value) -> Diagnostic {
    let (name, declared) = (&k.values[parameter].name, k.values[parameter].span);
    let message = format!(
        "{what}: the number of tiles depends on `{name}`, which is `auto`, and another choice would give another result"
    );
    Diagnostic::error(codes::DEPENDS_ON_CHOICE, span, message)
        .with_place(declared, format!("`{name}` is `auto` here"))
        .with_note(format!("give `{name}` a value, with `-D {name}=...` or in the source; or promise that it makes no difference: `{name} = auto promised`"))
        .with_note("behind the end of the range is zero: let a sum be of what is zero there, and an extreme of what is masked, such as `select(k + iota(x, 1) < K, x, -1.0e30)`")
}

/// The place or tensor that a statement stores to.
fn changed_by(k: &Kernel, s: Stmt) -> Option<Value> {
    match k.stmts[s] {
        StmtData::Assign { dst, .. } => Some(dst),
        StmtData::Copy { dst, ref attrs, .. } if !attrs.is_prefetch() => resolve_view(k, dst).map(|view| view.base),
        _ => None,
    }
}

/// A statement and all inside it.
fn under(k: &Kernel, s: Stmt) -> Vec<Stmt> {
    let inside = k.sub_blocks(s).into_iter().flat_map(|b| all_stmts(k, b));
    std::iter::once(s).chain(inside).collect()
}

impl Tiles<'_> {
    /// Begins with what is before an iteration; returns what each declares anew.
    fn places(&mut self, inside: &[Stmt]) -> BTreeSet<Value> {
        let k = self.k;
        let (mut own, mut changed) = (BTreeSet::new(), BTreeSet::new());
        for s in all_stmts(k, k.body) {
            changed.extend(changed_by(k, s));
            if let StmtData::Var { value, init: Some(init) } = k.stmts[s]
                && literal(k, init) == Some(0.0)
            {
                self.kinds.insert(value, Kind::Zero);
            }
        }
        self.kinds.retain(|v, _| !changed.contains(v));
        for &s in inside {
            match k.stmts[s] {
                StmtData::Let { value, .. } | StmtData::Var { value, .. } | StmtData::Alloc { value, .. } => {
                    own.insert(value);
                }
                _ => {}
            }
            let Some(v) = changed_by(k, s) else { continue };
            if k.values[v].def.space().has_bounds() {
                self.stored.insert(v);
            } else {
                self.kinds.insert(v, Kind::Old(v));
            }
        }
        own
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
                let kind = self.of(init);
                self.kinds.insert(value, kind);
            }
            StmtData::Var { value, init } => {
                let kind = init.map_or(Kind::Fixed, |e| self.of(e));
                self.kinds.insert(value, kind);
            }
            StmtData::Alloc { value, .. } => {
                self.kinds.insert(value, Kind::Fixed);
            }
            StmtData::Assign { dst, src } => {
                let kind = self.of(src);
                self.set(dst, kind, k.stmt_spans[s]);
            }
            StmtData::Copy { src, dst, ref attrs } if !attrs.is_prefetch() => self.copy(s, [src, dst], attrs),
            StmtData::For { var, start, end, step, body, .. } => {
                let bounds = [start, end, step].map(|e| self.of(e));
                let fixed = bounds.iter().all(|kind| kind.is_fixed());
                if k.as_int(start) == Some(0) && same_product(k, meaning(k, end), meaning(k, self.size)) {
                    self.over_tile.insert(var);
                }
                self.kinds.insert(var, if fixed { Kind::Fixed } else { mixed(&bounds) });
                self.repeated(body, if fixed { Kind::Fixed } else { mixed(&bounds) });
            }
            StmtData::If { cond, then, otherwise } => {
                let (cond, before) = (self.of(cond), self.kinds.clone());
                self.block(then);
                let then = std::mem::replace(&mut self.kinds, before);
                otherwise.into_iter().for_each(|b| self.block(b));
                self.either(&then, cond);
            }
            StmtData::Ordered { body } | StmtData::Role { body, .. } => self.block(body),
            _ => {}
        }
    }

    /// What holds where either this or `other` was done, as something of kind `by` says.
    fn either(&mut self, other: &BTreeMap<Value, Kind>, by: Kind) {
        for (v, &b) in other {
            let a = *self.kinds.entry(*v).or_insert(b);
            let joined = if a == b {
                a
            } else if by.is_fixed() {
                a.join(b)
            } else {
                mixed(&[a, b, by])
            };
            self.kinds.insert(*v, joined);
        }
    }

    /// A loop in the loop.
    fn repeated(&mut self, body: Block, by: Kind) {
        for _ in 0..ROUNDS {
            let before = self.kinds.clone();
            self.block(body);
            self.either(&before, by);
            if self.kinds == before {
                return;
            }
        }
        self.kinds.values_mut().for_each(|kind| *kind = Kind::Other { carried: true });
    }

    /// Whether the iteration ends with the extreme that a sum of exponentials is divided by.
    fn ends_with(&self, scale: Scale) -> bool {
        let Scale { extreme, last, .. } = scale;
        matches!(self.kinds.get(&extreme), Some(&Kind::Grown(v, _, own)) if v == extreme && own == Some(last))
    }

    fn set(&mut self, dst: Value, kind: Kind, span: Span) {
        if !matches!(kind, Kind::Old(v) | Kind::Grown(v, ..) | Kind::Scaled(v, _) if v == dst) && !kind.is_fixed() {
            self.at.entry(dst).or_insert(span);
        }
        self.kinds.insert(dst, kind);
    }

    fn copy(&mut self, s: Stmt, [src, dst]: [Expr; 2], attrs: &CopyAttrs) {
        let k = self.k;
        let mut kind = self.of(src);
        if let (Kind::Each { axes, .. }, Some(fill)) = (kind, attrs.fill.filter(|fill| !fill.is_zero())) {
            let fill = fill.value(Elem::F64).map_or(Pad::Finite, pad_of);
            kind = Kind::Each { axes, pad: fill };
        }
        if let Some(when) = attrs.when.map(|e| self.of(e)).filter(|when| !when.is_fixed()) {
            kind = mixed(&[kind, when]);
        }
        let Some(view) = resolve_view(k, dst) else { return };
        if view.space(k).has_bounds() {
            if kind.is_carried() {
                self.stores.push(k.stmt_spans[s]);
            }
            return;
        }
        let elem = k.tile_ty(view.base).map(|tile| tile.elem);
        if type_of(k, src).ok().and_then(|t| t.elem()).zip(elem).is_some_and(|(from, to)| !is_wider(from, to)) {
            kind = rounded(kind);
        }
        if view.transposed {
            kind = kind.transposed();
        }
        let before = self.kinds.get(&view.base).copied().unwrap_or(Kind::Fixed);
        if attrs.keep || attrs.reduce.is_some() || !is_whole(&view) {
            // What is in the rest is from before, and elements for each position stay beside those of other tiles.
            let each = matches!(kind, Kind::Each { .. }) || matches!(before, Kind::Each { .. });
            let joins = !each && before != Kind::Old(view.base) && attrs.reduce.is_none();
            kind = if joins { before.join(kind) } else { mixed(&[before, kind]) };
        }
        self.set(view.base, kind, k.stmt_spans[s]);
    }
}
