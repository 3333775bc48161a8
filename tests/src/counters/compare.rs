//! Expected counts compared with measured ones.

use super::csv::Measured;
use super::launches::Counted;
use super::metrics::{Group, METRICS, Metric, Number};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use tilec_sim::{Counters, Generation, Options};

/// A launch with the simulator's counts.
pub struct Expected {
    /// The launch.
    pub counted: Counted,
    /// Its counts.
    pub counters: Counters,
}

/// Runs all launches on the simulator; their results must be right.
///
/// # Errors
/// A report, or a wrong result.
pub fn expected(launches: Vec<Counted>) -> Result<Vec<Expected>, String> {
    let options = Options { generation: Some(Generation::Hopper), ..Options::default() };
    let run = |counted: Counted| {
        let name = &counted.case.name;
        let (outputs, counters) = counted.case.simulate(&options).map_err(|e| format!("{name}: {e}"))?;
        counted.case.check(&outputs).map_err(|e| format!("{name}: {e}"))?;
        Ok(Expected { counted, counters })
    };
    launches.into_iter().map(run).collect()
}

/// The expected counts in the profiler's own form, each under the best name of its counter.
pub fn csv(expected: &[Expected]) -> String {
    let mut out = String::from("\"ID\",\"Kernel Name\"");
    METRICS.iter().for_each(|m| out.push_str(&format!(",\"{}\"", m.names[0])));
    out.push_str("\n\"\",\"\"");
    METRICS.iter().for_each(|_| out.push_str(",\"\""));
    for (i, e) in expected.iter().enumerate() {
        let _ = write!(out, "\n\"{i}\",\"{}\"", e.counted.case.entry);
        METRICS.iter().for_each(|m| out.push_str(&format!(",\"{}\"", m.expected(&e.counters))));
    }
    out.push('\n');
    out
}

/// The result of comparing a count.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Equal,
    /// Different for a reason that is not in the simulator.
    Explained(String),
    Different,
}

/// The summary of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Launches of which something was measured.
    pub launches: usize,
    /// Launches with no difference, explained or not.
    pub equal_launches: usize,
    /// Counts that were compared.
    pub counts: usize,
    /// Counts that are equal.
    pub equal: usize,
    /// Differences with a reason.
    pub explained: usize,
    /// Differences without one.
    pub different: usize,
}

/// The table and its summary.
///
/// # Errors
/// The profiler saw other launches than ours.
pub fn table(expected: &[Expected], measured: &[Measured]) -> Result<(String, Summary), String> {
    let mut text = String::new();
    let mut summary = Summary::default();
    if expected.len() != measured.len() {
        let _ = writeln!(
            text,
            "{} launches measured, expected {}: compared as far as they go",
            measured.len(),
            expected.len()
        );
    }
    let mut missing: BTreeSet<String> = METRICS.iter().map(Metric::title).collect();
    for (e, m) in expected.iter().zip(measured) {
        if e.counted.case.entry != m.kernel {
            let case = &e.counted.case;
            return Err(format!(
                "launch of `{}` measured where `{}` ({}) was expected",
                m.kernel, case.entry, case.name
            ));
        }
        let mut lines = String::new();
        let before = summary;
        for metric in METRICS {
            let Some(got) = metric.measured(&m.values) else { continue };
            missing.remove(&metric.title());
            let want = metric.expected(&e.counters);
            // Zero against zero is no evidence: only what the kernel does is counted as compared.
            if want == 0 && got == 0 {
                continue;
            }
            summary.counts += 1;
            let verdict = verdict(e, m, metric, want, got);
            let note = match &verdict {
                Verdict::Equal => String::new(),
                Verdict::Explained(why) => format!("  explained: {why}"),
                Verdict::Different => "  DIFFERENT".to_owned(),
            };
            let _ = writeln!(lines, "    {:32} {want:>8} {got:>8}{note}", metric.title());
            if verdict != Verdict::Equal {
                // Another counter of the same thing tells a wrong prediction from a counter that means something else.
                for name in metric.names.iter().chain(&metric.less) {
                    m.values.get(*name).iter().for_each(|v| lines.push_str(&format!("        {name} = {v}\n")));
                }
            }
            match verdict {
                Verdict::Equal => summary.equal += 1,
                Verdict::Explained(_) => summary.explained += 1,
                Verdict::Different => summary.different += 1,
            }
        }
        if summary.counts > before.counts {
            summary.launches += 1;
            let clean = (summary.explained, summary.different) == (before.explained, before.different);
            summary.equal_launches += usize::from(clean);
        }
        let _ = write!(text, "{}\n{lines}", e.counted.case.name);
    }
    let _ = writeln!(
        text,
        "\n{} launches, {} with every count equal; {} counts compared: {} equal, {} explained, {} different",
        summary.launches, summary.equal_launches, summary.counts, summary.equal, summary.explained, summary.different
    );
    for title in missing {
        let _ = writeln!(text, "not measured: {title} (the profiler gave none of its counters)");
    }
    Ok((text, summary))
}

