//! Mistakes that can be mended by a click.

use super::client::Client;
use super::text::{edited, place};
use super::{PROGRAM, URI};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tilec_ir::diag::Sink;

/// Every fix makes the program again that the mistake was made in.
#[test]
fn mistakes_are_mended() {
    let mut client = Client::new(Value::Null);
    let program = PROGRAM.replace("(i: M) {", "(i: M) where M % 16 == 0 schedule { threads 128 } {");
    for (right, wrong, title) in [
        ("acc + x", "acc + x;", "remove `;`"),
        ("copy sum(acc", "cpoy sum(acc", "replace `cpoy` with `copy`"),
        ("sum(acc", "summ(acc", "replace `summ` with `sum`"),
        ("threads 128", "thread 128", "replace `thread` with `threads`"),
        ("A: gmem f32[", "A: f32[", "insert `gmem`"),
        ("A: gmem f32[", "A: gmem F32[", "replace `F32` with `f32`"),
        ("{ total, total }", "{ total, totla }", "replace `totla` with `total`"),
        ("var acc = reg f32", "let acc = reg f32", "replace `let` with `var`"),
        ("let x = A", "var x = A", "replace `var` with `let`"),
        ("kernel total", "kernle total", "replace `kernle` with `kernel`"),
        ("sum(acc", "sum(Acc", "replace `Acc` with `acc`"),
        ("step BN", "setp BN", "replace `setp` with `step`"),
        (") grid (i", ") gird (i", "replace `gird` with `grid`"),
        ("B: gmem f32[", "B: gmen f32[", "replace `gmen` with `gmem`"),
        // Nothing is begun anew in place of what is misspelt.
        ("acc = acc", "ac = acc", "replace `ac` with `acc`"),
        ("let x = A", "lt x = A", "replace `lt` with `let`"),
        ("= reg f32", "= rge f32", "replace `rge` with `reg`"),
        // One sign for another.
        ("let x = A", "let x == A", "replace `==` with `=`"),
        ("var acc = reg", "var acc == reg", "replace `==` with `=`"),
        ("acc = acc + x", "acc == acc + x", "replace `==` with `=`"),
        ("-> B[i..]", "=> B[i..]", "replace `=>` with `->`"),
        ("-> B[i..]", "<- B[i..]", "replace `<-` with `->` (what is on the left is copied)"),
        ("(i: M)", "(i= M)", "replace `=` with `:`"),
        ("(i: M) w", "(i: M w", "insert `)`"),
        ("% 16 == 0", "% 16 = 0", "replace `=` with `==`"),
    ] {
        let (right, wrong) = (program.clone(), program.replacen(right, wrong, 1));
        assert_ne!(right, wrong);
        // Nothing follows from a mistake.
        let found = client.open(URI, &wrong);
        assert_eq!(found.len(), 1, "{title}: {found:#?}");
        let everything = json!({ "start": place(&wrong, 0), "end": place(&wrong, wrong.len()) });
        let ask = json!({ "textDocument": { "uri": URI }, "range": everything, "context": { "diagnostics": [] } });
        let actions = client.request("textDocument/codeAction", ask);
        let actions = actions.as_array().expect("a list");
        let action = actions.iter().find(|a| a["title"] == title).unwrap_or_else(|| panic!("{title}: {actions:#?}"));
        assert_eq!(action["kind"], "quickfix");
        assert!(actions.iter().all(|a| a["title"] != "insert `let `" && a["title"] != "insert `let`"), "{actions:#?}");
        let edits = action["edit"]["changes"][URI].as_array().expect("edits");
        assert_eq!(edited(&wrong, edits), right, "{title}");
        let first = json!({ "start": place(&wrong, 0), "end": place(&wrong, 0) });
        let ask = json!({ "textDocument": { "uri": URI }, "range": first, "context": { "diagnostics": [] } });
        assert_eq!(client.request("textDocument/codeAction", ask), json!([]), "{title}: far away");
    }
}

