//! The way of an element in a row that memory names: `A[rows[3], 5]`, where `rows` is a tile of indices, or `A[P[9], 5]`, where `P[9]` is read as an index.

use super::element::Coord;
use super::windows::{Coords, Numbers, spot_beside, variables};
use super::{Element, PathBuilder, by, places, when};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::print::print_head;
use tilec_ir::typing::{ResolvedView, ViewDim, copy_shape, fixed_shape, resolve_view};

/// An access of a copy in rows that memory names.
struct Access {
    copy: Stmt,
    /// It stores.
    store: bool,
    numbers: Numbers,
    /// Where the element is in the window.
    inside: Vec<u64>,
    /// What names rows, and which of its elements.
    names: Vec<(Expr, Coords)>,
}

impl PathBuilder<'_> {
    /// An element of a tensor, of which memory names a coordinate.
    ///
    /// # Errors
    /// It is no tensor, or nothing accesses it so; the text says so.
    pub(super) fn of_named(&mut self, v: Option<Value>, name: &str, coords: &[Coord]) -> Result<(), String> {
        let k = self.written;
        let Some(v) = v.filter(|&v| k.tensor_ty(v).is_some()) else {
            return Err(format!(
                "`{name}` is no tensor: memory names rows of tensors alone, and coordinates of tiles are numbers"
            ));
        };
        let asked = Element { kernel: None, name: name.to_owned(), coords: coords.to_vec() };
        let all: Vec<Access> = PathBuilder::statements(k).into_iter().flat_map(|s| accesses(k, s, v, coords)).collect();
        if all.is_empty() {
            let others = self.names_of(v);
            let those = match others.is_empty() {
                true => format!("memory names no coordinate of `{name}`"),
                false => format!("memory names these: {}", others.join(", ")),
            };
            return Err(format!("no copy accesses `{asked}` at a place that can be told before the launch; {those}"));
        }
        let numbers: Vec<u64> = coords.iter().map(|c| if let Coord::Number(n) = c { *n } else { 0 }).collect();
        let named: Vec<usize> =
            (0..).zip(coords).filter(|(_, c)| matches!(c, Coord::Named(..))).map(|(d, _)| d).collect();
        let bytes = places::in_named_rows(k, v, &numbers, &named);
        let text = format!("an element of the tensor, in the row that memory names{bytes}");
        let root = self.push("global memory", asked.to_string(), text, k.values[v].span);
        for access in all {
            // What names the row is read first.
            for (rows, spot) in &access.names {
                let (rows, spot, numbers) = (*rows, spot.clone(), access.numbers.clone());
                self.from(root, true, |way| way.made_of(rows, &spot, numbers));
            }
            let StmtData::Copy { src, dst, .. } = k.stmts[access.copy] else { continue };
            match access.store {
                false => self.from(root, false, |way| way.loaded(access.copy, dst, &access.numbers, &access.inside)),
                true => {
                    let span = k.stmt_spans[access.copy];
                    let how = self.copy_at(span, true).map_or("stored".to_owned(), |(_, attrs)| by(attrs));
                    let sectors = self.sectors(access.copy, true);
                    let text = format!("{}: {how}{sectors}", when(k, &access.numbers));
                    self.from(root, true, |way| {
                        let stored = way.push("result", print_head(k, access.copy), text, span);
                        let spot: Coords = access.inside.iter().copied().map(Some).collect();
                        way.from(stored, true, |way| way.made_of(src, &spot, access.numbers));
                    });
                }
            }
        }
        Ok(())
    }

    /// What memory names of a tensor, as it is asked for: `A[rows[0],0]`, `A[P[0],0]`.
    pub(super) fn names_of(&self, v: Value) -> Vec<String> {
        let k = self.written;
        let zeros = |n: usize| vec!["0"; n].join(",");
        let first = |base: Value| match zeros(places::shape_of(k, base).len()) {
            none if none.is_empty() => k.values[base].name.clone(),
            zeros => format!("{}[{zeros}]", k.values[base].name),
        };
        let named = |dim: &ViewDim| match dim {
            ViewDim::Gather(e) => resolve_view(k, *e).map(|view| first(view.base)),
            _ => dim.starts().iter().find_map(|&e| read_index(k, e)).map(|(_, view)| first(view.base)),
        };
        let mut out: Vec<String> = Vec::new();
        for s in PathBuilder::statements(k) {
            let StmtData::Copy { src, dst, .. } = k.stmts[s] else { continue };
            for view in [src, dst].into_iter().filter_map(|e| resolve_view(k, e)).filter(|view| view.base == v) {
                let dims: Vec<Option<String>> = view.dims.iter().map(named).collect();
                let any = dims.iter().any(Option::is_some);
                let dims: Vec<String> = dims.into_iter().map(|d| d.unwrap_or_else(|| "0".to_owned())).collect();
                let text = format!("`element:{}[{}]`", k.values[v].name, dims.join(","));
                if any && !out.contains(&text) {
                    out.push(text);
                }
            }
        }
        out
    }
}

