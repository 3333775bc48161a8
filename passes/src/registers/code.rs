//! Properties of a kernel's code that its text shows: [`Code`] of each statement.
//!
//! The copies and products of a loop take registers during the loop only; functions take them where they are computed.

use super::overhead::{Code, Products, USUAL_ACCESSES, USUAL_POINTERS};
use super::thread::Context;
use crate::analysis::access_width::known_elem;
use crate::analysis::functions::registers_of_all;
use crate::analysis::live_ranges;
use crate::analysis::uses::{all_stmts, mentions, stmt_exprs};
use crate::analysis::views::plain_var;
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, Mma, StmtData, ValueDef};
use tilec_ir::target::Target;
use tilec_ir::typing::{ResolvedView, resolve_view};

/// The code of each statement of a role.
pub(crate) fn of(k: &Kernel, deferred: &Deferred, context: &Context, target: Target) -> BTreeMap<Stmt, Code> {
    let loops = all_stmts(k, context.body).into_iter().filter_map(|s| match k.stmts[s] {
        StmtData::For { body, unroll: false, .. } if multiplies(k, body) => Some(copied(k, body)),
        _ => None,
    });
    let loops = loops.collect();
    let mut reader = Reader { k, deferred, target, threads: context.threads, loops, found: BTreeMap::new() };
    let around = reader.products(context.body);
    reader.block(context.body, around);
    reader.found
}

/// Bytes of an access below which a tile passes through registers in pieces (ptxas 13, sm_80: with accesses of 8 bytes,
/// gemm_mixed.tile takes 23 registers next to its tiles, like with 16).
const PIECE: u64 = 8;

/// Whether addresses in a tensor are computed from the digits of an index: then each access has a pointer, two
/// registers.
fn has_digits(k: &Kernel, tensor: Value) -> bool {
    let ty = k.tensor_ty(tensor).expect("a window of a tensor");
    (0..ty.shape.len()).any(|d| ty.modes(d).is_some_and(|modes| modes.len() > 1))
}

/// The product that a statement computes.
fn product(k: &Kernel, s: Stmt) -> Option<&Mma> {
    match k.stmts[s] {
        StmtData::Assign { src, .. } => match &k.exprs[src] {
            ExprData::Mma(mma) => Some(mma),
            _ => None,
        },
        _ => None,
    }
}

/// Whether products are directly in a loop, or in unrolled loops or branches there.
fn multiplies(k: &Kernel, body: Block) -> bool {
    k.blocks[body].iter().any(|&s| match k.stmts[s] {
        StmtData::For { unroll: false, .. } => false,
        _ => product(k, s).is_some() || k.sub_blocks(s).into_iter().any(|b| multiplies(k, b)),
    })
}

/// The window of global memory that threads copy in a statement.
fn loaded(k: &Kernel, s: Stmt) -> Option<(ResolvedView, Expr, &CopyAttrs)> {
    let StmtData::Copy { src, dst, attrs } = &k.stmts[s] else { return None };
    let view = resolve_view(k, *src).filter(|view| k.tensor_ty(view.base).is_some())?;
    (attrs.is_by_threads() && !attrs.is_prefetch()).then_some((view, *dst, attrs))
}

/// Whether a register tile is then stored to shared memory.
fn passes_on(k: &Kernel, body: Block, tile: Value) -> bool {
    all_stmts(k, body).into_iter().any(|s| match k.stmts[s] {
        StmtData::Copy { src, dst, .. } => {
            let shared =
                resolve_view(k, dst).is_some_and(|view| view.space(k).is_memory() && k.tensor_ty(view.base).is_none());
            shared && mentions(k, src, tile)
        }
        _ => false,
    })
}

/// The tensors that threads copy in a block.
fn copied(k: &Kernel, body: Block) -> BTreeSet<Value> {
    all_stmts(k, body).into_iter().filter_map(|s| Some(loaded(k, s)?.0.base)).collect()
}

struct Reader<'a> {
    k: &'a Kernel,
    deferred: &'a Deferred,
    target: Target,
    threads: u64,
    /// The tensors that each loop of products copies.
    loops: Vec<BTreeSet<Value>>,
    found: BTreeMap<Stmt, Code>,
}

impl Reader<'_> {
    fn block(&mut self, block: Block, around: Code) {
        for &s in &self.k.blocks[block] {
            let code = match self.k.stmts[s] {
                StmtData::For { body, unroll: false, .. } if multiplies(self.k, body) => self.of_loop(body),
                _ => around,
            };
            let here = Code { functions: self.functions(s), exchanged: self.exchanged(s), ..code };
            self.found.insert(s, here);
            self.k.sub_blocks(s).into_iter().for_each(|b| self.block(b, code));
        }
    }

    fn of_loop(&self, body: Block) -> Code {
        let k = self.k;
        let mut code = self.products(body);
        let mut words = 0;
        for s in all_stmts(k, body) {
            let Some((view, dst, attrs)) = loaded(k, s) else { continue };
            let access = known_elem(k, view.base).bytes_of(u64::from(attrs.vec.unwrap_or(1)));
            let staged = plain_var(k, dst);
            words += u64::from(attrs.unaligned().is_some());
            let layout = attrs.threads.as_ref().or_else(|| match &k.values[staged?].def {
                ValueDef::Var(t) => t.reg_layout.as_ref(),
                _ => None,
            });
            let accesses = layout.map_or(0, |l| 1u64 << l.value_bits().min(32)) / u64::from(attrs.vec.unwrap_or(1));
            let passes = staged.is_none_or(|v| passes_on(k, body, v));
            code.pieces |= access < PIECE && staged.is_some() && passes;
            if passes && self.loops.iter().filter(|tensors| tensors.contains(&view.base)).count() > 1 {
                code.again += accesses;
            }
            match has_digits(k, view.base) {
                true => code.digits += accesses.saturating_sub(USUAL_POINTERS),
                false => code.pointers += accesses.saturating_sub(USUAL_ACCESSES),
            }
        }
        Code { shifted: words > 1, ..code }
    }

    /// The products in a block, with properties of its loops and epilogue.
    fn products(&self, body: Block) -> Code {
        let mut code = Code::default();
        for s in all_stmts(self.k, body) {
            let Some(mma) = product(self.k, s) else { continue };
            let Some(atom) = mma.atom else { continue };
            let own = Products::of(atom.row(), self.target);
            code.products = code.products.max(own);
            let sums = plain_var(self.k, mma.c).and_then(|v| live_ranges::tile_of(self.k, v));
            code.halves |= own == Products::Warpgroups && sums.is_some_and(|tile| tile.elem.shares_registers());
        }
        code
    }

    /// Registers of a tile that a statement exchanges with other lanes.
    fn exchanged(&self, s: Stmt) -> u64 {
        let StmtData::Copy { src, dst, .. } = self.k.stmts[s] else { return 0 };
        let (Some(from), Some(to)) = (plain_var(self.k, src), plain_var(self.k, dst)) else { return 0 };
        if self.k.tile_ty(from).map(|t| &t.reg_layout) == self.k.tile_ty(to).map(|t| &t.reg_layout) {
            return 0;
        }
        live_ranges::tile_of(self.k, from).map_or(0, |tile| live_ranges::registers(self.k, from, &tile, self.threads))
    }

    fn functions(&self, s: Stmt) -> u64 {
        let own = |e| registers_of_all(self.k, self.deferred, e);
        stmt_exprs(self.k, s).into_iter().map(own).max().unwrap_or(0)
    }
}
