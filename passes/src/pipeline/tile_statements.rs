//! The statements of an iteration of a pipelined loop, each for one tile.

use crate::analysis::access_width::{elem_of, known_elem, window_contiguous_dim};
use crate::assign_layouts::coalesced;
use crate::assign_layouts::{Threads, log2_shape};
use crate::pipeline::loop_plan::{Fill, Slice};
use crate::rewrite::{Map, Subst, clone_expr, clone_stmt};
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, CopyAttrs, ExprData, Kernel, Mechanism, Slot, StmtData, ValueDef, View};
use tilec_ir::layout::RegLayout;
use tilec_ir::types::{ElemClass, ElemRef};
use tilec_ir::typing::resolve_view;

/// One pipelined buffer.
#[derive(Clone)]
pub(super) struct Lane {
    pub(super) channel: Value,
    /// The staging registers of its tiles; `None`: copies are direct.
    stage: Option<Value>,
    fill: Fill,
}

impl Lane {
    /// Makes the buffer a channel, and declares its staging registers.
    pub(super) fn new(k: &mut Kernel, fill: &Fill, slots: u64, decls: &mut Vec<Stmt>) -> Lane {
        let ValueDef::Smem(tile) = k.values[fill.buffer].def.clone() else { unreachable!("planned on buffers") };
        let stage = (!fill.direct).then(|| {
            let span = fill.span;
            let mut ty = tile.clone();
            ty.shape = tile.shape.iter().map(|&e| k.copy_expr(e)).collect();
            if fill.computed.is_some() {
                let tensor = resolve_view(k, fill.src).expect("what fills a buffer is a window").base;
                ty.elem = ElemRef::Known(known_elem(k, tensor));
            }
            ty.smem_layout = None;
            ty.order = None;
            ty.reg_layout = fill.attrs.threads.clone();
            let integers = matches!(ty.elem, ElemRef::Known(elem) if elem.class() == ElemClass::Int);
            let name = format!("{}_stage", k.values[fill.buffer].name);
            let stage = k.value(&name, span, ValueDef::Var(ty));
            let zero = if integers { k.int(0, span) } else { k.expr(ExprData::Float(0f64.to_bits()), span) };
            decls.push(k.stmt(StmtData::Var { value: stage, init: Some(zero) }, span));
            stage
        });
        let slots = k.int(slots as i64, fill.span);
        k.values[fill.buffer].def = ValueDef::Channel { tile, slots };
        Lane { channel: fill.buffer, stage, fill: fill.clone() }
    }

    /// Whether copies go directly to its slots.
    pub(super) fn direct(&self) -> bool {
        self.stage.is_none()
    }

    /// Whether a tile stays in the staging registers until the next iteration. A tile that must be shifted does,
    /// because the assembler would shift it as soon as possible, and wait for the loads.
    pub(super) fn carried(&self) -> bool {
        self.stage.is_some() && self.fill.attrs.unaligned().is_some()
    }

    /// Whether a tile passes through the staging registers within one iteration.
    pub(super) fn passing(&self) -> bool {
        self.stage.is_some() && !self.carried()
    }
}

/// The statements of an iteration.
pub(super) struct Build<'a> {
    pub(super) k: &'a mut Kernel,
    pub(super) lanes: Vec<Lane>,
    pub(super) channels: Vec<Value>,
    pub(super) span: Span,
}

