//! Statements and blocks.

use crate::atomics::Combining;
use crate::attributes::HeldElements;
use crate::codes;
use crate::diag::{Diagnostic, Span};
use crate::entities::{Block, Expr, Stmt, Value};
use crate::fix_locations::FixLocation;
use crate::kernel::{ChannelOp, CopyAttrs, ENDLESS, ExprData, Mechanism, Next, SignalOp, StmtData, StmtPlan, ValueDef};
use crate::lexer::{Tok, clip, is_reserved};
use crate::parser::foreign_syntax;
use crate::parser::names::BEGINS;
use crate::parser::reader::{MAX_STMTS, Parsed, Parser, clause_position};
use crate::spelling;
use crate::types::{ArrivalCounts, Elem, Lanes, OrderedBarriers, Place};

/// Words that begin a statement.
pub(crate) const BEGINNINGS: &[&str] = &[
    "let", "var", "copy", "for", "while", "if", "role", "ordered", "barrier", "await", "signal", "acquire", "publish",
    "wait", "release",
];

/// The part of a loop between its variable and its body.
#[derive(Copy, Clone)]
struct ForHeader {
    /// Start, end, step.
    range: [Expr; 3],
    cond: Option<Expr>,
    next: Option<Next>,
    unroll: bool,
    recomputed: bool,
    lanes: Option<Lanes>,
}

impl Parser<'_, '_> {
    /// `{ statement* }` with a scope of its own.
    pub(super) fn block(&mut self) -> Parsed<Block> {
        self.nested(|p| p.scoped(|p| p.statements()))
    }

    fn statements(&mut self) -> Parsed<Block> {
        let open = self.span();
        self.marks.blocks.push(open.start);
        self.expect_sign("{")?;
        let mut stmts = Vec::new();
        while !self.eat_sign("}") {
            if self.peek() == Tok::End || self.at_word("kernel") {
                let d = self.expected_here("a statement or `}`").with_place(open, "this `{` is not closed");
                let reported = self.error(d);
                self.hopeless = Some(reported);
                return Err(reported);
            }
            let before = self.pos;
            if let Err(reported) = self.statement(&mut stmts) {
                if self.hopeless.is_some() {
                    return Err(reported);
                }
                if self.pos == before {
                    self.skip_one();
                }
                self.skip_to(|p| p.at_statement());
            }
        }
        Ok(self.kernel.block(stmts))
    }

    /// Skips a token, or the block it opens.
    fn skip_one(&mut self) {
        if self.at_sign("{") {
            let start = self.pos;
            self.skip_to(|p| p.pos > start);
        } else {
            self.bump();
        }
    }

    fn at_statement(&self) -> bool {
        match self.peek() {
            Tok::Word("copy") if self.pos > 0 && self.tokens[self.pos - 1].tok == Tok::Sign("=") => false,
            Tok::Word(word) if BEGINNINGS.contains(&word) => true,
            Tok::Word("fence") if self.peek_at(1) == Tok::Word("async") => true,
            Tok::Sign("@") => true,
            Tok::Word(word) => !is_reserved(word) && self.peek_at(1) == Tok::Sign("="),
            _ => false,
        }
    }

    pub(super) fn push(&mut self, stmts: &mut Vec<Stmt>, data: StmtData, start: Span) -> Stmt {
        let span = self.since(start);
        let stmt = self.kernel.stmt(data, span);
        stmts.push(stmt);
        stmt
    }

