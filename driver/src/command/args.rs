//! The command line.

use crate::Target;
use crate::command::call::Call;
use crate::command::failure::ErrorFormat;
use crate::compile::Sizes as SizeList;
use crate::simulate::Allowance;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use tilec_passes::choose::{CARDS, Card};

/// Values of sizes: one `--for`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sizes(pub(crate) SizeList);

/// Compiles tile programs to PTX.
#[derive(Parser, Debug)]
#[command(name = "tilec", version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "\
Exit status: 0 success, 1 diagnostics, 2 usage, 101 a bug of tilec.
A file with the name of a subcommand needs a path: `tilec ./run`.

  tilec examples/gemm.tile -o gemm.ptx
  tilec examples/gemm.tile --print-after swizzle
  tilec run examples/gemm.tile M=520 N=264 K=136 --check
  tilec bench examples/gemm.tile --variant target=sm_75/sm_80 M=N=K=1024,4096
  tilec tune examples/gemm.tile --target sm_80 M=N=K=4096")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) build: Build,
}

/// What else there is to do.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Compiles, runs on a GPU or the simulator, and compares with the interpreter
    Run(Box<Run>),
    /// Measures variants of a kernel on a GPU, against each other and against cuBLAS
    Bench(Box<Bench>),
    /// Measures values of `auto` parameters on a GPU, and writes the program with the fastest values
    Tune(Box<Tune>),
    /// Writes a page (HTML, one file) that shows source, passes, PTX and machine code of a program side by side
    Xray(Box<Xray>),
    /// Explains which decisions of the compiler led to a line, an element, registers or barriers, and what would change them
    Why(Box<WhyArgs>),
    /// Formats source files: indentation, spaces, comments; keeps line breaks
    Fmt(Fmt),
    /// Runs a language server (LSP) on standard input and output (docs/editor.md)
    Lsp(Lsp),
    /// Lists the driver, card, assembler and cuBLAS that are found, and what each adds
    Doctor,
    /// Lists the targets and their limits
    Targets,
    /// Explains a diagnostic code, pass, remark, operator, target, word of the language or term; without an argument, lists them
    Explain {
        /// Such as E0102, vectorize, ceildiv, sm_70, require, slot, bank conflict
        #[arg(allow_hyphen_values = true)]
        word: Vec<String>,
    },
    /// Writes `tilec_bundle.h`, the C and C++ header that launches kernels from bundles (docs/c.md)
    BundleHeader {
        /// Output file; standard output by default
        #[arg(short, long, value_name = "OUT")]
        output: Option<PathBuf>,
    },
    /// Launches for a parent process
    #[command(name = "__launch", hide = true)]
    Launch,
    /// Measures for a parent process
    #[command(name = "__bench", hide = true)]
    BenchServe,
    /// Panics, so that tests can see what a bug looks like
    #[command(name = "__bug", hide = true)]
    Bug,
}

/// Arguments of a compilation.
#[derive(Args, Debug)]
pub(crate) struct Build {
    /// Source file; `-` is standard input
    #[arg(value_name = "IN.tile", required = true)]
    pub(crate) input: Option<PathBuf>,
    /// Output file; `-`, and the default, is standard output
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) program: Program,
    /// Variants in one file: compile-time parameters, `/` separates alternatives (ALIGN=8/1). The first whose preconditions
    /// hold is launched. May be repeated
    #[arg(long, value_name = "NAME=VALUE,..")]
    pub(crate) variant: Vec<String>,
    /// Targets of one C header (`--emit c`) or bundle; a device loads the newest that it supports
    #[arg(long, value_name = "CHIP,..", value_delimiter = ',', value_parser = target_parser(), conflicts_with = "target")]
    pub(crate) targets: Vec<Target>,
    /// Kind of output [default: by the suffix of OUT (.ptx, .tile, .json: launch, .h: c, .cubin, .sass, .tilec: bundle), else ptx]
    #[arg(long, value_name = "WHAT")]
    pub(crate) emit: Option<Emit>,
    /// Adds machine code to a bundle (needs ptxas for every target)
    #[arg(long)]
    pub(crate) cubin: bool,
    /// Prints the program after this pass, `parse` or `all`, to standard output (to standard error if the result goes there).
    /// Without --output and --emit nothing else is written
    #[arg(long, value_name = "PASS", value_delimiter = ',')]
    pub(crate) print_after: Vec<String>,
}

