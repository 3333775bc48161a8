//! The way of one element: from the tensor, through shared memory and registers, to the product, and from the sum to the result.
//!
//! Windows are those of the program as it is written, with its parameters bound: there they are sums of grid indices and loop variables. Where an element
//! lies then, and who has it, say the layouts and attributes of the program after the last pass, in which buffers keep their names.

mod accesses;
mod backward;
pub(super) mod draw;
mod element;
mod forward;
mod named;
mod places;
mod reduced;
mod split;
pub(super) mod windows;

pub use element::{Coord, Element};

use super::registers::holder;
use super::threads::ThreadGroup;
use crate::compile::{Compiled, CompiledKernel};
use places::shape_of;
use serde::Serialize;
use tilec_ir::diag::{Span, counted};
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{CopyAttrs, Kernel, StmtData, ValueDef};
use tilec_ir::print::{print_expr, print_head};
use tilec_ir::typing::{ViewDim, copy_shape, fixed_shape, resolve_view, type_of};
use tilec_ptx::report::Report;
use windows::{Coords, Numbers, gathered, in_base, name_of, place_in, repeated, variables};

/// Ways that are followed at most: an element may be read by many copies.
const MOST: usize = 24;

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
    let own = |k: &CompiledKernel| [called(&k.tile.specialized), called(&k.tile.kernel)];
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
        (Some(v), _) => dims_of(way.written, v),
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
        Some(v) if way.written.tensor_ty(v).is_some() => way.of_tensor(v, &coords),
        Some(v) if way.written.let_init(v).is_some() => way.of_name(v, &coords)?,
        _ => way.of_tile(name, &coords)?,
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

/// At which numbers something is, in words.
fn when(k: &Kernel, numbers: &Numbers) -> String {
    let stops =
        |v: &Value| k.statement_data().any(|s| matches!(s, StmtData::For { var, cond: Some(_), .. } if var == v));
    let number = |(v, n): (&Value, &i64)| {
        let so_far = if stops(v) { " (if its `while` lets the loop come so far)" } else { "" };
        format!("{} = {n}{so_far}", k.values[*v].name)
    };
    let when: Vec<String> = numbers.iter().map(number).collect();
    if when.is_empty() { "in every block".to_owned() } else { format!("at {}", when.join(", ")) }
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

/// The sizes for which the kernel was compiled, if some were given.
fn given_sizes(kernel: &CompiledKernel) -> Numbers {
    let k = &kernel.tile.specialized;
    let given = kernel.tile.prediction.as_ref().filter(|p| p.sizes_given);
    let named = |(name, n): &(String, i64)| {
        let v = k.values.keys().find(|&v| k.values[v].name == *name && matches!(k.values[v].def, ValueDef::Size))?;
        Some((v, *n))
    };
    given.map_or_else(Numbers::new, |p| p.sizes.iter().filter_map(named).collect())
}

struct PathBuilder<'a> {
    program: &'a Compiled,
    /// What became of its statements.
    lowered: &'a Report,
    /// The program as it is written.
    written: &'a Kernel,
    /// The program after the last pass.
    last: &'a Kernel,
    path: Path,
    /// What the next step hangs on.
    link: Option<Link>,
    /// The numbers of grid axes and loops of the program as it is written, as far as they are known.
    numbers: Numbers,
    /// The sizes that were given.
    sizes: Numbers,
    /// The copy of the program as it is written that brought the element into its tile.
    came: Option<Stmt>,
    /// Elements of tiles that were followed, and by which copy they came.
    seen: Vec<(String, Vec<u64>, Option<Stmt>)>,
}

