//! Which instructions matter: those with an effect, and those whose result reaches one along some path. A change of any other
//! changes nothing, so it is no mutant. The classical backward analysis, on registers by name.

use super::text::{Body, Statement};
use std::collections::BTreeMap;

/// For each statement of a body, whether anything depends on it.
pub(super) fn needed<'a>(body: &'a Body) -> Vec<bool> {
    let statements = &body.statements;
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    for s in statements {
        let mut number = |registers: Vec<&'a str>| -> Vec<usize> {
            let mut of = |r| {
                let next = numbers.len();
                *numbers.entry(r).or_insert(next)
            };
            registers.into_iter().map(&mut of).collect()
        };
        writes.push(number(s.writes()));
        reads.push(number(s.reads()));
    }
    let words = numbers.len().div_ceil(64);
    let mut needed: Vec<bool> = statements.iter().map(has_effect).collect();
    let mut live = vec![vec![0u64; words]; statements.len() + 1];
    loop {
        let mut changed = false;
        for i in (0..statements.len()).rev() {
            let mut set = vec![0u64; words];
            for next in successors(body, i) {
                set.iter_mut().zip(&live[next]).for_each(|(a, b)| *a |= b);
            }
            let has = |set: &[u64], r: usize| set[r / 64] >> (r % 64) & 1 != 0;
            if !needed[i] && writes[i].iter().any(|&r| has(&set, r)) {
                needed[i] = true;
            }
            if needed[i] {
                if statements[i].guard.is_none() {
                    writes[i].iter().for_each(|&r| set[r / 64] &= !(1 << (r % 64)));
                }
                reads[i].iter().for_each(|&r| set[r / 64] |= 1 << (r % 64));
            }
            changed |= set != live[i];
            live[i] = set;
        }
        if !changed {
            return needed;
        }
    }
}

/// Whether it has an effect besides writing registers; prefetches change no result.
fn has_effect(s: &Statement) -> bool {
    s.writes().is_empty() && !matches!(s.root(), "prefetch" | "prefetchu")
        || matches!(s.root(), "atom" | "mbarrier" | "bar" | "barrier")
}

/// Where control goes after statement `i`; the end of the body is one past the last.
fn successors(body: &Body, i: usize) -> Vec<usize> {
    let s = &body.statements[i];
    let mut next = Vec::new();
    match s.root() {
        "bra" => next.extend(s.operands.last().and_then(|l| body.labels.get(l))),
        "brx" => next.extend(body.labels.values()),
        "ret" | "exit" | "trap" => {}
        _ => next.push(i + 1),
    }
    if s.guard.is_some() && !next.contains(&(i + 1)) {
        next.push(i + 1);
    }
    next
}

#[cfg(test)]
mod tests {
    use super::super::text::body;
    use super::*;

    #[test]
    fn results_that_nobody_reads_are_not_needed() {
        let text = "k()\n{\nmov.u32 %r1, 0;\nmov.u32 %r2, 5;\n$L: add.s32 %r1, %r1, 4;\nadd.s32 %r3, %r2, %r1;\n\
                    xor.b32 %r2, %r2, 1;\nst.global.u32 [%rd1], %r1;\nsetp.lt.s32 %p1, %r1, 9;\n@%p1 bra $L;\n\
                    add.s64 %rd2, %rd1, 4;\nprefetch.global.L2 [%rd2];\nxor.b32 %r1, %r1, 8;\nret;\n}\n";
        let body = body(text);
        let text = |i: usize| body.statements[i].shape();
        let dead: Vec<String> = needed(&body).iter().enumerate().filter(|(_, n)| !**n).map(|(i, _)| text(i)).collect();
        // %r2 and %r3 feed only each other, and %rd2 a statement without effect; the last one is followed by the end.
        let want = [
            "mov.u32 %r, 5",
            "add.s32 %r, %r, %r",
            "xor.b32 %r, %r, 1",
            "add.s64 %rd, %rd, 4",
            "prefetch.global.L2 [%rd]",
            "xor.b32 %r, %r, 8",
        ];
        assert_eq!(dead, want);
    }
}
