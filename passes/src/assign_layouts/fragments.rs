//! Fragment layouts of products, from the atom table.
//!
//! Bits of a tile coordinate along rows (columns) are assigned from the lowest. The first are the atom's own coordinate
//! and repetitions of the atom, in the order of the row's `interleave`. The remaining repetitions follow, then warps. A
//! and C have the same assignment along rows, B and C along columns, and A and B along the reduction, so the product is
//! correct by construction. Warps that share a reduction each take a part of it: the highest bits along the reduction,
//! and the first dimension of the accumulator, which has a partial sum for each. The verifier checks the product again
//! from the layouts alone.

mod k_order;
mod lane_rows;

use super::{log2_shape, sliced_operands};
use crate::Cx;
use crate::analysis::access_width::elem_of;
use crate::analysis::contiguous_dim::smem_window_dim;
use crate::analysis::uses::all_stmts;
use tilec_ir::atoms::{Atom, AtomRow, Bit, CoordBit, Fragment, Inputs, Unit};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, Mma, StmtData};
use tilec_ir::layout::{RegLayout, extent_bits};
use tilec_ir::types::Elem;
use tilec_ir::typing::{fixed_shape, resolve_view};

/// Gives every product's operands their layouts.
pub(super) fn assign(k: &mut Kernel, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let mut met = false;
    for s in all_stmts(k, k.body) {
        let StmtData::Assign { dst, src } = k.stmts[s] else { continue };
        let ExprData::Mma(mma) = k.exprs[src] else { continue };
        if mma.atom.is_some_and(|a| a.row().asynchronous()) {
            met |= of_warpgroups(k, dst, &mma);
            continue;
        }
        let Some(mut product) = Product::new(k, cx, dst, &mma) else {
            return Err(cx.report(
                Diagnostic::error(
                    codes::MMA_FORM,
                    k.expr_spans[src],
                    "the operands of this product have no fixed shape",
                )
                .with_note("products take register tiles of fixed shape and a selected atom here"),
            ));
        };
        let row = product.row;
        let types = [product.instr_a().0, product.instr_b().0, dst].map(|v| elem_of(k, v));
        let types = match types {
            [Some(a), Some(b), Some(c)] => row.types_for(Inputs { a, b }, c),
            _ => None,
        };
        let Some(types) = types else {
            return Err(cx.report(
                Diagnostic::error(
                    codes::NO_ATOM,
                    k.expr_spans[src],
                    format!("`{}` does not take these types", row.name),
                )
                .with_note(format!("it takes {}", type_list(row))),
            ));
        };
        let (a_frag, b_frag) =
            (product.variant(k, row.a, product.instr_a()), product.variant(k, row.b, product.instr_b()));
        if cx.enabled {
            let operand = |((tile, k_dim), fragment, side): ((Value, usize), &'static Fragment, usize)| {
                k_order::Operand { tile, k_dim, fragment, lines: product.lines(side) }
            };
            let operands = [(product.instr_a(), a_frag, 0), (product.instr_b(), b_frag, 1)].map(operand);
            let bits = (row.log2_shape.2, product.k_bits.saturating_sub(product.slice_bits));
            let contiguous = |tile| source_contiguous(k, tile);
            product.run = k_order::run(k, &operands, bits, &contiguous);
            // The layout of an accumulator determines which rows lanes have.
            if product.run.is_some() && k.tile_ty(dst).is_some_and(|tile| tile.reg_layout.is_none()) {
                let sides = operands.iter().zip(&mut product.places);
                sides.for_each(|(operand, Places { atom, repeat })| {
                    lane_rows::place(k, operand, (atom, repeat), &contiguous)
                });
            }
        }
        let layouts = [
            (dst, product.accumulator(&types.c)),
            (product.instr_a().0, product.operand(a_frag, true)),
            (product.instr_b().0, product.operand(b_frag, false)),
        ];
        for (v, layout) in layouts {
            match k.tile_ty_mut(v) {
                Some(tile) if tile.reg_layout.is_none() => tile.reg_layout = layout,
                _ => met = true,
            }
        }
    }
    sliced_operands::assign_repeated_layouts(k);
    // A written layout, or that of another product, may contradict those found here.
    if met { cx.verify(k) } else { Ok(()) }
}

