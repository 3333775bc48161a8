//! Rules 18 to 22.

use super::{codes, errors, kernel};
use crate::kernel::Kernel;
use crate::layout::RegLayout;
use pretty_assertions::assert_eq;

fn tile(declaration: &str) -> Vec<String> {
    let found = errors(&format!("kernel t() schedule {{ threads 32 }} {{ {declaration} }}"));
    found.iter().map(|f| f[..5].to_owned()).collect()
}

#[test]
fn register_layouts() {
    assert_eq!(tile("var t = reg f32[32, 4] layout (32,4):(1,32)"), [""; 0]);
    assert_eq!(tile("var t = reg f32[32, 3] layout (32,4):(1,32)"), [""; 0], "a thread has three registers");
    assert_eq!(tile("var t = reg f32[24, 4] layout (32,4):(1,32)"), ["E0301"], "some threads have none");
    assert_eq!(tile("var t = reg f32[32, 3] layout (32,8):(1,32)"), ["E0302"]);
    assert_eq!(tile("var t = reg f32[32, 8] layout (32,4):(1,32)"), ["E0302"]);
    assert_eq!(tile("var t = reg f32[32, 4] layout bits 7 thread(1,2,4,8,16) value(32,32)"), ["E0303"]);
    assert_eq!(tile("var t = reg f32[32, 4] layout (16,8):(1,16)"), ["E0304"]);
    assert_eq!(tile("var t = reg f32[32, 4] layout (64,2):(1,64)"), ["E0304"]);
}

#[test]
fn shared_memory_layouts() {
    assert_eq!(tile("let t = smem f16[64, 32] layout (64,32):(32,1) swizzle<2,3,3>"), [""; 0]);
    assert_eq!(tile("let t = smem f16[64, 32] layout (32,64):(64,1)"), ["E0302"]);
    assert_eq!(tile("let t = smem f16[64, 32] layout (64,32):(64,1)"), ["E0305"], "gaps");
    assert_eq!(tile("let t = smem f16[3, 32] layout (4,32):(32,1)"), [""; 0]);
    assert_eq!(tile("let t = smem f16[64, 3] layout (64,8):(8,1)"), ["E0302"]);
    assert_eq!(tile("let t = smem f16[4, 2] layout bits ((1,2),(2))"), ["E0305"], "two elements share a place");
    // Panels that follow one another as they end.
    assert_eq!(tile("let t = smem f16[176, 128] layout (256,(64,2)):(64,(1,11264)) swizzle<3,3,3>"), [""; 0]);
    assert_eq!(
        tile("let t = smem f16[192, 128] layout (256,(64,2)):(64,(1,11264)) swizzle<3,3,3>"),
        ["E0305"],
        "overlap"
    );
    assert_eq!(tile("let t = smem f16[172, 128] layout (256,(64,2)):(64,(1,11008)) swizzle<3,3,3>"), ["E0302"], "1024");
}

#[test]
fn copies_between_layouts() {
    let regs = |to: &str| {
        tile(&format!("var s = reg f32[32, 4] layout (32,4):(1,32)\nvar t = reg f32[32, 4] layout {to}\ncopy s -> t"))
    };
    assert_eq!(regs("(32,4):(4,1)"), [""; 0]);
    assert_eq!(regs("(16,8):(1,16)"), ["E0304", "E0304"], "the tile, and the copy");
    let threads = |layout: &str| {
        let body = format!("let t = smem f32[32, 4]\ncopy A[0.., 0..] -> t threads {layout}");
        let source = format!("kernel t(A: gmem f32[M, K]) schedule {{ threads 32 }} {{ {body} }}");
        errors(&source).iter().map(|f| f[..5].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(threads("(32,4):(1,32)"), [""; 0]);
    assert_eq!(threads("(32,2):(1,32)"), ["E0303"]);
    assert_eq!(threads("(64,2):(1,64)"), ["E0304"]);
}

/// A product of 32x32x8 by two warps with hand-written fragments of m8n8k4: A by rows of k, B by columns of n, each warp 16
/// of the 32 columns. Tile coordinates are the atom's, then repetitions, then the warp.
fn volta() -> Kernel {
    kernel(
        "kernel t() schedule { threads 64 } {
            var a = reg f16[32, 8] layout bits 8 thread(1,2,8,0,4,0) value(32,64,128,16)
            var b = reg f16[8, 32] layout bits 8 thread(1,2,0,64,32,128) value(8,16,4)
            var c = reg f32[32, 32] layout bits 10 thread(1,64,8,256,4,512) value(32,2,128,16)
            c = mma<m8n8k4>(a, b, c)
        }",
    )
}

/// The transposed product by the same instructions: tiles and layouts transposed, operands exchanged.
fn swapped() -> Kernel {
    kernel(
        "kernel t() schedule { threads 64 } {
            var a = reg f16[32, 8] layout bits 8 thread(32,64,0,8,4,16) value(1,2,128)
            var b = reg f16[8, 32] layout bits 8 thread(8,16,64,0,32,0) value(1,2,4,128)
            var c = reg f32[32, 32] layout bits 10 thread(32,2,256,8,128,16) value(1,64,4,512)
            c = mma<m8n8k4, swap>(a, b, c)
        }",
    )
}

