//! wgmma products on shared memory, or with A in registers (`wgmma`, PTX ISA 9.7.15).
//!
//! An operand is given by a descriptor: the address of its first element, and the distances of rows and panels ([`descriptor`]). The
//! descriptor of a slot is that of the first one plus the slot's offset; along the reduction a constant is added. The products of
//! a statement are one group, for which `await` waits.

use super::inputs::{E4M3_E5M2, E5M2_E4M3, I8_U8, U8_I8, both};
use super::rings::Position;
use super::state::Lower;
use super::tile::Tile;
use crate::inst::{Class, Guard, Operand, Reg};
use crate::ops::Op as P;
use crate::report::OperandReport;
use Elem::{BF16, E4M3, E5M2, F16, F32, I8, I32, TF32, U8};
use std::collections::BTreeMap;
use tilec_ir::atoms::{Atom, AtomRow, Inputs};
use tilec_ir::diag::Reported;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{Mma, ValueDef};
use tilec_ir::layout::extent_bits;
use tilec_ir::layout::hardware::{Descriptor, descriptor, plain_offset};
use tilec_ir::target::WARP;
use tilec_ir::types::Elem;
use tilec_ir::typing::{ResolvedView, operand_shape, resolve_view};

/// Atom, inputs, sum type; the instructions with A in shared memory and with A in registers.
const OPCODES: &[(&str, Inputs, Elem, P, P)] = &[
    ("m64k16", both(F16), F32, P::WgmmaM64k16F32F16, P::WgmmaRegsM64k16F32F16),
    ("m64k16", both(BF16), F32, P::WgmmaM64k16F32Bf16, P::WgmmaRegsM64k16F32Bf16),
    ("m64k16", both(F16), F16, P::WgmmaM64k16F16F16, P::WgmmaRegsM64k16F16F16),
    ("m64k8_tf32", both(TF32), F32, P::WgmmaM64k8F32Tf32, P::WgmmaRegsM64k8F32Tf32),
    ("m64k32_i8", both(I8), I32, P::WgmmaM64k32S32S8, P::WgmmaRegsM64k32S32S8),
    ("m64k32_i8", both(U8), I32, P::WgmmaM64k32S32U8, P::WgmmaRegsM64k32S32U8),
    ("m64k32_i8", I8_U8, I32, P::WgmmaM64k32S32S8U8, P::WgmmaRegsM64k32S32S8U8),
    ("m64k32_i8", U8_I8, I32, P::WgmmaM64k32S32U8S8, P::WgmmaRegsM64k32S32U8S8),
    ("m64k32_f8", both(E4M3), F32, P::WgmmaM64k32F32E4m3, P::WgmmaRegsM64k32F32E4m3),
    ("m64k32_f8", both(E5M2), F32, P::WgmmaM64k32F32E5m2, P::WgmmaRegsM64k32F32E5m2),
    ("m64k32_f8", E4M3_E5M2, F32, P::WgmmaM64k32F32E4m3E5m2, P::WgmmaRegsM64k32F32E4m3E5m2),
    ("m64k32_f8", E5M2_E4M3, F32, P::WgmmaM64k32F32E5m2E4m3, P::WgmmaRegsM64k32F32E5m2E4m3),
    ("m64k32_f8", both(E4M3), F16, P::WgmmaM64k32F16E4m3, P::WgmmaRegsM64k32F16E4m3),
    ("m64k32_f8", both(E5M2), F16, P::WgmmaM64k32F16E5m2, P::WgmmaRegsM64k32F16E5m2),
    ("m64k32_f8", E4M3_E5M2, F16, P::WgmmaM64k32F16E4m3E5m2, P::WgmmaRegsM64k32F16E4m3E5m2),
    ("m64k32_f8", E5M2_E4M3, F16, P::WgmmaM64k32F16E5m2E4m3, P::WgmmaRegsM64k32F16E5m2E4m3),
];

