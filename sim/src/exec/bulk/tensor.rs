//! Boxes of tensors: source and destination of each byte.

use crate::exec::access::{addresses, misaligned, window};
use crate::exec::cta::Cta;
use crate::exec::fail::Fail;
use crate::exec::in_flight::{Piece, Plan};
use crate::exec::warp::Warp;
use crate::program::Addr;
use crate::program::types::{R, Space};
use crate::race::Issuer;
use crate::report::ReportKind;
use crate::tensor_map::{BYTES, Outside, Pixels, TensorMap};

/// Alignment in bytes of a box in shared memory (PTX 9.7.9.27.1.2).
const BOX_ALIGN: u64 = 128;

/// Alignment in bytes of a box along the contiguous dimension of the tensor. Otherwise an H100 ends the kernel with an
/// illegal instruction (measured for loads; for stores see tile-ai/tilelang#2527). The PTX ISA does not say so.
const ROW_ALIGN: i64 = 16;

impl Cta<'_> {
    /// The map at an address of one lane.
    fn map(&self, w: &Warp, lane: usize, map: Addr) -> Result<TensorMap, Box<Fail>> {
        let generic = addresses(w, map, 1 << lane)?[lane];
        let (space, at) = window(generic);
        if at % 64 != 0 {
            return Err(misaligned(lane, generic, 64));
        }
        let mut bytes = [0u8; BYTES];
        let no_map = |what: &str| {
            let message = format!("there is no map of a tensor at {generic:#x}: {what}");
            Fail::new(ReportKind::Invalid, message).at(lane).address(generic)
        };
        match space {
            Space::Param => {
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                match self.params.get(at..at.saturating_add(BYTES)) {
                    Some(found) => bytes.copy_from_slice(found),
                    None => return Err(no_map("the parameters end before")),
                }
            }
            Space::Global => {
                let alloc = match self.device.find(at) {
                    Some(alloc) if alloc.holds(at, BYTES as u64) => alloc,
                    _ => return Err(no_map("it is outside every allocation (`cvta.param` makes a generic address)")),
                };
                let start = (at - alloc.base) as usize;
                for (i, word) in bytes.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                    *word = alloc.word(start + 4 * i).to_le_bytes();
                }
            }
            _ => return Err(no_map("maps are parameters, constants, or in global memory")),
        }
        TensorMap::decode(&bytes).ok_or_else(|| no_map("these bytes were made by nobody who makes maps"))
    }

    /// The pieces of a copy of a box.
    pub(super) fn plan_tensor(
        &mut self,
        w: &Warp,
        who: Issuer,
        (map, at, offsets): (Addr, &[R], Option<&[R]>),
        shared: u64,
        stores: bool,
    ) -> Result<Plan, Box<Fail>> {
        let lane = who.lane;
        let map = self.map(w, lane, map)?;
        if map.dims.len() != at.len() {
            let message = format!("the map is of {} dimensions, the instruction of {}", map.dims.len(), at.len());
            return Err(Fail::new(ReportKind::Invalid, message).at(lane));
        }
        let mut first = Vec::with_capacity(at.len());
        for (dim, r) in at.iter().enumerate() {
            let slot = &w.w[*r as usize];
            if slot.ok >> lane & 1 == 0 {
                return Err(
                    Fail::new(ReportKind::Undefined, format!("coordinate {dim} of a bulk copy is undefined")).at(lane)
                );
            }
            let c = slot.v[lane] as i32;
            if stores && c < 0 {
                let message = format!("coordinate {dim} of a store is {c}: only loads may begin before a tensor");
                return Err(Fail::new(ReportKind::Invalid, message).at(lane));
            }
            first.push(i64::from(c));
        }
        let offsets = self.pixel_offsets(w, lane, &map, offsets)?;
        if !shared.is_multiple_of(BOX_ALIGN) {
            return Err(misaligned(lane, shared, BOX_ALIGN).in_shared(shared));
        }
        let row = first[0] * map.element.bytes() as i64;
        if row % ROW_ALIGN != 0 {
            let message = format!("a box begins {row} bytes into its row: it must be a multiple of {ROW_ALIGN}");
            return Err(Fail::new(ReportKind::Invalid, message).at(lane));
        }
        let bytes = map.box_bytes();
        if bytes > 1 << 20 {
            let message = format!("a box of {bytes} bytes is larger than shared memory");
            return Err(Fail::new(ReportKind::Invalid, message).at(lane));
        }
        Ok(Plan {
            pieces: match &map.pixels {
                Some(box_of) => pixels(&map, box_of, (&first, &offsets), shared),
                None => pieces(&map, &first, shared),
            },
            fill: fill(&map),
            span: (shared as u32, bytes as u32),
            reach: if map.swizzle.mask() == 0 { 0 } else { bytes.next_multiple_of(BOX_ALIGN) },
            element: Some(map.element),
            from_shared: false,
            width: 16,
        })
    }

    /// The offsets of an im2col instruction; checks that the map has that mode, too.
    fn pixel_offsets(
        &self,
        w: &Warp,
        lane: usize,
        map: &TensorMap,
        offsets: Option<&[R]>,
    ) -> Result<Vec<i64>, Box<Fail>> {
        let (Some(_), Some(offsets)) = (&map.pixels, offsets) else {
            if map.pixels.is_some() == offsets.is_some() {
                return Ok(Vec::new());
            }
            let message = "the map and the instruction are of different modes, tile and im2col";
            return Err(Fail::new(ReportKind::Invalid, message).at(lane));
        };
        let mut all = Vec::with_capacity(offsets.len());
        for r in offsets {
            let slot = &w.w[*r as usize];
            if slot.ok >> lane & 1 == 0 {
                return Err(Fail::new(ReportKind::Undefined, "an offset of a bulk copy is undefined").at(lane));
            }
            let (offset, most) = (slot.v[lane] & 0xFFFF, Pixels::largest_offset(offsets.len()));
            if offset > most {
                let message = format!("an offset of {offset} pixels: 0 to {most} are possible");
                return Err(Fail::new(ReportKind::Invalid, message).at(lane));
            }
            all.push(i64::from(offset));
        }
        Ok(all)
    }
}

