//! Data movement, atomics and asynchronous copies (PTX 9.7.9, 9.7.13).

use super::forms::{addr, four, int, many, optional, slot};
use super::lanes::lanes;
use crate::parse::decode::{Arg, Cx};
use crate::parse::error::Result;
use crate::parse::modifiers::Mods;
use crate::program::Semantics;
use crate::program::convert::{self, Map};
use crate::program::types::{L32, L64, LOCAL_WINDOW, PARAM_WINDOW, R, SHARED_WINDOW, SINK, Space, TRUE, Ty};
use crate::program::{Access, Area, Atom, AtomOp, CpAsync, Op, VECTOR};
use crate::race::Strength;

/// `mov`: copies, packs, unpacks, takes addresses.
pub(crate) fn mov(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let wide = m.ty()?.bytes() == 8;
    Ok(match (&args[0], &args[1]) {
        (Arg::Pred(d, _), Arg::Pred(a, negate)) => {
            let f: fn(u32, u32) -> u32 = if *negate { |x, _| !x } else { |x, _| x };
            Op::Pred { f, d: *d, a: *a, b: *a }
        }
        (Arg::Slot(d), Arg::Slot(a)) if wide => Op::Mov64 { d: *d, a: *a },
        // The value of a special register need not fit 16 bits.
        (Arg::Slot(d), Arg::Slot(a)) if m.ty()?.bytes() == 2 && cx.is_special(*a) => {
            Op::WW { f: lanes!(x => x & 0xFFFF), d: *d, a: *a }
        }
        (Arg::Slot(d), Arg::Slot(a)) => Op::Mov32 { d: *d, a: *a },
        (Arg::Slot(d), Arg::Int(bits)) if wide == (*bits == 64) => Op::Clock { d: *d, wide },
        (Arg::Slot(d), Arg::Many(a, _)) => match (wide, a.len()) {
            (false, 2) if m.has("b16") => {
                let zero = cx.constant(false, 0, m.pos)?;
                Op::Wwwww { f: pack_bytes, d: *d, s: [a[0], a[1], zero, zero] }
            }
            (false, 4) => Op::Wwwww { f: pack_bytes, d: *d, s: four(a) },
            (false, 2) => Op::Pack16 { d: *d, a: [a[0], a[1]] },
            (true, 2) => Op::Pack32 { d: *d, a: [a[0], a[1]] },
            (true, 4) => Op::Pack64 { d: *d, a: four(a) },
            _ => return m.error("`mov` cannot pack registers of this size"),
        },
        (Arg::Many(d, _), Arg::Slot(a)) => match (wide, d.len()) {
            (false, 2) if m.has("b16") => Op::Unpack8 { d: four(d), a: *a },
            (false, 4) => Op::Unpack8 { d: four(d), a: *a },
            (false, 2) => Op::Unpack16 { d: [d[0], d[1]], a: *a },
            (true, 2) => Op::Unpack32 { d: [d[0], d[1]], a: *a },
            (true, 4) => Op::Unpack64 { d: four(d), a: *a },
            _ => return m.error("`mov` cannot unpack to registers of this size"),
        },
        _ => return m.error(format!("`{}` has no such form", cx.opcode())),
    })
}

fn pack_bytes(d: &mut L32, s: [&L32; 4]) {
    for (i, lane) in d.iter_mut().enumerate() {
        *lane = u32::from_le_bytes(s.map(|byte| byte[i] as u8));
    }
}

/// `mov.v2`, `mov.v4`.
pub(crate) fn mov_vector(_: &mut Cx<'_, '_>, _: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let ((d, wide), (s, _)) = (many(args, 0), many(args, 1));
    let pairs = d.iter().copied().zip(s.iter().copied()).collect();
    Ok(Op::MovVector { pairs, wide })
}

