//! Structural equality of kernels: the same text up to spans and table numbering.
//!
//! Two kernels are the same if a walk over headers and bodies in step meets the same things with the same names. Used to
//! state that printing and parsing lose nothing, at every stage.

use crate::entities::{Block, Expr, Stmt, Value};
use crate::kernel::{ConstValue, CopyAttrs, ExprData, Kernel, Module, Range, Sequence, StmtData, ValueDef};
use crate::types::{ElemRef, OrderRef, Strides, TensorTy, TileTy};

/// Whether two modules have the same kernels and sequences in the same order.
///
/// # Errors
/// The first difference, in words.
pub fn same_module(a: &Module, b: &Module) -> Result<(), String> {
    check("number of kernels", &a.kernels.len(), &b.kernels.len())?;
    let sequences = |m: &Module| -> Vec<(String, Vec<String>)> {
        let launches = |s: &Sequence| s.launches.iter().map(|(name, _)| name.clone()).collect();
        m.sequences.iter().map(|s| (s.name.clone(), launches(s))).collect()
    };
    check("sequences", &sequences(a), &sequences(b))?;
    a.kernels.iter().zip(&b.kernels).try_for_each(|(a, b)| same(a, b).map_err(|e| format!("kernel {}: {e}", a.name)))
}

/// Whether two kernels are the same.
///
/// # Errors
/// The first difference, in words.
pub fn same(a: &Kernel, b: &Kernel) -> Result<(), String> {
    Pair { a, b }.kernels()
}

fn check<T: PartialEq + std::fmt::Debug>(what: &str, a: &T, b: &T) -> Result<(), String> {
    if a == b { Ok(()) } else { Err(format!("{what}: {a:?} against {b:?}")) }
}

struct Pair<'k> {
    a: &'k Kernel,
    b: &'k Kernel,
}

