//! What the device leaves undefined is reported, where it is written.

use super::{error, kernel, result, tensor};
use crate::diag::Diagnostic;
use crate::interp::inputs::{Inputs, Options};
use crate::interp::run;
use crate::kernel::ConstValue;
use crate::types::{Elem, Order};

/// Runs a program on `X: f32[M, 8]` and `Y: f32[M, 8]`, M = 6; gives the report and the text that it points at.
fn report(body: &str) -> (Diagnostic, String) {
    let source = source(body);
    let d = error(&kernel(&source), inputs());
    let text = source[d.span.start as usize..d.span.end as usize].to_owned();
    (d, text)
}

fn source(body: &str) -> String {
    format!("kernel t(X: gmem f32[M, 8], Y: gmem f32[M, 8]) grid (b: ceildiv(M, 4)) {{ {body} }}")
}

fn inputs() -> Inputs {
    Inputs::default().size("M", 6).tensor("X", tensor(Elem::F32, 48)).tensor("Y", tensor(Elem::F32, 48))
}

#[test]
fn untested_dimension_out_of_bounds() {
    let (d, text) = report("var x = reg f32[4, 8] copy X[b * 4.., 0..] -> x check (1) copy x -> Y[b * 4.., 0..]");
    assert_eq!(d.code.0, "E0704");
    assert_eq!(text, "copy X[b * 4.., 0..] -> x check (1)");
    assert!(d.message.starts_with("index 6 is outside the extent 6 of dimension 0 of `X`"), "{}", d.message);
    assert_eq!(d.notes, ["in block b = 1"]);
    let (d, text) = report("copy 1.0 + 0.0 * X[0.., 0..] -> Y[0..,0..]");
    assert_eq!((d.code.0, text.as_str()), ("E0709", "copy 1.0 + 0.0 * X[0.., 0..] -> Y[0..,0..]"));
    let (d, text) = report("var x = reg f32[4, 8] = 0.0 copy x -> Y[b * 4.., 0..] check ()");
    assert_eq!((d.code.0, text.as_str()), ("E0704", "copy x -> Y[b * 4.., 0..] check ()"));
}

#[test]
fn tested_dimension_hides_the_untested_one() {
    // Nothing of the second block's rows from 8 on exists: whatever the columns are, nothing is accessed.
    let k = kernel(&source("var x = reg f32[4, 8] = 0.0 copy x -> Y[8.., 100..] check (0)"));
    assert_eq!(result(&k, inputs()).data("Y"), inputs().data("Y"));
}

#[test]
fn what_is_apart_is_stored_once() {
    // Both blocks store to the first rows.
    let (d, text) = report("var x = reg f32[4, 8] = 1.0 copy x -> Y[0.., 0..] apart");
    assert_eq!((d.code.0, text.as_str()), ("E0710", "copy x -> Y[0.., 0..] apart"));
    let (d, text) = report("var x = reg f32[4, 8] = 1.0 copy x -> Y[b * 4.., 0..] apart copy x -> Y[b * 4.., 0..]");
    assert_eq!((d.code.0, text.as_str()), ("E0710", "copy x -> Y[b * 4.., 0..]"));
    let once = "var x = reg f32[4, 8] = 1.0 copy x -> Y[b * 4.., 0..] apart";
    assert_eq!(
        result(&kernel(&source(once)), inputs()).data("Y"),
        result(&kernel(&source(&once.replace(" apart", ""))), inputs()).data("Y")
    );
}

