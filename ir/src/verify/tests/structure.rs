//! Rules 1 to 3: kernels that no text can express, built by hand.

use super::{codes, kernel};
use crate::diag::Span;
use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel, StmtData, ValueDef};
use crate::ops::Op;

const NO: Span = Span { start: 0, end: 0 };

fn sample() -> Kernel {
    kernel("kernel t(A: gmem f32[M]) { var acc = reg f32[8] = 0.0\n for i in 0..4 {\n let y = i + 1\n } }")
}

fn value(k: &Kernel, name: &str) -> Value {
    k.values.keys().find(|&v| k.values[v].name == name).unwrap()
}

fn push(k: &mut Kernel, data: StmtData) {
    let s = k.stmt(data, NO);
    let body = k.body;
    k.blocks[body].push(s);
}

#[test]
fn an_expression_has_one_parent() {
    let mut k = sample();
    assert!(codes(&k).is_empty());
    let x = k.int(1, NO);
    let sum = k.expr(ExprData::Op { op: Op::Add, args: vec![x, x] }, NO);
    let y = k.value("z", NO, ValueDef::Let);
    push(&mut k, StmtData::Let { value: y, init: sum });
    assert_eq!(codes(&k), ["E0230"]);
}

#[test]
fn expressions_may_not_be_cyclic() {
    let mut k = sample();
    let x = k.int(1, NO);
    let neg = k.expr(ExprData::Op { op: Op::Neg, args: vec![x] }, NO);
    k.exprs[x] = ExprData::Op { op: Op::Neg, args: vec![neg] };
    let y = k.value("z", NO, ValueDef::Let);
    push(&mut k, StmtData::Let { value: y, init: neg });
    assert_eq!(codes(&k), ["E0230"]);
}

#[test]
fn a_statement_is_in_one_block() {
    let mut k = sample();
    let body = k.body;
    let s = k.blocks[body][0];
    k.blocks[body].push(s);
    assert_eq!(codes(&k), ["E0230"]);
}

#[test]
fn a_block_may_not_contain_itself() {
    let mut k = sample();
    let body = k.body;
    let loop_stmt = k.blocks[body][1];
    let StmtData::For { body: inner, .. } = k.stmts[loop_stmt] else { unreachable!() };
    k.blocks[inner].push(loop_stmt);
    assert_eq!(codes(&k), ["E0230"]);
}

#[test]
fn nesting_is_bounded() {
    let mut k = sample();
    let mut e: Expr = k.int(1, NO);
    for _ in 0..100_000 {
        e = k.expr(ExprData::Op { op: Op::Abs, args: vec![e] }, NO);
    }
    let y = k.value("z", NO, ValueDef::Let);
    push(&mut k, StmtData::Let { value: y, init: e });
    assert_eq!(codes(&k), ["E0103"]);
}

#[test]
fn a_value_is_declared_once_as_what_it_is() {
    let mut k = sample();
    let acc = value(&k, "acc");
    push(&mut k, StmtData::Var { value: acc, init: None });
    assert_eq!(codes(&k), ["E0230"], "declared twice");
    let mut k = sample();
    let acc = value(&k, "acc");
    k.values[acc].def = ValueDef::Let;
    assert_eq!(codes(&k), ["E0230"], "declared as a variable");
}

#[test]
fn a_value_is_used_where_it_exists() {
    let mut k = sample();
    let y = value(&k, "y");
    let e = k.value_ref(y, NO);
    let z = k.value("z", NO, ValueDef::Let);
    push(&mut k, StmtData::Let { value: z, init: e });
    assert_eq!(codes(&k), ["E0232"], "`y` exists in the loop only");

    let mut k = sample();
    let z = k.value("z", NO, ValueDef::Let);
    let e = k.value_ref(z, NO);
    push(&mut k, StmtData::Let { value: z, init: e });
    assert_eq!(codes(&k), ["E0232"], "its own initialiser");

    let mut k = sample();
    let i = value(&k, "i");
    push(&mut k, StmtData::Await { value: i, pending: 0, after: Vec::new() });
    assert_eq!(codes(&k), ["E0232"]);
}

#[test]
fn names_in_scope_are_unique() {
    let mut k = sample();
    let y = value(&k, "y");
    k.values[y].name = "acc".to_owned();
    assert_eq!(codes(&k), ["E0202"]);
    let k = kernel("kernel t() { for i in 0..4 {} for i in 0..4 {} }");
    assert!(codes(&k).is_empty(), "blocks beside one another");
}
