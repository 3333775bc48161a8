//! `tilec xray --measured`: only a measurement of this kernel, target and problem is compared with the prediction.

use crate::common::Dir;
use serde_json::json;

#[test]
fn a_measurement_of_something_else_is_not_shown() {
    let dir = Dir::new("measured");
    dir.file("gemm.tile", include_bytes!("../../examples/gemm.tile"));
    let problem =
        |n: i64, us: f64| json!({ "args": { "M": n, "N": n, "K": n }, "rows": [{ "variant": 1, "us": [us] }] });
    let report = |entry: &str| {
        let variants = [json!({ "label": "a", "target": "sm_75" }), json!({ "label": "b", "target": "sm_80" })];
        json!({ "schema": "tilec.bench/1", "entry": entry, "variants": variants, "problems": [problem(512, 0.5), problem(4096, 0.25)] })
    };
    dir.file("m.json", report("gemm").to_string().as_bytes());
    dir.file("other.json", report("softmax").to_string().as_bytes());
    let shown = |size: &str, target: &str, file: &str, picture: &str| {
        dir.tilec(&["xray", "gemm.tile", "--target", target, size, "--measured", file, "--emit", picture])
    };
    // The second problem of the file is the one that is requested; its time is above the roof.
    let time = shown("M=N=K=4096", "sm_80", "m.json", "svg:time");
    assert!(time.status == 0 && time.stdout.contains("K=4096 M=4096 N=4096"), "{}{}", time.stdout, time.stderr);
    let roof = shown("M=N=K=4096", "sm_80", "m.json", "svg:roofline").stdout;
    assert!(roof.contains("above the roof") && !roof.contains("cy=\"-"), "{roof}");
    for (size, target, file) in
        [("M=N=K=1024", "sm_80", "m.json"), ("M=N=K=4096", "sm_75", "m.json"), ("M=N=K=4096", "sm_80", "other.json")]
    {
        let run = shown(size, target, file, "svg:time");
        assert_eq!(run.status, 2, "{size} {target} {file}: {}", run.stdout);
        assert!(run.stderr.contains("does not fit") && run.stderr.contains("(sm_80, b) with K=512"), "{}", run.stderr);
    }
}
