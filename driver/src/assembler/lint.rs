//! Figures of the machine code: instruction counts, registers, spills.
//!
//! Counting is by opcode, so it needs no knowledge of encodings. `NOP` is not counted: ptxas pads with
//! it as it likes.

use serde::Serialize;

use super::loops::main_loop;
use super::ptxas::EntryStats;
use super::sass::SassFunction;
use crate::assembler::counts::Counts;

/// Statistics of one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SassStats {
    /// Name of the entry.
    pub entry: String,
    /// 32-bit registers per thread.
    pub registers: u32,
    /// Bytes of spilled register values, stores.
    pub spill_store_bytes: u64,
    /// Bytes of spilled register values, loads.
    pub spill_load_bytes: u64,
    /// Bytes of stack frame.
    pub stack_bytes: u64,
    /// Bytes of static shared memory.
    pub static_smem_bytes: u64,
    /// Named barriers.
    pub barriers: u32,
    /// Counts of the whole function.
    pub total: Counts,
    /// Counts of one iteration of the main loop, if there is a loop.
    pub main_loop: Option<Counts>,
}

impl SassStats {
    /// Combines the facts of the assembler and the disassembler about one entry.
    #[must_use]
    pub fn new(entry: &EntryStats, function: &SassFunction) -> SassStats {
        SassStats {
            entry: entry.name.clone(),
            registers: entry.registers,
            spill_store_bytes: entry.spill_store_bytes,
            spill_load_bytes: entry.spill_load_bytes,
            stack_bytes: entry.stack_bytes,
            static_smem_bytes: entry.smem_bytes,
            barriers: entry.barriers,
            total: Counts::of(&function.insts),
            main_loop: main_loop(function).map(|l| l.counts(function)),
        }
    }

    /// One for each entry that both report, in the order of `entries`.
    #[must_use]
    pub fn all(entries: &[EntryStats], functions: &[SassFunction]) -> Vec<SassStats> {
        let both = entries
            .iter()
            .filter_map(|entry| functions.iter().find(|f| f.name == entry.name).map(|f| SassStats::new(entry, f)));
        both.collect()
    }

    /// Problems that no generated kernel may have: spills, a stack frame, accesses to local memory. One line each.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut no = |count: u64, what: &str| {
            if count > 0 {
                problems.push(format!("`{}`: {count} {what}, expected none", self.entry));
            }
        };
        no(self.spill_store_bytes, "bytes of spill stores");
        no(self.spill_load_bytes, "bytes of spill loads");
        no(self.stack_bytes, "bytes of stack frame");
        no(u64::from(self.total.ldl), "loads from local memory");
        no(u64::from(self.total.stl), "stores to local memory");
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembler::ptxas::parse_log;
    use crate::assembler::sass::parse;

    fn counts(opcodes: &str) -> Counts {
        let mut text = ".section .text.f,\"ax\"\n".to_owned();
        for (i, opcode) in opcodes.split_whitespace().enumerate() {
            text += &format!("/*{:04x}*/ {opcode} R0 ;\n", i * 16);
        }
        Counts::of(&parse(&text)[0].insts)
    }

    #[test]
    fn widths_are_modifiers_of_their_own() {
        let c = counts(
            "LDG.E.128.SYS LDG.E.SYS LDG.E.U16.SYS LDG.E.LTC128B.64 STG.E.S8 LDS.U LDS.U.128 STS.64 \
             LDGSTS.E.BYPASS.LTC128B.128 LDSM.16.M88.4 NOP",
        );
        assert_eq!((c.ldg.b128, c.ldg.b32, c.ldg.b16, c.ldg.b64), (1, 1, 1, 1));
        assert_eq!((c.stg.b8, c.lds.b32, c.lds.b128, c.sts.b64), (1, 1, 1, 1));
        assert_eq!((c.ldgsts.b128, c.ldsm, c.total), (1, 1, 10));
    }

    #[test]
    fn a_volta_mma_is_several_steps() {
        let f16 = "HMMA.884.F16.F16.STEP0 HMMA.884.F16.F16.STEP1";
        let c = counts(&format!("{f16} {f16} HMMA.16816.F32 HGMMA.64x64x16.F32"));
        assert_eq!((c.mma, c.mma_ptx), (6, 4));
    }

    #[test]
    fn every_instruction_is_counted_once() {
        let c = counts("HMMA.884 FFMA LDG.E STG.E LDS STS LDSM LDGSTS LDL STL LD ST BAR BRA SHFL MOV NOP");
        let parts = [c.mma, c.fma, c.ldg.total(), c.stg.total(), c.lds.total(), c.sts.total(), c.ldsm];
        let more = [c.ldgsts.total(), c.ldl, c.stl, c.generic, c.bar, c.bra, c.shfl, c.other];
        assert_eq!(c.total, 16);
        assert_eq!(parts.iter().chain(&more).sum::<u32>(), c.total);
        assert_eq!((c.generic, c.other), (2, 1));
    }

    #[test]
    fn a_clean_entry_has_no_problems_and_a_spilled_one_has() {
        let (entries, _) = parse_log(include_str!("testdata/two_entries.log"));
        let functions = parse(include_str!("testdata/tiny.sass"));
        let stats = SassStats::all(&entries, &functions);
        assert_eq!(stats.len(), 1, "only `scale` is in both");
        assert_eq!(stats[0].problems(), [""; 0]);
        let in_loop = stats[0].main_loop.unwrap();
        assert_eq!((in_loop.ldg.b128, in_loop.sts.b128, in_loop.lds.b32), (1, 1, 1));
        assert_eq!((in_loop.bar, in_loop.bra, in_loop.fma, in_loop.total), (1, 1, 1, 10));
        let mut f = functions[0].clone();
        f.name = "spilled".to_owned();
        f.insts[2].opcode = "STL".to_owned();
        assert_eq!(SassStats::new(&entries[0], &f).problems().len(), 4);
    }
}
