//! Chains of names, each defined by the previous one: `let b = a + a`, `let c = b + b`, ..
//!
//! Written out, such a chain is a tree that doubles with every name. Every analysis of names must therefore visit each
//! name once. The command runs in a child process on chains of sixty names, of every kind that a program can have: if
//! an analysis visits a name twice, it does not end. The time limit is generous; the test measures nothing else.

use crate::kinds::command::{Scratch, binary};
use std::fs::{self, File};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Names of a chain.
const NAMES: usize = 60;

/// After so long a child is taken not to end.
const LIMIT: Duration = Duration::from_secs(120);

/// Vectors in and out, and a scalar.
const VECTORS: &str = "X: gmem f32[N] multiple 4, Y: gmem f32[N] multiple 4, P: gmem i32[L], a: f32 = 0.5, n: i32 = 0";

/// A kernel of blocks of 64 elements, of which `x` has those of a block.
fn blocks(body: &str) -> String {
    format!(
        "kernel k({VECTORS}) grid (b: ceildiv(N, 64)) {{\n    var x = reg f32[64]\n    copy X[b * 64..] -> x\n{body}}}\n"
    )
}

/// A kernel of rows, of which `x` has those of a block.
fn rows(body: &str) -> String {
    format!(
        "kernel k(X: gmem f32[M, 64] multiple 4, Y: gmem f32[M, 64] multiple 4) grid (b: ceildiv(M, 4)) {{\n    var x = reg f32[4, 64]\n    copy X[b * 4.., ..] -> x\n{body}    copy t{NAMES} -> Y[b * 4.., ..]\n}}\n"
    )
}

/// `let t0 = first`, and names of `step` of the name in front, which is `@`.
fn lets(first: &str, step: &str) -> String {
    let mut text = format!("    let t0 = {first}\n");
    for i in 1..=NAMES {
        text += &format!("    let t{i} = {}\n", step.replace('@', &format!("t{}", i - 1)));
    }
    text
}

/// A chain of elements that is stored.
fn elements(first: &str, step: &str) -> String {
    blocks(&(lets(first, step) + &format!("    copy t{NAMES} -> Y[b * 64..]\n")))
}

/// A chain of indices from which a tile is loaded.
fn places(first: &str, step: &str) -> String {
    blocks(&(lets(first, step) + &format!("    copy X[t{NAMES}..] -> x\n    copy x -> Y[b * 64..]\n")))
}

/// A product whose epilogue, loop and places are chains.
fn product() -> String {
    let epilogue = lets("acc", "max(@, 0.5 * @)");
    let ends = lets("K", "min(@, @)").replace(" t", " e").replace("(t", "(e").replace(", t", ", e");
    let within = lets("k", "max(@, @)").replace(" t", " w").replace("(t", "(w").replace(", t", ", w");
    format!(
        "kernel k(A: gmem f16[M, K] multiple 8, B: gmem f16[K, N] multiple 8, C: gmem f32[M, N] multiple 4)
    grid (i: ceildiv(M, 64), j: ceildiv(N, 64)) {{
    let a = smem f16[64, 32]\n    let b = smem f16[32, 64]\n    var acc = reg f32[64, 64] = 0.0\n{ends}
    for k in 0..e{NAMES} step 32 {{\n{within}
        copy A[i * 64.., w{NAMES}..] -> a\n        copy B[w{NAMES}.., j * 64..] -> b\n        acc = mma(a, b, acc)\n    }}
{epilogue}    copy t{NAMES} -> C[i * 64.., j * 64..]\n}}\n"
    )
}

/// The reduction of tuples by a chain of names.
fn tuples(how: &str, give: &str, first: &str, step: &str, stored: &str) -> String {
    let body = lets(first, step).replace("    let", "        let");
    format!(
        "kernel k(X: gmem f32[M, 64] multiple 4, Y: gmem f32[M, 64] multiple 4) grid (b: ceildiv(M, 4)) {{
    var x = reg f32[4, 64]\n    copy X[b * 4.., ..] -> x
    let (s, u) = {how} (x, x) along 1 with (x1, y1), (x2, y2) {{\n{body}        give {give}\n    }}
    copy {stored} -> Y[b * 4.., ..]\n}}\n"
    )
}

