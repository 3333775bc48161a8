//! Lowering: from the tile IR, with every decision made, to typed PTX instructions.
//!
//! [`lower`] walks the kernel once. Index arithmetic (`index`) carries ranges and is value-numbered and hoisted while it
//! is emitted (`emit`); register tiles (`tiles`) name the registers of their elements; `global` and `shared`
//! compute addresses and bounds from layouts; `modes` does so along dimensions of several modes; `copy`, `elementwise`, `relayout`, `gather` and `mma` emit the work;
//! `contract` writes down how to launch it.
//!
//! Invariant: nothing is decided here that the text form could not have said: which thread moves what, how wide, in which
//! shared-memory layout, in which order, and where barriers stand, is in the IR.

mod accesses;
mod asynchronous;
mod bytes;
mod cluster;
mod combine;
mod contract;
mod copy;
mod counted;
mod dims;
mod elementwise;
mod emit;
mod erf;
mod gather;
mod global;
mod in_place;
mod index;
mod known;
mod matrices;
mod mbarriers;
mod mma;
mod modes;
mod placement;
mod reduce;
mod relayout;
mod repeated;
mod replicas;
mod roles;
mod runs;
mod shared;
mod signals;
mod stmt;
mod tables;
mod tensor;
mod tensor_store;
mod tiles;
mod warpgroup;

use crate::inst::{Class, Guard, Operand, Reg, Special};
use crate::launch::Launch;
use crate::module::{Function, Item, Module, Param, ParamTy};
use crate::ops::Op as P;
use crate::report::Report;
use crate::target::Sm;
use cranelift_entity::{EntitySet, SecondaryMap};
use emit::Emit;
use global::LoopState;
use index::{Int, MAX_SIZE, MAX_STRIDE, Repr};
use shared::{Placed, Ring};
use std::collections::BTreeMap;
use tilec_ir::codes;
use tilec_ir::deferred::Deferred;
use tilec_ir::diag::{Diagnostic, Reported, Sink, Span};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::facts::Facts;
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::layout::{RegLayout, extent_bits};
use tilec_ir::ops::Op;
use tilec_ir::target::Target;
use tilec_ir::types::{Elem, ElemRef, Partial};
use tiles::Tile;

/// Blocks along the first axis of a launch at most, and along the others (CUDA programming guide, "Technical Specifications
/// per Compute Capability").
const MAX_BLOCKS_X: i128 = i32::MAX as i128;
const MAX_BLOCKS_YZ: i128 = 65_535;

/// Columns of blocks that are walked together; 1: none.
fn raster(k: &Kernel) -> i64 {
    let g = k.schedule.raster.and_then(|e| k.as_int(e)).unwrap_or(1);
    if k.grid.len() >= 2 { g.clamp(1, 1024) } else { 1 }
}

/// What lowering makes of a kernel.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// A module with this one kernel.
    pub module: Module,
    /// How to launch it.
    pub launch: Launch,
    /// What was done.
    pub report: Report,
}

/// State of lowering one kernel.
pub(crate) struct Lower<'a> {
    k: &'a Kernel,
    target: Target,
    sink: &'a mut Sink,
    lines: Lines,
    emit: Emit,
    ints: SecondaryMap<Value, Option<Int>>,
    facts: Facts,
    /// Extents that are products.
    extents: Vec<modes::Extent>,
    /// Products that preconditions bound.
    promised: Vec<modes::Extent>,
    /// `let`s that are computed where they are stored.
    deferred: Deferred,
    kinds: SecondaryMap<Expr, Option<elementwise::Kind>>,
    scalars: SecondaryMap<Value, Option<Reg>>,
    pointers: SecondaryMap<Value, Option<Reg>>,
    /// Tables in constant memory, by their index in the function.
    tables: SecondaryMap<Value, Option<u32>>,
    /// The layout in which threads hold what lies in scratch memory as registers do.
    fragments: SecondaryMap<Value, Option<RegLayout>>,
    tiles: SecondaryMap<Value, Option<Tile>>,
    /// The accumulator of the next product, where it holds nothing yet: the product's sums are its first.
    empty: Option<Value>,
    /// Register tiles that are loaded in words, and shifted into place where they are read.
    runs: SecondaryMap<Value, Option<runs::Runs>>,
    placed: SecondaryMap<Value, Option<Placed>>,
    rings: Vec<Ring>,
    loops: Vec<LoopState>,
    /// Threads of the block.
    block_threads: u32,
    /// Bits of the numbers of the threads that execute the present statements: of the block, or of a role.
    thread_bits: u32,
    /// The role whose statements these are.
    part: Option<roles::Part>,
    /// Where all threads of a role run: the lane that asks for its tensor copies.
    asks: Option<crate::inst::Guard>,
    /// Tensor maps, a parameter each.
    maps: Vec<tensor::Map>,
    /// What replicas of a role do in turns.
    turns: BTreeMap<Stmt, replicas::Turns>,
    /// A conversion of the current statement that the target has no instruction for.
    unconverted: Option<Elem>,
    /// While a tile of parts is assigned: how lanes hold it, and the reductions of which they keep their own parts.
    parts: Option<(Partial, Vec<Expr>)>,
    smem_bytes: u64,
    report: Report,
    /// The report lists copies and accesses of shared memory.
    report_accesses: bool,
}

