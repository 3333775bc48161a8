//! What the driver keeps: the device's memory, modules, and handles.

use crate::attributes;
use crate::code::{Code, Failure};
use crate::settings::Settings;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tilec_core::hardware::SMEM_WITHOUT_OPTIN;
use tilec_sim::{Device, Program};

/// The device of a process, once `cuInit` has requested it.
static STATE: OnceLock<Result<Mutex<State>, Failure>> = OnceLock::new();

/// Makes the device, if it is not there.
pub(crate) fn initialise() -> Result<(), Failure> {
    let made = STATE.get_or_init(|| Ok(Mutex::new(State::new(Settings::read(|name| std::env::var(name).ok())?))));
    made.as_ref().map(|_| ()).map_err(Clone::clone)
}

/// Calls `act` on the device, exclusively.
pub(crate) fn shared<T>(act: impl FnOnce(&mut State) -> Result<T, Failure>) -> Result<T, Failure> {
    let state = STATE.get().ok_or(Code::NotInitialized)?;
    let state = state.as_ref().map_err(Clone::clone)?;
    let mut state: MutexGuard<'_, State> = state.lock().unwrap_or_else(PoisonError::into_inner);
    act(&mut state)
}

/// What a handle is of.
#[derive(Clone, Debug)]
pub(crate) enum Object {
    Context,
    Stream,
    Event,
    Module(Arc<Program>),
    Function(Function),
}

/// A kernel of a module.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) module: u64,
    pub(crate) program: Arc<Program>,
    pub(crate) entry: String,
    /// Dynamic shared memory that launches may request.
    pub(crate) dynamic: u32,
}

/// The device, and what programs have made on it.
#[derive(Debug)]
pub struct State {
    pub(crate) settings: Settings,
    pub(crate) device: Device,
    objects: BTreeMap<u64, Object>,
    next: u64,
    /// The primary context, which stays once it is made.
    primary: Option<u64>,
    /// The error of a kernel, after which the device is of no use.
    pub(crate) failed: Option<Code>,
}

impl State {
    /// A device without memory in use.
    pub fn new(settings: Settings) -> State {
        State { settings, device: Device::new(), objects: BTreeMap::new(), next: 0, primary: None, failed: None }
    }

    /// A handle of something new: no number of one that was returned is used again, so that stale handles are found.
    pub(crate) fn add(&mut self, object: Object) -> u64 {
        self.next += 16;
        self.objects.insert(self.next, object);
        self.next
    }

    /// Releases a handle, if `is` accepts its kind.
    pub(crate) fn remove(&mut self, handle: u64, is: impl Fn(&Object) -> bool) -> Result<(), Failure> {
        if !self.objects.get(&handle).is_some_and(is) {
            return Err(Code::InvalidHandle.into());
        }
        self.objects.remove(&handle);
        Ok(())
    }

    /// The primary context, made at its first use.
    pub(crate) fn primary(&mut self) -> u64 {
        let made = self.primary.unwrap_or_else(|| self.add(Object::Context));
        self.primary = Some(made);
        made
    }

    /// Gives a context back, unless it is the primary one.
    pub(crate) fn destroy_context(&mut self, context: u64) -> Result<(), Failure> {
        if self.primary == Some(context) {
            return Err(Failure::new(Code::InvalidContext, "the primary context is released, not destroyed"));
        }
        self.remove(context, |object| matches!(object, Object::Context))
    }

    /// Whether the handle is a stream. Null, 1 and 2 are those that are always there.
    pub(crate) fn check_stream(&self, handle: u64) -> Result<(), Failure> {
        match (handle, self.objects.get(&handle)) {
            (0..=2, _) | (_, Some(Object::Stream)) => Ok(()),
            _ => Err(Failure::new(Code::InvalidHandle, "the stream is none, or was destroyed")),
        }
    }

    pub(crate) fn check_event(&self, handle: u64) -> Result<(), Failure> {
        match self.objects.get(&handle) {
            Some(Object::Event) => Ok(()),
            _ => Err(Failure::new(Code::InvalidHandle, "the event is none, or was destroyed")),
        }
    }

    pub(crate) fn check_context(&self, handle: u64) -> Result<(), Failure> {
        match self.objects.get(&handle) {
            Some(Object::Context) => Ok(()),
            _ => Err(Code::InvalidContext.into()),
        }
    }

    /// Nothing more is done after a kernel has failed.
    pub(crate) fn alive(&mut self) -> Result<&mut State, Failure> {
        match self.failed {
            Some(code) => Err(code.into()),
            None => Ok(self),
        }
    }

    /// Reads PTX.
    ///
    /// # Errors
    /// The text is no PTX that the simulator knows, or of a target that the device does not run.
    pub fn load(&mut self, text: &str) -> Result<u64, Failure> {
        let program = Program::parse(text).map_err(|error| Failure::new(Code::InvalidPtx, error.to_string()))?;
        let target = self.settings.target;
        let name = program.target().split(',').next().unwrap_or_default().trim().to_owned();
        let own = name.ends_with(|c: char| c.is_ascii_alphabetic());
        let needed: Option<u32> =
            name.strip_prefix("sm_").and_then(|n| n.trim_end_matches(char::is_alphabetic).parse().ok());
        let runs = needed.is_some_and(|cc| if own { name == target.name() } else { cc <= target.cc() });
        if !runs {
            let message = format!("PTX for {name} does not run on this device, {} (TILEC_SIM_TARGET)", target.name());
            return Err(Failure::new(Code::NoBinary, message));
        }
        Ok(self.add(Object::Module(Arc::new(program))))
    }

