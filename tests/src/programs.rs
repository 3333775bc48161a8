//! The programs outside `tests/files`: examples, sketches, and snippets of the documents.

use crate::fusions::Fusion;
use crate::gathers::Gathers;
use crate::images::Images;
use crate::inference::Inference;
use crate::kinds::{assembled, text};
use crate::linear::Linear;
use crate::oracle::{self, Share, Variants};
use crate::problem::Run;
use crate::reference::Reference;
use crate::rows::Rows;
use crate::test_file;
use std::fs;
use std::path::Path;
use tilec::{CompileOptions, Target};

/// The reference of an example, by the word its name starts with.
const REFERENCES: &[(&str, Reference)] = &[
    ("swiglu", Reference::Fusion(Fusion::Swiglu)),
    ("back_to_back", Reference::Fusion(Fusion::BackToBack)),
    ("gemm_softmax", Reference::Fusion(Fusion::Softmax)),
    ("gemm_rmsnorm", Reference::Fusion(Fusion::RmsNorm)),
    ("lora", Reference::Fusion(Fusion::Lora)),
    ("gemm_w4a16", Reference::Fusion(Fusion::Weights)),
    ("gemm_w8a16", Reference::Fusion(Fusion::Weights)),
    ("gemm_mxfp4", Reference::Fusion(Fusion::Weights)),
    ("gemm_fp8_scaled", Reference::Fusion(Fusion::Scaled)),
    ("gemm_int8_requant", Reference::Fusion(Fusion::Requantised)),
    ("gemm_fused", Reference::Fused),
    ("gemm_gathered", Reference::Gathers(Gathers::Product)),
    ("embedding_backward", Reference::Gathers(Gathers::EmbeddingBackward)),
    ("work_queue", Reference::Gathers(Gathers::WorkQueue)),
    ("embedding", Reference::Gathers(Gathers::Embedding)),
    ("gemm_complex", Reference::Linear(Linear::Complex)),
    ("syrk", Reference::Linear(Linear::Symmetric)),
    ("trmm", Reference::Linear(Linear::Triangular)),
    ("gemm", Reference::Gemm),
    ("conv2d_weight_grad", Reference::Images(Images::WeightGradient)),
    ("conv2d_data_grad", Reference::Images(Images::DataGradient)),
    ("conv2d_data_grad_steps", Reference::Images(Images::DataGradient)),
    ("conv2d", Reference::Images(Images::Pixels)),
    ("conv3d", Reference::Images(Images::Pixels)),
    ("depthwise", Reference::Images(Images::Depthwise)),
    ("stencil3d", Reference::Images(Images::Planes)),
    ("max_pool", Reference::Images(Images::MaxPool)),
    ("stencil", Reference::Images(Images::Stencil)),
    ("conv", Reference::Conv),
    ("softmax_backward", Reference::Rows(Rows::SoftmaxBackward)),
    ("softmax", Reference::Rows(Rows::Softmax)),
    ("cross_entropy_backward", Reference::Rows(Rows::CrossEntropyBackward)),
    ("histogram", Reference::Gathers(Gathers::Histogram)),
    ("cross_entropy", Reference::Rows(Rows::CrossEntropy)),
    ("argmax", Reference::Rows(Rows::ArgMax)),
    ("topk", Reference::Rows(Rows::TopK)),
    ("cumsum", Reference::Rows(Rows::CumSum)),
    ("log_softmax", Reference::Rows(Rows::LogSoftmax)),
    ("welford", Reference::Rows(Rows::Welford)),
    ("linear_scan", Reference::Rows(Rows::LinearScan)),
    ("sort", Reference::Rows(Rows::Sort)),
    ("rms_norm_backward", Reference::Rows(Rows::RmsNormBackward)),
    ("layer_norm_backward", Reference::Rows(Rows::LayerNormBackward)),
    ("rms_norm", Reference::Rows(Rows::RmsNorm)),
    ("layer_norm", Reference::Rows(Rows::LayerNorm)),
    ("flash_attention", Reference::Attention),
    ("attention_backward", Reference::AttentionBackward),
    ("attention_varlen", Reference::Inference(Inference::Varlen)),
    ("attention", Reference::Attention),
    ("moe_grouped", Reference::Inference(Inference::Grouped)),
    ("moe_masked", Reference::Inference(Inference::Masked)),
    ("paged_decode", Reference::Inference(Inference::Paged)),
    ("mla_decode", Reference::Inference(Inference::Latent)),
    ("copy", Reference::Copy),
    ("transpose", Reference::Transpose),
];

