//! `wmma.mma`, by the device's matrix instructions.

use super::*;
use crate::program::wmma::Kind;

impl Product {
    /// Executes it; the warp is whole.
    pub(crate) fn run(&self, w: &mut Warp, device: Generation) -> Step {
        let wide = matches!(self.kind, Kind::Double(_));
        let sources = [&self.a, &self.b, &self.c].into_iter().flatten();
        let all = sources.fold(u32::MAX, |ok, r| ok & if wide { w.l[*r as usize].ok } else { w.w[*r as usize].ok });
        let ok = if all == u32::MAX { u32::MAX } else { 0 };
        if let Kind::Double(round) = self.kind {
            let gather = |regs: &[R]| -> Vec<[u64; 32]> { regs.iter().map(|r| w.l[*r as usize].v).collect() };
            let (a, b, c) = (gather(&self.a), gather(&self.b), gather(&self.c));
            let mut d = vec![[0; 32]; self.d.len()];
            if device < Generation::Ampere {
                return Err(failed(MmaError::Device, device));
            }
            mma::mma_f64((self.extent.m, self.extent.k), round, &a, &b, &c, &mut d).map_err(|e| failed(e, device))?;
            for (r, v) in self.d.iter().zip(&d) {
                w.put64(*r, u32::MAX, v, ok);
            }
            return Ok(());
        }
        let gather = |regs: &[R]| -> Vec<[u32; 32]> { regs.iter().map(|r| w.w[*r as usize].v).collect() };
        let (a, b, c) = (gather(&self.a), gather(&self.b), gather(&self.c));
        let d = match self.kind {
            Kind::Float { ab, c: ct, d: dt } => self.float(device, ab, (ct, dt), &a, &b, &c)?,
            _ => self.integer(device, &a, &b, &c)?,
        };
        for (r, v) in self.d.iter().zip(&d) {
            w.put32(*r, u32::MAX, v, ok);
        }
        Ok(())
    }

    fn integer(
        &self,
        device: Generation,
        a: &[[u32; 32]],
        b: &[[u32; 32]],
        c: &[[u32; 32]],
    ) -> Result<Vec<[u32; 32]>, Box<Fail>> {
        // sm_72 has 8-bit products; smaller elements came with Turing.
        if device < Generation::Turing && self.bits < 8 {
            return Err(failed(MmaError::Device, device));
        }
        let Extent { m, n, k } = self.extent;
        let of = |part, bits| Fragment { part, extent: self.extent, bits };
        let spread = |f: Fragment, regs: &[[u32; 32]], signed: bool, out: &mut [i32]| {
            for (r, register) in regs.iter().enumerate().take(f.registers()) {
                for (lane, v) in register.iter().enumerate() {
                    for e in 0..f.per() {
                        let (row, column) = f.place(lane, r, e);
                        let high = v << (32 - f.bits * (e + 1));
                        let unused = 32 - f.bits;
                        out[row * f.columns() + column] =
                            if signed { high as i32 >> unused } else { (high >> unused) as i32 };
                    }
                }
            }
        };
        let (a_signed, b_signed) = match self.kind {
            Kind::Integer { a_signed, b_signed, .. } => (a_signed, b_signed),
            _ => (false, false),
        };
        let (mut left, mut right) = (vec![0; m * k], vec![0; k * n]);
        spread(of(Part::A, self.bits), a, a_signed, &mut left);
        spread(of(Part::B, self.bits), b, b_signed, &mut right);
        let f = of(Part::C, 32);
        let mut d = c.to_vec();
        for (r, register) in d.iter_mut().enumerate() {
            for (lane, v) in register.iter_mut().enumerate() {
                let (row, column) = f.place(lane, r, 0);
                let pairs = (0..k).map(|i| (left[row * k + i], right[i * n + column]));
                // At most 128 products of 255 · 255 do not overflow.
                let sum: i32 = match self.kind {
                    Kind::Bits { and: true } => pairs.map(|(x, y)| x & y).sum(),
                    Kind::Bits { and: false } => pairs.map(|(x, y)| x ^ y).sum(),
                    _ => pairs.map(|(x, y)| x * y).sum(),
                };
                let c = *v as i32;
                let clamp = matches!(self.kind, Kind::Integer { satfinite: true, .. });
                *v = if clamp { c.saturating_add(sum) } else { c.wrapping_add(sum) } as u32;
            }
        }
        Ok(d)
    }

