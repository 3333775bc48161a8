//! The origin of an undefined value, for a report: the register's name, and the instruction that wrote it.
//!
//! Nothing is recorded while a kernel runs. The writers of a register are found in the text, and their operands are
//! examined when the report is made: most registers are written in one place, and most of these once in a thread.

use super::collective::source_lane;
use super::sync::is_matrix;
use super::warp::{Warp, thread_of};
use crate::exec::cta::Cta;
use crate::exec::fail::Fail;
use crate::program::types::R;
use crate::program::{Bank, Mention, Op};
use crate::report::{Cause, ReportKind};

/// Most instructions that are traced back.
const STEPS: usize = 6;

/// A register of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Register {
    bank: Bank,
    slot: R,
    lane: usize,
}

/// Why an instruction writes an undefined register.
enum UndefinedCause {
    /// Another register that it reads is undefined.
    From(Register),
    /// The reason why its result is undefined for any operands.
    Here(String),
    /// It is a vector load of memory that was never written.
    Unwritten(String),
}

impl Cta<'_> {
    /// The failure of an instruction in these lanes, with the origin of the undefined register, if that is the cause.
    pub(super) fn with_origin(&self, w: &Warp, pc: usize, mask: u32, mut fail: Box<Fail>) -> Box<Fail> {
        let lanes = fail.lane.map_or(mask, |lane| 1 << lane);
        if fail.kind != ReportKind::Undefined {
            return fail;
        }
        let Some(first) = self.undefined_in(w, pc, lanes, &[]) else { return fail };
        fail.lane = Some(first.lane);
        fail.message += &format!(": `{}`", self.register(first));
        let (lines, unwritten) = self.history(w, pc, first);
        for line in lines {
            fail.message += &format!("\n    {line}");
        }
        if unwritten { fail.because(Cause::Unwritten) } else { fail }
    }

    /// The first register that an instruction reads and that is undefined in one of these lanes, except those in `but`.
    fn undefined_in(&self, w: &Warp, pc: usize, lanes: u32, but: &[Register]) -> Option<Register> {
        let bad = |m: &Mention| {
            let bad = lanes & !defined(w, m);
            let found = |lane: usize| Register { bank: m.bank, slot: m.slot, lane };
            (0..32).filter(|lane| bad >> lane & 1 != 0).map(found).find(|r| !but.contains(r))
        };
        let mut read = self.entry.mentions.get(pc)?.iter().filter(|m| !m.written);
        // Exchanged values may be undefined, but the operands that select lanes, which come last, may not.
        if exchanges(&self.entry.code[pc].op) { read.rev().find_map(bad) } else { read.find_map(bad) }
    }

    fn register(&self, r: Register) -> &str {
        self.entry.registers.get(&(r.bank, r.slot)).map_or("a register", String::as_str)
    }

    /// An instruction with its place.
    fn shown(&self, pc: usize) -> String {
        let inst = &self.entry.code[pc];
        format!("`{}` at PTX line {}", self.entry.names[inst.name as usize], inst.line)
    }

    /// The history of an undefined register, backwards, with a line for each step, and whether it began with a load of
    /// unwritten memory.
    fn history(&self, w: &Warp, before: usize, first: Register) -> (Vec<String>, bool) {
        let mut out = Vec::new();
        let mut unwritten = false;
        let mut seen = vec![first];
        let (mut at, mut before) = (first, before);
        while out.len() < STEPS {
            let name = self.register(at);
            let mut writers = self.writers(at);
            // First earlier writers in the text, nearest first, then later ones, which run in a loop before.
            let behind = writers.partition_point(|pc| *pc < before);
            writers.rotate_left(behind);
            writers.reverse();
            if writers.is_empty() {
                out.push(format!("nothing in the kernel writes `{name}`"));
                break;
            }
            match writers.iter().find_map(|pc| Some((*pc, self.undefined_reason(w, *pc, at, &seen)?))) {
                Some((pc, UndefinedCause::From(source))) => {
                    let of = match source.lane == at.lane {
                        true => String::new(),
                        false => format!(" of {}", self.thread(w, source.lane)),
                    };
                    let what = format!("`{name}` comes from `{}`{of}", self.register(source));
                    out.push(format!("{what}, by {}", self.shown(pc)));
                    seen.push(source);
                    (at, before) = (source, pc);
                }
                Some((pc, found @ (UndefinedCause::Here(_) | UndefinedCause::Unwritten(_)))) => {
                    unwritten = matches!(found, UndefinedCause::Unwritten(_));
                    let (UndefinedCause::Here(why) | UndefinedCause::Unwritten(why)) = found else { break };
                    out.push(format!("`{name}` comes from {why}, by {}", self.shown(pc)));
                    break;
                }
                None => {
                    out.push(self.unknown(name, at, writers));
                    break;
                }
            }
        }
        (out, unwritten)
    }

    /// The instructions that write a register, in the order of the text.
    fn writers(&self, at: Register) -> Vec<usize> {
        let writes = |m: &Mention| m.written && (m.bank, m.slot) == (at.bank, at.slot);
        let named = self.entry.mentions.iter().enumerate();
        named.filter(|(_, mentions)| mentions.iter().any(writes)).map(|(pc, _)| pc).collect()
    }

    /// The reason why the result of an instruction is undefined now, if any, other than registers in `seen`.
    fn undefined_reason(&self, w: &Warp, pc: usize, at: Register, seen: &[Register]) -> Option<UndefinedCause> {
        let op = &self.entry.code[pc].op;
        if let Op::Shfl { mode, a, b, c, mask, .. } = *op {
            let [a, b, c, mask] = [a, b, c, mask].map(|r| &w.w[r as usize]);
            let (from, _) = source_lane(mode, at.lane, b.v[at.lane], c.v[at.lane]);
            let there = w.live | self.races.clocks.exited(w.index);
            let why = if mask.v[at.lane] >> from & 1 == 0 {
                format!("which is not in the membermask {:#010x}", mask.v[at.lane])
            } else if there >> from & 1 == 0 {
                "where the block has no thread".to_owned()
            } else if w.live >> from & 1 == 0 {
                "which has exited".to_owned()
            } else if a.ok >> from & 1 == 0 {
                return self.undefined_in(w, pc, 1 << from, seen).map(UndefinedCause::From);
            } else {
                return None;
            };
            return Some(UndefinedCause::Here(format!("lane {from}, {why}")));
        }
        if let Op::Ld(access) = op
            && let Some(why) = self.unwritten_element(access, (w.index, at.lane, pc), at.slot)
        {
            return Some(UndefinedCause::Unwritten(why));
        }
        let own = self.undefined_in(w, pc, 1 << at.lane, seen);
        own.or_else(|| if exchanges(op) || is_matrix(op) { self.undefined_in(w, pc, w.live, seen) } else { None })
            .map(UndefinedCause::From)
    }

    /// The text about a register whose writers now have defined operands.
    fn unknown(&self, name: &str, at: Register, mut writers: Vec<usize>) -> String {
        let reads =
            |pc: &usize| self.entry.mentions[*pc].iter().any(|m| !m.written && (m.bank, m.slot) == (at.bank, at.slot));
        writers.sort_unstable();
        let all = writers.iter().all(reads);
        let mut lines: Vec<u32> = writers.iter().map(|pc| self.entry.code[*pc].line).collect();
        lines.dedup();
        let more = lines.len().saturating_sub(4);
        let shown = lines.iter().take(4).map(u32::to_string).collect::<Vec<_>>().join(", ");
        let lines = match (lines.len(), more) {
            (1, _) => format!("PTX line {shown}"),
            (_, 0) => format!("PTX lines {shown}"),
            _ => format!("PTX lines {shown} and {more} more"),
        };
        if all {
            return format!("what writes `{name}` ({lines}) reads it, too: nothing gives it a first value");
        }
        format!(
            "of what writes `{name}` ({lines}) this thread has executed nothing, or with operands that were undefined then"
        )
    }

    fn thread(&self, w: &Warp, lane: usize) -> String {
        let [x, y, z] = thread_of(self.shape.block, (w.index % self.cta_warps * 32 + lane) as u32);
        format!("thread ({x}, {y}, {z})")
    }
}

/// Whether lanes exchange values.
fn exchanges(op: &Op) -> bool {
    matches!(op, Op::Shfl { .. } | Op::Vote { .. } | Op::MatchAny { .. } | Op::MatchAll { .. } | Op::Redux { .. })
}

/// The lanes in which a register is defined.
fn defined(w: &Warp, m: &Mention) -> u32 {
    let slot = m.slot as usize;
    match m.bank {
        Bank::Words => w.w.get(slot).map_or(u32::MAX, |s| s.ok),
        Bank::Longs => w.l.get(slot).map_or(u32::MAX, |s| s.ok),
        Bank::Predicates => w.p.get(slot).map_or(u32::MAX, |s| s.ok),
    }
}
