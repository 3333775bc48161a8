//! Shared-memory buffers that producer warps can fill.
//!
//! A buffer is *fed* if copies from tensors fill it, each as a whole, and all its readers are after the copy in the
//! same block (or deeper). Then it becomes a channel, the copy goes to the producer warps, and the readers wait for the
//! slot. The producer runs the loops and branches around its copies, so these must not depend on values that the
//! consumer warps compute.
//!
//! [`plan`] returns the buffers that can be fed, or the statement that prevents it. `select-mma` calls it before it
//! chooses wgmma, and `schedule-loops` when it makes the channels.

use crate::analysis::access_width::window_contiguous_dim;
use crate::analysis::facts::Facts;
use crate::analysis::uses::{all_stmts, mentions, path_to, stmt_exprs};
use crate::refusal::Refused;
use crate::{Options, tensor_copies, thread_fills};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::index_values::{is_constant, is_written};
use tilec_ir::kernel::{CopyAttrs, ExprData, Kernel, StmtData, ValueDef, View};
use tilec_ir::modified_values::changes;
use tilec_ir::names::Parts;
use tilec_ir::typing::{let_init, resolve_view};

/// How the producer fills a slot.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum How {
    /// One lane issues TMA loads.
    Tensor,
    /// Its threads issue `cp.async`.
    Threads,
}

/// A copy that fills a buffer, and the readers of its tile.
#[derive(Clone, Debug)]
pub(crate) struct ProducerFill {
    pub(crate) fill: Stmt,
    pub(crate) buffer: Value,
    /// The block of the copy.
    pub(crate) block: Block,
    /// Statements of the block that read the buffer, directly or inside, in program order.
    pub(crate) readers: Vec<Stmt>,
    pub(crate) mechanism: How,
    /// Why its tiles are not loaded by TMA.
    pub(crate) refused: Option<Refused>,
}

/// The copies that feed `buffers`, in program order.
pub(crate) fn plan(k: &Kernel, options: &Options, buffers: &[Value]) -> Result<Vec<ProducerFill>, Refused> {
    let facts = Facts::new(k);
    let mut feeds = Vec::new();
    let mut readers: Vec<(Stmt, Value)> = Vec::new();
    let mut all = Vec::new();
    k.walk(k.body, &mut |_, block, s| all.push((block, s)));
    for &(block, s) in &all {
        if let StmtData::Await { value, .. } = k.stmts[s]
            && buffers.contains(&value)
        {
            return Err(refused(k, s, format!("`{}` is awaited here", k.values[value].name)));
        }
        let own = stmt_exprs(k, s);
        for &buffer in buffers {
            if !own.iter().any(|&e| mentions(k, e, buffer)) && !takes_over(k, s, buffer) {
                continue;
            }
            match fill(k, options, &facts, s, buffer)? {
                Some((how, refused)) => {
                    feeds.push(ProducerFill { fill: s, buffer, block, readers: Vec::new(), mechanism: how, refused });
                }
                None => readers.push((s, buffer)),
            }
        }
    }
    of_one_kind(k, options, &facts, &mut feeds)?;
    in_one_order(k, &feeds)?;
    for (s, buffer) in readers {
        let (feed, reader) = copy_read_by(k, &feeds, s, buffer)?;
        let list = &mut feeds[feed].readers;
        if !list.contains(&reader) {
            list.push(reader);
        }
    }
    for feed in &feeds {
        let name = &k.values[feed.buffer].name;
        if feed.readers.is_empty() {
            return Err(refused(k, feed.fill, format!("nothing here reads `{name}` after the copy")));
        }
        producible(k, feed.fill)?;
        unwritten(k, feed, &all)?;
    }
    Ok(feeds)
}

/// Whether threads fill a buffer with computed or converted values: it is also filled from something other than tensor
/// windows.
pub(crate) fn by_threads(k: &Kernel, buffer: Value) -> bool {
    all_stmts(k, k.body).into_iter().any(|s| match k.stmts[s] {
        StmtData::Copy { src, dst, .. } => {
            resolve_view(k, dst).is_some_and(|to| to.base == buffer)
                && resolve_view(k, src).is_none_or(|from| k.tensor_ty(from.base).is_none())
        }
        _ => false,
    })
}

fn refused(k: &Kernel, s: Stmt, why: String) -> Refused {
    Refused::at(k.stmt_spans[s], why)
}

fn takes_over(k: &Kernel, s: Stmt, buffer: Value) -> bool {
    matches!(&k.stmts[s], StmtData::Alloc { value, over } if *value == buffer && !over.is_empty() || over.contains(&buffer))
}