    /// Tiles of 16 by 8, each computed like the device's own instructions.
    fn float(
        &self,
        device: Generation,
        ab: Elem,
        (ct, dt): (Acc, Acc),
        a: &[[u32; 32]],
        b: &[[u32; 32]],
        c: &[[u32; 32]],
    ) -> Result<Vec<[u32; 32]>, Box<Fail>> {
        let per = ab.per_register();
        let (tall, flat) = if self.extent.swapped() { (b, a) } else { (a, b) };
        let (each_tall, each_flat) = (self.extent.k / (2 * per), self.extent.k / (4 * per));
        let (rows, columns) = if self.extent.swapped() { (2, 1) } else { (self.extent.m / 16, self.extent.n / 8) };
        // With one f32 accumulator, everything is f32 (ptxas 12.9: a conversion before or after).
        let inner = if (ct, dt) == (Acc::F16, Acc::F16) { Acc::F16 } else { Acc::F32 };
        let mut out = Vec::new();
        for tile in 0..rows * columns {
            let left = &tall[tile / columns * each_tall..][..each_tall];
            let right = &flat[tile % columns * each_flat..][..each_flat];
            let sums: Vec<[u32; 32]> = match (ct, inner) {
                (Acc::F16, Acc::F16) => c[2 * tile..2 * tile + 2].to_vec(),
                (Acc::F16, _) => (0..4)
                    .map(|i| c[2 * tile + i / 2].map(|v| Half::F16.widen((v >> (16 * (i % 2))) as u16).to_bits()))
                    .collect(),
                _ => c[4 * tile..4 * tile + 4].to_vec(),
            };
            let sums = product(device, ab, inner, left, right, sums).map_err(|e| failed(e, device))?;
            if dt == Acc::F16 && inner == Acc::F32 {
                let narrow = |v: u32| u32::from(Half::F16.narrow(f32::from_bits(v)));
                for pair in sums.chunks(2) {
                    out.push(std::array::from_fn(|lane| narrow(pair[0][lane]) | narrow(pair[1][lane]) << 16));
                }
            } else {
                out.extend(sums);
            }
        }
        Ok(out)
    }
}

fn failed(e: MmaError, device: Generation) -> Box<Fail> {
    Fail::new(ReportKind::Invalid, format!("{e} ({device:?})"))
}

/// A 16 by 8 tile over all of k, by the largest instructions of the device.
fn product(
    device: Generation,
    ab: Elem,
    acc: Acc,
    a: &[[u32; 32]],
    b: &[[u32; 32]],
    mut sums: Vec<[u32; 32]>,
) -> Result<Vec<[u32; 32]>, MmaError> {
    if device == Generation::Volta {
        return if ab == Elem::F16 { quad_pairs(acc, a, b, sums) } else { Err(MmaError::Device) };
    }
    let (shape, steps) = match (ab, device) {
        // Also where an m16n8k8 exists (ptxas 12.9 for sm_90; measured on an H200).
        (Elem::Tf32, _) => (Shape::M16N8K4, 2),
        (Elem::F16, Generation::Turing) => (Shape::M16N8K8, 2),
        _ => (Shape::M16N8K16, 1),
    };
    let form = mma::row_col(shape, ab, acc);
    for (a, b) in a.chunks(a.len() / steps).zip(b.chunks(b.len() / steps)) {
        let mut next = sums.clone();
        mma::mma(&form, device, a, b, &sums, &mut next)?;
        sums = next;
    }
    Ok(sums)
}

