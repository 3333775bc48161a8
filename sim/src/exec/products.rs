//! wgmma products in flight.

use crate::exec::wgmma::operand::Layout;
use crate::numerics::mma::wide::Row;
use crate::program::types::R;
use crate::program::wgmma::{Matrix, Wgmma};
use std::collections::VecDeque;
use std::sync::Arc;

pub(crate) const IN_USE: u8 = 1;

pub(crate) const READ: u8 = 2;

pub(crate) const TOUCHED: u8 = 4;

/// A product on its way.
#[derive(Clone, Debug)]
pub(crate) struct PendingProduct {
    pub(crate) group: u32,
    pub(crate) pc: u32,
    pub(crate) clock: u32,
    pub(crate) op: Arc<Wgmma>,
    /// Number of fences of the warp before it.
    pub(crate) fences: u32,
    /// What is left to do.
    pub(crate) job: Option<Job>,
}

/// A product that has not read its operands.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) a: Result<Box<[Row; 16]>, Layout>,
    pub(crate) b: Layout,
    pub(crate) add: bool,
}

/// The products of a warp.
#[derive(Clone, Debug, Default)]
pub(crate) struct Products {
    pub(crate) flying: VecDeque<PendingProduct>,
    /// Groups committed.
    pub(crate) groups: u32,
    pub(crate) fences: u32,
    pub(crate) issued: u32,
    /// The state of each 32-bit slot, and the slots that were accessed since the last fence.
    pub(crate) state: Vec<u8>,
    pub(crate) touched: Vec<R>,
    /// Number of wgmma instructions so far; the other warps of the group must execute the same.
    pub(crate) steps: usize,
}

impl Products {
    /// Whether some product has not been awaited.
    pub(crate) fn is_busy(&self) -> bool {
        !self.flying.is_empty()
    }

    pub(crate) fn set(&mut self, r: R, n: usize, flag: u8) {
        if self.state.len() < n {
            self.state.resize(n, 0);
        }
        if let Some(state) = self.state.get_mut(r as usize) {
            *state |= flag;
        }
    }

    pub(crate) fn get(&self, r: R) -> u8 {
        self.state.get(r as usize).copied().unwrap_or(0)
    }

    /// Recomputes the flags of registers in flight.
    pub(crate) fn mark(&mut self, n: usize) {
        for state in &mut self.state {
            *state &= TOUCHED;
        }
        for i in 0..self.flying.len() {
            let op = Arc::clone(&self.flying[i].op);
            op.d.iter().for_each(|r| self.set(*r, n, IN_USE));
            if let Matrix::Registers(a) = op.a {
                a.iter().for_each(|r| self.set(*r, n, READ));
            }
        }
    }
}

/// The wgmma instructions that four warps have executed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    /// Number of steps that all four have executed, and number of steps of each.
    pub(crate) done: usize,
    pub(crate) each: [usize; 4],
    pub(crate) steps: VecDeque<Common>,
}

/// Operands that must be equal in all warps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Common {
    pub(crate) pc: u32,
    pub(crate) operands: [u64; 3],
}
