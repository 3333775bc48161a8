//! Named conditions (`let`) that are needed in two layouts.
//!
//! ```text
//! let p = x > 0.5
//! var p_number = reg i8[64, 64] layout .. = cast<i8>(select(p, 1, 0))
//! copy p_number -> p_number_exchange
//! copy p_number_exchange -> p_number_exchanged
//! .. p_number_exchanged != 0 ..
//! ```

use super::{Source, Work};
use crate::analysis::uses::place_of;
use crate::assign_layouts::materialise::tile;
use crate::assign_layouts::storage_types::is_truth;
use crate::bool_storage::{NUMBERS, as_condition, as_stored};
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::{Kernel, StmtData, ValueDef};

impl Work<'_> {
    /// The source of an exchange for an operand, and the expression that replaces the operand. A named condition is
    /// exchanged as a tile of 0/1 numbers.
    pub(super) fn exchanged_as(&mut self, k: &mut Kernel, leaf: Expr, source: Source) -> (Expr, Source) {
        if !is_truth(k, leaf) {
            return (leaf, source);
        }
        let span = k.expr_spans[leaf];
        let known = self.numbers.get(&source.value).copied();
        let value = known.unwrap_or_else(|| {
            let names = |s: &Stmt| matches!(k.stmts[*s], StmtData::Let { value, .. } if value == source.value);
            let named = k.statements().into_iter().find(names).expect("bug: a tile of conditions is no `let`");
            let name = format!("{}_number", k.values[source.value].name);
            let ty = tile(k, named, NUMBERS, &source.shape, Some(source.layout.clone()));
            let v = k.value(&name, span, ValueDef::Var(ty));
            let condition = k.value_ref(source.value, span);
            let init = Some(as_stored(k, condition));
            let declared = k.stmt(StmtData::Var { value: v, init }, span);
            let (block, index) = place_of(k, named);
            k.blocks[block].insert(index + 1, declared);
            v
        });
        self.numbers.insert(source.value, value);
        let number = k.value_ref(value, span);
        let truth = as_condition(k, number);
        k.exprs[leaf] = k.exprs[truth].clone();
        (number, Source { value, elem: NUMBERS, ..source })
    }
}
