//! Single-fault mutations of a kernel: a table of operators over the statements of a PTX text.
//!
//! An operator gets one statement and proposes replacements. It decides by opcodes and by the uses of results
//! (`Slices`), never by the program, so that new pipelines are covered automatically.

use super::bulk::is_copy;
use super::cluster;
use super::edit::{Edit, Unit, constant, delete, edit, literal, moved, parts, swapped};
use super::tensor;
use super::text::{Guard, Statement, registers};

/// A row of the table.
pub struct Operator {
    /// Its name in reports.
    pub name: &'static str,
    /// What it breaks.
    pub about: &'static str,
    /// Its replacements of a statement; none where it does not apply.
    pub edits: fn(&Unit, &Statement) -> Vec<Edit>,
}

/// All operators.
pub const OPERATORS: &[Operator] = &[
    Operator { name: "barrier", about: "a barrier missing, or waiting for too few", edits: barrier },
    Operator {
        name: "wait",
        about: "a wait for asynchronous copies or other grids missing, or one group short",
        edits: wait,
    },
    Operator { name: "commit", about: "a group of copies not closed", edits: commit },
    Operator { name: "fence", about: "a fence missing, or of a smaller scope", edits: fence },
    Operator { name: "mbarrier", about: "a phase, an arrival or a count wrong", edits: mbarrier },
    Operator {
        name: "cluster",
        about: "the barrier of a cluster weaker, a copy for other blocks, an arrival in another block",
        edits: cluster::edits,
    },
    Operator { name: "swizzle", about: "an exclusive or of an address gone, or with another mask", edits: swizzle },
    Operator { name: "stride", about: "a constant or row stride of an address off by one", edits: stride },
    Operator { name: "offset", about: "the immediate of an address off by one access", edits: offset },
    Operator { name: "guard", about: "a guard dropped, negated, or never true", edits: guard },
    Operator { name: "bound", about: "a comparison off by one, half of a conjunction, a clamp gone", edits: bound },
    Operator { name: "fragment", about: "registers of a matrix product, vector or exchange swapped", edits: fragment },
    Operator {
        name: "transpose",
        about: "fragments loaded, stored or multiplied in the other order",
        edits: transpose,
    },
    Operator { name: "zero-fill", about: "a copy that reads what it should fill with zeros", edits: zero_fill },
    Operator {
        name: "tensor",
        about: "a TMA copy from or to another place, or for another barrier",
        edits: tensor::copy,
    },
    Operator { name: "descriptor", about: "a field of a matrix descriptor wrong", edits: tensor::descriptor },
    Operator {
        name: "product",
        about: "sums, operands, signs or orders of a warpgroup's product",
        edits: tensor::product,
    },
    Operator { name: "registers", about: "registers not given back, or too many asked for", edits: tensor::budget },
];

fn barrier(unit: &Unit, s: &Statement) -> Vec<Edit> {
    let name = s.root();
    if name != "bar" && name != "barrier" || s.has("cluster") {
        return Vec::new();
    }
    let mut edits = vec![delete()];
    if s.has("warp") {
        return edits;
    }
    let warp = s.rewritten(s.guard.as_ref(), "bar.warp.sync", &["0xffffffff".to_owned()]);
    let [id, rest @ ..] = &s.operands[..] else { return edits };
    let waits = !s.has("arrive");
    let count = rest.first().map_or(i64::from(unit.threads), |c| literal(c).unwrap_or(0));
    if s.has("sync") {
        edits.push(edit("warp only", warp));
        let arrive = s.opcode.replace("sync", "arrive");
        edits.push(edit("arrive only", s.rewritten(s.guard.as_ref(), &arrive, &[id.clone(), count.to_string()])));
    }
    if waits && count > 32 {
        let operands = [id.clone(), (count - 32).to_string()];
        edits.push(edit("fewer threads", s.rewritten(s.guard.as_ref(), &s.opcode, &operands)));
    }
    // Where all threads come by, any number is as good as another.
    if unit.partial_barriers
        && let Some(n) = literal(id)
    {
        edits.push(edit("other barrier", s.with_operand(0, ((n + 1) % 16).to_string())));
    }
    edits
}

