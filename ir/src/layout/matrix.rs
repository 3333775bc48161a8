//! Fragments that `ldmatrix` can load, and `stmatrix` store (PTX ISA 9.7.14.5.15 and 9.7.14.5.16).
//!
//! The instruction reads 8x8 matrices of 16-bit units. Eight lanes name the rows of a matrix, 16 contiguous bytes each;
//! lane `l` receives the 32-bit word `t` of row `g` (`g = l >> 2`, `t = l & 3`), or with `.trans` units `2t, 2t+1` of
//! column `g`. A word is two elements of 16 bits, four of 8 bits or one of 32 bits; `.trans` moves 16-bit units, so it
//! is for those alone. A fragment fits if the value bits inside a word and lane bits 0 and 1 move along the run of
//! contiguous elements. Lane bits 2 to 4 move across runs. The reverse fits, too. Up to two more value bits tell the
//! matrices of one instruction apart. `stmatrix` is the same way back, of 16-bit elements.

use super::tile::RegLayout;

/// How a fragment is loaded as matrices.
#[derive(Clone, PartialEq, Debug)]
pub struct MatrixLoad {
    /// `.trans`: rows of the matrix are contiguous across lanes.
    pub trans: bool,
    /// Value bits that tell the matrices of one instruction apart: 0, 1 or 2 of them.
    pub matrix_bits: Vec<u32>,
    /// Value bits that are left: one instruction for each of their values.
    pub outer_bits: Vec<u32>,
    /// The row that each thread names: value index 0 of a distribution of row starts. Lane bits 0 to 2 pick the row, lane
    /// bits 3 and 4 the matrix.
    pub rows: RegLayout,
}

impl MatrixLoad {
    /// The value index at which the word of each matrix begins, of the instruction that `outer` counts.
    pub fn words(&self, outer: usize) -> impl Iterator<Item = usize> + '_ {
        let spread = |x: usize, bits: &[u32]| bits.iter().enumerate().fold(0, |a, (i, &b)| a | (x >> i & 1) << b);
        let first = spread(outer, &self.outer_bits);
        (0..1usize << self.matrix_bits.len()).map(move |j| first | spread(j, &self.matrix_bits))
    }
}

/// Elements of a row of a matrix, 16 bytes; `None` if elements have no power of two of 8 to 32 bits.
pub fn row_elements(elem_bits: u32) -> Option<u32> {
    matches!(elem_bits, 8 | 16 | 32).then(|| 128 / elem_bits)
}

/// How to load a tile distributed as `layout` whose elements of `elem_bits` bits are contiguous along the column-major index
/// bits from `first` (lowest address first). `None` if it does not fit.
pub fn matrix_load(layout: &RegLayout, first: u64, elem_bits: u32) -> Option<MatrixLoad> {
    let run: Vec<u64> = (0..row_elements(elem_bits)?.ilog2()).map(|i| first << i).collect();
    // Value bits inside a 32-bit word.
    let word = (32 / elem_bits).ilog2();
    if layout.value_bits() < word || layout.thread_bits() < 5 {
        return None;
    }
    let mut low: Vec<u64> = (0..word).map(|i| layout.value_col(i)).collect();
    low.extend([layout.thread_col(0), layout.thread_col(1)]);
    let high = [layout.thread_col(2), layout.thread_col(3), layout.thread_col(4)];
    let (trans, across) = if low == run {
        (false, high.to_vec())
    } else if high == run[..] {
        (true, low)
    } else {
        return None;
    };
    if trans && elem_bits != 16 {
        return None;
    }
    let mask = run.iter().fold(0, |a, c| a | c);
    let outside = |c: u64| c & mask == 0;
    if across.iter().any(|&c| !outside(c) || c == 0) {
        return None;
    }
    let rest: Vec<u32> = (word..layout.value_bits()).collect();
    if rest.iter().any(|&i| !outside(layout.value_col(i)))
        || (5..layout.thread_bits()).any(|i| !outside(layout.thread_col(i)))
    {
        return None;
    }
    let (matrix_bits, outer_bits) = rest.split_at(rest.len().min(2));
    let mut thread: Vec<u64> = across;
    for i in 0..2 {
        thread.push(matrix_bits.get(i).map_or(0, |&b| layout.value_col(b)));
    }
    thread.extend((5..layout.thread_bits()).map(|i| layout.thread_col(i)));
    let value = outer_bits.iter().map(|&b| layout.value_col(b)).collect();
    let rows = RegLayout::new(value, thread, layout.out_bits())?;
    Some(MatrixLoad { trans, matrix_bits: matrix_bits.to_vec(), outer_bits: outer_bits.to_vec(), rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every element of a fragment comes from the row that the manual's formula names.
    #[test]
    fn rows_hold_the_elements() {
        // A 16x16 tile, columns contiguous (index = row + 16 * column): m16n8k16's A.
        let a = RegLayout::new(vec![16, 8, 128], vec![32, 64, 1, 2, 4], 8).expect("a layout");
        let load = matrix_load(&a, 16, 16).expect("it fits");
        assert!(!load.trans);
        check(&a, &load, 16, 1);
        // The same fragment with rows contiguous.
        let load = matrix_load(&a, 1, 16).expect("it fits transposed");
        assert!(load.trans);
        check(&a, &load, 1, 1);
        assert_eq!(matrix_load(&a, 8, 16), None);
        // A 16x32 tile of bytes: m16n8k32's A. And a 16x8 tile of words: tf32. Neither can be transposed.
        let bytes = RegLayout::new(vec![16, 32, 8, 256], vec![64, 128, 1, 2, 4], 9).expect("a layout");
        check(&bytes, &matrix_load(&bytes, 16, 8).expect("it fits"), 16, 2);
        let words = RegLayout::new(vec![8, 64], vec![16, 32, 1, 2, 4], 7).expect("a layout");
        check(&words, &matrix_load(&words, 16, 32).expect("it fits"), 16, 0);
        assert_eq!(matrix_load(&bytes, 1, 8), None);
        assert_eq!(matrix_load(&words, 1, 32), None);
        assert_eq!(matrix_load(&words, 16, 64), None);
    }

    /// `word`: log2 of the elements of a 32-bit word.
    fn check(layout: &RegLayout, load: &MatrixLoad, first: u64, word: u32) {
        for lane in 0..32u64 {
            let (g, t) = (lane >> 2, lane & 3);
            for v in 0..1u64 << layout.value_bits() {
                let matrix = load.matrix_bits.iter().enumerate().fold(0, |a, (i, &b)| a | (v >> b & 1) << i);
                let outer = load.outer_bits.iter().enumerate().fold(0, |a, (i, &b)| a | (v >> b & 1) << i);
                let e = v & ((1 << word) - 1);
                let unit = (t << word) + e;
                let (row, column) = if load.trans { (unit, g) } else { (g, unit) };
                let start = load.rows.at(matrix * 8 + row, outer);
                assert_eq!(layout.at(lane, v), start ^ (column * first), "lane {lane} value {v}");
            }
        }
    }
}
