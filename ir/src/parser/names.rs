//! Names: scopes, declarations, look-up, and what to say about names that are not there.
//!
//! A name means one thing wherever it is visible: declaring it again there is an error. Blocks that do not enclose one
//! another may use a name each; since names in the IR are unique, later ones get a number appended that no word of the
//! source has.

use crate::diag::{Diagnostic, Reported, Span};
use crate::entities::Value;
use crate::kernel::{ConstKind, ConstParam, ValueData, ValueDef};
use crate::lexer::{Tok, clip};
use crate::parser::foreign_syntax;
use crate::parser::reader::{Parsed, Parser};
use crate::parser::scope::Unknown;
use crate::parser::source_map::{Declaration, Mention};
use crate::types::Order;
use crate::{codes, spelling};

/// Most suggestions per file, and most names looked at for one.
const MAX_SUGGESTIONS: u32 = 20;
const MAX_CANDIDATES: usize = 2000;

/// How a name begins.
pub(super) const BEGINS: &str = "`let` begins a name whose value stays, `var` one that is assigned again";

impl Parser<'_, '_> {
    /// Runs `f` in a scope of its own.
    pub(super) fn scoped<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        self.names.scopes.push(Vec::new());
        let result = f(self);
        let end = self.last_span().end;
        for name in self.names.scopes.pop().unwrap_or_default() {
            let value = self.names.visible.remove(&name);
            let kernel = self.marks.kernels.len();
            self.marks.ends.extend(value.map(|value| ((kernel, value), end)));
        }
        result
    }

    /// Declares `name`; if it is visible already that is reported and the old meaning stays.
    pub(super) fn declare(&mut self, name: &str, span: Span, def: ValueDef) -> Value {
        let first = self.names.visible.get(name).map(|&old| self.kernel.values[old].span);
        let unique = self.names.unique(name);
        let declared = self.source.get(span.start as usize..span.end as usize) == Some(name);
        let value = self.kernel.values.push(ValueData { name: unique, span, def, declared, padded: Vec::new() });
        if declared {
            let (kernel, visible) = (self.marks.kernels.len(), Span { start: self.span().start, end: u32::MAX });
            self.marks.declarations.push(Declaration { kernel, value, name: name.to_owned(), span, visible });
        }
        match first {
            Some(first) => self.duplicate(name, "name", span, first),
            None => {
                self.names.visible.insert(name.to_owned(), value);
                if let Some(scope) = self.names.scopes.last_mut() {
                    scope.push(name.to_owned());
                }
            }
        }
        value
    }

    /// Reports a second declaration.
    pub(super) fn duplicate(&mut self, name: &str, what: &str, span: Span, first: Span) {
        let name = clip(name);
        self.error(
            Diagnostic::error(codes::DUPLICATE, span, format!("the {what} `{name}` is declared twice"))
                .with_label("declared again here")
                .with_place(first, "first declared here")
                .with_note("a name means one thing wherever it is visible; choose another"),
        );
    }

    /// Whether `name` is visible.
    pub(super) fn names_value(&self, name: &str) -> bool {
        self.names.visible.contains_key(name)
    }

    /// Makes later uses of a name whose declaration could not be read quiet.
    pub(super) fn poison(&mut self, name: &str, span: Span) {
        if !self.names.visible.contains_key(name) {
            self.declare(name, span, ValueDef::Let);
        }
    }

    /// The value called `name`. One that does not exist is declared or reported, according to `Names::unknown`.
    pub(super) fn resolve(&mut self, name: &str, span: Span) -> Parsed<Value> {
        if let Some(&value) = self.names.visible.get(name) {
            self.marks.mentions.push(Mention { kernel: self.marks.kernels.len(), value, span });
            return Ok(value);
        }
        match self.names.unknown {
            Unknown::Size => {
                let value = self.declare(name, span, ValueDef::Size);
                self.kernel.sizes.push(value);
                Ok(value)
            }
            Unknown::Stride => {
                let value = self.declare(name, span, ValueDef::Stride);
                self.kernel.strides.push(value);
                Ok(value)
            }
            Unknown::Error if self.text_alone => Ok(self.declare(name, span, ValueDef::Let)),
            Unknown::Error => Err(self.unknown_name(name, span, false)),
        }
    }

    /// The value called `name`, in front of the `=` of an assignment. What does not exist may have been meant to begin here.
    pub(super) fn resolve_assigned(&mut self, name: &str, span: Span) -> Parsed<Value> {
        match self.names_value(name) || self.text_alone {
            true => self.resolve(name, span),
            false => Err(self.unknown_name(name, span, true)),
        }
    }

    fn unknown_name(&mut self, name: &str, span: Span, assigned: bool) -> Reported {
        let quiet = self.names.incomplete || !self.names.missing.insert(name.to_owned());
        if quiet && let Err(reported) = self.sink.check() {
            return reported;
        }
        let message = format!("`{}` is not declared here", clip(name));
        let mut d = Diagnostic::error(codes::UNKNOWN_NAME, span, message).with_label("unknown name");
        if ["threadIdx", "blockDim", "blockIdx", "gridDim", "laneId", "warpId", "tid", "program_id"].contains(&name) {
            let note = "a kernel says what a block does with tiles: there are no threads in the language, and the index of a block is one of `grid (i: ..)`";
            return self.error(d.with_note(note));
        }
        if let Some((note, written)) = foreign_syntax::of_name(name) {
            let d = d.with_note(note);
            return self.error(match written {
                Some(written) => d.with_fix(span, written),
                None => d,
            });
        }
        if self.names.counted.as_deref() == Some(name) {
            let note = "the condition of a loop cannot see its variable; let it read a `var`, which the body sets for the next iteration";
            return self.error(d.with_note(note));
        }
        let near = self.suggest(name);
        // A name that cannot be assigned was not meant.
        let other = near.clone().filter(|(near, _)| assigned && !self.is_var(near));
        if let Some((near, declared)) = &other {
            d = d.with_place(*declared, format!("`{near}` is declared here, and keeps its value"));
        }
        match near.filter(|_| other.is_none()) {
            None if assigned => {
                d = d.with_note(BEGINS);
                if self.begins_here(name) {
                    d = d.with_fix(Span { end: span.start, ..span }, "let ");
                }
            }
            Some((near, declared)) => {
                d = d.with_place(declared, format!("`{near}` is declared here"));
                d = d.with_spelling(&near);
            }
            None => d = d.with_note("declare it with `let` or `var` before this, or as a parameter of the kernel"),
        }
        self.error(d)
    }

    /// Whether the value assigned in this statement is read after it, and assigned nowhere else. A value that is never
    /// read is rather a misspelt name.
    fn begins_here(&mut self, name: &str) -> bool {
        if !self.may_suggest() {
            return false;
        }
        let rest = self.tokens.get(self.pos..).unwrap_or_default();
        let kernel = rest.iter().position(|t| t.tok == Tok::Word("kernel")).unwrap_or(rest.len());
        let mut read = false;
        for (at, _) in rest[..kernel].iter().enumerate().filter(|(_, t)| t.tok == Tok::Word(name)) {
            if rest.get(at + 1).is_some_and(|t| t.tok == Tok::Sign("=")) {
                return false;
            }
            read = true;
        }
        read
    }

    /// Counts a suggestion; looking for one costs time that a broken file should not multiply.
    fn may_suggest(&mut self) -> bool {
        self.suggestions += 1;
        self.suggestions <= MAX_SUGGESTIONS
    }

    /// The word of the language that is nearest to `word`.
    pub(super) fn near_word<'w>(&mut self, word: &str, words: &[&'w str]) -> Option<&'w str> {
        if !self.may_suggest() {
            return None;
        }
        spelling::nearest(word, words.iter().copied(), |w| w)
    }

    /// The function that `word` may mean: where a function must stand, the start of its name is enough.
    pub(super) fn near_function<'w>(&mut self, word: &str, functions: &[&'w str]) -> Option<&'w str> {
        if !self.may_suggest() {
            return None;
        }
        let near = spelling::nearest(word, functions.iter().copied(), |w| w);
        near.or_else(|| spelling::nearest_of_start(word, functions.iter().copied()))
    }

    /// With the word that is like one that is not known.
    pub(super) fn near(&mut self, d: Diagnostic, word: &str, words: &[&str]) -> Diagnostic {
        match self.near_word(word, words) {
            Some(near) => d.with_spelling(near),
            None => d,
        }
    }

    /// Whether a visible name may be assigned to. Of one whose declaration could not be read that is not known.
    fn is_var(&self, name: &str) -> bool {
        let is = |&v: &Value| match self.kernel.values[v].def {
            ValueDef::Var(_) => true,
            ValueDef::Let => self.kernel.let_init(v).is_none(),
            _ => false,
        };
        self.names.visible.get(name).is_some_and(is)
    }

    fn suggest(&mut self, name: &str) -> Option<(String, Span)> {
        if !self.may_suggest() {
            return None;
        }
        let candidates = self.names.visible.iter().take(MAX_CANDIDATES);
        let (near, &value) = spelling::nearest(name, candidates, |(n, _)| n.as_str())?;
        Some((near.clone(), self.kernel.values[value].span))
    }

    /// A compile-time parameter used where only one of kind `wanted` may be.
    pub(super) fn const_param(&mut self, name: &str, span: Span, wanted: &str) -> Parsed<Value> {
        let unknown = std::mem::replace(&mut self.names.unknown, Unknown::Error);
        let value = self.resolve(name, span);
        self.names.unknown = unknown;
        let value = value?;
        let (fits, is) = match &self.kernel.values[value].def {
            ValueDef::ConstParam(ConstParam { kind: ConstKind::Elem(_), .. }) => {
                (wanted == "an element type", "a type")
            }
            ValueDef::ConstParam(ConstParam { kind: ConstKind::Order, .. }) => (wanted == "a layout", "a layout"),
            ValueDef::ConstParam(ConstParam { kind: ConstKind::Int, .. }) => (wanted == "an integer", "an integer"),
            _ => (false, "a value"),
        };
        if fits {
            return Ok(value);
        }
        let declared = self.kernel.values[value].span;
        let way_out = match wanted {
            "a layout" => "declare it as a compile-time parameter: `<LA: layout = row>`",
            "an integer" => "name a compile-time integer declared before this one: `<ALIGN = 8, ALIGN_A = ALIGN>`",
            _ => "declare it as a compile-time parameter: `<T: f16 | bf16 = f16>`",
        };
        let message = format!("expected {wanted}, but `{}` is {is}", clip(name));
        let d = Diagnostic::error(codes::WRONG_KIND, span, message);
        let d = d.with_place(declared, format!("{is}, declared here")).with_note(way_out);
        Err(self.error(if wanted == "a layout" { d.with_fix(span, Order::Row.name()) } else { d }))
    }
}
