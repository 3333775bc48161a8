//! Edges of small programs, as text: `source -> target value why distance`.

use super::DepGraph;
use pretty_assertions::assert_eq;
use tilec_ir::diag::Sink;
use tilec_ir::kernel::{Kernel, StmtData};

/// The edges between different statements of the first loop's body, numbered from 0.
fn edges(body: &str) -> Vec<String> {
    let text = format!(
        "kernel f(A: gmem f32[M, 8], C: gmem f32[M, 8]) {{\nvar x = reg f32[8] = 0.0\nvar y = reg f32[8] = 0.0\nfor i in 0..M {{\n{body}\n}}\n}}\n"
    );
    let mut sink = Sink::new();
    let module = tilec_ir::parser::parse(&text, &mut sink).unwrap_or_else(|_| panic!("{:?}", sink.diagnostics()));
    let k: &Kernel = &module.kernels[0];
    let body = k.blocks[k.body]
        .iter()
        .find_map(|&s| match k.stmts[s] {
            StmtData::For { body, .. } => Some(body),
            _ => None,
        })
        .expect("a loop");
    let graph = DepGraph::of(k, body, true);
    let mut all: Vec<String> = graph
        .edges()
        .map(|(a, b, d)| {
            let at = |s| graph.position(s).expect("a statement of the body");
            format!("{} -> {} {} {:?} {}", at(a), at(b), k.values[d.value].name, d.reason, d.distance)
        })
        .filter(|e| e.split_once(" -> ").is_some_and(|(from, rest)| !rest.starts_with(&format!("{from} "))))
        .filter(|e| e.contains(" x ") || e.contains(" y ") || e.contains(" t "))
        .collect();
    all.sort();
    all
}

#[test]
fn what_is_read_is_overwritten_in_the_next_iteration() {
    assert_eq!(
        edges("x = x + 1.0\ny = y + x"),
        ["0 -> 1 x Flow 0", "1 -> 0 x Anti 1"],
        "what is read is overwritten in the next iteration"
    );
}

#[test]
fn what_an_iteration_declares_does_not_carry_over() {
    assert_eq!(edges("let t = x + 1.0\ny = y + t"), ["0 -> 1 t Flow 0"]);
    assert_eq!(
        edges("var t = reg f32[8]\nt = x + 1.0\ny = y + t"),
        ["0 -> 1 t Output 0", "1 -> 2 t Flow 0"],
        "the declaration of the next iteration is of another tile"
    );
}

#[test]
fn a_branch_may_leave_what_was_there() {
    assert_eq!(
        edges("x = 1.0 + y\nif i > 2 {\nx = 2.0 + y\n}\ny = x"),
        [
            "0 -> 1 x Flow 0",
            "0 -> 1 x Output 0",
            "0 -> 2 x Flow 0",
            "0 -> 2 y Anti 0",
            "1 -> 0 x Anti 1",
            "1 -> 0 x Output 1",
            "1 -> 2 x Flow 0",
            "1 -> 2 y Anti 0",
            "2 -> 0 x Anti 1",
            "2 -> 0 y Flow 1",
            "2 -> 1 y Flow 1",
        ]
    );
}

#[test]
fn part_of_a_tile_that_is_written_leaves_the_rest() {
    let found = edges("copy A[i, 0..] -> x when i > 2\ny = y + x");
    assert_eq!(
        found,
        ["0 -> 1 x Flow 0", "0 -> 1 x Flow 1", "1 -> 0 x Anti 1"],
        "what the iteration before left is read too"
    );
    let found = edges("x = y + 0.0\ncopy A[i, 0..] -> x when i > 2\ny = y + x");
    assert!(found.contains(&"0 -> 2 x Flow 0".to_owned()), "{found:?}");
}

#[test]
fn readers_of_a_slot_precede_the_wait_for_the_next() {
    let text = "kernel f(A: gmem f32[M, 64], C: gmem f32[M, 64]) {\nlet x = channel f32[64, 64] slots 2\nvar y = reg f32[64, 64] = 0.0\n\
        for i in 0..M step 64 {\nacquire x\ncopy A[i.., 0..] -> x.put\npublish x\nwait x\ny = y + x.get\nrelease x\n}\n}\n";
    let mut sink = Sink::new();
    let module = tilec_ir::parser::parse(text, &mut sink).unwrap_or_else(|_| panic!("{:?}", sink.diagnostics()));
    let k: &Kernel = &module.kernels[0];
    let found = k.blocks[k.body].iter().find_map(|&s| match k.stmts[s] {
        StmtData::For { body, .. } => Some(body),
        _ => None,
    });
    let graph = DepGraph::of(k, found.expect("a loop"), true);
    // Filling another slot in between hides no edge: 3 is the wait, 4 the reader.
    let at = |s| graph.position(s).expect("a statement of the body");
    assert!(graph.edges().any(|(a, b, d)| (at(a), at(b), d.distance) == (4, 3, 1)));
}
