//! Appending to a [`Function`].
//!
//! The builder makes no decisions: it allocates registers and labels, keeps label names unique, and pushes
//! items in the order of the calls.

use crate::inst::{Class, Guard, Inst, Label, Operand, Reg};
use crate::module::{ConstDecl, Function, Item, Param, SharedDecl};
use crate::ops::Op;
use std::collections::BTreeMap;

/// Appends to one function; [`FunctionBuilder::finish`] returns it.
#[derive(Debug)]
pub struct FunctionBuilder {
    func: Function,
    /// How many labels were requested under each name.
    label_uses: BTreeMap<String, u32>,
}

impl FunctionBuilder {
    /// Starts a kernel with this entry name.
    pub fn new(name: impl Into<String>) -> FunctionBuilder {
        FunctionBuilder { func: Function::new(name), label_uses: BTreeMap::new() }
    }

    /// Sets the largest block, threads in x, y, z.
    pub fn maxntid(&mut self, threads: [u32; 3]) {
        self.func.maxntid = threads;
    }

    /// Sets how many blocks must fit on one multiprocessor.
    pub fn minnctapersm(&mut self, blocks: u32) {
        self.func.minnctapersm = blocks;
    }

    /// Adds a parameter and returns its index.
    pub fn param(&mut self, param: Param) -> u32 {
        let index = u32::try_from(self.func.params.len()).expect("fewer than 2^32 parameters");
        self.func.params.push(param);
        index
    }

    /// Adds a shared array and returns its index.
    pub fn shared(&mut self, decl: SharedDecl) -> u32 {
        let index = u32::try_from(self.func.shared.len()).expect("fewer than 2^32 shared arrays");
        self.func.shared.push(decl);
        index
    }

    /// Adds a table in constant memory and returns its index.
    pub fn table(&mut self, decl: ConstDecl) -> u32 {
        let index = u32::try_from(self.func.tables.len()).expect("fewer than 2^32 tables");
        self.func.tables.push(decl);
        index
    }

    /// A fresh register.
    pub fn new_reg(&mut self, class: Class) -> Reg {
        self.func.regs.push(class)
    }

    /// `count` fresh registers.
    pub fn new_regs(&mut self, class: Class, count: usize) -> Vec<Reg> {
        (0..count).map(|_| self.new_reg(class)).collect()
    }

    /// The class of a register.
    pub fn class(&self, reg: Reg) -> Class {
        self.func.regs[reg]
    }

    /// Appends an instruction; operands in PTX order, destinations first.
    pub fn push(&mut self, op: Op, operands: impl Into<Vec<Operand>>) {
        self.push_guarded(None, op, operands);
    }

    /// Appends an instruction that runs where `guard` holds.
    pub fn push_guarded(&mut self, guard: Option<Guard>, op: Op, operands: impl Into<Vec<Operand>>) {
        self.func.body.push(Item::Inst(Inst::new(op, guard, operands)));
    }

    /// Appends an instruction whose single destination is a fresh register, and returns that register.
    pub fn def(&mut self, class: Class, op: Op, srcs: impl IntoIterator<Item = Operand>) -> Reg {
        let dst = self.new_reg(class);
        let operands: Vec<Operand> = std::iter::once(Operand::Reg(dst)).chain(srcs).collect();
        self.push(op, operands);
        dst
    }

    /// A fresh label. A name requested again gets `_2`, `_3`, ... appended.
    pub fn label(&mut self, name: &str) -> Label {
        let mut candidate = name.to_string();
        loop {
            let uses = self.label_uses.entry(candidate.clone()).or_insert(0);
            *uses += 1;
            if *uses == 1 {
                return self.func.labels.push(candidate);
            }
            // A numbered name may itself be a requested name; then it gets a number as well.
            candidate = format!("{candidate}_{uses}");
        }
    }

    /// Places a label here.
    pub fn bind(&mut self, label: Label) {
        self.func.body.push(Item::Label(label));
    }

    /// Appends a comment.
    pub fn comment(&mut self, text: impl Into<String>) {
        self.func.body.push(Item::Comment(text.into()));
    }

    /// States the source position of what follows.
    pub fn loc(&mut self, file: u32, line: u32, col: u32) {
        self.func.body.push(Item::Loc { file, line, col });
    }

    /// Appends a pragma.
    pub fn pragma(&mut self, text: &'static str) {
        self.func.body.push(Item::Pragma(text));
    }

    /// The function so far.
    pub fn func(&self) -> &Function {
        &self.func
    }

    /// The finished function.
    pub fn finish(self) -> Function {
        self.func
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_names_stay_unique_and_readable() {
        let mut b = FunctionBuilder::new("k");
        let labels = ["loop", "loop_2", "loop", "loop"].map(|name| b.label(name));
        let func = b.finish();
        let names: Vec<&str> = labels.iter().map(|&l| func.labels[l].as_str()).collect();
        assert_eq!(names, ["loop", "loop_2", "loop_2_2", "loop_3"]);
    }
}
