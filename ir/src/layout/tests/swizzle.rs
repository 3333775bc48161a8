//! Swizzles: the definition bit by bit, self-inverse, and text.

use crate::layout::{F2Map, Swizzle, parse_swizzle, parse_swizzle_prefix};

#[test]
fn a_swizzle_xors_its_bits_and_undoes_itself() {
    for (b, m, s) in [(0, 0, 0), (1, 0, 1), (2, 3, 3), (3, 4, 3), (2, 0, -2), (2, 1, -3)] {
        let z = Swizzle::new(b, m, s).unwrap();
        for x in 0..1 << 10u64 {
            let bit = |i: u32| x >> i & 1;
            let mut want = x;
            for i in 0..b {
                let (low, high) = (m + i, m + i + s.unsigned_abs());
                let (to, from) = if s > 0 { (low, high) } else { (high, low) };
                want ^= bit(from) << to;
            }
            assert_eq!(z.apply(x), want, "{z} of {x:#b}");
            assert_eq!(z.apply(want), x);
            assert_eq!(z.to_f2(10).apply(x), want);
        }
        assert_eq!(z.to_f2(10).compose(&z.to_f2(10)), Some(F2Map::identity(10)));
        assert_eq!(parse_swizzle(&z.to_string()), Ok(z));
    }
}

#[test]
fn invalid_swizzles_are_refused() {
    assert_eq!(Swizzle::new(3, 0, 2), None, "source and target overlap");
    assert_eq!(Swizzle::new(1, 62, 1), None, "past 63 bits");
    assert_eq!(Swizzle::new(u32::MAX, 1, 1), None);
    assert_eq!(Swizzle::new(1, 0, i32::MIN), None);
    for (text, offset, needle) in [
        ("swizzle<3,0,2>", 0, "at least the 3 bits"),
        ("swizzle<99,0,2>", 8, "larger than 63"),
        ("swizzle(1,0,2)", 7, "`<`"),
        ("swizzles<1,0,2>", 0, "swizzle<B,M,S>"),
        ("swizzle<1,0,2> x", 15, "end"),
    ] {
        let e = parse_swizzle(text).unwrap_err();
        assert!(e.offset == offset && e.message.contains(needle), "{text}: {e}");
    }
    assert_eq!(parse_swizzle_prefix(" swizzle < 2 , 0 , -2 >;").unwrap().1, 23);
}
