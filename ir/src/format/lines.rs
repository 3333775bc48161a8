//! Lines, their indentation, and the comments after them.

use super::lexemes::Piece;
use super::spacing::{Role, roles, spaced};
use crate::lexer::Tok;
use crate::parser::{HEADER_CLAUSES, Marks};

/// Columns of a step of indentation.
const STEP: usize = 4;
/// Least columns between code and a comment after it.
const GAP: usize = 2;

/// An open bracket.
struct Open {
    /// Column of the lines inside the bracket or block.
    content: usize,
    /// Column of a line that closes it.
    end: usize,
    is_block: bool,
    /// Whether its lines are statements, or nothing that is known to begin anywhere.
    has_statements: bool,
}

/// A line of the result.
struct Line {
    code: String,
    /// The comment after it.
    comment: String,
    part: Part,
    /// Whether an empty line is in front.
    apart: bool,
}

/// The construct that a line belongs to. Comments after lines of one construct are aligned.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Part {
    /// The name and the parameters of a kernel, or a sequence.
    Head,
    /// The clauses after them.
    Clauses,
    /// The bracket that opens the body, by itself.
    Bracket,
    /// The body.
    Body,
}

/// The text of the pieces.
pub(super) fn layout_lines(pieces: &[Piece<'_>], marks: &Marks) -> String {
    let roles = roles(pieces);
    let mut layout = Layout { pieces, roles: &roles, marks, open: Vec::new(), list: STEP, part: Part::Head };
    let mut lines: Vec<Line> = Vec::new();
    let mut at = 0;
    while at < pieces.len() {
        let mut end = at + 1;
        while end < pieces.len() && pieces[end].newlines == 0 && !pieces[end - 1].ends_line() {
            end += 1;
        }
        let apart = pieces[at].newlines > 1 && !lines.is_empty() && !pieces[at - 1].is("{") && !pieces[at].is("}");
        let mut line = layout.line(at, end);
        line.apart = apart;
        lines.push(line);
        at = end;
    }
    join(&lines)
}

/// Puts comments after consecutive lines of a part into one column.
fn join(lines: &[Line]) -> String {
    let width = |line: &Line| line.code.chars().count();
    let mut out = String::new();
    let mut column = 0;
    for (i, line) in lines.iter().enumerate() {
        if line.apart {
            out.push('\n');
        }
        out += &line.code;
        if !line.comment.is_empty() {
            let goes_on = |l: &Line| !l.comment.is_empty() && l.part == line.part;
            let follows = i > 0 && !line.apart && goes_on(&lines[i - 1]);
            if !follows {
                let run = lines[i..].iter().enumerate().take_while(|(n, l)| goes_on(l) && (*n == 0 || !l.apart));
                column = run.map(|(_, l)| width(l)).max().unwrap_or(0) + GAP;
            }
            out += &" ".repeat(column - width(line));
            out += &line.comment;
        }
        out.push('\n');
    }
    out
}

struct Layout<'a, 's> {
    pieces: &'a [Piece<'s>],
    roles: &'a [Role],
    marks: &'a Marks,
    open: Vec<Open>,
    /// Column of the list after `where` or `require`.
    list: usize,
    /// What the last line was a part of.
    part: Part,
}

impl Layout<'_, '_> {
    /// The line of these pieces; updates the open brackets.
    fn line(&mut self, first: usize, end: usize) -> Line {
        let indent = self.indent(first);
        self.part = self.part_of(first);
        let in_bracket = self.open.last().is_some_and(|o| !o.is_block);
        let mut code = " ".repeat(indent);
        let mut column = indent;
        let mut comment = String::new();
        for i in first..end {
            let piece = &self.pieces[i];
            if i > first && piece.ends_line() {
                comment = piece.text.to_owned();
                break;
            }
            if i > first && spaced(self.marks, (&self.pieces[i - 1], self.roles[i - 1]), (piece, self.roles[i])) {
                code.push(' ');
                column += 1;
            }
            code += piece.text;
            // The column after a multi-line comment follows from its last line.
            column = match piece.text.rsplit_once('\n') {
                Some((_, last)) => last.chars().count(),
                None => column + piece.text.chars().count(),
            };
            if matches!(piece.tok, Tok::Word("where" | "require")) && self.open.is_empty() {
                self.list = column + 1;
            }
            let ends = i + 1 == end || self.pieces[i + 1].ends_line();
            self.bracket(i, (indent, in_bracket, column), ends);
        }
        Line { code, comment, part: self.part, apart: false }
    }

