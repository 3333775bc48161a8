//! The simulator's instruction table as probes.
//!
//! What the table holds is probed, so a row that is added is tested silently here; opcodes whose meaning is not a
//! function of their operands are listed in [`NOT_PROBED`].

use super::compare::rule;
use super::operand::{Elem, Float, Operand, Width};
use super::probe::{Compare, Probe, Product};
use std::fmt::Write as _;
use tilec_sim::{InstructionForm, instruction_forms};

/// Opcodes without probes, besides all forms with an address or a label: control flow, synchronisation, state of other
/// threads.
pub const NOT_PROBED: &[&str] = &[
    "mov",
    "isspacep",
    "cvta",
    "cp",
    "mbarrier",
    "ret",
    "exit",
    "trap",
    "brkpt",
    "bar",
    "barrier",
    "membar",
    "fence",
    "activemask",
    "createpolicy",
    "elect",
    "griddepcontrol",
    "nanosleep",
    "pmevent",
    "getctarank",
    "mapa",
    "setmaxnreg",
    "wgmma",
];

/// Whether a form works on its operands alone: no memory, no label.
pub fn computes(form: &InstructionForm) -> bool {
    let outside = |o: &str| matches!(o.trim_end_matches('?'), "l" | "t" | "m" | "mg" | "mt") || o.starts_with("m:");
    !form.operands.split_ascii_whitespace().any(outside)
}

/// Opcodes that are.
pub const PROBED: &[&str] = &[
    "add",
    "sub",
    "mul",
    "mul24",
    "mad",
    "mad24",
    "madc",
    "div",
    "rem",
    "min",
    "max",
    "abs",
    "neg",
    "popc",
    "clz",
    "bfind",
    "brev",
    "sad",
    "dp2a",
    "dp4a",
    "fns",
    "bfe",
    "bfi",
    "szext",
    "bmsk",
    "addc",
    "subc",
    "fma",
    "copysign",
    "testp",
    "rcp",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "lg2",
    "ex2",
    "tanh",
    "setp",
    "set",
    "selp",
    "slct",
    "and",
    "or",
    "xor",
    "not",
    "cnot",
    "shl",
    "shr",
    "shf",
    "lop3",
    "prmt",
    "cvt",
    "shfl",
    "vote",
    "match",
    "redux",
    "mma",
    "wmma",
    "movmatrix",
    "vabsdiff",
    "vabsdiff2",
    "vabsdiff4",
    "vadd",
    "vadd2",
    "vadd4",
    "vavrg2",
    "vavrg4",
    "vmad",
    "vmax",
    "vmax2",
    "vmax4",
    "vmin",
    "vmin2",
    "vmin4",
    "vset",
    "vset2",
    "vset4",
    "vshl",
    "vshr",
    "vsub",
    "vsub2",
    "vsub4",
];

/// Truth tables of `lop3`.
const TABLES: [u32; 12] = [0x00, 0x80, 0x96, 0xe8, 0xfe, 0x1b, 0x6a, 0xca, 0xd8, 0x3c, 0x55, 0xff];

/// The probes of the whole table, or why a form has none.
///
/// # Errors
/// An operand of the table is of a kind that this module does not know.
pub fn probes() -> Result<Vec<Probe>, String> {
    let mut probes = Vec::new();
    for form in instruction_forms() {
        if matches!(form.opcode, "atom" | "red") {
            probes.extend(atomic(&form).map_err(|e| format!("{}: {e}", spelling(&form)))?);
            continue;
        }
        if NOT_PROBED.contains(&form.opcode) || !computes(&form) || has_bytes(&form) {
            continue;
        }
        of(&form, &mut probes).map_err(|e| format!("{}: {e}", spelling(&form)))?;
    }
    for (i, probe) in probes.iter_mut().enumerate() {
        probe.entry = format!("p{i}");
    }
    Ok(probes)
}

/// Whether a register must be of 8 bits, which no probe declares; elsewhere larger ones do.
fn has_bytes(form: &InstructionForm) -> bool {
    let has = |word: &str| form.modifiers.contains(&word);
    form.opcode == "cvt" && has("bf16") && (has("u8") || has("s8"))
}

/// The instruction with its modifiers.
fn spelling(form: &InstructionForm) -> String {
    form.modifiers.iter().fold(form.opcode.to_owned(), |text, word| text + "." + word)
}