    /// `@(producer, stage 1, cycle 512)` in front of a statement.
    fn plan(&mut self) -> Parsed<StmtPlan> {
        let start = self.span();
        self.expect_sign("@")?;
        if !self.at_sign("(") {
            return Err(self.expected_with_note("`(`", "a product of tiles is written `acc = mma(a, b, acc)`"));
        }
        self.bump();
        let mut plan = StmtPlan::default();
        let mut seen: Vec<&str> = Vec::new();
        loop {
            let at = self.span();
            let Tok::Word(word @ ("producer" | "stage" | "cycle" | "ordered" | "open" | "ragged")) = self.peek() else {
                return Err(self.expected("`producer`, `stage`, `cycle`, `ordered`, `open` or `ragged`"));
            };
            if seen.contains(&word) {
                return Err(self.report(codes::REPEATED, at, format!("`{word}` is here twice")));
            }
            seen.push(word);
            self.bump();
            match word {
                "producer" => plan.producer = true,
                "ordered" => plan.ordered = true,
                "open" => plan.open = true,
                "ragged" => plan.ragged = true,
                "stage" => plan.stage = Some(self.small_int("a pipeline stage")?),
                _ => plan.cycle = Some(self.small_int("a number of clocks")?),
            }
            if !self.eat_sign(",") {
                break;
            }
        }
        self.expect_sign(")")?;
        if plan.stage.is_none() && plan.cycle.is_some() {
            let message = "a cycle belongs to a pipeline stage: write `stage 0` with it";
            return Err(self.report(codes::EXPECTED, self.since(start), message));
        }
        Ok(plan)
    }

    /// A statement with its schedule, if one is written in front of it.
    fn statement(&mut self, stmts: &mut Vec<Stmt>) -> Parsed<()> {
        self.marks.starts.push(self.span().start);
        if !self.at_sign("@") {
            return self.bare_statement(stmts);
        }
        let at = self.span();
        let plan = self.plan()?;
        self.spot(FixLocation::Plan, Span { end: self.span().start, ..at });
        let before = stmts.len();
        self.bare_statement(stmts)?;
        for &s in &stmts[before..] {
            self.kernel.plans[s] = plan;
        }
        Ok(())
    }

    fn bare_statement(&mut self, stmts: &mut Vec<Stmt>) -> Parsed<()> {
        let start = self.span();
        self.n_stmts += 1;
        if self.n_stmts > MAX_STMTS {
            let message = format!("the kernel has more than {MAX_STMTS} statements");
            let reported = self.report(codes::TOO_LARGE, start, message);
            self.hopeless = Some(reported);
            return Err(reported);
        }
        let Tok::Word(word) = self.peek() else {
            return Err(self.expected("a statement or `}`"));
        };
        let mut lanes = None;
        let data = match word {
            "let" => return self.let_stmt(stmts),
            "var" => return self.var_stmt(stmts),
            "copy" => {
                let data = self.copy()?;
                lanes = self.lanes();
                data
            }
            "for" => return self.for_stmt(stmts),
            "while" => return self.while_stmt(stmts),
            "if" => return self.if_stmt(stmts),
            "role" => return self.role(stmts),
            "ordered" => return self.ordered(stmts),
            "barrier" => {
                self.bump();
                StmtData::Barrier
            }
            "await" => {
                self.bump();
                let value = self.named("the accumulator, buffer or signals")?;
                if self.at_sign("[") {
                    let index = self.signal_index()?;
                    let data = StmtData::Signal { op: SignalOp::Await, signals: value, index };
                    self.push(stmts, data, start);
                    return Ok(());
                }
                self.expect_sign(",")?;
                let pending = self.small_int("a number of products or stores")?;
                let mut after = Vec::new();
                if self.eat_word("after") {
                    after = self.comma_list(|p| p.named("a register tile"))?;
                }
                lanes = self.lanes();
                StmtData::Await { value, pending, after }
            }
            "fence" if self.peek_at(1) == Tok::Word("async") => {
                self.bump();
                self.bump();
                StmtData::Fence
            }
            "signal" => {
                self.bump();
                let signals = self.named("signals")?;
                StmtData::Signal { op: SignalOp::Raise, signals, index: self.signal_index()? }
            }
            _ => match ChannelOp::ALL.iter().find(|op| op.token() == word) {
                Some(&op) => {
                    self.bump();
                    let channels = self.comma_list(|p| p.named("a channel"))?;
                    let mut pending = None;
                    if op == ChannelOp::Wait && self.peek() == Tok::Word("pending") {
                        self.bump();
                        pending = Some(self.small_int("a number of groups")?);
                    }
                    let mut expects = Vec::new();
                    if op == ChannelOp::Publish && self.at_word("expect") && matches!(self.peek_at(1), Tok::Int(_)) {
                        self.bump();
                        expects = self.comma_list(Self::bytes)?;
                    }
                    lanes = self.lanes();
                    let s = self.push(stmts, StmtData::Channel { op, channels, pending }, start);
                    self.kernel.expects[s] = expects;
                    self.kernel.lanes[s] = lanes;
                    return Ok(());
                }
                None if is_reserved(word) => return Err(self.expected("a statement or `}`")),
                None if self.is_misspelt_declaration(word) => return self.misspelt_declaration(word, stmts),
                None => {
                    let assigned = self.assign()?;
                    lanes = self.lanes();
                    assigned
                }
            },
        };
        let s = self.push(stmts, data, start);
        self.kernel.lanes[s] = lanes;
        Ok(())
    }

