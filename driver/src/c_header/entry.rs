//! The function that checks and launches one entry of the PTX.

use super::body::{Body, Placed, Subject, overlaps};
use super::interface::{HeaderError, scalar_type};
use super::map;
use super::messages::{Kind, Messages};
use super::text::member;
use crate::contract::{Contract, Param, ParamKind, Scratch, TensorParam};
use std::fmt::Write as _;
use tilec_ir::types::Elem;

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
    who: Subject,
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
    body.line(&format!("if (room->step == TILEC_COUNT)\n        return {};", active(contract)));
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

/// The call that counts how many clusters run at the same time.
fn active(contract: &Contract) -> String {
    let shared = contract.dynamic_smem_bytes;
    if is_plain(contract) {
        return format!("tilec_active_blocks(function, block, {shared}, &room->clusters)");
    }
    format!("tilec_active_clusters(function, block, {shared}, cluster, &room->clusters)")
}

/// Whether a launch needs no attributes.
fn is_plain(contract: &Contract) -> bool {
    contract.cluster == [1, 1, 1] && !contract.programmatic
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
    if !is_plain(contract) {
        let _ = writeln!(out, "    static const unsigned int cluster[3] = {};", three(&contract.cluster));
    }
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
    if is_plain(contract) {
        let _ = writeln!(out, "    return tilec_launch(function, grid, block, {shared}, stream, {params});");
    } else {
        let programmatic = u8::from(contract.programmatic);
        let _ = writeln!(
            out,
            "    return tilec_launch_with(function, grid, block, {shared}, stream, cluster, {programmatic}, {params});"
        );
    }
    out.push_str("}\n");
    out
}
