//! Programs that compute elements from their neighbours, compared with plain loops: padded convolutions, and stencils.

use crate::problem::{Run, Tensor};
use std::collections::BTreeMap;
use tilec_ir::kernel::ConstValue;

/// Programs over images. What is outside of an image is zero.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Images {
    /// `Y`, images of `P` x `Q` pixels, of those of `X`, `H` x `W`, each channel by its own filter of `F`. Steps are `STRIDE` and `DILATION`, the padding `PAD`.
    Depthwise,
    /// The largest element of each channel in a window of `X`.
    MaxPool,
    /// `Y`, pixels in rows, a convolution of `X`, whose pixels have two or three dimensions, by the filter `F`, whose rows are places and channels.
    Pixels,
    /// `G`, the gradient of that `F`, of `X` and `E`, that of `Y`.
    WeightGradient,
    /// `G`, the gradient of that `X`, of `F` and `E`.
    DataGradient,
    /// `Y = X + rate * (the four neighbours - 4 * X)`; with `POINTS` 9, `X + rate * (4 * these + the four corners - 20 * X) / 6`.
    Stencil,
    /// `Y = X + rate * (the six neighbours - 6 * X)` in three dimensions; with `POINTS` 27, 14 times faces, 3 times edges, corners, and -128 times `X`.
    Planes,
}

impl Images {
    /// The one called `name`.
    pub fn from_name(name: &str) -> Option<Images> {
        match name {
            "depthwise" => Some(Images::Depthwise),
            "stencil3d" => Some(Images::Planes),
            "max_pool" => Some(Images::MaxPool),
            "conv2d" | "conv3d" => Some(Images::Pixels),
            "conv2d_weight_grad" => Some(Images::WeightGradient),
            "conv2d_data_grad" | "conv2d_data_grad_steps" => Some(Images::DataGradient),
            "stencil" => Some(Images::Stencil),
            _ => None,
        }
    }

    /// Puts what the program computes into `after`.
    ///
    /// # Errors
    /// A tensor or a size is missing.
    pub fn apply(
        self,
        before: &[Tensor],
        after: &mut [Tensor],
        run: &Run,
        consts: &BTreeMap<String, ConstValue>,
    ) -> Result<(), String> {
        let find = |name: &str| {
            before.iter().position(|t| t.name == name).ok_or_else(|| format!("the reference needs a tensor {name}"))
        };
        let constant = |name: &str, default: i64| match consts.get(name) {
            Some(ConstValue::Int(n)) => *n,
            _ => default,
        };
        let (stride, dilation, pad) = (constant("STRIDE", 1), constant("DILATION", 1), constant("PAD", 1));
        if matches!(self, Images::Pixels | Images::WeightGradient | Images::DataGradient) {
            return self.convolution(before, after, (run, consts));
        }
        let (x, y) = (&before[find("X")?], find("Y")?);
        if self == Images::Stencil {
            let rate = run.value("rate").unwrap_or(0.1);
            let own = |i: i64, j: i64| read(x, &[i, j]);
            for (index, at) in elements(&after[y]) {
                let (i, j) = (index[0], index[1]);
                let around = own(i - 1, j) + own(i + 1, j) + own(i, j - 1) + own(i, j + 1);
                let corners = own(i - 1, j - 1) + own(i - 1, j + 1) + own(i + 1, j - 1) + own(i + 1, j + 1);
                let change = match constant("POINTS", 5) {
                    9 => (4.0 * around + corners - 20.0 * own(i, j)) / 6.0,
                    _ => around - 4.0 * own(i, j),
                };
                after[y].data[at] = own(i, j) + rate * change;
            }
            return Ok(());
        }
        if self == Images::Planes {
            let (rate, of) = (run.value("rate").unwrap_or(0.1), constant("POINTS", 27) as usize);
            // The index is the number of dimensions along which a neighbour differs.
            let weights = if of == 27 { [-128.0, 14.0, 3.0, 1.0] } else { [-6.0, 1.0, 0.0, 0.0] };
            let steps = (0..27).map(|n: i64| [n / 9 - 1, n / 3 % 3 - 1, n % 3 - 1]);
            for (index, at) in elements(&after[y]) {
                let term = |step: [i64; 3]| {
                    let place: Vec<i64> = index.iter().zip(step).map(|(i, s)| i + s).collect();
                    weights[step.iter().filter(|&&s| s != 0).count()] * read(x, &place)
                };
                after[y].data[at] = read(x, &index) + rate * steps.clone().map(term).sum::<f64>();
            }
            return Ok(());
        }
        if self == Images::MaxPool {
            let (rows, columns, stride) = (constant("R", 3), constant("S", 3), constant("STRIDE", 2));
            for (index, at) in elements(&after[y]) {
                let places = (0..rows).flat_map(|r| (0..columns).map(move |s| (r, s)));
                let inside = places.filter_map(|(r, s)| {
                    let place = [index[0], index[1] * stride + r - pad, index[2] * stride + s - pad, index[3]];
                    place.iter().zip(&x.shape).all(|(i, n)| (0..*n).contains(i)).then(|| read(x, &place))
                });
                after[y].data[at] = inside.fold(f64::NEG_INFINITY, f64::max);
            }
            return Ok(());
        }
        let f = &before[find("F")?];
        let (h, w, r, s) = (run.integer("H")?, run.integer("W")?, f.shape[0], f.shape[1]);
        for (index, at) in elements(&after[y]) {
            let (place, channel) = ([index[0], index[1], index[2]], index[3]);
            let mut sum = 0.0;
            for (r, s) in (0..r).flat_map(|r| (0..s).map(move |s| (r, s))) {
                let (i, j) = (place[1] * stride + r * dilation - pad, place[2] * stride + s * dilation - pad);
                if !(0..h).contains(&i) || !(0..w).contains(&j) {
                    continue;
                }
                sum += read(x, &[place[0], i, j, channel]) * read(f, &[r, s, channel]);
            }
            after[y].data[at] = sum;
        }
        Ok(())
    }
}

