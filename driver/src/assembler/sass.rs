//! Cubin to instructions with `nvdisasm -c`.
//!
//! The listing is parsed for what the counting needs and no further: functions (`.section .text.NAME`),
//! labels, addresses, opcodes and the `//## File "f", line n` comments that `-g` adds. A line of any
//! other form is passed over, so the parser accepts every text. The whole text is kept for printing.

use super::child::{self, PrivateDir};
use super::find::{Found, find};
use crate::assembler::tools::{Arch, AssemblerError, Tool};
use std::collections::BTreeMap;
use std::time::Duration;

/// nvdisasm has been seen to hang on a damaged cubin.
const LIMIT: Duration = Duration::from_secs(30);

/// One machine instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SassInst {
    /// Byte offset in the function; instructions are 16 bytes from sm_70 on.
    pub addr: u64,
    /// Guard without `@`: `P0`, `!P1`, `UP2`; `None` when always executed.
    pub predicate: Option<String>,
    /// Opcode with modifiers: `LDG.E.128.SYS`.
    pub opcode: String,
    /// Guard, opcode and operands, without the final semicolon.
    pub text: String,
    /// Index into [`SassFunction::files`], and line from 1, of the source.
    pub line: Option<(usize, u32)>,
    /// The 128 bits of the instruction, where the listing has them.
    pub encoding: Option<u128>,
}

impl SassInst {
    /// Opcode without modifiers: `LDG`.
    #[must_use]
    pub fn base(&self) -> &str {
        self.opcode.split('.').next().unwrap_or(&self.opcode)
    }

    /// Whether the opcode has `modifier` as one of its dotted parts.
    #[must_use]
    pub fn has(&self, modifier: &str) -> bool {
        self.opcode.split('.').skip(1).any(|part| part == modifier)
    }

    /// Whether it stores or loads what the assembler spilled. PTX of ours has no local memory: all that is there is the assembler's.
    #[must_use]
    pub fn spill(&self) -> Option<Spill> {
        let store = match self.base() {
            "STL" => true,
            "LDL" => false,
            _ => return None,
        };
        let bits = self.opcode.split('.').find_map(|part| match part {
            "U8" | "S8" => Some(8),
            "U16" | "S16" => Some(16),
            "64" => Some(64),
            "128" => Some(128),
            _ => None,
        });
        Some(Spill { store, bytes: bits.unwrap_or(32) / 8 })
    }

    /// Operands as printed.
    #[must_use]
    pub fn operands(&self) -> &str {
        self.text.split_once(self.opcode.as_str()).map_or("", |(_, rest)| rest.trim())
    }
}

/// A register that the assembler keeps in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spill {
    /// It is stored, not loaded back.
    pub store: bool,
    /// Bytes of a thread.
    pub bytes: u64,
}

/// One function of the cubin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SassFunction {
    /// Name of the entry or device function.
    pub name: String,
    /// Instructions by address.
    pub insts: Vec<SassInst>,
    /// Label (without colon) to the index of the instruction it is before; may be `insts.len()`.
    pub labels: BTreeMap<String, usize>,
    /// Source files that [`SassInst::line`] refers to.
    pub files: Vec<String>,
}

impl SassFunction {
    /// The source line of an instruction of this function.
    #[must_use]
    pub fn location(&self, inst: &SassInst) -> Option<(&str, u32)> {
        let (file, line) = inst.line?;
        Some((self.files.get(file)?, line))
    }
}

/// A disassembled cubin.
#[derive(Clone, Debug)]
pub struct Disassembly {
    /// The output of nvdisasm.
    pub text: String,
    /// Its functions, in the order of the text.
    pub functions: Vec<SassFunction>,
}

/// Disassembles `cubin`, which must be for `arch`, with whatever [`find`] finds. Source lines are there
/// when it was assembled with [`super::Options::line_info`].
///
/// # Errors
/// `NotFound` without a usable nvdisasm, `TimedOut` after 30 s, `Failed` when it does not accept the
/// cubin, `Io` when the system fails.
pub fn disassemble(cubin: &[u8], arch: Arch) -> Result<Disassembly, AssemblerError> {
    disassemble_with(&find(Tool::Nvdisasm, arch)?, cubin)
}

/// [`disassemble`] with a given nvdisasm.
///
/// # Errors
/// As [`disassemble`], but for `NotFound`.
pub fn disassemble_with(nvdisasm: &Found, cubin: &[u8]) -> Result<Disassembly, AssemblerError> {
    listed(nvdisasm, cubin, &["-c", "-g", "in.cubin"])
}

/// [`disassemble`] with the encoding of every instruction.
///
/// # Errors
/// As [`disassemble`].
pub fn disassemble_encoded(cubin: &[u8], arch: Arch) -> Result<Disassembly, AssemblerError> {
    listed(&find(Tool::Nvdisasm, arch)?, cubin, &["-c", "-g", "-hex", "in.cubin"])
}

