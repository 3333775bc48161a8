//! Devices and loaded modules, kept until the process ends: captured graphs hold addresses of code and memory, and
//! nothing tells when a graph is destroyed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tilec::contract::{Contract, LaunchFile};
use tilec::cuda::{CudaError, Device, Module, Ready};
use tilec_launch::bundle::runs_machine_code;

/// A device in the context that every library shares, by its ordinal.
pub(crate) fn get(ordinal: i32) -> Result<Arc<Device>, CudaError> {
    static OPEN: Mutex<BTreeMap<i32, Arc<Device>>> = Mutex::new(BTreeMap::new());
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = open.get(&ordinal) {
        return Ok(Arc::clone(device));
    }
    let device = Arc::new(Device::open(ordinal.max(0).unsigned_abs())?);
    open.insert(ordinal, Arc::clone(&device));
    Ok(device)
}

/// A program on a device.
pub(crate) struct Loaded {
    pub(crate) device: Arc<Device>,
    pub(crate) ordinal: i32,
    /// As the kernels of the launch file.
    ready: Vec<Arc<Ready>>,
    names: Vec<String>,
}

impl Loaded {
    /// Loads the machine code of a target where the device runs it, and PTX otherwise.
    pub(crate) fn new(
        ordinal: i32,
        target: &str,
        (ptx, cubin): (&str, Option<&[u8]>),
        file: &LaunchFile,
    ) -> Result<Loaded, CudaError> {
        let device = get(ordinal)?;
        let cubin = cubin.filter(|_| runs_machine_code(target, device.properties().compute_capability));
        let module: Module = match cubin {
            Some(cubin) => device.load_cubin(cubin)?,
            None => device.load_ptx(ptx)?,
        };
        let ready = file.kernels.iter().map(|contract| Ready::of(&device, &module, contract).map(Arc::new));
        let ready: Vec<Arc<Ready>> = ready.collect::<Result<_, _>>()?;
        // Code that a graph may launch is never unloaded.
        ready.iter().for_each(|one| std::mem::forget(Arc::clone(one)));
        let names = file.kernels.iter().map(|contract| contract.entry.clone()).collect();
        Ok(Loaded { device, ordinal, ready, names })
    }

    /// The entry of a contract.
    pub(crate) fn ready(&self, contract: &Contract) -> Option<&Arc<Ready>> {
        self.names.iter().position(|name| *name == contract.entry).and_then(|i| self.ready.get(i))
    }

    /// Zero-initialised memory that is never freed.
    pub(crate) fn zeros(&self, bytes: u64) -> Result<(u64, u64), CudaError> {
        let too_large = |_| CudaError::Refused { what: "scratch memory beyond the address space".to_owned() };
        let room = self.device.alloc(usize::try_from(bytes.max(1)).map_err(too_large)?)?;
        room.fill(0)?;
        // Streams that do not wait for the default stream find the zeros too.
        self.device.synchronize()?;
        let address = room.address();
        std::mem::forget(room);
        Ok((address, bytes))
    }
}
