//! Codes of a header, each with its text.

use std::fmt::Write as _;

/// The category of an error code, `tilec_kind` in the header.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Value,
    Requires,
    Grid,
    Expression,
    Address,
    Overlap,
    Scratch,
    Target,
}

impl Kind {
    const ALL: [Kind; 8] = [
        Kind::Value,
        Kind::Requires,
        Kind::Grid,
        Kind::Expression,
        Kind::Address,
        Kind::Overlap,
        Kind::Scratch,
        Kind::Target,
    ];

    /// Whether another variant may fit where one is refused for this.
    pub(super) fn is_of_variant(self) -> bool {
        match self {
            Kind::Value | Kind::Requires | Kind::Grid | Kind::Address => true,
            Kind::Expression | Kind::Overlap | Kind::Scratch | Kind::Target => false,
        }
    }

    /// The C condition that `kind` is a category of errors of a variant.
    pub(super) fn of_variant() -> String {
        let kinds = Kind::ALL.iter().filter(|kind| kind.is_of_variant());
        kinds.map(|kind| format!("kind == {}", kind.word())).collect::<Vec<_>>().join(" || ")
    }

    fn word(self) -> &'static str {
        match self {
            Kind::Value => "TILEC_VALUE",
            Kind::Requires => "TILEC_REQUIRES",
            Kind::Grid => "TILEC_GRID",
            Kind::Expression => "TILEC_EXPRESSION",
            Kind::Address => "TILEC_ADDRESS",
            Kind::Overlap => "TILEC_OVERLAP",
            Kind::Scratch => "TILEC_SCRATCH",
            Kind::Target => "TILEC_TARGET",
        }
    }
}

/// The codes in use: the first is -1.
#[derive(Default)]
pub(super) struct Messages {
    all: Vec<(Kind, String)>,
}

impl Messages {
    /// The code of a message.
    pub(super) fn code(&mut self, kind: Kind, text: String) -> String {
        let known = self.all.iter().position(|(k, t)| *k == kind && *t == text);
        let at = known.unwrap_or_else(|| {
            self.all.push((kind, text));
            self.all.len() - 1
        });
        format!("-{}", at + 1)
    }

    /// The table, and the functions over it.
    pub(super) fn write(&self, prefix: &str) -> String {
        let mut out =
            format!("/* The code -1 is the first of these. */\nstatic const tilec_note {prefix}_notes[] = {{\n");
        for (kind, text) in &self.all {
            let _ = writeln!(out, "    {{{}, {}}},", kind.word(), super::text::quoted(text.as_bytes()));
        }
        let count = self.all.len();
        let _ = write!(
            out,
            "}};

TILEC_API tilec_kind {prefix}_kind(int code)
{{
    if (code == 0)
        return TILEC_SUCCESS;
    return code < 0 && code >= -{count} ? {prefix}_notes[-1 - code].kind : TILEC_DRIVER;
}}

TILEC_API const char *{prefix}_message(int code)
{{
    const char *text = NULL;
    if (code < 0 && code >= -{count})
        return {prefix}_notes[-1 - code].text;
    if (TILEC_CU(cuGetErrorString)((CUresult)code, &text) != CUDA_SUCCESS || text == NULL)
        return \"an error that the driver has no words for\";
    return text;
}}
"
        );
        out
    }
}