#[test]
fn rows_stored_twice() {
    let rows = "var p = reg i32[4] = 0 p = iota(p, 0) / 2 var x = reg f32[4, 8] = 1.0";
    let (d, text) = report(&format!("{rows} copy x -> Y[p, 0..]"));
    assert_eq!((d.code.0, text.as_str()), ("E0710", "copy x -> Y[p, 0..]"));
    assert!(d.message.starts_with("elements 0 and 1 of the tile are stored to index 0 of `Y`"), "{}", d.message);
    // What is combined is, as often as there is something; what is nowhere is stored nowhere.
    let sums = result(&kernel(&source(&format!("{rows} copy x -> Y[p, 0..] add"))), inputs());
    let before = inputs();
    let added: Vec<f64> = sums.data("Y").iter().zip(before.data("Y")).map(|(after, before)| after - before).collect();
    assert_eq!(added, [[4.0; 16], [0.0; 16], [0.0; 16]].concat());
    let none = result(&kernel(&source(&format!("{rows} copy x -> Y[p - 9, 0..]"))), inputs());
    assert_eq!(none.data("Y"), inputs().data("Y"));
    let (d, _) = report(&format!("{rows} copy X[p + 5, 0..] -> x check (1)"));
    assert_eq!(d.code.0, "E0704");
    let (d, _) = report("var p = reg i32[4] if b == 0 { p = iota(p, 0) } var x = reg f32[4, 8] copy X[p, 0..] -> x");
    assert_eq!(d.code.0, "E0705");
}

#[test]
fn outside_the_allocation() {
    let k = kernel(&source("var x = reg f32[4, 8] copy X[b * 4.., 0..] -> x copy x -> Y[b * 4.., 0..]"));
    let mut short = inputs();
    short.tensors.get_mut("X").unwrap().data = vec![0.0; 47].into();
    assert_eq!(error(&k, short).message, "address 47 is outside the 47 elements that `X` has in memory");
    let huge = inputs().stride("X_ld", usize::MAX / 2);
    assert_eq!(error(&k, huge).code.0, "E0704");
    result(&k, inputs());
}

#[test]
fn index_outside() {
    for body in [
        "var x = reg f32[4, 8] = 0.0 var y = reg f32[8] copy x[b + 3, 0..] -> y",
        "var x = reg f32[4, 8] copy X[b - 1.., 0..] -> x check (1)",
        "var x = reg f32[4, 8] = 0.0 var y = reg f32[2, 4] copy x[0.., 5..] -> y",
        "var x = reg f32[4, 8] copy X[100.., 0..] -> x check (1)",
    ] {
        assert_eq!(report(body).0.code.0, "E0704", "{body}");
    }
}

#[test]
fn unwritten_values_must_not_get_out() {
    for body in [
        "var x = reg f32[4, 8] copy x -> Y[b * 4.., 0..]",
        "let x = smem f32[4, 8] copy x * 0.0 + 1.0 -> Y[b * 4.., 0..]",
        "var x = reg f32[4, 8] copy X[0.., 0..7] -> x keep copy x -> Y[b * 4.., 0..]",
        "let x = smem f32[4, 8] var z = reg f32[4, 4] = 0.0 copy z -> x[0.., 0..] copy x -> Y[b * 4.., 0..]",
        "let c = channel f32[4, 8] slots 1 acquire c publish c wait c copy c.get -> Y[b * 4.., 0..]",
        "let x = smem f32[4, 8] var z = reg f32[8, 8] = 0.0 var s = reg f32[4, 8] = 0.0 s = mma(x, z, s) copy s -> Y",
        "var x = reg f32[4, 8] copy maximum(x, 1) + X[0.., 0..+8] -> Y[0..,0..]",
    ] {
        let k = source(body);
        assert_eq!(error(&kernel(&k), inputs()).code.0, "E0705", "{body}");
    }
    let (d, text) =
        report("var x = reg f32[4, 8] var z = reg f32[4, 4] = 0.0 copy z -> x[0.., 0..] copy x -> Y[0.., 0..]");
    assert_eq!((d.code.0, text.as_str()), ("E0705", "copy x -> Y[0.., 0..]"));
    assert!(d.message.contains("(0, 4)"), "{}", d.message);
    result(&kernel(&source("var x = reg f32[2, 8] copy X[b.., 0..] -> x keep copy x -> Y[b.., 0..]")), inputs());
    // Selected away, or masked out by the bounds, they do no harm.
    result(&kernel(&source("var x = reg f32[4, 8] copy select(iota(x, 0) < 0, x, 1.0) -> Y[b * 4.., 0..]")), inputs());
    let k = kernel(&source(
        "var x = reg f32[4, 8] var z = reg f32[2, 8] = 0.0 copy z -> x[0.., 0..] copy x -> Y[4.., 0..]",
    ));
    result(&k, inputs());
}

