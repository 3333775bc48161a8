//! Elements of tensors: which statements read or store a window that has one, in which block and iteration.

use super::backward::{Backward, Of};
use super::forward::{Forward, From};
use super::solve::{Constraint, Count, Solution};
use super::spot::{Run, Spot, at};
use super::text::head;
use super::uses::window_shape;
use super::windows::{Numbers, Window, from_memory, gathered, name_of};
use super::{PathBuilder, element, places};
use std::collections::BTreeSet;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{StmtData, ValueDef};
use tilec_ir::print::print_expr;
use tilec_ir::types::Scratch;
use tilec_ir::typing::{ResolvedView, copy_shape, resolve_view};

/// A window of a tensor that a statement reads, or stores to.
pub(super) struct Access {
    pub(super) stmt: Stmt,
    pub(super) window: Expr,
    pub(super) view: ResolvedView,
    pub(super) shape: Vec<u64>,
}

/// Where a window has an element first.
pub(super) struct Place {
    pub(super) numbers: Numbers,
    /// Where it does in further iterations of the same block.
    pub(super) further: Vec<Numbers>,
    pub(super) count: Count,
    /// Sizes of the model were needed.
    pub(super) of_model: bool,
}

/// Why there is no place.
pub(super) enum Missed {
    Nowhere,
    /// Sizes say where: these.
    Sizes(Vec<String>),
    /// Memory says where.
    Memory,
}

