//! Mutations of TMA copies and wgmma: coordinates, barriers, descriptors, scales and orders.

use super::bulk::{is_copy, is_product};
use super::edit::{Edit, Unit, constant, delete, edit, literal, moved, swapped};
use super::text::Statement;

/// Changes of a bulk copy of a tensor: `[destination], [map, {coordinates}], [barrier]`, or `[map, {coordinates}], [source]`.
pub(super) fn copy(_: &Unit, s: &Statement) -> Vec<Edit> {
    if !is_copy(s) {
        return Vec::new();
    }
    let mut edits = vec![delete()];
    for (i, address) in s.addresses() {
        let inside = address.trim_start_matches('[').trim_end_matches(']');
        let Some((map, coordinates)) = inside.split_once('{') else {
            let barrier = i > 1 && s.opcode.contains("mbarrier");
            let (name, step) = if barrier { ("other barrier", 8) } else { ("shared memory +128", 128) };
            edits.push(edit(name, s.with_operand(i, moved(address, step))));
            continue;
        };
        let list: Vec<&str> = coordinates.trim_end_matches('}').split(',').map(str::trim).collect();
        let with = |list: &[&str]| s.with_operand(i, format!("[{map}{{{}}}]", list.join(", ")));
        for (n, coordinate) in list.iter().enumerate() {
            let mut other = list.clone();
            other[n] = "%mutant";
            let text = format!("{{ .reg .b32 %mutant; add.s32 %mutant, {coordinate}, 1; {} }}", with(&other));
            edits.push(edit(format!("coordinate {n} +1"), text));
        }
        let mut turned = list.clone();
        turned.reverse();
        if turned != list {
            edits.push(edit("coordinates turned", with(&turned)));
        }
    }
    edits
}

/// Changes of the constant part of a matrix descriptor: bits 16 to 29 are the leading offset in units of 16 bytes, 32 to 45 the
/// stride, 49 to 51 the base offset, 62 and 63 the swizzle.
pub(super) fn descriptor(unit: &Unit, s: &Statement) -> Vec<Edit> {
    if !unit.slices.feeds_descriptor(s) || s.root() != "or" || !s.has("b64") {
        return Vec::new();
    }
    let Some((i, n)) = constant(s) else { return Vec::new() };
    let bits = n as u64;
    const FIELD: u64 = 0x3FFF;
    let field = |at: u32| bits >> at & FIELD;
    let with = |at: u32, value: u64| bits & !(FIELD << at) | (value & FIELD) << at;
    let mut values: Vec<(String, u64)> = Vec::new();
    for (name, at) in [("leading offset", 16), ("stride", 32)] {
        values.push((format!("{name} +16"), with(at, field(at) + 1)));
        values.push((format!("{name} doubled"), with(at, field(at) * 2)));
    }
    let exchanged = with(16, field(32)) & !(FIELD << 32) | field(16) << 32;
    values.push(("strides exchanged".to_owned(), exchanged));
    values.push(("base offset".to_owned(), bits ^ 1 << 49));
    for (mode, name) in ["none", "128 bytes", "64 bytes", "32 bytes"].into_iter().enumerate() {
        values.push((format!("swizzle {name}"), bits & !(3 << 62) | (mode as u64) << 62));
    }
    let changed = values.into_iter().filter(|(_, v)| *v != bits);
    changed.map(|(name, v)| edit(name, s.with_operand(i, (v as i64).to_string()))).collect()
}

/// Changes of a wgmma product: `{sums}, a, b, whether to add[, sign of a, sign of b[, order of a, order of b]]`.
pub(super) fn product(_: &Unit, s: &Statement) -> Vec<Edit> {
    if !is_product(s) || s.operands.len() < 4 {
        return Vec::new();
    }
    let mut edits = vec![delete()];
    edits.extend(swapped(s, 0, 0).map(|t| edit("first two sums", t)));
    let n = s.operands[0].split(',').count();
    edits.extend(swapped(s, 0, n - 2).filter(|_| n > 2).map(|t| edit("last two sums", t)));
    let mut operands = s.operands.clone();
    operands.swap(1, 2);
    edits.push(edit("operands exchanged", s.rewritten(s.guard.as_ref(), &s.opcode, &operands)));
    let anew = s.with_operand(3, "%mutant".to_owned());
    edits.push(edit("sums anew", format!("{{ .reg .pred %mutant; setp.ne.b32 %mutant, 0, 0; {anew} }}")));
    for (i, name) in [(4, "sign of a"), (5, "sign of b"), (6, "order of a"), (7, "order of b")] {
        let other = s.operands.get(i).and_then(|o| literal(o)).map(|v| if i < 6 { -v } else { 1 - v });
        edits.extend(other.map(|v| edit(name, s.with_operand(i, v.to_string()))));
    }
    edits
}

/// Changes of `setmaxnreg`.
pub(super) fn budget(_: &Unit, s: &Statement) -> Vec<Edit> {
    if s.root() != "setmaxnreg" {
        return Vec::new();
    }
    let mut edits = vec![delete()];
    if let Some(n) = s.operands.first().and_then(|o| literal(o)) {
        edits.push(edit("+8", s.with_operand(0, (n + 8).to_string())));
    }
    edits
}
