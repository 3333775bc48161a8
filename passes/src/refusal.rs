//! Reasons why a fast path is not taken, as data that passes exchange.

use crate::Cx;
use tilec_ir::diag::{Diagnostic, Edit, Span, declare_where};
use tilec_ir::entities::Stmt;
use tilec_ir::kernel::Kernel;
use tilec_ir::missed_paths::{FastPath, MissedPath};
use tilec_ir::parser::HEADER_CLAUSES;

/// Why a fast path is not taken.
#[derive(Clone, Default, Debug)]
pub(crate) struct Refused {
    /// The statement that prevents it, if it is not the slow statement itself.
    pub(crate) span: Option<Span>,
    pub(crate) why: String,
    /// What would help.
    way_out: Option<String>,
    /// The source requests something else, or a pass is switched off: this is no loss.
    asked: bool,
    /// There is not enough memory or registers.
    room: bool,
    /// Rows of a tensor are not known to be multiples of 16 bytes.
    rows: bool,
    /// The preconditions that would help.
    needs: String,
}

impl Refused {
    /// The code at `span` prevents it.
    pub(crate) fn at(span: Span, why: impl Into<String>) -> Refused {
        Refused { span: Some(span), why: why.into(), ..Refused::default() }
    }

    /// There is not enough memory or registers.
    pub(crate) fn room(why: impl Into<String>) -> Refused {
        let room = Refused { why: why.into(), room: true, ..Refused::default() };
        room.help(
            "smaller tiles leave room for it; `auto` extents are chosen for the fastest kernel, with or without it",
        )
    }

    /// Something else is requested.
    pub(crate) fn by_request(why: impl Into<String>) -> Refused {
        Refused { why: why.into(), asked: true, ..Refused::default() }
    }

    /// The same, requested at `span`.
    pub(crate) fn by_request_at(span: Span, why: impl Into<String>) -> Refused {
        Refused { asked: true, ..Refused::at(span, why) }
    }

    /// With a place, if it has none.
    pub(crate) fn or_at(self, span: Span) -> Refused {
        Refused { span: self.span.or(Some(span)), ..self }
    }

    /// Something else is requested, if that is so.
    pub(crate) fn asked_if(self, asked: bool) -> Refused {
        Refused { asked: self.asked || asked, ..self }
    }

    /// With what would help.
    pub(crate) fn help(self, way_out: &str) -> Refused {
        Refused { way_out: Some(way_out.to_owned()), ..self }
    }

    /// A precondition would help; an empty one is none.
    pub(crate) fn missing(self, precondition: &str) -> Refused {
        if precondition.is_empty() {
            return self;
        }
        let needs = precondition.to_owned();
        Refused { rows: true, needs, ..self.help(&declare_where(precondition)) }
    }

    /// Reports it: as a loss of the statements `at`, unless the slower path was requested. `what`: the fast path.
    pub(crate) fn report(&self, k: &Kernel, cx: &mut Cx<'_>, what: &str, (path, at): (FastPath, Vec<Stmt>)) {
        let of = |&s: &Stmt| k.stmt_spans[s];
        let span = self.span.or(at.first().map(of)).unwrap_or(k.name_span);
        let mut d = Diagnostic::remark(cx.pass, span, format!("{what}: {}", self.why)).with_why(&self.why);
        d.declined = Some(path);
        d.needs = self.needs.clone();
        d.fix = required(k, &self.needs);
        if let Some(way_out) = &self.way_out {
            d = d.with_note(way_out);
        }
        if !self.asked && !at.is_empty() {
            for place in at.iter().map(of).filter(|&place| place != span) {
                d = d.with_place(place, "this could be faster");
            }
            d = d.with_loss(MissedPath { path, at, room: self.room, rows: self.rows, nanoseconds: None });
        }
        cx.remark_missed(d);
    }
}

/// The change of the source that declares preconditions: after those that are written, or as a clause in front of the others.
pub fn required(k: &Kernel, needs: &str) -> Option<Edit> {
    if needs.is_empty() {
        return None;
    }
    let means = Some("fewer sizes are accepted then");
    let at = |place: u32| Span { start: place, end: place };
    let edit = |place: u32, text: String| Some(Edit { span: at(place), text, behind: None, means });
    if let Some((_, clause)) = k.clauses.iter().find(|(word, _)| word == "where") {
        return edit(clause.end, format!(", {needs}"));
    }
    let first =
        k.clauses.iter().filter(|(word, _)| HEADER_CLAUSES.contains(&word.as_str())).min_by_key(|(_, c)| c.start)?;
    edit(first.1.start, format!(" where {needs}"))
}

impl From<String> for Refused {
    fn from(why: String) -> Refused {
        Refused { why, ..Refused::default() }
    }
}

impl From<&str> for Refused {
    fn from(why: &str) -> Refused {
        why.to_owned().into()
    }
}
