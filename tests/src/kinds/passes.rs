//! `pass NAME,NAME`: the program after each of these passes is the expected output, and it is a program: it parses, verifies,
//! prints to itself, and compiles on to the same PTX as the original, but for places in the source.

use super::checks::{compile, golden_or_checks, no_more};
use super::text;
use crate::test_file::TestFile;
use crate::{golden, options, oracle};
use tilec::{CompileOptions, Keep};

pub(super) fn run(file: &TestFile) -> Result<(), String> {
    file.allow_keys(&["source", "check", "not", "matrix"])?;
    let (options, mut rest) = options::of(file)?;
    let names = if rest.is_empty() { return Err("`pass` needs the name of a pass".to_owned()) } else { rest.remove(0) };
    no_more(&rest, &[])?;
    let names: Vec<&str> = names.split(',').collect();
    options::for_each(file, &options, |options| {
        let keep = Keep::After(names.iter().map(|&n| n.to_owned()).collect());
        let done = compile(file, &CompileOptions { keep, ..options.clone() })?;
        let mut outputs = Vec::new();
        for name in &names {
            let kernels = done.kernels.iter().flat_map(|k| &k.tile.texts);
            let text: Vec<&str> =
                done.texts.iter().chain(kernels).filter(|(p, _)| p == name).map(|(_, t)| t.as_str()).collect();
            if text.is_empty() {
                return Err(format!("there is no pass `{name}`"));
            }
            let text = text.join("\n");
            feed_in_again(name, &text, &done.ptx, options)?;
            outputs.push(((*name).to_owned(), text));
        }
        match outputs.as_mut_slice() {
            [(_, text)] => golden_or_checks(file, std::mem::take(text)),
            _ => golden::check(file, &outputs),
        }
    })
}

/// The text after a pass, as a program.
///
/// # Errors
/// It is not a program, or has another meaning.
pub fn feed_in_again(pass: &str, text: &str, ptx: &str, options: &CompileOptions) -> Result<(), String> {
    let printed = text::round_trip(text, oracle::parse).map_err(|e| format!("the text after `{pass}`: {e}"))?;
    if printed != text {
        return Err(format!("the text after `{pass}` prints differently, {}", golden::differs(text, &printed)));
    }
    // Compile-time parameters are bound by now.
    let options = CompileOptions { defines: Vec::new(), keep: Keep::default(), ..options.clone() };
    let again = tilec::compile(text, &options).map_err(|e| format!("the text after `{pass}` does not compile: {e}"))?;
    let (was, is) = (without_places(ptx), without_places(&again.ptx));
    if was == is {
        Ok(())
    } else {
        Err(format!("the text after `{pass}` gives other PTX, {}", golden::differs(&was, &is)))
    }
}

/// PTX without comments, `.file` and `.loc`.
pub fn without_places(ptx: &str) -> String {
    let code = ptx.lines().map(|l| l.split("//").next().unwrap_or("").trim_end());
    let kept = code.filter(|l| {
        let l = l.trim_start();
        !l.is_empty() && !l.starts_with(".file") && !l.starts_with(".loc")
    });
    kept.fold(String::new(), |all, line| all + line + "\n")
}
