//! Operators element by element: broadcasting, promotion, and the domains of the op table.
//!
//! Shapes join first to last: scalars fit everything, extent 1 segments, windows take the extents of a tile. Element
//! types join along two chains, `e2m1 -> 8- and 16-bit floats, tf32 -> f32 -> f64` and `i8, u8 -> i16 -> i32 -> i64`; literals and
//! indices adopt the type of the other side. Everything else requires a `cast`.

use super::candidates::{candidate_elems, may_be};
use super::types::{Extent, TileType, Type, TypeError, Types, ViewType, elem_name, scalar, shape_text};
use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel};
use crate::literal::whole_text;
use crate::numerics::cast::has_negatives;
use crate::ops::{Domain, Op};
use crate::rounding::{computed_in, rounds_at_random};
use crate::space::Space;
use crate::types::{Elem, ElemClass, ElemRef};

/// The number part of a type.
#[derive(Copy, Clone, PartialEq, Debug)]
enum Num {
    Index,
    Float,
    Elem(ElemRef),
}

/// The shape part of a type.
#[derive(Clone, PartialEq, Debug)]
enum Shape {
    Scalar,
    Tile(Vec<Extent>),
    Open { base: Value, rank: usize },
}

const BOOL: ElemRef = ElemRef::Known(Elem::Bool);

/// Most operands of an operator.
const MOST_OPERANDS: usize = 3;

fn number(ty: &Type) -> Num {
    match ty {
        Type::Index => Num::Index,
        Type::Float => Num::Float,
        Type::Bool => Num::Elem(BOOL),
        Type::Scalar(e) => Num::Elem(*e),
        Type::Tile(t) => Num::Elem(t.elem),
        Type::View(v) => Num::Elem(v.elem),
    }
}

fn shape(ty: Type) -> Shape {
    match ty {
        Type::Index | Type::Float | Type::Bool | Type::Scalar(_) => Shape::Scalar,
        Type::Tile(t) => Shape::Tile(t.shape),
        Type::View(v) => Shape::Open { base: v.base, rank: v.rank },
    }
}

fn unite(num: Num, shape: Shape) -> Type {
    match (num, shape) {
        (Num::Index, _) => Type::Index,
        (Num::Float, _) => Type::Float,
        (Num::Elem(e), Shape::Scalar) => scalar(e),
        (Num::Elem(elem), Shape::Tile(shape)) => Type::Tile(TileType { elem, shape, space: Space::Reg }),
        (Num::Elem(elem), Shape::Open { base, rank }) => Type::View(ViewType { base, elem, rank, space: Space::Reg }),
    }
}

/// The type that values of both types convert to without loss of range.
fn join_known(a: Elem, b: Elem) -> Option<Elem> {
    /// Steps of the two chains; types on one step do not mix, nor does one with a sign and a larger one without.
    fn step(e: Elem) -> u8 {
        match e {
            Elem::I4 | Elem::U4 | Elem::E2M1 => 0,
            Elem::E4M3 | Elem::E5M2 | Elem::UE8M0 | Elem::F16 | Elem::BF16 | Elem::TF32 | Elem::I8 | Elem::U8 => 1,
            Elem::I16 | Elem::U16 => 2,
            Elem::F32 | Elem::I32 | Elem::U32 => 3,
            Elem::F64 | Elem::I64 | Elem::U64 => 4,
            Elem::Bool => 5,
        }
    }
    if a == b {
        return Some(a);
    }
    let (lo, hi) = if step(a) < step(b) { (a, b) } else { (b, a) };
    let signed = |e: Elem| e.class() == ElemClass::Int && has_negatives(e);
    let unsigned = |e: Elem| e.class() == ElemClass::Int && !has_negatives(e);
    let joins = lo.class() == hi.class() && step(lo) < step(hi) && !(signed(lo) && unsigned(hi));
    joins.then_some(hi)
}

/// As [`join_known`] when one or both are parameters: `None` if no choice fits. If the result depends on the choice, the
/// first operand's type stands for it until the parameters are bound.
fn join_elem(k: &Kernel, a: ElemRef, b: ElemRef) -> Option<ElemRef> {
    match (a, b) {
        _ if a == b => return Some(a),
        (ElemRef::Known(a), ElemRef::Known(b)) => return join_known(a, b).map(ElemRef::Known),
        _ => {}
    }
    let mut joined: Vec<Elem> = Vec::new();
    for x in candidate_elems(k, a) {
        for y in candidate_elems(k, b) {
            joined.extend(join_known(x, y));
        }
    }
    let first = *joined.first()?;
    Some(if joined.iter().all(|&j| j == first) { ElemRef::Known(first) } else { a })
}

