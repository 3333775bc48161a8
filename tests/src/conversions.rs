//! Conversions of every element type to every other, at edge values: the interpreter against the compiled PTX on the simulator.
//!
//! Types of up to 16 bits are tried in all their values. What is right is written down once more at the end, for pairs of
//! integers and for what is not a number, so that both cannot be wrong in one way there.

use crate::number::{e2m1_bits, e2m1_value, exponent_bits, exponent_value};
use crate::problem::Random;
use std::collections::BTreeMap;
use tilec::{CompileOptions, Target, data};
use tilec_ir::interp::{self, Number};
use tilec_ir::types::Elem;
use tilec_sim::{Device, Launch, Options, Program};

/// Elements of a block.
pub(crate) const TILE: usize = 1024;

fn numeric() -> impl Iterator<Item = Elem> {
    Elem::ALL.iter().copied().filter(|&e| e != Elem::Bool)
}

/// Encodings of a type: all of them, or edges and some others, in whole tiles.
fn encodings(elem: Elem) -> Vec<u64> {
    let mut out: Vec<u64> = match elem.bits() {
        bits @ ..=16 => (0..1 << bits).collect(),
        _ if elem.is_float() => float_edges(elem),
        bits => integer_edges(bits),
    };
    if elem.bits() > 16 {
        let mask = u64::MAX >> (64 - elem.bits());
        let mut random = Random(1);
        out.extend((0..512).map(|_| random.bits() & mask));
    }
    // The low bits of a tf32 are no part of its value.
    let mask = if elem == Elem::TF32 { !0x1FFF } else { u64::MAX };
    out.iter_mut().for_each(|x| *x &= mask);
    let last = out[0];
    out.resize(out.len().next_multiple_of(TILE), last);
    out
}

/// Around each power of two, of both signs.
fn integer_edges(bits: u32) -> Vec<u64> {
    let mask = u64::MAX >> (64 - bits);
    let around = |p: u64| (0..5).map(move |d| p.wrapping_add(d).wrapping_sub(2));
    let all = (0..bits).flat_map(|i| around(1 << i)).chain((0..bits).flat_map(|i| around((1u64 << i).wrapping_neg())));
    let halves = (8..bits).flat_map(|i| around(3 << (i - 2)));
    all.chain(halves).map(|x| x & mask).collect()
}

/// Around each power of two and half-way between integers; the ends of other types; what is not a number.
fn float_edges(elem: Elem) -> Vec<u64> {
    let mut values: Vec<f64> = Vec::new();
    for i in (-150..=130).step_by(1) {
        let p = 2f64.powi(i);
        for factor in [1.0, 1.5, 1.0 + 2f64.powi(-8), 1.0 + 2f64.powi(-9), 1.0 + 2f64.powi(-11), 1.0 + 2f64.powi(-24)] {
            values.push(p * factor);
        }
    }
    for end in [7, 8, 15, 16, 31, 32, 63, 64] {
        for off in [-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0] {
            values.push(2f64.powi(end) + off);
        }
    }
    values.extend([
        0.0, 0.5, 1.5, 2.5, 3.5, 448.0, 464.0, 480.0, 57344.0, 61440.0, 65504.0, 65520.0, 1e30, 3.5e38, 1e300,
    ]);
    values.extend([f64::INFINITY, f64::MIN_POSITIVE, 5e-324]);
    let signed = values.iter().flat_map(|&x| [x, -x]);
    let mut out: Vec<u64> = signed.map(|x| data::encode(elem, x)).collect();
    let next = |x: u64| [x.wrapping_add(1), x.wrapping_sub(1)];
    out.extend(out.clone().into_iter().flat_map(next));
    out.push(data::encode(elem, f64::NAN));
    let mask = u64::MAX >> (64 - elem.bits());
    out.into_iter().map(|x| x & mask).collect()
}

/// How a number is converted to another type.
#[derive(Copy, Clone, PartialEq, Debug)]
enum Way {
    Cast,
    /// To a variable; of types of one class only, as stores.
    Assignment,
    Store,
}

