//! CuTe layouts: text, evaluation, and every law of the algebra at every coordinate.

use std::collections::BTreeSet;

use arbitrary::Unstructured;

use super::cases;
use crate::layout::{CuteLayout, IntTuple, parse_cute, parse_cute_prefix};

pub(super) fn parse(text: &str) -> CuteLayout {
    parse_cute(text).unwrap()
}

/// A random nested layout of at most a few hundred elements; strides favour what composes.
pub(super) fn any_layout(u: &mut Unstructured<'_>) -> arbitrary::Result<CuteLayout> {
    let n = u.int_in_range(1..=4)?;
    let mut leaves = Vec::new();
    let mut dense = 1u64;
    for _ in 0..n {
        let s = *u.choose(&[1, 2, 2, 3, 4, 4, 6, 8])?;
        let d = match u.int_in_range(0..=9u32)? {
            0 => 0,
            1 => u.int_in_range(1..=9)?,
            2 => dense * 2,
            _ => dense,
        };
        dense = dense.max(1) * s;
        leaves.push((s, d));
    }
    // Shuffle, then sometimes group the tail into a tuple.
    for i in 0..leaves.len() {
        let j = u.choose_index(leaves.len())?;
        leaves.swap(i, j);
    }
    let flat = CuteLayout::from_pairs(&leaves).unwrap();
    if leaves.len() > 2 && u.arbitrary()? {
        let tail = CuteLayout::from_pairs(&leaves[1..]).unwrap();
        return Ok(CuteLayout::concat(&[flat.mode(0).unwrap(), tail]).unwrap());
    }
    Ok(flat)
}

fn offsets(l: &CuteLayout) -> Vec<u64> {
    (0..l.size()).map(|i| l.at(i).unwrap()).collect()
}

/// Runs `check` on random pairs and insists that it succeeded often enough to mean something.
fn pairs(min: u32, mut check: impl FnMut(&CuteLayout, &CuteLayout) -> bool) {
    let mut hits = 0;
    cases(500, |u| {
        let (a, b) = (any_layout(u)?, any_layout(u)?);
        hits += u32::from(check(&a, &b));
        Ok(())
    });
    assert!(hits >= min, "only {hits} cases reached the postcondition");
}

#[test]
fn text_round_trips() {
    cases(500, |u| {
        let l = any_layout(u)?;
        assert_eq!(parse(&l.to_string()), l);
        Ok(())
    });
    let spaced = " ( (4, 8) ,2 )\n: ((1 ,16), 8)";
    assert_eq!(parse(spaced).to_string(), "((4,8),2):((1,16),8)");
    assert_eq!(parse_cute_prefix("(2,0x4):(4,1) -> x").unwrap().1, 13);
}

#[test]
fn text_errors_name_the_byte() {
    for (text, offset, needle) in [
        ("", 0, "number"),
        ("(4,8", 4, "`,` or `)`"),
        ("(4,8)", 5, "`:`"),
        ("(4,8):(1", 8, "`,` or `)`"),
        ("(4,8):(1,2,3)", 0, "nested alike"),
        ("4:(1)", 0, "nested alike"),
        ("():()", 1, "number"),
        ("4:1 x", 4, "end"),
        ("0:1", 0, "extent 0"),
        ("4:-1", 2, "number"),
        ("99999999999999999999:1", 0, "too large"),
        ("(4294967296,4294967296):(0,0)", 0, "overflows"),
        ("3:9223372036854775807", 0, "overflows"),
    ] {
        let e = parse_cute(text).unwrap_err();
        assert!(e.offset == offset && e.message.contains(needle), "{text}: {e}");
    }
    let deep = "(".repeat(100_000);
    assert_eq!(parse_cute(&deep).unwrap_err().offset, 33);
}

#[test]
fn evaluation_walks_the_first_mode_fastest() {
    let l = parse("((2,4),3):((8,1),32)");
    assert_eq!((l.size(), l.cosize(), l.rank(), l.depth()), (24, 76, 2, 2));
    let mut i = 0;
    for c in 0..3 {
        for b in 0..4 {
            for a in 0..2 {
                let want = 8 * a + b + 32 * c;
                assert_eq!(l.at(i), Some(want));
                assert_eq!(l.at_coords(&[a + 2 * b, c]), Some(want));
                let nested =
                    IntTuple::Tuple(vec![IntTuple::Tuple(vec![IntTuple::Int(a), IntTuple::Int(b)]), IntTuple::Int(c)]);
                assert_eq!(l.at_coord(&nested), Some(want));
                i += 1;
            }
        }
    }
    assert_eq!((l.at(24), l.at_coords(&[8, 0]), l.at_coords(&[0])), (None, None, None));
}

