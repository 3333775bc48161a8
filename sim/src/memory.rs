//! Global memory: allocations far apart, so that an address belongs to at most one, and a wrong address to none.
//!
//! Allocation `i` starts 256 bytes into its own 64 GiB region, or at a requested later offset. The start has the
//! alignment that `cuMemAlloc` promises and no more, and everything around it is a red zone. Words are atomics because
//! blocks may run on several host threads; each byte has a bit that says whether it was written.
//!
//! Inside an allocation, every byte may be stored to unless it is in a gap, or unless the whole allocation is
//! read-only. Allocations with gaps have another bit for each byte, because tensors have up to five strides in any
//! relation. Loads need no bits of their own: bytes that may not be loaded were never written, and a gap is never
//! written. So a gap may be loaded if the host has put something there.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::report::{Report, ReportKind};

const REGION_BITS: u32 = 36;
const START: u64 = 256;
/// Regions of module variables come after those of [`Device::alloc`].
const MODULE_REGION: usize = 1 << 18;
/// Bytes one device may hold.
const MAX_TOTAL: u64 = 8 << 30;

const fn address(region: usize) -> u64 {
    ((region as u64 + 1) << REGION_BITS) + START
}

/// The address of variable `i` of a module.
pub(crate) const fn module_address(i: usize) -> u64 {
    address(MODULE_REGION + i)
}

/// One allocation.
#[derive(Debug)]
pub(crate) struct Alloc {
    /// The address from which offsets count: a multiple of 256.
    pub(crate) base: u64,
    /// Unusable bytes in front of it.
    head: u64,
    /// Bytes from `base` to its end.
    bytes: u64,
    /// A constant of the module.
    pub(crate) constant: bool,
    /// Whether stores are errors: it is a constant, or the launch only reads it.
    pub(crate) read_only: bool,
    /// Nobody writes it while the launch may run, not even a launch in front of it.
    pub(crate) unchanging: bool,
    words: Vec<AtomicU32>,
    /// One bit for each byte.
    init: Vec<AtomicU32>,
    /// One bit for each byte that belongs to no element; empty if there are none.
    gaps: Vec<u32>,
}

/// The words of a bitmap with the `n` bits from `at` on, and a mask of these bits in each.
fn bits(at: usize, n: usize) -> impl Iterator<Item = (usize, u32)> {
    (at / 32..(at + n).div_ceil(32)).map(move |word| {
        let (low, high) = (at.saturating_sub(32 * word), (at + n - 32 * word).min(32));
        (word, ((1u64 << high) - (1 << low)) as u32)
    })
}

impl Alloc {
    fn new(base: u64, head: u64, bytes: u64, constant: bool) -> Alloc {
        let n = usize::try_from((head + bytes).div_ceil(4)).unwrap_or(usize::MAX);
        let mut words = Vec::new();
        words.resize_with(n, AtomicU32::default);
        let mut init = Vec::new();
        init.resize_with(n.div_ceil(8), AtomicU32::default);
        Alloc {
            base,
            head,
            bytes: head + bytes,
            constant,
            read_only: constant,
            unchanging: false,
            words,
            init,
            gaps: Vec::new(),
        }
    }

    /// The address of its first byte, and its size.
    pub(crate) fn extent(&self) -> (u64, u64) {
        (self.base + self.head, self.bytes - self.head)
    }

    /// The address after its last byte.
    pub(crate) fn end(&self) -> u64 {
        self.base + self.bytes
    }

    /// Whether `n` bytes at `at` are inside.
    pub(crate) fn holds(&self, at: u64, n: u64) -> bool {
        at >= self.base + self.head && at - self.base <= self.bytes && n <= self.bytes - (at - self.base)
    }

    /// Whether the `n` bytes (at most 16, aligned to their number) at byte `at` may be stored to.
    pub(crate) fn takes(&self, at: usize, n: usize) -> bool {
        let mask = ((1u32 << n) - 1) << (at % 32);
        !self.read_only && self.gaps.get(at / 32).is_none_or(|word| word & mask == 0)
    }

