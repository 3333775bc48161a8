//! Instructions counted by kind.

use crate::assembler::sass::SassInst;
use serde::Serialize;

/// Accesses of one kind by bits per thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Widths {
    /// 8-bit accesses.
    pub b8: u32,
    /// 16-bit accesses.
    pub b16: u32,
    /// 32-bit accesses.
    pub b32: u32,
    /// 64-bit accesses.
    pub b64: u32,
    /// 128-bit accesses.
    pub b128: u32,
    /// 256-bit accesses (sm_100 and later).
    pub b256: u32,
}

impl Widths {
    /// Accesses of any width.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.b8 + self.b16 + self.b32 + self.b64 + self.b128 + self.b256
    }

    fn add(&mut self, inst: &SassInst) {
        // The width is a separate modifier (`LDS.U.128`, `STG.E.U16.SYS`). Cache hints such as `LTC128B` are not
        // widths. The default is 32 bits.
        let bits = inst.opcode.split('.').skip(1).find_map(|part| match part {
            "256" => Some(256),
            "128" => Some(128),
            "64" => Some(64),
            "16" | "U16" | "S16" => Some(16),
            "8" | "U8" | "S8" => Some(8),
            _ => None,
        });
        *match bits {
            Some(256) => &mut self.b256,
            Some(128) => &mut self.b128,
            Some(64) => &mut self.b64,
            Some(16) => &mut self.b16,
            Some(8) => &mut self.b8,
            _ => &mut self.b32,
        } += 1;
    }
}

/// Instructions by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All but `NOP`.
    pub total: u32,
    /// Matrix instructions of the machine: `HMMA`, `IMMA`, `BMMA`, `DMMA`, `HGMMA`, ...
    pub mma: u32,
    /// Matrix instructions of PTX: on Volta one `mma.m8n8k4` is two (f16) or four (f32) `HMMA.884` steps.
    pub mma_ptx: u32,
    /// `FFMA`, `HFMA2`, `DFMA`.
    pub fma: u32,
    /// Global loads.
    pub ldg: Widths,
    /// Global stores.
    pub stg: Widths,
    /// Shared loads.
    pub lds: Widths,
    /// Shared stores.
    pub sts: Widths,
    /// `LDSM` (PTX `ldmatrix`).
    pub ldsm: u32,
    /// `LDGSTS` (PTX `cp.async`).
    pub ldgsts: Widths,
    /// Loads from local memory; none is wanted.
    pub ldl: u32,
    /// Stores to local memory; none is wanted.
    pub stl: u32,
    /// Generic loads and stores: the state space was not known.
    pub generic: u32,
    /// `BAR`.
    pub bar: u32,
    /// Branches.
    pub bra: u32,
    /// Shuffles.
    pub shfl: u32,
    /// Integer, move, predicate and everything else.
    pub other: u32,
}

impl Counts {
    /// Counts `insts`.
    pub fn of<'a>(insts: impl IntoIterator<Item = &'a SassInst>) -> Counts {
        let mut counts = Counts::default();
        for inst in insts {
            counts.add(inst);
        }
        counts
    }

    fn add(&mut self, inst: &SassInst) {
        let base = inst.base();
        if base == "NOP" {
            return;
        }
        self.total += 1;
        match base {
            // Never executed: ptxas 12 puts one such `SHFL` at the head of every sm_70 function.
            _ if inst.predicate.as_deref() == Some("!PT") => self.other += 1,
            "FFMA" | "FFMA2" | "HFMA2" | "DFMA" => self.fma += 1,
            "LDG" => self.ldg.add(inst),
            "STG" => self.stg.add(inst),
            "LDS" => self.lds.add(inst),
            "STS" => self.sts.add(inst),
            "LDSM" => self.ldsm += 1,
            "LDGSTS" => self.ldgsts.add(inst),
            "LDL" => self.ldl += 1,
            "STL" => self.stl += 1,
            "LD" | "ST" => self.generic += 1,
            "BAR" => self.bar += 1,
            "BRA" | "JMP" => self.bra += 1,
            "SHFL" => self.shfl += 1,
            // HMMA, IMMA, HGMMA, UTCHMMA, OMMA, ...
            _ if base.ends_with("MMA") => {
                self.mma += 1;
                if !["STEP1", "STEP2", "STEP3"].iter().any(|step| inst.has(step)) {
                    self.mma_ptx += 1;
                }
            }
            _ => self.other += 1,
        }
    }
}
