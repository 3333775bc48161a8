//! GPU work in a child process, with a time limit.
//!
//! A kernel that never ends cannot be stopped by the process that launched it, and a kernel that faults poisons that
//! process's context. The command therefore starts itself again with a hidden subcommand, writes a job to its standard
//! input and reads the result from its standard output. Both are one line of JSON followed by the bytes of the tensors,
//! whose lengths the line gives.

use crate::contract::Contract;
use crate::contract::number::Args;
use crate::run::program::Aliases;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The hidden subcommand.
pub const SUBCOMMAND: &str = "__launch";

/// Longest line of JSON that is read.
const MAX_HEADER: u64 = 16 << 20;

/// The job of the child. Tensors follow as bytes, in parameter order.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The launch contracts of the kernels, in order.
    pub launches: Vec<Contract>,
    /// Values of sizes, strides and scalars.
    pub args: Args,
    /// The PTX.
    pub ptx: String,
    /// Number of timed launches, after the one that is checked.
    pub repeat: u32,
    /// Tensors that are to be on others.
    #[serde(default)]
    pub aliases: Aliases,
    /// Lengths of the tensors, bytes.
    pub tensors: Vec<usize>,
}

/// The result of the child. The tensors follow as bytes, as the first launch left them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// What happened.
    pub result: Result<Launched, Refused>,
    /// Lengths of the tensors, bytes; empty if nothing was launched.
    pub tensors: Vec<usize>,
}

/// A launch that worked.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Launched {
    /// Marketing name of the device.
    pub device: String,
    /// Compute capability times ten.
    pub cc: u32,
    /// Kernel times in milliseconds, in order.
    pub times_ms: Vec<f32>,
}

/// A launch that did not.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Refused {
    /// Whether there is no device at all.
    pub no_device: bool,
    /// Why, in words.
    pub reason: String,
}

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// It ran too long and was ended.
    #[error("the kernel did not finish within {} s", .0.as_secs())]
    Timeout(Duration),
    /// It could not be started.
    #[error("cannot start a process for the launch: {0}")]
    Start(io::Error),
    /// It ended without an answer.
    #[error("the process of the launch ended without a result ({status}){said}")]
    Died {
        /// Its exit status, in words.
        status: String,
        /// The end of what it wrote to standard error, after a line feed; may be empty.
        said: String,
    },
}

/// Writes a header and the tensors.
fn send(to: &mut impl Write, header: &impl Serialize, tensors: &[Vec<u8>]) -> io::Result<()> {
    let mut line = serde_json::to_vec(header)?;
    line.push(b'\n');
    to.write_all(&line)?;
    tensors.iter().try_for_each(|t| to.write_all(t))?;
    to.flush()
}

/// Reads what [`send`] wrote; `lengths` finds the lengths in the header.
fn receive<T: for<'de> Deserialize<'de>>(
    from: &mut impl BufRead,
    lengths: impl Fn(&T) -> &[usize],
) -> io::Result<(T, Vec<Vec<u8>>)> {
    let mut line = Vec::new();
    from.by_ref().take(MAX_HEADER).read_until(b'\n', &mut line)?;
    let header: T = serde_json::from_slice(&line)?;
    let mut tensors = Vec::new();
    for &length in lengths(&header) {
        let mut bytes = Vec::new();
        let wanted = u64::try_from(length).unwrap_or(u64::MAX);
        // The bytes are counted as they come; a wrong length cannot make this allocate.
        if from.by_ref().take(wanted).read_to_end(&mut bytes)? != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        tensors.push(bytes);
    }
    Ok((header, tensors))
}

