//! What accesses to memory take, in hover.

use super::URI;
use super::client::Client;
use super::text::at;
use serde_json::json;

/// A buffer has the bank conflicts of its accesses, and a copy its own and the sectors that it uses.
#[test]
fn hover_has_what_accesses_take() {
    let text = "kernel turned(A: gmem f32[M, N] multiple 4, B: gmem f32[N, M] multiple 4) grid (i: ceildiv(M, 32), j: ceildiv(N, 32)) {
    let t = smem f32[32, 32] layout (32,32):(32,1)
    let plain = smem f32[32, 32]
    copy A[i * 32.., j * 32..] -> t
    copy A[i * 32.., j * 32..] -> plain
    copy transpose(t) -> B[j * 32.., i * 32..]
    copy transpose(plain) -> B[j * 32.., i * 32..]
}
";
    let mut client = Client::new(json!({ "target": "sm_80" }));
    client.open(URI, text);
    client.notification("tilec/compiled");
    let mut hover = |what: &str| {
        let found = client.request("textDocument/hover", at(URI, text, what, 0));
        found["contents"]["value"].as_str().unwrap_or_else(|| panic!("{what}: {found}")).to_owned()
    };
    let buffer = hover("t = smem");
    assert!(buffer.contains("a load from `t` takes ") && buffer.contains(" wavefronts a warp, not "), "{buffer}");
    let plain = hover("plain = smem");
    assert!(plain.contains("as few as its width needs") && !plain.contains("`t`"), "{plain}");
    let copy = hover("copy transpose(t)");
    assert!(
        copy.contains("wavefronts a warp, not") && copy.contains("% of the bytes of its sectors are used"),
        "{copy}"
    );
}