/// The mechanism of a copy to a buffer, and why it is not TMA.
type Filled = (How, Option<Refused>);

/// The mechanism of a statement that fills a buffer; `None`: it reads the buffer.
fn fill(k: &Kernel, options: &Options, facts: &Facts, s: Stmt, buffer: Value) -> Result<Option<Filled>, Refused> {
    let name = &k.values[buffer].name;
    if takes_over(k, s, buffer) {
        return Err(refused(k, s, format!("`{name}` shares memory with other buffers")));
    }
    let StmtData::Copy { src, dst, attrs } = &k.stmts[s] else { return Ok(None) };
    if resolve_view(k, *dst).is_none_or(|v| v.base != buffer) {
        return match attrs.is_tensor() {
            true => Err(refused(k, s, format!("`{name}` is stored by TMA"))),
            false => Ok(None),
        };
    }
    if !matches!(k.exprs[*dst], ExprData::Ref(v) if v == buffer) {
        return Err(refused(k, s, format!("part of `{name}` is written")));
    }
    let Some(from) = resolve_view(k, *src).filter(|v| k.tensor_ty(v.base).is_some()) else {
        return Err(refused(k, s, format!("threads write `{name}`: it is not copied from a tensor as it is")));
    };
    // Any other written attribute was refused earlier.
    let plain = undecided(attrs);
    let tensor = tensor_copies::fits(k, facts, options.target, &from, buffer, &plain);
    match tensor {
        Ok(()) => Ok(Some((How::Tensor, None))),
        Err(tensor) => thread_fills::fits(k, facts, options.target, &from, buffer, &plain)
            .map(|()| Some((How::Threads, Some(tensor.or_at(k.stmt_spans[s])))))
            .map_err(|refused| refused.or_at(k.stmt_spans[s])),
    }
}

/// Uses one mechanism for all slots of a buffer: threads, if TMA cannot do some copy to it.
fn of_one_kind(k: &Kernel, options: &Options, facts: &Facts, feeds: &mut [ProducerFill]) -> Result<(), Refused> {
    let by_threads = feeds.iter().filter(|f| f.mechanism == How::Threads);
    let by_threads: Vec<(Value, Option<Refused>)> = by_threads.map(|f| (f.buffer, f.refused.clone())).collect();
    for feed in feeds.iter_mut().filter(|f| f.mechanism == How::Tensor) {
        let Some((_, why)) = by_threads.iter().find(|(buffer, _)| *buffer == feed.buffer) else { continue };
        let StmtData::Copy { src, attrs, .. } = &k.stmts[feed.fill] else { unreachable!("a feed is a copy") };
        let from = resolve_view(k, *src).expect("a feed copies a window");
        thread_fills::fits(k, facts, options.target, &from, feed.buffer, &undecided(attrs))
            .map_err(|why| why.or_at(k.stmt_spans[feed.fill]))?;
        (feed.mechanism, feed.refused) = (How::Threads, why.clone());
    }
    Ok(())
}

/// Requires one order for all copies to a buffer, because none of them transposes.
fn in_one_order(k: &Kernel, feeds: &[ProducerFill]) -> Result<(), Refused> {
    let along = |feed: &ProducerFill| {
        let StmtData::Copy { src, .. } = k.stmts[feed.fill] else { return None };
        resolve_view(k, src).and_then(|from| window_contiguous_dim(k, &from))
    };
    for (i, feed) in feeds.iter().enumerate() {
        let other = feeds[..i].iter().find(|other| other.buffer == feed.buffer && along(other) != along(feed));
        if other.is_some() {
            let name = &k.values[feed.buffer].name;
            return Err(refused(k, feed.fill, format!("tiles in `{name}` come from tensors of different orders")));
        }
    }
    Ok(())
}

/// The written attributes of a copy, without decisions of passes for consumer threads, which do not apply to the
/// producer.
fn undecided(attrs: &CopyAttrs) -> CopyAttrs {
    CopyAttrs { when: attrs.when, reduce: attrs.reduce, keep: attrs.keep, ..CopyAttrs::default() }
}