    /// Whether a statement is a `let` or `var`, but for its first word: nothing else has two words and then `=`.
    fn is_misspelt_declaration(&self, word: &str) -> bool {
        let Tok::Word(name) = self.peek_at(1) else { return false };
        self.peek_at(2) == Tok::Sign("=") && !is_reserved(name) && !self.names_value(name) && !self.names_value(word)
    }

    /// Reports it, and declares the name to avoid further errors.
    fn misspelt_declaration(&mut self, word: &str, stmts: &mut Vec<Stmt>) -> Parsed<()> {
        let registers = self.peek_at(3) == Tok::Word("reg");
        let [first, second] = if registers { ["var", "let"] } else { ["let", "var"] };
        let meant = [first, second].into_iter().find(|meant| spelling::one_edit_apart(word, meant));
        let d = self.expected_here("a statement or `}`");
        let d = Diagnostic { notes: Vec::new(), fix: None, ..d };
        let reported = self.error(match meant {
            Some(meant) => d.with_spelling(meant),
            None => d.with_note(BEGINS),
        });
        // Errors in the rest are reported as well.
        let _ = if meant.unwrap_or(first) == "var" { self.var_stmt(stmts) } else { self.let_stmt(stmts) };
        Err(reported)
    }

    /// `elected`, `spread` or `changing` after a statement. An assignment to a variable of that name is not such a
    /// mark.
    fn lanes(&mut self) -> Option<Lanes> {
        let (Tok::Word(word), false) = (self.peek(), self.peek_at(1) == Tok::Sign("=")) else { return None };
        let lanes = match word {
            "elected" => Lanes::Elected,
            "spread" => Lanes::Spread,
            "changing" => Lanes::Changing,
            _ => return None,
        };
        let blanks = self.blanks();
        self.bump();
        self.noted(FixLocation::Lanes, blanks, true);
        Some(lanes)
    }

    /// `[i]`.
    fn signal_index(&mut self) -> Parsed<Expr> {
        self.expect_sign("[")?;
        let index = self.expr()?;
        self.expect_sign("]")?;
        Ok(index)
    }

    /// The value of a name.
    fn named(&mut self, what: &str) -> Parsed<Value> {
        let (name, span) = self.name(what)?;
        self.resolve(name, span)
    }

    /// The equivalent of a statement of CUDA or C.
    fn of_another_language(&mut self, name: &str, span: Span) -> Option<Diagnostic> {
        if let Some(note) = foreign_syntax::of_statement(name) {
            let message = format!("no statement begins with `{name}`");
            return Some(Diagnostic::error(codes::EXPECTED, span, message).with_note(note));
        }
        let rest = &self.source[self.span().start as usize..];
        if let Some(op) = ["+", "-", "*", "/"].into_iter().find(|op| rest.starts_with(&format!("{op}="))) {
            let note = format!("there is no `{op}=`: write `{0} = {0} {op} ..`", clip(name));
            let d = self.expected_here(&format!("`=` after `{}`", clip(name))).with_note(note);
            let whole = Span { start: span.start, end: self.span().start + 2 };
            // For other operators the right side may need parentheses.
            return Some(if op == "+" { d.with_fix(whole, format!("{name} = {name} +")) } else { d });
        }
        if matches!(name, "__syncthreads" | "syncthreads" | "__syncwarp") {
            let d = self.expected_here(&format!("`=` after `{name}`"));
            let d = d.with_note("barriers are placed by the compiler, where they are needed, and proved: leave it out");
            let end = if rest.starts_with("()") { self.span().start + 2 } else { span.end };
            return Some(d.with_fix(Span { start: span.start, end }, ""));
        }
        None
    }

