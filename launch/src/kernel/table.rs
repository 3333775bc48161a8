//! The values and tensors of all kernels of a name, each once, with their sources at a launch.

use super::shapes::{self, Shape, Words, needed};
use crate::contract::expr::Expr;
use crate::contract::number::Number;
use crate::contract::number::int_format;
use crate::contract::stack_code::Flat;
use crate::contract::{Contract, Dimension, Param, ParamKind, TensorParam};
use crate::error::LaunchError;
use crate::tensor::{Argument, MAX_RANK};
use tilec_core::elem::Elem;

/// Values and tensors by number.
#[derive(Default)]
pub(super) struct Table {
    slots: Vec<Slot>,
    /// The tensors that the launcher passes.
    given: Vec<LauncherTensor>,
    /// Tensors that the caller does not pass: temporaries and scratch memory, by name.
    own: Vec<String>,
}

/// A size, stride or scalar.
pub(super) struct Slot {
    pub(super) name: String,
    pub(super) kind: SlotKind,
    pub(super) from: From,
}

#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum SlotKind {
    Size,
    Stride,
    Scalar(Elem),
}

/// The source of a value.
pub(super) enum From {
    /// The launcher, in this place, or the default.
    Passed(usize, Option<Number>),
    /// The extent of a tensor's dimension.
    Extent(usize, usize),
    /// The stride of the first of these dimensions with an extent above 1. If there is none, the stride has no effect,
    /// and is that of packed tensors: an expression over sizes.
    Stride(Vec<(usize, usize)>, Option<(String, Option<Flat>)>),
    /// The default.
    Default(Number),
}

/// A tensor that the launcher passes.
struct LauncherTensor {
    name: String,
    elem: Elem,
    written: bool,
    rank: usize,
    /// Extents and strides as the contract has them.
    words: Words,
    shape: Option<Shape>,
}

/// The source of a tensor's address.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum AddressSource {
    /// The launcher.
    Given(usize),
    /// Memory of the kernel's own.
    Own(usize),
}

/// The values of a launch.
#[derive(Default)]
pub(super) struct Values {
    /// Every slot as an integer, if it fits a signed 64-bit one.
    pub(super) ints: Vec<Option<i64>>,
    /// Of every slot.
    pub(super) numbers: Vec<Number>,
}

/// The tensor of a name in the first contract that has it.
pub(super) fn tensor<'c>(contracts: &[&'c Contract], name: &str) -> Option<&'c TensorParam> {
    contracts.iter().find_map(|c| c.param(name)?.kind.tensor())
}

impl Table {
    /// The table of kernels whose launcher passes these tensors and values.
    pub(super) fn new(contracts: &[&Contract], tensors: &[&str], values: &[&str]) -> Result<Table, LaunchError> {
        let mut table = Table::default();
        for name in tensors {
            let unknown = || LaunchError::tensor(name, "the kernel has no such tensor");
            let param = tensor(contracts, name).ok_or_else(unknown)?;
            let written = contracts.iter().filter_map(|c| c.param(name)?.kind.tensor()).any(|t| t.access.writes());
            let rank = param.shape.iter().flat_map(Dimension::parts).count();
            let strides = param.strides.iter().flat_map(Dimension::parts).count();
            if rank > MAX_RANK || strides != rank {
                return Err(LaunchError::tensor(name, format!("it has {rank} dimensions and {strides} strides")));
            }
            let (name, words) = ((*name).to_owned(), Words::new(param));
            table.given.push(LauncherTensor { name, elem: param.elem, written, rank, words, shape: None });
        }
        for param in contracts.iter().flat_map(|c| &c.params) {
            match &param.kind {
                ParamKind::Tensor(_) | ParamKind::Pointers(_) if table.taken(&param.name).is_none() => {
                    table.own.push(param.name.clone());
                }
                ParamKind::Tensor(_) | ParamKind::Pointers(_) | ParamKind::TensorMap(_) => {}
                ParamKind::Size { .. } | ParamKind::Stride { .. } | ParamKind::Scalar { .. } => {
                    if table.slot(&param.name).is_none() {
                        let from = table.source(param, contracts, values)?;
                        let kind = match param.kind {
                            ParamKind::Size { .. } => SlotKind::Size,
                            ParamKind::Scalar { elem, .. } => SlotKind::Scalar(elem),
                            _ => SlotKind::Stride,
                        };
                        table.slots.push(Slot { name: param.name.clone(), kind, from });
                    }
                }
            }
        }
        if let Some(unknown) = values.iter().find(|name| table.slot(name).is_none()) {
            return Err(LaunchError::Misfit(format!("the kernel has no size, stride or scalar `{unknown}`")));
        }
        table.flatten(contracts)?;
        Ok(table)
    }

