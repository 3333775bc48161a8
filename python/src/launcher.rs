//! A kernel and what its launches need, without Python: arrays are addresses with shapes by now.

use crate::array::Array;
use crate::compiled::Program;
use crate::devices::Loaded;
use crate::foreign::stream;
use crate::hash::ByWords;
use crate::interface::{Expected, Interface, Slot, in_elements, infer, shape_misfit, stride_misfit};
use crate::plan::{Bound, Plan, Refusal, Rooms, aligned, bound};
use crate::simulated::Simulation;
use crate::streams;
use std::collections::HashMap;
use std::sync::Arc;
use tilec::bind::zeros;
use tilec::contract::Contract;
use tilec::{Args, Number};
use tilec_launch::simulator::max_active_clusters;

/// Launches that are remembered, by shapes and values.
const PLANS: usize = 1024;

/// The arguments of one call, reused.
#[derive(Clone, Default)]
pub(crate) struct Call {
    pub(crate) arrays: Vec<Array>,
    pub(crate) shape: Vec<i64>,
    pub(crate) strides: Vec<i64>,
    pub(crate) addresses: Vec<u64>,
    pub(crate) scalars: Vec<Option<Number>>,
    pub(crate) sizes: Vec<(usize, i64)>,
    pub(crate) stream: Option<u64>,
    key: Vec<u64>,
}

impl Call {
    /// Forgets the call before.
    pub(crate) fn clear(&mut self) {
        self.arrays.clear();
        self.shape.clear();
        self.strides.clear();
        self.addresses.clear();
        self.scalars.clear();
        self.sizes.clear();
        self.stream = None;
        self.key.clear();
    }

    /// All inputs of a plan: element types, devices, alignments, writability, shapes, strides, and values.
    pub(crate) fn fill_key(&mut self) {
        for array in &self.arrays {
            let class = array.address.trailing_zeros().min(8);
            self.key.push(
                u64::from(array.dtype as u8)
                    | u64::from(class) << 8
                    | u64::from(array.readonly) << 15
                    | (array.rank as u64) << 16
                    | u64::from(array.device.cast_unsigned()) << 32,
            );
            self.addresses.push(array.address);
        }
        self.key.extend(self.shape.iter().chain(&self.strides).map(|n| n.cast_unsigned()));
        for scalar in &self.scalars {
            let (kind, bits) = match scalar {
                None => (0, 0),
                Some(Number::Int(x)) => (1, x.cast_unsigned()),
                Some(Number::Large(x)) => (2, *x),
                Some(Number::Float(x)) => (3, x.to_bits()),
            };
            self.key.extend([kind, bits]);
        }
        for (index, value) in &self.sizes {
            self.key.extend([*index as u64, value.cast_unsigned()]);
        }
    }

    /// The device of all arrays; -1 is the host.
    ///
    /// # Errors
    /// They are not on one device.
    pub(crate) fn device(&self, interface: &Interface) -> Result<i32, String> {
        let Some(first) = self.arrays.first() else {
            return Err("a kernel without tensors has no device".to_owned());
        };
        let other = self.arrays.iter().position(|a| a.device != first.device);
        let place = |device: i32| if device < 0 { "the host".to_owned() } else { format!("device {device}") };
        let name = |i: usize| interface.tensors().nth(i).map_or("", |t| t.name.as_str());
        match other {
            None => Ok(first.device),
            Some(i) => Err(format!(
                "`{}` is on {} and `{}` on {}",
                name(0),
                place(first.device),
                name(i),
                place(self.arrays[i].device)
            )),
        }
    }

    /// Shape and strides of each array.
    fn extents(&self) -> Vec<(Vec<i64>, Vec<i64>)> {
        let mut at = 0;
        let one = |array: &Array| {
            let range = at..at + array.rank;
            at = range.end;
            (self.shape[range.clone()].to_vec(), self.strides[range].to_vec())
        };
        self.arrays.iter().map(one).collect()
    }
}

/// A kernel, or a program of several, with the call that is being made.
pub(crate) struct Launcher {
    pub(crate) program: Arc<Program>,
    pub(crate) name: String,
    pub(crate) interface: Interface,
    pub(crate) names: Vec<String>,
    pub(crate) call: Call,
    plans: HashMap<Vec<u64>, Plan, ByWords>,
    /// By device.
    loaded: HashMap<i32, Arc<Loaded>>,
    rooms: Rooms,
    /// The same kernel for sizes that are 0, which needs other code.
    for_zeros: HashMap<Vec<String>, Launcher>,
}

impl Launcher {
    /// The kernel called `name` of a program; the only one where there is no name.
    ///
    /// # Errors
    /// There is none of that name, or several and no name.
    pub(crate) fn new(program: Arc<Program>, name: Option<&str>) -> Result<Launcher, String> {
        let names = program.file.names();
        let name = match (name, program.file.only()) {
            (Some(name), _) if names.contains(&name) => name.to_owned(),
            (None, Some(only)) => only.to_owned(),
            (Some(name), _) => return Err(format!("the file has no kernel `{name}`; it has {}", names.join(", "))),
            (None, None) => {
                let names = names.join(", ");
                return Err(format!("the file has several kernels: kernel=\"NAME\" names one of {names}"));
            }
        };
        let interface = Interface::new(&program.file, &name);
        let names = interface.tensors().map(|t| t.name.clone()).collect();
        Ok(Launcher {
            program,
            name,
            interface,
            names,
            call: Call::default(),
            plans: HashMap::default(),
            loaded: HashMap::new(),
            rooms: Rooms::new(),
            for_zeros: HashMap::new(),
        })
    }