impl PathBuilder<'_> {
    /// That a tensor has the element, as far as its extents are known.
    ///
    /// # Errors
    /// It has none there; the text says so.
    pub(super) fn is_there(&self, v: Value, coords: &[u64]) -> Result<(), String> {
        let k = self.k;
        let Some(t) = k.tensor_ty(v) else { return Ok(()) };
        for (d, (&e, &c)) in t.shape.iter().zip(coords).enumerate() {
            let Some(range) = self.solver.range(e, &self.sizes).filter(|r| i128::from(c) >= r.hi) else { continue };
            let name = element(&k.values[v].name, coords);
            let most = if range.lo == range.hi { "" } else { "at most " };
            let text = print_expr(k, e);
            let is = if text == range.hi.to_string() { String::new() } else { format!("`{text}`, which is ") };
            return Err(format!(
                "there is no element `{name}`: the extent of `{}` along dimension {d} is {is}{most}{}",
                k.values[v].name, range.hi
            ));
        }
        Ok(())
    }

    /// The coordinates, of extents that are known at most the last ones.
    pub(super) fn within(&self, v: Value, mut coords: Vec<u64>) -> Vec<u64> {
        let Some(t) = self.k.tensor_ty(v) else { return coords };
        for (c, &e) in coords.iter_mut().zip(&t.shape) {
            let last = self.solver.range(e, &self.sizes).and_then(|r| u64::try_from(r.hi - 1).ok());
            *c = (*c).min(last.unwrap_or(*c));
        }
        coords
    }

    /// Windows of a tensor in what statements read.
    pub(super) fn reads(&self, v: Value) -> Vec<Access> {
        let k = self.k;
        let mut all = Vec::new();
        for s in PathBuilder::statements(k) {
            let Some((src, _, shape)) = super::forward::computes(k, s) else { continue };
            let mut open = vec![src];
            let mut own = Vec::new();
            while let Some(e) = open.pop() {
                open.extend(k.children(e).into_iter().rev());
                let Some(view) = resolve_view(k, e).filter(|view| view.base == v) else { continue };
                if let Some(shape) = window_shape(k, e, &view, shape.as_deref()) {
                    own.push(Access { stmt: s, window: e, view, shape });
                }
            }
            all.extend(own);
        }
        all
    }

    /// Windows of a tensor that copies store to.
    pub(super) fn stores(&self, v: Value) -> Vec<Access> {
        let k = self.k;
        let of = |s: Stmt| {
            let StmtData::Copy { src, dst, .. } = k.stmts[s] else { return None };
            let view = resolve_view(k, dst).filter(|view| view.base == v)?;
            Some(Access { stmt: s, window: dst, view, shape: copy_shape(k, src, dst)? })
        };
        PathBuilder::statements(k).into_iter().filter_map(of).collect()
    }

    /// Where a window has an element of its base, anywhere along the dimensions in `any`; `known`: numbers that are known already.
    ///
    /// # Errors
    /// It is nowhere, or one cannot tell.
    pub(super) fn finds(
        &self,
        access: &Access,
        coords: &[u64],
        (any, known): (&[usize], &Numbers),
    ) -> Result<Place, Missed> {
        let k = self.k;
        let repeats = k.tensor_ty(access.view.base).map(|t| t.repeats.clone()).unwrap_or_default();
        let any: Vec<usize> = any.iter().copied().chain(repeats).collect();
        let window = Window { solver: &self.solver, k, view: &access.view, shape: &access.shape };
        let mut all = window.has(&at(coords), &any).ok_or(Missed::Nowhere)?;
        all.extend(self.solver.conditions(access.stmt));
        if let StmtData::Copy { attrs, .. } = &k.stmts[access.stmt] {
            all.extend(attrs.when.map(|e| Constraint::Holds(e, true)));
        }
        let found = |sizes: &Numbers, of_model: bool| {
            let sizes: &Numbers = &sizes.iter().chain(known).map(|(v, n)| (*v, *n)).collect();
            match self.solver.solve(&all, sizes, &Numbers::new()) {
                Solution::At(at, count) => {
                    let with_sizes = |at: &Numbers| sizes.iter().chain(at).map(|(v, n)| (*v, *n)).collect();
                    let mut all = at.iter().map(with_sizes);
                    let numbers = all.next().unwrap_or_default();
                    Ok(Place { numbers, further: all.collect(), count, of_model })
                }
                Solution::Nowhere => Err(Missed::Nowhere),
                Solution::Unknown(names) if names.is_empty() => Err(Missed::Memory),
                Solution::Unknown(names) => Err(Missed::Sizes(names)),
            }
        };
        match found(&self.sizes, false) {
            // Where the model has sizes, these show one of the places.
            Err(Missed::Sizes(names)) => found(&self.model_sizes, true).map_err(|_| Missed::Sizes(names)),
            other => other,
        }
    }

    /// Where an element is in a window at a place; of dimensions that repeat, and of those that memory names, all of it.
    pub(super) fn spot(&self, access: &Access, coords: &[u64], numbers: &Numbers) -> Option<Spot> {
        let window = Window { solver: &self.solver, k: self.k, view: &access.view, shape: &access.shape };
        let mut spot = at(coords);
        let t = self.k.tensor_ty(access.view.base);
        for &d in t.map_or(&[][..], |t| &t.repeats) {
            spot[d] = Run::all(u64::MAX);
        }
        for (d, dim) in access.view.dims.iter().enumerate() {
            if from_memory(self.k, dim) {
                spot[d] = Run::all(u64::MAX);
            }
        }
        window.inside(&spot, numbers)
    }

    /// At which numbers something is, in words: the first, and how many there are.
    pub(super) fn when(&self, place: &Place) -> String {
        let k = self.k;
        let stops =
            |v: &Value| k.statement_data().any(|s| matches!(s, StmtData::For { var, cond: Some(_), .. } if var == v));
        let number = |v: &Value| {
            let n = place.numbers.get(v)?;
            let so_far = if stops(v) { " (if its `while` lets the loop come so far)" } else { "" };
            Some(format!("{} = {n}{so_far}", k.values[*v].name))
        };
        let mut when: Vec<String> = self.solver.order().iter().filter_map(number).collect();
        let free: Vec<String> = k
            .grid
            .iter()
            .filter(|axis| !place.numbers.contains_key(&axis.index))
            .map(|axis| format!("`{}`", k.values[axis.index].name))
            .collect();
        let Count { blocks, iterations, more } = place.count;
        let least = if more { "at least " } else { "" };
        let mut notes = Vec::new();
        if blocks > 1 {
            notes.push(format!("the first of {least}{blocks} blocks"));
        }
        if iterations > 1 {
            notes.push(format!("the first of {least}{iterations} iterations"));
        }
        let by_data = place.numbers.keys().any(|&v| self.solver.begins_by_data(v));
        if by_data {
            notes.push("in the block whose loop comes there: memory says where it begins".to_owned());
        } else if !free.is_empty() && !when.is_empty() {
            notes.push(format!("in each block along {}", free.join(", ")));
        }
        if place.of_model {
            let size = |(v, n): (&Value, &i64)| {
                matches!(k.values[*v].def, ValueDef::Size).then(|| format!("{} = {n}", k.values[*v].name))
            };
            let sizes: Vec<String> = self.model_sizes.iter().filter_map(size).collect();
            notes.push(format!("for sizes of the model: {}", sizes.join(", ")));
        }
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        if when.is_empty() {
            when.push("in every block".to_owned());
            return when.concat() + &notes;
        }
        format!("at {}{notes}", when.join(", "))
    }

    /// An element of a tensor: each window that has it.
    pub(super) fn of_tensor(&mut self, v: Value, coords: &[u64]) {
        let k = self.k;
        let name = k.values[v].name.clone();
        let bytes = places::in_tensor(k, v, coords, &self.sizes);
        let span = k.values[v].span;
        // As the tensor is declared, without the dimension along which it repeats.
        let repeats = |d: &usize| k.tensor_ty(v).is_some_and(|t| t.repeats.contains(d));
        let declared: Vec<u64> = (0..).zip(coords).filter(|(d, _)| !repeats(d)).map(|(_, &n)| n).collect();
        let text = format!("an element of the tensor{bytes}");
        let root = self.push("global memory", element(&name, &declared), text, span);
        let mut open = Vec::new();
        let mut found = false;
        self.from(root, false, |way| found = way.is_read(v, coords, &mut open));
        self.from(root, true, |way| found |= way.is_stored(v, coords, &mut open));
        if found {
            return;
        }
        let (named, memory) = (self.names_of(v), self.memory_names(v));
        let by_memory = open.iter().any(|missed| matches!(missed, Missed::Memory));
        let sizes: BTreeSet<String> = open
            .into_iter()
            .flat_map(|missed| if let Missed::Sizes(names) = missed { names } else { Vec::new() })
            .collect();
        let sizes: Vec<String> = sizes.into_iter().collect();
        let signals = k.tensor_ty(v).is_some_and(|t| t.scratch == Some(Scratch::Signals));
        let text = match (named.is_empty(), memory.is_empty(), by_memory, sizes.is_empty()) {
            _ if signals => "a signal between blocks, which `signal` sets and `await` resets".to_owned(),
            (false, ..) => format!("memory names the row, so ask for {}", named.join(" or ")),
            (_, false, ..) => format!("where its windows begin memory says at run time: {}", memory.join(", ")),
            (_, _, true, _) => "which block and iteration have it memory says at run time".to_owned(),
            (_, _, _, false) => {
                format!("which block has it depends on sizes: give values of `{}` after the file", sizes.join("`, `"))
            }
            _ => "no statement reads or stores it".to_owned(),
        };
        self.from(root, false, |way| {
            way.push("global memory", element(&name, &declared), text, span);
        });
    }

    /// What reads an element of a tensor. Whether something does.
    fn is_read(&mut self, v: Value, coords: &[u64], open: &mut Vec<Missed>) -> bool {
        let k = self.k;
        let mut found = false;
        for access in self.reads(v) {
            if let Some((d, rows)) = gathered(k, &access.view).first() {
                let named = print_expr(k, *rows);
                let mut asked: Vec<String> = coords.iter().map(u64::to_string).collect();
                let window: Spot = access.shape.iter().map(|_| Run::one(0)).collect();
                let first = name_of(k, &access.view, (*d, *rows), &window);
                asked[*d] = format!("{named}[{}]", vec!["0"; first.len()].join(","));
                let text = format!(
                    "gathered: wherever `{named}` names {}, which memory says at run time; `element:{}[{}]` is the element that the first index names",
                    coords[*d],
                    k.values[v].name,
                    asked.join(",")
                );
                let head = head(&self.plain, access.stmt);
                self.push("copy", head, text, k.stmt_spans[access.stmt]);
                found = true;
                continue;
            }
            if access.view.dims.iter().any(|dim| from_memory(k, dim)) {
                continue;
            }
            match self.finds(&access, coords, (&[], &Numbers::new())) {
                Ok(place) => found |= self.read_at(&access, coords, &place),
                Err(missed) => open.push(missed),
            }
        }
        found
    }

    /// Tiles and tensors whose elements say where windows of a tensor begin.
    fn memory_names(&self, v: Value) -> Vec<String> {
        let k = self.k;
        let mut names = Vec::new();
        for Access { view, .. } in self.reads(v).into_iter().chain(self.stores(v)) {
            for e in view.dims.iter().filter(|dim| from_memory(k, dim)).flat_map(|dim| dim.starts()) {
                k.has_part(*e, |part| {
                    let base = resolve_view(k, part).map(|view| format!("`{}`", k.values[view.base].name));
                    names.extend(base.filter(|name| !names.contains(name)));
                    false
                });
            }
        }
        names
    }

    fn read_at(&mut self, access: &Access, coords: &[u64], place: &Place) -> bool {
        let when = self.when(place);
        let mut found = false;
        for numbers in std::iter::once(&place.numbers).chain(&place.further) {
            let Some(spot) = self.spot(access, coords, numbers) else { continue };
            let from = From::Read { stmt: access.stmt, window: access.window, spot };
            let graph = Forward::new((self.k, &self.solver, &self.loops), from, numbers.clone()).run();
            self.show_forward(&graph, &when);
            found |= !graph.nodes.is_empty();
        }
        found
    }

    /// An element of a tensor that the kernel stores: each copy that stores it, and what that is made of. Whether there is one.
    fn is_stored(&mut self, v: Value, coords: &[u64], open: &mut Vec<Missed>) -> bool {
        let k = self.k;
        let mut found = false;
        for access in self.stores(v) {
            let place = match self.finds(&access, coords, (&[], &Numbers::new())) {
                Ok(place) => place,
                Err(missed) => {
                    open.push(missed);
                    continue;
                }
            };
            let Some(spot) = self.spot(&access, coords, &place.numbers) else { continue };
            found = true;
            let named = |&(d, rows): &(usize, Expr)| {
                let rows = print_expr(k, rows);
                format!("wherever `{rows}` names {}, which memory says at run time", coords[d])
            };
            let scattered: Vec<String> = gathered(k, &access.view).iter().map(named).collect();
            let scattered =
                if scattered.is_empty() { String::new() } else { format!(", scattered: {}", scattered.join(", and ")) };
            let when = self.when(&place) + &scattered;
            let of = Of::Store { stmt: access.stmt, spot };
            let graph = Backward::new((k, &self.solver, &self.loops), of, place.numbers).run();
            self.show_backward(&graph, &when);
        }
        found
    }
}
