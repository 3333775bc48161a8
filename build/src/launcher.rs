//! Launchers as text of Rust.

use crate::interface::{Interface, ScalarFace, TensorFace};
use crate::names::{parameter, type_name};
use std::fmt::Write as _;
use std::path::Path;
use tilec_launch::Elem;
use tilec_launch::bundle::Bundle;

/// In front of an `impl`: a crate need not use all that a launcher has, also where its module is private.
const UNUSED: &str = "#[allow(dead_code, reason = \"not every crate uses all of a launcher\")]\n";

/// The struct of all launchers.
pub(crate) const ALL: &str = "Launchers";

/// The module of a file: the bundle, and a launcher for each kernel.
pub(crate) fn module(stem: &str, source: &str, bundle_file: &Path, bundle: &Bundle, all: &[Interface]) -> String {
    let targets = bundle.targets().join(", ");
    let (module, constant) = (module_name(stem), format!("{}_BUNDLE", stem.to_ascii_uppercase()));
    let constant: String = constant.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let mut out = format!(
        "/// The kernels of `{source}`, compiled for {targets}: a bundle.\n\
         pub static {constant}: &[u8] = include_bytes!({bundle_file:?});\n\n\
         /// Loads what `device` runs of the kernels of `{source}`.\n///\n\
         /// # Errors\n/// The device runs none of the targets ({targets}), or refuses the code.\n\
         pub fn {module}(device: &::tilec_launch::Device) -> Result<::tilec_launch::Module, ::tilec_launch::LaunchError> {{\n    \
         ::tilec_launch::Module::load(device, &::tilec_launch::Bundle::from_bytes({constant})?)\n}}\n"
    );
    for interface in all {
        out.push('\n');
        launcher(interface, source, &module, &mut out);
    }
    out
}

