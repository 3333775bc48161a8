//! Lowering: from the tile IR, with every decision made, to typed PTX instructions.
//!
//! [`lower`] walks the kernel once. There are no cycles between files, neither by imports nor by calls of methods of `Lower`:
//!
//! | level | files |
//! |---|---|
//! | data | `ints` (integers with ranges), `tile`, `rings`, `in_turns`, `windows`, `scope`, `operands`, and `emit` (the instruction list: value-numbered, hoisted) |
//! | state | `state`: shared state; `specials`, `ctas` and `threads`: thread numbers, and barriers |
//! | arithmetic | `widths`, `divide` and `index` (on integers), `products`, `numbers`, `arithmetic`, `functions_f64`, `power`, `round_random`, `integers`, `random` (elements), `conversions`, `packing`, `tiles` (elements of register tiles), `unpack` |
//! | expressions | `eval` (indices, conditions, elements), `leaves`, `counted` |
//! | memory | `inside` (the extents of tensors), `global` and `shared` (addresses and bounds from layouts), `modes` (dimensions of several modes), `ends` (of windows of shared memory), `padded` (lines with padding around them), `elements` (from which indices are computed), `rows` (gathers and scatters), `access`, `load`, `bytes`, `nibbles`, `matrices`, `runs` |
//! | work | `elementwise` and `pairs`, `joins`, `reduce`, `scan` (`totals`: totals of segments of rows) and `tuples`, `store`, `relayout` and `gather` (exchanges), `renumbered` (elements by their row-major index), `copy`, `mma` and `warpgroup`, `tensor`; channels: `mbarriers`, `draws` (loops that take tiles from a counter), `cluster`, `replicas`, `grids` (programmatic dependent launch), `roles`, `signals` |
//! | statements | `loops`, `register_limit`; `stmt`: dispatch of statements; `ahead` (prefetches before the previous grids have ended); `contract`: the launch contract |
//!
//! Invariant: lowering makes no decision that the text does not contain: which thread moves what, how wide, in which
//! shared-memory layout, in which order, and where barriers are, is in the IR.

mod access;
mod access_report;
mod accesses;
mod alias_regions;
mod arithmetic;
mod asynchronous;
mod bf16_forms;
mod bytes;
mod class_of_destination;
mod cluster;
mod cluster_memory;
mod combine;
mod combine_elements;
mod computed_parts;
mod constant_tables;
mod contract;
mod conversions;
mod copy;
mod counted_stores;
mod ctas;
mod dependent_launch;
mod dims;
mod distinct_tiles;
mod divide;
mod early_loads;
mod elements;
mod elementwise;
mod emit;
mod erf;
mod erf_f64;
mod eval;
mod expr_types;
mod extremes_in_pairs;
mod functions_f64;
mod gather;
mod gathered_rows;
mod global;
mod held;
mod hyperbolic;
mod index;
mod index_bounds;
mod inputs;
mod integers;
mod literals;
mod load;
mod loaded_once;
mod loops;
mod matrices;
mod mbarrier_wait;
mod mbarriers;
mod mma;
mod modes;
mod networks;
mod nibbles;
mod operands;
mod output_alias;
mod packing;
mod padded;
mod pairs;
mod placement;
mod position_compare;
mod power;
mod power_f64;
mod producer_prefetch;
mod products;
mod program_paths;
mod random;
mod ranged_ints;
mod reduce;
mod register_limit;
mod relayout;
mod replicas;
mod reshape;
mod ring_positions;
mod rings;
mod roles;
mod round_random;
mod scan;
mod scope;
mod sectors;
mod segment_totals;
mod shared;
mod shared_subexpressions;
mod shuffles;
mod signals;
mod sine;
mod sine_f64;
mod skip_scaling;
mod small_floats;
mod sort;
mod special_registers;
mod state;
mod stmt;
mod store;
mod store_distribution;
mod tensor;
mod tensor_store;
mod threads;
mod tile;
mod tiles;
mod tuples;
mod unaligned;
mod unpack;
mod uses;
mod value_numbering;
mod warpgroup;
mod widths;
mod window_ends;
mod windows;
mod work_queue;

