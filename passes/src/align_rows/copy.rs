//! The kernel that copies an operand.

use super::operands::Operand;
use super::rewrite::{aligned, order, own_strides, round_up, rounded, stride_names};
use crate::analysis::uses::for_each_ref;
use std::collections::BTreeMap;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{
    ConstParam, ConstValue, CopyAttrs, ExprData, GridAxis, Kernel, Range, StmtData, ValueDef, View,
};
use tilec_ir::layout::RegLayout;
use tilec_ir::ops::Op;
use tilec_ir::types::{DimStride, ElemRef, Mode, OrderRef, Padded, Strides, TensorTy, TileTy};

/// Elements of a block's tile along the contiguous dimension, and along the other one: 8 KiB of 16-bit elements, so
/// that a block of 128 threads has enough loads in flight.
const ALONG: i64 = 128;
const ACROSS: i64 = 32;
/// Elements of a thread's tile in shared memory, 8 x 8 of which it can transpose in registers.
const THROUGH_SHARED: i64 = 64;

/// Elements of a thread for dimensions of several modes, and the bits of its number: lanes along rows of the copy,
/// lanes across rows, warps across rows.
const OF_THREAD: u32 = 64;
const LANES_ALONG: u32 = 2;
const LANES_ACROSS: u32 = 3;
const WARPS: u32 = 2;

/// Copies values of one kernel into another.
struct Import<'a> {
    from: &'a Kernel,
    to: Kernel,
    values: BTreeMap<Value, Value>,
}

/// A kernel that copies the operand of `k` to a tensor called `rows`. `None`: the operand's type cannot be expressed in
/// it.
pub(super) fn kernel(k: &Kernel, name: String, rows: &str, operand: &Operand) -> Option<Kernel> {
    let mut import = Import { from: k, to: Kernel::new(name), values: BTreeMap::new() };
    import.to.name_span = k.name_span;
    import.constants(operand);
    let ty = k.tensor_ty(operand.tensor)?;
    let tensor = import.tensor(operand, ty)?;
    import.requires(ty)?;
    let rows = import.rows(rows, operand, tensor)?;
    import.body(operand, tensor, rows)?;
    Some(import.to)
}

