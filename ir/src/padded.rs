//! Padded tensors: which modes step along the lines of a [`Padded`], and what is in memory.

use crate::entities::{Expr, Value};
use crate::facts::contiguous_dim;
use crate::kernel::{ExprData, Kernel};
use crate::types::{DimStride, GivenStride, Padded, TensorTy};
use crate::typing::factor_list;

/// A mode that steps along padded lines.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// Which of [`TensorTy::padded`].
    pub of: usize,
    /// Lines that a step of the mode is: this number times the product of `factors`.
    pub literal: i128,
    /// Sizes and compile-time parameters, none of them a stride with padding.
    pub factors: Vec<Expr>,
}

impl Step {
    /// Lines of a step, if they are known.
    pub fn known(&self) -> Option<i64> {
        i64::try_from(self.literal).ok().filter(|_| self.factors.is_empty())
    }
}

/// The step of a mode with this stride along lines; `None`: it does not step along padded lines.
pub fn step(k: &Kernel, t: &TensorTy, stride: Expr) -> Option<Step> {
    let (literal, mut factors) = factor_list(k, &[stride]);
    let padded = |e: &Expr| match k.exprs[*e] {
        ExprData::Ref(v) => t.padded.iter().position(|p| p.stride == v),
        _ => None,
    };
    let (at, of) = factors.iter().enumerate().find_map(|(i, e)| padded(e).map(|of| (i, of)))?;
    factors.remove(at);
    Some(Step { of, literal, factors })
}

/// Whether a stride decides for each padded line whether the mode steps along it: the stride is a product with exactly
/// one padded stride as a factor, or with none.
pub fn is_clear(k: &Kernel, t: &TensorTy, stride: Expr) -> bool {
    let named = |e: Expr| {
        let mut found = 0usize;
        let mut work = vec![e];
        while let Some(e) = work.pop() {
            if let ExprData::Ref(v) = k.exprs[e] {
                found += usize::from(t.padded.iter().any(|p| p.stride == v));
            }
            work.extend(k.children(e));
        }
        found
    };
    match named(stride) {
        0 => true,
        1 => step(k, t, stride).is_some(),
        _ => false,
    }
}

/// The strides of the modes of dimension `dim`, outermost first; `None` where none is written.
pub fn mode_strides(t: &TensorTy, dim: usize) -> Option<Vec<Expr>> {
    match t.given_stride(dim)? {
        GivenStride::Written(stride) => Some(stride.strides()),
        _ => None,
    }
}

/// The stride of a dimension of the memory of a padded tensor.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum MemoryStride {
    /// A mode without padding.
    Mode(Expr),
    /// Of padded lines.
    Lines(Value),
}

/// The dimensions of a padded tensor as it is in memory, as the host passes it: the modes without padding, and the padded lines where the first
/// mode steps along them.
pub fn memory(k: &Kernel, t: &TensorTy) -> Vec<(Expr, MemoryStride)> {
    let mut dims = Vec::new();
    let mut seen = vec![false; t.padded.len()];
    let lines = |p: &Padded| (p.extent, MemoryStride::Lines(p.stride));
    for d in 0..t.shape.len() {
        let Some(GivenStride::Written(stride)) = t.given_stride(d) else { continue };
        let modes: Vec<(Expr, Expr)> = match stride {
            DimStride::One(stride) => vec![(t.shape[d], *stride)],
            DimStride::Modes(modes) => modes.iter().map(|m| (m.extent, m.stride)).collect(),
        };
        for (extent, stride) in modes {
            match step(k, t, stride) {
                // Of modes that step along lines and have one place each nothing is left but this.
                None if k.as_int(extent) == Some(1) && k.as_int(stride) == Some(0) => {}
                None => dims.push((extent, MemoryStride::Mode(stride))),
                Some(step) => {
                    if !std::mem::replace(&mut seen[step.of], true) {
                        dims.push(lines(&t.padded[step.of]));
                    }
                }
            }
        }
    }
    // Lines that no mode steps along, as all have extent 1.
    let unseen = t.padded.iter().zip(&seen).filter(|(_, seen)| !**seen).map(|(p, _)| lines(p));
    unseen.chain(dims.clone()).collect()
}

