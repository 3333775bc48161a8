//! Names, labels and calls: a `RawModule` to a `Program`.
//!
//! A register gets its slot when it is first mentioned, so declarations cost nothing. Each instruction is looked up in
//! the table; a row whose modifiers match and whose operands resolve says what the instruction does. A called function
//! is where it is called, with registers, stack and labels of its own (see [`call`]), so that a kernel is one piece of
//! code.

mod arg;
mod body;
mod call;
mod cas_guesses;
mod context;
mod copies;
mod entry;
mod globals;
mod instruction;
mod module;
mod names;
mod operand;
mod place;
mod polls;
mod scope;
mod shared;

pub(crate) use arg::Arg;
pub(crate) use context::Cx;
pub(crate) use module::decode;
