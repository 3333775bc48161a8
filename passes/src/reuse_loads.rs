//! `reuse-loads`: windows that overlap windows loaded before.
//!
//! ```text
//! copy X[i * 16.., j * 64..] -> x
//! copy X[i * 16 - 1.., j * 64..] -> up held x (-1, 0)
//! ```
//!
//! In a stencil a thread loads an element once for each window that has it. An earlier load of the same block of
//! statements may have the elements at a distance that is known before the launch. If both tiles have one layout, a
//! thread takes the elements that it holds from its registers, and loads the others.
//!
//! Needs: layouts, the final order of loads, a tensor that the kernel only reads. Switched off: every window is loaded.

use crate::Cx;
use crate::analysis::access_width::window_contiguous_dim;
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::attributes::HeldElements;
use tilec_ir::diag::{Reported, counted};
use tilec_ir::entities::{Block, Stmt, Value};
use tilec_ir::held_elements::{PlainLoad, is_only_read};
use tilec_ir::kernel::{Kernel, StmtData};

pub(crate) const NAME: &str = "reuse-loads";

/// Loads of a block after which its tiles are examined; earlier ones are forgotten.
const MOST: usize = 64;

/// A load, and its position in its block.
struct Earlier {
    at: usize,
    load: PlainLoad,
}

/// A load that takes elements from others.
struct Found {
    stmt: Stmt,
    held: Vec<(Value, Vec<i64>)>,
    /// Elements that a thread takes, and that it has.
    taken: usize,
    all: usize,
}

pub(crate) fn run(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    if !cx.enabled {
        return Ok(());
    }
    let mut blocks: Vec<Block> = Vec::new();
    k.walk(k.body, &mut |_, block, _| {
        if !blocks.contains(&block) {
            blocks.push(block);
        }
    });
    for block in blocks {
        for Found { stmt, held, taken, all } in overlaps(k, block) {
            let span = k.stmt_spans[stmt];
            let names: Vec<String> = held.iter().map(|(v, _)| format!("`{}`", k.values[*v].name)).collect();
            let held = held
                .into_iter()
                .map(|(v, offset)| HeldElements { tile: k.value_ref(v, span), offset })
                .collect::<Vec<_>>();
            if let StmtData::Copy { attrs, .. } = &mut k.stmts[stmt] {
                attrs.held = held;
            }
            let of = counted(all, "element");
            cx.remark(span, format!("a thread takes {taken} of {of} from {}, which it has loaded", names.join(", ")));
        }
    }
    Ok(())
}

/// The loads of a block that overlap earlier ones in registers of the same thread.
fn overlaps(k: &Kernel, block: Block) -> Vec<Found> {
    let mut earlier: Vec<Earlier> = Vec::new();
    let (mut found, mut only_read): (Vec<Found>, BTreeMap<Value, bool>) = (Vec::new(), BTreeMap::new());
    for (at, &stmt) in k.blocks[block].iter().enumerate() {
        let Some(load) = PlainLoad::of(k, stmt) else { continue };
        if !*only_read.entry(load.view.base).or_insert_with_key(|&tensor| is_only_read(k, tensor)) {
            continue;
        }
        let decided = matches!(&k.stmts[stmt], StmtData::Copy { attrs, .. } if !attrs.held.is_empty());
        if !decided {
            found.extend(taken(k, block, (at, stmt), &load, &earlier));
        }
        earlier.retain(|other| other.load.tile != load.tile);
        earlier.push(Earlier { at, load });
        if earlier.len() > MOST {
            earlier.remove(0);
        }
    }
    found
}

/// What a load takes from the tiles of earlier ones: of these, those that have elements which no other has.
fn taken(k: &Kernel, block: Block, (at, stmt): (usize, Stmt), load: &PlainLoad, earlier: &[Earlier]) -> Option<Found> {
    let tile = k.tile_ty(load.tile)?;
    let (layout, shape) = (tile.reg_layout.as_ref()?, k.const_shape(&tile.shape)?);
    // An access is made unless the thread holds all of its elements.
    let width = match &k.stmts[stmt] {
        StmtData::Copy { attrs, .. } => attrs.vec.unwrap_or(1),
        _ => 1,
    };
    let contiguous = window_contiguous_dim(k, &load.view);
    // From each tile the elements that the thread holds there.
    let mut sources: Vec<(&Earlier, Vec<i64>, BTreeSet<usize>)> = Vec::new();
    for other in earlier.iter().rev() {
        let same = k.tile_ty(other.load.tile).is_some_and(|t| {
            (t.elem, &t.reg_layout) == (tile.elem, &tile.reg_layout) && k.const_shape(&t.shape).as_ref() == Some(&shape)
        });
        let whole = |offset: &[i64]| contiguous.is_none_or(|d| offset[d] % i64::from(width) == 0);
        let Some(offset) = load.offset_in(k, &other.load).filter(|of| same && whole(of)) else { continue };
        let held = layout.held(&shape, &offset).into_iter().enumerate().filter_map(|(v, from)| from.map(|_| v));
        sources.push((other, offset, held.collect()));
    }
    // A window that is loaded again as it is was written so, to have its registers free in between.
    if sources.iter().all(|(_, offset, _)| offset.iter().all(|&by| by == 0)) {
        return None;
    }
    let mut has: BTreeSet<usize> = BTreeSet::new();
    let mut held = Vec::new();
    // The tile with most of the elements first.
    while let Some(best) = (0..sources.len()).rev().max_by_key(|&i| sources[i].2.difference(&has).count()) {
        let (other, offset, own) = sources.swap_remove(best);
        if own.is_subset(&has) {
            break;
        }
        if other.load.lasts(k, block, other.at, at) {
            has.extend(own);
            held.push((other.load.tile, offset));
        }
    }
    (!has.is_empty()).then_some(Found { stmt, held, taken: has.len(), all: 1 << layout.value_bits() })
}