/// The accesses of a copy to an element of a tensor.
fn accesses(k: &Kernel, s: Stmt, v: Value, coords: &[Coord]) -> Vec<Access> {
    let StmtData::Copy { src, dst, .. } = k.stmts[s] else { return Vec::new() };
    let of = |(side, store): (Expr, bool)| {
        let view = resolve_view(k, side).filter(|view| view.base == v)?;
        let shape = copy_shape(k, src, dst)?;
        let kept = view.base_dims();
        let (mut any, mut at, mut names) = (Vec::new(), Vec::new(), Vec::new());
        let (mut known, mut elements) = (Numbers::new(), Vec::new());
        for (d, coord) in coords.iter().enumerate() {
            let Coord::Named(name, own) = coord else { continue };
            let by = named_by(k, &view, d, name, own)?;
            any.push(d);
            at.push((d, by.inside));
            elements.extend(by.element);
            names.push((by.rows, by.spot));
            known.extend(by.numbers);
        }
        let numbers: Vec<u64> = coords.iter().map(|c| if let Coord::Number(n) = c { *n } else { 0 }).collect();
        let (mut numbers, spot) = spot_beside(k, &view, &shape, &numbers, &any)?;
        numbers.extend(known);
        for &d in &any {
            begun(k, &view, d, &mut numbers);
        }
        let inside = |(i, n): (usize, &Option<u64>)| match at.iter().find(|(d, _)| *d == kept[i]) {
            Some((_, inside)) => (*inside < shape[i]).then_some(*inside),
            None => *n,
        };
        let inside = spot.iter().enumerate().map(inside).collect::<Option<Vec<u64>>>()?;
        // What names one element is at its place along all dimensions.
        if elements.iter().any(|(w, n): &(usize, u64)| inside.get(*w) != Some(n)) {
            return None;
        }
        Some(Access { copy: s, store, numbers, inside, names })
    };
    [(src, false), (dst, true)].into_iter().filter_map(of).collect()
}

/// The variables on which what names the rows depends, at their first number, where the window says no other.
fn begun(k: &Kernel, view: &ResolvedView, d: usize, numbers: &mut Numbers) {
    let mut all = Vec::new();
    view.dims[d].starts().iter().for_each(|&e| variables(k, e, &mut all));
    for (v, start, _) in all {
        numbers.entry(v).or_insert(start);
    }
    // A tile of indices is loaded at the numbers of the grid, too: they are the first ones.
    for axis in &k.grid {
        numbers.entry(axis.index).or_insert(0);
    }
}

/// What names a coordinate of a window.
struct NamedBy {
    /// Where the window has what it names.
    inside: u64,
    /// If it names one element: where that is along the dimensions of the window.
    element: Vec<(usize, u64)>,
    /// The tile of indices, or the element of a tensor that is read as an index, and which element of it.
    rows: Expr,
    spot: Coords,
    /// The numbers at which it is that element.
    numbers: Numbers,
}

