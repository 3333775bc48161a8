//! Rows of a loop in shared memory, if a block has too few registers for two rows and for the sums over all rows.
//!
//! ```text
//! var dw = reg f32[1, BN] = 0.0                let dw_sums = smem f32[1, BN]
//! for m in .. {                                copy 0.0 -> dw_sums
//!     var x = reg bf16[1, BN]                  let x_row = smem bf16[1, BN]
//!     copy X[m.., ..] -> x                     for m in .. {
//!     ..                                           var x = reg bf16[1, BN]
//!     dw = dw + x * s                              copy X[m.., ..] -> x_row
//! }                                                copy x_row -> x
//! copy dw -> P[..]                                 ..
//!                                                  var dw_sum = reg f32[1, BN]
//!                                                  copy dw_sums -> dw_sum
//!                                                  copy dw_sum + x * s -> dw_sums
//!                                              }
//!                                              var dw = reg f32[1, BN]
//!                                              copy dw_sums -> dw
//!                                              copy dw -> P[..]
//! ```
//!
//! If shared memory has room for [`SLOTS`] rows, sums stay in registers, and tiles that are loaded once for all rows
//! are in shared memory, too: two rows are loaded ahead while one is used.
//!
//! The copies to buffers then run an iteration ahead as in other loops (`pipeline`), if there is room for two rows. Two
//! blocks of a cluster that share a row are faster (docs/notes/rows.md), so this is for targets without clusters, and
//! for rows that are too long for two blocks.

use crate::Cx;
use crate::analysis::live_ranges;
use crate::analysis::uses::{all_stmts, mentions, place_of, stmt_exprs};
use crate::analysis::views::{plain_var, reads_tensor};
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, Kernel, StmtData, ValueDef};
use tilec_ir::modified_values::changes;
use tilec_ir::typing::resolve_view;

/// Most registers of a thread for the elements of one row and for tiles of all rows, in a block of [`THREADS`].
const REGISTERS: u64 = 96;
/// Threads of a block with rows in shared memory.
pub(super) const THREADS: u64 = 512;
/// Bytes of shared memory left for exchanges between warps.
const BESIDE: u64 = 8 << 10;
/// Rows in shared memory if registers hold the sums, and bytes left in addition.
const SLOTS: i64 = 3;
const BESIDE_SLOTS: u64 = 2 << 10;
/// Most registers of a thread in that case for the elements of one row, and for the sums: values computed from the row
/// take more than as many again, and with more elements the assembler spills.
const REGISTERS_OF_SLOTS: u64 = 48;

/// A loop whose rows pass through shared memory.
pub(super) struct InMemory {
    at: Stmt,
    /// Tiles that it loads, with the copies.
    loads: Vec<(Value, Stmt)>,
    /// Tiles that it accumulates, with their declarations and accumulating statements.
    sums: Vec<(Value, Stmt, Stmt)>,
    /// Tiles that are loaded in front of it, with the copies.
    constants: Vec<(Value, Stmt)>,
    /// Number of rows in shared memory at a time, if it is given.
    slots: Option<i64>,
}

impl InMemory {
    /// The loop `at` with rows of `elements` elements, if its tiles fit `room` bytes of shared memory, and the rest
    /// fits registers.
    pub(super) fn of(k: &Kernel, at: Stmt, elements: u64, room: u64) -> Option<InMemory> {
        let StmtData::For { body, .. } = k.stmts[at] else { return None };
        let (list, inside) = (&k.blocks[body], all_stmts(k, body));
        let (mut loads, mut sums, mut others) = (Vec::new(), Vec::new(), 0);
        for v in k.values.keys().filter(|&v| matches!(k.values[v].def, ValueDef::Var(_))) {
            let Some(tile) = live_ranges::tile_of(k, v).filter(|t| t.shape.iter().product::<u64>() >= elements) else {
                continue;
            };
            let changing: Vec<Stmt> =
                inside.iter().copied().filter(|&s| changes(k, s, v) && !declares(k, s, v)).collect();
            let declared = list.iter().any(|&s| declares(k, s, v));
            match changing[..] {
                [] => others += bytes_of(k, v),
                _ if tile.elem.whole_bytes().is_none() => return None,
                [s] if declared && list.contains(&s) && loads_whole(k, s, v) => loads.push((v, s)),
                [s] if !declared && list.contains(&s) => sums.push((v, begin_of_sum(k, at, &inside, (v, s))?, s)),
                _ => return None,
            }
        }
        let of_row: u64 = loads.iter().map(|&(v, _)| bytes_of(k, v)).sum();
        let of_sums: u64 = sums.iter().map(|&(v, ..)| bytes_of(k, v)).sum();
        let registers = (of_row + others).div_ceil(THREADS * u64::from(u32::BITS / u8::BITS));
        let fits = of_row + of_sums + BESIDE <= room && registers <= REGISTERS;
        let found = fits && !sums.is_empty() && loads_can_sink(k, list, &loads);
        found.then_some(InMemory { at, loads, sums, constants: Vec::new(), slots: None })
    }

