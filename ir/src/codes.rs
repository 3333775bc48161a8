//! The table of diagnostic codes. A code never changes its meaning; `tilec explain CODE` prints its text.
//!
//! Ranges: `E01..` text form, `E02..` names and types, `E03..` layouts, `E04..` passes and target limits, `E05..` lowering
//! and PTX legality, `E06..` the tool, the assembler and running.

use crate::diag::Code;

macro_rules! codes {
    ($($name:ident $code:literal $title:literal $text:literal;)+) => {
        $(#[doc = $title] pub const $name: Code = Code($code);)+

        /// Every code with its title and its explanation.
        pub const ALL: &[(Code, &str, &str)] = &[$(($name, $title, $text),)+];
    };
}

codes! {
    BAD_CHARACTER "E0101" "a character or literal that the language does not have"
        "The text contains a character, number or string that is not part of the tile language. Numbers are decimal or 0x hexadecimal integers that fit 63 bits, or decimal fractions with an optional exponent.";
    EXPECTED "E0102" "something else was expected here"
        "The parser found a word or sign where the grammar wants another. The message names both. `docs/language.md` has the grammar.";
    TOO_DEEP "E0103" "nesting is too deep"
        "Expressions, blocks and layouts may nest 64 levels deep. Split the expression with `let`.";
    TOO_LARGE "E0104" "the source is too large"
        "A source file may have 1 MiB, a kernel 4096 statements. Tile programs are short; generated ones should be split.";
}
