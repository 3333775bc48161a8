//! The function that checks and launches one entry of the PTX.

use super::interface::{HeaderError, MODES, scalar_type};
use super::messages::{Kind, Messages};
use super::text::{comment, member};
use super::{arithmetic, map};
use crate::contract::{Contract, Dimension, Param, ParamKind, Scratch, TensorParam};
use std::fmt::Write as _;
use tilec_ir::types::Elem;

/// Largest grid extents (CUDA programming guide, "Technical Specifications per Compute Capability").
const MAX_GRID: [&str; 3] = ["2147483647", "65535", "65535"];

/// The statements of a function over `v`, the arguments of a kernel, with `e` for what has no value.
pub(super) struct Body<'a> {
    text: String,
    contract: &'a Contract,
    /// What messages begin with.
    who: String,
    pub(super) messages: &'a mut Messages,
}

impl<'a> Body<'a> {
    pub(super) fn new(contract: &'a Contract, who: &str, messages: &'a mut Messages) -> Body<'a> {
        Body { text: String::new(), contract, who: who.to_owned(), messages }
    }

    pub(super) fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "    {text}");
    }

    /// Leaves with a code where the condition of C holds.
    pub(super) fn refuse(&mut self, condition: &str, kind: Kind, what: &str) {
        let code = self.messages.code(kind, format!("{}: {what}", self.who));
        self.line(&format!("if ({condition})\n        return {code};"));
    }

    /// The code of an expression without a value.
    pub(super) fn no_value(&mut self) -> String {
        let what = format!("{}: an expression of the contract overflows or divides by zero", self.who);
        self.messages.code(Kind::Expression, what)
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
                    self.refuse(&condition, Kind::Value, &format!("`{name}` must be 1 to 2^31 - 1"));
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
    fn grid(&mut self) -> Result<(), HeaderError> {
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

    /// Statements that refuse sizes of 0 and whatever breaks a precondition.
    fn preconditions(&mut self) -> Result<(), HeaderError> {
        let contract = self.contract;
        for Param { name, .. } in contract.params.iter().filter(|p| matches!(p.kind, ParamKind::Size { .. })) {
            let zero = format!("{name} == 0");
            if !contract.requires.contains(&zero) {
                let condition = format!("v->{} == 0", member(name));
                self.refuse(
                    &condition,
                    Kind::Value,
                    &format!("`{name}` is 0, which needs a kernel of its own (--zero {name})"),
                );
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
        // Of an array of pointers the array itself is what the host knows.
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
    fn aligned(&mut self, at: usize, name: &str, align: u32) {
        let condition = format!("t[{at}].address % {} != 0", align.max(1));
        if align > 1 {
            self.refuse(&condition, Kind::Address, &format!("the address of `{name}` must be a multiple of {align}"));
        }
        let condition = format!("room->step != TILEC_MEASURE && t[{at}].address == 0 && t[{at}].bytes != 0");
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
            // Two that are written are compared once; what arrays of pointers point to, the device alone knows.
            if (under.written && j < i) || over.pointers != under.pointers {
                continue;
            }
            let allowed = over.may_alias.iter().any(|name| name == under.name);
            let mut condition = format!("tilec_meet(&t[{i}], &t[{j}])");
            if allowed {
                let _ = write!(condition, " && !tilec_alike(&t[{i}], &t[{j}])");
            }
            let rule = if allowed { ", which is allowed where both lie alike" } else { "" };
            let what = format!("`{}` is written and overlaps `{}`{rule}", over.name, under.name);
            body.refuse(&format!("room->step != TILEC_MEASURE && {condition}"), Kind::Overlap, &what);
        }
    }
}

/// The value of a scalar as the kernel takes it: type and expression.
fn scalar(elem: Elem, value: &str) -> (&'static str, String) {
    match elem {
        Elem::F16 => ("uint16_t", format!("tilec_f16({value})")),
        Elem::BF16 => ("uint16_t", format!("tilec_bf16({value})")),
        Elem::TF32 => ("uint32_t", format!("tilec_tf32({value})")),
        Elem::I4 => ("uint8_t", format!("(uint8_t)({value} & 15)")),
        Elem::F32
        | Elem::F64
        | Elem::I8
        | Elem::U8
        | Elem::U4
        | Elem::I16
        | Elem::U16
        | Elem::I32
        | Elem::U32
        | Elem::I64
        | Elem::U64
        | Elem::Bool
        | Elem::E4M3
        | Elem::E5M2
        | Elem::E2M1
        | Elem::UE8M0 => (scalar_type(elem).0, value.to_owned()),
    }
}

/// The function of an entry: `int NAME(function, stream, v, room)`.
pub(super) fn function(
    contract: &Contract,
    symbol: &str,
    args: &str,
    who: &str,
    messages: &mut Messages,
) -> Result<String, HeaderError> {
    let mut body = Body::new(contract, who, messages);
    body.grid()?;
    body.preconditions()?;
    let tensors: Vec<(&Param, &TensorParam)> =
        contract.params.iter().filter_map(|p| Some((p, p.kind.tensor()?))).collect();
    let pointers = |param: &Param| matches!(param.kind, ParamKind::Pointers(_));
    for (at, (param, tensor)) in tensors.iter().enumerate() {
        body.tensor(at, &param.name, tensor, pointers(param))?;
        let memory = match tensor.scratch {
            None => format!("v->{}", member(&param.name)),
            Some(Scratch::Elements) => format!("tilec_take(&room->workspace, t[{at}].bytes)"),
            Some(Scratch::Signals) => format!("tilec_take(&room->signals, t[{at}].bytes)"),
        };
        body.line(&format!("t[{at}].address = {memory};"));
    }
    for (scratch, name) in [(Scratch::Elements, "workspace"), (Scratch::Signals, "signals")] {
        if tensors.iter().any(|(_, t)| t.scratch == Some(scratch)) {
            let what = format!("`{name}` is absent, too small, or no multiple of 256");
            body.refuse(&format!("!tilec_fits(room, &room->{name})"), Kind::Scratch, &what);
        }
    }
    for (at, (param, tensor)) in tensors.iter().enumerate().filter(|(_, (_, t))| t.scratch.is_none()) {
        body.aligned(at, &param.name, if pointers(param) { 8 } else { tensor.align });
    }
    let placed: Vec<Placed<'_>> = tensors
        .iter()
        .map(|(param, tensor)| Placed {
            name: &param.name,
            written: tensor.access.writes(),
            pointers: pointers(param),
            may_alias: tensor.may_alias.clone(),
        })
        .collect();
    overlaps(&mut body, &placed);
    body.line("if (room->step != TILEC_LAUNCH)\n        return 0;");
    let at = |name: &str| tensors.iter().position(|(p, _)| p.name == name);
    let (mut declared, mut passed) = (String::new(), Vec::new());
    for (i, param) in contract.params.iter().enumerate() {
        let value = format!("v->{}", member(&param.name));
        passed.push(match &param.kind {
            ParamKind::Tensor(_) | ParamKind::Pointers(_) => {
                format!("&t[{}].address", at(&param.name).expect("it is in the list of tensors"))
            }
            ParamKind::TensorMap(of) => {
                let tensor_at = at(&of.tensor).expect("a contract describes tensors that it has");
                map::encode(&mut body, i, of, tensors[tensor_at].1, tensor_at)?;
                let _ = writeln!(declared, "    tilec_map_room map{i};");
                format!("tilec_map_at(&map{i})")
            }
            ParamKind::Size { .. } => {
                let _ = writeln!(declared, "    uint32_t p{i} = (uint32_t){value};");
                format!("&p{i}")
            }
            ParamKind::Stride { .. } => {
                let _ = writeln!(declared, "    int64_t p{i} = {value};");
                format!("&p{i}")
            }
            ParamKind::Scalar { elem, .. } => {
                let (ty, value) = scalar(*elem, &value);
                let _ = writeln!(declared, "    {ty} p{i} = {value};");
                format!("&p{i}")
            }
        });
    }
    let code = contract.params.iter().any(|p| matches!(p.kind, ParamKind::TensorMap(_)));
    Ok(assembled(contract, symbol, args, &declared, &passed, tensors.len(), code, body.finish()))
}

/// The function as a whole.
#[expect(clippy::too_many_arguments, reason = "the parts of one text, each used once")]
fn assembled(
    contract: &Contract,
    symbol: &str,
    args: &str,
    declared: &str,
    passed: &[String],
    tensors: usize,
    code: bool,
    statements: String,
) -> String {
    let three = |of: &[u32; 3]| format!("{{{}, {}, {}}}", of[0], of[1], of[2]);
    let block = three(&contract.block);
    let mut out = format!(
        "static inline int {symbol}(CUfunction function, CUstream stream, const {args} *v, tilec_room *room)\n{{\n"
    );
    let _ = writeln!(out, "    static const unsigned int block[3] = {block};");
    out.push_str("    int64_t grid[3];\n    int e = 0, undefined = 0, holds = 0;\n");
    if code {
        out.push_str("    int code;\n");
    }
    if tensors > 0 {
        let _ = writeln!(out, "    tilec_tensor t[{tensors}];");
    }
    out.push_str(declared);
    if !passed.is_empty() {
        let _ = writeln!(out, "    void *params[{}];", passed.len());
    }
    out.push_str("    (void)v;\n    (void)holds;\n");
    if tensors > 0 {
        out.push_str("    memset(t, 0, sizeof t);\n");
    }
    out.push_str(&statements);
    for (i, of) in passed.iter().enumerate() {
        let _ = writeln!(out, "    params[{i}] = {of};");
    }
    let params = if passed.is_empty() { "NULL" } else { "params" };
    let shared = contract.dynamic_smem_bytes;
    let clustered = contract.cluster != [1, 1, 1];
    if clustered || contract.programmatic {
        let _ = writeln!(
            out,
            "    {{\n        static const unsigned int cluster[3] = {};\n        return tilec_launch_with(function, grid, block, {shared}, stream, cluster, {}, {params});\n    }}",
            three(&contract.cluster),
            u8::from(contract.programmatic)
        );
    } else {
        let _ = writeln!(out, "    return tilec_launch(function, grid, block, {shared}, stream, {params});");
    }
    out.push_str("}\n");
    out
}