/// The precondition under which elements smaller than a byte can be stored.
pub(crate) fn promise(elem: Elem) -> &'static str {
    if elem.size().whole_bytes().is_none() { " multiple 8" } else { "" }
}

fn source(from: Elem, to: Elem, way: Way) -> String {
    let promise = promise(to);
    let (from, to) = (from.name(), to.name());
    let converted = match way {
        Way::Cast => format!("copy cast<{to}>(x) -> Y[b * {TILE}..]"),
        Way::Assignment => format!("var y = reg {to}[{TILE}] = x copy y -> Y[b * {TILE}..]"),
        Way::Store => format!("copy x -> Y[b * {TILE}..]"),
    };
    format!(
        "kernel f(X: gmem {from}[N], Y: gmem {to}[N]{promise}) grid (b: ceildiv(N, {TILE})) {{
            var x = reg {from}[{TILE}]
            copy X[b * {TILE}..] -> x
            {converted}
        }}"
    )
}

fn bytes(elem: Elem, encodings: &[u64]) -> Vec<u8> {
    let mut out = vec![0; elem.bytes_of(encodings.len() as u64) as usize];
    encodings.iter().enumerate().for_each(|(i, &x)| data::set_word(elem, &mut out, i, x));
    out
}

pub(crate) fn interpreted(source: &str, (from, to): (Elem, Elem), input: &[u64]) -> Vec<Number> {
    let kernel = crate::oracle::parse_one(source).unwrap();
    let n = input.len();
    let x: Vec<Number> = input.iter().map(|&bits| data::element(from, bits)).collect();
    let x = match from {
        _ if from.is_wide() => x.iter().map(|x| x.to_i128()).collect::<Vec<i128>>().into(),
        _ => x.iter().map(|x| x.to_f64()).collect::<Vec<f64>>().into(),
    };
    let mut inputs = interp::Inputs {
        sizes: BTreeMap::from([("N".to_owned(), n as i64)]),
        tensors: BTreeMap::from([
            ("X".to_owned(), interp::Tensor { elem: from, data: x }),
            ("Y".to_owned(), interp::Tensor { elem: to, data: interp::Numbers::zeros(to, n) }),
        ]),
        ..interp::Inputs::default()
    };
    interp::run(&kernel, &mut inputs, &interp::Options::default()).unwrap();
    let y = &inputs.tensors["Y"].data;
    (0..n).map(|i| y.get(i).unwrap()).collect()
}

pub(crate) fn simulated(source: &str, target: Target, (from, to): (Elem, Elem), input: &[u64]) -> Vec<Number> {
    let options = CompileOptions { target, ..CompileOptions::default() };
    let done = tilec::compile(source, &options).unwrap_or_else(|e| panic!("{}: {source}: {e:?}", target.name()));
    let program = Program::parse(&done.ptx).unwrap();
    let mut device = Device::new();
    let n = input.len();
    let given = bytes(from, input);
    let x = device.alloc(given.len() as u64).unwrap();
    let y = device.alloc(to.bytes_of(n as u64)).unwrap();
    device.upload(x, &given).unwrap();
    let params = vec![x.to_le_bytes().to_vec(), y.to_le_bytes().to_vec(), (n as u32).to_le_bytes().to_vec()];
    let launch = &done.kernels[0].contract;
    let launch = Launch {
        entry: "f".to_owned(),
        grid: [(n / TILE) as u32, 1, 1],
        block: launch.block,
        dynamic_smem: launch.dynamic_smem_bytes,
        params,
    };
    device.run(&program, &launch, &Options::default()).unwrap();
    let out = device.download(y, to.bytes_of(n as u64) as usize).unwrap();
    (0..n).map(|i| data::get_exact(to, &out, i)).collect()
}

fn same(a: Number, b: Number) -> bool {
    match (a, b) {
        (Number::Wide(a), Number::Wide(b)) => a == b,
        (a, b) => {
            let (a, b) = (a.to_f64(), b.to_f64());
            a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
        }
    }
}

