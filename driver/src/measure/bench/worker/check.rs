//! Checks what programs compute, on whole numbers and on normal data, before they are measured.

use super::super::blas::{self, Call};
use super::super::inputs::{Contents, Table};
use super::super::product::{AccElem, Product};
use super::super::protocol::Check;
use super::super::reference::{self, Sum};
use super::entry::{Entry, Group};
use crate::cuda::{CudaError, Device, Matmul, Stream};
use crate::run::bind::TensorPlan;
use crate::run::check::accuracy;
use crate::run::data::{GUARD_BYTES, POISON};
use tilec_ir::types::Elem;

/// Results up to this many bytes are compared entirely with those of cuBLAS.
const COMPARED_BYTES: usize = 512 << 20;

/// A job whose results are checked.
pub(super) struct Checker<'a> {
    pub(super) device: &'a Device,
    /// Compute capability of the device.
    pub(super) cc: u32,
    pub(super) seed: u64,
    pub(super) entries: &'a [Entry<'a>],
    pub(super) calls: &'a [Call],
    /// The cuBLAS plans of the calls.
    pub(super) plans: &'a [Result<Matmul<'a>, String>],
    pub(super) stream: &'a Stream,
}

/// Contents of the tensors of a group.
struct Data<'p> {
    host: Vec<(TensorPlan, Vec<u8>)>,
    /// Whether the inputs are integers small enough for exact sums.
    whole: bool,
    /// The results of cuBLAS for each kind of product in the group.
    theirs: Vec<(usize, Vec<u8>)>,
    /// Samples of what products of these operands are; programs that compute the same product share them.
    sums: Vec<(Scaled<'p>, Vec<Sum>)>,
}

/// A product, alpha and beta.
type Scaled<'p> = (&'p Product, f64, f64);

impl<'a> Checker<'a> {
    /// Fills all sets of a group with normal data and checks its programs on integers and on that data. `first` is
    /// called before a program's first run.
    pub(super) fn group(
        &self,
        group: &mut Group,
        checks: &mut [Check],
        first: &mut dyn FnMut(usize),
    ) -> Result<(), CudaError> {
        let (depth, exact_below) = self.exactness(group);
        for contents in [Contents::whole(depth, exact_below), Contents::Normal] {
            let whole = contents != Contents::Normal;
            let tables: Vec<Table> = group.tensors.iter().map(|t| Table::new(t.elem, contents)).collect();
            let fill = |i: usize, set: usize| {
                let t = &group.tensors[i];
                let count = usize::try_from(t.span).unwrap_or(0);
                let seed = self.seed.wrapping_add(set as u64 * 1_000_003);
                let mut bytes = tables[i].elements(count, GUARD_BYTES, seed, &t.name);
                let end = bytes.len() - GUARD_BYTES;
                bytes[end..].fill(POISON);
                bytes
            };
            let host: Vec<(TensorPlan, Vec<u8>)> =
                group.tensors.iter().enumerate().map(|(i, t)| (t.clone(), fill(i, 0))).collect();
            for (i, (_, bytes)) in host.iter().enumerate() {
                group.placed[i].upload(0, bytes)?;
            }
            let mut data = Data { host, whole, theirs: Vec::new(), sums: Vec::new() };
            for &member in &group.members {
                self.member(group, member, &mut data, &mut checks[member], first)?;
            }
            if !whole {
                for i in 0..group.tensors.len() {
                    for set in 0..group.sets.count as usize {
                        group.placed[i].upload(set, &fill(i, set))?;
                    }
                }
            }
        }
        for &member in &group.members {
            let product = self.entries[member].program.product.as_ref();
            if product.is_none_or(|p| p.epilogue.is_none() || p.extents(&group.tensors).is_none()) {
                checks[member].skipped = Some("not a plain matrix product".to_owned());
                // If it hangs or faults, it does so by itself.
                first(self.entries[member].place);
                self.entries[member]
                    .kernels
                    .launch_bound(self.stream, &self.entries[member].bound, |name| group.address(name, 0))?;
                self.device.synchronize()?;
            }
        }
        Ok(())
    }

