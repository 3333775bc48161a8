//! Modules, functions, and the items of function bodies.
//!
//! A [`Function`] is a kernel entry. Its body is a flat list, because PTX has no block structure. Items are printed in
//! order and never reordered.

use crate::inst::{Class, Inst, Label, Reg};
use crate::target::{Sm, Version};
use cranelift_entity::PrimaryMap;

/// A PTX module.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// Comment lines at the top of the file, without the slashes.
    pub header: Vec<String>,
    /// The `.version`; `None` requests the lowest that works (see [`crate::check::required_version`]).
    pub version: Option<Version>,
    /// The `.target`.
    pub target: Sm,
    /// Source files; [`Item::Loc`] refers to them by index from 0 (PTX counts from 1).
    pub files: Vec<String>,
    /// Kernel entries.
    pub functions: Vec<Function>,
}

impl Module {
    /// An empty module for a target, its version to be computed.
    pub fn new(target: Sm) -> Module {
        Module { header: vec![], version: None, target, files: vec![], functions: vec![] }
    }
}

/// A kernel entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The entry name.
    pub name: String,
    /// Kernel parameters in launch order.
    pub params: Vec<Param>,
    /// Virtual registers.
    pub regs: PrimaryMap<Reg, Class>,
    /// Label names, without the `$L_` that the printer puts in front; unique.
    pub labels: PrimaryMap<Label, String>,
    /// Threads per block, at most (`.maxntid`).
    pub maxntid: [u32; 3],
    /// Blocks of a cluster (`.reqnctapercluster`); `[1, 1, 1]`: none.
    pub cluster: [u32; 3],
    /// Blocks that must fit on one multiprocessor (`.minnctapersm`), at least 1.
    pub minnctapersm: u32,
    /// Shared arrays.
    pub shared: Vec<SharedDecl>,
    /// Tables in constant memory.
    pub tables: Vec<ConstDecl>,
    /// Instructions, labels, comments and positions in order.
    pub body: Vec<Item>,
}

impl Function {
    /// An empty kernel of one thread per block.
    pub fn new(name: impl Into<String>) -> Function {
        Function {
            name: name.into(),
            params: vec![],
            regs: PrimaryMap::new(),
            labels: PrimaryMap::new(),
            maxntid: [1, 1, 1],
            cluster: [1, 1, 1],
            minnctapersm: 1,
            shared: vec![],
            tables: vec![],
            body: vec![],
        }
    }
}

/// A kernel parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name, unique in the function.
    pub name: String,
    /// Its type.
    pub ty: ParamTy,
    /// Bytes. For [`ParamTy::GlobalPtr`] the alignment of the memory it points to, for every other type the
    /// alignment of the parameter itself; `None` is natural.
    pub align: Option<u32>,
}

impl Param {
    /// The alignment of the parameter itself in bytes; for a pointer, not that of its pointee.
    pub fn own_align(&self) -> u32 {
        match (self.ty, self.align) {
            (ParamTy::GlobalPtr, _) => 8,
            (_, Some(align)) => align,
            (ParamTy::Bytes(_), None) => 1,
            (scalar, None) => scalar.bytes(),
        }
    }
}

/// The type of a kernel parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamTy {
    /// `.b8`
    B8,
    /// `.b16`; also f16 and bf16.
    B16,
    /// `.u32`
    U32,
    /// `.s32`
    S32,
    /// `.u64`
    U64,
    /// `.s64`
    S64,
    /// `.f32`
    F32,
    /// `.f64`
    F64,
    /// `.u64 .ptr .global`: an address in global memory.
    GlobalPtr,
    /// `.b8 name[n]`: n bytes passed by value, such as a tensor map.
    Bytes(u32),
}

impl ParamTy {
    /// Size in bytes.
    pub fn bytes(self) -> u32 {
        match self {
            ParamTy::B8 => 1,
            ParamTy::B16 => 2,
            ParamTy::U32 | ParamTy::S32 | ParamTy::F32 => 4,
            ParamTy::U64 | ParamTy::S64 | ParamTy::F64 | ParamTy::GlobalPtr => 8,
            ParamTy::Bytes(n) => n,
        }
    }
}

/// A table in constant memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstDecl {
    /// Its name, unique in the module.
    pub name: String,
    /// Bits of an element: 32 or 64.
    pub bits: u32,
    /// The elements' bits.
    pub words: Vec<u64>,
}

/// A shared array of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedDecl {
    /// Its name: unique in the function if static; dynamic ones are module-wide.
    pub name: String,
    /// Alignment in bytes, a power of two.
    pub align: u32,
    /// Size in bytes; for a dynamic array, the size that the launch must provide.
    pub bytes: u32,
    /// Whether the size is given at launch (`.extern .shared name[]`).
    pub dynamic: bool,
}

/// One item of a function body.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// An instruction.
    Inst(Inst),
    /// A label; branches to it continue with the next item.
    Label(Label),
    /// A comment; each of its lines becomes one `//` line.
    Comment(String),
    /// The source position of what follows.
    Loc {
        /// Index into [`Module::files`], from 0.
        file: u32,
        /// Line, from 1.
        line: u32,
        /// Column, from 1.
        col: u32,
    },
    /// A `.pragma`, such as `nounroll` right after a loop's label.
    Pragma(&'static str),
}
