//! Loops whose iterations wait for what threads load: operands that they hold in registers before they store them to
//! shared memory or multiply them. Loads that run ahead, for a later iteration, are the model's ([`crate::choose`]).
//!
//! The wait is a difference of two clocks: what an iteration takes, and what it takes if these loads land at once. So what
//! other work hides is no wait: products that are in flight, another warpgroup, loads that are issued early.

use super::data::Timeline;
use super::program::{Iterations, LoopOfLoads, Program};
use super::run::run;
use crate::Options;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData};

/// A loop that waits for what threads load in its iterations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AwaitedLoads {
    /// A statement of its iterations.
    pub stmt: Stmt,
    /// Where its variable is declared.
    pub variable: Span,
    /// The loads.
    pub loads: Vec<AwaitedLoad>,
    /// Clocks of an iteration in which a block waits for them.
    pub waits: u64,
    /// Clocks from one iteration to the next.
    pub iteration: u64,
    /// Iterations of the source that an iteration is.
    pub times: u64,
}

/// A load that an iteration waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AwaitedLoad {
    /// The statement in the source.
    pub span: Span,
    /// What it loads.
    pub tensor: String,
    /// Its threads themselves store it to shared memory.
    pub stored: bool,
}

/// The loops of a kernel after all passes that wait, by the clock of a block alone on its multiprocessor.
pub fn awaited_loads(k: &Kernel, options: &Options) -> Vec<AwaitedLoads> {
    let card = options.usual_card();
    let program = Program::of(k, card, Iterations::Few);
    let mut loops = program.loops_of_loads();
    if loops.is_empty() {
        return Vec::new();
    }
    let Some(time) = run(k, card, program.clone()) else { return Vec::new() };
    loops.iter_mut().for_each(|own| own.loads.retain(|i| time.multiplied.contains(i)));
    let all: Vec<usize> = loops.iter().flat_map(|own| own.loads.iter().copied()).collect();
    // With this load alone, all others land at once; `None`: with none.
    let timed = |with: Option<usize>| run(k, card, program.landed(all.iter().copied().filter(|&i| Some(i) != with)));
    let Some(without) = timed(None).filter(|_| !all.is_empty()) else { return Vec::new() };
    let of_loop = |own: &LoopOfLoads| {
        let (iteration, least) = (iteration(&time, own.at)?, iteration(&without, own.at)?);
        let waits = iteration.checked_sub(least).filter(|&clocks| clocks > 0)?;
        let delays = |&i: &usize| {
            let alone = timed(Some(i)).and_then(|time| self::iteration(&time, own.at));
            alone.is_some_and(|clocks| clocks > least)
        };
        let steps: Vec<usize> = own.loads.iter().copied().filter(delays).collect();
        // Short waits may add up.
        let steps = if steps.is_empty() { own.loads.clone() } else { steps };
        let (stmt, variable) = (program.stmt(*steps.first()?), variable(k, own.at)?);
        let same = |i: &&usize| k.stmt_spans[program.stmt(**i)] == k.stmt_spans[stmt];
        let times = steps.iter().filter(same).count() as u64;
        let mut loads: Vec<AwaitedLoad> = Vec::new();
        for load in steps.iter().flat_map(|&i| of_step(k, &program, i)) {
            if !loads.contains(&load) {
                loads.push(load);
            }
        }
        Some(AwaitedLoads { stmt, variable, loads, waits, iteration, times })
    };
    loops.iter().filter_map(of_loop).collect()
}

/// What a step loads, of each tensor.
fn of_step(k: &Kernel, program: &Program, step: usize) -> Vec<AwaitedLoad> {
    let (span, stored) = (k.stmt_spans[program.stmt(step)], program.is_held(step));
    let name = |v: Value| k.values[v].name.clone();
    program.tensors(step).iter().map(|&v| AwaitedLoad { span, tensor: name(v), stored }).collect()
}

fn variable(k: &Kernel, at: Stmt) -> Option<Span> {
    match k.stmts[at] {
        StmtData::For { var, .. } => Some(k.values[var].span),
        _ => None,
    }
}

/// What an iteration of a loop takes: of all that are drawn, one in the middle.
fn iteration(time: &Timeline, at: Stmt) -> Option<u64> {
    let of_row = |row: usize| {
        let turns: Vec<_> = time.turns.iter().filter(|turn| turn.row == row && turn.at == at).collect();
        let steps = turns.windows(2).filter(|pair| !pair[1].first).map(|pair| pair[1].begin - pair[0].begin);
        steps.collect::<Vec<u64>>()
    };
    let mut steps: Vec<u64> = (0..time.rows.len()).flat_map(of_row).collect();
    steps.sort_unstable();
    steps.get(steps.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilec_ir::diag::Sink;
    use tilec_ir::target::Target;

    /// The tensors that iterations of a product of 128x256x32 in f16 wait for, whose loop begins with these statements.
    fn awaited(target: Target, schedule: &str, loads: &str) -> Vec<String> {
        let source = format!(
            "kernel g(A: gmem f16[M, K] multiple 8, B: gmem f16[K, N] multiple 8, C: gmem f16[M, N] multiple 8)\n\
             grid (i: ceildiv(M, 128), j: ceildiv(N, 256)) schedule {{ warp_tile (64, 64) {schedule} }} {{\n\
             let a = smem f16[128, 32]\nlet b = smem f16[32, 256]\nvar t = reg f16[128, 32]\n\
             var acc = reg f32[128, 256] = 0\n\
             for k in 0..K step 32 {{\n{loads}\ncopy B[k.., j * 256..] -> b\nacc = mma(a, b, acc)\n}}\n\
             copy cast<f16>(acc) -> C[i * 128.., j * 256..]\n}}\n"
        );
        let (mut sink, options) = (Sink::new(), Options::new(target));
        let mut k = tilec_ir::parser::parse(&source, &mut sink).expect("it parses").kernels.remove(0);
        crate::run(&mut k, &options, &mut sink, &mut |_, _| {}).expect("it compiles");
        awaited_loads(&k, &options).into_iter().flat_map(|own| own.loads).map(|load| load.tensor).collect()
    }

    /// Without roles a block is one role, and its unrolled loops are parts of an iteration. Loads that run ahead are not
    /// awaited, whether by `cp.async` or through registers.
    #[test]
    fn kernels_without_roles_wait_too() {
        let (copied, held) = ("copy A[i * 128.., k..] -> a", "copy A[i * 128.., k..] -> t\ncopy t * 2 -> a");
        for target in [Target::Sm70, Target::Sm75, Target::Sm80] {
            assert_eq!(awaited(target, "", copied), [""; 0], "{}", target.name());
            assert_eq!(awaited(target, "", held), ["A"], "{}", target.name());
            assert_eq!(awaited(target, "stages 1", copied), ["A", "B"], "{}", target.name());
        }
    }
}
