//! Warnings about a source and its options that do not come from a pass.

use super::options::{ALIGN_ROWS, CompileOptions};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Sink, Span};
use tilec_ir::kernel::Module;
use tilec_ir::target::Target;
use tilec_passes::choose::Card;

/// The error that a source is PTX: hardly a word of it is in the language.
pub(super) fn is_ptx(source: &str) -> Option<Diagnostic> {
    let blank = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with("//");
    let line = source.lines().find(|line| !blank(line)).filter(|line| line.trim_start().starts_with(".version"))?;
    let start = line.as_ptr() as usize - source.as_ptr() as usize;
    let message = "expected a tile program, found PTX";
    let d = Diagnostic::error(codes::EXPECTED, Span::new(start, start + line.trim_end().len()), message);
    Some(d.with_note("`tilec run FILE.ptx --launch FILE.json` runs PTX, in a file whose name ends in `.ptx`"))
}

/// The remark that a variant would be a sequence if it were alone.
pub(super) fn sequence_remark(
    module: &Module,
    options: &CompileOptions,
    variant: &[(String, String)],
) -> Option<Diagnostic> {
    let mut alone = module.clone();
    let pass_options = options.file_options(Some(variant));
    tilec_passes::run_on_file(&mut alone, &pass_options, &options.sizes, &mut Sink::new(), &mut |_, _| {}).ok()?;
    let changed = module.kernels.iter().find(|k| alone.kernels.iter().all(|other| other.name != k.name));
    let definitions: Vec<String> = variant.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let message =
        format!("operands are not copied to rows of multiples of 16 bytes in the variant `{}`", definitions.join(","));
    let note = "variants are kernels, one of which a call launches; a file of its own makes it a sequence";
    Some(Diagnostic::remark(ALIGN_ROWS, changed?.name_span, message).with_note(note))
}

/// The warning that a card has faster instructions than the target.
pub(super) fn other_generation(card: &Card, target: Target, module: &Module) -> Option<Diagnostic> {
    let generation = |cc: u32| [75, 80, 89, 90].iter().filter(|&&first| first <= cc).count();
    if generation(card.cc) == generation(target.cc()) {
        return None;
    }
    let own = Target::ALL.iter().find(|t| t.cc() == card.cc).map_or("", |t| t.name());
    let span = module.kernels.first().map_or_else(Default::default, |k| k.name_span);
    let message = format!("chosen for {}, a card of another generation than {}", card.name, target.name());
    let note = format!("code for {} runs on it as it is; `--target {own}` is the card's own generation", target.name());
    Some(Diagnostic::warning(codes::OTHER_GENERATION, span, message).with_note(note))
}
