//! The swizzle search against the published Volta results and against a naive search.
//!
//! Lane maps: a tile `(O, K)` of halves, element index `o + O k`. Fragments take lane bits 0 and 1, the
//! quad-pair bit that the operand reads (2 for A, 3 for B; the other is a broadcast) and bit 4.

use super::cases;
use super::f2::any_map;
use crate::bits::Bits;
use crate::layout::{
    F2Map, PhaseAccess, SmemLayout, Swizzle, search_xor, search_xor_terms, wavefronts_by_enumeration,
    wavefronts_by_rank,
};

const LOG2_O: u32 = 7;

fn o(bit: u32) -> u64 {
    1 << bit
}

fn k(bit: u32) -> u64 {
    1 << (LOG2_O + bit)
}

fn half_access(lane_cols: Vec<u64>) -> PhaseAccess {
    PhaseAccess { lane_cols, access_bytes: 16, elem: Bits::new(16), weight: 1 }
}

/// `[l_0, l_1, l_2, l_3, l_4]` of a fragment whose quad-pair bit goes to `q`.
fn fragment(is_a: bool, l0: u64, l1: u64, q: u64, hi: u64) -> PhaseAccess {
    half_access(if is_a { vec![l0, l1, q, 0, hi] } else { vec![l0, l1, 0, q, hi] })
}

/// K-contiguous operand: eight k of one row a lane, rows by `(l_0, l_1, q, hi)`.
fn crosswise(is_a: bool, log2_bk: u32) -> (SmemLayout, PhaseAccess, PhaseAccess) {
    let base = SmemLayout::natural(&[LOG2_O, log2_bk], &[1, 0]).unwrap();
    let chunks = (3..log2_bk).map(k);
    let store = chunks.chain((0..).map(o)).take(5).collect();
    (base, half_access(store), fragment(is_a, o(0), o(1), o(2), o(3)))
}

/// Outer-contiguous operand: eight rows of one k a lane.
fn congruous(is_a: bool, log2_bk: u32) -> (SmemLayout, PhaseAccess, PhaseAccess) {
    let base = SmemLayout::natural(&[LOG2_O, log2_bk], &[0, 1]).unwrap();
    let store = (3..LOG2_O).map(o).chain((0..).map(k)).take(5).collect();
    (base, half_access(store), fragment(is_a, k(0), k(1), o(3), o(4)))
}

/// Conflict degree, by rank and by counting all lanes; the two must agree.
fn ways(layout: &SmemLayout, a: &PhaseAccess) -> u32 {
    let cols: Vec<u64> = a.lane_cols.iter().map(|&c| a.elem.byte_at(layout.map().apply(c))).collect();
    let by_rank = wavefronts_by_rank(&cols, a.access_bytes);
    let map = F2Map::from_cols(cols).unwrap();
    let offsets: Vec<u64> = (0..32).map(|lane| map.apply(lane)).collect();
    assert_eq!(by_rank, wavefronts_by_enumeration(&offsets, a.access_bytes));
    by_rank.wavefronts / by_rank.phases
}

#[test]
fn plain_layouts_conflict_as_published() {
    for (i, log2_bk) in (3..=6).enumerate() {
        let (l, store, load) = crosswise(true, log2_bk);
        assert_eq!((ways(&l, &load), ways(&l, &store)), ([1, 2, 4, 8][i], 1));
        let (l, _, load) = crosswise(false, log2_bk);
        assert_eq!(ways(&l, &load), [1, 1, 2, 4][i]);
        for is_a in [true, false] {
            let (l, store, load) = congruous(is_a, log2_bk);
            assert_eq!((ways(&l, &load), ways(&l, &store)), (4, 1));
        }
    }
}