/// Arguments of a run.
#[derive(Args, Debug)]
pub(crate) struct Run {
    /// Source file, or PTX of any compiler (with --launch); `-` is a source on standard input
    #[arg(value_name = "IN.tile|IN.ptx")]
    pub(crate) input: PathBuf,
    /// Sizes, strides and scalars of the kernel. Strides default to packed tensors, scalars to their defaults
    #[arg(value_name = "NAME=VALUE", value_parser = binding, allow_negative_numbers = true)]
    pub(crate) values: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) program: Program,
    /// Variants in one file: compile-time parameters, `/` separates alternatives (ALIGN=8/1). The first whose preconditions
    /// hold is launched. May be repeated
    #[arg(long, value_name = "NAME=VALUE,..")]
    pub(crate) variant: Vec<String>,
    /// Launch contract of the PTX, from --emit launch or written by hand (docs/launch-contract.md)
    #[arg(long, value_name = "FILE.json")]
    pub(crate) launch: Option<PathBuf>,
    /// Elements of a tensor: raw little-endian bytes in row-major order, or numbers (offsets=[0,37,150]); otherwise random
    #[arg(long = "in", value_name = "NAME=FILE|[..]", value_parser = binding)]
    pub(crate) inputs: Vec<(String, String)>,
    /// Writes the elements of a tensor to a file after the run, in the same format
    #[arg(long = "out", value_name = "NAME=FILE", value_parser = binding)]
    pub(crate) outputs: Vec<(String, String)>,
    /// Puts an output at the address of an input (D=C), if the launch contract allows it
    #[arg(long = "alias", value_name = "NAME=NAME", value_parser = binding)]
    pub(crate) aliases: Vec<(String, String)>,
    /// Kernel or sequence of the file [default: the only sequence, or the only kernel]
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: Option<String>,
    /// Where to run
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: Device,
    /// Compares the result with the interpreter: whole numbers exactly, others within a computed error bound
    #[arg(long)]
    pub(crate) check: bool,
    /// Seed of the inputs, and of the simulator's scheduler
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Elements of inputs [default: normal, with --check int]
    #[arg(long, value_name = "KIND")]
    pub(crate) data: Option<DataKind>,
    /// Number of timed launches; the median is printed
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) repeat: u32,
    /// Time limit of the run in seconds, including the preparation of tensors, without the comparison (--check)
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
    /// Prints the simulator's counts, line by line; `json`: all counts to standard output, other output to standard error
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "table")]
    pub(crate) counters: Option<CountersForm>,
    #[command(flatten)]
    pub(crate) sim: Sim,
}

/// How counts are printed.
#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum CountersForm {
    /// A table
    Table,
    /// Every line and every instruction of the PTX
    Json,
}

/// Arguments of a page.
#[derive(Args, Debug)]
pub(crate) struct Xray {
    /// Source file; `-` is standard input
    #[arg(value_name = "IN.tile")]
    pub(crate) input: PathBuf,
    /// Sizes that `auto` parameters are chosen for, as with one --for
    #[arg(value_name = "NAME=SIZE", value_parser = sizes, conflicts_with = "sizes")]
    pub(crate) values: Vec<Sizes>,
    #[command(flatten)]
    pub(crate) program: Program,
    /// Variants in one file: compile-time parameters, `/` separates alternatives (ALIGN=8/1). May be repeated
    #[arg(long, value_name = "NAME=VALUE,..")]
    pub(crate) variant: Vec<String>,
    /// Output file; `-`, and the default, is standard output
    #[arg(short, long, value_name = "OUT.html")]
    pub(crate) output: Option<PathBuf>,
    /// A measurement to compare with the prediction: the output of `tilec bench --format json`
    #[arg(long, value_name = "FILE.json")]
    pub(crate) measured: Option<PathBuf>,
    /// A second variant to compare with: compile-time parameters, sizes (M=4096), or another target (target=sm_80)
    #[arg(long, value_name = "NAME=VALUE", value_delimiter = ',', value_parser = binding)]
    pub(crate) compare: Vec<(String, String)>,
    /// Kind of output: html, json (the data of the page), svg:NAME (one picture; svg:list lists them), or svg:NAME@N (its step N)
    #[arg(long, value_name = "WHAT", default_value = "html", value_parser = xray_emit)]
    pub(crate) emit: XrayEmit,
}

