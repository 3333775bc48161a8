//! Launches on a GPU: packed parameters, cached tensor maps.

use super::launch_cache::Known;
use super::packed_params::ParamWords;
use super::plan::{Passed, Plan};
use super::sequence::Steps;
use super::table::{AddressSource, Values};
use crate::bind::bind;
use crate::contract::encode::encode_number;
use crate::contract::{MAP_BYTES, Scratch, TensorMapParam};
use crate::cuda::{Buffer, CudaError, Device, Module, Ready, TensorMap};
use crate::error::LaunchError;
use crate::stream::StreamRef;
use crate::tensor::Argument;
use std::sync::{Arc, Mutex, PoisonError};

/// Words of a tensor map.
const MAP_WORDS: usize = MAP_BYTES as usize / 8;

/// A kernel in the memory of a device.
pub(super) struct Loaded {
    device: Arc<Device>,
    /// As the kernel's steps and their cases.
    steps: Vec<Vec<Ready>>,
    state: Mutex<State>,
}

/// State that launches leave for later ones.
#[derive(Default)]
struct State {
    /// Memory of the kernel's own tensors, of each stream on which it was launched.
    scratch: Vec<Rooms>,
    /// Memory that was too small for a later launch.
    outgrown: Vec<Buffer>,
}

/// Memory of the kernel's own tensors on a stream, as it was last needed.
struct Rooms {
    stream: (usize, usize),
    own: Vec<Option<Buffer>>,
    /// Number of allocations so far.
    made: u64,
}

/// The tensor maps of a kernel for these values, without addresses.
fn maps(kernel: &Steps, plan: &Plan, values: &Values) -> Result<Vec<TensorMap>, LaunchError> {
    if !plan.params.iter().any(|passed| matches!(passed, Passed::Map(..))) {
        return Ok(Vec::new());
    }
    let bound = bind(&plan.contract, &plan.args(&kernel.table.args(values))).map_err(LaunchError::Bind)?;
    let described = plan.params.iter().filter_map(|passed| match passed {
        Passed::Map(_, map) => Some(map),
        Passed::Address(_) | Passed::Size(_) | Passed::Stride(_) | Passed::Scalar(..) => None,
    });
    let one = |map: &TensorMapParam| {
        let unknown = || LaunchError::tensor(&map.tensor, "its map describes no tensor of the contract");
        let own = bound.scratch.iter().map(|(_, plan)| plan);
        let tensor = bound.tensors.iter().chain(own).find(|t| t.name == map.tensor).ok_or_else(unknown)?;
        let described = map.describe(tensor, |name| bound.values.get(name).and_then(|v| v.to_i64()));
        Ok(crate::loaded_kernel::tensor_map(&described, 0))
    };
    described.map(one).collect()
}

/// The identity of a stream; a thread's default stream has the same handle in all threads.
fn identity(stream: StreamRef<'_>) -> (usize, usize) {
    const LEGACY: usize = 1;
    const PER_THREAD: usize = 2;
    thread_local!(static THREAD: u8 = const { 0 });
    match stream.handle as usize {
        LEGACY => (0, 0),
        PER_THREAD => (PER_THREAD, THREAD.with(|at| std::ptr::from_ref(at) as usize)),
        handle => (handle, 0),
    }
}

impl Loaded {
    pub(super) fn new(device: &Arc<Device>, module: &Module, kernel: &Steps) -> Result<Loaded, LaunchError> {
        let ready = |plan: &Plan| Ready::of(device, module, &plan.contract);
        let steps = kernel.steps.iter().map(|cases| cases.iter().map(ready).collect::<Result<Vec<_>, CudaError>>());
        Ok(Loaded { device: Arc::clone(device), steps: steps.collect::<Result<_, _>>()?, state: Mutex::default() })
    }

    /// Clusters of a case that run at the same time.
    pub(super) fn max_active_clusters(&self, step: usize, case: usize) -> Result<u32, CudaError> {
        self.steps[step][case].max_active_clusters()
    }

