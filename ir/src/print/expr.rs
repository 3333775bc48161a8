//! Expressions, with the fewest parentheses.

use crate::combine::{Combine, component, local};
use crate::entities::{Expr, Value};
use crate::index;
use crate::kernel::{ExprData, Kernel, Range, Slot, Totals, View};
use crate::ops::{Form, Op};
use crate::tuples::How;
use crate::types::{Elem, ElemRef};

/// Binds tighter than every infix operator.
const TIGHT: u8 = u8::MAX;

/// Text of an expression over indices and scalars, which has no windows in it.
pub fn print_scalar(k: &Kernel, e: Expr) -> String {
    let mut out = String::new();
    Exprs { k, out: &mut out, ends_with_its_loop: &|_, _| false, indent: 0 }.expr(e);
    out
}

/// What prints expressions at the end of a text.
pub(super) struct Exprs<'a> {
    pub(super) k: &'a Kernel,
    pub(super) out: &'a mut String,
    /// Whether a range of a window would end with a loop if no end were written. Only the whole program determines
    /// this.
    pub(super) ends_with_its_loop: &'a dyn Fn(&View, usize) -> bool,
    /// The nesting depth of the statement.
    pub(super) indent: usize,
}

impl Exprs<'_> {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn value(&mut self, v: Value) {
        let k = self.k;
        self.put(&k.values[v].name);
    }

    /// Items separated by `, `.
    fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        for (i, x) in items.iter().enumerate() {
            if i > 0 {
                self.put(", ");
            }
            item(self, x);
        }
    }

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
            ExprData::Cast { elem, arg } | ExprData::Bits { elem, arg } => {
                self.put(if matches!(k.exprs[e], ExprData::Cast { .. }) { "cast<" } else { "bitcast<" });
                self.elem_ref(*elem);
                self.put(">(");
                self.expr(*arg);
                self.put(")");
            }
            ExprData::Round { elem, arg, word } => {
                self.put("round_random<");
                self.elem_ref(*elem);
                self.put(">(");
                self.expr(*arg);
                self.put(", ");
                self.expr(*word);
                self.put(")");
            }
            ExprData::Reduce { op, axis, parts: 0, arg } => self.along(op.token(), *arg, *axis),
            ExprData::Reduce { op, axis, parts, arg } => {
                self.put(op.token());
                self.put("(");
                self.expr(*arg);
                self.put(&format!(", {axis}, {})", parts_text(*parts)));
            }
            ExprData::Scan { op, axis, exclusive, totals, arg } => {
                self.put(op.scan_token().unwrap_or_else(|| panic!("bug: `{}` has no scan", op.token())));
                self.put("(");
                self.expr(*arg);
                self.put(&format!(", {axis}{}", if *exclusive { ", exclusive" } else { "" }));
                if let Some(Totals { parts, tile }) = totals {
                    self.put(&format!(", {} totals ", parts_text(*parts)));
                    self.expr(*tile);
                }
                self.put(")");
            }
            ExprData::Iota { axis, like } => self.along("iota", *like, *axis),
            ExprData::Lookup { table, index } => {
                self.put(&self.k.values[*table].name);
                self.put("[");
                self.expr(*index);
                self.put("]");
            }
            ExprData::Combine(combine) => self.combine(combine),
            ExprData::Part { of, index } => {
                self.expr(*of);
                self.put(&format!(".{index}"));
            }
            ExprData::Transpose(arg) => self.call("transpose", &[*arg]),
            ExprData::Permute { arg, order } => {
                self.put("permute(");
                self.expr(*arg);
                self.put(&format!(", {order:?})"));
            }
            ExprData::Reshape { arg, shape, numbered } => {
                self.put("reshape(");
                self.expr(*arg);
                self.put(", [");
                self.list(shape, |p, &n| p.expr(n));
                self.put("]");
                if let Some(of) = numbered {
                    self.put(&format!(", {:?} in {:?}", of.from, of.to));
                    if of.at.iter().any(|&at| at != 0) {
                        self.put(&format!(" at {:?}", of.at));
                    }
                }
                self.put(")");
            }
            ExprData::Concat { args, axis } => {
                self.put("concat(");
                self.list(args, |p, &arg| p.expr(arg));
                self.put(&format!(", {axis})"));
            }
            ExprData::Index(arg) => self.call(index::WORD, &[*arg]),
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

    fn combine(&mut self, combine: &Combine) {
        let k = self.k;
        self.call(&format!("{} ", combine.operation.word()), &combine.args);
        self.put(&format!(" along {}", combine.axis));
        if !combine.front.is_empty() {
            self.call(" exclusive ", &combine.front);
        }
        if combine.operation.parts() != 0 {
            self.put(&format!(" {}", parts_text(combine.operation.parts())));
        }
        if !combine.totals.is_empty() {
            self.call(" totals ", &combine.totals);
        }
        if let How::Sort { steps: Some((from, to)) } = combine.operation {
            self.put(&format!(" steps ({from}, {to})"));
        }
        self.put(" with (");
        self.list(&combine.first, |p, &v| {
            p.value(v);
            let elem = component(k, v);
            if elem != ElemRef::Known(Elem::F32) {
                p.put(": ");
                p.elem_ref(elem);
            }
        });
        self.put("), (");
        self.list(&combine.second, |p, &v| p.value(v));
        self.put(") {");
        for &v in &combine.locals {
            self.line(1);
            self.put("let ");
            self.value(v);
            self.put(" = ");
            self.expr(local(k, v));
        }
        self.line(1);
        self.put("give ");
        self.list(&combine.results, |p, &e| p.expr(e));
        self.line(0);
        self.put("}");
    }

    fn line(&mut self, deeper: usize) {
        self.put("\n");
        for _ in 0..self.indent + deeper {
            self.put("    ");
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
            Range::At(e) | Range::Gather(e) => p.expr(e),
            Range::From { .. } if p.k.tensor_ty(view.base).is_some_and(|t| t.repeats.contains(&d)) => p.put("_"),
            Range::From { start, end } => {
                p.expr(start);
                p.put("..");
                match end {
                    Some(end) => p.expr(end),
                    None if (p.ends_with_its_loop)(view, d) => p.put("inf"),
                    None => {}
                }
            }
        });
        self.put("]");
    }

    fn elem_ref(&mut self, elem: ElemRef) {
        self.put(elem_text(self.k, elem));
    }
}

/// `parts (7, 8)`.
fn parts_text(parts: u32) -> String {
    let bits: Vec<String> = (0..u32::BITS).filter(|i| parts >> i & 1 == 1).map(|i| i.to_string()).collect();
    format!("parts ({})", bits.join(", "))
}

/// The name of an element type, or of its parameter.
pub(super) fn elem_text(k: &Kernel, elem: ElemRef) -> &str {
    match elem {
        ElemRef::Known(elem) => elem.name(),
        ElemRef::Param(v) => &k.values[v].name,
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
pub(super) fn float(x: f64) -> String {
    let sign = if x.is_sign_negative() { "-" } else { "" };
    if x.is_nan() {
        return format!("{sign}nan");
    }
    if x.is_infinite() {
        return format!("{sign}inf");
    }
    format!("{x:?}")
}
