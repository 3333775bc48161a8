//! Looking at kernels: types, blocks and operands of what they hold.

use crate::attributes::CopyAttrs;
use crate::entities::{Block, Expr, Stmt, Value};
use crate::kernel::{ExprData, Kernel, Range, StmtData, ValueDef};
use crate::ops::Op;
use crate::small_list::SmallList;
use crate::types::{TensorTy, TileTy};

impl Kernel {
    /// The integer literal `e` is, if it is one.
    pub fn as_int(&self, e: Expr) -> Option<i64> {
        match &self.exprs[e] {
            ExprData::Int(x) => Some(*x),
            ExprData::Op { op: Op::Neg, args } => self.as_int(args[0])?.checked_neg(),
            _ => None,
        }
    }

    /// The declared tile type of a place (register variable, buffer, channel slot).
    pub fn tile_ty(&self, value: Value) -> Option<&TileTy> {
        match &self.values[value].def {
            ValueDef::Var(tile) | ValueDef::Smem(tile) | ValueDef::Channel { tile, .. } => Some(tile),
            _ => None,
        }
    }

    /// The declared tile type of a place, for modification.
    pub fn tile_ty_mut(&mut self, value: Value) -> Option<&mut TileTy> {
        match &mut self.values[value].def {
            ValueDef::Var(tile) | ValueDef::Smem(tile) | ValueDef::Channel { tile, .. } => Some(tile),
            _ => None,
        }
    }

    /// The tensor type of a tensor parameter.
    pub fn tensor_ty(&self, value: Value) -> Option<&TensorTy> {
        match &self.values[value].def {
            ValueDef::Tensor(t) => Some(t),
            _ => None,
        }
    }

    /// The extents of a shape, if all are integer literals.
    pub fn const_shape(&self, shape: &[Expr]) -> Option<Vec<u64>> {
        shape.iter().map(|&e| self.as_int(e).and_then(|x| u64::try_from(x).ok())).collect()
    }

    /// The kinds of blocks a statement owns, in order.
    pub fn sub_blocks(&self, stmt: Stmt) -> SmallList<Block> {
        let mut inside = SmallList::new();
        match &self.stmts[stmt] {
            StmtData::For { body, .. } | StmtData::Ordered { body } | StmtData::Role { body, .. } => inside.push(*body),
            StmtData::If { then, otherwise, .. } => {
                inside.push(*then);
                inside.extend(*otherwise);
            }
            StmtData::Let { .. }
            | StmtData::Var { .. }
            | StmtData::Alloc { .. }
            | StmtData::Assign { .. }
            | StmtData::Copy { .. }
            | StmtData::Channel { .. }
            | StmtData::Barrier
            | StmtData::Fence
            | StmtData::Await { .. }
            | StmtData::Signal { .. } => {}
        }
        inside
    }

    /// The attributes of the copies into slots of a channel.
    pub fn fills(&self, channel: Value) -> impl Iterator<Item = &CopyAttrs> {
        self.statement_data().filter_map(move |s| match s {
            StmtData::Copy { dst, attrs, .. } => {
                matches!(&self.exprs[*dst], ExprData::View(view) if view.base == channel).then_some(attrs)
            }
            _ => None,
        })
    }

    /// Whether some asynchronous copy fills slots of the channel, so that without roles `publish` closes a group and
    /// `wait` waits for one.
    pub fn fills_asynchronously(&self, channel: Value) -> bool {
        self.fills(channel).any(|attrs| attrs.is_asynchronous())
    }

    /// Whether TMA copies fill slots of the channel.
    pub fn fills_by_tensor_copies(&self, channel: Value) -> bool {
        self.fills(channel).any(|attrs| attrs.is_tensor())
    }

    /// Whether threads fill slots of the channel themselves, by asynchronous copies or stores.
    pub fn fills_by_threads(&self, channel: Value) -> bool {
        self.fills(channel).any(CopyAttrs::is_by_threads)
    }

    /// Whether a channel carries the numbers of a work queue.
    pub fn is_work_queue(&self, channel: Value) -> bool {
        self.statement_data().any(|s| matches!(s, StmtData::For { next: Some(next), .. } if next.channel == channel))
    }

    /// Visits every statement under `block`, outer before inner, in program order.
    pub fn walk(&self, block: Block, f: &mut dyn FnMut(&Kernel, Block, Stmt)) {
        for &s in &self.blocks[block] {
            f(self, block, s);
            // Most statements own no block.
            match &self.stmts[s] {
                StmtData::For { body, .. } | StmtData::Ordered { body } | StmtData::Role { body, .. } => {
                    self.walk(*body, f);
                }
                StmtData::If { then, otherwise, .. } => {
                    self.walk(*then, f);
                    otherwise.iter().for_each(|&block| self.walk(block, f));
                }
                _ => {}
            }
        }
    }

    /// The direct operands of an expression node, in text order.
    pub fn children(&self, e: Expr) -> SmallList<Expr> {
        let mut found = SmallList::new();
        match &self.exprs[e] {
            ExprData::Int(_) | ExprData::Float(_) | ExprData::Ref(_) => {}
            ExprData::Op { args, .. } => return SmallList::from(&args[..]),
            ExprData::Cast { arg, .. }
            | ExprData::Bits { arg, .. }
            | ExprData::Reduce { arg, .. }
            | ExprData::Iota { like: arg, .. }
            | ExprData::Lookup { index: arg, .. }
            | ExprData::Index(arg)
            | ExprData::Part { of: arg, .. }
            | ExprData::Permute { arg, .. }
            | ExprData::Transpose(arg) => found.push(*arg),
            ExprData::Reshape { arg, shape, .. } => {
                found.push(*arg);
                found.extend(shape.iter().copied());
            }
            ExprData::Concat { args, .. } => return SmallList::from(&args[..]),
            ExprData::Scan { arg, totals, .. } => {
                found.push(*arg);
                found.extend(totals.map(|t| t.tile));
            }
            ExprData::Combine(combine) => return combine.children(self),
            ExprData::Round { arg, word, .. } => found.extend([*arg, *word]),
            ExprData::Mma(m) => found.extend([m.a, m.b, m.c]),
            ExprData::View(v) => {
                for r in &v.ranges {
                    match r {
                        Range::At(e) | Range::Gather(e) => found.push(*e),
                        Range::From { start, end } => {
                            found.push(*start);
                            found.extend(*end);
                        }
                    }
                }
            }
        }
        found
    }

    /// The initialiser of a `let`.
    pub fn let_init(&self, value: Value) -> Option<Expr> {
        match self.stmts[self.let_stmt(value)?] {
            StmtData::Let { init, .. } => Some(init),
            _ => None,
        }
    }

    /// The statement that declares a `let`.
    pub fn let_stmt(&self, value: Value) -> Option<Stmt> {
        let s = self.lets.get(value)?.expand()?;
        // If the statement was made another, a later one may declare it.
        matches!(self.stmts[s], StmtData::Let { value: v, .. } if v == value).then_some(s)
    }
}
