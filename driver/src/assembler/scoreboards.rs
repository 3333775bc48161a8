//! Scoreboard dependencies: for each scoreboard ("barrier" of the control codes) that an instruction waits for, the
//! instructions that may have set it.
//!
//! A scoreboard counts the pending instructions that have set it; a wait is for all of them (Jia et al., "Dissecting
//! the NVIDIA Volta GPU architecture via microbenchmarking", 2018, section 2.1). Sets of setters are propagated along
//! the branches to a fixed point, as for reaching definitions (Aho, Lam, Sethi, Ullman, "Compilers", 9.2). `DEPBAR`
//! waits until few are pending; the analysis assumes that all stay pending.

use super::control::{BARRIERS, Control};
use super::loops::Graph;
use super::sass::SassFunction;
use std::collections::{BTreeMap, BTreeSet};

/// A wait: its scoreboard, and the instructions that may have set it, by their indices.
pub type Wait = (u8, Vec<usize>);

/// For each scoreboard, the instructions that have set it and have not been waited for.
type Pending = BTreeMap<u8, BTreeSet<usize>>;

/// The waits of each instruction of a function. None where the listing has no encodings.
pub fn waits(function: &SassFunction) -> Vec<Vec<Wait>> {
    let graph = Graph::new(function);
    let codes: Vec<Option<Control>> = function.insts.iter().map(|inst| inst.encoding.map(Control::of)).collect();
    let mut at_start: Vec<Pending> = vec![Pending::new(); graph.succs.len()];
    let mut work: BTreeSet<usize> = (0..graph.succs.len()).collect();
    while let Some(block) = work.pop_first() {
        let mut pending = at_start[block].clone();
        graph.range(block).for_each(|i| issue(&mut pending, i, codes[i]));
        for &next in &graph.succs[block] {
            let before: usize = at_start[next].values().map(BTreeSet::len).sum();
            for (barrier, setters) in &pending {
                at_start[next].entry(*barrier).or_default().extend(setters);
            }
            if at_start[next].values().map(BTreeSet::len).sum::<usize>() > before {
                work.insert(next);
            }
        }
    }
    let mut all = vec![Vec::new(); function.insts.len()];
    for (block, mut pending) in at_start.into_iter().enumerate() {
        for i in graph.range(block) {
            let wait = codes[i].map_or(0, |code| code.wait);
            let own = (0..BARRIERS).filter(|barrier| wait >> barrier & 1 == 1);
            all[i] = own.map(|b| (b, pending.get(&b).into_iter().flatten().copied().collect())).collect();
            issue(&mut pending, i, codes[i]);
        }
    }
    all
}

/// An instruction first waits, then sets its own scoreboards.
fn issue(pending: &mut Pending, i: usize, code: Option<Control>) {
    let Some(code) = code else { return };
    pending.retain(|barrier, _| code.wait >> barrier & 1 == 0);
    for barrier in [code.write, code.read].into_iter().flatten() {
        pending.entry(barrier).or_default().insert(i);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembler::sass::SassInst;

    /// An instruction with a control code (see `control.rs`): the scoreboard set until the result is written, and those
    /// waited for.
    fn inst(addr: u64, text: &str, sets: Option<u8>, wait: u8) -> SassInst {
        let opcode = text.split(' ').next().expect("an opcode").to_owned();
        let code = u128::from(sets.unwrap_or(7)) << 110 | 7u128 << 113 | u128::from(wait) << 116;
        SassInst { addr, predicate: None, opcode, text: text.to_owned(), line: None, encoding: Some(code) }
    }

    #[test]
    fn loops_wait_for_setters_of_the_iteration_before_and_for_all_of_them() {
        let mut insts = vec![
            inst(0x00, "LDS R0, [R9]", Some(1), 0),
            inst(0x10, "LDS R1, [R9]", Some(1), 0),
            // The head of the loop.
            inst(0x20, "FADD R2, R0, R1", None, 0b10),
            inst(0x30, "LDS R0, [R9]", Some(1), 0),
            inst(0x40, "FADD R3, R3, R2", None, 0),
            inst(0x50, "BRA `(.L_x_1)", None, 0),
            inst(0x60, "EXIT", None, 0b10),
        ];
        insts[5].predicate = Some("P0".to_owned());
        let function = SassFunction {
            name: "k".to_owned(),
            insts,
            labels: [(".L_x_1".to_owned(), 2)].into(),
            ..Default::default()
        };
        assert_eq!(Control::of(function.insts[0].encoding.unwrap_or(0)).write, Some(1));
        let waits = waits(&function);
        assert_eq!(waits[2], [(1, vec![0, 1, 3])]);
        assert_eq!(waits[6], [(1, vec![3])]);
        assert!([0, 1, 3, 4, 5].iter().all(|&i: &usize| waits[i].is_empty()));
    }
}
