//! Registers of a thread beyond its tiles: a row for each reason, with the measurement.
//!
//! Tiles are everything that holds elements: sums, fragments, elements on their way to shared memory. The rest are addresses, counters, predicates and
//! temporaries. Each row was fitted to the fewest registers with which ptxas does not spill (`.maxnreg`), less those of the tiles.

use tilec_ir::atoms::{AtomRow, Unit};
use tilec_ir::target::Target;

/// Registers that addresses, counters and predicates usually need in addition to tiles.
pub(crate) const ADDRESSES: u64 = 24;

/// Registers of the addresses of a copy in unaligned words, beyond those of the first such.
pub(crate) const SHIFTED: u64 = 32;

/// Additional registers with which the assembler schedules freely; with [`ADDRESSES`] it just does not spill.
pub(crate) const COMFORT: u64 = 40;

/// Additional registers that any code needs: with fewer, all other values must be recomputed.
pub(crate) const LEAST: u64 = 8;

/// Accesses of a thread and tile whose addresses are among those that go with any tiles.
pub(crate) const USUAL_ACCESSES: u64 = 4;

/// The same of accesses whose places are found by the digits of an index: each has a pointer, which is two registers.
pub(crate) const USUAL_POINTERS: u64 = 2;

/// Registers of a thread that an accumulator and parts of its sums may take, so that addresses find room beside it.
pub(crate) const ACCUMULATORS: u64 = 192;

/// Registers of a thread that the arithmetic of an epilogue takes beside addresses, for the elements that are computed at once.
pub(crate) const EPILOGUE: u64 = 32;

/// Registers of each tensor that repeats, addresses and predicates beside a matrix that TMA copies have loaded as a whole (ptxas 13: none of
/// `gemm_fused.tile` of f16 and bf16 spills with 128 registers of sums and 64 of C of 240, but with `erf`; of bytes it does).
pub(crate) const COMBINED: u64 = 8;

/// Registers of functions beside which sums of warpgroups are combined with pieces of a matrix, where the matrix as a whole leaves none: `erf` takes more, and then a few addresses are
/// spilled (ptxas 13: 16 bytes of `gemm_fused.tile` in tiles of 128x256).
const FEW: u64 = 16;

/// Registers that a thread holds for functions, and for what repeats beside them, while it combines its sums with a matrix that is loaded piece by piece where not all of
/// this fits: none where functions take so many that this is no help.
pub(crate) fn combining(functions: u64, repeated: u64) -> u64 {
    if (1..=FEW).contains(&functions) { functions + COMBINED * repeated } else { 0 }
}

/// Registers of bytes and halves that are taken apart (ptxas 13: 51 beside sums of halves of warpgroups, where 40 are usual).
pub(crate) const UNPACKED: u64 = 16;

/// The product instructions.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) enum Products {
    /// None.
    #[default]
    None,
    /// Warps of a target that has no loads of matrices: fragments are loaded word by word, as they are used.
    ByWords,
    /// Warps.
    Warps,
    /// Warps, by an instruction that is older than the target and is made of others.
    MadeOfOthers,
    /// Warpgroups, with operands in shared memory.
    Warpgroups,
}

impl Products {
    /// Those of an instruction on a target.
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
    /// Of warpgroups' products with an operand in registers: registers of the sums.
    pub(crate) loaded: Option<u64>,
    /// Whether that operand is computed of others.
    pub(crate) computed: bool,
    /// Whether sums of warpgroups are halves, which their epilogue takes apart.
    pub(crate) halves: bool,
    /// Whether tiles that pass through registers do so in accesses of less than 16 bytes, or are transposed there.
    pub(crate) pieces: bool,
    /// Whether words of several tiles wait in registers to be shifted into place.
    pub(crate) shifted: bool,
    /// Accesses of copies beyond the usual ones of a thread and tile.
    pub(crate) pointers: u64,
    /// The same where places are found by the digits of an index.
    pub(crate) digits: u64,
    /// All accesses of a thread to tensors that several loops of products copy.
    pub(crate) again: u64,
    /// Registers of sums that lanes exchange before they are stored.
    pub(crate) exchanged: u64,
    /// Whether functions are computed where loops are over: of what loops and functions take the larger counts then.
    pub(crate) behind: bool,
    /// Registers that functions take (`analysis/functions.rs`).
    pub(crate) functions: u64,
    /// Tensors that repeat and are combined with results where a matrix is loaded beside sums, or an operand comes from registers.
    pub(crate) repeated: u64,
}

