//! Registers of a thread beyond its tiles: a row for each reason, with the measurement.
//!
//! Tiles are everything that holds elements: sums, fragments, elements on their way to shared memory. The rest are
//! addresses, counters, predicates and temporaries. Each row was fitted to the fewest registers with which ptxas does
//! not spill (`.maxnreg`), minus those of the tiles.

use tilec_ir::atoms::{AtomRow, Unit};
use tilec_ir::target::Target;

/// Registers that addresses, counters and predicates usually need in addition to tiles.
pub(crate) const ADDRESSES: u64 = 24;

/// Registers of the addresses of each further copy in unaligned words.
pub(crate) const SHIFTED: u64 = 32;

/// Additional registers with which the assembler schedules freely; with [`ADDRESSES`] it just does not spill.
pub(crate) const COMFORT: u64 = 40;

/// Additional registers that any code needs: with fewer, all other values must be recomputed.
pub(crate) const LEAST: u64 = 8;

/// Accesses of a thread and tile whose addresses are covered by [`ADDRESSES`].
pub(crate) const USUAL_ACCESSES: u64 = 4;

/// The same for accesses whose addresses are computed from the digits of an index: each has a pointer, which takes two
/// registers.
pub(crate) const USUAL_POINTERS: u64 = 2;

/// Most registers of an accumulator with its partial sums, so that addresses have room.
pub(crate) const ACCUMULATORS: u64 = 192;

/// Registers of an epilogue's arithmetic, for the elements that are computed at once, without addresses.
pub(crate) const EPILOGUE: u64 = 32;

/// Registers for each broadcast tensor, its addresses and predicates, next to a matrix that TMA has loaded as a whole
/// (ptxas 13: no `gemm_fused.tile` of f16 and bf16 spills with 128 registers of sums and 64 of C out of 240, except
/// with `erf`; with bytes it does).
pub(crate) const COMBINED: u64 = 8;

/// Most registers of functions with which accumulators of warpgroups are combined with pieces of a matrix, if the whole
/// matrix does not fit: `erf` takes more, and then a few addresses are spilled (ptxas 13: 16 bytes for
/// `gemm_fused.tile` in tiles of 128x256).
const FEW: u64 = 16;

/// Registers for functions and broadcast operands while a thread combines its sums with a matrix, which is loaded in
/// pieces if not all of this fits. None if functions take so many that loading in pieces does not help.
pub(crate) fn combining(functions: u64, repeated: u64) -> u64 {
    if (1..=FEW).contains(&functions) { functions + COMBINED * repeated } else { 0 }
}

/// Registers for unpacking bytes and halves (ptxas 13: 51 next to f16 accumulators of warpgroups, where 40 are usual).
pub(crate) const UNPACKED: u64 = 16;

/// The kind of product instruction.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) enum Products {
    /// None.
    #[default]
    None,
    /// `mma.sync` on a target without `ldmatrix`: fragments are loaded word by word, as they are used.
    ByWords,
    /// Warps.
    Warps,
    /// `mma.sync` by an older instruction that the target emulates.
    MadeOfOthers,
    /// Warpgroups, with operands in shared memory.
    Warpgroups,
}

impl Products {
    /// The kind of an instruction on a target.
    pub(crate) fn of(row: &AtomRow, target: Target) -> Products {
        match row.unit {
            Unit::Warpgroup(_) => Products::Warpgroups,
            Unit::Warp if row.tensor_core && target.cc() > row.last_native_cc => Products::MadeOfOthers,
            Unit::Warp if row.tensor_core && !target.has_matrix_loads() => Products::ByWords,
            Unit::Warp => Products::Warps,
        }
    }
}