/// The conversion of integers, floats of 4 bits and scales according to the documents, independently of the code.
fn documented(from: Elem, to: Elem, x: Number) -> Option<Number> {
    match (to, x) {
        (Elem::E2M1, x) => return Some(Number::Float(e2m1_value(e2m1_bits(x.to_f64())))),
        // The highest bit, which an f64 near it may not have.
        (Elem::UE8M0, Number::Wide(x)) if x > 0 => return Some(Number::Float(2f64.powi(x.ilog2() as i32))),
        (Elem::UE8M0, x) => return Some(Number::Float(exponent_value(exponent_bits(x.to_f64())))),
        _ => {}
    }
    // All values of the small type, in types that can represent them.
    let few = match from {
        Elem::E2M1 => {
            matches!(to, Elem::F16 | Elem::BF16 | Elem::TF32 | Elem::F32 | Elem::F64 | Elem::E4M3 | Elem::E5M2)
        }
        Elem::UE8M0 => matches!(to, Elem::BF16 | Elem::TF32 | Elem::F32 | Elem::F64),
        _ => false,
    };
    if few {
        return Some(x);
    }
    let (name, ends) = match to {
        Elem::I4 => ("i4", (-8, 7)),
        Elem::U4 => ("u4", (0, 15)),
        Elem::I8 => ("i8", (-128, 127)),
        Elem::U8 => ("u8", (0, 255)),
        Elem::I16 => ("i16", (-(1 << 15), (1 << 15) - 1)),
        Elem::U16 => ("u16", (0, (1 << 16) - 1)),
        Elem::I32 => ("i32", (-(1 << 31), (1 << 31) - 1)),
        Elem::U32 => ("u32", (0, (1 << 32) - 1)),
        Elem::I64 => ("i64", (i64::MIN.into(), i64::MAX.into())),
        Elem::U64 => ("u64", (0, u64::MAX.into())),
        _ => return None,
    };
    let number = |x: i128| if matches!(name, "i64" | "u64") { Number::Wide(x) } else { Number::Float(x as f64) };
    let saturated = |x: i128| number(x.clamp(ends.0, ends.1));
    if from.is_float() {
        let x = x.to_f64();
        let none = match (from, name) {
            (_, "i64") => ends.0,
            (_, "u64") => 1 << 63,
            (Elem::F64, "u32") => 1 << 31,
            (Elem::F64, _) => ends.0,
            _ => 0,
        };
        return Some(if x.is_nan() { number(none) } else { saturated(x.round_ties_even() as i128) });
    }
    Some(match (from, name) {
        (_, "u64") => number(x.to_i128().rem_euclid(1 << 64)),
        (Elem::U64, "i64") => number(i128::from(x.to_i128() as u64 as i64)),
        (Elem::I64 | Elem::U64, _) | (_, "i4" | "u4" | "i8" | "u8" | "i16" | "u16" | "i64") => saturated(x.to_i128()),
        (_, "u32") => number(x.to_i128().rem_euclid(1 << 32)),
        _ => number(x.to_i128().wrapping_add(1 << 31).rem_euclid(1 << 32) - (1 << 31)),
    })
}

/// Errors in conversions of one type to another.
fn faults(from: Elem, to: Elem, way: Way, input: &[u64]) -> Vec<String> {
    let mut wrong = Vec::new();
    let pair = format!("{way:?} of {} to {}", from.name(), to.name());
    let source = source(from, to, way);
    let want = interpreted(&source, (from, to), input);
    for (&x, &y) in input.iter().zip(&want) {
        let x = data::element(from, x);
        if let Some(written) = documented(from, to, x).filter(|&z| !same(y, z)) {
            wrong.push(format!("{pair}: {x} is {y}, documented {written}"));
            break;
        }
    }
    for target in [Target::Sm70, Target::Sm90a] {
        let got = simulated(&source, target, (from, to), input);
        if let Some(i) = (0..input.len()).find(|&i| !same(got[i], want[i])) {
            let x = data::element(from, input[i]);
            wrong.push(format!("{}, {pair}: {x} is {}, in the interpreter {}", target.name(), got[i], want[i]));
        }
    }
    wrong
}

