//! Arguments against a launch contract: everything a launch needs, worked out from the contract alone.
//!
//! [`bind`] gives every size, stride and scalar its value, checks the preconditions, and evaluates the grid and the extents
//! of the tensors. It reports all that is wrong, not just the first.

pub use crate::contract::number::{Args, Number};
pub use tilec_core::hardware::MAX_GRID;

use crate::contract::distinct_elements::{self, Overlap};
use crate::contract::expr::{self, ExprError};
use crate::contract::number::int_format;
use crate::contract::{Access, Contract, Dimension, ParamKind, Scratch, TensorParam};
use crate::overlap::Place;
use crate::remedies::takes_zero;
use thiserror::Error;
use tilec_core::elem::Elem;

/// Bytes that the tensors of one launch may have together when `tilec run` makes them.
pub const MAX_TENSOR_BYTES: u64 = 16 << 30;

/// Bytes of a device address in an array of pointers.
pub const ADDRESS_BYTES: u64 = 8;

/// An error in the arguments of a launch.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum BindError {
    /// No parameter of that name takes a value.
    #[error("the kernel has no size, stride or scalar `{name}`; it has {}", list(known))]
    Unknown {
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// Parameters without value or default.
    #[error("no value for {}", list(names))]
    Missing {
        /// Their names.
        names: Vec<String>,
    },
    /// A value that the parameter cannot have.
    #[error("`{name}` = {value}, expected {expected}{}", if *expected == SIZES { format!("; {}", takes_zero(name)) } else { String::new() })]
    Value {
        /// The parameter.
        name: String,
        /// The value.
        value: Number,
        /// The accepted values, in words.
        expected: &'static str,
    },
    /// A precondition that does not hold.
    #[error("`{condition}` does not hold{}{values}", if values.is_empty() { "" } else { ": " })]
    Unmet {
        /// The precondition.
        condition: String,
        /// The values of the names in it; empty if there is none.
        values: String,
    },
    /// A stride with which elements that are written share addresses.
    #[error("`{}` = {}: elements of `{}` would share addresses; the least value is {}", .0.stride, .0.value, .0.tensor, .0.least)]
    Overlap(Overlap),
    /// An expression of the contract without a value.
    #[error("`{text}` has no value: {error}")]
    Expression {
        /// The expression.
        text: String,
        /// Why.
        error: ExprError,
    },
    /// A grid that cannot be launched.
    #[error("grid axis {axis} has {extent} blocks, expected 1 to {}", MAX_GRID[*axis])]
    Grid {
        /// 0 to 2.
        axis: usize,
        /// Its extent.
        extent: i64,
    },
    /// A tensor extent that is negative, or an element beyond 2^63 - 1.
    #[error("tensor `{name}` is too large, or has a negative extent or stride")]
    Extent {
        /// The tensor.
        name: String,
    },
}

