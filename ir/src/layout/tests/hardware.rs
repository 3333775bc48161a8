//! Panels, boxes and descriptors, element by element against where the hardware's units put and seek them.

use crate::bits::Bits;
use crate::layout::hardware::{Exchange, boxes, descriptor, panels, plain_offset};
use crate::layout::{SmemLayout, extent_bits, parse_smem_layout};

const BYTE: Bits = Bits::new(8);
const HALF: Bits = Bits::new(16);
const WORD: Bits = Bits::new(32);

/// A tile of 16-bit elements whose rows of `columns` are contiguous.
fn tile(rows: u32, columns: u32) -> SmemLayout {
    panels(&[1 << rows, 1 << columns], 1, HALF, true).expect("a layout")
}

/// Element by element: the box's bytes are where TMA puts them.
#[test]
fn boxes_cover_the_tile_where_the_unit_writes() {
    for (rows, columns, contiguous, bits) in [
        (128, 64, 1, 16),
        (64, 256, 1, 16),
        (64, 256, 0, 16),
        (128, 16, 1, 16),
        (32, 32, 0, 32),
        (256, 128, 1, 8),
        (8, 64, 1, 16),
        (64, 160, 1, 16),
        (64, 176, 1, 16),
        (160, 64, 1, 16),
        (192, 32, 0, 32),
        (192, 1, 0, 32),
        (72, 32, 1, 32),
        (64, 48, 1, 16),
        // Two elements share a byte.
        (64, 512, 1, 4),
        (128, 128, 0, 4),
        (96, 64, 1, 4),
    ] {
        for exact in [true, false] {
            assert_boxes([rows, columns], contiguous, Bits::new(bits), exact);
        }
    }
    // Panels of 192 rows or columns, and of 96, in pieces of 64, and of 32.
    for (rows, columns, contiguous, bits) in [(192, 128, 1, 16), (192, 256, 1, 32), (128, 192, 0, 16), (96, 256, 1, 8)]
    {
        assert_boxes([rows, columns], contiguous, Bits::new(bits), true);
        assert_boxes([rows, columns], contiguous, Bits::new(bits), false);
    }
    // Panels of whatever multiple of eight rows.
    for (rows, columns, contiguous, bits) in
        [(176, 128, 1, 16), (80, 80, 1, 16), (96, 96, 1, 16), (160, 256, 1, 16), (192, 176, 0, 16), (176, 192, 1, 8)]
    {
        assert_boxes([rows, columns], contiguous, Bits::new(bits), false);
    }
}

/// Where the bit of a plain address is.
fn moved(exchange: Exchange, bit: u64) -> u64 {
    8 * exchange.apply(bit / 8) + bit % 8
}

fn assert_boxes(shape: [u64; 2], contiguous: usize, elem: Bits, exact: bool) {
    let layout = panels(&shape, contiguous, elem, exact).expect("a layout");
    let boxes = boxes(&layout, &shape, elem).expect("boxes");
    let bits = u64::from(elem.get());
    let inside = |coords: &[u64]| coords.iter().zip(&shape).all(|(at, n)| at < n);
    let mut seen = 0;
    for (start, offset) in &boxes.places {
        for i in 0..boxes.extents.iter().product::<u64>() {
            let (mut coords, mut rest) = (start.clone(), i);
            for (&d, &extent) in boxes.dims.iter().zip(&boxes.extents) {
                coords[d] += rest % extent;
                rest /= extent;
            }
            let written = moved(boxes.exchange, 8 * offset + i * bits);
            assert_eq!(layout.offset(&coords) * bits, written, "{coords:?}");
            seen += u64::from(inside(&coords));
            assert!(inside(&coords) || boxes.beyond, "{coords:?}");
            assert!(written < 8 * boxes.bytes(elem), "{coords:?}");
        }
    }
    assert_eq!(seen, shape.iter().product::<u64>());
    let row = elem.bytes_of(shape[contiguous]);
    assert_eq!(boxes.beyond, !exact && !row.is_multiple_of(row.next_power_of_two().min(128)));
    assert!(boxes.bytes(elem) >= elem.bytes_of(layout.span(&shape).expect("its extents")));
}

