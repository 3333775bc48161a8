//! Single elements of tensors as parts of indices: `X[table[z] * 16.., ..]`.
//!
//! They are loaded in front of the statement. The kernel does not write them, and their index is clamped to the tensor,
//! so the address is valid if the tensor has an element. If it may have none, a predicate guards the load. So such a load
//! is as pure as arithmetic: it is shared, and hoisted to where its index is known.

use super::state::Lower;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::ExprData;
use tilec_ir::types::Elem;
use tilec_ir::typing::{ViewDim, let_init, resolve_view};

impl Lower<'_> {
    /// Loads the elements that indices of a statement use.
    pub(super) fn load_elements_of(&mut self, s: Stmt) -> Result<(), Reported> {
        let roots = self.k.stmts[s].exprs();
        roots.into_iter().try_for_each(|e| self.load_elements_in(e, false))
    }

    /// Loads the elements that an expression uses: it is an index computed from an element (`number`), or contains such
    /// indices.
    fn load_elements_in(&mut self, e: Expr, number: bool) -> Result<(), Reported> {
        if let ExprData::Ref(v) = self.k.exprs[e]
            && number
            && let Some(init) = let_init(self.k, v).filter(|&init| resolve_view(self.k, init).is_some())
        {
            return self.load_elements_in(init, true);
        }
        let own = matches!(self.k.exprs[e], ExprData::Index(_));
        let inside = number && !matches!(self.k.exprs[e], ExprData::View(_)) || own;
        for child in self.k.children(e) {
            self.load_elements_in(child, inside)?;
        }
        if let ExprData::View(_) = self.k.exprs[e]
            && number
            && resolve_view(self.k, e)
                .is_some_and(|view| view.base_dims().is_empty() && self.k.tensor_ty(view.base).is_some())
            && tilec_ir::index_values::is_constant(self.k, e)
        {
            let reg = self.load_element(e)?;
            self.elements[e] = Some(reg);
        }
        Ok(())
    }

    /// Loads an element of a read-only tensor; zero outside of it.
    fn load_element(&mut self, e: Expr) -> Result<Reg, Reported> {
        let view = resolve_view(self.k, e).expect("bug: an element is one of a tensor");
        let tensor = view.base;
        let elem = self.elem(tensor).expect("specialised");
        let memory = self.base(&view)?;
        let shape = self.k.tensor_ty(tensor).expect("a tensor").shape.clone();
        let (mut inside, mut terms, mut place) = (None, Vec::new(), Vec::new());
        let mut may_be_empty = self.lines_may_be_missing(tensor)?;
        for (d, dim) in view.dims.iter().enumerate() {
            let ViewDim::Fixed(at) = dim else { unreachable!("an element is named by an index in each dimension") };
            let (mut index, extent) = (self.index(*at)?, self.index(shape[d])?);
            may_be_empty |= extent.lo < 1;
            if !self.inside_extent(&view, d, *at) {
                let own = self.unsigned_less(index, extent);
                inside = self.emit.and(inside, own);
                index = self.cut_off(index, extent);
            }
            place.push(index);
            if self.k.tensor_ty(tensor).is_some_and(|t| t.modes(d).is_some()) {
                terms.push(self.digits(tensor, d, index)?);
            } else {
                let stride = self.stride(tensor, d)?;
                terms.push(vec![(index, stride)]);
            }
        }
        // In the padding, the load reads the start of the memory, and the value is dropped.
        let on_lines = self.element_on_lines(tensor, &place)?;
        inside = self.emit.and(inside, on_lines);
        let guard = inside.filter(|_| may_be_empty);
        // What a guard skips is zero already.
        inside = inside.filter(|_| guard.is_none());
        if elem.size().whole_bytes().is_none() {
            let memory = self.emit.pure(Class::B64, P::ShlB64, [memory.into(), Operand::Imm(1)]);
            let base = self.first_of_padded(tensor, memory, 1)?;
            let half = self.pointer_by_depth(base, &terms, 1);
            let half = self.where_inside(half, memory, on_lines);
            let found = self.load_half(half, elem, guard);
            return Ok(self.or_zero(found, inside));
        }
        let bytes = i64::from(elem.addressed_bytes());
        let base = self.first_of_padded(tensor, memory, bytes)?;
        let address = self.pointer_by_depth(base, &terms, bytes);
        let address = self.where_inside(address, memory, on_lines);
        let (class, load) = match elem {
            Elem::I8 => (Class::B32, P::LdGlobalNcS8),
            Elem::U8 => (Class::B32, P::LdGlobalNcU8),
            Elem::I16 | Elem::U16 => (Class::B16, P::LdGlobalNcB16),
            Elem::I64 | Elem::U64 => (Class::B64, P::LdGlobalNcB64),
            Elem::I32 | Elem::U32 => (Class::B32, P::LdGlobalNcB32),
            other => panic!("bug: an index is made of an element of {}", other.name()),
        };
        let found = self.emit.pure_load_if(guard, class, load, Operand::at(address, 0));
        let found = if class == Class::B16 { self.widen(found, elem) } else { found };
        Ok(self.or_zero(found, inside))
    }

    /// `address` if `inside` holds, else `other`.
    fn where_inside(&mut self, address: Reg, other: Reg, inside: Option<Reg>) -> Reg {
        let Some(inside) = inside else { return address };
        self.emit.pure(Class::B64, P::SelpB64, [address.into(), other.into(), inside.into()])
    }

    /// `found` if `inside` holds, else zero.
    fn or_zero(&mut self, found: Reg, inside: Option<Reg>) -> Reg {
        let Some(inside) = inside else { return found };
        let class = self.emit.func.regs[found];
        let choose = if class == Class::B64 { P::SelpB64 } else { P::SelpB32 };
        self.emit.pure(class, choose, [found.into(), Operand::Imm(0), inside.into()])
    }

    /// Loads a 4-bit element (0 if the guard does not hold) by its address in half bytes: loads the byte and extracts one half.
    fn load_half(&mut self, place: Reg, elem: Elem, guard: Option<Reg>) -> Reg {
        let byte = self.emit.pure(Class::B64, P::ShrU64, [place.into(), Operand::Imm(1)]);
        let low = self.emit.pure(Class::B32, P::CvtU32U64, [place.into()]);
        let bit = self.bit_of_half(low);
        let loaded = self.emit.pure_load_if(guard, Class::B32, P::LdGlobalNcU8, Operand::at(byte, 0));
        let field = if elem == Elem::I4 { P::BfeS32 } else { P::BfeU32 };
        self.emit.pure(Class::B32, field, [loaded.into(), bit.into(), Operand::Imm(4)])
    }
}
