//! The calls into the other crates, one function a stage.

use crate::compile::source_lines::{Place, Places};
use crate::console::render::SourceFile;
use crate::contract::version::decimal_version;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Sink, Span};
use tilec_ir::kernel::{Kernel, Module};
use tilec_ir::target::{MAX_THREADS, Target};
use tilec_ptx::check::{self, Limits};
use tilec_ptx::launch::Launch;
use tilec_ptx::lower::Lowered;
use tilec_ptx::module::{Item, Module as PtxModule};
use tilec_ptx::report::Report;

/// Shared memory that a kernel may declare statically, on every target.
const STATIC_SMEM: u32 = 48 << 10;

pub(crate) fn parse(source: &str, sink: &mut Sink) -> Result<Module, Reported> {
    tilec_ir::parser::parse(source, sink)
}

pub(crate) fn print(kernel: &Kernel) -> String {
    tilec_ir::print::print(kernel)
}

/// The kernel as text, with the source place of each line.
pub(crate) fn print_places(kernel: &Kernel) -> (String, Vec<Place>) {
    let tilec_ir::print::Printed { text, lines } = tilec_ir::print::print_lines(kernel);
    let places = Places::new(kernel);
    (text, lines.into_iter().map(|stmt| places.of_statement(stmt)).collect())
}

/// The file as text, with the source place of each line; the lines of sequences have none.
pub(crate) fn print_module_places(module: &Module) -> (String, Vec<Place>) {
    let (mut texts, mut places) = (Vec::new(), Vec::new());
    let none = Place { stmt: None, span: Span::default() };
    for (text, own) in module.kernels.iter().map(print_places) {
        if !texts.is_empty() {
            places.push(none);
        }
        texts.push(text);
        places.extend(own);
    }
    texts.extend(module.sequences.iter().map(tilec_ir::print::print_sequence));
    let text = texts.join("\n");
    places.resize(text.lines().count(), none);
    (text, places)
}

pub(crate) fn verify(kernel: &Kernel, sink: &mut Sink) -> Result<(), Reported> {
    tilec_ir::verify::verify(kernel, sink)
}

pub(crate) fn lower(
    kernel: &Kernel,
    target: Target,
    source: &SourceFile,
    report_accesses: bool,
    sink: &mut Sink,
) -> Result<Lowered, Reported> {
    let source = tilec_ptx::lower::Source { name: source.name(), text: source.text() };
    tilec_ptx::lower::lower(kernel, target, source, report_accesses, sink)
}

/// The launch of a kernel with bound compile-time parameters, as far as it follows from the source.
pub(crate) fn interface(kernel: &Kernel, target: Target) -> Launch {
    tilec_ptx::lower::interface(kernel, target)
}

/// One PTX module of all kernels.
pub(crate) struct Linked {
    module: PtxModule,
    pub(crate) version: (u8, u8),
    pub(crate) launches: Vec<(Launch, Report)>,
}

impl Linked {
    /// The text, with these comments at its head, and which of its lines are instructions.
    pub(crate) fn ptx(&mut self, comments: impl IntoIterator<Item = String>) -> tilec_ptx::print::Printed {
        self.module.header.extend(comments);
        tilec_ptx::print::print_lines(&self.module)
    }
}

/// Puts the kernels of a file into one module with the lowest version that works, and checks it.
pub(crate) fn link(
    lowered: Vec<Lowered>,
    target: Target,
    source: &SourceFile,
    sink: &mut Sink,
) -> Result<Linked, Reported> {
    let sm = target.name().parse().expect("the PTX tables have every target");
    let mut module = PtxModule::new(sm);
    let mut launches = Vec::new();
    for kernel in lowered {
        module.header.extend(kernel.module.header);
        // All kernels come from one source, so their files are the same.
        module.files = kernel.module.files;
        module.functions.extend(kernel.module.functions);
        launches.push((kernel.launch, kernel.report));
    }
    let (version, forced_by) = check::required_version(&module);
    module.version = Some(version);
    let at = |function: usize, item: usize| loc(&module, function, item, source);
    let text = decimal_version(version);
    sink.push(match forced_by {
        Some(by) => {
            let message = format!("PTX {text} is needed by `{}`", by.feature());
            Diagnostic::remark("ptx-version", at(by.function, by.item), message)
        }
        None => {
            let message = format!("PTX {text} is the first that has {}; no instruction needs more", target.name());
            Diagnostic::remark("ptx-version", Span::default(), message)
        }
    });
    let limits = Limits {
        static_shared_bytes: STATIC_SMEM,
        shared_bytes: u32::try_from(target.smem_per_block()).unwrap_or(u32::MAX),
        threads: MAX_THREADS,
    };
    for error in check::check(&module, &limits) {
        let span = match (error.function, error.item) {
            (Some(function), Some(item)) => at(function, item),
            _ => Span::default(),
        };
        let _ = sink.report(Diagnostic::error(codes::ILLEGAL_PTX, span, error.to_string()));
    }
    sink.check()?;
    Ok(Linked { module, version, launches })
}

/// The source place of an item: the last position before it.
fn loc(module: &PtxModule, function: usize, item: usize, source: &SourceFile) -> Span {
    let body = module.functions.get(function).map_or(&[][..], |f| &f.body);
    body.iter()
        .take(item)
        .rev()
        .find_map(|i| match i {
            Item::Loc { line, col, .. } => source.line_span(usize::try_from(*line).ok()?, usize::try_from(*col).ok()?),
            Item::Inst(_) | Item::Label(_) | Item::Comment(_) | Item::Pragma(_) => None,
        })
        .unwrap_or_default()
}