/// The copy whose tile a statement reads, and the statement of the copy's block that contains the reader.
fn copy_read_by(k: &Kernel, feeds: &[ProducerFill], s: Stmt, buffer: Value) -> Result<(usize, Stmt), Refused> {
    let name = &k.values[buffer].name;
    let path = path_to(k, s);
    let place = |f: &ProducerFill| k.blocks[f.block].iter().position(|&t| t == f.fill);
    for &(block, index) in path.iter().rev() {
        let here = |f: &&(usize, usize)| f.1 < index;
        let of_block = feeds.iter().enumerate().filter(|(_, f)| f.buffer == buffer && f.block == block);
        let fills: Vec<(usize, usize)> = of_block.filter_map(|(i, f)| Some((i, place(f)?))).collect();
        let Some(&(feed, at)) = fills.iter().filter(here).max_by_key(|f| f.1) else { continue };
        // A copy nested between the two could change the tile.
        for (other, f) in feeds.iter().enumerate().filter(|(i, f)| *i != feed && f.buffer == buffer) {
            let inside = path_to(k, f.fill);
            if inside.len() > 1 && inside.iter().any(|&(b, i)| b == block && at < i && i <= index) {
                return Err(refused(
                    k,
                    feeds[other].fill,
                    format!("`{name}` is filled here and in a block around this one"),
                ));
            }
        }
        return Ok((feed, k.blocks[block][index]));
    }
    Err(refused(
        k,
        s,
        format!("`{name}` is read here, and the copy that fills it is not in front of it in the same block"),
    ))
}

/// Checks that nothing in front of a copy stores to the tensor that it reads.
fn unwritten(k: &Kernel, feed: &ProducerFill, all: &[(Block, Stmt)]) -> Result<(), Refused> {
    let StmtData::Copy { src, .. } = k.stmts[feed.fill] else { unreachable!("a feed is a copy") };
    let Some(from) = resolve_view(k, src) else { return Ok(()) };
    match stored_before(k, from.base, feed.fill, all) {
        Some(s) => {
            Err(refused(k, s, format!("`{}` is stored here and loaded for a product", k.values[from.base].name)))
        }
        None => Ok(()),
    }
}

/// A statement in `all` that stores to a tensor in front of `at`, where a producer would load from it: nothing orders
/// the consumer's stores and the producer's loads. A store of the same tile after a copy outside of loops comes later,
/// because the consumer has waited for the slot. Different blocks do not exchange data through tensors.
pub(crate) fn stored_before(k: &Kernel, tensor: Value, at: Stmt, all: &[(Block, Stmt)]) -> Option<Stmt> {
    let place = |s: Stmt| all.iter().position(|&(_, t)| t == s);
    let path = path_to(k, at);
    let looped = path.iter().any(|&(b, i)| matches!(k.stmts[k.blocks[b][i]], StmtData::For { .. }));
    all.iter().map(|&(_, s)| s).find(|&s| {
        matches!(k.stmts[s], StmtData::Copy { dst, .. } if resolve_view(k, dst).is_some_and(|to| to.base == tensor))
            && (looped || place(s) < place(at))
            && !on_other_sides(k, &path, &path_to(k, s))
    })
}

/// Whether a block executes at most one of two statements outside of loops.
fn on_other_sides(k: &Kernel, a: &[(Block, usize)], b: &[(Block, usize)]) -> bool {
    let Some(fork) = a.iter().zip(b).position(|(x, y)| x != y) else { return false };
    let looped = a.iter().any(|&(b, i)| matches!(k.stmts[k.blocks[b][i]], StmtData::For { .. }));
    !looped && a[fork].0 != b[fork].0
}

/// Checks that the loops and branches around a copy, and its window, depend on nothing that consumer warps compute.
fn producible(k: &Kernel, fill: Stmt) -> Result<(), Refused> {
    let path = path_to(k, fill);
    for &(block, index) in &path {
        let s = k.blocks[block][index];
        let exprs = match &k.stmts[s] {
            StmtData::Copy { src, .. } => {
                if resolve_view(k, *src).is_some_and(|view| view.gathers_by_element(k)) {
                    return Err(refused(k, s, "each of its elements has an index of its own".to_owned()));
                }
                let mut gathered = index_tiles(k, *src);
                gathered.retain(|&rows| numbers(k, fill, rows).is_some());
                k.children(*src).into_iter().filter(|&e| !is_name(k, e, &gathered)).collect()
            }
            StmtData::For { cond: Some(_), .. } => {
                let why = "whether the loop around it goes on is known only to the threads that compute (`while`)";
                return Err(refused(k, s, why.to_owned()));
            }
            StmtData::For { .. } | StmtData::If { .. } => stmt_exprs(k, s),
            _ => return Err(refused(k, s, "the copy is in an `ordered` block or a role".to_owned())),
        };
        for e in exprs {
            if let Some(v) = computed(k, e) {
                let name = &k.values[v].name;
                return Err(refused(k, s, format!("this depends on `{name}`, which consumer threads compute")));
            }
        }
    }
    Ok(())
}

