//! Signs that are written for others: `=` for `==`, `==` for `=`, `=>` for `>=`, `=>` and `<-` for `->`, and a bracket of `grid (..)` that is not closed.
//!
//! Each is reported with the sign that is meant, and read as that one.

use crate::codes;
use crate::diag::{Diagnostic, Span};
use crate::lexer::Tok;
use crate::ops::Op;
use crate::parser::header::HEADER_CLAUSES;
use crate::parser::reader::{Parsed, Parser};

impl Parser<'_, '_> {
    /// The `=` after a name that gets a value.
    pub(super) fn expect_equals(&mut self) -> Parsed<()> {
        if !self.at_sign("==") {
            return self.expect_sign("=");
        }
        let d = self.expected_here("`=`").with_note("`=` gives a value to a name, and `==` compares");
        let span = self.bump().span;
        self.error(d.with_fix(span, "="));
        Ok(())
    }

    /// At a `=` between operands, where a comparison is meant.
    pub(super) fn at_single_equals(&self) -> bool {
        self.at_sign("=") && self.peek_at(1) != Tok::Sign("=") && self.peek_at(1) != Tok::Word("copy")
    }

    /// Says that a comparison has two signs.
    pub(super) fn single_equals(&mut self) {
        let span = self.span();
        let d = self.expected_here("an operator").with_note("a comparison is written `==`");
        self.error(d.with_fix(span, "=="));
    }

    /// The span of two adjacent signs at this position.
    fn two_signs(&self, first: &str, second: &'static str) -> Option<Span> {
        let next = self.tokens.get(self.pos + 1)?;
        let here = self.at_sign(first) && next.tok == Tok::Sign(second) && self.span().end == next.span.start;
        here.then(|| self.span().to(next.span))
    }

    /// At `=>` or `=<` between operands, where a comparison is meant.
    pub(super) fn reversed(&mut self) -> Option<Op> {
        let (op, span) =
            [(Op::Ge, ">"), (Op::Le, "<")].into_iter().find_map(|(op, s)| Some((op, self.two_signs("=", s)?)))?;
        let written = &self.source[span.start as usize..span.end as usize];
        let message = format!("expected an operator, found `{written}`");
        let note = format!("a comparison is written `{}`", op.token());
        self.error(Diagnostic::error(codes::EXPECTED, span, message).with_note(note).with_fix(span, op.token()));
        self.pos += 1;
        Some(op)
    }

    /// The place of a `=>` or `<-` that is written for the arrow of a copy here, if what is in front may be all that the copy reads.
    pub(super) fn wrong_arrow(&self) -> Option<Span> {
        let backward = self.two_signs("<", "-");
        // `x <-1.0` compares, if what it is part of is copied on.
        let of_line = self.tokens[self.pos..]
            .windows(2)
            .take_while(|pair| !self.source[pair[0].span.end as usize..pair[1].span.start as usize].contains('\n'));
        let mut of_line = of_line.map(|pair| pair[1].tok);
        self.two_signs("=", ">").or(backward.filter(|_| !of_line.any(|tok| tok == Tok::Sign("->"))))
    }

    /// The arrow of a copy.
    pub(super) fn expect_arrow(&mut self) -> Parsed<()> {
        const NOTE: &str = "a copy names where it goes: `copy acc -> C[i.., j..]`";
        if self.eat_sign("->") {
            return Ok(());
        }
        let Some(arrow) = self.wrong_arrow() else {
            return Err(self.expected_with_note("`->`", NOTE));
        };
        let backward = self.at_sign("<");
        let written = &self.source[arrow.start as usize..arrow.end as usize];
        let d = Diagnostic::error(codes::EXPECTED, arrow, format!("expected `->`, found `{written}`"));
        let d = d.with_label("expected `->`").with_note(NOTE).with_fix(arrow, "->");
        self.pos += 2;
        self.error(match backward {
            // If `<-` was meant as in other languages, the two sides must be exchanged.
            true => d.with_meaning("what is on the left is copied"),
            false => d,
        });
        Ok(())
    }

    /// At the comma in front of the next index of a grid, inside of a bracket of the one before.
    pub(super) fn at_unclosed(&self) -> bool {
        self.grid_at.is_some_and(|depth| self.depth > depth)
            && self.at_sign(",")
            && matches!(self.peek_at(1), Tok::Word(_))
            && self.peek_at(2) == Tok::Sign(":")
    }

    /// Says that a bracket is not closed, which is taken as closed here.
    pub(super) fn unclosed(&mut self) {
        let end = self.last_span().end;
        let d = self.expected_here("`)`");
        let d = Diagnostic { notes: Vec::new(), ..d }.with_note("a bracket in front of this is not closed");
        self.error(d.with_fix(Span { start: end, end }, ")"));
    }

    /// At the word of a clause of a header.
    pub(super) fn at_clause(&self) -> bool {
        HEADER_CLAUSES.iter().any(|word| self.at_word(word))
    }
}
