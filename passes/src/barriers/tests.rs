//! The barriers of known programs, counted; and the proof, shown to miss nothing that the placement needs.

mod oracle;

use super::prove;
use crate::{Cx, Options};
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

/// What the pass makes of a kernel, and what it says.
fn placed(mut k: Kernel) -> (Kernel, Vec<Diagnostic>) {
    let options = Options::new(Target::Sm70);
    let mut sink = Sink::new();
    let mut cx = Cx { options: &options, enabled: true, pass: "barriers", sink: &mut sink };
    let result = super::run(&mut k, &mut cx);
    assert_eq!(result.is_ok(), sink.error_count() == 0);
    (k, sink.into_diagnostics())
}

/// Like [`placed`], for kernels that are in order.
fn good(k: Kernel) -> Kernel {
    let (k, said) = placed(k);
    let wrong: Vec<_> = said.iter().filter(|d| d.severity != Severity::Remark).collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{}", tilec_ir::print::print(&k));
    k
}

/// Through the whole pipeline.
fn compiled(source: &str, defines: &[(&str, &str)]) -> (Kernel, Vec<Diagnostic>) {
    let mut k = parse(source);
    let mut options = Options::new(Target::Sm70);
    options.defines = defines.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let mut sink = Sink::new();
    let result = crate::run(&mut k, &options, &mut sink, &mut |_, _| {});
    assert!(result.is_ok(), "{:#?}\n{}", sink.diagnostics(), tilec_ir::print::print(&k));
    (k, sink.into_diagnostics())
}

/// Every barrier: the block it is in and where in it.
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

/// The barriers are enough, and none can go.
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
    let remarks: Vec<_> = said.iter().filter(|d| d.code.0 == "barriers").map(|d| d.message.as_str()).collect();
    assert_eq!(
        remarks,
        [
            // The peeled residue, then the loop; `b` is safe by the barriers for `a`.
            "barrier before this: `a` read after write",
            "barrier before this: `a` write after read",
            "barrier before this: `a` read after write",
            "3 barrier(s) placed, 2 per iteration of the innermost loop",
        ]
    );
}

