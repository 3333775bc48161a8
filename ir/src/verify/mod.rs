//! The verifier: the rules that every kernel satisfies, after parsing and after every pass. It reports every violation.
//!
//! Structure (`structure.rs`; the other rules are checked only if these hold)
//!
//!  1. Expressions, statements and blocks form trees. An expression node has one parent, a statement is in one block. A
//!     block is the kernel's body or belongs to one statement. (Tile types may share literal extents.) Nesting is at
//!     most 256 deep.
//!  2. A value is declared once, by the header or by one statement, and has the kind that the statement declares.
//!  3. A value is used after its declaration, in the same block or in one inside it. Names in scope are unique.
//!
//! Header (`header.rs`)
//!
//!  4. Tensors have 1 to 5 dimensions and an alignment that is a power of two. Extents are expressions over sizes and
//!     compile-time parameters, 1 to 2^31 - 1 where known. Every dimension has a stride, except the first of an array
//!     of pointers, which has at least 2 dimensions.
//!  5. Scalar defaults are literals of the scalar's type. So are the numbers of tables (`tables.rs`), which take at
//!     most 64 KiB.
//!  6. Preconditions are conditions over sizes, strides and compile-time parameters.
//!  7. A grid has at most three axes. Their extents are indices over the same values, at least 1 where known.
//!  8. Schedule items are compile-time indices of at least 1. Threads are a multiple of 32, at most 1024. A cluster has
//!     1, 2, 4 or 8 blocks, and no more axes than the grid.
//!
//! Statements (`statements.rs`, `copies.rs`, `roles.rs`); every expression has a type by the rules of [`crate::typing`]
//!
//!  9. Tiles have at most 5 dimensions with compile-time extents of at least 1, and at most 2^20 elements. Tiles in
//!     shared memory are neither scalars nor Boolean. A channel has 1 to 1024 slots.
//! 10. `let` names a value, or a window of global memory.
//! 11. Only register variables are assigned. The value fits the variable's type, and its shape after broadcasting.
//! 12. The destination of a `copy` is a place or a window. Both sides have the same shape, at least one has extents,
//!     and the element types convert.
//! 13. `vec` is a power of two and at most 16 bytes. `check` names dimensions of the global side. `keep` is for copies
//!     into registers, `add` and other atomics for copies into memory, `threads` for copies without registers.
//!     `tma` copies a window of a tensor into a whole slot, or a whole buffer to a window; it combines only with
//!     atomics. `matrix` moves 8x8 matrices between shared memory and registers, `unaligned` moves words of 16 bytes
//!     from global memory.
//! 14. Loop bounds are indices, and steps are at least 1 where known. An unrolled loop has compile-time bounds. Nested
//!     unrolled loops have at most 4096 copies of a body.
//! 15. Conditions are scalar truth values.
//! 16. `acquire`, `publish`, `wait`, `release` name channels, each once. `await` names a register variable or a buffer.
//! 17. Roles are adjacent statements in the body of the kernel. Outside of roles there are only names, buffers,
//!     channels and barriers. Roles have different names, 1 to 32 warps (together at most 32), and 24 to 256 registers
//!     per thread in steps of 8. A role with replicas has only names and one loop; `ordered` is in the body of such a
//!     loop.
//! 25. Either all statements of a loop have a pipeline stage, or none. The producer warps run channel operations,
//!     copies into slots, and loops and branches around these. A kernel with roles has neither (`schedules.rs`).
//! 26. Addresses in shared memory are aligned, slots of a channel do not overlap, and all data fits a block
//!     (`shared_places.rs`).
//! 27. The barriers of a channel count the threads that fill and release it, and share no memory with other data
//!     (`shared_places.rs`).
//! 28. A `publish` expects the bytes of the TMA copies (`shared_places.rs`).
//! 29. The barriers of an `ordered` statement count the warps of a group, and share no memory with other data
//!     (`ordered.rs`).
//! 30. `elected` marks statements that one lane executes for all, `spread` loops that only await signals (`lanes.rs`).
//! 31. A tile of partial sums changes only by statements that commute with the sum. Only copies that combine the parts
//!     read it (`partial_sums.rs`).
//! 32. Blocks of a cluster that divide tiles (`ctas`) hold them in registers. There are no roles, channels, products,
//!     copies between memories, or atomic operations on buffers (`ctas.rs`).
//! 34. A loop over a work queue is in the body of a role. The kernel has as many blocks as the loop's step, or as
//!     tiles, and each block begins with its own number. The body publishes or releases the queue's channel once, and
//!     nothing else uses this channel (`work_queue.rs`).
//! 35. Each entry of distributed shared memory is stored, signalled and awaited once (`cluster_memory.rs`).
//! 36. A copy takes elements only from a tile of the same type and layout that an earlier copy of the block has loaded
//!     from the same tensor, at the offset between the two windows (`held.rs`).
//!
//! Layouts (`layouts.rs`, `fragments.rs`), if extents and layouts are known
//!
//! 18. A tile with a layout has power-of-two extents, and its layout has the same number of elements.
//! 19. A register layout holds every element, and is for the threads of the block or role.
//! 20. A shared-memory layout has the tile's extents and is a bijection onto its offsets.
//! 21. Both sides of a copy between register tiles are distributed over the same number of threads. The thread layout
//!     of a copy between memories covers the tile.
//! 22. The layouts of a product's operands are fragments of its instruction, by the proof in `fragments.rs`.
//!
//! Windows (`pointers.rs`, `gathers.rs`)
//!
//! 23. A window of an array of pointers selects one of them, by a single index.
//! 33. A window of a tensor or buffer gathers elements along any dimensions. A register variable with the tile's extent there has
//!     the indices, or one with the tile's extents an index for each element. Only copies use such windows, not
//!     reductions or products.
//!
//! 37. A constant tensor is no scratch memory, and no copy writes it (`constant.rs`).
//!
//! Contents (`definite_assignment.rs`)
//!
//! 24. No register variable is read before it can have been written.

mod atomics;
mod cluster_memory;
mod constant;
mod context;
mod copies;
mod ctas;
mod definite_assignment;
mod fragments;
mod gathers;
mod header;
mod held;
mod lanes;
mod layouts;
mod matrices;
mod missing_dims;
mod ordered;
mod partial_sums;
mod pointers;
mod roles;
mod schedules;
mod shared_places;
mod statements;
mod structure;
mod tables;
#[cfg(test)]
mod tests;
mod work_queue;

use crate::diag::{Reported, Sink};
use crate::kernel::Kernel;
use crate::typing::Types;
use crate::verify::context::Cx;
use std::collections::BTreeSet;

/// Reports every violation of the rules of this module.
///
/// # Errors
/// If there was one.
pub fn verify(k: &Kernel, sink: &mut Sink) -> Result<(), Reported> {
    structure::check(k, sink)?;
    let mut cx = Cx { k, types: Types::new(k), sink, reported: BTreeSet::new(), failed: BTreeSet::new(), last: None };
    header::check(&mut cx);
    ctas::check(&mut cx);
    cluster_memory::check(&mut cx);
    statements::check(&mut cx);
    layouts::check(&mut cx);
    fragments::check(&mut cx);
    partial_sums::check(&mut cx);
    held::check(&mut cx);
    schedules::check(&mut cx);
    shared_places::check(&mut cx);
    ordered::check(&mut cx);
    lanes::check(&mut cx);
    pointers::check(&mut cx);
    constant::check(&mut cx);
    gathers::elsewhere(&mut cx);
    definite_assignment::check(&mut cx);
    cx.last.map_or(Ok(()), Err)
}