/// The product on Volta: the upper and lower eight rows are two of the four products of `m8n8k4`, four times over k.
fn quad_pairs(acc: Acc, a: &[[u32; 32]], b: &[[u32; 32]], sums: Vec<[u32; 32]>) -> Result<Vec<[u32; 32]>, MmaError> {
    let half = |register: u32, e: usize| register >> (16 * e) & 0xFFFF;
    let (mut left, mut right) = ([[0u32; 16]; 16], [[0u32; 8]; 16]);
    for lane in 0..32 {
        for (r, register) in a.iter().enumerate() {
            for e in 0..2 {
                let (m, k) = layout::m16n8_a(2, lane, r, e);
                left[m][k] = half(register[lane], e);
            }
        }
        for (r, register) in b.iter().enumerate() {
            for e in 0..2 {
                let (k, n) = layout::n8_b(2, lane, r, e);
                right[k][n] = half(register[lane], e);
            }
        }
    }
    let per = if acc == Acc::F16 { 2 } else { 1 };
    let own = |lane: usize, i: usize| {
        if acc == Acc::F16 { layout::m8n8k4_c_f16(lane, i) } else { layout::m8n8k4_c_f32(lane, i) }
    };
    let mut tile = [[0u32; 8]; 16];
    for (r, register) in sums.iter().enumerate() {
        for (lane, v) in register.iter().enumerate() {
            for e in 0..per {
                let (m, n) = layout::n8_c(lane, r * per + e);
                tile[m][n] = if per == 2 { half(*v, e) } else { *v };
            }
        }
    }
    let form: Form = mma::m8n8k4(Layout::Row, Layout::Col, acc, acc);
    let lanes = || (0..32).filter_map(|lane| Some((lane, 8 * layout::quad_pair(lane))).filter(|(_, row)| *row < 16));
    let mut c = vec![[0u32; 32]; 8 / per];
    for (lane, row) in lanes() {
        for i in 0..8 {
            let (m, n) = own(lane, i);
            c[i / per][lane] |= tile[row + m][n] << (16 * (i % per));
        }
    }
    for step in 0..4 {
        let (mut x, mut y) = ([[0u32; 32]; 2], [[0u32; 32]; 2]);
        for (lane, row) in lanes() {
            for e in 0..4 {
                let (m, k) = layout::m8n8k4_a(Layout::Row, lane, e);
                x[e / 2][lane] |= left[row + m][4 * step + k] << (16 * (e % 2));
                let (k, n) = layout::m8n8k4_b(Layout::Col, lane, e);
                y[e / 2][lane] |= right[4 * step + k][n] << (16 * (e % 2));
            }
        }
        let mut next = c.clone();
        mma::mma(&form, Generation::Volta, &x, &y, &c, &mut next)?;
        c = next;
    }
    for (lane, row) in lanes() {
        for i in 0..8 {
            let (m, n) = own(lane, i);
            tile[row + m][n] = if per == 2 { half(c[i / 2][lane], i % 2) } else { c[i][lane] };
        }
    }
    let mut out = vec![[0u32; 32]; 4 / per];
    for (r, register) in out.iter_mut().enumerate() {
        for (lane, v) in register.iter_mut().enumerate() {
            for e in 0..per {
                let (m, n) = layout::n8_c(lane, r * per + e);
                *v |= tile[m][n] << (16 * e);
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row and a column for which an H200 shows that two steps of four products give another sum than one of eight.
    #[test]
    fn tf32_takes_two_steps() {
        let registers = |list: &[[u32; 4]], lane: usize| -> Vec<[u32; 32]> {
            let fill = |four: &[u32; 4]| std::array::from_fn(|l| if l / 4 == lane { four[l % 4] } else { 0 });
            list.iter().map(fill).collect()
        };
        let row = [0xc0c4_da73, 0xc002_7a2e, 0x40da_444b, 0xbfd3_a297];
        let rest = [0x3f3c_24bc, 0xc0ea_5ba8, 0x3f12_6214, 0xc0d6_e77c];
        let a = registers(&[row, [0; 4], rest, [0; 4]], 1);
        let column = [0xc0db_a46f, 0xbe9f_84f6, 0xc001_f150, 0x4089_178c];
        let b = registers(&[column, [0x401f_8e26, 0x3eac_a8e7, 0xc0ae_1e43, 0x403f_8c6f]], 2);
        let mut c = vec![[0; 32]; 4];
        c[0][5] = 0x3e13_c67d;
        let d = product(Generation::Hopper, Elem::Tf32, Acc::F32, &a, &b, c);
        assert_eq!(d.map(|d| d[0][5]), Ok(0xbfe3_bae0));
    }
}
