//! GEMM problems: those of a peer's test suite (`tests/cases/volta.csv`), one in every order, and random ones.
//!
//! A problem is a program (`gemm.tile` with definitions) and numbers. The programs here and the data are ours; the
//! problems are the peer's. Without a GPU every program is compiled and its last tile form interpreted on the smallest of
//! its problems; with one, `gpu_check` runs them all.

use crate::number::Format;
use crate::oracle::Problem as Memory;
use crate::problem::{self, Random, Run};
use crate::programs::Test;
use crate::reference::{self, Reference};
use std::collections::{BTreeMap, BTreeSet};
use tilec::{CompileOptions, Target};

/// The table.
const VOLTA: &str = include_str!("../cases/volta.csv");
/// The program.
pub const GEMM: &str = include_str!("../../examples/gemm.tile");
/// Name of the program in messages.
pub(crate) const NAME: &str = "examples/gemm.tile";

/// Block and warp tiles that the programs use: BM, BN, BK, WM, WN.
const TILES: [[u32; 5]; 2] = [[128, 128, 32, 64, 64], [64, 64, 32, 32, 32]];

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
    /// Orders of A, B and C.
    pub orders: [Order; 3],
    /// Accumulator.
    pub acc: Format,
    /// Element type of C.
    pub out: Format,
    /// What rows (columns) are promised to be multiples of, in elements.
    pub align: i64,
    /// Index into [`TILES`].
    tile: usize,
}

impl Program {
    /// How to compile it.
    pub fn options(&self) -> CompileOptions {
        let mut defines = vec![("T", "f16".to_owned()), ("Acc", self.acc.name().to_owned())];
        defines.extend([("Out", self.out.name().to_owned()), ("Scale", "f32".to_owned())]);
        defines.extend(["LA", "LB", "LC"].into_iter().zip(self.orders.map(|o| o.name().to_owned())));
        defines.extend(["BM", "BN", "BK", "WM", "WN"].into_iter().zip(TILES[self.tile].map(|n| n.to_string())));
        defines.push(("ALIGN", self.align.to_string()));
        CompileOptions {
            source_name: NAME.to_owned(),
            target: Target::Sm70,
            defines: defines.into_iter().map(|(n, v)| (n.to_owned(), v)).collect(),
            ..CompileOptions::default()
        }
    }

    /// Its name.
    pub fn name(&self) -> String {
        let [a, b, c] = self.orders.map(Order::name);
        let (acc, out) = (self.acc.name(), self.out.name());
        let [bm, bn, bk, wm, wn] = TILES[self.tile];
        format!("{a}-{b}-{c}_{acc}-{out}_align{}_{bm}x{bn}x{bk}_{wm}x{wn}", self.align)
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
            magnitude(r) * 2.0 <= f64::from(1u32 << precision) && reference::accumulates_exactly(program.acc, k, r)
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
        Run { values, seed: self.seed, range: self.range, tolerance: 0.0 }
    }

    /// Multiply-adds.
    fn work(&self) -> i64 {
        self.size.iter().product()
    }
}

/// The problems of the table.
///
/// # Errors
/// A row cannot be read.
pub fn volta() -> Result<Vec<Problem>, String> {
    let mut lines = VOLTA.lines().filter(|l| !l.starts_with('#'));
    let header: Vec<&str> = lines.next().unwrap_or("").split(',').collect();
    let mut all = Vec::new();
    for line in lines {
        let cells: BTreeMap<&str, &str> = header.iter().copied().zip(line.split(',')).collect();
        let row = Row { line, cells };
        all.extend(row.problems()?);
    }
    Ok(all)
}

struct Row<'a> {
    line: &'a str,
    cells: BTreeMap<&'a str, &'a str>,
}

