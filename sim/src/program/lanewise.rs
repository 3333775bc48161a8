//! Operations that are described and interpreted lane by lane, with up to three operands.

use crate::numerics::{
    bits,
    bits::Part,
    single,
    video::{Simd, Video},
};

/// An operation on bit patterns of up to three operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// `slct`: the first operand if the third is not negative, a float or an integer.
    Select { float: bool, ftz: bool },
    /// `fns`.
    FindNthSet,
    /// `cvt.pack`; the result precedes the third operand if there is one.
    Pack { part: Part, append: bool },
    /// A video instruction on one part of each operand.
    Video(Video),
    /// A SIMD video instruction on the parts of words.
    Simd(Simd),
}

impl Function {
    /// The result for one lane.
    pub(crate) fn apply(self, a: u64, b: u64, c: u64) -> u64 {
        let (x, y, z) = (a as u32, b as u32, c as u32);
        match self {
            Function::Select { float: false, .. } => {
                if (z as i32) < 0 {
                    b
                } else {
                    a
                }
            }
            Function::Select { float: true, ftz } => {
                if f32::from_bits(if ftz { single::flush(z) } else { z }) >= 0.0 {
                    a
                } else {
                    b
                }
            }
            Function::FindNthSet => u64::from(bits::find_nth_set(x, y, z as i32)),
            Function::Pack { part, append } => u64::from(bits::pack(part, x as i32, y as i32, append.then_some(z))),
            Function::Video(video) => u64::from(video.apply(x, y, z)),
            Function::Simd(simd) => u64::from(simd.apply(x, y, z)),
        }
    }
}
