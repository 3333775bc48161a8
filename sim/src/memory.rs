//! Global memory: allocations far apart, so that an address belongs to at most one and a stray one to none.
//!
//! Allocation `i` starts 256 bytes into its own 64 GiB region: the start is aligned as `cuMemAlloc` promises and no better,
//! and everything around it is red zone. Words are atomics because blocks may run on several host threads; each byte has a
//! bit that says whether anyone wrote it.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::report::{Report, ReportKind};

const REGION_BITS: u32 = 36;
const START: u64 = 256;
/// Regions of module variables come after those of [`Device::alloc`].
const MODULE_REGION: usize = 1 << 14;
/// Bytes one device may hold.
const MAX_TOTAL: u64 = 8 << 30;

const fn address(region: usize) -> u64 {
    ((region as u64 + 1) << REGION_BITS) + START
}

/// The address of the `i`-th variable of a module.
pub(crate) const fn module_address(i: usize) -> u64 {
    address(MODULE_REGION + i)
}

/// One allocation.
#[derive(Debug)]
pub(crate) struct Alloc {
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    /// Whether stores are errors.
    pub(crate) constant: bool,
    words: Vec<AtomicU32>,
    /// One bit for each byte.
    init: Vec<AtomicU32>,
}

impl Alloc {
    pub(crate) fn new(base: u64, bytes: u64, constant: bool) -> Alloc {
        let n = usize::try_from(bytes.div_ceil(4)).unwrap_or(usize::MAX);
        let mut words = Vec::new();
        words.resize_with(n, AtomicU32::default);
        let mut init = Vec::new();
        init.resize_with(n.div_ceil(8), AtomicU32::default);
        Alloc { base, bytes, constant, words, init }
    }

    /// Whether `n` bytes at `at` are inside.
    pub(crate) fn holds(&self, at: u64, n: u64) -> bool {
        at >= self.base && at - self.base <= self.bytes && n <= self.bytes - (at - self.base)
    }

    /// Whether the `n` bytes (1, 2 or 4, not crossing a word) at byte `at` were written.
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

    /// Makes `n` bytes at byte `at`, both multiples of 32, undefined.
    pub(crate) fn forget(&self, at: usize, n: usize) {
        for word in &self.init[at / 32..(at + n) / 32] {
            word.store(0, Relaxed);
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

    /// Replaces a 32-bit word by `f` of it, atomically; the old one is the result.
    pub(crate) fn update(&self, at: usize, mut f: impl FnMut(u32) -> u32) -> u32 {
        let word = &self.words[at / 4];
        word.fetch_update(Relaxed, Relaxed, |old| Some(f(old))).unwrap_or_else(|old| old)
    }

    pub(crate) fn fill(&self, at: usize, data: &[u8]) {
        // Whole words at once: tests copy many megabytes.
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

/// A device made of software: its global memory. Kernels run on it with [`Device::run`].
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

    /// Allocates `bytes` bytes of global memory, aligned to 256 and undefined until written, and gives their address.
    ///
    /// # Errors
    /// When the device has held more than 16384 allocations or would hold more than 8 GiB.
    pub fn alloc(&mut self, bytes: u64) -> Result<u64, Box<Report>> {
        let total = self.total.checked_add(bytes).filter(|t| *t <= MAX_TOTAL);
        let Some(total) = total.filter(|_| self.allocs.len() < MODULE_REGION) else {
            return Err(Report::launch(format!("no room for {bytes} bytes more")));
        };
        self.total = total;
        let base = address(self.allocs.len());
        self.allocs.push(Some(Alloc::new(base, bytes, false)));
        Ok(base)
    }

    /// Gives an allocation back; later accesses to it are out of bounds.
    ///
    /// # Errors
    /// When no allocation starts at `address`.
    pub fn free(&mut self, address: u64) -> Result<(), Box<Report>> {
        let slot = self.allocs.iter_mut().find(|a| a.as_ref().is_some_and(|a| a.base == address));
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
    /// When the bytes do not lie in one allocation.
    pub fn upload(&mut self, address: u64, data: &[u8]) -> Result<(), Box<Report>> {
        let alloc = self.span(address, data.len())?;
        alloc.fill((address - alloc.base) as usize, data);
        Ok(())
    }

    /// Copies from global memory; bytes that nobody wrote read as zero.
    ///
    /// # Errors
    /// When the bytes do not lie in one allocation.
    pub fn download(&self, address: u64, bytes: usize) -> Result<Vec<u8>, Box<Report>> {
        let alloc = self.span(address, bytes)?;
        let start = (address - alloc.base) as usize;
        let end = start + bytes;
        let words = (start / 4..end.div_ceil(4)).flat_map(|word| alloc.word(4 * word).to_le_bytes());
        Ok(words.skip(start % 4).take(bytes).collect())
    }

    fn span(&self, address: u64, bytes: usize) -> Result<&Alloc, Box<Report>> {
        self.find(address).filter(|a| a.holds(address, bytes as u64)).ok_or_else(|| {
            let mut report = Report::launch(format!("{bytes} bytes at {address:#x} are not in one allocation"));
            report.kind = ReportKind::OutOfBounds;
            report
        })
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
        let nearest = all.min_by_key(|a| a.base.abs_diff(address).min((a.base + a.bytes).abs_diff(address)))?;
        Some((nearest.base, nearest.bytes))
    }

    /// Places the variables of a module.
    pub(crate) fn load_module(&mut self, vars: &[crate::program::ModuleVar]) {
        self.module = vars
            .iter()
            .map(|v| {
                let alloc = Alloc::new(v.address, v.bytes, v.constant);
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
