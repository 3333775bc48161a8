//! The instruction table, spelled out: for tests that compare every instruction with a device or an assembler.

use super::sem;
use super::table::{all, limits, needs};

/// One spelling of an instruction that the table accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionForm {
    /// The opcode, such as `fma`.
    pub opcode: &'static str,
    /// The modifiers in order, without dots, such as `rn`, `f32`.
    pub modifiers: Vec<&'static str>,
    /// The operands: `d` destination, `s` source, `p` and `q` predicate destination and source, `d*4` a vector, `i` an
    /// immediate, `m` memory; `:type` where the type is not the last one of the modifiers (`U`: the first one, `W`: the last
    /// one, twice as wide).
    pub operands: &'static str,
    /// Number of the row it is a spelling of.
    pub row: usize,
    /// The first PTX version that has it: major and minor.
    pub version: (u32, u32),
    /// The first target that has it: 80 for `sm_80`.
    pub target: u32,
    /// Whether no later target has it: `sm_90a` alone.
    pub specific: bool,
}

/// Every spelling of every row of the table, in its order. Spellings are left out if no GPU executes them as the manual
/// says, or not every GPU for which ptxas takes them. A few are refused later, since a row states which modifiers there
/// are, not all rules about their combination.
#[must_use]
pub fn instruction_forms() -> Vec<InstructionForm> {
    let mut forms = Vec::new();
    for (number, row) in all().enumerate() {
        let mut spellings: Vec<Vec<&'static str>> = vec![Vec::new()];
        for slot in row.mods.split_ascii_whitespace() {
            let (words, optional) = slot.strip_suffix('?').map_or((slot, false), |s| (s, true));
            let mut longer = if optional { spellings.clone() } else { Vec::new() };
            for word in words.split('|') {
                longer.extend(spellings.iter().map(|s| [s.as_slice(), &[word]].concat()));
            }
            spellings = longer;
        }
        let part = row.args.starts_with("dm");
        let executed = spellings.into_iter().filter(|words| {
            sem::not_as_written(row.op, words, part).is_none() && limits::miscompiled(row.op, words).is_none()
        });
        forms.extend(executed.map(|modifiers| {
            let needs::Need { version, target, specific } = needs::of(row.op, &modifiers, needs::BASE.target);
            InstructionForm { opcode: row.op, modifiers, operands: row.args, row: number, version, target, specific }
        }));
    }
    forms
}
