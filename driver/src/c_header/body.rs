//! Statements of the functions of a header.

use super::arithmetic;
use super::interface::{HeaderError, MODES};
use super::messages::{Kind, Messages};
use super::text::{comment, member};
use crate::contract::{Contract, Dimension, Param, ParamKind, TensorParam};
use std::fmt::Write as _;
use tilec_ir::types::Elem;
use tilec_launch::bind::MAX_GRID;
use tilec_launch::remedies::{no_variant, takes_zero};

/// The subject of messages.
#[derive(Clone)]
pub(super) struct Subject {
    /// The kernel and its target.
    pub(super) kernel: String,
    /// The variant, if there are several.
    pub(super) variant: Option<String>,
}

impl Subject {
    /// The code of a message. For reasons against a single variant, it is the code that none fits.
    pub(super) fn code(&self, messages: &mut Messages, kind: Kind, what: &str) -> String {
        let text = match &self.variant {
            Some(variant) if kind.is_of_variant() => no_variant(variant, what),
            _ => what.to_owned(),
        };
        messages.code(kind, format!("{}: {text}", self.kernel))
    }
}

/// The statements of a function over `v`, the arguments of a kernel, with `e` for what has no value.
pub(super) struct Body<'a> {
    text: String,
    contract: &'a Contract,
    who: Subject,
    pub(super) messages: &'a mut Messages,
}

