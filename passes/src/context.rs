//! The options of the passes, and the context that each gets besides the kernel.

use crate::caller::Caller;
use crate::choose::Card;
use crate::single_stage::Depth;
use crate::table::{PASSES, pass};
use std::collections::BTreeSet;
use tilec_ir::diag::{Diagnostic, Reported, Sink, Span};
use tilec_ir::iteration_time::IterationTime;
use tilec_ir::kernel::Kernel;
use tilec_ir::target::Target;

/// Values of sizes, by name.
pub type Sizes = Vec<(String, i64)>;

/// Options of the pipeline.
#[derive(Clone, Debug)]
pub struct Options {
    /// The chip to compile for.
    pub target: Target,
    /// Compile-time parameters, `NAME=VALUE` as text.
    pub defines: Vec<(String, String)>,
    /// Names of passes that are switched off.
    pub disabled: BTreeSet<String>,
    /// Verify after every pass.
    pub verify_each: bool,
    /// Values of sizes for which `auto` parameters are chosen; absent sizes are large.
    pub sizes: Sizes,
    /// Values of `auto` parameters were already chosen, with regard to the losses of each.
    pub chosen: bool,
    /// The card for which they are chosen; `None`: the default card of the target.
    pub card: Option<&'static Card>,
    /// The reader of messages, which determines how they name options.
    pub caller: Caller,
    /// The model's prediction for a schedule with one stage.
    pub depth: Option<Depth>,
}

impl Options {
    /// All passes on, no definitions.
    pub fn new(target: Target) -> Options {
        Options {
            target,
            defines: Vec::new(),
            disabled: BTreeSet::new(),
            verify_each: cfg!(debug_assertions),
            sizes: Vec::new(),
            chosen: false,
            card: None,
            caller: Caller::default(),
            depth: None,
        }
    }

    /// A pass that is switched off and that roles, and so wgmma, need; `None`: none.
    pub(crate) fn missing_for_roles(&self) -> Option<&'static str> {
        PASSES.iter().find(|pass| pass.for_roles && !self.is_on(pass.name)).map(|pass| pass.name)
    }

    /// Whether loops with stages are expanded.
    pub(crate) fn expands(&self) -> bool {
        PASSES.iter().all(|pass| !pass.for_stages || self.is_on(pass.name))
    }

    /// Whether register layouts are the simplest ones, because a pass that chooses them is switched off. A written width for the layouts that it would have
    /// chosen is then an upper bound: switching a pass off must not make a program invalid.
    pub(crate) fn plain_layouts(&self) -> bool {
        PASSES.iter().any(|pass| pass.for_layouts && !self.is_on(pass.name))
    }

    /// Whether a pass is on. The pass itself tests this, also when another pass queries its decision.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        pass(name).required || !self.disabled.contains(name)
    }

    /// The card of the model: the given one, or the default of the target.
    pub fn usual_card(&self) -> &'static Card {
        self.card.unwrap_or_else(|| Card::of(self.target))
    }
}

/// The context of a pass.
pub struct Cx<'a> {
    /// The options.
    pub options: &'a Options,
    /// Whether the pass is on.
    pub enabled: bool,
    /// The pass's name, the kind of its remarks.
    pub pass: &'static str,
    /// Whether warnings are shown. For candidates they are not, so analyses that only warn are skipped.
    pub(crate) heard: bool,
    pub(crate) sink: &'a mut Sink,
}

impl<'a> Cx<'a> {
    /// The context of a pass.
    pub(crate) fn new(options: &'a Options, pass: &'static str, sink: &'a mut Sink) -> Cx<'a> {
        Cx { options, enabled: options.is_on(pass), pass, heard: true, sink }
    }

    /// The same without warnings.
    pub(crate) fn without_warnings(self) -> Cx<'a> {
        Cx { heard: false, ..self }
    }
}

impl Cx<'_> {
    /// Reports a remark: what the pass did, or declined to do and why.
    pub fn remark(&mut self, span: Span, message: impl Into<String>) {
        self.sink.push(Diagnostic::remark(self.pass, span, message));
    }

    /// A remark about the resources of an iteration.
    pub(crate) fn pace(&mut self, span: Span, message: impl Into<String>, pace: IterationTime) {
        self.sink.push(Diagnostic::remark(self.pass, span, message).with_pace(pace));
    }

    /// A remark with a way out.
    pub fn remark_note(&mut self, span: Span, message: impl Into<String>, note: impl Into<String>) {
        self.sink.push(Diagnostic::remark(self.pass, span, message).with_note(note));
    }

    /// A remark that a fast path is lost, which becomes a warning where that costs much ([`crate::choose::predicted_losses`]).
    pub(crate) fn remark_missed(&mut self, remark: Diagnostic) {
        self.sink.push(remark);
    }

    /// Reports errors of the verifier, if a decision of the pass may have made the source invalid.
    pub fn verify(&mut self, kernel: &Kernel) -> Result<(), Reported> {
        tilec_ir::verify::verify(kernel, self.sink)
    }

    /// Warns.
    pub fn warn(&mut self, diagnostic: Diagnostic) {
        self.sink.push(diagnostic);
    }

    /// Refuses a legal program.
    pub fn report(&mut self, diagnostic: Diagnostic) -> Reported {
        self.sink.report(diagnostic)
    }
}
