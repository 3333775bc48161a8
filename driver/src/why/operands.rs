//! Operands of products in buffers of their own, as `select-mma` advises: the source with that, to be tried.

use super::answer::Known;
use super::programs::Change;
use crate::compile::CompiledKernel;
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::{ExprData, Kernel, Mma, StmtData};
use tilec_ir::types::ElemRef;
use tilec_ir::typing::{Extent, Type, resolve_view, type_of};

/// The name of such a buffer, as far as the program has none of this name.
const NAME: &str = "operand";

/// The change that advice about an operand asks for; `at`: the place of the message. `None`: it is other advice, or takes a
/// person.
pub(super) fn change(known: &Known<'_>, kernel: &CompiledKernel, text: &str, at: Span) -> Option<Change> {
    let k = &kernel.tile.specialized;
    match text {
        "copy the second operand into a buffer (`smem`)" => instead_of_registers(known, k, at),
        "copy the operand into a separate buffer" => separate(known, k, at),
        _ => None,
    }
}

/// The products of a kernel.
fn products(k: &Kernel) -> impl Iterator<Item = (Stmt, Expr, &Mma)> {
    k.statements().into_iter().filter_map(|s| match &k.stmts[s] {
        StmtData::Assign { src, .. } => match &k.exprs[*src] {
            ExprData::Mma(mma) => Some((s, *src, mma)),
            _ => None,
        },
        _ => None,
    })
}

/// The second operand of the product at this place in shared memory from its declaration on.
fn instead_of_registers(known: &Known<'_>, k: &Kernel, at: Span) -> Option<Change> {
    let (.., mma) = products(k).find(|(_, src, _)| k.expr_spans[*src] == at)?;
    let tile = resolve_view(k, mma.b)?.base;
    let declares = |s: &Stmt| matches!(k.stmts[*s], StmtData::Var { value, init: None } if value == tile);
    let declared = k.stmt_spans[k.statements().into_iter().find(declares)?];
    let text = known.program.source.text().get(declared.start as usize..declared.end as usize)?;
    let (name, ty) = text.strip_prefix("var ")?.split_once('=')?;
    let ty = ty.trim_start().strip_prefix("reg ")?;
    Change::of_part(known.text(), declared, &format!("let {name}= smem {ty}"))
}

/// A copy of the operand at this place, in front of its product.
fn separate(known: &Known<'_>, k: &Kernel, at: Span) -> Option<Change> {
    let operand = |mma: &Mma| [mma.a, mma.b].into_iter().position(|e| k.expr_spans[e] == at);
    let (product, mma, second) = products(k).find_map(|(s, _, mma)| Some((s, mma, operand(mma)? == 1)))?;
    let (own, other) = if second { (mma.b, mma.a) } else { (mma.a, mma.b) };
    let ElemRef::Known(elem) = type_of(k, own).ok()?.elem()? else { return None };
    // Windows have no extents of their own: those of the result and of the other operand say them.
    let (result, other) = (extents(k, mma.c)?, extents(k, other)?);
    let shape = if second { [other.get(1)?, result.get(1)?] } else { [result.first()?, other.first()?] };
    let (source, front) = (known.program.source.text(), k.stmt_spans[product].start);
    let written = source.get(at.start as usize..at.end as usize)?;
    if k.values.values().any(|v| v.name == NAME) || front > at.start {
        return None;
    }
    let begin = format!(
        "let {NAME} = smem {}[{}]\ncopy {written} -> {NAME}\n{}{NAME}",
        elem.name(),
        shape.map(u64::to_string).join(", "),
        source.get(front as usize..at.start as usize)?
    );
    Change::of_part(known.text(), Span { start: front, end: at.end }, &begin)
}

/// The extents of a tile.
fn extents(k: &Kernel, e: Expr) -> Option<Vec<u64>> {
    let Type::Tile(tile) = type_of(k, e).ok()? else { return None };
    let number = |extent: &Extent| if let Extent::Known(n) = extent { Some(*n) } else { None };
    tile.shape.iter().map(number).collect()
}