/// Reductions of tuples, each of what the one in front leaves.
fn reduced() -> String {
    let one = |i: usize| {
        let before = i - 1;
        format!(
            "    let (p{i}, q{i}) = reduce (t{before}, t{before}) along 1 with (a, c), (d, e) {{ give a + d, max(c, e) }}\n    let t{i} = t{before} - p{i} * q{i}\n"
        )
    };
    rows(&("    let t0 = x\n".to_owned() + &(1..=NAMES).map(one).collect::<String>()))
}

/// Sizes, each of which a precondition relates to the previous one.
fn sizes(relation: &str) -> String {
    let tensors: Vec<String> = (0..=NAMES).map(|i| format!("X{i}: gmem f32[N{i}]")).collect();
    let facts: Vec<String> =
        (1..=NAMES).map(|i| relation.replace('@', &format!("N{}", i - 1)).replace('#', &format!("N{i}"))).collect();
    format!(
        "kernel k({}) where {} grid (b: ceildiv(N0, 64)) {{\n    copy X0[b * 64..+64] -> X{NAMES}[b * 64..]\n}}\n",
        tensors.join(", "),
        facts.join(", ")
    )
}

/// Compile-time parameters, each by default the one in front.
fn parameters() -> String {
    let names: Vec<String> = (1..=NAMES).map(|i| format!("P{i}: int = P{}", i - 1)).collect();
    format!(
        "kernel k<P0: int = 64, {}>(X: gmem f32[N], Y: gmem f32[N]) grid (b: ceildiv(N, 64)) {{\n    copy X[b * 64..+P{NAMES}] -> Y[b * 64..]\n}}\n",
        names.join(", ")
    )
}

/// Every kind of chain: its name, a program, and what it is run with, if it is.
fn chains() -> Vec<(&'static str, String, &'static str)> {
    let (vectors, matrices) = ("N=128 L=4", "M=8");
    let end = format!("t{NAMES}");
    let looped = |step: &str, stored: &str| {
        let inner = lets("x", step).replace("    let", "        let");
        blocks(&format!("    for k in 0..3 {{\n{inner}        x = {stored}\n    }}\n    copy x -> Y[b * 64..]\n"))
    };
    let chosen = |first: &str, step: &str| {
        let names = lets(first, step);
        blocks(&format!("{names}    if {end} {{\n        x = x + 1.0\n    }}\n    copy x -> Y[b * 64..]\n"))
    };
    let until = lets("N", "max(@ - @ / 2, 1)");
    vec![
        ("tiles", elements("x", "@ + @"), vectors),
        ("scalars", elements("a * 2.0", "@ + @").replace(&format!("copy {end}"), &format!("copy x * {end}")), vectors),
        (
            "masks",
            elements("x > 0.0", "@ && @")
                .replace(&end, &format!("select({end}, x, 0.0)"))
                .replace(&format!("let select({end}, x, 0.0)"), &format!("let {end}")),
            vectors,
        ),
        ("choices", elements("x", "select(@ > 0.5, @, 1.0 - @)"), vectors),
        ("conversions", elements("x", "cast<f32>(cast<f16>(@)) + @"), vectors),
        ("windows", elements("X[b * 64..+64]", "@ + @"), vectors),
        ("reductions", rows(&lets("x", "@ - maximum(@, 1)")), matrices),
        ("scans", rows(&lets("x", "@ - scan_maximum(@, 1)")), matrices),
        ("indices", places("b * 64", "(@ + @) / 2"), vectors),
        ("least", places("b * 64", "min(@, @)"), vectors),
        ("remainders", places("b * 64", "@ / 3 + @ % 3"), ""),
        ("loaded", places("P[b]", "P[@] + P[@]"), vectors),
        ("numbers", places("n", "max(@, @ / 2)"), vectors),
        ("conditions", chosen("b > 3", "@ || @"), vectors),
        (
            "ends",
            blocks(&format!(
                "{until}    for k in 0..{end} {{\n        x = x + 1.0\n    }}\n    copy x -> Y[b * 64..]\n"
            )),
            vectors,
        ),
        ("loops", looped("@ + @", &format!("{end} * 0.5")), vectors),
        ("combined", tuples("reduce", &format!("{end}, y1 + y2"), "x1 + x2", "@ + @", "s + u + x"), matrices),
        ("scanned", tuples("scan", &format!("{end}, y1 + y2"), "x1 + x2", "max(@, @ * 0.5)", "s + u"), matrices),
        ("sorted", tuples("sort", &format!("{end} > 0.0"), "x1 - x2", "max(@, @ * 0.5)", "s + u"), ""),
        ("tuples", reduced(), ""),
        ("product", product(), ""),
        ("equal_sizes", sizes("# == @ + @"), ""),
        ("least_sizes", sizes("# <= min(@, @)"), ""),
        ("parameters", parameters(), "N=128"),
    ]
}

