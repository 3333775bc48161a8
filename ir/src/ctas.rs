//! Blocks of a cluster that share out the tiles of one block (`ctas`).
//!
//! An index of the grid stands for that many blocks. Threads of all of them count in layouts: thread `t` of block `b` of the cluster is number
//! `b * threads + t`. A buffer is there in each block, with the same content: what is stored is stored in all of them, and a barrier is one of
//! the cluster.
//!
//! A barrier of the cluster that orders stores waits until all memory accesses in front of it are done, those to global memory, too. Where the stores in front of
//! a barrier are counted instead, by an mbarrier of each block, nothing else is waited for (PTX ISA 9.7.9.12, `st.async`).

use crate::entities::{Block, Expr, Stmt, Value};
use crate::kernel::{Kernel, StmtData};
use crate::placement;
use crate::target::WARP;
use crate::types::ElemRef;
use crate::typing::{ResolvedView, const_int, layout_of, resolve_view};

/// Blocks of a cluster that share out the elements of a block's tiles; 1 where the schedule says nothing, or nothing constant.
pub fn ctas(k: &Kernel) -> i64 {
    k.schedule.ctas.and_then(|e| const_int(k, e)).unwrap_or(1).max(1)
}

/// A barrier for which stores are counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counted {
    /// The barrier.
    pub barrier: Stmt,
    /// Copies of register tiles to buffers, which arrive in each block.
    pub stores: Vec<Stmt>,
    /// What they bring to each block.
    pub bytes: u64,
}

/// The barriers for which stores are counted: once, so they stand in the body of the kernel. All that they order is these stores:
///
/// * their buffers are written once, in words of 4 bytes at least, and share no memory with others;
/// * nothing reads them in front of the barrier, nor does another barrier stand there, in a loop or a branch;
/// * each warp stores something, so none is behind the barrier before all have come there;
/// * no tensor is both read and written.
pub fn counted(k: &Kernel) -> Vec<Counted> {
    if ctas(k) == 1 || tensors_meet(k) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut stores: Vec<(Stmt, Option<Store>)> = Vec::new();
    for &s in &k.blocks[k.body] {
        if matches!(k.stmts[s], StmtData::Barrier) {
            let own: Option<Vec<Store>> = stores.iter().map(|(_, store)| *store).collect();
            if let Some(own) = own.filter(|own| own.iter().any(|store| store.by_all_warps)) {
                let bytes = own.iter().map(|store| store.bytes).sum();
                found.push(Counted { barrier: s, stores: stores.iter().map(|&(s, _)| s).collect(), bytes });
            }
            stores.clear();
        } else {
            let settled = settles(k, s);
            for (of, store) in &mut stores {
                if settled || reads(k, s, *of) {
                    *store = None;
                }
            }
            stores.extend(stored_to(k, s).into_iter().map(|view| (s, view.and_then(|view| Store::of(k, s, &view)))));
        }
    }
    found
}

/// Bits that an instruction stores at once.
const MOST_BITS: u32 = 128;

/// A store of all of a buffer.
#[derive(Copy, Clone)]
struct Store {
    bytes: u64,
    by_all_warps: bool,
}

impl Store {
    /// `None`: it cannot be counted.
    fn of(k: &Kernel, s: Stmt, to: &ResolvedView) -> Option<Store> {
        let StmtData::Copy { src, ref attrs, .. } = k.stmts[s] else { return None };
        let ty = k.tile_ty(to.base)?;
        let shape = k.const_shape(&ty.shape)?;
        let whole = to.dims.len() == to.kept().len() && to.dims.iter().all(|d| d.starts().is_empty());
        let ElemRef::Known(elem) = ty.elem else { return None };
        let bits = elem.bits();
        let (word, wide) = (bits >= 32, bits * attrs.vec.unwrap_or(1));
        let layout = layout_of(k, src)?;
        let first = WARP.ilog2();
        let by_all_warps = (first..layout.thread_bits()).all(|i| layout.thread_col(i) != 0);
        let bytes = elem.size().bytes_of(shape.iter().product());
        let counts = whole && word && wide <= MOST_BITS && !attrs.is_matrix() && alone(k, s, to.base);
        counts.then_some(Store { bytes, by_all_warps })
    }
}

/// Whether no other statement writes a buffer, and no other buffer shares its bytes.
fn alone(k: &Kernel, s: Stmt, buffer: Value) -> bool {
    let written = |other: Stmt| match k.stmts[other] {
        StmtData::Copy { dst, .. } => other != s && resolve_view(k, dst).is_some_and(|to| to.base == buffer),
        _ => false,
    };
    let own = placement::ranges(k, buffer);
    let shares =
        |v: Value| v != buffer && placement::is_shared(k, v) && placement::overlap(&own, &placement::ranges(k, v));
    !k.statements().into_iter().any(written) && !k.values.keys().any(shares)
}