/// Where code needs registers for a reason.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Place {
    /// Everywhere.
    All,
    /// In loops, for what they copy.
    Loops,
    /// Where functions are computed.
    Functions,
}

/// A reason for which code needs registers.
struct Row {
    /// The reason, in a few words.
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
        // ptxas 13, sm_80: 19 to 27 beside 112 to 192 of sums and fragments of gemm.tile with tiles of warps of 64x64 and 64x32; 12 to 20 of attention.tile.
        takes: |code| match code.products {
            // ptxas 12.9, sm_70: 9 less to 19 more than the tiles of gemm.tile, as fragments are never there as a whole.
            Products::None | Products::ByWords => LEAST,
            Products::Warps | Products::MadeOfOthers | Products::Warpgroups => ADDRESSES,
        },
    },
    Row {
        what: "a product instruction that is emulated by smaller ones",
        place: Place::All,
        // ptxas 13, sm_80: 60 to 80 of gemm_explicit.tile, of which fragments take 16.
        takes: |code| if code.products == Products::MadeOfOthers { 48 } else { 0 },
    },
    Row {
        what: "tiles that pass through registers in pieces",
        place: Place::Loops,
        // ptxas 13: with 16 less a few programs spill (gemm.tile of ALIGN=1).
        takes: |code| if code.pieces { 56 } else { 0 },
    },
    Row {
        what: "loaded words of unaligned tiles, before they are shifted",
        place: Place::Loops,
        // ptxas 13, sm_80: 39 to 59 in all beside tiles and the words that cover them (gemm.tile of ALIGN=1).
        takes: |code| if code.shifted && !code.pieces { SHIFTED } else { 0 },
    },
    Row {
        what: "addresses of many copies",
        place: Place::Loops,
        // ptxas 13, sm_80: attention.tile takes 243 with 8 accesses of a thread for K and 259 with 16; conv.tile of ALIGN=1, where each element has a place of its own, 321 with 32 of them and 226 with 16.
        takes: |code| match (code.pieces, code.shifted) {
            (true, _) => 2 * code.digits,
            (false, true) => 0,
            (false, false) => (code.pointers * 3 / 2 + code.digits * 2).min(ADDRESSES),
        },
    },
    Row {
        what: "addresses that several loops share",
        place: Place::Loops,
        // ptxas 13, sm_80: two loops with 16 accesses each of the same rows take 323 beside 176 of tiles: what both begin with is computed in front of
        // them, and stays while the first one moves pointers of its own. Of four such loops whose tiles pass through registers in pieces none spills.
        takes: |code| if code.pieces { 0 } else { 4 * code.again },
    },
    Row {
        what: "descriptors and addresses of wgmma",
        place: Place::All,
        // ptxas 13, sm_90a: 20 to 28 in all of attention.tile beside 132 to 164 of tiles.
        takes: |code| if code.products == Products::Warpgroups { 4 } else { 0 },
    },
    Row {
        what: "accumulators of wgmma that lanes exchange",
        place: Place::All,
        // ptxas 13, sm_90a: gemm.tile takes 32 in all beside 64 of sums, 33 to 48 beside 128 and 54 beside 192; conv.tile of NCHW=1 34.
        takes: |code| match code.loaded {
            // These have an address for each row beside, which the next row counts.
            Some(_) => 12,
            None if code.products == Products::Warpgroups => code.exchanged / 8,
            None => 0,
        },
    },
    Row {
        what: "a wgmma operand in registers",
        place: Place::All,
        // ptxas 13, sm_90a: gemm.tile of tf32 with B by rows takes 46 beside 80 of tiles, 94 beside 144: each row of results has an address.
        // gemm_w4a16.tile and gemm_w8a16.tile of 256x128 do not spill with 128 of sums and 32 of the operand of 232.
        takes: |code| code.loaded.map_or(0, |sums| 16 + if code.computed { 0 } else { sums / 2 }),
    },
    Row {
        what: "f16 accumulators that are unpacked",
        place: Place::All,
        // ptxas 13, sm_90a: 51 in all of gemm.tile of Acc=f16.
        takes: |code| if code.halves { UNPACKED } else { 0 },
    },
    Row {
        what: "math functions and their operands",
        place: Place::Functions,
        // ptxas 13, sm_80: gemm_fused.tile takes 243 with erf, 216 with tanh and 208 with neither, tiles of warps of 64x64.
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
        // ptxas 13, sm_90a: 53 in all beside sums and a residual, with two of them (gemm_fused.tile).
        takes: |code| if code.products == Products::Warpgroups { 12 * code.repeated } else { 0 },
    },
];

