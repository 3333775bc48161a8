//! Products: tensor-core instructions and scalar multiply-adds.
//!
//! The registers of an instruction follow from the layouts: register indices of a fragment are looked up by their row
//! (or column) and reduction coordinate. Instructions are issued slice by slice of the reduction, columns outer, rows
//! inner and in alternating direction, so that adjacent instructions share an operand.

use super::inputs::{E4M3_E5M2, E5M2_E4M3, I8_U8, U8_I8, both};
use super::state::Lower;
use super::tile::Tile;
use crate::inst::{Class, Operand, Reg};
use crate::ops::{Kind, Op as P};
use crate::report::MmaReport;
use std::collections::BTreeMap;
use tilec_ir::atoms::{Atom, AtomRow, Bit, Fragment, Inputs, Reused};
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Mma, StmtData};
use tilec_ir::types::Elem;
use tilec_ir::typing::fixed_shape;

/// Register index of a fragment's elements by (outer coordinate, reduction coordinate) without the thread's part.
type Lookup = BTreeMap<(u64, u64), usize>;

/// Looks up register indices whose low `atom_bits` are 0. `outer`: the dimension that is not the reduction. If an
/// accumulator has a sum for each slice of the reduction, a warp holds one slice, and the slice index is left out like
/// the thread's part.
fn lookup(tile: &Tile, outer: usize, atom_bits: u32) -> Lookup {
    let (slice, first) = match tile.dim_bits[..] {
        [slices, first, _] => (slices, first),
        _ => (0, tile.dim_bits[0]),
    };
    (0..tile.len())
        .filter(|v| v & ((1 << atom_bits) - 1) == 0)
        .map(|v| {
            let index = tile.layout.at(0, v as u64) >> slice;
            let (c0, c1) = (index & ((1 << first) - 1), index >> first);
            (if outer == 0 { (c0, c1) } else { (c1, c0) }, v)
        })
        .collect()
}

/// Row and column of an accumulator's element, and its register index.
type Element = ((u64, u64), usize);

/// The elements of an accumulator row by row, in alternating direction. Adjacent elements share an operand, which the
/// assembler can keep in an operand reuse cache instead of reading the register banks again.
fn serpentine(c: &Lookup) -> Vec<Element> {
    let mut rows: BTreeMap<u64, Vec<Element>> = BTreeMap::new();
    for (&at, &v) in c {
        rows.entry(at.0).or_default().push((at, v));
    }
    let mut out = Vec::with_capacity(c.len());
    for (i, row) in rows.into_values().enumerate() {
        if i % 2 == 0 { out.extend(row) } else { out.extend(row.into_iter().rev()) }
    }
    out
}

/// Whether adjacent registers of a fragment differ in the reduction coordinate.
fn along_k(tile: &Tile, k_dim: usize) -> bool {
    tile.layout.value_bits() > 0 && {
        let first = tile.dim_bits[0];
        let col = tile.layout.value_col(0);
        (col < 1 << first) == (k_dim == 0)
    }
}

