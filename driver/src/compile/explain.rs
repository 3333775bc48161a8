//! Texts for people: `tilec explain WORD` and `tilec targets`.

pub mod examples;
mod glossary;
mod pages;
mod words;

use super::pipeline::compile;
use crate::console::render::{Style, human};
use examples::Example;
use std::fmt::Write as _;
use tilec_ir::atoms::Atom;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, counted};
use tilec_ir::ops::{Op, ReduceOp};
use tilec_ir::spelling;
use tilec_ir::target::Target;
use tilec_ir::types::Elem;
use tilec_passes::PASSES;
use tilec_sim::Allowance;

/// Remark kinds that are not the name of a pass, with what they say.
pub const REMARK_KINDS: &[(&str, &str)] = &[("ptx-version", "which instruction needs the `.version` that the PTX has")];

/// Stands for every optional pass where passes are switched off.
pub const ALL_PASSES: &str = "all";

/// Whether remarks of this kind exist.
pub fn is_remark_kind(kind: &str) -> bool {
    PASSES.iter().any(|p| p.name == kind) || REMARK_KINDS.iter().any(|(k, _)| *k == kind)
}

/// Every kind of remark.
pub fn remark_kinds() -> Vec<&'static str> {
    PASSES.iter().map(|p| p.name).chain(REMARK_KINDS.iter().map(|(k, _)| *k)).collect()
}

/// The names of the passes, in order.
pub fn pass_names() -> Vec<&'static str> {
    PASSES.iter().map(|p| p.name).collect()
}

/// What a pass does, in a line; empty: there is no such pass.
pub fn about_pass(pass: &str) -> &'static str {
    PASSES.iter().find(|p| p.name == pass).map_or("", |p| p.summary)
}

/// The passes that can be switched off, in order.
pub fn optional_passes() -> impl Iterator<Item = &'static str> {
    PASSES.iter().filter(|p| !p.required).map(|p| p.name)
}

/// Whether the pass can be switched off; `None`: there is no such pass.
pub fn can_disable(pass: &str) -> Option<bool> {
    PASSES.iter().find(|p| p.name == pass).map(|p| !p.required)
}

/// What a word means: a diagnostic code, a pass, a kind of remark, an operator, a reduction, a word of the language, an
/// element type, an atom, a target or a word of the glossary.
/// A word with several meanings (`schedule`, `-`) gets them all.
///
/// # Errors
/// Nothing has that name; the text says so, and names what is spelt alike.
pub fn explain(word: &str) -> Result<String, String> {
    let mut out = String::new();
    of_tool(word, &mut out);
    of_language(word, &mut out);
    of_glossary(word, &mut out);
    if out.is_empty() {
        return Err(unknown(word));
    }
    for example in examples::ALL.iter().filter(|e| e.of.eq_ignore_ascii_case(word)) {
        out.push_str(&shown(example));
    }
    for (_, why) in examples::WITHOUT.iter().filter(|(of, _)| of.eq_ignore_ascii_case(word)) {
        let _ = writeln!(out, "\nNo example: {why}.");
    }
    Ok(out)
}

/// The title of a diagnostic code and what it means; `None`: there is no such code.
pub fn meaning(code: &str) -> Option<(&'static str, &'static str)> {
    codes::ALL.iter().find(|(known, ..)| known.0 == code).map(|(_, title, text)| (*title, *text))
}

/// What a word of a program means; `None`: nothing. Clauses that are no words of their own are in the glossary.
pub fn in_source(word: &str) -> Option<String> {
    let mut out = String::new();
    of_language(word, &mut out);
    if out.is_empty() {
        of_glossary(word, &mut out);
    }
    (!out.is_empty()).then_some(out)
}

/// Another meaning.
fn append_meaning(out: &mut String, head: String, body: &str) {
    let gap = if out.is_empty() { "" } else { "\n" };
    let _ = writeln!(out, "{gap}{head}\n\n{}", body.trim());
}

fn of_glossary(word: &str, out: &mut String) {
    for (names, text) in glossary::of(word) {
        append_meaning(out, format!("{}: a word of the glossary", names.join(", ")), &text);
    }
}

