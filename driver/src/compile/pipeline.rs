//! The pipeline as one call: source text to tile IR, through the passes, to PTX and launch contract.
//!
//! Every call into the other crates is here. The functions do no I/O; what goes wrong comes back as [`Diagnostics`].

use super::chosen_values;
use super::copied_operands::{self, CopiedOperand};
use super::demands::promises::{self, Tried};
use super::error_list::Diagnostics;
use super::options::{ALIGN_ROWS, CompileOptions, Sizes};
use super::parsed_program::{ParsedKernel, written};
use super::program_times::{self, ProgramTime};
use super::reachable_variants::Entry;
use super::source_lines::Place;
use super::sources::{is_ptx, other_generation, sequence_remark};
use super::stage_texts::{FileTexts, Texts, join, joined};
use super::variants::{self, VariantPlan};
use super::{demands, parallel, reachable_variants, refined_predictions, stages, variant_messages};
use crate::compile::report_json::{KernelReport, ReportFile};
use crate::console::render::SourceFile;
use crate::contract::{Contract, Dispatch, LaunchFile, Program, of_kernel, stored};
use std::collections::BTreeSet;
use std::sync::Arc;
use tilec_ir::codes;
use tilec_ir::demands::{Figure, What};
use tilec_ir::diag::{Code, Diagnostic, Severity, Sink};
use tilec_ir::iteration_time::IterationTime;
use tilec_ir::kernel::{ConstValue, Kernel, Module, Sequence};
use tilec_ir::ops::Op;
use tilec_ir::target::Target;
use tilec_passes::caller::Caller;
use tilec_passes::choose::{BlockTime, Choice, LoopTime, Prediction, has_roles};
use tilec_passes::timeline::AwaitedLoads;
use tilec_ptx::launch::Launch;
use tilec_ptx::print::InstLine;
use tilec_ptx::report::Report;

/// The name of the text before the first pass, like the names of passes.
pub const PARSED: &str = "parse";
/// The pass after which the parameters of a kernel are bound, and nothing else is decided.
const SPECIALIZED: &str = "specialize";
/// The pass after which layouts are decided, and loops are still as they are written.
const LAID_OUT: &str = "swizzle";
/// The pass in front of which loops have schedules and are not yet laid out by them.
const SCHEDULED: &str = "residue";

/// A program after all passes.
#[derive(Clone, Debug)]
pub struct Optimized {
    /// The source text.
    pub source: SourceFile,
    /// The target.
    pub target: Target,
    /// Its kernels in source order; variants of a kernel are adjacent.
    pub kernels: Vec<OptimizedKernel>,
    /// Its sequences in source order.
    pub sequences: Vec<Sequence>,
    /// Which of them are variants of one kernel, and when each is launched.
    pub dispatch: Vec<Dispatch>,
    /// Name of a pass over the whole file (or [`PARSED`]) and the program after it, for those requested, in order.
    pub texts: Vec<(&'static str, String)>,
    /// The source line of each line of these texts, if stored.
    pub places: Vec<Vec<Place>>,
    /// Warnings and remarks.
    pub diagnostics: Vec<Diagnostic>,
    deny: BTreeSet<String>,
    /// The sizes that were chosen for.
    sizes: Vec<Sizes>,
    report_accesses: bool,
    show_broken: bool,
    /// What it was compiled with.
    options_used: CompileOptions,
}

/// A kernel after all passes.
#[derive(Clone, Debug)]
pub struct OptimizedKernel {
    /// The values of its compile-time parameters, in order: given, chosen, or defaults.
    pub parameters: Vec<(String, ConstValue)>,
    /// Those that the compiler chose.
    pub(crate) chosen: Vec<(String, ConstValue)>,
    /// What was chosen for parameters that are `auto`, and why.
    pub choice: Option<Choice>,
    /// What the model predicts of it; absent where it cannot see through the kernel.
    pub prediction: Option<Prediction>,
    /// Why there is none.
    pub unpredicted: Option<String>,
    /// The kernel in the form that the model sees.
    pub(crate) model: Kernel,
    /// Of written roles, what a block takes; only of a lowered program.
    pub(crate) block_time: Option<BlockTime>,
    /// Of loops that run as often as data say, what an iteration takes; only of a lowered program.
    pub(crate) open_loops: Vec<LoopTime>,
    /// The operands that launches in front of it copy for it; only of a lowered program.
    pub(crate) copied: Vec<CopiedOperand>,
    /// The prediction with these launches, if there are any.
    with_copies: Option<Prediction>,
    /// The source kernel. If several kernels were made from it, the last one completes it, and the others have none.
    pub source_kernel: Option<ParsedKernel>,
    /// With its compile-time parameters bound.
    pub specialized: Kernel,
    /// Fast paths that the passes have not taken.
    pub missed: Vec<Diagnostic>,
    /// Of its scheduled loops, what an iteration takes.
    pub iteration_times: Vec<IterationTime>,
    /// Loads by threads that iterations wait for; only of a lowered program.
    pub(crate) awaited: Vec<AwaitedLoads>,
    /// The kernel with scheduled loops, before `expand`, if source lines are stored.
    pub scheduled: Option<Kernel>,
    /// The kernel with layouts, fragments and partial results, before loops are pipelined, if source lines are stored.
    pub laid_out: Option<Kernel>,
    /// After the last pass.
    pub kernel: Kernel,
    /// Name of a pass and the program after it, for the passes requested, in order.
    pub texts: Vec<(&'static str, String)>,
    /// The source line of each line of these texts, if stored.
    pub places: Vec<Vec<Place>>,
    /// The options of the passes.
    options: tilec_passes::Options,
}

impl OptimizedKernel {
    fn entry(&self) -> Entry<'_> {
        Entry {
            kernel: &self.kernel,
            options: &self.options,
            written: self.source_kernel.as_ref().map(|written| &written.kernel),
            parameters: &self.parameters,
        }
    }