/// The variant of an operand for a fragment whose adjacent registers are `along_k`.
fn variant(variants: &'static [Fragment], along_k: bool) -> &'static Fragment {
    let fits = |f: &&Fragment| matches!(f.value.first(), Some(Bit::K(_))) == along_k;
    variants.iter().find(fits).unwrap_or(&variants[0])
}

/// The opcode of an atom for element types and operand variants.
fn opcode(row: &AtomRow, inputs: Inputs, acc: Elem, a: &str, b: &str) -> Option<P> {
    let fits = |o: &&Opcode| o.0 == row.name && o.1 == inputs && o.2 == acc && o.3 == a && o.4 == b;
    OPCODES.iter().find(fits).map(|o| o.5)
}

/// Atom, inputs, accumulator, variants of A and B, instruction.
type Opcode = (&'static str, Inputs, Elem, &'static str, &'static str, P);

use Elem::{BF16, E4M3, E5M2, F16, F32, F64, I8, I32, TF32, U8};

/// The instructions of all rows of the atom table that sum several products.
const OPCODES: &[Opcode] = &[
    ("m8n8k4", both(F16), F32, "row", "row", P::MmaM8n8k4RowRowF32),
    ("m8n8k4", both(F16), F32, "row", "col", P::MmaM8n8k4RowColF32),
    ("m8n8k4", both(F16), F32, "col", "row", P::MmaM8n8k4ColRowF32),
    ("m8n8k4", both(F16), F32, "col", "col", P::MmaM8n8k4ColColF32),
    ("m8n8k4", both(F16), F16, "row", "row", P::MmaM8n8k4RowRowF16),
    ("m8n8k4", both(F16), F16, "row", "col", P::MmaM8n8k4RowColF16),
    ("m8n8k4", both(F16), F16, "col", "row", P::MmaM8n8k4ColRowF16),
    ("m8n8k4", both(F16), F16, "col", "col", P::MmaM8n8k4ColColF16),
    ("m16n8k8", both(F16), F32, "row", "col", P::MmaM16n8k8F32),
    ("m16n8k8", both(F16), F16, "row", "col", P::MmaM16n8k8F16),
    ("m16n8k16", both(F16), F32, "row", "col", P::MmaM16n8k16F32),
    ("m16n8k16", both(F16), F16, "row", "col", P::MmaM16n8k16F16),
    ("m16n8k16", both(BF16), F32, "row", "col", P::MmaM16n8k16Bf16F32),
    ("m16n8k8_tf32", both(TF32), F32, "row", "col", P::MmaM16n8k8Tf32F32),
    ("m8n8k16", both(I8), I32, "row", "col", P::MmaM8n8k16S8S32),
    ("m8n8k16", both(U8), I32, "row", "col", P::MmaM8n8k16U8S32),
    ("m8n8k16", I8_U8, I32, "row", "col", P::MmaM8n8k16S8U8S32),
    ("m8n8k16", U8_I8, I32, "row", "col", P::MmaM8n8k16U8S8S32),
    ("m16n8k32_i8", both(I8), I32, "row", "col", P::MmaM16n8k32S8S32),
    ("m16n8k32_i8", both(U8), I32, "row", "col", P::MmaM16n8k32U8S32),
    ("m16n8k32_i8", I8_U8, I32, "row", "col", P::MmaM16n8k32S8U8S32),
    ("m16n8k32_i8", U8_I8, I32, "row", "col", P::MmaM16n8k32U8S8S32),
    ("m16n8k32_f8", both(E4M3), F32, "row", "col", P::MmaM16n8k32E4m3F32),
    ("m16n8k32_f8", both(E5M2), F32, "row", "col", P::MmaM16n8k32E5m2F32),
    ("m16n8k32_f8", E4M3_E5M2, F32, "row", "col", P::MmaM16n8k32E4m3E5m2F32),
    ("m16n8k32_f8", E5M2_E4M3, F32, "row", "col", P::MmaM16n8k32E5m2E4m3F32),
    ("m16n8k32_f8", both(E4M3), F16, "row", "col", P::MmaM16n8k32E4m3F16),
    ("m16n8k32_f8", both(E5M2), F16, "row", "col", P::MmaM16n8k32E5m2F16),
    ("m16n8k32_f8", E4M3_E5M2, F16, "row", "col", P::MmaM16n8k32E4m3E5m2F16),
    ("m16n8k32_f8", E5M2_E4M3, F16, "row", "col", P::MmaM16n8k32E5m2E4m3F16),
    ("dp4a", both(I8), I32, "", "", P::Dp4aS32S32),
    ("dp4a", both(U8), I32, "", "", P::Dp4aU32U32),
    ("dp4a", I8_U8, I32, "", "", P::Dp4aS32U32),
    ("dp4a", U8_I8, I32, "", "", P::Dp4aU32S32),
    ("m8n8k4_f64", both(F64), F64, "row", "col", P::MmaM8n8k4F64),
    ("m16n8k4_f64", both(F64), F64, "row", "col", P::MmaM16n8k4F64),
    ("m16n8k8_f64", both(F64), F64, "row", "col", P::MmaM16n8k8F64),
    ("m16n8k16_f64", both(F64), F64, "row", "col", P::MmaM16n8k16F64),
];

impl Lower<'_> {
    /// The extent of the reduction, from a product's left operand.
    pub(super) fn depth(&self, a: Expr) -> Option<u64> {
        fixed_shape(self.k, a)?.get(1).copied()
    }

    /// Whether wgmma products accumulate into a tile.
    pub(super) fn accumulates_asynchronously(&self, acc: Value) -> bool {
        self.k.statements().into_iter().any(|s| self.sums_into(s, acc))
    }

    /// Whether a statement is a wgmma product that accumulates into a tile.
    pub(super) fn sums_into(&self, s: Stmt, acc: Value) -> bool {
        match self.k.stmts[s] {
            StmtData::Assign { dst, src } if dst == acc => {
                matches!(self.k.exprs[src], ExprData::Mma(m) if m.atom.is_some_and(|a| a.row().asynchronous()))
            }
            _ => false,
        }
    }

    pub(super) fn product(&mut self, s: Stmt, acc: Value, src: Expr, mma: &Mma) -> Result<(), Reported> {
        if let (Some(atom), Some(c)) = (mma.atom.filter(|a| a.row().asynchronous()), self.tiles[acc].clone()) {
            let empty = self.empty.take() == Some(acc);
            let count = self.warpgroup_product(s, src, atom, mma, &c, empty)?;
            self.report.mma.push(MmaReport {
                span: self.k.stmt_spans[s],
                atom: atom.row().name.to_owned(),
                per_warp: count,
                k_warps: 1,
                promoted: if empty { self.depth(mma.a) } else { None },
                in_loop: !self.loops.is_empty(),
            });
            return Ok(());
        }
        let (Some(a), Some(b), Some(c)) = (self.tile_of(mma.a), self.tile_of(mma.b), self.tiles[acc].clone()) else {
            return Err(self.unsupported(src, "a product whose operands are not register fragments"));
        };
        let Some(atom) = mma.atom else { return Err(self.unsupported(src, "a product without an instruction")) };
        let count = if atom.row().sums() {
            self.summed_product(src, atom, &a, &b, &c, mma.swap)?
        } else {
            self.scalar_product(src, &a, &b, &c)?
        };
        self.report.mma.push(MmaReport {
            span: self.k.stmt_spans[s],
            atom: atom.row().name.to_owned(),
            per_warp: count,
            k_warps: if let [slices, _, _] = c.dim_bits[..] { 1 << slices } else { 1 },
            promoted: None,
            in_loop: !self.loops.is_empty(),
        });
        Ok(())
    }

    /// An instruction that sums several products: on tensor cores (PTX ISA 9.7.14.5), or `dp4a` of a thread. Its rows
    /// are the tile's rows, or its columns if `swap`.
    fn summed_product(
        &mut self,
        src: Expr,
        atom: Atom,
        a: &Tile,
        b: &Tile,
        c: &Tile,
        swap: bool,
    ) -> Result<u32, Reported> {
        let row = atom.row();
        // (tile, reduction dimension) of the instruction's operands.
        let (ia, ib) = if swap { ((b, 0), (a, 1)) } else { ((a, 1), (b, 0)) };
        let (fa, fb) = (variant(row.a, along_k(ia.0, ia.1)), variant(row.b, along_k(ib.0, ib.1)));
        let inputs = Inputs { a: ia.0.elem, b: ib.0.elem };
        let types = row.types_for(inputs, c.elem);
        let (Some(types), Some(op)) = (types, opcode(row, inputs, c.elem, fa.name, fb.name)) else {
            return Err(self.unsupported(src, "these element types"));
        };
        let bits = |f: &Fragment| f.value.len() as u32;
        let bits = (bits(fa), bits(fb), bits(&types.c));
        self.issue(src, op, (a, b, c), swap, bits, types.reused)
    }

    /// Issues an instruction for every repetition, with slices of the reduction outermost. Within a slice, consecutive
    /// instructions reuse the fragment of one operand (`reused`): each of A for all columns, or each of B for all rows.
    /// The other operand alternates its direction, so that consecutive instructions always share a fragment. `bits`:
    /// value bits that one instruction takes of A, B and the accumulator.
    fn issue(
        &mut self,
        src: Expr,
        op: P,
        (a, b, c): (&Tile, &Tile, &Tile),
        swap: bool,
        bits: (u32, u32, u32),
        reused: Reused,
    ) -> Result<u32, Reported> {
        // (tile, outer dimension) of the instruction's operands.
        let (ia, ib) = if swap { ((b, 1), (a, 0)) } else { ((a, 0), (b, 1)) };
        let (la, lb) = (lookup(ia.0, ia.1, bits.0), lookup(ib.0, ib.1, bits.1));
        // Accumulator indices by the instruction's (row, column).
        let lc: BTreeMap<(u64, u64), usize> =
            lookup(c, 0, bits.2).into_iter().map(|((m, n), v)| (if swap { (n, m) } else { (m, n) }, v)).collect();
        let mut rows: Vec<u64> = lc.keys().map(|k| k.0).collect();
        let mut cols: Vec<u64> = lc.keys().map(|k| k.1).collect();
        let mut slices: Vec<u64> = la.keys().map(|k| k.1).collect();
        for list in [&mut rows, &mut cols, &mut slices] {
            list.sort_unstable();
            list.dedup();
        }
        let mut count = 0;
        let keep_a = reused == Reused::A;
        let (outer, inner) = if keep_a { (&rows, &cols) } else { (&cols, &rows) };
        for &k in &slices {
            for (j, &kept) in outer.iter().enumerate() {
                for i in 0..inner.len() {
                    let other = inner[if j % 2 == 0 { i } else { inner.len() - 1 - i }];
                    let (m, n) = if keep_a { (kept, other) } else { (other, kept) };
                    let (Some(&va), Some(&vb), Some(&vc)) = (la.get(&(m, k)), lb.get(&(n, k)), lc.get(&(m, n))) else {
                        return Err(self.unsupported(src, "fragments that do not fit each other"));
                    };
                    let operand = |t: &Tile, v: usize, bits: u32| {
                        let first = v / t.per_register;
                        match op.signature().kinds().next() {
                            Some(Kind::Vec(..)) => {
                                Operand::Vec(t.regs[first..first + (1usize << bits).div_ceil(t.per_register)].to_vec())
                            }
                            _ => t.regs[first].into(),
                        }
                    };
                    let d = operand(c, vc, bits.2);
                    self.emit.push(op, [d.clone(), operand(ia.0, va, bits.0), operand(ib.0, vb, bits.1), d]);
                    count += 1;
                }
            }
        }
        Ok(count)
    }

    /// One multiply-add per element and step. 16-bit inputs are widened once per fragment element.
    fn scalar_product(&mut self, src: Expr, a: &Tile, b: &Tile, c: &Tile) -> Result<u32, Reported> {
        let (la, lb, lc) = (lookup(a, 0, 0), lookup(b, 1, 0), lookup(c, 0, 0));
        let mut slices: Vec<u64> = la.keys().map(|k| k.1).collect();
        slices.sort_unstable();
        slices.dedup();
        let order = serpentine(&lc);
        let mut count = 0;
        let half = c.elem == Elem::F16;
        let mut accumulators: Vec<Reg> = Vec::new();
        for v in 0..c.len() {
            accumulators.push(if half { self.raw(c, v) } else { c.regs[v] });
        }
        for &k in &slices {
            let mut wide: BTreeMap<(bool, u64), Reg> = BTreeMap::new();
            for &((m, n), vc) in &order {
                let (Some(&va), Some(&vb)) = (la.get(&(m, k)), lb.get(&(n, k))) else {
                    return Err(self.unsupported(src, "fragments that do not fit each other"));
                };
                let mut operand = |cx: &mut Self, first: bool, at: u64, t: &Tile, v: usize| match wide.get(&(first, at))
                {
                    Some(r) => *r,
                    None => {
                        let r = if half { cx.get_half(t, v) } else { cx.get(t, v) };
                        wide.insert((first, at), r);
                        r
                    }
                };
                let x = operand(self, true, m, a, va);
                let y = operand(self, false, n, b, vb);
                let d = accumulators[vc];
                if half {
                    accumulators[vc] = self.emit.def(Class::B16, P::FmaRnF16, [x.into(), y.into(), d.into()]);
                } else {
                    let op = match c.elem {
                        Elem::F32 => P::FmaRnF32,
                        Elem::F64 => P::FmaRnF64,
                        Elem::I32 => P::MadLoS32,
                        _ => return Err(self.unsupported(src, "this accumulator type")),
                    };
                    self.emit.push(op, [d.into(), x.into(), y.into(), d.into()]);
                }
                count += 1;
            }
        }
        if half {
            let values: Vec<(usize, Reg)> = accumulators.into_iter().enumerate().collect();
            self.set_raw(c, &values);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every type and variant of every atom that sums products has an instruction with the row's registers, and every
    /// instruction has a row.
    #[test]
    fn atoms_and_opcodes_agree() {
        let mut met = 0;
        for row in Atom::all().map(Atom::row).filter(|r| r.sums() && !r.asynchronous()) {
            for types in row.types {
                for (a, b) in row.a.iter().flat_map(|a| row.b.iter().map(move |b| (a, b))) {
                    let op = opcode(row, types.inputs, types.acc, a.name, b.name);
                    let op = op.unwrap_or_else(|| panic!("{} {} {} {}", row.name, types.inputs, a.name, b.name));
                    let registers = |f: &Fragment, elem: Elem| {
                        let elements = 1usize << f.value.len();
                        (elements * elem.bits() as usize).div_ceil(32.max(elem.bits() as usize))
                    };
                    let counts: Vec<usize> = op
                        .signature()
                        .kinds()
                        .map(|k| if let Kind::Vec(n, _) = k { usize::from(n) } else { 1 })
                        .collect();
                    let (inputs, acc) = (types.inputs, types.acc);
                    let c = registers(&types.c, acc);
                    assert_eq!(counts, [c, registers(a, inputs.a), registers(b, inputs.b), c], "{}", row.name);
                    met += 1;
                }
            }
        }
        assert_eq!(met, OPCODES.len());
    }
}
