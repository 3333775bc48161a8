//! Every operator on elements of every type that takes them, by every target: compiled programs on the simulator against the interpreter, at special values
//! in pairs and at random bits. What a type does not have is refused with a message.

use crate::oracle::parse_one;
use crate::problem::Random;
use std::collections::BTreeMap;
use tilec::run::check::accuracy;
use tilec::{CompileOptions, Target, data};
use tilec_ir::interp::{self, Number};
use tilec_ir::numerics::float_format;
use tilec_ir::ops::{Domain, Form, Op};
use tilec_ir::types::{Elem, ElemClass};
use tilec_sim::{Device, Launch, Options, Program};

/// Elements of a block: two for each thread.
const TILE: usize = 256;
/// Elements of each tensor.
const COUNT: usize = 4 * TILE;

fn numeric() -> impl Iterator<Item = Elem> {
    Elem::ALL.iter().copied().filter(|&e| e != Elem::Bool)
}

/// The expressions of an operator on `x` and `z`; truths choose between these.
fn expressions(op: Op) -> Vec<String> {
    let name = op.token();
    let call = |args: &str| format!("{name}({args})");
    let choice = |condition: String| format!("select({condition}, x, z)");
    match (op.domain(), op.form(), op.arity()) {
        (Domain::Compare, ..) => vec![choice(format!("x {name} z")), choice(format!("x {name} 1"))],
        (Domain::Logic, Form::Prefix, _) => vec![choice(format!("{name}(x < z)"))],
        (Domain::Logic, ..) => vec![choice(format!("x < z {name} x == 1"))],
        (Domain::Select, ..) => vec!["select(x == x, x, z)".to_owned(), "select(x > 1, 1, z)".to_owned()],
        (_, Form::Prefix, _) => vec![format!("{name}x")],
        (_, Form::Infix(_), _) => {
            vec![format!("x {name} z"), format!("z {name} x"), format!("x {name} 3"), format!("7 {name} x")]
        }
        (_, Form::Call, 1) => vec![call("x")],
        (_, Form::Call, 2) => vec![call("x, z"), call("x, 3")],
        _ => vec![call("x, z, x"), call("z, x, 1")],
    }
}

/// A kernel that stores each expression to a separate tensor.
fn source(elem: Elem, expressions: &[(String, Elem)]) -> String {
    let promise = |elem: Elem| if elem.size().whole_bytes().is_none() { " multiple 8" } else { "" };
    let t = elem.name();
    let of = |(i, (_, out)): (usize, &(String, Elem))| format!(", Y{i}: gmem {}[N]{}", out.name(), promise(*out));
    let tensors: String = expressions.iter().enumerate().map(of).collect();
    let stores = expressions.iter().enumerate().map(|(i, (e, _))| format!("copy {e} -> Y{i}[b * {TILE}..]\n"));
    format!(
        "kernel f(X: gmem {t}[N]{0}, Z: gmem {t}[N]{0}{tensors}) grid (b: ceildiv(N, {TILE})) {{
            var x = reg {t}[{TILE}]
            var z = reg {t}[{TILE}]
            copy X[b * {TILE}..] -> x
            copy Z[b * {TILE}..] -> z
            {1}
        }}",
        promise(elem),
        stores.collect::<String>()
    )
}

/// Numbers of a type that are special to some operator, as bits.
fn special(elem: Elem) -> Vec<u64> {
    let mask = u64::MAX >> (64 - elem.bits());
    if !elem.is_float() {
        let high = 1u64 << (elem.bits() - 1);
        let small = [0, 1, 2, 3, 5, 7, 31, 32, 63, 64, 100].into_iter();
        let near =
            [high, high - 1, high + 1, mask, mask - 1, mask - 6, 0x5555_5555_5555_5555, 0x8000_0000, 0x7fff_ffff];
        return small.chain(near).map(|x| x & mask).collect();
    }
    let values = [
        0.0,
        0.5,
        1.0,
        1.5,
        2.0,
        2.5,
        3.0,
        6.0,
        7.0,
        100.0,
        65504.0,
        1e-5,
        1e-30,
        1e30,
        3.0e38,
        1e-45,
        1e-310,
        1e300,
        f64::INFINITY,
    ];
    let mut bits: Vec<u64> = values.iter().flat_map(|&x| [x, -x]).map(|x| data::encode(elem, x)).collect();
    bits.push(data::encode(elem, f64::NAN));
    bits.sort_unstable();
    bits.dedup();
    bits
}

