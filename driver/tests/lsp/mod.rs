//! `tilec lsp` as an editor speaks with it.

mod accesses;
mod client;
mod fixes;
mod lets;
mod quick_fixes;
mod text;

use client::Client;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use std::path::PathBuf;
use text::{at, byte, edited, place, slice};

const URI: &str = "file:///k.tile";

/// A program with characters of two, three and four bytes, and of two units, in front of what counts.
const PROGRAM: &str = "\
// \u{1f600} sums \u{e9}
kernel total<BN = 64>(A: gmem f32[M, N], /* \u{1f600}\u{65e5} */ B: gmem f32[M]) grid (i: M) {
    var acc = reg f32[BN] = 0.0
    for j in 0..N step BN {
        let x = A[i, j..]
        /* \u{1f600}\u{1f600} */ acc = acc + x
    }
    copy sum(acc, 0) -> B[i..]
}

sequence both { total, total }
";

fn examples() -> Vec<(String, String)> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut all: Vec<_> = std::fs::read_dir(dir)
        .expect("examples")
        .map(|e| e.expect("entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "tile"))
        .map(|p| {
            (p.file_name().expect("a name").to_string_lossy().into_owned(), std::fs::read_to_string(&p).expect("text"))
        })
        .collect();
    all.sort();
    assert!(all.len() > 20);
    all
}

fn document(uri: &str) -> Value {
    json!({ "textDocument": { "uri": uri } })
}

#[test]
fn it_begins_and_ends_as_the_protocol_says() {
    assert_eq!(Client::new(Value::Null).leave(), Some(0));
    assert_eq!(Client::new(Value::Null).status(), Some(1), "nobody said shutdown");
    let mut early = Client::bare();
    assert!(early.refusal("textDocument/hover", json!({})).contains("initialize"));

    let mut client = Client::new(Value::Null);
    assert!(client.refusal("textDocument/hover", document("file:///x")).contains("not open"));
    client.open(URI, PROGRAM);
    // What is not known is no method, whatever it is asked with.
    for params in [Value::Null, json!({}), json!({ "textDocument": 1 }), document("file:///x"), document(URI)] {
        for method in ["textDocument/unheardOf", "$/unheardOf", "workspace/symbol"] {
            let answer = client.answer(method, params.clone());
            assert_eq!(answer["error"]["code"], -32601, "{method} {params}: {answer}");
        }
    }
    assert!(!client.refusal("textDocument/hover", json!({ "textDocument": { "uri": URI }, "position": 3 })).is_empty());
    client.notify("textDocument/didChange", json!({ "nonsense": true }));
    assert!(client.notification("window/showMessage")["message"].as_str().expect("text").contains("didChange"));
    client.request("shutdown", Value::Null);
    assert!(client.refusal("textDocument/hover", document(URI)).contains("shut down"));
    client.notify("exit", Value::Null);
    assert_eq!(client.status(), Some(0));
}

#[test]
fn what_is_no_message_is_answered_and_the_next_one_is_read() {
    let mut client = Client::new(json!({}));
    for (body, code) in [("{abc}", -32700), ("[]", -32600), ("null", -32600), ("{\"jsonrpc\":\"2.0\"}", -32600)] {
        client.raw(body);
        assert_eq!(client.error(), code, "{body}");
    }
    // A change of a part of the text does not take the place of the whole.
    let uri = "file:///x.tile";
    client.open(uri, "kernel k(A: gmem f32[M]) grid (i: M) { }");
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 0 } });
    let document = json!({ "uri": uri, "version": 2 });
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": document, "contentChanges": [{ "range": range, "text": "x" }] }),
    );
    assert!(client.notification("window/showMessage")["message"].as_str().is_some_and(|m| m.contains("whole texts")));
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn mistakes_are_said_where_they_are() {
    let mut client = Client::new(Value::Null);
    let text = PROGRAM.replace("acc + x", "acc + y").replace("let x", "let acc");
    let found = client.open(URI, &text);
    let duplicate = found.iter().find(|d| d["code"] == "E0202").unwrap_or_else(|| panic!("{found:#?}"));
    assert_eq!(slice(&text, &duplicate["range"]), "acc");
    assert_eq!(duplicate["severity"], 1);
    assert_eq!(duplicate["source"], "tilec");
    assert_eq!(duplicate["codeDescription"]["href"], "tilec-explain:E0202");
    let related = &duplicate["relatedInformation"][0];
    assert_eq!((related["location"]["uri"].as_str(), slice(&text, &related["location"]["range"])), (Some(URI), "acc"));
    assert_eq!(related["location"]["range"]["start"]["line"], 2);
    let unknown = found.iter().find(|d| d["code"] == "E0201").unwrap_or_else(|| panic!("{found:#?}"));
    assert_eq!(slice(&text, &unknown["range"]), "y", "behind characters of two units");
    assert!(unknown["message"].as_str().expect("text").contains("note: "));
    let explained = client.request("tilec/explain", json!({ "word": "E0201" }));
    assert!(explained.as_str().expect("text").starts_with("E0201: "));
    assert!(client.refusal("tilec/explain", json!({ "word": "E9999" })).contains("E9999"));

    // A later text takes its place, and what was wrong is taken back.
    let change = json!({ "textDocument": { "uri": URI, "version": 2 }, "contentChanges": [{ "text": PROGRAM }] });
    client.notify("textDocument/didChange", change);
    assert_eq!(client.published(URI), [Value::Null; 0]);
    client.notify("textDocument/didClose", document(URI));
    assert_eq!(client.published(URI), [Value::Null; 0]);
}

