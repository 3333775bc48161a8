//! Elements of memory that are operands: `copy x * P[i] -> Y[i, ..]`, `iota(x, 1) < L[i]`.
//!
//! A scalar is the same for all elements of a tile, so an element that is an operand becomes one: `write_out` puts `var P_at = reg f32[]`, `copy P[i] -> P_at` in front of
//! the statement, and the expression reads `P_at`. The same holds in a tile of indices (`X[rows + P[i]]`). Other elements in ranges of windows, bounds of loops
//! and conditions are indices, and those of a `let` that is computed of indices alone (`let first = table[z] + t * 64`)
//! stay one, too ([`crate::index_values`]).

use super::window_notes::{Notes, leaves, rank, window};
use crate::attributes::CopyAttrs;
use crate::diag::Span;
use crate::entities::{Expr, Stmt, Value};
use crate::kernel::{ExprData, Kernel, Range, StmtData, ValueDef};
use crate::ops::{Domain, Op};
use crate::types::{Elem, ElemRef, TileTy};
use crate::typing::{may_count, same_value, type_of};

/// Writes out the scalars.
pub(super) fn write_out(k: &mut Kernel, notes: &Notes) {
    k.replace_statements(k.body, &mut |k, s, out| {
        let mut operands = Operands { notes, loaded: Vec::new(), front: Vec::new() };
        operands.statement(k, s);
        out.append(&mut operands.front);
        out.push(s);
    });
}

struct Operands<'n> {
    notes: &'n Notes,
    /// The elements that the statement reads, and what holds them.
    loaded: Vec<(Expr, Value)>,
    front: Vec<Stmt>,
}

