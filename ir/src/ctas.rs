//! Clusters whose blocks share the tiles of one block (`ctas`).
//!
//! An index of the grid counts clusters. Layouts count the threads of all blocks of the cluster: thread `t` of block
//! `b` is number `b * threads + t`. Each block has a copy of every buffer, with the same contents: stores go to all of
//! them, and a barrier is a cluster barrier.
//!
//! A cluster barrier that orders stores waits for all earlier memory accesses, including those to global memory. If an
//! mbarrier of each block counts the stores before a barrier instead, only these are waited for (PTX ISA 9.7.9.12,
//! `st.async`).

use crate::entities::{Block, Expr, Stmt, Value};
use crate::kernel::{Kernel, StmtData};
use crate::placement;
use crate::target::WARP;
use crate::types::ElemRef;
use crate::typing::{ResolvedView, const_int, layout_of, resolve_view};

/// Blocks of a cluster that divide the elements of a tile; 1 if the schedule gives none, or no constant.
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
    /// Bytes that the stores bring to each block, per iteration in a loop.
    pub bytes: u64,
    /// In a loop, the barrier in front of the stores.
    pub begins: Option<Stmt>,
}

/// The barriers whose stores an mbarrier counts: those of the kernel's body (`counted_once`), and of loops
/// (`counted_in`). They must order only these stores:
///
/// * their buffers are written once, in words of at least 4 bytes, and share no memory with others;
/// * nothing reads them before the barrier, and no other barrier is in between, in a loop or a branch;
/// * each warp stores something, so no warp passes the barrier before all have arrived;
/// * no tensor is both read and written.
pub fn counted(k: &Kernel) -> Vec<Counted> {
    if ctas(k) == 1 || tensors_meet(k) {
        return Vec::new();
    }
    let mut found = counted_once(k);
    let mut looped = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        if let StmtData::For { unroll: false, body, .. } = k.stmts[s] {
            looped.extend(counted_in(k, body));
        }
    });
    // Its barriers order nothing else, either.
    let counts = |s: &Stmt| found.iter().chain(&looped).any(|counted: &Counted| counted.stores.contains(s));
    let stores = |s: &Stmt| k.sub_blocks(*s).is_empty() && stores_shared(k, *s);
    if k.statements().iter().filter(|s| stores(s)).all(counts) {
        found.extend(looped);
    }
    found
}

/// The barrier of a loop whose stores are counted in each iteration. The loop has two barriers: the first one precedes
/// an iteration's stores, the second one follows them. Buffers are doubled and iterations alternate between the copies,
/// so that the first barrier can be one of the block alone. Each block signals there that its threads have read the
/// data of the previous iteration. The second barrier waits for all these signals, and only then may the next iteration
/// store to these buffers.
fn counted_in(k: &Kernel, body: Block) -> Option<Counted> {
    let list = &k.blocks[body];
    let barriers: Vec<usize> = (0..list.len()).filter(|&i| matches!(k.stmts[list[i]], StmtData::Barrier)).collect();
    let &[begins, ends] = &barriers[..] else { return None };
    let mut stores: Vec<(Stmt, Value, Store)> = Vec::new();
    for (i, &s) in list.iter().enumerate() {
        if contains_barrier(k, s) {
            return None;
        }
        for view in stored_to(k, s) {
            let view = view.filter(|_| begins < i && i < ends)?;
            stores.push((s, view.base, Store::of(k, s, &view)?));
        }
    }
    let read_early = |&&(s, ..): &&(Stmt, Value, Store)| list[..ends].iter().any(|&other| reads(k, other, s));
    let inside = all_of(k, body);
    let outside = |&&(_, buffer, _): &&(Stmt, Value, Store)| {
        let names = |s: &Stmt| k.stmts[*s].exprs().into_iter().any(|e| mentions(k, e, buffer));
        k.statements().iter().filter(|s| !inside.contains(s)).any(names)
    };
    let all = stores.iter().any(|(.., store)| store.by_all_warps);
    if !all || stores.iter().any(|store| read_early(&store) || outside(&store)) {
        return None;
    }
    let bytes = stores.iter().map(|(.., store)| store.bytes).sum();
    let stores = stores.into_iter().map(|(s, ..)| s).collect();
    Some(Counted { barrier: list[ends], stores, bytes, begins: Some(list[begins]) })
}

