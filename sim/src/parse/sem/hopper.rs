//! Instructions of sm_90: clusters, bulk copies, wgmma.

use super::forms::{addr, four, int, many, pred, slot};
use crate::numerics::mma::WgmmaForm;
use crate::parse::decode::{Arg, Cx};
use crate::parse::error::Result;
use crate::parse::modifiers::Mods;
use crate::program::bulk::{Bulk, Direction, Extent, Remote};
use crate::program::wgmma::{Matrix, Wgmma};
use crate::program::{Addr, AtomOp, Op};

/// `fence.proxy.async`, `fence.mbarrier_init`.
pub(crate) fn proxy_fence(_: &mut Cx<'_, '_>, m: &Mods<'_>, _: &[Arg]) -> Result<Op> {
    Ok(Op::ProxyFence { init: m.has("mbarrier_init"), global: m.has("global") })
}

/// `fence.proxy.tensormap::generic.acquire`: maps do not change here.
pub(crate) fn map_fence(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    if int(args, 1) != 128 {
        return m.error("a map of a tensor has 128 bytes");
    }
    Ok(Op::Nop)
}

/// The global side of a bulk copy, at operand `i` of the instruction, and where the operands after it begin.
fn extent(m: &Mods<'_>, args: &[Arg], i: usize, bytes: usize) -> Result<Extent> {
    match args.get(i) {
        Some(Arg::Tensor(map, at)) => {
            let rank = m.words.iter().find_map(|w| w.strip_suffix('d')?.parse::<usize>().ok());
            if rank != Some(at.len()) {
                return m.error(format!("{} coordinates do not fit the dimension of the instruction", at.len()));
            }
            Ok(Extent::Tensor { map: *map, at: at.clone(), offsets: None })
        }
        _ => Ok(Extent::Bytes { at: addr(args, i), n: slot(args, bytes) }),
    }
}

/// `cp.async.bulk` from global to shared memory.
pub(crate) fn bulk_load(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let mut global = extent(m, args, 1, 2)?;
    let barrier = if matches!(global, Extent::Tensor { .. }) { 2 } else { 3 };
    let way = |barrier: usize, mask| Direction::Load { barrier: addr(args, barrier), mask };
    if m.has("im2col")
        && let Extent::Tensor { offsets, .. } = &mut global
    {
        *offsets = Some(many(args, 3).0.to_vec());
        let mask = m.has("multicast::cluster").then(|| slot(args, 4));
        return Ok(Op::Bulk(Box::new(Bulk { direction: way(barrier, mask), global, shared: addr(args, 0) })));
    }
    let mask = m.has("multicast::cluster").then(|| slot(args, barrier + 1));
    Ok(Op::Bulk(Box::new(Bulk { direction: way(barrier, mask), global, shared: addr(args, 0) })))
}

/// `cp.async.bulk` and `cp.reduce.async.bulk` from shared to global memory.
pub(crate) fn bulk_store(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let global = extent(m, args, 0, 2)?;
    let shared = addr(args, 1);
    if !m.has("reduce") {
        return Ok(Op::Bulk(Box::new(Bulk { direction: Direction::Store, global, shared })));
    }
    match reduction(m) {
        Some(op) => {
            Ok(Op::Bulk(Box::new(Bulk { direction: Direction::Reduce { op, ty: m.last_type() }, global, shared })))
        }
        None => m.error("no such reduction"),
    }
}

/// The operation that an instruction names.
fn reduction(m: &Mods<'_>) -> Option<AtomOp> {
    let names = [
        ("add", AtomOp::Add),
        ("min", AtomOp::Min),
        ("max", AtomOp::Max),
        ("inc", AtomOp::Inc),
        ("dec", AtomOp::Dec),
        ("and", AtomOp::And),
        ("or", AtomOp::Or),
        ("xor", AtomOp::Xor),
    ];
    names.iter().find(|(name, _)| m.has(name)).map(|(_, op)| *op)
}

/// `cp.async.bulk` and `cp.reduce.async.bulk` from the block's shared memory to that of another block.
pub(crate) fn bulk_between(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let global = Extent::Bytes { at: addr(args, 1), n: slot(args, 2) };
    let way = Direction::Between { barrier: addr(args, 3), reduce: reduction(m).zip(m.last_type()) };
    Ok(Op::Bulk(Box::new(Bulk { direction: way, global, shared: addr(args, 0) })))
}

/// `st.async`.
pub(crate) fn store_async(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (ty, (slots, wide)) = (m.ty()?, many(args, 1));
    if ty.bytes() as usize * slots.len() > 16 {
        return m.error("a vector has at most 16 bytes");
    }
    Ok(Op::Remote(Box::new(Remote {
        area: m.area(),
        to: addr(args, 0),
        barrier: addr(args, 2),
        size: ty.bytes() as u8,
        n: slots.len() as u8,
        wide,
        regs: four(slots),
        reduce: None,
    })))
}

