//! Operands that TMA and wgmma cannot read directly from their memory.

use crate::Options;
use crate::analysis::access_width::{MAX_ACCESS_BYTES, elem_of, global_width};
use crate::analysis::contiguous_dim::smem_contiguous;
use crate::analysis::facts::{Facts, contiguous_dim, repeats};
use crate::analysis::uses::all_stmts;
use crate::choose::sketch;
use crate::select_mma::warpgroup;
use std::collections::BTreeMap;
use tilec_ir::atoms::Inputs;
use tilec_ir::entities::Value;
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::target::MAX_TENSOR_RANK;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{resolve_view, type_of};

/// An operand to copy.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    /// The tensor.
    pub(super) tensor: Value,
    /// Number of elements in 16 bytes.
    pub(super) multiple: u32,
    /// The tensor's dimension of stride 1.
    pub(super) contiguous: usize,
    /// The copy's dimension of stride 1.
    pub(super) along: usize,
    /// Why it cannot be read as it is stored, for the remark.
    pub(super) why: String,
    /// Why it cannot be copied.
    pub(super) refused: Option<String>,
}

impl Operand {
    /// Whether the copy has another order.
    pub(super) fn reordered(&self) -> bool {
        self.along != self.contiguous
    }
}

/// The operands of products that are loaded to shared memory from tensors whose rows are not provably multiples of 16
/// bytes. Operands that are not contiguous along the reduction, although the instruction requires it, are among them.
/// `None`: the kernel has no products, or the decision is made. `registers`: one operand of a product may have any
/// order, because the instruction can take it from registers; if both operands need this, it is the second.
pub(super) fn unreadable(k: &Kernel, options: &Options, registers: bool) -> Option<Vec<Operand>> {
    let decided = k.values.values().any(|v| matches!(v.def, ValueDef::Channel { .. }))
        || k.statement_data().any(|s| matches!(s, StmtData::Role { .. }));
    if decided || !k.expressions().into_iter().map(|e| &k.exprs[e]).any(|e| matches!(e, ExprData::Mma(_))) {
        return None;
    }
    let sketch = sketch(k, options).ok()?;
    let factors = factors(&sketch, options, registers);
    let facts = Facts::new(&sketch);
    let mut found: Vec<Operand> = Vec::new();
    // Tensors, and the dimensions along which products need them contiguous.
    let mut read: Vec<(Value, usize)> = Vec::new();
    sketch.walk(sketch.body, &mut |k, _, s| {
        let StmtData::Copy { src, dst, .. } = &k.stmts[s] else { return };
        let (Some(from), Some(to)) = (resolve_view(k, *src), resolve_view(k, *dst)) else { return };
        let Some(factor) = factors.get(&to.base).filter(|_| to.space(k).is_of_block()) else { return };
        let shape = k.tile_ty(to.base).and_then(|t| k.const_shape(&t.shape));
        let (Some(shape), Some(elem), Some(_)) = (shape, elem_of(k, from.base), k.tensor_ty(from.base)) else { return };
        let stride_1 = contiguous_dim(k, from.base);
        let contiguous = stride_1.unwrap_or(0);
        let wanted = factor
            .along
            .and_then(|d| from.base_dims().get(to.base_dims().iter().position(|&kept| kept == d)?).copied());
        let along = wanted.filter(|_| stride_1.is_some()).unwrap_or(contiguous);
        read.push((from.base, along));
        let width = global_width(k, &facts, &from, &shape);
        let multiple = elem.per(MAX_ACCESS_BYTES);
        let aligned = width.elems >= multiple;
        if aligned && (along == contiguous || factor.in_registers) || found.iter().any(|o| o.tensor == from.base) {
            return;
        }
        let name = &k.values[from.base].name;
        let why = if along == contiguous { width.why } else { other_order(name, elem) };
        let gathered = from
            .is_gathered()
            .then(|| format!("rows of `{name}` are gathered, and a copy would have to move the whole tensor"));
        let refused = gathered.or_else(|| refused(k, from.base, stride_1, along));
        found.push(Operand { tensor: from.base, multiple, contiguous, along, why, refused });
    });
    for o in &mut found {
        if read.iter().any(|&(tensor, along)| tensor == o.tensor && along != o.along) {
            let name = &sketch.values[o.tensor].name;
            o.refused.get_or_insert_with(|| format!("`{name}` is reduced along two of its dimensions"));
        }
    }
    found.sort_by_key(|o| k.params.iter().position(|&p| p == o.tensor));
    Some(found)
}

