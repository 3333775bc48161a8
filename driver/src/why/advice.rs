//! Advice, which is tried before it is given: the changed program is compiled, and its predicted time stands beside it.
//!
//! There is one rule for all answers. Advice that shortens the predicted time comes first. Advice that does not says so, and an
//! overview leaves out what is slower. Advice that takes a person is marked as not tried.

use super::answer::Known;
use super::programs::Change;
use super::trials::{Effect, FASTER, Trial, effect, prepare_spills};
use crate::compile::CompiledKernel;
use crate::compile::unrepeated::unrepeated;
use tilec_ir::diag::declare_where;

/// Advice.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Advice {
    text: String,
    how: How,
}

/// How it is tried.
#[derive(Clone, PartialEq, Debug)]
enum How {
    /// Not at all: it takes a person.
    Hand,
    /// It is no change: it names a question, which tries what it advises, or a reason.
    Question,
    /// By this change.
    By(Change),
    /// It was: with what it does to the predicted time, seconds without it and with it, if that is known.
    Tried(String, Option<(f64, f64)>),
}

/// Which of the advice is given.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Given {
    /// All of it.
    All,
    /// Without what is slower.
    NotSlower,
    /// What is faster: the predicted time is what is asked about.
    Faster,
}

/// Advice as lines of an answer.
#[derive(Default)]
pub(super) struct Lines {
    /// What there is to say of it besides.
    pub(super) facts: Vec<String>,
    /// The advice.
    pub(super) ways: Vec<String>,
}

impl Advice {
    /// For a person.
    pub(super) fn by_hand(text: impl Into<String>) -> Advice {
        Advice { text: text.into(), how: How::Hand }
    }

    /// That is tried by a change; `None`: there is none, so it is for a person.
    pub(super) fn by(text: impl Into<String>, change: Option<Change>) -> Advice {
        Advice { text: text.into(), how: change.map_or(How::Hand, How::By) }
    }

    /// A fact rather than a change.
    pub(super) fn question(text: impl Into<String>) -> Advice {
        Advice { text: text.into(), how: How::Question }
    }

    /// That was tried.
    pub(super) fn tried(text: impl Into<String>, effect: &Effect) -> Advice {
        Advice { text: text.into(), how: How::Tried(effect.in_words(), Some((effect.now, effect.then))) }
    }

    /// What it says.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is an option of the command line.
    pub(super) fn is_option(&self) -> bool {
        self.text.starts_with("`-D ")
    }

    /// Whether it declares preconditions.
    pub(super) fn declares(&self) -> bool {
        self.text.starts_with("declare `where ")
    }

    /// Whether it declares these preconditions.
    pub(super) fn asks_for(&self, needs: &str) -> bool {
        !needs.is_empty() && self.text.starts_with(&declare_where(needs))
    }

    /// The change that tries it.
    pub(super) fn change(&self) -> Option<&Change> {
        match &self.how {
            How::By(change) => Some(change),
            _ => None,
        }
    }

    /// This advice and other advice together, if both are changes, and of different places.
    pub(super) fn and(&self, other: &Advice) -> Option<Advice> {
        let change = self.change()?.and(other.change()?)?;
        Some(Advice { text: format!("{}, and {}", self.text, other.text), how: How::By(change) })
    }

    /// Seconds without it and with it, as far as they are known.
    pub(super) fn gain(&self) -> Option<(f64, f64)> {
        match self.how {
            How::Tried(_, times) => times,
            _ => None,
        }
    }

    /// Tries it.
    pub(super) fn judged(self, known: &Known<'_>, kernel: &CompiledKernel) -> Advice {
        let How::By(change) = &self.how else { return self };
        let how = match effect(known, kernel, change) {
            Some(effect) => {
                let effect = if effect.is_faster() { effect.assembled(known, kernel, change) } else { effect };
                How::Tried(effect.in_words(), Some((effect.now, effect.then)))
            }
            None if Trial::of(known, kernel, change).is_some() => {
                How::Tried("tried: it compiles, and no time is predicted to compare".to_owned(), None)
            }
            None => How::Tried("tried: with this alone the program does not compile".to_owned(), None),
        };
        Advice { text: self.text, how }
    }
}

