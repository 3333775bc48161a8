//! `ordered` blocks: statements that warpgroups run one after the other.
//!
//! Names inside a block are local, but statements after it may read what was declared among its statements. So declarations move out of the block. The whole declaration moves if nothing
//! in its value is written among the statements before it or is in memory, which is used alternately. Otherwise the declaration moves without its value, which is assigned at the original
//! place.

use crate::graph::accesses::Accesses;
use crate::schedule_loops::modulo::is_index;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData, ValueDef};
use tilec_ir::types::TileTy;
use tilec_ir::typing::{Type, fixed_shape, layout_of, resolve_view, type_of};

/// The statements as an `ordered` block, after the declarations that later statements (`behind`) read; `None`: all
/// declarations.
pub(crate) fn ordered(k: &mut Kernel, stmts: Vec<Stmt>, behind: Option<&[Stmt]>, span: Span) -> Vec<Stmt> {
    let read = behind.map(|stmts| stmts.iter().flat_map(|&s| Accesses::of(k, s).touches).map(|t| t.value));
    let read: Option<Vec<Value>> = read.map(Iterator::collect);
    let (mut front, mut body, mut written) = (Vec::new(), Vec::new(), Vec::<Value>::new());
    for s in stmts {
        let accesses = Accesses::of(k, s);
        let declares = accesses.touches.iter().find(|t| t.declares).map(|t| t.value);
        let inside = declares.zip(read.as_ref()).is_some_and(|(v, read)| !read.contains(&v));
        let moved = match k.stmts[s] {
            _ if inside => false,
            StmtData::Let { init, .. } if is_index(k, init) || resolve_view(k, init).is_some() => true,
            StmtData::Let { .. } | StmtData::Var { .. } => {
                let reads = accesses.touches.iter().filter(|t| t.reads);
                reads.map(|t| t.value).all(|v| !k.values[v].def.space().is_of_block() && !written.contains(&v))
            }
            StmtData::Alloc { ref over, .. } => over.is_empty(),
            _ => false,
        };
        if moved {
            front.push(s);
            continue;
        }
        written.extend(accesses.touches.iter().filter(|t| t.writes).map(|t| t.value));
        if !inside {
            front.extend(split_declaration(k, s));
        }
        body.push(s);
    }
    let body = k.block(body);
    front.push(k.stmt(StmtData::Ordered { body }, span));
    front
}

/// Turns the declaration of a register tile into an assignment. Returns the declaration without a value.
pub(crate) fn split_declaration(k: &mut Kernel, s: Stmt) -> Option<Stmt> {
    let span = k.stmt_spans[s];
    let (value, init) = match k.stmts[s] {
        StmtData::Var { value, init: Some(init) } => (value, init),
        StmtData::Let { value, init } => {
            let tile = tile_of(k, init)
                .unwrap_or_else(|| panic!("bug: `{}` is no tile, and is read in another place", k.values[value].name));
            k.values[value].def = ValueDef::Var(tile);
            (value, init)
        }
        _ => return None,
    };
    k.stmts[s] = StmtData::Assign { dst: value, src: init };
    Some(k.stmt(StmtData::Var { value, init: None }, span))
}

/// The type of a register tile, or of a scalar in a register, for the value of `e`, in the layout in which it is
/// computed.
fn tile_of(k: &mut Kernel, e: Expr) -> Option<TileTy> {
    let (elem, shape) = match type_of(k, e).ok()? {
        Type::Tile(ty) => (ty.elem, fixed_shape(k, e)?),
        Type::Scalar(elem) => (elem, Vec::new()),
        _ => return None,
    };
    let layout = layout_of(k, e);
    let span = k.expr_spans[e];
    let shape = shape.iter().map(|&n| k.int(n as i64, span)).collect();
    Some(TileTy::registers(elem, shape, layout))
}
