//! The search on a simulated card: properties that hold for any times.

use super::*;
use crate::run::data::Random;
use pretty_assertions::assert_eq;

/// A simulated card with clock drift and noise, on which some candidates do not work.
struct Card {
    /// Microseconds that candidates take and are predicted to take.
    truth: Vec<f64>,
    predicted: Vec<f64>,
    /// Candidates that fail when they are measured, or are found to be wrong.
    broken: Vec<usize>,
    wrong: Vec<usize>,
    /// Which the model cannot tell apart: the variations of each.
    variations: BTreeMap<usize, Vec<usize>>,
    /// Candidates that are ranked; the others are variations.
    ranked: usize,
    cache: BTreeMap<usize, Result<Measurement, DropReason>>,
    noise: f64,
    random: Random,
    now: f64,
    /// Seconds that a candidate costs in a batch.
    each: f64,
    measured: Vec<Vec<usize>>,
}

/// The card is on fire.
#[derive(Debug, PartialEq)]
struct Fire;

impl Card {
    fn new(seed: u64, truth: &[f64], predicted: &[f64]) -> Card {
        Card {
            truth: truth.to_vec(),
            predicted: predicted.to_vec(),
            broken: Vec::new(),
            wrong: Vec::new(),
            variations: BTreeMap::new(),
            ranked: truth.len(),
            cache: BTreeMap::new(),
            noise: 0.01,
            random: Random::new(seed, "card"),
            now: 0.0,
            each: 0.25,
            measured: Vec::new(),
        }
    }

    /// `count` candidates whose predictions are off by up to `error`, in their order.
    fn any(seed: u64, count: usize, error: f64) -> Card {
        let mut random = Random::new(seed, "candidates");
        let mut any = |from: f64, to: f64| from + (to - from) * random.below(1 << 20) as f64 / f64::from(1 << 20);
        let truth: Vec<f64> = (0..count).map(|_| any(100.0, 300.0)).collect();
        let mut both: Vec<(f64, f64)> = truth.iter().map(|t| (*t, t * any(1.0 - error, 1.0 + error))).collect();
        both.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (truth, predicted): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
        Card::new(seed, &truth, &predicted)
    }

    fn noise(&mut self) -> f64 {
        self.noise * (self.random.below(2001) as f64 / 1000.0 - 1.0)
    }

    fn search(&mut self, budget: f64) -> SearchResult {
        search(self, budget).expect("no fire").expect("something works")
    }

    fn looks(&self) -> usize {
        self.measured.iter().map(Vec::len).sum()
    }
}

impl Measurer for Card {
    type Error = Fire;

    fn count(&self) -> usize {
        self.ranked
    }

    fn predicted(&self, candidate: usize) -> f64 {
        self.predicted[candidate]
    }

    fn known(&mut self, candidate: usize) -> Option<Result<Measurement, DropReason>> {
        self.cache.get(&candidate).cloned()
    }

    fn measure(&mut self, batch: &[usize], effort: Effort) -> Result<Vec<Outcome>, Fire> {
        self.measured.push(batch.to_vec());
        self.now += self.each * batch.len() as f64;
        let mut all: Vec<Outcome> = batch
            .iter()
            .map(|i| if self.broken.contains(i) { Err(dropped("it hangs")) } else { Ok(Vec::new()) })
            .collect();
        for _ in 0..effort.rounds {
            // Each round is slower than the one before: the card gets hot.
            let heat = 1.0 + 0.001 * self.now;
            for (i, us) in batch.iter().zip(&mut all) {
                let noise = self.noise();
                if let Ok(us) = us {
                    us.push(self.truth[*i] * heat * (1.0 + noise));
                }
            }
        }
        Ok(all)
    }

    fn keep(&mut self, candidate: usize, found: &Result<Measurement, DropReason>) {
        self.cache.insert(candidate, found.clone());
    }

    fn variations(&mut self, candidate: usize) -> Vec<usize> {
        self.variations.get(&candidate).cloned().unwrap_or_default()
    }

    fn verify(&mut self, candidate: usize) -> Result<(), DropReason> {
        if self.wrong.contains(&candidate) { Err(dropped("3 elements are wrong")) } else { Ok(()) }
    }

    fn elapsed(&self) -> f64 {
        self.now
    }

    fn progress(&mut self, _: &str) {}
}

fn dropped(why: &str) -> DropReason {
    DropReason { why: why.to_owned(), for_good: true }
}

#[test]
fn the_fastest_is_found_and_the_own_choice_never_left_for_worse() {
    let mut better = 0;
    for seed in 0..200 {
        let mut card = Card::any(seed, 5 + seed as usize, 0.3);
        card.noise = [0.0, 0.005, 0.03][seed as usize % 3];
        let found = card.search(60.0);
        assert_eq!(found.reference, 0);
        assert!(
            card.truth[found.winner] <= card.truth[0],
            "{seed}: {} for {}",
            card.truth[found.winner],
            card.truth[0]
        );
        let best = card.truth.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(card.truth[found.winner] <= best * 1.06, "{seed}: {} for {best}", card.truth[found.winner]);
        better += usize::from(found.winner != 0);
        assert_eq!(found.winner == 0, found.gain().is_none_or(|g| g.median <= 1.0 + LEAST_GAIN), "{seed}");
    }
    assert!(better > 100, "{better}");
}

