//! The interpreter on a problem: memory from a run line, execution, comparison.

use crate::inference;
use crate::number::Format;
use crate::problem::{self, Random, Run, Tensor};
use crate::reference::Reference;
use crate::simulated::Executable;
use std::collections::{BTreeMap, BTreeSet};
use tilec::compile::Optimized;
use tilec::{CompileOptions, Keep};
use tilec_ir::diag::{Diagnostic, Sink, Span};
use tilec_ir::entities::Expr;
use tilec_ir::interp;
use tilec_ir::kernel::{ConstValue, Kernel, Module, Sequence, StmtData, ValueDef};
use tilec_ir::types::{DimStride, Elem, ElemRef, GivenStride, Order, OrderRef, Strides};
use tilec_ir::typing::resolve_view;

/// Values of a kernel's compile-time parameters.
pub(crate) type Consts = BTreeMap<String, ConstValue>;

/// Memory, scalars and types of one run of a kernel.
pub struct Problem {
    /// The run line it came from.
    pub run: Run,
    /// The tensors in parameter order, filled.
    pub tensors: Vec<Tensor>,
    elems: Vec<Elem>,
}

/// Whether a kernel copies to the tensor called `name`.
fn stores_to(kernel: &Kernel, name: &str) -> bool {
    kernel.statement_data().any(|s| match s {
        StmtData::Copy { dst, .. } => resolve_view(kernel, *dst).is_some_and(|v| kernel.values[v.base].name == name),
        _ => false,
    })
}

impl Problem {
    /// The memory of `kernel`, specialised, for `run`: every tensor holds integers, except that the last one that is stored to is
    /// poison where `poison` says so.
    ///
    /// # Errors
    /// The run lacks a size or stride.
    pub fn new(kernel: &Kernel, run: &Run, poison: bool) -> Result<Problem, String> {
        Problem::of(std::slice::from_ref(kernel), run, poison)
    }

    /// The memory of kernels that are launched one after the other: tensors of one name are one.
    ///
    /// # Errors
    /// As those of [`Problem::new`].
    pub fn of(kernels: &[Kernel], run: &Run, poison: bool) -> Result<Problem, String> {
        let mut random = Random(run.seed);
        let (mut tensors, mut elems): (Vec<Tensor>, Vec<Elem>) = (Vec::new(), Vec::new());
        for (kernel, v) in kernels.iter().flat_map(|k| k.params.iter().map(move |&v| (k, v))) {
            let ValueDef::Tensor(ty) = &kernel.values[v].def else { continue };
            let name = &kernel.values[v].name;
            if ty.scratch.is_some() || tensors.iter().any(|t| t.name == *name) {
                continue;
            }
            let integer = |e| -> Result<i64, String> {
                let text = tilec_ir::print::print_expr(kernel, e);
                let value = tilec::expr::integer(&text, &|n| run.integer(n).ok());
                value.map_err(|e| format!("`{text}`: {e}"))
            };
            let list = |exprs: &mut dyn Iterator<Item = Expr>| exprs.map(integer).collect::<Result<Vec<_>, _>>();
            let extents = |d: usize| match ty.modes(d) {
                Some(modes) => modes.iter().map(|m| m.extent).collect(),
                None => vec![ty.shape[d]],
            };
            // Dimensions along which the tensor repeats are no part of it.
            if !ty.padded.is_empty() {
                let dims = tilec_ir::padded::memory(kernel, ty);
                let shape = list(&mut dims.iter().map(|(extent, _)| *extent))?;
                let mut strides = Vec::new();
                for (_, stride) in dims {
                    strides.push(match stride {
                        tilec_ir::padded::MemoryStride::Mode(e) => integer(e)?,
                        tilec_ir::padded::MemoryStride::Lines(v) => run.integer(&kernel.values[v].name)?,
                    });
                }
                let mut tensor = Tensor { modes: vec![1; shape.len()], ..Tensor::new(name, &shape, &strides)? };
                let ElemRef::Known(elem) = ty.elem else { return Err(format!("`{name}` has no element type")) };
                randomize(&mut tensor, elem, &mut random, run.range);
                tensors.push(tensor);
                elems.push(elem);
                continue;
            }
            let own: Vec<usize> = (0..ty.unstrided()).chain(ty.strided()).collect();
            let modes = own.iter().map(|&d| extents(d).len()).collect();
            let shape = list(&mut own.iter().flat_map(|&d| extents(d)))?;
            let front = usize::from(ty.pointers);
            let mut strides = match &ty.strides {
                Strides::Explicit(strides) => list(&mut strides.iter().flat_map(DimStride::strides))?,
                Strides::Ordered(OrderRef::Known(order)) => {
                    let (mut strides, contiguous) = packed(&shape[front..], *order);
                    let outer = (0..strides.len()).filter(|&d| d != contiguous);
                    for (d, &ld) in outer.zip(&ty.ld) {
                        let ld = &kernel.values[ld].name;
                        strides[d] = if run.value(ld).is_some() { run.integer(ld)? } else { strides[d] };
                    }
                    strides
                }
                Strides::Ordered(OrderRef::Param(_)) => return Err(format!("`{name}` has no order")),
            };
            if ty.pointers {
                // Parts with an address each: here one after the other.
                let last: i64 = shape[1..].iter().zip(&strides).map(|(n, s)| (n - 1) * s).sum();
                strides.insert(0, last + 1);
            }
            let mut tensor = Tensor { modes, ..Tensor::new(name, &shape, &strides)? };
            let ElemRef::Known(elem) = ty.elem else { return Err(format!("`{name}` has no element type")) };
            randomize(&mut tensor, elem, &mut random, run.range);
            // A scale has neither a sign nor a zero.
            if elem == Elem::UE8M0 {
                tensor.data.iter_mut().for_each(|x| *x = Format::UE8M0.stored(x.abs().max(1.0)));
            }
            tensors.push(tensor);
            elems.push(elem);
        }
        inference::settle(&mut tensors, &mut random);
        if let Some(last) = tensors.iter_mut().rev().find(|t| poison && kernels.iter().any(|k| stores_to(k, &t.name))) {
            last.poison();
        }
        Ok(Problem { run: run.clone(), tensors, elems })
    }

