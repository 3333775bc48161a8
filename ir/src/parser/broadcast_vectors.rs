//! Vectors next to matrices: tensors that are broadcast along missing dimensions.
//!
//! `_` in a window is a broadcast dimension: with `scale: gmem f32[M]`, the window `scale[i * BM.., _]` has a value for
//! each row. Operands of one operator align at their last dimensions, so `x + bias[j * BN..]` is `x + bias[_, j *
//! BN..]`.
//!
//! All other code sees tensors with broadcast dimensions: `write_out` adds them to the type, `bias: gmem f32[_, N]`,
//! and to all windows of the tensor. They have stride 0 and no bounds, and the launch contract omits them. A window
//! that lacks one gets the index 0 there.

use super::broadcast::takes_dimensions;
use super::window_notes::{Notes, RangeNote, leaves, rank, window};
use crate::codes;
use crate::diag::{Diagnostic, Span};
use crate::entities::{Expr, Value};
use crate::extents::MAX_SIZE;
use crate::kernel::{ExprData, Kernel, Range, ValueDef, View};
use crate::typing::let_init;
use std::collections::BTreeMap;

/// Writes out the dimensions along which tensors repeat; returns what cannot be.
pub(super) fn write_out(k: &mut Kernel, notes: &mut Notes) -> Vec<Diagnostic> {
    let mut lifted = Lifted::default();
    let roots: Vec<Expr> = k.statement_data().flat_map(|s| s.exprs()).collect();
    for e in roots {
        align(k, notes, e, &mut lifted);
    }
    for (&e, &(_, named)) in &lifted {
        if let Some(named) = named {
            let copy = k.copy_expr(named);
            k.exprs[e] = k.exprs[copy].clone();
            if let Some(said) = notes.get(&named).cloned() {
                notes.insert(e, said);
            }
        }
    }
    let mut wrong = Vec::new();
    let mut uses: BTreeMap<Value, Vec<(Expr, Use)>> = BTreeMap::new();
    for e in k.exprs.keys() {
        let by = lifted.get(&e).map_or(0, |&(by, _)| by);
        let base = match &k.exprs[e] {
            ExprData::Ref(v) => *v,
            ExprData::View(view) => view.base,
            _ => continue,
        };
        let asked = by > 0 || notes.get(&e).is_some_and(|said| said.iter().any(|said| said.repeats));
        let Some(ty) = k.tensor_ty(base) else {
            if asked && !takes_dimensions(k, base) && !becomes_tile(k, notes, base) {
                let message = format!("`{}` cannot repeat along a dimension that it lacks", k.values[base].name);
                let note = "tensors and tiles can: `bias[_, j..]`, `v[.., _]`";
                wrong.push(Diagnostic::error(codes::BAD_VIEW, k.expr_spans[e], message).with_note(note));
            }
            continue;
        };
        if asked && (ty.pointers || ty.scratch.is_some()) {
            let message = format!("`{}` cannot repeat along a dimension that it lacks", k.values[base].name);
            let note = "arrays of pointers, scratch memory and signals have the dimensions that are declared";
            wrong.push(Diagnostic::error(codes::BAD_VIEW, k.expr_spans[e], message).with_note(note));
            continue;
        }
        match Use::of(k, base, e, notes, by) {
            Some(found) => uses.entry(base).or_default().push((e, found)),
            None if asked => {
                let name = &k.values[base].name;
                let message = format!(
                    "a window of `{name}` has a range or an index for each of its {} dimensions that do not repeat",
                    ty.strided().len()
                );
                let d = Diagnostic::error(codes::BAD_VIEW, k.expr_spans[e], message);
                wrong.push(d.with_place(k.values[base].span, format!("`{name}` is declared here")));
            }
            // For the verifier to say.
            None => {}
        }
    }
    for (tensor, uses) in uses {
        dimensions(k, notes, tensor, uses);
    }
    wrong
}

/// Whether a name is of what is computed of windows that give all extents: it becomes a tile.
fn becomes_tile(k: &Kernel, notes: &Notes, v: Value) -> bool {
    let init = matches!(k.values[v].def, ValueDef::Let).then(|| let_init(k, v)).flatten();
    let Some(init) = init.filter(|&init| window(k, notes, init).is_none()) else { return false };
    let mut parts = Vec::new();
    leaves(k, init, &mut parts);
    let mut windows = parts.into_iter().filter_map(|part| window(k, notes, part));
    windows.any(|w| !w.dims.is_empty() && w.dims.iter().all(|dim| dim.given_extent().is_some()))
}

/// Windows of lower rank than the other operands: the number of missing dimensions, and the window for which a name
/// stands.
type Lifted = BTreeMap<Expr, (usize, Option<Expr>)>;

/// Finds windows that are combined with what has more dimensions.
fn align(k: &Kernel, notes: &Notes, e: Expr, lifted: &mut Lifted) {
    let mut found = Vec::new();
    leaves(k, e, &mut found);
    let ranks: Vec<usize> = found.iter().map(|&e| rank(k, notes, e)).collect();
    let most = ranks.iter().copied().max().unwrap_or(0);
    for (&e, rank) in found.iter().zip(ranks) {
        if (1..most).contains(&rank)
            && let Some(named) = own(k, e)
        {
            lifted.insert(e, (most - rank, named.filter(|&named| named != e)));
        }
        inside(k, notes, e, lifted);
    }
    if found.is_empty() {
        inside(k, notes, e, lifted);
    }
}

