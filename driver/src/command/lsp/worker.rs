//! The background thread that compiles, and the state that it shares.

use super::convert::{Text, diagnostic};
use super::open::BUG;
use crate::CompileOptions;
use crate::editor::decisions::{Decisions, Unjudged, decide, demands};
use crate::editor::lines::Lines;
use lsp_server::{Message, Notification, Request, RequestId};
use lsp_types::{PublishDiagnosticsParams, Uri};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tilec_ir::diag;

/// Sends a message; false: the receiver is gone.
pub(crate) type Send = Box<dyn Fn(Message) -> bool + std::marker::Send>;

/// A text to be compiled.
pub(crate) struct Job {
    pub(crate) uri: Uri,
    /// The text's number; texts of later numbers have taken its place.
    pub(crate) version: u64,
    pub(crate) text: String,
    pub(crate) options: CompileOptions,
}

/// State of the files, shared by both threads.
pub(crate) struct Shared {
    /// `None`: the server stops.
    send: Option<Send>,
    files: BTreeMap<String, File>,
    /// Requests sent so far.
    requests: i32,
    refreshes_hints: bool,
}

/// A file that is open.
struct File {
    version: u64,
    /// The version that the editor counts.
    editor_version: Option<i32>,
    decisions: Option<Arc<Decisions>>,
}

/// The thread that compiles, seen from the other one.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Mutex<Shared>>,
    /// `None`: the server stops.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    // Nothing is left half done by a thread that panics.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Worker {
    pub(crate) fn new(send: Send, refreshes_hints: bool) -> Worker {
        let shared = Shared { send: Some(send), files: BTreeMap::new(), requests: 0, refreshes_hints };
        let shared = Arc::new(Mutex::new(shared));
        let (jobs, receiver) = channel();
        let theirs = Arc::clone(&shared);
        let thread = std::thread::spawn(move || compile_all(&receiver, &theirs));
        Worker { shared, jobs: Some(jobs), thread: Some(thread) }
    }

    /// Sends a message.
    pub(crate) fn send(&self, message: Message) {
        lock(&self.shared).send(message);
    }

    /// Sends what was found at once in a text, and has it compiled if it has no errors.
    pub(crate) fn changed(&self, job: Job, editor_version: Option<i32>, found: &[diag::Diagnostic], whole: bool) {
        let lines = Lines::new(&job.text);
        let mut shared = lock(&self.shared);
        let file = File { version: job.version, editor_version, decisions: None };
        shared.files.insert(job.uri.as_str().to_owned(), file);
        shared.publish(&job.uri, Text { text: &job.text, lines: &lines }, found);
        drop(shared);
        if let Some(jobs) = self.jobs.as_ref().filter(|_| whole) {
            // The thread is there as long as this one is.
            let _ = jobs.send(job);
        }
    }

    /// Forgets a file.
    pub(crate) fn closed(&self, uri: &Uri) {
        let mut shared = lock(&self.shared);
        shared.files.remove(uri.as_str());
        let nothing = PublishDiagnosticsParams::new(uri.clone(), Vec::new(), None);
        shared.notify("textDocument/publishDiagnostics", nothing);
    }

    /// The decisions for the newest text of a file, if they are known yet.
    pub(crate) fn decisions(&self, uri: &Uri) -> Option<Arc<Decisions>> {
        lock(&self.shared).files.get(uri.as_str())?.decisions.clone()
    }

    /// Sends nothing more, and waits for the end of the thread: an assembler that runs has files to remove.
    pub(crate) fn stop(&mut self) {
        let mut shared = lock(&self.shared);
        shared.send = None;
        shared.files.clear();
        drop(shared);
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic in it has been reported.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Whether a text has not been changed since.
    fn is_newest(&self, job: &Job) -> bool {
        self.files.get(job.uri.as_str()).is_some_and(|file| file.version == job.version)
    }

    fn send(&self, message: Message) {
        if let Some(send) = &self.send {
            // Nobody is there any more: the other thread notices that, too.
            let _ = send(message);
        }
    }

    fn notify(&self, method: &str, params: impl serde::Serialize) {
        self.send(Notification::new(method.to_owned(), params).into());
    }

    fn publish(&self, uri: &Uri, text: Text<'_>, found: &[diag::Diagnostic]) {
        let list = found.iter().filter_map(|d| diagnostic(text, uri, d)).collect();
        let version = self.files.get(uri.as_str()).and_then(|file| file.editor_version);
        self.notify("textDocument/publishDiagnostics", PublishDiagnosticsParams::new(uri.clone(), list, version));
    }

    fn refresh_hints(&mut self) {
        if self.refreshes_hints {
            self.requests += 1;
            let id = RequestId::from(self.requests);
            self.send(
                Request { id, method: "workspace/inlayHint/refresh".to_owned(), params: serde_json::Value::Null }
                    .into(),
            );
        }
    }
}