/// One test for each kind.
pub fn tests() -> Vec<crate::programs::Test> {
    let test = |(name, source, run): (&'static str, String, &'static str)| {
        let test = move || chain(name, &source, run);
        (format!("chains/{name}"), Box::new(test) as Box<dyn FnOnce() -> Result<(), String> + Send>)
    };
    chains().into_iter().map(test).collect()
}

/// Compiles a chain for several targets, runs it, and runs every other command on it.
fn chain(name: &str, source: &str, run: &str) -> Result<(), String> {
    let folder = Scratch::new(&format!("chain_{name}")).map_err(|e| format!("cannot make a folder: {e}"))?;
    let file = folder.path().join("chain.tile");
    fs::write(&file, source).map_err(|e| format!("cannot write the program: {e}"))?;
    let out = folder.path().join("out");
    let (file, out) = (file.to_string_lossy().into_owned(), out.to_string_lossy().into_owned());
    for target in ["sm_70", "sm_90a"] {
        ends(&folder, &[&file, "--target", target, "-o", &out])?;
    }
    ends(&folder, &["fmt", &file])?;
    ends(&folder, &["xray", &file, "-o", &out])?;
    if !run.is_empty() {
        let sizes: Vec<&str> = run
            .split(' ')
            .filter(|size| {
                source.contains(&format!("[{}]", &size[..1])) || source.contains(&format!("[{},", &size[..1]))
            })
            .collect();
        for device in ["sim", "interp"] {
            ends(&folder, &[&["run", &file, "--device", device], &sizes[..]].concat())?;
        }
    }
    Ok(())
}

/// Runs the command, which must end, and succeed.
fn ends(folder: &Scratch, args: &[&str]) -> Result<(), String> {
    let said = folder.path().join("said");
    let output = |e| format!("cannot write what the command says: {e}");
    let (stdout, stderr) =
        (File::create(folder.path().join("shown")).map_err(output)?, File::create(&said).map_err(output)?);
    let command = format!("tilec {}", args.join(" "));
    // Assemblers take their own time.
    let tools = ("TILEC_TOOLS", folder.path());
    let started = Command::new(binary()?).args(args).env(tools.0, tools.1).stdout(stdout).stderr(stderr).spawn();
    let mut child = started.map_err(|e| format!("cannot run the command: {e}"))?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Err(e) => return Err(format!("cannot wait for the command: {e}")),
            Ok(Some(status)) => break status,
            Ok(None) if start.elapsed() > LIMIT => {
                // It may have ended by itself just now.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("`{command}` does not end: it looks at a name more than once"));
            }
            Ok(None) => sleep(Duration::from_millis(10)),
        }
    };
    match status.success() {
        true => Ok(()),
        false => Err(format!("`{command}` fails:\n{}", fs::read_to_string(said).unwrap_or_default())),
    }
}
