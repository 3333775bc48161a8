//! The instruction table: every opcode with its modifiers and operands that the simulator executes, a row each.
//!
//! Written from the PTX manual (section 9.7), in its order of modifiers. A modifier pattern is a list of slots; a slot lists
//! its words between bars and ends in `?` if it may be absent. Widening the machine by an instruction is a row here, a
//! function in `sem`, and for a new kind of effect a variant of [`Op`](crate::program::Op) with its execution. Text may give modifiers in other
//! orders ([`order`]); what an instruction needs of the module's target and version is in [`needs`].

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
mod row;
mod video;

use row::Row;

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
