//! Which comparisons of a sort are emitted once and executed in a loop.
//!
//! Registers cannot be indexed at run time, so comparisons between registers of a thread are unrolled. Comparisons
//! between lanes that use the same registers differ only in the lane mask, which a shuffle takes from a register. So
//! they can be a loop. Example for rows of 256 elements in a warp, eight in each lane. `m` is the first comparison of a
//! block (with mirrored elements), `l` are those between lanes, and 4, 2, 1 those between registers:
//!
//! ```text
//! m 2 m 2 1                            in a thread
//! m 4 2 1                              blocks of 16 elements
//! (m l .. 4 2 1) for blocks of 32, 64, 128, 256: one body, and in it one for the comparisons `l`
//! ```

use tilec_ir::layout::Comparison;

/// Bits of an entry: of a lane number, plus one bit that ends the loop.
pub(super) const ENTRY: u32 = 6;
/// Entries in a 64-bit register.
const ENTRIES: usize = (u64::BITS / ENTRY) as usize;
/// A loop must save at least this many comparisons of tuples in the text, or its branch is not worth it.
const LEAST: usize = 24;

/// Consecutive comparisons.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// One comparison, written out.
    One(Comparison),
    /// Comparisons that differ only in their lanes: a loop.
    Lanes(Vec<Comparison>),
    /// The same parts several times with different lanes in each round: a loop around them.
    Rounds(Vec<Vec<Part>>),
}

impl Part {
    /// Whether both parts have the same code.
    fn is_alike(&self, other: &Part) -> bool {
        match (self, other) {
            (Part::Lanes(a), Part::Lanes(b)) => (a[0].registers, a[0].upper) == (b[0].registers, b[0].upper),
            _ => self == other,
        }
    }

    /// The comparisons of a loop over lanes.
    pub(super) fn entries(&self) -> &[Comparison] {
        if let Part::Lanes(all) = self { all } else { &[] }
    }
}

/// Whether a loop can execute a comparison: it is between lanes, and one bit selects the upper lane.
fn is_of_lanes(c: &Comparison) -> bool {
    c.lanes != 0 && c.threads.is_power_of_two() && c.threads < 1 << (ENTRY - 1)
}

/// Groups these comparisons, for a thread with `tuples` tuples, into loops.
pub(super) fn parts(comparisons: &[Comparison], tuples: usize) -> Vec<Part> {
    let mut flat: Vec<Part> = Vec::new();
    for &c in comparisons {
        match flat.last_mut() {
            _ if !is_of_lanes(&c) => flat.push(Part::One(c)),
            Some(last @ Part::Lanes(_)) if last.is_alike(&Part::Lanes(vec![c])) && last.entries().len() < ENTRIES => {
                if let Part::Lanes(all) = last {
                    all.push(c);
                }
            }
            _ => flat.push(Part::Lanes(vec![c])),
        }
    }
    let mut found = Vec::new();
    let mut rest = &flat[..];
    while let Some(first) = rest.first() {
        if let Some(rounds) = rounds(rest, tuples) {
            let taken: usize = rounds.iter().map(Vec::len).sum();
            rest = &rest[taken..];
            found.push(Part::Rounds(rounds));
            continue;
        }
        rest = &rest[1..];
        match first {
            Part::Lanes(all) if (all.len() - 1) * tuples < LEAST => found.extend(all.iter().copied().map(Part::One)),
            part => found.push(part.clone()),
        }
    }
    found
}

