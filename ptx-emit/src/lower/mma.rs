//! Products: tensor-core instructions and scalar multiply-adds.
//!
//! Which registers an instruction takes follows from the layouts: register indices of a fragment are looked up by the row
//! (or column) and reduction coordinate they hold. Instructions are issued slice by slice of the reduction, columns outer,
//! rows inner and alternating in direction, so that neighbours share an operand.

use super::Lower;
use super::tiles::Tile;
use crate::inst::{Class, Operand, Reg};
use crate::ops::Op as P;
use crate::report::MmaReport;
use std::collections::BTreeMap;
use tilec_ir::atoms::Atom;
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::Mma;
use tilec_ir::types::Elem;

/// Register index of the elements of a fragment by (outer coordinate, reduction coordinate), thread part left out.
type Lookup = BTreeMap<(u64, u64), usize>;

/// `outer`: the dimension that is not the reduction. Only indices whose low `atom_bits` are 0.
fn lookup(tile: &Tile, outer: usize, atom_bits: u32) -> Lookup {
    let first = tile.dim_bits[0];
    (0..tile.len())
        .filter(|v| v & ((1 << atom_bits) - 1) == 0)
        .map(|v| {
            let index = tile.layout.at(0, v as u64);
            let (c0, c1) = (index & ((1 << first) - 1), index >> first);
            (if outer == 0 { (c0, c1) } else { (c1, c0) }, v)
        })
        .collect()
}

/// Whether register neighbours of a fragment differ in the reduction coordinate.
fn along_k(tile: &Tile, k_dim: usize) -> bool {
    tile.layout.value_bits() > 0 && {
        let first = tile.dim_bits[0];
        let col = tile.layout.value_col(0);
        (col < 1 << first) == (k_dim == 0)
    }
}

