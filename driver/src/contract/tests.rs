//! The contract made from the output of lowering.

use super::*;
use pretty_assertions::assert_eq;
use tilec_ir::interp;
use tilec_ir::target::Target;
use tilec_ir::types::Elem;
use tilec_ptx::launch::{self, Launch};

/// The contract of a matrix product, with every kind of parameter.
pub(crate) fn gemm() -> Contract {
    let tensor = |name: &str, elem, access, shape: [&str; 2]| launch::LaunchParam {
        name: name.to_owned(),
        kind: launch::ParamKind::Tensor {
            elem,
            align: 16,
            access,
            shape: shape.map(|extent| vec![extent.to_owned()]).to_vec(),
            strides: vec![vec![format!("{name}_ld")], vec!["1".to_owned()]],
            pointers: false,
            scratch: None,
            reads_gaps: false,
            constant: false,
            may_alias: Vec::new(),
        },
    };
    let param = |name: &str, kind| launch::LaunchParam { name: name.to_owned(), kind };
    let packed = |e: &str| launch::ParamKind::Stride { packed: Some(e.to_owned()) };
    of_kernel(
        &Launch {
            entry: "gemm".to_owned(),
            target: Target::Sm70,
            block: [128, 1, 1],
            cluster: [1, 1, 1],
            programmatic: false,
            dynamic_smem_bytes: 32768,
            grid: ["ceildiv(N, 128)".to_owned(), "ceildiv(M, 128)".to_owned(), "1".to_owned()],
            params: vec![
                tensor("A", Elem::F16, launch::Access::Read, ["M", "K"]),
                tensor("B", Elem::F16, launch::Access::Read, ["K", "N"]),
                tensor("C", Elem::F32, launch::Access::ReadWrite, ["M", "N"]),
                param("M", launch::ParamKind::Size),
                param("K", launch::ParamKind::Size),
                param("N", launch::ParamKind::Size),
                param("A_ld", packed("K")),
                param("B_ld", packed("N")),
                param("C_ld", launch::ParamKind::Stride { packed: None }),
                param(
                    "alpha",
                    launch::ParamKind::Scalar { elem: Elem::F32, default: Some(interp::Number::Float(1.0)) },
                ),
                param("beta", launch::ParamKind::Scalar { elem: Elem::F32, default: None }),
            ],
            requires: vec!["K % 8 == 0".to_owned(), "A_ld % 8 == 0".to_owned()],
        },
        (6, 4),
    )
}

#[test]
fn contracts_say_what_lowering_says() {
    let written = include_str!("../../../launch/src/contract/tests/gemm.json");
    assert_eq!(to_json(&[gemm()]), written);
}
