//! Kernel headers: compile-time parameters, parameters, `where`, `grid`, `schedule`.

use crate::accumulators;
use crate::codes;
use crate::diag::{Diagnostic, Span};
use crate::entities::Expr;
use crate::fix_locations::FixLocation;
use crate::index_values;
use crate::kernel::{ConstKind, ConstParam, ConstValue, ExprData, GridAxis, Schedule, ValueDef};
use crate::lexer::{Tok, clip, is_reserved};
use crate::loop_ends;
use crate::parser::persistent_axes::PersistentAxis;
use crate::parser::reader::{Parsed, Parser};
use crate::parser::{
    aliases, broadcast, broadcast_vectors, dimension_order, elements, fill_values, gathered_registers, implicit_tiles,
    inferred_extents, loop_conditions, old_values, output_operands, persistent_axes, strided,
};
use crate::target::Target;
use crate::types::{Elem, Order, TableTy};

/// Longest kernel name: it becomes the entry name in PTX.
const MAX_KERNEL_NAME: usize = 64;

/// The words that begin clauses of a kernel's header.
pub const HEADER_CLAUSES: &[&str] = &["where", "grid", "schedule", "require"];

/// The items of a schedule.
pub(crate) const SCHEDULE_ITEMS: &[&str] = &[
    "target",
    "threads",
    "warp_tile",
    "k_warps",
    "ctas",
    "stages",
    "raster",
    "promote",
    "pending",
    "ping_pong",
    "min_ctas",
    "align_rows",
    "stage_stores",
    "stream_k",
    "split_k",
    "queue",
    "overlap",
    "cluster",
];

