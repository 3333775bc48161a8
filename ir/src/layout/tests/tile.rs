//! Register and shared-memory layouts: meaning, CuTe forms, text both ways.

use super::cases;
use super::f2::any_map;
use crate::layout::{
    F2Map, RegLayout, SmemLayout, Swizzle, parse_cute, parse_reg_layout, parse_reg_layout_prefix, parse_smem_layout,
    parse_smem_layout_prefix,
};

fn smem(text: &str) -> SmemLayout {
    parse_smem_layout(text).unwrap()
}

#[test]
fn register_layout_means_its_cute_form() {
    let text = "((4,8,4),(8,4)):((1024,1,8),(128,32))";
    let cute = parse_cute(text).unwrap();
    let reg = parse_reg_layout(text).unwrap();
    assert_eq!((reg.thread_bits(), reg.value_bits(), reg.out_bits()), (7, 5, 12));
    for thread in 0..128 {
        for value in 0..32 {
            let at = cute.at_coords(&[thread, value]).unwrap();
            assert_eq!(reg.at(thread, value), at);
            assert_eq!(reg.coords(thread, value, &[7, 5]), [at & 127, at >> 7]);
        }
    }
    // Canonical: lanes 2..5 and the warps are one run.
    assert_eq!(reg.to_string(), "((4,32),(8,4)):((1024,1),(128,32))");
    assert!(reg.covers_tile() && !reg.is_replicated() && reg.is_injective_per_thread());
    assert_eq!((reg.thread_col(0), reg.value_col(0), reg.value_col(9)), (1024, 128, 0));
}

#[test]
fn replication_and_coverage_count_holders() {
    cases(600, |u| {
        let (v, t, n) = (u.int_in_range(0..=3)?, u.int_in_range(0..=3)?, u.int_in_range(0..=4)?);
        let (value, thread) = (any_map(u, v, n)?, any_map(u, t, n)?);
        let reg = RegLayout::new(value.cols().to_vec(), thread.cols().to_vec(), n).unwrap();
        let mut holders = vec![0; 1 << n];
        let mut twice_in_a_thread = false;
        for thread in 0..1u64 << t {
            let mut mine = std::collections::BTreeSet::new();
            for value in 0..1u64 << v {
                holders[reg.at(thread, value) as usize] += 1;
                twice_in_a_thread |= !mine.insert(reg.at(thread, value));
            }
        }
        assert_eq!(reg.covers_tile(), holders.iter().all(|&h| h > 0));
        assert_eq!(reg.is_replicated(), holders.iter().any(|&h| h > 1));
        assert_eq!(reg.is_injective_per_thread(), !twice_in_a_thread);
        assert_eq!(parse_reg_layout(&reg.to_string()), Ok(reg.clone()), "{reg}");
        if let Some(c) = reg.to_cute() {
            assert_eq!(RegLayout::from_cute(&c), Ok(reg));
        }
        Ok(())
    });
}

#[test]
fn register_text_has_both_forms() {
    // A broadcast lane, a tile larger than what is covered, and overlapping columns.
    for text in [
        "((8,2,2),4):((1,0,8),16)",
        "(32,1):(1,0)",
        "(1,4):(0,1)",
        "bits 12 thread(0x1,0x2,0x40) value(0x4,0x8,0x10)",
        "bits 3 thread(0x1,0x3) value()",
        "bits 0 thread() value()",
    ] {
        let reg = parse_reg_layout(text).unwrap();
        let canonical = if text.starts_with("bits 0") { "(1,1):(0,0)" } else { text };
        assert_eq!(reg.to_string(), canonical);
        let (again, used) = parse_reg_layout_prefix(&format!("  {text} = 0")).unwrap();
        assert_eq!((again, used), (reg, text.len() + 2));
    }
    for (text, offset, needle) in [
        ("(2,2,2):(1,2,4)", 0, "two modes"),
        ("4:1", 0, "two modes"),
        ("(3,2):(1,4)", 0, "power of two"),
        ("(4,4):(1,2)", 0, "carry"),
        ("bits 2 thread(0x4) value()", 0, "fit"),
        ("bits 2 threads(1)", 7, "`thread("),
        ("bits 99 thread()", 5, "larger than 63"),
        ("bits 2 thread(1 2)", 16, "`,` or `)`"),
    ] {
        let e = parse_reg_layout(text).unwrap_err();
        assert!(e.offset == offset && e.message.contains(needle), "{text}: {e}");
    }
}

