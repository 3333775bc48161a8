//! Memory access: the addresses of a view's elements, which of them exist, and loads and stores.
//!
//! A window is a box of a tensor, buffer or register tile: a start and a limit per remaining dimension. Given the shape
//! of the tile on the other side it becomes a [`Plan`]: the existing part of the tile is again a box with a corner at
//! the origin. Loads and stores walk its rows, and one check of the last address covers all others.

use super::bounds::Bound;
use super::element_addresses::DimSteps;
use super::{Number, Numbers};
use crate::codes;
use crate::diag::Span;
use crate::entities::{Expr, Value};
use crate::index_values::is_of_value;
use crate::interp::machine::{Fail, Machine, fail};
use crate::interp::tile::Tile;
use crate::interp::window::{Axis, Cells, Plan, PlannedLines, Root, Twice, Window, dense_strides, for_each_element};
use crate::kernel::{ExprData, Range, Slot, View};
use crate::numerics::cast;
use crate::types::Elem;
use std::rc::Rc;

/// An index of gathered elements that is outside of the extent, if there is one; there are `n` elements.
fn outside(rows: &[i64], n: usize, extent: i64, span: Span) -> Result<Option<i64>, Fail> {
    if rows.len() != n {
        return Err(fail(codes::ILL_FORMED, span, format!("{} indices for an extent of {n}", rows.len())));
    }
    Ok(rows.iter().copied().find(|row| !(0..extent).contains(row)))
}

/// Addresses of the elements along a dimension; `None`: the element does not exist.
type Addresses = Vec<Option<i128>>;