    /// The variant for several rows in shared memory: they fit next to the tiles loaded in front of the loop, and the
    /// sums fit registers.
    pub(super) fn of_several(k: &Kernel, at: Stmt, elements: u64, room: u64) -> Option<InMemory> {
        let StmtData::For { body, .. } = k.stmts[at] else { return None };
        let slots = k.schedule.stages.map_or(Some(SLOTS), |e| k.as_int(e)).filter(|&slots| slots > 1)?;
        let (list, inside) = (&k.blocks[body], all_stmts(k, body));
        let (block, index) = place_of(k, at);
        let front = &k.blocks[block][..index];
        let (mut loads, mut constants, mut held) = (Vec::new(), Vec::new(), 0);
        for v in k.values.keys().filter(|&v| matches!(k.values[v].def, ValueDef::Var(_))) {
            let Some(tile) = live_ranges::tile_of(k, v).filter(|t| t.shape.iter().product::<u64>() >= elements) else {
                continue;
            };
            let changing = |list: &[Stmt]| -> Vec<Stmt> {
                list.iter().copied().filter(|&s| changes(k, s, v) && !declares(k, s, v)).collect()
            };
            let (in_loop, in_front) = (changing(&inside), changing(front));
            let stored = tile.elem.whole_bytes().is_some();
            match (&in_loop[..], &in_front[..]) {
                (&[s], _)
                    if stored
                        && list.contains(&s)
                        && list.iter().any(|&s| declares(k, s, v))
                        && loads_whole(k, s, v) =>
                {
                    loads.push((v, s));
                }
                (&[], &[s]) if stored && loads_whole(k, s, v) && !mentioned_outside_loop(k, &inside, s, v) => {
                    constants.push((v, s))
                }
                _ => held += bytes_of(k, v),
            }
        }
        let bytes = |tiles: &[(Value, Stmt)]| tiles.iter().map(|&(v, _)| bytes_of(k, v)).sum::<u64>();
        let registers = (held + bytes(&loads)).div_ceil(THREADS * u64::from(u32::BITS / u8::BITS));
        let memory = slots.unsigned_abs() * bytes(&loads) + bytes(&constants) + BESIDE_SLOTS;
        let found =
            !loads.is_empty() && memory <= room && registers <= REGISTERS_OF_SLOTS && loads_can_sink(k, list, &loads);
        found.then_some(InMemory { at, loads, sums: Vec::new(), constants, slots: Some(slots) })
    }