#[test]
fn shared_layout_means_its_cute_form() {
    let cute = parse_cute("(128,32):(32,1)").unwrap();
    let swizzle = Swizzle::new(2, 3, 3).unwrap();
    let l = smem("(128,32):(32,1) swizzle<2,3,3>");
    assert_eq!(SmemLayout::from_cute(Some(swizzle), &cute), Ok(l.clone()));
    for i in 0..128 {
        for j in 0..32 {
            assert_eq!(l.offset(&[i, j]), swizzle.apply(32 * i + j));
        }
    }
    assert_eq!((l.dims(), l.dim_bits()), (vec![128, 32], &[7, 5][..]));
    assert!(l.is_bijective());
    assert_eq!(l.to_cute(), Some((Some(swizzle), cute)));
    assert!(!smem("(4,4):(0,1)").is_bijective());
    assert!(!smem("(4,4):(8,1)").is_bijective(), "gaps");
}

#[test]
fn natural_orders_the_dimensions() {
    let row = SmemLayout::natural(&[7, 5], &[1, 0]).unwrap();
    assert_eq!(row.to_string(), "(128,32):(32,1)");
    let col = SmemLayout::natural(&[7, 5], &[0, 1]).unwrap();
    assert_eq!(col.to_string(), "(128,32):(1,128)");
    let three = SmemLayout::natural(&[2, 0, 3], &[2, 1, 0]).unwrap();
    assert_eq!(three.to_string(), "(4,1,8):(8,0,1)");
    for order in [&[0, 0][..], &[0], &[0, 2], &[0, 1, 2]] {
        assert_eq!(SmemLayout::natural(&[7, 5], order), None);
    }
    assert_eq!(SmemLayout::natural(&[40, 40], &[0, 1]), None);
}

#[test]
fn an_xor_term_changes_one_offset_bit() {
    cases(600, |u| {
        let dims = vec![u.int_in_range(1..=3)?, u.int_in_range(1..=3)?];
        let bits = dims[0] + dims[1];
        let l = SmemLayout::new(any_map(u, bits, bits)?, dims).unwrap();
        let (slot, from) = (u.int_in_range(0..=bits - 1)?, u.int_in_range(0..=bits - 1)?);
        let Some(x) = l.xor_term(slot, from) else {
            assert_eq!(slot, from);
            return Ok(());
        };
        for i in 0..l.dims()[0] {
            for j in 0..l.dims()[1] {
                let o = l.offset(&[i, j]);
                assert_eq!(x.offset(&[i, j]), o ^ (o >> from & 1) << slot);
            }
        }
        assert_eq!(x.is_bijective() || l.offset_bits() < bits, l.is_bijective() || l.offset_bits() < bits);
        assert_eq!(x.xor_term(slot, from).as_ref(), Some(&l));
        assert_eq!(parse_smem_layout(&x.to_string()), Ok(x.clone()), "{x}");
        Ok(())
    });
    let l = smem("(4,4):(4,1)");
    assert_eq!((l.xor_term(1, 1), l.xor_term(63, 0), l.xor_term(0, 64)), (None, None, None));
}

#[test]
fn shared_text_has_both_forms() {
    for text in [
        "(128,32):(32,1)",
        "(128,32):(32,1) swizzle<2,3,3>",
        "(64,(8,4)):(8,(1,512))",
        "8:1",
        "bits ((0x20,0x48,0x88),(0x1,0x2,0x4,0x8,0x10))",
        "bits ((0x1,0x3,0x5),())",
    ] {
        let l = smem(text);
        let canonical = if text == "8:1" { "(8):(1)" } else { text };
        assert_eq!(l.to_string(), canonical);
        assert_eq!(smem(canonical), l);
        for after in ["", " swizzler", "\n swizzle<1,0,1>", " swizzle 3", ", x", " threads (1):(1)"] {
            let (again, used) = parse_smem_layout_prefix(&format!(" {text}{after}")).unwrap();
            assert_eq!((again, used), (l.clone(), text.len() + 1), "{text}{after}");
        }
    }
    for (text, offset, needle) in [
        ("(6,4):(4,1)", 0, "power of two"),
        ("(4,4):(4,1) swizzle<3,0,1>", 12, "invalid swizzle"),
        ("(4,4):(4,1) swizzle<1,0,1", 25, "`>`"),
        ("bits (1,2)", 6, "`(`"),
        ("bits ((1,2)", 11, "`,` or `)`"),
    ] {
        let e = parse_smem_layout(text).unwrap_err();
        assert!(e.offset == offset && e.message.contains(needle), "{text}: {e}");
    }
}