/// Has a child, made by `command`, do `job` within `limit`. Returns the tensors as the kernel left them.
///
/// # Errors
/// It could not be started, took too long, or died.
pub fn launch(
    command: &mut Command,
    job: Job,
    tensors: Vec<Vec<u8>>,
    limit: Duration,
) -> Result<(Outcome, Vec<Vec<u8>>), ChildError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(ChildError::Start)?;
    let mut to = child.stdin.take().expect("piped");
    let mut from = io::BufReader::new(child.stdout.take().expect("piped"));
    let mut complaints = child.stderr.take().expect("piped");
    // The threads end when the child does; a child that is killed closes all its pipes.
    std::thread::spawn(move || send(&mut to, &job, &tensors));
    let said = std::thread::spawn(move || {
        let mut said = Vec::new();
        let _ = complaints.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    });
    let (sender, result) = mpsc::channel();
    std::thread::spawn(move || sender.send(receive(&mut from, |outcome: &Outcome| &outcome.tensors)));
    match result.recv_timeout(limit) {
        Ok(Ok(result)) => {
            let _ = child.wait();
            Ok(result)
        }
        Err(mpsc::RecvTimeoutError::Timeout) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(ChildError::Timeout(limit))
        }
        Ok(Err(_)) | Err(mpsc::RecvTimeoutError::Disconnected) => {
            let _ = child.kill();
            let status = child.wait().map_or_else(|e| e.to_string(), |s| s.to_string());
            let said = said.join().unwrap_or_default();
            let end: Vec<&str> = said.lines().rev().take(5).collect();
            let said = end.into_iter().rev().fold(String::new(), |all, line| all + "\n" + line);
            Err(ChildError::Died { status, said })
        }
    }
}

/// The child's side: reads a job from standard input, does it with `work`, writes the outcome to standard output.
///
/// # Errors
/// The streams are broken: there is no parent.
pub fn serve(work: impl FnOnce(&Job, &mut [Vec<u8>]) -> Result<Launched, Refused>) -> io::Result<()> {
    let (job, mut tensors) = receive(&mut io::stdin().lock(), |job: &Job| &job.tensors)?;
    let result = work(&job, &mut tensors);
    if result.is_err() {
        tensors.clear();
    }
    let outcome = Outcome { result, tensors: tensors.iter().map(Vec::len).collect() };
    send(&mut io::stdout().lock(), &outcome, &tensors)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(tensors: &[Vec<u8>]) -> Job {
        Job {
            launches: vec![crate::contract::tests::gemm()],
            args: Args::from([("M".to_owned(), 5.into()), ("alpha".to_owned(), 0.1.into())]),
            ptx: ".version 6.4\n".to_owned(),
            repeat: 3,
            aliases: Aliases::from([("D".to_owned(), "C".to_owned())]),
            tensors: tensors.iter().map(Vec::len).collect(),
        }
    }

    #[test]
    fn jobs_come_across_whole() {
        let tensors = vec![vec![1, 2, 3], vec![], b"\n\n{}".to_vec()];
        let mut wire = Vec::new();
        send(&mut wire, &job(&tensors), &tensors).expect("memory takes all");
        let (back, bytes) = receive(&mut wire.as_slice(), |job: &Job| &job.tensors).expect("whole");
        assert_eq!((back, bytes), (job(&tensors), tensors));
        wire.pop();
        assert!(receive(&mut wire.as_slice(), |job: &Job| &job.tensors).is_err(), "cut short");
    }

    #[test]
    fn a_lying_length_allocates_nothing() {
        let mut wire = Vec::new();
        let lie = Job { tensors: vec![usize::MAX], ..job(&[]) };
        send(&mut wire, &lie, &[]).expect("memory takes all");
        assert!(receive(&mut wire.as_slice(), |job: &Job| &job.tensors).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_child_that_hangs_is_ended_and_one_that_dies_is_quoted() {
        let mut hangs = Command::new("sleep");
        hangs.arg("60");
        let result = launch(&mut hangs, job(&[]), Vec::new(), Duration::from_millis(50));
        assert!(matches!(result, Err(ChildError::Timeout(_))));
        let mut dies = Command::new("sh");
        dies.args(["-c", "echo out of luck >&2; exit 3"]);
        let error =
            launch(&mut dies, job(&[]), Vec::new(), Duration::from_secs(20)).expect_err("no answer").to_string();
        assert!(error.contains('3') && error.contains("out of luck"), "{error}");
    }
}
