//! Diagnostics for correct roles and for faulty ones.

use super::*;
use tilec_ir::diag::Sink;

/// The diagnostics for roles with these bodies, over two channels `a` and `b`.
fn diagnostics(producer: &str, consumer: &str) -> Vec<String> {
    let source = format!(
        "kernel t(A: gmem f16[M, K] multiple 8, C: gmem f32[M, N])\n{{\n\
         let a = channel f16[64, 64] slots 2\nlet b = channel f16[64, 64] slots 2\n\
         role producer warps 4 {{\n{producer}\n}}\nrole consumer warps 4 {{\nvar acc = reg f32[64, 64] = 0\n{consumer}\n}}\n}}\n"
    );
    let mut sink = Sink::new();
    let parsed = tilec_ir::parser::parse(&source, &mut sink);
    let kernel = parsed.unwrap_or_else(|_| panic!("{source}\n{:#?}", sink.diagnostics())).kernels.remove(0);
    check(&kernel).into_iter().map(|d| d.message).collect()
}

const FILL: &str = "acquire a, b\ncopy A[0.., k..] -> a.put tma\ncopy A[0.., k..] -> b.put tma\npublish a, b";
const USE: &str = "wait a, b\nacc = mma<m64k16>(a.get, b.get, acc)\nawait acc, 0\nrelease a, b";

fn looped(body: &str) -> String {
    format!("for k in 0..K step 64 {{\n{body}\n}}")
}

fn one(producer: &str, consumer: &str, what: &str) {
    let found = diagnostics(producer, consumer);
    assert!(found.iter().any(|m| m.contains(what)), "{what}: {found:#?}");
}

#[test]
fn what_is_in_order_passes() {
    assert_eq!(diagnostics(&looped(FILL), &looped(USE)), Vec::<String>::new());
    // Two tiles, each with its own loop; the products of an iteration overlap the wait of the next one.
    let tiles = |body: &str| format!("for t in 0..M {{\n{}\n}}", looped(body));
    assert_eq!(diagnostics(&tiles(FILL), &tiles(USE)), Vec::<String>::new());
    // Only one of the channels is filled, and read.
    let half = FILL.replace("copy A[0.., k..] -> b.put tma\n", "");
    let read = "wait a, b\nvar x = reg f16[64, 64]\ncopy a.get -> x\nrelease a, b";
    assert_eq!(diagnostics(&looped(&half), &looped(read)), Vec::<String>::new());
}

/// Roles that load and store tiles of one tensor in the order of the tiles; `from` and `to` replace text in the loading
/// and the storing role.
fn in_place(from: [&str; 2], to: [&str; 2]) -> Vec<String> {
    let walk = "for tile in 0..min(ceildiv(M, 64) * ceildiv(N, 64), 99) step 7 {\nlet strip = tile / (ceildiv(M, 64) * 4)\n\
                let place = tile % (ceildiv(M, 64) * 4)\nlet columns = max(1, min(4, ceildiv(N, 64) - strip * 4))\n\
                let bm = min(place / columns, ceildiv(M, 64) - 1)\n\
                let bn = min(strip * 4 + place % columns, ceildiv(N, 64) - 1)\n";
    let load = "acquire a\ncopy C[bm * 64.., bn * 64..] -> a.put tma\npublish a\n";
    let store =
        "wait a\nawait s, 0\nbarrier\ncopy a.get -> s\nrelease a\nbarrier\ncopy s -> C[bm * 64.., bn * 64..] tma\n";
    let (load, store) = (format!("{walk}{load}}}"), format!("{walk}{store}}}\nawait s, 0"));
    let [x, y] = [(load, from), (store, to)].map(|(text, [old, new])| {
        assert!(text.contains(old), "{old}");
        text.replace(old, new)
    });
    let source = format!(
        "kernel t(C: gmem f16[M, N] multiple 8, beta: f32 = 0)\n{{\nlet a = channel f16[64, 64] slots 2\nlet s = smem f16[64, 64]\n\
         role producer warps 4 {{\n{x}\n}}\nrole consumer warps 4 {{\n{y}\n}}\n}}\n"
    );
    let mut sink = Sink::new();
    let parsed = tilec_ir::parser::parse(&source, &mut sink);
    let kernel = parsed.unwrap_or_else(|_| panic!("{source}\n{:#?}", sink.diagnostics())).kernels.remove(0);
    check(&kernel).into_iter().map(|d| d.message).collect()
}

