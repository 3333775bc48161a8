//! `--emit bundle`, and the reader of `docs/bundle.md`.

use crate::common::Dir;
use pretty_assertions::assert_eq;
use std::fs;
use std::process::Command;
use tilec_launch::Bundle;

const SOURCE: &[u8] = b"kernel double(A: gmem f32[N], B: gmem f32[N]) grid (b: ceildiv(N, 256)) {
    var x = reg f32[256]
    copy A[b * 256..] -> x
    copy 2.0 * x -> B[b * 256..]
}
";

#[test]
fn a_bundle_has_all_targets_and_the_same_bytes() {
    let dir = Dir::new("bundle");
    dir.file("k.tile", SOURCE);
    let run = dir.tilec(&["k.tile", "--targets", "sm_90a,sm_70", "-o", "a.tilec"]);
    assert_eq!((run.status, run.stderr.as_str()), (0, ""));
    assert_eq!(dir.tilec(&["k.tile", "--emit", "bundle", "--targets", "sm_70,sm_90a", "-o", "b"]).status, 0);
    let bytes = fs::read(dir.0.join("a.tilec")).expect("a bundle");
    assert_eq!(fs::read(dir.0.join("b")).expect("a bundle"), bytes);
    let bundle = Bundle::from_bytes(&bytes).expect("our own bundle");
    assert_eq!(bundle.targets(), ["sm_70", "sm_90a"]);
    assert_eq!(bundle.launch_file("sm_70").expect("a launch file").kernels[0].target, "sm_70");
    // One target is that of --target.
    assert_eq!(dir.tilec(&["k.tile", "--target", "sm_80", "-o", "c.tilec"]).status, 0);
    let one = fs::read(dir.0.join("c.tilec")).expect("a bundle");
    assert_eq!(Bundle::from_bytes(&one).expect("our own bundle").targets(), ["sm_80"]);
}

#[test]
fn the_reader_of_the_document_reads_it() {
    let dir = Dir::new("bundle-reader");
    dir.file("k.tile", SOURCE);
    assert_eq!(dir.tilec(&["k.tile", "--targets", "sm_70,sm_80,sm_90a", "-o", "k.tilec"]).status, 0);
    let document = include_str!("../../docs/bundle.md");
    let reader = document.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a reader");
    let taken = "
for device in ((7, 5), (8, 9), (9, 0), (10, 0)):
    contract, image = read('k.tilec', *device)
    print(contract['target'], image.startswith(b'//') and image.endswith(b'\\0'))
";
    dir.file("reader.py", format!("{reader}{taken}").as_bytes());
    let Ok(python) = Command::new("python3").arg("reader.py").current_dir(&dir.0).output() else {
        eprintln!("skipped: there is no python3");
        return;
    };
    let said = String::from_utf8_lossy(&python.stdout);
    assert_eq!(
        said,
        "sm_70 True\nsm_80 True\nsm_90a True\nsm_80 True\n",
        "{}",
        String::from_utf8_lossy(&python.stderr)
    );
}

#[test]
fn options_of_bundles_are_for_bundles() {
    let dir = Dir::new("bundle-options");
    dir.file("k.tile", SOURCE);
    for (args, says) in [
        (&["k.tile", "--targets", "sm_70", "-o", "k.ptx"][..], "`--targets` is for `--emit c` and `--emit bundle`"),
        (&["k.tile", "--cubin", "-o", "k.ptx"], "`--cubin` is for `--emit bundle`"),
        (&["k.tile", "--target", "sm_70", "--targets", "sm_80", "-o", "k.tilec"], "cannot be used with"),
        (&["k.tile", "--targets", "sm_80,sm_80", "-o", "k.tilec"], "names sm_80 twice"),
        (&["k.tile", "--targets", "sm_1", "-o", "k.tilec"], "sm_1"),
    ] {
        let run = dir.tilec(args);
        assert_eq!(run.status, 2, "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(says), "{args:?}: {}", run.stderr);
    }
}
