//! Measuring: times of programs and of libraries beside them, and the search for the fastest schedule.

pub mod bench;
pub mod tune;
