//! The state of a run.

use crate::codes;
use crate::diag::{Code, Diagnostic, Span};
use crate::entities::{Expr, Value};
use crate::interp::bounds::Bound;
use crate::interp::element_addresses::DimSteps;
use crate::interp::inputs::{EVERY, Errors, Inputs, Options};
use crate::interp::numbers::{Number, Numbers};
use crate::interp::tile::Tile;
use crate::interp::window::{Global, Lines, Root, Window};
use crate::kernel::{ConstKind, ConstParam, ConstValue, ExprData, Kernel, Slot, ValueDef};
use crate::literal::Literal;
use crate::ops::Op;
use crate::padded;
use crate::types::{DimStride, Elem, ElemRef, Mode, Order, OrderRef, Padded, Scratch, Strides, TensorTy};
use cranelift_entity::SecondaryMap;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Instant;

/// Errors are rare and large.
pub(super) type Fail = Box<Diagnostic>;

pub(super) fn fail(code: Code, span: Span, message: impl Into<String>) -> Fail {
    Box::new(Diagnostic::error(code, span, message))
}

/// What a name is currently bound to.
#[derive(Clone, Debug, Default)]
pub(super) enum Binding {
    /// Its declaration has not been executed.
    #[default]
    Unset,
    /// An integer of the index arithmetic.
    Index(i64),
    /// A scalar or tile: a `let`, or the content of a register tile or buffer.
    Tile(Rc<Tile>),
    /// A tensor, by its number.
    Global(usize),
    /// A `let` that names a view.
    Alias(Window),
    /// A `let` of tuples: a tile for each component.
    Tuples(Vec<Rc<Tile>>),
    /// A channel.
    Channel(Ring),
}

/// A channel: the slots in flight, oldest first.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    pub(super) elem: Elem,
    pub(super) shape: Vec<usize>,
    pub(super) slots: usize,
    /// Acquired, not yet published.
    pub(super) put: Option<Rc<Tile>>,
    /// Published, not yet released.
    pub(super) full: VecDeque<Rc<Tile>>,
    /// How many of `full` have been waited for: the last of these is read, the first is released next.
    pub(super) waited: usize,
}

impl Binding {
    /// Tile elements held.
    pub(super) fn elements(&self) -> usize {
        match self {
            Binding::Tile(t) => t.data.len(),
            Binding::Tuples(tiles) => tiles.iter().map(|t| t.data.len()).sum(),
            Binding::Channel(r) => {
                let slots = r.full.len() + usize::from(r.put.is_some());
                slots * r.shape.iter().product::<usize>()
            }
            Binding::Unset | Binding::Index(_) | Binding::Global(_) | Binding::Alias(_) => 0,
        }
    }
}

/// The numbers of a work queue, which a channel passes on.
#[derive(Default)]
pub(super) struct QueueState {
    /// The counter, among the tensors.
    pub(super) counter: usize,
    /// The last number that is drawn before the counter begins anew.
    pub(super) last: i64,
    /// Published and not yet released numbers.
    pub(super) queue_numbers: VecDeque<i64>,
    /// The number that the running role drew or read last.
    pub(super) now: Option<i64>,
}

/// The state of a tile of distributed shared memory.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct ClusterTile {
    pub(super) stored: bool,
    pub(super) signalled: bool,
    pub(super) awaited: bool,
}

pub(super) struct Machine<'k> {
    pub(super) k: &'k Kernel,
    pub(super) opts: Options,
    pub(super) env: SecondaryMap<Value, Binding>,
    pub(super) consts: SecondaryMap<Value, Option<ConstValue>>,
    pub(super) globals: Vec<Global>,
    pub(super) fuel: u64,
    /// Tile elements that names hold.
    pub(super) live: usize,
    /// Nesting of the expression being evaluated.
    pub(super) depth: u32,
    /// Inside a role: rings then have no bound, since roles do not really run side by side.
    pub(super) in_role: bool,
    /// The dimensions that the current copy tests; `None`: all.
    pub(super) check: Option<Vec<u32>>,
    /// The value of elements outside the bounds in the current copy; `None`: zero.
    pub(super) fill: Option<Literal>,
    /// The condition of the present copy does not hold: nothing in global memory is inside the bounds.
    pub(super) outside: bool,
    /// Whether an element is read of which an index is made.
    pub(super) of_index: bool,
    /// The state of the cluster's tiles in distributed shared memory.
    pub(super) passed: BTreeMap<(Value, i64), ClusterTile>,
    /// Whether the block is the last of its cluster, which holds these tiles.
    pub(super) last_of_cluster: bool,
    /// Elements written by stores with `apart`.
    pub(super) apart: super::disjoint_stores::Stored,
    /// The numbers that loops draw, by the channel that passes them on.
    pub(super) draws: BTreeMap<Value, QueueState>,
    /// The statement being executed.
    pub(super) at: Span,
}

