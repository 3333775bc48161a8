//! The variables of a module in global and constant memory.

use super::scope::Var;
use crate::parse::error::Result;
use crate::parse::raw::{RawAddress, RawModule, RawValue, RawVar};
use crate::program::ModuleVar;
use crate::program::types::Space;

const MAX_CONST: u64 = 64 << 10;
const MAX_GLOBAL: u64 = 1 << 30;

/// The variables of a module in global and constant memory, with their initial values.
pub(super) struct Globals<'m, 'a> {
    raw: &'m RawModule<'a>,
    pub(super) vars: Vec<ModuleVar>,
    total: u64,
    constants: u64,
}

impl<'m, 'a> Globals<'m, 'a> {
    pub(super) fn new(raw: &'m RawModule<'a>) -> Globals<'m, 'a> {
        Globals { raw, vars: Vec::new(), total: 0, constants: 0 }
    }

    /// Gives a variable its address; `find`: the variables that its initial values may name.
    pub(super) fn place(&mut self, var: &RawVar<'_>, find: impl Fn(&str) -> Option<Var>) -> Result<u64> {
        let (bytes, constant) = (var.bytes.unwrap_or(0), var.space == Space::Const);
        self.total = self.total.saturating_add(bytes);
        self.constants = self.constants.saturating_add(if constant { bytes } else { 0 });
        if self.total > MAX_GLOBAL {
            return Err(var.pos.limit("the variables of the module are too large"));
        }
        if self.constants > MAX_CONST {
            return Err(var.pos.error(format!("the constants of the module have more than {MAX_CONST} bytes")));
        }
        let address = crate::memory::module_address(self.vars.len());
        let mut init = Vec::with_capacity(var.init.len());
        for part in &var.init {
            let value = match &part.value {
                RawValue::Bytes(bytes) => bytes.clone(),
                RawValue::Address(of) => of.encode(self.address(of, find(of.name))?),
            };
            init.push((part.at, value));
        }
        self.vars.push(ModuleVar { name: var.name.to_owned(), address, bytes, init, constant });
        Ok(address)
    }

    /// The address of the variable that an initial value names.
    fn address(&self, of: &RawAddress<'_>, found: Option<Var>) -> Result<u64> {
        let name = of.name;
        match found {
            Some(Var { at, space: Space::Global | Space::Const, .. }) => Ok(at),
            Some(Var { space, .. }) => {
                let message = format!("`{name}` is in {space:?} memory, where it has no address before the launch");
                Err(of.pos.error(message))
            }
            None if self.raw.funcs.iter().any(|f| f.name == name)
                || self.raw.entries.iter().any(|e| e.name == name) =>
            {
                Err(of.pos.limit(format!("`{name}` is code: calls through a pointer are not supported")))
            }
            None => Err(of.pos.error(format!("`{name}` is no variable that is declared further up"))),
        }
    }
}
