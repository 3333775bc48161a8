//! Register tiles that are transposed inside expressions.
//!
//! `transpose` moves to the leaves of an expression: elementwise operators, reductions and `iota` work on transposed
//! tiles as well, and the transpose of a window of memory is another window. A transposed tile that is stored in global
//! memory is stored through the transposed window if that needs fewer tiles (`copy transpose(x) -> C[..]` becomes
//! `copy x -> C_transposed`). Remaining tiles are copied in front, `copy transpose(x) -> x_transposed`: the same
//! registers in a layout with exchanged dimensions, or an exchange between threads (`assign-layouts`). Operands of
//! products do not change, because instructions read both orders.

use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData, Totals, ValueDef};
use tilec_ir::types::TileTy;
use tilec_ir::typing::{Type, copy_shape, register_tile, resolve_view, type_of};

/// Removes all transpositions of register tiles except in copies between register tiles, and in products.
pub(super) fn remove_transpositions(k: &mut Kernel) {
    let any = k.expressions().into_iter().any(|e| matches!(k.exprs[e], ExprData::Transpose(_)) && !of_memory(k, e));
    if any {
        k.replace_statements(k.body, &mut statement);
    }
}

/// Appends a statement, and the statements that it needs in front and after it, to `out`.
fn statement(k: &mut Kernel, s: Stmt, out: &mut Vec<Stmt>) {
    let span = k.stmt_spans[s];
    let e = match k.stmts[s] {
        StmtData::Let { init: e, .. }
        | StmtData::Var { init: Some(e), .. }
        | StmtData::Assign { src: e, .. }
        | StmtData::Copy { src: e, .. } => e,
        _ => return out.push(s),
    };
    if matches!(k.exprs[e], ExprData::Mma(_)) || of_memory(k, e) || !transposes(k, e) {
        return out.push(s);
    }
    let mut new = pushed(k, e, false);
    if let StmtData::Copy { dst, ref attrs, .. } = k.stmts[s]
        && *attrs == (CopyAttrs { reduce: attrs.reduce, ..CopyAttrs::default() })
        // Rows are scattered by the copy itself, in the order that its window has.
        && resolve_view(k, dst).is_some_and(|view| view.space(k).has_bounds() && !view.is_gathered())
    {
        let other = pushed(k, e, true);
        if moved(k, other) < moved(k, new) {
            new = other;
            to_transposed(k, s, dst, span, out);
        }
    }
    set(k, s, new);
    if let Some((declared, copy)) = as_copy(k, s, new, span) {
        out.extend(declared);
        out.push(copy);
        return;
    }
    let extents = extents_of(k, s, new);
    tiles(k, new, &extents, span, out);
    out.push(s);
}

/// Whether it is a window of memory, whose transpose is another window.
fn of_memory(k: &Kernel, e: Expr) -> bool {
    resolve_view(k, e).is_some_and(|view| view.space(k).is_memory())
}

/// Whether an expression transposes anything but memory.
fn transposes(k: &Kernel, e: Expr) -> bool {
    match k.exprs[e] {
        _ if of_memory(k, e) => false,
        ExprData::Transpose(_) => true,
        _ => k.children(e).into_iter().any(|child| transposes(k, child)),
    }
}

