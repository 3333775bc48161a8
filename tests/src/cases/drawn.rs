//! Problems that no table has: one in every order, and random ones.

use super::problem::Problem;
use super::program::{Form, Order, Program};
use crate::number::Format;
use crate::problem::Random;
use std::collections::{BTreeMap, BTreeSet};
use tilec::Target;

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

/// `count` random problems over a fixed set of programs: every order with every promised alignment; types and tiles
/// rotate.
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