/// A candidate as fast as the model's own choice, or faster by less than the spread, does not replace it.
#[test]
fn chance_wins_nothing() {
    for seed in 0..100 {
        let mut card = Card::new(seed, &[200.0; 60], &[1.0; 60]);
        card.noise = 0.03;
        assert_eq!(card.search(60.0).winner, 0, "{seed}");
        let mut card = Card::new(seed, &[200.0, 199.5], &[1.0; 2]);
        card.noise = 0.0;
        assert_eq!(card.search(60.0).winner, 0, "a quarter of a percent");
    }
}

#[test]
fn time_is_kept() {
    for budget in [1.0, 10.0, 60.0, 600.0] {
        let mut card = Card::any(7, 2000, 0.1);
        let found = card.search(budget);
        assert!(card.now <= budget.max(8.0), "{} of {budget}", card.now);
        // All that is near enough is seen, or the time is spent.
        assert!(found.left == 0 || card.now >= budget * LOOK * 0.7, "{} of {budget}", card.now);
        assert!(found.looked >= FIRST);
        // The most promising first.
        assert_eq!(card.measured[0], (0..FIRST).collect::<Vec<_>>());
    }
}

#[test]
fn what_is_far_behind_is_not_looked_at() {
    let truth: Vec<f64> = (0..100).map(|i| 100.0 + 10.0 * f64::from(i)).collect();
    let mut card = Card::new(1, &truth, &truth);
    let found = card.search(600.0);
    assert!(card.measured.iter().flatten().all(|&i| truth[i] <= 300.0), "{:?}", card.measured);
    assert_eq!((found.winner, found.left), (0, 0));
}

#[test]
fn what_fails_is_dropped_and_the_rest_goes_on() {
    for seed in 0..50 {
        let mut card = Card::any(seed, 40, 0.3);
        let mut order: Vec<usize> = (0..40).collect();
        order.sort_by(|a, b| card.truth[*a].total_cmp(&card.truth[*b]));
        // The fastest hangs, the next is wrong; sometimes the model's own choice is one of them.
        (card.broken, card.wrong) = (vec![order[0], 5], vec![order[1]]);
        if seed % 4 == 0 {
            card.broken.push(0);
        }
        if seed % 4 == 1 {
            card.wrong.push(0);
        }
        let found = card.search(60.0);
        let out = |i: usize| card.broken.contains(&i) || card.wrong.contains(&i);
        assert!(!out(found.winner) && !card.broken.contains(&found.reference), "{seed}");
        assert_eq!(found.dropped[&order[0]].why, "it hangs");
        let works = (0..40).filter(|i| !out(*i));
        let best = works.map(|i| card.truth[i]).fold(f64::INFINITY, f64::min);
        assert!(card.truth[found.winner] <= best * 1.06, "{seed}: {} for {best}", card.truth[found.winner]);
    }
    let mut card = Card::any(3, 10, 0.3);
    card.broken = (0..10).collect();
    let Nothing(dropped) = search(&mut card, 60.0).expect("no fire").expect_err("nothing works");
    assert_eq!(dropped.len(), 10);
    let mut card = Card::any(3, 10, 0.3);
    card.wrong = (0..10).collect();
    assert!(search(&mut card, 60.0).expect("no fire").is_err());
}

/// Whatever was found out before the search was broken off is not measured again; the finals are.
#[test]
fn a_search_goes_on_where_it_was_broken_off() {
    let mut whole = Card::any(11, 80, 0.3);
    whole.broken = vec![3];
    let first = whole.search(600.0);
    let looks = whole.looks();
    for kept in [0, 1, 20, whole.cache.len()] {
        let mut again = Card::any(11, 80, 0.3);
        again.broken = vec![3];
        again.cache = whole.cache.iter().take(kept).map(|(i, found)| (*i, found.clone())).collect();
        let found = again.search(600.0);
        let finals: Vec<&Vec<usize>> = again.measured.iter().rev().take(2).collect();
        let before = &again.measured[..again.measured.len() - finals.len()];
        let reference = 0;
        assert!(before.iter().flatten().all(|i| *i >= kept || *i == reference), "{kept}: {before:?}");
        assert!(again.looks() + kept.saturating_sub(6) <= looks + 6, "{kept}: {} of {looks}", again.looks());
        // Which candidates count as much slower depends on what was measured in the meantime.
        assert!(found.looked.abs_diff(first.looked) <= 5 && found.dropped.len() == 1, "{kept}");
        assert!(again.truth[found.winner] <= whole.truth[first.winner] * 1.02, "{kept}");
    }
}

#[test]
fn variations_of_the_best_are_tried() {
    let mut card = Card::new(5, &[200.0, 190.0, 300.0, 170.0, 150.0], &[1.0, 1.0, 1.0, 1.0, 1.0]);
    card.ranked = 3;
    // A variation leads to a better one.
    card.variations = [(1, vec![3]), (3, vec![4, 1])].into();
    assert_eq!(card.search(60.0).winner, 4);
}