/// The reasons that hold, and what each takes: where functions are computed after loops, of those of loops and of functions the ones that take more.
pub(crate) fn reasons(code: &Code) -> impl Iterator<Item = (&'static str, u64)> {
    let of = |place: Place| ROWS.iter().filter(move |row| row.place == place);
    let sum = |place: Place| of(place).map(|row| (row.takes)(code)).sum::<u64>();
    let less = if sum(Place::Loops) < sum(Place::Functions) { Place::Loops } else { Place::Functions };
    let rows = ROWS.iter().filter(move |row| !code.behind || row.place != less);
    rows.map(|row| (row.what, (row.takes)(code))).filter(|&(_, n)| n > 0)
}

/// Registers that code needs in addition to its tiles.
pub(crate) fn beside(code: &Code) -> u64 {
    reasons(code).map(|(_, n)| n).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_product_needs_is_least() {
        assert_eq!(beside(&Code::default()), LEAST);
    }

    #[test]
    fn loops_and_functions_add_up_only_where_they_are_in_one_place() {
        let code = Code { products: Products::Warps, shifted: true, functions: 24, ..Code::default() };
        assert_eq!(beside(&code), ADDRESSES + SHIFTED + 16 + 24);
        assert_eq!(beside(&Code { behind: true, ..code }), ADDRESSES + 16 + 24);
        assert_eq!(beside(&Code { behind: true, functions: 0, ..code }), ADDRESSES + SHIFTED);
    }

    #[test]
    fn accesses_take_no_more_than_there_are_addresses_unless_each_has_its_own_place() {
        let code = Code { products: Products::Warps, pointers: 100, digits: 28, ..Code::default() };
        assert_eq!(beside(&code), 2 * ADDRESSES);
        assert_eq!(beside(&Code { pieces: true, ..code }), ADDRESSES + 56 + 2 * 28);
    }

    #[test]
    fn warpgroups_exchange_sums() {
        let code = Code { products: Products::Warpgroups, ..Code::default() };
        let exchanged = |exchanged| beside(&Code { exchanged, ..code });
        assert_eq!([64, 128, 192].map(exchanged), [36, 44, 52]);
    }

    #[test]
    fn reasons_add_up() {
        let code = Code { products: Products::MadeOfOthers, pointers: 4, again: 8, ..Code::default() };
        assert_eq!(reasons(&code).map(|(_, n)| n).sum::<u64>(), beside(&code));
        assert!(reasons(&code).all(|(what, n)| n > 0 && !what.is_empty()));
    }
}
