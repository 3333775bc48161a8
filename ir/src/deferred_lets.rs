//! Which `let`s are computed where they are stored.
//!
//! `let x = alpha * acc + bias[..]` names the elements of a register tile. No registers need to hold it if every use of
//! `x` is in a copy to global memory, or to a buffer that TMA stores move there. What it reads must not change up to
//! there. Each group of elements is computed when it is stored, with operands in memory read as wide as the store.
//! Other tiles are computed at their `let`.
//!
//! Results do not depend on this: a name is rounded to its type in either case ([`crate::rounding`]).

use crate::entities::{Block, Expr, Stmt, Value};
use crate::kernel::{ExprData, Kernel, StmtData, ValueDef};
use crate::names::Parts;
use crate::tensor_store::is_stored;

use crate::typing::{Type, fixed_shape, resolve_view, type_of};
use cranelift_entity::SecondaryMap;

/// The deferred `let`s of a kernel, with their initialisers.
#[derive(Clone, Debug, Default)]
pub struct Deferred {
    inits: SecondaryMap<Value, Option<Expr>>,
}

impl Deferred {
    /// Finds them.
    pub fn of(k: &Kernel) -> Deferred {
        let mut stmts = Vec::new();
        k.walk(k.body, &mut |k, _, s| stmts.push((s, matches!(k.stmts[s], StmtData::Let { .. }))));
        let mut found = Deferred::default();
        if !stmts.iter().any(|&(_, is_let)| is_let) {
            return found;
        }
        let mut users: SecondaryMap<Value, Vec<Stmt>> = SecondaryMap::new();
        for &(s, _) in &stmts {
            for e in k.stmts[s].exprs() {
                mentioned(k, e, &mut |v| {
                    if users[v].last() != Some(&s) {
                        users[v].push(s);
                    }
                });
            }
        }
        let mut copies: SecondaryMap<Value, Vec<Stmt>> = SecondaryMap::new();
        // A `let` is used after it is declared: the last one first.
        for &(s, _) in stmts.iter().rev().filter(|&&(_, is_let)| is_let) {
            let StmtData::Let { value, init } = k.stmts[s] else { continue };
            if !names_elements(k, init) {
                continue;
            }
            let Some(at) = final_copies(k, &users[value], &found, &copies, value) else { continue };
            // A window combined with a row takes the extents of the row at the `let`, not those of the stored tile.
            if reads_windows(k, init) && at.iter().any(|&s| is_larger(k, s, init)) {
                continue;
            }
            copies[value] = at;
            found.inits[value] = Some(init);
        }
        // What a `let` reads includes what the deferred ones it names read.
        for v in k.values.keys() {
            let Some(init) = found.inits[v] else { continue };
            let mut reads = Vec::new();
            found.reads(k, init, &mut reads);
            reads.sort_unstable();
            reads.dedup();
            let quiet = copies[v].iter().all(|&s| unchanged_between(k, v, s, &reads));
            if !quiet {
                found.inits[v] = None;
            }
        }
        for &(s, _) in stmts.iter().filter(|&&(_, is_let)| is_let) {
            let StmtData::Let { value, init } = k.stmts[s] else { continue };
            let parted = |found: &Deferred| {
                !found.has_whole(k, init) && copies[value].iter().any(|&s| !found.stores_whole(k, s))
            };
            // Such a combination needs a tile of its own, because no operand shows which elements a thread has.
            if found.inits[value].is_some() && parted(&found) {
                found.inits[value] = None;
            }
        }
        found.close(k);
        found
    }

    /// Whether an operand of an expression has all elements of its tile: not `x - transpose(x)` of a column.
    fn has_whole(&self, k: &Kernel, e: Expr) -> bool {
        fixed_shape(k, e).is_none_or(|shape| self.has_operand(k, e, &shape))
    }

    /// The same for the expression that a copy stores.
    fn stores_whole(&self, k: &Kernel, copy: Stmt) -> bool {
        let StmtData::Copy { src, .. } = k.stmts[copy] else { unreachable!("final copies are copies") };
        self.has_whole(k, src)
    }

    fn has_operand(&self, k: &Kernel, e: Expr, shape: &[u64]) -> bool {
        let mut parts = Parts::of(k, e);
        while let Some(e) = parts.take() {
            match k.exprs[e] {
                ExprData::Ref(v) if self.init(v).is_some() => parts.named(v),
                ExprData::Ref(_) | ExprData::Reduce { .. } | ExprData::Scan { .. } | ExprData::Part { .. } => {
                    if fixed_shape(k, e).as_deref() == Some(shape) {
                        return true;
                    }
                }
                ExprData::View(_) => {}
                _ => parts.inside(e),
            }
        }
        false
    }

