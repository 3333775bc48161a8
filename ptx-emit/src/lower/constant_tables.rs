//! Tables in constant memory: `codes[x]`.
//!
//! A table holds its elements in the form in which they are computed, in 32 or 64 bits, and a zero after them. An index
//! is clamped to that zero, so outside elements read as zero without a branch. Tables are constant, so a load is as
//! pure as arithmetic.

use super::state::Lower;
use super::tile::compute_class;
use crate::inst::{Class, Operand, Reg};
use crate::module::ConstDecl;
use crate::ops::Op as P;
use tilec_ir::entities::Value;
use tilec_ir::numerics::cast::int_format;
use tilec_ir::types::{Elem, TableTy};

impl Lower<'_> {
    /// Declares a table. It is visible in the module, so its name has a `$`, which no name of the language has.
    pub(super) fn table(&mut self, v: Value, t: &TableTy) {
        let name = format!("{}${}", self.k.name, self.k.values[v].name);
        let elem = self.elem(v).expect("specialised");
        let class = compute_class(elem);
        let word = |x: f64| match class {
            Class::F64 => x.to_bits(),
            Class::F32 => u64::from((x as f32).to_bits()),
            Class::B32 => u64::from((x as i64) as u32),
            Class::Pred | Class::B16 | Class::B64 => panic!("bug: the verifier lets no table of {} pass", elem.name()),
        };
        let numbers = t.values.iter().map(|x| x.value(elem).expect("bug: the verifier knows what a type holds"));
        let words = numbers.chain([0.0]).map(word).collect();
        let bits = if class == Class::F64 { 64 } else { 32 };
        let index = self.emit.func.tables.len() as u32;
        self.emit.func.tables.push(ConstDecl { name, bits, words });
        self.tables[v] = Some(index);
    }

    /// The element at the index in a 32-bit register; `of` is the type of the index.
    pub(super) fn element(&mut self, table: Value, at: Reg, of: Option<Elem>) -> Reg {
        let index = self.tables[table].expect("bug: the header declares every table");
        let class = compute_class(self.elem(table).expect("specialised"));
        // Without the zero at the end.
        let elements = self.emit.func.tables[index as usize].words.len() - 1;
        let end = Operand::Imm(elements as i64);
        let numbers = of.and_then(int_format).filter(|f| !f.signed).map(|f| f.max() + 1);
        let inside = numbers.is_some_and(|numbers| elements as i128 >= numbers);
        let at = if inside { at } else { self.emit.pure(Class::B32, P::MinU32, vec![at.into(), end]) };
        let (load, bytes) = match class {
            Class::F64 => (P::LdConstF64, 8),
            Class::F32 => (P::LdConstF32, 4),
            _ => (P::LdConstB32, 4),
        };
        let base = self.emit.pure(Class::B64, P::MovConstU64, vec![Operand::ConstSym(index)]);
        let address = self.emit.pure(Class::B64, P::MadWideU32, vec![at.into(), Operand::Imm(bytes), base.into()]);
        self.emit.pure(class, load, vec![Operand::at(address, 0)])
    }
}