/// The expression, or its transpose (`flip`), with transpositions only of names of tiles and windows.
fn pushed(k: &mut Kernel, e: Expr, flip: bool) -> Expr {
    let span = k.expr_spans[e];
    let axis_of = |axis| if flip { 1 - axis } else { axis };
    let data = match k.exprs[e].clone() {
        ExprData::Transpose(arg) => return pushed(k, arg, !flip),
        ExprData::Int(_) | ExprData::Float(_) | ExprData::Index(_) => return e,
        ExprData::Ref(_) | ExprData::View(_) | ExprData::Mma(_) | ExprData::Part { .. } => match type_of(k, e) {
            Ok(ty) if ty.rank() == 2 && flip => ExprData::Transpose(e),
            _ => return e,
        },
        ExprData::Op { op, args } => {
            ExprData::Op { op, args: args.into_iter().map(|arg| pushed(k, arg, flip)).collect() }
        }
        ExprData::Cast { elem, arg } => ExprData::Cast { elem, arg: pushed(k, arg, flip) },
        ExprData::Bits { elem, arg } => ExprData::Bits { elem, arg: pushed(k, arg, flip) },
        ExprData::Round { elem, arg, word } => {
            ExprData::Round { elem, arg: pushed(k, arg, flip), word: pushed(k, word, flip) }
        }
        ExprData::Lookup { table, index } => ExprData::Lookup { table, index: pushed(k, index, flip) },
        ExprData::Reduce { op, axis, parts, arg } => {
            ExprData::Reduce { op, axis: axis_of(axis), parts, arg: pushed(k, arg, flip) }
        }
        ExprData::Scan { op, axis, exclusive, totals, arg } => {
            let totals = totals.map(|t| Totals { tile: pushed(k, t.tile, flip), ..t });
            ExprData::Scan { op, axis: axis_of(axis), exclusive, totals, arg: pushed(k, arg, flip) }
        }
        // A tuple expression is always the whole value of a name.
        ExprData::Combine(mut combine) => {
            assert!(!flip, "bug: tuples are transposed, which are not values");
            combine.args = combine.args.into_iter().map(|arg| pushed(k, arg, false)).collect();
            combine.totals = combine.totals.into_iter().map(|arg| pushed(k, arg, false)).collect();
            ExprData::Combine(combine)
        }
        ExprData::Iota { axis, like } => ExprData::Iota { axis: axis_of(axis), like: pushed(k, like, flip) },
        ExprData::Permute { .. } | ExprData::Reshape { .. } | ExprData::Concat { .. } => {
            unreachable!("bug: it stands in a copy by itself, which is verified")
        }
    };
    k.expr(data, span)
}

/// The number of register tiles that an expression transposes.
fn moved(k: &Kernel, e: Expr) -> usize {
    let own = matches!(k.exprs[e], ExprData::Transpose(_)) && !of_memory(k, e);
    usize::from(own) + k.children(e).into_iter().map(|child| moved(k, child)).sum::<usize>()
}

/// Makes a copy go to its transposed window.
fn to_transposed(k: &mut Kernel, s: Stmt, dst: Expr, span: Span, out: &mut Vec<Stmt>) {
    let base = resolve_view(k, dst).expect("a copy goes to a window").base;
    let init = match k.exprs[dst] {
        ExprData::Transpose(arg) => arg,
        _ => k.expr(ExprData::Transpose(dst), k.expr_spans[dst]),
    };
    let name = format!("{}_transposed", k.values[base].name);
    let window = k.value(&name, k.expr_spans[dst], ValueDef::Let);
    out.push(k.stmt(StmtData::Let { value: window, init }, span));
    let to = k.value_ref(window, k.expr_spans[dst]);
    if let StmtData::Copy { dst, .. } = &mut k.stmts[s] {
        *dst = to;
    }
}

fn set(k: &mut Kernel, s: Stmt, e: Expr) {
    match &mut k.stmts[s] {
        StmtData::Let { init: own, .. }
        | StmtData::Var { init: Some(own), .. }
        | StmtData::Assign { src: own, .. }
        | StmtData::Copy { src: own, .. } => *own = e,
        _ => unreachable!("a statement with an expression"),
    }
}

/// A statement that only transposes a tile, as a copy, after the declaration of its destination. `None`: it does more,
/// or it also converts.
fn as_copy(k: &mut Kernel, s: Stmt, e: Expr, span: Span) -> Option<(Option<Stmt>, Stmt)> {
    let ExprData::Transpose(arg) = k.exprs[e] else { return None };
    let elem = type_of(k, arg).ok()?.elem()?;
    match k.stmts[s] {
        StmtData::Copy { dst, .. } => {
            let view = resolve_view(k, dst)?;
            let alike = k.tile_ty(view.base).is_some_and(|tile| tile.elem == elem) && view.space(k).in_registers();
            transposed_variable(k, arg, alike)?;
            Some((None, s))
        }
        StmtData::Assign { dst, .. } => {
            let alike = k.tile_ty(dst).is_some_and(|tile| tile.elem == elem);
            transposed_variable(k, arg, alike)?;
            let to = k.value_ref(dst, span);
            k.stmts[s] = StmtData::Copy { src: e, dst: to, attrs: CopyAttrs::default() };
            Some((None, s))
        }
        StmtData::Let { value, .. } | StmtData::Var { value, .. } => {
            let own = match &k.values[value].def {
                ValueDef::Var(tile) => tile.elem == elem,
                _ => true,
            };
            transposed_variable(k, arg, own)?;
            if matches!(k.values[value].def, ValueDef::Let) {
                k.values[value].def = ValueDef::Var(tile(k, e));
            }
            k.stmts[s] = StmtData::Var { value, init: None };
            let to = k.value_ref(value, span);
            let copy = k.stmt(StmtData::Copy { src: e, dst: to, attrs: CopyAttrs::default() }, span);
            Some((Some(s), copy))
        }
        _ => None,
    }
}