/// What a page is written as.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum XrayEmit {
    /// The page.
    Html,
    /// The data of the page.
    Json,
    /// A picture, by its name; `list`: the names.
    Svg(String),
}

/// Arguments of a question.
#[derive(Args, Debug)]
pub(crate) struct WhyArgs {
    /// Source file; `-` is standard input
    #[arg(value_name = "IN.tile")]
    pub(crate) input: PathBuf,
    /// The target, if --target is absent; a place: source:33, PASS:20, ptx:412, sass:300, element:A[3,5], register, barrier;
    /// and sizes (M=N=K=4096), as with one --for. Without a place: what costs time
    #[arg(value_name = "TARGET|PLACE|NAME=SIZE")]
    pub(crate) words: Vec<String>,
    /// Explains why the code does not have a property: `wgmma`, `tma`, `pipelined`, `vectorised`, `resident 2` or another
    /// property of `require` (docs/language.md)
    #[arg(long, value_name = "PROPERTY")]
    pub(crate) not: Option<String>,
    #[command(flatten)]
    pub(crate) program: Program,
    /// Kind of output
    #[arg(long, value_name = "WHAT", default_value = "text")]
    pub(crate) emit: WhyEmit,
}

/// What an answer is written as.
#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum WhyEmit {
    /// Text
    Text,
    /// The answer as data
    Json,
}

/// Arguments of formatting.
#[derive(Args, Debug)]
pub(crate) struct Fmt {
    /// Source files to rewrite in place; `-` formats standard input to standard output
    #[arg(value_name = "FILE.tile", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Writes nothing; lists the files that would change, with the first line that differs, and fails if there are any
    #[arg(long)]
    pub(crate) check: bool,
    /// Format of diagnostics
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) error_format: ErrorFormat,
}

/// Arguments of the language server.
#[derive(Args, Debug)]
pub(crate) struct Lsp {
    /// The target of background compilation, if neither the program nor the editor's settings name one
    #[arg(long, value_name = "CHIP", default_value = "sm_70", value_parser = target_parser())]
    pub(crate) target: Target,
    /// Ignored; some editors pass it. The server always uses standard input and output
    #[arg(long, hide = true)]
    pub(crate) stdio: bool,
}

/// Arguments of a measurement.
#[derive(Args, Debug)]
pub(crate) struct Bench {
    /// Source file; `-` is standard input
    #[arg(value_name = "IN.tile")]
    pub(crate) input: PathBuf,
    /// Sizes, strides and scalars: lists (M=512,1024), ranges (K=1024:8192:*2, K=64:256:+64), other names (N=M, M=N=K=4096),
    /// rows (M,N,K=16x4096x4096,512x512x512). Several arguments give all combinations
    #[arg(value_name = "NAME=VALUES", allow_negative_numbers = true)]
    pub(crate) values: Vec<String>,
    #[command(flatten)]
    pub(crate) program: Program,
    /// A program to measure: compile-time parameters, `target=`, `off=PASS+PASS`, `on=PASS`; `/` separates alternatives
    /// (BM=64/128,target=sm_80). May be repeated
    #[arg(long, value_name = "NAME=VALUE,..")]
    pub(crate) variant: Vec<String>,
    /// Measures the effect of passes: first without passes, then with one more pass at a time
    #[arg(long)]
    pub(crate) ablate: bool,
    /// Kernel or sequence of the file [default: the only sequence, or the only kernel]
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: Option<String>,
    /// Library to compare with, for matrix products
    #[arg(long, value_name = "LIBRARY", default_value = "cublas")]
    pub(crate) against: Against,
    /// Rounds per problem, over which medians are taken
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Approximate seconds of measurement per problem
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    pub(crate) seconds: f64,
    /// Format of the result
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub(crate) format: BenchFormat,
    /// Seed of the inputs
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Time limit for a problem in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
}

