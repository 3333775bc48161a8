//! The protocol between the command and the measuring process: JSON lines.

use super::limits::Machine;
use super::product::Product;
use crate::contract::Contract;
use crate::contract::number::Args;
use crate::run::child::Refused;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// To the child.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Request {
    /// First: open the device, load the programs.
    Setup {
        /// The programs.
        programs: Vec<Program>,
        /// File names of cuBLAS to try; empty: do not.
        cublas: Vec<PathBuf>,
    },
    /// Then, any number of times: measure.
    Measure(Job),
}

impl Program {
    /// The launch contracts of its kernels, in order.
    pub fn contracts(&self) -> Vec<&Contract> {
        self.launches.iter().collect()
    }
}

/// A program to measure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Program {
    /// What it is called.
    pub name: String,
    /// The launch contracts of its kernels, in order.
    pub launches: Vec<Contract>,
    /// Temporary tensors between its kernels.
    pub temporaries: Vec<String>,
    /// The program.
    pub ptx: String,
    /// The matrix product that it is.
    pub product: Option<Product>,
    /// The instruction of its products; empty without any.
    pub atom: String,
    /// Products that it sums up before the sum is added to an accumulator, if not all of a reduction.
    pub promoted: Option<u64>,
}

/// A problem.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Values of sizes, strides and scalars.
    pub args: Args,
    /// Which programs, by index.
    pub programs: Vec<usize>,
    /// Number of rounds.
    pub rounds: u32,
    /// Seconds of measurement to aim at.
    pub seconds: f64,
    /// Seed of the data.
    pub seed: u64,
}

/// From the child.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// To the setup.
    Ready {
        /// The device.
        machine: Machine,
        /// Version of cuBLAS and the file, or why there is none; `None`: it was not requested.
        cublas: Option<Result<(String, PathBuf), String>>,
        /// The result of loading each program.
        programs: Vec<Result<Loaded, String>>,
    },
    /// While measuring.
    Progress {
        /// What is done now.
        what: String,
        /// Between 0 and 1.
        done: f64,
        /// The program, by its place in the job, that is launched for the first time now: if no further answer comes, it is to blame.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first: Option<usize>,
    },
    /// To a job.
    Measured(Measured),
    /// To anything: it cannot be done.
    Refused(Refused),
}

/// A program on the device.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Loaded {
    /// Registers per thread.
    pub registers: u32,
    /// Local memory per thread in bytes: spills and stack.
    pub local_bytes: u32,
}

/// A problem measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// The programs, in the order of the job.
    pub programs: Vec<Result<Series, String>>,
    /// The cuBLAS times of each kind of product in it.
    pub references: Vec<Reference>,
    /// Notes for people.
    pub notes: Vec<String>,
}

/// The times of one program.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Series {
    /// Microseconds of one launch, round by round.
    pub us: Vec<f64>,
    /// Launches per round.
    pub launches: u32,
    /// Sets of inputs that they rotate through.
    pub sets: u32,
    /// What was compared.
    pub check: Check,
    /// Which of the references computes the same.
    pub reference: Option<usize>,
    /// Floating-point operations of the product; 0 without one.
    pub flops: f64,
    /// Bytes of the tensors, each moved once.
    pub bytes: f64,
}

/// The times of cuBLAS for one product.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reference {
    /// Microseconds of one call, round by round.
    pub us: Vec<f64>,
    /// Which of how many ways was fastest, from 0.
    pub choice: (usize, usize),
    /// Microseconds of each way in a first look, in cuBLAS's order.
    pub looked_us: Vec<f64>,
    /// Why it was not measured.
    pub refused: Option<String>,
}

/// Counts of the simulator in place of a measurement.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Blocks.
    pub blocks: u64,
    /// Instructions by warp.
    pub instructions: u64,
    /// Matrix instructions by warp.
    pub products: u64,
    /// Barriers by warp.
    pub barriers: u64,
    /// Cycles of shared memory.
    pub wavefronts: u64,
    /// Those of them for bank conflicts.
    pub conflicts: u64,
    /// Sectors of 32 bytes of global memory.
    pub sectors: u64,
}

/// The result of a comparison.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Check {
    /// Elements compared with sums computed on the host, exactly, on whole numbers.
    pub exact: u64,
    /// Elements compared with sums computed on the host, within a bound, on the data of the measurement.
    pub bounded: u64,
    /// Elements compared with the result of cuBLAS on whole numbers.
    pub against_cublas: u64,
    /// Elements in which the result of cuBLAS is not exact on whole numbers, and ours is, as far as they were looked at.
    #[serde(default)]
    pub cublas_off: u64,
    /// Elements compared with the interpreter's result on whole numbers.
    #[serde(default)]
    pub interpreted: u64,
    /// Elements that were wrong.
    pub wrong: u64,
    /// Largest error on the data of the measurement, as a fraction of its bound.
    pub worst: f64,
    /// Some mismatches.
    pub shown: Vec<String>,
    /// Why nothing was compared here.
    pub skipped: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_across_whole() {
        let job = Job {
            args: Args::from([("M".to_owned(), 5.into()), ("alpha".to_owned(), 0.1.into())]),
            programs: vec![0, 2],
            rounds: 7,
            seconds: 0.5,
            seed: u64::MAX,
        };
        let program = Program {
            name: "gemm".to_owned(),
            launches: vec![crate::contract::tests::gemm()],
            temporaries: Vec::new(),
            ptx: ".version 6.4\n".to_owned(),
            product: None,
            atom: "m8n8k4".to_owned(),
            promoted: None,
        };
        for request in
            [Request::Measure(job), Request::Setup { programs: vec![program], cublas: vec!["libcublasLt.so".into()] }]
        {
            let line = serde_json::to_string(&request).expect("JSON");
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<Request>(&line).expect("reads"), request);
        }
    }
}