/// Runs nvdisasm on `in.cubin`.
pub(super) fn listed(nvdisasm: &Found, cubin: &[u8], args: &[&str]) -> Result<Disassembly, AssemblerError> {
    let dir = PrivateDir::new()?;
    dir.write("in.cubin", cubin)?;
    let done = child::run(Tool::Nvdisasm, &nvdisasm.path, args, &dir, LIMIT)?;
    let functions = parse(&done.log);
    // It also reports trouble with status 0 and an empty listing.
    if !done.status.success() || functions.is_empty() {
        return Err(AssemblerError::Failed {
            tool: Tool::Nvdisasm,
            status: done.status.to_string(),
            output: child::excerpt(&done.log),
        });
    }
    Ok(Disassembly { text: done.log, functions })
}

/// Parses a listing of `nvdisasm -c`, with or without `-g`.
#[must_use]
pub fn parse(text: &str) -> Vec<SassFunction> {
    let mut functions: Vec<SassFunction> = Vec::new();
    let mut line_now = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix(".section") {
            let name = rest.trim_start().strip_prefix(".text.").and_then(|r| r.split(',').next());
            if let Some(name) = name {
                functions.push(SassFunction { name: name.to_owned(), ..SassFunction::default() });
            }
            line_now = None;
            continue;
        }
        let Some(function) = functions.last_mut() else {
            continue;
        };
        if let Some(comment) = line.strip_prefix("//##") {
            line_now = parse_line_comment(comment).map(|(file, line)| (index_of(&mut function.files, file), line));
        } else if let Some(label) = line.strip_suffix(':').filter(|l| !l.contains(char::is_whitespace)) {
            function.labels.insert(label.to_owned(), function.insts.len());
        } else if let Some(mut inst) = parse_inst(line) {
            inst.line = line_now;
            function.insts.push(inst);
        } else if let Some(high) = line.strip_prefix("/*").and_then(half)
            && let Some(low) = function.insts.last_mut().and_then(|inst| inst.encoding.as_mut())
        {
            // The upper half has its own line.
            *low |= high << 64;
        }
    }
    functions
}

fn index_of(files: &mut Vec<String>, file: &str) -> usize {
    files.iter().position(|known| known == file).unwrap_or_else(|| {
        files.push(file.to_owned());
        files.len() - 1
    })
}

/// ` File "gemm.tile", line 12`
fn parse_line_comment(comment: &str) -> Option<(&str, u32)> {
    let (_, rest) = comment.split_once("File \"")?;
    let (file, rest) = rest.split_once('"')?;
    let (_, rest) = rest.split_once("line ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((file, digits.parse().ok()?))
}

/// `/*0120*/  @!P0 LDG.E.128.SYS R12, [R2+0x200] ;`
fn parse_inst(line: &str) -> Option<SassInst> {
    let (addr, rest) = line.strip_prefix("/*")?.split_once("*/")?;
    let addr = u64::from_str_radix(addr, 16).ok()?;
    let text = rest.split_once(';')?.0.trim();
    let mut words = text.split_whitespace();
    let first = words.next()?;
    let (predicate, opcode) = match first.strip_prefix('@') {
        Some(predicate) => (Some(predicate.to_owned()), words.next()?),
        None => (None, first),
    };
    if !opcode.starts_with(|c: char| c.is_ascii_uppercase()) {
        return None;
    }
    Some(SassInst {
        addr,
        predicate,
        opcode: opcode.to_owned(),
        text: text.to_owned(),
        line: None,
        encoding: low_half(rest),
    })
}

/// The lower 64 bits of an encoding, in the comment after the instruction.
fn low_half(rest: &str) -> Option<u128> {
    half(rest.rsplit_once("/*")?.1)
}

/// ` 0x00000a00ff017b82 */`: one half of an encoding.
fn half(text: &str) -> Option<u128> {
    let digits = text.split_once("*/")?.0.trim().strip_prefix("0x")?;
    u128::from(u64::from_str_radix(digits, 16).ok()?).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_becomes_instructions_labels_and_lines() {
        let functions = parse(include_str!("testdata/tiny.sass"));
        let names: Vec<_> = functions.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["scale"]);
        let f = &functions[0];
        let load = f.insts.iter().find(|i| i.base() == "LDG").unwrap();
        assert_eq!(load.opcode, "LDG.E.128.SYS");
        assert!(load.has("128") && !load.has("12"));
        assert_eq!(load.operands(), "R8, [R2]");
        assert_eq!(f.location(load), Some(("tiny.tile", 4)));
        let branch = f.insts.iter().find(|i| i.base() == "BRA").unwrap();
        assert_eq!(branch.predicate.as_deref(), Some("P0"));
        assert_eq!(f.insts[f.labels[".L_x_0"]].addr, 0x80);
        assert_eq!(f.labels[".L_x_2"], f.insts.len());
        assert!(f.insts.is_sorted_by_key(|i| i.addr));
    }

    #[test]
    fn any_text_is_accepted() {
        for text in [
            "",
            ".section",
            ".section .text.",
            "/*0*/ NOP ;",
            ".section .text.k\n/**/;\n/*zz*/ A;\n/*1*/;\n/*1*/ @P0 ;\n/*1*/ @;\n//##\n//## File \"\n//## File \"x\", line\n:\n",
        ] {
            assert!(parse(text).len() <= 1);
        }
    }
}
