//! The way of an element in a row that memory names: `A[rows[3], 5]`, where `rows` is a tile of indices, or `A[P[9], 5]`, where `P[9]` is read as an index.

use super::backward::{Backward, Of};
use super::element::Coord;
use super::forward::{Forward, From};
use super::solve::{Constraint, Solution};
use super::spot::{Run, Spot, at, whole};
use super::tensor::{Access, Place};
use super::windows::{Numbers, Window, from_memory, gathered};
use super::{Element, PathBuilder, places};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::typing::{ResolvedView, ViewDim, fixed_shape, resolve_view};

impl PathBuilder<'_> {
    /// An element of a tensor, of which memory names a coordinate.
    ///
    /// # Errors
    /// It is no tensor, or nothing accesses it so; the text says so.
    pub(super) fn of_named(&mut self, v: Option<Value>, name: &str, coords: &[Coord]) -> Result<(), String> {
        let k = self.k;
        let Some(v) = v.filter(|&v| k.tensor_ty(v).is_some()) else {
            return Err(format!(
                "`{name}` is no tensor: memory names rows of tensors alone, and coordinates of tiles are numbers"
            ));
        };
        let asked = Element { kernel: None, name: name.to_owned(), coords: coords.to_vec() };
        let mut all = Vec::new();
        for (access, store) in
            self.reads(v).into_iter().map(|a| (a, false)).chain(self.stores(v).into_iter().map(|a| (a, true)))
        {
            if let Some(named) = self.named_access(&access, coords) {
                all.push((access, store, named));
            }
        }
        if all.is_empty() {
            let others = self.names_of(v);
            let those = match others.is_empty() {
                true => format!("memory names no coordinate of `{name}`"),
                false => format!("memory names these: {}", others.join(", ")),
            };
            return Err(format!(
                "no statement accesses `{asked}` at a place that can be told before the launch; {those}"
            ));
        }
        let numbers: Vec<u64> = coords.iter().map(|c| if let Coord::Number(n) = c { *n } else { 0 }).collect();
        let named: Vec<usize> =
            (0..).zip(coords).filter(|(_, c)| matches!(c, Coord::Named(..))).map(|(d, _)| d).collect();
        let bytes = places::in_named_rows(k, v, &numbers, &named);
        let text = format!("an element of the tensor, in the row that memory names{bytes}");
        let root = self.push("global memory", asked.to_string(), text, k.values[v].span);
        for (access, store, NamedAccess { place, spot, names }) in all {
            // What names the row is read first.
            let (when, numbers) = (self.when(&place), place.numbers);
            for (rows, spot) in names {
                let of = Of::Rows { stmt: access.stmt, rows, spot };
                let graph = Backward::new((k, &self.solver, &self.loops), of, numbers.clone()).run();
                self.from(root, true, |way| way.show_backward(&graph, &when));
            }
            let program = (k, &self.solver, &self.loops);
            if store {
                let graph = Backward::new(program, Of::Store { stmt: access.stmt, spot }, numbers).run();
                self.from(root, true, |way| way.show_backward(&graph, &when));
            } else {
                let from = From::Read { stmt: access.stmt, window: access.window, spot };
                let graph = Forward::new(program, from, numbers).run();
                self.from(root, false, |way| way.show_forward(&graph, &when));
            }
        }
        Ok(())
    }

    /// What memory names of a tensor, as it is asked for: `A[rows[0],0]`, `A[P[0],0]`.
    pub(super) fn names_of(&self, v: Value) -> Vec<String> {
        let k = self.k;
        let zeros = |n: usize| vec!["0"; n].join(",");
        let first = |base: Value| match zeros(places::shape_of(k, base).len()) {
            none if none.is_empty() => k.values[base].name.clone(),
            zeros => format!("{}[{zeros}]", k.values[base].name),
        };
        let named = |view: &ResolvedView, d: usize| match &view.dims[d] {
            ViewDim::Gather(e) if gathered(k, view).iter().any(|(g, _)| *g == d) => {
                resolve_view(k, *e).map(|view| first(view.base))
            }
            dim => dim.starts().iter().find_map(|&e| read_index(k, e)).map(|(_, view)| first(view.base)),
        };
        let mut out: Vec<String> = Vec::new();
        for Access { view, .. } in self.reads(v).into_iter().chain(self.stores(v)) {
            let dims: Vec<Option<String>> = (0..view.dims.len()).map(|d| named(&view, d)).collect();
            let any = dims.iter().any(Option::is_some);
            let dims: Vec<String> = dims.into_iter().map(|d| d.unwrap_or_else(|| "0".to_owned())).collect();
            let text = format!("`element:{}[{}]`", k.values[v].name, dims.join(","));
            if any && !out.contains(&text) {
                out.push(text);
            }
        }
        out
    }

    /// Where an access has an element in rows that memory names.
    fn named_access(&self, access: &Access, coords: &[Coord]) -> Option<NamedAccess> {
        let (mut any, mut own, mut names) = (Vec::new(), Vec::new(), Vec::new());
        let (mut known, mut elements) = (Numbers::new(), Vec::new());
        for (d, coord) in coords.iter().enumerate() {
            let Coord::Named(name, at) = coord else { continue };
            let by = self.named_by(&access.view, d, name, at)?;
            any.push(d);
            own.push((d, by.inside));
            elements.extend(by.element);
            names.push((by.rows, by.spot));
            known.extend(by.numbers);
        }
        let numbers: Vec<u64> = coords.iter().map(|c| if let Coord::Number(n) = c { *n } else { 0 }).collect();
        let Place { numbers: at_numbers, count, of_model, .. } = self.finds(access, &numbers, (&any, &known)).ok()?;
        // A tile of indices is loaded at the numbers of the grid, too: they are the first ones.
        let mut at_first = at_numbers;
        at_first.extend(known);
        self.begun(access, &any, &mut at_first);
        let mut spot = self.spot(access, &numbers, &at_first)?;
        let kept = access.view.base_dims();
        for (i, d) in kept.iter().enumerate() {
            if let Some((_, inside)) = own.iter().find(|(of, _)| of == d) {
                spot[i] = (*inside < access.shape[i]).then_some(Run::one(*inside))?;
            }
        }
        // What names one element is at its place along all dimensions.
        if elements.iter().any(|(w, n): &(usize, u64)| spot.get(*w).and_then(|run| run.only()) != Some(*n)) {
            return None;
        }
        let place = Place { numbers: at_first, further: Vec::new(), count, of_model };
        Some(NamedAccess { place, spot, names })
    }

    /// The variables on which what names the rows depends, at their first number, where the window says no other.
    fn begun(&self, access: &Access, any: &[usize], numbers: &mut Numbers) {
        let starts = any.iter().flat_map(|&d| access.view.dims[d].starts());
        let all: Vec<Constraint> = starts.map(|&e| Constraint::Behind(e, -1)).collect();
        if let Solution::At(first, _) = self.solver.solve(&all, numbers, &Numbers::new()) {
            numbers.extend(first.into_iter().next().unwrap_or_default());
        }
        for axis in &self.k.grid {
            numbers.entry(axis.index).or_insert(0);
        }
    }

    /// Where a window has what an element of `name` names along a dimension.
    fn named_by(&self, view: &ResolvedView, d: usize, name: &str, own: &[u64]) -> Option<NamedBy> {
        let (k, dim) = (self.k, view.dims.get(d)?);
        match dim {
            ViewDim::Gather(e) if matches!(k.exprs[*e], ExprData::Ref(v) if k.values[v].name == name) => {
                let shape = fixed_shape(k, *e);
                let w = view.base_dims().iter().position(|&kept| kept == d)?;
                if view.is_by_element(k, w, *e) {
                    let extends: Vec<bool> = shape?.into_iter().map(|n| n > 1).collect();
                    let places = own.iter().copied().enumerate().filter(|&(i, _)| extends.get(i) == Some(&true));
                    let (inside, element, numbers) = (*own.get(w)?, places.collect(), Numbers::new());
                    return Some(NamedBy { inside, element, rows: *e, spot: at(own), numbers });
                }
                // Indices may have dimensions of one element in addition to their own.
                let along: Vec<u64> = match &shape {
                    Some(shape) if shape.len() == own.len() => {
                        shape.iter().zip(own).filter(|(extent, _)| **extent > 1).map(|(_, &n)| n).collect()
                    }
                    _ => own.to_vec(),
                };
                let inside = match along[..] {
                    [at] => at,
                    [] if !own.is_empty() => 0,
                    _ => return None,
                };
                Some(NamedBy { inside, element: Vec::new(), rows: *e, spot: at(own), numbers: Numbers::new() })
            }
            ViewDim::Fixed(_) | ViewDim::From { .. } => dim.starts().iter().find_map(|&e| {
                let (rows, view) = read_index(k, e).filter(|(_, view)| k.values[view.base].name == name)?;
                let shape = vec![1; view.base_dims().len()];
                let coords = if own.is_empty() { vec![0; view.dims.len()] } else { own.to_vec() };
                if coords.len() != view.dims.len() || view.dims.iter().any(|dim| from_memory(k, dim)) {
                    return None;
                }
                let window = Window { solver: &self.solver, k, view: &view, shape: &shape };
                let (spot, numbers) = window.finds(&at(&coords), &self.sizes, &Numbers::new())?;
                let spot = if spot.is_empty() { whole(&[]) } else { spot };
                Some(NamedBy { inside: 0, element: Vec::new(), rows, spot, numbers })
            }),
            ViewDim::Gather(_) => None,
        }
    }
}

