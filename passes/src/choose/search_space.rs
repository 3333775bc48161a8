//! A kernel with `auto` parameters, and the facts that all candidates share.

use super::cards::Card;
use super::cost::Cost;
use super::model;
use super::model::launch::Launch;
use super::parameters::{Auto, Role};
use super::search_context::{AssumedPaths, SearchContext};
use super::search_result::Failed;
use super::sizes::assume;
use super::work::{Env, Work};
use crate::analysis::distinct;
use crate::assign_layouts::reduced_axes;
use crate::select_mma::warpgroup::WgmmaForm;
use crate::select_mma::wgmma::of_kernel;
use crate::{Options, select_mma, specialize};
use tilec_ir::cluster;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ConstValue, ExprData, Kernel, ValueDef};
use tilec_ir::ops::Op;

/// Numbers of adjacent columns in rasterisation; the first of equally good ones is taken.
pub(super) const RASTERS: [i64; 4] = [8, 4, 2, 1];

/// A kernel with `auto` parameters.
pub(super) struct Space<'a> {
    pub(super) work: Work<'a>,
    pub(super) options: &'a Options,
    pub(super) card: &'static Card,
    /// The `auto` parameters; those whose value excludes a combination early come first.
    pub(super) autos: Vec<Auto>,
    /// Known values of sizes and parameters.
    pub(super) env: Env,
    /// Parameters that have the value of an earlier one.
    pub(super) same: Vec<(Value, Value)>,
    /// Values of all parameters, with placeholders for `auto` parameters.
    pub(super) values: Vec<(Value, ConstValue)>,
    /// The dimensions along which some tile is reduced.
    pub(super) reduced: Vec<usize>,
    /// The `auto` parameter that is the number of stages, if any.
    pub(super) stages: Option<Value>,
    /// Its possible values.
    pub(super) depths: Vec<i64>,
    /// If products use wgmma: how they are computed (transposed, operand in registers).
    pub(super) warpgroups: Option<WgmmaForm>,
    /// Whether the first product is scalar.
    pub(super) scalar: bool,
    /// Whether tiles may exceed the estimated registers of a thread.
    pub(super) crowded: bool,
    /// Multiply-adds of the fastest instruction for the first product, per clock and multiprocessor.
    pub(super) fastest_rate: f64,
}

/// How wgmma products are computed, if products use wgmma once parameters have values. The values do not matter, except
/// for types and orders.
fn of_warpgroups(k: &Kernel, values: &[(Value, ConstValue)], options: &Options) -> Option<WgmmaForm> {
    if !options.target.has_tensor_copies() || !options.is_on(select_mma::NAME) {
        return None;
    }
    let mut k = k.clone();
    for &(p, value) in values {
        if let ValueDef::ConstParam(param) = &mut k.values[p].def {
            param.default = Some(value);
        }
    }
    specialize::quietly(&mut k, options).ok()?;
    of_kernel(&k, options)
}

