//! `tilec why --not`: the premises of a property, and which of them fail where.

use super::advice::Given;
use super::answer::{Known, Part};
use super::loss::{Loss, loss};
use super::said::places_of;
use crate::compile::CompiledKernel;
use crate::compile::attribution;
use crate::compile::demands::{self, DemandStatus};
use crate::compile::report_json::{Copy, Shared};
use crate::compile::unrepeated::unrepeated;
use crate::xray::registers_of;
use tilec_ir::demands::{Figure, Property, What};
use tilec_ir::diag::counted;
use tilec_passes::choose::{Card, most_on_multiprocessor};
use tilec_passes::occupancy::Occupancy;

/// The answer to `--not WHAT`: of each kernel whether it holds, and why not.
pub(super) fn not(known: &Known<'_>, what: What) -> (Vec<String>, Vec<Part>) {
    let mut about = Vec::new();
    let mut parts = Vec::new();
    for kernel in &known.program.kernels {
        let name = &kernel.tile.kernel.name;
        if !known.judges(kernel) {
            about.push(format!(
                "`{name}` is made by `align-rows`: it copies an operand before the product, and is not judged"
            ));
            continue;
        }
        if let What::AtLeast(Figure::Resident, _) | What::AtMost(Figure::Resident, _) = what {
            parts.push(resident(known, kernel));
        }
        match judged(known, kernel, what) {
            DemandStatus::Holds => {
                about.push(format!("`{name}` meets `{what}`"));
                parts.push(in_several(known, kernel, holds(kernel, what)));
            }
            DemandStatus::Unknown(why) => {
                about.push(format!("`{what}` cannot be checked for `{name}`: {}", why.message));
                let facts = places_of(known, &why.places);
                parts.push(Part { title: format!("Where, in `{name}`"), facts, ..Part::default() });
            }
            DemandStatus::Broken(broken) => {
                let Loss { message, places, facts, mut decisions, ways } =
                    loss(known, kernel, what, broken, Given::All);
                about.push(format!("`{name}` does not meet `{what}`: {message}"));
                let mut ways = ways;
                let mut part = Part { title: format!("Where, in `{name}`"), facts: places, decisions: Vec::new() };
                part.facts.extend(facts);
                match decisions.last_mut() {
                    Some(last) => last.change = ways,
                    None => {
                        part.facts.extend(ways.drain(..).map(|text| format!("to change it: {text}")));
                    }
                }
                parts.push(part);
                let title =
                    "Which precondition fails (a pass names the first one: when it holds, another may fail)".to_owned();
                parts.push(in_several(known, kernel, Part { title, facts: Vec::new(), decisions }));
            }
        }
    }
    parts.retain(|p| !p.facts.is_empty() || !p.decisions.is_empty());
    (about, parts)
}

/// Whether a property holds of a kernel.
pub(super) fn judged(known: &Known<'_>, kernel: &CompiledKernel, what: What) -> DemandStatus {
    let by_assembler = (kernel.report.assembler.as_ref(), &known.program.source);
    demands::judged(kernel.tile.demanding(), &kernel.lowered, by_assembler, what)
}

/// The same part, of which kernel it is where there are several.
fn in_several(known: &Known<'_>, kernel: &CompiledKernel, part: Part) -> Part {
    if known.program.kernels.len() == 1 {
        return part;
    }
    Part { title: format!("{}, in `{}`", part.title, kernel.tile.kernel.name), ..part }
}