impl<'a> Body<'a> {
    pub(super) fn new(contract: &'a Contract, who: Subject, messages: &'a mut Messages) -> Body<'a> {
        Body { text: String::new(), contract, who, messages }
    }

    pub(super) fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "    {text}");
    }

    /// Leaves with a code where the condition of C holds.
    pub(super) fn refuse(&mut self, condition: &str, kind: Kind, what: &str) {
        let code = self.who.code(self.messages, kind, what);
        match &self.who.variant {
            // Things that keep a variant from being launched are counted where none is launched.
            Some(_) if kind.is_of_variant() => {
                self.line(&format!("if (({condition}) && tilec_refused(room, {code}))\n        return {code};"));
            }
            _ => self.line(&format!("if ({condition})\n        return {code};")),
        }
    }

    /// The code of an expression without a value.
    pub(super) fn no_value(&mut self) -> String {
        self.who.code(self.messages, Kind::Expression, "an expression of the contract overflows or divides by zero")
    }

    /// An expression of the contract.
    pub(super) fn expression(&self, text: &str) -> Result<String, HeaderError> {
        let failed =
            |error| HeaderError::Expression { entry: self.contract.entry.clone(), text: text.to_owned(), error };
        arithmetic::expression(text, &|name| self.name(name)).map_err(failed)
    }

    /// A name in an expression.
    fn name(&self, name: &str) -> String {
        let value = format!("v->{}", member(name));
        match self.contract.param(name).map(|p| &p.kind) {
            Some(ParamKind::Scalar { elem: Elem::U64, .. }) => format!("tilec_unsigned({value}, &e)"),
            Some(ParamKind::Scalar { .. }) => format!("(int64_t){value}"),
            _ => value,
        }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    /// Statements that refuse values that the parameters do not take, and give packed strides their values: `v` may be written.
    pub(super) fn values(&mut self) -> Result<(), HeaderError> {
        let params = self.contract.params.iter();
        for Param { name, kind } in params.clone() {
            let value = format!("v->{}", member(name));
            match kind {
                ParamKind::Size { .. } => {
                    let condition = format!("{value} < 0 || {value} > INT32_MAX");
                    self.refuse(&condition, Kind::Value, &format!("`{name}` must be 0 to 2^31 - 1"));
                }
                ParamKind::Scalar { elem: Elem::I4, .. } => {
                    let condition = format!("{value} < -8 || {value} > 7");
                    self.refuse(&condition, Kind::Value, &format!("`{name}` must be -8 to 7"));
                }
                ParamKind::Scalar { elem: Elem::U4, .. } => {
                    self.refuse(&format!("{value} > 15"), Kind::Value, &format!("`{name}` must be 0 to 15"));
                }
                ParamKind::Tensor(_)
                | ParamKind::Pointers(_)
                | ParamKind::TensorMap(_)
                | ParamKind::Stride { .. }
                | ParamKind::Scalar { .. } => {}
            }
        }
        for Param { name, kind } in params {
            let ParamKind::Stride { packed, .. } = kind else { continue };
            let value = format!("v->{}", member(name));
            if let Some(packed) = packed {
                let packed = self.expression(packed)?;
                self.line(&format!("if ({value} == TILEC_PACKED)\n        {value} = {packed};"));
            }
            self.refuse(&format!("{value} < 0"), Kind::Value, &format!("`{name}` must be at least 0"));
        }
        let none = self.no_value();
        self.line(&format!("if (e)\n        return {none};"));
        Ok(())
    }

    /// Statements that work out the grid, and leave where it has no block.
    pub(super) fn grid(&mut self) -> Result<(), HeaderError> {
        for (axis, text) in self.contract.grid.iter().enumerate() {
            let value = self.expression(text)?;
            self.line(&comment(&format!("grid: {text}")));
            self.line("e = 0;");
            self.line(&format!("grid[{axis}] = {value};"));
            self.line(&format!("if (!e && grid[{axis}] == 0)\n        return 0;"));
            self.line("undefined |= e;");
        }
        Ok(())
    }

    /// Statements that reject sizes of 0 and violated preconditions.
    pub(super) fn preconditions(&mut self) -> Result<(), HeaderError> {
        let contract = self.contract;
        for Param { name, .. } in contract.params.iter().filter(|p| matches!(p.kind, ParamKind::Size { .. })) {
            let zero = format!("{name} == 0");
            if !contract.requires.contains(&zero) {
                let condition = format!("v->{} == 0", member(name));
                self.refuse(&condition, Kind::Value, &format!("`{name}` is 0: {}", takes_zero(name)));
            }
        }
        let none = self.no_value();
        self.line("e = 0;");
        for text in &contract.requires {
            let condition = self.expression(text)?;
            self.line(&format!("holds = {condition};"));
            self.line(&format!("if (e)\n        return {none};"));
            self.refuse("!holds", Kind::Requires, &format!("requires {text}"));
        }
        self.line(&format!("if (undefined)\n        return {none};"));
        for (axis, most) in MAX_GRID.iter().enumerate() {
            let condition = format!("grid[{axis}] < 1 || grid[{axis}] > {most}");
            self.refuse(&condition, Kind::Grid, &format!("axis {axis} of the grid must have 1 to {most} blocks"));
        }
        Ok(())
    }

    /// Statements that describe a tensor in `t[at]`, but for its address.
    pub(super) fn tensor(
        &mut self,
        at: usize,
        name: &str,
        tensor: &TensorParam,
        pointers: bool,
    ) -> Result<(), HeaderError> {
        // For an array of pointers, the host knows only the array itself.
        let list = |dims: &[Dimension]| dims.iter().flat_map(Dimension::parts).cloned().collect::<Vec<String>>();
        let (shape, strides, bits) = match pointers {
            false => (list(&tensor.shape), list(&tensor.strides), tensor.elem.bits()),
            true => (list(&tensor.shape[..1]), vec!["1".to_owned()], 64),
        };
        if shape.len() > MODES {
            let (entry, tensor, modes) = (self.contract.entry.clone(), name.to_owned(), shape.len());
            return Err(HeaderError::Modes { entry, tensor, modes });
        }
        self.line(&comment(&format!("`{name}`")));
        self.line(&format!("t[{at}].modes = {};", shape.len()));
        for (i, (extent, stride)) in shape.iter().zip(&strides).enumerate() {
            let (extent, stride) = (self.expression(extent)?, self.expression(stride)?);
            self.line(&format!("t[{at}].shape[{i}] = {extent};"));
            self.line(&format!("t[{at}].strides[{i}] = {stride};"));
        }
        let none = self.no_value();
        self.line(&format!("if (e)\n        return {none};"));
        let condition = format!("!tilec_extent(&t[{at}], {bits})");
        self.refuse(&condition, Kind::Grid, &format!("`{name}` is too large, or has a negative extent or stride"));
        Ok(())
    }

    /// A statement that refuses an address which is null, or not aligned.
    pub(super) fn aligned(&mut self, at: usize, name: &str, align: u32) {
        let condition = format!("t[{at}].address % {} != 0", align.max(1));
        if align > 1 {
            self.refuse(&condition, Kind::Address, &format!("the address of `{name}` must be a multiple of {align}"));
        }
        let condition = format!("room->step > TILEC_COUNT && t[{at}].address == 0 && t[{at}].bytes != 0");
        self.refuse(&condition, Kind::Address, &format!("the address of `{name}` is null"));
    }
}

/// A tensor of a list, for the statements that compare memory.
pub(super) struct Placed<'a> {
    pub(super) name: &'a str,
    pub(super) written: bool,
    pub(super) pointers: bool,
    pub(super) may_alias: Vec<String>,
}

/// Statements that refuse memory which is written and shared.
pub(super) fn overlaps(body: &mut Body<'_>, tensors: &[Placed<'_>]) {
    for (i, over) in tensors.iter().enumerate().filter(|(_, t)| t.written) {
        for (j, under) in tensors.iter().enumerate().filter(|(j, _)| *j != i) {
            // Each pair of written tensors is compared once. Only the device knows the tensors of an array of
            // pointers.
            if (under.written && j < i) || over.pointers != under.pointers {
                continue;
            }
            let allowed = over.may_alias.iter().any(|name| name == under.name);
            let mut condition = format!("tilec_meet(&t[{i}], &t[{j}])");
            if allowed {
                let _ = write!(condition, " && !tilec_alike(&t[{i}], &t[{j}])");
            }
            let rule =
                if allowed { ", which is allowed if both have the same address, extents and strides" } else { "" };
            let what = format!("`{}` is written and overlaps `{}`{rule}", over.name, under.name);
            body.refuse(&format!("room->step > TILEC_COUNT && {condition}"), Kind::Overlap, &what);
        }
    }
}
