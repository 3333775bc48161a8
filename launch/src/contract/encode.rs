//! Elements as bytes.

use crate::contract::number::{Number, int_format};
use tilec_core::elem::Elem;
use tilec_core::numbers;
use tilec_core::numerics::float_format;

/// The value of `elem` nearest to `x`, as bits.
pub fn encode(elem: Elem, x: f64) -> u64 {
    match float_format(elem) {
        Some(format) => format.encode(x),
        // Two's complement: the low bits are the encoding.
        None => int_format(elem).from_f64(x) as u64,
    }
}

/// The value of `elem` nearest to a given number, as bits.
pub fn encode_number(elem: Elem, x: Number) -> u64 {
    match (x, float_format(elem)) {
        // As a conversion does.
        (Number::Int(x), None) if elem == Elem::U64 => x.cast_unsigned(),
        (Number::Int(x), None) => int_format(elem).saturate(i128::from(x)) as u64,
        (Number::Large(x), None) => int_format(elem).saturate(i128::from(x)) as u64,
        _ => encode(elem, x.to_f64()),
    }
}

/// The exact value of an encoding.
pub fn element(elem: Elem, bits: u64) -> numbers::Number {
    numbers::Number::of_bits(elem, bits)
}

/// The value of an encoding; integers beyond 2^53 are rounded.
pub fn decode(elem: Elem, bits: u64) -> f64 {
    match float_format(elem) {
        Some(format) => format.decode(bits),
        None => int_format(elem).wrap(i128::from(bits)) as f64,
    }
}

/// Element `index` of a tensor in memory; integers beyond 2^53 are rounded.
pub fn get(elem: Elem, bytes: &[u8], index: usize) -> f64 {
    decode(elem, word(elem, bytes, index))
}

/// Element `index` of a tensor in memory, exactly.
pub fn get_exact(elem: Elem, bytes: &[u8], index: usize) -> numbers::Number {
    element(elem, word(elem, bytes, index))
}

/// The encoding of element `index` of a tensor in memory. Of elements that share a byte the first has its lowest bits.
pub fn word(elem: Elem, bytes: &[u8], index: usize) -> u64 {
    let Some(size) = elem.size().whole_bytes().map(|size| size as usize) else {
        let (byte, shift) = place(elem, index);
        return u64::from(bytes[byte] >> shift) & mask(elem);
    };
    let mut word = [0; 8];
    word[..size].copy_from_slice(&bytes[index * size..][..size]);
    u64::from_le_bytes(word)
}

/// Sets the encoding of element `index` of a tensor in memory; other elements in the same byte are unchanged.
pub fn set_word(elem: Elem, bytes: &mut [u8], index: usize, word: u64) {
    let Some(size) = elem.size().whole_bytes().map(|size| size as usize) else {
        let (byte, shift) = place(elem, index);
        let (own, others) = ((word & mask(elem)) as u8, !((mask(elem) as u8) << shift));
        bytes[byte] = bytes[byte] & others | own << shift;
        return;
    };
    bytes[index * size..][..size].copy_from_slice(&word.to_le_bytes()[..size]);
}

/// The bytes that a range of elements occupies.
pub fn bytes_of(elem: Elem, run: std::ops::Range<usize>) -> std::ops::Range<usize> {
    let bits = elem.bits() as usize;
    run.start * bits / 8..(run.end * bits).div_ceil(8)
}

/// The byte of an element that shares it, and the bit of that byte with which it begins.
fn place(elem: Elem, index: usize) -> (usize, usize) {
    let bits = elem.bits() as usize;
    (index * bits / 8, index * bits % 8)
}

/// The bits of an encoding.
fn mask(elem: Elem) -> u64 {
    u64::MAX >> (64 - elem.bits())
}

/// The first `span` elements of a tensor in memory, exactly.
pub fn numbers(elem: Elem, bytes: &[u8], span: usize) -> numbers::Numbers {
    match elem.is_wide() {
        true => (0..span).map(|i| get_exact(elem, bytes, i).to_i128()).collect::<Vec<i128>>().into(),
        false => (0..span).map(|i| get(elem, bytes, i)).collect::<Vec<f64>>().into(),
    }
}

/// Sets element `index` of a tensor in memory.
pub fn set(elem: Elem, bytes: &mut [u8], index: usize, x: f64) {
    set_word(elem, bytes, index, encode(elem, x));
}

/// Sets element `index` of a tensor in memory to a value of its type.
pub fn set_exact(elem: Elem, bytes: &mut [u8], index: usize, x: numbers::Number) {
    match x {
        numbers::Number::Float(x) => set(elem, bytes, index, x),
        numbers::Number::Wide(x) => {
            set_word(elem, bytes, index, int_format(elem).saturate(x) as u64);
        }
    }
}
