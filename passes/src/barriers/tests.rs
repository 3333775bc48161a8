//! Numbers of barriers in known programs, and tests that the proof finds everything that the placement needs.

mod oracle;
mod programs;

use super::prove;
use crate::{Cx, Options};
use programs::{BAD, GOOD, STORED};
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Severity, Sink};
use tilec_ir::entities::Block;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::target::Target;

const GEMM: &str = include_str!("../../../examples/gemm.tile");

fn parse(source: &str) -> Kernel {
    let mut sink = Sink::new();
    let parsed = tilec_ir::parser::parse(source, &mut sink);
    assert!(parsed.is_ok(), "{source}\n{:#?}", sink.diagnostics());
    parsed.expect("checked").kernels.remove(0)
}

/// A kernel with this body, over buffers `A` and `O` in global memory.
fn body(text: &str) -> Kernel {
    parse(&format!(
        "kernel t(A: gmem f16[M, N], O: gmem f16[M, N], n: i32 = 1)\n    grid (g: ceildiv(M, 32))\n{{\n{text}\n}}\n"
    ))
}

/// The pass's result for a kernel, and its diagnostics.
fn placed(mut k: Kernel) -> (Kernel, Vec<Diagnostic>) {
    let options = Options::new(Target::Sm70);
    let mut sink = Sink::new();
    let mut cx = Cx { enabled: true, ..Cx::new(&options, "barriers", &mut sink) };
    let result = super::run(&mut k, &mut cx);
    assert_eq!(result.is_ok(), sink.error_count() == 0);
    (k, sink.into_diagnostics())
}

/// Like [`placed`], for correct kernels.
fn good(k: Kernel) -> Kernel {
    let (k, said) = placed(k);
    let wrong: Vec<_> = said.iter().filter(|d| d.severity != Severity::Remark).collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{}", tilec_ir::print::print(&k));
    k
}

/// Compiled by the whole pipeline.
fn compiled(source: &str, defines: &[(&str, &str)]) -> (Kernel, Vec<Diagnostic>) {
    let mut k = parse(source);
    let mut options = Options::new(Target::Sm70);
    options.defines = defines.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let mut sink = Sink::new();
    let result = crate::run(&mut k, &options, &mut sink, &mut |_, _| {});
    assert!(result.is_ok(), "{:#?}\n{}", sink.diagnostics(), tilec_ir::print::print(&k));
    (k, sink.into_diagnostics())
}

/// Every barrier, by its block and index.
fn barriers(k: &Kernel) -> Vec<(Block, usize)> {
    let mut out = Vec::new();
    k.walk(k.body, &mut |k, b, s| {
        if matches!(k.stmts[s], StmtData::Barrier) {
            let at = k.blocks[b].iter().position(|t| *t == s).expect("walked in its block");
            out.push((b, at));
        }
    });
    out
}

/// Barriers passed by an iteration of the innermost run-time loop.
fn in_loop(k: &Kernel) -> u64 {
    super::innermost(k, k.body).expect("has a loop")
}

/// Asserts that the barriers suffice, and that none can be removed.
fn needs_each(k: &Kernel) {
    assert_eq!(prove(k), [], "{}", tilec_ir::print::print(k));
    for (b, at) in barriers(k) {
        let mut less = k.clone();
        less.blocks[b].remove(at);
        let found = prove(&less);
        assert!(
            found.iter().any(|d| d.severity == Severity::Error && d.code == codes::HAZARD),
            "a barrier can be left out, and the proof does not mind:\n{}",
            tilec_ir::print::print(&less)
        );
    }
}

#[test]
fn pipelined_gemm_has_one_barrier_in_the_loop() {
    for defines in
        [&[][..], &[("STAGES", "3"), ("BM", "64"), ("BN", "128")], &[("LA", "col"), ("LB", "col")], &[("ALIGN", "1")]]
    {
        let (k, _) = compiled(GEMM, defines);
        assert_eq!(in_loop(&k), 1, "{}", tilec_ir::print::print(&k));
        needs_each(&k);
    }
}

