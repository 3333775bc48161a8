//! Atomic operations on global and shared memory: `copy x -> C[i.., j..] add`.
//!
//! Threads execute them element by element (`red`, PTX ISA 9.7.13.6), TMA by boxes (`cp.reduce.async.bulk.tensor`,
//! 9.7.9.27). If the old value is needed, threads use `atom` (9.7.13.5). A row has the types that each supports; a new one needs its instruction in the emitter's `lower/combine.rs` or `lower/tensor_store.rs`.

use crate::ops::Op;
use crate::space::Space;
use crate::target::Target;
use crate::types::Elem;

/// How memory combines what a copy stores with what is there.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Combining {
    /// The sum of both: `add`.
    Add,
    /// The smaller of both: `min`.
    Min,
    /// The larger of both: `max`.
    Max,
    /// Replaces the memory's value and returns the old one: `exchange old x`.
    Exchange,
}

impl Combining {
    /// All operations, with their words.
    pub(crate) const WORDS: [(&str, Combining); 4] =
        [("add", Combining::Add), ("min", Combining::Min), ("max", Combining::Max), ("exchange", Combining::Exchange)];

    /// The operation that a word of the text names.
    pub(crate) fn from_word(word: &str) -> Option<Combining> {
        Combining::WORDS.iter().find(|(w, _)| *w == word).map(|&(_, how)| how)
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Combining::Add => "add",
            Combining::Min => "min",
            Combining::Max => "max",
            Combining::Exchange => "exchange",
        }
    }

    /// The operator that makes the new value of the old one and of what is stored; `None`: the latter is it.
    pub fn op(self) -> Option<Op> {
        match self {
            Combining::Add => Some(Op::Add),
            Combining::Min => Some(Op::Min),
            Combining::Max => Some(Op::Max),
            Combining::Exchange => None,
        }
    }
}

/// An operator that memory applies to elements of a type.
#[derive(Copy, Clone, Debug)]
pub struct Combination {
    /// The operator.
    pub op: Combining,
    /// The type.
    pub elem: Elem,
    /// How many contiguous elements an instruction of a thread combines, ascending, and the first target that has it;
    /// empty: threads have no such instruction.
    pub threads: &'static [(u32, Target)],
    /// Whether TMA does it.
    pub tma: bool,
}

const fn row(op: Combining, elem: Elem, threads: &'static [(u32, Target)], tma: bool) -> Combination {
    Combination { op, elem, threads, tma }
}

/// One element at a time, on every target.
const ONE: &[(u32, Target)] = &[(1, Target::Sm70)];

/// Every combination.
pub const COMBINATIONS: [Combination; 30] = [
    row(Combining::Add, Elem::F16, &[(1, Target::Sm70), (2, Target::Sm70), (4, Target::Sm90), (8, Target::Sm90)], true),
    row(
        Combining::Add,
        Elem::BF16,
        &[(1, Target::Sm90), (2, Target::Sm90), (4, Target::Sm90), (8, Target::Sm90)],
        true,
    ),
    row(Combining::Add, Elem::F32, &[(1, Target::Sm70), (2, Target::Sm90), (4, Target::Sm90)], true),
    row(Combining::Add, Elem::F64, ONE, true),
    row(Combining::Add, Elem::I32, ONE, true),
    row(Combining::Add, Elem::U32, ONE, true),
    row(Combining::Add, Elem::I64, ONE, false),
    row(Combining::Add, Elem::U64, ONE, false),
    row(Combining::Min, Elem::F16, &[], true),
    row(Combining::Min, Elem::BF16, &[], true),
    row(Combining::Min, Elem::F32, ONE, false),
    row(Combining::Min, Elem::F64, ONE, false),
    row(Combining::Min, Elem::I32, ONE, true),
    row(Combining::Min, Elem::U32, ONE, true),
    row(Combining::Min, Elem::I64, ONE, true),
    row(Combining::Min, Elem::U64, ONE, false),
    row(Combining::Max, Elem::F16, &[], true),
    row(Combining::Max, Elem::BF16, &[], true),
    row(Combining::Max, Elem::F32, ONE, false),
    row(Combining::Max, Elem::F64, ONE, false),
    row(Combining::Max, Elem::I32, ONE, true),
    row(Combining::Max, Elem::U32, ONE, true),
    row(Combining::Max, Elem::I64, ONE, true),
    row(Combining::Max, Elem::U64, ONE, false),
    row(Combining::Exchange, Elem::F32, ONE, false),
    row(Combining::Exchange, Elem::F64, ONE, false),
    row(Combining::Exchange, Elem::I32, ONE, false),
    row(Combining::Exchange, Elem::U32, ONE, false),
    row(Combining::Exchange, Elem::I64, ONE, false),
    row(Combining::Exchange, Elem::U64, ONE, false),
];

impl Combination {
    /// Maximum number of contiguous elements that an instruction of a thread combines; `None`: the target has no such
    /// instruction for threads.
    pub fn widest(&self, target: Target) -> Option<u32> {
        self.threads.iter().rev().find(|(_, first)| target.at_least(*first)).map(|&(elems, _)| elems)
    }

    /// The same for memory of this space: instructions on shared memory combine one element.
    pub fn widest_in(&self, space: Space, target: Target) -> Option<u32> {
        let widest = self.widest(target)?;
        Some(if space.has_bounds() { widest } else { 1 })
    }
}

/// The row of an operator and a type.
pub fn combination(op: Combining, elem: Elem) -> Option<&'static Combination> {
    COMBINATIONS.iter().find(|c| c.op == op && c.elem == elem)
}

/// The types that memory combines by `op` with support accepted by `by`, as text for messages.
pub fn combined_types(op: Combining, by: impl Fn(&Combination) -> bool) -> String {
    let names: Vec<&str> = COMBINATIONS.iter().filter(|c| c.op == op && by(c)).map(|c| c.elem.name()).collect();
    names.join(", ")
}
