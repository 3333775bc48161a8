//! The way of one element: from the tensor, through shared memory and registers, to the product, and from the sum to the result.
//!
//! It is followed through the program with layouts whose loops are as they are written: there windows are sums of grid indices and loop variables, and fragments and
//! partial results are statements. Each use sees the definitions that reach it in the order of the program (`forward`, `backward`). The address of an element,
//! and who moves it, say the layouts and attributes of the program after the last pass, in which buffers keep their names.

mod accesses;
mod backward;
mod combining;
pub(super) mod draw;
mod element;
mod forward;
mod graph;
mod intervals;
mod named;
mod needs;
mod places;
mod reduced;
mod shown;
mod solve;
mod split;
mod spot;
mod state;
mod taken;
mod tensor;
mod text;
mod tile;
mod uses;
pub(super) mod windows;

pub use element::{Coord, Element};

use crate::compile::{Compiled, CompiledKernel};
use places::shape_of;
use serde::Serialize;
use solve::Solver;
use std::collections::BTreeMap;
use tilec_ir::diag::{Span, counted};
use tilec_ir::entities::{Block, Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, Kernel, StmtData, ValueDef};
use tilec_ir::typing::{fixed_shape, type_of};
use tilec_ptx::report::Report;
use windows::Numbers;

/// Steps that are shown at most: an element may be read by many statements.
pub(super) const MOST: usize = 96;

/// A place on the way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Step {
    /// Where the element is: `global memory`, `shared memory`, `registers`, `product`, `result`.
    pub at: &'static str,
    /// What holds it: a name and coordinates.
    pub what: String,
    /// Where exactly, and by what it came.
    pub text: String,
    /// The line of the source; 0: none.
    pub line: usize,
}

/// The way of an element: its steps, and how they hang together.
#[derive(Clone, Debug, Default)]
pub struct Path {
    /// The steps, each after the one that it hangs on.
    pub steps: Vec<Step>,
    /// Of each step the one that it hangs on.
    pub(super) links: Vec<Option<Link>>,
}

impl Path {
    /// The steps in the order of execution: those of the element and of what becomes of it, and those of what it is made of. If nothing becomes of it, all are the first.
    pub(crate) fn in_order(&self) -> (Vec<&Step>, Vec<&Step>) {
        let is_back = |link: &Option<Link>| link.is_some_and(|link| link.back);
        let of =
            |back: bool| self.steps.iter().zip(&self.links).filter(move |(_, l)| is_back(l) == back).map(|(s, _)| s);
        let (ahead, behind): (Vec<&Step>, Vec<&Step>) = (of(false).collect(), of(true).rev().collect());
        if ahead.len() > 1 { (ahead, behind) } else { (behind.into_iter().chain(ahead).collect(), Vec::new()) }
    }

    /// Whether there may be more steps than are shown.
    pub(crate) fn is_cut(&self) -> bool {
        self.steps.len() >= MOST
    }
}

/// What a step hangs on.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Link {
    /// Its number.
    pub(super) step: usize,
    /// The element goes from this step to that one: the way is followed back.
    pub(super) back: bool,
}

/// The kernel of which an element is requested, and what has it there: in the program as it is written, and in the last one.
fn asked<'p>(program: &'p Compiled, of: &Element) -> Result<(&'p CompiledKernel, [Option<Value>; 2]), String> {
    let name = &of.name;
    let is_meant = |k: &CompiledKernel, meant: &String| [&k.tile.kernel.name, &k.contract.entry].contains(&meant);
    let mut kernels: Vec<&CompiledKernel> = program.kernels.iter().collect();
    if let Some(meant) = &of.kernel {
        kernels.retain(|k| is_meant(k, meant));
        if kernels.is_empty() {
            let all: Vec<&str> = program.kernels.iter().map(|k| k.contract.entry.as_str()).collect();
            return Err(format!("no kernel is called `{meant}`; there are {}", list(&all)));
        }
    }
    let called = |k: &Kernel| k.values.keys().find(|&v| k.values[v].name == *name && is_asked(k, v));
    let own = |k: &CompiledKernel| [called(followed(k)), called(&k.tile.kernel)];
    let mut having: Vec<_> = kernels.iter().map(|&k| (k, own(k))).filter(|(_, v)| *v != [None, None]).collect();
    // A kernel that a pass put in front of one, to bring rows into order, is not what is written.
    if having.iter().any(|(k, _)| k.tile.source_kernel.is_some()) {
        having.retain(|(k, _)| k.tile.source_kernel.is_some());
    }
    match having[..] {
        [only] => Ok(only),
        [] => {
            let names: Vec<&str> = kernels.iter().flat_map(|k| names(&k.tile.kernel)).collect();
            Err(format!("no tensor or tile is called `{name}`; there are {}", list(&names)))
        }
        _ => {
            let each = having.iter().map(|(k, _)| Element { kernel: Some(k.contract.entry.clone()), ..of.clone() });
            let each: Vec<String> = each.map(|e| format!("`{}`", e.to_string().replace(' ', ""))).collect();
            Err(format!("{} kernels have `{name}`: name one of them, as {}", each.len(), each.join(" or ")))
        }
    }
}

