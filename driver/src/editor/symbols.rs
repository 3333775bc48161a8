//! Document symbols: the declarations of a file, as a tree.

use super::analysis::Analysis;
use super::hover;
use tilec_ir::diag::Span;
use tilec_ir::kernel::ValueDef;

/// The kind of a declaration.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A kernel.
    Kernel,
    /// A sequence of kernels.
    Sequence,
    /// A compile-time parameter.
    ConstParam,
    /// A tensor, a scalar or a table.
    Param,
    /// A size, a stride or an index.
    Index,
    /// A tile, a buffer or a channel.
    Tile,
    /// A value with a name.
    Let,
}

/// A declaration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The same in words.
    pub detail: String,
    /// All of it.
    pub span: Span,
    /// Its name.
    pub name_span: Span,
    /// What is in it.
    pub children: Vec<Declared>,
}

/// What a value is.
pub fn kind(def: &ValueDef) -> Kind {
    match def {
        ValueDef::ConstParam(_) => Kind::ConstParam,
        ValueDef::Tensor(_) | ValueDef::Scalar { .. } | ValueDef::Table(_) => Kind::Param,
        ValueDef::Size | ValueDef::Stride | ValueDef::Grid | ValueDef::Loop => Kind::Index,
        ValueDef::Var(_) | ValueDef::Smem(_) | ValueDef::Channel { .. } => Kind::Tile,
        ValueDef::Let | ValueDef::Local(_) | ValueDef::Element { .. } => Kind::Let,
    }
}

/// The kernels and sequences of a file with what they declare, in order.
pub fn symbols(a: &Analysis) -> Vec<Declared> {
    let o = &a.outline;
    let kernels = o.module.kernels.iter().enumerate().filter(|(_, k)| !k.name.is_empty()).map(|(i, k)| {
        let of_kernel = o.declarations.iter().filter(|d| d.kernel == i);
        let children = of_kernel
            .map(|d| {
                let def = &a.value(i, d.value).def;
                let detail = hover::kind(def).to_owned();
                Declared {
                    name: d.name.clone(),
                    kind: kind(def),
                    detail,
                    span: d.span,
                    name_span: d.span,
                    children: Vec::new(),
                }
            })
            .collect();
        let (span, name_span) = (o.kernels[i].to(k.name_span), k.name_span);
        Declared { name: k.name.clone(), kind: Kind::Kernel, detail: String::new(), span, name_span, children }
    });
    let sequences = o.module.sequences.iter().map(|s| {
        let span = s.launches.iter().fold(s.name_span, |all, (_, at)| all.to(*at));
        let detail = s.launches.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        let name_span = s.name_span;
        Declared { name: s.name.clone(), kind: Kind::Sequence, detail, span, name_span, children: Vec::new() }
    });
    let mut all: Vec<Declared> = kernels.chain(sequences).collect();
    all.sort_by_key(|d| d.span);
    all
}
