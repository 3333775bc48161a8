//! The numbers of a program of which others are tried: compile-time parameters, alignments, extents of tiles and of warp tiles
//! that the source has as numbers, and the blocks among which a reduction is split.

use super::answer::Known;
use super::by_parameters::{self, Alignment};
use super::programs::Change;
use super::slices::{self, Slices};
use super::warp_tiles::{self, WarpExtent};
use crate::compile::CompiledKernel;
use tilec_ir::diag::Span;
use tilec_ir::kernel::{ConstValue, Kernel, StmtData};
use tilec_ir::typing::resolve_view;
use tilec_passes::choose::{FreeParameter, LiteralExtent, Prediction, Role, free_parameters, literal_extents};
use tilec_passes::required;

/// A number.
pub(super) enum Number {
    /// Of a parameter, with its value.
    Parameter(FreeParameter, i64),
    /// Of alignments, of which larger ones are tried.
    Alignment(Alignment),
    /// Of the source, with the lines that have it.
    Literal(LiteralExtent, Vec<usize>),
    /// Rows or columns of a warp tile that the schedule has as a number.
    WarpTile(WarpExtent),
    /// The blocks among which a reduction is split.
    Slices(Slices),
}

/// Other numbers, by their places in a list.
pub(super) type Values = Vec<(usize, i64)>;

/// The numbers of a kernel.
pub(super) fn of(known: &Known<'_>, kernel: &CompiledKernel) -> Vec<Number> {
    let named = free(known, kernel).into_iter().filter_map(|p| {
        let now = current(kernel, &p.name)?;
        Some(Number::Parameter(p, now))
    });
    let aligned = by_parameters::alignments(kernel).into_iter().map(Number::Alignment);
    let literal = literals(known, kernel).into_iter().map(|own| {
        let mut lines: Vec<usize> =
            own.places.iter().map(|s| known.program.source.position(s.start as usize).line).collect();
        lines.dedup();
        Number::Literal(own, lines)
    });
    let of_warps = warp_tiles::of(known, kernel).into_iter().map(Number::WarpTile);
    let mut all: Vec<Number> = named.chain(aligned).chain(literal).chain(of_warps).collect();
    let split = slices::of(kernel, &made_for_others(known));
    let is_new = |own: &Slices| !all.iter().any(|n| matches!(n, Number::Parameter(p, _) if p.name == own.name));
    let split = split.filter(is_new).map(Number::Slices);
    all.extend(split);
    all
}

/// The parameters whose values are tried.
pub(super) fn free(known: &Known<'_>, kernel: &CompiledKernel) -> Vec<FreeParameter> {
    let shared = made_for_others(known);
    let is_number = |p: &FreeParameter| current(kernel, &p.name).is_some();
    // Of other sizes than the given ones nothing is known.
    let given = kernel.tile.prediction.as_ref().is_some_and(|p| p.sizes_given);
    let takes = |p: &FreeParameter| !p.restricts || given;
    let Some(written) = &kernel.tile.source_kernel else { return Vec::new() };
    let all = free_parameters(&written.kernel, kernel.tile.pass_options(), &shared);
    all.into_iter().filter(|p| is_number(p) && takes(p)).collect()
}

/// The value of a parameter that is a number.
pub(super) fn current(kernel: &CompiledKernel, name: &str) -> Option<i64> {
    kernel.tile.parameters.iter().find_map(|(own, value)| match value {
        ConstValue::Int(x) if own == name => Some(*x),
        _ => None,
    })
}

/// Tensors that the kernels of sequences store for each other.
fn made_for_others(known: &Known<'_>) -> Vec<String> {
    if known.program.sequences.is_empty() {
        return Vec::new();
    }
    let kernels = || known.program.kernels.iter().map(|k| &k.tile.specialized);
    let has = |k: &Kernel, tensor: &str| k.params.iter().any(|&v| k.values[v].name == tensor);
    let is_read = |by: &Kernel, tensor: &str| kernels().any(|k| k.name != by.name && has(k, tensor));
    kernels().flat_map(|k| stored(k).into_iter().filter(|tensor| is_read(k, tensor))).collect()
}

