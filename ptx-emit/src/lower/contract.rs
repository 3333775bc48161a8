//! The launch contract of a kernel.

use super::state::Lower;
use super::uses::{access, reads};
use crate::launch::{Launch, LaunchParam, ParamKind};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::extents::{MAX_BLOCKS_X, MAX_BLOCKS_YZ, MAX_SIZE, MAX_STRIDE, Ranges};
use tilec_ir::interp::Number;
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::padded::{MemoryStride, im2col, memory};
use tilec_ir::print::print_expr;
use tilec_ir::types::{DimStride, Elem, GivenStride, Mode, OrderRef, Strides, TensorTy};
use tilec_ir::typing::const_int;
use tilec_ir::zero_sizes::zero_sizes;

impl Lower<'_> {
    pub(super) fn launch(&self, threads: u32) -> Launch {
        self.described(threads, |v| self.may_alias(v))
    }

    /// The launch contract; `may_alias` names the tensors that may share an output's address.
    pub(super) fn described(&self, threads: u32, may_alias: impl Fn(Value) -> Vec<String>) -> Launch {
        let k = self.k;
        let name = |v: Value| k.values[v].name.clone();
        let mut params = Vec::new();
        for &v in &k.params {
            let kind = match &k.values[v].def {
                ValueDef::Tensor(t) if t.is_of_cluster() => continue,
                ValueDef::Tensor(t) => ParamKind::Tensor {
                    elem: self.elem(v).expect("specialised"),
                    align: self.pointer_align(v),
                    access: access(k, v),
                    shape: shape_texts(k, t),
                    strides: all_stride_texts(k, v, t),
                    pointers: t.pointers,
                    scratch: t.scratch,
                    reads_gaps: self.reads_gaps(v),
                    constant: t.constant,
                    may_alias: may_alias(v),
                },
                ValueDef::Scalar { default, .. } => {
                    let elem = self.elem(v).expect("specialised");
                    ParamKind::Scalar { elem, default: default.and_then(|e| default_number(k, elem, e)) }
                }
                _ => continue,
            };
            params.push(LaunchParam { name: name(v), kind });
        }
        params.extend(k.sizes.iter().map(|&v| LaunchParam { name: name(v), kind: ParamKind::Size }));
        params.extend(
            k.strides.iter().map(|&v| LaunchParam { name: name(v), kind: ParamKind::Stride { packed: packed(k, v) } }),
        );
        params.extend(
            self.map_params().into_iter().map(|(name, map)| LaunchParam { name, kind: ParamKind::TensorMap(map) }),
        );
        let mut requires: Vec<String> = k.requires.iter().map(|&e| print_expr(k, e)).collect();
        let zeros = zero_sizes(k);
        let sizes = k.sizes.iter().filter(|v| !zeros.contains(v));
        requires.extend(sizes.map(|&v| format!("{0} >= 1 && {0} <= {MAX_SIZE}", name(v))));
        requires.extend(k.strides.iter().map(|&v| format!("{0} >= 0 && {0} <= {MAX_STRIDE}", name(v))));
        for text in limits(k) {
            if !requires.contains(&text) {
                requires.push(text);
            }
        }
        for (map, (_, param)) in self.maps.iter().zip(self.map_params()) {
            if let (Ok(of), Some(pixels)) = (im2col(k, map.tensor), param.im2col) {
                for text in super::padded::im2col_limits(k, map.tensor, &of, &pixels) {
                    if !requires.contains(&text) {
                        requires.push(text);
                    }
                }
            }
        }
        let grid = self.launch_grid();
        for (text, limit) in grid.iter().zip([MAX_BLOCKS_X, MAX_BLOCKS_YZ, MAX_BLOCKS_YZ]) {
            if text.parse::<u32>().is_err() {
                requires.push(format!("{text} <= {limit}"));
            }
        }
        // Blocks that share a tile (`ctas`) add no condition: the grid is a multiple of the cluster for any number of
        // tiles.
        let along = grid.iter().zip(&self.emit.func.cluster).filter(|_| self.ctas() == 1);
        for (text, &blocks) in along.filter(|&(_, &blocks)| blocks > 1) {
            requires.push(format!("({text}) % {blocks} == 0"));
        }
        let dynamic = self.smem_bytes > 48 * 1024;
        Launch {
            entry: k.name.clone(),
            target: self.target,
            block: [threads, 1, 1],
            cluster: self.emit.func.cluster,
            programmatic: self.overlaps(),
            dynamic_smem_bytes: if dynamic { self.smem_bytes as u32 } else { 0 },
            grid,
            params,
            requires,
        }
    }

    fn launch_grid(&self) -> [String; 3] {
        let k = self.k;
        let text = |i: usize| k.grid.get(i).map_or_else(|| "1".to_owned(), |g| print_expr(k, g.extent));
        let group = self.raster();
        if self.ctas() > 1 {
            return [format!("({}) * {}", text(0), self.ctas()), text(1), text(2)];
        }
        if group > 1 && k.grid.len() >= 2 {
            [format!("({}) * {group}", text(0)), format!("ceildiv({}, {group})", text(1)), text(2)]
        } else {
            [text(0), text(1), text(2)]
        }
    }

    /// Whether accesses to a tensor also load the gaps between its elements.
    fn reads_gaps(&self, tensor: Value) -> bool {
        self.k.statement_data().any(|s| {
            matches!(s, StmtData::Copy { src, attrs, .. } if attrs.unaligned().is_some() && reads(self.k, *src, tensor))
        })
    }

    /// Alignment in bytes of the address of a tensor, or of each of its addresses: that of the widest access, or the
    /// declared one.
    pub(super) fn pointer_align(&self, tensor: Value) -> u32 {
        let elem = self.elem(tensor).expect("specialised");
        let bytes = |count: u32| elem.bytes_of(count.into()) as u32;
        let mut align = bytes(1);
        for s in self.k.statement_data() {
            let StmtData::Copy { src, dst, attrs } = s else { continue };
            if reads(self.k, *src, tensor) || reads(self.k, *dst, tensor) {
                let read = attrs.unaligned().filter(|_| reads(self.k, *src, tensor));
                align = align.max(bytes(read.or(attrs.vec).unwrap_or(1)));
                if attrs.is_tensor() || attrs.is_fragment() {
                    align = align.max(16);
                }
            }
        }
        self.k.tensor_ty(tensor).and_then(|t| t.align).map_or(align, |a| a.max(align))
    }
}

