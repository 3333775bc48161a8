//! Changes of the source that are tried for every prediction: written layouts left out, and another number of slots.

use super::advice::Advice;
use super::answer::Known;
use super::channel_slots;
use super::numbers::{self, Number};
use super::programs::Change;
use super::trials::FASTER;
use super::ways_out;
use crate::compile::CompiledKernel;
use tilec_ir::diag::Span;
use tilec_ir::entities::Value;
use tilec_ir::fix_locations::FixLocation;
use tilec_ir::kernel::{Kernel, StmtData, ValueDef};
use tilec_ir::types::TileTy;

/// What is tried, in words, and what of it is faster.
#[derive(Default)]
pub(super) struct Tried {
    pub(super) words: Vec<String>,
    pub(super) faster: Vec<Advice>,
}

/// The clause `layout ..` of a tile, where the source has one.
pub(super) fn layout_clause(k: &Kernel, v: Value) -> Option<Span> {
    let declares =
        |s: &StmtData| matches!(s, StmtData::Alloc { value, .. } | StmtData::Var { value, .. } if *value == v);
    let declared = k.statements().into_iter().find(|&s| declares(&k.stmts[s]))?;
    k.spot(k.stmt_spans[declared], FixLocation::Layout)
}

/// The tiles whose layout the source has.
fn laid_out(k: &Kernel) -> impl Iterator<Item = (Value, Span)> {
    let written = |tile: &TileTy| tile.smem_layout.is_some() || tile.reg_layout.is_some();
    let is_tile = move |def: &ValueDef| matches!(def, ValueDef::Smem(tile) | ValueDef::Var(tile) if written(tile));
    let tiles = k.values.iter().filter(move |(_, value)| is_tile(&value.def)).map(|(v, _)| v);
    tiles.filter_map(|v| Some((v, layout_clause(k, v)?)))
}

/// Tries the changes, and pairs of them if none alone is faster.
pub(super) fn of_source(known: &Known<'_>, kernel: &CompiledKernel) -> Tried {
    let mut tried = Tried::default();
    if kernel.tile.prediction.is_none() {
        return tried;
    }
    let k = &kernel.tile.specialized;
    let mut all: Vec<(String, Advice)> = Vec::new();
    for (v, clause) in laid_out(k) {
        let name = &k.values[v].name;
        let advice = Advice::by(format!("leave `layout` of `{name}` out"), Change::of_part(known.text(), clause, ""));
        all.push((format!("`{name}` without its `layout`"), advice));
    }
    let slots = u64::from(kernel.report.stages);
    all.extend(channel_slots::beside(known, kernel));
    if slots >= LEAST && kernel.tile.block_time.is_none() {
        for n in [slots + 1, slots - 1].into_iter().filter(|&n| n >= LEAST) {
            let advice = ways_out::of_item(known, kernel, ("stages", n), &format!("`stages {n}` in the schedule"));
            all.push((format!("`stages {n}`"), advice));
        }
    }
    tried.add(known, kernel, &all);
    if tried.faster.is_empty() {
        let mut pairs: Vec<(String, Advice)> = Vec::new();
        for (i, (words, one)) in all.iter().enumerate() {
            let both = |(others, two): &(String, Advice)| Some((format!("{words} and {others}"), one.and(two)?));
            pairs.extend(all[i + 1..].iter().filter_map(both));
        }
        pairs.truncate(PAIRS);
        tried.add(known, kernel, &pairs);
    }
    tried
}

impl Tried {
    /// Tries changes.
    fn add(&mut self, known: &Known<'_>, kernel: &CompiledKernel, all: &[(String, Advice)]) {
        let changes: Vec<Change> = all.iter().filter_map(|(_, advice)| advice.change()).cloned().collect();
        known.trials.prepare(&changes);
        for (words, advice) in all {
            // What does not compile, or has no prediction, says nothing of the time.
            let Some((now, then)) = advice.clone().judged(known, kernel).gain() else { continue };
            self.words.push(words.clone());
            self.faster.extend((then < FASTER * now).then(|| advice.clone()));
        }
    }
}

/// The fewest slots with which loads run ahead.
const LEAST: u64 = 2;

/// Pairs of changes that are compiled, if none alone is faster.
const PAIRS: usize = 6;

/// What was tried of a kernel for which nothing is faster, and what was not.
pub(super) fn in_words(known: &Known<'_>, kernel: &CompiledKernel) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let numbers = numbers::of(known, kernel);
    if let Some(p) = &kernel.tile.prediction {
        words.extend(Some(numbers::tried(&numbers, p)).filter(|text| !text.is_empty()));
    }
    words.extend(of_source(known, kernel).words);
    let mut facts = Vec::new();
    if !words.is_empty() {
        facts.push(format!("tried: {}", words.join(", ")));
    }
    facts.extend(literal_extents(kernel, &numbers).map(|names| {
        format!("not tried: other extents of {names}, which are numbers in the source: that results do not depend on them is not proved")
    }));
    facts
}

/// The tiles of buffers and registers with an extent that the source has as a number, and that is not among those tried.
fn literal_extents(kernel: &CompiledKernel, tried: &[Number]) -> Option<String> {
    let k = &kernel.tile.source_kernel.as_ref()?.kernel;
    let is_tried = |name: &String, d: usize| {
        tried.iter().any(|number| match number {
            Number::Literal(own, _) => own.tiles.iter().any(|tile| (&tile.0, tile.1) == (name, d)),
            _ => false,
        })
    };
    let own = k.values.values().filter(|value| match &value.def {
        ValueDef::Smem(tile) | ValueDef::Var(tile) => {
            let is_number = |e| k.literal(e).is_some() && k.as_int(e).is_some_and(|n| n > 1);
            tile.shape.iter().enumerate().any(|(d, &e)| is_number(e) && !is_tried(&value.name, d))
        }
        _ => false,
    });
    let names: Vec<String> = own.map(|value| format!("`{}`", value.name)).collect();
    (!names.is_empty()).then(|| names.join(", "))
}