#[test]
fn parsers_survive_any_text() {
    let seeds = ["((4,8),2):((1,16),8) swizzle<2,3,-3>", "bits 12 thread(1,0x2) value(4)", "bits ((1,2),())"];
    cases(600, |u| {
        let mut bytes = u.choose(&seeds)?.as_bytes().to_vec();
        for _ in 0..u.int_in_range(1..=4)? {
            let i = u.choose_index(bytes.len())?;
            bytes[i] = *u.choose(b"()0189x:,<>- \xc3\xa9swbit")?;
        }
        let text = String::from_utf8_lossy(&bytes);
        for at in [parse_smem_layout_prefix(&text).map(|x| x.1), parse_reg_layout_prefix(&text).map(|x| x.1)] {
            let at = at.unwrap_or_else(|e| e.offset);
            assert!(text.is_char_boundary(at), "{text:?} at {at}");
        }
        Ok(())
    });
}

#[test]
fn layouts_refuse_what_does_not_fit() {
    assert_eq!(RegLayout::new(vec![4], vec![], 2), None);
    assert_eq!(RegLayout::new(vec![0; 40], vec![0; 40], 2), None);
    assert_eq!(SmemLayout::new(F2Map::identity(4), vec![2, 1]), None);
    assert_eq!(SmemLayout::new(F2Map::identity(0), vec![]), None);
    assert_eq!(SmemLayout::new(F2Map::identity(4), vec![u32::MAX, 5]), None);
}

#[test]
fn windows_are_some_of_the_registers() {
    // Sums of a warpgroup, 64 x 32: pairs of columns, rows 8 apart, then columns in steps of 8.
    let bits = [6, 5];
    let value = vec![1 << 6, 8, 1 << 9, 1 << 10];
    let sums = RegLayout::new(value, vec![1 << 7, 1 << 8, 1, 2, 4, 16, 32], 11).expect("a layout");
    for start in [0, 16] {
        let (part, registers) = sums.window(&bits, &[0, start], &[6, 4]).expect("it is a window");
        assert_eq!((part.out_bits(), part.value_bits(), registers.len()), (10, 3, 8));
        for thread in 0..128 {
            for (i, &v) in registers.iter().enumerate() {
                let (whole, own) = (sums.coords(thread, v as u64, &bits), part.coords(thread, i as u64, &[6, 4]));
                assert_eq!(whole, [own[0], own[1] + start], "thread {thread} register {v}");
            }
        }
    }
    // Rows are divided among threads; a window must start at a multiple of itself, inside.
    assert_eq!(sums.window(&bits, &[0, 0], &[5, 5]), None);
    assert_eq!(sums.window(&bits, &[0, 8], &[6, 4]), None);
    assert_eq!(sums.window(&bits, &[0, 32], &[6, 4]), None);
    assert_eq!(sums.window(&bits, &[0, 0], &[6, 6]), None);
}

#[test]
fn windows_begin_anywhere_along_what_a_thread_owns() {
    // 16 rows in registers, of which lanes have two neighbours each.
    let layout = RegLayout::new(vec![16, 1, 2, 4, 8], vec![32, 64, 128, 256, 512], 10).expect("columns fit");
    for start in 0..=8 {
        let (part, registers) = layout.window(&[4, 6], &[start, 0], &[3, 6]).expect("it is a window");
        for (thread, value) in (0..32).flat_map(|t| (0..16).map(move |v| (t, v))) {
            let whole = layout.coords(thread, registers[value as usize] as u64, &[4, 6]);
            let own = part.coords(thread, value, &[3, 6]);
            assert_eq!(whole, [own[0] + start, own[1]], "start {start}, thread {thread}, value {value}");
        }
    }
    assert_eq!(layout.window(&[4, 6], &[9, 0], &[3, 6]), None, "it goes on behind the tile");
    assert_eq!(layout.window(&[4, 6], &[0, 3], &[4, 5]), None, "lanes share out the columns");
    // A thread has all rows, but the last bit of one is in the bits of another.
    let mixed = RegLayout::new(vec![16, 3, 2, 4, 8], vec![32, 64, 128, 256, 512], 10).expect("columns fit");
    assert_eq!(mixed.window(&[4, 6], &[1, 0], &[3, 6]), None);
    assert!(mixed.window(&[4, 6], &[8, 0], &[3, 6]).is_some());
}

