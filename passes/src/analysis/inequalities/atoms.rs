//! Atoms of sums, and facts about them in a kernel.

use super::sum::{Cases, Sum};
use crate::analysis::facts::Facts;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::extents::Ranges;
use tilec_ir::kernel::Kernel;

/// A factor of a product in a sum.
#[derive(Clone, Debug)]
pub(super) enum Atom {
    /// The value of an index or of a scalar.
    Of(Expr),
    /// The position of an element along a dimension of a tile with that extent.
    Place(u32, Sum),
}

/// The facts about the indices of a kernel.
pub(crate) struct Inequalities<'k> {
    pub(super) k: &'k Kernel,
    pub(super) facts: Facts,
    pub(super) ranges: Ranges<'k>,
    /// Start, end and step of loops.
    pub(super) loops: BTreeMap<Value, [Expr; 3]>,
    /// Pairs of loop variables that are equal.
    pub(super) same: Vec<(Value, Value)>,
    /// Variables that always have one value.
    pub(super) constants: BTreeMap<Value, Expr>,
    /// Parameters that are extents of tiles.
    pub(super) extents: BTreeSet<Value>,
    pub(super) stored: Vec<Stored>,
    pub(super) atoms: RefCell<Vec<Atom>>,
    /// Cached results.
    pub(super) answers: RefCell<Answers>,
    /// Indices as sums.
    pub(super) sums: RefCell<BTreeMap<Expr, Option<Sum>>>,
    /// Conditions as cases.
    pub(super) conditions: RefCell<BTreeMap<Given, Cases>>,
    /// Facts about atoms.
    pub(super) of_atoms: RefCell<BTreeMap<usize, OfAtom>>,
}

/// A condition on the path to a statement, and whether it holds there.
pub(crate) type Given = (Expr, bool);

/// Inequalities `.. >= 0` about an atom, and cases of which one holds.
pub(super) type OfAtom = (Vec<Sum>, Option<Cases>);

/// Whether claims are impossible under conditions.
pub(super) type Answers = BTreeMap<(Vec<Sum>, Vec<Given>), bool>;

/// A dimension of a window that is stored to.
pub(super) struct Stored {
    pub(super) start: Sum,
    pub(super) extent: Sum,
    /// Elements at or past any of these are not stored.
    pub(super) ends: Vec<Sum>,
}
