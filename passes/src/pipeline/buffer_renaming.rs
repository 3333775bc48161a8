//! Renaming of buffers: one buffer for each loop that uses it, and for each time that a loop fills it.
//!
//! Two loops that fill the same buffer are independent if each fills it before it reads it, and nothing reads it after
//! the last iteration. The same holds for a tile and the next one that is copied over it in an iteration. A separate
//! buffer can become a channel. Buffers that are not live at the same time share bytes (`place-shared`).

use crate::analysis::content_liveness::{NextUse, next_use, of_statement, read_behind};
use crate::analysis::uses::{all_stmts, loop_body, mentions, place_of, stmt_exprs};
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};

/// The buffers that a loop fills and that are used outside of it, too, and that can be renamed in it.
pub(super) fn shared(k: &Kernel, at: Stmt) -> Vec<Value> {
    let Some(body) = loop_body(k, at) else { return Vec::new() };
    let inside = all_stmts(k, body);
    let mut found: Vec<Value> = Vec::new();
    for &s in &k.blocks[body] {
        if let StmtData::Copy { dst, .. } = k.stmts[s]
            && let ExprData::Ref(v) = k.exprs[dst]
            && matches!(k.values[v].def, ValueDef::Smem(_))
            && !found.contains(&v)
            && of_its_own(k, at, &inside, v)
        {
            found.push(v);
        }
    }
    found
}

/// Whether a buffer is used outside of a loop, and its contents pass neither into the loop nor out of it.
fn of_its_own(k: &Kernel, at: Stmt, inside: &[Stmt], v: Value) -> bool {
    let body = loop_body(k, at).expect("it is a loop");
    let used = |s: &Stmt| stmt_exprs(k, *s).into_iter().any(|e| mentions(k, e, v));
    let outside = all_stmts(k, k.body).into_iter().any(|s| !inside.contains(&s) && used(&s));
    let allocated = inside.iter().any(|&s| matches!(k.stmts[s], StmtData::Alloc { value, .. } if value == v));
    outside
        && !allocated
        && !bound(k, inside, v)
        && next_use(k, &k.blocks[body], v) == NextUse::Overwritten
        && !read_behind(k, at, v)
}

/// Whether a buffer cannot be renamed: its address is written, it shares memory with another one, or is awaited.
fn bound(k: &Kernel, stmts: &[Stmt], v: Value) -> bool {
    k.shared_places[v].is_some()
        || stmts.iter().any(|&s| match &k.stmts[s] {
            StmtData::Alloc { over, .. } => over.contains(&v),
            StmtData::Await { value, .. } => *value == v,
            _ => false,
        })
        || k.statement_data().any(|s| matches!(s, StmtData::Alloc { value, over } if *value == v && !over.is_empty()))
}

/// A buffer that a loop fills twice and that can be renamed for the second tile, with the statements that use that
/// tile.
pub(super) fn filled_again(k: &Kernel, at: Stmt) -> Option<(Value, Vec<Stmt>)> {
    let stmts = &k.blocks[loop_body(k, at)?];
    let filled = |s: Stmt| match k.stmts[s] {
        StmtData::Copy { dst, .. } => match k.exprs[dst] {
            ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Smem(_)) => Some(v),
            _ => None,
        },
        _ => None,
    };
    (0..stmts.len()).rev().find_map(|i| {
        let v = filled(stmts[i]).filter(|&v| of_statement(k, stmts[i], v) == NextUse::Overwritten)?;
        let before =
            stmts[..i].iter().any(|&s| filled(s) == Some(v)) && next_use(k, &stmts[..i], v) == NextUse::Overwritten;
        let again = before && !bound(k, &all_stmts(k, k.body), v) && !read_behind(k, at, v);
        let inside = |&s: &Stmt| {
            std::iter::once(s).chain(k.sub_blocks(s).into_iter().flat_map(|b| all_stmts(k, b)).collect::<Vec<_>>())
        };
        again.then(|| (v, stmts[i..].iter().flat_map(inside).collect()))
    })
}

/// Makes a loop use another buffer instead of `v`, declared next to it: buffers over `v` are then over both. Returns
/// the buffer.
pub(super) fn separate(k: &mut Kernel, at: Stmt, v: Value) -> Value {
    let inside = loop_body(k, at).map_or_else(Vec::new, |body| all_stmts(k, body));
    instead(k, at, v, inside)
}

/// Makes statements of a loop use another buffer instead of `v`.
pub(super) fn instead(k: &mut Kernel, at: Stmt, v: Value, inside: Vec<Stmt>) -> Value {
    let span = k.stmt_spans[at];
    let (name, def) = (k.values[v].name.clone(), k.values[v].def.clone());
    let own = k.value(&name, k.values[v].span, def);
    for s in inside {
        let mut stack = stmt_exprs(k, s);
        while let Some(e) = stack.pop() {
            stack.extend(k.children(e));
            match &mut k.exprs[e] {
                ExprData::Ref(w) if *w == v => *w = own,
                ExprData::View(view) if view.base == v => view.base = own,
                _ => {}
            }
        }
    }
    let mut declaration = None;
    for s in all_stmts(k, k.body) {
        if let StmtData::Alloc { value, over } = &mut k.stmts[s] {
            declaration = declaration.or((*value == v).then_some(s));
            if over.contains(&v) {
                over.push(own);
            }
        }
    }
    let declaration = declaration.unwrap_or_else(|| panic!("bug: `{name}` is not declared"));
    let declared = k.stmt(StmtData::Alloc { value: own, over: Vec::new() }, span);
    let (block, index) = place_of(k, declaration);
    k.blocks[block].insert(index + 1, declared);
    own
}