    /// Queues the launches of the call on a stream of a device.
    pub(crate) fn launch(&mut self, device: i32, number: u64) -> Result<(), Refusal> {
        let Launcher { plans, call, rooms, .. } = self;
        if let Some(plan) = plans.get_mut(&call.key) {
            return launch(plan, call, number, rooms);
        }
        let values = self.values()?;
        if let Some(other) = self.for_zeros(&values)? {
            return other.launch(device, number);
        }
        let mut plan = self.plan(device, &values)?;
        launch(&mut plan, &self.call, number, &mut self.rooms)?;
        if self.plans.len() >= PLANS {
            self.plans.clear();
        }
        self.plans.insert(self.call.key.clone(), plan);
        Ok(())
    }

    /// The launches of the call on the simulator; `None` where there is nothing to do.
    pub(crate) fn simulation(&mut self) -> Result<Option<Simulation>, Refusal> {
        let values = self.values()?;
        if let Some(other) = self.for_zeros(&values)? {
            return other.simulation();
        }
        Simulation::new(&self.program, &self.bound(&values)?, &values, &self.names, &self.call.addresses)
    }

    /// Clusters that a device, or the simulator, runs at the same time: of the variant for this call, and of a program of the launch whose
    /// grid depends on a size that the caller chooses. Such a size counts as 1 where it is not given, or is 0.
    pub(crate) fn max_active_clusters(&mut self, device: i32) -> Result<u32, Refusal> {
        let mut values = self.values()?;
        for size in self.program.file.chosen_sizes(&self.name) {
            let value = values.entry(size.to_owned()).or_insert(Number::Int(1));
            if value.to_i64() == Some(0) {
                *value = Number::Int(1);
            }
        }
        if let Some(other) = self.for_zeros(&values)? {
            return other.max_active_clusters(device);
        }
        if device >= 0 {
            self.load(device)?;
        }
        let (of, at) = (self.bound(&values)?, self.program.file.shared_launch(&self.name));
        let shared = of.launches[at];
        if !of.bound.launches[at].has_blocks() {
            return Ok(1);
        }
        if device < 0 {
            return Ok(max_active_clusters(shared));
        }
        let missing = || Refusal::Contract(format!("`{}` is not loaded", shared.entry));
        Ok(self.loaded[&device].ready(shared).ok_or_else(missing)?.max_active_clusters()?)
    }

    /// Compares the call with the contract, and loads the code that it needs on devices; launches nothing.
    pub(crate) fn prepare(&mut self, devices: &[i32]) -> Result<(), Refusal> {
        let values = self.values()?;
        if let Some(other) = self.for_zeros(&values)? {
            return other.prepare(devices);
        }
        self.bound(&values)?;
        for device in devices {
            // A device that does not run this target says so when the kernel is launched there.
            drop(self.load(*device));
        }
        Ok(())
    }

    /// Loads the code on a device.
    fn load(&mut self, device: i32) -> Result<(), Refusal> {
        if !self.loaded.contains_key(&device) {
            let Program { target, ptx, cubin, file, .. } = &*self.program;
            let loaded = Loaded::new(device, target.name(), (ptx, cubin.as_deref()), file)?;
            self.loaded.insert(device, Arc::new(loaded));
        }
        Ok(())
    }

    /// The kernel for sizes that are 0 in this call, with the call, if it needs another one.
    fn for_zeros(&mut self, values: &Args) -> Result<Option<&mut Launcher>, Refusal> {
        let zeros = self.zeros(values);
        if zeros.is_empty() {
            return Ok(None);
        }
        let Some(made) = &self.program.made else {
            let (name, list) = (&self.name, zeros.join(","));
            return Err(Refusal::Contract(format!(
                "`{list}` is 0, which needs code of its own, and a bundle has none: compile `{name}` with --zero {list}"
            )));
        };
        if !self.for_zeros.contains_key(&zeros) {
            let mut options = made.options.clone();
            options.zeros.clone_from(&zeros);
            let program = Program::new(made.source.clone(), options).map_err(|d| Refusal::Program(Box::new(d)))?;
            let launcher = Launcher::new(Arc::new(program), Some(&self.name)).map_err(Refusal::Contract)?;
            self.for_zeros.insert(zeros.clone(), launcher);
        }
        let (call, sizes) = (&self.call, &self.interface.sizes);
        let Some(other) = self.for_zeros.get_mut(&zeros) else { return Ok(None) };
        other.call.clone_from(call);
        // Sizes have numbers of their own there.
        let index = |old: usize| other.interface.sizes.iter().position(|name| *name == sizes[old]);
        other.call.sizes = call.sizes.iter().filter_map(|(old, n)| index(*old).map(|new| (new, *n))).collect();
        Ok(Some(other))
    }

