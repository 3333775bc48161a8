//! An instruction with its operands, and how its results are compared.

use super::operand::{Elem, Float, Operand};
use tilec_sim::numerics::approx::Function;

/// How results are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Compare {
    /// Equal bits.
    Exact,
    /// A function of f32, with or without `.ftz`.
    Function(Function, bool),
    /// Within so many units in the last place of the simulator's result; NaN is NaN.
    Ulps(Float, f64),
    /// Of f32 within two units, also across the ends of the normal numbers: to infinity, and with `.ftz` to zero.
    Quotient(bool),
    /// Within this error relative to the simulator's result, or half a unit.
    Relative(Float, f64),
    /// Within this error, or half a unit.
    Absolute(Float, f64),
}

/// A matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    /// Rows of A, columns of B, columns of A.
    pub shape: [usize; 3],
    /// Which lane holds what is not published.
    pub opaque: bool,
    /// A is given by rows.
    pub a_rows: bool,
    /// B is given by columns.
    pub b_columns: bool,
    /// Registers of A, B and C.
    pub registers: [usize; 3],
    /// Elements of A, B, C and D.
    pub elems: [Elem; 4],
}

/// An instruction to be tried on two machines.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The instruction, and what tells its variants apart.
    pub name: String,
    /// Name of the kernel.
    pub entry: String,
    /// Registers `%i0`, `%i1`, ... that are loaded.
    pub inputs: Vec<Operand>,
    /// Registers `%o0`, `%o1`, ... that are stored.
    pub outputs: Vec<Operand>,
    /// PTX between loads and stores; it may use `%lane`, `%t0`, `%q0`, the zeros `%zero` and `%zero16`, and the label `SKIP`.
    pub body: String,
    /// How results are compared.
    pub compare: Compare,
    /// The matrix product it is.
    pub product: Option<Product>,
}

impl Probe {
    /// 32-bit words that a warp loads.
    pub fn input_words(&self) -> usize {
        self.inputs.iter().map(|o| 32 * o.width.words()).sum()
    }

    /// 32-bit words that a warp stores.
    pub fn output_words(&self) -> usize {
        self.outputs.iter().map(|o| 32 * o.width.words()).sum()
    }

    /// Results of a warp.
    pub fn results(&self) -> u64 {
        self.outputs.iter().map(|o| 32 * o.per as u64).sum()
    }

    /// The opcode.
    pub fn opcode(&self) -> &str {
        self.name.split('.').next().unwrap_or(&self.name)
    }
}
