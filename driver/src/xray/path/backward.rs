//! The way back of an element of a result: the store, what it computes with, the product, and what that reads.

use super::windows::{Coords, Numbers, gathered, name_of, place_in, spaced, spot_in, sum};
use super::{Link, PathBuilder, by, element, when};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::print::{print_expr, print_head};
use tilec_ir::typing::{ResolvedView, ViewDim, copy_shape, fixed_shape, resolve_view, type_of};

impl PathBuilder<'_> {
    /// The place of an element along a dimension of a tensor, as text.
    pub(super) fn along(
        k: &Kernel,
        (view, d): (&ResolvedView, usize),
        spot: &[Option<u64>],
        numbers: &Numbers,
    ) -> String {
        let dim = &view.dims[d];
        let inside = view.base_dims().iter().position(|&kept| kept == d).and_then(|i| spot.get(i).copied());
        let Some(spaced) = spaced(k, dim) else {
            let named = |&e: &Expr| {
                let at = name_of(k, view, (d, e), spot).into_iter();
                let at: Vec<String> = at.map(|n| n.map_or("..".to_owned(), |n| n.to_string())).collect();
                format!("{}[{}]", print_expr(k, e), at.join(", "))
            };
            return dim.starts().iter().map(named).collect();
        };
        let start = sum(k, dim, numbers);
        let text = || {
            let term = |&(e, times): &(Expr, i64)| match times {
                1 => print_expr(k, e),
                _ => format!("{times} * ({})", print_expr(k, e)),
            };
            let constant = (spaced.constant != 0).then(|| spaced.constant.to_string());
            spaced.terms.iter().map(term).chain(constant).collect::<Vec<_>>().join(" + ")
        };
        let inside = inside.map(|n| n.map(|n| n.saturating_mul(spaced.step.unsigned_abs())));
        match (inside, start) {
            (None, Some(start)) => start.to_string(),
            (None, None) => text(),
            (Some(None), Some(start)) => format!("{start}.."),
            (Some(None), None) => format!("{}..", text()),
            (Some(Some(n)), Some(start)) => start.saturating_add_unsigned(n).to_string(),
            (Some(Some(0)), None) => text(),
            (Some(Some(n)), None) => format!("{} + {n}", text()),
        }
    }

    /// An element of a tensor that the kernel stores: each copy that stores it, and what that is made of. Whether there is one.
    pub(super) fn of_result(&mut self, v: Value, coords: &[u64]) -> bool {
        let k = self.written;
        let mut found = false;
        for s in PathBuilder::statements(k) {
            let StmtData::Copy { src, dst, .. } = k.stmts[s] else { continue };
            let Some(view) = resolve_view(k, dst).filter(|view| view.base == v) else { continue };
            let Some(shape) = copy_shape(k, src, dst) else { continue };
            let Some((numbers, spot)) = spot_in(k, &view, &shape, coords) else { continue };
            found = true;
            let span = k.stmt_spans[s];
            let how = self.copy_at(span, true).map_or("stored".to_owned(), |(_, attrs)| by(attrs));
            let named = |&(d, rows): &(usize, Expr)| {
                let rows = print_expr(k, rows);
                format!("wherever `{rows}` names {}, which memory says at run time", coords[d])
            };
            let scattered: Vec<String> = gathered(k, &view).iter().map(named).collect();
            let at =
                if scattered.is_empty() { String::new() } else { format!(", scattered: {}", scattered.join(", and ")) };
            let text = format!("{}{at}: {how}", when(k, &numbers));
            let stored = self.push("result", print_head(k, s), text, span);
            self.from(stored, true, |way| {
                let mut back = BackwardPath { way, numbers, seen: Vec::new() };
                back.of(src, &spot);
                // What names the places is on the way, too.
                for (d, rows) in gathered(k, &view) {
                    back.of(rows, &name_of(k, &view, (d, rows), &spot));
                }
            });
        }
        found
    }

    /// What an expression of the program as it is written is made of, at a place in it.
    pub(super) fn made_of(&mut self, e: Expr, spot: &[Option<u64>], numbers: Numbers) {
        BackwardPath { way: self, numbers, seen: Vec::new() }.of(e, spot);
    }
}