/// The instruction of an atom for these types, and its column operand; `None` if there is none.
fn instruction(atom: &str, inputs: Inputs, sums: Elem, columns: u32, a_in_registers: bool) -> Option<(P, Operand)> {
    let &(.., shared, registers) = OPCODES.iter().find(|o| (o.0, o.1, o.2) == (atom, inputs, sums))?;
    let op = if a_in_registers { registers } else { shared };
    let columns = u16::try_from(columns).ok()?;
    op.signature().columns()?.contains(&columns).then_some((op, Operand::Columns(columns)))
}

/// The operands after the descriptors and the predicate; `transposed`: for each descriptor.
fn tail(elem: Elem, transposed: &[bool]) -> Vec<Operand> {
    let mut tail = Vec::new();
    if elem.is_float() {
        tail.extend([Operand::Imm(1), Operand::Imm(1)]);
    }
    if elem.bits() == 16 {
        tail.extend(transposed.iter().map(|&t| Operand::Imm(i64::from(t))));
    }
    tail
}

/// The instruction's A.
enum Left {
    Shared(SharedOperand),
    /// Registers for each step along the reduction and each repetition along rows.
    Registers(Vec<Vec<Vec<Reg>>>),
}

impl Left {
    fn steps(&self) -> usize {
        match self {
            Left::Shared(side) => side.steps.len(),
            Left::Registers(steps) => steps.len(),
        }
    }
}

/// An operand in shared memory.
struct SharedOperand {
    descriptor: Descriptor,
    /// The descriptor of its first element in the current slot, for the thread's warpgroup.
    base: Reg,
    /// Bytes of the buffer in front of it.
    first: u64,
    /// Bytes of each step along the reduction, and of each repetition along the other dimension.
    steps: Vec<u64>,
    repeats: Vec<u64>,
    /// Bytes of each bit of the warpgroup's number.
    groups: Vec<u64>,
}

