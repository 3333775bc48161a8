//! What a program means: its kernels as they were parsed and verified, before any pass, and the values of their compile-time parameters.
//!
//! This is what the interpreter runs. A pass that changes a meaning, the first ones among them, is found out by the comparison.

use std::collections::BTreeMap;
use tilec_ir::kernel::{ConstValue, Kernel, Module, Sequence};

/// A kernel as it was written, and what its compile-time parameters are.
#[derive(Clone, Debug)]
pub struct ParsedKernel {
    /// The kernel; no pass has seen it.
    pub kernel: Kernel,
    /// The values of its parameters: given, chosen, or defaults.
    pub parameters: BTreeMap<String, ConstValue>,
    /// How many launches it has become.
    pub launches: usize,
}

/// What the kernels of `module`, which passes over the file have changed, complete of `source`, by their names. A kernel of which several were made is
/// complete with the last; those in front of it are not here.
pub(super) fn written(source: &Module, module: &Module) -> BTreeMap<String, ParsedKernel> {
    let own = |name: &str| source.kernels.iter().find(|k| k.name == name);
    // A kernel by itself that became several is a sequence of its name now; one that sequences launch keeps its name.
    let made = || module.sequences.iter().filter(|s| source.sequences.iter().all(|own| own.name != s.name));
    let last = |s: &&Sequence, name: &str| s.launches.last().is_some_and(|(last, _)| last == name);
    let mut all = BTreeMap::new();
    let mut launches = 0;
    for k in &module.kernels {
        launches += 1;
        let kernel = own(&k.name).or_else(|| own(&made().find(|s| last(s, &k.name))?.name));
        if let Some(kernel) = kernel {
            let parameters = BTreeMap::new();
            all.insert(k.name.clone(), ParsedKernel { kernel: kernel.clone(), parameters, launches });
            launches = 0;
        }
    }
    all
}

/// The source programs of kernels that are launched together. `meant` gives the source program that each kernel
/// completes.
///
/// # Errors
/// A source program has more launches: the kernel that is launched as a part of it.
pub(crate) fn whole<'a, T>(
    meant: impl Iterator<Item = (&'a str, Option<(ParsedKernel, T)>)>,
) -> Result<Vec<(ParsedKernel, T)>, &'a str> {
    let (mut all, mut parts, mut open) = (Vec::new(), 0, None);
    for (name, written) in meant {
        parts += 1;
        open = Some(name);
        if let Some(written) = written {
            if written.0.launches != parts {
                return Err(name);
            }
            all.push(written);
            (parts, open) = (0, None);
        }
    }
    open.map_or(Ok(all), Err)
}
