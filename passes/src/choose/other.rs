//! The program with other values of its `auto` parameters, for `tilec run --check`.
//!
//! Values that are chosen decide how, not what. So a reference for compiled code need not share them: the program with others gives the same
//! result, and a program whose result depends on what was chosen is found out.

use super::parameters::{NAME, Role, autos, set, value};
use crate::specialize::{self, given};
use crate::{Cx, Options};
use tilec_ir::diag::Sink;
use tilec_ir::kernel::{ConstValue, Kernel, Schedule};

/// Extents that are tried for all tiles, each parameter's chosen value excepted; and which of them comes first for it.
const EXTENTS: [i64; 6] = [32, 16, 64, 128, 8, 256];

/// Other values of the parameters of a kernel.
pub struct Other {
    /// All of its compile-time parameters, by name.
    pub values: Vec<(String, ConstValue)>,
    /// An extent that is another one is `auto promised`: results are the same but for how they are rounded.
    pub promised: bool,
}

/// Other extents of tiles than `chosen` (by name) for the parameters of `k` that are `auto`, with the values of all others; `None` where there is nothing to
/// choose, or the kernel allows no other extents.
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
    // How the work is done is of no interest, and would have to fit the extents.
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
        // Whether the kernel allows them.
        specialize::quietly(&mut k.clone(), &options).ok().map(|()| Other { values, promised })
    })
}
