//! Resolution of names: analyses of an expression that visit each name once, however often it occurs.
//!
//! `let b = a + a`, `let c = b + b`, .. abbreviates a tree that doubles with each name. An analysis that follows names
//! without this module walks that tree.

use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel, ValueDef, View};
use cranelift_entity::EntitySet;
use std::collections::BTreeMap;

/// Iterates over the parts of an expression, and of the definitions of names in it, in the order of the text.
///
/// The caller takes the parts one by one, and decides which of them to enter. Nothing here recurses.
pub struct Parts<'k> {
    k: &'k Kernel,
    rest: Vec<Expr>,
    seen: EntitySet<Value>,
}

impl<'k> Parts<'k> {
    /// Those of nothing yet.
    pub fn new(k: &'k Kernel) -> Parts<'k> {
        Parts { k, rest: Vec::new(), seen: EntitySet::new() }
    }

    /// Those of `e`, which is the first.
    pub fn of(k: &'k Kernel, e: Expr) -> Parts<'k> {
        Parts { rest: vec![e], ..Parts::new(k) }
    }

    /// The next part.
    pub fn take(&mut self) -> Option<Expr> {
        self.rest.pop()
    }

    /// Enters a part: its operands, and the definition of the name that it is.
    pub fn inside(&mut self, e: Expr) {
        if let ExprData::Ref(v) = self.k.exprs[e] {
            self.named(v);
        }
        let first = self.rest.len();
        self.rest.extend(self.k.children(e));
        self.rest[first..].reverse();
    }

    /// Enters the definition of a name, unless that was done before.
    pub fn named(&mut self, v: Value) {
        if let Some(init) = self.k.definition(v)
            && self.once(v)
        {
            self.rest.push(init);
        }
    }

    /// Looks at another expression, too.
    pub fn also(&mut self, e: Expr) {
        self.rest.push(e);
    }

    /// Whether this is the first visit of a name.
    pub fn once(&mut self, v: Value) -> bool {
        self.seen.insert(v)
    }
}

impl Kernel {
    /// The definition of a name: of a `let`, or of a value computed from tuples.
    pub fn definition(&self, v: Value) -> Option<Expr> {
        match self.values[v].def {
            ValueDef::Local(init) => Some(init),
            _ => self.let_init(v),
        }
    }

    /// Whether `found` holds for a part of `e`, or of the definitions of names in it.
    pub fn has_part(&self, e: Expr, mut found: impl FnMut(Expr) -> bool) -> bool {
        let mut parts = Parts::of(self, e);
        while let Some(e) = parts.take() {
            if found(e) {
                return true;
            }
            parts.inside(e);
        }
        false
    }

    /// The names that `e` depends on, with their definitions, except those that are `known` and the names before these.
    /// Each comes after the names that it depends on.
    pub fn names_below(&self, e: Expr, known: impl Fn(Value) -> bool) -> Vec<(Value, Expr)> {
        let mut found = Vec::new();
        let mut seen: EntitySet<Value> = EntitySet::new();
        let mut rest: Vec<(Value, Expr, bool)> = Vec::new();
        self.push_names(e, &mut rest);
        while let Some((v, init, ready)) = rest.pop() {
            if ready {
                found.push((v, init));
            } else if !known(v) && seen.insert(v) {
                rest.push((v, init, true));
                self.push_names(init, &mut rest);
            }
        }
        found
    }

    /// The names that `e` itself mentions.
    fn push_names(&self, e: Expr, rest: &mut Vec<(Value, Expr, bool)>) {
        if let ExprData::Ref(v) | ExprData::View(View { base: v, .. }) = self.exprs[e]
            && let Some(init) = self.definition(v)
        {
            rest.push((v, init, false));
        }
        for child in self.children(e) {
            self.push_names(child, rest);
        }
    }

    /// Number of nodes of the tree of `e` with these names replaced by their definitions, which may be exponentially
    /// large.
    pub fn unfolded(&self, e: Expr, names: impl Fn(Value) -> bool) -> u64 {
        fn of(k: &Kernel, e: Expr, known: &dyn Fn(Value) -> u64) -> u64 {
            let own = match k.exprs[e] {
                ExprData::Ref(v) => known(v),
                _ => 1,
            };
            k.children(e).into_iter().fold(own, |all, child| all.saturating_add(of(k, child, known)))
        }
        self.by_names(e, |e, found| {
            let known = |v: Value| found.get(&v).copied().filter(|_| names(v)).unwrap_or(1);
            of(self, e, &known)
        })
    }

    /// The result of `of` for `e`, given its results for the names in `e`. It is computed once per name, in order.
    pub fn by_names<T>(&self, e: Expr, of: impl Fn(Expr, &BTreeMap<Value, T>) -> T) -> T {
        let mut known = BTreeMap::new();
        for (v, init) in self.names_below(e, |_| false) {
            let found = of(init, &known);
            known.insert(v, found);
        }
        of(e, &known)
    }
}

/// Whether an expression mentions a tile, a tensor, a scalar or a name. Definitions of names are not entered.
pub fn mentions(k: &Kernel, e: Expr, v: Value) -> bool {
    let own = match &k.exprs[e] {
        ExprData::Ref(w) | ExprData::View(View { base: w, .. }) => *w == v,
        _ => false,
    };
    own || k.children(e).into_iter().any(|child| mentions(k, child, v))
}