    /// The tensors after these numbers are stored in them.
    pub(crate) fn stored(&self, mut tensors: Vec<Tensor>) -> Vec<Tensor> {
        for (tensor, elem) in tensors.iter_mut().zip(&self.elems) {
            if let Some(format) = Format::from_name(elem.name()) {
                tensor.data.iter_mut().for_each(|x| *x = format.stored(*x));
            }
        }
        tensors
    }

    /// The memory after interpreting `kernel` on this problem.
    ///
    /// # Errors
    /// The interpreter refuses something.
    pub fn interpret(&self, kernel: &Kernel, consts: &BTreeMap<String, ConstValue>) -> Result<Vec<Tensor>, String> {
        self.interpret_all(std::slice::from_ref(kernel), std::slice::from_ref(consts))
    }

    /// The memory after interpreting `kernels` one after the other.
    ///
    /// # Errors
    /// The interpreter refuses something.
    pub fn interpret_all(&self, kernels: &[Kernel], consts: &[Consts]) -> Result<Vec<Tensor>, String> {
        self.interpret_with(kernels, consts, &interp::Options::default())
    }

    /// The memory after interpreting `kernels` one after the other, with so much work at most.
    ///
    /// # Errors
    /// The interpreter refuses something.
    pub(crate) fn interpret_with(
        &self,
        kernels: &[Kernel],
        consts: &[Consts],
        options: &interp::Options,
    ) -> Result<Vec<Tensor>, String> {
        let mut inputs = interp::Inputs::default();
        for kernel in kernels {
            let name = |v| kernel.values[v].name.clone();
            for &v in &kernel.sizes {
                inputs.sizes.insert(name(v), self.run.integer(&name(v))?);
            }
            for &v in &kernel.strides {
                if self.run.value(&name(v)).is_some() {
                    inputs.strides.insert(name(v), self.run.integer(&name(v))?);
                }
            }
            for &v in &kernel.params {
                let scalar = matches!(kernel.values[v].def, ValueDef::Scalar { .. });
                if let Some(value) = self.run.value(&name(v)).filter(|_| scalar) {
                    inputs.scalars.insert(name(v), value.into());
                }
            }
        }
        for (tensor, &elem) in self.tensors.iter().zip(&self.elems) {
            inputs.tensors.insert(tensor.name.clone(), interp::Tensor { elem, data: tensor.data.clone().into() });
        }
        for (i, kernel) in kernels.iter().enumerate() {
            inputs.consts = consts.get(i).cloned().unwrap_or_default();
            interp::run(kernel, &mut inputs, options).map_err(|d| one_line(&d))?;
        }
        let mut after = self.tensors.clone();
        for tensor in &mut after {
            let result = inputs.tensors.remove(&tensor.name);
            let result = result.ok_or_else(|| format!("the interpreter lost `{}`", tensor.name))?;
            tensor.data = result.data.floats().into_owned();
        }
        Ok(after)
    }
}

