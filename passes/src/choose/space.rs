//! A kernel with parameters to choose, and the facts about it that all candidates share.

use super::cards::Card;
use super::cost::Cost;
use super::found::Failed;
use super::model;
use super::model::launch::Launch;
use super::parameters::{Auto, Role};
use super::setting::{Setting, Supposed};
use super::sizes::assumed;
use super::work::{Env, Work};
use crate::analysis::distinct;
use crate::assign_layouts::reduced_axes;
use crate::select_mma::warpgroup::Way;
use crate::select_mma::wgmma::of_kernel;
use crate::{Options, select_mma, specialize};
use tilec_ir::cluster;
use tilec_ir::entities::Value;
use tilec_ir::kernel::{ConstValue, ExprData, Kernel, ValueDef};
use tilec_ir::ops::Op;

/// Values of the number of neighbouring columns that rasterisation groups; of those that do equally well the first is taken.
pub(super) const RASTERS: [i64; 4] = [8, 4, 2, 1];

/// A kernel with parameters to choose.
pub(super) struct Space<'a> {
    pub(super) work: Work<'a>,
    pub(super) options: &'a Options,
    pub(super) card: &'static Card,
    /// The parameters to choose: what decides early whether a combination is worth a look comes first.
    pub(super) autos: Vec<Auto>,
    /// Values of sizes and of parameters that are known.
    pub(super) env: Env,
    /// Parameters that have the value of an earlier one.
    pub(super) same: Vec<(Value, Value)>,
    /// Values of all parameters, stand-ins for those to choose among them.
    pub(super) values: Vec<(Value, ConstValue)>,
    /// The dimensions along which some tile is reduced.
    pub(super) reduced: Vec<usize>,
    /// The parameter that is the number of stages, if it is to be chosen.
    pub(super) stages: Option<Value>,
    /// The values that it may have.
    pub(super) depths: Vec<i64>,
    /// Whether products are of warpgroups, and then whether they are better computed transposed.
    pub(super) warpgroups: Option<Way>,
    /// Whether the first product is scalar.
    pub(super) scalar: bool,
    /// Whether tiles may crowd the registers of a thread.
    pub(super) crowded: bool,
    /// Multiply-adds of the fastest instruction for the first product, per clock and multiprocessor.
    pub(super) fastest_rate: f64,
}

/// Whether the products of a kernel are of warpgroups once its parameters have values, and how they are computed: which values does not
/// matter, but for the types and orders.
fn of_warpgroups(k: &Kernel, values: &[(Value, ConstValue)], options: &Options) -> Option<Way> {
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
    /// Reads the kernel; with no `autos`, all of its parameters must have values.
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
            // One block has a multiprocessor to itself: there is no use for what its slots leave.
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
            // Of a program that is given nothing is refused.
            crowded: autos.is_empty(),
            fastest_rate: 1.0,
        };
        let first = space.work.products().next();
        let (scalar, rate) = first.map_or((false, 1.0), |p| space.setting().fastest(p));
        (space.scalar, space.fastest_rate) = (scalar, rate);
        for &v in &k.sizes {
            let given = options.sizes.iter().rev().find(|(name, _)| *name == k.values[v].name);
            space.env[v] = Some(given.map_or_else(|| assumed(&space.work, &space.env, v), |&(_, x)| x));
        }
        // Loops may depend on the block: the first stands for all.
        for axis in &k.grid {
            space.env[axis.index] = Some(0);
        }
        Ok(space)
    }

    /// What is the same for all candidates.
    pub(super) fn setting(&self) -> Setting<'_> {
        Setting {
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
            supposed: Supposed::default(),
            crowded: self.crowded,
        }
    }

    /// Whether products will run on tensor cores.
    fn tensor_cores(&self) -> bool {
        self.options.is_on(select_mma::NAME)
    }

    /// What a launch does besides its blocks, not rasterised. `bytes`: of all tensors.
    pub(super) fn launch(&self, env: &Env, bytes: f64) -> Launch {
        let work = &self.work;
        let extent = |i: usize| work.k.grid.get(i).and_then(|g| work.extent(env, g.extent)).unwrap_or(1) as f64;
        let whole = [0, 1].map(|i| self.divided(env, i).map_or(0.0, |n| n as f64));
        let distinct = distinct::share(work.k, &|e| work.int(env, e));
        Launch { grid: [extent(0), extent(1), extent(2)], raster: 1.0, bytes, distinct, whole }
    }

    /// The extent that an axis of the grid divides into tiles.
    pub(super) fn divided(&self, env: &Env, axis: usize) -> Option<i64> {
        let k = self.work.k;
        match k.grid.get(axis).map(|axis| &k.exprs[axis.extent]) {
            Some(ExprData::Op { op: Op::CeilDiv, args }) => self.work.int(env, args[0]),
            _ => None,
        }
    }

    /// Bytes of all tensors, as far as the launch needs them.
    pub(super) fn bytes(&self, env: &Env) -> f64 {
        self.work.tensors.iter().map(|tensor| self.work.needed(env, tensor)).sum()
    }

    /// Rasterises as well as can be, or as it is given: the best number of columns to group.
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

    /// The parameter whose value a parameter has.
    pub(super) fn original(&self, p: Value) -> Value {
        match self.same.iter().find(|(same, _)| *same == p) {
            Some(&(_, earlier)) => self.original(earlier),
            None => p,
        }
    }

    /// Gives parameters the values of those that they are the same as.
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
