//! `pipeline`: turn shared-memory buffers that a loop fills and reads into channels.
//!
//! A loop whose body starts with copies from global memory into buffers and then multiplies them is software-pipelined:
//! each buffer becomes a channel of `stages` slots, tiles are fetched `stages - 1` iterations ahead through registers
//! (`a_stage`), and fragments are double-buffered across slices and across iterations. With two slots and register
//! staging this needs one barrier per iteration (CUTLASS calls the shape "two-stage pipelined").
//!
//! ```text
//! fetch tile 0; put it; wait                           // prologue
//! for k in STEP..end {                                 // k: the tile being fetched
//!     slices of the waited tile: load fragments one slice ahead, multiply
//!     before the last product: fetch tile k, put it, release, wait, load the first fragments of the next tile
//! }
//! slices of the last tile                              // drain
//! ```
//!
//! Needs: layouts and widths. Declines, with a remark, where the loop has another shape, where one stage is asked for, or
//! where the slots do not fit. Switched off: nothing.

mod plan;

use crate::Cx;
use crate::analysis::uses::all_stmts;
use crate::rewrite::{Map, Subst, clone_expr, clone_stmt};
use plan::{Fill, Plan};
use tilec_ir::diag::{Reported, Span};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, CopyAttrs, ExprData, Kernel, Slot, StmtData, ValueDef, View};
use tilec_ir::ops::Op;

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    if !cx.enabled {
        return Ok(());
    }
    for s in all_stmts(k, k.body) {
        if let StmtData::For { unroll: false, .. } = k.stmts[s] {
            match plan::plan(k, cx, s) {
                Ok(Some(plan)) => apply(k, cx, &plan),
                Ok(None) => {}
                Err(why) => cx.remark(k.stmt_spans[s], format!("loop not pipelined: {why}")),
            }
        }
    }
    Ok(())
}

/// One pipelined buffer.
struct Lane {
    channel: Value,
    stage: Value,
    fill: Fill,
}

fn apply(k: &mut Kernel, cx: &mut Cx<'_>, plan: &Plan) {
    let span = k.stmt_spans[plan.at];
    let StmtData::For { var, start, end, step, .. } = k.stmts[plan.at] else { return };
    let slots = plan.stages;
    let mut decls = Vec::new();
    let lanes: Vec<Lane> = plan
        .fills
        .iter()
        .map(|fill| {
            let ValueDef::Smem(tile) = k.values[fill.buffer].def.clone() else { unreachable!("planned on buffers") };
            let mut stage_ty = tile.clone();
            stage_ty.shape = tile.shape.iter().map(|&e| k.clone_expr(e, &mut |_, _| None)).collect();
            stage_ty.smem_layout = None;
            stage_ty.order = None;
            stage_ty.reg_layout = fill.attrs.threads.clone();
            let name = format!("{}_stage", k.values[fill.buffer].name);
            let stage = k.value(&name, span, ValueDef::Var(stage_ty));
            let zero = k.expr(ExprData::Float(0f64.to_bits()), span);
            decls.push(k.stmt(StmtData::Var { value: stage, init: Some(zero) }, span));
            let slots = k.int(slots as i64, span);
            k.values[fill.buffer].def = ValueDef::Channel { tile, slots };
            Lane { channel: fill.buffer, stage, fill: fill.clone() }
        })
        .collect();
    let channels: Vec<Value> = lanes.iter().map(|l| l.channel).collect();
    let mut build = Build { k, lanes, channels, var, start, step, span };
    let ahead = slots - 1;

    // Second buffers of the fragments that the slices load.
    let pairs: Vec<(Value, Value)> = plan
        .fragments
        .iter()
        .map(|&f| {
            let twin = build.twin(f, &mut decls);
            (f, twin)
        })
        .collect();

    let mut before = Vec::new();
    for d in 0..ahead {
        before.extend(build.fetch(Tile::Ahead(d)));
        before.extend(build.put());
    }
    before.push(build.channel_op(ChannelOp::Wait));
    if let Some(first) = plan.slices.first().filter(|_| plan.double_buffered) {
        before.extend(build.loads(first, &pairs, 0));
    }

    let mut body = build.compute(plan, &pairs, Some(Tile::Current));
    if !plan.double_buffered {
        body.extend(build.turn(Some(Tile::Current)));
    }

    let mut after = Vec::new();
    for d in 0..ahead {
        let more = d + 1 < ahead;
        after.extend(build.compute(plan, &pairs, more.then_some(Tile::None)));
        if !plan.double_buffered && more {
            after.extend(build.turn(None));
        }
    }
    after.push(build.channel_op(ChannelOp::Release));

    let new_body = build.k.block(body);
    let offset = build.offset(ahead);
    let new_loop = StmtData::For { var, start: offset, end, step, unroll: false, body: new_body };
    let names: Vec<String> = channels_text(build.k, &build.channels);
    let k = build.k;
    k.stmts[plan.at] = new_loop;
    let (block, index) = plan.place;
    let mut list = decls;
    list.extend(before);
    list.push(plan.at);
    list.extend(after);
    k.blocks[block].splice(index..=index, list);
    cx.remark(
        span,
        format!(
            "{} become channels of {slots} slots, {} bytes of shared memory; fragments {}",
            names.join(", "),
            plan.bytes,
            if plan.double_buffered { "double-buffered" } else { "loaded per slice" }
        ),
    );
}

fn channels_text(k: &Kernel, channels: &[Value]) -> Vec<String> {
    channels.iter().map(|&c| format!("`{}`", k.values[c].name)).collect()
}

/// Which tile of the loop a fetch reads.
#[derive(Copy, Clone)]
enum Tile {
    /// The `n`th tile of the loop.
    Ahead(u64),
    /// The one that the loop variable names.
    Current,
    /// Nothing is fetched; the next tile is already in a slot.
    None,
}

