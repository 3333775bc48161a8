//! A recognised product: its operands, the scaling of the sums, and its extents.

use crate::contract::number::Args;
use crate::run::bind::TensorPlan;
use serde::{Deserialize, Serialize};

/// A tensor seen as a matrix, or as a batch of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Operand {
    /// Parameter name.
    pub tensor: String,
    /// Which of its dimensions are the rows and the columns.
    pub dims: [usize; 2],
    /// The index of the matrices of a batch; `None`: one matrix is used for all.
    #[serde(default)]
    pub batch: Option<Batch>,
}

/// A dimension of a tensor that counts matrices.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Batch {
    /// The dimension.
    pub dim: usize,
    /// The grid axis that is its index.
    pub axis: String,
}

/// A number times the product of run-time scalars.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Coefficient {
    /// The number.
    pub factor: f64,
    /// The scalars, by parameter name.
    pub scalars: Vec<String>,
}

impl Coefficient {
    pub(super) fn number(factor: f64) -> Coefficient {
        Coefficient { factor, scalars: Vec::new() }
    }

    pub(super) fn times(&self, other: &Coefficient) -> Coefficient {
        let scalars = self.scalars.iter().chain(&other.scalars).cloned().collect();
        Coefficient { factor: self.factor * other.factor, scalars }
    }

    /// Its value with these scalars.
    pub fn value(&self, args: &Args) -> f64 {
        self.scalars.iter().fold(self.factor, |x, name| x * args.get(name).map_or(f64::NAN, |v| v.to_f64()))
    }
}

/// A kernel that is a matrix product.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Product {
    /// M x K.
    pub a: Operand,
    /// K x N.
    pub b: Operand,
    /// M x N, the result.
    pub c: Operand,
    /// Accumulation.
    pub acc: AccElem,
    /// `alpha` and `beta`; `None`: the epilogue is something else.
    pub epilogue: Option<(Coefficient, Option<Coefficient>)>,
}

/// The type of the accumulator.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names of the element types")]
pub enum AccElem {
    F16,
    F32,
    F64,
    I32,
}

/// The extents of a product with tensors of known size.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Extents {
    /// Rows of A and C.
    pub m: u64,
    /// Columns of B and C.
    pub n: u64,
    /// Columns of A, rows of B.
    pub k: u64,
    /// Products.
    pub batches: u64,
}

impl Extents {
    /// Multiply-adds.
    pub fn products(&self) -> f64 {
        self.m as f64 * self.n as f64 * self.k as f64 * self.batches as f64
    }
}

impl Product {
    /// The extents, if the tensors have no further dimensions and fit each other.
    pub fn extents(&self, tensors: &[TensorPlan]) -> Option<Extents> {
        let find = |operand: &Operand| {
            let plan = tensors.iter().find(|t| t.name == operand.tensor)?;
            (plan.modes.len() == 2 + usize::from(operand.batch.is_some())).then_some(plan)
        };
        let extent = |operand: &Operand, i: usize| Some(find(operand)?.extent(operand.dims[i]));
        let batches = |operand: &Operand| match &operand.batch {
            Some(batch) => Some(find(operand)?.extent(batch.dim)),
            None => Some(1),
        };
        let (m, k, n) = (extent(&self.a, 0)?, extent(&self.a, 1)?, extent(&self.b, 1)?);
        let count = batches(&self.c)?;
        let fits = extent(&self.b, 0)? == k && extent(&self.c, 0)? == m && extent(&self.c, 1)? == n;
        let alike = [&self.a, &self.b].into_iter().all(|f| f.batch.is_none() || batches(f) == Some(count));
        (fits && alike).then_some(Extents { m, n, k, batches: count })
    }
}
