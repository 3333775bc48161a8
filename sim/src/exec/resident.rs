//! Blocks that wait for each other. A block whose threads all wait, one of them for a flag, keeps its registers and
//! shared memory. Others run until memory that the block has read changes.
//!
//! One host thread runs all of them, so the interleaving depends only on the order of the blocks and the seed. A woken
//! block precedes one that has not begun. As on a device, blocks become resident by increasing index, as many at a time
//! as fit; among the resident ones, the order determines which begins. A block that waits for one that cannot become
//! resident before it ends waits for ever.

use super::launch::{BlockOrder, BlockResults};
use super::schedule::{PauseReason, WarpScheduler};
use crate::counters::Counts;
use crate::exec::cta::{Cta, Setting};
use crate::exec::options::{Order, volume};
use crate::exec::rng::Rng;
use crate::report::Report;
use std::collections::VecDeque;

/// Most bytes of host memory for blocks that have begun and not ended.
const MAX_WAITING: u64 = if cfg!(test) { 1 << 20 } else { 4 << 30 };

/// Rounds in which every block retries without progress before that is a deadlock.
const MAX_ROUNDS: u32 = 4;

/// Waiting blocks that a report of a deadlock names.
const MAX_NAMED: usize = 8;

/// A block, or cluster, that has begun.
struct ResidentBlock<'a> {
    number: u64,
    cta: Cta<'a>,
    course: WarpScheduler,
    waits: bool,
}

impl ResidentBlock<'_> {
    fn flags_changed(&self) -> bool {
        self.waits && self.cta.any_changed(&self.course.warps)
    }
}

/// Blocks that have not begun.
struct PendingBlocks<'a> {
    order: &'a BlockOrder,
    blocks: u64,
    begun: u64,
    /// The number of resident blocks, and how many have become resident so far.
    capacity: u64,
    admitted: u64,
    /// Resident blocks that have not begun, in order, if not all blocks are resident.
    open: VecDeque<u64>,
    rng: Rng,
}

impl<'a> PendingBlocks<'a> {
    fn new(order: &'a BlockOrder, blocks: u64, capacity: u64, seed: u64) -> PendingBlocks<'a> {
        let rng = Rng::new(seed, blocks);
        let mut out = PendingBlocks { order, blocks, begun: 0, capacity, admitted: 0, open: VecDeque::new(), rng };
        for _ in 0..capacity.min(blocks) {
            out.admit();
        }
        out
    }

    /// Makes one more block resident.
    fn admit(&mut self) {
        if self.blocks > self.capacity && self.admitted < self.blocks {
            self.open.push_back(self.admitted);
            self.admitted += 1;
        }
    }

    fn has_next(&self) -> bool {
        if self.blocks <= self.capacity { self.begun < self.blocks } else { !self.open.is_empty() }
    }

    fn next(&mut self) -> Option<u64> {
        if self.blocks <= self.capacity {
            let next = (self.begun < self.blocks).then(|| self.order.at(self.begun));
            self.begun += u64::from(next.is_some());
            return next;
        }
        let next = match self.order.order {
            Order::Forward => self.open.pop_front(),
            Order::Reverse => self.open.pop_back(),
            Order::Seeded => {
                let at = self.rng.below(self.open.len());
                self.open.swap_remove_back(at)
            }
        };
        self.begun += u64::from(next.is_some());
        next
    }
}

/// Number of multiprocessors of the usual chip of a target, and limits of each: threads, blocks, KiB of shared memory.
fn chip(target: &str) -> [u64; 4] {
    let digits = target.trim_start_matches("sm_").trim_end_matches(|c: char| c.is_ascii_alphabetic());
    match digits.parse().unwrap_or(0) {
        ..75 => [80, 2048, 32, 96],
        75..80 => [40, 1024, 16, 64],
        80..86 => [108, 2048, 32, 164],
        86 => [84, 1536, 16, 100],
        87 | 88 => [16, 1536, 16, 164],
        89 => [142, 1536, 24, 100],
        _ => [132, 2048, 32, 228],
    }
}

impl<'a> Setting<'a> {
    /// Clusters that are resident at once.
    fn capacity(&self) -> u64 {
        let ranks = self.cluster.iter().map(|n| u64::from(*n)).product::<u64>();
        let blocks = self.options.resident.unwrap_or_else(|| {
            let target = self.program.target();
            let [chips, threads, blocks, shared] = chip(target);
            let block = volume(self.launch.block).unwrap_or(1).next_multiple_of(32);
            // From sm_80 on, the system reserves a KiB for each block.
            let system = if target < "sm_80" { 0 } else { 1 << 10 };
            let bytes = self.entry.static_bytes + u64::from(self.launch.dynamic_smem) + system;
            let registers = self.entry.max_registers.map_or(0, |n| u64::from(n).next_multiple_of(8) * block);
            let fits = [threads / block, (shared << 10) / bytes.max(1), 65536 / registers.max(1)];
            // A block that exceeds these limits was refused, or is for a larger chip.
            chips * fits.into_iter().fold(blocks, u64::min).max(1)
        });
        (blocks / ranks).max(1)
    }

