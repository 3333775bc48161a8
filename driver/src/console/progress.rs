//! A bar on standard error, where that is a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Cells of the bar.
const CELLS: usize = 24;
/// Least time between two drawings.
const PAUSE: Duration = Duration::from_millis(50);

/// A bar that is drawn over itself.
#[derive(Debug)]
pub struct Bar {
    terminal: bool,
    drawn: Option<Instant>,
}

impl Default for Bar {
    fn default() -> Bar {
        Bar::new()
    }
}

impl Bar {
    /// A bar, not drawn yet. It never is where standard error is no terminal.
    pub fn new() -> Bar {
        let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        Bar { terminal: io::stderr().is_terminal() && !dumb, drawn: None }
    }

    /// Draws the bar filled to `done` (0 to 1), followed by `what`.
    pub fn show(&mut self, what: &str, done: f64) {
        if !self.terminal || self.drawn.is_some_and(|drawn| drawn.elapsed() < PAUSE) {
            return;
        }
        self.drawn = Some(Instant::now());
        // A terminal that has gone away is not an error.
        let _ = write!(io::stderr().lock(), "\r\x1b[K{}", line(what, done));
    }

    /// Takes the bar away.
    pub fn clear(&mut self) {
        if self.terminal && self.drawn.take().is_some() {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

fn line(what: &str, done: f64) -> String {
    let done = done.clamp(0.0, 1.0);
    let full = (done * CELLS as f64) as usize;
    let what: String = what.chars().filter(|c| !c.is_control()).take(46).collect();
    format!("[{}{}] {:3.0}% {what}", "#".repeat(full), ".".repeat(CELLS - full), 100.0 * done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_never_overflows() {
        assert_eq!(line("M=1", 0.5), "[############............]  50% M=1");
        assert_eq!(line("", 7.0), format!("[{}] 100% ", "#".repeat(CELLS)));
        assert_eq!(line("a\nb", f64::NAN).len(), line("ab", 0.0).len());
        assert!(line(&"x".repeat(500), 1.0).len() < 80);
    }
}