#[test]
fn tiles_that_are_stored_were_loaded_before() {
    let same = ["tile", "tile"];
    assert_eq!(in_place(same, same), Vec::<String>::new());
    let wrong: [[&str; 2]; 6] = [
        // Another tile, or part of it.
        ["C[bm * 64.., bn * 64..]", "C[bn * 64.., bm * 64..]"],
        ["C[bm * 64.., bn * 64..]", "C[bm * 64 + 64.., bn * 64..]"],
        ["C[bm * 64.., bn * 64..]", "C[bm * 32.., bn * 64..]"],
        // Two tiles at the same place.
        ["strip * 4 + place % columns", "place % columns"],
        ["place / columns", "place / 2"],
        ["max(1, min(4, ceildiv(N, 64) - strip * 4))", "max(1, min(8, ceildiv(N, 64) - strip * 4))"],
    ];
    for change in wrong {
        for (x, y) in [(change, same), (same, change)] {
            let found = in_place(x, y);
            assert!(found.iter().any(|m| m.contains("used while TMA stores")), "{change:?}: {found:#?}");
        }
    }
    // A store that does not wait for the load of its tile.
    let (wait, copy) = ("wait a\n", "copy a.get -> s\nrelease a\n");
    let early = in_place(same, [wait, "var x = reg f16[64, 64] = 0.0\n"]);
    assert!(early.iter().any(|m| m.contains("not waited for")), "{early:#?}");
    let late = format!("copy s -> C[bm * 64.., bn * 64..] tma\n{wait}{copy}");
    let late = in_place(same, ["copy s -> C[bm * 64.., bn * 64..] tma\n", &late]);
    assert!(late.iter().any(|m| m.contains("used while TMA stores")), "{late:#?}");
}

#[test]
fn a_slot_is_filled_once() {
    let again = "filled again while a TMA copy into it is in flight";
    let copy = "copy A[0.., k..] -> a.put tma";
    one(&looped(&FILL.replace(copy, &format!("{copy}\ncopy A[64.., k..] -> a.put tma"))), &looped(USE), again);
    one(&looped(&FILL.replace(copy, &format!("for i in 0..M {{\n{copy}\n}}"))), &looped(USE), again);
    one(&looped(&FILL.replace(copy, &format!("if K > 64 {{\n{copy}\n}}\n{copy}"))), &looped(USE), again);
    // Threads write to the slot that the copy writes.
    one(&looped(&FILL.replace(copy, &format!("{copy}\ncopy A[64.., k..] -> a.put"))), &looped(USE), again);
    // One copy or the other, each to another slot.
    let either = FILL.replace(copy, &format!("if K > 64 {{\n{copy}\n}} else {{\ncopy A[64.., k..] -> a.put tma\n}}"));
    assert_eq!(diagnostics(&looped(&either), &looped(USE)), Vec::<String>::new());
    let decided = FILL.replace(
        copy,
        &format!("if K > 64 {{\n{copy}\n}}\nif K > 64 {{\n}} else {{\ncopy A[64.., k..] -> a.put tma\n}}"),
    );
    assert_eq!(diagnostics(&looped(&decided), &looped(USE)), Vec::<String>::new());
    let steps = |body: &str| format!("for k in 0..K step 128 {{\n{body}\n{body}\n}}");
    assert_eq!(diagnostics(&steps(FILL), &steps(USE)), Vec::<String>::new());
}

