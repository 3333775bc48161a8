//! Matrix products: extents `[M, K] * [K, N] + [M, N]`, or `+ [S, M, N]` with a sum for each of `S` slices of `K`, and the element types that hardware multiplies.

use super::candidates::candidate_elems;
use super::{Extent, Type, TypeError, Types, elem_name, fixed_shape};
use crate::codes;
use crate::entities::Expr;
use crate::kernel::{Kernel, Mma};
use crate::types::{Elem, ElemRef};

/// Whether products of `a` and `b` elements accumulate in `acc` elements on some target (PTX ISA, "mma" type tables).
fn combines(a: Elem, b: Elem, acc: Elem) -> bool {
    let of_one_type = |input| match acc {
        Elem::F32 => {
            matches!(input, Elem::F16 | Elem::BF16 | Elem::TF32 | Elem::F32 | Elem::E4M3 | Elem::E5M2)
        }
        Elem::F16 => matches!(input, Elem::F16 | Elem::E4M3 | Elem::E5M2),
        Elem::F64 => input == Elem::F64,
        Elem::I32 => matches!(input, Elem::I8 | Elem::U8),
        Elem::BF16
        | Elem::TF32
        | Elem::E4M3
        | Elem::E5M2
        | Elem::E2M1
        | Elem::UE8M0
        | Elem::I8
        | Elem::U8
        | Elem::I4
        | Elem::U4
        | Elem::I16
        | Elem::U16
        | Elem::U32
        | Elem::I64
        | Elem::U64
        | Elem::Bool => false,
    };
    let mixes = |types: [Elem; 2]| types.contains(&a) && types.contains(&b);
    of_one_type(a) && (a == b || mixes([Elem::E4M3, Elem::E5M2]) || mixes([Elem::I8, Elem::U8]))
}

/// An operand: its element type, and its extents unless it is a window.
struct Operand {
    elem: ElemRef,
    shape: Option<[Extent; 2]>,
}

/// The extent of the reduction of a product, which one of its operands has; `None`: it is not known in numbers.
pub fn product_depth(k: &Kernel, mma: &Mma) -> Option<u64> {
    let of_a = fixed_shape(k, mma.a).and_then(|shape| shape.get(1).copied());
    of_a.or_else(|| fixed_shape(k, mma.b).and_then(|shape| shape.first().copied()))
}

/// The extents of the first or the second operand of a product, also of a window: those that the accumulator and the other operand give it.
pub fn operand_shape(k: &Kernel, mma: &Mma, second: bool) -> Option<[u64; 2]> {
    let depth = product_depth(k, mma)?;
    let sums = fixed_shape(k, mma.c)?;
    let [.., rows, columns] = sums[..] else { return None };
    Some(if second { [depth, columns] } else { [rows, depth] })
}

