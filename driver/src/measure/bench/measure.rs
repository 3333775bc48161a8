//! Times of calls that alternate, so that clock, power and heat of the card affect all of them equally.
//!
//! A call's launches of one turn are recorded in a CUDA graph. They rotate through so many sets of tensors that none is
//! in the second-level cache. Turns are queued in advance, so the device is never idle between them.

use crate::cuda::{CudaError, Device, Event, Graph, Stream};
use crate::run::data::Random;

/// More sets than this are not made, however small they are.
const MAX_SETS: usize = 4096;
/// More launches than this do not go into a graph, unless the sets need them.
const MAX_LAUNCHES: u32 = 4096;

/// The number of sets of tensors.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Sets {
    /// Sets, at least 2.
    pub(super) count: u32,
    /// Whether between two uses of a set more than the cache holds is touched.
    pub(super) past_cache: bool,
}

impl Sets {
    /// Sets of `bytes` bytes each that together are half again as large as the cache, within `memory`.
    pub(super) fn past_cache(bytes: usize, cache: u32, memory: usize) -> Sets {
        let bytes = bytes.max(1);
        let wanted = (cache as usize / 2 * 3).div_ceil(bytes) + 1;
        let count = wanted.clamp(2, MAX_SETS).min((memory / bytes).max(2));
        Sets { count: u32::try_from(count).unwrap_or(2), past_cache: count >= wanted }
    }
}

/// Queues a call that works on a set of tensors.
type Queue<'a> = dyn Fn(usize, &Stream) -> Result<(), CudaError> + 'a;

/// Something to time.
pub(super) struct Unit<'a> {
    pub(super) sets: Sets,
    /// Queues one call on a set.
    pub(super) call: Box<Queue<'a>>,
}

/// The times of a unit.
#[derive(Clone, Debug, Default)]
pub(super) struct Timed {
    /// Microseconds of one call, round by round.
    pub(super) us: Vec<f64>,
    /// Calls per round.
    pub(super) launches: u32,
}

/// Launches of one turn.
enum Turn {
    Graph(Graph),
    /// Where graph capture does not work.
    Plain,
}

/// Microseconds of each of `ways` ways to do a call, each a few times alternately; infinite where it fails.
pub(super) fn estimate_times(
    device: &Device,
    stream: &Stream,
    sets: Sets,
    ways: usize,
    call: &dyn Fn(usize, usize, &Stream) -> Result<(), CudaError>,
) -> Result<Vec<f64>, CudaError> {
    const ROUNDS: usize = 3;
    const CALLS: usize = 6;
    let mut best = vec![f64::INFINITY; ways];
    let works: Vec<bool> = (0..ways).map(|way| call(way, 0, stream).is_ok()).collect();
    stream.synchronize()?;
    let (start, stop) = (device.event()?, device.event()?);
    let mut set = 0;
    for round in 0..ROUNDS {
        for way in (0..ways).filter(|way| works[*way]) {
            let next = |set: &mut usize| {
                *set = (*set + 1) % sets.count as usize;
                *set
            };
            // The first call fills the queue while the events are recorded.
            call(way, next(&mut set), stream)?;
            stream.record(&start)?;
            for _ in 0..CALLS {
                call(way, next(&mut set), stream)?;
            }
            stream.record(&stop)?;
            let us = f64::from(stop.elapsed_ms_since(&start)?) * 1e3 / CALLS as f64;
            // The first round loads code.
            if round > 0 || ROUNDS == 1 {
                best[way] = best[way].min(us);
            }
        }
    }
    Ok(best)
}

/// Which of these times is the shortest.
pub(super) fn fastest(us: &[f64]) -> Option<usize> {
    let best = us.iter().enumerate().filter(|(_, us)| us.is_finite()).min_by(|a, b| a.1.total_cmp(b.1));
    best.map(|(i, _)| i)
}

/// Number of calls in a turn of `seconds`: the same number for each set, so that the cache state is the same in each
/// turn.
fn launches(call_us: f64, sets: u32, seconds: f64) -> u32 {
    let wanted = (seconds * 1e6 / call_us.max(0.1)).min(f64::from(MAX_LAUNCHES));
    let turns = (wanted / f64::from(sets)).floor().max(1.0);
    sets * (turns as u32)
}

