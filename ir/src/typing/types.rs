//! Types, and the inference of them.

use super::candidates::{may_be, may_count};
use crate::codes;
use crate::diag::{Code, Diagnostic, Span, counted};
use crate::entities::{Expr, Value};
use crate::fix_locations::FixLocation;
use crate::index::{self, OfKernel};
use crate::kernel::{ConstKind, ExprData, Kernel, Range, StmtData, ValueDef, View};
use crate::literal::whole_text;
use crate::ops::Op;
use crate::space::Space;
use crate::types::{Elem, ElemClass, ElemRef};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

/// The type of an expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Type {
    /// An exact integer: sizes, strides, indices, integer literals and parameters, and arithmetic on them.
    Index,
    /// A floating-point number whose element type the context decides: a literal, or arithmetic on literals.
    Float,
    /// A scalar truth value.
    Bool,
    /// A scalar in a register; rank-0 register variables too.
    Scalar(ElemRef),
    /// A tile with extents.
    Tile(TileType),
    /// A window of memory, or elementwise arithmetic on windows only: a rank but no extents of its own.
    View(ViewType),
}

/// The type of a tile with extents.
#[derive(Clone, PartialEq, Debug)]
pub struct TileType {
    /// Element type.
    pub elem: ElemRef,
    /// Extents, at least one.
    pub shape: Vec<Extent>,
    /// [`Space::Smem`] for a whole buffer or slot (possibly transposed), else [`Space::Reg`].
    pub space: Space,
}

/// The type of a window.
#[derive(Clone, PartialEq, Debug)]
pub struct ViewType {
    /// The tensor, buffer, channel or variable that is looked at; of several, the first.
    pub base: Value,
    /// Element type.
    pub elem: ElemRef,
    /// Number of dimensions that are left.
    pub rank: usize,
    /// Where the elements are; [`Space::Reg`] also for arithmetic on windows.
    pub space: Space,
}

/// An extent of a tile.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Extent {
    /// A known number of elements.
    Known(u64),
    /// An expression over compile-time parameters that are not bound yet.
    Sym(Expr),
}

impl Extent {
    /// The extent that `e` is.
    pub fn of(k: &Kernel, e: Expr) -> Extent {
        const_int(k, e).and_then(|x| u64::try_from(x).ok()).map_or(Extent::Sym(e), Extent::Known)
    }

    /// Whether two extents are equal; `None` if that depends on compile-time parameters.
    pub fn same(self, k: &Kernel, other: Extent) -> Option<bool> {
        match (self, other) {
            (Extent::Known(a), Extent::Known(b)) => Some(a == b),
            (Extent::Sym(a), Extent::Sym(b)) if same_expr(k, a, b) => Some(true),
            _ => None,
        }
    }

    /// The number, if known.
    pub fn known(self) -> Option<u64> {
        match self {
            Extent::Known(n) => Some(n),
            Extent::Sym(_) => None,
        }
    }
}

impl TileType {
    /// The extents as numbers, if all are known.
    pub fn known_shape(&self) -> Option<Vec<u64>> {
        self.shape.iter().map(|e| e.known()).collect()
    }
}

impl Type {
    /// The element type, if the type has one.
    pub fn elem(&self) -> Option<ElemRef> {
        match self {
            Type::Index | Type::Float => None,
            Type::Bool => Some(ElemRef::Known(Elem::Bool)),
            Type::Scalar(elem) => Some(*elem),
            Type::Tile(t) => Some(t.elem),
            Type::View(v) => Some(v.elem),
        }
    }

    /// The number of dimensions; zero for scalars.
    pub fn rank(&self) -> usize {
        match self {
            Type::Index | Type::Float | Type::Bool | Type::Scalar(_) => 0,
            Type::Tile(t) => t.shape.len(),
            Type::View(v) => v.rank,
        }
    }