/// Few rows are not swizzled, since a swizzle repeats after eight.
#[test]
fn few_rows_are_plain() {
    for (shape, contiguous) in [([64, 1], 0), ([1, 256], 1), ([32, 1], 0), ([4, 64], 1)] {
        assert_boxes(shape, contiguous, WORD, false);
        let layout = panels(&shape, contiguous, WORD, false).expect("a layout");
        assert_eq!(boxes(&layout, &shape, WORD).map(|b| (b.exchange, b.places.len())), Some((Exchange::Plain, 1)));
        assert_eq!(descriptor(&layout, WORD, (contiguous, 5), (1 - contiguous, 0)), None);
    }
    // Eight rows are exchanged; a box has 256 elements of a row at most.
    let eight = panels(&[8, 64], 1, WORD, false).expect("a layout");
    assert_eq!(boxes(&eight, &[8, 64], WORD).map(|b| b.exchange), Some(Exchange::Bytes128));
    assert!(panels(&[1, 512], 1, WORD, false).is_none_or(|l| boxes(&l, &[1, 512], WORD).is_none()));
}

/// Element by element: the operand is where the manual's canonical layouts say.
#[test]
fn descriptors_reach_the_elements() {
    // Along the reduction: 128 rows, 64 deep.
    let a = tile(7, 6);
    let d = descriptor(&a, HALF, (0, 6), (1, 4)).expect("a descriptor");
    assert_eq!((d.transposed, d.stride, d.exchange), (false, 1024, Exchange::Bytes128));
    for (m, k) in (0..64).flat_map(|m| (0..16).map(move |k| (m, k))) {
        let start = plain_offset(&a, HALF, d.exchange, &[64, 32]);
        let at = d.exchange.apply(start + m % 8 * 128 + m / 8 * d.stride + k * 2);
        assert_eq!(a.offset(&[64 + m, 32 + k]) * 2, at);
    }
    // Across it: 64 deep, 256 columns in four panels.
    let b = tile(6, 8);
    let d = descriptor(&b, HALF, (1, 8), (0, 4)).expect("a descriptor");
    assert_eq!((d.transposed, d.leading, d.stride), (true, 64 * 128, 1024));
    for (k, n) in (0..16).flat_map(|k| (0..256).map(move |n| (k, n))) {
        let start = plain_offset(&b, HALF, d.exchange, &[16, 0]);
        let at = start + n % 64 * 2 + n / 64 * d.leading + k % 8 * 128 + k / 8 * d.stride;
        assert_eq!(b.offset(&[16 + k, n]) * 2, d.exchange.apply(at));
    }
    // Bytes are not transposed.
    let bytes = panels(&[64, 256], 1, BYTE, true).expect("a layout");
    assert_eq!(descriptor(&bytes, BYTE, (1, 8), (0, 5)), None);
}

/// Element by element: an operand in panels of any number of rows is where the descriptors of its steps say.
#[test]
fn descriptors_reach_panels_of_any_rows() {
    // Along the reduction, and across it.
    for (rows, columns, bits, k_bits) in [
        (176, 128, 16, 4),
        (160, 256, 16, 4),
        (80, 80, 16, 4),
        (96, 96, 16, 4),
        (192, 48, 16, 4),
        (176, 192, 8, 5),
        (160, 64, 16, 4),
        (64, 256, 4, 6),
        (160, 512, 4, 6),
    ] {
        for k in [0, 1].into_iter().filter(|&k| k == 1 || bits == 16) {
            assert_descriptor([rows, columns], k, Bits::new(bits), k_bits);
        }
    }
    // Panels that do not begin at multiples of the period.
    let odd = parse_smem_layout("(32,(64,2)):(64,(1,1600)) swizzle<3,3,3>").expect("a layout");
    assert_eq!((descriptor(&odd, HALF, (0, 5), (1, 4)), boxes(&odd, &[25, 128], HALF)), (None, None));
}