/// Properties of code that need registers in addition to tiles.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct Code {
    /// The product instructions.
    pub(crate) products: Products,
    /// For wgmma products with an operand in registers: registers of the accumulator.
    pub(crate) loaded: Option<u64>,
    /// Whether that operand is computed.
    pub(crate) computed: bool,
    /// Whether accumulators of warpgroups are f16, which the epilogue unpacks.
    pub(crate) halves: bool,
    /// Whether tiles pass through registers in accesses of less than 16 bytes, or are transposed there.
    pub(crate) pieces: bool,
    /// Whether unaligned words of several tiles are held in registers to be shifted into place.
    pub(crate) shifted: bool,
    /// Accesses of copies beyond the usual number for a thread and tile.
    pub(crate) pointers: u64,
    /// The same for addresses that are computed from the digits of an index.
    pub(crate) digits: u64,
    /// All accesses of a thread to tensors that several loops with products copy.
    pub(crate) again: u64,
    /// Registers of accumulators that lanes exchange before they are stored.
    pub(crate) exchanged: u64,
    /// Whether functions are computed after loops: then only the larger of both needs counts.
    pub(crate) behind: bool,
    /// Registers that functions take (`analysis/functions.rs`).
    pub(crate) functions: u64,
    /// Number of broadcast tensors that are combined with results while a matrix is loaded next to the accumulators, or
    /// an operand comes from registers.
    pub(crate) repeated: u64,
}

/// Where a reason applies.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Place {
    /// Everywhere.
    All,
    /// In loops, for their copies.
    Loops,
    /// Where functions are computed.
    Functions,
}

/// A reason for additional registers.
struct Row {
    /// The reason, as short text.
    what: &'static str,
    place: Place,
    /// How many.
    takes: fn(&Code) -> u64,
}

/// All reasons; their registers add up. Comments have the measurements of each number.
const ROWS: [Row; 12] = [
    Row {
        what: "addresses, counters and predicates",
        place: Place::All,
        // ptxas 13, sm_80: 19 to 27 next to 112 to 192 registers of sums and fragments of gemm.tile with warp tiles of
        // 64x64 and 64x32; 12 to 20 for attention.tile.
        takes: |code| match code.products {
            // ptxas 12.9, sm_70: 9 less to 19 more than the tiles of gemm.tile, because fragments are never complete.
            Products::None | Products::ByWords => LEAST,
            Products::Warps | Products::MadeOfOthers | Products::Warpgroups => ADDRESSES,
        },
    },
    Row {
        what: "a product instruction that is emulated by smaller ones",
        place: Place::All,
        // ptxas 13, sm_80: 60 to 80 for gemm_explicit.tile, including 16 of fragments.
        takes: |code| if code.products == Products::MadeOfOthers { 48 } else { 0 },
    },
    Row {
        what: "tiles that pass through registers in pieces",
        place: Place::Loops,
        // ptxas 13: with 16 less, a few programs spill (gemm.tile with ALIGN=1).
        takes: |code| if code.pieces { 56 } else { 0 },
    },
    Row {
        what: "loaded words of unaligned tiles, before they are shifted",
        place: Place::Loops,
        // ptxas 13, sm_80: 39 to 59 in total, next to tiles and the words that cover them (gemm.tile with ALIGN=1).
        takes: |code| if code.shifted && !code.pieces { SHIFTED } else { 0 },
    },
    Row {
        what: "addresses of many copies",
        place: Place::Loops,
        // ptxas 13, sm_80: attention.tile takes 243 with 8 accesses of a thread for K, and 259 with 16. conv.tile with
        // ALIGN=1, where each element has its own address, takes 321 with 32 accesses and 226 with 16.
        takes: |code| match (code.pieces, code.shifted) {
            (true, _) => 2 * code.digits,
            (false, true) => 0,
            (false, false) => (code.pointers * 3 / 2 + code.digits * 2).min(ADDRESSES),
        },
    },
    Row {
        what: "addresses that several loops share",
        place: Place::Loops,
        // ptxas 13, sm_80: two loops with 16 accesses each to the same rows take 323 next to 176 of tiles: the start
        // addresses are computed in front of both loops, and stay live while the first one moves its own pointers. With
        // four such loops whose tiles pass through registers in pieces, none spills.
        takes: |code| if code.pieces { 0 } else { 4 * code.again },
    },
    Row {
        what: "descriptors and addresses of wgmma",
        place: Place::All,
        // ptxas 13, sm_90a: 20 to 28 in total for attention.tile, next to 132 to 164 of tiles.
        takes: |code| if code.products == Products::Warpgroups { 4 } else { 0 },
    },
    Row {
        what: "accumulators of wgmma that lanes exchange",
        place: Place::All,
        // ptxas 13, sm_90a: gemm.tile takes 32 in total next to 64 of sums, 33 to 48 next to 128, and 54 next to 192;
        // conv.tile with NCHW=1 takes 34.
        takes: |code| match code.loaded {
            // These also have an address for each row, which the next row counts.
            Some(_) => 12,
            None if code.products == Products::Warpgroups => code.exchanged / 8,
            None => 0,
        },
    },
    Row {
        what: "a wgmma operand in registers",
        place: Place::All,
        // ptxas 13, sm_90a: gemm.tile of tf32 with row-major B takes 46 next to 80 of tiles, and 94 next to 144: each
        // row of results has an address. gemm_w4a16.tile and gemm_w8a16.tile with tiles of 256x128 do not spill with
        // 128 of sums and 32 of the operand out of 232.
        takes: |code| code.loaded.map_or(0, |sums| 16 + if code.computed { 0 } else { sums / 2 }),
    },
    Row {
        what: "f16 accumulators that are unpacked",
        place: Place::All,
        // ptxas 13, sm_90a: 51 in total for gemm.tile with Acc=f16.
        takes: |code| if code.halves { UNPACKED } else { 0 },
    },
    Row {
        what: "math functions and their operands",
        place: Place::Functions,
        // ptxas 13, sm_80: gemm_fused.tile takes 243 with erf, 216 with tanh and 208 with neither, for warp tiles of
        // 64x64.
        takes: |code| match (code.functions, code.products) {
            (0, _) => 0,
            (n, Products::ByWords) => 4 + n,
            (n, Products::Warps | Products::MadeOfOthers) => 16 + n,
            (n, _) => n,
        },
    },
    Row {
        what: "broadcast tensors",
        place: Place::All,
        // ptxas 13, sm_90a: 53 in total next to sums and a residual, with two broadcast tensors (gemm_fused.tile).
        takes: |code| if code.products == Products::Warpgroups { 12 * code.repeated } else { 0 },
    },
];