/// The layouts of a wgmma accumulator, and of the instruction's A if it is in registers. The result says whether one of
/// them had a layout.
fn of_warpgroups(k: &mut Kernel, acc: Value, mma: &Mma) -> bool {
    let a = crate::analysis::views::plain_var(k, if mma.swap { mma.b } else { mma.a });
    let layouts = scheduled_warp_tile(k, mma.swap).and_then(|warp| of_warp_tile(k, acc, mma, warp, 1));
    // There may be no warp tile if all layouts are written.
    let (sums, fragment) = layouts.map_or((None, None), |(sums, fragment)| (Some(sums), fragment));
    let mut met = false;
    for (v, layout) in [(Some(acc), sums), (a, fragment)] {
        match v.and_then(|v| k.tile_ty_mut(v)) {
            Some(tile) if tile.reg_layout.is_none() => tile.reg_layout = layout,
            Some(_) => met = true,
            None => {}
        }
    }
    met
}

/// The layouts of a wgmma accumulator, and of the instruction's A if it is in registers. `warp`: log2 extents of a
/// warpgroup's part along the instruction's rows and columns. `repeats`: the number of warpgroups that compute the same
/// part.
fn of_warp_tile(
    k: &Kernel,
    acc: Value,
    mma: &Mma,
    warp: [u32; 2],
    repeats: u64,
) -> Option<(RegLayout, Option<RegLayout>)> {
    let a = crate::analysis::views::plain_var(k, if mma.swap { mma.b } else { mma.a });
    let row = mma.atom?.row();
    let types = row.types.iter().find(|t| Some(t.acc) == elem_of(k, acc))?;
    let c_shape = k.const_shape(&k.tile_ty(acc)?.shape)?;
    let [m, n] = log2_shape(&c_shape)[..] else { return None };
    // Products of a written role share one `warp_tile`; each is limited by its accumulator.
    let extents = if mma.swap { [n, m] } else { [m, n] };
    let warp = [warp[0].min(extents[0]), warp[1].min(extents[1])];
    let (rows, cols, _) = row.log2_shape;
    let mut places = [places(row, rows, warp[0], 0, true), places(row, cols, warp[1], 0, true)];
    if a.is_some_and(|a| source_contiguous(k, a) == Some(usize::from(mma.swap))) {
        spread(row, &mut places[0]);
    }
    let shape = a.and_then(|a| k.const_shape(&k.tile_ty(a)?.shape)).map_or_else(Vec::new, |s| log2_shape(&s));
    let k_bits = shape.get(usize::from(!mma.swap)).copied().unwrap_or(0);
    let mut warps = assign_warp_bits(extents, warp);
    warps.resize(warps.len() + extent_bits(repeats) as usize, None);
    let product = Product {
        row,
        swap: mma.swap,
        a: acc,
        b: acc,
        c_bits: [m, n],
        k_bits,
        slice_bits: 0,
        places,
        run: None,
        warps,
    };
    Some((product.accumulator(&types.c)?, product.operand(row.a.first()?, true)))
}

/// The layouts of an accumulator of which a warpgroup computes `tile` (`repeats` warpgroups compute the same), and of
/// the instruction's A if it is in registers.
pub(crate) fn warpgroup_layouts(
    k: &Kernel,
    acc: Value,
    mma: &Mma,
    tile: (u64, u64),
    repeats: u64,
) -> Option<(RegLayout, Option<RegLayout>)> {
    let (wm, wn) = (extent_bits(tile.0), extent_bits(tile.1));
    of_warp_tile(k, acc, mma, if mma.swap { [wn, wm] } else { [wm, wn] }, repeats)
}