    pub(super) fn launch(
        &self,
        kernel: &Steps,
        known: &mut Known,
        tensors: &[Argument<'_>],
        stream: StreamRef<'_>,
    ) -> Result<(), LaunchError> {
        if let Some(host) = tensors.iter().position(|t| t.address().is_none()) {
            let what = "it is on the host, which only the simulator supports";
            return Err(LaunchError::tensor(kernel.table.name(host), what));
        }
        if !known.has_blocks() {
            return Ok(());
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let rooms = if kernel.table.own().is_empty() { (0, 0) } else { self.rooms(&mut state, kernel, known, stream)? };
        if known.packed.scratch != Some(rooms) || known.packed.addresses != known.addresses() {
            known.packed.scratch = None;
            self.pack(kernel, known, rooms.0, &state)?;
            known.packed.addresses = known.addresses().to_vec();
            known.packed.scratch = Some(rooms);
        }
        let launches = known.chosen.iter().enumerate().filter(|(_, (_, grid))| !grid.contains(&0));
        for ((step, (case, grid)), words) in launches.zip(&mut known.packed.words) {
            self.steps[step][*case].launch(stream, *grid, &mut words.words)?;
        }
        Ok(())
    }

    /// Sees to memory of the kernel's own on a stream: gives its place in the list, and how often any of it was made.
    fn rooms(
        &self,
        state: &mut State,
        kernel: &Steps,
        known: &Known,
        stream: StreamRef<'_>,
    ) -> Result<(usize, u64), LaunchError> {
        let stream = identity(stream);
        let at = state.scratch.iter().position(|rooms| rooms.stream == stream).unwrap_or_else(|| {
            let own = kernel.table.own().iter().map(|_| None).collect();
            state.scratch.push(Rooms { stream, own, made: 0 });
            state.scratch.len() - 1
        });
        let ints = &known.values.ints;
        for (own, temporary, bytes) in &kernel.temporaries {
            self.room(state, (at, *own), &temporary.name, bytes.eval(ints), false)?;
        }
        for (plan, _) in kernel.chosen(&known.chosen) {
            for (own, scratch, bytes) in &plan.scratch {
                let zero = *scratch == Scratch::Signals;
                self.room(state, (at, *own), kernel.table.own_name(*own), bytes.eval(ints), zero)?;
            }
        }
        Ok((at, state.scratch[at].made))
    }

    /// Puts the parameters of all launches into words.
    fn pack(&self, kernel: &Steps, known: &mut Known, rooms: usize, state: &State) -> Result<(), LaunchError> {
        if known.packed.words.is_empty() {
            known.packed.words = self.prepare(kernel, known)?;
        }
        let own = state.scratch.get(rooms).map_or(&[][..], |rooms| &rooms.own);
        let addresses = known.addresses().to_vec();
        let address = |taken: &AddressSource| match taken {
            AddressSource::Given(i) => addresses[*i],
            AddressSource::Own(i) => own[*i].as_ref().map_or(0, Buffer::address),
        };
        let launches = known.chosen.iter().enumerate().filter(|(_, (_, grid))| !grid.contains(&0));
        for ((step, (case, _)), ParamWords { words, maps }) in launches.zip(&mut known.packed.words) {
            let (plan, ready) = (&kernel.steps[step][*case], &self.steps[step][*case]);
            let mut maps = maps.iter_mut();
            for (passed, &start) in plan.params.iter().zip(ready.starts()) {
                match passed {
                    Passed::Address(taken) => words[start] = address(taken),
                    Passed::Map(taken, _) => {
                        let Some((map, encoded)) = maps.next() else { continue };
                        map.address = address(taken);
                        if *encoded != Some(map.address) {
                            *encoded = None;
                            words[start..start + MAP_WORDS].copy_from_slice(&self.device.encode(map)?);
                            *encoded = Some(map.address);
                        }
                    }
                    Passed::Size(_) | Passed::Stride(_) | Passed::Scalar(..) => {}
                }
            }
        }
        Ok(())
    }

    /// The parameters of all launches but for what follows from addresses.
    fn prepare(&self, kernel: &Steps, known: &Known) -> Result<Vec<ParamWords>, LaunchError> {
        let values = &known.values;
        let int = |slot: usize| values.ints[slot].unwrap_or(0).cast_unsigned();
        let mut all = Vec::new();
        for (step, (case, _)) in known.chosen.iter().enumerate().filter(|(_, (_, grid))| !grid.contains(&0)) {
            let (plan, ready) = (&kernel.steps[step][*case], &self.steps[step][*case]);
            let mut words = vec![0; ready.words()];
            for (passed, &start) in plan.params.iter().zip(ready.starts()) {
                match passed {
                    Passed::Size(slot) | Passed::Stride(slot) => words[start] = int(*slot),
                    Passed::Scalar(slot, elem) => words[start] = encode_number(*elem, values.numbers[*slot]),
                    Passed::Address(_) | Passed::Map(..) => {}
                }
            }
            let maps = maps(kernel, plan, values)?.into_iter().map(|map| (map, None)).collect();
            all.push(ParamWords { words, maps });
        }
        Ok(all)
    }

    /// Sees to memory of the kernel's own.
    fn room(
        &self,
        state: &mut State,
        (rooms, own): (usize, usize),
        name: &str,
        bytes: Option<i64>,
        zero: bool,
    ) -> Result<(), LaunchError> {
        let too_large = || LaunchError::tensor(name, "it is too large");
        let bytes = bytes.and_then(|n| usize::try_from(n).ok()).ok_or_else(too_large)?;
        let rooms = &mut state.scratch[rooms];
        if rooms.own[own].as_ref().is_some_and(|b| b.bytes() >= bytes) {
            return Ok(());
        }
        let room = self.device.alloc(bytes)?;
        if zero {
            room.fill(0)?;
            // Streams that do not wait for the default stream find the zeros too.
            self.device.synchronize()?;
        }
        // A graph that was captured has the address of what was too small.
        rooms.made += 1;
        state.outgrown.extend(rooms.own[own].replace(room));
        Ok(())
    }
}