impl Machine<'_> {
    /// The window that `e` names, if it is a view, a place or a tensor, or one of them transposed.
    pub(super) fn window(&mut self, e: Expr) -> Result<Option<Window>, Fail> {
        let k = self.k;
        let span = self.span(e);
        match &k.exprs[e] {
            ExprData::Ref(v) => self.whole(*v, None, span),
            ExprData::View(view) => self.view(view, span),
            ExprData::Transpose(arg) => Ok(self.window(*arg)?.filter(|w| w.axes.len() == 2).map(|mut w| {
                w.axes.reverse();
                w
            })),
            _ => Ok(None),
        }
    }

    /// The window of a whole place or tensor; `None` if it is not in memory.
    fn whole(&self, v: Value, slot: Option<Slot>, span: Span) -> Result<Option<Window>, Fail> {
        use super::machine::Binding;
        let root = match (&self.env[v], slot) {
            (Binding::Alias(w), None) => return Ok(Some(Window { span, ..w.clone() })),
            (Binding::Global(g), None) => Root::Global(*g),
            (Binding::Tile(_), None) => Root::Place(v),
            (Binding::Channel(_), Some(slot)) => Root::Slot(v, slot),
            _ => return Ok(None),
        };
        let axis = |extent, stride| Axis { start: 0, end: None, extent, stride, modes: None, rows: None, cells: None };
        let axes = match root {
            Root::Global(g) => {
                let g = &self.globals[g];
                let of = |(d, (&n, s)): (usize, (&i64, &DimSteps))| match s {
                    DimSteps::One(stride) if g.padded.is_empty() => axis(n, *stride),
                    _ => Axis { modes: Some(d), ..axis(n, 0) },
                };
                g.shape.iter().zip(&g.strides).enumerate().map(of).collect()
            }
            Root::Place(_) | Root::Slot(..) => {
                let shape = &self.place(root, span)?.shape;
                shape.iter().zip(dense_strides(shape)).map(|(&n, s)| axis(n as i64, s)).collect()
            }
        };
        let lines = match root {
            Root::Global(g) => vec![0; self.globals[g].padded.len()],
            _ => Vec::new(),
        };
        Ok(Some(Window { root, base: 0, lines, axes, absent: false, span }))
    }

    fn view(&mut self, view: &View, span: Span) -> Result<Option<Window>, Fail> {
        let Some(base) = self.whole(view.base, view.slot, span)? else {
            let name = &self.k.values[view.base].name;
            return Err(fail(codes::ILL_FORMED, span, format!("`{name}` is not in a memory that can be viewed")));
        };
        if view.ranges.is_empty() {
            return Ok(Some(base));
        }
        if view.ranges.len() != base.axes.len() {
            let message = format!("{} ranges for {} dimensions", view.ranges.len(), base.axes.len());
            return Err(fail(codes::ILL_FORMED, span, message));
        }
        let mut window = Window { axes: Vec::new(), ..base.clone() };
        let rank = view.ranges.iter().filter(|range| !matches!(range, Range::At(_))).count();
        for (range, axis) in view.ranges.iter().zip(base.axes) {
            let moved = |x: i64| {
                let overflow = || fail(codes::INDEX_ARITHMETIC, span, "an index of this view does not fit 64 bits");
                axis.start.checked_add(x).ok_or_else(overflow)
            };
            match *range {
                Range::At(e) => {
                    let at = moved(self.index(e)?)?;
                    let limit = axis.end.map_or(axis.extent, |end| end.min(axis.extent));
                    let outside = at < 0 || at >= limit;
                    // In a text with decisions, other indices are not tested, except of elements of which indices are made.
                    let tested =
                        || self.outside || self.of_index || self.k.schedule.target.is_none() || is_of_value(self.k, e);
                    if outside && matches!(base.root, Root::Global(_)) && tested() {
                        window.absent = true;
                        continue;
                    }
                    if outside {
                        let message =
                            format!("index {at} is outside the extent {limit} of {}", self.root_name(base.root));
                        return Err(self.out_of_bounds(message, span));
                    }
                    window.base += self.along(base.root, &axis, at);
                    if let (Root::Global(g), Some(d)) = (base.root, axis.modes) {
                        let padded = self.globals[g].padded.iter();
                        window.lines.iter_mut().zip(padded).for_each(|(line, p)| *line += p.steps[d].offset(at));
                    }
                }
                Range::From { start, end } => {
                    let start = moved(self.index(start)?)?;
                    let end = end.map(|e| moved(self.index(e)?)).transpose()?;
                    let end = [end, axis.end].into_iter().flatten().min();
                    window.axes.push(Axis { start, end, ..axis });
                }
                Range::Gather(e) => {
                    let (shape, numbers) = self.numbers(e)?;
                    let numbers = numbers.into_iter().map(moved).collect::<Result<Vec<i64>, Fail>>()?;
                    let w = window.axes.len();
                    let others = |(d, &n): (usize, &usize)| d != w && n != 1;
                    let axis = Axis { start: 0, ..axis };
                    window.axes.push(match shape.len() == rank && shape.iter().enumerate().any(others) {
                        true => Axis { cells: Some(Rc::new(Cells { shape, numbers })), ..axis },
                        false => Axis { rows: Some(Rc::new(numbers)), ..axis },
                    });
                }
            }
        }
        Ok(Some(window))
    }

    /// The address of an index of an axis, which is inside its bounds.
    fn along(&self, root: Root, axis: &Axis, index: i64) -> i128 {
        match (root, axis.modes) {
            (Root::Global(g), Some(d)) => self.globals[g].strides[d].offset(index),
            _ => i128::from(index) * i128::from(axis.stride),
        }
    }

    /// The addresses of `n` elements along an axis from `start` on that are not a stride apart; `None` for one that does not exist.
    fn addresses(&self, root: Root, axis: &Axis, start: i64, n: usize) -> Option<Addresses> {
        match &axis.rows {
            _ if axis.cells.is_some() => None,
            Some(rows) => {
                let limit = axis.end.map_or(axis.extent, |end| end.min(axis.extent));
                Some(rows.iter().map(|&row| (0..limit).contains(&row).then(|| self.along(root, axis, row))).collect())
            }
            None => axis
                .modes
                .map(|_| (0..n as i64).map(|i| Some(self.along(root, axis, start.saturating_add(i)))).collect()),
        }
    }

    /// What the indices of elements one by one add to their addresses, in the order of elements of a tile; `None` inside: there is no such element.
    fn cells(&self, w: &Window, shape: &[usize]) -> Option<Addresses> {
        let named = || w.axes.iter().filter_map(|axis| Some((axis, axis.cells.as_ref()?)));
        named().next()?;
        let mut all = Vec::new();
        for_each_element(shape, |at| {
            let own = named().try_fold(0, |sum: i128, (axis, cells)| {
                let limit = axis.end.map_or(axis.extent, |end| end.min(axis.extent));
                let index = Some(cells.at(at)).filter(|index| (0..limit).contains(index))?;
                Some(sum + self.along(w.root, axis, index))
            });
            all.push(own);
        });
        Some(all)
    }

    /// The number of existing elements along each dimension of a window, and of missing ones before them.
    fn existing(
        &self,
        w: &Window,
        shape: &[usize],
        check: Option<&[u32]>,
        absent: bool,
    ) -> Result<(Vec<usize>, Vec<usize>), Fail> {
        let global = matches!(w.root, Root::Global(_));
        let checked = |d: usize| !global || check.is_none_or(|c| c.iter().any(|&c| c as usize == d));
        let mut valid = Vec::with_capacity(shape.len());
        let mut skipped = Vec::with_capacity(shape.len());
        let mut violation = None;
        for (d, (axis, &n)) in w.axes.iter().zip(shape).enumerate() {
            let limit = match (global, axis.end) {
                (true, Some(end)) => end.min(axis.extent),
                (true, None) => axis.extent,
                (false, end) => end.unwrap_or(i64::MAX),
            };
            if let Some(rows) = &axis.rows {
                let outside = outside(rows, n, limit, w.span)?.filter(|_| !checked(d));
                violation = violation.or(outside.map(|index| (d, index, limit)));
                valid.push(if self.outside { 0 } else { n });
                skipped.push(0);
                continue;
            }
            if let Some(cells) = &axis.cells {
                let repeats = |at: usize, own: usize| at != d && own == 1;
                let mut sides = cells.shape.iter().zip(shape).enumerate();
                if sides.any(|(at, (&own, &n))| own != n && !repeats(at, own)) {
                    let message = format!("indices of extents {:?} for a tile of {shape:?}", cells.shape);
                    return Err(fail(codes::ILL_FORMED, w.span, message));
                }
                let outside = cells.numbers.iter().copied().find(|n| !(0..limit).contains(n) && !checked(d));
                violation = violation.or(outside.map(|index| (d, index, limit)));
                valid.push(if self.outside { 0 } else { n });
                skipped.push(0);
                continue;
            }
            // Windows of tensors may begin before the tensor.
            let before = if global && checked(d) { axis.start.saturating_neg().max(0) } else { 0 };
            let before = usize::try_from(before).unwrap_or(n).min(n);
            let end = usize::try_from(limit.saturating_sub(axis.start)).unwrap_or(0).min(n);
            let exist = if global && self.outside { 0 } else { end.saturating_sub(before) };
            let past = axis.start.saturating_add(end as i64);
            let outside = if axis.start < 0 && before == 0 {
                Some(axis.start)
            } else if exist < n && !checked(d) {
                Some(past)
            } else if !global && exist > 0 && past > axis.extent {
                Some(axis.extent.max(axis.start))
            } else {
                None
            };
            violation = violation.or(outside.map(|index| (d, index, limit.min(axis.extent))));
            valid.push(if checked(d) || (global && self.outside) { exist } else { n });
            skipped.push(before);
        }
        if absent || valid.contains(&0) {
            violation = None; // Every element is masked out by a tested dimension: nothing is accessed.
        }
        if let Some((d, index, extent)) = violation {
            let name = self.root_name(w.root);
            let mut message = format!("index {index} is outside the extent {extent} of dimension {d} of {name}");
            if global && index >= 0 {
                message += ", and this access does not test that dimension";
            }
            return Err(self.out_of_bounds(message, w.span));
        }
        Ok((valid, skipped))
    }

    /// The plan of moving a tile of this shape. `check`: which dimensions of global memory are compared with the
    /// bounds; `None`: all.
    pub(super) fn plan(&self, w: &Window, shape: &[usize], check: Option<&[u32]>) -> Result<Plan, Fail> {
        if w.axes.len() != shape.len() {
            let message = format!("a view of {} dimensions cannot hold a tile of {}", w.axes.len(), shape.len());
            return Err(fail(codes::ILL_FORMED, w.span, message));
        }
        let global = matches!(w.root, Root::Global(_));
        let absent = w.absent || global && self.outside;
        let (mut valid, mut skipped) = self.existing(w, shape, check, absent)?;
        let mut first = w.base;
        let mut last = w.base;
        let mut tables = Vec::with_capacity(shape.len());
        for ((axis, &n), &skipped) in w.axes.iter().zip(&valid).zip(&skipped) {
            let stride = i128::from(axis.stride);
            let start = axis.start.saturating_add(skipped as i64);
            if axis.rows.is_none() && axis.cells.is_none() {
                first += i128::from(start) * stride;
                last += (i128::from(start) + n as i128 - 1) * stride;
            }
            let table = self.addresses(w.root, axis, start, n);
            last += table.iter().flatten().flatten().max().copied().unwrap_or(0);
            tables.push(table);
        }
        let cells = self.cells(w, shape);
        last += cells.iter().flatten().flatten().max().copied().unwrap_or(0);
        let padded = self.padded(w, &valid, &skipped);
        let len = match w.root {
            Root::Global(g) => self.globals[g].data.len(),
            root => self.place(root, w.span)?.data.len(),
        };
        if let Root::Global(g) = w.root {
            let front = |p: &super::window::Lines| i128::from(p.behind) * i128::from(p.stride);
            first -= self.globals[g].padded.iter().map(front).sum::<i128>();
        }
        if padded.is_empty() && !absent && !valid.contains(&0) && last >= len as i128 {
            let name = self.root_name(w.root);
            let message = format!("address {last} is outside the {len} elements that {name} has in memory");
            return Err(self.out_of_bounds(message, w.span));
        }
        // An unused stride may be any 64-bit number; the used ones lead to addresses below `len`.
        let steps = |a: &Axis, n: usize| a.cells.is_none() && n > 1;
        let strides = w.axes.iter().zip(&valid).map(|(a, &n)| if steps(a, n) { a.stride as usize } else { 0 });
        let mut strides: Vec<usize> = strides.collect();
        if let (Some(step), Some(1)) = (strides.last_mut(), valid.last()) {
            *step = 1;
        }
        let mut shape = shape.to_vec();
        let narrow = |table: Addresses| table.into_iter().map(|x| x.map(|x| usize::try_from(x).unwrap_or(0))).collect();
        let mut tables: Vec<Option<Vec<Option<usize>>>> = tables.into_iter().map(|t| t.map(narrow)).collect();
        let cells: Option<Vec<Option<usize>>> = cells.map(narrow);
        if cells.is_some() || matches!(tables.last(), Some(Some(_))) {
            // Rows have one step: here they are of one element.
            shape.push(1);
            skipped.push(0);
            valid.push(1);
            strides.push(1);
            tables.push(None);
        }
        let base = if padded.is_empty() { usize::try_from(first).unwrap_or(0) } else { first as usize };
        let plan = Plan { shape, skipped, valid, strides, tables, cells, base, padded, absent };
        let mut beyond = None;
        if !plan.padded.is_empty() {
            plan.rows(|_, address| beyond = beyond.or((address >= len).then_some(address)));
        }
        match beyond {
            None => Ok(plan),
            Some(address) => {
                let name = self.root_name(w.root);
                let message = format!("address {address} is outside the {len} elements that {name} has in memory");
                Err(self.out_of_bounds(message, w.span))
            }
        }
    }

    /// On which padded lines the elements of a tile are.
    fn padded(&self, w: &Window, valid: &[usize], skipped: &[usize]) -> Vec<PlannedLines> {
        let Root::Global(g) = w.root else { return Vec::new() };
        let of = |(p, &base): (&super::window::Lines, &i128)| {
            let along = |((axis, &n), &skipped): ((&Axis, &usize), &usize)| {
                let Some(d) = axis.modes else { return Vec::new() };
                let start = axis.start.saturating_add(skipped as i64);
                let line = |at: i64| if at < 0 { 0 } else { p.steps[d].offset(at) };
                match &axis.rows {
                    Some(rows) => rows.iter().map(|&row| line(row)).collect(),
                    None => (0..n as i64).map(|i| line(start.saturating_add(i))).collect(),
                }
            };
            let tables = w.axes.iter().zip(valid).zip(skipped).map(along).collect();
            PlannedLines { base: base - i128::from(p.behind), extent: p.extent, tables }
        };
        self.globals[g].padded.iter().zip(&w.lines).map(of).collect()
    }

    /// Reads a tile; elements that do not exist are zero, or what the copy fills in.
    pub(super) fn load(&mut self, w: &Window, shape: &[usize], check: Option<&[u32]>) -> Result<Tile, Fail> {
        let n = self.count(shape, w.span)?;
        let elem = match w.root {
            Root::Global(g) => self.globals[g].elem,
            root => self.place(root, w.span)?.elem,
        };
        let mut out = Tile { exact: true, ..Tile::new(elem, shape.to_vec(), Numbers::zeros(elem, n)) };
        if let (Root::Global(_), Some(fill)) = (w.root, self.fill) {
            let unfit = || fail(codes::ILL_FORMED, w.span, format!("{} has no such number as `fill`", elem.name()));
            out.data = match fill.number(elem).ok_or_else(unfit)? {
                Number::Float(outside) => Numbers::Floats(vec![outside; n]),
                Number::Wide(outside) => Numbers::Wide(vec![outside; n]),
            };
        }
        if elem == Elem::UE8M0 && self.fill.is_none() {
            // Bits of zero.
            out.data = Numbers::Floats(vec![cast::to_float(elem, 0.0); n]);
        }
        self.load_over(w, check, &mut out)?;
        Ok(out)
    }

    /// Reads a tile into `out`; elements that do not exist keep their value. The element type becomes that of the
    /// memory.
    pub(super) fn load_over(&mut self, w: &Window, check: Option<&[u32]>, out: &mut Tile) -> Result<(), Fail> {
        self.work(out.data.len(), w.span)?;
        if let Root::Global(g) = w.root {
            self.check_cluster_tile(self.globals[g].value, w.span)?;
        }
        let plan = self.plan(w, &out.shape, check)?;
        let (elem, data, poison, bound, exact) = match w.root {
            Root::Global(g) => {
                let g = &self.globals[g];
                (g.elem, &g.data, None, g.bound.clone(), true)
            }
            root => {
                let t = self.place(root, w.span)?;
                (t.elem, &t.data, t.poison.as_ref(), t.errors(), t.exact)
            }
        };
        if out.bound.is_some() || bound.is_some() {
            let mut over = out.errors().unwrap_or_else(|| Bound::none(out.data.len()));
            over.drowned |= bound.as_ref().is_some_and(|b| b.drowned);
            plan.scatter(|address, i| over.error[i] = bound.as_ref().map_or(0.0, |b| b.error[address]));
            out.bound = over.nonzero();
        }
        plan.gather_numbers(data, elem, &mut out.data);
        match (poison, &mut out.poison) {
            (Some(p), over) => plan.gather(p, over.get_or_insert_with(|| vec![false; out.data.len()])),
            (None, Some(over)) => plan.scatter(|_, i| over[i] = false),
            (None, None) => {}
        }
        out.drop_empty_poison();
        (out.elem, out.exact) = (elem, out.exact && exact);
        Ok(())
    }

    /// Writes a tile to a register tile or a buffer. The elements have been converted.
    pub(super) fn store_place(&mut self, w: &Window, tile: Rc<Tile>) -> Result<(), Fail> {
        self.work(tile.data.len(), w.span)?;
        let plan = self.plan(w, &tile.shape, None)?;
        self.check_stored_once(w, &tile.shape, &plan)?;
        let place = self.place_mut(w.root, w.span)?;
        if plan.is_whole(place.data.len()) && tile.shape == place.shape {
            *place = tile;
            return Ok(());
        }
        let place = Rc::make_mut(place);
        let len = place.data.len();
        if place.bound.is_some() || tile.bound.is_some() {
            let (mut to, from) = (place.errors().unwrap_or_else(|| Bound::none(len)), tile.errors());
            to.drowned |= from.as_ref().is_some_and(|b| b.drowned);
            plan.scatter(|address, i| to.error[address] = from.as_ref().map_or(0.0, |b| b.error[i]));
            place.bound = to.nonzero();
        }
        plan.scatter_numbers(&tile.data, &mut place.data, place.elem);
        match (&tile.poison, &mut place.poison) {
            (Some(from), to) => {
                let to = to.get_or_insert_with(|| vec![false; len]);
                plan.scatter(|address, i| to[address] = from[i]);
            }
            (None, Some(to)) => plan.scatter(|address, _| to[address] = false),
            (None, None) => {}
        }
        place.drop_empty_poison();
        place.exact &= tile.exact;
        Ok(())
    }

    /// Reports two elements of a tile that are stored to one place.
    fn check_stored_once(&self, w: &Window, shape: &[usize], plan: &Plan) -> Result<(), Fail> {
        let exists = !plan.absent && !plan.valid.contains(&0);
        let Some(Twice { elements: [one, other], index }) = w.twice(shape).filter(|_| exists) else { return Ok(()) };
        let name = self.root_name(w.root);
        let message = format!(
            "elements {one} and {other} of the tile are stored to index {index} of {name}: which one stays is open"
        );
        let found = fail(codes::STORED_TWICE, self.at, message);
        Err(found.with_note("combine them (`add`, `min`, `max`), or have each index but once").into())
    }

    /// Writes a tile to global memory; only elements that exist. The elements have been converted.
    pub(super) fn store_global(&mut self, w: &Window, tile: &Tile, check: Option<&[u32]>) -> Result<(), Fail> {
        let Root::Global(g) = w.root else {
            return Err(fail(codes::ILL_FORMED, w.span, "not global memory"));
        };
        self.work(tile.data.len(), w.span)?;
        let plan = self.plan(w, &tile.shape, check)?;
        self.check_stored_once(w, &tile.shape, &plan)?;
        if let Some(poison) = &tile.poison {
            let mut bad = None;
            plan.scatter(|_, i| {
                if poison[i] && bad.is_none() {
                    bad = Some(i);
                }
            });
            if let Some(i) = bad {
                let mut rest = i;
                let mut index: Vec<String> = Vec::new();
                for &n in tile.shape.iter().rev() {
                    index.push((rest % n).to_string());
                    rest /= n;
                }
                index.reverse();
                let name = self.root_name(w.root);
                let message = format!("element ({}) of the tile stored to {name} was never written", index.join(", "));
                return Err(fail(codes::UNWRITTEN, self.at, message)
                    .with_note("it comes from a register tile or shared memory that was read before it was filled")
                    .into());
            }
        }
        if !self.apart.note(self.globals[g].value, &plan) {
            let message =
                format!("an element of {} is stored twice, and a store to it says `apart`", self.root_name(w.root));
            return Err(fail(codes::STORED_TWICE, self.at, message)
                .with_note("`apart` promises that no other store of the launch is to these elements")
                .into());
        }
        let global = &mut self.globals[g];
        plan.scatter_numbers(&tile.data, &mut global.data, global.elem);
        let from = tile.errors();
        if global.bound.is_some() || from.is_some() {
            let none = || Bound::none(global.data.len());
            let to = global.bound.get_or_insert_with(none);
            to.drowned |= from.as_ref().is_some_and(|b| b.drowned);
            plan.scatter(|address, i| to.error[address] = from.as_ref().map_or(0.0, |b| b.error[i]));
        }
        Ok(())
    }

    /// The name of a root in messages.
    fn root_name(&self, root: Root) -> String {
        let (v, slot) = match root {
            Root::Global(g) => (self.globals[g].value, ""),
            Root::Place(v) => (v, ""),
            Root::Slot(v, Slot::Put) => (v, ".put"),
            Root::Slot(v, Slot::Get) => (v, ".get"),
        };
        format!("`{}{slot}`", self.k.values[v].name)
    }

    fn out_of_bounds(&self, message: String, view: Span) -> Fail {
        let d = fail(codes::OUT_OF_BOUNDS, self.at, message);
        if view == self.at || view.is_none() { d } else { Box::new(d.with_place(view, "this view")) }
    }
}
