//! GEMM problems: those of a peer's test suite (`tests/cases`), one in every order, and random ones.
//!
//! A problem is a program (`gemm.tile`, or the relative that it needs, with definitions) and numbers. The programs here and the data
//! are ours; the problems are the peer's. Without a GPU every program is compiled, its last tile form interpreted on the smallest
//! of its problems, and its PTX executed on the simulator on one of them, cut down, on full tiles and on ragged ones; with a GPU,
//! `gpu_check` runs them all.

mod check;
mod table;

use crate::number::Format;
use crate::problem::{Random, Run};
use crate::reference;
pub use check::tests;
use std::collections::{BTreeMap, BTreeSet};
pub use table::tables;
use tilec::{CompileOptions, Target};
use tilec_ir::kernel::ConstValue;

/// The program.
pub const GEMM: &str = include_str!("../../../examples/gemm.tile");
/// Name of the program in messages.
pub(crate) const NAME: &str = "examples/gemm.tile";

/// Which example solves a problem.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Form {
    /// `gemm.tile`.
    Plain,
    /// `gemm_splitk.tile`: sums over slices of the reduction, and a kernel that adds them up.
    Split,
    /// `gemm_batched.tile`.
    Batched,
    /// `gemm_mixed.tile`: A and B have different types.
    Mixed,
}

impl Form {
    /// The file, and its text.
    fn example(self) -> (&'static str, &'static str) {
        match self {
            Form::Plain => (NAME, GEMM),
            Form::Split => ("examples/gemm_splitk.tile", include_str!("../../../examples/gemm_splitk.tile")),
            Form::Batched => ("examples/gemm_batched.tile", include_str!("../../../examples/gemm_batched.tile")),
            Form::Mixed => ("examples/gemm_mixed.tile", include_str!("../../../examples/gemm_mixed.tile")),
        }
    }

    /// As part of a name.
    fn word(self) -> &'static str {
        match self {
            Form::Plain => "",
            Form::Split => "splitk_",
            Form::Batched => "batched_",
            Form::Mixed => "mixed_",
        }
    }
}

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
    /// Which example it is.
    pub form: Form,
    /// Element types of A and B.
    pub inputs: [Format; 2],
    /// Orders of A, B and C.
    pub orders: [Order; 3],
    /// Accumulator.
    pub acc: Format,
    /// Element type of C.
    pub out: Format,
    /// What rows (columns) of A, B and C are promised to be multiples of, in elements.
    pub align: [i64; 3],
    /// Index into [`Program::tiles`]; none: what the compiler chooses for large sizes.
    tile: Option<usize>,
}

impl Program {
    fn tiles(&self) -> Tiles {
        if self.target == Target::Sm90a && self.multiplied() != Format::F64 {
            // Rows of 128 bytes along the reduction.
            let k = 128 / self.multiplied().bytes() as u32;
            return [[128, 128, k, 64, 128], [64, 128, k, 64, 64]];
        }
        match (self.fma, self.multiplied().bytes()) {
            (true, 1) => [[128, 128, 32, 32, 64], [64, 64, 32, 32, 32]],
            (true, 8) => [[64, 64, 16, 32, 32], [32, 64, 16, 32, 32]],
            (true, 4) => [[128, 128, 16, 32, 64], [64, 64, 16, 32, 32]],
            (false, 1) => [[128, 128, 64, 64, 64], [64, 64, 64, 32, 32]],
            (false, 8) => [[64, 64, 16, 32, 32], [32, 64, 16, 32, 32]],
            _ => [[128, 128, 32, 64, 64], [64, 64, 32, 32, 32]],
        }
    }

    /// The type in which elements are multiplied: bytes are converted to the float that they meet.
    fn multiplied(&self) -> Format {
        let [a, b] = self.inputs;
        if matches!(a, Format::Int { .. }) { b } else { a }
    }

    /// Extents of a block's tile.
    fn block(&self) -> [i64; 3] {
        let Some(tile) = self.tile else { return self.chosen() };
        let [bm, bn, bk, _, _] = self.tiles()[tile];
        [bm, bn, bk].map(i64::from)
    }

