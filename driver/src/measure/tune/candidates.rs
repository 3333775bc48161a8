//! The candidates: values for every `auto` parameter, written into the source and compiled.

use super::rewrite::{Edit, rewrite};
use crate::compile::options::CompileOptions;
use crate::compile::stages;
use crate::compile::{Compiled, Diagnostics, after_file_passes};
use crate::console::render::SourceFile;
use crate::contract::hash::hash;
use crate::contract::number::Args;
use crate::measure::bench::programs::{self, Built};
use std::borrow::Cow;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Sink};
use tilec_ir::entities::Value;
use tilec_ir::kernel::{ConstValue, Kernel, Module, ValueDef};
use tilec_passes::choose::{self, Candidates};

/// Candidates predicted to be slower than the fastest by this factor are dropped.
const FAR: f64 = 4.0;
/// Clusters that a schedule may have.
const CLUSTERS: [[i64; 2]; 3] = [[1, 1], [2, 1], [1, 2]];

/// Blocks of a cluster that may share a tile along the reduction.
const SPLIT: [i64; 2] = [2, 4];

/// Values for the parameters of a kernel that are `auto`.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Setting {
    /// The kernel.
    pub(super) kernel: String,
    /// Parameters by name.
    pub(super) values: Vec<(String, i64)>,
    /// Blocks of a cluster, where the schedule is to say so.
    pub(super) cluster: Option<[i64; 2]>,
    /// Whether TMA stores the results, where the schedule is to say so.
    pub(super) stage_stores: Option<bool>,
    /// Whether blocks share tiles along the reduction, where the schedule is to say so.
    pub(super) stream_k: Option<bool>,
    /// Blocks of a cluster that share a tile along the reduction, where the schedule is to say so.
    pub(super) split_k: Option<i64>,
}

impl Setting {
    /// The schedule items besides the values.
    fn items(&self) -> Vec<String> {
        let cluster = self.cluster.map(|[rows, cols]| format!("cluster ({rows}, {cols})"));
        let stores = self.stage_stores.map(|staged| format!("stage_stores {}", u8::from(staged)));
        let shared = self.stream_k.map(|shared| format!("stream_k {}", u8::from(shared)));
        let split = self.split_k.map(|blocks| format!("split_k {blocks}"));
        [stores, shared, split, cluster].into_iter().flatten().collect()
    }
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let values: Vec<String> = self.values.iter().map(|(name, x)| format!("{name}={x}")).collect();
        write!(f, "{}", values.join(" "))?;
        self.items().iter().try_for_each(|item| write!(f, " {item}"))
    }
}

/// A schedule for each kernel of the program that has something to choose.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Candidate {
    /// Kernel by kernel.
    pub(super) settings: Vec<Setting>,
    /// Seconds that all of them are predicted to take.
    pub(super) predicted: f64,
}

impl std::fmt::Display for Candidate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, setting) in self.settings.iter().enumerate() {
            let kernel = if self.settings.len() > 1 { format!("{}: ", setting.kernel) } else { String::new() };
            write!(f, "{}{kernel}{setting}", if i > 0 { "; " } else { "" })?;
        }
        Ok(())
    }
}

/// A candidate that compiles.
pub(super) struct CompiledCandidate {
    /// The source with its values.
    pub(super) text: String,
    pub(super) built: Built,
    /// The hash of the code and of how it is launched.
    pub(super) code: String,
}

impl CompiledCandidate {
    fn new(text: String, built: Built) -> CompiledCandidate {
        let launches = serde_json::to_string(&built.program.launches).unwrap_or_default();
        let code = hash(&[&code_only(&built.compiled.ptx), &launches]);
        CompiledCandidate { text, built, code }
    }
}

/// PTX without comments and source lines.
pub(super) fn code_only(ptx: &str) -> String {
    let code = ptx.lines().map(|line| line.split("//").next().unwrap_or_default().trim());
    let kept = code.filter(|line| !line.is_empty() && !line.starts_with(".loc") && !line.starts_with(".file"));
    kept.flat_map(|line| [line, "\n"]).collect()
}

