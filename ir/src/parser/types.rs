//! Types: element types, tiles, tensors.

use crate::codes;
use crate::diag::{Diagnostic, Reported, Span, counted};
use crate::entities::{Expr, Value};
use crate::extents::MAX_SIZE;
use crate::fix_locations::FixLocation;
use crate::kernel::{ExprData, ValueDef};
use crate::lexer::{Tok, clip, is_reserved};
use crate::ops::{Op, ReduceOp};
use crate::parser::foreign_syntax;
use crate::parser::reader::{Parsed, Parser};
use crate::parser::scope::Unknown;
use crate::parser::window_notes::REPEATS;
use crate::types::{
    DimStride, Elem, ElemRef, Mode, Order, OrderRef, Padded, Partial, Scratch, Strides, TensorTy, TileTy,
};

/// A dimension of a tensor as written: its extent or its stride, or those of its modes.
enum Dim {
    One(Expr),
    Tuple(Vec<Expr>, Span),
    Repeats(Span),
}

/// Words that may follow the shape of a tensor.
pub(crate) const AFTER_SHAPE: &[&str] =
    &["strides", "padded", "pointers", "scratch", "signals", "multiple", "align", "constant"];

impl Parser<'_, '_> {
    /// A known element type. Unknown ones are reported.
    pub(super) fn elem(&mut self) -> Parsed<Elem> {
        let Tok::Word(word) = self.peek() else {
            return Err(self.expected("an element type"));
        };
        match Elem::from_name(word) {
            Some(elem) => {
                self.bump();
                Ok(elem)
            }
            None => Err(self.unknown_elem(word, "")),
        }
    }

    /// An element type or a compile-time parameter that is one.
    pub(super) fn elem_ref(&mut self) -> Parsed<ElemRef> {
        let span = self.span();
        let Tok::Word(word) = self.peek() else {
            return Err(self.expected("an element type"));
        };
        if Elem::from_name(word).is_some() {
            return self.elem().map(ElemRef::Known);
        }
        if is_reserved(word) {
            return Err(self.expected("an element type"));
        }
        if self.at_module() {
            self.skip_module();
            return self.nested(|p| p.elem_ref());
        }
        if !self.names_value(word) {
            self.unknown_elem(word, ", or declare a compile-time parameter: `<T: f16 | bf16 = f16>`");
            self.bump();
            return Ok(ElemRef::Known(Elem::F32));
        }
        self.bump();
        self.const_param(word, span, "an element type").map(ElemRef::Param)
    }

    fn unknown_elem(&mut self, word: &str, or: &str) -> Reported {
        let span = self.span();
        let all: Vec<&'static str> = Elem::ALL.iter().map(|e| e.name()).collect();
        let mut d = Diagnostic::error(codes::UNKNOWN_TYPE, span, format!("no element type is called `{}`", clip(word)));
        if let Some(ours) = foreign_syntax::of_type(word) {
            return self.error(d.with_spelling(ours));
        }
        if let Some(near) = self.near_word(word, &all) {
            d = d.with_spelling(near);
        }
        self.error(d.with_note(format!("use one of `{}`{or}", all.join("`, `"))))
    }

    /// `[e, e, ..]`, perhaps empty.
    pub(super) fn shape(&mut self) -> Parsed<Vec<Expr>> {
        self.shape_of(|p| p.expr())
    }

    /// `[item, item, ..]`, perhaps empty.
    fn shape_of<T>(&mut self, item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        const FORM: &str = "extents are in one pair of brackets after the type: `f16[M, K]`";
        if !self.eat_sign("[") {
            return Err(self.expected_with_note("`[`", FORM));
        }
        let shape = if self.at_sign("]") { Vec::new() } else { self.comma_list(item)? };
        self.list_end("]")?;
        if self.at_sign("[") { Err(self.expected_with_note("a clause after the shape", FORM)) } else { Ok(shape) }
    }

    /// `T[..] [layout L] [partial OP (BITS)]`, after `reg`.
    pub(super) fn reg_tile(&mut self) -> Parsed<TileTy> {
        let elem = self.elem_ref()?;
        let shape = self.shape()?;
        if self.at_word("row") || self.at_word("col") {
            return Err(self.expected_with_note(
                "a register tile's `layout` or `=`",
                "`row` and `col` are for memory; registers are spread over threads: `layout ((4,8),(2,2)):((2,16),(1,8))`",
            ));
        }
        let blanks = self.blanks();
        let reg_layout = if self.eat_word("layout") { Some(self.reg_layout()?) } else { None };
        self.noted(FixLocation::Layout, blanks, reg_layout.is_some());
        let partial = if self.eat_word("partial") { Some(self.partial()?) } else { None };
        Ok(TileTy { elem, shape, order: None, reg_layout, partial, smem_layout: None })
    }