    /// The initialiser of a `let` that is deferred.
    pub fn init(&self, v: Value) -> Option<Expr> {
        self.inits.get(v).copied().flatten()
    }

    /// The initialiser if `e` names a deferred `let`.
    pub fn named(&self, k: &Kernel, e: Expr) -> Option<Expr> {
        match k.exprs[e] {
            ExprData::Ref(v) => self.init(v),
            _ => None,
        }
    }

    /// All tensors, tiles and scalars that `e` reads, also by the names of deferred `let`s.
    pub fn read_by(&self, k: &Kernel, e: Expr) -> Vec<Value> {
        let mut found = Vec::new();
        self.reads(k, e, &mut found);
        found
    }

    /// Appends all tensors, places and scalars that `e` reads.
    fn reads(&self, k: &Kernel, e: Expr, out: &mut Vec<Value>) {
        let mut parts = Parts::of(k, e);
        while let Some(e) = parts.take() {
            out.extend(resolve_view(k, e).map(|view| view.base));
            match k.exprs[e] {
                ExprData::Ref(v) if self.init(v).is_some() => parts.named(v),
                ExprData::Ref(v) => out.push(v),
                _ => parts.inside(e),
            }
        }
    }

    /// A `let` used by one that is computed at its definition is computed at its own definition too.
    fn close(&mut self, k: &Kernel) {
        loop {
            let mut dropped = Vec::new();
            k.walk(k.body, &mut |k, _, s| {
                if let StmtData::Let { value, init } = k.stmts[s]
                    && self.init(value).is_none()
                {
                    mentioned(k, init, &mut |v| dropped.extend(self.init(v).map(|_| v)));
                }
            });
            if dropped.is_empty() {
                return;
            }
            for v in dropped {
                self.inits[v] = None;
            }
        }
    }
}

fn mentioned(k: &Kernel, e: Expr, f: &mut dyn FnMut(Value)) {
    match &k.exprs[e] {
        ExprData::Ref(v) => f(*v),
        ExprData::View(view) => f(view.base),
        _ => {}
    }
    for child in k.children(e) {
        mentioned(k, child, f);
    }
}

/// Calls `f` for every value that the reductions in `e` mention.
fn in_reductions(k: &Kernel, e: Expr, f: &mut dyn FnMut(Value)) {
    match k.exprs[e] {
        ExprData::Reduce { arg, .. } => mentioned(k, arg, f),
        ExprData::Scan { .. } | ExprData::Combine(_) => mentioned(k, e, f),
        _ => k.children(e).into_iter().for_each(|child| in_reductions(k, child, f)),
    }
}

/// Whether an initialiser is an elementwise expression over a register tile, with operands in global memory at most.
fn names_elements(k: &Kernel, init: Expr) -> bool {
    fn elementwise(k: &Kernel, e: Expr, tile: &mut bool) -> bool {
        if let Some(view) = resolve_view(k, e) {
            *tile |= matches!(k.exprs[e], ExprData::Ref(_)) && view.space(k).in_registers();
            return !view.space(k).is_of_block();
        }
        match &k.exprs[e] {
            // Another `let` of a tile: its elements.
            ExprData::Ref(v) => {
                *tile |= matches!(k.values[*v].def, ValueDef::Let) && matches!(type_of(k, e), Ok(Type::Tile(_)));
                true
            }
            // All components are computed where the tuples are named.
            ExprData::Part { .. } => {
                *tile = true;
                true
            }
            ExprData::Reduce { .. }
            | ExprData::Scan { .. }
            | ExprData::Combine(_)
            | ExprData::Mma(_)
            | ExprData::Transpose(_)
            | ExprData::Reshape { .. }
            | ExprData::Permute { .. }
            | ExprData::Concat { .. }
            | ExprData::View(_) => false,
            _ => k.children(e).into_iter().all(|c| elementwise(k, c, tile)),
        }
    }
    let mut tile = false;
    let is_tile = matches!(type_of(k, init), Ok(Type::Tile(t)) if t.space.in_registers() && !t.shape.is_empty());
    is_tile && resolve_view(k, init).is_none() && elementwise(k, init, &mut tile) && tile
}