    /// Writes it out.
    pub(super) fn write(self, k: &mut Kernel, cx: &mut Cx<'_>) {
        let span = k.stmt_spans[self.at];
        let StmtData::For { body, .. } = k.stmts[self.at] else { unreachable!("bug: it is a loop") };
        let (block, _) = place_of(k, self.at);
        let names = |k: &Kernel, all: &mut dyn Iterator<Item = Value>| -> String {
            all.map(|v| format!("`{}`", k.values[v].name)).collect::<Vec<_>>().join(", ")
        };
        let rows = names(k, &mut self.loads.iter().map(|&(v, _)| v));
        let mut message = match self.slots {
            Some(slots) => format!("rows are buffered in shared memory, {slots} at a time: {rows}"),
            None => {
                let sums = names(k, &mut self.sums.iter().map(|&(v, ..)| v));
                format!("rows are buffered in shared memory, and so are the sums over all rows: {rows}; {sums}")
            }
        };
        if !self.constants.is_empty() {
            let constants = names(k, &mut self.constants.iter().map(|&(v, _)| v));
            message += &format!("; values that all rows share stay there: {constants}");
        }
        cx.remark(span, message);
        if let (Some(slots), None) = (self.slots, k.schedule.stages) {
            k.schedule.stages = Some(k.int(slots, span));
        }
        let mut front = Vec::new();
        let (mut fills, mut reads) = (Vec::new(), Vec::new());
        for &(v, copy) in &self.loads {
            let row = buffer(k, v, "row");
            front.push(k.stmt(StmtData::Alloc { value: row, over: Vec::new() }, span));
            let StmtData::Copy { src, attrs, .. } = k.stmts[copy].clone() else {
                unreachable!("bug: a load is a copy")
            };
            let (into, from, tile) = (k.value_ref(row, span), k.value_ref(row, span), k.value_ref(v, span));
            fills.push(k.stmt(StmtData::Copy { src, dst: into, attrs }, k.stmt_spans[copy]));
            reads.push(k.stmt(StmtData::Copy { src: from, dst: tile, attrs: CopyAttrs::default() }, span));
        }
        for &(v, copy) in &self.constants {
            let whole = buffer(k, v, "whole");
            let alloc = k.stmt(StmtData::Alloc { value: whole, over: Vec::new() }, span);
            let (block, index) = place_of(k, copy);
            k.blocks[block].insert(index, alloc);
            let into = k.value_ref(whole, span);
            let StmtData::Copy { dst, .. } = &mut k.stmts[copy] else { unreachable!("bug: a load is a copy") };
            *dst = into;
            let declared = k.blocks[block].iter().position(|&s| declares(k, s, v)).expect("bug: it stands in front");
            let declared = k.blocks[block].remove(declared);
            let (from, tile) = (k.value_ref(whole, span), k.value_ref(v, span));
            reads.push(declared);
            reads.push(k.stmt(StmtData::Copy { src: from, dst: tile, attrs: CopyAttrs::default() }, span));
        }
        let list = &k.blocks[body];
        let last =
            list.iter().rposition(|s| self.loads.iter().any(|(_, copy)| copy == s)).expect("bug: there are loads");
        let mut list = list.clone();
        list.splice(last + 1..last + 1, fills.into_iter().chain(reads));
        list.retain(|s| !self.loads.iter().any(|(_, copy)| copy == s));
        k.blocks[body] = list;
        let mut behind = Vec::new();
        for &(v, first, sum) in &self.sums {
            let sums = buffer(k, v, "sums");
            let StmtData::Var { init: Some(init), .. } = k.stmts[first] else { unreachable!("bug: a sum begins") };
            let into = k.value_ref(sums, span);
            k.stmts[first] = StmtData::Copy { src: init, dst: into, attrs: CopyAttrs::default() };
            let alloc = k.stmt(StmtData::Alloc { value: sums, over: Vec::new() }, span);
            let at = k.blocks[block].iter().position(|&s| s == first).expect("bug: it stands in front of the loop");
            k.blocks[block].insert(at, alloc);
            let StmtData::Assign { src, .. } = k.stmts[sum] else { unreachable!("bug: it is summed up") };
            let data = k.values[v].clone();
            let own = k.value(&format!("{}_sum", data.name), data.span, data.def);
            let src = k.clone_expr(src, &mut |k, other| (other == v).then(|| k.value_ref(own, span)));
            let (from, tile, into) = (k.value_ref(sums, span), k.value_ref(own, span), k.value_ref(sums, span));
            k.stmts[sum] = StmtData::Copy { src, dst: into, attrs: CopyAttrs::default() };
            let load = [
                k.stmt(StmtData::Var { value: own, init: None }, span),
                k.stmt(StmtData::Copy { src: from, dst: tile, attrs: CopyAttrs::default() }, span),
            ];
            let at = k.blocks[body].iter().position(|&s| s == sum).expect("bug: it stands in the loop");
            k.blocks[body].splice(at..at, load);
            let (from, whole) = (k.value_ref(sums, span), k.value_ref(v, span));
            behind.push(k.stmt(StmtData::Var { value: v, init: None }, span));
            behind.push(k.stmt(StmtData::Copy { src: from, dst: whole, attrs: CopyAttrs::default() }, span));
        }
        let (_, index) = place_of(k, self.at);
        k.blocks[block].splice(index + 1..index + 1, behind);
        k.blocks[block].splice(index..index, front);
    }
}

