//! The state of the parser, and reading tokens.

use crate::codes;
use crate::diag::{Code, Diagnostic, Reported, Sink, Span};
use crate::entities::Expr;
use crate::functions;
use crate::kernel::{Kernel, Module};
use crate::lexer::{Tok, Token, clip, is_reserved, lex, reserved_words};
use crate::parser::persistent_axes::PersistentAxis;
use crate::parser::scope::Names;
use crate::parser::source_map::Marks;
use crate::parser::window_notes::{Notes, REPEATS};
use cranelift_entity::SecondaryMap;
use std::collections::BTreeMap;

/// Most constructs open at a time, and the greatest height of an expression tree.
pub const MAX_DEPTH: u8 = 64;

/// Words that begin clauses and attributes, and may be names elsewhere.
pub(crate) const CLAUSES: &[&str] = &[
    "sequence",
    "where",
    "grid",
    "schedule",
    "require",
    "step",
    "unroll",
    "recompute",
    "warps",
    "registers",
    "strides",
    "pointers",
    "scratch",
    "signals",
    "multiple",
    "align",
    "constant",
    "swizzle",
    "pending",
];

/// The position of a word of [`CLAUSES`], for a message about a misplaced one.
pub(super) fn clause_position(word: &str) -> Option<String> {
    Some(match word {
        "sequence" => "`sequence name { first, second }` is outside of kernels".to_owned(),
        "where" | "grid" | "schedule" | "require" => {
            format!("`{word}` is between the parameters of a kernel and its `{{`: first end the clause in front of it")
        }
        "strides" | "pointers" | "scratch" | "signals" | "multiple" | "align" | "constant" => {
            "after the shape of a tensor come, in this order: `row`, `col` or `strides (..)`; `pointers`; `scratch` or `signals`; `multiple n`; `align n`; `constant`".to_owned()
        }
        "step" | "unroll" => format!("`{word}` comes after the range of a loop: `for k in 0..K step 32 unroll {{ .. }}`"),
        "warps" | "registers" => {
            format!("`{word}` is in the head of a role: `role load warps 4 registers 40 {{ .. }}`")
        }
        "swizzle" => "`swizzle` belongs to a layout, on the line where it ends".to_owned(),
        _ => return None,
    })
}

/// A parsing result; the error was reported.
pub(super) type Parsed<T> = Result<T, Reported>;

pub(super) struct Parser<'s, 'd> {
    pub(super) source: &'s str,
    pub(super) tokens: Vec<Token<'s>>,
    pub(super) pos: usize,
    pub(super) sink: &'d mut Sink,
    /// Constructs now open.
    pub(super) depth: u8,
    /// The kernel being built.
    pub(super) kernel: Kernel,
    /// Heights of its expression trees.
    pub(super) heights: SecondaryMap<Expr, u8>,
    /// The notes on its windows.
    pub(super) window_notes: Notes,
    /// The axes of its grid that blocks walk along, and which axes they are.
    pub(super) walks: Vec<(usize, PersistentAxis)>,
    pub(super) names: Names<'s>,
    pub(super) n_stmts: usize,
    pub(super) marks: Marks,
    /// Suggestions made for unknown names.
    pub(super) suggestions: u32,
    /// The depth of what a copy reads; 0: none is read.
    pub(super) copied_at: u8,
    /// The depth at which the indices of a grid are read.
    pub(super) grid_at: Option<u8>,
    /// Only the text is parsed: names are not resolved, and nothing is built from it.
    pub(super) text_alone: bool,
    /// The rest of the kernel makes no sense: give up on it.
    pub(super) hopeless: Option<Reported>,
}

impl<'s, 'd> Parser<'s, 'd> {
    /// At the start of a text.
    pub(super) fn new(source: &'s str, sink: &'d mut Sink) -> Parser<'s, 'd> {
        let tokens = lex(source, sink);
        let words = tokens.iter().filter_map(|t| if let Tok::Word(w) = t.tok { Some(w) } else { None }).collect();
        Parser {
            source,
            tokens,
            pos: 0,
            sink,
            depth: 0,
            kernel: Kernel::new(""),
            heights: SecondaryMap::new(),
            window_notes: Default::default(),
            walks: Vec::new(),
            names: Names::new(words),
            n_stmts: 0,
            marks: Marks::default(),
            suggestions: 0,
            copied_at: 0,
            grid_at: None,
            text_alone: false,
            hopeless: None,
        }
    }

