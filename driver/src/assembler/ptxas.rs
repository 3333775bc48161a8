//! PTX to cubin with `ptxas`, its log as data.
//!
//! The log is line oriented. `ptxas FILE, line N; error : text` and `ptxas warning : text` become
//! messages; the `-v` statistics ("Used 30 registers, ...") become [`EntryStats`]. Lines of no known
//! form are ignored: the log is for people and changes between releases.

use super::child::{self, PrivateDir};
use super::find::{Found, find};
use crate::assembler::message::{PtxasMessage, Severity};
use crate::assembler::tools::{Arch, AssemblerError, Tool, ToolVersion};
use serde::Serialize;
use std::time::Duration;

/// ptxas needs 9 s for 100,000 straight-line instructions; ours are far below.
const LIMIT: Duration = Duration::from_secs(60);

/// How to assemble.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Keep the `.loc` lines, so that the disassembly can name source lines.
    pub line_info: bool,
}

/// Spills of a function that an entry calls out of line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CalledSpills {
    /// Its name: the assembler's own, as `__cuda_sm20_div_rn_f64_full`.
    pub function: String,
    /// Bytes that a call stores to local memory.
    pub stored: u64,
    /// Bytes that a call loads back.
    pub loaded: u64,
}

/// Resource usage of an entry, as `ptxas -v` reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryStats {
    /// Name of the entry.
    pub name: String,
    /// 32-bit registers per thread.
    pub registers: u32,
    /// Bytes of register values stored to local memory, per thread, static; with those of called functions.
    pub spill_store_bytes: u64,
    /// Bytes loaded back.
    pub spill_load_bytes: u64,
    /// The spills of functions that it calls, such as the division of f64.
    pub called: Vec<CalledSpills>,
    /// Bytes of local memory for the stack frame, per thread.
    pub stack_bytes: u64,
    /// Bytes of static shared memory; dynamic shared memory is unknown to ptxas.
    pub smem_bytes: u64,
    /// Named barriers.
    pub barriers: u32,
}

/// The result of assembling.
#[derive(Clone, Debug)]
pub struct Assembled {
    /// The ELF image.
    pub cubin: Vec<u8>,
    /// One per entry, in the order of the log.
    pub entries: Vec<EntryStats>,
    /// Warnings and informative messages, in order. Statistics are not repeated here.
    pub messages: Vec<PtxasMessage>,
    /// The version that assembled.
    pub version: ToolVersion,
}

/// Assembles `ptx` for `arch` with whatever [`find`] finds.
///
/// # Errors
/// `NotFound` without a usable ptxas, `Refused` when it finds errors in the PTX, `TimedOut` after 60 s,
/// `Failed` and `Io` when the tool or the system fails.
pub fn assemble(ptx: &str, arch: Arch, options: Options) -> Result<Assembled, AssemblerError> {
    assemble_with(&find(Tool::Ptxas, arch)?, ptx, arch, options)
}

/// [`assemble`] with a given ptxas.
///
/// # Errors
/// As [`assemble`], but for `NotFound`.
pub fn assemble_with(ptxas: &Found, ptx: &str, arch: Arch, options: Options) -> Result<Assembled, AssemblerError> {
    let dir = PrivateDir::new()?;
    dir.write("in.ptx", ptx.as_bytes())?;
    let arch_flag = format!("-arch={arch}");
    let mut args = vec![arch_flag.as_str(), "-v", "-warn-spills", "-warn-lmem-usage"];
    if options.line_info {
        args.push("-lineinfo");
    }
    args.extend(["in.ptx", "-o", "out.cubin"]);
    let done = child::run(Tool::Ptxas, &ptxas.path, &args, &dir, LIMIT)?;
    let (entries, messages) = parse_log(&done.log);
    if done.status.success() {
        return Ok(Assembled { cubin: dir.read("out.cubin")?, entries, messages, version: ptxas.version });
    }
    if messages.iter().any(|m| m.severity == Severity::Error) {
        return Err(AssemblerError::Refused { messages, version: ptxas.version });
    }
    Err(AssemblerError::Failed {
        tool: Tool::Ptxas,
        status: done.status.to_string(),
        output: child::excerpt(&done.log),
    })
}