/// A bracket that is not closed in the extent of a grid is what is said; so is a mistake in front of the grid, whose names are declared all the same.
#[test]
fn mistakes_of_headers_are_said_by_themselves() {
    let mut client = Client::new(Value::Null);
    let program = "kernel scale(X: gmem f32[M, N], Y: gmem f32[M, N], a: f32 = 2.0)
    where M % 16 == 0
    grid (i: ceildiv(M, 16), j: ceildiv(N, 64))
    schedule { threads 128 }
{
    if i == 0 && j == 0 {
        copy a * X[i * 16..+16, j * 64..+64] -> Y[i * 16.., j * 64..]
    }
}
";
    for (right, wrong, said, title) in [
        ("M, 16),", "M, 16,", "expected `)`, found `,`", "insert `)`"),
        ("N, 64))", "N, 64)", "expected `)`, found `schedule`", "insert `)`"),
        ("16 == 0", "16 = 0", "expected an operator, found `=`", "replace `=` with `==`"),
        ("M % 16 ==", "M % 16 =>", "expected an operator, found `=>`", "replace `=>` with `>=`"),
        ("M % 16 ==", "M % 16 =<", "expected an operator, found `=<`", "replace `=<` with `<=`"),
        ("i == 0", "i = 0", "expected an operator, found `=`", "replace `=` with `==`"),
        ("0 && j ==", "0 && j =", "expected an operator, found `=`", "replace `=` with `==`"),
        ("-> Y", "=> Y", "expected `->`, found `=>`", "replace `=>` with `->`"),
        ("threads 128", "thread 128", "no schedule item is called `thread`", "replace `thread` with `threads`"),
        ("where M % 16 ==", "where M % 16 ===", "expected an expression, found `=`", ""),
        ("where M %", "where M M %", "expected `where`, `grid`, `schedule`, `require` or `{`, found `M`", ""),
    ] {
        let wrong = program.replacen(right, wrong, 1);
        let found = client.open(URI, &wrong);
        assert_eq!(found.len(), 1, "{said}: {found:#?}");
        assert!(found[0]["message"].as_str().is_some_and(|m| m.starts_with(said)), "{said}: {found:#?}");
        let everything = json!({ "start": place(&wrong, 0), "end": place(&wrong, wrong.len()) });
        let ask = json!({ "textDocument": { "uri": URI }, "range": everything, "context": { "diagnostics": [] } });
        let actions = client.request("textDocument/codeAction", ask);
        let Some(action) = actions.as_array().expect("a list").first() else {
            assert_eq!(title, "", "{said}");
            continue;
        };
        assert_eq!(action["title"], title, "{said}");
        let edits = action["edit"]["changes"][URI].as_array().expect("edits");
        // Of comparisons others are meant here.
        let meant = edited(&wrong, edits).replace("16 >= 0", "16 == 0").replace("16 <= 0", "16 == 0");
        assert_eq!(meant, program, "{title}");
    }
}

/// A program with a line to fill in.
fn typed(line: &str) -> String {
    format!(
        "// \u{1f600}
kernel typed(A: gmem f32[M, N], P: gmem i32[M, N], H: gmem f16[M, N], C: gmem f32[M, N], n: i32) grid (i: ceildiv(M, 64)) {{
    let h = smem f16[64, 64]
    let w = smem i8[64, 64]
    var x = reg f32[64, 64] = 0.0
    var p = reg i32[64, 64] = 0
    copy H[i * 64.., 0..] -> h
    copy 1 -> w
    {line}
    copy x + cast<f32>(p) -> C[i * 64.., 0..]
}}
"
    )
}

