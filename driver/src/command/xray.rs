//! `tilec xray IN.tile -o OUT.html`.

use crate::bench::measured;
use crate::command::args::{Xray, XrayEmit};
use crate::command::failure::{Failure, SideMessages};
use crate::command::program::{definitions, keeps_source, options, read, write};
use crate::why::Question;
use crate::xray::{Measured, PageOptions, VariantDiff};
use crate::{Target, xray};
use std::path::Path;

/// Writes the page of a program.
pub(crate) fn xray_command(args: &Xray) -> Result<(), Failure> {
    let output = args.output.as_deref().filter(|o| *o != Path::new("-"));
    if let Some(output) = output {
        keeps_source(&args.input, output)?;
    }
    let source = read(&args.input)?;
    let mut options = options(&args.program, &args.input, args.program.target.unwrap_or(Target::Sm70))?;
    let values: Vec<_> = args.values.iter().flat_map(|s| s.0.iter().cloned()).collect();
    if let Some(i) = (1..values.len()).find(|&i| values[..i].iter().any(|(name, _)| *name == values[i].0)) {
        return Err(Failure::Usage(format!("`{}` has two sizes", values[i].0)));
    }
    if !values.is_empty() {
        options.sizes = vec![values];
    }
    options.variants = definitions(&options, &args.variant)?;
    let said = SideMessages { remarks: args.program.remarks, format: args.program.error_format };
    let more = PageOptions { measured: measured(args)?, compare: other(&args.compare)?, ..element(&args.emit)? };
    let shown = said.unless_error(xray::xray(&source, &options, &more))?;
    if let (Some(file), Some(why)) = (&args.measured, &shown.unmeasured) {
        return Err(Failure::Usage(format!("`{}` does not fit: {why}", file.display())));
    }
    if let Some(why) = &shown.no_way {
        return Err(Failure::Asked(why.clone()));
    }
    let text = match &args.emit {
        XrayEmit::Html => shown.to_html(),
        XrayEmit::Json => shown.to_json(),
        XrayEmit::Svg(name) => picture(&shown, name)?,
    };
    write(output, text.as_bytes())
}

/// The second variant: `target=sm_80` its target, `M=4096` a size, other names compile-time parameters.
fn other(given: &[(String, String)]) -> Result<VariantDiff, Failure> {
    let mut other = VariantDiff::default();
    for (name, value) in given {
        if name != "target" {
            other.values.push((name.clone(), value.clone()));
            continue;
        }
        let unknown = || Failure::Usage(format!("`{value}` is no target; `tilec targets` lists them"));
        other.target = Some(Target::from_name(value).ok_or_else(unknown)?);
    }
    Ok(other)
}

/// The measurements to show next to predictions.
fn measured(args: &Xray) -> Result<Vec<Measured>, Failure> {
    let Some(file) = &args.measured else { return Ok(Vec::new()) };
    let text = read(file)?;
    let wrong = |e| Failure::Usage(format!("`{}` is no measurement: {e}", file.display()));
    measured::measured(&text).map_err(wrong)
}

/// The element whose way is requested: `svg:path-A[3,5]`, of one of several kernels `svg:gemm.path-A[3,5]`.
fn element(emit: &XrayEmit) -> Result<PageOptions, Failure> {
    let mut more = PageOptions::default();
    if let XrayEmit::Svg(name) = emit
        && let Some((kernel, element)) = name.split_once("path-")
        && (kernel.is_empty() || kernel.ends_with('.'))
        && element.contains('[')
        && let element = element.rsplit_once('@').map_or(element, |(element, _)| element)
        && let Question::Element(element) =
            Question::parse(&format!("element:{kernel}{element}")).map_err(Failure::Usage)?
    {
        more.element = Some(element);
        more.picture = name.rsplit_once('@').map_or(&**name, |(name, _)| name).to_owned();
    }
    Ok(more)
}

/// One picture, or one step of it (`banks-a-load@3`), or the names of all with what they show.
fn picture(shown: &xray::Xray, name: &str) -> Result<String, Failure> {
    if name == "list" {
        let line = |p: &xray::Picture| {
            let steps = match p.frames.len() {
                0 => String::new(),
                n => format!(" (steps: `@1` to `@{n}`)"),
            };
            format!("{}: {}{steps}\n", p.name, p.title)
        };
        return Ok(shown.pictures.iter().map(line).collect());
    }
    let (name, step) = match name.rsplit_once('@') {
        Some((name, step)) => (name, Some(step)),
        None => (name, None),
    };
    let names = shown.pictures.iter().map(|p| p.name.as_str());
    match shown.pictures.iter().find(|p| p.name == name) {
        Some(picture) => match step {
            Some(step) => one_step(picture, step).map(str::to_owned),
            None => Ok(picture.whole()),
        },
        None if shown.pictures.is_empty() => Err(Failure::Usage("there are no pictures of this program".to_owned())),
        None => {
            let names: Vec<&str> = names.collect();
            Err(Failure::Usage(format!(
                "there is no picture `{name}`{}; there are {}",
                meant(name, &names),
                names.join(", ")
            )))
        }
    }
}

/// A step of a picture: they are counted from 1, as the page counts them.
fn one_step<'a>(picture: &'a xray::Picture, step: &str) -> Result<&'a str, Failure> {
    let (name, last) = (&picture.name, picture.frames.len());
    let found = step.parse::<usize>().ok().and_then(|n| picture.frames.get(n.checked_sub(1)?));
    found.map(String::as_str).ok_or_else(|| {
        Failure::Usage(match last {
            0 => format!("the picture `{name}` has no steps: use `svg:{name}`"),
            _ => format!(
                "the picture `{name}` has no step `{step}`: its steps are `svg:{name}@1` to `svg:{name}@{last}`"
            ),
        })
    })
}

/// Suggestions for an unknown picture name: names with that prefix or for that tile, else the most similar one.
fn meant(name: &str, names: &[&str]) -> String {
    let part = |own: &&&str| own.split(['-', '.']).any(|part| part == name) || own.starts_with(name);
    let mut likely: Vec<&str> = names.iter().filter(part).copied().collect();
    if likely.is_empty() {
        likely.extend(crate::explain::nearest(name, names.to_vec()));
    }
    let likely: Vec<String> = likely.iter().map(|own| format!("`svg:{own}`")).collect();
    if likely.is_empty() { String::new() } else { format!(": did you mean {}", likely.join(" or ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_that_may_be_meant_are_named() {
        let names = ["acc", "smem-a", "smem-b", "banks-a-load", "roofline"];
        assert_eq!(meant("smem", &names), ": did you mean `svg:smem-a` or `svg:smem-b`");
        assert_eq!(meant("a", &names), ": did you mean `svg:acc` or `svg:smem-a` or `svg:banks-a-load`");
        assert_eq!(meant("rooflin", &names), ": did you mean `svg:roofline`");
        assert_eq!(meant("nothing like it", &names), "");
    }
}