    pub(super) fn module(&mut self) -> Module {
        let mut module = Module::default();
        let mut seen: BTreeMap<String, Span> = BTreeMap::new();
        let mut lost = false;
        if self.peek() == Tok::End {
            self.expected("`kernel`");
        }
        while self.peek() != Tok::End {
            self.marks.starts.push(self.span().start);
            if self.at_sequence() {
                match self.sequence() {
                    Ok(sequence) => self.add_sequence(&mut module, &mut seen, sequence),
                    Err(_) => self.skip_to_kernel(),
                }
                continue;
            }
            if !self.at_word("kernel") {
                self.expected(if module.kernels.is_empty() { "`kernel`" } else { "`kernel` or `sequence`" });
                lost = true;
                self.skip_to_kernel();
                continue;
            }
            let start = self.span();
            if self.kernel().is_err() {
                self.skip_to_kernel();
            }
            let kernel = std::mem::replace(&mut self.kernel, Kernel::new(""));
            let span = kernel.name_span;
            match seen.get(&kernel.name) {
                Some(&first) if !kernel.name.is_empty() => self.duplicate(&kernel.name, "kernel", span, first),
                _ => {
                    seen.insert(kernel.name.clone(), span);
                }
            }
            self.marks.kernels.push(self.since(start));
            module.kernels.push(kernel);
        }
        // If a kernel could not be parsed, the names of the text are unknown.
        if !lost && module.kernels.iter().all(|k| !k.name.is_empty()) {
            self.check_sequences(&module);
        }
        if !self.text_alone {
            self.check_comments(&module);
        }
        module
    }

    // Tokens.

