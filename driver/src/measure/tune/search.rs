//! The search for the fastest candidate within a time limit, independent of how candidates are measured.
//!
//! Candidates are measured in batches, in the order of the model's prediction. In each batch they alternate with the
//! model's own choice, and each round's time ratio counts: clock frequencies drift, ratios do not. Then come variations
//! of the best candidates that the model cannot distinguish. The best are measured twice more against the model's own
//! choice, each time in more rounds; a candidate that wins the last comparison by more than its spread is taken. A
//! candidate that was fast by chance once is not fast again, so the model's own choice is never replaced by a slower
//! one.

use crate::measure::bench::stats::{Summary, ratios};
use std::collections::BTreeMap;

/// Share of the time until which candidates are looked at.
const LOOK: f64 = 0.65;
/// Share of the time until which variations of the best are.
const VARY: f64 = 0.8;
/// Candidates of the first batch: how long one takes is not known yet.
const FIRST: usize = 8;
/// Candidates of a batch at most.
const MOST: usize = 32;
/// A candidate predicted to take this many times the best measured time is not measured.
const FAR: f64 = 3.0;
/// How many of the best are varied, and how often.
const VARIED: usize = 3;
const VARIATIONS: usize = 3;
/// Finalists besides the model's own choice, and how near the best they are.
const FINALISTS: usize = 6;
const NEAR: f64 = 1.05;
/// Number of candidates in the final comparison.
const LAST: usize = 2;
/// Share of the time that a winner must gain at least.
const LEAST_GAIN: f64 = 0.005;

/// How thoroughly to measure.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct Effort {
    /// Rounds.
    pub(super) rounds: u32,
    /// Seconds of measurement for each candidate to aim at.
    pub(super) seconds: f64,
}

const A_LOOK: Effort = Effort { rounds: 5, seconds: 0.06 };
const A_HEAT: Effort = Effort { rounds: 9, seconds: 0.3 };
const THE_FINAL: Effort = Effort { rounds: 21, seconds: 1.0 };

/// The result of measuring a candidate.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct Measurement {
    /// Microseconds of a launch, the median.
    pub(super) us: f64,
    /// Distance between the quartiles, as a fraction of the median.
    pub(super) spread: f64,
    /// Its time over that of the model's own choice in the same rounds.
    pub(super) ratio: f64,
}

/// Why a candidate is out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct DropReason {
    /// In words.
    pub(super) why: String,
    /// It would be so at another time, too.
    pub(super) for_good: bool,
}

/// Microseconds, round by round.
pub(super) type Outcome = Result<Vec<f64>, DropReason>;

/// Measures candidates, which are numbered: 0 is the model's own choice.
pub(super) trait Measurer {
    /// An error that makes all measuring impossible.
    type Error;
    /// Number of candidates, in the order of the prediction.
    fn count(&self) -> usize;
    /// Seconds that a candidate is predicted to take.
    fn predicted(&self, candidate: usize) -> f64;
    /// A cached result.
    fn known(&mut self, candidate: usize) -> Option<Result<Measurement, DropReason>>;
    /// Measures candidates, taking turns.
    fn measure(&mut self, batch: &[usize], effort: Effort) -> Result<Vec<Outcome>, Self::Error>;
    /// Remembers what was found out.
    fn keep(&mut self, candidate: usize, found: &Result<Measurement, DropReason>);
    /// Candidates, old and new, that differ from this one in what the model cannot tell or leaves out.
    fn variations(&mut self, candidate: usize) -> Vec<usize>;
    /// Whether its result is right, as far as that has not been found out by measuring it.
    fn verify(&mut self, candidate: usize) -> Result<(), DropReason>;
    /// Seconds since the search began.
    fn elapsed(&self) -> f64;
    /// Hears what is done now.
    fn progress(&mut self, what: &str);
}

/// Candidates that met, and their times, round by round.
pub(super) type Times = Vec<(usize, Vec<f64>)>;

/// What came out.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SearchResult {
    /// The winner.
    pub(super) winner: usize,
    /// The reference of the ratios: the model's own choice, or if that does not work, the next candidate.
    pub(super) reference: usize,
    /// The times of the last meeting.
    pub(super) finals: Times,
    /// Number of candidates measured, now or before.
    pub(super) looked: usize,
    /// Number of candidates left out for lack of time.
    pub(super) left: usize,
    /// What was dropped.
    pub(super) dropped: BTreeMap<usize, DropReason>,
}

impl SearchResult {
    /// The time of the reference over that of the winner, round by round.
    pub(super) fn gain(&self) -> Option<Summary> {
        let us = |of: usize| self.finals.iter().find(|(i, _)| *i == of).map(|(_, us)| us.as_slice());
        Summary::of(&ratios(us(self.reference)?, us(self.winner)?))
    }
}

/// No candidate works; why they were dropped.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Nothing(pub(super) BTreeMap<usize, DropReason>);