    /// The construct of the line that begins with this lexeme. A line that begins none belongs to that of the previous
    /// line.
    fn part_of(&self, first: usize) -> Part {
        if self.open.iter().any(|open| open.has_statements) {
            return Part::Body;
        }
        let piece = self.pieces[first..].iter().find(|p| !p.is_comment());
        match piece.filter(|_| self.open.is_empty()) {
            Some(piece) if piece.is("{") && self.has_statements(piece) => Part::Bracket,
            Some(Piece { tok: Tok::Word("kernel" | "sequence"), .. }) => Part::Head,
            Some(Piece { tok: Tok::Word(word), .. }) if HEADER_CLAUSES.contains(word) => Part::Clauses,
            _ => self.part,
        }
    }

    /// Notes a bracket that ends at `column` of a line that begins at `indent`, perhaps inside of another; `ends`: with it.
    fn bracket(&mut self, i: usize, (indent, in_bracket, column): (usize, bool, usize), ends: bool) {
        let role = self.roles[i];
        let Tok::Sign(sign) = self.pieces[i].tok else { return };
        match sign {
            "{" => {
                let has_statements = self.has_statements(&self.pieces[i]);
                // Blocks of statements are under their statement, of clauses under the line of the clause.
                let end = if has_statements { self.block_content() } else { indent };
                self.open.push(Open { content: end + STEP, end, is_block: true, has_statements });
            }
            "(" | "[" => self.open_bracket((indent, in_bracket, column), ends),
            "<" if role == Role::Opens => self.open_bracket((indent, in_bracket, column), ends),
            ")" | "]" | "}" => {
                self.open.pop();
            }
            ">" if role == Role::Closes => {
                self.open.pop();
            }
            _ => {}
        }
    }

    fn open_bracket(&mut self, (indent, in_bracket, column): (usize, bool, usize), ends: bool) {
        let end = match self.open.last() {
            Some(o) if !o.is_block => o.content,
            // The line began inside of a bracket that has closed since.
            _ if in_bracket => self.block_content(),
            _ => indent,
        };
        let content = if ends { end + STEP } else { column };
        self.open.push(Open { content, end, is_block: false, has_statements: false });
    }

    /// Column of the statements of the innermost block.
    fn block_content(&self) -> usize {
        self.open.iter().rev().find(|o| o.is_block).map_or(0, |o| o.content)
    }

    /// Whether the block that opens here is one of statements.
    fn has_statements(&self, piece: &Piece<'_>) -> bool {
        self.marks.blocks.binary_search(&piece.at).is_ok()
    }

    /// Whether a statement, or what is like one, begins here.
    fn begins(&self, piece: &Piece<'_>) -> bool {
        self.marks.starts.binary_search(&piece.at).is_ok()
    }

    /// Column of the line whose first piece this is.
    fn indent(&self, first: usize) -> usize {
        let Some(next) = self.pieces[first..].iter().position(|p| !p.is_comment()) else { return 0 };
        let is_comment = next > 0;
        let piece = &self.pieces[first + next];
        let innermost = self.open.last();
        let closes = matches!(piece.tok, Tok::Sign(")" | "]" | "}")) || self.roles[first + next] == Role::Closes;
        if closes {
            return innermost.map_or(0, |o| if is_comment { o.content } else { o.end });
        }
        let content = innermost.map_or(0, |o| o.content);
        let before = self.pieces[..first].iter().rev().find(|p| !p.is_comment());
        let goes_on = before.is_some_and(|p| matches!(p.tok, Tok::Sign(s) if !matches!(s, ")" | "]" | "}" | "{")));
        if innermost.is_some_and(|o| !o.is_block) {
            // An item of a list, or an operand; else a clause of what the line before began.
            let operator = matches!(piece.tok, Tok::Sign(s) if !matches!(s, "(" | "[" | "{"));
            return if goes_on || operator { content } else { content + STEP };
        }
        let body = piece.is("{") && self.has_statements(piece);
        if self.begins(piece) || piece.tok == Tok::Word("else") || body || before.is_none() {
            return content;
        }
        if innermost.is_none() && goes_on {
            return self.list;
        }
        let clause = innermost.is_some_and(|o| !o.has_statements);
        if clause && !goes_on { content } else { content + STEP }
    }
}
