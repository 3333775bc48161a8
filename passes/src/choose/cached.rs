//! Loads of kernels without products that a cache serves, because the launch has loaded the bytes before.
//!
//! A line comes from memory once, and again only if more bytes than the second-level cache holds are moved in between.
//! So the windows of a tensor are compared as boxes: those of one iteration, those of all loops of a block, and those
//! of neighbouring blocks along each axis of the grid. What passes in between counts once, too: its distinct bytes.

use super::cards::Card;
use super::cost::Cost;
use super::model::launch::L2_SHARE;
use super::search_context::SearchContext;
use super::work::{Along, Env, Move, Region, Work};
use std::collections::BTreeMap;
use tilec_ir::entities::Value;
use tilec_ir::index;

/// Elements of a tensor along each dimension: the first one, and the end (exclusive).
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Elements(Vec<(f64, f64)>);

impl Elements {
    fn count(&self) -> f64 {
        self.0.iter().map(|(from, to)| (to - from).max(0.0)).product()
    }

    /// The smallest box around both.
    fn around(&self, other: &Elements) -> Elements {
        Elements(self.0.iter().zip(&other.0).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1))).collect())
    }

    /// The distance along a dimension to a box with the same places along all others.
    pub(super) fn apart(&self, other: &Elements, along: usize) -> Option<f64> {
        let same = |d: usize| d == along || self.0[d] == other.0[d];
        (along < self.0.len() && (0..self.0.len()).all(same)).then(|| other.0[along].0 - self.0[along].0)
    }

    /// The elements of both.
    fn common(&self, other: &Elements) -> Elements {
        Elements(self.0.iter().zip(&other.0).map(|(a, b)| (a.0.max(b.0), a.1.min(b.1))).collect())
    }
}

/// The share of elements that are distinct, of `count` elements in a box.
fn distinct(around: &Elements, count: f64) -> f64 {
    if count > 0.0 { (around.count() / count).min(1.0) } else { 1.0 }
}

/// Two neighbours along an axis of the grid with `count` blocks, in the middle of it.
pub(super) fn neighbours(env: &Env, index: Value, count: i64) -> [Env; 2] {
    [count / 2, count / 2 + 1].map(|at| {
        let mut env = env.clone();
        env[index] = Some(at);
        env
    })
}

/// The windows that copies of a block access, if the places of all are known.
pub(super) struct Touched {
    /// Copies: region, copy in the region, bytes in all iterations.
    by: Vec<(usize, usize, f64)>,
    /// The share of the bytes of each region that its windows have not in common.
    near: BTreeMap<usize, f64>,
    /// The share of what remains that all loops of the block have not in common.
    far: f64,
    /// The elements that the block accesses.
    around: Elements,
}

impl Touched {
    /// The share of the bytes of the block that are distinct.
    pub(super) fn distinct(&self) -> f64 {
        let all: f64 = self.by.iter().map(|(_, _, bytes)| bytes).sum();
        self.far * self.near_bytes() / all.max(1.0)
    }

    /// The share of its elements that another block accesses too.
    pub(super) fn in_common(&self, other: &Touched) -> f64 {
        self.around.common(&other.around).count() / self.around.count()
    }

    /// Bytes of the block, each once in an iteration.
    fn near_bytes(&self) -> f64 {
        self.by.iter().map(|&(region, _, bytes)| bytes * self.near_share(region)).sum()
    }

    fn near_share(&self, region: usize) -> f64 {
        self.near.get(&region).copied().unwrap_or(1.0)
    }
}

