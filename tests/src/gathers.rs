//! Programs whose row indices are data, compared with plain loops.

use crate::attention::integer;
use crate::problem::Tensor;
use std::collections::BTreeMap;
use tilec_ir::kernel::ConstValue;

/// Programs with rows that integers of a vector name. A number that names no row reads as zeros, and nothing is stored to it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Gathers {
    /// `Y = W[tokens, ..]`.
    Embedding,
    /// `dW[tokens, ..] += dY`.
    EmbeddingBackward,
    /// `C = X[perm, ..] * W`.
    Product,
    /// `Counts[x]` is how often `X` has `x`.
    Histogram,
    /// `Y[i]` is the sum of `X` from `offsets[i]` to in front of `offsets[i + 1]`; `next` ends after the last row, with one more for each block.
    WorkQueue,
}

impl Gathers {
    /// The one called `name`.
    pub fn from_name(name: &str) -> Option<Gathers> {
        match name {
            "embedding" => Some(Gathers::Embedding),
            "embedding_backward" => Some(Gathers::EmbeddingBackward),
            "histogram" => Some(Gathers::Histogram),
            "work_queue" => Some(Gathers::WorkQueue),
            "gemm_gathered" => Some(Gathers::Product),
            _ => None,
        }
    }

    /// Whether the output is written without being read.
    pub fn overwrites(self) -> bool {
        self != Gathers::EmbeddingBackward
    }

    /// Puts what the program computes into `after`.
    ///
    /// # Errors
    /// A tensor is missing.
    pub fn apply(
        self,
        before: &[Tensor],
        after: &mut [Tensor],
        consts: &BTreeMap<String, ConstValue>,
    ) -> Result<(), String> {
        let [from, numbers, to] = match self {
            Gathers::Embedding => ["W", "tokens", "Y"],
            Gathers::EmbeddingBackward => ["dY", "tokens", "dW"],
            Gathers::Product => ["X", "perm", "C"],
            Gathers::Histogram => return histogram(before, after),
            Gathers::WorkQueue => return work_queue(before, after, consts),
        };
        let find = |name: &str| {
            before.iter().position(|t| t.name == name).ok_or_else(|| format!("the reference needs a tensor {name}"))
        };
        let (from, numbers, to) = (&before[find(from)?], &before[find(numbers)?], find(to)?);
        let weights = if self == Gathers::Product { Some(&before[find("W")?]) } else { None };
        for (i, at) in (0..).zip(numbers.offsets(0)) {
            let number = numbers.data[at as usize] as i64;
            for j in 0..after[to].extent(1) {
                let own = |t: &Tensor, j: i64| {
                    if (0..t.extent(0)).contains(&number) { t.data[t.at(number, j)] } else { 0.0 }
                };
                match (self, weights) {
                    (Gathers::EmbeddingBackward, _) => {
                        if (0..after[to].extent(0)).contains(&number) {
                            let place = after[to].at(number, j);
                            after[to].data[place] += from.data[from.at(i, j)];
                        }
                    }
                    (_, None) => {
                        let place = after[to].at(i, j);
                        after[to].data[place] = own(from, j);
                    }
                    (_, Some(w)) => {
                        let place = after[to].at(i, j);
                        after[to].data[place] = (0..from.extent(1)).map(|k| own(from, k) * w.data[w.at(k, j)]).sum();
                    }
                }
            }
        }
        Ok(())
    }
}

fn histogram(before: &[Tensor], after: &mut [Tensor]) -> Result<(), String> {
    let find = |name: &str| {
        before.iter().position(|t| t.name == name).ok_or_else(|| format!("the reference needs a tensor {name}"))
    };
    let (x, counts) = (&before[find("X")?], find("Counts")?);
    let numbers: Vec<f64> = x.offsets(0).into_iter().map(|at| x.data[at as usize]).collect();
    let places: Vec<usize> = after[counts].offsets(0).into_iter().map(|at| at as usize).collect();
    for (value, place) in places.into_iter().enumerate() {
        after[counts].data[place] = numbers.iter().filter(|&&x| x == value as f64).count() as f64;
    }
    Ok(())
}

fn work_queue(before: &[Tensor], after: &mut [Tensor], consts: &BTreeMap<String, ConstValue>) -> Result<(), String> {
    let find = |name: &str| {
        before.iter().position(|t| t.name == name).ok_or_else(|| format!("the reference needs a tensor {name}"))
    };
    let (x, offsets, y, next) = (&before[find("X")?], &before[find("offsets")?], find("Y")?, find("next")?);
    let numbers: Vec<f64> = x.offsets(0).into_iter().map(|at| x.data[at as usize]).collect();
    let starts: Vec<usize> = offsets.offsets(0).into_iter().map(|at| offsets.data[at as usize] as usize).collect();
    let places: Vec<usize> = after[y].offsets(0).into_iter().map(|at| at as usize).collect();
    for (ends, &place) in starts.windows(2).zip(&places) {
        after[y].data[place] = numbers[ends[0]..ends[1]].iter().sum();
    }
    let counter = after[next].offsets(0)[0] as usize;
    after[next].data[counter] = (places.len() + integer(consts, "P")) as f64;
    Ok(())
}
