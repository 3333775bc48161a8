//! Padded tensors: their base address, and the lines of an element.
//!
//! The line of an element is the sum of digits times steps, minus the lines of padding in front. The launch contract
//! demands that the lines of existing elements stay within [`MAX_LINES`], so 32 bits hold them. For other elements, a
//! bound of the window's dimensions disables the access.

use super::ranged_ints::Int;
use super::state::Lower;
use super::windows::GlobalWindow;
use crate::inst::{Class, Operand, Reg};
use crate::launch::Im2colMap;
use crate::ops::Op as P;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::Kernel;
use tilec_ir::ops::Op;
use tilec_ir::padded::{Im2col, Step, mode_strides, step};
use tilec_ir::print::print_expr;
use tilec_ir::types::{Padded, TensorTy};
use tilec_ir::typing::{ResolvedView, ViewDim};

/// Maximum of lines that the modes of a padded tensor reach, and of lines in front of it.
pub(super) const MAX_LINES: i64 = 1 << 30;

impl Lower<'_> {
    /// The padded lines of a tensor.
    pub(super) fn padded(&self, tensor: Value) -> Vec<Padded> {
        self.k.tensor_ty(tensor).map(|t| t.padded.clone()).unwrap_or_default()
    }

    /// Lines of padding in front.
    pub(super) fn lines_in_front(&mut self, p: &Padded) -> Result<Int, Reported> {
        let x = self.index(p.behind)?;
        let (lo, hi) = (i128::from(-MAX_LINES), i128::from(MAX_LINES));
        Ok(Int { lo: x.lo.clamp(lo, hi), hi: x.hi.clamp(lo, hi), ..x })
    }

    /// The address of the element with index 0 in all modes, which is the padding in front of the memory. `bytes`: the
    /// size of an element in address units.
    pub(super) fn first_of_padded(&mut self, tensor: Value, base: Reg, bytes: i64) -> Result<Reg, Reported> {
        let mut base = base;
        for p in self.padded(tensor) {
            let lines = self.lines_in_front(&p)?;
            if lines.as_const() == Some(0) {
                continue;
            }
            let stride = self.ints[p.stride].expect("strides are parameters");
            let (stride, lines) = (self.as64(stride), self.as64(lines));
            let elements = self.emit.pure(Class::B64, P::MulLoS64, [stride, lines]);
            let front = self.emit.pure(Class::B64, P::MulLoS64, [elements.into(), Operand::Imm(bytes)]);
            base = self.emit.pure(Class::B64, P::SubS64, [base.into(), front.into()]);
        }
        Ok(base)
    }

    /// Whether the element with this index of the tile is on lines in memory; `None`: always.
    ///
    /// # Errors
    /// A coordinate may not fit 64 bits.
    pub(super) fn on_lines(
        &mut self,
        view: &ResolvedView,
        w: &GlobalWindow,
        index: u64,
    ) -> Result<Option<Reg>, Reported> {
        let padded = self.padded(view.base);
        if padded.is_empty() {
            return Ok(None);
        }
        let mut lines = self.first_lines(view.base)?;
        for dim in &w.dims {
            let c = index >> dim.shift & ((1 << dim.bits) - 1);
            if let Some(rows) = &dim.rows {
                let row = rows.of(index);
                self.add_lines(view.base, dim.dim, (row, Int::constant(0)), &mut lines)?;
                continue;
            }
            let (within, number) = self.thread_part(dim, c & dim.blocks);
            let number = self.sum(view, dim.start, number)?;
            let within = self.sum(view, within, Int::constant((c & !dim.blocks) as i64))?;
            self.add_lines(view.base, dim.dim, (number, within), &mut lines)?;
        }
        for (d, dim) in view.dims.iter().enumerate() {
            if let ViewDim::Fixed(e) = dim {
                let index = self.index(*e)?;
                self.add_lines(view.base, d, (index, Int::constant(0)), &mut lines)?;
            }
        }
        self.in_memory(view.base, lines)
    }

    /// Whether a single element, given by its index along each dimension, is on lines in memory; `None`: always.
    ///
    /// # Errors
    /// A coordinate may not fit 64 bits.
    pub(super) fn element_on_lines(&mut self, tensor: Value, at: &[Int]) -> Result<Option<Reg>, Reported> {
        let mut lines = self.first_lines(tensor)?;
        for (d, &index) in at.iter().enumerate() {
            self.add_lines(tensor, d, (index, Int::constant(0)), &mut lines)?;
        }
        self.in_memory(tensor, lines)
    }

    /// The lines of the element with index 0 in all modes, relative to memory. The padding is subtracted here, so that
    /// all columns of a tile share the lines of its rows.
    fn first_lines(&mut self, tensor: Value) -> Result<Vec<Int>, Reported> {
        let padded = self.padded(tensor);
        let mut lines = Vec::with_capacity(padded.len());
        for p in &padded {
            let front = self.lines_in_front(p)?;
            lines.push(self.line_op(Op::Sub, Int::constant(0), front));
        }
        Ok(lines)
    }

    /// Whether these lines, counted from the first one in memory, exist in the tensor.
    fn in_memory(&mut self, tensor: Value, lines: Vec<Int>) -> Result<Option<Reg>, Reported> {
        let mut all = None;
        for (p, line) in self.padded(tensor).iter().zip(lines) {
            let extent = self.index(p.extent)?;
            let inside = self.unsigned_less(line, extent);
            all = self.emit.and(all, inside);
        }
        Ok(all)
    }

    /// Whether a tensor may have no line in memory.
    ///
    /// # Errors
    /// An extent may not fit 64 bits.
    pub(super) fn lines_may_be_missing(&mut self, tensor: Value) -> Result<bool, Reported> {
        let mut missing = false;
        for p in self.padded(tensor) {
            missing |= self.index(p.extent)?.lo < 1;
        }
        Ok(missing)
    }

    /// Adds the lines of an index along a dimension: the digits of its first part, plus the second part within the
    /// innermost mode.
    fn add_lines(
        &mut self,
        tensor: Value,
        dim: usize,
        (number, within): (Int, Int),
        lines: &mut [Int],
    ) -> Result<(), Reported> {
        let steps = self.steps(tensor, dim);
        if steps.iter().all(Option::is_none) {
            return Ok(());
        }
        let several = self.k.tensor_ty(tensor).is_some_and(|t| t.modes(dim).is_some());
        // Innermost mode first.
        let digits = if several { self.digits(tensor, dim, number)? } else { vec![(number, Int::constant(1))] };
        for (i, ((digit, _), step)) in digits.into_iter().zip(steps.into_iter().rev()).enumerate() {
            let Some(step) = step else { continue };
            let digit = if i == 0 { self.line_op(Op::Add, digit, within) } else { digit };
            let per = self.lines_of_step(&step)?;
            let own = self.bounded_product(digit, per, i128::from(MAX_LINES));
            lines[step.of] = self.line_op(Op::Add, own, lines[step.of]);
        }
        Ok(())
    }

    /// How the modes of a dimension step along padded lines, outermost first.
    pub(super) fn steps(&self, tensor: Value, dim: usize) -> Vec<Option<Step>> {
        let ty = self.k.tensor_ty(tensor).expect("a tensor");
        let strides = mode_strides(ty, dim).unwrap_or_default();
        strides.into_iter().map(|e| step(self.k, ty, e)).collect()
    }

    /// The number of lines in one step of a mode.
    pub(super) fn lines_of_step(&mut self, step: &Step) -> Result<Int, Reported> {
        let literal = i64::try_from(step.literal.clamp(0, i128::from(MAX_LINES))).expect("it fits");
        let mut lines = Int::constant(literal);
        for &e in &step.factors {
            let factor = self.index(e)?;
            lines = self.bounded_product(factor, lines, i128::from(MAX_LINES));
        }
        Ok(lines)
    }

    /// A sum or difference of lines, which fits 32 bits.
    pub(super) fn line_op(&mut self, op: Op, a: Int, b: Int) -> Int {
        let bound = i128::from(i32::MAX);
        let within = |x: Int| Int { lo: x.lo.clamp(-bound, bound), hi: x.hi.clamp(-bound, bound), ..x };
        let (a, b) = (within(a), within(b));
        match (op, a.as_const(), b.as_const()) {
            (_, Some(_), Some(_)) | (_, _, Some(0)) | (Op::Add, Some(0), _) => {
                self.int_op(op, a, b).expect("numbers of 32 bits")
            }
            _ => {
                let (x, y) = (self.as32(a), self.as32(b));
                let (p, lo, hi) = match op {
                    Op::Sub => (P::SubS32, a.lo - b.hi, a.hi - b.lo),
                    _ => (P::AddS32, a.lo + b.lo, a.hi + b.hi),
                };
                Int::r32(self.emit.pure(Class::B32, p, [x, y]), lo.clamp(-bound, bound), hi.clamp(-bound, bound))
            }
        }
    }
}