    fn assign(&mut self) -> Parsed<StmtData> {
        let (name, span) = self.name("a statement")?;
        if !self.at_sign("=") && !self.at_sign("==") {
            if let Some(d) = self.of_another_language(name, span) {
                return Err(self.error(d));
            }
            let note = if self.at_sign("[") || self.at_sign(".") {
                "to write part of a tile, or memory, use `copy expression -> place`"
            } else {
                "statements begin with `let`, `var`, `copy`, `for`, `if`, `role`, `barrier`, `await`, \
                 `signal`, `acquire`, `publish`, `wait` or `release`, or are assignments: `x = expression`"
            };
            let message = format!("`=` after `{}`", clip(name));
            let meant = self.near_word(name, BEGINNINGS);
            let d = self.expected_here(&message);
            return Err(self.error(match meant {
                Some(word) => d.with_note(format!("did you mean `{word}`?")).with_fix(span, word),
                None => d.with_note(clause_position(name).unwrap_or_else(|| note.to_owned())),
            }));
        }
        self.expect_equals()?;
        let dst = self.resolve_assigned(name, span);
        let src = self.expr()?;
        Ok(StmtData::Assign { dst: dst?, src })
    }

    /// `at 1024` after a buffer, `at 1024 stride 16384` after a channel. A statement about a variable `at` is not such
    /// a clause.
    fn place(&mut self, channel: bool) -> Parsed<Option<Place>> {
        if !(self.at_word("at") && matches!(self.peek_at(1), Tok::Int(_))) {
            return Ok(None);
        }
        let blanks = self.blanks();
        self.bump();
        let offset = self.bytes()?;
        if !channel {
            self.noted(FixLocation::Place, blanks, true);
            return Ok(Some(Place { offset, stride: None, barriers: None }));
        }
        if !self.eat_word("stride") {
            return Err(self.expected_with_note(
                "`stride`",
                "a channel has the offset of its first slot and the stride to the next: `at 0 stride 16384`",
            ));
        }
        let stride = Some(self.bytes()?);
        let barriers = if self.at_word("barriers") && matches!(self.peek_at(1), Tok::Int(_)) {
            self.bump();
            Some(self.bytes()?)
        } else {
            None
        };
        self.noted(FixLocation::Place, blanks, true);
        Ok(Some(Place { offset, stride, barriers }))
    }

    /// `full 1 empty 2` after the slots of a channel.
    fn handover(&mut self) -> Parsed<Option<ArrivalCounts>> {
        if !(self.at_word("full") && matches!(self.peek_at(1), Tok::Int(_))) {
            return Ok(None);
        }
        self.bump();
        let full = self.small_int("a number of arrivals")?;
        if !self.eat_word("empty") {
            return Err(self.expected_with_note(
                "`empty`",
                "a slot has two barriers, and the arrivals at both are said: `full 1 empty 2`",
            ));
        }
        Ok(Some(ArrivalCounts { full, empty: self.small_int("a number of arrivals")? }))
    }

    /// `ordered { .. }`, `ordered arrivals 4 at 65600 { .. }`.
    fn ordered(&mut self, stmts: &mut Vec<Stmt>) -> Parsed<()> {
        let start = self.bump().span;
        let turns = self.turns();
        let (turns, body) = self.body_after(turns)?;
        let stmt = self.push(stmts, StmtData::Ordered { body }, start);
        self.kernel.ordered[stmt] = turns;
        Ok(())
    }

    fn turns(&mut self) -> Parsed<Option<OrderedBarriers>> {
        if !self.eat_word("arrivals") {
            return Ok(None);
        }
        let arrivals = self.small_int("a number of arrivals")?;
        let at = if self.eat_word("at") { Some(self.bytes()?) } else { None };
        Ok(Some(OrderedBarriers { arrivals, at }))
    }

    /// A number of bytes.
    fn bytes(&mut self) -> Parsed<u64> {
        Ok(u64::from(self.small_int("a number of bytes")?))
    }