/// The same of what is inside of a part: what is reduced, multiplied, or an index.
fn inside(k: &Kernel, notes: &Notes, e: Expr, lifted: &mut Lifted) {
    for child in k.children(e) {
        align(k, notes, child, lifted);
    }
}

/// Whether `e` is a window of a tensor, and the window that it names.
fn own(k: &Kernel, e: Expr) -> Option<Option<Expr>> {
    let mut named = e;
    loop {
        match &k.exprs[named] {
            ExprData::Ref(v) if matches!(k.values[*v].def, ValueDef::Let) => named = let_init(k, *v)?,
            ExprData::Ref(v) => return k.tensor_ty(*v).map(|_| Some(named)),
            ExprData::View(view) => return k.tensor_ty(view.base).map(|_| Some(named)),
            _ => return None,
        }
    }
}

/// How a window uses the dimensions of its tensor.
struct Use {
    /// What it has of each dimension that the tensor has itself.
    own: Vec<(Range, RangeNote)>,
    /// How many dimensions along which it repeats are in front of each of these, and after them.
    repeats: Vec<usize>,
}

impl Use {
    /// That of `e`; `None` if the number of its ranges fits no dimensions.
    fn of(k: &Kernel, tensor: Value, e: Expr, notes: &Notes, lifted: usize) -> Option<Use> {
        let ty = k.tensor_ty(tensor)?;
        let rank = ty.shape.len();
        let ranges = match &k.exprs[e] {
            ExprData::View(view) if !view.ranges.is_empty() => view.ranges.clone(),
            _ => Vec::new(),
        };
        let said = notes.get(&e).cloned().unwrap_or_else(|| vec![RangeNote::default(); ranges.len()]);
        let declared = |d: usize| ty.repeats.contains(&d);
        let wild = said.iter().filter(|said| said.repeats).count();
        let of_tensor = rank - ty.repeats.len();
        let mut found = Use { own: Vec::new(), repeats: vec![lifted] };
        let take = |found: &mut Use, range: Option<(Range, RangeNote)>, repeats: bool| {
            let kept = range.is_none_or(|(range, _)| matches!(range, Range::From { .. }));
            match range {
                Some(own) if !repeats => {
                    found.own.push(own);
                    found.repeats.push(0);
                }
                _ => *found.repeats.last_mut().expect("it begins with one") += usize::from(kept),
            }
        };
        if ranges.is_empty() && rank > 0 {
            // All of the tensor.
            found.repeats = vec![0; of_tensor + 1];
            let mut at = 0;
            for d in 0..rank {
                if declared(d) {
                    found.repeats[at] += 1;
                } else {
                    at += 1;
                }
            }
            found.repeats[0] += lifted;
        } else if ranges.len() - wild == of_tensor {
            for own in ranges.into_iter().zip(said) {
                take(&mut found, Some(own), own.1.repeats);
            }
        } else if ranges.len() == rank {
            for (d, own) in ranges.into_iter().zip(said).enumerate() {
                if own.1.repeats && !declared(d) {
                    return None;
                }
                take(&mut found, Some(own), declared(d));
            }
        } else {
            return None;
        }
        Some(found)
    }
}

/// Gives a tensor the dimensions along which its windows repeat, and the windows theirs.
fn dimensions(k: &mut Kernel, notes: &mut Notes, tensor: Value, uses: Vec<(Expr, Use)>) {
    let ty = k.tensor_ty(tensor).expect("windows of tensors were collected").clone();
    let of_tensor = ty.shape.len() - ty.repeats.len();
    let mut counts = vec![0; of_tensor + 1];
    let mut at = 0;
    for d in 0..ty.shape.len() {
        if ty.repeats.contains(&d) {
            counts[at] += 1;
        } else {
            at += 1;
        }
    }
    for (_, found) in &uses {
        for (count, &own) in counts.iter_mut().zip(&found.repeats) {
            *count = own.max(*count);
        }
    }
    if counts.iter().all(|&count| count == 0) {
        return;
    }
    let mut own = (0..ty.shape.len()).filter(|d| !ty.repeats.contains(d)).map(|d| ty.shape[d]);
    let (mut shape, mut repeats) = (Vec::new(), Vec::new());
    for &count in &counts {
        for _ in 0..count {
            repeats.push(shape.len());
            shape.push(k.int(MAX_SIZE as i64, k.values[tensor].span));
        }
        shape.extend(own.next());
    }
    if let ValueDef::Tensor(ty) = &mut k.values[tensor].def {
        ty.shape = shape;
        ty.repeats = repeats;
    }
    for (e, found) in uses {
        let span = k.expr_spans[e];
        let all = found.own.is_empty();
        let (mut ranges, mut said) = (Vec::new(), Vec::new());
        let mut own = found.own.into_iter();
        for (gap, (&count, &kept)) in counts.iter().zip(&found.repeats).enumerate() {
            for i in 0..count {
                ranges.push(if i < kept { from_zero(k, span) } else { Range::At(k.int(0, span)) });
                said.push(RangeNote { repeats: i < kept, ..RangeNote::default() });
            }
            if gap < of_tensor {
                let (range, note) = match own.next() {
                    Some(own) => own,
                    None if all => (from_zero(k, span), RangeNote::default()),
                    None => unreachable!("a window has a range for each dimension"),
                };
                ranges.push(range);
                said.push(note);
            }
        }
        k.exprs[e] = ExprData::View(View { base: tensor, slot: None, ranges });
        notes.insert(e, said);
    }
}

fn from_zero(k: &mut Kernel, span: Span) -> Range {
    Range::From { start: k.int(0, span), end: None }
}