/// Register, contents and number of elements of a type.
fn operand(ty: &str) -> Option<Operand> {
    let of = |width, elem, per| Some(Operand { width, elem, per });
    match ty {
        "pred" => of(Width::Pred, Elem::Truth, 1),
        "f16" => of(Width::B16, Elem::Float(Float::F16), 1),
        "bf16" => of(Width::B16, Elem::Float(Float::BF16), 1),
        "u16x2" | "s16x2" => of(Width::B32, Elem::Int(16), 2),
        "f16x2" => of(Width::B32, Elem::Float(Float::F16), 2),
        "bf16x2" => of(Width::B32, Elem::Float(Float::BF16), 2),
        "f32" => of(Width::B32, Elem::Float(Float::F32), 1),
        "tf32" => of(Width::B32, Elem::Float(Float::TF32), 1),
        "f64" => of(Width::B64, Elem::Float(Float::F64), 1),
        "e4m3x2" | "e5m2x2" | "b16" | "u16" | "s16" => of(Width::B16, Elem::Int(16), 1),
        // A register holds more than 8 bits: the others are ignored in a source and extended in a result.
        "b8" | "u8" | "s8" | "b32" | "u32" | "s32" => of(Width::B32, Elem::Int(32), 1),
        "b64" | "u64" | "s64" => of(Width::B64, Elem::Int(64), 1),
        _ => None,
    }
}

/// The modifiers that are types.
fn types<'f>(form: &'f InstructionForm) -> impl DoubleEndedIterator<Item = &'f str> + use<'f> {
    let is_type = |w: &&str| operand(w).is_some() || matches!(*w, "e4m3" | "e5m2");
    form.modifiers.iter().copied().filter(is_type)
}

fn twice(ty: &str) -> &'static str {
    match ty {
        "u16" => "u32",
        "s16" => "s32",
        "u32" => "u64",
        _ => "s64",
    }
}

/// One operand of the table.
struct Token {
    kind: &'static str,
    count: usize,
    operand: Option<Operand>,
}

fn tokens(form: &InstructionForm) -> Result<Vec<Token>, String> {
    let last = types(form).next_back();
    let mut tokens = Vec::new();
    for text in form.operands.split_ascii_whitespace() {
        let text = text.trim_end_matches('?');
        let (head, ty) = text.split_once(':').map_or((text, None), |(h, t)| (h, Some(t)));
        let (kind, count) = head.trim_end_matches('_').split_once('*').unwrap_or((head.trim_end_matches('_'), "1"));
        let count = count.parse().map_err(|_| format!("the count of `{text}`"))?;
        let mut ty = match ty {
            Some("U") => types(form).next(),
            Some("W") => last.map(twice),
            Some(ty) => Some(ty),
            None if matches!(kind, "dm" | "ds" | "ss") => Some("b32"),
            None => last,
        };
        // The operand types of a conversion, in the registers that the table gives.
        if form.opcode == "cvt" && kind == "s" && ty == Some("b32") && last.is_some_and(|l| l.ends_with("x2")) {
            ty = last;
        }
        tokens.push(Token { kind, count, operand: ty.and_then(operand) });
    }
    Ok(tokens)
}

fn of(form: &InstructionForm, probes: &mut Vec<Probe>) -> Result<(), String> {
    if matches!(form.opcode, "mma" | "wmma") {
        probes.push(product(form)?);
        return Ok(());
    }
    let name = spelling(form);
    let collective = matches!(form.opcode, "shfl" | "vote" | "match" | "redux");
    let mut probe = Probe {
        name: name.clone(),
        entry: String::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        body: String::new(),
        compare: rule(form.opcode, &form.modifiers),
        product: None,
    };
    let (mut args, mut immediate) = (Vec::new(), false);
    for token in tokens(form)? {
        let need = || token.operand.ok_or_else(|| format!("an operand `{}` without a type", token.kind));
        let truth = Operand { width: Width::Pred, elem: Elem::Truth, per: 1 };
        let list = |list: &mut Vec<Operand>, prefix: &str, operand: Operand| {
            list.push(operand);
            format!("%{prefix}{}", list.len() - 1)
        };
        args.push(match token.kind {
            "dm" => list(&mut probe.outputs, "o", need()?) + ".h1",
            "d" | "dv" | "ds" => list(&mut probe.outputs, "o", need()?),
            "s" | "sv" | "ss" => list(&mut probe.inputs, "i", need()?),
            "p" => list(&mut probe.outputs, "o", truth),
            "q" => list(&mut probe.inputs, "i", truth),
            "pq" | "dp" => {
                let first = if token.kind == "pq" { truth } else { need()? };
                let first = list(&mut probe.outputs, "o", first);
                first + "|" + &list(&mut probe.outputs, "o", truth)
            }
            "i" => {
                immediate = true;
                "IMMEDIATE".to_owned()
            }
            kind => return Err(format!("an operand of kind `{kind}`")),
        });
    }
    let instruction = format!("    {name} {};", args.join(", "));
    if collective {
        return collectives(form, probe, &instruction, probes);
    }
    if form.modifiers.contains(&"cc") || matches!(form.opcode, "addc" | "subc" | "madc") {
        carry(form, &mut probe, &instruction)?;
        probes.push(probe);
        return Ok(());
    }
    if immediate {
        for table in TABLES {
            let (name, body) = (format!("{name} {table:#x}"), instruction.replace("IMMEDIATE", &table.to_string()));
            probes.push(Probe { name, body, ..probe.clone() });
        }
        return Ok(());
    }
    // A result in a wider register is extended.
    if form.operands.starts_with("dv") && types(form).next().is_some_and(|t| matches!(t, "u8" | "s8" | "u16" | "s16")) {
        let mut wide = Probe { name: name + ", wide", body: instruction.clone(), ..probe.clone() };
        wide.outputs[0] = Operand { width: Width::B64, elem: Elem::Int(64), per: 1 };
        probes.push(wide);
    }
    probes.push(Probe { body: instruction, ..probe });
    Ok(())
}

