//! Statements: declarations, assignments, loops, branches, channel operations, barriers.

use super::dims::Dims;
use super::emit::Emit;
use super::loops::{Trips, Width};
use super::ranged_ints::{Int, Repr};
use super::register_limit;
use super::state::{Lower, MAX_INSTRUCTIONS};
use super::windows::LoopState;
use crate::inst::{Class, Guard, Inst};
use crate::module::Item;
use crate::ops::Op as P;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Span};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::index::Interval;
use tilec_ir::kernel::{ChannelOp, ExprData, Kernel, Next, Slot, StmtData};
use tilec_ir::layout::UsedRegisters;
use tilec_ir::partial_sums::accumulated;
use tilec_ir::rounding::is_rounded;
use tilec_ir::target::REGISTERS_PER_THREAD;
use tilec_ir::types::{Elem, Lanes};
use tilec_ir::typing::{Type, layout_of, resolve_view, type_of};

/// Most iterations of an unrolled loop.
const MAX_UNROLL: i64 = 4096;

impl Lower<'_> {
    pub(super) fn block(&mut self, b: Block) -> Result<(), Reported> {
        let stmts = self.k.blocks[b].clone();
        let around = self.emit.origin;
        for (i, &s) in stmts.iter().enumerate() {
            self.emit.origin = s.into();
            if self.waits_in_front_of(s) {
                self.prefetch_first_steps(&stmts[i..])?;
                self.wait_in_role();
            }
            self.shift_operands(s);
            match self.k.stmts[s] {
                // The product overwrites the accumulator, so it is not zeroed.
                StmtData::Var { value, init: Some(zero) }
                    if is_zero(self, zero) && stmts.get(i + 1).is_some_and(|&next| self.sums_into(next, value)) =>
                {
                    self.mark(s);
                    self.declare(value, None)?;
                    self.empty = Some(value);
                }
                StmtData::Assign { dst, src }
                    if is_zero(self, src) && stmts.get(i + 1).is_some_and(|&next| self.sums_into(next, dst)) =>
                {
                    self.mark(s);
                    self.empty = Some(dst);
                }
                _ => self.stmt(s)?,
            }
        }
        self.emit.origin = around;
        Ok(())
    }

    /// Prefetches the loads of the first steps of these statements, once in a role.
    fn prefetch_first_steps(&mut self, stmts: &[Stmt]) -> Result<(), Reported> {
        let Some(asking) = self.begin_prefetch() else { return Ok(()) };
        let result = stmts.iter().try_for_each(|&s| self.stmt(s));
        self.end_prefetch(asking);
        result
    }

    fn stmt(&mut self, s: Stmt) -> Result<(), Reported> {
        if self.emit.func.regs.len() > 4 * MAX_INSTRUCTIONS {
            return Err(self.too_long(s));
        }
        if self.prefetch_step.is_some() && !self.is_prefetched(s)? {
            return Ok(());
        }
        self.mark(s);
        self.sync_ctas(s);
        self.load_elements_of(s)?;
        match self.k.stmts[s].clone() {
            StmtData::Alloc { .. } => Ok(()),
            StmtData::Var { value, init } => self.declare(value, init),
            StmtData::Let { value, init } => self.bind(value, init),
            StmtData::Assign { dst, src } => {
                if let ExprData::Mma(mma) = self.k.exprs[src] {
                    return self.product(s, dst, src, &mma);
                }
                let Some(tile) = self.tiles[dst].clone() else {
                    return Err(self.unsupported(src, "an assignment to this"));
                };
                self.parts = self.k.tile_ty(dst).and_then(|t| t.partial.clone()).map(|partial| {
                    let of = accumulated(self.k, dst, partial.op, src);
                    (partial, of.expect("bug: a tile of parts is accumulated, which is verified"))
                });
                let assigned = match self.k.lanes[s] {
                    Some(Lanes::Changing) => self.scale_where_changing(s, &tile, src),
                    _ => self.assign_elementwise(src, &tile, src),
                };
                self.parts = None;
                assigned
            }
            StmtData::Copy { src, dst, attrs } => self.copy(s, src, dst, &attrs),
            StmtData::For { var, start, end, step, cond, next, unroll, body } => {
                if self.k.lanes[s] == Some(Lanes::Spread) {
                    self.await_all(s, var, (start, end, step), body)
                } else if unroll {
                    self.unrolled(s, var, start, end, step, body)
                } else {
                    self.run_loop(s, var, (start, end, step), (cond, next), body)
                }
            }
            StmtData::If { cond, then, otherwise } => self.branch(s, cond, then, otherwise),
            StmtData::Channel { op, channels, pending } => self.channel_op(s, op, &channels, pending),
            StmtData::Barrier => self.barrier(s),
            StmtData::Fence => {
                self.emit.push(P::FenceProxyAsyncSharedCta, []);
                Ok(())
            }
            StmtData::Await { value, pending, after } => {
                self.compute_first(&after);
                if self.accumulates_asynchronously(value) {
                    self.await_products(pending);
                } else if tilec_ir::tensor_store::is_stored(self.k, value) {
                    assert!(self.is_elected(s), "bug: the text does not say which lane awaits a TMA store");
                    self.await_stores(pending);
                }
                Ok(())
            }
            StmtData::Signal { op, signals, index } => self.signal(s, op, signals, index),
            StmtData::Ordered { body } => {
                let turn = self.begin_ordered(s);
                self.block(body)?;
                turn.iter().for_each(|turn| self.end_ordered(turn));
                Ok(())
            }
            StmtData::Role { warps, registers, body, .. } => {
                let entered = self.enter_role(s, warps, registers, body)?;
                self.block(body)?;
                self.leave_role(entered);
                Ok(())
            }
        }
    }

    fn declare(&mut self, value: Value, init: Option<Expr>) -> Result<(), Reported> {
        let span = self.k.values[value].span;
        let ty = self.k.tile_ty(value).cloned().expect("a register tile has a type");
        let shape = self.k.const_shape(&ty.shape).expect("specialised");
        let bits = Dims::of(&shape);
        let layout = ty.reg_layout.expect("assign-layouts gives every register tile a layout");
        let Some(elem) = self.elem(value) else { return Err(self.unsupported_at(span, "this element type")) };
        let all = 1usize << layout.value_bits().min(40);
        let held = UsedRegisters::of(&layout, bits.extents()).map_or(all, |held| held.count(all));
        let words = elem.bytes_of(held as u64) / 4;
        if words > u64::from(REGISTERS_PER_THREAD) {
            let d = register_limit::error(self.k, value, (&shape, elem), words, self.block_threads);
            return Err(self.sink.report(d));
        }
        let by_bytes = elem.bits() == 4 && layout.value_bits() > 0 && self.loaded_by_bytes(value);
        let tile = match by_bytes {
            true => self.new_tile_of_bytes(elem, layout, bits),
            false => self.new_tile(elem, layout, bits, true),
        };
        let Some(tile) = tile else {
            return Err(self.unsupported_at(span, "register tiles of this element type"));
        };
        self.tiles[value] = Some(tile.clone());
        self.choose_bf16_forms(value, &tile);
        self.declare_runs(value, &tile, init.is_some())?;
        match init {
            None => Ok(()),
            Some(e) if is_zero(self, e) => {
                self.zero(&tile);
                Ok(())
            }
            Some(e) => match resolve_view(self.k, e) {
                Some(view) if view.space(self.k).is_memory() => {
                    Err(self.unsupported(e, "an initialiser in memory; use `copy`"))
                }
                _ => self.assign_elementwise(e, &tile, e),
            },
        }
    }

    fn bind(&mut self, value: Value, init: Expr) -> Result<(), Reported> {
        if let ExprData::Combine(combine) = &self.k.exprs[init] {
            self.tuples[value] = self.combined(init, combine)?;
            return Ok(());
        }
        match type_of(self.k, init) {
            Ok(Type::Index) => {
                let x = self.index(init)?;
                self.ints[value] = Some(x);
                Ok(())
            }
            Ok(Type::Scalar(_) | Type::Float) => {
                let mut r = self.scalar(init)?;
                if let Some(elem) = self.elem_of_expr(init).filter(|_| !is_rounded(self.k, init)) {
                    r = self.rounded(init, vec![r], (Some(elem), elem))?[0];
                }
                // The operands may change later, but the name keeps its value.
                self.scalars[value] = Some(self.emit.immutable_copy(r));
                Ok(())
            }
            // A name for a window: nothing to compute.
            Ok(Type::View(_)) => Ok(()),
            // Computed where it is stored.
            Ok(_) if self.deferred.init(value).is_some() => Ok(()),
            Ok(Type::Tile(t)) => {
                let Some(layout) = layout_of(self.k, init) else {
                    return Err(self.without_layout(init, "a tile that meets no register tile"));
                };
                let (Some(shape), Some(tilec_ir::types::ElemRef::Known(elem))) = (t.known_shape(), Some(t.elem)) else {
                    return Err(self.unsupported(init, "this tile"));
                };
                let bits = Dims::of(&shape);
                if layout.out_bits() != bits.iter().sum() {
                    return Err(self.unsupported(init, super::state::NO_WHOLE_TILE));
                }
                if elem == Elem::Bool {
                    self.tiles[value] = Some(self.conditions(init, layout, bits)?);
                    return Ok(());
                }
                let Some(tile) = self.new_tile(elem, layout, bits, true) else {
                    return Err(self.unsupported(init, "register tiles of this element type"));
                };
                self.assign_elementwise(init, &tile, init)?;
                self.tiles[value] = Some(tile);
                Ok(())
            }
            Ok(Type::Bool) => {
                self.scalars[value] = Some(self.condition(init)?);
                Ok(())
            }
            Err(d) => Err(self.sink.report(*d.0)),
        }
    }

    fn unrolled(
        &mut self,
        s: Stmt,
        var: Value,
        start: Expr,
        end: Expr,
        step: Expr,
        body: Block,
    ) -> Result<(), Reported> {
        let (start, end, step) = (self.index(start)?, self.index(end)?, self.index(step)?);
        let (Some(start), Some(end), Some(step)) = (start.as_const(), end.as_const(), step.as_const()) else {
            let span = self.k.stmt_spans[s];
            return Err(self.unsupported_at(span, "an unrolled loop whose bounds are not literals"));
        };
        if step < 1 || (end - start) / step > MAX_UNROLL {
            return Err(self.too_long(s));
        }
        let mut at = start;
        while at < end {
            self.ints[var] = Some(Int::constant(at));
            self.block(body)?;
            at += step;
        }
        self.ints[var] = None;
        Ok(())
    }

    /// Refuses a loop whose indices may not fit a register.
    fn too_far(&mut self, span: Span, step: i64) -> Reported {
        let most = i64::MAX - step;
        let what = "a loop over indices that may be beyond 63 bits";
        let note = format!("end it at `min(END, {most})`, if no launch reaches that far");
        self.sink.report(Diagnostic::error(codes::INDEX_OVERFLOW, span, what).with_note(note))
    }

    /// A loop at run time: tested in front once, then at the end.
    fn run_loop(
        &mut self,
        s: Stmt,
        var: Value,
        (start, end, step): (Expr, Expr, Expr),
        (cond, next): (Option<Expr>, Option<Next>),
        body: Block,
    ) -> Result<(), Reported> {
        let name = self.k.values[var].name.clone();
        let enters = cond.map(|cond| self.condition(cond)).transpose()?;
        let (start, end, step_int) = (self.index(start)?, self.index(end)?, self.index(step)?);
        let Some(step) = step_int.as_const().filter(|x| *x > 0) else {
            return Err(self.unsupported(step, "a loop whose step is not a positive literal"));
        };
        let span = self.k.stmt_spans[s];
        let end = self.end_ahead((start, end), step);
        let Some((start, step)) = self.own_iterations(s, start, step) else {
            return Err(self.too_far(span, step));
        };
        let Some((start, end, width)) = self.width_of_loop(start, end, step) else {
            return Err(self.too_far(span, step));
        };
        if next.is_some() && width == Width::Wide {
            return Err(self.too_far(span, step));
        }
        // Ring positions that the body changes are in registers from here on.
        let changes = Moves::of(self.k, body);
        self.positions_into_registers(&|op, c| changes.list.contains(&(op, c)));

        let skip = self.emit.label(&format!("after_{name}"));
        let head = self.emit.label(&format!("loop_{name}"));
        let outer = self.emit.depth();
        self.emit.push_frame();
        let wide = width == Width::Wide;
        let (class, mov) = if wide { (Class::B64, P::MovB64) } else { (Class::B32, P::MovB32) };
        let counter = self.emit.loop_carried(class, outer + 2);
        let first = if wide { self.as64(start) } else { self.as32(start) };
        self.emit.push(mov, [counter.into(), first]);
        self.emit.push_frame();
        let depth = self.emit.depth();
        self.loops.push(LoopState { var, depth, start, step, steady: next.is_none(), induced: Vec::new() });
        let repr = if wide { Repr::R64(counter) } else { Repr::R32(counter) };
        let apart = if next.is_none() { i128::from(step) } else { 1 };
        let Interval { lo, hi } = Interval::of_loop(start.interval(), end.interval(), apart);
        let index = Int { repr, lo, hi };
        self.ints[var] = Some(index);
        let filling: Vec<u64> = self.rings.iter().map(|r| r.filling).collect();
        // The first iteration may release a slot that was read in front of the loop, and later iterations a slot that
        // the previous one read. If the loop has no iteration, the state in front of it holds after it.
        let before: Vec<bool> = self.rings.iter().map(|r| r.read).collect();
        for i in 0..self.rings.len() {
            let ring = &self.rings[i];
            let later = read_behind(self.k, body, &ring.channels, ring.read);
            self.rings[i].read |= later;
        }
        if let Some(next) = next {
            self.begin_draws(next, end);
        }
        let follows = self.follows;
        let result = self.block(body);
        // A loop may have no iteration.
        self.follows = follows;
        let drawn = next.filter(|_| result.is_ok()).map(|next| self.end_draws(next));
        for (ring, before) in self.rings.iter_mut().zip(before) {
            ring.read |= before;
        }
        let goes_on = cond.filter(|_| result.is_ok()).map(|cond| self.condition(cond)).transpose()?;
        self.ints[var] = None;
        let state = self.loops.pop();
        result?;
        if self.rings.iter().map(|r| r.filling).ne(filling) {
            return Err(self.unsupported_at(span, "a loop that fills part of a slot"));
        }
        self.mark(s);
        let trips = Trips {
            counter,
            index,
            width,
            start,
            end,
            every: step,
            head,
            skip,
            uniform: true,
            while_: enters.zip(goes_on),
            next_tile: drawn,
        };
        self.close_loop(state, trips);
        if self.k.recomputed[s] {
            self.emit.forget();
        }
        Ok(())
    }

    fn branch(&mut self, s: Stmt, cond: Expr, then: Block, otherwise: Option<Block>) -> Result<(), Reported> {
        let holds = self.condition(cond)?;
        let end = self.emit.label("end_if");
        let other = if otherwise.is_some() { self.emit.label("else") } else { end };
        // Positions that the sides advance differently are in registers from here on.
        let sides = [Some(then), otherwise].map(|b| b.map_or_else(Moves::default, |b| Moves::of(self.k, b)));
        if sides[0] != sides[1] || sides.iter().any(|side| side.varies) {
            let moved = |op, c| sides.iter().any(|side| side.list.contains(&(op, c)));
            self.positions_into_registers(&moved);
        }
        let rings = self.rings.clone();
        let recomputed = self.k.recomputed[s];
        let open = |emit: &mut Emit| if recomputed { emit.push_side() } else { emit.push_frame() };
        open(&mut self.emit);
        self.block(then)?;
        let then_items = self.emit.pop_frame();
        let after_then = std::mem::replace(&mut self.rings, rings);
        let mut else_items = Vec::new();
        if let Some(b) = otherwise {
            open(&mut self.emit);
            self.block(b)?;
            else_items = self.emit.pop_frame();
        }
        // The branch follows everything that both sides hoisted in front of it, so that they and later code share it.
        self.emit.push_if(Some(Guard { reg: holds, negated: true }), P::BraUni, [other.into()]);
        self.emit.items(then_items);
        if otherwise.is_some() {
            self.emit.item(Item::Inst(Inst::new(P::BraUni, None, vec![end.into()])));
            self.emit.item(Item::Label(other));
            self.emit.items(else_items);
        }
        let both = || self.rings.iter().zip(&after_then);
        assert!(
            both().all(|(a, b)| a.put == b.put && a.get == b.get),
            "positions that a branch moves live in registers"
        );
        if both().any(|(a, b)| a.filling != b.filling) {
            let span = self.k.stmt_spans[s];
            return Err(self.unsupported_at(span, "a branch that fills part of a slot"));
        }
        for (ring, then) in self.rings.iter_mut().zip(&after_then) {
            ring.read |= then.read;
        }
        self.emit.item(Item::Label(end));
        Ok(())
    }
}