impl SearchContext<'_> {
    /// Finds which loads of each part a cache serves.
    pub(super) fn serve_from_caches(&self, env: &Env, cost: &mut Cost) {
        let work = self.work;
        for part in &mut cost.parts {
            (part.cached, part.near) = (0.0, 0.0);
            part.fetched.clone_from(&part.copied);
        }
        // Without the sectors that the next iterations find in a cache.
        let copied = self.keep_sectors(env, cost);
        let trips: Vec<f64> = cost.parts.iter().map(|part| part.trips).collect();
        let tensors: Vec<Value> = work.tensors.iter().map(|tensor| tensor.value).collect();
        let loaded = |env: &Env| -> Vec<Option<Touched>> {
            let loads = |v: Value| move |m: &Move| m.load && m.tensor == v;
            tensors.iter().map(|&v| work.touched(env, &loads(v), &copied, &trips)).collect()
        };
        let mut of = loaded(env);
        self.serve_gathers(env, cost, &of);
        let counts: Vec<i64> = work.k.grid.iter().map(|axis| work.int(env, axis.extent).unwrap_or(1).max(1)).collect();
        // What a block shares with its neighbour along each axis, by tensor.
        let common: Vec<Vec<f64>> = work
            .k
            .grid
            .iter()
            .zip(&counts)
            .map(|(axis, &count)| {
                let [own, others] = neighbours(env, axis.index, count).map(|env| loaded(&env));
                let share =
                    |(t, other): (&Option<Touched>, &Option<Touched>)| Some(t.as_ref()?.in_common(other.as_ref()?));
                own.iter().zip(&others).map(|pair| share(pair).unwrap_or(0.0)).collect()
            })
            .collect();
        let across = self.served_across(cost, &mut of, (&counts, &common), &copied);
        for (t, share) in of.iter().zip(across) {
            for &(region, copy, _) in t.iter().flat_map(|t| &t.by) {
                let Some(t) = t else { continue };
                let (part, near) = (&mut cost.parts[region], t.near_share(region));
                part.near += copied[region][copy] * (1.0 - near);
                part.cached += copied[region][copy] * (1.0 - near * t.far * share);
                part.fetched[copy] = copied[region][copy] * near * t.far * share;
            }
        }
    }

    /// For each tensor, the share of a block's bytes that memory serves, because other blocks have not loaded them
    /// before. `common`: what neighbours along each axis of the grid have in common.
    ///
    /// Blocks that run at once go through their loops together: they load common elements once. Other neighbours along an
    /// axis run one sweep of the axes before it apart, and the cache serves them if it holds the distinct bytes of the
    /// sweep.
    fn served_across(
        &self,
        cost: &Cost,
        of: &mut [Option<Touched>],
        (counts, common): (&[i64], &[Vec<f64>]),
        copied: &[Vec<f64>],
    ) -> Vec<f64> {
        let blocks: f64 = counts.iter().map(|&n| n as f64).product();
        let active = blocks.min(f64::from(self.card.sms) * cost.resident as f64);
        let room = L2_SHARE * self.card.l2_size * 1e6;
        // The share of the bytes of so many neighbours that are distinct.
        let distinct = |common: f64, count: f64| (1.0 + (count - 1.0) * (1.0 - common)) / count;
        let own = |t: &Option<Touched>| t.as_ref().map_or(0.0, |t| t.far * t.near_bytes());
        // Of the blocks that run at once, so many are neighbours along each axis.
        let mut left = active;
        let together: Vec<f64> = counts
            .iter()
            .map(|&count| {
                let along = left.min(count as f64).max(1.0);
                left = (left / along).floor().max(1.0);
                along
            })
            .collect();
        let at_once = |(i, t): (usize, &Option<Touched>)| {
            own(t) * together.iter().zip(common).map(|(&n, common)| n * distinct(common[i], n)).product::<f64>()
        };
        // Blocks that run at once share the cache.
        if of.iter().enumerate().map(at_once).sum::<f64>() > room {
            of.iter_mut().flatten().for_each(|t| t.far = 1.0);
        }
        let stored: f64 = cost.parts.iter().map(|part| part.trips * part.stores).sum();
        let known: f64 = of.iter().flatten().flat_map(|t| &t.by).map(|(_, _, bytes)| bytes).sum();
        let all: f64 =
            cost.parts.iter().zip(copied).map(|(part, copied)| part.trips * copied.iter().sum::<f64>()).sum();
        let (mut others, mut across) = ((all - known).max(stored), vec![1.0; of.len()]);
        // Distinct bytes of a sweep of the axes before this one, by tensor.
        let mut swept: Vec<f64> = of.iter().map(own).collect();
        for ((&count, &along), common) in counts.iter().zip(&together).zip(common) {
            let holds = swept.iter().sum::<f64>() + others <= room;
            for ((share, swept), &common) in across.iter_mut().zip(&mut swept).zip(common) {
                *share *= distinct(common, if holds { count as f64 } else { along });
                *swept *= count as f64 * distinct(common, count as f64);
            }
            others *= count as f64;
        }
        across
    }
}

