//! The state of lowering a kernel, shared by all files, and diagnostics.

use super::counted_stores::CountedAt;
use super::emit::Emit;
use super::ranged_ints::Int;
use super::rings::{Draws, OrderedState, Placed, Ring};
use super::scope::Kind;
use super::store_distribution::LaneStores;
use super::tile::{Form, Tile};
use super::windows::LoopState;
use crate::inst::{Guard, Reg};
use crate::module::{Function, Item, Param, ParamTy};
use crate::ops::Op as P;
use crate::report::Report;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use std::collections::BTreeMap;
use tilec_ir::cluster::MemoryPlace;
use tilec_ir::codes;
use tilec_ir::deferred_lets::Deferred;
use tilec_ir::diag::{Diagnostic, Reported, Sink, Span};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::extents::{Extent, Ranges, raster};
use tilec_ir::facts::Facts;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::layout::RegLayout;
use tilec_ir::layout::hardware::Boxes;
use tilec_ir::target::Target;
use tilec_ir::types::{Elem, ElemRef, Partial};

/// State of lowering one kernel.
pub(crate) struct Lower<'a> {
    pub(super) k: &'a Kernel,
    pub(super) target: Target,
    pub(super) sink: &'a mut Sink,
    pub(super) lines: Lines,
    pub(super) emit: Emit,
    pub(super) ints: SecondaryMap<Value, Option<Int>>,
    pub(super) facts: Facts,
    /// Extents that are products of sizes.
    pub(super) extents: Vec<Extent>,
    /// Products that preconditions bound.
    pub(super) promised: Vec<Extent>,
    /// Ranges of indices that are tighter than the ranges of their operands give.
    pub(super) ranges: Ranges<'a>,
    /// `let`s that are computed when they are stored.
    pub(super) deferred: Deferred,
    pub(super) kinds: SecondaryMap<Expr, Option<Kind>>,
    pub(super) scalars: SecondaryMap<Value, Option<Reg>>,
    /// Elements of tensors in indices, loaded in front of the statement.
    pub(super) elements: SecondaryMap<Expr, Option<Reg>>,
    pub(super) pointers: SecondaryMap<Value, Option<Reg>>,
    /// Tables in constant memory, by their index in the function.
    pub(super) tables: SecondaryMap<Value, Option<u32>>,
    /// Register layouts of tiles in scratch memory.
    pub(super) fragments: SecondaryMap<Value, Option<RegLayout>>,
    pub(super) tiles: SecondaryMap<Value, Option<Tile>>,
    /// For a `let` of tuples, a tile for each component.
    pub(super) tuples: SecondaryMap<Value, Vec<Tile>>,
    /// The accumulator of the next product if it is still zero: the product overwrites it.
    pub(super) empty: Option<Value>,
    /// Register tiles that are loaded in unaligned words, and shifted into place when they are read.
    pub(super) runs: SecondaryMap<Value, Option<Runs>>,
    pub(super) placed: SecondaryMap<Value, Option<Placed>>,
    pub(super) rings: Vec<Ring>,
    pub(super) loops: Vec<LoopState>,
    /// Threads of the block.
    pub(super) block_threads: u32,
    /// If blocks share tiles: the first statement of the kernel's body that stores to the memory of all of them.
    pub(super) writes_first: Option<Stmt>,
    /// The blocks meet at the start: a barrier of all of them stands in front of that statement.
    pub(super) meets_at_start: bool,
    /// Barriers that count the stores of these blocks.
    pub(super) counted: Vec<CountedAt>,
    /// Tiles of distributed shared memory.
    pub(super) cluster_places: Vec<(Value, MemoryPlace)>,
    /// The address in this block that corresponds to the last block's mbarrier for the present statement's stores.
    pub(super) passed: Option<Reg>,
    /// Whether only roles that store to other blocks wait until these have begun.
    pub(super) meets_later: bool,
    /// The index in `counted` of the barrier that counts the present statement's stores.
    pub(super) counts: Option<usize>,
    /// In the present statement, lanes with the same elements store them to different blocks of the cluster.
    pub(super) lane_stores: Option<LaneStores>,
    /// Bits of the thread numbers of the present statements' threads: those of the block, or of a role.
    pub(super) thread_bits: u32,
    /// The role of the present statements.
    pub(super) part: Option<Part>,
    /// If all threads of a role run: the lane that issues its TMA loads.
    pub(super) asks: Option<crate::inst::Guard>,
    /// The role has not waited for the previous grids yet.
    pub(super) follows: bool,
    /// If a role prefetches before it waits: the register that says whether it has done so.
    pub(super) prefetched: Option<Reg>,
    /// The present role's loads of constant tensors, which need not wait.
    pub(super) early: Option<super::rings::EarlyLoads>,
    /// The present statements only prefetch what this many steps of them load.
    pub(super) prefetch_step: Option<i64>,
    /// Tensor maps, a parameter each.
    pub(super) maps: Vec<Map>,
    /// Surrounding loops that take their numbers from a counter.
    pub(super) draws: Vec<Draws>,
    /// State of `ordered` statements.
    pub(super) ordered: BTreeMap<Stmt, OrderedState>,
    /// Numbers in the computed form that were rounded to a type, with their stored form.
    pub(super) rounded: BTreeMap<Reg, (Elem, Reg)>,
    /// Numbers in the computed form that were read from registers or memory, with their stored form. A conversion back
    /// need not give the same bits.
    pub(super) read: BTreeMap<Reg, (Elem, Reg)>,
    /// Registers of two bf16 that statements convert by different forms, with the last of them and its form.
    pub(super) bf16_forms: BTreeMap<Reg, (PackedOption<Stmt>, Form)>,
    /// While a tile of partial results is assigned: its distribution over lanes, and the reductions whose partial
    /// results stay in the lanes.
    pub(super) parts: Option<(Partial, Vec<Expr>)>,
    pub(super) smem_bytes: u64,
    pub(super) report: Report,
    /// Whether the report lists copies and accesses of shared memory.
    pub(super) report_accesses: bool,
}

