//! Clusters: blocks that run concurrently and access each other's shared memory, and values that are the same in all
//! blocks of one.
//!
//! A schedule's `cluster (2, 1)` counts blocks along the axes of the grid; the hardware groups neighbours. Along an
//! axis `g` with `c` blocks per cluster, `g / c` is therefore the same in all of them, and `g % c` differs. The bits of
//! a block's rank in its cluster are those of `g % c`, with the first axis lowest (PTX ISA 10, `%cluster_ctarank`).

use crate::entities::{Block, Expr, Stmt, Value};
use crate::kernel::{ExprData, Kernel, StmtData, ValueDef};
use crate::ops::Op;
use crate::placement::{BARRIER_BYTES, ROW_ALIGN};
use crate::target::Target;
use crate::types::{ElemRef, TensorTy};
use crate::typing::{ResolvedView, ViewDim, const_int, let_init};
use std::collections::BTreeMap;
pub use tilec_core::hardware::MAX_BLOCKS;

/// Maximum cluster size with the non-portable attribute (CUDA driver API,
/// `CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`), on sm_90.
pub const MAX_BLOCKS_ASKED: i64 = 16;

/// Blocks of a cluster along an axis of the grid; 1 if the schedule gives none, or no constant.
pub fn along(k: &Kernel, axis: usize) -> i64 {
    k.schedule.cluster.get(axis).and_then(|&e| const_int(k, e)).unwrap_or(1).max(1)
}

/// Blocks of a cluster.
pub fn blocks(k: &Kernel) -> i64 {
    (0..k.schedule.cluster.len()).map(|axis| along(k, axis)).fold(1, i64::saturating_mul)
}

/// The tensors in distributed shared memory: tiles that blocks of a cluster store in the last block's shared memory.
pub fn memory(k: &Kernel) -> impl Iterator<Item = Value> + '_ {
    k.params.iter().copied().filter(|&v| k.tensor_ty(v).is_some_and(TensorTy::is_of_cluster))
}

/// Bytes of a tile of such a tensor, and its number of tiles; `None` if its type is not known.
pub fn tiles(k: &Kernel, v: Value) -> Option<(u64, u64)> {
    let tensor = k.tensor_ty(v)?;
    let ElemRef::Known(elem) = tensor.elem else { return None };
    let shape = k.const_shape(&tensor.shape)?;
    let (&count, tile) = shape.split_first()?;
    Some((elem.bytes_of(tile.iter().product()), count))
}

/// The position of a tensor's tiles in distributed shared memory: consecutive, followed by an mbarrier for each.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct MemoryPlace {
    /// Bytes of shared memory in front of the first tile.
    pub offset: u64,
    /// The same of the first mbarrier.
    pub barriers: u64,
    /// Bytes of a tile.
    pub bytes: u64,
    /// Number of tiles.
    pub count: u64,
}

impl MemoryPlace {
    /// The first aligned position after `used` bytes, for `count` tiles of `bytes` bytes.
    pub fn after(used: u64, (bytes, count): (u64, u64)) -> MemoryPlace {
        let offset = used.next_multiple_of(ROW_ALIGN);
        let barriers = (offset + count * bytes).next_multiple_of(BARRIER_BYTES);
        MemoryPlace { offset, barriers, bytes, count }
    }

    /// Offset after the tensor and its mbarriers.
    pub fn end(&self) -> u64 {
        self.barriers + self.count * BARRIER_BYTES
    }
}

/// Bytes of shared memory of these tensors, placed after the buffers. `tensors`: bytes per tile and number of tiles of
/// each.
pub fn bytes(tensors: impl Iterator<Item = (u64, u64)>) -> u64 {
    let end = tensors.fold(0, |used, tiles| MemoryPlace::after(used, tiles).end());
    // In front of the first one the row of banks is filled up.
    if end > 0 { end + ROW_ALIGN } else { 0 }
}

