//! Expressions of 16-bit floats on pairs of elements, if that changes no result.
//!
//! Elements are computed in f32 and rounded when they are stored (`docs/numerics.md`). An instruction on pairs rounds
//! to 16 bits after each operation. The result is the same if all operands are numbers of the 16-bit type, and every
//! result but the last is one, too:
//!
//! * sums and products of integers that the type holds exactly: 4-bit weights minus their zero points;
//! * a last product of such an integer, or of a 4-bit float, with a number of the type, or of two f16 numbers: f32
//!   holds it exactly, so it is rounded once either way.
//!
//! f16 has all integers up to 2^11, bf16 up to 2^8. A product of two bf16 numbers may have an exponent that f32 does
//! not have.

use super::operands::{Operands, repeated_elements};
use super::packing::Nibble;
use super::scope::Scope;
use super::state::Lower;
use super::tile::Tile;
use super::unpack::{Word, more};
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use std::collections::BTreeMap;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, ValueDef};
use tilec_ir::numerics::float_format;
use tilec_ir::ops::Op;
use tilec_ir::types::{Elem, ElemClass, ElemRef};
use tilec_ir::typing::type_of;

/// Properties of numbers that a 16-bit type holds exactly.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Exact {
    /// Integers in this range.
    Whole(i64, i64),
    /// Numbers with so few digits that f32 holds their products with any number of the type.
    Few,
    /// Any numbers of the type.
    Numbers,
}

/// The largest integer up to which a type has all integers.
fn limit(elem: Elem) -> i64 {
    1 << (float_format(elem).expect("a type of floats").mantissa_bits + 1)
}

/// The range of an integer type of less than 64 bits.
fn whole_numbers(elem: Elem) -> (i64, i64) {
    let all = 1i64 << elem.bits();
    let unsigned = matches!(elem, Elem::U4 | Elem::U8 | Elem::U16 | Elem::U32);
    if unsigned { (0, all - 1) } else { (-all / 2, all / 2 - 1) }
}

/// The property of an expression's values, if all are numbers of `elem`.
fn exact(k: &Kernel, e: Expr, elem: Elem) -> Option<Exact> {
    let whole = |lo: i64, hi: i64| (lo >= -limit(elem) && hi <= limit(elem)).then_some(Exact::Whole(lo, hi));
    match &k.exprs[e] {
        ExprData::Int(x) => whole(*x, *x),
        ExprData::Float(bits) if f64::from_bits(*bits).fract() == 0.0 => {
            let x = f64::from_bits(*bits);
            if x == 0.0 && x.is_sign_negative() { Some(Exact::Numbers) } else { whole(x as i64, x as i64) }
        }
        ExprData::Cast { elem: ElemRef::Known(to), arg } if *to == Elem::F32 || *to == elem => exact(k, *arg, elem),
        ExprData::Op { op, args } if type_of(k, e).ok()?.elem()? == ElemRef::Known(Elem::F32) => {
            let &[a, b] = &args[..] else { return None };
            let (Exact::Whole(a, b), Exact::Whole(c, d)) = (exact(k, a, elem)?, exact(k, b, elem)?) else {
                return None;
            };
            match op {
                Op::Add => whole(a + c, b + d),
                Op::Sub => whole(a - d, b - c),
                Op::Mul => {
                    let ends = [a * c, a * d, b * c, b * d];
                    whole(*ends.iter().min()?, *ends.iter().max()?)
                }
                _ => None,
            }
        }
        ExprData::Ref(v) if matches!(k.values[*v].def, ValueDef::Var(_)) => match type_of(k, e).ok()?.elem()? {
            ElemRef::Known(own) if own.class() == ElemClass::Int && own.bits() < 64 => {
                let (least, most) = whole_numbers(own);
                whole(least, most)
            }
            ElemRef::Known(Elem::E2M1) => Some(Exact::Few),
            ElemRef::Known(Elem::UE8M0) if elem == Elem::BF16 => Some(Exact::Numbers),
            ElemRef::Known(own) if own == elem || matches!(own, Elem::E4M3 | Elem::E5M2) => Some(Exact::Numbers),
            _ => None,
        },
        _ => None,
    }
}

/// Whether an expression that is stored as `elem` may be computed in pairs.
fn computable(k: &Kernel, e: Expr, elem: Elem) -> bool {
    let ExprData::Op { op, args } = &k.exprs[e] else { return false };
    match (op, &args[..]) {
        (Op::Mul, &[a, b]) => match (exact(k, a, elem), exact(k, b, elem)) {
            (Some(Exact::Numbers), Some(Exact::Numbers)) => elem == Elem::F16,
            (Some(_), Some(_)) => true,
            _ => false,
        },
        _ => exact(k, e, elem).is_some(),
    }
}