/// Byte offsets of line starts.
pub(super) struct Lines(Vec<u32>);

impl Lines {
    pub(super) fn new(source: &str) -> Lines {
        let mut starts = vec![0];
        starts.extend(source.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1));
        Lines(starts)
    }

    /// Line and column, from 1.
    pub(super) fn position(&self, offset: u32) -> (u32, u32) {
        let line = self.0.partition_point(|&s| s <= offset);
        let start = self.0.get(line.saturating_sub(1)).copied().unwrap_or(0);
        (line.max(1) as u32, offset - start + 1)
    }
}

impl<'a> Lower<'a> {
    pub(super) fn new(k: &'a Kernel, target: Target, lines: Lines, func: Function, sink: &'a mut Sink) -> Lower<'a> {
        Lower {
            k,
            target,
            sink,
            lines,
            emit: Emit::new(func),
            ints: SecondaryMap::new(),
            facts: Facts::new(k),
            extents: Extent::all(k),
            promised: Extent::promised(k),
            ranges: Ranges::new(k),
            deferred: Deferred::of(k),
            rounded: BTreeMap::new(),
            read: BTreeMap::new(),
            bf16_forms: BTreeMap::new(),
            kinds: SecondaryMap::new(),
            scalars: SecondaryMap::new(),
            elements: SecondaryMap::new(),
            pointers: SecondaryMap::new(),
            tables: SecondaryMap::new(),
            fragments: SecondaryMap::new(),
            tiles: SecondaryMap::new(),
            tuples: SecondaryMap::new(),
            empty: None,
            runs: SecondaryMap::new(),
            placed: SecondaryMap::new(),
            rings: Vec::new(),
            loops: Vec::new(),
            block_threads: 0,
            writes_first: None,
            meets_at_start: false,
            counted: Vec::new(),
            cluster_places: Vec::new(),
            passed: None,
            meets_later: false,
            counts: None,
            lane_stores: None,
            thread_bits: 0,
            part: None,
            asks: None,
            follows: false,
            prefetched: None,
            early: None,
            prefetch_step: None,
            maps: Vec::new(),
            draws: Vec::new(),
            ordered: BTreeMap::new(),
            parts: None,
            smem_bytes: 0,
            report: Report { stages: 1, ..Report::default() },
            report_accesses: false,
        }
    }
}