/// The rounds at the start of `parts`: as many as possible, of as few parts as possible.
fn rounds(parts: &[Part], tuples: usize) -> Option<Vec<Vec<Part>>> {
    (1..=parts.len() / 2).find_map(|n| {
        let (first, mut entries) = (&parts[..n], vec![0; n]);
        let again = |round: &&[Part]| {
            let alike = round.len() == n && first.iter().zip(*round).all(|(a, b)| a.is_alike(b));
            entries.iter_mut().zip(*round).for_each(|(all, part)| *all += part.entries().len());
            alike && entries.iter().all(|&all| all <= ENTRIES)
        };
        let rounds: Vec<Vec<Part>> = parts.chunks(n).take_while(again).map(<[Part]>::to_vec).collect();
        // A round begins with a comparison between lanes, so that register comparisons stay in their own round.
        let between_lanes = first.first().is_some_and(|part| !part.entries().is_empty());
        (between_lanes && rounds.len() > 1 && (rounds.len() - 1) * n * tuples >= LEAST).then_some(rounds)
    })
}

/// Packs the lane masks of comparisons, and the bits that select upper lanes, into one word each, first comparison in
/// the lowest bits. The loop ends after the last entry of each run.
pub(super) fn packed<'a>(runs: impl Iterator<Item = &'a [Comparison]>) -> (u64, u64) {
    let (mut lanes, mut upper, mut at) = (0, 0, 0);
    for run in runs {
        for (i, c) in run.iter().enumerate() {
            let ends = u64::from(i + 1 == run.len()) << (ENTRY - 1);
            lanes |= (u64::from(c.lanes) | ends) << at;
            upper |= c.threads << at;
            at += ENTRY;
        }
    }
    (lanes, upper)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilec_ir::layout::RegLayout;

    fn written_out(parts: &[Part]) -> Vec<Comparison> {
        let each = |part: &Part| match part {
            Part::One(c) => vec![*c],
            Part::Lanes(all) => all.clone(),
            Part::Rounds(rounds) => rounds.iter().flat_map(|round| written_out(round)).collect(),
        };
        parts.iter().flat_map(each).collect()
    }

    #[test]
    fn loops_make_all_comparisons_in_order() {
        for registers in 0..=6u32 {
            let ones = |bits: std::ops::Range<u32>| bits.map(|b| 1u64 << b).collect::<Vec<_>>();
            let low = RegLayout::new(ones(0..registers), ones(registers..registers + 5), registers + 5);
            let split = RegLayout::new(
                [ones(0..registers / 2), ones(registers / 2 + 5..registers + 5)].concat(),
                ones(registers / 2..registers / 2 + 5),
                registers + 5,
            );
            for layout in [low.expect("a layout"), split.expect("a layout")] {
                let all = layout.sorted(&[1, 1 << (registers + 5)], 1, None).expect("comparisons");
                let found = parts(&all, 1 << registers);
                assert_eq!(written_out(&found), all);
                for part in &found {
                    let Part::Rounds(rounds) = part else { continue };
                    let each = |at: usize| rounds.iter().map(|round| round[at].entries().len()).sum::<usize>();
                    assert!((0..rounds[0].len()).all(|at| each(at) <= ENTRIES), "{rounds:?}");
                }
            }
        }
    }

    #[test]
    fn blocks_that_lanes_share_are_rounds() {
        let layout = RegLayout::new(vec![1, 2, 4], vec![8, 16, 32, 64, 128], 8).expect("a layout");
        let found = parts(&layout.sorted(&[1, 256], 1, None).expect("comparisons"), 8);
        let Some(Part::Rounds(rounds)) = found.last() else { panic!("no rounds: {found:?}") };
        assert_eq!(rounds.iter().map(Vec::len).collect::<Vec<_>>(), [5; 4]);
        let all: Vec<Vec<u32>> = rounds.iter().map(|r| r[1].entries().iter().map(|c| c.lanes).collect()).collect();
        assert_eq!(all, [vec![1], vec![2, 1], vec![4, 2, 1], vec![8, 4, 2, 1]]);
        let (lanes, upper) = packed(rounds.iter().map(|round| round[1].entries()));
        assert_eq!(lanes & 0x3ffff, 0x21 | 0x02 << 6 | 0x21 << 12);
        assert_eq!(upper & 0x3ffff, 0x01 | 0x02 << 6 | 0x01 << 12);
    }
}