/// The way of an element.
///
/// # Errors
/// There is no such thing, or it has other dimensions, or several kernels have it; the text says so.
pub fn path(program: &Compiled, of: &Element) -> Result<Path, String> {
    let name = of.name.as_str();
    let (kernel, [written, last]) = asked(program, of)?;
    let mut way = PathBuilder::new(program, kernel);
    let dims = match (written, last) {
        (Some(v), _) => dims_of(way.k, v),
        (None, Some(v)) => dims_of(way.last, v),
        (None, None) => Vec::new(),
    };
    let coords = with_single_dimensions(&dims, &of.coords, &Coord::Number(0)).ok_or_else(|| {
        let are = counted(dims.len(), "dimension");
        format!("`{name}` has {are}, and {} given", counted(of.coords.len(), "coordinate"))
    })?;
    let Some(coords) = element::numbers(&coords) else {
        way.of_named(written, name, &coords)?;
        return Ok(way.path);
    };
    match written {
        Some(v) if way.k.tensor_ty(v).is_some() => {
            way.is_there(v, &coords)?;
            way.of_tensor(v, &coords);
        }
        Some(v) if places::is_alias(way.k, v) => way.of_window(v, &coords)?,
        Some(v) => way.of_place(v, &coords)?,
        None => way.of_last_tile(name, &coords)?,
    }
    Ok(way.path)
}

/// Coordinates along all dimensions. Those that can be only 0 may be left out, as in the declaration of a tensor `f32[M]` of which a window has a dimension `_` more.
fn with_single_dimensions<T: Clone>(dims: &[bool], coords: &[T], first: &T) -> Option<Vec<T>> {
    if dims.len() == coords.len() {
        return Some(coords.to_vec());
    }
    let others = dims.iter().filter(|single| !**single).count();
    let mut given = coords.iter();
    let next = |&single: &bool| if single { first } else { given.next().unwrap_or(first) };
    (others == coords.len()).then(|| dims.iter().map(next).cloned().collect())
}

fn has_elements(def: &ValueDef) -> bool {
    matches!(def, ValueDef::Tensor(_) | ValueDef::Var(_) | ValueDef::Smem(_) | ValueDef::Channel { .. })
}

/// Whether a value has elements, or is a name of something that has.
fn is_asked(k: &Kernel, v: Value) -> bool {
    has_elements(&k.values[v].def) || k.let_init(v).is_some_and(|init| rank_of(k, init) > 0)
}

fn names(k: &Kernel) -> Vec<&str> {
    k.values.keys().filter(|&v| is_asked(k, v)).map(|v| k.values[v].name.as_str()).collect()
}

fn rank_of(k: &Kernel, e: Expr) -> usize {
    type_of(k, e).map_or(0, |ty| ty.rank())
}

/// The dimensions of a value, and which of them have one element whatever the program is called with.
fn dims_of(k: &Kernel, v: Value) -> Vec<bool> {
    match k.let_init(v) {
        Some(init) => match fixed_shape(k, init) {
            Some(shape) => shape.iter().map(|&n| n == 1).collect(),
            None => vec![false; rank_of(k, init)],
        },
        None => {
            let repeats = |d: usize| k.tensor_ty(v).is_some_and(|t| t.repeats.contains(&d));
            let single = |(d, &e): (usize, &Expr)| repeats(d) || k.as_int(e) == Some(1);
            shape_of(k, v).iter().enumerate().map(single).collect()
        }
    }
}

