//! Decisions of the passes about a program, computed in the background.

use crate::compile::machine_code::check_demands;
use crate::compile::{CompileOptions, Compiled, OptimizedKernel, attribution, compile};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Severity, Sink, Span, counted};
use tilec_ir::entities::Value;
use tilec_ir::kernel::{ConstValue, Kernel, StmtData};
use tilec_ir::target::{Target, WARP};
use tilec_ptx::report::Report;

/// A program as it was compiled.
#[derive(Clone, Debug)]
pub struct Decisions {
    /// The target that it was compiled for.
    pub target: Target,
    /// All diagnostics.
    pub diagnostics: Vec<Diagnostic>,
    /// The kernels after the passes; none of a program that was refused.
    pub kernels: Vec<OptimizedKernel>,
    /// For each kernel, the threads of a block as launched.
    pub threads: Vec<u32>,
    /// For each kernel, the report on its copies and accesses.
    pub reports: Vec<Report>,
}

/// The options for a text: its own target, if it names one, and those parameters and sizes that some kernel of it has.
/// Editor settings apply to all texts, so a value for another text is no error in this one.
pub fn fitting(source: &str, options: &CompileOptions) -> CompileOptions {
    let mut options = options.clone();
    let Ok(module) = tilec_ir::parser::parse(source, &mut Sink::new()) else { return options };
    let has = |name: &str, all: fn(&Kernel) -> &[Value]| {
        module.kernels.iter().any(|k| all(k).iter().any(|&v| k.values[v].name == name))
    };
    options.target = module.kernels.iter().find_map(|k| k.schedule.target).unwrap_or(options.target);
    options.defines.retain(|(name, _)| has(name, |k| &k.const_params));
    for sizes in &mut options.sizes {
        sizes.retain(|(name, _)| has(name, |k| &k.sizes));
    }
    options.sizes.retain(|sizes| !sizes.is_empty());
    options
}

/// What takes longer to find than the decisions.
#[derive(Default)]
pub struct Unjudged {
    /// The program, if it has demands that depend on registers.
    registers: Option<Compiled>,
    /// Some demand is known not to hold: there may be preconditions with which it does.
    broken: bool,
}

/// Compiles a program with the options that fit it. Also returns what is still to be judged about its demands:
/// [`demands`] does that.
pub fn decide(source: &str, options: &CompileOptions) -> (Decisions, Option<Unjudged>) {
    // What does not meet a demand has decisions, too, which say why.
    let options = CompileOptions { report_accesses: true, show_broken: true, ..fitting(source, options) };
    let (mut diagnostics, kernels, registers) = match compile(source, &options) {
        Ok(compiled) => {
            let mut demands = compiled.kernels.iter().flat_map(|k| &k.tile.kernel.demands);
            let registers = demands.any(|d| d.what.is_of_registers()).then(|| compiled.clone());
            (compiled.diagnostics, compiled.kernels, registers)
        }
        Err(refused) => (refused.list, Vec::new(), None),
    };
    for d in diagnostics.iter_mut().filter(|d| d.code == codes::BROKEN_DEMAND) {
        d.severity = Severity::Error;
    }
    let broken = diagnostics.iter().any(|d| d.code == codes::BROKEN_DEMAND);
    let unjudged = (registers.is_some() || broken).then_some(Unjudged { registers, broken });
    let threads = kernels.iter().map(|k| k.contract.block.iter().product()).collect();
    let (kernels, reports) = kernels.into_iter().map(|k| (k.tile, k.lowered)).unzip();
    (Decisions { target: options.target, diagnostics, kernels, threads, reports }, unjudged)
}

/// Diagnostics of demands. Those that depend on registers run the assembler if there is one. Those that are known not
/// to hold have the preconditions with which they do, found by compiling the program with them.
pub fn demands(source: &str, options: &CompileOptions, unjudged: Unjudged) -> Vec<Diagnostic> {
    let mut all = Vec::new();
    if unjudged.broken
        && let Err(refused) = compile(source, &fitting(source, options))
    {
        all.extend(refused.list.into_iter().filter(|d| d.code == codes::BROKEN_DEMAND));
    }
    if let Some(mut program) = unjudged.registers {
        program.diagnostics.clear();
        let broken = check_demands(&mut program).err();
        all.extend(program.diagnostics.into_iter().chain(broken.into_iter().flat_map(|broken| broken.list)));
    }
    all
}