/// The tensors that a kernel stores to.
fn stored(k: &Kernel) -> Vec<String> {
    let to = |s: &StmtData| match s {
        StmtData::Copy { dst, .. } => {
            let base = resolve_view(k, *dst)?.base;
            k.tensor_ty(base).map(|_| k.values[base].name.clone())
        }
        _ => None,
    };
    k.statement_data().filter_map(to).collect()
}

/// The extents that the source has as numbers.
fn literals(known: &Known<'_>, kernel: &CompiledKernel) -> Vec<LiteralExtent> {
    let Some(written) = &kernel.tile.source_kernel else { return Vec::new() };
    let mut all = literal_extents(&written.kernel, kernel.tile.pass_options());
    // A number of a function that is called more often is one in the source.
    let is_number = |own: &LiteralExtent, span: &Span| {
        known.text().get(span.start as usize..span.end as usize) == Some(own.value.to_string().as_str())
    };
    all.retain(|own| own.places.iter().all(|span| is_number(own, span)));
    let often = |span: &Span| all.iter().filter(|own| own.places.contains(span)).count() > 1;
    let shared: Vec<bool> = all.iter().map(|own| own.places.iter().any(often)).collect();
    all.into_iter().zip(shared).filter(|(_, shared)| !shared).map(|(own, _)| own).collect()
}

impl Number {
    /// The value that it has.
    pub(super) fn now(&self) -> i64 {
        match self {
            Number::Parameter(_, now) => *now,
            Number::Alignment(own) => own.now,
            Number::Literal(own, _) => own.value,
            Number::WarpTile(own) => own.now,
            Number::Slices(own) => own.now,
        }
    }

    /// Its name, if it is not proved that results are the same with another value.
    pub(super) fn unproven(&self) -> Option<&str> {
        match self {
            Number::Parameter(own, _) if !own.proven => Some(&own.name),
            Number::Slices(own) => Some(&own.name),
            _ => None,
        }
    }

    /// What it is used for, if it is a part of products.
    pub(super) fn role(&self) -> Option<Role> {
        match self {
            Number::Parameter(own, _) => own.role,
            Number::Literal(own, _) => own.role,
            Number::WarpTile(own) => Some(own.role),
            Number::Alignment(_) | Number::Slices(_) => None,
        }
    }

    /// The values that are tried beside one.
    pub(super) fn beside(&self, value: i64, p: &Prediction) -> Vec<i64> {
        let near = || match self {
            Number::Parameter(own, _) => near(p, &own.name),
            _ => None,
        };
        match self {
            // Of other sizes than the given ones nothing is known.
            Number::Alignment(own) if p.sizes_given => own.larger(value).collect(),
            Number::Alignment(_) => Vec::new(),
            Number::Parameter(..) | Number::Literal(..) | Number::WarpTile(_) | Number::Slices(_) => {
                let half = (value > 1 && value % 2 == 0).then_some(value / 2);
                value.checked_mul(2).into_iter().chain(half).chain(near()).collect()
            }
        }
    }
}

/// What is tried of numbers.
pub(super) fn tried(numbers: &[Number], p: &Prediction) -> String {
    let (mut halved, mut others) = (Vec::new(), Vec::new());
    for number in numbers {
        match number {
            Number::Parameter(own, _) => {
                halved.push(format!("`{}`", own.name));
                others.extend(near(p, &own.name).map(|n| format!("`{}={n}`", own.name)));
            }
            Number::Literal(own, _) => halved.push(format!("{} ({})", own.value, tiles(own))),
            Number::WarpTile(own) => halved.push(format!("{} ({})", own.now, own.in_words())),
            Number::Slices(own) => halved.push(format!("`{}`", own.name)),
            Number::Alignment(own) if p.sizes_given && own.now < own.most => {
                others.push(format!("larger `{}`", own.name));
            }
            Number::Alignment(_) => {}
        }
    }
    let halved = (!halved.is_empty()).then(|| format!("half and double of {}", halved.join(", ")));
    halved.into_iter().chain(others).collect::<Vec<_>>().join(", ")
}

