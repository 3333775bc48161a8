//! The command line, for starting the command again: launches run in child processes.

use crate::command::failure::Failure;
use std::ffi::OsString;
use std::process;
use tilec_ir::codes;

/// A call of the command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    words: Vec<OsString>,
    again: Result<Vec<OsString>, String>,
}

impl Call {
    /// A call with these words, without the name of the program. The words `again` start the command in another process.
    pub fn new(words: Vec<OsString>, again: Vec<OsString>) -> Call {
        Call { words, again: Ok(again) }
    }

    /// The call that this process is.
    pub fn of_process() -> Call {
        let again = std::env::current_exe().map(|own| vec![own.into_os_string()]).map_err(|e| e.to_string());
        Call { words: std::env::args_os().skip(1).collect(), again }
    }

    /// All words, with the name of the program.
    pub(crate) fn words(&self) -> impl Iterator<Item = OsString> {
        std::iter::once("tilec".into()).chain(self.words.iter().cloned())
    }

    /// Makes processes of this command with a subcommand.
    pub(crate) fn launcher(&self) -> Result<impl Fn(&str) -> process::Command, Failure> {
        let lost = |why: &str| Failure::io(codes::LAUNCH_FAILED, format!("cannot find this program again: {why}"));
        let again = self.again.as_ref().map_err(|why| lost(why))?;
        let (program, first) = again.split_first().ok_or_else(|| lost("it has no name"))?;
        Ok(move |subcommand: &str| {
            let mut command = process::Command::new(program);
            command.args(first).arg(subcommand);
            command
        })
    }
}
