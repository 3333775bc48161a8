//! The way of an element through reductions of the program after the last pass: in a thread, across the lanes of a warp, and by partial results across warps
//! and blocks.

use super::forward::in_words;
use super::windows::Coords;
use super::{PathBuilder, places};
use std::collections::BTreeSet;
use tilec_ir::ctas::ctas;
use tilec_ir::diag::counted;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::layout::{RegLayout, shape_bits};
use tilec_ir::print::print_expr;
use tilec_ir::target::WARP;

/// A reduction that reads an element.
struct Reduction {
    /// The statement it is in, or that declares the name whose value it is.
    at: Stmt,
    e: Expr,
    axis: usize,
    parts: u32,
    /// Where the element is in the operand.
    spot: Coords,
    /// The tile that is assigned the result as it is, or computed with it.
    to: Option<(Value, bool)>,
}

impl<'a> PathBuilder<'a> {
    /// Reductions that read an element of a register tile, each with how it is combined with others, and where the result is. Whether there are any.
    pub(super) fn reductions(&mut self, v: Value, coords: &[u64]) -> bool {
        let k = self.last;
        let Some(tile) = k.tile_ty(v) else { return false };
        let (Some(layout), Some(shape)) = (&tile.reg_layout, k.const_shape(&tile.shape)) else { return false };
        let spot: Coords = coords.iter().copied().map(Some).collect();
        let all = self.all_reductions(v, &spot);
        let found = !all.is_empty();
        for r in all {
            // Of an operand with as many dimensions the elements are held as those of the tile.
            let how = match r.spot.len() == shape.len() {
                true => combined(k, (layout, &shape), (r.axis, r.parts)),
                false => "combined with the others along the dimension".to_owned(),
            };
            let mut result = r.spot.clone();
            let part = r.spot[r.axis].map_or(0, |n| part_of(n, r.parts));
            result[r.axis] = Some(part);
            let names = |(to, alone): (Value, bool)| {
                let name = &k.values[to].name;
                let what = in_words(name, &result);
                match alone {
                    true => format!("; the result is {what}"),
                    false => format!("; it is one of those that {what} is made of"),
                }
            };
            let text = how + &r.to.map_or(String::new(), names);
            let here = self.push("reduction", print_expr(k, r.e), text, k.stmt_spans[r.at]);
            let Some((to, alone)) = r.to else { continue };
            let coords: Vec<u64> = result.iter().map(|n| n.unwrap_or(0)).collect();
            let name = k.values[to].name.clone();
            self.from(here, false, |way| match alone {
                true => way.tile(&name, &coords),
                // What is computed with it depends on all elements: it is not followed.
                false => {
                    if let Some((at, text)) = places::in_tile(k, to, &coords) {
                        way.push(at, super::element(&name, &coords), text, k.values[to].span);
                    }
                }
            });
        }
        found
    }

    fn all_reductions(&self, v: Value, spot: &Coords) -> Vec<Reduction> {
        let k = self.last;
        let (mut out, mut seen) = (Vec::new(), BTreeSet::new());
        for s in PathBuilder::statements(k) {
            let (root, to) = match k.stmts[s] {
                StmtData::Assign { dst, src } => (src, Some(dst)),
                StmtData::Var { value, init: Some(init) } => (init, Some(value)),
                StmtData::Let { init, .. } => (init, None),
                StmtData::Copy { src, .. } => (src, None),
                _ => continue,
            };
            let mut open = vec![root];
            while let Some(e) = open.pop() {
                open.extend(k.children(e));
                let ExprData::Reduce { axis, arg, parts, .. } = k.exprs[e] else { continue };
                if !seen.insert(e) {
                    continue;
                }
                let Some(spot) = self.spot_of(k, arg, (v, spot)) else { continue };
                let axis = axis as usize;
                if axis < spot.len() {
                    let to = to.map(|to| (to, e == root));
                    out.push(Reduction { at: s, e, axis, parts, spot, to });
                }
            }
        }
        out
    }
}

/// The number of the part that an index is in: the bits of `parts`, from the lowest on.
fn part_of(index: u64, parts: u32) -> u64 {
    let bits = (0..u32::BITS).filter(|bit| parts >> bit & 1 == 1);
    (0..).zip(bits).fold(0, |part, (to, bit)| part | (index >> bit & 1) << to)
}

