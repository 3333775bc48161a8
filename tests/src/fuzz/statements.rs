//! Kernels with every form of statement and every form of operand. `x = ..`, `let`, `var`, copies, reductions, loops
//! and branches read tensors, buffers, register tiles, windows of them, broadcast rows and columns, transposed tiles
//! and combined tiles.
//!
//! All of them must compile: a rejection is a gap in the compiler.

use super::input::Input;
use crate::problem::{Random, Run};
use tilec::{CompileOptions, Target};

/// A kernel being written.
struct Writer<'r> {
    random: &'r mut Random,
    elem: &'static str,
    rows: i64,
    columns: i64,
    names: usize,
}

/// Maximum nesting depth of statements.
const DEPTH: usize = 2;

/// A kernel of some statements.
pub(super) fn input(random: &mut Random) -> Input {
    let target = random.of(&[Target::Sm70, Target::Sm75, Target::Sm80, Target::Sm90, Target::Sm90a]);
    let options = CompileOptions { target, verify_each: true, ..Default::default() };
    let elem = random.of(&["f32", "f16", "bf16", "f64", "i32", "i16", "u8", "i64"]);
    let (rows, columns) = (random.of(&[4, 8, 16, 6]), random.of(&[8, 16, 32, 64, 40, 45]));
    let threads = random.of(&[32, 64, 128, 256]);
    let (m, n) = (random.of(&[1, 19, 33]), random.of(&[1, 45, 70]));
    let seed = random.below(1000);
    let mut w = Writer { random, elem, rows, columns, names: 0 };
    let mut body = w.declarations();
    for _ in 0..w.random.between(1, 4) {
        body += &w.statement(1);
    }
    let (at, lying) = (w.window(), w.lying());
    let text = format!(
        "kernel k(X: gmem {elem}[M, N], R: gmem {elem}[N], G: gmem {elem}[M], V: gmem {elem}[N, M], n: i32, Y: gmem {elem}[M, N], Q: gmem {elem}[N, M])
    grid (i: ceildiv(M, {rows}), j: ceildiv(N, {columns}))
    schedule {{ threads {threads} }}
{{
{body}    copy a + b -> Y[{at}]
    copy transpose(a) -> Q[{lying}]
}}
"
    );
    let run = Run::parse(&format!("M={m} N={n} n=2 seed={seed} range=2")).expect("names and numbers");
    Input { text, options, run, meant: true, tried: false }
}

