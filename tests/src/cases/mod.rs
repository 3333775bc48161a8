//! GEMM problems: those of a peer's test suite (`tests/cases`), one in every order, and random ones.
//!
//! A problem is a program (`gemm.tile` with definitions) and numbers. The programs here and the data are ours; the
//! problems are the peer's. Without a GPU every program is compiled, its last tile form interpreted on the smallest of its
//! problems, and its PTX executed on the simulator on one of them, cut down; with one, `gpu_check` runs them all.

mod table;

use crate::number::Format;
use crate::oracle::Problem as Memory;
use crate::problem::{self, Random, Run};
use crate::programs::Test;
use crate::reference::{self, Reference};
use crate::simulated::Executable;
use std::collections::{BTreeMap, BTreeSet};
pub use table::tables;
use tilec::{CompileOptions, Target};

/// The program.
pub const GEMM: &str = include_str!("../../../examples/gemm.tile");
/// Name of the program in messages.
pub(crate) const NAME: &str = "examples/gemm.tile";

/// Block and warp tiles that the programs use, a large and a small one: BM, BN, BK, WM, WN.
type Tiles = [[u32; 5]; 2];

/// Contiguous dimension of a matrix.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Order {
    /// The last.
    Row,
    /// The first.
    Col,
}

impl Order {
    const BOTH: [Order; 2] = [Order::Row, Order::Col];

    fn name(self) -> &'static str {
        if self == Order::Row { "row" } else { "col" }
    }

    /// The leading dimension of a packed matrix.
    fn packed(self, rows: i64, cols: i64) -> i64 {
        if self == Order::Row { cols } else { rows }
    }
}

/// A variant of `gemm.tile`.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Program {
    /// What it is compiled for.
    pub target: Target,
    /// Whether products are scalar, whatever the target has.
    pub fma: bool,
    /// Element type of A and B.
    pub input: Format,
    /// Orders of A, B and C.
    pub orders: [Order; 3],
    /// Accumulator.
    pub acc: Format,
    /// Element type of C.
    pub out: Format,
    /// What rows (columns) of A, B and C are promised to be multiples of, in elements.
    pub align: [i64; 3],
    /// Index into [`Program::tiles`].
    tile: usize,
}

impl Program {
    fn tiles(&self) -> Tiles {
        match (self.fma, self.input.bytes()) {
            (true, 8) => [[64, 64, 16, 32, 32], [32, 64, 16, 32, 32]],
            (true, 4) => [[128, 128, 16, 32, 64], [64, 64, 16, 32, 32]],
            (false, 1) => [[128, 128, 64, 64, 64], [64, 64, 64, 32, 32]],
            (false, 8) => [[64, 64, 16, 32, 32], [32, 64, 16, 32, 32]],
            _ => [[128, 128, 32, 64, 64], [64, 64, 32, 32, 32]],
        }
    }

    /// The type that alpha and beta have, and in which they are applied.
    fn scale(&self) -> Format {
        match (self.acc, self.out) {
            (Format::F64, _) => Format::F64,
            (Format::Int { .. }, Format::Int { bytes: 4, .. }) => self.acc,
            _ => Format::F32,
        }
    }

    /// Its text.
    pub fn source(&self) -> String {
        if self.fma { GEMM.replace("= mma(", "= mma<fma>(") } else { GEMM.to_owned() }
    }

    /// How to compile it.
    pub fn options(&self) -> CompileOptions {
        let mut defines = vec![("T", self.input.name().to_owned()), ("Acc", self.acc.name().to_owned())];
        defines.extend([("Out", self.out.name().to_owned()), ("Scale", self.scale().name().to_owned())]);
        defines.extend(["LA", "LB", "LC"].into_iter().zip(self.orders.map(|o| o.name().to_owned())));
        let tile = self.tiles()[self.tile].map(|n| n.to_string());
        defines.extend(["BM", "BN", "BK", "WM", "WN"].into_iter().zip(tile));
        defines.extend(["ALIGN_A", "ALIGN_B", "ALIGN_C"].into_iter().zip(self.align.map(|n| n.to_string())));
        defines.extend([("KW", "1".to_owned()), ("STAGES", "2".to_owned()), ("RASTER", "8".to_owned())]);
        CompileOptions {
            source_name: NAME.to_owned(),
            target: self.target,
            defines: defines.into_iter().map(|(n, v)| (n.to_owned(), v)).collect(),
            ..CompileOptions::default()
        }
    }

