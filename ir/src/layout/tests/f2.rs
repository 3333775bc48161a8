//! F2 maps: every identity the operations promise, on random maps and exhaustively on small ones.

use arbitrary::Unstructured;

use super::cases;
use crate::layout::F2Map;

/// A random map of up to 7 by 7 bits, often singular.
pub(super) fn any_map(u: &mut Unstructured<'_>, in_bits: u32, out_bits: u32) -> arbitrary::Result<F2Map> {
    let cols: arbitrary::Result<Vec<u64>> = (0..in_bits).map(|_| u.int_in_range(0..=(1u64 << out_bits) - 1)).collect();
    Ok(F2Map::new(cols?, out_bits).unwrap())
}

fn bits(u: &mut Unstructured<'_>) -> arbitrary::Result<u32> {
    u.int_in_range(0..=6)
}

#[test]
fn apply_is_linear_and_compose_is_application() {
    cases(400, |u| {
        let (a, b, c) = (bits(u)?, bits(u)?, bits(u)?);
        let (f, g) = (any_map(u, a, b)?, any_map(u, b, c)?);
        let h = g.compose(&f).unwrap();
        for x in 0..1 << a {
            assert_eq!(h.apply(x), g.apply(f.apply(x)));
            for y in 0..1 << a {
                assert_eq!(f.apply(x ^ y), f.apply(x) ^ f.apply(y));
            }
        }
        assert_eq!(F2Map::identity(b).compose(&f), Some(f.clone()));
        assert_eq!(F2Map::identity(b + 1).compose(&f), None);
        Ok(())
    });
}

#[test]
fn inverses_undo() {
    cases(400, |u| {
        let (a, b) = (bits(u)?, bits(u)?);
        let f = any_map(u, a, b)?;
        let images: std::collections::BTreeSet<u64> = (0..1 << a).map(|x| f.apply(x)).collect();
        assert_eq!(images.len(), 1 << f.rank());
        assert_eq!(f.is_surjective(), images.len() == 1 << b);
        assert_eq!(f.is_injective(), images.len() == 1 << a);
        assert_eq!(f.is_bijective(), f.is_injective() && f.is_surjective());
        match f.right_inverse() {
            Some(r) => assert_eq!(f.compose(&r), Some(F2Map::identity(b))),
            None => assert!(!f.is_surjective()),
        }
        match f.inverse() {
            Some(r) => {
                assert_eq!(f.compose(&r), Some(F2Map::identity(b)));
                assert_eq!(r.compose(&f), Some(F2Map::identity(a)));
            }
            None => assert!(!f.is_bijective()),
        }
        for y in 0..1 << b {
            match f.solve(y) {
                Some(x) => assert_eq!(f.apply(x), y),
                None => assert!(!images.contains(&y)),
            }
        }
        Ok(())
    });
}

#[test]
fn kernel_is_a_basis_of_the_zeros() {
    cases(400, |u| {
        let (a, b) = (bits(u)?, bits(u)?);
        let f = any_map(u, a, b)?;
        let kernel = f.kernel();
        let zeros = (0..1 << a).filter(|&x| f.apply(x) == 0).count();
        assert_eq!(zeros, 1 << kernel.len());
        assert!(kernel.iter().all(|&k| f.apply(k) == 0));
        assert_eq!(crate::layout::f2::rank(&kernel), kernel.len() as u32);
        Ok(())
    });
}

#[test]
fn product_acts_on_each_half_and_division_undoes_it() {
    cases(400, |u| {
        let (a, b, c, d) = (bits(u)?, bits(u)?, bits(u)?.min(4), bits(u)?);
        let (lo, hi) = (any_map(u, a, b)?, any_map(u, c, d)?);
        let p = lo.product(&hi);
        assert_eq!((p.in_bits(), p.out_bits()), (a + c, b + d));
        for x in 0..1 << a {
            for y in 0..1 << c {
                assert_eq!(p.apply(x | y << a), lo.apply(x) | hi.apply(y) << b);
            }
        }
        assert_eq!(p.divide(&lo), Some(hi.clone()));
        // Division exists only when the product gives the map back.
        let other = any_map(u, a, b)?;
        let whole = any_map(u, a + c, b + d)?;
        for map in [&p, &whole] {
            if let Some(q) = map.divide(&other) {
                assert_eq!(&other.product(&q), map);
            }
        }
        Ok(())
    });
}

#[test]
fn selections_and_concatenation_are_sub_matrices() {
    cases(400, |u| {
        let (a, b, c) = (bits(u)?, bits(u)?, bits(u)?);
        let (f, g) = (any_map(u, a, b)?, any_map(u, c, b)?);
        let both = f.concat_inputs(&g).unwrap();
        for x in 0..1u64 << a {
            for y in 0..1 << c {
                assert_eq!(both.apply(x | y << a), f.apply(x) ^ g.apply(y));
            }
        }
        assert_eq!(both.select_inputs(0..a), f);
        assert_eq!(both.select_inputs(a..99), g);
        let (lo, hi) = (bits(u)?.min(b), b);
        let s = f.select_outputs(lo..hi);
        for x in 0..1 << a {
            assert_eq!(s.apply(x), f.apply(x) >> lo);
            assert_eq!(f.select_outputs(0..lo).apply(x), f.apply(x) & ((1 << lo) - 1));
        }
        Ok(())
    });
}

#[test]
fn limits_are_checked() {
    assert_eq!(F2Map::new(vec![4], 2), None);
    assert_eq!(F2Map::new(vec![0; 64], 2), None);
    assert_eq!(F2Map::new(vec![], 64), None);
    assert!(F2Map::new(vec![1 << 62; 63], 63).is_some());
    let f = F2Map::identity(40);
    assert_eq!(f.checked_product(&f), None);
    assert_eq!(F2Map::identity(63).inverse(), Some(F2Map::identity(63)));
    assert_eq!(F2Map::zero(3, 0).kernel().len(), 3);
}
