//! TMA stores: TMA copies a buffer to a window of a tensor, or reduces it into the window.
//!
//! One lane requests the boxes as a bulk group, and waits until they are read: `elect.sync` elects the same lane
//! each time (PTX ISA 9.7.13.14). TMA reads shared memory through the async proxy, so a `fence async` follows the writes of threads.

use super::state::Lower;
use crate::inst::{Class, Guard, Operand, Reg};
use crate::module::Item;
use crate::ops::Op as P;
use tilec_ir::atomics::Combining;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::target::MAX_TENSOR_RANK;

/// Instructions for boxes of one to five dimensions: those that store, and those that combine.
const STORES: [(Option<Combining>, [P; MAX_TENSOR_RANK]); 4] = [
    (
        None,
        [
            P::CpAsyncBulkTensorStore1d,
            P::CpAsyncBulkTensorStore2d,
            P::CpAsyncBulkTensorStore3d,
            P::CpAsyncBulkTensorStore4d,
            P::CpAsyncBulkTensorStore5d,
        ],
    ),
    (
        Some(Combining::Add),
        [
            P::CpReduceAsyncBulkTensorAdd1d,
            P::CpReduceAsyncBulkTensorAdd2d,
            P::CpReduceAsyncBulkTensorAdd3d,
            P::CpReduceAsyncBulkTensorAdd4d,
            P::CpReduceAsyncBulkTensorAdd5d,
        ],
    ),
    (
        Some(Combining::Min),
        [
            P::CpReduceAsyncBulkTensorMin1d,
            P::CpReduceAsyncBulkTensorMin2d,
            P::CpReduceAsyncBulkTensorMin3d,
            P::CpReduceAsyncBulkTensorMin4d,
            P::CpReduceAsyncBulkTensorMin5d,
        ],
    ),
    (
        Some(Combining::Max),
        [
            P::CpReduceAsyncBulkTensorMax1d,
            P::CpReduceAsyncBulkTensorMax2d,
            P::CpReduceAsyncBulkTensorMax3d,
            P::CpReduceAsyncBulkTensorMax4d,
            P::CpReduceAsyncBulkTensorMax5d,
        ],
    ),
];

impl Lower<'_> {
    /// Issues the TMA stores of a buffer's boxes, or reductions into the window.
    pub(super) fn store_tensor(&mut self, s: Stmt, src: Expr, combine: Option<Combining>) -> Result<(), Reported> {
        let (window, tile, map) = self.mapped_sides(s, src)?;
        assert!(self.is_elected(s), "bug: the text does not say which lane issues a TMA store");
        let Some(placed) = self.placed[tile.base].filter(|p| p.ring.is_none()) else {
            return Err(self.unfit(src, "a TMA store out of other than a buffer"));
        };
        let starts = self.tensor_starts(&window)?;
        // TMA stores with a negative start are undefined, whereas loads give zero (PTX ISA 5.5.3).
        if starts.iter().any(|x| x.lo < 0) {
            return Err(self.unfit(
                src,
                "a TMA store to a window that may begin in front of the tensor; without `tma` threads store",
            ));
        }
        let boxes: Vec<(Operand, Operand)> = map
            .boxes
            .places
            .iter()
            .map(|(start, offset)| {
                let from = Operand::shared(0, (placed.offset + offset) as i64);
                (self.tensor_box(&map, &window, (&starts, None), start), from)
            })
            .collect();
        let (_, ops) = STORES.iter().find(|(op, _)| *op == combine).expect("the verifier knows what TMA combines");
        let op = ops[map.rank() - 1];
        self.by_one_lane(&mut |this, elected| {
            let guard = Some(Guard { reg: elected, negated: false });
            for (to, from) in &boxes {
                this.emit.push_if(guard, op, [to.clone(), from.clone()]);
            }
            this.emit.push_if(guard, P::CpAsyncBulkCommitGroup, []);
        });
        Ok(())
    }

    /// The lane that issued the stores waits until all but the last `pending` groups have read their buffers.
    pub(super) fn await_stores(&mut self, pending: u32) {
        self.by_one_lane(&mut |this, elected| {
            let guard = Some(Guard { reg: elected, negated: false });
            let pending = Operand::Imm(i64::from(pending.min(255)));
            this.emit.push_if(guard, P::CpAsyncBulkWaitGroupRead, [pending]);
        });
    }

    /// Emits instructions for the first warp of the role (or block), under a predicate that holds in one lane.
    fn by_one_lane(&mut self, body: &mut dyn FnMut(&mut Self, Reg)) {
        let (warp, first) = match self.part.filter(|p| p.replicas > 1) {
            Some(part) => (self.warp_in_replica(part), 0),
            None => (self.warp_index(), i64::from(self.role_first_warp())),
        };
        let first = Operand::Imm(first);
        let other = self.emit.pure(Class::Pred, P::SetpNeS32, [warp.into(), first]);
        let done = self.emit.label("asked");
        self.emit.push_frame();
        let elected = self.emit.reg(Class::Pred);
        self.emit.push(P::ElectSync, [Operand::Elected(elected), Operand::Imm(0xffff_ffff)]);
        body(self, elected);
        let items = self.emit.pop_frame();
        self.emit.push_if(Some(Guard { reg: other, negated: false }), P::BraUni, [done.into()]);
        self.emit.items(items);
        self.emit.item(Item::Label(done));
    }
}