/// Follows what is computed to what it is computed of, in the program as it is written.
struct BackwardPath<'w, 'p> {
    way: &'w mut PathBuilder<'p>,
    /// The numbers of grid axes and loops that are known.
    numbers: Numbers,
    /// What has been followed.
    seen: Vec<(Value, Coords)>,
}

impl BackwardPath<'_, '_> {
    /// Follows what hangs on a step.
    fn from(&mut self, step: Option<usize>, follow: impl FnOnce(&mut Self)) {
        let Some(step) = step else { return };
        let before = self.way.link.replace(Link { step, back: true });
        follow(self);
        self.way.link = before;
    }

    /// What the element at `spot` of an expression is made of.
    fn of(&mut self, e: Expr, spot: &[Option<u64>]) {
        let k = self.way.written;
        if let Some(view) = resolve_view(k, e) {
            return self.window(&view, spot);
        }
        match &k.exprs[e] {
            // A name is followed once, however often it is read.
            ExprData::Ref(v) => {
                if let Some(init) = k.let_init(*v)
                    && self.is_new(*v, spot)
                {
                    self.of(init, spot);
                }
            }
            ExprData::Mma(mma) => {
                let [.., row, column] = *spot else { return };
                let line = |word: &str, n: Option<u64>| match n {
                    Some(n) => format!("{word} {n}"),
                    None => format!("every {word}"),
                };
                let (a, b) = (print_expr(k, mma.a), print_expr(k, mma.b));
                let text = format!("{} of `{a}` with {} of `{b}`", line("row", row), line("column", column));
                let product = self.way.push("product", print_expr(k, e), text, k.expr_spans[e]);
                let (a, b, c) = (mma.a, mma.b, mma.c);
                self.from(product, |back| {
                    back.of(a, &[row, None]);
                    back.of(b, &[None, column]);
                    back.of(c, spot);
                });
            }
            ExprData::Reduce { axis, arg, .. } | ExprData::Scan { axis, arg, .. } => {
                let mut spot = spot.to_vec();
                spot.get_mut(*axis as usize).into_iter().for_each(|n| *n = None);
                self.of(*arg, &spot);
            }
            ExprData::Transpose(arg) => {
                let spot: Coords = spot.iter().rev().copied().collect();
                self.of(*arg, &spot);
            }
            ExprData::Permute { arg, order } => {
                let mut own: Coords = vec![None; order.len()];
                order.iter().zip(spot).for_each(|(&axis, &at)| own[axis as usize] = at);
                self.of(*arg, &own);
            }
            // Which element of these comes from which is no question of one coordinate each.
            ExprData::Concat { .. } | ExprData::Reshape { .. } | ExprData::Combine(_) | ExprData::Part { .. } => {
                for child in k.children(e) {
                    let rank = type_of(k, child).map_or(0, |ty| ty.rank());
                    self.of(child, &vec![None; rank]);
                }
            }
            ExprData::Iota { .. } | ExprData::Index(_) | ExprData::Int(_) | ExprData::Float(_) => {}
            _ => {
                for child in k.children(e) {
                    let spot = beside(k, child, spot);
                    self.of(child, &spot);
                }
            }
        }
    }

    /// Whether an element of a name is followed for the first time.
    fn is_new(&mut self, v: Value, spot: &[Option<u64>]) -> bool {
        let new = !self.seen.iter().any(|(w, at)| *w == v && at == spot);
        if new {
            self.seen.push((v, spot.to_vec()));
        }
        new
    }

