//! Preconditions with which a demand holds: found by compiling the program with them.

use crate::compile::implied::without_implied;
use tilec_ir::diag::{Diagnostic, Edit};
use tilec_ir::entities::Expr;
use tilec_ir::facts::contiguous_dim;
use tilec_ir::kernel::{ExprData, Kernel, ValueDef};
use tilec_ir::print::print_expr;
use tilec_ir::types::ElemRef;
use tilec_passes::analysis::access_width::MAX_ACCESS_BYTES;
use tilec_passes::required;

/// Preconditions that are tried at most: each is one compilation more.
const MOST: usize = 12;

/// What became of a trial.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Tried {
    /// The demand holds with these preconditions, and without any of them it does not; the edit declares them.
    Holds(String, Option<Box<Edit>>),
    /// It does not hold with all of these.
    Broken(String),
    /// There is none to try.
    Nothing,
}

/// Whether a demand holds for a program text; `None`: the text does not compile.
type Judge<'a> = &'a dyn Fn(&str) -> Option<bool>;

/// Looks for the fewest preconditions with which a demand holds that does not hold without them: those that passes ask for (`said`), and alignments of rows to
/// accesses of 16 bytes.
pub(crate) fn tried(source: &str, k: &Kernel, said: &[Diagnostic], holds: Judge<'_>) -> Tried {
    let holds = |needs: &[String]| holds(&with(source, k, &needs.join(", "))?);
    let mut all = candidates(k, said);
    all.truncate(MOST);
    if all.is_empty() {
        return Tried::Nothing;
    }
    let mut fewest = all.clone();
    without_implied(&mut fewest);
    let mut met = holds(&fewest);
    if met.is_none() {
        // Sizes that are given may contradict some.
        all.retain(|one| holds(std::slice::from_ref(one)).is_some());
        fewest = all;
        without_implied(&mut fewest);
        met = if fewest.is_empty() { None } else { holds(&fewest) };
    }
    let mut all = fewest;
    match met {
        None => Tried::Nothing,
        Some(false) => Tried::Broken(all.join(", ")),
        Some(true) => {
            for one in all.clone() {
                let rest: Vec<String> = all.iter().filter(|other| **other != one).cloned().collect();
                if !rest.is_empty() && holds(&rest) == Some(true) {
                    all = rest;
                }
            }
            let needs = all.join(", ");
            let edit = required(k, &needs).map(Box::new);
            Tried::Holds(needs, edit)
        }
    }
}

/// The source with more preconditions.
fn with(source: &str, k: &Kernel, needs: &str) -> Option<String> {
    let edit = required(k, needs)?;
    let mut text = source.to_owned();
    // In front of another clause with a space between.
    text.insert_str(edit.span.start as usize, &(edit.text + " "));
    Some(text)
}

/// Preconditions that the kernel does not have.
fn candidates(k: &Kernel, said: &[Diagnostic]) -> Vec<String> {
    let known: Vec<String> = k.requires.iter().map(|&e| print_expr(k, e)).collect();
    let mut all: Vec<String> =
        said.iter().flat_map(|d| d.needs.split(", ")).filter(|need| !need.is_empty()).map(str::to_owned).collect();
    for &v in &k.params {
        let Some(tensor) = k.tensor_ty(v).filter(|t| t.scratch.is_none()) else { continue };
        let ElemRef::Known(elem) = tensor.elem else { continue };
        let width = u64::from(MAX_ACCESS_BYTES) * 8 / u64::from(elem.size().get()).max(1);
        if width <= 1 {
            continue;
        }
        let size = |e: Expr| match k.exprs[e] {
            ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::Size) => Some(v),
            _ => None,
        };
        let extent = contiguous_dim(k, v).and_then(|d| size(tensor.shape[d]));
        let named = tensor.ld.iter().copied().chain(extent);
        all.extend(named.map(|v| format!("{} % {width} == 0", k.values[v].name)));
    }
    let mut seen = Vec::new();
    for need in all {
        if !known.contains(&need) && !seen.contains(&need) {
            seen.push(need);
        }
    }
    seen
}

impl Tried {
    /// What it says of a demand; none: nothing was tried, or nothing had been asked for that does not help. `asked`: passes ask for preconditions.
    pub(crate) fn in_words(&self, asked: bool) -> Option<String> {
        match self {
            Tried::Holds(needs, _) => Some(format!("with `where {needs}` it holds (tried)")),
            Tried::Broken(needs) if asked => Some(format!(
                "it does not hold with `where {needs}` either (tried): preconditions are not all that is missing"
            )),
            Tried::Broken(_) | Tried::Nothing => None,
        }
    }
}
