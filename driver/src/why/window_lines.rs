//! Lines of the source that name windows of tensors and nothing else. The statements that use the name move the elements.

use super::answer::Known;
use super::said::lines;
use crate::compile::unrepeated::unrepeated;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::names::mentions;
use tilec_ir::print::print_expr;
use tilec_ir::typing::resolve_view;

/// What a line names, in words, and the later lines that use it; `None`: it does something else, or nothing uses it.
pub(super) fn used(known: &Known<'_>, line: usize) -> Option<(String, Vec<usize>)> {
    let source = &known.program.source;
    let (mut named, mut users) = (Vec::new(), Vec::new());
    for written in known.program.kernels.iter().filter_map(|kernel| kernel.tile.source_kernel.as_ref()) {
        let k = &written.kernel;
        let at = |s: Stmt| lines(source, k.stmt_spans[s]).0;
        let all: Vec<Stmt> = k.statements();
        for &s in all.iter().filter(|&&s| at(s) == line && !k.stmt_spans[s].is_none()) {
            let (name, window) = window(k, s)?;
            named.push(format!("`{}` is the window `{}`", k.values[name].name, print_expr(k, window)));
            let uses = |s: &&Stmt| k.stmts[**s].exprs().into_iter().any(|e| mentions(k, e, name));
            users.extend(all.iter().filter(uses).map(|&s| at(s)).filter(|&user| user > line));
        }
    }
    unrepeated(&mut named);
    users.sort_unstable();
    users.dedup();
    let text = format!(
        "{}: a name, which moves nothing. The statements that use it do: {}",
        named.join(", "),
        users.iter().map(|user| format!("source:{user}")).collect::<Vec<_>>().join(", ")
    );
    (!named.is_empty() && !users.is_empty()).then_some((text, users))
}

/// The name of a window of a tensor.
fn window(k: &Kernel, s: Stmt) -> Option<(Value, Expr)> {
    let StmtData::Let { value, init } = k.stmts[s] else { return None };
    resolve_view(k, init).filter(|view| k.tensor_ty(view.base).is_some()).map(|_| (value, init))
}
