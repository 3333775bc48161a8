//! A launch on the simulator: from the contract, the PTX and the values of the parameters alone, as on a GPU.
//!
//! The simulator checks what a GPU lets pass, so a launch ends in results and counts, or in a diagnostic that says what is
//! wrong and where (`report`). Tensors are where nothing is true by chance (`memory`). The calling thread watches the
//! clock and draws progress (`watch`) while others execute.

pub mod counts;
pub mod counts_json;
mod locate;
mod memory;
mod remedies;
mod report;
mod report_context;
mod sources;
#[cfg(test)]
mod tests;
mod watch;
#[cfg(test)]
mod way_out_tests;

pub use report_context::Origin;

use crate::console::clock::Clock;
use crate::contract::Contract;
use crate::run::child::Job;
use crate::run::program::{self, bind_program};
use crate::run::simulate::report_context::ReportContext;
use memory::Memory;
pub use sources::Sources;
use std::fmt;
use tilec_ir::codes;
use tilec_ir::diag::{Code, Diagnostic, Span};
pub use tilec_launch::simulator::FUEL as DEFAULT_FUEL;
use tilec_launch::simulator::generation;
pub use tilec_sim::{Allowance, Counters, Generation, Landing, Order};
use tilec_sim::{Launch, Program};

/// Maximum number of bytes of a simulated launch's tensors. The host needs about five times as much.
pub const MAX_BYTES: u64 = 2 << 30;

/// When asynchronous copies land.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Landings {
    /// In this way.
    One(Landing),
    /// As soon as they are issued; then, if there are any, in the other ways that the rules allow. The results must be equal.
    #[default]
    All,
}

/// How to simulate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SimOptions {
    /// In which order blocks run.
    pub order: Order,
    /// When asynchronous copies land.
    pub landings: Landings,
    /// Whose matrix arithmetic to imitate; `None`: that of the target's generation.
    pub imitate: Option<Generation>,
    /// Host threads that share the blocks; at least 1.
    pub threads: usize,
    /// Bytes, a power of two: tensors begin at odd multiples of it where their contract requests less.
    pub align: u32,
    /// Instructions, counted by warp, that each block may execute.
    pub fuel: u64,
    /// Errors that pass, and are listed as warnings.
    pub allow: Vec<Allowance>,
    /// Seed of the order of warps, and of blocks if that is seeded.
    pub seed: u64,
    /// Draw progress on standard error once a simulation has lasted a second.
    pub progress: bool,
}

impl Default for SimOptions {
    fn default() -> SimOptions {
        SimOptions {
            order: Order::Forward,
            landings: Landings::All,
            imitate: None,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            align: 1,
            fuel: DEFAULT_FUEL,
            allow: Vec::new(),
            seed: 0,
            progress: false,
        }
    }
}

/// A simulation that found nothing wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Simulated {
    /// What was imitated.
    pub generation: Generation,
    /// Why it ran here and not on a GPU, if this was not requested.
    pub why: Option<String>,
    /// In how many ways asynchronous copies landed, in as many runs.
    pub landings: usize,
    /// The launches, in order.
    pub launches: Vec<Executed>,
    /// Permitted violations, as warnings: one for each pair of instructions.
    pub allowed: Vec<Diagnostic>,
}

/// A simulated launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Executed {
    /// The kernel.
    pub entry: String,
    /// Blocks.
    pub blocks: u64,
    /// Threads of a block.
    pub threads: u32,
    /// Counters of the first run.
    pub counters: Counters,
}

impl Simulated {
    /// The checks that were incomplete, if any.
    pub fn unchecked(&self) -> Option<&'static str> {
        self.launches.iter().any(|l| l.counters.races_partial).then_some(
            "there was too much to keep all of it: a race on global memory may have gone unseen; a smaller problem shows it",
        )
    }
}

impl fmt::Display for Executed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let Counters { instructions, mma, barriers, .. } = &self.counters;
        write!(f, "executed {} of {} threads", plural(self.blocks, "block"), self.threads)?;
        write!(f, ", {}", plural(*instructions, "instruction"))?;
        if *mma > 0 {
            write!(f, ", {mma} of them products")?;
        }
        if *barriers > 0 {
            write!(f, "{} {}", if *mma > 0 { " and" } else { ", of them" }, plural(*barriers, "barrier"))?;
        }
        f.write_str(" (by warp)")
    }
}