impl Machine<'_> {
    /// The span of an expression, or of the statement around it.
    pub(super) fn span(&self, e: Expr) -> Span {
        let span = self.k.expr_spans[e];
        if span.is_none() { self.at } else { span }
    }

    /// Burns fuel for `n` element operations.
    pub(super) fn work(&mut self, n: usize, span: Span) -> Result<(), Fail> {
        match self.fuel.checked_sub((n as u64).saturating_add(1)) {
            Some(left) => {
                let look = self.fuel / EVERY != left / EVERY;
                self.fuel = left;
                match self.opts.deadline.filter(|_| look) {
                    Some(deadline) if Instant::now() >= deadline => {
                        Err(fail(codes::LAUNCH_TIMEOUT, span, "the program did not end in time"))
                    }
                    _ => Ok(()),
                }
            }
            None => {
                let message = format!("not finished after {} element operations", self.opts.fuel);
                Err(fail(codes::OUT_OF_FUEL, span, message))
            }
        }
    }

    /// The number of elements of a tile that is to be made.
    pub(super) fn count(&self, shape: &[usize], span: Span) -> Result<usize, Fail> {
        let n = shape.iter().try_fold(1, |n: usize, &x| n.checked_mul(x));
        let fits = |n: &usize| n.checked_add(self.live).is_some_and(|n| n <= self.opts.memory);
        n.filter(fits).ok_or_else(|| {
            let message = format!("more than {} tile elements are needed at once", self.opts.memory);
            fail(codes::OUT_OF_MEMORY, span, message)
        })
    }

    pub(super) fn set(&mut self, v: Value, binding: Binding) {
        self.live = self.live + binding.elements() - self.env[v].elements();
        self.env[v] = binding;
    }

    /// The content of a place.
    pub(super) fn place(&self, root: Root, span: Span) -> Result<&Rc<Tile>, Fail> {
        let (v, tile) = match root {
            Root::Global(g) => (self.globals[g].value, None),
            Root::Place(v) => match &self.env[v] {
                Binding::Tile(t) => (v, Some(t)),
                _ => (v, None),
            },
            Root::Slot(v, slot) => match (&self.env[v], slot) {
                (Binding::Channel(r), Slot::Put) => (v, r.put.as_ref()),
                (Binding::Channel(r), Slot::Get) => (v, r.waited.checked_sub(1).and_then(|newest| r.full.get(newest))),
                _ => (v, None),
            },
        };
        tile.ok_or_else(|| self.no_slot(v, root, span))
    }

    /// The content of a place, for modification. Its size is kept.
    pub(super) fn place_mut(&mut self, root: Root, span: Span) -> Result<&mut Rc<Tile>, Fail> {
        self.place(root, span)?;
        let tile = match root {
            Root::Global(_) => None,
            Root::Place(v) | Root::Slot(v, _) => match (&mut self.env[v], root) {
                (Binding::Tile(t), _) => Some(t),
                (Binding::Channel(r), Root::Slot(_, Slot::Put)) => r.put.as_mut(),
                (Binding::Channel(r), _) => r.waited.checked_sub(1).and_then(|newest| r.full.get_mut(newest)),
                _ => None,
            },
        };
        tile.ok_or_else(|| fail(codes::ILL_FORMED, span, "nothing can be stored here"))
    }

    pub(super) fn no_slot(&self, v: Value, root: Root, span: Span) -> Fail {
        let name = &self.k.values[v].name;
        match root {
            Root::Slot(_, Slot::Put) => fail(codes::CHANNEL, span, format!("no slot of `{name}` is acquired here")),
            Root::Slot(_, Slot::Get) => fail(codes::CHANNEL, span, format!("no slot of `{name}` was waited for here")),
            Root::Place(_) | Root::Global(_) => {
                fail(codes::ILL_FORMED, span, format!("`{name}` has no content of its own here"))
            }
        }
    }

    pub(super) fn elem(&self, elem: ElemRef, span: Span) -> Result<Elem, Fail> {
        match elem {
            ElemRef::Known(elem) => Ok(elem),
            ElemRef::Param(v) => match self.consts[v] {
                Some(ConstValue::Elem(elem)) => Ok(elem),
                _ => Err(fail(codes::ILL_FORMED, span, format!("`{}` is no element type", self.k.values[v].name))),
            },
        }
    }

    pub(super) fn order(&self, order: OrderRef, span: Span) -> Result<Order, Fail> {
        match order {
            OrderRef::Known(order) => Ok(order),
            OrderRef::Param(v) => match self.consts[v] {
                Some(ConstValue::Order(order)) => Ok(order),
                _ => Err(fail(codes::ILL_FORMED, span, format!("`{}` is no order", self.k.values[v].name))),
            },
        }
    }

    /// The extents of a tile.
    pub(super) fn shape(&mut self, shape: &[Expr], span: Span) -> Result<Vec<usize>, Fail> {
        let mut extents = Vec::with_capacity(shape.len());
        for &e in shape {
            let n = self.index(e)?;
            match usize::try_from(n) {
                Ok(n) if n > 0 => extents.push(n),
                _ => return Err(fail(codes::ILL_FORMED, span, format!("the extent {n} is not at least 1"))),
            }
        }
        self.count(&extents, span)?;
        Ok(extents)
    }

    /// Binds the header.
    pub(super) fn bind(&mut self, inputs: &mut Inputs) -> Result<(), Fail> {
        let k = self.k;
        for &v in &k.const_params {
            if let ValueDef::ConstParam(param) = &k.values[v].def {
                self.bind_const(v, param, inputs)?;
            }
        }
        for &v in &k.sizes {
            let size = self.named(&inputs.sizes, v, "size")?;
            if !(0..1 << 31).contains(&size) {
                return Err(self.unfit(v, format!("is {size}, not at least 0 and less than 2^31")));
            }
            self.set(v, Binding::Index(size));
        }
        for &v in &k.strides {
            if let Some(&stride) = inputs.strides.get(&k.values[v].name) {
                if stride < 0 {
                    return Err(self.unfit(v, format!("is {stride}, not at least 0")));
                }
                self.set(v, Binding::Index(stride));
            }
        }
        for &v in &k.params {
            if let ValueDef::Scalar { elem, default } = &k.values[v].def {
                let elem = self.elem(*elem, k.values[v].span)?;
                let given = inputs.scalars.get(&k.values[v].name).copied();
                let mut tile = match (given, default) {
                    (Some(Number::Float(x)), _) => Tile::new(Elem::F64, Vec::new(), vec![x].into()),
                    (Some(Number::Wide(x)), _) => Tile::new(Elem::I64, Vec::new(), vec![x].into()),
                    (None, Some(e)) => Tile::clone(&*self.tile(*e, None)?),
                    (None, None) => return Err(self.unfit(v, "has no value and no default".to_owned())),
                };
                tile.convert(elem);
                self.set(v, Binding::Tile(Rc::new(tile)));
            }
        }
        // A grid without blocks executes nothing, whatever preconditions the kernel has.
        if self.is_empty()? {
            return Ok(());
        }
        self.bind_tensors(inputs)?;
        for &e in &k.requires {
            if !self.truth(e)? {
                return Err(fail(codes::PRECONDITION, self.span(e), "this precondition does not hold"));
            }
        }
        Ok(())
    }

    pub(super) fn bind_const(&mut self, v: Value, param: &ConstParam, inputs: &Inputs) -> Result<(), Fail> {
        let Some(value) = inputs.consts.get(&self.k.values[v].name).copied().or(param.default) else {
            return Err(self.unfit(v, "has no value and no default".to_owned()));
        };
        let value = match value {
            ConstValue::Same(earlier) => {
                let Some(value) = self.consts[earlier] else {
                    return Err(self.unfit(v, "has a default that has no value".to_owned()));
                };
                value
            }
            ConstValue::Auto { .. } => return Err(self.unfit(v, "is `auto`, and nothing was chosen".to_owned())),
            value => value,
        };
        let fits = match (&param.kind, value) {
            (ConstKind::Int, ConstValue::Int(_)) | (ConstKind::Order, ConstValue::Order(_)) => true,
            (ConstKind::Elem(any), ConstValue::Elem(elem)) => any.is_empty() || any.contains(&elem),
            _ => false,
        };
        if !fits {
            return Err(self.unfit(v, "has a value that is not among those it may have".to_owned()));
        }
        self.consts[v] = Some(value);
        if let ConstValue::Int(x) = value {
            self.set(v, Binding::Index(x));
        }
        Ok(())
    }

    pub(super) fn bind_tensors(&mut self, inputs: &mut Inputs) -> Result<(), Fail> {
        let k = self.k;
        let tensors = || k.params.iter().filter_map(|&v| k.tensor_ty(v).map(|ty| (v, ty)));
        let mut shapes = Vec::new();
        for (_, ty) in tensors() {
            let shape: Vec<i64> = ty.shape.iter().map(|&e| self.index(e)).collect::<Result<_, _>>()?;
            if let Strides::Ordered(order) = ty.strides {
                let order = self.order(order, k.name_span)?;
                self.bind_dense(ty, &shape, order);
            }
            shapes.push(shape);
        }
        if let Some(&v) = k.strides.iter().find(|&&v| matches!(self.env[v], Binding::Unset)) {
            return Err(self.unfit(v, "is a stride without a value".to_owned()));
        }
        for ((v, ty), shape) in tensors().zip(shapes) {
            let own = ty.strided();
            let own_of = |dim: usize| own.iter().position(|&d| d == dim).unwrap_or(0);
            let mut strides: Vec<DimSteps> = match &ty.strides {
                Strides::Explicit(strides) => strides.iter().map(|s| self.dim_steps(s)).collect::<Result<_, _>>()?,
                Strides::Ordered(order) => {
                    let contiguous = own_of(ty.contiguous_dim(self.order(*order, k.name_span)?));
                    let strides = self.ordered_strides(own.len(), contiguous, &ty.ld);
                    strides.into_iter().map(DimSteps::One).collect()
                }
            };
            let valid = strides.iter().all(DimSteps::is_valid) && shape.iter().all(|&n| n >= 0);
            if strides.len() != own.len() || !valid {
                return Err(self.unfit(v, "needs a stride per dimension, and none below 0".to_owned()));
            }
            if let Some(promise) = ty.multiple {
                let n = self.index(promise)?.max(1);
                let contiguous = match &ty.strides {
                    Strides::Ordered(order) => Some(own_of(ty.contiguous_dim(self.order(*order, k.name_span)?))),
                    Strides::Explicit(list) => {
                        list.iter().rposition(|s| s.strides().last().is_some_and(|&e| self.is_literal_one(e)))
                    }
                };
                let steps = strides.iter().zip(&own).enumerate();
                if !steps
                    .into_iter()
                    .all(|(d, (s, &own))| s.in_groups(n, (Some(d) == contiguous).then_some(shape[own])))
                {
                    return Err(fail(codes::PRECONDITION, self.span(promise), "this precondition does not hold"));
                }
                let lines = |p: &Padded| matches!(self.env[p.stride], Binding::Index(stride) if stride % n == 0);
                if !ty.padded.iter().all(lines) {
                    return Err(fail(codes::PRECONDITION, self.span(promise), "this precondition does not hold"));
                }
            }
            for &d in &ty.repeats {
                strides.insert(d, DimSteps::One(0));
            }
            if ty.pointers {
                // Here the parts are contiguous.
                let last = strides.iter().zip(&shape[1..]).map(|(s, &n)| s.reach(n));
                strides.insert(0, DimSteps::One(last.fold(1, i64::saturating_add)));
            }
            if let Some(n) = shape.iter().find(|&&n| n >= 1 << 31) {
                return Err(self.unfit(v, format!("has a dimension of {n} elements, not less than 2^31")));
            }
            let elem = self.elem(ty.elem, k.values[v].span)?;
            if let Some(scratch) = ty.scratch {
                let data = self.scratch(v, (scratch, elem), &strides, &shape)?;
                self.set(v, Binding::Global(self.globals.len()));
                self.globals.push(Global { value: v, elem, shape, strides, padded: Vec::new(), data, bound: None });
                continue;
            }
            let padded = self.padded_lines(v, ty)?;
            let Some(tensor) = inputs.tensors.get_mut(&k.values[v].name) else {
                return Err(self.unfit(v, "is a tensor that was not given".to_owned()));
            };
            if tensor.elem != elem {
                return Err(self.unfit(v, format!("has elements of type {}, not {}", elem.name(), tensor.elem.name())));
            }
            let data = std::mem::take(&mut tensor.data).to_representation(elem);
            // Error bounds from an earlier kernel that stored the tensor.
            let known = inputs.errors.remove(&k.values[v].name);
            let known = known.filter(|e| self.opts.accuracy.is_some() && e.largest.len() == data.len());
            let bound = known.and_then(|e| Bound::of(e.largest, e.drowned)).map(|b| *b);
            self.set(v, Binding::Global(self.globals.len()));
            self.globals.push(Global { value: v, elem, shape, strides, padded, data, bound });
        }
        Ok(())
    }

    /// The padded lines of a tensor.
    fn padded_lines(&mut self, v: Value, ty: &TensorTy) -> Result<Vec<Lines>, Fail> {
        let mut all = Vec::new();
        for (i, p) in ty.padded.iter().enumerate() {
            let (extent, behind) = (self.index(p.extent)?, self.index(p.behind)?);
            let stride = match self.env[p.stride] {
                Binding::Index(stride) => stride,
                _ => return Err(self.unfit(p.stride, "is a stride without a value".to_owned())),
            };
            let mut steps = Vec::new();
            for d in 0..ty.shape.len() {
                let mut of_modes = Vec::new();
                for e in padded::mode_strides(ty, d).unwrap_or_default() {
                    of_modes.push(match padded::step(self.k, ty, e).filter(|step| step.of == i) {
                        Some(step) => {
                            let literal = i64::try_from(step.literal).unwrap_or(i64::MAX);
                            let factors: Vec<i64> =
                                step.factors.iter().map(|&e| self.index(e)).collect::<Result<_, _>>()?;
                            factors.into_iter().fold(literal, i64::saturating_mul)
                        }
                        None => 0,
                    });
                }
                steps.push(match ty.modes(d).map(<[Mode]>::to_vec) {
                    Some(modes) => {
                        let pair = |(m, lines): (&Mode, i64)| Ok((self.index(m.extent)?, lines));
                        DimSteps::Modes(modes.iter().zip(of_modes).map(pair).collect::<Result<_, Fail>>()?)
                    }
                    None => DimSteps::One(of_modes.first().copied().unwrap_or(0)),
                });
            }
            if extent < 1 {
                return Err(self.unfit(v, format!("has {extent} lines")));
            }
            all.push(Lines { stride, extent, behind, steps });
        }
        Ok(all)
    }

    /// Memory that is not an input. Unwritten elements are NaN.
    pub(super) fn scratch(
        &self,
        v: Value,
        (scratch, elem): (Scratch, Elem),
        strides: &[DimSteps],
        shape: &[i64],
    ) -> Result<Numbers, Fail> {
        let spans = strides.iter().zip(shape).map(|(s, &n)| s.reach(n.max(1)));
        let span = usize::try_from(spans.fold(1, i64::saturating_add)).ok().filter(|&n| n <= self.opts.memory);
        let Some(span) = span else {
            let message = format!("`{}` is larger than {} elements", self.k.values[v].name, self.opts.memory);
            return Err(fail(codes::OUT_OF_MEMORY, self.k.values[v].span, message));
        };
        let data: Numbers = vec![if scratch == Scratch::Signals { 0.0 } else { f64::NAN }; span].into();
        Ok(data.to_representation(elem))
    }

    /// That no signal is still set: the next launch would take it for its own.
    pub(super) fn check_signals_clear(&self) -> Result<(), Fail> {
        for global in &self.globals {
            let signals = self.k.tensor_ty(global.value).and_then(|t| t.scratch) == Some(Scratch::Signals);
            if signals && let Some(i) = global.data.floats().iter().position(|&x| x != 0.0) {
                let data = &self.k.values[global.value];
                let message = format!("`{}[{i}]` is set at the end: nobody has awaited it", data.name);
                return Err(fail(codes::CHANNEL, data.span, message));
            }
        }
        Ok(())
    }

    /// Whether a stride is 1 given only the compile-time parameters, so that the compiler knows.
    pub(super) fn is_literal_one(&mut self, e: Expr) -> bool {
        let k = self.k;
        match &k.exprs[e] {
            ExprData::Op { op: Op::Select, args } if self.is_known(args[0]) => match self.truth(args[0]) {
                Ok(true) => self.is_literal_one(args[1]),
                Ok(false) => self.is_literal_one(args[2]),
                Err(_) => false,
            },
            _ => self.is_known(e) && matches!(self.index(e), Ok(1)),
        }
    }

    /// Whether an expression is over compile-time parameters and literals.
    pub(super) fn is_known(&self, e: Expr) -> bool {
        match &self.k.exprs[e] {
            ExprData::Ref(v) => matches!(self.k.values[*v].def, ValueDef::ConstParam(_)),
            _ => self.k.children(e).into_iter().all(|e| self.is_known(e)),
        }
    }

    pub(super) fn dim_steps(&mut self, stride: &DimStride) -> Result<DimSteps, Fail> {
        Ok(match stride {
            DimStride::One(e) => DimSteps::One(self.index(*e)?),
            DimStride::Modes(modes) => {
                let pair = |m: &Mode| Ok((self.index(m.extent)?, self.index(m.stride)?));
                DimSteps::Modes(modes.iter().map(pair).collect::<Result<_, Fail>>()?)
            }
        })
    }

    /// Gives leading strides without a value those of a dense tensor.
    pub(super) fn bind_dense(&mut self, ty: &TensorTy, shape: &[i64], order: Order) {
        let contiguous = ty.contiguous_dim(order);
        let others: Vec<usize> = ty.strided().into_iter().filter(|&d| d != contiguous).collect();
        for (&d, &v) in others.iter().zip(&ty.ld) {
            if matches!(self.env[v], Binding::Unset) {
                let inner = ty.inner_dims(order, d).into_iter();
                self.set(v, Binding::Index(inner.fold(1, |n: i64, d| n.saturating_mul(shape[d]))));
            }
        }
    }

    /// The strides of a tensor with one contiguous dimension.
    pub(super) fn ordered_strides(&self, rank: usize, contiguous: usize, ld: &[Value]) -> Vec<i64> {
        let mut ld = ld.iter();
        let stride = |d| match if d == contiguous { None } else { ld.next() } {
            Some(&v) => match self.env[v] {
                Binding::Index(stride) => stride,
                _ => 1,
            },
            None => 1,
        };
        (0..rank).map(stride).collect()
    }

    pub(super) fn named(&self, from: &BTreeMap<String, i64>, v: Value, what: &str) -> Result<i64, Fail> {
        from.get(&self.k.values[v].name).copied().ok_or_else(|| self.unfit(v, format!("is a {what} without a value")))
    }

    pub(super) fn unfit(&self, v: Value, what: String) -> Fail {
        let data = &self.k.values[v];
        fail(codes::UNFIT_INPUT, data.span, format!("`{}` {what}", data.name))
    }

    pub(super) fn give_back(self, inputs: &mut Inputs) {
        for global in self.globals {
            let name = &self.k.values[global.value].name;
            if let Some(tensor) = inputs.tensors.get_mut(name) {
                tensor.data = global.data;
            }
            if let Some(bound) = global.bound {
                inputs.errors.insert(name.clone(), Errors { largest: bound.error, drowned: bound.drowned });
            }
        }
    }
}
