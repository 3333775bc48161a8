//! Statements: their effects on places, channels and global memory.

use super::eval::Val;
use super::tile::{Tile, rounds_in_registers};
use super::{Numbers, arith, errors, roles};
use crate::atomics::Combining;
use crate::codes;
use crate::diag::Span;
use crate::entities::{Block, Expr, Stmt, Value};
use crate::interp::machine::{Binding, Fail, Machine, Ring, fail};
use crate::interp::window::{Root, Round, Window};
use crate::kernel::{ChannelOp, CopyAttrs, ExprData, Next, SignalOp, StmtData, ValueDef};
use crate::types::{Elem, ElemClass, TensorTy, TileTy};
use std::collections::VecDeque;
use std::rc::Rc;

/// Element operations that an iteration of a loop with a condition counts as, in addition to its body.
const COND_WORK: usize = 1 << 11;

impl Machine<'_> {
    /// Runs the statements of a block.
    pub(super) fn block(&mut self, block: Block) -> Result<(), Fail> {
        let k = self.k;
        // Only the kernel's body has roles.
        let ordered = (block == k.body).then(|| roles::in_order(k, &k.blocks[block]));
        for &s in ordered.as_deref().unwrap_or(&k.blocks[block]) {
            self.at = k.stmt_spans[s];
            self.work(0, self.at)?;
            self.stmt(s)?;
        }
        Ok(())
    }

    fn stmt(&mut self, s: Stmt) -> Result<(), Fail> {
        let k = self.k;
        match &k.stmts[s] {
            StmtData::Let { value, init } => self.bind_let(*value, *init),
            StmtData::Var { value, init } => {
                self.allocate(*value)?;
                init.map_or(Ok(()), |init| self.assign(*value, init))
            }
            StmtData::Alloc { value, over } => {
                // The old contents are lost.
                over.iter().try_for_each(|&v| self.allocate(v))?;
                self.allocate(*value)
            }
            StmtData::Assign { dst, src } => self.assign(*dst, *src),
            StmtData::Copy { src, dst, attrs } => {
                self.outside = match attrs.when {
                    Some(cond) => !self.truth(cond)?,
                    None => false,
                };
                (self.check, self.fill, self.apart.now) = (attrs.check.clone(), attrs.fill, attrs.apart);
                self.copy(*src, *dst, attrs)?;
                (self.check, self.outside, self.fill) = (None, false, None);
                Ok(())
            }
            StmtData::For { var, start, end, step, cond, next, body, .. } => {
                self.repeat(*var, [*start, *end, *step], (*cond, *next), *body)
            }
            StmtData::If { cond, then, otherwise } => {
                if self.truth(*cond)? {
                    self.block(*then)
                } else {
                    otherwise.map_or(Ok(()), |b| self.block(b))
                }
            }
            StmtData::Channel { op, channels, .. } => channels.iter().try_for_each(|&c| self.channel(*op, c)),
            StmtData::Barrier | StmtData::Fence | StmtData::Await { .. } => Ok(()),
            StmtData::Signal { op, signals, index } => self.signal(*op, *signals, *index),
            // One after the other is in order.
            StmtData::Ordered { body } => self.block(*body),
            StmtData::Role { name, body, .. } => {
                let outer = std::mem::replace(&mut self.in_role, true);
                let result = self.block(*body);
                self.in_role = outer;
                result.map_err(|d| Box::new(d.with_note(format!("in role `{name}`"))))
            }
        }
    }

    /// Blocks run in the order in which a block may wait for another.
    fn signal(&mut self, op: SignalOp, signals: Value, index: Expr) -> Result<(), Fail> {
        let span = self.span(index);
        let name = &self.k.values[signals].name;
        let at = self.index(index)?;
        let Binding::Global(g) = self.env[signals] else {
            return Err(fail(codes::ILL_FORMED, span, format!("`{name}` is not a tensor")));
        };
        if self.k.tensor_ty(signals).is_some_and(TensorTy::is_of_cluster) {
            return self.signal_in_cluster(op, (signals, g), at, span);
        }
        let place = match &mut self.globals[g].data {
            Numbers::Floats(data) => usize::try_from(at).ok().and_then(|i| data.get_mut(i)),
            Numbers::Wide(_) => return Err(fail(codes::ILL_FORMED, span, format!("`{name}` holds no signals"))),
        };
        let Some(up) = place else {
            return Err(fail(codes::OUT_OF_BOUNDS, span, format!("there is no signal {at} in `{name}`")));
        };
        let wrong = |message: &str| Err(fail(codes::CHANNEL, span, format!("`{name}[{at}]` {message}")));
        match op {
            SignalOp::Raise if *up != 0.0 => wrong("is set already, and nobody has awaited it"),
            SignalOp::Raise => {
                *up = 1.0;
                Ok(())
            }
            SignalOp::Await if *up == 0.0 => {
                wrong("is not set: earlier blocks have ended, so this would wait forever (deadlock)")
            }
            SignalOp::Await => {
                *up = 0.0;
                Ok(())
            }
        }
    }

    /// The same for distributed shared memory. Clusters run one after the other, each with its own tiles.
    fn signal_in_cluster(
        &mut self,
        op: SignalOp,
        (memory, global): (Value, usize),
        at: i64,
        span: Span,
    ) -> Result<(), Fail> {
        let name = &self.k.values[memory].name;
        if !(0..self.globals[global].shape.first().copied().unwrap_or(0)).contains(&at) {
            return Err(fail(codes::OUT_OF_BOUNDS, span, format!("there is no tile {at} in `{name}`")));
        }
        if op == SignalOp::Await {
            self.check_cluster_tile(memory, span)?;
        }
        let passed = self.passed.entry((memory, at)).or_default();
        let wrong = match op {
            SignalOp::Raise if passed.signalled => Some("is signalled already, and a launch passes each tile once"),
            SignalOp::Await if passed.awaited => Some("is awaited already, and a launch passes each tile once"),
            SignalOp::Await if !passed.signalled => {
                Some("is not signalled: earlier blocks have ended, so this would wait forever (deadlock)")
            }
            SignalOp::Await if !passed.stored => {
                Some("is signalled, and nothing is stored to it: this would wait forever (deadlock)")
            }
            _ => None,
        };
        match op {
            SignalOp::Raise => passed.signalled = true,
            SignalOp::Await => passed.awaited = true,
        }
        wrong.map_or(Ok(()), |message| Err(fail(codes::CHANNEL, span, format!("`{name}[{at}]` {message}"))))
    }

    fn bind_let(&mut self, value: Value, init: Expr) -> Result<(), Fail> {
        if let Some(w) = self.window(init)?
            && matches!(w.root, Root::Global(_))
        {
            self.set(value, Binding::Alias(w));
            return Ok(());
        }
        if let ExprData::Combine(combine) = &self.k.exprs[init] {
            let tuples = self.combine(combine, self.span(init))?;
            self.set(value, Binding::Tuples(tuples));
            return Ok(());
        }
        let binding = match self.eval(init, None)? {
            Val::Index(x) => Binding::Index(x),
            // Literals by themselves have no type.
            Val::Tile(t) => Binding::Tile(self.as_elements(t)),
        };
        self.set(value, binding);
        Ok(())
    }

    /// A new place; its elements are uninitialised.
    fn allocate(&mut self, value: Value) -> Result<(), Fail> {
        let k = self.k;
        let span = k.values[value].span;
        self.set(value, Binding::Unset);
        let binding = match &k.values[value].def {
            ValueDef::Var(ty) | ValueDef::Smem(ty) => {
                let (elem, shape, n) = self.tile_type(ty, value)?;
                Binding::Tile(Rc::new(Tile::unwritten(elem, shape, n)))
            }
            ValueDef::Channel { tile, slots } => {
                let (elem, shape, _) = self.tile_type(tile, value)?;
                let slots = usize::try_from(self.index(*slots)?).unwrap_or(0);
                Binding::Channel(Ring { elem, shape, slots, put: None, full: VecDeque::new(), waited: 0 })
            }
            _ => return Err(fail(codes::ILL_FORMED, span, "this is not something to allocate")),
        };
        self.set(value, binding);
        Ok(())
    }

    fn tile_type(&mut self, ty: &TileTy, value: Value) -> Result<(Elem, Vec<usize>, usize), Fail> {
        let span = self.k.values[value].span;
        let elem = self.elem(ty.elem, span)?;
        let shape = self.shape(&ty.shape, span)?;
        let n = self.count(&shape, span)?;
        self.work(n, span)?;
        Ok((elem, shape, n))
    }

    fn assign(&mut self, dst: Value, src: Expr) -> Result<(), Fail> {
        let k = self.k;
        let span = self.span(src);
        let (elem, shape) = match &self.env[dst] {
            Binding::Tile(t) => (t.elem, t.shape.clone()),
            _ => return Err(fail(codes::ILL_FORMED, span, format!("`{}` is not a variable", k.values[dst].name))),
        };
        let mut value = match &k.exprs[src] {
            // The accumulator is the variable itself: it is updated in place.
            ExprData::Mma(m) if k.exprs[m.c] == ExprData::Ref(dst) => {
                let shapes = self.mma_shapes(m, Some(&shape))?;
                let [a, b] = self.operands(m, &shapes)?;
                let Binding::Tile(c) = std::mem::take(&mut self.env[dst]) else {
                    return Err(fail(codes::ILL_FORMED, span, "the accumulator is not a variable"));
                };
                let n = c.data.len();
                let result = self.mma(&a, &b, c, span)?;
                self.live -= n;
                result
            }
            _ => self.tile(src, Some(&shape))?,
        };
        if value.shape != shape {
            if self.join(&value.shape, &shape, span)? != shape {
                let message = format!("a tile of extents {:?} is assigned to one of {shape:?}", value.shape);
                return Err(fail(codes::ILL_FORMED, span, message));
            }
            value = Rc::new(value.broadcast(&shape));
        }
        let sum = matches!(k.exprs[src], ExprData::Mma(_));
        if !sum && (value.elem != elem || value.weak || elem.bits() < 32) {
            // Only sums of products keep their type.
            Rc::make_mut(&mut value).convert(elem);
        } else if value.elem != elem || value.weak {
            let t = Rc::make_mut(&mut value);
            match elem.class() {
                ElemClass::Int => t.convert(elem),
                ElemClass::Float | ElemClass::Bool => (t.elem, t.exact, t.weak) = (elem, false, false),
            }
        }
        self.set(dst, Binding::Tile(value));
        Ok(())
    }

    fn copy(&mut self, src: Expr, dst: Expr, attrs: &CopyAttrs) -> Result<(), Fail> {
        let span = self.at;
        let Some(to) = self.window(dst)? else {
            return Err(fail(codes::ILL_FORMED, self.span(dst), "nothing can be copied to this"));
        };
        let to_shape = self.own_shape(dst, &to);
        let shape = match (self.known_shape(src)?, to_shape) {
            (_, Some(shape)) => shape,
            (Some(shape), None) if !shape.is_empty() => shape,
            _ => {
                let message = "neither side of this copy says how many elements to move";
                return Err(fail(codes::ILL_FORMED, span, message)
                    .with_note("copy through a register tile or shared memory")
                    .into());
            }
        };
        let mut value = match self.window(src)? {
            Some(from) if attrs.keep => Rc::new(self.load_keeping(&from, &to, &shape)?),
            _ => self.tile(src, Some(&shape))?,
        };
        // A prefetch has the same conditions as a load, and no effect.
        if attrs.is_prefetch() {
            return Ok(());
        }
        if value.shape != shape {
            if self.join(&value.shape, &shape, span)? != shape {
                let message = format!("a tile of extents {:?} is copied to one of {shape:?}", value.shape);
                return Err(fail(codes::ILL_FORMED, span, message));
            }
            value = Rc::new(value.broadcast(&shape));
        }
        let register = match to.root {
            Root::Place(v) => matches!(self.k.values[v].def, ValueDef::Var(_)),
            Root::Global(_) | Root::Slot(..) => false,
        };
        let elem = match to.root {
            Root::Global(g) => self.globals[g].elem,
            root => self.place(root, span)?.elem,
        };
        if let Some(op) = attrs.reduce {
            // Atomics on memory operate in its element type.
            if elem.is_float() && !(value.exact && value.elem == elem) {
                self.round(Rc::make_mut(&mut value), elem);
            }
            let mut old = attrs.old.map(|_| Tile::new(elem, shape.clone(), Numbers::zeros(elem, value.data.len())));
            for Round { window: to, shape, places } in to.rounds(&shape) {
                let whole = places.len() == value.data.len();
                let value = if whole { value.clone() } else { Rc::new(value.selected(&places, shape.clone())) };
                if let Some(old) = &mut old {
                    let check = self.check.clone();
                    let mut own = Tile::new(elem, shape.clone(), Numbers::zeros(elem, places.len()));
                    self.load_over(&to, check.as_deref(), &mut own)?;
                    let exists = self.plan(&to, &shape, check.as_deref())?;
                    let mut kept = Vec::new();
                    exists.scatter(|_, i| kept.push((i, places[i])));
                    old.take_over(&own, &kept);
                }
                let mut value = self.combined(op, &to, &value)?;
                if !(value.exact && value.elem == elem) {
                    value.convert(elem);
                }
                self.store(&to, Rc::new(value))?;
            }
            if let Some((place, old)) = attrs.old.zip(old) {
                let Some(place) = self.window(place)? else {
                    return Err(fail(codes::ILL_FORMED, self.span(place), "old values go to shared memory"));
                };
                self.store_place(&place, Rc::new(old))?;
            }
            return Ok(());
        }
        if !(value.exact && value.elem == elem) {
            let t = Rc::make_mut(&mut value);
            if register && !rounds_in_registers(elem) && t.elem == elem && !t.weak {
                (t.elem, t.exact, t.weak) = (elem, false, false);
            } else {
                t.convert(elem);
            }
        }
        if let Root::Global(g) = to.root {
            self.passes(g, &to)?;
        }
        self.store(&to, value)
    }

    /// Writes a tile to memory or to a register tile. The elements have been converted.
    fn store(&mut self, to: &Window, value: Rc<Tile>) -> Result<(), Fail> {
        match to.root {
            Root::Global(_) => {
                let check = self.check.clone();
                self.store_global(to, &value, check.as_deref())
            }
            Root::Place(_) | Root::Slot(..) => self.store_place(to, value),
        }
    }

    /// Loads a tile; elements that do not exist are what the destination holds.
    fn load_keeping(&mut self, from: &Window, to: &Window, shape: &[usize]) -> Result<Tile, Fail> {
        let check = self.check.clone();
        let mut tile = self.load(to, shape, None)?;
        let kept = (tile.elem, tile.exact);
        self.load_over(from, check.as_deref(), &mut tile)?;
        tile.exact &= kept.0 == tile.elem;
        Ok(tile)
    }

    /// The elements at `to` combined with `value` by `op`.
    fn combined(&mut self, how: Combining, to: &Window, value: &Rc<Tile>) -> Result<Tile, Fail> {
        let Some(op) = how.op() else { return Ok(Tile::clone(value)) };
        let check = self.check.clone();
        let old = Rc::new(self.load(to, &value.shape, check.as_deref())?);
        let elem = arith::common_elem(&[old.clone(), value.clone()]);
        let sum = arith::elementwise(op, elem, value.shape.clone(), &[&old, value], self.opts.accuracy.is_some());
        let mut sum = sum.map_err(|why| fail(codes::INDEX_ARITHMETIC, self.at, why.to_string()))?;
        if self.opts.accuracy.is_some() && how == Combining::Add && elem == Elem::F32 {
            errors::allow_flushed(&mut sum, [&old, value]);
        }
        if let (Combining::Min | Combining::Max, Elem::F32 | Elem::F64) = (how, elem) {
            arith::keep_nan(&mut sum, &old, how == Combining::Max);
        }
        Ok(sum)
    }

    fn repeat(
        &mut self,
        var: Value,
        [start, end, step]: [Expr; 3],
        (cond, next): (Option<Expr>, Option<Next>),
        body: Block,
    ) -> Result<(), Fail> {
        let span = self.at;
        let (start, end, step_span) = (self.index(start)?, self.index(end)?, self.span(step));
        let step = self.index(step)?;
        if step < 1 {
            return Err(fail(codes::INDEX_ARITHMETIC, step_span, format!("the step {step} is not at least 1")));
        }
        if let Some(next) = next {
            self.begin_draws(next, end)?;
        }
        let mut i = start;
        while i < end {
            // A loop that ends only by its condition may never end. An iteration of it costs more, so that the run
            // stops after seconds.
            self.work(if cond.is_some() { COND_WORK } else { 0 }, span)?;
            self.at = span;
            if let Some(cond) = cond
                && !self.truth(cond)?
            {
                break;
            }
            self.set(var, Binding::Index(i));
            let name = &self.k.values[var].name;
            self.block(body).map_err(|d| Box::new(d.with_note(format!("at {name} = {i}"))))?;
            let before = match next {
                Some(next) => self.next_number(next)?,
                None => i,
            };
            match before.checked_add(step) {
                Some(next) => i = next,
                None => break,
            }
        }
        Ok(())
    }

    fn channel(&mut self, op: ChannelOp, v: Value) -> Result<(), Fail> {
        let span = self.at;
        let name = &self.k.values[v].name;
        let wrong = |message: String| Err(fail(codes::CHANNEL, span, message));
        let (opts, live, in_role) = (self.opts.memory, self.live, self.in_role);
        let Binding::Channel(ring) = &mut self.env[v] else {
            return wrong(format!("`{name}` is not a channel"));
        };
        let n: usize = ring.shape.iter().product();
        match op {
            ChannelOp::Acquire => {
                if ring.put.is_some() {
                    return wrong(format!("a slot of `{name}` is acquired already and not published"));
                }
                if !in_role && ring.full.len() >= ring.slots {
                    let slots = ring.slots;
                    return wrong(format!("all {slots} slots of `{name}` are still in use: this would wait forever"));
                }
                if live.saturating_add(n) > opts {
                    let message = format!("more than {opts} tile elements are needed at once");
                    return Err(fail(codes::OUT_OF_MEMORY, span, message));
                }
                ring.put = Some(Rc::new(Tile::unwritten(ring.elem, ring.shape.clone(), n)));
                self.live += n;
            }
            ChannelOp::Publish => match ring.put.take() {
                Some(tile) => {
                    ring.full.push_back(tile);
                    self.draw(v)?;
                }
                None => return wrong(format!("no slot of `{name}` is acquired that could be published")),
            },
            ChannelOp::Wait => {
                if ring.waited >= ring.slots {
                    let slots = ring.slots;
                    return wrong(format!("all {slots} slots of `{name}` are held already: this would wait forever"));
                }
                if ring.waited >= ring.full.len() {
                    return wrong(format!("nothing is published on `{name}`: this would wait forever"));
                }
                ring.waited += 1;
            }
            ChannelOp::Release => {
                if ring.waited == 0 {
                    return wrong(format!("no slot of `{name}` was waited for that could be released"));
                }
                ring.waited -= 1;
                ring.full.pop_front();
                self.live -= n;
                self.receive(v);
            }
        }
        Ok(())
    }
}
