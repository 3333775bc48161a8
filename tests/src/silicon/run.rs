//! Operands to machines, results to outcomes.

use super::compare::{Verdict, differing};
use super::explain::explain;
use super::fragments::{self, CLASSES};
use super::kernel::{self, BLOCK};
use super::probe::{Compare, Probe};
use super::values::{self, Edges};
use crate::problem::Random;
use tilec_sim::{Device, Launch, Options, Order, Program};

/// Operand sets of one launch.
const SETS: u64 = 2048;
/// Blocks of one launch.
pub const BLOCKS: u32 = 64;
/// Differences of a class of data of a product that are described.
const DESCRIBED: usize = 3;
/// Differences of any other form that are described.
const DESCRIBED_OTHERS: usize = 24;

/// What executes a kernel.
pub trait Machine {
    /// Loads a probe; launches take at most these many words.
    ///
    /// # Errors
    /// The machine does not take the program.
    fn load(&mut self, probe: &Probe, ptx: &str, words: [usize; 2]) -> Result<(), String>;

    /// Runs the loaded probe on `sets` sets and gives what it stored.
    ///
    /// # Errors
    /// The machine fails.
    fn run(&mut self, input: &[u32], results: usize, sets: u32) -> Result<Vec<u32>, String>;
}

/// The simulator.
#[derive(Default)]
pub struct Simulator {
    order: Order,
    seed: u64,
    loaded: Option<(Program, Device, [u64; 2], String)>,
}

impl Simulator {
    /// A simulator that runs blocks in this order, and warps by the seed.
    pub fn new(order: Order, seed: u64) -> Simulator {
        Simulator { order, seed, loaded: None }
    }
}

impl Machine for Simulator {
    fn load(&mut self, probe: &Probe, ptx: &str, words: [usize; 2]) -> Result<(), String> {
        let program = Program::parse(ptx).map_err(|e| e.to_string())?;
        let mut device = Device::new();
        let mut at = [0; 2];
        for (at, words) in at.iter_mut().zip(words) {
            *at = device.alloc(4 * words as u64).map_err(|e| e.to_string())?;
        }
        self.loaded = Some((program, device, at, probe.entry.clone()));
        Ok(())
    }

    fn run(&mut self, input: &[u32], results: usize, sets: u32) -> Result<Vec<u32>, String> {
        let Some((program, device, [source, target], entry)) = &mut self.loaded else {
            return Err("nothing is loaded".to_owned());
        };
        let bytes: Vec<u8> = input.iter().flat_map(|w| w.to_le_bytes()).collect();
        device.upload(*source, &bytes).map_err(|e| e.to_string())?;
        let params = vec![source.to_le_bytes().to_vec(), target.to_le_bytes().to_vec(), sets.to_le_bytes().to_vec()];
        let launch =
            Launch { entry: entry.clone(), grid: [BLOCKS, 1, 1], block: [BLOCK, 1, 1], dynamic_smem: 0, params };
        let options = Options { order: self.order, seed: self.seed, ..Options::default() };
        device.run(program, &launch, &options).map_err(|e| e.to_string())?;
        let bytes = device.download(*target, 4 * results).map_err(|e| e.to_string())?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|w| u32::from_le_bytes(*w)).collect())
    }
}

/// How many results of each kind of probe are compared.
#[derive(Clone, Copy, Debug)]
pub struct Amounts {
    /// Results of a matrix product.
    pub products: u64,
    /// Random results of anything else; combinations of edge values are added.
    pub others: u64,
    /// Edge values at most.
    pub edges: u64,
    /// Seed of all data.
    pub seed: u64,
}

/// What came of a probe.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Results compared.
    pub results: u64,
    /// Results that disagree.
    pub wrong: u64,
    /// The same by class of data, for matrix products.
    pub by_class: [u64; CLASSES.len()],
    /// Of approximate instructions: results that are not the simulator's, and how many units the farthest is away.
    pub inexact: (u64, f64),
    /// The first differences with their operands.
    pub described: Vec<String>,
    /// Why a machine did not run it.
    pub failure: Option<String>,
}

impl Outcome {
    /// Nothing was wrong.
    pub fn passed(&self) -> bool {
        self.wrong == 0 && self.failure.is_none()
    }
}

/// How many sets a probe gets.
fn sets(probe: &Probe, edges: &Edges, amounts: &Amounts) -> u64 {
    let wanted = if probe.product.is_some() { amounts.products } else { amounts.others };
    edges.combinations.min(amounts.edges).div_ceil(32) + wanted.div_ceil(probe.results().max(1))
}

/// Runs a probe on the simulator and on `device`, and compares.
pub fn check(probe: &Probe, simulator: &mut dyn Machine, device: &mut dyn Machine, amounts: &Amounts) -> Outcome {
    let mut outcome = Outcome::default();
    if let Err(error) = compare_all(probe, simulator, device, amounts, &mut outcome) {
        outcome.failure = Some(error);
    }
    outcome
}

fn compare_all(
    probe: &Probe,
    simulator: &mut dyn Machine,
    device: &mut dyn Machine,
    amounts: &Amounts,
    outcome: &mut Outcome,
) -> Result<(), String> {
    let ptx = kernel::module(&[probe]);
    let (read, written) = (probe.input_words(), probe.output_words());
    let edges = Edges::of(probe);
    let total = sets(probe, &edges, amounts);
    let most = total.min(SETS) as usize;
    simulator.load(probe, &ptx, [most * read, most * written]).map_err(|e| format!("simulator: {e}"))?;
    device.load(probe, &ptx, [most * read, most * written]).map_err(|e| format!("device: {e}"))?;
    let name = probe.name.bytes().fold(amounts.seed, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    let mut described = [0usize; CLASSES.len()];
    let mut input = vec![0u32; most * read];
    let mut first = 0;
    while first < total {
        let count = (total - first).min(SETS);
        let input = &mut input[..count as usize * read];
        for (i, words) in input.chunks_exact_mut(read).enumerate() {
            let set = first + i as u64;
            let mut random = Random(name ^ set.wrapping_mul(0xd134_2543_de82_ef95));
            match &probe.product {
                Some(product) => fragments::fill(probe, product, set, &mut random, words),
                None => values::fill(probe, &edges, set, &mut random, words),
            }
        }
        let results = count as usize * written;
        let got = device.run(input, results, count as u32).map_err(|e| format!("device: {e}"))?;
        let want = simulator.run(input, results, count as u32).map_err(|e| format!("simulator: {e}"))?;
        outcome.results += count * probe.results();
        for (i, (want, got)) in want.chunks_exact(written).zip(got.chunks_exact(written)).enumerate() {
            if want == got {
                continue;
            }
            let set = first + i as u64;
            let class = if probe.product.is_some() { fragments::class(set) } else { 0 };
            let input = &input[i * read..(i + 1) * read];
            differing(probe, input, want, got, |at, want, got, Verdict { good, ulps }| {
                if probe.compare != Compare::Exact {
                    outcome.inexact.0 += 1;
                    outcome.inexact.1 = outcome.inexact.1.max(ulps);
                }
                if !good {
                    outcome.wrong += 1;
                    outcome.by_class[class] += 1;
                    described[class] += 1;
                    if described[class] <= if probe.product.is_some() { DESCRIBED } else { DESCRIBED_OTHERS } {
                        let name = probe.product.map_or("", |_| CLASSES[class].1);
                        outcome.described.push(format!("{name} {}", explain(probe, input, at, want, got)));
                    }
                }
            });
        }
        first += count;
    }
    Ok(())
}
