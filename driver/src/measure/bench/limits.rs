//! Peak rates of a card: arithmetic from its multiprocessors, clock and rates; memory from bus and clock.
//!
//! Rates are dense multiply-adds per clock and multiprocessor, from NVIDIA's architecture papers: V100 (2017) table 1,
//! Turing (2018) table 1, A100 (2020) table 1, GA102 (2020) appendix A, Ada (2023) appendix A, H100 (2022) table 2.

use serde::{Deserialize, Serialize};
use tilec_ir::types::Elem;

/// The device of a measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Marketing name.
    pub name: String,
    /// Compute capability times ten.
    pub cc: u32,
    /// CUDA version of the driver.
    pub driver: String,
    /// Multiprocessors.
    pub sm_count: u32,
    /// Peak clock in kHz.
    pub clock_khz: u32,
    /// Memory clock in kHz.
    pub memory_clock_khz: u32,
    /// Bus width in bits.
    pub memory_bus_bits: u32,
    /// Second-level cache in bytes.
    pub l2_bytes: u32,
}

/// The unit that computes products.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// 16-bit floating-point tensor cores.
    Half,
    /// tf32 tensor cores.
    Tf32,
    /// 8-bit floating-point tensor cores.
    Fp8,
    /// 8-bit integer tensor cores.
    Int8,
    /// Double precision, tensor cores where there are.
    F64,
    /// Scalar single precision.
    F32,
}

impl Unit {
    /// The unit that multiplies elements of this type.
    pub fn of(input: Elem) -> Unit {
        match input {
            Elem::F16 | Elem::BF16 => Unit::Half,
            Elem::TF32 => Unit::Tf32,
            Elem::E4M3 | Elem::E5M2 => Unit::Fp8,
            Elem::I8 | Elem::U8 => Unit::Int8,
            Elem::F64 => Unit::F64,
            Elem::F32
            | Elem::E2M1
            | Elem::UE8M0
            | Elem::I4
            | Elem::U4
            | Elem::I16
            | Elem::U16
            | Elem::I32
            | Elem::U32
            | Elem::I64
            | Elem::U64
            | Elem::Bool => Unit::F32,
        }
    }

    /// Multiply-adds per clock and multiprocessor at compute capability `cc`; `None`: unknown, or there is no such unit.
    fn rate(self, cc: u32) -> Option<u32> {
        //            half  tf32  fp8   int8  f64  f32
        let row = match cc {
            70 => [512, 0, 0, 0, 32, 64],
            75 => [512, 0, 0, 1024, 2, 64],
            80 => [1024, 512, 0, 2048, 64, 64],
            86 | 87 => [512, 256, 0, 1024, 2, 128],
            89 => [512, 256, 1024, 1024, 2, 128],
            90 => [2048, 1024, 4096, 4096, 128, 128],
            _ => return None,
        };
        let rate = match self {
            Unit::Half => row[0],
            Unit::Tf32 => row[1],
            Unit::Fp8 => row[2],
            Unit::Int8 => row[3],
            Unit::F64 => row[4],
            Unit::F32 => row[5],
        };
        (rate > 0).then_some(rate)
    }
}

/// The resource that limits a program.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// Arithmetic.
    Compute,
    /// Memory.
    Memory,
}

impl Machine {
    /// Operations per second (two per multiply-add) of a unit at the peak clock.
    pub fn peak_flops(&self, unit: Unit) -> Option<f64> {
        let rate = f64::from(unit.rate(self.cc)?);
        let flops = 2.0 * rate * f64::from(self.sm_count) * f64::from(self.clock_khz) * 1e3;
        (flops > 0.0).then_some(flops)
    }

    /// Bytes per second of the memory, at two transfers a cycle.
    pub fn peak_bytes(&self) -> Option<f64> {
        let bytes = 2.0 * f64::from(self.memory_clock_khz) * 1e3 * f64::from(self.memory_bus_bits) / 8.0;
        (bytes > 0.0).then_some(bytes)
    }

    /// The least time in seconds that the work can take, and why. `unit` does `flops` operations; every one of `bytes` moves
    /// once.
    pub fn least_seconds(&self, unit: Option<Unit>, flops: f64, bytes: f64) -> Option<(f64, Bottleneck)> {
        let memory = self.peak_bytes().map(|peak| (bytes / peak, Bottleneck::Memory));
        let compute = unit.filter(|_| flops > 0.0).map(|unit| self.peak_flops(unit));
        let compute = match compute {
            // The larger of two limits is unknown if one of them is.
            Some(None) => return None,
            Some(Some(peak)) => Some((flops / peak, Bottleneck::Compute)),
            None => None,
        };
        match (compute, memory) {
            (Some(c), Some(m)) => Some(if c.0 >= m.0 { c } else { m }),
            (one, other) => one.or(other),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn h200() -> Machine {
        Machine {
            name: "NVIDIA H200".to_owned(),
            cc: 90,
            driver: "13.0".to_owned(),
            sm_count: 132,
            clock_khz: 1_980_000,
            memory_clock_khz: 3_201_000,
            memory_bus_bits: 6144,
            l2_bytes: 50 << 20,
        }
    }

    #[test]
    fn peaks_are_those_of_the_data_sheets() {
        let near = |x: Option<f64>, y: f64| x.is_some_and(|x| (x / y - 1.0).abs() < 0.01);
        let h200 = h200();
        assert!(near(h200.peak_flops(Unit::F32), 66.9e12), "67 TFLOP/s");
        assert!(near(h200.peak_bytes(), 4.917e12), "4.9 TB/s");
        let a100 = Machine { cc: 80, sm_count: 108, clock_khz: 1_410_000, ..h200.clone() };
        assert!(near(a100.peak_flops(Unit::Half), 312e12) && near(a100.peak_flops(Unit::Tf32), 156e12));
        let t4 = Machine { cc: 75, sm_count: 40, clock_khz: 1_590_000, ..h200.clone() };
        assert!(near(t4.peak_flops(Unit::Half), 65.1e12) && near(t4.peak_flops(Unit::Int8), 130.3e12));
        let v100 = Machine { cc: 70, sm_count: 80, clock_khz: 1_530_000, ..h200 };
        assert!(near(v100.peak_flops(Unit::Half), 125e12) && near(v100.peak_flops(Unit::F64), 7.8e12));
        assert_eq!(v100.peak_flops(Unit::Int8), None);
    }

    #[test]
    fn the_slower_of_two_limits_counts() {
        let h200 = h200();
        let (time, why) =
            h200.least_seconds(Some(Unit::Half), 2.0 * 4096f64.powi(3), 3.0 * 2.0 * 4096f64.powi(2)).expect("known");
        assert!(why == Bottleneck::Compute && (time * 1e6 - 128.4).abs() < 1.0, "{time}");
        let (time, why) = h200.least_seconds(None, 0.0, 4.917e9).expect("known");
        assert!(why == Bottleneck::Memory && (time * 1e3 - 1.0).abs() < 0.01, "{time}");
        assert_eq!(Machine { cc: 123, ..h200 }.least_seconds(Some(Unit::Half), 1.0, 1.0), None);
    }
}
