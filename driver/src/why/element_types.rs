//! Operands of products in another element type: the source with that, to be tried.

use super::answer::Known;
use super::programs::Change;
use super::tensor_orders;
use crate::compile::CompiledKernel;
use crate::compile::demands::tensor_core_types::products;
use tilec_ir::diag::Span;
use tilec_ir::entities::Value;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::resolve_view;

/// The change of the operands, and of what they are copied from, with the option that it is, if parameters have the types;
/// `None`: they are not written where operands are declared.
pub(super) fn change(known: &Known<'_>, kernel: &CompiledKernel, (from, to): (Elem, Elem)) -> Option<(String, Change)> {
    let k = &kernel.tile.source_kernel.as_ref()?.kernel;
    let mut parts: Vec<(Span, String)> = Vec::new();
    let mut values: Vec<(&str, String)> = Vec::new();
    for v in operands(k) {
        let elem = k.values[v].def.elem()?;
        if let ElemRef::Param(parameter) = elem {
            values.push((&k.values[parameter].name, to.name().to_owned()));
        } else if elem == ElemRef::Known(from) {
            let declared = declaration(k, v)?;
            let text = known.text().get(declared.start as usize..declared.end as usize)?;
            let at = declared.start + u32::try_from(text.find(&format!("{}[", from.name()))?).ok()?;
            let end = at + u32::try_from(from.name().len()).ok()?;
            parts.push((Span { start: at, end }, to.name().to_owned()));
        }
    }
    values.sort_unstable();
    values.dedup();
    let options: Vec<String> = values.iter().map(|(name, elem)| format!("{name}={elem}")).collect();
    let option = if options.is_empty() { String::new() } else { format!("`-D {}`: ", options.join(",")) };
    Some((option, Change::of_values(&values).with_parts(parts)))
}

/// The places that products read, and those that are copied there.
fn operands(k: &Kernel) -> Vec<Value> {
    let base = |e| resolve_view(k, e).map(|view| view.base);
    let mut found: Vec<Value> = products(k).into_iter().flat_map(|mma| [mma.a, mma.b]).filter_map(base).collect();
    for s in k.statements() {
        if let StmtData::Copy { src, dst, .. } = k.stmts[s]
            && base(dst).is_some_and(|to| found.contains(&to))
        {
            found.extend(base(src));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Where the type of a place is declared.
fn declaration(k: &Kernel, v: Value) -> Option<Span> {
    if k.tensor_ty(v).is_some() {
        return tensor_orders::declaration(k, v);
    }
    let declares =
        |s: &StmtData| matches!(s, StmtData::Alloc { value, .. } | StmtData::Var { value, .. } if *value == v);
    k.statements().into_iter().find(|&s| declares(&k.stmts[s])).map(|s| k.stmt_spans[s])
}