    /// `sum (0, 1)`, after `partial`.
    fn partial(&mut self) -> Parsed<Partial> {
        let Some(op) = ReduceOp::ALL.iter().copied().find(|op| op.has_partials() && self.at_word(op.token())) else {
            return Err(self.expected_with_note(
                "`sum`, `maximum` or `minimum`",
                "that is what makes an element of the parts that lanes have: `partial sum (0, 1)`",
            ));
        };
        self.bump();
        if !self.eat_sign("(") {
            return Err(self.expected("`(`"));
        }
        let lanes = self.comma_list(|p| p.small_int("a bit of a lane's number"))?;
        self.list_end(")")?;
        Ok(Partial { op, lanes })
    }

    /// `T[..] [row | col] [layout L]`, after `smem` or `channel`.
    pub(super) fn smem_tile(&mut self) -> Parsed<TileTy> {
        let elem = self.elem_ref()?;
        let shape = self.shape()?;
        let order = self.order_word();
        let blanks = self.blanks();
        let smem_layout = if self.eat_word("layout") { Some(self.smem_layout()?) } else { None };
        self.noted(FixLocation::Layout, blanks, smem_layout.is_some());
        Ok(TileTy { elem, shape, order, reg_layout: None, partial: None, smem_layout })
    }

    /// `row` or `col`, if it is there.
    pub(super) fn order_word(&mut self) -> Option<Order> {
        let order = [Order::Row, Order::Col].into_iter().find(|o| self.at_word(o.name()))?;
        self.bump();
        Some(order)
    }

    /// `T[..] [row | col | LA | strides (..) [padded (..)]] [pointers] [scratch | signals] [multiple n] [align n] [constant]`, after `gmem`; `name` is the tensor's.
    pub(super) fn tensor(&mut self, name: &str, name_span: Span) -> Parsed<TensorTy> {
        let elem = self.elem_ref()?;
        let dims = self.declaring(Unknown::Size, |p| p.tensor_shape())?;
        let shape: Vec<Expr> = dims.iter().map(|dim| self.extent(dim)).collect();
        let written = if self.at_word("strides") && self.peek_at(1) == Tok::Sign("(") {
            let span = self.bump().span;
            self.expect_sign("(")?;
            let list = self.declaring(Unknown::Stride, |p| p.comma_list(|p| p.dimension()))?;
            self.list_end(")")?;
            Ok((list, self.since(span)))
        } else {
            if let Some(Dim::Tuple(_, at)) = dims.iter().find(|dim| matches!(dim, Dim::Tuple(..))) {
                let message = format!("a dimension of `{}` has several extents and no strides", clip(name));
                return Err(self
                    .error(Diagnostic::error(codes::WRONG_COUNT, *at, message).with_note(
                        "give each of them its stride, in elements: `[(B, L), O] strides ((O * L, 1), L)`",
                    )));
            }
            Err(self.tensor_order()?)
        };
        let padded = if written.is_ok() && self.at_word("padded") && self.peek_at(1) == Tok::Sign("(") {
            self.bump();
            self.expect_sign("(")?;
            let list = self.declaring(Unknown::Size, |p| p.comma_list(|p| p.padded()))?;
            self.list_end(")")?;
            list
        } else {
            Vec::new()
        };
        let pointers = self.eat_word("pointers");
        let blanks = self.blanks();
        let scratch = Scratch::OF_HOST.iter().find(|(_, word)| self.eat_word(word)).map(|&(scratch, _)| scratch);
        self.noted(FixLocation::Scratch, blanks, scratch.is_some());
        let front = usize::from(pointers);
        let repeats: Vec<usize> = (0..dims.len()).filter(|&d| matches!(dims[d], Dim::Repeats(_))).collect();
        let rank = shape.len().saturating_sub(front + repeats.len());
        if let Some(Dim::Repeats(at)) = dims.iter().find(|dim| matches!(dim, Dim::Repeats(_)))
            && (rank == 0 || pointers || scratch.is_some())
        {
            let d =
                Diagnostic::error(codes::BAD_SHAPE, *at, format!("`{}` cannot repeat along a dimension", clip(name)));
            self.error(
                d.with_note("tensors with another dimension can, but arrays of pointers, scratch memory and signals"),
            );
        }
        let mut ld = Vec::new();
        let strides = match written {
            Ok((list, span)) => {
                if list.len() != rank {
                    let message = format!("{} for {}", counted(list.len(), "stride"), counted(rank, "dimension"));
                    let d = Diagnostic::error(codes::WRONG_COUNT, span, message);
                    self.error(if pointers {
                        d.with_note("the first dimension has addresses; give the strides of the others, in elements")
                    } else {
                        let d = d.with_note("give one stride per dimension, in elements: `strides (lda, 1)`");
                        self.with_leading_stride(d, name, (list.len(), rank))
                    });
                }
                if let Some(Dim::Tuple(_, at)) = dims.iter().take(front).find(|dim| matches!(dim, Dim::Tuple(..))) {
                    let message = "the dimension that counts addresses has several extents";
                    self.error(Diagnostic::error(codes::BAD_SHAPE, *at, message).with_note("write their product"));
                }
                let own = dims.into_iter().skip(front).filter(|dim| !matches!(dim, Dim::Repeats(_)));
                let list = own.zip(list).map(|(dim, stride)| self.dim_stride(dim, stride));
                Strides::Explicit(list.collect::<Parsed<_>>()?)
            }
            Err(order) => {
                ld = self.leading_strides(name, name_span, rank);
                Strides::Ordered(order)
            }
        };
        self.spot(FixLocation::Tensor, self.since(name_span));
        let blanks = self.blanks();
        let multiple = if self.eat_word("multiple") { Some(self.expr()?) } else { None };
        self.noted(FixLocation::Multiple, blanks, multiple.is_some());
        let align = if self.eat_word("align") { Some(self.small_int("an alignment in bytes")?) } else { None };
        let blanks = self.blanks();
        let constant = self.eat_word("constant");
        self.noted(FixLocation::Constant, blanks, constant);
        Ok(TensorTy { elem, shape, repeats, strides, padded, ld, pointers, scratch, align, multiple, constant })
    }

