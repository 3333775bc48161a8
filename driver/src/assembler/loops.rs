//! Loops of a disassembled function.
//!
//! Textbook method (Aho, Lam, Sethi, Ullman, "Compilers", 9.6): basic blocks, dominators by iteration to a
//! fixed point, a natural loop per target of back edges. A backward branch alone would not do: ptxas
//! moves cold blocks after the end of a function, and their branches home go backward too.
//!
//! Branches through registers (`BRX`, `JMX`) and calls are taken to leave nothing after: their targets
//! are not followed. Our kernels have neither.

use std::collections::BTreeMap;

use super::sass::{SassFunction, SassInst};
use crate::assembler::counts::Counts;

/// A natural loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Address of the first instruction of the header.
    pub header_addr: u64,
    /// Indices into [`SassFunction::insts`], ascending.
    pub insts: Vec<usize>,
    /// Whether no other loop is inside.
    pub innermost: bool,
}

impl Loop {
    /// The instructions of one iteration, with every guard taken as true.
    #[must_use]
    pub fn counts(&self, function: &SassFunction) -> Counts {
        Counts::of(self.insts.iter().filter_map(|&i| function.insts.get(i)))
    }
}

/// The innermost loops, by header address.
#[must_use]
pub fn innermost_loops(function: &SassFunction) -> Vec<Loop> {
    let mut loops = loops(function);
    loops.retain(|l| l.innermost);
    loops
}

/// The loop a kernel spends its time in: of the innermost loops the one with the most matrix
/// instructions, then the most fused multiply-adds; among equals the shorter one, since the residue
/// loop has the same work and more guards. Without any arithmetic, the longest.
#[must_use]
pub fn main_loop(function: &SassFunction) -> Option<Loop> {
    let mut best: Option<((u32, u32, i64), Loop)> = None;
    for candidate in innermost_loops(function) {
        let counts = candidate.counts(function);
        let length = i64::from(counts.total);
        let works = counts.mma > 0 || counts.fma > 0;
        let key = (counts.mma, counts.fma, if works { -length } else { length });
        if best.as_ref().is_none_or(|(known, _)| key > *known) {
            best = Some((key, candidate));
        }
    }
    best.map(|(_, l)| l)
}

/// Every natural loop, by header address.
#[must_use]
pub fn loops(function: &SassFunction) -> Vec<Loop> {
    let graph = Graph::new(function);
    let dominators = graph.dominators();
    // Header block to the sources of its back edges.
    let mut back: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (block, targets) in graph.succs.iter().enumerate() {
        for &target in targets {
            if dominates(&dominators, target, block) {
                back.entry(target).or_default().push(block);
            }
        }
    }
    let bodies: Vec<(usize, Vec<bool>)> =
        back.into_iter().map(|(header, sources)| (header, graph.body(header, sources))).collect();
    let mut result = Vec::new();
    for (header, body) in &bodies {
        let insts: Vec<usize> = (0..graph.succs.len()).filter(|&b| body[b]).flat_map(|b| graph.range(b)).collect();
        let Some(first) = function.insts.get(graph.starts[*header]) else {
            continue;
        };
        // The assembler fills the space after the end with a branch to itself; it is not a loop.
        if insts.len() == 1 && first.predicate.is_none() {
            continue;
        }
        let innermost = !bodies.iter().any(|(other, _)| other != header && body[*other]);
        result.push(Loop { header_addr: first.addr, insts, innermost });
    }
    result
}

/// The control flow of a function by basic blocks.
pub(super) struct Graph {
    /// Index of the first instruction of each block.
    starts: Vec<usize>,
    n_insts: usize,
    /// The blocks that may follow each.
    pub(super) succs: Vec<Vec<usize>>,
    preds: Vec<Vec<usize>>,
}

