//! The cheapest conflict-free shared-memory layout: a search over elementary xor terms.
//!
//! A term "slot bit ^= higher offset bit" moves a difference between lanes from address bits that select
//! a row to bits that select a bank. Every access is a set of lane columns per phase; it is
//! conflict-free when the bank bits have as much rank as the address. Terms touch banks only, so the
//! address rank is constant and the search only watches the bank rank, which one term raises by
//! at most one: that bounds the depth from below and prunes. Sources inside a bank row (below
//! byte-address bit 7) permute banks among themselves, change no rank alone, and are left out.
//!
//! Iterative deepening by number of terms, in lexicographic order of `(slot, source)`; among equals a
//! set that is one `Swizzle` comes first. A budget bounds the time of hopeless inputs; past it the best
//! set so far is extended greedily.

use super::access::{phase_lane_bits, unit_shift};
use super::smem::SmemLayout;
use crate::bits::Bits;

/// Access evaluations each walk may make: about two milliseconds. Enough for every set of three terms over
/// four accesses of a 256x128 tile of halves.
const BUDGET: usize = 60_000;

/// Addresses count bits: their bit that tells bytes apart, banks of 4 bytes, and rows of 32 banks.
const BYTE_BIT: u32 = 3;
const BANK_BIT: u32 = BYTE_BIT + 2;
const ROW_BIT: u32 = BANK_BIT + 5;

/// One warp-wide access that a shared-memory layout has to serve.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PhaseAccess {
    /// Contribution of each lane bit to the tile's column-major linear index.
    pub lane_cols: Vec<u64>,
    /// Bytes each lane moves; a power of two up to 16.
    pub access_bytes: u32,
    /// Size of an element; a power of two.
    pub elem: Bits,
    /// How often the access runs, relative to the others.
    pub weight: u64,
}

/// The result of [`search_xor`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XorSearch {
    /// The base layout with the terms applied.
    pub layout: SmemLayout,
    /// `(slot bit, source bit)` in element-offset bits of the base layout, ascending.
    pub terms: Vec<(u32, u32)>,
    /// Sum over the accesses of weight times wavefronts.
    pub wavefronts: u64,
    /// Whether every access is conflict-free.
    pub conflict_free: bool,
}

/// The layout and terms of [`search_xor`].
pub fn search_xor_terms(
    accesses: &[PhaseAccess],
    base: &SmemLayout,
    max_terms: usize,
) -> Option<(SmemLayout, Vec<(u32, u32)>)> {
    search_xor(accesses, base, max_terms).map(|r| (r.layout, r.terms))
}

/// The fewest xor terms, at most `max_terms`, that make every access to `base` conflict-free; failing
/// that, those with the least weighted wavefronts (`conflict_free` is then false).
///
/// `None` if an access is malformed: sizes that are no powers of two, more than 16 bytes a lane, or accesses
/// that disagree on the element size.
pub fn search_xor(accesses: &[PhaseAccess], base: &SmemLayout, max_terms: usize) -> Option<XorSearch> {
    let elem = accesses.first().map_or(Bits::new(8), |a| a.elem);
    let sound = |a: &PhaseAccess| a.elem == elem && a.access_bytes.is_power_of_two() && a.access_bytes <= 16;
    if !elem.get().is_power_of_two() || !accesses.iter().all(sound) {
        return None;
    }
    let elem_shift = elem.log2();
    let widest = accesses.iter().map(|a| unit_bit(a.access_bytes)).max().unwrap_or(BANK_BIT);
    let mut s = Search {
        accesses: Vec::new(),
        terms: Vec::new(),
        plain: super::convert::disjoint(base.map().cols().iter().copied()),
        chosen: Vec::new(),
        best: None,
        work: 0,
        goal: Goal::ConflictFree,
        base,
    };
    let slots: Vec<u32> = (widest.max(elem_shift)..ROW_BIT).collect();
    let row = ROW_BIT.max(elem_shift);
    let sources: Vec<u32> = (row..base.offset_bits() + elem_shift).collect();
    let mut rows: Vec<Vec<u8>> = Vec::new();
    for a in accesses {
        let (access, source_rows) = Access::new(a, base, elem_shift, &sources);
        s.accesses.push(access);
        rows.push(source_rows);
    }
    for &slot in &slots {
        for (i, &source) in sources.iter().enumerate() {
            let delta: Vec<u8> = rows.iter().map(|r| r[i]).collect();
            if delta.iter().any(|&d| d != 0) {
                s.terms.push(Term { slot, source, delta });
            }
        }
    }
    let mut state: Vec<BankRows> = s.accesses.iter().map(|a| a.banks).collect();
    let hopeless = s.accesses.iter().any(|a| a.cannot_improve(&slots));
    for goal in [Goal::ConflictFree, Goal::Least] {
        if hopeless && goal == Goal::ConflictFree {
            continue;
        }
        s.goal = goal;
        s.work = 0;
        for depth in 0..=max_terms.min(s.terms.len()) {
            s.visit(&mut state, 0, depth);
            if s.work > BUDGET || s.best.as_ref().is_some_and(|b| b.conflict_free) {
                break;
            }
        }
        if s.best.is_some() {
            break;
        }
    }
    if s.work > BUDGET {
        s.extend_greedily(&mut state, max_terms);
    }
    s.finish(elem_shift)
}