/// An access of a statement in rows that memory names.
struct NamedAccess {
    place: Place,
    /// Where the element is in the window.
    spot: Spot,
    /// What names rows, and which of its elements.
    names: Vec<(Expr, Spot)>,
}

/// What names a coordinate of a window.
struct NamedBy {
    /// Where the window has what it names.
    inside: u64,
    /// If it names one element: where that is along the dimensions of the window.
    element: Vec<(usize, u64)>,
    /// The tile of indices, or the element of a tensor that is read as an index, and which element of it.
    rows: Expr,
    spot: Spot,
    /// The numbers at which it is that element.
    numbers: Numbers,
}

/// What is read from memory as an index: `P[i]` of `index(P[i])`, a number in a register.
fn read_index(k: &Kernel, e: Expr) -> Option<(Expr, ResolvedView)> {
    let ExprData::Index(of) = k.exprs[e] else { return None };
    Some((of, resolve_view(k, of)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::compile;
    use crate::xray::path::tests::options;
    use crate::xray::path::{Step, path};
    use tilec_ir::target::Target;

    const SOURCE: &str = "kernel k(A: gmem f32[M, N] multiple 4, T: gmem f32[N, M] col multiple 4, P: gmem i32[M], B: gmem f32[M, N] multiple 4, C: gmem f32[M, N] multiple 4)\n\
         grid (i: ceildiv(M, 64), j: ceildiv(N, 64)) {\n\
         var rows = reg i32[64]\nvar x = reg f32[64, 64]\nvar y = reg f32[64, 64]\nvar z = reg f32[64, 64]\n\
         copy P[i * 64..] -> rows\ncopy A[rows, j * 64..] -> x\ncopy T[j * 64.., rows] -> y\n\
         var one = reg i32[]\ncopy P[i] -> one\ncopy A[one.., j * 64..] -> z\n\
         copy x * 2.0 + transpose(y) + z -> B[rows, j * 64..]\n}\n";

    fn way(element: &str) -> Result<Vec<Step>, String> {
        let program = compile(SOURCE, &options(Target::Sm80)).expect("compiles");
        path(&program, &Element::parse(element).expect("an element")).map(|way| way.steps)
    }

    fn has(way: &[Step], at: &str, what: &str) -> bool {
        way.iter().any(|s| s.at == at && s.what == what)
    }

    /// The index, where it comes from, who moves the element, and where it goes.
    #[test]
    fn a_row_that_memory_names_is_followed() {
        let all = way("A[rows[3],70]").expect("a way");
        assert_eq!(all[0].what, "A[rows[3], 70]");
        assert!(all[0].text.contains("byte 280 of that row: sector 8 of 32 bytes"), "{all:?}");
        assert!(has(&all, "registers", "rows[3]") && has(&all, "global memory", "P[3]"), "{all:?}");
        assert!(has(&all, "registers", "x[3, 6]") && has(&all, "result", "B[rows[3], 70]"), "{all:?}");
        let moved = all.iter().find(|s| s.what == "copy A[rows, j * 64..] -> x").expect("the copy");
        assert!(
            moved.text.starts_with("at i = 0, j = 1")
                && moved
                    .text
                    .contains("16 bytes an access, and an access of a warp uses 100 % of the bytes of 16 sectors"),
            "{all:?}"
        );
        // Indices along the contiguous dimension: a sector for each element.
        let all = way("T[70,rows[3]]").expect("a way");
        assert!(has(&all, "registers", "y[6, 3]") && has(&all, "registers", "rows[3]"), "{all:?}");
        // A row that a single number names.
        let all = way("A[P[9],5]").expect("a way");
        assert!(has(&all, "registers", "z[0, 5]") && has(&all, "global memory", "P[9]"), "{all:?}");
        assert!(all.iter().any(|s| s.text.starts_with("at i = 9, j = 0")), "{all:?}");
    }

    #[test]
    fn rows_that_memory_names_for_a_store_are_followed_back() {
        let all = way("B[rows[3],5]").expect("a way");
        assert!(has(&all, "registers", "rows[3]") && has(&all, "registers", "x[3, 5]"), "{all:?}");
        assert!(has(&all, "global memory", "A[rows[3], 5]"), "{all:?}");
        assert!(all.iter().any(|s| s.at == "result" && s.text.contains("sectors")), "{all:?}");
    }

    #[test]
    fn what_memory_does_not_name_is_said() {
        let said = |element: &str| way(element).expect_err("nothing");
        assert!(
            said("A[row[3],5]").contains("memory names these: `element:A[rows[0],0]`, `element:A[P[0],0]`"),
            "{}",
            said("A[row[3],5]")
        );
        assert!(said("A[rows[64],5]").contains("no statement accesses `A[rows[64], 5]`"));
        assert!(said("C[rows[3],5]").contains("memory names no coordinate of `C`"));
        assert!(said("x[rows[3],5]").contains("`x` is no tensor"));
        assert!(said("A[rows[3]]").contains("2 dimensions"));
        let plain = way("A[3,5]").expect("a way");
        assert!(plain.iter().any(|s| s.text.contains("`element:A[rows[0],5]`")), "{plain:?}");
    }
}
