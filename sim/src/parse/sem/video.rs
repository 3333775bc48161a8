//! Video instructions (PTX 9.7.18): modifiers and selectors to descriptions of `numerics::video`.

use super::forms::{lanewise, slot};
use crate::numerics::video::{Comparison, Operation, Select, Simd, Video};
use crate::parse::decode::{Arg, Cx};
use crate::parse::error::Result;
use crate::parse::modifiers::Mods;
use crate::program::Op;
use crate::program::lanewise::Function;
use crate::program::types::R;

/// Slot, selector and negation of an operand.
fn part(args: &[Arg], i: usize) -> (R, &str, bool) {
    match args.get(i) {
        Some(Arg::Part { slot, selector, negate }) => (*slot, selector, *negate),
        _ => (slot(args, i), "", false),
    }
}

fn signed(m: &Mods<'_>, i: usize) -> bool {
    m.words.get(i) == Some(&"s32")
}

fn comparison(m: &Mods<'_>) -> Comparison {
    let of = |w: &&str| {
        Some(match *w {
            "eq" => Comparison::Eq,
            "ne" => Comparison::Ne,
            "lt" => Comparison::Lt,
            "le" => Comparison::Le,
            "gt" => Comparison::Gt,
            "ge" => Comparison::Ge,
            _ => return None,
        })
    };
    m.words.iter().find_map(of).unwrap_or(Comparison::Eq)
}

/// The operation that an opcode names, without its number of parts.
fn operation(cx: &Cx<'_, '_>, m: &Mods<'_>) -> Result<Operation> {
    let clamp = m.has("clamp");
    Ok(match cx.opcode().trim_end_matches(|c: char| c.is_ascii_digit()) {
        "vadd" => Operation::Add,
        "vsub" => Operation::Sub,
        "vabsdiff" => Operation::AbsDiff,
        "vmin" => Operation::Min,
        "vmax" => Operation::Max,
        "vavrg" => Operation::Average,
        "vshl" => Operation::ShiftLeft { clamp },
        "vshr" => Operation::ShiftRight { clamp },
        "vset" => Operation::Set(comparison(m)),
        op => return m.error(format!("`{op}` is no video instruction")),
    })
}

fn select(m: &Mods<'_>, selector: &str) -> Result<Select> {
    match selector {
        "" => Ok(Select::WORD),
        _ => Select::from_word(selector).ok_or_else(|| m.pos.error(format!("`.{selector}` selects no part of a word"))),
    }
}

fn words(f: Function, d: R, s: [R; 3]) -> Op {
    lanewise(f, (d, false), s.map(|r| (r, false)))
}

/// A scalar one.
pub(crate) fn video(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let operation = operation(cx, m)?;
    let ((d, to, _), (a, of_a, na), (b, of_b, nb)) = (part(args, 0), part(args, 1), part(args, 2));
    if na || nb {
        return m.error("only `vmad` negates its operands");
    }
    // `vset` has no type of its own: its result is unsigned.
    let first = usize::from(!matches!(operation, Operation::Set(_)));
    let add = m.has("add");
    executed(cx, m, !to.is_empty())?;
    let video = Video {
        operation,
        a: (select(m, of_a)?, signed(m, first)),
        b: (select(m, of_b)?, signed(m, first + 1)),
        signed: first == 1 && signed(m, 0),
        sat: m.has("sat"),
        add,
    };
    Ok(words(Function::Video(video), d, [a, b, if add { slot(args, 3) } else { a }]))
}

/// Why a scalar form is not executed: GPUs deviate from the manual (docs/numerics.md).
pub(crate) fn not_as_written(opcode: &str, words: &[&str], replaces_part: bool) -> Option<&'static str> {
    let has = |word: &str| words.contains(&word);
    let types = words.iter().filter(|w| matches!(**w, "s32" | "u32")).copied().collect::<Vec<_>>();
    match opcode {
        "vmad" if (has("sat") || has("shr7") || has("shr15")) && types[1..] != ["s32", "s32"] => {
            Some("that clamps or shifts a product of unsigned numbers")
        }
        "vadd" | "vsub" | "vabsdiff" | "vmin" | "vmax" | "vshl" | "vshr" | "vset" if replaces_part => {
            Some("that replaces a part of its result")
        }
        "vadd" | "vsub" | "vabsdiff" | "vmin" | "vmax" | "vshl" | "vshr" | "vset" if has("min") || has("max") => {
            Some("followed by a minimum or maximum")
        }
        "vadd" | "vsub" | "vabsdiff" if has("sat") && types[0] == "u32" => {
            Some("that clamps its result to unsigned numbers")
        }
        "vshl" if has("sat") => Some("that clamps what it shifts to the left"),
        _ => None,
    }
}

