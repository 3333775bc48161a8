//! `wmma.load` and `wmma.store`.

use super::*;
use crate::counters::Kind;
use crate::program::wmma::Move;
use crate::race::Strength;

impl Cta<'_> {
    /// The base address and the stride, which must be equal in all lanes.
    fn uniform(&self, w: &Warp, mv: &Move) -> Result<(u64, u64), Box<Fail>> {
        let base = addresses(w, mv.addr, u32::MAX)?;
        let f = mv.fragment;
        let packed = if mv.row_major { f.columns() } else { f.rows() } as u32;
        let (stride, ok) = mv.stride.map_or(([packed; 32], u32::MAX), |r| (w.w[r as usize].v, w.w[r as usize].ok));
        if ok != u32::MAX {
            return Err(Fail::new(ReportKind::Undefined, "the stride is undefined").at(ok.trailing_ones() as usize));
        }
        if let Some(lane) = (1..32).find(|i| base[*i] != base[0] || stride[*i] != stride[0]) {
            let message = "the lanes of a warp give different addresses or strides of one tile";
            return Err(Fail::new(ReportKind::Invalid, message).at(lane));
        }
        // The manual requires every row to be aligned to the fragment, the CUDA guide to 16 bytes; ptxas needs the
        // latter.
        let fragment = (mv.regs.len() * f.bits.max(32) / 8).min(32) as u64;
        let line = u64::from(stride[0]) * f.bits as u64;
        if base[0] & (fragment - 1) != 0 || !line.is_multiple_of(8 * fragment.min(16)) {
            let message = format!(
                "a tile at {:#x} whose lines are {} bits apart: it must start at a multiple of {fragment} bytes and its lines \
                 at multiples of {}",
                base[0],
                line,
                fragment.min(16)
            );
            return Err(Fail::new(ReportKind::Misaligned, message).at(0).address(base[0]));
        }
        Ok((base[0], u64::from(stride[0])))
    }

    /// Executes `wmma.load` or `wmma.store`; the warp is whole.
    pub(crate) fn wmma_move(&mut self, w: &mut Warp, mv: &Move, pc: usize) -> Step {
        let (base, stride) = self.uniform(w, mv)?;
        let f = mv.fragment;
        let wide = f.bits == 64;
        if mv.store {
            for r in &mv.regs {
                let ok = if wide { w.l[*r as usize].ok } else { w.w[*r as usize].ok };
                if ok != u32::MAX {
                    let lane = ok.trailing_ones() as usize;
                    return Err(Fail::new(ReportKind::Undefined, "an element stored is undefined").at(lane));
                }
            }
        }
        let n = f.registers();
        let mut values = [[0u64; 32]; 8];
        for (value, r) in values.iter_mut().zip(&mv.regs).take(if mv.store { n } else { 0 }) {
            *value = w.any(*r, wide).0;
        }
        let element = if wide { u64::MAX } else { (1u64 << f.bits) - 1 };
        let (seq, index) = (self.next_seq(), w.index);
        for &(start, count) in &mv.groups {
            let mut at: [u64; 32] = std::array::from_fn(|lane| {
                let (row, column) = f.place(lane, start / f.per(), start % f.per());
                let (line, along) = if mv.row_major { (row, column) } else { (column, row) };
                base.wrapping_add((line as u64 * stride + along as u64) * f.bits as u64 / 8)
            });
            let bytes = (count * f.bits / 8) as u64;
            self.by_space(mv.area, u32::MAX, &mut at, |cta, space, mask, at| {
                match space {
                    Space::Shared | Space::Cluster => cta.count_shared(pc, mask, at, bytes, Kind::Other),
                    _ => cta.count_global(pc, mask, at, bytes),
                }
                for_lanes!(lane in mask => {
                    let who = Issuer { warp: index, lane, pc: pc as u32, seq, strength: Strength::Weak, copy: false };
                    if mv.store {
                        let mut data = 0;
                        for i in 0..count {
                            let (r, e) = ((start + i) / f.per(), (start + i) % f.per());
                            data |= (values[r][lane] >> (e * f.bits) & element) << (i * f.bits);
                        }
                        let data = [data as u32, (data >> 32) as u32, 0, 0];
                        match space {
                            Space::Shared | Space::Cluster => cta.write_shared(who, at[lane], bytes, data)?,
                            _ => cta.write_global(who, at[lane], bytes, data)?,
                        }
                    } else {
                        let data = match space {
                            Space::Shared | Space::Cluster => cta.read_shared(who, at[lane], bytes)?,
                            _ => cta.read_global(who, at[lane], bytes, true)?,
                        };
                        let data = u64::from(data[0]) | u64::from(data[1]) << 32;
                        for i in 0..count {
                            let (r, e) = ((start + i) / f.per(), (start + i) % f.per());
                            values[r][lane] |= (data >> (i * f.bits) & element) << (e * f.bits);
                        }
                    }
                });
                Ok(())
            })?;
        }
        if !mv.store {
            for (i, r) in mv.regs.iter().enumerate() {
                w.put_any(*r, wide, u32::MAX, &values[i % n], u32::MAX);
            }
        }
        Ok(())
    }
}