    /// Turns expressions into code, once all names have slots.
    fn flatten(&mut self, contracts: &[&Contract]) -> Result<(), LaunchError> {
        for i in 0..self.slots.len() {
            if let From::Stride(_, Some((text, None))) = &self.slots[i].from {
                let made = flatten(text, self)?;
                if let From::Stride(_, Some((_, flat))) = &mut self.slots[i].from {
                    *flat = Some(made);
                }
            }
        }
        for i in 0..self.given.len() {
            if let Some(param) = tensor(contracts, &self.given[i].name) {
                self.given[i].shape = Some(Shape::new(param, |text| flatten(text, self))?);
            }
        }
        Ok(())
    }

    /// The source of a parameter's value.
    fn source(&self, param: &Param, contracts: &[&Contract], values: &[&str]) -> Result<From, LaunchError> {
        let name = &param.name;
        let default = contracts.iter().filter_map(|c| c.param(name)).find_map(|p| match p.kind {
            ParamKind::Scalar { default, .. } => default,
            _ => None,
        });
        if let Some(place) = values.iter().position(|v| v == name) {
            return Ok(From::Passed(place, default));
        }
        let find = |strides: bool| {
            let of_tensor = |(i, given): (usize, &LauncherTensor)| {
                let param = tensor(contracts, &given.name);
                let dims = param.map_or(&[][..], |p| if strides { &p.strides } else { &p.shape });
                let named = dims.iter().flat_map(Dimension::parts).enumerate().filter(|(_, text)| *text == name);
                named.map(|(dim, _)| (i, dim)).collect::<Vec<_>>()
            };
            self.given.iter().enumerate().flat_map(of_tensor).collect::<Vec<_>>()
        };
        let missing = || LaunchError::Bind(vec![crate::bind::BindError::Missing { names: vec![name.clone()] }]);
        match &param.kind {
            ParamKind::Size { .. } => find(false).first().map(|(i, dim)| From::Extent(*i, *dim)).ok_or_else(missing),
            ParamKind::Stride { packed, .. } => match (find(true), packed) {
                (all, None) if all.is_empty() => Err(missing()),
                (all, packed) => Ok(From::Stride(all, packed.clone().map(|text| (text, None)))),
            },
            _ => default.map(From::Default).ok_or_else(missing),
        }
    }

    /// All sizes, strides and scalars.
    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The slot of a name.
    pub(super) fn slot(&self, name: &str) -> Option<usize> {
        self.slots.iter().position(|slot| slot.name == name)
    }

    /// The source of a tensor's address.
    pub(super) fn taken(&self, name: &str) -> Option<AddressSource> {
        let given = self.given.iter().position(|given| given.name == name).map(AddressSource::Given);
        given.or_else(|| self.own.iter().position(|own| own == name).map(AddressSource::Own))
    }

    /// The tensors that the caller does not pass.
    pub(super) fn own(&self) -> &[String] {
        &self.own
    }

    /// The name of a tensor that the caller does not pass.
    #[cfg(feature = "cuda")]
    pub(super) fn own_name(&self, own: usize) -> &str {
        &self.own[own]
    }

    /// The name of a tensor that the launcher passes.
    pub(super) fn name(&self, given: usize) -> &str {
        &self.given[given].name
    }

    /// Names and values, as binding takes them.
    pub(super) fn args(&self, values: &Values) -> crate::Args {
        self.slots.iter().map(|slot| slot.name.clone()).zip(values.numbers.iter().copied()).collect()
    }