    /// Its roles in time.
    ///
    /// # Errors
    /// There are none: the reason.
    pub fn timeline(&self) -> Result<tilec_passes::timeline::Timeline, &'static str> {
        tilec_passes::timeline::of(&self.kernel, &self.options)
    }

    /// The name of the kernel of the source that it was made from.
    pub(crate) fn written_name(&self) -> &str {
        self.source_kernel.as_ref().map_or(&self.kernel.name, |written| &written.kernel.name)
    }

    /// The prediction of what a launch of the source kernel takes, with the launches that copy its operands.
    pub(crate) fn whole(&self) -> Option<&Prediction> {
        self.with_copies.as_ref().or(self.prediction.as_ref())
    }

    /// What is held against the demands of the kernel.
    pub(crate) fn demanding(&self) -> demands::CompiledKernel<'_> {
        let target = self.options.target;
        let (kernel, specialized) = (&self.kernel, &self.specialized);
        demands::CompiledKernel {
            kernel,
            specialized,
            target,
            prediction: self.whole(),
            copied: &self.copied,
            unpredicted: self.unpredicted.as_deref(),
            iteration_times: &self.iteration_times,
            awaited: &self.awaited,
            block_time: self.block_time.as_ref(),
            open_loops: &self.open_loops,
            missed: &self.missed,
            caller: self.options.caller,
        }
    }

    /// What the passes were given.
    pub(crate) fn pass_options(&self) -> &tilec_passes::Options {
        &self.options
    }

    /// The source kernel with other extents for `auto` parameters than the chosen ones, if others are legal. The flag
    /// says whether one of these is `auto promised`, so that results may differ by rounding.
    pub fn reference(&self) -> Option<(ParsedKernel, bool)> {
        let written = self.source_kernel.as_ref()?;
        let other = tilec_passes::choose::with_other_values(&written.kernel, &self.options, &self.parameters);
        Some(match other {
            Some(other) => {
                (ParsedKernel { parameters: other.values.into_iter().collect(), ..written.clone() }, other.promised)
            }
            None => (written.clone(), false),
        })
    }
}

/// The result of compiling a file.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The PTX of all kernels.
    pub ptx: String,
    /// The lines of it that are instructions, and the statement of each in the kernel after the last pass.
    pub ptx_lines: Vec<InstLine>,
    /// Its `.version`.
    pub ptx_version: (u8, u8),
    /// The kernels in source order; variants of a kernel are adjacent.
    pub kernels: Vec<CompiledKernel>,
    /// The programs of several kernels, in source order.
    pub programs: Vec<Program>,
    /// Name of a pass over the whole file (or [`PARSED`]) and the program after it, for those requested, in order.
    pub texts: Vec<(&'static str, String)>,
    /// The source line of each line of these texts, if stored.
    pub places: Vec<Vec<Place>>,
    /// The sequences as text.
    pub sequences: Vec<String>,
    /// Which of them are variants of one kernel, and when each is launched.
    pub dispatch: Vec<Dispatch>,
    /// Warnings and remarks.
    pub diagnostics: Vec<Diagnostic>,
    /// The source text.
    pub source: SourceFile,
    /// The target.
    pub target: Target,
}