impl Import<'_> {
    fn declare(&mut self, v: Value, def: ValueDef) -> Value {
        let data = &self.from.values[v];
        let new = self.to.value(&data.name, data.span, def);
        self.values.insert(v, new);
        new
    }

    /// Copies an expression of the other kernel.
    fn expr(&mut self, e: Expr) -> Option<Expr> {
        let span = self.from.expr_spans[e];
        let data = match &self.from.exprs[e] {
            ExprData::Int(x) => ExprData::Int(*x),
            ExprData::Ref(v) => ExprData::Ref(*self.values.get(v)?),
            ExprData::Op { op, args } => {
                let args: Option<Vec<Expr>> = args.iter().map(|&a| self.expr(a)).collect();
                ExprData::Op { op: *op, args: args? }
            }
            _ => return None,
        };
        Some(self.to.expr(data, span))
    }

    /// Copies the compile-time parameters that the operand's type mentions, and those that determine their values.
    fn constants(&mut self, operand: &Operand) {
        let k = self.from;
        let ty = k.tensor_ty(operand.tensor).expect("an operand is a tensor");
        let mut wanted: Vec<Value> = Vec::new();
        if let ElemRef::Param(p) = ty.elem {
            wanted.push(p);
        }
        if let Strides::Ordered(OrderRef::Param(p)) = ty.strides {
            wanted.push(p);
        }
        for e in ty.exprs() {
            for_each_ref(k, e, &mut |v| wanted.push(v));
        }
        for &p in k.const_params.iter().rev() {
            if let (true, ValueDef::ConstParam(ConstParam { default: Some(ConstValue::Same(earlier)), .. })) =
                (wanted.contains(&p), &k.values[p].def)
            {
                wanted.push(*earlier);
            }
        }
        for &p in k.const_params.iter().filter(|p| wanted.contains(p)) {
            let ValueDef::ConstParam(param) = &k.values[p].def else { unreachable!("it is a parameter") };
            let mut param = param.clone();
            if let Some(ConstValue::Same(earlier)) = param.default {
                param.default = self.values.get(&earlier).map(|&v| ConstValue::Same(v));
            }
            let new = self.declare(p, ValueDef::ConstParam(param));
            self.to.const_params.push(new);
        }
    }

    fn tensor(&mut self, operand: &Operand, ty: &TensorTy) -> Option<Value> {
        let k = self.from;
        for e in ty.exprs() {
            let mut sizes = Vec::new();
            for_each_ref(k, e, &mut |v| sizes.push(v));
            for v in sizes {
                if matches!(k.values[v].def, ValueDef::Size) && !self.values.contains_key(&v) {
                    let new = self.declare(v, ValueDef::Size);
                    self.to.sizes.push(new);
                }
            }
        }
        for v in own_strides(k, ty) {
            let new = self.declare(v, ValueDef::Stride);
            self.to.strides.push(new);
        }
        let shape: Option<Vec<Expr>> = ty.shape.iter().map(|&e| self.expr(e)).collect();
        let strides = match &ty.strides {
            Strides::Ordered(OrderRef::Known(order)) => Strides::Ordered(OrderRef::Known(*order)),
            Strides::Ordered(OrderRef::Param(p)) => Strides::Ordered(OrderRef::Param(*self.values.get(p)?)),
            Strides::Explicit(list) => {
                let mode =
                    |cx: &mut Self, m: &Mode| Some(Mode { extent: cx.expr(m.extent)?, stride: cx.expr(m.stride)? });
                let one = |stride: &DimStride| match stride {
                    DimStride::One(e) => self.expr(*e).map(DimStride::One),
                    DimStride::Modes(all) => {
                        all.iter().map(|m| mode(self, m)).collect::<Option<_>>().map(DimStride::Modes)
                    }
                };
                Strides::Explicit(list.iter().map(one).collect::<Option<_>>()?)
            }
        };
        let ld: Option<Vec<Value>> = ty.ld.iter().map(|v| self.values.get(v).copied()).collect();
        let lines = |p: &Padded| {
            let (stride, extent) = (self.values.get(&p.stride).copied()?, self.expr(p.extent)?);
            Some(Padded { stride, extent, behind: self.expr(p.behind)? })
        };
        let padded = ty.padded.iter().map(lines).collect::<Option<_>>()?;
        let multiple = match ty.multiple {
            Some(e) => Some(self.expr(e)?),
            None => None,
        };
        let elem = self.elem(ty.elem)?;
        let ty = TensorTy {
            elem,
            shape: shape?,
            repeats: ty.repeats.clone(),
            padded,
            strides,
            ld: ld?,
            pointers: false,
            constant: false,
            scratch: None,
            align: ty.align,
            multiple,
        };
        let new = self.declare(operand.tensor, ValueDef::Tensor(ty));
        self.to.params.push(new);
        Some(new)
    }

    fn elem(&self, elem: ElemRef) -> Option<ElemRef> {
        Some(match elem {
            ElemRef::Known(elem) => ElemRef::Known(elem),
            ElemRef::Param(p) => ElemRef::Param(*self.values.get(&p)?),
        })
    }

    /// Copies the preconditions that refer only to values of the copy.
    fn requires(&mut self, ty: &TensorTy) -> Option<()> {
        let k = self.from;
        let strides = own_strides(k, ty);
        for &e in &k.requires {
            let (mut known, mut own) = (true, false);
            for_each_ref(k, e, &mut |v| {
                known &= self.values.contains_key(&v);
                own |= strides.contains(&v);
            });
            if known {
                let e = self.expr(e)?;
                self.to.requires.push(e);
            } else if own {
                // It could not be stated anywhere.
                return None;
            }
        }
        Some(())
    }

    fn rows(&mut self, name: &str, operand: &Operand, tensor: Value) -> Option<Value> {
        let k = self.from;
        let of = k.tensor_ty(operand.tensor)?;
        let span = k.values[operand.tensor].span;
        let mut shape: Vec<Expr> = of.shape.iter().map(|&e| self.expr(e)).collect::<Option<_>>()?;
        for d in rounded(of, operand) {
            shape[d] = round_up(&mut self.to, shape[d], operand.multiple, span);
        }
        let order = match order(of, operand) {
            OrderRef::Known(order) => OrderRef::Known(order),
            OrderRef::Param(p) => OrderRef::Param(*self.values.get(&p)?),
        };
        let names = stride_names(name, shape.len());
        let ld: Vec<Value> = names.iter().map(|name| self.to.value(name, span, ValueDef::Stride)).collect();
        self.to.strides.extend(&ld);
        let multiple = self.to.int(i64::from(operand.multiple), span);
        let ty = aligned(self.to.tensor_ty(tensor)?.elem, shape, order, ld, multiple);
        let rows = self.to.value(name, span, ValueDef::Tensor(ty));
        self.to.params.push(rows);
        Some(rows)
    }

    /// The body: a block copies a tile. Elements past the operand read as zero.
    fn body(&mut self, operand: &Operand, tensor: Value, rows: Value) -> Option<()> {
        let of = self.from.tensor_ty(operand.tensor)?;
        let span = self.from.values[operand.tensor].span;
        let rank = of.shape.len();
        let pieces = shared(operand).is_none().then(|| pieces(of, operand)).flatten();
        let extents = match (shared(operand), &pieces) {
            (Some(square), _) => [square; 2],
            (None, Some((extents, _))) => *extents,
            (None, None) => [rank - 2, rank - 1].map(|d| if d == operand.contiguous { ALONG } else { ACROSS }),
        };
        let matrix: Vec<Expr> = of.shape[rank - 2..].iter().map(|&e| self.expr(e)).collect::<Option<_>>()?;
        let batch = of.shape[..rank - 2].iter().map(|&e| self.expr(e)).collect::<Option<Vec<Expr>>>()?;
        let k = &mut self.to;
        let mut axes: Vec<(&str, Expr)> = Vec::with_capacity(3);
        for ((name, e), n) in ["i", "j"].into_iter().zip(matrix).zip(extents) {
            let n = k.int(n, span);
            axes.push((name, k.binary(Op::CeilDiv, e, n, span)));
        }
        let turned = pieces.is_some() && operand.along + 1 == rank;
        if turned {
            // Adjacent blocks write parts of the same sectors. If they run one after the other, the cache combines
            // these writes.
            axes.swap(0, 1);
        }
        // A grid has three dimensions, so all batches share one axis.
        axes.extend(product(k, &batch, span).map(|all| ("z", all)));
        for (name, extent) in axes {
            let index = k.value(name, span, ValueDef::Grid);
            k.grid.push(GridAxis { index, extent });
        }
        let mut blocks: Vec<Value> = k.grid.iter().map(|axis| axis.index).collect();
        if turned {
            blocks.swap(0, 1);
        }
        let shape = extents.iter().map(|&n| k.int(n, span)).collect();
        let elem = k.tensor_ty(tensor)?.elem;
        if pieces.is_some() {
            k.schedule.threads = Some(k.int(1 << (LANES_ALONG + LANES_ACROSS + WARPS), span));
        }
        let tile = TileTy::registers(elem, shape, pieces.map(|(_, layout)| layout));
        let (tile, declared) = if let Some(square) = shared(operand) {
            k.schedule.threads = Some(k.int(square * square / THROUGH_SHARED, span));
            let tile = k.value("t", span, ValueDef::Smem(tile));
            (tile, k.stmt(StmtData::Alloc { value: tile, over: Vec::new() }, span))
        } else {
            let tile = k.value("t", span, ValueDef::Var(tile));
            (tile, k.stmt(StmtData::Var { value: tile, init: None }, span))
        };
        let [from, to] = [tensor, rows].map(|base| window(k, (base, &blocks), extents, &batch, span));
        let (read, written) = (k.value_ref(tile, span), k.value_ref(tile, span));
        let load = k.stmt(StmtData::Copy { src: from, dst: written, attrs: CopyAttrs::default() }, span);
        let store = k.stmt(StmtData::Copy { src: read, dst: to, attrs: CopyAttrs::default() }, span);
        let body = k.body;
        k.blocks[body] = vec![declared, load, store];
        Some(())
    }
}