/// The strides of a dense tensor, and its contiguous dimension: the last, or for matrices by columns the last but one.
fn packed(shape: &[i64], order: Order) -> (Vec<i64>, usize) {
    let mut dims: Vec<usize> = (0..shape.len()).collect();
    if let (Order::Col, Some(other)) = (order, shape.len().checked_sub(2)) {
        dims.swap(other, other + 1);
    }
    let mut strides = vec![1; shape.len()];
    let mut inner = 1;
    for &d in dims.iter().rev() {
        strides[d] = inner;
        inner *= shape[d];
    }
    (strides, dims.last().copied().unwrap_or(0))
}

/// A diagnostic without its drawing.
pub fn one_line(d: &Diagnostic) -> String {
    let notes: String = d.notes.iter().map(|n| format!("; {n}")).collect();
    format!("{}[{}]: {}{notes}", d.severity.name(), d.code, d.message)
}

/// Parses and verifies a text.
///
/// # Errors
/// All its errors.
pub fn parse(text: &str) -> Result<Module, String> {
    let mut sink = Sink::new();
    let module = tilec_ir::parser::parse(text, &mut sink);
    if let Ok(module) = &module {
        for kernel in &module.kernels {
            // The errors are in the sink.
            let _ = tilec_ir::verify::verify(kernel, &mut sink);
        }
    }
    match (module, sink.error_count()) {
        (Ok(module), 0) => Ok(module),
        _ => Err(sink.diagnostics().iter().map(one_line).collect::<Vec<_>>().join("\n")),
    }
}

/// The only kernel of a text.
///
/// # Errors
/// It does not parse, or has another number of kernels.
pub fn parse_one(text: &str) -> Result<Kernel, String> {
    let kernels: Result<[Kernel; 1], _> = parse(text)?.kernels.try_into();
    kernels.map(|[k]| k).map_err(|all| format!("{} kernels, expected one", all.len()))
}

/// The kernels of a text that are launched, in order: those of its only sequence, else its only kernel.
///
/// # Errors
/// It does not parse, or has several kernels and no sequence, or several.
pub fn parse_program(text: &str) -> Result<Vec<Kernel>, String> {
    let module = parse(text)?;
    in_order(&module.sequences, module.kernels, |k| &k.name)
}

/// The launched kernels of a file, in order.
fn in_order<T: Clone>(sequences: &[Sequence], kernels: Vec<T>, name: impl Fn(&T) -> &str) -> Result<Vec<T>, String> {
    match (sequences, kernels.len()) {
        ([], 1) => Ok(kernels),
        ([only], _) => {
            let find = |(wanted, _): &(String, Span)| kernels.iter().find(|k| name(k) == wanted).cloned();
            only.launches.iter().map(find).collect::<Option<_>>().ok_or_else(|| "a kernel is missing".to_owned())
        }
        (sequences, n) => Err(format!("{n} kernels and {} sequences, expected one program", sequences.len())),
    }
}

/// The values of the parameters of a kernel of the source, of which a pass over the file has made several kernels.
fn of_source(kernel: &Kernel, made: &[Consts]) -> Consts {
    let declared = |name: &str| kernel.const_params.iter().any(|&p| kernel.values[p].name == name);
    made.iter().flatten().filter(|(name, _)| declared(name)).map(|(name, value)| (name.clone(), *value)).collect()
}

/// The combinations of a long matrix share the work: of what can be tried with each of them a part is.
#[derive(Clone, Copy)]
pub struct Share {
    turn: usize,
    of: usize,
    /// As `of`, for the forms of a program on runs too large for the simulator.
    of_large: usize,
}

impl Share {
    /// Everything is tried.
    pub const ALL: Share = Share { turn: 0, of: 1, of_large: 1 };

    /// The part of combination `index` of so many: a half or a quarter, so that at least two combinations try everything.
    pub fn of(index: usize, combinations: usize) -> Share {
        // Combinations are in the order of their last parameter: turns are skewed, so that none is always met with the same values.
        let of = match combinations {
            0..4 => 1,
            4..8 => 2,
            _ => 4,
        };
        // A few combinations together do everything on a large run.
        Share { turn: index + index / of, of, of_large: if combinations < 3 { 1 } else { 3 } }
    }

    fn takes(self, i: usize) -> bool {
        (self.turn + i).is_multiple_of(self.of)
    }

