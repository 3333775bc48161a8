//! `tilec fmt FILE.tile ..`: lays source files out, or says which are not.

use crate::Diagnostics;
use crate::command::args::Fmt;
use crate::command::failure::{Failure, SideMessages};
use crate::command::program::{display_name, read};
use crate::output::{write_file, write_stderr, write_stdout};
use crate::render::SourceFile;
use std::path::Path;
use tilec_ir::codes;
use tilec_ir::diag::Sink;
use tilec_ir::format::format;

/// Formats files.
pub(crate) fn fmt_command(args: &Fmt) -> Result<(), Failure> {
    let said = SideMessages { remarks: false, format: args.error_format };
    let mut fine = true;
    for path in &args.files {
        fine &= one(args, path, said)?;
    }
    if fine { Ok(()) } else { Err(Failure::Said) }
}

/// Formats a file. False: it has errors, which are printed, or `--check` found a difference.
fn one(args: &Fmt, path: &Path, said: SideMessages) -> Result<bool, Failure> {
    let (source, name) = (read(path)?, display_name(path));
    let mut sink = Sink::new();
    let Ok(text) = format(&source, &mut sink) else {
        let errors = sink.error_count();
        let list = sink.into_diagnostics();
        let shown: Result<(), _> = Err(Diagnostics { source: SourceFile::new(name, source), list, errors });
        return Ok(said.unless_error(shown).is_ok());
    };
    if args.check {
        if let Some(line) = first_difference(&source, &text) {
            write_stderr(&format!("{name}:{line}: not formatted; `tilec fmt {name}` does it\n"));
            return Ok(false);
        }
    } else if path == Path::new("-") {
        write_stdout(text.as_bytes())?;
    } else if text != source {
        write_file(path, text.as_bytes())
            .map_err(|e| Failure::io(codes::NOT_WRITABLE, format!("cannot write `{name}`: {e}")))?;
    }
    Ok(true)
}

/// The first line, from 1, in which two texts differ.
fn first_difference(a: &str, b: &str) -> Option<usize> {
    let same = a.split('\n').zip(b.split('\n')).take_while(|(a, b)| a == b).count();
    (a != b).then_some(same + 1)
}
