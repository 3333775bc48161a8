//! The work of a kernel, with extents as expressions over unbound parameters.
//!
//! A kernel is divided into *regions*: statements with the same number of executions. For each region this file keeps
//! what costs time: products, and copies from and to memory. Structure (orders, access widths, element types) is read
//! from a copy of the kernel in which placeholders replace the `auto` parameters, and which is folded as by
//! `specialize`. The two share entity numbers, so an extent is an expression of the original kernel.

mod expressions;
mod written_shapes;

use crate::analysis::access_width::{elem_of, global_width, window_contiguous_dim};
use crate::analysis::contiguous_dim::smem_contiguous;
use crate::analysis::distinct::in_memory;
use crate::analysis::facts::{Facts, repeats};
use crate::analysis::functions::{function_registers, instructions};
use crate::analysis::reduction;
use crate::analysis::uses::{all_stmts, for_each_ref, loop_body, path_to, stmt_exprs};
use crate::specialize;
use crate::tensor_copies;
use cranelift_entity::SecondaryMap;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::atoms::{Atom, Inputs};
use tilec_ir::bits::Bits;
use tilec_ir::cluster;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::index::{self, Node, Tree};
use tilec_ir::kernel::{ConstValue, ENDLESS, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::names::Parts;
use tilec_ir::progression::progression;
use tilec_ir::target::SECTOR_BYTES;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{Type, ViewDim, fixed_shape, let_init, resolve_view, type_of};
pub(super) use written_shapes::product_shapes;
use written_shapes::{operand_shape, written_shape};

/// Values of compile-time parameters and sizes.
pub(super) type Env = SecondaryMap<Value, Option<i64>>;

/// An operand of a product.
#[derive(Copy, Clone, Debug)]
pub(super) struct Operand {
    /// The buffer it is read from, if it is in shared memory.
    pub(super) buffer: Option<Value>,
    /// Whether it is an expression in registers.
    pub(super) computed: bool,
    /// Whether its source is contiguous along the reduction.
    pub(super) along: bool,
}

/// A product.
#[derive(Clone, Debug)]
pub(super) struct Product {
    /// Rows, columns and depth.
    pub(super) shape: [Expr; 3],
    pub(super) accumulator: Value,
    /// The accumulator to which a statement of the loop adds these sums of one iteration.
    pub(super) whole: Option<Value>,
    /// Whether they are multiplied by factors of the iteration before the addition.
    pub(super) scaled: bool,
    /// The statement.
    pub(super) at: Stmt,
    pub(super) inputs: Inputs,
    pub(super) acc: Elem,
    /// The instruction, if it is written in the source.
    pub(super) atom: Option<Atom>,
    /// A and B.
    pub(super) operands: [Operand; 2],
}

/// A tensor.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) value: Value,
    /// Its extents in memory.
    pub(super) shape: Vec<Expr>,
    /// Size of an element.
    pub(super) elem: Bits,
    /// The number of times that the body names it.
    mentions: usize,
}

/// A tile that moves from or to global memory.
#[derive(Clone, Debug)]
pub(super) struct Move {
    /// The copy.
    pub(super) at: Stmt,
    /// The window in the source: in the copy, or where a name of the copy is computed.
    pub(super) span: Span,
    /// The tensor.
    pub(super) tensor: Value,
    pub(super) load: bool,
    /// A store that combines values with those in memory, atomically.
    pub(super) combines: bool,
    /// Extents of the tile.
    pub(super) shape: Vec<Expr>,
    /// The dimension along which it is contiguous in global memory.
    pub(super) contiguous: Option<usize>,
    /// Size of an element in global memory.
    pub(super) elem: Bits,
    /// Number of elements of an access that preconditions allow.
    pub(super) width: u64,
    /// Whether TMA can copy it in boxes, wherever the tensor ends.
    pub(super) boxed: bool,
    /// The buffer that it fills.
    pub(super) buffer: Option<Value>,
    /// Whether it fills a buffer unchanged, so that it need not pass through registers.
    pub(super) plain: bool,
    /// Whether the tensor has a dimension of several modes: then addresses are computed from the digits of indices.
    pub(super) modes: bool,
    /// The distance of rows of the tensor in elements, without padding.
    pub(super) pitch: Option<Expr>,
    /// Along each dimension of the tensor. `None`: indices from memory.
    pub(super) window: Option<Vec<Along>>,
    /// The dimension of the tensor along which neighbours are contiguous.
    pub(super) innermost: Option<usize>,
    /// The extent of the last mode of that dimension, if it has several and the last one is contiguous.
    pub(super) last_mode: Option<Expr>,
    /// Start and end along each dimension; elements beyond are padding that nothing moves.
    pub(super) bounds: Vec<Bound>,
    /// For a store: instructions to compute an element, and how many of them use the special function units.
    pub(super) computed: (f64, f64),
}

