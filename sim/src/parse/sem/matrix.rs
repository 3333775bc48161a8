//! Matrices (PTX 9.7.14).

use super::forms::{addr, four, many, optional, slot};
use crate::parse::decode::{Arg, Cx};
use crate::parse::error::Result;
use crate::parse::modifiers::Mods;
use crate::program::mma::Mma;
use crate::program::types::R;
use crate::program::{Op, wmma};

/// `mma.sync`.
pub(crate) fn mma(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let regs = |i| many(args, i).0.to_vec();
    match Mma::from_words(m.words, regs(0), regs(1), regs(2), regs(3)) {
        Some(mma) => Ok(Op::Mma(Box::new(mma))),
        None => m.limit("this product is not supported"),
    }
}

/// `ldmatrix`.
pub(crate) fn ldmatrix(cx: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (slots, _) = many(args, 0);
    let (n, d) = (slots.len() as u8, four(slots));
    Ok(Op::LdMatrix { addr: addr(args, 1), area: m.area(), n, trans: m.has("trans"), strict: cx.target() < 80, d })
}

/// `stmatrix`.
pub(crate) fn stmatrix(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let (slots, _) = many(args, 1);
    let (n, s) = (slots.len() as u8, four(slots));
    Ok(Op::StMatrix { addr: addr(args, 0), area: m.area(), n, trans: m.has("trans"), s })
}

/// `movmatrix`.
pub(crate) fn movmatrix(_: &mut Cx<'_, '_>, _: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    Ok(Op::MovMatrix { d: slot(args, 0), a: slot(args, 1) })
}

pub(super) fn wmma_move(m: &Mods<'_>, memory: &[Arg], regs: &[Arg], stride: Option<R>) -> Result<Op> {
    let regs = many(regs, 0).0.to_vec();
    match wmma::Move::from_words(m.words, addr(memory, 0), m.area(), regs, stride) {
        Some(mv) => Ok(Op::WmmaMove(Box::new(mv))),
        None => m.limit("this tile is not supported"),
    }
}

/// `wmma.load`.
pub(crate) fn wmma_load(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    wmma_move(m, &args[1..], args, optional(args, 2))
}

/// `wmma.store`.
pub(crate) fn wmma_store(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    wmma_move(m, args, &args[1..], optional(args, 2))
}

/// `wmma.mma`.
pub(crate) fn wmma_mma(_: &mut Cx<'_, '_>, m: &Mods<'_>, args: &[Arg]) -> Result<Op> {
    let regs = std::array::from_fn(|i| many(args, i).0.to_vec());
    match wmma::Product::from_words(m.words, regs) {
        Some(product) => Ok(Op::WmmaMma(Box::new(product))),
        None => m.limit("this product is not supported"),
    }
}