#[test]
fn fragments_of_the_instruction_are_accepted() {
    assert_eq!(codes(&volta()), [""; 0]);
    assert_eq!(codes(&swapped()), [""; 0]);
}

/// Every element of C gets every step of the reduction once, by executing the instruction lane by lane: what the proof
/// promises.
fn computes(k: &Kernel, swap: bool) -> bool {
    let layout = |name: &str| {
        let v = k.values.keys().find(|&v| k.values[v].name == name).unwrap();
        k.tile_ty(v).unwrap().reg_layout.clone().unwrap()
    };
    let (a, b, c) = (layout("a"), layout("b"), layout("c"));
    // The instruction's operands as functions to (m, k), (k, n), (m, n).
    let (ia, ib, low_a, low_b) = if swap { (&b, &a, 3, 5) } else { (&a, &b, 5, 3) };
    let at = |l: &RegLayout, low: u32, thread: u64, value: u64| {
        let i = l.at(thread, value);
        let (x, y) = (i & ((1 << low) - 1), i >> low);
        if swap { (y, x) } else { (x, y) }
    };
    let row = crate::atoms::Atom::from_name("m8n8k4").unwrap().row();
    let coordinate = |f: &crate::atoms::Fragment, lane: u64, value: u64| {
        let (mut m, mut n, mut kk) = (0u64, 0u64, 0u64);
        let bits = f.lane.iter().zip(0..).map(|(b, i)| (b, lane >> i & 1));
        for (b, on) in bits.chain(f.value.iter().zip(0..).map(|(b, i)| (b, value >> i & 1))) {
            match *b {
                crate::atoms::Bit::M(i) => m |= on << i,
                crate::atoms::Bit::N(i) => n |= on << i,
                crate::atoms::Bit::K(i) => kk |= on << i,
                crate::atoms::Bit::Same => {}
            }
        }
        (m, n, kk)
    };
    let ok = |fa: &crate::atoms::Fragment, fb: &crate::atoms::Fragment| {
        let fc = &row.types[0].c;
        (0..2u64).all(|warp| {
            (0..1u64 << c.value_bits()).step_by(1 << fc.value.len()).all(|rc| {
                // Steps of the reduction that reach each accumulator of this repetition.
                let mut steps = vec![std::collections::BTreeSet::new(); 256];
                for ra in (0..1u64 << ia.value_bits()).step_by(1 << fa.value.len()) {
                    for rb in (0..1u64 << ib.value_bits()).step_by(1 << fb.value.len()) {
                        let base =
                            (at(ia, low_a, warp << 5, ra), at(ib, low_b, warp << 5, rb), at(&c, 5, warp << 5, rc));
                        if base.0.0 != base.2.0 || base.1.1 != base.2.1 || base.0.1 != base.1.0 {
                            continue;
                        }
                        for lane in 0..32 {
                            for vc in 0..8 {
                                let (m, n, _) = coordinate(fc, lane, vc);
                                let here = at(&c, 5, warp << 5 | lane, rc | vc);
                                for la in 0..32 {
                                    for va in 0..4 {
                                        let (m2, _, kk) = coordinate(fa, la, va);
                                        if m2 != m {
                                            continue;
                                        }
                                        let x = at(ia, low_a, warp << 5 | la, ra | va);
                                        let y = (0..32u64)
                                            .flat_map(|l| (0..4u64).map(move |v| (l, v)))
                                            .filter(|&(l, v)| {
                                                let (_, n2, k2) = coordinate(fb, l, v);
                                                n2 == n && k2 == kk
                                            })
                                            .map(|(l, v)| at(ib, low_b, warp << 5 | l, rb | v));
                                        for y in y {
                                            if x.0 != here.0 || y.1 != here.1 || x.1 != y.0 {
                                                return false;
                                            }
                                        }
                                        steps[(lane << 3 | vc) as usize].insert(x.1);
                                    }
                                }
                            }
                        }
                    }
                }
                steps.iter().all(|s| s.len() == 8)
            })
        })
    };
    row.a.iter().any(|fa| row.b.iter().any(|fb| ok(fa, fb)))
}