/// A window along a dimension of its tensor.
#[derive(Clone, Debug)]
pub(super) struct Along {
    /// The start is the sum of these, each times a number, and of a constant.
    pub(super) starts: Vec<(Expr, i64)>,
    pub(super) constant: i64,
    /// From one element to the next.
    pub(super) step: i64,
    /// `None`: one element.
    pub(super) extent: Option<Expr>,
}

/// The start of a window along a dimension (a sum; `None`: an index from memory), and its end.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    pub(super) starts: Option<Vec<Expr>>,
    pub(super) ends: Vec<Expr>,
}

/// Statements with the same number of executions.
#[derive(Clone, Debug, Default)]
pub(super) struct Region {
    /// The innermost loop around them.
    pub(super) at: Option<Stmt>,
    /// Start, end and step of the loops around them.
    pub(super) loops: Vec<[Expr; 3]>,
    /// Their variables.
    pub(super) variables: Vec<Value>,
    /// Whether a loop around them ends only by its condition.
    pub(super) endless: bool,
    /// Statements, including products, that are neither plain copies nor declarations.
    pub(super) stmts: Vec<Stmt>,
    pub(super) products: Vec<Product>,
    pub(super) moves: Vec<Move>,
    /// Tiles that copies read from or write to shared memory, with their element size; without those of products and of
    /// `moves`.
    pub(super) shared: Vec<(Vec<Expr>, Bits)>,
    /// All accesses of copies to shared memory by buffer, as the source of `places`.
    pub(super) accesses: Vec<Access>,
}

/// A read or write of a shared-memory buffer by a copy.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) at: Stmt,
    pub(super) buffer: Value,
    pub(super) store: bool,
    pub(super) shape: Vec<Expr>,
    pub(super) elem: Bits,
}

/// A tile in shared memory or registers.
#[derive(Clone, Debug)]
pub(super) struct Tile {
    pub(super) value: Value,
    pub(super) shape: Vec<Expr>,
    pub(super) elem: Bits,
    /// The number of slots, if it is written in the text.
    pub(super) slots: Option<Expr>,
    /// Whether it is filled from global memory in a loop.
    pub(super) filled: bool,
    pub(super) shared: bool,
}

/// A kernel in the view of the model.
#[derive(Debug)]
pub(super) struct Work<'k> {
    /// As written.
    pub(super) k: &'k Kernel,
    pub(super) regions: Vec<Region>,
    pub(super) tiles: Vec<Tile>,
    /// The tensors in memory, without those that repeat.
    pub(super) tensors: Vec<Tensor>,
    /// The copies of uncommon branches: they cost registers, but normally no time.
    pub(super) rare: Region,
    /// Tensors that repeat.
    pub(super) repeated: u64,
    /// Registers that the functions of the kernel need in addition to their operands.
    pub(super) functions: u64,
    /// Initialisers of scalars.
    lets: BTreeMap<Value, Expr>,
    /// Expressions outside of copies that may read windows.
    expressions: Vec<Reads>,
    /// Names whose windows copies read: they are counted there.
    copied: BTreeSet<Value>,
}

/// Most values of a grid index that are examined one by one.
const CLASSES: i64 = 16;

/// The reason why the model cannot predict a kernel.
pub(super) type Opaque = String;

