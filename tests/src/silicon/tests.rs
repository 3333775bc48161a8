//! What must hold of the probes without a GPU.

use super::compare::{compare, rule};
use super::fragments::CLASSES;
use super::probe::{Compare, Probe};
use super::run::{Amounts, Machine, Simulator, check};
use super::{forms, kernel};
use std::collections::BTreeSet;
use tilec::assembler::{self, AssemblerError};
use tilec_sim::{Order, instruction_forms};

/// The tests of this module, by name.
pub fn tests() -> Vec<crate::programs::Test> {
    vec![
        ("silicon/opcodes".to_owned(), Box::new(opcodes)),
        ("silicon/simulated".to_owned(), Box::new(simulated)),
        ("silicon/assembled".to_owned(), Box::new(assembled)),
        ("silicon/planted".to_owned(), Box::new(planted)),
        ("silicon/compared".to_owned(), Box::new(compared)),
    ]
}

/// Every opcode of the simulator is probed, or is listed as one that computes nothing.
fn opcodes() -> Result<(), String> {
    let have: BTreeSet<&str> = instruction_forms().iter().filter(|f| forms::computes(f)).map(|f| f.opcode).collect();
    let unknown: Vec<&&str> =
        have.iter().filter(|o| forms::PROBED.contains(o) == forms::NOT_PROBED.contains(o)).collect();
    if !unknown.is_empty() {
        return Err(format!("in neither or both of PROBED and NOT_PROBED of tests/src/silicon/forms.rs: {unknown:?}"));
    }
    let gone: Vec<&&str> = forms::PROBED.iter().chain(forms::NOT_PROBED).filter(|o| !have.contains(*o)).collect();
    if gone.is_empty() { Ok(()) } else { Err(format!("the simulator does not have {gone:?}")) }
}

/// Every probe runs on the simulator, in either order of blocks, with equal results.
fn simulated() -> Result<(), String> {
    let amounts = Amounts { products: 14 * 64, others: 64, edges: 64, seed: 1 };
    let mut wrong = Vec::new();
    for probe in forms::probes()? {
        let outcome = check(&probe, &mut Simulator::default(), &mut Simulator::new(Order::Reverse, 5), &amounts);
        if !outcome.passed() || outcome.results == 0 {
            wrong.push(format!("{}: {} {:?} {:?}", probe.name, outcome.wrong, outcome.failure, outcome.described));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("{} probes\n{}", wrong.len(), wrong.join("\n"))) }
}