/// A source text, and what it is called.
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
    (cx.block_threads, cx.thread_bits) = (threads, extent_bits(u64::from(threads)));
    cx.set_cluster()?;
    cx.check_roles()?;
    cx.place_shared();
    cx.parameters()?;
    cx.tensor_maps()?;
    cx.ready_barriers();
    cx.follow_other_grids();
    cx.grid()?;
    cx.block(kernel.body)?;
    cx.leave_cluster();
    cx.emit.push(P::Ret, []);
    cx.emit.define_unwritten();
    cx.report.smem_bytes = cx.smem_bytes;
    cx.report.stages = cx.rings.iter().map(|r| r.slots as u32).max().unwrap_or(1);
    cx.report.estimated_registers = cx.estimate_registers();
    let launch = cx.launch(threads);
    let Lower { emit, report, .. } = cx;
    let sm: Sm = target.name().parse().expect("every target is an architecture");
    let mut module = Module::new(sm);
    module.header = vec![format!("{} for {}, compiled by tilec from {}", kernel.name, target.name(), source.name)];
    module.files = vec![source.name.to_owned()];
    module.functions = vec![emit.finish()];
    Ok(Lowered { module, launch, report })
}

/// What the host gives to a kernel whose compile-time parameters are bound, whether or not it can be lowered: parameters, conditions and
/// grid as they are written. Threads, shared memory and alignments are nobody's yet.
pub fn interface(kernel: &Kernel, target: Target) -> Launch {
    let mut nothing_said = Sink::new();
    let func = Function::new(kernel.name.clone());
    Lower::new(kernel, target, Lines::new(""), func, &mut nothing_said).described(1, |_| Vec::new())
}

impl<'a> Lower<'a> {
    fn new(k: &'a Kernel, target: Target, lines: Lines, func: Function, sink: &'a mut Sink) -> Lower<'a> {
        Lower {
            k,
            target,
            sink,
            lines,
            emit: Emit::new(func),
            ints: SecondaryMap::new(),
            facts: Facts::new(k),
            extents: modes::Extent::all(k),
            promised: modes::Extent::promised(k),
            deferred: Deferred::of(k),
            kinds: SecondaryMap::new(),
            scalars: SecondaryMap::new(),
            pointers: SecondaryMap::new(),
            tables: SecondaryMap::new(),
            fragments: SecondaryMap::new(),
            tiles: SecondaryMap::new(),
            empty: None,
            runs: SecondaryMap::new(),
            placed: SecondaryMap::new(),
            rings: Vec::new(),
            loops: Vec::new(),
            block_threads: 0,
            thread_bits: 0,
            part: None,
            asks: None,
            maps: Vec::new(),
            turns: BTreeMap::new(),
            unconverted: None,
            parts: None,
            smem_bytes: 0,
            report: Report { stages: 1, ..Report::default() },
            report_accesses: false,
        }
    }
}

