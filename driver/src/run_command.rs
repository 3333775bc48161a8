//! `tilec run IN.tile`: compiles, launches, compares, prints.

use crate::args::{DataKind, Device, Imitate, Run, Sim, SimLanding, SimOrder};
use crate::build_command::{Said, options, read};
use crate::failure::Failure;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::process::Command;
use std::time::Duration;
use tilec::bind::{Args, Number};
use tilec::output::write_stdout;
use tilec::run::{On, RunOptions, child, run};
use tilec::simulate::{Generation, Landings, Order, SimOptions};
use tilec::{Target, compile};

/// Runs a kernel of a file.
pub(crate) fn run_command(args: &Run) -> Result<(), Failure> {
    let mut values = Args::new();
    for (name, value) in &args.values {
        let Ok(number) = value.parse::<Number>() else {
            return Err(Failure::Usage(format!("`{name}={value}`: `{value}` is not a number")));
        };
        if values.insert(name.clone(), number).is_some() {
            return Err(Failure::Usage(format!("`{name}` has two values")));
        }
    }
    let source = read(&args.input)?;
    let compile_options = options(&args.program, &args.input, args.program.target.unwrap_or(Target::Sm70))?;
    let said = Said { remarks: args.program.remarks, format: args.program.error_format };
    let program = said.unless_error(compile(&source, &compile_options))?;
    said.warnings(program.source.clone(), program.diagnostics.clone());
    let run_options = RunOptions {
        kernel: args.kernel.clone(),
        args: values,
        check: args.check,
        seed: args.seed,
        normal: args.data.map(|d| d == DataKind::Normal),
        repeat: args.repeat,
        timeout: Duration::from_secs(args.timeout),
        on: device(args)?,
        sim: sim_options(args),
        inputs: BTreeMap::new(),
    };
    let own = std::env::current_exe()
        .map_err(|e| Failure::io(tilec_ir::codes::LAUNCH_FAILED, format!("cannot find this program again: {e}")))?;
    let mut launcher = Command::new(own);
    launcher.arg(child::SUBCOMMAND);
    let report = said.unless_error(run(&program, &run_options, &mut launcher))?;
    write_stdout(report.to_string().as_bytes())?;
    if report.ok() { Ok(()) } else { Err(Failure::Said) }
}

/// Where to run: what was asked for, or what the other options need.
fn device(args: &Run) -> Result<On, Failure> {
    let Sim { fuel, sim_order, sim_landing, sim_threads, imitate } = &args.sim;
    let given = [
        ("--fuel", fuel.is_some()),
        ("--sim-order", sim_order.is_some()),
        ("--sim-landing", sim_landing.is_some()),
        ("--sim-threads", sim_threads.is_some()),
        ("--imitate", imitate.is_some()),
    ];
    let needs_sim = given.iter().find(|(_, given)| *given).map(|(name, _)| *name);
    match (args.device, needs_sim) {
        (Device::Cuda, Some(name)) => {
            Err(Failure::Usage(format!("`{name}` is for the simulator; leave it out, or use `--device sim`")))
        }
        (Device::Cuda, None) => Ok(On::Cuda),
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
            Some(SimLanding::Early) => Landings::Early,
            Some(SimLanding::Late) => Landings::Late,
            Some(SimLanding::Both) | None => Landings::Both,
        },
        imitate: sim.imitate.map(|generation| match generation {
            Imitate::Volta => Generation::Volta,
            Imitate::Turing => Generation::Turing,
            Imitate::Ampere => Generation::Ampere,
            Imitate::Ada => Generation::Ada,
            Imitate::Hopper => Generation::Hopper,
        }),
        threads: sim.sim_threads.map_or(default.threads, usize::from),
        fuel: sim.fuel.unwrap_or(default.fuel),
        seed: args.seed,
        progress: std::io::stderr().is_terminal(),
    }
}

/// The child's side of a launch.
pub(crate) fn launch_command() -> Result<(), Failure> {
    child::serve(tilec::run::work).map_err(Failure::from)
}