    pub(super) fn token(&self) -> Token<'s> {
        self.tokens[self.pos]
    }

    pub(super) fn peek(&self) -> Tok<'s> {
        self.token().tok
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Tok<'s> {
        self.tokens.get(self.pos + ahead).map_or(Tok::End, |t| t.tok)
    }

    pub(super) fn span(&self) -> Span {
        self.token().span
    }

    /// The last token taken.
    pub(super) fn last_span(&self) -> Span {
        self.pos.checked_sub(1).map_or(Span::default(), |i| self.tokens[i].span)
    }

    /// From `start` to the last token taken.
    pub(super) fn since(&self, start: Span) -> Span {
        start.to(self.last_span())
    }

    /// Takes a token; the end stays where it is.
    pub(super) fn bump(&mut self) -> Token<'s> {
        let token = self.token();
        if token.tok != Tok::End {
            self.pos += 1;
        }
        token
    }

    pub(super) fn at_word(&self, word: &str) -> bool {
        self.peek() == Tok::Word(word)
    }

    pub(super) fn at_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Tok::Sign(s) if s == sign)
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn eat_sign(&mut self, sign: &str) -> bool {
        let found = self.at_sign(sign);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn expect_word(&mut self, word: &'static str) -> Parsed<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.expected(&format!("`{word}`"))) }
    }

    pub(super) fn expect_sign(&mut self, sign: &'static str) -> Parsed<()> {
        if sign == ")" && self.at_unclosed() {
            self.unclosed();
            return Ok(());
        }
        if self.eat_sign(sign) { Ok(()) } else { Err(self.expected(&format!("`{sign}`"))) }
    }

    /// The name of a kernel, or of what launches kernels: functions are called in bodies alone, so kernels may have their names.
    pub(super) fn name_of_kernel(&mut self, what: &str) -> Parsed<(&'s str, Span)> {
        let Token { tok, span } = self.token();
        match tok {
            Tok::Word(word) if functions::may_name_kernel(word) => {
                self.bump();
                Ok((word, span))
            }
            Tok::Word(word) if is_reserved(word) => {
                let name = format!("{word}_kernel");
                let note = format!("words of the language cannot be names; rename it, for example `{name}`");
                let message = format!("expected {what}, found the reserved word `{word}`");
                Err(self.error(Diagnostic::error(codes::RESERVED, span, message).with_note(note).with_fix(span, name)))
            }
            _ => self.name(what),
        }
    }

    /// A name to be declared or looked up; `what` describes it in messages.
    pub(super) fn name(&mut self, what: &str) -> Parsed<(&'s str, Span)> {
        let Token { tok, span } = self.token();
        match tok {
            Tok::Word(word) if is_reserved(word) => {
                self.names.reserved.insert(word.to_owned());
                let message = format!("expected {what}, found the reserved word `{word}`");
                let note = format!("words of the language cannot be names; rename it, for example `{word}_`");
                Err(self.error(Diagnostic::error(codes::RESERVED, span, message).with_note(note)))
            }
            Tok::Word(word) if word != REPEATS => {
                self.bump();
                Ok((word, span))
            }
            _ => Err(self.expected(what)),
        }
    }

    /// A non-negative integer literal.
    pub(super) fn small_int(&mut self, what: &str) -> Parsed<u32> {
        let Token { tok, span } = self.token();
        let Tok::Int(x) = tok else {
            return Err(self.expected(&format!("an integer literal ({what})")));
        };
        self.bump();
        u32::try_from(x).map_err(|_| self.report(codes::BAD_CHARACTER, span, format!("{x} is too large for {what}")))
    }

    /// `item (, item)*`, at least one.
    pub(super) fn comma_list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = vec![item(self)?];
        while !self.at_unclosed() && self.eat_sign(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// The end of a comma-separated list.
    pub(super) fn list_end(&mut self, close: &'static str) -> Parsed<()> {
        if close == ")" && self.at_unclosed() {
            self.unclosed();
            return Ok(());
        }
        if self.eat_sign(close) { Ok(()) } else { Err(self.expected(&format!("`,` or `{close}`"))) }
    }

    // Errors.

    pub(super) fn error(&mut self, diagnostic: Diagnostic) -> Reported {
        self.sink.report(diagnostic)
    }

    pub(super) fn report(&mut self, code: Code, span: Span, message: impl Into<String>) -> Reported {
        self.error(Diagnostic::error(code, span, message))
    }

    pub(super) fn expected(&mut self, what: &str) -> Reported {
        let mut diagnostic = self.expected_here(what);
        if let Tok::Word(word) = self.peek()
            && is_reserved(word)
            && what.contains("an expression")
        {
            if self.names.reserved.contains(word)
                && let Err(reported) = self.sink.check()
            {
                return reported;
            }
            diagnostic = diagnostic.with_note(format!("`{word}` is a word of the language, and cannot be a name"));
        }
        self.error(diagnostic)
    }

    pub(super) fn expected_with_note(&mut self, what: &str, note: &str) -> Reported {
        let diagnostic = self.expected_here(what).with_note(note);
        self.error(diagnostic)
    }

    pub(super) fn expected_here(&mut self, what: &str) -> Diagnostic {
        let Token { tok, span } = self.token();
        let found = match tok {
            Tok::Word(word) => format!("`{}`", clip(word)),
            Tok::Int(_) | Tok::Float(_) => {
                format!("the number `{}`", clip(&self.source[span.start as usize..span.end as usize]))
            }
            Tok::Sign(sign) => format!("`{sign}`"),
            Tok::End => "the end of the file".to_owned(),
        };
        let d = Diagnostic::error(codes::EXPECTED, span, format!("expected {what}, found {found}"))
            .with_label(format!("expected {what}"));
        match tok {
            Tok::Word("fill") => d.with_note(
                "`fill` ends a `copy` to a tile, and is said of the windows that it reads: `copy X[i, j..] -> x fill -inf`; elsewhere, mask: `select(j + iota(x, 0) < N, x, -inf)`",
            ),
            Tok::Sign(";") => d.with_note("statements end by themselves: leave the `;` out").with_fix(span, ""),
            Tok::Word(word) if CLAUSES.contains(&word) && !self.names_value(word) => match clause_position(word) {
                Some(note) => d.with_note(note),
                None => d,
            },
            Tok::Word(word) if !is_reserved(word) && !self.names_value(word) => {
                match self.near_word(word, &[&reserved_words(), CLAUSES].concat()) {
                    Some(near) => d.with_spelling(near),
                    None => d,
                }
            }
            _ => d,
        }
    }

    /// Runs `f` one level deeper.
    pub(super) fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            return Err(self.too_deep(self.span()));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    pub(super) fn too_deep(&mut self, span: Span) -> Reported {
        let message = format!("this is nested more than {MAX_DEPTH} levels deep");
        self.error(
            Diagnostic::error(codes::TOO_DEEP, span, message)
                .with_note("give parts names with `let`; a chain of operators counts one level per operator"),
        )
    }

    // Recovery.

    pub(super) fn skip_to_kernel(&mut self) {
        while self.peek() != Tok::End && !self.at_word("kernel") && !self.at_sequence() {
            self.bump();
        }
    }

    /// Skips to the next token, outside blocks opened on the way, for which `stop` holds, or that closes the enclosing
    /// block, or that begins a kernel.
    pub(super) fn skip_to(&mut self, stop: impl Fn(&Self) -> bool) {
        let mut open = 0usize;
        loop {
            match self.peek() {
                Tok::End | Tok::Word("kernel") => return,
                _ if open == 0 && stop(self) => return,
                Tok::Sign("{") => open += 1,
                Tok::Sign("}") => match open.checked_sub(1) {
                    Some(rest) => open = rest,
                    None => return,
                },
                _ => {}
            }
            self.bump();
        }
    }
}

/// Largest source text, in bytes.
pub const MAX_SOURCE: usize = 1 << 20;

/// Most statements of a kernel.
pub const MAX_STMTS: usize = 4096;