/// Times all units in `rounds` rounds of about `seconds` together.
pub(super) fn interleave(
    device: &Device,
    stream: &Stream,
    units: &[Unit<'_>],
    rounds: u32,
    seconds: f64,
    notes: &mut Vec<String>,
    progress: &mut dyn FnMut(f64),
) -> Result<Vec<Timed>, CudaError> {
    // A turn is run twice and timed once.
    let turn_seconds = seconds / f64::from(rounds) / units.len().max(1) as f64 / 2.0;
    let (start, stop) = (device.event()?, device.event()?);
    let mut timed = Vec::new();
    let mut turns = Vec::new();
    let mut refused = None;
    for unit in units {
        (unit.call)(0, stream)?;
        stream.record(&start)?;
        let few = unit.sets.count.min(4);
        for set in 0..few {
            (unit.call)(set as usize, stream)?;
        }
        stream.record(&stop)?;
        let us = f64::from(stop.elapsed_ms_since(&start)?) * 1e3 / f64::from(few);
        let launches = launches(us, unit.sets.count, turn_seconds);
        let recorded = stream.capture(|stream| queue(unit, launches, stream));
        turns.push(match recorded {
            Ok(graph) => {
                graph.upload(stream)?;
                Turn::Graph(graph)
            }
            Err(e) => {
                refused = Some(e);
                Turn::Plain
            }
        });
        timed.push(Timed { us: Vec::new(), launches });
    }
    if let Some(e) = refused {
        notes.push(format!("launched one by one, with gaps between launches, because there is no CUDA graph: {e}"));
    }
    if units.iter().any(|unit| !unit.sets.past_cache) {
        notes.push("the tensors are so small, or so large, that some may have been found in the cache".to_owned());
    }
    let run = |unit: usize| match &turns[unit] {
        Turn::Graph(graph) => graph.launch(stream),
        Turn::Plain => queue(&units[unit], timed[unit].launches, stream),
    };
    // The device is busy with this while the first turns are queued.
    if !units.is_empty() {
        run(0)?;
    }
    let orders = orders(units.len(), rounds.max(1));
    let submit = |round: u32| -> Result<Vec<(usize, Event, Event)>, CudaError> {
        orders[round as usize]
            .iter()
            .map(|&unit| {
                let (start, stop) = (device.event()?, device.event()?);
                // The previous program changes the clock frequency by up to a tenth: each unit warms up with its own
                // load before it is timed.
                run(unit)?;
                stream.record(&start)?;
                run(unit)?;
                stream.record(&stop)?;
                Ok((unit, start, stop))
            })
            .collect()
    };
    let mut us = vec![Vec::new(); units.len()];
    let mut queued = submit(0)?;
    for round in 1..=rounds {
        let next = if round < rounds { submit(round)? } else { Vec::new() };
        for (unit, start, stop) in queued {
            let ms = f64::from(stop.elapsed_ms_since(&start)?);
            us[unit].push(ms * 1e3 / f64::from(timed[unit].launches));
        }
        progress(f64::from(round) / f64::from(rounds));
        queued = next;
    }
    device.synchronize()?;
    for (timed, us) in timed.iter_mut().zip(us) {
        timed.us = us;
    }
    Ok(timed)
}

/// The order of the units in every round, shuffled with a fixed seed. If possible, no unit always follows the same
/// other one, or itself.
fn orders(units: usize, rounds: u32) -> Vec<Vec<usize>> {
    let mut random = Random::new(0, "orders");
    let mut random = |below: usize| random.below(below as u64) as usize;
    let mut orders: Vec<Vec<usize>> = Vec::new();
    for _ in 0..rounds {
        let mut order: Vec<usize> = (0..units).collect();
        for last in (1..units).rev() {
            order.swap(last, random(last + 1));
        }
        let previous = orders.last().and_then(|o| o.last());
        if units > 1 && order.first() == previous {
            order.swap(0, 1 + random(units - 1));
        }
        orders.push(order);
    }
    orders
}

/// Queues the calls of one turn.
fn queue(unit: &Unit<'_>, launches: u32, stream: &Stream) -> Result<(), CudaError> {
    (0..launches).try_for_each(|i| (unit.call)((i % unit.sets.count) as usize, stream))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every round has every unit once, no unit follows itself, and none always follows the same one if there are
    /// three.
    #[test]
    fn rounds_differ_in_order() {
        for units in 1..20 {
            let orders = orders(units, 7);
            for order in &orders {
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..units));
            }
            let all = orders.concat();
            let mut before = vec![Vec::new(); units];
            for pair in all.windows(2) {
                before[pair[1]].push(pair[0]);
                assert!(units == 1 || pair[0] != pair[1], "{units}: {all:?}");
            }
            assert!(units < 3 || before.iter().all(|b| b.iter().any(|u| *u != b[0])), "{units}: {all:?}");
        }
    }

    #[test]
    fn sets_together_exceed_the_cache() {
        let cache = 50 << 20;
        for bytes in [1 << 20, 3 << 20, 96 << 20] {
            let sets = Sets::past_cache(bytes, cache, 1 << 40);
            assert!(sets.past_cache && (sets.count as usize - 1) * bytes >= cache as usize / 2 * 3, "{bytes}");
        }
        assert_eq!(Sets::past_cache(1 << 30, cache, 1 << 40), Sets { count: 2, past_cache: true });
        assert_eq!(Sets::past_cache(1024, cache, 1 << 40), Sets { count: 4096, past_cache: false });
        assert_eq!(Sets::past_cache(10 << 20, cache, 40 << 20), Sets { count: 4, past_cache: false });
    }

    #[test]
    fn turns_use_all_sets_equally_often() {
        assert_eq!(launches(200.0, 2, 0.01), 50);
        assert_eq!(launches(4.0, 70, 0.01), 2450);
        assert_eq!(launches(1e6, 2, 0.01), 2, "a slow call is done once per set");
        assert_eq!(launches(0.0, 3, 10.0), 4095, "a call of no time at all is not done for ever");
    }

    #[test]
    fn the_fastest_way_that_works_is_taken() {
        assert_eq!(fastest(&[3.0, 1.0, f64::INFINITY, 2.0]), Some(1));
        assert_eq!(fastest(&[f64::INFINITY]), None);
        assert_eq!(fastest(&[]), None);
    }
}