    /// `let x = e`, `let a = smem ..`, `let a = channel ..`, `let a = reg .. = copy ..`.
    fn let_stmt(&mut self, stmts: &mut Vec<Stmt>) -> Parsed<()> {
        let start = self.bump().span;
        if self.at_sign("(") {
            return self.let_components(stmts, start);
        }
        let (name, span) = self.name("a name to declare")?;
        let result = self.let_rest(stmts, start, name, span);
        if result.is_err() {
            self.poison(name, span);
        }
        result
    }

    fn let_rest(&mut self, stmts: &mut Vec<Stmt>, start: Span, name: &str, span: Span) -> Parsed<()> {
        if self.at_sign(":") {
            let note = "the type follows from the value: `let y = x`, or converted `let y = cast<f32>(x)`";
            return Err(self.expected_with_note("`=`", note));
        }
        self.expect_equals()?;
        if self.eat_word("smem") {
            let tile = self.smem_tile()?;
            let (mut over, blanks) = (Vec::new(), self.blanks());
            if self.eat_word("over") {
                over = self.comma_list(|p| p.named("a buffer or a channel"))?;
            }
            self.noted(FixLocation::Over, blanks, !over.is_empty());
            let place = self.place(false)?;
            let value = self.declare(name, span, ValueDef::Smem(tile));
            self.kernel.shared_places[value] = place;
            self.push(stmts, StmtData::Alloc { value, over }, start);
        } else if self.eat_word("channel") {
            let tile = self.smem_tile()?;
            if !self.eat_word("slots") {
                return Err(self.expected_with_note("`slots`", "a channel says how many slots it has: `slots 2`"));
            }
            let slots = self.expr()?;
            let handover = self.handover()?;
            let place = self.place(true)?;
            let value = self.declare(name, span, ValueDef::Channel { tile, slots });
            self.kernel.handovers[value] = handover;
            self.kernel.shared_places[value] = place;
            self.push(stmts, StmtData::Alloc { value, over: Vec::new() }, start);
        } else if self.eat_word("reg") {
            let tile = self.reg_tile()?;
            if !(self.at_sign("=") && self.peek_at(1) == Tok::Word("copy")) {
                let note = "a register tile that changes is declared with `var`; `let x = reg .. = copy ..` reads one from memory";
                let d = self.expected_here("`= copy`").with_note(note);
                return Err(self.error(d.with_fix(start, "var")));
            }
            self.bump();
            return self.var_from_copy(stmts, start, name, span, ValueDef::Var(tile));
        } else {
            let init = if self.at_combine() { self.combine()? } else { self.expr()? };
            let value = self.declare(name, span, ValueDef::Let);
            self.push(stmts, StmtData::Let { value, init }, start);
        }
        Ok(())
    }

    /// `var x = reg T[..] [= e]`.
    fn var_stmt(&mut self, stmts: &mut Vec<Stmt>) -> Parsed<()> {
        let start = self.bump().span;
        let (name, span) = self.name("a name to declare")?;
        let result = self.var_rest(stmts, start, name, span);
        if result.is_err() {
            self.poison(name, span);
        }
        result
    }

    fn var_rest(&mut self, stmts: &mut Vec<Stmt>, start: Span, name: &str, span: Span) -> Parsed<()> {
        self.expect_equals()?;
        if !self.eat_word("reg") {
            let note = "`var` declares register tiles: `var acc = reg f32[64, 64] = 0.0`, `var x = reg i32[] = 0`; \
                        use `let` for values that do not change and for buffers";
            let d = self.expected_here("`reg`");
            return Err(self.error(match (self.peek(), self.peek_at(1)) {
                // No value is two words: the first is `reg`, misspelt.
                (Tok::Word(word), Tok::Word(_)) if !is_reserved(word) => {
                    Diagnostic { notes: Vec::new(), ..d }.with_spelling("reg")
                }
                (Tok::Word(word), Tok::Sign("[")) if Elem::from_name(word).is_some() => {
                    let front = Span { end: d.span.start, ..d.span };
                    d.with_note(note).with_fix(front, "reg ")
                }
                _ => d.with_note(note).with_fix(start, "let"),
            }));
        }
        let tile = self.reg_tile()?;
        if !self.eat_sign("=") {
            let value = self.declare(name, span, ValueDef::Var(tile));
            self.push(stmts, StmtData::Var { value, init: None }, start);
            return Ok(());
        }
        if self.at_word("copy") {
            return self.var_from_copy(stmts, start, name, span, ValueDef::Var(tile));
        }
        let init = Some(self.expr()?);
        let value = self.declare(name, span, ValueDef::Var(tile));
        self.push(stmts, StmtData::Var { value, init }, start);
        Ok(())
    }