fn wait(_: &Unit, s: &Statement) -> Vec<Edit> {
    if s.opcode == "griddepcontrol.wait" {
        return vec![delete()];
    }
    if s.has("wait_all") {
        return vec![delete(), edit("one group short", "cp.async.wait_group 1;")];
    }
    if !s.has("wait_group") {
        return Vec::new();
    }
    let mut edits = vec![delete()];
    if let Some(n) = s.operands.first().and_then(|o| literal(o)) {
        edits.push(edit("one group short", s.with_operand(0, (n + 1).to_string())));
    }
    if s.has("bulk") && !s.has("read") {
        edits.push(edit("sources only", s.with_opcode(&format!("{}.read", s.opcode))));
    }
    edits
}

fn commit(_: &Unit, s: &Statement) -> Vec<Edit> {
    if !s.has("commit_group") {
        return Vec::new();
    }
    // One group more would make every wait wait for more.
    vec![delete()]
}

fn fence(_: &Unit, s: &Statement) -> Vec<Edit> {
    if s.root() != "membar" && s.root() != "fence" && !s.opcode.starts_with("wgmma.fence") {
        return Vec::new();
    }
    let mut edits = vec![delete()];
    if let Some(wide) = ["gl", "gpu", "sys", "cluster"].into_iter().find(|w| s.has(w)) {
        let words: Vec<&str> = s.words().map(|w| if w == wide { "cta" } else { w }).collect();
        edits.push(edit("smaller scope", s.with_opcode(&words.join("."))));
    }
    edits
}

fn mbarrier(unit: &Unit, s: &Statement) -> Vec<Edit> {
    if s.root() == "mov" && unit.slices.writes_phase(s) {
        let first = s.operands.get(1).and_then(|o| literal(o));
        return first.map(|n| edit("first phase", s.with_operand(1, (n ^ 1).to_string()))).into_iter().collect();
    }
    let arrives_for_copies = s.opcode.starts_with("cp.async.mbarrier");
    if s.root() != "mbarrier" && !arrives_for_copies {
        return Vec::new();
    }
    if arrives_for_copies {
        let mut edits = vec![delete()];
        if s.has("noinc") {
            edits.push(edit("with increment", s.with_opcode(&s.opcode.replace(".noinc", ""))));
        }
        return edits;
    }
    let last = s.operands.len().saturating_sub(1);
    let number = s.operands.last().and_then(|o| literal(o));
    if s.has("init") {
        let count =
            |n: i64| edit(format!("count {:+}", n), s.with_operand(last, (number.unwrap_or(0) + n).to_string()));
        let mut edits = vec![delete()];
        edits.extend(number.map(|_| [count(1), count(-1)]).into_iter().flatten());
        return edits;
    }
    let Some((address, name)) = s.addresses().next() else { return Vec::new() };
    let other = edit("other barrier", s.with_operand(address, moved(name, 8)));
    if s.has("parity") {
        // [state or address], parity [, suspend hint]: the operand after the address.
        let Some(parity) = s.operands.get(address + 1) else { return Vec::new() };
        let flipped = match literal(parity) {
            Some(n) => edit("parity", s.with_operand(address + 1, (n ^ 1).to_string())),
            None => {
                let changed = s.with_operand(address + 1, "%mutant".to_owned());
                edit("parity", format!("{{ .reg .b32 %mutant; xor.b32 %mutant, {parity}, 1; {changed} }}"))
            }
        };
        return vec![flipped, edit("wait gone", passed(s)), other];
    }
    if s.has("expect_tx") || s.has("complete_tx") {
        let mut edits = vec![delete(), other];
        for bytes in [16, -16] {
            let text = |n: i64| s.with_operand(last, (n + bytes).to_string());
            edits.extend(number.map(|n| edit(format!("bytes {bytes:+}"), text(n))));
        }
        edits.extend(number.map(|n| edit("half of the bytes", s.with_operand(last, (n / 2).to_string()))));
        if s.has("arrive") {
            let plain = s.opcode.replace(".expect_tx", "");
            edits.push(edit("no bytes", s.rewritten(s.guard.as_ref(), &plain, &s.operands[..last])));
        }
        return edits;
    }
    if s.has("arrive") { vec![delete(), other] } else { Vec::new() }
}

/// A wait that succeeds at once.
fn passed(s: &Statement) -> String {
    let predicate = s.operands.first().cloned().unwrap_or_default();
    s.rewritten(s.guard.as_ref(), "setp.eq.b32", &[predicate, "0".to_owned(), "0".to_owned()])
}