impl Operands<'_> {
    fn statement(&mut self, k: &mut Kernel, s: Stmt) {
        if let StmtData::Copy { dst, .. } = k.stmts[s] {
            self.inside(k, dst);
        }
        match k.stmts[s] {
            StmtData::Let { init, .. } if self.is_index(k, init) => {}
            StmtData::Let { init, .. } => self.inside(k, init),
            StmtData::Var { value, init: Some(src) } | StmtData::Assign { dst: value, src } => {
                match k.tile_ty(value).is_some_and(|t| !t.shape.is_empty()) {
                    true => self.operand(k, src),
                    false => self.inside(k, src),
                }
            }
            StmtData::Copy { src, dst, .. } => match rank(k, self.notes, dst) {
                0 => self.inside(k, src),
                _ => self.operand(k, src),
            },
            _ => {}
        }
    }

    /// Whether `e` is an element, or is computed of integers as indices are.
    fn is_index(&self, k: &Kernel, e: Expr) -> bool {
        if self.is_element(k, e) {
            return true;
        }
        let mut parts = Vec::new();
        leaves(k, e, &mut parts);
        let counts = |e: Expr| match window(k, self.notes, e) {
            Some(_) if self.is_gathered(k, e) => false,
            Some(of) => of.dims.is_empty() && k.values[of.base].def.elem().is_some_and(|elem| may_count(k, elem)),
            // A scalar has a type, and what is computed of it has that.
            None => match &k.exprs[e] {
                ExprData::Ref(v) => {
                    !matches!(k.values[*v].def, ValueDef::Var(_) | ValueDef::Scalar { .. })
                        && rank(k, self.notes, e) == 0
                }
                _ => false,
            },
        };
        is_of_indices(k, e) && parts.into_iter().all(counts)
    }

    /// Whether `e` is one element of a tensor, of shared memory or of a register tile.
    fn is_element(&self, k: &Kernel, e: Expr) -> bool {
        let single = matches!(k.exprs[e], ExprData::View(_) | ExprData::Ref(_));
        single
            && !self.is_gathered(k, e)
            && window(k, self.notes, e).is_some_and(|of| {
                of.dims.is_empty()
                    && match &k.values[of.base].def {
                        ValueDef::Tensor(t) => !t.shape.is_empty() && !t.pointers && t.scratch.is_none(),
                        ValueDef::Smem(t) | ValueDef::Var(t) => !t.shape.is_empty(),
                        // The verifier says why a name has no type.
                        ValueDef::Let => {
                            matches!(k.exprs[e], ExprData::View(_))
                                && rank(k, self.notes, e) == 0
                                && elem_of(k, of.base).is_some()
                        }
                        _ => false,
                    }
            })
    }

    /// Whether a tile has indices of elements of the window `e`. Types of tiles computed from windows are not known
    /// yet.
    fn is_gathered(&self, k: &Kernel, e: Expr) -> bool {
        let ExprData::View(view) = &k.exprs[e] else { return false };
        view.ranges.iter().any(|range| match *range {
            Range::At(at) | Range::Gather(at) => rank(k, self.notes, at) > 0,
            Range::From { .. } => false,
        })
    }

    /// Loads `e` if it is an element, and the elements that it is computed of otherwise.
    fn operand(&mut self, k: &mut Kernel, e: Expr) {
        if !self.is_element(k, e) {
            return self.inside(k, e);
        }
        let is_truth = self.is_truth(k, e);
        let held = self.element_register(k, e);
        k.exprs[e] = ExprData::Ref(held);
        if is_truth {
            let span = k.expr_spans[e];
            let (number, zero) = (k.value_ref(held, span), k.int(0, span));
            k.exprs[e] = ExprData::Op { op: Op::Ne, args: vec![number, zero] };
        }
    }

    /// Whether `e` is one element of a register tile of conditions.
    fn is_truth(&self, k: &Kernel, e: Expr) -> bool {
        matches!(k.exprs[e], ExprData::View(_))
            && window(k, self.notes, e).is_some_and(|of| {
                matches!(k.values[of.base].def, ValueDef::Var(_) | ValueDef::Let)
                    && elem_of(k, of.base) == Some(ElemRef::Known(Elem::Bool))
            })
    }

    /// The same element of the tile as numbers: registers that threads exchange hold no conditions.
    fn as_number(&mut self, k: &mut Kernel, e: Expr) -> Expr {
        let span = k.expr_spans[e];
        let ExprData::View(mut view) = k.exprs[e].clone() else { unreachable!("a condition is a window") };
        let tile = k.value_ref(view.base, span);
        let args = vec![tile, k.int(1, span), k.int(0, span)];
        let arg = k.expr(ExprData::Op { op: Op::Select, args }, span);
        let init = k.expr(ExprData::Cast { elem: ElemRef::Known(Elem::I32), arg }, span);
        let name = format!("{}_number", k.values[view.base].name);
        let number = k.value(&name, span, ValueDef::Let);
        self.front.push(k.stmt(StmtData::Let { value: number, init }, span));
        view.base = number;
        k.expr(ExprData::View(view), span)
    }

    fn inside(&mut self, k: &mut Kernel, e: Expr) {
        match &k.exprs[e] {
            // Ranges are indices, but those of several elements are computed like other tiles.
            ExprData::View(view) => {
                let at = |range: &Range| match *range {
                    Range::At(at) | Range::Gather(at) => Some(at),
                    Range::From { .. } => None,
                };
                let tiles: Vec<Expr> = view.ranges.iter().filter_map(at).collect();
                for at in tiles {
                    if rank(k, self.notes, at) > 0 {
                        self.operand(k, at);
                    }
                }
            }
            ExprData::Index(_) | ExprData::Iota { .. } => {}
            ExprData::Combine(combine) => combine.args.clone().into_iter().for_each(|arg| self.operand(k, arg)),
            _ => k.children(e).into_iter().for_each(|child| self.operand(k, child)),
        }
    }

    /// The register variable that holds the element `e` in front of the statement.
    fn element_register(&mut self, k: &mut Kernel, e: Expr) -> Value {
        if let Some(&(_, held)) = self.loaded.iter().find(|&&(known, _)| same_value(k, known, e)) {
            return held;
        }
        let span: Span = k.expr_spans[e];
        let base = window(k, self.notes, e).expect("bug: an element is one of a window").base;
        let is_truth = self.is_truth(k, e);
        let own = if is_truth { Some(ElemRef::Known(Elem::I32)) } else { elem_of(k, base) };
        let elem = own.expect("bug: an element has a type");
        let name = match k.exprs[e] {
            ExprData::View(_) => format!("{}_at", k.values[base].name),
            ExprData::Ref(v) => format!("{}_now", k.values[v].name),
            _ => unreachable!("an element is a window or the name of one"),
        };
        let held = k.value(&name, span, ValueDef::Var(TileTy::registers(elem, Vec::new(), None)));
        let known = k.exprs[e].clone();
        let known = k.expr(known, span);
        let src = if is_truth { self.as_number(k, known) } else { known };
        let dst = k.value_ref(held, span);
        for s in [StmtData::Var { value: held, init: None }, StmtData::Copy { src, dst, attrs: CopyAttrs::default() }] {
            self.front.push(k.stmt(s, span));
        }
        self.loaded.push((known, held));
        held
    }
}

/// The element type of a tile or tensor, or of what a name stands for.
fn elem_of(k: &Kernel, v: Value) -> Option<ElemRef> {
    k.values[v].def.elem().or_else(|| type_of(k, k.let_init(v)?).ok()?.elem())
}

/// Whether `e` is arithmetic that indices have, of whole numbers.
fn is_of_indices(k: &Kernel, e: Expr) -> bool {
    match &k.exprs[e] {
        ExprData::Int(_) | ExprData::Ref(_) | ExprData::View(_) | ExprData::Index(_) => true,
        ExprData::Op { op, args } => {
            matches!(op.domain(), Domain::Numeric | Domain::Integer) && args.iter().all(|&arg| is_of_indices(k, arg))
        }
        _ => false,
    }
}
