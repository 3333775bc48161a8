//! What operands are called in the source, for messages.

use super::types::{Type, Types};
use crate::diag::Diagnostic;
use crate::entities::Expr;
use crate::kernel::ExprData;

impl Types<'_> {
    /// The name of a tile, or of what a window is of, in quotes; `None`: it has none.
    pub(super) fn called(&self, e: Expr) -> Option<String> {
        let name = |e: Expr| match self.k.exprs[e] {
            ExprData::Ref(v) => Some(&self.k.values[v].name),
            ExprData::View(ref view) => Some(&self.k.values[view.base].name),
            _ => None,
        };
        match self.k.exprs[e] {
            ExprData::Transpose(of) => name(of).map(|name| format!("`transpose({name})`")),
            _ => name(e).map(|name| format!("`{name}`")),
        }
    }

    /// Adds a fix that converts one of several operands; a note names the operand.
    pub(super) fn with_conversion(&self, d: Diagnostic, e: Expr, ty: &Type, elem: &str) -> Diagnostic {
        let of = match self.k.exprs[e] {
            ExprData::Ref(v) => self.k.values[v].name.clone(),
            ExprData::View(ref view) => format!("{}[..]", self.k.values[view.base].name),
            _ => "..".to_owned(),
        };
        self.converted(d.with_note(format!("convert one of them: `cast<{elem}>({of})`")), e, ty, elem)
    }
}
