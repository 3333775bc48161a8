//! Programs of an inference engine whose sizes are data in tensors, compared with plain loops.

use crate::attention::{self, Form, integer};
use crate::problem::{Random, Run, Tensor};
use std::collections::BTreeMap;
use tilec_ir::kernel::ConstValue;

/// Programs whose tensors say how much there is to do.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Inference {
    /// `Y[r, ..] = X[r, ..] * W[e]` for the rows from `offsets[e]` to in front of `offsets[e + 1]`.
    Grouped,
    /// `Y[e, r, ..] = X[e, r, ..] * W[e]` for `r < counts[e]`; other rows of `Y` stay.
    Masked,
    /// Attention of the rows from `cu_seqlens[z]` to in front of `cu_seqlens[z + 1]` to themselves, of each head.
    Varlen,
    /// Attention of one query of each sequence to `lengths[z]` keys on the pages that `page_table[z, ..]` names.
    Paged,
    /// The same for keys whose first elements are the values.
    Latent,
}

/// Numbers that programs take for granted, in tensors that tell sizes: places that ascend from 0 to the end, counts of what there is room for, and pages that there are. A third of the
/// parts are empty.
pub(crate) fn settle(tensors: &mut [Tensor], random: &mut Random) {
    let extent =
        |name: &str, dim: usize| tensors.iter().find(|t| t.name == name && t.modes.len() > dim).map(|t| t.extent(dim));
    let rows = extent("X", 0).or_else(|| extent("Q", 0)).unwrap_or(0);
    let room = extent("X", 1).unwrap_or(0);
    let (pages, keys) =
        (extent("K", 0).unwrap_or(1), extent("K", 1).unwrap_or(0) * extent("page_table", 1).unwrap_or(0));
    let count = |random: &mut Random, most: i64| if random.below(3) == 0 { 0 } else { random.between(1, most.max(1)) };
    for tensor in tensors.iter_mut() {
        let places: Vec<usize> = tensor.addresses().collect();
        let mut numbers: Vec<i64> = match tensor.name.as_str() {
            "offsets" | "cu_seqlens" => places.iter().map(|_| count(random, rows)).collect(),
            "counts" => places.iter().map(|_| count(random, room)).collect(),
            "lengths" => places.iter().map(|_| count(random, keys)).collect(),
            "page_table" => places.iter().map(|_| random.between(0, pages - 1)).collect(),
            _ => continue,
        };
        if matches!(tensor.name.as_str(), "offsets" | "cu_seqlens") {
            numbers.sort_unstable();
            numbers[0] = 0;
            *numbers.last_mut().expect("a tensor has elements") = rows;
        }
        if tensor.name == "cu_seqlens" && rows > 1 {
            // The last row is of no sequence.
            numbers.iter_mut().for_each(|n| *n = (*n).min(rows - 1));
        }
        places.into_iter().zip(numbers).for_each(|(at, x)| tensor.data[at] = x as f64);
    }
    // Values outside all sequences are NaN, so that no result may depend on them.
    if tensors.iter().any(|t| t.name == "cu_seqlens")
        && let Some(v) = tensors.iter_mut().find(|t| t.name == "V" && rows > 1)
    {
        let places: Vec<usize> = v.addresses().collect();
        let row = places.len() / v.extent(0).max(1) as usize;
        places.into_iter().rev().take(row).for_each(|at| v.data[at] = f64::NAN);
    }
}

impl Inference {
    /// The one called `name`.
    pub fn from_name(name: &str) -> Option<Inference> {
        match name {
            "moe_grouped" => Some(Inference::Grouped),
            "moe_masked" => Some(Inference::Masked),
            "attention_varlen" => Some(Inference::Varlen),
            "paged_decode" => Some(Inference::Paged),
            "mla_decode" => Some(Inference::Latent),
            _ => None,
        }
    }

