//! Scheduling fields in the encoding of a machine instruction, from sm_70 to sm_90.
//!
//! The hardware has no interlocks for results of fixed latency. The assembler writes into each 128-bit instruction how
//! long to wait after it, and which of six barriers it sets and waits for. The field positions are those published by
//! Jia, Maggioni, Staiger and Scarpazza, "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking"
//! (arXiv:1804.06826), section 2.1; they are unchanged up to sm_90.

use serde::Serialize;

/// The first bit of the fields.
const FIRST: u32 = 105;
/// Barriers of a warp (scoreboards) that an instruction can set and wait for.
pub const BARRIERS: u8 = 6;
/// The encoding of "no barrier".
const NO_BARRIER: u8 = 7;

/// The scheduling of an instruction.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Control {
    /// Cycles until the warp may issue its next instruction, 0 to 15.
    pub stall: u8,
    /// Whether the scheduler prefers another warp next (the bit is clear); cached operands are lost then.
    pub yields: bool,
    /// The barrier that is set until the result is written, 0 to 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<u8>,
    /// The barrier that is set until the operands are read, 0 to 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<u8>,
    /// The barriers that must be clear before the instruction issues: bit n is barrier n.
    pub wait: u8,
    /// The operands that stay in the cache of the operand collector: bit n is operand n.
    pub reuse: u8,
}

impl Control {
    /// The fields of an encoding.
    #[must_use]
    pub fn of(encoding: u128) -> Control {
        let field = |from: u32, bits: u32| u8::try_from((encoding >> (FIRST + from)) & ((1 << bits) - 1)).unwrap_or(0);
        let barrier = |from| Some(field(from, 3)).filter(|&n| n != NO_BARRIER);
        Control {
            stall: field(0, 4),
            yields: field(4, 1) == 0,
            write: barrier(5),
            read: barrier(8),
            wait: field(11, BARRIERS.into()),
            reuse: field(17, 4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Instructions of ptxas 13.5 for sm_90a: a special register comes at any time, so it sets barrier 0, for which the comparison of it waits.
    #[test]
    fn a_barrier_is_set_by_who_writes_and_waited_for_by_who_reads() {
        let load = Control::of(0x000e_2e00_0000_2100_0000_0000_0000_7919);
        assert_eq!((load.write, load.read, load.wait, load.stall), (Some(0), None, 0, 7));
        let compare = Control::of(0x001f_da00_03f0_5270_0000_00ff_0000_720c);
        assert_eq!((compare.write, compare.read, compare.wait, compare.stall), (None, None, 1, 13));
    }

    #[test]
    fn every_bit_is_in_one_field() {
        let fields = |bit: u32| {
            let (zero, one) = (Control::of(0), Control::of(1 << bit));
            [
                zero.stall != one.stall,
                zero.yields != one.yields,
                zero.write != one.write,
                zero.read != one.read,
                zero.wait != one.wait,
                zero.reuse != one.reuse,
            ]
        };
        for bit in 0..128 {
            let changed = fields(bit).iter().filter(|&&c| c).count();
            assert_eq!(changed, usize::from((FIRST..FIRST + 21).contains(&bit)), "bit {bit}");
        }
    }
}
