//! What the fast paths cost that a kernel has lost, by the model.
//!
//! Passes say what is lost at which statements ([`tilec_ir::loss`]). Of each loss the time of a launch is predicted of which nothing else is lost, and held
//! against that of a launch of which nothing is: where memory binds, say, products by slower instructions cost nothing. What costs more than a tenth becomes a
//! warning. So one loss does not hide behind another, and each is what its removal is worth in the end.
//!
//! Both times are those of one model with other figures: products at the rate of `wgmma`, loads that are waited for at once. The sizes are those of `--for`,
//! or what `choose` takes for large ones. What there is no room for with tiles that `choose` took is a remark: it knew, and found nothing faster. Of a kernel that the model does not see through, all is said in remarks.

use super::asked::{Supposed, ask};
use super::cards::Card;
use super::cost::Cost;
use super::model;
use super::space::Space;
use super::work::Env;
use crate::{Options, pipeline};
use tilec_ir::codes;
use tilec_ir::diag::{Code, Severity, Sink};
use tilec_ir::entities::Stmt;
use tilec_ir::kernel::Kernel;
use tilec_ir::loss::{FastPath, Loss};

/// The share of its time that a launch may take longer for a loss until that is warned of.
const WORTH: f64 = 0.1;

/// Makes warnings of those remarks, from the one with the number `first` on, that say of a loss which costs much. `k`: the kernel with a value for every
/// parameter, in front of the passes that said so.
pub(crate) fn settle(k: &Kernel, options: &Options, first: usize, sink: &mut Sink) {
    let said = sink.diagnostics().iter().enumerate().skip(first);
    let said = said.filter(|(_, d)| d.severity == Severity::Remark);
    let losses: Vec<(usize, Loss)> = said.filter_map(|(i, d)| Some((i, d.loss.clone()?))).collect();
    let warned = losses.iter().filter(|(_, loss)| !(loss.room && options.chosen));
    if losses.is_empty() {
        return;
    }
    let Some(launch) = Estimate::of(k, options) else { return };
    let all: Vec<&Loss> = losses.iter().map(|(_, loss)| loss).collect();
    let Some(without) = launch.seconds(&all, &[]) else { return };
    for (i, loss) in warned {
        let Some(with) = launch.seconds(&all, &[loss]) else { continue };
        let share = with / without - 1.0;
        if share > WORTH {
            let longer = (share * 100.0).round();
            let note = format!("by the model a launch takes {longer}% longer for it {}", launch.circumstances());
            sink.warn_of(*i, code(loss.path), note);
        }
    }
}

/// The code of the warning.
fn code(path: FastPath) -> Code {
    match path {
        FastPath::Wgmma => codes::NO_WGMMA,
        FastPath::Ahead => codes::NOT_AHEAD,
    }
}

/// Slots that are read, or filled in the course of a trip.
const READ: f64 = 1.5;

/// A launch whose time is predicted.
struct Estimate<'a> {
    space: Space<'a>,
    env: Env,
}

impl<'a> Estimate<'a> {
    /// `None`: the model does not see through the kernel.
    fn of(k: &'a Kernel, options: &'a Options) -> Option<Estimate<'a>> {
        let space = Space::new(k, options, &[]).ok()?;
        let mut env = space.env.clone();
        // Loops may depend on the block: that in the middle stands for all.
        for axis in &k.grid {
            env[axis.index] = space.work.int(&env, axis.extent).map(|n| n / 2);
        }
        Some(Estimate { space, env })
    }

    /// Seconds of a launch that has lost `lost` alone, of everything that it has lost.
    fn seconds(&self, all: &[&Loss], lost: &[&Loss]) -> Option<f64> {
        let wgmma = all.iter().filter(|l| l.path == FastPath::Wgmma && !lost.contains(l));
        let restored: Vec<Stmt> = wgmma.flat_map(|l| l.at.iter().copied()).collect();
        let mut cost = self.cost(&restored)?;
        // Producer warps load ahead what products of warpgroups read.
        let ahead = pipeline::usual_slots(true, true) as f64 - READ;
        for (region, part) in self.space.work.regions.iter().zip(&mut cost.parts) {
            if region.products.iter().any(|p| restored.contains(&p.at)) {
                (part.ahead, part.staged) = (part.ahead.max(ahead), false);
            }
        }
        cost.lose(&self.space.work.regions, lost.iter().copied());
        let mut env = self.env.clone();
        let mut launch = self.space.launch(&env, self.space.bytes(&env));
        self.space.raster(&mut env, &cost, &mut launch);
        Some(model::time(self.space.card, &cost, &launch).seconds)
    }

    /// What a block costs, were the products `restored` wgmma.
    fn cost(&self, restored: &[Stmt]) -> Option<Cost> {
        let (space, work) = (&self.space, &self.space.work);
        let plain = work.products().all(|p| p.operands.iter().all(|o| !o.computed));
        if plain && !work.is_of_several() {
            return space.setting().supposing(restored).cost(&self.env).ok();
        }
        let supposed = Supposed { crowded: true, wgmma: restored };
        let asked = ask(work, space.options, space.card, supposed, &self.env).ok()?;
        (!asked.scheduled()).then_some(asked.cost)
    }

    /// For which card and sizes that is said.
    fn circumstances(&self) -> String {
        let (k, Card { name, .. }) = (self.space.work.k, self.space.card);
        let sizes: Vec<String> =
            k.sizes.iter().map(|&v| format!("{}={}", k.values[v].name, self.env[v].unwrap_or(1))).collect();
        let given = k.sizes.iter().any(|&v| self.space.options.sizes.iter().any(|(n, _)| *n == k.values[v].name));
        match (sizes.is_empty(), given) {
            (true, _) => format!("(on {name})"),
            (false, true) => format!("(on {name}, {})", sizes.join(" ")),
            (false, false) => format!("(on {name}, {}; `--for` gives other sizes)", sizes.join(" ")),
        }
    }
}
