//! The syntax of a module before names and opcodes mean anything.

use super::lex::Pos;
use crate::program::types::{Space, Spot, Ty};

/// An operand as written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RawArg<'a> {
    /// A register, variable or label.
    Name(&'a str, Pos),
    /// `!%p`.
    Not(&'a str, Pos),
    /// `-%r`, perhaps with a selector.
    Negated(&'a str, &'a str, Pos),
    /// `%tid.x`.
    Dotted(&'a str, &'a str, Pos),
    /// `_`.
    Sink(Pos),
    /// An integer; the sign is already applied.
    Int(u64, Pos),
    /// `0f` bits.
    F32(u32, Pos),
    /// `0d` bits.
    F64(u64, Pos),
    /// `var + 4` outside brackets.
    Sum(&'a str, i64, Pos),
    /// `%p|%q`.
    Pair(Box<RawArg<'a>>, Box<RawArg<'a>>, Pos),
    /// `{a, b}`.
    Vector(Vec<RawArg<'a>>, Pos),
    /// `(a, b)`: the operands or results of a call.
    List(Vec<RawArg<'a>>, Pos),
    /// `[base + offset]`; without base, an absolute address.
    Memory(Option<&'a str>, i64, Pos),
    /// `[map + offset, {x, y}]`: a place in a tensor.
    Tensor(&'a str, i64, Vec<RawArg<'a>>, Pos),
}

impl RawArg<'_> {
    /// Where it starts.
    pub(crate) fn pos(&self) -> Pos {
        match self {
            RawArg::Name(_, p)
            | RawArg::Not(_, p)
            | RawArg::Negated(_, _, p)
            | RawArg::Dotted(_, _, p)
            | RawArg::Sink(p)
            | RawArg::Int(_, p)
            | RawArg::F32(_, p)
            | RawArg::F64(_, p)
            | RawArg::Sum(_, _, p)
            | RawArg::Pair(_, _, p)
            | RawArg::Vector(_, p)
            | RawArg::List(_, p)
            | RawArg::Memory(_, _, p)
            | RawArg::Tensor(_, _, _, p) => *p,
        }
    }
}

/// An instruction as written.
#[derive(Clone, Debug)]
pub(crate) struct RawInst<'a> {
    /// `@p` or `@!p`.
    pub(crate) guard: Option<(&'a str, bool, Pos)>,
    pub(crate) op: &'a str,
    pub(crate) words: Vec<&'a str>,
    pub(crate) args: Vec<RawArg<'a>>,
    pub(crate) pos: Pos,
    /// Its semicolon.
    pub(crate) end: Pos,
    /// `.loc`: file, line.
    pub(crate) loc: (u32, u32),
}

impl RawInst<'_> {
    /// Where it stands.
    pub(crate) fn spot(&self) -> Spot {
        let end = if self.end.line == self.pos.line { self.end.col.saturating_add(1) } else { u32::MAX };
        Spot { line: self.pos.line, columns: [self.pos.col, end], loc: self.loc }
    }

    /// Opcode with modifiers.
    pub(crate) fn name(&self) -> String {
        let mut name = self.op.to_owned();
        for word in &self.words {
            name.push('.');
            name.push_str(word);
        }
        name
    }
}

/// A register declaration: `name` alone, or `name0 .. name(count-1)`.
#[derive(Clone, Debug)]
pub(crate) struct RawReg<'a> {
    pub(crate) ty: Ty,
    /// 2 or 4 of `.v2` and `.v4`: `name.x` to `name.w`.
    pub(crate) elements: u32,
    pub(crate) name: &'a str,
    pub(crate) count: Option<u32>,
    pub(crate) pos: Pos,
}

/// A variable in memory.
#[derive(Clone, Debug)]
pub(crate) struct RawVar<'a> {
    pub(crate) space: Space,
    pub(crate) name: &'a str,
    pub(crate) align: u64,
    /// `None`: an unsized `.extern .shared` array.
    pub(crate) bytes: Option<u64>,
    /// Initial values, in order and inside; everything else is zero.
    pub(crate) init: Vec<RawInit<'a>>,
    pub(crate) pos: Pos,
}

/// An initial value of a part of a variable.
#[derive(Clone, Debug)]
pub(crate) struct RawInit<'a> {
    /// Bytes from the start of the variable.
    pub(crate) at: u64,
    pub(crate) value: RawValue<'a>,
}