use crate::inst::{Class, Guard, Operand, Reg, Special};
use crate::launch::Launch;
use crate::module::{Function, Item, Module, ParamTy};
use crate::ops::{Effect, Kind, Op as P};
use crate::report::Report;
use crate::target::Sm;
use cranelift_entity::EntitySet;
use ranged_ints::{Int, Repr};
use state::{Lines, Lower};
use std::collections::BTreeMap;
use tile::Tile;
use tilec_ir::diag::{Reported, Sink};
use tilec_ir::entities::{Stmt, Value};
use tilec_ir::extents::{Extent, MAX_BLOCKS_X, MAX_BLOCKS_YZ, MAX_SIZE, MAX_STRIDE, least};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::layout::extent_bits;
use tilec_ir::ops::Op;
use tilec_ir::target::Target;
use tilec_ir::types::Elem;
use tilec_ir::zero_sizes::zero_sizes;

/// The result of lowering a kernel.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// A module with this one kernel.
    pub module: Module,
    /// How to launch it.
    pub launch: Launch,
    /// The emitter's report.
    pub report: Report,
}

/// A source text and its name.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its name.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
}

/// Lowers a kernel that has been through the passes. Its report lists copies and accesses of shared memory if `report_accesses`.
///
/// # Errors
/// `Err` means that the sink holds an error: the target lacks something, or the construct has no lowering yet.
pub fn lower(
    kernel: &Kernel,
    target: Target,
    source: Source<'_>,
    report_accesses: bool,
    sink: &mut Sink,
) -> Result<Lowered, Reported> {
    let threads = roles::block_threads(kernel);
    let mut func = Function::new(kernel.name.clone());
    func.maxntid = [threads, 1, 1];
    func.minnctapersm = kernel.schedule.min_ctas.and_then(|e| kernel.as_int(e)).map_or(1, |x| x.clamp(1, 32) as u32);
    let mut cx = Lower::new(kernel, target, Lines::new(source.text), func, sink);
    cx.report_accesses = report_accesses;
    let ctas = tilec_ir::ctas::ctas(kernel).unsigned_abs();
    (cx.block_threads, cx.thread_bits) = (threads, extent_bits(u64::from(threads) * ctas));
    cx.set_cluster()?;
    cx.begin_ctas()?;
    cx.check_roles()?;
    cx.place_shared();
    cx.parameters()?;
    cx.tensor_maps()?;
    cx.ready_barriers();
    cx.ready_ctas();
    cx.follow_other_grids();
    cx.grid()?;
    cx.block(kernel.body)?;
    cx.leave_cluster();
    cx.end_ctas();
    cx.emit.push(P::Ret, []);
    cx.emit.define_unwritten();
    cx.report.smem_bytes = cx.smem_bytes;
    cx.report.threads = threads;
    cx.report.stages = cx.rings.iter().map(|r| r.slots as u32).max().unwrap_or(1);
    cx.report.estimated_registers = cx.estimate_registers();
    let launch = cx.launch(threads);
    let Lower { emit, mut report, .. } = cx;
    let sm: Sm = target.name().parse().expect("every target is an architecture");
    let mut module = Module::new(sm);
    module.header = vec![format!("{} for {}, compiled by tilec from {}", kernel.name, target.name(), source.name)];
    module.files = vec![source.name.to_owned()];
    let func = emit.finish();
    report.half_slots = half_slots(&func);
    report.f32_arithmetic = f32_arithmetic(&func);
    module.functions = vec![func];
    Ok(Lowered { module, launch, report })
}

/// A lower bound of the half issue slots of each statement. The assembler renames registers instead of copying them,
/// and fuses pairs of instructions with integer or predicate results (`LOP3`, `IADD3`, `LEA`, `IMAD.WIDE`).
fn half_slots(func: &Function) -> BTreeMap<Stmt, u32> {
    let mut all = BTreeMap::new();
    for item in &func.body {
        let Item::Inst(inst) = item else { continue };
        let Some(origin) = inst.origin.expand() else { continue };
        let result = inst.op.signature().dsts.first();
        let joined = [Class::Pred, Class::B32, Class::B64].map(Kind::Reg);
        let slots = match inst.op.effect() {
            _ if inst.op.mnemonic().starts_with("mov.") => 0,
            Effect::Pure if result.is_some_and(|kind| joined.contains(kind)) => 1,
            _ => 2,
        };
        *all.entry(origin).or_default() += slots;
    }
    all
}

