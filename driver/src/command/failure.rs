//! Failures of the command.

use crate::output::write_stderr;
use crate::render::{self, Style};
use crate::{Diagnostics, compile};
use clap::ValueEnum;
use std::io::IsTerminal;
use std::sync::Mutex;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Span};

/// The format of diagnostics.
#[derive(Copy, Clone, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ErrorFormat {
    /// With carets into the source
    Human,
    /// An object per line
    Json,
}

/// Why a command did not succeed.
pub(crate) enum Failure {
    /// The program, or its surroundings.
    Diagnostics(compile::Diagnostics),
    /// The command line.
    Usage(String),
    /// The requested item does not exist; the text lists those that do.
    Asked(String),
    /// The message has been printed already.
    Said,
}

impl From<Diagnostics> for Failure {
    fn from(d: Diagnostics) -> Failure {
        Failure::Diagnostics(d)
    }
}

/// Standard output is the only thing written to without a name.
impl From<std::io::Error> for Failure {
    fn from(e: std::io::Error) -> Failure {
        Failure::io(codes::NOT_WRITABLE, format!("cannot write to standard output: {e}"))
    }
}

impl Failure {
    /// A failure of the surroundings.
    pub(crate) fn io(code: tilec_ir::diag::Code, message: String) -> Failure {
        let d = Diagnostic::error(code, Span::default(), message);
        Failure::Diagnostics(Diagnostics::one(render::SourceFile::new("", ""), d))
    }

    /// Prints the failure to standard error, and returns the exit status. (The caller shows remarks that came before an
    /// error, on request.)
    pub(crate) fn show(self, format: ErrorFormat) -> u8 {
        match self {
            Failure::Diagnostics(d) => {
                show(&d, false, format);
                1
            }
            Failure::Usage(message) => {
                match format {
                    ErrorFormat::Human => {
                        write_stderr(&format!("error: {message}\n\nFor more information, try '--help'.\n"));
                    }
                    ErrorFormat::Json => {
                        let line = serde_json::json!({ "severity": "error", "code": "usage", "message": message });
                        write_stderr(&format!("{line}\n"));
                    }
                }
                2
            }
            Failure::Asked(message) => {
                match format {
                    ErrorFormat::Human => write_stderr(&format!("error: {message}\n")),
                    ErrorFormat::Json => {
                        let line = serde_json::json!({ "severity": "error", "code": "usage", "message": message });
                        write_stderr(&format!("{line}\n"));
                    }
                }
                2
            }
            Failure::Said => 1,
        }
    }
}

/// Writes diagnostics to standard error.
pub(crate) fn show(d: &Diagnostics, remarks: bool, format: ErrorFormat) {
    let style = Style { color: color(), remarks };
    write_stderr(&match format {
        ErrorFormat::Human => render::human(&d.source, &d.list, d.errors, style),
        ErrorFormat::Json => render::json(&d.source, &d.list, style),
    });
}

/// Colour on a terminal, unless the environment requests none (no-color.org).
fn color() -> bool {
    let unset = |name: &str| std::env::var_os(name).is_none_or(|v| v.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
    std::io::stderr().is_terminal() && unset("NO_COLOR") && !dumb
}

/// The message of the panic, for [`bug`].
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Stores the message of a panic instead of printing it at once; with `RUST_BACKTRACE` set it is printed as usual, too.
pub(crate) fn quiet_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if let Ok(mut kept) = PANIC.lock()
            && kept.is_empty()
        {
            *kept = info.to_string();
        }
        if std::env::var_os("RUST_BACKTRACE").is_some_and(|v| v != "0") {
            usual(info);
        }
    }));
}

/// Says that tilec has a bug.
pub(crate) fn bug(format: ErrorFormat) -> u8 {
    let what = PANIC.lock().map(|kept| kept.clone()).unwrap_or_default();
    let version = env!("CARGO_PKG_VERSION");
    let ask =
        concat!("please report it with the command line and the source, at ", env!("CARGO_PKG_REPOSITORY"), "/issues");
    match format {
        ErrorFormat::Human => write_stderr(&format!(
            "error: this is a bug in tilec {version}\n\n{what}\n\n{ask}\n(`RUST_BACKTRACE=1` shows where it happened)\n"
        )),
        ErrorFormat::Json => {
            let line = serde_json::json!({
                "severity": "bug", "code": "bug", "message": what, "version": version, "notes": [ask],
            });
            write_stderr(&format!("{line}\n"));
        }
    }
    101
}

/// Messages in addition to the result, and their format.
#[derive(Copy, Clone)]
pub(crate) struct SideMessages {
    /// Remarks too.
    pub(crate) remarks: bool,
    /// In this form.
    pub(crate) format: ErrorFormat,
}

impl SideMessages {
    /// Shows everything if there is an error.
    pub(crate) fn unless_error<T>(self, result: Result<T, Diagnostics>) -> Result<T, Failure> {
        result.map_err(|d| {
            show(&d, self.remarks, self.format);
            Failure::Said
        })
    }

    /// Shows warnings, and remarks on request.
    pub(crate) fn warnings(self, source: crate::render::SourceFile, list: Vec<Diagnostic>) {
        show(&Diagnostics { source, list, errors: 0 }, self.remarks, self.format);
    }
}