pub(super) fn access(cx: &Cx<'_, '_>, m: &Mods<'_>, memory: &[Arg], regs: &[Arg]) -> Result<Access> {
    let ty = m.ty()?;
    let (slots, wide) = many(regs, 0);
    // PTX ISA, "Vectors": limited to 128 bits.
    if ty.bytes() as usize * slots.len() > 16 {
        return m.error("a vector has at most 16 bytes");
    }
    // Parameters of calls are in the stack of the thread; only a kernel's own have a space to themselves.
    let area = match m.area() {
        Area::In(Space::Param) if cx.stack_param() => Area::In(Space::Local),
        _ if m.has("param::func") => {
            return m.error(
                "`.param::func` goes with the name of a parameter of a function; one of the kernel is `.param::entry`",
            );
        }
        area => area,
    };
    Ok(Access {
        area,
        addr: addr(memory, 0),
        size: ty.bytes() as u8,
        n: slots.len() as u8,
        signed: ty.signed(),
        wide,
        regs: four(slots),
        order: order(m, false),
    })
}

/// `ld`.
pub(crate) fn load(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let mut access = access(cx, m, &args[1..], args)?;
    // `ldu` reads data that is constant while the kernel runs, as `.nc` does (PTX 9.7.9.10).
    access.order.constant |= cx.opcode() == "ldu";
    Ok(Op::Ld(access))
}

/// `st`.
pub(crate) fn store(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    access(cx, m, args, &args[1..]).map(Op::St)
}

pub(super) fn atomic(m: &Mods<'_>) -> Result<(AtomOp, u8, bool)> {
    let ty = m.ty()?;
    let skip = |w: &str| Ty::from_word(w).is_some() || matches!(w, "noftz" | "L2::cache_hint" | "v2" | "v4" | "v8");
    let op = match (m.words.iter().rev().find(|w| !skip(w)), ty) {
        (Some(&"add"), Ty::F32) => AtomOp::AddF32,
        (Some(&"add"), Ty::F64) => AtomOp::AddF64,
        (Some(&"add"), Ty::F16) => AtomOp::AddF16,
        (Some(&"add"), Ty::F16x2) => AtomOp::AddF16x2,
        (Some(&"add"), Ty::BF16) => AtomOp::AddBF16,
        (Some(&"add"), Ty::BF16x2) => AtomOp::AddBF16x2,
        (Some(&"add"), _) => AtomOp::Add,
        (Some(&"min"), Ty::F16) => AtomOp::MinF16,
        (Some(&"max"), Ty::F16) => AtomOp::MaxF16,
        (Some(&"min"), Ty::F16x2) => AtomOp::MinF16x2,
        (Some(&"max"), Ty::F16x2) => AtomOp::MaxF16x2,
        (Some(&"min"), Ty::BF16) => AtomOp::MinBF16,
        (Some(&"max"), Ty::BF16) => AtomOp::MaxBF16,
        (Some(&"min"), Ty::BF16x2) => AtomOp::MinBF16x2,
        (Some(&"max"), Ty::BF16x2) => AtomOp::MaxBF16x2,
        (Some(&"min"), _) => AtomOp::Min,
        (Some(&"max"), _) => AtomOp::Max,
        (Some(&"inc"), _) => AtomOp::Inc,
        (Some(&"dec"), _) => AtomOp::Dec,
        (Some(&"and"), _) => AtomOp::And,
        (Some(&"or"), _) => AtomOp::Or,
        (Some(&"xor"), _) => AtomOp::Xor,
        (Some(&"exch"), _) => AtomOp::Exch,
        (Some(&"cas"), _) => AtomOp::Cas,
        _ => return m.error("no such atomic operation"),
    };
    Ok((op, ty.bytes() as u8, ty.signed()))
}

/// The memory-model semantics of an access. Atomics are relaxed at gpu scope unless they specify otherwise (PTX ISA,
/// `atom`); volatile accesses are relaxed at system scope (`ld.volatile`). Accesses past L1 were used for flags before
/// there was a memory model, and are treated as relaxed.
pub(super) fn order(m: &Mods<'_>, atomic: bool) -> Semantics {
    let uncached = m.has("cg") || m.has("cv") || m.has("wt");
    let acquire = m.has("acquire") || m.has("acq_rel");
    let release = m.has("release") || m.has("acq_rel");
    let strong = atomic || uncached || acquire || release || m.has("relaxed") || m.has("volatile");
    let strength = match strong {
        false => Strength::Weak,
        // The blocks of a cluster have one set of clocks.
        true if m.has("cta") || m.has("cluster") => Strength::Block,
        true => Strength::Wide,
    };
    Semantics { strength, acquire, release, uncached, guess: false, polls: false, waits: false, constant: m.has("nc") }
}

