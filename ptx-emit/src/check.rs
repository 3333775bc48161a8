//! Legality: finds everything that an assembler would refuse or the device would get wrong, in one walk.
//!
//! Rules for the module:
//! * the target is known; an explicit `.version` is at least the one that [`required_version`] computes;
//! * names are `[A-Za-z_][A-Za-z0-9_]{0,63}`, not reserved, and unique where they must be;
//! * block size, static, and static plus dynamic shared memory are within the caller's [`Limits`].
//!
//! Rules for a function: every register that is read is written somewhere; every label that is used is bound exactly
//! once; positions name a file of the module. Rules for an instruction (`operands`): arity, classes and literals are
//! those of its row; the target has the row; constant addresses are aligned and in range. ptxas assembles misaligned
//! constant addresses silently, so the last rule is ours alone.

mod errors;
mod operands;
mod version;

pub use errors::LegalityError;
pub use version::{ForcedBy, required_version};

use crate::inst::{Operand, Reg};
use crate::module::{Function, Item, Module, ParamTy};
use cranelift_entity::{EntityRef, EntitySet, SecondaryMap};
use errors::Errors;
use std::collections::{BTreeMap, BTreeSet};

/// What a block may use on the target; the caller's target table provides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Static shared memory per block, bytes (48 KiB on every target so far).
    pub static_shared_bytes: u32,
    /// Static and dynamic shared memory per block, bytes, with the opt-in attribute.
    pub shared_bytes: u32,
    /// Threads per block.
    pub threads: u32,
}

/// Kernel parameters may take this many bytes (4352 since PTX 1.5; the larger limit of sm_70 and PTX 8.1 is
/// not used).
const PARAM_BYTES: u64 = 4352;

/// Every violation in the module, in the order of the text.
pub fn check(module: &Module, limits: &Limits) -> Vec<LegalityError> {
    let mut errors = Errors::default();
    check_versions(module, &mut errors);
    check_module_names(module, &mut errors);
    for (index, func) in module.functions.iter().enumerate() {
        errors.function = Some(index);
        check_params(func, &mut errors);
        check_shared(func, limits, &mut errors);
        check_launch_bounds(func, limits, &mut errors);
        check_body(module, func, &mut errors);
        errors.item = None;
        errors.op = None;
    }
    errors.list
}

fn check_versions(module: &Module, errors: &mut Errors) {
    let target = module.target;
    if target.min_version().is_none() {
        errors.push(format!("unknown target `{target}`"));
    }
    let Some(version) = module.version else { return };
    let (required, forced_by) = required_version(module);
    if version < required {
        let by = match forced_by {
            Some(site) => format!("`{}`", site.feature()),
            None => format!("target `{target}`"),
        };
        errors.push(format!(
            "`.version {}.{}` is too low: {by} needs {}.{}",
            version.0, version.1, required.0, required.1
        ));
    }
}

/// Checks the form of a name; `what` says what it names, for the message.
fn check_name(what: &str, name: &str, errors: &mut Errors) {
    let mut bytes = name.bytes();
    let head = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    let tail = bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !head || !tail || name.len() > 64 {
        errors.push(format!(
            "{what} name `{}` is not 1 to 64 letters, digits and underscores starting with no digit",
            name.escape_default()
        ));
    } else if name == "_" || name == "WARP_SZ" {
        errors.push(format!("{what} name `{name}` is reserved"));
    }
}

/// Entry names and dynamic arrays share one name space, that of the module.
fn check_module_names(module: &Module, errors: &mut Errors) {
    let mut taken = BTreeSet::new();
    for func in &module.functions {
        check_name("entry", &func.name, errors);
        if !taken.insert(func.name.as_str()) {
            errors.push(format!("entry `{}` is defined twice", func.name));
        }
    }
    let mut alignments = BTreeMap::new();
    for decl in module.functions.iter().flat_map(|f| &f.shared).filter(|d| d.dynamic) {
        if taken.contains(decl.name.as_str()) {
            errors.push(format!("dynamic array `{}` has the name of an entry", decl.name));
        }
        if *alignments.entry(decl.name.as_str()).or_insert(decl.align) != decl.align {
            errors.push(format!("dynamic array `{}` has two alignments", decl.name));
        }
    }
}

fn check_params(func: &Function, errors: &mut Errors) {
    let mut end: u64 = 0;
    for param in &func.params {
        check_name("parameter", &param.name, errors);
        if let Some(align) = param.align
            && !align.is_power_of_two()
        {
            errors.push(format!("parameter `{}` has alignment {align}, not a power of two", param.name));
            continue;
        }
        if param.ty == ParamTy::Bytes(0) {
            errors.push(format!("parameter `{}` has no bytes", param.name));
        }
        end = end.next_multiple_of(u64::from(param.own_align())) + u64::from(param.ty.bytes());
    }
    if end > PARAM_BYTES {
        errors.push(format!("parameters take {end} bytes, more than the {PARAM_BYTES} a kernel can have"));
    }
}

