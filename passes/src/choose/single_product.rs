//! The search for kernels with at most one product: combinations in the order of their bound; the legal ones are timed.

use super::combinations::Combinations;
use super::cost::Cost;
use super::illegal::Illegal;
use super::model;
use super::model::launch::Launch;
use super::parameters::Role;
use super::prediction::{Choice, Prediction, RunnerUp, SMALLER};
use super::predictor::predict;
use super::search_context::SearchContext;
use super::search_result::{Failed, Ranked, SearchResult};
use super::search_space::Space;
use super::work::Env;
use tilec_ir::entities::Value;

/// Times that differ by less than this share count as equal.
const TIE: f64 = 0.005;
/// Stages that are tried first.
const USUAL_STAGES: i64 = 4;
/// The relative gain that fewer stages must have.
const LEAST_GAIN: f64 = 0.02;
/// Candidates up to this much slower than the fastest are searched completely, because one of them may win.
const NEAR: f64 = 1.05;

/// A combination of values.
#[derive(Copy, Clone, Debug)]
struct Candidate {
    index: usize,
    stages: i64,
    rank: u64,
}

/// The search.
pub(super) struct SingleProduct<'a> {
    space: &'a Space<'a>,
    setting: SearchContext<'a>,
    combinations: Combinations<'a>,
}