/// The result of compiling a kernel.
#[derive(Clone, Debug)]
pub struct CompiledKernel {
    /// What a host needs to launch it.
    pub contract: Contract,
    /// What the compiler did, in numbers.
    pub report: KernelReport,
    /// The emitter's output, from which the report is made.
    pub lowered: Report,
    /// The kernel before and after the passes.
    pub tile: OptimizedKernel,
}

impl Compiled {
    /// The kernel called `name`.
    pub fn kernel(&self, name: &str) -> Option<&CompiledKernel> {
        self.kernels.iter().find(|k| k.contract.entry == name)
    }

    /// The launch contract as JSON.
    pub fn launch_json(&self) -> String {
        self.launch_file().to_json()
    }

    /// The launch contracts, which variant of a kernel to launch, and what goes together.
    pub fn launch_file(&self) -> LaunchFile {
        LaunchFile { kernels: self.contracts(), dispatch: self.dispatch.clone(), programs: self.programs.clone() }
    }

    /// The report as data; [`ReportFile::to_json`] writes it.
    pub fn report(&self) -> ReportFile {
        ReportFile::new(
            self.target,
            self.ptx_version,
            &self.source,
            self.kernels.iter().map(|k| k.report.clone()).collect(),
        )
        .with_programs(self.program_times())
    }

    /// The predicted times of the programs of several launches.
    pub fn program_times(&self) -> Vec<ProgramTime> {
        let seconds = |entry: &str| self.kernel(entry)?.tile.prediction.as_ref()?.known_seconds();
        self.programs.iter().map(|program| program_times::of(program, seconds)).collect()
    }

    /// The launch contracts in source order.
    pub fn contracts(&self) -> Vec<Contract> {
        self.kernels.iter().map(|k| k.contract.clone()).collect()
    }
}

impl Optimized {
    /// The program after the last pass, as text that compiles again.
    pub fn tile(&self) -> String {
        join(self.kernels.iter().map(|k| stages::print(&k.kernel)).chain(self.sequences()))
    }

    /// The sequences as text.
    fn sequences(&self) -> impl Iterator<Item = String> {
        self.sequences.iter().map(tilec_ir::print::print_sequence)
    }

    /// The program after `pass`, if its text was stored.
    pub fn text_after(&self, pass: &str) -> String {
        if let Some((_, text)) = self.texts.iter().find(|(p, _)| *p == pass) {
            return text.clone();
        }
        let kept = |k: &OptimizedKernel| k.texts.iter().find(|(p, _)| *p == pass).map(|(_, text)| text.clone());
        let kernels: Vec<String> = self.kernels.iter().filter_map(kept).collect();
        if kernels.is_empty() { String::new() } else { join(kernels.into_iter().chain(self.sequences())) }
    }
}

/// Parses and verifies `source` and runs the passes.
///
/// # Errors
/// Everything that is wrong with the program, as far as one run can tell.
pub fn optimize(source: &str, options: &CompileOptions) -> Result<Optimized, Diagnostics> {
    optimize_as_far(source, options).map_err(|refused| refused.diagnostics)
}