/// The address bit above the unit that a phase transfers per lane.
fn unit_bit(access_bytes: u32) -> u32 {
    unit_shift(access_bytes) + BYTE_BIT
}

/// Bank-bit rows by address bit, from [`BANK_BIT`] to below [`ROW_BIT`]: bit `l` says whether lane bit `l` touches it. Rows inside one
/// lane's vector are zero.
type BankRows = [u8; 5];

struct Access {
    banks: BankRows,
    /// Rank of the address over the lanes of a phase.
    address_rank: u32,
    phases: u64,
    weight: u64,
}

impl Access {
    /// The access as rows, and the row of each source bit.
    fn new(a: &PhaseAccess, base: &SmemLayout, elem_shift: u32, sources: &[u32]) -> (Access, Vec<u8>) {
        let lane_bits = phase_lane_bits(a.access_bytes);
        let first = unit_bit(a.access_bytes);
        let n = a.lane_cols.len().min(lane_bits as usize);
        // u128: an element offset of 63 bits in bits.
        let cols: Vec<u128> =
            a.lane_cols[..n].iter().map(|&c| u128::from(base.map().apply(c)) << elem_shift >> first).collect();
        let row = |bit: u32| {
            let at = |l: usize| (cols[l] >> (bit - first) & 1) as u8;
            (0..n).fold(0u8, |r, l| r | at(l) << l)
        };
        let mut banks = [0; 5];
        for bit in first..ROW_BIT {
            banks[(bit - BANK_BIT) as usize] = row(bit);
        }
        let all = (first..128).map(row);
        let access = Access { banks, address_rank: row_rank(all), phases: 1 << (5 - lane_bits), weight: a.weight };
        (access, sources.iter().map(|&b| row(b)).collect())
    }

    /// Whether no terms into `slots` can help enough: each slot adds at most one to the rank of the rest.
    fn cannot_improve(&self, slots: &[u32]) -> bool {
        let fixed = (0..5).filter(|&r| !slots.contains(&(r as u32 + BANK_BIT)));
        row_rank(fixed.map(|r| self.banks[r])) + (slots.len() as u32) < self.address_rank
    }

    /// log2 of the conflict degree with these bank rows.
    fn missing(&self, banks: &BankRows) -> u32 {
        self.address_rank - row_rank(banks.iter().copied())
    }
}

/// Rank of 5-bit rows.
fn row_rank(rows: impl Iterator<Item = u8>) -> u32 {
    let mut basis = [0u8; 8];
    let mut n = 0;
    for mut v in rows {
        while v != 0 {
            let lead = v.ilog2() as usize;
            if basis[lead] == 0 {
                basis[lead] = v;
                n += 1;
                break;
            }
            v ^= basis[lead];
        }
    }
    n
}

/// A candidate term in address bits, and what it xors into the slot's row of each access.
struct Term {
    slot: u32,
    source: u32,
    delta: Vec<u8>,
}

/// The goal of a walk over the sets of terms.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// Only conflict-free sets count: a term raises a rank by at most one, which prunes.
    ConflictFree,
    /// No set within reach is conflict-free: any set counts, by its wavefronts.
    Least,
}

struct Best {
    chosen: Vec<usize>,
    wavefronts: u64,
    conflict_free: bool,
    single_swizzle: bool,
}

struct Search<'a> {
    accesses: Vec<Access>,
    terms: Vec<Term>,
    /// Whether the base has a plain `shape:stride` form, so that one swizzle keeps it printable.
    plain: bool,
    chosen: Vec<usize>,
    best: Option<Best>,
    work: usize,
    goal: Goal,
    base: &'a SmemLayout,
}

