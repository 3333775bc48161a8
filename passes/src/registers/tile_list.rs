//! The tiles that a thread holds in registers, for people.

use super::overhead::reasons;
use super::{pressure, thread};
use crate::analysis::live_ranges;
use crate::analysis::uses::all_stmts;
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::target::Target;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{let_init, type_of};

/// A tile in the registers of threads: a variable, or what a `let` names and is computed once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegisterTile {
    /// The name that declares it.
    pub value: Value,
    /// Its extents.
    pub shape: Vec<u64>,
    /// Its elements; `None`: their type is a parameter.
    pub elem: Option<Elem>,
    /// 32-bit registers of a thread that hold it.
    pub registers: u64,
    /// Threads that share it.
    pub threads: u64,
}

/// Where the threads of a kernel, or of one of its roles, are estimated to need most registers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pressure {
    /// The statement.
    pub at: Stmt,
    /// Registers of the tiles that live there.
    pub tiles: u64,
    /// What else needs registers, and how many.
    pub others: Vec<(&'static str, u64)>,
}

/// The places with most estimated register pressure: one for the kernel, or for each of its roles with tiles.
pub fn pressure(k: &Kernel, target: Target) -> Vec<Pressure> {
    let deferred = Deferred::of(k);
    let most = |context| pressure::peak_of_role(k, &deferred, &context, target);
    let of = |most: pressure::PeakPressure| Pressure {
        at: most.at,
        tiles: most.tiles,
        others: reasons(&most.code).collect(),
    };
    thread::contexts(k).into_iter().filter_map(most).map(of).collect()
}

/// The register tiles of a kernel with layouts, in the order of the text; not all live at once.
pub fn tiles(k: &Kernel) -> Vec<RegisterTile> {
    let deferred = Deferred::of(k);
    let mut all = Vec::new();
    for context in thread::contexts(k) {
        for s in all_stmts(k, context.body) {
            let (StmtData::Var { value, .. } | StmtData::Let { value, .. }) = k.stmts[s] else { continue };
            if let Some(tile) = live_ranges::declared(k, &deferred, value, s) {
                let registers = live_ranges::registers(k, value, &tile, context.threads);
                let elem = match k.tile_ty(value) {
                    Some(tile) => Some(tile.elem),
                    None => let_init(k, value).and_then(|init| type_of(k, init).ok()?.elem()),
                };
                let elem = elem.and_then(|elem| match elem {
                    ElemRef::Known(elem) => Some(elem),
                    ElemRef::Param(_) => None,
                });
                all.push(RegisterTile { value, shape: tile.shape, elem, registers, threads: context.threads });
            }
        }
    }
    all
}