    /// Its name.
    pub fn name(&self) -> String {
        let [a, b, c] = self.orders.map(Order::name);
        let (input, acc, out) = (self.input.name(), self.acc.name(), self.out.name());
        let [bm, bn, bk, wm, wn] = self.tiles()[self.tile];
        let [x, y, z] = self.align;
        let kind = if self.fma { "fma" } else { self.target.name() };
        format!("{kind}_{a}-{b}-{c}_{input}-{acc}-{out}_align{x}-{y}-{z}_{bm}x{bn}x{bk}_{wm}x{wn}")
    }
}

/// A problem.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Where it comes from.
    pub name: String,
    /// The program that is to solve it.
    pub program: Program,
    /// M, N, K.
    pub size: [i64; 3],
    /// Leading dimensions of A, B and C.
    pub ld: [i64; 3],
    /// Scale of the product.
    pub alpha: f64,
    /// Scale of the old C.
    pub beta: f64,
    /// How often, with other data: a batch is as many launches.
    pub batch: u64,
    /// Data are integers of at most this magnitude.
    pub range: i64,
    /// Seed of the data.
    pub seed: u64,
}

impl Problem {
    fn new(name: String, program: Program, size: [i64; 3], ld: [Option<i64>; 3], scale: [f64; 2]) -> Problem {
        let [m, n, k] = size;
        let [a, b, c] = program.orders;
        let packed = [a.packed(m, k), b.packed(k, n), c.packed(m, n)];
        let ld = [0, 1, 2].map(|i| ld[i].unwrap_or(packed[i]));
        let [alpha, beta] = scale;
        // The largest data for which every partial sum and the result are exact.
        let magnitude = |r: i64| alpha.abs().max(1.0) * (k * r * r) as f64 + beta.abs() * r as f64;
        let precision = program.acc.precision().min(program.out.precision());
        let fits = |r: i64| {
            magnitude(r) * 2.0 <= (1u64 << precision) as f64 && reference::accumulates_exactly(program.acc, k, r)
        };
        // Past that, small data: their random sums stay far below the bound (and the reference checks that they do).
        let range = (1..=4).rev().find(|&r| fits(r)).unwrap_or(1);
        let seed = size.into_iter().chain(ld).fold(1, |s, x| Random(s ^ x.unsigned_abs()).bits());
        Problem { name, program, size, ld, alpha, beta, batch: 1, range, seed }
    }

    /// As a run line.
    pub fn run(&self) -> Run {
        let [m, n, k] = self.size;
        let [a, b, c] = self.ld;
        let names = ["M", "N", "K", "A_ld", "B_ld", "C_ld"];
        let mut values: BTreeMap<String, f64> =
            names.into_iter().zip([m, n, k, a, b, c]).map(|(n, v)| (n.to_owned(), v as f64)).collect();
        values.insert("alpha".to_owned(), self.alpha);
        values.insert("beta".to_owned(), self.beta);
        Run { values, seed: self.seed, range: self.range, tolerance: 0.0, at: None }
    }

    /// Extents of the contiguous dimensions of A, B and C.
    fn runs(&self) -> [i64; 3] {
        let [m, n, k] = self.size;
        let [a, b, c] = self.program.orders;
        [a.packed(m, k), b.packed(k, n), c.packed(m, n)]
    }