fn list(names: &[&str]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

/// An element with numbers as coordinates: `A[3, 5]`.
pub(super) fn element(name: &str, coords: &[u64]) -> String {
    format!("{name}{}", at(coords))
}

fn at(coords: &[u64]) -> String {
    format!("[{}]", coords.iter().map(u64::to_string).collect::<Vec<_>>().join(", "))
}

/// What moves the elements of a copy, in words.
fn by(attrs: &CopyAttrs) -> String {
    let width = attrs.vec.map_or(String::new(), |n| format!(", {} at a time", counted(n as usize, "element")));
    if attrs.is_multicast() {
        return "moved by TMA, to several blocks of the cluster".to_owned();
    }
    if attrs.is_tensor() {
        return "moved by TMA".to_owned();
    }
    if attrs.is_matrix() {
        return "moved as 8x8 matrices (`ldmatrix`, `stmatrix`)".to_owned();
    }
    if attrs.is_asynchronous() {
        return format!("copied asynchronously (`cp.async`){width}");
    }
    match attrs.mechanism.word() {
        None => format!("moved by threads through registers{width}"),
        Some(word) => format!("moved as `{word}` says{width}"),
    }
}

/// The program in which elements are followed.
fn followed(kernel: &CompiledKernel) -> &Kernel {
    kernel.tile.laid_out.as_ref().unwrap_or(&kernel.tile.specialized)
}

fn without_attributes(k: &Kernel) -> Kernel {
    let mut plain = k.clone();
    for s in k.statements() {
        if let StmtData::Copy { attrs, .. } = &mut plain.stmts[s] {
            let CopyAttrs { fill, when, reduce, old, .. } = std::mem::take(attrs);
            *attrs = CopyAttrs { fill, when, reduce, old, ..CopyAttrs::default() };
        }
        plain.plans[s] = Default::default();
    }
    plain
}

/// The sizes for which the kernel was compiled: those that were given, or all that the model has values for.
fn sizes_of(kernel: &CompiledKernel, given: bool) -> Numbers {
    let k = followed(kernel);
    let known = kernel.tile.prediction.as_ref().filter(|p| p.sizes_given || !given);
    let named = |(name, n): &(String, i64)| {
        let v = k.values.keys().find(|&v| k.values[v].name == *name && matches!(k.values[v].def, ValueDef::Size))?;
        Some((v, *n))
    };
    known.map_or_else(Numbers::new, |p| p.sizes.iter().filter_map(named).collect())
}

/// The loops around each statement, from the outside in.
fn loops_around(k: &Kernel) -> BTreeMap<Stmt, Vec<Value>> {
    fn visit(k: &Kernel, block: Block, loops: &mut Vec<Value>, out: &mut BTreeMap<Stmt, Vec<Value>>) {
        for &s in &k.blocks[block] {
            out.insert(s, loops.clone());
            match k.stmts[s] {
                StmtData::For { var, body, .. } => {
                    loops.push(var);
                    visit(k, body, loops, out);
                    loops.pop();
                }
                StmtData::If { then, otherwise, .. } => {
                    visit(k, then, loops, out);
                    otherwise.into_iter().for_each(|block| visit(k, block, loops, out));
                }
                StmtData::Role { body, .. } | StmtData::Ordered { body } => visit(k, body, loops, out),
                _ => {}
            }
        }
    }
    let mut out = BTreeMap::new();
    visit(k, k.body, &mut Vec::new(), &mut out);
    out
}

struct PathBuilder<'a> {
    program: &'a Compiled,
    /// What became of its statements.
    lowered: &'a Report,
    /// The program in which elements are followed.
    k: &'a Kernel,
    /// The same without attributes of copies, for texts.
    plain: Kernel,
    solver: Solver<'a>,
    loops: BTreeMap<Stmt, Vec<Value>>,
    /// The program after the last pass.
    last: &'a Kernel,
    path: Path,
    /// What the next step hangs on.
    link: Option<Link>,
    /// The sizes that were given, and those of the model.
    sizes: Numbers,
    model_sizes: Numbers,
}

impl<'a> PathBuilder<'a> {
    fn new(program: &'a Compiled, kernel: &'a CompiledKernel) -> PathBuilder<'a> {
        let (k, last) = (followed(kernel), &kernel.tile.kernel);
        PathBuilder {
            program,
            lowered: &kernel.lowered,
            k,
            plain: without_attributes(k),
            solver: Solver::new(k),
            loops: loops_around(k),
            last,
            path: Path::default(),
            link: None,
            sizes: sizes_of(kernel, true),
            model_sizes: sizes_of(kernel, false),
        }
    }

    fn line(&self, span: Span) -> usize {
        if span.is_none() { 0 } else { self.program.source.position(span.start as usize).line }
    }

    /// A step that hangs on what is followed; its number, or that of the same one before. `None`: there are too many.
    fn push(&mut self, at: &'static str, what: String, text: String, span: Span) -> Option<usize> {
        let line = self.line(span);
        let step = Step { at, what, text, line };
        if let Some(before) = self.path.steps.iter().position(|s| *s == step) {
            return Some(before);
        }
        if self.path.steps.len() == MOST {
            return None;
        }
        self.path.steps.push(step);
        self.path.links.push(self.link);
        Some(self.path.steps.len() - 1)
    }

    /// Follows what hangs on a step; not if that is one too many.
    fn from(&mut self, step: Option<usize>, back: bool, follow: impl FnOnce(&mut Self)) {
        let Some(step) = step else { return };
        let before = self.link.replace(Link { step, back });
        follow(self);
        self.link = before;
    }

    /// A tile or tensor of this name after the last pass: one that a statement declares, rather than one that a pass has replaced.
    fn called(&self, name: &str) -> Option<Value> {
        let k = self.last;
        let is_it = |&v: &Value| k.values[v].name == name && has_elements(&k.values[v].def);
        let declared = k.statements().into_iter().filter_map(|s| match k.stmts[s] {
            StmtData::Var { value, .. } => Some(value),
            _ => None,
        });
        declared.chain(k.values.keys()).find(is_it)
    }

    /// Statements of a kernel in the order of the text.
    fn statements(k: &Kernel) -> Vec<Stmt> {
        let mut all = Vec::new();
        k.walk(k.body, &mut |_, _, s| all.push(s));
        all
    }
}

fn is_inside(name: &str, shape: &[u64], coords: &[u64]) -> Result<(), String> {
    match shape.iter().zip(coords).any(|(n, c)| c >= n) {
        true => Err(format!("`{name}` is a tile of {shape:?} elements, and has none at {}", at(coords))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
