//! Tensor maps.

use super::body::Body;
use super::interface::HeaderError;
use crate::contract::{Dimension, TensorMapParam, TensorParam};
use tilec_ir::layout::hardware::Exchange;
use tilec_ir::types::Elem;

/// `CUtensorMapDataType` of elements; for elements smaller than a byte the map counts bytes.
fn data_type(elem: Elem) -> Option<&'static str> {
    Some(match elem {
        Elem::U8 | Elem::I8 | Elem::E4M3 | Elem::E5M2 | Elem::E2M1 | Elem::UE8M0 | Elem::I4 | Elem::U4 => "UINT8",
        Elem::U16 | Elem::I16 => "UINT16",
        Elem::U32 => "UINT32",
        Elem::I32 => "INT32",
        Elem::U64 => "UINT64",
        Elem::I64 => "INT64",
        Elem::F16 => "FLOAT16",
        // As it is: the type TFLOAT32 would round, and a tf32 is truncated.
        Elem::F32 | Elem::TF32 => "FLOAT32",
        Elem::F64 => "FLOAT64",
        Elem::BF16 => "BFLOAT16",
        Elem::Bool => return None,
    })
}

fn swizzle(mode: Exchange) -> &'static str {
    match mode {
        Exchange::Plain => "NONE",
        Exchange::Bytes32 => "32B",
        Exchange::Bytes64 => "64B",
        Exchange::Bytes128 => "128B",
    }
}

/// Five numbers: the list, padded with ones.
fn five(list: impl Iterator<Item = u32>) -> String {
    let numbers: Vec<String> = list.chain(std::iter::repeat(1)).take(5).map(|n| n.to_string()).collect();
    format!("{{{}}}", numbers.join(", "))
}

/// Statements that encode the map into `map<at>` from the tensor `t[tensor_at]`.
pub(super) fn encode(
    body: &mut Body<'_>,
    at: usize,
    map: &TensorMapParam,
    tensor: &TensorParam,
    tensor_at: usize,
) -> Result<(), HeaderError> {
    let elem = tensor.elem;
    let data_type = data_type(elem).expect("bug: the compiler makes no map of such elements");
    let modes: Vec<u32> = tensor.shape.iter().map(Dimension::parts).map(|parts| parts.len() as u32).collect();
    let first = |dim: u32| modes[..dim as usize].iter().sum::<u32>();
    let mut boxed = map.extents.clone();
    if elem.per(1) > 1 {
        boxed[0] /= elem.per(1);
    }
    let steps = match &map.im2col {
        None => vec![1],
        Some(of) => std::iter::once(1).chain(of.steps.iter().copied()).collect(),
    };
    let rank = map.dims.len() + usize::from(map.ended.is_some());
    body.line("{");
    body.line(&format!("    static const tilec_map map = {{{}, CU_TENSOR_MAP_DATA_TYPE_{data_type}, CU_TENSOR_MAP_SWIZZLE_{}, {rank}, {}, {}, {}, {}, {}}};",
        elem.bits(),
        swizzle(map.swizzle),
        five(map.dims.iter().map(|&d| first(d))),
        five(map.dims.iter().map(|&d| modes[d as usize])),
        map.ended.unwrap_or(0),
        five(boxed.into_iter()),
        five(steps.into_iter()),
    ));
    match &map.im2col {
        None => body.line(&format!("    code = tilec_encode(tilec_map_at(&map{at}), &map, &t[{tensor_at}]);")),
        Some(of) => {
            body.line("    int64_t lower[3] = {0, 0, 0}, upper[3] = {0, 0, 0};");
            for (name, corners) in [("lower", &of.lower), ("upper", &of.upper)] {
                for (i, text) in corners.iter().enumerate() {
                    let value = body.expression(text)?;
                    body.line(&format!("    {name}[{i}] = {value};"));
                }
            }
            let none = body.no_value();
            body.line(&format!("    if (e)\n            return {none};"));
            body.line(&format!(
                "    code = tilec_encode_im2col(tilec_map_at(&map{at}), &map, &t[{tensor_at}], lower, upper);"
            ));
        }
    }
    body.line("    if (code != 0)\n            return code;");
    body.line("}");
    Ok(())
}
