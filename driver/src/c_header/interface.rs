//! Arguments of a kernel or a program: the same for all targets.

use super::image::Image;
use super::text::member;
use crate::contract::{Access, Contract, Param, ParamKind, Scratch};
use crate::contract::{expr::ExprError, number::Number};
use std::fmt::Write as _;
use thiserror::Error;
use tilec_ir::types::Elem;

/// Why there is no header.
#[derive(Debug, Error)]
pub enum HeaderError {
    /// Targets require different arguments.
    #[error("`{name}` takes `{param}` differently for {} and for {}: write a header for each", .targets[0], .targets[1])]
    Differs {
        /// The kernel or program.
        name: String,
        /// The parameter.
        param: String,
        /// The targets.
        targets: [&'static str; 2],
    },
    /// More modes than a tensor of the header has.
    #[error("`{tensor}` of `{entry}` has {modes} modes in all its dimensions, the most of a C header is {MODES}")]
    Modes {
        /// The kernel.
        entry: String,
        /// The tensor.
        tensor: String,
        /// How many.
        modes: usize,
    },
    /// A contract with something that is not an expression.
    #[error("`{text}` in the contract of `{entry}`: {error}")]
    Expression {
        /// The kernel.
        entry: String,
        /// What is there.
        text: String,
        /// The reason.
        error: ExprError,
    },
    /// A launch of what is not there.
    #[error("the launch file has no kernel `{name}`")]
    Missing {
        /// The kernel.
        name: String,
    },
}

/// `TILEC_MODES` of the header.
pub(super) const MODES: usize = 16;

/// A kernel or a program, as it is called.
pub(super) struct Interface {
    pub(super) name: String,
    /// Its arguments, in the order of the contract.
    pub(super) fields: Vec<Field>,
    /// Sizes that the caller chooses, as no tensor has them.
    pub(super) chosen: Vec<String>,
    /// On some target it needs memory that its blocks or launches use to exchange data.
    pub(super) workspace: bool,
    /// On some target it needs zero-initialised words.
    pub(super) signals: bool,
    /// The targets it is there for.
    pub(super) targets: Vec<&'static str>,
}

/// One thing that is given.
pub(super) struct Field {
    pub(super) param: String,
    pub(super) kind: FieldKind,
    target: &'static str,
}

/// What is given.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum FieldKind {
    /// An address.
    Tensor { pointers: bool, elem: Elem, access: &'static str, shape: String },
    /// An extent.
    Size,
    /// A stride, which may have a value for packed tensors.
    Stride { packed: Option<String> },
    /// A scalar.
    Scalar { elem: Elem, default: Option<Number> },
}

impl Interface {
    /// The kernels or programs called `name` in all images that have them.
    pub(super) fn new(name: &str, images: &[Image<'_>]) -> Result<Interface, HeaderError> {
        let mut made = Interface {
            name: name.to_owned(),
            fields: Vec::new(),
            chosen: Vec::new(),
            workspace: false,
            signals: false,
            targets: Vec::new(),
        };
        for image in images.iter().filter(|image| image.file.names().contains(&name)) {
            made.targets.push(image.target.name());
            for size in image.file.chosen_sizes(name).into_iter().map(str::to_owned) {
                if !made.chosen.contains(&size) {
                    made.chosen.push(size);
                }
            }
            made.add(image)?;
        }
        Ok(made)
    }

    fn add(&mut self, image: &Image<'_>) -> Result<(), HeaderError> {
        let target = image.target.name();
        let program = image.file.programs.iter().find(|p| p.name == self.name);
        let temporaries = program.map_or(&[][..], |p| &p.temporaries);
        let launches = program.map_or_else(|| vec![self.name.clone()], |p| p.launches.clone());
        self.workspace |= !temporaries.is_empty();
        let contracts: Vec<&Contract> = launches.iter().flat_map(|launch| image.variants(launch)).collect();
        for param in contracts.iter().flat_map(|c| &c.params) {
            match param.kind.tensor().and_then(|t| t.scratch) {
                Some(Scratch::Elements) => self.workspace = true,
                Some(Scratch::Signals) => self.signals = true,
                None => {}
            }
            let given = !temporaries.iter().any(|t| t.name == param.name);
            let Some(kind) = field_kind(param).filter(|_| given) else { continue };
            match self.fields.iter_mut().find(|f| f.param == param.name) {
                None => self.fields.push(Field { param: param.name.clone(), kind, target }),
                Some(known) => {
                    if !known.kind.join(&kind) {
                        let (name, param) = (self.name.clone(), param.name.clone());
                        return Err(HeaderError::Differs { name, param, targets: [known.target, target] });
                    }
                }
            }
        }
        Ok(())
    }

    /// The structure of the arguments and the function that makes one.
    pub(super) fn write(&self) -> String {
        let name = &self.name;
        let mut out = format!("/* Arguments of `{name}`. */\ntypedef struct {name}_args {{\n");
        for field in &self.fields {
            let (ty, note) = field.declared();
            let _ = writeln!(out, "    {ty} {};{note}", field.member());
        }
        if self.workspace {
            out.push_str("    CUdeviceptr workspace; /* memory of the size that the function ..._scratch says */\n");
            out.push_str("    size_t workspace_bytes;\n");
        }
        if self.signals {
            out.push_str(
                "    CUdeviceptr signals; /* the same, zero before the first launch and used for nothing else */\n",
            );
            out.push_str("    size_t signals_bytes;\n");
        }
        if self.fields.is_empty() && !self.workspace && !self.signals {
            out.push_str("    int nothing;\n");
        }
        let _ = writeln!(out, "}} {name}_args;\n");
        let required: Vec<&Field> = self.fields.iter().filter(|f| f.default().is_none()).collect();
        let parameters: Vec<String> = required.iter().map(|f| format!("{} {}", f.declared().0, f.member())).collect();
        let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
        let others: Vec<String> =
            self.fields.iter().filter(|f| f.default().is_some()).map(|f| format!("`{}`", f.member())).collect();
        if others.is_empty() {
            let _ = writeln!(out, "/* The arguments of a launch. */");
        } else {
            let _ = writeln!(out, "/* The arguments of a launch; {} have their defaults. */", others.join(", "));
        }
        let _ = writeln!(out, "static inline {name}_args {name}_make({parameters})\n{{\n    {name}_args tilec_to;");
        out.push_str("    memset(&tilec_to, 0, sizeof tilec_to);\n");
        for field in &self.fields {
            let member = field.member();
            let value = field.default().unwrap_or_else(|| member.clone());
            let _ = writeln!(out, "    tilec_to.{member} = {value};");
        }
        out.push_str("    return tilec_to;\n}\n");
        out
    }
}

impl Field {
    /// The name of its member.
    pub(super) fn member(&self) -> String {
        member(&self.param)
    }