    /// Extents of the tile that the compiler chooses.
    fn chosen(&self) -> [i64; 3] {
        let done = tilec::optimize(&self.source(), &self.options());
        let parameters = done.ok().and_then(|done| done.kernels.into_iter().next()).map(|k| k.parameters);
        // Where it does not compile, that is what is reported.
        ["BM", "BN", "BK"].map(|name| {
            let found = parameters.iter().flatten().find(|(n, _)| n == name);
            found.map_or(64, |(_, value)| if let ConstValue::Int(n) = value { *n } else { 64 })
        })
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
        let (_, text) = self.form.example();
        // Sums of four bytes are the scalar products of a target without tensor cores for them.
        let named = self.fma && self.multiplied().bytes() > 1;
        if named { text.replace("= mma(", "= mma<fma>(") } else { text.to_owned() }
    }

    /// How to compile it.
    pub fn options(&self) -> CompileOptions {
        let [a, b] = self.inputs;
        let first = if self.form == Form::Mixed { self.multiplied() } else { a };
        let mut defines = vec![("T", first.name().to_owned()), ("Acc", self.acc.name().to_owned())];
        defines.extend([("Out", self.out.name().to_owned()), ("Scale", self.scale().name().to_owned())]);
        match self.form {
            _ if a != b && self.form != Form::Mixed => defines.push(("TB", b.name().to_owned())),
            Form::Plain | Form::Batched => {}
            Form::Mixed => defines.extend(["TA", "TB"].into_iter().zip(self.inputs.map(|t| t.name().to_owned()))),
            // As many slices as possible have something to do.
            Form::Split => defines.extend(self.tile.map(|tile| ("UNIT", self.tiles()[tile][2].to_string()))),
        }
        defines.extend(["LA", "LB", "LC"].into_iter().zip(self.orders.map(|o| o.name().to_owned())));
        defines.extend(["ALIGN_A", "ALIGN_B", "ALIGN_C"].into_iter().zip(self.align.map(|n| n.to_string())));
        if let Some(tile) = self.tile {
            let tile = self.tiles()[tile].map(|n| n.to_string());
            defines.extend(["BM", "BN", "BK", "WM", "WN"].into_iter().zip(tile));
            // A ring of three, where copies run ahead of products in roles of their own.
            let stages = if self.target == Target::Sm90a { "3" } else { "2" };
            defines.extend([("KW", "1"), ("STAGES", stages), ("RASTER", "8")].map(|(n, v)| (n, v.to_owned())));
        }
        CompileOptions {
            source_name: self.form.example().0.to_owned(),
            target: self.target,
            defines: defines.into_iter().map(|(n, v)| (n.to_owned(), v)).collect(),
            ..CompileOptions::default()
        }
    }

    /// Its name.
    pub fn name(&self) -> String {
        let [a, b, c] = self.orders.map(Order::name);
        let input = match self.inputs {
            [a, b] if a == b => a.name().to_owned(),
            [a, b] => format!("{}x{}", a.name(), b.name()),
        };
        let (acc, out, form) = (self.acc.name(), self.out.name(), self.form.word());
        let tile = self.tile.map(|tile| self.tiles()[tile]);
        let tile = tile.map_or("auto".to_owned(), |[bm, bn, bk, wm, wn]| format!("{bm}x{bn}x{bk}_{wm}x{wn}"));
        let [x, y, z] = self.align;
        let kind = if self.fma { "fma" } else { self.target.name() };
        format!("{kind}_{form}{a}-{b}-{c}_{input}-{acc}-{out}_align{x}-{y}-{z}_{tile}")
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
    /// Matrices of a batch.
    pub batch: i64,
    /// Slices of a split reduction.
    pub slices: i64,
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
        Problem { name, program, size, ld, alpha, beta, batch: 1, slices: 1, range, seed }
    }

    /// As a run line.
    pub fn run(&self) -> Run {
        let [m, n, k] = self.size;
        let [a, b, c] = self.ld;
        let mut values = BTreeMap::new();
        let mut set = |name: &str, x: i64| {
            values.insert(name.to_owned(), x as f64);
        };
        ["M", "N", "K"].into_iter().zip([m, n, k]).for_each(|(name, x)| set(name, x));
        match self.program.form {
            Form::Batched => {
                set("Z", self.batch);
                // One matrix follows the other, with the padding of its last row.
                let extents = [(m, k), (k, n), (m, n)];
                for (i, name) in ["A", "B", "C"].into_iter().enumerate() {
                    let (rows, cols) = extents[i];
                    let count = if self.program.orders[i] == Order::Row { rows } else { cols };
                    set(&format!("{name}_ld0"), count * self.ld[i]);
                    set(&format!("{name}_ld1"), self.ld[i]);
                }
            }
            form => {
                ["A_ld", "B_ld", "C_ld"].into_iter().zip([a, b, c]).for_each(|(name, x)| set(name, x));
                if form == Form::Split {
                    set("S", self.slices);
                }
            }
        }
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
        self.resized(self.size.map(|n| if n > 96 { 64 + n % 64 } else { n }))
    }