    /// `T[..]`, after `dsmem`: contiguous, the last dimension innermost.
    pub(super) fn cluster_memory(&mut self) -> Parsed<TensorTy> {
        let elem = self.elem_ref()?;
        let shape = self.shape_of(|p| p.expr())?;
        let mut strides = Vec::new();
        for d in 0..shape.len() {
            let span = self.kernel.expr_spans[shape[d]];
            let inner = shape[d + 1..].iter().fold(None, |product: Option<Expr>, &n| {
                let n = self.kernel.copy_expr(n);
                Some(product.map_or(n, |product| self.kernel.binary(Op::Mul, product, n, span)))
            });
            strides.push(DimStride::One(inner.unwrap_or_else(|| self.kernel.int(1, span))));
        }
        Ok(TensorTy {
            elem,
            shape,
            repeats: Vec::new(),
            strides: Strides::Explicit(strides),
            padded: Vec::new(),
            ld: Vec::new(),
            pointers: false,
            scratch: Some(Scratch::Cluster),
            align: None,
            multiple: None,
            constant: false,
        })
    }

    /// Adds a fix that inserts the stride of the rows of a matrix in front of the existing one, at the position of the
    /// message.
    fn with_leading_stride(&self, d: Diagnostic, name: &str, (given, rank): (usize, usize)) -> Diagnostic {
        let text = &self.source[d.span.start as usize..d.span.end as usize];
        match text.find('(').filter(|_| (given, rank) == (1, 2)) {
            Some(open) => {
                let at = d.span.start + open as u32 + 1;
                d.with_fix(Span { start: at, end: at }, format!("{name}_ld, "))
            }
            None => d,
        }
    }

    /// `h: H behind P`, in `padded (..)`.
    fn padded(&mut self) -> Parsed<Padded> {
        const FORM: &str =
            "padding is along lines with a run-time stride: `strides ((b, SH * h), (h, 1)) padded (h: H behind P)`";
        let span = self.span();
        let stride = match self.peek() {
            Tok::Word(word) if self.names_value(word) => self.expr()?,
            _ => return Err(self.expected_with_note("a stride of the tensor", FORM)),
        };
        let value = match self.kernel.exprs[stride] {
            ExprData::Ref(v) if matches!(self.kernel.values[v].def, ValueDef::Stride) => v,
            _ => {
                let d = Diagnostic::error(codes::BAD_SHAPE, self.since(span), "this is not a run-time stride");
                return Err(self.error(d.with_note(FORM)));
            }
        };
        self.expect_sign(":")?;
        let extent = self.expr()?;
        if !self.eat_word("behind") {
            return Err(self.expected_with_note("`behind`", FORM));
        }
        Ok(Padded { stride: value, extent, behind: self.expr()? })
    }

    /// `[n, (n, m), _, ..]`, perhaps empty.
    fn tensor_shape(&mut self) -> Parsed<Vec<Dim>> {
        self.shape_of(|p| {
            let span = p.span();
            if p.eat_word(REPEATS) { Ok(Dim::Repeats(span)) } else { p.dimension() }
        })
    }

