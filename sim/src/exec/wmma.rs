//! `wmma`: tiles loaded into fragments, multiplied and stored by a whole warp (PTX 9.7.14.3 to 9.7.14.5).
//!
//! The manual leaves open which lane holds which element. Here it is what ptxas makes of these instructions for Turing and
//! later: the fragments of the `mma` they become, 16 rows (or, of the tile with 8 rows, 16 columns) to an instruction. Where a
//! fragment has more registers than the tile has elements the rest are copies. Registers that hold neighbours in memory
//! move together, up to 8 bytes, and that is what counts as an access.

use super::access::{addresses, for_lanes};
use super::warp::Warp;
use super::{Cta, Fail, Step};
use crate::numerics::Round;
use crate::numerics::half::Half;
use crate::numerics::mma::{self, Acc, Elem, Form, Generation, Layout, MmaError, Shape, layout};
use crate::parse::raw::Space;
use crate::program::{Addr, Area, R};
use crate::race::Who;
use crate::report::ReportKind;

/// Which operand a fragment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    A,
    B,
    /// C or D.
    C,
}

/// Rows, columns and depth of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    m: usize,
    n: usize,
    k: usize,
}

impl Extent {
    /// `m16n16k16`.
    fn from_word(word: &str) -> Option<Extent> {
        let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some(Extent { m: m.parse().ok()?, n: n.parse().ok()?, k: k.parse().ok()? })
    }

    /// Computed as the transposed product, for its columns are the longer side.
    fn swapped(self) -> bool {
        self.m == 8 && self.n == 32
    }
}

/// A tile spread over a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    part: Part,
    extent: Extent,
    /// Bits of an element.
    bits: usize,
}

impl Fragment {
    fn rows(self) -> usize {
        if self.part == Part::B { self.extent.k } else { self.extent.m }
    }

    fn columns(self) -> usize {
        if self.part == Part::A { self.extent.k } else { self.extent.n }
    }

    /// Elements of a register.
    fn per(self) -> usize {
        (32 / self.bits).max(1)
    }

    /// Registers of different contents.
    fn registers(self) -> usize {
        self.rows() * self.columns() / (32 * self.per())
    }

    /// Row and column of element `e` of register `r`.
    fn place(self, lane: usize, r: usize, e: usize) -> (usize, usize) {
        let Extent { m, k, .. } = self.extent;
        let (per, swapped) = (self.per(), self.extent.swapped());
        match self.part {
            Part::C if m == 8 && !swapped => layout::n8_c(lane, r * per + e),
            Part::C => {
                let i = r * per + e;
                let (x, y) = layout::n8_c(lane, i % 4);
                match m {
                    8 => (y, x + i / 4 * 16),
                    32 => (x + i / 4 * 16, y),
                    _ => (x, y + i / 4 * 8),
                }
            }
            Part::A if m > 8 => {
                let each = 16 * k / (32 * per);
                let (x, depth) = layout::m16n8_a(per, lane, r % each, e);
                (x + r / each * 16, depth)
            }
            Part::B if swapped => {
                let each = 16 * k / (32 * per);
                let (x, depth) = layout::m16n8_a(per, lane, r % each, e);
                (depth, x + r / each * 16)
            }
            Part::A => {
                let (depth, x) = layout::n8_b(per, lane, r, e);
                (x, depth)
            }
            Part::B => {
                let each = (8 * k / (32 * per)).max(1);
                let (depth, x) = layout::n8_b(per, lane, r % each, e);
                (depth, x + r / each * 8)
            }
        }
    }

    /// Elements that lie side by side in memory, as ranges of the elements of a lane.
    fn groups(self, row_major: bool) -> Vec<(usize, usize)> {
        let place = |i: usize| {
            let (row, column) = self.place(0, i / self.per(), i % self.per());
            if row_major { (row, column) } else { (column, row) }
        };
        let all = self.registers() * self.per();
        let mut out = Vec::new();
        let mut start = 0;
        while start < all {
            let mut n = (64 / self.bits).min(all - start);
            let (line, first) = place(start);
            while n > 1 && !(n.is_power_of_two() && (1..n).all(|i| place(start + i) == (line, first + i))) {
                n -= 1;
            }
            out.push((start, n));
            start += n;
        }
        out
    }
}

/// `wmma.load` or `wmma.store`.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    fragment: Fragment,
    row_major: bool,
    addr: Addr,
    area: Area,
    /// Distance of rows or columns, in elements; `None`: there is nothing between them.
    stride: Option<R>,
    regs: Vec<R>,
    store: bool,
    groups: Vec<(usize, usize)>,
}

fn bits(ty: &str) -> Option<usize> {
    Some(match ty {
        "f16" | "bf16" => 16,
        "tf32" | "f32" | "s32" => 32,
        "f64" => 64,
        "s8" | "u8" => 8,
        "s4" | "u4" => 4,
        "b1" => 1,
        _ => return None,
    })
}

impl Move {
    /// From the modifiers `load a sync aligned layout shape [space] type`.
    pub(crate) fn from_words(words: &[&str], addr: Addr, area: Area, regs: Vec<R>, stride: Option<R>) -> Option<Move> {
        let part = match *words.get(1)? {
            "a" => Part::A,
            "b" => Part::B,
            _ => Part::C,
        };
        let fragment = Fragment { part, extent: Extent::from_word(words.get(5)?)?, bits: bits(words.last()?)? };
        let row_major = *words.get(4)? == "row";
        let n = fragment.registers();
        if n == 0 || regs.is_empty() || !regs.len().is_multiple_of(n) {
            return None;
        }
        let groups = fragment.groups(row_major);
        // Bytes are the smallest thing memory moves.
        if groups.iter().any(|(_, n)| n * fragment.bits < 8) {
            return None;
        }
        Some(Move { fragment, row_major, addr, area, stride, regs, store: words.first() == Some(&"store"), groups })
    }
}

