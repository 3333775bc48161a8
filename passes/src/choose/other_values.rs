//! The program with other values of its `auto` parameters, for `tilec run --check`.
//!
//! Chosen values must not affect results. So the reference for compiled code uses other values: a program whose result
//! depends on a choice gives a difference.

use super::parameters::{NAME, Role, autos, set, value};
use crate::specialize::{self, given};
use crate::{Cx, Options};
use tilec_ir::diag::Sink;
use tilec_ir::kernel::{ConstValue, Kernel, Schedule};

/// Extents to try for all tiles, other than a parameter's chosen value; the order is rotated for each parameter.
const EXTENTS: [i64; 6] = [32, 16, 64, 128, 8, 256];

/// Other values for the parameters of a kernel.
pub struct Other {
    /// All of its compile-time parameters, by name.
    pub values: Vec<(String, ConstValue)>,
    /// Whether a changed extent is `auto promised`: then results are equal except for rounding.
    pub promised: bool,
}

/// Extents of tiles that differ from `chosen` (by name) for the `auto` parameters of `k`, with all other values.
/// `None`: there is nothing to choose, or the kernel allows no other extents.
pub fn with_other_values(k: &Kernel, options: &Options, chosen: &[(String, ConstValue)]) -> Option<Other> {
    let mut sink = Sink::new();
    let mut cx = Cx::new(options, NAME, &mut sink);
    let mut k = k.clone();
    for p in k.const_params.clone() {
        if let Some(value) = given(&k, &cx, p) {
            set(&mut k, p, value);
        }
    }
    let autos = autos(&k, &mut cx).ok()?;
    // The schedule does not change results, and might not fit the extents.
    k.schedule = Schedule::default();
    let extents: Vec<_> = autos
        .iter()
        .filter(|a| matches!(a.role, Role::Rows | Role::Cols | Role::Depth | Role::Extent))
        .map(|a| {
            let own = chosen.iter().find(|(name, _)| *name == k.values[a.value].name).map(|(_, value)| *value);
            (a.value, own)
        })
        .collect();
    if extents.is_empty() {
        return None;
    }
    let promised = autos.iter().any(|a| a.promised && extents.iter().any(|(p, _)| *p == a.value));
    (0..EXTENTS.len()).find_map(|first| {
        let mut k = k.clone();
        for auto in &autos {
            set(&mut k, auto.value, ConstValue::Int(auto.role.plain()));
        }
        for &(p, own) in &extents {
            let mut from_first = EXTENTS[first..].iter().chain(&EXTENTS).map(|&x| ConstValue::Int(x));
            let other = from_first.find(|&x| Some(x) != own)?;
            set(&mut k, p, other);
        }
        let options = Options { defines: Vec::new(), sizes: Vec::new(), ..options.clone() };
        let name = |p| (k.values[p].name.clone(), value(&k, p));
        let named = k.const_params.iter().map(|&p| name(p));
        let values = named.filter_map(|(name, value)| Some((name, value?))).collect();
        // Tests whether the kernel allows them.
        specialize::quietly(&mut k.clone(), &options).ok().map(|()| Other { values, promised })
    })
}
