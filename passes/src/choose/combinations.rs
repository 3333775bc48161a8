//! Combinations of values to search, each with a lower bound on its time.

use super::exact_steps;
use super::model::launch::Launch;
use super::parameters::Role;
use super::search_space::Space;
use super::work::Env;
use crate::analysis::uses::for_each_ref;
use crate::select_mma::divides;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::ValueDef;

/// Most warps of a block whose warp tile is chosen.
const MOST_WARPS: u64 = 8;
/// Most warps of a block with scalar products (fitted, too).
const MOST_SCALAR_WARPS: u64 = 16;
/// Elements of the largest tile for which sliced-K is tried: larger tiles give a multiprocessor enough to do.
const SMALL_TILE: u64 = 64 * 128;
/// Most candidates; a kernel with more parameters than this allows gets plain values.
const MAX_CANDIDATES: usize = 200_000;

/// A rule that excludes a combination from the search.
#[derive(Copy, Clone, Debug)]
enum Rule {
    /// The warp tile does not divide rows, or columns.
    Divides { warp: Expr, tile: Expr },
    /// Too many warps in a block.
    Warps,
    /// Sliced-K for a large tile.
    Groups,
    /// A loop body is too long.
    Depth,
}

/// The values of each parameter, in the order of [`Space::autos`]: the last one varies fastest.
pub(super) struct Combinations<'a> {
    space: &'a Space<'a>,
    /// One value for stages and rasterisation, which are searched separately.
    domains: Vec<Vec<i64>>,
    /// Whether blocks share tiles along the reduction, as in [`super::search_context::SearchContext`].
    stream_k: Option<bool>,
    /// Whether the bound on the time depends on each parameter.
    bounding: Vec<bool>,
    /// Rules, each with the last parameter on which it depends.
    rules: Vec<(usize, Rule)>,
}