    /// Whether form `i` is interpreted on the program's run `index`, which is large.
    fn takes_large(self, i: usize, index: usize) -> bool {
        (self.turn + index + i).is_multiple_of(self.of_large)
    }

    /// Which half of the modes: all of them with few combinations.
    fn modes(self, i: usize) -> Option<usize> {
        (self.of > 1).then_some((self.turn + i) % 2)
    }
}

/// A program in the forms that must agree.
pub struct Variants {
    /// As written, and the values of its compile-time parameters.
    source: (Vec<Kernel>, Vec<Consts>),
    specialized: Vec<Kernel>,
    /// Everything else, with a name each.
    others: Vec<(String, Vec<Kernel>)>,
    /// The compiler's outputs, each with a name.
    compiled: Vec<(String, Executable)>,
    /// As they are after a pass over the whole file: compile-time parameters are still those of `launched`.
    whole_file: Vec<(String, Vec<Kernel>)>,
    /// The values of the parameters of what is launched.
    launched: Vec<Consts>,
    share: Share,
}

/// Whether a tile has an extent that is not a power of two, which wgmma products alone have.
fn has_columns(k: &Kernel) -> bool {
    k.values.values().any(|data| match &data.def {
        ValueDef::Var(t) | ValueDef::Smem(t) | ValueDef::Channel { tile: t, .. } => {
            t.shape.iter().filter_map(|&e| k.as_int(e)).any(|n| n.count_ones() != 1)
        }
        _ => false,
    })
}

/// Whether the only error of a program, with a pass for such products switched off, is about its extents, or that there
/// is no warp tile for them.
fn refuses_columns(errors: &str) -> bool {
    let mut codes = errors.lines().filter(|l| l.starts_with("error[")).peekable();
    codes.peek().is_some() && codes.all(|l| ["error[E0406]", "error[E0431]"].iter().any(|code| l.starts_with(code)))
}

/// Multiply-adds, or elements moved, up to which a run is also simulated.
const SIMULATED: i64 = 400_000;

/// The form that is compiled on; it is tried on every run.
const LAST: &str = "at the end";

impl Variants {
    /// `text` after every pass and at the end of the pipeline, with each pass of the `share`, and with all of them, off too. With
    /// `ptx`, also compiled, to be simulated.
    ///
    /// # Errors
    /// It does not compile in one of these ways, or the text after a pass does not parse.
    pub fn new(name: &str, text: &str, options: &CompileOptions, share: Share, ptx: bool) -> Result<Variants, String> {
        let optimize = |options: &CompileOptions| tilec::optimize(text, options).map_err(|e| e.to_string());
        let launched = |done: Optimized| in_order(&done.sequences, done.kernels, |k| &k.kernel.name);
        let options = CompileOptions { source_name: name.to_owned(), keep: Keep::All, ..options.clone() };
        let full = optimize(&options)?;
        let (mut others, mut whole_file) = (Vec::new(), Vec::new());
        let of_kernels = full.kernels.first().map(|k| &k.texts).into_iter().flatten();
        let passes: Vec<&str> = full.texts.iter().chain(of_kernels).map(|(pass, _)| *pass).collect();
        // A pass that has nothing to do leaves a form that is tried already.
        let mut seen = BTreeSet::new();
        for pass in passes.into_iter().filter(|pass| *pass != tilec::compile::PARSED) {
            let text = full.text_after(pass);
            let kernels = parse_program(&text).map_err(|e| format!("the text after `{pass}`: {e}"))?;
            if !seen.insert(text) {
                continue;
            }
            let whole = full.texts.iter().any(|(p, _)| *p == pass);
            if whole { &mut whole_file } else { &mut others }.push((format!("after `{pass}`"), kernels));
        }
        let mut compiled = Vec::new();
        let mut compile = |label: &str, done: Optimized| -> Result<(), String> {
            if !ptx {
                return Ok(());
            }
            let label = format!("the PTX {label}");
            let done = tilec::lower(done).map_err(|e| format!("{label}: {e}"))?;
            let executable = Executable::new(name, &done).map_err(|e| format!("{label}: {e}"))?;
            compiled.extend(executable.map(|e| (label, e)));
            Ok(())
        };
        compile(LAST, full.clone())?;
        let full = launched(full)?;
        let specialized: Vec<Kernel> = full.iter().map(|k| k.specialized.clone()).collect();
        let columns = specialized.iter().any(has_columns);
        // What is `auto` in the source has the value that was chosen.
        let consts: Vec<Consts> = full.iter().map(|k| k.parameters.iter().cloned().collect()).collect();
        let mut seen = BTreeSet::new();
        let mut last = |label: String, kernels: Vec<Kernel>| {
            if seen.insert(kernels.iter().map(tilec_ir::print::print).collect::<Vec<_>>()) {
                others.push((label, kernels));
            }
        };
        last(LAST.to_owned(), full.into_iter().map(|k| k.kernel).collect());
        let options = CompileOptions { keep: Keep::default(), ..options };
        let kernels = |done: Optimized| -> Result<Vec<Kernel>, String> {
            Ok(launched(done)?.into_iter().map(|k| k.kernel).collect())
        };
        for (_, pass) in crate::options::optional_passes().enumerate().filter(|&(i, _)| share.takes(i)) {
            let mut options = options.clone();
            options.disabled.insert(pass.to_owned());
            match optimize(&options) {
                Err(e) if columns && refuses_columns(&e) => {}
                done => {
                    let done = done.map_err(|e| format!("without `{pass}`: {e}"))?;
                    last(format!("without `{pass}`"), kernels(done)?);
                }
            }
        }
        let mut options = options.clone();
        crate::options::disable_all(&mut options);
        match optimize(&options) {
            Err(e) if columns && refuses_columns(&e) => {}
            done => {
                let done = done.map_err(|e| format!("without any optional pass: {e}"))?;
                compile("without any optional pass", done.clone())?;
                last("without any optional pass".to_owned(), kernels(done)?);
            }
        }
        let launched = consts.clone();
        let source = parse_program(text)?;
        let consts = if source.len() == specialized.len() {
            consts
        } else {
            source.iter().map(|k| of_source(k, &consts)).collect()
        };
        let source = (source, consts);
        Ok(Variants { source, specialized, others, compiled, whole_file, launched, share })
    }