#[test]
fn channels_out_of_turn() {
    for body in [
        "publish c",
        "wait c",
        "release c",
        "acquire c acquire c",
        "acquire c publish c acquire c publish c acquire c",
        "acquire c publish c wait c wait c",
        "acquire c publish c release c",
        "var x = reg f32[4, 8] acquire c publish c copy c.get -> x",
        "var x = reg f32[4, 8] = 0.0 copy x -> c.put",
    ] {
        let (d, _) = report(&format!("let c = channel f32[4, 8] slots 2 {body}"));
        assert_eq!(d.code.0, "E0706", "{body}: {d:?}");
    }
    let free = "acquire c publish c wait c release c";
    result(&kernel(&source(&format!("let c = channel f32[4, 8] slots 1 {free} for i in 0..5 {{ {free} }}"))), inputs());
}

#[test]
fn index_arithmetic_is_checked() {
    for body in [
        "let x = M / (b - b)",
        "let x = M % (b - b)",
        "let x = (b + 4611686018427387904) * 2",
        "for i in 0..M step b - 1 { }",
    ] {
        assert_eq!(report(body).0.code.0, "E0703", "{body}");
    }
}

#[test]
fn work_and_memory_are_bounded() {
    let k = kernel(&source("for i in 0..9223372036854775807 step 1 { }"));
    let opts = Options { fuel: 100_000, ..Options::default() };
    assert_eq!(run(&k, &mut inputs(), &opts).unwrap_err().code.0, "E0707");
    // Of a loop that only its condition would end an iteration counts for more than the little that it does.
    let k = kernel(&source("var k = reg i32[1] = 0\n while k[0] < 1000 { k = k + 1 }"));
    let few = Options { fuel: 1 << 20, ..Options::default() };
    assert_eq!(run(&k, &mut inputs(), &few).unwrap_err().code.0, "E0707");
    let k = kernel("kernel t(X: gmem f32[M]) grid (b: 9223372036854775807) { }");
    let one = || Inputs::default().size("M", 1).tensor("X", tensor(Elem::F32, 1));
    assert_eq!(run(&k, &mut one(), &opts).unwrap_err().code.0, "E0707");
    let k = kernel(&source("let a = smem f32[4611686018427387904, 8]"));
    assert_eq!(error(&k, inputs()).code.0, "E0708");
    let k = kernel(&source(
        "let c = channel f32[1024, 1024] slots 2 role r warps 1 { for i in 0..100000 { acquire c publish c } }",
    ));
    assert_eq!(error(&k, inputs()).code.0, "E0708");
}

#[test]
fn arguments_must_fit() {
    let k = kernel(&source("var x = reg f32[4, 8] = 0.0"));
    let mut missing = inputs();
    missing.tensors.remove("X");
    let mut other = inputs();
    other.tensors.insert("X".to_owned(), tensor(Elem::F16, 48));
    let mut unsized_ = inputs();
    unsized_.sizes.clear();
    for (bad, name) in [(missing, "X"), (other, "X"), (unsized_, "M"), (inputs().size("M", 1 << 31), "M")] {
        let d = error(&k, bad);
        assert_eq!(d.code.0, "E0702");
        assert!(d.message.starts_with(&format!("`{name}`")), "{}", d.message);
    }
}

#[test]
fn tensors_come_back_after_an_error() {
    let k = kernel(&source("let x = M / (b - b)"));
    let mut given = inputs();
    assert!(run(&k, &mut given, &Options::default()).is_err());
    assert_eq!(given, inputs());
}