impl Cta<'_> {
    /// The base address and the stride, which all lanes must agree on.
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
        // The manual aligns every row to the fragment, the CUDA guide to 16 bytes; ptxas needs the latter.
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
                    Space::Shared => cta.count_shared(pc, mask, at, bytes),
                    _ => cta.count_global(pc, mask, at, bytes),
                }
                for_lanes!(lane in mask => {
                    let who = Who { warp: index, lane, pc: pc as u32, seq, strong: false, copy: false };
                    if mv.store {
                        let mut data = 0;
                        for i in 0..count {
                            let (r, e) = ((start + i) / f.per(), (start + i) % f.per());
                            data |= (values[r][lane] >> (e * f.bits) & element) << (i * f.bits);
                        }
                        let data = [data as u32, (data >> 32) as u32, 0, 0];
                        match space {
                            Space::Shared => cta.write_shared(who, at[lane], bytes, data)?,
                            _ => cta.write_global(who, at[lane], bytes, data)?,
                        }
                    } else {
                        let data = match space {
                            Space::Shared => cta.read_shared(who, at[lane], bytes)?,
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

/// The arithmetic of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Float { ab: Elem, c: Acc, d: Acc },
    Integer { a_signed: bool, b_signed: bool, satfinite: bool },
    Bits { and: bool },
    Double(Round),
}

/// `wmma.mma`.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    kind: Kind,
    extent: Extent,
    /// Bits of an element of A and B.
    bits: usize,
    d: Vec<R>,
    a: Vec<R>,
    b: Vec<R>,
    c: Vec<R>,
}

impl Product {
    /// From the modifiers `mma [op popc] sync aligned alayout blayout shape types`.
    pub(crate) fn from_words(words: &[&str], [d, a, b, c]: [Vec<R>; 4]) -> Option<Product> {
        let extent = words.iter().find_map(|w| Extent::from_word(w))?;
        let types: Vec<&str> = words.iter().copied().filter(|w| bits(w).is_some()).collect();
        let acc = |w: &str| if w == "f16" { Acc::F16 } else { Acc::F32 };
        let (kind, bits) = match *types.as_slice() {
            [d, c] => (Kind::Float { ab: Elem::F16, c: acc(c), d: acc(d) }, 16),
            [_, "bf16", _, _] => (Kind::Float { ab: Elem::Bf16, c: Acc::F32, d: Acc::F32 }, 16),
            [_, "tf32", _, _] => (Kind::Float { ab: Elem::Tf32, c: Acc::F32, d: Acc::F32 }, 32),
            [_, "f64", _, _] => {
                let round = words.iter().find_map(|w| match *w {
                    "rz" => Some(Round::Zero),
                    "rm" => Some(Round::Down),
                    "rp" => Some(Round::Up),
                    _ => None,
                });
                (Kind::Double(round.unwrap_or(Round::Nearest)), 64)
            }
            [_, "b1", _, _] => (Kind::Bits { and: words.contains(&"and") }, 1),
            [_, a, b, _] => {
                let satfinite = words.contains(&"satfinite");
                (Kind::Integer { a_signed: a.starts_with('s'), b_signed: b.starts_with('s'), satfinite }, bits(a)?)
            }
            _ => return None,
        };
        Some(Product { kind, extent, bits, d, a, b, c })
    }

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
        // Bytes are sm_72's already; smaller elements came with Turing.
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
                // At most 128 products of 255 · 255: far from overflow.
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

    /// Tiles of 16 by 8, each as the device's own instructions compute it.
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
        // With one f32 accumulator everything is f32 (ptxas 12.9: a conversion before or after).
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

/// A 16 by 8 tile over all of k by the largest instructions the device has.
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
        (Elem::Tf32, _) => (Shape::M16N8K8, 1),
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

/// The same on Volta: the upper and lower eight rows are two of the four products of `m8n8k4`, four times over k.
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
    use std::collections::BTreeSet;

    #[test]
    fn every_element_has_one_place() {
        for (shape, types) in [
            ("m16n16k16", [16, 8].as_slice()),
            ("m8n32k16", &[16, 8]),
            ("m32n8k16", &[16, 8]),
            ("m16n16k8", &[32]),
            ("m8n8k4", &[64]),
            ("m8n8k32", &[4]),
            ("m8n8k128", &[1]),
        ] {
            let extent = Extent::from_word(shape).expect("a shape");
            let mut fragments = vec![Fragment { part: Part::C, extent, bits: 32 }];
            if types[0] == 16 {
                fragments.push(Fragment { part: Part::C, extent, bits: 16 });
            }
            for bits in types {
                fragments.extend([Part::A, Part::B].map(|part| Fragment { part, extent, bits: *bits }));
            }
            for f in fragments {
                let mut seen = BTreeSet::new();
                for lane in 0..32 {
                    for i in 0..f.registers() * f.per() {
                        let place = f.place(lane, i / f.per(), i % f.per());
                        assert!(place.0 < f.rows() && place.1 < f.columns(), "{f:?} {place:?}");
                        assert!(seen.insert(place), "{f:?} {place:?} twice");
                    }
                }
                assert_eq!(seen.len(), f.rows() * f.columns(), "{f:?}");
                for row_major in [true, false] {
                    assert_eq!(f.groups(row_major).iter().map(|g| g.1).sum::<usize>(), f.registers() * f.per());
                }
            }
        }
    }
}
