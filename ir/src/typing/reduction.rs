//! The types of reductions and scans.

use super::candidates::may_be;
use super::types::{Extent, TileType, Type, TypeError, Types};
use crate::codes;
use crate::entities::Expr;
use crate::kernel::Totals;
use crate::ops::ReduceOp;
use crate::rounding::computed_in;
use crate::space::Space;
use crate::types::{Elem, ElemClass, ElemRef};

impl Types<'_> {
    /// The type of a reduction: that of the tile with extent 1 along the dimension, or an element for each part.
    pub(super) fn reduction(
        &self,
        e: Expr,
        (op, axis, parts): (ReduceOp, u32, u32),
        arg: Expr,
    ) -> Result<Type, TypeError> {
        let mut t = self.tile(arg, op.token())?;
        self.reducible(op, op.token(), arg, t.elem)?;
        self.check_axis(e, axis, &t)?;
        self.check_parts(e, t.shape[axis as usize], parts)?;
        t.shape[axis as usize] = Extent::Known(1 << parts.count_ones());
        t.space = Space::Reg;
        if op.is_place() {
            t.elem = ElemRef::Known(Elem::I32);
        }
        Ok(Type::Tile(t))
    }

    /// The type of a scan: that of the tile.
    pub(super) fn scan(
        &self,
        e: Expr,
        (op, axis): (ReduceOp, u32),
        totals: Option<Totals>,
        arg: Expr,
    ) -> Result<Type, TypeError> {
        let name = op.scan_token().unwrap_or_else(|| panic!("bug: `{}` has no scan", op.token()));
        let t = self.tile(arg, name)?;
        self.reducible(op, name, arg, t.elem)?;
        self.check_axis(e, axis, &t)?;
        if let Some(Totals { parts, tile }) = totals {
            let elem = match t.elem {
                ElemRef::Known(elem) => ElemRef::Known(computed_in(elem)),
                other => other,
            };
            self.totals(e, (axis, parts), &TileType { elem, ..t.clone() }, tile)?;
        }
        Ok(Type::Tile(TileType { space: Space::Reg, ..t }))
    }

    /// That a tile has what segments of the rows of another one come to.
    pub(super) fn totals(
        &self,
        e: Expr,
        (axis, parts): (u32, u32),
        whole: &TileType,
        totals: Expr,
    ) -> Result<(), TypeError> {
        let extent = whole.shape[axis as usize];
        self.check_parts(e, extent, parts)?;
        let highest = extent.known().is_none_or(|n| u64::from(parts) + (1 << parts.trailing_zeros()) == n);
        if parts == 0 || !highest {
            let message = "segments of a row that is scanned are selected by the highest bits of an element's number";
            let d = self.error(codes::BAD_AXIS, e, message);
            return Err(d.with_note("`scan_sum(x, 1, parts (2, 3) totals t)` of 16 elements has segments of 4").into());
        }
        let mut wanted = TileType { space: Space::Reg, ..whole.clone() };
        wanted.shape[axis as usize] = Extent::Known(1 << parts.count_ones());
        let found = self.type_of(totals)?;
        let fits = matches!(&found, Type::Tile(t) if t.shape == wanted.shape && same_or_open(t.elem, wanted.elem));
        if fits {
            return Ok(());
        }
        let (found, wanted) = (found.describe(self.k), Type::Tile(wanted).describe(self.k));
        let message = format!("the totals of these segments are {wanted}, found {found}");
        Err(self.error(codes::SHAPE_MISMATCH, totals, message).into())
    }

    /// That elements are truth values for what takes these, and numbers for the others.
    fn reducible(&self, op: ReduceOp, name: &str, arg: Expr, elem: ElemRef) -> Result<(), TypeError> {
        let may = |class| may_be(self.k, elem, class);
        let (fits, wanted, note) = match op.is_of_truths() {
            true => (may(ElemClass::Bool), "truth values", "write a comparison, such as `x != 0`"),
            false => (
                may(ElemClass::Float) || may(ElemClass::Int),
                "numbers",
                "use `select` to turn a truth value into a number",
            ),
        };
        if fits {
            return Ok(());
        }
        let found = self.type_of(arg)?.describe(self.k);
        let message = format!("`{name}` works on {wanted}, found {found}");
        let d = self.error(codes::WRONG_OPERAND, arg, message).with_note(note);
        Err(if op.is_of_truths() { self.compared(d, arg) } else { self.chosen(d, arg) }.into())
    }

    /// Parts are of an extent that is a power of two, of which their bits are.
    pub(super) fn check_parts(&self, e: Expr, extent: Extent, parts: u32) -> Result<(), TypeError> {
        let fits = match extent {
            Extent::Known(n) => n.is_power_of_two() && u64::from(parts) < n,
            Extent::Sym(_) => true,
        };
        if parts == 0 || fits {
            return Ok(());
        }
        let message = "the parts of a reduction are selected by bits of an element's number, along an extent that is a power of two";
        Err(self
            .error(codes::BAD_AXIS, e, message)
            .with_note("`sum(x, 1, parts (3))` of 16 elements: the first 8, and the others")
            .into())
    }
}

/// Whether two element types are the same, as far as they are known.
fn same_or_open(a: ElemRef, b: ElemRef) -> bool {
    match (a, b) {
        (ElemRef::Known(a), ElemRef::Known(b)) => a == b,
        _ => true,
    }
}