    /// Gives a module back, and its functions.
    ///
    /// # Errors
    /// There is no such module.
    pub fn unload(&mut self, module: u64) -> Result<(), Failure> {
        self.remove(module, |object| matches!(object, Object::Module(_)))?;
        self.objects.retain(|_, object| !matches!(object, Object::Function(f) if f.module == module));
        Ok(())
    }

    /// The kernel of this name.
    ///
    /// # Errors
    /// There is no such module, or no such kernel in it.
    pub fn function(&mut self, module: u64, name: &str) -> Result<u64, Failure> {
        let Some(Object::Module(program)) = self.objects.get(&module) else {
            return Err(Failure::new(Code::InvalidHandle, "the module is none, or was unloaded"));
        };
        if !program.entries().any(|entry| entry == name) {
            return Err(Failure::new(Code::NotFound, format!("the module has no kernel `{name}`")));
        }
        // What needs no permission is both kinds of shared memory together.
        let fixed = program.static_shared(name).unwrap_or(0);
        let dynamic = SMEM_WITHOUT_OPTIN.saturating_sub(u32::try_from(fixed).unwrap_or(u32::MAX));
        let function = Function { module, program: Arc::clone(program), entry: name.to_owned(), dynamic };
        Ok(self.add(Object::Function(function)))
    }

    pub(crate) fn function_of(&self, handle: u64) -> Result<&Function, Failure> {
        match self.objects.get(&handle) {
            Some(Object::Function(function)) => Ok(function),
            _ => Err(Failure::new(Code::InvalidHandle, "the function is none, or its module was unloaded")),
        }
    }

    /// Sets how much dynamic shared memory launches of a function may request.
    pub(crate) fn set_dynamic(&mut self, handle: u64, bytes: i32) -> Result<(), Failure> {
        let most = self.settings.target.smem_per_block();
        let Some(Object::Function(function)) = self.objects.get_mut(&handle) else {
            return Err(Failure::new(Code::InvalidHandle, "the function is none, or its module was unloaded"));
        };
        let fixed = function.program.static_shared(&function.entry).unwrap_or(0);
        match u32::try_from(bytes) {
            Ok(bytes) if u64::from(bytes) + fixed <= most => {
                function.dynamic = bytes;
                Ok(())
            }
            _ => Err(Failure::new(
                Code::InvalidValue,
                format!("{bytes} bytes of dynamic shared memory beside {fixed}: a block of this device has {most}"),
            )),
        }
    }

    /// Allocates memory, which nobody has written.
    ///
    /// # Errors
    /// No bytes, or more than the device has.
    pub fn alloc(&mut self, bytes: u64) -> Result<u64, Failure> {
        if bytes == 0 {
            return Err(Code::InvalidValue.into());
        }
        self.device.alloc(bytes).map_err(|report| Failure::new(Code::OutOfMemory, report.to_string()))
    }

    /// Gives memory back. Null is nothing to give back.
    ///
    /// # Errors
    /// No memory begins there.
    pub fn free(&mut self, address: u64) -> Result<(), Failure> {
        if address == 0 {
            return Ok(());
        }
        self.device.free(address).map_err(outside)
    }

    /// Copies to the device.
    ///
    /// # Errors
    /// The bytes are not in one allocation.
    pub fn upload(&mut self, address: u64, data: &[u8]) -> Result<(), Failure> {
        if data.is_empty() { Ok(()) } else { self.device.upload(address, data).map_err(outside) }
    }

    /// Copies from the device. Bytes that nobody wrote are zero.
    ///
    /// # Errors
    /// The bytes are not in one allocation.
    pub fn download(&self, address: u64, bytes: usize) -> Result<Vec<u8>, Failure> {
        if bytes == 0 { Ok(Vec::new()) } else { self.device.download(address, bytes).map_err(outside) }
    }

    /// Copies on the device. Unwritten bytes stay unwritten.
    pub(crate) fn copy(&mut self, to: u64, from: u64, bytes: usize) -> Result<(), Failure> {
        if bytes == 0 { Ok(()) } else { self.device.copy(to, from, bytes).map_err(outside) }
    }

    /// Fills memory with `count` copies of a pattern.
    pub(crate) fn fill(&mut self, address: u64, pattern: &[u8], count: usize) -> Result<(), Failure> {
        let bytes = pattern.len().checked_mul(count).filter(|n| *n as u64 <= attributes::MEMORY);
        if bytes.is_none() || !address.is_multiple_of(pattern.len() as u64) {
            return Err(Code::InvalidValue.into());
        }
        self.upload(address, &pattern.repeat(count))
    }
}

/// A copy that leaves what was allocated: the driver calls that an invalid value.
fn outside(report: Box<tilec_sim::Report>) -> Failure {
    Failure::new(Code::InvalidValue, report.message)
}