/// `red.async`.
pub(crate) fn red_async(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let ty = m.ty()?;
    let Some(op) = reduction(m) else { return m.error("no such reduction") };
    Ok(Op::Remote(Box::new(Remote {
        area: m.area(),
        to: addr(args, 0),
        barrier: addr(args, 2),
        size: ty.bytes() as u8,
        n: 1,
        wide: ty.bytes() == 8,
        regs: four(&[slot(args, 1)]),
        reduce: Some((op, ty)),
    })))
}

/// `cp.async.bulk.prefetch`.
pub(crate) fn bulk_prefetch(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (global, shared) = (extent(m, args, 0, 1)?, Addr { base: crate::program::Base::None, offset: 0 });
    Ok(Op::Bulk(Box::new(Bulk { direction: Direction::Prefetch, global, shared })))
}

/// `cp.async.bulk.commit_group`.
pub(crate) fn bulk_commit(_: &mut Cx<'_, '_>, _: &Mods<'_>, _: &[Arg]) -> Result<Op> {
    Ok(Op::BulkCommit)
}

/// A number of groups.
fn groups(m: &Mods<'_>, args: &[Arg], most: u64) -> Result<u32> {
    match int(args, 0) {
        n if n <= most => Ok(n as u32),
        _ => m.error("too many groups"),
    }
}

/// `cp.async.bulk.wait_group`.
pub(crate) fn bulk_wait(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    Ok(Op::BulkWait { n: groups(m, args, u64::from(u32::MAX))?, read: m.has("read") })
}

/// `wgmma.mma_async`.
pub(crate) fn wgmma(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let in_registers = matches!(args.get(1), Some(Arg::Many(..)));
    let Some(form) = WgmmaForm::from_words(m.words) else { return m.error("no such asynchronous product") };
    let mut flags = args[4..].iter().map(|a| if let Arg::Int(v) = a { *v as i64 } else { 0 });
    let mut negate = [false; 2];
    let mut across = [false; 2];
    if args.len() > 4 {
        for negate in &mut negate {
            *negate = match flags.next() {
                Some(1) => false,
                Some(-1) => true,
                _ => return m.error("an operand is scaled by 1 or -1"),
            };
        }
    }
    for (i, flag) in flags.enumerate() {
        let across = &mut across[if in_registers { 1 } else { i.min(1) }];
        *across = match flag {
            0 => false,
            1 => true,
            _ => return m.error("an operand is transposed by 1 or not by 0"),
        };
    }
    let a = match args.get(1) {
        Some(Arg::Many(regs, _)) => Matrix::Registers(four(regs)),
        _ => Matrix::Shared { descriptor: slot(args, 1), across: across[0] },
    };
    let (d, _) = many(args, 0);
    cx.uses_wgmma();
    Ok(Op::Wgmma(std::sync::Arc::new(Wgmma {
        form,
        d: d.to_vec(),
        a,
        b: Matrix::Shared { descriptor: slot(args, 2), across: across[1] },
        negate,
        add: pred(args, 3),
    })))
}

/// `wgmma.fence`.
pub(crate) fn wgmma_fence(_: &mut Cx<'_, '_>, _: &Mods<'_>, _: &[Arg]) -> Result<Op> {
    Ok(Op::WgmmaFence)
}

/// `wgmma.commit_group`.
pub(crate) fn wgmma_commit(_: &mut Cx<'_, '_>, _: &Mods<'_>, _: &[Arg]) -> Result<Op> {
    Ok(Op::WgmmaCommit)
}

/// `wgmma.wait_group`.
pub(crate) fn wgmma_wait(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    groups(m, args, 7).map(Op::WgmmaWait)
}

/// `setmaxnreg`.
pub(crate) fn max_registers(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    match int(args, 0) {
        n if n % 8 != 0 => m.error(format!("{n} registers: it must be a multiple of 8")),
        n if (24..=256).contains(&n) => Ok(Op::MaxRegisters { inc: m.has("inc"), n: n as u32 }),
        n => m.error(format!("{n} registers: a thread has 24 to 256")),
    }
}

/// `barrier.cluster.arrive`.
pub(crate) fn cluster_arrive(_: &mut Cx<'_, '_>, m: &Mods<'_>, _: &[Arg]) -> Result<Op> {
    Ok(Op::ClusterArrive { relaxed: m.has("relaxed"), aligned: m.has("aligned") })
}

/// `barrier.cluster.wait`.
pub(crate) fn cluster_wait(_: &mut Cx<'_, '_>, m: &Mods<'_>, _: &[Arg]) -> Result<Op> {
    Ok(Op::ClusterWait { aligned: m.has("aligned") })
}

/// `mapa`.
pub(crate) fn mapa(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let wide = m.has("u64");
    Ok(Op::Mapa { d: slot(args, 0), a: slot(args, 1), rank: slot(args, 2), wide, generic: !m.has("shared::cluster") })
}

/// `getctarank`.
pub(crate) fn ctarank(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    Ok(Op::CtaRank { d: slot(args, 0), a: slot(args, 1), wide: m.has("u64"), generic: !m.has("shared::cluster") })
}
