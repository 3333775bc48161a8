//! Loops that do nothing but add products to one tile of sums.
//!
//! Such a loop may be cut anywhere: parts of its trips give parts of the sums.
//!
//! ```text
//! for k in 0..K step 64 {
//!     copy A[..] -> a; copy B[..] -> b                      // or slots of channels, with their operations
//!     copy a -> a_read; copy f(a_read) -> a_frag            // an operand in registers, and what it is computed of
//!     var part = reg f32[..] = 0; part = mma(a_frag, b, part)
//!     acc = acc + part                                      // or the product adds to the sums itself
//! }
//! ```

use crate::analysis::uses::{all_stmts, for_each_ref};
use crate::graph::accesses::Accesses;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, Mma, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::typing::{fixed_shape, resolve_view};

/// What such a loop does.
#[derive(Clone, Debug)]
pub(crate) struct Reduction {
    /// The product, and the tile that it adds to.
    pub(crate) product: Stmt,
    /// The sums of all trips.
    pub(crate) sums: Value,
    /// The sums of one trip, where these are added to the others by a statement of their own.
    pub(crate) part: Option<Value>,
    /// An operand in registers.
    pub(crate) load: Option<Load>,
}

/// An operand that an iteration loads into registers, or computes there.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// The first statement that does.
    pub(crate) first: Stmt,
    /// The operand.
    pub(crate) tile: Value,
    /// Other tiles of the iteration that it is computed of.
    pub(crate) of: Vec<Value>,
}

/// What the loop whose body is `body` does; `Err`: it does something else, too.
pub(crate) fn of(k: &Kernel, body: Block) -> Result<Reduction, String> {
    let mut product: Option<(Stmt, Value, Mma)> = None;
    let mut added: Option<(Value, Value)> = None;
    let mut loads: Vec<(Stmt, Value)> = Vec::new();
    let more = || Err("the loop does more than add up products".to_owned());
    for &s in &k.blocks[body] {
        match k.stmts[s] {
            StmtData::Channel { .. } | StmtData::Alloc { .. } | StmtData::Await { .. } => {}
            StmtData::Let { init, .. } if fixed_shape(k, init).is_none_or(|s| s.is_empty()) => {}
            StmtData::Var { init, .. } if init.is_none_or(|e| is_zero(k, e)) => {}
            StmtData::Copy { src, dst, .. } => match base(k, dst) {
                Some(v) if is_shared(k, v) => {
                    if !reads_tensor(k, src) {
                        return more();
                    }
                }
                Some(v) if matches!(k.values[v].def, ValueDef::Var(_)) && matches!(k.exprs[dst], ExprData::Ref(_)) => {
                    loads.push((s, v))
                }
                _ => return more(),
            },
            StmtData::Assign { dst, src } => match k.exprs[src] {
                ExprData::Mma(mma) if product.is_none() => product = Some((s, dst, mma)),
                // A part that is set to zero by itself.
                _ if is_zero(k, src) && product.is_none() => {}
                _ => match sum(k, dst, src) {
                    Some(part) if added.is_none() => added = Some((dst, part)),
                    _ => return more(),
                },
            },
            _ => return more(),
        }
    }
    let Some((product, own, mma)) = product else { return Err("the loop has no product".to_owned()) };
    if !matches!(k.exprs[mma.c], ExprData::Ref(v) if v == own) {
        return more();
    }
    let load = match operand(k, body, &mma, &loads) {
        Ok(load) => load,
        Err(()) => return more(),
    };
    match added {
        None => Ok(Reduction { product, sums: own, part: None, load }),
        Some((sums, part)) if part == own => Ok(Reduction { product, sums, part: Some(part), load }),
        Some(_) => more(),
    }
}