impl Lower<'_> {
    pub(super) fn product(&mut self, s: Stmt, acc: Value, src: Expr, mma: &Mma) -> Result<(), Reported> {
        let (Some(a), Some(b), Some(c)) = (self.tile_of(mma.a), self.tile_of(mma.b), self.tiles[acc].clone()) else {
            return Err(self.unsupported(src, "a product whose operands are not register fragments"));
        };
        let Some(atom) = mma.atom else { return Err(self.unsupported(src, "a product without an instruction")) };
        let count = if atom == Atom::FMA {
            self.scalar_product(src, &a, &b, &c)?
        } else if atom == Atom::M8N8K4 {
            self.m8n8k4(src, &a, &b, &c, mma.swap)?
        } else if atom == Atom::M16N8K16 || atom == Atom::M16N8K8 {
            self.m16n8(src, atom, &a, &b, &c, mma.swap)?
        } else {
            return Err(self.unsupported(src, "this product instruction"));
        };
        self.report.mma.push(MmaReport {
            span: self.k.stmt_spans[s],
            atom: atom.row().name.to_owned(),
            per_warp: count,
            in_loop: !self.loops.is_empty(),
        });
        Ok(())
    }

    /// `mma.sync.m16n8k8` and `m16n8k16` (PTX ISA 9.7.14.5.7 and .8): A by rows, B by columns.
    fn m16n8(&mut self, src: Expr, atom: Atom, a: &Tile, b: &Tile, c: &Tile, swap: bool) -> Result<u32, Reported> {
        let op = match (atom == Atom::M16N8K16, a.elem, c.elem) {
            (true, Elem::F16, Elem::F32) => P::MmaM16n8k16F32,
            (true, Elem::F16, Elem::F16) => P::MmaM16n8k16F16,
            (true, Elem::BF16, Elem::F32) => P::MmaM16n8k16Bf16F32,
            (false, Elem::F16, Elem::F32) => P::MmaM16n8k8F32,
            (false, Elem::F16, Elem::F16) => P::MmaM16n8k8F16,
            _ => return Err(self.unsupported(src, "these element types")),
        };
        let row = atom.row();
        let (a_bits, b_bits) = (row.a[0].value.len() as u32, row.b[0].value.len() as u32);
        self.issue(src, op, (a, b, c), swap, (a_bits, b_bits, 2))
    }

    /// `mma.sync.m8n8k4` (PTX ISA 9.7.14.5.1). The instruction's rows are the tile's, or its columns if swapped.
    fn m8n8k4(&mut self, src: Expr, a: &Tile, b: &Tile, c: &Tile, swap: bool) -> Result<u32, Reported> {
        // (tile, outer dimension, reduction dimension) of the instruction's operands.
        let (ia, ib) = if swap { ((b, 1, 0), (a, 0, 1)) } else { ((a, 0, 1), (b, 1, 0)) };
        let (a_row, b_col) = (along_k(ia.0, ia.2), along_k(ib.0, ib.2));
        let op = match (a_row, b_col, c.elem) {
            (true, false, Elem::F32) => P::MmaM8n8k4RowRowF32,
            (true, true, Elem::F32) => P::MmaM8n8k4RowColF32,
            (false, false, Elem::F32) => P::MmaM8n8k4ColRowF32,
            (false, true, Elem::F32) => P::MmaM8n8k4ColColF32,
            (true, false, Elem::F16) => P::MmaM8n8k4RowRowF16,
            (true, true, Elem::F16) => P::MmaM8n8k4RowColF16,
            (false, false, Elem::F16) => P::MmaM8n8k4ColRowF16,
            (false, true, Elem::F16) => P::MmaM8n8k4ColColF16,
            _ => return Err(self.unsupported(src, "this accumulator type")),
        };
        self.issue(src, op, (a, b, c), swap, (2, 2, 3))
    }

    /// Issues an instruction for every repetition: slices of the reduction outermost, then columns, then rows in
    /// alternating direction. `bits`: value bits that one instruction takes of A, B and the accumulator.
    fn issue(
        &mut self,
        src: Expr,
        op: P,
        (a, b, c): (&Tile, &Tile, &Tile),
        swap: bool,
        bits: (u32, u32, u32),
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
        for &k in &slices {
            for (j, &n) in cols.iter().enumerate() {
                for i in 0..rows.len() {
                    let m = rows[if j % 2 == 0 { i } else { rows.len() - 1 - i }];
                    let (Some(&va), Some(&vb), Some(&vc)) = (la.get(&(m, k)), lb.get(&(n, k)), lc.get(&(m, n))) else {
                        return Err(self.unsupported(src, "fragments that do not fit each other"));
                    };
                    // Inputs are 16-bit pairs; the accumulator is pairs too if it is 16 bits wide.
                    let operand = |t: &Tile, v: usize, bits: u32| {
                        let count = (1usize << bits) / 2;
                        Operand::Vec(t.regs[v / 2..v / 2 + count].to_vec())
                    };
                    let owned = 1usize << bits.2;
                    let accumulator =
                        if c.packed { &c.regs[vc / 2..(vc + owned) / 2] } else { &c.regs[vc..vc + owned] };
                    let d = Operand::Vec(accumulator.to_vec());
                    self.emit.push(op, vec![d.clone(), operand(ia.0, va, bits.0), operand(ib.0, vb, bits.1), d]);
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
        let mut count = 0;
        let half = c.elem == Elem::F16;
        let mut accumulators: Vec<Reg> = Vec::new();
        for v in 0..c.len() {
            accumulators.push(if half { self.raw(c, v) } else { c.regs[v] });
        }
        for &k in &slices {
            let mut wide: BTreeMap<(bool, u64), Reg> = BTreeMap::new();
            for (&(m, n), &vc) in &lc {
                let (Some(&va), Some(&vb)) = (la.get(&(m, k)), lb.get(&(n, k))) else {
                    return Err(self.unsupported(src, "fragments that do not fit each other"));
                };
                let mut operand = |cx: &mut Self, first: bool, at: u64, t: &Tile, v: usize| match wide.get(&(first, at))
                {
                    Some(r) => *r,
                    None => {
                        let r = if half { cx.raw(t, v) } else { cx.get(t, v) };
                        wide.insert((first, at), r);
                        r
                    }
                };
                let x = operand(self, true, m, a, va);
                let y = operand(self, false, n, b, vb);
                let d = accumulators[vc];
                if half {
                    accumulators[vc] = self.emit.def(Class::B16, P::FmaRnF16, vec![x.into(), y.into(), d.into()]);
                } else {
                    let op = match c.elem {
                        Elem::F32 => P::FmaRnF32,
                        Elem::F64 => P::FmaRnF64,
                        _ => return Err(self.unsupported(src, "this accumulator type")),
                    };
                    self.emit.push(op, vec![d.into(), x.into(), y.into(), d.into()]);
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
