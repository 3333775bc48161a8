//! Sizes of kernels in which windows slide over images: convolutions and pools.
//!
//! Such a kernel has modes of two dimensions along the same run-time stride (`(SH * xh, ..), (DH * xh, ..)`), or a
//! precondition that counts windows (`(P - 1) * STRIDE + R <= H + 2 * PAD`). What a size is for follows from these uses.

use crate::analysis::uses::{all_stmts, for_each_ref};
use std::collections::BTreeSet;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::types::{Mode, TensorTy};

/// Assumed extent of filters.
const FILTER: i64 = 3;
/// Log2 of the assumed number of windows in an image.
const LOG2_WINDOWS: u32 = 10;
/// The assumed number of channels.
const CHANNELS: i64 = 256;
/// The assumed number of images.
const IMAGES: i64 = 16;

/// The sizes of such a kernel by use.
#[derive(Default)]
pub(super) struct Images {
    /// Extents of a window.
    filter: BTreeSet<Value>,
    /// Numbers of windows along each dimension of an image.
    windows: BTreeSet<Value>,
    /// Numbers of elements of an image along a dimension. The others determine them.
    lines: BTreeSet<Value>,
    /// Extents of contiguous dimensions.
    channels: BTreeSet<Value>,
}

impl Images {
    /// Of a kernel; `None`: nothing slides.
    pub(super) fn of(k: &Kernel) -> Option<Images> {
        let mut images = Images::default();
        let tensors = || k.params.iter().filter_map(|&p| k.tensor_ty(p));
        tensors().for_each(|tensor| images.modes(k, tensor));
        k.requires.iter().for_each(|&e| images.counted(k, e));
        if images.windows.is_empty() {
            return None;
        }
        for tensor in tensors() {
            for padded in &tensor.padded {
                let own = images.others(k, padded.extent);
                images.lines.extend(own);
            }
        }
        for tensor in tensors() {
            let inner = tensor.shape.last().copied().into_iter();
            let own: Vec<Value> = inner.flat_map(|e| images.others(k, e)).collect();
            images.channels.extend(own);
        }
        Some(images)
    }

    /// The sizes in an expression that have no use yet.
    fn others(&self, k: &Kernel, e: Expr) -> Vec<Value> {
        let of = [&self.filter, &self.windows, &self.lines];
        sizes(k, e).into_iter().filter(|v| !of.iter().any(|known| known.contains(v))).collect()
    }

    /// Modes of two dimensions along the same stride. Images lie at a run-time stride of their own, beside the windows.
    fn modes(&mut self, k: &Kernel, tensor: &TensorTy) {
        let dims: Vec<&[Mode]> = (0..tensor.shape.len()).map(|d| tensor.modes(d).unwrap_or_default()).collect();
        for (d, dim) in dims.iter().enumerate() {
            for other in &dims[d + 1..] {
                let pairs = || dim.iter().flat_map(|a| other.iter().map(move |b| (a, b)));
                let slides = |(a, b): &(&Mode, &Mode)| !strides(k, a.stride).is_disjoint(&strides(k, b.stride));
                let apart = |modes: &[Mode], of: &dyn Fn(&Mode) -> bool| {
                    modes.iter().any(|m| !strides(k, m.stride).is_empty() && !of(m))
                };
                let shared = |m: &Mode| pairs().filter(slides).any(|(a, b)| [a, b].contains(&m));
                let second = apart(other, &shared) && !apart(dim, &shared);
                for (a, b) in pairs().filter(slides) {
                    let (windows, filter) = if second { (b, a) } else { (a, b) };
                    self.windows.extend(sizes(k, windows.extent));
                    self.filter.extend(sizes(k, filter.extent));
                }
                // Of the other modes in the dimension of the filter, the contiguous one is of channels.
                let filters = if second { dim } else { other };
                let unshared = filters.iter().filter(|m| pairs().any(|pair| slides(&pair)) && !shared(m));
                self.channels.extend(unshared.flat_map(|m| sizes(k, m.extent)));
            }
        }
        self.filter.retain(|v| !self.windows.contains(v));
    }

    /// A precondition that counts windows: `(P - 1) * STRIDE + R <= H + 2 * PAD`.
    fn counted(&mut self, k: &Kernel, e: Expr) {
        let (windows, image) = match &k.exprs[e] {
            ExprData::Op { op: Op::Le | Op::Lt, args } => (args[0], args[1]),
            ExprData::Op { op: Op::Ge | Op::Gt, args } => (args[1], args[0]),
            _ => return,
        };
        let image = sizes(k, image);
        if image.is_empty() || !subtracts(k, windows) {
            return;
        }
        let of_windows = sizes(k, windows).into_iter().filter(|v| !image.contains(v));
        let (filter, windows): (Vec<Value>, Vec<Value>) = of_windows.partition(|&v| is_stepped(k, v));
        self.filter.extend(filter);
        self.windows.extend(windows);
        self.lines.extend(image);
    }

    /// Whether a size is the number of elements of an image along a dimension.
    pub(super) fn is_line(&self, size: Value) -> bool {
        self.lines.contains(&size)
    }

    /// The assumed value of a size before preconditions.
    pub(super) fn assumed(&self, size: Value) -> i64 {
        let windows = u32::try_from(self.windows.len()).unwrap_or(1).max(1);
        match size {
            _ if self.filter.contains(&size) => FILTER,
            _ if self.windows.contains(&size) || self.lines.contains(&size) => 1 << LOG2_WINDOWS.div_ceil(windows),
            _ if self.channels.contains(&size) => CHANNELS,
            _ => IMAGES,
        }
    }
}

/// The sizes in an expression.
fn sizes(k: &Kernel, e: Expr) -> BTreeSet<Value> {
    refs(k, e, |def| matches!(def, ValueDef::Size))
}

/// The run-time strides in an expression.
fn strides(k: &Kernel, e: Expr) -> BTreeSet<Value> {
    refs(k, e, |def| matches!(def, ValueDef::Stride))
}

fn refs(k: &Kernel, e: Expr, is: impl Fn(&ValueDef) -> bool) -> BTreeSet<Value> {
    let mut found = BTreeSet::new();
    for_each_ref(k, e, &mut |v| {
        if is(&k.values[v].def) {
            found.insert(v);
        }
    });
    found
}

/// Whether something is subtracted in an expression.
fn subtracts(k: &Kernel, e: Expr) -> bool {
    matches!(&k.exprs[e], ExprData::Op { op: Op::Sub, .. }) || k.children(e).into_iter().any(|e| subtracts(k, e))
}

/// Whether a loop goes over a size in steps of 1.
fn is_stepped(k: &Kernel, size: Value) -> bool {
    all_stmts(k, k.body).into_iter().any(|s| match &k.stmts[s] {
        StmtData::For { end, step, .. } => {
            k.as_int(*step) == Some(1) && matches!(k.exprs[*end], ExprData::Ref(v) if v == size)
        }
        _ => false,
    })
}