/// What only the passes find is published when they have run; what a text of earlier says is not.
#[test]
fn what_the_passes_find_comes_later() {
    let mut client = Client::new(json!({ "target": "sm_70" }));
    let text = PROGRAM.replace("<BN = 64>", "<BN: int>");
    assert_eq!(client.open(URI, &text), [Value::Null; 0]);
    let later = client.published(URI);
    assert_eq!((&later[0]["code"], &later[0]["severity"]), (&json!("E0403"), &json!(3)));
    client.notify("workspace/didChangeConfiguration", json!({ "settings": { "tilec": { "defines": { "BN": 32 } } } }));
    assert_eq!(client.published(URI), [Value::Null; 0]);
    client.notification("tilec/compiled");
    let hover = client.request("textDocument/hover", at(URI, &text, "acc", 0));
    assert!(hover["contents"]["value"].as_str().expect("text").contains("reg f32[32]"), "{hover}");
    client.notify("workspace/didChangeConfiguration", json!({ "settings": { "tilec": { "target": "sm_1" } } }));
    assert!(client.notification("window/showMessage")["message"].as_str().expect("text").contains("sm_90a"));
}

/// What does not meet a demand is said as the command line says it, those demands included that registers have a part in.
#[test]
fn demands_are_judged_as_on_the_command_line() {
    let dir = crate::common::Dir::new("demands");
    let text = |threads: u32, demands: &str| {
        format!(
            "kernel k(X: gmem f32[N] multiple 4, Y: gmem f32[N] multiple 4)
    grid (i: ceildiv(N, 3508))
    schedule {{ threads {threads} }}
    require {demands}
{{
    let s = smem f32[3508]
    copy X[i * 3508..] -> s
    copy s -> Y[i * 3508..]
}}
"
        )
    };
    let mut client = Client::new(json!({ "target": "sm_80" }));
    for (demands, code) in [
        ("resident >= 100", Some("E0619")),
        ("registers <= 4", None),
        ("no spills, registers <= 5", None),
        ("no bank conflicts, stages >= 2", Some("E0619")),
        ("predicted >= 0.9 roofline", Some("W0602")),
        ("resident >= 1", Some("")),
    ] {
        let text = text(64, demands);
        let file = dir.file("k.tile", text.as_bytes());
        let file = file.to_string_lossy();
        let run = dir.tilec(&[&file, "--target", "sm_80", "-o", "k.ptx", "--error-format", "json"]);
        let lines = run.stderr.lines().map(|line| serde_json::from_str::<Value>(line).expect("a diagnostic"));
        let said: Vec<Value> = lines.map(|d| d["code"].clone()).filter(|code| code != "E0000").collect();
        if let Some(code) = code {
            assert!(code.is_empty() == said.is_empty() && said.iter().all(|c| c == code), "{demands}: {}", run.stderr);
        }
        client.open(URI, &text);
        // What the assembler has a part in comes last.
        let found = client.last_published(URI, said.len());
        // What was decided is shown all the same.
        let hover = client.request("textDocument/hover", at(URI, &text, "s = smem", 0));
        assert!(hover["contents"]["value"].as_str().is_some_and(|t| t.contains("On sm_80")), "{demands}: {hover}");
        let codes: Vec<Value> = found.iter().map(|d| d["code"].clone()).collect();
        assert_eq!(codes, said, "{demands}: {found:#?}");
        for d in &found {
            assert_eq!(d["severity"], if d["code"] == "E0619" { 1 } else { 2 }, "{d}");
        }
    }
}

