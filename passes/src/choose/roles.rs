//! The prediction for kernels whose source has roles: from the code that was made of them.
//!
//! The model of `choose` is one of loops that the compiler itself divides among warps. Of written roles the compiled kernel says
//! which instructions multiply, how many slots channels have, and who loads: what a block takes is measured there, by the clock
//! of [`crate::timeline`]. Products of wgmma draw as much power as in loops with a schedule ([`super::model::warpgroups`]).

use super::copied_elements::{Place, Unknown};
use super::model::launch::{L2_PORT, L2_SHARE, SHARED, Terms};
use super::model::{self, IDLE_BLOCK};
use super::model::{scheduled, warpgroups};
use super::prediction::{Added, Prediction};
use super::predictor::Predictor;
use super::several_products::ends_with_block;
use super::work::{Env, Move, Region, Work};
use tilec_ir::atoms::Atom;
use tilec_ir::diag::Span;
use tilec_ir::entities::Value;
use tilec_ir::kernel::{Kernel, StmtData};

/// The share of a block's time from which on something counts as faster.
const SHORTER: f64 = 0.01;

/// What a block of a kernel takes by the clock of its roles, and what units work in it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BlockTime {
    /// Clocks of a block alone on its multiprocessor.
    pub clocks: f64,
    /// Of these, clocks of the innermost loops of the warps that are done last.
    pub looped: f64,
    /// Iterations of these loops that multiply operands which they compute, times the warpgroups that do.
    pub computed: f64,
    /// Clocks in which the tensor cores work.
    pub tensor: f64,
    /// Clocks in which the special function units work.
    pub special: f64,
    /// Clocks in which a scheduler issues.
    pub issue: f64,
    /// Bytes that it loads.
    pub loaded: f64,
    /// Bytes of shared memory that products and copies read.
    pub shared: f64,
    /// Multiply-adds of its products.
    pub macs: f64,
    /// The instruction of its first product.
    pub atom: Option<Atom>,
    /// Its innermost loops.
    pub loops: Vec<LoopTime>,
    /// The channels of these loops.
    pub channels: Vec<ChannelTime>,
    /// Clocks of the block with one more slot of each of them.
    pub deeper: f64,
    /// Loads whose elements threads hold until they store them to a slot.
    pub held: Vec<HeldLoad>,
    /// Clocks of the block if these landed at once.
    pub landed: f64,
}

/// A load whose elements threads hold until they store them to a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldLoad {
    /// Where.
    pub span: Span,
    /// The role that loads.
    pub role: String,
    /// What it loads from.
    pub tensors: Vec<String>,
}

/// A channel that loops fill.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChannelTime {
    /// Its name.
    pub name: String,
    /// Where it is filled.
    pub fills: Vec<Span>,
    /// Its slots.
    pub slots: u64,
    /// Clocks of an iteration by which one more slot makes it shorter.
    pub waits: u64,
}

/// What an iteration of an innermost loop takes.
#[derive(Clone, PartialEq, Debug)]
pub struct LoopTime {
    /// Where its variable is declared.
    pub variable: Span,
    /// The role.
    pub role: String,
    /// Clocks from one iteration to the next.
    pub clocks: f64,
    /// What units work in an iteration, without clocks and loops of its own.
    pub work: BlockTime,
}

/// A launch of compiled code.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Launched {
    /// Its blocks.
    pub blocks: f64,
    /// Blocks that are resident on a multiprocessor.
    pub resident: u64,
    /// Threads of a block.
    pub threads: u64,
    /// Registers of a thread that hold tiles.
    pub registers: u64,
    /// Bytes of shared memory of a block.
    pub shared: u64,
}

/// Clocks of a block with those that the power of the card adds.
struct Run {
    /// Alone on its multiprocessor.
    alone: f64,
    /// Of its innermost loops, and outside of them.
    looped: f64,
    ends: f64,
    /// Of the tensor cores, and of the busiest unit.
    tensor: f64,
    busiest: f64,
}

impl BlockTime {
    fn multiplies_asynchronously(&self) -> bool {
        self.atom.is_some_and(|atom| atom.row().asynchronous())
    }

    /// The block with so many clocks of transfers from the second-level cache.
    fn run(&self, feed: f64) -> Run {
        let shared = self.shared / SHARED;
        let slowed = match self.multiplies_asynchronously() && self.looped > 0.0 {
            true => {
                let c = &warpgroups::FITTED;
                let around = (self.looped + scheduled::AROUND * self.computed) / c.sustained;
                let drawn = around + c.power * shared + c.moving * feed;
                drawn.max(self.tensor / c.peak) / self.looped
            }
            false => 1.0,
        };
        let (looped, tensor) = (self.looped * slowed, self.tensor * slowed);
        let units = [tensor, self.special * slowed, self.issue * slowed, shared, feed];
        let busiest = units.into_iter().fold(0.0, f64::max);
        let ends = self.clocks - self.looped + IDLE_BLOCK;
        Run { alone: (looped + ends).max(busiest), looped, ends, tensor, busiest }
    }