/// A word as one of the tool: a code, a pass, a kind of remark, an error that may be allowed.
fn of_tool(word: &str, out: &mut String) {
    for (code, title, text) in codes::ALL.iter().filter(|(c, ..)| c.0.eq_ignore_ascii_case(word)) {
        append_meaning(out, format!("{code}: {title}"), text);
    }
    for pass in PASSES.iter().filter(|p| p.name == word) {
        let off = if pass.required {
            "It always runs".to_owned()
        } else {
            format!("`--disable-pass {word}` switches it off")
        };
        let mut body = format!(
            "This pass {}.\n{off}; `--print-after {word}` shows the program after it; `--remarks` shows what it did, and \
             `--deny {word}` makes those remarks errors.",
            pass.summary
        );
        for (title, text) in pages::of(word) {
            let _ = write!(body, "\n\n{title}\n\n{text}");
        }
        append_meaning(out, format!("{word}: a pass"), &body);
    }
    for (kind, text) in REMARK_KINDS.iter().filter(|(k, _)| *k == word) {
        append_meaning(out, format!("{kind}: a kind of remark"), &format!("Says {text}."));
    }
    for allowed in Allowance::ALL.iter().filter(|a| a.name() == word) {
        let body = format!(
            "{}\n\n`tilec run .. --device sim --allow {word}` lets it pass and lists where. docs/launch-contract.md has the hardware on which it was \
             seen to do no harm.",
            allowed.doc()
        );
        append_meaning(out, format!("{word}: an error of the simulator that may be allowed"), &body);
    }
}

/// A word as one of a program: an operator, a reduction, a word of the language, a type, an instruction, a target.
fn of_language(word: &str, out: &mut String) {
    for op in Op::ALL.iter().filter(|op| op.token() == word) {
        append_meaning(out, format!("{word}: an operator on {}", operands(op.arity())), op.doc());
    }
    for op in ReduceOp::ALL.iter().filter(|op| op.token() == word) {
        append_meaning(
            out,
            format!("{}(x, axis): a reduction", op.token()),
            &format!(
                "{}\n\nIt combines the elements of a tile along an axis, which stays with extent 1.",
                op.doc().trim()
            ),
        );
    }
    for op in ReduceOp::ALL.iter().filter(|op| op.scan_token() == Some(word)) {
        append_meaning(
            out,
            format!("{word}(x, axis): a scan"),
            &format!(
                "At each position along an axis, `{}` of the elements up to and including it; with `exclusive` after the axis, of those in front of it.",
                op.token()
            ),
        );
    }
    for (_, form, text) in words::ALL.iter().filter(|(w, ..)| *w == word) {
        append_meaning(out, format!("{word}: a word of the language"), &format!("{text}\n\n    {form}"));
    }
    if let Some(elem) = Elem::from_name(word) {
        append_meaning(out, format!("{word}: an element type"), &words::element(elem));
    }
    for atom in Atom::all().filter(|a| a.row().name == word) {
        let row = atom.row();
        let types: Vec<String> =
            row.types.iter().map(|t| format!("{} inputs, {} accumulator", t.inputs, t.acc.name())).collect();
        let body = format!("{}\nTypes: {}.", words::instruction(row), types.join("; "));
        append_meaning(out, format!("{word}: an instruction for `mma`"), &body);
    }
    if let Some(target) = Target::from_name(word) {
        append_meaning(out, format!("{word}: a target"), target.doc());
    }
}

/// An example, with what the compiler says of it.
fn shown(example: &Example) -> String {
    let indented =
        |text: &str| -> String { text.lines().map(|l| format!("    {l}").trim_end().to_owned() + "\n").collect() };
    let command = format!("{} tilec {}", example.variable, example.words("k").join(" "));
    let command = command.trim_start();
    let mut out = match example.made {
        Some(made) => format!("\nFor example, `{command}` after\n\n    {made} > {}\n", example.files("k").0),
        None => format!("\nFor example, `{command}` with\n\n{}", indented(example.program)),
    };
    if let Some(launch) = example.launch {
        let _ = write!(out, "\nlaunched by `{}`:\n\n{}", example.files("k").1, indented(launch));
    }
    if let Some(options) = example.options() {
        let (source, list) = match compile(example.program, &options) {
            Ok(program) => (program.source, program.diagnostics),
            Err(d) => (d.source, d.list),
        };
        let own: Vec<Diagnostic> =
            list.into_iter().filter(|d| d.code.0 == example.of || d.kind == Some(example.of)).take(1).collect();
        let style = Style { remarks: true, ..Style::default() };
        let said = human(&source, &own, 0, style);
        let _ = write!(out, "\nsays\n\n{}", indented(said.trim_end()));
    }
    out
}