impl<'k> Work<'k> {
    /// Analyses `k` with these values, or placeholders, of its compile-time parameters.
    pub(super) fn of(k: &'k Kernel, values: &[(Value, ConstValue)]) -> Result<Work<'k>, Opaque> {
        let mut sketch = k.clone();
        specialize::substitute(&mut sketch, values);
        sketch.const_params.clear();
        specialize::fold(&mut sketch);
        // `specialize` reports promises that do not hold.
        let _ = specialize::assume(&mut sketch);
        let facts = Facts::new(&sketch);
        let once = |v: Value, rank: usize| (0..rank).any(|d| repeats(&sketch, v, d));
        let mut named: SecondaryMap<Value, usize> = SecondaryMap::new();
        for s in all_stmts(&sketch, sketch.body) {
            stmt_exprs(&sketch, s).into_iter().for_each(|e| for_each_ref(&sketch, e, &mut |v| named[v] += 1));
        }
        let tensors = k.params.iter().filter_map(|&v| {
            let rank = k.tensor_ty(v)?.shape.len();
            let (shape, elem) = (in_memory(k, v), elem_of(&sketch, v)?.size());
            (!once(v, rank)).then_some(Tensor { value: v, shape, elem, mentions: named[v] })
        });
        let repeated = k.params.iter().filter(|&&v| k.tensor_ty(v).is_some_and(|t| once(v, t.shape.len()))).count();
        let mut work = Work {
            k,
            regions: vec![Region::default()],
            tiles: Vec::new(),
            tensors: tensors.collect(),
            rare: Region::default(),
            repeated: repeated as u64,
            functions: function_registers(&sketch),
            lets: BTreeMap::new(),
            expressions: Vec::new(),
            copied: BTreeSet::new(),
        };
        let reader = Reader { k, sketch: &sketch, facts: &facts };
        reader.block(sketch.body, 0, &mut work)?;
        reader.windows(&mut work);
        for tile in &mut work.tiles {
            let loads = |m: &Move| m.buffer == Some(tile.value);
            tile.filled = work.regions.iter().any(|r| !r.loops.is_empty() && r.moves.iter().any(loads));
        }
        Ok(work)
    }

    /// The products, in the order of the regions.
    pub(super) fn products(&self) -> impl Iterator<Item = &Product> {
        self.regions.iter().flat_map(|r| &r.products)
    }

    /// The tiles that move from or to global memory.
    pub(super) fn moves(&self) -> impl Iterator<Item = &Move> {
        self.regions.iter().flat_map(|r| &r.moves)
    }

    /// Whether there are several products: then the passes decide legality and cost.
    pub(super) fn has_several_products(&self) -> bool {
        self.products().nth(1).is_some()
    }

    /// An evaluator of the kernel's expressions with these values, for the block in the middle of the grid.
    fn valued<'a>(&'a self, env: &'a Env) -> Valued<'a> {
        Valued { work: self, env, names: RefCell::default() }
    }

    /// The value of an index expression for the block in the middle of the grid, if everything else in it is known.
    pub(super) fn int(&self, env: &Env, e: Expr) -> Option<i64> {
        match self.k.exprs[e] {
            ExprData::Int(x) => return Some(x),
            ExprData::Ref(v) if env[v].is_some() => return env[v],
            _ => {}
        }
        index::int(&self.valued(env), e)
    }

    /// The value of an extent.
    pub(super) fn extent(&self, env: &Env, e: Expr) -> Option<u64> {
        self.int(env, e).and_then(|x| u64::try_from(x).ok()).filter(|&x| x > 0)
    }

    /// Elements of a tile.
    pub(super) fn elements(&self, env: &Env, shape: &[Expr]) -> Option<u64> {
        shape.iter().try_fold(1u64, |n, &e| n.checked_mul(self.extent(env, e)?))
    }

    /// Bytes of shared memory for tiles of distributed shared memory.
    pub(super) fn cluster_memory(&self, env: &Env) -> u64 {
        let tiles = |v: Value| {
            let tensor = self.k.tensor_ty(v)?;
            let ElemRef::Known(elem) = tensor.elem else { return None };
            let (&count, tile) = tensor.shape.split_first()?;
            Some((elem.bytes_of(self.elements(env, tile)?), self.extent(env, count)?))
        };
        cluster::bytes(cluster::memory(self.k).filter_map(tiles))
    }

    /// The least bytes of a tensor that pass between memory and the chip: all of it, or what the copies of all blocks
    /// request if that is less, as with gathered rows and windows of a few columns. Runs of elements count in whole
    /// sectors.
    pub(super) fn needed(&self, env: &Env, tensor: &Tensor) -> f64 {
        let whole = tensor.elem.traffic(self.elements(env, &tensor.shape).unwrap_or(0) as f64);
        self.requested_bytes(env, tensor).map_or(whole, |asked| whole.min(asked))
    }

    /// Bytes that the copies of all blocks request from a tensor, if all copies and their iterations are known.
    fn requested_bytes(&self, env: &Env, tensor: &Tensor) -> Option<f64> {
        let moves = self.regions.iter().flat_map(|region| region.moves.iter().map(move |m| (region, m)));
        let moves: Vec<(&Region, &Move)> = moves.filter(|(_, m)| m.tensor == tensor.value).collect();
        if moves.len() != tensor.mentions || moves.iter().any(|(region, _)| region.endless) {
            return None;
        }
        let blocks = self.k.grid.iter().try_fold(1.0, |n, axis| Some(n * self.extent(env, axis.extent)? as f64))?;
        let mut bytes = 0.0;
        for (region, m) in moves {
            let known = |&[start, end, step]: &[Expr; 3]| {
                index::trips(self.int(env, start)?, self.int(env, end)?, self.int(env, step)?)
            };
            if region.loops.iter().any(|of| known(of).is_none()) {
                return None;
            }
            let run = m.contiguous.map_or(Some(1), |d| self.extent(env, *m.shape.get(d)?))?;
            let runs = self.elements(env, &m.shape)? / run;
            let sectors = (tensor.elem.traffic(run as f64) / f64::from(SECTOR_BYTES)).ceil();
            bytes += self.trips(env, region) * runs as f64 * sectors * f64::from(SECTOR_BYTES);
        }
        Some(blocks * bytes)
    }

    /// Iterations of a region; loops with unknown bounds count once. If bounds depend on a grid index with few values,
    /// the mean over these.
    pub(super) fn trips(&self, env: &Env, region: &Region) -> f64 {
        let few = |index: Value| {
            let axis = self.k.grid.iter().find(|axis| axis.index == index)?;
            self.int(env, axis.extent).filter(|n| (2..=CLASSES).contains(n))
        };
        let depends = |v: Value| region.loops.iter().flatten().any(|&e| self.reads(e, v));
        let classes = self.k.grid.iter().map(|axis| axis.index).find_map(|v| Some((v, few(v).filter(|_| depends(v))?)));
        let Some((index, count)) = classes else { return self.trips_of(env, region) };
        let mut env = env.clone();
        let all: f64 = (0..count)
            .map(|i| {
                env[index] = Some(i);
                self.trips_of(&env, region)
            })
            .sum();
        all / count as f64
    }

    /// Whether an index depends on a value, directly or through names.
    pub(super) fn reads(&self, e: Expr, v: Value) -> bool {
        let mut parts = Parts::of(self.k, e);
        while let Some(e) = parts.take() {
            match self.k.exprs[e] {
                ExprData::Ref(w) if w == v => return true,
                ExprData::Ref(w) => {
                    if let Some(&init) = self.lets.get(&w).filter(|_| parts.once(w)) {
                        parts.also(init);
                    }
                }
                _ => parts.inside(e),
            }
        }
        false
    }

    fn trips_of(&self, env: &Env, region: &Region) -> f64 {
        let trips = |&[start, end, step]: &[Expr; 3]| {
            let [start, end, step] = [start, end, step].map(|e| self.int(env, e));
            index::trips(start?, end?, step?).map(|n| n as f64)
        };
        region.loops.iter().map(|l| trips(l).unwrap_or(1.0)).product()
    }

    /// The truth of a condition, if it is known.
    pub(super) fn truth(&self, env: &Env, e: Expr) -> Option<bool> {
        index::truth(&self.valued(env), e)
    }
}

/// An evaluator of expressions with given values; each name is evaluated once.
struct Valued<'a> {
    work: &'a Work<'a>,
    env: &'a Env,
    names: RefCell<BTreeMap<Value, Option<i64>>>,
}

