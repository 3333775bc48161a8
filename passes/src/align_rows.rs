//! `align-rows`: adds kernels that copy operands which TMA or wgmma cannot read, and makes the product a sequence.
//!
//! ```text
//! kernel gemm_align_B(B: gmem f16[K, N], B_rows: gmem f16[K, ceildiv(N, 8) * 8] multiple 8) .. { copy B[..] -> t  copy t -> B_rows[..] }
//! kernel gemm_aligned(A: .., B_rows: .., C: ..) ..
//! sequence gemm { gemm_align_B, gemm_aligned }
//! ```
//!
//! TMA loads only tensors whose rows are multiples of 16 bytes. wgmma reads operands of other than 16 bits only if they are contiguous along the reduction. For these the copy has the other order
//! (`gemm_reorder_B`, `B_reordered`): a block transposes tiles in shared memory, so that it reads and writes along rows. One tf32 operand of a product may come from registers in any order
//! (`select-mma`), so it is not copied because of its order alone.
//!
//! A copy reads and writes an operand once. The product reads each element once for every tile of the output in its row or column. So the copy does not pay for small products and for few rows. The
//! model of `choose` predicts both programs and decides. `align_rows 0|1` in the schedule overrides it.
//!
//! A kernel that no sequence launches becomes a sequence with its name. If sequences of the file launch it, it keeps its name, and they launch the copies in front of it. The results of the copies are
//! temporaries of the sequence, zero beyond the operand's extents.
//!
//! Needs: a verified file; products not yet lowered to an instruction. Leaves: the values of the command line as defaults; no operand whose copy would gain time, and `align_rows 0` in kernels without
//! copies. Switched off: nothing is copied.

mod copy;
mod operands;
mod rewrite;

use crate::choose::{self, Prediction, Predictor, sketch};
use crate::select_mma::wgmma;
use crate::specialize::given;
use crate::{Cx, Options};
use operands::{Operand, unreadable};
use std::collections::BTreeSet;
use tilec_ir::atoms::Atom;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Sink, Span};
use tilec_ir::entities::Expr;
use tilec_ir::index::{self, OfKernel};
use tilec_ir::kernel::{ConstValue, ExprData, Kernel, Module, Sequence, ValueDef};
use tilec_ir::types::ElemRef;

pub(crate) const NAME: &str = "align-rows";

/// The most that the copies and the product of them may take, relative to the product without copies: copies need
/// memory, and predictions are not measurements.
const GAIN: f64 = 0.9;

/// Values of sizes that the decision is made for.
type Sizes = Vec<(String, i64)>;

pub(crate) fn run(module: &mut Module, sizes: &[Sizes], cx: &mut Cx<'_>) -> Result<(), Reported> {
    let mut done = Ok(());
    for index in 0..module.kernels.len() {
        bind_given(&mut module.kernels[index], cx);
    }
    if !cx.enabled || !cx.options.target.has_tensor_copies() {
        return refuse_scheduled(module, cx);
    }
    let mut index = 0;
    while index < module.kernels.len() {
        match align(module, index, sizes, cx) {
            Ok(copies) => index += copies + 1,
            Err(reported) => {
                done = Err(reported);
                index += 1;
            }
        }
    }
    done
}

/// Makes the values of the command line defaults, so that the text says for which values the decision was made.
fn bind_given(k: &mut Kernel, cx: &Cx<'_>) {
    for p in k.const_params.clone() {
        if let (Some(value), ValueDef::ConstParam(param)) = (given(k, cx, p), &k.values[p].def) {
            let mut param = param.clone();
            param.default = Some(value);
            k.values[p].def = ValueDef::ConstParam(param);
        }
    }
}

/// Refuses `align_rows 1` on targets without TMA and wgmma, where aligned rows gain nothing.
fn refuse_scheduled(module: &Module, cx: &mut Cx<'_>) -> Result<(), Reported> {
    let mut result = Ok(());
    if cx.options.target.has_tensor_copies() {
        return result;
    }
    for k in &module.kernels {
        if scheduled(k) == Some(true) {
            let why = format!("{} has no TMA copies, which alone need them", cx.options.target.name());
            result = Err(cannot(k, &why, cx));
        }
    }
    result
}