/// Rows and columns of the 16 KiB tile in shared memory, whose rows are whole cache lines in both directions. It is
/// transposed there. Elements that are read as single bytes are combined to accesses of 16 bytes, which takes more
/// lanes than a warp has.
fn shared(operand: &Operand) -> Option<i64> {
    match operand.multiple {
        16 => Some(128),
        _ => operand.reordered().then_some(64),
    }
}

/// The tile of a block and its register layout, for dimensions of several modes, where addresses follow from the digits
/// of row and column. A thread has a nearly square part, so that it computes the digits of few rows and columns. A row
/// of its part is a store of 16 bytes, and four lanes store 64 neighbours.
fn pieces(of: &TensorTy, operand: &Operand) -> Option<([i64; 2], RegLayout)> {
    let rank = of.shape.len();
    if (0..rank).all(|d| of.modes(d).is_none()) {
        return None;
    }
    let (along, across) = (operand.multiple.ilog2(), (OF_THREAD / operand.multiple).ilog2());
    let bits = |count: u32, first: u32| (first..first + count).map(|bit| 1u64 << bit).collect::<Vec<u64>>();
    // In the element index, bits of the first dimension are below those of the second.
    let rows = across + LANES_ACROSS + WARPS;
    let columns = along + LANES_ALONG;
    let (row, column) = if operand.contiguous + 1 == rank { (0, rows) } else { (columns, 0) };
    let value = [bits(along, column), bits(across, row + LANES_ACROSS + WARPS)].concat();
    let thread = [bits(LANES_ALONG, column + along), bits(LANES_ACROSS + WARPS, row)].concat();
    let layout = RegLayout::new(value, thread, rows + columns)?;
    let (rows, columns) = (1i64 << rows, 1i64 << columns);
    Some((if row == 0 { [rows, columns] } else { [columns, rows] }, layout))
}

