//! Machine figures of the model: a row for each card.
//!
//! Multiprocessors, clocks, bandwidths, sizes of caches and rates of products are from NVIDIA's data sheets and
//! architecture papers. These are of V100 2017, Turing 2018, A100 2020, GA102 2020, Ada 2023, H100 2022, H200 2023.
//! Other figures are marked at the row: *measured* (by whom) or *estimated* (by us, from neighbouring chips). Latencies
//! under load are estimates, about twice the latency of a single load; that of the H200 is fitted, see `model`.

use tilec_ir::atoms::{Atom, Inputs};
use tilec_ir::target::{SCHEDULERS, Target, WARP};
use tilec_ir::types::Elem;

/// A card.
#[derive(Copy, Clone, Debug)]
pub struct Card {
    /// Its name on the command line.
    pub name: &'static str,
    /// Compute capability times ten.
    pub cc: u32,
    /// Multiprocessors.
    pub sms: u32,
    /// Clock in GHz: boost clock, or the sustained clock if that was measured.
    pub clock: f64,
    /// The same for scalar products and f64, which draw less power than other products.
    pub clock_scalar: f64,
    /// Bandwidth of the memory in GB/s.
    pub dram: f64,
    /// Bandwidth between the second-level cache and all multiprocessors, bytes per clock.
    pub l2: f64,
    /// Size of the second-level cache in MB.
    pub l2_size: f64,
    /// Clocks from the issue of a load to its arrival under load.
    pub latency: f64,
    /// Dense multiply-adds of 16-bit elements per clock and multiprocessor by `wgmma`: twice as many for bytes, half as
    /// many for tf32; 0: there is no wgmma.
    pub warpgroups: f64,
    /// Clusters of four blocks that can be resident at once, with one block on a multiprocessor; 0: no clusters. A
    /// cluster must be within a group of multiprocessors; the groups have different sizes, and clusters do not fill
    /// them.
    pub quads: u32,
    /// Dense multiply-adds per clock and multiprocessor, by `mma.sync`.
    pub rates: Rates,
}

/// Dense multiply-adds per clock and multiprocessor; 0: there is no such unit.
#[derive(Copy, Clone, Debug)]
pub struct Rates {
    /// f16 with f16 accumulation.
    pub half: f64,
    /// f16 and bf16 with f32 accumulation.
    pub half_f32: f64,
    /// tf32.
    pub tf32: f64,
    /// 8-bit floats with f32 accumulation.
    pub fp8: f64,
    /// Bytes.
    pub int8: f64,
    /// f64 on tensor cores.
    pub f64: f64,
    /// Scalar f32.
    pub fma: f64,
    /// Scalar f64.
    pub fma_f64: f64,
}

