//! Layout texts inside a program: calls the parsers of the layout algebra on the rest of the source, and continues
//! after the parsed text.

use crate::codes;
use crate::diag::{Diagnostic, Span};
use crate::layout::{LayoutParseError, RegLayout, SmemLayout, parse_reg_layout_prefix, parse_smem_layout_prefix};
use crate::parser::reader::{Parsed, Parser};

/// A layout of every kind.
const ANY: &str = "(1):(0)";

impl Parser<'_, '_> {
    /// A register or thread layout, right after `layout` or `threads`.
    pub(super) fn reg_layout(&mut self) -> Parsed<RegLayout> {
        self.layout_text(parse_reg_layout_prefix, "`((4,8),(2,2)):((2,16),(1,8))`")
    }

    /// A shared-memory layout, right after `layout`.
    pub(super) fn smem_layout(&mut self) -> Parsed<SmemLayout> {
        self.layout_text(parse_smem_layout_prefix, "`(128,32):(32,1) swizzle<2,3,3>`")
    }

    fn layout_text<L>(
        &mut self,
        parse: impl Fn(&str) -> Result<(L, usize), LayoutParseError>,
        example: &str,
    ) -> Parsed<L> {
        let start = self.span().start as usize;
        match parse(&self.source[start..]) {
            Ok((layout, used)) => {
                self.marks.layouts.push(Span::new(start, start + used));
                self.skip_bytes(start + used);
                Ok(layout)
            }
            // Where the text alone counts, any layout will do.
            Err(LayoutParseError { end: Some(end), .. })
                if self.text_alone
                    && let Ok((any, _)) = parse(ANY) =>
            {
                self.marks.layouts.push(Span::new(start, start + end));
                self.skip_bytes(start + end);
                Ok(any)
            }
            Err(e) => {
                let at = (start + e.offset).min(self.source.len());
                self.skip_bytes(at);
                let end = if at < self.span().start as usize { at } else { self.span().end as usize };
                let note =
                    e.instead.unwrap_or_else(|| format!("a layout is written `shape:stride`, for example {example}"));
                let message = format!("not a layout: {}", e.message);
                Err(self.error(Diagnostic::error(codes::BAD_LAYOUT, Span::new(at, end), message).with_note(note)))
            }
        }
    }

    /// Goes to the first token at or after byte `end`.
    fn skip_bytes(&mut self, end: usize) {
        while (self.span().start as usize) < end && self.peek() != crate::lexer::Tok::End {
            self.bump();
        }
    }
}