/// Fixes of messages about types make a program without mistakes.
#[test]
fn mistakes_of_types_are_mended() {
    let mut client = Client::new(Value::Null);
    for (wrong, right, title) in [
        ("x = x + p", "x = x + cast<f32>(p)", "replace `p` with `cast<f32>(p)`"),
        ("x = p", "x = cast<f32>(p)", "replace `p` with `cast<f32>(p)`"),
        ("p = 2.0", "p = 2", "replace `2.0` with `2`"),
        ("x = sqrt(p)", "x = sqrt(cast<f32>(p))", "replace `p` with `cast<f32>(p)`"),
        ("p = x << 7", "p = cast<i32>(x) << 7", "replace `x` with `cast<i32>(x)`"),
        ("p = select(p > 1 && p, p, 0)", "p = select(p > 1 && (p != 0), p, 0)", "replace `p` with `(p != 0)`"),
        ("p = p + (x > 0.0)", "p = p + (select(x > 0.0, 1, 0))", "replace `x > 0.0` with `select(x > 0.0, 1, 0)`"),
        ("copy A[i * 64..] -> x", "copy A[i * 64.., 0..] -> x", "insert `, 0..`"),
        ("x = mma(h, w, x)", "x = mma(h, cast<f16>(w), x)", "replace `w` with `cast<f16>(w)`"),
        ("if n == 0.0 { p = 1 }", "if n == 0 { p = 1 }", "replace `0.0` with `0`"),
        ("if n { p = 1 }", "if n != 0 { p = 1 }", "replace `n` with `n != 0`"),
        ("if n & 1 { p = 1 }", "if (n & 1) != 0 { p = 1 }", "replace `n & 1` with `(n & 1) != 0`"),
    ] {
        let (right, wrong) = (typed(right), typed(wrong));
        client.open(URI, &wrong);
        let everything = json!({ "start": place(&wrong, 0), "end": place(&wrong, wrong.len()) });
        let ask = json!({ "textDocument": { "uri": URI }, "range": everything, "context": { "diagnostics": [] } });
        let actions = client.request("textDocument/codeAction", ask);
        let actions = actions.as_array().expect("a list");
        let action = actions.iter().find(|a| a["title"] == title).unwrap_or_else(|| panic!("{title}: {actions:#?}"));
        let edits = action["edit"]["changes"][URI].as_array().expect("edits");
        assert_eq!(edited(&wrong, edits), right, "{title}");
        let mut sink = Sink::new();
        let module = tilec_ir::parser::parse(&right, &mut sink).expect("a program");
        assert!(tilec_ir::verify::verify(&module.kernels[0], &mut sink).is_ok(), "{right}: {:?}", sink.diagnostics());
    }
}

/// What a message says to leave out, or to write instead, is done by its fix.
#[test]
fn what_passes_say_is_done() {
    let mut client = Client::new(json!({ "target": "sm_80" }));
    let text = |schedule: &str, line: &str| {
        let head = "kernel k(A: gmem f16[M, K] multiple 8, C: gmem f16[M, K] multiple 8) grid (i: ceildiv(M, 64))";
        format!(
            "{head} schedule {{{schedule}}} {{\n    let a = smem f16[64, 64]\n    {line}\n    copy a -> C[i * 64.., 0..]\n}}\n"
        )
    };
    let plain = "copy A[i * 64.., 0..] -> a";
    let big = |threads: u32| {
        format!(
            "kernel big(A: gmem f32[M]) grid (i: ceildiv(M, 65536)) schedule {{ threads {threads} }} {{\n    var r = reg f32[65536] = 0.0\n    copy r -> A[i * 65536..]\n}}\n"
        )
    };
    let wide = |vec: &str| {
        format!(
            "kernel k(A: gmem f32[M, N] multiple 4, B: gmem f32[M, N] multiple 4) grid (i: ceildiv(M, 64)) require vectorised {{\n    var x = reg f32[64, 64]\n    copy A[i * 64.., 0..] -> x{vec}\n    copy x -> B[i * 64.., 0..]\n}}\n"
        )
    };
    let mean = |count: &str| {
        format!(
            "kernel k(X: gmem f32[M, N], Y: gmem f32[M]) where N <= 1024 grid (i: M) {{\n    let x = X[i, 0..+1024]\n    copy sum(x, 0) / {count} -> Y[i..]\n}}\n"
        )
    };
    for (wrong, right, title) in [
        (mean("1024.0"), mean("N"), "replace `1024.0` with `N` (divides by the number of elements of the tensor)"),
        (big(128), big(1024), "replace ` threads 128` with `threads 1024`"),
        (wide(" vec 1"), wide(""), "remove `vec 1`"),
        (text(" threads 128 threads 128 ", plain), text(" threads 128 ", plain), "remove `threads 128`"),
        (
            text(" threads 128", "copy A[i * 64.., 0..] -> a vec 8 vec 8"),
            text(" threads 128", "copy A[i * 64.., 0..] -> a vec 8"),
            "remove `vec 8`",
        ),
        (
            text(" threads 128", "copy A[i * 64.., 0..] -> a unaligned 1 vec 2"),
            text(" threads 128", "copy A[i * 64.., 0..] -> a unaligned 1"),
            "remove `vec 2`",
        ),
        (text(" threads 128 overlap 1 ", plain), text(" threads 128 ", plain), "remove `overlap 1`"),
        (text(" align_rows 1 threads 128 ", plain), text(" threads 128 ", plain), "remove `align_rows 1`"),
        (
            text(" threads 128 ", "for k in 0..K step 64 unroll { copy A[i * 64.., k..] -> a }"),
            text(" threads 128 ", "for k in 0..K step 64 { copy A[i * 64.., k..] -> a }"),
            "remove `unroll`",
        ),
        (text(" ctas 2 raster 8 ", plain), text(" ctas 2 ", plain), "remove `raster 8`"),
        (text(" target sm_81 ", plain), text(" target sm_80 ", plain), "replace `sm_81` with `sm_80`"),
    ] {
        client.open(URI, &wrong);
        let everything = json!({ "start": place(&wrong, 0), "end": place(&wrong, wrong.len()) });
        let ask = json!({ "textDocument": { "uri": URI }, "range": everything, "context": { "diagnostics": [] } });
        // What the passes find comes later. Word of an earlier text that was compiled may come first.
        let mut actions = client.request("textDocument/codeAction", ask.clone());
        while actions == json!([]) {
            client.notification("tilec/compiled");
            actions = client.request("textDocument/codeAction", ask.clone());
        }
        let actions = actions.as_array().expect("a list");
        let action = actions.iter().find(|a| a["title"] == title).unwrap_or_else(|| panic!("{title}: {actions:#?}"));
        let edits = action["edit"]["changes"][URI].as_array().expect("edits");
        assert_eq!(edited(&wrong, edits), right, "{title}");
    }
}

