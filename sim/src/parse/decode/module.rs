//! A module: the addresses of its variables, and its kernels one by one.

use super::entry::decode_entry;
use super::globals::Globals;
use super::scope::Var;
use super::shared::SharedLayout;
use crate::parse::error::Result;
use crate::parse::raw::{RawAlias, RawFormal, RawFunc, RawModule, RawStmt};
use crate::program::Program;
use crate::program::types::Space;
use std::collections::HashMap;

/// Decodes a module.
pub(crate) fn decode(raw: &RawModule<'_>) -> Result<Program> {
    let mut program = Program {
        version: raw.version,
        target: raw.target.to_owned(),
        files: raw.files.iter().map(|(n, s)| (*n, (*s).to_owned())).collect(),
        vars: Vec::new(),
        entries: Vec::new(),
    };
    let mut symbols: HashMap<&str, Var> = HashMap::new();
    let mut shared = SharedLayout::new(raw);
    let mut globals = Globals::new(raw);
    for var in &raw.vars {
        let at = match var.space {
            Space::Shared if var.bytes.is_none() => continue,
            Space::Shared => shared.place(var)?,
            _ => globals.place(var, |name| symbols.get(name).copied())?,
        };
        if symbols.insert(var.name, Var { at, space: var.space, stack: None }).is_some() {
            return Err(var.pos.error(format!("`{}` is defined twice", var.name)));
        }
    }
    let mut statics = HashMap::new();
    let bodies = raw.entries.iter().map(|e| &e.body).chain(raw.funcs.iter().filter_map(|f| f.body.as_ref()));
    for body in bodies {
        let mut scopes: Vec<HashMap<&str, Var>> = vec![HashMap::new()];
        for stmt in body {
            let var = match stmt {
                RawStmt::Open => {
                    scopes.push(HashMap::new());
                    continue;
                }
                RawStmt::Close => {
                    scopes.pop();
                    continue;
                }
                RawStmt::Var(var) => var,
                _ => continue,
            };
            let mut at = 0;
            if matches!(var.space, Space::Global | Space::Const) {
                let find = |name: &str| scopes.iter().rev().find_map(|s| s.get(name)).or_else(|| symbols.get(name));
                at = globals.place(var, |name| find(name).copied())?;
                statics.insert(var.pos, at);
            }
            if let Some(scope) = scopes.last_mut() {
                scope.insert(var.name, Var { at, space: var.space, stack: None });
            }
        }
    }
    program.vars = globals.vars;
    let mut funcs: HashMap<&str, &RawFunc<'_>> = HashMap::new();
    for func in &raw.funcs {
        match funcs.get(func.name) {
            Some(known) if known.body.is_some() && func.body.is_some() => {
                return Err(func.pos.error(format!("`{}` is defined twice", func.name)));
            }
            Some(known) if known.body.is_some() => {}
            _ => {
                funcs.insert(func.name, func);
            }
        }
    }
    for alias in &raw.aliases {
        let of = aliased(alias, &funcs, raw.version)?;
        funcs.insert(alias.name, of);
    }
    for (i, entry) in raw.entries.iter().enumerate() {
        let known = raw.entries[..i].iter().any(|e| e.name == entry.name);
        if known || symbols.contains_key(entry.name) || funcs.contains_key(entry.name) {
            return Err(entry.pos.error(format!("`{}` is defined twice", entry.name)));
        }
        let decoded = decode_entry(raw, entry, &symbols, &funcs, shared.clone(), &statics)?;
        program.entries.push(decoded);
    }
    Ok(program)
}

/// The function that another name is given to: it has a body, the name none, and both are declared alike.
fn aliased<'m, 'a>(
    alias: &RawAlias<'a>,
    funcs: &HashMap<&'a str, &'m RawFunc<'a>>,
    version: (u32, u32),
) -> Result<&'m RawFunc<'a>> {
    if version < (6, 3) {
        return Err(alias.pos.error(format!("`.alias` needs PTX 6.3 (this is {}.{})", version.0, version.1)));
    }
    let Some(name) = funcs.get(alias.name) else {
        return Err(alias.pos.error(format!("`{}` is not declared as a function", alias.name)));
    };
    let Some(of) = funcs.get(alias.of) else {
        return Err(alias.of_pos.error(format!("unknown function `{}`", alias.of)));
    };
    if name.body.is_some() {
        return Err(alias.pos.error(format!("`{}` has a body of its own", alias.name)));
    }
    if of.body.is_none() {
        return Err(alias.of_pos.error(format!("`{}` has no body, so it gets no other name", alias.of)));
    }
    if !alike(&name.results, &of.results) || !alike(&name.params, &of.params) {
        let message = format!("`{}` and `{}` differ in their parameters or results", alias.name, alias.of);
        return Err(alias.pos.error(message));
    }
    Ok(of)
}

fn alike(a: &[RawFormal<'_>], b: &[RawFormal<'_>]) -> bool {
    let same = |pair: (&RawFormal<'_>, &RawFormal<'_>)| match pair {
        (RawFormal::Var(a), RawFormal::Var(b)) => (a.bytes, a.align) == (b.bytes, b.align),
        (RawFormal::Reg(a), RawFormal::Reg(b)) => a.ty == b.ty,
        _ => false,
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}
