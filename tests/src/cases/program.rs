//! Programs of problems: an example with definitions.

use crate::number::Format;
use tilec::{CompileOptions, Target};
use tilec_ir::kernel::ConstValue;

/// The program.
pub const GEMM: &str = include_str!("../../../examples/gemm.tile");
/// Name of the program in messages.
pub(crate) const NAME: &str = "examples/gemm.tile";

/// Which example solves a problem.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Form {
    /// `gemm.tile`.
    Plain,
    /// `gemm_splitk.tile`: sums over slices of the reduction, and a kernel that adds them up.
    Split,
    /// `gemm_batched.tile`.
    Batched,
    /// `gemm_mixed.tile`: A and B have different types.
    Mixed,
}

impl Form {
    /// The file, and its text.
    pub(super) fn example(self) -> (&'static str, &'static str) {
        match self {
            Form::Plain => (NAME, GEMM),
            Form::Split => ("examples/gemm_splitk.tile", include_str!("../../../examples/gemm_splitk.tile")),
            Form::Batched => ("examples/gemm_batched.tile", include_str!("../../../examples/gemm_batched.tile")),
            Form::Mixed => ("examples/gemm_mixed.tile", include_str!("../../../examples/gemm_mixed.tile")),
        }
    }

    /// As part of a name.
    pub(super) fn word(self) -> &'static str {
        match self {
            Form::Plain => "",
            Form::Split => "splitk_",
            Form::Batched => "batched_",
            Form::Mixed => "mixed_",
        }
    }
}

/// Block and warp tiles that the programs use, a large and a small one: BM, BN, BK, WM, WN.
type Tiles = [[u32; 5]; 2];

/// Contiguous dimension of a matrix.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Order {
    /// The last.
    Row,
    /// The first.
    Col,
}

impl Order {
    pub(super) const BOTH: [Order; 2] = [Order::Row, Order::Col];

    pub(super) fn name(self) -> &'static str {
        if self == Order::Row { "row" } else { "col" }
    }

    /// The leading dimension of a packed matrix.
    pub(super) fn packed(self, rows: i64, cols: i64) -> i64 {
        if self == Order::Row { cols } else { rows }
    }
}

/// A variant of `gemm.tile`.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Program {
    /// The target it is compiled for.
    pub target: Target,
    /// Whether products are scalar on every target.
    pub fma: bool,
    /// Which example it is.
    pub form: Form,
    /// Element types of A and B.
    pub inputs: [Format; 2],
    /// Orders of A, B and C.
    pub orders: [Order; 3],
    /// Accumulator.
    pub acc: Format,
    /// Element type of C.
    pub out: Format,
    /// The promised divisors of the rows (columns) of A, B and C, in elements.
    pub align: [i64; 3],
    /// Index into [`Program::tiles`]; `None`: the tile that the compiler chooses for large sizes.
    pub(super) tile: Option<usize>,
}

impl Program {
    pub(super) fn tiles(&self) -> Tiles {
        if self.target == Target::Sm90a && self.multiplied() != Format::F64 {
            // Rows of 128 bytes along the reduction.
            let k = 128 / self.multiplied().bytes() as u32;
            return [[128, 128, k, 64, 128], [64, 128, k, 64, 64]];
        }
        match (self.fma, self.multiplied().bytes()) {
            (true, 1) => [[128, 128, 32, 32, 64], [64, 64, 32, 32, 32]],
            (true, 8) => [[64, 64, 16, 32, 32], [32, 64, 16, 32, 32]],
            (true, 4) => [[128, 128, 16, 32, 64], [64, 64, 16, 32, 32]],
            (false, 1) => [[128, 128, 64, 64, 64], [64, 64, 64, 32, 32]],
            (false, 8) => [[64, 64, 16, 32, 32], [32, 64, 16, 32, 32]],
            _ => [[128, 128, 32, 64, 64], [64, 64, 32, 32, 32]],
        }
    }

    /// The type in which elements are multiplied: bytes are converted to the float type of the other operand.
    pub(super) fn multiplied(&self) -> Format {
        let [a, b] = self.inputs;
        if matches!(a, Format::Int { .. }) { b } else { a }
    }