/// Splits the log into statistics and messages.
#[must_use]
pub fn parse_log(log: &str) -> (Vec<EntryStats>, Vec<PtxasMessage>) {
    let mut entries: Vec<EntryStats> = Vec::new();
    let mut messages = Vec::new();
    // The function whose frame sizes are in the next line: the last entry, or one that it calls.
    let mut properties_of = String::new();
    for line in log.lines() {
        let Some(message) = parse_message(line) else {
            match entries.last_mut() {
                Some(entry) if entry.name == properties_of => {
                    for (count, what) in quantities(line.trim()) {
                        match what {
                            "bytes stack frame" => entry.stack_bytes = count,
                            "bytes spill stores" => entry.spill_store_bytes = count,
                            "bytes spill loads" => entry.spill_load_bytes = count,
                            _ => {}
                        }
                    }
                }
                Some(entry) => entry.calls(&properties_of, line.trim()),
                None => {}
            }
            continue;
        };
        let text = message.text.as_str();
        if let Some(rest) = text.strip_prefix("Compiling entry function '") {
            let name = rest.split('\'').next().unwrap_or(rest).to_owned();
            entries.push(EntryStats { name, ..EntryStats::default() });
            properties_of.clear();
        } else if let Some(name) = text.strip_prefix("Function properties for ") {
            name.trim().clone_into(&mut properties_of);
        } else if let Some(rest) = text.strip_prefix("Used ") {
            let Some(entry) = entries.last_mut() else {
                continue;
            };
            for (count, what) in quantities(rest) {
                let small = u32::try_from(count).unwrap_or(u32::MAX);
                match what {
                    "registers" => entry.registers = small,
                    "barriers" => entry.barriers = small,
                    "bytes smem" => entry.smem_bytes = count,
                    _ => {}
                }
            }
        } else if !(text.ends_with(" bytes gmem") || text.starts_with("Compile time = ")) {
            messages.push(message);
        }
    }
    name_callers(&mut entries, &mut messages);
    for entry in &mut entries {
        entry.spill_store_bytes += entry.called.iter().map(|f| f.stored).sum::<u64>();
        entry.spill_load_bytes += entry.called.iter().map(|f| f.loaded).sum::<u64>();
    }
    (entries, messages)
}

/// For messages about called functions, the entry that calls them and gets their spills. ptxas reports such a function
/// separately, after the entry.
fn name_callers(entries: &mut [EntryStats], messages: &mut [PtxasMessage]) {
    let mut caller = None;
    for message in messages {
        let Some(function) = message.function.clone() else { continue };
        if let Some(own) = entries.iter().position(|e| e.name == function) {
            caller = Some(own);
        } else if let Some(entry) = caller.map(|i: usize| &mut entries[i]) {
            message.caller = Some(entry.name.clone());
            if message.spills() {
                entry.calls(&function, &message.text);
            }
        }
    }
}

impl EntryStats {
    /// It calls a function of whose spills `text` has the bytes.
    fn calls(&mut self, function: &str, text: &str) {
        if function.is_empty() || self.called.iter().any(|f| f.function == function) {
            return;
        }
        let mut own = CalledSpills { function: function.to_owned(), ..CalledSpills::default() };
        for (count, what) in quantities(text) {
            match what {
                "bytes spill stores" => own.stored = count,
                "bytes spill loads" => own.loaded = count,
                _ => {}
            }
        }
        if own.stored + own.loaded > 0 {
            self.called.push(own);
        }
    }
}

/// `ptxas info    : text`, or `ptxas FILE, line N; error   : text`.
fn parse_message(line: &str) -> Option<PtxasMessage> {
    let rest = line.strip_prefix("ptxas ")?;
    let (place, kind, text) = match rest.split_once("; ") {
        Some((place, tail)) if place.contains(", line ") => {
            let (kind, text) = tail.split_once(':')?;
            (Some(place), kind, text)
        }
        _ => {
            let (kind, text) = rest.split_once(':')?;
            (None, kind, text)
        }
    };
    let severity = match kind.trim() {
        "info" => Severity::Info,
        "warning" => Severity::Warning,
        "error" | "fatal" => Severity::Error,
        _ => return None,
    };
    let line = place.and_then(|p| p.rsplit_once(", line ")).and_then(|(_, n)| n.trim().parse().ok());
    let text = text.trim();
    // ptxas reports performance losses at severity "info".
    let slow = severity == Severity::Info && text.contains("Potential Performance Loss");
    Some(PtxasMessage::new(if slow { Severity::Warning } else { severity }, line, text))
}