impl<'a> Combinations<'a> {
    pub(super) fn of(space: &'a Space<'a>) -> Combinations<'a> {
        let mut domains: Vec<Vec<i64>> = space.autos.iter().map(|a| space.domain(a)).collect();
        exact_steps::keep(space.work.k, &space.values, &space.autos, &mut domains);
        let stream_k = space.setting().stream_k;
        let mut all = Combinations { space, domains, stream_k, bounding: Vec::new(), rules: Vec::new() };
        all.bounding = all.bounding();
        all.rules = all.rules().into_iter().map(|(rule, of)| (all.last_parameter(&of), rule)).collect();
        all
    }

    /// The number of combinations; `None`: too many.
    pub(super) fn count(&self) -> Option<usize> {
        let n = self.domains.iter().try_fold(1usize, |n, d| n.checked_mul(d.len()))?;
        (n <= MAX_CANDIDATES).then_some(n)
    }

    /// Binds the parameters of the `index`-th combination.
    pub(super) fn bind(&self, index: usize, env: &mut Env) {
        let mut rest = index;
        for (auto, domain) in self.space.autos.iter().zip(&self.domains).rev() {
            env[auto.value] = Some(domain[rest % domain.len()]);
            rest /= domain.len();
        }
        self.space.bind_same(env);
    }

    /// Every combination that the rules allow, with a lower bound on its time, lowest first.
    pub(super) fn bounded(&self, bytes: f64) -> Vec<(f64, usize)> {
        let mut found = Vec::new();
        // Many combinations differ only in parameters on which the bound does not depend.
        let bounding = self.domains.iter().zip(&self.bounding).filter(|(_, bounding)| **bounding);
        let mut known: Vec<Option<f64>> = vec![None; bounding.map(|(domain, _)| domain.len()).product()];
        self.visit((0, 0, 0), &mut self.space.env.clone(), &mut |index, of, env| {
            let least = *known[of].get_or_insert_with(|| {
                let launch = self.space.launch(env, bytes);
                self.least(env, &launch).unwrap_or(0.0)
            });
            found.push((least, index));
        });
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        found
    }

    /// Visits the allowed combinations whose first parameters have values. `index` numbers the combinations, `of` the
    /// values on which the bound depends.
    fn visit(
        &self,
        (level, index, of): (usize, usize, usize),
        env: &mut Env,
        visitor: &mut dyn FnMut(usize, usize, &Env),
    ) {
        let Some(auto) = self.space.autos.get(level) else { return visitor(index, of, env) };
        let domain = &self.domains[level];
        for (i, &value) in domain.iter().enumerate() {
            env[auto.value] = Some(value);
            self.space.bind_same(env);
            // A rule that fails here fails for all values of the later parameters.
            if self.rules.iter().all(|&(known, rule)| known != level || self.fits(rule, env)) {
                let of = if self.bounding[level] { of * domain.len() + i } else { of };
                self.visit((level + 1, index * domain.len() + i, of), env, visitor);
            }
        }
    }

    /// All rules, with the expressions on which they depend: few warps, if their tiles are chosen; sliced-K for small
    /// tiles only; a depth for each slice that keeps the loop body short.
    fn rules(&self) -> Vec<(Rule, Vec<Expr>)> {
        let work = &self.space.work;
        let (Some(product), Some((m, n))) = (work.products().next(), work.k.schedule.warp_tile) else {
            return Vec::new();
        };
        let [rows, cols, depth] = product.shape;
        let groups = work.k.schedule.k_warps;
        let chosen = |role: Role| self.space.autos.iter().any(|a| a.role == role);
        let mut rules = Vec::new();
        if chosen(Role::WarpRows) || chosen(Role::WarpCols) {
            rules.push((Rule::Divides { warp: m, tile: rows }, vec![m, rows]));
            rules.push((Rule::Divides { warp: n, tile: cols }, vec![n, cols]));
            rules.push((Rule::Warps, [m, n, rows, cols].into_iter().chain(groups).collect()));
        }
        if chosen(Role::Groups) {
            rules.push((Rule::Groups, [rows, cols].into_iter().chain(groups).collect()));
        }
        if chosen(Role::Depth) {
            rules.push((Rule::Depth, [depth].into_iter().chain(groups).collect()));
        }
        rules
    }

    /// The parameters on which an expression depends; `None`: unknown.
    fn parameters(&self, e: Expr) -> Option<Vec<usize>> {
        let k = self.space.work.k;
        let mut found = Some(Vec::new());
        for_each_ref(k, e, &mut |v| match k.values[v].def {
            ValueDef::ConstParam(_) => {
                let own = self.space.autos.iter().position(|a| a.value == self.space.original(v));
                found.iter_mut().for_each(|found| found.extend(own));
            }
            ValueDef::Size => {}
            // A name may stand for anything.
            _ => found = None,
        });
        found
    }

    /// The last parameter on which one of these expressions depends.
    fn last_parameter(&self, all: &[Expr]) -> usize {
        let last = self.space.autos.len() - 1;
        all.iter().map(|&e| self.parameters(e).map_or(last, |of| of.into_iter().max().unwrap_or(0))).max().unwrap_or(0)
    }

    /// For each parameter, whether extents of products, of the grid or of loops depend on it.
    fn bounding(&self) -> Vec<bool> {
        let work = &self.space.work;
        let products = work.products().flat_map(|p| p.shape);
        let loops = work.regions.iter().flat_map(|r| &r.loops).flatten().copied();
        let all = products.chain(loops).chain(work.k.grid.iter().map(|axis| axis.extent));
        let all: Option<Vec<Vec<usize>>> = all.map(|e| self.parameters(e)).collect();
        let depends = |n: usize| all.as_ref().is_none_or(|all| all.iter().flatten().any(|&m| m == n));
        (0..self.space.autos.len()).map(depends).collect()
    }

    fn fits(&self, rule: Rule, env: &Env) -> bool {
        let (work, warpgroups) = (&self.space.work, self.space.warpgroups.is_some());
        let extent = |e: Expr| work.extent(env, e).unwrap_or(1);
        let Some(product) = work.products().next() else { return true };
        let [rows, cols, depth] = product.shape;
        let tile = || extent(rows).saturating_mul(extent(cols));
        let groups = work.k.schedule.k_warps.map_or(1, extent);
        match rule {
            Rule::Divides { warp, tile } => divides(extent(warp), extent(tile), warpgroups),
            Rule::Warps => {
                let (m, n) = work.k.schedule.warp_tile.expect("the rule is of a warp tile");
                let most = if self.space.scalar { MOST_SCALAR_WARPS } else { MOST_WARPS };
                tile().saturating_mul(groups) / extent(m).saturating_mul(extent(n)).max(1) <= most
            }
            Rule::Groups => groups <= 1 || tile() <= SMALL_TILE,
            Rule::Depth => {
                let longest = match self.space.warpgroups {
                    Some(_) => 512,
                    None if self.space.scalar => 64,
                    None => 128,
                };
                product.inputs.size().bytes_of(extent(depth)) <= longest * groups
            }
        }
    }

    /// A lower bound on the time of a combination: its products at full rate on all multiprocessors, or its operands
    /// through the second-level cache. `None` without a product.
    fn least(&self, env: &Env, launch: &Launch) -> Option<f64> {
        let region = self.space.work.regions.iter().find(|r| !r.products.is_empty())?;
        let product = &region.products[0];
        let [rows, cols, depth] = product.shape.map(|e| self.space.work.extent(env, e).unwrap_or(1) as f64);
        let (blocks, sms): (f64, f64) = (launch.grid.iter().product(), f64::from(self.space.card.sms));
        let each = self.space.work.trips(env, region) * depth;
        // Bytes of each operand in a step of the reduction, in the type in memory; 0 if it is loaded elsewhere or not
        // at all.
        let loaded = |operand: usize, lines: f64| {
            let buffer = product.operands[operand].buffer;
            let load = region.moves.iter().find(|m| m.load && buffer.is_some() && m.buffer == buffer);
            load.map_or(0.0, |m| m.elem.traffic(lines))
        };
        let (left, right) = (loaded(0, rows), loaded(1, cols));
        // Blocks may share tiles along the reduction, and blocks of a cluster share the larger operand.
        let (rounds, shared) = match self.space.warpgroups {
            Some(_) if self.stream_k != Some(false) => (blocks / sms, left.max(right) / 2.0),
            Some(_) => ((blocks / sms).ceil(), left.max(right) / 2.0),
            None => ((blocks / sms).ceil(), 0.0),
        };
        let macs = rounds * rows * cols * each / self.space.fastest_rate;
        let bytes = blocks * (left + right - shared) * each / self.space.card.l2;
        Some(macs.max(bytes) / (self.space.card.clock * 1e9))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::choose::parameters::autos;
    use tilec_ir::diag::Sink;
    use tilec_ir::target::Target;

    const SOURCES: [&str; 3] = [
        include_str!("../../../examples/gemm.tile"),
        include_str!("../../../examples/conv.tile"),
        include_str!("../../../examples/gemm_batched.tile"),
    ];

    /// A rule that is tested before all of its parameters have values would exclude legal combinations, or keep illegal
    /// ones.
    #[test]
    fn what_is_visited_is_what_fits() {
        for target in [Target::Sm70, Target::Sm80, Target::Sm90a] {
            for source in SOURCES {
                let (options, mut sink) = (Options::new(target), Sink::new());
                let k = tilec_ir::parser::parse(source, &mut sink).unwrap().kernels.remove(0);
                let autos = autos(&k, &mut crate::Cx::new(&options, "choose", &mut sink)).unwrap();
                let space = Space::new(&k, &options, &autos).unwrap();
                let all = Combinations::of(&space);
                let mut visited: Vec<(usize, f64)> =
                    all.bounded(space.bytes(&space.env)).into_iter().map(|(least, index)| (index, least)).collect();
                visited.sort_by_key(|(index, _)| *index);
                let mut env = space.env.clone();
                let one_by_one = |index: usize| {
                    all.bind(index, &mut env);
                    let launch = space.launch(&env, 0.0);
                    let fits = all.rules.iter().all(|&(_, rule)| all.fits(rule, &env));
                    fits.then(|| (index, all.least(&env, &launch).unwrap_or(0.0)))
                };
                let expected: Vec<(usize, f64)> = (0..all.count().unwrap()).filter_map(one_by_one).collect();
                assert_eq!(visited, expected, "{} for {}", k.name, target.name());
                assert!(!expected.is_empty());
            }
        }
    }
}