#[test]
fn every_pair_of_types_converts_alike_everywhere() {
    let mut wrong = Vec::new();
    for from in numeric() {
        let input = encodings(from);
        for to in numeric() {
            wrong.extend(faults(from, to, Way::Cast, &input));
            if from.class() == to.class() {
                wrong.extend(faults(from, to, Way::Assignment, &input));
                wrong.extend(faults(from, to, Way::Store, &input));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The bits of a type as those of every other of as many: on the device exactly, in the interpreter but for which NaN one is.
#[test]
fn bits_stay_what_they_are() {
    let mut wrong = Vec::new();
    for from in numeric() {
        let input = encodings(from);
        for to in numeric().filter(|to| to.bits() == from.bits()) {
            let (f, t, promise) = (from.name(), to.name(), promise(to));
            for read in ["x", "X[b * 1024..]", "select(x == x, x, x)"] {
                let source = format!(
                    "kernel f(X: gmem {f}[N], Y: gmem {t}[N]{promise}) grid (b: ceildiv(N, {TILE})) {{
                        var x = reg {f}[{TILE}]
                        copy X[b * {TILE}..] -> x
                        var y = reg {t}[{TILE}]
                        copy bitcast<{t}>({read}) -> y
                        copy y -> Y[b * {TILE}..]
                    }}"
                );
                // The result of `select` is a number: its NaN may have other bits, and 8-bit types saturate it.
                let computed = read.starts_with("select");
                let open = |x: Number| x.to_f64().is_nan() || (computed && x.to_f64().is_infinite());
                let want = interpreted(&source, (from, to), &input);
                for (i, &x) in input.iter().enumerate() {
                    let own = data::element(from, x);
                    if !open(own) && !same(want[i], data::element(to, x)) {
                        wrong.push(format!("{f} to {t}, {read}: {own} is {}", want[i]));
                        break;
                    }
                }
                for target in [Target::Sm70, Target::Sm90a] {
                    let got = simulated(&source, target, (from, to), &input);
                    let differs = |i: &usize| {
                        let own = data::element(from, input[*i]);
                        !(same(got[*i], data::element(to, input[*i])) || computed && open(own))
                    };
                    if let Some(i) = (0..input.len()).find(differs) {
                        let name = target.name();
                        wrong.push(format!("{name}, {f} to {t}, {read}: {:#x} is {}", input[i], got[i]));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Sums and products of integers in every type, at both ends: they wrap in registers, and saturate where they are
/// stored in bytes.
#[test]
fn integer_arithmetic_is_that_of_the_registers() {
    let mut wrong = Vec::new();
    for elem in numeric().filter(|e| !e.is_float()) {
        let input = encodings(elem);
        for e in ["x + x", "x * x", "0 - x", "-x", "abs(x)", "x - 3 * x", "max(x, x * 3)", "select(x < x + x, x, 7)"] {
            let (name, promise) = (elem.name(), promise(elem));
            let source = format!(
                "kernel f(X: gmem {name}[N], Y: gmem {name}[N]{promise}) grid (b: ceildiv(N, {TILE})) {{
                    var x = reg {name}[{TILE}]
                    copy X[b * {TILE}..] -> x
                    var y = reg {name}[{TILE}]
                    y = {e}
                    y = y - x
                    copy y -> Y[b * {TILE}..]
                }}"
            );
            let want = interpreted(&source, (elem, elem), &input);
            let got = simulated(&source, Target::Sm80, (elem, elem), &input);
            if let Some(i) = (0..input.len()).find(|&i| !same(got[i], want[i])) {
                let x = data::element(elem, input[i]);
                wrong.push(format!("{name} {x}: `{e}` is {}, in the interpreter {}", got[i], want[i]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