/// The operand in registers of a product, of the tiles that an iteration copies to; `Err`: some are for something else, or depend on what another iteration left.
fn operand(k: &Kernel, body: Block, mma: &Mma, loads: &[(Stmt, Value)]) -> Result<Option<Load>, ()> {
    let (Some(&(first, _)), Some(&(_, tile))) = (loads.first(), loads.last()) else { return Ok(None) };
    let reads = |v: Value| [mma.a, mma.b].into_iter().any(|e| matches!(k.exprs[e], ExprData::Ref(w) if w == v));
    let mut before: Vec<Value> = Vec::new();
    for &(s, v) in loads {
        let StmtData::Copy { src, .. } = k.stmts[s] else { unreachable!("a tile is copied to") };
        let mut known = true;
        for_each_ref(k, src, &mut |read| {
            let fixed =
                || !k.blocks[body].iter().any(|&t| Accesses::of(k, t).get(read).is_some_and(|found| found.writes));
            known &= !matches!(k.values[read].def, ValueDef::Var(_)) || before.contains(&read) || fixed();
        });
        let used = |&t: &Stmt| t != s && Accesses::of(k, t).get(v).is_some_and(|found| found.reads || found.writes);
        let outside = all_stmts(k, k.body).into_iter().filter(used).any(|t| {
            let declares = matches!(k.stmts[t], StmtData::Var { value, init: None } if value == v);
            !declares
                && !k.blocks[body].contains(&t)
                && !k.sub_blocks(t).into_iter().any(|b| all_stmts(k, b).contains(&s))
        });
        if !known || outside || before.contains(&v) {
            return Err(());
        }
        before.push(v);
    }
    before.pop();
    if !reads(tile) || before.iter().any(|&v| reads(v)) {
        return Err(());
    }
    Ok(Some(Load { first, tile, of: before }))
}

/// The loop of the kernel, if it has one and all products stand in it: a [`Reduction`] that stands in no other loop or branch.
pub(crate) fn of_kernel(k: &Kernel) -> Result<(Stmt, Reduction), String> {
    let mut found = None;
    let mut products = 0;
    k.walk(k.body, &mut |k, _, s| {
        products +=
            u32::from(matches!(k.stmts[s], StmtData::Assign { src, .. } if matches!(k.exprs[src], ExprData::Mma(_))));
    });
    if products != 1 {
        return Err("the kernel has several products".to_owned());
    }
    for &s in &k.blocks[k.body] {
        if let StmtData::For { body, unroll: false, .. } = k.stmts[s]
            && k.blocks[body].iter().any(|&s| is_product(k, s))
        {
            found = Some((s, of(k, body)?));
        }
    }
    found.ok_or_else(|| "there is no loop of products".to_owned())
}

/// Whether the sums that the loop `at` adds to are set to zero in front of it, and nothing else.
pub(crate) fn begins_at_zero(k: &Kernel, at: Stmt, sums: Value) -> bool {
    let before = k.blocks[k.body].iter().copied().take_while(|&s| s != at);
    before.filter(|&s| Accesses::of(k, s).get(sums).is_some()).all(|s| match k.stmts[s] {
        StmtData::Var { value, init: Some(e) } => value == sums && is_zero(k, e),
        StmtData::Assign { dst, src } => dst == sums && is_zero(k, src),
        _ => false,
    })
}

fn is_product(k: &Kernel, s: Stmt) -> bool {
    matches!(k.stmts[s], StmtData::Assign { src, .. } if matches!(k.exprs[src], ExprData::Mma(_)))
}

fn base(k: &Kernel, e: Expr) -> Option<Value> {
    match k.exprs[e] {
        ExprData::Ref(v) => Some(v),
        _ => resolve_view(k, e).map(|v| v.base),
    }
}

fn is_shared(k: &Kernel, v: Value) -> bool {
    k.values[v].def.space().is_of_block()
}

fn reads_tensor(k: &Kernel, src: Expr) -> bool {
    let src = match k.exprs[src] {
        ExprData::Cast { arg, .. } | ExprData::Lookup { index: arg, .. } => arg,
        _ => src,
    };
    resolve_view(k, src).is_some_and(|v| k.tensor_ty(v.base).is_some())
}

fn is_zero(k: &Kernel, e: Expr) -> bool {
    match k.exprs[e] {
        ExprData::Int(n) => n == 0,
        ExprData::Float(bits) => f64::from_bits(bits) == 0.0,
        _ => false,
    }
}

/// What is added to `dst`.
fn sum(k: &Kernel, dst: Value, src: Expr) -> Option<Value> {
    let ExprData::Op { op: Op::Add, ref args } = k.exprs[src] else { return None };
    match args[..] {
        [a, b] => match (&k.exprs[a], &k.exprs[b]) {
            (ExprData::Ref(whole), ExprData::Ref(part)) if *whole == dst => Some(*part),
            _ => None,
        },
        _ => None,
    }
}
