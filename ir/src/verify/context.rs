//! The state that all rules share.

use crate::codes;
use crate::diag::{Code, Diagnostic, Reported, Sink, Span};
use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel, ValueDef};
use crate::types::{Elem, ElemClass, ElemRef};
use crate::typing::{Type, TypeError, Types, const_int};
use crate::verify::structure;
use std::collections::BTreeSet;

/// The state that all rules share.
pub(super) struct Cx<'k, 's> {
    pub(super) k: &'k Kernel,
    pub(super) types: Types<'k>,
    pub(super) sink: &'s mut Sink,
    /// `let`s without a type. The error is reported at the `let`, not at each use.
    pub(super) reported: BTreeSet<(Code, Span, String)>,
    /// Names whose `let` is an error: what uses them is not checked.
    pub(super) failed: BTreeSet<Value>,
    pub(super) last: Option<Reported>,
}

impl Cx<'_, '_> {
    pub(super) fn report(&mut self, d: Diagnostic) {
        if self.reported.insert((d.code, d.span, d.message.clone())) {
            self.last = Some(self.sink.report(d));
        }
    }

    pub(super) fn error_at(&mut self, code: Code, e: Expr, message: impl Into<String>, note: &str) {
        let d = Diagnostic::error(code, self.k.expr_spans[e], message);
        self.report(if note.is_empty() { d } else { d.with_note(note) });
    }

    /// The type of `e`. Reports an error if there is none.
    pub(super) fn type_of(&mut self, e: Expr) -> Option<Type> {
        let ty = self.types.type_of(e);
        self.ok(ty)
    }

    pub(super) fn ok<T>(&mut self, result: Result<T, TypeError>) -> Option<T> {
        result.map_err(|error| self.report(error.into())).ok()
    }

    pub(super) fn name(&self, v: Value) -> &str {
        &self.k.values[v].name
    }

    /// Checks that `e` is an index over certain kinds of values, which `over` describes.
    pub(super) fn index_over(&mut self, e: Expr, over: &str, allowed: fn(&ValueDef) -> bool) {
        let typed = self.types.index(e);
        if self.ok(typed).is_some() {
            self.check_value_kinds(e, over, allowed);
        }
    }

    /// Checks that `e` mentions only certain kinds of values.
    pub(super) fn check_value_kinds(&mut self, e: Expr, over: &str, allowed: fn(&ValueDef) -> bool) {
        let k = self.k;
        structure::mentions(k, e, &mut |at, v| {
            if !allowed(&k.values[v].def) {
                let message = format!("`{}` cannot be used here", self.name(v));
                let place = self.k.values[v].span;
                let d = Diagnostic::error(crate::codes::NOT_CONSTANT, self.k.expr_spans[at], message)
                    .with_place(place, format!("`{}` is declared here", self.name(v)))
                    .with_note(format!("this expression may mention {over} only"))
                    .with_left_out(k.item_around(self.k.expr_spans[at]));
                self.report(d);
            }
        });
    }

    /// Checks that a compile-time index is within bounds, if it is known.
    pub(super) fn bounded(&mut self, code: Code, what: &str, e: Expr, min: i64, max: i64) {
        self.index_over(e, "compile-time parameters and integers", is_const);
        if let Some(x) = const_int(self.k, e)
            && !(min..=max).contains(&x)
        {
            let d =
                Diagnostic::error(code, self.k.expr_spans[e], format!("{what} must be from {min} to {max}, found {x}"));
            self.report(self.with_number(d, e, x.clamp(min, max)));
        }
    }

    /// Adds a fix that replaces `e` by another number, if `e` is a literal.
    pub(super) fn with_number(&self, d: Diagnostic, e: Expr, x: i64) -> Diagnostic {
        match self.k.literal(e) {
            Some(span) => d.with_fix(span, x.to_string()),
            None => d,
        }
    }
}

/// A compile-time parameter.
pub(super) fn is_const(def: &ValueDef) -> bool {
    matches!(def, ValueDef::ConstParam(_))
}

/// Known at launch, before the kernel runs.
pub(super) fn is_launch(def: &ValueDef) -> bool {
    matches!(def, ValueDef::ConstParam(_) | ValueDef::Size | ValueDef::Stride)
}

/// A condition of a branch or a copy.
pub(super) fn condition(cx: &mut Cx<'_, '_>, cond: Expr) {
    match cx.type_of(cond) {
        Some(Type::Bool) | None => {}
        Some(other) => {
            let span = cx.k.expr_spans[cond];
            let message = format!("a condition is a scalar truth value, found {}", other.describe(cx.k));
            let whole = |elem: ElemRef| matches!(elem, ElemRef::Known(elem) if elem.class() == ElemClass::Int);
            let counts = other == Type::Index || matches!(other, Type::Scalar(elem) if whole(elem));
            let note = match &other {
                Type::Tile(tile) if tile.elem == ElemRef::Known(Elem::Bool) && !tile.shape.is_empty() => {
                    "reduce the tile to one truth value with `any` or `all` along each dimension, or choose element by element with `select(c, a, b)`"
                }
                _ if counts => "compare it with zero: `x != 0`",
                _ => "compare scalars, or choose element by element with `select(c, a, b)`",
            };
            let d = Diagnostic::error(codes::BAD_CONDITION, span, message).with_note(note);
            let (front, behind) = match cx.k.exprs[cond] {
                ExprData::Ref(_) | ExprData::View(_) => ("", " != 0"),
                _ => ("(", ") != 0"),
            };
            cx.report(if counts { d.with_fix_around(span, front, behind) } else { d });
        }
    }
}
