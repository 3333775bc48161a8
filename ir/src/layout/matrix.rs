//! Fragments that `ldmatrix` can load (PTX ISA 9.7.14.5.15).
//!
//! The instruction reads 8x8 matrices of 16-bit elements. Eight lanes name the rows of a matrix, 16 contiguous bytes each;
//! lane `l` receives elements `2t, 2t+1` of row `g` (`g = l >> 2`, `t = l & 3`), or with `.trans` rows `2t, 2t+1` of column `g`.
//! So a fragment fits if value bit 0 and lane bits 0 and 1 walk along the run of contiguous elements and lane bits 2 to 4
//! across runs, or the other way round. Up to two more value bits tell the matrices of one instruction apart.

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

/// How to load a tile distributed as `layout` whose run of eight contiguous elements is at column-major index bits
/// `run[0]`, `run[1]`, `run[2]` (lowest address first). `None` if it does not fit.
pub fn matrix_load(layout: &RegLayout, run: [u64; 3]) -> Option<MatrixLoad> {
    if layout.value_bits() < 1 || layout.thread_bits() < 5 {
        return None;
    }
    let low = [layout.value_col(0), layout.thread_col(0), layout.thread_col(1)];
    let high = [layout.thread_col(2), layout.thread_col(3), layout.thread_col(4)];
    let (trans, across) = if low == run {
        (false, high)
    } else if high == run {
        (true, low)
    } else {
        return None;
    };
    let mask = run[0] | run[1] | run[2];
    let outside = |c: u64| c & mask == 0;
    if across.iter().any(|&c| !outside(c) || c == 0) {
        return None;
    }
    let rest: Vec<u32> = (1..layout.value_bits()).collect();
    if rest.iter().any(|&i| !outside(layout.value_col(i)))
        || (5..layout.thread_bits()).any(|i| !outside(layout.thread_col(i)))
    {
        return None;
    }
    let (matrix_bits, outer_bits) = rest.split_at(rest.len().min(2));
    let mut thread: Vec<u64> = across.to_vec();
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
        let load = matrix_load(&a, [16, 32, 64]).expect("it fits");
        assert!(!load.trans);
        check(&a, &load, [16, 32, 64]);
        // The same fragment with rows contiguous.
        let load = matrix_load(&a, [1, 2, 4]).expect("it fits transposed");
        assert!(load.trans);
        check(&a, &load, [1, 2, 4]);
        assert_eq!(matrix_load(&a, [8, 1, 2]), None);
    }

    fn check(layout: &RegLayout, load: &MatrixLoad, run: [u64; 3]) {
        let along = |i: u64| (0..3).fold(0, |a, b| a ^ if i >> b & 1 == 1 { run[b] } else { 0 });
        for lane in 0..32u64 {
            let (g, t) = (lane >> 2, lane & 3);
            for v in 0..1u64 << layout.value_bits() {
                let matrix = load.matrix_bits.iter().enumerate().fold(0, |a, (i, &b)| a | (v >> b & 1) << i);
                let outer = load.outer_bits.iter().enumerate().fold(0, |a, (i, &b)| a | (v >> b & 1) << i);
                let e = v & 1;
                let (row, column) = if load.trans { (2 * t + e, g) } else { (g, 2 * t + e) };
                let start = load.rows.at(matrix * 8 + row, outer);
                assert_eq!(layout.at(lane, v), start ^ along(column), "lane {lane} value {v}");
            }
        }
    }
}