#[test]
fn closed_forms_are_conflict_free() {
    for log2_bk in 3..=6 {
        for is_a in [true, false] {
            // F1: chunk index ^ (k & 3) << 1.
            let (base, store, load) = congruous(is_a, log2_bk);
            let (_, cute) = base.to_cute().unwrap();
            let f1 = SmemLayout::from_cute(Swizzle::new(2, 4, LOG2_O as i32 - 4), &cute).unwrap();
            assert_eq!((ways(&f1, &load), ways(&f1, &store)), (1, 1));
            // F2: chunk index ^ (chunk >> 3) & (BK/8 - 1).
            let (base, store, load) = crosswise(is_a, log2_bk);
            let (_, cute) = base.to_cute().unwrap();
            let f2 = SmemLayout::from_cute(Swizzle::new(log2_bk - 3, 3, 3), &cute).unwrap();
            assert_eq!((ways(&f2, &load), ways(&f2, &store)), (1, 1));
        }
    }
}

#[test]
fn interleaved_crosswise_forms_are_conflict_free() {
    // F3: j -> o_2, q -> o_3, hi -> o_4; `(slot, row bit)` terms on the 16-byte chunk index.
    let forms: [(u32, &[(u32, u32)]); 4] =
        [(3, &[(2, 3)]), (4, &[(0, 3)]), (5, &[(1, 1), (0, 3)]), (6, &[(2, 0), (1, 1), (0, 3)])];
    for (log2_bk, terms) in forms {
        for is_a in [true, false] {
            let (mut layout, store, _) = crosswise(is_a, log2_bk);
            let load = fragment(is_a, o(0), o(1), o(3), o(4));
            for &(slot, row) in terms {
                layout = layout.xor_term(3 + slot, log2_bk + row).unwrap();
            }
            assert!(layout.is_bijective());
            assert_eq!((ways(&layout, &load), ways(&layout, &store)), (1, 1), "{layout}");
        }
    }
}

#[test]
fn the_search_needs_the_published_number_of_terms() {
    for (i, log2_bk) in (3..=6).enumerate() {
        for is_a in [true, false] {
            let (base, store, load) = crosswise(is_a, log2_bk);
            let r = search_xor(&[store.clone(), load.clone()], &base, 3).unwrap();
            let want = if is_a { [0, 1, 2, 3][i] } else { [0, 0, 1, 2][i] };
            assert_eq!((r.terms.len(), r.conflict_free), (want, true), "{r:?}");
            assert_eq!((ways(&r.layout, &load), ways(&r.layout, &store)), (1, 1));
            assert!(r.layout.is_bijective() && r.layout.to_cute().is_some(), "{}", r.layout);

            let (base, store, load) = congruous(is_a, log2_bk);
            let r = search_xor(&[store.clone(), load.clone()], &base, 3).unwrap();
            assert_eq!((r.terms.len(), r.conflict_free), (2, true), "{r:?}");
            assert_eq!((ways(&r.layout, &load), ways(&r.layout, &store)), (1, 1));
            assert!(r.layout.to_cute().is_some(), "{}", r.layout);
        }
    }
    // With A and BK = 64 the answer is the textbook one.
    let (base, store, load) = crosswise(true, 6);
    let (layout, terms) = search_xor_terms(&[store, load], &base, 3).unwrap();
    assert_eq!(layout.to_string(), "(128,64):(64,1) swizzle<3,3,3>");
    assert_eq!(terms, [(3, 6), (4, 7), (5, 8)]);
}

#[test]
fn a_single_swizzle_is_preferred_among_equals() {
    // Lane 0 steps over rows 0 and 1 together, so either may be its source; only row 1 is a neighbour of
    // lane 1's row 2, and the lexicographically first set is no swizzle.
    let base = SmemLayout::natural(&[4, 6], &[1, 0]).unwrap();
    let rows = half_access(vec![0b011, 0b100, 0, 0, 0]);
    let r = search_xor(&[rows], &base, 3).unwrap();
    assert_eq!(r.terms, [(3, 7), (4, 8)]);
    assert_eq!(r.layout.to_string(), "(16,64):(64,1) swizzle<2,3,4>");
}

