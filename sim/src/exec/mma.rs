//! `mma.sync`: from modifiers to a form of `numerics`, and its execution on the registers of a warp.

use super::warp::Warp;
use crate::exec::fail::Fail;
use crate::numerics::mma::{self, Generation, MmaError};
use crate::program::mma::{Kind, Mma};
use crate::program::types::R;
use crate::report::ReportKind;

impl Mma {
    /// Executes it; the warp is whole.
    pub(crate) fn run(&self, warp: &mut Warp, device: Generation) -> Result<(), Box<Fail>> {
        let sources = [&self.a, &self.b, &self.c];
        let defined = |warp: &Warp, r: R| match self.kind {
            Kind::Narrow(_) | Kind::Small(_) => warp.w[r as usize].ok,
            Kind::F64 { .. } => warp.l[r as usize].ok,
        };
        // An undefined element makes elements of other lanes undefined; all results are treated as undefined.
        let all = sources.iter().flat_map(|s| s.iter()).fold(u32::MAX, |ok, r| ok & defined(warp, *r));
        let ok = if all == u32::MAX { u32::MAX } else { 0 };
        let failed = |e: MmaError| Fail::new(ReportKind::Invalid, format!("{e} ({device:?})"));
        match &self.kind {
            Kind::Small(small) => {
                let gather = |regs: &[R]| -> Vec<[u32; 32]> { regs.iter().map(|r| warp.w[*r as usize].v).collect() };
                let (a, b, c) = (gather(&self.a), gather(&self.b), gather(&self.c));
                let mut d = vec![[0u32; 32]; self.d.len()];
                small.run(device, &a, &b, &c, &mut d).map_err(failed)?;
                for (r, v) in self.d.iter().zip(&d) {
                    warp.put32(*r, u32::MAX, v, ok);
                }
            }
            Kind::Narrow(form) => {
                let gather = |regs: &[R], out: &mut [[u32; 32]; 8]| {
                    for (slot, r) in out.iter_mut().zip(regs) {
                        *slot = warp.w[*r as usize].v;
                    }
                };
                let mut parts = [[[0u32; 32]; 8]; 4];
                let [a, b, c, d] = &mut parts;
                gather(&self.a, a);
                gather(&self.b, b);
                gather(&self.c, c);
                let (na, nb, nc, nd) = (self.a.len(), self.b.len(), self.c.len(), self.d.len());
                mma::mma(form, device, &a[..na], &b[..nb], &c[..nc], &mut d[..nd]).map_err(failed)?;
                for (r, v) in self.d.iter().zip(d.iter()) {
                    warp.put32(*r, u32::MAX, v, ok);
                }
            }
            Kind::F64 { m, k, round } => {
                let gather = |regs: &[R]| -> Vec<[u64; 32]> { regs.iter().map(|r| warp.l[*r as usize].v).collect() };
                let (a, b, c) = (gather(&self.a), gather(&self.b), gather(&self.c));
                let mut d = vec![[0u64; 32]; self.d.len()];
                mma::mma_f64((*m, *k), *round, &a, &b, &c, &mut d).map_err(failed)?;
                for (r, v) in self.d.iter().zip(&d) {
                    warp.put64(*r, u32::MAX, v, ok);
                }
            }
        }
        Ok(())
    }
}