fn other_order(name: &str, elem: Elem) -> String {
    let reads = "which wgmma reads only contiguous along the reduction";
    format!("`{name}` has elements of {}, {reads} (K-major), and is not", elem.name())
}

/// The requirements of a product for a buffer.
#[derive(Copy, Clone, Default)]
struct Factor {
    /// The dimension along which it must be contiguous; `None`: any.
    along: Option<usize>,
    /// Otherwise it is read from registers.
    in_registers: bool,
}

/// The buffers that products read.
fn factors(k: &Kernel, options: &Options, registers: bool) -> BTreeMap<Value, Factor> {
    let mut all = BTreeMap::new();
    for s in all_stmts(k, k.body) {
        let StmtData::Assign { dst, src } = k.stmts[s] else { continue };
        let ExprData::Mma(mma) = k.exprs[src] else { continue };
        let elem = |side| match type_of(k, side).ok()?.elem()? {
            ElemRef::Known(elem) => Some(elem),
            ElemRef::Param(_) => None,
        };
        let inputs = elem(mma.a).zip(elem(mma.b)).map(|(a, b)| Inputs { a, b });
        let types = inputs.zip(warpgroup::acc_elem(k, dst));
        let one_order = types.is_some_and(|types| {
            !warpgroup::reads_both_orders(types.0.a) && warpgroup::atom(options.target, types).is_some()
        });
        let from_registers = registers && types.is_some_and(|(inputs, _)| warpgroup::reads_registers(inputs.a));
        let sides = [(mma.a, 1), (mma.b, 0)].map(|(side, reduced)| {
            let view = resolve_view(k, side)?;
            let along = view.base_dims().get(reduced).copied().filter(|_| one_order);
            let lies = along.is_none() || smem_contiguous(k, view.base) == along;
            Some((view.base, Factor { along, in_registers: from_registers && !lies }))
        });
        let [Some((a, mut first)), Some((b, second))] = sides else {
            all.extend(sides.into_iter().flatten());
            continue;
        };
        // Only one of the two operands may be in registers.
        first.in_registers &= !second.in_registers;
        all.extend([(a, first), (b, second)]);
    }
    all
}

/// Why a tensor cannot be copied to rows along `along`.
fn refused(sketch: &Kernel, tensor: Value, contiguous: Option<usize>, along: usize) -> Option<String> {
    let name = &sketch.values[tensor].name;
    let ty = sketch.tensor_ty(tensor)?;
    let rank = ty.shape.len();
    let written = sketch.statement_data().any(
        |s| matches!(s, StmtData::Copy { dst, .. } if resolve_view(sketch, *dst).is_some_and(|v| v.base == tensor)),
    );
    let why = match contiguous {
        _ if ty.pointers => "is an array of pointers",
        _ if rank > 2 && !ty.padded.is_empty() => "is padded, and more than a matrix",
        _ if rank > 2 && (0..rank).any(|d| ty.modes(d).is_some()) => {
            "has a dimension of several modes, and more than two dimensions"
        }
        _ if !(2..=MAX_TENSOR_RANK).contains(&rank) => "is neither a matrix nor a batch of them",
        None => "has no dimension of stride 1",
        Some(d) if d + 2 < rank => "has matrices without a dimension of stride 1",
        _ if along + 2 < rank => "is reduced along its first dimension",
        _ if (0..rank).any(|d| repeats(sketch, tensor, d)) => "repeats along a dimension",
        _ if written => "is written, too",
        _ => return None,
    };
    Some(format!("`{name}` {why}"))
}
