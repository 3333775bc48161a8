//! Operators on integer elements, at edge values of every type: the interpreter, and compiled code on the simulator, against what the
//! documents say, which is written down here once more.

use crate::conversions::{TILE, interpreted, simulated};
use crate::problem::Random;
use tilec::{Target, data};
use tilec_ir::interp::Number;
use tilec_ir::types::Elem;

/// Bits and sign of the type and of its register, which determine a result.
#[derive(Copy, Clone)]
struct Type {
    elem: Elem,
    bits: u32,
    register: u32,
    signed: bool,
}

const TYPES: [Type; 10] = [
    Type { elem: Elem::I4, bits: 4, register: 32, signed: true },
    Type { elem: Elem::U4, bits: 4, register: 32, signed: false },
    Type { elem: Elem::I8, bits: 8, register: 32, signed: true },
    Type { elem: Elem::U8, bits: 8, register: 32, signed: false },
    Type { elem: Elem::I16, bits: 16, register: 32, signed: true },
    Type { elem: Elem::U16, bits: 16, register: 32, signed: false },
    Type { elem: Elem::I32, bits: 32, register: 32, signed: true },
    Type { elem: Elem::U32, bits: 32, register: 32, signed: false },
    Type { elem: Elem::I64, bits: 64, register: 64, signed: true },
    Type { elem: Elem::U64, bits: 64, register: 64, signed: false },
];

impl Type {
    /// The number with these low bits.
    fn cut(self, bits: u32, x: i128) -> i128 {
        let x = x & ((1 << bits) - 1);
        if self.signed && x >> (bits - 1) == 1 { x - (1 << bits) } else { x }
    }

    /// A result as the register holds it: that of a byte without a sign has one.
    fn kept(self, x: i128) -> i128 {
        let of_register = Type { signed: !matches!(self.elem, Elem::U32 | Elem::U64), ..self };
        of_register.cut(self.register, x)
    }

    /// Edges, and some others.
    fn values(self) -> Vec<i128> {
        let mut random = Random(7);
        let small = [0, 1, 2, 3, 5, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100, -1, -2, -3, -7, -8, -9, -64];
        let powers = [7, 8, 15, 16, 31, 32, 63].into_iter().flat_map(|p| [-1, 0, 1].map(|d| (1i128 << p) + d));
        let others = (0..8).map(|_| i128::from(random.bits()));
        small.into_iter().chain(powers).chain(others).map(|x| self.cut(self.bits, x)).collect()
    }
}

fn floor(a: i128, b: i128) -> i128 {
    if b == 0 { 0 } else { (a - a.rem_euclid(b.abs())) / b - i128::from(b < 0 && a.rem_euclid(b.abs()) != 0) }
}

fn rest(a: i128, b: i128) -> i128 {
    a - floor(a, b) * b
}

fn ceil(a: i128, b: i128) -> i128 {
    floor(a, b) + i128::from(b != 0 && rest(a, b) != 0)
}

fn left(t: Type, a: i128, n: i128) -> i128 {
    if (0..t.register.into()).contains(&n) { a << n } else { 0 }
}

fn right(t: Type, a: i128, n: i128) -> i128 {
    if (0..t.register.into()).contains(&n) { a >> n } else { -i128::from(a < 0) }
}

type Reference = fn(Type, i128, i128) -> i128;

