//! Reads and writes of a statement, with everything inside it.

use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ChannelOp, ExprData, Kernel, Slot, StmtData};
use tilec_ir::typing::{let_init, resolve_view};

/// An access of a statement to a value.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct ValueAccess {
    pub(crate) value: Value,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    /// Whether it certainly overwrites all of the value.
    pub(crate) overwrites: bool,
    /// The statement declares it.
    pub(crate) declares: bool,
}

/// The values that a statement accesses: register tiles, buffers, channels, tensors, and names.
#[derive(Clone, Default, Debug)]
pub(crate) struct Accesses {
    /// One entry for each value, in the order of their first accesses.
    pub(crate) touches: Vec<ValueAccess>,
    /// Whether it orders threads or blocks (barriers, waits, signals): nothing may move past it.
    pub(crate) orders: bool,
}

impl Accesses {
    /// The accesses of a statement and of those inside it.
    pub(crate) fn of(k: &Kernel, s: Stmt) -> Accesses {
        let mut found = Accesses::default();
        found.statement(k, s, true);
        found
    }

    /// How `value` is touched.
    pub(crate) fn get(&self, value: Value) -> Option<&ValueAccess> {
        self.touches.iter().find(|t| t.value == value)
    }

    fn note(&mut self, value: Value, f: impl FnOnce(&mut ValueAccess)) {
        if let Some(touch) = self.touches.iter_mut().find(|t| t.value == value) {
            f(touch);
            return;
        }
        let mut touch = ValueAccess { value, reads: false, writes: false, overwrites: false, declares: false };
        f(&mut touch);
        self.touches.push(touch);
    }

    fn read(&mut self, value: Value) {
        // A value that the statement has overwritten before is not read from outside.
        self.note(value, |t| t.reads |= !t.overwrites);
    }

    fn write(&mut self, value: Value, whole: bool) {
        self.note(value, |t| {
            t.overwrites |= whole;
            t.reads |= !whole && !t.overwrites;
            t.writes = true;
        });
    }

    /// `certain`: the statement runs whenever the outermost one does.
    fn statement(&mut self, k: &Kernel, s: Stmt, certain: bool) {
        match &k.stmts[s] {
            StmtData::Let { value, init } => {
                self.expr(k, *init);
                self.note(*value, |t| (t.writes, t.overwrites, t.declares) = (true, true, true));
            }
            StmtData::Var { value, init } => {
                init.iter().for_each(|&e| self.expr(k, e));
                self.note(*value, |t| (t.writes, t.overwrites, t.declares) = (true, true, true));
            }
            StmtData::Alloc { value, over } => {
                over.iter().for_each(|&v| self.write(v, true));
                self.note(*value, |t| (t.writes, t.overwrites, t.declares) = (true, true, true));
            }
            StmtData::Assign { dst, src } => {
                self.expr(k, *src);
                self.write(*dst, certain);
            }
            StmtData::Copy { src, dst, attrs } => {
                self.expr(k, *src);
                attrs.when.iter().for_each(|&e| self.expr(k, e));
                let conditional = attrs.keep || attrs.when.is_some() || attrs.reduce.is_some();
                // A prefetch only names its destination.
                if !attrs.is_prefetch() {
                    self.destination(k, *dst, certain && !conditional);
                }
                if let Some(old) = attrs.old {
                    self.destination(k, old, false);
                }
            }
            StmtData::For { start, end, step, cond, .. } => {
                [*start, *end, *step].into_iter().chain(*cond).for_each(|e| self.expr(k, e));
                self.inside(k, s);
            }
            StmtData::If { cond, .. } => {
                self.expr(k, *cond);
                self.inside(k, s);
            }
            StmtData::Channel { op, channels, .. } => {
                for &c in channels {
                    match op {
                        // A wait changes the slot that is read: readers of the previous slot precede it.
                        ChannelOp::Wait => self.write(c, certain),
                        // Other operations do not change the slot that is read.
                        ChannelOp::Acquire | ChannelOp::Publish | ChannelOp::Release => self.write(c, false),
                    }
                }
            }
            StmtData::Ordered { .. } | StmtData::Role { .. } => {
                self.orders = true;
                self.inside(k, s);
            }
            StmtData::Barrier | StmtData::Fence | StmtData::Await { .. } | StmtData::Signal { .. } => {
                self.orders = true
            }
        }
    }

    fn inside(&mut self, k: &Kernel, s: Stmt) {
        for block in k.sub_blocks(s) {
            k.blocks[block].iter().for_each(|&s| self.statement(k, s, false));
        }
    }

    fn expr(&mut self, k: &Kernel, e: Expr) {
        match &k.exprs[e] {
            ExprData::Ref(v) => self.name(k, *v),
            ExprData::View(view) => self.name(k, view.base),
            _ => {}
        }
        k.children(e).into_iter().for_each(|c| self.expr(k, c));
    }

    /// Reads a name, and the memory of a window that it names.
    fn name(&mut self, k: &Kernel, v: Value) {
        self.read(v);
        if let Some(init) = let_init(k, v)
            && let Some(view) = resolve_view(k, init).filter(|view| is_memory(k, view.base))
        {
            self.read(view.base);
        }
    }

    fn destination(&mut self, k: &Kernel, e: Expr, certain: bool) {
        // Indices of the window.
        k.children(e).into_iter().for_each(|c| self.expr(k, c));
        match &k.exprs[e] {
            ExprData::Ref(v) => match let_init(k, *v).and_then(|init| resolve_view(k, init)) {
                Some(view) => {
                    self.read(*v);
                    self.write(view.base, false);
                }
                None => self.write(*v, certain),
            },
            ExprData::View(view) => {
                let whole = view.ranges.is_empty() && view.slot == Some(Slot::Put);
                let base = let_init(k, view.base).and_then(|init| resolve_view(k, init)).map_or(view.base, |v| v.base);
                // Filling a slot does not overwrite the one that is read.
                if !whole {
                    self.write(base, false);
                }
            }
            _ => {}
        }
    }
}

fn is_memory(k: &Kernel, v: Value) -> bool {
    k.values[v].def.space().is_memory() && k.values[v].def.space().is_written()
}