/// What examples with approximate functions, or products that are added in one rounding, may differ by from their references, by the word their name starts with.
const TOLERANCES: &[(&str, f64)] = &[
    ("adam8", 1e-2),
    ("adam", 1e-6),
    ("stencil", 1e-5),
    ("softmax", 1e-6),
    ("cross_entropy", 1e-5),
    ("log_softmax", 1e-5),
    ("welford", 1e-5),
    ("linear_scan", 1e-5),
    ("rms_norm_backward", 1e-4),
    ("layer_norm_backward", 1e-4),
    ("rms_norm", 1e-6),
    ("layer_norm", 1e-5),
    ("flash_attention", 4e-3),
    ("attention_fp8", 2e-2),
    ("attention_backward", 0.5),
    ("attention", 4e-3),
    ("paged_attention", 4e-3),
    ("paged_decode", 4e-3),
    ("mla_decode", 4e-3),
    ("swiglu", 1e-3),
    ("gemm_softmax", 1e-3),
    ("gemm_rmsnorm", 1e-3),
    ("gemm_w4a16", 1e-3),
    ("gemm_w8a16", 1e-3),
    ("gemm_mxfp4", 1e-3),
    ("gemm_fp8_scaled", 1e-2),
];

/// Examples that are for other targets than the first.
const TARGETS: &[(&str, Target)] =
    &[("flash_attention", Target::Sm90a), ("attention_fp8", Target::Sm90a), ("gemm_fp8_scaled", Target::Sm90a)];

/// Ragged sizes for every example whose preconditions allow them, besides those of its head comment.
const SIZES: &[&str] = &[
    "Z=2 M=1 N=1 K=1 S=1 alpha=3 beta=0",
    "Z=3 M=17 N=5 K=9 S=3 alpha=2 beta=1 seed=3",
    "Z=3 M=40 N=72 K=24 S=5 alpha=1 beta=0 seed=4",
    "Z=2 M=40 N=72 K=56 S=6 alpha=-1 beta=2 seed=5",
];

/// A test: its name and what it does.
pub type Test = (String, Box<dyn FnOnce() -> Result<(), String> + Send>);

