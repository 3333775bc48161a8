//! A launch planned for arrays of one shape: only the addresses remain to be set.

use crate::devices::Loaded;
use crate::foreign::stream;
use crate::interface::program;
use std::collections::HashMap;
use std::sync::Arc;
use tilec::bind::TensorPlan;
use tilec::contract::{Contract, LaunchFile, ParamKind};
use tilec::cuda::{CudaError, LaunchArg, Ready, TensorMap};
use tilec::dispatch::pick;
use tilec::expr;
use tilec::loaded_kernel::launch_args;
use tilec::overlap::may_overlap;
use tilec::program::{BoundProgram, bind_program, decided, may_alias};
use tilec::{Args, Number};

/// Bytes of an address.
const ADDRESS_BYTES: u64 = 8;

/// Why there is no launch.
pub(crate) enum Refusal {
    /// The arguments break the contract.
    Contract(String),
    /// The driver refused.
    Driver(String),
    /// The program is refused with a size that is 0.
    Program(Box<tilec::Diagnostics>),
    /// The simulator found something wrong.
    Simulation(String),
}

impl Refusal {
    /// What is said of it.
    pub(crate) fn text(&self) -> String {
        match self {
            Refusal::Contract(text) | Refusal::Driver(text) | Refusal::Simulation(text) => text.clone(),
            Refusal::Program(diagnostics) => diagnostics.to_string(),
        }
    }
}

impl From<CudaError> for Refusal {
    fn from(error: CudaError) -> Refusal {
        Refusal::Driver(error.to_string())
    }
}

/// The launches of a name, with their arguments.
pub(crate) struct Bound<'f> {
    pub(crate) launches: Vec<&'f Contract>,
    pub(crate) bound: BoundProgram,
}

/// Computes what is launched: `misaligned` says which array is not aligned as a kernel requires.
///
/// # Errors
/// All that is wrong with the values.
pub(crate) fn bound<'f>(
    file: &'f LaunchFile,
    name: &str,
    args: &Args,
    misaligned: impl Fn(&Contract) -> Option<String>,
) -> Result<Bound<'f>, Refusal> {
    let lines = |errors: Vec<tilec::bind::BindError>| {
        Refusal::Contract(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    };
    let launches: Vec<&Contract> = match file.dispatch.iter().find(|d| d.kernel == name) {
        Some(dispatch) => {
            let picked = pick(dispatch, &file.kernels, args, misaligned);
            vec![picked.map_err(|no_case| Refusal::Contract(no_case.to_string()))?]
        }
        None => file
            .launches(name, args)
            .map_err(lines)?
            .ok_or_else(|| Refusal::Contract(format!("there is no kernel `{name}`")))?,
    };
    let bound = bind_program(&launches, args).map_err(lines)?;
    Ok(Bound { launches, bound })
}

/// One launch of a plan.
struct Prepared {
    ready: Arc<Ready>,
    grid: [u32; 3],
    /// The parameters, each from a word of its own on.
    words: Vec<u64>,
    /// Words that are addresses: of which place.
    addresses: Vec<(usize, usize)>,
    maps: Vec<(usize, usize, TensorMap)>,
}

/// Memory for data that launches, or the blocks of one launch, exchange.
struct Room {
    name: String,
    bytes: u64,
}

/// Two tensors that must not overlap.
struct DisjointPair {
    over: usize,
    under: usize,
    /// They may be the same one.
    same: bool,
}

/// A launch for arrays of one shape.
pub(crate) struct Plan {
    launches: Vec<Prepared>,
    /// Addresses of the tensors that are given, and then of rooms.
    places: Vec<u64>,
    given: usize,
    tensors: Vec<TensorPlan>,
    names: Vec<String>,
    apart: Vec<DisjointPair>,
    rooms: Vec<Room>,
    room_stream: Option<u64>,
    pub(crate) loaded: Arc<Loaded>,
}

/// Scratch memory by device, stream and name: addresses and bytes. It is never freed, because captured graphs hold its
/// address.
pub(crate) type Rooms = HashMap<(i32, u64, String), Vec<(u64, u64)>>;

