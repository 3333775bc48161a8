//! Comparisons of positions in a tile, as masks of its edge make them: `j + iota(s, 1) <= i * 128 + iota(s, 0)`.
//!
//! Each side is a number of the thread and one of the element, which is known here. So a thread subtracts its numbers once, and
//! compares the difference with a literal for each element, where it would add, and hold, a coordinate for each.

use super::Lower;
use super::elementwise::{Kind, Scope};
use super::index::{Int, fits32};
use crate::inst::Reg;
use tilec_ir::diag::Reported;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::ExprData;
use tilec_ir::layout::RegLayout;
use tilec_ir::ops::Op;
use tilec_ir::types::Elem;

/// A number of the thread for each element of a group, and what is known of the element beside it.
struct Counted {
    own: Vec<Int>,
    known: Vec<i64>,
}

impl Lower<'_> {
    /// The comparison of two sums of indices and coordinates, for each element; `None`: they are something else.
    pub(super) fn compare_counted(
        &mut self,
        op: Op,
        [a, b]: [Expr; 2],
        scope: &Scope,
        group: &[usize],
    ) -> Result<Option<Vec<Reg>>, Reported> {
        if ![a, b].into_iter().any(|e| self.counts(e)) {
            return Ok(None);
        }
        let Some(a) = self.counted(a, scope, group)? else { return Ok(None) };
        let Some(b) = self.counted(b, scope, group)? else { return Ok(None) };
        let mut found = Vec::new();
        for i in 0..group.len() {
            // Within 32 bits on both sides: then nothing wraps in the tile's arithmetic.
            let fits = |own: Int, known: i64| fits32(own.lo + i128::from(known), own.hi + i128::from(known));
            if !fits(a.own[i], a.known[i]) || !fits(b.own[i], b.known[i]) {
                return Ok(None);
            }
            let Some(less) = self.int_op(Op::Sub, b.own[i], a.own[i]).filter(|d| fits32(d.lo, d.hi)) else {
                return Ok(None);
            };
            found.push(self.int_compare(op, Int::constant(a.known[i] - b.known[i]), less));
        }
        Ok(Some(found))
    }

    /// Whether coordinates are among the terms of a sum of 32-bit integers.
    fn counts(&self, e: Expr) -> bool {
        match &self.k.exprs[e] {
            ExprData::Iota { .. } => self.elem_of_expr(e) == Some(Elem::I32),
            ExprData::Op { op: Op::Add | Op::Sub, args } => args.iter().any(|&a| self.counts(a)),
            _ => false,
        }
    }

    fn counted(&mut self, e: Expr, scope: &Scope, group: &[usize]) -> Result<Option<Counted>, Reported> {
        if self.kind_of(e)? == Kind::Index {
            let index = self.index(e)?;
            let known = index.as_const().unwrap_or(0);
            let own = if index.as_const().is_some() { Int::constant(0) } else { index };
            return Ok(Some(Counted { own: vec![own; group.len()], known: vec![known; group.len()] }));
        }
        if self.elem_of_expr(e) != Some(Elem::I32) {
            return Ok(None);
        }
        match self.k.exprs[e].clone() {
            ExprData::Iota { axis, .. } => Ok(self.coordinates(scope, axis as usize, group)),
            ExprData::Op { op: op @ (Op::Add | Op::Sub), args } => {
                let &[x, y] = &args[..] else { return Ok(None) };
                let Some(x) = self.counted(x, scope, group)? else { return Ok(None) };
                let Some(y) = self.counted(y, scope, group)? else { return Ok(None) };
                let mut sum = Counted { own: Vec::new(), known: Vec::new() };
                for i in 0..group.len() {
                    let Some(own) = self.int_op(op, x.own[i], y.own[i]) else { return Ok(None) };
                    sum.own.push(own);
                    sum.known.push(if op == Op::Add { x.known[i] + y.known[i] } else { x.known[i] - y.known[i] });
                }
                Ok(Some(sum))
            }
            _ => Ok(None),
        }
    }

    /// The coordinates of elements along an axis: bits of the thread's number, and other bits of the element's.
    fn coordinates(&mut self, scope: &Scope, axis: usize, group: &[usize]) -> Option<Counted> {
        let shift: u32 = scope.dim_bits[..axis].iter().sum();
        let mask = (1u64 << scope.dim_bits[axis]) - 1;
        let of_thread = |layout: &RegLayout| -> Vec<u64> {
            (0..layout.thread_bits()).map(|i| layout.thread_col(i) >> shift & mask).collect()
        };
        let cols = of_thread(&scope.layout);
        let taken = cols.iter().fold(0, |all, col| all | col);
        let known: Vec<u64> = group.iter().map(|&v| scope.layout.at(0, v as u64) >> shift & mask).collect();
        if known.iter().any(|c| c & taken != 0) {
            return None;
        }
        let tid = self.tid();
        let own = self.linear_map(tid, &cols);
        Some(Counted { own: vec![own; group.len()], known: known.into_iter().map(|c| c as i64).collect() })
    }
}
