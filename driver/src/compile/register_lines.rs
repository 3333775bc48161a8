//! Registers by lines of the source: what the assembler spilled, and where most hold a value.

use crate::assembler::{SassFunction, SassInst};
use crate::console::render::SourceFile;
use serde::Serialize;
use std::collections::BTreeMap;
use tilec_ir::diag::Span;

/// Registers that a thread keeps in memory, by the line of the source that they are stored and loaded for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Spilled {
    /// The line, from 1; 0: the line table names none.
    pub line: u32,
    /// Bytes that its instructions store.
    pub stored: u64,
    /// Bytes that they load.
    pub loaded: u64,
}

/// The spills of a function whose lines are those of the source, most bytes first.
pub fn spilled(function: &SassFunction) -> Vec<Spilled> {
    let mut by_line: BTreeMap<u32, Spilled> = BTreeMap::new();
    for inst in &function.insts {
        let Some(spill) = inst.spill() else { continue };
        let line = function.location(inst).map_or(0, |(_, line)| line);
        let own = by_line.entry(line).or_insert(Spilled { line, ..Spilled::default() });
        *(if spill.store { &mut own.stored } else { &mut own.loaded }) += spill.bytes;
    }
    let mut all: Vec<Spilled> = by_line.into_values().collect();
    all.sort_by_key(|s| (std::cmp::Reverse(s.stored + s.loaded), s.line));
    all
}

/// Where most registers hold a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct MostLive {
    /// The line of the source, from 1.
    pub line: u32,
    /// 32-bit registers of a thread.
    pub registers: u32,
}

/// The first instruction of a function at which most registers hold a value.
pub(super) fn most_live(function: &SassFunction, live: &BTreeMap<u64, u32>) -> Option<MostLive> {
    let here = |inst: &SassInst| Some(MostLive { line: function.location(inst)?.1, registers: *live.get(&inst.addr)? });
    function.insts.iter().rev().filter_map(here).max_by_key(|m| m.registers)
}

impl Spilled {
    /// What its instructions do, in words.
    pub(crate) fn in_words(&self) -> String {
        match (self.stored, self.loaded) {
            (stored, 0) => format!("{stored} bytes stored"),
            (0, loaded) => format!("{loaded} bytes loaded"),
            (stored, loaded) => format!("{stored} bytes stored, {loaded} loaded"),
        }
    }

    /// The line without the spaces around it, and what is spilled there.
    pub(super) fn place(&self, source: &SourceFile) -> Option<(Span, String)> {
        let text = match (self.stored, self.loaded) {
            (stored, 0) => format!("{stored} bytes of registers are stored for this line"),
            (0, loaded) => format!("{loaded} bytes of registers are loaded for this line"),
            (stored, loaded) => format!("{stored} bytes of registers are stored for this line, and {loaded} loaded"),
        };
        Some((whole_line(source, self.line)?, text))
    }
}

impl MostLive {
    /// The line without the spaces around it, and how many registers are in use there.
    pub(super) fn place(&self, source: &SourceFile) -> Option<(Span, String)> {
        Some((whole_line(source, self.line)?, format!("{} registers hold a value here, the most", self.registers)))
    }
}

/// A line without the spaces around it.
fn whole_line(source: &SourceFile, line: u32) -> Option<Span> {
    let span = line_of(source, line, 1)?;
    let text = source.text().get(span.start as usize..span.end as usize).unwrap_or("");
    Some(Span::new(span.start as usize + text.len() - text.trim_start().len(), span.end as usize))
}

/// From a column of a line to its end.
pub(super) fn line_of(source: &SourceFile, line: u32, column: u32) -> Option<Span> {
    source.line_span(usize::try_from(line).ok()?, usize::try_from(column).ok()?)
}
