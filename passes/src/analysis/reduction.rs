//! Loops whose only effect is to accumulate products in one tile.
//!
//! Such a loop may be cut anywhere: parts of its iterations give parts of the sums.
//!
//! ```text
//! for k in 0..K step 64 {
//!     copy A[..] -> a; copy B[..] -> b                      // or slots of channels, with their operations
//!     copy a -> a_read; copy f(a_read) -> a_frag            // an operand in registers, and what it is computed of
//!     var part = reg f32[..] = 0; part = mma(a_frag, b, part)
//!     acc = acc + part                                      // or the product adds to the sums itself
//! }
//! ```
//!
//! A part may be multiplied by factors before it is added, `acc = acc + part * (rows * f)`. A factor is loop-invariant,
//! or the iteration itself loads it from slots or by copies to register tiles (`copy scale[k / 128, j] -> f`).

use crate::analysis::uses::{all_stmts, for_each_ref};
use crate::graph::accesses::Accesses;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, Mma, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::typing::{fixed_shape, resolve_view};

/// The parts of such a loop.
#[derive(Clone, Debug)]
pub(crate) struct Reduction {
    /// The product that accumulates.
    pub(crate) product: Stmt,
    /// The accumulator of the whole loop.
    pub(crate) sums: Value,
    /// The partial sums of one iteration, if a separate statement adds them to the accumulator.
    pub(crate) part: Option<Part>,
    /// An operand in registers.
    pub(crate) load: Option<Load>,
}

/// The partial sums of one iteration.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) value: Value,
    /// The statement that adds them to the accumulator.
    pub(crate) sum: Stmt,
    /// Register tiles of the iteration by which they are multiplied first.
    pub(crate) factors: Vec<Value>,
    /// The first statement in front of the product that copies such a factor from shared memory.
    pub(crate) first: Option<Stmt>,
}

impl Reduction {
    /// The first statement that reads slots for the product or for its factors.
    pub(crate) fn first_read(&self) -> Option<Stmt> {
        self.part.as_ref().and_then(|part| part.first).or_else(|| self.load.as_ref().map(|load| load.first))
    }
}

/// An operand that an iteration loads or computes in registers.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// The first statement that does so.
    pub(crate) first: Stmt,
    /// The operand.
    pub(crate) tile: Value,
    /// Other tiles of the iteration from which it is computed.
    pub(crate) of: Vec<Value>,
}

