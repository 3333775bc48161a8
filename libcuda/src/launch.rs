//! Launches: what the driver checks before, and the run on the simulator.

use crate::code::{Code, Failure};
use crate::state::State;
use tilec_core::hardware::{MAX_BLOCK, MAX_GRID};
use tilec_ir::target::MAX_THREADS;
use tilec_sim::occupancy::max_active_clusters;
use tilec_sim::{Launch, Options};

/// Warp instructions that a block may execute: minutes of one core, and far more than a block of a real kernel needs.
const FUEL: u64 = 1 << 30;

/// A launch as the driver is requested it.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Handle of the function.
    pub function: u64,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic: u32,
    /// Blocks of a cluster, if the launch has clusters.
    pub cluster: Option<[u32; 3]>,
    /// The launch may begin before those in front of it have ended (programmatic stream serialization).
    pub programmatic: bool,
    /// The parameters in order, each as its bytes.
    pub params: Vec<Vec<u8>>,
}

impl State {
    /// Clusters of a launch that the device runs at the same time; a block without a cluster is a cluster of one. 0: a block does not fit.
    ///
    /// # Errors
    /// There is no such function, or the device has no clusters.
    pub fn max_active_clusters(&mut self, request: &Request) -> Result<u32, Failure> {
        let target = self.settings.target;
        let function = self.alive()?.function_of(request.function)?;
        if request.cluster.is_some() && !target.has_clusters() {
            let message = format!("`{}`: {} has no clusters", function.entry, target.name());
            return Err(Failure::new(Code::InvalidValue, message));
        }
        let threads: u64 = request.block.iter().map(|n| u64::from(*n)).product();
        let fits = (1..=u64::from(MAX_THREADS)).contains(&threads) && request.dynamic <= function.dynamic;
        Ok(if fits { max_active_clusters(request.cluster.unwrap_or([1; 3])) } else { 0 })
    }

    /// Runs a kernel to its end.
    ///
    /// # Errors
    /// The launch does not fit the kernel or the device, or the simulator has found an error in the kernel.
    pub fn launch(&mut self, request: &Request) -> Result<(), Failure> {
        let target = self.settings.target;
        let function = self.alive()?.function_of(request.function)?.clone();
        let wrong = |message: String| Err(Failure::new(Code::InvalidValue, format!("`{}`: {message}", function.entry)));
        let [x, y, z] = request.grid;
        if request.grid.iter().zip(MAX_GRID).any(|(&n, most)| n == 0 || i64::from(n) > most) {
            return wrong(format!("a grid of {x} x {y} x {z} blocks"));
        }
        let [bx, by, bz] = request.block.map(u64::from);
        let outside = request.block.iter().zip(MAX_BLOCK).any(|(&n, most)| n == 0 || n > most);
        if outside || bx * by * bz > u64::from(MAX_THREADS) {
            return wrong(format!("blocks of {bx} x {by} x {bz} threads"));
        }
        if request.dynamic > function.dynamic {
            return wrong(format!(
                "{} bytes of dynamic shared memory, {} are permitted: ask for more by \
                 CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES",
                request.dynamic, function.dynamic
            ));
        }
        if request.cluster.is_some() && !target.has_clusters() {
            return wrong(format!("{} has no clusters", target.name()));
        }
        let launch = Launch {
            entry: function.entry.clone(),
            grid: request.grid,
            block: request.block,
            dynamic_smem: request.dynamic,
            params: request.params.clone(),
        };
        let options = Options {
            threads: self.settings.threads,
            fuel: FUEL,
            generation: tilec_sim::Generation::of_sm(target.cc()),
            landing: self.settings.landing,
            cluster: request.cluster,
            programmatic: request.programmatic,
            allow: self.settings.allow.clone(),
            ..Options::default()
        };
        match self.device.run(&function.program, &launch, &options) {
            Ok(_) => Ok(()),
            Err(report) => {
                let fits = report.kind != tilec_sim::ReportKind::Launch;
                let failure = Failure::from(report);
                // A kernel that was never begun harms nothing.
                self.failed = fits.then_some(failure.code);
                Err(failure)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    /// Adds 1 to the word at `p`.
    const ADD: &str = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry add(.param .u64 p)\n{\n\
        .reg .b64 %rd<1>; .reg .b32 %r<1>;\n ld.param.u64 %rd0, [p];\n ld.global.u32 %r0, [%rd0];\n add.u32 %r0, %r0, 1;\n\
        st.global.u32 [%rd0], %r0;\n ret;\n}\n";

    fn add(state: &mut State, address: u64) -> Result<(), Failure> {
        let module = state.load(ADD)?;
        let function = state.function(module, "add")?;
        let params = vec![address.to_le_bytes().to_vec()];
        let done = state.launch(&Request { function, grid: [1; 3], block: [1; 3], params, ..Request::default() });
        state.unload(module)?;
        done
    }

    #[test]
    fn copies_of_what_nobody_wrote_are_not_written() {
        let mut state = State::new(Settings::default());
        let (from, to) = (state.alloc(8).expect("memory"), state.alloc(8).expect("memory"));
        state.upload(from, &[7, 0, 0, 0]).expect("inside");
        state.copy(to, from, 8).expect("inside");
        add(&mut state, to).expect("this word was written");
        assert_eq!(state.download(to, 4).expect("inside"), [8, 0, 0, 0]);
        assert_eq!(add(&mut state, to + 4).map_err(|f| f.code), Err(Code::LaunchFailed));
        // The device is of no use then.
        assert_eq!(add(&mut state, to).map_err(|f| f.code), Err(Code::LaunchFailed));
    }

    #[test]
    fn memory_may_be_given_back_and_asked_for_again() {
        let mut state = State::new(Settings::default());
        for _ in 0..20_000 {
            let address = state.alloc(64).expect("there is room");
            state.free(address).expect("it begins there");
        }
        assert_eq!(state.free(1).map_err(|f| f.code), Err(Code::InvalidValue));
    }
}