    /// The values of sizes, strides and scalars, of arrays that fit them in type and rank.
    fn values(&self) -> Result<Args, Refusal> {
        let mut values = Args::new();
        for (index, value) in &self.call.sizes {
            values.insert(self.interface.sizes[*index].clone(), Number::Int(*value));
        }
        let extents = self.call.extents();
        for ((tensor, array), (shape, strides)) in self.interface.tensors().zip(&self.call.arrays).zip(&extents) {
            let holds = if tensor.pointers { array.dtype.bytes() == 8 } else { array.dtype.holds(tensor.elem) };
            if !holds {
                let (name, elem) = (&tensor.name, tensor.elem.name());
                let wanted = if tensor.pointers { "addresses (64-bit integers)" } else { elem };
                let found = array.dtype.name();
                return Err(Refusal::Contract(format!("`{name}` must have elements {wanted}; the array has {found}")));
            }
            let (shape, strides) = if tensor.pointers {
                (shape.clone(), strides.clone())
            } else {
                in_elements(tensor.elem, shape, strides)
            };
            if let Some(stride) = strides.iter().find(|s| **s < 0) {
                let name = &tensor.name;
                return Err(Refusal::Contract(format!(
                    "`{name}` has a stride of {stride}, and must have none below zero; {}",
                    array.library.packed()
                )));
            }
            infer(tensor, &shape, &strides, &mut values).map_err(Refusal::Contract)?;
        }
        let scalars = self.interface.slots.iter().filter_map(|slot| match slot {
            Slot::Scalar { name, default, .. } => Some((name, default)),
            Slot::Tensor(_) => None,
        });
        for ((name, default), given) in scalars.zip(&self.call.scalars) {
            if let Some(value) = given.or(*default) {
                values.insert(name.clone(), value);
            }
        }
        // A wrong shape or order breaks preconditions, too: those would name the wrong reason.
        match self.misfit(&values) {
            Some(what) => Err(Refusal::Contract(what)),
            None => Ok(values),
        }
    }

    /// Why an array of the call does not fit the extents and strides of its tensor.
    fn misfit(&self, values: &Args) -> Option<String> {
        let extents = self.call.extents();
        let arrays = || {
            let all = self.interface.tensors().zip(&self.call.arrays).zip(&extents);
            all.filter(|((tensor, _), _)| !tensor.pointers).map(|((tensor, array), (shape, strides))| {
                (tensor, array, Expected::of(tensor, values), in_elements(tensor.elem, shape, strides))
            })
        };
        let sizes = self.call.sizes.iter().map(|(i, n)| (self.interface.sizes[*i].clone(), Number::Int(*n))).collect();
        // Shapes of all arrays first: a transposed array has other strides, and gives others its sizes.
        let shape = arrays().find_map(|(tensor, _, expected, (shape, _))| {
            shape_misfit(tensor, &expected, &shape, &sizes, self.interface.tensors())
        });
        shape.or_else(|| {
            arrays().find_map(|(tensor, array, expected, (shape, strides))| {
                stride_misfit(tensor, array.library, &expected, (&shape, &strides))
            })
        })
    }

    /// The launches for the arrays of the call, which fit in shape.
    fn bound(&self, values: &Args) -> Result<Bound<'_>, Refusal> {
        let misaligned = |c: &Contract| aligned(c, &self.names, &self.call.addresses).err();
        let of = bound(&self.program.file, &self.name, values, misaligned)?;
        for (tensor, array) in self.interface.tensors().zip(&self.call.arrays) {
            if tensor.writes && !tensor.pointers && array.readonly {
                return Err(Refusal::Contract(format!("`{}` is written, and the array is read-only", tensor.name)));
            }
        }
        if of.bound.launches.iter().any(|l| l.has_blocks()) {
            for contract in &of.launches {
                aligned(contract, &self.names, &self.call.addresses).map_err(Refusal::Contract)?;
            }
        }
        Ok(of)
    }

    /// The plan for the call.
    fn plan(&mut self, device: i32, values: &Args) -> Result<Plan, Refusal> {
        self.load(device)?;
        let of = self.bound(values)?;
        Plan::new(&self.program.file, (&self.name, &self.names), &of, &self.loaded[&device])
    }

    /// The sizes that are 0 and need another kernel.
    fn zeros(&self, values: &Args) -> Vec<String> {
        match self.program.file.launches(&self.name, values) {
            Ok(Some(launches)) => zeros(&launches, values),
            _ => Vec::new(),
        }
    }
}

/// Places addresses and queues, after what writes the arrays on streams of their own.
fn launch(plan: &mut Plan, call: &Call, number: u64, rooms: &mut Rooms) -> Result<(), Refusal> {
    for other in call.arrays.iter().filter_map(|array| array.stream).filter(|other| !streams::same(*other, number)) {
        plan.loaded.device.order(stream(number), stream(other))?;
    }
    plan.place(&call.addresses)?;
    plan.launch(number, rooms)
}