impl SearchContext<'_> {
    /// Loads of tensors of which indices from memory say the elements. `of`: what is known of each tensor.
    fn serve_gathers(&self, env: &Env, cost: &mut Cost, of: &[Option<Touched>]) {
        let work = self.work;
        let blocks: f64 =
            work.k.grid.iter().map(|axis| work.int(env, axis.extent).unwrap_or(1).max(1) as f64).product();
        for (tensor, _) in work.tensors.iter().zip(of).filter(|(_, known)| known.is_none()) {
            let own = |m: &Move| m.load && m.tensor == tensor.value;
            if !work.moves().any(|m| own(m) && m.window.is_none()) {
                continue;
            }
            let whole = tensor.elem.traffic(work.elements(env, &tensor.shape).unwrap_or(0) as f64);
            let missed = missed_at_random(self.card, whole, blocks * bytes_of(work, cost, &own));
            for (region, part) in work.regions.iter().zip(&mut cost.parts) {
                for (i, _) in region.moves.iter().enumerate().filter(|(_, m)| own(m)) {
                    part.cached += part.copied[i] * (1.0 - missed);
                    part.fetched[i] = part.copied[i] * missed;
                }
            }
        }
    }
}

/// The share of accesses at random places of a tensor that memory serves: it has `whole` bytes, and `all` are accessed.
pub(super) fn missed_at_random(card: &Card, whole: f64, all: f64) -> f64 {
    let often = all / whole.max(1.0);
    let first = if often > 0.0 { (1.0 - (-often).exp()) / often } else { 1.0 };
    // The share of what was accessed before that the cache still holds.
    let held = (L2_SHARE * card.l2_size * 1e6 / whole.max(1.0)).min(1.0);
    1.0 - (1.0 - first) * held
}

/// Bytes that copies of a block move.
pub(super) fn bytes_of(work: &Work<'_>, cost: &Cost, own: &dyn Fn(&Move) -> bool) -> f64 {
    let parts = work.regions.iter().zip(&cost.parts);
    parts
        .map(|(region, part)| {
            let all = region.moves.iter().zip(&part.copied).filter(|(m, _)| own(m));
            part.trips * all.map(|(_, bytes)| bytes).sum::<f64>()
        })
        .sum()
}