/// The role whose statements are being lowered.
#[derive(Copy, Clone, Debug)]
pub(super) struct Part {
    /// Its first thread in the block.
    pub(super) first: u32,
    /// Its threads, or those of one replica.
    pub(super) threads: u32,
    /// The number of replicas.
    pub(super) replicas: u32,
    /// The hardware barrier of its threads, if one is left; those of other replicas follow. Barrier 0 is for all
    /// threads of the block.
    pub(super) barrier: Option<u32>,
}

/// A tensor map of the kernel.
#[derive(Clone, Debug)]
pub(super) struct Map {
    pub(super) tensor: Value,
    /// Extents of a box along the tensor's dimensions, the contiguous one first.
    pub(super) extents: Vec<u64>,
    /// The tensor's dimensions in that order.
    pub(super) dims: Vec<usize>,
    pub(super) boxes: Boxes,
    /// The dimension that occurs twice, for windows with an end of their own.
    pub(super) ended: Option<usize>,
    pub(super) param: u32,
}

impl Map {
    /// Whether two maps describe the same box; their parameters and the number of boxes in a tile may differ.
    pub(super) fn is(&self, other: &Map) -> bool {
        let of = |m: &Map| (m.tensor, m.boxes.exchange, m.ended);
        of(self) == of(other) && self.dims == other.dims && self.extents == other.extents
    }

    /// The number of dimensions of the descriptor.
    pub(super) fn rank(&self) -> usize {
        self.dims.len() + usize::from(self.ended.is_some())
    }
}

/// A tile whose accesses were loaded as whole words.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    pub(super) tile: Tile,
    /// Register indices of the elements of each access, in address order.
    pub(super) groups: Vec<Vec<usize>>,
    /// The window's contiguous dimension.
    pub(super) dim: usize,
    /// The words of each access.
    pub(super) words: Vec<Vec<Reg>>,
    /// The offset in bytes of the access in its first word.
    pub(super) shift: Reg,
    /// A divisor of the shift, in bytes.
    pub(super) known: u32,
    /// Elements of each access inside the bounds along the contiguous dimension; `None`: all.
    pub(super) inside: Vec<Option<Reg>>,
}

/// Most instructions of a kernel; ptxas takes minutes for longer straight-line code.
pub(super) const MAX_INSTRUCTIONS: usize = 50_000;

/// Message: a row and a column are combined, and neither gives the layout of the result.
pub(super) const NO_WHOLE_TILE: &str =
    "a tile that meets no register tile of its extents; add it to one (`var t = reg ..`)";