#[test]
fn what_is_accepted_computes_the_product() {
    assert!(computes(&volta(), false));
    assert!(computes(&swapped(), true));
}

/// The layouts with two columns exchanged, or one changed, and whether the verifier still accepts them: it must say what
/// executing the instruction says.
#[test]
fn the_proof_agrees_with_execution() {
    let mut refused = 0;
    for name in ["a", "b", "c"] {
        let base = volta();
        let v = base.values.keys().find(|&v| base.values[v].name == name).unwrap();
        let layout = base.tile_ty(v).unwrap().reg_layout.clone().unwrap();
        let columns: Vec<u64> = layout.thread().cols().iter().chain(layout.value().cols()).copied().collect();
        for i in 0..columns.len() {
            for j in 0..i {
                let mut swapped = columns.clone();
                swapped.swap(i, j);
                let (thread, value) = swapped.split_at(6);
                let mut k = volta();
                k.tile_ty_mut(v).unwrap().reg_layout =
                    RegLayout::new(value.to_vec(), thread.to_vec(), layout.out_bits());
                let accepted = codes(&k).is_empty();
                assert_eq!(accepted, computes(&k, false), "`{name}` with columns {i} and {j} exchanged");
                refused += usize::from(!accepted);
            }
        }
    }
    assert!(refused > 100, "most exchanges break the product, {refused} did");
}

#[test]
fn the_bit_that_disagrees_is_named() {
    let source = "kernel t() schedule { threads 64 } {
        var a = reg f16[32, 8] layout bits 8 thread(1,2,8,0,4,0) value(32,64,128,16)
        var b = reg f16[8, 32] layout bits 8 thread(1,2,0,64,32,128) value(8,16,4)
        var c = reg f32[32, 32] layout bits 10 thread(2,64,8,256,4,512) value(32,1,128,16)
        c = mma<m8n8k4>(a, b, c)
    }";
    let found = errors(source);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("E0306 at `mma<m8n8k4>(a, b, c)`"), "{found:?}");
    assert!(
        found[0].contains("of `c` is bit 1 of the instruction's m and moves by 1, another operand's by 2"),
        "{found:?}"
    );
}

#[test]
fn types_that_the_atom_lacks() {
    let source = "kernel t() {
        var a = reg bf16[16, 4]
        var b = reg bf16[4, 16]
        var c = reg f32[16, 16]
        c = mma<m8n8k4>(a, b, c)
    }";
    assert_eq!(errors(source).iter().map(|f| &f[..5]).collect::<Vec<_>>(), ["E0408"]);
}

/// A product of 128x16x16 by a warpgroup, A in registers: coordinates are the instruction's, then repetitions.
fn hopper(swap: bool) -> Kernel {
    kernel(if swap {
        "kernel t() schedule { threads 128 } {
            let a = smem tf32[16, 16]
            var b = reg tf32[16, 128] layout bits 11 thread(1,2,16,32,64,256,512) value(128,4,1024,8)
            var c = reg f32[16, 128] layout bits 11 thread(2,4,16,32,64,256,512) value(1,128,8,1024)
            c = mma<m64k8_tf32, swap>(a, b, c)
        }"
    } else {
        "kernel t() schedule { threads 128 } {
            var a = reg tf32[128, 16] layout bits 11 thread(128,256,1,2,4,16,32) value(8,512,64,1024)
            let b = smem tf32[16, 16]
            var c = reg f32[128, 16] layout bits 11 thread(256,512,1,2,4,16,32) value(128,8,1024,64)
            c = mma<m64k8_tf32>(a, b, c)
        }"
    })
}

