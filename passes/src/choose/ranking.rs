//! Every legal combination of `auto` values in the order of the prediction, for a search that measures.

use super::choice_independent;
use super::parameters::{NAME, Role, autos, bound, known_sizes, set};
use super::search;
use super::search_result::{Failed, Ranked};
use super::search_space::{RASTERS, Space};
use crate::specialize::given;
use crate::{Cx, Options};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported, Sink};
use tilec_ir::kernel::Kernel;

/// The candidate values of a kernel's `auto` parameters.
#[derive(Clone, PartialEq, Debug)]
pub struct Candidates {
    /// First the default choice, then the others, the fastest prediction first.
    pub ranked: Vec<Ranked>,
    /// Parameters for which `ranked` has only the best predicted values, with all their values: the number of stages
    /// and rasterisation.
    pub further: Vec<(String, Vec<i64>)>,
}

/// The candidates for the parameters of `kernel` (as parsed) that are `auto` and not given. Their predicted times are
/// at most `far` times that of the choice. `None`: there are no such parameters.
///
/// # Errors
/// As those of the pass; and if the model cannot predict the kernel.
pub fn candidates(
    kernel: &Kernel,
    options: &Options,
    far: f64,
    sink: &mut Sink,
) -> Result<Option<Candidates>, Reported> {
    let mut cx = Cx { enabled: true, ..Cx::new(options, NAME, sink) };
    let mut k = kernel.clone();
    known_sizes(&k, &mut cx)?;
    for p in k.const_params.clone() {
        if let Some(value) = given(&k, &cx, p) {
            set(&mut k, p, value);
        }
    }
    let autos = autos(&k, &mut cx)?;
    if autos.is_empty() || !bound(&k) {
        return Ok(None);
    }
    choice_independent::check(&k, &mut cx, &autos)?;
    let further = |role: Role| match role {
        Role::Stages => Some(vec![1, 2, 3, 4, 5, 6, 8]),
        Role::Raster => Some(RASTERS.to_vec()),
        _ => None,
    };
    let further = autos.iter().filter_map(|a| Some((k.values[a.value].name.clone(), further(a.role)?))).collect();
    match Space::new(&k, options, &autos).and_then(|space| search::ranked(space, far)) {
        Ok(ranked) => Ok(Some(Candidates { ranked, further })),
        Err(failed) => {
            let why = match failed {
                Failed::Opaque(why) | Failed::Refused(why) => why,
                Failed::NoneLegal(why) => why.why().to_owned(),
            };
            let message = format!("nothing can be predicted of `{}`: {why}", k.name);
            let d = Diagnostic::error(codes::NOTHING_TO_TUNE, k.name_span, message);
            Err(cx.report(d.with_note("`tilec bench --variant NAME=A/B` measures values that you name")))
        }
    }
}
