//! Launches on a GPU: parameters packed into words, tensor maps kept.

use super::plan::{Passed, Plan};
use super::steps::{Chosen, Steps};
use super::table::{Taken, Values};
use crate::bind::bind;
use crate::contract::encode::encode_number;
use crate::contract::{Scratch, TensorMapParam};
use crate::cuda::{Buffer, CudaError, Device, Module, Ready, Shape};
use crate::error::LaunchError;
use crate::stream::StreamRef;
use crate::tensor::Argument;
use std::sync::{Arc, Mutex, PoisonError};
use tilec_core::hardware::SMEM_WITHOUT_OPTIN;

/// Tensor maps of a parameter that are kept: those of as many addresses and sizes.
const KEPT_MAPS: usize = 16;

/// A kernel in the memory of a device.
pub(super) struct Loaded {
    device: Arc<Device>,
    /// As the kernel's steps and their cases.
    steps: Vec<Vec<Ready>>,
    state: Mutex<State>,
}

/// What launches leave for those after them.
struct State {
    /// Memory of the kernel's own tensors, as it was last needed.
    own: Vec<Option<Buffer>>,
    /// What was too small for a later launch.
    outgrown: Vec<Buffer>,
    /// Maps by step, case and parameter.
    maps: Vec<Kept>,
    /// Parameters of the last launch.
    words: Vec<u64>,
}

/// The maps of a parameter.
struct Kept {
    of: (usize, usize, usize),
    maps: Vec<(u64, Vec<Option<i64>>, [u64; 16])>,
    next: usize,
}

impl Loaded {
    pub(super) fn new(device: &Arc<Device>, module: &Module, kernel: &Steps) -> Result<Loaded, LaunchError> {
        let ready = |plan: &Plan| {
            let contract = &plan.contract;
            let function = module.function(&contract.entry)?;
            if contract.dynamic_smem_bytes > SMEM_WITHOUT_OPTIN {
                function.set_max_dynamic_smem(contract.dynamic_smem_bytes)?;
            }
            if contract.has_large_clusters() {
                function.allow_large_clusters()?;
            }
            let shape = Shape {
                grid: [1; 3],
                block: contract.block,
                dynamic_smem: contract.dynamic_smem_bytes,
                programmatic: contract.programmatic,
            };
            let bytes: Vec<usize> = plan.params.iter().map(Passed::bytes).collect();
            Ready::new(device, function, &shape, &bytes)
        };
        let steps = kernel.steps.iter().map(|cases| cases.iter().map(ready).collect::<Result<Vec<_>, CudaError>>());
        let own = kernel.table.own().iter().map(|_| None).collect();
        let state = Mutex::new(State { own, outgrown: Vec::new(), maps: Vec::new(), words: Vec::new() });
        Ok(Loaded { device: Arc::clone(device), steps: steps.collect::<Result<_, _>>()?, state })
    }

