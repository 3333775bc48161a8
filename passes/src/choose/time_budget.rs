//! The predicted time of a launch as one sum.
//!
//! The terms of the model overlap: each is what a part of the work takes by itself. A budget has of each term the part
//! that adds to the time: of the busiest unit all of it, of the others what it does not hide. It counts in tenths of a
//! microsecond, as it is printed, so that what is printed adds up to the prediction.

use super::model::launch::Term;
use super::prediction::Prediction;
use std::fmt;

/// Tenths of a microsecond in a second.
const TENTHS: f64 = 1e7;
/// Parts below this share of the time have one name together.
const NAMED: u64 = 100;

/// The parts of a predicted time; they add up to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimeBudget {
    /// The busiest unit first, then the others by their size. None is 0.
    parts: Vec<(Term, u64)>,
}

impl Prediction {
    /// The predicted time as a sum of what each term adds.
    pub fn budget(&self) -> TimeBudget {
        TimeBudget::of(self)
    }
}

impl TimeBudget {
    fn of(p: &Prediction) -> TimeBudget {
        let (busiest, _) = p.busiest();
        let mut left = p.seconds;
        let mut parts: Vec<(Term, f64)> = Vec::new();
        let mut take = |of: &[(Term, f64)]| {
            let wanted: f64 = of.iter().map(|(_, s)| s.max(0.0)).sum();
            let share = if wanted > left { left / wanted } else { 1.0 };
            parts.extend(of.iter().map(|&(t, s)| (t, share * s.max(0.0))));
            left = (left - wanted).max(0.0);
        };
        let all_of = |of: &[Term]| of.iter().map(|&t| (t, p.terms.of(t))).collect::<Vec<_>>();
        // These add to the time as they are.
        take(&all_of(&[Term::Copies]));
        take(&all_of(&[Term::Issue]));
        take(&all_of(&[busiest]));
        take(&all_of(&[Term::Launch]));
        // Waste adds what nothing hides of it. Without products, nothing hides unused bytes of sectors.
        let added = p.added;
        take(&[(Term::Sectors, added.sectors), (Term::Conflicts, added.conflicts)]);
        take(&[(Term::Rows, added.rows), (Term::Combining, added.combining)]);
        let alone = [Term::Copies, Term::Issue, busiest, Term::Launch, Term::Rows, Term::Combining, Term::Conflicts];
        let taken = |t: Term| alone.contains(&t) || t == Term::Sectors && p.has_products();
        let others = || Term::ALL.into_iter().filter(|&t| !taken(t));
        // What waits is hidden by the busiest unit alone, and what other units work by waiting too.
        take(&all_of(&others().filter(|&t| !p.overlaps(t)).collect::<Vec<_>>()));
        take(&all_of(&others().filter(|&t| p.overlaps(t)).collect::<Vec<_>>()));
        // In the rest no unit is known to work.
        if let Some((_, seconds)) = parts.iter_mut().find(|(t, _)| *t == Term::Latency) {
            *seconds += left;
        }
        let mut parts = in_tenths(p.seconds, &parts);
        parts.retain(|&(_, tenths)| tenths > 0);
        parts.sort_by_key(|&(t, tenths)| (t != busiest, std::cmp::Reverse(tenths)));
        TimeBudget { parts }
    }

    /// Microseconds of all parts.
    pub fn total(&self) -> f64 {
        micro(self.tenths())
    }

    /// The parts in microseconds: the busiest unit first, then the others by their size.
    pub fn parts(&self) -> impl Iterator<Item = (Term, f64)> {
        self.parts.iter().map(|&(t, tenths)| (t, micro(tenths)))
    }

    /// Microseconds that a term adds.
    pub fn part(&self, term: Term) -> f64 {
        self.parts().find(|(t, _)| *t == term).map_or(0.0, |(_, us)| us)
    }

    /// The term that adds most.
    pub fn largest(&self) -> Term {
        self.parts.iter().max_by_key(|(_, tenths)| *tenths).map_or(Term::Launch, |(t, _)| *t)
    }

    fn tenths(&self) -> u64 {
        self.parts.iter().map(|(_, tenths)| tenths).sum()
    }
}

fn micro(tenths: u64) -> f64 {
    tenths as f64 / 10.0
}

