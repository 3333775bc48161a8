//! Names, labels and calls: a `RawModule` to a `Program`.
//!
//! A register gets its slot when it is first mentioned, so declarations cost nothing. Each instruction is looked up in
//! the table; a row whose modifiers match and whose operands resolve says what the instruction does. A called function
//! is where it is called, with registers, stack and labels of its own (see [`call`]), so that a kernel is one piece of
//! code.

mod arg;
mod body;
mod call;
mod copies;
mod cx;
mod entry;
mod globals;
mod guesses;
mod instruction;
mod module;
mod names;
mod operand;
mod place;
mod polls;
mod scope;
mod shared;

pub(crate) use arg::Arg;
pub(crate) use cx::Cx;
pub(crate) use module::decode;
