//! Dimensions of several modes: an index becomes the sum of its digits times strides.
//!
//! The digits are quotients by the extents, innermost first (`divide.rs`). If an extent is known only at launch, the
//! division is a multiplication by the reciprocal, which is computed once at the start of the kernel. Indices of
//! existing elements are below 2^31. Other indices give a meaningless result that is not used.

use super::ranged_ints::{Int, Repr};
use super::state::Lower;
use super::windows::WindowDim;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::extents::MAX_STRIDE;
use tilec_ir::kernel::ExprData;
use tilec_ir::ops::Op;
use tilec_ir::typing::{ResolvedView, ViewDim};

impl Lower<'_> {
    /// A stride. The launch contract demands that it is at most [`MAX_STRIDE`].
    pub(super) fn stride_value(&mut self, e: Expr) -> Result<Int, Reported> {
        match self.k.exprs[e].clone() {
            ExprData::Op { op: Op::Mul, args } => {
                let (a, b) = (self.stride_value(args[0])?, self.stride_value(args[1])?);
                Ok(self.bounded_product(a, b, MAX_STRIDE))
            }
            _ => self.index(e),
        }
    }

    /// The digits of an index of a dimension of several modes, each with the stride of its mode.
    pub(super) fn digits(&mut self, tensor: Value, dim: usize, index: Int) -> Result<Vec<(Int, Int)>, Reported> {
        let modes = self.k.tensor_ty(tensor).and_then(|t| t.modes(dim)).expect("a dimension of several modes").to_vec();
        let mut left = index;
        let mut terms = Vec::with_capacity(modes.len());
        for (i, mode) in modes.iter().enumerate().rev() {
            let stride = self.stride_value(mode.stride)?;
            if i == 0 {
                terms.push((left, stride));
            } else {
                let extent = self.index(mode.extent)?;
                let (quotient, remainder) = self.divide(left, extent);
                terms.push((remainder, stride));
                left = quotient;
            }
        }
        Ok(terms)
    }

    /// Quotient and remainder of a non-negative number; for a negative one the result is undefined.
    fn divide(&mut self, n: Int, d: Int) -> (Int, Int) {
        let zero = Int::constant(0);
        if n.lo >= 0 && n.hi < d.lo {
            return (zero, n);
        }
        let n = match n.as_const() {
            Some(n) => Int::constant(n.clamp(0, i64::from(i32::MAX))),
            None => Int { lo: n.lo.max(0), hi: n.hi.clamp(0, i128::from(i32::MAX)), ..n },
        };
        let quotients = (n.lo / d.hi.max(1), n.hi / d.lo.max(1));
        let remainders = (0, n.hi.min(d.hi - 1));
        match (n.as_const(), d.as_const()) {
            (Some(n), Some(d)) => return (Int::constant(n / d), Int::constant(n % d)),
            (None, Some(1)) => return (n, zero),
            _ => {}
        }
        let (q, r) = match d.as_const() {
            Some(d) if d.count_ones() == 1 => {
                let x = self.in32(n);
                let shift = Operand::Imm(i64::from(d.trailing_zeros()));
                let q = self.emit.pure(Class::B32, P::ShrU32, [x.into(), shift]);
                (q, self.emit.pure(Class::B32, P::AndB32, [x.into(), Operand::Imm(d - 1)]))
            }
            _ => self.divide32(n, d),
        };
        (Int::r32(q, quotients.0, quotients.1), Int::r32(r, remainders.0, remainders.1))
    }

    /// The sum of digits times strides in bytes; both are non-negative.
    fn offset(&mut self, terms: &[(Int, Int)], bytes: i64) -> Operand {
        let mut sum = Operand::Imm(0);
        for &(index, stride) in terms {
            let product = match (index.as_const(), stride.as_const()) {
                (Some(x), Some(s)) => Operand::Imm(x.wrapping_mul(s).wrapping_mul(bytes)),
                (None, Some(s)) => self.scaled(index, s.wrapping_mul(bytes)),
                (Some(x), None) => self.scaled(stride, x.wrapping_mul(bytes)),
                (None, None) => {
                    // Strides do not change in loops.
                    let (a, b) = (self.unsigned64(index), self.scaled(stride, bytes));
                    self.emit.pure(Class::B64, P::MulLoS64, [a, b]).into()
                }
            };
            sum = match (sum, product) {
                (Operand::Imm(x), Operand::Imm(y)) => Operand::Imm(x.wrapping_add(y)),
                (Operand::Imm(0), p) => p,
                (s @ Operand::Imm(_), p) => self.emit.pure(Class::B64, P::AddS64, [p, s]).into(),
                (s, p) => self.emit.pure(Class::B64, P::AddS64, [s, p]).into(),
            };
        }
        sum
    }

    /// A non-negative number times a non-negative literal, in 64 bits.
    fn scaled(&mut self, x: Int, factor: i64) -> Operand {
        match (x.repr, factor) {
            (_, 1) => self.unsigned64(x),
            (Repr::R32(r), f) if (0..=i64::from(u32::MAX)).contains(&f) => {
                self.emit.pure(Class::B64, P::MulWideU32, [r.into(), Operand::Imm(f)]).into()
            }
            (_, f) if f.count_ones() == 1 => {
                let (x, shift) = (self.unsigned64(x), Operand::Imm(i64::from(f.trailing_zeros())));
                self.emit.pure(Class::B64, P::ShlB64, [x, shift]).into()
            }
            (_, f) => {
                let x = self.unsigned64(x);
                self.emit.pure(Class::B64, P::MulLoS64, [x, Operand::Imm(f)]).into()
            }
        }
    }

    /// A non-negative number as a 64-bit operand, so that the upper half is known to be zero.
    fn unsigned64(&mut self, a: Int) -> Operand {
        match a.repr {
            Repr::R32(r) => self.emit.pure(Class::B64, P::CvtU64U32, [r.into()]).into(),
            _ => self.as64(a),
        }
    }

    /// `base + bytes · Σ index · stride` over the terms of each dimension. Loop-invariant terms are summed in front of
    /// the loop. The terms of each dimension have their own sum, so that elements of a tile share the sums of their
    /// rows and columns.
    pub(super) fn pointer_by_depth(&mut self, base: Reg, dims: &[Vec<(Int, Int)>], bytes: i64) -> Reg {
        let depth = |cx: &Self, x: Int| match x.repr {
            Repr::R32(r) | Repr::R64(r) => cx.emit.depth_of(r),
            Repr::Const(_) => 0,
        };
        // Terms of one dimension and one loop depth are summed first.
        let mut levels: Vec<((usize, usize), (Int, Int))> = Vec::new();
        for (dim, terms) in dims.iter().enumerate() {
            for &(index, stride) in terms {
                if index.as_const() != Some(0) && stride.as_const() != Some(0) {
                    levels.push(((depth(self, index).max(depth(self, stride)), dim), (index, stride)));
                }
            }
        }
        levels.sort_by_key(|(together, _)| *together);
        let mut pointer = base;
        for level in levels.chunk_by(|a, b| a.0 == b.0) {
            let terms: Vec<(Int, Int)> = level.iter().map(|(_, t)| *t).collect();
            match self.offset(&terms, bytes) {
                Operand::Imm(0) => {}
                offset => pointer = self.emit.pure(Class::B64, P::AddS64, [pointer.into(), offset]),
            }
        }
        pointer
    }

    /// The sum of two parts of an index.
    ///
    /// # Errors
    /// It may not fit 64 bits.
    pub(super) fn sum(&mut self, view: &ResolvedView, a: Int, b: Int) -> Result<Int, Reported> {
        match self.int_op(Op::Add, a, b) {
            Some(sum) => Ok(sum),
            None => {
                let e = view.dims.iter().flat_map(ViewDim::starts).next().copied();
                let span = e.map_or(self.k.name_span, |e| self.k.expr_spans[e]);
                Err(self.unsupported_at(span, "this window may start too far out"))
            }
        }
    }

    /// The thread's coordinate within a block, and its block number combined with `block`, the part of the register
    /// index.
    pub(super) fn thread_part(&mut self, dim: &WindowDim, block: u64) -> (Int, Int) {
        let tid = self.tid();
        let part = |mask: u64| dim.cols.iter().map(|c| c & mask).collect::<Vec<u64>>();
        let (low, high) = (part(!dim.blocks), part(dim.blocks));
        let within = self.linear_map(tid, &low);
        let number = self.linear_map(tid, &high);
        let reach = dim.reach & dim.blocks;
        let number = match number.repr {
            // Bits that both the thread and the register index set are combined by XOR.
            Repr::R32(r) if block != 0 && reach & block != 0 => {
                let x = self.emit.pure(Class::B32, P::XorB32, [r.into(), Operand::Imm(block as i64)]);
                Int::r32(x, 0, i128::from(reach | block))
            }
            _ => self.int_op(Op::Add, number, Int::constant(block as i64)).expect("elements of a tile fit"),
        };
        (within, number)
    }
}