/// A line per launch, under the names of the kernels if there are several.
impl fmt::Display for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, launch) in self.launches.iter().enumerate() {
            if i > 0 {
                f.write_str("\n  ")?;
            }
            if self.launches.len() > 1 {
                write!(f, "{}: ", launch.entry)?;
            }
            launch.fmt(f)?;
        }
        if self.landings > 1 {
            write!(f, "; equal in {} runs that differ in when asynchronous copies land", self.landings)?;
        }
        Ok(())
    }
}

/// The name of a generation.
pub fn generation_name(generation: Generation) -> &'static str {
    match generation {
        Generation::Volta => "Volta",
        Generation::Turing => "Turing",
        Generation::Ampere => "Ampere",
        Generation::Ada => "Ada",
        Generation::Hopper => "Hopper",
    }
}

/// A compute capability (times ten) of the generation.
pub fn compute_capability(generation: Generation) -> u32 {
    match generation {
        Generation::Volta => 70,
        Generation::Turing => 75,
        Generation::Ampere => 80,
        Generation::Ada => 89,
        Generation::Hopper => 90,
    }
}

/// The launches of a run, and the tensors after it.
struct Done {
    launches: Vec<Executed>,
    allowed: Vec<Diagnostic>,
    after: Vec<Vec<u8>>,
}

/// The launches of a job, ready to be executed.
struct Session<'a> {
    job: &'a Job,
    origin: &'a Origin<'a>,
    contracts: &'a [&'a Contract],
    bound: &'a program::BoundProgram,
    program: &'a Program,
    options: &'a SimOptions,
    generation: Generation,
}

impl<'a> Session<'a> {
    fn scene(&self, at: usize) -> ReportContext<'a> {
        scene(self.job, self.origin, self.bound, at)
    }

    /// Executes all launches once.
    fn once(&self, landing: Landing, tensors: &[Vec<u8>], clock: &mut Clock) -> Result<Done, Box<Diagnostic>> {
        let mut memory = Memory::new(self.contracts, self.bound, tensors, &self.job.aliases, self.options.align, clock)
            .map_err(|r| report::diagnostic(&self.scene(0), None, &r))?;
        clock.check()?;
        let (mut executed, mut allowed) = (Vec::new(), Vec::new());
        let launches = self.job.launches.iter().zip(&self.bound.launches).enumerate();
        for (at, (contract, own)) in launches.filter(|(_, (_, own))| own.has_blocks()) {
            let refused = |r: Box<tilec_sim::Report>| report::diagnostic(&self.scene(at), None, &r);
            memory.permit(contract, &self.bound.tensors).map_err(refused)?;
            let scratch = memory.scratch(&own.scratch).map_err(refused)?;
            let launch = Launch {
                entry: contract.entry.clone(),
                grid: own.grid,
                block: contract.block,
                dynamic_smem: contract.dynamic_smem_bytes,
                params: memory::parameters(contract, self.bound, &memory, &scratch),
            };
            let sim = tilec_sim::Options {
                seed: self.options.seed,
                order: self.options.order,
                threads: self.options.threads,
                fuel: self.options.fuel,
                generation: Some(self.generation),
                landing,
                resident: None,
                programmatic: contract.programmatic,
                cluster: (contract.cluster != [1, 1, 1]).then_some(contract.cluster),
                allow: self.options.allow.clone(),
                progress: None,
            };
            let blocks = own.grid.iter().map(|n| u64::from(*n)).product();
            let watched = watch::run(
                &mut memory.device,
                self.program,
                &launch,
                sim,
                clock,
                self.options.progress.then_some(blocks),
            );
            let counters = watched.map_err(|ended| match ended.out_of_time {
                true => report::out_of_time(&self.scene(at), &ended.report, clock.limit()),
                false => report::diagnostic(&self.scene(at), Some((&memory, self.program)), &ended.report),
            })?;
            let passed = counters.allowed.iter();
            allowed.extend(passed.map(|r| report::allowed(&self.scene(at), (&memory, self.program), r)));
            if let Some(message) = memory.left_up(&own.scratch, &scratch) {
                return Err(error(codes::SIM_LAUNCH, message));
            }
            let (entry, threads) = (contract.entry.clone(), contract.block.iter().product());
            executed.push(Executed { entry, blocks, threads, counters });
        }
        let after = memory.finish(&self.bound.tensors).map_err(|r| report::diagnostic(&self.scene(0), None, &r))?;
        Ok(Done { launches: executed, allowed, after })
    }
}

