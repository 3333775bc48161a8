//! That the register layouts of a product fit its instruction: rule 22.
//!
//! An instruction (a row of [`crate::atoms`]) says for each operand which bit of its own coordinates `m`, `n`, `k` every
//! value bit and lane bit carries. A warp executes it once per *repetition*; a repetition fixes the remaining value bits of
//! each operand. Layouts are linear over F2, so both "which tile element" and "which atom element" are xors of columns,
//! and the product over all repetitions is right if these statements about columns hold:
//!
//! 1. There are maps `rho` (atom row bits to tile rows), `nu` (columns) and `kappa` (reduction) such that every bit of every
//!    fragment agrees with them: where A's or C's fragment carries `M(i)`, the layout's column is `rho(i)` along rows and
//!    nothing along the other dimension; likewise `nu` for B and C, `kappa` for A and B. Two bits that carry the same
//!    coordinate bit must agree. Bits that carry nothing (`Same`) have column 0.
//! 2. `kappa` and the reduction offsets that A's and B's repetitions have in common together reach every index of the
//!    reduction exactly once.
//! 3. Each repetition of C finds its rows among the repetitions of A and its columns among those of B: C's remaining value
//!    columns, restricted to rows, are combinations of A's remaining value columns; the same for columns and B.
//! 4. The same for warps: what a warp bit adds to C's rows, it adds to A's rows up to a repetition of A, and to C's
//!    columns, B's columns up to a repetition of B.
//!
//! From 1, repetition `(c, a, b)` with equal row, column and reduction offsets adds `sum over kappa of A·B` to exactly the
//! elements of C that it should; 3 and 4 say that such `a` and `b` exist for every `c` in every warp, and 2 that summing
//! over them sums over the whole reduction, each index once. With `swap` the instruction computes the transposed product:
//! its A is our `b` seen transposed, its B our `a`, and its rows are C's columns.
//!
//! An accumulator of three dimensions has a sum for each slice of the reduction. Slices are dealt out to warps, so the same
//! holds of every warp within the slice it is in, and:
//!
//! 5. The index of a slice is the upper bits of the reduction. Only warp bits move it, by the same in A, B and C. Statement 2
//!    is about the lower bits.
//!
//! If a row has several variants of an operand, one of them has to fit.
//!
//! Products of warpgroups: [`warpgroups`].

mod warpgroups;

use super::Cx;
use super::layouts::{MAX_BITS, dim_bits};
use crate::atoms::{Bit, Fragment, Inputs, Unit};
use crate::codes;
use crate::diag::Diagnostic;
use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel, Mma, StmtData};
use crate::layout::RegLayout;
use crate::types::ElemRef;

