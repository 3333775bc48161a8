//! Values of compile-time parameters: from the command line, else the default.

use crate::Cx;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Span};
use tilec_ir::entities::Value;
use tilec_ir::fix_locations::FixLocation;
use tilec_ir::kernel::{ConstKind, ConstValue, ExprData, Kernel, ValueDef};
use tilec_ir::types::{Elem, ElemRef, Order, OrderRef, Strides};

/// The value of every compile-time parameter: from the command line, else its default.
pub(super) fn bind(k: &Kernel, cx: &mut Cx<'_>) -> Result<Vec<(Value, ConstValue)>, Reported> {
    let mut failed = None;
    for (name, _) in &cx.options.defines {
        let known = k.const_params.iter().any(|&p| k.values[p].name == *name);
        let baked = k.const_params.is_empty();
        if !known && !baked {
            let names: Vec<_> = k.const_params.iter().map(|&p| format!("`{}`", k.values[p].name)).collect();
            let message = format!("kernel `{}` has no compile-time parameter `{name}`", k.name);
            let d = Diagnostic::error(codes::UNKNOWN_DEFINE, k.name_span, message);
            let d = d.with_note(format!("it has {}", names.join(", ")));
            failed = Some(cx.report(match cx.options.caller.unknown_define(name) {
                Some(note) => d.with_note(note),
                None => d,
            }));
        }
    }
    let (mut bindings, mut not_chosen) = (Vec::new(), Vec::new());
    for &p in &k.const_params {
        let ValueDef::ConstParam(param) = &k.values[p].def else { unreachable!("it is a parameter") };
        let name = &k.values[p].name;
        let given = cx.options.defines.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v.clone());
        let value = match given {
            Some(text) => match parse_const(&param.kind, &text) {
                Some(v) => v,
                None => {
                    failed = Some(
                        cx.report(
                            Diagnostic::error(
                                codes::BAD_DEFINE,
                                k.values[p].span,
                                format!("`{name}` cannot be `{text}`"),
                            )
                            .with_note(format!("expected {}", expected(&param.kind))),
                        ),
                    );
                    continue;
                }
            },
            None => match param.default {
                Some(ConstValue::Same(earlier)) => {
                    let Some(&(_, value)) = bindings.iter().find(|(q, _)| *q == earlier) else { continue };
                    if let (ConstKind::Elem(allowed), ConstValue::Elem(elem)) = (&param.kind, value)
                        && !allowed.is_empty()
                        && !allowed.contains(&elem)
                    {
                        let earlier = &k.values[earlier].name;
                        let message = format!("`{name}` is `{earlier}` unless given, and cannot be `{}`", elem.name());
                        let d = Diagnostic::error(codes::BAD_DEFINE, k.values[p].span, message).with_note(format!(
                            "give one with {}: {}",
                            cx.options.caller.define(name),
                            expected(&param.kind)
                        ));
                        failed = Some(cx.report(d));
                        continue;
                    }
                    value
                }
                // `choose` sets this value, unless another parameter has an error.
                Some(ConstValue::Auto { .. }) => {
                    not_chosen.push(p);
                    continue;
                }
                None => {
                    failed = Some(missing(k, p, cx));
                    continue;
                }
                Some(v) => v,
            },
        };
        bindings.push((p, value));
    }
    if failed.is_none() {
        failed = not_chosen.into_iter().map(|p| missing(k, p, cx)).last();
    }
    match failed {
        Some(reported) => Err(reported),
        None => Ok(bindings),
    }
}

/// Reports a parameter without a value.
fn missing(k: &Kernel, parameter: Value, cx: &mut Cx<'_>) -> Reported {
    let name = &k.values[parameter].name;
    let message = format!("compile-time parameter `{name}` has no value");
    let d = Diagnostic::error(codes::MISSING_DEFINE, k.values[parameter].span, message);
    let d = d.with_note(format!("give one with {}, or a default in the source", cx.options.caller.define(name)));
    let ValueDef::ConstParam(param) = &k.values[parameter].def else { unreachable!("it is a parameter") };
    let default = match &param.kind {
        // There is no suggestion for a number.
        ConstKind::Int => None,
        ConstKind::Elem(elems) => elems.first().map(|e| e.name()),
        ConstKind::Order => Some(Order::Row.name()),
    };
    let kind = k.spots_behind(k.values[parameter].span, FixLocation::Kind).next();
    cx.report(match default.zip(kind) {
        Some((default, kind)) => d.with_fix(Span { start: kind.end, end: kind.end }, format!(" = {default}")),
        None => d,
    })
}

/// The value on the command line for the parameter, if it is legal.
pub(crate) fn given(k: &Kernel, cx: &Cx<'_>, parameter: Value) -> Option<ConstValue> {
    let ValueDef::ConstParam(param) = &k.values[parameter].def else { unreachable!("it is a parameter") };
    let name = &k.values[parameter].name;
    let (_, text) = cx.options.defines.iter().rev().find(|(n, _)| n == name)?;
    parse_const(&param.kind, text)
}

fn parse_const(kind: &ConstKind, text: &str) -> Option<ConstValue> {
    match kind {
        ConstKind::Int => text.parse().ok().map(ConstValue::Int),
        ConstKind::Elem(allowed) => {
            let elem = Elem::from_name(text)?;
            (allowed.is_empty() || allowed.contains(&elem)).then_some(ConstValue::Elem(elem))
        }
        ConstKind::Order => match text {
            "row" => Some(ConstValue::Order(Order::Row)),
            "col" => Some(ConstValue::Order(Order::Col)),
            _ => None,
        },
    }
}

fn expected(kind: &ConstKind) -> String {
    match kind {
        ConstKind::Int => "an integer".into(),
        ConstKind::Elem(allowed) if allowed.is_empty() => "an element type".into(),
        ConstKind::Elem(allowed) => {
            let names: Vec<_> = allowed.iter().map(|e| format!("`{}`", e.name())).collect();
            format!("one of {}", names.join(", "))
        }
        ConstKind::Order => "`row` or `col`".into(),
    }
}

/// Replaces the parameters by their values.
pub(crate) fn substitute(k: &mut Kernel, bindings: &[(Value, ConstValue)]) {
    let lookup = |v: Value| bindings.iter().find(|(p, _)| *p == v).map(|(_, c)| *c);
    let elem = |e: &mut ElemRef| {
        if let ElemRef::Param(p) = *e
            && let Some(ConstValue::Elem(known)) = lookup(p)
        {
            *e = ElemRef::Known(known);
        }
    };
    for data in k.exprs.values_mut() {
        match data {
            ExprData::Ref(v) => {
                if let Some(ConstValue::Int(x)) = lookup(*v) {
                    *data = ExprData::Int(x);
                }
            }
            ExprData::Cast { elem: e, .. } | ExprData::Bits { elem: e, .. } | ExprData::Round { elem: e, .. } => {
                elem(e)
            }
            _ => {}
        }
    }
    for data in k.values.values_mut() {
        data.def.elem_mut().into_iter().for_each(elem);
        if let ValueDef::Tensor(t) = &mut data.def
            && let Strides::Ordered(order @ OrderRef::Param(_)) = &mut t.strides
            && let OrderRef::Param(p) = *order
            && let Some(ConstValue::Order(known)) = lookup(p)
        {
            *order = OrderRef::Known(known);
        }
    }
}
