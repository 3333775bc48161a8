use super::*;
use crate::entities::Expr;
use crate::kernel::Kernel;
use crate::ops::Op;
use crate::random_tests::repeat;
use pretty_assertions::assert_eq;

const DIVISIONS: [Op; 3] = [Op::Div, Op::Rem, Op::CeilDiv];

/// By definition and not by the machine's division: the largest `q` with `q * b` at most `a`, for a positive `b`.
fn floor_by_counting(a: i64, b: i64) -> i64 {
    if b < 0 {
        return floor_by_counting(-a, -b);
    }
    let mut q = -100;
    while (q + 1) * b <= a {
        q += 1;
    }
    q
}

#[test]
fn divisions_floor_and_ceil() {
    for a in -40..=40 {
        for b in (-7..=7).filter(|b| *b != 0) {
            let floor = floor_by_counting(a, b);
            let ceil = -floor_by_counting(-a, b);
            let want = [floor, a - floor * b, ceil];
            let got = DIVISIONS.map(|op| binary(op, a, b).unwrap().int().unwrap());
            assert_eq!(got, want, "{a} {b}");
        }
    }
}

#[test]
fn what_does_not_fit_and_what_is_divided_by_zero_has_no_value() {
    let rows = [
        (Op::Add, i64::MAX, 1, None),
        (Op::Sub, i64::MIN, 1, None),
        (Op::Mul, i64::MAX, i64::MAX, None),
        (Op::Mul, i64::MIN, -1, None),
        (Op::Div, i64::MIN, -1, None),
        (Op::CeilDiv, i64::MIN, -1, None),
        (Op::Rem, i64::MIN, -1, Some(0)),
        (Op::CeilDiv, i64::MIN, 1, Some(i64::MIN)),
        (Op::CeilDiv, i64::MIN, 2, Some(i64::MIN / 2)),
        (Op::CeilDiv, i64::MAX, 2, Some(i64::MAX / 2 + 1)),
        (Op::Div, i64::MIN, i64::MAX, Some(-2)),
        (Op::Rem, i64::MIN, i64::MAX, Some(i64::MAX - 1)),
    ];
    for (op, a, b, want) in rows {
        let want = want.map(Scalar::Int).ok_or(Undefined::Overflow(op));
        assert_eq!(binary(op, a, b), want, "{a} {} {b}", op.token());
    }
    for op in DIVISIONS {
        assert_eq!(binary(op, 3, 0), Err(Undefined::ZeroDivisor(op)));
    }
    assert_eq!(unary(Op::Neg, i64::MIN), Err(Undefined::Overflow(Op::Neg)));
    assert_eq!(unary(Op::Abs, i64::MIN), Err(Undefined::Overflow(Op::Abs)));
    assert_eq!(unary(Op::Exp, 1), Err(Undefined::NotIndex(Op::Exp)));
    assert_eq!(binary(Op::And, 1, 1), Err(Undefined::NotIndex(Op::And)));
}

#[test]
fn shifts_and_bits_of_indices() {
    let int = |op, a, b| binary(op, a, b).map(|x| x.int().unwrap());
    assert_eq!(int(Op::Shl, -3, 4), Ok(-48));
    assert_eq!(int(Op::Shl, 1, 62), Ok(1 << 62));
    assert_eq!(int(Op::Shl, -1, 63), Ok(i64::MIN));
    assert_eq!(int(Op::Shl, 0, i64::MAX), Ok(0));
    assert_eq!(int(Op::Shr, -5, 1), Ok(-3));
    assert_eq!([int(Op::Shr, -5, i64::MAX), int(Op::Shr, 5, 64)], [Ok(-1), Ok(0)]);
    assert_eq!(int(Op::Shl, 1, 63), Err(Undefined::Overflow(Op::Shl)));
    assert_eq!(int(Op::Shl, 1, i64::MAX), Err(Undefined::Overflow(Op::Shl)));
    for op in [Op::Shl, Op::Shr] {
        assert_eq!(int(op, 0, -1), Err(Undefined::NegativeShift(op)));
    }
    assert_eq!([int(Op::BitAnd, -2, 7), int(Op::BitOr, -8, 3), int(Op::BitXor, -1, 5)], [Ok(6), Ok(-5), Ok(-6)]);
    assert_eq!(unary(Op::BitNot, i64::MIN), Ok(Scalar::Int(i64::MAX)));
    assert_eq!(unary(Op::Popcount, -1), Ok(Scalar::Int(64)));
}

/// The value of an operation with one unknown operand is correct for every value of that operand.
#[test]
fn shortcuts_are_what_the_operation_gives() {
    for &op in Op::ALL.iter().filter(|op| op.arity() == 2) {
        for known in -3..=3 {
            for other in (-9..=9).filter(|x| *x != 0) {
                for (operands, [a, b]) in [([Some(known), None], [known, other]), ([None, Some(known)], [other, known])]
                {
                    let value = binary(op, a, b);
                    if let Some(i) = unchanged(op, operands) {
                        assert_eq!(value, Ok(Scalar::Int([a, b][i])), "{a} {} {b}", op.token());
                    }
                    if is_zero(op, operands) {
                        assert_eq!(value, Ok(Scalar::Int(0)), "{a} {} {b}", op.token());
                    }
                }
            }
        }
    }
}