    /// Its type, and a comment.
    fn declared(&self) -> (&'static str, String) {
        match &self.kind {
            FieldKind::Tensor { pointers, elem, access, shape } => {
                let what = if *pointers { "addresses of tensors" } else { "tensor" };
                (
                    "CUdeviceptr",
                    format!(" {}", super::text::comment(&format!("{what} {}[{shape}], {access}", elem.name()))),
                )
            }
            FieldKind::Size => ("int64_t", String::new()),
            FieldKind::Stride { packed: Some(packed) } => {
                ("int64_t", format!(" {}", super::text::comment(&format!("elements; TILEC_PACKED: {packed}"))))
            }
            FieldKind::Stride { packed: None } => ("int64_t", " /* elements */".to_owned()),
            FieldKind::Scalar { elem, .. } => {
                let (ty, bits) = scalar_type(*elem);
                (ty, if bits { format!(" /* the bits of an {} */", elem.name()) } else { String::new() })
            }
        }
    }

    /// The default value.
    fn default(&self) -> Option<String> {
        match &self.kind {
            FieldKind::Tensor { .. } | FieldKind::Size | FieldKind::Stride { packed: None } => None,
            FieldKind::Stride { packed: Some(_) } => Some("TILEC_PACKED".to_owned()),
            FieldKind::Scalar { elem, default } => default.map(|x| number(*elem, x)),
        }
    }
}

impl FieldKind {
    /// Whether another launch or target takes the same; a default or packed stride in one is that of both.
    fn join(&mut self, other: &FieldKind) -> bool {
        match (self, other) {
            (
                FieldKind::Tensor { pointers, elem, access, .. },
                FieldKind::Tensor { pointers: other_pointers, elem: other_elem, access: other_access, .. },
            ) => {
                if access != other_access {
                    // Written by one launch and read by another.
                    *access = "read and written";
                }
                pointers == other_pointers && elem == other_elem
            }
            (FieldKind::Size, FieldKind::Size) => true,
            (FieldKind::Stride { packed }, FieldKind::Stride { packed: other }) => {
                *packed = packed.take().or_else(|| other.clone());
                true
            }
            (FieldKind::Scalar { elem, default }, FieldKind::Scalar { elem: other_elem, default: other }) => {
                let same = default.zip(*other).is_none_or(|(x, y)| x.same(y));
                *default = default.or(*other);
                same && elem == other_elem
            }
            _ => false,
        }
    }
}

/// The kind of argument for a parameter; scratch memory and tensor maps have none.
fn field_kind(param: &Param) -> Option<FieldKind> {
    Some(match &param.kind {
        ParamKind::Tensor(tensor) | ParamKind::Pointers(tensor) => {
            if tensor.scratch.is_some() {
                return None;
            }
            let access = match tensor.access {
                Access::Read => "read",
                Access::Write => "written",
                Access::ReadWrite => "read and written",
            };
            let shape: Vec<String> = tensor.shape.iter().map(|d| d.parts().join(" * ")).collect();
            let pointers = matches!(param.kind, ParamKind::Pointers(_));
            FieldKind::Tensor { pointers, elem: tensor.elem, access, shape: shape.join(", ") }
        }
        ParamKind::TensorMap(_) => return None,
        ParamKind::Size { .. } => FieldKind::Size,
        ParamKind::Stride { packed, .. } => FieldKind::Stride { packed: packed.clone() },
        ParamKind::Scalar { elem, default } => FieldKind::Scalar { elem: *elem, default: *default },
    })
}

/// The type of a member for a scalar, and whether that holds the bits of a number C has no type for.
pub(super) fn scalar_type(elem: Elem) -> (&'static str, bool) {
    match elem {
        Elem::F16 | Elem::BF16 | Elem::TF32 | Elem::F32 => ("float", false),
        Elem::F64 => ("double", false),
        Elem::I8 | Elem::I4 => ("int8_t", false),
        Elem::U8 | Elem::U4 | Elem::Bool => ("uint8_t", false),
        Elem::I16 => ("int16_t", false),
        Elem::U16 => ("uint16_t", false),
        Elem::I32 => ("int32_t", false),
        Elem::U32 => ("uint32_t", false),
        Elem::I64 => ("int64_t", false),
        Elem::U64 => ("uint64_t", false),
        Elem::E4M3 | Elem::E5M2 | Elem::E2M1 | Elem::UE8M0 => ("uint8_t", true),
    }
}

/// A number as a constant of the type of its member.
fn number(elem: Elem, x: Number) -> String {
    match scalar_type(elem) {
        (_, true) => crate::contract::encode::encode_number(elem, x).to_string(),
        ("float" | "double", _) => {
            let (x, single) = (x.to_f64(), elem != Elem::F64);
            match x {
                x if x.is_nan() => "(float)NAN".to_owned(),
                x if x.is_infinite() => format!("{}(float)INFINITY", if x < 0.0 { "-" } else { "" }),
                x if single => format!("{:?}f", x as f32),
                x => format!("{x:?}"),
            }
        }
        ("uint64_t", _) => format!("UINT64_C({x})"),
        ("int64_t", _) if x.to_i64() == Some(i64::MIN) => "INT64_MIN".to_owned(),
        ("int64_t", _) => format!("INT64_C({x})"),
        ("int32_t", _) if x.to_i64() == Some(i32::MIN.into()) => "INT32_MIN".to_owned(),
        ("uint32_t", _) => format!("{x}u"),
        _ => x.to_string(),
    }
}
