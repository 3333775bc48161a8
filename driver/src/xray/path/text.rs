//! Steps of a way in words: statements, what they combine an element with, and where it then is.

use super::graph::Node;
use super::spot::{Run, first, in_words, is_one};
use super::windows::{Numbers, name_of, spaced, sum};
use super::{Link, PathBuilder, by, element, places};
use crate::xray::registers::{held, holder};
use crate::xray::threads::ThreadGroup;
use tilec_ir::combine::How;
use tilec_ir::ctas;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData};
use tilec_ir::names::mentions;
use tilec_ir::print::{print_expr, print_head};
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{ResolvedView, copy_shape, fixed_shape, layout_of, resolve_view, shape_of_tuples, type_of};

impl PathBuilder<'_> {
    /// The place of elements along a dimension of a tensor, as text; `spot`: where they are in a window of it.
    fn along(&self, (view, d): (&ResolvedView, usize), (spot, shape): (&[Run], &[u64]), numbers: &Numbers) -> String {
        let (k, dim) = (self.k, &view.dims[d]);
        let kept = view.base_dims().iter().position(|&kept| kept == d);
        let inside = kept.and_then(|i| Some((*spot.get(i)?, shape.get(i).copied().unwrap_or(u64::MAX))));
        let Some(spaced) = spaced(k, dim) else {
            let named = |&e: &Expr| {
                in_words(&print_expr(k, e), &name_of(k, view, (d, e), spot), &fixed_shape(k, e).unwrap_or_default())
            };
            return dim.starts().iter().map(named).collect();
        };
        let step = spaced.step.unsigned_abs();
        let start = sum(&self.solver, k, dim, numbers);
        let symbolic = || {
            let term = |&(e, times): &(Expr, i64)| match times {
                1 => print_expr(k, e),
                _ => format!("{times} * ({})", print_expr(k, e)),
            };
            let constant = (spaced.constant != 0).then(|| spaced.constant.to_string());
            let all: Vec<String> = spaced.terms.iter().map(term).chain(constant).filter(|t| t != "0").collect();
            if all.is_empty() { "0".to_owned() } else { all.join(" + ") }
        };
        let place = |n: u64| match (start, n) {
            (Some(start), n) => start.saturating_add_unsigned(n.saturating_mul(step)).to_string(),
            (None, 0) => symbolic(),
            (None, n) => format!("{} + {}", symbolic(), n.saturating_mul(step)),
        };
        let Some((run, extent)) = inside else { return place(0) };
        match run.only() {
            Some(n) => place(n),
            None if run.to >= extent => format!("{}..", place(run.from)),
            None => format!("{}..{}", place(run.from), place(run.to)),
        }
    }

    /// Elements of a window of a tensor, as the tensor is declared: without a dimension along which it repeats.
    pub(super) fn window_in_words(
        &self,
        view: &ResolvedView,
        spot: &[Run],
        shape: &[u64],
        numbers: &Numbers,
    ) -> String {
        let k = self.k;
        let repeats = |d: &usize| k.tensor_ty(view.base).is_some_and(|t| t.repeats.contains(d));
        let declared = view.dims.iter().enumerate().filter(|(d, _)| !repeats(d));
        let dims: Vec<String> = declared.map(|(d, _)| self.along((view, d), (spot, shape), numbers)).collect();
        let name = &k.values[view.base].name;
        if dims.is_empty() { name.clone() } else { format!("{name}[{}]", dims.join(", ")) }
    }

    /// A tile or a name at a spot, as text.
    pub(super) fn place_in_words(&self, place: Value, spot: &[Run]) -> String {
        in_words(&self.k.values[place].name, spot, &self.extents(place))
    }

    pub(super) fn extents(&self, place: Value) -> Vec<u64> {
        match self.k.let_init(place) {
            Some(init) => self.extents_of(init),
            None => self.k.const_shape(places::shape_of(self.k, place)).unwrap_or_default(),
        }
    }

    pub(super) fn extents_of(&self, e: Expr) -> Vec<u64> {
        match &self.k.exprs[e] {
            ExprData::Combine(combine) => {
                let mut shape = shape_of_tuples(self.k, combine).unwrap_or_default();
                if let How::Reduce { parts } = combine.operation
                    && let Some(n) = shape.get_mut(combine.axis as usize)
                {
                    *n = 1 << parts.count_ones();
                }
                shape
            }
            _ => fixed_shape(self.k, e).unwrap_or_default(),
        }
    }

    /// Where elements of a tile or a name are after the last pass.
    pub(super) fn lies(&self, place: Value, spot: &[Run]) -> Option<(&'static str, String)> {
        let coords = first(spot);
        let (at, text) = match self.k.let_init(place) {
            Some(init) => ("registers", self.name_lies(place, init, &coords)?),
            None => self.tile_lies(place, &coords)?,
        };
        let text = if is_one(spot) { text } else { format!("the first at {text}") };
        Some((at, text))
    }

    fn tile_lies(&self, place: Value, coords: &[u64]) -> Option<(&'static str, String)> {
        let name = &self.k.values[place].name;
        if let Some(v) = self.called(name) {
            return places::in_tile(self.last, v, coords, &ThreadGroup::of_tile(self.last, v));
        }
        // A pass has given it another name since: its threads are those of what was made of its declaration.
        let declares = |s: &Stmt| matches!(self.k.stmts[*s], StmtData::Var { value, .. } if value == place);
        let span = PathBuilder::statements(self.k).into_iter().find(declares).map(|s| self.k.stmt_spans[s]);
        places::in_tile(self.k, place, coords, &self.threads(span.unwrap_or_default()))
    }

    /// An element of a name: threads have it as those elements that it is computed with.
    fn name_lies(&self, place: Value, init: Expr, coords: &[u64]) -> Option<String> {
        let k = self.k;
        let layout = layout_of(k, init)?;
        let shape = self.extents(place);
        let elem = match type_of(k, init).ok()?.elem() {
            Some(ElemRef::Known(elem)) => elem,
            _ if matches!(k.exprs[init], ExprData::Combine(_)) => return None,
            _ => Elem::F32,
        };
        if shape.len() != coords.len() || shape.is_empty() {
            return None;
        }
        let span = k.let_stmt(place).map(|s| k.stmt_spans[s]).unwrap_or_default();
        Some(held(&self.threads(span), &layout, elem, &shape, coords))
    }

    /// The threads that execute what a statement of the source became.
    fn threads(&self, span: Span) -> ThreadGroup {
        let last = self.last;
        if span.is_none() {
            return ThreadGroup::default();
        }
        let all: Vec<Stmt> =
            PathBuilder::statements(last).into_iter().filter(|&s| last.stmt_spans[s] == span).collect();
        // Declarations may be in front of the roles.
        let computes = |s: &&Stmt| {
            matches!(last.stmts[**s], StmtData::Let { .. } | StmtData::Assign { .. } | StmtData::Copy { .. })
        };
        let one = all.iter().find(computes).or(all.first());
        one.map_or_else(ThreadGroup::default, |&s| ThreadGroup::of_stmt(last, s))
    }

    /// What a copy is after the last pass: its attributes are decided there.
    pub(super) fn copy_at(&self, s: Stmt) -> Option<(Stmt, &CopyAttrs)> {
        let (k, last) = (self.k, self.last);
        let StmtData::Copy { src, dst, ref attrs } = k.stmts[s] else { return None };
        let span = k.stmt_spans[s];
        let base = |k: &Kernel, e: Expr| resolve_view(k, e).map(|view| k.values[view.base].name.clone());
        let tensor = |k: &Kernel, e: Expr| resolve_view(k, e).is_some_and(|view| k.tensor_ty(view.base).is_some());
        let of_last = |close: bool| {
            PathBuilder::statements(last).into_iter().find_map(|t| match &last.stmts[t] {
                StmtData::Copy { src: from, dst: to, attrs } if last.stmt_spans[t] == span => {
                    let names = base(k, src) == base(last, *from) && base(k, dst) == base(last, *to);
                    let sides = tensor(k, src) == tensor(last, *from) && tensor(k, dst) == tensor(last, *to);
                    (if close { names } else { sides && (tensor(k, src) || tensor(k, dst)) }).then_some((t, attrs))
                }
                _ => None,
            })
        };
        if span.is_none() { Some((s, attrs)) } else { of_last(true).or_else(|| of_last(false)).or(Some((s, attrs))) }
    }

    /// How a copy moves its elements, in words.
    pub(super) fn moved(&self, s: Stmt) -> String {
        let k = self.k;
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { return String::new() };
        let Some((_, attrs)) = self.copy_at(s) else { return "moved".to_owned() };
        let tile = |e: Expr| k.tile_ty(resolve_view(k, e)?.base);
        let Some(to) = tile(dst).and_then(|to| Some((to, to.reg_layout.as_ref()?))) else {
            let everywhere = match ctas::ctas(k) > 1 && ctas::stores_shared(self.k, s) {
                true => ", to the shared memory of every block of the cluster",
                false => "",
            };
            return by(attrs) + everywhere;
        };
        let from_registers = match resolve_view(k, src) {
            Some(view) => k.tile_ty(view.base).is_some_and(|tile| tile.reg_layout.is_some()),
            None => layout_of(k, src).is_some(),
        };
        if !from_registers {
            return by(attrs);
        }
        let mut how = Vec::new();
        if let (Some(own), ElemRef::Known(elem)) = (type_of(k, src).ok().and_then(|ty| ty.elem()), to.0.elem)
            && own != ElemRef::Known(elem)
        {
            how.push(format!("converted to {}", elem.name()));
        }
        let partial = tile(src).and_then(|tile| tile.partial.as_ref());
        match (partial, layout_of(k, src)) {
            (Some(partial), _) if to.0.partial.is_none() => {
                how.push(format!(
                    "partial results are combined across {} lanes by shuffles",
                    1u64 << partial.lanes.len()
                ));
            }
            (_, Some(own)) if own != *to.1 && fixed_shape(k, src).is_some_and(|n| n == self.extents_of(dst)) => {
                how.push("lanes exchange elements: the registers of the copy are in another order".to_owned());
            }
            _ => how.push("each thread keeps its elements".to_owned()),
        }
        how.join("; ")
    }

    /// The thread that moves an element of a copy.
    pub(super) fn mover(&self, s: Stmt, spot: &[Run]) -> String {
        let StmtData::Copy { dst, .. } = self.k.stmts[s] else { return String::new() };
        let Some((t, attrs)) = self.copy_at(s).filter(|(_, attrs)| attrs.is_by_threads()) else { return String::new() };
        let shape = copy_shape(self.k, dst, dst).filter(|shape| shape.len() == spot.len() && is_one(spot));
        let thread = attrs.threads.as_ref().zip(shape).and_then(|(l, shape)| Some(holder(l, &shape, &first(spot))?.0));
        let team = || match std::ptr::eq(attrs, self.own_attrs(s)) {
            true => self.threads(self.k.stmt_spans[s]),
            false => ThreadGroup::of_stmt(self.last, t),
        };
        thread.map_or(String::new(), |t| format!(", by {}", team().thread(t)))
    }

    fn own_attrs(&self, s: Stmt) -> *const CopyAttrs {
        match &self.k.stmts[s] {
            StmtData::Copy { attrs, .. } => attrs,
            _ => std::ptr::null(),
        }
    }

    /// The text of a window of a tensor that is read, and whether it is whole.
    pub(super) fn read_in_words(&self, window: Expr, spot: &[Run], numbers: &Numbers) -> Option<(String, Span)> {
        let view = resolve_view(self.k, window)?;
        let behind: Vec<u64> = spot.iter().map(|run| run.to).collect();
        let shape = super::uses::window_shape(self.k, window, &view, Some(&behind)).unwrap_or(behind);
        Some((self.window_in_words(&view, spot, &shape, numbers), self.k.values[view.base].span))
    }

    /// That something is in further iterations, and under which conditions, in words.
    pub(super) fn circumstances(&self, node: &Node) -> String {
        let names: Vec<String> = node.further.iter().map(|v| format!("`{}`", self.k.values[*v].name)).collect();
        let further = match names.is_empty() {
            true => String::new(),
            false => format!(", in further iterations of {}", names.join(", ")),
        };
        let open = self.solver.open_conditions(node.stmt, &node.numbers);
        let conditions: Vec<String> = open
            .into_iter()
            .map(|(e, holds)| match holds {
                true => format!(", if `{}`", print_expr(self.k, e)),
                false => format!(", unless `{}`", print_expr(self.k, e)),
            })
            .collect();
        further + &conditions.concat()
    }

    /// A step for a place, unless the way has it already.
    pub(super) fn placed(&mut self, place: Value, spot: &[Run]) -> Option<usize> {
        let (at, text) = self.lies(place, spot)?;
        let what = match (is_one(spot), spot.is_empty()) {
            (_, true) => self.k.values[place].name.clone(),
            (true, _) => element(&self.k.values[place].name, &first(spot)),
            _ => self.place_in_words(place, spot),
        };
        let span = self.k.values[place].span;
        let line = self.line(span);
        let is_it = |s: &super::Step| s.at == at && s.what == what && s.line == line;
        if self.path.steps.iter().any(is_it) {
            return self.link.map(|Link { step, .. }| step);
        }
        self.push(at, what, text + &self.asked_by(place), span)
    }

    /// The loop that goes on or ends by a variable, in words.
    fn asked_by(&self, place: Value) -> String {
        let k = self.k;
        let asks = |s: &Stmt| match k.stmts[*s] {
            StmtData::For { cond: Some(cond), .. } => mentions(k, cond, place),
            _ => false,
        };
        k.statements().into_iter().find(asks).map_or_else(String::new, |s| {
            let line = self.line(k.stmt_spans[s]);
            format!("; the loop of line {line} asks it before each iteration: whether to go on")
        })
    }
}

/// A statement, as far as it says what it computes; `plain`: the program without attributes of copies, which other words of a step say.
pub(super) fn head(plain: &Kernel, s: Stmt) -> String {
    match plain.stmts[s] {
        StmtData::Var { value, init: Some(init) } | StmtData::Let { value, init } => {
            format!("{} = {}", plain.values[value].name, print_head_of(plain, init))
        }
        // Windows that end with their tensor read like those of the source.
        StmtData::Copy { .. } => print_head(plain, s).replace("..inf", ".."),
        _ => print_head(plain, s),
    }
}

/// A combination without its body.
pub(super) fn print_head_of(k: &Kernel, e: Expr) -> String {
    let text = print_expr(k, e);
    match &k.exprs[e] {
        ExprData::Combine(_) => text.split(" with (").next().unwrap_or(&text).to_owned(),
        _ => text,
    }
}