    /// `e` or `(e, e, ..)`.
    fn dimension(&mut self) -> Parsed<Dim> {
        if !self.at_tuple() {
            return Ok(Dim::One(self.expr()?));
        }
        let span = self.bump().span;
        let list = self.comma_list(|p| p.expr())?;
        self.list_end(")")?;
        Ok(Dim::Tuple(list, self.since(span)))
    }

    /// At a `(` that a `,` follows before it closes, outside other brackets.
    fn at_tuple(&self) -> bool {
        let mut open = 0usize;
        for ahead in 0.. {
            match self.peek_at(ahead) {
                Tok::Sign("(") => open += 1,
                Tok::Sign(")") if open > 1 => open -= 1,
                Tok::Sign(",") if open == 1 => return true,
                Tok::Sign(")" | "]" | "{" | "}") | Tok::End => return false,
                _ if open == 0 => return false,
                _ => {}
            }
        }
        false
    }

    /// The extent of a dimension: of a tuple, the product.
    fn extent(&mut self, dim: &Dim) -> Expr {
        match dim {
            Dim::One(e) => *e,
            Dim::Repeats(span) => self.kernel.int(MAX_SIZE as i64, *span),
            Dim::Tuple(list, span) => {
                let product = list.iter().fold(None, |product: Option<Expr>, &e| {
                    let factor = self.kernel.copy_expr(e);
                    Some(match product {
                        Some(p) => self.kernel.binary(Op::Mul, p, factor, *span),
                        None => factor,
                    })
                });
                product.unwrap_or_else(|| self.kernel.int(1, *span))
            }
        }
    }

    /// Combines extents and strides of a dimension.
    fn dim_stride(&mut self, extents: Dim, strides: Dim) -> Parsed<DimStride> {
        let (n, m, at) = match (extents, strides) {
            (Dim::One(_), Dim::One(stride)) => return Ok(DimStride::One(stride)),
            (Dim::Tuple(extents, _), Dim::Tuple(strides, _)) if extents.len() == strides.len() => {
                let modes = extents.into_iter().zip(strides).map(|(extent, stride)| Mode { extent, stride });
                return Ok(DimStride::Modes(modes.collect()));
            }
            (Dim::Tuple(extents, _), Dim::Tuple(strides, at)) => (extents.len(), strides.len(), at),
            (Dim::One(_), Dim::Tuple(strides, at)) => (1, strides.len(), at),
            (Dim::Tuple(extents, _), Dim::One(stride)) => (extents.len(), 1, self.kernel.expr_spans[stride]),
            (Dim::Repeats(at), _) | (_, Dim::Repeats(at)) => (0, 1, at),
        };
        let message = format!("{} for a dimension of {}", counted(m, "stride"), counted(n, "extent"));
        Err(self.error(
            Diagnostic::error(codes::WRONG_COUNT, at, message)
                .with_note("strides are grouped as the extents are: `[(B, L), O] strides ((O * L, 1), L)`"),
        ))
    }

    fn tensor_order(&mut self) -> Parsed<OrderRef> {
        if let Some(order) = self.order_word() {
            return Ok(OrderRef::Known(order));
        }
        match self.peek() {
            Tok::Word("multiple") if !self.names_value("multiple") => Ok(OrderRef::Known(Order::Row)),
            Tok::Word("align") if matches!(self.peek_at(1), Tok::Int(_)) => Ok(OrderRef::Known(Order::Row)),
            Tok::Word("constant") if !self.names_value("constant") => Ok(OrderRef::Known(Order::Row)),
            Tok::Word("pointers") if !self.names_value("pointers") => Ok(OrderRef::Known(Order::Row)),
            Tok::Word(word)
                if !self.names_value(word)
                    && (AFTER_SHAPE.contains(&word) || self.near_word(word, AFTER_SHAPE).is_some()) =>
            {
                Err(self.expected("what describes a tensor, `,` or `)`"))
            }
            Tok::Word(word) if !is_reserved(word) => {
                let span = self.bump().span;
                self.const_param(word, span, "a layout").map(OrderRef::Param)
            }
            _ => Ok(OrderRef::Known(Order::Row)),
        }
    }

    /// Declares `A_ld`, or `A_ld0 ..` if there are more than two dimensions.
    fn leading_strides(&mut self, name: &str, span: Span, rank: usize) -> Vec<Value> {
        (0..rank.saturating_sub(1))
            .map(|i| {
                let stride = if rank == 2 { format!("{name}_ld") } else { format!("{name}_ld{i}") };
                let value = self.declare(&stride, span, ValueDef::Stride);
                self.kernel.strides.push(value);
                value
            })
            .collect()
    }

    /// Runs `f` with unknown names becoming declarations.
    fn declaring<T>(&mut self, unknown: Unknown, f: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.names.unknown, unknown);
        let result = f(self);
        self.names.unknown = before;
        result
    }
}
