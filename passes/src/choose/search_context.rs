//! Facts that all candidates of a kernel share.

use super::cards::Card;
use super::illegal::Illegal;
use super::work::{Env, Move, Product, Work};
use crate::pipeline;
use crate::select_mma::best_atom;
use crate::select_mma::warpgroup::{self, WgmmaForm};
use tilec_ir::atoms::Atom;
use tilec_ir::entities::Stmt;
use tilec_ir::target::Target;
use tilec_ir::types::Elem;

/// Fast paths that are assumed, although the kernel lacks them.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct AssumedPaths<'a> {
    /// Products that count as wgmma.
    pub(super) wgmma: &'a [Stmt],
    /// Copies whose accesses to global memory count as 16 bytes wide.
    pub(super) wide: &'a [Stmt],
    /// Copies whose accesses count with their real width, although they are usually assumed wide (`asked`).
    pub(super) narrow: &'a [Stmt],
}

/// Facts that all candidates share.
pub(super) struct SearchContext<'a> {
    pub(super) work: &'a Work<'a>,
    pub(super) target: Target,
    pub(super) card: &'a Card,
    /// The dimensions along which some tile of the kernel is reduced.
    pub(super) reduced: &'a [usize],
    /// Whether products may use tensor cores.
    pub(super) tensor_cores: bool,
    /// How wgmma products are computed, if products use wgmma.
    pub(super) warpgroups: Option<WgmmaForm>,
    /// Whether results may be stored by TMA from a buffer.
    pub(super) stage_stores: bool,
    /// Whether blocks share tiles along the reduction; `None`: if it is faster.
    pub(super) stream_k: Option<bool>,
    /// Blocks of a cluster that share a tile along the reduction, from the schedule.
    pub(super) split_k: Option<i64>,
    /// Assumed fast paths.
    pub(super) supposed: AssumedPaths<'a>,
    /// Whether the tiles of a thread may exceed the estimated number of registers, because nothing better is legal: the
    /// assembler decides, and may spill.
    pub(super) crowded: bool,
}

impl<'a> SearchContext<'a> {
    /// The same setting with these assumptions.
    pub(super) fn assuming(self, supposed: AssumedPaths<'a>) -> SearchContext<'a> {
        SearchContext { supposed, ..self }
    }
}

impl SearchContext<'_> {
    /// The products of the kernel, in the order of its regions.
    pub(super) fn products(&self) -> impl Iterator<Item = &Product> {
        self.work.products()
    }

    /// The tiles that move from or to global memory.
    pub(super) fn moves(&self) -> impl Iterator<Item = &Move> {
        self.work.moves()
    }

    /// Whether a product with large enough extents is scalar, and its multiply-adds per clock and multiprocessor.
    pub(super) fn fastest(&self, product: &Product) -> (bool, f64) {
        let types = (product.inputs, product.acc);
        let best = || match self.warpgroups {
            Some(_) => warpgroup::atom(self.target, types),
            None => best_atom(self.target, self.tensor_cores, types, (64, 64, 64)),
        };
        match product.atom.or_else(best) {
            Some(atom) => (!atom.row().tensor_core, self.card.rate(atom, product.inputs, product.acc)),
            None => (true, f64::INFINITY),
        }
    }

    /// The number of stages in the schedule with the values of `env`.
    pub(super) fn stages(&self, env: &Env) -> Result<u64, Illegal> {
        let stages = match self.work.k.schedule.stages {
            Some(e) => self.work.extent(env, e).ok_or(Illegal::Stages)?,
            None => pipeline::usual_slots(self.target.has_asynchronous_copies(), true),
        };
        if (1..=pipeline::MAX_SLOTS).contains(&stages) { Ok(stages) } else { Err(Illegal::Stages) }
    }

    /// Whether the schedule requests ping-pong warpgroups.
    pub(super) fn ping_pong(&self, env: &Env) -> bool {
        self.work.k.schedule.ping_pong.and_then(|e| self.work.int(env, e)) == Some(1)
    }

    /// The depth after which the sums of products are promoted, if they are.
    pub(super) fn promoted(&self, env: &Env, atom: Atom, acc: Elem) -> Result<Option<u64>, Illegal> {
        let scheduled = match self.work.k.schedule.promote {
            Some(e) => Some(self.work.int(env, e).and_then(|n| u64::try_from(n).ok()).ok_or(Illegal::Promotion)?),
            None => None,
        };
        Ok(warpgroup::promoted(atom, acc, scheduled))
    }
}
