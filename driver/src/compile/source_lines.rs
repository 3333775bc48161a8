//! Source places of the statements of a program.

use std::collections::BTreeSet;
use tilec_ir::diag::Span;
use tilec_ir::entities::Stmt;
use tilec_ir::kernel::Kernel;

/// Where a line of a program comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its statement in the kernel as it is then; none: the header.
    pub stmt: Option<Stmt>,
    /// The bytes of the source that it came from; none: a pass made it of nothing that was written.
    pub span: Span,
}

/// The places of a kernel.
pub(crate) struct Places<'a> {
    kernel: &'a Kernel,
    /// The spans of statements with blocks; passes give them to statements that they make of these, too.
    around: BTreeSet<Span>,
    /// Where statements begin, in order.
    starts: Vec<u32>,
}

impl Places<'_> {
    pub(crate) fn new(kernel: &Kernel) -> Places<'_> {
        let all = || kernel.stmts.keys();
        let around = all().filter(|&s| !kernel.sub_blocks(s).is_empty()).map(|s| kernel.stmt_spans[s]).collect();
        let mut starts: Vec<u32> = all().map(|s| kernel.stmt_spans[s].start).collect();
        starts.sort_unstable();
        Places { kernel, around, starts }
    }

    /// The statement's source line; `None`: the header, for the kernel as a whole.
    pub(crate) fn of_statement(&self, stmt: Option<Stmt>) -> Place {
        Place { stmt, span: stmt.map_or_else(|| self.header(), |s| self.own(self.kernel.stmt_spans[s])) }
    }

    /// What is written of a statement itself: of one with blocks, up to the first statement in these.
    fn own(&self, span: Span) -> Span {
        if !self.around.contains(&span) {
            return span;
        }
        match self.starts.get(self.starts.partition_point(|&start| start <= span.start)) {
            Some(&end) if end < span.end => Span { start: span.start, end },
            _ => span,
        }
    }

    /// The declaration, from the kernel's name to the last of what its header names; not what passes have put into it.
    fn header(&self) -> Span {
        let k = self.kernel;
        let body = self.starts.get(self.starts.partition_point(|&start| start <= k.name_span.start));
        let body = body.copied().unwrap_or(u32::MAX);
        let values = k.const_params.iter().chain(&k.params).chain(&k.sizes).chain(&k.strides);
        let declared = values.map(|&v| k.values[v].span);
        let written = k.grid.iter().map(|axis| axis.extent).chain(k.requires.iter().copied()).map(|e| k.expr_spans[e]);
        let within = |s: &Span| !s.is_none() && s.start >= k.name_span.start && s.end <= body;
        declared.chain(written).filter(within).fold(k.name_span, Span::to)
    }
}