/// `30 registers, used 1 barriers, 512 bytes smem` as pairs of a count and its unit.
fn quantities(text: &str) -> impl Iterator<Item = (u64, &str)> {
    text.split(", ").filter_map(|part| {
        let part = part.strip_prefix("used ").unwrap_or(part);
        let (count, what) = part.split_once(' ')?;
        Some((count.parse().ok()?, what))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembler::message::tile_location;

    #[test]
    fn statistics_of_every_entry() {
        let (entries, messages) = parse_log(include_str!("testdata/two_entries.log"));
        let spilled = EntryStats {
            name: "spilled".to_owned(),
            registers: 24,
            spill_store_bytes: 280,
            spill_load_bytes: 276,
            stack_bytes: 288,
            barriers: 2,
            ..EntryStats::default()
        };
        let clean = EntryStats {
            name: "scale".to_owned(),
            registers: 30,
            smem_bytes: 512,
            barriers: 1,
            ..EntryStats::default()
        };
        assert_eq!(entries, [spilled, clean]);
        let warnings: Vec<_> = messages.iter().map(|m| (m.severity, m.line)).collect();
        assert_eq!(warnings, [(Severity::Warning, None), (Severity::Warning, None)]);
        assert!(messages[1].text.starts_with("Registers are spilled"));
    }

    /// The log of two entries that divide numbers of f64: ptxas names the function after the entry that calls it.
    #[test]
    fn spills_of_called_functions_are_of_the_entry_that_calls_them() {
        let (entries, messages) = parse_log(include_str!("testdata/called.log"));
        let of = |e: &EntryStats| {
            let called: Vec<(u64, u64)> = e.called.iter().map(|f| (f.stored, f.loaded)).collect();
            (e.name.clone(), e.spill_store_bytes, e.spill_load_bytes, called)
        };
        let expected = [
            ("k3".to_owned(), 240 + 44, 120 + 44, vec![(44, 44)]),
            ("k2".to_owned(), 0, 0, vec![]),
            ("k1".to_owned(), 600 + 228, 496 + 324, vec![(228, 324)]),
        ];
        assert_eq!(entries.iter().map(of).collect::<Vec<_>>(), expected);
        let callers: Vec<Option<&str>> = messages.iter().map(|m| m.caller.as_deref()).collect();
        assert_eq!(callers, [None, None, Some("k3"), None, None, Some("k1")]);
    }

    #[test]
    fn frames_of_called_functions_are_not_the_entrys() {
        let log = "ptxas info    : Compiling entry function 'k' for 'sm_70'\n\
                   ptxas info    : Function properties for k\n    \
                   8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
                   ptxas info    : Used 9 registers, used 0 barriers\n\
                   ptxas info    : Function properties for callee\n    \
                   4096 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n";
        let (entries, _) = parse_log(log);
        assert_eq!((entries[0].stack_bytes, entries[0].spill_store_bytes), (8, 4));
        assert_eq!(entries[0].called[0].function, "callee");
    }

    #[test]
    fn errors_carry_their_ptx_line() {
        let log = "ptxas in.ptx, line 7; error   : Not a name of any known instruction: 'foo'\n\
                   ptxas odd, line 9; name.ptx, line 8; warning : x; y : z\n\
                   ptxas fatal   : Ptx assembly aborted due to errors\n";
        let (_, messages) = parse_log(log);
        assert_eq!(messages[0].line, Some(7));
        assert_eq!(messages[0].text, "Not a name of any known instruction: 'foo'");
        assert_eq!(messages.last().map(|m| (m.severity, m.line)), Some((Severity::Error, None)));
    }

    #[test]
    fn messages_say_what_they_are_about() {
        let log = "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to \
                   insufficient register resources for the wgmma pipeline in the function 'mma'\n\
                   ptxas info    : (C7517) wgmma.wait_group is injected in around line 347 by compiler to allow use of \
                   registers defined by GMMA in function 'gemm'\n\
                   ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.\n\
                   ptxas warning : Registers are spilled to local memory in function 'k', 8 bytes spill stores, 8 bytes spill loads\n";
        let (_, messages) = parse_log(log);
        let said: Vec<_> =
            messages.iter().map(|m| (m.severity, m.function.as_deref(), m.line, m.instruction(), m.spills())).collect();
        let expected = [
            (Severity::Warning, Some("mma"), None, Some("wgmma.mma_async"), false),
            (Severity::Info, Some("gemm"), Some(347), Some("wgmma.wait_group"), false),
            (Severity::Warning, None, None, Some("setmaxnreg"), false),
            (Severity::Warning, Some("k"), None, None, true),
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn any_log_is_accepted() {
        for log in [
            "",
            "ptxas ",
            "ptxas info",
            "ptxas : ",
            "ptxas x, line 99999999999; error : t",
            "ptxas info : Used 5",
            "ptxas info : Used 99999999999999999999 registers",
            "\u{0}ptxas \u{ffff}:",
        ] {
            assert!(parse_log(log).1.len() <= 2);
        }
    }

    const PTX: &str = r#".version 6.4
.file 1 "a.tile"
.file 2 "b.tile", 1, 2
.visible .entry one()
{
    mov.u32 %r0, 1;
    .loc 2 10 3
    mov.u32 %r1, 1;
    .loc 1 11 5, function_name L, inlined_at 1 2 3
    ret;
}
.visible .entry two()
{
    ret;
    .loc 3 1 1
    ret;
    .loc 1 0 0
    ret;
}
"#;

    #[test]
    fn the_last_loc_of_the_same_function_decides() {
        let at = |line| tile_location(PTX, line).map(|l| (l.file, l.line, l.column));
        let b = Some(("b.tile".to_owned(), 10, 3));
        let a = Some(("a.tile".to_owned(), 11, 5));
        assert_eq!([at(0), at(6), at(7), at(8)], [None, None, b.clone(), b]);
        assert_eq!([at(10), at(11)], [a.clone(), a]);
        assert_eq!([at(12), at(14)], [None, None], "a new function starts without a location");
        assert_eq!([at(16), at(18)], [None, None], "unknown file, line 0");
        assert_eq!(at(u32::MAX), None);
    }
}
