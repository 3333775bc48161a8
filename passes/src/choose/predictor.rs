//! The prediction for a kernel whose parameters have values.

use super::cost::Cost;
use super::illegal::Illegal;
use super::model;
#[cfg(test)]
use super::model::launch::Launch;
use super::padding::Padding;
use super::parameters::Auto;
use super::prediction::{Added, Prediction};
use super::search_result::Failed;
use super::search_space::Space;
use super::several_products::SeveralProducts;
use super::work::{Env, Tensor};
use crate::Options;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::Kernel;
use tilec_ir::print::print_expr;

/// Predicts a kernel whose parameters all have values, for various sizes.
pub struct Predictor<'a> {
    kernel: &'a Kernel,
    pub(super) space: Space<'a>,
}

/// No `auto` parameters are left.
const NO_AUTOS: &[Auto] = &[];

impl<'a> Predictor<'a> {
    /// Analyses a kernel as it is after `choose`, in the form that the model sees ([`super::modelled`]); `None` if the model
    /// cannot predict it.
    pub fn new(kernel: &'a Kernel, options: &'a Options) -> Option<Predictor<'a>> {
        let space = Space::new(kernel, options, NO_AUTOS).ok()?;
        Some(Predictor { kernel, space })
    }

    /// Why a kernel is not predicted, as text.
    pub fn unseen(kernel: &Kernel, options: &Options) -> Option<String> {
        let space = match Space::new(kernel, options, NO_AUTOS) {
            Ok(space) => space,
            Err(Failed::Opaque(why) | Failed::Refused(why)) => return Some(why),
            Err(Failed::NoneLegal(why)) => return Some(why.why().to_owned()),
        };
        match space.work.has_several_products() {
            true => SeveralProducts::of(&space).given().err(),
            false => space.setting().cost(&space.env).err().map(|why| named(&space, why)),
        }
    }

    /// The prediction for the sizes of the options.
    pub fn predict(&self) -> Option<Prediction> {
        self.whole().map(|p| self.located(p))
    }

    /// A prediction for this kernel, with the traffic of each copy.
    #[must_use]
    pub fn located(&self, p: Prediction) -> Prediction {
        let (env, work) = (&self.space.env, &self.space.work);
        let parts = self.space.setting().cost(env).map_or_else(|_| Vec::new(), |cost| cost.parts);
        Prediction {
            places: work.places(env, p.blocks, &parts),
            unknown: work.unknown_loop(env),
            padding: work.padding(env),
            ..p
        }
    }

    /// The number of stages in the schedule, with the values of the parameters.
    pub(super) fn stages(&self) -> Option<u64> {
        self.space.setting().stages(&self.space.env).ok()
    }

    /// Seconds of a launch with these sizes; other sizes are those of the options.
    pub fn seconds(&self, sizes: &[(String, i64)]) -> Option<f64> {
        let size = |name: &str| self.kernel.sizes.iter().copied().find(|&v| self.kernel.values[v].name == name);
        let sizes: Option<Vec<(Value, i64)>> = sizes.iter().map(|(name, x)| Some((size(name)?, *x))).collect();
        self.timed(&sizes?)
    }

    /// The same model as that of `choose` ([`super::search`]).
    fn whole(&self) -> Option<Prediction> {
        match self.space.work.has_several_products() {
            true => SeveralProducts::of(&self.space).given().ok(),
            false => predict(&self.space, &mut self.space.env.clone()),
        }
    }

    /// Whether times for other sizes need no passes: the operands of all products are tiles.
    fn sees_through(&self) -> bool {
        self.space.work.products().all(|p| p.operands.iter().all(|o| !o.computed))
    }

    /// Seconds of a launch with these sizes.
    fn timed(&self, sizes: &[(Value, i64)]) -> Option<f64> {
        if !self.sees_through() {
            return None;
        }
        let mut env = self.space.env.clone();
        for &(v, x) in sizes {
            env[v] = Some(x);
        }
        let cost = self.space.setting().cost(&env).ok()?;
        let mut launch = self.space.launch(&env, self.space.bytes(&env));
        self.space.raster(&mut env, &cost, &mut launch);
        Some(model::time(self.space.card, &cost, &launch).seconds)
    }
}

