//! Shadow of the shared memory of a block: a cell for each word, or for each byte of words that are accessed in parts.

use super::access::{Conflict, Issuer, Strength};
use super::clocks::Clocks;
use super::replaced_accesses::Hidden;
use super::shadow_cell::{self, Cell, FRESH, MANY, NOBODY, Read, SPLIT, Sets};

/// Number of leading lanes, of `words` cells each, that the fast path handles. The loops have constant trip counts:
/// programs that load from shared memory spend most of their time here.
macro_rules! line {
    ($cells:ident, $words:ident, ($lane:ident, $cell:ident) => $done:expr) => {
        match $words {
            1 => line!(1, $cells, $lane, $cell, $done),
            2 => line!(2, $cells, $lane, $cell, $done),
            _ => line!(4, $cells, $lane, $cell, $done),
        }
    };
    ($n:literal, $cells:ident, $lane:ident, $cell:ident, $done:expr) => {{
        for ($lane, own) in $cells.as_chunks_mut::<$n>().0.iter_mut().enumerate() {
            for $cell in own {
                if !$done {
                    return $lane;
                }
            }
        }
        32
    }};
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) words: Vec<Cell>,
    /// Four cells for each word, once one was accessed in parts.
    pub(super) bytes: Vec<Cell>,
    hidden: Hidden,
}

impl Shared {
    pub(super) fn new(bytes: usize) -> Shared {
        Shared { words: vec![FRESH; bytes.div_ceil(4)], bytes: Vec::new(), hidden: Hidden::default() }
    }

    /// The history of the byte at `at`.
    pub(super) fn cell(&self, at: usize) -> Option<&Cell> {
        let word = self.words.get(at / 4)?;
        if word.is_split() { self.bytes.get(at) } else { Some(word) }
    }

    /// Fast path for one lane's read of whole words; returns whether it applied and the read is recorded.
    #[inline(always)]
    pub(super) fn read_words(
        &mut self,
        clocks: &Clocks,
        sets: &mut Sets,
        who: Issuer,
        at: usize,
        words: usize,
    ) -> bool {
        let Some(cells) = self.words.get_mut(at / 4..at / 4 + words) else { return false };
        let (row, now) = (clocks.row(who.warp), clocks.now(who.warp));
        cells.iter_mut().all(|cell| read_fast(cell, row, now, sets, who, 1 << who.lane))
    }

    /// Fast path for a read of four words on behalf of several lanes: `lanes[i]` read word `i`.
    pub(super) fn read_row(
        &mut self,
        clocks: &Clocks,
        sets: &mut Sets,
        who: Issuer,
        at: usize,
        lanes: [u32; 4],
    ) -> bool {
        let Some(cells) = self.words.get_mut(at / 4..at / 4 + 4) else { return false };
        let (row, now) = (clocks.row(who.warp), clocks.now(who.warp));
        cells.iter_mut().zip(lanes).all(|(cell, lanes)| read_fast(cell, row, now, sets, who, lanes))
    }

    /// Fast path for one lane's write of whole words. If it returns false, it may have recorded some of them: the
    /// caller checks the write again, by the same thread in the same instruction.
    #[inline(always)]
    pub(super) fn write_words(&mut self, clocks: &Clocks, who: Issuer, at: usize, words: usize) -> bool {
        let Some(cells) = self.words.get_mut(at / 4..at / 4 + words) else { return false };
        let (row, now) = (clocks.row(who.warp), clocks.now(who.warp));
        cells.iter_mut().all(|cell| write_fast(cell, row, now, who))
    }

    /// As [`Shared::read_words`] for 32 consecutive lanes, `words` (1, 2 or 4) each; returns how many leading lanes are
    /// recorded.
    #[inline(always)]
    pub(super) fn read_line(
        &mut self,
        clocks: &Clocks,
        sets: &mut Sets,
        who: Issuer,
        at: usize,
        words: usize,
    ) -> usize {
        let Some(cells) = self.words.get_mut(at / 4..at / 4 + 32 * words) else { return 0 };
        let (row, now) = (clocks.row(who.warp), clocks.now(who.warp));
        line!(cells, words, (lane, cell) => read_fast(cell, row, now, sets, who, 1 << lane))
    }

    /// As [`Shared::write_words`] for 32 consecutive lanes, likewise.
    #[inline(always)]
    pub(super) fn write_line(&mut self, clocks: &Clocks, who: Issuer, at: usize, words: usize) -> usize {
        let Some(cells) = self.words.get_mut(at / 4..at / 4 + 32 * words) else { return 0 };
        let (row, now) = (clocks.row(who.warp), clocks.now(who.warp));
        line!(cells, words, (lane, cell) => write_fast(cell, row, now, Issuer { lane, ..who }))
    }

    pub(super) fn read(
        &mut self,
        clocks: &Clocks,
        sets: &mut Sets,
        who: Issuer,
        at: usize,
        n: usize,
    ) -> Result<(), Conflict> {
        let (word, agent) = (at / 4, (who.warp, clocks.now(who.warp)));
        if who.strength.is_strong() {
            self.hidden.check(clocks, (at as u64, n), who, false)?;
        }
        if n == 4 && !self.words[word].is_split() {
            return shadow_cell::read(clocks, sets, &mut self.words[word], who, agent);
        }
        self.divide(sets, word);
        let cells = self.bytes.get_mut(at..at + n).unwrap_or_default();
        let read = |(i, cell): (usize, &mut Cell)| {
            shadow_cell::read(clocks, sets, cell, who, agent).map_err(|conflict| conflict.behind(i))
        };
        cells.iter_mut().enumerate().try_for_each(read)
    }