    /// The value of every slot.
    ///
    /// # Errors
    /// One has none, or a parameter cannot have it.
    pub(super) fn values(&self, passed: &[Option<Number>], tensors: &[Argument<'_>]) -> Result<Values, LaunchError> {
        let n = self.slots.len();
        let mut values = Values { ints: vec![None; n], numbers: vec![Number::Int(0); n] };
        for strides in [false, true] {
            let of_kind = |(_, s): &(usize, &Slot)| matches!(s.from, From::Stride(..)) == strides;
            for (i, slot) in self.slots.iter().enumerate().filter(of_kind) {
                let from_tensor = |x: u64| i64::try_from(x).map(Number::Int).ok();
                let value = match &slot.from {
                    From::Passed(place, default) => passed.get(*place).copied().flatten().or(*default),
                    From::Extent(tensor, dim) => from_tensor(tensors[*tensor].shape()[*dim]),
                    From::Stride(all, packed) => {
                        let steps = |(tensor, dim): &&(usize, usize)| tensors[*tensor].shape()[*dim] != 1;
                        match (all.iter().find(steps), packed) {
                            (None, Some((_, flat))) => {
                                flat.as_ref().and_then(|f| f.eval(&values.ints)).map(Number::Int)
                            }
                            (found, _) => found
                                .or(all.first())
                                .and_then(|(tensor, dim)| from_tensor(tensors[*tensor].strides()[*dim])),
                        }
                    }
                    From::Default(number) => Some(*number),
                };
                let missing =
                    || LaunchError::Bind(vec![crate::bind::BindError::Missing { names: vec![slot.name.clone()] }]);
                let value = value.ok_or_else(missing)?;
                let whole = value.to_i64();
                let (fits, expected) = match slot.kind {
                    SlotKind::Size => (whole.is_some_and(|x| (0..1 << 31).contains(&x)), "0 to 2^31 - 1"),
                    SlotKind::Stride => (whole.is_some_and(|x| x >= 0), "a whole number from 0 on"),
                    SlotKind::Scalar(elem) if !elem.is_float() => {
                        let format = int_format(elem);
                        let fits = value.to_i128().is_some_and(|x| (format.min()..=format.max()).contains(&x));
                        (fits, "a whole number in the range of its type")
                    }
                    SlotKind::Scalar(_) => (true, ""),
                };
                if !fits {
                    let name = slot.name.clone();
                    return Err(LaunchError::Bind(vec![crate::bind::BindError::Value { name, value, expected }]));
                }
                (values.ints[i], values.numbers[i]) = (whole, value);
            }
        }
        Ok(values)
    }

    /// Refuses tensors of other shapes than the kernels take, then other strides, and memory that is too short.
    pub(super) fn check(&self, tensors: &[Argument<'_>], values: &Values) -> Result<(), LaunchError> {
        let all = || self.given.iter().zip(tensors).filter_map(|(given, t)| Some((given, given.shape.as_ref()?, t)));
        // A wrong shape is a wrong shape, also if the strides of another tensor follow from it.
        for (given, shape, argument) in all() {
            if !shape.has_extents(argument, &values.ints) {
                return Err(LaunchError::tensor(&given.name, self.misfit(given, shape, argument, values)));
            }
        }
        for (given, shape, argument) in all() {
            shape.check(&given.name, &given.words, argument, &values.ints)?;
        }
        Ok(())
    }

    /// The shape of a tensor, the one that it should have, and what gives the sizes that differ.
    fn misfit(&self, given: &LauncherTensor, shape: &Shape, argument: &Argument<'_>, values: &Values) -> String {
        let mut reasons: Vec<String> = Vec::new();
        for slot in shape.differing(argument, &values.ints).flat_map(|dim| self.slots_in(&given.words.extents[dim])) {
            let Some(size) = values.ints[slot] else { continue };
            let Slot { name, from, .. } = &self.slots[slot];
            let reason = match from {
                From::Extent(other, dim) if self.given[*other].name == given.name => {
                    format!("its dimension {dim} has {name} = {size}")
                }
                From::Extent(other, _) => {
                    let other = &self.given[*other];
                    format!("`{}: {}` has {name} = {size}", other.name, other.words.shape())
                }
                From::Passed(..) | From::Default(_) | From::Stride(..) => format!("{name} is {size}"),
            };
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        shape.misfit(&given.words, argument, &values.ints, &reasons)
    }

    /// The slots of the names in an expression.
    fn slots_in(&self, text: &str) -> Vec<usize> {
        let names = |expr: Expr| expr.names().filter_map(|name| self.slot(name)).collect();
        Expr::parse(text).map_or_else(|_| Vec::new(), names)
    }

    /// Bytes of memory that each of the tensors must have, which were checked.
    pub(super) fn needed(&self, tensors: &[Argument<'_>]) -> Vec<u64> {
        tensors.iter().map(needed).collect()
    }

    /// Refuses what does not depend on values: before these are taken from the tensors.
    pub(super) fn accept(&self, tensors: &[Argument<'_>]) -> Result<(), LaunchError> {
        if tensors.len() != self.given.len() {
            let (found, expected) = (tensors.len(), self.given.len());
            return Err(LaunchError::Misfit(format!("{found} tensors were passed, expected {expected}")));
        }
        for (given, argument) in self.given.iter().zip(tensors) {
            let name = &given.name;
            let wrong = |what: String| Err(LaunchError::tensor(name, what));
            if argument.elem != given.elem {
                return wrong(format!("its elements are {}, expected {}", argument.elem.name(), given.elem.name()));
            }
            if argument.shape().len() != given.rank {
                let (found, expected) = (shapes::list(argument.shape()), given.words.shape());
                return wrong(format!("its shape is {found}, expected {expected}"));
            }
            if given.written && !argument.writable {
                return wrong("it is written, and was passed to be read".to_owned());
            }
        }
        Ok(())
    }
}

/// An expression of a contract over the slots of a table.
pub(super) fn flatten(text: &str, table: &Table) -> Result<Flat, LaunchError> {
    let flat = Expr::parse(text).and_then(|expr| expr.flatten(|name| table.slot(name)));
    flat.map_err(|error| LaunchError::Bind(vec![crate::bind::BindError::Expression { text: text.to_owned(), error }]))
}