/// A message with `did you mean` has a quick fix: over every text of the tests of diagnostics.
#[test]
fn suggestions_are_fixes() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/files/diag");
    let mut suggestions = 0;
    for entry in std::fs::read_dir(dir).expect("texts") {
        let path = entry.expect("entry").path();
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let mut sink = Sink::new();
        // The mistakes are what is looked at.
        let _ = tilec_ir::parser::parse(&text, &mut sink);
        for d in sink.diagnostics() {
            let Some(meant) = d.notes.iter().find_map(|n| n.strip_prefix("did you mean `")) else { continue };
            suggestions += 1;
            let fix = d.fix.as_ref().unwrap_or_else(|| panic!("{}: {d:?}", path.display()));
            assert_eq!(format!("{}`?", fix.text), meant, "{}", path.display());
        }
    }
    assert!(suggestions >= 5, "{suggestions}");
}

/// A demand that holds with preconditions has one change that declares all of them; a change that mends several messages is one action.
#[test]
fn preconditions_of_a_demand_are_one_change() {
    let actions = |client: &mut Client, program: &str| {
        let everything = json!({ "start": place(program, 0), "end": place(program, program.len()) });
        let ask = json!({ "textDocument": { "uri": URI }, "range": everything, "context": { "diagnostics": [] } });
        client.request("textDocument/codeAction", ask).as_array().expect("a list").clone()
    };
    let mut client = Client::new(json!({ "target": "sm_80" }));
    let program = "kernel k(A: gmem f32[M, N], B: gmem f32[M, N]) grid (i: ceildiv(M, 16), j: ceildiv(N, 64)) require vectorised {
    copy A[i * 16..+16, j * 64..+64] -> B[i * 16.., j * 64..]
}
";
    client.open(URI, program);
    let title = "insert `where N % 4 == 0, A_ld % 4 == 0, B_ld % 4 == 0` (fewer sizes are accepted then)";
    let action = loop {
        // The message comes first, its change later.
        client.published(URI);
        if let Some(action) = actions(&mut client, program).into_iter().find(|action| action["title"] == title) {
            break action;
        }
    };
    assert_eq!(action["diagnostics"][0]["code"], "E0619", "{action:#?}");
    let mended = edited(program, action["edit"]["changes"][URI].as_array().expect("edits"));
    let options = tilec::CompileOptions { target: tilec::Target::Sm80, ..tilec::CompileOptions::default() };
    assert!(tilec::compile(&mended, &options).is_ok(), "{mended}");
    let program = &program.replace(" require vectorised", "").replace("..]\n", "..] vec 4\n");
    let mut client = Client::new(json!({ "target": "sm_80" }));
    client.open(URI, program);
    client.notification("tilec/compiled");
    let all = actions(&mut client, program);
    let removing: Vec<_> = all.iter().filter(|action| action["title"] == "remove `vec 4`").collect();
    assert_eq!(removing.len(), 1, "{all:#?}");
    assert!(removing[0]["diagnostics"].as_array().is_some_and(|list| list.len() > 1), "{all:#?}");
}
