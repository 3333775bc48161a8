//! Building the instruction list: nested regions, value numbering, hoisting.
//!
//! Code is emitted into a stack of *frames*: the kernel, and one for each loop or branch being built. A pure
//! instruction goes to the end of the outermost frame in which all its operands are defined, and is reused when the
//! same instruction is requested again. So addresses, predicates and constants of a loop body are computed once, in
//! front of the loop, without a separate analysis. In loops with high register pressure, values that only a branch
//! needs stay in the branch. Registers that are written more than once are *mutable*: instructions on them stay where
//! they are and are not shared.

use super::value_numbering::{Key, Known};
use crate::inst::{AddrBase, Class, Guard, Inst, Label, Operand, Reg};
use crate::module::{Function, Item};
use crate::ops::Op;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, PrimaryMap};
use tilec_ir::entities::Stmt;

/// One open region.
struct Frame {
    items: Vec<Item>,
    /// Its number in the order of opening, unique in the function.
    number: u32,
    /// Whether pure instructions stay in it: a side of a branch.
    keeps: bool,
}

/// Where a register is defined.
#[derive(Clone, Copy, Default)]
struct Def {
    depth: usize,
    /// The number of the frame at this depth.
    frame: u32,
    mutable: bool,
}

/// The instruction list under construction.
pub(super) struct Emit {
    pub(super) func: Function,
    frames: Vec<Frame>,
    defs: PrimaryMap<Reg, Def>,
    known: Known,
    /// Frames opened so far.
    opened: u32,
    /// The outermost frame to which pure instructions are hoisted: the frame of the role being built, whose warps have
    /// their own registers.
    floor: usize,
    /// The statement that the instructions implement.
    pub(super) origin: PackedOption<Stmt>,
}

impl Emit {
    pub(super) fn new(func: Function) -> Emit {
        Emit {
            func,
            frames: vec![Frame { items: Vec::new(), number: 0, keeps: false }],
            defs: PrimaryMap::new(),
            known: Known::default(),
            opened: 1,
            floor: 0,
            origin: None.into(),
        }
    }

    /// The number of open frames minus one: 0 in the kernel's own frame.
    pub(super) fn depth(&self) -> usize {
        self.frames.len() - 1
    }

    pub(super) fn push_frame(&mut self) {
        self.open(false);
    }

    /// Opens the frame of a branch's side that keeps its pure instructions. In front of the surrounding loop, their
    /// results would occupy registers for the whole loop.
    pub(super) fn push_side(&mut self) {
        self.open(true);
    }