/// Whether a statement belongs to a swizzle: an exclusive or of an address, or what only goes into one.
fn swizzles(unit: &Unit, s: &Statement) -> bool {
    unit.slices.feeds_address(s) && (s.root() == "xor" || (constant(s).is_some() && unit.slices.only_for(s, "xor")))
}

fn swizzle(unit: &Unit, s: &Statement) -> Vec<Edit> {
    if !swizzles(unit, s) {
        return Vec::new();
    }
    let mut edits = Vec::new();
    if s.root() == "xor"
        && let [d, a, _] = &s.operands[..]
    {
        let kind = s.words().nth(1).unwrap_or("b32");
        edits.push(edit("dropped", s.rewritten(s.guard.as_ref(), &format!("mov.{kind}"), &[d.clone(), a.clone()])));
    }
    edits.extend(other_constants(s));
    edits
}

fn stride(unit: &Unit, s: &Statement) -> Vec<Edit> {
    let places = unit.slices.feeds_address(s) || unit.slices.feeds_descriptor(s) && !(s.root() == "or" && s.has("b64"));
    if !places || swizzles(unit, s) || s.addresses().next().is_some() {
        return Vec::new();
    }
    let mut edits = other_constants(s);
    if s.root() == "mul"
        && s.has("lo")
        && constant(s).is_none()
        && let [d, a, b] = &s.operands[..]
    {
        let operands = [d.clone(), a.clone(), b.clone(), b.clone()];
        edits.push(edit("a row on", s.rewritten(s.guard.as_ref(), &s.opcode.replacen("mul", "mad", 1), &operands)));
    }
    edits
}

/// The statement with its constant a little wrong, in the ways that fit the operation.
fn other_constants(s: &Statement) -> Vec<Edit> {
    let Some((i, n)) = constant(s) else { return Vec::new() };
    let values: Vec<i64> = match s.root() {
        "shl" | "shr" => vec![n + 1, n - 1],
        "and" if n > 0 => vec![n & (n - 1), n & !(1 << n.ilog2())],
        "or" | "xor" if n > 0 => vec![n << 1, n >> 1],
        "add" | "sub" | "mul" | "mad" | "div" | "rem" => vec![n + 1, n * 2],
        _ => Vec::new(),
    };
    let fits = |v: &i64| *v != n && *v >= 0;
    values.into_iter().filter(fits).map(|v| edit(format!("{n} to {v}"), s.with_operand(i, v.to_string()))).collect()
}

/// Bytes that an access moves, by its modifiers.
fn bytes(s: &Statement) -> i64 {
    if matches!(s.root(), "ldmatrix" | "stmatrix" | "cp") {
        return 16;
    }
    let vector = if s.has("v4") {
        4
    } else if s.has("v2") {
        2
    } else {
        1
    };
    let digits = s.words().last().unwrap_or_default().trim_start_matches(|c: char| c.is_ascii_alphabetic());
    vector * digits.parse::<i64>().unwrap_or(32) / 8
}

fn offset(_: &Unit, s: &Statement) -> Vec<Edit> {
    if s.has("param") || s.root() == "mbarrier" || is_copy(s) {
        return Vec::new();
    }
    let all = s.addresses().map(|(i, address)| {
        let next = moved(address, bytes(s));
        edit(if i == 0 { "destination +1" } else { "source +1" }, s.with_operand(i, next))
    });
    all.collect()
}

fn guard(_: &Unit, s: &Statement) -> Vec<Edit> {
    let Some(guard) = &s.guard else { return Vec::new() };
    let negated = Guard { negated: !guard.negated, ..guard.clone() };
    vec![
        edit("dropped", s.rewritten(None, &s.opcode, &s.operands)),
        edit("negated", s.rewritten(Some(&negated), &s.opcode, &s.operands)),
        edit("never", ""),
    ]
}

fn bound(unit: &Unit, s: &Statement) -> Vec<Edit> {
    if !unit.slices.feeds_guard(s) {
        return Vec::new();
    }
    let keep = |i: usize| s.rewritten(s.guard.as_ref(), mov(s), &[s.operands[0].clone(), s.operands[i].clone()]);
    match (s.root(), s.operands.len()) {
        ("setp", _) => {
            let words: Vec<&str> = s.words().collect();
            let other = |w: &str| {
                Some(match w {
                    "lt" => "le",
                    "le" => "lt",
                    "gt" => "ge",
                    "ge" => "gt",
                    "eq" => "ne",
                    "ne" => "eq",
                    _ => return None,
                })
            };
            let changed = words.iter().enumerate().find_map(|(i, w)| Some((i, other(w)?)));
            let opcode = |(i, w): (usize, &'static str)| {
                let mut words = words.clone();
                let name = format!("{} to {w}", words[i]);
                words[i] = w;
                edit(name, s.with_opcode(&words.join(".")))
            };
            changed.map(opcode).into_iter().collect()
        }
        ("and" | "or", 3) if s.has("pred") => vec![edit("left only", keep(1)), edit("right only", keep(2))],
        ("min" | "max", 3) => vec![edit("left only", keep(1)), edit("right only", keep(2))],
        _ => Vec::new(),
    }
}