/// Exchanges two row bits of a fragment of 32-bit elements whose rows are contiguous in memory. The swizzle exchanges
/// 16-byte pieces by the two lowest bits of the reduction. Lanes have these bits and three row bits. They access
/// different banks if the highest of the three row bits is beyond the swizzled ones. Warps get the other bit.
fn spread(row: &AtomRow, rows: &mut Places) {
    let lanes = row.a.first().map(|f| f.lane);
    if let (Some([Bit::K(0), Bit::K(1), .., Bit::M(2)]), Unit::Warpgroup([Bit::M(4), _])) = (lanes, row.unit) {
        rows.atom.swap(2, 4);
    }
}

/// Log2 extents of the warp tile along the instruction's rows and columns, from the schedule.
fn scheduled_warp_tile(k: &Kernel, swap: bool) -> Option<[u32; 2]> {
    let (wm, wn) = k.schedule.warp_tile?;
    let wm = extent_bits(u64::try_from(k.as_int(wm)?).ok()?);
    let wn = extent_bits(u64::try_from(k.as_int(wn)?).ok()?);
    Some(if swap { [wn, wm] } else { [wm, wn] })
}

fn type_list(row: &AtomRow) -> String {
    let pairs: Vec<_> =
        row.types.iter().map(|t| format!("{} inputs with {} accumulation", t.inputs, t.acc.name())).collect();
    pairs.join(", ")
}

/// For each bit of a warp's number, the side and tile bit; `None`: warps that differ in it compute the same.
type Warps = Vec<Option<(usize, u32)>>;

/// A product in terms of the instruction: rows are those of the instruction, even if the tile is transposed.
struct Product {
    row: &'static AtomRow,
    swap: bool,
    a: Value,
    b: Value,
    /// Log2 extents of the accumulator's dimensions.
    c_bits: [u32; 2],
    /// Log2 of the reduction extent of the fragments.
    k_bits: u32,
    /// Log2 of the slices of the reduction; the accumulator has partial sums for each slice, in different warps.
    slice_bits: u32,
    /// Tile bit of each atom coordinate bit, and of each repetition, along rows and columns.
    places: [Places; 2],
    /// Log2 of the consecutive elements along the reduction in a lane, if that differs from the instruction's order.
    run: Option<u32>,
    /// The part of the accumulator that each warp has.
    warps: Warps,
}

#[derive(Default)]
struct Places {
    atom: Vec<u32>,
    repeat: Vec<u32>,
}

/// Assigns the bits of a warp's number: first to rows of warp tiles in the accumulator's `extents` (log2), then to
/// columns.
fn assign_warp_bits(extents: [u32; 2], warp: [u32; 2]) -> Warps {
    [0, 1].into_iter().flat_map(|side| (warp[side]..extents[side]).map(move |p| Some((side, p)))).collect()
}

/// Tile bits along one side; `run`: repetition bits of a 16-byte run of input elements.
fn places(row: &AtomRow, atom_bits: u32, warp_bits: u32, run: u32, natural: bool) -> Places {
    let repeats = warp_bits.saturating_sub(atom_bits);
    let mut atom = vec![None; atom_bits as usize];
    let mut repeat = Vec::new();
    let mut next = 0;
    if !natural {
        for place in row.interleave {
            match *place {
                CoordBit::Atom(i) => {
                    if let Some(slot) = atom.get_mut(usize::from(i)) {
                        *slot = Some(next);
                        next += 1;
                    }
                }
                CoordBit::Repeat if (repeat.len() as u32) < repeats => {
                    repeat.push(next);
                    next += 1;
                }
                CoordBit::Repeat => {}
                CoordBit::Run => {
                    let count = run.min(2).min(repeats - repeat.len() as u32);
                    repeat.extend(next..next + count);
                    next += count;
                }
            }
        }
    }
    let atom = atom
        .into_iter()
        .map(|slot| {
            slot.unwrap_or_else(|| {
                let here = next;
                next += 1;
                here
            })
        })
        .collect();
    while (repeat.len() as u32) < repeats {
        repeat.push(next);
        next += 1;
    }
    Places { atom, repeat }
}