impl Lower<'_> {
    /// The element type of a place, tensor or scalar.
    pub(super) fn elem(&self, v: Value) -> Option<Elem> {
        match self.k.values[v].def.elem()? {
            ElemRef::Known(elem) => Some(elem),
            ElemRef::Param(_) => None,
        }
    }

    /// Emits `inside` with a branch to `label` that skips it unless `any`, which is uniform in a warp, holds. Values
    /// computed inside are not available after the label.
    pub(super) fn where_any<T>(&mut self, any: Reg, label: &str, inside: impl FnOnce(&mut Self) -> T) -> T {
        self.emit.push_side();
        let result = inside(self);
        let items = self.emit.pop_frame();
        let end = self.emit.label(label);
        self.emit.push_if(Some(Guard { reg: any, negated: true }), P::BraUni, [end.into()]);
        self.emit.items(items);
        self.emit.item(Item::Label(end));
        result
    }

    /// Refuses a construct that has no lowering.
    pub(super) fn unsupported(&mut self, e: Expr, what: &str) -> Reported {
        let span = self.k.expr_spans[e];
        self.unsupported_at(span, what)
    }

    pub(super) fn unsupported_at(&mut self, span: Span, what: &str) -> Reported {
        self.sink.report(
            Diagnostic::error(
                codes::NOT_LOWERED,
                span,
                format!("not compiled to PTX for {} yet: {what}", self.target.name()),
            )
            .with_note(
                "the program is valid: `tilec run --device interp` runs it; this is a gap in the compiler, please report it",
            ),
        )
    }

    /// Refuses a written decision that cannot be carried out; the message says what to write instead.
    pub(super) fn unfit(&mut self, e: Expr, what: &str) -> Reported {
        let span = self.k.expr_spans[e];
        self.unfit_at(span, what)
    }

    pub(super) fn unfit_at(&mut self, span: Span, what: &str) -> Reported {
        let message = format!("this decision cannot be carried out: {what}");
        self.sink.report(Diagnostic::error(codes::UNFIT, span, message).with_note(
            "layouts, `threads`, roles, and the attributes of a copy are the compiler's to choose where they are left out",
        ))
    }

    /// Refuses what the target has no hardware for.
    pub(super) fn lacks(&mut self, e: Expr, what: &str) -> Reported {
        let message = format!("{} has no {what}", self.target.name());
        let span = self.k.expr_spans[e];
        let item = self.k.item_around(span);
        self.sink.report(Diagnostic::error(codes::TARGET_LACKS, span, message).with_left_out(item))
    }

    /// Refuses an index beyond 63 bits.
    pub(super) fn too_far_out(&mut self, e: Expr) -> Reported {
        let d = Diagnostic::error(codes::INDEX_OVERFLOW, self.k.expr_spans[e], "this may be beyond 63 bits");
        self.sink.report(d.with_note("bound it, `min(START, 4294967296)` say: no tensor is that long"))
    }

    pub(super) fn too_long(&mut self, s: Stmt) -> Reported {
        let span = self.k.stmt_spans[s];
        self.sink.report(
            Diagnostic::error(
                codes::TOO_LONG,
                span,
                format!("the kernel would have more than {} instructions", MAX_INSTRUCTIONS),
            )
            .with_note("unroll less, or use smaller tiles"),
        )
    }

    pub(super) fn param(&mut self, name: String, ty: ParamTy, align: Option<u32>) -> u32 {
        self.emit.func.params.push(Param { name, ty, align });
        (self.emit.func.params.len() - 1) as u32
    }

    /// A source position and a comment with the statement's text.
    pub(super) fn mark(&mut self, s: Stmt) {
        let span = self.k.stmt_spans[s];
        self.emit.comment(tilec_ir::print::print_head(self.k, s));
        if !span.is_none() {
            let (line, col) = self.lines.position(span.start);
            self.emit.item(Item::Loc { file: 0, line, col });
        }
    }

    /// Whether a launch may begin while the previous one ends.
    pub(super) fn overlaps(&self) -> bool {
        self.k.schedule.overlap.and_then(|e| self.k.as_int(e)).is_some_and(|n| n > 0)
    }

    /// If the producer waits for the previous grids as late as possible: the number of steps whose operands it
    /// prefetches before.
    pub(super) fn steps_ahead(&self) -> Option<i64> {
        self.k.schedule.overlap.and_then(|e| self.k.as_int(e)).filter(|&n| n > 1).map(|n| n - 2)
    }

    /// Whether each role waits for the previous grids by itself; code that reads only sizes runs before the wait.
    pub(super) fn waits_in_roles(&self) -> bool {
        let roles = &self.k.blocks[self.k.body];
        let apart = |&s: &Stmt| matches!(self.k.stmts[s], StmtData::Role { .. } | StmtData::Alloc { .. });
        self.overlaps() && roles.iter().all(apart)
    }

    /// Number of columns of tiles that are rasterised together; 1: none.
    pub(super) fn raster(&self) -> i64 {
        raster(self.k)
    }
}