    /// Puts what the program computes into `after`.
    ///
    /// # Errors
    /// A tensor is missing.
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
        let group = integer(consts, "G").max(1) as i64;
        match self {
            Inference::Grouped | Inference::Masked => {
                let (x, w, y) = (&before[find("X")?], &before[find("W")?], find("Y")?);
                let sizes = &before[find(if self == Inference::Grouped { "offsets" } else { "counts" })?];
                let numbers: Vec<i64> = sizes.addresses().map(|at| sizes.data[at] as i64).collect();
                for e in 0..w.extent(0) {
                    let part = match self {
                        Inference::Grouped => {
                            (numbers[e as usize]..numbers[e as usize + 1]).map(|r| vec![r]).collect::<Vec<_>>()
                        }
                        _ => (0..numbers[e as usize]).map(|r| vec![e, r]).collect(),
                    };
                    for at in part {
                        for n in 0..w.extent(2) {
                            let sum = (0..w.extent(1))
                                .map(|k| element(x, &[&at[..], &[k]].concat()) * element(w, &[e, k, n]))
                                .sum();
                            let place = place(&after[y], &[&at[..], &[n]].concat());
                            after[y].data[place] = sum;
                        }
                    }
                }
            }
            Inference::Varlen => {
                let [q, k, v] = [find("Q")?, find("K")?, find("V")?].map(|i| &before[i]);
                let (starts, o) = (&before[find("cu_seqlens")?], find("O")?);
                let starts: Vec<i64> = starts.addresses().map(|at| starts.data[at] as i64).collect();
                let form = Form::of(run, consts, q.extent(2) as usize);
                for ends in starts.windows(2) {
                    for h in 0..q.extent(1) {
                        let rows = |t: &Tensor, h: i64| {
                            (ends[0]..ends[1]).flat_map(|r| vector(t, &[r, h])).collect::<Vec<f64>>()
                        };
                        let (out, _) = attention::head(&rows(q, h), &rows(k, h / group), &rows(v, h / group), form);
                        for (r, values) in (ends[0]..).zip(out.chunks(v.extent(2) as usize)) {
                            store(&mut after[o], &[r, h], values);
                        }
                    }
                }
            }
            Inference::Paged | Inference::Latent => {
                let (q, k, o) = (&before[find("Q")?], &before[find("K")?], find("O")?);
                let (table, lengths) = (&before[find("page_table")?], &before[find("lengths")?]);
                let v = if self == Inference::Paged { &before[find("V")?] } else { k };
                let width = after[o].extent(2) as usize;
                let form = Form::of(run, consts, q.extent(2) as usize);
                for z in 0..q.extent(0) {
                    for h in 0..q.extent(1) {
                        let keys = |t: &Tensor| {
                            let key = |i: i64| {
                                let (page, at) = (element(table, &[z, i / k.extent(1)]) as i64, i % k.extent(1));
                                if self == Inference::Paged {
                                    vector(t, &[page, at, h / group])
                                } else {
                                    vector(t, &[page, at])
                                }
                            };
                            (0..element(lengths, &[z]) as i64).map(key).collect::<Vec<_>>()
                        };
                        let values: Vec<f64> = keys(v).iter().flat_map(|v| v[..width].to_vec()).collect();
                        let (out, _) = attention::head(&vector(q, &[z, h]), &keys(k).concat(), &values, form);
                        // Without keys the result is zero.
                        let nothing = vec![0.0; width];
                        store(&mut after[o], &[z, h], if values.is_empty() { &nothing } else { &out });
                    }
                }
            }
        }
        Ok(())
    }
}

/// The address of an element.
fn place(t: &Tensor, at: &[i64]) -> usize {
    at.iter().enumerate().map(|(dim, &i)| t.offsets(dim)[i as usize]).sum::<i64>() as usize
}

fn element(t: &Tensor, at: &[i64]) -> f64 {
    t.data[place(t, at)]
}

/// The elements along the last dimension.
fn vector(t: &Tensor, at: &[i64]) -> Vec<f64> {
    let first = place(t, at);
    t.offsets(at.len()).into_iter().map(|offset| t.data[first + offset as usize]).collect()
}

fn store(t: &mut Tensor, at: &[i64], values: &[f64]) {
    let (first, offsets) = (place(t, at), t.offsets(at.len()));
    offsets.into_iter().zip(values).for_each(|(offset, &x)| t.data[first + offset as usize] = x);
}
