//! The measured programs: each variant compiled, and separately for each problem if `auto` parameters are left to the
//! compiler.

use super::product;
use super::protocol::Program;
use crate::compile::options::{CompileOptions, Sizes};
use crate::compile::{Compiled, Diagnostics, compile, machine_code};
use crate::contract::number::{Args, Number};
use crate::measure::bench::model_choice::Chosen;
use crate::measure::bench::options::BenchOptions;
use crate::run::program;
use crate::run::{Selected, select};
use tilec_ir::kernel::Kernel;

/// A program that was compiled.
pub(crate) struct Built {
    pub(crate) compiled: Compiled,
    /// Its description for the measuring process.
    pub(crate) program: Program,
}

/// A variant at a problem.
pub(super) struct Use {
    /// Index into [`Programs::built`].
    pub(super) program: usize,
    /// The chosen values of `auto` parameters, kernel by kernel.
    pub(super) chosen: Vec<Chosen>,
}

/// All programs of a measurement.
pub(super) struct Programs {
    /// No two of them are the same variant with the same text.
    pub(super) built: Vec<Built>,
    /// For every problem the variants, in their order.
    pub(super) uses: Vec<Vec<Use>>,
}

impl Programs {
    /// Compiles them.
    pub(super) fn new(source: &str, options: &BenchOptions) -> Result<Programs, Diagnostics> {
        let mut programs = Programs { built: Vec::new(), uses: options.problems.iter().map(|_| Vec::new()).collect() };
        for variant in &options.variants {
            let first = programs.built.len();
            let build = |compile: &CompileOptions| {
                build(source, compile, options.kernel.as_deref()).map_err(|mut d| {
                    for diagnostic in &mut d.list {
                        diagnostic.notes.push(format!("in the variant `{}`", variant.label));
                    }
                    d
                })
            };
            let (plain, chosen) = build(&variant.options)?;
            // Given sizes are kept. Without a choice, sizes change nothing.
            let each = variant.options.sizes.is_empty() && !chosen.is_empty();
            let names = sizes_of(&plain.compiled);
            let mut plain = Some((plain, chosen));
            for (problem, args) in options.problems.iter().enumerate() {
                let (built, chosen) = if each {
                    let sizes = vec![sizes_in(args, &names)];
                    build(&CompileOptions { sizes, ..variant.options.clone() })?
                } else if let Some(built) = plain.take() {
                    built
                } else {
                    let chosen = programs.uses[0].last().map(|u| u.chosen.clone()).unwrap_or_default();
                    programs.uses[problem].push(Use { program: first, chosen });
                    continue;
                };
                let same = |other: &Built| other.program == built.program;
                let known = programs.built[first..].iter().position(same).map(|i| first + i);
                let program = known.unwrap_or_else(|| {
                    programs.built.push(built);
                    programs.built.len() - 1
                });
                programs.uses[problem].push(Use { program, chosen });
            }
        }
        Ok(programs)
    }

    /// The description for the measuring process.
    pub(super) fn wire(&self) -> Vec<Program> {
        self.built.iter().map(|b| b.program.clone()).collect()
    }
}

/// Names of the sizes of all kernels.
pub(crate) fn sizes_of(program: &Compiled) -> Vec<String> {
    let of = |k: &Kernel| k.sizes.iter().map(|&v| k.values[v].name.clone()).collect::<Vec<_>>();
    program.kernels.iter().flat_map(|k| of(&k.tile.specialized)).collect()
}

/// The sizes among the arguments of a problem, as `--for` gives them.
pub(crate) fn sizes_in(args: &Args, names: &[String]) -> Sizes {
    let size = |(name, value): (&String, &Number)| match value {
        Number::Int(x) if names.contains(name) && (1..1 << 31).contains(x) => Some((name.clone(), *x)),
        _ => None,
    };
    args.iter().filter_map(size).collect()
}

