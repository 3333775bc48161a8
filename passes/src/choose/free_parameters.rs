//! Parameters that are not `auto`, and might be: another value computes the same.

use super::choice_dependence;
use super::parameters::{Auto, NAME, Role, autos, role, set, value};
use crate::analysis::uses::mentions;
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
    /// A precondition reads it: with another value the kernel takes other sizes.
    pub restricts: bool,
    /// What it is used for.
    pub role: Option<Role>,
}

/// The parameters of a kernel (as parsed) that another value could be given: those that no extents of the caller's tensors
/// read, and on which no result depends. There is no proof for those in conditions and bounds of loops, which an author
/// would promise (`auto promised`), nor for those in extents of `shared`: tensors that kernels of the file make for each
/// other. `auto` parameters are not among them, unless the options give them values.
pub fn free_parameters(k: &Kernel, options: &Options, shared: &[String]) -> Vec<FreeParameter> {
    let mut sink = Sink::new();
    let mut cx = Cx::new(options, NAME, &mut sink);
    let Some((plain, chosen)) = plain(k, &mut cx) else { return Vec::new() };
    let is_number = |p: Value| {
        let number = matches!(&k.values[p].def, ValueDef::ConstParam(param) if param.kind == ConstKind::Int);
        number && matches!(value(&plain, p), Some(ConstValue::Int(_)))
    };
    let own = k
        .const_params
        .iter()
        .copied()
        .filter(|p| !chosen.contains(p) && is_number(*p) && !is_prescribed(k, *p, shared));
    own.filter_map(|p| {
        let proven = computes_the_same(&plain, &mut cx, (p, Bounds::Proven))?;
        let in_shared =
            || k.params.iter().filter(|&&v| shared.contains(&k.values[v].name)).any(|&v| has_extent(k, v, p));
        let restricts = k.requires.iter().any(|&e| mentions(k, e, p));
        let is_free = proven || in_shared() || computes_the_same(&plain, &mut cx, (p, Bounds::Promised)) == Some(true);
        let name = k.values[p].name.clone();
        is_free.then(|| FreeParameter { name, proven, restricts, role: role(k, p) })
    })
    .collect()
}

/// Whether the rules for `auto` parameters prove that results do not depend on the value of a parameter.
pub(super) fn is_free(k: &Kernel, options: &Options, p: Value) -> bool {
    let mut sink = Sink::new();
    let mut cx = Cx::new(options, NAME, &mut sink);
    plain(k, &mut cx).is_some_and(|(plain, _)| computes_the_same(&plain, &mut cx, (p, Bounds::Proven)) == Some(true))
}

/// The kernel with given and plain values of its parameters, and those that are `auto`.
fn plain(k: &Kernel, cx: &mut Cx<'_>) -> Option<(Kernel, Vec<Value>)> {
    let mut plain = k.clone();
    for p in k.const_params.clone() {
        if let Some(value) = given(k, cx, p) {
            set(&mut plain, p, value);
        }
    }
    let chosen = autos(&plain, cx).ok()?;
    for auto in &chosen {
        set(&mut plain, auto.value, ConstValue::Int(auto.role.plain()));
    }
    Some((plain, chosen.into_iter().map(|auto| auto.value).collect()))
}

/// What holds of conditions and bounds of loops that read a parameter.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Bounds {
    /// What is proved: results do not depend on them.
    Proven,
    /// The same, as an author promises by `auto promised`.
    Promised,
}

/// Whether other values of a parameter compute the same; `None`: it has no use of which values can be chosen.
fn computes_the_same(plain: &Kernel, cx: &mut Cx<'_>, (p, bounds): (Value, Bounds)) -> Option<bool> {
    let mut k = plain.clone();
    set(&mut k, p, ConstValue::Auto { promised: bounds == Bounds::Promised });
    let found: Vec<Auto> = autos(&k, cx).ok()?;
    Some(choice_dependence::check(&k, cx, &found).is_ok())
}

/// Whether an extent of a tensor of the caller's reads a parameter.
fn is_prescribed(k: &Kernel, p: Value, shared: &[String]) -> bool {
    let mut callers = k.params.iter().filter(|&&v| !shared.contains(&k.values[v].name));
    callers.any(|&v| has_extent(k, v, p))
}

/// Whether an extent of a tensor reads a parameter.
fn has_extent(k: &Kernel, tensor: Value, p: Value) -> bool {
    let ty = k.tensor_ty(tensor).filter(|t| t.scratch.is_none());
    ty.is_some_and(|t| t.shape.iter().any(|&e| mentions(k, e, p)))
}