    /// The same in small, for the simulator: large extents become one tile and what they have beyond whole tiles. Padding
    /// stays.
    fn reduced(&self) -> Problem {
        let size = self.size.map(|n| if n > 96 { 64 + n % 64 } else { n });
        let mut small = Problem::new(self.name.clone(), self.program, size, [None; 3], [self.alpha, self.beta]);
        let padding = self.ld.iter().zip(self.runs()).map(|(ld, run)| ld - run);
        small.ld.iter_mut().zip(padding).for_each(|(ld, padding)| *ld += padding);
        small
    }

    /// Multiply-adds.
    fn work(&self) -> i64 {
        self.size.iter().product()
    }
}

/// The largest power of two up to `limit` that divides all of them.
fn conforming(limit: i64, extents: impl Iterator<Item = i64>) -> i64 {
    let bits = extents.fold(limit.max(1), |all, x| all | x);
    // The lowest bit set anywhere, but not above `limit`.
    bits & bits.wrapping_neg()
}

/// One awkward problem in every order of A, B and C, with both accumulators.
pub fn orders() -> Vec<Problem> {
    let mut all = Vec::new();
    for orders in all_orders() {
        for format in [Format::F16, Format::F32] {
            let program = Program { acc: format, out: format, align: [8; 3], ..volta(orders) };
            let name = format!("520x264x136 {}", program.name());
            all.push(Problem::new(name, program, [520, 264, 136], [None; 3], [1.0, 0.0]));
        }
    }
    all
}

/// A program for Volta's tensor cores.
fn volta(orders: [Order; 3]) -> Program {
    let (target, input, acc) = (Target::Sm70, Format::F16, Format::F32);
    Program { target, fma: false, input, orders, acc, out: acc, align: [1; 3], tile: 0 }
}

fn all_orders() -> impl Iterator<Item = [Order; 3]> {
    let both = Order::BOTH;
    both.into_iter().flat_map(move |a| both.into_iter().flat_map(move |b| both.into_iter().map(move |c| [a, b, c])))
}

/// `count` random problems over a fixed set of programs: every order with every promise of alignment, the types and tiles
/// in turn.
pub fn random(count: usize, seed: u64) -> Vec<Problem> {
    let types = [(Format::F32, Format::F32), (Format::F16, Format::F16), (Format::F32, Format::F16)];
    let mut programs = Vec::new();
    for orders in all_orders() {
        for align in [1, 2, 4, 8] {
            let i = programs.len();
            // 3 and 2 have no factor in common with the 4 promises but 2: `i / 4` mixes tiles and promises.
            let (acc, out) = types[i % 3];
            programs.push(Program { acc, out, align: [align; 3], tile: (i + i / 4) % 2, ..volta(orders) });
        }
    }
    let mut random = Random(seed);
    let problem = |i: usize| {
        let program = programs[i % programs.len()];
        let align = program.align[0];
        let size = [0; 3].map(|_: i64| {
            let n = random.between(1, 400);
            ((n + align - 1) / align * align).min(400)
        });
        let [m, n, k] = size;
        let [a, b, c] = program.orders;
        let packed = [a.packed(m, k), b.packed(k, n), c.packed(m, n)];
        let ld = packed.map(|p| Some(p + random.of(&[0, 0, 1, 3, 16]) * align));
        let scale = [random.between(-3, 3) as f64, random.of(&[0.0, 0.0, 1.0, -1.0, 2.0])];
        let mut problem = Problem::new(format!("random {i} {}", program.name()), program, size, ld, scale);
        problem.seed ^= seed.rotate_left(17) ^ i as u64;
        problem
    };
    (0..count).map(problem).collect()
}

/// Multiply-adds that a program of a table is interpreted for in `cargo test`: the smallest of its problems first.
const INTERPRETED: i64 = 8_000_000;

/// The programs of the tables and of random problems, each compiled, interpreted on the smallest of its problems, and simulated.
///
/// # Errors
/// A table cannot be read.
pub fn tests() -> Result<Vec<Test>, String> {
    let mut tests = Vec::new();
    for (folder, problems) in tables()?.into_iter().chain([("random", random(320, 11))]) {
        for (program, problems) in by_program(problems) {
            let test: Test =
                (format!("cases/{folder}/{}", program.name()), Box::new(move || check(&program, &problems)));
            tests.push(test);
        }
    }
    Ok(tests)
}