fn check_shared(func: &Function, limits: &Limits, errors: &mut Errors) {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    let locals = func.params.iter().map(|p| p.name.as_str());
    for name in locals.chain(func.shared.iter().map(|d| d.name.as_str())) {
        if !names.insert(name) {
            errors.push(format!("`{name}` is declared twice"));
        }
    }
    let (mut static_bytes, mut dynamic_bytes) = (0u64, 0u64);
    for decl in &func.shared {
        check_name("shared array", &decl.name, errors);
        if !decl.align.is_power_of_two() {
            errors.push(format!("shared array `{}` has alignment {}, not a power of two", decl.name, decl.align));
            continue;
        }
        if decl.dynamic {
            // All dynamic arrays start at the same address.
            dynamic_bytes = dynamic_bytes.max(u64::from(decl.bytes));
        } else if decl.bytes == 0 {
            errors.push(format!("static shared array `{}` has no bytes", decl.name));
        } else {
            static_bytes = static_bytes.next_multiple_of(u64::from(decl.align)) + u64::from(decl.bytes);
        }
    }
    if static_bytes > u64::from(limits.static_shared_bytes) {
        errors.push(format!(
            "{static_bytes} bytes of static shared memory, at most {} are possible",
            limits.static_shared_bytes
        ));
    }
    let dynamic_align = func.shared.iter().filter(|d| d.dynamic).map(|d| d.align).max();
    let base = static_bytes.next_multiple_of(u64::from(dynamic_align.unwrap_or(1).max(1)));
    if base + dynamic_bytes > u64::from(limits.shared_bytes) {
        errors.push(format!(
            "{} bytes of shared memory, the target has {} per block",
            base + dynamic_bytes,
            limits.shared_bytes
        ));
    }
}

fn check_launch_bounds(func: &Function, limits: &Limits, errors: &mut Errors) {
    let [x, y, z] = func.maxntid;
    let threads = u128::from(x) * u128::from(y) * u128::from(z);
    if threads == 0 || threads > u128::from(limits.threads) {
        errors.push(format!("block of {x}x{y}x{z} threads, expected 1 to {}", limits.threads));
    }
    if func.minnctapersm == 0 {
        errors.push("`.minnctapersm 0`, expected at least 1".to_string());
    }
}

fn check_body(module: &Module, func: &Function, errors: &mut Errors) {
    let mut written = vec![false; func.regs.len()];
    let mut bound: SecondaryMap<_, u32> = SecondaryMap::new();
    for item in &func.body {
        match item {
            Item::Inst(inst) => {
                let n_dsts = inst.op.signature().dsts.len();
                for dst in inst.operands.iter().take(n_dsts) {
                    dst.for_each_reg(|reg| {
                        if let Some(written) = written.get_mut(reg.index()) {
                            *written = true;
                        }
                    });
                }
            }
            // A label of another function is reported below.
            Item::Label(label) if func.labels.is_valid(*label) => bound[*label] += 1,
            Item::Label(_) | Item::Comment(_) | Item::Loc { .. } | Item::Pragma(_) => {}
        }
    }

    let mut names = BTreeSet::new();
    for name in func.labels.values() {
        check_name("label", name, errors);
        if !names.insert(name.as_str()) {
            errors.push(format!("two labels are named `{name}`"));
        }
    }
    let mut reported = EntitySet::with_capacity(func.regs.len());
    for (index, item) in func.body.iter().enumerate() {
        errors.item = Some(index);
        errors.op = None;
        match item {
            Item::Inst(inst) => {
                errors.op = Some(inst.op);
                operands::check_inst(module, func, inst, errors);
                let n_dsts = inst.op.signature().dsts.len();
                let mut read = |reg: Reg, errors: &mut Errors| {
                    if written.get(reg.index()) == Some(&false) && reported.insert(reg) {
                        errors.push(format!("`{reg}` is read but written nowhere"));
                    }
                };
                for (index, operand) in inst.operands.iter().enumerate() {
                    match operand {
                        Operand::Label(label) if func.labels.is_valid(*label) && bound[*label] == 0 => {
                            errors.push(format!("label `{}` is bound nowhere", func.labels[*label]));
                        }
                        src if index >= n_dsts => src.for_each_reg(|reg| read(reg, errors)),
                        _ => {}
                    }
                }
                if let Some(guard) = inst.guard {
                    read(guard.reg, errors);
                }
            }
            Item::Label(label) => match func.labels.get(*label) {
                None => errors.push(format!("`{label}` is not a label of the function")),
                Some(name) if bound[*label] > 1 => {
                    errors.push(format!("label `{name}` is bound {} times", bound[*label]));
                }
                Some(_) => {}
            },
            Item::Loc { file, line, .. } => {
                if usize::try_from(*file).is_ok_and(|file| file >= module.files.len()) {
                    errors.push(format!("position in file {file}, the module has {} files", module.files.len()));
                }
                if *line == 0 {
                    errors.push("position on line 0, lines count from 1".to_string());
                }
            }
            Item::Pragma(text) => {
                if !text.bytes().all(|b| b.is_ascii_graphic() && b != b'"') {
                    errors.push("a pragma is printable ASCII without quotes".to_string());
                }
            }
            Item::Comment(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