    /// Whether pure instructions stay in the innermost frame.
    pub(super) fn keeps(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.keeps)
    }

    fn open(&mut self, keeps: bool) {
        self.frames.push(Frame { items: Vec::new(), number: self.opened, keeps });
        self.opened += 1;
    }

    /// Closes the innermost frame. Results computed in it are not shared any more.
    pub(super) fn pop_frame(&mut self) -> Vec<Item> {
        self.frames.pop().map_or_else(Vec::new, |f| f.items)
    }

    /// Initialises to zero the registers that are read but never written, such as those of a tile that only a loop
    /// without iterations fills.
    pub(super) fn define_unwritten(&mut self) {
        const WRITTEN: u8 = 1;
        const READ: u8 = 2;
        let mut seen = vec![0u8; self.func.regs.len()];
        for item in self.frames.iter().flat_map(|f| &f.items) {
            let Item::Inst(inst) = item else { continue };
            let n_dsts = inst.op.signature().dsts.len();
            for (i, operand) in inst.operands.iter().enumerate() {
                let how = if i < n_dsts { WRITTEN } else { READ };
                match operand {
                    Operand::Reg(r) | Operand::NotPred(r) | Operand::Elected(r) => seen[r.index()] |= how,
                    Operand::Vec(regs) => regs.iter().for_each(|&r| seen[r.index()] |= how),
                    _ => {}
                }
            }
        }
        let mut zeros = Vec::new();
        for (r, &class) in self.func.regs.iter().filter(|(r, _)| seen[r.index()] == READ) {
            zeros.extend(zero_of(class, r).map(Item::Inst));
        }
        if let Some(first) = self.frames.first_mut() {
            first.items.splice(0..0, zeros);
        }
    }

    /// Ends the function.
    pub(super) fn finish(mut self) -> Function {
        debug_assert_eq!(self.frames.len(), 1, "every frame is closed");
        self.func.body = self.frames.pop().map_or_else(Vec::new, |f| f.items);
        self.func
    }

    fn here(&mut self) -> &mut Vec<Item> {
        &mut self.frames.last_mut().expect("the kernel's frame is never closed before the end").items
    }

    pub(super) fn item(&mut self, item: Item) {
        let item = self.with_origin(item);
        self.here().push(item);
    }

    /// Marks an instruction with the statement that is being lowered.
    fn with_origin(&self, mut item: Item) -> Item {
        if let Item::Inst(inst) = &mut item {
            inst.origin = self.origin;
        }
        item
    }

    /// Appends what a frame held. Allocation takes most of the time here, so the longer of the two lists is kept.
    pub(super) fn items(&mut self, mut items: Vec<Item>) {
        let here = self.here();
        if here.len() < items.len() {
            items.splice(0..0, here.drain(..));
            *here = items;
        } else {
            here.append(&mut items);
        }
    }

    /// Appends to the frame at `depth`.
    pub(super) fn item_at(&mut self, depth: usize, item: Item) {
        let item = self.with_origin(item);
        self.frames[depth].items.push(item);
    }

    pub(super) fn comment(&mut self, text: impl Into<String>) {
        self.item(Item::Comment(text.into()));
    }

    pub(super) fn label(&mut self, name: &str) -> Label {
        let taken = |n: &str, f: &Function| f.labels.values().any(|l| l == n);
        let mut unique = name.to_owned();
        let mut i = 1;
        while taken(&unique, &self.func) {
            i += 1;
            unique = format!("{name}_{i}");
        }
        self.func.labels.push(unique)
    }

    /// A register of this frame that the caller writes once.
    pub(super) fn reg(&mut self, class: Class) -> Reg {
        let depth = self.depth();
        self.reg_at(class, depth, false)
    }

    /// A register that is written more than once.
    pub(super) fn mutable(&mut self, class: Class) -> Reg {
        let depth = self.depth();
        self.reg_at(class, depth, true)
    }

    pub(super) fn reg_at(&mut self, class: Class, depth: usize, mutable: bool) -> Reg {
        let reg = self.func.regs.push(class);
        // A loop's index belongs to the frame that will be opened next.
        let frame = self.frames.get(depth).map_or(self.opened, |frame| frame.number);
        let known = self.defs.push(Def { depth, frame, mutable });
        debug_assert_eq!(reg, known, "every register of the function is made here");
        reg
    }

    /// A register that changes only at the end of the loop whose frame is open, such as its index: values computed from
    /// it are shared within the iteration.
    pub(super) fn loop_carried(&mut self, class: Class, depth: usize) -> Reg {
        self.reg_at(class, depth, false)
    }

    /// The depth at which an operand is available.
    pub(super) fn depth_of(&self, reg: Reg) -> usize {
        self.defs[reg].depth
    }

    /// An instruction at the current place.
    pub(super) fn push(&mut self, op: Op, operands: impl Into<Vec<Operand>>) {
        self.item(Item::Inst(Inst::new(op, None, operands)));
    }

    /// A guarded instruction at the current place.
    pub(super) fn push_if(&mut self, guard: Option<Guard>, op: Op, operands: impl Into<Vec<Operand>>) {
        self.item(Item::Inst(Inst::new(op, guard, operands)));
    }

    /// An instruction at the current place into a fresh register.
    pub(super) fn def(&mut self, class: Class, op: Op, srcs: impl AsRef<[Operand]>) -> Reg {
        let dst = self.reg(class);
        self.push(op, with_destination(dst, srcs.as_ref()));
        dst
    }

    /// Opens the frame of a role, which keeps its pure instructions. In front of the roles, their results would occupy
    /// registers of all roles.
    pub(super) fn push_role(&mut self) {
        self.push_frame();
        self.floor = self.depth();
    }

    /// Closes the frame of a role.
    pub(super) fn pop_role(&mut self) -> Vec<Item> {
        self.floor = 0;
        self.pop_frame()
    }

    /// Stops sharing earlier results with what follows.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// A pure instruction: hoisted as far as its operands allow, and shared with equal ones.
    pub(super) fn pure(&mut self, class: Class, op: Op, srcs: impl AsRef<[Operand]>) -> Reg {
        self.pure_of(class, op, srcs.as_ref(), None)
    }

    /// A load from memory that does not change, if the predicate holds; else zero. It is as pure as others.
    pub(super) fn pure_load_if(&mut self, inside: Option<Reg>, class: Class, op: Op, from: Operand) -> Reg {
        self.pure_of(class, op, &[from], inside)
    }

    fn pure_of(&mut self, class: Class, op: Op, srcs: &[Operand], guard: Option<Reg>) -> Reg {
        let mut depth = self.floor;
        let mut mutable = false;
        let defs = &self.defs;
        let mut see = |reg: Reg| {
            depth = depth.max(defs[reg].depth);
            mutable |= defs[reg].mutable;
            reg
        };
        self.known.begin(op);
        let mut shared = true;
        for src in srcs {
            let key = match src {
                Operand::Reg(r) => Key::Reg(see(*r)),
                Operand::NotPred(r) => Key::NotPred(see(*r)),
                Operand::Imm(x) => Key::Imm(*x),
                Operand::F32(x) => Key::F32(x.to_bits()),
                Operand::F64(x) => Key::F64(x.to_bits()),
                Operand::Vec(regs) => {
                    regs.iter().for_each(|&r| self.known.operand(Key::Element(see(r))));
                    Key::End
                }
                Operand::Special(s) => Key::Special(*s),
                Operand::SharedSym(i) => Key::Shared(*i),
                Operand::Addr { base: AddrBase::Param(i), offset } => Key::Param(*i, *offset),
                // A load from memory that does not change.
                Operand::Addr { base: AddrBase::Reg(r), offset } => Key::At(see(*r), *offset),
                Operand::ParamSym(i) => Key::ParamSym(*i),
                Operand::ConstSym(i) => Key::ConstSym(*i),
                Operand::Addr { .. }
                | Operand::Label(_)
                | Operand::Elected(_)
                | Operand::Sink
                | Operand::Columns(_)
                | Operand::Tensor { .. } => {
                    shared = false;
                    break;
                }
            };
            self.known.operand(key);
        }
        if let Some(guard) = guard {
            self.known.operand(Key::Reg(see(guard)));
        }
        if mutable || !shared {
            let dst = self.reg(class);
            self.guarded_at(self.depth(), guard, op, dst, srcs);
            return dst;
        }
        let (defs, frames) = (&self.defs, &self.frames);
        let open = |reg: Reg| frames.get(defs[reg].depth).is_some_and(|frame| frame.number == defs[reg].frame);
        if let Some(reg) = self.known.find(open) {
            return reg;
        }
        let kept = frames.iter().rev().take_while(|frame| frame.keeps).count();
        let depth = if kept > 0 { depth.max(frames.len() - kept) } else { depth };
        let dst = self.reg_at(class, depth, false);
        self.known.insert(dst);
        self.guarded_at(depth, guard, op, dst, srcs);
        dst
    }

    /// Appends an instruction to the frame at `depth`. Where its guard does not hold, the result is zero.
    fn guarded_at(&mut self, depth: usize, guard: Option<Reg>, op: Op, dst: Reg, srcs: &[Operand]) {
        if guard.is_some()
            && let Some(zero) = zero_of(self.func.regs[dst], dst)
        {
            self.item_at(depth, Item::Inst(zero));
        }
        let guard = guard.map(|reg| Guard { reg, negated: false });
        self.item_at(depth, Item::Inst(Inst::new(op, guard, with_destination(dst, srcs))));
    }

    /// The current value of a register, in a register that does not change.
    pub(super) fn immutable_copy(&mut self, reg: Reg) -> Reg {
        self.immutable_copy_at(self.depth(), reg)
    }

    /// The value of a register at the end of the frame at `depth`, in a register that does not change.
    pub(super) fn immutable_copy_at(&mut self, depth: usize, reg: Reg) -> Reg {
        if !self.defs[reg].mutable {
            return reg;
        }
        let class = self.func.regs[reg];
        let copy = match class {
            Class::B16 => Op::MovB16,
            Class::B32 => Op::MovB32,
            Class::B64 => Op::MovB64,
            Class::F32 => Op::MovF32,
            Class::F64 => Op::MovF64,
            Class::Pred => panic!("bug: a predicate is made once"),
        };
        let dst = self.reg_at(class, depth, false);
        self.item_at(depth, Item::Inst(Inst::new(copy, None, vec![dst.into(), reg.into()])));
        dst
    }

    /// A conjunction of predicates; `None` is true.
    pub(super) fn and(&mut self, a: Option<Reg>, b: Option<Reg>) -> Option<Reg> {
        match (a, b) {
            (Some(a), Some(b)) if a != b => Some(self.pure(Class::Pred, Op::AndPred, [a.into(), b.into()])),
            (a, b) => a.or(b),
        }
    }
}

/// Makes a register zero; predicates have no such instruction.
pub(super) fn zero_of(class: Class, r: Reg) -> Option<Inst> {
    let (op, zero) = match class {
        Class::B16 => (Op::MovB16, Operand::Imm(0)),
        Class::B32 => (Op::MovB32, Operand::Imm(0)),
        Class::B64 => (Op::MovB64, Operand::Imm(0)),
        Class::F32 => (Op::MovF32, Operand::F32(0.0)),
        Class::F64 => (Op::MovF64, Operand::F64(0.0)),
        Class::Pred => return None,
    };
    Some(Inst::new(op, None, vec![r.into(), zero]))
}

/// The operands of an instruction with one destination.
fn with_destination(dst: Reg, srcs: &[Operand]) -> Vec<Operand> {
    let mut operands = Vec::with_capacity(1 + srcs.len());
    operands.push(Operand::Reg(dst));
    operands.extend_from_slice(srcs);
    operands
}
