//! Plausible kernels: most of them verify, compile, and mean something for the sizes that come with them.
//!
//! Data are small integers and so are all results, except where a quotient or a root is taken; both sides of a comparison
//! then take the same one.

use super::input::Input;
use crate::problem::{Random, Run};
use std::fmt::Write as _;
use tilec::{CompileOptions, Target};

/// A kernel being written.
struct Writer<'r> {
    random: &'r mut Random,
    params: Vec<String>,
    requires: Vec<String>,
    /// Values of sizes, strides and scalars.
    run: String,
    body: String,
    /// Blocks open in the body.
    depth: usize,
    names: usize,
}

/// A plausible kernel.
pub(super) fn input(random: &mut Random) -> Input {
    let target = random.of(&[Target::Sm70, Target::Sm70, Target::Sm75, Target::Sm80, Target::Sm80, Target::Sm90a]);
    let mut options = CompileOptions { target, verify_each: true, ..Default::default() };
    if random.below(6) == 0 {
        for pass in crate::options::optional_passes() {
            if random.below(3) == 0 {
                options.disabled.insert(pass.to_owned());
            }
        }
    }
    let mut w = Writer {
        random,
        params: Vec::new(),
        requires: Vec::new(),
        run: String::new(),
        body: String::new(),
        depth: 1,
        names: 0,
    };
    let (grid, schedule) = match w.random.below(5) {
        0 | 1 => w.gemm(),
        2 => w.channel(),
        _ => w.elementwise(),
    };
    let seed = w.random.below(1000);
    let mut text = format!("kernel k({})", w.params.join(", "));
    if !w.requires.is_empty() {
        let _ = write!(text, "\n    where {}", w.requires.join(", "));
    }
    if !grid.is_empty() {
        let _ = write!(text, "\n    grid ({grid})");
    }
    if !schedule.is_empty() {
        let _ = write!(text, "\n    schedule {{ {schedule} }}");
    }
    let _ = write!(text, "\n{{\n{}}}\n", w.body);
    let run = Run::parse(&format!("{} seed={seed} range=3", w.run)).expect("names and numbers");
    Input { text, options, run, meant: true, tried: false }
}

