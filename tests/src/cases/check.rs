//! Programs of problems without a GPU: compiled, interpreted, simulated.

use super::drawn::{by_program, random};
use super::problem::Problem;
use super::program::Program;
use super::table::tables;
use crate::oracle::Problem as Memory;
use crate::problem::{self, Run, Tensor};
use crate::programs::Test;
use crate::reference::Reference;
use crate::simulated::Executable;
use std::collections::BTreeMap;
use tilec::CompileOptions;
use tilec_ir::kernel::Kernel;
use tilec_sim::Options;

/// Multiply-adds that a program of a table is interpreted for in `cargo test`: the smallest of its problems first.
const INTERPRETED: i64 = 8_000_000;
/// The tensors of a product. Further tensors are temporaries between kernels.
const OPERANDS: [&str; 3] = ["A", "B", "C"];

/// The programs of the tables and of random problems, each compiled, interpreted on the smallest of its problems, and simulated.
///
/// # Errors
/// A table cannot be read.
pub fn tests() -> Result<Vec<Test>, String> {
    let mut tests = Vec::new();
    for (folder, problems) in tables()?.into_iter().chain([("random", random(320, 11))]) {
        for (program, problems) in by_program(problems) {
            let test: Test =
                (format!("cases/{folder}/{}", program.name()), Box::new(move || check(&program, &problems)));
            tests.push(test);
        }
    }
    Ok(tests)
}

/// A problem in memory, and what must become of it.
struct Case {
    run: Run,
    memory: Memory,
    expected: Vec<Tensor>,
}

impl Case {
    /// `specialized`: the kernels as they are meant, in the order of their launches.
    fn new(specialized: &[Kernel], problem: &Problem) -> Result<Case, String> {
        let run = problem.run();
        let mut memory = Memory::of(specialized, &run, Reference::Gemm.overwrites(&run))?;
        let handed_on = |t: &Tensor| !OPERANDS.contains(&t.name.as_str());
        memory.tensors.iter_mut().filter(|t| handed_on(t)).for_each(Tensor::poison);
        let mut expected = memory.stored(Reference::Gemm.apply(&memory.tensors, &run, &BTreeMap::new())?);
        if expected.iter().any(handed_on) {
            let meant = memory.interpret_all(specialized, &[])?;
            for (expected, meant) in expected.iter_mut().zip(meant).filter(|(t, _)| handed_on(t)) {
                *expected = meant;
            }
        }
        Ok(Case { run, memory, expected })
    }
}

/// Compiles `program`, compares its last tile form with the triple loop on the smallest of `problems`, and its PTX on what the
/// simulator is given of them.
fn check(program: &Program, problems: &[Problem]) -> Result<(), String> {
    let options = CompileOptions { verify_each: true, ..program.options() };
    let done = tilec::optimize(&program.source(), &options).map_err(|e| e.to_string())?;
    let specialized: Vec<Kernel> = done.kernels.iter().map(|k| k.specialized.clone()).collect();
    let last: Vec<Kernel> = done.kernels.iter().map(|k| k.kernel.clone()).collect();
    let mut smallest: Vec<&Problem> = problems.iter().collect();
    smallest.sort_by_key(|p| p.work());
    let mut left = INTERPRETED;
    for problem in smallest {
        left -= problem.work();
        if left < 0 {
            break;
        }
        let exact = || -> Result<(), String> {
            let case = Case::new(&specialized, problem)?;
            problem::same(&case.expected, &case.memory.interpret_all(&last, &[])?)
        };
        exact().map_err(|e| format!("{}: {e}", problem.name))?;
    }
    let compiled = tilec::lower(done).map_err(|e| e.to_string())?;
    let Some(executable) = Executable::new(&program.name(), &compiled)? else { return Ok(()) };
    for (i, problem) in Problem::simulated(problems).into_iter().enumerate() {
        let exact = || -> Result<(), String> {
            let case = Case::new(&specialized, &problem)?;
            if i == 0 {
                // Dependence on the order of warps and on the landing of copies is found by the other runs.
                let options = Options { fuel: 1 << 26, ..Options::default() };
                let launched = executable.launch(&case.run, &case.memory.tensors, &case.expected, &options);
                return launched.map(drop).map_err(|e| e.to_string());
            }
            executable.check(&case.run, &case.memory.tensors, &case.expected, None)
        };
        let [m, n, k] = problem.size;
        exact().map_err(|e| format!("{}, as {m}x{n}x{k} on the simulator: {e}", problem.name))?;
    }
    Ok(())
}
