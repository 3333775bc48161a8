//! Elements of tiles and of the values of names.

use super::backward::{Backward, Of};
use super::forward::{Forward, From};
use super::solve::{Count, Solution};
use super::spot::{Run, at};
use super::tensor::Place;
use super::windows::{Numbers, Window};
use super::{PathBuilder, element, is_inside, places};
use crate::xray::threads::ThreadGroup;
use tilec_ir::entities::Value;
use tilec_ir::kernel::Kernel;
use tilec_ir::print::print_expr;
use tilec_ir::typing::resolve_view;

impl PathBuilder<'_> {
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
        let team = ThreadGroup::of_tile(last, v);
        let (at, text) = places::in_tile(last, v, coords, &team).ok_or_else(gone)?;
        self.push(at, element(name, coords), text, last.values[v].span);
        Ok(())
    }
}
