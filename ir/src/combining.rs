//! What memory combines by itself: `copy x -> C[i.., j..] add`, whoever else adds to the same elements meanwhile.
//!
//! Threads ask for it element by element (`red`, PTX ISA 9.7.13.6), the tensor memory accelerator by boxes (`cp.reduce.async.bulk.tensor`,
//! 9.7.9.27). A row says who can; a new one needs its instruction in the emitter's `lower/combine.rs` or `lower/tensor_store.rs`.

use crate::entities::Stmt;
use crate::kernel::{CopyAttrs, Kernel, StmtData};
use crate::ops::Op;
use crate::target::Target;
use crate::types::Elem;

/// An operator that memory applies to elements of a type.
#[derive(Copy, Clone, Debug)]
pub struct Combination {
    /// The operator.
    pub op: Op,
    /// The type.
    pub elem: Elem,
    /// Neighbours that an instruction of a thread combines at most, and the first target that has it; `None`: it is none for threads.
    pub threads: Option<(u32, Target)>,
    /// Whether the tensor memory accelerator does it.
    pub accelerator: bool,
}

const fn row(op: Op, elem: Elem, threads: Option<(u32, Target)>, accelerator: bool) -> Combination {
    Combination { op, elem, threads, accelerator }
}

/// Every combination.
pub const COMBINATIONS: [Combination; 20] = [
    row(Op::Add, Elem::F16, Some((2, Target::Sm70)), true),
    row(Op::Add, Elem::BF16, Some((2, Target::Sm90)), true),
    row(Op::Add, Elem::F32, Some((1, Target::Sm70)), true),
    row(Op::Add, Elem::F64, Some((1, Target::Sm70)), true),
    row(Op::Add, Elem::I32, Some((1, Target::Sm70)), true),
    row(Op::Add, Elem::U32, Some((1, Target::Sm70)), true),
    row(Op::Add, Elem::I64, Some((1, Target::Sm70)), false),
    row(Op::Add, Elem::U64, Some((1, Target::Sm70)), false),
    row(Op::Min, Elem::F16, None, true),
    row(Op::Min, Elem::BF16, None, true),
    row(Op::Min, Elem::I32, Some((1, Target::Sm70)), true),
    row(Op::Min, Elem::U32, Some((1, Target::Sm70)), true),
    row(Op::Min, Elem::I64, Some((1, Target::Sm70)), true),
    row(Op::Min, Elem::U64, Some((1, Target::Sm70)), false),
    row(Op::Max, Elem::F16, None, true),
    row(Op::Max, Elem::BF16, None, true),
    row(Op::Max, Elem::I32, Some((1, Target::Sm70)), true),
    row(Op::Max, Elem::U32, Some((1, Target::Sm70)), true),
    row(Op::Max, Elem::I64, Some((1, Target::Sm70)), true),
    row(Op::Max, Elem::U64, Some((1, Target::Sm70)), false),
];

/// The row of an operator and a type.
pub fn combination(op: Op, elem: Elem) -> Option<&'static Combination> {
    COMBINATIONS.iter().find(|c| c.op == op && c.elem == elem)
}

/// The types that memory combines by `op` in a way that `by` accepts, for people.
pub fn combined_types(op: Op, by: impl Fn(&Combination) -> bool) -> String {
    let names: Vec<&str> = COMBINATIONS.iter().filter(|c| c.op == op && by(c)).map(|c| c.elem.name()).collect();
    names.join(", ")
}

impl CopyAttrs {
    /// Whether threads themselves combine with what is there: of what the accelerator combines no thread sees it.
    pub fn combined_by_threads(&self) -> bool {
        self.reduce.is_some() && self.is_by_threads()
    }
}

/// Whether two copies combine elements by one operator: then neither has to come first, but for the rounding of sums.
pub fn commute(k: &Kernel, a: Stmt, b: Stmt) -> bool {
    let op = |s| match &k.stmts[s] {
        StmtData::Copy { attrs, .. } => attrs.reduce,
        _ => None,
    };
    op(a).is_some() && op(a) == op(b)
}