    /// `copy e attrs` as an initialiser: a declaration and a copy.
    fn var_from_copy(
        &mut self,
        stmts: &mut Vec<Stmt>,
        start: Span,
        name: &str,
        span: Span,
        def: ValueDef,
    ) -> Parsed<()> {
        let at = self.bump().span;
        let src = self.expr()?;
        let attrs = self.copy_attrs()?;
        let value = self.declare(name, span, def);
        self.push(stmts, StmtData::Var { value, init: None }, start);
        let dst = self.node(ExprData::Ref(value), span)?;
        self.push(stmts, StmtData::Copy { src, dst, attrs }, at);
        Ok(())
    }

    fn copy(&mut self) -> Parsed<StmtData> {
        self.bump();
        self.copied_at = self.depth + 1;
        let src = self.expr();
        self.copied_at = 0;
        let src = src?;
        self.expect_arrow()?;
        let here = self.span();
        let dst = self.expr()?;
        if !matches!(self.kernel.exprs[dst], ExprData::Ref(_) | ExprData::View(_)) {
            // The placeholder of an unknown name has been reported already.
            let stand_in = matches!(self.kernel.exprs[dst], ExprData::Int(0)) && self.sink.error_count() > 0;
            if !stand_in {
                self.error(
                    Diagnostic::error(
                        codes::EXPECTED,
                        self.since(here),
                        "a copy goes to a view or a tile, not a value",
                    )
                    .with_note("name a tensor view, a buffer, a channel slot or a register tile after `->`"),
                );
            }
        }
        let attrs = self.copy_attrs()?;
        Ok(StmtData::Copy { src, dst, attrs })
    }

    /// `[vec n] [unaligned n] [threads L] [check (dims)] [when c] [keep] [fill x] [matrix] [async] [tma] [multicast] [fragment] [prefetch] [add] [old x] [apart] [held x (offsets), ..]`.
    fn copy_attrs(&mut self) -> Parsed<CopyAttrs> {
        let mut attrs = CopyAttrs::default();
        let mut seen = Vec::new();
        while let Tok::Word(word) = self.peek()
            && (matches!(word, "vec" | "threads" | "check" | "when" | "keep" | "fill" | "multicast")
                // A variable of that name may be assigned to in the next statement.
                || (word == "apart" && self.peek_at(1) != Tok::Sign("="))
                || Mechanism::from_word(word).is_some()
                // So may one of these.
                || (matches!(word, "old" | "exchange" | "held") && self.peek_at(1) != Tok::Sign("="))
                || (word != "exchange" && Combining::from_word(word).is_some()))
        {
            let blanks = self.blanks();
            let span = self.bump().span;
            match word {
                "vec" => attrs.vec = Some(self.small_int("elements per access")?),
                "threads" => attrs.threads = Some(self.reg_layout()?),
                "check" => attrs.check = Some(self.dims()?),
                "keep" => attrs.keep = true,
                "apart" => attrs.apart = true,
                "fill" => attrs.fill = Some(self.number(
                    "`fill -inf`: elements outside the bounds read as this number; for a run-time value, use `select`",
                )?),
                "unaligned" => {
                    let aligned = self.small_int("elements that are aligned")?;
                    self.mechanism(&mut attrs, Mechanism::Words { aligned }, span)?;
                }
                "multicast" if attrs.is_tensor() => attrs.mechanism = Mechanism::Tensor { multicast: true },
                "multicast" => {
                    let d = Diagnostic::error(codes::BAD_COPY, span, "`multicast` is for TMA copies");
                    let front = Span { end: span.start, ..span };
                    return Err(self.error(d.with_note("write `tma multicast`").with_fix(front, "tma ")));
                }
                "when" => attrs.when = Some(self.expr()?),
                "old" => attrs.old = Some(self.expr()?),
                "held" => attrs.held = self.comma_list(Self::held)?,
                _ => match Mechanism::from_word(word) {
                    Some(mechanism) => self.mechanism(&mut attrs, mechanism, span)?,
                    None => attrs.reduce = Combining::from_word(word),
                },
            }
            self.once(&mut seen, word, (blanks, span));
        }
        Ok(attrs)
    }

