//! Selects load and store instructions by memory space, register class and register count.

use crate::inst::{Class, Guard, Operand, Reg};
use crate::ops::Op as P;
use tilec_ir::space::Space;

/// Registers, their class, and the load and store instructions: for global memory first, then for shared memory.
const ACCESSES: &[(usize, Class, [P; 2], [P; 2])] = &[
    (1, Class::B16, [P::LdGlobalB16, P::LdSharedB16], [P::StGlobalB16, P::StSharedB16]),
    (1, Class::B32, [P::LdGlobalB32, P::LdSharedB32], [P::StGlobalB32, P::StSharedB32]),
    (2, Class::B32, [P::LdGlobalV2B32, P::LdSharedV2B32], [P::StGlobalV2B32, P::StSharedV2B32]),
    (4, Class::B32, [P::LdGlobalV4B32, P::LdSharedV4B32], [P::StGlobalV4B32, P::StSharedV4B32]),
    (1, Class::F32, [P::LdGlobalF32, P::LdSharedF32], [P::StGlobalF32, P::StSharedF32]),
    (2, Class::F32, [P::LdGlobalV2F32, P::LdSharedV2F32], [P::StGlobalV2F32, P::StSharedV2F32]),
    (4, Class::F32, [P::LdGlobalV4F32, P::LdSharedV4F32], [P::StGlobalV4F32, P::StSharedV4F32]),
    (1, Class::F64, [P::LdGlobalF64, P::LdSharedF64], [P::StGlobalF64, P::StSharedF64]),
    (2, Class::F64, [P::LdGlobalV2F64, P::LdSharedV2F64], [P::StGlobalV2F64, P::StSharedV2F64]),
    (1, Class::B64, [P::LdGlobalB64, P::LdSharedB64], [P::StGlobalB64, P::StSharedB64]),
    (2, Class::B64, [P::LdGlobalV2B64, P::LdSharedV2B64], [P::StGlobalV2B64, P::StSharedV2B64]),
];

fn row(class: Class, regs: usize) -> Option<&'static (usize, Class, [P; 2], [P; 2])> {
    ACCESSES.iter().find(|(n, c, ..)| (*n, *c) == (regs, class))
}

/// The instruction that loads `regs` registers of a class; `None`: there is none.
pub(super) fn load_op(space: Space, class: Class, regs: usize) -> Option<P> {
    row(class, regs).map(|(_, _, loads, _)| loads[usize::from(!space.has_bounds())])
}

/// The instruction that stores `regs` registers of a class; `None`: there is none.
pub(super) fn store_op(space: Space, class: Class, regs: usize) -> Option<P> {
    row(class, regs).map(|(.., stores)| stores[usize::from(!space.has_bounds())])
}

/// Stores to a block's own shared memory; the same store to any block of the cluster; and the form that an mbarrier
/// there counts.
const IN_CLUSTER: &[(P, P, Option<P>)] = &[
    (P::StSharedU8, P::StClusterU8, None),
    (P::StSharedB16, P::StClusterB16, None),
    (P::StSharedB32, P::StClusterB32, Some(P::StAsyncB32)),
    (P::StSharedV2B32, P::StClusterV2B32, Some(P::StAsyncV2B32)),
    (P::StSharedV4B32, P::StClusterV4B32, Some(P::StAsyncV4B32)),
    (P::StSharedF32, P::StClusterF32, Some(P::StAsyncF32)),
    (P::StSharedV2F32, P::StClusterV2F32, Some(P::StAsyncV2F32)),
    (P::StSharedV4F32, P::StClusterV4F32, Some(P::StAsyncV4F32)),
    (P::StSharedB64, P::StClusterB64, Some(P::StAsyncB64)),
    (P::StSharedV2B64, P::StClusterV2B64, Some(P::StAsyncV2B64)),
    (P::StSharedF64, P::StClusterF64, Some(P::StAsyncF64)),
    (P::StSharedV2F64, P::StClusterV2F64, Some(P::StAsyncV2F64)),
];

/// The form of store `op` for the shared memory of any block of the cluster, `counted` by an mbarrier or not; `None`:
/// `op` is no store to shared memory.
pub(super) fn cluster_store(op: P, counted: bool) -> Option<P> {
    let &(_, any, asynchronous) = IN_CLUSTER.iter().find(|(own, ..)| *own == op)?;
    let asynchronous = || asynchronous.unwrap_or_else(|| panic!("bug: bytes and halves are not counted"));
    Some(if counted { asynchronous() } else { any })
}

/// The registers of one access as an operand.
pub(super) fn vector(regs: Vec<Reg>) -> Operand {
    match regs[..] {
        [one] => Operand::Reg(one),
        _ => Operand::Vec(regs),
    }
}

/// A guard on a predicate.
pub(super) fn guard(pred: Option<Reg>) -> Option<Guard> {
    pred.map(|reg| Guard { reg, negated: false })
}
