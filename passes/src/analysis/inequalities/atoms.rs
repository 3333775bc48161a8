//! The atoms of sums, and what a kernel says of them.

use super::sum::{Cases, Sum};
use crate::analysis::facts::Facts;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::extents::Ranges;
use tilec_ir::kernel::Kernel;

/// What a sum is made of.
#[derive(Clone, Debug)]
pub(super) enum Atom {
    /// The value of an index or of a scalar.
    Of(Expr),
    /// The place of an element along a dimension of a tile of that extent.
    Place(u32, Sum),
}

/// What is known of the indices of a kernel.
pub(crate) struct Inequalities<'k> {
    pub(super) k: &'k Kernel,
    pub(super) facts: Facts,
    pub(super) ranges: Ranges<'k>,
    /// Start, end and step of loops.
    pub(super) loops: BTreeMap<Value, [Expr; 3]>,
    /// Variables of loops that are the same.
    pub(super) same: Vec<(Value, Value)>,
    /// What variables always hold.
    pub(super) held: BTreeMap<Value, Expr>,
    /// Parameters that are extents of tiles.
    pub(super) extents: BTreeSet<Value>,
    pub(super) stored: Vec<Stored>,
    pub(super) atoms: RefCell<Vec<Atom>>,
    /// What was asked, and the answers.
    pub(super) answers: RefCell<Answers>,
    /// What indices are as sums.
    pub(super) sums: RefCell<BTreeMap<Expr, Option<Sum>>>,
    /// What conditions say.
    pub(super) conditions: RefCell<BTreeMap<Given, Cases>>,
    /// What is known of atoms.
    pub(super) of_atoms: RefCell<BTreeMap<usize, OfAtom>>,
}

/// A condition on the way to a statement, and whether it holds there.
pub(crate) type Given = (Expr, bool);

/// Inequalities `.. >= 0` of an atom, and cases of which one holds.
pub(super) type OfAtom = (Vec<Sum>, Option<Cases>);

/// Whether claims are impossible where conditions are met.
pub(super) type Answers = BTreeMap<(Vec<Sum>, Vec<Given>), bool>;

/// A dimension of a window that is stored to.
pub(super) struct Stored {
    pub(super) start: Sum,
    pub(super) extent: Sum,
    /// Elements from each of these on are not stored.
    pub(super) ends: Vec<Sum>,
}