/// State of computing a statement in pairs.
struct Pairs<'a> {
    elem: Elem,
    operands: &'a Operands,
    /// Tiles of other types, converted to this one.
    converted: BTreeMap<Value, Tile>,
    /// Registers that are subtracted from 4-bit elements, and the correction for the bits of these elements.
    less: BTreeMap<Reg, Reg>,
    /// Corrections for one subtracted 4-bit element: by its register, its position, and whether the elements from which
    /// it is subtracted are packed two to a byte.
    nibbles: BTreeMap<(Reg, usize, bool), Reg>,
    /// Registers of 4-bit elements, prepared for extracting pairs.
    words: BTreeMap<Reg, Word>,
    /// Pairs that several results share, by the elements of their tile.
    repeated: BTreeMap<(Value, [usize; 2]), Reg>,
}

/// The first of two adjacent elements in a register of a tile that correspond to two elements of the result: threads
/// may hold them in another order.
fn pair_of(tile: &Tile, at: [usize; 2], pairs: &Pairs<'_>) -> Option<usize> {
    let scope = &pairs.operands.scope;
    if tile.layout == scope.layout {
        return Some(at[0]);
    }
    match repeated_elements((&tile.layout, &tile.dim_bits), scope, &at)?[..] {
        [low, high] if low.is_multiple_of(2) && high == low + 1 => Some(low),
        _ => None,
    }
}

