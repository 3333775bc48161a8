//! Reshapes of elements by row-major index, between shapes that are not powers of two: `reshape(s, [64, 16], [12, 48]
//! in [48, 12])`.
//!
//! Layouts of register tiles are over the bits of element indices. A shape whose extents are not powers of two has
//! other bits. So such a tile goes through a buffer, from which each thread reads its elements. The same holds for
//! windows of tiles that do not begin and end at multiples of powers of two.

/// Which element of a buffer is which of a tile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Numbered {
    /// Extents of what is read of the buffer, from its first element on.
    pub from: Vec<u64>,
    /// Extents of what is written of the tile, as many elements.
    pub to: Vec<u64>,
    /// Where in the tile that begins; in front of it where it is below 0.
    pub at: Vec<i64>,
}

impl Numbered {
    /// The element of the buffer that is the tile's at these coordinates; `None`: there is none, and it is zero.
    #[must_use]
    pub fn source(&self, tile: &[u64]) -> Option<Vec<u64>> {
        let mut number = 0u64;
        for ((&c, &at), &extent) in tile.iter().zip(&self.at).zip(&self.to) {
            let c = i64::try_from(c).ok()?.checked_sub(at).and_then(|c| u64::try_from(c).ok());
            number = number * extent + c.filter(|&c| c < extent)?;
        }
        let mut coords: Vec<u64> = Vec::new();
        for &extent in self.from.iter().rev() {
            coords.push(number % extent);
            number /= extent;
        }
        coords.reverse();
        Some(coords)
    }
}

#[cfg(test)]
mod tests {
    use super::Numbered;

    #[test]
    fn numbers_are_those_of_both_shapes() {
        let of = Numbered { from: vec![2, 3], to: vec![3, 2], at: vec![0, 1] };
        assert_eq!(of.source(&[0, 1]), Some(vec![0, 0]));
        assert_eq!(of.source(&[1, 2]), Some(vec![1, 0]));
        assert_eq!(of.source(&[2, 2]), Some(vec![1, 2]));
        assert_eq!(of.source(&[0, 0]), None);
        assert_eq!(of.source(&[3, 1]), None);
    }
}