/// An initial value.
#[derive(Clone, Debug)]
pub(crate) enum RawValue<'a> {
    /// Values next to each other.
    Bytes(Vec<u8>),
    /// The address of a variable, or one of its bytes.
    Address(RawAddress<'a>),
}

/// `name + 4`, `generic(name)`, `0xFF00(name)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawAddress<'a> {
    pub(crate) name: &'a str,
    pub(crate) offset: i64,
    /// The byte of the address that a mask picks.
    pub(crate) byte: Option<u32>,
    /// Size of what holds it.
    pub(crate) bytes: u32,
    pub(crate) pos: Pos,
}

impl RawAddress<'_> {
    /// The initial bytes, once it is known where the variable is.
    pub(crate) fn encode(&self, variable: u64) -> Vec<u8> {
        let address = variable.wrapping_add_signed(self.offset);
        let value = self.byte.map_or(address, |byte| address >> (8 * byte) & 0xFF);
        value.to_le_bytes()[..self.bytes as usize].to_vec()
    }
}

/// A statement of a body.
#[derive(Clone, Debug)]
pub(crate) enum RawStmt<'a> {
    Inst(RawInst<'a>),
    Reg(RawReg<'a>),
    Var(RawVar<'a>),
    Label(&'a str, Pos),
    /// `.branchtargets` with its label.
    Targets(&'a str, Vec<(&'a str, Pos)>, Pos),
    Open,
    Close,
}

/// A kernel.
#[derive(Clone, Debug)]
pub(crate) struct RawEntry<'a> {
    pub(crate) name: &'a str,
    pub(crate) params: Vec<RawVar<'a>>,
    pub(crate) max_threads: Option<[u32; 3]>,
    pub(crate) required_threads: Option<[u32; 3]>,
    /// `.minnctapersm`, `.maxnreg`.
    pub(crate) min_blocks: Option<u32>,
    pub(crate) max_registers: Option<u32>,
    /// `.reqnctapercluster`, `.explicitcluster`, `.maxclusterrank`.
    pub(crate) cluster: Option<[u32; 3]>,
    pub(crate) explicit_cluster: bool,
    pub(crate) max_cluster_rank: Option<u32>,
    pub(crate) body: Vec<RawStmt<'a>>,
    pub(crate) pos: Pos,
}

/// A parameter or result of a function.
#[derive(Clone, Debug)]
pub(crate) enum RawFormal<'a> {
    /// `.param`
    Var(RawVar<'a>),
    /// `.reg`
    Reg(RawReg<'a>),
}

/// A function.
#[derive(Clone, Debug)]
pub(crate) struct RawFunc<'a> {
    pub(crate) name: &'a str,
    pub(crate) results: Vec<RawFormal<'a>>,
    pub(crate) params: Vec<RawFormal<'a>>,
    pub(crate) noreturn: bool,
    /// `None`: declared only.
    pub(crate) body: Option<Vec<RawStmt<'a>>>,
    pub(crate) pos: Pos,
}

/// Another name of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawAlias<'a> {
    pub(crate) name: &'a str,
    pub(crate) pos: Pos,
    pub(crate) of: &'a str,
    pub(crate) of_pos: Pos,
}

/// A module.
#[derive(Clone, Debug, Default)]
pub(crate) struct RawModule<'a> {
    pub(crate) version: (u32, u32),
    pub(crate) target: &'a str,
    pub(crate) files: Vec<(u32, &'a str)>,
    pub(crate) vars: Vec<RawVar<'a>>,
    pub(crate) entries: Vec<RawEntry<'a>>,
    pub(crate) funcs: Vec<RawFunc<'a>>,
    pub(crate) aliases: Vec<RawAlias<'a>>,
}
