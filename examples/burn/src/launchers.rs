//! The launchers that the build script wrote, loaded for a device.

use std::sync::{Arc, PoisonError, RwLock};
use tilec_launch::{Device, LaunchError};

/// Launchers that the build script wrote.
mod made {
    #![allow(clippy::too_many_arguments, reason = "a launcher has an argument for each tensor")]
    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

pub use made::Launchers;

static SIMULATED: RwLock<Option<Arc<Launchers>>> = RwLock::new(None);

/// From now on, operations on tensors of the CPU are simulated on this target (`sm_80`, `sm_90a`); without a call, on `sm_90a`.
///
/// # Errors
/// There is no such target, or there are no kernels for it.
pub fn simulate(target: &str) -> Result<(), LaunchError> {
    let loaded = Arc::new(Launchers::load(&Device::simulator(target)?)?);
    *SIMULATED.write().unwrap_or_else(PoisonError::into_inner) = Some(loaded);
    Ok(())
}

/// Those of the simulator.
pub(crate) fn simulated() -> Result<Arc<Launchers>, LaunchError> {
    loop {
        if let Some(loaded) = &*SIMULATED.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(loaded.clone());
        }
        simulate("sm_90a")?;
    }
}