/// The power of two behind a size that is a single window of a parameter's tile.
fn near(p: &Prediction, name: &str) -> Option<i64> {
    let edge = p.padding.edges.iter().find(|edge| edge.parameter.as_deref() == Some(name) && edge.windows <= 1)?;
    i64::try_from(edge.size.next_power_of_two()).ok().filter(|&n| n > 0 && u64::try_from(n) != Ok(edge.tile))
}

/// The change that gives numbers other values.
pub(super) fn change(known: &Known<'_>, kernel: &CompiledKernel, numbers: &[Number], values: &Values) -> Change {
    let (mut options, mut parts, mut needs, mut size) = (Vec::new(), Vec::new(), Vec::new(), None);
    for &(at, value) in values {
        match &numbers[at] {
            Number::Parameter(FreeParameter { name, .. }, _) | Number::Alignment(Alignment { name, .. }) => {
                options.push((name.as_str(), value.to_string()));
            }
            Number::Literal(own, _) => {
                parts.extend(own.places.iter().map(|&span| (span, value.to_string())));
                needs.extend(own.multiples.iter().map(|of| format!("{} % {value} == 0", operand(of))));
            }
            Number::WarpTile(own) => parts.push((own.span, value.to_string())),
            Number::Slices(own) if own.is_size => size = Some((own.name.as_str(), value)),
            Number::Slices(own) => options.push((own.name.as_str(), value.to_string())),
        }
    }
    // In front of another clause with a space between.
    let declared = required(&kernel.tile.specialized, &needs.join(", "));
    parts.extend(declared.map(|edit| (edit.span, format!("{} ", edit.new_text(known.text())))));
    let change = Change::of_values(&options).with_parts(parts);
    match size {
        Some((name, value)) => change.with_size(name, value),
        None => change,
    }
}

/// A text as an operand.
fn operand(text: &str) -> String {
    if text.contains(' ') { format!("({text})") } else { text.to_owned() }
}

/// Other numbers, in words: `-D` for parameters, and what is to be written.
pub(super) fn in_words(numbers: &[Number], values: &Values) -> String {
    let mut options: Vec<String> = Vec::new();
    let mut written: Vec<String> = Vec::new();
    for &(at, value) in values {
        match &numbers[at] {
            Number::Parameter(FreeParameter { name, .. }, _) | Number::Alignment(Alignment { name, .. }) => {
                options.push(format!("{name}={value}"));
            }
            Number::Literal(own, lines) => {
                let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
                let plural = if lines.len() == 1 { "line" } else { "lines" };
                written.push(format!("{value} for {} as {} ({plural} {})", own.value, tiles(own), lines.join(", ")));
            }
            Number::WarpTile(own) => written.push(format!("{value} for {} as {}", own.now, own.in_words())),
            Number::Slices(own) if own.is_size => written.push(format!("`{}={value}` in the launch", own.name)),
            Number::Slices(own) => options.push(format!("{}={value}", own.name)),
        }
    }
    let options = (!options.is_empty()).then(|| format!("`-D {}`", options.join(",")));
    options.into_iter().chain(written).collect::<Vec<_>>().join(", and ")
}

/// The tiles that have an extent.
fn tiles(own: &LiteralExtent) -> String {
    let mut by: Vec<(usize, Vec<String>)> = Vec::new();
    for (name, d) in &own.tiles {
        let name = format!("`{name}`");
        match by.iter_mut().find(|(other, _)| other == d) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => by.push((*d, vec![name])),
        }
    }
    let of = |(d, names): &(usize, Vec<String>)| format!("dimension {d} of {}", names.join(", "));
    match by[..] {
        [] => "the extent of windows".to_owned(),
        _ => by.iter().map(of).collect::<Vec<_>>().join(" and "),
    }
}
