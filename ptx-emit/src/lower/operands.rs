//! Operands of an expression per element: windows of memory, reductions and deferred `let`s.

use super::dims::Dims;
use super::scope::Scope;
use super::shared_subexpressions::Repeated;
use super::tile::Tile;
use super::windows::Access;
use crate::inst::Reg;
use std::cell::RefCell;
use std::collections::BTreeMap;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::layout::{RegLayout, drop_dims};
use tilec_ir::types::Elem;

/// The result of a reduction in a thread's registers.
pub(super) struct Reduced {
    pub(super) layout: RegLayout,
    pub(super) dim_bits: Dims,
    /// By value index, in the class in which elements are computed; `None`: no such element.
    pub(super) regs: Vec<Option<Reg>>,
}

/// A named condition, elements, and their truth values.
pub(super) type Truths = (Value, Vec<usize>, Vec<Reg>);

/// The operands of an expression, and its layout.
pub(super) struct Operands {
    pub(super) scope: Scope,
    pub(super) windows: Vec<(Expr, Access, Elem)>,
    /// Whether the accesses have been reported.
    pub(super) reported: bool,
    /// The current group.
    pub(super) group: Vec<usize>,
    /// Elements of the current group of each window.
    pub(super) loaded: Vec<(Expr, Vec<Reg>)>,
    /// Elements of later groups that are loaded already, by window and group.
    pub(super) early: BTreeMap<(usize, usize), Vec<Reg>>,
    pub(super) preds: Vec<Vec<Option<Reg>>>,
    /// Windows read as a whole before the first group.
    pub(super) tiles: Vec<(Expr, Tile)>,
    /// Reductions, computed before the first group.
    pub(super) reduced: Vec<(Expr, Reduced)>,
    /// Deferred `let`s, each after those that it names, and the type that their elements are rounded to.
    pub(super) deferred: Vec<(Value, Expr, Option<Elem>)>,
    /// Elements of the current group of each of them.
    pub(super) named: Vec<(Value, Vec<Reg>)>,
    /// Truth values of named conditions, for elements of the current group.
    pub(super) truths: RefCell<Vec<Truths>>,
    /// Parts that several elements share.
    pub(super) repeated: RefCell<Repeated>,
}

impl Operands {
    pub(super) fn new(scope: Scope) -> Operands {
        Operands {
            scope,
            windows: Vec::new(),
            reported: false,
            group: Vec::new(),
            loaded: Vec::new(),
            early: BTreeMap::new(),
            preds: Vec::new(),
            tiles: Vec::new(),
            reduced: Vec::new(),
            deferred: Vec::new(),
            named: Vec::new(),
            truths: RefCell::default(),
            repeated: RefCell::default(),
        }
    }

    /// Removes and returns the windows whose accesses cover other groups of elements than the destination, because
    /// their order in memory differs.
    pub(super) fn take_differing_windows(&mut self, groups: &[Vec<usize>]) -> Vec<(Expr, Elem)> {
        let mut out = Vec::new();
        for i in (0..self.windows.len()).rev().filter(|&i| self.windows[i].1.groups != groups).collect::<Vec<_>>() {
            let (e, _, elem) = self.windows.remove(i);
            self.preds.remove(i);
            out.push((e, elem));
        }
        out
    }

    /// The registers of some elements of the current group.
    pub(super) fn of_group(&self, regs: &[Reg], elements: &[usize]) -> Vec<Reg> {
        if elements == self.group {
            return regs.to_vec();
        }
        let at = |v: &usize| self.group.iter().position(|w| w == v);
        let own = elements.iter().filter_map(|v| regs.get(at(v)?).copied()).collect::<Vec<_>>();
        assert!(own.len() == elements.len(), "bug: elements outside of their group");
        own
    }

    /// Whether a window of memory is among the operands.
    pub(super) fn reads_memory(&self) -> bool {
        !self.windows.is_empty()
    }

    /// Adds the loaded elements of such a window.
    pub(super) fn provide(&mut self, e: Expr, tile: Tile) {
        self.tiles.push((e, tile));
    }
}

/// The register indices of a tile with extents of 1 that belong to the elements of a group; `None` if the thread does
/// not hold them.
pub(super) fn repeated_elements(
    (layout, bits): (&RegLayout, &[u32]),
    scope: &Scope,
    group: &[usize],
) -> Option<Vec<usize>> {
    if scope.layout.repeated(&scope.dim_bits, bits)?.thread() != layout.thread() {
        return None;
    }
    group
        .iter()
        .map(|&v| {
            let index = drop_dims(scope.layout.at(0, v as u64), &scope.dim_bits, bits)?;
            (0..1usize << layout.value_bits()).find(|&i| layout.at(0, i as u64) == index)
        })
        .collect()
}
