//! Copies that combine: threads have memory add to an element, or take the smaller or the larger (`red`, PTX ISA 9.7.13.6).

use super::state::Lower;
use crate::ops::Op as P;
use tilec_ir::combining::{combination, combined_types};
use tilec_ir::diag::Reported;
use tilec_ir::entities::Expr;
use tilec_ir::ops::Op as IrOp;
use tilec_ir::types::Elem;

/// What combines one element, and what two neighbours.
const INSTRUCTIONS: &[(IrOp, Elem, P, Option<P>)] = &[
    (IrOp::Add, Elem::F16, P::RedGlobalAddNoftzF16, Some(P::RedGlobalAddNoftzF16x2)),
    (IrOp::Add, Elem::BF16, P::RedGlobalAddNoftzBf16, Some(P::RedGlobalAddNoftzBf16x2)),
    (IrOp::Add, Elem::F32, P::RedGlobalAddF32, None),
    (IrOp::Add, Elem::F64, P::RedGlobalAddF64, None),
    (IrOp::Add, Elem::I32, P::RedGlobalAddU32, None),
    (IrOp::Add, Elem::U32, P::RedGlobalAddU32, None),
    (IrOp::Add, Elem::I64, P::RedGlobalAddU64, None),
    (IrOp::Add, Elem::U64, P::RedGlobalAddU64, None),
    (IrOp::Min, Elem::I32, P::RedGlobalMinS32, None),
    (IrOp::Min, Elem::U32, P::RedGlobalMinU32, None),
    (IrOp::Min, Elem::I64, P::RedGlobalMinS64, None),
    (IrOp::Min, Elem::U64, P::RedGlobalMinU64, None),
    (IrOp::Max, Elem::I32, P::RedGlobalMaxS32, None),
    (IrOp::Max, Elem::U32, P::RedGlobalMaxU32, None),
    (IrOp::Max, Elem::I64, P::RedGlobalMaxS64, None),
    (IrOp::Max, Elem::U64, P::RedGlobalMaxU64, None),
];

/// How elements of a copy are combined.
pub(super) struct Combine {
    one: P,
    two: Option<P>,
}

impl Combine {
    /// The instruction for so many neighbours.
    pub(super) fn op(&self, elems: usize) -> Option<P> {
        match elems {
            1 => Some(self.one),
            2 => self.two,
            _ => None,
        }
    }
}

impl Lower<'_> {
    /// How threads combine elements of a type in global memory, or what the target lacks.
    pub(super) fn combining(&mut self, dst: Expr, op: IrOp, elem: Elem) -> Result<Combine, Reported> {
        let target = self.target;
        let can = |first| target.at_least(first);
        if combination(op, elem).and_then(|c| c.threads).is_none_or(|(_, first)| !can(first)) {
            let types = combined_types(op, |c| c.threads.is_some_and(|(_, first)| can(first)));
            let (word, name) = (op.combining_word(), elem.name());
            let what = format!("`{word}` to elements of {name}, which threads cannot; they can to {types}");
            return Err(self.unsupported(dst, &what));
        }
        let row = INSTRUCTIONS.iter().find(|&&(o, e, ..)| (o, e) == (op, elem));
        let &(.., one, two) = row.expect("bug: no instruction for a combination that threads do");
        Ok(Combine { one, two })
    }
}

#[cfg(test)]
mod tests {
    use super::INSTRUCTIONS;
    use tilec_ir::combining::COMBINATIONS;

    #[test]
    fn every_combination_of_threads_has_its_instruction() {
        let wanted: Vec<_> = COMBINATIONS.iter().filter_map(|c| Some((c.op, c.elem, c.threads?.0))).collect();
        let found: Vec<_> =
            INSTRUCTIONS.iter().map(|&(op, elem, _, two)| (op, elem, 1 + u32::from(two.is_some()))).collect();
        assert_eq!(found, wanted);
    }
}