impl Product {
    fn new(k: &Kernel, cx: &Cx<'_>, acc: Value, mma: &Mma) -> Option<Product> {
        let row = mma.atom?.row();
        let var = |e: Expr| crate::analysis::views::plain_var(k, e);
        let (a, b) = (var(mma.a)?, var(mma.b)?);
        let (c_bits, slice_bits) = accumulator_bits(k, acc)?;
        let k_bits = *log2_shape(&fixed_shape(k, mma.a)?).get(1)?;
        let mut product = Product {
            row,
            swap: mma.swap,
            a,
            b,
            c_bits,
            k_bits,
            slice_bits,
            places: [Places::default(), Places::default()],
            run: None,
            warps: Vec::new(),
        };
        let inputs = Inputs { a: elem_of(k, product.instr_a().0)?, b: elem_of(k, product.instr_b().0)? };
        let types = row.types_for(inputs, elem_of(k, acc)?);
        let laid_out = k.tile_ty(acc)?.reg_layout.as_ref();
        let known = types.zip(laid_out).and_then(|(types, layout)| product.read_off(&types.c, layout));
        (product.places, product.warps) = match known {
            Some(known) => known,
            None => {
                let warp = scheduled_warp_tile(k, mma.swap)?;
                let run = run_of(elem_of(k, a)?);
                let extents = [product.extent(0), product.extent(1)];
                (places_of(row, warp, run, !cx.enabled), assign_warp_bits(extents, warp))
            }
        };
        Some(product)
    }

    /// Places and warps of a product whose accumulator already has a layout, which repeats `c` of the instruction.
    fn read_off(&self, c: &Fragment, layout: &RegLayout) -> Option<([Places; 2], Warps)> {
        let (m, n, _) = self.row.log2_shape;
        let dims = [0..self.c_bits[0], self.c_bits[0]..self.c_bits[0] + self.c_bits[1]];
        // Side and tile bit of a layout column.
        let place = |column: u64| {
            let at = (column >> self.slice_bits).trailing_zeros();
            let dim = dims.iter().position(|d| column.is_power_of_two() && d.contains(&at))?;
            Some((if self.swap { 1 - dim } else { dim }, at - dims[dim].start))
        };
        let mut atom = [vec![None; m as usize], vec![None; n as usize]];
        let mut places = [Places::default(), Places::default()];
        let own = c.value.len() as u32;
        let value = c.value.iter().zip((0..own).map(|i| layout.value_col(i)));
        let lane = c.lane.iter().zip((0..).map(|i| layout.thread_col(i)));
        for (bit, column) in value.chain(lane) {
            let (wanted, i) = match *bit {
                Bit::M(i) => (0, i),
                Bit::N(i) => (1, i),
                Bit::K(_) | Bit::Same => continue,
            };
            let (side, at) = place(column).filter(|&(side, _)| side == wanted)?;
            *atom[side].get_mut(usize::from(i))? = Some(at);
        }
        for i in own..layout.value_bits() {
            let (side, at) = place(layout.value_col(i))?;
            places[side].repeat.push(at);
        }
        for (places, atom) in places.iter_mut().zip(atom) {
            places.atom = atom.into_iter().collect::<Option<Vec<u32>>>()?;
        }
        let slices = (1u64 << self.slice_bits) - 1;
        let columns = (c.lane.len() as u32..layout.thread_bits()).map(|i| layout.thread_col(i));
        let warps = columns.filter(|c| c & slices == 0).map(|c| if c == 0 { Some(None) } else { place(c).map(Some) });
        Some((places, warps.collect::<Option<Vec<_>>>()?))
    }

    /// The tile of the instruction's A operand, and its reduction dimension.
    fn instr_a(&self) -> (Value, usize) {
        if self.swap { (self.b, 0) } else { (self.a, 1) }
    }