/// Files of an assembler that runs when the editor leaves are removed.
#[test]
fn nothing_is_left_behind() {
    let dir = crate::common::Dir::new("left");
    let mut client =
        Client::of(crate::common::command().env("TMPDIR", &dir.0)).initialized(json!({ "target": "sm_90a" }));
    let (_, text) = examples().into_iter().find(|(name, _)| name == "gemm.tile").expect("an example");
    client.open(URI, &text.replacen("schedule {", "require registers <= 255 schedule {", 1));
    client.notification("tilec/compiled");
    // The assembler takes longer than this.
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(client.leave(), Some(0));
    assert_eq!(dir.names(), [""; 0]);
}

#[test]
fn names_lead_to_where_they_are_declared_and_used() {
    let mut client = Client::new(Value::Null);
    client.open(URI, PROGRAM);
    for (name, nth, uses) in
        [("acc", 2, 4), ("BN", 2, 3), ("x\n", 0, 2), ("M", 1, 3), ("total", 2, 3), ("A", 1, 2), ("j", 1, 2)]
    {
        let what = name.trim_end();
        let ask = at(URI, PROGRAM, name, nth);
        let definition = client.request("textDocument/definition", ask.clone());
        assert_eq!(slice(PROGRAM, &definition["range"]), what, "{name}");
        let mut ask = ask;
        ask["context"] = json!({ "includeDeclaration": true });
        let places = client.request("textDocument/references", ask.clone());
        let places = places.as_array().expect("a list");
        assert!(places.iter().all(|p| slice(PROGRAM, &p["range"]) == what), "{name}: {places:?}");
        assert_eq!(places.len(), uses, "{name}: {places:?}");
        assert!(places.iter().any(|p| p["range"] == definition["range"]));
        ask["context"] = json!({ "includeDeclaration": false });
        assert_eq!(client.request("textDocument/references", ask).as_array().expect("a list").len(), uses - 1);
    }
    let nothing = json!({ "textDocument": { "uri": URI }, "position": { "line": 0, "character": 4 } });
    assert_eq!(client.request("textDocument/definition", nothing), Value::Null);
}

/// The text, in which what is at `place` has another name.
fn renamed(client: &mut Client, text: &str, place: &str, name: &str) -> String {
    let mut ask = at(URI, text, place, 0);
    ask["newName"] = json!(name);
    let answer = client.answer("textDocument/rename", ask);
    let edits = answer["result"]["changes"][URI].as_array().unwrap_or_else(|| panic!("{answer}"));
    edited(text, edits)
}

#[test]
fn names_that_are_made_of_a_tensors_follow_it() {
    let program = "kernel k(A: gmem f32[M, N], B: gmem f32[M, N])\n    where A_ld % 4 == 0, A_ld >= B_ld\n    grid (i: M)\n{\n    copy A[i..+1, 0..+4] -> B[i.., 0..]\n}\n";
    let mut client = Client::new(Value::Null);
    client.open(URI, program);
    let wanted = program.replace("A:", "Left:").replace("A_ld", "Left_ld").replace("A[", "Left[");
    assert_eq!(renamed(&mut client, program, "A:", "Left"), wanted);
}