fn is_name(k: &Kernel, e: Expr, of: &[Value]) -> bool {
    matches!(k.exprs[e], ExprData::Ref(v) if of.contains(&v))
}

/// The register tiles with the indices of a gathering window, in the order of its dimensions.
pub(crate) fn index_tiles(k: &Kernel, src: Expr) -> Vec<Value> {
    let gathered = resolve_view(k, src).map_or_else(Vec::new, |view| view.gathered_dims());
    let name = |(_, e): (usize, Expr)| match k.exprs[e] {
        ExprData::Ref(v) => v,
        _ => panic!("bug: rows are gathered by what is no variable"),
    };
    gathered.into_iter().map(name).collect()
}

/// The copy that loads the indices by which the copy `fill` gathers, if the producer can execute it, too: it is in
/// front of all loops, nothing else changes the tile, and its tensor is not written.
pub(crate) fn numbers(k: &Kernel, fill: Stmt, rows: Value) -> Option<Stmt> {
    let all = all_stmts(k, k.body);
    let declares = |&s: &Stmt| matches!(k.stmts[s], StmtData::Var { value, init: None } if value == rows);
    let writes = |&s: &Stmt| k.sub_blocks(s).is_empty() && changes(k, s, rows);
    let mut writers = all.iter().copied().filter(|s| writes(s) && !declares(s));
    let (copy, None) = (writers.next()?, writers.next()) else { return None };
    let StmtData::Copy { src, dst, ref attrs } = k.stmts[copy] else { return None };
    let from = resolve_view(k, src).filter(|view| k.tensor_ty(view.base).is_some())?;
    let plain = !attrs.keep && attrs.when.is_none() && attrs.is_by_threads() && !attrs.is_prefetch();
    let known = !is_written(k, from.base) && k.children(src).into_iter().all(|e| computed(k, e).is_none());
    let (path, around) = (path_to(k, copy), path_to(k, fill));
    let &(block, index) = path.last()?;
    let in_front = around.iter().any(|&(b, i)| b == block && index < i);
    let looped = path.iter().any(|&(b, i)| matches!(k.stmts[k.blocks[b][i]], StmtData::For { .. }));
    (plain && known && in_front && !looped && matches!(k.exprs[dst], ExprData::Ref(_))).then_some(copy)
}

/// A register tile, or a value from memory, on which an index or a condition depends. Constant elements in indices do
/// not count, because any role can read them.
pub(crate) fn computed(k: &Kernel, e: Expr) -> Option<Value> {
    let mut parts = Parts::of(k, e);
    while let Some(e) = parts.take() {
        match &k.exprs[e] {
            // Constant elements: only their own indices are examined.
            ExprData::Index(arg) if is_constant(k, *arg) => of_number(k, *arg, &mut parts),
            ExprData::Ref(v) | ExprData::View(View { base: v, .. }) => {
                operands(k, e, &mut parts);
                match &k.values[*v].def {
                    ValueDef::Var(_) | ValueDef::Smem(_) | ValueDef::Channel { .. } | ValueDef::Tensor(_) => {
                        return Some(*v);
                    }
                    ValueDef::Let => name(k, *v, &mut parts),
                    _ => {}
                }
            }
            _ => operands(k, e, &mut parts),
        }
    }
    None
}

/// Examines each name once. A name for a window is not a read of the window.
fn name(k: &Kernel, v: Value, parts: &mut Parts<'_>) {
    let Some(init) = let_init(k, v).filter(|_| parts.once(v)) else { return };
    match resolve_view(k, init).filter(|view| view.space(k).has_bounds()) {
        Some(_) => operands(k, init, parts),
        None => parts.also(init),
    }
}

fn operands(k: &Kernel, e: Expr, parts: &mut Parts<'_>) {
    let children: Vec<Expr> = k.children(e).into_iter().collect();
    children.into_iter().rev().for_each(|c| parts.also(c));
}

/// Examines a number in an index.
fn of_number(k: &Kernel, e: Expr, parts: &mut Parts<'_>) {
    match k.exprs[e] {
        ExprData::Ref(_) => parts.also(e),
        ExprData::View(_) => operands(k, e, parts),
        _ => {
            let children: Vec<Expr> = k.children(e).into_iter().collect();
            children.into_iter().rev().for_each(|c| of_number(k, c, parts));
        }
    }
}