    /// The tile of the instruction's B operand, and its reduction dimension.
    fn instr_b(&self) -> (Value, usize) {
        if self.swap { (self.a, 1) } else { (self.b, 0) }
    }

    /// Number of rows (0) or columns (1) of the accumulator whose operands a lane holds.
    fn lines(&self, side: usize) -> u64 {
        let (m, n, _) = self.row.log2_shape;
        // Eight lanes divide the atom's rows or columns.
        1 << ([m, n][side].saturating_sub(3) + self.places[side].repeat.len() as u32)
    }

    /// The operand variant that matches the order of the source in memory: elements contiguous along the reduction are
    /// value bits along the reduction.
    fn variant(&self, k: &Kernel, variants: &'static [Fragment], (tile, k_dim): (Value, usize)) -> &'static Fragment {
        let along_k = source_contiguous(k, tile) == Some(k_dim);
        let matches_k = |f: &&Fragment| matches!(f.value.first(), Some(Bit::K(_))) == along_k;
        variants.iter().find(matches_k).unwrap_or(&variants[0])
    }

    /// Bits of the accumulator along the instruction's rows (0) and columns (1).
    fn extent(&self, side: usize) -> u32 {
        self.c_bits[if self.swap { 1 - side } else { side }]
    }

    /// The accumulator's column-major index bit for tile bit `p` along the instruction's rows or columns.
    fn c_column(&self, side: usize, p: u32) -> u64 {
        let dim = if self.swap { 1 - side } else { side };
        1 << (self.slice_bits + if dim == 0 { p } else { self.c_bits[0] + p })
    }

    fn accumulator(&self, c: &Fragment) -> Option<RegLayout> {
        let column = |bit: &Bit| match *bit {
            Bit::M(i) => self.c_column(0, self.places[0].atom[usize::from(i)]),
            Bit::N(i) => self.c_column(1, self.places[1].atom[usize::from(i)]),
            Bit::K(_) | Bit::Same => 0,
        };
        let mut value: Vec<u64> = c.value.iter().map(column).collect();
        value.extend(self.places[1].repeat.iter().map(|&p| self.c_column(1, p)));
        value.extend(self.places[0].repeat.iter().map(|&p| self.c_column(0, p)));
        let mut thread: Vec<u64> = c.lane.iter().map(column).collect();
        if let Unit::Warpgroup(bits) = self.row.unit {
            thread.extend(bits.iter().map(column));
        }
        thread.extend(self.warps.iter().map(|warp| warp.map_or(0, |(side, p)| self.c_column(side, p))));
        thread.extend((0..self.slice_bits).map(|i| 1u64 << i));
        RegLayout::new(value, thread, self.slice_bits + self.c_bits[0] + self.c_bits[1])
    }

    /// The layout of the instruction's A (`rows`) or B operand.
    fn operand(&self, fragment: &Fragment, rows: bool) -> Option<RegLayout> {
        let side = usize::from(!rows);
        let (_, k_dim) = if rows { self.instr_a() } else { self.instr_b() };
        let outer_bits = self.extent(side);
        // Column-major order: dimension 0 first. `k_dim` is the reduction dimension of the tile.
        let k_column = |i: u32| if k_dim == 0 { 1u64 << i } else { 1 << (outer_bits + i) };
        let o_column = |p: u32| if k_dim == 0 { 1u64 << (self.k_bits + p) } else { 1 << p };
        let (_, _, atom_k) = self.row.log2_shape;
        let k_slice = self.k_bits.saturating_sub(self.slice_bits);
        let steps = k_order::places(fragment, self.run, atom_k, k_slice);
        let k_column = |i: u32| k_column(steps.get(i as usize).copied().unwrap_or(i));
        let column = |bit: &Bit| match *bit {
            Bit::M(i) | Bit::N(i) => o_column(self.places[side].atom[usize::from(i)]),
            Bit::K(i) => k_column(u32::from(i)),
            Bit::Same => 0,
        };
        let k_repeat = (atom_k..k_slice).map(k_column);
        let o_repeat: Vec<u64> = self.places[side].repeat.iter().map(|&p| o_column(p)).collect();
        let mut value: Vec<u64> = fragment.value.iter().map(column).collect();
        if matches!(fragment.value.first(), Some(Bit::K(_))) {
            value.extend(k_repeat);
            value.extend(o_repeat);
        } else {
            value.extend(o_repeat);
            value.extend(k_repeat);
        }
        let mut thread: Vec<u64> = fragment.lane.iter().map(column).collect();
        if let Unit::Warpgroup(bits) = self.row.unit {
            thread.extend(bits.iter().map(column));
        }
        let along = |warp: &Option<(usize, u32)>| warp.filter(|&(s, _)| s == side).map_or(0, |(_, p)| o_column(p));
        thread.extend(self.warps.iter().map(along));
        thread.extend((k_slice..self.k_bits).map(k_column));
        RegLayout::new(value, thread, outer_bits + self.k_bits)
    }
}

/// Repetition bits of a 16-byte run of elements.
fn run_of(elem: Elem) -> u32 {
    elem.per(16).ilog2()
}

/// The places of a product with warp tiles of these log2 extents along the instruction's rows and columns.
fn places_of(row: &AtomRow, warp: [u32; 2], run: u32, natural: bool) -> [Places; 2] {
    let (m, n, _) = row.log2_shape;
    [places(row, m, warp[0], run, natural), places(row, n, warp[1], run, natural)]
}

/// Log2 extents of an accumulator, and log2 of its slices of the reduction.
fn accumulator_bits(k: &Kernel, acc: Value) -> Option<([u32; 2], u32)> {
    match log2_shape(&k.const_shape(&k.tile_ty(acc)?.shape)?)[..] {
        [m, n] => Some(([m, n], 0)),
        [slices, m, n] => Some(([m, n], slices)),
        _ => None,
    }
}

/// The layout of the accumulator of an `mma.sync` product with warp tiles of `warp` elements along rows and columns.
/// Surplus warps among `warps` are replicas.
pub(crate) fn accumulator_layout(
    k: &Kernel,
    acc: Value,
    (atom, swap): (Atom, bool),
    inputs: Inputs,
    (warp, warps): ((u64, u64), u64),
) -> Option<RegLayout> {
    let row = atom.row();
    let (c_bits, slice_bits) = accumulator_bits(k, acc)?;
    let warp = [extent_bits(warp.0), extent_bits(warp.1)];
    let sides = if swap { [1, 0] } else { [0, 1] };
    let (warp, extents) = (sides.map(|d| warp[d]), sides.map(|d| c_bits[d]));
    let run = run_of(inputs.a);
    let mut shared = assign_warp_bits(extents, warp);
    shared.resize(shared.len().max(extent_bits(warps) as usize), None);
    let places = places_of(row, warp, run, false);
    let product =
        Product { row, swap, a: acc, b: acc, c_bits, k_bits: 0, slice_bits, places, run: None, warps: shared };
    let inputs = if swap { Inputs { a: inputs.b, b: inputs.a } } else { inputs };
    let types = row.types_for(inputs, elem_of(k, acc)?)?;
    product.accumulator(&types.c)
}

/// The dimension along which the memory that fills a register tile is contiguous.
fn source_contiguous(k: &Kernel, tile: Value) -> Option<usize> {
    for s in all_stmts(k, k.body) {
        let StmtData::Copy { src, dst, .. } = k.stmts[s] else { continue };
        if crate::analysis::views::plain_var(k, dst) != Some(tile) {
            continue;
        }
        let Some(view) = resolve_view(k, src) else { continue };
        let dim = match view.space(k) {
            s if s.has_bounds() => crate::analysis::access_width::window_contiguous_dim(k, &view),
            s if s.is_of_block() => smem_window_dim(k, &view),
            _ => None,
        };
        if dim.is_some() {
            return dim;
        }
    }
    None
}
