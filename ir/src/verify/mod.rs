//! The verifier: what every kernel fulfils, after parsing and after every pass. It reports every violation it finds.
//!
//! Structure (`structure.rs`; the other rules are checked only if these hold)
//!  1. Expressions, statements and blocks form trees: an expression node has one parent, a statement is in one block, a
//!     block belongs to one statement or is the body. (Literal extents of tile types may be shared.) Nesting is at most
//!     256 deep.
//!  2. A value is declared once, by the header or by one statement, of the kind that the statement declares.
//!  3. A value is used after its declaration, in the same block or one inside it; names in scope are unique.
//!
//! Header (`header.rs`)
//!  4. Tensors have 1 to 5 dimensions with extents over sizes and compile-time parameters, 1 to 2^31 - 1 where known, a
//!     stride for each dimension (but for the first of an array of pointers, which has at least 2 dimensions), and an
//!     alignment that is a power of two.
//!  5. Scalar defaults are literals of the scalar's type; so are the numbers of tables (`tables.rs`), which take 64 KiB at most.
//!  6. Preconditions are truth values over sizes, strides and compile-time parameters.
//!  7. A grid has at most three axes; extents are indices over the same, at least 1 where known.
//!  8. Schedule items are compile-time indices, at least 1; threads a multiple of 32, at most 1024; a cluster has 1, 2, 4 or 8
//!     blocks, and no more axes than the grid.
//!
//! Statements (`statements.rs`, `copies.rs`, `roles.rs`); every expression has a type by the rules of [`crate::typing`]
//!  9. Tiles have at most 5 dimensions with compile-time extents of at least 1 and at most 2^20 elements; tiles in shared
//!     memory are not scalars and not Boolean. A channel has 1 to 1024 slots.
//! 10. `let` names a value, or a window of global memory.
//! 11. Only register variables are assigned; the value fits the variable in shape (after broadcasting) and type.
//! 12. `copy` ends in a place or a window; the two sides agree in shape, at least one has extents, and the element types
//!     convert.
//! 13. `vec` is a power of two and at most 16 bytes; `check` names dimensions of the global side; `keep` is for copies into
//!     registers, `add` and its like for copies into global memory, `threads` for copies that touch no registers; `tma` moves a
//!     window of a tensor into a whole slot, or a whole buffer to a window of a tensor, and goes with nothing but `add` and its like; `matrix`
//!     moves 8x8 matrices between shared memory and registers, `unaligned` words of 16 bytes from global memory.
//! 14. Loop bounds are indices, steps at least 1 where known; an unrolled loop has compile-time bounds, and the bodies
//!     laid out by nested ones are at most 4096.
//! 15. Conditions are scalar truth values.
//! 16. `acquire`, `publish`, `wait`, `release` name channels, each once; `await` names a register variable or a
//!     buffer.
//! 17. Roles are next to each other in the body of the kernel, beside nothing but names, buffers, channels and barriers; they have 1 to
//!     32 warps (together at most 32), different names, and 24 to 256 registers per thread in steps of 8. One with replicas is names and one loop; `ordered` is in the body of
//!     such a loop.
//! 25. Either no statement of a loop has a pipeline stage, or all of them have one, 0 or 1. The producer warps run channel
//!     operations, copies into slots, and loops and branches around these. A kernel with roles has neither (`schedules.rs`).
//!
//! 26. Places in shared memory are aligned, slots of a channel are apart, and all of it fits a block (`shared_places.rs`).
//! 27. The barriers of a channel count who fills and releases it, and are apart from everything else (`shared_places.rs`).
//! 28. A `publish` expects the bytes that TMA copies bring (`shared_places.rs`).
//! 29. The barriers of an `ordered` statement count the warps of a group, and are apart from all else (`ordered.rs`).
//! 30. `elected` is where one lane does something for all, `spread` at loops that only await signals (`lanes.rs`).
//! 32. Blocks of a cluster that divide tiles (`ctas`) hold them in registers: no roles, channels, products, or copies between memories
//!     (`ctas.rs`).
//! 31. A register tile of parts is changed by statements that do to its value what they do to the parts, and read by copies that
//!     put them together (`partial_sums.rs`).
//!
//! 34. A loop whose numbers are drawn is in the body of a role, in a kernel that has as many blocks as the step, or as numbers, each of which begins with its own;
//!     its body publishes or releases once the channel that hands them over, which nothing else touches (`work_queue.rs`).
//!
//! Layouts (`layouts.rs`, `fragments.rs`), as far as extents and layouts are known
//! 18. A tile with a layout has power-of-two extents, and its layout has as many elements.
//! 19. A register layout holds every element, and is for the threads of the block or role.
//! 20. A shared-memory layout has the tile's extents and is a bijection onto its offsets.
//! 21. Both sides of a copy between register tiles are spread over the same number of threads; the thread layout of a copy
//!     between memories covers the tile.
//! 22. The layouts of a product's operands are fragments of its instruction, by the proof in `fragments.rs`.
//!
//! Windows (`pointers.rs`, `gathers.rs`)
//! 23. A window of an array of pointers names one of them, by a single index.
//! 33. Along one dimension at most elements of a window of a tensor are gathered, by a register variable of the extent of the tile there. Such windows are in
//!     copies alone, and not in what is reduced or multiplied.
//!
//! Contents (`definite_assignment.rs`)
//! 24. No register variable is read that nothing can have written before.

mod atomics;
mod cluster_memory;
mod context;
mod copies;
mod ctas;
mod definite_assignment;
mod fragments;
mod gathers;
mod header;
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
    let mut cx = Cx { k, types: Types::new(k), sink, reported: BTreeSet::new(), last: None };
    header::check(&mut cx);
    ctas::check(&mut cx);
    cluster_memory::check(&mut cx);
    statements::check(&mut cx);
    layouts::check(&mut cx);
    fragments::check(&mut cx);
    partial_sums::check(&mut cx);
    schedules::check(&mut cx);
    shared_places::check(&mut cx);
    ordered::check(&mut cx);
    lanes::check(&mut cx);
    pointers::check(&mut cx);
    gathers::elsewhere(&mut cx);
    definite_assignment::check(&mut cx);
    cx.last.map_or(Ok(()), Err)
}