/// Searches for about `budget` seconds; the first batch and the finals always take place.
pub(super) fn search<M: Measurer>(m: &mut M, budget: f64) -> Result<Result<SearchResult, Nothing>, M::Error> {
    let candidates: Vec<usize> = (0..m.count()).collect();
    let mut search =
        Search { m, looks: BTreeMap::new(), dropped: BTreeMap::new(), reference: None, each: None, left: 0 };
    search.measure_until(&candidates, budget * LOOK)?;
    for _ in 0..VARIATIONS {
        let mut more: Vec<usize> = Vec::new();
        for best in search.best().into_iter().take(VARIED) {
            more.extend(search.m.variations(best));
        }
        more.sort_unstable();
        more.dedup();
        more.retain(|i| !search.seen(*i));
        if more.is_empty() {
            break;
        }
        search.measure_until(&more, budget * VARY)?;
    }
    loop {
        // Each time that there is no result, something has been dropped.
        if search.looks.is_empty() {
            return Ok(Err(Nothing(search.dropped)));
        }
        if let Some(found) = search.finals()? {
            return Ok(Ok(found));
        }
    }
}

struct Search<'m, M> {
    m: &'m mut M,
    looks: BTreeMap<usize, Measurement>,
    dropped: BTreeMap<usize, DropReason>,
    /// The reference of ratios: the first candidate that works.
    reference: Option<usize>,
    /// Seconds that a candidate of a batch took.
    each: Option<f64>,
    left: usize,
}