/// Compiles what comes, of several texts of a file the last. When there is nothing more to compile, demands are judged that take longer.
fn compile_all(jobs: &Receiver<Job>, shared: &Mutex<Shared>) {
    let mut waiting: BTreeMap<String, Job> = BTreeMap::new();
    let mut unjudged: BTreeMap<String, (Job, Unjudged)> = BTreeMap::new();
    loop {
        if waiting.is_empty() && unjudged.is_empty() {
            let Ok(job) = jobs.recv() else { return };
            waiting.insert(job.uri.as_str().to_owned(), job);
        }
        while let Ok(job) = jobs.try_recv() {
            waiting.insert(job.uri.as_str().to_owned(), job);
        }
        if let Some((uri, job)) = waiting.pop_first() {
            unjudged.remove(&uri);
            let left = compile_one(&job, shared);
            unjudged.extend(left.map(|left| (uri, (job, left))));
        } else if let Some((_, (job, left))) = unjudged.pop_first() {
            add_demands(&job, left, shared);
        }
    }
}

/// Reports a compiler bug instead of results.
fn unless_bug<T>(shared: &Shared, found: std::thread::Result<T>) -> Option<T> {
    if found.is_err() {
        shared.notify("window/showMessage", serde_json::json!({ "type": 1, "message": BUG }));
    }
    found.ok()
}

/// Compiles a text; what comes back is still to be judged.
fn compile_one(job: &Job, shared: &Mutex<Shared>) -> Option<Unjudged> {
    if !lock(shared).is_newest(job) {
        return None;
    }
    let decided = catch_unwind(AssertUnwindSafe(|| decide(&job.text, &job.options)));
    let mut shared = lock(shared);
    if !shared.is_newest(job) {
        return None;
    }
    let lines = Lines::new(&job.text);
    let text = Text { text: &job.text, lines: &lines };
    let (decisions, unjudged) = unless_bug(&shared, decided)?;
    shared.publish(&job.uri, text, &decisions.diagnostics);
    if let Some(file) = shared.files.get_mut(job.uri.as_str()) {
        file.decisions = Some(Arc::new(decisions));
    }
    shared.notify("tilec/compiled", serde_json::json!({ "uri": job.uri }));
    shared.refresh_hints();
    unjudged
}

/// Adds diagnostics of demands.
fn add_demands(job: &Job, left: Unjudged, shared: &Mutex<Shared>) {
    if !lock(shared).is_newest(job) {
        return;
    }
    let judged = catch_unwind(AssertUnwindSafe(|| demands(&job.text, &job.options, left)));
    let mut shared = lock(shared);
    if !shared.is_newest(job) {
        return;
    }
    let Some(judged) = unless_bug(&shared, judged).filter(|judged| !judged.is_empty()) else { return };
    let Some(decisions) = shared.files.get_mut(job.uri.as_str()).and_then(|file| file.decisions.as_mut()) else {
        return;
    };
    Arc::make_mut(decisions).add(judged);
    let decisions = Arc::clone(decisions);
    let lines = Lines::new(&job.text);
    shared.publish(&job.uri, Text { text: &job.text, lines: &lines }, &decisions.diagnostics);
}
