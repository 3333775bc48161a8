//! Parameters that are not `auto`, and might be: another value computes the same.

use super::choice_dependence;
use super::parameters::{Auto, NAME, autos, set, value};
use crate::specialize::given;
use crate::{Cx, Options};
use tilec_ir::diag::Sink;
use tilec_ir::entities::Value;
use tilec_ir::kernel::{ConstKind, ConstValue, Kernel, ValueDef};

/// A compile-time parameter that is an extent of tiles or a part of the schedule, and has a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FreeParameter {
    /// Its name.
    pub name: String,
    /// The rules for `auto` parameters prove that results do not depend on its value.
    pub proven: bool,
}

/// The parameters of a kernel (as parsed) that another value could be given: those that neither extents of the caller's
/// tensors nor preconditions read. `shared`: tensors that kernels of the file make for each other. `auto` parameters
/// are not among them, unless the options give them values.
pub fn free_parameters(k: &Kernel, options: &Options, shared: &[String]) -> Vec<FreeParameter> {
    let mut sink = Sink::new();
    let mut cx = Cx::new(options, NAME, &mut sink);
    let mut plain = k.clone();
    for p in k.const_params.clone() {
        if let Some(value) = given(k, &cx, p) {
            set(&mut plain, p, value);
        }
    }
    let Ok(chosen) = autos(&plain, &mut cx) else { return Vec::new() };
    for auto in &chosen {
        set(&mut plain, auto.value, ConstValue::Int(auto.role.plain()));
    }
    let is_chosen = |p: Value| chosen.iter().any(|auto| auto.value == p);
    let is_number = |p: Value| {
        let number = matches!(&k.values[p].def, ValueDef::ConstParam(param) if param.kind == ConstKind::Int);
        number && matches!(value(&plain, p), Some(ConstValue::Int(_)))
    };
    let own = k.const_params.iter().copied().filter(|&p| !is_chosen(p) && is_number(p) && !is_prescribed(k, p, shared));
    own.filter_map(|p| {
        let mut k = plain.clone();
        set(&mut k, p, ConstValue::Auto { promised: false });
        // With a use of which values can be chosen.
        let found: Vec<Auto> = autos(&k, &mut cx).ok()?;
        let proven = choice_dependence::check(&k, &mut cx, &found).is_ok();
        Some(FreeParameter { name: k.values[p].name.clone(), proven })
    })
    .collect()
}

/// Whether an extent of a tensor of the caller's, or a precondition, reads a parameter.
fn is_prescribed(k: &Kernel, p: Value, shared: &[String]) -> bool {
    let callers = |v: &Value| !shared.contains(&k.values[*v].name);
    let tensors = k.params.iter().filter(|v| callers(v)).filter_map(|&v| k.tensor_ty(v));
    let extents = tensors.filter(|t| t.scratch.is_none()).flat_map(|t| t.shape.iter());
    extents.chain(&k.requires).any(|&e| crate::analysis::uses::mentions(k, e, p))
}