#[test]
fn slots_are_taken_and_given_back_in_turns() {
    one(&looped(&FILL.replace("acquire a, b", "acquire a")), &looped(USE), "used that is not acquired");
    one(&looped(&FILL.replace("publish a, b", "publish a")), &looped(USE), "must `publish` every slot of `b`");
    one(&looped(FILL), &looped(&USE.replace("wait a, b", "wait a")), "used that is not waited for");
    one(&looped(FILL), &looped(&USE.replace("release a, b", "release b")), "must `release` every slot of `a`");
    one(&looped(FILL), &looped(&USE.replace("release a, b", "release a, b\nrelease a")), "no slot of `a`");
    one(&looped(&FILL.replace("publish a, b", "acquire a\npublish a, b")), &looped(USE), "while another is");
    one(&looped(FILL), &looped(&USE.replace("wait a, b", "wait a, b\nwait a")), "must `release` every slot of `a`");
}

/// A loop with a peeled first step on both sides; `behind`: the consumer's statements after it.
fn peeled(step: &str, behind: &str) -> [String; 2] {
    let both = |first: &str, later: &str, behind: &str| {
        format!("if K > 0 {{\n{first}\nfor k in 64..K step 64 {{\n{later}\n}}\n{behind}\n}}")
    };
    let first = "wait a, b\nacc = mma<m64k16>(a.get, b.get, acc)";
    [both(&FILL.replace("k..", "0.."), FILL, ""), both(first, step, behind)]
}

const STEP: &str = "wait a, b\nacc = mma<m64k16>(a.get, b.get, acc)\nawait acc, 1\nrelease a, b";
const LAST: &str = "await acc, 0\nrelease a, b";

#[test]
fn a_product_may_be_pending_while_the_next_is_issued() {
    let [producer, consumer] = peeled(STEP, LAST);
    assert_eq!(diagnostics(&producer, &consumer), Vec::<String>::new());
    let wrong = [
        // The slot that the last product reads, or release before the older product is done.
        (STEP.replace("await acc, 1\n", ""), LAST, "released while products read it"),
        (STEP.replace("await acc, 1", "await acc, 2"), LAST, "released while products read it"),
        (format!("{STEP}\nrelease a, b"), LAST, "released while products read it"),
        (STEP.to_owned(), "release a, b\nawait acc, 0", "released while products read it"),
        (STEP.to_owned(), "await acc, 1\nrelease a, b", "released while products read it"),
        (STEP.to_owned(), "await acc, 0", "in different states"),
        // The number of held slots differs between start and end of an iteration.
        (STEP.replace("release a, b", ""), LAST, "must `release` every slot of `a`"),
        (STEP.replace("release a, b", "release a"), LAST, "must `release` every slot of `b`"),
        (format!("{STEP}\nawait acc, 0\nrelease a, b"), LAST, "must `wait` for every slot of `a`"),
        // Another slot of a ring of two, while both are held.
        (STEP.replace("wait a, b", "wait a, b\nwait a\nrelease a"), LAST, "are held already, 2"),
    ];
    for (step, last, what) in wrong {
        let [producer, consumer] = peeled(&step, last);
        one(&producer, &consumer, what);
    }
}

#[test]
fn behind_a_loop_there_may_have_been_no_iteration() {
    // Iterations start with a pending product and end with none; without it, the slot is still read.
    let step = STEP.replace("await acc, 1\nrelease a, b", "await acc, 0\nrelease a, b");
    let [producer, consumer] = peeled(&step, "release a, b");
    one(&producer, &consumer, "released while products read it");
    let [producer, consumer] = peeled(&step, LAST);
    assert_eq!(diagnostics(&producer, &consumer), Vec::<String>::new());
    // After the loop, the last product writes one of two accumulators; awaiting all but one product covers neither.
    let step = STEP.replace("acc = mma<m64k16>(a.get, b.get, acc)", "other = mma<m64k16>(a.get, b.get, other)");
    let of = |last: &str| {
        let [producer, consumer] = peeled(&step, last);
        (producer, format!("var other = reg f32[64, 64] = 0\n{consumer}"))
    };
    let (producer, consumer) = of(LAST);
    assert_eq!(diagnostics(&producer, &consumer), Vec::<String>::new());
    for used in ["acc = acc + 1.0", "other = other + 1.0"] {
        let (producer, consumer) = of(&format!("{used}\n{LAST}"));
        one(&producer, &consumer, "while products that add to it are pending");
    }
}