#[test]
fn promises_of_tensors() {
    let k = |order: &str| {
        kernel(&format!(
            "kernel t<L: layout = row, N = 4>(X: gmem f32[M, 8] {order} multiple N, Y: gmem f32[M, 8]) \
             {{ var x = reg f32[8, 8] copy X[0.., 0..] -> x copy x -> Y[0.., 0..] }}"
        ))
    };
    result(&k("L"), inputs());
    for (order, given) in [
        ("L", inputs().stride("X_ld", 9)),
        ("L", inputs().given("N", ConstValue::Int(16))),
        ("L", inputs().given("L", ConstValue::Order(Order::Col))),
        ("strides (9, 1)", inputs()),
        ("strides (1, 6)", inputs()),
    ] {
        let d = error(&k(order), given);
        assert_eq!((d.code.0, d.message.as_str()), ("E0701", "this precondition does not hold"), "{order}");
    }
}

/// What `Y` has when the first block of each cluster of two has done one thing, and the second one, which has the tiles, the other.
fn of_cluster(first: &str, last: &str) -> Result<Vec<f64>, String> {
    let source = format!(
        "kernel t(X: gmem f32[M, 8], Y: gmem f32[M, 8], s: dsmem f32[1, 4, 8]) grid (b: 2 * ceildiv(M, 4)) schedule {{ cluster (2) }} {{
            var x = reg f32[4, 8] = 1.0 if b % 2 < 1 {{ {first} }} else {{ {last} }}
        }}"
    );
    let mut inputs = inputs();
    match run(&kernel(&source), &mut inputs, &Options::default()) {
        Ok(()) => Ok(inputs.data("Y").to_vec()),
        Err(d) => Err(format!("{}: {}", d.code.0, d.message)),
    }
}

#[test]
fn tiles_of_clusters_are_in_the_last_block() {
    let pass = "copy x -> s[0, 0.., 0..] fragment signal s[0]";
    let take = "copy s[0, 0.., 0..] -> x fragment copy x -> Y[b / 2 * 4.., 0..]";
    let all = format!("await s[0] {take}");
    assert_eq!(of_cluster(pass, &all), Ok(vec![1.0; 48]));
    let elsewhere = "E0706: a block that is not the last of its cluster has no tile of `s`: they are in the last block's shared memory";
    for first in [all.as_str(), take] {
        assert_eq!(of_cluster(&format!("{pass} {first}"), ""), Err(elsewhere.to_owned()), "{first}");
    }
    // Conditions keep the verifier from seeing what is missing.
    let never = |what: &str| format!("if b < 0 {{ {what} }}");
    let unset = "E0706: `s[0]` is not signalled: earlier blocks have ended, so this would wait forever (deadlock)";
    assert_eq!(of_cluster(&never(pass), &all), Err(unset.to_owned()));
    let left = "E0706: `s[0]` is signalled at the end: nobody has awaited it";
    assert_eq!(of_cluster(pass, &never(&all)), Err(left.to_owned()));
    let kept = "E0706: `s[0]` is stored at the end: nobody has signalled it";
    let alone = format!("copy x -> s[0, 0.., 0..] fragment {}", never("signal s[0]"));
    assert_eq!(of_cluster(&alone, &never(&all)), Err(kept.to_owned()));
    for (twice, message) in
        [(format!("{pass} copy x -> s[0, 0.., 0..] fragment"), "stored"), (format!("{pass} signal s[0]"), "signalled")]
    {
        let again = format!("E0706: `s[0]` is {message} already, and a launch passes each tile once");
        assert_eq!(of_cluster(&twice, &all), Err(again), "{twice}");
    }
    // The second cluster has memory of its own: what the first one stored is not there.
    let empty = "E0706: `s[0]` is signalled, and nothing is stored to it: this would wait forever (deadlock)";
    let first = of_cluster("if b < 1 { copy x -> s[0, 0.., 0..] fragment } signal s[0]", &all);
    assert_eq!(first, Err(empty.to_owned()));
}