/// Every word that [`explain`] knows, a line each with what it is, by kind.
pub fn index() -> String {
    let mut out = String::new();
    let mut list = |title: &str, rows: Vec<(&str, &str)>| {
        let gap = if out.is_empty() { "" } else { "\n" };
        let _ = writeln!(out, "{gap}{title}");
        let width = rows.iter().map(|(word, _)| word.chars().count()).max().unwrap_or(0);
        for (word, what) in rows {
            let _ = writeln!(out, "{}", format!("  {word:width$}  {what}").trim_end());
        }
    };
    let first = |text: &'static str| text.trim().lines().next().unwrap_or("");
    let mut diagnostics: Vec<(&str, &str)> = codes::ALL.iter().map(|(code, title, _)| (code.0, *title)).collect();
    // By number; a warning follows the error of its number.
    diagnostics.sort_by_key(|(code, _)| (code.get(1..), *code));
    list("diagnostics", diagnostics);
    list("passes, and the remarks that they make", PASSES.iter().map(|p| (p.name, p.summary)).collect());
    list("other remarks", REMARK_KINDS.to_vec());
    list("operators", Op::ALL.iter().map(|op| (op.token(), first(op.doc()))).collect());
    list("reductions", ReduceOp::ALL.iter().map(|op| (op.token(), first(op.doc()))).collect());
    list("scans", ReduceOp::ALL.iter().filter_map(|op| Some((op.scan_token()?, ""))).collect());
    list("words of the language", words::ALL.iter().map(|(word, form, _)| (*word, *form)).collect());
    list("element types", Elem::ALL.iter().map(|e| (e.name(), "")).collect());
    list("instructions for `mma`", Atom::all().map(|a| (a.row().name, a.row().first.name())).collect());
    let glossary: Vec<(String, String)> =
        glossary::all().into_iter().map(|(names, text)| (names[0].replace(' ', "-"), text)).collect();
    list("words of the glossary", glossary.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect());
    list("targets", Target::ALL.iter().map(|t| (t.name(), t.doc().trim())).collect());
    out
}

fn operands(n: usize) -> String {
    counted(n, "operand")
}

fn unknown(word: &str) -> String {
    let words = codes::ALL
        .iter()
        .map(|(code, ..)| code.0)
        .chain(remark_kinds())
        .chain(Allowance::ALL.iter().map(|a| a.name()))
        .chain(Op::ALL.iter().map(|op| op.token()))
        .chain(ReduceOp::ALL.iter().map(|op| op.token()))
        .chain(ReduceOp::ALL.iter().filter_map(|op| op.scan_token()))
        .chain(words::ALL.iter().map(|(word, ..)| *word))
        .chain(Elem::ALL.iter().map(|e| e.name()))
        .chain(Atom::all().map(|a| a.row().name))
        .chain(Target::ALL.iter().map(|t| t.name()));
    let word: String = word.chars().take(64).collect();
    let glossary: Vec<String> = glossary::all().into_iter().flat_map(|(names, _)| names).collect();
    match nearest(&word, words.chain(glossary.iter().map(String::as_str))) {
        Some(near) => format!("nothing is called `{word}`; did you mean `{near}`?\n"),
        None => format!(
            "nothing is called `{word}`; there are diagnostic codes, passes, remark kinds, operators, words of the language and of the glossary\n"
        ),
    }
}

/// The candidate that `word` is a misspelling of, if there is one.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    spelling::nearest(word, candidates, |candidate| candidate)
}

