//! Demands: `no spills`, `registers <= 168`, `bytes <= 1.05 * minimum`.

use crate::codes;
use crate::demands::{Demand, FIGURES, PROPERTIES, What};
use crate::diag::Diagnostic;
use crate::lexer::{Tok, clip};
use crate::parser::reader::{Parsed, Parser};

impl Parser<'_, '_> {
    /// `demand {, demand}`.
    pub(super) fn demands(&mut self) -> Parsed<Vec<Demand>> {
        self.comma_list(|p| p.demand())
    }

    fn demand(&mut self) -> Parsed<Demand> {
        let start = self.span();
        if let Some((_, property)) = PROPERTIES.iter().find(|(name, _)| self.eat_words(name)) {
            return Ok(Demand { what: What::Has(*property), span: self.since(start) });
        }
        let Some((name, figure, unit)) = FIGURES.iter().find(|(name, ..)| self.eat_words(name)) else {
            let found = match self.peek() {
                Tok::Word(word) => format!("nothing called `{}` can be demanded", clip(word)),
                _ => return Err(self.expected("a demand, such as `no spills` or `registers <= 168`")),
            };
            let all: Vec<String> = PROPERTIES
                .iter()
                .map(|(name, _)| format!("`{name}`"))
                .chain(FIGURES.iter().map(|(name, ..)| format!("`{name}` with `<=` or `>=`")))
                .collect();
            let mut d = Diagnostic::error(codes::UNKNOWN_ITEM, start, found);
            if let Some((near, end)) = self.near_demand() {
                d.span.end = end;
                d = d.with_spelling(near);
            }
            return Err(self.error(d.with_note(format!("there are {}", all.join(", ")))));
        };
        let at_most = self.eat_sign("<=");
        if !at_most && !self.eat_sign(">=") {
            let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
            let note = format!("`{name}` is a figure, which is compared: `{name} <= 1{unit}`, `{name} >= 1{unit}`");
            let d = self.expected_here("`<=` or `>=`").with_note(note);
            let meant =
                [("<", "<="), (">", ">="), ("==", "<="), ("=", "<=")].into_iter().find(|(sign, _)| self.at_sign(sign));
            return Err(self.error(match meant {
                Some((_, meant)) => d.with_spelling(meant),
                None => d,
            }));
        }
        let number = match self.peek() {
            Tok::Int(n) => n as f64,
            Tok::Float(x) => x,
            _ => return Err(self.expected("a number")),
        };
        self.bump();
        if !unit.is_empty() {
            self.eat_sign("*");
            if !self.eat_word(unit) {
                return Err(self.expected(&format!("`{unit}`")));
            }
        }
        let what = if at_most { What::AtMost(*figure, number) } else { What::AtLeast(*figure, number) };
        Ok(Demand { what, span: self.since(start) })
    }

    /// The name of a demand that the next words are a misspelling of, and where these end.
    fn near_demand(&mut self) -> Option<(&'static str, u32)> {
        let names = PROPERTIES.iter().map(|(name, _)| *name).chain(FIGURES.iter().map(|(name, ..)| *name));
        let names: Vec<&'static str> = names.collect();
        let most = names.iter().map(|name| name.split(' ').count()).max().unwrap_or(1);
        let mut words = String::new();
        for n in 0..most {
            let Tok::Word(word) = self.peek_at(n) else { return None };
            words.push_str(if n == 0 { "" } else { " " });
            words.push_str(word);
            let as_long: Vec<&'static str> =
                names.iter().copied().filter(|name| name.split(' ').count() == n + 1).collect();
            let joined = |text: &str| text.replace([' ', '_'], "");
            if let Some(&same) = names.iter().find(|name| joined(name) == joined(&words)) {
                return Some((same, self.tokens[self.pos + n].span.end));
            }
            if let Some(near) = self.near_word(&words, &as_long) {
                return Some((near, self.tokens[self.pos + n].span.end));
            }
        }
        None
    }

    /// Reads these words if they are next, all of them.
    fn eat_words(&mut self, words: &str) -> bool {
        let n = words.split(' ').count();
        let next = words.split(' ').enumerate().all(|(i, word)| self.peek_at(i) == Tok::Word(word));
        if next {
            (0..n).for_each(|_| {
                self.bump();
            });
        }
        next
    }
}