impl<M: Measurer> Search<'_, M> {
    fn seen(&self, candidate: usize) -> bool {
        self.looks.contains_key(&candidate) || self.dropped.contains_key(&candidate)
    }

    /// Working candidates, the fastest first.
    fn best(&self) -> Vec<usize> {
        let mut all: Vec<(usize, f64)> = self.looks.iter().map(|(i, look)| (*i, look.ratio)).collect();
        all.sort_by(|(a, x), (b, y)| x.total_cmp(y).then(a.cmp(b)));
        all.into_iter().map(|(i, _)| i).collect()
    }

    fn fastest(&self) -> f64 {
        self.looks.values().map(|look| look.ratio).fold(1.0, f64::min)
    }

    /// Looks at candidates until `until`.
    fn measure_until(&mut self, list: &[usize], until: f64) -> Result<(), M::Error> {
        let mut next = list.iter().copied();
        loop {
            let room = match self.each {
                None => FIRST,
                Some(each) => (((until - self.m.elapsed()) / each.max(1e-6)) as usize).min(MOST),
            };
            let mut batch: Vec<usize> = Vec::new();
            while batch.len() < room.max(1) {
                let Some(candidate) = next.next() else { break };
                if self.seen(candidate) {
                    continue;
                }
                if let Some(reference) = self.reference {
                    let far = self.m.predicted(candidate) / self.m.predicted(reference).max(f64::MIN_POSITIVE);
                    if far > FAR * self.fastest() {
                        continue;
                    }
                }
                match self.m.known(candidate) {
                    Some(found) => self.learn(candidate, found),
                    None => batch.push(candidate),
                }
            }
            if batch.is_empty() {
                return Ok(());
            }
            if room == 0 {
                // Cached results cost no time.
                self.left += batch.len();
                for candidate in next {
                    match self.m.known(candidate) {
                        _ if self.seen(candidate) => {}
                        Some(found) => self.learn(candidate, found),
                        None => self.left += 1,
                    }
                }
                return Ok(());
            }
            let done =
                format!("looking at {} of {}", self.looks.len() + self.dropped.len() + batch.len(), self.m.count());
            let faster = 1.0 / self.fastest();
            self.m.progress(&if faster > 1.0 { format!("{done}, best {faster:.3}x") } else { done });
            self.batch(&batch)?;
        }
    }

    /// Takes in what is known of a candidate.
    fn learn(&mut self, candidate: usize, found: Result<Measurement, DropReason>) {
        match found {
            Ok(look) => {
                self.reference.get_or_insert(candidate);
                self.looks.insert(candidate, look);
            }
            Err(dropped) => {
                self.looks.remove(&candidate);
                self.dropped.insert(candidate, dropped);
            }
        }
    }

    /// Measures a batch, alternately with the reference.
    fn batch(&mut self, batch: &[usize]) -> Result<(), M::Error> {
        let began = self.m.elapsed();
        let mut all: Vec<usize> = self.reference.into_iter().collect();
        all.extend(batch.iter().filter(|i| !all.contains(i)).copied().collect::<Vec<_>>());
        let outcomes = self.m.measure(&all, A_LOOK)?;
        self.each = Some((self.m.elapsed() - began) / all.len() as f64);
        let old = self.reference.and_then(|r| self.looks.get(&r).copied());
        // Without a reference yet, or with one that has just failed, the first that works is held against.
        let works = all.iter().zip(&outcomes).find_map(|(i, us)| us.as_ref().ok().map(|us| (*i, us.clone())));
        let reference = match (self.reference, &outcomes[..]) {
            (Some(r), [Ok(us), ..]) => Some((r, us.clone(), 1.0)),
            (Some(_), _) => works.and_then(|(i, us)| {
                let median = Summary::of(&us)?.median;
                Some((i, us, median / old?.us))
            }),
            (None, _) => works.map(|(i, us)| (i, us, 1.0)),
        };
        for (&candidate, outcome) in all.iter().zip(outcomes) {
            let found = outcome.and_then(|us| {
                let (_, to, scale) = reference.as_ref().ok_or_else(|| out("nothing to compare it with"))?;
                let ratio = Summary::of(&ratios(&us, to)).map(|s| s.median * scale);
                let (Some(summary), Some(ratio)) = (Summary::of(&us), ratio) else { return Err(out("no times")) };
                Ok(Measurement { us: summary.median, spread: summary.spread(), ratio })
            });
            if found.is_err() || !self.looks.contains_key(&candidate) {
                self.m.keep(candidate, &found);
                self.learn(candidate, found);
            }
        }
        self.choose_reference();
        Ok(())
    }

    /// Holds against the first that works, if what was held against does not.
    fn choose_reference(&mut self) {
        if self.reference.is_some_and(|r| self.looks.contains_key(&r)) {
            return;
        }
        self.reference = self.looks.keys().next().copied();
        let Some(scale) = self.reference.and_then(|r| self.looks.get(&r)).map(|look| look.ratio) else { return };
        for look in self.looks.values_mut() {
            look.ratio /= scale;
        }
    }

    /// Drops a candidate that turned out not to work.
    fn drop(&mut self, candidate: usize, why: DropReason) {
        self.m.keep(candidate, &Err(why.clone()));
        self.learn(candidate, Err(why));
        self.choose_reference();
    }

    /// Measures candidates against the reference; `None` if one of them fails.
    fn measure_against_reference(&mut self, others: &[usize], effort: Effort) -> Result<Option<Times>, M::Error> {
        let Some(reference) = self.reference else { return Ok(None) };
        let mut all = vec![reference];
        all.extend(others.iter().filter(|i| **i != reference));
        let outcomes = self.m.measure(&all, effort)?;
        let mut times = Vec::new();
        for (&candidate, outcome) in all.iter().zip(outcomes) {
            match outcome {
                Ok(us) => times.push((candidate, us)),
                Err(why) => self.drop(candidate, why),
            }
        }
        Ok((times.len() == all.len()).then_some(times))
    }

    /// The finals; `None`: something was dropped, and they are to be held again.
    fn finals(&mut self) -> Result<Option<SearchResult>, M::Error> {
        let Some(reference) = self.reference else { return Ok(None) };
        let limit = self.fastest() * NEAR;
        let near = |i: &usize| *i != reference && self.looks.get(i).is_some_and(|look| look.ratio <= limit);
        let mut finalists: Vec<usize> = self.best().into_iter().filter(near).take(FINALISTS).collect();
        if finalists.len() > LAST {
            self.m.progress(&format!("{} meet again", finalists.len() + 1));
            let Some(times) = self.measure_against_reference(&finalists, A_HEAT)? else { return Ok(None) };
            finalists = ranked(&times).into_iter().map(|(i, _)| i).take(LAST).collect();
        }
        self.m.progress("the final");
        let Some(finals) = self.measure_against_reference(&finalists, THE_FINAL)? else { return Ok(None) };
        let better = |(_, ratio): &(usize, Summary)| 1.0 - ratio.median > ratio.spread().max(LEAST_GAIN);
        let winner = ranked(&finals).into_iter().find(better).map_or(reference, |(i, _)| i);
        self.m.progress("checking the winner");
        if let Err(why) = self.m.verify(winner) {
            // The next final includes a candidate that this one excluded.
            self.drop(winner, why);
            return Ok(None);
        }
        Ok(Some(SearchResult {
            winner,
            reference,
            finals,
            looked: self.looks.len() + self.dropped.len(),
            left: self.left,
            dropped: std::mem::take(&mut self.dropped),
        }))
    }
}

fn out(why: &str) -> DropReason {
    DropReason { why: why.to_owned(), for_good: false }
}

/// All but the first by their ratios to it, the fastest first.
fn ranked(times: &[(usize, Vec<f64>)]) -> Vec<(usize, Summary)> {
    let Some(((_, to), others)) = times.split_first() else { return Vec::new() };
    let mut all: Vec<(usize, Summary)> =
        others.iter().filter_map(|(i, us)| Some((*i, Summary::of(&ratios(us, to))?))).collect();
    all.sort_by(|(a, x), (b, y)| x.median.total_cmp(&y.median).then(a.cmp(b)));
    all
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
