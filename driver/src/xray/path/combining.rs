//! What combines an element with others, in words: products, reductions, scans, sorts.

use super::PathBuilder;
use super::graph::{Node, Via, What};
use super::reduced::combined;
use super::spot::{Run, in_words};
use super::text::{head, print_head_of};
use tilec_ir::combine::How;
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::{ExprData, StmtData};
use tilec_ir::print::print_expr;
use tilec_ir::typing::{fixed_shape, layout_of};

impl PathBuilder<'_> {
    /// What combines the element with others, forwards: at which kind of step, and how.
    pub(super) fn combining(&self, node: &Node, via: &Via) -> (&'static str, String, String) {
        let k = self.k;
        let target = match &node.what {
            What::Write(place, _) if k.tensor_ty(*place).is_none() => Some(*place),
            _ => None,
        };
        let name = target.map_or("the result".to_owned(), |v| k.values[v].name.clone());
        let result = format!("; the result is {}", in_words(&name, &via.to, &self.extents_of(via.e)));
        let whole = |s: Stmt| {
            matches!(k.stmts[s], StmtData::Assign { src, .. } | StmtData::Let { init: src, .. } if src == via.e)
                || matches!(k.stmts[s], StmtData::Var { init: Some(src), .. } if src == via.e)
        };
        let result = if whole(node.stmt) { result } else { String::new() };
        match &k.exprs[via.e] {
            ExprData::Mma(mma) => {
                let (own, operand, other) = if via.right { ((1, 0), mma.b, mma.a) } else { ((0, 1), mma.a, mma.b) };
                let extents = self.extents_of(operand);
                let at = |i: usize| {
                    let extent = extents.get(i).copied().unwrap_or(u64::MAX);
                    via.from.get(i).map_or(String::new(), |run| run.text(extent))
                };
                let other = print_expr(k, other);
                let text = match via.right {
                    false => {
                        format!("{name}[{}, j] for every j, multiplied with `{other}`[{}, j]", at(own.0), at(own.1))
                    }
                    true => {
                        format!("{name}[i, {}] for every i, multiplied with `{other}`[i, {}]", at(own.0), at(own.1))
                    }
                };
                let what = if whole(node.stmt) { head(&self.plain, node.stmt) } else { print_expr(k, via.e) };
                ("product", what, format!("added into {text}"))
            }
            ExprData::View(_) | ExprData::Ref(_) => {
                ("computed", print_expr(k, via.e), "it names elements of this window".to_owned())
            }
            data => {
                let (at, how) = self.combined_in_words(via.e, data);
                (at, print_head_of(k, via.e), format!("{}{result}", self.in_parts(node, how)))
            }
        }
    }

    /// The same, where each lane has a partial result until the loop is over.
    fn in_parts(&self, node: &Node, how: String) -> String {
        let What::Write(place, _) = &node.what else { return how };
        let Some(partial) = self.k.tile_ty(*place).and_then(|tile| tile.partial.as_ref()) else { return how };
        let own = how.split("across").next().unwrap_or(&how).trim_end_matches(", then ").trim_end();
        let own = if own == "combined" { "each thread adds its own elements" } else { own };
        format!("{own}; {} lanes combine their results after the loop", 1u64 << partial.lanes.len())
    }

    /// How a reduction, a scan or a sort combines elements: in a thread, across lanes, across warps.
    fn combined_in_words(&self, e: Expr, data: &ExprData) -> (&'static str, String) {
        let k = self.k;
        let of = |arg: Expr, axis: u32, parts: u32| {
            let (layout, shape) = (layout_of(k, arg)?, fixed_shape(k, arg)?);
            (shape.len() > axis as usize).then(|| combined(k, (&layout, &shape), (axis as usize, parts)))
        };
        let plain = || "combined with the others along the dimension".to_owned();
        match data {
            ExprData::Reduce { axis, arg, parts, .. } => ("reduction", of(*arg, *axis, *parts).unwrap_or_else(plain)),
            ExprData::Scan { axis, arg, exclusive, totals, .. } => {
                let how = of(*arg, *axis, totals.map_or(0, |t| t.parts)).unwrap_or_else(plain);
                let behind = if *exclusive { "those behind it" } else { "itself and those behind it" };
                ("scan", format!("{how}: it goes into the results of {behind}"))
            }
            ExprData::Combine(combine) => {
                let arg = combine
                    .args
                    .iter()
                    .copied()
                    .max_by_key(|&arg| fixed_shape(k, arg).map_or(0, |n| n.iter().product()));
                let how = arg.and_then(|arg| of(arg, combine.axis, combine.operation.parts())).unwrap_or_else(plain);
                match combine.operation {
                    How::Reduce { .. } => ("reduction", how),
                    How::Scan { .. } => {
                        ("scan", format!("{how}: it goes into the results of itself and those behind it"))
                    }
                    How::Sort { .. } => {
                        let how = how.replace("combined", "compared");
                        ("sort", format!("{how}: its value says to which place of its row it goes"))
                    }
                }
            }
            _ => ("computed", print_expr(k, e)),
        }
    }

    /// The same, backwards.
    pub(super) fn made_by(&self, node: &Node, via: &Via) -> (&'static str, String, String) {
        let k = self.k;
        match &k.exprs[via.e] {
            ExprData::Mma(mma) => {
                let line = |word: &str, run: Option<&Run>, extent: Option<u64>| match run {
                    Some(run) => match (run.only(), extent) {
                        (Some(n), _) => format!("{word} {n}"),
                        (None, Some(extent)) if run.from == 0 && run.to >= extent => format!("every {word}"),
                        _ => format!("{word}s {run}"),
                    },
                    None => format!("every {word}"),
                };
                let shape = self.extents_of(via.e);
                let [row, column] = [2, 1].map(|behind| via.to.len().checked_sub(behind));
                let (a, b) = (print_expr(k, mma.a), print_expr(k, mma.b));
                let of = |i: Option<usize>| (i.and_then(|i| via.to.get(i)), i.and_then(|i| shape.get(i).copied()));
                let (row, column) = (of(row), of(column));
                let text = format!(
                    "{} of `{a}` with {} of `{b}`",
                    line("row", row.0, row.1),
                    line("column", column.0, column.1)
                );
                ("product", print_expr(k, via.e), text)
            }
            ExprData::View(_) | ExprData::Ref(_) => {
                ("computed", print_expr(k, via.e), "its elements are those that memory names".to_owned())
            }
            data => {
                let (at, how) = self.combined_in_words(via.e, data);
                let how = how.split(": it").next().unwrap_or(&how).to_owned();
                (at, print_head_of(k, via.e), self.in_parts(node, how))
            }
        }
    }
}