/// A lower bound of the instructions of each statement on the lanes for f32. The assembler may join a product and an
/// addition that are not rounded apart.
fn f32_arithmetic(func: &Function) -> BTreeMap<Stmt, u32> {
    let mut all: BTreeMap<Stmt, [u32; 3]> = BTreeMap::new();
    for item in &func.body {
        let Item::Inst(inst) = item else { continue };
        let Some(origin) = inst.origin.expand() else { continue };
        let kind = match inst.op {
            P::FmaRnF32 | P::AddRnF32 | P::SubRnF32 | P::MulRnF32 => 0,
            P::AddF32 | P::SubF32 => 1,
            P::MulF32 => 2,
            _ => continue,
        };
        all.entry(origin).or_default()[kind] += 1;
    }
    all.into_iter().map(|(origin, [alone, sums, products])| (origin, alone + sums.max(products))).collect()
}

/// The interface of a kernel whose compile-time parameters are bound, even if it cannot be lowered: parameters,
/// conditions and grid. Threads, shared memory and alignments are not known yet.
pub fn interface(kernel: &Kernel, target: Target) -> Launch {
    let mut nothing_said = Sink::new();
    let func = Function::new(kernel.name.clone());
    Lower::new(kernel, target, Lines::new(""), func, &mut nothing_said).described(1, |_| Vec::new())
}

