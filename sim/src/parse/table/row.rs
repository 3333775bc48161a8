//! Rows of the instruction table.

use crate::parse::decode::{Arg, Cx};
use crate::parse::error::Result;
use crate::parse::modifiers::Mods;
use crate::program::Op;

/// The function that a row applies to resolved operands.
pub(crate) type Sem = fn(&mut Cx<'_, '_>, &Mods<'_>, &[Arg]) -> Result<Op>;

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

/// Rows, one a line: opcode, modifiers, operands, and what they mean.
macro_rules! table {
    ($($op:literal $mods:literal, $args:literal => $sem:expr;)*) => {
        &[$(Row { op: $op, mods: $mods, args: $args, sem: $sem }),*]
    };
}

pub(crate) use table;
