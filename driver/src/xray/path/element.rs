//! Elements that are requested, and their syntax: `A[3,5]`, of a file with several kernels `gemm.A[3,5]`, in rows that memory names `A[rows[3],5]`.

use std::fmt;

/// An element that is requested.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Element {
    /// The kernel: its name, or that of the entry of a variant.
    pub kernel: Option<String>,
    /// A tensor or tile.
    pub name: String,
    /// Its coordinates.
    pub coords: Vec<Coord>,
}

/// A coordinate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Coord {
    /// A number.
    Number(u64),
    /// What an element of this tile of indices says, or of a tensor that is read as an index: `rows[3]`, `P[9]`.
    Named(String, Vec<u64>),
}

/// Coordinates that are all numbers.
pub(super) fn numbers(coords: &[Coord]) -> Option<Vec<u64>> {
    let number = |c: &Coord| match c {
        Coord::Number(n) => Some(*n),
        Coord::Named(..) => None,
    };
    coords.iter().map(number).collect()
}

impl Element {
    /// `A[3,5]`, `gemm.A[3,5]`, `A[rows[3],5]`; `None`: it is no element.
    pub fn parse(text: &str) -> Option<Element> {
        let (name, rest) = text.split_once('[')?;
        let coords: Option<Vec<Coord>> = apart(rest.strip_suffix(']')?).into_iter().map(Coord::parse).collect();
        let (kernel, name) = match name.trim().rsplit_once('.') {
            Some((kernel, name)) => (Some(kernel.to_owned()), name),
            None => (None, name.trim()),
        };
        Some(Element { kernel, name: name.to_owned(), coords: coords? })
    }
}

impl Coord {
    fn parse(text: &str) -> Option<Coord> {
        let text = text.trim();
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            return number(text).map(Coord::Number);
        }
        let is_name = |name: &str| {
            name.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        };
        let (name, inner) = match text.split_once('[') {
            Some((name, rest)) => (name.trim(), Some(rest.strip_suffix(']')?)),
            None => (text, None),
        };
        let coords: Option<Vec<u64>> = inner.map_or(Some(Vec::new()), |inner| inner.split(',').map(number).collect());
        is_name(name).then_some(Coord::Named(name.to_owned(), coords?))
    }
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|&n| n < 1 << 31)
}

/// A list divided at the commas that are in no brackets.
fn apart(text: &str) -> Vec<&str> {
    let (mut out, mut from, mut depth) = (Vec::new(), 0, 0i32);
    for (i, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                out.push(&text[from..i]);
                from = i + 1;
            }
            _ => {}
        }
    }
    out.push(&text[from..]);
    out
}

impl fmt::Display for Coord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Coord::Number(n) => n.fmt(f),
            Coord::Named(name, coords) if coords.is_empty() => f.write_str(name),
            Coord::Named(name, coords) => {
                let coords: Vec<String> = coords.iter().map(u64::to_string).collect();
                write!(f, "{name}[{}]", coords.join(", "))
            }
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernel = self.kernel.as_ref().map_or(String::new(), |kernel| format!("{kernel}."));
        let coords: Vec<String> = self.coords.iter().map(Coord::to_string).collect();
        write!(f, "{kernel}{}[{}]", self.name, coords.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_read_as_they_are_written() {
        for text in ["A[3]", "A[3, 5]", "gemm.A[3, 5]", "A[rows[3], 5]", "A[5, rows[3, 0]]", "A[row, 5]"] {
            assert_eq!(Element::parse(text).map(|e| e.to_string()).as_deref(), Some(text));
        }
        for wrong in ["A", "A[", "A[x[]", "A[x[y]]", "A[3 4]", "A[]", "A[-1]", "A[x[3],]", "A[x+1]"] {
            assert_eq!(Element::parse(wrong), None, "{wrong}");
        }
    }
}
