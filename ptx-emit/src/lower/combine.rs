//! Copies that combine: memory adds to an element, or keeps the smaller or larger (`red`, PTX ISA 9.7.13.6). From sm_90
//! on, one instruction combines several adjacent elements, each atomically on its own.

use super::accesses::{guard, store_op, vector};
use super::dims::Dims;
use super::emit::zero_of;
use super::state::Lower;
use super::windows::Access;
use crate::inst::{Class, Operand, Reg};
use crate::module::Item;
use crate::ops::Op as P;
use tilec_ir::atomics::{Combining, combination, combined_types};
use tilec_ir::diag::Reported;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::CopyAttrs;
use tilec_ir::layout::RegLayout;
use tilec_ir::space::Space;
use tilec_ir::types::Elem;
use tilec_ir::typing::resolve_view;

/// Instructions that combine 1, 2, 4, .. elements.
const INSTRUCTIONS: &[(Combining, Elem, &[P])] = &[
    (
        Combining::Add,
        Elem::F16,
        &[P::RedGlobalAddNoftzF16, P::RedGlobalAddNoftzF16x2, P::RedGlobalAddNoftzV2F16x2, P::RedGlobalAddNoftzV4F16x2],
    ),
    (
        Combining::Add,
        Elem::BF16,
        &[
            P::RedGlobalAddNoftzBf16,
            P::RedGlobalAddNoftzBf16x2,
            P::RedGlobalAddNoftzV2Bf16x2,
            P::RedGlobalAddNoftzV4Bf16x2,
        ],
    ),
    (Combining::Add, Elem::F32, &[P::RedGlobalAddF32, P::RedGlobalAddV2F32, P::RedGlobalAddV4F32]),
    (Combining::Add, Elem::F64, &[P::RedGlobalAddF64]),
    (Combining::Add, Elem::I32, &[P::RedGlobalAddU32]),
    (Combining::Add, Elem::U32, &[P::RedGlobalAddU32]),
    (Combining::Add, Elem::I64, &[P::RedGlobalAddU64]),
    (Combining::Add, Elem::U64, &[P::RedGlobalAddU64]),
    (Combining::Min, Elem::F32, &[P::RedGlobalMinS32]),
    (Combining::Min, Elem::F64, &[P::RedGlobalMinS64]),
    (Combining::Min, Elem::I32, &[P::RedGlobalMinS32]),
    (Combining::Min, Elem::U32, &[P::RedGlobalMinU32]),
    (Combining::Min, Elem::I64, &[P::RedGlobalMinS64]),
    (Combining::Min, Elem::U64, &[P::RedGlobalMinU64]),
    (Combining::Max, Elem::F32, &[P::RedGlobalMaxS32]),
    (Combining::Max, Elem::F64, &[P::RedGlobalMaxS64]),
    (Combining::Max, Elem::I32, &[P::RedGlobalMaxS32]),
    (Combining::Max, Elem::U32, &[P::RedGlobalMaxU32]),
    (Combining::Max, Elem::I64, &[P::RedGlobalMaxS64]),
    (Combining::Max, Elem::U64, &[P::RedGlobalMaxU64]),
    (Combining::Exchange, Elem::F32, &[P::AtomGlobalExchB32]),
    (Combining::Exchange, Elem::F64, &[P::AtomGlobalExchB64]),
    (Combining::Exchange, Elem::I32, &[P::AtomGlobalExchB32]),
    (Combining::Exchange, Elem::U32, &[P::AtomGlobalExchB32]),
    (Combining::Exchange, Elem::I64, &[P::AtomGlobalExchB64]),
    (Combining::Exchange, Elem::U64, &[P::AtomGlobalExchB64]),
];