impl Lower<'_> {
    /// Computes a tile of packed 16-bit floats in pairs, if possible. The result says whether it was.
    pub(super) fn in_pairs(&mut self, tile: &Tile, e: Expr) -> Result<bool, Reported> {
        let able = match tile.elem {
            Elem::F16 => true,
            Elem::BF16 => self.target.has_bf16_conversions(),
            _ => false,
        };
        let whole = tile.packed() && tile.registers().all(|r| tile.used.has(2 * r) && tile.used.has(2 * r + 1));
        if !able || !whole || !computable(self.k, e, tile.elem) {
            return Ok(false);
        }
        let operands = Operands::new(Scope { layout: tile.layout.clone(), dim_bits: tile.dim_bits.clone() });
        let mut pairs = Pairs {
            elem: tile.elem,
            operands: &operands,
            converted: BTreeMap::new(),
            less: BTreeMap::new(),
            nibbles: BTreeMap::new(),
            words: BTreeMap::new(),
            repeated: BTreeMap::new(),
        };
        let mut found = Vec::new();
        for r in tile.registers() {
            found.push((r, self.two_of(e, [2 * r, 2 * r + 1], &mut pairs)?));
        }
        for (r, pair) in found {
            self.mov(tile.regs[r], pair);
        }
        Ok(true)
    }

    /// Two elements of an expression.
    fn two_of(&mut self, e: Expr, at: [usize; 2], pairs: &mut Pairs<'_>) -> Result<Reg, Reported> {
        match self.k.exprs[e].clone() {
            ExprData::Cast { arg, .. } => self.two_of(arg, at, pairs),
            ExprData::Op { op: Op::Sub, args }
                if let Some((tile, first)) = self.tile_of_halves(args[0], at, pairs)
                    && let Some(Exact::Whole(least, most)) = exact(self.k, args[1], pairs.elem)
                    && [least, most].iter().all(|z| (z + more(tile.elem, pairs.elem)).abs() <= limit(pairs.elem)) =>
            {
                let less = self.less_of(args[1], at, &tile, pairs)?;
                if tile.per_register == 2 {
                    return Ok(self.byte_less(&tile, first / 2, (pairs.elem, less)));
                }
                let (reg, place) = tile.nibble_of(first);
                let byte = place / 2;
                let word = match pairs.words.get(&reg) {
                    Some(&word) => word,
                    None => self.word_of_halves(reg, tile.elem, pairs.elem),
                };
                pairs.words.insert(reg, word);
                Ok(self.halves_less(word, byte, (pairs.elem, less)))
            }
            ExprData::Op { op, args } if matches!(op, Op::Add | Op::Sub | Op::Mul) => {
                let [a, b] = [self.two_of(args[0], at, pairs)?, self.two_of(args[1], at, pairs)?];
                Ok(self.operation(op, pairs.elem, a, b))
            }
            ExprData::Ref(v) => self.two_of_tile(e, v, at, pairs),
            _ => self.two_numbers(e, at, pairs),
        }
    }

    /// The correction that converts the bits of two 4-bit numbers to the numbers minus an expression.
    fn less_of(&mut self, e: Expr, at: [usize; 2], of: &Tile, pairs: &mut Pairs<'_>) -> Result<Reg, Reported> {
        if let Some((nibble, place)) = self.same_nibble(e, at, of, pairs) {
            let key = (nibble, place, of.per_register == 2);
            if let Some(&less) = pairs.nibbles.get(&key) {
                return Ok(less);
            }
            let less = self.less_nibble(of, (nibble, place), pairs.elem);
            pairs.nibbles.insert(key, less);
            return Ok(less);
        }
        let numbers = self.two_of(e, at, pairs)?;
        let less = match pairs.less.get(&numbers) {
            Some(&less) => less,
            None => self.less(of, numbers, pairs.elem),
        };
        pairs.less.insert(numbers, less);
        Ok(less)
    }

    /// The register and position of a 4-bit element, if an expression is the same element of a tile of the type of `of`
    /// for both results.
    fn same_nibble(&self, e: Expr, at: [usize; 2], of: &Tile, pairs: &Pairs<'_>) -> Option<Nibble> {
        match self.k.exprs[e] {
            ExprData::Cast { arg, .. } => self.same_nibble(arg, at, of, pairs),
            _ => {
                let tile = self.tile_of(e).filter(|tile| tile.elem == of.elem && tile.packed())?;
                let same = repeated_elements((&tile.layout, &tile.dim_bits), &pairs.operands.scope, &at)?;
                (same[0] == same[1]).then(|| tile.nibble_of(same[0]))
            }
        }
    }

    /// The tile of 4-bit elements that an expression is, with two or more to a register. With it is the first of two
    /// adjacent elements in a register that correspond to the results.
    fn tile_of_halves(&self, e: Expr, at: [usize; 2], pairs: &Pairs<'_>) -> Option<(Tile, usize)> {
        match self.k.exprs[e] {
            ExprData::Cast { arg, .. } => self.tile_of_halves(arg, at, pairs),
            _ => {
                let tile = self.tile_of(e)?;
                if tile.elem.bits() != 4 || tile.elem.is_float() || tile.per_register < 2 {
                    return None;
                }
                let first = pair_of(&tile, at, pairs)?;
                Some((tile, first))
            }
        }
    }

    /// Two elements of a register tile.
    fn two_of_tile(&mut self, e: Expr, v: Value, at: [usize; 2], pairs: &mut Pairs<'_>) -> Result<Reg, Reported> {
        let Some(tile) = self.tiles[v].clone() else { return self.two_numbers(e, at, pairs) };
        if let Some(first) = pair_of(&tile, at, pairs) {
            if tile.elem == pairs.elem {
                return Ok(tile.regs[first / 2]);
            }
            if let Some(converted) = pairs.converted.get(&v) {
                return Ok(converted.regs[first / 2]);
            }
            let to = self.new_tile(pairs.elem, tile.layout.clone(), tile.dim_bits.clone(), true);
            if let Some(to) = to.filter(|to| self.unpacked(&tile, to)) {
                let pair = to.regs[first / 2];
                pairs.converted.insert(v, to);
                return Ok(pair);
            }
            return self.two_numbers(e, at, pairs);
        }
        let same = repeated_elements((&tile.layout, &tile.dim_bits), &pairs.operands.scope, &at);
        let Some([low, high]) = same.and_then(|found| <[usize; 2]>::try_from(found).ok()) else {
            return self.two_numbers(e, at, pairs);
        };
        if let Some(&pair) = pairs.repeated.get(&(v, [low, high])) {
            return Ok(pair);
        }
        let pair = if tile.elem == pairs.elem && low == high {
            let half = self.raw(&tile, low);
            self.emit.def(Class::B32, P::PackB32B16, [Operand::Vec(vec![half; 2])])
        } else {
            self.two_numbers(e, at, pairs)?
        };
        pairs.repeated.insert((v, [low, high]), pair);
        Ok(pair)
    }

    /// Two elements, computed one by one.
    fn two_numbers(&mut self, e: Expr, at: [usize; 2], pairs: &Pairs<'_>) -> Result<Reg, Reported> {
        let class = self.class_for(e, pairs.elem)?;
        let from = self.elem_of_expr(e);
        let numbers = self.eval(e, pairs.operands, &at, class)?;
        let [low, high] = [numbers[0], numbers[1]].map(|x| self.wide_enough(x, from, pairs.elem));
        if let Some(pair) = self.narrow_pair(low, high, pairs.elem) {
            return Ok(pair);
        }
        let halves = [low, high].map(|x| self.narrow(x, pairs.elem));
        let [Some(low), Some(high)] = halves else { return Err(self.unsupported(e, "this conversion")) };
        Ok(self.emit.def(Class::B32, P::PackB32B16, [Operand::Vec(vec![low, high])]))
    }
}