/// What shows that a demand holds of a kernel.
fn holds(kernel: &CompiledKernel, what: What) -> Part {
    let r = &kernel.report;
    let mut facts: Vec<String> = match what {
        What::Has(Property::Wgmma | Property::TensorCores) => {
            r.mma.iter().map(|m| format!("`{}`: {} instructions a warp", m.atom, m.per_warp)).collect()
        }
        What::Has(Property::Pipelined) => {
            let channels = r.tiles.iter().filter(|t| t.slots > 1);
            channels.map(|t| format!("`{}` has {} slots", t.name, t.slots)).collect()
        }
        What::Has(Property::NoBankConflicts) => {
            let each = |s: &Shared| {
                let (access, buffer, n) = (&s.access, &s.buffer, counted(s.wavefronts as usize, "wavefront"));
                match s.by_index {
                    true => format!(
                        "a {access} at `{buffer}` takes {n} or more: indices name its elements, and conflicts depend on them"
                    ),
                    false => format!("a {access} at `{buffer}` takes {n}, as few as its width needs"),
                }
            };
            let divided = kernel.lowered.shared.iter().filter_map(|s| attribution::divided(&kernel.tile.kernel, s));
            r.shared.iter().map(each).chain(divided).collect()
        }
        What::Has(Property::Vectorised) => {
            let wide = r.copies.iter().filter(|c| c.global_bytes > 0);
            wide.map(|c| format!("`{}` -> `{}`: {} bytes an access", c.src, c.dst, c.global_bytes)).collect()
        }
        What::Has(Property::Coalesced) => {
            let moved = r.copies.iter().filter(|c| c.global_bytes > 0);
            let used = |c: &Copy| match c.sectors {
                1 => "one sector, and no access touches fewer".to_owned(),
                _ => format!("{:.0} % of its sectors", 100.0 * c.sector_use),
            };
            moved.map(|c| format!("`{}` -> `{}`: {}", c.src, c.dst, used(c))).collect()
        }
        _ => Vec::new(),
    };
    unrepeated(&mut facts);
    Part { title: "Evidence".to_owned(), facts, decisions: Vec::new() }
}

/// What is resident, and where the registers of that come from.
fn occupancy(known: &Known<'_>, kernel: &CompiledKernel) -> (Occupancy, u64, String) {
    let (registers, from) = registers_of(kernel, known.shown.columns.machine.as_ref());
    let threads = kernel.contract.block.iter().map(|&n| u64::from(n)).product();
    let o = Occupancy::new(known.program.target, threads, registers, kernel.report.smem_bytes);
    (o, threads, format!("{registers} registers ({from})"))
}

/// What bounds the blocks of a multiprocessor.
pub(super) fn resident(known: &Known<'_>, kernel: &CompiledKernel) -> Part {
    let (o, threads, registers) = occupancy(known, kernel);
    let mut facts = vec![format!(
        "a block has {threads} threads of {registers} and {} bytes of shared memory",
        kernel.report.smem_bytes
    )];
    facts.extend(o.list().into_iter().map(|(name, n)| {
        let limit = o.as_limit(name).map_or(String::new(), |limit| format!(", which is {limit}"));
        match (name, kernel.report.smem_bytes) {
            ("shared memory", 0) => format!("{name}: none is used"),
            _ => format!("{name}: room for {n}{limit}"),
        }
    }));
    let p = kernel.tile.prediction.as_ref();
    let card = p.and_then(|p| Card::from_name(p.card)).unwrap_or_else(|| Card::of(known.program.target));
    let launched = most_on_multiprocessor(&kernel.tile.kernel, card).filter(|&n| n < o.resident());
    let resident = launched.unwrap_or(o.resident());
    facts.extend(launched.map(|n| {
        format!("the persistent grid has {} for each multiprocessor of {}", counted(n as usize, "block"), card.name)
    }));
    facts.push(format!(
        "resident on a multiprocessor of {}: {}",
        known.program.target.name(),
        counted(resident as usize, "block")
    ));
    facts.extend(p.filter(|p| p.resident != resident).map(|p| {
        format!(
            "the prediction is for {} of {}, as the model assumes before there is code",
            counted(p.resident as usize, "block"),
            counted(p.threads as usize, "thread")
        )
    }));
    Part { title: "What limits the resident blocks of a multiprocessor".to_owned(), facts, decisions: Vec::new() }
}