/// Launch conditions that modes stay within [`MAX_LINES`].
pub(super) fn limits(k: &Kernel, t: &TensorTy) -> Vec<String> {
    let mut texts = Vec::new();
    for (i, p) in t.padded.iter().enumerate() {
        if k.as_int(p.behind).is_none() {
            let text = print_expr(k, p.behind);
            texts.push(format!("{text} >= -{MAX_LINES} && {text} <= {MAX_LINES}"));
        }
        let reach = reach(k, t, i);
        if !reach.is_empty() {
            texts.push(format!("{} <= {MAX_LINES}", reach.join(" + ")));
        }
    }
    texts
}

/// The last line that modes reach, counted from the first one: a term for each mode.
pub(super) fn reach(k: &Kernel, t: &TensorTy, of: usize) -> Vec<String> {
    let mut terms = Vec::new();
    for d in 0..t.shape.len() {
        let extents: Vec<Expr> = t.modes(d).map_or_else(|| vec![t.shape[d]], |m| m.iter().map(|m| m.extent).collect());
        for (extent, stride) in extents.into_iter().zip(mode_strides(t, d).unwrap_or_default()) {
            if let Some(step) = step(k, t, stride).filter(|step| step.of == of) {
                terms.push(step_text(k, extent, &step));
            }
        }
    }
    terms
}