impl Plan {
    /// A plan of launches on a device, of tensors with these names.
    pub(crate) fn new(
        file: &LaunchFile,
        (name, names): (&str, &[String]),
        of: &Bound<'_>,
        loaded: &Arc<Loaded>,
    ) -> Result<Plan, Refusal> {
        let mut rooms: Vec<Room> = Vec::new();
        let value = |name: &str| of.bound.values.get(name).and_then(|v: &Number| v.to_i64());
        for temporary in program(file, name).map_or(&[][..], |p| &p.temporaries) {
            let bytes = expr::integer(&temporary.bytes, &value).map_err(|e| Refusal::Contract(e.to_string()))?;
            rooms.push(Room { name: temporary.name.clone(), bytes: bytes.max(1).unsigned_abs() });
        }
        let own = |entry: &str, name: &str| format!("{entry}.{name}");
        for (contract, launch) in of.launches.iter().zip(&of.bound.launches) {
            for (_, plan) in &launch.scratch {
                rooms.push(Room { name: own(&contract.entry, &plan.name), bytes: plan.bytes().max(1) });
            }
        }
        let place = |entry: &str, name: &str| {
            let given = names.iter().position(|n| n == name);
            let scratch = own(entry, name);
            given.or_else(|| rooms.iter().position(|r| r.name == name || r.name == scratch).map(|i| names.len() + i))
        };
        let mut launches = Vec::new();
        for (contract, launch) in of.launches.iter().zip(&of.bound.launches).filter(|(_, launch)| launch.has_blocks()) {
            let missing = |what: &str| Refusal::Contract(format!("`{}` has no tensor `{what}`", contract.entry));
            let ready = loaded.ready(contract).ok_or_else(|| missing(&contract.entry))?;
            let (mut words, mut addresses, mut maps) = (vec![0; ready.words()], Vec::new(), Vec::new());
            let args = launch_args(contract, launch, |_| 0);
            for ((param, arg), &at) in contract.params.iter().zip(&args).zip(ready.starts()) {
                let of_tensor = |name: &str| place(&contract.entry, name).ok_or_else(|| missing(name));
                match (&param.kind, arg) {
                    (ParamKind::TensorMap(map), LaunchArg::TensorMap(described)) => {
                        maps.push((at, of_tensor(&map.tensor)?, *described));
                    }
                    (_, LaunchArg::Ptr(_)) => addresses.push((at, of_tensor(&param.name)?)),
                    _ => words[at] = word(arg),
                }
            }
            let prepared = Prepared { ready: Arc::clone(ready), grid: launch.grid, words, addresses, maps };
            launches.push(prepared);
        }
        let plans: Vec<&TensorPlan> = names.iter().filter_map(|name| of.bound.tensor(name)).collect();
        let places = vec![0; names.len() + rooms.len()];
        Ok(Plan {
            launches,
            places,
            given: names.len(),
            tensors: plans.iter().map(|plan| (*plan).clone()).collect(),
            names: names.to_vec(),
            apart: disjoint_pairs(&of.launches, &plans),
            rooms,
            room_stream: None,
            loaded: Arc::clone(loaded),
        })
    }

    /// Writes the addresses of the arrays into the parameters, unless they are those of the last call.
    pub(crate) fn place(&mut self, addresses: &[u64]) -> Result<(), Refusal> {
        if self.places[..self.given] == *addresses {
            return Ok(());
        }
        for pair in &self.apart {
            let (over, under) = (addresses[pair.over], addresses[pair.under]);
            let (one, other) = (self.tensors[pair.over].place(over), self.tensors[pair.under].place(under));
            if may_overlap(&one, &other) && !(pair.same && over == under) {
                let (over, under) = (&self.names[pair.over], &self.names[pair.under]);
                return Err(Refusal::Contract(format!(
                    "`{over}` is written, and shares memory with `{under}`, which the contract does not allow here"
                )));
            }
        }
        for (i, address) in addresses.iter().enumerate() {
            self.set(i, *address)?;
        }
        Ok(())
    }

    fn set(&mut self, place: usize, address: u64) -> Result<(), Refusal> {
        if self.places[place] == address {
            return Ok(());
        }
        for launch in &mut self.launches {
            for (word, _) in launch.addresses.iter().filter(|(_, at)| *at == place) {
                launch.words[*word] = address;
            }
            for (word, _, map) in launch.maps.iter_mut().filter(|(_, at, _)| *at == place) {
                map.address = address;
                let encoded = self.loaded.device.encode(map)?;
                launch.words[*word..*word + encoded.len()].copy_from_slice(&encoded);
            }
        }
        self.places[place] = address;
        Ok(())
    }