impl Lower<'_> {
    /// `empty`: the accumulator is still zero, and the first products overwrite it.
    pub(super) fn warpgroup_product(
        &mut self,
        s: Stmt,
        src: Expr,
        atom: Atom,
        mma: &Mma,
        c: &Tile,
        empty: bool,
    ) -> Result<u32, Reported> {
        let row = atom.row();
        let (rows, _, depth) = row.log2_shape;
        // The instruction's A and B; the tile's dimension that is the reduction.
        let ((ea, ka), eb) = if mma.swap { ((mma.b, 0), mma.a) } else { ((mma.a, 1), mma.b) };
        let (Some(va), Some(vb)) = (resolve_view(self.k, ea), resolve_view(self.k, eb)) else {
            return Err(self.unfit(src, "a wgmma product on other than shared memory"));
        };
        let fragment = self.tile_of(ea);
        let (Some(elem), Some(second)) = (self.elem(va.base), self.elem(vb.base)) else {
            return Err(self.unsupported(src, "these element types"));
        };
        let inputs = Inputs { a: elem, b: second };
        let Some((cols, repeats, groups)) = pattern(c, mma.swap, rows, fragment.as_ref().map(|a| (a, ka))) else {
            let what = "an accumulator whose layout is not that of warpgroups; `warp_tile (64, 64)` in the schedule, say, is what each of them \
                        computes, in multiples of 64 rows";
            return Err(self.unfit(src, what));
        };
        let Some((op, columns)) = instruction(row.name, inputs, c.elem, cols, fragment.is_some()) else {
            return Err(self.unfit(src, "wgmma products of these types and columns"));
        };
        // What each warpgroup bit and each repetition adds to rows and columns.
        let rows_of = |list: &[[u64; 2]]| list.iter().map(|at| at[0]).collect::<Vec<u64>>();
        let cols_of = |list: &[[u64; 2]]| list.iter().map(|at| at[1]).collect::<Vec<u64>>();
        let b =
            self.side(src, (&vb, mma, !mma.swap), (u64::from(cols), depth), (&cols_of(&groups), &cols_of(&repeats)))?;
        self.report_operand(s, row, &vb, &b, Some(cols.into()));
        let a = match &fragment {
            Some(tile) => {
                let Some(regs) = registers(tile, ka, depth, &rows_of(&repeats)) else {
                    return Err(self.unfit(src, "an operand in registers in this layout"));
                };
                Left::Registers(regs)
            }
            None => {
                let side =
                    self.side(src, (&va, mma, mma.swap), (1 << rows, depth), (&rows_of(&groups), &rows_of(&repeats)))?;
                self.report_operand(s, row, &va, &side, None);
                Left::Shared(side)
            }
        };
        if a.steps() != b.steps.len() {
            return Err(self.unfit(src, "operands of different depth"));
        }
        self.emit.push(P::WgmmaFence, []);
        let always = self.always();
        let first = if empty { self.never() } else { always };
        let each = c.regs.len() / b.repeats.len();
        // Columns beyond the tile have no registers.
        let held = c.elem.bytes_of(cols.into()).div_ceil(8) as usize;
        let mut count = 0;
        for step in 0..b.steps.len() {
            for r in 0..b.repeats.len() {
                let acc = Operand::Vec(c.regs[r * each..r * each + held.min(each)].to_vec());
                let db = self.stepped(&b, step, r);
                let adds = if step == 0 { first } else { always };
                let (left, transposed) = match &a {
                    Left::Shared(side) => {
                        let both = vec![side.descriptor.transposed, b.descriptor.transposed];
                        (self.stepped(side, step, r).into(), both)
                    }
                    Left::Registers(steps) => (Operand::Vec(steps[step][r].clone()), vec![b.descriptor.transposed]),
                };
                let mut operands = vec![acc, columns.clone(), left, db.into(), adds.into()];
                operands.extend(tail(elem, &transposed));
                self.emit.push(op, operands);
                count += 1;
            }
        }
        self.emit.push(P::WgmmaCommitGroup, []);
        Ok(count)
    }

    /// `columns`: the columns of B; `None`: the operand is A.
    fn report_operand(
        &mut self,
        s: Stmt,
        atom: &AtomRow,
        view: &ResolvedView,
        side: &SharedOperand,
        columns: Option<u64>,
    ) {
        if !self.report_accesses {
            return;
        }
        let (rows, _, depth) = atom.log2_shape;
        self.report.operands.push(OperandReport {
            span: self.k.stmt_spans[s],
            second: columns.is_some(),
            buffer: self.k.values[view.base].name.clone(),
            atom: atom.name.to_owned(),
            elem: self.elem(view.base).expect("specialised").size(),
            descriptor: side.descriptor,
            extents: (columns.unwrap_or(1 << rows), 1 << depth),
            steps: side.steps.iter().map(|step| side.first + step).collect(),
            repeats: side.repeats.clone(),
            groups: side.groups.clone(),
        });
    }

    fn stepped(&mut self, side: &SharedOperand, step: usize, repeat: usize) -> Reg {
        match side.steps[step] + side.repeats[repeat] {
            0 => side.base,
            // The address field counts units of 16 bytes.
            bytes => self.emit.def(Class::B64, P::AddS64, [side.base.into(), Operand::Imm((bytes >> 4) as i64)]),
        }
    }

    /// `second`: the operand is that of the product. `lines` and `depth`: the instruction's extent along the other dimension than the reduction, and log2 of
    /// that along the reduction. The last argument: what each bit of the warpgroup's number, and each repetition, adds along the other dimension.
    fn side(
        &mut self,
        src: Expr,
        (view, mma, second): (&ResolvedView, &Mma, bool),
        (lines, depth): (u64, u32),
        (groups, repeats): (&[u64], &[u64]),
    ) -> Result<SharedOperand, Reported> {
        let k = self.k;
        let Some(elem) = self.elem(view.base) else { return Err(self.unsupported(src, "these element types")) };
        // A slot that was waited for, or a buffer that the threads have written.
        let own = matches!(k.values[view.base].def, ValueDef::Smem(_));
        let whole = view.dims.len() == 2 && (view.slot == Some(tilec_ir::kernel::Slot::Get) || own);
        // The buffer's dimension that is the reduction.
        let along = usize::from(second == view.transposed);
        let layout = k.tile_ty(view.base).and_then(|t| t.smem_layout.clone()).filter(|_| whole);
        let found = layout
            .and_then(|l| Some((descriptor(&l, elem.size(), (1 - along, extent_bits(lines)), (along, depth))?, l)));
        let (Some((d, layout)), Some(placed)) = (found, self.placed[view.base]) else {
            return Err(self.unfit(src, "an operand of a warpgroup's product in this layout"));
        };
        let shape = operand_shape(k, mma, second);
        let extents = shape.and_then(|shape| view.extents_of_base(&shape));
        let start = shape.and_then(|shape| view.constant_start(k, &shape));
        let (Some(extents), Some(start)) = (extents, start) else {
            return Err(self.unfit(src, "a window of a buffer at other than a constant place in it"));
        };
        if !extents[along].is_multiple_of(1 << depth) {
            return Err(self.unfit(src, "a reduction that is not a multiple of the instruction's"));
        }
        let window = ([extents[1 - along], extents[along]], [lines, 1 << depth]);
        if start.iter().any(|&at| at > 0) && !d.reads_window(&layout, elem.size(), along, [start[0], start[1]], window)
        {
            return Err(self.unfit(src, "a window of a buffer that begins inside of a period of the swizzle"));
        }
        let place = |outer: u64, inner: u64| {
            let coords = if along == 1 { [outer, inner] } else { [inner, outer] };
            plain_offset(&layout, elem.size(), d.exchange, &[start[0] + coords[0], start[1] + coords[1]])
        };
        let first = place(0, 0);
        let offset = |outer: u64, inner: u64| place(outer, inner) - first;
        let steps = (0..extents[along]).step_by(1 << depth).map(|at| offset(0, at)).collect();
        let mut all = vec![0];
        for &r in repeats {
            let more: Vec<u64> = all.iter().map(|x| x + offset(r, 0)).collect();
            all.extend(more);
        }
        let group_bytes: Vec<u64> = groups.iter().map(|&g| offset(g, 0)).collect();
        let base = self.descriptor_base(&d, placed.offset + first, &group_bytes);
        // The slot, in units of 16 bytes.
        let base = match placed.ring.map(|r| (self.rings[r].get, self.rings[r].stride)) {
            Some((Position::Reg(slot), _)) => {
                let units = self.emit.def(Class::B32, P::ShrU32, [slot.into(), Operand::Imm(4)]);
                let wide = self.emit.def(Class::B64, P::CvtU64U32, [units.into()]);
                self.emit.def(Class::B64, P::AddS64, [base.into(), wide.into()])
            }
            Some((Position::Slot(i), stride)) => {
                let units = Operand::Imm(((i * stride) >> 4) as i64);
                self.emit.pure(Class::B64, P::AddS64, [base.into(), units])
            }
            None => base,
        };
        Ok(SharedOperand { descriptor: d, base, first, steps, repeats: all, groups: group_bytes })
    }

    /// The descriptor of the first slot, for the thread's warpgroup.
    fn descriptor_base(&mut self, d: &Descriptor, offset: u64, group_bytes: &[u64]) -> Reg {
        let base = self.emit.pure(Class::B32, P::MovSharedU32, [Operand::SharedSym(0)]);
        let mut at = self.emit.pure(Class::B32, P::AddS32, [base.into(), Operand::Imm(offset as i64)]);
        if group_bytes.iter().any(|&b| b != 0) {
            let group = self.warpgroup_index();
            let part = self.linear_map(group, group_bytes);
            let part = self.in32(part);
            at = self.emit.pure(Class::B32, P::AddS32, [at.into(), part.into()]);
        }
        if self.cluster_blocks() > 1 {
            // The field has the lower 18 bits of an address; in a cluster, higher bits may select a block.
            at = self.emit.pure(Class::B32, P::AndB32, [at.into(), Operand::Imm(0x3_FFFF)]);
        }
        let units = self.emit.pure(Class::B32, P::ShrU32, [at.into(), Operand::Imm(4)]);
        let wide = self.emit.pure(Class::B64, P::CvtU64U32, [units.into()]);
        let fields = Operand::Imm(d.bits() as i64);
        self.emit.pure(Class::B64, P::OrB64, [wide.into(), fields])
    }

    /// The thread's warpgroup within its role.
    fn warpgroup_index(&mut self) -> Reg {
        let warp = self.warp_index();
        let first = self.role_first_warp();
        let own = match (self.part.filter(|p| p.replicas > 1), first) {
            (Some(part), _) => self.warp_in_replica(part),
            (None, 0) => warp,
            (None, n) => self.emit.pure(Class::B32, P::SubS32, [warp.into(), Operand::Imm(i64::from(n))]),
        };
        self.emit.pure(Class::B32, P::ShrU32, [own.into(), Operand::Imm(2)])
    }

    /// Forces these tiles to be computed before the next wait: the assembler would move independent arithmetic after
    /// it. An instruction without effect, predicated on their elements, keeps the arithmetic in front.
    pub(super) fn compute_first(&mut self, tiles: &[Value]) {
        let regs: Vec<Reg> =
            tiles.iter().filter_map(|&v| self.tiles[v].as_ref()).flat_map(|t| t.regs.clone()).collect();
        let Some((&first, rest)) = regs.split_first() else { return };
        let sum = rest.iter().fold(first, |sum, &r| self.emit.def(Class::F32, P::AddF32, [sum.into(), r.into()]));
        // The predicate is true only for NaN, and then the instruction sleeps briefly.
        let unordered = self.emit.def(Class::Pred, P::SetpNeuF32, [sum.into(), sum.into()]);
        let guard = Some(Guard { reg: unordered, negated: false });
        self.emit.push_if(guard, P::NanosleepU32, [Operand::Imm(1)]);
    }

    /// Waits until at most `pending` groups of products are pending.
    pub(super) fn await_products(&mut self, pending: u32) {
        self.emit.push(P::WgmmaWaitGroup, [Operand::Imm(i64::from(pending.min(7)))]);
    }
}