/// Conditions that keep computed extents and strides within the bounds of given ones.
fn limits(k: &Kernel) -> Vec<String> {
    let mut texts = Vec::new();
    for t in k.params.iter().filter_map(|&v| k.tensor_ty(v)).filter(|t| !t.is_of_cluster()) {
        let strides = match &t.strides {
            Strides::Explicit(list) => list.iter().flat_map(DimStride::strides).collect(),
            Strides::Ordered(_) => Vec::new(),
        };
        let limited = t.shape.iter().map(|&e| (e, MAX_SIZE)).chain(strides.into_iter().map(|e| (e, MAX_STRIDE)));
        for (e, limit) in limited {
            if !k.children(e).is_empty() && largest(k, e) > limit {
                texts.push(format!("{} <= {limit}", print_expr(k, e)));
            }
        }
        texts.extend(super::padded::limits(k, t));
    }
    texts
}

/// The largest value that an expression over sizes and strides can have.
fn largest(k: &Kernel, e: Expr) -> i128 {
    Ranges::of_sizes(k).of(e).map_or(i128::MAX, |x| x.hi)
}

/// The extents of a tensor in memory. For a padded tensor they differ from the modes that the kernel sees.
fn shape_texts(k: &Kernel, t: &TensorTy) -> Vec<Vec<String>> {
    if t.padded.is_empty() {
        return (0..t.unstrided()).chain(t.strided()).map(|d| extent_texts(k, t, d)).collect();
    }
    memory(k, t).into_iter().map(|(extent, _)| vec![print_expr(k, extent)]).collect()
}