/// Bytes of a block's shared memory that hold the kernel's distributed shared memory.
pub fn memory_bytes(k: &Kernel) -> u64 {
    bytes(memory(k).filter_map(|v| tiles(k, v)))
}

/// Blocks of a cluster that share each tile along the reduction (`split_k 2`); `None` if the schedule gives none, or no
/// constant.
pub fn split(k: &Kernel) -> Option<i64> {
    k.schedule.split_k.and_then(|e| k.as_int(e))
}

/// Bytes of shared memory that a block of a target has for buffers and slots: all but what is memory of the cluster.
pub fn room(k: &Kernel, target: Target) -> u64 {
    target.smem_per_block().saturating_sub(memory_bytes(k))
}

/// Whether slots of the channel are filled for all blocks of a cluster at once.
pub fn fills_by_multicast(k: &Kernel, channel: Value) -> bool {
    k.statement_data().any(|s| match s {
        StmtData::Copy { dst, attrs, .. } => {
            attrs.is_multicast() && matches!(&k.exprs[*dst], ExprData::View(view) if view.base == channel)
        }
        _ => false,
    })
}

/// So many bits from a first one on; `None` if there are more than 31, which no cluster has.
fn run(first: u32, bits: u32) -> Option<u32> {
    let end = first.checked_add(bits).filter(|&end| end < u32::BITS)?;
    Some((1 << end) - (1 << first))
}

/// Finds which values are the same in all blocks of a cluster, or in which blocks.
pub struct Uniform<'a> {
    k: &'a Kernel,
    loops: BTreeMap<Value, [Expr; 3]>,
    known: BTreeMap<Value, u32>,
}