/// The plain move of a statement's type.
fn mov(s: &Statement) -> &'static str {
    match s.words().last() {
        Some("pred") => "mov.pred",
        Some(w) if w.ends_with("64") => "mov.b64",
        _ => "mov.b32",
    }
}

fn fragment(unit: &Unit, s: &Statement) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut push = |variant: &str, text: Option<String>| edits.extend(text.map(|t| edit(variant, t)));
    match s.root() {
        "mma" => {
            for (operand, name) in [(0, "D"), (1, "A"), (2, "B"), (3, "C")] {
                let n = s.operands.get(operand).map_or(0, |o| parts(o).len());
                for at in 0..n.saturating_sub(1) {
                    push(&format!("{name}{at} with {name}{}", at + 1), swapped(s, operand, at));
                }
            }
        }
        "ld" | "ldmatrix" if !s.has("param") => push("first two", swapped(s, 0, 0)),
        "st" | "stmatrix" => push("first two", swapped(s, 1, 0)),
        "shfl" => {
            let lane = s.operands.get(2).and_then(|o| literal(o));
            push("other lane", lane.map(|n| s.with_operand(2, (n ^ 1).max(if n == 1 { 2 } else { 0 }).to_string())));
        }
        "selp" if s.operands.len() == 4 && !unit.slices.feeds_address(s) => {
            let mut operands = s.operands.clone();
            operands.swap(1, 2);
            push("other way", Some(s.rewritten(s.guard.as_ref(), &s.opcode, &operands)));
        }
        "mov" if s.operands.iter().any(|o| o.starts_with('{')) => {
            push("first two", swapped(s, 0, 0).or_else(|| swapped(s, 1, 0)));
        }
        "prmt" => {
            let selector = s.operands.get(3).and_then(|o| literal(o));
            push("halves", selector.map(|n| s.with_operand(3, ((n >> 8 | n << 8) & 0xFFFF).to_string())));
        }
        _ => {}
    }
    edits
}

fn transpose(_: &Unit, s: &Statement) -> Vec<Edit> {
    if s.root() == "ldmatrix" || s.root() == "stmatrix" {
        let (name, opcode) = if s.has("trans") {
            ("plain", s.opcode.replace(".trans", ""))
        } else {
            let shape = s.words().find(|w| w.starts_with('x')).unwrap_or("x1");
            ("transposed", s.opcode.replace(shape, &format!("{shape}.trans")))
        };
        return vec![edit(name, s.with_opcode(&opcode))];
    }
    // Among warp-level products, only m8n8k4 takes its operands in either order.
    if s.root() != "mma" || !s.has("m8n8k4") || s.has("f64") {
        return Vec::new();
    }
    let at: Vec<usize> = s.words().enumerate().filter(|(_, w)| *w == "row" || *w == "col").map(|(i, _)| i).collect();
    let flip = |at: usize| -> String {
        let turn = |w| if w == "row" { "col" } else { "row" };
        let words: Vec<&str> = s.words().enumerate().map(|(i, w)| if i == at { turn(w) } else { w }).collect();
        s.with_opcode(&words.join("."))
    };
    at.into_iter().zip(["A", "B"]).map(|(at, name)| edit(format!("order of {name}"), flip(at))).collect()
}

fn zero_fill(_: &Unit, s: &Statement) -> Vec<Edit> {
    // cp.async [dst], [src], size, src-size
    if !s.opcode.starts_with("cp.async") || s.addresses().count() != 2 || s.operands.len() < 4 {
        return Vec::new();
    }
    if registers(&s.operands[3]).is_empty() && literal(&s.operands[3]).is_none() {
        return Vec::new();
    }
    vec![edit("reads all", s.rewritten(s.guard.as_ref(), &s.opcode, &s.operands[..3]))]
}