    /// Whether the byte `at` belongs to no element.
    pub(crate) fn in_gap(&self, at: usize) -> bool {
        self.gaps.get(at / 32).is_some_and(|word| word >> (at % 32) & 1 != 0)
    }

    /// Whether the `n` bytes (1, 2 or 4, within a word) at byte `at` were written.
    pub(crate) fn written(&self, at: usize, n: usize) -> bool {
        let mask = ((1u32 << n) - 1) << (at % 32);
        self.init[at / 32].load(Relaxed) & mask == mask
    }

    fn mark(&self, at: usize, n: usize) {
        let mask = ((1u32 << n) - 1) << (at % 32);
        let word = &self.init[at / 32];
        if word.load(Relaxed) & mask != mask {
            word.fetch_or(mask, Relaxed);
        }
    }

    /// Makes `n` bytes at byte `at` undefined.
    pub(crate) fn forget(&self, at: usize, n: usize) {
        for (word, bits) in bits(at, n) {
            self.init[word].fetch_and(!bits, Relaxed);
        }
    }

    /// Marks `n` bytes at byte `at` as a gap, or unmarks them.
    fn set_gap(&mut self, at: usize, n: usize, gap: bool) {
        if self.gaps.is_empty() {
            self.gaps = vec![0; self.init.len()];
        }
        for (word, bits) in bits(at, n) {
            match gap {
                true => self.gaps[word] |= bits,
                false => self.gaps[word] &= !bits,
            }
        }
    }

    /// The word that holds byte `at`.
    pub(crate) fn word(&self, at: usize) -> u32 {
        self.words[at / 4].load(Relaxed)
    }

    /// Writes the low `n` bytes (1, 2 or 4) of `value` at byte `at`.
    pub(crate) fn put(&self, at: usize, n: usize, value: u32) {
        let word = &self.words[at / 4];
        if n == 4 {
            word.store(value, Relaxed);
        } else {
            let shift = (at % 4) * 8;
            let mask = ((1u32 << (n * 8)) - 1) << shift;
            let _ = word.fetch_update(Relaxed, Relaxed, |old| Some((old & !mask) | ((value << shift) & mask)));
        }
        self.mark(at, n);
    }

    /// Atomically replaces a 32-bit word by `f` of it, and returns the old one.
    pub(crate) fn update(&self, at: usize, mut f: impl FnMut(u32) -> u32) -> u32 {
        let word = &self.words[at / 4];
        word.fetch_update(Relaxed, Relaxed, |old| Some(f(old))).unwrap_or_else(|old| old)
    }

    pub(crate) fn fill(&self, at: usize, data: &[u8]) {
        // Whole words at once, because tests copy many megabytes.
        let head = (at.next_multiple_of(4) - at).min(data.len());
        let (head, rest) = data.split_at(head);
        let (words, tail) = rest.as_chunks::<4>();
        let first = at + head.len();
        let single = |at: usize, bytes: &[u8]| {
            for (i, byte) in bytes.iter().enumerate() {
                self.put(at + i, 1, u32::from(*byte));
            }
        };
        single(at, head);
        for (i, word) in words.iter().enumerate() {
            self.put(first + 4 * i, 4, u32::from_le_bytes(*word));
        }
        single(first + 4 * words.len(), tail);
    }
}

/// A software device: its global memory. Kernels run on it with [`Device::run`].
#[derive(Debug, Default)]
pub struct Device {
    allocs: Vec<Option<Alloc>>,
    total: u64,
    /// Variables of the module being run.
    pub(crate) module: Vec<Alloc>,
}

impl Device {
    /// A device without memory.
    pub fn new() -> Device {
        Device::default()
    }

    /// Allocates `bytes` bytes of global memory, aligned to 256 and undefined until written, and returns their address.
    ///
    /// # Errors
    /// When the device has held more than 262144 allocations or would hold more than 8 GiB.
    pub fn alloc(&mut self, bytes: u64) -> Result<u64, Box<Report>> {
        self.alloc_behind(0, bytes)
    }

