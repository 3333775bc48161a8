//! What the operators make of fences, mbarriers and named barriers, word for word.

use super::operators::{OPERATORS, Unit};
use super::slice::Slices;
use super::text;

/// All changes of the last statement of `body` as `operator/variant: text`.
fn changes(body: &str) -> Vec<String> {
    let ptx = format!(".visible .entry k()\n{{\n{body}\n}}\n");
    let body = text::body(&ptx);
    let unit = Unit { slices: Slices::new(&body.statements), threads: 96, partial_barriers: true };
    let s = body.statements.last().unwrap();
    let all = OPERATORS.iter().flat_map(|o| (o.edits)(&unit, s).into_iter().map(move |e| (o.name, e)));
    all.map(|(name, e)| format!("{name}/{}: {}", e.variant, e.text.trim_end_matches(';').trim_end())).collect()
}

#[test]
fn fences_are_deleted_and_narrowed() {
    assert_eq!(changes("membar.gl;"), ["fence/delete: ", "fence/smaller scope: membar.cta"]);
    assert_eq!(changes("membar.sys;"), ["fence/delete: ", "fence/smaller scope: membar.cta"]);
    assert_eq!(changes("fence.acq_rel.gpu;"), ["fence/delete: ", "fence/smaller scope: fence.acq_rel.cta"]);
    assert_eq!(changes("membar.cta;"), ["fence/delete: "]);
}

#[test]
fn phases_arrivals_and_counts_are_changed() {
    assert_eq!(
        changes("mbarrier.init.shared.b64 [%r1], 32;"),
        [
            "mbarrier/delete: ",
            "mbarrier/count +1: mbarrier.init.shared.b64 [%r1], 33",
            "mbarrier/count -1: mbarrier.init.shared.b64 [%r1], 31"
        ]
    );
    assert_eq!(changes("mbarrier.init.shared.b64 [%r1], %r2;"), ["mbarrier/delete: "]);
    assert_eq!(changes("mbarrier.arrive.shared.b64 %rd1, [%r1];"), ["mbarrier/delete: "]);
    assert_eq!(
        changes("mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r1], 512;"),
        ["mbarrier/delete: ", "mbarrier/bytes +16: mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r1], 528"]
    );
    assert_eq!(
        changes("cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];")[..2],
        ["mbarrier/delete: ", "mbarrier/with increment: cp.async.mbarrier.arrive.shared.b64 [%r1]"]
    );
}

#[test]
fn parities_are_flipped_and_waits_pass_at_once() {
    assert_eq!(
        changes("mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 0;"),
        [
            "mbarrier/parity: mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 1",
            "mbarrier/wait gone: setp.eq.b32 %p1, 0, 0"
        ]
    );
    let changed = changes("mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2, 1000;");
    assert!(
        changed[0].contains("xor.b32 %mutant, %r2, 1;") && changed[0].contains("[%r1], %mutant, 1000;"),
        "{changed:?}"
    );
    assert_eq!(changed.len(), 2, "{changed:?}");
}

#[test]
fn named_barriers_change_their_number_and_count() {
    assert_eq!(
        changes("bar.sync 1, 96;"),
        [
            "barrier/delete: ",
            "barrier/warp only: bar.warp.sync 0xffffffff",
            "barrier/arrive only: bar.arrive 1, 96",
            "barrier/fewer threads: bar.sync 1, 64",
            "barrier/other barrier: bar.sync 2, 96"
        ]
    );
    assert_eq!(changes("bar.arrive 15, 96;"), ["barrier/delete: ", "barrier/other barrier: bar.arrive 0, 96"]);
}
