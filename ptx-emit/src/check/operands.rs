//! Checks the operands of one instruction against its row.

use super::errors::Errors;
use crate::inst::{AddrBase, Class, Inst, Operand, Reg};
use crate::module::{Function, Module};
use crate::ops::{Kind, Space};
use std::fmt;

/// Load and store instructions hold a signed 24-bit offset; more would cost an addition.
const OFFSET_RANGE: std::ops::RangeInclusive<i64> = -0x80_0000..=0x7f_ffff;

/// Where in the instruction; formatted only into a message.
#[derive(Clone, Copy)]
enum Position {
    Guard,
    /// By index from 0, printed from 1.
    Operand(usize),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Guard => f.write_str("the guard"),
            Position::Operand(index) => write!(f, "operand {}", index + 1),
        }
    }
}

pub(super) fn check_inst(module: &Module, func: &Function, inst: &Inst, errors: &mut Errors) {
    if !module.target.has(inst.op.min_sm()) {
        errors.push(format!("needs `{}`, the target is `{}`", inst.op.min_sm(), module.target));
    }
    if let Some(guard) = inst.guard {
        check_reg(func, Position::Guard, guard.reg, Class::Pred, errors);
    }
    let signature = inst.op.signature();
    if inst.operands.len() != signature.arity() {
        errors.push(format!("has {} operands, expected {}", inst.operands.len(), signature.arity()));
        return;
    }
    // The number of accumulator registers is known only if the column count is legal; an illegal count is itself the
    // error.
    let columns = inst.columns().filter(|n| signature.columns().is_some_and(|legal| legal.contains(n)));
    let (dsts, srcs) = inst.operands.split_at(signature.dsts.len());
    let halves = [(dsts, signature.dsts, 0), (srcs, signature.srcs, dsts.len())];
    for (operands, kinds, before) in halves {
        for (index, (operand, &kind)) in operands.iter().zip(kinds).enumerate() {
            // Most operands are registers of the right class.
            if let (Operand::Reg(reg), Kind::Reg(class) | Kind::RegOrImm(class)) = (operand, kind)
                && func.regs.get(*reg) == Some(&class)
            {
                continue;
            }
            let kind = columns.map_or(kind, |n| kind.with_columns(n));
            check_operand(module, func, Position::Operand(before + index), operand, kind, errors);
        }
    }
}

fn check_reg(func: &Function, what: Position, reg: Reg, class: Class, errors: &mut Errors) {
    match func.regs.get(reg) {
        None => errors.push(format!("{what} `{reg}` is not a register of the function")),
        Some(&found) if found != class => {
            errors.push(format!("{what} `{reg}` is `{}`, expected `{}`", found.decl(), class.decl()));
        }
        Some(_) => {}
    }
}

/// Checks an operand against the kind that its row has at this position.
fn check_operand(module: &Module, func: &Function, what: Position, operand: &Operand, kind: Kind, errors: &mut Errors) {
    let fits = match (kind, operand) {
        (Kind::Reg(class) | Kind::RegOrImm(class), Operand::Reg(reg)) => {
            check_reg(func, what, *reg, class, errors);
            true
        }
        (
            Kind::Reg(_)
            | Kind::PredOrNot
            | Kind::Vec(..)
            | Kind::Sums(..)
            | Kind::Elected
            | Kind::Tensor(_)
            | Kind::TensorMap,
            _,
        ) => check_registers(func, what, operand, kind, errors),
        (Kind::RegOrImm(_) | Kind::Range(..) | Kind::OneOf(_) | Kind::Columns(_), _) => {
            check_literal(what, operand, kind, errors)
        }
        (
            Kind::Addr(..)
            | Kind::Special(_)
            | Kind::SharedSym
            | Kind::ParamSym
            | Kind::ConstSym
            | Kind::Label
            | Kind::Sink,
            _,
        ) => check_symbol(module, func, what, operand, kind, errors),
    };
    if !fits {
        mismatch(what, operand, kind, errors);
    }
}