impl Decisions {
    /// Adds diagnostics of demands; one that says more of a demand replaces what was said of it.
    pub fn add(&mut self, demands: Vec<Diagnostic>) {
        for d in demands {
            match self
                .diagnostics
                .iter_mut()
                .find(|old| old.code == d.code && old.span == d.span && old.message == d.message)
            {
                Some(old) => *old = d,
                None => self.diagnostics.push(d),
            }
        }
    }

    /// The compilation result of a kernel.
    pub fn kernel(&self, name: &str) -> Option<&OptimizedKernel> {
        self.kernels.iter().find(|k| k.kernel.name == name)
    }

    /// The threads of a block of a kernel, and of each of its roles:
    /// `384 threads a block (128 of role `load`, 256 of role `multiply`)`.
    pub fn threads(&self, name: &str) -> Option<String> {
        let at = self.kernels.iter().position(|k| k.kernel.name == name)?;
        let k = &self.kernels[at].kernel;
        let mut roles = Vec::new();
        for s in k.statement_data() {
            let StmtData::Role { name, warps, replicas, .. } = s else { continue };
            let warps = k.as_int(*warps)? * replicas.map_or(Some(1), |e| k.as_int(e))?;
            roles.push(format!("{} of role `{name}`", warps * i64::from(WARP)));
        }
        let roles = if roles.is_empty() { String::new() } else { format!(" ({})", roles.join(", ")) };
        Some(format!("{} threads a block{roles}", self.threads[at]))
    }

    /// The costs of accesses to a buffer or channel of a kernel, without duplicates.
    pub fn accesses_to(&self, kernel: &str, buffer: &str) -> Vec<String> {
        let reports = self.kernels.iter().zip(&self.reports).filter(|(k, _)| k.kernel.name == kernel);
        let accesses = reports.flat_map(|(_, r)| &r.shared).filter(|s| s.buffer == buffer);
        each_once(accesses.map(|s| attribution::accesses(s).1))
    }

    /// The costs of copies and accesses whose span contains a byte, without duplicates.
    pub fn accesses_at(&self, byte: usize) -> Vec<String> {
        let copies = self.reports.iter().flat_map(|r| &r.copies).filter(|c| c.global_bytes > 0 && holds(c.span, byte));
        let copies = copies.map(|c| {
            format!(
                "`{}` -> `{}`: {} an access to global memory, and {:.0} % of the bytes of its sectors are used",
                c.src,
                c.dst,
                counted(c.global_bytes as usize, "byte"),
                100.0 * c.sector_use
            )
        });
        let shared = self.reports.iter().flat_map(|r| &r.shared).filter(|s| holds(s.span, byte));
        each_once(copies.chain(shared.map(|s| attribution::accesses(s).1)))
    }

    /// The value of a compile-time parameter of a kernel.
    pub fn parameter(&self, kernel: &str, name: &str) -> Option<ConstValue> {
        self.kernel(kernel)?.parameters.iter().find(|(p, _)| p == name).map(|(_, value)| *value)
    }

    /// A value of a kernel after the passes, by its name and its place in the source.
    pub fn value(&self, kernel: &str, name: &str, span: Span) -> Option<(&Kernel, Value)> {
        let kernel = &self.kernel(kernel)?.kernel;
        let found = kernel.values.iter().find(|(_, data)| data.name == name && data.span == span);
        found.map(|(value, _)| (kernel, value))
    }

    /// A `let` of a kernel after the passes, by its place in the source: the first of those that loops were expanded to.
    pub fn computed(&self, kernel: &str, span: Span) -> Option<(&Kernel, Value)> {
        let kernel = &self.kernel(kernel)?.kernel;
        let lets = kernel.statement_data().filter_map(|s| match s {
            StmtData::Let { value, .. } => Some(*value),
            _ => None,
        });
        let found = lets.filter(|&v| kernel.values[v].span == span && !span.is_none()).min();
        found.map(|value| (kernel, value))
    }

    /// The remarks of passes whose span contains a byte.
    pub fn remarks(&self, byte: usize) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(move |d| d.severity == Severity::Remark && holds(d.span, byte))
    }
}

fn holds(span: Span, byte: usize) -> bool {
    !span.is_none() && (span.start as usize..span.end as usize).contains(&byte)
}

fn each_once(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for text in all {
        if !out.contains(&text) {
            out.push(text);
        }
    }
    out
}