/// Where a window has what an element of `name` names along a dimension.
fn named_by(k: &Kernel, view: &ResolvedView, d: usize, name: &str, own: &[u64]) -> Option<NamedBy> {
    let dim = &view.dims[d];
    match dim {
        ViewDim::Gather(e) if matches!(k.exprs[*e], ExprData::Ref(v) if k.values[v].name == name) => {
            let shape = fixed_shape(k, *e);
            let spot = own.iter().copied().map(Some).collect();
            let w = view.base_dims().iter().position(|&kept| kept == d)?;
            if view.is_by_element(k, w, *e) {
                let extends = shape?.into_iter().map(|n| n > 1).collect::<Vec<bool>>();
                let at = own.iter().copied().enumerate().filter(|&(i, _)| extends.get(i) == Some(&true));
                let (inside, element) = (*own.get(w)?, at.collect());
                return Some(NamedBy { inside, element, rows: *e, spot, numbers: Numbers::new() });
            }
            // Indices may have dimensions of one element beside their own.
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
            Some(NamedBy { inside, element: Vec::new(), rows: *e, spot, numbers: Numbers::new() })
        }
        ViewDim::Fixed(_) | ViewDim::From { .. } => dim.starts().iter().find_map(|&e| {
            let (rows, view) = read_index(k, e).filter(|(_, view)| k.values[view.base].name == name)?;
            let shape = vec![1; view.base_dims().len()];
            let coords = if own.is_empty() { vec![0; view.dims.len()] } else { own.to_vec() };
            let (numbers, spot) =
                spot_beside(k, &view, &shape, &coords, &[]).filter(|_| coords.len() == view.dims.len())?;
            Some(NamedBy { inside: 0, element: Vec::new(), rows, spot, numbers })
        }),
        ViewDim::Gather(_) => None,
    }
}

/// What is read from memory as an index: `P[i]` of `index(P[i])`, a number in a register.
fn read_index(k: &Kernel, e: Expr) -> Option<(Expr, ResolvedView)> {
    let ExprData::Index(of) = k.exprs[e] else { return None };
    Some((of, resolve_view(k, of)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{CompileOptions, compile};
    use crate::xray::path::{Step, path};
    use tilec_ir::target::Target;

    const SOURCE: &str = "kernel k(A: gmem f32[M, N] multiple 4, T: gmem f32[N, M] col multiple 4, P: gmem i32[M], B: gmem f32[M, N] multiple 4, C: gmem f32[M, N] multiple 4)\n\
         grid (i: ceildiv(M, 64), j: ceildiv(N, 64)) {\n\
         var rows = reg i32[64]\nvar x = reg f32[64, 64]\nvar y = reg f32[64, 64]\nvar z = reg f32[64, 64]\n\
         copy P[i * 64..] -> rows\ncopy A[rows, j * 64..] -> x\ncopy T[j * 64.., rows] -> y\n\
         var one = reg i32[]\ncopy P[i] -> one\ncopy A[one.., j * 64..] -> z\n\
         copy x * 2.0 + transpose(y) + z -> B[rows, j * 64..]\n}\n";

    fn way(element: &str) -> Result<Vec<Step>, String> {
        let options = CompileOptions { target: Target::Sm80, report_accesses: true, ..CompileOptions::default() };
        let program = compile(SOURCE, &options).expect("compiles");
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
        assert!(said("A[rows[64],5]").contains("no copy accesses `A[rows[64], 5]`"));
        assert!(said("C[rows[3],5]").contains("memory names no coordinate of `C`"));
        assert!(said("x[rows[3],5]").contains("`x` is no tensor"));
        assert!(said("A[rows[3]]").contains("2 dimensions"));
        let plain = way("A[3,5]").expect("a way");
        assert!(plain.iter().any(|s| s.text.contains("`element:A[rows[0],5]`")), "{plain:?}");
    }
}