/// The 16 bytes that elements outside of the tensor read as.
fn fill(map: &TensorMap) -> [u8; 16] {
    let nan = map.element.nan().to_le_bytes();
    let size = map.element.bytes() as usize;
    match map.outside {
        Outside::Zero => [0; 16],
        Outside::Nan => std::array::from_fn(|i| nan[i % size]),
    }
}

/// The pieces of a box that begins at `first` in the tensor, and at `shared` in shared memory.
fn pieces(map: &TensorMap, first: &[i64], shared: u64) -> Vec<Piece> {
    let (rank, row, size) = (map.dims.len(), map.row_bytes(), map.element.bytes() as i64);
    let mask = map.swizzle.mask();
    let mut out = Vec::with_capacity((map.box_bytes() / 16) as usize);
    let mut index = vec![0u64; rank];
    // The bytes of a row that are inside, along the innermost dimension.
    let inside = |c: i64, dim: usize| c >= 0 && (c as u64) < map.dims[dim];
    let low = (-first[0]).clamp(0, i64::from(map.box_dims[0])) * size;
    let high = (map.dims[0] as i64 - first[0]).clamp(0, i64::from(map.box_dims[0])) * size;
    for number in 0..map.box_bytes() / row {
        let place = |dim: usize| first[dim] + (index[dim] * u64::from(map.step(dim))) as i64;
        let exists = (1..rank).all(|dim| inside(place(dim), dim));
        let start = (1..rank)
            .fold(map.address as i64, |at, dim| at.wrapping_add(place(dim).wrapping_mul(map.strides[dim - 1] as i64)));
        for unit in (0..row).step_by(16) {
            let at = shared + number * row + unit;
            let part = |end: i64| if exists { (end - unit as i64).clamp(0, 16) as u8 } else { 0 };
            let (from, to) = (part(low), part(high));
            out.push(Piece {
                shared: (at ^ (at >> 3 & mask)) as u32,
                global: start.wrapping_add(first[0] * size + unit as i64) as u64,
                from,
                to,
            });
        }
        for dim in 1..rank {
            index[dim] += 1;
            if index[dim] < map.moved(dim) {
                break;
            }
            index[dim] = 0;
        }
    }
    out
}

