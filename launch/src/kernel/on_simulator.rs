//! Launches on the simulator, with tensors of the host.

use super::sequence::{Chosen, Steps};
use super::table::Values;
use crate::contract::Contract;
use crate::error::LaunchError;
use crate::program::bind_program;
use crate::simulator::{FUEL, Memory, Watch, generation, parameters};
use crate::tensor::{self, Argument};
use std::sync::Arc;
use tilec_sim::{Generation, Landing, Launch, Options, Order, Program, Report};

/// A kernel for the simulator.
pub(super) struct Loaded {
    program: Arc<Program>,
    generation: Generation,
}

/// Nobody watches, and nothing stops early.
struct Unwatched;

impl Watch for Unwatched {
    fn begin(&mut self, _what: String, _total: u64) {}

    fn more_of(&mut self, _n: usize) -> bool {
        true
    }
}

impl Loaded {
    pub(super) fn new(program: &Arc<Program>, target: &str) -> Result<Loaded, LaunchError> {
        let unknown = || LaunchError::Simulator(format!("the simulator knows no device of the target `{target}`"));
        Ok(Loaded { program: Arc::clone(program), generation: generation(target).ok_or_else(unknown)? })
    }

    pub(super) fn launch(
        &self,
        kernel: &Steps,
        chosen: &Chosen,
        values: &Values,
        tensors: &mut [Argument<'_>],
    ) -> Result<(), LaunchError> {
        let contracts: Vec<&Contract> = kernel.chosen(chosen).map(|(plan, _)| &plan.contract).collect();
        if contracts.is_empty() {
            return Ok(());
        }
        let known = kernel.table.args(values);
        let takes = |name: &String| contracts.iter().any(|c| c.param(name).is_some_and(|p| p.kind.is_value()));
        let args = known.iter().filter(|(name, _)| takes(name)).map(|(name, x)| (name.clone(), *x)).collect();
        let bound = bind_program(&contracts, &args).map_err(LaunchError::Bind)?;
        let n = tensors.len();
        let place = |name: &str| (0..n).find(|i| kernel.table.name(*i) == name);
        let mut before = Vec::new();
        for plan in &bound.tensors {
            let bytes = usize::try_from(plan.bytes()).unwrap_or(usize::MAX);
            let held = match place(&plan.name).map(|i| &tensors[i].memory) {
                None => vec![0; bytes],
                Some(tensor::Memory::Host(memory)) => memory.bytes(),
                Some(tensor::Memory::HostMut(memory)) => memory.bytes(),
                Some(tensor::Memory::Device(_)) => {
                    return Err(LaunchError::tensor(&plan.name, "the simulator takes only slices of the host"));
                }
            };
            before.push(held.get(..bytes).map(<[u8]>::to_vec).unwrap_or_else(|| held.clone()));
        }
        let failed = |report: Box<Report>| LaunchError::Simulator(report.to_string());
        let none = crate::program::Aliases::new();
        let mut memory = Memory::new(&contracts, &bound, &before, &none, 1, &mut Unwatched).map_err(failed)?;
        for (contract, own) in contracts.iter().zip(&bound.launches).filter(|(_, own)| own.has_blocks()) {
            memory.permit(contract, &bound.tensors).map_err(failed)?;
            let scratch = memory.scratch(&own.scratch).map_err(failed)?;
            let launch = Launch {
                entry: contract.entry.clone(),
                grid: own.grid,
                block: contract.block,
                dynamic_smem: contract.dynamic_smem_bytes,
                params: parameters(contract, &bound, &memory, &scratch),
            };
            memory.device.run(&self.program, &launch, &self.options(contract)).map_err(failed)?;
            if let Some(message) = memory.left_up(&own.scratch, &scratch) {
                return Err(LaunchError::Simulator(message));
            }
        }
        let after = memory.finish(&bound.tensors).map_err(failed)?;
        for (plan, after) in bound.tensors.iter().zip(after).filter(|(plan, _)| plan.access.writes()) {
            let tensor = place(&plan.name).map(|i| &mut tensors[i].memory);
            if let Some(tensor::Memory::HostMut(memory)) = tensor {
                let mut all = memory.bytes();
                all.iter_mut().zip(after).for_each(|(to, from)| *to = from);
                memory.set(&all);
            }
        }
        Ok(())
    }

    fn options(&self, contract: &Contract) -> Options {
        Options {
            seed: 0,
            order: Order::Forward,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            fuel: FUEL,
            generation: Some(self.generation),
            landing: Landing::Early,
            resident: None,
            programmatic: contract.programmatic,
            cluster: (contract.cluster != [1, 1, 1]).then_some(contract.cluster),
            allow: Vec::new(),
            progress: None,
        }
    }
}