/// The rows of a fragment that the row bits of the instruction stand for: bit 3, which selects registers of a thread,
/// and the bits of lanes and warps. The sums are in the same rows of the product as the fragment's.
fn rows_of_fragment(a: &Tile, along: usize) -> Option<(u64, [u64; 5])> {
    let [low, _] = a.dim_bits[..] else { return None };
    let row = |column: u64| {
        let at = [column & ((1 << low) - 1), column >> low];
        (at[along] == 0).then_some(at[1 - along])
    };
    if a.layout.thread_bits() < 7 || a.layout.value_bits() <= a.per_register.ilog2() {
        return None;
    }
    let lanes = [2, 3, 4, 5, 6].map(|i| row(a.layout.thread_col(i)));
    let [Some(g), Some(h), Some(i), Some(j), Some(k)] = lanes else { return None };
    Some((row(a.layout.value_col(a.per_register.ilog2()))?, [g, h, i, j, k]))
}

/// Registers of A in one instruction.
const A_REGISTERS: usize = 4;

/// The registers of A for each step along the reduction and each repetition of the sums, from a fragment with reduction
/// dimension `along`. `depth`: log2 of a step; `repeats`: what the bits of a repetition's number add to rows.
fn registers(a: &Tile, along: usize, depth: u32, repeats: &[u64]) -> Option<Vec<Vec<Vec<Reg>>>> {
    let [low, _] = a.dim_bits[..] else { return None };
    let own = A_REGISTERS.ilog2() + a.per_register.ilog2();
    let more = a.layout.value_bits().checked_sub(own)?;
    // Row and step of the value bits beyond those of one instruction.
    let mut places = BTreeMap::new();
    for i in 0..1u64 << more {
        let at = (0..more).filter(|b| i >> b & 1 == 1).fold(0, |at, b| at ^ a.layout.value_col(own + b));
        let at = [at & ((1 << low) - 1), at >> low];
        places.insert((at[1 - along], at[along]), i as usize * A_REGISTERS);
    }
    let mut rows = vec![0];
    for &r in repeats {
        let more: Vec<u64> = rows.iter().map(|x| x ^ r).collect();
        rows.extend(more);
    }
    let steps = a.dim_bits.extents().get(along).filter(|n| n.is_multiple_of(1 << depth))? >> depth;
    let of = |row: u64, step: u64| {
        let &first = places.get(&(row, step << depth))?;
        Some(a.regs.get(first..first + A_REGISTERS)?.to_vec())
    };
    (0..steps).map(|step| rows.iter().map(|&row| of(row, step)).collect()).collect()
}

