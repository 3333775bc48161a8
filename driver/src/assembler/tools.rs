//! Architectures of machine code, the tools that support them, and the errors of both.

use crate::assembler::message::{PtxasMessage, Severity};
use std::time::Duration;
use std::{fmt, str::FromStr};

/// A real architecture as `ptxas -arch` takes it: `sm_70`, `sm_90a`, `sm_100f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arch {
    /// Compute capability times ten: 70 for `sm_70`.
    pub number: u32,
    /// `a` (this architecture only) or `f` (its family), if any.
    pub suffix: Option<char>,
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.number)?;
        self.suffix.map_or(Ok(()), |c| write!(f, "{c}"))
    }
}

impl FromStr for Arch {
    type Err = AssemblerError;

    /// Accepts `sm_` with two or three digits and an optional `a` or `f`, and nothing else, so that the
    /// text can safely become a command-line argument.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || AssemblerError::BadArch(text.to_owned());
        let rest = text.strip_prefix("sm_").ok_or_else(bad)?;
        let suffix = rest.chars().last().filter(|c| matches!(c, 'a' | 'f'));
        let digits = rest.strip_suffix(['a', 'f']).unwrap_or(rest);
        if !(2..=3).contains(&digits.len()) || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(bad());
        }
        let number = digits.parse().map_err(|_| bad())?;
        Ok(Arch { number, suffix })
    }
}

/// An external tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// The assembler, PTX to cubin.
    Ptxas,
    /// The disassembler, cubin to SASS.
    Nvdisasm,
}

impl Tool {
    /// The name of the executable.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Tool::Ptxas => "ptxas",
            Tool::Nvdisasm => "nvdisasm",
        }
    }

    /// The environment variable that names the executable.
    #[must_use]
    pub fn variable(self) -> &'static str {
        match self {
            Tool::Ptxas => "TILEC_PTXAS",
            Tool::Nvdisasm => "TILEC_NVDISASM",
        }
    }

    /// Folders of the project's cache, the one most likely to serve `arch` first.
    pub(crate) fn cache_folders(self, arch: Arch) -> [&'static str; 2] {
        let (old, new) = match self {
            Tool::Ptxas => ("ptxas-12.9", "ptxas-13"),
            Tool::Nvdisasm => ("nvdisasm-12", "nvdisasm-13"),
        };
        if arch.number < 75 { [old, new] } else { [new, old] }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Version of a tool, as in `V12.9.86`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ToolVersion {
    /// Major number: 12.
    pub major: u32,
    /// Minor number: 9.
    pub minor: u32,
    /// Build: 86.
    pub build: u32,
}

impl ToolVersion {
    /// Reads the version out of what `--version` prints.
    #[must_use]
    pub fn parse(said: &str) -> Option<ToolVersion> {
        said.split([' ', '\n', '\r', ',']).find_map(|word| {
            let mut numbers = word.strip_prefix('V')?.split('.').map(str::parse);
            let mut next = || numbers.next()?.ok();
            Some(ToolVersion { major: next()?, minor: next()?, build: next()? })
        })
    }

    /// Whether this version knows `arch`, and if not, which versions do.
    pub(crate) fn serves(self, arch: Arch) -> Result<(), String> {
        // Architecture, first release that knows it, first release that no longer does. From the
        // "Supported architectures" of the releases' nvcc documents; unlisted ones are left to ptxas.
        type Release = (u32, u32);
        const KNOWN: &[(u32, Release, Option<Release>)] = &[
            (70, (9, 0), Some((13, 0))),
            (72, (9, 2), Some((13, 0))),
            (75, (10, 0), None),
            (80, (11, 0), None),
            (86, (11, 1), None),
            (87, (11, 4), None),
            (89, (11, 8), None),
            (90, (11, 8), None),
            (100, (12, 8), None),
            (101, (12, 8), Some((13, 0))),
            (103, (12, 9), None),
            (110, (13, 0), None),
            (120, (12, 8), None),
            (121, (12, 9), None),
        ];
        let Some(&(_, first, gone)) = KNOWN.iter().find(|row| row.0 == arch.number) else {
            return Ok(());
        };
        let mine = (self.major, self.minor);
        if mine < first {
            return Err(format!("version {self} is too old for {arch}: {}.{} is the first", first.0, first.1));
        }
        match gone {
            Some(gone) if mine >= gone => {
                Err(format!("version {self} no longer knows {arch}: {}.{} dropped it", gone.0, gone.1))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for ToolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.build)
    }
}

/// Whether a place is the value of the tool's environment variable.
pub(crate) fn is_named(tool: Tool, place: &str) -> bool {
    place.starts_with(&format!("{}=", tool.variable()))
}

/// Why assembling or disassembling did not work.
#[derive(Debug, thiserror::Error)]
pub enum AssemblerError {
    /// The target is not a real architecture name.
    #[error("`{0}` is not an architecture such as `sm_70` or `sm_90a`")]
    BadArch(String),
    /// No usable tool on this machine. Lists the places that were searched.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// The operating system refused something.
    #[error("cannot {what}: {source}")]
    Io {
        /// The failed action, as a verb phrase.
        what: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The tool ran too long and was killed.
    #[error("{tool} did not finish within {} s and was stopped", limit.as_secs())]
    TimedOut {
        /// Which tool.
        tool: Tool,
        /// The limit it was given.
        limit: Duration,
    },
    /// `ptxas` found errors in the PTX: a bug of the compiler that wrote the PTX.
    #[error("ptxas {version} refuses the PTX: {}", first_error(messages))]
    Refused {
        /// All messages, in order; at least one is an error.
        messages: Vec<PtxasMessage>,
        /// The version that reported them.
        version: ToolVersion,
    },
    /// The tool failed in a way that is not about the input as far as one can tell.
    #[error("{tool} failed ({status}): {output}")]
    Failed {
        /// Which tool.
        tool: Tool,
        /// Its exit status, in words.
        status: String,
        /// The beginning of what it printed.
        output: String,
    },
}

pub(crate) fn first_error(messages: &[PtxasMessage]) -> &str {
    let error = messages.iter().find(|m| m.severity == Severity::Error);
    error.map_or("no reason given", |m| m.text.as_str())
}

/// No usable tool; lists every place looked at, in order, with the reason it was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFound {
    /// Which tool.
    pub tool: Tool,
    /// For which target.
    pub arch: Arch,
    /// The rejected candidates.
    pub looked: Vec<Refusal>,
}

impl NotFound {
    /// Whether the tool's environment variable names one that cannot be used.
    #[must_use]
    pub fn is_named(&self) -> bool {
        self.looked.iter().any(|refusal| is_named(self.tool, &refusal.place))
    }
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no {} for {} on this machine; looked at", self.tool, self.arch)?;
        for refusal in &self.looked {
            write!(f, "\n  {}: {}", refusal.place, refusal.reason)?;
        }
        let variable = self.tool.variable();
        match self.looked.as_slice() {
            [_] if self.is_named() => {
                write!(f, "\nset {variable} to a {}, or unset it to have one looked for", self.tool)
            }
            _ => write!(f, "\nset {variable} to one, or run scripts/fetch_tools.sh"),
        }
    }
}

impl std::error::Error for NotFound {}

/// A place that was looked at in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The place in words: an environment variable with its value, or a path.
    pub place: String,
    /// Why nothing there can be used.
    pub reason: String,
}