/// Analyses the loop with the given `body`; `Err`: it has other effects.
pub(crate) fn of(k: &Kernel, body: Block) -> Result<Reduction, String> {
    let mut product: Option<(Stmt, Value, Mma)> = None;
    let mut added: Option<(Stmt, Value, Vec<Expr>)> = None;
    let mut lets: Vec<(Value, Expr)> = Vec::new();
    let mut loads: Vec<(Stmt, Value)> = Vec::new();
    let more = || Err("the loop does more than accumulate products".to_owned());
    for &s in &k.blocks[body] {
        match k.stmts[s] {
            StmtData::Channel { .. } | StmtData::Alloc { .. } | StmtData::Await { .. } => {}
            StmtData::Let { value, init } => lets.push((value, init)),
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
                // The partial sum is set to zero by a separate statement.
                _ if is_zero(k, src) && product.is_none() => {}
                _ => match product.and_then(|(_, part, _)| sum(k, dst, src, part)) {
                    Some(factors) if added.is_none() => added = Some((s, dst, factors)),
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
    let computes = |&(_, init): &(Value, Expr)| fixed_shape(k, init).is_some_and(|shape| !shape.is_empty());
    let Some((sum, sums, factors)) = added else {
        return match operand(k, body, &mma, &loads) {
            Ok(load) if !lets.iter().any(computes) => Ok(Reduction { product, sums: own, part: None, load }),
            _ => more(),
        };
    };
    let Some(factors) = own_factors(k, body, &factors, &lets, [sums, own]) else { return more() };
    let (brought, loads): (Vec<_>, Vec<_>) = loads.into_iter().partition(|(_, v)| factors.contains(v));
    let named = lets.iter().all(|l| !computes(l) || factors.contains(&l.0));
    let at = |s: Stmt| k.blocks[body].iter().position(|&t| t == s);
    let first = brought.iter().map(|&(s, _)| s).find(|&s| reads_shared(k, s) && at(s) < at(product));
    let part = Part { value: own, sum, factors, first };
    match operand(k, body, &mma, &loads) {
        // Slots are read in one place only: in front of the product.
        Ok(load) if named && (first.is_none() || load.is_none()) && brought.iter().all(|&(s, _)| is_window(k, s)) => {
            Ok(Reduction { product, sums, part: Some(part), load })
        }
        _ => more(),
    }
}

/// The register tiles and names of an iteration that factors read; `None`: they read the accumulator, or values of
/// another iteration.
fn own_factors(
    k: &Kernel,
    body: Block,
    factors: &[Expr],
    lets: &[(Value, Expr)],
    sums: [Value; 2],
) -> Option<Vec<Value>> {
    let mut found: Vec<Value> = Vec::new();
    let mut queue: Vec<Expr> = factors.to_vec();
    while let Some(e) = queue.pop() {
        let mut read = Vec::new();
        for_each_ref(k, e, &mut |v| read.push(v));
        for v in read.into_iter().filter(|v| !found.contains(v)).collect::<Vec<_>>() {
            let init = lets.iter().find(|(name, _)| *name == v).map(|(_, init)| *init);
            let varies = matches!(k.values[v].def, ValueDef::Var(_)) && changes(k, body, v);
            if sums.contains(&v) || varies && !begins_anew(k, body, v) {
                return None;
            }
            if init.is_some() || varies {
                found.push(v);
            }
            queue.extend(init);
        }
    }
    Some(found)
}

/// Whether a statement of a loop writes a value.
fn changes(k: &Kernel, body: Block, v: Value) -> bool {
    k.blocks[body].iter().any(|&s| Accesses::of(k, s).get(v).is_some_and(|found| found.writes))
}

/// Whether the first statement of an iteration that touches a tile overwrites all of it by a copy.
fn begins_anew(k: &Kernel, body: Block, v: Value) -> bool {
    let touches = |s: Stmt| Accesses::of(k, s).get(v).is_some_and(|found| found.writes || found.reads);
    let first = k.blocks[body].iter().copied().find(|&s| touches(s) && !matches!(k.stmts[s], StmtData::Var { .. }));
    first.is_some_and(
        |s| matches!(k.stmts[s], StmtData::Copy { dst, .. } if matches!(k.exprs[dst], ExprData::Ref(w) if w == v)),
    )
}

/// Whether a copy reads a window of a tensor or buffer.
fn is_window(k: &Kernel, s: Stmt) -> bool {
    let StmtData::Copy { src, .. } = k.stmts[s] else { return false };
    reads_tensor(k, src) || reads_shared(k, s)
}

/// Whether a copy reads a window of a buffer.
fn reads_shared(k: &Kernel, s: Stmt) -> bool {
    matches!(k.stmts[s], StmtData::Copy { src, .. } if base(k, src).is_some_and(|v| is_shared(k, v)))
}

/// The operand in registers of a product, from the tiles that an iteration copies to. `Err`: some tiles serve another
/// purpose, or depend on another iteration. If both operands are in registers, it is the computed one; the other is
/// loaded directly in front of the product.
fn operand(k: &Kernel, body: Block, mma: &Mma, loads: &[(Stmt, Value)]) -> Result<Option<Load>, ()> {
    let reads = |v: Value| [mma.a, mma.b].into_iter().any(|e| matches!(k.exprs[e], ExprData::Ref(w) if w == v));
    let own = match loads {
        [own @ .., (_, computed), (s, v)] if reads(*computed) && reads(*v) && reads_shared(k, *s) => {
            &loads[..=own.len()]
        }
        _ => loads,
    };
    let (Some(&(first, _)), Some(&(_, tile))) = (own.first(), own.last()) else { return Ok(None) };
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
    before.truncate(own.len() - 1);
    if !reads(tile) || before.iter().any(|&v| reads(v)) {
        return Err(());
    }
    Ok(Some(Load { first, tile, of: before }))
}

/// The only loop of the kernel with products: a [`Reduction`] that is in no other loop or branch.
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

/// Whether the sums that the loop `at` accumulates are set to zero in front of it, and nothing else.
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
        // A buffer that became a channel has no slot in its views yet.
        ExprData::View(ref view) if is_shared(k, view.base) => Some(view.base),
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

/// The factors by which the part is multiplied before it is added to `dst`; `None`: another assignment.
fn sum(k: &Kernel, dst: Value, src: Expr, part: Value) -> Option<Vec<Expr>> {
    let ExprData::Op { op, ref args } = k.exprs[src] else { return None };
    let is_sum = |e: Expr| matches!(k.exprs[e], ExprData::Ref(v) if v == dst);
    match (op, &args[..]) {
        (Op::Add, &[whole, more]) if is_sum(whole) => scaled(k, more, part),
        (Op::Add, &[more, whole]) if is_sum(whole) => scaled(k, more, part),
        (Op::Fma, &[a, b, whole]) if is_sum(whole) => times(k, [a, b], part),
        _ => None,
    }
}

/// The factors of a part, if an expression is a product of it.
fn scaled(k: &Kernel, e: Expr, part: Value) -> Option<Vec<Expr>> {
    match k.exprs[e] {
        ExprData::Ref(v) if v == part => Some(Vec::new()),
        ExprData::Cast { arg, .. } => scaled(k, arg, part),
        ExprData::Op { op: Op::Mul, ref args } => times(k, [args[0], args[1]], part),
        _ => None,
    }
}

fn times(k: &Kernel, [a, b]: [Expr; 2], part: Value) -> Option<Vec<Expr>> {
    let (mut found, factor) = scaled(k, a, part).map(|found| (found, b)).or_else(|| Some((scaled(k, b, part)?, a)))?;
    found.push(factor);
    Some(found)
}
