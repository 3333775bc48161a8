//! Inlay hints: chosen values of `auto` parameters, and types of `let`s.

use super::analysis::Analysis;
use super::decisions::Decisions;
use super::hover::let_type;
use tilec_ir::kernel::{ConstParam, ConstValue, ValueDef};
use tilec_ir::outline::Declaration;
use tilec_ir::typing::Types;

/// A text to be shown after a byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hint {
    /// After which byte.
    pub at: usize,
    /// The text.
    pub text: String,
    /// It is a type; else a value.
    pub is_type: bool,
}

/// The hints of a text, in order. `decisions`: of this text.
pub fn hints(a: &Analysis, decisions: Option<&Decisions>) -> Vec<Hint> {
    let mut all = Vec::new();
    if !a.whole {
        return all;
    }
    for (number, k) in a.outline.module.kernels.iter().enumerate() {
        let types = Types::new(k);
        for d in a.outline.declarations.iter().filter(|d| d.kernel == number) {
            match &a.value(number, d.value).def {
                ValueDef::Let => {
                    all.extend(let_type(k, &types, d.value).map(|ty| Hint {
                        at: d.span.end as usize,
                        text: format!(": {ty}"),
                        is_type: true,
                    }));
                }
                ValueDef::ConstParam(ConstParam { default: Some(ConstValue::Auto { .. }), .. }) => {
                    let chosen = decisions.and_then(|c| c.parameter(&k.name, &d.name)).and_then(ConstValue::text);
                    let at = auto_word(a, d);
                    all.extend(chosen.zip(at).map(|(text, at)| Hint { at, text: format!(" {text}"), is_type: false }));
                }
                _ => {}
            }
        }
    }
    all.sort_by_key(|hint| hint.at);
    all
}

/// The end of the word `auto` after the name of a parameter.
fn auto_word(a: &Analysis, d: &Declaration) -> Option<usize> {
    let behind = a.words().iter().skip_while(|w| w.span.start < d.span.end).take(4);
    behind.into_iter().find(|w| a.slice(w.span) == "auto").map(|w| w.span.end as usize)
}
