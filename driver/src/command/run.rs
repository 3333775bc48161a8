//! `tilec run IN.tile` and `tilec run IN.ptx --launch FILE.json`: launches, compares, prints.

use crate::bind::{Args, Number, zeros};
use crate::command::args::{CountersForm, DataKind, Device, GpuGeneration, Run, Sim, SimLanding, SimOrder};
use crate::command::call::Call;
use crate::command::failure::{Failure, SideMessages};
use crate::command::program::{definitions, display_name, options, read, read_at_most, target_here};
use crate::contract::LaunchFile;
use crate::launch_file::{self, LaunchFileError};
use crate::output::{same_file, write_file, write_stderr, write_stdout};
use crate::render::SourceFile;
use crate::run::{
    Aliases, Elements, Foreign, On, Ran, RunOptions, RunReport, child, interpret, launches, run, run_foreign,
};
use crate::simulate::{Generation, Landing, Landings, Order, SimOptions, counts, counts_json};
use crate::{Compiled, Diagnostics, Target, compile, data, machine_code};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Span};

/// Longest PTX that is read.
const MAX_PTX: u64 = 64 << 20;
/// Longest launch description that is read.
const MAX_LAUNCH: u64 = 1 << 20;

/// Runs a kernel of a file.
pub(crate) fn run_command(args: &Run, call: &Call) -> Result<(), Failure> {
    let is_ptx = args.input.extension().is_some_and(|e| e.eq_ignore_ascii_case("ptx"));
    let name = display_name(&args.input);
    match (&args.launch, is_ptx) {
        (None, false) => run_tile(args, call),
        (Some(launch), true) => run_ptx(args, launch, call),
        (None, true) => Err(Failure::Usage(format!(
            "PTX does not say how it is launched: `tilec run {name} --launch FILE.json`; `tilec IN.tile --emit launch` writes \
             that file, and docs/launch-contract.md shows how to write it by hand"
        ))),
        (Some(_), false) => {
            Err(Failure::Usage(format!("`--launch` is for PTX; the launch of `{name}` follows from the program")))
        }
    }
}

/// Says before the work, and not after it, that a result could not be written.
fn outputs_have_folders(args: &Run) -> Result<(), Failure> {
    for (_, file) in &args.outputs {
        let folder = Path::new(file).parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.is_dir() {
            let message = format!("cannot write `{file}`: there is no folder `{}`", folder.display());
            return Err(Failure::io(codes::NOT_WRITABLE, message));
        }
    }
    Ok(())
}

/// Rejects outputs that would overwrite inputs or each other. A tensor may overwrite its own elements
/// (`--in C=c.bin --out C=c.bin`): inputs are read before outputs are written.
fn outputs_replace_nothing(args: &Run) -> Result<(), Failure> {
    let both = |file: &str, what: String| {
        Err(Failure::Usage(format!("`{file}` is both an output and {what}; `--out NAME=FILE` names another file")))
    };
    for (i, (name, file)) in args.outputs.iter().enumerate() {
        let path = Path::new(file);
        if same_file(path, &args.input) {
            return both(file, "the program".to_owned());
        }
        if args.launch.as_ref().is_some_and(|launch| same_file(path, launch)) {
            return both(file, "the launch description".to_owned());
        }
        if let Some((other, _)) = args.inputs.iter().find(|(other, f)| other != name && same_file(path, Path::new(f))) {
            return both(file, format!("the elements of `{other}`"));
        }
        let twice = |f: &str| (f == file && !path.exists()) || same_file(path, Path::new(f));
        if let Some((other, _)) = args.outputs[..i].iter().find(|(_, f)| twice(f)) {
            return both(file, format!("that of `{other}`"));
        }
    }
    Ok(())
}

