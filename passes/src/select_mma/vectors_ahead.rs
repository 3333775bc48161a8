//! Vectors that are read after a reduction of rows, such as the weights of a norm, are loaded in front of it.
//!
//! ```text
//! let scale = rsqrt(sum(x * x, 1))             var w_tile = reg bf16[1, BN]
//! copy x * scale * W[_, 0..] -> Y[..]          copy W[_, 0..] -> w_tile
//!                                         ->   let scale = rsqrt(sum(x * x, 1))
//!                                              copy x * scale * w_tile -> Y[..]
//! ```
//!
//! A load in the last statement stands between stores. The assembler does not move it over a store that may be to the
//! same address, so a thread waits for each of its loads in turn. In front of the reduction all loads are pending at
//! once, while the thread waits for the rows. The elements take registers meanwhile, so this is for vectors that fit.
//!
//! Windows that statements of the kernel's body read unconditionally are found, also in `let`s that copies name.

use crate::Cx;
use crate::analysis::access_width::elem_of;
use crate::analysis::live_ranges::{self, Tile};
use crate::analysis::uses::{depends, stmt_exprs};
use crate::analysis::views::{copy_shape, for_each_tile, reads_tensor};
use crate::assign_layouts::loaded_windows;
use crate::specialize::pad::in_context;
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::print::print_expr;
use tilec_ir::target::Target;
use tilec_ir::typing::{fixed_shape, resolve_view};

/// Vectors that can be loaded in front of a reduction.
pub(super) struct Ahead {
    /// The statement that reduces first.
    at: Stmt,
    vectors: Vec<Vector>,
    /// Bytes of registers for each element of a row: of tiles that are live from the reduction on, and of the vectors.
    pub(super) bytes: u64,
}

/// A vector that later statements read.
struct Vector {
    /// The same window, as often as it is read.
    windows: Vec<Expr>,
    /// The extents that are loaded.
    shape: Vec<u64>,
}

impl Ahead {
    /// Those of a kernel without loops whose largest reduced tile has `elements` elements. The rules for registers and
    /// blocks were measured for one and two vectors, in targets with clusters.
    pub(super) fn of(k: &Kernel, target: Target, elements: u64) -> Option<Ahead> {
        let list = &k.blocks[k.body];
        let first = list.iter().position(|&s| reduces(k, s, elements)).filter(|_| target.has_clusters())?;
        let mut later: Vec<Value> = list[first..].iter().filter_map(|&s| declares(k, s)).collect();
        // What all blocks read comes from the second-level cache.
        later.extend(k.grid.iter().map(|axis| axis.index));
        let mut vectors: Vec<Vector> = Vec::new();
        let deferred = Deferred::of(k);
        for &s in &list[first + 1..] {
            for (e, shape) in read(k, &deferred, s) {
                let Some(shape) = loaded_extents(k, e, &shape) else { continue };
                let all = shape.iter().product::<u64>();
                if later.iter().any(|&v| depends(k, e, v)) || all * MOST_ROWS < elements {
                    continue;
                }
                let same = |v: &&mut Vector| v.shape == shape && print_expr(k, v.windows[0]) == print_expr(k, e);
                match vectors.iter_mut().find(same) {
                    Some(vector) => vector.windows.push(e),
                    None => vectors.push(Vector { windows: vec![e], shape }),
                }
            }
        }
        // Each row of a block has the whole vector in its threads.
        let each = |v: &Vector| Some(narrowest(elem_of(k, resolve_view(k, v.windows[0])?.base)?.size().bytes_of(1)));
        let of_vectors = vectors.iter().map(each).sum::<Option<u64>>()?;
        let position = live_ranges::ranges(k).position(list[first])?;
        let of_rows = |tiles: &Vec<Tile>| -> u64 {
            let whole = tiles.iter().filter(|t| t.shape.iter().product::<u64>() >= elements);
            whole.map(|t| narrowest(t.elem.bytes_of(1))).sum()
        };
        let rows = live_ranges::tiles(k)[position..].iter().map(of_rows).max()?;
        let some = (1..=MOST_VECTORS).contains(&vectors.len());
        some.then_some(Ahead { at: list[first], vectors, bytes: rows + of_vectors })
    }