/// Arguments of a search.
#[derive(Args, Debug)]
pub(crate) struct Tune {
    /// Source file; `-` is standard input
    #[arg(value_name = "IN.tile")]
    pub(crate) input: PathBuf,
    /// Sizes, strides and scalars, as for `tilec bench`; several problems are tuned one after the other
    #[arg(value_name = "NAME=VALUES", allow_negative_numbers = true)]
    pub(crate) values: Vec<String>,
    /// Output: a file, a directory, or `-` for standard output [default: IN-M4096-N4096-K4096.tile in the current directory, by
    /// the sizes]
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) program: Program,
    /// Kernel or sequence of the file [default: the only sequence, or the only kernel]
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: Option<String>,
    /// Seconds of search for each problem
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds)]
    pub(crate) seconds: f64,
    /// A file or directory of results that are not measured again [default: tilec/tune in the user's cache directory]
    #[arg(long, value_name = "PATH", conflicts_with = "no_cache")]
    pub(crate) cache: Option<PathBuf>,
    /// Measures everything again, and stores no results
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Format of the result
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub(crate) format: BenchFormat,
    /// Seed of the inputs
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Time limit for a measurement in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) timeout: u64,
}

/// What to compare with.
#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Against {
    /// The fastest algorithm of cuBLAS, if the library is found
    Cublas,
    /// Nothing
    None,
}

/// How a measurement is written.
#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum BenchFormat {
    /// A table
    Table,
    /// Every round
    Json,
}

/// Where to run.
#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Device {
    /// A GPU if there is one, else the simulator
    Auto,
    /// The first CUDA device
    Cuda,
    /// The simulator: the PTX executed on the CPU, every access checked
    Sim,
    /// The interpreter: the reference semantics of the program, without PTX
    Interp,
}

/// How the simulator executes; any of these makes `--device auto` take it.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Simulator")]
pub(crate) struct Sim {
    /// Instructions that each block may execute, counted by warp [default: 268435456]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) fuel: Option<u64>,
    /// Order of the blocks [default: forward]
    #[arg(long, value_name = "ORDER")]
    pub(crate) sim_order: Option<SimOrder>,
    /// When asynchronous copies land: as early or as late as the rules allow; `all` runs all modes and compares the results
    /// [default: all]
    #[arg(long, value_name = "WHEN")]
    pub(crate) sim_landing: Option<SimLanding>,
    /// Host threads that share the blocks [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) sim_threads: Option<u16>,
    /// Minimal alignment of tensors in bytes, if their declarations promise less (addresses are odd multiples); allocations on a GPU
    /// have 256 [default: 1]
    #[arg(long, value_name = "BYTES", value_parser = alignment)]
    pub(crate) sim_align: Option<u32>,
    /// An error to report as a warning; docs/launch-contract.md explains each. May be repeated
    #[arg(long, value_name = "NAME", value_parser = allowance)]
    pub(crate) allow: Vec<Allowance>,
    /// GPU generation whose tensor-core arithmetic is reproduced [default: that of the target]
    #[arg(long, value_name = "GENERATION")]
    pub(crate) imitate: Option<GpuGeneration>,
}

/// Order of the blocks.
#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SimOrder {
    /// By increasing index
    Forward,
    /// By decreasing index
    Reverse,
    /// Shuffled by --seed
    Seeded,
}

/// When asynchronous copies read and write.
#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SimLanding {
    /// Read and write when they are issued
    Early,
    /// Read when they are issued, write when a thread waits for them
    Late,
    /// Read and write when a thread waits for them; until then the destination keeps its old value
    LateReads,
    /// Read and write when a thread waits for them; until then the destination is undefined
    Latest,
    /// A run in each mode, if the kernel has asynchronous copies
    All,
}

/// A generation of GPUs.
#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum GpuGeneration {
    /// sm_70
    Volta,
    /// sm_75
    Turing,
    /// sm_80 to sm_87
    Ampere,
    /// sm_89
    Ada,
    /// sm_90
    Hopper,
}

/// What inputs hold.
#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum DataKind {
    /// Whole numbers from -4 to 4 (-2 to 2 where f16 accumulates)
    Int,
    /// Normally distributed, variance 1
    Normal,
}