const EXPRESSIONS: &[(&str, Reference)] = &[
    ("x / y", |_, a, b| floor(a, b)),
    ("x % y", |_, a, b| rest(a, b)),
    ("ceildiv(x, y)", |_, a, b| ceil(a, b)),
    ("x & y", |_, a, b| a & b),
    ("x | y", |_, a, b| a | b),
    ("x ^ y", |_, a, b| a ^ b),
    ("x << y", left),
    ("x >> y", right),
    ("~x", |t, a, _| t.cut(t.bits, !a)),
    ("popcount(x)", |t, a, _| (a & ((1 << t.bits) - 1)).count_ones().into()),
    ("min(x, y)", |_, a, b| a.min(b)),
    ("max(x, y)", |_, a, b| a.max(b)),
    ("select(x < y, 1, 2)", |_, a, b| if a < b { 1 } else { 2 }),
    ("select(x >= y, 1, 2) + select(x == y, 10, 20)", |_, a, b| i128::from(a < b) + 11 + i128::from(a != b) * 10),
    ("mul_high(x, y)", |t, a, b| match t.signed {
        true => (a * b) >> t.register,
        false => ((a as u128 * b as u128) >> t.register) as i128,
    }),
    ("x ^ 0xfffffff0", |t, a, _| t.kept(a ^ if t.register == 64 { 0xffff_fff0 } else { t.kept(0xffff_fff0) })),
    ("x + -5", |_, a, _| a - 5),
    ("x / 7", |_, a, _| floor(a, 7)),
    ("x % 7", |_, a, _| rest(a, 7)),
    ("ceildiv(x, 7)", |_, a, _| ceil(a, 7)),
    ("x / 8", |_, a, _| floor(a, 8)),
    ("x % 8", |_, a, _| rest(a, 8)),
    ("ceildiv(x, 8)", |_, a, _| ceil(a, 8)),
    ("x / 1 + x % 1", |_, a, _| a),
    ("x / 0", |_, _, _| 0),
    ("x % 0", |_, a, _| a),
    ("ceildiv(x, 0)", |_, _, _| 0),
    ("100 / y", |_, _, b| floor(100, b)),
    ("x << 5", |t, a, _| left(t, a, 5)),
    ("x >> 3", |t, a, _| right(t, a, 3)),
    ("x << 32", |t, a, _| left(t, a, 32)),
    ("x >> 70", |t, a, _| right(t, a, 70)),
    ("x & 12 | y ^ 5 << 1 + 1", |_, a, b| (a & 12) | (b ^ (5 << 2))),
];

/// Those of types with signs alone.
const SIGNED: &[(&str, Reference)] =
    &[("x / -3", |_, a, _| floor(a, -3)), ("x % -4", |_, a, _| rest(a, -4)), ("ceildiv(x, -1)", |_, a, _| ceil(a, -1))];

#[test]
fn operators_on_integer_elements_give_what_the_documents_say() {
    let mut wrong = Vec::new();
    for t in TYPES {
        let (name, values) = (t.elem.name(), t.values());
        let pairs: Vec<(i128, i128)> = values.iter().flat_map(|&a| values.iter().map(move |&b| (a, b))).collect();
        let half = pairs.len().next_multiple_of(TILE);
        let pair = |i: usize| pairs[i % pairs.len()];
        let input: Vec<i128> = (0..half).map(|i| pair(i).0).chain((0..half).map(|i| pair(i).1)).collect();
        let encoded: Vec<u64> = input.iter().map(|&x| x as u64 & u64::MAX >> (64 - t.bits)).collect();
        for (e, reference) in EXPRESSIONS.iter().chain(SIGNED.iter().filter(|_| t.signed)) {
            let source = format!(
                "kernel f(X: gmem {name}[N], Y: gmem i64[N]) where N % {TILE} == 0 grid (b: N / {TILE}) {{
                    var x = reg {name}[{TILE}]
                    var y = reg {name}[{TILE}]
                    copy X[b * {TILE}..] -> x
                    copy X[(b * {TILE} + N / 2) % N..] -> y
                    copy cast<i64>({e}) -> Y[b * {TILE}..]
                }}"
            );
            // A u64 becomes an i64 of the same bits.
            let want =
                |i: usize| i128::from(t.kept(reference(t, input[i], input[(i + half) % input.len()])) as u64 as i64);
            let mut compare = |who: &str, got: &[Number]| {
                if let Some(i) = (0..input.len()).find(|&i| got[i].to_i128() != want(i)) {
                    let (x, y) = (input[i], input[(i + half) % input.len()]);
                    wrong.push(format!("{who}, {name} {x} {y}: `{e}` is {}, documented {}", got[i], want(i)));
                }
            };
            compare("interpreter", &interpreted(&source, (t.elem, Elem::I64), &encoded));
            for target in [Target::Sm70, Target::Sm90a] {
                compare(target.name(), &simulated(&source, target, (t.elem, Elem::I64), &encoded));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn edges_are_values_of_their_types() {
    for t in TYPES {
        for x in t.values() {
            let bits = x as u64 & u64::MAX >> (64 - t.bits);
            assert_eq!(data::element(t.elem, bits).to_i128(), x, "{}", t.elem.name());
        }
    }
}
