//! Semantic tokens: the kind of each word.

use super::analysis::{Analysis, Symbol};
use super::symbols::{self, Kind};
use tilec_ir::diag::Span;
use tilec_ir::kernel::ValueDef;
use tilec_ir::outline::{Word, WordKind, clause_words};

/// The kind of a word, in the order of [`TokenKind::ALL`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TokenKind {
    /// A comment.
    Comment,
    /// A word of the language.
    Keyword,
    /// An element type, or a parameter that is one or a number.
    Type,
    /// A function, a kernel, a sequence.
    Function,
    /// A number.
    Number,
    /// An operator.
    Operator,
    /// A compile-time parameter.
    ConstParam,
    /// A parameter of a kernel.
    Parameter,
    /// Anything else with a name.
    Variable,
}

impl TokenKind {
    /// All kinds.
    pub const ALL: [TokenKind; 9] = [
        TokenKind::Comment,
        TokenKind::Keyword,
        TokenKind::Type,
        TokenKind::Function,
        TokenKind::Number,
        TokenKind::Operator,
        TokenKind::ConstParam,
        TokenKind::Parameter,
        TokenKind::Variable,
    ];
}

/// A word with its colour.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ColouredWord {
    /// What it is.
    pub kind: TokenKind,
    /// Where; of a comment over several lines, all of it.
    pub span: Span,
    /// It declares a name.
    pub declares: bool,
    /// Whether the named value is immutable.
    pub constant: bool,
}

/// The words of a text that have a colour, in order.
pub fn tokens(a: &Analysis) -> Vec<ColouredWord> {
    let clauses = clause_words();
    a.words().iter().filter_map(|word| token(a, &clauses, word)).collect()
}

fn token(a: &Analysis, clauses: &[&str], word: &Word) -> Option<ColouredWord> {
    let plain = |kind| Some(ColouredWord { kind, span: word.span, declares: false, constant: false });
    let text = a.slice(word.span);
    match word.kind {
        WordKind::Comment => plain(TokenKind::Comment),
        WordKind::Keyword => plain(TokenKind::Keyword),
        WordKind::Type => plain(TokenKind::Type),
        WordKind::Function => plain(TokenKind::Function),
        WordKind::Number => plain(TokenKind::Number),
        WordKind::Sign if text.starts_with(['(', ')', '[', ']', '{', '}', ',']) => None,
        WordKind::Sign => plain(TokenKind::Operator),
        WordKind::Name => match a.symbol_of(word.span) {
            Some(symbol) => Some(named(a, symbol, word.span)),
            None if clauses.contains(&text) => plain(TokenKind::Keyword),
            None => None,
        },
    }
}

fn named(a: &Analysis, symbol: Symbol, span: Span) -> ColouredWord {
    let (kind, constant) = match symbol {
        Symbol::Value(kernel, value) => {
            let def = &a.value(kernel, value).def;
            let kind = match symbols::kind(def) {
                Kind::ConstParam => TokenKind::ConstParam,
                Kind::Param => TokenKind::Parameter,
                _ => TokenKind::Variable,
            };
            let written = matches!(def, ValueDef::Var(_) | ValueDef::Smem(_) | ValueDef::Channel { .. });
            (kind, !written && !matches!(def, ValueDef::Tensor(_)))
        }
        Symbol::Kernel(_) | Symbol::Sequence(_) => (TokenKind::Function, false),
    };
    ColouredWord { kind, span, declares: a.definition(symbol) == span, constant }
}