#[test]
fn unpipelined_gemm_has_two_barriers_in_the_loop() {
    let (k, said) = compiled(GEMM, &[("STAGES", "1")]);
    assert_eq!(in_loop(&k), 2, "{}", tilec_ir::print::print(&k));
    needs_each(&k);
    // Each names its own statement: the line of the product has two.
    let remarks: Vec<_> = said
        .iter()
        .filter(|d| d.code.0 == "barriers")
        .map(|d| d.message.split_once(": ").map_or(d.message.as_str(), |(_, why)| why))
        .collect();
    assert_eq!(
        remarks,
        [
            // The peeled residue, and then the loop; the barriers for `a` also protect `b`.
            "`a` read after write, `b` read after write",
            "`a` write after read, `b` write after read",
            "`a` read after write, `b` read after write",
            "3 barriers placed, 2 per iteration of the innermost loop",
        ]
    );
}

#[test]
fn as_few_as_needed() {
    for &(what, count, text) in GOOD {
        let k = good(body(text));
        assert_eq!(barriers(&k).len(), count, "{what}:\n{}", tilec_ir::print::print(&k));
        needs_each(&k);
    }
}

#[test]
fn stores_that_meet_are_ordered_and_no_others() {
    for &(what, count, text) in STORED {
        let k = good(body(&format!("var x = reg f16[32, 32] = 0.0\n{text}")));
        assert_eq!(barriers(&k).len(), count, "stores {what}:\n{}", tilec_ir::print::print(&k));
        needs_each(&k);
    }
}

#[test]
fn a_second_run_places_nothing() {
    for &(what, count, text) in GOOD {
        let (k, said) = placed(good(body(text)));
        assert_eq!(barriers(&k).len(), count, "{what}");
        assert!(said.iter().any(|d| d.message.starts_with("0 barriers placed")), "{what}: {said:?}");
    }
}

#[test]
fn wrong_programs_are_reported() {
    for &(what, message, path, text) in BAD {
        let (k, said) = placed(body(text));
        let hit = said.iter().find(|d| d.severity == Severity::Error && d.message.contains(message));
        let Some(hit) = hit else { panic!("{what}: not reported\n{}\n{said:#?}", tilec_ir::print::print(&k)) };
        assert_eq!(hit.code, codes::HAZARD);
        assert!(!hit.span.is_none(), "{what}");
        assert!(hit.notes.iter().any(|n| n.contains(path)), "{what}: {hit:#?}");
    }
}

#[test]
fn both_statements_are_named() {
    let source = body("let a = smem f16[32, 32]\n copy A -> a\n copy a -> O");
    let found = prove(&source);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].labels.len(), 1);
    let spans: Vec<_> = source.blocks[source.body].iter().map(|&s| source.stmt_spans[s]).collect();
    assert_eq!((found[0].labels[0].span, found[0].span), (spans[1], spans[2]));
}

#[test]
fn roles_get_no_barriers() {
    let text = "let a = channel f16[32, 32] slots 2
        role p warps 1 { acquire a copy A -> a.put publish a }
        role c warps 1 { wait a copy a.get -> O release a }";
    let (k, said) = placed(body(text));
    assert_eq!((barriers(&k).len(), said), (0, Vec::new()));
}

/// A role with a buffer of its own, and the statements of its loop.
fn role(text: &str) -> Kernel {
    body(&format!(
        "let a = channel f16[32, 32] slots 2
         let b = smem f16[32, 32]
         role p warps 1 {{ for k in 0..N step 32 {{ acquire a copy A -> a.put publish a }} }}
         role c warps 1 {{ for k in 0..N step 32 {{ wait a {text} release a }} }}"
    ))
}

#[test]
fn buffers_of_roles_get_barriers() {
    let k = good(role("copy a.get -> b copy b -> O"));
    assert_eq!(barriers(&k).len(), 2, "{}", tilec_ir::print::print(&k));
    needs_each(&k);
    // All barriers are in the role.
    assert!(barriers(&k).iter().all(|&(b, _)| b != k.body));
    let k = good(role("copy a.get -> b barrier copy b -> O barrier"));
    assert_eq!(barriers(&k).len(), 2);
    needs_each(&k);
}