/// A program that was refused.
#[derive(Clone, Debug)]
pub struct Refused {
    /// What is wrong with it.
    pub diagnostics: Diagnostics,
    /// Name of a pass (or [`PARSED`]) and the program after it, for those requested that were done by then: of each kernel up to its own error.
    pub texts: Vec<(&'static str, String)>,
}

/// Like [`optimize`], with the texts up to an error.
///
/// # Errors
/// Everything that is wrong with the program, as far as one run can tell.
pub fn optimize_as_far(source: &str, options: &CompileOptions) -> Result<Optimized, Box<Refused>> {
    let source = SourceFile::new(&options.source_name, source);
    let (mut sink, mut kept) = (Sink::new(), FileTexts::default());
    let (module, planned, dispatch) = plan(&source, options, &mut kept, &mut sink).unwrap_or_default();
    let (mut kernels, mut each) = (Vec::new(), Vec::new());
    let (labels, mut all_said) = (variant_messages::labels(&planned), Vec::new());
    for (optimized, texts, said) in parallel::map(planned, |planned| optimize_one(planned, options)) {
        all_said.push(said);
        kernels.extend(optimized);
        each.push(texts);
    }
    variant_messages::merge_variant_messages(labels, all_said).into_iter().for_each(|d| sink.push(d));
    let diagnostics = match apply_denied(&source, sink, &options.deny) {
        Ok(diagnostics) => diagnostics,
        Err(diagnostics) => {
            let sequences = module.sequences.iter().map(tilec_ir::print::print_sequence).collect();
            return Err(Box::new(Refused { diagnostics, texts: joined(kept.texts, &each, sequences) }));
        }
    };
    for (kernel, texts) in kernels.iter_mut().zip(each) {
        kernel.texts = texts;
    }
    let (target, deny) = (options.target, options.deny.clone());
    let sizes = if options.refuse_sizes { options.sizes.clone() } else { Vec::new() };
    let sequences = module.sequences;
    let FileTexts { texts, places } = kept;
    let report_accesses = options.report_accesses;
    Ok(Optimized {
        source,
        target,
        kernels,
        dispatch,
        sequences,
        texts,
        places,
        diagnostics,
        deny,
        sizes,
        report_accesses,
        show_broken: options.show_broken,
        options_used: options.clone(),
    })
}

/// A file after the passes over all of it, its kernels as they are after `choose`, and which of these are variants.
type Plan = (Module, Vec<VariantPlan>, Vec<Dispatch>);

/// Has a kernel say that these sizes are 0, as far as it has them.
fn for_zeros(kernel: &mut Kernel, zeros: &[String]) {
    let sizes = kernel.sizes.iter().copied().filter(|&v| zeros.contains(&kernel.values[v].name));
    let sizes: Vec<_> = sizes.collect();
    if !sizes.is_empty() {
        let others = tilec_ir::zero_sizes::may_be_zero(kernel).into_iter().filter(|v| !sizes.contains(v));
        let others: Vec<_> = others.collect();
        *kernel = tilec_ir::zero_sizes::with_zeros(kernel, &sizes);
        for v in others {
            let span = kernel.values[v].span;
            let (size, none) = (kernel.value_ref(v, span), kernel.int(0, span));
            let at_least = kernel.binary(Op::Ge, size, none, span);
            kernel.requires.push(at_least);
        }
    }
}

/// Reports names in `--zero` that are sizes of no kernel.
fn check_zeros(module: &Module, zeros: &[String], sink: &mut Sink) {
    let Some(first) = module.kernels.first() else { return };
    let names = module.kernels.iter().flat_map(|k| k.sizes.iter().map(|&v| k.values[v].name.as_str()));
    let known: BTreeSet<&str> = names.collect();
    for name in zeros.iter().filter(|name| !known.contains(name.as_str())) {
        let message = format!("no kernel has a size `{name}` that could be 0");
        let listed: Vec<String> = known.iter().map(|n| format!("`{n}`")).collect();
        let note =
            if listed.is_empty() { "there are no sizes".to_owned() } else { format!("sizes: {}", listed.join(", ")) };
        sink.push(Diagnostic::error(codes::UNKNOWN_SIZE, first.name_span, message).with_note(note));
    }
}

/// The planned kernels. Errors are in the sink. `kept`: the texts of the file passes.
fn plan(source: &SourceFile, options: &CompileOptions, kept: &mut FileTexts, sink: &mut Sink) -> Option<Plan> {
    if let Some(d) = is_ptx(source.text()) {
        sink.push(d);
        return None;
    }
    let mut module = stages::parse(source.text(), sink).ok()?;
    for kernel in &mut module.kernels {
        for demand in &options.demands {
            if kernel.demands.iter().all(|own| own.what != demand.what) {
                kernel.demands.push(*demand);
            }
        }
    }
    check_zeros(&module, &options.zeros, sink);
    for kernel in &mut module.kernels {
        for_zeros(kernel, &options.zeros);
    }
    for kernel in &module.kernels {
        // The error itself is in the sink, which is checked below.
        let _ = stages::verify(kernel, sink);
    }
    sink.check().ok()?;
    variants::without_parameters(&module, options).into_iter().for_each(|d| sink.push(d));
    sink.check().ok()?;
    if let Some(d) = options.card.and_then(|card| other_generation(card, options.target, &module)) {
        sink.push(d);
    }
    let parsed = module.clone();
    kept.keep(PARSED, &module, options);
    let none: &[(String, String)] = &[];
    let file_options = match options.variants.as_slice() {
        [] => options.file_options(Some(none)),
        [one] => options.file_options(Some(one)),
        several => {
            several.iter().filter_map(|v| sequence_remark(&module, options, v)).for_each(|d| sink.push(d));
            options.file_options(None)
        }
    };
    tilec_passes::run_on_file(&mut module, &file_options, &options.sizes, sink, &mut |pass, module| {
        kept.keep(pass, module, options);
    })
    .ok()?;
    let (mut planned, dispatch) = variants::plan(&module, options, sink).ok()?;
    let meant = written(&parsed, &module);
    for one in &mut planned {
        let parameters = || one.parameters.iter().cloned().collect();
        one.source_kernel = meant.get(&one.of).map(|own| ParsedKernel { parameters: parameters(), ..own.clone() });
    }
    Some((module, planned, dispatch))
}

/// The program's text after the file passes, if they have added kernels or statements; otherwise `None`.
///
/// # Errors
/// All errors of the program that are known at this point.
pub(crate) fn after_file_passes(source: &str, options: &CompileOptions) -> Result<Option<String>, Diagnostics> {
    let source = SourceFile::new(&options.source_name, source);
    let mut sink = Sink::new();
    let parsed = stages::parse(source.text(), &mut sink).unwrap_or_default();
    let planned = plan(&source, options, &mut FileTexts::default(), &mut sink);
    apply_denied(&source, sink, &options.deny)?;
    let statements = |module: &Module| module.kernels.iter().map(|k| k.statements().len()).collect::<Vec<_>>();
    let changed = planned.filter(|(module, ..)| statements(module) != statements(&parsed));
    Ok(changed.map(|(module, ..)| tilec_ir::print::print_module(&module)))
}

/// Runs the passes. The stored texts are returned separately, so that they exist even if a pass refuses the kernel.
fn optimize_one(planned: VariantPlan, options: &CompileOptions) -> (Option<OptimizedKernel>, Texts, Sink) {
    let VariantPlan {
        mut kernel,
        source_kernel: written,
        options: pass_options,
        parameters,
        choice,
        prediction,
        unpredicted: unseen,
        model,
        chosen,
        ..
    } = planned;
    let mut sink = Sink::new();
    let mut texts = Texts::new();
    let mut places = Vec::new();
    let (mut specialized, mut laid_out, mut scheduled) = (None, None, None);
    let result = tilec_passes::run(&mut kernel, &pass_options, &mut sink, &mut |pass, kernel| {
        if pass == SPECIALIZED {
            specialized = Some(kernel.clone());
        }
        if pass == LAID_OUT && options.keep_places {
            laid_out = Some(kernel.clone());
        }
        if pass == SCHEDULED && options.keep_places {
            scheduled = Some(kernel.clone());
        }
        if options.keeps(pass) && options.keep_places {
            let (text, of_lines) = stages::print_places(kernel);
            texts.push((pass, text));
            places.push(of_lines);
        } else if options.keeps(pass) {
            texts.push((pass, stages::print(kernel)));
        }
    });
    sink = chosen_values::name_in_errors(sink, &chosen, pass_options.caller);
    let done = result.ok().and(specialized);
    let lost = sink.diagnostics().iter().filter(|d| d.declined.is_some()).cloned().collect();
    let paces = sink.diagnostics().iter().filter_map(|d| d.iteration_time.clone()).collect();
    let tile = |specialized| {
        let texts = Texts::new();
        OptimizedKernel {
            parameters,
            chosen,
            choice,
            prediction,
            unpredicted: unseen,
            model,
            block_time: None,
            open_loops: Vec::new(),
            copied: Vec::new(),
            with_copies: None,
            source_kernel: written,
            specialized,
            missed: lost,
            iteration_times: paces,
            awaited: Vec::new(),
            scheduled,
            laid_out,
            kernel,
            texts,
            places,
            options: pass_options,
        }
    };
    (done.map(tile), texts, sink)
}

/// A program as it was written: what the interpreter runs, and all that [`compile`] is to keep.
#[derive(Clone, Debug)]
pub struct SourceProgram {
    /// The source text.
    pub source: SourceFile,
    /// The target that values were chosen for.
    pub target: Target,
    /// Launches of the kernels, as far as they follow from the source, and the sequences of them.
    pub file: LaunchFile,
    /// The kernels, in the same order, with their parameters bound.
    pub kernels: Vec<Kernel>,
    /// Their source kernels.
    pub source_kernels: Vec<ParsedKernel>,
}

/// What `source` means, whether or not it can be compiled to PTX.
///
/// # Errors
/// Everything that is wrong with the program before it is lowered.
pub fn meaning(source: &str, options: &CompileOptions) -> Result<SourceProgram, Diagnostics> {
    let mut options = options.clone();
    // The sequences that this pass makes mean what the kernels do.
    options.disabled.insert(ALIGN_ROWS.to_owned());
    let source = SourceFile::new(&options.source_name, source);
    let mut sink = Sink::new();
    let (module, planned, dispatch) = plan(&source, &options, &mut FileTexts::default(), &mut sink).unwrap_or_default();
    let (mut kernels, mut meant) = (Vec::new(), Vec::new());
    for VariantPlan { mut kernel, source_kernel: written, options: pass_options, .. } in planned {
        let (mut specialized, mut said) = (None, Sink::new());
        let result = tilec_passes::run(&mut kernel, &pass_options, &mut said, &mut |pass, kernel| {
            if pass == SPECIALIZED {
                specialized = Some(kernel.clone());
            }
        });
        // What later passes refuse is still a program.
        if specialized.is_none() && result.is_err() {
            sink.append(said);
        }
        kernels.extend(specialized);
        meant.push(written.expect("bug: a kernel of the source that is none"));
    }
    let contract = |k: &Kernel| {
        of_kernel(&stages::interface(k, options.target), options.target.min_ptx()).with_distinct(&stored(k))
    };
    let mut file = LaunchFile { kernels: kernels.iter().map(contract).collect(), dispatch, programs: Vec::new() };
    if sink.check().is_ok() {
        file.programs = module.sequences.iter().filter_map(|s| program_of(s, &file, &mut sink)).collect();
    }
    apply_denied(&source, sink, &BTreeSet::new())?;
    Ok(SourceProgram { source, target: options.target, file, kernels, source_kernels: meant })
}

/// Compiles `source` to PTX, with the launch contract and the report of every kernel.
///
/// Demands (`require`) are judged, but for those that only an assembler can tell of: [`check_demands`](super::machine_code::check_demands) judges these.
///
/// # Errors
/// Everything that is wrong with the program, as far as one run can tell.
pub fn compile(source: &str, options: &CompileOptions) -> Result<Compiled, Diagnostics> {
    lower(optimize(source, options)?)
}

/// A program that is looked at and not used.
fn looked_at(text: &str, options: &CompileOptions) -> Option<Arc<Compiled>> {
    let options = CompileOptions { show_broken: true, report_accesses: true, ..options.clone() };
    compile(text, &options).ok().map(Arc::new)
}

/// Preconditions with which a kernel meets a demand that it does not meet; `said`: what passes ask for.
pub(crate) fn with_preconditions(
    source: &SourceFile,
    compiled: &dyn Fn(&str) -> Option<Arc<Compiled>>,
    tile: &OptimizedKernel,
    what: What,
    said: &[Diagnostic],
) -> Tried {
    // Padding is a matter of sizes and tiles, whatever is promised.
    if matches!(what, What::AtMost(Figure::Padding, _)) {
        return Tried::Nothing;
    }
    let holds = |text: &str| {
        let program = compiled(text)?;
        let own = program.kernels.iter().find(|k| k.tile.written_name() == tile.written_name())?;
        let judged = demands::judged(own.tile.demanding(), &own.lowered, (None, &program.source), what);
        Some(matches!(judged, demands::DemandStatus::Holds))
    };
    promises::tried(source.text(), &tile.specialized, said, &holds)
}

/// Lowers a program to PTX.
///
/// # Errors
/// The target cannot do what the program requests.
pub fn lower(program: Optimized) -> Result<Compiled, Diagnostics> {
    let Optimized { source, target, kernels: mut tiles, dispatch, sequences, texts, diagnostics, .. } = program;
    let Optimized { deny, sizes, report_accesses, show_broken, places, options_used: asked, .. } = program;
    let mut sink = Sink::new();
    diagnostics.into_iter().for_each(|d| sink.push(d));
    let mut lowered = Vec::new();
    let one = |k: &OptimizedKernel| {
        let mut sink = Sink::new();
        // Demands are judged by what each access became.
        let accesses = report_accesses || !k.kernel.demands.is_empty();
        let lowered = stages::lower(&k.kernel, target, &source, accesses, &mut sink).ok();
        (lowered, chosen_values::name_in_errors(sink, &k.chosen, k.options.caller))
    };
    for (kernel, said) in parallel::map(tiles.iter().collect(), one) {
        sink.append(said);
        lowered.extend(kernel);
    }
    let linked = if sink.check().is_ok() { stages::link(lowered, target, &source, &mut sink).ok() } else { None };
    let contracts: Vec<Contract> = linked.as_ref().map_or_else(Vec::new, |linked| {
        let contract = |((l, _), tile): (&(Launch, _), &OptimizedKernel)| contract_of(l, linked.version, tile);
        linked.launches.iter().zip(&tiles).map(contract).collect()
    });
    if let Some(linked) = &linked {
        learn(&mut tiles, linked.launches.iter().map(|(_, report)| report));
        for ((_, report), tile) in linked.launches.iter().zip(&tiles) {
            // A program that is looked at says what would help when it is asked.
            let tried = |what: What, said: &[Diagnostic]| match show_broken {
                true => Tried::Nothing,
                false => with_preconditions(&source, &|text| looked_at(text, &asked), tile, what, said),
            };
            let broken = demands::broken(tile.demanding(), report, tried).into_iter();
            broken.map(|d| if show_broken { demands::shown(d) } else { d }).for_each(|d| sink.push(d));
        }
    }
    let programs = linked.as_ref().map_or_else(Vec::new, |_| {
        let kernels = contracts.clone();
        let span = |entry: &str| {
            tiles.iter().find(|k| k.kernel.name == entry).map_or_else(Default::default, |k| k.kernel.name_span)
        };
        for misfit in dispatch.iter().filter_map(|d| d.misfit(&kernels)) {
            let d = Diagnostic::error(codes::VARIANTS_DIFFER, span(&misfit.entry), misfit.what);
            let _ = sink.report(
                d.with_note("one call launches any of them: compile what takes other things into another file"),
            );
        }
        let file = LaunchFile { kernels, dispatch: dispatch.clone(), programs: Vec::new() };
        let caller = tiles.first().map_or_else(Caller::default, |tile| tile.options.caller);
        // Variants that one call cannot launch are not held against each other.
        if sink.check().is_ok() {
            let never = reachable_variants::never_launched(&file, caller, span);
            let entries: Vec<Entry<'_>> = tiles.iter().map(OptimizedKernel::entry).collect();
            let said = reachable_variants::forbidden(&file, &sizes, &entries).into_iter().chain(never);
            said.for_each(|d| sink.push(d));
        }
        sequences.iter().filter_map(|s| program_of(s, &file, &mut sink)).collect()
    });
    let diagnostics = apply_denied(&source, sink, &deny)?;
    let mut linked = linked.expect("no error was reported, so there is PTX");
    let tilec_ptx::print::Printed { text: ptx, instructions: ptx_lines } =
        linked.ptx(contracts.iter().filter_map(Contract::mark));
    let stages::Linked { version, launches, .. } = linked;
    let kernels = launches
        .into_iter()
        .zip(contracts)
        .zip(tiles)
        .map(|(((launch, report), contract), tile)| CompiledKernel {
            contract,
            report: KernelReport::new(&launch.entry, &report, &source, &diagnostics)
                .predicted(tile.prediction.as_ref(), tile.choice.as_ref()),
            lowered: report,
            tile,
        })
        .collect();
    let sequences = sequences.iter().map(tilec_ir::print::print_sequence).collect();
    Ok(Compiled {
        ptx,
        ptx_lines,
        ptx_version: version,
        kernels,
        dispatch,
        programs,
        texts,
        places,
        sequences,
        diagnostics,
        source,
        target,
    })
}

/// Refines the predictions with the code, and adds to each the launches that copy operands in front of it.
fn learn<'a>(tiles: &mut [OptimizedKernel], reports: impl Iterator<Item = &'a Report>) {
    for (tile, report) in tiles.iter_mut().zip(reports) {
        if has_roles(&tile.model) {
            let predicted = refined_predictions::of_roles(&tile.model, &tile.kernel, &tile.options, report);
            (tile.prediction, tile.block_time, tile.unpredicted) = match predicted {
                Ok((p, block)) => (Some(p), Some(block), None),
                Err(why) => (None, None, Some(why)),
            };
        }
        tile.open_loops = refined_predictions::open_loops(tile.prediction.as_ref(), &tile.kernel, &tile.options);
        let (p, by_clock) = (tile.prediction.as_mut(), tile.block_time.is_some());
        tile.awaited = refined_predictions::refine(p, &tile.kernel, &tile.options, (report, by_clock));
    }
    for main in 0..tiles.len() {
        // Kernels in front of it that complete no kernel of the source are its own.
        let launches = tiles[main].source_kernel.as_ref().map_or(1, |written| written.launches);
        let copies = &tiles[(main + 1).saturating_sub(launches)..main];
        let copied =
            copies.iter().filter_map(|k| copied_operands::of(&k.specialized, k.prediction.as_ref().map(|p| p.seconds)));
        let copied: Vec<CopiedOperand> = copied.collect();
        let times: Option<Vec<&Prediction>> = copies.iter().map(|k| k.prediction.as_ref()).collect();
        let times = times.filter(|times| !times.is_empty());
        let own = tiles[main].prediction.as_ref();
        let with_copies = own.zip(times).map(|(own, times)| own.with_copies(times.into_iter()));
        (tiles[main].copied, tiles[main].with_copies) = (copied, with_copies);
    }
}