#[test]
fn sides_of_a_branch_may_leave_other_products_pending() {
    let product = "acc = mma<m64k16>(a.get, b.get, acc)";
    let sides = |then: &str, otherwise: &str, behind: &str| {
        looped(&USE.replace(
            &format!("{product}\nawait acc, 0"),
            &format!("if k < 128 {{\n{then}\n}} else {{\n{otherwise}\n}}\n{behind}"),
        ))
    };
    let other = "var other = reg f32[64, 64] = 0\n";
    let turned = "other = mma<m64k16>(b.get, a.get, other)";
    for otherwise in ["", "acc = mma<m64k16>(b.get, a.get, acc)", turned] {
        assert_eq!(
            diagnostics(&looped(FILL), &format!("{other}{}", sides(product, otherwise, "await acc, 0"))),
            Vec::<String>::new()
        );
        // The product on either side reads the slot.
        one(&looped(FILL), &format!("{other}{}", sides(product, otherwise, "")), "released while products read it");
    }
    one(
        &looped(FILL),
        &format!("{other}{}", sides(product, turned, "other = other + 1.0\nawait acc, 0")),
        "`other` is used while products that add to it are pending",
    );
}

#[test]
fn no_role_waits_for_a_slot_that_is_held() {
    // The producer acquires the second slot of `a` before it fills the first one of `b`.
    let ahead = |slots: usize| {
        let more = "acquire a\ncopy A[0.., 0..] -> a.put tma\npublish a\n".repeat(slots);
        let tail =
            "acquire a\nacquire b\ncopy A[0.., 0..] -> b.put tma\npublish b\ncopy A[0.., 0..] -> a.put tma\npublish a";
        let read = "acc = mma<m64k16>(a.get, b.get, acc)\nawait acc, 0";
        let waits = "wait a\n".repeat(slots);
        let rest = "release a\n".repeat(slots);
        diagnostics(&format!("{more}{tail}"), &format!("{waits}wait b\n{read}\nrelease b\n{rest}wait a\nrelease a"))
    };
    assert!(!ahead(1).iter().any(|m| m.contains("wait forever")), "{:#?}", ahead(1));
    assert!(ahead(2).iter().any(|m| m.contains("may wait forever (deadlock): all slots of `a`")), "{:#?}", ahead(2));
}

#[test]
fn roles_walk_past_the_same_slots() {
    one(&looped(FILL), &looped(USE).replace("step 64", "step 32"), "the same slots");
    one(&looped(FILL), &looped(USE).replace("0..K", "64..K"), "the same slots");
    let half = FILL.replace("copy A[0.., k..] -> b.put tma\n", "");
    one(&looped(&half), &looped(USE), "a slot of `b` is read that nothing fills");
    one(&looped(FILL), &format!("if M == 1 {{\n{}\n}}", looped(USE)), "the same slots");
    let apart =
        "acquire a\ncopy A[0.., k..] -> a.put tma\npublish a\nacquire b\ncopy A[0.., k..] -> b.put tma\npublish b";
    let crossed = "wait b\nwait a\nacc = mma<m64k16>(a.get, b.get, acc)\nawait acc, 0\nrelease a, b";
    one(&looped(apart), &looped(crossed), "the same slots");
}

#[test]
fn products_are_awaited_before_their_slots_and_sums_are_used() {
    one(&looped(FILL), &looped(&USE.replace("await acc, 0\n", "")), "released while products read it");
    one(&looped(FILL), &looped(&USE.replace("await acc, 0", "await acc, 1")), "released while products read it");
    one(
        &looped(FILL),
        &looped(&USE.replace("await acc, 0", "acc = acc + 1.0\nawait acc, 0")),
        "while products that add to it are pending",
    );
}

