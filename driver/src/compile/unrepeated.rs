//! Lists without repetitions.

use std::collections::BTreeSet;

/// Leaves out what is there already; the first of several stays.
pub(crate) fn unrepeated<T: Ord + Clone>(list: &mut Vec<T>) {
    let mut seen = BTreeSet::new();
    list.retain(|x| seen.insert(x.clone()));
}
