//! How the reductions of the program combine elements: in a thread, across the lanes of a warp, and by partial results across warps and blocks.

use tilec_ir::ctas::ctas;
use tilec_ir::diag::counted;
use tilec_ir::kernel::Kernel;
use tilec_ir::layout::{RegLayout, shape_bits};
use tilec_ir::target::WARP;

/// How an element of a tile is combined with the others along an axis: by the bits of the layout along it that are not those of parts.
pub(super) fn combined(k: &Kernel, (layout, shape): (&RegLayout, &[u64]), (axis, parts): (usize, u32)) -> String {
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
    use crate::compile::{CompileOptions, compile};
    use crate::xray::path::tests::options;
    use crate::xray::path::{Element, Step, path};
    use tilec_ir::target::Target;

    /// Across lanes, across warps, and across blocks of a cluster: by partial results in shared memory, to every block.
    #[test]
    fn rows_of_many_threads_are_followed_through_their_reductions() {
        let source = include_str!("../../../../examples/softmax_rows.tile");
        let way = |columns: &str| {
            let options =
                CompileOptions { defines: vec![("BN".to_owned(), columns.to_owned())], ..options(Target::Sm90a) };
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
}