impl Writer<'_> {
    fn chance(&mut self, one_in: u64) -> bool {
        self.random.below(one_in) == 0
    }

    /// An extent of a tile: a power of two from `low` to `high`, rarely something else.
    fn extent(&mut self, low: i64, high: i64) -> i64 {
        if self.chance(60) {
            return self.random.of(&[3, 12, 24, 48, 96]);
        }
        let steps = (high / low).ilog2();
        low << self.random.below(u64::from(steps) + 1)
    }

    fn name(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    fn line(&mut self, line: &str) {
        if line.starts_with('}') {
            self.depth -= 1;
        }
        for _ in 0..self.depth {
            self.body.push_str("    ");
        }
        self.body.push_str(line);
        self.body.push('\n');
        if line.ends_with('{') {
            self.depth += 1;
        }
    }

    /// A run-time size: its value, which is a multiple of `align`, goes into the run.
    fn size(&mut self, name: &str, high: i64, align: i64) -> i64 {
        let value = if self.chance(3) { high } else { self.random.between(1, high.max(1)) };
        let value = (value / align).max(1) * align;
        let _ = write!(self.run, " {name}={value}");
        if align > 1 {
            self.requires.push(format!("{name} % {align} == 0"));
        }
        value
    }

    /// A tensor parameter over sizes with values.
    fn tensor(&mut self, name: &str, elem: &str, dims: &[(&str, i64)], align: i64) {
        let names: Vec<&str> = dims.iter().map(|d| d.0).collect();
        let shape = names.join(", ");
        let rank = dims.len();
        let up = |x: i64| (x + align - 1) / align * align;
        let order = match self.random.below(6) {
            0 | 1 => {
                if align > 1 {
                    self.aligned_ld(name, rank, align);
                }
                " row".to_owned()
            }
            2 | 3 => {
                if align > 1 {
                    self.aligned_ld(name, rank, align);
                }
                " col".to_owned()
            }
            4 if rank == 2 => {
                let pad = self.random.between(0, 3) * align;
                let ld = up(dims[1].1) + pad;
                let _ = write!(self.run, " ld{name}={ld}");
                if align > 1 {
                    self.requires.push(format!("ld{name} % {align} == 0"));
                }
                format!(" strides (ld{name}, 1)")
            }
            5 if rank == 2 => {
                // Neither dimension is contiguous.
                let _ = write!(self.run, " sa{name}={} sb{name}=2", 2 * dims[1].1 + 1);
                format!(" strides (sa{name}, sb{name})")
            }
            _ => String::new(),
        };
        let aligned =
            if self.chance(4) { format!(" align {}", self.random.of(&[4, 8, 16, 32])) } else { String::new() };
        self.params.push(format!("{name}: gmem {elem}[{shape}]{order}{aligned}"));
    }

    fn aligned_ld(&mut self, name: &str, rank: usize, align: i64) {
        match rank {
            0 | 1 => {}
            2 => self.requires.push(format!("{name}_ld % {align} == 0")),
            _ => (0..rank - 1).for_each(|d| self.requires.push(format!("{name}_ld{d} % {align} == 0"))),
        }
    }

    fn schedule(&mut self, warp: Option<(i64, i64)>) -> String {
        let mut items = Vec::new();
        if let Some((m, n)) = warp {
            items.push(format!("warp_tile ({m}, {n})"));
            if self.chance(3) {
                items.push(format!("k_warps {}", self.random.of(&[2, 4])));
            }
        } else if self.chance(2) {
            items.push(format!("threads {}", self.random.of(&[32, 64, 128, 256, 512])));
        }
        if self.chance(2) {
            items.push(format!("stages {}", self.random.of(&[1, 2, 3, 4, 5])));
        }
        if self.chance(4) {
            items.push(format!("raster {}", self.random.of(&[1, 2, 3, 4, 8])));
        }
        items.join(" ")
    }

    fn gemm(&mut self) -> (String, String) {
        let (t, acc) = self.random.of(&[
            ("f16", "f32"),
            ("f16", "f32"),
            ("f16", "f16"),
            ("bf16", "f32"),
            ("f32", "f32"),
            ("f64", "f64"),
            ("i32", "i32"),
            ("i8", "i32"),
        ]);
        let align = self.random.of(&[1, 2, 4, 8, 8]);
        let (bm, bn, bk) = (self.extent(16, 64), self.extent(16, 64), self.extent(4, 64));
        let (wm, wn) = (self.extent(16, bm.max(16)).min(bm), self.extent(16, bn.max(16)).min(bn));
        let (m, n, k) =
            (self.size("M", 2 * bm, align), self.size("N", 2 * bn, align), self.size("K", 3 * bk + 8, align));
        let (ta, tb) = (self.chance(5), self.chance(5));
        let a: [(&str, i64); 2] = if ta { [("K", k), ("M", m)] } else { [("M", m), ("K", k)] };
        let b: [(&str, i64); 2] = if tb { [("N", n), ("K", k)] } else { [("K", k), ("N", n)] };
        self.tensor("A", t, &a, align);
        self.tensor("B", t, &b, align);
        self.tensor("C", acc, &[("M", m), ("N", n)], align);
        let scaled = self.chance(2) && acc != "i32";
        if scaled {
            self.params.push("alpha: f32 = 2.0".to_owned());
            self.params.push("beta: f32 = 0.0".to_owned());
            let _ = write!(self.run, " alpha=3 beta={}", self.random.of(&[0, 0, 1, -2]));
        }
        let staged = !self.chance(5);
        let (ashape, bshape) = (
            if ta { format!("{bk}, {bm}") } else { format!("{bm}, {bk}") },
            if tb { format!("{bn}, {bk}") } else { format!("{bk}, {bn}") },
        );
        let place = if staged { "smem" } else { "reg" };
        let word = if staged { "let" } else { "var" };
        let order = |w: &mut Self| if staged && w.chance(4) { " col" } else { "" };
        let (oa, ob) = (order(self), order(self));
        self.line(&format!("{word} a = {place} {t}[{ashape}]{oa}"));
        self.line(&format!("{word} b = {place} {t}[{bshape}]{ob}"));
        self.line(&format!("var acc = reg {acc}[{bm}, {bn}] = {}", if acc == "i32" { "0" } else { "0.0" }));
        let zero = self.random.of(&["0", "0", "0", "0", &bk.to_string(), "8"]).to_owned();
        self.line(&format!("for k in {zero}..K step {bk} {{"));
        let (ai, bj) = (format!("i * {bm}.."), format!("j * {bn}.."));
        self.line(&if ta { format!("copy A[k.., {ai}] -> a") } else { format!("copy A[{ai}, k..] -> a") });
        self.line(&if tb { format!("copy B[{bj}, k..] -> b") } else { format!("copy B[k.., {bj}] -> b") });
        let x = if ta { "transpose(a)" } else { "a" };
        let y = if tb { "transpose(b)" } else { "b" };
        if self.chance(4) && !ta && !tb {
            let half = (bk / 2).max(1);
            let unroll = if self.chance(2) { " unroll" } else { "" };
            self.line(&format!("for kk in 0..{bk} step {half}{unroll} {{"));
            self.line(&format!("var fa = reg {t}[{bm}, {half}]"));
            self.line(&format!("var fb = reg {t}[{half}, {bn}]"));
            self.line("copy a[0.., kk..] -> fa");
            self.line("copy b[kk.., 0..] -> fb");
            self.line("acc = mma(fa, fb, acc)");
            self.line("}");
        } else {
            self.line(&format!("acc = mma({x}, {y}, acc)"));
        }
        self.line("}");
        let c = format!("C[i * {bm}.., j * {bn}..]");
        if scaled && self.chance(2) {
            self.line(&format!("let c = {c}"));
            self.line("if beta == 0.0 {");
            self.line("copy alpha * acc -> c");
            self.line("} else {");
            self.line("copy alpha * acc + beta * c -> c");
            self.line("}");
        } else {
            let e = self.random.of(&["acc", "acc", "acc + acc", "-acc", "max(acc, 0)", "acc * 2"]);
            self.line(&format!("copy {e} -> {c}"));
        }
        let grid = format!("i: ceildiv(M, {bm}), j: ceildiv(N, {bn})");
        let warp = if self.chance(8) { None } else { Some((wm, wn)) };
        (grid, self.schedule(warp))
    }

    /// A hand-written ring between the two halves of one loop.
    fn channel(&mut self) -> (String, String) {
        let t = self.random.of(&["f16", "f32", "f32", "bf16", "i32", "f64"]);
        let (bm, bk) = (self.extent(4, 64), self.extent(4, 64));
        let align = self.random.of(&[1, 2, 4]);
        let (m, k) = (self.size("M", 2 * bm, align), self.size("K", 4 * bk, align));
        self.tensor("A", t, &[("M", m), ("K", k)], align);
        let two = self.chance(3);
        if two {
            self.tensor("B", t, &[("M", m), ("K", k)], align);
        }
        self.tensor("C", t, &[("M", m), ("K", k)], align);
        let slots = self.random.of(&[1, 2, 3, 4, 5, 16]);
        self.line(&format!("let p = channel {t}[{bm}, {bk}] slots {slots}"));
        if two {
            let other = if self.chance(2) { slots } else { self.random.of(&[1, 2, 3]) };
            self.line(&format!("let q = channel {t}[{bm}, {bk}] slots {other}"));
        }
        let operate = |w: &mut Self, op: &str| {
            if two && w.chance(3) {
                w.line(&format!("{op} q"));
                w.line(&format!("{op} p"));
            } else if two {
                w.line(&format!("{op} p, q"));
            } else {
                w.line(&format!("{op} p"));
            }
        };
        self.line(&format!("for k in 0..K step {bk} {{"));
        operate(self, "acquire");
        self.line(&format!("copy A[i * {bm}.., k..] -> p.put"));
        if two {
            self.line(&format!("copy B[i * {bm}.., k..] -> q.put"));
        }
        operate(self, "publish");
        operate(self, "wait");
        self.line(&format!("var x = reg {t}[{bm}, {bk}]"));
        self.line("copy p.get -> x");
        if two {
            self.line(&format!("var y = reg {t}[{bm}, {bk}]"));
            self.line("copy q.get -> y");
            self.line("x = x + y * 2");
        }
        operate(self, "release");
        self.line(&format!("copy x -> C[i * {bm}.., k..]"));
        self.line("}");
        (format!("i: ceildiv(M, {bm})"), self.schedule(None))
    }

    fn elementwise(&mut self) -> (String, String) {
        let elems = ["f16", "bf16", "f32", "f32", "f64", "i32", "u32", "i64"];
        let t = self.random.of(&elems);
        let u =
            if self.chance(3) && t != "i64" && t != "u32" { self.random.of(&["f16", "f32", "f64", "i32"]) } else { t };
        let rank = self.random.between(1, 3) as usize;
        let align = self.random.of(&[1, 1, 2, 4, 8]);
        let sizes = ["M", "N", "L"];
        let indices = ["i", "j", "l"];
        let limit = [1024, 64, 16][rank - 1];
        let tile: Vec<i64> = (0..rank).map(|_| self.extent(1, limit)).collect();
        let dims: Vec<(&str, i64)> = (0..rank).map(|d| (sizes[d], self.size(sizes[d], 2 * tile[d], align))).collect();
        self.tensor("X", t, &dims, align);
        self.tensor("Y", u, &dims, align);
        let extents: Vec<String> = tile.iter().map(i64::to_string).collect();
        let shape = extents.join(", ");
        // The last dimension by a loop, sometimes.
        let looped = self.chance(3);
        let mut grid = Vec::new();
        let mut window = Vec::new();
        for d in 0..rank {
            if looped && d + 1 == rank {
                self.line(&format!("for {} in 0..{} step {} {{", indices[d], sizes[d], tile[d]));
                window.push(format!("{}..", indices[d]));
            } else {
                grid.push(format!("{}: ceildiv({}, {})", indices[d], sizes[d], tile[d]));
                window.push(format!("{} * {}..", indices[d], tile[d]));
            }
        }
        let window = window.join(", ");
        let branch = self.chance(4);
        if branch {
            let cond = self.random.of(&["M > 7", "M % 2 == 0", "M == 3 || M > 20", "!(M < 2)"]);
            self.line(&format!("if {cond} {{"));
        }
        self.pipeline(&window, &shape, &tile, t, u);
        if branch {
            if self.chance(2) {
                self.line("} else {");
                self.pipeline(&window, &shape, &tile, t, u);
            }
            self.line("}");
        }
        if looped {
            self.line("}");
        }
        (grid.join(", "), self.schedule(None))
    }

    /// From X through places to Y.
    fn pipeline(&mut self, window: &str, shape: &str, tile: &[i64], t: &str, u: &str) {
        let mut at = format!("X[{window}]");
        let mut in_memory = true;
        for _ in 0..self.random.below(3) {
            let staged = self.chance(2);
            let name = self.name(if staged { "s" } else { "r" });
            let col = if staged && self.chance(3) { " col" } else { "" };
            if staged {
                self.line(&format!("let {name} = smem {t}[{shape}]{col}"));
            } else {
                self.line(&format!("var {name} = reg {t}[{shape}]"));
            }
            self.line(&format!("copy {at} -> {name}"));
            at = name;
            in_memory = staged;
        }
        if in_memory && self.chance(4) {
            self.line(&format!("copy {at} -> Y[{window}]"));
            return;
        }
        if in_memory {
            let name = self.name("r");
            self.line(&format!("var {name} = reg {t}[{shape}]"));
            self.line(&format!("copy {at} -> {name}"));
            at = name;
        }
        for _ in 0..self.random.below(3) {
            at = match self.random.below(8) {
                0 => format!("({at} + {at})"),
                1 => format!("({at} * 2)"),
                2 => format!("max({at}, 1)"),
                3 => format!("(-{at})"),
                4 => format!("select({at} > 0, {at}, 0)"),
                5 => {
                    let name = self.name("e");
                    self.line(&format!("let {name} = {at}"));
                    name
                }
                6 if tile.len() > 1 => {
                    let name = self.name("m");
                    let d = self.random.below(tile.len() as u64);
                    let how = self.random.of(&[
                        "sum",
                        "maximum",
                        "minimum",
                        "product",
                        "any",
                        "all",
                        "argmax",
                        "argmin",
                        "scan_sum",
                        "scan_maximum",
                    ]);
                    match how {
                        "any" | "all" => {
                            self.line(&format!("let {name} = {how}({at} > 0, {d})"));
                            format!("select({name}, {at}, 2)")
                        }
                        "argmax" | "argmin" => {
                            self.line(&format!("let {name} = {how}({at}, {d})"));
                            format!("select({name} > 2, {at}, 1)")
                        }
                        _ => {
                            self.line(&format!("let {name} = {how}({at}, {d})"));
                            format!("({at} - {name})")
                        }
                    }
                }
                7 => format!("select(iota({at}, {}) < M, {at}, 1)", self.random.below(tile.len() as u64)),
                _ => format!("abs({at})"),
            };
        }
        if u != t && self.chance(2) {
            at = format!("cast<{u}>({at})");
        }
        let attrs = self.random.of(&["", "", "", "", " vec 1", " vec 2"]);
        self.line(&format!("copy {at} -> Y[{window}]{attrs}"));
    }
}
