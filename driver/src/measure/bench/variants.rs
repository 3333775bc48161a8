//! Which programs to measure against each other: sets of compile-time parameters, targets, passes switched off.
//!
//! `BM=128,BN=256,target=sm_80` is one variant on top of the command's own `-D` and `--target`; `off=swizzle+pipeline`
//! switches passes off (`off=all`: every optional one), and `on=PASS` a pass on again that is off. `/` separates alternatives: `BM=64/128,target=sm_75/sm_80` is four variants.

use crate::compile::explain::{self, ALL_PASSES};
use crate::compile::options::{CompileOptions, Sizes};
use tilec_ir::target::Target;
use tilec_passes::{PASSES, choose};

/// Maximum number of variants of one command.
const MAX_VARIANTS: usize = 256;

/// One program to measure: how it is called and how it is compiled.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its name in the table.
    pub label: String,
    /// How to compile it.
    pub options: CompileOptions,
}

/// The variants that `texts` request on top of `base`; `base` alone without any.
///
/// # Errors
/// What cannot be read, in words for the command line.
pub fn variants(base: &CompileOptions, texts: &[String]) -> Result<Vec<Variant>, String> {
    if texts.is_empty() {
        let label = base.defines.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ");
        let label = format!("{}{}{label}", base.target.name(), if label.is_empty() { "" } else { " " });
        return Ok(vec![Variant { label, options: base.clone() }]);
    }
    let mut all: Vec<Variant> = Vec::new();
    for text in texts {
        let mut some = vec![Variant { label: String::new(), options: base.clone() }];
        let mut named: Vec<&str> = Vec::new();
        for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let Some((name, values)) = item.split_once('=') else {
                return Err(format!("variant `{text}`: expected NAME=VALUE, found `{item}`"));
            };
            let name = name.trim();
            if named.contains(&name) {
                return Err(format!("variant `{text}`: `{name}` is there twice; `{name}=A/B` is a variant for each"));
            }
            named.push(name);
            let mut more = Vec::new();
            for variant in &some {
                for value in values.split('/').map(str::trim) {
                    let mut variant = variant.clone();
                    set(&mut variant.options, name, value).map_err(|e| format!("variant `{text}`: {e}"))?;
                    let gap = if variant.label.is_empty() { "" } else { " " };
                    let said = if name == "target" { value.to_owned() } else { format!("{name}={value}") };
                    variant.label = format!("{}{gap}{said}", variant.label);
                    more.push(variant);
                }
            }
            some = more;
            if some.len() + all.len() > MAX_VARIANTS {
                return Err(format!("more than {MAX_VARIANTS} variants"));
            }
        }
        all.extend(some);
    }
    for variant in all.iter_mut().filter(|v| v.label.is_empty()) {
        "as it is".clone_into(&mut variant.label);
    }
    for (i, variant) in all.iter().enumerate() {
        if all[..i].iter().any(|other| other.label == variant.label) {
            return Err(format!("the variant `{}` is there twice", variant.label));
        }
    }
    Ok(all)
}

/// Each of the variants, chosen for each of the sizes.
pub fn for_sizes(variants: Vec<Variant>, sizes: &[Sizes]) -> Vec<Variant> {
    if sizes.is_empty() {
        return variants;
    }
    let several = sizes.len() > 1;
    let one = |variant: &Variant, sizes: &Sizes| {
        let mut variant = variant.clone();
        variant.options.sizes = vec![sizes.clone()];
        if several {
            let list: Vec<String> = sizes.iter().map(|(name, x)| format!("{name}={x}")).collect();
            variant.label = format!("{} for {}", variant.label, list.join(" "));
        }
        variant
    };
    variants.iter().flat_map(|v| sizes.iter().map(|s| one(v, s))).collect()
}

fn set(options: &mut CompileOptions, name: &str, value: &str) -> Result<(), String> {
    if name.is_empty() || value.is_empty() {
        return Err(format!("expected NAME=VALUE, found `{name}={value}`"));
    }
    match name {
        "target" => match Target::from_name(value) {
            Some(target) => options.target = target,
            None => return Err(format!("no target `{value}`; see `tilec targets`")),
        },
        "on" => {
            for pass in value.split('+') {
                if explain::can_disable(pass).is_none() {
                    return Err(format!("no pass `{pass}`"));
                }
                if !options.disabled.remove(pass) {
                    return Err(format!("pass `{pass}` is on already; `on=` follows an `off=`"));
                }
            }
        }
        "off" => {
            for pass in value.split('+') {
                if pass == ALL_PASSES {
                    options.disabled.extend(explain::optional_passes().map(str::to_owned));
                    continue;
                }
                match explain::can_disable(pass) {
                    Some(true) => options.disabled.insert(pass.to_owned()),
                    Some(false) => return Err(format!("pass `{pass}` cannot be switched off")),
                    None => return Err(format!("no pass `{pass}`")),
                };
            }
        }
        name => {
            options.defines.retain(|(other, _)| other != name);
            options.defines.push((name.to_owned(), value.to_owned()));
        }
    }
    Ok(())
}