fn executed(cx: &Cx<'_, '_>, m: &Mods<'_>, replaces_part: bool) -> Result<()> {
    match not_as_written(cx.opcode(), m.words, replaces_part) {
        None => Ok(()),
        Some(which) => m.limit(format!(
            "a scalar video instruction {which} is not executed: what a GPU makes of it is not what the PTX manual says; write it \
             with ordinary instructions"
        )),
    }
}

/// `vmad`.
pub(crate) fn vmad(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    executed(cx, m, false)?;
    let ((a, of_a, na), (b, of_b, nb), (c, of_c, nc)) = (part(args, 1), part(args, 2), part(args, 3));
    let plus_one = m.has("po");
    if !of_c.is_empty() {
        return m.error("the addend of `vmad` is a whole word");
    }
    if (na != nb && nc) || (plus_one && (na || nb || nc)) {
        return m.error("`vmad` negates its product or its addend, and neither with `.po`");
    }
    let (a_signed, b_signed) = (signed(m, 1), signed(m, 2));
    let negate_product = na != nb;
    let signed = a_signed || b_signed || negate_product || nc;
    let shift = if m.has("shr7") {
        7
    } else if m.has("shr15") {
        15
    } else {
        0
    };
    let video = Video {
        operation: Operation::Mad { negate_product, negate_addend: nc, plus_one, signed, shift },
        a: (select(m, of_a)?, a_signed),
        b: (select(m, of_b)?, b_signed),
        signed,
        sat: m.has("sat"),
        add: false,
    };
    Ok(words(Function::Video(video), slot(args, 0), [a, b, c]))
}

/// The parts that a selector such as `h32` or `b7431` names, lowest first.
fn parts(m: &Mods<'_>, selector: &str, letter: char, per: usize, default: [u8; 4]) -> Result<[u8; 4]> {
    if selector.is_empty() {
        return Ok(default);
    }
    let wrong = || m.pos.error(format!("`.{selector}` does not select {per} parts"));
    let digits = selector.strip_prefix(letter).filter(|d| d.len() == per).ok_or_else(wrong)?;
    let mut out = [0; 4];
    for (slot, digit) in out.iter_mut().zip(digits.bytes().rev()) {
        *slot = digit.checked_sub(b'0').filter(|d| usize::from(*d) < 2 * per).ok_or_else(wrong)?;
    }
    Ok(out)
}

/// One on two halves or four bytes.
pub(crate) fn simd(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let operation = operation(cx, m)?;
    let (letter, per) = if cx.opcode().ends_with('2') { ('h', 2) } else { ('b', 4) };
    let ((d, to, _), (a, of_a, na), (b, of_b, nb)) = (part(args, 0), part(args, 1), part(args, 2));
    if na || nb {
        return m.error("only `vmad` negates its operands");
    }
    let default = if per == 2 { ([0, 1, 0, 0], [2, 3, 0, 0]) } else { ([0, 1, 2, 3], [4, 5, 6, 7]) };
    let mut mask = 0u8;
    let mut last = per as u8;
    for digit in to.strip_prefix(letter).unwrap_or("").bytes() {
        let index = digit.wrapping_sub(b'0');
        if index >= last {
            return m.error(format!("`.{to}` is no mask of {per} parts, highest first"));
        }
        mask |= 1 << index;
        last = index;
    }
    if mask == 0 {
        if !to.is_empty() {
            return m.error(format!("`.{to}` is no mask of {per} parts"));
        }
        mask = 15;
    }
    let first = usize::from(!matches!(operation, Operation::Set(_)));
    let simd = Simd {
        operation,
        bits: 32 / per as u32,
        a: parts(m, of_a, letter, per, default.0)?,
        b: parts(m, of_b, letter, per, default.1)?,
        sources_signed: (signed(m, first), signed(m, first + 1)),
        signed: first == 1 && signed(m, 0),
        sat: m.has("sat"),
        mask,
        add: m.has("add"),
    };
    Ok(words(Function::Simd(simd), d, [a, b, slot(args, 3)]))
}
