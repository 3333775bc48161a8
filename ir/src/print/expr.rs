//! Expressions, with the fewest parentheses.

use super::Printer;
use crate::entities::Expr;
use crate::fill::Fill;
use crate::kernel::{ExprData, Kernel, Range, Slot, View};
use crate::loop_ends::{LoopEnds, implied, loop_variable};
use crate::ops::{Form, Op};
use crate::types::ElemRef;

/// Binds tighter than every infix operator.
const TIGHT: u8 = u8::MAX;

impl Printer<'_> {
    pub(super) fn expr(&mut self, e: Expr) {
        self.expr_at(e, 0);
    }

    /// Prints `e` where everything that binds weaker than `strength` needs parentheses.
    fn expr_at(&mut self, e: Expr, strength: u8) {
        let own = match &self.k.exprs[e] {
            ExprData::Op { op, .. } => match op.form() {
                Form::Infix(own) => own,
                Form::Prefix | Form::Call => TIGHT,
            },
            _ => TIGHT,
        };
        if own < strength {
            self.put("(");
            self.node(e);
            self.put(")");
        } else {
            self.node(e);
        }
    }

    fn node(&mut self, e: Expr) {
        let k = self.k;
        match &k.exprs[e] {
            ExprData::Int(x) => self.put(&x.to_string()),
            ExprData::Float(bits) => self.put(&float(f64::from_bits(*bits))),
            ExprData::Ref(v) => self.value(*v),
            ExprData::Op { op, args } => self.op(*op, args),
            ExprData::Cast { elem, arg } => {
                self.put("cast<");
                self.elem_ref(*elem);
                self.put(">(");
                self.expr(*arg);
                self.put(")");
            }
            ExprData::Reduce { op, axis, arg } => self.along(op.token(), *arg, *axis),
            ExprData::Iota { axis, like } => self.along("iota", *like, *axis),
            ExprData::Transpose(arg) => self.call("transpose", &[*arg]),
            ExprData::Mma(m) => {
                let name = match (m.atom, m.swap) {
                    (None, false) => "mma".to_owned(),
                    (None, true) => "mma<swap>".to_owned(),
                    (Some(atom), false) => format!("mma<{}>", atom.row().name),
                    (Some(atom), true) => format!("mma<{}, swap>", atom.row().name),
                };
                self.call(&name, &[m.a, m.b, m.c]);
            }
            ExprData::View(v) => self.view(v),
        }
    }

    fn op(&mut self, op: Op, args: &[Expr]) {
        match (op.form(), args) {
            (Form::Infix(own), &[a, b]) => {
                self.expr_at(a, own);
                self.put(&format!(" {} ", op.token()));
                self.expr_at(b, own + 1);
            }
            (Form::Prefix, &[a]) => {
                self.put(op.token());
                // `-1` is a literal, `-(1)` a negation.
                if op == Op::Neg && is_unsigned_literal(self.k, a) {
                    self.put("(");
                    self.expr(a);
                    self.put(")");
                } else {
                    self.expr_at(a, TIGHT);
                }
            }
            _ => self.call(op.token(), args),
        }
    }

    fn call(&mut self, name: &str, args: &[Expr]) {
        self.put(name);
        self.put("(");
        self.list(args, |p, &a| p.expr(a));
        self.put(")");
    }

    fn along(&mut self, name: &str, arg: Expr, axis: u32) {
        self.put(name);
        self.put("(");
        self.expr(arg);
        self.put(&format!(", {axis})"));
    }

    fn view(&mut self, view: &View) {
        self.value(view.base);
        match view.slot {
            Some(Slot::Put) => self.put(".put"),
            Some(Slot::Get) => self.put(".get"),
            None => {}
        }
        if view.slot.is_some() && view.ranges.is_empty() {
            return;
        }
        self.put("[");
        let dims: Vec<usize> = (0..view.ranges.len()).collect();
        self.list(&dims, |p, &d| match view.ranges[d] {
            Range::At(e) => p.expr(e),
            Range::From { start, end } => {
                p.expr(start);
                p.put("..");
                match end {
                    Some(end) => p.expr(end),
                    None if p.ends_with_its_loop(view, d) => p.put("inf"),
                    None => {}
                }
            }
        });
        self.put("]");
    }

    /// Whether range `d` of a window would end with a loop if no end were written.
    fn ends_with_its_loop(&self, view: &View, d: usize) -> bool {
        let Range::From { start, .. } = view.ranges[d] else { return false };
        loop_variable(self.k, start).is_some()
            && implied(self.k, self.loops.get_or_init(|| LoopEnds::of(self.k)), view, d).is_some()
    }

    pub(super) fn fill(&mut self, fill: Fill) {
        match fill {
            Fill::Int(x) => self.put(&x.to_string()),
            Fill::Float(bits) => self.put(&float(f64::from_bits(bits))),
        }
    }

    pub(super) fn elem_ref(&mut self, elem: ElemRef) {
        match elem {
            ElemRef::Known(elem) => self.put(elem.name()),
            ElemRef::Param(v) => self.value(v),
        }
    }
}

fn is_unsigned_literal(k: &Kernel, e: Expr) -> bool {
    match k.exprs[e] {
        ExprData::Int(x) => x >= 0,
        ExprData::Float(bits) => f64::from_bits(bits).is_sign_positive(),
        _ => false,
    }
}

/// The shortest text that parses back to `x`, always with a point or an exponent.
fn float(x: f64) -> String {
    let sign = if x.is_sign_negative() { "-" } else { "" };
    if x.is_nan() {
        return format!("{sign}nan");
    }
    if x.is_infinite() {
        return format!("{sign}inf");
    }
    format!("{x:?}")
}
