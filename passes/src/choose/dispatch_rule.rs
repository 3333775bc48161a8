//! The rule which of several variants of a kernel to launch, by its sizes.
//!
//! The model predicts the variants at sizes of all magnitudes around those for which they were chosen. The rule is a
//! decision tree over single sizes, and over the product of the sizes that determine the grid. It has the least total
//! loss against the fastest variant at each size. Written from the larger sizes down, a tree is a list of which the
//! first matching entry is taken. Its last entry has no condition, so every size is covered.

use super::predictor::Predictor;
use crate::analysis::uses::mentions;
use tilec_ir::kernel::Kernel;

/// A condition: the product of these sizes is at least `value`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AtLeast {
    /// Names of sizes.
    pub sizes: Vec<String>,
    /// The least value of their product.
    pub value: i64,
}

/// An entry of the rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Branch {
    /// All of these must hold.
    pub when: Vec<AtLeast>,
    /// Then this variant is launched, by its index.
    pub variant: usize,
}

/// Values of each size to try, in addition to those given.
const STEPS: usize = 5;
/// Most sizes that the rule looks at.
const MOST_SIZES: usize = 4;
/// The weight of a given size relative to others.
const GIVEN: f64 = 200.0;
/// Most comparisons for an entry.
const DEEPEST: usize = 4;
/// The gain that a comparison must have, as a share of the time at one size that was not given.
const WORTH: f64 = 0.25;

/// A problem: its features, its weight, and each variant's loss against the fastest there.
struct Point {
    features: Vec<i64>,
    weight: f64,
    loss: Vec<f64>,
}

/// A rule for variants of `kernel`, each with the sizes that it is for. Variants that are never the best are left out.
pub fn rule(kernel: &Kernel, variants: &[Predictor<'_>], given: &[Vec<(String, i64)>]) -> Vec<Branch> {
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in given.iter().flatten() {
        if !names.contains(&name) && names.len() < MOST_SIZES {
            names.push(name);
        }
    }
    let in_grid = |name: &str| {
        let size = kernel.sizes.iter().copied().find(|&v| kernel.values[v].name == name);
        size.is_some_and(|v| kernel.grid.iter().any(|axis| mentions(kernel, axis.extent, v)))
    };
    let mut features: Vec<Vec<String>> = names.iter().map(|name| vec![(*name).clone()]).collect();
    let grown: Vec<String> = names.iter().filter(|name| in_grid(name)).map(|name| (*name).clone()).collect();
    if grown.len() > 1 {
        features.insert(0, grown);
    }
    let value = |sizes: &[(String, i64)], feature: &[String]| -> i64 {
        let one = |name: &String| sizes.iter().find(|(n, _)| n == name).map_or(1, |(_, x)| *x);
        feature.iter().fold(1, |all: i64, name| all.saturating_mul(one(name)))
    };
    let mut points: Vec<Point> = Vec::new();
    let mut add = |sizes: &[(String, i64)], weight: f64| {
        let Some(times) = variants.iter().map(|v| v.seconds(sizes)).collect::<Option<Vec<f64>>>() else { return };
        let fastest = times.iter().copied().fold(f64::INFINITY, f64::min);
        let loss = times.iter().map(|t| t / fastest - 1.0).collect();
        points.push(Point { features: features.iter().map(|f| value(sizes, f)).collect(), weight, loss });
    };
    for sizes in given {
        add(sizes, GIVEN);
    }
    for sizes in around(&names, given) {
        add(&sizes, 1.0);
    }
    let all: Vec<usize> = (0..points.len()).collect();
    let mut branches = Vec::new();
    grow(
        &Tree { points: &points, features: &features, variants: variants.len() },
        &all,
        &mut Vec::new(),
        &mut branches,
    );
    shortened(branches)
}

/// Sizes of all magnitudes from a quarter of the smallest given size to four times the largest, in all combinations.
fn around(names: &[&String], given: &[Vec<(String, i64)>]) -> Vec<Vec<(String, i64)>> {
    let mut all: Vec<Vec<(String, i64)>> = vec![Vec::new()];
    for &name in names {
        let values = given.iter().flatten().filter(|(n, _)| n == name).map(|(_, x)| (*x).max(1));
        let (least, most) = values.fold((i64::MAX, 1), |(a, b), x| (a.min(x), b.max(x)));
        let (low, high) = ((least as f64 / 4.0).max(1.0), (most as f64 * 4.0).min(f64::from(1 << 30)));
        let step = (high / low).powf(1.0 / (STEPS - 1) as f64);
        let values: Vec<i64> = (0..STEPS).map(|i| (low * step.powi(i as i32)).round() as i64).collect();
        let extended = |sizes: &Vec<(String, i64)>, x: i64| {
            let mut sizes = sizes.clone();
            sizes.push((name.clone(), x));
            sizes
        };
        all = all.iter().flat_map(|sizes| values.iter().map(|&x| extended(sizes, x))).collect();
    }
    all
}

/// The input of the tree construction.
struct Tree<'a> {
    points: &'a [Point],
    features: &'a [Vec<String>],
    variants: usize,
}