impl Types<'_> {
    /// The type of a product: that of its accumulator.
    pub(super) fn product(&self, e: Expr, m: &Mma) -> Result<Type, TypeError> {
        let a = self.product_operand(m.a)?;
        let b = self.product_operand(m.b)?;
        let c_type = match self.type_of(m.c)? {
            Type::Tile(t) if t.space.in_registers() && matches!(t.shape.len(), 2 | 3) => t,
            other => {
                let message = format!(
                    "a product accumulates in a register tile of rank 2 or 3, found {}",
                    other.describe(self.k)
                );
                return Err(self
                    .error(codes::MMA_SHAPE, m.c, message)
                    .with_note("declare one: `var acc = reg f32[128, 128] = 0.0`")
                    .into());
            }
        };
        let (slices, matrix) = c_type.shape.split_at(c_type.shape.len() - 2);
        let [rows, cols] = [matrix[0], matrix[1]];
        let (mut k_a, mut k_b) = (None, None);
        let turned = self.turned((m.a, a.shape), (m.b, b.shape), [rows, cols]);
        if let Some([m_a, k]) = a.shape {
            self.same_extent(m, m.a, ("rows", m_a), (m.c, "rows", rows), turned)?;
            k_a = Some(k);
        }
        if let Some([k, n_b]) = b.shape {
            self.same_extent(m, m.b, ("columns", n_b), (m.c, "columns", cols), turned)?;
            k_b = Some(k);
        }
        match (k_a, k_b) {
            (Some(k_a), Some(k_b)) => {
                self.same_extent(m, m.b, ("rows", k_b), (m.a, "columns", k_a), turned)?;
            }
            (None, None) => {
                return Err(self
                    .error(
                        codes::NO_EXTENTS,
                        e,
                        "the reduction extent of this product is not known: both operands are windows",
                    )
                    .with_note("copy one of them into a tile first")
                    .into());
            }
            _ => {}
        }
        if let (Some(slices), Some(k)) = (slices.first().and_then(|s| s.known()), k_a.or(k_b).and_then(|k| k.known()))
            && (slices == 0 || k % slices != 0)
        {
            let message = format!("a reduction of {k} cannot be cut into {slices} slices");
            return Err(self
                .error(codes::MMA_SHAPE, e, message)
                .with_note("the first extent of an accumulator of three dimensions divides the reduction")
                .into());
        }
        self.product_types(e, m, [a.elem, b.elem, c_type.elem])?;
        Ok(Type::Tile(c_type))
    }

    fn product_operand(&self, e: Expr) -> Result<Operand, TypeError> {
        let ty = self.type_of(e)?;
        match ty {
            Type::Tile(t) if t.shape.len() == 2 => Ok(Operand { elem: t.elem, shape: Some([t.shape[0], t.shape[1]]) }),
            Type::View(v) if v.rank == 2 => Ok(Operand { elem: v.elem, shape: None }),
            other => {
                let message = format!("an operand of a product is a rank-2 tile, found {}", other.describe(self.k));
                Err(self.error(codes::MMA_SHAPE, e, message).into())
            }
        }
    }

    /// The operand that fits once its dimensions are swapped, where only one does.
    fn turned(
        &self,
        (a, of_a): (Expr, Option<[Extent; 2]>),
        (b, of_b): (Expr, Option<[Extent; 2]>),
        [rows, cols]: [Extent; 2],
    ) -> Option<Expr> {
        let ([m, k_a], [k_b, n]) = (of_a?, of_b?);
        let fits = |x: [Extent; 3], y: [Extent; 3]| x.iter().zip(y).all(|(x, y)| x.same(self.k, y) == Some(true));
        if fits([m, n, k_b], [rows, k_a, cols]) {
            Some(b)
        } else if fits([k_a, n, m], [rows, cols, k_b]) {
            Some(a)
        } else {
            None
        }
    }

    /// Checks that what one operand has along a dimension, another has along one.
    fn same_extent(
        &self,
        m: &Mma,
        e: Expr,
        (what, x): (&str, Extent),
        (of, other, y): (Expr, &str, Extent),
        turned: Option<Expr>,
    ) -> Result<(), TypeError> {
        if x.same(self.k, y) != Some(false) {
            return Ok(());
        }
        let text = |x: Extent| x.known().map_or_else(String::new, |n| n.to_string());
        let accumulator = if of == m.c { "the accumulator " } else { "" };
        let place = |e: Expr| match e {
            _ if e == m.a => "the left operand",
            _ if e == m.b => "the right operand",
            _ => "the accumulator",
        };
        let called = self.called(e).unwrap_or_else(|| place(e).to_owned());
        let of = self.called(of).map_or_else(|| place(of).to_owned(), |name| format!("{accumulator}{name}"));
        let message = format!("{what} of {called} and {other} of {of} differ: {} and {}", text(x), text(y));
        let d = self.error(codes::MMA_SHAPE, e, message).with_note(
            "`acc = mma(x, w, acc)` takes x [M, K], w [K, N] and acc [M, N] or [S, M, N]; `transpose(w)` swaps the dimensions",
        );
        Err(match turned {
            Some(operand) => d.with_fix_around(self.k.expr_spans[operand], "transpose(", ")"),
            None => d,
        }
        .into())
    }

    fn product_types(&self, e: Expr, m: &Mma, [a, b, acc]: [ElemRef; 3]) -> Result<(), TypeError> {
        let k = self.k;
        let (ca, cb, cc) = (candidate_elems(k, a), candidate_elems(k, b), candidate_elems(k, acc));
        let fits = ca.iter().any(|&x| cb.iter().any(|&y| cc.iter().any(|&c| combines(x, y, c))));
        if fits {
            return Ok(());
        }
        let names = [a, b, acc].map(|x| elem_name(k, x));
        let message = format!("no product of {} and {} accumulates in {}", names[0], names[1], names[2]);
        let d = self
            .error(codes::MMA_TYPES, e, message)
            .with_note("both operands have one type, except that e4m3 and e5m2 mix, and i8 and u8 mix; f16, bf16, tf32, f32 and fp8 accumulate in f32, f16 and fp8 also in f16, f64 in f64, i8 and u8 in i32; convert operands of other types first");
        // Of two types the first one that multiplies with itself is that of both.
        let pair = |to: &[Elem]| to.iter().any(|&x| cc.iter().any(|&c| combines(x, x, c)));
        let operand = |e: Expr| self.type_of(e).ok();
        Err(match (operand(m.a), operand(m.b)) {
            (_, Some(of_b)) if pair(&ca) => self.with_conversion(d, m.b, &of_b, &names[0]),
            (Some(of_a), _) if pair(&cb) => self.with_conversion(d, m.a, &of_a, &names[1]),
            _ => d,
        }
        .into())
    }
}