/// The table of targets.
pub fn targets() -> String {
    let mut out = String::new();
    let _ =
        writeln!(out, "{:<8} {:>4} {:>10} {:>10} {:>6}  what it is", "target", "PTX", "smem/block", "smem/SM", "warps");
    for t in Target::ALL {
        let (major, minor) = t.min_ptx();
        let _ = writeln!(
            out,
            "{:<8} {:>4} {:>6} KiB {:>6} KiB {:>6}  {}",
            t.name(),
            format!("{major}.{minor}"),
            t.smem_per_block() / 1024,
            t.smem_per_sm() / 1024,
            t.warps_per_sm(),
            t.doc().trim()
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that people know of profilers.
    #[test]
    fn words_of_profilers_are_explained() {
        for word in [
            "coalesced",
            "uncoalesced",
            "sector",
            "bank conflict",
            "predicted",
            "measured",
            "latency",
            "throughput",
            "occupancy",
            "roofline",
            "spill",
            "wave",
            "tail",
            "stall",
            "wavefront",
            "resident",
            "divergence",
            "local memory",
            "L2",
            "SM",
            "register pressure",
            "arithmetic intensity",
            "memory bound",
            "warp scheduler",
        ] {
            assert!(explain(word).is_ok(), "{word}");
        }
    }

    #[test]
    fn instructions_say_who_computes_how_much() {
        for (name, said) in [
            ("m16n8k16", "A warp computes 16 x 8 x 16 with it on tensor cores, from sm_80 on."),
            (
                "m64k16",
                "A warpgroup, four warps, computes 64 x N x 16 with it (`wgmma`), from sm_90a on. N is a multiple of 8 up to 256.",
            ),
            ("m64k32_i8", "N is a multiple of 8 up to 256, multiples of 16 above 32."),
            (
                "dp4a",
                "Scalar code of a warp: 4 x 8 sums, of 4 products at a time, from sm_70 on. It uses no tensor cores.",
            ),
        ] {
            let text = explain(name).expect("an instruction");
            assert!(text.contains(said), "{text}");
        }
    }

    #[test]
    fn everything_with_a_name_is_explained() {
        for (i, (code, title, _)) in codes::ALL.iter().enumerate() {
            assert!(codes::ALL[..i].iter().all(|(earlier, ..)| earlier != code), "{} means two things", code.0);
            assert!(explain(code.0).expect("a code").contains(title));
            assert!(explain(&code.0.to_lowercase()).is_ok());
        }
        let index = index();
        assert!(index.lines().count() > codes::ALL.len() && index.lines().all(|l| l.trim_end() == l));
        for line in index.lines().filter(|l| l.starts_with("  ")) {
            let word = line.split_whitespace().next().expect("a word");
            assert!(explain(word).is_ok(), "{word}");
        }
        for word in remark_kinds().into_iter().chain(Op::ALL.iter().map(|op| op.token())) {
            assert!(explain(word).is_ok(), "{word}");
        }
        for word in tilec_ir::parser::reserved_words() {
            assert!(explain(word).is_ok(), "`{word}` is a word of the language");
        }
        let minus = explain("-").expect("an operator");
        assert!(minus.contains("Difference") && minus.contains("Negation"), "{minus}");
    }

    #[test]
    fn words_of_hardware_are_those_of_the_glossary() {
        for word in [
            "wgmma",
            "bank",
            "banks",
            "sectors",
            "mbarrier",
            "swizzle",
            "occupancy",
            "bank-conflicts",
            "register-tile",
            "TMA",
            "tma",
        ] {
            assert!(explain(word).is_ok_and(|text| text.contains("a word of the glossary")), "{word}");
        }
        assert!(!explain("swizzle").expect("a pass, too").contains("]("), "links are for pages");
        // Brackets in code are no links.
        for (names, text) in glossary::all() {
            let said = explain(&names[0]).expect("a word of the glossary");
            assert!(said.contains(&text) && !said.contains("]("), "{said}");
        }
        assert!(explain("window").is_ok_and(
            |text| text.contains("`A[i * 64.., k..]`") && text.contains("Windows: docs/language.md#windows")
        ));
        assert!(in_source("schedule").is_some_and(|text| !text.contains("a pass")), "a program means the clause");
    }

    #[test]
    fn a_near_miss_is_named() {
        assert!(explain("vectorise").expect_err("misspelt").contains("`vectorize`"));
        assert!(explain("E9999").is_err());
        assert!(explain("").is_err());
        assert!(explain(&"x".repeat(1 << 16)).expect_err("absurd").len() < 300);
    }

    #[test]
    fn every_target_has_a_row() {
        assert_eq!(targets().lines().count(), Target::ALL.len() + 1);
    }
}