    /// Runs all blocks by turns.
    pub(super) fn run_blocks(
        self,
        order: &BlockOrder,
        blocks: u64,
        counts: &mut Vec<Counts>,
        ended: &BlockResults,
    ) -> Result<(), Box<Report>> {
        let seed = self.options.seed;
        let mut starts = PendingBlocks::new(order, blocks, self.capacity(), seed);
        let mut rng = Rng::new(seed, u64::MAX);
        let mut begun: Vec<ResidentBlock<'a>> = Vec::new();
        // The block that ran last, and whether it could have continued.
        let (mut last, mut yielded) = (0, false);
        loop {
            let chosen = match self.choose(&begun, last, yielded, &mut rng) {
                None if self.has_room(&begun) => self.begin(&mut begun, &mut starts),
                chosen => chosen,
            };
            // A block that can continue, or one that has not made progress yet.
            let chosen = chosen.or_else(|| around(last, begun.len()).find(|at| !begun[*at].waits));
            let (at, pause) = match chosen {
                Some(at) => (at, run(&mut begun[at], counts)?),
                None if begun.is_empty() => return Ok(()),
                None if starts.has_next() => return Err(no_room(&begun)),
                None => self.retry_waiting(&mut begun, counts, &starts)?,
            };
            yielded = pause == PauseReason::Yields;
            begun[at].waits = pause == PauseReason::Waits;
            last = at + 1;
            if pause == PauseReason::Ended {
                let done = begun.remove(at);
                last = at;
                starts.admit();
                ended.add(done.number, &done.cta);
                if let Some(progress) = &self.options.progress {
                    (0..done.cta.ranks).for_each(|_| progress.block_done());
                }
            }
        }
    }

