//! Expressions: operators by binding strength with explicit stacks, calls, views, literals.
//!
//! A `-` right before a number belongs to the literal, so that negative literals survive printing; `-(1)` is a negation.

use crate::atoms::Atom;
use crate::codes;
use crate::combine::How;
use crate::diag::{Diagnostic, Reported, Span};
use crate::entities::{Expr, Value};
use crate::fix_locations::FixLocation;
use crate::functions::{self, CONCAT, PERMUTE, RESHAPE};
use crate::index;
use crate::kernel::{ExprData, Mma, Range, Slot, Totals, ValueDef, View};
use crate::lexer::{Tok, clip, is_reserved};
use crate::literal::Literal;
use crate::ops::{Form, Op, ReduceOp};
use crate::parser::foreign_syntax;
use crate::parser::reader::{MAX_DEPTH, Parsed, Parser};
use crate::parser::window_notes::{REPEATS, RangeNote};
use crate::reshape::Numbered;
use crate::types::{Elem, ElemRef};

/// Extents are below 2 to the power of this.
const EXTENT_BITS: u32 = 31;

impl Parser<'_, '_> {
    /// Adds a node, unless the tree becomes too high.
    pub(super) fn node(&mut self, data: ExprData, span: Span) -> Parsed<Expr> {
        let e = self.kernel.expr(data, span);
        let below = self.kernel.children(e).into_iter().map(|c| self.heights[c]).max().unwrap_or(0);
        if below >= MAX_DEPTH {
            return Err(self.too_deep(span));
        }
        self.heights[e] = below + 1;
        Ok(e)
    }