/// The candidates for one problem.
pub(super) struct Space<'a> {
    source: Cow<'a, str>,
    module: Module,
    /// Options for compiling candidates, whose text contains definitions and choices for sizes.
    plain: CompileOptions,
    /// Options for compiling the source itself for the problem.
    whole: CompileOptions,
    kernel: Option<&'a str>,
    /// The `-D` definitions of each kernel.
    given: Vec<Edit>,
    /// The candidates of each kernel.
    kernels: Vec<(String, Candidates)>,
    /// In the order of the prediction; the model's own choice first.
    pub(super) list: Vec<Candidate>,
    /// The compiled candidates, as far as they were needed.
    made: Vec<Option<Result<CompiledCandidate, String>>>,
}

impl<'a> Space<'a> {
    /// All candidates for a problem; the first is compiled.
    pub(super) fn new(
        source: &'a str,
        options: &CompileOptions,
        kernel: Option<&'a str>,
        args: &Args,
    ) -> Result<Space<'a>, Diagnostics> {
        let file = SourceFile::new(&options.source_name, source);
        let fail = |list: Vec<Diagnostic>| Diagnostics { source: file.clone(), errors: list.len(), list };
        // Errors of the program are reported for its own text.
        let (plain, _) = programs::build(source, options, kernel)?;
        let names = programs::sizes_of(&plain.compiled);
        let sizes = vec![programs::sizes_in(args, &names)];
        let whole = CompileOptions { sizes, ..options.clone() };
        // Kernels that the compiler itself puts in front are kernels of what is tuned.
        let source = after_file_passes(source, &whole)?.map_or(Cow::Borrowed(source), Cow::Owned);
        let (own, chosen) = programs::build(&source, &whole, kernel)?;
        let mut sink = Sink::new();
        let module = stages::parse(&source, &mut sink).map_err(|_| fail(sink.into_diagnostics()))?;
        let mut kernels = Vec::new();
        for (index, k) in module.kernels.iter().enumerate().filter(|(_, k)| chosen.iter().any(|c| c.kernel == k.name)) {
            let mut pass_options = whole.pass_options();
            let has = |name: &str| k.const_params.iter().any(|&p| k.values[p].name == name);
            pass_options.defines = options.defines.iter().filter(|(name, _)| has(name)).cloned().collect();
            pass_options.sizes = whole.sizes.concat();
            pass_options.sizes.retain(|(name, _)| k.sizes.iter().any(|&v| k.values[v].name == *name));
            let mut sink = Sink::new();
            match choose::candidates(&module.kernels[index], &pass_options, FAR, &mut sink) {
                Ok(Some(found)) => kernels.push((k.name.clone(), found)),
                Ok(None) => {}
                Err(_) => return Err(fail(sink.into_diagnostics())),
            }
        }
        let list = in_order(&kernels);
        if list.is_empty() {
            return Err(fail(vec![nothing_to_tune(&module, &options.defines, &own.program.name)]));
        }
        let given = given(&own.compiled, options, &kernels);
        let plain = CompileOptions { defines: Vec::new(), sizes: Vec::new(), ..options.clone() };
        let made = list.iter().map(|_| None).collect();
        let mut space = Space { source, module, plain, whole, kernel, given, kernels, list, made };
        // The first candidate is the program that is compiled for these sizes.
        let own = CompiledCandidate::new(String::new(), own);
        let first = space.like(0, &own).map_err(|why| {
            fail(vec![
                Diagnostic::error(
                    codes::NOTHING_TO_TUNE,
                    Default::default(),
                    format!("the model's own choice cannot be written down: {why}"),
                )
                .with_note("`tilec bench --variant NAME=A/B` measures values that you name"),
            ])
        })?;
        space.made[0] = Some(Ok(first));
        Ok(space)
    }

    /// The source with the values of a candidate.
    fn text(&self, candidate: &Candidate) -> String {
        let mut edits = self.given.clone();
        for setting in &candidate.settings {
            let Some(edit) = edits.iter_mut().find(|e| e.kernel == setting.kernel) else { continue };
            edit.values.extend(setting.values.iter().map(|(name, x)| (name.clone(), x.to_string())));
            edit.items.extend(setting.items());
        }
        rewrite(&self.source, &self.module, &edits)
    }

    fn compile(&self, candidate: &Candidate, options: &CompileOptions) -> Result<CompiledCandidate, String> {
        let text = self.text(candidate);
        match programs::build(&text, options, self.kernel) {
            Ok((built, _)) => Ok(CompiledCandidate::new(text, built)),
            Err(d) => {
                let first = d.list.iter().find(|d| d.severity == tilec_ir::diag::Severity::Error);
                Err(first.map_or_else(|| "it does not compile".to_owned(), |d| format!("[{}] {}", d.code, d.message)))
            }
        }
    }

    /// Compiles a candidate so that its code equals that of `model`. Clusters, the storing warps, and what blocks share
    /// depend on the sizes unless the schedule gives them.
    fn like(&mut self, index: usize, model: &CompiledCandidate) -> Result<CompiledCandidate, String> {
        let made = self.compile(&self.list[index], &self.plain)?;
        if made.code == model.code {
            return Ok(made);
        }
        let clusters = || [None].into_iter().chain(CLUSTERS.map(Some));
        let stores = || [None, Some(false), Some(true)].into_iter();
        let ways = || stores().flat_map(|s| clusters().map(move |c| (s, c)));
        let shared = [(None, None), (Some(true), None), (None, Some(SPLIT[0]))];
        let all = shared.into_iter().flat_map(|shared| ways().map(move |way| (shared, way)));
        for ((stream_k, split_k), (stage_stores, cluster)) in all.skip(1) {
            let mut candidate = self.list[index].clone();
            for s in &mut candidate.settings {
                (s.stage_stores, s.stream_k, s.split_k, s.cluster) = (stage_stores, stream_k, split_k, cluster);
            }
            match self.compile(&candidate, &self.plain) {
                Ok(made) if made.code == model.code => {
                    self.list[index] = candidate;
                    return Ok(made);
                }
                _ => {}
            }
        }
        Err("no text with these values compiles to the same code".to_owned())
    }

    /// A candidate, compiled.
    pub(super) fn compile_candidate(&mut self, index: usize) -> Result<&CompiledCandidate, &str> {
        if self.made[index].is_none() {
            let explicit = self.list[index].settings.iter().any(|s| !s.items().is_empty());
            let made = if explicit || !self.plain.target.has_tensor_copies() {
                self.compile(&self.list[index], &self.plain)
            } else {
                let for_sizes = CompileOptions { defines: Vec::new(), ..self.whole.clone() };
                self.compile(&self.list[index], &for_sizes).and_then(|model| self.like(index, &model))
            };
            self.made[index] = Some(made);
        }
        match &self.made[index] {
            Some(Ok(made)) => Ok(made),
            Some(Err(why)) => Err(why),
            None => Err("it was not compiled"),
        }
    }

    /// Candidates that have other stages, another rasterisation, other clusters or stores; new ones are appended.
    pub(super) fn variations(&mut self, of: usize) -> Vec<usize> {
        let base = self.list[of].clone();
        let mut all = Vec::new();
        for (place, setting) in base.settings.iter().enumerate() {
            let vary = |change: &mut dyn FnMut(&mut Setting)| {
                let mut candidate = base.clone();
                change(&mut candidate.settings[place]);
                candidate
            };
            let further = self.kernels.iter().find(|(name, _)| *name == setting.kernel).map(|(_, c)| c.further.clone());
            for (name, values) in further.unwrap_or_default() {
                let now = setting.values.iter().find(|(n, _)| *n == name).map_or(0, |(_, x)| *x);
                for x in values.into_iter().filter(|x| *x != now) {
                    all.push(vary(&mut |s| s.values.iter_mut().filter(|(n, _)| *n == name).for_each(|v| v.1 = x)));
                }
            }
            if self.plain.target.has_tensor_copies() {
                all.extend(CLUSTERS.into_iter().map(|c| vary(&mut |s| s.cluster = Some(c))));
                all.extend([false, true].into_iter().map(|staged| vary(&mut |s| s.stage_stores = Some(staged))));
                all.extend([false, true].into_iter().map(|shared| vary(&mut |s| s.stream_k = Some(shared))));
                all.extend(SPLIT.into_iter().map(|blocks| vary(&mut |s| s.split_k = Some(blocks))));
            }
        }
        all.into_iter().filter_map(|candidate| self.place(candidate)).collect()
    }

    /// The index of a candidate, which is added if it is new, compiles, and differs from all others.
    fn place(&mut self, candidate: Candidate) -> Option<usize> {
        if let Some(known) = self.list.iter().position(|c| c.settings == candidate.settings) {
            return Some(known);
        }
        let made = self.compile(&candidate, &self.plain).ok()?;
        let same =
            |other: &Option<Result<CompiledCandidate, String>>| matches!(other, Some(Ok(m)) if m.code == made.code);
        if let Some(known) = self.made.iter().position(same) {
            return Some(known);
        }
        self.list.push(candidate);
        self.made.push(Some(Ok(made)));
        Some(self.list.len() - 1)
    }

    /// The sizes that are chosen for.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> &crate::compile::options::Sizes {
        &self.whole.sizes[0]
    }
}

