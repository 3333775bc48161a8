//! The launch file: the contracts of kernels, of their variants, and of programs that launch several.

use super::requirements::{Contract, Param, ParamKind, SCHEMA, SCHEMA_ENDED};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// The value of `schema` in a file in which a kernel has several variants.
pub const SCHEMA_VARIANTS: &str = "tilec.launch/2";
/// Why a text is not a contract.
#[derive(Debug, thiserror::Error)]
pub enum ContractError {
    /// Not JSON, or a field is missing or has the wrong type.
    #[error("not a launch contract: {0}")]
    Json(#[from] serde_json::Error),
    /// Another version of the schema.
    #[error("unknown schema `{0}`, expected `{SCHEMA}`, `{SCHEMA_VARIANTS}` or `{SCHEMA_ENDED}`")]
    Schema(String),
    /// Tensor maps for windows with an end of their own in a contract that does not say that it has them.
    #[error("`{0}` has a tensor map with `ended` and not the schema `{SCHEMA_ENDED}`")]
    Ended(String),
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
    /// A description of the variant among those of the kernel: values of its parameters (`ALIGN=8`), sizes that are 0.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub variant: String,
}

impl Case {
    /// The only case of a kernel without variants.
    pub fn alone(entry: &str) -> Case {
        Case { entry: entry.to_owned(), when: Vec::new(), variant: String::new() }
    }

    /// The variant's name in messages: its entry if there is no description.
    pub fn name(&self) -> &str {
        if self.variant.is_empty() { &self.entry } else { &self.variant }
    }
}

/// The launch contract of a file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LaunchFile {
    /// The kernels, in the order of the PTX.
    pub kernels: Vec<Contract>,
    /// The kernels that are variants of each other.
    pub dispatch: Vec<Dispatch>,
    /// The programs that launch several of them.
    pub programs: Vec<Program>,
}

/// The JSON of a file with several kernels, or programs.
#[derive(Serialize, Deserialize)]
struct FileJson {
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
        if ![SCHEMA, SCHEMA_VARIANTS, SCHEMA_ENDED].contains(&schema.as_str()) {
            return Err(ContractError::Schema(schema));
        }
        // One kernel: its fields at the top; several: an array `kernels`.
        let file = match value.get("kernels") {
            None => LaunchFile { kernels: vec![serde_json::from_value(value)?], ..LaunchFile::default() },
            Some(_) => {
                let FileJson { kernels, dispatch, programs, .. } = serde_json::from_value(value)?;
                LaunchFile { kernels, dispatch, programs }
            }
        };
        file.check()?;
        Ok(file)
    }

    /// As JSON: an object for one kernel, `{"schema": .., "kernels": [..], ..}` for anything else.
    pub fn to_json(&self) -> String {
        let LaunchFile { kernels, dispatch, programs } = self.clone();
        let schema = match dispatch.is_empty() {
            _ if kernels.iter().any(|c| c.schema == SCHEMA_ENDED) => SCHEMA_ENDED,
            true => SCHEMA,
            false => SCHEMA_VARIANTS,
        };
        let schema = schema.to_owned();
        let mut text = match kernels.as_slice() {
            [one] if dispatch.is_empty() && programs.is_empty() => serde_json::to_string_pretty(one),
            _ => serde_json::to_string_pretty(&FileJson { schema, dispatch, kernels, programs }),
        }
        .expect("a contract has only string keys");
        let _ = writeln!(text);
        text
    }

    /// The contract of an entry.
    pub fn contract(&self, entry: &str) -> Option<&Contract> {
        self.kernels.iter().find(|c| c.entry == entry)
    }

    /// Kernels have a known schema; variants are kernels of the file, take the same parameters, and the last of them has no condition.
    fn check(&self) -> Result<(), ContractError> {
        for contract in &self.kernels {
            let ended = |p: &Param| matches!(&p.kind, ParamKind::TensorMap(map) if map.ended.is_some());
            match contract.schema.as_str() {
                SCHEMA_ENDED => {}
                SCHEMA if contract.params.iter().any(ended) => {
                    return Err(ContractError::Ended(contract.entry.clone()));
                }
                SCHEMA => {}
                other => return Err(ContractError::Schema(other.to_owned())),
            }
        }
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
                    // Descriptors follow from tensors, and belong to the variant's own tiles.
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

/// A program in the launch contract of a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Program {
    /// Its name, different from all kernels.
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

/// The contracts of kernels as JSON: see [`LaunchFile::to_json`].
pub fn to_json(contracts: &[Contract]) -> String {
    LaunchFile { kernels: contracts.to_vec(), ..LaunchFile::default() }.to_json()
}

impl Contract {
    /// Reads the contracts of a file's kernels, in source order: see [`LaunchFile::from_json`].
    ///
    /// # Errors
    /// The text is not JSON, lacks a field, or has another schema.
    pub fn from_json(text: &str) -> Result<Vec<Contract>, ContractError> {
        LaunchFile::from_json(text).map(|file| file.kernels)
    }
}