/// One test for each example, sketch and snippet.
///
/// # Errors
/// A directory cannot be read.
pub fn tests() -> Result<Vec<Test>, String> {
    let root = crate::root();
    let mut tests: Vec<Test> = Vec::new();
    let examples = test_file::walk(&root.join("examples"))?;
    // `scripts/candle_example.sh` tests the kernels of that crate, for its targets and with its settings.
    for (path, name) in examples.into_iter().filter(|(_, name)| !name.starts_with("candle/")) {
        let name = format!("examples/{name}");
        tests.push((name.clone(), Box::new(move || example(&name, &read(&path)?))));
    }
    for (path, name) in test_file::walk(&root.join("docs"))? {
        let text = move || text::round_trip(&read(&path)?, oracle::parse).map(|_| ());
        tests.push((format!("docs/{name}"), Box::new(text)));
    }
    for document in documents(&root)? {
        for (line, snippet) in snippets(&read(&root.join(&document))?) {
            let check = move || text::round_trip(&snippet, oracle::parse).map(|_| ());
            tests.push((format!("{document}:{line}"), Box::new(check)));
        }
    }
    Ok(tests)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

/// Warnings of what is a mistake for some sizes.
const MISTAKES: [&str; 4] = ["W0412", "W0413", "W0414", "W0415"];

/// No example has a mistake that the compiler warns of.
fn free_of_mistakes(text: &str, options: &CompileOptions) -> Result<(), String> {
    let program = tilec::compile(text, options).map_err(|e| e.to_string())?;
    let warned = program.diagnostics.iter().find(|d| MISTAKES.contains(&d.code.0));
    warned.map_or(Ok(()), |d| Err(format!("it has a warning: {}", d.message)))
}

/// An example compiles, assembles, and means at the end, with each pass off and with all off, what it means as written.
fn example(name: &str, text: &str) -> Result<(), String> {
    text::round_trip(text, oracle::parse)?;
    let stem = name.trim_start_matches("examples/");
    let file = stem.rsplit('/').next().unwrap_or(stem);
    let target = TARGETS.iter().find(|(start, _)| stem.starts_with(start)).map_or(Target::Sm70, |&(_, t)| t);
    let options = CompileOptions { source_name: name.to_owned(), target, verify_each: true, ..Default::default() };
    free_of_mistakes(text, &options)?;
    let variants = Variants::new(name, text, &options, Share::ALL, true)?;
    let reference = REFERENCES.iter().find(|(start, _)| stem.starts_with(start)).map(|&(_, r)| r);
    let mut runs = 0;
    for line in head_runs(text).iter().map(String::as_str).chain(SIZES.iter().copied()) {
        let mut run = Run::parse(line)?;
        run.values.retain(|name, _| variants.has(name));
        run.tolerance = TOLERANCES.iter().find(|(start, _)| file.starts_with(start)).map_or(0.0, |&(_, t)| t);
        if variants.permits(&run) {
            variants.agree(0, &run, reference).map_err(|e| format!("{line}: {e}"))?;
            runs += 1;
        }
    }
    if runs == 0 {
        return Err("its preconditions allow none of the sizes it is tested with".to_owned());
    }
    let done = tilec::compile(text, &options).map_err(|e| e.to_string())?;
    assembled::lint(name, &done.ptx, options.target).map(|_| ())
}

/// The sizes and scalars of the `tilec run` lines of a head comment.
pub(crate) fn head_runs(text: &str) -> Vec<String> {
    let comments = text.lines().take_while(|l| l.starts_with("//")).map(|l| l.trim_start_matches('/').trim());
    let runs = comments.filter_map(|l| l.strip_prefix("tilec run "));
    let numbers = |l: &str| {
        let words = l.split_whitespace().filter(|w| w.split_once('=').is_some_and(|(_, v)| v.parse::<f64>().is_ok()));
        words.collect::<Vec<_>>().join(" ")
    };
    runs.map(numbers).filter(|l| !l.is_empty()).collect()
}

/// The documents, from the root.
fn documents(root: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(root.join("docs")).map_err(|e| format!("cannot read docs: {e}"))?;
    let names = entries.filter_map(|e| Some(format!("docs/{}", e.ok()?.file_name().to_string_lossy())));
    let mut all: Vec<String> = names.filter(|n| n.ends_with(".md")).collect();
    if root.join("README.md").exists() {
        all.push("README.md".to_owned());
    }
    all.sort();
    Ok(all)
}

/// The fenced blocks of language `tile`, with the line of their first line.
pub(crate) fn snippets(document: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in document.lines().enumerate() {
        match (&mut open, line.trim_end()) {
            (None, "```tile") => open = Some((number + 2, String::new())),
            (Some(_), "```") => found.extend(open.take()),
            (Some((_, text)), line) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, _) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippets_are_the_tile_blocks() {
        let document = "text\n```tile\nkernel a\n\n```\n```\nnot this\n```\n```text\nnor this\n```\n```tile\nb\n```\n";
        assert_eq!(snippets(document), [(3, "kernel a\n\n".to_owned()), (13, "b\n".to_owned())]);
    }

    #[test]
    fn head_comments_give_sizes() {
        let text = "// x\n//     tilec run examples/x.tile M=5 N=4 -D BM=64 --check\nkernel\n// tilec run x M=1\n";
        // A compile-time parameter is a number too; no run reads it.
        assert_eq!(head_runs(text), ["M=5 N=4 BM=64"]);
    }
}
