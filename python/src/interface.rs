//! The arguments of a kernel, and the values that follow from arrays.

use crate::array::Library;
use tilec::contract::{Access, Contract, Dimension, LaunchFile, ParamKind, Program};
use tilec::{Args, Number, expr};
use tilec_ir::diag::counted;
use tilec_ir::types::Elem;
use tilec_launch::remedies::OTHER_ORDER;

/// A tensor that is given.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) elem: Elem,
    /// An array of addresses.
    pub(crate) pointers: bool,
    /// Extents and strides of all modes, as expressions.
    pub(crate) shape: Vec<String>,
    pub(crate) strides: Vec<String>,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

/// A thing that may be given by position.
#[derive(Clone, Debug)]
pub(crate) enum Slot {
    Tensor(Tensor),
    Scalar { name: String, elem: Elem, default: Option<Number> },
}

impl Slot {
    pub(crate) fn name(&self) -> &str {
        match self {
            Slot::Tensor(tensor) => &tensor.name,
            Slot::Scalar { name, .. } => name,
        }
    }
}

/// The arguments of a kernel or program.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    pub(crate) slots: Vec<Slot>,
    /// Sizes and strides, which follow from the arrays or are given by name.
    pub(crate) sizes: Vec<String>,
}

/// The contracts of what may be launched under a name.
fn variants<'f>(file: &'f LaunchFile, name: &str) -> Vec<&'f Contract> {
    match file.dispatch.iter().find(|d| d.kernel == name) {
        Some(dispatch) => dispatch.cases.iter().filter_map(|case| file.contract(&case.entry)).collect(),
        None => file.contract(name).into_iter().collect(),
    }
}

/// The program of a name, if it is one.
pub(crate) fn program<'f>(file: &'f LaunchFile, name: &str) -> Option<&'f Program> {
    file.programs.iter().find(|p| p.name == name)
}

impl Interface {
    /// What `name` takes.
    pub(crate) fn new(file: &LaunchFile, name: &str) -> Interface {
        let launches = program(file, name).map_or_else(|| vec![name.to_owned()], |p| p.launches.clone());
        let temporary =
            |param: &str| program(file, name).is_some_and(|p| p.temporaries.iter().any(|t| t.name == param));
        let mut made = Interface { slots: Vec::new(), sizes: Vec::new() };
        for contract in launches.iter().flat_map(|launch| variants(file, launch)) {
            for param in &contract.params {
                made.add(&param.name, &param.kind, temporary(&param.name));
            }
        }
        made
    }

    fn add(&mut self, name: &str, kind: &ParamKind, temporary: bool) {
        match kind {
            ParamKind::Tensor(tensor) | ParamKind::Pointers(tensor) => {
                if temporary || tensor.scratch.is_some() {
                    return;
                }
                let (reads, writes) = (tensor.access.reads(), tensor.access.writes());
                if let Some(Slot::Tensor(known)) = self.slots.iter_mut().find(|s| s.name() == name) {
                    // A tensor that an earlier launch wrote is not an input.
                    known.reads |= reads && !known.writes;
                    known.writes |= writes;
                    return;
                }
                let modes = |dims: &[Dimension]| dims.iter().flat_map(Dimension::parts).cloned().collect();
                self.slots.push(Slot::Tensor(Tensor {
                    name: name.to_owned(),
                    elem: tensor.elem,
                    pointers: matches!(kind, ParamKind::Pointers(_)),
                    shape: modes(&tensor.shape),
                    strides: modes(&tensor.strides),
                    reads: tensor.access != Access::Write,
                    writes,
                }));
            }
            ParamKind::TensorMap(_) => {}
            ParamKind::Size { .. } | ParamKind::Stride { .. } => {
                if !self.sizes.iter().any(|known| known == name) {
                    self.sizes.push(name.to_owned());
                }
            }
            ParamKind::Scalar { elem, default } => match self.slots.iter_mut().find(|s| s.name() == name) {
                Some(Slot::Scalar { default: known, .. }) => *known = known.or(*default),
                Some(Slot::Tensor(_)) => {}
                None => self.slots.push(Slot::Scalar { name: name.to_owned(), elem: *elem, default: *default }),
            },
        }
    }

    /// The tensors, in order.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Tensor(tensor) => Some(tensor),
            Slot::Scalar { .. } => None,
        })
    }
}