    /// The depth of the products of a group, and below what sums of whole numbers are exact.
    fn exactness(&self, group: &Group) -> (u64, f64) {
        let depth =
            group.members.iter().filter_map(|&i| self.entries[i].program.product.as_ref()?.extents(&group.tensors));
        let depth = depth.map(|e| e.k).max().unwrap_or(1);
        let narrow = group.members.iter().any(|&i| self.entries[i].half_sums());
        let eight_bits = group.tensors.iter().any(|t| matches!(t.elem, Elem::E4M3 | Elem::E5M2));
        let exact_below = match (narrow, eight_bits) {
            (true, _) => 2f64.powi(11),
            // Hopper keeps 13 fraction bits in sums of 8-bit products.
            (_, true) => 2f64.powi(13),
            _ => 2f64.powi(24),
        };
        (depth, exact_below)
    }

    /// Checks a program on this data.
    fn member(
        &self,
        group: &Group,
        member: usize,
        data: &mut Data<'a>,
        check: &mut Check,
        first: &mut dyn FnMut(usize),
    ) -> Result<(), CudaError> {
        let entry: &'a Entry<'a> = &self.entries[member];
        let Some(product) = &entry.program.product else { return Ok(()) };
        let Some(out) = group.tensors.iter().position(|t| t.name == product.c.tensor) else { return Ok(()) };
        let (Some(extents), Some((alpha, beta))) = (product.extents(&group.tensors), &product.epilogue) else {
            return Ok(());
        };
        let alpha = alpha.value(&entry.bound.values);
        let beta = beta.as_ref().map_or(0.0, |b| b.value(&entry.bound.values));
        let before: Vec<u8> = if beta == 0.0 { vec![POISON; data.host[out].1.len()] } else { data.host[out].1.clone() };
        let launch = |run: &dyn Fn() -> Result<(), CudaError>| -> Result<Vec<u8>, CudaError> {
            let mut after = vec![0; before.len()];
            group.placed[out].upload(0, &before)?;
            run()?;
            self.device.synchronize()?;
            group.placed[out].download(0, &mut after)?;
            Ok(after)
        };
        first(entry.place);
        let after = launch(&|| entry.kernels.launch_bound(self.stream, &entry.bound, |name| group.address(name, 0)))?;
        let f16 = product.acc == AccElem::F16;
        let reference = reference::Reference {
            product,
            extents,
            alpha,
            beta,
            tensors: &data.host,
            accuracy: accuracy(&entry.program.atom, f16, self.cc, entry.program.promoted),
        };
        let exact = data.whole && alpha.fract() == 0.0 && beta.fract() == 0.0;
        let scaled = (product, alpha, beta);
        if !data.sums.iter().any(|(of, _)| *of == scaled) {
            data.sums.extend(reference.sums().map(|sums| (scaled, sums)));
        }
        let sums = data.sums.iter().find(|(of, _)| *of == scaled);
        if sums.and_then(|(_, sums)| reference.compare(sums, &after, exact, check)).is_none() {
            check.skipped = Some("a tensor of the product is missing".to_owned());
        }
        let elements = after.len() - GUARD_BYTES;
        if after[elements..] != before[elements..] {
            check.wrong += 1;
            check.shown.push(format!("bytes after the end of `{}` were written", product.c.tensor));
        }
        if !exact || after.len() > COMPARED_BYTES {
            return Ok(());
        }
        let Some(call) = entry.call.as_ref().and_then(|call| self.calls.iter().position(|c| c == call)) else {
            return Ok(());
        };
        let Ok(plan) = &self.plans[call] else { return Ok(()) };
        if !data.theirs.iter().any(|(c, _)| *c == call) {
            let tensors = &self.calls[call].tensors;
            let run = || {
                plan.launch(
                    self.stream,
                    0,
                    self.calls[call].scalars,
                    [group.at(&tensors[0], 0)?, group.at(&tensors[1], 0)?, group.at(&tensors[2], 0)?],
                )
            };
            match launch(&run) {
                Ok(bytes) => data.theirs.push((call, bytes)),
                Err(_) => return Ok(()),
            }
        }
        if let Some((_, bytes)) = data.theirs.iter().find(|(c, _)| *c == call) {
            blas::compare(&group.tensors[out], bytes, &after, reference.rounded(), check);
        }
        Ok(())
    }
}
