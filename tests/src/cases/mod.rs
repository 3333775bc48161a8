//! GEMM problems: those of a peer's test suite (`tests/cases`), one in every order, and random ones.
//!
//! A problem is a program (`gemm.tile`, or a similar one, with definitions) and numbers. The programs and the data are ours. The
//! problems are the peer's. Without a GPU
//!
//! * every program is compiled;
//! * its last tile form is interpreted on the smallest of its problems;
//! * its PTX is executed on the simulator on one problem, made smaller, with full and with ragged tiles.
//!
//! With a GPU, `gpu_check` runs all problems.

mod check;
mod drawn;
mod problem;
mod program;
mod table;

pub use check::tests;
pub use drawn::{by_program, orders, random};
pub use problem::Problem;
pub(crate) use program::NAME;
pub use program::{Form, GEMM, Order, Program};
pub use table::tables;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Format;
    use std::collections::BTreeSet;

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
}