impl<'s> Parser<'s, '_> {
    /// `kernel NAME<..>(..) clauses { .. }`.
    pub(super) fn kernel(&mut self) -> Parsed<()> {
        // A kernel that broke off leaves its own.
        self.walks.clear();
        self.names.reset();
        self.heights.clear();
        self.window_notes.clear();
        self.n_stmts = 0;
        self.hopeless = None;
        let before = self.sink.error_count();
        self.expect_word("kernel")?;
        let (name, span) = self.name_of_kernel("the name of the kernel")?;
        if name.len() > MAX_KERNEL_NAME {
            let message =
                format!("the kernel's name has {} characters, at most {MAX_KERNEL_NAME} are allowed", name.len());
            self.report(codes::BAD_CHARACTER, span, message);
        }
        self.kernel.name = name.to_owned();
        self.kernel.name_span = span;
        if self.eat_sign("<") {
            self.recovering_list(">", |p| p.compile_time_param());
            self.list_end(">")?;
        }
        self.expect_sign("(")?;
        if !self.at_sign(")") {
            self.recovering_list(")", |p| p.param());
        }
        self.list_end(")")?;
        self.names.incomplete = self.sink.error_count() > before;
        if let Err(reported) = self.clauses() {
            self.skip_to(|p| p.at_sign("{"));
            if !self.at_sign("{") {
                return Err(reported);
            }
        }
        let body = self.block()?;
        let stmts = std::mem::take(&mut self.kernel.blocks[body]);
        let body = self.kernel.body;
        self.kernel.blocks[body] = stmts;
        let mut said = std::mem::take(&mut self.window_notes);
        let walks = std::mem::take(&mut self.walks);
        if self.sink.error_count() == before && !self.text_alone {
            self.check_sizes();
            self.kernel.have_numbers_count(true);
            persistent_axes::write_out(&mut self.kernel, walks);
            dimension_order::write_out(&mut self.kernel, &said);
            aliases::write_out(&mut self.kernel, &mut said);
            loop_conditions::write_out(&mut self.kernel, &mut said);
            elements::write_out(&mut self.kernel, &said);
            let mut wrong = broadcast_vectors::write_out(&mut self.kernel, &mut said);
            let (missing, failed) = inferred_extents::check(&self.kernel, &said);
            wrong.extend(missing);
            wrong.extend(broadcast::write_out(&mut self.kernel, &mut said));
            wrong.extend(implicit_tiles::write_out(&mut self.kernel, &mut said, &failed));
            // Named reductions have extents now, so expressions that use them are written out, too.
            if wrong.is_empty() {
                wrong.extend(broadcast::write_out(&mut self.kernel, &mut said));
            }
            if wrong.is_empty() {
                output_operands::write_out(&mut self.kernel, &mut said);
            }
            wrong.extend(strided::write_out(&mut self.kernel, &said));
            wrong.into_iter().for_each(|d| {
                self.error(d);
            });
            gathered_registers::write_out(&mut self.kernel);
            fill_values::write_out(&mut self.kernel);
            old_values::write_out(&mut self.kernel);
            self.kernel.have_numbers_count(false);
            index_values::write_out(&mut self.kernel);
            loop_ends::write_out(&mut self.kernel);
            accumulators::write_out(&mut self.kernel);
        }
        Ok(())
    }

    /// `item (, item)*` up to `close`; a bad item is skipped.
    fn recovering_list(&mut self, close: &'static str, mut item: impl FnMut(&mut Self) -> Parsed<()>) {
        loop {
            if item(self).is_err() {
                self.skip_to(|p| p.at_next_item() || p.at_list_end(close) || p.at_sign("{"));
            }
            if !self.eat_sign(",") {
                return;
            }
        }
    }

    /// At a comma before what looks like a declaration.
    fn at_next_item(&self) -> bool {
        self.at_sign(",") && matches!(self.peek_at(1), Tok::Word(_)) && matches!(self.peek_at(2), Tok::Sign(":" | "="))
    }

    /// At the `close` of a parameter list, going by what follows.
    fn at_list_end(&self, close: &str) -> bool {
        self.at_sign(close)
            && match self.peek_at(1) {
                Tok::Word(word) => HEADER_CLAUSES.contains(&word),
                next => matches!(next, Tok::Sign("{" | "(")),
            }
    }

    /// `T: f16 | bf16 = f16`, `T: type`, `LA: layout = row`, `BM = 128`, `BM: int`, `BM = auto`, `BQ = auto promised`.
    fn compile_time_param(&mut self) -> Parsed<()> {
        let (name, span) = self.name("the name of a compile-time parameter")?;
        let param = self.const_kind_and_default();
        if param.is_err() {
            self.poison(name, span);
        }
        let value = self.declare(name, span, ValueDef::ConstParam(param?));
        self.kernel.const_params.push(value);
        Ok(())
    }

    fn const_kind_and_default(&mut self) -> Parsed<ConstParam> {
        let kind = if self.eat_sign(":") {
            let at = self.span();
            let kind = self.const_kind()?;
            self.spot(FixLocation::Kind, self.since(at));
            kind
        } else if self.at_sign("=") {
            ConstKind::Int
        } else {
            return Err(self.expected_with_note(
                "`=` or `:`",
                "a compile-time parameter has a default or a kind: `BM = 128`, `BM = auto`, `BM: int`, `T: f16 | bf16`, `LA: layout`",
            ));
        };
        let kind_end = self.last_span().end;
        if !self.eat_sign("=") {
            return Ok(ConstParam { kind, default: None });
        }
        let start = self.span();
        if self.eat_word("auto") {
            if kind != ConstKind::Int {
                let d = Diagnostic::error(codes::BAD_DEFAULT, start, "only integers can be `auto`");
                let first = match &kind {
                    ConstKind::Elem(elems) => elems.first().map_or("f32", |e| e.name()),
                    _ => Order::Row.name(),
                };
                let d = d.with_note("types and layouts decide what a kernel computes; name one as the default");
                self.error(d.with_fix(start, first));
            }
            let promised = self.eat_word("promised");
            return Ok(ConstParam { kind, default: Some(ConstValue::Auto { promised }) });
        }
        let default = match &kind {
            _ if self.names_earlier_param() => self.earlier_param(&kind)?,
            ConstKind::Int => ConstValue::Int(self.signed_int()?),
            ConstKind::Elem(_) => ConstValue::Elem(self.elem()?),
            ConstKind::Order => match self.order_word() {
                Some(order) => ConstValue::Order(order),
                None => return Err(self.expected("`row` or `col`")),
            },
        };
        if let (ConstKind::Elem(allowed), ConstValue::Elem(elem)) = (&kind, default)
            && !allowed.is_empty()
            && !allowed.contains(&elem)
        {
            let message = format!("the default `{}` is not one of the types allowed here", elem.name());
            self.error(
                Diagnostic::error(codes::BAD_DEFAULT, start, message)
                    .with_note(format!("add it: `| {}`, or choose another default", elem.name()))
                    .with_fix(Span { start: kind_end, end: kind_end }, format!(" | {}", elem.name())),
            );
        }
        Ok(ConstParam { kind, default: Some(default) })
    }

    /// At the name of a compile-time parameter.
    fn names_earlier_param(&self) -> bool {
        matches!(self.peek(), Tok::Word(word) if !crate::lexer::is_reserved(word) && self.names_value(word))
    }

    /// The name of an earlier compile-time parameter, as the default of one of this kind.
    fn earlier_param(&mut self, kind: &ConstKind) -> Parsed<ConstValue> {
        let wanted = match kind {
            ConstKind::Int => "an integer",
            ConstKind::Elem(_) => "an element type",
            ConstKind::Order => "a layout",
        };
        let (name, span) = self.name("the name of an earlier parameter")?;
        self.const_param(name, span, wanted).map(ConstValue::Same)
    }

    fn const_kind(&mut self) -> Parsed<ConstKind> {
        if self.eat_word("int") {
            return Ok(ConstKind::Int);
        }
        if self.eat_word("type") {
            return Ok(ConstKind::Elem(Vec::new()));
        }
        if self.eat_word("layout") {
            return Ok(ConstKind::Order);
        }
        if !matches!(self.peek(), Tok::Word(_)) {
            return Err(self.expected("`int`, `type`, `layout` or element types"));
        }
        let mut elems: Vec<Elem> = Vec::new();
        loop {
            let span = self.span();
            let elem = self.elem()?;
            if elems.contains(&elem) {
                self.report(codes::DUPLICATE, span, format!("the type `{}` is listed twice", elem.name()));
            } else {
                elems.push(elem);
            }
            if !self.eat_sign("|") {
                return Ok(ConstKind::Elem(elems));
            }
        }
    }

    /// An integer literal, possibly negated.
    fn signed_int(&mut self) -> Parsed<i64> {
        let e = self.literal()?;
        match self.kernel.exprs[e] {
            ExprData::Int(x) => Ok(x),
            _ => {
                let span = self.kernel.expr_spans[e];
                Err(self.report(codes::EXPECTED, span, "expected an integer literal, found a fraction"))
            }
        }
    }

    /// `A: gmem T[..] ..` or `alpha: f32 = 1.0`.
    fn param(&mut self) -> Parsed<()> {
        let (name, span) = self.name("the name of a parameter")?;
        let def = self.param_def(name, span);
        if def.is_err() {
            self.poison(name, span);
        }
        let value = self.declare(name, span, def?);
        self.kernel.params.push(value);
        Ok(())
    }

    fn param_def(&mut self, name: &str, span: Span) -> Parsed<ValueDef> {
        self.expect_sign(":")?;
        if self.eat_word("gmem") {
            return self.tensor(name, span).map(ValueDef::Tensor);
        }
        if self.eat_word("const") {
            return self.table().map(ValueDef::Table);
        }
        if self.eat_word("dsmem") {
            return self.cluster_memory().map(ValueDef::Tensor);
        }
        if self.at_word("smem") || self.at_word("reg") || self.at_word("channel") {
            return Err(self.expected_with_note(
                "`gmem`, `dsmem`, `const` or an element type",
                "parameters are tensors in global memory (`gmem`) or of a cluster (`dsmem`), tables or scalars; declare buffers in the body",
            ));
        }
        if let Some(place) = self.misspelled_place() {
            return match place {
                "gmem" => self.tensor(name, span).map(ValueDef::Tensor),
                "dsmem" => self.cluster_memory().map(ValueDef::Tensor),
                _ => self.table().map(ValueDef::Table),
            };
        }
        let at = self.span();
        let elem = self.elem_ref()?;
        if self.at_sign("[") || self.at_sign("*") {
            let d =
                self.expected_here("`,`, `=` or `)`").with_note("a tensor parameter is written `A: gmem f16[M, K]`");
            let d = if self.at_sign("[") { d.with_fix(Span { end: at.start, ..at }, "gmem ") } else { d };
            return Err(self.error(d));
        }
        let default = if self.eat_sign("=") { Some(self.literal()?) } else { None };
        Ok(ValueDef::Scalar { elem, default })
    }

    /// Takes a misspelled `gmem`, `dsmem` or `const` in front of a type, and suggests the right one.
    fn misspelled_place(&mut self) -> Option<&'static str> {
        let Tok::Word(word) = self.peek() else { return None };
        let is_type = Elem::from_name(word).is_some() || is_reserved(word) || self.names_value(word);
        if is_type || !matches!(self.peek_at(1), Tok::Word(_)) {
            return None;
        }
        let place = self.near_word(word, &["gmem", "dsmem", "const"])?;
        let message = format!("expected `gmem`, `dsmem`, `const` or an element type, found `{}`", clip(word));
        self.error(Diagnostic::error(codes::EXPECTED, self.span(), message).with_spelling(place));
        self.bump();
        Some(place)
    }

    /// `f32[4] = (0.0, 0.5, 1.0, 2.0)`: a table in constant memory.
    fn table(&mut self) -> Parsed<TableTy> {
        let elem = self.elem_ref()?;
        self.expect_sign("[")?;
        let extent = self.span();
        let elements = self.small_int("the number of elements of the table")?;
        self.list_end("]")?;
        if !(self.eat_sign("=") && self.eat_sign("(")) {
            let note = "a table has its numbers with it: `codes: const f32[4] = (0.0, 0.5, 1.0, 2.0)`";
            return Err(self.expected_with_note("`= (`", note));
        }
        let values = self.comma_list(|p| {
            let at = p.span();
            let number = p.number("a table is made of numbers")?;
            p.spot(FixLocation::Element, p.since(at));
            Ok(number)
        })?;
        self.list_end(")")?;
        if values.len() != elements as usize {
            let message = format!("a table of {elements} elements has {} numbers", values.len());
            let d = Diagnostic::error(codes::BAD_TABLE, extent, message);
            self.error(d.with_note("write as many numbers as the table has elements"));
        }
        Ok(TableTy { elem, values })
    }

    /// `where .. grid .. schedule .. require ..` in any order. The host evaluates what they say: grid indices are visible after them.
    fn clauses(&mut self) -> Parsed<()> {
        let mut wrong = Ok(());
        let mut seen: Vec<(&str, Span)> = Vec::new();
        let mut axes = Vec::new();
        loop {
            let next = self.peek();
            let Some(word) = HEADER_CLAUSES.iter().copied().find(|&word| next == Tok::Word(word)) else {
                if !self.at_sign("{") {
                    wrong = Err(self.expected(&format!("`{}` or `{{`", HEADER_CLAUSES.join("`, `"))));
                    // It may have been meant as a grid.
                    self.names.incomplete = true;
                    self.skip_to(|p| p.at_sign("{") || p.at_clause());
                    if self.at_clause() {
                        continue;
                    }
                }
                for (at, (name, span, extent, blocks)) in axes.into_iter().enumerate() {
                    match blocks {
                        None => {
                            let index = self.declare(name, span, ValueDef::Grid);
                            self.kernel.grid.push(GridAxis { index, extent });
                        }
                        Some(blocks) => {
                            let index = self.declare(name, span, ValueDef::Loop);
                            self.walks.push((at, PersistentAxis { index, end: extent, blocks }));
                        }
                    }
                }
                return wrong;
            };
            let blanks = self.blanks();
            let span = self.bump().span;
            let read = match word {
                "where" => self.comma_list(|p| p.expr()).map(|requires| self.kernel.requires.extend(requires)),
                "require" => self.demands().map(|demands| self.kernel.demands = demands),
                "grid" => self.grid().map(|own| axes.extend(own)),
                _ => self.schedule().map(|schedule| {
                    self.kernel.schedule = Schedule { span: self.since(span), ..schedule };
                }),
            };
            if let Err(reported) = read {
                wrong = Err(reported);
                self.names.incomplete |= word == "grid";
                self.skip_to(|p| p.at_sign("{") || word != "schedule" && p.at_clause());
                // The end of the items.
                if word == "schedule" {
                    self.eat_sign("}");
                }
            }
            self.once(&mut seen, word, (blanks, span));
        }
    }

    /// The place of a clause that has been read, with the blanks in front of it.
    fn clause(&self, blanks: u32) -> Span {
        Span { start: blanks, end: self.last_span().end }
    }

    /// Notes what has been read, with the blanks in front of it, if it was there.
    pub(super) fn noted(&mut self, spot: FixLocation, blanks: u32, is_there: bool) {
        if is_there {
            let clause = self.clause(blanks);
            self.spot(spot, clause);
        }
    }

    /// Where the blanks begin that are in front of the next token, in its line.
    pub(super) fn blanks(&self) -> u32 {
        let front = &self.source[..self.span().start as usize];
        front.trim_end_matches([' ', '\t']).len() as u32
    }

    /// Notes a word that was read with what belongs to it; reports it if it was seen before.
    pub(super) fn once<'w>(&mut self, seen: &mut Vec<(&'w str, Span)>, word: &'w str, (blanks, span): (u32, Span)) {
        let clause = self.clause(blanks);
        self.kernel.clauses.push((word.to_owned(), clause));
        match seen.iter().find(|(w, _)| *w == word) {
            Some(&(_, first)) => {
                self.error(
                    Diagnostic::error(codes::REPEATED, span, format!("`{word}` is written twice"))
                        .with_place(first, "first written here")
                        .with_note("keep one of them")
                        .with_left_out(Some(clause)),
                );
            }
            None => seen.push((word, span)),
        }
    }

    /// `(i: e, ..)`.
    /// `(i: ceildiv(M, 64), t: tiles[0] over 132)`.
    #[expect(clippy::type_complexity, reason = "an axis as it is written")]
    fn grid(&mut self) -> Parsed<Vec<(&'s str, Span, Expr, Option<Expr>)>> {
        self.expect_sign("(")?;
        let mut axis = 0;
        self.grid_at = Some(self.depth);
        let axes = self.comma_list(|p| {
            let (name, span) = p.name("the name of a grid index")?;
            axis += 1;
            if !p.at_sign(":") {
                let index = ["i", "j", "k"].get(axis - 1).copied().unwrap_or("l");
                let d = p.expected_here("`:`").with_note("a grid index has a name and an extent: `grid (i: M, j: N)`");
                if p.at_sign("=") {
                    let sign = p.span();
                    return Err(p.error(d.with_fix(sign, ":")));
                }
                return Err(p.error(d.with_fix(Span { start: span.start, end: span.start }, format!("{index}: "))));
            }
            p.bump();
            let extent = p.expr()?;
            let blocks = if p.eat_word("over") { Some(p.expr()?) } else { None };
            Ok((name, span, extent, blocks))
        });
        self.grid_at = None;
        let axes = axes?;
        if self.at_sign("{") || self.at_clause() {
            self.unclosed();
            return Ok(axes);
        }
        self.list_end(")")?;
        Ok(axes)
    }

    /// `{ target sm_70 threads 128 .. }`.
    fn schedule(&mut self) -> Parsed<Schedule> {
        let mut s = Schedule::default();
        let mut seen = Vec::new();
        self.expect_sign("{")?;
        while !self.eat_sign("}") {
            let Tok::Word(word) = self.peek() else {
                return Err(self.expected("a schedule item or `}`"));
            };
            let blanks = self.blanks();
            let span = self.bump().span;
            match word {
                "target" => s.target = Some(self.target()?),
                "k_warps" => s.k_warps = Some(self.expr()?),
                "threads" => s.threads = Some(self.expr()?),
                "ctas" => s.ctas = Some(self.expr()?),
                "stages" => s.stages = Some(self.expr()?),
                "raster" => s.raster = Some(self.expr()?),
                "promote" => s.promote = Some(self.expr()?),
                "pending" => s.pending = Some(self.expr()?),
                "ping_pong" => s.ping_pong = Some(self.expr()?),
                "min_ctas" => s.min_ctas = Some(self.expr()?),
                "align_rows" => s.align_rows = Some(self.expr()?),
                "stage_stores" => s.stage_stores = Some(self.expr()?),
                "stream_k" => s.stream_k = Some(self.expr()?),
                "split_k" => s.split_k = Some(self.expr()?),
                "queue" => s.queue = Some(self.expr()?),
                "overlap" => s.overlap = Some(self.expr()?),
                "warp_tile" => s.warp_tile = Some(self.pair()?),
                "cluster" => {
                    self.expect_sign("(")?;
                    s.cluster = self.comma_list(|p| p.expr())?;
                    self.expect_sign(")")?;
                }
                _ => {
                    let message = format!("no schedule item is called `{}`", clip(word));
                    let mut d = Diagnostic::error(codes::UNKNOWN_ITEM, span, message);
                    if ["warps", "num_warps"].contains(&word) {
                        d = d.with_note("a block of 4 warps is `threads 128`");
                    } else if let Some(near) = self.near_word(word, SCHEDULE_ITEMS) {
                        d = d.with_spelling(near);
                    }
                    return Err(self.error(d.with_note(format!("the items are `{}`", SCHEDULE_ITEMS.join("`, `")))));
                }
            }
            self.once(&mut seen, word, (blanks, span));
        }
        Ok(s)
    }

    fn pair(&mut self) -> Parsed<(Expr, Expr)> {
        self.expect_sign("(")?;
        let a = self.expr()?;
        self.expect_sign(",")?;
        let b = self.expr()?;
        self.expect_sign(")")?;
        Ok((a, b))
    }

    fn target(&mut self) -> Parsed<Target> {
        let (name, span) = self.name("a target")?;
        Target::from_name(name).ok_or_else(|| {
            let all: Vec<&str> = Target::ALL.iter().map(|t| t.name()).collect();
            let message = format!("no target is called `{}`", clip(name));
            let d = self.near(Diagnostic::error(codes::UNKNOWN_TARGET, span, message), name, &all);
            self.error(d.with_note(format!("the targets are `{}`", all.join("`, `"))))
        })
    }
}
