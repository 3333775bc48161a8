//! Contracts of compiled kernels: the emitter's [`Launch`] as data.

use crate::contract::number::Number;
use crate::contract::version::decimal_version;
use crate::contract::{
    Access, Contract, Dimension, I64, Im2colParam, Param, ParamKind, SCHEMA, SCHEMA_ENDED, Scratch, TensorMapParam,
    TensorParam, U32,
};
use std::collections::BTreeSet;
use tilec_ir::interp;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ptx::launch::{self, Launch};

/// The contract of a lowered kernel; `version` is that of the PTX module it went into.
pub(crate) fn of_kernel(launch: &Launch, version: (u8, u8)) -> Contract {
    let ended = |p: &launch::LaunchParam| matches!(&p.kind, launch::ParamKind::TensorMap(map) if map.ended.is_some());
    Contract {
        schema: if launch.params.iter().any(ended) { SCHEMA_ENDED } else { SCHEMA }.to_owned(),
        entry: launch.entry.clone(),
        target: launch.target.name().to_owned(),
        ptx_version: decimal_version(version),
        id: None,
        block: launch.block,
        cluster: launch.cluster,
        programmatic: launch.programmatic,
        dynamic_smem_bytes: launch.dynamic_smem_bytes,
        grid: launch.grid.clone(),
        params: launch.params.iter().map(param).collect(),
        requires: launch.requires.clone(),
    }
}

/// The tensors of `kernel` to which some copy stores non-atomically.
pub(crate) fn stored(kernel: &Kernel) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    kernel.walk(kernel.body, &mut |k, _, stmt| {
        if let StmtData::Copy { dst, attrs, .. } = &k.stmts[stmt]
            && attrs.reduce.is_none()
            && let Some(view) = tilec_ir::typing::resolve_view(k, *dst)
        {
            names.insert(k.values[view.base].name.clone());
        }
    });
    names
}

fn param(param: &launch::LaunchParam) -> Param {
    let kind = match &param.kind {
        launch::ParamKind::Tensor {
            elem,
            align,
            access,
            shape,
            strides,
            pointers,
            scratch,
            reads_gaps,
            constant,
            may_alias,
        } => {
            let tensor = TensorParam {
                elem: *elem,
                align: *align,
                access: match access {
                    launch::Access::Read => Access::Read,
                    launch::Access::Write => Access::Write,
                    launch::Access::ReadWrite => Access::ReadWrite,
                },
                shape: shape.iter().cloned().map(Dimension::from).collect(),
                strides: strides.iter().cloned().map(Dimension::from).collect(),
                reads_gaps: *reads_gaps,
                constant: *constant,
                scratch: scratch.map(|scratch| match scratch {
                    tilec_ir::types::Scratch::Elements => Scratch::Elements,
                    tilec_ir::types::Scratch::Signals => Scratch::Signals,
                    tilec_ir::types::Scratch::Cluster => panic!("bug: no caller provides distributed shared memory"),
                }),
                may_alias: may_alias.clone(),
            };
            if *pointers { ParamKind::Pointers(tensor) } else { ParamKind::Tensor(tensor) }
        }
        launch::ParamKind::TensorMap(map) => ParamKind::TensorMap(TensorMapParam {
            tensor: map.tensor.clone(),
            dims: map.dims.clone(),
            extents: map.extents.clone(),
            swizzle: map.exchange,
            ended: map.ended,
            im2col: map.im2col.as_ref().map(|of| Im2colParam {
                lower: of.lower.clone(),
                upper: of.upper.clone(),
                steps: of.steps.clone(),
            }),
        }),
        launch::ParamKind::Size => ParamKind::Size { ty: U32::U32 },
        launch::ParamKind::Stride { packed } => ParamKind::Stride { ty: I64::I64, packed: packed.clone() },
        launch::ParamKind::Scalar { elem, default } => {
            let default = default.map(|x| match x {
                interp::Number::Float(x) if elem.is_float() => Number::Float(x),
                interp::Number::Float(x) => Number::Float(x).to_i64().map_or(Number::Float(x), Number::Int),
                interp::Number::Wide(x) => {
                    Number::Int(i64::try_from(x).expect("bug: a default is a literal, of 63 bits and a sign"))
                }
            });
            ParamKind::Scalar { elem: *elem, default }
        }
    };
    Param { name: param.name.clone(), kind }
}