struct Build<'a> {
    k: &'a mut Kernel,
    lanes: Vec<Lane>,
    channels: Vec<Value>,
    var: Value,
    start: Expr,
    step: Expr,
    span: Span,
}

impl Build<'_> {
    /// `start + n * step`.
    fn offset(&mut self, n: u64) -> Expr {
        let start = self.k.clone_expr(self.start, &mut |_, _| None);
        let step = self.k.clone_expr(self.step, &mut |_, _| None);
        let n = self.k.int(n as i64, self.span);
        let product = self.k.binary(Op::Mul, n, step, self.span);
        self.k.binary(Op::Add, start, product, self.span)
    }

    fn channel_op(&mut self, op: ChannelOp) -> Stmt {
        self.k.stmt(StmtData::Channel { op, channels: self.channels.clone() }, self.span)
    }

    /// Global memory to staging registers.
    fn fetch(&mut self, tile: Tile) -> Vec<Stmt> {
        let index = match tile {
            Tile::Ahead(n) => Some(self.offset(n)),
            Tile::Current => None,
            Tile::None => return Vec::new(),
        };
        (0..self.lanes.len())
            .map(|i| {
                let (stage, fill) = (self.lanes[i].stage, self.lanes[i].fill.clone());
                let map = Map(index.map(|e| (self.var, Subst::Expr(e))).into_iter().collect());
                let src = clone_expr(self.k, fill.src, &map);
                let dst = self.k.value_ref(stage, fill.span);
                let attrs = CopyAttrs { threads: None, ..fill.attrs };
                self.k.stmt(StmtData::Copy { src, dst, attrs }, fill.span)
            })
            .collect()
    }

    /// Staging registers to the next free slot.
    fn put(&mut self) -> Vec<Stmt> {
        let mut out = vec![self.channel_op(ChannelOp::Acquire)];
        for i in 0..self.lanes.len() {
            let (stage, channel, fill) = (self.lanes[i].stage, self.lanes[i].channel, self.lanes[i].fill.clone());
            let src = self.k.value_ref(stage, fill.span);
            let view = View { base: channel, slot: Some(Slot::Put), ranges: Vec::new() };
            let dst = self.k.expr(ExprData::View(view), fill.span);
            let attrs = CopyAttrs { vec: fill.attrs.vec, ..CopyAttrs::default() };
            out.push(self.k.stmt(StmtData::Copy { src, dst, attrs }, fill.span));
        }
        out.push(self.channel_op(ChannelOp::Publish));
        out
    }

    /// Everything that happens between two tiles.
    fn turn(&mut self, fetch: Option<Tile>) -> Vec<Stmt> {
        let mut out = Vec::new();
        if let Some(tile) = fetch {
            out.extend(self.fetch(tile));
            out.extend(self.put());
        }
        out.push(self.channel_op(ChannelOp::Release));
        out.push(self.channel_op(ChannelOp::Wait));
        out
    }

    /// A second register tile like `v`.
    fn twin(&mut self, v: Value, decls: &mut Vec<Stmt>) -> Value {
        let data = self.k.values[v].clone();
        let ValueDef::Var(mut ty) = data.def else { return v };
        ty.shape = ty.shape.iter().map(|&e| self.k.clone_expr(e, &mut |_, _| None)).collect();
        let twin = self.k.value(&format!("{}_next", data.name), data.span, ValueDef::Var(ty));
        decls.push(self.k.stmt(StmtData::Var { value: twin, init: None }, data.span));
        twin
    }

    /// The substitution for slice `index`: buffers become their waited slots, fragments alternate.
    fn slice_map(&self, pairs: &[(Value, Value)], parity: usize) -> Map {
        let mut map = Map::default();
        if parity == 1 {
            map.0.extend(pairs.iter().map(|&(f, twin)| (f, Subst::Value(twin))));
        }
        map
    }

    fn copy_all(&mut self, stmts: &[Stmt], pairs: &[(Value, Value)], parity: usize) -> Vec<Stmt> {
        let mut map = self.slice_map(pairs, parity);
        let out: Vec<Stmt> = stmts.iter().map(|&s| clone_stmt(self.k, s, &mut map)).collect();
        for &s in &out {
            self.read_from_slots(s);
        }
        out
    }

    fn loads(&mut self, slice: &plan::Slice, pairs: &[(Value, Value)], parity: usize) -> Vec<Stmt> {
        self.copy_all(&slice.loads, pairs, parity)
    }

    /// The products of one tile, with loads one slice ahead. `next` says what precedes the loads of the next tile.
    fn compute(&mut self, plan: &Plan, pairs: &[(Value, Value)], next: Option<Tile>) -> Vec<Stmt> {
        let mut out = Vec::new();
        let n = plan.slices.len();
        for (i, slice) in plan.slices.iter().enumerate() {
            if !plan.double_buffered {
                out.extend(self.loads(slice, pairs, 0));
                out.extend(self.copy_all(&slice.products, pairs, 0));
                continue;
            }
            if i + 1 < n {
                out.extend(self.loads(&plan.slices[i + 1], pairs, (i + 1) % 2));
            } else if let Some(tile) = next {
                let fetch = !matches!(tile, Tile::None);
                out.extend(self.turn(fetch.then_some(tile)));
                out.extend(self.loads(&plan.slices[0], pairs, 0));
            }
            out.extend(self.copy_all(&slice.products, pairs, i % 2));
        }
        out
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

/// The block a loop owns.
pub(crate) fn loop_body(k: &Kernel, s: Stmt) -> Option<Block> {
    match k.stmts[s] {
        StmtData::For { body, .. } => Some(body),
        _ => None,
    }
}