/// The `atom` form of a `red` instruction, which returns the old value.
const WITH_OLD: &[(P, P)] = &[
    (P::RedGlobalAddNoftzF16, P::AtomGlobalAddNoftzF16),
    (P::RedGlobalAddNoftzBf16, P::AtomGlobalAddNoftzBf16),
    (P::RedGlobalAddF32, P::AtomGlobalAddF32),
    (P::RedGlobalAddF64, P::AtomGlobalAddF64),
    (P::RedGlobalAddU32, P::AtomGlobalAddU32),
    (P::RedGlobalAddU64, P::AtomGlobalAddU64),
    (P::RedGlobalMinS32, P::AtomGlobalMinS32),
    (P::RedGlobalMinU32, P::AtomGlobalMinU32),
    (P::RedGlobalMinS64, P::AtomGlobalMinS64),
    (P::RedGlobalMinU64, P::AtomGlobalMinU64),
    (P::RedGlobalMaxS32, P::AtomGlobalMaxS32),
    (P::RedGlobalMaxU32, P::AtomGlobalMaxU32),
    (P::RedGlobalMaxS64, P::AtomGlobalMaxS64),
    (P::RedGlobalMaxU64, P::AtomGlobalMaxU64),
    (P::AtomGlobalExchB32, P::AtomGlobalExchB32),
    (P::AtomGlobalExchB64, P::AtomGlobalExchB64),
];

/// The forms of an instruction for shared memory: without and with the old value.
const IN_SHARED: &[(P, P, P)] = &[
    (P::RedGlobalAddNoftzF16, P::RedSharedAddNoftzF16, P::AtomSharedAddNoftzF16),
    (P::RedGlobalAddNoftzBf16, P::RedSharedAddNoftzBf16, P::AtomSharedAddNoftzBf16),
    (P::RedGlobalAddF32, P::RedSharedAddF32, P::AtomSharedAddF32),
    (P::RedGlobalAddF64, P::RedSharedAddF64, P::AtomSharedAddF64),
    (P::RedGlobalAddU32, P::RedSharedAddU32, P::AtomSharedAddU32),
    (P::RedGlobalAddU64, P::RedSharedAddU64, P::AtomSharedAddU64),
    (P::RedGlobalMinS32, P::RedSharedMinS32, P::AtomSharedMinS32),
    (P::RedGlobalMinU32, P::RedSharedMinU32, P::AtomSharedMinU32),
    (P::RedGlobalMinS64, P::RedSharedMinS64, P::AtomSharedMinS64),
    (P::RedGlobalMinU64, P::RedSharedMinU64, P::AtomSharedMinU64),
    (P::RedGlobalMaxS32, P::RedSharedMaxS32, P::AtomSharedMaxS32),
    (P::RedGlobalMaxU32, P::RedSharedMaxU32, P::AtomSharedMaxU32),
    (P::RedGlobalMaxS64, P::RedSharedMaxS64, P::AtomSharedMaxS64),
    (P::RedGlobalMaxU64, P::RedSharedMaxU64, P::AtomSharedMaxU64),
    (P::AtomGlobalExchB32, P::AtomSharedExchB32, P::AtomSharedExchB32),
    (P::AtomGlobalExchB64, P::AtomSharedExchB64, P::AtomSharedExchB64),
];

/// Minima and maxima of floats are those of their bits: the bits of floats of one sign are ordered like integers. For each
/// instruction that combines bits of numbers from zero on, the one for negative numbers, whose bits are ordered the other
/// way.
const OF_NEGATIVE: &[(P, P)] = &[
    (P::RedGlobalMinS32, P::RedGlobalMaxU32),
    (P::RedGlobalMaxS32, P::RedGlobalMinU32),
    (P::RedGlobalMinS64, P::RedGlobalMaxU64),
    (P::RedGlobalMaxS64, P::RedGlobalMinU64),
];

/// The instruction for memory of a space. `op`: that for global memory; `with_old`: it returns the old value.
fn instruction(op: P, space: Space, with_old: bool) -> P {
    let bug = "bug: an atomic instruction without its other forms";
    match (space.has_bounds(), with_old) {
        (true, false) => op,
        (true, true) => WITH_OLD.iter().find(|(plain, _)| *plain == op).expect(bug).1,
        (false, false) => IN_SHARED.iter().find(|(plain, ..)| *plain == op).expect(bug).1,
        (false, true) => IN_SHARED.iter().find(|(plain, ..)| *plain == op).expect(bug).2,
    }
}

/// How elements of a copy are combined.
pub(super) struct Combine {
    /// Instructions on global memory.
    ops: &'static [P],
    space: Space,
    /// Whether they keep the minimum or maximum of floats.
    orders_floats: bool,
}

