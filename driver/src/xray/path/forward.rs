//! The way of an element onwards: fragments and products that read it, what is computed with it, and where that is stored.

use super::places::in_tile;
use super::windows::{Coords, Numbers, in_base, place_in};
use super::{PathBuilder, by, element};
use std::collections::BTreeMap;
use tilec_ir::ctas;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::print::{print_expr, print_head};
use tilec_ir::typing::{copy_shape, fixed_shape, resolve_view, type_of};

/// Where an expression has what is computed with an element.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Use {
    /// Its coordinates; `None`: every one along that dimension.
    spot: Coords,
    /// It is one of several elements that this one is made of.
    reduced: bool,
    /// A product multiplies it.
    product: bool,
    /// The numbers at which windows have the element.
    numbers: Numbers,
}

/// What names have that were followed, by the extents of what they are copied to.
type Named = BTreeMap<(Value, Option<Vec<u64>>), Vec<Use>>;

impl<'a> PathBuilder<'a> {
    /// What reads an element of a tile.
    pub(super) fn readers(&mut self, v: Value, shape: &[u64], coords: &[u64]) {
        let k = self.last;
        let mut seen: Vec<(Span, Vec<u64>)> = Vec::new();
        for s in PathBuilder::statements(k) {
            match &k.stmts[s] {
                StmtData::Copy { src, dst, attrs } => {
                    let Some(view) = resolve_view(k, *src).filter(|view| view.base == v) else { continue };
                    let Some(window) = copy_shape(k, *src, *dst) else { continue };
                    let Some((numbers, inside)) = place_in(k, &view, &window, coords) else { continue };
                    let Some(to) = resolve_view(k, *dst).filter(|to| k.tile_ty(to.base).is_some()) else { continue };
                    let mark = (k.stmt_spans[s], inside.clone());
                    if seen.contains(&mark) || to.base == v {
                        continue;
                    }
                    seen.push(mark);
                    let everywhere = match ctas::ctas(k) > 1 && ctas::stores_shared(k, s) {
                        true => ", to the shared memory of every block of the cluster",
                        false => "",
                    };
                    let how = by(attrs) + everywhere;
                    let copied = self.push("copy", print_head(k, s), how, k.stmt_spans[s]);
                    let name = k.values[to.base].name.clone();
                    let Some(inside) = in_base(k, &to, &inside, &numbers) else { continue };
                    // The copy of the program as it is written, if it has one here.
                    let same = |t: &Stmt| self.written.stmt_spans[*t] == k.stmt_spans[s];
                    let came = PathBuilder::statements(self.written).into_iter().find(same);
                    let before = std::mem::replace(&mut self.came, came);
                    self.from(copied, false, |way| way.tile(&name, &inside));
                    self.came = before;
                }
                StmtData::Assign { dst, src } => {
                    let ExprData::Mma(mma) = k.exprs[*src] else { continue };
                    for (operand, other, right) in [(mma.a, mma.b, false), (mma.b, mma.a, true)] {
                        let Some(view) = resolve_view(k, operand).filter(|view| view.base == v) else { continue };
                        if let &[row, column] = coords
                            && shape.len() == 2
                        {
                            let own = if view.transposed { [column, row] } else { [row, column] };
                            self.product((s, *dst), other, right, &own);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// What a product makes of an element of its left operand, or of its `right` one, with the `other`.
    fn product(&mut self, (s, sum): (Stmt, Value), other: Expr, right: bool, coords: &[u64]) {
        let k = self.last;
        let (name, other) = (&k.values[sum].name, print_expr(k, other));
        let (which, text) = match right {
            false => (
                coords[0],
                format!("{name}[{}, j] for every j, multiplied with `{other}`[{}, j]", coords[0], coords[1]),
            ),
            true => (
                coords[1],
                format!("{name}[i, {}] for every i, multiplied with `{other}`[i, {}]", coords[1], coords[0]),
            ),
        };
        let first = if right { [0, which] } else { [which, 0] };
        let product = self.push("product", print_head(k, s), format!("added into {text}"), k.stmt_spans[s]);
        let Some(("registers", text)) = in_tile(k, sum, &first) else { return };
        let span = k.values[sum].span;
        self.from(product, false, |way| {
            let before = way.path.steps.len();
            let here = way.push("registers", element(name, &first), text, span);
            let written = way.written.values.keys().find(|&v| way.written.values[v].name == *name);
            if let Some(v) = written.filter(|_| way.path.steps.len() > before) {
                way.from(here, false, |way| {
                    way.onward(way.written, v, &first);
                });
            }
        });
    }

    /// What is computed with an element of a tensor or a tile, statement by statement, and where it is stored. Whether there is something. Copies to tiles and
    /// products are followed in the program after the last pass ([`Way::readers`]).
    pub(super) fn onward(&mut self, k: &'a Kernel, v: Value, coords: &[u64]) -> bool {
        let coords: Coords = coords.iter().copied().map(Some).collect();
        let mut found = false;
        for s in PathBuilder::statements(k) {
            if self.is_overwritten(k, v, s) {
                continue;
            }
            let (src, dst) = match k.stmts[s] {
                StmtData::Copy { src, dst, .. } => match resolve_view(k, dst) {
                    // A copy as it is to a tile is no computation.
                    Some(to) if k.tile_ty(to.base).is_some() && resolve_view(k, src).is_some() => continue,
                    Some(_) => (src, Err(dst)),
                    None => continue,
                },
                StmtData::Assign { dst, src } => (src, Ok(dst)),
                StmtData::Var { value, init: Some(init) } => (init, Ok(value)),
                _ => continue,
            };
            let shape = dst.err().and_then(|dst| copy_shape(k, src, dst));
            let mut uses = self.uses(k, src, (v, &coords), shape.as_deref());
            // Where the element itself goes on, what it is one of many for is not told, too.
            if uses.iter().any(|own| !own.reduced) {
                uses.retain(|own| !own.reduced);
            }
            for own in uses {
                found = true;
                match dst {
                    Ok(dst) => self.computed(k, s, dst, &own),
                    Err(dst) => self.stored(k, s, dst, &own),
                }
            }
        }
        found
    }

    /// Whether another copy than the one that brought the element fills the tile in front of a statement, in the same block.
    fn is_overwritten(&self, k: &Kernel, v: Value, s: Stmt) -> bool {
        let fills = |t: &Stmt| match k.stmts[*t] {
            StmtData::Copy { dst, .. } => resolve_view(k, dst).is_some_and(|view| view.base == v),
            _ => false,
        };
        let Some(came) = self.came.filter(|came| std::ptr::eq(k, self.written) && fills(came)) else { return false };
        let block = k.blocks.values().find(|block| block.contains(&s));
        let before = block.map_or(&[][..], |block| &block[..block.iter().position(|t| *t == s).unwrap_or(0)]);
        before.iter().rfind(|t| fills(t)).is_some_and(|t| *t != came)
    }

    /// What a statement makes of an element in a variable.
    fn computed(&mut self, k: &'a Kernel, s: Stmt, dst: Value, own: &Use) {
        let name = k.values[dst].name.as_str();
        let what = in_words(name, &own.spot);
        let text = match (own.reduced, own.product) {
            (true, _) => format!("one of those that {what} is made of"),
            (false, true) => format!("added into {what}, of which the first is followed"),
            (false, false) => format!("{what} is computed with it"),
        };
        let at = if own.product { "product" } else { "computed" };
        let here = self.push(at, print_head(k, s), text, k.stmt_spans[s]);
        let coords: Option<Vec<u64>> = match own.product {
            true => Some(own.spot.iter().map(|n| n.unwrap_or(0)).collect()),
            false => own.spot.iter().copied().collect(),
        };
        if let Some(coords) = coords.filter(|_| !own.reduced) {
            let name = name.to_owned();
            let before = std::mem::replace(&mut self.numbers, own.numbers.clone());
            self.from(here, false, |way| way.tile(&name, &coords));
            self.numbers = before;
        }
    }

    /// Where a copy of what is computed with an element stores it.
    fn stored(&mut self, k: &'a Kernel, s: Stmt, dst: Expr, own: &Use) {
        let Some(to) = resolve_view(k, dst) else { return };
        let span: Span = k.stmt_spans[s];
        let name = &k.values[to.base].name;
        let dims: Vec<String> =
            (0..to.dims.len()).map(|d| PathBuilder::along(k, (&to, d), &own.spot, &own.numbers)).collect();
        let what = format!("{name}[{}]", dims.join(", "));
        let copied = print_head(k, s);
        let how =
            self.copy_at(span, k.tensor_ty(to.base).is_some()).map_or("stored".to_owned(), |(_, attrs)| by(attrs));
        let part = if own.reduced { "; one of those that the element is made of" } else { "" };
        if k.tensor_ty(to.base).is_some() {
            self.push("result", what, format!("{how}{part}: {copied}"), span);
            return;
        }
        let here = self.push("copy", copied, format!("to {what}: {how}{part}"), span);
        let inside: Option<Vec<u64>> = own.spot.iter().copied().collect();
        let coords = inside.and_then(|inside| in_base(k, &to, &inside, &own.numbers));
        if let Some(coords) = coords.filter(|_| !own.reduced) {
            let name = name.clone();
            self.from(here, false, |way| way.tile(&name, &coords));
        }
    }

    /// Where an expression has what is computed with an element of `v`; `shape`: of what it is copied to, where it has none of its own.
    fn uses(&self, k: &Kernel, e: Expr, of: (Value, &Coords), shape: Option<&[u64]>) -> Vec<Use> {
        self.uses_in(k, e, of, shape, &mut Named::new())
    }

    /// Where an operand has an element of `v`, if it has.
    pub(super) fn spot_of(&self, k: &Kernel, e: Expr, of: (Value, &Coords)) -> Option<Coords> {
        self.uses(k, e, of, None).into_iter().find(|own| !own.reduced && !own.product).map(|own| own.spot)
    }

    /// The same; `named` has what names have, of which each is followed once.
    fn uses_in(&self, k: &Kernel, e: Expr, of: (Value, &Coords), shape: Option<&[u64]>, named: &mut Named) -> Vec<Use> {
        let (v, coords) = of;
        if let Some(view) = resolve_view(k, e) {
            if view.base != v {
                return Vec::new();
            }
            let own = fixed_shape(k, e).or_else(|| shape.map(<[u64]>::to_vec)).or_else(|| copy_shape(k, e, e));
            let coords: Option<Vec<u64>> = coords.iter().copied().collect();
            let place = own.zip(coords).and_then(|(shape, coords)| place_in(k, &view, &shape, &coords));
            let own = |(own, inside): (Numbers, Vec<u64>)| {
                // What is known already stays: the element is there.
                let mut numbers = own;
                numbers.extend(self.numbers.iter().map(|(v, n)| (*v, *n)));
                // Along a dimension that repeats it is every element of the tile.
                let repeats = |d: &usize| k.tensor_ty(view.base).is_some_and(|t| t.repeats.contains(d));
                let spot = inside.into_iter().zip(view.base_dims()).map(|(n, d)| (!repeats(&d)).then_some(n)).collect();
                Use { spot, reduced: false, product: false, numbers }
            };
            return place.map(own).into_iter().collect();
        }
        let through = |arg: Expr, named: &mut Named| self.uses_in(k, arg, of, None, named);
        match &k.exprs[e] {
            // A name itself, of what is computed.
            ExprData::Ref(r) if *r == v => {
                vec![Use { spot: coords.clone(), reduced: false, product: false, numbers: self.numbers.clone() }]
            }
            ExprData::Ref(r) => {
                let key = (*r, shape.map(<[u64]>::to_vec));
                if let Some(known) = named.get(&key) {
                    return known.clone();
                }
                let all = k.let_init(*r).map_or(Vec::new(), |init| self.uses_in(k, init, of, shape, named));
                named.insert(key, all.clone());
                all
            }
            ExprData::Reduce { axis, arg, .. } => {
                let mut all = through(*arg, named);
                for own in &mut all {
                    own.spot.get_mut(*axis as usize).into_iter().for_each(|n| *n = Some(0));
                    own.reduced = true;
                }
                all
            }
            ExprData::Scan { arg, .. } => {
                through(*arg, named).into_iter().map(|own| Use { reduced: true, ..own }).collect()
            }
            ExprData::Transpose(arg) => {
                let turned = |own: Use| Use { spot: own.spot.into_iter().rev().collect(), ..own };
                through(*arg, named).into_iter().map(turned).collect()
            }
            // Operands that are tiles are followed in the program after the last pass.
            ExprData::Mma(mma) => {
                let mut computed = |operand: Expr| match resolve_view(k, operand) {
                    Some(_) => Vec::new(),
                    None => through(operand, named),
                };
                let row =
                    |own: Use| Use { spot: vec![own.spot.first().copied().flatten(), None], product: true, ..own };
                let column =
                    |own: Use| Use { spot: vec![None, own.spot.last().copied().flatten()], product: true, ..own };
                let (a, b) = (computed(mma.a), computed(mma.b));
                a.into_iter().map(row).chain(b.into_iter().map(column)).collect()
            }
            ExprData::Permute { arg, order } => {
                let turned = |own: Use| {
                    let spot = order.iter().map(|&axis| own.spot.get(axis as usize).copied().flatten()).collect();
                    Use { spot, ..own }
                };
                through(*arg, named).into_iter().map(turned).collect()
            }
            // Which element of these comes from which is no question of one coordinate each.
            ExprData::Concat { .. }
            | ExprData::Reshape { .. }
            | ExprData::Combine(_)
            | ExprData::Part { .. }
            | ExprData::Index(_)
            | ExprData::Iota { .. } => Vec::new(),
            _ => {
                let rank = type_of(k, e).map_or(0, |ty| ty.rank());
                let own_shape = fixed_shape(k, e).or_else(|| shape.map(<[u64]>::to_vec));
                let mut all: Vec<Use> = Vec::new();
                for child in k.children(e) {
                    for own in self.uses_in(k, child, of, shape, named) {
                        let own = Use { spot: spread(k, child, own.spot, (rank, own_shape.as_deref())), ..own };
                        if !all.contains(&own) {
                            all.push(own);
                        }
                    }
                }
                all
            }
        }
    }
}

/// Where an element of an operand is wanted: operands align at their last dimensions, and repeat where they have one element and the other has more.
fn spread(k: &Kernel, operand: Expr, spot: Coords, (rank, shape): (usize, Option<&[u64]>)) -> Coords {
    let mut out: Coords = vec![None; rank.saturating_sub(spot.len())];
    let own = fixed_shape(k, operand);
    let front = out.len();
    for (d, n) in spot.into_iter().enumerate() {
        let one = own.as_ref().and_then(|own| own.get(d)) == Some(&1);
        let more = shape.and_then(|shape| shape.get(front + d)).is_some_and(|&n| n > 1);
        out.push(if one && more { None } else { n });
    }
    out
}

/// `m[3, ..]`.
pub(super) fn in_words(name: &str, spot: &Coords) -> String {
    match spot.iter().copied().collect::<Option<Vec<u64>>>() {
        Some(coords) => element(name, &coords),
        None => {
            let dims: Vec<String> = spot.iter().map(|n| n.map_or("..".to_owned(), |n| n.to_string())).collect();
            format!("{name}[{}]", dims.join(", "))
        }
    }
}
