//! Hover of names of what is computed.

use super::URI;
use super::client::Client;
use super::text::at;
use serde_json::json;

/// The layout in which threads hold the value, and how many threads there are, as of a register tile: also in loops that are expanded, and of tuples.
#[test]
fn hover_of_a_computed_tile_has_its_layout_and_threads() {
    let hover = |target: &str, text: &str, what: &str| {
        let mut client = Client::new(json!({ "target": target }));
        client.open(URI, text);
        client.notification("tilec/compiled");
        let found = client.request("textDocument/hover", at(URI, text, what, 0));
        found["contents"]["value"].as_str().unwrap_or_else(|| panic!("{what}: {found}")).to_owned()
    };
    let attention = include_str!("../../../examples/attention.tile");
    let p = hover("sm_90a", attention, "p = exp2");
    assert!(p.contains("On sm_90a, 384 threads a block (") && p.contains("of role `consumer`"), "{p}");
    assert!(p.contains("let p: reg f32[128, 128] layout ((4,8,8),(2,2,16)):((256,1,16),(128,8,1024))"), "{p}");
    let m = hover("sm_90a", attention, "m_new = max");
    assert!(m.contains("let m_new: reg f32[128, 1] layout ((4,8,8),2):((0,1,16),8)"), "{m}");
    let sort = "kernel sorted(X: gmem f32[M, N] multiple 4, Y: gmem f32[M, N] multiple 4, P: gmem i32[M, N] multiple 4) grid (i: ceildiv(M, 4)) {
    var x = reg f32[4, 256]
    copy X[i * 4.., 0..] -> x
    let (v, p) = sort (x, iota(x, 1)) along 1 with (x1, p1: i32), (x2, p2) { give x1 > x2 || x1 == x2 && p1 < p2 }
    copy v -> Y[i * 4.., 0..]
    copy p -> P[i * 4.., 0..]
}
";
    let v = hover("sm_90a", sort, "v, p) = sort");
    assert!(v.contains("let v: reg f32[4, 256] layout ((32,4),(4,2)):((16,1),(4,512))"), "{v}");
    let p = hover("sm_80", sort, "p) = sort");
    assert!(p.contains("let p: reg i32[4, 256] layout ((32,4),(4,2)):((16,1),(4,512))"), "{p}");
    // A number that all threads have, and a window, have none.
    let first = hover("sm_80", attention, "first = select");
    assert!(!first.contains("layout"), "{first}");
}
