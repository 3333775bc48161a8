//! Elements of tensors: which statements read or store a window that has one, in which block and iteration.

use super::backward::{Backward, Of};
use super::forward::{Forward, From};
use super::solve::{Constraint, Count, Solution};
use super::spot::{Run, Spot, at};
use super::text::head;
use super::uses::window_shape;
use super::windows::{Numbers, Window, from_memory, gathered, name_of};
use super::{PathBuilder, element, is_inside, places};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData, ValueDef};
use tilec_ir::print::print_expr;
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

    /// Where a window has an element of its base, `any`where along some dimensions.
    ///
    /// # Errors
    /// It is nowhere, or sizes say where: these.
    pub(super) fn finds(&self, access: &Access, coords: &[u64], any: &[usize]) -> Result<Place, Vec<String>> {
        let k = self.k;
        let repeats = k.tensor_ty(access.view.base).map(|t| t.repeats.clone()).unwrap_or_default();
        let any: Vec<usize> = any.iter().copied().chain(repeats).collect();
        let window = Window { solver: &self.solver, k, view: &access.view, shape: &access.shape };
        let mut all = window.has(&at(coords), &any).ok_or_else(Vec::new)?;
        all.extend(self.solver.conditions(access.stmt));
        if let StmtData::Copy { attrs, .. } = &k.stmts[access.stmt] {
            all.extend(attrs.when.map(|e| Constraint::Holds(e, true)));
        }
        let found = |sizes: &Numbers, of_model: bool| match self.solver.solve(&all, sizes, &Numbers::new()) {
            Solution::At(at, count) => {
                let with_sizes = |at: &Numbers| sizes.iter().chain(at).map(|(v, n)| (*v, *n)).collect();
                let mut all = at.iter().map(with_sizes);
                let numbers = all.next().unwrap_or_default();
                Ok(Place { numbers, further: all.collect(), count, of_model })
            }
            Solution::Nowhere => Err(Vec::new()),
            Solution::Unknown(names) => Err(names),
        };
        match found(&self.sizes, false) {
            // Where the model has sizes, these show one of the places.
            Err(names) if !names.is_empty() => found(&self.model_sizes, true).or(Err(names)),
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
        if !free.is_empty() && !when.is_empty() {
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
        let named = self.names_of(v);
        open.sort();
        open.dedup();
        let memory = self.memory_names(v);
        let text = match (named.is_empty(), open.is_empty()) {
            (true, _) if !memory.is_empty() => {
                format!("where its windows begin memory says at run time: {}", memory.join(", "))
            }
            (false, _) => format!("memory names the row, so ask for {}", named.join(" or ")),
            (true, false) => {
                format!("which block has it depends on sizes: give values of `{}` behind the file", open.join("`, `"))
            }
            (true, true) => "no statement reads or stores it".to_owned(),
        };
        self.from(root, false, |way| {
            way.push("global memory", element(&name, &declared), text, span);
        });
    }

    /// What reads an element of a tensor. Whether something does.
    fn is_read(&mut self, v: Value, coords: &[u64], open: &mut Vec<String>) -> bool {
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
            match self.finds(&access, coords, &[]) {
                Ok(place) => found |= self.read_at(&access, coords, &place),
                Err(names) => open.extend(names),
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
    fn is_stored(&mut self, v: Value, coords: &[u64], open: &mut Vec<String>) -> bool {
        let k = self.k;
        let mut found = false;
        for access in self.stores(v) {
            let place = match self.finds(&access, coords, &[]) {
                Ok(place) => place,
                Err(names) => {
                    open.extend(names);
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

    /// An element of what a `let` names as a window: that element of its tensor.
    pub(super) fn of_window(&mut self, v: Value, coords: &[u64]) -> Result<(), String> {
        let k = self.k;
        let Some(init) = k.let_init(v) else { return Ok(()) };
        let Some(view) = resolve_view(k, init) else { return Ok(()) };
        let (name, span) = (k.values[v].name.clone(), k.values[v].span);
        is_inside(&name, &self.extents(v), coords)?;
        let text = print_expr(k, init);
        let shape: Vec<u64> = coords.iter().map(|n| n + 1).collect();
        let window = Window { solver: &self.solver, k, view: &view, shape: &shape };
        // The first block and iteration in which it is in the tensor.
        let inside: Vec<Run> = view.dims.iter().map(|_| Run::all(u64::MAX)).collect();
        let first = window.has(&inside, &[]).map(|all| self.solver.solve(&all, &self.sizes, &Numbers::new()));
        let own = match first {
            Some(Solution::At(found, _)) => {
                let mut numbers = self.sizes.clone();
                numbers.extend(found.into_iter().next().unwrap_or_default());
                let own = window.in_base(&at(coords), &numbers, &[]).filter(|own| super::spot::is_one(own));
                own.map(|own| (super::spot::first(&own), numbers))
            }
            _ => None,
        };
        let what = element(&name, coords);
        let Some((own, numbers)) = own else {
            let text = format!("an element of the window `{text}`, whose place the launch alone knows");
            self.push("window", what, text, span);
            return Ok(());
        };
        let base = element(&k.values[view.base].name, &own);
        let when = self.when(&Place { numbers, further: Vec::new(), count: Count::default(), of_model: false });
        let here =
            self.push("window", what, format!("{when}, the first of its places: {base}, of the window `{text}`"), span);
        self.from(here, false, |way| way.of_tensor(view.base, &own));
        Ok(())
    }

    /// An element of a tile, or of the value of a name: what it is made of, and what becomes of it.
    pub(super) fn of_place(&mut self, v: Value, coords: &[u64]) -> Result<(), String> {
        let k = self.k;
        let name = k.values[v].name.clone();
        let shape = self.extents(v);
        is_inside(&name, &shape, coords)?;
        let spot = at(coords);
        let here = match (self.lies(v, &spot), k.let_init(v)) {
            (Some((place, text)), init) => {
                let of = init.map_or(String::new(), |init| format!("an element of `{}`: ", print_expr(k, init)));
                let kind = if init.is_some() { "computed" } else { place };
                self.push(kind, element(&name, coords), of + &text, k.values[v].span)
            }
            (None, Some(init)) => {
                let text = format!("an element of `{}`", print_expr(k, init));
                self.push("computed", element(&name, coords), text, k.values[v].span)
            }
            (None, None) => return Err(format!("`{name}` is no tile of the program after the last pass")),
        };
        let numbers = self.sizes.clone();
        let program = (k, &self.solver, &self.loops);
        let ahead = Forward::new(program, From::Place { place: v, spot: spot.clone() }, numbers.clone()).run();
        let behind = Backward::new(program, Of::Place { place: v, spot }, numbers).run();
        self.from(here, false, |way| way.show_forward(&ahead, ""));
        self.from(here, true, |way| way.show_backward(&behind, ""));
        Ok(())
    }

    /// An element of a tile that passes made after loops were laid out.
    pub(super) fn of_last_tile(&mut self, name: &str, coords: &[u64]) -> Result<(), String> {
        let gone = || format!("`{name}` is no tile of the program after the last pass");
        let v = self.called(name).ok_or_else(gone)?;
        let last: &Kernel = self.last;
        let shape = last.const_shape(places::shape_of(last, v)).unwrap_or_default();
        is_inside(name, &shape, coords)?;
        let team = crate::xray::threads::ThreadGroup::of_tile(last, v);
        let (at, text) = places::in_tile(last, v, coords, &team).ok_or_else(gone)?;
        self.push(at, element(name, coords), text, last.values[v].span);
        Ok(())
    }
}
