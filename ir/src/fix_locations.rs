//! Places of the source that changes are made at, and that no entity has: a diagnostic about a kernel requests them.

/// What is at a place.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FixLocation {
    /// A number, with its sign.
    Number,
    /// `layout ..` of a tile, with the blanks in front.
    Layout,
    /// `over a, b` of a buffer, with the blanks in front.
    Over,
    /// `at n ..` of a buffer or channel, with the blanks in front.
    Place,
    /// `elected`, `spread` or `changing`, with the blanks in front.
    Lanes,
    /// `scratch` or `signals` of a tensor, with the blanks in front.
    Scratch,
    /// `multiple n` of a tensor, with the blanks in front.
    Multiple,
    /// `constant` of a tensor, with the blanks in front.
    Constant,
    /// All of a tensor's type that is in front of `multiple`.
    Tensor,
    /// The kind of a compile-time parameter.
    Kind,
    /// `<ATOM>` of a product.
    Atom,
    /// The number of a dimension, the last operand of a function.
    Axis,
    /// A number of a table.
    Element,
    /// The two dots of a range without an end.
    Dots,
    /// The number of elements of a range, `n` of `i..+n`.
    Count,
    /// `@(..)` in front of a statement, with the blanks after.
    Plan,
}