/// Rows are contiguous; dimension `k` is the reduction.
fn assert_descriptor(shape: [u64; 2], k: usize, elem: Bits, k_bits: u32) {
    let layout = panels(&shape, 1, elem, false).expect("a layout");
    let outer = shape[1 - k];
    let d = descriptor(&layout, elem, (1 - k, extent_bits(outer)), (k, k_bits)).expect("a descriptor");
    assert_eq!(d.transposed, k == 0);
    let at = |o: u64, i: u64| if k == 1 { [o, i] } else { [i, o] };
    let (bits, row) = (u64::from(elem.get()), d.exchange.row_bytes());
    for step in (0..shape[k]).step_by(1 << k_bits) {
        let start = plain_offset(&layout, elem, d.exchange, &at(0, step));
        for (o, i) in (0..outer).flat_map(|o| (0..1 << k_bits).map(move |i| (o, i))) {
            // Facts: PTX ISA 9.7.15.5.1, canonical layouts.
            let (rows, columns) = match d.transposed {
                false => (o % 8 * row + o / 8 * d.stride, i),
                true => {
                    let line = u64::from(elem.per(row as u32));
                    (o / line * d.leading + i % 8 * row + i / 8 * d.stride, o % line)
                }
            };
            let found = moved(d.exchange, 8 * (start + rows) + columns * bits);
            assert_eq!(layout.offset(&at(o, step + i)) * bits, found, "{shape:?} {o} {i}");
            if elem.makes_up(i, 1) {
                assert_eq!(8 * d.exchange.apply(start + d.plain(elem, o, i)), found, "{shape:?} {o} {i}");
            }
        }
    }
}

#[test]
fn other_layouts_are_not_theirs() {
    let natural = SmemLayout::natural(&[7, 6], &[0, 1]).expect("a layout");
    assert_eq!((boxes(&natural, &[128, 64], HALF), descriptor(&natural, HALF, (0, 6), (1, 4))), (None, None));
    let cute = parse_smem_layout("(128,64):(64,1) swizzle<3,3,4>").expect("a layout");
    assert_eq!(descriptor(&cute, HALF, (0, 6), (1, 4)), None);
}

/// Where windows of an operand may begin: with a period of the swizzle across rows, and along them with an instruction's depth or a panel.
#[test]
fn windows_of_operands_begin_where_a_descriptor_can() {
    let layout = panels(&[128, 256], 1, HALF, false).expect("a layout");
    // Rows are lines, or the reduction is across them.
    for (along, starts) in [(1, [(0, 0), (8, 16), (64, 48), (120, 240)]), (0, [(0, 0), (8, 64), (16, 128), (112, 192)])]
    {
        let bits = [3, 4];
        let d = descriptor(&layout, HALF, (1 - along, bits[0]), (along, bits[1])).expect("a descriptor");
        let reads = |rows: u64, columns: u64| d.reads_window(&layout, HALF, along, [rows, columns], ([8, 16], [8, 16]));
        for (rows, columns) in starts {
            assert!(reads(rows, columns), "{along}: {rows} x {columns}");
        }
        for (rows, columns) in [(4, 0), (1, 0), (0, 8), (12, 64)] {
            assert!(!reads(rows, columns), "{along}: {rows} x {columns}");
        }
        assert_eq!(reads(0, 16), along == 1);
    }
}

/// More rows than a box has are those of several boxes of equal extents.
#[test]
fn boxes_of_many_rows_divide_them() {
    for (rows, own) in [(512, 256), (576, 64), (320, 64), (384, 128), (264, 8)] {
        let layout = panels(&[rows, 64], 1, HALF, false).expect("a layout");
        let boxes = boxes(&layout, &[rows, 64], HALF).expect("boxes");
        assert_eq!((boxes.extents, boxes.places.len() as u64), (vec![64, own], rows / own), "{rows}");
        assert!(boxes.places.iter().all(|(start, offset)| *offset == start[0] * 128), "{rows}");
    }
    let odd = panels(&[260, 64], 1, HALF, false);
    assert!(odd.is_none_or(|layout| boxes(&layout, &[260, 64], HALF).is_none()));
}
