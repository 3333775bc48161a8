//! How the assembler scheduled an instruction: its control code, and what the scoreboards that it waits for were set by.

use super::answer::{Known, Part};
use crate::xray::Machine;
use tilec_ir::diag::counted;

/// Setters of a scoreboard that are shown, at most.
const SHOWN: usize = 4;

/// The instructions that may have set a scoreboard which an instruction waits for: those after it have in an earlier iteration.
fn waits_for(machine: &Machine, line: usize, (barrier, setters): (u8, &[usize])) -> Vec<String> {
    let (before, after): (Vec<usize>, Vec<usize>) = setters.iter().partition(|&&setter| setter < line);
    let text = |&setter: &usize| {
        let until = match machine.control[setter - 1].is_some_and(|c| c.write == Some(barrier)) {
            true => "its result is written",
            false => "its operands are read",
        };
        format!("  until {until}: sass:{setter}: {}", machine.text[setter - 1].trim())
    };
    let mut facts = Vec::new();
    let mut say = |what: &str, all: &[usize]| {
        if all.is_empty() {
            return;
        }
        facts.push(format!("it waits for barrier {barrier}, {what}"));
        // The last one is waited for longest.
        facts.extend(all.iter().rev().take(SHOWN).map(text));
        if all.len() > SHOWN {
            facts.push(format!("  and {} more", all.len() - SHOWN));
        }
    };
    say("set in the previous iteration", &after);
    say(if after.is_empty() { "set before it" } else { "set before the loop the first time" }, &before);
    if facts.is_empty() {
        facts.push(format!("it waits for barrier {barrier}, which no instruction before it sets"));
    }
    facts
}

/// What an instruction of the machine code waits for, by its control code.
pub(super) fn of(known: &Known<'_>, line: usize) -> Option<Part> {
    let machine = known.shown.columns.machine.as_ref()?;
    let control = machine.control.get(line - 1).copied().flatten()?;
    let mut facts =
        vec![format!("the warp may issue its next instruction {} later", counted(usize::from(control.stall), "cycle"))];
    if let Some(spill) = machine.spills.iter().find(|s| s.line == line) {
        let does = if spill.store { "stores to" } else { "loads from" };
        facts.push(format!(
            "spilled: it {does} local memory {} bytes of spilled registers; no line of the PTX does this",
            spill.bytes
        ));
        facts.push(
            "`tilec why FILE register` lists the lines of the source with spills, and who has the registers".to_owned(),
        );
    }
    for (barrier, setters) in &machine.waits[line - 1] {
        facts.extend(waits_for(machine, line, (*barrier, setters)));
    }
    facts.extend(control.write.map(|b| format!("barrier {b} is set until its result is written")));
    facts.extend(control.read.map(|b| format!("barrier {b} is set until its operands are read")));
    Some(Part { title: "How the assembler scheduled the instruction".to_owned(), facts, decisions: Vec::new() })
}
