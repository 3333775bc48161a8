//! A kernel's contract in the form for launches: names are numbers, expressions are stack code.

use super::table::{AddressSource, Table, flatten};
use crate::bind::MAX_GRID;
use crate::contract::stack_code::Flat;
use crate::contract::{Case, Contract, ParamKind, Scratch, TensorMapParam};
use crate::error::LaunchError;
use crate::tensor::Argument;
use tilec_core::elem::Elem;

/// One kernel of the contract.
pub(super) struct Plan {
    pub(super) contract: Contract,
    /// Its description among the other cases.
    pub(super) name: String,
    /// Conditions of its case, of the contract, and of the grid.
    pub(super) when: Vec<Flat>,
    pub(super) when_texts: Vec<String>,
    pub(super) requires: Vec<Flat>,
    pub(super) grid: [Flat; 3],
    /// Slots of sizes that are at least 1 where there is something to launch.
    pub(super) sizes: Vec<usize>,
    /// Tensors that the launcher passes, with the alignment that this kernel requires.
    pub(super) aligned: Vec<(usize, u64)>,
    pub(super) params: Vec<Passed>,
    /// Scratch memory among the kernel's own tensors, and the bytes that it takes.
    pub(super) scratch: Vec<(usize, Scratch, Flat)>,
}

/// The value passed for a parameter.
pub(super) enum Passed {
    /// The address of a tensor.
    Address(AddressSource),
    /// A map of a tensor.
    Map(AddressSource, TensorMapParam),
    /// A size, as 32 bits.
    Size(usize),
    /// A stride, as 64 bits.
    Stride(usize),
    /// A scalar.
    Scalar(usize, Elem),
}

/// The effect of a launch of a kernel.
pub(super) enum Verdict {
    /// Launch this grid of blocks.
    Launch([u32; 3]),
    /// There is nothing to launch.
    Nothing,
    /// Something does not hold.
    Refused,
}

impl Plan {
    pub(super) fn new(contract: &Contract, case: &Case, table: &Table) -> Result<Plan, LaunchError> {
        let flat = |text: &String| flatten(text, table);
        let list = |texts: &[String]| texts.iter().map(flat).collect::<Result<Vec<_>, _>>();
        let [x, y, z] = &contract.grid;
        let (mut sizes, mut aligned, mut params, mut scratch) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for param in &contract.params {
            let name = &param.name;
            let slot = || table.slot(name).ok_or_else(|| LaunchError::Misfit(format!("nothing is known of `{name}`")));
            let taken = |name: &str| table.taken(name).ok_or_else(|| LaunchError::tensor(name, "it is not passed"));
            params.push(match &param.kind {
                ParamKind::Tensor(tensor) => {
                    let own = taken(name)?;
                    if let AddressSource::Given(i) = own {
                        aligned.push((i, u64::from(tensor.align.max(1))));
                    }
                    if let (AddressSource::Own(i), Some(kind)) = (own, tensor.scratch) {
                        scratch.push((i, kind, flat(&crate::program::bytes(tensor))?));
                    }
                    Passed::Address(own)
                }
                ParamKind::Pointers(_) => {
                    return Err(LaunchError::tensor(
                        name,
                        "an array of addresses, which `Kernel` does not take: `tilec_launch::loaded_kernel::LoadedKernel` does",
                    ));
                }
                ParamKind::TensorMap(map) => Passed::Map(taken(&map.tensor)?, map.clone()),
                ParamKind::Size { .. } => {
                    let slot = slot()?;
                    if !crate::bind::is_zero_variant(contract, name) {
                        sizes.push(slot);
                    }
                    Passed::Size(slot)
                }
                ParamKind::Stride { .. } => Passed::Stride(slot()?),
                ParamKind::Scalar { elem, .. } => Passed::Scalar(slot()?, *elem),
            });
        }
        Ok(Plan {
            contract: contract.clone(),
            name: case.name().to_owned(),
            when: list(&case.when)?,
            when_texts: case.when.clone(),
            requires: list(&contract.requires)?,
            grid: [flat(x)?, flat(y)?, flat(z)?],
            sizes,
            aligned,
            params,
            scratch,
        })
    }

    /// The values that this kernel takes.
    pub(super) fn args(&self, all: &crate::Args) -> crate::Args {
        let takes = |name: &String| self.contract.param(name).is_some_and(|p| p.kind.is_value());
        all.iter().filter(|(name, _)| takes(name)).map(|(name, x)| (name.clone(), *x)).collect()
    }

    /// Whether this is the case for these values and tensors, and what a launch would be.
    pub(super) fn verdict(&self, slots: &[Option<i64>], tensors: &[Argument<'_>]) -> Verdict {
        if !self.when.iter().all(|condition| condition.holds(slots)) {
            return Verdict::Refused;
        }
        // Whatever else the kernel demands: see the launch contract.
        if self.grid.iter().any(|axis| axis.eval(slots) == Some(0)) {
            return Verdict::Nothing;
        }
        if !self.fits(tensors) {
            return Verdict::Refused;
        }
        let mut grid = [0; 3];
        for ((to, flat), most) in grid.iter_mut().zip(&self.grid).zip(MAX_GRID) {
            match flat.eval(slots) {
                Some(n) if (1..=most).contains(&n) => *to = n as u32,
                Some(_) | None => return Verdict::Refused,
            }
        }
        let holds = self.sizes.iter().all(|&slot| slots[slot].is_some_and(|x| x > 0))
            && self.requires.iter().all(|r| r.holds(slots));
        if holds { Verdict::Launch(grid) } else { Verdict::Refused }
    }

    /// Whether the tensors are aligned as this kernel requires.
    pub(super) fn fits(&self, tensors: &[Argument<'_>]) -> bool {
        self.misaligned(tensors).is_none()
    }

    /// A tensor with too small an alignment, and the required alignment in bytes.
    pub(super) fn misaligned(&self, tensors: &[Argument<'_>]) -> Option<(usize, u64)> {
        let fits = |(i, align): &&(usize, u64)| tensors[*i].address().is_none_or(|at| at.is_multiple_of(*align));
        self.aligned.iter().find(|one| !fits(one)).copied()
    }
}