impl Lower<'_> {
    /// Kernel parameters, in launch order: as written, then sizes, then strides.
    fn parameters(&mut self) -> Result<(), Reported> {
        for &v in self.k.params.iter().filter(|&&v| !self.k.tensor_ty(v).is_some_and(|t| t.is_of_cluster())) {
            let data = &self.k.values[v];
            let name = format!("{}_{}", self.k.name, data.name);
            match &data.def {
                ValueDef::Tensor(_) => {
                    let align = self.pointer_align(v);
                    let index = self.param(name, ParamTy::GlobalPtr, Some(align));
                    let generic = self.emit.pure(Class::B64, P::LdParamU64, [Operand::param(index, 0)]);
                    let global = self.emit.pure(Class::B64, P::CvtaToGlobalU64, [generic.into()]);
                    self.pointers[v] = Some(global);
                }
                ValueDef::Scalar { .. } => {
                    let span = data.span;
                    let (ty, class, op) = match self.elem(v) {
                        Some(Elem::F32) => (ParamTy::F32, Class::F32, P::LdParamF32),
                        Some(Elem::F64) => (ParamTy::F64, Class::F64, P::LdParamF64),
                        Some(Elem::F16 | Elem::BF16 | Elem::I16 | Elem::U16) => {
                            (ParamTy::B16, Class::B16, P::LdParamB16)
                        }
                        Some(elem) if elem.bits() <= 8 && elem != Elem::Bool => (ParamTy::B8, Class::B32, P::LdParamU8),
                        Some(Elem::TF32) => (ParamTy::F32, Class::B32, P::LdParamB32),
                        Some(Elem::I32) => (ParamTy::S32, Class::B32, P::LdParamB32),
                        Some(Elem::U32) => (ParamTy::U32, Class::B32, P::LdParamU32),
                        Some(Elem::I64) => (ParamTy::S64, Class::B64, P::LdParamB64),
                        Some(Elem::U64) => (ParamTy::U64, Class::B64, P::LdParamU64),
                        _ => return Err(self.unsupported_at(span, "scalars of this type")),
                    };
                    let index = self.param(name, ty, None);
                    let raw = self.emit.pure(class, op, [Operand::param(index, 0)]);
                    let elem = self.elem(v).expect("a scalar has a type");
                    let wide = self.widen(raw, elem);
                    self.scalars[v] = Some(wide);
                }
                ValueDef::Table(t) => self.table(v, t),
                _ => {}
            }
        }
        let bounds = Extent::promised(self.k);
        let zeros = zero_sizes(self.k);
        for &v in &self.k.sizes {
            // Preconditions may lower the maximum.
            let most = least(&bounds, (1, std::slice::from_ref(&self.k.values[v].name))).unwrap_or(MAX_SIZE);
            let name = format!("{}_{}", self.k.name, self.k.values[v].name);
            let index = self.param(name, ParamTy::U32, None);
            if zeros.contains(&v) {
                self.ints[v] = Some(Int::constant(0));
                continue;
            }
            let reg = self.emit.pure(Class::B32, P::LdParamU32, [Operand::param(index, 0)]);
            self.ints[v] = Some(Int::r32(reg, 1, most.clamp(1, MAX_SIZE)));
        }
        for &v in &self.k.strides {
            let name = format!("{}_{}", self.k.name, self.k.values[v].name);
            let index = self.param(name, ParamTy::S64, None);
            let reg = self.emit.pure(Class::B64, P::LdParamB64, [Operand::param(index, 0)]);
            self.ints[v] = Some(Int { repr: Repr::R64(reg), lo: 0, hi: MAX_STRIDE });
        }
        Ok(())
    }

    /// Grid indices. With rasterisation the launch grid is `(axis 0 · g, axis 1 / g)`: consecutive blocks take `g`
    /// neighbouring columns of one row before the next row, so that they share operands in the second-level cache.
    fn grid(&mut self) -> Result<(), Reported> {
        let specials = [Special::CtaidX, Special::CtaidY, Special::CtaidZ];
        let mut indices = Vec::new();
        for axis in self.k.grid.iter().take(3) {
            let extent = self.index(axis.extent)?;
            indices.push((axis.index, extent));
        }
        let raw: Vec<Reg> = specials
            .iter()
            .take(indices.len())
            .map(|&s| self.emit.pure(Class::B32, P::MovSpecialU32, [Operand::Special(s)]))
            .collect();
        let group = self.raster();
        for (i, &(v, extent)) in indices.iter().enumerate() {
            let blocks = if i == 0 { MAX_BLOCKS_X } else { MAX_BLOCKS_YZ };
            let ctas = if i == 0 { self.ctas() } else { 1 };
            let bits = Operand::Imm(i64::from(ctas.ilog2()));
            let raw = match ctas {
                1 => raw[i],
                _ => self.emit.pure(Class::B32, P::ShrU32, [raw[i].into(), bits]),
            };
            let full = Int::r32(raw, 0, (extent.hi - 1).clamp(0, blocks / i128::from(ctas) - 1));
            self.ints[v] = Some(full);
        }
        if group > 1 && indices.len() >= 2 {
            let (e0, e1) = (indices[0].1, indices[1].1);
            let x = Int::r32(raw[0], 0, (e0.hi * i128::from(group) - 1).min(i128::from(i32::MAX)));
            let y = Int::r32(raw[1], 0, (e1.hi / i128::from(group) + 1).min(i128::from(i32::MAX)));
            let g = Int::constant(group);
            let bad = "grid indices stay within 31 bits";
            let row = self.int_op(Op::Div, x, g).expect(bad);
            let inner = self.int_op(Op::Rem, x, g).expect(bad);
            let outer = self.int_op(Op::Mul, y, g).expect(bad);
            let col = self.int_op(Op::Add, outer, inner).expect(bad);
            let clip = |i: Int, e: Int| Int { hi: (e.hi - 1).max(0), ..i };
            self.ints[indices[0].0] = Some(clip(row, e0));
            self.ints[indices[1].0] = Some(clip(col, e1));
            let outside = self.int_compare(Op::Ge, col, e1);
            self.emit.comment(format!(
                "rasterisation: {group} neighbouring columns per row; blocks past the last column have nothing to do"
            ));
            self.emit.push_if(Some(Guard { reg: outside, negated: false }), P::Ret, []);
        }
        Ok(())
    }

    /// Estimates registers per thread: the tiles plus a typical number for addresses.
    fn estimate_registers(&self) -> u32 {
        let words = |t: &Tile| t.regs.iter().map(|&r| self.emit.func.regs[r].bytes().div_ceil(4)).sum::<u32>();
        // An accumulator in a new layout replaces the original.
        let mut taken_over: EntitySet<Value> = EntitySet::new();
        for s in self.k.statement_data() {
            if let StmtData::Copy { src, dst, .. } = s
                && let ExprData::Ref(d) = self.k.exprs[*dst]
                && self.tile_of(*src).is_some()
            {
                taken_over.insert(d);
            }
        }
        let tiles: u32 = self
            .k
            .values
            .keys()
            .filter(|&v| !taken_over.contains(v))
            .filter_map(|v| self.tiles[v].as_ref())
            .map(words)
            .sum();
        (tiles + 32).min(255)
    }
}