impl Build<'_> {
    pub(super) fn channel_op(&mut self, op: ChannelOp) -> Stmt {
        self.k.stmt(StmtData::Channel { op, channels: self.channels.clone(), pending: None }, self.span)
    }

    /// The slot being filled.
    fn slot(&mut self, channel: Value, span: Span) -> Expr {
        let view = View { base: channel, slot: Some(Slot::Put), ranges: Vec::new() };
        self.k.expr(ExprData::View(view), span)
    }

    /// Makes a statement for each selected lane, from its fill, channel and staging registers.
    fn each(
        &mut self,
        which: fn(&Lane) -> bool,
        stmt: fn(&mut Self, &Fill, Value, Option<Value>) -> StmtData,
    ) -> Vec<Stmt> {
        let mut out = Vec::new();
        for i in 0..self.lanes.len() {
            if which(&self.lanes[i]) {
                let Lane { channel, stage, fill } = self.lanes[i].clone();
                let data = stmt(self, &fill, channel, stage);
                out.push(self.k.stmt(data, fill.span));
            }
        }
        out
    }

    /// Loads from global memory to staging registers.
    pub(super) fn fetch(&mut self, which: fn(&Lane) -> bool) -> Vec<Stmt> {
        self.each(which, |build, fill, _, stage| {
            let dst = build.k.value_ref(stage.expect("a tile passes through registers"), fill.span);
            let src = clone_expr(build.k, fill.src, &Map::default());
            StmtData::Copy { src, dst, attrs: CopyAttrs { threads: None, ..build.attrs(fill) } }
        })
    }

    /// Prefetches tiles of unaligned rows to the second-level cache, long before they are loaded to staging registers.
    pub(super) fn prefetch(&mut self) -> Vec<Stmt> {
        self.each(Lane::carried, |build, fill, _, stage| {
            let dst = build.k.value_ref(stage.expect("a tile passes through registers"), fill.span);
            let src = clone_expr(build.k, fill.src, &Map::default());
            let threads = lines(build.k, fill.buffer, src);
            let CopyAttrs { when, check, .. } = build.attrs(fill);
            let attrs = CopyAttrs { when, check, threads, mechanism: Mechanism::Prefetch, ..CopyAttrs::default() };
            StmtData::Copy { src, dst, attrs }
        })
    }

    /// Asynchronous copies from global memory to the acquired slots.
    pub(super) fn fill(&mut self) -> Vec<Stmt> {
        self.each(Lane::direct, |build, fill, channel, _| {
            let src = clone_expr(build.k, fill.src, &Map::default());
            let dst = build.slot(channel, fill.span);
            let attrs = CopyAttrs { mechanism: Mechanism::Asynchronous, ..build.attrs(fill) };
            StmtData::Copy { src, dst, attrs }
        })
    }

    /// Stores from staging registers to the acquired slots.
    pub(super) fn put(&mut self, which: fn(&Lane) -> bool) -> Vec<Stmt> {
        self.each(which, |build, fill, channel, stage| {
            let stage = stage.expect("a tile passes through registers");
            let src = build.computed(fill, stage);
            let dst = build.slot(channel, fill.span);
            StmtData::Copy { src, dst, attrs: CopyAttrs { vec: fill.attrs.vec, ..CopyAttrs::default() } }
        })
    }

    /// The value to store in a slot, for a tile in staging registers.
    fn computed(&mut self, fill: &Fill, stage: Value) -> Expr {
        let Some(e) = fill.computed else { return self.k.value_ref(stage, fill.span) };
        let e = clone_expr(self.k, e, &Map::default());
        let mut stack = vec![e];
        while let Some(e) = stack.pop() {
            match resolve_view(self.k, e) {
                Some(_) => self.k.exprs[e] = ExprData::Ref(stage),
                None => stack.extend(self.k.children(e)),
            }
        }
        e
    }

    fn attrs(&mut self, fill: &Fill) -> CopyAttrs {
        let when = fill.attrs.when.map(|e| clone_expr(self.k, e, &Map::default()));
        CopyAttrs { when, ..fill.attrs.clone() }
    }

    /// A second register tile like `v`.
    pub(super) fn twin(&mut self, v: Value, decls: &mut Vec<Stmt>) -> Value {
        let data = self.k.values[v].clone();
        let ValueDef::Var(mut ty) = data.def else { unreachable!("a fragment is a register tile") };
        ty.shape = ty.shape.iter().map(|&e| self.k.copy_expr(e)).collect();
        let twin = self.k.value(&format!("{}_next", data.name), data.span, ValueDef::Var(ty));
        decls.push(self.k.stmt(StmtData::Var { value: twin, init: None }, data.span));
        twin
    }

    /// Copies the statements of a slice: buffers are replaced by their waited slots, fragments by those of this parity.
    pub(super) fn copy_all(&mut self, stmts: &[Stmt], pairs: &[(Value, Value)], parity: usize) -> Vec<Stmt> {
        let mut map = Map::default();
        if parity == 1 {
            map.0.extend(pairs.iter().map(|&(f, twin)| (f, Subst::Value(twin))));
        }
        let out: Vec<Stmt> = stmts.iter().map(|&s| clone_stmt(self.k, s, &mut map)).collect();
        for &s in &out {
            self.read_from_slots(s);
        }
        out
    }

    /// Statements that do not change, except that they read the waited slots.
    pub(super) fn unchanged_statements(&mut self, stmts: &[Stmt]) -> Vec<Stmt> {
        stmts.iter().for_each(|&s| self.read_from_slots(s));
        stmts.to_vec()
    }

    pub(super) fn loads(&mut self, slice: &Slice, pairs: &[(Value, Value)], parity: usize) -> Vec<Stmt> {
        self.copy_all(&slice.loads, pairs, parity)
    }

    /// Replaces references to the buffers by references to the waited slots.
    fn read_from_slots(&mut self, s: Stmt) {
        let mut stack = crate::analysis::uses::stmt_exprs(self.k, s);
        while let Some(e) = stack.pop() {
            stack.extend(self.k.children(e));
            let new = match &self.k.exprs[e] {
                ExprData::Ref(v) if self.channels.contains(v) => {
                    ExprData::View(View { base: *v, slot: Some(Slot::Get), ranges: Vec::new() })
                }
                ExprData::View(view) if self.channels.contains(&view.base) => {
                    ExprData::View(View { slot: Some(Slot::Get), ..view.clone() })
                }
                _ => continue,
            };
            self.k.exprs[e] = new;
        }
        for block in self.k.sub_blocks(s) {
            for inner in self.k.blocks[block].clone() {
                self.read_from_slots(inner);
            }
        }
    }
}

/// Bytes of a line of the second-level cache.
const LINE: u32 = 128;

/// A layout with one thread for each line of a window.
fn lines(k: &Kernel, buffer: Value, src: Expr) -> Option<RegLayout> {
    let shape = k.tile_ty(buffer).and_then(|t| k.const_shape(&t.shape))?;
    let dim = window_contiguous_dim(k, &resolve_view(k, src)?)?;
    let line = elem_of(k, buffer)?.per(LINE);
    Threads::of(k).distribute(&shape, &|part, threads| coalesced(&log2_shape(part), dim, line.ilog2(), threads))
}