/// The contract of a kernel that was lowered.
fn contract_of(launch: &Launch, version: (u8, u8), tile: &OptimizedKernel) -> Contract {
    of_kernel(launch, version).with_distinct(&stored(&tile.specialized)).identified()
}

/// What a sequence is once its kernels are compiled. What does not go together is reported.
fn program_of(sequence: &Sequence, file: &LaunchFile, sink: &mut Sink) -> Option<Program> {
    let launches: Vec<String> = sequence.launches.iter().map(|(name, _)| name.clone()).collect();
    match file.program(&sequence.name, &launches) {
        Ok(program) => Some(program),
        Err(misfits) => {
            for misfit in misfits {
                let d = Diagnostic::error(codes::BAD_SEQUENCE, sequence.name_span, misfit);
                let _ = sink.report(d.with_note("what kernels of a sequence call alike is the same"));
            }
            None
        }
    }
}

/// Turns denied remarks into errors, and everything into `Err` if there is an error.
fn apply_denied(source: &SourceFile, sink: Sink, deny: &BTreeSet<String>) -> Result<Vec<Diagnostic>, Diagnostics> {
    let mut errors = sink.error_count();
    let mut list = sink.into_diagnostics();
    for d in &mut list {
        if let Some(kind) = d.kind.filter(|&kind| deny.contains(kind)) {
            (d.severity, d.code) = (Severity::Error, Code(kind));
            d.notes.push(format!("refused by `--deny {kind}`"));
            errors += 1;
        }
    }
    if errors == 0 { Ok(list) } else { Err(Diagnostics { source: source.clone(), list, errors }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilec_ir::diag::Span;

    #[test]
    fn only_denied_remarks_become_errors() {
        let source = SourceFile::new("x.tile", "kernel");
        let sink = || {
            let mut sink = Sink::new();
            sink.push(Diagnostic::remark("vectorize", Span::new(0, 6), "copy is 2 bytes wide"));
            sink.push(Diagnostic::remark("swizzle", Span::new(0, 6), "no conflicts"));
            sink
        };
        assert_eq!(apply_denied(&source, sink(), &BTreeSet::new()).expect("remarks only").len(), 2);
        let denied = apply_denied(&source, sink(), &BTreeSet::from(["vectorize".to_owned()])).expect_err("denied");
        assert_eq!(denied.errors, 1);
        let text = denied.to_string();
        assert!(text.contains("error[vectorize]: copy is 2 bytes wide") && text.contains("--deny vectorize"), "{text}");
        assert!(!text.contains("swizzle"), "{text}");
    }
}