impl Search<'_> {
    /// Adds exactly `left` more terms, from index `from` on.
    fn visit(&mut self, state: &mut [BankRows], from: usize, left: usize) {
        self.work += self.accesses.len();
        if self.work > BUDGET || self.is_optimal() {
            return;
        }
        if self.goal == Goal::ConflictFree {
            let missing = |(a, banks): (&Access, &BankRows)| a.missing(banks) as usize;
            if self.accesses.iter().zip(state.iter()).any(|x| missing(x) > left) {
                return;
            }
        }
        if left == 0 {
            self.keep_best(state);
            return;
        }
        for i in from..self.terms.len() {
            self.toggle(state, i);
            self.chosen.push(i);
            self.visit(state, i + 1, left - 1);
            self.chosen.pop();
            self.toggle(state, i);
        }
    }

    /// Extends the best set greedily, where the budget has cut the exhaustive walk short.
    fn extend_greedily(&mut self, state: &mut [BankRows], max_terms: usize) {
        let start = self.best.as_ref().map_or(Vec::new(), |b| b.chosen.clone());
        start.iter().for_each(|&i| self.toggle(state, i));
        self.chosen = start;
        while self.chosen.len() < max_terms {
            let before = self.best.as_ref().map(|b| b.wavefronts);
            let held = self.chosen.clone();
            for i in (0..self.terms.len()).filter(|i| !held.contains(i)) {
                self.toggle(state, i);
                self.chosen.push(i);
                self.chosen.sort_unstable();
                self.keep_best(state);
                self.chosen.clone_from(&held);
                self.toggle(state, i);
            }
            let Some(best) = self.best.as_ref().filter(|b| Some(b.wavefronts) < before) else { return };
            let next = best.chosen.clone();
            next.iter().filter(|i| !held.contains(i)).for_each(|&i| self.toggle(state, i));
            self.chosen = next;
        }
    }

    fn toggle(&self, state: &mut [BankRows], term: usize) {
        let t = &self.terms[term];
        let row = (t.slot - BANK_BIT) as usize;
        for (banks, d) in state.iter_mut().zip(&t.delta) {
            banks[row] ^= d;
        }
    }

    /// Whether nothing at this depth can be better than what is known.
    fn is_optimal(&self) -> bool {
        self.best.as_ref().is_some_and(|b| b.conflict_free && b.single_swizzle)
    }

    /// Compares the chosen terms with the best so far; the earlier wins a tie.
    fn keep_best(&mut self, state: &[BankRows]) {
        let mut wavefronts = 0u64;
        let mut conflict_free = true;
        for (a, banks) in self.accesses.iter().zip(state) {
            let missing = a.missing(banks);
            conflict_free &= missing == 0;
            wavefronts = wavefronts.saturating_add(a.weight.saturating_mul(a.phases << missing));
        }
        let better = match &self.best {
            None => true,
            Some(b) if b.conflict_free != conflict_free => conflict_free,
            Some(b) if b.wavefronts != wavefronts => wavefronts < b.wavefronts,
            Some(b) => b.chosen.len() == self.chosen.len() && !b.single_swizzle && self.is_single_swizzle(),
        };
        if better {
            self.best = Some(Best {
                chosen: self.chosen.clone(),
                wavefronts,
                conflict_free,
                single_swizzle: self.is_single_swizzle(),
            });
        }
    }

    /// Whether the chosen terms are `Swizzle<B,M,S>` of a plain layout: consecutive slots, one distance.
    fn is_single_swizzle(&self) -> bool {
        let step = |w: &[usize]| {
            let (a, b) = (&self.terms[w[0]], &self.terms[w[1]]);
            b.slot == a.slot + 1 && b.source == a.source + 1
        };
        self.plain && self.chosen.windows(2).all(step)
    }

    fn finish(self, elem_shift: u32) -> Option<XorSearch> {
        let best = self.best?;
        let term = |&i: &usize| (self.terms[i].slot - elem_shift, self.terms[i].source - elem_shift);
        let terms: Vec<(u32, u32)> = best.chosen.iter().map(term).collect();
        let layout = terms.iter().try_fold(self.base.clone(), |l, &(slot, from)| l.xor_term(slot, from))?;
        Some(XorSearch { layout, terms, wavefronts: best.wavefronts, conflict_free: best.conflict_free })
    }
}