/// `atom`.
pub(crate) fn atom(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (op, size, signed) = atomic(m)?;
    let ((dst, _), (src, n), src2) = (elements(args, 0), elements(args, 2), slot(args, 3));
    Ok(Op::Atom(Box::new(Atom {
        op,
        signed,
        area: m.area(),
        addr: addr(args, 1),
        size,
        n,
        dst,
        src,
        src2,
        order: order(m, true),
    })))
}

/// The registers of an atomic's operand, element by element, and how many there are.
fn elements(args: &[Arg], i: usize) -> ([R; VECTOR], u8) {
    let (slots, _) = many(args, i);
    match slots.len() {
        0 => (std::array::from_fn(|e| if e == 0 { slot(args, i) } else { SINK }), 1),
        n => (std::array::from_fn(|e| slots.get(e).copied().unwrap_or(SINK)), n as u8),
    }
}

/// `red`.
pub(crate) fn red(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (op, size, signed) = atomic(m)?;
    let (area, addr, (src, n)) = (m.area(), addr(args, 0), elements(args, 1));
    let (dst, order) = ([SINK; VECTOR], order(m, true));
    Ok(Op::Atom(Box::new(Atom { op, signed, area, addr, size, n, dst, src, src2: SINK, order })))
}

/// Does nothing that can be observed.
pub(crate) fn nop(_: &mut Cx<'_, '_>, _: &Mods<'_>, _: &[Arg]) -> Result<Op> {
    Ok(Op::Nop)
}

/// `discard`: 128 bytes become undefined.
pub(crate) fn discard(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    priority(cx, m, args)?;
    Ok(Op::Discard { addr: addr(args, 0), area: m.area() })
}

/// `applypriority`: 128 bytes, says the manual.
pub(crate) fn priority(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    if int(args, 1) != 128 {
        return m.error(format!("`{}` works on 128 bytes", cx.opcode()));
    }
    Ok(Op::Nop)
}

/// `createpolicy`: a value that only cache hints use, which mean nothing here.
pub(crate) fn policy(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let a = cx.constant(true, 0x1000_0000_0000_0000, m.pos)?;
    Ok(Op::Mov64 { d: slot(args, 0), a })
}

/// `isspacep`.
pub(crate) fn isspacep(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let Area::In(space) = m.area() else { return m.error("no such state space") };
    Ok(Op::IsSpace { space, p: slot(args, 0), a: slot(args, 1) })
}

/// `cvta`: global and constant addresses are generic ones, the other spaces have a window each.
pub(crate) fn cvta(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (d, a) = (slot(args, 0), slot(args, 1));
    let f: fn(&mut L64, &L64) = match (m.area(), m.has("to")) {
        (Area::In(Space::Shared | Space::Cluster), false) => lanes!(x => x.wrapping_add(SHARED_WINDOW)),
        (Area::In(Space::Shared | Space::Cluster), true) => lanes!(x => x.wrapping_sub(SHARED_WINDOW)),
        (Area::In(Space::Local), false) => lanes!(x => x.wrapping_add(LOCAL_WINDOW)),
        (Area::In(Space::Local), true) => lanes!(x => x.wrapping_sub(LOCAL_WINDOW)),
        (Area::In(Space::Param), false) => lanes!(x => x.wrapping_add(PARAM_WINDOW)),
        (Area::In(Space::Param), true) => lanes!(x => x.wrapping_sub(PARAM_WINDOW)),
        _ => return Ok(Op::Mov64 { d, a }),
    };
    Ok(Op::LL { f, d, a })
}