#[test]
fn windows_of_a_layout_of_windows_have_that_layout() {
    // A of m16n8k16, 16 x 16, and a tile of 32 x 64 of which it is every window.
    let fragment = RegLayout::new(vec![1 << 4, 8, 1 << 7], vec![1 << 5, 1 << 6, 1, 2, 4], 8).expect("a layout");
    let whole = fragment.of_windows(&[4, 4], &[5, 6]).expect("it fits");
    assert_eq!((whole.out_bits(), whole.value_bits()), (11, 6));
    let mut met = std::collections::BTreeSet::new();
    for (row, column) in [0, 16].into_iter().flat_map(|r| [0, 16, 32, 48].map(|c| (r, c))) {
        let (part, registers) = whole.window(&[5, 6], &[row, column], &[4, 4]).expect("it is a window");
        assert_eq!(part, fragment);
        assert!(registers.into_iter().all(|v| met.insert(v)));
    }
    assert_eq!(met.len(), 1 << whole.value_bits());
    assert_eq!(fragment.of_windows(&[4, 4], &[5, 3]), None);
    assert_eq!(fragment.of_windows(&[4, 5], &[5, 5]), None);
}

#[test]
fn a_transposed_layout_has_the_coordinates_the_other_way_round() {
    let layout = RegLayout::new(vec![1 << 4, 8, 1 << 6], vec![1 << 5, 0, 1, 2, 4], 7).expect("a layout");
    let transposed = layout.transposed(4).expect("it has so many rows");
    for (thread, value) in (0..32).flat_map(|t| (0..8).map(move |v| (t, v))) {
        let mut here = layout.coords(thread, value, &[4, 3]);
        here.reverse();
        assert_eq!(transposed.coords(thread, value, &[3, 4]), here);
    }
    assert_eq!(transposed.transposed(3), Some(layout.clone()));
    assert_eq!(layout.transposed(8), None);
}

/// Panels at a distance that is not a power of two: CuTe notation, and back from the text.
#[test]
fn panels_have_a_pitch() {
    for (text, shape) in [
        ("(256,(64,2)):(64,(1,11264)) swizzle<3,3,3>", [176u64, 128]),
        ("(128,(64,4)):(64,(1,5120))", [80, 200]),
        ("((64,2),256):((1,11264),64) swizzle<3,3,3>", [128, 176]),
        ("bits ((0x41,0x84),(0x1,0x2,0x4,0x100)) pitch 8 240", [4, 16]),
    ] {
        let layout = parse_smem_layout(text).unwrap();
        assert_eq!(layout.to_string(), text);
        let pitch = layout.pitch().unwrap();
        for (i, j) in (0..shape[0]).flat_map(|i| (0..shape[1]).map(move |j| [i, j])).map(|[i, j]| (i, j)) {
            let place = layout.place(&[i, j]);
            let panel = place >> pitch.bit;
            assert_eq!(layout.offset(&[i, j]), place - (panel << pitch.bit) + panel * pitch.stride);
        }
    }
    // In CuTe's own words.
    let plain = parse_cute("(128,(64,4)):(64,(1,5120))").unwrap();
    let layout = parse_smem_layout("(128,(64,4)):(64,(1,5120))").unwrap();
    for (i, j) in (0..80).flat_map(|i| (0..200).map(move |j| (i, j))) {
        assert_eq!(Some(layout.offset(&[i, j])), plain.at_coords(&[i, j]));
    }
    // A stride between two powers of two that nothing overlaps is a map of bits.
    assert_eq!(parse_smem_layout("(2,2):(3,8)").map(|l| l.pitch()).ok(), Some(None));
    // Two strides that are none, a pitch as long as what is inside, and columns on both sides of it.
    for text in [
        "(64,(64,2)):(80,(1,5120))",
        "bits ((0x1,0x2,0x4)) pitch 2 4",
        "bits ((0x1,0x2,0x6)) pitch 2 3",
        "bits ((0x1,0x2)) pitch 2 3",
    ] {
        assert!(parse_smem_layout(text).is_err(), "{text}");
    }
    assert_eq!(layout.xor_term(0, 6), None);
}