#[test]
fn too_few_terms_give_the_least_wavefronts() {
    let (base, store, load) = crosswise(true, 6);
    for (max, factor) in [(0, 8), (1, 4), (2, 2)] {
        let r = search_xor(&[store.clone(), load.clone()], &base, max).unwrap();
        assert_eq!((r.conflict_free, r.wavefronts), (false, 4 + 4 * factor), "{max}");
        assert_eq!(r.terms.len(), max);
    }
}

#[test]
fn malformed_accesses_are_refused() {
    let base = SmemLayout::natural(&[4, 4], &[1, 0]).unwrap();
    let good = half_access(vec![1, 2, 4, 8, 16]);
    for bad in [
        PhaseAccess { access_bytes: 12, ..good.clone() },
        PhaseAccess { access_bytes: 32, ..good.clone() },
        PhaseAccess { elem: Bits::new(24), ..good.clone() },
        PhaseAccess { elem: Bits::new(32), ..good.clone() },
        PhaseAccess { elem: Bits::new(0), ..good.clone() },
    ] {
        assert_eq!(search_xor(&[good.clone(), bad], &base, 3), None);
    }
    let r = search_xor(&[], &base, 3).unwrap();
    assert!(r.conflict_free && r.terms.is_empty() && r.layout == base);
}

#[test]
fn the_search_is_as_good_as_trying_everything() {
    // Up to two elementary terms from any higher bit, applied one after the other.
    cases(30, |u| {
        let elem = Bits::new(*u.choose(&[4u32, 8, 16, 32])?);
        // Terms are between bits of the address in bits.
        let shift = elem.log2();
        let base = SmemLayout::natural(&[5, 6], &[1, 0]).unwrap();
        let mut accesses = Vec::new();
        for _ in 0..u.int_in_range(1..=2)? {
            accesses.push(PhaseAccess {
                lane_cols: any_map(u, 5, 11)?.cols().to_vec(),
                access_bytes: *u.choose(&[4, 8, 16])?,
                elem,
                weight: 1,
            });
        }
        // Naturally aligned vectors: clear the bits below the access.
        for a in &mut accesses {
            let vector = elem.per(a.access_bytes) - 1;
            a.lane_cols.iter_mut().for_each(|c| *c &= !(u64::from(vector) << 5));
        }
        let cost = |l: &SmemLayout| -> u32 {
            let phases = |a: &PhaseAccess| a.access_bytes / 4;
            accesses.iter().map(|a| ways(l, a) * phases(a)).sum()
        };
        let widest = accesses.iter().map(|a| a.access_bytes).max().unwrap().trailing_zeros() + 3;
        let steps: Vec<(u32, u32)> = (widest..10)
            .flat_map(|slot| (slot + 1..11 + shift).map(move |from| (slot - shift, from - shift)))
            .collect();
        let ideal: u32 = accesses.iter().map(|a| a.access_bytes / 4).sum();
        let one: Vec<SmemLayout> = steps.iter().map(|&(s, f)| base.xor_term(s, f).unwrap()).collect();
        let best_one = one.iter().map(&cost).min().unwrap_or(u32::MAX).min(cost(&base));
        let r = search_xor(&accesses, &base, 1).unwrap();
        assert_eq!(r.wavefronts, u64::from(best_one), "{accesses:?}");
        assert_eq!(r.conflict_free, best_one == ideal);
        let mut best_two = best_one;
        for l in &one {
            for &(s, f) in &steps {
                best_two = best_two.min(cost(&l.xor_term(s, f).unwrap()));
            }
        }
        let r = search_xor(&accesses, &base, 2).unwrap();
        assert_eq!(r.wavefronts, u64::from(best_two), "{accesses:?} {:?}", r.terms);
        assert_eq!(u64::from(cost(&r.layout)), r.wavefronts);
        Ok(())
    });
}