/// Turns a transposed name into a variable; `None` if `alike` is false.
fn transposed_variable(k: &mut Kernel, arg: Expr, alike: bool) -> Option<()> {
    alike.then(|| variable(k, arg))
}

/// The extents of what a statement sets element by element.
fn extents_of(k: &Kernel, s: Stmt, e: Expr) -> Vec<u64> {
    let shape = match k.stmts[s] {
        StmtData::Copy { src, dst, .. } => copy_shape(k, src, dst),
        StmtData::Assign { dst: value, .. } | StmtData::Var { value, .. } => {
            k.tile_ty(value).and_then(|tile| k.const_shape(&tile.shape))
        }
        _ => None,
    };
    shape.or_else(|| shape_of(k, e)).unwrap_or_default()
}

fn shape_of(k: &Kernel, e: Expr) -> Option<Vec<u64>> {
    match type_of(k, e) {
        Ok(Type::Tile(ty)) => ty.known_shape(),
        _ => None,
    }
}

/// Gives each register tile that an expression of these extents transposes a tile of its own, filled in front.
fn tiles(k: &mut Kernel, e: Expr, extents: &[u64], span: Span, out: &mut Vec<Stmt>) {
    if of_memory(k, e) {
        return;
    }
    let ExprData::Transpose(arg) = k.exprs[e] else {
        // Operands of reductions and of `iota` have their own extents.
        let apart = !matches!(k.exprs[e], ExprData::Op { .. } | ExprData::Cast { .. } | ExprData::Bits { .. });
        for child in k.children(e) {
            let own = if apart { shape_of(k, child) } else { None };
            tiles(k, child, own.as_deref().unwrap_or(extents), span, out);
        }
        return;
    };
    variable(k, arg);
    let view = resolve_view(k, arg).expect("names and windows are transposed");
    let base = view.base;
    let own = match type_of(k, e) {
        Ok(Type::View(window)) => {
            let of_base = k.tile_ty(base).and_then(|tile| k.const_shape(&tile.shape)).expect("extents are numbers");
            let kept = view.base_dims().into_iter().rev().map(|d| of_base[d]);
            let extents = kept.zip(extents).map(|(all, &n)| if all == 1 { 1 } else { n });
            let shape = extents.map(|n| k.int(n as i64, span)).collect();
            TileTy::registers(window.elem, shape, None)
        }
        _ => tile(k, e),
    };
    let name = format!("{}_transposed", k.values[base].name);
    let value = k.value(&name, k.expr_spans[e], ValueDef::Var(own));
    out.push(k.stmt(StmtData::Var { value, init: None }, span));
    let (src, dst) = (k.expr(ExprData::Transpose(arg), k.expr_spans[e]), k.value_ref(value, span));
    out.push(k.stmt(StmtData::Copy { src, dst, attrs: CopyAttrs::default() }, span));
    k.exprs[e] = ExprData::Ref(value);
}

/// Turns a `let` of a register tile into a variable, which copies may name.
fn variable(k: &mut Kernel, e: Expr) {
    let ExprData::Ref(value) = k.exprs[e] else { return };
    if !matches!(k.values[value].def, ValueDef::Let) {
        return;
    }
    let found =
        k.statements().into_iter().find(|&s| matches!(k.stmts[s], StmtData::Let { value: v, .. } if v == value));
    let s = found.expect("a name is declared");
    let StmtData::Let { init, .. } = k.stmts[s] else { unreachable!("it is a `let`") };
    k.values[value].def = ValueDef::Var(tile(k, init));
    k.stmts[s] = StmtData::Var { value, init: Some(init) };
}

/// The type of a register tile for an expression's value.
fn tile(k: &mut Kernel, e: Expr) -> TileTy {
    let Ok(Type::Tile(ty)) = type_of(k, e) else { unreachable!("a register tile is transposed") };
    assert!(ty.space.in_registers(), "bug: a tile in memory is a window");
    register_tile(k, e).expect("it is a tile")
}
