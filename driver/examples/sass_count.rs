//! Prints what the main loop of a PTX file's entries costs on the machine.
//!
//!     cargo run --example sass_count -- FILE.ptx [sm_70]
//!
//! Assembles with ptxas, disassembles, finds the main loop and counts. Without a second argument the
//! architecture is that of the file's `.target`. Exit status 1 when an entry spills or uses local memory.

use std::error::Error;
use std::process::ExitCode;

use tilec::assembler::{
    Arch, AssemblerError, Counts, Options, SassStats, Tool, Widths, assemble, disassemble, find, tile_location,
};

fn main() -> ExitCode {
    match run() {
        Ok(clean) => ExitCode::from(u8::from(!clean)),
        Err(error) => {
            eprintln!("sass_count: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("usage: sass_count FILE.ptx [sm_70]")?;
    let ptx = std::fs::read_to_string(&file)?;
    let arch: Arch = match args.next() {
        Some(arch) => arch.parse()?,
        None => target(&ptx).ok_or("no `.target` in the file")?.parse()?,
    };
    let assembled =
        assemble(&ptx, arch, Options { line_info: true }).inspect_err(|error| print_messages(&ptx, error))?;
    let disassembly = disassemble(&assembled.cubin, arch)?;
    println!("{file}: {arch}, ptxas {}, nvdisasm {}", assembled.version, find(Tool::Nvdisasm, arch)?.version);
    for message in &assembled.messages {
        println!("ptxas: {}", message.text);
    }
    let mut clean = true;
    for stats in SassStats::all(&assembled.entries, &disassembly.functions) {
        println!(
            "\n{}: {} registers, {} + {} spill bytes, {} stack bytes, {} static shared bytes, {} barriers",
            stats.entry,
            stats.registers,
            stats.spill_store_bytes,
            stats.spill_load_bytes,
            stats.stack_bytes,
            stats.static_smem_bytes,
            stats.barriers
        );
        println!("{:<18}{:>10}{:>10}", "", "main loop", "whole");
        let in_loop = stats.main_loop.unwrap_or_default();
        for ((name, whole), (_, inside)) in rows(&stats.total).into_iter().zip(rows(&in_loop)) {
            if whole > 0 {
                println!("{name:<18}{inside:>10}{whole:>10}");
            }
        }
        for problem in stats.problems() {
            println!("PROBLEM {problem}");
            clean = false;
        }
    }
    Ok(clean)
}

/// Every complaint of ptxas, with the line of the PTX and of the source it came from.
fn print_messages(ptx: &str, error: &AssemblerError) {
    let AssemblerError::Refused { messages, .. } = error else {
        return;
    };
    for message in messages {
        let line = message.line.map_or(String::new(), |n| format!("line {n}: "));
        let from = message.line.and_then(|n| tile_location(ptx, n));
        let from = from.map_or(String::new(), |at| format!(" (from {}:{})", at.file, at.line));
        println!("ptxas: {line}{}{from}", message.text);
    }
}

/// The architecture in `.target sm_70, ...`.
fn target(ptx: &str) -> Option<&str> {
    let rest = ptx.lines().find_map(|line| line.trim().strip_prefix(".target"))?;
    rest.split(',').next().map(str::trim)
}

fn rows(c: &Counts) -> Vec<(String, u32)> {
    let mut rows = vec![
        ("total without NOP".to_owned(), c.total),
        ("mma (PTX)".to_owned(), c.mma_ptx),
        ("mma (machine)".to_owned(), c.mma),
        ("fma".to_owned(), c.fma),
    ];
    let mut widths = |name: &str, w: &Widths| {
        for (bits, count) in [(256, w.b256), (128, w.b128), (64, w.b64), (32, w.b32), (16, w.b16), (8, w.b8)] {
            rows.push((format!("{name}.{bits}"), count));
        }
    };
    widths("LDG", &c.ldg);
    widths("STG", &c.stg);
    widths("LDS", &c.lds);
    widths("STS", &c.sts);
    widths("LDGSTS", &c.ldgsts);
    rows.extend(
        [
            ("LDSM", c.ldsm),
            ("LDL", c.ldl),
            ("STL", c.stl),
            ("LD, ST (generic)", c.generic),
            ("BAR", c.bar),
            ("BRA", c.bra),
            ("SHFL", c.shfl),
            ("other", c.other),
        ]
        .map(|(name, count)| (name.to_owned(), count)),
    );
    rows
}