/// Programs in order, and how many barriers they need.
const GOOD: &[(&str, usize, &str)] = &[
    (
        "two slots, register staging",
        2,
        "let a = channel f16[32, 32] slots 2
         var s = reg f16[32, 32] = 0.0
         acquire a
         copy s -> a.put
         publish a
         wait a
         for k in 32..N step 32 {
             copy A[0.., k..] -> s
             acquire a
             copy s -> a.put
             publish a
             copy a.get -> O[0.., k..]
             release a
             wait a
         }
         copy a.get -> O
         release a",
    ),
    (
        "one slot",
        2,
        "let a = channel f16[32, 32] slots 1
         for k in 0..N step 32 {
             acquire a
             copy A[0.., k..] -> a.put
             publish a
             wait a
             copy a.get -> O[0.., k..]
             release a
         }",
    ),
    (
        "three slots, two ahead",
        2,
        "let a = channel f16[32, 32] slots 3
         for i in 0..2 unroll {
             acquire a
             copy A[0.., i * 32..] -> a.put
             publish a
         }
         wait a
         for k in 64..N step 32 {
             acquire a
             copy A[0.., k..] -> a.put
             publish a
             copy a.get -> O[0.., k..]
             release a
             wait a
         }
         copy a.get -> O
         release a
         wait a
         copy a.get -> O
         release a",
    ),
    (
        "a buffer filled once is fenced before the loop that reads it",
        1,
        "let a = smem f16[32, 32]
         copy A -> a
         for k in 0..N step 32 { copy a -> O[0.., k..] }",
    ),
    (
        "a buffer filled before a loop that may not run",
        1,
        "let a = smem f16[32, 32]
         copy A -> a
         for k in 32..N step 32 { copy a -> O[0.., k..] }
         copy A -> O",
    ),
    (
        "unrolled slices need no barriers of their own",
        2,
        "let a = smem f16[32, 32]
         for k in 0..N step 32 {
             copy A[0.., k..] -> a
             for kk in 0..32 step 8 unroll {
                 let x = reg f16[32, 8] = copy a[0.., kk..]
                 copy x -> O[0.., k + kk..]
             }
         }",
    ),
    (
        "each branch needs its own",
        3,
        "let a = smem f16[32, 32]
         for k in 0..N step 32 {
             copy A[0.., k..] -> a
             if n == 1 { copy a -> O[0.., k..] } else { copy a * 2.0 -> O[0.., k..] }
         }",
    ),
    (
        "one branch writes, what follows reads",
        2,
        "let a = smem f16[32, 32]
         copy A -> a
         if n == 1 { copy A[0.., 32..] -> a }
         copy a -> O",
    ),
    (
        "nested loops",
        3,
        "let a = smem f16[32, 32]
         let b = smem f16[32, 32]
         for i in 0..M step 32 {
             copy A[i.., 0..] -> a
             for j in 0..N step 32 {
                 copy A[i.., j..] -> b
                 copy a + b -> O[i.., j..]
             }
         }",
    ),
    (
        "a product reads its operands",
        2,
        "let a = smem f16[32, 32]
         var acc = reg f32[32, 32] = 0.0
         for k in 0..N step 32 {
             copy A[0.., k..] -> a
             acc = mma(a, transpose(a), acc)
         }
         copy acc -> O",
    ),
    (
        "barriers that are there are counted on",
        2,
        "let a = smem f16[32, 32]
         for k in 0..N step 32 {
             barrier
             copy A[0.., k..] -> a
             barrier
             copy a -> O[0.., k..]
         }",
    ),
    (
        "element by element, a buffer may be rewritten in place",
        2,
        "let a = smem f16[32, 32]
         copy A -> a
         copy a * 2.0 -> a
         copy a -> O",
    ),
    (
        "a condition that holds once holds again",
        1,
        "let a = channel f16[32, 32] slots 1
         if n == 1 { acquire a copy A -> a.put publish a }
         if n == 1 { wait a copy a.get -> O release a }",
    ),
    (
        "a buffer over another waits for its readers",
        3,
        "let a = smem f16[32, 32]
         copy A -> a
         copy a -> O
         let x = smem f32[32, 32] over a
         copy A -> x
         copy x -> O",
    ),
    (
        "a buffer at the place of another",
        3,
        "let a = smem f16[32, 32] at 0
         copy A -> a
         copy a -> O
         let x = smem f16[32, 32] at 1024
         copy A -> x
         copy x -> O",
    ),
    (
        "a buffer behind another",
        2,
        "let a = smem f16[32, 32] at 0
         copy A -> a
         copy a -> O
         let x = smem f16[32, 32] at 2048
         copy A -> x
         copy x -> O",
    ),
    (
        "a buffer in the second slot of a ring",
        3,
        "let a = channel f16[32, 32] slots 2 at 0 stride 4096
         acquire a
         copy A -> a.put
         publish a
         wait a
         copy a.get -> O
         release a
         let x = smem f16[32, 32] at 4096
         copy A -> x
         copy x -> O",
    ),
    (
        "a buffer between the slots of a ring",
        2,
        "let a = channel f16[32, 32] slots 2 at 0 stride 4096
         acquire a
         copy A -> a.put
         publish a
         wait a
         copy a.get -> O
         release a
         let x = smem f16[32, 32] at 2048
         copy A -> x
         copy x -> O",
    ),
    (
        "a buffer over a ring, and the ring again over the buffer",
        4,
        "for k in 0..N step 32 {
             let a = channel f16[32, 32] slots 2
             acquire a
             copy A[0.., k..] -> a.put
             publish a
             acquire a
             copy A[0.., k..] -> a.put
             publish a
             wait a
             copy a.get -> O
             release a
             wait a
             copy a.get -> O
             release a
             let x = smem f16[32, 32] over a
             copy A -> x
             copy x -> O
         }",
    ),
    (
        "two buffers over the same",
        5,
        "let a = smem f16[32, 32]
         copy A -> a
         copy a -> O
         let x = smem f16[32, 32] over a
         copy A -> x
         copy x -> O
         let y = smem f16[32, 32] over a
         copy A -> y
         copy y -> O",
    ),
    (
        "a tensor store waits for writers, the next writers for it",
        2,
        "let a = smem f16[32, 32]
         for k in 0..N step 32 {
             await a, 0
             copy A[0.., k..] -> a
             copy a -> O[0.., k..] tma
         }
         await a, 0",
    ),
    (
        "two buffers in turn",
        4,
        "let a = smem f16[32, 32]
         let b = smem f16[32, 32]
         for k in 0..N step 64 {
             await a, 1
             copy A[0.., k..] -> a
             copy a -> O[0.., k..] tma
             await b, 1
             copy A[0.., k + 32..] -> b
             copy b -> O[0.., k + 32..] tma
         }
         await b, 0",
    ),
    (
        "a tensor is loaded, or stored to by the accelerator",
        3,
        "let a = smem f16[32, 32]
         for k in 0..N step 32 {
             copy A[0.., k..] -> a
             if n == 1 { copy a -> O[0.., k..] tma await a, 0 } else { copy a + O[0.., k..] -> O[0.., k..] }
         }",
    ),
    ("no conflict, no barrier", 0, "let a = smem f16[32, 32]\n copy A -> a"),
];

