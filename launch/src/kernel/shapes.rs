//! Shapes and strides of the tensors that a launcher passes, and the messages about them.

use crate::contract::stack_code::Flat;
use crate::contract::{Dimension, TensorParam};
use crate::error::LaunchError;
use crate::remedies::OTHER_ORDER;
use crate::tensor::Argument;

/// Extents and strides of a tensor in the words of its program, modes counted one by one.
pub(super) struct Words {
    pub(super) extents: Vec<String>,
    strides: Vec<String>,
}

impl Words {
    pub(super) fn new(param: &TensorParam) -> Words {
        let all = |dims: &[Dimension]| dims.iter().flat_map(Dimension::parts).cloned().collect();
        Words { extents: all(&param.shape), strides: all(&param.strides) }
    }

    /// The shape: `[M, K]`.
    pub(super) fn shape(&self) -> String {
        list(&self.extents)
    }
}

/// Extents or strides in brackets.
pub(super) fn list(all: &[impl ToString]) -> String {
    format!("[{}]", all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}

/// Bytes from the first element of a tensor to its last.
pub(super) fn needed(argument: &Argument<'_>) -> u64 {
    let dims = argument.shape().iter().zip(argument.strides());
    let last = dims.fold(0u64, |last, (n, stride)| last.saturating_add(n.saturating_sub(1).saturating_mul(*stride)));
    if argument.shape().contains(&0) { 0 } else { argument.elem.bytes_of(last.saturating_add(1)) }
}

/// The required shape and strides of a tensor that the launcher passes.
pub(super) struct Shape {
    extents: Vec<Flat>,
    strides: Vec<Flat>,
}

/// Whether an expression has this value.
fn is(flat: &Flat, slots: &[Option<i64>], x: u64) -> bool {
    flat.eval(slots).is_some_and(|y| u64::try_from(y) == Ok(x))
}

/// The value of an expression, or its text if it has none.
fn value(flat: &Flat, slots: &[Option<i64>], text: &str) -> String {
    flat.eval(slots).map_or_else(|| text.to_owned(), |x| x.to_string())
}

impl Shape {
    /// The shape and strides of a parameter; `flat` makes code of an expression.
    pub(super) fn new(
        param: &TensorParam,
        flat: impl Fn(&str) -> Result<Flat, LaunchError>,
    ) -> Result<Shape, LaunchError> {
        let all = |dims: &[Dimension]| {
            dims.iter().flat_map(Dimension::parts).map(|text| flat(text)).collect::<Result<Vec<_>, _>>()
        };
        Ok(Shape { extents: all(&param.shape)?, strides: all(&param.strides)? })
    }

    /// Whether the tensor has the shape that the values of sizes give.
    pub(super) fn has_extents(&self, argument: &Argument<'_>, slots: &[Option<i64>]) -> bool {
        self.extents.iter().zip(argument.shape()).all(|(flat, &x)| is(flat, slots, x))
    }

    /// The dimensions in which it has another extent.
    pub(super) fn differing(&self, argument: &Argument<'_>, slots: &[Option<i64>]) -> impl Iterator<Item = usize> {
        let dims = self.extents.iter().zip(argument.shape()).enumerate();
        dims.filter(|(_, (flat, x))| !is(flat, slots, **x)).map(|(dim, _)| dim)
    }

    /// A wrong shape in words; `reasons` say what gives the sizes.
    pub(super) fn misfit(
        &self,
        words: &Words,
        argument: &Argument<'_>,
        slots: &[Option<i64>],
        reasons: &[String],
    ) -> String {
        let expected: Vec<String> =
            self.extents.iter().zip(&words.extents).map(|(flat, text)| value(flat, slots, text)).collect();
        let mut text = format!("its shape is {}, expected {}", list(argument.shape()), words.shape());
        if expected != words.extents {
            text += &format!(" = {}", list(&expected));
        }
        for reason in reasons {
            text += &format!("; {reason}");
        }
        text
    }

    /// Refuses other strides (of dimensions of more than one element), and memory that is too short.
    pub(super) fn check(
        &self,
        name: &str,
        words: &Words,
        argument: &Argument<'_>,
        slots: &[Option<i64>],
    ) -> Result<(), LaunchError> {
        let (shape, strides) = (argument.shape(), argument.strides());
        let mut dims = self.strides.iter().zip(strides).zip(shape);
        if !dims.all(|((flat, &stride), &n)| n <= 1 || is(flat, slots, stride)) {
            // A stride that the tensor itself gave is no demand.
            let demand = |((flat, text), found): ((&Flat, &String), &u64)| match flat.eval(slots) {
                Some(x) if u64::try_from(x) != Ok(*found) && *text != x.to_string() => format!("{text} = {x}"),
                _ => text.clone(),
            };
            let expected: Vec<String> = self.strides.iter().zip(&words.strides).zip(strides).map(demand).collect();
            let what =
                format!("its strides are {}, in elements, expected {}; {OTHER_ORDER}", list(strides), list(&expected));
            return Err(LaunchError::tensor(name, what));
        }
        let needed = needed(argument);
        if needed > argument.bytes {
            let what = format!("its memory has {} bytes, expected {needed}", argument.bytes);
            return Err(LaunchError::tensor(name, what));
        }
        Ok(())
    }
}
