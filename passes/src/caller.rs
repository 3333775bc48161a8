//! The callers of the compiler: messages name options as the caller writes them.

use tilec_ir::spelling;

/// The reader of a message.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Caller {
    /// The `tilec` command, and callers without their own terms.
    #[default]
    Command,
    /// A command that takes one program without variants: `tilec why`.
    Inspection,
    /// `tilec.compile` of Python.
    Python,
}

impl Caller {
    /// How to give this compile-time parameter a value.
    pub fn define(self, name: &str) -> String {
        match self {
            Caller::Command | Caller::Inspection => format!("`-D {name}=...`"),
            Caller::Python => format!("the keyword argument `{name}=...`"),
        }
    }

    /// How to give compile-time parameters values.
    pub fn defines(self) -> &'static str {
        match self {
            Caller::Command | Caller::Inspection => "`-D NAME=VALUE`",
            Caller::Python => "keyword arguments (`NAME=VALUE`)",
        }
    }

    /// The note on an unknown parameter that is a slip for an argument of the call.
    pub fn unknown_define(self, name: &str) -> Option<String> {
        let arguments: &[&str] = match self {
            Caller::Command | Caller::Inspection => &[],
            Caller::Python => &["target", "kernel", "sizes", "variants", "name"],
        };
        let near = spelling::nearest(name, arguments.iter().copied(), |argument| argument)?;
        Some(format!("did you mean the argument `{near}=`?"))
    }

    /// How to give the sizes for which parameters are chosen.
    pub fn sizes(self) -> &'static str {
        match self {
            Caller::Command | Caller::Inspection => "`--for`",
            Caller::Python => "`sizes=`",
        }
    }

    /// How to give these sizes.
    pub fn sizes_of(self, sizes: &[(String, i64)]) -> String {
        let list = |one: fn(&(String, i64)) -> String, between| sizes.iter().map(one).collect::<Vec<_>>().join(between);
        match self {
            Caller::Command | Caller::Inspection => format!("`--for {}`", list(|(name, n)| format!("{name}={n}"), ",")),
            Caller::Python => format!("`sizes={{{}}}`", list(|(name, n)| format!("\"{name}\": {n}"), ", ")),
        }
    }

    /// How to select the target.
    pub fn target(self, name: &str) -> String {
        match self {
            Caller::Command | Caller::Inspection => format!("`--target {name}`"),
            Caller::Python => format!("`target=\"{name}\"`"),
        }
    }

    /// The option or default that set the target, for messages.
    pub fn target_source(self) -> &'static str {
        match self {
            Caller::Command | Caller::Inspection => "the command line",
            Caller::Python => "`target=`",
        }
    }

    /// How to give a compile-time parameter another value than it has, or to compile for both.
    pub fn redefine(self, name: &str, now: i64, then: i64) -> String {
        match self {
            Caller::Inspection => format!("`-D {name}={then}`"),
            Caller::Command => format!("`-D {name}={then}`; `--variant {name}={now}/{then}` compiles for both"),
            Caller::Python => {
                format!("`{name}={then}`; `variants=[{{\"{name}\": {now}}}, {{\"{name}\": {then}}}]` compiles for both")
            }
        }
    }

    /// How to compile one variant for aligned rows and one for any.
    pub fn aligned_variants(self) -> &'static str {
        match self {
            Caller::Command | Caller::Inspection => "`--variant ALIGN=8/1`",
            Caller::Python => "`variants=[{\"ALIGN\": 8}, {\"ALIGN\": 1}]`",
        }
    }
}