    pub(super) fn launch(
        &self,
        kernel: &Steps,
        chosen: &Chosen,
        values: &Values,
        tensors: &[Argument<'_>],
        stream: StreamRef<'_>,
    ) -> Result<(), LaunchError> {
        if let Some(host) = tensors.iter().position(|t| t.address().is_none()) {
            let what = "it lies on the host, which the simulator alone takes";
            return Err(LaunchError::tensor(kernel.table.name(host), what));
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if chosen.iter().any(|(_, grid)| !grid.contains(&0)) {
            for (own, temporary, bytes) in &kernel.temporaries {
                self.room(&mut state, *own, &temporary.name, bytes.eval(&values.ints), false)?;
            }
        }
        for (step, (case, grid)) in chosen.iter().enumerate().filter(|(_, (_, grid))| !grid.contains(&0)) {
            let (plan, ready) = (&kernel.steps[step][*case], &self.steps[step][*case]);
            for (own, scratch, bytes) in &plan.scratch {
                let zero = *scratch == Scratch::Signals;
                self.room(&mut state, *own, kernel.table.own_name(*own), bytes.eval(&values.ints), zero)?;
            }
            self.pack(kernel, (step, *case), ready, values, tensors, &mut state)?;
            ready.launch(stream, *grid, &mut state.words)?;
        }
        Ok(())
    }

    /// Puts the parameters of a launch into the words of the state.
    fn pack(
        &self,
        kernel: &Steps,
        (step, case): (usize, usize),
        ready: &Ready,
        values: &Values,
        tensors: &[Argument<'_>],
        state: &mut State,
    ) -> Result<(), LaunchError> {
        let plan = &kernel.steps[step][case];
        let State { own, maps, words, .. } = state;
        words.clear();
        words.resize(ready.words(), 0);
        let address = |taken: &Taken| match taken {
            Taken::Given(i) => tensors[*i].address().unwrap_or(0),
            Taken::Own(i) => own[*i].as_ref().map_or(0, Buffer::address),
        };
        let int = |slot: usize| values.ints[slot].unwrap_or(0).cast_unsigned();
        for (at, (passed, &start)) in plan.params.iter().zip(ready.starts()).enumerate() {
            match passed {
                Passed::Address(taken) => words[start] = address(taken),
                Passed::Size(slot) | Passed::Stride(slot) => words[start] = int(*slot),
                Passed::Scalar(slot, elem) => words[start] = encode_number(*elem, values.numbers[*slot]),
                Passed::Map(taken, map) => {
                    let encoded = self.map(kernel, plan, map, (step, case, at), address(taken), values, maps)?;
                    words[start..start + encoded.len()].copy_from_slice(&encoded);
                }
            }
        }
        Ok(())
    }

    /// The map of a tensor at an address, encoded by the driver or kept from a launch with the same values.
    #[expect(clippy::too_many_arguments, reason = "what a map follows from")]
    fn map(
        &self,
        kernel: &Steps,
        plan: &Plan,
        map: &TensorMapParam,
        of: (usize, usize, usize),
        address: u64,
        values: &Values,
        maps: &mut Vec<Kept>,
    ) -> Result<[u64; 16], LaunchError> {
        let at = maps.iter().position(|kept| kept.of == of).unwrap_or_else(|| {
            maps.push(Kept { of, maps: Vec::new(), next: 0 });
            maps.len() - 1
        });
        let kept = &mut maps[at];
        if let Some((.., encoded)) = kept.maps.iter().find(|(a, ints, _)| *a == address && *ints == values.ints) {
            return Ok(*encoded);
        }
        let args = plan.args(&kernel.table.args(values));
        let bound = bind(&plan.contract, &args).map_err(LaunchError::Bind)?;
        let unknown = || LaunchError::tensor(&map.tensor, "its map describes no tensor of the contract");
        let own = bound.scratch.iter().map(|(_, plan)| plan);
        let tensor = bound.tensors.iter().chain(own).find(|t| t.name == map.tensor).ok_or_else(unknown)?;
        let described = map.describe(tensor, |name| bound.values.get(name).and_then(|v| v.to_i64()));
        let encoded = self.device.encode(&crate::loaded::tensor_map(&described, address))?;
        let entry = (address, values.ints.clone(), encoded);
        if kept.maps.len() < KEPT_MAPS {
            kept.maps.push(entry);
        } else {
            kept.maps[kept.next] = entry;
            kept.next = (kept.next + 1) % KEPT_MAPS;
        }
        Ok(encoded)
    }

    /// Sees to memory of the kernel's own.
    fn room(
        &self,
        state: &mut State,
        own: usize,
        name: &str,
        bytes: Option<i64>,
        zero: bool,
    ) -> Result<(), LaunchError> {
        let too_large = || LaunchError::tensor(name, "it is too large");
        let bytes = bytes.and_then(|n| usize::try_from(n).ok()).ok_or_else(too_large)?;
        if state.own[own].as_ref().is_some_and(|b| b.bytes() >= bytes) {
            return Ok(());
        }
        let room = self.device.alloc(bytes)?;
        if zero {
            room.fill(0)?;
            // Streams that do not wait for the default stream find the zeros too.
            self.device.synchronize()?;
        }
        // A graph that was captured has the address of what was too small.
        state.outgrown.extend(state.own[own].replace(room));
        Ok(())
    }
}