    /// Queues the launches on a stream.
    pub(crate) fn launch(&mut self, number: u64, rooms: &mut Rooms) -> Result<(), Refusal> {
        if !self.rooms.is_empty() && self.room_stream != Some(number) {
            for i in 0..self.rooms.len() {
                let address = room(&self.loaded, rooms, number, &self.rooms[i])?;
                self.set(self.given + i, address)?;
            }
            self.room_stream = Some(number);
        }
        for launch in &mut self.launches {
            launch.ready.launch(stream(number), launch.grid, &mut launch.words)?;
        }
        Ok(())
    }
}

/// Room of a size, made where there is none that is as large.
fn room(loaded: &Loaded, rooms: &mut Rooms, number: u64, room: &Room) -> Result<u64, Refusal> {
    let all = rooms.entry((loaded.ordinal, number, room.name.clone())).or_default();
    if let Some((known, _)) = all.iter().find(|(_, bytes)| *bytes >= room.bytes) {
        return Ok(*known);
    }
    if loaded.device.is_capturing(stream(number)) {
        let what = "this launch needs scratch memory, and none is made while a graph is captured: call it once on the stream before the capture";
        return Err(Refusal::Contract(what.to_owned()));
    }
    let made = loaded.zeros(room.bytes)?;
    all.push(made);
    Ok(made.0)
}

/// The pairs of tensors that must not share memory.
fn disjoint_pairs(launches: &[&Contract], plans: &[&TensorPlan]) -> Vec<DisjointPair> {
    let mut pairs = Vec::new();
    for (i, over) in plans.iter().enumerate().filter(|(_, plan)| plan.access.writes()) {
        let allowed = may_alias(&decided(launches), &over.name);
        for (j, under) in plans.iter().enumerate().filter(|(j, _)| *j != i) {
            if under.access.writes() && j < i {
                continue;
            }
            let same = allowed.contains(&under.name) && over.same_layout(under);
            pairs.push(DisjointPair { over: i, under: j, same });
        }
    }
    pairs
}

/// A number where the driver finds it.
fn word(arg: &LaunchArg) -> u64 {
    match *arg {
        LaunchArg::Ptr(x) | LaunchArg::U64(x) => x,
        LaunchArg::I64(x) => x.cast_unsigned(),
        LaunchArg::F64(x) => x.to_bits(),
        LaunchArg::U32(x) => x.into(),
        LaunchArg::I32(x) => x.cast_unsigned().into(),
        LaunchArg::F32(x) => x.to_bits().into(),
        LaunchArg::U16(x) | LaunchArg::F16(x) | LaunchArg::Bf16(x) => x.into(),
        LaunchArg::U8(x) => x.into(),
        LaunchArg::I8(x) => x.cast_unsigned().into(),
        LaunchArg::TensorMap(_) => 0,
    }
}

/// Whether arrays at these addresses are aligned as a kernel requires.
pub(crate) fn aligned(contract: &Contract, names: &[String], addresses: &[u64]) -> Result<(), String> {
    for param in &contract.params {
        let (align, element) = match &param.kind {
            ParamKind::Tensor(tensor) => (u64::from(tensor.align.max(1)), tensor.elem.bytes_of(1)),
            ParamKind::Pointers(_) => (ADDRESS_BYTES, ADDRESS_BYTES),
            ParamKind::TensorMap(_) | ParamKind::Size { .. } | ParamKind::Stride { .. } | ParamKind::Scalar { .. } => {
                continue;
            }
        };
        let address = names.iter().position(|n| *n == param.name).map_or(0, |i| addresses[i]);
        if !address.is_multiple_of(align) {
            let way_out = match align <= element {
                true => "that is the size of an element: copy the array",
                false => {
                    "copy the array, or compile with variants=[{\"ALIGN\": 8}, {\"ALIGN\": 1}] if the program has such a parameter"
                }
            };
            return Err(format!("`{}` must begin at a multiple of {align} bytes; {way_out}", param.name));
        }
    }
    Ok(())
}