impl Combine {
    /// The instruction on global memory that combines `elems` adjacent elements; `None`: the space has none.
    pub(super) fn op(&self, elems: usize) -> Option<P> {
        let fits = elems.is_power_of_two() && (elems == 1 || self.space.has_bounds());
        self.ops.get(elems.ilog2() as usize).filter(|_| fits).copied()
    }
}

/// Where a copy stores the old values: a buffer in shared memory.
pub(super) struct OldValues {
    access: Access,
    /// The predicate by which one of several threads with the same element combines it.
    only: Option<Reg>,
}

impl Lower<'_> {
    /// The buffer for old values.
    pub(super) fn old_values(
        &mut self,
        old: Expr,
        layout: &RegLayout,
        dim_bits: &Dims,
        only: Option<Reg>,
    ) -> Result<OldValues, Reported> {
        let view = resolve_view(self.k, old).expect("bug: old values go to a buffer");
        let attrs = CopyAttrs { vec: Some(1), ..CopyAttrs::default() };
        let access = self.access(old, &view, layout, dim_bits, &attrs, None)?;
        Ok(OldValues { access, only })
    }

    /// Combines the elements in `regs`, of which `v` is the first, with memory if `pred` holds.
    pub(super) fn combine(
        &mut self,
        combine: &Combine,
        old: Option<&mut OldValues>,
        (v, op): (usize, P),
        (address, regs): (Operand, Vec<Reg>),
        pred: Option<Reg>,
    ) -> Result<(), Reported> {
        match old {
            old if combine.orders_floats => self.combine_floats(old, v, (op, combine.space), (address, regs[0]), pred),
            Some(old) => self.combine_with_old(old, v, (op, combine.space), (address, regs[0]), pred),
            None => self.store_or_pass(pred, instruction(op, combine.space, false), address, vector(regs)),
        }
    }

    /// Combines element `v` of the thread if `pred` holds, and stores its old value, or zero, to the buffer.
    fn combine_with_old(
        &mut self,
        to: &mut OldValues,
        v: usize,
        (op, space): (P, Space),
        (address, value): (Operand, Reg),
        pred: Option<Reg>,
    ) -> Result<(), Reported> {
        let class = self.emit.func.regs[value];
        // `atom.exch` has untyped operands.
        let (moved, value) = match (op, class) {
            (P::AtomGlobalExchB32, Class::F32) => (Class::B32, self.emit.def(Class::B32, P::MovB32F32, [value.into()])),
            (P::AtomGlobalExchB64, Class::F64) => (Class::B64, self.emit.def(Class::B64, P::MovB64F64, [value.into()])),
            _ => (class, value),
        };
        let old = self.old_value(moved, pred.is_some());
        self.emit.push_if(guard(pred), instruction(op, space, true), [old.into(), address, value.into()]);
        self.keep_old(to, v, old)
    }

    /// A register for an old value, zero unless the element exists.
    fn old_value(&mut self, class: Class, may_not_exist: bool) -> Reg {
        let old = self.emit.mutable(class);
        if may_not_exist {
            let zero = zero_of(class, old).expect("bug: memory holds no predicates");
            self.emit.item(Item::Inst(zero));
        }
        old
    }

    /// Stores the old value of element `v` to the buffer.
    fn keep_old(&mut self, to: &mut OldValues, v: usize, old: Reg) -> Result<(), Reported> {
        let place = self.address(&mut to.access, v)?;
        let class = self.emit.func.regs[old];
        let store = store_op(to.access.space, class, 1).expect("bug: a register is stored");
        self.put(to.only, store, place, old.into())
    }

    /// Keeps the minimum or maximum of a float in memory and `value`, by an instruction for each sign. A NaN that is
    /// stored becomes the bits that change nothing.
    fn combine_floats(
        &mut self,
        to: Option<&mut OldValues>,
        v: usize,
        (op, space): (P, Space),
        (address, value): (Operand, Reg),
        pred: Option<Reg>,
    ) -> Result<(), Reported> {
        let &(_, of_negative) = OF_NEGATIVE.iter().find(|(own, _)| *own == op).expect("bug: no order of floats");
        let wide = self.emit.func.regs[value] == Class::F64;
        let pick = |narrow, other| if wide { other } else { narrow };
        let class = if wide { Class::B64 } else { Class::B32 };
        let bits = self.emit.pure(class, pick(P::MovB32F32, P::MovB64F64), [value.into()]);
        let number = self.emit.pure(Class::Pred, pick(P::SetpEqF32, P::SetpEqF64), [value.into(), value.into()]);
        // All bits are the greatest of unsigned minima; without the sign they are the greatest of signed ones.
        let keeps_larger = matches!(op, P::RedGlobalMaxS32 | P::RedGlobalMaxS64);
        let neutral = match (keeps_larger, wide) {
            (true, _) => -1,
            (false, false) => i64::from(i32::MAX),
            (false, true) => i64::MAX,
        };
        let select = pick(P::SelpB32, P::SelpB64);
        let bits = self.emit.pure(class, select, [bits.into(), Operand::Imm(neutral), number.into()]);
        let negative = self.emit.pure(Class::Pred, pick(P::SetpLtS32, P::SetpLtS64), [bits.into(), Operand::Imm(0)]);
        let positive = self.emit.pure(Class::Pred, P::NotPred, [negative.into()]);
        let old = to.as_ref().map(|_| self.old_value(class, true));
        for (own, op) in [(positive, op), (negative, of_negative)] {
            let pred = self.emit.and(pred, Some(own));
            match old {
                Some(old) => {
                    let operands = [old.into(), address.clone(), bits.into()];
                    self.emit.push_if(guard(pred), instruction(op, space, true), operands);
                }
                None => {
                    self.emit.push_if(guard(pred), instruction(op, space, false), [address.clone(), bits.into()]);
                }
            }
        }
        match to.zip(old) {
            Some((to, old)) => self.keep_old(to, v, old),
            None => Ok(()),
        }
    }

    /// The instructions that combine elements of a type in memory. Reports what the target lacks.
    pub(super) fn combining(
        &mut self,
        dst: Expr,
        op: Combining,
        (elem, space): (Elem, Space),
    ) -> Result<Combine, Reported> {
        let target = self.target;
        if combination(op, elem).and_then(|c| c.widest(target)).is_none() {
            let types = combined_types(op, |c| c.widest(target).is_some());
            let (word, name) = (op.word(), elem.name());
            let what = format!("`{word}` by threads for elements of {name}; it has {types}");
            return Err(self.lacks(dst, &what));
        }
        let row = INSTRUCTIONS.iter().find(|&&(o, e, ..)| (o, e) == (op, elem));
        let &(.., ops) = row.expect("bug: no instruction for a combination that threads do");
        let orders_floats = elem.is_float() && matches!(op, Combining::Min | Combining::Max);
        Ok(Combine { ops, space, orders_floats })
    }
}