    /// Allocates memory `head` bytes after an aligned address, so that it only has the alignment of `head`. The bytes
    /// in front are out of bounds.
    ///
    /// # Errors
    /// Those of [`Device::alloc`].
    pub fn alloc_behind(&mut self, head: u64, bytes: u64) -> Result<u64, Box<Report>> {
        let total = self.total.checked_add(head).and_then(|t| t.checked_add(bytes)).filter(|t| *t <= MAX_TOTAL);
        let Some(total) = total.filter(|_| self.allocs.len() < MODULE_REGION) else {
            return Err(Report::launch(format!("no room for {bytes} bytes more")));
        };
        self.total = total;
        let base = address(self.allocs.len());
        self.allocs.push(Some(Alloc::new(base, head, bytes, false)));
        Ok(base + head)
    }

    /// Frees an allocation; later accesses to it are out of bounds.
    ///
    /// # Errors
    /// When no allocation starts at `address`.
    pub fn free(&mut self, address: u64) -> Result<(), Box<Report>> {
        let slot = self.allocs.iter_mut().find(|a| a.as_ref().is_some_and(|a| a.extent().0 == address));
        match slot.and_then(Option::take) {
            Some(alloc) => {
                self.total -= alloc.bytes;
                Ok(())
            }
            None => Err(Report::launch(format!("no allocation starts at {address:#x}"))),
        }
    }

    /// Copies to global memory.
    ///
    /// # Errors
    /// When the bytes are not in one allocation.
    pub fn upload(&mut self, address: u64, data: &[u8]) -> Result<(), Box<Report>> {
        let alloc = self.span(address, data.len())?;
        alloc.fill((address - alloc.base) as usize, data);
        Ok(())
    }

    /// Copies from global memory; bytes that were never written read as zero.
    ///
    /// # Errors
    /// When the bytes are not in one allocation.
    pub fn download(&self, address: u64, bytes: usize) -> Result<Vec<u8>, Box<Report>> {
        let alloc = self.span(address, bytes)?;
        let start = (address - alloc.base) as usize;
        let end = start + bytes;
        let words = (start / 4..end.div_ceil(4)).flat_map(|word| alloc.word(4 * word).to_le_bytes());
        Ok(words.skip(start % 4).take(bytes).collect())
    }

    /// Copies within global memory; bytes that were never written stay undefined.
    ///
    /// # Errors
    /// When the bytes of either side are not in one allocation.
    pub fn copy(&mut self, to: u64, from: u64, bytes: usize) -> Result<(), Box<Report>> {
        let data = self.download(from, bytes)?;
        let source = self.span(from, bytes)?;
        let start = (from - source.base) as usize;
        let unwritten: Vec<usize> = (0..bytes).filter(|i| !source.written(start + i, 1)).collect();
        self.upload(to, &data)?;
        let alloc = self.span(to, bytes)?;
        let start = (to - alloc.base) as usize;
        unwritten.into_iter().for_each(|i| alloc.forget(start + i, 1));
        Ok(())
    }

    /// Marks bytes as a gap between elements: stores to them are errors, and loads are, unless the host writes them
    /// afterwards.
    ///
    /// # Errors
    /// When the bytes are not in one allocation.
    pub fn make_gap(&mut self, address: u64, bytes: usize) -> Result<(), Box<Report>> {
        self.forget(address, bytes)?;
        self.set_gap(address, bytes, true)
    }

    /// Unmarks bytes of a gap, which belong to an element after all.
    ///
    /// # Errors
    /// When the bytes are not in one allocation.
    pub fn fill_gap(&mut self, address: u64, bytes: usize) -> Result<(), Box<Report>> {
        self.set_gap(address, bytes, false)
    }

    /// Marks bytes as undefined for kernels until they write them; [`Device::download`] still returns their old value.
    ///
    /// # Errors
    /// When the bytes are not in one allocation.
    pub fn forget(&mut self, address: u64, bytes: usize) -> Result<(), Box<Report>> {
        let alloc = self.span(address, bytes)?;
        alloc.forget((address - alloc.base) as usize, bytes);
        Ok(())
    }