/// The operands: special numbers in pairs as far as there is room, and random ones.
fn operands(elem: Elem) -> [Vec<u64>; 2] {
    let (special, mut random) = (special(elem), Random(u64::from(elem.bits())));
    let n = special.len();
    let keep = if elem == Elem::TF32 { !0x1fff } else { u64::MAX } & u64::MAX >> (64 - elem.bits());
    let mut pairs: Vec<[u64; 2]> = (0..n * n).map(|i| [special[i % n], special[i / n]]).collect();
    while pairs.len() > COUNT / 2 {
        pairs.swap_remove(random.bits() as usize % pairs.len());
    }
    while pairs.len() < COUNT {
        let near = special[random.bits() as usize % n];
        pairs.push(match random.bits() % 4 {
            0 => [random.bits(), near],
            1 => [near, random.bits()],
            _ => [random.bits(), random.bits()],
        });
    }
    [0, 1].map(|i| pairs.iter().map(|p| p[i] & keep).collect())
}

fn bytes(elem: Elem, encodings: &[u64]) -> Vec<u8> {
    let mut out = vec![0; elem.bytes_of(encodings.len() as u64) as usize];
    encodings.iter().enumerate().for_each(|(i, &x)| data::set_word(elem, &mut out, i, x));
    out
}

/// The interpreter's result in each tensor, with error bounds.
fn interpreted(source: &str, elem: Elem, inputs: &[Vec<u64>; 2], outs: &[Elem]) -> Vec<Vec<(Number, f64)>> {
    let kernel = parse_one(source).unwrap();
    let tensor = |bits: &Vec<u64>| {
        let numbers = bits.iter().map(|&bits| data::element(elem, bits));
        let data = match elem.is_wide() {
            true => numbers.map(|x| x.to_i128()).collect::<Vec<i128>>().into(),
            false => numbers.map(|x| x.to_f64()).collect::<Vec<f64>>().into(),
        };
        interp::Tensor { elem, data }
    };
    let mut tensors = BTreeMap::from([("X".to_owned(), tensor(&inputs[0])), ("Z".to_owned(), tensor(&inputs[1]))]);
    for (i, &out) in outs.iter().enumerate() {
        tensors.insert(format!("Y{i}"), interp::Tensor { elem: out, data: interp::Numbers::zeros(out, COUNT) });
    }
    let sizes = BTreeMap::from([("N".to_owned(), COUNT as i64)]);
    let mut given = interp::Inputs { sizes, tensors, ..interp::Inputs::default() };
    let options = interp::Options { accuracy: Some(accuracy("fma", false, 90, None)), ..interp::Options::default() };
    interp::run(&kernel, &mut given, &options).unwrap();
    let of = |i: usize| {
        let name = format!("Y{i}");
        let errors = given.errors.get(&name).map(|e| &e.largest);
        let error = |at: usize| errors.and_then(|e| e.get(at)).copied().unwrap_or(0.0);
        (0..COUNT).map(|at| (given.tensors[&name].data.get(at).unwrap(), error(at))).collect()
    };
    (0..outs.len()).map(of).collect()
}

/// The result of compiled code in each tensor.
fn simulated(
    source: &str,
    target: Target,
    elem: Elem,
    inputs: &[Vec<u64>; 2],
    outs: &[Elem],
) -> Result<Vec<Vec<Number>>, String> {
    let options = CompileOptions { target, ..CompileOptions::default() };
    let done = tilec::compile(source, &options).map_err(|e| format!("{}: {e:?}", target.name()))?;
    let program = Program::parse(&done.ptx).unwrap();
    let mut device = Device::new();
    let mut params = Vec::new();
    for bits in inputs {
        let given = bytes(elem, bits);
        let at = device.alloc(given.len() as u64).unwrap();
        device.upload(at, &given).unwrap();
        params.push(at.to_le_bytes().to_vec());
    }
    let of_outs: Vec<u64> = outs.iter().map(|out| device.alloc(out.bytes_of(COUNT as u64)).unwrap()).collect();
    params.extend(of_outs.iter().map(|at| at.to_le_bytes().to_vec()));
    params.push((COUNT as u32).to_le_bytes().to_vec());
    let contract = &done.kernels[0].contract;
    let launch = Launch {
        entry: "f".to_owned(),
        grid: [(COUNT / TILE) as u32, 1, 1],
        block: contract.block,
        dynamic_smem: contract.dynamic_smem_bytes,
        params,
    };
    device.run(&program, &launch, &Options::default()).map_err(|e| format!("{}: {e:?}", target.name()))?;
    let read = |(&out, &at): (&Elem, &u64)| {
        let raw = device.download(at, out.bytes_of(COUNT as u64) as usize).unwrap();
        (0..COUNT).map(|i| data::get_exact(out, &raw, i)).collect()
    };
    Ok(outs.iter().zip(&of_outs).map(read).collect())
}

