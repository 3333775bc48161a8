//! Checks the promise `apart` of a store: no other store of the launch writes its elements, nor does it write one
//! twice.

use super::window::Plan;
use crate::entities::Value;
use crate::kernel::{Kernel, StmtData};
use crate::typing::resolve_view;
use std::collections::{BTreeMap, BTreeSet};

/// For tensors with such stores, the elements written by these stores and by others.
#[derive(Default)]
pub(super) struct Stored {
    of: BTreeMap<Value, [BTreeSet<usize>; 2]>,
    /// Whether the current store has `apart`.
    pub(super) now: bool,
}

impl Stored {
    pub(super) fn of(k: &Kernel) -> Stored {
        let apart = |s: &StmtData| match s {
            StmtData::Copy { dst, attrs, .. } if attrs.apart => {
                resolve_view(k, *dst).map(|to| (to.base, Default::default()))
            }
            _ => None,
        };
        Stored { of: k.statement_data().filter_map(apart).collect(), now: false }
    }

    /// Notes which elements of `tensor` are stored. Whether all is as the stores say.
    pub(super) fn note(&mut self, tensor: Value, plan: &Plan) -> bool {
        let now = self.now;
        let Some([apart, others]) = self.of.get_mut(&tensor) else { return true };
        let mut once = true;
        plan.scatter(|address, _| {
            once &= !(apart.contains(&address) || now && others.contains(&address));
            if now {
                apart.insert(address)
            } else {
                others.insert(address)
            };
        });
        once
    }
}