/// Integer conversion: the source is cut to its type, extended by its sign, then cut or clamped to the destination and
/// extended by the destination's sign to the register (PTX 9.7.9.21).
pub(crate) fn cvt_int(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (Some(to), Some(from)) = (m.first_type(), m.last_type()) else { return m.error("`cvt` needs two types") };
    let ((d, wide), (a, from_wide)) = (many(args, 0), many(args, 1));
    let (d, a) = (d[0], a[0]);
    if m.has("sat") {
        return Ok(int_to_int(d, wide, a, from_wide, to, from));
    }
    // Without clamping the narrower of the two types says which bits count and how they are extended, of equals the
    // destination; an unsigned destination wider than a signed source ends the extension.
    let narrow = if from.bytes() < to.bytes() { from } else { to };
    let cut = from.signed() && !to.signed() && from.bytes() < to.bytes();
    macro_rules! narrow {
        ($out:ty) => {
            match narrow {
                Ty::U8 => lanes!(x => x as u8 as $out),
                Ty::S8 => lanes!(x => x as i8 as $out),
                Ty::U16 => lanes!(x => x as u16 as $out),
                Ty::S16 => lanes!(x => x as i16 as $out),
                Ty::U32 => lanes!(x => x as u32 as $out),
                Ty::S32 => lanes!(x => x as i32 as $out),
                _ => lanes!(x => x as $out),
            }
        };
    }
    Ok(match (wide, from_wide) {
        (false, false) => {
            let f: fn(&mut L32, &L32) = if to.bytes() == 2 && narrow == Ty::S8 {
                lanes!(x => x as i8 as u16 as u32)
            } else if to.bytes() == 2 && narrow == Ty::S16 {
                lanes!(x => x as u16 as u32)
            } else {
                narrow!(u32)
            };
            Op::WW { f, d, a }
        }
        (true, false) => {
            let f: fn(&mut L64, &L32) = match (cut, from, to) {
                (true, Ty::S8, Ty::U16) => lanes!(x => u64::from(x as i8 as u16)),
                (true, Ty::S8, Ty::U32) => lanes!(x => u64::from(x as i8 as u32)),
                (true, Ty::S16, Ty::U32) => lanes!(x => u64::from(x as i16 as u32)),
                _ => narrow!(u64),
            };
            Op::LW { f, d, a }
        }
        (false, true) => {
            let f: fn(&mut L32, &L64) = if to == Ty::S16 { lanes!(x => x as u16 as u32) } else { narrow!(u32) };
            Op::WL { f, d, a }
        }
        (true, true) => Op::LL { f: narrow!(u64), d, a },
    })
}

/// `cp.async`.
pub(crate) fn cp_async(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let size = int(args, 2);
    if !(size == 16 || (m.has("ca") && (size == 4 || size == 8))) {
        return m.error(format!("`cp.async` cannot copy {size} bytes"));
    }
    if let Some(given) = optional(args, 3).and_then(|slot| cx.known(slot))
        && u64::from(given) > size
    {
        return m.error(format!("`cp.async` cannot read {given} of {size} bytes"));
    }
    let ignore = match args.get(3) {
        Some(Arg::Pred(p, negate)) => Some((*p, *negate)),
        _ => None,
    };
    Ok(Op::CpAsync(Box::new(CpAsync {
        dst: addr(args, 0),
        src: addr(args, 1),
        size: size as u8,
        src_size: optional(args, 3),
        ignore,
        cached: m.has("ca"),
        partial: false,
    })))
}

/// `cp.async` with a predicate that says to read nothing.
pub(crate) fn cp_async_ignore(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    if matches!(args.get(3), Some(Arg::Pred(TRUE, _))) {
        return m.error("the predicate of `cp.async` must be a register");
    }
    cx.require((7, 5), 80);
    cp_async(cx, m, args)
}

/// `cp.async` with a cache policy and no size of its source.
pub(crate) fn cp_async_hint(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    cp_async(cx, m, &args[..3])
}

/// `cp.async.commit_group`.
pub(crate) fn cp_commit(_: &mut Cx<'_, '_>, _: &Mods<'_>, _: &[Arg]) -> Result<Op> {
    Ok(Op::CpCommit)
}

/// `cp.async.wait_group` and `wait_all`.
pub(crate) fn cp_wait(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    if m.has("wait_all") {
        return Ok(Op::CpWait(None));
    }
    match u32::try_from(int(args, 0)) {
        Ok(n) => Ok(Op::CpWait(Some(n))),
        Err(_) => m.error("too many groups"),
    }
}

/// Integer to integer with clamping.
pub(crate) fn int_to_int(d: R, wide: bool, a: R, from_wide: bool, to: Ty, from: Ty) -> Op {
    let reg_bits = if wide { 64 } else { 32 };
    Op::Map {
        map: Map::IntToInt { from: convert::int(from), to: convert::int(to), reg_bits },
        d,
        wide,
        a,
        b: a,
        from_wide,
    }
}
