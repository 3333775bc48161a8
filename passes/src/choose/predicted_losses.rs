//! The predicted cost of fast paths that a kernel does not take.
//!
//! Passes record each lost fast path with its statements ([`tilec_ir::missed_paths`]). For each loss, the model predicts a
//! launch with this loss only, and compares it with a launch without any loss. For example, if memory is the
//! bottleneck, slower product instructions cost nothing. A loss of more than a tenth becomes a warning. So one loss
//! does not mask another, and each figure is the gain of removing it last.
//!
//! Both times come from one model with other inputs: products at the rate of `wgmma`, loads that are awaited at once.
//! The sizes are those of `--for`, or the large sizes of `choose`. Losses that the model cannot predict are remarks. So
//! is a loss for lack of room with chosen tiles, because `choose` found nothing faster. So is a loss that another
//! variant of the kernel does not have (the driver sees all variants). For a kernel that the model cannot predict, all
//! losses are remarks.

use super::cards::Card;
use super::cost::{Cost, ahead};
use super::roles::has_roles;
use super::search_context::AssumedPaths;
use super::search_space::Space;
use super::several_products::SeveralProducts;
use super::trial::{Trial, run_trial};
use super::work::{Env, Move, Region};
use crate::analysis::access_width::MAX_ACCESS_BYTES;
use crate::{Options, pipeline};
use tilec_ir::codes;
use tilec_ir::diag::{Code, Severity, Sink};
use tilec_ir::entities::Stmt;
use tilec_ir::kernel::Kernel;
use tilec_ir::missed_paths::{FastPath, MissedPath};

/// The relative cost of a loss above which it becomes a warning.
const WORTH: f64 = 0.1;

/// Turns remarks about expensive losses, from index `first` on, into warnings. `k`: the kernel with a value for every
/// parameter, before the passes that reported the losses.
pub(crate) fn remarks_to_warnings(k: &Kernel, options: &Options, first: usize, sink: &mut Sink) {
    let said = sink.diagnostics().iter().enumerate().skip(first);
    let said = said.filter(|(_, d)| d.severity == Severity::Remark);
    let losses: Vec<(usize, MissedPath)> = said.filter_map(|(i, d)| Some((i, d.loss.clone()?))).collect();
    let known = |loss: &MissedPath| loss.room && options.chosen;
    let warned = losses.iter().filter(|(_, loss)| !known(loss));
    if losses.is_empty() {
        return;
    }
    let Some(launch) = Estimate::of(k, options) else { return };
    let all: Vec<&MissedPath> = losses.iter().map(|(_, loss)| loss).collect();
    let Some(without) = launch.seconds(&all, &[]) else { return };
    for (i, loss) in warned {
        if loss.rows && launch.has_odd_rows(loss) {
            continue;
        }
        let Some(with) = launch.seconds(&all, &[loss]) else { continue };
        sink.time_of_loss(*i, (1e9 * (with - without).max(0.0)).round() as u64);
        let share = with / without - 1.0;
        if share > WORTH {
            let longer = (share * 100.0).round();
            let note = format!(
                "estimated before there is code: a launch takes {longer}% longer because of this {}",
                launch.circumstances()
            );
            sink.warn_of(*i, code(loss.path), note);
        }
    }
}

/// The code of the warning.
fn code(path: FastPath) -> Code {
    match path {
        FastPath::Wgmma => codes::NO_WGMMA,
        FastPath::Ahead | FastPath::Asynchronous => codes::NOT_AHEAD,
        FastPath::Wide => codes::NARROW,
        FastPath::StagedStores => codes::STORED_BY_THREADS,
        FastPath::TensorLoads | FastPath::Producer | FastPath::Banks | FastPath::Overlap => {
            unreachable!("the model has no figure for it")
        }
    }
}

/// The prediction of a launch.
struct Estimate<'a> {
    space: Space<'a>,
    env: Env,
}

