//! Copies from global to shared memory that do not pass through registers (`cp.async`).
//!
//! Every thread copies the accesses that the thread layout gives it, and waits for its own copies (`channel_op`).
//! Elements outside the bounds are written as zeros, by an access that reads no bytes (`src-size` 0).

use super::state::Lower;
use crate::inst::{Class, Guard, Operand};
use crate::ops::Op as P;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::{Expr, Stmt};
use tilec_ir::kernel::CopyAttrs;
use tilec_ir::layout::RegLayout;
use tilec_ir::typing::ResolvedView;

/// The instructions for an access of `bytes`: the plain form, and the form whose last operand is the number of bytes to
/// read. 16-byte accesses bypass L1 (`.cg`), because no other thread reads the data there.
fn instructions(bytes: u32) -> Option<(P, P)> {
    Some(match bytes {
        4 => (P::CpAsyncCa4, P::CpAsyncCaZfill4),
        8 => (P::CpAsyncCa8, P::CpAsyncCaZfill8),
        16 => (P::CpAsyncCg16, P::CpAsyncCgZfill16),
        _ => return None,
    })
}

impl Lower<'_> {
    pub(super) fn copy_asynchronously(
        &mut self,
        s: Stmt,
        (src, from): (Expr, &ResolvedView),
        (dst, to): (Expr, &ResolvedView),
        layout: &RegLayout,
        dim_bits: &super::dims::Dims,
        attrs: &CopyAttrs,
    ) -> Result<(), Reported> {
        if !self.target.has_asynchronous_copies() {
            let message = format!("{} has no asynchronous copies: they need sm_80", self.target.name());
            let d = Diagnostic::error(codes::BAD_COPY, self.k.stmt_spans[s], message);
            return Err(self.sink.report(d.with_note("without `async` the copy goes through registers")));
        }
        let Some(elem) = self.elem(from.base).filter(|&e| self.elem(to.base) == Some(e)) else {
            return Err(self.unfit(src, "an asynchronous copy that converts"));
        };
        let bytes = elem.bytes_of(attrs.vec.unwrap_or(1).into()) as u32;
        let Some((plain, partial)) = instructions(bytes) else {
            return Err(self.unfit(src, "asynchronous copies of other than 4, 8 or 16 bytes"));
        };
        let mut read = self.access(src, from, layout, dim_bits, attrs, None)?;
        let mut write = self.access(dst, to, layout, dim_bits, attrs, None)?;
        if read.groups != write.groups {
            return Err(
                self.unfit(src, "an asynchronous copy between memories that are contiguous along different dimensions")
            );
        }
        self.report_copy(s, src, from, &read, elem, attrs, false);
        self.report_copy(s, dst, to, &write, elem, attrs, true);
        let replicas = self.replica_predicate(layout);
        let groups = std::mem::take(&mut read.groups);
        for ((group, pred), written) in groups.iter().zip(read.predicates()).zip(write.predicates()) {
            let guard = self.emit.and(replicas, written).map(|reg| Guard { reg, negated: false });
            let (to, from) = (self.address(&mut write, group[0])?, self.address(&mut read, group[0])?);
            let size = Operand::Imm(i64::from(bytes));
            match pred {
                None => self.emit.push_if(guard, plain, [to, from, size]),
                Some(p) => {
                    let read = vec![size.clone(), Operand::Imm(0), p.into()];
                    let read = self.emit.def(Class::B32, P::SelpB32, read);
                    self.emit.push_if(guard, partial, [to, from, size, read.into()]);
                }
            }
        }
        Ok(())
    }
}