fn cannot(k: &Kernel, why: &str, cx: &mut Cx<'_>) -> Reported {
    let span = k.schedule.align_rows.map_or(k.name_span, |e| k.expr_spans[e]);
    let d = Diagnostic::error(codes::BAD_SCHEDULE, span, format!("rows cannot be aligned: {why}"));
    let d = d.with_note("leave `align_rows` out, or write `align_rows 0`");
    cx.report(d.with_left_out(k.schedule_item("align_rows")))
}

/// `align_rows` in the schedule.
fn scheduled(k: &Kernel) -> Option<bool> {
    let e = k.schedule.align_rows?;
    extent(k, e, &Sizes::new()).map(|n| n == 1)
}

/// A kernel and the copies in front of it.
struct Aligned {
    copies: Vec<Kernel>,
    main: Kernel,
}

/// Decides about a kernel; returns the number of copy kernels that were added in front of it.
fn align(module: &mut Module, index: usize, sizes: &[Sizes], cx: &mut Cx<'_>) -> Result<usize, Reported> {
    let k = &module.kernels[index];
    let wish = scheduled(k);
    if wish == Some(false) {
        return Ok(0);
    }
    // Operands that `select-mma` can read from registers are copied only if the schedule demands it.
    let Some(operands) = unreadable(k, cx.options, wish.is_none()) else { return Ok(0) };
    if operands.is_empty() {
        return Ok(0);
    }
    let span = k.name_span;
    let names = listed(k, operands.iter());
    let rows = rows(k, &operands);
    let aligned = match rewritten(module, index, &operands) {
        Ok(aligned) => aligned,
        Err(why) if wish == Some(true) => return Err(cannot(&module.kernels[index], &why, cx)),
        Err(why) => {
            cx.remark(span, format!("{names} {} not copied to {rows}: {why}", are(operands.len())));
            return Ok(0);
        }
    };
    let of_warpgroups = |k: &Kernel| sketch(k, cx.options).ok().and_then(|s| wgmma::of_kernel(&s, cx.options));
    // `select-mma` reports any other reason why products cannot use wgmma.
    if wish.is_none() && of_warpgroups(&aligned.main).is_none() {
        if !wgmma::only_accumulated(k) {
            let why = "a product is in a branch, or in a loop that does more than accumulate it: the gain of a copy is not predicted there";
            let message = format!("{names} {} not copied to {rows}: {why}", are(operands.len()));
            cx.remark_note(span, message, "`schedule { align_rows 1 }` copies anyway".to_owned());
        }
        return Ok(0);
    }
    let cost = cost(k, &aligned, sizes, cx.options);
    let (pays, said) = match (&cost, wish) {
        (_, Some(true)) => (true, "as the schedule says".to_owned()),
        (Err(why), _) => (false, why.clone()),
        (Ok(cost), _) => (cost.with() < GAIN * cost.without, cost.to_string()),
    };
    let bytes = cost.as_ref().map_or_else(|_| String::new(), |c| format!(", {} MB", megabytes(c.bytes)));
    let why = &operands[0].why;
    if !pays {
        let message = format!("{names} {} not copied to {rows}: {said}", are(operands.len()));
        cx.remark_note(span, message, format!("{why}; `schedule {{ align_rows 1 }}` copies anyway"));
        let k = &mut module.kernels[index];
        let zero = k.int(0, k.schedule.span);
        k.schedule.align_rows = Some(zero);
        return Ok(0);
    }
    let message = format!("{names} {} copied to {rows}{bytes}: {said}", are(operands.len()));
    let note = format!("{why}; `schedule {{ align_rows 0 }}` leaves the copies out");
    cx.remark_note(span, message, note);
    Ok(put(module, index, aligned))
}

fn are(n: usize) -> &'static str {
    if n == 1 { "is" } else { "are" }
}

fn listed<'a>(k: &Kernel, operands: impl Iterator<Item = &'a Operand>) -> String {
    let names: Vec<String> = operands.map(|o| format!("`{}`", k.values[o.tensor].name)).collect();
    names.join(" and ")
}

