//! Why bank conflicts remain: which accesses need different layouts, or which layout is fixed.

use super::accesses::{MAX_TERMS, OfStatement, declared, ideal_wavefronts, of_statements};
use crate::Cx;
use crate::refusal::Refused;
use tilec_ir::entities::Value;
use tilec_ir::kernel::{Kernel, StmtData};
use tilec_ir::layout::access::BANK_BYTES;
use tilec_ir::layout::{PhaseAccess, SmemLayout, search_xor};
use tilec_ir::missed_paths::FastPath;
use tilec_ir::print::print_expr;
use tilec_ir::typing::resolve_view;

/// Remarks on conflicts in a buffer whose layout the hardware fixes.
pub(super) fn with_fixed(k: &Kernel, cx: &mut Cx<'_>, v: Value, layout: &SmemLayout) {
    let all = of_statements(k, v, layout.dim_bits());
    let Some(slow) = all.iter().find(|of| is_slow(of, layout)) else { return };
    let name = &k.values[v].name;
    let what = format!("`{name}` has bank conflicts");
    let why = format!("TMA and `wgmma` fix its layout, and lanes of {} meet in a bank", described(k, slow));
    let refused = match loaded(k, slow) {
        Some(tensor) => Refused::from(why).help(&format!(
            "copy the tile of `{tensor}` unchanged to a buffer of its own (`copy {tensor}[..] -> loaded`), and fill `{name}` from that buffer in a second copy: it has other lanes"
        )),
        None => Refused::from(why),
    };
    refused.report(k, cx, &what, (FastPath::Banks, declared(k, v)));
}

/// Why conflicts remain in the best layout that was found.
pub(super) fn remaining(k: &Kernel, v: Value, natural: &SmemLayout, best: &SmemLayout) -> Refused {
    let all = of_statements(k, v, natural.dim_bits());
    let is_free = |these: &[&OfStatement]| {
        let these: Vec<PhaseAccess> = these.iter().map(|of| of.access.clone()).collect();
        these.is_empty() || search_xor(&these, natural, MAX_TERMS).is_some_and(|found| found.conflict_free)
    };
    let Some(slow) = all.iter().find(|of| is_slow(of, best)) else {
        return "the accesses want different layouts".into();
    };
    let own = described(k, slow);
    if !is_free(&[slow]) {
        return format!("{own} has conflicts in every layout, also if it is the only access").into();
    }
    let bytes = slow.access.access_bytes;
    let narrow: Vec<&OfStatement> = all.iter().filter(|of| of.access.access_bytes <= bytes).collect();
    let wide = all.iter().filter(|of| of.access.access_bytes > bytes).max_by_key(|of| of.access.access_bytes);
    if let Some(wide) = wide.filter(|_| is_free(&narrow)) {
        let bytes_of_lane = wide.access.access_bytes;
        let banks = u64::from(bytes_of_lane).div_ceil(BANK_BYTES);
        let n = (8 * BANK_BYTES / u64::from(wide.access.elem.get()).max(1)).max(1);
        let why = format!(
            "{} keeps {bytes_of_lane} bytes of a lane together in {banks} neighbouring banks, so the lanes of {own} meet in few banks",
            described(k, wide)
        );
        return Refused::from(why).help(&format!(
            "a narrower access of that copy (`vec {n}`) leaves more banks to the layout; a register tile in place of `{}` needs no banks",
            k.values[v].name
        ));
    }
    let other = all.iter().find(|of| !is_free(&[slow, of]));
    match other {
        Some(other) => format!("{own} and {} want different layouts", described(k, other)).into(),
        None => format!("no layout serves all its {} accesses without conflicts", all.len()).into(),
    }
}

/// Whether an access has conflicts in a layout.
fn is_slow(of: &OfStatement, layout: &SmemLayout) -> bool {
    let one = PhaseAccess { weight: 1, ..of.access.clone() };
    search_xor(std::slice::from_ref(&one), layout, 0).is_some_and(|found| found.wavefronts > ideal_wavefronts(&one))
}

/// An access in words.
fn described(k: &Kernel, of: &OfStatement) -> String {
    let access = if of.store { "store" } else { "load" };
    let copy = match k.stmts[of.s] {
        StmtData::Copy { src, dst, .. } => format!(" (`{}` -> `{}`)", print_expr(k, src), print_expr(k, dst)),
        _ => String::new(),
    };
    format!("the {access} of {} bytes{copy}", of.access.access_bytes)
}

/// The tensor from which a statement fills a buffer with other than its plain elements.
fn loaded(k: &Kernel, of: &OfStatement) -> Option<String> {
    let StmtData::Copy { src, .. } = k.stmts[of.s] else { return None };
    let mut tensor = None;
    let mut work = vec![src];
    while let Some(e) = work.pop() {
        match resolve_view(k, e).filter(|view| k.tensor_ty(view.base).is_some()) {
            Some(view) => tensor = Some(k.values[view.base].name.clone()),
            None => work.extend(k.children(e)),
        }
    }
    tensor.filter(|_| of.store)
}