impl<'a> PathBuilder<'a> {
    fn new(program: &'a Compiled, kernel: &'a CompiledKernel) -> PathBuilder<'a> {
        let (written, last) = (&kernel.tile.specialized, &kernel.tile.kernel);
        PathBuilder {
            program,
            lowered: &kernel.lowered,
            written,
            last,
            path: Path::default(),
            link: None,
            numbers: Numbers::new(),
            sizes: given_sizes(kernel),
            came: None,
            seen: Vec::new(),
        }
    }

    fn line(&self, span: Span) -> usize {
        if span.is_none() { 0 } else { self.program.source.position(span.start as usize).line }
    }

    /// A step that hangs on what is followed; its number, or that of the same one before. `None`: there are too many.
    fn push(&mut self, at: &'static str, what: String, text: String, span: Span) -> Option<usize> {
        let line = self.line(span);
        let step = Step { at, what, text, line };
        match self.path.steps.iter().position(|s| *s == step) {
            Some(before) => Some(before),
            None => self.add(step),
        }
    }

    /// A step, be there an equal one or not.
    fn add(&mut self, step: Step) -> Option<usize> {
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

    /// Where an element of a tile lies after the last pass. `None`: there is no such tile, or it has no layout.
    fn lies(&self, name: &str, coords: &[u64]) -> Option<(&'static str, String)> {
        places::in_tile(self.last, self.called(name)?, coords)
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

    /// What a copy of the source is after the last pass, and how it moves its elements: from a tensor, or to one (`stores`).
    fn copy_at(&self, span: Span, stores: bool) -> Option<(Stmt, &'a CopyAttrs)> {
        let last = self.last;
        PathBuilder::statements(last).into_iter().find_map(|t| match &last.stmts[t] {
            StmtData::Copy { attrs, src, dst } if last.stmt_spans[t] == span => {
                let side = if stores { *dst } else { *src };
                resolve_view(last, side).is_some_and(|v| last.tensor_ty(v.base).is_some()).then_some((t, attrs))
            }
            _ => None,
        })
    }

    /// Statements of a kernel in the order of the text.
    fn statements(k: &Kernel) -> Vec<Stmt> {
        let mut all = Vec::new();
        k.walk(k.body, &mut |_, _, s| all.push(s));
        all
    }

    /// An element of a tensor: each window that has it.
    fn of_tensor(&mut self, v: Value, coords: &[u64]) {
        let k = self.written;
        let name = k.values[v].name.clone();
        let bytes = places::in_tensor(k, v, coords, &self.sizes);
        let span = k.values[v].span;
        // As the tensor is declared, without the dimension along which it repeats.
        let repeats = |d: &usize| k.tensor_ty(v).is_some_and(|t| t.repeats.contains(d));
        let declared: Vec<u64> = (0..).zip(coords).filter(|(d, _)| !repeats(d)).map(|(_, &n)| n).collect();
        let root =
            self.push("global memory", element(&name, &declared), format!("an element of the tensor{bytes}"), span);
        let mut found = false;
        self.from(root, false, |way| found = way.is_read(v, coords));
        self.from(root, true, |way| found |= way.of_result(v, coords));
        if !found {
            let mut text =
                "no copy loads or stores a window that has it at a place that can be told before the launch".to_owned();
            let named = self.names_of(v);
            if !named.is_empty() {
                text.push_str(&format!("; memory names the row, so ask for {}", named.join(" or ")));
            }
            self.from(root, false, |way| {
                way.push("global memory", element(&name, &declared), text, span);
            });
        }
    }

    /// What reads an element of a tensor. Whether something does.
    fn is_read(&mut self, v: Value, coords: &[u64]) -> bool {
        let k = self.written;
        let mut found = false;
        for s in PathBuilder::statements(k) {
            let StmtData::Copy { src, dst, .. } = k.stmts[s] else { continue };
            let Some(view) = resolve_view(k, src).filter(|view| view.base == v) else { continue };
            if let Some((d, rows)) = gathered(k, &view).first() {
                let named = print_expr(k, *rows);
                let mut asked: Vec<String> = coords.iter().map(u64::to_string).collect();
                let first = vec![Some(0); view.base_dims().len()];
                let first: Vec<String> =
                    name_of(k, &view, (*d, *rows), &first).iter().map(|_| "0".to_owned()).collect();
                asked[*d] = format!("{named}[{}]", first.join(","));
                let text = format!(
                    "gathered: wherever `{named}` names {}, which memory says at run time; `element:{}[{}]` is the element that the first index names",
                    coords[*d],
                    k.values[v].name,
                    asked.join(",")
                );
                self.push("copy", print_head(k, s), text, k.stmt_spans[s]);
                found = true;
                continue;
            }
            let to_tile = resolve_view(k, dst).is_some_and(|to| k.tile_ty(to.base).is_some());
            let Some(shape) = copy_shape(k, src, dst).filter(|_| to_tile) else { continue };
            let Some((numbers, inside)) = place_in(k, &view, &shape, coords) else { continue };
            found = true;
            self.loaded(s, dst, &numbers, &inside);
        }
        found | self.onward(k, v, coords)
    }

    /// What a copy of the program as it is written brings to `dst`, at these coordinates of the tile.
    fn loaded(&mut self, s: Stmt, dst: Expr, numbers: &Numbers, inside: &[u64]) {
        let k = self.written;
        let StmtData::Copy { src, .. } = k.stmts[s] else { return };
        let when = when(k, numbers) + &repeated(k, src, numbers);
        let span = k.stmt_spans[s];
        let Some(to) = resolve_view(k, dst) else { return };
        let name = k.values[to.base].name.clone();
        let copy = self.copy_at(span, false);
        let how = copy.map_or("moved".to_owned(), |(_, attrs)| by(attrs));
        let who = copy.filter(|(_, a)| a.is_by_threads()).zip(copy_shape(k, dst, dst));
        let thread = who.and_then(|((s, a), shape)| Some((s, holder(a.threads.as_ref()?, &shape, inside)?.0)));
        let who =
            thread.map_or(String::new(), |(s, t)| format!(", by {}", ThreadGroup::of_stmt(self.last, s).thread(t)));
        let sectors = self.sectors(s, false);
        let copied = self.push("copy", print_head(k, s), format!("{when}: {how}{who}{sectors}"), span);
        let Some(coords) = in_base(k, &to, inside, numbers) else { return };
        let before = std::mem::replace(&mut self.numbers, numbers.clone());
        let came = self.came.replace(s);
        self.from(copied, false, |way| way.tile(&name, &coords));
        (self.numbers, self.came) = (before, came);
    }

    /// An element of what a `let` names: of a window, that element of its tensor or tile; of what is computed, what that is made of and where it goes.
    fn of_name(&mut self, v: Value, coords: &[u64]) -> Result<(), String> {
        let k = self.written;
        let Some(init) = k.let_init(v) else { return Ok(()) };
        let (name, span) = (k.values[v].name.as_str(), k.values[v].span);
        if let Some(shape) = fixed_shape(k, init) {
            is_inside(name, &shape, coords)?;
        }
        let what = element(name, coords);
        let text = print_expr(k, init);
        let Some(view) = resolve_view(k, init) else {
            let here = self.push("computed", what, format!("an element of `{text}`"), span);
            let spot: Coords = coords.iter().copied().map(Some).collect();
            self.from(here, true, |way| way.made_of(init, &spot, Numbers::new()));
            self.from(here, false, |way| {
                way.onward(k, v, coords);
            });
            return Ok(());
        };
        let mut numbers = Numbers::new();
        let mut all = Vec::new();
        view.dims.iter().flat_map(ViewDim::starts).for_each(|&e| variables(k, e, &mut all));
        numbers.extend(all.iter().map(|&(v, start, _)| (v, start)));
        let Some(own) = in_base(k, &view, coords, &numbers) else {
            self.push(
                "window",
                what,
                format!("an element of the window `{text}`, whose place the launch alone knows"),
                span,
            );
            return Ok(());
        };
        let base = element(&k.values[view.base].name, &own);
        let first = if numbers.is_empty() { String::new() } else { ", the first of its places".to_owned() };
        let here =
            self.push("window", what, format!("{}{first}: {base}, of the window `{text}`", when(k, &numbers)), span);
        self.from(here, false, |way| match k.tensor_ty(view.base) {
            Some(_) => way.of_tensor(view.base, &own),
            None => way.tile(&k.values[view.base].name, &own),
        });
        Ok(())
    }

    fn of_tile(&mut self, name: &str, coords: &[u64]) -> Result<(), String> {
        let shape = self.called(name).and_then(|v| self.last.const_shape(shape_of(self.last, v)));
        shape.map_or(Ok(()), |shape| is_inside(name, &shape, coords))?;
        self.tile(name, coords);
        if self.path.steps.is_empty() {
            return Err(format!("`{name}` is no tile of the program after the last pass"));
        }
        Ok(())
    }

    /// An element of a tile after the last pass, and what reads it.
    fn tile(&mut self, name: &str, coords: &[u64]) {
        let k = self.last;
        let Some(v) = self.called(name) else { return };
        let Some(shape) = k.const_shape(shape_of(k, v)) else { return };
        let Some((at, text)) = self.lies(name, coords) else { return };
        let key = (name.to_owned(), coords.to_vec(), self.came);
        if self.seen.contains(&key) {
            return;
        }
        self.seen.push(key);
        let line = self.line(k.values[v].span);
        let here = self.add(Step { at, what: element(name, coords), text, line });
        self.from(here, false, |way| {
            way.readers(v, &shape, coords);
            way.reductions(v, coords);
            let written = way.written.values.keys().find(|&v| way.written.values[v].name == name);
            match written {
                Some(v) => way.onward(way.written, v, coords),
                None => way.onward(way.last, v, coords),
            };
        });
    }
}

fn is_inside(name: &str, shape: &[u64], coords: &[u64]) -> Result<(), String> {
    match shape.iter().zip(coords).any(|(n, c)| c >= n) {
        true => Err(format!("`{name}` is a tile of {shape:?} elements, and has none at {}", at(coords))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{CompileOptions, compile};
    use tilec_ir::target::Target;

    const GEMM: &str = include_str!("../../../examples/gemm.tile");

    fn called(name: &str, coords: &[u64]) -> Element {
        Element { kernel: None, name: name.to_owned(), coords: coords.iter().map(|&n| Coord::Number(n)).collect() }
    }

    fn steps(target: Target, name: &str, coords: &[u64]) -> Vec<Step> {
        let options = CompileOptions { target, ..CompileOptions::default() };
        let program = compile(GEMM, &options).expect("compiles");
        path(&program, &called(name, coords)).expect("a way").steps
    }

    /// Against the layouts by hand: row 3 of 128 bytes, whose 16-byte pieces are exchanged by the row: element 5 is in piece 0, which is at 3.
    #[test]
    fn an_element_is_followed_to_the_product() {
        let way = steps(Target::Sm90a, "A", &[131, 69]);
        let kinds: Vec<&str> = way.iter().map(|s| s.at).collect();
        assert_eq!(
            kinds,
            ["global memory", "copy", "shared memory", "product", "registers", "result", "result"],
            "{way:?}"
        );
        assert!(way[1].text.contains("bm = 1, k = 64") && way[1].text.contains("TMA"), "{way:?}");
        assert_eq!(way[2].what, "a[3, 5]");
        assert!(way[2].text.starts_with(&format!("byte {}", 3 * 128 + 3 * 16 + 10)), "{way:?}");
        assert!(way[2].text.contains("bank 14"), "{way:?}");
        assert!(way[5].what.starts_with("C[131, bn * "), "{way:?}");
    }

    #[test]
    fn fragments_are_on_the_way_where_threads_load_them() {
        let way = steps(Target::Sm80, "B", &[17, 9]);
        let fragments = way.iter().filter(|s| s.at == "registers" && s.what.starts_with("b_frag")).count();
        assert!(fragments >= 1 && way.iter().any(|s| s.text.contains("cp.async")), "{way:?}");
    }

    /// A result leads back through the epilogue to the product, and to the row and the column that it is made of.
    #[test]
    fn a_result_is_followed_back() {
        for target in [Target::Sm80, Target::Sm90a] {
            let way = steps(target, "C", &[3, 5]);
            let has = |at: &str, what: &str| way.iter().any(|s| s.at == at && s.what == what);
            let stores = way.iter().filter(|s| s.at == "result" && s.text.starts_with("at bm = 0, bn = 0: "));
            assert_eq!(stores.count(), 2, "{way:?}");
            assert!(has("registers", "acc[3, 5]") && has("product", "mma(a, b, acc)"), "{way:?}");
            assert!(way.iter().any(|s| s.text == "row 3 of `a` with column 5 of `b`"), "{way:?}");
            assert!(has("shared memory", "a[3, ..]") && has("shared memory", "b[.., 5]"), "{way:?}");
            assert!(has("global memory", "A[3, k..]") && has("global memory", "B[k.., 5]"), "{way:?}");
            // `beta * C`.
            assert_eq!(way.iter().filter(|s| s.what == "C[3, 5]" && s.at == "global memory").count(), 2, "{way:?}");
        }
    }

    /// Through shared memory, and through what is computed in registers, to the element that is stored; where a sum begins, the way ends.
    #[test]
    fn ways_end_where_the_element_is_stored() {
        let of = |source: &str, target, name: &str, coords: &[u64]| {
            let options = CompileOptions { target, ..CompileOptions::default() };
            path(&compile(source, &options).expect("compiles"), &called(name, coords)).expect("a way")
        };
        let kinds = |path: &Path| path.steps.iter().map(|s| s.at).collect::<Vec<_>>();
        let way = of(include_str!("../../../examples/transpose.tile"), Target::Sm80, "A", &[67, 5]);
        assert_eq!(kinds(&way), ["global memory", "copy", "shared memory", "result"], "{way:?}");
        assert_eq!(way.steps[3].what, "B[5, 67]", "{way:?}");
        assert!(way.links.iter().flatten().all(|link| !link.back), "{way:?}");
        let way = of(include_str!("../../../examples/transpose.tile"), Target::Sm80, "B", &[5, 67]);
        assert_eq!(way.steps.last().map(|s| &*s.what), Some("A[67, 5]"), "{way:?}");
        assert!(way.links.iter().flatten().all(|link| link.back), "{way:?}");
        // Of two loops that read it, the second one stores what is made of it.
        let way = of(include_str!("../../../examples/softmax.tile"), Target::Sm80, "X", &[3, 5]);
        let end = way.steps.iter().position(|s| s.at == "result" && s.what == "Y[3, 5]").expect("stored");
        let from = way.links[end].expect("a tile").step;
        assert_eq!(way.steps[from].what, "x[3, 5]", "{way:?}");
        assert!(way.steps[way.links[from].expect("a copy").step].text.contains("j_1 = 0"), "{way:?}");
        assert!(way.steps.iter().any(|s| s.text.contains("l[3, 0] is made of")), "{way:?}");
        // From a product through numbers of its sums into the next one, and to the result.
        let way = of(include_str!("../../../examples/attention.tile"), Target::Sm90a, "K", &[0, 0, 3, 5]);
        assert_eq!(way.steps.iter().filter(|s| s.at == "product").count(), 2, "{way:?}");
        assert!(way.steps.iter().any(|s| s.at == "result" && s.what.starts_with("O[0, 0, ")), "{way:?}");
    }

    /// Rows that memory names: forwards it says so, backwards the tile that names them is followed.
    #[test]
    fn gathers_and_loops_that_stop_are_said() {
        let source = "kernel k(A: gmem f32[M, N] multiple 4, P: gmem i32[M], C: gmem f32[M, N] multiple 4) grid (i: ceildiv(M, 64)) {\n\
                      var rows = reg i32[64]\nvar x = reg f32[64, 64]\nvar s = reg f32[64, 64] = 0.0\n\
                      copy P[i * 64..] -> rows\n\
                      for j in 0..N step 64 while i < 4 {\ncopy A[rows, j..] -> x\ns = s + x\ncopy C[i * 64.., j..] -> x\ns = s + x\n}\n\
                      copy s -> C[i * 64.., 0..]\n}\n";
        let program = compile(source, &CompileOptions::default()).expect("compiles");
        let way = path(&program, &called("A", &[3, 5])).expect("a way").steps;
        assert!(way.iter().any(|s| s.text.starts_with("gathered: wherever `rows` names 3")), "{way:?}");
        let way = path(&program, &called("C", &[3, 69])).expect("a way").steps;
        assert!(way.iter().any(|s| s.text.contains("j = 64 (if its `while` lets the loop come so far)")), "{way:?}");
        let way = path(&program, &called("C", &[3, 5])).expect("a way").steps;
        assert!(way.iter().any(|s| s.what.starts_with("A[rows[3], ")), "{way:?}");
        assert!(way.iter().any(|s| s.what == "rows[3]") && way.iter().any(|s| s.what == "P[3]"), "{way:?}");
    }

    /// Transposed copies, copies of a window into a part of a tile, scattered rows, rows that are counted, names, and dimensions of one element.
    #[test]
    fn copies_of_every_kind_are_followed() {
        let source = "kernel k(A: gmem f32[N] multiple 8, P: gmem i32[M] multiple 8, X: gmem f32[M, N] multiple 8, B: gmem f32[M, N] multiple 8, R: gmem f32[M], C: gmem f32[M, N]) grid (i: ceildiv(M, 64)) {\n\
                      var v = reg f32[64]\ncopy A[0..] -> v\nvar rows = reg i32[64]\ncopy P[i * 64..] -> rows\n\
                      var x = reg f32[64, 64]\ncopy X[i * 64.., 0..] -> x\nlet y = x * 2.0 + v\ncopy y -> B[rows, 0..]\n\
                      let s = smem f32[64, 64]\ncopy x -> s\nvar u = reg f32[64, 64]\ncopy transpose(s) -> u\ncopy u -> B[i * 64.., 64..]\n\
                      copy sum(x, 1) -> R[i * 64.., _]\nlet c = C[i * 64.., 0..]\ncopy y -> c\n\
                      var z = reg f32[64, 64]\ncopy X[i * 128.. step 2, 128..] -> z\ncopy z -> C[i * 64.., 64..]\n}\n";
        let program =
            compile(source, &CompileOptions { target: Target::Sm80, ..CompileOptions::default() }).expect("compiles");
        let way = |name: &str, coords: &[u64]| path(&program, &called(name, coords)).expect("a way").steps;
        let has = |way: &[Step], at: &str, what: &str| way.iter().any(|s| s.at == at && s.what == what);
        let transposed = way("X", &[3, 5]);
        assert!(has(&transposed, "registers", "u[5, 3]") && has(&transposed, "result", "B[5, 67]"), "{transposed:?}");
        assert!(has(&transposed, "result", "B[rows[3], 5]"), "{transposed:?}");
        let scattered = way("B", &[3, 5]);
        assert!(
            scattered.iter().any(|s| s.at == "result" && s.text.contains("scattered: wherever `rows` names 3")),
            "{scattered:?}"
        );
        assert!(
            has(&scattered, "global memory", "X[i * 64.., 5]") && has(&scattered, "global memory", "P[i * 64..]"),
            "{scattered:?}"
        );
        let widened = way("v", &[40]);
        assert!(has(&widened, "registers", "v_widened[0, 40]"), "{widened:?}");
        assert!(widened.iter().any(|s| s.at == "result" && s.what.starts_with("C[")), "{widened:?}");
        // `R` is of one dimension as it is declared.
        assert_eq!(way("R", &[3]), way("R", &[3, 0]));
        assert!(way("R", &[3]).iter().any(|s| s.at == "result"));
        let named = way("y", &[3, 5]);
        assert!(has(&named, "computed", "y[3, 5]") && has(&named, "registers", "x[3, 5]"), "{named:?}");
        assert!(has(&named, "result", "B[rows[3], 5]") && has(&named, "registers", "v_widened[0, 5]"), "{named:?}");
        let window = way("c", &[3, 5]);
        assert!(
            window[0].at == "window" && window[0].text.contains("C[3, 5]") && has(&window, "registers", "x[3, 5]"),
            "{window:?}"
        );
        let counted = way("X", &[134, 130]);
        assert!(has(&counted, "registers", "z[3, 2]") && has(&counted, "result", "C[67, 66]"), "{counted:?}");
        assert!(!way("X", &[135, 130]).iter().any(|s| s.what.starts_with("z[")));
        assert!(path(&program, &called("y", &[64, 0])).is_err_and(|e| e.contains("has none at [64, 0]")));
    }

    #[test]
    fn what_is_not_there_is_said() {
        let program = compile(GEMM, &CompileOptions::default()).expect("compiles");
        assert!(path(&program, &called("nothing", &[0])).is_err_and(|e| e.contains("`A`")));
        assert!(path(&program, &called("A", &[0])).is_err_and(|e| e.contains("2 dimensions")));
        assert!(path(&program, &called("acc", &[1 << 20, 0])).is_err());
    }
}
