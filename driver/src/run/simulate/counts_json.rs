//! Counts as JSON, `tilec.counters/1`: totals, lines, and every instruction of the PTX.

use super::counts::{Line, lines};
use super::{Executed, Simulated, generation_name};
use crate::console::render::SourceFile;
use serde::Serialize;
use tilec_sim::{Allowance, Place, Report};

/// The value of `schema`.
pub const SCHEMA: &str = "tilec.counters/1";

#[derive(Serialize)]
struct File<'a> {
    schema: &'static str,
    entry: &'a str,
    target: &'a str,
    imitated: String,
    blocks: u64,
    threads: u32,
    /// Whether the launch did too much to look for races on global memory in all of it.
    races_partial: bool,
    /// Violations that the run permits.
    allowed: Vec<Passed<'a>>,
    total: Total,
    lines: Vec<LineJson>,
    instructions: Vec<Instruction<'a>>,
}

/// A permitted violation: the access, and the one that it is not ordered after.
#[derive(Serialize)]
struct Passed<'a> {
    name: &'static str,
    message: &'a str,
    ptx_line: Option<u32>,
    other_ptx_line: Option<u32>,
    block: [u32; 3],
}

impl Passed<'_> {
    fn new(report: &Report) -> Passed<'_> {
        let name = Allowance::ALL.iter().find(|a| Some(a.cause()) == report.cause).map_or("", |a| a.name());
        let line = |place: &Option<Place>| place.as_ref().map(|p| p.ptx_line);
        let (ptx_line, other_ptx_line) = (line(&report.place), line(&report.other));
        Passed { name, message: &report.message, ptx_line, other_ptx_line, block: report.block }
    }
}

#[derive(Serialize)]
struct Total {
    executed: u64,
    products: u64,
    barriers: u64,
    #[serde(flatten)]
    memory: Memory,
}

#[derive(Serialize)]
struct LineJson {
    file: Option<String>,
    line: Option<u32>,
    text: String,
    times: u64,
    executed: u64,
    products: u64,
    barriers: u64,
    #[serde(flatten)]
    memory: Memory,
}

#[derive(Serialize)]
struct Instruction<'a> {
    ptx_line: u32,
    instruction: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    executed: u64,
    lanes: u64,
    #[serde(flatten)]
    memory: Memory,
}

#[derive(Serialize)]
struct Memory {
    wavefronts: u64,
    ideal_wavefronts: u64,
    conflicts: u64,
    parted: u64,
    requests: u64,
    sectors: u64,
    ideal_sectors: u64,
    global_bytes: u64,
}

impl From<&tilec_sim::Counts> for Memory {
    fn from(c: &tilec_sim::Counts) -> Memory {
        Memory {
            wavefronts: c.wavefronts,
            ideal_wavefronts: c.ideal_wavefronts,
            conflicts: c.conflicts(),
            parted: c.parted,
            requests: c.requests,
            sectors: c.sectors,
            ideal_sectors: c.ideal_sectors,
            global_bytes: c.global_bytes,
        }
    }
}

/// The counts of a simulation: an object for one launch, `{"schema": .., "launches": [..]}` for several. `source` and `ptx` as
/// for [`lines`].
pub fn json(simulated: &Simulated, target: &str, source: &SourceFile, ptx: &str) -> String {
    #[derive(Serialize)]
    struct LaunchCounts<'a> {
        schema: &'static str,
        launches: Vec<File<'a>>,
    }
    let mut launches: Vec<File<'_>> =
        simulated.launches.iter().map(|launch| file(simulated, launch, target, source, ptx)).collect();
    let mut text = match (launches.len(), launches.pop()) {
        (1, Some(one)) => serde_json::to_string_pretty(&one),
        (_, last) => {
            launches.extend(last);
            serde_json::to_string_pretty(&LaunchCounts { schema: SCHEMA, launches })
        }
    }
    .expect("counts have only string keys");
    text.push('\n');
    text
}

fn file<'a>(simulated: &Simulated, launch: &'a Executed, target: &'a str, source: &SourceFile, ptx: &str) -> File<'a> {
    let counters = &launch.counters;
    let mut all = tilec_sim::Counts::default();
    counters.rows.iter().for_each(|r| all.add(&r.counts));
    let line = |l: Line| {
        let (file, line) = l.place.unzip();
        let memory = Memory::from(&l.counts);
        let Line { text, times, products, barriers, counts, .. } = l;
        LineJson { file, line, text, times, executed: counts.executed, products, barriers, memory }
    };
    File {
        schema: SCHEMA,
        entry: &launch.entry,
        target,
        imitated: generation_name(simulated.generation).to_lowercase(),
        blocks: launch.blocks,
        threads: launch.threads,
        races_partial: counters.races_partial,
        allowed: counters.allowed.iter().map(Passed::new).collect(),
        total: Total {
            executed: counters.instructions,
            products: counters.mma,
            barriers: counters.barriers,
            memory: Memory::from(&all),
        },
        lines: lines(counters, source, ptx).into_iter().map(line).collect(),
        instructions: counters
            .rows
            .iter()
            .map(|r| Instruction {
                ptx_line: r.ptx_line,
                instruction: &r.instruction,
                file: r.source.as_ref().map(|(file, _)| file.as_str()),
                line: r.source.as_ref().map(|(_, line)| *line),
                executed: r.counts.executed,
                lanes: r.counts.lanes,
                memory: Memory::from(&r.counts),
            })
            .collect(),
    }
}
