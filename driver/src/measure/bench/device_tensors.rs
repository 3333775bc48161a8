//! Tensors of a measurement in device memory: several sets of each, in rotation.

use crate::cuda::{At, Buffer, CudaError, Device};
use crate::run::bind::{ADDRESS_BYTES, TensorPlan};
use crate::run::data::GUARD_BYTES;

/// Sets begin at addresses that any access width and TMA are content with.
const SET_ALIGN: usize = 1024;
/// And so do the parts of an array of pointers.
const PART_ALIGN: usize = 256;

/// All sets of a tensor.
pub(super) struct Placed {
    buffer: Buffer,
    /// Bytes from one set to the next.
    set: usize,
    /// For an array of pointers: its parts in a set, and the arrays of their addresses, one per set.
    parts: Option<(Parts, Buffer)>,
}

/// The parts of an array of pointers.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Parts {
    count: usize,
    /// Bytes of a part.
    bytes: usize,
    /// Bytes from one part to the next.
    apart: usize,
}

impl Parts {
    fn of(plan: &TensorPlan) -> Option<Parts> {
        let bytes = usize::try_from(plan.elem.bytes_of(plan.part_span())).ok()?;
        Some(Parts {
            count: usize::try_from(plan.parts()).ok()?,
            bytes,
            apart: bytes.checked_next_multiple_of(PART_ALIGN)?,
        })
    }

    /// A tensor as it is on the host, with its guard, as it is on the device.
    fn spread(&self, bytes: &[u8]) -> Vec<u8> {
        let end = self.count * self.bytes;
        let mut out = vec![0; self.count * self.apart + bytes.len() - end];
        for (part, out) in bytes[..end].chunks_exact(self.bytes).zip(out.chunks_mut(self.apart)) {
            out[..self.bytes].copy_from_slice(part);
        }
        out[self.count * self.apart..].copy_from_slice(&bytes[end..]);
        out
    }

    /// And back.
    fn gather(&self, spread: &[u8], bytes: &mut [u8]) {
        let end = self.count * self.bytes;
        for (part, from) in bytes[..end].chunks_exact_mut(self.bytes).zip(spread.chunks(self.apart)) {
            part.copy_from_slice(&from[..self.bytes]);
        }
        bytes[end..].copy_from_slice(&spread[self.count * self.apart..]);
    }
}

/// Bytes of a set of a tensor with its guard; `None`: more than there can be.
pub(super) fn set_bytes(plan: &TensorPlan) -> Option<usize> {
    let bytes = match Parts::of(plan)? {
        parts if plan.pointers => parts.count.checked_mul(parts.apart)?,
        parts => parts.bytes,
    };
    bytes.checked_add(GUARD_BYTES)?.checked_next_multiple_of(SET_ALIGN)
}

impl Placed {
    /// Room for `sets` sets.
    pub(super) fn new(device: &Device, plan: &TensorPlan, sets: usize) -> Result<Placed, CudaError> {
        let too_large = || CudaError::Refused { what: format!("`{}` is too large", plan.name) };
        let set = set_bytes(plan).ok_or_else(too_large)?;
        let buffer = device.alloc(set.checked_mul(sets).ok_or_else(too_large)?)?;
        let mut placed = Placed { buffer, set, parts: None };
        if let (true, Some(parts)) = (plan.pointers, Parts::of(plan)) {
            let base = placed.buffer.address();
            let address = |set: usize, part: usize| base + (set * placed.set + part * parts.apart) as u64;
            let all = (0..sets).flat_map(|set| (0..parts.count).map(move |part| (set, part)));
            let addresses: Vec<u8> = all.flat_map(|(set, part)| address(set, part).to_le_bytes()).collect();
            let table = device.alloc(addresses.len())?;
            table.upload(0, &addresses)?;
            placed.parts = Some((parts, table));
        }
        Ok(placed)
    }

    /// The kernel argument: the address of the set's elements, or of their array of addresses.
    pub(super) fn argument(&self, set: usize) -> u64 {
        match &self.parts {
            None => self.buffer.address() + (self.set * set) as u64,
            Some((parts, table)) => table.address() + (parts.count * set) as u64 * ADDRESS_BYTES,
        }
    }

    /// The set for cuBLAS.
    pub(super) fn at(&self, set: usize) -> At<'_> {
        At { buffer: &self.buffer, offset: self.set * set }
    }

    /// Fills a set with a tensor and its guard.
    pub(super) fn upload(&self, set: usize, bytes: &[u8]) -> Result<(), CudaError> {
        match &self.parts {
            None => self.buffer.upload(self.set * set, bytes),
            Some((parts, _)) => self.buffer.upload(self.set * set, &parts.spread(bytes)),
        }
    }

    /// Reads a set back, with its guard.
    pub(super) fn download(&self, set: usize, bytes: &mut [u8]) -> Result<(), CudaError> {
        let Some((parts, _)) = &self.parts else { return self.buffer.download(self.set * set, bytes) };
        let mut spread = vec![0; parts.count * parts.apart + GUARD_BYTES];
        self.buffer.download(self.set * set, &mut spread)?;
        parts.gather(&spread, bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Access;
    use tilec_ir::types::Elem;

    #[test]
    fn parts_come_back_from_where_they_are_spread() {
        let plan = TensorPlan {
            reads_gaps: false,
            name: "A".to_owned(),
            elem: Elem::F16,
            access: Access::Read,
            shape: vec![3, 5, 7],
            strides: vec![39, 8, 1],
            modes: vec![1; 3],
            span: 3 * 39,
            pointers: true,
        };
        let parts = Parts::of(&plan).expect("small");
        assert_eq!(parts, Parts { count: 3, bytes: 78, apart: 256 });
        assert_eq!(set_bytes(&plan), Some(2048));
        assert_eq!(set_bytes(&TensorPlan { pointers: false, ..plan.clone() }), Some(2048));
        let bytes: Vec<u8> = (0..3 * 78 + GUARD_BYTES).map(|i| i as u8).collect();
        let spread = parts.spread(&bytes);
        assert_eq!((spread.len(), spread[256], spread[2 * 256 + 77]), (768 + GUARD_BYTES, 78, (3 * 78 - 1) as u8));
        let mut back = vec![0; bytes.len()];
        parts.gather(&spread, &mut back);
        assert_eq!(back, bytes);
    }
}