impl Row<'_> {
    fn cell(&self, name: &str) -> Result<&str, String> {
        self.cells.get(name).copied().ok_or_else(|| format!("no column `{name}` in: {}", self.line))
    }

    fn numbers(&self, name: &str) -> Result<Vec<i64>, String> {
        let parse = |t: &str| t.parse().map_err(|_| format!("`{name}` is not a number in: {}", self.line));
        self.cell(name)?.split(';').filter(|t| !t.is_empty()).map(parse).collect()
    }

    fn order(&self, name: &str) -> Result<Order, String> {
        let name = self.cell(name)?;
        Order::BOTH.into_iter().find(|o| o.name() == name).ok_or_else(|| format!("no order in: {}", self.line))
    }

    fn format(&self, name: &str) -> Result<Format, String> {
        Format::from_name(self.cell(name)?).ok_or_else(|| format!("`{name}` is no type we know in: {}", self.line))
    }

    fn scalar(&self, name: &str) -> Result<f64, String> {
        self.cell(name)?.parse().map_err(|_| format!("`{name}` is not a number in: {}", self.line))
    }

    fn problems(&self) -> Result<Vec<Problem>, String> {
        let orders = [self.order("layout_A")?, self.order("layout_B")?, self.order("layout_C")?];
        let (acc, out) = (self.format("acc")?, self.format("type_C")?);
        let promised = self.numbers("align_A")?.first().copied().unwrap_or(1);
        let tb: Vec<i64> = self.cell("tb_mnk")?.split('x').filter_map(|t| t.parse().ok()).collect();
        let tile = usize::from(tb.iter().take(2).product::<i64>() < 128 * 128);
        let ld = [self.numbers("lda")?, self.numbers("ldb")?, self.numbers("ldc")?].map(|l| l.first().copied());
        let scale = [self.scalar("alpha")?, self.scalar("beta")?];
        let name = format!("{} {}", self.cell("source")?, self.cell("test")?);
        let mut all = Vec::new();
        for &m in &self.numbers("M")? {
            for &n in &self.numbers("N")? {
                for &k in &self.numbers("K")? {
                    // The peer promises alignment per operand, `gemm.tile` for all extents at once.
                    let extents = [m, n, k].into_iter().chain(ld.into_iter().flatten());
                    let align = conforming(promised, extents);
                    let program = Program { orders, acc, out, align, tile };
                    let mut problem = Problem::new(format!("{name} {m}x{n}x{k}"), program, [m, n, k], ld, scale);
                    problem.batch = self.numbers("batch")?.first().copied().unwrap_or(1).unsigned_abs();
                    all.push(problem);
                }
            }
        }
        Ok(all)
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
            let program = Program { orders, acc: format, out: format, align: 8, tile: 0 };
            let name = format!("520x264x136 {}", program.name());
            all.push(Problem::new(name, program, [520, 264, 136], [None; 3], [1.0, 0.0]));
        }
    }
    all
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
            programs.push(Program { orders, acc, out, align, tile: (i + i / 4) % 2 });
        }
    }
    let mut random = Random(seed);
    let problem = |i: usize| {
        let program = programs[i % programs.len()];
        let size = [0; 3].map(|_: i64| {
            let n = random.between(1, 400);
            ((n + program.align - 1) / program.align * program.align).min(400)
        });
        let [m, n, k] = size;
        let [a, b, c] = program.orders;
        let packed = [a.packed(m, k), b.packed(k, n), c.packed(m, n)];
        let ld = packed.map(|p| Some(p + random.of(&[0, 0, 1, 3, 16]) * program.align));
        let scale = [random.between(-3, 3) as f64, random.of(&[0.0, 0.0, 1.0, -1.0, 2.0])];
        let mut problem = Problem::new(format!("random {i} {}", program.name()), program, size, ld, scale);
        problem.seed ^= seed.rotate_left(17) ^ i as u64;
        problem
    };
    (0..count).map(problem).collect()
}

/// Multiply-adds that a program of the table is interpreted for in `cargo test`: the smallest of its problems first.
const INTERPRETED: i64 = 20_000_000;

/// The programs of the table and of random problems, each compiled and interpreted on the smallest of its problems.
///
/// # Errors
/// The table cannot be read.
pub fn tests() -> Result<Vec<Test>, String> {
    let mut tests = Vec::new();
    for (folder, problems) in [("volta", volta()?), ("random", random(320, 11))] {
        for (program, mut problems) in by_program(problems) {
            problems.sort_by_key(Problem::work);
            let mut left = INTERPRETED;
            problems.retain(|p| {
                left -= p.work();
                left > 0
            });
            let test: Test =
                (format!("cases/{folder}/{}", program.name()), Box::new(move || interpret(&program, &problems)));
            tests.push(test);
        }
    }
    Ok(tests)
}

/// Compiles `program` and compares its last tile form with the triple loop on `problems`.
fn interpret(program: &Program, problems: &[Problem]) -> Result<(), String> {
    let options = CompileOptions { verify_each: true, ..program.options() };
    let done = tilec::optimize(GEMM, &options).map_err(|e| e.to_string())?;
    let [kernel] = &done.kernels[..] else { return Err("not one kernel".to_owned()) };
    for problem in problems {
        let run = problem.run();
        let exact = || -> Result<(), String> {
            let memory = Memory::new(&kernel.specialized, &run, Reference::Gemm.overwrites(&run))?;
            let expected = Reference::Gemm.apply(&memory.tensors, &run, &BTreeMap::new())?;
            problem::same(&expected, &memory.interpret(&kernel.kernel, &BTreeMap::new())?)
        };
        exact().map_err(|e| format!("{}: {e}", problem.name))?;
    }
    tilec::lower(done).map(|_| ()).map_err(|e| e.to_string())
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
    fn the_table_is_read_completely() {
        let all = volta().unwrap();
        assert_eq!(VOLTA.lines().filter(|l| l.starts_with("cutlass")).count(), 100);
        assert!(all.len() > 500, "{}", all.len());
        assert!(all.iter().any(|p| p.beta == 2.0) && all.iter().any(|p| p.batch == 3));
    }

    #[test]
    fn problems_meet_the_preconditions_of_their_programs() {
        for p in volta().unwrap().iter().chain(&orders()).chain(&random(600, 7)) {
            let extents = p.size.iter().chain(&p.ld);
            assert!(extents.clone().all(|x| x % p.program.align == 0 && *x >= 1), "{p:?}");
            let [m, n, k] = p.size;
            let [a, b, c] = p.program.orders;
            let packed = [a.packed(m, k), b.packed(k, n), c.packed(m, n)];
            assert!(p.ld.iter().zip(packed).all(|(ld, least)| *ld >= least), "{p:?}");
        }
    }

    #[test]
    fn random_programs_cover_everything() {
        let programs: BTreeSet<Program> = random(64, 1).into_iter().map(|p| p.program).collect();
        assert_eq!(programs.len(), 32);
        for align in [1, 2, 4, 8] {
            for tile in 0..2 {
                assert!(programs.iter().any(|p| p.align == align && p.tile == tile), "{align} {tile}");
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
