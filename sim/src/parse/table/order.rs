//! The order of modifiers.
//!
//! The manual writes modifiers in one order; ptxas takes most of them in any (found by trying, ptxas 12.9): words that belong to
//! the opcode come first, and types keep their order among each other, as do the layouts of matrices.

use crate::program::types::Ty;

/// Words that belong to the opcode: they are first and in order.
const LEADING: &[(&str, &[&str])] = &[
    ("bar", &["cta", "warp", "sync", "arrive", "red"]),
    ("barrier", &["cta", "red", "cluster"]),
    ("cp", &["reduce", "async", "bulk", "prefetch", "tensor", "commit_group", "wait_group", "wait_all", "mbarrier"]),
    ("createpolicy", &["fractional", "range"]),
    ("cvt", &["pack"]),
    ("cvta", &["to"]),
    ("dp2a", &["lo", "hi"]),
    ("fence", &["proxy", "mbarrier_init"]),
    ("mad", &["lo", "hi", "wide"]),
    ("mad24", &["lo", "hi"]),
    ("madc", &["lo", "hi"]),
    (
        "mbarrier",
        &[
            "init",
            "inval",
            "expect_tx",
            "complete_tx",
            "arrive",
            "arrive_drop",
            "noComplete",
            "test_wait",
            "try_wait",
            "parity",
            "pending_count",
        ],
    ),
    ("membar", &["proxy"]),
    ("mul", &["lo", "hi", "wide"]),
    ("mul24", &["lo", "hi"]),
    ("red", &["async"]),
    ("setmaxnreg", &["inc", "dec"]),
    ("shf", &["l", "r"]),
    ("st", &["async"]),
    ("wgmma", &["mma_async", "fence", "commit_group", "wait_group"]),
    ("wmma", &["load", "store", "mma", "a", "b", "c", "d"]),
];

/// Whether words of this kind keep their order.
fn ordered(word: &str) -> bool {
    Ty::from_word(word).is_some() || matches!(word, "row" | "col" | "s4" | "u4" | "s2" | "u2" | "b1")
}

/// `words` in the order of `pattern`, if they fill its slots.
pub(crate) fn arrange<'w>(op: &str, pattern: &str, words: &[&'w str]) -> Option<Vec<&'w str>> {
    let leading = LEADING.iter().find(|(o, _)| *o == op).map_or(&[][..], |(_, words)| words);
    let mut left: Vec<&str> = words.to_vec();
    let mut out = Vec::with_capacity(words.len());
    let mut front = true;
    // Which memory comes first says which way a bulk copy goes.
    let strict = op == "cp" && words.contains(&"bulk");
    for slot in pattern.split_ascii_whitespace() {
        let (alternatives, optional) = slot.strip_suffix('?').map_or((slot, false), |s| (s, true));
        let fits = |word: &str| alternatives.split('|').any(|a| a == word);
        front &= strict || alternatives.split('|').all(|a| leading.contains(&a));
        let at = if front {
            left.first().is_some_and(|w| fits(w)).then_some(0)
        } else {
            let first = left.iter().position(|w| ordered(w));
            left.iter().enumerate().position(|(i, w)| fits(w) && (!ordered(w) || first == Some(i)))
        };
        match at {
            Some(at) => out.push(left.remove(at)),
            None if optional => {}
            None => return None,
        }
    }
    left.is_empty().then_some(out)
}

/// The number of words that fill the slots of `pattern` in its own order; for messages.
pub(crate) fn reach(pattern: &str, words: &[&str]) -> usize {
    let mut at = 0;
    for slot in pattern.split_ascii_whitespace() {
        let (alternatives, optional) = slot.strip_suffix('?').map_or((slot, false), |s| (s, true));
        match words.get(at) {
            Some(word) if alternatives.split('|').any(|a| a == *word) => at += 1,
            _ if optional => {}
            _ => return at,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_fill_slots_in_any_order() {
        assert_eq!(arrange("add", "rn|rz? ftz? f32", &["ftz", "f32"]), Some(vec!["ftz", "f32"]));
        assert_eq!(arrange("add", "rn|rz? ftz? f32", &["f32", "ftz", "rn"]), Some(vec!["rn", "ftz", "f32"]));
        assert_eq!(arrange("add", "rn|rz? ftz? f32", &["rn"]), None);
        assert_eq!(arrange("add", "rn|rz? ftz? f32", &["rn", "rz", "f32"]), None);
        assert_eq!(arrange("add", "b32", &["b32", "b32"]), None);
    }

    #[test]
    fn types_and_the_words_of_the_opcode_stay() {
        let cvt = "rn satfinite e4m3x2 f16x2";
        assert!(arrange("cvt", cvt, &["satfinite", "e4m3x2", "rn", "f16x2"]).is_some());
        assert!(arrange("cvt", cvt, &["rn", "satfinite", "f16x2", "e4m3x2"]).is_none());
        assert!(arrange("mul", "lo|hi u32", &["u32", "lo"]).is_none());
        assert!(
            arrange("mma", "sync aligned row|col row|col f32", &["row", "col", "f32", "aligned", "sync"]).is_some()
        );
        let mma = arrange("mma", "row|col row|col f32", &["col", "row", "f32"]);
        assert!(mma.is_none_or(|words| words == ["col", "row", "f32"]));
    }

    #[test]
    fn reach_counts_what_fits() {
        assert_eq!(reach("rn|rz? ftz? f32", &["ftz", "rn", "f32"]), 1);
        assert_eq!(reach("rn|rz? ftz? f32", &["rn"]), 1);
    }
}
