//! Names for contents.

/// The FNV-1a hash of texts, 128 bits: the same everywhere, and always.
pub fn hash(parts: &[&str]) -> String {
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let mut add = |byte: u8| {
        hash ^= u128::from(byte);
        hash = hash.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    };
    for part in parts {
        // Lengths keep parts apart.
        part.len().to_le_bytes().into_iter().chain(part.bytes()).for_each(&mut add);
    }
    format!("{hash:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::{assert_eq, assert_ne};

    #[test]
    fn hashes_are_those_of_fnv() {
        // The hash of nothing is the offset basis; parts are separated.
        assert_eq!(hash(&[]), "6c62272e07bb014262b821756295c58d");
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
        assert_ne!(hash(&["a"]), hash(&["a", ""]));
    }
}