/// All statements under a block.
fn all_of(k: &Kernel, body: Block) -> Vec<Stmt> {
    let mut found = Vec::new();
    k.walk(body, &mut |_, _, s| found.push(s));
    found
}

/// The barriers of the kernel's body for which stores are counted.
fn counted_once(k: &Kernel) -> Vec<Counted> {
    let mut found = Vec::new();
    let mut stores: Vec<(Stmt, Option<Store>)> = Vec::new();
    for &s in &k.blocks[k.body] {
        if matches!(k.stmts[s], StmtData::Barrier) {
            let own: Option<Vec<Store>> = stores.iter().map(|(_, store)| *store).collect();
            if let Some(own) = own.filter(|own| own.iter().any(|store| store.by_all_warps)) {
                let bytes = own.iter().map(|store| store.bytes).sum();
                found.push(Counted {
                    barrier: s,
                    stores: stores.iter().map(|&(s, _)| s).collect(),
                    bytes,
                    begins: None,
                });
            }
            stores.clear();
        } else {
            let settled = contains_barrier(k, s);
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
        let whole = to.dims.len() == to.base_dims().len() && to.dims.iter().all(|d| d.starts().is_empty());
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

/// Whether a barrier is inside a statement.
fn contains_barrier(k: &Kernel, s: Stmt) -> bool {
    let barrier = |s: Stmt| matches!(k.stmts[s], StmtData::Barrier) || contains_barrier(k, s);
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

    /// A kernel with this body after a store to `s`.
    fn kernel(body: &str) -> Kernel {
        let text = format!(
            "kernel k(X: gmem f32[64], Y: gmem f32[64]) grid (i: 1) schedule {{ target sm_90 threads 32 ctas 2 }} {{\n\
             let s = smem f32[64] row layout (64):(1) at 0\nlet t = smem f32[64] row layout (64):(1) at 256\n\
             var x = reg f32[64] layout (64,1):(1,0)\nvar y = reg f32[64] layout (64,1):(1,0)\n\
             copy X[0..] -> x\ncopy x -> s\n{body}\ncopy y -> Y[0..]\n}}\n"
        );
        let mut sink = Sink::new();
        let file = crate::parser::parse(&text, &mut sink).unwrap_or_else(|_| panic!("{:?}", sink.diagnostics()));
        file.kernels[0].clone()
    }

    /// Number of counted stores at each barrier of such a kernel.
    fn stores(body: &str) -> Vec<(usize, u64)> {
        counted(&kernel(body)).into_iter().map(|counted| (counted.stores.len(), counted.bytes)).collect()
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

    #[test]
    fn loops_count_the_stores_between_their_two_barriers() {
        let turn = |inside: &str| format!("barrier\ncopy s -> y\nfor j in 0..2 {{ {inside} }}");
        let counts = |inside: &str| -> Vec<Option<u64>> {
            let k = kernel(&turn(inside));
            counted(&k).into_iter().map(|counted| counted.begins.map(|_| counted.bytes)).collect()
        };
        assert_eq!(counts("barrier\ncopy x -> t\nbarrier\ncopy t -> y"), [None, Some(256)]);
        for other in [
            "copy x -> t\nbarrier\ncopy t -> y",
            "barrier\ncopy x -> t\ncopy t -> y\nbarrier",
            "barrier\ncopy x -> t\nbarrier\ncopy t -> y\nbarrier",
            "copy x -> t\nbarrier\nbarrier\ncopy t -> y",
            "barrier\nif j > 0 { copy x -> t }\nbarrier\ncopy t -> y",
            "barrier\ncopy x -> t\nbarrier\nif j > 0 { barrier }\ncopy t -> y",
        ] {
            assert_eq!(counts(other), [None], "{other}");
        }
        let behind = kernel(&(turn("barrier\ncopy x -> t\nbarrier\ncopy t -> y") + "\ncopy t -> y"));
        assert!(counted(&behind).iter().all(|counted| counted.begins.is_none()));
    }
}