/// Extended precision: the carry comes from an instruction before and is read by one after.
fn carry(form: &InstructionForm, probe: &mut Probe, instruction: &str) -> Result<(), String> {
    let word = Operand { width: Width::B32, elem: Elem::Int(32), per: 1 };
    let plain = form.opcode.trim_end_matches('c');
    // The carry of a product and a sum is that of the sum.
    let plain = match plain {
        "mad" => "add",
        "add" | "sub" => plain,
        _ => return Err("carry of what?".to_owned()),
    };
    let mut body = String::new();
    if form.opcode.ends_with('c') {
        let n = probe.inputs.len();
        probe.inputs.extend([word, word]);
        let _ = writeln!(body, "    {plain}.cc.u32 %t0, %i{n}, %i{};", n + 1);
    }
    body.push_str(instruction);
    if form.modifiers.contains(&"cc") {
        probe.outputs.push(word);
        let _ = write!(body, "\n    {plain}c.u32 %o{}, %zero, %zero;", probe.outputs.len() - 1);
    }
    probe.body = body;
    Ok(())
}

/// An atomic operation on a word of the thread's own, in its plainest spelling: the old value, and what is left.
fn atomic(form: &InstructionForm) -> Result<Option<Probe>, String> {
    // Vectors have no probes either, because their elements are adjacent, unlike a probe's results:
    // `sim/tests/hopper.rs` has them.
    let orders = [
        "L2::cache_hint",
        "relaxed",
        "acquire",
        "release",
        "acq_rel",
        "cta",
        "cluster",
        "gpu",
        "sys",
        "shared::cta",
        "v2",
        "v4",
        "v8",
    ];
    let space = form.modifiers.iter().find(|w| matches!(**w, "global" | "shared"));
    let (Some(space), false) = (space, form.modifiers.iter().any(|w| orders.contains(w))) else { return Ok(None) };
    let name = spelling(form);
    let ty = form.modifiers.last().copied().and_then(operand).ok_or("a type that nobody knows")?;
    let sources = form.operands.split_ascii_whitespace().filter(|o| *o == "s").count();
    let old = form.operands.starts_with('d');
    let outputs = vec![ty; 1 + usize::from(old)];
    let (left, before) = (outputs.len() - 1, 128 * outputs[1..].iter().map(|o| o.width.words()).sum::<usize>());
    let (bits, wide) = match ty.width {
        Width::B64 => (64, "%d8"),
        Width::B16 => (16, "%d4"),
        Width::Pred | Width::B32 => (32, "%d4"),
    };
    // In global memory, where the result is stored afterwards.
    let (prologue, at) = if *space == "global" {
        (String::new(), format!("{wide}+{before}"))
    } else {
        let text = "    .shared .align 8 .b8 words[1024];\n    mov.u32 %t0, %tid.x;\n    shl.b32 %t0, %t0, 3;\n    mov.u32 %t1, words;\n\
                    \x20   add.u32 %t0, %t0, %t1;\n";
        (text.to_owned(), "%t0".to_owned())
    };
    let result = if old { "%o0, " } else { "" };
    let sources: Vec<String> = (1..=sources).map(|i| format!("%i{i}")).collect();
    let body = format!(
        "    {{\n{prologue}    st.{space}.b{bits} [{at}], %i0;\n    {name} {result}[{at}], {};\n    ld.{space}.b{bits} %o{left}, [{at}];\n    }}",
        sources.join(", ")
    );
    let inputs = vec![ty; 1 + sources.len()];
    Ok(Some(Probe { name, entry: String::new(), inputs, outputs, body, compare: Compare::Exact, product: None }))
}