impl Graph {
    pub(super) fn new(function: &SassFunction) -> Graph {
        let n_insts = function.insts.len();
        let targets: Vec<Option<usize>> = function.insts.iter().map(|i| target(function, i)).collect();
        let mut is_start = vec![false; n_insts];
        if let Some(first) = is_start.first_mut() {
            *first = true;
        }
        for (index, inst) in function.insts.iter().enumerate() {
            if let Some(target) = targets[index] {
                is_start[target] = true;
            }
            if (targets[index].is_some() || ends(inst)) && index + 1 < n_insts {
                is_start[index + 1] = true;
            }
        }
        let starts: Vec<usize> = (0..n_insts).filter(|&i| is_start[i]).collect();
        let n = starts.len();
        let block_of = |inst: usize| starts.partition_point(|&s| s <= inst) - 1;
        let mut succs = Vec::with_capacity(n);
        let mut preds = vec![Vec::new(); n];
        for block in 0..n {
            let last = starts.get(block + 1).copied().unwrap_or(n_insts) - 1;
            let mut to = Vec::new();
            if let Some(target) = targets[last] {
                to.push(block_of(target));
            }
            if !ends(&function.insts[last]) && block + 1 < n && !to.contains(&(block + 1)) {
                to.push(block + 1);
            }
            for &t in &to {
                preds[t].push(block);
            }
            succs.push(to);
        }
        Graph { starts, n_insts, succs, preds }
    }

    /// The instructions of a block.
    pub(super) fn range(&self, block: usize) -> std::ops::Range<usize> {
        self.starts[block]..self.starts.get(block + 1).copied().unwrap_or(self.n_insts)
    }

    /// Immediate dominators (Cooper, Harvey, Kennedy: "A simple, fast dominance algorithm"); `None` for
    /// blocks that cannot be reached. The entry is its own.
    fn dominators(&self) -> Vec<Option<usize>> {
        let order = self.postorder();
        let mut rank = vec![usize::MAX; self.succs.len()];
        for (position, &block) in order.iter().enumerate() {
            rank[block] = position;
        }
        let mut idom: Vec<Option<usize>> = vec![None; self.succs.len()];
        if let Some(entry) = idom.first_mut() {
            *entry = Some(0);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for &block in order.iter().rev().filter(|&&b| b != 0) {
                let mut new: Option<usize> = None;
                for &pred in self.preds[block].iter().filter(|&&p| idom[p].is_some()) {
                    new = Some(new.map_or(pred, |other| common_dominator(&idom, &rank, pred, other)));
                }
                if new.is_some() && idom[block] != new {
                    idom[block] = new;
                    changed = true;
                }
            }
        }
        idom
    }

    /// Blocks reachable from the entry, in postorder, without recursion.
    fn postorder(&self) -> Vec<usize> {
        let mut order = Vec::new();
        let mut seen = vec![false; self.succs.len()];
        let mut stack = Vec::new();
        if let Some(entry) = seen.first_mut() {
            *entry = true;
            stack.push((0, 0));
        }
        while let Some((block, next)) = stack.pop() {
            match self.succs[block].get(next) {
                Some(&to) => {
                    stack.push((block, next + 1));
                    if !seen[to] {
                        seen[to] = true;
                        stack.push((to, 0));
                    }
                }
                None => order.push(block),
            }
        }
        order
    }

    /// Blocks that reach one of `sources` without passing `header`, and the header.
    fn body(&self, header: usize, sources: Vec<usize>) -> Vec<bool> {
        let mut inside = vec![false; self.succs.len()];
        inside[header] = true;
        let mut work = sources;
        while let Some(block) = work.pop() {
            if !inside[block] {
                inside[block] = true;
                work.extend(&self.preds[block]);
            }
        }
        inside
    }
}

/// Nearest common dominator of `a` and `b`; both are reachable, and the entry ranks highest.
fn common_dominator(idom: &[Option<usize>], rank: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        let lower = if rank[a] < rank[b] { &mut a } else { &mut b };
        *lower = idom[*lower].expect("a block that has been reached has a dominator");
    }
    a
}

/// Whether every way from the entry to `block` passes `candidate`; no for unreachable blocks.
fn dominates(idom: &[Option<usize>], candidate: usize, mut block: usize) -> bool {
    loop {
        if block == candidate {
            return idom[block].is_some();
        }
        match idom[block] {
            Some(up) if up != block => block = up,
            _ => return false,
        }
    }
}

/// The instruction that a branch may go to.
fn target(function: &SassFunction, inst: &SassInst) -> Option<usize> {
    if !matches!(inst.base(), "BRA" | "JMP") {
        return None;
    }
    let operand = inst.operands().rsplit([' ', ',']).next()?;
    let index = match operand.strip_prefix("`(").and_then(|o| o.strip_suffix(')')) {
        Some(label) => *function.labels.get(label)?,
        None => {
            let addr = u64::from_str_radix(operand.strip_prefix("0x")?, 16).ok()?;
            function.insts.binary_search_by_key(&addr, |i| i.addr).ok()?
        }
    };
    (index < function.insts.len()).then_some(index)
}