impl<'a> Estimate<'a> {
    /// `None`: the model cannot predict the kernel.
    fn of(k: &'a Kernel, options: &'a Options) -> Option<Estimate<'a>> {
        // Kernels with roles are predicted from their code, which is not there yet.
        if has_roles(k) {
            return None;
        }
        let space = Space::new(k, options, &[]).ok()?;
        let mut env = space.env.clone();
        // Loop bounds may depend on the block; the block in the middle represents all.
        for axis in &k.grid {
            env[axis.index] = space.work.int(&env, axis.extent).map(|n| n / 2);
        }
        Some(Estimate { space, env })
    }

    /// Whether rows that these statements load or store are no multiples of 16 bytes with these sizes, so that no
    /// precondition would help.
    fn has_odd_rows(&self, loss: &MissedPath) -> bool {
        let multiplied = |r: &Region| r.products.iter().any(|p| loss.at.contains(&p.at));
        let odd = |m: &Move| {
            let row = m.pitch.and_then(|e| self.space.work.extent(&self.env, e));
            row.is_some_and(|n| !m.elem.makes_up(n, MAX_ACCESS_BYTES.into()))
        };
        let own = |r: &Region| r.moves.iter().any(|m| odd(m) && (loss.at.contains(&m.at) || m.load && multiplied(r)));
        self.space.work.regions.iter().any(own)
    }

    /// Predicted seconds of a launch with the losses `lost` only, among all recorded losses.
    fn seconds(&self, all: &[&MissedPath], lost: &[&MissedPath]) -> Option<f64> {
        let (space, work) = (&self.space, &self.space.work);
        let at = |of: &[&MissedPath], path: FastPath, not: &[&MissedPath]| -> Vec<Stmt> {
            let of = of.iter().filter(|l| l.path == path && !not.contains(l));
            of.flat_map(|l| l.at.iter().copied()).collect()
        };
        let wgmma = at(all, FastPath::Wgmma, lost);
        let (wide, narrow) = (at(all, FastPath::Wide, lost), at(lost, FastPath::Wide, &[]));
        let supposed = AssumedPaths { wgmma: &wgmma, wide: &wide, narrow: &narrow };
        let mut env = self.env.clone();
        let mut launch = space.launch(&env, space.bytes(&env));
        let plain = work.products().all(|p| p.operands.iter().all(|o| !o.computed)) && !work.has_several_products();
        let mut asked = match plain {
            true => Trial::of(space.setting().assuming(supposed).cost(&env).ok()?),
            false => run_trial(work, space.options, (space.card, true), supposed, &env).ok()?,
        };
        self.add_losses(&mut asked.cost, &wgmma, (all, lost));
        space.raster(&mut env, &asked.cost, &mut launch);
        Some(SeveralProducts::of(space).time(&asked, &launch).seconds)
    }

    /// Adds the losses to a block whose `wgmma` products are at full rate.
    fn add_losses(&self, cost: &mut Cost, wgmma: &[Stmt], (all, lost): (&[&MissedPath], &[&MissedPath])) {
        // Producer warps load the operands of wgmma ahead.
        let ahead = ahead(pipeline::usual_slots(true, true));
        for (region, part) in self.space.work.regions.iter().zip(&mut cost.parts) {
            if region.products.iter().any(|p| wgmma.contains(&p.at)) {
                (part.ahead, part.staged) = (part.ahead.max(ahead), false);
            }
            let through =
                |l: &&MissedPath| l.path == FastPath::Asynchronous && region.at.is_some_and(|at| l.at.contains(&at));
            if all.iter().copied().any(|l| through(&l)) {
                // A load is issued at the start of an iteration, and stored at its end.
                let lost = lost.iter().copied().any(|l| through(&l));
                (part.ahead, part.staged) = if lost { (1.0, true) } else { (part.ahead.max(ahead), false) };
            }
        }
        cost.wait_for_loads(&self.space.work.regions, lost.iter().copied());
        let stores = |s: &Stmt| self.space.work.moves().any(|m| m.at == *s);
        let staged = |l: &&MissedPath| l.path == FastPath::StagedStores && l.at.iter().any(stores);
        if all.iter().any(staged) {
            cost.offloaded = !lost.iter().any(staged);
        }
    }

    /// The card and sizes of the prediction, for the message.
    fn circumstances(&self) -> String {
        let (k, Card { name, .. }) = (self.space.work.k, self.space.card);
        let sizes: Vec<String> =
            k.sizes.iter().map(|&v| format!("{}={}", k.values[v].name, self.env[v].unwrap_or(1))).collect();
        let given = k.sizes.iter().any(|&v| self.space.options.sizes.iter().any(|(n, _)| *n == k.values[v].name));
        match (sizes.is_empty(), given) {
            (true, _) => format!("(on {name})"),
            (false, true) => format!("(on {name}, {})", sizes.join(" ")),
            (false, false) => {
                let way = self.space.options.caller.sizes();
                format!("(on {name}, {}; {way} gives other sizes)", sizes.join(" "))
            }
        }
    }
}