#[test]
fn operands_in_registers_are_not_used_before_their_products_are_awaited() {
    let tile = "var f = reg f16[64, 64]\nvar g = reg f16[64, 64]";
    let step = "wait a, b\ncopy a.get -> f\nacc = mma<m64k16>(f, b.get, acc)\nawait acc, 0\nrelease a, b";
    let of = |step: &str| format!("{tile}\n{}", looped(step));
    assert_eq!(diagnostics(&looped(FILL), &of(step)), Vec::<String>::new());
    let used = "`f` is used while products that read it are pending";
    // The register tile is overwritten for the next product, or read.
    let early = step.replace("await acc, 0\nrelease a, b", "copy b.get -> f\nawait acc, 0\nrelease a, b");
    one(&looped(FILL), &of(&early), used);
    one(&looped(FILL), &of(&early.replace("copy b.get -> f", "copy f -> g")), used);
    one(&looped(FILL), &of(&early.replace("copy b.get -> f", "f = 0")), used);
    // Another product may read the same registers.
    let twice = early.replace("copy b.get -> f", "acc = mma<m64k16>(f, b.get, acc)");
    assert_eq!(diagnostics(&looped(FILL), &of(&twice)), Vec::<String>::new());
    // The slot's copy in registers is used, so the slot may be released; but products still read other slots.
    let sooner = step.replace("await acc, 0\nrelease a, b", "release a\nawait acc, 0\nrelease b");
    assert_eq!(diagnostics(&looped(FILL), &of(&sooner)), Vec::<String>::new());
    let sooner = step.replace("await acc, 0\nrelease a, b", "release b\nawait acc, 0\nrelease a");
    one(&looped(FILL), &of(&sooner), "released while products read it");

    // One product is pending while the next one is issued: one register tile does not suffice, two alternating ones do.
    let [producer, consumer] = peeled(STEP, LAST);
    let load = "wait a, b\ncopy a.get -> f\nacc = mma<m64k16>(f";
    let same = consumer.replace("wait a, b\nacc = mma<m64k16>(a.get", load);
    one(&producer, &format!("{tile}\n{same}"), used);
    let half = |fragment: &str, settle: &str| {
        format!(
            "{}, b.get, acc)\n{settle}",
            load.replace("-> f", &format!("-> {fragment}")).replace("(f", &format!("({fragment}"))
        )
    };
    let settle = "await acc, 1\nrelease a, b\n";
    let in_turns = |settled: &str| {
        let both = [half("g", settled), half("f", settled)].concat();
        format!("{tile}\nif K > 0 {{\n{}for k in 64..K step 128 {{\n{both}}}\n{LAST}\n}}", half("f", ""))
    };
    let twice = |fill: &str| {
        let next = fill.replace("k..", "k + 64..");
        format!("if K > 0 {{\n{}\nfor k in 64..K step 128 {{\n{fill}\n{next}\n}}\n}}", fill.replace("k..", "0.."))
    };
    assert_eq!(diagnostics(&twice(FILL), &in_turns(settle)), Vec::<String>::new());
    one(
        &twice(FILL),
        &in_turns(&settle.replace("await acc, 1", "await acc, 2")),
        "while products that read it are pending",
    );
}

#[test]
fn channels_have_two_ends() {
    one(&looped(FILL), "acc = acc + 1.0", "no role waits for channel `a`");
}

/// The diagnostics for a producer and two consumers that take tiles alternately, after `changes` to the text of the
/// role: pattern and replacement.
fn in_turns(changes: &[[&str; 2]]) -> Vec<String> {
    let mut role = "role consumer warps 4 replicas 2 {\nfor t in 0..M step 3 {\nvar acc = reg f32[64, 64] = 0\n\
                    ordered {\nfor k in 0..K step 64 {\nwait a, b\nacc = mma<m64k16>(a.get, b.get, acc)\nawait acc, 0\nrelease a, b\n}\n}\n\
                    ordered {\nbarrier\ncopy acc -> s\nbarrier\ncopy s -> C[t * 64.., 0..] tma\nawait s, 0\n}\n}\n}"
        .to_owned();
    for [old, new] in changes {
        assert!(role.contains(old), "{old}: {role}");
        role = role.replacen(old, new, 1);
    }
    let source = format!(
        "kernel t(A: gmem f16[M, K] multiple 8, C: gmem f32[M, N] multiple 8)\n{{\n\
         let a = channel f16[64, 64] slots 2\nlet b = channel f16[64, 64] slots 2\nlet s = smem f32[64, 64]\n\
         role producer warps 4 {{\nfor t in 0..M step 3 {{\n{}\n}}\n}}\n{role}\n}}\n",
        looped(FILL)
    );
    let mut sink = Sink::new();
    let parsed = tilec_ir::parser::parse(&source, &mut sink);
    let kernel = parsed.unwrap_or_else(|_| panic!("{source}\n{:#?}", sink.diagnostics())).kernels.remove(0);
    check(&kernel).into_iter().map(|d| d.message).collect()
}