    /// Writes it out.
    pub(super) fn write(self, k: &mut Kernel, cx: &mut Cx<'_>) {
        for Vector { windows, shape } in self.vectors {
            let span = k.expr_spans[windows[0]];
            let base = resolve_view(k, windows[0]).expect("bug: it is a window").base;
            let name = k.values[base].name.clone();
            cx.remark(span, format!("`{name}` is loaded in front of the reduction, to be there when it ends"));
            let tile = loaded_windows::load(k, self.at, windows[0], &shape);
            for &same in &windows[1..] {
                k.exprs[same] = ExprData::Ref(tile);
            }
        }
    }
}

/// Most rows that share a vector.
const MOST_ROWS: u64 = 2;
/// Most vectors: values that are computed of more take registers, too.
const MOST_VECTORS: usize = 2;

/// Bytes of registers for an element: elements of 8 bits and less are computed in 16 bits.
fn narrowest(bytes: u64) -> u64 {
    bytes.max(2)
}

/// Whether a statement reduces a tile of at least `elements` elements.
fn reduces(k: &Kernel, s: Stmt, elements: u64) -> bool {
    let mut rest: Vec<Expr> = stmt_exprs(k, s).into_iter().collect();
    while let Some(e) = rest.pop() {
        let args = match &k.exprs[e] {
            ExprData::Reduce { arg, .. } | ExprData::Scan { arg, .. } => vec![*arg],
            ExprData::Combine(combine) => combine.args.to_vec(),
            _ => Vec::new(),
        };
        let large = |&arg: &Expr| fixed_shape(k, arg).is_some_and(|shape| shape.iter().product::<u64>() >= elements);
        if args.iter().any(large) {
            return true;
        }
        rest.extend(k.children(e));
    }
    false
}

/// The value that a statement declares.
fn declares(k: &Kernel, s: Stmt) -> Option<Value> {
    match k.stmts[s] {
        StmtData::Let { value, .. } | StmtData::Var { value, .. } => Some(value),
        _ => None,
    }
}

/// The windows that a statement reads element by element, with the extents of the tile with which each is combined. A
/// deferred `let` reads where it is named.
fn read(k: &Kernel, deferred: &Deferred, s: Stmt) -> Vec<(Expr, Vec<u64>)> {
    let (e, shape) = match k.stmts[s] {
        // What a copy reads under a condition is read under it only.
        StmtData::Copy { src, dst, ref attrs } if resolve_view(k, src).is_none() && attrs.when.is_none() => {
            (src, copy_shape(k, src, dst))
        }
        StmtData::Let { value, init } if deferred.init(value).is_none() && resolve_view(k, init).is_none() => {
            (init, fixed_shape(k, init))
        }
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    let Some(shape) = shape else { return found };
    let mut add = |e: Expr| in_context(k, e, &shape, &mut |window, shape| found.push((window, shape.to_vec())));
    add(e);
    for_each_tile(k, deferred, e, &mut |v| deferred.init(v).into_iter().for_each(&mut add));
    found
}

/// The extents in which a window is loaded, if it is one of a tensor that the kernel only reads.
fn loaded_extents(k: &Kernel, window: Expr, shape: &[u64]) -> Option<Vec<u64>> {
    let base = resolve_view(k, window)?.base;
    let written = |s: &StmtData| match *s {
        StmtData::Copy { dst, .. } => resolve_view(k, dst).is_some_and(|to| to.base == base),
        _ => false,
    };
    let only_read = reads_tensor(k, window) && !k.statement_data().any(written);
    only_read.then(|| loaded_windows::extents(k, window, shape)).flatten()
}