    pub(super) fn write(
        &mut self,
        clocks: &Clocks,
        sets: &mut Sets,
        who: Issuer,
        at: usize,
        n: usize,
        same: bool,
    ) -> Result<(), Conflict> {
        let word = at / 4;
        if who.strength.is_strong() {
            self.hidden.check(clocks, (at as u64, n), who, true)?;
            if self.words[word].is_split() {
                for byte in at..at + n {
                    self.hidden.keep(sets, (byte as u64, 1), &self.bytes[byte]);
                }
            } else {
                self.hidden.keep(sets, (4 * word as u64, 4), &self.words[word]);
            }
        }
        if n == 4 && !self.words[word].is_split() {
            return shadow_cell::write(clocks, sets, &mut self.words[word], who, same);
        }
        self.divide(sets, word);
        let cells = self.bytes.get_mut(at..at + n).unwrap_or_default();
        let mut write = |(i, cell): (usize, &mut Cell)| {
            shadow_cell::write(clocks, sets, cell, who, same).map_err(|conflict| conflict.behind(i))
        };
        cells.iter_mut().enumerate().try_for_each(&mut write)?;
        if n == 4 && !self.bytes.is_empty() {
            // Written as a whole: the four bytes have one history again.
            self.words[word] = self.bytes[at];
        }
        Ok(())
    }

    /// Excludes bytes from the fast paths. Whole words of them need no cells, because no access reaches them.
    pub(super) fn forbid(&mut self, sets: &mut Sets, start: usize, end: usize) {
        for word in start / 4..end.div_ceil(4) {
            if start <= 4 * word && 4 * word + 4 <= end {
                self.words[word] = SPLIT;
            } else {
                self.divide(sets, word);
            }
        }
    }

    /// Switches a word to one cell per byte.
    pub(super) fn divide(&mut self, sets: &mut Sets, word: usize) {
        if self.words[word].is_split() {
            return;
        }
        if self.bytes.is_empty() {
            self.bytes = vec![FRESH; self.words.len() * 4];
        }
        let cell = self.words[word];
        for byte in &mut self.bytes[word * 4..word * 4 + 4] {
            *byte = sets.duplicate(&cell);
        }
        sets.give_back(&cell);
        self.words[word] = SPLIT;
    }

    /// Calls `f` for the cells of these bytes.
    pub(super) fn each(&mut self, at: usize, n: usize, mut f: impl FnMut(&mut Cell)) {
        for word in at / 4..(at + n).div_ceil(4) {
            if self.words[word].is_split() {
                self.bytes.get_mut(word * 4..word * 4 + 4).unwrap_or_default().iter_mut().for_each(&mut f);
            } else {
                f(&mut self.words[word]);
            }
        }
    }
}

#[inline(always)]
fn after_write(cell: &Cell, row: &[u32], warp: usize, lanes: u32) -> bool {
    let writer = cell.write_agent;
    (writer == NOBODY
        || includes_agent(row, writer, cell.write_clock)
        || (usize::from(writer) == warp && 1u32 << (cell.write_lane & 31) == lanes))
        && !cell.flying
}

/// Whether the row includes an agent up to `clock`.
#[inline(always)]
fn includes_agent(row: &[u32], agent: u16, clock: u32) -> bool {
    row.get(usize::from(agent)).is_some_and(|known| clock <= *known)
}

/// A read by `lanes` of a warp; the lane in `who` is ignored.
#[inline(always)]
pub(super) fn read_fast(cell: &mut Cell, row: &[u32], now: u32, sets: &mut Sets, who: Issuer, lanes: u32) -> bool {
    let mine = who.warp as u16;
    let again = cell.read_lanes & lanes == lanes && cell.read_clock == now && cell.read_agent == mine;
    if again && !cell.read_strength.is_strong() {
        // The same lanes again, with no access in between.
        cell.read_pc = who.pc;
        return true;
    }
    if !after_write(cell, row, who.warp, lanes) {
        return false;
    }
    if cell.read_agent == mine && cell.read_clock == now && !cell.read_strength.is_strong() {
        cell.read_lanes |= lanes;
        cell.read_pc = who.pc;
        return true;
    }
    if cell.read_agent == NOBODY || includes_agent(row, cell.read_agent, cell.read_clock) {
        (cell.read_agent, cell.read_clock, cell.read_pc, cell.read_lanes) = (mine, now, who.pc, lanes);
        cell.read_strength = Strength::Weak;
    } else if cell.read_agent == mine && !cell.read_strength.is_strong() {
        // Other lanes of the warp may have read since it last synchronised.
        cell.read_lanes |= lanes;
        (cell.read_clock, cell.read_pc) = (now, who.pc);
    } else if cell.read_agent == MANY {
        let Some(read) = sets.entry(cell, who.warp, Strength::Weak) else { return false };
        let fresh = Read { clock: now, pc: who.pc, lanes, strength: Strength::Weak };
        *read = read.then(fresh, row[who.warp]);
    } else {
        return false;
    }
    true
}

#[inline(always)]
pub(super) fn write_fast(cell: &mut Cell, row: &[u32], now: u32, who: Issuer) -> bool {
    let after_read = cell.read_agent == NOBODY
        || includes_agent(row, cell.read_agent, cell.read_clock)
        || (cell.read_agent == who.warp as u16 && cell.read_lanes == 1 << who.lane);
    if !after_read || !after_write(cell, row, who.warp, 1 << who.lane) {
        return false;
    }
    *cell = Cell::written(who, now);
    true
}