/// As [`join_known`], of elements or parameters: the type that both convert to.
pub(super) fn join_element(k: &Kernel, a: ElemRef, b: ElemRef) -> Option<ElemRef> {
    join_elem(k, a, b)
}

fn join_num(k: &Kernel, a: Num, b: Num) -> Option<Num> {
    match (a, b) {
        (Num::Index, Num::Index) => Some(Num::Index),
        (Num::Index | Num::Float, Num::Index | Num::Float) => Some(Num::Float),
        (Num::Index, Num::Elem(e)) | (Num::Elem(e), Num::Index) => Some(Num::Elem(e)),
        (Num::Float, Num::Elem(e)) | (Num::Elem(e), Num::Float) => {
            may_be(k, e, ElemClass::Float).then_some(Num::Elem(e))
        }
        (Num::Elem(x), Num::Elem(y)) => join_elem(k, x, y).map(Num::Elem),
    }
}

pub(crate) fn join_extent(k: &Kernel, a: Extent, b: Extent) -> Option<Extent> {
    match (a, b) {
        (Extent::Known(1), x) | (x, Extent::Known(1)) => Some(x),
        _ => match a.same(k, b) {
            Some(false) => None,
            Some(true) => Some(a),
            None => Some(if a.known().is_some() { a } else { b }),
        },
    }
}

/// What a tensor with fewer values than elements is written as.
const REPEATS: &str = "a window of a tensor repeats along dimensions that it lacks: `bias[_, j..]` has one value for each column, \
                       `scale[i.., _]` for each row";

