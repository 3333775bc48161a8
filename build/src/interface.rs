//! The arguments of a kernel, independent of the target: the launch files of all targets have the same.

use std::collections::BTreeSet;
use tilec_launch::Elem;
use tilec_launch::Number;
use tilec_launch::bundle::Bundle;
use tilec_launch::contract::{Contract, Dimension, LaunchFile, ParamKind, TensorParam};

/// The arguments of a kernel, a kernel with variants, or a program of several kernels.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Interface {
    /// Its name in the source.
    pub(crate) name: String,
    /// The tensors.
    pub(crate) tensors: Vec<TensorFace>,
    /// Sizes and strides that follow from no tensor, and scalars without default.
    pub(crate) required: Vec<ScalarFace>,
    /// Scalars with their defaults.
    pub(crate) optional: Vec<(ScalarFace, Number)>,
}

/// A tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TensorFace {
    pub(crate) name: String,
    pub(crate) elem: Elem,
    /// Its extents and strides, of all modes.
    pub(crate) shape: Vec<String>,
    pub(crate) strides: Vec<String>,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

/// A number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ScalarFace {
    pub(crate) name: String,
    /// The type of a scalar; a size is u32, a stride i64.
    pub(crate) elem: Elem,
    /// It is a size, which the caller chooses: no tensor has it.
    pub(crate) chosen: bool,
}

impl Interface {
    /// The interfaces of all names that can be launched, in the order of the file.
    pub(crate) fn of_file(bundle: &Bundle) -> Result<Vec<Interface>, String> {
        let mut all: Option<(String, Vec<Interface>)> = None;
        for target in bundle.targets() {
            let file = bundle.launch_file(target).map_err(|e| e.to_string())?;
            let names = file.names().into_iter().map(str::to_owned).collect::<Vec<_>>();
            // Kernels that a program launches have no interface of their own; compilation may have made some of them.
            let inside: BTreeSet<&String> = file.programs.iter().flat_map(|p| &p.launches).collect();
            let named = names.iter().filter(|name| !inside.contains(name));
            let own = named.map(|name| Interface::new(&file, name)).collect::<Result<Vec<_>, _>>()?;
            match &all {
                None => all = Some((target.to_owned(), own)),
                Some((first, others)) => {
                    let alike = others.len() == own.len() && others.iter().zip(&own).all(|(a, b)| a.takes_as(b));
                    if !alike {
                        return Err(format!("its kernels take other parameters on {target} than on {first}"));
                    }
                }
            }
        }
        Ok(all.map(|(_, interfaces)| interfaces).unwrap_or_default())
    }

    /// Whether both take the same arguments; conditions on strides may differ.
    fn takes_as(&self, other: &Interface) -> bool {
        let tensor = |t: &TensorFace| (t.name.clone(), t.elem.name(), t.shape.len(), t.writes);
        let tensors = |i: &Interface| i.tensors.iter().map(tensor).collect::<BTreeSet<_>>();
        let scalars = |i: &Interface| {
            let optional = i.optional.iter().map(|(s, _)| (s.name.clone(), s.elem.name(), true));
            let required = i.required.iter().map(|s| (s.name.clone(), s.elem.name(), false));
            optional.chain(required).collect::<BTreeSet<_>>()
        };
        self.name == other.name && tensors(self) == tensors(other) && scalars(self) == scalars(other)
    }

    fn new(file: &LaunchFile, name: &str) -> Result<Interface, String> {
        let program = file.programs.iter().find(|p| p.name == name);
        let launches = program.map_or_else(|| vec![name.to_owned()], |p| p.launches.clone());
        let entry = |name: &String| {
            let case = file.dispatch.iter().find(|d| d.kernel == *name).and_then(|d| d.cases.first());
            file.contract(case.map_or(name, |case| &case.entry))
        };
        let contracts: Vec<&Contract> = launches.iter().filter_map(entry).collect();
        let temporary = |name: &str| program.is_some_and(|p| p.temporaries.iter().any(|t| t.name == name));
        let mut made =
            Interface { name: name.to_owned(), tensors: Vec::new(), required: Vec::new(), optional: Vec::new() };
        for param in contracts.iter().flat_map(|c| &c.params) {
            match &param.kind {
                ParamKind::Pointers(_) => {
                    return Err(format!(
                        "`{}` of `{name}` is an array of addresses, which launchers do not take: leave the kernel to \
                         `tilec_launch::loaded_kernel::LoadedKernel`, in another folder",
                        param.name
                    ));
                }
                ParamKind::Tensor(tensor) if tensor.scratch.is_none() && !temporary(&param.name) => {
                    made.add(&param.name, tensor);
                }
                _ => {}
            }
        }
        made.values(&contracts);
        Ok(made)
    }

    fn add(&mut self, name: &str, tensor: &TensorParam) {
        if let Some(known) = self.tensors.iter_mut().find(|t| t.name == name) {
            known.writes |= tensor.access.writes();
            return;
        }
        let texts = |dims: &[Dimension]| dims.iter().flat_map(Dimension::parts).cloned().collect();
        self.tensors.push(TensorFace {
            name: name.to_owned(),
            elem: tensor.elem,
            shape: texts(&tensor.shape),
            strides: texts(&tensor.strides),
            reads: tensor.access.reads(),
            writes: tensor.access.writes(),
        });
    }

    /// Finds the values that follow from no tensor.
    fn values(&mut self, contracts: &[&Contract]) {
        let mut known: BTreeSet<String> = BTreeSet::new();
        known.extend(self.tensors.iter().flat_map(|t| t.shape.iter().chain(&t.strides)).cloned());
        for param in contracts.iter().flat_map(|c| &c.params) {
            let (elem, default) = match &param.kind {
                ParamKind::Size { .. } => (Elem::U32, None),
                ParamKind::Stride { packed: None, .. } => (Elem::I64, None),
                ParamKind::Scalar { elem, .. } => {
                    // A scalar has its default in all kernels if it has one in any.
                    let default = contracts.iter().filter_map(|c| c.param(&param.name)).find_map(|p| match p.kind {
                        ParamKind::Scalar { default, .. } => default,
                        _ => None,
                    });
                    (*elem, default)
                }
                _ => continue,
            };
            let scalar = matches!(param.kind, ParamKind::Scalar { .. });
            if (!scalar && known.contains(&param.name)) || !known.insert(format!("value {}", param.name)) {
                continue;
            }
            let chosen = matches!(param.kind, ParamKind::Size { .. });
            let face = ScalarFace { name: param.name.clone(), elem, chosen };
            match default {
                Some(default) => self.optional.push((face, default)),
                None => self.required.push(face),
            }
        }
    }
}