impl Pair<'_> {
    fn kernels(&self) -> Result<(), String> {
        let (a, b) = (self.a, self.b);
        check("name", &a.name, &b.name)?;
        self.each("compile-time parameters", &a.const_params, &b.const_params, Self::declarations)?;
        self.each("parameters", &a.params, &b.params, Self::declarations)?;
        self.each("sizes", &a.sizes, &b.sizes, Self::declarations)?;
        self.each("strides", &a.strides, &b.strides, Self::declarations)?;
        let demands = |k: &Kernel| k.demands.iter().map(ToString::to_string).collect::<Vec<_>>();
        check("demands", &demands(a), &demands(b))?;
        self.each("preconditions", &a.requires, &b.requires, Self::exprs)?;
        self.each("grid", &a.grid, &b.grid, |s, x, y| {
            s.declarations(x.index, y.index)?;
            s.exprs(x.extent, y.extent)
        })?;
        let (s, t) = (&a.schedule, &b.schedule);
        check("target", &s.target, &t.target)?;
        let items = [
            (s.threads, t.threads),
            (s.k_warps, t.k_warps),
            (s.ctas, t.ctas),
            (s.stages, t.stages),
            (s.raster, t.raster),
            (s.promote, t.promote),
            (s.pending, t.pending),
            (s.ping_pong, t.ping_pong),
            (s.min_ctas, t.min_ctas),
            (s.align_rows, t.align_rows),
            (s.stage_stores, t.stage_stores),
            (s.stream_k, t.stream_k),
            (s.split_k, t.split_k),
            (s.queue, t.queue),
            (s.overlap, t.overlap),
        ];
        items.into_iter().try_for_each(|(x, y)| self.options(x, y))?;
        let tile = |s: &crate::kernel::Schedule| s.warp_tile.map_or(Vec::new(), |(m, n)| vec![m, n]);
        self.each("warp_tile", &tile(s), &tile(t), Self::exprs)?;
        self.each("cluster", &s.cluster, &t.cluster, Self::exprs)?;
        self.blocks(a.body, b.body)
    }

    fn each<T: Copy>(
        &self,
        what: &str,
        a: &[T],
        b: &[T],
        f: impl Fn(&Self, T, T) -> Result<(), String>,
    ) -> Result<(), String> {
        check(&format!("number of {what}"), &a.len(), &b.len())?;
        a.iter().zip(b).try_for_each(|(&x, &y)| f(self, x, y)).map_err(|e| format!("{what}: {e}"))
    }

    fn options(&self, a: Option<Expr>, b: Option<Expr>) -> Result<(), String> {
        match (a, b) {
            (Some(x), Some(y)) => self.exprs(x, y),
            _ => check("presence of an optional part", &a.is_some(), &b.is_some()),
        }
    }

    /// References: names are unique, so equal names are enough.
    fn values(&self, a: Value, b: Value) -> Result<(), String> {
        check("name", &self.a.values[a].name, &self.b.values[b].name)
    }

    fn declarations(&self, a: Value, b: Value) -> Result<(), String> {
        self.values(a, b)?;
        let name = &self.a.values[a].name;
        let result = match (&self.a.values[a].def, &self.b.values[b].def) {
            (ValueDef::ConstParam(x), ValueDef::ConstParam(y)) => {
                check("kind", &x.kind, &y.kind).and_then(|()| match (x.default, y.default) {
                    (Some(ConstValue::Same(v)), Some(ConstValue::Same(w))) => self.values(v, w),
                    (v, w) => check("default", &v, &w),
                })
            }
            (ValueDef::Tensor(x), ValueDef::Tensor(y)) => self.tensors(x, y),
            (ValueDef::Table(x), ValueDef::Table(y)) => {
                self.elems(x.elem, y.elem).and_then(|()| check("numbers", &x.values, &y.values))
            }
            (ValueDef::Scalar { elem: e, default: x }, ValueDef::Scalar { elem: f, default: y }) => {
                self.elems(*e, *f).and_then(|()| self.options(*x, *y))
            }
            (ValueDef::Element { elem: e }, ValueDef::Element { elem: f }) => self.elems(*e, *f),
            (ValueDef::Var(x), ValueDef::Var(y)) | (ValueDef::Smem(x), ValueDef::Smem(y)) => self.tiles(x, y),
            (ValueDef::Channel { tile: x, slots: n }, ValueDef::Channel { tile: y, slots: m }) => {
                self.tiles(x, y).and_then(|()| self.exprs(*n, *m))
            }
            (x, y) => check("kind of value", &std::mem::discriminant(x), &std::mem::discriminant(y)),
        };
        result.map_err(|e| format!("`{name}`: {e}"))
    }

    fn elems(&self, a: ElemRef, b: ElemRef) -> Result<(), String> {
        match (a, b) {
            (ElemRef::Param(x), ElemRef::Param(y)) => self.values(x, y),
            _ => check("element type", &a, &b),
        }
    }

    fn tensors(&self, a: &TensorTy, b: &TensorTy) -> Result<(), String> {
        self.elems(a.elem, b.elem)?;
        check("dimensions that repeat", &a.repeats, &b.repeats)?;
        self.each("shape", &a.shape, &b.shape, Self::exprs)?;
        self.each("leading strides", &a.ld, &b.ld, Self::declarations)?;
        let strides = |t: &TensorTy| t.padded.iter().map(|p| p.stride).collect::<Vec<_>>();
        self.each("padded strides", &strides(a), &strides(b), Self::values)?;
        let bounds = |t: &TensorTy| t.padded.iter().flat_map(|p| [p.extent, p.behind]).collect::<Vec<_>>();
        self.each("padding", &bounds(a), &bounds(b), Self::exprs)?;
        check("array of pointers", &a.pointers, &b.pointers)?;
        check("scratch memory", &a.scratch, &b.scratch)?;
        check("alignment", &a.align, &b.align)?;
        check("constant contents", &a.constant, &b.constant)?;
        self.options(a.multiple, b.multiple)?;
        match (&a.strides, &b.strides) {
            (Strides::Ordered(OrderRef::Param(x)), Strides::Ordered(OrderRef::Param(y))) => self.values(*x, *y),
            (Strides::Explicit(x), Strides::Explicit(y)) => {
                check("number of strides", &x.len(), &y.len())?;
                x.iter().zip(y).try_for_each(|(x, y)| self.each("strides", &x.exprs(), &y.exprs(), Self::exprs))
            }
            (x, y) => check("strides", x, y),
        }
    }

    fn tiles(&self, a: &TileTy, b: &TileTy) -> Result<(), String> {
        self.elems(a.elem, b.elem)?;
        self.each("shape", &a.shape, &b.shape, Self::exprs)?;
        check("order", &a.order, &b.order)?;
        check("register layout", &a.reg_layout, &b.reg_layout)?;
        check("parts of elements", &a.partial, &b.partial)?;
        check("shared-memory layout", &a.smem_layout, &b.smem_layout)
    }

    fn blocks(&self, a: Block, b: Block) -> Result<(), String> {
        self.each("statements", &self.a.blocks[a], &self.b.blocks[b], Self::stmts)
    }

    fn stmts(&self, a: Stmt, b: Stmt) -> Result<(), String> {
        check("schedule of a statement", &self.a.plans[a], &self.b.plans[b])?;
        check("threads of a statement", &self.a.lanes[a], &self.b.lanes[b])?;
        check("what is computed anew", &self.a.recomputed[a], &self.b.recomputed[b])?;
        match (&self.a.stmts[a], &self.b.stmts[b]) {
            (StmtData::Let { value: v, init: x }, StmtData::Let { value: w, init: y }) => {
                self.declarations(*v, *w)?;
                self.exprs(*x, *y)
            }
            (StmtData::Var { value: v, init: x }, StmtData::Var { value: w, init: y }) => {
                self.declarations(*v, *w)?;
                self.options(*x, *y)
            }
            (StmtData::Alloc { value: v, over: x }, StmtData::Alloc { value: w, over: y }) => {
                self.each("buffers taken over", x, y, Self::values)?;
                check("handover of slots", &self.a.handovers[*v], &self.b.handovers[*w])?;
                check("place in shared memory", &self.a.shared_places[*v], &self.b.shared_places[*w])?;
                self.declarations(*v, *w)
            }
            (StmtData::Assign { dst: v, src: x }, StmtData::Assign { dst: w, src: y }) => {
                self.values(*v, *w)?;
                self.exprs(*x, *y)
            }
            (StmtData::Copy { src: x, dst: v, attrs: p }, StmtData::Copy { src: y, dst: w, attrs: q }) => {
                self.exprs(*x, *y)?;
                self.exprs(*v, *w)?;
                let plain = |attrs: &CopyAttrs| CopyAttrs { when: None, old: None, held: Vec::new(), ..attrs.clone() };
                check("attributes of a copy", &plain(p), &plain(q))?;
                self.options(p.when, q.when)?;
                let offsets = |attrs: &CopyAttrs| -> Vec<Vec<i64>> {
                    attrs.held.iter().map(|held| held.offset.clone()).collect()
                };
                check("offsets of held elements", &offsets(p), &offsets(q))?;
                p.held.iter().zip(&q.held).try_for_each(|(p, q)| self.exprs(p.tile, q.tile))?;
                self.options(p.old, q.old)
            }
            (
                StmtData::For { var: v, start: s, end: e, step: t, cond: c, next: n, unroll: u, body: x },
                StmtData::For { var: w, start: s2, end: e2, step: t2, cond: c2, next: m, unroll: u2, body: y },
            ) => {
                check("a drawn loop", &n.is_some(), &m.is_some())?;
                if let Some((n, m)) = n.zip(*m) {
                    self.values(n.channel, m.channel)?;
                    self.values(n.counter, m.counter)?;
                }
                self.declarations(*v, *w)?;
                self.each("loop", &[*s, *e, *t], &[*s2, *e2, *t2], Self::exprs)?;
                self.options(*c, *c2)?;
                check("unroll", u, u2)?;
                self.blocks(*x, *y)
            }
            (StmtData::If { cond: c, then: x, otherwise: o }, StmtData::If { cond: d, then: y, otherwise: p }) => {
                self.exprs(*c, *d)?;
                self.blocks(*x, *y)?;
                match (o, p) {
                    (Some(x), Some(y)) => self.blocks(*x, *y),
                    _ => check("presence of `else`", &o.is_some(), &p.is_some()),
                }
            }
            (
                StmtData::Channel { op: o, channels: x, pending: n },
                StmtData::Channel { op: p, channels: y, pending: m },
            ) => {
                check("channel operation", &(o, n), &(p, m))?;
                check("expected bytes", &self.a.expects[a], &self.b.expects[b])?;
                self.each("channels", x, y, Self::values)
            }
            (
                StmtData::Await { value: v, pending: n, after: x },
                StmtData::Await { value: w, pending: m, after: y },
            ) => {
                self.each("tiles computed before a wait", x, y, Self::values)?;
                check("pending products", n, m)?;
                self.values(*v, *w)
            }
            (StmtData::Signal { op: o, signals: v, index: x }, StmtData::Signal { op: p, signals: w, index: y }) => {
                check("signal", o, p)?;
                self.values(*v, *w)?;
                self.exprs(*x, *y)
            }
            (StmtData::Ordered { body: x }, StmtData::Ordered { body: y }) => {
                check("turns of an ordered statement", &self.a.ordered[a], &self.b.ordered[b])?;
                self.blocks(*x, *y)
            }
            (
                StmtData::Role { name: n, warps: w, replicas: p, registers: r, body: x },
                StmtData::Role { name: m, warps: v, replicas: q, registers: s, body: y },
            ) => {
                check("name of a role", n, m)?;
                self.exprs(*w, *v)?;
                self.options(*p, *q)?;
                self.options(*r, *s)?;
                self.blocks(*x, *y)
            }
            (x, y) => check("kind of statement", &std::mem::discriminant(x), &std::mem::discriminant(y)),
        }
    }

    fn exprs(&self, a: Expr, b: Expr) -> Result<(), String> {
        match (&self.a.exprs[a], &self.b.exprs[b]) {
            (ExprData::Ref(x), ExprData::Ref(y)) => self.values(*x, *y)?,
            (ExprData::Op { op: o, .. }, ExprData::Op { op: p, .. }) => check("operator", o, p)?,
            (ExprData::Cast { elem: e, .. }, ExprData::Cast { elem: f, .. })
            | (ExprData::Bits { elem: e, .. }, ExprData::Bits { elem: f, .. })
            | (ExprData::Round { elem: e, .. }, ExprData::Round { elem: f, .. }) => self.elems(*e, *f)?,
            (ExprData::Reduce { op: o, axis: i, parts: x, .. }, ExprData::Reduce { op: p, axis: j, parts: y, .. }) => {
                check("reduction", &(o, i, x), &(p, j, y))?;
            }
            (
                ExprData::Scan { op: o, axis: i, exclusive: x, totals: t, .. },
                ExprData::Scan { op: p, axis: j, exclusive: y, totals: u, .. },
            ) => check("scan", &(o, i, x, t.map(|t| t.parts)), &(p, j, y, u.map(|u| u.parts)))?,
            (ExprData::Iota { axis: i, .. }, ExprData::Iota { axis: j, .. })
            | (ExprData::Concat { axis: i, .. }, ExprData::Concat { axis: j, .. }) => check("axis", i, j)?,
            (ExprData::Reshape { shape: x, numbered: n, .. }, ExprData::Reshape { shape: y, numbered: m, .. }) => {
                check("dimensions", &(x.len(), n), &(y.len(), m))?;
            }
            (ExprData::Permute { order: x, .. }, ExprData::Permute { order: y, .. }) => {
                check("order of dimensions", x, y)?
            }
            (ExprData::Lookup { table: x, .. }, ExprData::Lookup { table: y, .. }) => self.values(*x, *y)?,
            (ExprData::Combine(x), ExprData::Combine(y)) => {
                check(
                    "how tuples are combined",
                    &(x.operation, x.axis, x.args.len(), x.front.len()),
                    &(y.operation, y.axis, y.args.len(), y.front.len()),
                )?;
                self.each("components of the first tuple", &x.first, &y.first, Self::declarations)?;
                self.each("components of the second tuple", &x.second, &y.second, Self::declarations)?;
                self.each("names of what is computed of tuples", &x.locals, &y.locals, Self::declarations)?;
            }
            (ExprData::Part { index: i, .. }, ExprData::Part { index: j, .. }) => check("component", i, j)?,
            (ExprData::Transpose(_), ExprData::Transpose(_)) | (ExprData::Index(_), ExprData::Index(_)) => {}
            (ExprData::Mma(x), ExprData::Mma(y)) => check("atom", &(x.atom, x.swap), &(y.atom, y.swap))?,
            (ExprData::View(x), ExprData::View(y)) => {
                self.values(x.base, y.base)?;
                check("slot", &x.slot, &y.slot)?;
                let form = |r: &Range| match r {
                    Range::At(_) => 0,
                    Range::From { end, .. } => 1 + u8::from(end.is_some()),
                    Range::Gather(_) => 3,
                };
                let forms = |ranges: &[Range]| ranges.iter().map(form).collect::<Vec<_>>();
                check("ranges", &forms(&x.ranges), &forms(&y.ranges))?;
            }
            // Literals compare whole; different kinds differ.
            (x, y) => check("expression", x, y)?,
        }
        self.each("operands", &self.a.children(a), &self.b.children(b), Self::exprs)
    }
}
