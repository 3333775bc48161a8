//! Names and strings of C.

use std::fmt::Write as _;

/// Characters of a string literal that every C99 compiler takes (5.2.4.1).
const LITERAL: usize = 4000;

/// Words that cannot be member names: keywords of C and C++, fixed members of every argument structure, types and
/// functions that the header uses, and object-like macros of compilers, the standard headers, POSIX and Windows.
const TAKEN: &[&str] = &[
    "BUFSIZ",
    "CONST",
    "CUdeviceptr",
    "EDOM",
    "EILSEQ",
    "EOF",
    "ERANGE",
    "ERROR",
    "FALSE",
    "HUGE_VAL",
    "HUGE_VALF",
    "HUGE_VALL",
    "I",
    "IN",
    "INFINITY",
    "MB_CUR_MAX",
    "NAN",
    "NULL",
    "OPTIONAL",
    "OUT",
    "RAND_MAX",
    "TRUE",
    "VOID",
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "compl",
    "complex",
    "const",
    "const_cast",
    "constexpr",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "environ",
    "errno",
    "explicit",
    "export",
    "extern",
    "false",
    "far",
    "float",
    "for",
    "friend",
    "goto",
    "i386",
    "if",
    "imaginary",
    "inline",
    "int",
    "int16_t",
    "int32_t",
    "int64_t",
    "int8_t",
    "interface",
    "linux",
    "long",
    "memset",
    "mutable",
    "namespace",
    "near",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "restrict",
    "return",
    "short",
    "signals",
    "signals_bytes",
    "signed",
    "size_t",
    "sizeof",
    "small",
    "static",
    "static_assert",
    "static_cast",
    "stderr",
    "stdin",
    "stdout",
    "struct",
    "sun",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "uint8_t",
    "union",
    "unix",
    "unsigned",
    "using",
    "vax",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "workspace",
    "workspace_bytes",
    "xor",
    "xor_eq",
];

/// A name of the program as the name of a member.
pub(super) fn member(name: &str) -> String {
    let stem = name.trim_end_matches('_');
    // A name that ends in `_` gets another one, so that different names stay different.
    let ours = ["tilec_", "TILEC_"].iter().any(|own| stem.starts_with(own));
    if ours || TAKEN.contains(&stem) { format!("{name}_") } else { name.to_owned() }
}

/// A file name as the beginning of names.
pub(super) fn identifier(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let word: String = text.chars().map(plain).collect();
    match word.chars().next() {
        Some(first) if !first.is_ascii_digit() => word,
        _ => format!("k{word}"),
    }
}

/// Bytes as a string literal.
pub(super) fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for &b in bytes {
        match b {
            b'\n' => out.push_str("\\n"),
            // Three question marks could be a trigraph.
            b'"' | b'\\' | b'?' => out.extend(['\\', b.into()]),
            b' '..=b'~' => out.push(b.into()),
            _ => _ = write!(out, "\\{b:03o}"),
        }
    }
    out.push('"');
    out
}

/// A text as an array of strings, one line of it in each line, and none longer than compilers take.
pub(super) fn pieces(name: &str, text: &str) -> String {
    let mut out = format!("static const char *const {name}[] = {{\n");
    let mut room = LITERAL;
    let lines = text.split_inclusive('\n').flat_map(|line| line.as_bytes().chunks(LITERAL));
    for line in lines {
        if line.len() > room {
            out.push_str("    ,\n");
            room = LITERAL;
        }
        let _ = writeln!(out, "    {}", quoted(line));
        room -= line.len();
    }
    out.push_str("    , NULL};\n");
    out
}

/// A comment of one line.
pub(super) fn comment(text: &str) -> String {
    format!("/* {} */", text.replace("*/", "* /").replace("/*", "/ *"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names_and_stay_different() {
        assert_eq!(
            ["M", "new", "new_", "workspace", "I", "errno", "tilec_to"].map(member),
            ["M", "new_", "new__", "workspace_", "I_", "errno_", "tilec_to_"]
        );
        assert_eq!(["gemm", "2d-conv", "a.b", ""].map(identifier), ["gemm", "k2d_conv", "a_b", "k"]);
    }

    #[test]
    fn strings_hold_any_bytes() {
        assert_eq!(quoted("a\"\\?\n\té".as_bytes()), r#""a\"\\\?\n\011\303\251""#);
        let long = "x".repeat(9000) + "\nend\n";
        let text = pieces("p", &long);
        assert!(text.lines().all(|line| line.len() <= LITERAL + 8), "{text}");
        assert_eq!(text.matches('x').count(), 9000);
        assert_eq!(text.matches("    ,").count(), 3, "two between strings and one at the end: {text}");
    }
}
