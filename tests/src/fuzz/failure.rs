//! Failures, panics among them.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// A failure: its kind, and the details.
pub(super) struct Failure {
    pub(super) class: String,
    pub(super) message: String,
}

pub(super) fn failure(class: impl Into<String>, message: impl Into<String>) -> Failure {
    Failure { class: class.into(), message: message.into() }
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Panics that are caught here are not printed.
pub(super) fn silence_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if QUIET.get() {
                PANIC.replace(info.location().map_or_else(String::new, |l| format!("{}:{}", l.file(), l.line())));
            } else {
                before(info);
            }
        }));
    });
}

/// `f`, or its panic.
pub(super) fn guarded<T>(f: impl FnOnce() -> T) -> Result<T, Failure> {
    QUIET.set(true);
    let result = catch_unwind(AssertUnwindSafe(f));
    QUIET.set(false);
    result.map_err(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default();
        let mut class: String = text.lines().next().unwrap_or("").chars().filter(|c| !c.is_ascii_digit()).collect();
        class.truncate(class.char_indices().nth(90).map_or(class.len(), |(i, _)| i));
        failure(format!("panic at {}: {class}", PANIC.take()), text)
    })
}