/// Every card; the first of a generation is the default for its target.
pub static CARDS: &[Card] = &[
    // L2: 2155 GB/s measured at 1.38 GHz (Jia et al., Dissecting the Volta GPU, 2018).
    Card {
        name: "V100",
        cc: 70,
        sms: 80,
        clock: 1.53,
        clock_scalar: 1.53,
        dram: 900.0,
        l2: 1560.0,
        l2_size: 6.0,
        latency: 800.0,
        warpgroups: 0.0,
        quads: 0,
        rates: Rates {
            half: 512.0,
            half_f32: 512.0,
            tf32: 0.0,
            fp8: 0.0,
            int8: 0.0,
            f64: 0.0,
            fma: 64.0,
            fma_f64: 32.0,
        },
    },
    // L2: 1270 GB/s measured (Jia et al., Dissecting the Turing T4 GPU, 2019).
    Card {
        name: "T4",
        cc: 75,
        sms: 40,
        clock: 1.59,
        clock_scalar: 1.59,
        dram: 320.0,
        l2: 800.0,
        l2_size: 4.0,
        latency: 800.0,
        warpgroups: 0.0,
        quads: 0,
        rates: Rates { half: 512.0, half_f32: 512.0, int8: 1024.0, ..scalar(64.0, 2.0) },
    },
    Card {
        name: "A100",
        cc: 80,
        sms: 108,
        clock: 1.41,
        clock_scalar: 1.41,
        dram: 1555.0,
        l2: 5120.0,
        l2_size: 40.0,
        latency: 1000.0,
        warpgroups: 0.0,
        quads: 0,
        rates: Rates { half: 1024.0, half_f32: 1024.0, tf32: 512.0, int8: 2048.0, f64: 64.0, ..scalar(64.0, 32.0) },
    },
    // L2: estimated.
    Card {
        name: "A10",
        cc: 86,
        sms: 72,
        clock: 1.695,
        clock_scalar: 1.695,
        dram: 600.0,
        l2: 1440.0,
        l2_size: 6.0,
        latency: 1000.0,
        warpgroups: 0.0,
        quads: 0,
        rates: Rates { half: 512.0, half_f32: 512.0, tf32: 256.0, int8: 1024.0, f64: 2.0, ..scalar(128.0, 2.0) },
    },
    // L2: estimated.
    Card {
        name: "RTX3090",
        cc: 86,
        sms: 82,
        clock: 1.695,
        clock_scalar: 1.695,
        dram: 936.0,
        l2: 1640.0,
        l2_size: 6.0,
        latency: 1000.0,
        warpgroups: 0.0,
        quads: 0,
        rates: Rates { half: 512.0, half_f32: 256.0, tf32: 128.0, int8: 1024.0, f64: 2.0, ..scalar(128.0, 2.0) },
    },
    // L2: estimated.
    Card {
        name: "RTX4090",
        cc: 89,
        sms: 128,
        clock: 2.52,
        clock_scalar: 2.52,
        dram: 1008.0,
        l2: 2048.0,
        l2_size: 72.0,
        latency: 1000.0,
        warpgroups: 0.0,
        quads: 0,
        rates: Rates {
            half: 512.0,
            half_f32: 256.0,
            tf32: 128.0,
            fp8: 512.0,
            int8: 1024.0,
            f64: 2.0,
            ..scalar(128.0, 2.0)
        },
    },
    // L2: estimated.
    Card {
        name: "L4",
        cc: 89,
        sms: 58,
        clock: 2.04,
        clock_scalar: 2.04,
        dram: 300.0,
        l2: 1160.0,
        l2_size: 48.0,
        latency: 1000.0,
        warpgroups: 0.0,
        quads: 0,
        rates: Rates {
            half: 512.0,
            half_f32: 512.0,
            tf32: 256.0,
            fp8: 1024.0,
            int8: 1024.0,
            f64: 2.0,
            ..scalar(128.0, 2.0)
        },
    },
    // Rates: `mma.sync` reaches two thirds of wgmma (measured for f16, docs/performance.md; assumed for the other
    // types; 8-bit floats are computed by f16 instructions). The clock under tensor cores, the bandwidth of L2 and the
    // latency are fitted, see `model`. The other clock was measured under scalar products. Clusters were measured, too:
    // 30 clusters of four run at once; with 32, a kernel takes twice as long.
    Card {
        name: "H200",
        cc: 90,
        sms: 132,
        clock: 1.825,
        clock_scalar: 1.98,
        dram: 4800.0,
        l2: 7500.0,
        l2_size: 50.0,
        latency: 500.0,
        warpgroups: 2048.0,
        quads: 30,
        rates: Rates {
            half: 1365.0,
            half_f32: 1365.0,
            tf32: 683.0,
            fp8: 1365.0,
            int8: 2730.0,
            f64: 128.0,
            ..scalar(128.0, 64.0)
        },
    },
    // As the H200, with less memory bandwidth.
    Card {
        name: "H100",
        cc: 90,
        sms: 132,
        clock: 1.8,
        clock_scalar: 1.98,
        dram: 3350.0,
        l2: 7500.0,
        l2_size: 50.0,
        latency: 500.0,
        warpgroups: 2048.0,
        quads: 30,
        rates: Rates {
            half: 1365.0,
            half_f32: 1365.0,
            tf32: 683.0,
            fp8: 1365.0,
            int8: 2730.0,
            f64: 128.0,
            ..scalar(128.0, 64.0)
        },
    },
];

/// `dp4a` byte products per clock and multiprocessor, on every chip since Volta (estimated: half the width of the
/// integer lanes).
const DOTS: f64 = 64.0;

