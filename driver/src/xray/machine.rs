//! Machine code: what each instruction is, the PTX line that it came from, and how it is scheduled.

use super::remark::Remark;
use crate::assembler::control::Control;
use crate::assembler::scoreboards::{Wait, waits};
use crate::assembler::{EntryStats, SassFunction, Spill};
use crate::compile::machine_code::ByLine;
use crate::compile::register_lines::Spilled;
use crate::console::render::SourceFile;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

/// Machine code as lines.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The version of the assembler that made it.
    pub assembler: String,
    /// What it says of each entry.
    pub entries: Vec<Entry>,
    /// The lines: names of functions, labels, instructions.
    pub text: Vec<String>,
    /// Of each line the PTX line that it came from, from 1; 0: none.
    pub ptx: Vec<u32>,
    /// Of each line the 32-bit registers that hold a value there; none of what is no instruction, or where it is not known.
    pub live: Vec<Option<u32>>,
    /// Of each line how it is scheduled; none of what is no instruction.
    pub control: Vec<Option<Control>>,
    /// Of each line the scoreboards that it waits for, with the lines, from 1, that may have set each.
    #[serde(skip)]
    pub waits: Vec<Vec<Wait>>,
    /// The lines, from 1, that store or load what the assembler spilled.
    pub spills: Vec<SpillLine>,
    /// The lines of the source that it spilled for, by entry.
    pub spilled: Vec<(String, Vec<Spilled>)>,
    /// What the assembler says.
    pub remarks: Vec<Remark>,
}

/// A line that stores or loads what was spilled.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SpillLine {
    /// Its number, from 1.
    pub line: usize,
    /// It stores.
    pub store: bool,
    /// Bytes of a thread.
    pub bytes: u64,
}

/// What the assembler says of an entry.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// Its name.
    pub entry: String,
    /// 32-bit registers per thread.
    pub registers: u32,
    /// Bytes of register values that a thread stores to local memory.
    pub spilled: u64,
    /// Bytes of them that it loads again.
    pub reloaded: u64,
}

impl Machine {
    /// The machine code of a program.
    pub(super) fn new(code: &ByLine, source: &SourceFile) -> Machine {
        let entry = |e: &EntryStats| Entry {
            entry: e.name.clone(),
            registers: e.registers,
            spilled: e.spill_store_bytes,
            reloaded: e.spill_load_bytes,
        };
        let mut machine = Machine {
            assembler: code.version.clone(),
            entries: code.entries.iter().map(entry).collect(),
            text: Vec::new(),
            ptx: Vec::new(),
            live: Vec::new(),
            control: Vec::new(),
            waits: Vec::new(),
            spills: Vec::new(),
            spilled: code.spilled.clone(),
            remarks: code.messages.iter().map(|d| Remark::new(d, source)).collect(),
        };
        for function in &code.functions {
            let live = code.live.iter().find(|(name, _)| *name == function.name);
            machine.function(function, live.map(|(_, live)| live));
        }
        machine
    }

    /// The lines of an entry, its name first; by their places in [`Machine::text`].
    pub(crate) fn lines_of(&self, entry: &str) -> Option<Range<usize>> {
        let name = |line: &String| line.strip_suffix(':').is_some_and(|n| self.entries.iter().any(|e| e.entry == n));
        let begin = self.text.iter().position(|line| line.strip_suffix(':') == Some(entry))?;
        let end = self.text[begin + 1..].iter().position(name).map_or(self.text.len(), |n| begin + 1 + n);
        Some(begin..end)
    }

    /// The first line of an entry at which most registers hold a value, and how many.
    pub(crate) fn most_live(&self, entry: &str) -> Option<(usize, u32)> {
        let all = self.lines_of(entry)?.filter_map(|i| Some((i, self.live[i]?)));
        all.max_by_key(|&(i, n)| (n, Reverse(i)))
    }

    fn function(&mut self, function: &SassFunction, live: Option<&BTreeMap<u64, u32>>) {
        self.line(format!("{}:", function.name));
        let mut labels: Vec<(usize, &str)> = function.labels.iter().map(|(name, &at)| (at, name.as_str())).collect();
        labels.sort_unstable();
        // The entry's own label and that of its section say nothing new.
        let mut labels =
            labels.into_iter().filter(|(_, name)| *name != function.name && !name.starts_with(".text.")).peekable();
        let waits = waits(function);
        let mut line_of = Vec::new();
        for (i, inst) in function.insts.iter().enumerate() {
            while let Some((_, name)) = labels.next_if(|(at, _)| *at <= i) {
                self.line(format!("{name}:"));
            }
            self.text.push(format!("/*{:04x}*/ {}", inst.addr, inst.text));
            if let Some(Spill { store, bytes }) = inst.spill() {
                self.spills.push(SpillLine { line: self.text.len(), store, bytes });
            }
            self.ptx.push(inst.line.map_or(0, |(_, line)| line));
            self.live.push(live.and_then(|live| live.get(&inst.addr)).copied());
            self.control.push(inst.encoding.map(Control::of));
            self.waits.push(waits[i].clone());
            line_of.push(self.text.len());
        }
        // By lines in place of the function's instructions.
        for &line in &line_of {
            for (_, setters) in &mut self.waits[line - 1] {
                setters.iter_mut().for_each(|setter| *setter = line_of[*setter]);
            }
        }
    }

    /// A line that is no instruction.
    fn line(&mut self, text: String) {
        self.text.push(text);
        self.ptx.push(0);
        self.live.push(None);
        self.control.push(None);
        self.waits.push(Vec::new());
    }
}