    /// For messages: `index`, `f32`, `smem f16[128, 32]`, `a rank-2 window of f16`.
    pub fn describe(&self, k: &Kernel) -> String {
        match self {
            Type::Index => "an index".to_owned(),
            Type::Float => "a number".to_owned(),
            Type::Bool => "bool".to_owned(),
            Type::Scalar(e) => elem_name(k, *e),
            Type::Tile(t) => format!("{} {}{}", t.space.name(), elem_name(k, t.elem), shape_text(k, &t.shape)),
            Type::View(v) => format!("a rank-{} window of {}", v.rank, elem_name(k, v.elem)),
        }
    }

    /// For messages of elements: as [`Type::describe`], without the number of a window's dimensions, which may be more than were written.
    pub(super) fn describe_elements(&self, k: &Kernel) -> String {
        match self {
            Type::View(v) => format!("a window of {}", elem_name(k, v.elem)),
            _ => self.describe(k),
        }
    }
}

/// Why an expression has no type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeError(pub Box<Diagnostic>);

impl From<Diagnostic> for TypeError {
    fn from(d: Diagnostic) -> TypeError {
        TypeError(Box::new(d))
    }
}

impl From<TypeError> for Diagnostic {
    fn from(e: TypeError) -> Diagnostic {
        *e.0
    }
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.message)
    }
}

impl std::error::Error for TypeError {}

/// The types of a kernel's `let`s, computed once: ask here if there are many questions.
pub struct Types<'k> {
    pub(super) k: &'k Kernel,
    /// Those that are declared so far, with their initialisers. As a rule a few: a map of all values would take longer to make.
    lets: BTreeMap<Value, (Result<Type, TypeError>, Expr)>,
    /// Those of what is computed of tuples, as they are requested.
    locals: RefCell<BTreeMap<Value, Result<Type, TypeError>>>,
}