    /// An expression.
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.nested(|p| {
            let mut last = p.span();
            let mut operands = vec![p.unary()?];
            let mut pending: Vec<(Op, u8)> = Vec::new();
            while let Some(op) = p.infix() {
                if op == Op::Pow {
                    let x = operands.pop().expect("an operand stands in front of an operator");
                    operands.push(p.power(x, last)?);
                    continue;
                }
                let Form::Infix(strength) = op.form() else { unreachable!("it stands between its operands") };
                p.bump();
                p.reduce(&mut operands, &mut pending, strength)?;
                pending.push((op, strength));
                last = p.span();
                operands.push(p.unary()?);
            }
            p.reduce(&mut operands, &mut pending, 0)?;
            Ok(operands[0])
        })
    }

    /// The operator that is here between operands. What Python writes for one is reported, and taken as what it means.
    fn infix(&mut self) -> Option<Op> {
        if self.at_power() {
            return Some(Op::Pow);
        }
        if self.depth == self.copied_at && self.wrong_arrow().is_some() {
            return None;
        }
        if let Some(op) = self.reversed() {
            return Some(op);
        }
        if self.at_single_equals() {
            self.single_equals();
            return Some(Op::Eq);
        }
        if let Some(op) = self.at_spelt_operator() {
            self.spelt_operator(op);
            return Some(op);
        }
        match self.peek() {
            Tok::Sign(sign) => Op::from_infix(sign).filter(|op| matches!(op.form(), Form::Infix(_))),
            _ => None,
        }
    }

    /// Applies the pending operators that bind at least as strongly as `strength`.
    fn reduce(&mut self, operands: &mut Vec<Expr>, pending: &mut Vec<(Op, u8)>, strength: u8) -> Parsed<()> {
        while let Some((op, _)) = pending.pop_if(|(_, s)| *s >= strength) {
            let args = operands.split_off(operands.len() - 2);
            let span = self.kernel.expr_spans[args[0]].to(self.kernel.expr_spans[args[1]]);
            operands.push(self.node(ExprData::Op { op, args }, span)?);
        }
        Ok(())
    }

    /// `-a`, `!a`, or what they apply to.
    pub(super) fn unary(&mut self) -> Parsed<Expr> {
        let mut prefixes: Vec<(Op, Span)> = Vec::new();
        if self.at_not() {
            self.spelt_not();
            prefixes.push((Op::Not, self.bump().span));
        }
        while let Tok::Sign(sign) = self.peek()
            && let Some(&op) = Op::ALL.iter().find(|op| op.form() == Form::Prefix && op.token() == sign)
        {
            let next = self.peek_at(1);
            if op == Op::Neg && matches!(next, Tok::Int(_) | Tok::Float(_) | Tok::Word("inf" | "nan")) {
                break;
            }
            prefixes.push((op, self.bump().span));
        }
        let mut e = self.primary()?;
        while let Some((op, span)) = prefixes.pop() {
            let span = span.to(self.kernel.expr_spans[e]);
            e = self.node(ExprData::Op { op, args: vec![e] }, span)?;
        }
        Ok(e)
    }

    /// A number, possibly negated.
    pub(super) fn literal(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let negative = self.eat_sign("-");
        let number = self.token();
        let data = match number.tok {
            Tok::Int(x) => {
                let signed = if negative { 0i64.checked_sub_unsigned(x) } else { i64::try_from(x).ok() };
                match signed {
                    Some(x) => ExprData::Int(x),
                    None if !negative => {
                        // Only u64 has it: the number with these bits as that.
                        let arg = self.node(ExprData::Int(x.cast_signed()), number.span)?;
                        ExprData::Cast { elem: ElemRef::Known(Elem::U64), arg }
                    }
                    None => {
                        self.bump();
                        let message = format!("the integer `-{x}` does not fit 64 bits");
                        return Err(self.error(Diagnostic::error(codes::BAD_CHARACTER, number.span, message)));
                    }
                }
            }
            Tok::Float(x) => float(negative, x),
            Tok::Word("inf") => float(negative, f64::INFINITY),
            Tok::Word("nan") => float(negative, f64::NAN),
            _ => return Err(self.expected("a number")),
        };
        self.bump();
        let span = self.since(start);
        self.spot(FixLocation::Number, span);
        self.node(data, span)
    }

    /// Notes a place of the source that changes are made at.
    pub(super) fn spot(&mut self, spot: FixLocation, span: Span) {
        self.kernel.fix_locations.push((spot, span));
    }

    fn primary(&mut self) -> Parsed<Expr> {
        match self.peek() {
            Tok::Int(_) | Tok::Float(_) | Tok::Word("inf" | "nan") | Tok::Sign("-") => self.literal(),
            Tok::Sign("(") => {
                self.bump();
                let e = self.expr()?;
                self.expect_sign(")")?;
                Ok(e)
            }
            Tok::Word(word) if self.peek_at(1) == Tok::Sign("(") || is_reserved(word) => self.call(word),
            Tok::Word(_) => self.name_or_view(),
            _ => Err(self.expected("an expression")),
        }
    }

    /// A literal, for places that accept no other expression.
    pub(super) fn number(&mut self, note: &str) -> Parsed<Literal> {
        let span = self.span();
        let e = self.expr()?;
        match self.kernel.exprs[e] {
            ExprData::Int(x) => Ok(Literal::Int(i128::from(x))),
            ExprData::Cast { elem: ElemRef::Known(Elem::U64), arg } if self.kernel.as_int(arg).is_some() => {
                let x = self.kernel.as_int(arg).unwrap_or_default();
                Ok(Literal::Int(i128::from(x.cast_unsigned())))
            }
            ExprData::Float(bits) => Ok(Literal::Float(bits)),
            _ => {
                let d = Diagnostic::error(codes::EXPECTED, self.since(span), "expected a number");
                Err(self.error(d.with_note(note)))
            }
        }
    }

    /// A function applied to something; `word` is the token here.
    fn call(&mut self, word: &str) -> Parsed<Expr> {
        let span = self.span();
        if let Some(op) = Op::from_call(word) {
            self.bump();
            self.expect_sign("(")?;
            let args = if self.at_sign(")") { Vec::new() } else { self.comma_list(|p| p.expr())? };
            self.list_end(")")?;
            if args.len() != op.arity() {
                let message = format!("`{word}` takes {} operands, found {}", op.arity(), args.len());
                return Err(self.report(codes::WRONG_COUNT, self.since(span), message));
            }
            return self.node(ExprData::Op { op, args }, self.since(span));
        }
        if let Some(op) = ReduceOp::from_token(word) {
            self.bump();
            let (arg, axis, parts) = self.reduced()?;
            return self.node(ExprData::Reduce { op, axis, parts, arg }, self.since(span));
        }
        if let Some(op) = ReduceOp::from_scan_token(word) {
            self.bump();
            let data = self.scanned(op)?;
            return self.node(data, self.since(span));
        }
        match word {
            "iota" => {
                self.bump();
                let (like, axis) = self.along_axis()?;
                self.node(ExprData::Iota { axis, like }, self.since(span))
            }
            index::WORD => {
                self.bump();
                self.expect_sign("(")?;
                let arg = self.expr()?;
                self.expect_sign(")")?;
                self.node(ExprData::Index(arg), self.since(span))
            }
            "transpose" => {
                self.bump();
                self.expect_sign("(")?;
                let arg = self.expr()?;
                self.expect_sign(")")?;
                self.node(ExprData::Transpose(arg), self.since(span))
            }
            RESHAPE => {
                self.bump();
                self.expect_sign("(")?;
                let arg = self.expr()?;
                self.expect_sign(",")?;
                self.expect_sign("[")?;
                let shape = self.comma_list(|p| p.expr())?;
                self.list_end("]")?;
                let numbered = if self.eat_sign(",") { Some(Box::new(self.numbered()?)) } else { None };
                self.expect_sign(")")?;
                self.node(ExprData::Reshape { arg, shape, numbered }, self.since(span))
            }
            PERMUTE => {
                self.bump();
                self.expect_sign("(")?;
                let arg = self.expr()?;
                self.expect_sign(",")?;
                self.expect_sign("[")?;
                let order = self.comma_list(|p| p.small_int("a dimension"))?;
                self.list_end("]")?;
                self.expect_sign(")")?;
                self.node(ExprData::Permute { arg, order }, self.since(span))
            }
            CONCAT => self.concat(span),
            "cast" | "bitcast" => {
                let (elem, arg) = self.converted()?;
                self.expect_sign(")")?;
                let data = match word {
                    "cast" => ExprData::Cast { elem, arg },
                    _ => ExprData::Bits { elem, arg },
                };
                self.node(data, self.since(span))
            }
            "round_random" => {
                let (elem, arg) = self.converted()?;
                self.expect_sign(",")?;
                let word = self.expr()?;
                self.expect_sign(")")?;
                self.node(ExprData::Round { elem, arg, word }, self.since(span))
            }
            "mma" => self.mma(),
            _ if Elem::from_name(word).is_some() && self.peek_at(1) == Tok::Sign("(") => {
                let d =
                    self.expected_here("an expression").with_note(format!("a conversion is written `cast<{word}>(x)`"));
                Err(self.error(d.with_fix(span, format!("cast<{word}>"))))
            }
            _ if is_reserved(word) => Err(self.expected("an expression")),
            _ => Err(self.unknown_function(word, span)),
        }
    }

    /// `[12, 48] in [48, 12] at [0, -40]`: which elements of a buffer are which of a tile.
    fn numbered(&mut self) -> Parsed<Numbered> {
        let from = self.extents_of_part()?;
        if !self.eat_word("in") {
            return Err(self.expected("`in`, and the extents that the elements have in the tile"));
        }
        let to = self.extents_of_part()?;
        let mut at = vec![0; to.len()];
        if self.eat_word("at") {
            self.expect_sign("[")?;
            at = self.comma_list(|p| {
                let negative = p.eat_sign("-");
                let at = i64::from(p.small_int("a place in a tile")?);
                Ok(if negative { -at } else { at })
            })?;
            self.list_end("]")?;
        }
        Ok(Numbered { from, to, at })
    }

    fn extents_of_part(&mut self) -> Parsed<Vec<u64>> {
        self.expect_sign("[")?;
        let extents = self.comma_list(|p| p.small_int("an extent").map(u64::from))?;
        self.list_end("]")?;
        Ok(extents)
    }

    fn unknown_function(&mut self, word: &str, span: Span) -> Reported {
        let functions: Vec<&'static str> = functions::all().into_iter().map(|f| f.name).collect();
        let message = format!("no function is called `{}`", clip(word));
        let mut d = Diagnostic::error(codes::UNKNOWN_FUNCTION, span, message);
        if How::from_word(word).is_some() {
            let note = "tuples that are combined are named by a `let`: `let (m, l) = reduce (x, 1.0) along 1 with ..`";
            return self.error(d.with_note(note));
        }
        if let Some(ours) = foreign_syntax::renamed(word) {
            return self.error(d.with_note(format!("it is called `{ours}` here")).with_fix(span, ours));
        }
        if let Some(elem) = foreign_syntax::of_type(word) {
            let cast = format!("cast<{elem}>");
            return self.error(d.with_note(format!("a conversion is written `{cast}(x)`")).with_fix(span, cast));
        }
        if let Some(instead) = foreign_syntax::instead(word) {
            return self.error(d.with_note(format!("it is written {instead}")));
        }
        d = match self.near_function(word, &functions) {
            Some(near) => d.with_spelling(near),
            None => d.with_note(format!("the functions are `{}`", functions.join("`, `"))),
        };
        self.error(d)
    }

    /// `(x, axis[, parts (bit, ..)])`: the bits ascend.
    fn reduced(&mut self) -> Parsed<(Expr, u32, u32)> {
        self.expect_sign("(")?;
        let arg = self.expr()?;
        if !self.at_sign(",") {
            let note = "a reduction names its dimension, counted from 0: `sum(x, 1)` has one element for each row";
            return Err(self.expected_with_note("`,` and a dimension", note));
        }
        self.bump();
        let axis = self.axis()?;
        let mut parts = 0u32;
        if self.eat_sign(",") {
            let comma = self.last_span();
            if self.skip_keepdim(comma) {
                self.expect_sign(")")?;
                return Ok((arg, axis, parts));
            }
            if !self.eat_word("parts") {
                return Err(self.expected_with_note(
                    "`parts`",
                    "`sum(x, 1, parts (3))` of 16 elements: the first 8, and the others",
                ));
            }
            parts = self.parts()?;
        }
        self.expect_sign(")")?;
        Ok((arg, axis, parts))
    }

    /// `(bit, ..)`: the bits ascend.
    pub(super) fn parts(&mut self) -> Parsed<u32> {
        let span = self.token().span;
        self.expect_sign("(")?;
        let bits = self.comma_list(|p| p.small_int("a bit of an element's number"))?;
        self.list_end(")")?;
        if bits.last().is_some_and(|&last| last >= EXTENT_BITS) || !bits.is_sorted_by(|a, b| a < b) {
            let message = "bits of an element's number ascend, and are below 31";
            return Err(self.report(codes::BAD_AXIS, span, message.to_owned()));
        }
        Ok(bits.into_iter().fold(0, |all, bit| all | 1 << bit))
    }

    /// `(x, axis[, exclusive][, parts (bit, ..) totals t])`.
    fn scanned(&mut self, op: ReduceOp) -> Parsed<ExprData> {
        self.expect_sign("(")?;
        let arg = self.expr()?;
        self.expect_sign(",")?;
        let axis = self.axis()?;
        let more = self.eat_sign(",");
        let exclusive = more && self.eat_word("exclusive");
        let mut totals = None;
        if more && !exclusive || self.eat_sign(",") {
            if !self.eat_word("parts") {
                return Err(self.expected_with_note(
                    if exclusive { "`parts`" } else { "`exclusive` or `parts`" },
                    "`scan_sum(x, 1, exclusive)` has at each place the sum of the elements in front of it",
                ));
            }
            let parts = self.parts()?;
            if !self.eat_word("totals") {
                let note = "`scan_sum(x, 1, parts (3) totals t)` of 16 elements: `t` has what the first 8 come to, and the others";
                return Err(self.expected_with_note("`totals`", note));
            }
            totals = Some(Totals { parts, tile: self.expr()? });
        }
        self.expect_sign(")")?;
        Ok(ExprData::Scan { op, axis, exclusive, totals, arg })
    }

    /// The type and the first operand of a conversion: `cast<f16>(x`.
    fn converted(&mut self) -> Parsed<(ElemRef, Expr)> {
        self.bump();
        self.expect_sign("<")?;
        let elem = self.elem_ref()?;
        self.expect_sign(">")?;
        self.expect_sign("(")?;
        Ok((elem, self.expr()?))
    }

    /// `concat(a, b, .., axis)`.
    fn concat(&mut self, span: Span) -> Parsed<Expr> {
        self.bump();
        self.expect_sign("(")?;
        let mut args = self.comma_list(|p| p.expr())?;
        self.list_end(")")?;
        let axis = args.pop().filter(|_| args.len() >= 2).and_then(|e| u32::try_from(self.kernel.as_int(e)?).ok());
        let Some(axis) = axis else {
            let message = "`concat` takes two tiles or more, and the number of a dimension";
            let d = Diagnostic::error(codes::WRONG_COUNT, self.since(span), message);
            return Err(self.error(d.with_note("`concat(a, b, 1)` has the columns of `b` after those of `a`")));
        };
        self.node(ExprData::Concat { args, axis }, self.since(span))
    }

    /// The number of a dimension.
    fn axis(&mut self) -> Parsed<u32> {
        self.named_axis()?;
        let at = self.span();
        let axis = self.small_int("the number of a dimension")?;
        self.spot(FixLocation::Axis, at);
        Ok(axis)
    }

    fn along_axis(&mut self) -> Parsed<(Expr, u32)> {
        self.expect_sign("(")?;
        let arg = self.expr()?;
        self.expect_sign(",")?;
        let axis = self.axis()?;
        self.expect_sign(")")?;
        Ok((arg, axis))
    }

    /// `mma[<[atom][, swap]>](a, b, c)`.
    fn mma(&mut self) -> Parsed<Expr> {
        let start = self.bump().span;
        let (mut atom, mut swap) = (None, false);
        let open = self.span();
        if self.eat_sign("<") {
            if !self.at_word("swap") {
                atom = Some(self.atom()?);
            }
            if atom.is_none() || self.eat_sign(",") {
                swap = self.eat_word("swap");
                if !swap {
                    return Err(self.expected("`swap`"));
                }
            }
            self.expect_sign(">")?;
            if !swap {
                self.spot(FixLocation::Atom, self.since(open));
            }
        }
        self.expect_sign("(")?;
        let args = self.comma_list(|p| p.expr())?;
        self.list_end(")")?;
        let &[a, b, c] = &args[..] else {
            let message = format!("`mma` takes 3 operands, found {}", args.len());
            return Err(self.error(
                Diagnostic::error(codes::WRONG_COUNT, self.since(start), message)
                    .with_note("the third is the accumulator that the product is added to: `acc = mma(a, b, acc)`"),
            ));
        };
        self.node(ExprData::Mma(Mma { atom, swap, a, b, c }), self.since(start))
    }

    fn atom(&mut self) -> Parsed<Atom> {
        // One of them is called as an operator is.
        let (name, span) = match self.peek() {
            Tok::Word(word) if Atom::from_name(word).is_some() => (word, self.bump().span),
            _ => self.name("an atom")?,
        };
        Atom::from_name(name).ok_or_else(|| {
            let all: Vec<&str> = Atom::all().map(|a| a.row().name).collect();
            let message = format!("no atom is called `{}`", clip(name));
            let d = self.near(Diagnostic::error(codes::UNKNOWN_ATOM, span, message), name, &all);
            self.error(d.with_note(format!("the atoms are `{}`", all.join("`, `"))))
        })
    }

    /// `s.0`: a component of the tuples that are called `s`.
    fn part(&mut self, base: Option<Value>, index: u64, span: Span) -> Parsed<Expr> {
        let span = self.since(span);
        let (Some(base), Ok(index)) = (base, u32::try_from(index)) else { return self.node(ExprData::Int(0), span) };
        let of = self.node(ExprData::Ref(base), span)?;
        self.node(ExprData::Part { of, index }, span)
    }

    /// `x`, `x[..]`, `x.put`, `x.get[..]`, `x.0`.
    fn name_or_view(&mut self) -> Parsed<Expr> {
        if self.at_module() {
            self.skip_module();
            return self.nested(|p| p.primary());
        }
        let (name, span) = self.name("a name")?;
        // An unknown name is reported and stood in for, so that the rest of the expression is read too.
        let base = self.resolve(name, span).ok();
        let slot = if self.eat_sign(".") {
            match self.peek() {
                Tok::Word("put") => Some(Slot::Put),
                Tok::Word("get") => Some(Slot::Get),
                Tok::Int(index) => {
                    self.bump();
                    return self.part(base, index, span);
                }
                Tok::Word(word) if let Some((note, written)) = foreign_syntax::of_method(word, name) => {
                    let d = self.expected_here("`put` or `get`");
                    self.bump();
                    let whole = self.since(span);
                    let d = Diagnostic { notes: Vec::new(), fix: None, ..d }.with_note(note);
                    return Err(self.error(match written {
                        Some(written) => d.with_fix(whole, written),
                        None => d,
                    }));
                }
                _ => {
                    return Err(self.expected_with_note(
                        "`put` or `get`",
                        "`a.put` is the acquired slot of channel `a`, `a.get` the waited-for one",
                    ));
                }
            }
        } else {
            None
        };
        if slot.is_some() {
            self.bump();
        }
        let (mut ranges, mut said) = (None, Vec::new());
        if self.eat_sign("[") {
            let list = if self.at_sign("]") { Vec::new() } else { self.comma_list(|p| p.range())? };
            self.list_end("]")?;
            let (list, notes): (Vec<Range>, Vec<RangeNote>) = list.into_iter().unzip();
            (ranges, said) = (Some(list), notes);
        }
        let span = self.since(span);
        match base {
            None => self.node(ExprData::Int(0), span),
            Some(base) if slot.is_none() && ranges.is_none() => self.node(ExprData::Ref(base), span),
            Some(table) if matches!(self.kernel.values[table].def, ValueDef::Table(_)) => {
                let (None, Some([Range::At(index)])) = (slot, ranges.as_deref()) else {
                    let d =
                        Diagnostic::error(codes::BAD_TABLE, span, format!("`{name}` is a table, which has no windows"));
                    return Err(self.error(d.with_note(format!(
                        "its elements are read one by one: `{name}[x]`, of a tile or a scalar `x`"
                    ))));
                };
                self.node(ExprData::Lookup { table, index: *index }, span)
            }
            Some(base) => {
                let window = View { base, slot, ranges: ranges.unwrap_or_default() };
                let e = self.node(ExprData::View(window), span)?;
                if said.iter().any(RangeNote::is_more) {
                    self.window_notes.insert(e, said);
                }
                Ok(e)
            }
        }
    }

    /// `i`, `i..`, `i..e`, `..e`, `..`, `i..+n`, `_`, each of them but the first and the last with `step n`.
    fn range(&mut self) -> Parsed<(Range, RangeNote)> {
        let here = self.span();
        if self.eat_word(REPEATS) {
            let start = self.node(ExprData::Int(0), here)?;
            return Ok((Range::From { start, end: None }, RangeNote { repeats: true, ..RangeNote::default() }));
        }
        let start = if self.at_sign("..") || self.at_sign(":") {
            self.node(ExprData::Int(0), Span { start: here.start, end: here.start })?
        } else {
            self.expr()?
        };
        if self.at_sign(":") {
            let extent = self.slice(start, here)?;
            return Ok((Range::From { start, end: None }, RangeNote { extent, ..RangeNote::default() }));
        }
        let dots = self.span();
        if !self.eat_sign("..") {
            return Ok((Range::At(start), RangeNote::default()));
        }
        if self.at_sign(",") || self.at_sign("]") {
            self.spot(FixLocation::Dots, dots);
        }
        let plus = self.span();
        if self.eat_sign("+") {
            let from = self.span();
            let extent = Some(self.expr()?);
            self.spot(FixLocation::Count, self.since(from));
            let written = Some(self.since(plus));
            let step = self.step_of_range()?;
            return Ok((Range::From { start, end: None }, RangeNote { extent, written, step, ..RangeNote::default() }));
        }
        let open = self.at_sign(",") || self.at_sign("]") || self.at_step();
        let alone = open.then(|| self.since(here));
        let end = if open { None } else { Some(self.expr()?) };
        let step = self.step_of_range()?;
        Ok((Range::From { start, end }, RangeNote { step, open: alone, ..RangeNote::default() }))
    }

    /// At `step n`: what follows a name is not an expression. `step -1` is a difference if `step` is a name.
    fn at_step(&self) -> bool {
        let begins = match self.peek_at(1) {
            Tok::Int(_) | Tok::Word(_) | Tok::Sign("(") => true,
            Tok::Sign("-") => !self.names.visible.contains_key("step"),
            _ => false,
        };
        self.at_word("step") && begins
    }

    fn step_of_range(&mut self) -> Parsed<Option<Expr>> {
        if !self.at_step() {
            return Ok(None);
        }
        self.bump();
        let from = self.span();
        let step = self.expr()?;
        if let Some(x) = self.kernel.as_int(step).filter(|&x| x < 1) {
            let d =
                Diagnostic::error(codes::BAD_VIEW, self.since(from), format!("a step must be at least 1, found {x}"));
            let note = "windows go upward; to go down, give each element's index: a tile of integers, such as `N - 1 - iota(x, 0)`";
            self.error(d.with_note(note));
        }
        Ok(Some(step))
    }
}

fn float(negative: bool, x: f64) -> ExprData {
    ExprData::Float(if negative { -x } else { x }.to_bits())
}
