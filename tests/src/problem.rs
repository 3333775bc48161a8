//! One run of a kernel: sizes, strides, scalars, and integer data from a seed.
//!
//! Data are integers of small magnitude, so that sums are exact in any order and two correct programs agree bit for bit
//! (how far that goes: `reference::Gemm::check_exact`). Memory between the rows of a tensor is filled with a number
//! that no data has and compared too: a kernel must not touch it.

use std::collections::BTreeMap;

/// What fills the gaps between rows.
pub const GAP: f64 = 77.0;

/// Integers and seeds; SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `0..n`; `n` is at least 1.
    pub fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    /// A number from `low..=high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below(high.abs_diff(low) + 1) as i64
    }

    /// One of `items`, which is not empty.
    pub fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }
}

/// The `NAME=VALUE` words of a `run` line.
#[derive(Clone, Debug)]
pub struct Run {
    /// Sizes, strides and scalars.
    pub values: BTreeMap<String, f64>,
    /// Seed of the data.
    pub seed: u64,
    /// Data are integers of at most this magnitude.
    pub range: i64,
    /// How far results may differ, relative to themselves and to 1: 0 unless the program computes exponentials and the like.
    pub tolerance: f64,
    /// Which multiple of their alignment tensors are at in memory; one that follows from the seed if absent.
    pub at: Option<usize>,
}

impl Run {
    /// Reads `M=17 N=5 alpha=2 seed=3 range=4`.
    ///
    /// # Errors
    /// A word is not a name and a number.
    pub fn parse(line: &str) -> Result<Run, String> {
        let mut run = Run { values: BTreeMap::new(), seed: 1, range: 4, tolerance: 0.0, at: None };
        for word in line.split_whitespace() {
            let number = word.split_once('=').and_then(|(name, v)| Some((name, v.parse::<f64>().ok()?)));
            match number {
                Some(("seed", v)) => run.seed = v as u64,
                Some(("range", v)) => run.range = v as i64,
                Some(("tolerance", v)) => run.tolerance = v,
                Some(("at", v)) => run.at = Some(v as usize),
                Some((name, v)) => {
                    run.values.insert(name.to_owned(), v);
                }
                None => return Err(format!("`{word}` is not NAME=NUMBER")),
            }
        }
        Ok(run)
    }

    /// The value of a size, stride or scalar.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }

    /// An integer value.
    ///
    /// # Errors
    /// There is none, or it is not an integer.
    pub fn integer(&self, name: &str) -> Result<i64, String> {
        match self.value(name) {
            Some(v) if v.fract() == 0.0 => Ok(v as i64),
            Some(v) => Err(format!("`{name}` is {v}, not an integer")),
            None => Err(format!("the run gives no `{name}`")),
        }
    }
}

/// A tensor in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Its parameter.
    pub name: String,
    /// Extents, of all modes.
    pub shape: Vec<i64>,
    /// Strides in elements.
    pub strides: Vec<i64>,
    /// How many modes each dimension has.
    pub modes: Vec<usize>,
    /// Everything from the first element to the last, gaps included.
    pub data: Vec<f64>,
}

impl Tensor {
    /// A tensor full of [`GAP`].
    ///
    /// # Errors
    /// It would be absurdly large.
    pub fn new(name: &str, shape: &[i64], strides: &[i64]) -> Result<Tensor, String> {
        if strides.iter().any(|&s| s < 0) {
            return Err(format!("`{name}` has strides {strides:?}"));
        }
        let last: i64 = shape.iter().zip(strides).map(|(n, s)| (n - 1) * s).sum();
        let len = usize::try_from(last + 1).ok().filter(|&n| n < 1 << 26);
        let len = len.ok_or_else(|| format!("`{name}` has {} elements", last + 1))?;
        let (modes, data) = (vec![1; shape.len()], vec![GAP; len]);
        Ok(Tensor { name: name.to_owned(), shape: shape.to_vec(), strides: strides.to_vec(), modes, data })
    }

    /// The number of elements along a dimension.
    pub fn extent(&self, dim: usize) -> i64 {
        let first: usize = self.modes[..dim].iter().sum();
        self.shape[first..first + self.modes[dim]].iter().product()
    }

    /// The offset of an index along a dimension.
    pub fn offset(&self, dim: usize, index: i64) -> i64 {
        let first: usize = self.modes[..dim].iter().sum();
        let (mut left, mut offset) = (index, 0);
        for i in (first..first + self.modes[dim]).rev() {
            offset += left % self.shape[i] * self.strides[i];
            left /= self.shape[i];
        }
        offset
    }

