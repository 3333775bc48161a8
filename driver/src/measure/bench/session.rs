//! The process that measures, seen from the command: a kernel that hangs or faults takes that process down and no more.

use super::protocol::{Answer, Request};
use crate::run::child::ChildError;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A running child.
pub(crate) struct Session {
    child: Child,
    to: Option<ChildStdin>,
    answers: Receiver<Option<Answer>>,
    said: Option<JoinHandle<String>>,
    /// The program that was launched for the first time when last heard of.
    first: Option<usize>,
}

impl Session {
    /// Starts `command`, which does [`serve`].
    pub(crate) fn start(command: &mut Command) -> Result<Session, ChildError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(ChildError::Start)?;
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().expect("piped"));
        let mut complaints = child.stderr.take().expect("piped");
        let (sender, answers) = mpsc::channel();
        // Both threads end when the child does; a child that is killed closes its pipes.
        std::thread::spawn(move || {
            for line in from.lines() {
                let answer = line.ok().and_then(|line| serde_json::from_str(&line).ok());
                let last = answer.is_none();
                if sender.send(answer).is_err() || last {
                    return;
                }
            }
        });
        let said = std::thread::spawn(move || {
            let mut said = Vec::new();
            let _ = complaints.read_to_end(&mut said);
            String::from_utf8_lossy(&said).into_owned()
        });
        Ok(Session { child, to, answers, said: Some(said), first: None })
    }

    /// Sends a request and waits for its answer at most `limit`; `progress` hears what comes before it.
    pub(crate) fn ask(
        &mut self,
        request: &Request,
        limit: Duration,
        progress: &mut dyn FnMut(&str, f64),
    ) -> Result<Answer, ChildError> {
        let until = Instant::now() + limit;
        self.first = None;
        let sent = self.to.as_mut().is_some_and(|to| {
            serde_json::to_writer(&mut *to, request).is_ok() && to.write_all(b"\n").is_ok() && to.flush().is_ok()
        });
        loop {
            if !sent {
                break;
            }
            match self.answers.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Some(Answer::Progress { what, done, first })) => {
                    self.first = first;
                    progress(&what, done);
                }
                Ok(Some(answer)) => return Ok(answer),
                Err(RecvTimeoutError::Timeout) => {
                    self.end();
                    return Err(ChildError::Timeout(limit));
                }
                Ok(None) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let _ = self.child.kill();
        let status = self.child.wait().map_or_else(|e| e.to_string(), |s| s.to_string());
        let said = self.said.take().and_then(|said| said.join().ok()).unwrap_or_default();
        let end: Vec<&str> = said.lines().rev().take(5).collect();
        let said = end.into_iter().rev().fold(String::new(), |all, line| all + "\n" + line);
        Err(ChildError::Died { status, said })
    }

    /// The program, by its place in the job, that was launched for the first time when the last request came to nothing.
    pub(crate) fn first_launched(&self) -> Option<usize> {
        self.first
    }

    fn end(&mut self) {
        // A child that waits for a request leaves when there is none to come.
        self.to = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
    }
}

/// The child's side: answers requests from standard input until it ends.
///
/// # Errors
/// The streams are broken: there is no parent.
pub fn serve() -> io::Result<()> {
    let mut requests = io::stdin().lock().lines().map(|line| Ok(serde_json::from_str::<Request>(&line?)?));
    #[cfg(feature = "cuda")]
    return super::worker::serve(&mut requests, &mut answer);
    #[cfg(not(feature = "cuda"))]
    {
        let _: Option<io::Result<Request>> = requests.next();
        let reason = "this tilec was built without the feature `cuda`".to_owned();
        answer(&Answer::Refused(crate::run::child::Refused { no_device: true, reason }))
    }
}

/// Writes an answer to standard output.
fn answer(answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Session {
        Session::start(Command::new("sh").args(["-c", script])).expect("sh starts")
    }

    fn request() -> Request {
        Request::Setup { programs: Vec::new(), cublas: Vec::new() }
    }

    #[test]
    fn answers_come_after_progress() {
        let progress = serde_json::to_string(&Answer::Progress { what: "half".to_owned(), done: 0.5, first: Some(3) })
            .expect("JSON");
        let refused = crate::run::child::Refused { no_device: true, reason: "none".to_owned() };
        let answer = serde_json::to_string(&Answer::Refused(refused.clone())).expect("JSON");
        let mut session = shell(&format!("read line; echo '{progress}'; echo '{answer}'; read line"));
        let mut heard = Vec::new();
        let got =
            session.ask(&request(), Duration::from_secs(60), &mut |what, done| heard.push((what.to_owned(), done)));
        assert_eq!(got.expect("an answer"), Answer::Refused(refused));
        assert_eq!(heard, [("half".to_owned(), 0.5)]);
    }

    #[test]
    fn a_child_that_hangs_is_ended_and_one_that_dies_is_quoted() {
        let mut hangs = shell("read line; exec sleep 60");
        let result = hangs.ask(&request(), Duration::from_millis(50), &mut |_, _| ());
        assert!(matches!(result, Err(ChildError::Timeout(_))));
        let mut dies = shell("read line; echo out of luck >&2; exit 3");
        let error = dies.ask(&request(), Duration::from_secs(60), &mut |_, _| ()).expect_err("no answer").to_string();
        assert!(error.contains('3') && error.contains("out of luck"), "{error}");
        let mut babbles = shell("read line; echo nonsense; exec sleep 60");
        let result = babbles.ask(&request(), Duration::from_secs(60), &mut |_, _| ());
        assert!(matches!(result, Err(ChildError::Died { .. })));
    }
}