#[test]
fn a_name_is_changed_everywhere_or_not_at_all() {
    let mut client = Client::new(Value::Null);
    client.open(URI, PROGRAM);
    let mut rename = |what: &str, nth: usize, name: &str| {
        let mut ask = at(URI, PROGRAM, what, nth);
        ask["newName"] = json!(name);
        client.answer("textDocument/rename", ask)
    };
    for (what, nth, name) in
        [("acc", 1, "result"), ("BN", 1, "WIDTH"), ("M,", 0, "rows"), ("total", 1, "all_of_it"), ("both", 0, "twice")]
    {
        let answer = rename(what, nth, name);
        let edits = answer["result"]["changes"][URI].as_array().unwrap_or_else(|| panic!("{answer}"));
        let text = edited(PROGRAM, edits);
        let old = what.trim_end_matches(',');
        let words =
            |text: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_owned).collect::<Vec<_>>();
        let wanted: Vec<_> = words(PROGRAM).into_iter().map(|w| if w == old { name.to_owned() } else { w }).collect();
        assert_eq!(words(&text), wanted);
    }
    for (what, name, why) in [
        ("acc", "copy", "words of the language"),
        ("acc", "2x", "cannot be a name"),
        ("acc", "a b", "cannot be a name"),
        ("acc", "", "cannot be a name"),
        ("acc", "x", "is declared"),
        ("x\n", "acc", "is declared"),
        ("acc", "f32", "words of the language"),
        ("BN", "M", "is declared"),
        ("both", "total", "is declared"),
        ("kernel", "y", "no name here"),
    ] {
        let answer = rename(what, 0, name);
        let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{what} -> {name}: {answer}"));
        assert!(message.contains(why), "{what} -> {name}: {message}");
    }
    let prepared = client.request("textDocument/prepareRename", at(URI, PROGRAM, "acc", 2));
    assert_eq!(slice(PROGRAM, &prepared), "acc");
    let text = PROGRAM.replace("let x", "let x =");
    client.open("file:///broken.tile", &text);
    assert!(
        client.refusal("textDocument/prepareRename", at("file:///broken.tile", &text, "acc", 0)).contains("errors")
    );
}

#[test]
fn what_kernels_of_a_sequence_share_is_changed_in_all_of_them() {
    let text = "kernel first(X: gmem f32[M], P: gmem f32[M]) grid (i: ceildiv(M, 32)) {
    copy X[i * 32..+32] -> P[i * 32..]
}
kernel second(P: gmem f32[M], Y: gmem f32[M]) grid (i: ceildiv(M, 32)) {
    copy P[i * 32..+32] -> Y[i * 32..]
}
kernel apart(P: gmem f32[M], Y: gmem f32[M]) grid (i: ceildiv(M, 32)) {
    copy P[i * 32..+32] -> Y[i * 32..]
}
sequence whole { first, second }
";
    let mut client = Client::new(Value::Null);
    client.open(URI, text);
    let part = renamed(&mut client, text, "P[i", "Part");
    let (shared, apart) = text.split_at(text.find("kernel apart").expect("it is there"));
    assert_eq!(part, shared.replace("P[", "Part[").replace("P:", "Part:") + apart);
    let mut ask = at(URI, text, "P[i", 0);
    for (declared, wanted) in [(true, 4), (false, 2)] {
        ask["context"] = json!({ "includeDeclaration": declared });
        let places = client.request("textDocument/references", ask.clone());
        let places = places.as_array().expect("a list");
        assert!(places.iter().all(|p| slice(text, &p["range"]) == "P"), "{places:?}");
        assert_eq!(places.len(), wanted, "{places:?}");
    }
    let mut ask = at(URI, text, "i *", 0);
    ask["newName"] = json!("block");
    let answer = client.answer("textDocument/rename", ask);
    assert_eq!(answer["result"]["changes"][URI].as_array().map(Vec::len), Some(3), "{answer}");
}

/// The threads of a block are those of all roles.
#[test]
fn threads_are_those_of_the_block_with_its_producers() {
    let mut client = Client::new(json!({ "target": "sm_90a" }));
    let (_, text) = examples().into_iter().find(|(name, _)| name == "gemm.tile").expect("an example");
    client.open(URI, &text);
    client.notification("tilec/compiled");
    let found = client.request("textDocument/hover", at(URI, &text, "gemm<", 0));
    let said = found["contents"]["value"].as_str().unwrap_or_else(|| panic!("{found}"));
    assert!(said.contains("384 threads a block (128 of role `producer`, 256 of role `consumer`)"), "{said}");
}