/// The rank of what is as fast.
const SAME: u8 = 1;
/// The rank of what is slower.
const SLOWER: u8 = 4;

/// Tries all of it, and says what each does: what is faster in front.
pub(super) fn tried(known: &Known<'_>, kernel: &CompiledKernel, mut all: Vec<Advice>, given: Given) -> Lines {
    // Of the same change the text with a reason is the longer one.
    let texts: Vec<(Option<Change>, usize)> = all.iter().map(|a| (a.change().cloned(), a.text.len())).collect();
    let mut at = 0..texts.len();
    all.retain(|_| {
        let own = at.next().map_or(0, |own| own);
        let (change, length) = &texts[own];
        let better =
            |(other, (same, long)): (usize, &(Option<Change>, usize))| same == change && (long, own) > (length, other);
        change.is_none() || !texts.iter().enumerate().any(better)
    });
    let changes: Vec<Change> =
        all.iter().filter_map(|a| if let How::By(c) = &a.how { Some(c.clone()) } else { None }).collect();
    known.trials.prepare(&changes);
    let faster = changes.iter().filter(|c| effect(known, kernel, c).is_some_and(|effect| effect.is_faster()));
    prepare_spills(known, kernel, &faster.cloned().collect::<Vec<_>>());
    all.extend(together(known, kernel, &all));
    let mut all: Vec<Advice> = all.into_iter().map(|advice| advice.judged(known, kernel)).collect();
    let mut seen: Vec<String> = Vec::new();
    all.retain(|advice| {
        let is_new = !seen.contains(&advice.text);
        seen.push(advice.text.clone());
        is_new
    });
    // A change that was found by search, and is advised with a reason too.
    all.retain(|advice| !seen.iter().any(|other| other.starts_with(&format!("{}: ", advice.text))));
    let rank = |advice: &Advice| match advice.gain() {
        Some((now, then)) if printed(then) == printed(now) => (SAME, 1.0),
        Some((now, then)) if then < now => (0, then / now),
        Some((now, then)) => (SLOWER, then / now),
        None if advice.how == How::Hand => (2, 1.0),
        None => (3, 1.0),
    };
    let mut ranked: Vec<((u8, f64), Advice)> = all.into_iter().map(|advice| (rank(&advice), advice)).collect();
    ranked.sort_by(|a, b| a.0.0.cmp(&b.0.0).then(a.0.1.total_cmp(&b.0.1)));
    let mut lines = Lines::default();
    for ((rank, _), Advice { text, how }) in ranked {
        match how {
            How::Question => lines.facts.push(text),
            How::Tried(effect, _)
                if given != Given::All && rank == SLOWER || given == Given::Faster && rank == SAME =>
            {
                lines.facts.push(format!("not advised: {text} ({effect})"));
            }
            How::Tried(effect, _) => lines.ways.push(format!("{text} ({effect})")),
            How::Hand | How::By(_) => lines.ways.push(format!("{text} (not tried)")),
        }
    }
    unrepeated(&mut lines.ways);
    lines
}

/// Changes of which pairs are tried: the fastest ones, and what changes nothing alone.
const PAIRED: usize = 3;

/// The pair of changes that is faster than each change alone.
fn together(known: &Known<'_>, kernel: &CompiledKernel, all: &[Advice]) -> Option<Advice> {
    let time = |advice: &Advice| Some(effect(known, kernel, advice.change()?)?.then);
    let mut alone: Vec<(f64, &Advice)> = all.iter().filter_map(|advice| Some((time(advice)?, advice))).collect();
    alone.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, _) = *alone.first()?;
    alone.truncate(PAIRED);
    let later = |i: usize| alone[i + 1..].iter();
    let pairs: Vec<Advice> =
        alone.iter().enumerate().flat_map(|(i, (_, one))| later(i).filter_map(|(_, two)| one.and(two))).collect();
    known.trials.prepare(&pairs.iter().filter_map(Advice::change).cloned().collect::<Vec<_>>());
    let timed = pairs.into_iter().filter_map(|pair| Some((time(&pair)?, pair)));
    let best = timed.min_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 < FASTER * least).then_some(best.1)
}

pub(super) fn printed(seconds: f64) -> String {
    format!("{:.1}", 1e6 * seconds)
}