/// A dimension of the place of a pixel.
struct Place {
    /// Extents of the input, the output and the filter.
    extents: [i64; 3],
    step: i64,
    dilation: i64,
    padding: i64,
}

impl Images {
    /// Every product of an input, a place of the filter and an output, once.
    fn convolution(
        self,
        before: &[Tensor],
        after: &mut [Tensor],
        (run, consts): (&Run, &BTreeMap<String, ConstValue>),
    ) -> Result<(), String> {
        let find = |name: &str| {
            before.iter().position(|t| t.name == name).ok_or_else(|| format!("the reference needs a tensor {name}"))
        };
        let constant = |letter: &str, of: &str| match consts.get(&format!("{letter}{of}")) {
            Some(ConstValue::Int(n)) => *n,
            _ => 1,
        };
        let all: &[[&str; 3]] = &[["D", "Z", "U"], ["H", "P", "R"], ["W", "Q", "S"]];
        let deep = run.integer("D").is_ok();
        let mut dims = Vec::new();
        for names in &all[usize::from(!deep)..] {
            let mut extents = [0; 3];
            for (extent, name) in extents.iter_mut().zip(names) {
                *extent = run.integer(name)?;
            }
            let of = names[0];
            dims.push(Place {
                extents,
                step: constant("S", of),
                dilation: constant("D", of),
                padding: constant("P", of),
            });
        }
        let [b, c, o] = ["B", "C", "O"].map(|name| run.integer(name));
        let (b, c, o) = (b?, c?, o?);
        let to = find(if self == Images::Pixels { "Y" } else { "G" })?;
        let zero = |t: &mut Tensor| elements(t).into_iter().for_each(|(_, at)| t.data[at] = 0.0);
        zero(&mut after[to]);
        let own = |which: usize| dims.iter().map(|d| d.extents[which]).collect::<Vec<i64>>();
        for output in places(&own(1)) {
            for within in places(&own(2)) {
                let input = dims.iter().zip(output.iter().zip(&within));
                let input: Vec<i64> = input.map(|(d, (&p, &r))| p * d.step + r * d.dilation - d.padding).collect();
                if input.iter().zip(&dims).any(|(i, d)| !(0..d.extents[0]).contains(i)) {
                    continue;
                }
                let (window, filter) = (flat(&output, &own(1)), flat(&within, &own(2)));
                let count: i64 = own(1).iter().product();
                for (image, (c_at, o_at)) in
                    (0..b).flat_map(|b| (0..c).flat_map(move |c| (0..o).map(move |o| (b, (c, o)))))
                {
                    let pixel = [&[image][..], &input, &[c_at]].concat();
                    let row = image * count + window;
                    let (index, value) = match self {
                        Images::Pixels => {
                            let x = read(&before[find("X")?], &pixel);
                            (vec![row, o_at], x * read(&before[find("F")?], &[filter * c + c_at, o_at]))
                        }
                        Images::WeightGradient => {
                            let x = read(&before[find("X")?], &pixel);
                            (vec![filter * c + c_at, o_at], x * read(&before[find("E")?], &[row, o_at]))
                        }
                        _ => {
                            let e = read(&before[find("E")?], &[&[image][..], &output, &[o_at]].concat());
                            // With steps of one the filter is places by channels, and the result pixels by channels.
                            let (f, g) = (&before[find("F")?], &after[to]);
                            let places = if f.shape.len() == 4 { within.clone() } else { vec![filter] };
                            let place = image * own(0).iter().product::<i64>() + flat(&input, &own(0));
                            let index = if g.shape.len() == 4 { pixel.clone() } else { vec![place, c_at] };
                            (index, e * read(f, &[&places[..], &[c_at, o_at]].concat()))
                        }
                    };
                    let at = address(&after[to], &index);
                    after[to].data[at] += value;
                }
            }
        }
        Ok(())
    }
}

/// All indices of a shape.
fn places(shape: &[i64]) -> Vec<Vec<i64>> {
    let mut all: Vec<Vec<i64>> = vec![Vec::new()];
    for &n in shape {
        all = all.into_iter().flat_map(|index| (0..n).map(move |i| [&index[..], &[i]].concat())).collect();
    }
    all
}

/// The number of an index in row-major order.
fn flat(index: &[i64], shape: &[i64]) -> i64 {
    index.iter().zip(shape).fold(0, |at, (i, n)| at * n + i)
}

/// An element; zero outside of the tensor.
fn read(t: &Tensor, index: &[i64]) -> f64 {
    let inside = index.iter().zip(&t.shape).all(|(i, n)| (0..*n).contains(i));
    if inside { t.data[address(t, index)] } else { 0.0 }
}

fn address(t: &Tensor, index: &[i64]) -> usize {
    index.iter().zip(&t.strides).map(|(i, stride)| i * stride).sum::<i64>() as usize
}

/// The indices of all elements, and where they are.
fn elements(t: &Tensor) -> Vec<(Vec<i64>, usize)> {
    places(&t.shape).into_iter().map(|index| (index.clone(), address(t, &index))).collect()
}