impl<'a> SingleProduct<'a> {
    pub(super) fn of(space: &'a Space<'a>) -> SingleProduct<'a> {
        SingleProduct { space, setting: space.setting(), combinations: Combinations::of(space) }
    }

    /// A tie-breaker between equal predictions; smaller is better. Tiles of wgmma count with their parts outside the
    /// output: TMA loads of rows outside the tensor take longer than the model says (32x3072x3072 on an H200: 11.7 us
    /// in tiles of 64x32, 8.0 us in tiles of 32x64).
    fn rank(&self, env: &Env, cost: &Cost, launch: &Launch) -> u64 {
        let (Some(_), Some((rows, cols))) = (self.space.warpgroups, cost.tile) else { return cost.rank };
        let outside = |axis: usize, tile: u64| {
            let whole = self.space.divided(env, axis).filter(|&n| n > 0);
            whole.map_or(1.0, |n| launch.grid[axis] * tile as f64 / n as f64)
        };
        (cost.rank as f64 * outside(0, rows) * outside(1, cols)) as u64
    }

    /// Legal combinations with their predicted seconds, in no order. Some of those that take more than `far` times the
    /// fastest time are left out. For each tile, the numbers of stages that gain, each with its best rasterisation.
    fn timed(&self, far: f64) -> Result<Vec<(Candidate, f64)>, Failed> {
        self.combinations.count().ok_or_else(|| Failed::Opaque("too many parameters are `auto`".to_owned()))?;
        let mut env = self.space.env.clone();
        let bytes = self.space.bytes(&env);
        let mut timed: Vec<(Candidate, f64)> = Vec::new();
        let (mut furthest, mut fastest_yet) = (None, f64::INFINITY);
        for (least, index) in self.combinations.bounded(bytes) {
            // A combination whose lower bound is too slow need not be predicted.
            if least > fastest_yet * far {
                break;
            }
            self.combinations.bind(index, &mut env);
            let mut launch = self.space.launch(&env, bytes);
            let cost = if self.space.stages.is_some() { self.setting.block(&env) } else { self.setting.cost(&env) };
            let mut cost = match cost {
                Ok(cost) => cost,
                Err(why) => {
                    furthest = furthest.max(Some(why));
                    continue;
                }
            };
            let (mut last, mut resident) = (f64::INFINITY, 0);
            for &stages in self.space.stages.map_or(&[0][..], |_| &self.space.depths) {
                if let Some(auto) = self.space.stages {
                    env[auto] = Some(stages);
                    self.space.bind_same(&mut env);
                    if let Err(why) = self.setting.staged(&mut cost, &env) {
                        furthest = furthest.max(Some(why));
                        continue;
                    }
                }
                if resident != cost.resident {
                    resident = cost.resident;
                    self.space.raster(&mut env, &cost, &mut launch);
                }
                let seconds = model::time(self.space.card, &cost, &launch).seconds;
                debug_assert!(least <= seconds, "bug: a bound of {least} s on what takes {seconds} s, with {env:?}");
                // Fewer stages tolerate longer loads less, so they must gain something. Deeper pipelines take more
                // shared memory: once one does not gain, no deeper one will.
                if stages < USUAL_STAGES && !cost.offloaded {
                    if seconds >= last * (1.0 - LEAST_GAIN) {
                        continue;
                    }
                } else if seconds >= last {
                    // Fewer slots may leave room for a block of the next launch.
                    if cost.fed && !cost.beside {
                        continue;
                    }
                    break;
                }
                last = seconds;
                fastest_yet = fastest_yet.min(seconds);
                timed.push((Candidate { index, stages, rank: self.rank(&env, &cost, &launch) }, seconds));
            }
        }
        // The first of equals is taken, in the order of the values.
        timed.sort_by_key(|(c, _)| c.index);
        if timed.is_empty() { Err(Failed::NoneLegal(furthest.unwrap_or(Illegal::Extent))) } else { Ok(timed) }
    }

    pub(super) fn fastest(&self) -> Result<SearchResult, Failed> {
        let timed = self.timed(NEAR)?;
        let mut env = self.space.env.clone();
        let fastest = |of: &mut dyn Iterator<Item = (Candidate, f64)>| of.reduce(|a, b| if b.1 < a.1 { b } else { a });
        let Some((_, least)) = fastest(&mut timed.iter().copied()) else {
            return Err(Failed::NoneLegal(Illegal::Extent));
        };
        // Among equal candidates, the one with the lowest rank is taken, and of these the first. But for wgmma, a
        // candidate with more than two slots is preferred: two slots of twice the depth take 2 to 4 % longer than
        // predicted (3072x3072x3072 on an H200: 94.3 us, and 92.7 us with four slots).
        let few = |c: &Candidate| self.space.warpgroups.is_some() && (1..=2).contains(&c.stages);
        let near = timed.iter().copied().filter(|(_, seconds)| *seconds <= least * (1.0 + TIE));
        let Some((best, seconds)) = near.min_by_key(|(c, _)| (few(c), c.rank)) else {
            return Err(Failed::NoneLegal(Illegal::Extent));
        };
        let (values, prediction) = self.prediction(best, &mut env);
        // A candidate that differs only in stages or rasterisation is not reported as the runner-up.
        let mut others = timed.iter().copied().filter(|(c, _)| c.index != best.index);
        let runner_up = fastest(&mut others).map(|(candidate, slower)| {
            let (values, other) = self.prediction(candidate, &mut env);
            let rule =
                if few(&candidate) { "two slots count for less where times are as good as equal" } else { SMALLER };
            let terms = (&other.terms, &prediction.terms);
            RunnerUp::new(self.space.named(&values), slower / seconds - 1.0, terms, rule.to_owned())
        });
        let choice = Choice { values: self.space.named(&values), prediction, candidates: timed.len(), runner_up };
        Ok(SearchResult { values, choice: Some(choice), crowded: self.space.crowded })
    }

    pub(super) fn all(&self, far: f64) -> Result<Vec<Ranked>, Failed> {
        let best = self.fastest()?.choice.map(|c| Ranked { values: c.values, seconds: c.prediction.seconds });
        let mut timed = self.timed(far)?;
        timed.sort_by(|(a, x), (b, y)| x.total_cmp(y).then(a.rank.cmp(&b.rank)).then(a.index.cmp(&b.index)));
        let limit = best.as_ref().map_or(f64::INFINITY, |b| b.seconds * far);
        let mut env = self.space.env.clone();
        let mut others: Vec<Ranked> = Vec::new();
        for (candidate, seconds) in timed.into_iter().take_while(|(_, seconds)| *seconds <= limit) {
            let (values, _) = self.prediction(candidate, &mut env);
            let values = self.space.named(&values);
            if best.as_ref().is_none_or(|b| b.values != values) {
                others.push(Ranked { values, seconds });
            }
        }
        Ok(best.into_iter().chain(others).collect())
    }

    /// The values of a combination, and its prediction.
    fn prediction(&self, candidate: Candidate, env: &mut Env) -> (Vec<(Value, i64)>, Prediction) {
        self.combinations.bind(candidate.index, env);
        if let Some(auto) = self.space.stages {
            env[auto] = Some(candidate.stages);
            self.space.bind_same(env);
        }
        let prediction = predict(self.space, env).expect("it was timed");
        (self.space.autos.iter().map(|a| (a.value, env[a.value].unwrap_or(1))).collect(), prediction)
    }

    /// The number of legal combinations; each is predicted, however slow its bound is.
    #[cfg(test)]
    pub(super) fn legal(&self) -> usize {
        self.timed(f64::INFINITY).map_or(0, |timed| timed.len())
    }

    /// The plain values, with warp tiles clamped to the tile; if they are not legal, the first legal ones.
    pub(super) fn first(&self) -> Result<SearchResult, Failed> {
        let mut env = self.space.env.clone();
        let product = self.space.work.products().next();
        let extents = product.map(|p| p.shape.map(|e| self.space.work.int(&env, e).unwrap_or(i64::MAX)));
        let values: Vec<i64> = self
            .space
            .autos
            .iter()
            .map(|a| match (a.role, extents) {
                (Role::WarpRows, Some([rows, ..])) => a.role.plain().min(rows),
                (Role::WarpCols, Some([_, cols, _])) => a.role.plain().min(cols),
                _ => a.role.plain(),
            })
            .collect();
        let named = |values: &[i64]| self.space.autos.iter().map(|a| a.value).zip(values.iter().copied()).collect();
        for (auto, &value) in self.space.autos.iter().zip(&values) {
            env[auto.value] = Some(value);
        }
        self.space.bind_same(&mut env);
        let mut furthest = match self.setting.cost(&env) {
            Ok(_) => return Ok(SearchResult { values: named(&values), choice: None, crowded: self.space.crowded }),
            Err(why) => why,
        };
        for index in 0..self.combinations.count().unwrap_or(0) {
            self.combinations.bind(index, &mut env);
            match self.setting.cost(&env) {
                Ok(_) => {
                    let values = self.space.autos.iter().map(|a| (a.value, env[a.value].unwrap_or(1))).collect();
                    return Ok(SearchResult { values, choice: None, crowded: self.space.crowded });
                }
                Err(why) => furthest = furthest.max(why),
            }
        }
        Err(Failed::NoneLegal(furthest))
    }
}
