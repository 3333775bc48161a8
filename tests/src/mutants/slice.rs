//! The uses of a register: whether it reaches an address, a branch or a guard. By name, without control flow: a
//! register counts as soon as one of its values does.

use super::bulk::descriptors;
use super::text::{Statement, registers};
use std::collections::{BTreeMap, BTreeSet};

/// The purposes of the registers of a kernel.
pub struct Slices<'a> {
    /// Registers that addresses of global, shared or local memory are computed from.
    address: BTreeSet<&'a str>,
    /// Registers that matrix descriptors of products are computed from.
    descriptor: BTreeSet<&'a str>,
    /// Registers that hold the parities of waits.
    phase: BTreeSet<&'a str>,
    /// Registers that guards are computed from.
    control: BTreeSet<&'a str>,
    /// Opcode roots of the direct users of each register.
    users: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Slices<'a> {
    /// Looks at all statements.
    pub fn new(statements: &'a [Statement]) -> Slices<'a> {
        let mut definitions: BTreeMap<&str, Vec<&Statement>> = BTreeMap::new();
        let mut users: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let (mut addresses, mut described, mut phases, mut guards) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for s in statements {
            for register in s.writes() {
                definitions.entry(register).or_default().push(s);
            }
            for register in s.reads() {
                users.entry(register).or_default().insert(s.root());
            }
            if !s.has("param") {
                addresses.extend(s.addresses().flat_map(|(_, o)| registers(o)));
            }
            described.extend(descriptors(s));
            if s.root() == "mbarrier" && s.has("parity") {
                let parity = s.addresses().next().and_then(|(address, _)| s.operands.get(address + 1));
                phases.extend(parity.into_iter().flat_map(|o| registers(o)));
            }
            guards.extend(s.guard.as_ref().map(|g| g.register.as_str()));
        }
        let close = |mut open: Vec<&'a str>| {
            let mut closed = BTreeSet::new();
            while let Some(register) = open.pop() {
                if closed.insert(register) {
                    let sources = definitions.get(register).into_iter().flatten();
                    // The result of a load is data; its address is an address use already.
                    open.extend(sources.filter(|s| s.addresses().next().is_none()).flat_map(|s| s.reads()));
                }
            }
            closed
        };
        let (address, descriptor) = (close(addresses), close(described));
        Slices { address, descriptor, phase: phases.into_iter().collect(), control: close(guards), users }
    }

    /// Whether the statement computes part of an address.
    pub fn feeds_address(&self, s: &Statement) -> bool {
        s.writes().iter().any(|r| self.address.contains(r))
    }

    /// Whether the statement computes part of a matrix descriptor.
    pub fn feeds_descriptor(&self, s: &Statement) -> bool {
        s.writes().iter().any(|r| self.descriptor.contains(r))
    }

    /// Whether the statement writes a parity that a wait names.
    pub fn writes_phase(&self, s: &Statement) -> bool {
        s.writes().iter().any(|r| self.phase.contains(r))
    }

    /// Whether the statement computes part of a guard.
    pub fn feeds_guard(&self, s: &Statement) -> bool {
        s.writes().iter().any(|r| self.control.contains(r))
    }

    /// Whether what the statement writes is only read by instructions of this root.
    pub fn only_for(&self, s: &Statement, root: &str) -> bool {
        let written = s.writes();
        let for_root = |r: &&str| self.users.get(*r).is_some_and(|u| u.len() == 1 && u.contains(root));
        !written.is_empty() && written.iter().all(for_root)
    }
}
