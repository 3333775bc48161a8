//! The predicted time of a program of several launches: the sum of its kernels.

use crate::contract::Program;
use serde::Serialize;

/// Predicted times of a program.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ProgramTime {
    /// The program.
    pub name: String,
    /// Microseconds of all launches; absent if one has no prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub us: Option<f64>,
    /// Its launches, in order.
    pub launches: Vec<LaunchTime>,
}

/// Predicted time of a launch.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LaunchTime {
    /// The kernel.
    pub entry: String,
    /// Microseconds; absent if there is no prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub us: Option<f64>,
}

/// The times of a program. `seconds`: what is predicted for an entry; a kernel with variants has no time of its own.
pub(crate) fn of(program: &Program, seconds: impl Fn(&str) -> Option<f64>) -> ProgramTime {
    let launch = |entry: &String| LaunchTime { entry: entry.clone(), us: seconds(entry).map(|s| 1e6 * s) };
    let launches: Vec<LaunchTime> = program.launches.iter().map(launch).collect();
    ProgramTime { name: program.name.clone(), us: launches.iter().map(|launch| launch.us).sum(), launches }
}
