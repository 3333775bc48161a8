//! Candidate values of each parameter.

use super::parameters::{Auto, Role};
use super::search_space::Space;
use crate::select_mma::warpgroup;
use tilec_ir::types::Elem;

/// Rows of the smallest tile for wgmma.
const SHORTEST_TILE: i64 = 16;
/// Most tiles along the rows of the output for which tile heights are fitted to it.
const FITTED_TILES: i64 = 3;
/// Twice the largest extent to try.
const LARGEST: i64 = 1 << 13;

impl Space<'_> {
    /// Most rows of a tile, so that the output fills more than half of it: TMA loads of rows outside the tensor take
    /// time, too (4x1280x8192 on an H200: 16.6 us in tiles of 64x32, 10.5 us in tiles of 16x64).
    fn longest_rows(&self) -> i64 {
        let filled = self.divided(&self.env, 0).and_then(|n| u64::try_from(n).ok()?.checked_next_power_of_two());
        filled.and_then(|n| i64::try_from(n).ok()).map_or(i64::MAX, |n| n.max(SHORTEST_TILE))
    }

    /// Tile heights that leave little of the last tile empty, if the output has few rows. wgmma has rows in blocks of
    /// 64 and columns in blocks of 8, so such a product is computed transposed.
    fn fitted_rows(&self) -> Vec<i64> {
        let Some(rows) = self.divided(&self.env, 0).filter(|&rows| rows > 0) else { return Vec::new() };
        let mut fitted: Vec<i64> = Vec::new();
        for tiles in 1..=FITTED_TILES {
            let each = rows / tiles + i64::from(rows % tiles > 0);
            for unit in [16, 8] {
                let n = (each + unit - 1) / unit * unit;
                if (SHORTEST_TILE..=256).contains(&n) && n.count_ones() != 1 && !fitted.contains(&n) {
                    fitted.push(n);
                }
            }
        }
        fitted
    }

    /// The values that a parameter may have; the first of equally good ones is chosen. If preconditions exclude all of
    /// them, such as `G % BK == 0` for groups of 32, these are the powers of two that preconditions allow, largest
    /// first.
    pub(super) fn domain(&self, auto: &Auto) -> Vec<i64> {
        let usual = self.usual(auto.role);
        if usual.iter().any(|&x| self.allowed(auto, x)) {
            return usual;
        }
        let others = (0..LARGEST.ilog2()).rev().map(|bit| 1i64 << bit);
        let allowed: Vec<i64> = others.filter(|&x| self.allowed(auto, x)).collect();
        if allowed.is_empty() { usual } else { allowed }
    }

    /// Whether preconditions that depend on no other `auto` parameter allow a value.
    fn allowed(&self, auto: &Auto, value: i64) -> bool {
        let mut env = self.env.clone();
        self.autos.iter().for_each(|other| env[other.value] = None);
        self.bind_same(&mut env);
        env[auto.value] = Some(value);
        self.work.k.requires.iter().all(|&e| self.work.truth(&env, e) != Some(false))
    }

    /// The values to try, regardless of preconditions.
    fn usual(&self, role: Role) -> Vec<i64> {
        let product = self.work.products().next();
        // More than 64 scalar sums in a thread leave too few threads, and loop bodies longer than 64 bytes of the
        // reduction exceed the instruction cache. Both limits are fitted like the constants of the model.
        let scalar = self.scalar;
        if let Some(way) = self.warpgroups {
            // Columns of wgmma need not be a power of two.
            let columns = if way.swap { [Role::Rows, Role::WarpRows] } else { [Role::Cols, Role::WarpCols] };
            // Any multiple of 16 columns: these may divide the output evenly. Small tiles were only measured for 16-bit
            // elements.
            let measured = product.is_some_and(|p| p.inputs.size().get() == 16);
            let unit = |n: i64| if !measured && matches!(role, Role::Rows | Role::Cols) && n < 128 { 32 } else { 16 };
            let odd = (1..=256 / 16).rev().map(|n| 16 * n).filter(|&n| n % unit(n) == 0);
            let odd = odd.filter(|n: &i64| n.count_ones() != 1 && columns.contains(&role));
            // A warpgroup's columns may be an odd multiple of 8 if the tile is given.
            let whole = product.and_then(|p| self.work.extent(&self.env, p.shape[usize::from(!way.swap)]));
            let given = whole.and_then(|n| i64::try_from(n).ok()).filter(|n| n % 16 == 8 && columns.contains(&role));
            // Rows for three warpgroups.
            let rows = if way.swap { Role::Cols } else { Role::Rows };
            let three = (role == rows).then_some(warpgroup::THREE as i64);
            let fitted = match role {
                Role::Rows | Role::WarpRows if !way.swap && !way.registers => self.fitted_rows(),
                _ => Vec::new(),
            };
            match role {
                Role::Rows | Role::Cols => {
                    let tiles = [128, 256, 64, 32, 16].into_iter().chain(odd).chain(three).chain(fitted);
                    // Columns, and rows of an operand in registers, are multiples of the instruction's.
                    let most = if role == Role::Rows && !way.registers { self.longest_rows() } else { i64::MAX };
                    return tiles.filter(|&n| n <= most).collect();
                }
                Role::WarpRows | Role::WarpCols => {
                    let tiles = [256, 128, 64, 32, 16, 8].into_iter().chain(odd).chain(given.filter(|&n| n > 8));
                    return tiles.chain(fitted).collect();
                }
                // Rows of 128 bytes have a conflict-free swizzle; several of them make fewer steps. Two are the
                // default; one if a warpgroup loads an operand to registers, because nothing of its next step can be
                // multiplied meanwhile.
                Role::Depth => {
                    let elem = product.map_or(Elem::F16.size(), |p| p.inputs.size());
                    let rows = if way.registers { [128, 256, 512] } else { [256, 128, 512] };
                    let mut depths = rows.map(|row| i64::from(elem.per(row))).to_vec();
                    // The depth may not exceed that of promoted sums.
                    let promote = self.work.k.schedule.promote.and_then(|e| self.work.int(&self.env, e));
                    let promote = promote.and_then(|n| u64::try_from(n).ok());
                    let most = product.filter(|p| p.whole.is_none()).and_then(|p| {
                        let atom = warpgroup::atom(self.options.target, (p.inputs, p.acc))?;
                        warpgroup::promoted(atom, p.acc, promote)
                    });
                    if let Some(most) = most {
                        depths.retain(|&d| d.unsigned_abs() <= most);
                        if depths.is_empty() {
                            depths.push(1 << most.ilog2().min(12));
                        }
                    }
                    return depths;
                }
                Role::Groups => return vec![1],
                Role::Stages | Role::Raster | Role::Threads | Role::Extent => {}
            }
        }
        match role {
            Role::Rows | Role::Cols => vec![256, 128, 64, 32, 16],
            Role::Depth => {
                let elem = product.map_or(Elem::F32.size(), |p| p.inputs.size());
                let groups = self.autos.iter().any(|a| a.role == Role::Groups);
                let all = &[64, 32, 128, 256][..];
                let depths = &all[..2 + usize::from(!scalar || groups) + usize::from(scalar && groups)];
                depths.iter().map(|&bytes| elem.per(bytes).into()).collect()
            }
            // A warp has all elements along reduced dimensions.
            Role::WarpRows | Role::WarpCols if !self.reduced.is_empty() => vec![32, 64, 16, 128, 256],
            Role::WarpRows if scalar => vec![32, 16],
            // Wider tiles first: rows of the output are then stored in longer runs.
            Role::WarpRows => vec![32, 64, 16],
            Role::WarpCols if scalar => vec![64, 32, 16],
            // 16-bit sums leave registers for twice as many.
            Role::WarpCols if product.is_some_and(|p| p.acc.bits() == 16) => vec![64, 32, 128, 16],
            Role::WarpCols => vec![64, 32, 16],
            Role::Groups => vec![1, 2, 4, 8],
            Role::Stages | Role::Raster => vec![1],
            Role::Threads => vec![128, 256, 64, 512, 32, 1024],
            Role::Extent => (0..=12).map(|i| 1 << i).collect(),
        }
    }
}