fn run_tile(args: &Run, call: &Call) -> Result<(), Failure> {
    outputs_replace_nothing(args)?;
    outputs_have_folders(args)?;
    let run_options = run_options(args)?;
    let source = read(&args.input)?;
    if args.device == Device::Interp {
        return interpret_tile(args, &run_options, &source);
    }
    let target = target_here(&args.program, matches!(run_options.on, On::Cuda | On::Auto));
    let mut compile_options = options(&args.program, &args.input, target)?;
    // The launch checks the sizes and strides that it is given.
    compile_options.refuse_sizes = false;
    compile_options.variants = definitions(&compile_options, &args.variant)?;
    let said = SideMessages { remarks: args.program.remarks, format: args.program.error_format };
    let mut program = said.unless_error(compile(&source, &compile_options))?;
    // Kernels take sizes to be at least 1; a program of which one is 0 is compiled for that.
    let zeros = zeros_of(&program.launch_file(), &run_options);
    if !zeros.is_empty() {
        compile_options.zeros.extend(zeros);
        program = said.unless_error(compile(&source, &compile_options))?;
    }
    said.unless_error(machine_code::check_demands(&mut program))?;
    said.warnings(program.source.clone(), program.diagnostics.clone());
    let mut report = said.unless_error(run(&program, &run_options, &mut call.launcher()?(child::SUBCOMMAND)))?;
    if compile_options.sizes.is_empty() {
        report.notes.extend(chosen_for_large_sizes(&program, &report));
    }
    said.warnings(program.source.clone(), report.warnings.clone());
    finish(args, &report, &program.source, &program.ptx)
}

/// The note that what runs has values of `auto` parameters for other sizes than those of the launch.
fn chosen_for_large_sizes(program: &Compiled, report: &RunReport) -> Option<String> {
    let chosen = program.kernels.iter().filter(|k| k.tile.choice.is_some());
    let (mut names, mut sizes) = (Vec::new(), Vec::new());
    for k in chosen {
        let own = k.tile.choice.iter().flat_map(|choice| &choice.values).map(|(name, _)| format!("`{name}`"));
        names.extend(own.filter(|name| !names.contains(name)).collect::<Vec<_>>());
        sizes.extend(k.tile.specialized.sizes.iter().map(|&v| k.tile.specialized.values[v].name.clone()));
    }
    let given = report.values.iter().filter(|(name, _)| sizes.contains(name));
    let given: Vec<String> = given.map(|(name, value)| format!("{name}={value}")).collect();
    (!names.is_empty() && !given.is_empty()).then(|| {
        let (names, given) = (names.join(", "), given.join(","));
        format!("{names} are chosen for large sizes; `--for {given}` chooses them for these")
    })
}

/// The sizes that are given as 0 and that what is launched takes to be at least 1.
fn zeros_of(file: &LaunchFile, options: &RunOptions) -> Vec<String> {
    match launches(file, options.kernel.as_deref(), &options.args, "file") {
        Ok((_, all)) => zeros(&all, &options.args),
        // `run` reports the error.
        Err(_) => Vec::new(),
    }
}

/// Runs the interpreter alone.
fn interpret_tile(args: &Run, run_options: &RunOptions, source: &str) -> Result<(), Failure> {
    let for_code = [
        ("--check", args.check, "compares with the interpreter, which is what runs here"),
        ("--alias", !args.aliases.is_empty(), "is about the addresses of compiled code"),
        ("--variant", !args.variant.is_empty(), "compiles variants; `-D` gives the one to interpret its values"),
    ];
    if let Some((name, _, why)) = for_code.iter().find(|(_, given, _)| *given) {
        return Err(Failure::Usage(format!("`{name}` {why}; leave it out, or use another `--device`")));
    }
    let mut options = options(&args.program, &args.input, args.program.target.unwrap_or(Target::Sm70))?;
    options.refuse_sizes = false;
    let said = SideMessages { remarks: args.program.remarks, format: args.program.error_format };
    let mut program = said.unless_error(compile::meaning(source, &options))?;
    let zeros = zeros_of(&program.file, run_options);
    if !zeros.is_empty() {
        options.zeros.extend(zeros);
        program = said.unless_error(compile::meaning(source, &options))?;
    }
    let report = said.unless_error(interpret(&program, run_options))?;
    finish(args, &report, &program.source, "")
}