    /// The offsets of all indices along a dimension.
    pub fn offsets(&self, dim: usize) -> Vec<i64> {
        (0..self.extent(dim)).map(|index| self.offset(dim, index)).collect()
    }

    /// The addresses of all elements, in row-major order of their coordinates.
    pub fn addresses(&self) -> impl Iterator<Item = usize> + use<'_> {
        let count: i64 = self.shape.iter().product();
        (0..count).map(|mut i| {
            let mut address = 0;
            for (n, s) in self.shape.iter().zip(&self.strides).rev() {
                address += i % n * s;
                i /= n;
            }
            address as usize
        })
    }

    /// The address of element `(i, j)` of a matrix.
    pub fn at(&self, i: i64, j: i64) -> usize {
        (self.offset(0, i) + self.offset(1, j)) as usize
    }

    /// The elements of a tensor of one dimension.
    pub fn vector(&self) -> Vec<f64> {
        (0..self.extent(0)).map(|i| self.data[self.offset(0, i) as usize]).collect()
    }

    /// Fills the elements with integers of at most this magnitude.
    pub fn randomize(&mut self, random: &mut Random, range: i64) {
        let addresses: Vec<usize> = self.addresses().collect();
        for a in addresses {
            self.data[a] = random.between(-range, range) as f64;
        }
    }

    /// Fills the elements with NaN, so that any read of them shows in the result.
    pub fn poison(&mut self) {
        let addresses: Vec<usize> = self.addresses().collect();
        for a in addresses {
            self.data[a] = f64::NAN;
        }
    }
}

/// Compares two memories, gaps included. NaN equals NaN.
///
/// # Errors
/// The first difference and how many there are.
pub fn same(expected: &[Tensor], actual: &[Tensor]) -> Result<(), String> {
    same_within(0.0, expected, actual)
}

/// Compares two memories, gaps included, allowing differences of `tolerance` relative to the larger of 1 and what is
/// expected. NaN equals NaN.
///
/// # Errors
/// The first difference and how many there are.
pub fn same_within(tolerance: f64, expected: &[Tensor], actual: &[Tensor]) -> Result<(), String> {
    let near = |e: f64, a: f64| e == a || (e.is_nan() && a.is_nan()) || (e - a).abs() <= tolerance * e.abs().max(1.0);
    for (e, a) in expected.iter().zip(actual) {
        let equal = |i: usize| near(e.data[i], a.data[i]);
        let bad: Vec<usize> = (0..e.data.len()).filter(|&i| !equal(i)).collect();
        let Some(&first) = bad.first() else { continue };
        let count: i64 = e.shape.iter().product();
        let place = e.addresses().position(|a| a == first).map_or("a gap between rows".to_owned(), |mut i| {
            let mut at: Vec<String> = Vec::new();
            for &n in e.shape.iter().rev() {
                at.push((i % n as usize).to_string());
                i /= n as usize;
            }
            at.reverse();
            format!("element ({})", at.join(", "))
        });
        let (want, got) = (e.data[first], a.data[first]);
        let n = bad.len();
        return Err(format!("`{}`: {place} is {got}, expected {want}; {n} of {count} elements differ", e.name));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_compared_too() {
        let mut a = Tensor::new("A", &[3, 2], &[5, 1]).unwrap();
        a.randomize(&mut Random(1), 4);
        assert_eq!(a.data.len(), 12);
        assert_eq!(a.data.iter().filter(|&&x| x == GAP).count(), 6);
        let mut b = a.clone();
        same(&[a.clone()], &[b.clone()]).unwrap();
        b.data[3] = 0.0;
        assert!(same(&[a.clone()], &[b]).unwrap_err().contains("gap"));
        let mut b = a.clone();
        b.data[6] += 1.0;
        assert!(same(&[a], &[b]).unwrap_err().contains("element (1, 1)"));
    }

    #[test]
    fn strides_that_count_down_are_refused() {
        assert!(Tensor::new("A", &[3, 2], &[-8, 1]).is_err());
    }

    #[test]
    fn run_lines_are_read() {
        let run = Run::parse("M=17 alpha=-2.5 seed=3").unwrap();
        assert_eq!((run.integer("M"), run.value("alpha"), run.seed), (Ok(17), Some(-2.5), 3));
        assert!(Run::parse("M").is_err() && Run::parse("M=x").is_err() && run.integer("N").is_err());
    }
}
