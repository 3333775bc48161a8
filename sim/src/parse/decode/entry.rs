//! A kernel: its parameters, its shared memory, its code, and what is known of the whole.

use super::call;
use super::context::Cx;
use super::place::{place, variables};
use super::scope::Var;
use super::shared::SharedLayout;
use super::{cas_guesses, copies, polls};
use crate::parse::error::Result;
use crate::parse::lex::Pos;
use crate::parse::raw::{RawEntry, RawFunc, RawModule};
use crate::program::types::{R, Space, Spot, TRUE};
use crate::program::{Bank, Entry, Mention, Op, Placed};
use std::collections::{HashMap, HashSet};

/// Static shared memory limit of a kernel: the amount that every device has without an attribute.
const MAX_STATIC_SHARED: u64 = 48 << 10;
/// Parameters of a kernel, from PTX 8.1 on and before.
const MAX_PARAM: u64 = 32_764;
const MAX_PARAM_BEFORE: u64 = 4352;

/// Decodes a kernel. `shared`: the shared variables of the module; `statics`: where variables of bodies are.
pub(super) fn decode_entry<'a>(
    raw: &RawModule<'a>,
    from: &RawEntry<'a>,
    module: &HashMap<&'a str, Var>,
    funcs: &HashMap<&'a str, &RawFunc<'a>>,
    shared: SharedLayout,
    statics: &HashMap<Pos, u64>,
) -> Result<Entry> {
    let mut cx = Cx::new(module, funcs, raw, statics.clone(), head(from));
    parameters(&mut cx, from, raw.version)?;
    shared_memory(&mut cx, raw, from, shared)?;
    cx.body(&from.body)?;
    // Falling off the end of a kernel is a return.
    let (line, loc) = cx.entry.code.last().map_or((0, (0, 0)), |i| (i.line, i.loc));
    let columns = cx.entry.columns.last().copied().unwrap_or([1, u32::MAX]);
    cx.emit(Op::Exit, (TRUE, 0), "ret".to_owned(), Spot { line, columns, loc })?;
    land(&mut cx);
    let watched: HashSet<R> = cx.wgmma_registers.iter().copied().collect();
    let mut entry = cx.entry;
    describe(&mut entry, &watched);
    Ok(entry)
}

/// The header of a kernel.
fn head(from: &RawEntry<'_>) -> Entry {
    Entry {
        name: from.name.to_owned(),
        params: Vec::new(),
        param_bytes: 0,
        max_threads: from.max_threads,
        required_threads: from.required_threads,
        min_blocks: from.min_blocks,
        max_registers: from.max_registers,
        cluster: from.cluster,
        explicit_cluster: from.explicit_cluster,
        max_cluster_rank: from.max_cluster_rank,
        shared_bytes: 0,
        static_bytes: 0,
        gaps: Vec::new(),
        shared_vars: Vec::new(),
        local_bytes: 0,
        code: Vec::new(),
        columns: Vec::new(),
        names: Vec::new(),
        n32: 1,
        n64: 1,
        npred: 2,
        const32: Vec::new(),
        const64: Vec::new(),
        specials: Vec::new(),
        clustered: None,
        shared64: Vec::new(),
        waits: false,
        ordered: false,
        beside: false,
        copies: false,
        touches: Vec::new(),
        mentions: Vec::new(),
        registers: HashMap::new(),
    }
}

fn parameters<'a>(cx: &mut Cx<'a, '_>, from: &RawEntry<'a>, version: (u32, u32)) -> Result<()> {
    let mut at = 0;
    let most = if version < (8, 1) { MAX_PARAM_BEFORE } else { MAX_PARAM };
    for param in &from.params {
        let offset = place(&mut at, param, most)?;
        cx.entry.params.push(Placed { offset, bytes: param.bytes.unwrap_or(0) });
        cx.define(param, Var { at: offset, space: Space::Param, stack: None })?;
    }
    cx.entry.param_bytes = at;
    Ok(())
}

/// Gives the shared variables of the kernel, and of the functions that it calls, their places.
fn shared_memory<'a>(
    cx: &mut Cx<'a, '_>,
    raw: &RawModule<'a>,
    from: &RawEntry<'a>,
    mut shared: SharedLayout,
) -> Result<()> {
    let called = call::reachable(&from.body, cx.funcs)?;
    // With several kernels, the module's variables do not count: which of them a kernel uses is not determined.
    let others = if raw.entries.len() == 1 { 0 } else { shared.packed };
    for body in std::iter::once(&from.body).chain(called.iter().filter_map(|f| f.body.as_ref())) {
        for var in variables(body).filter(|v| v.space == Space::Shared) {
            let offset = shared.place(var)?;
            cx.statics.insert(var.pos, offset);
            let placed = Placed { offset, bytes: var.bytes.unwrap_or(0) };
            cx.entry.shared_vars.push((var.name.to_owned(), placed));
        }
    }
    let own = shared.packed - others;
    if own > MAX_STATIC_SHARED {
        let message =
            format!("the shared variables of `{}` have {own} bytes, more than {MAX_STATIC_SHARED}", from.name);
        return Err(from.pos.error(message));
    }
    // Dynamic shared memory follows the static part, at the largest alignment any of its names requests (PTX 5.4.3).
    let dynamic = || raw.vars.iter().filter(|v| v.space == Space::Shared && v.bytes.is_none());
    let mut at = shared.end;
    if let Some(align) = dynamic().map(|var| var.align).max() {
        at = shared.packed.next_multiple_of(align) + shared.shift;
        shared.skip_to(at);
        shared.packed = shared.packed.next_multiple_of(align);
    }
    (cx.entry.shared_bytes, cx.entry.static_bytes, cx.entry.gaps) = (at, shared.packed, shared.gaps);
    cx.entry.shared_vars.extend(raw.vars.iter().filter(|v| v.space == Space::Shared).filter_map(|v| {
        let offset = v.bytes.map_or(Some(at), |_| cx.module.get(v.name).map(|s| s.at))?;
        Some((v.name.to_owned(), Placed { offset, bytes: v.bytes.unwrap_or(0) }))
    }));
    cx.dynamic = dynamic().map(|var| (var.name, at)).collect();
    Ok(())
}

/// Branches to labels become branches to instructions.
fn land(cx: &mut Cx<'_, '_>) {
    for inst in &mut cx.entry.code {
        match &mut inst.op {
            Op::Bra { target, .. } => *target = cx.label_at[*target as usize],
            Op::BraIndexed { targets, .. } => {
                targets.iter_mut().for_each(|t| *t = cx.label_at[*t as usize]);
            }
            _ => {}
        }
    }
}

/// Properties of the kernel's code; `watched`: the registers of wgmma operands.
fn describe(entry: &mut Entry, watched: &HashSet<R>) {
    if !watched.is_empty() {
        let is_watched = |m: &&Mention| m.bank == Bank::Words && watched.contains(&m.slot);
        let touches = entry.mentions.iter().map(|named| named.iter().filter(is_watched).map(|m| m.slot).collect());
        entry.touches = touches.collect();
    }
    entry.copies = entry.code.iter().any(|inst| matches!(inst.op, Op::Bulk(_) | Op::Remote(_) | Op::CpAsync(_)));
    entry.beside = entry.code.iter().any(|inst| matches!(inst.op, Op::Bulk(_) | Op::Remote(_) | Op::Wgmma(_)));
    copies::mark_partial(entry);
    let retried = cas_guesses::mark(entry);
    polls::mark(entry, &retried);
}
