//! Measurements, and which of them are compared with a prediction.

use crate::compile::CompiledKernel;
use serde::Serialize;
use std::collections::BTreeMap;
use tilec_ir::target::Target;

/// What was measured of one variant at one problem, from the JSON of `tilec bench`.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Microseconds of a launch: the median of the rounds.
    pub us: f64,
    /// The kernel.
    pub entry: String,
    /// The target it was compiled for.
    pub target: String,
    /// What the variant is called.
    pub variant: String,
    /// The device.
    pub device: String,
    /// Sizes, strides and scalars, as they are written.
    pub args: BTreeMap<String, String>,
    /// What `auto` parameters were chosen to be.
    pub chosen: Vec<(String, String)>,
    /// When, and by which command, where the file says so.
    pub by: String,
}

impl Measured {
    /// Sizes, strides and scalars in words.
    pub fn sizes(&self) -> String {
        self.args.iter().map(|(name, n)| format!("{name}={n}")).collect::<Vec<_>>().join(" ")
    }

    fn in_words(&self) -> String {
        format!("`{}` ({}, {}) with {}", self.entry, self.target, self.variant, self.sizes())
    }
}

/// The one measurement of this kernel, for this target, with the sizes of its prediction and the values of its parameters.
///
/// # Errors
/// There is none, or more than one; the text says what there is.
pub(super) fn fitting<'m>(
    all: &'m [Measured],
    target: Target,
    kernel: &CompiledKernel,
) -> Result<&'m Measured, String> {
    let entry = &kernel.contract.entry;
    let Some(p) = kernel.tile.whole() else {
        return Err(format!("there is no prediction for `{entry}` with which to compare the measurement"));
    };
    let parameters = &kernel.tile.parameters;
    let value = |of: &str| parameters.iter().find(|(name, _)| *name == of).and_then(|(_, v)| v.text());
    let fits = |m: &&Measured| {
        (m.entry == *entry || m.entry == kernel.tile.kernel.name)
            && m.target == target.name()
            && p.sizes.iter().all(|(name, n)| m.args.get(name) == Some(&n.to_string()))
            && m.chosen.iter().all(|(name, x)| value(name).is_none_or(|own| own == *x))
    };
    let found: Vec<&Measured> = all.iter().filter(fits).collect();
    let words = |some: &[&Measured]| some.iter().map(|m| m.in_words()).collect::<Vec<_>>().join("; ");
    match found[..] {
        [one] => Ok(one),
        [] => {
            let sizes: Vec<String> = p.sizes.iter().map(|(name, n)| format!("{name}={n}")).collect();
            let (target, sizes, has) = (target.name(), sizes.join(" "), words(&all.iter().collect::<Vec<_>>()));
            Err(format!(
                "nothing of `{entry}` for {target} with {sizes} and these parameters was measured; it has {has}"
            ))
        }
        _ => Err(format!("several of its variants fit `{entry}`: {}", words(&found))),
    }
}
