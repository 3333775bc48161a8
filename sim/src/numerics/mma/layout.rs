//! Which lane holds which element: fragments of `mma.sync`, and the maps of `ldmatrix`, `stmatrix` and `movmatrix`.
//!
//! Written from PTX ISA 9.7.14.5.1 to 9.7.14.5.17. Lanes are 0..32, `g = lane / 4`, `t = lane % 4`; element numbers within a
//! lane count the low bits of a register first. Every function gives (row, column) of the operand's matrix: (m, k) of A, (k, n)
//! of B, (m, n) of C and D.

use super::dense_forms::Layout;

/// Group (`lane / 4`) and thread in group (`lane % 4`).
const fn group(lane: usize) -> (usize, usize) {
    (lane >> 2, lane & 3)
}

/// m8n8k4: which of the four products a lane takes part in.
#[must_use]
pub const fn quad_pair(lane: usize) -> usize {
    (lane >> 2) & 3
}

/// m8n8k4 A, element 0..4 of a lane.
#[must_use]
pub const fn m8n8k4_a(layout: Layout, lane: usize, element: usize) -> (usize, usize) {
    let (t, upper) = (lane & 3, 4 * (lane >> 4));
    match layout {
        Layout::Row => (t + upper, element),
        Layout::Col => (element + upper, t),
    }
}

/// m8n8k4 B, element 0..4 of a lane.
#[must_use]
pub const fn m8n8k4_b(layout: Layout, lane: usize, element: usize) -> (usize, usize) {
    let (t, upper) = (lane & 3, 4 * (lane >> 4));
    match layout {
        Layout::Row => (t, element + upper),
        Layout::Col => (element, t + upper),
    }
}

/// m8n8k4 C and D of type f16, element 0..8 of a lane.
#[must_use]
pub const fn m8n8k4_c_f16(lane: usize, element: usize) -> (usize, usize) {
    ((lane & 3) + 4 * (lane >> 4), element)
}

/// m8n8k4 C and D of type f32, element 0..8 of a lane.
#[must_use]
pub const fn m8n8k4_c_f32(lane: usize, element: usize) -> (usize, usize) {
    ((lane & 1) + (element & 2) + 4 * (lane >> 4), (element & 4) + (lane & 2) + (element & 1))
}

/// m16n8kK A with `per` elements to a register: element `e` of register `r`.
#[must_use]
pub const fn m16n8_a(per: usize, lane: usize, r: usize, e: usize) -> (usize, usize) {
    let (g, t) = group(lane);
    (g + 8 * (r & 1), (r >> 1) * 4 * per + t * per + e)
}

/// m16n8kK and m8n8kK B with `per` elements to a register: element `e` of register `r`.
#[must_use]
pub const fn n8_b(per: usize, lane: usize, r: usize, e: usize) -> (usize, usize) {
    let (g, t) = group(lane);
    (r * 4 * per + t * per + e, g)
}

/// m8n8kK A with `per` elements to its one register.
#[must_use]
pub const fn m8n8_a(per: usize, lane: usize, e: usize) -> (usize, usize) {
    let (g, t) = group(lane);
    (g, t * per + e)
}

/// C and D of m16n8kK (elements 0..4) and m8n8kK (elements 0..2). An f16 register holds elements 2r and 2r + 1.
#[must_use]
pub const fn n8_c(lane: usize, element: usize) -> (usize, usize) {
    let (g, t) = group(lane);
    (g + 8 * (element >> 1), 2 * t + (element & 1))
}

/// f64 A of m8n8k4 (register 0) and of m16n8k4, k8, k16.
#[must_use]
pub const fn f64_a(m: usize, lane: usize, r: usize) -> (usize, usize) {
    let (g, t) = group(lane);
    if m == 8 { (g, t) } else { (g + 8 * (r & 1), 4 * (r >> 1) + t) }
}

/// f64 B of every shape.
#[must_use]
pub const fn f64_b(lane: usize, r: usize) -> (usize, usize) {
    let (g, t) = group(lane);
    (4 * r + t, g)
}

/// `ldmatrix`, `stmatrix` of 8x8 matrices: the matrix and the row whose 16 bytes this lane addresses. A form with `x` matrices
/// uses the lanes below `8 x`.
#[must_use]
pub const fn matrix_row_of_address(lane: usize) -> (usize, usize) {
    (lane >> 3, lane & 7)
}