    /// The same with other extents; padding stays.
    fn resized(&self, size: [i64; 3]) -> Problem {
        let mut other = Problem::new(self.name.clone(), self.program, size, [None; 3], [self.alpha, self.beta]);
        let padding = self.ld.iter().zip(self.runs()).map(|(ld, run)| ld - run);
        other.ld.iter_mut().zip(padding).for_each(|(ld, padding)| *ld += padding);
        // Two matrices of a batch show what more of them would.
        Problem { batch: self.batch.min(2), slices: self.slices, ..other }
    }

    /// What the simulator is given of the problems of a program: full tiles, tiles ragged along every dimension, and the problem that
    /// has most to it when cut down.
    fn simulated(problems: &[Problem]) -> Vec<Problem> {
        let Some(reduced) = problems.iter().map(Problem::reduced).max_by_key(|p| (p.beta != 0.0, p.work())) else {
            return Vec::new();
        };
        let tile = reduced.program.block();
        let [bm, bn, bk] = tile;
        // Two tiles of the reduction; in slices, one for each of some.
        let full = [bm, bn, bk * if reduced.slices > 1 { 3 } else { 2 }];
        let least = reduced.program.align.into_iter().max().unwrap_or(1);
        let ragged = [bm + least, least, bk + least];
        let is_ragged = |p: &Problem| p.size.iter().zip(tile).all(|(n, tile)| n % tile != 0);
        let mut all = vec![reduced.resized(full)];
        if !is_ragged(&reduced) {
            all.push(reduced.resized(ragged));
        }
        all.push(reduced);
        all
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
    let (target, inputs, acc) = (Target::Sm70, [Format::F16; 2], Format::F32);
    Program { target, fma: false, form: Form::Plain, inputs, orders, acc, out: acc, align: [1; 3], tile: Some(0) }
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
            programs.push(Program { acc, out, align: [align; 3], tile: Some((i + i / 4) % 2), ..volta(orders) });
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
        let programs = by_program(tables.clone());
        let reduced = programs.iter().flat_map(|(_, problems)| Problem::simulated(problems)).collect();
        for p in [tables, reduced, orders(), random(600, 7)].iter().flatten() {
            for ((run, ld), align) in p.runs().into_iter().zip(p.ld).zip(p.program.align) {
                assert!(run % align == 0 && ld % align == 0 && ld >= run && run >= 1, "{p:?}");
            }
        }
    }

    #[test]
    fn sums_of_small_floats_fit_what_tensor_cores_keep() {
        let tables = tables().unwrap().into_iter().flat_map(|(_, problems)| problems);
        let of = |p: &Problem| matches!(p.program.inputs[0], Format::E4M3 | Format::E5M2);
        let small: Vec<Problem> = tables.filter(of).collect();
        assert!(small.iter().any(|p| p.range > 1 && p.size[2] > 1000));
        // 14 bits of a part of 128 products, 24 of the sum of the parts.
        for p in small {
            let squared = p.range * p.range;
            assert!(128 * squared < 1 << 13 && p.size[2] * squared < 1 << 24, "{p:?}");
        }
    }

    #[test]
    fn every_program_is_simulated_on_full_tiles_and_on_ragged_ones() {
        let tables = tables().unwrap().into_iter().flat_map(|(_, problems)| problems).collect();
        for (program, problems) in by_program(tables) {
            let simulated = Problem::simulated(&problems);
            let rest = |p: &Problem| -> Vec<i64> { p.size.iter().zip(program.block()).map(|(n, b)| n % b).collect() };
            assert!(simulated.iter().any(|p| rest(p).iter().all(|&r| r == 0)), "{}", program.name());
            assert!(simulated.iter().any(|p| rest(p).iter().all(|&r| r != 0)), "{}", program.name());
        }
    }

    #[test]
    fn random_programs_cover_everything() {
        let programs: BTreeSet<Program> = random(64, 1).into_iter().map(|p| p.program).collect();
        assert_eq!(programs.len(), 32);
        for align in [1, 2, 4, 8] {
            for tile in 0..2 {
                assert!(programs.iter().any(|p| p.align == [align; 3] && p.tile == Some(tile)), "{align} {tile}");
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
