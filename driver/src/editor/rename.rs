//! Rename: a new name at every use.

use super::analysis::{Analysis, Symbol};
use std::collections::BTreeMap;
use tilec_ir::diag::Span;
use tilec_ir::kernel::{Sequence, ValueDef};
use tilec_ir::outline::may_be_name;

/// The places that change when the symbol at a byte is called `name`, in order.
///
/// # Errors
/// Why it cannot be called so, for people.
pub fn rename(a: &Analysis, byte: usize, name: &str) -> Result<Vec<Span>, String> {
    let (symbol, places) = places(a, byte)?;
    if !may_be_name(name) {
        return Err(format!(
            "`{name}` cannot be a name: names are letters, digits and `_`, and no words of the language"
        ));
    }
    if let Some(clash) = conflicting_declaration(a, symbol, name) {
        return Err(format!("`{name}` is declared where this is visible, in line {}", line(a, clash)));
    }
    let text = renamed(&a.text, &places, name);
    let after = Analysis::new(&text);
    // The words at each position must mean the same in both texts, or the name does not fit.
    if !after.whole || meaning(a) != meaning(&after) {
        return Err(format!("with `{name}` the file would mean something else"));
    }
    Ok(places)
}

/// The symbol at a byte, and all places of its name.
///
/// # Errors
/// Why it cannot be renamed, for people.
pub fn places(a: &Analysis, byte: usize) -> Result<(Symbol, Vec<Span>), String> {
    let (symbol, _) = a.symbol_at(byte).ok_or("there is no name here")?;
    if !a.whole {
        return Err("the file has errors; names are changed in whole programs".to_owned());
    }
    if matches!(symbol, Symbol::Value(..)) && a.declaration(symbol).is_none() {
        return Err("this name is made of that of its tensor: rename the tensor".to_owned());
    }
    Ok((symbol, all_places(a, symbol, true)))
}

/// The occurrences of a symbol in all kernels that share it, in order: uses, on request declarations, and derived names
/// that contain it.
pub fn all_places(a: &Analysis, symbol: Symbol, declared: bool) -> Vec<Span> {
    let mut places = Vec::new();
    for symbol in alike(a, symbol) {
        places.extend(a.uses(symbol));
        places.extend(declared.then(|| a.definition(symbol)));
        places.extend(base_tensor(a, symbol));
    }
    places.sort();
    places.dedup();
    places
}

/// The tensor in a derived name: `A` in `A_ld`.
fn base_tensor(a: &Analysis, symbol: Symbol) -> Vec<Span> {
    let Symbol::Value(kernel, value) = symbol else { return Vec::new() };
    let k = &a.outline.module.kernels[kernel];
    let Some(tensor) = k.tensor_ty(value) else { return Vec::new() };
    let length = k.values[value].name.len() as u32;
    let part = |span: Span| Span { start: span.start, end: span.start + length };
    let strides = tensor.ld.iter().map(|&stride| Symbol::Value(kernel, stride));
    let undeclared = strides.filter(|&stride| a.declaration(stride).is_none());
    undeclared.flat_map(|stride| a.uses(stride)).map(part).collect()
}

/// The symbol and its counterparts in other kernels: kernels of a sequence share names.
fn alike(a: &Analysis, symbol: Symbol) -> Vec<Symbol> {
    let Symbol::Value(of, value) = symbol else { return vec![symbol] };
    let module = &a.outline.module;
    let mut kernels = vec![of];
    if is_given(&a.value(of, value).def) {
        let mut next = 0;
        while let Some(&kernel) = kernels.get(next) {
            let launches = |s: &&Sequence| s.launches.iter().any(|(name, _)| *name == module.kernels[kernel].name);
            for (name, _) in module.sequences.iter().filter(launches).flat_map(|s| &s.launches) {
                kernels.extend(module.kernels.iter().position(|k| k.name == *name).filter(|k| !kernels.contains(k)));
            }
            next += 1;
        }
    }
    let name = &a.value(of, value).name;
    let others = kernels.into_iter().filter(|&kernel| kernel != of).flat_map(|kernel| {
        let given = module.kernels[kernel].values.iter().filter(|(_, v)| v.name == *name && is_given(&v.def));
        given.map(move |(value, _)| Symbol::Value(kernel, value))
    });
    [symbol].into_iter().chain(others.filter(|&s| a.declaration(s).is_some())).collect()
}

/// Whether the caller of a kernel gives it.
fn is_given(def: &ValueDef) -> bool {
    matches!(
        def,
        ValueDef::Tensor(_) | ValueDef::Size | ValueDef::Scalar { .. } | ValueDef::ConstParam(_) | ValueDef::Table(_)
    )
}

/// A declaration of `name` that is visible where the symbol is.
fn conflicting_declaration(a: &Analysis, symbol: Symbol, name: &str) -> Option<Span> {
    let o = &a.outline;
    let Some(own) = a.declaration(symbol) else {
        let kernels = o.module.kernels.iter().map(|k| (&k.name, k.name_span));
        let sequences = o.module.sequences.iter().map(|s| (&s.name, s.name_span));
        let here = a.definition(symbol);
        return kernels.chain(sequences).find(|(other, at)| *other == name && *at != here).map(|(_, at)| at);
    };
    let beside = |d: Span| d.start < own.visible.end && own.visible.start < d.end;
    let others = o.declarations.iter().filter(|d| d.kernel == own.kernel && d.value != own.value);
    others.into_iter().find(|d| d.name == name && beside(d.visible)).map(|d| d.span)
}

fn line(a: &Analysis, span: Span) -> u32 {
    a.lines.place(&a.text, span.start as usize).line + 1
}

/// A text with `name` at these spans, which are in order.
pub fn renamed(text: &str, places: &[Span], name: &str) -> String {
    let (mut out, mut at) = (String::new(), 0);
    for place in places {
        out += &text[at..place.start as usize];
        out += name;
        at = place.end as usize;
    }
    out + &text[at..]
}

/// For every word that is a name, the word that declares it.
fn meaning(a: &Analysis) -> Vec<(usize, usize)> {
    let numbers: BTreeMap<Span, usize> = a.words().iter().enumerate().map(|(i, w)| (w.span, i)).collect();
    let of = |(span, i): (&Span, &usize)| {
        let symbol = a.symbol_of(*span)?;
        Some((*i, numbers.get(&a.definition(symbol)).copied().unwrap_or(usize::MAX)))
    };
    numbers.iter().filter_map(of).collect()
}
