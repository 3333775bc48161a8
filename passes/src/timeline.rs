//! The roles of a kernel in time: what each warpgroup does when, when it waits and for what, and what the units of the multiprocessor do meanwhile.
//!
//! From the kernel after all passes, whoever wrote its roles, and from the rates of the model. Each loop runs a few iterations. The statements of a role
//! take their clocks one after the other (pass `schedule-loops`). Tensor cores, special functions, loads and stores are queues that all warpgroups
//! share. It is a clock of the model: nothing is measured.

mod awaited;
mod block_time;
mod data;
mod program;
mod reach;
mod run;

pub use awaited::{AwaitedLoad, AwaitedLoads, awaited_loads};
pub use block_time::block_time;
pub use data::{Event, Line, Row, SlotUse, Timeline, Turn, Unit};

use crate::Options;
use program::{Iterations, Program};
use tilec_ir::kernel::{Kernel, StmtData};

/// The roles of a kernel in time.
///
/// # Errors
/// There are no roles, or they do not end: the reason.
pub fn of(k: &Kernel, options: &Options) -> Result<Timeline, &'static str> {
    if !k.blocks[k.body].iter().any(|&s| matches!(k.stmts[s], StmtData::Role { .. })) {
        return Err("the kernel has no roles");
    }
    let program = Program::of(k, options.usual_card(), Iterations::Few);
    run::run(k, options.usual_card(), program).ok_or("its roles do not end when each loop runs a few iterations")
}