/// ptxas takes the kernel of every probe.
fn assembled() -> Result<(), String> {
    let probes = forms::probes()?;
    let mut wrong = Vec::new();
    // Few enough for the limit of one assembly, on a machine that has other work too.
    for probes in probes.chunks(100) {
        match assemble(&probes.iter().collect::<Vec<_>>()) {
            Ok(None) => {
                crate::golden::skip("silicon/assembled", "no ptxas for sm_90");
                return Ok(());
            }
            Ok(Some(messages)) => wrong.extend(messages),
            Err(error) => return Err(error),
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// What ptxas refuses of the kernels; `None` where there is no ptxas.
///
/// # Errors
/// ptxas cannot be run.
pub fn assemble(probes: &[&Probe]) -> Result<Option<Vec<String>>, String> {
    let text = kernel::module(probes);
    let arch = "sm_90".parse().map_err(|e: AssemblerError| e.to_string())?;
    match assembler::assemble(&text, arch, assembler::Options { line_info: false }) {
        Ok(_) => Ok(Some(Vec::new())),
        Err(AssemblerError::NotFound(_)) => Ok(None),
        Err(AssemblerError::Refused { messages, .. }) => {
            let line = |l: u32| text.lines().nth((l as usize).saturating_sub(1)).unwrap_or("").trim();
            Ok(Some(messages.iter().map(|m| format!("{}: {}", m.line.map_or("", line), m.text)).collect()))
        }
        Err(e) => Err(e.to_string()),
    }
}

/// What an H200 answered agrees, and what is as far off in the wrong place does not.
fn compared() -> Result<(), String> {
    let (quotient, root) = (|ftz| Compare::Quotient(ftz), rule("rsqrt", &["approx", "f64"]));
    for (how, want, got, good) in [
        (rule("div", &["full", "f32"]), 0x7f7f_ffff, 0x7f80_0000, true),
        (quotient(false), 0xff7f_ffff, 0xff80_0000, true),
        (quotient(false), 0xff7f_ffff, 0x7f80_0000, false),
        (quotient(false), 0x7f7f_fffd, 0x7f80_0000, false),
        (rule("div", &["approx", "ftz", "f32"]), 0x0080_0000, 0, true),
        (quotient(false), 0x0080_0000, 0, false),
        (quotient(true), 0x0080_0003, 0, false),
        (root, 0x6176_a09e_667f_3bcd, 0x6176_a09e_667f_3bcc, true),
        (root, 0x6176_a09e_667f_3bcd, 0x6176_a09e_667f_3bcb, false),
    ] {
        if compare(how, want, got, 0).good != good {
            return Err(format!("{how:?}: {want:#x} {got:#x} must be {good}"));
        }
    }
    Ok(())
}

/// A machine that gives one wrong bit.
struct Flipped(Simulator);

impl Machine for Flipped {
    fn load(&mut self, probe: &Probe, ptx: &str, words: [usize; 2]) -> Result<(), String> {
        self.0.load(probe, ptx, words)
    }

    fn run(&mut self, input: &[u32], results: usize, sets: u32) -> Result<Vec<u32>, String> {
        let mut words = self.0.run(input, results, sets)?;
        words[37] ^= 0x10;
        Ok(words)
    }
}

/// One wrong bit is found, counted, and shown with the operands that make the result.
fn planted() -> Result<(), String> {
    let amounts = Amounts { products: 14 * 128, others: 64, edges: 0, seed: 1 };
    for name in ["mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32", "add.u32", "fma.rn.f64", "cvt.rn.f16.f32"] {
        let probes = forms::probes()?;
        let probe = probes.iter().find(|p| p.name == name).ok_or_else(|| format!("no probe {name}"))?;
        let outcome = check(probe, &mut Simulator::default(), &mut Flipped(Simulator::default()), &amounts);
        if outcome.wrong != 1 || outcome.described.len() != 1 {
            return Err(format!("{name}: {} wrong, described {:?}", outcome.wrong, outcome.described));
        }
        if probe.product.is_some() {
            if outcome.by_class[0] != 1 || !outcome.described[0].starts_with(CLASSES[0].1) {
                return Err(format!("{:?}", outcome.by_class));
            }
            row_times_column(&outcome.described[0])?;
        }
    }
    Ok(())
}

/// The description of a product of bytes contains what the simulator computed its result from.
fn row_times_column(text: &str) -> Result<(), String> {
    let wrong = || format!("no product:\n{text}");
    let line = |start: &str| -> Option<Vec<i64>> {
        let rest = text.lines().find_map(|l| l.trim().strip_prefix(start))?;
        rest.split_whitespace().map(|w| i64::from_str_radix(w.strip_prefix("0x")?, 16).ok()).collect()
    };
    let (Some(a), Some(b), Some(c)) = (line("A: "), line("B: "), line("C: ")) else { return Err(wrong()) };
    let signed = |x: i64| if x > 127 { x - 256 } else { x };
    let sum: i64 = a.iter().zip(&b).map(|(a, b)| signed(*a) * b).sum::<i64>() + c[0];
    let want = text.split("simulator ").nth(1).and_then(|t| t.split(',').next()).ok_or_else(wrong)?;
    if a.len() == 32 && b.len() == 32 && want == format!("{:#x}", sum as u32) {
        Ok(())
    } else {
        Err(format!("{sum:#x}\n{}", wrong()))
    }
}
