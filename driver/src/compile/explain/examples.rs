//! An example of every message: a program, and the command that has it say so. `tilec explain` shows them; a test runs all of them.

use super::super::options::CompileOptions;
use tilec_ir::target::Target;
use tilec_passes::choose::Card;

/// An example of a message.
#[derive(Copy, Clone, Debug)]
pub struct Example {
    /// The code, or the kind of the remark.
    pub of: &'static str,
    /// What follows the name of the file on the command line; a subcommand in front (`run`, `tune`) is before it.
    pub args: &'static str,
    /// The program.
    pub program: &'static str,
    /// Of PTX how it is launched; the program is not a tile program then.
    pub launch: Option<&'static str>,
    /// A variable of the environment that is set for the command: `NAME=VALUE`; empty: none.
    pub variable: &'static str,
    /// A program that is too long to show, or no text, is what this command of a shell writes.
    pub made: Option<&'static str>,
}

impl Example {
    /// What its files are called: the program, and how it is launched.
    pub fn files(&self, name: &str) -> (String, String) {
        let kind = if self.launch.is_some() { "ptx" } else { "tile" };
        (format!("{name}.{kind}"), format!("{name}.json"))
    }

    /// The words of the command, with the program and its launch in files of this name.
    pub fn words(&self, name: &str) -> Vec<String> {
        let (file, launch) = self.files(name);
        let mut words: Vec<String> = self.args.split_whitespace().map(str::to_owned).collect();
        let behind = usize::from(words.first().is_some_and(|w| !w.starts_with('-')));
        let files =
            std::iter::once(file).chain(self.launch.iter().flat_map(|_| ["--launch".to_owned(), launch.clone()]));
        words.splice(behind..behind, files);
        words
    }

    /// The options, where compiling alone says it.
    pub fn options(&self) -> Option<CompileOptions> {
        if self.made.is_some() || !self.variable.is_empty() {
            return None;
        }
        let mut options = CompileOptions { source_name: "k.tile".to_owned(), ..CompileOptions::default() };
        let mut words = self.args.split_whitespace();
        while let Some(word) = words.next() {
            let value = words.next()?;
            match word {
                "--target" => options.target = Target::from_name(value)?,
                "--card" => options.card = Some(Card::from_name(value)?),
                // `ALIGN=8/1`: one variant for each value.
                "--variant" => {
                    let (name, values) = value.split_once('=')?;
                    options.variants = values.split('/').map(|v| vec![(name.to_owned(), v.to_owned())]).collect();
                }
                "--for" => {
                    let (name, size) = value.split_once('=')?;
                    options.sizes = vec![vec![(name.to_owned(), size.parse().ok()?)]];
                }
                _ => return None,
            }
        }
        Some(options)
    }
}

const fn example(of: &'static str, args: &'static str, program: &'static str) -> Example {
    Example { of, args, program, launch: None, variable: "", made: None }
}

/// A program that is made by a command of a shell.
const fn made(of: &'static str, args: &'static str, command: &'static str) -> Example {
    Example { made: Some(command), ..example(of, args, "") }
}

/// What a variable of the environment has the command say.
const fn with_variable(of: &'static str, variable: &'static str, args: &'static str) -> Example {
    Example { variable, ..example(of, args, include_str!("examples/doubled.tile")) }
}

/// PTX that tilec did not write, on the simulator.
const fn of_ptx(of: &'static str, program: &'static str, launch: &'static str) -> Example {
    Example { launch: Some(launch), ..example(of, "run --device sim", program) }
}

/// A launch of two warps with a tensor to read and one to write.
const LAUNCH: &str = include_str!("examples/k.json");