fn list(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    match quoted.as_slice() {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

/// A launch worked out.
#[derive(Clone, PartialEq, Debug)]
pub struct Bound {
    /// Blocks per axis; where one is 0 there is nothing to launch.
    pub grid: [u32; 3],
    /// The value of every size, stride and scalar.
    pub values: Args,
    /// The tensors in parameter order.
    pub tensors: Vec<TensorPlan>,
    /// Memory that is not an input and no result.
    pub scratch: Vec<(Scratch, TensorPlan)>,
}

/// A tensor of a launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorPlan {
    /// Parameter name.
    pub name: String,
    /// Element type.
    pub elem: Elem,
    /// Whether the kernel reads or writes it.
    pub access: Access,
    /// Extents of the modes of all dimensions; 0 where there is nothing to launch.
    pub shape: Vec<u64>,
    /// Strides in elements, one per extent. On the host the parts of an array of pointers are contiguous, and the first
    /// stride is [`TensorPlan::part_span`].
    pub strides: Vec<u64>,
    /// Number of these extents per dimension: usually one. In a dimension of several, an index counts the elements in
    /// row-major order. The order of all elements is therefore that of a tensor with the modes as dimensions.
    pub modes: Vec<usize>,
    /// Elements from the first to the last, gaps between included.
    pub span: u64,
    /// The kernel takes an array of addresses, one for each index of the first dimension.
    pub pointers: bool,
    /// The kernel also reads what is between the elements.
    pub reads_gaps: bool,
}

impl Bound {
    /// Whether there is something to launch.
    pub fn has_blocks(&self) -> bool {
        !self.grid.contains(&0)
    }
}

impl TensorPlan {
    /// Bytes from the first element to the last.
    pub fn bytes(&self) -> u64 {
        self.elem.bytes_of(self.span)
    }

    /// Its memory at this address; for an array of pointers, the memory of the array.
    pub fn place(&self, address: u64) -> Place<'_> {
        if self.pointers {
            let first = self.shape.len().min(1);
            return Place { address, elem: Elem::U64, shape: &self.shape[..first], strides: &[1] };
        }
        Place { address, elem: self.elem, shape: &self.shape, strides: &self.strides }
    }

    /// Parts that have an address each: 1, unless the tensor is an array of pointers.
    pub fn parts(&self) -> u64 {
        if self.pointers { self.shape.first().copied().unwrap_or(1) } else { 1 }
    }

    /// Elements from the first to the last of a part.
    pub fn part_span(&self) -> u64 {
        self.span / self.parts().max(1)
    }

    /// Number of elements that the shape has; different ones may share an address.
    pub fn count(&self) -> u64 {
        self.shape.iter().fold(1u64, |n, &x| n.saturating_mul(x))
    }

    /// The extents and strides of a dimension's modes.
    fn dimension(&self, dim: usize) -> impl DoubleEndedIterator<Item = (u64, u64)> {
        let before: usize = self.modes.iter().take(dim).sum();
        let n = self.modes.get(dim).copied().unwrap_or(0);
        self.shape
            .iter()
            .copied()
            .zip(self.strides.iter().copied())
            .skip(before)
            .take(n)
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// The number of elements along a dimension.
    pub fn extent(&self, dim: usize) -> u64 {
        self.dimension(dim).map(|(extent, _)| extent).product()
    }

    /// The offset of an index along a dimension, in elements.
    pub fn offset(&self, dim: usize, index: u64) -> u64 {
        let digit = |left: &mut u64, (extent, stride): (u64, u64)| {
            if extent == 0 {
                return Some(0);
            }
            let digit = *left % extent;
            *left /= extent;
            Some(digit * stride)
        };
        self.dimension(dim).rev().scan(index, digit).sum()
    }

    /// Whether every dimension has one stride.
    pub fn is_plain(&self) -> bool {
        self.modes.iter().all(|&n| n == 1)
    }

    /// Whether `other` has the same layout, with distinct addresses for its elements: whether one may alias the other.
    pub fn same_layout(&self, other: &TensorPlan) -> bool {
        let mut strides: Vec<(u64, u64)> =
            self.strides.iter().copied().zip(self.shape.iter().copied()).filter(|&(_, extent)| extent > 1).collect();
        strides.sort_unstable();
        let mut reach = 0u64;
        let own = strides.into_iter().all(|(stride, extent)| {
            let apart = stride > reach;
            reach = reach.saturating_add(stride.saturating_mul(extent - 1));
            apart
        });
        own && (&self.shape, &self.strides, &self.modes) == (&other.shape, &other.strides, &other.modes)
    }

    /// Numbers of all modes as text, grouped by dimension: `(2, 3), 8`.
    pub fn grouped(&self, numbers: &[u64]) -> String {
        let mut rest = numbers;
        let group = |&n: &usize| {
            let (now, later) = rest.split_at(n.min(rest.len()));
            rest = later;
            let text = now.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
            if n == 1 { text } else { format!("({text})") }
        };
        self.modes.iter().map(group).collect::<Vec<_>>().join(", ")
    }

    /// Calls `f` with the index (of all modes) and the offset of every element, in row-major order.
    pub fn for_each(&self, mut f: impl FnMut(&[u64], usize)) {
        self.while_each(|index, offset| {
            f(index, offset);
            true
        });
    }

    /// The same, until the function returns that it is enough: overlapping strides may give far more elements than
    /// memory has.
    pub fn while_each(&self, mut f: impl FnMut(&[u64], usize) -> bool) {
        if self.count() == 0 {
            return;
        }
        let mut index = vec![0u64; self.shape.len()];
        let mut offset = 0u64;
        loop {
            if !f(&index, usize::try_from(offset).expect("the tensor is in memory")) {
                return;
            }
            let mut dim = index.len();
            loop {
                if dim == 0 {
                    return;
                }
                dim -= 1;
                index[dim] += 1;
                offset += self.strides[dim];
                if index[dim] < self.shape[dim] {
                    break;
                }
                offset -= self.strides[dim] * self.shape[dim];
                index[dim] = 0;
            }
        }
    }
}

/// Works out a launch of `contract` with `args`.
///
/// # Errors
/// Everything that keeps the kernel from being launched with these arguments.
pub fn bind(contract: &Contract, args: &Args) -> Result<Bound, Vec<BindError>> {
    let mut errors = Vec::new();
    let values = values(contract, args, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    let lookup = |name: &str| values.get(name).and_then(|v| v.to_i64());
    let nothing_to_do = empty(contract, &lookup);
    if !nothing_to_do {
        let sizes = contract.params.iter().filter(|p| matches!(p.kind, ParamKind::Size { .. }));
        for param in sizes.filter(|p| !is_zero_variant(contract, &p.name)) {
            if let Some(&value) = values.get(&param.name).filter(|value| value.to_i64() == Some(0)) {
                errors.push(BindError::Value { name: param.name.clone(), value, expected: SIZES });
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
    }
    for condition in contract.requires.iter().filter(|_| !nothing_to_do) {
        match expr::condition(condition, &lookup) {
            Ok(true) => {}
            Ok(false) => {
                let unmet = || BindError::Unmet { condition: condition.clone(), values: mentioned(condition, &values) };
                errors.push(
                    distinct_elements::violating_stride(contract, condition, &values)
                        .map_or_else(unmet, BindError::Overlap),
                );
            }
            Err(error) => errors.push(BindError::Expression { text: condition.clone(), error }),
        }
    }
    let mut integer = |text: &String| match expr::integer(text, &lookup) {
        Ok(value) => Some(value),
        Err(error) => {
            errors.push(BindError::Expression { text: text.clone(), error });
            None
        }
    };
    let grid = [0, 1, 2].map(|axis| integer(&contract.grid[axis]));
    let mut tensors = Vec::new();
    for param in &contract.params {
        let Some(tensor) = param.kind.tensor() else { continue };
        let mut wide = |text: &String| integer(text).map(i128::from);
        let extents: Vec<Option<i128>> = tensor.shape.iter().flat_map(Dimension::parts).map(&mut wide).collect();
        let steps: Vec<Option<i128>> = tensor.strides.iter().flat_map(Dimension::parts).map(&mut wide).collect();
        tensors.push((param, tensor, extents, steps));
    }
    let mut bound = Bound { grid: [0; 3], values, tensors: Vec::new(), scratch: Vec::new() };
    for (axis, extent) in grid.into_iter().enumerate() {
        match extent {
            Some(extent) if (i64::from(!nothing_to_do)..=MAX_GRID[axis]).contains(&extent) => {
                bound.grid[axis] = u32::try_from(extent).expect("the limits fit 32 bits");
            }
            Some(extent) if !nothing_to_do => errors.push(BindError::Grid { axis, extent }),
            Some(_) | None => {}
        }
    }
    for (param, tensor, extents, steps) in tensors {
        let (Some(extents), Some(steps)) = (extents.into_iter().collect(), steps.into_iter().collect()) else {
            continue;
        };
        let pointers = matches!(param.kind, ParamKind::Pointers(_));
        match plan(&param.name, tensor, pointers, extents, steps) {
            Some(plan) => match tensor.scratch {
                None => bound.tensors.push(plan),
                Some(scratch) if !nothing_to_do => bound.scratch.push((scratch, plan)),
                Some(_) => {}
            },
            None => errors.push(BindError::Extent { name: param.name.clone() }),
        }
    }
    if errors.is_empty() { Ok(bound) } else { Err(errors) }
}

/// Whether the grid has no block, so that nothing is launched, whatever the preconditions are.
fn empty(contract: &Contract, lookup: &dyn Fn(&str) -> Option<i64>) -> bool {
    contract.grid.iter().any(|text| expr::integer(text, lookup) == Ok(0))
}

/// The value of every size, stride and scalar.
fn values(contract: &Contract, args: &Args, errors: &mut Vec<BindError>) -> Args {
    let takes_value = ParamKind::is_value;
    for name in args.keys() {
        if !contract.param(name).is_some_and(|p| takes_value(&p.kind)) {
            let known = contract.params.iter().filter(|p| takes_value(&p.kind)).map(|p| p.name.clone()).collect();
            errors.push(BindError::Unknown { name: name.clone(), known });
        }
    }
    let mut values = Args::new();
    let mut missing = Vec::new();
    // Sizes and scalars first, because strides of packed tensors are expressions over them.
    for param in &contract.params {
        let given = args.get(&param.name).copied();
        let value = match &param.kind {
            ParamKind::Size { .. } => given,
            ParamKind::Scalar { default, .. } => given.or(*default),
            ParamKind::Tensor(_) | ParamKind::Pointers(_) | ParamKind::TensorMap(_) | ParamKind::Stride { .. } => {
                continue;
            }
        };
        match value {
            Some(value) => {
                errors.extend(unfit(&param.name, &param.kind, value));
                values.insert(param.name.clone(), value);
            }
            None => missing.push(param.name.clone()),
        }
    }
    let mut strides = Args::new();
    for param in &contract.params {
        let ParamKind::Stride { packed, .. } = &param.kind else { continue };
        let value = match (args.get(&param.name).copied(), packed) {
            (Some(given), _) => given,
            (None, None) => {
                missing.push(param.name.clone());
                continue;
            }
            // Without the sizes there is nothing to compute, and they are reported.
            (None, Some(_)) if !missing.is_empty() || !errors.is_empty() => continue,
            (None, Some(packed)) => match expr::integer(packed, &|name| values.get(name).and_then(|v| v.to_i64())) {
                Ok(value) => Number::Int(value),
                Err(error) => {
                    errors.push(BindError::Expression { text: packed.clone(), error });
                    continue;
                }
            },
        };
        errors.extend(unfit(&param.name, &param.kind, value));
        strides.insert(param.name.clone(), value);
    }
    values.extend(strides);
    if !missing.is_empty() {
        errors.push(BindError::Missing { names: missing });
    }
    values
}

/// Whether the kernel is the variant for this size being 0, by its preconditions.
pub(crate) fn is_zero_variant(contract: &Contract, size: &str) -> bool {
    contract.requires.iter().any(|condition| *condition == format!("{size} == 0"))
}

/// The sizes that are given as 0, where a launch with blocks takes them to be at least 1: kernels compiled for them being 0 take them.
pub fn zeros(launches: &[&Contract], args: &Args) -> Vec<String> {
    let lookup = |name: &str| args.get(name).and_then(|value| value.to_i64());
    let mut found = Vec::new();
    for contract in launches.iter().filter(|contract| !empty(contract, &lookup)) {
        let sizes = contract.params.iter().filter(|p| matches!(p.kind, ParamKind::Size { .. }));
        for param in sizes.filter(|p| lookup(&p.name) == Some(0) && !is_zero_variant(contract, &p.name)) {
            if !found.contains(&param.name) {
                found.push(param.name.clone());
            }
        }
    }
    found
}

/// The valid sizes in a launch with blocks.
pub(crate) const SIZES: &str = "1 to 2^31 - 1";
/// The valid sizes in any launch.
const SIZES_AND_NONE: &str = "0 to 2^31 - 1";

/// Why the parameter cannot have this value.
fn unfit(name: &str, kind: &ParamKind, value: Number) -> Option<BindError> {
    let whole = value.to_i64();
    let expected = match kind {
        // A size of 0 may leave nothing to launch: `bind` decides.
        ParamKind::Size { .. } if !whole.is_some_and(|i| (0..1 << 31).contains(&i)) => SIZES_AND_NONE,
        ParamKind::Stride { .. } if whole.is_none_or(|i| i < 0) => "a whole number from 0 on",
        ParamKind::Scalar { elem, .. } if !elem.is_float() => {
            let format = int_format(*elem);
            if value.to_i128().is_some_and(|i| (format.min()..=format.max()).contains(&i)) {
                return None;
            }
            "a whole number in the range of its type"
        }
        ParamKind::Size { .. }
        | ParamKind::Stride { .. }
        | ParamKind::Scalar { .. }
        | ParamKind::Tensor(_)
        | ParamKind::TensorMap(_)
        | ParamKind::Pointers(_) => return None,
    };
    Some(BindError::Value { name: name.to_owned(), value, expected })
}

/// `K = 13, A_ld = 16`: the parameters named in an expression with their values, in order of mention.
fn mentioned(text: &str, values: &Args) -> String {
    let mut out: Vec<String> = Vec::new();
    for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        if let Some(value) = values.get(word) {
            let said = format!("{word} = {value}");
            if !out.contains(&said) {
                out.push(said);
            }
        }
    }
    out.join(", ")
}

/// The tensor with these extents and strides, grouped by dimension alike, if every element has an address below 2^63.
fn plan(
    name: &str,
    tensor: &TensorParam,
    pointers: bool,
    shape: Vec<i128>,
    mut strides: Vec<i128>,
) -> Option<TensorPlan> {
    let modes = |dims: &[Dimension]| dims.iter().map(|d| d.parts().len()).collect::<Vec<_>>();
    let front = usize::from(pointers);
    let (modes, strided) = (modes(&tensor.shape), modes(&tensor.strides));
    if modes.get(front..)? != strided.as_slice() || modes[..front].iter().any(|&n| n != 1) {
        return None;
    }
    if shape.len() != strides.len() + front || shape.iter().any(|&n| n < 0) {
        return None;
    }
    // A tensor without elements gets room for one, which is never accessed.
    let last = |shape: &[i128], strides: &[i128]| {
        if shape.contains(&0) {
            return Some(0);
        }
        let reach = |(&n, &s): (&i128, &i128)| if s < 0 { None } else { (n - 1).checked_mul(s) };
        shape.iter().zip(strides).map(reach).try_fold(0i128, |sum, x| sum.checked_add(x?))
    };
    if pointers {
        strides.insert(0, last(&shape[1..], &strides)? + 1);
    }
    let last = last(&shape, &strides)?;
    // `for_each` steps one stride past the last element of a dimension.
    let reach = shape.iter().zip(&strides).map(|(e, s)| e.checked_mul(*s)).try_fold(0i128, |a, x| a.checked_add(x?))?;
    if reach > i128::from(i64::MAX) {
        return None;
    }
    let narrow = |v: Vec<i128>| v.into_iter().map(|x| u64::try_from(x).ok()).collect::<Option<Vec<u64>>>();
    Some(TensorPlan {
        name: name.to_owned(),
        elem: tensor.elem,
        access: tensor.access,
        shape: narrow(shape)?,
        strides: narrow(strides)?,
        modes,
        span: u64::try_from(last + 1).ok()?,
        pointers,
        reads_gaps: tensor.reads_gaps,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::tests::gemm;

    fn args(pairs: &[(&str, i64)]) -> Args {
        pairs.iter().map(|&(name, value)| (name.to_owned(), Number::Int(value))).collect()
    }

    fn complete() -> Args {
        args(&[("M", 200), ("N", 300), ("K", 64), ("C_ld", 320), ("beta", 0)])
    }

    fn f16(shape: &[&str], strides: &[&str]) -> TensorParam {
        let list = |l: &[&str]| l.iter().map(|&text| Dimension::from(text)).collect();
        let (shape, strides, may_alias) = (list(shape), list(strides), Vec::new());
        TensorParam {
            elem: Elem::F16,
            align: 2,
            access: Access::Read,
            shape,
            strides,
            reads_gaps: false,
            constant: false,
            scratch: None,
            may_alias,
        }
    }

    #[test]
    fn parts_lie_one_behind_the_other_on_the_host() {
        let tensor = f16(&["3", "4", "5"], &["8", "1"]);
        let plan = plan("A", &tensor, true, vec![3, 4, 5], vec![8, 1]).expect("small");
        assert_eq!((plan.strides.as_slice(), plan.span), (&[29, 8, 1][..], 3 * 29));
        assert_eq!((plan.parts(), plan.part_span()), (3, 29));
        assert!(super::plan("A", &f16(&["3", "4"], &["8", "1"]), true, vec![3, 4], vec![8, 1]).is_none());
    }

    #[test]
    fn strides_default_to_packed_and_scalars_to_their_defaults() {
        let bound = bind(&gemm(), &complete()).expect("complete");
        assert_eq!(bound.grid, [3, 2, 1]);
        assert_eq!(bound.values["A_ld"], Number::Int(64));
        assert_eq!(bound.values["alpha"], Number::Float(1.0));
        let c = &bound.tensors[2];
        assert_eq!(
            (c.shape.as_slice(), c.strides.as_slice(), c.span),
            (&[200, 300][..], &[320, 1][..], 199 * 320 + 300)
        );
    }

    #[test]
    fn all_missing_values_are_named_at_once() {
        let errors = bind(&gemm(), &args(&[("M", 1)])).expect_err("incomplete");
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].to_string(), "no value for `K`, `N`, `beta` and `C_ld`");
    }

    #[test]
    fn unmet_preconditions_show_the_values() {
        let mut wrong = complete();
        wrong.insert("K".to_owned(), Number::Int(13));
        let errors = bind(&gemm(), &wrong).expect_err("unmet");
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["`K % 8 == 0` does not hold: K = 13", "`A_ld % 8 == 0` does not hold: A_ld = 13"]);
    }

    #[test]
    fn values_out_of_range_and_unknown_names_are_refused() {
        for (name, value) in [("K", 0), ("M", -1), ("M", 1 << 31), ("A_ld", -1), ("A", 1), ("X", 1)] {
            let mut wrong = complete();
            wrong.insert(name.to_owned(), Number::Int(value));
            assert_eq!(bind(&gemm(), &wrong).expect_err("refused").len(), 1, "{name} = {value}");
        }
        let mut wrong = complete();
        wrong.insert("M".to_owned(), Number::Float(1.5));
        assert!(bind(&gemm(), &wrong).is_err());
    }

    /// A size of 0 that leaves no blocks launches nothing, whatever the preconditions are.
    #[test]
    fn a_grid_without_blocks_has_nothing_to_launch() {
        let mut none = complete();
        none.insert("M".to_owned(), Number::Int(0));
        assert!(!bind(&gemm(), &none).expect("nothing to do").has_blocks());
        assert!(bind(&gemm(), &complete()).expect("a launch").has_blocks());
    }

    #[test]
    fn absurd_extents_are_errors_and_not_overflow() {
        let mut wrong = complete();
        wrong.insert("C_ld".to_owned(), Number::Int(i64::MAX - 7));
        let errors = bind(&gemm(), &wrong).expect_err("too large");
        assert!(matches!(errors.as_slice(), [BindError::Extent { name }] if name == "C"), "{errors:?}");
        wrong.insert("M".to_owned(), Number::Int((1 << 31) - 1));
        let errors = bind(&gemm(), &wrong).expect_err("too large");
        assert!(errors.iter().any(|e| matches!(e, BindError::Grid { axis: 1, .. })), "{errors:?}");
    }

    #[test]
    fn elements_are_visited_once_in_order() {
        let tensor = TensorParam {
            shape: vec![Dimension::from(vec!["2".to_owned(), "3".to_owned()]), "2".into()],
            strides: vec![Dimension::from(vec!["100".to_owned(), "0".to_owned()]), "7".into()],
            ..f16(&[], &[])
        };
        let plan = plan("A", &tensor, false, vec![2, 3, 2], vec![100, 0, 7]).expect("small");
        let mut seen = Vec::new();
        plan.for_each(|index, offset| seen.push((index.to_vec(), offset)));
        let expected: Vec<_> = (0..12u64)
            .map(|i| {
                let index = [i / 6, i / 2 % 3, i % 2];
                (index.to_vec(), (index[0] * 100 + index[2] * 7) as usize)
            })
            .collect();
        assert_eq!(seen, expected);
        assert_eq!((plan.span, plan.count()), (108, 12));
        assert_eq!((plan.extent(0), plan.extent(1), plan.offset(0, 4), plan.offset(1, 1)), (6, 2, 100, 7));
        assert_eq!(plan.grouped(&plan.shape), "(2, 3), 2");
    }

    #[test]
    fn elements_that_lie_alike_have_an_address_each() {
        let plan = |shape: [u64; 2], strides: [u64; 2]| {
            let wide = |v: [u64; 2]| v.into_iter().map(i128::from).collect();
            plan("A", &f16(&["M", "N"], &["A_ld", "1"]), false, wide(shape), wide(strides)).expect("small")
        };
        let own = plan([3, 4], [4, 1]);
        assert!(own.same_layout(&own) && !own.same_layout(&plan([3, 4], [5, 1])));
        for shared in [plan([3, 4], [0, 1]), plan([3, 4], [3, 1]), plan([3, 4], [1, 2])] {
            assert!(!shared.same_layout(&shared), "{shared:?}");
        }
        let row = plan([1, 4], [0, 1]);
        assert!(row.same_layout(&row));
    }
}