/// The context of messages about a launch.
fn scene<'a>(job: &'a Job, origin: &'a Origin<'a>, bound: &'a program::BoundProgram, at: usize) -> ReportContext<'a> {
    ReportContext { origin, at, contract: &job.launches[at], ptx: &job.ptx, bound }
}

fn error(code: Code, message: String) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(code, Span::default(), message))
}

/// Executes `job` on the simulator before the clock runs out, and leaves the tensors as the kernel did.
///
/// # Errors
/// Whatever is wrong with the PTX, the launch, or what the kernel does.
pub fn simulate(
    job: &Job,
    tensors: Vec<Vec<u8>>,
    origin: &Origin<'_>,
    options: &SimOptions,
    clock: &mut Clock,
) -> Result<(Simulated, Vec<Vec<u8>>), Box<Diagnostic>> {
    let contracts: Vec<&Contract> = job.launches.iter().collect();
    let bound = bind_program(&contracts, &job.args)
        .map_err(|e| error(codes::BAD_ARGUMENT, e.first().map_or_else(String::new, ToString::to_string)))?;
    let bytes = bound.tensors.iter().fold(0u64, |sum, t| sum.saturating_add(t.bytes()));
    if bytes > MAX_BYTES {
        return Err(too_big(bytes));
    }
    let Some(first) = job.launches.first() else {
        return Err(error(codes::SIM_LAUNCH, "there is nothing to launch".to_owned()));
    };
    let program = Program::parse(&job.ptx).map_err(|e| report::unknown_ptx(&scene(job, origin, &bound, 0), &e))?;
    program::Program::new(&first.entry, &contracts)
        .map_err(|misfits| error(codes::BAD_SEQUENCE, misfits.join("; ")))?;
    let generation = chosen_generation(program.target(), options.imitate)?;
    let session = Session { job, origin, contracts: &contracts, bound: &bound, program: &program, options, generation };
    let first = match options.landings {
        Landings::One(landing) => landing,
        Landings::All => Landing::Early,
    };
    let Done { launches, allowed, after } = session.once(first, &tensors, clock)?;
    let rows = || launches.iter().flat_map(|l| &l.counters.rows);
    let asynchronous = || rows().any(|r| r.counts.executed > 0 && r.instruction.starts_with("cp.async"));
    let mut landings = 1;
    if options.landings == Landings::All && asynchronous() {
        for landing in Landing::ALL.into_iter().filter(|l| *l != first) {
            let Done { after: other, .. } = session.once(landing, &tensors, clock)?;
            if let Some(difference) = memory::difference(&bound.tensors, &after, &other) {
                return Err(report::landing(&difference));
            }
            landings += 1;
        }
    }
    Ok((Simulated { generation, why: None, landings, launches, allowed }, after))
}

/// The generation whose arithmetic is used.
fn chosen_generation(target: &str, imitate: Option<Generation>) -> Result<Generation, Box<Diagnostic>> {
    let own = generation(target);
    if let Some((asked, own)) = imitate.zip(own)
        && asked < own
    {
        let message = format!("{} devices do not run code for `{target}`", generation_name(asked));
        return Err(Box::new(Diagnostic::error(codes::SIM_LAUNCH, Span::default(), message).with_note(
            "`--imitate` names the generation of the target, or a later one; `--target` compiles for another",
        )));
    }
    match imitate.or(own) {
        Some(generation) => Ok(generation),
        None => {
            let message = format!("the simulator knows no device of the target `{target}`");
            Err(Box::new(
                Diagnostic::error(codes::SIM_LAUNCH, Span::default(), message)
                    .with_note("`--imitate GENERATION` names one whose arithmetic is to be used"),
            ))
        }
    }
}

/// More bytes than [`MAX_BYTES`].
pub(crate) fn too_big(bytes: u64) -> Box<Diagnostic> {
    let message = format!("the tensors have {bytes} bytes together, the limit of the simulator is {MAX_BYTES}");
    Box::new(Diagnostic::error(codes::TOO_BIG_TO_RUN, Span::default(), message))
}