fn verdict(e: &Expected, m: &Measured, metric: &Metric, want: u64, got: u64) -> Verdict {
    if want == got {
        return Verdict::Equal;
    }
    if let Some((_, why)) = e.counted.apart.iter().find(|(group, _)| *group == metric.group) {
        return Verdict::Explained((*why).to_owned());
    }
    let count = |group: Group, number: Number| {
        let metric = METRICS.iter().find(|x| x.group == group && x.number == number)?;
        Some((metric.expected(&e.counters), metric.measured(&m.values)?))
    };
    // Measured: the same copies took 1120 and 1136 wavefronts in two launches.
    if e.counted.gathers
        && (metric.group, metric.number) == (Group::CopyWrites, Number::Wavefronts)
        && count(metric.group, Number::Executed).is_some_and(|(want, got)| want == got)
        && got.abs_diff(want) <= want / 8
    {
        return Verdict::Explained(
            "not modelled: when the parts of a line arrive; the same copies differ from launch to launch".to_owned(),
        );
    }
    // A counter may or may not include the accesses that do the same work by another instruction.
    let wider = match metric.group {
        Group::SharedLoads => Some((Group::MatrixLoads, "ldmatrix")),
        Group::SharedStores => Some((Group::CopyWrites, "cp.async")),
        Group::GlobalLoads => Some((Group::CopyReads, "cp.async")),
        _ => None,
    };
    if let Some((group, what)) = wider
        && let Some((also, _)) = count(group, metric.number)
        && also > 0
        && want + also == got
    {
        return Verdict::Explained(format!("this counter includes {what}"));
    }
    if metric.number == Number::Sectors
        && let Some((Group::CopyReads, _)) = wider
        && let Some((also, counted)) = count(Group::CopyReads, Number::Sectors)
        && also == counted
        && (want + 1..want + also).contains(&got)
    {
        return Verdict::Explained("this counter includes cp.async, sectors asked for twice in part".to_owned());
    }
    // The counter of the unit, where the profiler has none for each instruction.
    if metric.number == Number::Conflicts
        && got > want
        && count(metric.group, Number::Wavefronts).is_some_and(|(want, got)| want == got)
        && !metric.names.iter().any(|name| name.starts_with("smsp__sass") && m.values.contains_key(*name))
    {
        return Verdict::Explained(
            "the unit counts waiting for other instructions too; wavefronts are equal".to_owned(),
        );
    }
    if metric.number != Number::Executed {
        return match count(metric.group, Number::Executed) {
            Some((want, got)) if want != got => {
                Verdict::Explained(format!("the machine code executes {got} of these, the PTX {want}"))
            }
            _ => Verdict::Different,
        };
    }
    if metric.group == Group::Products {
        return Verdict::Different;
    }
    // Instructions added by the assembler do no work if the number of working ones is as expected.
    let work = if matches!(metric.group, Group::GlobalLoads | Group::GlobalStores) {
        Number::Requests
    } else {
        Number::Wavefronts
    };
    if got > want && count(metric.group, work).is_some_and(|(want, got)| want == got) {
        return Verdict::Explained("the machine code has others whose predicate is false in every lane".to_owned());
    }
    Verdict::Different
}
