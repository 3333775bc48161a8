//! The persistent tile scheduler: the tiles of the output that a block computes, and their order.
//!
//! The grid is persistent ([`persistent`]): producer warps fill slots for the next tile while the consumer is in the
//! epilogue of the current one. Blocks of a cluster have adjacent tiles and share operands ([`cluster`]). Blocks may
//! share tiles along the reduction ([`shared_tiles`]). Two warpgroups may compute tiles alternately ([`ping_pong`]). `expand`
//! writes this code around the statements of a tile.

pub(crate) mod cluster;
mod index_builder;
mod persistent;
pub(crate) mod ping_pong;
mod shared_tiles;
mod split_k;
mod split_product;
mod stream_k;
pub(crate) mod work_queue;

use crate::Cx;
pub(crate) use cluster::multicast;
use persistent::Tiles;
use shared_tiles::Sharing;
pub(crate) use shared_tiles::{expected as shares_tiles, refused as stream_refused};
use tilec_ir::diag::{Reported, Span};
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::Kernel;

/// The number of tiles of the output, if the sizes are given, and the number of blocks that compute them.
pub(crate) fn tiles_and_blocks(k: &Kernel, cx: &Cx<'_>) -> Option<(i64, i64)> {
    let mut extents = k.grid.iter().map(|axis| cluster::tiles(k, cx, axis.extent));
    let tiles = extents.try_fold(1i64, |n, extent| n.checked_mul(extent?))?;
    Some((tiles, persistent::clusters(k, cx, 1)))
}

/// The tile scheduler of a kernel.
pub(crate) struct TileScheduler {
    tiles: Tiles,
    /// How blocks share tiles along the reduction, if they do.
    sharing: Option<Sharing>,
}

impl TileScheduler {
    /// `None`: the kernel has no grid.
    pub(crate) fn new(k: &mut Kernel, cx: &mut Cx<'_>, span: Span) -> Option<TileScheduler> {
        Tiles::new(k, cx, span).map(|tiles| TileScheduler { tiles, sharing: None })
    }

    /// Distributes tiles from both ends alternately, for tiles with different durations.
    pub(crate) fn deal_from_both_ends(&mut self) {
        self.tiles.deal_from_both_ends();
    }

    /// Makes blocks take their tiles from a counter, if the schedule demands it. Returns the declaration of the channel
    /// that passes the numbers, and the statements of each role at the end of a tile.
    pub(crate) fn draw(&mut self, k: &mut Kernel, cx: &mut Cx<'_>) -> Result<Option<work_queue::Queue>, Reported> {
        let Some(e) = work_queue::scheduled(k) else { return Ok(None) };
        if self.shares() {
            return Err(work_queue::refused(k, cx, e, "blocks share tiles (`stream_k`)"));
        }
        if self.tiles.counts().1 > 1 {
            return Err(work_queue::refused(k, cx, e, "the blocks of a cluster compute their tiles together"));
        }
        let queue = work_queue::Queue::new(k, self.tiles.span());
        self.tiles.draw(queue.next);
        Ok(Some(queue))
    }

    /// Makes blocks share tiles along the loop `at`, if the schedule demands it or it is faster; the inner error says
    /// why there is no such loop.
    pub(crate) fn share_tiles(
        &mut self,
        k: &mut Kernel,
        cx: &mut Cx<'_>,
        at: Result<Stmt, String>,
        loads_what_it_stores: bool,
    ) -> Result<(), Reported> {
        self.sharing = Sharing::new(k, cx, &self.tiles, at, loads_what_it_stores)?;
        Ok(())
    }

    /// Whether blocks share tiles.
    pub(crate) fn shares(&self) -> bool {
        self.sharing.is_some()
    }

    fn sharing(&self) -> &Sharing {
        self.sharing.as_ref().unwrap_or_else(|| unreachable!("blocks share tiles"))
    }

    /// If blocks share tiles: the bounds of a unit along the reduction, in elements.
    pub(crate) fn bounds(&self, k: &mut Kernel) -> (Expr, Expr) {
        match self.sharing() {
            Sharing::Stream(stream) => stream.bounds(k),
            Sharing::Split(split) => split.bounds(k),
        }
    }

    /// If blocks share tiles: the code after the products of a unit; `rest` is the epilogue for a complete sum.
    pub(crate) fn finish(&self, k: &mut Kernel, rest: Vec<Stmt>) -> Stmt {
        match self.sharing() {
            Sharing::Stream(stream) => stream.finish(k, &self.tiles, rest),
            Sharing::Split(split) => split.finish(k, rest),
        }
    }

    /// The loop over the tiles of a block, with the declarations that it needs.
    pub(crate) fn walk(&self, k: &mut Kernel, stmts: &[Stmt]) -> Vec<Stmt> {
        match &self.sharing {
            Some(Sharing::Stream(stream)) => stream.walk(k, &self.tiles, stmts),
            Some(Sharing::Split(split)) => split.walk(k, &self.tiles, stmts),
            None => self.tiles.walk(k, stmts),
        }
    }

    /// Sets the grid of the kernel.
    pub(crate) fn launch(&self, k: &mut Kernel, cx: &mut Cx<'_>) {
        let workers = match &self.sharing {
            Some(Sharing::Stream(stream)) => stream.workers(k, &self.tiles),
            Some(Sharing::Split(split)) => return split.launch(k, &self.tiles),
            None => self.tiles.workers(k),
        };
        self.tiles.launch(k, cx, workers);
    }
}