#[test]
fn what_was_chosen_is_shown() {
    let mut client = Client::new(json!({ "target": "sm_80" }));
    let (_, text) = examples().into_iter().find(|(name, _)| name == "gemm.tile").expect("an example");
    client.open(URI, &text);
    client.notification("tilec/compiled");
    let hover = |client: &mut Client, what: &str, nth: usize| {
        let found = client.request("textDocument/hover", at(URI, &text, what, nth));
        found["contents"]["value"].as_str().unwrap_or_else(|| panic!("{what}: {found}")).to_owned()
    };
    let acc = hover(&mut client, "acc = reg", 0);
    assert!(acc.contains("reg Acc[BM, BN]") && acc.contains("On sm_80, ") && acc.contains("layout"), "{acc}");
    assert!(acc.contains("threads"), "{acc}");
    let parameter = hover(&mut client, "BM = auto", 0);
    assert!(parameter.contains("on sm_80") && parameter.contains("compile-time parameter"), "{parameter}");
    let copy = hover(&mut client, "copy A[", 0);
    assert!(copy.contains("* `pipeline`: ") && copy.contains("* `predicate`: `A`"), "{copy}");
    assert!(hover(&mut client, "ceildiv", 0).contains("rounded toward plus infinity"));
    let c = hover(&mut client, "c = C[", 0);
    assert!(c.contains("let c: a rank-2 window"), "{c}");

    let everything = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 999, "character": 0 } });
    let hints =
        client.request("textDocument/inlayHint", json!({ "textDocument": { "uri": URI }, "range": everything }));
    let hints = hints.as_array().expect("a list");
    let autos = text.matches("= auto").count();
    let behind = |h: &Value| text[..byte(&text, &h["position"])].to_owned();
    assert_eq!(hints.iter().filter(|h| behind(h).ends_with("= auto")).count(), autos, "{hints:?}");
    for hint in hints.iter().filter(|h| behind(h).ends_with("auto")) {
        assert!(hint["label"].as_str().expect("text").trim().parse::<i64>().is_ok(), "{hint}");
    }
    assert!(hints.iter().any(|h| h["kind"] == 1 && behind(h).ends_with("let c")), "{hints:?}");
}

