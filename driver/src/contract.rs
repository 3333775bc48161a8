//! The launch contract: what a host needs to launch a kernel, as JSON (`docs/launch-contract.md`).
//!
//! The emitter's [`Launch`] is turned into [`Contract`], which is written and read back with serde. Our own runner works
//! from the JSON alone, so that nothing a kernel needs can be missing from it.

use crate::hash::hash;
use crate::number::Number;
use crate::version::decimal_version;

use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use tilec_ir::interp;
use tilec_ir::layout::hardware::Exchange;
use tilec_ir::types::Elem;
use tilec_ptx::launch::{self, Launch};

/// The value of `schema` in every contract.
pub const SCHEMA: &str = "tilec.launch/1";
/// The value of `schema` in a file in which a kernel has several variants.
pub const SCHEMA_VARIANTS: &str = "tilec.launch/2";
/// What a comment of the PTX begins with that names a contract.
const MARK: &str = "launch contract of ";
/// Hexadecimal digits of an id.
const ID_DIGITS: usize = 16;

/// What one kernel needs from its host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Contract {
    /// [`SCHEMA`].
    pub schema: String,
    /// Entry name in the PTX.
    pub entry: String,
    /// Target of the PTX, such as `sm_70`.
    pub target: String,
    /// `.version` of the PTX, such as `6.4`: the driver must know it.
    pub ptx_version: String,
    /// What the PTX calls this contract by, in a comment that `Contract::mark` makes: a hash of all else that stands here. Absent
    /// where the contract was written by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Threads per block.
    pub block: [u32; 3],
    /// Blocks per cluster; `[1, 1, 1]`: no cluster launch.
    pub cluster: [u32; 3],
    /// The launch may begin while the one in front of it in the stream ends: programmatic stream serialization is allowed, and asked
    /// for by the launch attribute of that name. Without it the launch is as any other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub programmatic: bool,
    /// Dynamic shared memory of a block in bytes; above 48 KiB the function attribute must be raised.
    pub dynamic_smem_bytes: u32,
    /// Grid extents as expressions over sizes, strides and integer scalars.
    pub grid: [String; 3],
    /// Kernel parameters in the order in which they are passed.
    pub params: Vec<Param>,
    /// Preconditions as Boolean expressions; all must hold before the launch.
    pub requires: Vec<String>,
}

/// A kernel parameter.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Param {
    /// Its name in the source, unique in the kernel.
    pub name: String,
    /// What it is.
    #[serde(flatten)]
    pub kind: ParamKind,
}

/// What a parameter is, and how it is passed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ParamKind {
    /// The device address of a tensor, 64 bits.
    Tensor(TensorParam),
    /// The device address of an array of device addresses, 64 bits each: one for every index of the first dimension.
    Pointers(TensorParam),
    /// A descriptor of a tensor, 128 bytes by value: what `cuTensorMapEncodeTiled` makes.
    #[serde(rename = "tensor_map")]
    TensorMap(TensorMapParam),
    /// An extent, at least 1 and less than 2^31.
    Size {
        /// How it is passed.
        #[serde(rename = "type")]
        ty: U32,
    },
    /// A stride in elements, at least 0.
    Stride {
        /// How it is passed.
        #[serde(rename = "type")]
        ty: I64,
        /// Its value when the tensor is packed, as an expression; absent where packing is not defined.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        packed: Option<String>,
    },
    /// A scalar.
    Scalar {
        /// Element type.
        #[serde(rename = "type", with = "elem_name")]
        elem: Elem,
        /// Default; infinities and NaN are the words `inf`, `-inf` and `nan`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        default: Option<Number>,
    },
}

/// What is said of a dimension of a tensor: an expression, or one for each of its modes, outermost first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Dimension {
    /// Of a dimension with one stride.
    One(String),
    /// Of a dimension whose index is decomposed like a number into digits, the last one fastest.
    Modes(Vec<String>),
}

impl Dimension {
    /// The expressions in it.
    pub fn parts(&self) -> &[String] {
        match self {
            Dimension::One(text) => std::slice::from_ref(text),
            Dimension::Modes(texts) => texts,
        }
    }
}

impl From<Vec<String>> for Dimension {
    fn from(parts: Vec<String>) -> Dimension {
        match <[String; 1]>::try_from(parts) {
            Ok([one]) => Dimension::One(one),
            Err(parts) => Dimension::Modes(parts),
        }
    }
}

impl From<&str> for Dimension {
    fn from(text: &str) -> Dimension {
        Dimension::One(text.to_owned())
    }
}

