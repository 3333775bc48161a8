//! That what a store says (`apart`) holds: no other store of the launch is to its elements, nor itself another time.

use super::window::Plan;
use crate::entities::Value;
use crate::kernel::{Kernel, StmtData};
use crate::typing::resolve_view;
use std::collections::{BTreeMap, BTreeSet};

/// Where elements of the tensors were stored that have such stores: by these, and by others.
#[derive(Default)]
pub(super) struct Stored {
    of: BTreeMap<Value, [BTreeSet<usize>; 2]>,
    /// Whether the store being done says that it is apart.
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