/// Parts of a time in whole tenths of a microsecond that add up to the time in tenths: those whose rest is largest are
/// rounded up.
fn in_tenths(seconds: f64, parts: &[(Term, f64)]) -> Vec<(Term, u64)> {
    let mut whole: Vec<(Term, u64)> = parts.iter().map(|&(t, s)| (t, (s * TENTHS).floor() as u64)).collect();
    let total = (seconds * TENTHS).round() as u64;
    let rest = |i: &usize| (parts[*i].1 * TENTHS).fract();
    let mut order: Vec<usize> = (0..parts.len()).filter(|&i| parts[i].1 > 0.0).collect();
    order.sort_by(|a, b| rest(b).total_cmp(&rest(a)));
    let missing = total.saturating_sub(whole.iter().map(|(_, n)| n).sum());
    for &i in order.iter().cycle().take(if order.is_empty() { 0 } else { missing as usize }) {
        whole[i].1 += 1;
    }
    whole
}

/// `12.4 us = 8.0 products + 2.4 latency + 2.0 launch`.
impl fmt::Display for TimeBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.tenths();
        let small = |&(i, &(_, tenths)): &(usize, &(Term, u64))| i > 0 && tenths * NAMED < all;
        let few = self.parts.iter().enumerate().filter(small).count() < 2;
        let (others, named): (Vec<_>, Vec<_>) = self.parts.iter().enumerate().partition(|part| !few && small(part));
        write!(f, "{:.1} us = ", micro(all))?;
        for (n, (_, (term, tenths))) in named.into_iter().enumerate() {
            let plus = if n > 0 { " + " } else { "" };
            write!(f, "{plus}{:.1} {}", micro(*tenths), term.name())?;
        }
        match others.iter().map(|(_, (_, tenths))| tenths).sum::<u64>() {
            0 => Ok(()),
            rest => write!(f, " + {:.1} others", micro(rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choose::model::launch::Terms;

    fn prediction(flops: f64, seconds: f64, terms: Terms) -> Prediction {
        Prediction { seconds, flops, terms, ..Prediction::example() }
    }

    /// The numbers of a printed sum in tenths: what is before the sign, and what is after it.
    fn printed(budget: &TimeBudget) -> (u64, u64) {
        let tenths = |text: &str| (text.trim().parse::<f64>().expect("a number") * 10.0).round() as u64;
        let text = budget.to_string();
        let (total, parts) = text.split_once(" us = ").expect("a sum");
        let number = |part: &str| tenths(part.split_once(' ').expect("a number and a name").0);
        (tenths(total), parts.split(" + ").map(number).sum())
    }

    #[test]
    fn what_is_printed_adds_up() {
        let mut state = 1u64;
        // Numbers from a hundredth of a microsecond to a hundred.
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let x = (state >> 40) as f64 / (1u64 << 24) as f64;
            if x < 0.2 { 0.0 } else { 1e-8 * 1e4f64.powf(x) }
        };
        for n in 0..2000 {
            let units =
                Terms { products: random(), shared: random(), l2: random(), memory: random(), ..Terms::default() };
            let waits = Terms { latency: random(), barriers: random(), ends: random(), uneven: random(), ..units };
            let terms = Terms { sectors: random(), conflicts: random(), issue: random(), launch: 1.96e-6, ..waits };
            let longest = Term::UNITS.map(|t| terms.of(t)).into_iter().fold(0.0, f64::max);
            let p = prediction(f64::from(n % 2), longest + terms.issue + terms.launch + random(), terms);
            let budget = p.budget();
            let (total, parts) = printed(&budget);
            assert_eq!(total, parts, "{budget} of {terms:?}");
            assert_eq!(total, (p.seconds * TENTHS).round() as u64, "{budget}");
            let most = |t: Term| 1e6 * terms.of(t) + 0.2;
            assert!(budget.parts().all(|(t, us)| t == Term::Latency || us <= most(t)), "{budget} of {terms:?}");
        }
    }

    /// A launch that memory bounds, in blocks that store while others load: the parts of the time are not what each
    /// takes by itself.
    #[test]
    fn what_others_hide_is_no_part() {
        let terms = Terms { memory: 55.9e-6, ends: 33.5e-6, launch: 2e-6, ..Terms::default() };
        let budget = prediction(0.0, 63.2e-6, terms).budget();
        assert_eq!(budget.to_string(), "63.2 us = 55.9 memory bandwidth + 5.3 filling and storing + 2.0 launch");
        assert_eq!(budget.largest(), Term::Memory);
    }
}
