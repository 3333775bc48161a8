//! Statements and expressions that are part of a program.
//!
//! The arenas of a kernel keep what passes have removed, such as a branch that is never taken, or the old form of a
//! rewritten copy. Analyses must use these functions, not the arenas.

use crate::entities::{Block, Expr, Stmt, Value};
use crate::kernel::{Kernel, StmtData};
use crate::small_list::SmallList;

impl StmtData {
    /// The expressions that a statement owns, in the order of the text; not those of its blocks.
    pub fn exprs(&self) -> SmallList<Expr> {
        match self {
            StmtData::Let { init, .. } => [*init].into_iter().collect(),
            StmtData::Var { init, .. } => init.iter().copied().collect(),
            StmtData::Assign { src, .. } => [*src].into_iter().collect(),
            StmtData::Copy { src, dst, attrs } => {
                let held = attrs.held.iter().map(|held| held.tile);
                [*src, *dst].into_iter().chain(attrs.when).chain(attrs.old).chain(held).collect()
            }
            StmtData::For { start, end, step, cond, .. } => [*start, *end, *step].into_iter().chain(*cond).collect(),
            StmtData::If { cond, .. } => [*cond].into_iter().collect(),
            StmtData::Signal { index, .. } => [*index].into_iter().collect(),
            StmtData::Role { warps, replicas, registers, .. } => {
                [*warps].into_iter().chain(*replicas).chain(*registers).collect()
            }
            StmtData::Alloc { .. }
            | StmtData::Channel { .. }
            | StmtData::Barrier
            | StmtData::Fence
            | StmtData::Await { .. }
            | StmtData::Ordered { .. } => SmallList::new(),
        }
    }
}

impl Kernel {
    /// The statements of the program, in the order of the text.
    pub fn statements(&self) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(self.stmts.len());
        self.walk(self.body, &mut |_, _, s| out.push(s));
        out
    }

    /// What the statements of the program are.
    pub fn statement_data(&self) -> impl Iterator<Item = &StmtData> {
        self.statements().into_iter().map(|s| &self.stmts[s])
    }

    /// The variable of the loop with this body.
    pub fn loop_variable(&self, body: Block) -> Option<Value> {
        self.statement_data().find_map(|s| match s {
            StmtData::For { var, body: own, .. } if *own == body => Some(*var),
            _ => None,
        })
    }

    /// The expressions of the program's statements, with everything in them.
    pub fn expressions(&self) -> Vec<Expr> {
        let mut out = Vec::with_capacity(self.exprs.len());
        let mut stack: Vec<Expr> = Vec::with_capacity(self.exprs.len());
        stack.extend(self.statement_data().flat_map(StmtData::exprs));
        while let Some(e) = stack.pop() {
            stack.extend(self.children(e));
            out.push(e);
        }
        out
    }
}
