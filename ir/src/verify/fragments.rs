//! Rule 22: the register layouts of a product are fragments of its instruction.
//!
//! An instruction (a row of [`crate::atoms`]) says for each operand which bit of its own coordinates `m`, `n`, `k`
//! every value bit and lane bit carries. A warp executes it once per *repetition*. A repetition fixes the remaining
//! value bits of each operand. Layouts are linear over F2, so the tile element and the atom element are xors of
//! columns. The product over all repetitions is right if these statements about columns hold:
//!
//! 1. There are maps `rho` (atom row bits to tile rows), `nu` (columns) and `kappa` (reduction), and every bit of every
//!    fragment agrees with them. Where A's or C's fragment carries `M(i)`, the layout's column is `rho(i)` along rows
//!    and zero along the other dimension. The same holds for `nu` with B and C, and for `kappa` with A and B. Two bits
//!    that carry the same coordinate bit must agree. Bits that carry nothing (`Same`) have column 0.
//! 2. `kappa`, together with the reduction offsets that repetitions of A and B have in common, reaches every index of
//!    the reduction exactly once.
//! 3. Each repetition of C finds its rows among the repetitions of A and its columns among those of B. C's remaining
//!    value columns, restricted to rows, are combinations of A's remaining value columns. The same holds for columns
//!    and B.
//! 4. The same holds for warps. What a warp bit adds to C's rows, it adds to A's rows up to a repetition of A. What it
//!    adds to C's columns, it adds to B's columns up to a repetition of B.
//!
//! By 1, a repetition `(c, a, b)` with equal row, column and reduction offsets adds `sum over kappa of A·B` to exactly
//! the right elements of C. By 3 and 4, such `a` and `b` exist for every `c` in every warp. By 2, the sum over them
//! covers each index of the reduction once. With `swap` the instruction computes the transposed product: its A is our
//! `b` transposed, its B our `a` transposed, and its rows are C's columns.
//!
//! An accumulator of three dimensions has a sum for each slice of the reduction. Slices are distributed to warps. So
//! the same holds for every warp within its slice, and also:
//!
//! 5. The index of a slice is the upper bits of the reduction. Only warp bits change it, equally in A, B and C.
//!    Statement 2 is about the lower bits.
//!
//! If an instruction has several variants of an operand, one of them must fit.
//!
//! For wgmma products, see [`warpgroups`].

mod maps;
mod warpgroups;

use crate::atoms::{Fragment, Inputs, Unit};
use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::Expr;
use crate::kernel::{ExprData, Mma, StmtData};
use crate::types::ElemRef;
use crate::verify::context::Cx;
use crate::verify::fragments::maps::{
    Failure, LANE_BITS, Maps, Operand, basis, check_operand_bits, check_warp_bits, one_operand, pack, reduction,
};

pub(super) fn check(cx: &mut Cx<'_, '_>) {
    let k = cx.k;
    let mut products = Vec::new();
    let mut elsewhere = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        // Instructions add to registers, where the sum then is.
        if let StmtData::Assign { dst, src } = k.stmts[s]
            && let ExprData::Mma(Mma { atom: Some(_), c, .. }) = k.exprs[src]
            && !matches!(k.exprs[c], ExprData::Ref(v) if v == dst)
        {
            elsewhere.push((src, dst));
        }
        for root in k.stmts[s].exprs() {
            let mut stack = vec![root];
            while let Some(e) = stack.pop() {
                if let ExprData::Mma(m) = k.exprs[e] {
                    products.push((e, m));
                }
                stack.extend(k.children(e).into_iter().rev());
            }
        }
    });
    for (e, dst) in elsewhere {
        let name = &k.values[dst].name;
        let note = format!("write `{name} = mma<..>(a, b, {name})` and combine the result in a statement of its own");
        cx.error_at(codes::MMA_FORM, e, "a product must accumulate in place".to_owned(), &note);
    }
    for (e, m) in products {
        product(cx, e, &m);
    }
}