/// The pieces of consecutive pixels from `first` on, all moved by `offsets` (PTX 5.5.4).
fn pixels(map: &TensorMap, of: &Pixels, (first, offsets): (&[i64], &[i64]), shared: u64) -> Vec<Piece> {
    let (rank, row, size) = (map.dims.len(), map.row_bytes(), map.element.bytes() as i64);
    let mask = map.swizzle.mask();
    let mut out = Vec::with_capacity((map.box_bytes() / 16) as usize);
    let mut at = first.to_vec();
    let low = (-first[0]).clamp(0, i64::from(map.box_dims[0])) * size;
    let high = (map.dims[0] as i64 - first[0]).clamp(0, i64::from(map.box_dims[0])) * size;
    for number in 0..u64::from(of.count) {
        let place = |dim: usize| at[dim] + offsets.get(dim - 1).copied().unwrap_or(0);
        let exists = (1..rank).all(|dim| place(dim) >= 0 && (place(dim) as u64) < map.dims[dim]);
        let start = (1..rank).fold(map.address as i64, |sum, dim| {
            sum.wrapping_add(place(dim).wrapping_mul(map.strides[dim - 1] as i64))
        });
        for unit in (0..row).step_by(16) {
            let to = shared + number * row + unit;
            let part = |end: i64| if exists { (end - unit as i64).clamp(0, 16) as u8 } else { 0 };
            out.push(Piece {
                shared: (to ^ (to >> 3 & mask)) as u32,
                global: start.wrapping_add(first[0] * size + unit as i64) as u64,
                from: part(low),
                to: part(high),
            });
        }
        // The next pixel of the row, then of the box, then of the images.
        for dim in 1..rank {
            if dim == rank - 1 {
                at[dim] += 1;
                break;
            }
            at[dim] += i64::from(map.step(dim));
            if at[dim] < map.dims[dim] as i64 + i64::from(of.upper[dim - 1]) {
                break;
            }
            at[dim] = i64::from(of.lower[dim - 1]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    /// Pixels of two images of 2 x 3, with a step of 2 along rows, and padding of one around them.
    #[test]
    fn pixels_walk_through_the_box() {
        let map = TensorMap::packed(TensorElement::F16, 0x1000, &[8, 3, 2, 2], &[8, 1, 1, 1]);
        let of = Pixels { lower: vec![-1, -1], upper: vec![-1, -1], count: 9 };
        let map = TensorMap { element_strides: vec![1, 2, 1, 1], pixels: Some(of.clone()), ..map };
        assert_eq!(map.encode().ok().and_then(|bytes| TensorMap::decode(&bytes)), Some(map.clone()));
        // The places -1 and 1 of each row, the rows -1 and 0 of each image; moved by one to the right and one down.
        let all = pixels(&map, &of, (&[0, -1, -1, 0], &[1, 1]), 0x400);
        let found: Vec<Option<u64>> = all.iter().map(|p| (p.from < p.to).then(|| (p.global - 0x1000) / 16)).collect();
        assert_eq!(found, [0, 2, 3, 5, 6, 8, 9, 11, 12].map(|n| (n < 12).then_some(n)));
        let moved = pixels(&map, &of, (&[0, 1, -1, 0], &[0, 0]), 0x400);
        let found: Vec<Option<u64>> =
            moved.iter().take(4).map(|p| (p.from < p.to).then(|| (p.global - 0x1000) / 16)).collect();
        assert_eq!(found, [None, None, Some(1), None]);
    }

    use super::*;
    use crate::tensor_map::{Swizzle, TensorElement};

    #[test]
    fn boxes_cover_what_they_move() {
        let map = TensorMap::packed(TensorElement::F32, 0x1000, &[10, 6, 3], &[4, 4, 2]);
        let map = TensorMap { strides: vec![48, 288], element_strides: vec![3, 2, 1], ..map };
        let all = pieces(&map, &[8, 3, 2], 0x400);
        // Two rows (each second of four), in two layers, of which the second is outside.
        assert_eq!(all.len(), 4);
        let first = all[0];
        assert_eq!((first.shared, first.global, first.from, first.to), (0x400, 0x1000 + 2 * 288 + 3 * 48 + 32, 0, 8));
        assert_eq!((all[1].global, all[1].shared), (0x1000 + 2 * 288 + 5 * 48 + 32, 0x410));
        assert!(all[2..].iter().all(|p| p.from >= p.to));
        let before = pieces(&map, &[-1, 0, 0], 0x400);
        assert_eq!((before[0].from, before[0].to, before[0].global), (4, 16, 0x1000 - 4));
    }

    #[test]
    fn swizzles_permute_units_of_rows() {
        let map = TensorMap::packed(TensorElement::F16, 0x1000, &[64, 16], &[64, 16]);
        let map = TensorMap { swizzle: Swizzle::Bytes128, ..map };
        let all = pieces(&map, &[0, 0], 0x800);
        for (i, piece) in all.iter().enumerate() {
            let (row, unit) = (i / 8, i % 8);
            assert_eq!(piece.shared as usize, 0x800 + 128 * row + 16 * (unit ^ (row % 8)));
        }
        // The swizzle depends on the address, not on the position in the box.
        let shifted = pieces(&map, &[0, 0], 0x880);
        assert_eq!(shifted[0].shared, 0x890);
    }
}