fn run_ptx(args: &Run, launch: &Path, call: &Call) -> Result<(), Failure> {
    outputs_replace_nothing(args)?;
    outputs_have_folders(args)?;
    let program = &args.program;
    if args.check {
        return Err(Failure::Usage(
            "`--check` compares with the interpreter, which needs the tile program; for PTX alone, write the result with \
             `--out NAME=FILE` and compare it with your own"
                .to_owned(),
        ));
    }
    let for_compiling = [
        ("--target", program.target.is_some()),
        ("--define", !program.defines.is_empty()),
        ("--zero", !program.zero.is_empty()),
        ("--disable-pass", !program.disable_pass.is_empty()),
        ("--enable-pass", !program.enable_pass.is_empty()),
        ("--remarks", program.remarks),
        ("--deny", !program.deny.is_empty()),
    ];
    if args.device == Device::Interp {
        return Err(Failure::Usage("the interpreter runs tile programs; PTX runs on `cuda` and `sim`".to_owned()));
    }
    if let Some((name, _)) = for_compiling.iter().find(|(_, given)| *given) {
        return Err(Failure::Usage(format!("`{name}` is for compiling; PTX is run as it is")));
    }
    let mut run_options = run_options(args)?;
    let said = SideMessages { remarks: false, format: program.error_format };
    let text = read_at_most(&args.input, MAX_PTX)?;
    let json = read_at_most(launch, MAX_LAUNCH)?;
    let ptx = SourceFile::new(display_name(&args.input), text);
    let file = launch_file::contracts(&json, ptx.text());
    let file = said.unless_error(file.map_err(|e| bad_launch(&display_name(launch), &json, &ptx, &e)))?;
    let kernel = run_options.kernel.take();
    let selected = launches(&file, kernel.as_deref(), &run_options.args, "launch description")
        .map(|(name, launches)| (name, launches.into_iter().cloned().collect()))
        .map_err(|list| Diagnostics { source: ptx.clone(), errors: list.len(), list });
    let (name, launches) = said.unless_error(selected)?;
    let foreign = Foreign { ptx, name, launches };
    let mut report =
        said.unless_error(run_foreign(&foreign, &run_options, &mut call.launcher()?(child::SUBCOMMAND)))?;
    if args.outputs.is_empty() {
        report.notes.push("nothing was compared; `--out NAME=FILE` writes a tensor".to_owned());
    }
    said.warnings(foreign.ptx.clone(), report.warnings.clone());
    finish(args, &report, &foreign.ptx, foreign.ptx.text())
}

fn bad_launch(name: &str, json: &str, ptx: &SourceFile, error: &LaunchFileError) -> Diagnostics {
    if let LaunchFileError::Ptx { line, column, message } = error {
        let span = ptx.line_span(*line, *column).unwrap_or_default();
        return Diagnostics::one(ptx.clone(), Diagnostic::error(codes::SIM_PTX, span, message));
    }
    let source = SourceFile::new(name, json);
    let span = match error {
        LaunchFileError::Syntax { line, column, .. } => source.line_span(*line, *column).unwrap_or_default(),
        LaunchFileError::Field(_) | LaunchFileError::Contract(_) | LaunchFileError::Ptx { .. } => Span::default(),
    };
    let d = Diagnostic::error(codes::BAD_LAUNCH_FILE, span, format!("`{name}`: {error}"));
    Diagnostics::one(source, d.with_note("docs/launch-contract.md has the fields, and an example"))
}

