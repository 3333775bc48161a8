//! How many registers of a thread a kernel with products takes, for so many warps.

use super::super::{best_atom, known, slice_depth};
use super::{LEAST, Product, share_out};
use crate::Cx;
use crate::analysis::uses::{mentions, stmt_exprs};
use tilec_ir::atoms::{Bit, Fragment};
use tilec_ir::deferred::Deferred;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::target::WARP;
use tilec_ir::typing::{Type, resolve_view, type_of};

/// Copies of a fragment: while one is multiplied the next is loaded.
const BUFFERS: u64 = 2;

/// Registers of a thread that hold all register tiles of the kernel, and the fragments of one product.
pub(super) fn registers(k: &Kernel, cx: &Cx<'_>, products: &[Product], warps: u64) -> u64 {
    let held = |shape: &[u64], bytes: u64| {
        let like = products.iter().find(|p| shape == [p.shape.0, p.shape.1]);
        let threads = warps * u64::from(WARP);
        let elements = match like {
            Some(p) => {
                let (wm, wn) = share_out(p, warps);
                wm * wn / u64::from(WARP)
            }
            // Of a row that is repeated lanes of four have the same.
            None if shape.contains(&1) => shape.iter().product::<u64>() * 4 / threads,
            None => shape.iter().product::<u64>() / threads,
        };
        (elements * bytes).div_ceil(4).max(1)
    };
    let sum = live(k)
        .into_iter()
        .map(|tiles| tiles.iter().map(|(shape, bytes)| held(shape, *bytes)).sum())
        .max()
        .unwrap_or(0);
    // One product alone loads its fragments a slice ahead; of several the assembler loads what the next instruction needs.
    let alone = products.len() == 1;
    let product = |p: &Product| fragments(cx, p, share_out(p, warps), alone) + staged(cx, p, warps);
    sum + products.iter().map(product).max().unwrap_or(0)
}

/// The register tiles that are live at each statement, as extents and bytes of an element. What a statement reads for the last time makes
/// room for what it writes: elements are computed one after the other.
fn live(k: &Kernel) -> Vec<Vec<(Vec<u64>, u64)>> {
    let deferred = Deferred::of(k);
    let mut order = Order::default();
    order.walk(k, k.body);
    let tile = |v: Value, s: Stmt| {
        let of = |e: Expr| match type_of(k, e) {
            Ok(Type::Tile(tile)) => tile.known_shape().zip(known(Some(tile.elem))),
            _ => None,
        };
        let found = match k.stmts[s] {
            StmtData::Var { .. } => k.tile_ty(v).and_then(|t| k.const_shape(&t.shape).zip(known(Some(t.elem)))),
            StmtData::Let { init, .. } if deferred.init(v).is_none() && resolve_view(k, init).is_none() => of(init),
            _ => None,
        };
        found.filter(|(shape, _)| !shape.is_empty()).map(|(shape, elem)| (shape, u64::from(elem.bytes())))
    };
    let mut at = vec![Vec::new(); order.stmts.len()];
    for (from, &s) in order.stmts.iter().enumerate() {
        let (StmtData::Var { value, .. } | StmtData::Let { value, .. }) = k.stmts[s] else { continue };
        let Some(tile) = tile(value, s) else { continue };
        let from = order.written(k, value, from);
        let to = order.last_use(k, value, from);
        at[from..to.max(from + 1)].iter_mut().for_each(|tiles| tiles.push(tile.clone()));
    }
    at
}

/// Statements in the order of the text, and which of them each loop spans.
#[derive(Default)]
struct Order {
    stmts: Vec<Stmt>,
    loops: Vec<(usize, usize)>,
}

impl Order {
    fn walk(&mut self, k: &Kernel, block: Block) {
        for &s in &k.blocks[block] {
            let first = self.stmts.len();
            self.stmts.push(s);
            k.sub_blocks(s).into_iter().for_each(|b| self.walk(k, b));
            if matches!(k.stmts[s], StmtData::For { .. }) {
                self.loops.push((first, self.stmts.len()));
            }
        }
    }

    /// Where a value declared at `from` is written first, if it has none before: with a copy of the whole tile.
    fn written(&self, k: &Kernel, v: Value, from: usize) -> usize {
        if !matches!(k.stmts[self.stmts[from]], StmtData::Var { init: None, .. }) {
            return from;
        }
        let first = (from + 1..self.stmts.len()).find(|&i| self.uses(k, i, v));
        let whole = |&i: &usize| match k.stmts[self.stmts[i]] {
            StmtData::Copy { src, dst, .. } => {
                matches!(k.exprs[dst], ExprData::Ref(w) if w == v) && !mentions(k, src, v)
            }
            _ => false,
        };
        first.filter(whole).unwrap_or(from)
    }

    fn uses(&self, k: &Kernel, i: usize, v: Value) -> bool {
        let s = self.stmts[i];
        stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, v))
            || matches!(k.stmts[s], StmtData::Assign { dst, .. } if dst == v)
    }

    /// The last statement that mentions a value declared at `from`: where a loop goes on with it, the end of that.
    fn last_use(&self, k: &Kernel, v: Value, from: usize) -> usize {
        let places = (from + 1..self.stmts.len()).filter(|&i| self.uses(k, i, v));
        let lasts = places.map(|i| {
            let around =
                self.loops.iter().filter(|(first, end)| (first..end).contains(&&i) && !(first..end).contains(&&from));
            around.map(|&(_, end)| end).max().unwrap_or(i)
        });
        lasts.max().unwrap_or(from)
    }
}

/// Registers of a thread through which the next tiles of a product's operands pass, where copies are not asynchronous.
fn staged(cx: &Cx<'_>, p: &Product, warps: u64) -> u64 {
    let bytes = p.types.map_or(0, |(inputs, _)| u64::from(inputs.bytes()));
    let through = !cx.options.target.has_asynchronous_copies();
    if through { (p.shape.0 + p.shape.1) * p.depth * bytes / (4 * warps * u64::from(WARP)) } else { 0 }
}

/// Registers of a thread that hold the fragments of a product of such warp tiles, in the best instruction for it.
fn fragments(cx: &Cx<'_>, p: &Product, (wm, wn): (u64, u64), alone: bool) -> u64 {
    let Some(types) = p.types else { return 0 };
    let Some(atom) = best_atom(cx.options.target, cx.enabled, types, (wm, wn, p.depth)) else { return 0 };
    let row = atom.row();
    let depth = slice_depth(row, [Some(types.0.bytes()); 2], p.depth);
    let words = |rows: u64, f: &Fragment| {
        let lanes = f.lane.iter().filter(|&&bit| bit != Bit::Same).count();
        ((rows * depth * u64::from(types.0.bytes())) >> lanes).div_ceil(4)
    };
    match alone {
        true => BUFFERS * (words(wm, &row.a[0]) + words(wn, &row.b[0])),
        false => words(wm, &row.a[0]) + BUFFERS * words(LEAST.min(wn), &row.b[0]),
    }
}