fn product(cx: &mut Cx<'_, '_>, e: Expr, m: &Mma) {
    let k = cx.k;
    let Some(atom) = m.atom else { return };
    let row = atom.row();
    // The instruction's view: A is [m, k], B is [k, n], C is [m, n].
    let (ia, ib) = if m.swap { (m.b, m.a) } else { (m.a, m.b) };
    let elems = [ia, ib, m.c].map(|e| match cx.types.type_of(e).ok().and_then(|t| t.elem()) {
        Some(ElemRef::Known(elem)) => Some(elem),
        _ => None,
    });
    let types = match elems {
        [Some(a), Some(b), Some(c)] => {
            let found = row.types_for(Inputs { a, b }, c);
            if found.is_none() {
                let list: Vec<String> =
                    row.types.iter().map(|t| format!("{} into {}", t.inputs, t.acc.name())).collect();
                let message = format!("`{}` does not multiply {} into {}", row.name, Inputs { a, b }, c.name());
                cx.error_at(codes::NO_ATOM, e, message, &format!("it multiplies {}", list.join(", ")));
                return;
            }
            found
        }
        _ => None,
    };
    if let Unit::Warpgroup(group) = row.unit {
        warpgroups::check(cx, e, (ia, ib, m.c), (row, types, group), m.swap);
        return;
    }
    let operands = (Operand::new(k, ia, m.swap), Operand::new(k, ib, m.swap), Operand::new(k, m.c, m.swap));
    let (Some(a), Some(b), Some(c), Some(types)) = (operands.0, operands.1, operands.2, types) else { return };
    if a.bits[1] != b.bits[0] || a.bits[0] != c.bits[0] || b.bits[1] != c.bits[1] {
        return; // The shapes do not fit: typing has said so.
    }
    let mut best: Option<(usize, String)> = None;
    for fa in row.a {
        for fb in row.b {
            match prove(&a, &b, &c, [fa, fb, &types.c], row.log2_shape) {
                Ok(()) => return,
                Err((progress, why)) => {
                    if best.as_ref().is_none_or(|(p, _)| progress > *p) {
                        best = Some((progress, why));
                    }
                }
            }
        }
    }
    if let Some((_, why)) = best {
        let d = Diagnostic::error(
            codes::LAYOUT_FRAGMENT,
            k.expr_spans[e],
            format!("`{}` cannot compute this product: {why}", row.name),
        )
        .with_note("leave the layouts of the operands out to have them derived from the instruction");
        cx.report(d);
    }
}

/// Proves the statements of the header for one choice of variants.
fn prove(
    a: &Operand,
    b: &Operand,
    c: &Operand,
    fragments: [&Fragment; 3],
    (m_bits, n_bits, k_bits): (u32, u32, u32),
) -> Result<(), Failure> {
    let unknown = |bits: u32| vec![None; bits as usize];
    let mut maps = Maps { m: unknown(m_bits), n: unknown(n_bits), k: unknown(k_bits) };
    let mut facts = 0;
    // A is [m, k], B [k, n], C [m, n].
    one_operand(a, fragments[0], 1, &mut maps, &mut facts)?;
    one_operand(b, fragments[1], 0, &mut maps, &mut facts)?;
    one_operand(c, fragments[2], 0, &mut maps, &mut facts)?;
    if let Some(why) = c.slice_in_a_warp() {
        return Err((facts, why));
    }
    let deep = a.bits[1].saturating_sub(c.slice_bits);
    let [fa, fb, fc] = fragments;
    let (ra, rb, rc) = (a.repeats(fa), b.repeats(fb), c.repeats(fc));
    reduction(a, b, &ra, &rb, &maps, deep).map_err(|why| (facts, why))?;
    facts += 1;
    let (span_a, span_b) = (basis(ra.iter().map(|&p| pack(p))), basis(rb.iter().map(|&p| pack(p))));
    for (i, &[row, col]) in rc.iter().enumerate() {
        let bit = fc.value.len() + i;
        check_operand_bits(&span_a, [row, 0], (c, bit), (a, "rows")).map_err(|why| (facts, why))?;
        check_operand_bits(&span_b, [0, col], (c, bit), (b, "columns")).map_err(|why| (facts, why))?;
        facts += 1;
    }
    let threads = [a, b, c].map(|o| o.layout.thread_bits()).into_iter().max().unwrap_or(0);
    for w in 0..threads.saturating_sub(LANE_BITS) {
        let [row, col] = c.warp(w);
        let slice = c.warp_slice(w) << deep;
        for (operand, span, wanted) in [(a, &span_a, [row, slice]), (b, &span_b, [slice, col])] {
            check_warp_bits(span, w, operand, (c, wanted)).map_err(|why| (facts, why))?;
            facts += 1;
        }
    }
    Ok(())
}