/// Whether an expression is a name.
fn is_name(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Extents and strides of an array in elements of the kernel, which may be smaller than those of the array.
pub(crate) fn in_elements(elem: Elem, shape: &[i64], strides: &[i64]) -> (Vec<i64>, Vec<i64>) {
    let per_byte = i64::from(elem.per(1));
    if per_byte <= 1 {
        return (shape.to_vec(), strides.to_vec());
    }
    let inner = strides.iter().rposition(|s| *s == 1);
    let shape = shape.iter().enumerate().map(|(i, n)| if Some(i) == inner { n * per_byte } else { *n });
    let strides = strides.iter().enumerate().map(|(i, s)| if Some(i) == inner { 1 } else { s * per_byte });
    (shape.collect(), strides.collect())
}

/// Sets sizes and strides that appear alone as an extent or stride of a tensor, unless they have a value.
pub(crate) fn infer(tensor: &Tensor, shape: &[i64], strides: &[i64], values: &mut Args) -> Result<(), String> {
    if tensor.pointers {
        // Addresses: how many there are.
        if shape.len() != 1 {
            return Err(format!("`{}` is an array of addresses, of one dimension; found {}", tensor.name, shape.len()));
        }
        if is_name(&tensor.shape[0]) {
            values.entry(tensor.shape[0].clone()).or_insert(Number::Int(shape[0]));
        }
        return Ok(());
    }
    if shape.len() != tensor.shape.len() {
        return Err(format!(
            "`{}` must have {} ({}); the array has {} ({})",
            tensor.name,
            counted(tensor.shape.len(), "dimension"),
            tensor.shape.join(", "),
            shape.len(),
            list(shape)
        ));
    }
    let extents = tensor.shape.iter().zip(shape);
    // A stride of one element says nothing: libraries give it any value.
    let steps = tensor.strides.iter().zip(strides).zip(shape).filter(|(_, n)| **n != 1).map(|(pair, _)| pair);
    for (text, value) in extents.chain(steps).filter(|(text, _)| is_name(text)) {
        values.entry(text.clone()).or_insert(Number::Int(*value));
    }
    Ok(())
}

/// Numbers with commas.
pub(crate) fn list(numbers: &[i64]) -> String {
    numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}

/// Extents and strides that an array must have; all variants and launches have the same. `None` is not known.
pub(crate) struct Expected {
    shape: Vec<Option<i64>>,
    strides: Vec<Option<i64>>,
}

impl Expected {
    /// The values of a tensor's expressions. A size without a value leaves its expressions unknown.
    pub(crate) fn of(tensor: &Tensor, values: &Args) -> Expected {
        let lookup = |name: &str| values.get(name).and_then(|n| n.to_i64());
        let all = |texts: &[String]| texts.iter().map(|text| expr::integer(text, &lookup).ok()).collect();
        Expected { shape: all(&tensor.shape), strides: all(&tensor.strides) }
    }
}

/// Whether a number is the expected one, or none is known.
fn fits(expected: Option<i64>, found: i64) -> bool {
    expected.is_none_or(|n| n == found)
}

/// Why the shape of an array does not fit a tensor, and what gives the sizes that differ: a size of `given`, else one of
/// `all` tensors.
pub(crate) fn shape_misfit<'t>(
    tensor: &Tensor,
    expected: &Expected,
    shape: &[i64],
    given: &Args,
    mut all: impl Iterator<Item = &'t Tensor>,
) -> Option<String> {
    let dims = || tensor.shape.iter().zip(expected.shape.iter().zip(shape));
    let other: Vec<&String> = dims().filter(|(_, (n, m))| !fits(**n, **m)).map(|(name, _)| name).collect();
    if other.is_empty() {
        return None;
    }
    let named: Vec<String> = other.iter().filter_map(|n| Some(format!("`{n}={}`", given.get(*n)?.to_i64()?))).collect();
    let gives = |given: &&Tensor| given.name != tensor.name && other.iter().all(|n| given.shape.contains(n));
    let source = match (named.is_empty(), all.find(gives)) {
        (false, _) => format!(", by {}", named.join(" and ")),
        (true, Some(given)) => format!(", by the shape of `{}`", given.name),
        (true, None) => String::new(),
    };
    let wanted = dims().map(|(text, (n, _))| n.map_or_else(|| text.clone(), |n| n.to_string()));
    Some(format!(
        "`{}` must have shape ({}) = ({}){source}; the array has ({})",
        tensor.name,
        tensor.shape.join(", "),
        wanted.collect::<Vec<_>>().join(", "),
        list(shape)
    ))
}

/// Why the strides of an array with the right shape do not fit; strides of extents of 1 are ignored.
pub(crate) fn stride_misfit(
    tensor: &Tensor,
    library: Library,
    expected: &Expected,
    (shape, strides): (&[i64], &[i64]),
) -> Option<String> {
    let empty = shape.contains(&0);
    let pairs = || expected.strides.iter().zip(strides);
    if pairs().zip(shape).all(|((s, t), n)| empty || *n <= 1 || fits(*s, *t)) {
        return None;
    }
    // A stride that the array itself gave is no demand.
    let wanted = tensor.strides.iter().zip(pairs()).map(|(text, (n, found))| match n {
        Some(n) if n != found && *text != n.to_string() => format!("{text} = {n}"),
        _ => text.clone(),
    });
    Some(format!(
        "`{}` must have strides ({}), in elements; the array has ({}); {}; {OTHER_ORDER}",
        tensor.name,
        wanted.collect::<Vec<_>>().join(", "),
        list(strides),
        library.packed()
    ))
}