/// Layout of an accumulator: the columns of an instruction; what each repetition, and each bit of the warpgroup's
/// number, adds to rows and columns. `rows`: log2 of the instruction's rows.
type Pattern = (u32, Vec<[u64; 2]>, Vec<[u64; 2]>);

fn pattern(c: &Tile, swap: bool, rows: u32, fragment: Option<(&Tile, usize)>) -> Option<Pattern> {
    let [low, _] = c.dim_bits[..] else { return None };
    let split = |column: u64| {
        let at = [column & ((1 << low) - 1), column >> low];
        if swap { [at[1], at[0]] } else { at }
    };
    let value = |i: u32| split(c.layout.value_col(i));
    let thread = |i: u32| split(c.layout.thread_col(i));
    let (eight, lanes) = match fragment {
        Some((a, along)) => rows_of_fragment(a, along)?,
        None => (8, [1, 2, 4, 16, 32]),
    };
    // Values: adjacent columns, rows eight apart, then columns by eights.
    let own = c.layout.value_bits() >= 2 && value(0) == [0, 1] && value(1) == [eight, 0];
    let pairs = c.layout.thread_bits() >= 7 && thread(0) == [0, 2] && thread(1) == [0, 4];
    let spread = pairs && (2..7).zip(lanes).all(|(i, row)| thread(i) == [row, 0]);
    if !own || !spread || rows != 6 {
        return None;
    }
    let more = (2..c.layout.value_bits()).take_while(|&i| value(i) == [0, 8 << (i - 2)]).count() as u32;
    let repeats = (2 + more..c.layout.value_bits()).map(value).collect();
    let groups = (WARP.ilog2() + 2..c.layout.thread_bits()).map(thread).collect();
    // If the columns of a tile are no power of two, all of them belong to one instruction.
    let extent = c.dim_bits.extents().get(usize::from(!swap)).copied()?;
    let cols = if extent.is_power_of_two() { 8 << more } else { u32::try_from(extent).ok()? };
    let whole = extent.is_power_of_two() || extent_bits(extent) == 3 + more;
    whole.then_some((cols, repeats, groups))
}

