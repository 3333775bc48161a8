//! Elements of a buffer by their row-major index (`reshape(s, [64, 16], [12, 48] in [48, 12])`). Each element is loaded
//! separately; its address is computed from its index in both shapes.

use super::dims::Dims;
use super::ranged_ints::Int;
use super::scope::Scope;
use super::state::Lower;
use super::tile::{Held, Tile};
use super::windows::{Access, Window};
use crate::inst::Reg;
use tilec_ir::diag::Reported;
use tilec_ir::entities::Expr;
use tilec_ir::ops::Op;
use tilec_ir::reshape::Numbered;
use tilec_ir::typing::{fixed_shape, resolve_view};

impl Lower<'_> {
    /// Fills a register tile with elements of the buffer `arg`; elements that do not exist are zero.
    pub(super) fn load_numbered(
        &mut self,
        at: Expr,
        arg: Expr,
        tile: &Tile,
        numbered: &Numbered,
    ) -> Result<(), Reported> {
        let view = resolve_view(self.k, arg).expect("bug: elements are numbered of what is no buffer");
        let elem = self.elem(view.base).expect("specialised");
        let shape = fixed_shape(self.k, arg).expect("specialised");
        let scope = Scope { layout: tile.layout.clone(), dim_bits: tile.dim_bits.clone() };
        let mut values: Vec<(usize, Reg)> = Vec::new();
        for v in tile.elements() {
            let (number, inside) = self.number_of(&scope, numbered, v);
            let coordinates = self.coordinates_of(number, &numbered.from);
            let window = self.shared_element(view.base, &coordinates, elem)?;
            let mut access = Access {
                window: Window::Shared(window),
                space: view.space(self.k),
                layout: tile.layout.clone(),
                dim_bits: Dims::of(&shape),
                groups: vec![vec![0]],
                preds: vec![inside],
                held: Held::new(),
                fill: None,
            };
            let found = self.load_group(at, &mut access, elem, &[0], inside)?;
            values.push((v, found[0]));
        }
        self.set_computed(at, tile, &values)
    }

    /// The row-major index of the element with register index `v`, and the predicate that it exists; `None`: always.
    fn number_of(&mut self, scope: &Scope, numbered: &Numbered, v: usize) -> (Int, Option<Reg>) {
        let fits = "bug: numbers of a tile's elements fit 32 bits";
        let (mut number, mut inside) = (Int::constant(0), None);
        for (d, (&extent, &at)) in numbered.to.iter().zip(&numbered.at).enumerate() {
            let c = self.coordinate(scope, d, v);
            let c = self.int_op(Op::Sub, c, Int::constant(at)).expect(fits);
            let last = extent as i64 - 1;
            let own = self.unsigned_less(c, Int::constant(last + 1));
            inside = self.emit.and(inside, own);
            // Outside elements are clamped to the index of an existing one.
            let c = self.int_op(Op::Max, c, Int::constant(0)).expect(fits);
            let c = self.int_op(Op::Min, c, Int::constant(last)).expect(fits);
            let before = self.int_op(Op::Mul, number, Int::constant(last + 1)).expect(fits);
            number = self.int_op(Op::Add, before, c).expect(fits);
        }
        (number, inside)
    }

    /// The coordinates of a row-major index in these extents.
    fn coordinates_of(&mut self, mut number: Int, extents: &[u64]) -> Vec<Int> {
        let fits = "bug: parts of a number are no larger";
        let mut coordinates = Vec::new();
        for &extent in extents.iter().rev() {
            let extent = Int::constant(extent as i64);
            coordinates.push(self.int_op(Op::Rem, number, extent).expect(fits));
            number = self.int_op(Op::Div, number, extent).expect(fits);
        }
        coordinates.reverse();
        coordinates
    }
}
