//! Measurements: times of programs compared with libraries, and the search for the fastest schedule.

pub mod bench;
pub mod tune;
