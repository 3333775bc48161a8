//! `reduce (x, p) along 1 with (x1, p1), (x2, p2) { let d = x2 - x1 give .. }`, and scans and sorts of tuples.

use crate::codes;
use crate::combine::{Combine, How, type_literals};
use crate::diag::{Diagnostic, Span};
use crate::entities::{Expr, Stmt, Value};
use crate::kernel::{ExprData, StmtData, ValueDef};
use crate::lexer::Tok;
use crate::parser::reader::{Parsed, Parser};
use crate::types::{Elem, ElemRef};

const EXAMPLE: &str =
    "`reduce (x, p) along 1 with (x1, p1), (x2, p2) { give x1 + x2, p1 * p2 }`: two tuples become one";

impl<'s> Parser<'s, '_> {
    /// Whether tuples are combined here.
    pub(super) fn at_combine(&self) -> bool {
        matches!(self.peek(), Tok::Word(word) if How::from_word(word).is_some()) && self.peek_at(1) == Tok::Sign("(")
    }

    /// `let (m, l) = reduce ..`: the tuples have a name, and each component one.
    pub(super) fn let_components(&mut self, stmts: &mut Vec<Stmt>, start: Span) -> Parsed<()> {
        self.expect_sign("(")?;
        let names = self.comma_list(|p| p.name("a name to declare"));
        let names = names.and_then(|names| self.list_end(")").map(|()| names))?;
        let result = self.components(stmts, start, &names);
        if result.is_err() {
            names.iter().for_each(|&(name, span)| self.poison(name, span));
        }
        result
    }

    fn components(&mut self, stmts: &mut Vec<Stmt>, start: Span, names: &[(&'s str, Span)]) -> Parsed<()> {
        self.expect_sign("=")?;
        if !self.at_combine() {
            return Err(self.expected_with_note("`reduce`, `scan` or `sort`", EXAMPLE));
        }
        let init = self.combine()?;
        let ExprData::Combine(combine) = &self.kernel.exprs[init] else { unreachable!("it was just read") };
        if combine.first.len() != names.len() {
            let message = format!("{} components have {} names", combine.first.len(), names.len());
            return Err(self.report(codes::WRONG_COUNT, self.since(start), message));
        }
        let span = names[0].1.to(names[names.len() - 1].1);
        let all = match names {
            [(only, _)] => format!("{only}_tuple"),
            _ => names.iter().map(|(name, _)| *name).collect::<Vec<_>>().join("_"),
        };
        let all = self.unseen(&all);
        let tuples = self.declare(&all, span, ValueDef::Let);
        self.push(stmts, StmtData::Let { value: tuples, init }, start);
        for (index, &(name, span)) in names.iter().enumerate() {
            let of = self.node(ExprData::Ref(tuples), span)?;
            let init = self.node(ExprData::Part { of, index: index as u32 }, span)?;
            let value = self.declare(name, span, ValueDef::Let);
            self.push(stmts, StmtData::Let { value, init }, start);
        }
        Ok(())
    }

    /// A name that nothing has which is visible here.
    fn unseen(&self, base: &str) -> String {
        let base: String = base.chars().take(40).collect();
        let numbered = (0..).map(|i: u32| if i == 0 { base.clone() } else { format!("{base}_{i}") });
        numbered.into_iter().find(|name| !self.names_value(name)).unwrap_or(base)
    }

    /// Tuples combined.
    pub(super) fn combine(&mut self) -> Parsed<Expr> {
        let (span, word) = match self.token() {
            crate::lexer::Token { tok: Tok::Word(word), span } => (span, word),
            _ => return Err(self.expected("`reduce`, `scan` or `sort`")),
        };
        let Some(mut how) = How::from_word(word) else { return Err(self.expected("`reduce`, `scan` or `sort`")) };
        self.bump();
        self.expect_sign("(")?;
        let args = self.comma_list(|p| p.expr())?;
        self.list_end(")")?;
        self.word("along")?;
        let axis = self.small_int("the number of a dimension")?;
        let exclusive = matches!(how, How::Scan { .. }) && self.eat_word("exclusive");
        let front = if exclusive { self.front(args.len())? } else { Vec::new() };
        let mut totals = Vec::new();
        if let How::Reduce { parts } | How::Scan { parts } = &mut how
            && self.eat_word("parts")
        {
            *parts = self.parts()?;
            if matches!(how, How::Scan { .. }) {
                totals = self.totals(args.len())?;
            }
        }
        if let How::Sort { steps } = &mut how
            && self.eat_word("steps")
        {
            *steps = Some(self.steps()?);
        }
        self.word("with")?;
        let result = self.scoped(|p| p.body(how, axis, (args, front, totals)));
        let combine = result?;
        self.node(ExprData::Combine(Box::new(combine)), self.since(span))
    }

    fn word(&mut self, word: &'static str) -> Parsed<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.expected_with_note(&format!("`{word}`"), EXAMPLE)) }
    }

    /// `(1.0, 0.0)`, a value for each component.
    fn front(&mut self, components: usize) -> Parsed<Vec<Expr>> {
        let start = self.token().span;
        if self.peek() != Tok::Sign("(") {
            let note = "the value before the first element is the neutral element: `scan (a, h) along 1 exclusive (1.0, 0.0) with ..`";
            return Err(self.expected_with_note("`(` and a number for each component", note));
        }
        self.bump();
        let front = self.comma_list(|p| p.expr())?;
        self.list_end(")")?;
        if front.len() != components {
            let message = format!("tuples of {components} have {} numbers in front of them", front.len());
            return Err(self.report(codes::WRONG_COUNT, self.since(start), message));
        }
        Ok(front)
    }

    /// `(0, 45)`: the first comparison of a sort, and the one after the last.
    fn steps(&mut self) -> Parsed<(u32, u32)> {
        let start = self.token().span;
        self.expect_sign("(")?;
        let from = self.small_int("the number of a comparison")?;
        self.expect_sign(",")?;
        let to = self.small_int("the number of a comparison")?;
        self.list_end(")")?;
        if from >= to {
            let message = "the comparisons of a sort begin in front of where they end".to_owned();
            return Err(self.report(codes::BAD_AXIS, self.since(start), message));
        }
        Ok((from, to))
    }

    /// `totals (t, u)`, a name for each component.
    fn totals(&mut self, components: usize) -> Parsed<Vec<Expr>> {
        let start = self.token().span;
        self.word("totals")?;
        self.expect_sign("(")?;
        let totals = self.comma_list(|p| p.expr())?;
        self.list_end(")")?;
        if totals.len() != components {
            let message = format!("tuples of {components} have {} totals", totals.len());
            return Err(self.report(codes::WRONG_COUNT, self.since(start), message));
        }
        Ok(totals)
    }

    /// Reads the word if it is next, as the beginning of a line.
    fn marked(&mut self, word: &'static str) -> bool {
        let start = self.span().start;
        let found = self.eat_word(word);
        if found {
            self.marks.starts.push(start);
        }
        found
    }

    /// `(x1, p1: i32), (x2, p2) { .. }`.
    fn body(
        &mut self,
        how: How,
        axis: u32,
        (args, front, totals): (Vec<Expr>, Vec<Expr>, Vec<Expr>),
    ) -> Parsed<Combine> {
        let first = self.tuple(args.len(), None)?;
        self.expect_sign(",")?;
        let second = self.tuple(args.len(), Some(&first))?;
        for (&arg, &v) in args.iter().chain(&front).zip(first.iter().chain(&first)) {
            let elem = crate::combine::component(&self.kernel, v);
            type_literals(&mut self.kernel, arg, elem);
        }
        self.marks.blocks.push(self.span().start);
        self.expect_sign("{")?;
        let mut locals = Vec::new();
        while self.marked("let") {
            let (name, span) = self.name("a name to declare")?;
            self.expect_sign("=")?;
            let init = self.expr()?;
            locals.push(self.declare(name, span, ValueDef::Local(init)));
        }
        self.marks.starts.push(self.span().start);
        self.word("give")?;
        let start = self.token().span;
        let results = self.comma_list(|p| p.expr())?;
        let span = self.since(start);
        self.expect_sign("}")?;
        let wanted = if matches!(how, How::Sort { .. }) { 1 } else { args.len() };
        if results.len() != wanted {
            let message = match how {
                How::Sort { .. } => {
                    format!("a sort says whether the first tuple stays in front, found {} values", results.len())
                }
                _ => format!("two tuples of {wanted} become one of {}", results.len()),
            };
            return Err(self.error(Diagnostic::error(codes::WRONG_COUNT, span, message).with_note(EXAMPLE)));
        }
        Ok(Combine { operation: how, axis, args, front, totals, first, second, locals, results })
    }

    /// The names of a tuple's components, those of the first one with their types.
    fn tuple(&mut self, n: usize, like: Option<&[Value]>) -> Parsed<Vec<Value>> {
        let start = self.token().span;
        self.expect_sign("(")?;
        let names = self.comma_list(|p| {
            let (name, span) = p.name("the name of a component")?;
            let elem = match like.is_none() && p.eat_sign(":") {
                true => p.elem_ref()?,
                false => ElemRef::Known(Elem::F32),
            };
            Ok((name, span, elem))
        })?;
        self.list_end(")")?;
        if names.len() != n {
            let message = format!("tuples of {n} have {} names", names.len());
            return Err(self.report(codes::WRONG_COUNT, self.since(start), message));
        }
        let declare = |(i, (name, span, elem)): (usize, (&'s str, Span, ElemRef))| {
            let elem = like.map_or(elem, |like| crate::combine::component(&self.kernel, like[i]));
            self.declare(name, span, ValueDef::Element { elem })
        };
        Ok(names.into_iter().enumerate().map(declare).collect())
    }
}
