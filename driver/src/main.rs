//! The `tilec` command: [`tilec::command`].

use std::process::ExitCode;
use tilec::command::{Call, main as command};

fn main() -> ExitCode {
    ExitCode::from(command(&Call::of_process()))
}
