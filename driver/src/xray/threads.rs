//! Threads of a tile's layout, and their numbers in the block.
//!
//! A layout counts the threads of the role that holds the tile; the first warp of the block may be that of another role. With `ctas` it counts those of all blocks of a cluster.

use tilec_ir::ctas::ctas;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::roles::{first_warp, replicas};
use tilec_ir::target::WARP;

/// The threads that hold a tile, or that execute a copy.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ThreadGroup {
    /// The thread of the block that is the first of them.
    first: u64,
    /// Their role, and its replicas: numbers are those of the first one.
    role: Option<(String, u32)>,
    /// Threads of a block, where blocks of a cluster share the elements.
    of_block: Option<u64>,
}

impl ThreadGroup {
    /// Those that hold a register tile.
    pub(super) fn of_tile(k: &Kernel, tile: Value) -> ThreadGroup {
        ThreadGroup::of(k, &|s| matches!(k.stmts[s], StmtData::Var { value, .. } if value == tile))
    }

    /// Those that execute a statement.
    pub(super) fn of_stmt(k: &Kernel, stmt: Stmt) -> ThreadGroup {
        ThreadGroup::of(k, &|s| s == stmt)
    }

    fn of(k: &Kernel, wanted: &dyn Fn(Stmt) -> bool) -> ThreadGroup {
        let blocks = u64::try_from(ctas(k)).unwrap_or(1);
        let of_block = k.schedule.threads.and_then(|e| k.as_int(e)).and_then(|n| u64::try_from(n).ok());
        let outside = ThreadGroup { of_block: of_block.filter(|_| blocks > 1), ..ThreadGroup::default() };
        let within = |s: &Stmt| {
            let StmtData::Role { name, body, .. } = &k.stmts[*s] else { return None };
            let mut found = false;
            k.walk(*body, &mut |_, _, s| found |= wanted(s));
            let first = u64::from(first_warp(k, *s)?) * u64::from(WARP);
            found.then(|| ThreadGroup {
                first,
                role: Some((name.clone(), replicas(k, *s).unwrap_or(1))),
                of_block: None,
            })
        };
        k.blocks[k.body].iter().find_map(within).unwrap_or(outside)
    }

    /// `thread 140 of the block (warp 4, lane 12; thread 12 of role `consumer`)`.
    pub(super) fn thread(&self, number: u64) -> String {
        if let Some(threads) = self.of_block {
            let place = warp_and_lane(number % threads);
            return format!("thread {} of block {} of the cluster ({place})", number % threads, number / threads);
        }
        let own = self.first + number;
        let place = warp_and_lane(own);
        match &self.role {
            Some((name, 1)) => format!("thread {own} of the block ({place}; thread {number} of role `{name}`)"),
            Some((name, n)) => {
                format!(
                    "thread {own} of the block ({place}; thread {number} of the first of {n} replicas of role `{name}`)"
                )
            }
            None => format!("thread {own} ({place})"),
        }
    }

    /// What a picture with numbers of the layout says of them; `None`: they are those of the block.
    pub(super) fn note(&self) -> Option<String> {
        match (&self.role, self.of_block) {
            (Some((name, _)), _) if self.first > 0 => Some(format!(
                "Threads are counted in role `{name}`: its thread 0 is thread {} of the block, its warp 0 warp {}.",
                self.first,
                self.first / u64::from(WARP)
            )),
            (_, Some(threads)) => {
                Some(format!("Threads are counted across the blocks of a cluster, {threads} to each block."))
            }
            _ => None,
        }
    }
}

/// `warp 1, lane 3`.
fn warp_and_lane(thread: u64) -> String {
    let warp = u64::from(WARP);
    format!("warp {}, lane {}", thread / warp, thread % warp)
}
