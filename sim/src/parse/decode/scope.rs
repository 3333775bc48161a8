//! Names in nested scopes.

use crate::parse::raw::RawReg;
use crate::program::types::{Space, Ty};
use std::collections::HashMap;

/// The names of the elements of a vector.
pub(super) const FIELDS: [[&str; 2]; 4] = [["x", "r"], ["y", "g"], ["z", "b"], ["w", "a"]];

/// Special registers of four elements.
pub(super) const VECTORS: [&str; 8] =
    ["%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid"];

/// A declaration of registers.
#[derive(Clone, Copy)]
pub(super) struct Reg {
    pub(super) ty: Ty,
    /// More than one of a vector.
    pub(super) elements: u32,
    pub(super) count: Option<u32>,
    pub(super) id: u32,
}

/// A variable: its offset in its space, or its address.
#[derive(Clone, Copy)]
pub(super) struct Var {
    pub(super) at: u64,
    pub(super) space: Space,
    /// Its size, if it is a parameter of a call: these are in the stack of a thread.
    pub(super) stack: Option<u64>,
}

/// Names between braces.
#[derive(Default)]
pub(super) struct Scope<'a> {
    pub(super) id: u32,
    pub(super) regs: HashMap<&'a str, Reg>,
    pub(super) vars: HashMap<&'a str, Var>,
    /// Whether a register without a range ends in a digit.
    pub(super) plain_numbered: bool,
}

impl<'a> Scope<'a> {
    /// Whether a declaration names a register that the scope has: ranges overlap if their prefixes do.
    pub(super) fn declares(&self, new: &RawReg<'_>) -> bool {
        let number = |name: &str, prefix: &str| {
            let digits = name.strip_prefix(prefix).filter(|d| d.len() == 1 || !d.starts_with('0'))?;
            digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<u32>().ok()).flatten()
        };
        // A name alone is in a range of the scope; a new range holds a name, or part of another range.
        let split = new.name.len() - new.name.bytes().rev().take_while(u8::is_ascii_digit).count();
        let known = |prefix: &str| self.regs.get(prefix).and_then(|reg| reg.count);
        self.regs.contains_key(new.name)
            || self.vars.contains_key(new.name)
            || (new.count.is_none()
                && (split..new.name.len()).any(|at| {
                    let prefix = &new.name[..at];
                    known(prefix).is_some_and(|count| number(new.name, prefix).is_some_and(|n| n < count))
                }))
            || new.count.is_some_and(|count| {
                self.plain_numbered
                    && self
                        .regs
                        .iter()
                        .any(|(name, reg)| reg.count.is_none() && number(name, new.name).is_some_and(|n| n < count))
            })
    }
}