/// Whether control never reaches the next instruction.
fn ends(inst: &SassInst) -> bool {
    if inst.predicate.as_deref().is_some_and(|p| p != "PT") {
        return false;
    }
    match inst.base() {
        // With a further operand (`BRA.DIV ~URZ, ..`, `BRA.U UP0, ..`, `EXIT P0`) it is conditional.
        "BRA" | "JMP" => !inst.operands().contains(','),
        "EXIT" => inst.operands().is_empty(),
        "RET" | "BRX" | "JMX" | "KILL" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembler::sass::parse;

    /// Instructions and `label:`s, separated by semicolons.
    fn function(lines: &str) -> SassFunction {
        let mut text = ".section .text.f,\"ax\"\n".to_owned();
        let mut addr = 0;
        for line in lines.split(';').map(str::trim) {
            if line.ends_with(':') {
                text += &format!("{line}\n");
            } else {
                text += &format!("/*{addr:04x}*/ {line} ;\n");
                addr += 16;
            }
        }
        parse(&text).remove(0)
    }

    fn found(f: &SassFunction) -> Vec<(u64, usize, bool)> {
        loops(f).iter().map(|l| (l.header_addr / 16, l.insts.len(), l.innermost)).collect()
    }

    #[test]
    fn nested_loops_and_the_padding_behind_the_end() {
        let f = function(
            "MOV R0, R1; .L0:; MOV R2, R3; .L1:; FFMA R0, R0, R0, R0; @P0 BRA `(.L1); MOV R4, R5; \
             @P1 BRA `(.L0); EXIT; .L9:; BRA `(.L9)",
        );
        assert_eq!(found(&f), [(1, 5, false), (2, 2, true)]);
    }

    #[test]
    fn two_back_edges_to_one_header_are_one_loop() {
        let f = function(".L0:; MOV R0, R0; @P0 BRA `(.L0); MOV R1, R1; @P1 BRA `(.L0); EXIT");
        assert_eq!(found(&f), [(0, 4, true)]);
    }

    #[test]
    fn a_cold_block_behind_the_end_belongs_to_its_loop_and_makes_no_other() {
        let f = function(
            ".L0:; MOV R0, R0; @P0 BRA `(.COLD); .BACK:; MOV R1, R1; @P1 BRA `(.L0); EXIT; .COLD:; \
             MOV R2, R2; BRA `(.BACK)",
        );
        assert_eq!(found(&f), [(0, 6, true)]);
    }

    #[test]
    fn a_backward_jump_to_shared_code_is_no_loop() {
        let f = function("@P0 BRA `(.FAR); .TAIL:; MOV R1, R1; EXIT; .FAR:; MOV R2, R2; BRA `(.TAIL)");
        assert_eq!(found(&f), []);
    }

    #[test]
    fn branches_by_address_and_conditional_operands() {
        let f = function("MOV R0, R0; MOV R1, R1; BRA.DIV ~URZ, 0x10; BRA.U UP0, 0x0; EXIT");
        assert_eq!(found(&f), [(0, 4, false), (1, 2, true)]);
    }

    #[test]
    fn the_main_loop_has_the_most_mma_and_the_fewest_others() {
        let f = function(
            ".A:; HMMA.884.F32.F32.STEP0 R0, R0, R0, R0; IADD3 R0, R0, R0, R0; @P0 BRA `(.A); .B:; \
             HMMA.884.F32.F32.STEP0 R0, R0, R0, R0; @P0 BRA `(.B); .C:; FFMA R0, R0, R0, R0; \
             FFMA R0, R0, R0, R0; @P0 BRA `(.C); EXIT",
        );
        assert_eq!(main_loop(&f).unwrap().header_addr, 0x30);
        assert_eq!(main_loop(&function("EXIT")), None);
        assert_eq!(main_loop(&SassFunction::default()), None);
    }

    #[test]
    fn any_branch_is_accepted() {
        for line in ["BRA", "BRA `(", "BRA `(.none)", "BRA 0x7", "BRA 0xzz", "@P0 BRA `(.END); .END:"] {
            assert!(loops(&function(line)).len() <= 1);
        }
    }
}