/// The examples, by number; those of remarks in the order of the passes.
pub const ALL: &[Example] = &[
    example("E0101", "--target sm_80", include_str!("examples/E0101.tile")),
    example("E0102", "--target sm_80", include_str!("examples/E0102.tile")),
    example("E0103", "--target sm_80", include_str!("examples/E0103.tile")),
    made(
        "E0104",
        "--target sm_80",
        "(echo 'kernel k(A: gmem f32[M]) {'; for i in $(seq 4097); do echo barrier; done; echo '}')",
    ),
    example("E0105", "--target sm_80", include_str!("examples/E0105.tile")),
    example("E0106", "--target sm_80", include_str!("examples/E0106.tile")),
    example("E0107", "--target sm_80", include_str!("examples/E0107.tile")),
    example("E0108", "--target sm_80", include_str!("examples/E0108.tile")),
    example("E0109", "--target sm_80", include_str!("examples/E0109.tile")),
    example("E0110", "--target sm_80", include_str!("examples/E0110.tile")),
    example("E0201", "--target sm_80", include_str!("examples/E0201.tile")),
    example("E0202", "--target sm_80", include_str!("examples/E0202.tile")),
    example("E0203", "--target sm_80", include_str!("examples/E0203.tile")),
    example("E0204", "--target sm_80", include_str!("examples/E0204.tile")),
    example("E0205", "--target sm_80", include_str!("examples/E0205.tile")),
    example("E0206", "--target sm_80", include_str!("examples/E0206.tile")),
    example("E0207", "--target sm_80", include_str!("examples/E0207.tile")),
    example("E0208", "--target sm_80", include_str!("examples/E0208.tile")),
    example("E0220", "--target sm_80", include_str!("examples/E0220.tile")),
    example("E0221", "--target sm_80", include_str!("examples/E0221.tile")),
    example("E0222", "--target sm_80", include_str!("examples/E0222.tile")),
    example("E0223", "--target sm_90a", include_str!("examples/E0223.tile")),
    example("E0224", "--target sm_80", include_str!("examples/E0224.tile")),
    example("E0225", "--target sm_80", include_str!("examples/E0225.tile")),
    example("E0226", "--target sm_80", include_str!("examples/E0226.tile")),
    example("E0227", "--target sm_80", include_str!("examples/E0227.tile")),
    example("E0228", "--target sm_80", include_str!("examples/E0228.tile")),
    example("E0229", "--target sm_80", include_str!("examples/E0229.tile")),
    example("E0231", "--target sm_80", include_str!("examples/E0231.tile")),
    example("E0233", "--target sm_80", include_str!("examples/E0233.tile")),
    example("E0234", "--target sm_80", include_str!("examples/E0234.tile")),
    example("E0235", "--target sm_80", include_str!("examples/E0235.tile")),
    example("E0236", "--target sm_80", include_str!("examples/E0236.tile")),
    example("E0237", "--target sm_80", include_str!("examples/E0237.tile")),
    example("E0238", "--target sm_80", include_str!("examples/E0238.tile")),
    example("E0239", "--target sm_80", include_str!("examples/E0239.tile")),
    example("E0240", "--target sm_80", include_str!("examples/E0240.tile")),
    example("E0241", "--target sm_80", include_str!("examples/E0241.tile")),
    example("E0242", "--target sm_90a", include_str!("examples/E0242.tile")),
    example("E0243", "--target sm_80", include_str!("examples/E0243.tile")),
    example("E0244", "--target sm_80", include_str!("examples/E0244.tile")),
    example("E0245", "--target sm_70", include_str!("examples/E0245.tile")),
    example("E0246", "--target sm_80", include_str!("examples/E0246.tile")),
    example("E0247", "--target sm_90a", include_str!("examples/E0247.tile")),
    example("E0248", "--target sm_80", include_str!("examples/E0248.tile")),
    example("E0249", "--target sm_80", include_str!("examples/E0249.tile")),
    example("E0250", "--target sm_80", include_str!("examples/E0250.tile")),
    example("E0251", "--target sm_80", include_str!("examples/E0251.tile")),
    example("E0252", "--target sm_80", include_str!("examples/E0252.tile")),
    example("E0301", "--target sm_80", include_str!("examples/E0301.tile")),
    example("E0302", "--target sm_80", include_str!("examples/E0302.tile")),
    example("E0303", "--target sm_80", include_str!("examples/E0303.tile")),
    example("E0304", "--target sm_80", include_str!("examples/E0304.tile")),
    example("E0305", "--target sm_80", include_str!("examples/E0305.tile")),
    example("E0306", "--target sm_80", include_str!("examples/E0306.tile")),
    example("E0401", "-D BN=3", include_str!("examples/E0401.tile")),
    example("W0401", "--target sm_70", include_str!("examples/W0401.tile")),
    example("E0402", "-D BM=f16", include_str!("examples/E0402.tile")),
    example("W0402", "--variant ALIGN=1/4", include_str!("examples/W0402.tile")),
    example("E0403", "--target sm_80", include_str!("examples/E0403.tile")),
    example("W0403", "--target sm_80 --card H100", include_str!("examples/W0403.tile")),
    example("E0404", "--target sm_80", include_str!("examples/E0404.tile")),
    example("W0404", "--target sm_80", include_str!("examples/W0404.tile")),
    example("E0405", "--target sm_70", include_str!("examples/E0405.tile")),
    example("W0405", "--target sm_80", include_str!("examples/W0405.tile")),
    example("E0406", "--target sm_80", include_str!("examples/E0406.tile")),
    example("W0406", "--target sm_90a", include_str!("examples/W0406.tile")),
    example("E0407", "--target sm_90a", include_str!("examples/E0407.tile")),
    example("W0407", "--target sm_90a", include_str!("examples/W0407.tile")),
    example("E0408", "--target sm_70", include_str!("examples/E0408.tile")),
    example("W0408", "--target sm_80", include_str!("examples/W0408.tile")),
    example("E0409", "--target sm_80", include_str!("examples/E0409.tile")),
    example("W0409", "--target sm_80", include_str!("examples/W0409.tile")),
    example("E0410", "--target sm_80", include_str!("examples/E0410.tile")),
    example("W0410", "--target sm_90a", include_str!("examples/W0410.tile")),
    example("W0411", "--target sm_80", include_str!("examples/W0411.tile")),
    example("W0412", "--target sm_80", include_str!("examples/W0412.tile")),
    example("W0413", "--target sm_80", include_str!("examples/W0413.tile")),
    example("W0414", "--target sm_80", include_str!("examples/W0414.tile")),
    example("W0415", "--target sm_80", include_str!("examples/W0415.tile")),
    example("W0416", "--target sm_80", include_str!("examples/W0416.tile")),
    example("W0417", "--target sm_80", include_str!("examples/W0417.tile")),
    example("E0411", "--target sm_90a", include_str!("examples/E0411.tile")),
    example("E0412", "--target sm_90a", include_str!("examples/E0412.tile")),
    example("E0413", "--target sm_70", include_str!("examples/E0413.tile")),
    example("E0414", "--target sm_80", include_str!("examples/E0414.tile")),
    example("E0415", "--target sm_80", include_str!("examples/E0415.tile")),
    example("E0416", "--target sm_80", include_str!("examples/E0416.tile")),
    example("E0417", "--target sm_70", include_str!("examples/E0417.tile")),
    example("E0418", "--target sm_80", include_str!("examples/E0418.tile")),
    example("E0430", "--target sm_80", include_str!("examples/E0430.tile")),
    example("E0431", "--target sm_80", include_str!("examples/E0431.tile")),
    example("E0432", "--for K=5", include_str!("examples/E0432.tile")),
    example("E0433", "--variant T=f32/f64", include_str!("examples/E0433.tile")),
    example("E0434", "--for M=5", include_str!("examples/E0434.tile")),
    example("E0435", "--target sm_80", include_str!("examples/E0435.tile")),
    example("E0504", "--target sm_80", include_str!("examples/E0504.tile")),
    example("E0505", "--target sm_90a", include_str!("examples/E0505.tile")),
    example("E0506", "--target sm_80", include_str!("examples/E0506.tile")),
    example("E0502", "--target sm_80", include_str!("examples/E0502.tile")),
    example("E0601", "run M=64 --device sim --in A=missing.bin", include_str!("examples/E0601.tile")),
    example("W0601", "--target sm_80 --emit cubin -o k.cubin", include_str!("examples/W0601.tile")),
    made("E0602", "--target sm_80", "printf 'kernel k(A: gmem f32[M]) { } // \\377'"),
    example("W0602", "--target sm_80", include_str!("examples/W0602.tile")),
    example("E0603", "-o no/such/folder/k.ptx", include_str!("examples/E0603.tile")),
    with_variable("E0604", "TILEC_PTXAS=/nonexistent", "--target sm_80 --emit cubin -o k.cubin"),
    example("E0607", "run M=-5 --device sim", include_str!("examples/E0607.tile")),
    example("E0608", "run --device sim", include_str!("examples/E0608.tile")),
    example("E0609", "run M=5 --device sim", include_str!("examples/E0609.tile")),
    example("E0610", "run M=2147418112 --device sim", include_str!("examples/E0610.tile")),
    with_variable("E0611", "CUDA_VISIBLE_DEVICES=", "run M=64 --device cuda"),
    example("E0613", "run M=64 n=1 --device sim --timeout 1", include_str!("examples/E0613.tile")),
    of_ptx("E0615", include_str!("examples/E0615.ptx"), include_str!("examples/E0615.json")),
    example("E0616", "run M=64 --device sim --in A=E0616.tile", include_str!("examples/E0616.tile")),
    example("E0617", "tune M=64", include_str!("examples/E0617.tile")),
    of_ptx("E0618", include_str!("examples/E0618.ptx"), include_str!("examples/E0618.json")),
    example("E0619", "--target sm_80", include_str!("examples/E0619.tile")),
    example("E0703", "run M=64 n=0 --device interp", include_str!("examples/E0703.tile")),
    example("E0704", "run M=100 --device interp", include_str!("examples/E0704.tile")),
    example("E0705", "run M=64 --device interp", include_str!("examples/E0705.tile")),
    example("E0706", "run M=64 --device interp", include_str!("examples/E0706.tile")),
    example("E0710", "run M=64 --device interp", include_str!("examples/E0710.tile")),
    example("E0801", "run M=100 --device sim", include_str!("examples/E0801.tile")),
    of_ptx("E0802", include_str!("examples/E0802.ptx"), LAUNCH),
    of_ptx("E0803", include_str!("examples/E0803.ptx"), LAUNCH),
    of_ptx("E0804", include_str!("examples/E0804.ptx"), LAUNCH),
    of_ptx("E0805", include_str!("examples/E0805.ptx"), LAUNCH),
    of_ptx("E0806", include_str!("examples/E0806.ptx"), LAUNCH),
    of_ptx("E0807", include_str!("examples/E0807.ptx"), LAUNCH),
    example("E0808", "run M=64 n=1 --device sim --fuel 1000", include_str!("examples/E0808.tile")),
    of_ptx("E0809", include_str!("examples/E0809.ptx"), LAUNCH),
    of_ptx("E0810", include_str!("examples/E0810.ptx"), LAUNCH),
    of_ptx("E0811", include_str!("examples/E0811.ptx"), LAUNCH),
    of_ptx("E0812", include_str!("examples/E0812.ptx"), LAUNCH),
    of_ptx("E0813", include_str!("examples/E0813.ptx"), include_str!("examples/E0813.json")),
    Example {
        args: "run --device sim --allow cp-async-proxy",
        ..of_ptx("W0801", include_str!("examples/W0801.ptx"), include_str!("examples/W0801.json"))
    },
    example("flatten-loops", "--target sm_80", include_str!("examples/flatten-loops.tile")),
    example("align-rows", "--target sm_90a", include_str!("examples/align-rows.tile")),
    example("choose", "--target sm_80", include_str!("examples/choose.tile")),
    example("specialize", "--target sm_80", include_str!("examples/specialize.tile")),
    example("select-mma", "--target sm_80", include_str!("examples/gemm.tile")),
    example("stage-stores", "--target sm_90a", include_str!("examples/gemm.tile")),
    example("assign-layouts", "--target sm_80", include_str!("examples/gemm.tile")),
    example("defer-reductions", "--target sm_90a", include_str!("examples/defer-reductions.tile")),
    example("vectorize", "--target sm_90a", include_str!("examples/gemm.tile")),
    example("swizzle", "--target sm_80", include_str!("examples/gemm.tile")),
    example("schedule-loops", "--target sm_90a", include_str!("examples/gemm.tile")),
    example("pipeline", "--target sm_80", include_str!("examples/gemm.tile")),
    example("residue", "--target sm_80", include_str!("examples/gemm.tile")),
    example("expand", "--target sm_90a", include_str!("examples/gemm.tile")),
    example("skip-scaling", "--target sm_90a", include_str!("examples/skip-scaling.tile")),
    example("predicate", "--target sm_80", include_str!("examples/gemm.tile")),
    example("schedule", "--target sm_80", include_str!("examples/schedule.tile")),
    example("place-shared", "--target sm_70", include_str!("examples/place-shared.tile")),
    example("barriers", "--target sm_80", include_str!("examples/gemm.tile")),
    example("reuse-loads", "--target sm_80", include_str!("examples/reuse-loads.tile")),
    example("overlap-launches", "--target sm_90a", include_str!("examples/gemm.tile")),
    example("contract", "--target sm_80", include_str!("examples/contract.tile")),
    example("hand-over", "--target sm_90a", include_str!("examples/gemm.tile")),
    example("ptx-version", "--target sm_80", include_str!("examples/gemm.tile")),
];

/// What has no example, and why.
pub const WITHOUT: &[(&str, &str)] = &[
    ("E0230", "only a program that was put together by other means than its text can be malformed"),
    ("E0232", "the parser finds such a use first (E0201); only a program that was put together by other means has it"),
    ("E0501", "every known program is compiled, or refused with another code"),
    ("E0503", "PTX that the target does not have is a bug of tilec"),
    (
        "E0605",
        "an assembler refuses the PTX where tilec has a bug, or where it is older than the `.version` in the first lines of the PTX",
    ),
    (
        "E0606",
        "it is said where the assembler that was found crashes, has no room for its files, or runs for longer than it may",
    ),
    (
        "E0612",
        "it is said on a GPU alone, of a launch that its driver refuses or that faults there: PTX of an access outside of every tensor, say",
    ),
    ("E0701", "a launch finds it first (E0609)"),
    ("E0702", "a launch finds it first (E0607, E0608)"),
    ("E0707", "the interpreter has no budget in a launch: `--timeout` ends it"),
    ("E0708", "a tile has a limit of its own (E0234), and a launch another (E0610)"),
    ("E0709", "the verifier finds it first"),
];