fn run_options(args: &Run) -> Result<RunOptions, Failure> {
    let mut values = Args::new();
    for (name, rest) in &args.values {
        // `M=N=64`: several names, one value.
        let (more, value) = rest.rsplit_once('=').unwrap_or(("", rest));
        let Ok(number) = value.trim().parse::<Number>() else {
            return Err(Failure::Usage(format!("`{name}={rest}`: `{value}` is not a number")));
        };
        let names = more.split('=').map(str::trim).filter(|_| rest.contains('='));
        for one in std::iter::once(name.as_str()).chain(names) {
            if one.is_empty() {
                return Err(Failure::Usage(format!("`{name}={rest}`: a name is empty")));
            }
            if one.contains(',') {
                let apart = format!("{name}={rest}").replace(',', " ");
                return Err(Failure::Usage(format!("`{name}={rest}`: sizes are words of their own, `{apart}`")));
            }
            if values.insert(one.to_owned(), number).is_some() {
                return Err(Failure::Usage(format!("`{one}` has two values")));
            }
        }
    }
    Ok(RunOptions {
        kernel: args.kernel.clone(),
        args: values,
        check: args.check,
        seed: args.seed,
        normal: args.data.map(|d| d == DataKind::Normal),
        repeat: args.repeat,
        timeout: Duration::from_secs(args.timeout),
        on: device(args)?,
        sim: sim_options(args),
        inputs: inputs(&args.inputs)?,
        aliases: aliases(&args.aliases)?,
    })
}

/// The pairs of `--alias`.
fn aliases(pairs: &[(String, String)]) -> Result<Aliases, Failure> {
    let mut aliases = Aliases::new();
    for (over, under) in pairs {
        if aliases.insert(over.clone(), under.clone()).is_some() {
            return Err(Failure::Usage(format!("`--alias {over}=..` is given twice")));
        }
    }
    Ok(aliases)
}

/// A list of numbers in brackets, infinities and NaN included; these may have quotes, as JSON has them.
fn numbers(text: &str) -> Result<Vec<Number>, String> {
    let inner = text.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let inner = inner.ok_or("it does not end with `]`")?.trim();
    let number = |one: &str| one.trim_matches('"').parse().map_err(|()| format!("`{one}` is no number"));
    inner.split(',').map(str::trim).filter(|_| !inner.is_empty()).map(number).collect()
}

/// The files of `--in`, and the numbers that are there.
fn inputs(files: &[(String, String)]) -> Result<BTreeMap<String, Elements>, Failure> {
    let mut inputs = BTreeMap::new();
    for (name, file) in files {
        if file.starts_with('[') {
            let numbers = numbers(file).map_err(|e| {
                Failure::Usage(format!(
                    "`--in {name}={file}` is no list of numbers ({e}); `--in {name}=[0,37,nan]` is one, `./[..` a file"
                ))
            })?;
            if inputs.insert(name.clone(), Elements::Numbers(numbers)).is_some() {
                return Err(Failure::Usage(format!("`--in {name}=..` is given twice")));
            }
            continue;
        }
        // Unreadable files are reported before compilation; a directory can be opened too, so it is checked.
        std::fs::metadata(file)
            .and_then(|m| if m.is_dir() { Err(std::io::ErrorKind::IsADirectory.into()) } else { Ok(()) })
            .map_err(|e| Failure::io(codes::NOT_READABLE, format!("cannot read `{file}`: {e}")))?;
        if inputs.insert(name.clone(), Elements::File(file.into())).is_some() {
            return Err(Failure::Usage(format!("`--in {name}=..` is given twice")));
        }
    }
    Ok(inputs)
}