#[test]
fn proposals_fit_the_place() {
    let mut client = Client::new(Value::Null);
    let mut words = |text: &str, marker: &str| {
        let text = text.to_owned();
        let byte = text.find(marker).expect("a place");
        let text = text.replacen(marker, "", 1);
        client.open(URI, &text);
        let ask = json!({ "textDocument": { "uri": URI }, "position": place(&text, byte) });
        let list = client.request("textDocument/completion", ask);
        list.as_array()
            .expect("a list")
            .iter()
            .map(|i| i["label"].as_str().expect("text").to_owned())
            .collect::<Vec<_>>()
    };
    for (from, to, there, not_there) in [
        (
            "    copy sum",
            "    \u{a7}\n    copy sum",
            &["copy", "for", "acc", "let"][..],
            &["kernel", "x", "f32", "threads"][..],
        ),
        ("acc + x", "acc + x + \u{a7}", &["x", "acc", "j", "sum", "exp2", "BN"], &["copy", "kernel", "grid"]),
        ("acc = reg f32", "acc = reg \u{a7}f32", &["f16", "bf16"], &["copy", "acc", "sum"]),
        ("A: gmem", "A: \u{a7}gmem", &["gmem", "const", "f32"], &["copy"]),
        (" grid (i", " \u{a7} grid (i", &["grid", "where", "schedule"], &["copy", "f32"]),
        (" grid (i: M) {", " grid (i: M) schedule { \u{a7} } {", &["threads", "stages", "BN"], &["copy", "gmem"]),
        (" grid (i: M) {", " grid (i: M) require \u{a7} {", &["no spills", "wgmma", "registers"], &["grid", "copy"]),
        (" grid (i: M) {", " grid (i: M) require wgmma, \u{a7} {", &["tma", "resident"], &["grid", "threads"]),
        (
            " grid (i: M) {",
            " grid (i: M) require no \u{a7} {",
            &["spills", "bank conflicts"],
            &["no spills", "wgmma", "sum"],
        ),
        (" grid (i: M) {", " grid (i: M) require tensor \u{a7} {", &["cores"], &["memory"]),
        (" grid (i: M) {", " grid (i: M) require predicted >= 0.9 \u{a7} {", &["roofline"], &["minimum", "sum"]),
        (" grid (i: M) {", " grid (i: M) require wgmma \u{a7} {", &["where"], &["require", "sum"]),
        (" grid (i: M) {", " where \u{a7} grid (i: M) {", &["BN", "ceildiv", "min"], &["exp", "sum", "mma", "copy"]),
        (" grid (i: M) {", " where M \u{a7} grid (i: M) {", &[], &["exp", "sum", "copy"]),
        (" grid (i: M) {", " grid (i: ceildiv(M, \u{a7})) {", &["BN"], &["exp2", "sum", "grid"]),
        (" grid (i: M) {", " grid (i: M) where M > 0 \u{a7} {", &["require"], &["exp2", "sum"]),
        ("    copy sum", "    // how \u{a7}\n    copy sum", &[], &["copy", "sum", "acc"]),
        ("    copy sum", "    // how\u{a7}\n    copy sum", &[], &["copy", "sum", "acc"]),
        (
            "    copy sum",
            "    copy acc -> acc \u{a7}\n    copy sum",
            &["tma", "fill", "vec", "when"],
            &["sum", "step", "acc"],
        ),
        ("    copy sum", "    for q in 0..4 \u{a7} {}\n    copy sum", &["step", "unroll"], &["sum", "tma"]),
        ("    copy sum", "    role load \u{a7} {}\n    copy sum", &["warps", "registers"], &["sum", "tma"]),
        ("    copy sum", "    let c = channel f32[BN] \u{a7}\n    copy sum", &["slots"], &["sum", "tma"]),
        (
            "    copy sum",
            "    let c = channel f32[BN] slots 2\n    copy 1.0 -> c.\u{a7}\n    copy sum",
            &["put", "get"],
            &["sum", "tma"],
        ),
        ("    copy sum", "    copy acc.\u{a7}\n    copy sum", &[], &["put", "sum"]),
        ("sequence both", "\u{a7}\nsequence both", &["kernel", "sequence"], &["copy", "acc"]),
        ("{ total, total }", "{ \u{a7} }", &["total"], &["both", "kernel", "sequence", "copy"]),
        ("{ total, total }", "{ total, to\u{a7} }", &["total"], &["both", "kernel", "sequence", "copy"]),
        ("{ total, total }", "{ total \u{a7} }", &[], &["total", "kernel", "sequence"]),
        (
            " grid (i: M) {",
            " grid (i: M) schedule { target \u{a7} } {",
            &["sm_70", "sm_90a"],
            &["threads", "BN", "target"],
        ),
        (" grid (i: M) {", " grid (i: M) schedule { target sm_80 \u{a7} } {", &["threads"], &["sm_70"]),
        ("acc + x", "mma<\u{a7}", &["m8n8k4", "fma", "swap"], &["m64n256k16", "m16n8k16", "sum", "acc"]),
        ("acc + x", "mma<fma, \u{a7}", &["swap"], &["fma", "sum", "acc"]),
        ("<BN = 64>", "<BN = \u{a7}64>", &["auto"], &["copy"]),
        ("sums", "su\u{a7}ms", &[], &["sum", "copy", "kernel"]),
    ] {
        let found = words(&PROGRAM.replacen(from, to, 1), "\u{a7}");
        assert!(there.iter().all(|w| found.iter().any(|f| f == w)), "{to}: {there:?} in {found:?}");
        assert!(not_there.iter().all(|w| !found.iter().any(|f| f == w)), "{to}: none of {not_there:?} in {found:?}");
    }
}

