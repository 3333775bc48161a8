//! Arguments of a test file as compile options.
//!
//! `sm_70` or `--target sm_70`, `-D NAME=VALUE`, `--disable PASS,PASS` (or `all`), `--deny KIND,KIND`; other words are
//! the kind's own. `//@ matrix: LA=row,col BK=8,16` repeats a test for every combination of definitions, on each of the targets.

use crate::test_file::TestFile;
use tilec::{CompileOptions, Target};

/// The options of a file and the words that are none.
///
/// # Errors
/// An option lacks its value, or names a target that does not exist.
pub fn of(file: &TestFile) -> Result<(CompileOptions, Vec<String>), String> {
    parse(&file.args)
}

/// Options from words.
///
/// # Errors
/// As [`of`].
pub fn parse(args: &[String]) -> Result<(CompileOptions, Vec<String>), String> {
    let mut options = CompileOptions { verify_each: true, ..CompileOptions::default() };
    let mut rest = Vec::new();
    let mut words = args.iter();
    let target = |name: &str| Target::from_name(name).ok_or_else(|| format!("no target `{name}`"));
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("`{word}` needs a value"));
        match word.as_str() {
            "--target" => options.target = target(value()?)?,
            "-D" => options.defines.push(define(value()?)?),
            "--disable" => {
                for pass in value()?.split(',') {
                    if pass == "all" {
                        disable_all(&mut options)
                    } else {
                        options.disabled.insert(pass.to_owned());
                    }
                }
            }
            "--deny" => options.deny.extend(value()?.split(',').map(str::to_owned)),
            name if name.starts_with("sm_") => options.target = target(name)?,
            other => rest.push(other.to_owned()),
        }
    }
    Ok((options, rest))
}

/// Switches off every pass that can be.
pub fn disable_all(options: &mut CompileOptions) {
    options.disabled.extend(optional_passes().map(str::to_owned));
}

/// The passes that can be switched off, in order.
pub fn optional_passes() -> impl Iterator<Item = &'static str> {
    tilec_passes::PASSES.iter().filter(|p| !p.required).map(|p| p.name)
}

fn define(word: &str) -> Result<(String, String), String> {
    let (name, value) = word.split_once('=').ok_or_else(|| format!("`{word}` is not NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

/// The options of every combination of the file's targets and `matrix`, with a name each; without one, the options as they are.
///
/// # Errors
/// The matrix is not `NAME=VALUE,VALUE ...`.
pub fn matrix(file: &TestFile, base: &CompileOptions) -> Result<Vec<(String, CompileOptions)>, String> {
    let mut all = vec![(String::new(), base.clone())];
    let targets: Vec<&str> = file.args.iter().map(String::as_str).filter(|word| word.starts_with("sm_")).collect();
    if targets.len() > 1 {
        let on = |name: &&str| {
            let target = Target::from_name(name).ok_or_else(|| format!("no target `{name}`"))?;
            Ok(((*name).to_owned(), CompileOptions { target, ..base.clone() }))
        };
        all = targets.iter().map(on).collect::<Result<_, String>>()?;
    }
    for word in file.values("matrix").flat_map(str::split_whitespace) {
        let (name, values) = define(word)?;
        let mut next = Vec::new();
        for (label, options) in &all {
            for value in values.split(',') {
                let mut options = options.clone();
                options.defines.push((name.clone(), value.to_owned()));
                next.push((format!("{label} {name}={value}").trim().to_owned(), options));
            }
        }
        all = next;
    }
    Ok(all)
}

/// Runs `check` for every combination of the file's matrix and collects what is wrong with each.
///
/// # Errors
/// All complaints, each with its combination.
pub fn for_each(
    file: &TestFile,
    base: &CompileOptions,
    mut check: impl FnMut(&CompileOptions) -> Result<(), String>,
) -> Result<(), String> {
    let wrong: Vec<String> = matrix(file, base)?
        .iter()
        .filter_map(|(label, options)| check(options).err().map(|e| format!("[{label}] {e}")))
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}