/// Checks an operand made of registers. The result says whether the operand is of that kind.
fn check_registers(func: &Function, what: Position, operand: &Operand, kind: Kind, errors: &mut Errors) -> bool {
    match (kind, operand) {
        (Kind::PredOrNot, Operand::Reg(reg) | Operand::NotPred(reg)) => {
            check_reg(func, what, *reg, Class::Pred, errors);
        }
        (Kind::Vec(lanes, class), Operand::Vec(regs)) => {
            if regs.len() != usize::from(lanes) {
                errors.push(format!("{what} has {} registers, expected {lanes}", regs.len()));
            }
            for &reg in regs {
                check_reg(func, what, reg, class, errors);
            }
        }
        (Kind::Sums(_, class), Operand::Vec(regs)) => {
            for &reg in regs {
                check_reg(func, what, reg, class, errors);
            }
        }
        (Kind::Elected, Operand::Elected(reg)) => check_reg(func, what, *reg, Class::Pred, errors),
        (Kind::TensorMap, Operand::Tensor { map, at }) if at.is_empty() => {
            check_reg(func, what, *map, Class::B64, errors);
        }
        (Kind::Tensor(rank), Operand::Tensor { map, at }) => {
            if at.len() != usize::from(rank) {
                errors.push(format!("{what} has {} coordinates, expected {rank}", at.len()));
            }
            check_reg(func, what, *map, Class::B64, errors);
            for &reg in at {
                check_reg(func, what, reg, Class::B32, errors);
            }
        }
        _ => return false,
    }
    true
}

/// Checks a literal. The result says whether the operand is a literal of that kind.
fn check_literal(what: Position, operand: &Operand, kind: Kind, errors: &mut Errors) -> bool {
    match (kind, operand) {
        (Kind::RegOrImm(Class::F32), Operand::F32(_)) | (Kind::RegOrImm(Class::F64), Operand::F64(_)) => {}
        (Kind::RegOrImm(class), Operand::Imm(value)) => {
            let Some((min, max)) = literal_range(class) else { return false };
            if !(min..=max).contains(value) {
                errors.push(format!("{what} is {value}, which `{}` cannot hold", class.decl()));
            }
        }
        (Kind::Range(min, max), Operand::Imm(value)) => {
            if !(min..=max).contains(value) {
                errors.push(format!("{what} is {value}, expected {min} to {max}"));
            }
        }
        (Kind::OneOf(values), Operand::Imm(value)) => {
            if !values.contains(value) {
                errors.push(format!("{what} is {value}, expected one of {values:?}"));
            }
        }
        (Kind::Columns(counts), Operand::Columns(n)) => {
            if !counts.contains(n) {
                errors.push(format!("{what} is {n} columns, expected one of {counts:?}"));
            }
        }
        _ => return false,
    }
    true
}

/// Checks an address or a symbol. The result says whether the operand is of that kind.
fn check_symbol(
    module: &Module,
    func: &Function,
    what: Position,
    operand: &Operand,
    kind: Kind,
    errors: &mut Errors,
) -> bool {
    match (kind, operand) {
        (Kind::Addr(space, bytes), Operand::Addr { base, offset }) => {
            check_addr(func, what, (space, bytes), (*base, *offset), errors);
        }
        (Kind::Special(class), Operand::Special(special)) if special.class() == class => {
            if !module.target.has(special.min_sm()) {
                errors.push(format!(
                    "`{}` needs `{}`, the target is `{}`",
                    special.text(),
                    special.min_sm(),
                    module.target
                ));
            }
        }
        (Kind::SharedSym, Operand::SharedSym(index)) => {
            if shared(func, *index).is_none() {
                errors.push(format!("{what} is shared array {index}, which does not exist"));
            }
        }
        (Kind::ParamSym, Operand::ParamSym(index)) => {
            if func.params.get(*index as usize).is_none() {
                errors.push(format!("{what} is parameter {index}, which does not exist"));
            }
        }
        (Kind::ConstSym, Operand::ConstSym(index)) => {
            if func.tables.get(*index as usize).is_none() {
                errors.push(format!("{what} is table {index}, which does not exist"));
            }
        }
        (Kind::Label, Operand::Label(label)) => {
            if !func.labels.is_valid(*label) {
                errors.push(format!("{what} `{label}` is not a label of the function"));
            }
        }
        (Kind::Sink, Operand::Sink) => {}
        _ => return false,
    }
    true
}

/// The integer literals a class holds, signed or unsigned; `None` for classes without integer literals.
fn literal_range(class: Class) -> Option<(i64, i64)> {
    match class {
        Class::B16 => Some((i64::from(i16::MIN), i64::from(u16::MAX))),
        Class::B32 => Some((i64::from(i32::MIN), i64::from(u32::MAX))),
        Class::B64 => Some((i64::MIN, i64::MAX)),
        Class::Pred | Class::F32 | Class::F64 => None,
    }
}