    /// Extents of a block's tile.
    pub(super) fn block(&self) -> [i64; 3] {
        let Some(tile) = self.tile else { return self.chosen() };
        let [bm, bn, bk, _, _] = self.tiles()[tile];
        [bm, bn, bk].map(i64::from)
    }

    /// Extents of the tile that the compiler chooses.
    pub(super) fn chosen(&self) -> [i64; 3] {
        let done = tilec::optimize(&self.source(), &self.options());
        let parameters = done.ok().and_then(|done| done.kernels.into_iter().next()).map(|k| k.parameters);
        // Where it does not compile, that is what is reported.
        ["BM", "BN", "BK"].map(|name| {
            let found = parameters.iter().flatten().find(|(n, _)| n == name);
            found.map_or(64, |(_, value)| if let ConstValue::Int(n) = value { *n } else { 64 })
        })
    }

    /// The type that alpha and beta have, and in which they are applied.
    pub(super) fn scale(&self) -> Format {
        match (self.acc, self.out) {
            (Format::F64, _) => Format::F64,
            (Format::Int { .. }, Format::Int { bytes: 4, .. }) => self.acc,
            _ => Format::F32,
        }
    }

    /// Its text.
    pub fn source(&self) -> String {
        let (_, text) = self.form.example();
        // Sums of four bytes are the scalar products of a target without tensor cores for them.
        let named = self.fma && self.multiplied().bytes() > 1;
        if named { text.replace("= mma(", "= mma<fma>(") } else { text.to_owned() }
    }

    /// How to compile it.
    pub fn options(&self) -> CompileOptions {
        let [a, b] = self.inputs;
        let first = if self.form == Form::Mixed { self.multiplied() } else { a };
        let mut defines = vec![("T", first.name().to_owned()), ("Acc", self.acc.name().to_owned())];
        defines.extend([("Out", self.out.name().to_owned()), ("Scale", self.scale().name().to_owned())]);
        match self.form {
            _ if a != b && self.form != Form::Mixed => defines.push(("TB", b.name().to_owned())),
            Form::Plain | Form::Batched => {}
            Form::Mixed => defines.extend(["TA", "TB"].into_iter().zip(self.inputs.map(|t| t.name().to_owned()))),
            // As many slices as possible have something to do.
            Form::Split => defines.extend(self.tile.map(|tile| ("UNIT", self.tiles()[tile][2].to_string()))),
        }
        defines.extend(["LA", "LB", "LC"].into_iter().zip(self.orders.map(|o| o.name().to_owned())));
        defines.extend(["ALIGN_A", "ALIGN_B", "ALIGN_C"].into_iter().zip(self.align.map(|n| n.to_string())));
        if let Some(tile) = self.tile {
            let tile = self.tiles()[tile].map(|n| n.to_string());
            defines.extend(["BM", "BN", "BK", "WM", "WN"].into_iter().zip(tile));
            // A ring of three, where copies run ahead of products in roles of their own.
            let stages = if self.target == Target::Sm90a { "3" } else { "2" };
            defines.extend([("KW", "1"), ("STAGES", stages), ("RASTER", "8")].map(|(n, v)| (n, v.to_owned())));
        }
        CompileOptions {
            source_name: self.form.example().0.to_owned(),
            target: self.target,
            defines: defines.into_iter().map(|(n, v)| (n.to_owned(), v)).collect(),
            ..CompileOptions::default()
        }
    }

    /// Its name.
    pub fn name(&self) -> String {
        let [a, b, c] = self.orders.map(Order::name);
        let input = match self.inputs {
            [a, b] if a == b => a.name().to_owned(),
            [a, b] => format!("{}x{}", a.name(), b.name()),
        };
        let (acc, out, form) = (self.acc.name(), self.out.name(), self.form.word());
        let tile = self.tile.map(|tile| self.tiles()[tile]);
        let tile = tile.map_or("auto".to_owned(), |[bm, bn, bk, wm, wn]| format!("{bm}x{bn}x{bk}_{wm}x{wn}"));
        let [x, y, z] = self.align;
        let kind = if self.fma { "fma" } else { self.target.name() };
        format!("{kind}_{form}{a}-{b}-{c}_{input}-{acc}-{out}_align{x}-{y}-{z}_{tile}")
    }
}
