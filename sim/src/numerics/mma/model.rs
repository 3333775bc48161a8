//! Which arithmetic a matrix instruction performs on which generation of device.
//!
//! A tensor core forms the products of a group exactly, and aligns them and the accumulator to the largest exponent
//! among them. It cuts each off after a number of fraction bits, adds exactly, and rounds once. Longer instructions do
//! this several times in sequence. The parameters are those on which two independent measurements of silicon agree
//! (Khattak and Mikaitis, *Accurate models of NVIDIA tensor cores*; MMA-Sim, arXiv 2511.10909); the floors of the
//! alignment exponent are from the former. Instructions that a device lacks are routines of ptxas, whose arithmetic is
//! read off the machine code (12.9 and 13.5).
//!
//! | unit | products | fraction bits | result |
//! |---|---|---|---|
//! | Volta f16 m8n8k4 | 4 | 23 | f32 cut off, f16 to nearest even |
//! | Turing f16 m8n8k4, m16n8k8 | 4, 8 | 24 | same |
//! | Ampere, Ada f16, bf16 | 8 | 24 | same |
//! | Ampere, Ada tf32 | 4 | 24 | f32 cut off |
//! | Ada fp8 | 16 | 13 | f32 cut off after 13 fraction bits, f16 to nearest even |
//! | Hopper f16, bf16 | 16 | 25 | f32 cut off, f16 to nearest even |
//! | Hopper tf32 | 8 | 25 | f32 cut off |
//! | Hopper fp8 `wgmma` | 32 | 13 | f32 cut off after 13 fraction bits, f16 to nearest even |
//! | Hopper fp8 `mma.sync` | two f16 instructions from zero, then an ordinary addition of the accumulator | | |
//! | Ampere and later, m8n8k4 | scalar f32 (see [`Plan::Scalar`]) | | |
//!
//! Checked against the hardware outputs published with the first work, 5000 per type and device, without a difference: V100
//! (f16), A100 and A2 (f16, bf16, tf32), two Ada devices (those and fp8), H100 and H200 (f16, bf16, tf32; fp8 `mma.sync` with
//! f16 accumulators, which confirms the routine). `silicon_check` on an H200 (docs/numerics.md) confirms Hopper's rows,
//! `m8n8k4` and fp8 with f32 accumulators among them; three results with f16 accumulators differed at first, for subnormal ones.
//! Its data do not tell floors of -16 and below apart. Not measured by anyone known to us: Turing's floors (taken from Ampere),
//! and the sign of a zero result before Hopper.

use super::dense_forms::{Acc, Elem, Form, Shape};

/// Generations of devices, by tensor core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// sm_70, sm_72
    Volta,
    /// sm_75
    Turing,
    /// sm_80, sm_86, sm_87
    Ampere,
    /// sm_89
    Ada,
    /// sm_90
    Hopper,
}

impl Generation {
    /// The generation of a compute capability such as 86; none for devices that this table does not describe.
    #[must_use]
    pub const fn of_sm(sm: u32) -> Option<Generation> {
        match sm {
            70..=74 => Some(Generation::Volta),
            75..=79 => Some(Generation::Turing),
            80..=88 => Some(Generation::Ampere),
            89 => Some(Generation::Ada),
            90..=99 => Some(Generation::Hopper),
            _ => None,
        }
    }
}

/// The rounding of the exact sum of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// f32, rounded toward zero; too large a sum is an infinity.
    F32,
    /// f32 with 13 fraction bits, rounded toward zero.
    F32Short,
    /// f16, rounded to nearest even.
    F16,
}

/// One fused step: the sum of `products` products and the accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Model {
    /// Products in one step.
    pub products: usize,
    /// Fraction bits kept of each term, relative to the largest exponent.
    pub fraction_bits: i32,
    /// The largest exponent is at least this.
    pub min_exponent: i32,
    /// Rounding of the sum.
    pub output: Output,
}