/// Describes the copies for a remark.
fn rows(k: &Kernel, operands: &[Operand]) -> String {
    let reordered: Vec<&Operand> = operands.iter().filter(|o| o.reordered()).collect();
    let along = match reordered.len() {
        0 => String::new(),
        n if n == operands.len() => " along the reduction".to_owned(),
        _ => format!(" ({} along the reduction)", listed(k, reordered.into_iter())),
    };
    format!("rows of multiples of 16 bytes{along}")
}

fn megabytes(bytes: f64) -> String {
    if bytes < 1e7 { format!("{:.1}", bytes / 1e6) } else { format!("{:.0}", bytes / 1e6) }
}

/// The kernel, reading copies of its operands.
fn rewritten(module: &Module, index: usize, operands: &[Operand]) -> Result<Aligned, String> {
    let mut taken: BTreeSet<String> = module.kernels.iter().map(|k| k.name.clone()).collect();
    taken.extend(module.sequences.iter().map(|s| s.name.clone()));
    // Tensors of one name in a sequence are one tensor, so names must be new.
    let others = module.kernels.iter().flat_map(|k| k.values.values().map(|v| v.name.clone()));
    let mut values: BTreeSet<String> = others.collect();
    let mut main = module.kernels[index].clone();
    let mut copies = Vec::new();
    for operand in operands {
        if let Some(why) = &operand.refused {
            return Err(why.clone());
        }
        let tensor = &main.values[operand.tensor].name;
        let (what, done) = if operand.reordered() { ("reorder", "reordered") } else { ("align", "rows") };
        let rows = fresh(&format!("{tensor}_{done}"), &mut values);
        let name = fresh(&format!("{}_{what}_{tensor}", main.name), &mut taken);
        copies.push(copy::kernel(&main, name, &rows, operand).ok_or("its type cannot be written again")?);
        rewrite::read_copy(&mut main, &rows, operand)?;
    }
    let one = main.schedule.align_rows.take();
    debug_assert!(one.is_none_or(|_| scheduled(&module.kernels[index]) == Some(true)));
    Ok(Aligned { copies, main })
}

/// Longest name of an entry.
const LONGEST: usize = 64;

/// A name that is not taken; it is taken afterwards.
fn fresh(base: &str, taken: &mut BTreeSet<String>) -> String {
    let number = |i: u32| {
        let suffix = if i == 0 { String::new() } else { format!("_{i}") };
        format!("{}{suffix}", &base[..base.len().min(LONGEST - suffix.len())])
    };
    let name = (0..).map(number).find(|name| !taken.contains(name)).expect("there are numbers enough");
    taken.insert(name.clone());
    name
}

/// Inserts the copy kernels in front of the kernel, and all of them into sequences.
fn put(module: &mut Module, index: usize, aligned: Aligned) -> usize {
    let Aligned { copies, mut main } = aligned;
    let launches: Vec<String> = copies.iter().map(|k| k.name.clone()).collect();
    let span = main.name_span;
    let alone = module.sequences.iter().all(|s| s.launches.iter().all(|(name, _)| *name != main.name));
    if alone {
        let mut taken: BTreeSet<String> =
            module.kernels.iter().map(|k| k.name.clone()).chain(launches.clone()).collect();
        taken.extend(module.sequences.iter().map(|s| s.name.clone()));
        let name = std::mem::take(&mut main.name);
        main.name = fresh(&format!("{name}_aligned"), &mut taken);
        let launches = launches.into_iter().chain([main.name.clone()]).map(|name| (name, span)).collect();
        module.sequences.push(Sequence { name, name_span: span, launches });
    } else {
        for sequence in &mut module.sequences {
            let whole = |(name, span): (String, Span)| {
                let copies = if name == main.name { launches.clone() } else { Vec::new() };
                copies.into_iter().chain([name]).map(move |name| (name, span))
            };
            sequence.launches = std::mem::take(&mut sequence.launches).into_iter().flat_map(whole).collect();
        }
    }
    let count = copies.len();
    module.kernels.splice(index..=index, copies.into_iter().chain([main]));
    count
}

/// Predicted times of both programs, summed over all sizes.
struct Cost {
    /// Without copies; infinite if given parameters are legal for wgmma products only.
    without: f64,
    copies: f64,
    products: f64,
    /// Bytes that the copies move for the last sizes.
    bytes: f64,
    of: Prediction,
}

