//! `report`: `//@ expect:` lines over the compile report of the only kernel, for every combination of `//@ matrix:`.

use super::checks::{compile, no_more};
use crate::test_file::TestFile;
use crate::{expect, golden, options};

pub(super) fn run(file: &TestFile) -> Result<(), String> {
    file.allow_keys(&["source", "expect", "matrix"])?;
    let (options, rest) = options::of(file)?;
    no_more(&rest, &[])?;
    if file.value("expect").is_none() {
        return Err("`report` needs at least one `//@ expect:` line".to_owned());
    }
    options::for_each(file, &options, |options| {
        let done = compile(file, options)?;
        let [kernel] = &done.kernels[..] else { return Err(format!("{} kernels, expected one", done.kernels.len())) };
        let json = serde_json::to_value(&kernel.report).map_err(|e| e.to_string())?;
        let wrong: Vec<String> = file.values("expect").filter_map(|e| expect::holds(e, &json).err()).collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    })?;
    golden::check(file, &[])
}