/// How an element of a tile is combined with the others along an axis: by the bits of the layout along it that are not those of parts.
fn combined(k: &Kernel, (layout, shape): (&RegLayout, &[u64]), (axis, parts): (usize, u32)) -> String {
    let bits = shape_bits(shape);
    let from: u64 = bits[..axis].iter().map(|&n| u64::from(n)).sum();
    let along = ((1u64 << bits[axis]) - 1) << from;
    let in_parts = u64::from(parts) << from;
    // A thread has its own sum of each part that it has elements of.
    let is_combined = |col: u64| col & along != 0 && col & along & in_parts == 0;
    let times = |n: usize| 1usize << n;
    let values = times((0..layout.value_bits()).filter(|&i| is_combined(layout.value_col(i))).count());
    let of_lanes = |range: std::ops::Range<u32>| times(range.filter(|&i| is_combined(layout.thread_col(i))).count());
    let lane_bits = WARP.ilog2().min(layout.thread_bits());
    let lanes = of_lanes(0..lane_bits);
    let others = of_lanes(lane_bits..layout.thread_bits());
    let mut how = Vec::new();
    if values > 1 {
        how.push(format!("with {} of its thread", counted(values - 1, "other element")));
    }
    if lanes > 1 {
        how.push(format!("across {lanes} lanes by shuffles"));
    }
    if others > 1 {
        how.push(format!("across {}", counted(others, "warp")));
    }
    let how = if how.is_empty() {
        "it is the only one of its part in a warp".to_owned()
    } else {
        format!("combined {}", how.join(", then "))
    };
    match parts.count_ones() {
        0 => how,
        n => {
            let blocks = u64::try_from(ctas(k)).unwrap_or(1);
            let who = if blocks > 1 { "warps and blocks of the cluster" } else { "warps" };
            format!("{how}; {} partial results of {who} pass through shared memory", times(n as usize))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{CompileOptions, compile};
    use crate::xray::path::{Element, Step, path};
    use tilec_ir::target::Target;

    /// Across lanes, across warps, and across blocks of a cluster: by partial results in shared memory, to every block.
    #[test]
    fn rows_of_many_threads_are_followed_through_their_reductions() {
        let source = include_str!("../../../../examples/softmax_rows.tile");
        let way = |columns: &str| {
            let options = CompileOptions {
                target: Target::Sm90a,
                defines: vec![("BN".to_owned(), columns.to_owned())],
                ..CompileOptions::default()
            };
            let program = compile(source, &options).expect("compiles");
            let element = Element::parse("X[3,5]").expect("an element");
            path(&program, &element).expect("a way").steps
        };
        let text = |way: &[Step], at: &str, what: &str| {
            way.iter().find(|s| s.at == at && s.what.starts_with(what)).map_or("none", |s| &s.text).to_owned()
        };
        let warps = way("1024");
        assert!(
            text(&warps, "reduction", "maximum(x, 1, parts (7))").starts_with(
                "combined with 15 other elements of its thread, then across 32 lanes by shuffles; 2 partial results of warps pass through shared memory"
            ),
            "{warps:?}"
        );
        assert!(text(&warps, "shared memory", "top_parts_shared[0, 0]").starts_with("byte 0 of the tile"), "{warps:?}");
        assert!(text(&warps, "registers", "top_parts_all[0, 0]").contains("64 threads"), "{warps:?}");
        assert_eq!(
            text(&warps, "reduction", "maximum(top_parts_all, 1)"),
            "combined with 1 other element of its thread"
        );
        assert!(text(&warps, "reduction", "sum(exp2(").contains("the result is total_parts[0, 0]"), "{warps:?}");
        assert!(text(&warps, "result", "Y[3, 5]").contains("moved by threads"), "{warps:?}");
        let blocks = way("65536");
        assert!(
            text(&blocks, "reduction", "maximum(x, 1, parts")
                .contains("partial results of warps and blocks of the cluster"),
            "{blocks:?}"
        );
        assert!(
            text(&blocks, "copy", "copy top_parts -> top_parts_shared").contains("of every block of the cluster"),
            "{blocks:?}"
        );
    }

    #[test]
    fn parts_are_numbered_by_their_bits() {
        assert_eq!([part_of(0b1000_0000, 1 << 7), part_of(5, 1 << 7), part_of(0b1_1000_0000, 0b11 << 7)], [1, 0, 3]);
        assert_eq!(part_of(200, 0), 0);
    }
}
