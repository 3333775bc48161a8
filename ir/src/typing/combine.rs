//! The types of tuples that the program combines, and of their components.

use super::elementwise::join_extent;
use super::types::{Extent, TileType, Type, TypeError, Types, elem_name, shape_text};
use crate::codes;
use crate::combine::{Combine, How, comparisons, component, local, row_bits};
use crate::entities::{Expr, Value};
use crate::kernel::ExprData;
use crate::ops::{Domain, Op};
use crate::rounding::computed_in;
use crate::space::Space;
use crate::types::{Elem, ElemClass, ElemRef};

impl Types<'_> {
    /// The type of the first component of what tuples come to.
    pub(super) fn combine(&self, e: Expr, combine: &Combine) -> Result<TileType, TypeError> {
        let mut shape: Option<Vec<Extent>> = None;
        for (&arg, &v) in combine.args.iter().zip(&combine.first) {
            let ty = self.type_of(arg)?;
            self.fits(arg, &ty, component(self.k, v), "this component")?;
            shape = match (ty, shape) {
                (Type::Tile(t), None) => Some(t.shape),
                (Type::Tile(t), Some(shape)) => Some(self.joined(arg, &shape, &t.shape)?),
                (Type::View(_), _) => {
                    let message = "a component of tuples needs extents, and a window has none of its own";
                    let d = self.error(codes::NO_EXTENTS, arg, message);
                    return Err(d.with_note("copy the window into a register tile first").into());
                }
                (_, shape) => shape,
            };
        }
        let Some(mut shape) = shape else {
            let message = format!("`{}` takes a tile, and none of its components is one", combine.operation.word());
            return Err(self.error(codes::WRONG_OPERAND, e, message).into());
        };
        for (&front, &v) in combine.front.iter().zip(&combine.first) {
            let ty = self.type_of(front)?;
            if matches!(ty, Type::Tile(_) | Type::View(_) | Type::Bool) {
                let message = format!("the value before the first element is a number, found {}", ty.describe(self.k));
                let d = self.error(codes::WRONG_OPERAND, front, message);
                return Err(d.with_note("it is the same for all rows: a literal, a scalar or an index").into());
            }
            self.fits(front, &ty, component(self.k, v), "this component of what is in front")?;
        }
        for v in combine.first.iter().chain(&combine.second) {
            self.computed(e, component(self.k, *v))?;
        }
        for &v in &combine.locals {
            self.body(local(self.k, v))?;
        }
        for &result in &combine.results {
            self.body(result)?;
        }
        self.results(e, combine)?;
        let elem = component(self.k, combine.first[0]);
        let tile = TileType { elem, shape: shape.clone(), space: Space::Reg };
        self.check_axis(e, combine.axis, &tile)?;
        if let How::Scan { parts } = combine.operation
            && (parts != 0 || !combine.totals.is_empty())
        {
            for (&totals, &v) in combine.totals.iter().zip(&combine.first) {
                let whole = TileType { elem: component(self.k, v), ..tile.clone() };
                self.totals(e, (combine.axis, parts), &whole, totals)?;
            }
        }
        let extent = &mut shape[combine.axis as usize];
        match combine.operation {
            How::Reduce { parts } => {
                self.check_parts(e, *extent, parts)?;
                *extent = Extent::Known(1 << parts.count_ones());
            }
            How::Sort { steps: Some((_, to)) } if extent.known().is_some_and(|n| to > comparisons(row_bits(n))) => {
                let all = extent.known().map_or(0, |n| comparisons(row_bits(n)));
                let message = format!("a sort of such rows takes {all} comparisons, and these end at {to}");
                let d = self.error(codes::BAD_AXIS, e, message);
                return Err(d.with_note("`sort (x) along 1 steps (0, 3)` of 8 elements: the first three of 6").into());
            }
            How::Scan { .. } | How::Sort { .. } => {}
        }
        Ok(TileType { elem, shape, space: Space::Reg })
    }

    /// The type of a component of tuples that a `let` names.
    pub(super) fn part(&self, e: Expr, of: Expr, index: u32) -> Result<TileType, TypeError> {
        let not = |of: &str| {
            let d = self.error(codes::NOT_A_VALUE, e, format!("`.{index}` is a component of tuples, and {of}"));
            TypeError::from(d.with_note("tuples are named by a `let`: `let s = reduce (x, p) along 1 with ..`"))
        };
        let ExprData::Ref(v) = self.k.exprs[of] else { return Err(not("this names none")) };
        let name = &self.k.values[v].name;
        let Some(ExprData::Combine(combine)) = self.init(v).map(|init| &self.k.exprs[init]) else {
            return Err(not(&format!("`{name}` is none")));
        };
        let Some(&own) = combine.first.get(index as usize) else {
            return Err(not(&format!("those of `{name}` have {}", combine.first.len())));
        };
        match self.declared(v) {
            Some(Ok(Type::Tile(t))) => Ok(TileType { elem: component(self.k, own), ..t.clone() }),
            // This is reported at the tuples.
            Some(Err(why)) => Err(why.clone()),
            _ => Err(not(&format!("`{name}` has no type"))),
        }
    }

    /// A name of tuples where a value is wanted.
    pub(super) fn whole_tuples(&self, e: Expr, v: Value) -> TypeError {
        let name = &self.k.values[v].name;
        let d = self.error(codes::NOT_A_VALUE, e, format!("`{name}` is a name of tuples, which are not values"));
        d.with_note(format!("name a component: `{name}.0`")).with_fix_around(self.k.expr_spans[e], "", ".0").into()
    }

    fn joined(&self, arg: Expr, a: &[Extent], b: &[Extent]) -> Result<Vec<Extent>, TypeError> {
        let joined = (a.len() == b.len()).then(|| a.iter().zip(b).map(|(&x, &y)| join_extent(self.k, x, y)).collect());
        joined.flatten().ok_or_else(|| {
            let (a, b) = (shape_text(self.k, a), shape_text(self.k, b));
            let message = format!("components of tuples have the same extents, found {a} and {b}");
            self.error(codes::SHAPE_MISMATCH, arg, message).into()
        })
    }

    /// Components are what elements are computed in.
    fn computed(&self, e: Expr, elem: ElemRef) -> Result<(), TypeError> {
        let fits = |elem: Elem| computed_in(elem) == elem && elem != Elem::Bool;
        match elem {
            ElemRef::Known(elem) if !fits(elem) => {
                let message = format!("a component of tuples cannot be {}", elem.name());
                let note = "components are f32, f64, i32, u32, i64 or u64: narrower elements are computed in f32 or i32, \
                            and `select(c, 1, 0)` makes a number of a condition";
                Err(self.error(codes::WRONG_OPERAND, e, message).with_note(note).into())
            }
            _ => Ok(()),
        }
    }

    /// That what has this type is a number of the type `elem`, as elements are computed.
    fn fits(&self, e: Expr, ty: &Type, elem: ElemRef, what: &str) -> Result<(), TypeError> {
        let (ElemRef::Known(to), found) = (elem, ty.elem()) else { return Ok(()) };
        let fits = match found {
            None => *ty == Type::Index || to.class() == ElemClass::Float,
            Some(ElemRef::Known(from)) => computed_in(from) == to,
            Some(ElemRef::Param(_)) => true,
        };
        if fits {
            return Ok(());
        }
        let (found, wanted) = (ty.describe(self.k), elem_name(self.k, elem));
        let d = self.error(codes::TYPE_MISMATCH, e, format!("{what} is {wanted}, found {found}"));
        let note = match to {
            _ if to == Elem::F32 || computed_in(to) != to => {
                "a component is f32 unless its type is written, `with (x1, p1: i32), (x2, p2)`".to_owned()
            }
            _ => format!("convert it: `cast<{wanted}>(..)`"),
        };
        Err(d.with_note(note).into())
    }

    fn results(&self, e: Expr, combine: &Combine) -> Result<(), TypeError> {
        if matches!(combine.operation, How::Sort { .. }) {
            let &[result] = &combine.results[..] else {
                return Err(self.error(codes::WRONG_COUNT, e, "a sort has one condition").into());
            };
            return match self.type_of(result)? {
                Type::Bool => Ok(()),
                other => {
                    let message = format!("a sort has a condition, found {}", other.describe(self.k));
                    let note = "`give x1 > x2`: the first tuple stays in front of the second one";
                    Err(self.error(codes::WRONG_OPERAND, result, message).with_note(note).into())
                }
            };
        }
        for (&result, &v) in combine.results.iter().zip(&combine.first) {
            let ty = self.type_of(result)?;
            self.fits(result, &ty, component(self.k, v), "this component of the result")?;
        }
        Ok(())
    }

    /// That tuples are combined number by number.
    fn body(&self, e: Expr) -> Result<(), TypeError> {
        match &self.k.exprs[e] {
            ExprData::Int(_) | ExprData::Float(_) => Ok(()),
            ExprData::Ref(_) if self.type_of(e)?.rank() == 0 => Ok(()),
            ExprData::Op { op, args } if *op != Op::Random => {
                let indices = op.domain() != Domain::Select && self.type_of(e)? == Type::Index;
                if indices { Ok(()) } else { args.iter().try_for_each(|&arg| self.body(arg)) }
            }
            ExprData::Cast { arg, .. } | ExprData::Bits { arg, .. } => self.body(*arg),
            _ => {
                let message = "only operators on their components and on other scalars can combine two tuples";
                let note = "what a tile or memory has is a component of the tuples, or a `let` in front";
                Err(self.error(codes::WRONG_OPERAND, e, message).with_note(note).into())
            }
        }
    }
}