    /// An element of a window: of a tensor where it is read, of a tile what that is made of.
    fn window(&mut self, view: &ResolvedView, spot: &[Option<u64>]) {
        let k = self.way.written;
        let kept = view.base_dims();
        if kept.len() != spot.len() {
            return;
        }
        let own = |d: usize| kept.iter().position(|&kept| kept == d).map(|i| spot[i]);
        let name = &k.values[view.base].name;
        if k.tensor_ty(view.base).is_some() {
            // As the tensor is declared, without a dimension along which it repeats.
            let repeats = |d: &usize| k.tensor_ty(view.base).is_some_and(|t| t.repeats.contains(d));
            let declared = view.dims.iter().enumerate().filter(|(d, _)| !repeats(d));
            let dims = declared.map(|(d, _)| PathBuilder::along(k, (view, d), spot, &self.numbers));
            let what = format!("{name}[{}]", dims.collect::<Vec<_>>().join(", "));
            let read = self.way.push("global memory", what, "read".to_owned(), k.values[view.base].span);
            // What names the rows that are gathered is on the way, too.
            for (d, rows) in gathered(k, view) {
                self.from(read, |back| back.of(rows, &name_of(k, view, (d, rows), spot)));
            }
            return;
        }
        let place = |(d, dim): (usize, &ViewDim)| {
            let start = u64::try_from(sum(k, dim, &self.numbers)?).ok()?;
            let step = spaced(k, dim)?.step.unsigned_abs();
            own(d).map_or(Some(start), |n| Some(start + n? * step))
        };
        let at: Coords = view.dims.iter().enumerate().map(place).collect();
        self.tile(view.base, at);
    }

    /// An element of a tile: where it is after the last pass, and what is written there.
    fn tile(&mut self, v: Value, spot: Coords) {
        let k = self.way.written;
        if !self.is_new(v, &spot) {
            return;
        }
        let (name, first) = (&k.values[v].name, spot.iter().map(|n| n.unwrap_or(0)).collect::<Vec<_>>());
        if let Some((at, text)) = self.way.lies(name, &first) {
            let every = spot.contains(&None);
            let text = if every { format!("the first at {text}") } else { text };
            let coords: Vec<String> = spot.iter().map(|n| n.map_or("..".to_owned(), |n| n.to_string())).collect();
            let what = if every { format!("{name}[{}]", coords.join(", ")) } else { element(name, &first) };
            let here = self.way.push(at, what, text, k.values[v].span);
            return self.from(here, |back| back.writers(v, &spot, &first));
        }
        self.writers(v, &spot, &first);
    }

    /// What writes an element of a tile.
    fn writers(&mut self, v: Value, spot: &[Option<u64>], first: &[u64]) {
        let k = self.way.written;
        for s in PathBuilder::statements(k) {
            match k.stmts[s] {
                StmtData::Copy { src, dst, .. } => {
                    let Some(view) = resolve_view(k, dst).filter(|view| view.base == v) else { continue };
                    let Some(shape) = copy_shape(k, src, dst) else { continue };
                    let Some((_, inside)) = place_in(k, &view, &shape, first) else { continue };
                    let span = k.stmt_spans[s];
                    let how = self.way.copy_at(span, false).map_or("moved".to_owned(), |(_, attrs)| by(attrs));
                    let copied = self.way.push("copy", print_head(k, s), how, span);
                    let kept = view.base_dims().into_iter().zip(inside);
                    let spot: Coords = kept.map(|(d, n)| spot[d].map(|_| n)).collect();
                    self.from(copied, |back| back.of(src, &spot));
                }
                StmtData::Assign { dst, src } if dst == v => self.of(src, spot),
                StmtData::Var { value, init: Some(init) } if value == v => self.of(init, spot),
                _ => {}
            }
        }
    }
}

/// The element of an operand that is beside the one at `spot`: operands align at their last dimensions, and repeat where they have one element.
fn beside(k: &Kernel, operand: Expr, spot: &[Option<u64>]) -> Coords {
    let shape = fixed_shape(k, operand);
    let rank = shape.as_ref().map_or_else(|| type_of(k, operand).map_or(0, |ty| ty.rank()), Vec::len);
    let mut own = spot[spot.len().saturating_sub(rank)..].to_vec();
    for (n, extent) in own.iter_mut().zip(shape.into_iter().flatten()) {
        if extent == 1 {
            *n = Some(0);
        }
    }
    own
}