/// Every example: nothing is wrong with it, it has symbols, stands as it should, and its tokens are words of it in order.
#[test]
fn every_example_is_understood() {
    let mut client = Client::new(Value::Null);
    for (name, text) in examples() {
        let uri = format!("file:///examples/{name}");
        let found = client.open(&uri, &text);
        assert!(found.iter().all(|d| d["severity"] != 1), "{name}: {found:#?}");
        let symbols = client.request("textDocument/documentSymbol", document(&uri));
        let kernel = &symbols[0];
        assert!(text.contains(kernel["name"].as_str().expect("a name")), "{name}");
        assert!(kernel["children"].as_array().is_some_and(|all| !all.is_empty()), "{name}");
        for child in kernel["children"].as_array().into_iter().flatten() {
            assert_eq!(slice(&text, &child["selectionRange"]), child["name"].as_str().expect("a name"), "{name}");
        }
        let options = json!({ "textDocument": { "uri": uri }, "options": { "tabSize": 4, "insertSpaces": true } });
        assert_eq!(client.request("textDocument/formatting", options), json!([]), "{name}");
        let tokens = client.request("textDocument/semanticTokens/full", document(&uri));
        let mut at = (0, 0);
        let mut seen = 0;
        for token in tokens["data"].as_array().expect("numbers").chunks(5) {
            let n = |i: usize| token[i].as_u64().expect("a number");
            at = if n(0) == 0 { (at.0, at.1 + n(1)) } else { (at.0 + n(0), n(1)) };
            let end = json!({ "line": at.0, "character": at.1 + n(2) });
            let word = slice(&text, &json!({ "start": { "line": at.0, "character": at.1 }, "end": end }));
            assert!(!word.is_empty() && !word.contains('\n'), "{name}: {at:?}");
            seen += 1;
            // The word `kernel` is one of the language, wherever it is not a part of a comment.
            if word == "kernel" {
                assert_eq!(n(3), 1, "{name}: {at:?}");
            }
        }
        assert!(seen > 50, "{name}");
        client.notify("textDocument/didClose", document(&uri));
    }
    assert_eq!(client.leave(), Some(0));
}

/// Settings are for all texts of an editor: those that a program has no use for are no mistake of it.
#[test]
fn settings_for_other_programs_do_no_harm() {
    let options = json!({ "target": "sm_80", "defines": { "BN": 64, "STAGES": 3 }, "sizes": { "M": 512, "K": 64 } });
    let mut client = Client::new(options);
    let program =
        "kernel scale<BN = 32>(A: gmem f32[M, BN]) grid (i: M) {\n    copy A[i, 0..+BN] * 2.0 -> A[i, 0..+BN]\n}\n";
    assert_eq!(client.open(URI, program), Vec::<Value>::new());
    let said = client.published(URI);
    assert!(said.iter().all(|d| d["severity"] != 1), "{said:?}");
    client.notification("tilec/compiled");
    let fitting = client.request("tilec/settings", document(URI));
    assert_eq!(fitting, json!({ "target": "sm_80", "defines": { "BN": "64" }, "sizes": { "M": 512 } }));
}

#[test]
fn a_file_is_laid_out() {
    let mut client = Client::new(Value::Null);
    let text = PROGRAM.replace("    var acc = reg", "  var   acc=reg");
    client.open(URI, &text);
    let options = json!({ "textDocument": { "uri": URI }, "options": { "tabSize": 4, "insertSpaces": true } });
    let edits = client.request("textDocument/formatting", options.clone());
    assert_eq!(edited(&text, edits.as_array().expect("edits")), PROGRAM);
    let wrong = text.replace("f32[BN]", "f31[BN, 3]");
    client.open(URI, &wrong);
    let edits = client.request("textDocument/formatting", options.clone());
    assert_eq!(edited(&wrong, edits.as_array().expect("edits")), PROGRAM.replace("f32[BN]", "f31[BN, 3]"));
    client.open(URI, "// Nothing yet.\n");
    assert_eq!(client.request("textDocument/formatting", options.clone()), json!([]));
    client.open(URI, "kernel");
    assert_eq!(client.request("textDocument/formatting", options), Value::Null);
}
