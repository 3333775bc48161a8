//! The command's side of measuring, with a child that makes the times up.

use super::super::{Keep, TuneOptions, Tuner};
use super::*;
use crate::compile::compile;
use crate::compile::options::CompileOptions;
use crate::measure::tune::Tuned;
use pretty_assertions::assert_eq;
use std::path::{Path, PathBuf};
use tilec_ir::target::Target;

const GEMM: &str = include_str!("../../../../examples/gemm.tile");

/// A separate directory for a test, removed at the end.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        let dir = std::env::temp_dir().join(format!("tilec-tune-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory for the test");
        Dir(dir)
    }

    /// The jobs that children were given.
    fn jobs(&self) -> usize {
        std::fs::read_to_string(self.0.join("jobs")).map_or(0, |text| text.lines().count())
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A child for which the first program of a session takes 100 us, the others `others`; `odd` is what it does with a job of `$n` programs
/// besides.
fn child(dir: &Path, others: &str, odd: &str) -> Command {
    let machine = r#"{"name":"NVIDIA Test","cc":80,"driver":"13.0","sm_count":1,"clock_khz":1,"memory_clock_khz":1,"memory_bus_bits":1,"l2_bytes":1}"#;
    let series = |us: &str| {
        format!(
            r#"{{"Ok":{{"us":[{us},{us},{us}],"launches":1,"sets":2,"check":{{"exact":1,"bounded":1,"against_cublas":0,"wrong":0,"worst":0,"shown":[],"skipped":null}},"reference":null,"flops":0,"bytes":0}}}}"#
        )
    };
    let script = format!(
        r#"cd '{dir}'; read -r setup; echo '{{"Ready":{{"machine":{machine},"cublas":null,"programs":[]}}}}'
        while read -r job; do
            list=${{job##*'"programs":['}}; list=${{list%%]*}}; echo "$list" >> jobs
            n=$(echo "$list" | tr ',' '\n' | wc -l)
            {odd}
            all=''; for i in $(echo "$list" | tr ',' ' '); do
                if [ "$i" = 0 ]; then one='{own}'; else one='{other}'; fi; all="$all${{all:+,}}$one"
            done
            echo "{{\"Measured\":{{\"programs\":[$all],\"references\":[],\"notes\":[]}}}}"
        done"#,
        dir = dir.display(),
        own = series("100"),
        other = series(others),
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script]);
    command
}

/// `gemm.tile` with few candidates.
fn few() -> String {
    let fixed = [("BM", "64"), ("BK", "64"), ("WM", "32"), ("WN", "32"), ("KW", "1")];
    fixed
        .iter()
        .fold(GEMM.to_owned(), |text, (name, x)| text.replace(&format!("{name} = auto"), &format!("{name} = {x}")))
}

fn options(cache: Keep) -> TuneOptions {
    let compile =
        CompileOptions { target: Target::Sm80, source_name: "x.tile".to_owned(), ..CompileOptions::default() };
    TuneOptions { compile, kernel: None, seconds: 600.0, timeout: Duration::from_secs(60), seed: 0, cache }
}

fn tune(launcher: Launcher<'_>, cache: Keep) -> Result<(Tuned, String), Diagnostics> {
    let args: Args = ["M", "N", "K"].map(|name| (name.to_owned(), 512.into())).into();
    let source = few();
    let mut tuner = Tuner::new(&source, options(cache), std::slice::from_ref(&args), launcher)?;
    let report = tuner.report();
    let tuned = tuner.tune(&args, launcher, &mut |_, _| ())?;
    let text = tuned.text("x.tile", &report, &[]);
    Ok((tuned, text))
}

#[test]
fn the_winner_is_a_program_and_what_was_found_out_is_kept() {
    let dir = Dir::new("winner");
    let cache = Keep::At(dir.0.clone());
    let mut launcher = |_: &str| child(&dir.0, "90", "");
    let (tuned, text) = tune(&mut launcher, cache.clone()).expect("it is measured");
    assert!(tuned.tuned.words != tuned.chosen.words && tuned.gain.is_some_and(|g| g.median > 1.1), "{tuned:?}");
    assert_eq!((tuned.cached, tuned.left, tuned.dropped.len()), (0, 0, 0));
    assert!(tuned.measured > 10, "{tuned:?}");
    let plain = CompileOptions { target: Target::Sm80, ..CompileOptions::default() };
    let values = tuned.tuned.values["gemm"].iter().map(|(n, x)| (n.clone(), x.to_string())).collect();
    let given = CompileOptions { defines: values, ..plain.clone() };
    let code = |source: &str, options: &CompileOptions| {
        super::super::candidates::code_only(&compile(source, options).expect("it compiles").ptx)
    };
    assert_eq!(code(&text, &plain), code(&few(), &given));
    // Only the finals are held again.
    let before = dir.jobs();
    let (again, _) = tune(&mut launcher, cache).expect("it is measured");
    assert_eq!((again.cached, again.measured), (tuned.measured, tuned.measured));
    assert!(dir.jobs() - before <= 2, "{}", dir.jobs() - before);
}

#[test]
fn who_is_to_blame_is_dropped_and_the_rest_measured() {
    // The process dies of the first launch of its third program.
    let dir = Dir::new("dies");
    let dies = r#"if [ "$n" -gt 5 ]; then echo '{"Progress":{"what":"checking","done":0,"first":2}}'; exit 1; fi"#;
    let (tuned, _) = tune(&mut |_| child(&dir.0, "110", dies), Keep::At(dir.0.clone())).expect("the rest is measured");
    assert!(!tuned.dropped.is_empty() && tuned.dropped.iter().all(|d| d.why.contains("exit")), "{:?}", tuned.dropped);
    assert_eq!(tuned.tuned.words, tuned.chosen.words);
    // The cause of the failure is unknown: working halves are found, and nothing is dropped.
    let dir = Dir::new("halves");
    let dies = r#"if [ "$n" -gt 5 ]; then exit 1; fi"#;
    let (tuned, _) = tune(&mut |_| child(&dir.0, "110", dies), Keep::Not).expect("all of it is measured");
    assert_eq!(tuned.dropped, Vec::new());
}

#[test]
fn no_candidate_or_no_device_is_an_error() {
    let dir = Dir::new("nothing");
    let said = tune(&mut |_| child(&dir.0, "1", "exit 1"), Keep::Not).expect_err("none works").to_string();
    assert!(said.contains("E0612") && said.contains("none works"), "{said}");
    let refused = r#"read -r setup; echo '{"Refused":{"no_device":true,"reason":"no library"}}'"#;
    let mut launcher = |_: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", refused]);
        command
    };
    let said = tune(&mut launcher, Keep::Not).expect_err("no device").to_string();
    assert!(said.contains("E0611") && said.contains("no library"), "{said}");
}