/// The definitions of the command line for each kernel, as they are written in a source; of kernels that are not tuned also what is
/// chosen for them.
fn given(program: &Compiled, options: &CompileOptions, tuned: &[(String, Candidates)]) -> Vec<Edit> {
    let one = |k: &crate::compile::CompiledKernel| {
        let defined = |name: &String| options.defines.iter().any(|(n, _)| n == name);
        let parameters = k.tile.parameters.iter().filter(|(name, _)| defined(name));
        let mut values: Vec<_> = parameters.filter_map(|(name, value)| Some((name.clone(), value.text()?))).collect();
        if tuned.iter().all(|(name, _)| *name != k.contract.entry) {
            let chosen = k.tile.choice.iter().flat_map(|c| &c.values);
            values.extend(chosen.map(|(name, x)| (name.clone(), x.to_string())));
        }
        // Decisions for these sizes are stored.
        let tile = &k.tile.kernel;
        let rows = tile.schedule.align_rows.and_then(|e| tile.as_int(e)).map(|n| format!("align_rows {n}"));
        Edit { kernel: k.contract.entry.clone(), values, items: rows.into_iter().collect() }
    };
    program.kernels.iter().map(one).collect()
}

/// Why there are no candidates: everything has a value, or no values of what is `auto` go with what is given.
fn nothing_to_tune(module: &Module, defines: &[(String, String)], program: &str) -> Diagnostic {
    let given = |name: &str| defines.iter().any(|(given, _)| given == name);
    let open = |k: &Kernel| {
        let auto = |v: Value| match &k.values[v].def {
            ValueDef::ConstParam(p) => matches!(p.default, Some(ConstValue::Auto { .. })) && !given(&k.values[v].name),
            _ => false,
        };
        k.const_params.iter().filter(|&&v| auto(v)).map(|&v| format!("`{}`", k.values[v].name)).collect::<Vec<_>>()
    };
    let open: Vec<String> = module.kernels.iter().flat_map(open).collect();
    let (message, note) = if open.is_empty() {
        let message = format!("nothing is left to choose for `{program}`");
        (message, "parameters that are `auto`, such as `BM = auto`, and that no `-D` gives are what is tuned")
    } else {
        let message = format!(
            "nothing can be chosen for `{program}`: no values of {} go with those that are given",
            open.join(", ")
        );
        (
            message,
            "warp tiles divide block tiles, so extents that are multiples of 16 leave a choice; otherwise the compiler uses fixed values",
        )
    };
    let span = module.kernels.first().map_or_else(Default::default, |k| k.name_span);
    Diagnostic::error(codes::NOTHING_TO_TUNE, span, message).with_note(note)
}