/// How a device executes an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// On the tensor core: groups of consecutive k, one step after the other.
    Fused(Model),
    /// 8-bit floats widened to f16: one f16 instruction over the k with bit 1 clear, starting from +0, and a second
    /// over the others, starting from its result. The accumulator is added in the accumulator's type, to nearest.
    WidenedFp8(Model),
    /// m8n8k4 where no unit has it. With f32 results: an f32 fma chain over k from +0, then the accumulator added. With f16
    /// results: `(c + fma(a1, b1, a0 b0)) + fma(a3, b3, a2 b2)` in f32, then to nearest f16.
    Scalar,
    /// Integers: exact, then wrapped or clamped to 32 bits.
    Integer,
}

impl Generation {
    /// How Hopper executes a wgmma with A of this type: as `mma.sync` where that is one instruction of the tensor core.
    /// 8-bit floats sum all 32 products at once, to 13 fraction bits (MMA-Sim; not measured here yet).
    #[must_use]
    pub fn wide_plan(a: Elem, d: Acc) -> Option<Plan> {
        let (products, fraction_bits) = match a {
            Elem::F16 | Elem::Bf16 => (16, 25),
            Elem::Tf32 => (8, 25),
            Elem::E4m3 | Elem::E5m2 => (32, 13),
            Elem::S8 | Elem::U8 => return Some(Plan::Integer),
        };
        let (output, min_exponent) = match d {
            Acc::F16 => (Output::F16, -21),
            _ if fraction_bits == 13 => (Output::F32Short, -133),
            _ => (Output::F32, -133),
        };
        Some(Plan::Fused(Model { products, fraction_bits, min_exponent, output }))
    }

    /// How this generation executes a form; `None` if it cannot.
    #[must_use]
    pub fn plan(self, form: &Form) -> Option<Plan> {
        use Generation::{Ada, Ampere, Hopper, Turing, Volta};
        let volta_form = form.shape == Shape::M8N8K4;
        let (products, fraction_bits) = match (form.a, self) {
            (Elem::S8 | Elem::U8, Turing | Ampere | Ada | Hopper) => {
                let ampere_form = form.shape != Shape::M8N8K16;
                return (self >= Ampere || !ampere_form).then_some(Plan::Integer);
            }
            (Elem::F16, Ampere | Ada | Hopper) if volta_form => return Some(Plan::Scalar),
            (Elem::F16, Volta) if volta_form => (4, 23),
            (Elem::F16, Turing) if form.shape != Shape::M16N8K16 => (8, 24),
            (Elem::F16 | Elem::Bf16, Ampere | Ada) => (8, 24),
            (Elem::F16 | Elem::Bf16 | Elem::E4m3 | Elem::E5m2, Hopper) => (16, 25),
            (Elem::Tf32, Ampere | Ada) => (4, 24),
            (Elem::Tf32, Hopper) => (8, 25),
            (Elem::E4m3 | Elem::E5m2, Ada) => (16, 13),
            (Elem::F16 | Elem::Bf16 | Elem::Tf32 | Elem::E4m3 | Elem::E5m2 | Elem::S8 | Elem::U8, _) => return None,
        };
        let fp8 = matches!(form.a, Elem::E4m3 | Elem::E5m2);
        let output = match form.d {
            Acc::F16 => Output::F16,
            Acc::F32 | Acc::S32 if fp8 && self == Ada => Output::F32Short,
            Acc::F32 | Acc::S32 => Output::F32,
        };
        let min_exponent = match (self, output) {
            (Volta, _) => -1024,
            (Hopper, Output::F16) => -21,
            (Hopper, Output::F32 | Output::F32Short) => -133,
            (Turing | Ampere | Ada, Output::F16) if !fp8 => -20,
            (Turing | Ampere | Ada, _) => -132,
        };
        let widened = fp8 && self == Hopper;
        let k = if widened { form.shape.k() / 2 } else { form.shape.k() };
        let model = Model { products: products.min(k), fraction_bits, min_exponent, output };
        Some(if widened { Plan::WidenedFp8(model) } else { Plan::Fused(model) })
    }
}
