//! Lines of PTX that are no instruction of a statement: parameters, labels, places for the line table, and what stands around these.

use super::answer::Known;
use tilec_ir::entities::Value;
use tilec_ir::kernel::Kernel;
use tilec_ir::types::GivenStride;

/// Jumps to a label that are shown.
const SHOWN: usize = 4;

/// What such a line is for, and the line of the PTX, from 1, whose decisions are its own; `None`: it is an instruction.
pub(super) fn of_ptx(known: &Known<'_>, line: usize) -> Option<(Vec<String>, Option<usize>)> {
    let ptx = &known.shown.columns.ptx;
    let text = ptx.get(line - 1)?.trim();
    let next = || {
        let places = &known.shown.columns.ptx_places;
        let last = ptx[line..].iter().position(|l| l.trim() == "}").map_or(ptx.len(), |n| line + n);
        (line..last).find(|&i| places[i].is_some()).map(|i| i + 1)
    };
    if let Some(label) = text.strip_suffix(':') {
        return Some((label_of(ptx, label), next()));
    }
    let word = text.split_whitespace().next()?;
    let plain = |text: &str| Some((vec![text.to_owned()], None));
    match word {
        ".param" => Some((parameter(known, text), None)),
        ".loc" => {
            let mut numbers = text.split_whitespace().skip(2);
            let (line, column) = (numbers.next()?, numbers.next()?);
            let name = known.program.source.name();
            let text = format!("for the line table: instructions from here on came from {name}:{line}:{column}");
            Some((vec![text], next()))
        }
        ".version" => plain("the least version of PTX that has all instructions below"),
        ".target" => plain("the target that was compiled for (`--target`)"),
        ".address_size" => plain("addresses have 64 bits"),
        ".file" => plain("the source, which `.loc` names by this number"),
        ".visible" | ".entry" => {
            plain("the head of a kernel; its launch contract (`--emit contract`) says how it is called")
        }
        ".reg" => {
            plain("virtual registers: the assembler assigns those of the machine (`tilec why FILE TARGET register`)")
        }
        ".shared" | ".extern" => plain("shared memory of a block (`tilec xray` draws its contents)"),
        ".maxntid" | ".reqntid" => plain("threads of a block, from the kernel's schedule"),
        ".minnctapersm" => plain(
            "blocks that the assembler has to leave registers for on a multiprocessor (`min_ctas` of the schedule)",
        ),
        _ if word.starts_with("//") => {
            Some((vec!["a comment: what the instructions below compute".to_owned()], next()))
        }
        ".pragma" => plain("a hint for the assembler: `nounroll` keeps it from unrolling the loop that begins here"),
        "{" | "}" | ")" | "" => plain("a bracket"),
        _ => None,
    }
}

/// What a line of the source is for that no statement came from, and the line with which its declaration begins; `None`: there is no such line.
pub(super) fn of_source(known: &Known<'_>, line: usize) -> Option<(String, Option<usize>)> {
    let columns = &known.shown.columns;
    let text = columns.source.get(line - 1)?.trim();
    let plain = |what: &str| Some((what.to_owned(), None));
    if text.is_empty() {
        return plain("an empty line");
    }
    if text.starts_with("//") {
        return plain("a comment");
    }
    if text.chars().all(|c| "(){}<>,".contains(c)) {
        return plain("a bracket");
    }
    let head = columns.places.iter().map(|&(first, _)| first).filter(|&first| first < line).max()?;
    Some((format!("belongs to what begins in line {head}:"), Some(head)))
}

fn label_of(ptx: &[String], label: &str) -> Vec<String> {
    let jumps = |l: &&String| l.contains("bra") && l.trim_end_matches(';').split_whitespace().last() == Some(label);
    let from: Vec<String> = ptx.iter().zip(1..).filter(|(l, _)| jumps(l)).map(|(_, n)| format!("ptx:{n}")).collect();
    let more = from.len().saturating_sub(SHOWN);
    let text = match (&from[..], more) {
        ([], _) => "a label".to_owned(),
        ([one], _) => format!("a label; {one} jumps here"),
        (all, 0) => format!("a label; {} jump here", all.join(", ")),
        (all, more) => format!("a label; {} and {more} more jump here", all[..all.len() - more].join(", ")),
    };
    vec![text]
}

/// What a parameter of an entry is: `.param .u64 .ptr .global .align 16 gemm_A,`.
fn parameter(known: &Known<'_>, text: &str) -> Vec<String> {
    let symbol = text.trim_end_matches(',').split_whitespace().last().unwrap_or("");
    for kernel in &known.program.kernels {
        let Some(name) = symbol.strip_prefix(&kernel.contract.entry).and_then(|rest| rest.strip_prefix('_')) else {
            continue;
        };
        let k = &kernel.tile.kernel;
        let called = |name: &str| k.values.keys().find(|&v| k.values[v].name == name);
        let mut about = vec![match called(name) {
            Some(v) if k.tensor_ty(v).is_some() => format!("a parameter of `{}`: the address of `{name}`", k.name),
            _ => format!("a parameter of `{}`: `{name}`", k.name),
        }];
        let stride = stride_of(k, name);
        about.extend(
            stride.map(|(v, d)| format!("the stride of `{}` along dimension {d}, in elements", k.values[v].name)),
        );
        let span = called(name).or(stride.map(|(v, _)| v)).map(|v| k.values[v].span).filter(|span| !span.is_none());
        about.extend(span.map(|span| {
            let place = known.program.source.position(span.start as usize);
            format!("declared at {}:{}:{}", known.program.source.name(), place.line, place.column)
        }));
        let loads = known.shown.columns.ptx.iter().zip(1..).filter(|(l, _)| l.contains(&format!("[{symbol}]")));
        about.extend(loads.take(1).map(|(_, n)| format!("loaded at ptx:{n}")));
        return about;
    }
    vec![format!("the parameter `{symbol}`; the launch contract (`--emit contract`) says what it is")]
}

/// The tensor of which a parameter is a stride, and the dimension.
fn stride_of(k: &Kernel, name: &str) -> Option<(Value, usize)> {
    k.values.keys().find_map(|v| {
        let tensor = k.tensor_ty(v)?;
        let of =
            |d: &usize| matches!(tensor.given_stride(*d), Some(GivenStride::Leading(ld)) if k.values[ld].name == name);
        Some((v, (0..tensor.shape.len()).find(of)?))
    })
}