    /// `x (-1, 0)`.
    fn held(&mut self) -> Parsed<HeldElements> {
        let span = self.span();
        let v = self.named("a register tile that has elements of the window")?;
        let tile = self.kernel.value_ref(v, span);
        self.expect_sign("(")?;
        let offset = if self.at_sign(")") { Vec::new() } else { self.comma_list(Self::signed)? };
        self.expect_sign(")")?;
        Ok(HeldElements { tile, offset })
    }

    /// `3` or `-3`.
    fn signed(&mut self) -> Parsed<i64> {
        let negative = self.eat_sign("-");
        let n = i64::from(self.small_int("how many elements further it is")?);
        Ok(if negative { -n } else { n })
    }

    /// Notes what moves the elements; a second word for it is refused.
    fn mechanism(&mut self, attrs: &mut CopyAttrs, mechanism: Mechanism, span: Span) -> Parsed<()> {
        if attrs.mechanism != Mechanism::Registers {
            let d = Diagnostic::error(codes::BAD_COPY, span, "a copy has one mechanism, and another is named before");
            let words = Mechanism::words();
            return Err(self.error(d.with_note(format!("{words} say what moves the elements: write one of them"))));
        }
        attrs.mechanism = mechanism;
        Ok(())
    }

    /// `(0, 1)` or `()`.
    fn dims(&mut self) -> Parsed<Vec<u32>> {
        self.expect_sign("(")?;
        let dims =
            if self.at_sign(")") { Vec::new() } else { self.comma_list(|p| p.small_int("the number of a dimension"))? };
        self.expect_sign(")")?;
        Ok(dims)
    }

    /// After a bad header of a block statement: reads the block all the same, then fails.
    fn body_after<T: Copy>(&mut self, header: Parsed<T>) -> Parsed<(T, Block)> {
        if header.is_err() {
            self.skip_to(|p| p.at_sign("{") || p.at_statement());
            if !self.at_sign("{") {
                header?;
            }
        }
        let body = self.block();
        Ok((header?, body?))
    }

    fn for_stmt(&mut self, stmts: &mut Vec<Stmt>) -> Parsed<()> {
        let begin = self.bump().span;
        if self.at_sign("(") {
            let d = self.expected_here("the name of a loop variable");
            let note = "a loop counts through a range: `for j in 0..N { .. }`, or `for j in 0..N step 32 { .. }`";
            let header: Parsed<()> = Err(self.error(d.with_note(note)));
            // The names that its header would declare are unknown in its body.
            self.names.incomplete = true;
            return self.body_after(header).map(drop);
        }
        let (name, span) = self.name("the name of a loop variable")?;
        let header = self.for_header(name);
        self.scoped(|p| {
            let var = p.declare(name, span, ValueDef::Loop);
            let (ForHeader { range: [start, end, step], cond, next, unroll, recomputed, lanes }, body) =
                p.body_after(header)?;
            let s = p.push(stmts, StmtData::For { var, start, end, step, cond, next, unroll, body }, begin);
            p.kernel.lanes[s] = lanes;
            p.kernel.recomputed[s] = recomputed;
            Ok(())
        })
    }

    /// `while c { .. }`: short for a loop without end that runs while `c` holds.
    fn while_stmt(&mut self, stmts: &mut Vec<Stmt>) -> Parsed<()> {
        let begin = self.bump().span;
        let header = self.expr();
        let (cond, body) = self.body_after(header)?;
        let var = self.kernel.value("turn", begin, ValueDef::Loop);
        let at = Span { start: begin.end, end: begin.end };
        let mut int = |x| self.node(ExprData::Int(x), at);
        let (start, end, step) = (int(0)?, int(ENDLESS)?, int(1)?);
        let data = StmtData::For { var, start, end, step, cond: Some(cond), next: None, unroll: false, body };
        self.push(stmts, data, begin);
        Ok(())
    }