    /// Interprets all of them on `run`, the program's `index`-th, so that two in a row share all modes: each must leave the same memory, and that of the reference if there is one. So must
    /// the compiled program on the simulator, where the run is small.
    ///
    /// # Errors
    /// Who differs, and where.
    pub fn agree(&self, index: usize, run: &Run, reference: Option<Reference>) -> Result<(), String> {
        let mut problem = Problem::of(&self.specialized, run, reference.is_some_and(|r| r.overwrites(run)))?;
        if let Some((_, first)) = self.compiled.first() {
            let last =
                problem.tensors.iter_mut().rev().find(|t| self.specialized.iter().any(|k| stores_to(k, &t.name)));
            last.filter(|t| first.only_writes(&t.name)).into_iter().for_each(Tensor::poison);
        }
        // Temporaries between kernels start unwritten, and are compared nowhere.
        let handed_on = |t: &Tensor| self.compiled.first().is_some_and(|(_, first)| first.hands_on(&t.name));
        problem.tensors.iter_mut().filter(|t| handed_on(t)).for_each(Tensor::poison);
        let problem = problem;
        let (kernels, consts) = &self.source;
        let mut meant = problem.interpret_all(kernels, consts).map_err(|e| format!("the source: {e}"))?;
        // What a pass over the file has kernels pass on: the source does not have it.
        let named = |k: &Kernel, t: &Tensor| k.params.iter().any(|&v| k.values[v].name == t.name);
        let own = |t: &Tensor| kernels.iter().any(|k| named(k, t));
        if problem.tensors.iter().any(|t| !own(t)) {
            let done = problem.interpret_all(&self.specialized, &[]).map_err(|e| format!("specialised: {e}"))?;
            for (tensor, done) in meant.iter_mut().zip(done).filter(|(t, _)| !own(t)) {
                *tensor = done;
            }
        }
        let meant = meant;
        if let Some(reference) = reference {
            let consts = consts.iter().flatten().map(|(name, value)| (name.clone(), *value)).collect();
            let mut expected = problem.stored(reference.apply(&problem.tensors, run, &consts)?);
            for (expected, meant) in expected.iter_mut().zip(&meant).filter(|(t, _)| handed_on(t)) {
                expected.clone_from(meant);
            }
            problem::same_within(run.tolerance, &expected, &meant)
                .map_err(|e| format!("the source, against {reference:?}: {e}"))?;
        }
        let work = |k: &Kernel| -> i64 {
            k.sizes.iter().filter_map(|&v| run.integer(&k.values[v].name).ok()).fold(1, i64::saturating_mul)
        };
        let work = self.specialized.iter().map(work).max().unwrap_or(0);
        let large = work > SIMULATED;
        let mut wrong = Vec::new();
        // Before a pass over the file has put kernels into it, there are those of the source.
        let of_file = |kernels: &[Kernel]| match kernels.len() == self.launched.len() {
            true => self.launched.clone(),
            false => kernels.iter().map(|k| of_source(k, &self.launched)).collect(),
        };
        let whole_file = self.whole_file.iter().map(|form| (form, of_file(&form.1)));
        let forms = whole_file.chain(self.others.iter().map(|form| (form, Vec::new())));
        for (i, ((name, kernels), consts)) in forms.enumerate() {
            if large && name != LAST && !self.share.takes_large(i, index) {
                continue;
            }
            let shared = |all: &[Tensor]| all.iter().filter(|t| own(t)).cloned().collect::<Vec<Tensor>>();
            let done = problem
                .interpret_all(kernels, &consts)
                .and_then(|done| problem::same_within(run.tolerance, &shared(&meant), &shared(&done)));
            wrong.extend(done.err().map(|e| format!("{name}, against the source: {e}")));
        }
        for (i, (name, executable)) in self.compiled.iter().filter(|_| !large).enumerate() {
            let half = self.share.modes(i + index);
            let done = executable.check(run, &problem.tensors, &meant, half);
            wrong.extend(done.err().map(|e| format!("{name}, on the simulator: {e}")));
        }
        // After one wrong pass all later texts are wrong, so the first one is reported.
        let more = wrong.len().saturating_sub(3);
        wrong.truncate(3);
        wrong.extend((more > 0).then(|| format!("and {more} more")));
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }

