//! Shortest possible names for declarations in roles.

use std::collections::BTreeSet;
use tilec_ir::entities::Value;
use tilec_ir::kernel::{Kernel, StmtData};

/// Declarations in roles are renamed copies; if the original is gone, its name is free again.
pub(super) fn plain_names(k: &mut Kernel) {
    let mut declared: Vec<Value> = Vec::new();
    k.walk(k.body, &mut |k, _, s| match k.stmts[s] {
        StmtData::Let { value, .. } | StmtData::Var { value, .. } | StmtData::Alloc { value, .. } => {
            declared.push(value)
        }
        StmtData::For { var, .. } => declared.push(var),
        _ => {}
    });
    let header: Vec<Value> = [&k.params, &k.sizes, &k.strides].into_iter().flatten().copied().collect();
    let header = header.into_iter().chain(k.grid.iter().map(|g| g.index));
    let mut taken: BTreeSet<String> = header.map(|v| k.values[v].name.clone()).collect();
    let gone: Vec<String> = k
        .values
        .iter()
        .filter(|(v, data)| !declared.contains(v) && !taken.contains(&data.name))
        .map(|(_, data)| data.name.clone())
        .collect();
    let live: BTreeSet<String> = declared.iter().map(|&v| k.values[v].name.clone()).collect();
    for v in declared {
        let name = k.values[v].name.clone();
        let free = |stem: &str| gone.iter().any(|g| g == stem) && !live.contains(stem) && !taken.contains(stem);
        let mut short = name.as_str();
        while let Some((stem, digits)) = short.rsplit_once('_')
            && digits.bytes().all(|b| b.is_ascii_digit())
            && !digits.is_empty()
        {
            short = stem;
            if free(short) {
                break;
            }
        }
        let new = if free(short) { short.to_owned() } else { name };
        taken.insert(new.clone());
        k.values[v].name = new;
    }
}