fn reg_layout(k: &Kernel, name: &str) -> RegLayout {
    let v = k.values.keys().find(|&v| k.values[v].name == name).unwrap();
    k.tile_ty(v).unwrap().reg_layout.clone().unwrap()
}

/// Whether for every repetition of C there are repetitions of A, one for each step of the reduction upwards, whose rows are C's: by all
/// elements of all threads.
fn rows_meet(k: &Kernel) -> bool {
    let (a, c) = (reg_layout(k, "a"), reg_layout(k, "c"));
    // Row and step, by the lanes of a group (PTX ISA 9.7.15.5.1, with four warps of 16 rows).
    let of_a = |t: u64, v: u64| (16 * (t / 32) + t % 32 / 4 + 8 * (v & 1), t % 4 + 4 * (v >> 1 & 1));
    let of_c = |t: u64, v: u64| 16 * (t / 32) + t % 32 / 4 + 8 * (v >> 1 & 1);
    let split = |i: u64| (i & 127, i >> 7);
    (0..16u64).step_by(4).all(|rc| {
        let row_of = |m: u64| (0..128).flat_map(|t| (0..4).map(move |v| (t, v))).find(|&(t, v)| of_c(t, v) == m);
        let rows: Vec<u64> = (0..64).map(|m| row_of(m).map_or(0, |(t, v)| split(c.at(t, rc | v)).0)).collect();
        let mut steps: Vec<u64> = (0..16u64)
            .step_by(4)
            .filter(|&ra| split(a.at(0, ra)).0 == rows[0])
            .filter_map(|ra| {
                let step = split(a.at(0, ra)).1;
                let right = |(t, v)| {
                    let (m, kk) = of_a(t, v);
                    split(a.at(t, ra | v)) == (rows[m as usize], step + kk)
                };
                (0..128).flat_map(|t| (0..4).map(move |v| (t, v))).all(right).then_some(step)
            })
            .collect();
        steps.sort_unstable();
        steps == [0, 8]
    })
}

#[test]
fn operands_of_warpgroups_in_registers_have_the_rows_of_the_sums() {
    assert_eq!(codes(&hopper(false)), [""; 0]);
    assert_eq!(codes(&hopper(true)), [""; 0]);
    assert!(rows_meet(&hopper(false)));
    let layout = reg_layout(&hopper(false), "a");
    let columns: Vec<u64> = layout.thread().cols().iter().chain(layout.value().cols()).copied().collect();
    let mut refused = 0;
    for i in 0..columns.len() {
        for j in 0..i {
            let mut swapped = columns.clone();
            swapped.swap(i, j);
            let (thread, value) = swapped.split_at(7);
            let mut k = hopper(false);
            let v = k.values.keys().find(|&v| k.values[v].name == "a").unwrap();
            k.tile_ty_mut(v).unwrap().reg_layout = RegLayout::new(value.to_vec(), thread.to_vec(), layout.out_bits());
            let accepted = codes(&k).is_empty();
            assert_eq!(accepted, rows_meet(&k), "`a` with columns {i} and {j} exchanged");
            refused += usize::from(!accepted);
        }
    }
    assert!(refused > 50, "most exchanges break the product, {refused} did");
}

#[test]
fn warpgroups_read_their_second_operand_from_shared_memory() {
    let other = "kernel t() schedule { threads 128 } {
        let a = smem f16[64, 16]
        var b = reg f16[16, 64]
        var c = reg f32[64, 64]
        c = mma<m64k16>(a, b, c)
    }";
    let found = errors(other);
    assert!(found.len() == 1 && found[0].contains("`m64k16` reads `b` from shared memory alone"), "{found:#?}");
    assert_eq!(errors(&other.replace("m64k16>", "m64k16, swap>")), [""; 0]);
}
