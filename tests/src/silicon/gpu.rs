//! The machine with a driver.

use super::kernel::BLOCK;
use super::probe::Probe;
use super::run::{BLOCKS, Machine};
use tilec::cuda::{Buffer, Device, Function, LaunchArg, Shape};

/// A GPU, as one thread sees it.
pub struct Gpu {
    device: Device,
    loaded: Option<(Function, [Buffer; 2])>,
}

impl Gpu {
    /// The GPU of this number.
    ///
    /// # Errors
    /// There is none.
    pub fn open(ordinal: u32) -> Result<Gpu, String> {
        Ok(Gpu { device: Device::open(ordinal).map_err(|e| e.to_string())?, loaded: None })
    }

    /// Its name and compute capability.
    pub fn describe(&self) -> String {
        let p = self.device.properties();
        format!("{}, sm_{}{}", p.name, p.compute_capability.0, p.compute_capability.1)
    }
}

impl Machine for Gpu {
    fn load(&mut self, probe: &Probe, ptx: &str, words: [usize; 2]) -> Result<(), String> {
        self.loaded = None;
        let module = self.device.load_ptx(ptx).map_err(|e| e.to_string())?;
        let function = module.function(&probe.entry).map_err(|e| e.to_string())?;
        let buffer = |words: usize| self.device.alloc(4 * words).map_err(|e| e.to_string());
        self.loaded = Some((function, [buffer(words[0])?, buffer(words[1])?]));
        Ok(())
    }

    fn run(&mut self, input: &[u32], results: usize, sets: u32) -> Result<Vec<u32>, String> {
        let Some((function, [source, target])) = &self.loaded else { return Err("nothing is loaded".to_owned()) };
        let bytes: Vec<u8> = input.iter().flat_map(|w| w.to_le_bytes()).collect();
        let go = || {
            source.upload(0, &bytes)?;
            // What is not stored must not look like an earlier result.
            target.fill(0xa5)?;
            let args = [source.arg(), target.arg(), LaunchArg::U32(sets)];
            let (grid, block) = ([BLOCKS, 1, 1], [BLOCK, 1, 1]);
            let shape = Shape { grid, block, dynamic_smem: 0, cluster: [1; 3], programmatic: false };
            self.device.launch(function, &shape, &args)?;
            self.device.synchronize()?;
            let mut bytes = vec![0; 4 * results];
            target.download(0, &mut bytes)?;
            Ok(bytes)
        };
        let bytes: Vec<u8> = go().map_err(|e: tilec::cuda::CudaError| format!("FAULT {e}"))?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|w| u32::from_le_bytes(*w)).collect())
    }
}