/// Whether a statement, or one inside it, stores to shared memory.
pub fn stores_shared(k: &Kernel, s: Stmt) -> bool {
    !stored_to(k, s).is_empty()
}

/// The windows of buffers that a statement, or one inside it, stores to; `None`: one that a loop or a branch stores to.
fn stored_to(k: &Kernel, s: Stmt) -> Vec<Option<ResolvedView>> {
    let own = match k.stmts[s] {
        StmtData::Copy { dst, .. } => resolve_view(k, dst).filter(|to| to.space(k).is_of_block()),
        _ => None,
    };
    let inside = |b: Block| k.blocks[b].iter().any(|&s| stores_shared(k, s));
    let nested = k.sub_blocks(s).into_iter().any(inside).then_some(None);
    own.map(Some).into_iter().chain(nested).collect()
}

/// Whether a statement, or one inside it, reads the buffer that another one stores to.
fn reads(k: &Kernel, s: Stmt, store: Stmt) -> bool {
    let StmtData::Copy { dst: stored, .. } = k.stmts[store] else { return false };
    let Some(buffer) = resolve_view(k, stored).map(|to| to.base) else { return false };
    let stored_to = |e: Expr| matches!(k.stmts[s], StmtData::Copy { dst, .. } if dst == e);
    let own = k.stmts[s].exprs().into_iter().any(|e| !stored_to(e) && mentions(k, e, buffer));
    own || k.sub_blocks(s).into_iter().any(|b| k.blocks[b].iter().any(|&s| reads(k, s, store)))
}

fn mentions(k: &Kernel, e: Expr, buffer: Value) -> bool {
    resolve_view(k, e).is_some_and(|view| view.base == buffer)
        || k.children(e).into_iter().any(|e| mentions(k, e, buffer))
}

/// Whether a barrier stands inside a statement.
fn settles(k: &Kernel, s: Stmt) -> bool {
    let barrier = |s: Stmt| matches!(k.stmts[s], StmtData::Barrier) || settles(k, s);
    k.sub_blocks(s).into_iter().any(|b| k.blocks[b].iter().any(|&s| barrier(s)))
}

/// Whether a tensor is both read and written.
fn tensors_meet(k: &Kernel) -> bool {
    let (mut places, mut written) = (Vec::new(), Vec::new());
    for data in k.statement_data() {
        let &StmtData::Copy { dst, .. } = data else { continue };
        places.push(dst);
        written.extend(resolve_view(k, dst).map(|to| to.base).filter(|&v| k.tensor_ty(v).is_some()));
    }
    let reads = |e: Expr| !places.contains(&e) && resolve_view(k, e).is_some_and(|from| written.contains(&from.base));
    k.expressions().into_iter().any(reads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Sink;

    /// How many stores are counted at each barrier of a kernel with this body behind a store to `s`.
    fn stores(body: &str) -> Vec<(usize, u64)> {
        let text = format!(
            "kernel k(X: gmem f32[64], Y: gmem f32[64]) grid (i: 1) schedule {{ target sm_90 threads 32 ctas 2 }} {{\n\
             let s = smem f32[64] row layout (64):(1) at 0\nlet t = smem f32[64] row layout (64):(1) at 256\n\
             var x = reg f32[64] layout (64,1):(1,0)\nvar y = reg f32[64] layout (64,1):(1,0)\n\
             copy X[0..] -> x\ncopy x -> s\n{body}\ncopy y -> Y[0..]\n}}\n"
        );
        let mut sink = Sink::new();
        let file = crate::parser::parse(&text, &mut sink).unwrap_or_else(|_| panic!("{:?}", sink.diagnostics()));
        counted(&file.kernels[0]).into_iter().map(|counted| (counted.stores.len(), counted.bytes)).collect()
    }

    #[test]
    fn stores_are_counted_that_a_barrier_orders_and_nothing_else_does() {
        assert_eq!(stores("barrier\ncopy s -> y"), [(1, 256)]);
        assert_eq!(stores("copy x -> t\nbarrier\ncopy s -> y"), [(2, 512)]);
        for other in [
            "copy s -> y\nbarrier",
            "if i > 0 { barrier }\nbarrier\ncopy s -> y",
            "for j in 0..2 { copy s -> y }\nbarrier\ncopy s -> y",
            "barrier\ncopy s -> y\ncopy x -> s",
            "copy X[0..] -> y\ncopy y -> X[0..]\nbarrier\ncopy s -> y",
            "for j in 0..2 { copy x -> t }\nbarrier\ncopy s -> y",
            "copy s -> y",
        ] {
            assert_eq!(stores(other), [], "{other}");
        }
    }
}
