//! CuTe and F2: both directions exact at every coordinate, with and without a swizzle.

use super::cases;
use super::cute::{any_layout, parse};
use crate::layout::{F2Map, Swizzle, cute_to_f2, f2_to_cute, swizzled_to_f2};

#[test]
fn a_layout_converts_exactly_when_it_is_linear() {
    let mut linear = 0;
    cases(600, |u| {
        let l = any_layout(u)?;
        let value = |i| l.at(i).unwrap();
        // Linear means additive in every single bit.
        let additive = |i: u64| (0..l.size().ilog2()).all(|b| value(i ^ 1 << b) == value(i) ^ value(1 << b));
        let is_linear = l.leaves().iter().all(|(s, _)| s.is_power_of_two()) && (0..l.size()).all(additive);
        match cute_to_f2(&l) {
            Ok(map) => {
                assert!((0..l.size()).all(|i| map.apply(i) == value(i)), "{l}");
                linear += 1;
            }
            Err(e) => assert!(!is_linear, "{l}: {e}"),
        }
        Ok(())
    });
    assert!(linear > 100, "the generator must reach linear layouts: {linear}");
}

#[test]
fn a_map_that_converts_comes_back_unchanged() {
    let (mut plain, mut swizzled) = (0, 0);
    cases(600, |u| {
        let bits = u.int_in_range(1..=8u32)?;
        // A permutation of the bits, then perhaps a swizzle.
        let mut cols: Vec<u64> = (0..bits).map(|i| 1 << i).collect();
        for i in 0..cols.len() {
            let j = u.choose_index(cols.len())?;
            cols.swap(i, j);
        }
        let s = Swizzle::new(u.int_in_range(0..=3)?, u.int_in_range(0..=4)?, u.int_in_range(0..=4)?);
        let cols: Vec<u64> = cols.iter().map(|&c| s.map_or(c, |s| s.apply(c))).collect();
        let map = F2Map::new(cols, bits).unwrap();
        let cut = u.int_in_range(0..=bits)?;
        let (sw, l) = f2_to_cute(&map, &[cut, bits - cut]).unwrap();
        assert_eq!(swizzled_to_f2(sw, &l), Ok(map.clone()), "{l} {sw:?}");
        assert_eq!((l.mode(0).unwrap().size(), l.rank()), (1 << cut, 2));
        assert!(sw.is_none_or(|s| !s.is_identity()));
        *(if sw.is_some() { &mut swizzled } else { &mut plain }) += 1;
        Ok(())
    });
    assert!(plain > 100 && swizzled > 100, "both forms must occur: {plain} {swizzled}");
}

#[test]
fn the_plain_form_is_canonical() {
    for (text, split) in [
        ("(128,32):(32,1)", [7, 5]),
        ("((4,32),(8,4)):((1024,1),(128,32))", [7, 5]),
        ("(1,32):(0,1)", [0, 5]),
        ("((2,4),2):((1,0),2)", [3, 1]),
    ] {
        let map = cute_to_f2(&parse(text)).unwrap();
        let (s, l) = f2_to_cute(&map, &split).unwrap();
        assert_eq!((s, l.to_string().as_str()), (None, text));
    }
}

#[test]
fn volta_swizzles_are_found() {
    // F2 of a row-major 128 x BK half tile is Swizzle<log2(BK/8),3,3>.
    for (log2_bk, b) in [(4, 1), (5, 2), (6, 3)] {
        let l = parse(&format!("(128,{0}):({0},1)", 1 << log2_bk));
        let s = Swizzle::new(b, 3, 3).unwrap();
        let map = swizzled_to_f2(Some(s), &l).unwrap();
        assert_eq!(f2_to_cute(&map, &[7, log2_bk]), Some((Some(s), l)));
    }
}

#[test]
fn maps_without_a_single_swizzle_have_no_form() {
    // Two sources into one bit.
    let map = F2Map::new(vec![1, 2 | 1, 4 | 1, 8], 4).unwrap();
    assert_eq!(f2_to_cute(&map, &[2, 2]), None);
    assert_eq!(f2_to_cute(&F2Map::identity(4), &[2, 1]), None, "split must add up");
    assert_eq!(f2_to_cute(&F2Map::identity(4), &[]), None);
}

#[test]
fn no_form_means_no_form() {
    // Exhaustive over all 3x3 maps: the answer is None only if no swizzle of three bits works.
    for code in 0..512u64 {
        let cols = vec![code & 7, code >> 3 & 7, code >> 6];
        let map = F2Map::new(cols.clone(), 3).unwrap();
        let found = f2_to_cute(&map, &[3]);
        if let Some((s, l)) = &found {
            let back = swizzled_to_f2(*s, l).unwrap();
            assert_eq!(back.cols(), map.cols());
        }
        let some = (0..=3).flat_map(|m| (1..=3).map(move |s| (m, s))).any(|(m, s)| {
            let sw = Swizzle::new(1, m, s).unwrap();
            let c: Vec<u64> = cols.iter().map(|&c| sw.apply(c)).collect();
            c[0] & c[1] | c[0] & c[2] | c[1] & c[2] == 0
        });
        assert_eq!(found.is_some(), some, "{cols:?}");
    }
}