impl Work<'_> {
    /// The windows of a tensor that copies `of` it access in the block of `env`; `None`: there are none, or the place of a
    /// window is not known. `copied`: bytes of each copy of each region. `trips`: iterations of each region.
    pub(super) fn touched(
        &self,
        env: &Env,
        of: &dyn Fn(&Move) -> bool,
        copied: &[Vec<f64>],
        trips: &[f64],
    ) -> Option<Touched> {
        let (mut by, mut near, mut around, mut all) = (Vec::new(), BTreeMap::new(), None, 0.0);
        for (r, region) in self.regions.iter().enumerate().filter(|&(r, _)| trips[r] > 0.0) {
            let own = region.moves.iter().enumerate().filter(|(_, m)| of(m));
            let before = by.len();
            by.extend(own.map(|(i, _)| (r, i, trips[r] * copied[r][i])));
            if by.len() == before {
                continue;
            }
            let (first, last) = self.iterations(env, region)?;
            let ((one, count), (end, _)) = (self.windows_of(&first, region, of)?, self.windows_of(&last, region, of)?);
            let share = distinct(&one, count);
            all += trips[r] * count * share;
            near.insert(r, share);
            let swept = one.around(&end);
            around = Some(around.map_or_else(|| swept.clone(), |around: Elements| around.around(&swept)));
        }
        let around = around?;
        Some(Touched { by, near, far: distinct(&around, all), around })
    }

    /// The share of what a region loads from a tensor in an iteration that its windows have not in common.
    pub(super) fn loaded_once(&self, env: &Env, region: &Region, tensor: Value) -> f64 {
        let first = self.iterations(env, region).map(|(first, _)| first);
        let windows = first.and_then(|env| self.windows_of(&env, region, &|m| m.load && m.tensor == tensor));
        windows.map_or(1.0, |(around, count)| distinct(&around, count))
    }

    /// The box around all windows of a tensor that copies `of` it access in a region, and the sum of their elements.
    fn windows_of(&self, env: &Env, region: &Region, of: &dyn Fn(&Move) -> bool) -> Option<(Elements, f64)> {
        let (mut around, mut count): (Option<Elements>, f64) = (None, 0.0);
        for m in region.moves.iter().filter(|m| of(m)) {
            let own = self.window(env, m)?;
            count += self.elements(env, &m.shape)? as f64;
            around = Some(around.map_or_else(|| own.clone(), |around| around.around(&own)));
        }
        Some((around?, count))
    }

    /// The values of `env` in the first and in the last iteration of a region's loops.
    fn iterations(&self, env: &Env, region: &Region) -> Option<(Env, Env)> {
        if region.endless {
            return None;
        }
        let (mut first, mut last) = (env.clone(), env.clone());
        for (&v, &[start, end, step]) in region.variables.iter().zip(&region.loops) {
            first[v] = Some(self.int(&first, start)?);
            let [start, end, step] = [start, end, step].map(|e| self.int(&last, e));
            let (start, step) = (start?, step?);
            let count = i64::try_from(index::trips(start, end?, step)?).ok()?;
            last[v] = Some(start.checked_add((count - 1).checked_mul(step)?)?);
        }
        Some((first, last))
    }

    /// The elements of a copy's window.
    pub(super) fn window(&self, env: &Env, m: &Move) -> Option<Elements> {
        let along = |of: &Along| {
            let from = of
                .starts
                .iter()
                .try_fold(of.constant as f64, |sum, &(e, times)| Some(sum + self.int(env, e)? as f64 * times as f64))?;
            let last = (of.extent.map_or(Some(1), |e| self.extent(env, e))? - 1) as f64 * of.step as f64;
            Some((from + last.min(0.0), from + last.max(0.0) + 1.0))
        };
        m.window.as_ref()?.iter().map(along).collect::<Option<Vec<_>>>().map(Elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn along(x: (f64, f64), y: (f64, f64)) -> Elements {
        Elements(vec![x, y])
    }

    #[test]
    fn what_random_places_have_in_common_is_in_the_cache() {
        let card = Card::from_name("A100").expect("a card");
        let missed = |whole, all| missed_at_random(card, whole, all);
        // A small table is loaded once, however often it is read; of a few rows each comes from memory.
        assert!((missed(1e6, 1e9) - 1e-3).abs() < 1e-6);
        assert!(missed(1e12, 1e6) > 0.999_999);
        // Of a tensor of which the cache holds a tenth, a tenth of what was read before is there.
        let whole = 10.0 * L2_SHARE * card.l2_size * 1e6;
        assert!((missed(whole, 1e3 * whole) - 0.9).abs() < 1e-3);
    }

    #[test]
    fn elements_of_boxes_in_common_count_once() {
        // Windows of 16 x 64 elements, one row and one column apart in every direction.
        let (up, down) = (along((-1.0, 15.0), (0.0, 64.0)), along((1.0, 17.0), (0.0, 64.0)));
        let around = up.around(&down);
        assert_eq!(around, along((-1.0, 17.0), (0.0, 64.0)));
        assert_eq!(distinct(&around, up.count() + down.count()), 18.0 / 32.0);
        assert_eq!(up.common(&down).count(), 14.0 * 64.0);
        // Windows apart from each other: all elements are distinct, whatever is between them.
        let far = along((1000.0, 1016.0), (0.0, 64.0));
        assert_eq!((distinct(&up.around(&far), 2048.0), up.common(&far).count()), (1.0, 0.0));
    }
}
