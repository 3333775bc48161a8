//! Failed assertions of a kernel: `__assertfail`.

use super::access::addresses;
use super::warp::Warp;
use crate::exec::cta::Cta;
use crate::exec::fail::Fail;
use crate::program::Addr;
use crate::report::ReportKind;

/// Longer strings are truncated.
const MAX_STRING: u64 = 512;

impl Cta<'_> {
    /// The report of a failed assertion: `parts` are its arguments in local memory, the addresses of the message and of the
    /// file, the line, and the address of the function's name.
    pub(super) fn failed_assertion(&self, w: &Warp, parts: &[Addr; 4], m: u32) -> Box<Fail> {
        let lane = m.trailing_zeros() as usize & 31;
        let [message, file, line, function] = parts.map(|part| {
            let at = addresses(w, part, 1 << lane).ok()?[lane];
            let memory = self.locals.get(w.index * 32 + lane)?;
            let word = |at: u64| memory.get(at as usize, 4);
            Some(u64::from(word(at)?) | u64::from(word(at + 4).unwrap_or(0)) << 32)
        });
        let text = |at: Option<u64>| at.and_then(|at| self.string(at)).unwrap_or_else(|| "?".to_owned());
        let line = line.map_or_else(|| "?".to_owned(), |line| (line as u32).to_string());
        let said = format!("assertion `{}` failed in `{}` ({}:{line})", text(message), text(function), text(file));
        Fail::new(ReportKind::Trap, said).at(lane)
    }

    /// The bytes at a global address up to a zero.
    fn string(&self, at: u64) -> Option<String> {
        let alloc = self.device.find(at)?;
        let bytes = (at..at.saturating_add(MAX_STRING)).take_while(|at| alloc.holds(*at, 1)).map(|at| {
            let offset = (at - alloc.base) as usize;
            (alloc.word(offset) >> (offset % 4 * 8)) as u8
        });
        Some(String::from_utf8_lossy(&bytes.take_while(|b| *b != 0).collect::<Vec<u8>>()).into_owned())
    }
}