#[test]
fn replicas_touch_in_order_what_they_share() {
    assert_eq!(in_turns(&[]), Vec::<String>::new());
    // A single replica is an ordinary role.
    assert_eq!(in_turns(&[["replicas 2", "replicas 1"], ["await s, 0\n}\n", "}\nawait s, 0\n"]]), Vec::<String>::new());
    // The last slot may be released, and products awaited, after the statement.
    let peeled = [
        ["for k in 0..K step 64 {\nwait", "wait"],
        ["await acc, 0\nrelease a, b\n}\n}\n", "}\nawait acc, 0\nrelease a, b\n"],
    ];
    assert_eq!(in_turns(&peeled), vec![OTHER_WAY.to_owned()]);
    let wrong: &[(&[[&str; 2]], &str)] = &[
        // No turns.
        (&[["ordered {\nfor k", "if M > 0 {\nfor k"]], "slots of `a` are waited for outside `ordered`"),
        (&[["ordered {\nbarrier", "if M > 0 {\nbarrier"]], "`s` is used outside `ordered`"),
        // Two statements, between which another replica may enter.
        (
            &[[
                "await acc, 0\nrelease a, b\n}\n}\n",
                "await acc, 0\nrelease a, b\n}\n}\nordered {\nwait a, b\nrelease a, b\n}\n",
            ]],
            "slots of `b` are waited for in two `ordered` statements",
        ),
        (
            &[["barrier\ncopy acc", "copy acc"], ["barrier\ncopy s", "barrier\n}\nordered {\ncopy s"]],
            "`s` is used in two `ordered`",
        ),
        // The buffer is released too early.
        (&[["await s, 0\n}\n", "}\n"]], "handed to the next replica while a TMA store reads it"),
        (&[["await s, 0", "await s, 1"]], "handed to the next replica while a TMA store reads it"),
        (&[["await s, 0\n", "if M > 0 {\nawait s, 0\n}\n"]], "handed to the next replica while a TMA store reads it"),
        // Registers of other iterations, and roles without a loop.
        (
            &[
                ["for t in", "var acc = reg f32[64, 64] = 0\nfor t in"],
                ["var acc = reg f32[64, 64] = 0\nordered", "ordered"],
            ],
            "is not one loop",
        ),
        (
            &[["barrier\ncopy acc", "acquire a\ncopy A[0.., 0..] -> a.put tma\npublish a\nbarrier\ncopy acc"]],
            "replicas of a role fill no channels",
        ),
    ];
    for (changes, what) in wrong {
        let found = in_turns(changes);
        assert!(found.iter().any(|m| m.contains(what)), "{what}: {found:#?}");
    }
}

/// The producer fills as many slots as the loop has steps.
const OTHER_WAY: &str =
    "the roles do not use the same slots in the same order: loops, branches or the order of channels differ";

/// The diagnostics for roles with cyclic channels: one fills `r` and `b`, another one computes `a` from `r`, a third
/// takes `a` and `b`.
fn circle(slots: usize, loads: &str, makes: &str, takes: &str) -> Vec<String> {
    let channel = |name: &str| format!("let {name} = channel f16[64, 64] slots {slots}\n");
    let source = format!(
        "kernel t(A: gmem f16[M, K] multiple 8)\n{{\n{}{}{}role loads warps 4 {{\n{loads}\n}}\nrole makes warps 4 {{\n{makes}\n}}\n\
         role takes warps 4 {{\nvar acc = reg f32[64, 64] = 0\n{takes}\n}}\n}}\n",
        channel("r"),
        channel("a"),
        channel("b")
    );
    let mut sink = Sink::new();
    let parsed = tilec_ir::parser::parse(&source, &mut sink);
    let kernel = parsed.unwrap_or_else(|_| panic!("{source}\n{:#?}", sink.diagnostics())).kernels.remove(0);
    check(&kernel).into_iter().map(|d| d.message).collect()
}