/// The model's own choice, and then what differs from it in one kernel, by the time that is predicted of all.
fn in_order(kernels: &[(String, Candidates)]) -> Vec<Candidate> {
    let setting = |kernel: &str, values: &[(String, i64)]| Setting {
        kernel: kernel.to_owned(),
        values: values.to_vec(),
        cluster: None,
        stage_stores: None,
        stream_k: None,
        split_k: None,
    };
    let first =
        |(name, c): &(String, Candidates)| Some((setting(name, &c.ranked.first()?.values), c.ranked[0].seconds));
    let Some(own) = kernels.iter().map(first).collect::<Option<Vec<_>>>().filter(|own| !own.is_empty()) else {
        return Vec::new();
    };
    let total: f64 = own.iter().map(|(_, seconds)| seconds).sum();
    let own = Candidate { settings: own.into_iter().map(|(s, _)| s).collect(), predicted: total };
    let mut others: Vec<Candidate> = Vec::new();
    for (place, (name, c)) in kernels.iter().enumerate() {
        for ranked in &c.ranked[1..] {
            let mut candidate = own.clone();
            candidate.settings[place] = setting(name, &ranked.values);
            candidate.predicted += ranked.seconds - c.ranked[0].seconds;
            others.push(candidate);
        }
    }
    others.sort_by(|a, b| a.predicted.total_cmp(&b.predicted));
    std::iter::once(own).chain(others).collect()
}

#[cfg(test)]
#[path = "candidates_tests.rs"]
mod tests;
