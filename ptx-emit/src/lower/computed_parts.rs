//! Parts of an expression that are computed already, and the report of tiles in different layouts.

use super::operands::{Operands, repeated_elements};
use super::state::Lower;
use super::tile::Tile;
use crate::inst::{Class, Reg};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Expr, Value};

impl Lower<'_> {
    /// The elements of a group from a reduction's result.
    pub(super) fn eval_reduced(
        &mut self,
        e: Expr,
        operands: &Operands,
        group: &[usize],
        class: Class,
    ) -> Result<Vec<Reg>, Reported> {
        let found = operands.reduced.iter().find(|(x, _)| *x == e);
        let regs: Option<Vec<Reg>> = found.and_then(|(_, r)| {
            let elements = repeated_elements((&r.layout, &r.dim_bits), &operands.scope, group)?;
            elements.into_iter().map(|i| *r.regs.get(i)?).collect()
        });
        match regs {
            Some(regs) => Ok(regs.into_iter().map(|r| self.convert(r, class)).collect()),
            None => Err(self.unfit(e, "a reduction combined with a tile of another layout than the reduced one")),
        }
    }

    /// Refuses a tile whose register layout differs from that of the tile with which it is combined.
    pub(super) fn different_layouts(&mut self, e: Expr, v: Value, tile: &Tile, operands: &Operands) -> Reported {
        let name = &self.k.values[v].name;
        let message = format!(
            "`{name}` has the layout {}, and is combined with tiles in the layout {}",
            tile.layout, operands.scope.layout
        );
        let d = Diagnostic::error(codes::UNFIT, self.k.expr_spans[e], message)
            .with_place(self.k.values[v].span, format!("`{name}` gets its layout here"))
            .with_note(format!(
                "copy it to a tile without a layout, which takes the other one: `var y = reg ..`, `copy {name} -> y`"
            ));
        self.sink.report(d)
    }
}