    /// The range with its step, and the clauses of the loop: `while`, `unroll`, `recompute`, the threads.
    fn for_header(&mut self, name: &str) -> Parsed<ForHeader> {
        self.expect_word("in")?;
        let start = self.expr()?;
        if !self.eat_sign("..") {
            return Err(
                self.expected_with_note("`..`", "a loop runs over a range, the end excluded: `for k in 0..K step 32`")
            );
        }
        let end = match self.at_word("inf") {
            true => {
                let at = self.bump().span;
                self.node(ExprData::Int(ENDLESS), at)?
            }
            false => self.expr()?,
        };
        let step = if self.eat_word("step") {
            self.expr()?
        } else {
            let at = self.last_span().end;
            self.node(ExprData::Int(1), Span { start: at, end: at })?
        };
        let cond = if self.eat_word("while") {
            self.names.counted = Some(name.to_owned());
            let cond = self.expr();
            self.names.counted = None;
            Some(cond?)
        } else {
            None
        };
        let next = if self.eat_word("next") { Some(self.queue_clause()?) } else { None };
        let blanks = self.blanks();
        let unroll = self.eat_word("unroll");
        if unroll {
            self.once(&mut Vec::new(), "unroll", (blanks, self.last_span()));
        }
        let recomputed = self.eat_word("recompute");
        let lanes = self.lanes();
        if !self.at_sign("{") {
            return Err(self.expected_with_note(
                "`step`, `while`, `next`, `unroll` or `{`",
                "the step of the variable follows `step`: `for k in 0..K step 32 { .. }`",
            ));
        }
        Ok(ForHeader { range: [start, end, step], cond, next, unroll, recomputed, lanes })
    }

    /// `turns from drawn`: the channel and the counter of a loop whose numbers are drawn.
    fn queue_clause(&mut self) -> Parsed<Next> {
        let (name, span) = self.name("the name of a channel")?;
        let channel = self.resolve(name, span)?;
        self.expect_word("from")?;
        let (name, span) = self.name("the name of a counter")?;
        let counter = self.resolve(name, span)?;
        Ok(Next { channel, counter })
    }

    fn if_stmt(&mut self, stmts: &mut Vec<Stmt>) -> Parsed<()> {
        let start = self.bump().span;
        let header = self.expr().map(|cond| (cond, self.eat_word("recompute")));
        if header.is_ok() && self.at_word("else") {
            let note = "an expression chooses by `select(c, a, b)`: `a` where `c` holds, else `b`";
            return Err(self.expected_with_note("`{`", note));
        }
        let body = self.body_after(header);
        let otherwise = if self.eat_word("else") { Some(self.else_block()?) } else { None };
        let ((cond, recomputed), then) = body?;
        let s = self.push(stmts, StmtData::If { cond, then, otherwise }, start);
        self.kernel.recomputed[s] = recomputed;
        Ok(())
    }

    fn else_block(&mut self) -> Parsed<Block> {
        if !self.at_word("if") {
            return self.block();
        }
        self.nested(|p| {
            let mut stmts = Vec::new();
            p.statement(&mut stmts)?;
            Ok(p.kernel.block(stmts))
        })
    }

    fn role(&mut self, stmts: &mut Vec<Stmt>) -> Parsed<()> {
        let start = self.bump().span;
        let (name, _) = self.name("the name of a role")?;
        let header = self.role_header().map(|header| (header, self.lanes()));
        let (((warps, replicas, registers), lanes), body) = self.body_after(header)?;
        let s = self.push(stmts, StmtData::Role { name: name.to_owned(), warps, replicas, registers, body }, start);
        self.kernel.lanes[s] = lanes;
        Ok(())
    }

    fn role_header(&mut self) -> Parsed<(Expr, Option<Expr>, Option<Expr>)> {
        self.expect_word("warps")?;
        let warps = self.expr()?;
        let replicas = if self.eat_word("replicas") { Some(self.expr()?) } else { None };
        let registers = if self.eat_word("registers") { Some(self.expr()?) } else { None };
        Ok((warps, replicas, registers))
    }
}