/// A tensor, or what an array of pointers points to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TensorParam {
    /// Element type.
    #[serde(rename = "type", with = "elem_name")]
    pub elem: Elem,
    /// Alignment of the address, or of each of the addresses, in bytes.
    pub align: u32,
    /// How the kernel uses it.
    pub access: Access,
    /// Extents, as expressions.
    pub shape: Vec<Dimension>,
    /// Strides in elements, as expressions; grouped as the extents are, of which the first of an array of pointers has none.
    pub strides: Vec<Dimension>,
    /// The kernel also reads what lies between the elements, and throws it away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reads_gaps: bool,
    /// Memory that the host provides, and that is no input and no result: see [`Scratch`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratch: Option<Scratch>,
    /// Tensors that the kernel reads at whose address this one, which it writes, may stand: if the strides are equal too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may_alias: Vec<String>,
}

/// What scratch memory is for. Launches that may run at one time have memory of their own each.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scratch {
    /// Elements that blocks hand to one another: nobody asks what it holds before and after a launch.
    Elements,
    /// Words that are zero before the first launch; each launch leaves them so.
    Signals,
}

/// How a tensor is described to the tensor memory accelerator. Its element type, address, extents and strides are those of the
/// tensor; elements are not interleaved, each is taken, and what lies outside is zero.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TensorMapParam {
    /// The tensor.
    pub tensor: String,
    /// Its dimensions in the order of the descriptor: that with stride 1 first.
    pub dims: Vec<u32>,
    /// Extents of a box along them.
    #[serde(rename = "box")]
    pub extents: Vec<u32>,
    /// The swizzling mode.
    #[serde(with = "exchange_name")]
    pub swizzle: Exchange,
}

/// Swizzling modes are their row bytes: `128B`.
mod exchange_name {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use tilec_ir::layout::hardware::Exchange;

    pub(super) fn serialize<S: Serializer>(mode: &Exchange, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(mode.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Exchange, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(from)?;
        Exchange::from_name(&name).ok_or_else(|| D::Error::custom(format!("unknown swizzling mode `{name}`")))
    }
}

impl ParamKind {
    /// Whether whoever launches the kernel gives a number for it.
    pub fn is_value(&self) -> bool {
        match self {
            ParamKind::Size { .. } | ParamKind::Stride { .. } | ParamKind::Scalar { .. } => true,
            ParamKind::Tensor(_) | ParamKind::Pointers(_) | ParamKind::TensorMap(_) => false,
        }
    }

    /// The tensor that is passed, by its address or by those of its parts.
    pub fn tensor(&self) -> Option<&TensorParam> {
        match self {
            ParamKind::Tensor(tensor) | ParamKind::Pointers(tensor) => Some(tensor),
            ParamKind::Size { .. } | ParamKind::Stride { .. } | ParamKind::Scalar { .. } | ParamKind::TensorMap(_) => {
                None
            }
        }
    }
}

/// The word `u32`: 32 bits, unsigned.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum U32 {
    /// `u32`
    #[default]
    #[serde(rename = "u32")]
    U32,
}

/// The word `i64`: 64 bits, two's complement.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum I64 {
    /// `i64`
    #[default]
    #[serde(rename = "i64")]
    I64,
}

/// How a kernel uses a tensor.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// It is only read.
    Read,
    /// It is only written.
    Write,
    /// Both.
    ReadWrite,
}

impl Access {
    /// Whether the kernel may read it.
    pub fn reads(self) -> bool {
        self != Access::Write
    }

    /// Whether the kernel may write it.
    pub fn writes(self) -> bool {
        self != Access::Read
    }
}

/// Element types are their names.
mod elem_name {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use tilec_ir::types::Elem;

    pub(super) fn serialize<S: Serializer>(elem: &Elem, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(elem.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Elem, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(from)?;
        Elem::from_name(&name).ok_or_else(|| D::Error::custom(format!("unknown element type `{name}`")))
    }
}

/// Why a text is not a contract.
#[derive(Debug, thiserror::Error)]
pub enum ContractError {
    /// Not JSON, or a field is missing or has the wrong type.
    #[error("not a launch contract: {0}")]
    Json(#[from] serde_json::Error),
    /// Another version of the schema.
    #[error("unknown schema `{0}`, expected `{SCHEMA}` or `{SCHEMA_VARIANTS}`")]
    Schema(String),
    /// Variants that are no kernels of the file, or do not take the same parameters.
    #[error("{0}")]
    Dispatch(String),
}

/// Variants of one kernel, and which to launch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Dispatch {
    /// The name of the kernel in the source.
    pub kernel: String,
    /// The first of these is launched whose conditions hold.
    pub cases: Vec<Case>,
}

/// A variant, and when it is launched.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Case {
    /// The kernel of the file; its `requires` and the alignment of its tensors are conditions too.
    pub entry: String,
    /// Conditions over sizes and strides, all of which must hold.
    #[serde(default)]
    pub when: Vec<String>,
}