/// The channel operations of a block, in order.
#[derive(Default, PartialEq, Eq)]
struct Moves {
    list: Vec<(ChannelOp, Value)>,
    /// Whether some are executed a variable number of times, or conditionally.
    varies: bool,
}

impl Moves {
    fn of(k: &Kernel, block: Block) -> Moves {
        let mut moves = Moves::default();
        for &s in &k.blocks[block] {
            if let StmtData::Channel { op, channels, .. } = &k.stmts[s] {
                moves.list.extend(channels.iter().map(|&c| (*op, c)));
            }
            let mut inner: Vec<Moves> = k.sub_blocks(s).into_iter().map(|b| Moves::of(k, b)).collect();
            moves.varies |= match k.stmts[s] {
                StmtData::For { .. } => inner.iter().any(|side| !side.list.is_empty()),
                StmtData::If { .. } => {
                    inner.resize_with(2, Moves::default);
                    inner[0] != inner[1] || inner[0].varies
                }
                _ => inner.iter().any(|side| side.varies),
            };
            moves.list.extend(inner.into_iter().flat_map(|side| side.list));
        }
        moves
    }
}

/// Whether threads have read a slot of a ring since its last release, at the end of a block; `read`: at its start.
fn read_behind(k: &Kernel, block: Block, ring: &[Value], mut read: bool) -> bool {
    for &s in &k.blocks[block] {
        match &k.stmts[s] {
            StmtData::Channel { op: ChannelOp::Release, channels, .. } if channels.iter().any(|c| ring.contains(c)) => {
                read = false;
            }
            StmtData::For { body, .. } => read |= read_behind(k, *body, ring, read),
            StmtData::If { then, otherwise, .. } => {
                let then = read_behind(k, *then, ring, read);
                read = then | otherwise.map_or(read, |b| read_behind(k, b, ring, read));
            }
            StmtData::Copy { src, .. } => read |= reads_slot(k, *src, ring),
            _ => {}
        }
    }
    read
}

/// Whether an expression reads the current slot of a ring.
fn reads_slot(k: &Kernel, e: Expr, ring: &[Value]) -> bool {
    let own = resolve_view(k, e).is_some_and(|v| v.slot == Some(Slot::Get) && ring.contains(&v.base));
    own || k.children(e).into_iter().any(|child| reads_slot(k, child, ring))
}

fn is_zero(cx: &Lower<'_>, e: Expr) -> bool {
    matches!(cx.k.exprs[e], ExprData::Int(0)) || matches!(cx.k.exprs[e], ExprData::Float(bits) if bits == 0)
}