/// Compiles `program`, compares its last tile form with the triple loop on the smallest of `problems`, and its PTX on the one
/// of them that has most to it when cut down.
fn check(program: &Program, problems: &[Problem]) -> Result<(), String> {
    let options = CompileOptions { verify_each: true, ..program.options() };
    let done = tilec::optimize(&program.source(), &options).map_err(|e| e.to_string())?;
    let [kernel] = &done.kernels[..] else { return Err("not one kernel".to_owned()) };
    let on = |problem: &Problem| -> Result<(Run, Memory, Vec<problem::Tensor>), String> {
        let run = problem.run();
        let memory = Memory::new(&kernel.specialized, &run, Reference::Gemm.overwrites(&run))?;
        let expected = memory.stored(Reference::Gemm.apply(&memory.tensors, &run, &BTreeMap::new())?);
        Ok((run, memory, expected))
    };
    let mut smallest: Vec<&Problem> = problems.iter().collect();
    smallest.sort_by_key(|p| p.work());
    let mut left = INTERPRETED;
    for problem in smallest {
        left -= problem.work();
        if left < 0 {
            break;
        }
        let exact = || -> Result<(), String> {
            let (_, memory, expected) = on(problem)?;
            problem::same(&expected, &memory.interpret(&kernel.kernel, &BTreeMap::new())?)
        };
        exact().map_err(|e| format!("{}: {e}", problem.name))?;
    }
    let reduced = problems.iter().map(Problem::reduced).max_by_key(|p| (p.beta != 0.0, p.work()));
    let simulated = reduced.ok_or("no problem")?;
    let (run, memory, expected) = on(&simulated)?;
    let compiled = tilec::lower(done).map_err(|e| e.to_string())?;
    match Executable::new(&program.name(), &compiled)? {
        Some(executable) => executable.check(&run, &memory.tensors, &expected),
        None => Ok(()),
    }
    .map_err(|e| format!("{}, cut down, on the simulator: {e}", simulated.name))
}

/// The programs of some problems, each with its problems, in a fixed order.
pub fn by_program(problems: Vec<Problem>) -> Vec<(Program, Vec<Problem>)> {
    let programs: BTreeSet<Program> = problems.iter().map(|p| p.program).collect();
    let mut groups: BTreeMap<Program, Vec<Problem>> = programs.into_iter().map(|p| (p, Vec::new())).collect();
    for problem in problems {
        groups.entry(problem.program).or_default().push(problem);
    }
    groups.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_meet_the_preconditions_of_their_programs() {
        let tables: Vec<Problem> = tables().unwrap().into_iter().flat_map(|(_, problems)| problems).collect();
        let reduced = tables.iter().map(Problem::reduced).collect();
        for p in [tables, reduced, orders(), random(600, 7)].iter().flatten() {
            for ((run, ld), align) in p.runs().into_iter().zip(p.ld).zip(p.program.align) {
                assert!(run % align == 0 && ld % align == 0 && ld >= run && run >= 1, "{p:?}");
            }
        }
    }

    #[test]
    fn random_programs_cover_everything() {
        let programs: BTreeSet<Program> = random(64, 1).into_iter().map(|p| p.program).collect();
        assert_eq!(programs.len(), 32);
        for align in [1, 2, 4, 8] {
            for tile in 0..2 {
                assert!(programs.iter().any(|p| p.align == [align; 3] && p.tile == tile), "{align} {tile}");
            }
        }
    }

    #[test]
    fn alignment_is_the_common_power_of_two() {
        assert_eq!(conforming(8, [64, 30, 64].into_iter()), 2);
        assert_eq!(conforming(8, [64, 8].into_iter()), 8);
        assert_eq!(conforming(2, [64, 36].into_iter()), 2);
        assert_eq!(conforming(8, [7].into_iter()), 1);
    }
}
