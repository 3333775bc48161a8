//! Contracts of compiled kernels: the emitter's [`Launch`], and the comment by which PTX names its contract.

use super::form::{
    Access, Contract, Dimension, I64, Im2colParam, Param, ParamKind, SCHEMA, Scratch, TensorMapParam, TensorParam, U32,
};
use crate::contract::hash::hash;
use crate::contract::number::Number;
use crate::contract::version::decimal_version;
use tilec_ir::cluster::MAX_BLOCKS;
use tilec_ir::interp;
use tilec_ptx::launch::{self, Launch};

/// What a comment of the PTX begins with that names a contract.
const MARK: &str = "launch contract of ";
/// Hexadecimal digits of an id.
const ID_DIGITS: usize = 16;

impl Contract {
    /// Whether clusters have more blocks than every device runs at once, which the launch must ask for.
    pub fn has_large_clusters(&self) -> bool {
        self.cluster.iter().map(|&n| i64::from(n)).product::<i64>() > MAX_BLOCKS
    }

    /// The contract of a lowered kernel; `version` is that of the PTX module it went into.
    pub fn new(launch: &Launch, version: (u8, u8)) -> Contract {
        Contract {
            schema: SCHEMA.to_owned(),
            entry: launch.entry.clone(),
            target: launch.target.name().to_owned(),
            ptx_version: decimal_version(version),
            id: None,
            block: launch.block,
            cluster: launch.cluster,
            programmatic: launch.programmatic,
            dynamic_smem_bytes: launch.dynamic_smem_bytes,
            grid: launch.grid.clone(),
            params: launch.params.iter().map(Param::from).collect(),
            requires: launch.requires.clone(),
        }
    }

    /// With the id that follows from the contents.
    pub(crate) fn identified(mut self) -> Contract {
        self.id = None;
        let text = serde_json::to_string(&self).expect("a contract has only string keys");
        self.id = Some(hash(&[&text])[..ID_DIGITS].to_owned());
        self
    }

    /// The comment of the PTX that says which contract it is launched by.
    pub(crate) fn mark(&self) -> Option<String> {
        Some(format!("{MARK}{}: {}", self.entry, self.id.as_ref()?))
    }

    /// The id of the contract by which `entry` of this PTX is launched, where that says so.
    pub fn id_in<'p>(ptx: &'p str, entry: &str) -> Option<&'p str> {
        let marks = ptx.lines().filter_map(|line| line.trim().strip_prefix("//")?.trim().strip_prefix(MARK));
        marks.filter_map(|mark| mark.split_once(": ")).find(|(of, _)| *of == entry).map(|(_, id)| id.trim())
    }

    /// The parameter called `name`.
    pub fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|p| p.name == name)
    }
}

impl From<&launch::LaunchParam> for Param {
    fn from(param: &launch::LaunchParam) -> Param {
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
                    scratch: scratch.map(|scratch| match scratch {
                        tilec_ir::types::Scratch::Elements => Scratch::Elements,
                        tilec_ir::types::Scratch::Signals => Scratch::Signals,
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
                    interp::Number::Float(x) => Number::Float(x),
                    interp::Number::Wide(x) => {
                        Number::Int(i64::try_from(x).expect("bug: a default is a literal, of 63 bits and a sign"))
                    }
                });
                ParamKind::Scalar { elem: *elem, default }
            }
        };
        Param { name: param.name.clone(), kind }
    }
}