#[cfg(test)]
mod tests {
    use super::{IN_SHARED, INSTRUCTIONS, WITH_OLD};
    use crate::ops::Op as P;
    use tilec_ir::atomics::{COMBINATIONS, Combination};

    #[test]
    fn every_combination_of_threads_has_its_instruction() {
        let widths = |c: &Combination| c.threads.iter().map(|&(elems, _)| elems).collect::<Vec<_>>();
        let by_threads = COMBINATIONS.iter().filter(|c| !c.threads.is_empty());
        let wanted: Vec<_> = by_threads.map(|c| (c.op, c.elem, widths(c))).collect();
        let powers = |ops: &[P]| (0..ops.len()).map(|i| 1u32 << i).collect::<Vec<_>>();
        let found: Vec<_> = INSTRUCTIONS.iter().map(|&(op, elem, ops)| (op, elem, powers(ops))).collect();
        assert_eq!(found, wanted);
    }

    #[test]
    fn instructions_on_one_element_have_their_other_forms() {
        for (.., ops) in INSTRUCTIONS {
            assert!(WITH_OLD.iter().any(|(plain, _)| *plain == ops[0]), "{:?}", ops[0]);
            assert!(IN_SHARED.iter().any(|(plain, ..)| *plain == ops[0]), "{:?}", ops[0]);
        }
    }
}