impl Valued<'_> {
    /// The value of a name; names on which it depends are evaluated first.
    fn name(&self, v: Value) -> Option<i64> {
        let known = |v: Value| self.names.borrow().get(&v).copied().or_else(|| self.env[v].map(Some));
        if let Some(known) = known(v) {
            return known;
        }
        let &init = self.work.lets.get(&v)?;
        for (v, init) in self.work.k.names_below(init, |v| known(v).is_some()).into_iter().chain([(v, init)]) {
            let value = index::int(self, init);
            self.names.borrow_mut().insert(v, value.filter(|_| self.work.lets.contains_key(&v)));
        }
        known(v).flatten()
    }
}

impl Tree for Valued<'_> {
    type Node = Expr;

    fn node(&self, at: Expr) -> Node<'_, Expr> {
        match &self.work.k.exprs[at] {
            ExprData::Int(x) => Node::Int(*x),
            ExprData::Op { op, args } => Node::Op(*op, args),
            _ => Node::Leaf,
        }
    }

    fn leaf(&self, at: Expr) -> Option<i64> {
        let ExprData::Ref(v) = self.work.k.exprs[at] else { return None };
        self.env[v].or_else(|| match self.work.k.values[v].def {
            // The index of the block in the middle.
            ValueDef::Grid => {
                let axis = self.work.k.grid.iter().find(|axis| axis.index == v)?;
                Some(index::int(self, axis.extent)? / 2)
            }
            _ => self.name(v),
        })
    }

    fn partial(&self) -> bool {
        true
    }
}

