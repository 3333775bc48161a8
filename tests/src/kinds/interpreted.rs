//! `interp`: the interpreter on `//@ run: M=17 N=5 alpha=2 seed=3` lines. The source gives what the `//@ reference:` gives, and the
//! program gives the same after every pass, and with each pass and all passes switched off. Of eight combinations of a matrix or more,
//! each does a quarter of the passes that are switched off, of four to seven a half. Each does half of the orders of blocks and landings of copies.
//! Runs too large to be simulated are interpreted in the last form and, of three combinations or more, in a third of the others in turn.

use super::checks::no_more;
use crate::oracle::{Share, Variants};
use crate::problem::Run;
use crate::reference::Reference;
use crate::test_file::TestFile;
use crate::{golden, options};

pub(super) fn run(file: &TestFile) -> Result<(), String> {
    file.allow_keys(&["source", "run", "reference", "matrix", "unlowered"])?;
    let (options, rest) = options::of(file)?;
    no_more(&rest, &[])?;
    let reference = file.value("reference").map(Reference::from_name).transpose()?;
    let runs = file.values("run").map(Run::parse).collect::<Result<Vec<_>, _>>()?;
    if runs.is_empty() {
        return Err("`interp` needs at least one `//@ run:` line".to_owned());
    }
    let (name, text) = file.program()?;
    let unlowered = file.value("unlowered");
    if let Some(why) = unlowered {
        golden::skip(&format!("{} on the simulator", file.name), why);
    }
    let combinations = options::matrix(file, &options)?.len();
    let mut index = 0..;
    options::for_each(file, &options, |options| {
        let share = Share::of(index.next().unwrap_or(0), combinations);
        let variants = Variants::new(&name, &text, options, share, unlowered.is_none())?;
        let wrong: Vec<String> = file
            .values("run")
            .zip(&runs)
            .enumerate()
            .filter_map(|(i, (line, run))| variants.agree(i, run, reference).err().map(|e| format!("{line}: {e}")))
            .collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    })?;
    golden::check(file, &[])
}