/// Writes the tensors of `--out`, prints the report, and counts if they are wanted.
fn finish(args: &Run, report: &RunReport, source: &SourceFile, ptx: &str) -> Result<(), Failure> {
    for (name, file) in &args.outputs {
        let Some((plan, bytes)) = report.tensors.iter().find(|(plan, _)| plan.name == *name) else {
            let names: Vec<String> = report.tensors.iter().map(|(plan, _)| format!("`{}`", plan.name)).collect();
            let message = format!("no tensor `{name}` to write; there are {}", names.join(", "));
            return Err(Failure::io(codes::BAD_TENSOR_FILE, message));
        };
        write_file(Path::new(file), &data::packed(plan, bytes))
            .map_err(|e| Failure::io(codes::NOT_WRITABLE, format!("cannot write `{file}`: {e}")))?;
    }
    match (args.counters, &report.ran) {
        (Some(CountersForm::Table), Ran::Simulator(simulated)) => {
            let mut text = report.to_string();
            for launch in &simulated.launches {
                let head = if simulated.launches.len() > 1 { format!("{}:\n", launch.entry) } else { String::new() };
                text += &format!("\n{head}{}", counts::table(&launch.counters, source, ptx, sim_options(args).align));
            }
            write_stdout(text.as_bytes())?;
        }
        (Some(CountersForm::Json), Ran::Simulator(simulated)) => {
            write_stderr(&report.to_string());
            let json = counts_json::json(simulated, &report.target, source, ptx);
            write_stdout(json.as_bytes())?;
        }
        (_, Ran::Cuda(_) | Ran::Interpreter) | (None, Ran::Simulator(_)) => {
            write_stdout(report.to_string().as_bytes())?
        }
    }
    if report.ok() { Ok(()) } else { Err(Failure::Said) }
}

/// The device: the requested one, or one that the other options need.
fn device(args: &Run) -> Result<On, Failure> {
    let Sim { fuel, sim_order, sim_landing, sim_threads, sim_align, allow, imitate } = &args.sim;
    let given = [
        ("--counters", args.counters.is_some()),
        ("--fuel", fuel.is_some()),
        ("--sim-order", sim_order.is_some()),
        ("--sim-landing", sim_landing.is_some()),
        ("--sim-threads", sim_threads.is_some()),
        ("--sim-align", sim_align.is_some()),
        ("--allow", !allow.is_empty()),
        ("--imitate", imitate.is_some()),
    ];
    let needs_sim = given.iter().find(|(_, given)| *given).map(|(name, _)| *name);
    match (args.device, needs_sim) {
        (Device::Cuda, Some(name)) => {
            Err(Failure::Usage(format!("`{name}` is for the simulator; leave it out, or use `--device sim`")))
        }
        (Device::Interp, Some(name)) => Err(Failure::Usage(format!(
            "`{name}` is for the simulator, which counts what PTX does; leave it out, or use `--device sim`"
        ))),
        (Device::Cuda, None) => Ok(On::Cuda),
        // The interpreter takes tile programs before this point.
        (Device::Interp, None) => Ok(On::Simulator),
        (Device::Sim, _) | (Device::Auto, Some(_)) => Ok(On::Simulator),
        (Device::Auto, None) => Ok(On::Auto),
    }
}

fn sim_options(args: &Run) -> SimOptions {
    let sim = &args.sim;
    let default = SimOptions::default();
    SimOptions {
        order: match sim.sim_order {
            Some(SimOrder::Reverse) => Order::Reverse,
            Some(SimOrder::Seeded) => Order::Seeded,
            Some(SimOrder::Forward) | None => Order::Forward,
        },
        landings: match sim.sim_landing {
            Some(SimLanding::Early) => Landings::One(Landing::Early),
            Some(SimLanding::Late) => Landings::One(Landing::Late),
            Some(SimLanding::LateReads) => Landings::One(Landing::LateReads),
            Some(SimLanding::Latest) => Landings::One(Landing::Latest),
            Some(SimLanding::All) | None => Landings::All,
        },
        imitate: sim.imitate.map(|generation| match generation {
            GpuGeneration::Volta => Generation::Volta,
            GpuGeneration::Turing => Generation::Turing,
            GpuGeneration::Ampere => Generation::Ampere,
            GpuGeneration::Ada => Generation::Ada,
            GpuGeneration::Hopper => Generation::Hopper,
        }),
        threads: sim.sim_threads.map_or(default.threads, usize::from),
        align: sim.sim_align.unwrap_or(default.align),
        allow: sim.allow.clone(),
        fuel: sim.fuel.unwrap_or(default.fuel),
        seed: args.seed,
        progress: std::io::stderr().is_terminal(),
    }
}

/// The child's side of a launch.
pub(crate) fn launch_command() -> Result<(), Failure> {
    child::serve(crate::run::work).map_err(Failure::from)
}