/// An expression that is assigned or named.
#[derive(Clone, Debug)]
struct Reads {
    at: Stmt,
    region: usize,
    of: Expr,
    /// The name that it gets.
    name: Option<Value>,
    /// The tile that it is assigned to.
    to: Option<Value>,
}

struct Reader<'a> {
    /// The original kernel, whose expressions are the extents.
    k: &'a Kernel,
    sketch: &'a Kernel,
    facts: &'a Facts,
}

impl Reader<'_> {
    fn block(&self, block: Block, region: usize, work: &mut Work<'_>) -> Result<(), Opaque> {
        for &s in &self.sketch.blocks[block] {
            let computes = match self.sketch.stmts[s] {
                StmtData::Assign { .. } | StmtData::Let { .. } | StmtData::If { .. } => true,
                StmtData::Copy { src, .. } => resolve_view(self.sketch, src).is_none(),
                _ => false,
            };
            work.regions[region].stmts.extend(computes.then_some(s));
            match self.sketch.stmts[s] {
                StmtData::For { var, start, end, step, body, .. } => {
                    let mut loops = work.regions[region].loops.clone();
                    let mut variables = work.regions[region].variables.clone();
                    // The number of iterations of a loop that only its condition ends is unknown.
                    let own = self.sketch.as_int(end) == Some(ENDLESS);
                    if !own {
                        loops.push([start, end, step]);
                        variables.push(var);
                    }
                    let endless = own || work.regions[region].endless;
                    work.regions.push(Region { at: Some(s), loops, variables, endless, ..Region::default() });
                    self.block(body, work.regions.len() - 1, work)?;
                }
                // One of the branches runs, usually the first.
                StmtData::If { then, otherwise, .. } => {
                    self.block(then, region, work)?;
                    let others = otherwise.map_or_else(Vec::new, |block| all_stmts(self.sketch, block));
                    others.into_iter().for_each(|s| self.copy(s, &mut work.rare));
                }
                StmtData::Role { body, .. } | StmtData::Ordered { body } => self.block(body, region, work)?,
                StmtData::Assign { dst, src } => {
                    if let ExprData::Mma(_) = self.sketch.exprs[src] {
                        let product = self.product(s, dst, src)?;
                        work.regions[region].products.push(product);
                    } else {
                        work.expressions.push(Reads { at: s, region, of: src, name: None, to: Some(dst) });
                    }
                }
                StmtData::Var { value, init } => {
                    work.tiles.extend(self.tile(value));
                    let reads = |of| Reads { at: s, region, of, name: None, to: Some(value) };
                    work.expressions.extend(init.map(reads));
                }
                StmtData::Alloc { value, .. } => work.tiles.extend(self.tile(value)),
                StmtData::Let { value, init } => {
                    work.lets.insert(value, init);
                    work.expressions.push(Reads { at: s, region, of: init, name: Some(value), to: None });
                }
                StmtData::Copy { src, dst, .. } => {
                    self.copy(s, &mut work.regions[region]);
                    [src, dst].into_iter().for_each(|e| self.named(e, &mut work.copied));
                }
                StmtData::Channel { .. }
                | StmtData::Barrier
                | StmtData::Fence
                | StmtData::Await { .. }
                | StmtData::Signal { .. } => {}
            }
        }
        Ok(())
    }

    fn tile(&self, value: Value) -> Option<Tile> {
        let elem = elem_of(self.sketch, value)?.size();
        let slots = match self.k.values[value].def {
            ValueDef::Channel { slots, .. } => Some(slots),
            _ => None,
        };
        let shared = !matches!(self.k.values[value].def, ValueDef::Var(_));
        Some(Tile { value, shape: self.k.tile_ty(value)?.shape.clone(), elem, slots, filled: false, shared })
    }

    fn product(&self, at: Stmt, dst: Value, src: Expr) -> Result<Product, Opaque> {
        let ExprData::Mma(mma) = self.sketch.exprs[src] else { return Err("no product".to_owned()) };
        let acc = self.k.tile_ty(dst).map(|t| t.shape.clone()).unwrap_or_default();
        let &[rows, cols] = &acc[..] else { return Err("an accumulator is no matrix".to_owned()) };
        let a = operand_shape(self.k, mma.a).and_then(|s| *s.get(1)?);
        let b = || operand_shape(self.k, mma.b).and_then(|s| *s.first()?);
        let depth = a.or_else(b).ok_or_else(|| {
            "the operands of a product have no written extents from which its depth follows".to_owned()
        })?;
        let operand = |e: Expr, k_dim: usize| -> Option<(Operand, Elem)> {
            let Some(view) = resolve_view(self.sketch, e) else {
                // An operand computed in registers.
                return match type_of(self.sketch, e).ok()?.elem()? {
                    ElemRef::Known(elem) => Some((Operand { buffer: None, computed: true, along: false }, elem)),
                    ElemRef::Param(_) => None,
                };
            };
            let dim = if view.transposed { 1 - k_dim } else { k_dim };
            let shared = view.space(self.sketch).is_of_block();
            let along = if shared { smem_contiguous(self.sketch, view.base) } else { None } == Some(dim);
            Some((
                Operand { buffer: shared.then_some(view.base), computed: false, along },
                elem_of(self.sketch, view.base)?,
            ))
        };
        let unclear = || "an operand of a product is no tile".to_owned();
        let (a, of_a) = operand(mma.a, 1).ok_or_else(unclear)?;
        let (b, of_b) = operand(mma.b, 0).ok_or_else(unclear)?;
        let inputs = Inputs { a: of_a, b: of_b };
        let acc = elem_of(self.sketch, dst).ok_or_else(unclear)?;
        let (shape, operands) = ([rows, cols, depth], self.converted([a, b], [mma.a, mma.b]));
        let parts = self.parts(at);
        let (whole, scaled) = (parts.map(|(sums, _)| sums), parts.is_some_and(|(_, scaled)| scaled));
        Ok(Product { shape, accumulator: dst, whole, scaled, at, inputs, acc, atom: mma.atom, operands })
    }

    /// The operands of a product; if both are converted buffers, lanes convert the fragments that they load, as in a
    /// product of the buffers.
    fn converted(&self, operands: [Operand; 2], of: [Expr; 2]) -> [Operand; 2] {
        let buffer = |e: Expr| match self.sketch.exprs[e] {
            ExprData::Cast { arg, .. } => {
                let view = resolve_view(self.sketch, arg)?;
                view.space(self.sketch).is_of_block().then_some(view.base)
            }
            _ => None,
        };
        match of.map(buffer) {
            [Some(a), Some(b)] => [a, b].map(|v| Operand { buffer: Some(v), computed: false, along: false }),
            _ => operands,
        }
    }

    /// The accumulator to which the loop around a product adds its sums, if the loop has no other effect, and whether
    /// factors of the iteration multiply them.
    fn parts(&self, at: Stmt) -> Option<(Value, bool)> {
        let body = path_to(self.sketch, at).into_iter().rev().find_map(|(block, i)| {
            let around = self.sketch.blocks[block][i];
            loop_body(self.sketch, around)
        })?;
        let step = reduction::of(self.sketch, body).ok()?;
        step.part.map(|part| (step.sums, !part.factors.is_empty()))
    }

    fn copy(&self, s: Stmt, region: &mut Region) {
        let StmtData::Copy { src, dst, ref attrs } = self.sketch.stmts[s] else { return };
        let Some(to) = resolve_view(self.sketch, dst) else { return };
        let Some(shape) = self.tile_side(src, dst) else { return };
        let written = attrs.vec.map(u64::from);
        let mut sources = Vec::new();
        self.sources(src, &mut sources);
        let into = (to.space(self.sketch).is_of_block()).then_some(to.base);
        let access = |buffer: Value, store: bool| {
            let (shape, elem) = (shape.clone(), self.size(buffer));
            Access { at: s, buffer, store, shape, elem }
        };
        region.accesses.extend(into.map(|buffer| access(buffer, true)));
        let mut loads = 0;
        for &e in &sources {
            let Some(view) = resolve_view(self.sketch, e) else { continue };
            match view.space(self.sketch) {
                space if space.has_bounds() => {
                    let plain = e == src && elem_of(self.sketch, view.base) == elem_of(self.sketch, to.base);
                    let width = written.filter(|_| plain);
                    region.moves.extend(self.moved((s, true), e, &shape, width).map(|m| Move {
                        buffer: into,
                        plain,
                        ..m
                    }));
                    loads += 1;
                }
                space if space.is_of_block() => {
                    region.shared.push((shape.clone(), self.size(view.base)));
                    region.accesses.push(access(view.base, false));
                }
                _ => {}
            }
        }
        match to.space(self.sketch) {
            space if space.has_bounds() => {
                let computed = self.computed(src, &mut BTreeSet::new());
                let combines = attrs.reduce.is_some();
                let moved = self.moved((s, false), dst, &shape, written);
                region.moves.extend(moved.map(|m| Move { computed, combines, ..m }));
            }
            // A buffer that is filled from global memory is counted with the move.
            s if s.is_of_block() && loads == 0 => region.shared.push((shape, self.size(to.base))),
            _ => {}
        }
    }

    fn size(&self, v: Value) -> Bits {
        elem_of(self.sketch, v).unwrap_or(Elem::F32).size()
    }

    /// Every view that an expression reads, directly or through `let`s.
    fn sources(&self, e: Expr, out: &mut Vec<Expr>) {
        let mut parts = Parts::of(self.sketch, e);
        while let Some(e) = parts.take() {
            if resolve_view(self.sketch, e).is_some() {
                out.push(e);
            } else if !matches!(self.sketch.exprs[e], ExprData::Iota { .. }) {
                // Only the extents of an `iota`'s operand matter.
                parts.inside(e);
            }
        }
    }

    /// Instructions to compute an element of an expression, and how many of them use the special function units; named
    /// values are computed once.
    fn computed(&self, e: Expr, named: &mut BTreeSet<Value>) -> (f64, f64) {
        let is_tile = |e: Expr| matches!(type_of(self.sketch, e), Ok(Type::Tile(_)));
        if let ExprData::Ref(v) = self.sketch.exprs[e] {
            return match let_init(self.sketch, v) {
                Some(init) if named.insert(v) => self.computed(init, named),
                _ => (0.0, 0.0),
            };
        }
        if !is_tile(e) || resolve_view(self.sketch, e).is_some() {
            return (0.0, 0.0);
        }
        let own = instructions(self.sketch, e);
        self.sketch.children(e).into_iter().fold(own, |(all, special), child| {
            let (more, more_special) = self.computed(child, named);
            (all + more, special + more_special)
        })
    }

    /// The extents of a copy: those of the tile on either side.
    fn tile_side(&self, src: Expr, dst: Expr) -> Option<Vec<Expr>> {
        let whole = |e: Expr| written_shape(self.k, self.sketch, e)?.into_iter().collect::<Option<Vec<Expr>>>();
        let matrix = |shape: &Vec<Expr>| !shape.is_empty();
        if let Some(shape) = whole(dst).or_else(|| whole(src)).filter(matrix) {
            return Some(shape);
        }
        let mut sources = Vec::new();
        self.sources(src, &mut sources);
        let shapes = sources.into_iter().filter_map(whole).filter(matrix);
        let all = shapes.reduce(|all, own| self.broadcast_extents(all, own))?;
        Some(self.reduced(src, all))
    }

    /// The extents of an expression of windows with the extents `all`: dimensions along which it reduces them have one
    /// element, which an expression of the kernel says. Where none does, the extents that are reduced bound them.
    fn reduced(&self, e: Expr, all: Vec<Expr>) -> Vec<Expr> {
        let Some(own) = fixed_shape(self.sketch, e).filter(|own| own.len() == all.len()) else { return all };
        let one = || self.k.exprs.keys().find(|&e| self.k.as_int(e) == Some(1));
        let extent = |(n, e): (u64, Expr)| {
            if n == 1 && self.sketch.as_int(e) != Some(1) { one().unwrap_or(e) } else { e }
        };
        own.into_iter().zip(all).map(extent).collect()
    }

    /// The extents of an operator's result: those of one operand, if the other has one element or fewer dimensions.
    fn broadcast_extents(&self, all: Vec<Expr>, own: Vec<Expr>) -> Vec<Expr> {
        if all.len() != own.len() {
            return if all.len() > own.len() { all } else { own };
        }
        let one = |e: Expr| self.sketch.as_int(e) == Some(1);
        all.into_iter().zip(own).map(|(a, b)| if one(a) { b } else { a }).collect()
    }

    fn moved(&self, (at, load): (Stmt, bool), e: Expr, shape: &[Expr], written: Option<u64>) -> Option<Move> {
        let view = resolve_view(self.sketch, e)?;
        let known: Vec<u64> = shape.iter().map(|&e| self.sketch.as_int(e).map_or(1, |x| x.max(1) as u64)).collect();
        if known.len() != view.base_dims().len() {
            return None;
        }
        let width = written.unwrap_or_else(|| u64::from(global_width(self.sketch, self.facts, &view, &known).elems));
        // A dimension of stride 0 is read once only.
        if (0..view.dims.len()).any(|d| repeats(self.sketch, view.base, d)) {
            return None;
        }
        // Indices from memory put neighbours anywhere.
        let gathered = |&d: &usize| matches!(view.dims[view.base_dims()[d]], ViewDim::Gather(_));
        let contiguous = window_contiguous_dim(self.sketch, &view).filter(|d| !gathered(d));
        let elem = self.size(view.base);
        let modes = self
            .sketch
            .tensor_ty(view.base)
            .is_some_and(|t| (0..t.shape.len()).any(|d| t.modes(d).is_some_and(|modes| modes.len() > 1)));
        let bound = |d: usize| {
            let (starts, end) = match &view.dims[d] {
                ViewDim::From { starts, end } => (Some(starts.clone()), *end),
                ViewDim::Fixed(_) | ViewDim::Gather(_) => (None, None),
            };
            let whole = self.sketch.tensor_ty(view.base).and_then(|t| t.shape.get(d).copied());
            Bound { starts, ends: whole.into_iter().chain(end).collect() }
        };
        let bounds = view.base_dims().into_iter().map(bound).collect();
        let along = |(d, dim): (usize, &ViewDim)| {
            let extent = view.base_dims().iter().position(|&kept| kept == d).map(|i| shape[i]);
            let once = |starts: &[Expr]| starts.iter().map(|&e| (e, 1)).collect();
            let ViewDim::Gather(rows) = dim else {
                return Some(Along { starts: once(dim.starts()), constant: 0, step: 1, extent });
            };
            let ExprData::Ref(rows) = self.sketch.exprs[*rows] else { return None };
            let numbers = progression(self.sketch, rows)?;
            Some(Along { starts: numbers.terms, constant: numbers.constant, step: numbers.step, extent })
        };
        let window = view.dims.iter().enumerate().map(along).collect();
        let rows = tilec_ir::facts::contiguous_dim(self.sketch, view.base);
        let tensor = self.sketch.tensor_ty(view.base);
        let pitch = tensor.and_then(|t| t.shape.get(rows?).copied());
        let last = tensor.and_then(|t| t.modes(rows?)?.last());
        let last_mode = last.filter(|last| self.sketch.as_int(last.stride) == Some(1)).map(|last| last.extent);
        Some(Move {
            at,
            span: self.sketch.expr_spans[e],
            tensor: view.base,
            load,
            combines: false,
            shape: shape.to_vec(),
            contiguous,
            elem,
            width,
            boxed: tensor_copies::boxed(self.sketch, self.facts, &view),
            buffer: None,
            plain: false,
            modes,
            pitch,
            innermost: rows,
            last_mode,
            window,
            bounds,
            computed: (0.0, 0.0),
        })
    }
}