/// Whether all loads of a loop can move to the last one: up to it, nothing reads their tiles or writes memory.
fn loads_can_sink(k: &Kernel, list: &[Stmt], loads: &[(Value, Stmt)]) -> bool {
    let places: Vec<usize> = loads.iter().filter_map(|(_, s)| list.iter().position(|other| other == s)).collect();
    let (Some(&first), Some(&last)) = (places.iter().min(), places.iter().max()) else { return false };
    let passes = |&s: &Stmt| {
        let own = loads.iter().any(|&(_, load)| load == s);
        let pure = match &k.stmts[s] {
            StmtData::Let { .. } | StmtData::Var { .. } => true,
            StmtData::Copy { dst, attrs, .. } => plain_var(k, *dst).is_some() && attrs.old.is_none(),
            _ => false,
        };
        own || pure && !loads.iter().any(|&(v, _)| reads(k, s, v))
    };
    list[first..=last].iter().all(passes)
}

/// Whether a statement outside of a loop mentions a tile. `inside`: the loop's statements; `load`: the one that loads
/// the tile.
fn mentioned_outside_loop(k: &Kernel, inside: &[Stmt], load: Stmt, v: Value) -> bool {
    let outside = |s: &Stmt| *s != load && !inside.contains(s) && k.sub_blocks(*s).is_empty() && !declares(k, *s, v);
    all_stmts(k, k.body).into_iter().filter(outside).any(|s| reads(k, s, v))
}

/// Bytes of all elements of a tile.
fn bytes_of(k: &Kernel, v: Value) -> u64 {
    live_ranges::tile_of(k, v).map_or(0, |tile| tile.elem.bytes_of(tile.shape.iter().product()))
}

fn declares(k: &Kernel, s: Stmt, v: Value) -> bool {
    matches!(k.stmts[s], StmtData::Var { value, .. } if value == v)
}

/// Whether a statement copies elements of a tensor to a whole tile.
fn loads_whole(k: &Kernel, s: Stmt, v: Value) -> bool {
    let StmtData::Copy { src, dst, attrs } = &k.stmts[s] else { return false };
    let plain = attrs.when.is_none() && !attrs.keep && attrs.is_by_threads();
    let gathered = resolve_view(k, *src).is_none_or(|view| view.is_gathered());
    plain && !gathered && reads_tensor(k, *src) && plain_var(k, *dst) == Some(v)
}

/// The declaration in front of the loop `at` of a tile that only the statement `sum` of the loop uses before the loop
/// ends.
fn begin_of_sum(k: &Kernel, at: Stmt, inside: &[Stmt], (v, sum): (Value, Stmt)) -> Option<Stmt> {
    let (block, index) = place_of(k, at);
    let front = &k.blocks[block][..index];
    let first = front.iter().copied().find(|&s| declares(k, s, v))?;
    let begins = matches!(k.stmts[first], StmtData::Var { init: Some(_), .. });
    let sums_up = matches!(k.stmts[sum], StmtData::Assign { dst, .. } if dst == v);
    let others = inside.iter().filter(|&&s| s != sum).chain(front.iter().filter(|&&s| s != first));
    (begins && sums_up && others.copied().all(|s| !reads(k, s, v))).then_some(first)
}

/// Whether a statement, or one inside it, mentions a tile.
fn reads(k: &Kernel, s: Stmt, v: Value) -> bool {
    stmt_exprs(k, s).into_iter().any(|e| mentions(k, e, v))
        || matches!(k.stmts[s], StmtData::Assign { dst, .. } if dst == v)
        || k.sub_blocks(s).into_iter().any(|b| k.blocks[b].iter().any(|&s| reads(k, s, v)))
}

/// A buffer for a tile.
fn buffer(k: &mut Kernel, v: Value, what: &str) -> Value {
    let data = k.values[v].clone();
    let ValueDef::Var(ty) = data.def else { unreachable!("bug: it is a register tile") };
    k.value(&format!("{}_{what}", data.name), data.span, ValueDef::Smem(ty))
}
