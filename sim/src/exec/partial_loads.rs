//! Vector loads of partly unwritten memory.
//!
//! A compiler widens loads: for three floats it loads four, if alignment allows it. So a vector is read element by
//! element, as PTX says (8.2.2): an unwritten element gives an undefined register, and a report follows when the
//! register is used. If no element was written, the load itself is reported, like a scalar load.

use crate::exec::cta::Cta;
use crate::exec::fail::Fail;
use crate::exec::warp::{Unwritten, cut};
use crate::program::Access;
use crate::program::types::{R, SINK};
use crate::report::ReportKind;

/// The lanes in which each element of a load is defined.
pub(super) type Defined = [u32; 4];

pub(super) const ALL_DEFINED: Defined = [u32::MAX; 4];

impl Cta<'_> {
    /// Reads a lane's vector as a `whole`, or element by element if some were never written; `read` reads a number of
    /// bytes at an address.
    #[inline(always)]
    pub(super) fn or_in_parts(
        &mut self,
        whole: Result<[u32; 4], Box<Fail>>,
        access: &Access,
        place: (usize, usize, usize, u64),
        memory: &'static str,
        defined: &mut Defined,
        read: impl FnMut(&mut Self, u64, u64) -> Result<[u32; 4], Box<Fail>>,
    ) -> Result<[u32; 4], Box<Fail>> {
        match whole {
            Err(fail) if fail.kind == ReportKind::Uninitialised && access.n > 1 => {
                self.in_parts(access, place, memory, defined, read)
            }
            whole => whole,
        }
    }

    #[cold]
    fn in_parts(
        &mut self,
        access: &Access,
        (warp, lane, pc, address): (usize, usize, usize, u64),
        memory: &'static str,
        defined: &mut Defined,
        mut read: impl FnMut(&mut Self, u64, u64) -> Result<[u32; 4], Box<Fail>>,
    ) -> Result<[u32; 4], Box<Fail>> {
        let (mut out, mut first, size) = ([0u32; 4], None, usize::from(access.size));
        let (mut unwritten, mut any) = (0u8, false);
        for i in 0..usize::from(access.n) {
            match read(self, address + (i * size) as u64, size as u64) {
                Ok(words) => {
                    any |= access.regs[i] != SINK;
                    match size {
                        8 => (out[2 * i], out[2 * i + 1]) = (words[0], words[1]),
                        _ => out[i * size / 4] |= cut(words[0], size) << (i * size % 4 * 8),
                    }
                }
                Err(fail) if fail.kind == ReportKind::Uninitialised => {
                    unwritten |= 1 << i;
                    defined[i] &= !(1 << lane);
                    if access.regs[i] != SINK {
                        first.get_or_insert(fail);
                    }
                }
                Err(fail) => return Err(fail),
            }
        }
        match first {
            Some(fail) if !any => return Err(fail),
            _ => {}
        }
        self.unwritten.insert((warp, lane, pc), Unwritten { address, memory, elements: unwritten });
        Ok(out)
    }

    /// The unwritten memory that a vector load read to an undefined register, if any.
    pub(super) fn unwritten_element(&self, access: &Access, at: (usize, usize, usize), register: R) -> Option<String> {
        let Unwritten { address, memory, elements } = *self.unwritten.get(&at)?;
        let n = usize::from(access.n);
        let i = (0..n).find(|i| access.regs[*i] == register && elements >> i & 1 != 0)?;
        let address = address + (i * usize::from(access.size)) as u64;
        Some(format!("{memory} address {address:#x}, which nobody had written"))
    }
}