#[test]
fn as_few_as_needed() {
    for &(what, count, text) in GOOD {
        let k = good(body(text));
        assert_eq!(barriers(&k).len(), count, "{what}:\n{}", tilec_ir::print::print(&k));
        needs_each(&k);
    }
}

#[test]
fn a_second_run_places_nothing() {
    for &(what, count, text) in GOOD {
        let (k, said) = placed(good(body(text)));
        assert_eq!(barriers(&k).len(), count, "{what}");
        assert!(said.iter().any(|d| d.message.starts_with("0 barrier(s) placed")), "{what}: {said:?}");
    }
}

/// Programs that no barrier can repair: what is said, and (in part) on what path.
const BAD: &[(&str, &str, &str, &str)] = &[
    (
        "used after its memory was taken over",
        "`a` is used after `x` took over its memory",
        "",
        "let a = smem f16[32, 32]
         copy A -> a
         let x = smem f16[32, 32] over a
         copy A -> x
         copy a -> O",
    ),
    (
        "used again in the next iteration without being declared",
        "`a` is used after `x` took over its memory",
        "after 1 iteration of the loop over `k`",
        "let a = channel f16[32, 32] slots 1
         for k in 0..N step 32 {
             acquire a
             copy A[0.., k..] -> a.put
             publish a
             wait a
             copy a.get -> O
             release a
             let x = smem f16[32, 32] over a
             copy A -> x
         }",
    ),
    (
        "taken over on its way",
        "the memory of slot 0 of `a` is taken over while asynchronous copies into it may be on their way",
        "",
        "let a = channel f16[32, 32] slots 1
         acquire a
         copy A -> a.put async
         publish a
         let x = smem f16[32, 32] over a
         copy A -> x
         copy x -> O",
    ),
    (
        "its bytes are taken on its way",
        "the memory of slot 0 of `a` is taken over while asynchronous copies into it may be on their way",
        "",
        "let a = channel f16[32, 32] slots 1 at 0 stride 2048
         acquire a
         copy A -> a.put async
         publish a
         let x = smem f16[32, 32] at 1024
         copy A -> x
         copy x -> O",
    ),
    (
        "its bytes are taken while a tensor store reads them",
        "the memory of `a` is taken over while a tensor store may still be reading it",
        "",
        "let a = smem f16[32, 32] at 0
         copy A -> a
         copy a -> O tma
         let x = smem f16[32, 32] at 1024
         copy A -> x
         copy x -> O
         await a, 0",
    ),
    (
        "used after its bytes were taken",
        "`a` is used after `x` took over its memory",
        "",
        "let a = smem f16[32, 32] at 0
         let x = smem f16[32, 32] at 1024
         copy A -> a
         copy a -> O",
    ),
    (
        "its contents are lost",
        "`x` is read before anything is written",
        "",
        "let a = smem f16[32, 32]
         copy A -> a
         let x = smem f16[32, 32] over a
         copy x -> O",
    ),
    (
        "missing publish",
        "would wait for ever",
        "",
        "let a = channel f16[32, 32] slots 2
         acquire a
         copy A -> a.put
         wait a
         copy a.get -> O
         release a",
    ),
    ("wait before anything", "would wait for ever", "", "let a = channel f16[32, 32] slots 2\n wait a\n release a"),
    (
        "missing release",
        "every slot of `a` is in use: slot 0 of `a` would be overwritten",
        "after 2 iterations of the loop over `k`",
        "let a = channel f16[32, 32] slots 2
         for k in 0..N step 32 {
             acquire a
             copy A[0.., k..] -> a.put
             publish a
             wait a
             copy a.get -> O[0.., k..]
         }",
    ),
    (
        "get before wait",
        "no slot of `a` was waited for",
        "",
        "let a = channel f16[32, 32] slots 2
         acquire a
         copy A -> a.put
         publish a
         copy a.get -> O
         wait a
         release a",
    ),
    (
        "get after release",
        "no slot of `a` was waited for",
        "",
        "let a = channel f16[32, 32] slots 2
         acquire a
         copy A -> a.put
         publish a
         wait a
         release a
         copy a.get -> O",
    ),
    ("put before acquire", "no slot of `a` is acquired", "", "let a = channel f16[32, 32] slots 2\n copy A -> a.put"),
    (
        "put after publish",
        "no slot of `a` is acquired",
        "",
        "let a = channel f16[32, 32] slots 2
         acquire a
         copy A -> a.put
         publish a
         copy A -> a.put",
    ),
    ("publish before acquire", "no slot of `a` is acquired", "", "let a = channel f16[32, 32] slots 2\n publish a"),
    ("release before wait", "no slot of `a` was waited for", "", "let a = channel f16[32, 32] slots 2\n release a"),
    (
        "acquired twice",
        "`a` is acquired twice",
        "",
        "let a = channel f16[32, 32] slots 2\n acquire a\n acquire a\n copy A -> a.put\n publish a",
    ),
    (
        "never published",
        "slot 0 of `a` is acquired and never published",
        "",
        "let a = channel f16[32, 32] slots 2\n acquire a\n copy A -> a.put",
    ),
    (
        "published empty",
        "slot 0 of `a` is read before anything is written",
        "",
        "let a = channel f16[32, 32] slots 2\n acquire a\n publish a\n wait a\n copy a.get -> O\n release a",
    ),
    (
        "stale on the second round",
        "slot 0 of `a` is read before anything is written",
        "after 1 iteration of the loop over `k`",
        "let a = channel f16[32, 32] slots 1
         acquire a
         copy A -> a.put
         publish a
         for k in 0..N step 32 {
             wait a
             copy a.get -> O[0.., k..]
             release a
             acquire a
             publish a
         }",
    ),
    (
        "the drain of a loop that may not run",
        "would wait for ever",
        "after 0 iterations of the loop over `k`",
        "let a = channel f16[32, 32] slots 2
         for k in 32..N step 32 {
             acquire a
             copy A[0.., k..] -> a.put
             publish a
             wait a
             copy a.get -> O[0.., k..]
             release a
             if k == 32 { acquire a copy A[0.., k..] -> a.put publish a }
             if k > 64 { wait a release a }
         }
         wait a
         release a",
    ),
    (
        "read after a loop that may not run",
        "`a` is read before anything is written",
        "after 0 iterations of the loop over `k`",
        "let a = smem f16[32, 32]
         for k in 32..N step 32 { copy A[0.., k..] -> a }
         copy a -> O",
    ),
    (
        "one branch fills",
        "`a` is read before anything is written",
        "if `n == 1` does not hold",
        "let a = smem f16[32, 32]
         if n == 1 { copy A -> a }
         copy a -> O",
    ),
    (
        "one slot too few",
        "every slot of `a` is in use: slot 1 of `a`",
        "",
        "let a = channel f16[32, 32] slots 3
         for i in 0..4 unroll { acquire a copy A -> a.put publish a wait a release a }
         for i in 0..4 unroll { acquire a copy A -> a.put publish a }",
    ),
    (
        "stored again without waiting",
        "`a` is overwritten while a tensor store may still be reading it",
        "after 1 iteration of the loop over `k`",
        "let a = smem f16[32, 32]
         for k in 0..N step 32 { copy A[0.., k..] -> a copy a -> O[0.., k..] tma }
         await a, 0",
    ),
    (
        "one store too many in flight",
        "`a` is overwritten while a tensor store may still be reading it",
        "after 1 iteration of the loop over `k`",
        "let a = smem f16[32, 32]
         for k in 0..N step 32 { await a, 1 copy A[0.., k..] -> a copy a -> O[0.., k..] tma }
         await a, 0",
    ),
    (
        "a store that the end does not wait for",
        "a tensor store may still be reading `a` when its threads end",
        "",
        "let a = smem f16[32, 32]
         copy A -> a
         copy a -> O tma",
    ),
    (
        "memory that is taken over from a store",
        "the memory of `a` is taken over while a tensor store may still be reading it",
        "",
        "let a = smem f16[32, 32]
         copy A -> a
         copy a -> O tma
         let x = smem f16[32, 32] over a
         copy A -> x
         copy x -> A
         await a, 0",
    ),
    (
        "a tensor that is loaded after a store",
        "`O` is used after a tensor store to it, which may not have arrived",
        "",
        "let a = smem f16[32, 32]
         copy A -> a
         copy a -> O tma
         await a, 0
         copy O -> a",
    ),
    (
        "a tensor that is loaded in the next iteration",
        "`O` is used after a tensor store to it",
        "after 1 iteration of the loop over `k`",
        "let a = smem f16[32, 32]
         for k in 0..N step 32 { await a, 0 copy O[0.., k..] -> a copy a -> O[0.., k..] tma }
         await a, 0",
    ),
    (
        "a tensor that is stored to in two ways",
        "a tensor store to `O`, which other copies of the same threads store to",
        "",
        "let a = smem f16[32, 32]
         copy A -> a
         copy A -> O
         copy a -> O tma
         await a, 0",
    ),
    (
        "nothing is stored",
        "`a` is read before anything is written to it",
        "",
        "let a = smem f16[32, 32]
         copy a -> O tma
         await a, 0",
    ),
    (
        "a thread's elements are others' in the transpose",
        "`a` is overwritten while other threads may still be reading it",
        "",
        "let a = smem f16[32, 32]
         copy A -> a
         copy transpose(a) -> a
         copy a -> O",
    ),
];

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
    // All of them in the role.
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
         role c warps 1 { copy A -> O }",
    ] {
        let (_, said) = placed(body(text));
        let hit = said.iter().find(|d| d.severity == Severity::Error).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(hit.code, codes::HAZARD);
        assert!(hit.message.contains("`b` is used by a role and by other threads"), "{hit:#?}");
    }
    // What stands beside the roles has the buffer to itself.
    let beside = body(
        "let b = smem f16[32, 32]
         copy A -> b
         copy b -> O
         role p warps 1 { copy A -> O }",
    );
    let k = good(beside);
    assert_eq!(barriers(&k).len(), 1);
    needs_each(&k);
}

/// A barrier between any two statements is never wrong, and any program of buffers alone can be made right with some.
#[test]
fn placed_barriers_suffice_for_every_small_program() {
    // Programs of four statements out of these, in and after a loop.
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

/// Loops in loops in loops: the work is bounded, not the exponential of the depth.
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
    // The remainder is exact: 1000000007 tiles leave the ring at slot 2, so the fourth tile meets slot 2 again.
    let (_, said) = placed(body(&ring.replace("0..2 ", "0..4 ")));
    assert!(said.iter().any(|d| d.message.contains("slot 2 of `c` would be overwritten")), "{said:#?}");
}

/// A program with more states than anyone wants to see is not proved, and says so.
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
