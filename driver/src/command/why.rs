//! `tilec why IN.tile TARGET PLACE`, `tilec why IN.tile TARGET --not PROPERTY`.

use crate::Target;
use crate::command::args::{WhyArgs, WhyEmit, sizes};
use crate::command::failure::{Failure, SideMessages};
use crate::command::program::{options, read, write};
use crate::compile::stages::parse;
use crate::compile::{Caller, Sizes};
use crate::why::{Question, Unanswered, why};
use std::collections::BTreeSet;
use tilec_ir::diag::Sink;
use tilec_ir::kernel::ValueDef;

/// Answers a question.
pub(crate) fn why_command(args: &WhyArgs) -> Result<(), Failure> {
    let (mut target, mut question, mut given) = (args.program.target, None, Vec::new());
    for word in &args.words {
        if let Some(named) = Target::from_name(word) {
            if target.replace(named).is_some_and(|other| other != named) {
                return Err(Failure::Usage("two targets are named".to_owned()));
            }
        } else if !word.contains(':') && word.contains('=') {
            given.push(word.as_str());
        } else if question.replace(Question::parse(word).map_err(Failure::Asked)?).is_some() {
            return Err(Failure::Usage("two places are asked about".to_owned()));
        }
    }
    if let Some(property) = &args.not
        && question.replace(Question::parse_not(property).map_err(Failure::Asked)?).is_some()
    {
        return Err(Failure::Usage("`--not` and a place are two questions".to_owned()));
    }
    let question = question.unwrap_or(Question::Overview);
    let source = read(&args.input)?;
    let values = sizes_among(&source, &given)?;
    let mut options = options(&args.program, &args.input, target.unwrap_or(Target::Sm70))?;
    options.caller = Caller::Inspection;
    if !values.is_empty() && !options.sizes.is_empty() {
        return Err(Failure::Usage("give sizes after the file or with `--for`, not both".to_owned()));
    }
    if !values.is_empty() {
        options.sizes = vec![values];
    }
    let said = SideMessages { remarks: args.program.remarks, format: args.program.error_format };
    let answer = match why(&source, &options, &question) {
        Ok(answer) => answer,
        Err(Unanswered::Asked(text)) => return Err(Failure::Asked(text)),
        Err(Unanswered::Diagnostics(d)) => return said.unless_error(Err(d)),
    };
    let text = match args.emit {
        WhyEmit::Text => answer.to_string(),
        WhyEmit::Json => answer.to_json(),
    };
    write(None, text.as_bytes())
}

/// The sizes among the arguments of a launch. Strides and scalars, which `tilec run` takes as well, affect no answer.
fn sizes_among(source: &str, words: &[&str]) -> Result<Sizes, Failure> {
    let kernels = parse(source, &mut Sink::new()).map_or_else(|_| Vec::new(), |module| module.kernels);
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for k in &kernels {
        let others = k.values.values().filter(|v| matches!(v.def, ValueDef::Stride | ValueDef::Scalar { .. }));
        named.extend(others.map(|v| v.name.as_str()));
    }
    let is_size = |name: &str| kernels.iter().any(|k| k.sizes.iter().any(|&v| k.values[v].name == name));
    let is_other = |name: &str| named.contains(name) && !is_size(name);
    let mut values = Vec::new();
    for item in words.iter().flat_map(|word| word.split(',')) {
        let names = item.rsplit_once('=').map_or(item, |(names, _)| names);
        if !names.split('=').map(str::trim).all(is_other) {
            values.extend(sizes(item).map_err(Failure::Usage)?.0);
        }
    }
    Ok(values)
}