/// Whether a number is within an error of another; beyond the largest numbers errors have no measure. An error may be that of a sign of zero alone (`unsigned`).
fn near(got: Number, (want, error): (Number, f64), elem: Elem, unsigned: bool) -> bool {
    if let (Number::Wide(a), Number::Wide(b)) = (got, want) {
        return a == b;
    }
    let (a, b) = (got.to_f64(), want.to_f64());
    let edge = |x: f64| x.abs() >= 0.999 * float_format(elem).map_or(f64::INFINITY, |f| f.max_finite());
    a.to_bits() == b.to_bits()
        || a.is_nan() && b.is_nan()
        || unsigned && a == 0.0 && b == 0.0
        || error > 0.0 && ((a - b).abs() <= error || edge(a) && edge(b) && a.signum() == b.signum())
}

/// Errors of a type on a target.
fn faults(target: Target, elem: Elem) -> Vec<String> {
    let mut accepted = Vec::new();
    for &op in Op::ALL {
        let out = if op == Op::Random { Elem::U32 } else { elem };
        accepted.extend(
            expressions(op)
                .into_iter()
                .map(|e| (e, out))
                .filter(|e| parse_one(&source(elem, std::slice::from_ref(e))).is_ok()),
        );
    }
    let (text, outs) = (source(elem, &accepted), accepted.iter().map(|(_, out)| *out).collect::<Vec<Elem>>());
    let inputs = operands(elem);
    let got = match simulated(&text, target, elem, &inputs, &outs) {
        Ok(got) => got,
        Err(why) => return vec![format!("{}: {why}", elem.name())],
    };
    let want = interpreted(&text, elem, &inputs, &outs);
    let mut wrong = Vec::new();
    for (i, (e, out)) in accepted.iter().enumerate() {
        // Its error is absolute where it is no instruction.
        let unsigned = e.starts_with(Op::FastTanh.token());
        if let Some(at) = (0..COUNT).find(|&at| !near(got[i][at], want[i][at], *out, unsigned)) {
            let [x, z] = [0, 1].map(|k| data::element(elem, inputs[k][at]));
            let (want, error) = want[i][at];
            let (who, t) = (target.name(), elem.name());
            wrong.push(format!(
                "{who}, `{e}` of {t} {x}, {z}: {}, in the interpreter {want} (within {error:e})",
                got[i][at]
            ));
        }
    }
    wrong
}

fn every_type_on(target: Target) {
    let wrong: Vec<String> = numeric().flat_map(|elem| faults(target, elem)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_operator_on_every_type_for_sm_70() {
    every_type_on(Target::Sm70);
}

#[test]
fn every_operator_on_every_type_for_sm_75() {
    every_type_on(Target::Sm75);
}

#[test]
fn every_operator_on_every_type_for_sm_80() {
    every_type_on(Target::Sm80);
}

#[test]
fn every_operator_on_every_type_for_sm_86() {
    every_type_on(Target::Sm86);
}

#[test]
fn every_operator_on_every_type_for_sm_89() {
    every_type_on(Target::Sm89);
}

#[test]
fn every_operator_on_every_type_for_sm_90() {
    every_type_on(Target::Sm90);
}

#[test]
fn every_operator_on_every_type_for_sm_90a() {
    every_type_on(Target::Sm90a);
}

/// Type rules reject operators that a type does not have, and no others.
#[test]
fn what_a_type_does_not_have_is_refused() {
    for elem in numeric() {
        for &op in Op::ALL {
            let fits = match op.domain() {
                Domain::Numeric | Domain::Compare | Domain::Logic | Domain::Select => true,
                Domain::Integer if op == Op::PermuteBytes => matches!(elem, Elem::I32 | Elem::U32),
                Domain::Integer => elem.class() == ElemClass::Int,
                Domain::Float => elem.is_float(),
            };
            let out = if op == Op::Random { Elem::U32 } else { elem };
            for e in expressions(op) {
                match parse_one(&source(elem, &[(e.clone(), out)])) {
                    Ok(_) => assert!(fits, "`{e}` of {}", elem.name()),
                    Err(why) => assert!(!fits && why.contains("E022"), "`{e}` of {}: {why}", elem.name()),
                }
            }
        }
    }
}
