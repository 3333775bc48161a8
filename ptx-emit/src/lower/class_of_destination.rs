//! The class in which what becomes an element of some type is computed.

use super::ranged_ints::fits32;
use super::scope::Kind;
use super::state::Lower;
use super::tile::compute_class;
use crate::inst::Class;
use tilec_ir::diag::Reported;
use tilec_ir::entities::Expr;
use tilec_ir::numerics::cast::int_format;
use tilec_ir::types::Elem;
use tilec_ir::typing::{Type, type_of};

impl Lower<'_> {
    /// The class in which an expression is computed whose value becomes an element of a type. Indices and literals by
    /// themselves have no type: the class holds each of their values, so only the conversion to the element type rounds.
    pub(super) fn class_for(&mut self, e: Expr, to: Elem) -> Result<Class, Reported> {
        /// Up to this size f32 has all integers.
        const WHOLE: i128 = 1 << 24;
        if self.kind_of(e)? != Kind::Index {
            let untyped = matches!(type_of(self.k, e), Ok(Type::Float));
            return if untyped && to == Elem::F64 { Ok(Class::F64) } else { self.class_of_expr(e) };
        }
        let x = self.index(e)?;
        let within = |lo: i128, hi: i128| lo <= x.lo && x.hi <= hi;
        let word = if fits32(x.lo, x.hi) { Class::B32 } else { Class::B64 };
        Ok(match (compute_class(to), int_format(to)) {
            (Class::F32, _) if !within(-WHOLE, WHOLE) => word,
            (Class::B32, Some(format)) if !within(format.min(), format.max()) => {
                // A negative index is no word without a sign.
                if to == Elem::U32 { Class::B64 } else { word }
            }
            (class, _) => class,
        })
    }
}