    /// The share of an iteration by which another slot of a channel that has one would make it shorter: its loads do not run
    /// ahead.
    fn share_of_single_slots(&self) -> f64 {
        let single = self.channels.iter().filter(|own| own.slots == 1).map(|own| own.waits).max();
        let longest = self.loops.iter().map(|own| own.clocks).fold(1.0, f64::max);
        single.unwrap_or(0) as f64 / longest
    }

    /// Whether threads of a role wait for what they load.
    pub fn waits_for_held(&self) -> bool {
        !self.held.is_empty() && self.landed < (1.0 - SHORTER) * self.clocks
    }

    /// Whether one more slot of each channel makes the block faster.
    pub fn waits_for_slots(&self) -> bool {
        self.deeper < (1.0 - SHORTER) * self.clocks
    }

    /// The share of its loops in which it waits for loads that do not run ahead.
    fn share_of_loads(&self) -> f64 {
        let held = if self.waits_for_held() { (self.clocks - self.landed) / self.looped.max(1.0) } else { 0.0 };
        held.max(self.share_of_single_slots()).min(1.0)
    }
}

/// Blocks of a launch on multiprocessors.
struct Beside {
    blocks: f64,
    resident: f64,
    sms: f64,
    /// Whether they have different durations, so that no multiprocessor waits for whole blocks of others at the end.
    even: bool,
}

impl Beside {
    /// Clocks of the launch, and those if the blocks of the last round were shared out evenly.
    fn clocks(&self, run: &Run) -> (f64, f64) {
        // Blocks beside each other share the units.
        let round = |blocks: f64| run.alone.max(blocks * run.busiest);
        let places = self.sms * self.resident;
        let rounds = self.blocks / places;
        let even = rounds * round(self.resident);
        if self.even {
            return (rounds.max(1.0) * round(self.resident), even);
        }
        let rest = self.blocks - rounds.floor() * places;
        let last = if rest > 0.5 { round((rest / self.sms).ceil()) } else { 0.0 };
        (rounds.floor() * round(self.resident) + last, even)
    }
}

/// Whether roles are written in a kernel.
pub fn has_roles(k: &Kernel) -> bool {
    k.blocks[k.body].iter().any(|&s| matches!(k.stmts[s], StmtData::Role { .. }))
}