impl Writer<'_> {
    fn window(&self) -> String {
        format!("i * {}.., j * {}..", self.rows, self.columns)
    }

    fn lying(&self) -> String {
        format!("j * {}.., i * {}..", self.columns, self.rows)
    }

    fn declarations(&self) -> String {
        let Writer { elem, rows, columns, .. } = *self;
        let (at, lying) = (self.window(), self.lying());
        format!(
            "    let s = smem {elem}[{rows}, {columns}]
    let t = smem {elem}[{columns}, {rows}]
    copy X[{at}] -> s
    copy V[{lying}] -> t
    var a = reg {elem}[{rows}, {columns}] = 1
    var b = reg {elem}[{rows}, {columns}]
    copy X[{at}] -> b
    var r = reg {elem}[{rows}, 1] = 2
    var c = reg {elem}[1, {columns}] = 3
    var v = reg {elem}[{columns}] = 2
    var q = reg {elem}[{columns}, {rows}]
    copy V[{lying}] -> q
"
        )
    }

    /// Something that has elements, or repeats along a dimension.
    fn operand(&mut self) -> String {
        let Writer { rows, columns, .. } = *self;
        let (at, half) = (self.window(), rows / 2);
        match self.random.below(24) {
            0 | 1 => "a".to_owned(),
            2 | 3 => "b".to_owned(),
            4 => "r".to_owned(),
            5 => "c".to_owned(),
            6 => "v".to_owned(),
            7 => "s".to_owned(),
            8 => format!("X[{at}]"),
            9 => format!("R[_, j * {columns}..]"),
            10 => format!("G[i * {rows}.., _]"),
            11 => "transpose(q)".to_owned(),
            12 => "transpose(t)".to_owned(),
            13 => "s[0.., 0..]".to_owned(),
            14 => format!("s[0, 0..+{columns}]"),
            15 => format!("a[0..+{rows}, 0..]"),
            16 => format!("X[i * {rows} - 1.., j * {columns} + 1..]"),
            17 => format!("X[i * {rows}..n, j * {columns}..]"),
            18 => format!("b[{half}, 0..+{columns}]"),
            20 => "G[n]".to_owned(),
            21 => format!("R[j * {columns} + n]"),
            22 => format!("s[1, {}]", columns / 2),
            19 => format!("concat(b[0..+{half}, 0..+{columns}], a[0..+{half}, 0..+{columns}], 0)"),
            _ => format!("reshape(q, [{rows}, {columns}])"),
        }
    }

    fn expression(&mut self, depth: u64) -> String {
        if depth == 0 {
            return self.operand();
        }
        let mut e = || self.expression(depth - 1);
        let (x, y, z) = (e(), e(), e());
        let elem = self.elem;
        match self.random.below(17) {
            0 | 1 => format!("({x} + {y})"),
            2 => format!("({x} - {y})"),
            3 => format!("({x} * {y})"),
            4 => format!("min({x}, {y})"),
            5 => format!("max({x}, {y})"),
            6 => format!("({x} * {y} + {z})"),
            7 => format!("select({x} < {y}, {y}, {z})"),
            8 => format!("abs({x})"),
            9 => format!("sum({x} + a, 0)"),
            10 => format!("sum({x} + b, 1)"),
            11 => format!("maximum({x} * b, 1)"),
            12 => format!("scan_sum({x} + a, 1)"),
            13 => format!("scan_sum({x} + b, 0)"),
            14 => format!("cast<{elem}>(argmax({x} + b, 1))"),
            15 => format!("cast<{elem}>(cast<f32>({x}))"),
            _ => x,
        }
    }

    fn statement(&mut self, depth: usize) -> String {
        let p = "    ".repeat(depth);
        let Writer { elem, rows, columns, .. } = *self;
        let (at, lying, half) = (self.window(), self.lying(), rows / 2);
        self.names += 1;
        let l = format!("l{}", self.names);
        let level = self.random.below(3);
        let e = self.expression(level);
        let tile = self.random.of(&["a", "b"]);
        match self.random.below(19) {
            16 => format!("{p}{tile} = G[n]\n{p}a = a + b\n"),
            17 => format!("{p}copy s[1, 1] -> {tile}\n{p}a = a + b\n"),
            18 => format!("{p}let {l} = G[n] * 2 + cast<{elem}>(R[n])\n{p}a = a * {l}\n"),
            0 => format!("{p}let {l} = {e} + a\n{p}a = {l} + b\n"),
            1 => format!("{p}var {l} = reg {elem}[{rows}, {columns}] = {e} + a\n{p}b = {l} + a\n"),
            2 => {
                // A vector as it is has other dimensions than the tile.
                let e = self.random.of(&["s", "a", "transpose(t)", "s[0.., 0..]"]);
                format!("{p}var {l} = reg {elem}[{rows}, {columns}] = {e}\n{p}b = {l} + a\n")
            }
            3 => format!("{p}var {l} = reg {elem}[{rows}, {columns}] = X[{at}]\n{p}{l} = s\n{p}b = {l} + a\n"),
            4 => {
                let e = self.random.of(&["s", "transpose(t)"]);
                format!("{p}let {l} = {e}\n{p}b = {l} + a\n")
            }
            5 => format!("{p}{tile} = {e} + a\n"),
            6 => format!("{p}copy {e} + b -> {tile}\n"),
            7 => format!("{p}copy {e} + b -> s\n"),
            8 => format!("{p}copy {e} + b -> s[0.., 0..]\n"),
            9 => format!("{p}copy b[0..+{half}, 0..+{columns}] + 1 -> a[{half}..+{half}, 0..+{columns}]\n"),
            10 => format!("{p}copy {e} + a -> Y[{at}]\n"),
            11 => format!("{p}copy transpose({tile}) -> Q[{lying}]\n"),
            12 => format!("{p}r = sum({e} + b, 1)\n{p}a = a + r\n"),
            13 => format!("{p}c = maximum({e} + b, 0)\n{p}a = a - c\n"),
            _ if depth > DEPTH => format!("{p}a = a + 1\n"),
            14 => {
                let range = self.random.of(&["0..3", "0..n", "0..4 unroll"]);
                let inner = self.statement(depth + 1);
                format!("{p}for {l} in {range} {{\n{inner}{p}}}\n")
            }
            _ => {
                let condition = self.random.of(&["n < 3", "i == 0", "j > 0"]);
                let inner = self.statement(depth + 1);
                format!("{p}if {condition} {{\n{inner}{p}}}\n")
            }
        }
    }
}