impl Lower<'_> {
    /// The element type of a place, tensor or scalar.
    pub(crate) fn elem(&self, v: Value) -> Option<Elem> {
        match self.k.values[v].def.elem()? {
            ElemRef::Known(elem) => Some(elem),
            ElemRef::Param(_) => None,
        }
    }

    /// Refuses a construct that has no lowering.
    pub(crate) fn unsupported(&mut self, e: Expr, what: &str) -> Reported {
        let span = self.k.expr_spans[e];
        self.unsupported_at(span, what)
    }

    pub(crate) fn unsupported_at(&mut self, span: Span, what: &str) -> Reported {
        self.sink.report(
            Diagnostic::error(
                codes::NOT_LOWERED,
                span,
                format!("not compiled to PTX for {} yet: {what}", self.target.name()),
            )
            .with_note(
                "the program is valid: `tilec run --device interp` runs it; `tilec explain E0501` lists what is compiled",
            ),
        )
    }

    pub(crate) fn too_long(&mut self, s: Stmt) -> Reported {
        let span = self.k.stmt_spans[s];
        self.sink.report(
            Diagnostic::error(
                codes::NOT_LOWERED,
                span,
                format!("the kernel would have more than {} instructions", stmt::MAX_INSTRUCTIONS),
            )
            .with_note("unroll less, or use smaller tiles"),
        )
    }

    /// Kernel parameters, in launch order: as written, then sizes, then strides.
    fn parameters(&mut self) -> Result<(), Reported> {
        for &v in &self.k.params {
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
                        Some(Elem::F16 | Elem::BF16) => (ParamTy::B16, Class::B16, P::LdParamB16),
                        Some(Elem::I32) => (ParamTy::S32, Class::B32, P::LdParamB32),
                        Some(Elem::U32) => (ParamTy::U32, Class::B32, P::LdParamU32),
                        Some(Elem::I64) => (ParamTy::S64, Class::B64, P::LdParamB64),
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
        for &v in &self.k.sizes {
            let name = format!("{}_{}", self.k.name, self.k.values[v].name);
            let index = self.param(name, ParamTy::U32, None);
            let reg = self.emit.pure(Class::B32, P::LdParamU32, [Operand::param(index, 0)]);
            self.ints[v] = Some(Int::r32(reg, 1, MAX_SIZE));
        }
        for &v in &self.k.strides {
            let name = format!("{}_{}", self.k.name, self.k.values[v].name);
            let index = self.param(name, ParamTy::S64, None);
            let reg = self.emit.pure(Class::B64, P::LdParamB64, [Operand::param(index, 0)]);
            self.ints[v] = Some(Int { repr: Repr::R64(reg), lo: 0, hi: MAX_STRIDE });
        }
        Ok(())
    }

    fn param(&mut self, name: String, ty: ParamTy, align: Option<u32>) -> u32 {
        self.emit.func.params.push(Param { name, ty, align });
        (self.emit.func.params.len() - 1) as u32
    }

    /// Grid indices. With rasterisation the launch grid is `(axis 0 · g, axis 1 / g)`: consecutive blocks walk `g`
    /// neighbouring columns of one row before the next row, so that they share operands in the L2 cache.
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
            let full = Int::r32(raw[i], 0, (extent.hi - 1).clamp(0, blocks - 1));
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

    /// Whether a launch may begin while the one in front of it ends.
    pub(crate) fn overlaps(&self) -> bool {
        self.k.schedule.overlap.and_then(|e| self.k.as_int(e)) == Some(1)
    }

    /// Lets the next grid begin, and waits for those in front of this one. Behind what needs no global memory, in front of
    /// everything that does.
    fn follow_other_grids(&mut self) {
        if self.overlaps() {
            self.emit
                .comment("the next launch may begin; what this one reads and writes waits for those in front of it");
            self.emit.push(P::GriddepcontrolLaunchDependents, []);
            if !self.waits_in_roles() {
                self.emit.push(P::GriddepcontrolWait, []);
            }
        }
    }

    /// Whether each role waits for the grids in front by itself: what roles compute beforehand, out of sizes, need not.
    pub(crate) fn waits_in_roles(&self) -> bool {
        let roles = &self.k.blocks[self.k.body];
        let apart = |&s: &Stmt| matches!(self.k.stmts[s], StmtData::Role { .. } | StmtData::Alloc { .. });
        self.overlaps() && roles.iter().all(apart)
    }

    /// Columns that are walked together; 1: none.
    fn raster(&self) -> i64 {
        raster(self.k)
    }

    /// A source position and a comment with the statement's text.
    pub(crate) fn mark(&mut self, s: Stmt) {
        let span = self.k.stmt_spans[s];
        self.emit.comment(tilec_ir::print::print_head(self.k, s));
        if !span.is_none() {
            let (line, col) = self.lines.position(span.start);
            self.emit.item(Item::Loc { file: 0, line, col });
        }
    }

    /// Registers of the tiles plus what addresses usually take.
    fn estimate_registers(&self) -> u32 {
        let words = |t: &Tile| t.regs.iter().map(|&r| self.emit.func.regs[r].bytes().div_ceil(4)).sum::<u32>();
        // Re-laid-out accumulators replace the originals.
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

/// Byte offsets of line starts.
struct Lines(Vec<u32>);

impl Lines {
    fn new(source: &str) -> Lines {
        let mut starts = vec![0];
        starts.extend(source.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1));
        Lines(starts)
    }

    /// Line and column, from 1.
    fn position(&self, offset: u32) -> (u32, u32) {
        let line = self.0.partition_point(|&s| s <= offset);
        let start = self.0.get(line.saturating_sub(1)).copied().unwrap_or(0);
        (line.max(1) as u32, offset - start + 1)
    }
}