/// `ldmatrix`, `stmatrix`, `movmatrix`: the (row, column) of half `e` of a lane's register, in a matrix of 16-bit elements.
#[must_use]
pub const fn matrix_element(trans: bool, lane: usize, e: usize) -> (usize, usize) {
    let (g, t) = group(lane);
    if trans { (2 * t + e, g) } else { (g, 2 * t + e) }
}

/// `ldmatrix` of one matrix: rows of eight 16-bit elements to a register.
#[must_use]
pub fn load_matrix(trans: bool, rows: &[[u16; 8]; 8]) -> [u32; 32] {
    std::array::from_fn(|lane| {
        let half = |e| {
            let (row, column) = matrix_element(trans, lane, e);
            u32::from(rows[row][column])
        };
        half(0) | half(1) << 16
    })
}

/// `stmatrix` of one matrix: the inverse of [`load_matrix`].
#[must_use]
pub fn store_matrix(trans: bool, register: &[u32; 32]) -> [[u16; 8]; 8] {
    let mut rows = [[0; 8]; 8];
    for (lane, &bits) in register.iter().enumerate() {
        for e in 0..2 {
            let (row, column) = matrix_element(trans, lane, e);
            rows[row][column] = (bits >> (16 * e)) as u16;
        }
    }
    rows
}

/// `movmatrix.trans`: the matrix in a register, transposed.
#[must_use]
pub fn transpose_matrix(register: &[u32; 32]) -> [u32; 32] {
    load_matrix(true, &store_matrix(false, register))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Every element has exactly one place.
    fn covers(rows: usize, columns: usize, places: impl Iterator<Item = (usize, usize)>) {
        let mut seen = BTreeSet::new();
        for place in places {
            assert!(place.0 < rows && place.1 < columns, "{place:?}");
            assert!(seen.insert(place), "{place:?} twice");
        }
        assert_eq!(seen.len(), rows * columns);
    }

    #[test]
    fn fragments_are_bijective() {
        let lanes = |n: usize| (0..32).flat_map(move |l| (0..n).map(move |e| (l, e)));
        for q in 0..4 {
            let mine = |n: usize| lanes(n).filter(move |&(l, _)| quad_pair(l) == q);
            for layout in [Layout::Row, Layout::Col] {
                covers(8, 4, mine(4).map(|(l, e)| m8n8k4_a(layout, l, e)));
                covers(4, 8, mine(4).map(|(l, e)| m8n8k4_b(layout, l, e)));
            }
            covers(8, 8, mine(8).map(|(l, e)| m8n8k4_c_f16(l, e)));
            covers(8, 8, mine(8).map(|(l, e)| m8n8k4_c_f32(l, e)));
        }
        for (per, k) in [(1, 4), (1, 8), (2, 8), (2, 16), (4, 16), (4, 32)] {
            let registers = k / 4 / per;
            covers(16, k, lanes(2 * registers * per).map(|(l, e)| m16n8_a(per, l, e / per, e % per)));
            covers(k, 8, lanes(registers * per).map(|(l, e)| n8_b(per, l, e / per, e % per)));
        }
        covers(8, 16, lanes(4).map(|(l, e)| m8n8_a(4, l, e)));
        covers(16, 8, lanes(4).map(|(l, e)| n8_c(l, e)));
        covers(8, 8, lanes(2).map(|(l, e)| n8_c(l, e)));
        covers(8, 4, lanes(1).map(|(l, r)| f64_a(8, l, r)));
        for k in [4, 8, 16] {
            covers(16, k, lanes(k / 2).map(|(l, r)| f64_a(16, l, r)));
            covers(k, 8, lanes(k / 4).map(|(l, r)| f64_b(l, r)));
        }
    }

    #[test]
    fn matrices_move() {
        let rows: [[u16; 8]; 8] = std::array::from_fn(|r| std::array::from_fn(|c| (16 * r + c) as u16));
        let plain = load_matrix(false, &rows);
        assert_eq!(plain[5], 0x0013_0012, "lane 5 holds row 1, columns 2 and 3");
        assert_eq!(load_matrix(true, &rows)[5], 0x0031_0021, "transposed: column 1, rows 2 and 3");
        for trans in [false, true] {
            assert_eq!(store_matrix(trans, &load_matrix(trans, &rows)), rows);
        }
        assert_eq!(transpose_matrix(&plain), load_matrix(true, &rows));
        assert_eq!(transpose_matrix(&transpose_matrix(&plain)), plain);
        assert_eq!(matrix_row_of_address(29), (3, 5));
    }
}