impl Predictor<'_> {
    /// The sizes that it predicts for.
    pub fn sizes(&self) -> Vec<(String, i64)> {
        let (k, env) = (self.space.work.k, &self.space.env);
        k.sizes.iter().map(|&v| (k.values[v].name.clone(), env[v].unwrap_or(1))).collect()
    }

    /// A loop that runs as often as data say.
    pub fn unknown_loop(&self) -> Option<Unknown> {
        self.space.work.unknown_loop(&self.space.env)
    }

    /// The prediction from compiled code.
    pub fn of_roles(&self, block: &BlockTime, of: &Launched) -> Prediction {
        let (space, work) = (&self.space, &self.space.work);
        let (k, card) = (work.k, space.card);
        let mut env = space.env.clone();
        for axis in &k.grid {
            env[axis.index] = work.int(&env, axis.extent).map(|n| n / 2);
        }
        let sms = f64::from(card.sms);
        let least_bytes = space.bytes(&env);
        let resident = (of.resident as f64).min((of.blocks / sms).ceil()).max(1.0);
        let bytes = self.traffic(&env, least_bytes, (of.blocks, sms * resident));
        let clock = block.atom.map_or(card.clock, |atom| card.clock_of(atom)) * 1e9;
        let launch = if block.multiplies_asynchronously() { warpgroups::FITTED.launch } else { model::FITTED.launch };
        let memory = bytes / (card.dram * 1e9);
        let fed = L2_PORT.min(card.l2 / sms);
        let beside = Beside { blocks: of.blocks, resident, sms, even: ends_with_block(space) };
        let feed = block.loaded / fed;
        let rows = self.bytes_of_rows(&env, of.blocks) / fed;
        let run = block.run(feed + rows);
        let (clocks, even) = beside.clocks(&run);
        let seconds = |clocks: f64| launch + (clocks / clock).max(memory);
        let without_rows = beside.clocks(&block.run(feed)).0;
        let each = of.blocks / sms / clock;
        let mut terms = Terms {
            products: each * run.tensor,
            shared: each * block.shared / SHARED,
            l2: each * feed,
            rows: each * rows,
            memory,
            uneven: (clocks - even).max(0.0) / clock,
            launch,
            ..Terms::default()
        };
        let working = clocks / clock;
        let rows = seconds(clocks) - seconds(without_rows);
        let works = terms.products.max(terms.shared).max(terms.l2);
        let waits = (working - works - terms.uneven - rows).max(0.0);
        terms.ends = (each / resident * run.ends).min(waits);
        terms.latency = waits - terms.ends;
        let given = |v: Value| space.options.sizes.iter().any(|(name, _)| *name == k.values[v].name);
        Prediction {
            card: card.name,
            sizes: self.sizes(),
            sizes_given: k.sizes.iter().any(|&v| given(v)),
            seconds: seconds(clocks),
            working,
            awaited: (each * run.looped * block.share_of_loads()).min(terms.latency),
            bytes,
            least_bytes,
            reads: Vec::new(),
            flops: 2.0 * block.macs * of.blocks,
            terms,
            added: Added { rows, ..Added::default() },
            tiles: of.blocks,
            blocks: of.blocks,
            waves: of.blocks / (sms * resident),
            resident: of.resident,
            threads: of.threads,
            registers: of.registers,
            shared: of.shared,
            atom: block.atom.map(|a| a.row().name),
            places: work.places(&env, of.blocks, &[]),
            unknown: work.unknown_loop(&env),
            padding: work.padding(&env),
        }
    }

    /// Bytes that pass the second-level cache in the time which rows of the boxes of a block take beyond that of their bytes.
    fn bytes_of_rows(&self, env: &Env, blocks: f64) -> f64 {
        let work = &self.space.work;
        let is_box =
            |m: &Move| matches!(&work.k.stmts[m.at], StmtData::Copy { attrs, .. } if m.load && attrs.is_tensor());
        let boxed: Vec<Span> = work.moves().filter(|m| is_box(m)).map(|m| work.k.stmt_spans[m.at]).collect();
        let longer = |place: &Place| place.rows.map_or(0.0, |rows| (rows.times() - 1.0).max(0.0) * place.bytes);
        let places = work.places(env, blocks, &[]).into_iter().filter(|place| boxed.contains(&place.span));
        places.map(|place| longer(&place)).sum::<f64>() / blocks.max(1.0)
    }

    /// Bytes between memory and the second-level cache: blocks of a wave that load the same window share it.
    fn traffic(&self, env: &Env, least: f64, (blocks, wave): (f64, f64)) -> f64 {
        let (space, work) = (&self.space, &self.space.work);
        if least <= L2_SHARE * space.card.l2_size * 1e6 {
            return least;
        }
        let wave = wave.min(blocks).max(1.0);
        let along = self.of_wave(env, wave);
        let moved = |region: &Region, m: &Move| {
            let elements = work.elements(env, &m.shape).unwrap_or(0) as f64;
            blocks * work.trips(env, region) * m.elem.traffic(elements) * work.inside(env, region, m)
        };
        let of_tensor = |v: Value, load: bool| -> f64 {
            let all = work.regions.iter().flat_map(|region| region.moves.iter().map(move |m| (region, m)));
            let own = all.filter(|(_, m)| m.tensor == v && m.load == load);
            let share = |m: &Move| if load { distinct(work, m, &along) / wave } else { 1.0 };
            own.map(|(region, m)| moved(region, m) * share(m).min(1.0)).sum()
        };
        let all = work.tensors.iter().map(|tensor| {
            let (loads, stores) = (of_tensor(tensor.value, true), of_tensor(tensor.value, false));
            let needed = work.needed(env, tensor);
            if loads > 0.0 { loads.max(needed) + stores } else { stores.max(needed) }
        });
        all.sum::<f64>().max(least)
    }

    /// How many different indices of each axis of the grid the blocks of a wave have.
    fn of_wave(&self, env: &Env, wave: f64) -> Vec<(Value, f64)> {
        let (k, work) = (self.space.work.k, &self.space.work);
        let extent = |i: usize| k.grid.get(i).and_then(|axis| work.extent(env, axis.extent)).unwrap_or(1) as f64;
        let raster = k.schedule.raster.and_then(|e| work.int(env, e)).unwrap_or(1).max(1) as f64;
        let strip = raster.min(extent(1));
        let down = (wave / strip).clamp(1.0, extent(0));
        let mut left = wave / down;
        let mut along = vec![down];
        for i in 1..k.grid.len() {
            along.push(left.clamp(1.0, extent(i)));
            left /= along[i];
        }
        k.grid.iter().map(|axis| axis.index).zip(along).collect()
    }
}

/// How many different windows of a load the blocks of a wave have.
fn distinct(work: &Work<'_>, m: &Move, along: &[(Value, f64)]) -> f64 {
    let reads = |v: Value| match &m.window {
        Some(window) => window.iter().any(|along| along.starts.iter().any(|&(e, _)| work.reads(e, v))),
        // Indices in memory: any block may have others.
        None => true,
    };
    along.iter().filter(|(v, _)| reads(*v)).map(|(_, n)| n).product()
}
