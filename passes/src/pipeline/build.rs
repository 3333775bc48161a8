//! The statements that pipelined loops are made of.

use crate::analysis::width::{elem_of, window_contiguous_dim};
use crate::assign_layouts::coalesced;
use crate::assign_layouts::{Threads, log2_shape};
use crate::pipeline::planned::{Fill, Plan, Slice};
use crate::rewrite::{Map, Subst, clone_expr, clone_stmt};
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, CopyAttrs, ExprData, Kernel, Mechanism, Slot, StmtData, ValueDef, View};
use tilec_ir::layout::RegLayout;
use tilec_ir::ops::Op;
use tilec_ir::types::ElemClass;
use tilec_ir::typing::resolve_view;

/// One pipelined buffer.
pub(super) struct Lane {
    pub(super) channel: Value,
    /// The registers that its tiles pass through; `None`: they do not.
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
            ty.shape = tile.shape.iter().map(|&e| k.clone_expr(e, &mut |_, _| None)).collect();
            ty.smem_layout = None;
            ty.order = None;
            ty.reg_layout = fill.attrs.threads.clone();
            let name = format!("{}_stage", k.values[fill.buffer].name);
            let stage = k.value(&name, span, ValueDef::Var(ty));
            let integers = elem_of(k, fill.buffer).is_some_and(|e| e.class() == ElemClass::Int);
            let zero = if integers { k.int(0, span) } else { k.expr(ExprData::Float(0f64.to_bits()), span) };
            decls.push(k.stmt(StmtData::Var { value: stage, init: Some(zero) }, span));
            stage
        });
        let slots = k.int(slots as i64, fill.span);
        k.values[fill.buffer].def = ValueDef::Channel { tile, slots };
        Lane { channel: fill.buffer, stage, fill: fill.clone() }
    }

    pub(super) fn any(&self) -> bool {
        true
    }

    /// Whether a tile waits in the staging registers for the next iteration: where it is shifted into place, the assembler
    /// would do that as soon as it has the operands, and wait for them.
    pub(super) fn carried(&self) -> bool {
        self.stage.is_some() && self.fill.attrs.unaligned().is_some()
    }

    /// Whether a tile passes through the staging registers within an iteration.
    pub(super) fn passing(&self) -> bool {
        self.stage.is_some() && !self.carried()
    }
}

/// Which tile of the loop a fetch reads.
#[derive(Copy, Clone)]
pub(super) enum Tile {
    /// The `n`th tile of the loop.
    Nth(u64),
    /// The `n`th after the one that the loop variable names.
    After(u64),
}

pub(super) struct Build<'a> {
    pub(super) k: &'a mut Kernel,
    pub(super) lanes: Vec<Lane>,
    pub(super) channels: Vec<Value>,
    pub(super) var: Value,
    pub(super) start: Expr,
    pub(super) step: Expr,
    /// Tiles that begin here or later are not read; `None`: they read as zero.
    pub(super) end: Option<Expr>,
    pub(super) span: Span,
}

