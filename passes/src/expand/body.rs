//! The statements of a loop with stages, sorted.

use crate::graph::accesses::Accesses;
use crate::schedule_loops::modulo::is_index;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData};

/// A loop that is being expanded.
pub(super) struct Body {
    pub(super) at: Stmt,
    /// Statements with their stages, in the order of the steady state.
    pub(super) order: Vec<(Stmt, u32)>,
    /// Indices and names, in program order.
    pub(super) names: Vec<Stmt>,
    /// Declarations without a value.
    pub(super) declared: Vec<Stmt>,
    pub(super) var: Value,
    pub(super) bounds: [Expr; 3],
    /// The number of the last stage.
    pub(super) last: u32,
    /// Whether the stages in front of the last one continue past the end.
    pub(super) open: bool,
    pub(super) span: Span,
}

impl Body {
    /// The body of a loop with stages.
    pub(super) fn of(k: &Kernel, at: Stmt) -> Body {
        let StmtData::For { var, start, end, step, body, .. } = k.stmts[at] else { unreachable!("a loop is expanded") };
        let open = k.plans[at].open;
        let (declared, (order, names)) = sorted(k, body, open);
        let last = order.iter().map(|&(_, stage)| stage).max().unwrap_or(0);
        Body { at, order, names, declared, var, bounds: [start, end, step], last, open, span: k.stmt_spans[at] }
    }

    /// Whether a statement of the loop declares a value.
    pub(super) fn declares(&self, k: &Kernel, v: Value) -> bool {
        let own =
            |s: Stmt| matches!(k.stmts[s], StmtData::Var { value, .. } | StmtData::Let { value, .. } if value == v);
        self.declared.iter().any(|&s| own(s)) || self.order.iter().any(|&(s, _)| own(s))
    }
}

type Sorted = (Vec<Stmt>, (Vec<(Stmt, u32)>, Vec<Stmt>));

/// The statements of a loop: declarations without a value; statements with stages, in the order of cycles; names. If
/// only one stage of an open loop uses a declaration, the declaration is a statement of that stage, because each stage
/// occurs once in the loop.
fn sorted(k: &Kernel, body: Block, open: bool) -> Sorted {
    let touched: Vec<(Stmt, Accesses)> = match open {
        true => k.blocks[body].iter().map(|&s| (s, Accesses::of(k, s))).collect(),
        false => Vec::new(),
    };
    let alone = |s: Stmt, v: Value| {
        let users = touched.iter().filter(|(_, a)| a.get(v).is_some());
        open && users.into_iter().all(|&(of, _)| k.plans[of].stage == k.plans[s].stage)
    };
    let (mut declared, mut names, mut order) = (Vec::new(), Vec::new(), Vec::new());
    for (i, &s) in k.blocks[body].iter().enumerate() {
        let plan = k.plans[s];
        match k.stmts[s] {
            StmtData::Var { init: None, value } | StmtData::Alloc { value, .. } if !alone(s, value) => declared.push(s),
            StmtData::Let { init, .. } if is_index(k, init) => names.push(s),
            // A register tile needs no wait, and is declared in front of its first use, in any cycle.
            StmtData::Var { init: None, .. } => order.push((0, 0, s, plan.stage.unwrap_or(0))),
            _ => order.push((plan.cycle.unwrap_or(0), i + 1, s, plan.stage.unwrap_or(0))),
        }
    }
    order.sort_by_key(|&(cycle, i, ..)| (cycle, i));
    (declared, (order.into_iter().map(|(_, _, s, stage)| (s, stage)).collect(), names))
}
