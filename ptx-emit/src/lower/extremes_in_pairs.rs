//! Largest and smallest elements of tiles of 16-bit floats, two to a register, by an instruction on pairs.
//!
//! A minimum or maximum is one of its operands, so it needs no conversion to f32: two elements take half an instruction
//! each where they took two. NaN is ignored and negative zero is below positive zero in both types
//! (`docs/numerics.md`).

use super::operands::Operands;
use super::state::Lower;
use super::tile::Tile;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::ExprData;
use tilec_ir::ops::{Op, ReduceOp};
use tilec_ir::types::{Elem, ElemRef};

/// The sign bits of two 16-bit floats are cleared by this mask.
const NO_SIGNS: i64 = 0x7fff_7fff;

impl Lower<'_> {
    /// The extremes of the lower and of the upper halves of a thread's elements `members`, as f32; `None`: they are no
    /// whole pairs of a tile of 16-bit floats, or there is one pair only.
    pub(super) fn extremes_in_pairs(
        &mut self,
        op: ReduceOp,
        arg: Expr,
        operands: &Operands,
        members: &[usize],
    ) -> Option<Vec<Reg>> {
        let (tile, magnitudes) = self.pairs_of_halves(arg, operands)?;
        let op = match (op, tile.elem) {
            (ReduceOp::Maximum, Elem::F16) => P::MaxF16x2,
            (ReduceOp::Maximum, Elem::BF16) => P::MaxBf16x2,
            (ReduceOp::Minimum, Elem::F16) => P::MinF16x2,
            (ReduceOp::Minimum, Elem::BF16) => P::MinBf16x2,
            _ => return None,
        };
        let mut sorted = members.to_vec();
        sorted.sort_unstable();
        let mut pairs = self.registers_of(&tile, &sorted).filter(|pairs| pairs.len() > 1)?;
        if magnitudes {
            pairs = pairs.into_iter().map(|x| self.magnitudes(x)).collect();
        }
        while pairs.len() > 1 {
            pairs = pairs
                .chunks(2)
                .map(|two| match two {
                    &[a, b] => self.emit.def(Class::B32, op, [a.into(), b.into()]),
                    rest => rest[0],
                })
                .collect();
        }
        let halves = [self.emit.reg(Class::B16), self.emit.reg(Class::B16)];
        self.emit.push(P::UnpackB32B16, [Operand::Vec(halves.to_vec()), pairs[0].into()]);
        Some(halves.map(|half| self.widen(half, tile.elem)).to_vec())
    }

    /// Two 16-bit floats without their signs.
    fn magnitudes(&mut self, pair: Reg) -> Reg {
        self.emit.pure(Class::B32, P::AndB32, [pair.into(), Operand::Imm(NO_SIGNS)])
    }

    /// The tile of packed 16-bit floats that an expression is, converted or not, and whether it is its magnitudes.
    fn pairs_of_halves(&self, e: Expr, operands: &Operands) -> Option<(Tile, bool)> {
        match &self.k.exprs[e] {
            ExprData::Cast { elem: ElemRef::Known(Elem::F32), arg } => self.pairs_of_halves(*arg, operands),
            ExprData::Op { op: Op::Abs, args } => Some((self.pairs_of_halves(args[0], operands)?.0, true)),
            ExprData::Ref(v) if let Some(init) = self.deferred.init(*v) => self.pairs_of_halves(init, operands),
            _ => {
                let tile = self.tile_of(e)?;
                let able = self.target.has_pair_extremes() && tile.packed() && tile.per_register == 2;
                (able && tile.elem.bits() == 16 && tile.layout == operands.scope.layout).then_some((tile, false))
            }
        }
    }
}