impl Build<'_> {
    fn copy_of(&mut self, e: Expr) -> Expr {
        self.k.clone_expr(e, &mut |_, _| None)
    }

    /// `start + n * step`.
    pub(super) fn offset(&mut self, n: u64) -> Expr {
        let (start, step) = (self.copy_of(self.start), self.copy_of(self.step));
        let n = self.k.int(n as i64, self.span);
        let product = self.k.binary(Op::Mul, n, step, self.span);
        self.k.binary(Op::Add, start, product, self.span)
    }

    /// What the loop variable is for a tile; `None`: itself.
    fn index(&mut self, tile: Tile) -> Option<Expr> {
        match tile {
            Tile::Nth(n) => Some(self.offset(n)),
            Tile::After(0) => None,
            Tile::After(n) => {
                let var = self.k.value_ref(self.var, self.span);
                let step = self.copy_of(self.step);
                let n = self.k.int(n as i64, self.span);
                let distance = self.k.binary(Op::Mul, n, step, self.span);
                Some(self.k.binary(Op::Add, var, distance, self.span))
            }
        }
    }

    pub(super) fn channel_op(&mut self, op: ChannelOp) -> Stmt {
        self.k.stmt(StmtData::Channel { op, channels: self.channels.clone(), pending: None }, self.span)
    }

    /// Waits for the next tile, while the copies of `pending` later ones may be on their way.
    pub(super) fn wait(&mut self, pending: u64) -> Stmt {
        let asynchronous = self.lanes.iter().any(|l| l.stage.is_none());
        let pending = u32::try_from(pending).ok().filter(|n| *n > 0 && asynchronous);
        self.k.stmt(StmtData::Channel { op: ChannelOp::Wait, channels: self.channels.clone(), pending }, self.span)
    }

    /// A fill's window of global memory for `tile`.
    fn source(&mut self, fill: &Fill, tile: Tile) -> Expr {
        let index = self.index(tile);
        let map = Map(index.map(|e| (self.var, Subst::Expr(e))).into_iter().collect());
        clone_expr(self.k, fill.src, &map)
    }

    /// The attributes of a fill of `tile`: what is written, and that nothing is read past the end of the loop.
    fn attrs(&mut self, fill: &Fill, tile: Tile) -> CopyAttrs {
        let written = fill.attrs.when.map(|e| {
            let map = Map(self.index(tile).map(|at| (self.var, Subst::Expr(at))).into_iter().collect());
            clone_expr(self.k, e, &map)
        });
        // The loop itself tests the tile that its variable names.
        let inside = self.end.zip(self.index(tile)).map(|(end, at)| {
            let end = self.copy_of(end);
            self.k.binary(Op::Lt, at, end, self.span)
        });
        let when = match (written, inside) {
            (Some(a), Some(b)) => Some(self.k.binary(Op::And, a, b, self.span)),
            (a, b) => a.or(b),
        };
        CopyAttrs { when, ..fill.attrs.clone() }
    }

    /// The slot being filled.
    fn slot(&mut self, channel: Value, span: Span) -> Expr {
        let view = View { base: channel, slot: Some(Slot::Put), ranges: Vec::new() };
        self.k.expr(ExprData::View(view), span)
    }

    /// Global memory to staging registers, where tiles pass through registers.
    pub(super) fn fetch(&mut self, tile: Tile, which: fn(&Lane) -> bool) -> Vec<Stmt> {
        let mut out = Vec::new();
        for i in 0..self.lanes.len() {
            let Some(stage) = self.lanes[i].stage.filter(|_| which(&self.lanes[i])) else { continue };
            let fill = self.lanes[i].fill.clone();
            let src = self.source(&fill, tile);
            let dst = self.k.value_ref(stage, fill.span);
            let attrs = CopyAttrs { threads: None, ..self.attrs(&fill, tile) };
            out.push(self.k.stmt(StmtData::Copy { src, dst, attrs }, fill.span));
        }
        out
    }

    /// Asks the second-level cache for a tile of unaligned rows, long before it is loaded into staging registers.
    pub(super) fn prefetch(&mut self, tile: Tile) -> Vec<Stmt> {
        let mut out = Vec::new();
        for i in 0..self.lanes.len() {
            let Some(stage) = self.lanes[i].stage.filter(|_| self.lanes[i].carried()) else { continue };
            let fill = self.lanes[i].fill.clone();
            let src = self.source(&fill, tile);
            let dst = self.k.value_ref(stage, fill.span);
            let attrs = self.attrs(&fill, tile);
            let threads = lines(self.k, fill.buffer, src);
            let attrs = CopyAttrs {
                when: attrs.when,
                check: attrs.check,
                threads,
                mechanism: Mechanism::Prefetch,
                ..CopyAttrs::default()
            };
            out.push(self.k.stmt(StmtData::Copy { src, dst, attrs }, fill.span));
        }
        out
    }

    /// Global memory to the acquired slots, where the copies are asynchronous.
    pub(super) fn fill(&mut self, tile: Tile) -> Vec<Stmt> {
        let mut out = Vec::new();
        for i in 0..self.lanes.len() {
            if self.lanes[i].stage.is_some() {
                continue;
            }
            let (channel, fill) = (self.lanes[i].channel, self.lanes[i].fill.clone());
            let src = self.source(&fill, tile);
            let dst = self.slot(channel, fill.span);
            let attrs = CopyAttrs { mechanism: Mechanism::Asynchronous, ..self.attrs(&fill, tile) };
            out.push(self.k.stmt(StmtData::Copy { src, dst, attrs }, fill.span));
        }
        out
    }

    /// Staging registers to the acquired slots.
    pub(super) fn put(&mut self, which: fn(&Lane) -> bool) -> Vec<Stmt> {
        let mut out = Vec::new();
        for i in 0..self.lanes.len() {
            let Some(stage) = self.lanes[i].stage.filter(|_| which(&self.lanes[i])) else { continue };
            let (channel, fill) = (self.lanes[i].channel, self.lanes[i].fill.clone());
            let src = self.k.value_ref(stage, fill.span);
            let dst = self.slot(channel, fill.span);
            let attrs = CopyAttrs { vec: fill.attrs.vec, ..CopyAttrs::default() };
            out.push(self.k.stmt(StmtData::Copy { src, dst, attrs }, fill.span));
        }
        out
    }

    /// A second register tile like `v`.
    pub(super) fn twin(&mut self, v: Value, decls: &mut Vec<Stmt>) -> Value {
        let data = self.k.values[v].clone();
        let ValueDef::Var(mut ty) = data.def else { unreachable!("a fragment is a register tile") };
        ty.shape = ty.shape.iter().map(|&e| self.k.clone_expr(e, &mut |_, _| None)).collect();
        let twin = self.k.value(&format!("{}_next", data.name), data.span, ValueDef::Var(ty));
        decls.push(self.k.stmt(StmtData::Var { value: twin, init: None }, data.span));
        twin
    }

    /// Copies statements of a slice: buffers become their waited slots, fragments those of the parity.
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

    /// Statements that stay as they are, but read the slots that were waited for.
    pub(super) fn kept(&mut self, stmts: &[Stmt]) -> Vec<Stmt> {
        stmts.iter().for_each(|&s| self.read_from_slots(s));
        stmts.to_vec()
    }

    /// In front of the loop: the first `ahead` tiles in slots, and the first of them waited for, its first fragments loaded.
    pub(super) fn prologue(&mut self, plan: &Plan, pairs: &[(Value, Value)], ahead: u64, pending: u64) -> Vec<Stmt> {
        let mut out = Vec::new();
        if plan.rolling() {
            for d in 0..=ahead + PREFETCHED {
                out.extend(self.prefetch(Tile::Nth(d)));
            }
        }
        for d in 0..ahead {
            out.extend(self.fetch(Tile::Nth(d), Lane::any));
            out.push(self.channel_op(ChannelOp::Acquire));
            out.extend(self.fill(Tile::Nth(d)));
            out.extend(self.put(Lane::any));
            out.push(self.channel_op(ChannelOp::Publish));
        }
        if plan.rolling() {
            out.extend(self.fetch(Tile::Nth(ahead), Lane::carried));
        }
        out.push(self.wait(pending));
        if let Some(first) = plan.slices.first().filter(|_| plan.double_buffered) {
            out.extend(self.loads(first, pairs, 0));
        }
        out
    }

    pub(super) fn loads(&mut self, slice: &Slice, pairs: &[(Value, Value)], parity: usize) -> Vec<Stmt> {
        self.copy_all(&slice.loads, pairs, parity)
    }

    /// References to the buffers become references to the waited slots.
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

/// Tiles by which unaligned rows are asked for in front of their loads.
pub(super) const PREFETCHED: u64 = 3;
/// Bytes of a line of the second-level cache.
const LINE: u32 = 128;

/// A thread for each line of a window.
fn lines(k: &Kernel, buffer: Value, src: Expr) -> Option<RegLayout> {
    let shape = k.tile_ty(buffer).and_then(|t| k.const_shape(&t.shape))?;
    let dim = window_contiguous_dim(k, &resolve_view(k, src)?)?;
    let line = LINE / elem_of(k, buffer)?.bytes();
    Threads::of(k).share_out(&shape, &|part, threads| coalesced(&log2_shape(part), dim, line.ilog2(), threads))
}