    /// Whether the kernel has a size, stride or scalar of this name.
    pub fn has(&self, name: &str) -> bool {
        let declares =
            |k: &Kernel| [&k.params, &k.sizes, &k.strides].into_iter().flatten().any(|&v| k.values[v].name == name);
        self.specialized.iter().any(declares)
    }

    /// Whether the preconditions hold on `run`.
    pub fn permits(&self, run: &Run) -> bool {
        self.specialized.iter().all(|kernel| permits(kernel, run))
    }
}

/// Whether the preconditions of a kernel hold on `run`.
fn permits(kernel: &Kernel, run: &Run) -> bool {
    let packed = |name: &str| {
        // A leading stride that is not given: that of the packed matrix.
        let tensors = Problem::new(kernel, run, false).ok()?.tensors;
        // Scratch memory is none of the problem's.
        let kernel_tensors = kernel.params.iter().filter(|&&v| tensors.iter().any(|t| t.name == kernel.values[v].name));
        let kernel_tensors = kernel_tensors.filter_map(|&v| kernel.tensor_ty(v));
        tensors.iter().zip(kernel_tensors).find_map(|(t, ty)| {
            let own: Vec<usize> = (0..ty.unstrided()).chain(ty.strided()).collect();
            let is_it = |d: &usize| match own.get(*d).and_then(|&d| ty.given_stride(d)) {
                Some(GivenStride::Leading(v)) => kernel.values[v].name == name,
                _ => false,
            };
            (0..t.strides.len()).find(is_it).map(|d| t.strides[d])
        })
    };
    let lookup = |name: &str| run.integer(name).ok().or_else(|| packed(name));
    kernel.requires.iter().all(|&e| {
        let text = tilec_ir::print::print_expr(kernel, e);
        tilec::expr::condition(&text, &lookup).unwrap_or(false)
    })
}

/// Fills the elements with whole numbers of at most this magnitude, rounded to what the type holds: the interpreter and
/// the kernel read the same numbers.
fn randomize(tensor: &mut Tensor, elem: Elem, random: &mut Random, range: i64) {
    tensor.randomize(random, range.min(largest(elem)));
    if matches!(elem, Elem::U4 | Elem::U8 | Elem::U16 | Elem::U32 | Elem::U64) {
        tensor.data.iter_mut().for_each(|x| *x = x.abs());
    }
    if let Some(format) = Format::from_name(elem.name()).filter(|_| elem != Elem::UE8M0) {
        tensor.data.iter_mut().for_each(|x| *x = format.stored(*x));
    }
}

/// The largest integer among random elements of a type, exactly representable in it.
fn largest(elem: Elem) -> i64 {
    match elem {
        Elem::I4 => 7,
        Elem::U4 => 15,
        Elem::I8 => 127,
        Elem::U8 => 255,
        Elem::I16 => i64::from(i16::MAX),
        Elem::U16 => i64::from(u16::MAX),
        _ => i64::MAX,
    }
}