/// Exchanges between lanes: all of them, and some where the others' values do not matter.
fn collectives(
    form: &InstructionForm,
    mut probe: Probe,
    instruction: &str,
    probes: &mut Vec<Probe>,
) -> Result<(), String> {
    let Some(members) = probe.inputs.len().checked_sub(1) else { return Err("no lanes".to_owned()) };
    match form.opcode {
        "shfl" => {
            probe.inputs[1].elem = Elem::Lane;
            probe.inputs[2].elem = Elem::Lane;
        }
        "match" => probe.inputs[0].elem = Elem::Few,
        _ => {}
    }
    probe.inputs[members].elem = Elem::AllLanes;
    probes.push(Probe { body: instruction.to_owned(), ..probe.clone() });
    if form.opcode == "shfl" {
        // What a lane reads from one that does not take part is undefined.
        return Ok(());
    }
    probe.inputs[members].elem = Elem::Members;
    let mut body = String::new();
    for (i, output) in probe.outputs.iter().enumerate() {
        let _ = match output.width {
            Width::Pred => writeln!(body, "    setp.ne.u32 %o{i}, %zero, %zero;"),
            _ => writeln!(body, "    mov.b32 %o{i}, %zero;"),
        };
    }
    let _ = write!(
        body,
        "    shr.u32 %t0, %i{members}, %lane;\n    and.b32 %t0, %t0, 1;\n    setp.ne.u32 %q0, %t0, %zero;\n\
         \x20   @!%q0 bra SKIP;\n{instruction}\nSKIP:\n    bar.warp.sync -1;"
    );
    probes.push(Probe { name: format!("{}, some lanes", probe.name), body, ..probe });
    Ok(())
}

fn matrix_elem(word: &str) -> Option<Elem> {
    Some(match word {
        "f16" => Elem::Float(Float::F16),
        "bf16" => Elem::Float(Float::BF16),
        "tf32" => Elem::Float(Float::TF32),
        "e4m3" => Elem::Float(Float::E4M3),
        "e5m2" => Elem::Float(Float::E5M2),
        "f32" => Elem::Float(Float::F32),
        "f64" => Elem::Float(Float::F64),
        "b1" => Elem::Int(1),
        "s4" | "u4" => Elem::Int(4),
        "s8" | "u8" => Elem::Int(8),
        "s32" => Elem::Int(32),
        _ => return None,
    })
}

/// A matrix product; its types are those of D, A, B and C.
fn product(form: &InstructionForm) -> Result<Probe, String> {
    let words = &form.modifiers;
    let Some(shape) = words.iter().find(|w| w.starts_with('m') && w.contains('k')) else {
        return Err("a product without a shape".to_owned());
    };
    let numbers: Vec<usize> = shape.split(['m', 'n', 'k']).filter_map(|n| n.parse().ok()).collect();
    let elems: Vec<Elem> = words.iter().filter_map(|w| matrix_elem(w)).collect();
    let half = Elem::Float(Float::F16);
    let (m, n, k, [d, a, b, c]) = match (&numbers[..], &elems[..]) {
        (&[m, n, k], &[d, a, b, c]) => (m, n, k, [d, a, b, c]),
        // `wmma` on f16 names the accumulators only.
        (&[m, n, k], &[d, c]) => (m, n, k, [d, half, half, c]),
        _ => return Err("its shape or types".to_owned()),
    };
    let counts: Vec<usize> = tokens(form)?.iter().map(|t| t.count).collect();
    let &[nd, na, nb, nc] = &counts[..] else { return Err("its operands".to_owned()) };
    let fragment = |elem: Elem| {
        let bits = Operand { width: Width::B32, elem, per: 1 }.elem_bits();
        let width = if bits == 64 { Width::B64 } else { Width::B32 };
        Operand { width, elem, per: (32 / bits as usize).max(1) }
    };
    let mut inputs = vec![fragment(a); na];
    inputs.extend(vec![fragment(b); nb]);
    inputs.extend(vec![fragment(c); nc]);
    let vector = |prefix: &str, from: usize, count: usize| {
        format!("{{{}}}", (from..from + count).map(|i| format!("%{prefix}{i}")).collect::<Vec<_>>().join(", "))
    };
    let name = spelling(form);
    let args = [vector("o", 0, nd), vector("i", 0, na), vector("i", na, nb), vector("i", na + nb, nc)];
    let orders: Vec<&&str> = words.iter().filter(|w| matches!(**w, "row" | "col")).collect();
    Ok(Probe {
        body: format!("    {name} {};", args.join(", ")),
        name,
        entry: String::new(),
        inputs,
        outputs: vec![fragment(d); nd],
        compare: Compare::Exact,
        product: Some(Product {
            shape: [m, n, k],
            opaque: form.opcode == "wmma",
            a_rows: orders.first() == Some(&&"row"),
            b_columns: orders.get(1) == Some(&&"col"),
            registers: [na, nb, nc],
            elems: [a, b, c, d],
        }),
    })
}