/// Most dimensions of a pixel's place in im2col mode: tensor maps have five, of which one is of channels and one of images.
const MAX_LINES: usize = 3;
/// Largest step between pixels (`elementStrides` of `cuTensorMapEncodeIm2col`).
const MAX_STEP: i64 = 8;

/// How a padded tensor is read by TMA in im2col mode (PTX ISA 5.5.4): one dimension counts pixels, the other what a window has of each. Places within
/// a window may be a dimension of their own.
#[derive(Clone, PartialEq, Debug)]
pub struct Im2col {
    /// The dimension whose innermost mode is contiguous: channels, and places within a window where they have no dimension.
    pub window: usize,
    /// The dimension of places within a window.
    pub places: usize,
    /// The dimension of images and pixels.
    pub pixels: usize,
    /// Lines from pixel to pixel, of each of [`TensorTy::padded`].
    pub steps: Vec<u32>,
    /// Lines from place to place within a window, of each; `None`: windows have one place along them.
    pub offsets: Vec<Option<Step>>,
    /// The dimensions of the memory ([`memory`]) from the contiguous one on: channels, lines innermost first, images.
    pub memory: Vec<u32>,
}

/// The same for a tensor, or the reason why there is none.
///
/// # Errors
/// The fact that is missing about the mode.
pub fn im2col(k: &Kernel, tensor: Value) -> Result<Im2col, &'static str> {
    let t = k.tensor_ty(tensor).ok_or("it is not a tensor")?;
    if !(1..=MAX_LINES).contains(&t.padded.len()) || !(2..=3).contains(&t.shape.len()) {
        return Err("it has other than two or three dimensions, or more than three padded strides");
    }
    let window = contiguous_dim(k, tensor).ok_or("no dimension has stride 1")?;
    let of = |d: usize| -> Vec<Option<Step>> {
        mode_strides(t, d).unwrap_or_default().into_iter().map(|e| step(k, t, e)).collect()
    };
    let in_order = |&d: &usize| {
        let own = of(d);
        own.len() == t.padded.len() + 1
            && own[0].is_none()
            && own[1..].iter().enumerate().all(|(i, s)| s.as_ref().is_some_and(|s| s.of == i))
    };
    let pixels = (0..t.shape.len())
        .filter(|&d| d != window)
        .find(in_order)
        .ok_or("no dimension is of images and of pixels along each padded stride, in their order")?;
    let places = (0..t.shape.len()).find(|&d| d != window && d != pixels).unwrap_or(window);
    let own = of(pixels);
    let known = |s: &Option<Step>| s.as_ref().and_then(Step::known).filter(|n| (1..=MAX_STEP).contains(n));
    let steps: Option<Vec<u32>> = own[1..].iter().map(|s| known(s).map(|n| n as u32)).collect();
    let steps = steps.ok_or("steps from pixel to pixel are not known, or more than 8")?;
    let mut inner = of(window);
    if inner.pop() != Some(None) || places != window && !inner.is_empty() {
        return Err("its contiguous dimension is not of channels");
    }
    if places != window {
        inner = of(places);
    }
    let mut offsets = vec![None; t.padded.len()];
    for place in &inner {
        match place {
            Some(s) if offsets[s.of].is_none() => offsets[s.of] = Some(s.clone()),
            _ => return Err("windows have other places than one along each padded stride"),
        }
    }
    let dims = memory(k, t);
    let lines = |p: &Padded| dims.iter().position(|(_, s)| *s == MemoryStride::Lines(p.stride));
    let mode = |d: usize, last: bool| {
        let strides = mode_strides(t, d)?;
        let e = if last { *strides.last()? } else { *strides.first()? };
        dims.iter().position(|(_, s)| *s == MemoryStride::Mode(e))
    };
    let order =
        std::iter::once(mode(window, true)).chain(t.padded.iter().rev().map(lines)).chain([mode(pixels, false)]);
    let memory: Option<Vec<u32>> = order.map(|at| at.map(|at| at as u32)).collect();
    Ok(Im2col { window, places, pixels, steps, offsets, memory: memory.ok_or("its memory has other dimensions")? })
}
