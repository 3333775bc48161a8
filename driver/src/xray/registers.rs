//! Which 32-bit registers of a tile an element is in: values of fewer bits share one, those of 64 bits take two.

use super::threads::ThreadGroup;
use tilec_ir::layout::{RegLayout, shape_bits};
use tilec_ir::types::Elem;

/// Bits of a register.
const REGISTER: u64 = 32;

/// The registers of one value of a thread, by their numbers among those of its tile.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Registers {
    pub(super) first: u64,
    pub(super) count: u64,
    /// The bits of the first at which the value begins, where several values share a register.
    from: Option<u64>,
    bits: u64,
}

impl Registers {
    /// Of value number `value`.
    pub(super) fn of(elem: Elem, value: u64) -> Registers {
        // A register, or a predicate, has one truth value.
        let bits = if elem == Elem::Bool { REGISTER } else { u64::from(elem.size().get()) };
        let at = value * bits;
        Registers {
            first: at / REGISTER,
            count: bits.div_ceil(REGISTER),
            from: (bits < REGISTER).then_some(at % REGISTER),
            bits,
        }
    }

    /// `r4`, `r4-5`, `r2+16`.
    pub(super) fn short(&self) -> String {
        let Registers { first, count, from, .. } = *self;
        match from {
            Some(from) if from > 0 => format!("r{first}+{from}"),
            _ if count > 1 => format!("r{first}-{}", first + count - 1),
            _ => format!("r{first}"),
        }
    }

    fn long(&self) -> String {
        let Registers { first, count, from, bits } = *self;
        match from {
            Some(from) => format!("register {first}, bits {from} to {},", from + bits - 1),
            None if count > 1 => format!("registers {first} to {}", first + count - 1),
            None => format!("register {first}"),
        }
    }
}

/// Whom an element of a register tile belongs to: thread and register, and how many threads hold it.
pub(super) fn holder(layout: &RegLayout, shape: &[u64], coords: &[u64]) -> Option<(u64, u64, u64)> {
    let bits = shape_bits(shape);
    let (mut linear, mut from) = (0, 0);
    for (&c, &n) in coords.iter().zip(&bits) {
        linear |= c << from;
        from += n;
    }
    // Thread bits are the low ones of the map; a zero column is one that says nothing, and the least solution leaves it out.
    let map = layout.map();
    let place = map.solve(linear)?;
    let (mut threads, mut least) = (1, place & ((1 << layout.thread_bits()) - 1));
    let value = place >> layout.thread_bits();
    for bit in 0..layout.thread_bits() {
        if layout.thread_col(bit) == 0 {
            threads *= 2;
            least &= !(1 << bit);
        }
    }
    Some((least, value, threads))
}

/// The registers that have an element of a tile, and their threads, in words.
pub(super) fn held(team: &ThreadGroup, layout: &RegLayout, elem: Elem, shape: &[u64], coords: &[u64]) -> String {
    match holder(layout, shape, coords) {
        Some((thread, value, 1)) => {
            format!("{} of {}", Registers::of(elem, value).long(), team.thread(thread))
        }
        Some((thread, value, n)) => {
            format!(
                "{} of {n} threads, the first of which is {}",
                Registers::of(elem, value).long(),
                team.thread(thread)
            )
        }
        None => "no register".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PTX ISA 9.7.14: two 16-bit elements of a fragment share a register; f64 takes a pair of them.
    #[test]
    fn values_are_numbered_by_registers() {
        let of = |elem, value| Registers::of(elem, value).short();
        assert_eq!(
            [of(Elem::F32, 4), of(Elem::BF16, 4), of(Elem::BF16, 5), of(Elem::F64, 2)],
            ["r4", "r2", "r2+16", "r4-5"]
        );
        assert_eq!([of(Elem::I4, 9), of(Elem::E4M3, 3), of(Elem::Bool, 3)], ["r1+4", "r0+24", "r3"]);
    }
}