fn mismatch(what: Position, operand: &Operand, kind: Kind, errors: &mut Errors) {
    let found = match operand {
        Operand::Reg(_) => "a register",
        Operand::NotPred(_) => "a complemented predicate",
        Operand::Imm(_) => "an integer literal",
        Operand::F32(_) => "an f32 literal",
        Operand::F64(_) => "an f64 literal",
        Operand::Vec(_) => "a vector",
        Operand::Columns(_) => "a count of columns",
        Operand::Addr { .. } => "an address",
        Operand::Special(_) => "a special register",
        Operand::Label(_) => "a label",
        Operand::SharedSym(_) => "a shared array",
        Operand::ParamSym(_) => "a parameter",
        Operand::ConstSym(_) => "a table",
        Operand::Elected(_) => "a predicate after a value",
        Operand::Sink => "no value",
        Operand::Tensor { .. } => "a tensor map",
    };
    let expected = match kind {
        Kind::Reg(class) => format!("a `{}` register", class.decl()),
        Kind::RegOrImm(class) => format!("a `{0}` register or literal", class.decl()),
        Kind::Vec(lanes, class) => format!("{lanes} `{}` registers in braces", class.decl()),
        Kind::Columns(counts) => format!("a count of columns, one of {counts:?}"),
        Kind::Sums(_, class) => format!("`{}` registers in braces", class.decl()),
        Kind::PredOrNot => "a predicate or its complement".to_string(),
        Kind::Range(min, max) => format!("a literal from {min} to {max}"),
        Kind::OneOf(values) => format!("one of the literals {values:?}"),
        Kind::Addr(space, _) => format!("an address in {} memory", space_name(space)),
        Kind::Special(class) => format!("a `{}` special register", class.decl()),
        Kind::SharedSym => "a shared array".to_string(),
        Kind::ParamSym => "a parameter".to_string(),
        Kind::ConstSym => "a table".to_string(),
        Kind::Elected => "a predicate after an unused value".to_string(),
        Kind::Sink => "`_`".to_string(),
        Kind::Tensor(rank) => format!("a tensor map with {rank} coordinates"),
        Kind::TensorMap => "a tensor map without coordinates".to_string(),
        Kind::Label => "a label".to_string(),
    };
    errors.push(format!("{what} is {found}, expected {expected}"));
}

fn space_name(space: Space) -> &'static str {
    match space {
        Space::Param => "parameter",
        Space::Global => "global",
        Space::Shared => "shared",
        Space::Const => "constant",
    }
}

fn shared(func: &Function, index: u32) -> Option<&crate::module::SharedDecl> {
    func.shared.get(usize::try_from(index).ok()?)
}

fn check_addr(
    func: &Function,
    what: Position,
    (space, bytes): (Space, u32),
    (base, offset): (AddrBase, i64),
    errors: &mut Errors,
) {
    if !OFFSET_RANGE.contains(&offset) {
        errors.push(format!("{what} has offset {offset}, which 24 bits cannot hold"));
        return;
    }
    match (space, base) {
        (Space::Global | Space::Const, AddrBase::Reg(reg)) => check_reg(func, what, reg, Class::B64, errors),
        (Space::Shared, AddrBase::Reg(reg)) => check_reg(func, what, reg, Class::B32, errors),
        (Space::Param, AddrBase::Param(index)) => {
            match usize::try_from(index).ok().and_then(|index| func.params.get(index)) {
                None => errors.push(format!("{what} is parameter {index}, which does not exist")),
                Some(param) => {
                    let (size, align) = (param.ty.bytes(), param.own_align());
                    check_constant(what, offset, bytes, Symbol { size, align }, errors);
                }
            }
        }
        (Space::Shared, AddrBase::Shared(index)) => match shared(func, index) {
            None => errors.push(format!("{what} is shared array {index}, which does not exist")),
            Some(decl) => {
                let (size, align) = (decl.bytes, decl.align);
                check_constant(what, offset, bytes, Symbol { size, align }, errors);
            }
        },
        (Space::Param | Space::Global | Space::Shared | Space::Const, _) => {
            let found = match base {
                AddrBase::Reg(_) => "a register",
                AddrBase::Param(_) => "a parameter",
                AddrBase::Shared(_) => "a shared array",
            };
            errors.push(format!("{what} is based on {found}, which is no {} address", space_name(space)));
        }
    }
}

/// Size and alignment, in bytes, of the symbol that a constant address points into.
struct Symbol {
    size: u32,
    align: u32,
}

fn check_constant(what: Position, offset: i64, bytes: u32, symbol: Symbol, errors: &mut Errors) {
    let bytes = i64::from(bytes);
    if offset < 0 || offset + bytes > i64::from(symbol.size) {
        errors.push(format!("{what} reaches bytes {offset}..{} of {}", offset + bytes, symbol.size));
    }
    if i64::from(symbol.align) % bytes != 0 {
        errors.push(format!("{what} is an access of {bytes} bytes to a symbol aligned to {}", symbol.align));
    } else if offset % bytes != 0 {
        errors.push(format!("{what} has offset {offset}, not a multiple of the {bytes} bytes accessed"));
    }
}
