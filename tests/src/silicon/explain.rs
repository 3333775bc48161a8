//! A difference with its operands, for the person who corrects the model.

use super::compare::At;
use super::operand::{Elem, Width, register};
use super::probe::{Probe, Product};
use super::values::widen;
use std::fmt::Write as _;
use tilec_sim::numerics::mma::{Layout, layout};

/// Bits, and the number they are.
fn show(elem: Elem, bits: u64) -> String {
    match elem {
        Elem::Float(f) => {
            let digits = f.bits().div_ceil(4) as usize;
            let special = bits >> f.ignored >> f.fraction & ((1 << f.exponent) - 1) == (1 << f.exponent) - 1;
            if special {
                format!("{bits:#0w$x}", w = digits + 2)
            } else {
                format!("{bits:#0w$x}={:e}", widen(f, bits), w = digits + 2)
            }
        }
        Elem::Int(bits_of) if bits_of <= 8 => format!("{bits:#04x}"),
        _ => format!("{bits:#x}"),
    }
}

/// The operands of the thread or, of a matrix product, the row, the column and the accumulator.
pub fn explain(probe: &Probe, input: &[u32], at: At, want: u64, got: u64) -> String {
    let elem = probe.outputs[at.output].elem;
    let mut text = format!(
        "lane {} result {} element {}: simulator {}, device {}\n",
        at.lane,
        at.output,
        at.element,
        show(elem, want),
        show(elem, got)
    );
    match &probe.product {
        Some(product) if product.opaque => {
            for (i, operand) in probe.inputs.iter().enumerate() {
                let lanes = (0..32).map(|lane| format!("{:x}", register(&probe.inputs, input, i, lane)));
                let _ =
                    writeln!(text, "      operand {i} ({:?}): {}", operand.elem, lanes.collect::<Vec<_>>().join(" "));
            }
        }
        Some(product) => matrix(&mut text, probe, product, input, at),
        None => {
            for (i, operand) in probe.inputs.iter().enumerate() {
                let bits = register(&probe.inputs, input, i, at.lane);
                let digits = if operand.width == Width::B64 { 18 } else { 10 };
                let _ = write!(text, "      operand {i}: {bits:#0digits$x}");
                if matches!(operand.elem, Elem::Float(_)) {
                    for e in 0..operand.per {
                        let part = bits >> (operand.elem_bits() * e as u32) & (u64::MAX >> (64 - operand.elem_bits()));
                        let _ = write!(text, " {}", show(operand.elem, part));
                    }
                }
                text.push('\n');
            }
        }
    }
    text
}

fn order(rows: bool) -> Layout {
    if rows { Layout::Row } else { Layout::Col }
}

fn matrix(text: &mut String, probe: &Probe, product: &Product, input: &[u32], at: At) {
    let [m, _, k] = product.shape;
    let [a, b, c] = product.registers;
    let old = (m, k) == (8, 4) && probe.inputs[0].width == Width::B32;
    let wide = probe.inputs[0].width == Width::B64;
    let place = |which: usize, lane: usize, r: usize, e: usize| -> (usize, usize) {
        let per = probe.inputs[[0, a, a + b][which]].per;
        match which {
            0 if old => layout::m8n8k4_a(order(product.a_rows), lane, 2 * r + e),
            1 if old => layout::m8n8k4_b(order(!product.b_columns), lane, 2 * r + e),
            0 if wide => layout::f64_a(m, lane, r),
            1 if wide => layout::f64_b(lane, r),
            0 if m == 8 => layout::m8n8_a(per, lane, e),
            0 => layout::m16n8_a(per, lane, r, e),
            1 => layout::n8_b(per, lane, r, e),
            _ => layout::n8_c(lane, per * r + e),
        }
    };
    let result = |elem: Elem, per: usize, lane: usize, r: usize, e: usize| match (old, per) {
        (true, 2) => layout::m8n8k4_c_f16(lane, 2 * r + e),
        (true, _) => layout::m8n8k4_c_f32(lane, r),
        _ => layout::n8_c(lane, if elem == Elem::Int(32) { r } else { per * r + e }),
    };
    let (row, column) = result(product.elems[3], probe.outputs[at.output].per, at.lane, at.output, at.element);
    let group = layout::quad_pair(at.lane);
    let find = |which: usize, wanted: &dyn Fn((usize, usize)) -> Option<usize>| -> Vec<String> {
        let (first, count) = [(0, a), (a, b), (a + b, c)][which];
        let mut found = vec!["?".to_owned(); if which == 2 { 1 } else { k }];
        for r in 0..count {
            let operand = &probe.inputs[first + r];
            for lane in (0..32).filter(|lane| !old || layout::quad_pair(*lane) == group) {
                for e in 0..operand.per {
                    let at = match which {
                        2 => result(product.elems[2], operand.per, lane, r, e),
                        _ => place(which, lane, r, e),
                    };
                    if let Some(i) = wanted(at) {
                        let bits = register(&probe.inputs, input, first + r, lane);
                        let bits = bits >> (operand.elem_bits() * e as u32) & (u64::MAX >> (64 - operand.elem_bits()));
                        found[i] = show(operand.elem, bits);
                    }
                }
            }
        }
        found
    };
    let _ = writeln!(text, "      row {row}, column {column}");
    let _ = writeln!(text, "      A: {}", find(0, &|(m, k)| (m == row).then_some(k)).join(" "));
    let _ = writeln!(text, "      B: {}", find(1, &|(k, n)| (n == column).then_some(k)).join(" "));
    let _ = writeln!(text, "      C: {}", find(2, &|at| (at == (row, column)).then_some(0)).join(" "));
}