/// What to compile for and how; the same for compiling and running.
#[derive(Args, Debug)]
pub(crate) struct Program {
    /// Target, see `tilec targets` [default: sm_70; for `run`, `bench` and `tune` that of the GPU, if there is one]
    #[arg(long, value_parser = target_parser())]
    pub(crate) target: Option<Target>,
    /// Sets a compile-time parameter
    #[arg(short = 'D', long = "define", value_name = "NAME=VALUE", value_delimiter = ',', value_parser = binding)]
    pub(crate) defines: Vec<(String, String)>,
    /// Chooses `auto` parameters for these sizes (M=N=4096,K=512); other sizes are assumed to be large. May be repeated: the
    /// output has a variant for each choice, and the launch contract a rule that selects one
    #[arg(long = "for", value_name = "NAME=SIZE,..", value_parser = sizes)]
    pub(crate) sizes: Vec<Sizes>,
    /// Compiles for the case that these sizes are 0, as `where K == 0` does; other sizes are at least 1
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) zero: Vec<String>,
    /// The card for which `auto` parameters are chosen [default: a typical card of the target]
    #[arg(long, value_name = "NAME", value_parser = card_parser())]
    pub(crate) card: Option<&'static Card>,
    /// Switches a pass off: it makes the simplest decisions; `all`: every pass that can be switched off
    #[arg(long, value_name = "PASS", value_delimiter = ',')]
    pub(crate) disable_pass: Vec<String>,
    /// Keeps a pass on under `--disable-pass all`
    #[arg(long, value_name = "PASS", value_delimiter = ',')]
    pub(crate) enable_pass: Vec<String>,
    /// Shows the remarks of passes: what they did, or declined to do and why
    #[arg(long)]
    pub(crate) remarks: bool,
    /// Makes remarks of this kind errors; `all`: remarks of any kind
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub(crate) deny: Vec<String>,
    /// Fails if the code does not meet a demand: `no spills`, `wgmma`, `registers <= 168` and others (docs/language.md). May be repeated
    #[arg(long, value_name = "DEMAND")]
    pub(crate) require: Vec<String>,
    /// Format of diagnostics
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) error_format: ErrorFormat,
}

/// What to write.
#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Emit {
    /// PTX
    Ptx,
    /// The program after all passes
    Tile,
    /// The launch contract, JSON
    Launch,
    /// A C header with PTX and a launcher of each kernel, for `--target` or for all of `--targets` (docs/c.md)
    C,
    /// A report on every copy, access and product, JSON
    Report,
    /// The machine code with its source lines (needs ptxas and nvdisasm)
    Sass,
    /// The machine code (needs ptxas)
    Cubin,
    /// PTX and launch contracts for several targets (--targets) in one file (docs/bundle.md)
    Bundle,
}

impl Cli {
    /// Parses the command line; ends the process with help or an error where clap does.
    pub(crate) fn new(call: &Call) -> Cli {
        let args = joined(call.words());
        Cli::try_parse_from(&args).unwrap_or_else(|error| {
            // `tilec rnu f.tile` reads as a file with one argument too many.
            let word = args.get(1).map(std::path::Path::new);
            if error.use_stderr()
                && let Some((word, meant)) = word.and_then(|w| Some((w, mistyped_command(w)?)))
            {
                let word = word.display();
                let message = format!("there is no subcommand and no file `{word}`; did you mean `{meant}`?");
                Cli::command().error(clap::error::ErrorKind::InvalidSubcommand, message).exit()
            }
            // `tilec f.tile M=128` compiles, and has nothing to do with sizes.
            if error.use_stderr()
                && let Some(launched) = for_a_launch(&args)
            {
                let message = format!(
                    "`{launched}` is for a launch: `tilec run FILE {launched} ..`, `tilec bench` or `tilec tune`"
                );
                Cli::command().error(clap::error::ErrorKind::ArgumentConflict, message).exit()
            }
            if let Some(emit) = error.use_stderr().then(|| for_a_page(&args)).flatten() {
                let file = args.get(1).map(|a| a.to_string_lossy()).unwrap_or_default();
                let message =
                                        format!("`--emit {emit}` is an option of `tilec xray`: `tilec xray {file} --emit {emit}`; `--emit svg:list` lists the pictures");
                Cli::command().error(clap::error::ErrorKind::ArgumentConflict, message).exit()
            }
            error.exit()
        })
    }

    /// How this command shows diagnostics.
    pub(crate) fn error_format(&self) -> ErrorFormat {
        match &self.command {
            Some(Command::Run(run)) => run.program.error_format,
            Some(Command::Bench(bench)) => bench.program.error_format,
            Some(Command::Tune(tune)) => tune.program.error_format,
            Some(Command::Xray(xray)) => xray.program.error_format,
            Some(Command::Why(why)) => why.program.error_format,
            Some(Command::Fmt(fmt)) => fmt.error_format,
            Some(
                Command::Lsp(_)
                | Command::Doctor
                | Command::Targets
                | Command::Explain { .. }
                | Command::BundleHeader { .. }
                | Command::Launch
                | Command::BenchServe
                | Command::Bug,
            )
            | None => self.build.program.error_format,
        }
    }
}

