//! The lowest `.version` that works, and what forces it.
//!
//! It is the maximum over the target, every instruction and every special register. Ties go to the target,
//! then to the first instruction: naming an instruction means that without it a lower version would do.

use crate::inst::{Operand, Special};
use crate::module::{Item, Module};
use crate::ops::Op;
use crate::target::Version;

/// The instruction that forces a version above the target's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForcedBy {
    /// Index into [`Module::functions`].
    pub function: usize,
    /// Index into the function's body.
    pub item: usize,
    /// The instruction's row.
    pub op: Op,
    /// The special register that it reads, if the register and not the row forces the version.
    pub special: Option<Special>,
}

impl ForcedBy {
    /// The spelling of the forcing feature: a mnemonic or a special register.
    pub fn feature(&self) -> &'static str {
        self.special.map_or(self.op.mnemonic(), Special::text)
    }
}

/// The lowest `.version` that has the module's target and all its instructions, and the first instruction
/// that forces it; `None` if the target alone does.
pub fn required_version(module: &Module) -> (Version, Option<ForcedBy>) {
    let mut version = module.target.min_version().unwrap_or((0, 0));
    let mut forced_by = None;
    for (function, func) in module.functions.iter().enumerate() {
        for (item, entry) in func.body.iter().enumerate() {
            let Item::Inst(inst) = entry else { continue };
            let op = inst.op;
            let mut see = |needed: Version, special| {
                if needed > version {
                    version = needed;
                    forced_by = Some(ForcedBy { function, item, op, special });
                }
            };
            see(op.min_version(), None);
            for operand in &inst.operands {
                if let Operand::Special(special) = operand {
                    see(special.min_version(), Some(*special));
                }
            }
        }
    }
    (version, forced_by)
}