/// Lane bits of a warp.
const LANE_BITS: u32 = 5;

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
        for root in super::structure::stmt_exprs(&k.stmts[s]) {
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

/// An operand as a matrix: its columns split into an outer (row or column of C) and a reduction part, or, for C, into rows
/// and columns of the instruction.
struct Operand {
    name: String,
    layout: RegLayout,
    /// Bits of the tile's dimension 0: the split of a column-major index.
    low_bits: u32,
    /// The coordinate that is called first (`m` for A and C, `k` for B) is the tile's dimension 1.
    flipped: bool,
    /// log2 extents, first coordinate first.
    bits: [u32; 2],
    /// log2 of the slices, for an accumulator that has some: the lowest bits of its index.
    slice_bits: u32,
}

impl Operand {
    fn new(k: &Kernel, e: Expr, flipped: bool) -> Option<Operand> {
        let v: Value = match &k.exprs[e] {
            ExprData::Ref(v) => *v,
            ExprData::View(v) if v.ranges.is_empty() => v.base,
            _ => return None,
        };
        let tile = k.tile_ty(v)?;
        let layout = tile.reg_layout.clone()?;
        let bits = dim_bits(k, tile)?;
        let (slice_bits, low, high) = match bits[..] {
            [low, high] => (0, low, high),
            [slices, low, high] => (slices, low, high),
            _ => return None,
        };
        let all = slice_bits.saturating_add(low).saturating_add(high);
        if layout.out_bits() != all || all > MAX_BITS {
            return None;
        }
        let bits = if flipped { [high, low] } else { [low, high] };
        Some(Operand { name: k.values[v].name.clone(), layout, low_bits: low, flipped, bits, slice_bits })
    }

    /// A column as first and second coordinate.
    fn split(&self, column: u64) -> [u64; 2] {
        let column = column >> self.slice_bits;
        let (low, high) = (column & ((1u64 << self.low_bits) - 1), column >> self.low_bits);
        if self.flipped { [high, low] } else { [low, high] }
    }

    /// The slice that a column of the accumulator moves to.
    fn slice(&self, column: u64) -> u64 {
        column & ((1u64 << self.slice_bits) - 1)
    }

    /// Columns of the value bits past the atom's own.
    fn repeats(&self, fragment: &Fragment) -> Vec<[u64; 2]> {
        let own = fragment.value.len() as u32;
        (own..self.layout.value_bits()).map(|i| self.split(self.layout.value_col(i))).collect()
    }

    /// Column of a warp bit; zero where the layout has no such bit.
    fn warp(&self, i: u32) -> [u64; 2] {
        self.split(self.layout.thread_col(LANE_BITS + i))
    }

    /// What a warp bit adds to the slice.
    fn warp_slice(&self, i: u32) -> u64 {
        self.slice(self.layout.thread_col(LANE_BITS + i))
    }

    /// The first value or lane bit that moves to another slice.
    fn slice_in_a_warp(&self) -> Option<String> {
        let values = (0..self.layout.value_bits()).map(|i| ("value", i, self.layout.value_col(i)));
        let lanes = (0..LANE_BITS).map(|i| ("lane", i, self.layout.thread_col(i)));
        let moves = values.chain(lanes).find(|&(_, _, column)| self.slice(column) != 0);
        moves.map(|(kind, i, _)| {
            format!("{kind} bit {i} of `{}` moves to another slice of the reduction: a warp sums one slice", self.name)
        })
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

/// The maps `rho`, `nu` and `kappa` as far as they are known.
struct Maps {
    m: Vec<Option<u64>>,
    n: Vec<Option<u64>>,
    k: Vec<Option<u64>>,
}

/// A failed proof: how many facts held before, and what does not hold.
type Failure = (usize, String);

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
        held(&span_a, [row, 0], (c, bit), (a, "rows")).map_err(|why| (facts, why))?;
        held(&span_b, [0, col], (c, bit), (b, "columns")).map_err(|why| (facts, why))?;
        facts += 1;
    }
    let threads = [a, b, c].map(|o| o.layout.thread_bits()).into_iter().max().unwrap_or(0);
    for w in 0..threads.saturating_sub(LANE_BITS) {
        let [row, col] = c.warp(w);
        let slice = c.warp_slice(w) << deep;
        for (operand, span, wanted) in [(a, &span_a, [row, slice]), (b, &span_b, [slice, col])] {
            moved_alike(span, w, operand, (c, wanted)).map_err(|why| (facts, why))?;
            facts += 1;
        }
    }
    Ok(())
}

/// Statement 3: `operand` holds what a value bit of the accumulator moves to.
fn held(
    span: &[u64],
    to: [u64; 2],
    (c, bit): (&Operand, usize),
    (operand, what): (&Operand, &str),
) -> Result<(), String> {
    if in_span(span, pack(to)) {
        return Ok(());
    }
    Err(format!("value bit {bit} of `{}` moves to other {what}, which `{}` does not hold", c.name, operand.name))
}

/// Statement 4: a warp bit moves `operand` to what it multiplies where it moves the accumulator to.
fn moved_alike(span: &[u64], w: u32, operand: &Operand, (c, wanted): (&Operand, [u64; 2])) -> Result<(), String> {
    if in_span(span, pack(operand.warp(w)) ^ pack(wanted)) {
        return Ok(());
    }
    let (operand, c, bit) = (&operand.name, &c.name, w + LANE_BITS);
    Err(format!("warp bit {w} (thread bit {bit}) moves `{operand}` and `{c}` to different elements"))
}

/// Statement 1 for one operand, whose coordinate `k_along` is the reduction.
fn one_operand(
    o: &Operand,
    fragment: &Fragment,
    k_along: usize,
    maps: &mut Maps,
    facts: &mut usize,
) -> Result<(), Failure> {
    if (o.layout.value_bits() as usize) < fragment.value.len() {
        let why = format!(
            "a thread holds {} elements of `{}`, the instruction wants {}",
            1u64 << o.layout.value_bits(),
            o.name,
            1u64 << fragment.value.len()
        );
        return Err((*facts, why));
    }
    let values = fragment.value.iter().enumerate().map(|(i, &bit)| ("value", i, bit, o.layout.value_col(i as u32)));
    let lanes = fragment.lane.iter().enumerate().map(|(i, &bit)| ("lane", i, bit, o.layout.thread_col(i as u32)));
    for (kind, i, bit, column) in values.chain(lanes) {
        let at = o.split(column);
        // Which of the operand's two coordinates the bit is along.
        let (map, index, along, letter) = match bit {
            Bit::M(j) => (&mut maps.m, j, 0, 'm'),
            Bit::N(j) => (&mut maps.n, j, 1, 'n'),
            Bit::K(j) => (&mut maps.k, j, k_along, 'k'),
            Bit::Same => {
                if column != 0 {
                    let why = format!(
                        "{kind} bit {i} of `{}` reaches other elements, the instruction wants the same in both",
                        o.name
                    );
                    return Err((*facts, why));
                }
                *facts += 1;
                continue;
            }
        };
        if at[1 - along] != 0 {
            let why = format!(
                "{kind} bit {i} of `{}` is bit {index} of the instruction's {letter}, and moves along the other dimension",
                o.name
            );
            return Err((*facts, why));
        }
        let Some(slot) = map.get_mut(usize::from(index)) else {
            return Err((*facts, format!("the atom has no bit {index} of {letter}")));
        };
        match *slot {
            None => *slot = Some(at[along]),
            Some(known) if known == at[along] => {}
            Some(known) => {
                let why = format!(
                    "{kind} bit {i} of `{}` is bit {index} of the instruction's {letter} and moves by {}, another operand's by {known}",
                    o.name, at[along]
                );
                return Err((*facts, why));
            }
        }
        *facts += 1;
    }
    Ok(())
}

/// Statement 2.
fn reduction(a: &Operand, b: &Operand, ra: &[[u64; 2]], rb: &[[u64; 2]], maps: &Maps, deep: u32) -> Result<(), String> {
    let kappa: Vec<u64> = maps.k.iter().map(|k| k.unwrap_or(0)).collect();
    let steps = kappa.iter().copied().chain(ra.iter().map(|r| r[1])).chain(rb.iter().map(|r| r[0]));
    if steps.fold(0, |all, k| all | k) >> deep != 0 {
        return Err(format!(
            "a warp's registers of `{}` and `{}` go past the 2^{deep} steps of a slice of the reduction",
            a.name, b.name
        ));
    }
    // Offsets along k that repetitions of A (of B) reach without leaving their row (column).
    let pure_a = pure(ra.iter().map(|&[m, k]| [m, k]));
    let pure_b = pure(rb.iter().map(|&[k, n]| [n, k]));
    let (rank_a, rank_b) = (pure_a.len(), pure_b.len());
    let common = rank_a + rank_b - basis(pure_a.iter().chain(&pure_b).copied()).len();
    if common < rank_a.max(rank_b) {
        return Err(format!("the registers of `{}` and `{}` step through the reduction differently", a.name, b.name));
    }
    let all = basis(kappa.iter().copied().chain(pure_a.iter().copied())).len();
    let extent = deep as usize;
    if all < extent {
        return Err(format!("only 2^{all} of the 2^{extent} steps of the reduction are reached"));
    }
    if kappa.len() + common > extent {
        return Err(format!(
            "the registers of `{}` and `{}` hold steps of the reduction more than once",
            a.name, b.name
        ));
    }
    Ok(())
}

/// The second coordinates that combinations of the pairs reach with the first coordinate 0, as a basis.
fn pure(pairs: impl Iterator<Item = [u64; 2]>) -> Vec<u64> {
    // The first coordinate on top: echelon form eliminates it first.
    basis(pairs.map(|[first, second]| pack([second, first]))).into_iter().filter(|&v| v >> 32 == 0).collect()
}

/// Two coordinates in one word; extents of tiles are far below 2^32.
fn pack([first, second]: [u64; 2]) -> u64 {
    second << 32 | first & 0xffff_ffff
}

/// A basis of the span, with distinct leading bits.
fn basis(vectors: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut basis: Vec<u64> = Vec::new();
    for v in vectors {
        let v = reduce(&basis, v);
        if v != 0 {
            basis.push(v);
            basis.sort_unstable_by(|a, b| b.cmp(a));
        }
    }
    basis
}

/// `v` less what the basis reaches, leading bits first.
fn reduce(basis: &[u64], mut v: u64) -> u64 {
    for &b in basis {
        v = v.min(v ^ b);
    }
    v
}

fn in_span(basis: &[u64], v: u64) -> bool {
    reduce(basis, v) == 0
}