/// The launch contract of a file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LaunchFile {
    /// The kernels, in the order of the PTX.
    pub kernels: Vec<Contract>,
    /// Which of them are variants of one another.
    pub dispatch: Vec<Dispatch>,
    /// The programs that launch several of them.
    pub programs: Vec<Program>,
}

/// The JSON of a file with several kernels, or programs.
#[derive(Serialize, Deserialize)]
struct Several {
    schema: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dispatch: Vec<Dispatch>,
    kernels: Vec<Contract>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    programs: Vec<Program>,
}

impl LaunchFile {
    /// Reads what [`LaunchFile::to_json`] wrote.
    ///
    /// # Errors
    /// The text is not JSON, lacks a field, has another schema, or names variants that do not go together.
    pub fn from_json(text: &str) -> Result<LaunchFile, ContractError> {
        let value = serde_json::from_str::<serde_json::Value>(text)?;
        let schema = value.get("schema").and_then(|s| s.as_str()).unwrap_or("").to_owned();
        if ![SCHEMA, SCHEMA_VARIANTS].contains(&schema.as_str()) {
            return Err(ContractError::Schema(schema));
        }
        // One kernel: its fields at the top; several: an array `kernels`.
        let file = match value.get("kernels") {
            None => LaunchFile { kernels: vec![serde_json::from_value(value)?], ..LaunchFile::default() },
            Some(_) => {
                let Several { kernels, dispatch, programs, .. } = serde_json::from_value(value)?;
                LaunchFile { kernels, dispatch, programs }
            }
        };
        file.check()?;
        Ok(file)
    }

    /// As JSON: an object for one kernel, `{"schema": .., "kernels": [..], ..}` for anything else.
    pub fn to_json(&self) -> String {
        let LaunchFile { kernels, dispatch, programs } = self.clone();
        let schema = if dispatch.is_empty() { SCHEMA } else { SCHEMA_VARIANTS }.to_owned();
        let mut text = match kernels.as_slice() {
            [one] if dispatch.is_empty() && programs.is_empty() => serde_json::to_string_pretty(one),
            _ => serde_json::to_string_pretty(&Several { schema, dispatch, kernels, programs }),
        }
        .expect("a contract has only string keys");
        let _ = writeln!(text);
        text
    }

    /// The contract of an entry.
    pub fn contract(&self, entry: &str) -> Option<&Contract> {
        self.kernels.iter().find(|c| c.entry == entry)
    }

    /// Variants are kernels of the file, take the same parameters, and the last of them has no condition.
    fn check(&self) -> Result<(), ContractError> {
        let wrong = |what: String| Err(ContractError::Dispatch(what));
        for Dispatch { kernel, cases } in &self.dispatch {
            let Some(last) = cases.last() else { return wrong(format!("`{kernel}` has no variant")) };
            if !last.when.is_empty() {
                return wrong(format!("the last variant of `{kernel}` has a condition: some sizes have none"));
            }
            let mut first: Option<&Contract> = None;
            for case in cases {
                let entry = &case.entry;
                let Some(contract) = self.contract(entry) else {
                    return wrong(format!("`{entry}`, a variant of `{kernel}`, is no kernel of the file"));
                };
                let alike = |c: &Contract| {
                    // Descriptors follow from tensors, and are those of the variant's own tiles.
                    let given = |p: &&Param| !matches!(p.kind, ParamKind::TensorMap(_));
                    let plain = |p: &Param| (p.name.clone(), std::mem::discriminant(&p.kind));
                    c.params.iter().filter(given).map(plain).eq(contract.params.iter().filter(given).map(plain))
                };
                if !first.is_none_or(alike) {
                    return wrong(format!("`{entry}` takes other parameters than the first variant of `{kernel}`"));
                }
                first = first.or(Some(contract));
            }
        }
        Ok(())
    }
}

impl Contract {
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

    /// Reads the contracts of a file's kernels, in source order: see [`LaunchFile::from_json`].
    ///
    /// # Errors
    /// The text is not JSON, lacks a field, or has another schema.
    pub fn from_json(text: &str) -> Result<Vec<Contract>, ContractError> {
        LaunchFile::from_json(text).map(|file| file.kernels)
    }

    /// The parameter called `name`.
    pub fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|p| p.name == name)
    }
}

/// The contracts of kernels as JSON: see [`LaunchFile::to_json`].
pub fn to_json(contracts: &[Contract]) -> String {
    LaunchFile { kernels: contracts.to_vec(), ..LaunchFile::default() }.to_json()
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
            }),
            launch::ParamKind::Size => ParamKind::Size { ty: U32::U32 },
            launch::ParamKind::Stride { packed } => ParamKind::Stride { ty: I64::I64, packed: packed.clone() },
            launch::ParamKind::Scalar { elem, default } => {
                let default = default.map(|x| match x {
                    interp::Number::Float(x) => Number::Float(x),
                    interp::Number::Wide(x) => Number::Int(x),
                });
                ParamKind::Scalar { elem: *elem, default }
            }
        };
        Param { name: param.name.clone(), kind }
    }
}

