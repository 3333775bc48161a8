//! Loops whose statements have stages when the pass sees them: written ones, or those of `schedule-loops`. The pass leaves
//! them as they are, and says why a buffer that they fill is no channel.

use super::fills;
use super::loop_plan::Fill;
use crate::Cx;
use crate::producer_fills;
use crate::refusal::Refused;
use tilec_ir::entities::{Block, Stmt};
use tilec_ir::fix_locations::FixLocation;
use tilec_ir::kernel::{ExprData, Kernel};
use tilec_ir::missed_paths::FastPath;
use tilec_ir::typing::resolve_view;

/// Remarks on the buffers of such a loop that could be channels.
pub(super) fn remark(k: &Kernel, cx: &mut Cx<'_>, s: Stmt, body: Block) {
    let (fills, _) = fills::ahead(k, cx, &k.blocks[body]);
    if written(k, &k.blocks[body]) {
        if let Some(fill) = fills.first() {
            let why = format!("its stages are written, and `{}` is no channel", k.values[fill.buffer].name);
            let refused = Refused::by_request(why)
                .help("leave `@(stage ..)` of its statements out: the pass finds stages and makes channels");
            refused.report(k, cx, "loop not pipelined", (FastPath::Ahead, vec![s]));
        }
        return;
    }
    for fill in &fills {
        let what = format!("`{}` is not loaded ahead of its iteration", k.values[fill.buffer].name);
        unfed(k, cx, fill).or_at(fill.span).report(k, cx, &what, (FastPath::Ahead, vec![s]));
    }
}

/// Whether the source has stages for one of these statements: a fix location ends where the statement begins.
fn written(k: &Kernel, stmts: &[Stmt]) -> bool {
    let plan = |s: Stmt| {
        let start = k.stmt_spans[s].start;
        k.fix_locations.iter().any(|&(spot, span)| spot == FixLocation::Plan && span.end == start)
    };
    stmts.iter().any(|&s| k.plans[s].stage.is_some() && plan(s))
}

/// Why producer warps do not fill a buffer.
fn unfed(k: &Kernel, cx: &Cx<'_>, fill: &Fill) -> Refused {
    let buffer = fill.buffer;
    let name = &k.values[buffer].name;
    if let Some(computed) = fill.computed {
        let tensor = resolve_view(k, fill.src).map_or_else(String::new, |from| k.values[from.base].name.clone());
        let (verb, from) = match k.exprs[computed] {
            ExprData::Cast { arg, .. } if arg == fill.src => ("converts", "convert"),
            _ => ("computes", "compute"),
        };
        let why = format!("its copy {verb}, and producer warps load tiles unchanged");
        return Refused::from(why).help(&format!(
            "copy the tile of `{tensor}` unchanged to a buffer of its own (`copy {tensor}[..] -> loaded`), and {from} `{name}` from that buffer in a second copy"
        ));
    }
    // `select-mma` has reported it as a loss of the copy.
    let refused = match producer_fills::plan(k, cx.options, &[buffer]) {
        Err(refused) => refused,
        Ok(feeds) => feeds.into_iter().find_map(|feed| feed.refused).unwrap_or_else(|| {
            Refused::from("its extents are no powers of two, as those of boxes of TMA loads are here")
                .help("a tile whose extents are powers of two")
        }),
    };
    refused.asked_if(true)
}
