//! Bit searches in words, dot products and packing of integers (PTX ISA 9.7.1.19, 9.7.1.23, 9.7.9.22).

/// The integer type of a part in `cvt.pack`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// Bits: 2, 4, 8 or 16.
    pub bits: u32,
    /// Whether they are signed.
    pub signed: bool,
}

/// `fns`: the position of the `offset`-th set bit of `mask`, counted from `base` upwards, or downwards if `offset` is
/// negative. With offset 0: `base` itself if that bit is set. All ones if there is none. The offset whose magnitude
/// overflows gives zero, as on the H200.
#[must_use]
pub fn find_nth_set(mask: u32, base: u32, offset: i32) -> u32 {
    let set = |at: i64| (0..32).contains(&at) && mask >> at & 1 != 0;
    let (mut at, step) = (i64::from(base), if offset < 0 { -1 } else { 1 });
    if offset == 0 {
        return if set(at) { base } else { u32::MAX };
    }
    if offset == i32::MIN {
        return 0;
    }
    let mut left = offset.unsigned_abs();
    while (0..32).contains(&at) {
        left -= u32::from(set(at));
        if left == 0 {
            return at as u32;
        }
        at += step;
    }
    u32::MAX
}

/// `cvt.pack.sat`: both numbers clamped to the part, `a` above `b`, in the low bits; above them the low bits of `c`, if
/// given.
#[must_use]
pub fn pack(part: Part, a: i32, b: i32, c: Option<u32>) -> u32 {
    let (least, most) = if part.signed {
        (-(1i32 << (part.bits - 1)), (1i32 << (part.bits - 1)) - 1)
    } else {
        (0, (1i32 << part.bits) - 1)
    };
    let fit = |x: i32| x.clamp(least, most) as u32 & ((1 << part.bits) - 1);
    fit(a) << part.bits | fit(b) | c.map_or(0, |c| c << (2 * part.bits))
}

/// `dp4a`: the sum of four products of bytes of `a` and `b`, plus `c`.
#[inline(always)]
#[must_use]
pub const fn dp4a(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool) -> u32 {
    let mut sum = c;
    let mut i = 0;
    while i < 4 {
        let (x, y) = ((a >> (8 * i)) as u8, (b >> (8 * i)) as u8);
        let x = if a_signed { x as i8 as i32 } else { x as i32 };
        let y = if b_signed { y as i8 as i32 } else { y as i32 };
        sum = sum.wrapping_add((x * y) as u32);
        i += 1;
    }
    sum
}

/// `dp2a`: the sum of two products of 16-bit parts of `a` and two bytes of `b`, the lower or upper ones, plus `c`.
#[inline(always)]
#[must_use]
pub const fn dp2a(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool, hi: bool) -> u32 {
    let b = if hi { b >> 16 } else { b };
    let mut sum = c;
    let mut i = 0;
    while i < 2 {
        let (x, y) = ((a >> (16 * i)) as u16, (b >> (8 * i)) as u8);
        let x = if a_signed { x as i16 as i32 } else { x as i32 };
        let y = if b_signed { y as i8 as i32 } else { y as i32 };
        sum = sum.wrapping_add(x.wrapping_mul(y) as u32);
        i += 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_set_bit() {
        assert_eq!(find_nth_set(0b1011_0100, 0, 1), 2);
        assert_eq!(find_nth_set(0b1011_0100, 0, 3), 5);
        assert_eq!(find_nth_set(0b1011_0100, 2, 2), 4);
        assert_eq!(find_nth_set(0b1011_0100, 6, -1), 5);
        assert_eq!(find_nth_set(0b1011_0100, 31, -4), 2);
        assert_eq!(find_nth_set(0b1011_0100, 31, -5), u32::MAX);
        assert_eq!(find_nth_set(0b1011_0100, 7, 2), u32::MAX);
        assert_eq!(find_nth_set(0b1011_0100, 4, 0), 4);
        assert_eq!(find_nth_set(0b1011_0100, 3, 0), u32::MAX);
        assert_eq!(find_nth_set(u32::MAX, 31, 1), 31);
        assert_eq!(find_nth_set(u32::MAX, 32, 1), u32::MAX);
        assert_eq!(find_nth_set(u32::MAX, 0, i32::MIN), 0);
        assert_eq!(find_nth_set(u32::MAX, 0, i32::MIN + 1), u32::MAX);
    }

    #[test]
    fn packing_clamps() {
        let part = |bits, signed| Part { bits, signed };
        assert_eq!(pack(part(16, true), 40_000, -40_000, None), 0x7fff_8000);
        assert_eq!(pack(part(16, false), -1, 70_000, None), 0x0000_ffff);
        assert_eq!(pack(part(8, false), 300, -5, Some(0x1234_5678)), 0x5678_ff00);
        assert_eq!(pack(part(8, true), -1, -200, Some(0)), 0x0000_ff80);
        assert_eq!(pack(part(4, true), 100, -100, Some(0x89ab_cdef)), 0xabcd_ef78);
        assert_eq!(pack(part(2, false), 9, 1, Some(1)), 0b1_1101);
    }

    #[test]
    fn dot_products_of_bytes() {
        // 3 * 5 + -2 * 7 + 4 * -1 + -128 * 127.
        assert_eq!(dp4a(0x8004_fe03, 0x7fff_0705, 100, true, true), (100 + 15 - 14 - 4 - 16_256i32) as u32);
        assert_eq!(dp4a(u32::MAX, u32::MAX, 0, false, false), 4 * 255 * 255);
        assert_eq!(dp4a(u32::MAX, u32::MAX, 0, true, true), 4);
        assert_eq!(dp4a(u32::MAX, u32::MAX, 1, true, false), 1u32.wrapping_sub(4 * 255));
        assert_eq!(dp4a(u32::MAX, 0x0100_0000, u32::MAX, false, true), 254);
    }

    #[test]
    fn dot_products_of_pairs() {
        // 3 * 5 + -2 * 7, and the other half of b.
        assert_eq!(dp2a(0xfffe_0003, 0x0b0d_0705, 100, true, true, false), 101);
        assert_eq!(dp2a(0xfffe_0003, 0x0b0d_0705, 100, true, true, true), 100 + 3 * 13 - 2 * 11);
        assert_eq!(dp2a(0x0000_ffff, 0x0000_00ff, 0, false, false, false), 65535 * 255);
        assert_eq!(dp2a(0x0000_ffff, 0x0000_00ff, 0, true, true, false), 1);
        assert_eq!(dp2a(0x0000_ffff, 0x0000_00ff, 7, false, true, false), 7u32.wrapping_sub(65535));
    }
}