impl Cost {
    fn with(&self) -> f64 {
        self.copies + self.products
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let us = |seconds: f64| format!("{:.1} us", seconds * 1e6);
        let without = if self.without.is_finite() {
            format!("{} without copies", us(self.without))
        } else {
            "without copies nothing is legal".to_owned()
        };
        let sizes: Vec<String> = self.of.sizes.iter().map(|(name, x)| format!("{name}={x}")).collect();
        let guess = if self.of.sizes_given { "" } else { " (no size was given)" };
        write!(
            f,
            "predicted on {} with {}{guess}: {} for copies and {} for products, {without}",
            self.of.card,
            sizes.join(" "),
            us(self.copies),
            us(self.products)
        )
    }
}

/// Predicts both programs.
fn cost(k: &Kernel, aligned: &Aligned, sizes: &[Sizes], options: &Options) -> Result<Cost, String> {
    let mut cost: Option<Cost> = None;
    let none = [Sizes::new()];
    for sizes in if sizes.is_empty() { &none[..] } else { sizes } {
        let unclear = || "nothing can be predicted".to_owned();
        let without = predict(k, sizes, options).map_or(f64::INFINITY, |p| p.seconds);
        let products = predict(&aligned.main, sizes, options).ok_or_else(unclear)?;
        let asynchronous = |name: &str| Atom::from_name(name).is_some_and(|a| a.row().asynchronous());
        if !products.atom.is_some_and(asynchronous) {
            return Err("no tile of wgmma products is legal".to_owned());
        }
        let (mut copies, mut bytes) = (0.0, 0.0);
        for copy in &aligned.copies {
            let own = predict(copy, sizes, options).ok_or_else(unclear)?;
            copies += own.seconds;
            bytes += moved(copy, &own.sizes).ok_or_else(unclear)?;
        }
        let before = cost.take();
        let sum = |of: fn(&Cost) -> f64| before.as_ref().map_or(0.0, of);
        cost = Some(Cost {
            without: sum(|c| c.without) + without,
            copies: sum(|c| c.copies) + copies,
            products: sum(|c| c.products) + products.seconds,
            bytes,
            of: products,
        });
    }
    cost.ok_or_else(|| "nothing can be predicted".to_owned())
}

/// The prediction for a kernel with the parameters that the model would choose.
fn predict(k: &Kernel, sizes: &Sizes, options: &Options) -> Option<Prediction> {
    let mut options = options.clone();
    options.defines.clear();
    options.sizes.clone_from(sizes);
    options.sizes.retain(|(name, _)| k.sizes.iter().any(|&v| k.values[v].name == *name));
    let mut k = k.clone();
    let choice = choose::apply(&mut k, &options, &mut Sink::new()).ok()?;
    match choice {
        Some(choice) => Some(choice.prediction),
        None => Predictor::new(&choose::modelled(&k, &options), &options)?.predict(),
    }
}

/// Bytes that a copy writes.
fn moved(copy: &Kernel, sizes: &Sizes) -> Option<f64> {
    let &rows = copy.params.last()?;
    let ty = copy.tensor_ty(rows)?;
    let elem = match ty.elem {
        ElemRef::Known(elem) => elem,
        ElemRef::Param(p) => match choose::value(copy, p)? {
            ConstValue::Elem(elem) => elem,
            _ => panic!("bug: an element type of `{}` that is none", copy.name),
        },
    };
    let extents: Option<Vec<i64>> = ty.shape.iter().map(|&e| extent(copy, e, sizes)).collect();
    Some(elem.size().traffic(extents?.into_iter().map(|x| x as f64).product()))
}

fn extent(k: &Kernel, e: Expr, sizes: &Sizes) -> Option<i64> {
    let value = |e: Expr| match &k.exprs[e] {
        ExprData::Ref(v) => match choose::value(k, *v) {
            Some(ConstValue::Int(x)) => Some(x),
            _ => sizes.iter().find(|(name, _)| *name == k.values[*v].name).map(|(_, x)| *x),
        },
        _ => None,
    };
    index::int(&OfKernel::new(k, value), e)
}