/// The reasons that apply, with their registers. If functions are computed after loops, only the larger of the two
/// groups counts.
pub(crate) fn reasons(code: &Code) -> impl Iterator<Item = (&'static str, u64)> {
    let of = |place: Place| ROWS.iter().filter(move |row| row.place == place);
    let sum = |place: Place| of(place).map(|row| (row.takes)(code)).sum::<u64>();
    let less = if sum(Place::Loops) < sum(Place::Functions) { Place::Loops } else { Place::Functions };
    let rows = ROWS.iter().filter(move |row| !code.behind || row.place != less);
    rows.map(|row| (row.what, (row.takes)(code))).filter(|&(_, n)| n > 0)
}

/// Registers that code needs in addition to its tiles.
pub(crate) fn overhead(code: &Code) -> u64 {
    reasons(code).map(|(_, n)| n).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_product_needs_is_least() {
        assert_eq!(overhead(&Code::default()), LEAST);
    }

    #[test]
    fn loops_and_functions_add_up_only_where_they_are_in_one_place() {
        let code = Code { products: Products::Warps, shifted: true, functions: 24, ..Code::default() };
        assert_eq!(overhead(&code), ADDRESSES + SHIFTED + 16 + 24);
        assert_eq!(overhead(&Code { behind: true, ..code }), ADDRESSES + 16 + 24);
        assert_eq!(overhead(&Code { behind: true, functions: 0, ..code }), ADDRESSES + SHIFTED);
    }

    #[test]
    fn accesses_take_no_more_than_there_are_addresses_unless_each_has_its_own_place() {
        let code = Code { products: Products::Warps, pointers: 100, digits: 28, ..Code::default() };
        assert_eq!(overhead(&code), 2 * ADDRESSES);
        assert_eq!(overhead(&Code { pieces: true, ..code }), ADDRESSES + 56 + 2 * 28);
    }

    #[test]
    fn warpgroups_exchange_sums() {
        let code = Code { products: Products::Warpgroups, ..Code::default() };
        let exchanged = |exchanged| overhead(&Code { exchanged, ..code });
        assert_eq!([64, 128, 192].map(exchanged), [36, 44, 52]);
    }

    #[test]
    fn reasons_add_up() {
        let code = Code { products: Products::MadeOfOthers, pointers: 4, again: 8, ..Code::default() };
        assert_eq!(reasons(&code).map(|(_, n)| n).sum::<u64>(), overhead(&code));
        assert!(reasons(&code).all(|(what, n)| n > 0 && !what.is_empty()));
    }
}
