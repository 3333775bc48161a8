//! The instruction table: every opcode with its modifiers and operands that the simulator executes, a row each.
//!
//! Written from the PTX manual (section 9.7), in its order of modifiers. A modifier pattern is a list of slots; a slot lists
//! its words between bars and ends in `?` if it may be absent. Widening the machine by an instruction is a row here, a
//! function in `sem`, and for a new kind of effect a variant of [`Op`] with its execution. Text may give modifiers in other
//! orders ([`order`]); what an instruction needs of the module's target and version is in [`needs`].

macro_rules! table {
    ($($op:literal $mods:literal, $args:literal => $sem:expr;)*) => {
        &[$(Row { op: $op, mods: $mods, args: $args, sem: $sem }),*]
    };
}

mod control;
mod convert;
mod float;
mod hopper;
mod integer;
pub(crate) mod limits;
mod matrix;
mod memory;
mod movement;
pub(crate) mod needs;
pub(crate) mod order;
mod video;

use super::ParseError;
use super::decode::{Arg, Cx};
use super::lex::Pos;
use crate::program::Op;
use crate::program::types::Ty;

/// What a row does with resolved operands.
pub(crate) type Sem = fn(&mut Cx<'_, '_>, &Mods<'_>, &[Arg]) -> Result<Op, ParseError>;

/// One form of an instruction.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) op: &'static str,
    /// Slots of modifiers.
    pub(crate) mods: &'static str,
    /// Operands: `d` destination, `s` source, `dv`/`sv` vectors of a load or store, `d*4`/`s*4` vectors of that length, `p`
    /// predicate destination, `q` predicate source, `pq` two predicates, `dp` destination with optional predicate, `m`
    /// memory (`m:shared`: of that space whatever the modifiers say), `i` immediate, `l` label, `t` list of labels, `x`/`xd`
    /// what `mov` takes, `ds`/`ss` with a selector of bytes or halves perhaps, `dm` with one, `mt` a place in a tensor, `wd` the
    /// result of an asynchronous product. `d_` and `dp_` may be `_`, and `_` must be. `:type` overrides the type,
    /// which is the last type among the modifiers; `U` is the first one, `W` twice as wide. `?` allows it to be absent.
    pub(crate) args: &'static str,
    pub(crate) sem: Sem,
}

/// The modifiers of the instruction at hand.
pub(crate) struct Mods<'w> {
    pub(crate) words: &'w [&'w str],
    pub(crate) pos: Pos,
}

impl Mods<'_> {
    pub(crate) fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    pub(crate) fn last_type(&self) -> Option<Ty> {
        self.words.iter().rev().find_map(|w| Ty::from_word(w))
    }

    pub(crate) fn first_type(&self) -> Option<Ty> {
        self.words.iter().find_map(|w| Ty::from_word(w))
    }

    pub(crate) fn wide_type(&self) -> Option<Ty> {
        Some(match self.last_type()? {
            Ty::U16 => Ty::U32,
            Ty::S16 => Ty::S32,
            Ty::U32 => Ty::U64,
            Ty::S32 => Ty::S64,
            _ => return None,
        })
    }

    /// Elements of `.v2`, `.v4`.
    pub(crate) fn vector(&self) -> usize {
        if self.has("v2") {
            2
        } else if self.has("v4") {
            4
        } else {
            1
        }
    }

    /// Type and number of the registers of an asynchronous product's result: `m64n16k16` of f32 takes 8.
    pub(crate) fn accumulators(&self, pos: Pos) -> Result<(Ty, usize), ParseError> {
        let n = self.words.iter().find_map(|w| w.strip_prefix("m64n")?.split_once('k')?.0.parse::<usize>().ok());
        match (n, self.first_type()) {
            (Some(n), Some(Ty::F16)) => Ok((Ty::F16x2, n / 4)),
            (Some(n), Some(ty)) => Ok((ty, n / 2)),
            _ => Err(pos.error("this product has no shape")),
        }
    }

    pub(crate) fn ty(&self) -> Result<Ty, ParseError> {
        self.last_type().ok_or_else(|| self.pos.error("this instruction lacks a type"))
    }

    pub(crate) fn error<T>(&self, message: impl Into<String>) -> Result<T, ParseError> {
        Err(self.pos.error(message))
    }

    pub(crate) fn limit<T>(&self, message: impl Into<String>) -> Result<T, ParseError> {
        Err(self.pos.limit(message))
    }
}

/// What an operand kind is called in a message.
pub(crate) fn describe(kind: &str) -> &'static str {
    match kind {
        "p" | "pq" => "a predicate register",
        "q" => "a predicate",
        "m" => "an address in brackets",
        "" => "`_`",
        "l" => "a label",
        "i" => "an integer constant",
        "dm" => "a register with the part of it that is replaced",
        _ => "something else",
    }
}

/// All rows.
pub(crate) fn all() -> impl Iterator<Item = &'static Row> {
    let tables = [
        integer::ROWS,
        float::ROWS,
        convert::ROWS,
        movement::ROWS,
        memory::ROWS,
        control::ROWS,
        matrix::ROWS,
        hopper::ROWS,
        video::ROWS,
    ];
    tables.into_iter().flatten()
}

/// The rows of an opcode.
pub(crate) fn rows(op: &str) -> impl Iterator<Item = &'static Row> {
    all().filter(move |r| r.op == op)
}