/// The strides that belong to [`shape_texts`].
fn all_stride_texts(k: &Kernel, v: Value, t: &TensorTy) -> Vec<Vec<String>> {
    if t.padded.is_empty() {
        return t.strided().into_iter().map(|d| stride_texts(k, v, d)).collect();
    }
    let text = |stride: MemoryStride| match stride {
        MemoryStride::Mode(e) => print_expr(k, e),
        MemoryStride::Lines(v) => k.values[v].name.clone(),
    };
    memory(k, t).into_iter().map(|(_, stride)| vec![text(stride)]).collect()
}

fn extent_texts(k: &Kernel, t: &TensorTy, dim: usize) -> Vec<String> {
    match t.modes(dim) {
        Some(modes) => modes.iter().map(|m| print_expr(k, m.extent)).collect(),
        None => vec![print_expr(k, t.shape[dim])],
    }
}

fn stride_texts(k: &Kernel, tensor: Value, dim: usize) -> Vec<String> {
    match k.tensor_ty(tensor).and_then(|t| t.given_stride(dim)) {
        Some(GivenStride::Written(stride)) => stride.strides().into_iter().map(|e| print_expr(k, e)).collect(),
        Some(GivenStride::Leading(v)) => vec![k.values[v].name.clone()],
        Some(GivenStride::Repeats) => unreachable!("whoever launches a kernel does not know dimensions that repeat"),
        Some(GivenStride::Contiguous | GivenStride::Pointer) | None => vec!["1".into()],
    }
}

/// The value of a leading stride if the tensor has no gaps.
fn packed(k: &Kernel, stride: Value) -> Option<String> {
    for &v in &k.params {
        let Some(t) = k.tensor_ty(v) else { continue };
        if let Some(found) = packed_lines(k, t, stride) {
            return Some(found);
        }
        let Strides::Ordered(OrderRef::Known(order)) = t.strides else { continue };
        let is_it = |d: &usize| t.given_stride(*d) == Some(GivenStride::Leading(stride));
        let Some(dim) = (0..t.shape.len()).find(is_it) else { continue };
        let inner: Vec<String> = t.inner_dims(order, dim).into_iter().map(|d| factor(k, t.shape[d])).collect();
        return Some(inner.join(" * "));
    }
    None
}

/// The same for a stride of a tensor with lines of memory (`padded (xh: H, xw: W)`), whose lines are written outermost
/// first. The elements of a line follow one another. A stride that is none of the lines' is that of all of them.
fn packed_lines(k: &Kernel, t: &TensorTy, stride: Value) -> Option<String> {
    let modes: Vec<Mode> = (0..t.shape.len()).filter_map(|d| t.modes(d)).flatten().copied().collect();
    let is_whole = |m: &&Mode| matches!(k.exprs[m.stride], ExprData::Ref(v) if v == stride);
    let at = match t.padded.iter().position(|line| line.stride == stride) {
        Some(at) => at + 1,
        None => modes.iter().find(is_whole).and(t.padded.first()).map(|_| 0)?,
    };
    let mut single = modes.iter().filter(|m| k.as_int(m.stride) == Some(1));
    let (Some(elements), None) = (single.next(), single.next()) else { return None };
    let lines = t.padded[at..].iter().map(|line| line.extent);
    let factors: Vec<String> = lines.chain([elements.extent]).map(|e| factor(k, e)).collect();
    Some(factors.join(" * "))
}

fn factor(k: &Kernel, e: Expr) -> String {
    let text = print_expr(k, e);
    if k.children(e).is_empty() { text } else { format!("({text})") }
}

/// The default of a scalar: a literal or its negative; 64-bit integers stay exact.
fn default_number(k: &Kernel, elem: Elem, e: Expr) -> Option<Number> {
    if let Some(x) = const_int(k, e) {
        return Some(if elem.is_wide() { Number::Wide(x.into()) } else { Number::Float(x as f64) });
    }
    match &k.exprs[e] {
        ExprData::Float(bits) => Some(Number::Float(f64::from_bits(*bits))),
        ExprData::Op { op: Op::Neg, args } => default_number(k, elem, args[0]).map(|x| Number::Float(-x.to_f64())),
        _ => None,
    }
}