/// The product of extents; `None` if there are none.
fn product(k: &mut Kernel, extents: &[Expr], span: Span) -> Option<Expr> {
    let own: Vec<Expr> = extents.iter().map(|&e| k.copy_expr(e)).collect();
    own.into_iter().reduce(|a, b| k.binary(Op::Mul, a, b, span))
}

/// A divisor that is positive: `max(e, 1)`, in case an extent is zero.
fn positive(k: &mut Kernel, e: Expr, span: Span) -> Expr {
    if matches!(k.exprs[e], ExprData::Ref(_)) {
        return e;
    }
    let one = k.int(1, span);
    k.binary(Op::Max, one, e, span)
}

/// The window of a block with the axes `axes` (rows, columns, batches): `X[z, i * m.., j * n..]`; with several batch
/// dimensions `X[z / H, z % H, i * m.., j * n..]`.
fn window(k: &mut Kernel, (base, axes): (Value, &[Value]), extents: [i64; 2], batch: &[Expr], span: Span) -> Expr {
    let mut ranges: Vec<Range> = Vec::new();
    for d in 0..batch.len() {
        let mut at = k.value_ref(axes[2], span);
        if let Some(inner) = product(k, &batch[d + 1..], span) {
            let inner = positive(k, inner, span);
            at = k.binary(Op::Div, at, inner, span);
        }
        if d > 0
            && let Some(own) = product(k, &batch[d..=d], span)
        {
            let own = positive(k, own, span);
            at = k.binary(Op::Rem, at, own, span);
        }
        ranges.push(Range::At(at));
    }
    for (&axis, n) in axes[..2].iter().zip(extents) {
        let (index, n) = (k.value_ref(axis, span), k.int(n, span));
        let start = k.binary(Op::Mul, index, n, span);
        ranges.push(Range::From { start, end: None });
    }
    k.expr(ExprData::View(View { base, slot: None, ranges }), span)
}
