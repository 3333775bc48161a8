//! NVIDIA's assembler and disassembler, if they are installed.
//!
//! `tilec` needs neither to write PTX. With them it can produce a cubin, show the machine code (SASS)
//! next to the source, and check claims that PTX cannot settle: registers, spills, and what the main
//! loop really executes.
//!
//! | file                | what it does                                                          |
//! |---------------------|-----------------------------------------------------------------------|
//! | `find.rs`           | where the tools are, and which version may serve which target         |
//! | `child.rs`          | runs one of them: private directory, clean environment, time limit    |
//! | `ptxas.rs`          | PTX to cubin, with the log as data; PTX line to `.tile` line          |
//! | `sass.rs`           | cubin to instructions                                                 |
//! | `live_registers.rs` | registers in use at every instruction                                 |
//! | `control.rs`        | what an encoding says of scheduling: stalls, barriers, reuse          |
//! | `loops.rs`          | control flow of those instructions: natural loops, the main loop      |
//! | `lint.rs`           | counts by kind of instruction, and what no kernel of ours may contain |
//!
//! Invariants:
//!
//! * A tool is started by absolute path, never through a shell. It is killed when it takes too long.
//! * No output of a tool makes this module panic.
//! * Results depend on the environment only by the tool that was found, which is part of the result.

mod child;
pub mod control;
mod counts;
pub mod find;
pub mod lint;
pub mod live_registers;
pub mod loops;
mod message;
pub mod ptxas;
pub mod sass;
pub mod scoreboards;
mod tools;

pub use counts::{Counts, Widths};
pub use find::{Found, find};
pub use lint::SassStats;
pub use loops::{Loop, innermost_loops, main_loop};
pub use message::{PtxasMessage, Severity, TileLocation, tile_location};
pub use ptxas::{Assembled, CalledSpills, EntryStats, Options, assemble};
pub use sass::{Disassembly, SassFunction, SassInst, Spill, disassemble, disassemble_encoded};
pub use tools::{Arch, AssemblerError, NotFound, Tool, ToolVersion};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arch_names_round_trip() {
        for text in ["sm_70", "sm_75", "sm_90a", "sm_100", "sm_120f"] {
            assert_eq!(text.parse::<Arch>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn arch_refuses_what_must_not_reach_a_command_line() {
        for text in ["", "sm_", "70", "sm_7", "sm_7000", "sm_+7", "sm_a", "sm_90aa", "sm_90 -v", "compute_70"] {
            assert!(text.parse::<Arch>().is_err(), "{text}");
        }
    }

    const TINY: &str = include_str!("testdata/tiny.ptx");

    /// Assembles and disassembles with the tools of this machine. Without them returns `None` and prints a note past
    /// the test harness's capture, in the form that `scripts/test.sh` collects.
    fn both(ptx: &str, arch: &str) -> Option<(Assembled, Disassembly)> {
        let arch: Arch = arch.parse().unwrap();
        let result =
            assemble(ptx, arch, Options { line_info: true }).and_then(|a| disassemble(&a.cubin, arch).map(|d| (a, d)));
        match result {
            Ok(both) => Some(both),
            Err(AssemblerError::NotFound(error)) => {
                skip(&error);
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn skip(error: &NotFound) {
        use std::io::Write;
        let line = format!("\nskipped: assembler test: no {} for {}\n", error.tool, error.arch);
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }

    #[test]
    fn a_kernel_goes_through_both_tools_for_every_generation() {
        for arch in ["sm_70", "sm_75", "sm_80", "sm_90a"] {
            let ptx = TINY.replace("sm_70", arch).replace(".version 6.4", ".version 8.0");
            let Some((assembled, disassembly)) = both(&ptx, arch) else {
                continue;
            };
            let stats = SassStats::all(&assembled.entries, &disassembly.functions);
            assert_eq!(stats.len(), 1, "{arch}");
            assert_eq!((stats[0].entry.as_str(), stats[0].static_smem_bytes), ("scale", 512));
            assert!(stats[0].registers > 4);
            assert_eq!(stats[0].problems(), [""; 0]);
            let counts = stats[0].main_loop.expect("the kernel has a loop");
            assert_eq!((counts.ldg.b128, counts.sts.b128, counts.bar), (1, 1, 1), "{arch}");
            let f = &disassembly.functions[0];
            let store = f.insts.iter().find(|i| i.base() == "STS").unwrap();
            assert_eq!(f.location(store), Some(("tiny.tile", 5)));
        }
    }

    #[test]
    fn an_error_leads_back_to_the_tile_line() {
        let ptx = TINY.replace("fma.rn.f32", "fma.rn.f99");
        let arch = "sm_70".parse().unwrap();
        match assemble(&ptx, arch, Options::default()) {
            Err(AssemblerError::Refused { messages, .. }) => {
                let line = messages[0].line.expect("the error has a line");
                let at = tile_location(&ptx, line).expect("the line has a location");
                assert_eq!((at.file.as_str(), at.line, at.column), ("tiny.tile", 6, 9));
            }
            Err(AssemblerError::NotFound(error)) => skip(&error),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nonsense_is_an_error_of_the_tool_and_not_of_ours() {
        let arch: Arch = "sm_70".parse().unwrap();
        for cubin in [&b""[..], b"\x7fELF", &[0; 4096]] {
            match disassemble(cubin, arch) {
                Err(AssemblerError::Failed { tool, .. }) => assert_eq!(tool, Tool::Nvdisasm),
                Err(AssemblerError::NotFound(error)) => skip(&error),
                other => panic!("{other:?}"),
            }
        }
        match assemble("", arch, Options::default()) {
            Err(AssemblerError::NotFound(error)) => skip(&error),
            result => assert!(result.is_err()),
        }
    }
}
