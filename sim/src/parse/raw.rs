//! The syntax of a module before names and opcodes mean anything.

use super::lex::Pos;
use crate::program::Spot;

/// A scalar type (PTX 5.2); `Pred` is `.pred`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the variants are PTX's own type names")]
pub(crate) enum Ty {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    BF16,
    BF16x2,
    U16x2,
    S16x2,
    TF32,
    E4M3x2,
    E5M2x2,
    F32,
    F64,
}

impl Ty {
    /// The type a dotted word names.
    pub(crate) fn from_word(word: &str) -> Option<Ty> {
        Some(match word {
            "pred" => Ty::Pred,
            "b8" => Ty::B8,
            "b16" => Ty::B16,
            "b32" => Ty::B32,
            "b64" => Ty::B64,
            "b128" => Ty::B128,
            "u8" => Ty::U8,
            "u16" => Ty::U16,
            "u32" => Ty::U32,
            "u64" => Ty::U64,
            "s8" => Ty::S8,
            "s16" => Ty::S16,
            "s32" => Ty::S32,
            "s64" => Ty::S64,
            "f16" => Ty::F16,
            "f16x2" => Ty::F16x2,
            "bf16" => Ty::BF16,
            "bf16x2" => Ty::BF16x2,
            "u16x2" => Ty::U16x2,
            "s16x2" => Ty::S16x2,
            "tf32" => Ty::TF32,
            "e4m3" | "e5m2" => Ty::B8,
            "e4m3x2" => Ty::E4M3x2,
            "e5m2x2" => Ty::E5M2x2,
            "f32" => Ty::F32,
            "f64" => Ty::F64,
            _ => return None,
        })
    }

    /// Size of a value in memory, in bytes; a predicate has none.
    pub(crate) fn bytes(self) -> u32 {
        match self {
            Ty::Pred => 0,
            Ty::B8 | Ty::U8 | Ty::S8 => 1,
            Ty::B16 | Ty::U16 | Ty::S16 | Ty::F16 | Ty::BF16 | Ty::E4M3x2 | Ty::E5M2x2 => 2,
            Ty::B32 | Ty::U32 | Ty::S32 | Ty::F16x2 | Ty::BF16x2 | Ty::U16x2 | Ty::S16x2 | Ty::TF32 | Ty::F32 => 4,
            Ty::B64 | Ty::U64 | Ty::S64 | Ty::F64 => 8,
            Ty::B128 => 16,
        }
    }

    /// Whether arithmetic on it is signed.
    pub(crate) fn signed(self) -> bool {
        matches!(self, Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64)
    }

    /// Whether a register of type `reg` may hold an operand of this type of the same size (PTX 9.4.1, Table 26): integers,
    /// floats, and formats that only untyped registers hold, do not mix.
    pub(crate) fn agrees(self, reg: Ty) -> bool {
        #[derive(PartialEq)]
        enum Class {
            Bits,
            Int,
            Float,
            Packed,
            Pred,
        }
        let class = |t: Ty| match t {
            Ty::Pred => Class::Pred,
            Ty::U8 | Ty::U16 | Ty::U32 | Ty::U64 | Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64 => Class::Int,
            Ty::F16 | Ty::F32 | Ty::F64 => Class::Float,
            Ty::F16x2 | Ty::BF16 | Ty::BF16x2 | Ty::TF32 | Ty::E4M3x2 | Ty::E5M2x2 | Ty::U16x2 | Ty::S16x2 => {
                Class::Packed
            }
            Ty::B8 | Ty::B16 | Ty::B32 | Ty::B64 | Ty::B128 => Class::Bits,
        };
        let (a, b) = (class(self), class(reg));
        a == b || (a == Class::Bits && b != Class::Pred) || (b == Class::Bits && a != Class::Pred)
    }
}

/// State spaces of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are PTX's own state spaces")]
pub(crate) enum Space {
    Param,
    Shared,
    Global,
    Const,
    Local,
    /// Shared memory of any block of the cluster.
    Cluster,
}

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

/// What an initial value is.
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