impl<'a> Uniform<'a> {
    /// Reads the loops of a kernel.
    pub fn new(k: &'a Kernel) -> Uniform<'a> {
        let loops = k.statement_data().filter_map(|s| match *s {
            StmtData::For { var, start, end, step, .. } => Some((var, [start, end, step])),
            _ => None,
        });
        Uniform { k, loops: loops.collect(), known: BTreeMap::new() }
    }

    /// Whether an index or a condition has one value in all blocks of a cluster.
    pub fn expr(&mut self, e: Expr) -> bool {
        self.dependent_rank_bits(e) == 0
    }

    /// All bits of a block's number in its cluster.
    pub fn all(&self) -> u32 {
        let blocks = blocks(self.k);
        if blocks.count_ones() == 1 { (blocks.min(1 << 31) - 1) as u32 } else { u32::MAX }
    }

    /// Bits of a block's cluster rank on which the value depends: blocks that agree in them have the same value.
    pub fn dependent_rank_bits(&mut self, e: Expr) -> u32 {
        let k = self.k;
        if let Some((first, bits)) = self.digit(e) {
            return run(first, bits).unwrap_or_else(|| self.all());
        }
        match &k.exprs[e] {
            ExprData::Int(_) | ExprData::Float(_) => 0,
            ExprData::Ref(v) => self.value(*v),
            ExprData::Op { op: Op::Div, args } if self.is_cluster(args) => 0,
            ExprData::Op { args, .. } => args.iter().fold(0, |bits, &a| bits | self.dependent_rank_bits(a)),
            ExprData::Cast { arg, .. } | ExprData::Bits { arg, .. } => self.dependent_rank_bits(*arg),
            ExprData::Round { arg, word, .. } => self.dependent_rank_bits(*arg) | self.dependent_rank_bits(*word),
            _ => self.all(),
        }
    }

    /// The first and the number of the bits of a block's number that an expression is: `g % c`, and what divisions by powers of two leave of
    /// it, or take from it.
    fn digit(&self, e: Expr) -> Option<(u32, u32)> {
        let k = self.k;
        let ExprData::Op { op: op @ (Op::Rem | Op::Div), args } = &k.exprs[e] else {
            return match &k.exprs[e] {
                ExprData::Ref(v) if matches!(k.values[*v].def, ValueDef::Let) => self.digit(let_init(k, *v)?),
                _ => None,
            };
        };
        let [x, by] = args[..] else { return None };
        let by = const_int(k, by).filter(|n| n.count_ones() == 1)?;
        let (log2, rest) = (by.trailing_zeros(), self.digit(x));
        match (op, rest) {
            (Op::Rem, Some((first, bits))) => Some((first, bits.min(log2))),
            (_, Some((first, bits))) => Some((first + bits.min(log2), bits.saturating_sub(log2))),
            (Op::Rem, None) => {
                let ExprData::Ref(v) = k.exprs[x] else { return None };
                let axis = k.grid.iter().position(|g| g.index == v).filter(|&axis| along(k, axis) == by)?;
                Some((self.first_bit(axis)?, log2))
            }
            _ => None,
        }
    }

    /// The first bit of the block's number that counts along an axis.
    fn first_bit(&self, axis: usize) -> Option<u32> {
        let bits = |axis| Some(along(self.k, axis)).filter(|n| n.count_ones() == 1).map(i64::trailing_zeros);
        (0..axis).map(bits).sum()
    }

    /// Bits of an axis.
    fn axis(&self, axis: usize) -> u32 {
        let c = along(self.k, axis);
        match (c, self.first_bit(axis)) {
            (1, _) => 0,
            (c, Some(first)) if c.count_ones() == 1 => run(first, c.trailing_zeros()).unwrap_or_else(|| self.all()),
            _ => self.all(),
        }
    }

    /// Bits that tell windows apart.
    pub fn window(&mut self, view: &ResolvedView) -> u32 {
        let mut bits = 0;
        for d in &view.dims {
            let end = if let ViewDim::From { end, .. } = d { *end } else { None };
            bits = d.starts().iter().chain(&end).fold(bits, |bits, &e| bits | self.dependent_rank_bits(e));
        }
        bits
    }

    /// `g / c`, of an axis with `c` blocks to a cluster.
    fn is_cluster(&self, args: &[Expr]) -> bool {
        let [index, by] = args else { return false };
        let ExprData::Ref(v) = self.k.exprs[*index] else { return false };
        let axis = self.k.grid.iter().position(|g| g.index == v);
        axis.is_some_and(|axis| const_int(self.k, *by) == Some(along(self.k, axis)))
    }

    fn value(&mut self, v: Value) -> u32 {
        let k = self.k;
        if let Some(&known) = self.known.get(&v) {
            return known;
        }
        let same = match &k.values[v].def {
            ValueDef::Grid => {
                let axis = k.grid.iter().position(|g| g.index == v);
                axis.map_or_else(|| self.all(), |axis| self.axis(axis))
            }
            ValueDef::Let => match let_init(k, v) {
                Some(init) => self.dependent_rank_bits(init),
                None => self.all(),
            },
            // In the same iteration, if they make as many.
            ValueDef::Loop => match self.loops.get(&v).copied() {
                Some(bounds) => bounds.into_iter().fold(0, |bits, e| bits | self.dependent_rank_bits(e)),
                None => self.all(),
            },
            ValueDef::Var(_) | ValueDef::Smem(_) | ValueDef::Channel { .. } | ValueDef::Tensor(_) => self.all(),
            _ => 0,
        };
        self.known.insert(v, same);
        same
    }

    /// The first loop or branch around statements accepted by `wanted` whose iterations or condition differ between the
    /// blocks.
    pub fn parted(&mut self, block: Block, wanted: &dyn Fn(&Kernel, Stmt) -> bool) -> Option<Stmt> {
        for &s in &self.k.blocks[block].clone() {
            let inside = self.k.sub_blocks(s);
            let own = match self.k.stmts[s] {
                StmtData::For { start, end, step, cond, .. } => {
                    [start, end, step].into_iter().chain(cond).all(|e| self.expr(e))
                }
                StmtData::If { cond, .. } => self.expr(cond),
                _ => true,
            };
            for b in inside {
                let mut found = false;
                self.k.walk(b, &mut |k, _, s| found |= wanted(k, s));
                if found && !own {
                    return Some(s);
                }
                if let Some(s) = self.parted(b, wanted) {
                    return Some(s);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Sink;

    fn kernel(body: &str) -> Kernel {
        let text = format!(
            "kernel k(A: gmem f16[M, K]) grid (g: ceildiv(M, 64), h: 4) schedule {{ threads 128 cluster (2, 1) }} {{\n{body}\n}}\n"
        );
        let mut sink = Sink::new();
        crate::parser::parse(&text, &mut sink).unwrap_or_else(|_| panic!("{:?}", sink.diagnostics())).kernels.remove(0)
    }

    /// Clusters of 2 x 2 blocks, along one axis or two.
    #[test]
    fn rows_and_columns_of_a_cluster_are_told_apart() {
        for (grid, cluster, row, col) in
            [("g: 64", "(4)", "g % 4 % 2", "g % 4 / 2"), ("g: 64, h: 4", "(2, 2)", "g % 2", "h % 2")]
        {
            let text = format!(
                "kernel k(A: gmem f16[M, K]) grid ({grid}) schedule {{ threads 128 cluster {cluster} }} {{\n\
                 let down = {row}\nlet right = {col}\nlet bm = 8 + down\nlet bn = 3 * right + 1\nlet both = bm + bn\nlet g0 = g\n}}\n"
            );
            let mut sink = Sink::new();
            let k = crate::parser::parse(&text, &mut sink).unwrap_or_else(|_| panic!("{:?}", sink.diagnostics()));
            let k = &k.kernels[0];
            let mut uniform = Uniform::new(k);
            let mut of = |name: &str| {
                let (v, _) = k.values.iter().find(|(_, d)| d.name == name).expect("it is there");
                uniform.value(v)
            };
            assert_eq!(["down", "right", "bm", "bn", "both"].map(&mut of), [1, 2, 1, 2, 3], "{cluster}");
            assert_eq!(of("g0"), if cluster == "(4)" { 3 } else { 1 });
            assert_eq!(uniform.all(), 3);
        }
    }

    #[test]
    fn what_tells_blocks_apart_is_found() {
        let k = kernel(
            "let pair = g / 2\nlet rank = g % 2\nlet other = g / 4\nlet twice = pair * 2 + h\nlet own = pair * 2 + rank\n\
             for i in pair..M step 64 { let inner = i + K }\nfor j in g..M step 64 { let apart = j }",
        );
        let mut uniform = Uniform::new(&k);
        let mut of = |name: &str| {
            let (v, _) = k.values.iter().find(|(_, d)| d.name == name).expect("it is there");
            uniform.value(v)
        };
        for name in ["pair", "twice", "inner", "i", "h", "M"] {
            assert_eq!(of(name), 0, "{name}");
        }
        for name in ["rank", "other", "own", "apart", "j", "g"] {
            assert_eq!(of(name), 1, "{name}");
        }
        assert_eq!(blocks(&k), 2);
        let parted = uniform.parted(k.body, &|k, s| matches!(k.stmts[s], StmtData::Let { .. }));
        assert!(parted.is_some_and(|s| matches!(&k.stmts[s], StmtData::For { var, .. } if k.values[*var].name == "j")));
    }

    #[test]
    fn places_of_cluster_memory_fit_its_bytes_wherever_they_begin() {
        let tensors = [(8192, 1), (48, 3), (4, 7), (16, 1)];
        for (first, used) in (0..tensors.len()).flat_map(|first| (0..300).map(move |used| (first, used))) {
            let mut end = used;
            for &tiles in &tensors[first..] {
                let place = MemoryPlace::after(end, tiles);
                assert!(place.offset >= end && place.offset.is_multiple_of(ROW_ALIGN));
                assert!(place.barriers >= place.offset + tiles.0 * tiles.1);
                assert!(place.barriers.is_multiple_of(BARRIER_BYTES));
                end = place.end();
            }
            assert!(end <= used + bytes(tensors[first..].iter().copied()), "{first} {used}");
        }
        assert_eq!(bytes([].into_iter()), 0);
    }
}
