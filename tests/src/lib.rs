//! The tests of the compiler as a whole: a harness over files, the case tables, and a GPU check.
//!
//! `docs/testing.md` is the manual of the file format. The binary `files` (`tests/files.rs`) makes one test of every
//! file of `tests/files`, of every example and sketch, of every `tile` snippet of the documents, and of the programs
//! of the case table.
//!
//! | module        | what it does                                                                  |
//! |---------------|-------------------------------------------------------------------------------|
//! | `test_file`   | reads and rewrites a test file: kind, keys, expectations                       |
//! | `options`     | arguments and matrices of a file as compile options                            |
//! | `golden`      | compares texts, blesses, skips loudly                                          |
//! | `kinds`       | what each kind of file checks                                                  |
//! | `expect`      | the small expression language over JSON, for `report` and `sass`               |
//! | `problem`     | sizes, strides, scalars and integer data of one run                            |
//! | `loops`       | products, convolutions and functions in plain loops                            |
//! | `reference`   | plain loops that say what a GEMM, copy or transposition is                     |
//! | `oracle`      | the interpreter on a problem, compared with a reference or another program     |
//! | `simulated`   | the compiled PTX on a simulated device, launched from the launch contract      |
//! | `programs`    | examples, sketches, snippets: which there are and what they must do            |
//! | `cases`       | GEMM problems of a peer's test suite                                           |
//! | `choices`     | what the model chooses compiles: all targets, types, orders, sizes             |
//! | `chains`      | chains of names, of every kind, are compiled and run in the time that a chain takes |
//! | `conversions` | every pair of element types at edge values: interpreter and PTX agree         |
//! | `indices`     | index arithmetic: programs, PTX, contract and a plain evaluator agree           |
//! | `formatting`  | `tilec fmt` over every program of the repository                                |
//! | `documented`  | the commands of examples/README.md and of head comments succeed                  |
//! | `headers`     | C headers of every example against a driver that writes down its calls            |
//! | `xray`        | the page of every example: whole, small, and every link leads somewhere        |
//! | `fuzz`        | random programs: no panic, no hang, no wrong program                            |
//! | `mutants`     | kernels broken in one place each, which the simulator must notice               |
//! | `inference`   | references of programs whose sizes are numbers in tensors                      |
//! | `rows`        | references of programs over the rows of a matrix                               |
//! | `device`      | launches on a GPU from the launch contract                                     |
//! | `corpus`      | CUDA kernels: the table that the simulator's own tests read                    |
//! | `corpus_gpu`  | a launch of the corpus on a GPU                                                |
//! | `counters`    | the simulator's counts against a GPU's counters                                |

mod attention;
pub mod cases;
pub mod chains;
pub mod choices;
mod conflicts;
#[cfg(test)]
mod conversions;
#[path = "../../sim/tests/corpus/mod.rs"]
pub mod corpus;
#[cfg(feature = "cuda")]
pub mod corpus_gpu;
pub mod counters;
#[cfg(feature = "cuda")]
pub mod device;
pub mod documented;
pub mod expect;
#[cfg(test)]
mod formatting;
#[cfg(test)]
mod functions;
#[cfg(test)]
mod functions_f64;
mod fusions;
pub mod fuzz;
pub mod gathers;
pub mod golden;
#[cfg(feature = "cuda")]
pub mod headers;
pub mod images;
#[cfg(test)]
mod indices;
pub mod inference;
#[cfg(test)]
mod integers;
pub mod kinds;
pub mod linear;
mod loops;
pub mod mutants;
pub mod number;
#[cfg(test)]
mod operators;
pub mod options;
pub mod oracle;
#[cfg(test)]
mod pairs;
pub mod problem;
pub mod programs;
pub mod reference;
#[cfg(test)]
mod rounding;
pub mod rows;
pub mod silicon;
pub mod simulated;
pub mod test_file;
#[cfg(test)]
mod timelines;
#[cfg(test)]
mod why;
#[cfg(test)]
mod words;
#[cfg(test)]
mod xray;

use std::path::PathBuf;

/// The root of the repository.
pub fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