/// A chip without tensor cores.
const fn scalar(fma: f64, fma_f64: f64) -> Rates {
    Rates { half: 0.0, half_f32: 0.0, tf32: 0.0, fp8: 0.0, int8: 0.0, f64: 0.0, fma, fma_f64 }
}

impl Card {
    /// The card called `name`, ignoring case.
    pub fn from_name(name: &str) -> Option<&'static Card> {
        CARDS.iter().find(|c| c.name.eq_ignore_ascii_case(name))
    }

    /// The default card of a target.
    pub fn of(target: Target) -> &'static Card {
        CARDS.iter().find(|c| c.cc == target.cc()).unwrap_or(&CARDS[0])
    }

    /// The sustained clock in GHz under products of an instruction.
    pub fn clock_of(&self, atom: Atom) -> f64 {
        let row = atom.row();
        let light = !row.tensor_core || row.types.iter().all(|t| t.inputs.a == Elem::F64);
        if light { self.clock_scalar } else { self.clock }
    }

    /// Clocks in which an addition, product or multiply-add of f32 of a warp occupies the lanes of its scheduler: two, if
    /// it has 16 lanes (CUDA C++ Programming Guide, throughput of arithmetic instructions: 64 results per clock and
    /// multiprocessor for compute capabilities 7.0, 7.5 and 8.0; 128 for 8.6, 8.9 and 9.0).
    pub fn f32_clocks(&self) -> f64 {
        f64::from(WARP) * SCHEDULERS as f64 / self.rates.fma
    }

    /// Clusters of `blocks` blocks that can be resident at once, with one block on a multiprocessor.
    pub fn clusters(&self, blocks: i64) -> i64 {
        match blocks {
            ..=2 => i64::from(self.sms) / blocks.max(1),
            _ => i64::from(self.quads) * 4 / blocks,
        }
    }

    /// Multiply-adds of an instruction per clock and multiprocessor.
    pub fn rate(&self, atom: Atom, inputs: Inputs, acc: Elem) -> f64 {
        // Both operand types of a product run at the rate of A's.
        let (row, rates, input) = (atom.row(), &self.rates, inputs.a);
        if !row.tensor_core {
            if row.sums() {
                return DOTS * f64::from(row.k);
            }
            return match input {
                Elem::F64 => rates.fma_f64,
                // Integers multiply at half the rate of f32; narrow floats are converted first.
                Elem::F32 | Elem::TF32 => rates.fma,
                _ => rates.fma / 2.0,
            };
        }
        if row.asynchronous() {
            return self.warpgroups * 2.0 / input.size().traffic(1.0);
        }
        let unit = match input {
            Elem::F16 if acc == Elem::F16 => rates.half,
            Elem::F16 | Elem::BF16 => rates.half_f32,
            Elem::TF32 => rates.tf32,
            Elem::E4M3 | Elem::E5M2 => rates.fp8,
            Elem::I8 | Elem::U8 => rates.int8,
            Elem::F64 => rates.f64,
            _ => rates.fma,
        };
        // Instructions of older generations: emulated after the last chip that has them, and half as fast from Ampere
        // on (measured on an H200 for m16n8k8 and m8n8k4_f64: docs/performance.md).
        if self.cc > row.last_native_cc {
            return rates.fma / 8.0;
        }
        let older = match input {
            Elem::F64 => self.cc >= 90 && row.first < Target::Sm90,
            Elem::F16 | Elem::I8 | Elem::U8 => self.cc >= 80 && row.first < Target::Sm80,
            _ => false,
        };
        unit.max(1.0) / if older { 2.0 } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CUDA C++ Programming Guide, throughput of arithmetic instructions: 64 of f32 per clock and multiprocessor for
    /// compute capabilities 7.0, 7.5 and 8.0, and 128 for 8.6, 8.9 and 9.0.
    #[test]
    fn lanes_for_f32_are_those_of_the_programming_guide() {
        for card in CARDS {
            assert_eq!(card.f32_clocks(), if card.cc <= 80 { 2.0 } else { 1.0 }, "{}", card.name);
        }
    }
}