impl<'a> Space<'a> {
    /// Analyses the kernel; without `autos`, all of its parameters must have values.
    pub(super) fn new(k: &'a Kernel, options: &'a Options, autos: &[Auto]) -> Result<Space<'a>, Failed> {
        let mut values: Vec<(Value, ConstValue)> = Vec::new();
        let mut same = Vec::new();
        for &p in &k.const_params {
            let ValueDef::ConstParam(param) = &k.values[p].def else { continue };
            let stand_in = autos.iter().find(|a| a.value == p).map(|a| ConstValue::Int(a.role.plain()));
            let value = match (stand_in, param.default) {
                (Some(value), _) => value,
                (None, Some(ConstValue::Same(earlier))) => {
                    same.push((p, earlier));
                    let Some(&(_, value)) = values.iter().find(|(q, _)| *q == earlier) else { continue };
                    value
                }
                (None, Some(value)) => value,
                (None, None) => return Err(Failed::Opaque("a parameter has no value".to_owned())),
            };
            values.push((p, value));
        }
        let work = Work::of(k, &values).map_err(Failed::Opaque)?;
        let mut env = Env::new();
        for &(p, value) in &values {
            if let ConstValue::Int(x) = value {
                env[p] = Some(x);
            }
        }
        let card = options.usual_card();
        let stages = autos.iter().find(|a| a.role == Role::Stages).map(|a| a.value);
        let warpgroups = of_warpgroups(k, &values, options);
        let depths = match warpgroups {
            // A single block has a multiprocessor to itself, so memory that its slots leave is useless.
            Some(_) => vec![8, 6, 5, 4, 3, 2],
            None if options.target.has_asynchronous_copies() => vec![4, 3, 2, 5, 6, 8],
            None => vec![2],
        };
        let mut ordered = autos.to_vec();
        ordered.sort_by_key(|a| a.role as u8);
        let mut space = Space {
            work,
            options,
            card,
            autos: ordered,
            env,
            same,
            values,
            reduced: reduced_axes(k),
            stages,
            depths,
            warpgroups,
            scalar: false,
            // A program without `auto` parameters is never refused.
            crowded: autos.is_empty(),
            fastest_rate: 1.0,
        };
        let first = space.work.products().next();
        let (scalar, rate) = first.map_or((false, 1.0), |p| space.setting().fastest(p));
        (space.scalar, space.fastest_rate) = (scalar, rate);
        for &v in &k.sizes {
            let given = options.sizes.iter().rev().find(|(name, _)| *name == k.values[v].name);
            space.env[v] = given.map(|&(_, x)| x);
        }
        assume(&space.work, &mut space.env);
        // Loop bounds may depend on the block; the first block represents all.
        for axis in &k.grid {
            space.env[axis.index] = Some(0);
        }
        Ok(space)
    }

    /// The facts that all candidates share.
    pub(super) fn setting(&self) -> SearchContext<'_> {
        SearchContext {
            work: &self.work,
            target: self.options.target,
            card: self.card,
            reduced: &self.reduced,
            tensor_cores: self.tensor_cores(),
            warpgroups: self.warpgroups,
            stage_stores: self.options.is_on(crate::stage_stores::NAME)
                && self.work.k.schedule.stage_stores.and_then(|e| self.work.k.as_int(e)) != Some(0),
            stream_k: self.work.k.schedule.stream_k.and_then(|e| self.work.k.as_int(e)).map(|x| x == 1),
            split_k: cluster::split(self.work.k),
            supposed: AssumedPaths::default(),
            crowded: self.crowded,
        }
    }

    /// Whether products will run on tensor cores.
    fn tensor_cores(&self) -> bool {
        self.options.is_on(select_mma::NAME)
    }

    /// A precondition that is false, whichever values the `auto` parameters have.
    pub(super) fn contradiction(&self) -> Option<Expr> {
        let mut env = self.env.clone();
        for auto in &self.autos {
            env[auto.value] = None;
        }
        self.bind_same(&mut env);
        self.work.k.requires.iter().copied().find(|&e| self.work.truth(&env, e) == Some(false))
    }

    /// Properties of a launch without rasterisation. `bytes`: of all tensors.
    pub(super) fn launch(&self, env: &Env, bytes: f64) -> Launch {
        let work = &self.work;
        let extent = |i: usize| work.k.grid.get(i).and_then(|g| work.extent(env, g.extent)).unwrap_or(1) as f64;
        let whole = [0, 1].map(|i| self.divided(env, i).map_or(0.0, |n| n as f64));
        let distinct = distinct::distinct_fraction(work.k, &|e| work.int(env, e));
        let combined = work.least_combined(env);
        Launch { grid: [extent(0), extent(1), extent(2)], raster: 1.0, bytes, combined, distinct, whole }
    }

    /// The extent that an axis of the grid divides into tiles.
    pub(super) fn divided(&self, env: &Env, axis: usize) -> Option<i64> {
        let k = self.work.k;
        match k.grid.get(axis).map(|axis| &k.exprs[axis.extent]) {
            Some(ExprData::Op { op: Op::CeilDiv, args }) => self.work.int(env, args[0]),
            _ => None,
        }
    }

    /// Bytes of all tensors that the launch accesses: what values are combined with in both directions.
    pub(super) fn bytes(&self, env: &Env) -> f64 {
        let once: f64 = self.work.tensors.iter().map(|tensor| self.work.needed(env, tensor)).sum();
        once + self.work.least_combined(env) / 2.0
    }

    /// Sets the best, or the given, number of columns for rasterisation.
    pub(super) fn raster(&self, env: &mut Env, cost: &Cost, launch: &mut Launch) {
        if self.work.k.grid.len() < 2 {
            return;
        }
        let Some(auto) = self.autos.iter().find(|a| a.role == Role::Raster) else {
            let given = self.work.k.schedule.raster.and_then(|e| self.work.int(env, e));
            launch.raster = given.unwrap_or(1).max(1) as f64;
            return;
        };
        let mut best = (1, f64::INFINITY);
        for columns in RASTERS {
            let takes = model::grouping(self.card, cost, &Launch { raster: columns as f64, ..*launch });
            if takes < best.1 {
                best = (columns, takes);
            }
        }
        launch.raster = best.0 as f64;
        env[auto.value] = Some(best.0);
        self.bind_same(env);
    }

    /// The parameter whose value this parameter has.
    pub(super) fn original(&self, p: Value) -> Value {
        match self.same.iter().find(|(same, _)| *same == p) {
            Some(&(_, earlier)) => self.original(earlier),
            None => p,
        }
    }

    /// Sets parameters to the values of those that they equal.
    pub(super) fn bind_same(&self, env: &mut Env) {
        for &(p, earlier) in &self.same {
            env[p] = env[earlier];
        }
    }

    /// Values by name, in the order of the kernel.
    pub(super) fn named(&self, values: &[(Value, i64)]) -> Vec<(String, i64)> {
        let k = self.work.k;
        let value = |p: &Value| values.iter().find(|(v, _)| v == p).map(|&(_, x)| (k.values[*p].name.clone(), x));
        k.const_params.iter().filter_map(value).collect()
    }
}