/// The first word of a command line without subcommand that only those have: a size or scalar, or an option of `run`.
fn for_a_launch(args: &[OsString]) -> Option<String> {
    let mut words = args.iter().skip(1).map(|a| a.to_string_lossy());
    let file = words.next()?;
    let cli = Cli::command();
    if file.starts_with('-') || cli.find_subcommand(file.as_ref()).is_some() {
        return None;
    }
    let of_run = |word: &str| {
        let long = word.strip_prefix("--").map(|w| w.split('=').next().unwrap_or(w));
        let has = |c: &clap::Command| long.is_some_and(|l| c.get_arguments().any(|a| a.get_long() == Some(l)));
        cli.find_subcommand("run").is_some_and(has) && !has(&cli)
    };
    let mut value = false;
    for word in words {
        let is_value = std::mem::replace(&mut value, word.starts_with('-') && !word.contains('='));
        if of_run(&word) || (!is_value && !word.starts_with('-') && word.contains('=')) {
            return Some(word.into_owned());
        }
    }
    None
}

/// The picture or page that a command line without subcommand requests: `--emit svg:NAME`, `--emit html`.
fn for_a_page(args: &[OsString]) -> Option<String> {
    let words: Vec<_> = args.iter().skip(1).map(|a| a.to_string_lossy()).collect();
    let file = words.first()?;
    if file.starts_with('-') || Cli::command().find_subcommand(file.as_ref()).is_some() {
        return None;
    }
    let after = words.windows(2).filter(|w| w[0] == "--emit").map(|w| w[1].to_string());
    let joined = words.iter().filter_map(|w| w.strip_prefix("--emit=").map(str::to_owned));
    after.chain(joined).find(|what| what == "html" || what == "svg" || what.starts_with("svg:"))
}

/// The arguments with `--counters FORM` as `--counters=FORM`: the form may be left out, and what follows is then not one.
fn joined(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut out: Vec<OsString> = Vec::new();
    for arg in args {
        let form = arg.to_str().is_some_and(|a| <CountersForm as ValueEnum>::from_str(a, false).is_ok());
        match out.last_mut() {
            Some(last) if form && last == "--counters" => {
                last.push("=");
                last.push(arg);
            }
            _ => out.push(arg),
        }
    }
    out
}

/// The subcommand that is meant by a word that is not a file and looks like none.
pub(crate) fn mistyped_command(input: &std::path::Path) -> Option<String> {
    let word = input.to_str().filter(|w| w.chars().all(|c| c.is_ascii_alphabetic()) && !input.exists())?;
    // A subcommand as it should be is not mistyped, whatever is wrong after it.
    let command = Cli::command();
    let shown = command.get_subcommands().filter(|c| !c.is_hide_set()).map(|c| c.get_name());
    let known: Vec<&str> = shown.chain(["help"]).collect();
    if known.contains(&word) { None } else { crate::explain::nearest(word, known).map(str::to_owned) }
}

fn target_parser() -> impl TypedValueParser<Value = Target> {
    PossibleValuesParser::new(Target::ALL.iter().map(|t| t.name()))
        .map(|name| Target::from_name(&name).expect("only names of targets pass"))
}

fn card_parser() -> impl TypedValueParser<Value = &'static Card> {
    PossibleValuesParser::new(CARDS.iter().map(|c| c.name))
        .map(|name| Card::from_name(&name).expect("only names of cards pass"))
}

/// `html`, `json`, `svg:NAME`.
fn xray_emit(text: &str) -> Result<XrayEmit, String> {
    match (text, text.strip_prefix("svg:")) {
        ("html", _) => Ok(XrayEmit::Html),
        ("json", _) => Ok(XrayEmit::Json),
        (_, Some(name)) if !name.is_empty() => Ok(XrayEmit::Svg(name.to_owned())),
        _ => Err("there are `html`, `json` and `svg:NAME`; `svg:list` lists the names".to_owned()),
    }
}

