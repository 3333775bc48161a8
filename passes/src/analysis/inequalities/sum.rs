//! Sums of products of atoms, and contradictions among inequalities between them.

use std::collections::{BTreeMap, BTreeSet};

/// Most inequalities in one elimination step; beyond that nothing is proved.
const MOST: usize = 200;

/// The atoms of a product, sorted; empty: the constant term.
pub(super) type Product = Vec<usize>;

/// Cases of which one holds, each a list of inequalities `.. >= 0`.
pub(super) type Cases = Vec<Vec<Sum>>;

/// An integer plus multiples of products of atoms.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Sum {
    pub(super) terms: BTreeMap<Product, i128>,
    pub(super) number: i128,
}

impl Sum {
    pub(super) fn number(number: i128) -> Sum {
        Sum { terms: BTreeMap::new(), number }
    }

    pub(super) fn atom(atom: usize) -> Sum {
        Sum { terms: BTreeMap::from([(vec![atom], 1)]), number: 0 }
    }

    /// This sum plus `by` times the other; `None`: overflow.
    pub(super) fn plus(&self, other: &Sum, by: i128) -> Option<Sum> {
        let mut sum = self.clone();
        sum.number = sum.number.checked_add(other.number.checked_mul(by)?)?;
        for (product, times) in &other.terms {
            let own = sum.terms.entry(product.clone()).or_default();
            *own = own.checked_add(times.checked_mul(by)?)?;
        }
        sum.terms.retain(|_, times| *times != 0);
        Some(sum)
    }

    pub(super) fn less_one(&self) -> Option<Sum> {
        self.plus(&Sum::number(1), -1)
    }

    pub(super) fn times(&self, other: &Sum) -> Option<Sum> {
        let number = Sum::number(other.number);
        let mut sum = Sum::number(self.number.checked_mul(other.number)?);
        for (product, times) in &self.terms {
            let own = Sum { terms: BTreeMap::from([(product.clone(), *times)]), number: 0 };
            if number.number != 0 {
                sum = sum.plus(&own, number.number)?;
            }
            for (by, more) in &other.terms {
                let mut both: Product = product.iter().chain(by).copied().collect();
                both.sort_unstable();
                let both = Sum { terms: BTreeMap::from([(both, 1)]), number: 0 };
                sum = sum.plus(&both, times.checked_mul(*more)?)?;
            }
        }
        for (by, more) in &other.terms {
            let own = Sum { terms: BTreeMap::from([(by.clone(), *more)]), number: 0 };
            sum = if self.number == 0 { sum } else { sum.plus(&own, self.number)? };
        }
        Some(sum)
    }

    pub(super) fn atoms(&self) -> impl Iterator<Item = usize> {
        self.terms.keys().flatten().copied()
    }

    /// The same inequality `.. >= 0` with the smallest integers.
    fn reduced(mut self) -> Sum {
        let common = self.terms.values().fold(0, |all: u128, x| gcd(all, x.unsigned_abs()));
        if let Ok(common) = i128::try_from(common)
            && common > 1
        {
            self.terms.values_mut().for_each(|x| *x /= common);
            self.number = self.number.div_euclid(common);
        }
        self
    }
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Whether no numbers satisfy all of these inequalities `.. >= 0`: Fourier-Motzkin elimination of products ends in a
/// false one.
pub(super) fn contradict(inequalities: &[Sum]) -> bool {
    let mut all: BTreeSet<Sum> = inequalities.iter().cloned().map(Sum::reduced).collect();
    loop {
        if all.iter().any(|sum| sum.terms.is_empty() && sum.number < 0) {
            return true;
        }
        all.retain(|sum| !sum.terms.is_empty());
        let products: BTreeSet<&Product> = all.iter().flat_map(|sum| sum.terms.keys()).collect();
        let pairs = |product: &Product| {
            let signs = |by: i128| all.iter().filter(|sum| sum.terms.get(product).is_some_and(|x| x * by > 0)).count();
            signs(1) * signs(-1)
        };
        let Some(product) = products.into_iter().min_by_key(|product| pairs(product)).cloned() else { return false };
        if pairs(&product) + all.len() > MOST {
            return false;
        }
        let (with, mut without): (Vec<Sum>, BTreeSet<Sum>) = {
            let (with, without): (Vec<Sum>, Vec<Sum>) =
                all.into_iter().partition(|sum| sum.terms.contains_key(&product));
            (with, without.into_iter().collect())
        };
        for a in with.iter().filter(|sum| sum.terms[&product] > 0) {
            for b in with.iter().filter(|sum| sum.terms[&product] < 0) {
                let (up, down) = (a.terms[&product], -b.terms[&product]);
                let scaled = Sum::default().plus(a, down).and_then(|sum| sum.plus(b, up));
                without.extend(scaled.map(Sum::reduced));
            }
        }
        all = without;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(number: i128, terms: &[(usize, i128)]) -> Sum {
        Sum { terms: terms.iter().map(|&(atom, times)| (vec![atom], times)).collect(), number }
    }

    #[test]
    fn inequalities_that_no_numbers_meet_contradict_one_another() {
        // x <= y, y <= z - 1, z <= x.
        let circle = [sum(0, &[(0, -1), (1, 1)]), sum(-1, &[(1, -1), (2, 1)]), sum(0, &[(2, -1), (0, 1)])];
        assert!(contradict(&circle) && !contradict(&circle[..2]));
        // 2 x >= 1 and 2 x <= 1 have no integer solution.
        assert!(contradict(&[sum(-1, &[(0, 2)]), sum(1, &[(0, -2)])]));
        assert!(!contradict(&[sum(-2, &[(0, 2)]), sum(2, &[(0, -2)])]));
    }

    #[test]
    fn products_of_sums_are_sums_of_products() {
        let (a, b) = (sum(2, &[(0, 3)]), sum(-1, &[(1, 1)]));
        let product = a.times(&b).expect("small numbers");
        let terms = BTreeMap::from([(vec![0], -3), (vec![1], 2), (vec![0, 1], 3)]);
        assert_eq!(product, Sum { terms, number: -2 });
    }
}