impl<'k> Types<'k> {
    /// Types every `let` of the body, in program order.
    pub fn new(k: &'k Kernel) -> Types<'k> {
        let mut types = Types::without_lets(k);
        k.walk(k.body, &mut |k, _, s| {
            if let StmtData::Let { value, init } = k.stmts[s] {
                types.declare(value, init);
            }
        });
        types
    }

    /// Types the `let`s that `e` depends on, each after those that it depends on itself.
    pub(super) fn of_expr(k: &'k Kernel, e: Expr) -> Types<'k> {
        let mut types = Types::without_lets(k);
        types.declare_below(e);
        types
    }

    /// Types the names that `e` depends on, but for those whose types are known.
    fn declare_below(&mut self, e: Expr) {
        let k = self.k;
        for (value, init) in k.names_below(e, |v| self.lets.contains_key(&v)) {
            self.declare(value, init);
        }
    }

    /// Types a `let`.
    fn declare(&mut self, value: Value, init: Expr) {
        let ty = self.type_of(init).map(|ty| match ty {
            Type::Tile(t) => Type::Tile(TileType { space: Space::Reg, ..t }),
            other => other,
        });
        self.lets.insert(value, (ty, init));
    }

    fn without_lets(k: &'k Kernel) -> Types<'k> {
        Types { k, lets: BTreeMap::new(), locals: RefCell::default() }
    }

    /// The type of `e`.
    ///
    /// # Errors
    /// What is wrong with `e` or the first of its parts that has no type.
    pub fn type_of(&self, e: Expr) -> Result<Type, TypeError> {
        let k = self.k;
        match &k.exprs[e] {
            ExprData::Int(_) => Ok(Type::Index),
            ExprData::Float(_) => Ok(Type::Float),
            ExprData::Ref(v) => self.ref_type(e, *v),
            ExprData::Op { op, args } => self.elementwise(e, *op, args),
            ExprData::Cast { elem, arg } => Ok(match self.type_of(*arg)? {
                Type::Index | Type::Float | Type::Bool | Type::Scalar(_) => scalar(*elem),
                Type::Tile(t) => Type::Tile(TileType { elem: *elem, space: Space::Reg, ..t }),
                Type::View(v) => Type::View(ViewType { elem: *elem, space: Space::Reg, ..v }),
            }),
            ExprData::Bits { elem, arg } => self.same_bits(e, *elem, *arg),
            ExprData::Round { elem, arg, word } => self.rounded_at_random(e, *elem, [*arg, *word]),
            ExprData::Lookup { table, index } => self.lookup(*table, *index),
            ExprData::Index(arg) => self.whole_number(*arg),
            ExprData::Reduce { op, axis, parts, arg } => self.reduction(e, (*op, *axis, *parts), *arg),
            ExprData::Scan { op, axis, totals, arg, .. } => self.scan(e, (*op, *axis), *totals, *arg),
            ExprData::Combine(combine) => self.combine(e, combine).map(Type::Tile),
            ExprData::Part { of, index } => self.part(e, *of, *index).map(Type::Tile),
            ExprData::Transpose(arg) => {
                let ty = self.type_of(*arg)?;
                if ty.rank() != 2 {
                    let message =
                        format!("`transpose` takes a tile of two dimensions or more, found {}", ty.describe(k));
                    return Err(self.error(codes::WRONG_OPERAND, *arg, message).into());
                }
                Ok(match ty {
                    Type::Tile(mut t) => {
                        t.shape.reverse();
                        Type::Tile(t)
                    }
                    other => other,
                })
            }
            ExprData::Permute { arg, order } => self.permuted(e, *arg, order),
            ExprData::Reshape { arg, shape, numbered: None } => self.reshaped(e, *arg, shape),
            ExprData::Reshape { arg, shape, numbered: Some(of) } => self.numbered(e, *arg, shape, of),
            ExprData::Concat { args, axis } => self.concatenated(e, args, *axis),
            ExprData::Iota { axis, like } => {
                let t = self.tile(*like, "iota")?;
                self.check_axis(e, *axis, &t)?;
                Ok(Type::Tile(TileType { elem: ElemRef::Known(Elem::I32), space: Space::Reg, ..t }))
            }
            ExprData::Mma(m) => self.product(e, m),
            ExprData::View(v) => self.view_type(e, v),
        }
    }

    /// The initialiser of a `let` that is declared.
    pub(super) fn init(&self, value: Value) -> Option<Expr> {
        self.lets.get(&value).map(|(_, init)| *init)
    }

    /// The type of a `let` that is declared, or why it has none.
    pub(super) fn declared(&self, value: Value) -> Option<&Result<Type, TypeError>> {
        self.lets.get(&value).map(|(ty, _)| ty)
    }

    /// The type of a `let`, if it has one.
    pub fn let_type(&self, value: Value) -> Option<&Type> {
        self.lets.get(&value).and_then(|(ty, _)| ty.as_ref().ok())
    }

    /// The type of a reference to `v` at `e`.
    fn ref_type(&self, e: Expr, v: Value) -> Result<Type, TypeError> {
        let k = self.k;
        let no = |what: &str| {
            let message = format!("{what} `{}` is not a value here", k.values[v].name);
            TypeError::from(self.error(codes::NOT_A_VALUE, e, message))
        };
        let def = &k.values[v].def;
        match def {
            ValueDef::ConstParam(p) => match p.kind {
                ConstKind::Int => Ok(Type::Index),
                ConstKind::Elem(_) => Err(no("the element type")),
                ConstKind::Order => Err(no("the order")),
            },
            ValueDef::Size | ValueDef::Stride | ValueDef::Grid | ValueDef::Loop => Ok(Type::Index),
            ValueDef::Tensor(t) => {
                Ok(Type::View(ViewType { base: v, elem: t.elem, rank: t.shape.len(), space: def.space() }))
            }
            ValueDef::Scalar { elem, .. } | ValueDef::Element { elem } => Ok(scalar(*elem)),
            ValueDef::Local(init) => self.local(v, *init),
            ValueDef::Table(_) => Err(self
                .error(codes::NOT_A_VALUE, e, format!("table `{}` is not a value", k.values[v].name))
                .with_note(format!("name an element, or one for each of a tile: `{}[x]`", k.values[v].name))
                .into()),
            ValueDef::Let => match self.lets.get(&v) {
                Some((_, init)) if matches!(k.exprs[*init], ExprData::Combine(_)) => Err(self.whole_tuples(e, v)),
                Some((ty, _)) => ty.clone(),
                None => {
                    let message = format!("`{}` is used before it is declared", k.values[v].name);
                    Err(self.error(codes::OUT_OF_SCOPE, e, message).into())
                }
            },
            ValueDef::Var(t) | ValueDef::Smem(t) => Ok(self.place(t.elem, &t.shape, def.space())),
            ValueDef::Channel { .. } => Err(self
                .error(codes::NOT_A_VALUE, e, format!("channel `{}` is not a value", k.values[v].name))
                .with_note("name the slot: `.put` for the one being filled, `.get` for the one being read")
                .into()),
        }
    }

    /// The type of what is computed of tuples. Of each name it is found once.
    fn local(&self, v: Value, init: Expr) -> Result<Type, TypeError> {
        if let Some((ty, _)) = self.lets.get(&v) {
            return ty.clone();
        }
        if let Some(ty) = self.locals.borrow().get(&v) {
            return ty.clone();
        }
        let ty = self.type_of(init);
        self.locals.borrow_mut().insert(v, ty.clone());
        ty
    }

    /// The type of `table[index]`: whole numbers of up to 32 bits say which elements.
    fn lookup(&self, table: Value, index: Expr) -> Result<Type, TypeError> {
        let ValueDef::Table(t) = &self.k.values[table].def else {
            let message = format!("`{}` is no table", self.k.values[table].name);
            return Err(self.error(codes::MALFORMED, index, message).into());
        };
        let ty = self.type_of(index)?;
        let counts = |elem: ElemRef| match elem {
            ElemRef::Known(elem) => elem.class() == ElemClass::Int && elem.bits() <= 32,
            ElemRef::Param(_) => true,
        };
        Ok(match ty {
            Type::Index => scalar(t.elem),
            Type::Scalar(elem) if counts(elem) => scalar(t.elem),
            Type::Tile(x) if counts(x.elem) => Type::Tile(TileType { elem: t.elem, space: Space::Reg, ..x }),
            Type::View(x) if counts(x.elem) => Type::View(ViewType { elem: t.elem, space: Space::Reg, ..x }),
            other => {
                let message = format!(
                    "an element of a table is named by a whole number of up to 32 bits, found {}",
                    other.describe(self.k)
                );
                let d = self.error(codes::WRONG_OPERAND, index, message).with_note("convert it: `cast<i32>(x)`");
                return Err(self.converted(d, index, &other, "i32").into());
            }
        })
    }

    /// The type of `index(x)`: an integer, of a scalar or of one element in memory.
    fn whole_number(&self, arg: Expr) -> Result<Type, TypeError> {
        let ty = self.type_of(arg)?;
        if ty == Type::Index || self.is_number(&ty) {
            return Ok(Type::Index);
        }
        let message = format!("an index is a whole number, found {}", ty.describe(self.k));
        let d = self.error(codes::NOT_INDEX, arg, message);
        let d = d.with_note("convert it: `cast<i32>(x)`; of a tile, an index is one element");
        Err(if ty.rank() == 0 { self.converted(d, arg, &ty, "i32") } else { d }.into())
    }

    /// Whether a type is that of an integer, in a register or in memory.
    fn is_number(&self, ty: &Type) -> bool {
        ty.rank() == 0 && ty.elem().is_some_and(|elem| may_count(self.k, elem))
    }

    /// The type of a whole place.
    fn place(&self, elem: ElemRef, shape: &[Expr], space: Space) -> Type {
        if shape.is_empty() {
            return scalar(elem);
        }
        Type::Tile(TileType { elem, shape: shape.iter().map(|&e| Extent::of(self.k, e)).collect(), space })
    }

    /// The type of a window.
    fn view_type(&self, e: Expr, v: &View) -> Result<Type, TypeError> {
        let k = self.k;
        let name = &k.values[v.base].name;
        let whole = match &k.values[v.base].def {
            ValueDef::Channel { tile, .. } => {
                if v.slot.is_none() {
                    return self.ref_type(e, v.base);
                }
                self.place(tile.elem, &tile.shape, k.values[v.base].def.space())
            }
            _ if v.slot.is_some() => {
                let message = format!("`{name}` is not a channel and has no slots");
                return Err(self.error(codes::BAD_VIEW, e, message).into());
            }
            _ => self.ref_type(e, v.base)?,
        };
        if v.ranges.is_empty() {
            return Ok(whole);
        }
        let (elem, rank, space, base) = match &whole {
            Type::Tile(t) if !matches!(k.values[v.base].def, ValueDef::Let) => (t.elem, t.shape.len(), t.space, v.base),
            Type::View(w) => (w.elem, w.rank, w.space, w.base),
            other => {
                let message = format!("`{name}` is {}, which has no windows", other.describe(k));
                return Err(self
                    .error(codes::BAD_VIEW, e, message)
                    .with_note("windows are of tensors, shared-memory buffers, channel slots and register variables")
                    .into());
            }
        };
        if v.ranges.len() != rank {
            let (own, found) = (counted(rank, "dimension"), counted(v.ranges.len(), "range"));
            let d = self
                .error(codes::BAD_VIEW, e, format!("`{name}` has {own}, found {found}"))
                .with_place(k.values[v.base].span, format!("`{name}` is declared here"))
                .with_note("write a range `i..` or an index `i` for each dimension, `0..` for all of one");
            let d = self.with_ranges(d, e, rank.saturating_sub(v.ranges.len()));
            return Err(match self.repeating(v.base, v.ranges.len()) {
                Some(note) => d.with_note(note),
                None => d,
            }
            .into());
        }
        let rank = v.ranges.iter().filter(|r| !matches!(r, Range::At(_))).count();
        for r in &v.ranges {
            match *r {
                Range::At(i) => self.index(i)?,
                Range::Gather(i) => self.numbers(i, rank)?,
                Range::From { start, end } => {
                    self.index(start)?;
                    end.map_or(Ok(()), |end| self.index(end))?;
                }
            }
        }
        Ok(Type::View(ViewType { base, elem, rank, space }))
    }

    /// Checks that `e` is an index.
    ///
    /// # Errors
    /// If it has another type, or none.
    pub fn index(&self, e: Expr) -> Result<(), TypeError> {
        match self.type_of(e)? {
            Type::Index => Ok(()),
            ty if self.k.numbers_count && self.is_number(&ty) => Ok(()),
            other => {
                let message = format!("an index is expected here, found {}", other.describe(self.k));
                let d = self.error(codes::NOT_INDEX, e, message);
                // In the body it would be one.
                if matches!(other, Type::Scalar(elem) if may_count(self.k, elem)) {
                    let note = "the host computes this in front of the launch, of sizes, strides and integers alone: let the extent of a tensor say it";
                    return Err(d.with_note(note).into());
                }
                if other.rank() > 0 && other.elem().is_some_and(|elem| may_count(self.k, elem)) {
                    let note = "rows that numbers name are gathered by a tile of them in registers: `var rows = reg i32[64]`, `copy P[i * 64..] -> rows`, `copy X[rows, j..] -> x`";
                    return Err(d.with_note(note).into());
                }
                let whole = match self.k.exprs[e] {
                    ExprData::Float(bits) => whole_text(bits),
                    _ => None,
                };
                let d = match whole {
                    Some(x) => d.with_fix(self.k.expr_spans[e], x),
                    None => d,
                };
                Err(d
                    .with_note("indices are made of sizes, strides, grid indices, loop variables, and integers in registers and in memory")
                    .into())
            }
        }
    }

    /// Checks that `e` is a tile of integers, which number elements of a window of `rank` dimensions: along one dimension, or one for each element.
    fn numbers(&self, e: Expr, rank: usize) -> Result<(), TypeError> {
        let ty = self.type_of(e)?;
        if let Type::Tile(t) = &ty
            && t.space.in_registers()
            && may_count(self.k, t.elem)
            && (t.shape.len() == rank || t.shape.iter().filter(|&&n| n != Extent::Known(1)).count() <= 1)
        {
            return Ok(());
        }
        let found = ty.describe(self.k);
        if matches!(&ty, Type::Tile(t) if t.space.in_registers() && t.shape.len() > 1 && may_count(self.k, t.elem)) {
            let message = format!("elements of a window of {} are gathered by {found}", counted(rank, "dimension"));
            let note = "a tile of indices has one dimension, or those of the window, and then an index for each element: `T[_, p]` of a vector `T` and `p: reg i32[32, 64]`";
            return Err(self.error(codes::NOT_INDEX, e, message).with_note(note).into());
        }
        let d = self.error(
            codes::NOT_INDEX,
            e,
            format!("elements are gathered by a register tile of integers, found {found}"),
        );
        Err(d.with_note("copy the numbers into one first: `var rows = reg i32[64]`, `copy P[i * 64..] -> rows`, `copy X[rows, j..] -> x`").into())
    }

    /// The type of an operand that must have extents.
    pub(super) fn tile(&self, e: Expr, user: &str) -> Result<TileType, TypeError> {
        match self.type_of(e)? {
            Type::Tile(t) => Ok(t),
            Type::View(_) => Err(self
                .error(codes::NO_EXTENTS, e, format!("`{user}` needs extents, and a window has none of its own"))
                .with_note(match user {
                    "iota" => "copy the window into a register tile first: `var t = reg f32[64, 64]`, `copy w -> t`",
                    _ => "the window says how many elements it has, `X[i * 64..+64, ..+128]`, or is copied into a register tile first",
                })
                .into()),
            other => {
                let message = format!("`{user}` takes a tile, found {}", other.describe(self.k));
                Err(self.error(codes::WRONG_OPERAND, e, message).into())
            }
        }
    }

    /// How a vector is used as a matrix: as one whose rows, or columns, are equal.
    fn repeating(&self, base: Value, ranges: usize) -> Option<String> {
        let tensor = self.k.tensor_ty(base)?;
        (tensor.shape.len() == 1 && ranges == 2).then(|| {
            let name = &self.k.values[base].name;
            format!("a vector broadcasts along a dimension that it lacks: `{name}[_, j..]` has one value for each column, `{name}[i.., _]` for each row")
        })
    }

    pub(super) fn check_axis(&self, e: Expr, axis: u32, t: &TileType) -> Result<(), TypeError> {
        if (axis as usize) < t.shape.len() {
            return Ok(());
        }
        let message = format!("axis {axis} does not exist: the tile has {}", counted(t.shape.len(), "dimension"));
        let d = self.error(codes::BAD_AXIS, e, message).with_note("axes count from 0");
        let last = t.shape.len().checked_sub(1);
        Err(match self.k.spot(self.k.expr_spans[e], FixLocation::Axis).zip(last) {
            Some((at, last)) => d.with_fix(at, last.to_string()),
            None => d,
        }
        .into())
    }

    pub(super) fn error(&self, code: Code, e: Expr, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, self.k.expr_spans[e], message)
    }

    /// With the conversion of `e`, a number of type `ty`, to `elem` as the change that mends it; of a truth value there is none.
    pub(super) fn converted(&self, d: Diagnostic, e: Expr, ty: &Type, elem: &str) -> Diagnostic {
        let bool = |elem: ElemRef| !may_be(self.k, elem, ElemClass::Float) && !may_be(self.k, elem, ElemClass::Int);
        if *ty == Type::Bool || ty.elem().is_some_and(bool) {
            return d;
        }
        d.with_fix_around(self.k.expr_spans[e], format!("cast<{elem}>("), ")")
    }

    /// With `missing` more ranges of the window `e`, each of all of a dimension, as the change that mends it.
    fn with_ranges(&self, d: Diagnostic, e: Expr, missing: usize) -> Diagnostic {
        let end = self.k.expr_spans[e].end;
        if missing == 0 || end == 0 {
            return d;
        }
        // In front of the bracket that ends the window.
        d.with_fix(Span { start: end - 1, end: end - 1 }, ", 0..".repeat(missing))
    }
}

/// The type of `e`.
///
/// # Errors
/// What is wrong with `e`.
pub fn type_of(k: &Kernel, e: Expr) -> Result<Type, TypeError> {
    if !mentions_name(k, e) {
        return Types::without_lets(k).type_of(e);
    }
    let changes = k.changes();
    let mut types = Types { lets: k.known.take(changes), ..Types::without_lets(k) };
    types.declare_below(e);
    let ty = types.type_of(e);
    k.known.keep(changes, types.lets);
    ty
}

/// Whether the type of `e` depends on the definition of a name.
fn mentions_name(k: &Kernel, e: Expr) -> bool {
    match k.exprs[e] {
        ExprData::Ref(v) => k.definition(v).is_some(),
        ExprData::View(View { base: v, .. }) if k.definition(v).is_some() => true,
        _ => k.children(e).into_iter().any(|child| mentions_name(k, child)),
    }
}

/// The extents of an expression whose shape is fixed and known in numbers; `None` for scalars and windows.
pub fn fixed_shape(k: &Kernel, e: Expr) -> Option<Vec<u64>> {
    match type_of(k, e).ok()? {
        Type::Tile(t) => t.known_shape(),
        Type::Index | Type::Float | Type::Bool | Type::Scalar(_) | Type::View(_) => None,
    }
}

/// The extents of a scalar, or of a window of one element: none. `None` for what has extents.
pub fn scalar_shape(k: &Kernel, e: Expr) -> Option<Vec<u64>> {
    type_of(k, e).is_ok_and(|t| t.rank() == 0).then(Vec::new)
}

/// The initialiser of a `let`.
pub fn let_init(k: &Kernel, value: Value) -> Option<Expr> {
    k.let_init(value)
}

/// A scalar of element type `elem`.
pub(super) fn scalar(elem: ElemRef) -> Type {
    if elem == ElemRef::Known(Elem::Bool) { Type::Bool } else { Type::Scalar(elem) }
}

/// Names that are looked up to find the factors of a product.
const FACTORS: u32 = 256;

/// The factors of a product of integer expressions: the product of those that are literals, and the others. Names of index
/// values are looked up.
pub fn factor_list(k: &Kernel, list: &[Expr]) -> (i128, Vec<Expr>) {
    let (mut literal, mut others) = (1i128, Vec::new());
    let mut work = list.to_vec();
    // A name is as good a factor as its definition: `let b = a * a`, `let c = b * b` is not expanded to factors `a`.
    let mut names = FACTORS;
    while let Some(e) = work.pop() {
        match &k.exprs[e] {
            ExprData::Op { op: Op::Mul, args } => work.extend(args),
            ExprData::Ref(v) if names > 0 && let_init(k, *v).is_some() => {
                names -= 1;
                work.extend(let_init(k, *v));
            }
            _ => match const_int(k, e) {
                Some(x) => literal = literal.saturating_mul(i128::from(x)),
                None => others.push(e),
            },
        }
    }
    (literal, others)
}

/// The same, with the texts of the others, sorted. Two products of the same factors are equal wherever they do not overflow.
pub fn factors(k: &Kernel, list: &[Expr]) -> (i128, Vec<String>) {
    let (literal, others) = factor_list(k, list);
    let mut texts: Vec<String> = others.into_iter().map(|e| crate::print::print_scalar(k, e)).collect();
    texts.sort_unstable();
    (literal, texts)
}

/// Whether an index is certainly at least 1: literals, sizes, and combinations of them that stay positive.
pub fn positive(k: &Kernel, e: Expr) -> bool {
    fn of(k: &Kernel, e: Expr, known: &BTreeMap<Value, bool>) -> bool {
        match &k.exprs[e] {
            ExprData::Int(x) => *x >= 1,
            ExprData::Ref(v) => match k.values[*v].def {
                ValueDef::Let => known.get(v).is_some_and(|&positive| positive),
                ref def => matches!(def, ValueDef::Size) && !crate::zero_sizes::zero_sizes(k).contains(v),
            },
            ExprData::Op { op, args } => match op {
                Op::Mul | Op::Add | Op::CeilDiv | Op::Min => args.iter().all(|&a| of(k, a, known)),
                Op::Max => args.iter().any(|&a| of(k, a, known)),
                _ => false,
            },
            _ => false,
        }
    }
    k.by_names(e, |e, known| of(k, e, known))
}

/// The value of an integer expression over literals; `None` if it is not one, or it overflows or divides by zero.
pub fn const_int(k: &Kernel, e: Expr) -> Option<i64> {
    index::int(&OfKernel::literals(k), e)
}

/// Whether two expressions are the same tree over the same values.
pub fn same_expr(k: &Kernel, a: Expr, b: Expr) -> bool {
    if a == b {
        return true;
    }
    match (&k.exprs[a], &k.exprs[b]) {
        (ExprData::Int(x), ExprData::Int(y)) => x == y,
        (ExprData::Float(x), ExprData::Float(y)) => x == y,
        (ExprData::Ref(x), ExprData::Ref(y)) => x == y,
        (ExprData::Op { op: x, args: p }, ExprData::Op { op: y, args: q }) => {
            x == y && p.len() == q.len() && p.iter().zip(q).all(|(&p, &q)| same_expr(k, p, q))
        }
        (ExprData::Index(x), ExprData::Index(y)) => same_value(k, *x, *y),
        _ => false,
    }
}

/// Whether two scalars in indices are equal. They only read constant values.
pub(crate) fn same_value(k: &Kernel, a: Expr, b: Expr) -> bool {
    match (&k.exprs[a], &k.exprs[b]) {
        (ExprData::Ref(x), ExprData::Ref(y)) => x == y && !matches!(k.values[*x].def, ValueDef::Var(_)),
        (ExprData::Cast { elem: x, arg: a }, ExprData::Cast { elem: y, arg: b })
        | (ExprData::Bits { elem: x, arg: a }, ExprData::Bits { elem: y, arg: b }) => x == y && same_value(k, *a, *b),
        (ExprData::View(v), ExprData::View(w)) => {
            let same = |(x, y): (&Range, &Range)| match (x, y) {
                (Range::At(x), Range::At(y)) => same_expr(k, *x, *y),
                _ => false,
            };
            v.base == w.base
                && v.slot == w.slot
                && v.ranges.len() == w.ranges.len()
                && v.ranges.iter().zip(&w.ranges).all(same)
        }
        _ => false,
    }
}

/// Whether two integer expressions are the same, or products of the same factors.
pub fn same_product(k: &Kernel, a: Expr, b: Expr) -> bool {
    let product = |e: Expr| matches!(k.exprs[e], ExprData::Op { op: Op::Mul, .. });
    same_expr(k, a, b) || (product(a) && product(b) && factors(k, &[a]) == factors(k, &[b]))
}

/// The name of an element type, or of its parameter.
pub fn elem_name(k: &Kernel, elem: ElemRef) -> String {
    match elem {
        ElemRef::Known(e) => e.name().to_owned(),
        ElemRef::Param(v) => k.values[v].name.clone(),
    }
}

/// `[128, BK]`, for messages.
pub fn shape_text(k: &Kernel, shape: &[Extent]) -> String {
    let extents: Vec<String> = shape
        .iter()
        .map(|e| match e {
            Extent::Known(n) => n.to_string(),
            Extent::Sym(e) => match k.exprs[*e] {
                ExprData::Ref(v) => k.values[v].name.clone(),
                _ => "..".to_owned(),
            },
        })
        .collect();
    format!("[{}]", extents.join(", "))
}