#[test]
fn coalescing_changes_no_offset() {
    cases(500, |u| {
        let l = any_layout(u)?;
        let c = l.coalesce();
        assert_eq!(offsets(&c), offsets(&l));
        assert!(c.depth() <= 1 && c.leaves().len() <= l.leaves().len());
        assert_eq!(c.coalesce(), c);
        let m = l.coalesce_modes();
        assert_eq!((offsets(&m), m.rank()), (offsets(&l), l.rank()));
        Ok(())
    });
    assert_eq!(parse("((2,4),(1,8)):((1,2),(7,8))").coalesce().to_string(), "64:1");
    assert_eq!(parse("(2,3):(0,0)").coalesce().to_string(), "6:0");
}

#[test]
fn composition_is_application() {
    pairs(50, |a, b| {
        let Ok(r) = a.composition(b) else {
            return false;
        };
        let want: Vec<u64> = offsets(b).iter().map(|&i| a.at(i).unwrap()).collect();
        assert_eq!(offsets(&r), want, "{a} o {b} = {r}");
        assert_eq!(r.rank().max(b.rank()), if b.depth() == 0 { r.rank() } else { b.rank() });
        true
    });
}

#[test]
fn composition_says_what_does_not_divide() {
    for (a, b, needle) in [
        ("(4,2):(2,1)", "3:3", "does not divide"),
        ("(4,2):(2,1)", "9:1", "past the size"),
        ("(2,2):(1,10)", "(2,2):(1,1)", "carry"),
        ("(6,2):(1,10)", "4:2", "does not divide"),
    ] {
        let e = parse(a).composition(&parse(b)).unwrap_err();
        assert!(e.message.contains(needle), "{a} o {b}: {e}");
    }
    let r = parse("(6,2):(8,2)").composition(&parse("(4,3):(3,1)")).unwrap();
    assert_eq!(r.to_string(), "((2,2),3):((24,2),8)");
}

#[test]
fn complement_is_disjoint_and_covers() {
    pairs(50, |a, b| {
        let Ok(c) = a.complement(b.cosize()) else {
            return false;
        };
        let both = CuteLayout::concat(&[a.clone(), c.clone()]).unwrap();
        let all = offsets(&both);
        let set: BTreeSet<u64> = all.iter().copied().collect();
        assert_eq!(set.len(), all.len(), "{a} and {c} overlap");
        assert!((0..b.cosize()).all(|i| set.contains(&i)), "{a} and {c} leave a hole");
        let in_order = offsets(&c);
        assert!(in_order.is_sorted(), "{c} is ordered");
        true
    });
    assert_eq!(parse("4:2").complement(24).unwrap().to_string(), "(2,3):(1,8)");
    assert!(parse("(2,2):(1,1)").complement(4).is_err());
    assert!(parse("(2,2):(0,1)").complement(4).is_err());
}

#[test]
fn logical_divide_separates_tiles() {
    pairs(20, |a, tile| {
        let Ok(r) = a.logical_divide(tile) else {
            return false;
        };
        assert_eq!((r.rank(), r.size()), (2, a.size()), "{a} / {tile}");
        // Within the first tile: `a` at the tile's own offsets.
        for i in 0..tile.size() {
            assert_eq!(r.at_coords(&[i, 0]), a.at(tile.at(i).unwrap()));
        }
        // All tiles together: exactly the elements of `a`.
        let (mut got, mut want) = (offsets(&r), offsets(a));
        got.sort_unstable();
        want.sort_unstable();
        assert_eq!(got, want);
        true
    });
}

#[test]
fn logical_product_repeats_disjointly() {
    pairs(20, |a, tiler| {
        let Ok(r) = a.logical_product(tiler) else {
            return false;
        };
        assert_eq!((r.rank(), r.size()), (2, a.size() * tiler.size()));
        let injective = |l: &CuteLayout| offsets(l).iter().collect::<BTreeSet<_>>().len() as u64 == l.size();
        assert!(injective(a), "a complement exists only then");
        assert_eq!(injective(&r), injective(tiler), "{a} x {tiler} = {r}");
        // Copy `j` is `a` moved by a constant.
        for j in 0..tiler.size() {
            let start = r.at_coords(&[0, j]).unwrap();
            for i in 0..a.size() {
                assert_eq!(r.at_coords(&[i, j]), Some(start + a.at(i).unwrap()));
            }
        }
        true
    });
}

#[test]
fn one_sided_inverses_invert() {
    pairs(50, |a, _| {
        let r = a.right_inverse();
        assert!((0..r.size()).all(|i| a.at(r.at(i).unwrap()) == Some(i)), "{a} o {r}");
        let Ok(l) = a.left_inverse() else {
            return false;
        };
        assert!((0..a.size()).all(|i| l.at(a.at(i).unwrap()) == Some(i)), "{l} o {a}");
        true
    });
    assert_eq!(parse("(4,8):(8,1)").right_inverse().to_string(), "(8,4):(4,1)");
    assert_eq!(parse("4:2").right_inverse().size(), 1);
}