    /// Selects a block that has begun, unless it is the turn of a new one.
    fn choose(&self, begun: &[ResidentBlock<'_>], last: usize, yielded: bool, rng: &mut Rng) -> Option<usize> {
        let ready = |at: &usize| begun[*at].flags_changed() || (!yielded && !begun[*at].waits);
        if self.options.order == Order::Seeded {
            let all: Vec<usize> = (0..begun.len()).filter(ready).collect();
            return (!all.is_empty()).then(|| all[rng.below(all.len())]);
        }
        around(last, begun.len()).find(ready)
    }

    /// Begins the next block, if there is one.
    fn begin(&self, begun: &mut Vec<ResidentBlock<'a>>, starts: &mut PendingBlocks<'_>) -> Option<usize> {
        let number = starts.next()?;
        let cta = Cta::new(*self, number, Vec::new());
        let course = cta.course(Rng::new(self.options.seed, number));
        begun.push(ResidentBlock { number, cta, course, waits: false });
        Some(begun.len() - 1)
    }

    /// When all begun blocks wait and no more can begin: blocks with loops that count retry. Returns a block that made
    /// progress.
    fn retry_waiting(
        &self,
        begun: &mut [ResidentBlock<'_>],
        counts: &mut Vec<Counts>,
        starts: &PendingBlocks<'_>,
    ) -> Result<(usize, PauseReason), Box<Report>> {
        for _ in 0..MAX_ROUNDS {
            let mut moved = None;
            for at in 0..begun.len() {
                let block = &mut begun[at];
                if !block.cta.wake_pollers(&mut block.course) {
                    continue;
                }
                let before = block.cta.state(&block.course);
                let pause = run(block, counts)?;
                if pause != PauseReason::Waits || begun.iter().any(ResidentBlock::flags_changed) {
                    return Ok((at, pause));
                }
                if begun[at].cta.state(&begun[at].course) != before {
                    moved = Some((at, pause));
                }
            }
            if let Some(moved) = moved {
                return Ok(moved);
            }
        }
        Err(self.nobody_signals(begun, starts))
    }

    fn nobody_signals(&self, begun: &[ResidentBlock<'_>], starts: &PendingBlocks<'_>) -> Box<Report> {
        let mut all: Vec<&ResidentBlock<'_>> = begun.iter().collect();
        all.sort_unstable_by_key(|block| block.number);
        let mut report: Option<Box<Report>> = None;
        for block in all.iter().take(MAX_NAMED) {
            let own = block.cta.stuck(&block.course.warps);
            match &mut report {
                None => report = Some(own),
                Some(report) => {
                    let [x, y, z] = own.block;
                    let lines = own.message.split_once('\n').map_or("", |(_, lines)| lines);
                    // For a cluster, the title is above each of its blocks.
                    let title =
                        if block.cta.ranks > 1 { String::new() } else { format!("\n    block ({x}, {y}, {z}):") };
                    report.message += &format!("{title}\n{lines}");
                }
            }
        }
        let mut report = report.unwrap_or_else(|| Report::launch("no block has begun"));
        if all.len() > MAX_NAMED {
            report.message += &format!("\n    and {} blocks more", all.len() - MAX_NAMED);
        }
        let ranks = self.cluster.iter().map(|n| u64::from(*n)).product::<u64>();
        if starts.begun < starts.blocks {
            let left = (starts.blocks - starts.begun) * ranks;
            report.message += &format!(
                "\n    {left} blocks have not begun: {} are resident at once on the usual chip of {}, registers aside, unless \
                 `resident` says otherwise, and they end before others begin",
                starts.capacity * ranks,
                self.program.target()
            );
        }
        report
    }

    /// Whether host memory suffices for one more block.
    fn has_room(&self, begun: &[ResidentBlock<'_>]) -> bool {
        let one = begun.first().map_or(0, |block| block.cta.host_bytes());
        begun.iter().map(|block| block.cta.host_bytes()).sum::<u64>() + one <= MAX_WAITING
    }
}

fn no_room(begun: &[ResidentBlock<'_>]) -> Box<Report> {
    let bytes = begun.iter().map(|block| block.cta.host_bytes()).sum::<u64>();
    Report::launch(format!(
        "{} blocks wait for others at one time; their registers, shared memory and history take {bytes} bytes of the host, which may \
         be {MAX_WAITING}: launch fewer blocks",
        begun.len()
    ))
}

/// All indices in a cycle from `first` on.
fn around(first: usize, n: usize) -> impl Iterator<Item = usize> {
    (first..n).chain(0..first.min(n))
}

/// Runs a block until it ends or pauses.
fn run(block: &mut ResidentBlock<'_>, counts: &mut Vec<Counts>) -> Result<PauseReason, Box<Report>> {
    std::mem::swap(&mut block.cta.counts, counts);
    let pause = block.cta.go(&mut block.course);
    std::mem::swap(&mut block.cta.counts, counts);
    pause
}

impl Cta<'_> {
    /// Approximate bytes of host memory for a waiting block.
    fn host_bytes(&self) -> u64 {
        let registers = self.entry.n32 as u64 * 132 + self.entry.n64 as u64 * 260;
        let warps = (self.cta_warps * self.ranks) as u64;
        // Shadow memory is eight times what it shadows.
        let shared = self.shared.bytes * 10;
        registers * warps + self.entry.local_bytes * 32 * warps + shared + self.races.host_bytes()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use crate::exec::options::{Launch, Options, Order};
    use crate::memory::Device;
    use crate::program::Program;
    use crate::report::ReportKind;

    /// Every block but the last waits for the next one.
    #[test]
    fn waiting_blocks_have_so_much_room_and_no_more() {
        let text = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .pred %p<2>;\n\
            .reg .b32 %r<4>;\n.reg .b64 %rd<3>;\n.shared .align 4 .b8 sm[16384];\nld.param.u64 %rd0, [p];\nmov.u32 %r0, %ctaid.x;\n\
            mov.u32 %r1, %nctaid.x;\nsub.u32 %r1, %r1, 1;\nmul.wide.u32 %rd1, %r0, 4;\nadd.s64 %rd1, %rd0, %rd1;\n\
            setp.eq.u32 %p0, %r0, %r1;\n@%p0 bra S;\nL: ld.acquire.gpu.global.u32 %r2, [%rd1+4];\nsetp.eq.u32 %p1, %r2, 0;\n\
            @%p1 bra L;\nS: st.release.gpu.global.u32 [%rd1], 1;\nret;\n}\n";
        let program = Program::parse(text).unwrap();
        let run = |blocks: u32, order: Order| {
            let mut device = Device::new();
            let a = device.alloc(1024).unwrap();
            device.upload(a, &[0; 1024]).unwrap();
            let params = vec![a.to_le_bytes().to_vec()];
            let launch = Launch { entry: "k".into(), grid: [blocks, 1, 1], block: [32, 1, 1], dynamic_smem: 0, params };
            device.run(&program, &launch, &Options { order, ..Options::default() }).map(|_| ())
        };
        run(5, Order::Forward).unwrap();
        // In reverse order, no block waits.
        run(100, Order::Reverse).unwrap();
        let report = run(100, Order::Forward).unwrap_err();
        assert_eq!(report.kind, ReportKind::Launch);
        assert!(
            report.message.contains("wait for others at one time") && report.message.contains("fewer blocks"),
            "{report}"
        );
    }

    /// A second warp sets a flag again that the waiting thread has cleared: this depends on timing.
    #[test]
    fn who_waits_may_go_on_before_others_of_the_signalling_block() {
        let text = |who: &str| {
            format!(
                ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n.reg .pred %p<3>;\n\
                 .reg .b32 %r<4>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd0, [p];\nmov.u32 %r0, %ctaid.x;\nmov.u32 %r1, %tid.x;\n\
                 setp.eq.u32 %p0, %r0, 0;\n@%p0 bra S;\nsetp.ne.u32 %p2, %r1, 0;\n@%p2 bra E;\n\
                 L: ld.acquire.gpu.global.u32 %r2, [%rd0];\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra L;\n\
                 st.relaxed.gpu.global.u32 [%rd0], 0;\nbra E;\n\
                 S: setp.lt.u32 %p1, %r1, {who};\n@%p1 st.release.gpu.global.u32 [%rd0], 1;\nE: ret;\n}}\n"
            )
        };
        let left = |who: &str, seed: u64| {
            let program = Program::parse(&text(who)).unwrap();
            let mut device = Device::new();
            let a = device.alloc(4).unwrap();
            device.upload(a, &[0; 4]).unwrap();
            let params = vec![a.to_le_bytes().to_vec()];
            let launch = Launch { entry: "k".into(), grid: [2, 1, 1], block: [64, 1, 1], dynamic_smem: 0, params };
            let options = Options { order: Order::Seeded, seed, ..Options::default() };
            device.run(&program, &launch, &options).unwrap();
            device.download(a, 4).unwrap()[0]
        };
        assert!((0..16).all(|seed| left("1", seed) == 0));
        assert!((0..16).any(|seed| left("64", seed) == 1), "nobody came in between");
    }
}
