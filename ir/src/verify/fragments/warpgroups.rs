//! Checks A of a wgmma product against the accumulator, if A is in registers.
//!
//! Such a product reads B from shared memory. Lowering derives the descriptor from the layout of B. A is in shared
//! memory or in registers. For A in registers and C, statements 1, 3 and 4 hold, and the warps of a warpgroup count as
//! further lanes. Statement 6 replaces statement 2:
//!
//! 6. A descriptor counts the reduction upwards: `kappa` is the identity, and the repetitions of A reach each other
//!    step once.

use crate::atoms::{AtomRow, AtomTypes, Bit, Fragment};
use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel, ValueDef};
use crate::verify::context::Cx;
use crate::verify::fragments::maps::{
    Failure, LANE_BITS, Maps, Operand, basis, check_operand_bits, check_warp_bits, one_operand, pack, pure,
};

/// Checks a wgmma product: B is in shared memory. A is there too, or it matches the accumulator.
pub(super) fn check(
    cx: &mut Cx<'_, '_>,
    e: Expr,
    (ia, ib, acc): (Expr, Expr, Expr),
    (row, types, group): (&AtomRow, Option<&AtomTypes>, [Bit; 2]),
    swap: bool,
) {
    let k = cx.k;
    if let Some(v) = var(k, ib) {
        let message = format!("`{}` reads `{}` from shared memory alone", row.name, k.values[v].name);
        let note = "of the operands that it multiplies the first may be in registers, with `swap` the second";
        cx.error_at(codes::MMA_FORM, e, message, note);
        return;
    }
    let (Some(a), Some(c), Some(types)) = (Operand::new(k, ia, swap), Operand::new(k, acc, swap), types) else {
        return;
    };
    if a.bits[0] != c.bits[0] {
        return; // The shapes do not fit: typing has said so.
    }
    let proofs = row.a.iter().map(|fa| prove_registers(&a, &c, [fa, &types.c], (row.log2_shape, group)));
    let failed: Option<Vec<Failure>> = proofs.map(Result::err).collect();
    if let Some((_, why)) = failed.into_iter().flatten().max_by_key(|(progress, _)| *progress) {
        let d = Diagnostic::error(
            codes::LAYOUT_FRAGMENT,
            k.expr_spans[e],
            format!("`{}` cannot compute this product: {why}", row.name),
        )
        .with_note("leave the layouts of the operands out to have them derived from the instruction");
        cx.report(d);
    }
}

/// The register tile of an operand.
fn var(k: &Kernel, e: Expr) -> Option<Value> {
    let v = match &k.exprs[e] {
        ExprData::Ref(v) => *v,
        ExprData::View(v) if v.ranges.is_empty() => v.base,
        _ => return None,
    };
    matches!(k.values[v].def, ValueDef::Var(_)).then_some(v)
}

/// Statements 1, 3, 4 and 6 of A in registers and the accumulator.
fn prove_registers(
    a: &Operand,
    c: &Operand,
    [fa, fc]: [&Fragment; 2],
    ((m_bits, n_bits, k_bits), group): ((u32, u32, u32), [Bit; 2]),
) -> Result<(), Failure> {
    let unknown = |bits: u32| vec![None; bits as usize];
    let mut maps = Maps { m: unknown(m_bits), n: unknown(n_bits), k: unknown(k_bits) };
    let mut facts = 0;
    one_operand(a, fa, 1, &mut maps, &mut facts)?;
    one_operand(c, fc, 0, &mut maps, &mut facts)?;
    for (i, bit) in (0..).zip(group) {
        let (Bit::M(_), of_a, of_c) = (bit, a.warp(i), c.warp(i)) else { continue };
        if of_a[1] != 0 || of_c[1] != 0 || of_a[0] != of_c[0] {
            let why = format!(
                "warp bit {i} (thread bit {}) of a group moves `{}` and `{}` to different rows",
                i + LANE_BITS,
                a.name,
                c.name
            );
            return Err((facts, why));
        }
        facts += 1;
    }
    let (ra, rc) = (a.repeats(fa), c.repeats(fc));
    let pure_a = pure(ra.iter().copied());
    let upwards = maps.k.iter().enumerate().all(|(i, k)| *k == Some(1 << i));
    let kappa = maps.k.iter().filter_map(|k| *k);
    let reached = basis(kappa.chain(pure_a.iter().copied())).len();
    if !upwards || reached != a.bits[1] as usize || maps.k.len() + pure_a.len() != reached {
        let why = format!("the registers of `{}` do not hold each step of the reduction once, counted upwards", a.name);
        return Err((facts, why));
    }
    facts += 1;
    let span_a = basis(ra.iter().map(|&p| pack(p)));
    for (i, &[row, _]) in rc.iter().enumerate() {
        check_operand_bits(&span_a, [row, 0], (c, fc.value.len() + i), (a, "rows")).map_err(|why| (facts, why))?;
        facts += 1;
    }
    let threads = a.layout.thread_bits().max(c.layout.thread_bits());
    for w in group.len() as u32..threads.saturating_sub(LANE_BITS) {
        let [row, _] = c.warp(w);
        check_warp_bits(&span_a, w, a, (c, [row, 0])).map_err(|why| (facts, why))?;
        facts += 1;
    }
    Ok(())
}
