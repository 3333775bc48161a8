//! What a program that somebody might have written does: altered ones compile to whatever they then mean, if anything.
//!
//! * Where the interpreter gives the source a meaning, the last text has the same.
//! * So has the PTX on the simulator. What a program does to global memory is its author's, races there among it; what happens in shared
//!   memory and registers is the compiler's.

use super::failure::{Failure, failure, guarded};
use super::input::Input;
use crate::number::Format;
use crate::oracle::{Consts, Problem};
use crate::problem::{Random, Run, Tensor, same_within};
use crate::simulated::Executable;
use tilec::Compiled;
use tilec_ir::interp;
use tilec_ir::kernel::{Kernel, ValueDef};
use tilec_ir::types::ElemRef;
use tilec_ir::typing::type_of;

/// Work of the interpreter up to which a program is run.
const FUEL: u64 = 1 << 23;
/// Blocks of a launch and elements of all tensors up to which PTX is executed.
const ELEMENTS: usize = 1 << 16;
/// Errors of launches, and races within a program, for which its author is responsible.
const THE_AUTHORS: [&str; 6] = [
    "does not hold",
    "out of fuel",
    "the tests cannot encode",
    "is not possible",
    "write of global address",
    "read of global address",
];
/// Tolerance for sums in another order, and for functions.
const TOLERANCE: f64 = 0.02;
/// The same where numbers are rounded to 8 bits in between: a small difference makes it the next one, an eighth or a quarter away.
const TOLERANCE_OF_BYTES: f64 = 0.25;

/// Compares the source, the last text and the PTX; returns as a word how far the comparison went.
pub(super) fn check(input: &Input, done: &Compiled, random: &mut Random) -> Result<&'static str, Failure> {
    let [kernel] = &done.kernels[..] else { return Ok("compiled, several kernels") };
    let run = completed(&input.run, &kernel.tile.specialized);
    let problem = guarded(|| Problem::new(&kernel.tile.specialized, &run, false))?;
    let Ok(problem) = problem else { return Ok("compiled, no problem") };
    if problem.tensors.iter().map(|t| t.data.len()).sum::<usize>() > ELEMENTS {
        return Ok("compiled, large");
    }
    let options = interp::Options { fuel: FUEL, memory: 1 << 22, ..interp::Options::default() };
    let interpret = |kernel: &Kernel, consts: &Consts, options| {
        problem.interpret_with(std::slice::from_ref(kernel), std::slice::from_ref(consts), options)
    };
    let source = kernel.tile.source_kernel.as_ref().expect("one kernel means something by itself");
    // A program without a meaning may compile to anything.
    let Ok(before) = guarded(|| interpret(&source.kernel, &source.parameters, &options))? else {
        return Ok("compiled, undefined");
    };
    // Numbers that a type does not hold become what its conversions make of them, which is not this test's matter.
    let beyond = |t: &Tensor| {
        let format = format_of(&kernel.tile.kernel, &t.name);
        t.addresses().any(|at| !t.data[at].is_finite() || format.is_some_and(|f| f.is_exceeded_by(t.data[at])))
    };
    if before.iter().any(beyond) {
        return Ok("compiled, inexact");
    }
    let more = interp::Options { fuel: 16 * FUEL, memory: 1 << 24, ..interp::Options::default() };
    match guarded(|| interpret(&kernel.tile.kernel, &Consts::new(), &more))? {
        Err(e) if e.contains("[E0707]") || e.contains("[E0701]") => return Ok("compiled, not admitted"),
        Err(e) => return Err(failure(format!("the end: {}", &e[..12.min(e.len())]), e)),
        Ok(after) => {
            same_within(run.tolerance, &before, &after).map_err(|e| failure("another result", e))?;
        }
    }
    let result = guarded(|| match Executable::new("fuzz", done)? {
        Some(executable) => {
            let half = Some(random.below(2) as usize);
            executable.check(&run, &problem.tensors, &before, half).map(|()| "executed")
        }
        None => Ok("compiled"),
    })?;
    match result {
        Ok(word) => Ok(word),
        Err(e) if THE_AUTHORS.iter().any(|words| e.contains(words)) => Ok("compiled, the author's"),
        // Data or sums that a type does not hold.
        Err(e) if e.contains("the case is not exact") => Ok("compiled, inexact"),
        Err(e) => {
            let line = e.lines().next().unwrap_or("").split('`').step_by(2).collect::<String>();
            let class: String = line.chars().filter(|c| !c.is_ascii_digit()).take(70).collect();
            let class = class.split_once(": ").map_or(class.clone(), |(_, what)| what.to_owned());
            Err(failure(format!("executed: {class}"), format!("run {run:?}\n{e}\n{}", done.ptx)))
        }
    }
}

/// The format of a tensor's elements in memory.
fn format_of(kernel: &Kernel, name: &str) -> Option<Format> {
    let tensor = kernel.params.iter().copied().find(|&v| kernel.values[v].name == name)?;
    match kernel.tensor_ty(tensor)?.elem {
        ElemRef::Known(elem) => Format::from_name(elem.name()),
        ElemRef::Param(_) => None,
    }
}

/// The tolerance of a comparison.
fn tolerance(kernel: &Kernel) -> f64 {
    let bytes = |e| matches!(type_of(kernel, e).ok().and_then(|t| t.elem()), Some(ElemRef::Known(e)) if e.is_float() && e.bits() == 8);
    if kernel.expressions().into_iter().any(bytes) { TOLERANCE_OF_BYTES } else { TOLERANCE }
}

/// A run with values for all sizes and scalars, as their types hold them; those that an altered program adds are small.
fn completed(run: &Run, kernel: &Kernel) -> Run {
    let mut run = Run { tolerance: tolerance(kernel), ..run.clone() };
    for &v in &kernel.sizes {
        run.values.entry(kernel.values[v].name.clone()).or_insert(8.0);
    }
    for &v in &kernel.params {
        let ValueDef::Scalar { elem, default } = &kernel.values[v].def else { continue };
        let name = &kernel.values[v].name;
        if default.is_none() {
            run.values.entry(name.clone()).or_insert(2.0);
        }
        // A launch is given numbers that the type holds.
        if let (ElemRef::Known(elem), Some(x)) = (elem, run.values.get_mut(name))
            && let Some(format) = Format::from_name(elem.name())
        {
            *x = format.stored(*x);
        }
    }
    run
}