/// `M=4096,N=512`, `M=N=K=4096`.
pub(crate) fn sizes(text: &str) -> Result<Sizes, String> {
    let mut sizes = SizeList::new();
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let parts: Vec<&str> = item.split('=').map(str::trim).collect();
        let (Some((value, names)), true) = (parts.split_last(), parts.iter().all(|p| !p.is_empty())) else {
            return Err(format!("expected NAME=SIZE, found `{item}`"));
        };
        let size = value.parse().ok().filter(|size| (1..1i64 << 31).contains(size));
        let (Some(size), false) = (size, names.is_empty()) else {
            return Err(format!("expected NAME=SIZE with a size from 1 to 2^31 - 1, found `{item}`"));
        };
        for &name in names {
            if sizes.iter().any(|(other, _)| other == name) {
                return Err(format!("`{name}` has two sizes"));
            }
            sizes.push((name.to_owned(), size));
        }
    }
    if sizes.is_empty() { Err("expected NAME=SIZE,..".to_owned()) } else { Ok(Sizes(sizes)) }
}

/// A time that measuring may take.
fn seconds(text: &str) -> Result<f64, String> {
    let ok = |x: &f64| (0.01..=3600.0).contains(x);
    text.parse().ok().filter(ok).ok_or_else(|| "expected seconds from 0.01 to 3600".to_owned())
}

/// What a tensor may be aligned to.
fn alignment(text: &str) -> Result<u32, String> {
    let ok = |x: &u32| x.is_power_of_two() && *x <= 4096;
    text.parse().ok().filter(ok).ok_or_else(|| "expected a power of two up to 4096".to_owned())
}

/// An error that may pass, by its name.
fn allowance(text: &str) -> Result<Allowance, String> {
    let names = || Allowance::ALL.iter().map(|a| format!("`{}`", a.name())).collect::<Vec<_>>().join(", ");
    let found = Allowance::ALL.into_iter().find(|a| a.name() == text);
    found.ok_or_else(|| format!("what can be allowed: {}", names()))
}

/// `NAME=VALUE`.
pub(crate) fn binding(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_form_of_counters_may_be_left_out() {
        let counters = |args: &[&str]| {
            let args = ["tilec", "run"].iter().chain(args).map(OsString::from);
            match Cli::try_parse_from(joined(args)).expect("parses").command {
                Some(Command::Run(run)) => (run.counters, run.values.len()),
                _ => panic!("not a run"),
            }
        };
        assert_eq!(counters(&["x.tile", "--counters", "M=1"]), (Some(CountersForm::Table), 1));
        assert_eq!(counters(&["--counters", "x.tile", "M=1"]), (Some(CountersForm::Table), 1));
        assert_eq!(counters(&["x.tile", "--counters", "json", "M=1"]), (Some(CountersForm::Json), 1));
        assert_eq!(counters(&["x.tile", "M=1", "--counters=json"]), (Some(CountersForm::Json), 1));
        assert_eq!(counters(&["x.tile"]), (None, 0));
    }

    #[test]
    fn what_only_a_launch_takes_is_told_from_what_compiling_does() {
        let found = |line: &str| for_a_launch(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(found("tilec f.tile M=128 -o x.ptx").as_deref(), Some("M=128"));
        assert_eq!(found("tilec f.tile --check").as_deref(), Some("--check"));
        assert_eq!(found("tilec f.tile -D BM=64 --for M=1 --emit=ptx"), None);
        assert_eq!(found("tilec run f.tile M=1 --check"), None);
    }

    #[test]
    fn pictures_are_asked_of_xray() {
        let found = |line: &str| for_a_page(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(found("tilec f.tile --emit svg:smem").as_deref(), Some("svg:smem"));
        assert_eq!(found("tilec f.tile --target sm_80 --emit=html").as_deref(), Some("html"));
        assert_eq!(found("tilec f.tile --emit ptx"), None);
        assert_eq!(found("tilec xray f.tile --emit svg:smem"), None);
    }

    #[test]
    fn lists_and_repetition_are_the_same() {
        let defines = |args: &[&str]| {
            Cli::try_parse_from([&["tilec", "x.tile"], args].concat()).expect("parses").build.program.defines
        };
        let expected = [("BM".to_owned(), "64".to_owned()), ("T".to_owned(), "f16".to_owned())];
        assert_eq!(defines(&["-D", "BM=64,T=f16"]), expected);
        assert_eq!(defines(&["-DBM=64", "-D", "T=f16"]), expected);
    }
}