#[test]
fn a_buffer_is_for_one_role() {
    for text in [
        "let b = smem f16[32, 32]
         role p warps 1 { copy A -> b }
         role c warps 1 { copy A -> b copy b -> O }",
        "let b = smem f16[32, 32]
         copy A -> b
         role p warps 1 { copy b -> O }
         role c warps 1 { let x = reg f16[32, 32] = copy A copy x -> O }",
    ] {
        let (_, said) = placed(body(text));
        let hit = said.iter().find(|d| d.severity == Severity::Error).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(hit.code, codes::HAZARD);
        assert!(hit.message.contains("`b` is used by a role and by other threads"), "{hit:#?}");
    }
    // Only code outside of roles uses the buffer.
    let beside = body(
        "let b = smem f16[32, 32]
         copy A -> b
         copy b -> O
         role p warps 1 { let x = reg f16[32, 32] = copy A copy x -> O }",
    );
    let k = good(beside);
    assert_eq!(barriers(&k).len(), 1);
    needs_each(&k);
}

/// A barrier between any two statements is never wrong, and any program that uses only buffers is correct with enough
/// barriers.
#[test]
fn placed_barriers_suffice_for_every_small_program() {
    // Programs of four of these statements, in and after a loop.
    let parts = [
        "copy A -> a\n",
        "copy A -> b\n",
        "copy a -> O\n",
        "copy b -> O\n",
        "copy a -> b\n",
        "for i# in 1..M { copy b -> a }\n",
        "if n == 1 { copy a -> b }\n",
    ];
    let n = parts.len();
    for code in 0..n * n * n * n {
        let pick = |i: u32| parts[code / n.pow(i) % n].replace('#', &i.to_string());
        let text = format!(
            "let a = smem f16[32, 32]\n let b = smem f16[32, 32]\n copy A -> a\n copy A -> b\n\
             for k in 0..N {{\n {}{}{} }}\n {}",
            pick(0),
            pick(1),
            pick(2),
            pick(3)
        );
        good(body(&text));
    }
}

/// Deeply nested loops: the work is bounded, not exponential in the depth.
#[test]
fn deep_nesting_is_quick() {
    let depth = 20;
    let mut text = String::from("let a = smem f16[32, 32]\n let c = channel f16[32, 32] slots 3\n copy A -> a\n");
    for i in 0..depth {
        text.push_str(&format!("for x{i} in 1..N {{ copy a -> O\n if {i} < g {{ copy A -> a }}\n"));
        text.push_str("acquire c copy A -> c.put publish c wait c copy c.get -> O release c\n");
    }
    text.push_str(&"}".repeat(depth));
    good(body(&text));
}

#[test]
fn long_literal_loops_are_quick() {
    let ring = "let c = channel f16[32, 32] slots 3
        for i in 0..1000000007 { acquire c copy A -> c.put publish c wait c copy c.get -> O release c }
        for i in 0..2 { acquire c copy A -> c.put publish c }";
    let k = good(body(ring));
    needs_each(&k);
    // The remainder is exact: 1000000007 tiles leave the ring at slot 2, so the fourth tile conflicts in slot 2.
    let (_, said) = placed(body(&ring.replace("0..2 ", "0..4 ")));
    assert!(said.iter().any(|d| d.message.contains("slot 2 of `c` would be overwritten")), "{said:#?}");
}

/// A program with too many states is not proved, and a warning says so.
#[test]
fn too_many_states_end_in_a_warning() {
    let mut text = String::from("let a = smem f16[32, 32]\n");
    for round in 0..2 {
        for i in 0..24 {
            text.push_str(&format!("if n == {i} {{ copy A -> a barrier }} // {round}\n"));
        }
    }
    let found = prove(&body(&text));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].severity, Severity::Warning);
}
