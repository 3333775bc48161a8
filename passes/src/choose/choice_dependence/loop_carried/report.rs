//! Messages about results that depend on the number of tiles.

use super::tiles::Loop;
use crate::analysis::past_end::BEYOND;
use crate::caller::Caller;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Span};
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::ops::ReduceOp;
use tilec_ir::print::print_expr;

/// A value or store that depends on the number of tiles, and where.
pub(super) struct Wrong {
    pub(super) what: What,
    pub(super) span: Span,
}

#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// A variable whose value is needed after the loop.
    Carried(Value),
    /// A store; true: its value depends on earlier tiles.
    Stored(Stmt, bool),
}

/// `behind`: only elements past the end of the range cause the fault, and this is how the value is combined with those
/// of other tiles.
pub(super) fn reported(k: &Kernel, of: &Loop, wrong: &Wrong, behind: Option<ReduceOp>, caller: Caller) -> Diagnostic {
    let (name, declared) = (&k.values[of.parameter].name, k.values[of.parameter].span);
    let subject = match wrong.what {
        What::Carried(v) => format!("`{}`", k.values[v].name),
        What::Stored(..) => "the stored value".to_owned(),
    };
    let message = match (behind, wrong.what) {
        (Some(op), _) => {
            let mask = match op {
                ReduceOp::Sum => "0.0",
                ReduceOp::Maximum => "-1.0e30",
                ReduceOp::Minimum => "1.0e30",
                other => unreachable!("bug: tiles are not combined by `{}`", other.token()),
            };
            let (begin, end) = (begins(k, of), print_expr(k, of.end));
            format!(
                "{subject} counts elements past the end of the range, where tensors are zero: mask them, as in `select({begin} + iota(x, 1) < {end}, x, {mask})`; how many there are"
            )
        }
        (None, What::Carried(_)) => {
            format!("{subject} is carried from tile to tile by more than a sum or an extreme: the number of tiles")
        }
        (None, What::Stored(_, true)) => {
            format!("{subject} depends on the tiles in front of this one: the number of tiles")
        }
        (None, What::Stored(_, false)) => {
            format!(
                "{subject} is neither for each position of the range nor the same for all tiles: the number of tiles"
            )
        }
    };
    let message =
        format!("{message} depends on `{name}`, which is `auto`, and another choice would give another result");
    let d = Diagnostic::error(codes::DEPENDS_ON_CHOICE, wrong.span, message)
        .with_place(declared, format!("`{name}` is `auto` here"))
        .with_note(format!("give `{name}` a value, with {} or in the source; or promise that it makes no difference: `{name} = auto promised`", caller.define(name)));
    if behind.is_some() {
        d.with_note(format!("a sum must be of values that are zero there; an extreme, or an exponential, of values that are masked by a number of at least {BEYOND} or an infinity"))
    } else {
        d
    }
}

/// The start of a tile, as the program writes it.
fn begins(k: &Kernel, of: &Loop) -> String {
    let StmtData::For { var, .. } = k.stmts[of.stmt] else { return String::new() };
    let name = &k.values[var].name;
    if of.numbers { format!("{name} * {}", print_expr(k, of.size)) } else { name.clone() }
}