impl Tree<'_> {
    /// The variant with the least loss at these points, and the loss.
    fn best(&self, points: &[usize]) -> (usize, f64) {
        let lost = |v: usize| points.iter().map(|&p| self.points[p].weight * self.points[p].loss[v]).sum::<f64>();
        let all = (0..self.variants).map(|v| (v, lost(v)));
        all.reduce(|a, b| if b.1 < a.1 { b } else { a }).unwrap_or((0, 0.0))
    }

    /// The comparison with the least loss on both sides: feature, value, loss.
    fn split(&self, points: &[usize]) -> Option<(usize, i64, f64)> {
        let mut best: Option<(usize, i64, f64)> = None;
        for feature in 0..self.features.len() {
            let mut values: Vec<i64> = points.iter().map(|&p| self.points[p].features[feature]).collect();
            values.sort_unstable();
            values.dedup();
            for pair in values.windows(2) {
                let value = round(pair[0], pair[1]);
                let (above, below): (Vec<usize>, Vec<usize>) =
                    points.iter().partition(|&&p| self.points[p].features[feature] >= value);
                let loss = self.best(&above).1 + self.best(&below).1;
                if best.is_none_or(|b| loss < b.2) {
                    best = Some((feature, value, loss));
                }
            }
        }
        best
    }
}

/// The roundest number above `below` and at most `above`: the one with the most trailing zero bits.
fn round(below: i64, above: i64) -> i64 {
    let cleared = |bits: u32| above >> bits << bits;
    (0..63).map(cleared).take_while(|&x| x > below).last().unwrap_or(above)
}

/// Removes entries that a weaker entry for the same variant follows.
fn shortened(branches: Vec<Branch>) -> Vec<Branch> {
    let mut kept: Vec<Branch> = Vec::new();
    for branch in branches.into_iter().rev() {
        let implied = |weak: &AtLeast| branch.when.iter().any(|w| w.sizes == weak.sizes && w.value >= weak.value);
        let idle = |next: &Branch| next.variant == branch.variant && next.when.iter().all(implied);
        if !kept.last().is_some_and(idle) {
            kept.push(branch);
        }
    }
    kept.reverse();
    kept
}

/// Appends the entries for `points`, all of which meet `when` and none of the entries before.
fn grow(tree: &Tree<'_>, points: &[usize], when: &mut Vec<AtLeast>, branches: &mut Vec<Branch>) {
    let (variant, loss) = tree.best(points);
    let split = tree.split(points).filter(|s| when.len() < DEEPEST && loss - s.2 > WORTH);
    let Some((feature, value, _)) = split else {
        branches.push(Branch { when: when.clone(), variant });
        return;
    };
    let (above, below): (Vec<usize>, Vec<usize>) =
        points.iter().partition(|&&p| tree.points[p].features[feature] >= value);
    when.push(AtLeast { sizes: tree.features[feature].clone(), value });
    grow(tree, &above, when, branches);
    when.pop();
    grow(tree, &below, when, branches);
}
