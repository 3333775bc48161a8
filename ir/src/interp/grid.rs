//! The blocks of a grid, one after the other. Blocks of a cluster run in the order of their ranks, so that the last one
//! has the tiles that the others store for it.

use crate::cluster;
use crate::codes;
use crate::diag::Span;
use crate::entities::Value;
use crate::interp::machine::{Binding, ClusterTile, Fail, Machine, fail};
use crate::interp::numbers::Numbers;
use crate::interp::window::Window;
use crate::types::TensorTy;

impl Machine<'_> {
    /// Whether an axis of the grid has no block.
    pub(super) fn is_empty(&mut self) -> Result<bool, Fail> {
        let k = self.k;
        let zero = k.sizes.iter().any(|&v| matches!(self.env[v], Binding::Index(0)));
        Ok(zero && k.grid.iter().map(|axis| self.index(axis.extent)).collect::<Result<Vec<_>, _>>()?.contains(&0))
    }

    pub(super) fn grid(&mut self) -> Result<(), Fail> {
        let k = self.k;
        let extents: Vec<i64> = k.grid.iter().map(|axis| self.index(axis.extent)).collect::<Result<_, _>>()?;
        if extents.iter().any(|&n| n < 1) {
            return Ok(());
        }
        // Blocks of a cluster with distributed shared memory run consecutively; the order of others does not matter.
        let mut cluster = vec![1; extents.len()];
        if cluster::memory(k).next().is_some() {
            for (blocks, &e) in cluster.iter_mut().zip(&k.schedule.cluster) {
                *blocks = self.index(e)?.max(1);
            }
        }
        if let Some(axis) = (0..extents.len()).find(|&axis| extents[axis] % cluster[axis] != 0) {
            let message =
                format!("the grid has {} blocks along an axis, not whole clusters of {}", extents[axis], cluster[axis]);
            return Err(fail(codes::PRECONDITION, k.expr_spans[k.grid[axis].extent], message));
        }
        let clusters: Vec<i64> = extents.iter().zip(&cluster).map(|(n, c)| n / c).collect();
        let mut first = vec![0; extents.len()];
        loop {
            self.one_cluster(&first, &cluster)?;
            let Some(d) = (0..first.len()).rev().find(|&d| first[d] + 1 < clusters[d]) else { return Ok(()) };
            first[d] += 1;
            first[d + 1..].fill(0);
        }
    }

    /// The blocks of a cluster, of the first axis the fastest (PTX ISA 10, `%cluster_ctarank`).
    fn one_cluster(&mut self, first: &[i64], cluster: &[i64]) -> Result<(), Fail> {
        self.forget_cluster_memory();
        let mut rank = vec![0; cluster.len()];
        loop {
            let next = (0..rank.len()).find(|&axis| rank[axis] + 1 < cluster[axis]);
            self.last_of_cluster = next.is_none();
            let index: Vec<i64> = (0..rank.len()).map(|axis| first[axis] * cluster[axis] + rank[axis]).collect();
            self.grid_block(&index)?;
            let Some(axis) = next else { return self.check_tiles_awaited() };
            rank[axis] += 1;
            rank[..axis].fill(0);
        }
    }

    fn grid_block(&mut self, index: &[i64]) -> Result<(), Fail> {
        let k = self.k;
        for (axis, &i) in k.grid.iter().zip(index) {
            self.set(axis.index, Binding::Index(i));
        }
        self.work(0, k.name_span)?;
        self.block(k.body).map_err(|d| {
            let at: Vec<String> =
                k.grid.iter().zip(index).map(|(a, i)| format!("{} = {i}", k.values[a.index].name)).collect();
            Box::new(if at.is_empty() { *d } else { d.with_note(format!("in block {}", at.join(", "))) })
        })
    }

    /// Unwritten elements of distributed shared memory are NaN: each cluster has its own.
    fn forget_cluster_memory(&mut self) {
        let k = self.k;
        self.passed.clear();
        for global in &mut self.globals {
            if k.tensor_ty(global.value).is_some_and(TensorTy::is_of_cluster) {
                global.data = Numbers::Floats(vec![f64::NAN; global.data.len()]).to_representation(global.elem);
            }
        }
    }

    /// That a tile of distributed shared memory is stored once: its mbarrier counts the bytes of one store.
    pub(super) fn passes(&mut self, global: usize, to: &Window) -> Result<(), Fail> {
        let of = &self.globals[global];
        if !self.k.tensor_ty(of.value).is_some_and(TensorTy::is_of_cluster) {
            return Ok(());
        }
        let tile: i128 = of.shape[1..].iter().map(|&n| i128::from(n)).product();
        let at = i64::try_from(to.base / tile.max(1)).unwrap_or(i64::MAX);
        let passed = self.passed.entry((of.value, at)).or_default();
        if std::mem::replace(&mut passed.stored, true) {
            let name = &self.k.values[of.value].name;
            let message = format!("`{name}[{at}]` is stored already, and a launch passes each tile once");
            return Err(fail(codes::CHANNEL, to.span, message));
        }
        Ok(())
    }

    /// That every tile that was stored has been signalled, and every tile that was signalled awaited.
    fn check_tiles_awaited(&self) -> Result<(), Fail> {
        for (&(memory, at), passed) in &self.passed {
            let what = match passed {
                ClusterTile { signalled: true, awaited: false, .. } => "is signalled at the end: nobody has awaited it",
                ClusterTile { stored: true, signalled: false, .. } => "is stored at the end: nobody has signalled it",
                _ => continue,
            };
            let data = &self.k.values[memory];
            return Err(fail(codes::CHANNEL, data.span, format!("`{}[{at}]` {what}", data.name)));
        }
        Ok(())
    }

    /// Checks that a block which awaits or reads a tile of distributed shared memory is the last of its cluster, which
    /// holds the tile. On the device another block waits forever, or reads uninitialised memory.
    pub(super) fn check_cluster_tile(&self, memory: Value, span: Span) -> Result<(), Fail> {
        if self.last_of_cluster || !self.k.tensor_ty(memory).is_some_and(TensorTy::is_of_cluster) {
            return Ok(());
        }
        let name = &self.k.values[memory].name;
        let message = format!(
            "a block that is not the last of its cluster has no tile of `{name}`: they are in the last block's shared memory"
        );
        Err(fail(codes::CHANNEL, span, message))
    }
}