/// Whether computing an element of `e` reads elements of memory; operands of reductions and scans are computed before
/// and do not count.
pub fn reads_windows(k: &Kernel, e: Expr) -> bool {
    match k.exprs[e] {
        ExprData::Reduce { .. } | ExprData::Scan { .. } | ExprData::Part { .. } => false,
        _ => {
            resolve_view(k, e).is_some_and(|view| view.space(k).is_memory())
                || k.children(e).into_iter().any(|c| reads_windows(k, c))
        }
    }
}

/// Whether the tile that a copy stores is known to differ in extents from `e`.
fn is_larger(k: &Kernel, copy: Stmt, e: Expr) -> bool {
    let StmtData::Copy { src, .. } = k.stmts[copy] else { unreachable!("final copies are copies") };
    match (fixed_shape(k, src), fixed_shape(k, e)) {
        (Some(stored), Some(own)) => stored != own,
        _ => false,
    }
}

/// The copies to global memory that all uses of `v` end in; `None` if one does not.
fn final_copies(
    k: &Kernel,
    users: &[Stmt],
    found: &Deferred,
    copies: &SecondaryMap<Value, Vec<Stmt>>,
    v: Value,
) -> Option<Vec<Stmt>> {
    let mut at = Vec::new();
    for &s in users {
        match k.stmts[s] {
            StmtData::Let { value, .. } if found.init(value).is_some() => at.extend(&copies[value]),
            StmtData::Copy { src, dst, ref attrs } => {
                let mut elsewhere = attrs.when.is_some() || attrs.reduce.is_some();
                mentioned(k, dst, &mut |w| elsewhere |= w == v);
                // A reduction needs all elements at once; the copy has those of one group.
                in_reductions(k, src, &mut |w| elsewhere |= w == v);
                let stores = resolve_view(k, dst).is_some_and(|to| to.space(k).has_bounds() || is_stored(k, to.base));
                if elsewhere || !stores || resolve_view(k, src).is_some() {
                    return None;
                }
                at.push(s);
            }
            _ => return None,
        }
    }
    // Several names may end in one copy.
    at.sort_unstable();
    at.dedup();
    Some(at)
}

/// Whether nothing of `reads` is written between the declaration of `v` and the copy, which is in the same block or in
/// branches inside it.
fn unchanged_between(k: &Kernel, v: Value, copy: Stmt, reads: &[Value]) -> bool {
    /// The blocks from `block` down to `copy`, with the statement's index in each.
    fn path(k: &Kernel, block: Block, copy: Stmt, out: &mut Vec<(Block, usize)>) -> bool {
        for (i, &s) in k.blocks[block].iter().enumerate() {
            out.push((block, i));
            if s == copy || k.sub_blocks(s).into_iter().any(|b| path(k, b, copy, out)) {
                return true;
            }
            out.pop();
        }
        false
    }
    let mut way = Vec::new();
    if !path(k, k.body, copy, &mut way) {
        return false;
    }
    let declares = |s: Stmt| matches!(k.stmts[s], StmtData::Let { value, .. } if value == v);
    let Some(outer) = way.iter().position(|&(b, i)| k.blocks[b][..i].iter().any(|&s| declares(s))) else {
        return false;
    };
    let global = reads.iter().any(|&r| matches!(k.values[r].def, ValueDef::Tensor(_)));
    let writes = |s: Stmt| match &k.stmts[s] {
        StmtData::Assign { dst, .. } => reads.contains(dst),
        StmtData::Copy { dst, .. } => match resolve_view(k, *dst) {
            Some(view) if view.space(k).has_bounds() => global,
            Some(view) => reads.contains(&view.base),
            None => true,
        },
        StmtData::Var { value, .. } => reads.contains(value),
        StmtData::Role { .. } => true,
        _ => false,
    };
    for (depth, &(block, index)) in way[outer..].iter().enumerate() {
        let stmts = &k.blocks[block];
        let from = if depth == 0 { stmts.iter().position(|&s| declares(s)).map_or(0, |i| i + 1) } else { 0 };
        let mut changed = false;
        for &s in &stmts[from..index] {
            changed |= writes(s);
            for b in k.sub_blocks(s) {
                k.walk(b, &mut |_, _, s| changed |= writes(s));
            }
        }
        let last = outer + depth + 1 == way.len();
        if changed || (!last && !matches!(k.stmts[stmts[index]], StmtData::If { .. })) {
            return false;
        }
    }
    true
}
