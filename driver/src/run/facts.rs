//! Facts about a program for the comparison (tolerances) and for rates (flops, bytes).

use crate::contract::{Contract, Dimension, ParamKind};
use crate::run::bind::Bound;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::ops::Op;
use tilec_ir::types::{Elem, ElemRef};

/// Facts about a kernel as it was written, compile-time parameters bound.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Facts {
    /// Products in the text.
    products: u32,
    /// A product's instruction is written down: the text may be one that a pass wrote, with the loop body several times.
    lowered: bool,
    /// Some product accumulates in f16.
    pub(super) f16_accumulators: bool,
    /// Operations that the device does not round correctly, or that make fractions of whole numbers.
    pub(super) inexact_ops: bool,
}

impl Facts {
    /// The facts about `kernel`.
    pub(super) fn of(kernel: &Kernel) -> Facts {
        let mut facts = Facts::default();
        kernel.walk(kernel.body, &mut |kernel, _, stmt| match &kernel.stmts[stmt] {
            StmtData::Let { init, .. } => facts.expr(kernel, *init),
            StmtData::Var { init, .. } => init.iter().for_each(|e| facts.expr(kernel, *e)),
            StmtData::Assign { src, .. } | StmtData::Copy { src, .. } => facts.expr(kernel, *src),
            StmtData::Alloc { .. }
            | StmtData::For { .. }
            | StmtData::If { .. }
            | StmtData::Channel { .. }
            | StmtData::Barrier
            | StmtData::Fence
            | StmtData::Await { .. }
            | StmtData::Signal { .. }
            | StmtData::Ordered { .. }
            | StmtData::Role { .. } => {}
        });
        facts
    }

    /// The facts about two kernels.
    pub(super) fn and(self, other: &Facts) -> Facts {
        Facts {
            products: self.products + other.products,
            lowered: self.lowered || other.lowered,
            f16_accumulators: self.f16_accumulators || other.f16_accumulators,
            inexact_ops: self.inexact_ops || other.inexact_ops,
        }
    }

    fn expr(&mut self, kernel: &Kernel, e: Expr) {
        match &kernel.exprs[e] {
            ExprData::Mma(mma) => {
                self.products += 1;
                self.lowered |= mma.atom.is_some();
                if let ExprData::Ref(acc) = kernel.exprs[mma.c] {
                    let f16 = |elem| elem == ElemRef::Known(Elem::F16);
                    self.f16_accumulators |= kernel.tile_ty(acc).is_some_and(|tile| f16(tile.elem));
                }
            }
            ExprData::Op { op, .. } => {
                self.inexact_ops |= op.is_function() || *op == Op::Div;
            }
            // Index arithmetic inside a view is exact.
            ExprData::View(_) => return,
            _ => {}
        }
        for child in kernel.children(e) {
            self.expr(kernel, child);
        }
    }

    /// Floating-point operations of the products: two for every point of the space that the sizes of the tensors span that
    /// are read. That is `2 * M * N * K` for a matrix product, once per batch, and once per product of an attention.
    pub(super) fn flops(&self, bound: &Bound, contract: &Contract) -> f64 {
        if self.products == 0 {
            return 0.0;
        }
        let mentioned = |name: &str| {
            let tensors = contract.params.iter().filter_map(|p| p.kind.tensor());
            let read = tensors.filter(|t| t.access.reads());
            read.flat_map(|t| &t.shape).flat_map(Dimension::parts).any(|extent| extent == name)
        };
        let points: f64 = contract
            .params
            .iter()
            .filter(|p| matches!(p.kind, ParamKind::Size { .. }) && mentioned(&p.name))
            .filter_map(|p| bound.values.get(&p.name))
            .map(|v| v.to_f64())
            .product();
        let products = if self.lowered { 1 } else { self.products };
        2.0 * points * f64::from(products)
    }
}