/// The distance in lines from the first to the last index of a mode.
pub(super) fn step_text(k: &Kernel, extent: Expr, step: &Step) -> String {
    let mut text = format!("({} - 1)", parenthesised(k, extent));
    if step.literal != 1 {
        text = format!("{text} * {}", step.literal);
    }
    for &e in &step.factors {
        text = format!("{text} * {}", parenthesised(k, e));
    }
    text
}

/// An expression, in parentheses if a factor needs them.
pub(super) fn parenthesised(k: &Kernel, e: Expr) -> String {
    let text = print_expr(k, e);
    if k.children(e).is_empty() { text } else { format!("({text})") }
}

/// The bounding box of pixels for a descriptor in im2col mode: from the padding to the last pixel.
pub(super) fn corners(k: &Kernel, tensor: Value, of: &Im2col) -> Im2colMap {
    let mut map = Im2colMap { lower: Vec::new(), upper: Vec::new(), steps: Vec::new() };
    let t = k.tensor_ty(tensor).expect("a tensor");
    let modes = t.modes(of.pixels).expect("images and pixels are modes");
    for (i, p) in t.padded.iter().enumerate().rev() {
        let behind = parenthesised(k, p.behind);
        let step = Step { of: i, literal: of.steps[i].into(), factors: Vec::new() };
        let last = step_text(k, modes[i + 1].extent, &step);
        map.lower.push(format!("0 - {behind}"));
        map.upper.push(format!("{last} + 1 - {behind} - {}", parenthesised(k, p.extent)));
        map.steps.push(of.steps[i]);
    }
    map
}

/// Launch conditions that the corners and offsets of an im2col descriptor fit their fields (`cuTensorMapEncodeIm2col`,
/// PTX ISA 5.5.4.2).
pub(super) fn im2col_limits(k: &Kernel, tensor: Value, of: &Im2col, map: &Im2colMap) -> Vec<String> {
    let (corner, offset) = match of.steps.len() {
        1 => (1i64 << 15, (1i64 << 16) - 1),
        2 => (1 << 7, (1 << 8) - 1),
        _ => (1 << 4, (1 << 5) - 1),
    };
    let mut texts: Vec<String> = map
        .lower
        .iter()
        .chain(&map.upper)
        .map(|text| format!("{text} >= -{corner} && {text} <= {}", corner - 1))
        .collect();
    let t = k.tensor_ty(tensor).expect("a tensor");
    let strides = mode_strides(t, of.places).unwrap_or_default();
    let extents = t.modes(of.places).map_or_else(|| vec![t.shape[of.places]], |m| m.iter().map(|m| m.extent).collect());
    for (extent, stride) in extents.into_iter().zip(strides) {
        if let Some(step) = step(k, t, stride) {
            texts.push(format!("{} <= {offset}", step_text(k, extent, &step)));
        }
    }
    texts
}