#[test]
fn intervals_hold_every_result_and_not_much_more() {
    let ends = -5..=5i64;
    let intervals: Vec<(i64, i64)> = ends.clone().flat_map(|lo| (lo..=5).map(move |hi| (lo, hi))).collect();
    let loose = [Op::Rem, Op::BitAnd, Op::BitOr, Op::BitXor];
    let tight = [Op::Add, Op::Sub, Op::Mul, Op::Min, Op::Max, Op::Div, Op::CeilDiv, Op::Shl, Op::Shr];
    for op in loose.into_iter().chain(tight) {
        for &(a, b) in &intervals {
            for &(c, d) in &intervals {
                let wide = |lo: i64, hi: i64| Interval::new(lo.into(), hi.into());
                let Some(bound) = Interval::of(op, wide(a, b), wide(c, d)) else {
                    let shifts = [Op::Shl, Op::Shr].contains(&op) && c < 0;
                    assert!(shifts || DIVISIONS.contains(&op) && c < 1, "{op:?}");
                    continue;
                };
                let values =
                    (a..=b).flat_map(|x| (c..=d).map(move |y| i128::from(binary(op, x, y).unwrap().int().unwrap())));
                let values: Vec<i128> = values.collect();
                let (least, most) = (*values.iter().min().unwrap(), *values.iter().max().unwrap());
                assert!(bound.lo <= least && most <= bound.hi, "{op:?} {a}..{b} {c}..{d}: {bound:?}");
                assert!(
                    loose.contains(&op) || (bound.lo, bound.hi) == (least, most),
                    "{op:?} {a}..{b} {c}..{d}: {bound:?}"
                );
            }
        }
    }
    let most = Interval::new(i128::MIN, i128::MAX);
    assert_eq!(Interval::of(Op::Mul, most, most), Some(most));
    assert_eq!(Interval::new(-5, 9).multiples_of(4), Interval::new(-4, 8));
}

#[test]
fn trips_are_counted_as_a_loop_runs() {
    for start in -6..6 {
        for end in -6..6 {
            for step in 1..5 {
                let mut n = 0;
                let mut i = start;
                while i < end {
                    (n, i) = (n + 1, i + step);
                }
                assert_eq!(trips(start, end, step), Some(n), "{start} {end} {step}");
            }
        }
    }
    assert_eq!(trips(0, 4, 0), None);
    assert_eq!(trips(0, 4, -1), None);
    assert_eq!(trips(i64::MIN, i64::MAX, 1), Some(u64::MAX));
}

/// The precondition of a kernel in which `x` is compile-time.
fn condition(text: &str) -> (Kernel, Expr) {
    let source = format!("kernel f<x = 1>(A: gmem f32[N], N) where {text} grid (b: 1) {{ }}");
    let source = source.replace(", N)", ")");
    let module = crate::parser::parse(&source, &mut crate::diag::Sink::new()).unwrap();
    let kernel = module.kernels.into_iter().next().unwrap();
    let condition = kernel.requires[0];
    (kernel, condition)
}

#[test]
fn what_decides_is_all_that_is_evaluated() {
    let rows = [
        ("N == 0 || 8 % N == 0", Some(0), Some(true)),
        ("N != 0 && 8 % N == 0", Some(0), Some(false)),
        ("8 % N == 0 || N == 0", Some(0), None),
        ("select(N == 0, 1, 8 / N) == 1", Some(0), Some(true)),
        // Whatever `N` is:
        ("N == 3 && 1 == 2", None, Some(false)),
        ("N == 3 || 2 == 2", None, Some(true)),
        ("N % 1 == 0", None, Some(true)),
        ("N == 3 || 2 == 1", None, None),
        ("!(N == 3 && 1 == 2)", None, Some(true)),
        ("(N - 5) % 4 == 3", Some(4), Some(true)),
        ("1 - (N - 5) / 4 == 2", Some(4), Some(true)),
    ];
    for (text, n, want) in rows {
        let (k, e) = condition(text);
        assert_eq!(truth(&OfKernel::new(&k, |_| n), e), want, "{text} with {n:?}");
    }
}

/// A chain that leans to the left: part `n` adds 1 to part `n - 1`.
struct Chain(Vec<[usize; 2]>);

impl Tree for Chain {
    type Node = usize;

    fn node(&self, at: usize) -> Node<'_, usize> {
        if at == 0 { Node::Int(1) } else { Node::Op(Op::Add, &self.0[at]) }
    }

    fn leaf(&self, _: usize) -> Option<i64> {
        None
    }
}

#[test]
fn long_sums_need_no_stack() {
    const LENGTH: usize = 200_000;
    let run = || {
        let chain = Chain((0..LENGTH).map(|i| [i.saturating_sub(1), 0]).collect());
        assert_eq!(int(&chain, LENGTH - 1), Some(LENGTH as i64));
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap().join().unwrap();
}

/// Flooring division, from its two properties, for numbers of all sizes.
#[test]
fn quotient_and_remainder_belong_together() {
    repeat(2000, 64, |u| {
        let (a, b): (i64, i64) = (u.arbitrary()?, u.arbitrary()?);
        let shift = u.int_in_range(0..=62)?;
        let b = b >> shift;
        if b == 0 || (a, b) == (i64::MIN, -1) {
            return Ok(());
        }
        let [q, r, c] = DIVISIONS.map(|op| i128::from(binary(op, a, b).unwrap().int().unwrap()));
        let (a, b) = (i128::from(a), i128::from(b));
        assert_eq!(q * b + r, a, "{a} {b}");
        assert!(r == 0 || ((r < 0) == (b < 0) && r.abs() < b.abs()), "{a} {b}: {r}");
        assert_eq!(c, q + i128::from(r != 0), "{a} {b}");
        Ok(())
    });
}