/// The function that loads all kernels of a file.
fn module_name(stem: &str) -> String {
    let name = parameter(&format!("{stem}_module"), &[]);
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// The launchers of all files, by the names of their kernels, in a struct that loads each file once.
pub(crate) fn all(files: &[(String, Vec<String>)]) -> String {
    let mut fields: Vec<String> = Vec::new();
    let (mut declared, mut loaded, mut modules) = (String::new(), String::new(), String::new());
    for (stem, kernels) in files {
        let module = module_name(stem);
        let _ = writeln!(modules, "        let {module} = {module}(device)?;");
        for kernel in kernels {
            let (field, name) = (parameter(kernel, &fields), type_name(kernel));
            let _ = writeln!(declared, "    /// The launcher of `{kernel}`.\n    pub {field}: {name},");
            let _ = writeln!(loaded, "            {field}: {name}::of(&{module})?,");
            fields.push(field);
        }
    }
    format!(
        "/// The launchers of all kernels.\n{UNUSED}pub struct {ALL} {{\n{declared}}}\n\n{UNUSED}impl {ALL} {{\n    \
         /// Loads all kernels for a device.\n    ///\n    /// # Errors\n    \
         /// There is a file of which the device runs no target, or the device refuses the code.\n    \
         pub fn load(device: &::tilec_launch::Device) -> Result<{ALL}, ::tilec_launch::LaunchError> {{\n\
         {modules}        Ok({ALL} {{\n{loaded}        }})\n    }}\n}}\n"
    )
}

/// Names of Rust for what a kernel takes.
struct Names {
    tensors: Vec<String>,
    required: Vec<String>,
    optional: Vec<String>,
}

impl Names {
    fn of(interface: &Interface) -> Names {
        let mut all: Vec<String> = Vec::new();
        let mut own = |name: &String| {
            let name = parameter(name, &all);
            all.push(name.clone());
            name
        };
        Names {
            tensors: interface.tensors.iter().map(|t| own(&t.name)).collect(),
            required: interface.required.iter().map(|s| own(&s.name)).collect(),
            optional: interface.optional.iter().map(|(s, _)| own(&s.name)).collect(),
        }
    }
}

fn launcher(interface: &Interface, source: &str, module: &str, out: &mut String) {
    let (name, names) = (type_name(&interface.name), Names::of(interface));
    let (launch, n) = (format!("{name}Launch"), interface.tensors.len());
    let n_values = interface.required.len() + interface.optional.len();
    let quoted = |list: Vec<&String>| list.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    let tensors = quoted(interface.tensors.iter().map(|t| &t.name).collect());
    let values = interface.required.iter().map(|s| &s.name).chain(interface.optional.iter().map(|(s, _)| &s.name));
    let values = quoted(values.collect());
    let _ = write!(
        out,
        "/// The kernel `{kernel}` of `{source}`.\n///\n{docs}pub struct {name} {{\n    kernel: ::tilec_launch::Kernel,\n}}\n\n\
         {UNUSED}impl {name} {{\n    \
         /// Loads the kernel for a device.\n    ///\n    /// # Errors\n    /// As those of [`{module}`], which loads all kernels of the file at once.\n    \
         pub fn load(device: &::tilec_launch::Device) -> Result<{name}, ::tilec_launch::LaunchError> {{\n        \
         {name}::of(&{module}(device)?)\n    }}\n\n    \
         /// Takes the kernel from a module: what [`{module}`] loads.\n    ///\n    /// # Errors\n    /// The module is of another file.\n    \
         pub fn of(module: &::tilec_launch::Module) -> Result<{name}, ::tilec_launch::LaunchError> {{\n        \
         let kernel = ::tilec_launch::Kernel::load(module, {kernel:?}, &[{tensors}], &[{values}])?;\n        \
         Ok({name} {{ kernel }})\n    }}\n\n",
        kernel = interface.name,
        docs = docs(interface),
    );
    let tensor_arguments =
        interface.tensors.iter().zip(&names.tensors).map(|(t, name)| format!("{name}: {}", tensor_type(t)));
    let required =
        interface.required.iter().zip(&names.required).map(|(s, name)| format!("{name}: {}", host_type(s.elem)));
    let arguments: Vec<String> = tensor_arguments.chain(required).collect();
    if arguments.len() > 6 {
        out.push_str("    #[allow(clippy::too_many_arguments, reason = \"as many as the kernel takes\")]\n");
    }
    let given = interface.required.iter().zip(&names.required).map(|(s, name)| format!("Some({})", number(s, name)));
    let given: Vec<String> = given.chain(interface.optional.iter().map(|_| "None".to_owned())).collect();
    let moved: Vec<String> = names.tensors.iter().map(|name| format!("{name}.argument()")).collect();
    let _ = write!(
        out,
        "    /// A launch with these arguments, to be completed and then made: see [`{launch}::launch`].\n    \
         pub fn with<'a>(&'a self, {arguments}) -> {launch}<'a> {{\n        \
         {launch} {{ kernel: &self.kernel, tensors: [{moved}], values: [{given}] }}\n    }}\n}}\n\n\
         /// A launch of [`{name}`].\n#[must_use = \"nothing is launched before `launch`\"]\n\
         pub struct {launch}<'a> {{\n    kernel: &'a ::tilec_launch::Kernel,\n    \
         tensors: [::tilec_launch::Argument<'a>; {n}],\n    values: [Option<::tilec_launch::Number>; {n_values}],\n}}\n\n\
         {UNUSED}impl {launch}<'_> {{\n",
        arguments = arguments.join(", "),
        moved = moved.join(", "),
        given = given.join(", "),
    );
    let sizes = interface.required.iter().zip(&names.required).enumerate();
    for (i, (size, own)) in sizes.filter(|(_, (size, _))| size.chosen) {
        let _ = write!(
            out,
            "    /// With the size `{}`, which no tensor has.\n    pub fn {own}(mut self, {own}: {ty}) -> Self {{\n        \
             self.values[{i}] = Some({number});\n        self\n    }}\n\n",
            size.name,
            ty = host_type(size.elem),
            number = number(size, own),
        );
    }
    for (i, ((scalar, default), own)) in interface.optional.iter().zip(&names.optional).enumerate() {
        let _ = write!(
            out,
            "    /// With `{}`, which is {default} by default.\n    pub fn {own}(mut self, {own}: {ty}) -> Self {{\n        \
             self.values[{at}] = Some({number});\n        self\n    }}\n\n",
            scalar.name,
            ty = host_type(scalar.elem),
            at = interface.required.len() + i,
            number = number(scalar, own),
        );
    }
    let _ = write!(
        out,
        "    /// Checks the launch and queues it on a stream; on the simulator it is done when this returns.\n    ///\n    \
         /// # Errors\n    /// Shapes do not agree, a precondition does not hold, or the device refuses.\n    \
         pub fn launch<'s>(\n        mut self,\n        stream: impl Into<::tilec_launch::StreamRef<'s>>,\n    \
         ) -> Result<(), ::tilec_launch::LaunchError> {{\n        \
         self.kernel.launch(stream, &self.values, &mut self.tensors)\n    }}\n\n    \
         /// Checks the launch without making it.\n    ///\n    /// # Errors\n    /// As those of a launch, but for what the device refuses.\n    \
         pub fn check(&self) -> Result<(), ::tilec_launch::LaunchError> {{\n        \
         self.kernel.check(&self.values, &self.tensors).map(|_| ())\n    }}\n\n    \
         /// Clusters that the device runs at the same time, for these arguments: see [`::tilec_launch::Kernel::max_active_clusters`]. A block of a\n    \
         /// kernel without clusters is a cluster of one.\n    ///\n    /// # Errors\n    /// As those of a launch.\n    \
         pub fn max_active_clusters(&self) -> Result<u32, ::tilec_launch::LaunchError> {{\n        \
         self.kernel.max_active_clusters(&self.values, &self.tensors)\n    }}\n}}\n",
    );
}

/// The arguments of a kernel, as a table.
fn docs(interface: &Interface) -> String {
    let mut out = String::from("/// | tensor | elements | shape | strides | |\n/// |---|---|---|---|---|\n");
    for tensor in &interface.tensors {
        let access = match (tensor.reads, tensor.writes) {
            (true, true) => "read and written",
            (true, false) => "read",
            (false, _) => "written",
        };
        let (shape, strides) = (tensor.shape.join(", "), tensor.strides.join(", "));
        let _ = writeln!(
            out,
            "/// | `{}` | {} | `[{shape}]` | `[{strides}]` | {access} |",
            tensor.name,
            tensor.elem.name()
        );
    }
    out
}

fn tensor_type(tensor: &TensorFace) -> String {
    let name = if tensor.writes { "TensorMut" } else { "Tensor" };
    format!("::tilec_launch::{name}<'a, ::tilec_launch::element::{:?}, {}>", tensor.elem, tensor.shape.len())
}

/// The type of Rust in which a number is passed; it is rounded to the kernel's.
fn host_type(elem: Elem) -> &'static str {
    match elem {
        Elem::F64 => "f64",
        Elem::F16 | Elem::BF16 | Elem::TF32 | Elem::F32 | Elem::E4M3 | Elem::E5M2 | Elem::E2M1 | Elem::UE8M0 => "f32",
        Elem::I4 | Elem::I8 => "i8",
        Elem::U4 | Elem::U8 => "u8",
        Elem::I16 => "i16",
        Elem::U16 => "u16",
        Elem::I32 => "i32",
        Elem::U32 => "u32",
        Elem::I64 => "i64",
        Elem::U64 => "u64",
        Elem::Bool => "bool",
    }
}

/// A value as the number of a launch.
fn number(scalar: &ScalarFace, name: &str) -> String {
    match host_type(scalar.elem) {
        "f64" | "i64" => format!("::tilec_launch::Number::from({name})"),
        "u64" => format!("::tilec_launch::Number::unsigned({name})"),
        "f32" => format!("::tilec_launch::Number::from(f64::from({name}))"),
        _ => format!("::tilec_launch::Number::from(i64::from({name}))"),
    }
}
