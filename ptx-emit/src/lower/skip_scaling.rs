//! Multiplications that a warp skips if the factors of all its lanes are one.

use super::scope::Scope;
use super::state::Lower;
use super::tile::{Tile, compute_class};
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::{CopyAttrs, ExprData};
use tilec_ir::lanes::scaling;

impl Lower<'_> {
    /// `tile = tile * factor changing`.
    pub(super) fn scale_where_changing(&mut self, s: Stmt, tile: &Tile, e: Expr) -> Result<(), Reported> {
        let factor = scaling(self.k, s).expect("bug: what is `changing` multiplies a tile, which is verified");
        let factors = self.tiles[factor].clone().expect("bug: a factor that is assigned with is a register tile");
        let named =
            self.k.children(e).into_iter().find(|&c| matches!(self.k.exprs[c], ExprData::Ref(v) if v == factor));
        let changes = self.any_is_other_than_one(named.expect("bug: a factor is named"), &factors)?;
        self.where_any(changes, "scaled", |cx| cx.assign_elementwise(e, tile, e))
    }

    /// Whether some lane of the warp has a factor other than one (NaN is other than one). The result is uniform.
    fn any_is_other_than_one(&mut self, e: Expr, factors: &Tile) -> Result<Reg, Reported> {
        let scope = Scope { layout: factors.layout.clone(), dim_bits: factors.dim_bits.clone() };
        let mut operands = self.operands(e, &scope, &CopyAttrs::default(), None)?;
        let (op, one) = match compute_class(factors.elem) {
            Class::F64 => (P::SetpNeuF64, Operand::F64(1.0)),
            _ => (P::SetpNeuF32, Operand::F32(1.0)),
        };
        let mut any: Option<Reg> = None;
        for (g, v) in factors.elements().into_iter().enumerate() {
            for x in self.compute_group(e, &mut operands, g, &[v])? {
                let own = self.emit.def(Class::Pred, op, [x.into(), one.clone()]);
                any = Some(match any {
                    Some(others) => self.emit.def(Class::Pred, P::OrPred, [others.into(), own.into()]),
                    None => own,
                });
            }
        }
        let own = any.expect("bug: a tile has elements");
        Ok(self.emit.def(Class::Pred, P::VoteSyncAnyPred, [own.into(), Operand::Imm(0xffff_ffff)]))
    }
}
