//! The options of the passes, and the context that each gets besides the kernel.

use crate::caller::Caller;
use crate::choose::Card;
use crate::depth::Depth;
use crate::table::{PASSES, pass};
use std::collections::BTreeSet;
use tilec_ir::diag::{Diagnostic, Reported, Sink, Span};
use tilec_ir::kernel::Kernel;
use tilec_ir::pace::Pace;
use tilec_ir::target::Target;

/// Values of sizes, by name.
pub type Sizes = Vec<(String, i64)>;

/// What the pipeline is asked to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// The chip to compile for.
    pub target: Target,
    /// Compile-time parameters, `NAME=VALUE` as text.
    pub defines: Vec<(String, String)>,
    /// Names of passes that make only plain decisions.
    pub disabled: BTreeSet<String>,
    /// Verify after every pass.
    pub verify_each: bool,
    /// Values of sizes for which `auto` parameters are chosen; of those that are absent, large ones.
    pub sizes: Sizes,
    /// Values of `auto` parameters were chosen already, by what is lost with each.
    pub chosen: bool,
    /// The card for which they are chosen; `None`: the one that stands for the target.
    pub card: Option<&'static Card>,
    /// Who is told of ways out.
    pub caller: Caller,
    /// What the model says of a schedule that requests one stage.
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

    /// The pass that is switched off without which there are no roles, and so no wgmma; `None`: there is none.
    pub(crate) fn missing_for_roles(&self) -> Option<&'static str> {
        PASSES.iter().find(|pass| pass.for_roles && !self.is_on(pass.name)).map(|pass| pass.name)
    }

    /// Whether loops that are given stages are expanded: else they are left as they are.
    pub(crate) fn expands(&self) -> bool {
        PASSES.iter().all(|pass| !pass.for_stages || self.is_on(pass.name))
    }

    /// Whether layouts of registers are the plainest there are, since a pass that chooses them is switched off. A width written for those it would have
    /// chosen is then an upper bound: switching a pass off must not make a program invalid.
    pub(crate) fn plain_layouts(&self) -> bool {
        PASSES.iter().any(|pass| pass.for_layouts && !self.is_on(pass.name))
    }

    /// Whether a pass may do more than the plain thing. The pass itself asks, wherever it says what it would do.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        pass(name).required || !self.disabled.contains(name)
    }

    /// The card that is chosen for: the one given, or the one that stands for the target.
    pub fn usual_card(&self) -> &'static Card {
        self.card.unwrap_or_else(|| Card::of(self.target))
    }
}

/// What a pass sees besides the kernel.
pub struct Cx<'a> {
    /// The options.
    pub options: &'a Options,
    /// Whether the pass may do more than the plain thing.
    pub enabled: bool,
    /// The pass's name, the kind of its remarks.
    pub pass: &'static str,
    /// Whether somebody reads warnings: of candidates nobody does, so what only warns need not be looked for.
    pub(crate) heard: bool,
    pub(crate) sink: &'a mut Sink,
}

impl<'a> Cx<'a> {
    /// What a pass sees.
    pub(crate) fn new(options: &'a Options, pass: &'static str, sink: &'a mut Sink) -> Cx<'a> {
        Cx { options, enabled: options.is_on(pass), pass, heard: true, sink }
    }

    /// The same where nobody reads warnings.
    pub(crate) fn unheard(self) -> Cx<'a> {
        Cx { heard: false, ..self }
    }
}

impl Cx<'_> {
    /// Says what the pass did, or declined to do and why.
    pub fn remark(&mut self, span: Span, message: impl Into<String>) {
        self.sink.push(Diagnostic::remark(self.pass, span, message));
    }

    /// A remark of what an iteration takes.
    pub(crate) fn pace(&mut self, span: Span, message: impl Into<String>, pace: Pace) {
        self.sink.push(Diagnostic::remark(self.pass, span, message).with_pace(pace));
    }

    /// A remark with a way out.
    pub fn remark_note(&mut self, span: Span, message: impl Into<String>, note: impl Into<String>) {
        self.sink.push(Diagnostic::remark(self.pass, span, message).with_note(note));
    }

    /// A remark that a fast path is lost, which becomes a warning where that costs much ([`crate::choose::losses`]).
    pub(crate) fn lost(&mut self, remark: Diagnostic) {
        self.sink.push(remark);
    }

    /// Reports what the verifier finds, where a decision of the pass may have made what the user wrote wrong.
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