fn filled(channel: &str) -> String {
    format!("acquire {channel}\ncopy A[0.., 0..] -> {channel}.put tma\npublish {channel}\n")
}

const MAKE: &str = "wait r\nacquire a\ncopy r.get -> a.put\npublish a\nrelease r";
const IN_A_CIRCLE: &str =
    "this may wait forever (deadlock): roles wait for one another in a cycle, here for a free slot of";

#[test]
fn roles_in_a_circle_do_not_wait_for_one_another() {
    let [r, b] = ["r", "b"].map(filled);
    let both = [&r[..], &b].concat();
    let stuck = |found: Vec<String>, of: &str| assert_eq!(found, [format!("{IN_A_CIRCLE} `{of}`")]);
    let passes = |found: Vec<String>| assert_eq!(found, Vec::<String>::new());
    let (make, take) = (looped(MAKE), looped(USE));
    passes(circle(2, &looped(&both), &make, &take));
    passes(circle(1, &looped(&[b.clone(), r.clone()].concat()), &make, &take));
    // All slots of one channel in front of the other channel's.
    stuck(circle(2, &[looped(&b), looped(&r)].concat(), &make, &take), "b");
    stuck(circle(9, &[looped(&r), looped(&b)].concat(), &make, &take), "r");
    // Correct if the channels are emptied in the same order.
    let [first, then] = ["a", "b"].map(|v| {
        looped(
            &USE.replace("wait a, b", &format!("wait {v}"))
                .replace("release a, b", &format!("release {v}"))
                .replace("a.get, b.get", &format!("{v}.get, {v}.get")),
        )
    });
    passes(circle(2, &[looped(&r), looped(&b)].concat(), &make, &[&first[..], &then].concat()));
    stuck(circle(2, &[looped(&b), looped(&r)].concat(), &make, &[first, then].concat()), "b");
    // Several tiles, each with its own loop; conditions.
    let tiles = |body: &str| format!("for t in 0..M {{\n{}\n}}", looped(body));
    passes(circle(2, &tiles(&both), &tiles(MAKE), &tiles(USE)));
    let tiles = |body: &str| format!("for t in 0..M {{\nif t < 5 {{\n{body}\n}}\n}}");
    passes(circle(2, &tiles(&looped(&both)), &tiles(&make), &tiles(&take)));
    stuck(circle(2, &tiles(&[looped(&b), looped(&r)].concat()), &tiles(&make), &tiles(&take)), "b");
}

#[test]
fn slots_for_what_is_filled_ahead_are_enough() {
    let [r, b] = ["r", "b"].map(filled);
    let ahead =
        |slots| circle(slots, &[b.repeat(3), r.repeat(3)].concat(), &[MAKE; 3].join("\n"), &[USE; 3].join("\n"));
    assert_eq!(ahead(2), [format!("{IN_A_CIRCLE} `b`")]);
    assert_eq!(ahead(3), Vec::<String>::new());
    // The same in loops with a literal number of iterations.
    let three = |body: &str| format!("for k in 0..192 step 64 {{\n{body}\n}}\n");
    let ahead = |slots| circle(slots, &[three(&b), three(&r)].concat(), &three(MAKE), &three(USE));
    assert_eq!(ahead(2), [format!("{IN_A_CIRCLE} `b`")]);
    assert_eq!(ahead(3), Vec::<String>::new());
    // Slots that are held across iterations are not free: the last role holds one of each channel.
    let [producer, consumer] = peeled(STEP, LAST);
    let both =
        producer.replace(FILL, &[&r[..], &b].concat()).replace(&FILL.replace("k..", "0.."), &[&r[..], &b].concat());
    let [make, _] = peeled(STEP, LAST).map(|text| text.replace(FILL, MAKE).replace(&FILL.replace("k..", "0.."), MAKE));
    assert_eq!(circle(2, &both, &make, &consumer), Vec::<String>::new());
    assert!(!circle(1, &both, &make, &consumer).is_empty());
}
