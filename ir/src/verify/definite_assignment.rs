//! Rule 24: no register variable is read before it is written (definite assignment).
//!
//! Only certain errors are reported: no write precedes the read, and no later write can happen before it. A later write
//! can happen first only if a loop surrounds both, and if the write is not after the read in the read's own block.
//! There, each iteration executes the read first.

use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::{Expr, Stmt, Value};
use crate::kernel::{ExprData, Kernel, StmtData, ValueDef};
use crate::verify::context::Cx;
use std::collections::BTreeMap;

/// The position of a statement: its index in each surrounding block, and whether that block is the body of a loop.
type Path = Vec<(usize, bool)>;

#[derive(Default)]
struct Uses {
    /// Where the variable is written.
    writes: Vec<Path>,
    /// Where it is read first, and the expression.
    read: Option<(Path, Expr)>,
}

pub(super) fn check(cx: &mut Cx<'_, '_>) {
    let mut uses: BTreeMap<Value, Uses> = BTreeMap::new();
    collect(cx.k, cx.k.body, &mut Vec::new(), &mut uses);
    for (v, Uses { writes, read }) in uses {
        let Some((read, e)) = read else { continue };
        if writes.iter().all(|w| !may_precede(w, &read)) {
            let name = &cx.k.values[v].name;
            let message = format!("`{name}` is read, and nothing was written to it");
            let d = Diagnostic::error(codes::READ_UNWRITTEN, cx.k.expr_spans[e], message)
                .with_place(cx.k.values[v].span, "declared without a first value");
            let d = d.with_note(format!("give it one: `var {name} = reg .. = 0`, or a copy in front of this"));
            cx.report(d);
        }
    }
}

/// Whether a write at `write` may be executed before a read at `read`, when both are on the way for the first time.
fn may_precede(write: &Path, read: &Path) -> bool {
    let common = write.iter().zip(read).take_while(|(a, b)| a.0 == b.0).count();
    if write.get(common).map(|w| w.0) < read.get(common).map(|r| r.0) && common < write.len() {
        return true;
    }
    // After the read, or in the same statement: earlier only by a loop that comes round. Where the read is directly in the
    // block that both are in, each turn passes it first.
    let read_first = common + 1 >= read.len();
    !read_first && read[1..=common.min(read.len() - 1)].iter().any(|&(_, is_loop)| is_loop)
}

fn collect(k: &Kernel, block: crate::entities::Block, path: &mut Path, uses: &mut BTreeMap<Value, Uses>) {
    let is_loop = path.last().is_some_and(|&(_, inside)| inside);
    if let Some(last) = path.last_mut() {
        last.1 = false;
    }
    for (i, &s) in k.blocks[block].iter().enumerate() {
        path.push((i, is_loop));
        statement(k, s, path, uses);
        let turns = matches!(k.stmts[s], StmtData::For { .. });
        for (arm, b) in k.sub_blocks(s).into_iter().enumerate() {
            // The branches of an `if` exclude each other.
            path.push((arm, turns));
            collect(k, b, path, uses);
            path.pop();
        }
        path.pop();
    }
}

fn statement(k: &Kernel, s: Stmt, path: &Path, uses: &mut BTreeMap<Value, Uses>) {
    let (reads, written): (Vec<Expr>, Option<Value>) = match &k.stmts[s] {
        StmtData::Let { init, .. } => (vec![*init], None),
        StmtData::Var { value, init } => (init.iter().copied().collect(), init.map(|_| *value)),
        StmtData::Assign { dst, src } => (vec![*src], Some(*dst)),
        StmtData::Copy { src, dst, attrs } => {
            let written = match &k.exprs[*dst] {
                ExprData::Ref(v) => Some(*v),
                ExprData::View(view) => Some(view.base),
                _ => None,
            };
            // The indices of the window that is written are read.
            let reads = [*src].into_iter().chain(attrs.when).chain(k.children(*dst));
            (reads.collect(), written.filter(|_| !attrs.is_prefetch()))
        }
        StmtData::If { cond, .. } | StmtData::For { cond: Some(cond), .. } => (vec![*cond], None),
        _ => (Vec::new(), None),
    };
    for e in reads {
        read(k, e, path, uses);
    }
    if let Some(v) = written.filter(|&v| matches!(k.values[v].def, ValueDef::Var(_))) {
        uses.entry(v).or_default().writes.push(path.clone());
    }
}

fn read(k: &Kernel, e: Expr, path: &Path, uses: &mut BTreeMap<Value, Uses>) {
    let base = match &k.exprs[e] {
        ExprData::Ref(v) => Some(*v),
        ExprData::View(view) => Some(view.base),
        // Only the shape of its operand counts.
        ExprData::Iota { .. } => return,
        _ => None,
    };
    if let Some(v) = base.filter(|&v| matches!(k.values[v].def, ValueDef::Var(_))) {
        uses.entry(v).or_default().read.get_or_insert_with(|| (path.clone(), e));
    }
    for child in k.children(e) {
        read(k, child, path, uses);
    }
}
