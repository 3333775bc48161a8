//! Shadow of global memory as one block sees it: cells for the words it touches, in pages that appear when they are touched.
//!
//! Accesses of one block are judged as those of shared memory are. What other blocks did is not looked at here: a block
//! hands its pages to [`super::grid`] when it ends, or when they are too many.

use std::collections::HashMap;

use super::cell::{self, Cell, FRESH, Sets};
use super::clocks::{Clocks, engine};
use super::shared::{read_fast, write_fast};
use super::{Conflict, Who};

/// Words of a page.
pub(super) const WORDS: usize = 256;
/// Pages a block keeps: 8 MB of data. Older history is forgotten, which can hide a race within the block.
const MAX_PAGES: usize = 1 << 13;
/// Places where a page was found lately.
const RECENT: usize = 64;

#[derive(Debug)]
pub(super) struct Page {
    /// Address of the first byte over the size.
    pub(super) number: u64,
    pub(super) words: Box<[Cell; WORDS]>,
    /// Four cells for each word, once one was accessed in parts.
    pub(super) bytes: Option<Box<[Cell]>>,
    /// Sections of the block (see [`super::grid`]) of the last write and the last read of each word, once there is one but
    /// the first.
    pub(super) sections: Option<Box<[[u8; WORDS]; 2]>>,
}

#[derive(Debug, Default)]
pub(super) struct Global {
    index: HashMap<u64, u32>,
    recent: Vec<(u64, u32)>,
    pub(super) pages: Vec<Page>,
    /// Section of the accesses from now on.
    pub(super) section: u8,
}

impl Global {
    /// Whether the next access may need a page too many.
    pub(super) fn is_full(&self) -> bool {
        self.pages.len() >= MAX_PAGES
    }

    pub(super) fn clear(&mut self) {
        self.index.clear();
        self.recent.clear();
        self.pages.clear();
    }

    #[inline(always)]
    fn page(&mut self, number: u64) -> &mut Page {
        let slot = number as usize % RECENT;
        let at = match self.recent.get(slot) {
            Some(&(known, at)) if known == number => at as usize,
            _ => self.find(number),
        };
        &mut self.pages[at]
    }

    #[inline(never)]
    fn find(&mut self, number: u64) -> usize {
        let new = self.pages.len();
        let at = *self.index.entry(number).or_insert(new as u32);
        if at as usize == new {
            self.pages.push(Page { number, words: Box::new([FRESH; WORDS]), bytes: None, sections: None });
        }
        self.recent.resize(RECENT, (u64::MAX, 0));
        self.recent[number as usize % RECENT] = (number, at);
        at as usize
    }

    /// A read of `n` bytes at `address`, within a page.
    #[inline(always)]
    pub(super) fn read(
        &mut self,
        clocks: &Clocks,
        sets: &mut Sets,
        who: Who,
        address: u64,
        n: usize,
    ) -> Result<(), Conflict> {
        let section = self.section;
        let page = self.page(address / (4 * WORDS as u64));
        let at = address as usize % (4 * WORDS);
        page.mark(section, 1, at, n);
        if n >= 4 && !who.copy && !who.strong {
            let (row, now) = (clocks.row(who.warp), clocks.now(who.warp));
            let cells = &mut page.words[at / 4..at / 4 + n / 4];
            if cells.iter_mut().all(|c| read_fast(c, row, now, sets, who)) {
                return Ok(());
            }
        }
        let agent = if who.copy { engine(who.warp) } else { who.warp };
        let agent = (agent, clocks.now(agent));
        page.each(sets, at, n, |sets, cell| cell::read(clocks, sets, cell, who, agent))
    }

    /// A write; `same` says that the bytes do not change by it.
    #[inline(always)]
    pub(super) fn write(
        &mut self,
        clocks: &Clocks,
        sets: &mut Sets,
        who: Who,
        (address, n): (u64, usize),
        same: bool,
    ) -> Result<(), Conflict> {
        let section = self.section;
        let page = self.page(address / (4 * WORDS as u64));
        let at = address as usize % (4 * WORDS);
        page.mark(section, 0, at, n);
        if n >= 4 && !who.strong {
            let (row, now) = (clocks.row(who.warp), clocks.now(who.warp));
            let cells = &mut page.words[at / 4..at / 4 + n / 4];
            if cells.iter_mut().all(|c| write_fast(c, row, now, who)) {
                return Ok(());
            }
        }
        page.each(sets, at, n, |sets, cell| cell::write(clocks, sets, cell, who, same))?;
        if n >= 4 {
            page.join(at / 4, n / 4);
        }
        Ok(())
    }
}

impl Page {
    #[inline(always)]
    fn mark(&mut self, section: u8, kind: usize, at: usize, n: usize) {
        if section > 0 {
            let marks = self.sections.get_or_insert_with(|| Box::new([[0; WORDS]; 2]));
            marks[kind][at / 4..(at + n).div_ceil(4)].fill(section);
        }
    }

    /// The cells of some bytes: words where they are whole, bytes elsewhere.
    fn each(
        &mut self,
        sets: &mut Sets,
        at: usize,
        n: usize,
        mut f: impl FnMut(&mut Sets, &mut Cell) -> Result<(), Conflict>,
    ) -> Result<(), Conflict> {
        for word in at / 4..(at + n).div_ceil(4) {
            if n >= 4 && !self.words[word].split {
                f(sets, &mut self.words[word])?;
                continue;
            }
            let bytes = self.bytes.get_or_insert_with(|| vec![FRESH; 4 * WORDS].into());
            let own = &mut self.words[word];
            if !own.split {
                for byte in &mut bytes[4 * word..4 * word + 4] {
                    *byte = sets.duplicate(own);
                }
                sets.give_back(own);
                own.split = true;
            }
            let (first, last) = (at.max(4 * word), (at + n).min(4 * word + 4));
            for byte in &mut bytes[first..last] {
                f(sets, byte)?;
            }
        }
        Ok(())
    }

    /// Words written as a whole have one history again.
    fn join(&mut self, first: usize, n: usize) {
        let Some(bytes) = &self.bytes else { return };
        for word in first..first + n {
            if self.words[word].split {
                self.words[word] = bytes[4 * word];
            }
        }
    }
}