/// A program in the launch contract of a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Program {
    /// Its name, that of no kernel.
    pub name: String,
    /// Entries of the kernels, in the order in which they are launched.
    pub launches: Vec<String>,
    /// Tensors that need no more than room.
    pub temporaries: Vec<Temporary>,
}

/// A tensor that one kernel leaves to another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Temporary {
    /// The parameter.
    pub name: String,
    /// Alignment of its address in bytes.
    pub align: u32,
    /// Bytes from its first element to its last, as an expression over the parameters.
    pub bytes: String,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use pretty_assertions::{assert_eq, assert_ne};
    use tilec_ir::target::Target;

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
                may_alias: Vec::new(),
            },
        };
        let param = |name: &str, kind| launch::LaunchParam { name: name.to_owned(), kind };
        let packed = |e: &str| launch::ParamKind::Stride { packed: Some(e.to_owned()) };
        Contract::new(
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
    fn reading_back_gives_the_same_contracts() {
        let one = gemm();
        let mut other = gemm();
        other.entry = "other".to_owned();
        for contracts in [vec![one.clone()], vec![one, other], vec![]] {
            assert_eq!(Contract::from_json(&to_json(&contracts)).expect("our own JSON reads back"), contracts);
        }
    }

    #[test]
    fn an_id_says_what_a_contract_says() {
        let one = gemm().identified();
        let mut other = gemm();
        other.grid[0] = "ceildiv(N, 64)".to_owned();
        let other = other.identified();
        let ptx = format!("// x\n// {}\n.version 6.4\n", one.mark().expect("it has an id"));
        assert_eq!(Contract::id_in(&ptx, "gemm"), one.id.as_deref());
        assert_eq!(Contract::id_in(&ptx, "gem"), None);
        assert_eq!(one.clone().identified(), one, "an id is no part of what it names");
        assert_ne!(one.id, other.id);
        assert_eq!(Contract::from_json(&to_json(std::slice::from_ref(&one))).expect("our own JSON reads back"), [one]);
    }

    #[test]
    fn infinite_defaults_are_words() {
        for (value, word) in [(f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")] {
            let mut contract = gemm();
            for param in &mut contract.params {
                if let ParamKind::Scalar { default, .. } = &mut param.kind {
                    *default = Some(Number::Float(value));
                }
            }
            let json = to_json(&[contract.clone()]);
            assert!(json.contains(&format!("\"default\": \"{word}\"")), "{json}");
            assert_eq!(Contract::from_json(&json).expect("our own JSON reads back"), [contract]);
        }
        let nan = serde_json::to_string(&crate::Number::Float(f64::NAN)).expect("JSON");
        assert_eq!(nan, "\"nan\"");
        let back: crate::Number = serde_json::from_str(&nan).expect("reads back");
        assert!(back.to_f64().is_nan());
        assert!(serde_json::from_str::<crate::Number>("\"five\"").is_err());
    }

    #[test]
    fn json_has_the_documented_fields() {
        let json: serde_json::Value = serde_json::from_str(&to_json(&[gemm()])).expect("JSON");
        assert_eq!(json["schema"], "tilec.launch/1");
        assert_eq!(json["ptx_version"], "6.4");
        assert_eq!(
            json["params"][2],
            serde_json::json!({
                "name": "C", "kind": "tensor", "type": "f32", "align": 16, "access": "read_write",
                "shape": ["M", "N"], "strides": ["C_ld", "1"],
            })
        );
        assert_eq!(json["params"][3], serde_json::json!({"name": "M", "kind": "size", "type": "u32"}));
        assert_eq!(
            json["params"][6],
            serde_json::json!({"name": "A_ld", "kind": "stride", "type": "i64", "packed": "K"})
        );
        assert_eq!(
            json["params"][9],
            serde_json::json!({"name": "alpha", "kind": "scalar", "type": "f32", "default": 1.0})
        );
    }

    #[test]
    fn what_is_not_a_contract_is_refused() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"schema": "tilec.launch/3"}"#,
            r#"{"schema": "tilec.launch/2"}"#,
            r#"{"schema": "tilec.launch/1"}"#,
        ] {
            assert!(Contract::from_json(text).is_err(), "{text}");
        }
        let wrong_type = to_json(&[gemm()]).replace("\"f32\"", "\"f33\"");
        assert!(Contract::from_json(&wrong_type).is_err());
    }
}