/// The ladder of passes: without optional passes, then with one more at a time, in pipeline order. All rungs have the
/// tile that is chosen for the whole pipeline, so a gain is due to the pass alone. `choose` is not a rung.
pub fn ladder(base: &CompileOptions) -> Vec<Variant> {
    let optional: Vec<&str> = rungs().collect();
    (0..=optional.len())
        .map(|on| {
            let mut options = base.clone();
            options.disabled_in_choice = Some(base.disabled.clone());
            options.disabled.extend(optional[on..].iter().map(|pass| (*pass).to_owned()));
            let label = if on == 0 { "no passes".to_owned() } else { format!("+ {}", optional[on - 1]) };
            Variant { label, options }
        })
        .collect()
}

/// The passes that the ladder switches on.
fn rungs() -> impl Iterator<Item = &'static str> {
    PASSES.iter().filter(|p| !p.required && p.name != choose::NAME).map(|p| p.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn some(texts: &[&str]) -> Result<Vec<Variant>, String> {
        let base = CompileOptions { defines: vec![("BM".to_owned(), "32".to_owned())], ..CompileOptions::default() };
        variants(&base, &texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn definitions_replace_those_of_the_command() {
        let all = some(&["BM=64/128,target=sm_75/sm_80", "T=bf16,off=swizzle+pipeline", ""]).expect("readable");
        let labels: Vec<&str> = all.iter().map(|v| v.label.as_str()).collect();
        assert_eq!(
            labels,
            ["BM=64 sm_75", "BM=64 sm_80", "BM=128 sm_75", "BM=128 sm_80", "T=bf16 off=swizzle+pipeline", "as it is"]
        );
        assert_eq!(all[3].options.defines, [("BM".to_owned(), "128".to_owned())]);
        assert_eq!(all[3].options.target, Target::Sm80);
        assert_eq!(all[4].options.defines.len(), 2);
        assert!(all[4].options.disabled.contains("swizzle") && all[4].options.disabled.contains("pipeline"));
        let one = some(&["off=all,on=swizzle"]).expect("readable");
        assert!(!one[0].options.disabled.contains("swizzle") && one[0].options.disabled.contains("pipeline"));
        assert_eq!(some(&[]).expect("the base")[0].label, "sm_70 BM=32");
    }

    #[test]
    fn each_variant_is_chosen_for_each_size() {
        let sizes = |n: i64| vec![("M".to_owned(), n)];
        let all = for_sizes(some(&["BM=64/128"]).expect("readable"), &[sizes(512), sizes(4096)]);
        let labels: Vec<&str> = all.iter().map(|v| v.label.as_str()).collect();
        assert_eq!(labels, ["BM=64 for M=512", "BM=64 for M=4096", "BM=128 for M=512", "BM=128 for M=4096"]);
        assert_eq!(all[3].options.sizes, [sizes(4096)]);
        assert_eq!(for_sizes(some(&[]).expect("the base"), &[]).len(), 1);
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        for (text, said) in [
            ("BM", "variant `BM`: expected NAME=VALUE, found `BM`"),
            ("BM=", "variant `BM=`: expected NAME=VALUE, found `BM=`"),
            ("BM=1/", "variant `BM=1/`: expected NAME=VALUE, found `BM=`"),
            ("target=sm_71", "variant `target=sm_71`: no target `sm_71`; see `tilec targets`"),
            ("off=swizle", "variant `off=swizle`: no pass `swizle`"),
            ("off=barriers", "variant `off=barriers`: pass `barriers` cannot be switched off"),
            ("on=swizzle", "variant `on=swizzle`: pass `swizzle` is on already; `on=` follows an `off=`"),
            ("off=all,on=swizle", "variant `off=all,on=swizle`: no pass `swizle`"),
            ("BM=1,BM=2", "variant `BM=1,BM=2`: `BM` is there twice; `BM=A/B` is a variant for each"),
            ("BM=1/1", "the variant `BM=1` is there twice"),
            ("A=1/2/3/4/5/6/7,B=1/2/3/4/5/6/7,C=1/2/3/4/5/6/7", "more than 256 variants"),
        ] {
            assert_eq!(some(&[text]).expect_err("unreadable"), said);
        }
    }

    #[test]
    fn the_ladder_climbs_from_nothing_to_everything() {
        let optional = super::rungs().count();
        let rungs = ladder(&CompileOptions::default());
        assert_eq!(rungs.len(), optional + 1);
        assert_eq!(rungs[0].options.disabled.len(), optional);
        assert!(rungs[optional].options.disabled.is_empty());
        assert!(rungs.windows(2).all(|w| w[0].options.disabled.is_superset(&w[1].options.disabled)));
    }
}
