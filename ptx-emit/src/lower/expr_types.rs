//! Classes and types of expressions, cached.

use super::scope::Kind;
use super::state::Lower;
use super::tile::compute_class;
use crate::inst::Class;
use tilec_ir::diag::Reported;
use tilec_ir::entities::Expr;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{Type, type_of};

impl Lower<'_> {
    /// The class an expression is computed in.
    pub(super) fn class_of_expr(&mut self, e: Expr) -> Result<Class, Reported> {
        Ok(match self.kind_of(e)? {
            Kind::Index => Class::F32,
            Kind::Number(class) => class,
        })
    }

    /// The element type of an expression that has one.
    pub(super) fn elem_of_expr(&self, e: Expr) -> Option<Elem> {
        match type_of(self.k, e).ok()?.elem() {
            Some(ElemRef::Known(elem)) => Some(elem),
            _ => None,
        }
    }

    /// The kind of an expression. It is cached, because expressions are evaluated once for each group of elements.
    pub(super) fn kind_of(&mut self, e: Expr) -> Result<Kind, Reported> {
        if let Some(kind) = self.kinds[e] {
            return Ok(kind);
        }
        let kind = match type_of(self.k, e) {
            Ok(Type::Index) => Kind::Index,
            Ok(t) => Kind::Number(match t.elem() {
                Some(ElemRef::Known(elem)) => compute_class(elem),
                _ => Class::F32,
            }),
            Err(d) => return Err(self.sink.report(*d.0)),
        };
        self.kinds[e] = Some(kind);
        Ok(kind)
    }
}
