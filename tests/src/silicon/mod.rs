//! The simulator's arithmetic against a GPU's, bit for bit.
//!
//! Every instruction of the simulator's table that computes something becomes a probe: a kernel that loads operands,
//! executes the instruction, and stores its results. The same PTX runs on the simulator and on the GPU with the same
//! operands. `silicon_check` is the program; `docs/testing.md` says how it is used.
//!
//! | module      | what it does                                                             |
//! |-------------|--------------------------------------------------------------------------|
//! | `operand`   | registers of an instruction, and the formats of what they hold            |
//! | `probe`     | an instruction with its operands, and how results are compared            |
//! | `forms`     | the simulator's instruction table as probes                               |
//! | `kernel`    | the PTX of a probe                                                        |
//! | `values`    | bit patterns worth trying, alone and in combinations                      |
//! | `fragments` | operands of matrix products, by class                                     |
//! | `compare`   | equal, or as near as the manual demands                                   |
//! | `explain`   | a difference with its operands, for the person who corrects the model     |
//! | `run`       | operands to machines, results to outcomes                                 |
//! | `gpu`       | the machine with a driver                                                 |
//! | `tests`     | what must hold of the probes without a GPU                                |

pub mod compare;
pub mod explain;
pub mod forms;
pub mod fragments;
#[cfg(feature = "cuda")]
pub mod gpu;
pub mod kernel;
pub mod operand;
pub mod probe;
pub mod run;
pub mod tests;
pub mod values;