/// The cost and launch of a kernel without `auto` parameters, for the model alone.
#[cfg(test)]
pub(super) fn parts(space: &Space<'_>) -> Option<(Cost, Launch)> {
    let mut env = space.env.clone();
    let cost = space.setting().cost(&env).ok()?;
    let mut launch = space.launch(&env, space.bytes(&env));
    space.raster(&mut env, &cost, &mut launch);
    Some((cost, launch))
}

/// The prediction with the values of `env`.
pub(super) fn predict(space: &Space<'_>, env: &mut Env) -> Option<Prediction> {
    let cost = space.setting().cost(env).ok()?;
    let mut launch = space.launch(env, space.bytes(env));
    space.raster(env, &cost, &mut launch);
    let time = model::time(space.card, &cost, &launch);
    // The same launch if rows of boxes took no longer than their bytes.
    let full = model::time(space.card, &cost.with_full_rows(), &launch);
    let apart = model::time(space.card, &cost.without_combining(), &launch);
    let k = space.work.k;
    let given = |v: Value| space.options.sizes.iter().any(|(name, _)| *name == k.values[v].name);
    Some(Prediction {
        card: space.card.name,
        sizes: k.sizes.iter().map(|&v| (k.values[v].name.clone(), env[v].unwrap_or(1))).collect(),
        sizes_given: k.sizes.iter().any(|&v| given(v)),
        seconds: time.seconds,
        working: time.working,
        awaited: time.awaited,
        bytes: time.bytes,
        least_bytes: time.least_bytes,
        reads: reads(space, env, &cost, launch.grid.iter().product()),
        flops: 2.0 * cost.macs * time.tiles,
        terms: time.terms,
        added: Added {
            rows: (time.seconds - full.seconds).max(0.0),
            combining: (time.seconds - apart.seconds).max(0.0),
            ..Added::default()
        },
        tiles: time.tiles,
        blocks: time.blocks,
        waves: time.waves,
        resident: cost.resident,
        threads: cost.block.threads,
        registers: cost.block.tiles,
        shared: cost.block.shared,
        atom: cost.atom.map(|a| a.row().name),
        places: Vec::new(),
        unknown: None,
        padding: Padding::default(),
    })
}

/// How many times each tensor is read from memory by a launch of `blocks` blocks.
fn reads(space: &Space<'_>, env: &Env, cost: &Cost, blocks: f64) -> Vec<(String, f64)> {
    let work = &space.work;
    let of = |tensor: &Tensor| {
        let mut bytes = 0.0;
        for (region, part) in work.regions.iter().zip(&cost.parts) {
            let own = region.moves.iter().zip(&part.fetched).filter(|(m, _)| m.load && m.tensor == tensor.value);
            bytes += blocks * part.trips * own.map(|(_, fetched)| fetched).sum::<f64>();
        }
        let needed = work.needed(env, tensor);
        (bytes > 0.0 && needed > 0.0).then(|| (work.k.values[tensor.value].name.clone(), bytes / needed))
    };
    work.tensors.iter().filter_map(of).collect()
}

/// Why a kernel is not legal, with what in it is not.
fn named(space: &Space<'_>, why: Illegal) -> String {
    let (k, env, setting) = (space.work.k, &space.env, space.setting());
    match why {
        Illegal::Extent => {
            let odd = space
                .work
                .tiles
                .iter()
                .find(|t| !setting.has_extents(env, &t.shape) || !setting.is_small(env, &t.shape));
            let extent = |&e: &Expr| space.work.extent(env, e).map_or_else(|| print_expr(k, e), |n| n.to_string());
            let tile = odd.map(|t| {
                let extents: Vec<String> = t.shape.iter().map(extent).collect();
                format!("`{}` is {}", k.values[t.value].name, extents.join(" x "))
            });
            match tile {
                Some(tile) => format!(
                    "the model knows tiles of at most 2^20 elements whose extents are powers of two (columns of wgmma: multiples of 8), and {tile}"
                ),
                None => why.why().to_owned(),
            }
        }
        Illegal::Precondition => {
            let broken = k.requires.iter().find(|&&e| space.work.truth(env, e) == Some(false));
            let size = |v: Value| Some(format!("{}={}", k.values[v].name, env[v]?));
            let sizes: Vec<String> = k.sizes.iter().filter_map(|&v| size(v)).collect();
            match broken {
                Some(&e) => format!(
                    "`{}` does not hold with the sizes that are assumed, {}: give others (`--for`)",
                    print_expr(k, e),
                    sizes.join(" ")
                ),
                None => why.why().to_owned(),
            }
        }
        _ => why.why().to_owned(),
    }
}