    /// Sets whether kernels launched from now on must not store to the allocation that contains `address`.
    ///
    /// # Errors
    /// When the address is in no allocation.
    pub fn set_read_only(&mut self, address: u64, read_only: bool) -> Result<(), Box<Report>> {
        self.span_mut(address, 0)?.read_only = read_only;
        Ok(())
    }

    /// Sets whether no launch that may overlap those from now on writes the allocation that contains `address`, so that loads of it need not wait for
    /// the launches in front.
    ///
    /// # Errors
    /// When the address is in no allocation.
    pub fn set_unchanging(&mut self, address: u64, unchanging: bool) -> Result<(), Box<Report>> {
        self.span_mut(address, 0)?.unchanging = unchanging;
        Ok(())
    }

    fn set_gap(&mut self, address: u64, bytes: usize, gap: bool) -> Result<(), Box<Report>> {
        let alloc = self.span_mut(address, bytes)?;
        alloc.set_gap((address - alloc.base) as usize, bytes, gap);
        Ok(())
    }

    fn span(&self, address: u64, bytes: usize) -> Result<&Alloc, Box<Report>> {
        self.find(address).filter(|a| a.holds(address, bytes as u64)).ok_or_else(|| out_of_range(address, bytes))
    }

    fn span_mut(&mut self, address: u64, bytes: usize) -> Result<&mut Alloc, Box<Report>> {
        let region = usize::try_from(address >> REGION_BITS).ok().and_then(|region| region.checked_sub(1));
        let alloc = region.and_then(|region| self.allocs.get_mut(region)?.as_mut());
        alloc.filter(|a| a.holds(address, bytes as u64)).ok_or_else(|| out_of_range(address, bytes))
    }

    /// The allocation whose region holds `address`.
    pub(crate) fn find(&self, address: u64) -> Option<&Alloc> {
        let region = usize::try_from(address >> REGION_BITS).ok()?.checked_sub(1)?;
        match region.checked_sub(MODULE_REGION) {
            Some(i) => self.module.get(i),
            None => self.allocs.get(region)?.as_ref(),
        }
    }

    /// The allocation nearest below or above `address`, for messages.
    pub(crate) fn nearest(&self, address: u64) -> Option<(u64, u64)> {
        let all = self.allocs.iter().flatten().chain(&self.module);
        all.map(Alloc::extent).min_by_key(|(first, n)| first.abs_diff(address).min((first + n).abs_diff(address)))
    }

    /// Places the variables of a module.
    pub(crate) fn load_module(&mut self, vars: &[crate::program::ModuleVar]) {
        self.module = vars
            .iter()
            .map(|v| {
                let alloc = Alloc::new(v.address, 0, v.bytes, v.constant);
                // Variables without initial value are zero (PTX 5.4.4).
                alloc.fill(0, &vec![0; v.bytes as usize]);
                for (at, bytes) in &v.init {
                    alloc.fill(*at as usize, bytes);
                }
                alloc
            })
            .collect();
    }
}

fn out_of_range(address: u64, bytes: usize) -> Box<Report> {
    let mut report = Report::launch(format!("{bytes} bytes at {address:#x} are not in one allocation"));
    report.kind = ReportKind::OutOfBounds;
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_of_the_range() {
        for (at, n) in [(0, 0), (0, 1), (31, 1), (31, 2), (5, 27), (5, 28), (5, 0), (32, 32), (7, 90), (0, 64), (64, 0)]
        {
            let mut map = [0u32; 5];
            bits(at, n).for_each(|(word, bits)| map[word] |= bits);
            let set: Vec<usize> = (0..160).filter(|i| map[i / 32] >> (i % 32) & 1 != 0).collect();
            assert_eq!(set, (at..at + n).collect::<Vec<_>>(), "{n} from {at}");
        }
    }
}
