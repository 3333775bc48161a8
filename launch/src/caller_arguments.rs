//! The arguments that a caller gives, and the launch for which the sizes are that the caller chooses.

use crate::contract::expr::Expr;
use crate::contract::{Contract, Dimension, LaunchFile, ParamKind};

impl LaunchFile {
    /// The contracts of what may be launched for a name: of every launch of a program all variants, launch by launch.
    fn launches_of(&self, name: &str) -> Vec<Vec<&Contract>> {
        match self.programs.iter().find(|p| p.name == name) {
            Some(program) => program.launches.iter().map(|launch| self.variants(launch).collect()).collect(),
            None => vec![self.variants(name).collect()],
        }
    }

    /// The given tensors of a name, and the values that follow from none of them.
    pub(crate) fn given(&self, name: &str) -> (Vec<&str>, Vec<&str>) {
        let program = self.programs.iter().find(|p| p.name == name);
        let temporary = |name: &str| program.is_some_and(|p| p.temporaries.iter().any(|t| t.name == name));
        let launches = self.launches_of(name);
        let params = || launches.iter().flatten().flat_map(|c| &c.params);
        let (mut tensors, mut follows): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
        for param in params() {
            let Some(tensor) = param.kind.tensor().filter(|t| t.scratch.is_none() && !temporary(&param.name)) else {
                continue;
            };
            if !tensors.contains(&param.name.as_str()) {
                tensors.push(&param.name);
                let dims = tensor.shape.iter().chain(&tensor.strides);
                follows.extend(dims.flat_map(Dimension::parts).map(String::as_str));
            }
        }
        let mut values: Vec<&str> = Vec::new();
        for param in params() {
            let known = follows.contains(&param.name.as_str()) || values.contains(&param.name.as_str());
            let asked = match &param.kind {
                ParamKind::Scalar { .. } => !values.contains(&param.name.as_str()),
                ParamKind::Size { .. } | ParamKind::Stride { packed: None, .. } => !known,
                ParamKind::Stride { .. } | ParamKind::Tensor(_) | ParamKind::Pointers(_) | ParamKind::TensorMap(_) => {
                    false
                }
            };
            if asked {
                values.push(&param.name);
            }
        }
        (tensors, values)
    }

    /// The sizes of a name that are no extent of a given tensor: the caller chooses them, such as the number of
    /// clusters that share the work.
    pub fn chosen_sizes(&self, name: &str) -> Vec<&str> {
        let launches = self.launches_of(name);
        let is_size = |name: &str| {
            launches.iter().flatten().filter_map(|c| c.param(name)).any(|p| matches!(p.kind, ParamKind::Size { .. }))
        };
        self.given(name).1.into_iter().filter(|name| is_size(name)).collect()
    }

    /// The launch that a chosen size divides, among those of a name: the first one whose grid depends on a chosen size,
    /// or the first one if none does.
    pub fn shared_launch(&self, name: &str) -> usize {
        let chosen = self.chosen_sizes(name);
        let depends = |text: &String| {
            let expr = Expr::parse(text);
            expr.is_ok_and(|expr| expr.names().any(|name| chosen.contains(&name)))
        };
        let launches = self.launches_of(name);
        launches.iter().position(|cases| cases.iter().flat_map(|c| &c.grid).any(depends)).unwrap_or(0)
    }
}