#[cfg(test)]
mod tests {
    use super::{OPCODES, Operand, instruction};

    #[test]
    fn instructions_have_any_legal_count_of_columns() {
        for &(atom, inputs, sums, shared, registers) in OPCODES {
            for columns in 0..=u32::from(u16::MAX) + 9 {
                let legal = if inputs.a.is_float() {
                    columns % 8 == 0
                } else {
                    columns == 8 || columns == 24 || columns % 16 == 0
                };
                let row = tilec_ir::atoms::Atom::from_name(atom).expect("an atom").row();
                assert_eq!(row.has_columns(columns.into()), legal && (8..=256).contains(&columns), "{atom} {columns}");
                for (a_in_registers, op) in [(false, shared), (true, registers)] {
                    let expected =
                        (legal && (8..=256).contains(&columns)).then_some((op, Operand::Columns(columns as u16)));
                    assert_eq!(instruction(atom, inputs, sums, columns, a_in_registers), expected, "{op:?} {columns}");
                }
            }
        }
    }

    /// Types of sums, A and B, in the order of the opcode.
    #[test]
    fn instructions_have_the_types_of_their_products() {
        for &(atom, inputs, sums, shared, registers) in OPCODES {
            let name = |elem: tilec_ir::types::Elem| elem.name().replace('i', "s");
            let depth = atom.trim_start_matches("m64").split('_').next().expect("a shape");
            let end = format!("m64nN{depth}.{}.{}.{}", name(sums), name(inputs.a), name(inputs.b));
            for op in [shared, registers] {
                assert!(op.mnemonic().ends_with(&end), "{op:?}: {end}");
            }
            let of_a = [shared, registers].map(|op| op.signature().srcs[1]);
            assert!(matches!(of_a, [crate::ops::Kind::Reg(_), crate::ops::Kind::Vec(4, _)]), "{atom} {inputs}");
        }
    }
}