/// Compiles a program, and prints the chosen values.
pub(crate) fn build(
    source: &str,
    options: &CompileOptions,
    kernel: Option<&str>,
) -> Result<(Built, Vec<Chosen>), Diagnostics> {
    let mut compiled = compile(source, options)?;
    machine_code::check_demands(&mut compiled)?;
    let selected = select(&compiled, kernel, &Args::new()).map_err(|list| Diagnostics {
        source: compiled.source.clone(),
        errors: list.len(),
        list,
    })?;
    let contracts = selected.contracts();
    let together = program::Program::new(&selected.name, &contracts);
    let program = Program {
        name: selected.name.clone(),
        temporaries: together.map_or_else(|_| Vec::new(), |p| p.temporaries.into_iter().map(|t| t.name).collect()),
        launches: contracts.into_iter().cloned().collect(),
        ptx: compiled.ptx.clone(),
        product: product_of(&selected),
        promoted: selected.kernels.iter().find_map(|k| k.report.mma.first()?.promoted),
        atom: selected.kernels.iter().find_map(|k| k.report.mma.first()).map_or_else(String::new, |m| m.atom.clone()),
    };
    let chosen = selected.kernels.iter().filter_map(|k| Some(Chosen::new(&k.contract.entry, k.tile.choice.as_ref()?)));
    let chosen = chosen.collect();
    Ok((Built { compiled, program }, chosen))
}

/// The matrix product that a program computes.
pub(super) fn product_of(selected: &Selected<'_>) -> Option<product::Product> {
    let kernels: Vec<&Kernel> = selected.kernels.iter().map(|k| &k.tile.specialized).collect();
    product::Product::of_program(&kernels)
}

#[cfg(test)]
mod tests {
    use super::super::variants;
    use super::*;
    use std::time::Duration;

    const GEMM: &str = include_str!("../../../../examples/gemm.tile");

    fn programs(base: CompileOptions, ladder: bool, sizes: &[i64]) -> Programs {
        let list = if ladder { variants::ladder(&base) } else { variants::variants(&base, &[]).expect("the base") };
        let problem = |n: &i64| ["M", "N", "K"].map(|name| (name.to_owned(), Number::Int(*n))).into();
        let options = BenchOptions {
            kernel: None,
            variants: list,
            problems: sizes.iter().map(problem).collect(),
            cublas: false,
            rounds: 1,
            seconds: 1.0,
            timeout: Duration::from_secs(1),
            seed: 0,
            ladder,
        };
        Programs::new(GEMM, &options).expect("it compiles")
    }

    fn base() -> CompileOptions {
        CompileOptions { target: tilec_ir::target::Target::Sm80, ..CompileOptions::default() }
    }

    #[test]
    fn each_problem_gets_the_tile_chosen_for_it() {
        let all = programs(base(), false, &[128, 8192, 128]);
        let tile = |problem: usize| &all.uses[problem][0].chosen[0];
        assert_ne!(tile(0).values, tile(1).values);
        assert_eq!(tile(0), tile(2));
        assert_eq!(tile(0).sizes["M"], 128);
        assert_eq!(all.built.len(), 2, "the same text is loaded once");
        // `--for` and definitions fix it.
        let given = CompileOptions { sizes: vec![vec![("M".to_owned(), 8192)]], ..base() };
        let all = programs(given, false, &[128, 256]);
        assert_eq!((all.built.len(), &all.uses[0][0].chosen), (1, &all.uses[1][0].chosen));
        assert_eq!(all.uses[0][0].chosen[0].sizes["M"], 8192);
        let fixed = ["BM", "BN", "BK", "WM", "WN", "KW", "STAGES", "RASTER"];
        let values = ["64", "64", "32", "32", "32", "1", "2", "1"];
        let defines = fixed.iter().zip(values).map(|(n, v)| ((*n).to_owned(), v.to_owned())).collect();
        let all = programs(CompileOptions { defines, ..base() }, false, &[128, 256]);
        assert!(all.built.len() == 1 && all.uses[1][0].chosen.is_empty());
    }

    #[test]
    fn all_rungs_have_the_tile_of_the_whole_pipeline() {
        for n in [256, 4096] {
            let whole = programs(base(), false, &[n]);
            let rungs = programs(base(), true, &[n]);
            for rung in &rungs.uses[0] {
                assert_eq!(rung.chosen, whole.uses[0][0].chosen);
            }
        }
    }
}