impl Types<'_> {
    /// The type of `op(args)`.
    pub(super) fn elementwise(&self, e: Expr, op: Op, args: &[Expr]) -> Result<Type, TypeError> {
        if args.len() != op.arity() {
            let message = format!("`{}` takes {} operands, found {}", op.token(), op.arity(), args.len());
            return Err(self.error(codes::WRONG_OPERAND, e, message).into());
        }
        let mut types = [const { Type::Index }; MOST_OPERANDS];
        for (ty, &arg) in types.iter_mut().zip(args) {
            *ty = self.type_of(arg)?;
        }
        let domain = op.domain();
        let first = usize::from(domain == Domain::Select);
        if domain == Domain::Select {
            self.operand(op, args[0], &types[0], ElemClass::Bool)?;
        }
        for (&arg, ty) in args.iter().zip(&types).skip(first) {
            self.check_domain(op, arg, ty)?;
        }
        let mut num = number(&types[first]);
        // A seed and a position are 64-bit integers, in any notation.
        let apart = op == Op::Random;
        let rest = args.iter().zip(&types[..args.len()]).skip(first + 1);
        for (&arg, ty) in rest.filter(|_| !apart) {
            num = join_num(self.k, num, number(ty)).ok_or_else(|| {
                let (found, other) = (types[first].describe_elements(self.k), ty.describe_elements(self.k));
                let message = format!("the operands of `{}` differ in type: {found} and {other}", op.token());
                let whole = |ty: &Type| match ty.elem() {
                    Some(ElemRef::Known(elem)) => Some(elem).filter(|elem| elem.class() == ElemClass::Int),
                    _ => None,
                };
                let to = whole(&types[first]).filter(|_| whole(ty).is_some()).map_or("f32", Elem::name);
                let d = self.error(codes::TYPE_MISMATCH, e, message);
                self.one_converted(d, [(args[first], &types[first]), (arg, ty)], to)
            })?;
        }
        if domain == Domain::Float && num == Num::Index {
            return Err(self.wrong(op, args[0], &types[0], "floating-point operands"));
        }
        if matches!(op, Op::MulHigh | Op::PermuteBytes) && num == Num::Index {
            return Err(self.wrong(op, args[0], &types[0], "elements and scalars of integer types"));
        }
        let mut shapes = types.into_iter().take(args.len()).map(shape);
        let mut shape = shapes.next().unwrap_or(Shape::Scalar);
        for s in shapes {
            shape = self.join_shape(e, op.token(), shape, s)?;
        }
        let num = match domain {
            Domain::Compare | Domain::Logic => Num::Elem(BOOL),
            Domain::Integer if apart => Num::Elem(ElemRef::Known(Elem::U32)),
            Domain::Numeric | Domain::Integer | Domain::Float => num,
            // A choice by a tile of conditions is a tile even if both values are literals.
            Domain::Select => match (num, &shape) {
                (Num::Index, Shape::Tile(_) | Shape::Open { .. }) => Num::Elem(ElemRef::Known(Elem::I32)),
                (Num::Float, Shape::Tile(_) | Shape::Open { .. }) => Num::Elem(ElemRef::Known(Elem::F32)),
                _ => num,
            },
        };
        Ok(unite(num, shape))
    }

    fn check_domain(&self, op: Op, arg: Expr, ty: &Type) -> Result<(), TypeError> {
        match op.domain() {
            Domain::Numeric | Domain::Compare | Domain::Select => match ty.elem() {
                Some(e) if !may_be(self.k, e, ElemClass::Float) && !may_be(self.k, e, ElemClass::Int) => {
                    Err(self.wrong(op, arg, ty, "numbers"))
                }
                _ => Ok(()),
            },
            Domain::Integer if op == Op::PermuteBytes => match ty.elem() {
                None if *ty == Type::Index => Ok(()),
                Some(e) if candidate_elems(self.k, e).iter().any(|e| matches!(e, Elem::I32 | Elem::U32)) => Ok(()),
                _ => Err(self.wrong(op, arg, ty, "integers of 32 bits")),
            },
            Domain::Integer => match ty.elem() {
                None if *ty == Type::Index => Ok(()),
                Some(e) if may_be(self.k, e, ElemClass::Int) => Ok(()),
                _ => Err(self.wrong(op, arg, ty, "integers")),
            },
            Domain::Float => match ty {
                // Beside others it takes their type.
                Type::Index if op.arity() > 1 => Ok(()),
                Type::Index => Err(self.wrong(op, arg, ty, "floating-point operands")),
                Type::Float => Ok(()),
                _ => self.operand(op, arg, ty, ElemClass::Float),
            },
            Domain::Logic => self.operand(op, arg, ty, ElemClass::Bool),
        }
    }

    /// Checks that an operand may have elements of a class.
    fn operand(&self, op: Op, arg: Expr, ty: &Type, class: ElemClass) -> Result<(), TypeError> {
        match ty.elem() {
            Some(e) if may_be(self.k, e, class) => Ok(()),
            _ => Err(self.wrong(
                op,
                arg,
                ty,
                if class == ElemClass::Bool { "truth values" } else { "floating-point operands" },
            )),
        }
    }

    /// Adds a fix that converts the operand of the narrower type to the type in which the other is computed. If neither
    /// type is narrower, a note says how to convert one of them to `to`.
    fn one_converted(&self, d: Diagnostic, operands: [(Expr, &Type); 2], to: &str) -> Diagnostic {
        // Floats hold more than integers, and of one class the wider type.
        let number = |ty: &Type| match (ty, ty.elem()) {
            (Type::Index, _) => Some((0, 0, "i32")),
            (Type::Float, _) => Some((1, 0, "f32")),
            (_, Some(ElemRef::Known(elem))) if elem != Elem::Bool => {
                let elem = computed_in(elem);
                Some((usize::from(elem.is_float()), elem.bits(), elem.name()))
            }
            _ => None,
        };
        let [(a, of_a), (b, of_b)] = operands;
        // A whole number written as a float beside integers is one of them.
        for (literal, of) in [(a, of_b), (b, of_a)] {
            if let ExprData::Float(bits) = self.k.exprs[literal]
                && let x = f64::from_bits(bits)
                && x.fract() == 0.0
                && x.abs() < f64::from(i32::MAX)
                && number(of).is_some_and(|(is_float, ..)| is_float == 0)
            {
                let note = format!("write the number as an integer: `{x}`");
                return d.with_note(note).with_fix(self.k.expr_spans[literal], x.to_string());
            }
        }
        match (number(of_a), number(of_b)) {
            (Some(x), Some(y)) if (x.0, x.1) < (y.0, y.1) => self.with_conversion(d, a, of_a, y.2),
            (Some(x), Some(y)) if (y.0, y.1) < (x.0, x.1) => self.with_conversion(d, b, of_b, x.2),
            _ => d.with_note(format!("convert one of them: `cast<{to}>(x)`")),
        }
    }

    /// With a comparison in place of a name or a window as the change that mends it.
    pub(super) fn compared(&self, d: Diagnostic, e: Expr) -> Diagnostic {
        match self.k.exprs[e] {
            ExprData::Ref(_) | ExprData::View(_) => d.with_fix_around(self.k.expr_spans[e], "(", " != 0)"),
            _ => d,
        }
    }

    /// With a choice between the numbers 1 and 0 as the change that mends it.
    pub(super) fn chosen(&self, d: Diagnostic, e: Expr) -> Diagnostic {
        d.with_fix_around(self.k.expr_spans[e], "select(", ", 1, 0)")
    }

    fn wrong(&self, op: Op, arg: Expr, ty: &Type, wanted: &str) -> TypeError {
        let found = ty.describe(self.k);
        let d = self.error(codes::WRONG_OPERAND, arg, format!("`{}` works on {wanted}, found {found}", op.token()));
        let is_truth = ty.elem() == Some(ElemRef::Known(Elem::Bool));
        match op.domain() {
            Domain::Select if is_truth => d.with_note(
                "to select one of two conditions, write `c && a || !c && b`; `select(c, x, y)` selects numbers",
            ),
            Domain::Compare if is_truth => d
                .with_note("two comparisons are joined by `&&`: `a <= x && x <= b`")
                .with_note("two conditions are equal if `a && b || !a && !b`"),
            Domain::Float => self.converted(d.with_note("convert the operand: `cast<f32>(x)`"), arg, ty, "f32"),
            Domain::Logic => self.compared(d.with_note("write a comparison, such as `x != 0`"), arg),
            Domain::Select => d.with_note("write a comparison, such as `x != 0`"),
            Domain::Integer => match meant(op) {
                // What is meant of floats, or of truth values, is no operation on integers.
                Some(note) => d.with_note(note).with_note("of integers: convert the operand, `cast<i32>(x)`"),
                None => self.converted(d.with_note("convert the operand: `cast<i32>(x)`"), arg, ty, "i32"),
            },
            Domain::Compare => d.with_note("two comparisons are joined by `&&`: `a <= x && x <= b`"),
            Domain::Numeric => self.chosen(d.with_note("use `select` to turn a truth value into a number"), arg),
        }
        .into()
    }

    fn join_shape(&self, e: Expr, name: &str, a: Shape, b: Shape) -> Result<Shape, TypeError> {
        let ranks = |a: usize, b: usize| {
            let message = format!("the operands of `{name}` have {a} and {b} dimensions");
            let d = self.error(codes::SHAPE_MISMATCH, e, message);
            if a.min(b) == 0 {
                return TypeError::from(d.with_note(
                    "copy the element to a scalar, which broadcasts: `var f = reg f32[]`, `copy s[i] -> f`",
                ));
            }
            TypeError::from(
                d.with_note(
                    "what lacks dimensions repeats along them if it says how many elements it has: `s[i, 0..+64]`",
                )
                .with_note(REPEATS),
            )
        };
        match (a, b) {
            (Shape::Scalar, s) | (s, Shape::Scalar) => Ok(s),
            (Shape::Tile(a), Shape::Tile(b)) if a == b => Ok(Shape::Tile(a)),
            (Shape::Tile(a), Shape::Tile(b)) => {
                if a.len() != b.len() {
                    return Err(ranks(a.len(), b.len()));
                }
                let joined: Option<Vec<Extent>> = a.iter().zip(&b).map(|(&a, &b)| join_extent(self.k, a, b)).collect();
                joined.map(Shape::Tile).ok_or_else(|| {
                    let (a, b) = (shape_text(self.k, &a), shape_text(self.k, &b));
                    let message = format!("the operands of `{name}` differ in shape: {a} and {b}");
                    self.error(codes::SHAPE_MISMATCH, e, message)
                        .with_note("extents are equal, or 1 where the operand is to be repeated")
                        .into()
                })
            }
            (Shape::Tile(t), Shape::Open { rank, .. }) | (Shape::Open { rank, .. }, Shape::Tile(t)) => {
                if t.len() == rank { Ok(Shape::Tile(t)) } else { Err(ranks(t.len(), rank)) }
            }
            (Shape::Open { base, rank }, Shape::Open { rank: other, .. }) => {
                if rank == other {
                    Ok(Shape::Open { base, rank })
                } else {
                    Err(ranks(rank, other))
                }
            }
        }
    }

    /// The type of `round_random<elem>(arg, word)`: of numbers that are computed in f32, and words of 32 bits.
    pub(super) fn rounded_at_random(&self, e: Expr, elem: ElemRef, [arg, word]: [Expr; 2]) -> Result<Type, TypeError> {
        let k = self.k;
        let (number, bits) = (self.type_of(arg)?, self.type_of(word)?);
        let any = |elem: ElemRef, f: fn(Elem) -> bool| candidate_elems(k, elem).into_iter().any(f);
        if !any(elem, rounds_at_random) {
            let message = format!("`round_random` makes no elements of {}", elem_name(k, elem));
            let note = "it makes f16, bf16, tf32, e4m3, e5m2 and e2m1";
            return Err(self.error(codes::WRONG_OPERAND, e, message).with_note(note).into());
        }
        let wrong = |at: Expr, wanted: &str, ty: &Type, note: &str| {
            let message = format!("`round_random` works on {wanted}, found {}", ty.describe(k));
            Err(self.error(codes::WRONG_OPERAND, at, message).with_note(note).into())
        };
        let in_f32 = |elem: Elem| elem.is_float() && computed_in(elem) == Elem::F32;
        if number != Type::Float && !number.elem().is_some_and(|elem| any(elem, in_f32)) {
            return wrong(arg, "floats of up to 32 bits", &number, "convert the operand: `cast<f32>(x)`");
        }
        let of_32 = |elem: Elem| matches!(elem, Elem::I32 | Elem::U32);
        if bits != Type::Index && !bits.elem().is_some_and(|elem| any(elem, of_32)) {
            let note = "words are u32 or i32, such as `random(seed, place)`";
            return wrong(word, "words of 32 bits", &bits, note);
        }
        let shape = self.join_shape(e, "round_random", shape(number), shape(bits))?;
        Ok(unite(Num::Elem(elem), shape))
    }

    /// The type of `bitcast<elem>(arg)`: elements of another type of as many bits.
    pub(super) fn same_bits(&self, e: Expr, elem: ElemRef, arg: Expr) -> Result<Type, TypeError> {
        let k = self.k;
        let ty = self.type_of(arg)?;
        let Some(from) = ty.elem().filter(|&from| from != BOOL) else {
            let message = format!("`bitcast` takes elements and scalars of a type, found {}", ty.describe(k));
            let note = "give a literal or an index a type first: `bitcast<f32>(cast<u32>(0x7f800000))`";
            return Err(self.error(codes::WRONG_OPERAND, arg, message).with_note(note).into());
        };
        let bits = |e: Elem| if e == Elem::Bool { None } else { Some(e.bits()) };
        let fits = candidate_elems(k, from)
            .into_iter()
            .filter_map(bits)
            .any(|n| candidate_elems(k, elem).into_iter().filter_map(bits).any(|m| m == n));
        if !fits {
            let (found, wanted) = (elem_name(k, from), elem_name(k, elem));
            let message = format!("elements of {found} and {wanted} have different numbers of bits");
            let note = "`bitcast` keeps the bits, and `cast` the number";
            return Err(self.error(codes::TYPE_MISMATCH, e, message).with_note(note).into());
        }
        Ok(match ty {
            Type::Index | Type::Float | Type::Bool | Type::Scalar(_) => scalar(elem),
            Type::Tile(t) => Type::Tile(TileType { elem, space: Space::Reg, ..t }),
            Type::View(v) => Type::View(ViewType { elem, space: Space::Reg, ..v }),
        })
    }

    /// Whether a value of type `from` may be stored to elements of type `to` (rounded to nearest even).
    ///
    /// # Errors
    /// The reason, as a diagnostic at `e`.
    pub fn storable(&self, e: Expr, from: &Type, to: ElemRef) -> Result<(), TypeError> {
        let k = self.k;
        let fits = match from {
            Type::Index => may_be(k, to, ElemClass::Float) || may_be(k, to, ElemClass::Int),
            Type::Float => may_be(k, to, ElemClass::Float),
            _ => match from.elem() {
                Some(f) => [ElemClass::Float, ElemClass::Int, ElemClass::Bool]
                    .into_iter()
                    .any(|class| may_be(k, f, class) && may_be(k, to, class)),
                None => false,
            },
        };
        if fits {
            return Ok(());
        }
        let to = elem_name(k, to);
        let message = format!("{} cannot be stored as {to}", from.describe(k));
        let d = self.error(codes::TYPE_MISMATCH, e, message);
        Err(match k.exprs[e] {
            ExprData::Float(bits) if let Some(whole) = whole_text(bits) => {
                let d = d.with_note(format!("whole numbers are written without a point: `{whole}`"));
                if k.expr_spans[e].is_none() { d } else { d.with_fix(k.expr_spans[e], whole) }
            }
            _ if to == Elem::Bool.name() => d.with_note("write a comparison, such as `x != 0`"),
            _ => self.converted(d.with_note(format!("convert it: `cast<{to}>(x)`")), e, from, &to),
        }
        .into())
    }
}

/// What is written for an operator on integers whose operand is another number, or a truth value.
fn meant(op: Op) -> Option<&'static str> {
    Some(match op {
        Op::Rem => "the remainder of floats is `x - floor(x / y) * y`",
        Op::BitXor => "powers are written `pow(x, y)`",
        Op::BitAnd => "conditions are joined by `&&`",
        Op::BitOr => "conditions are joined by `||`",
        Op::BitNot => "conditions are negated by `!`",
        _ => return None,
    })
}
