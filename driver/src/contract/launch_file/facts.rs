//! Launch facts in the PTX text, compared with a contract.

use crate::contract::{Contract, Param, ParamKind};
use tilec_sim::{ParseError, Program};

/// Facts of the PTX text.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) entries: Vec<Entry>,
    /// The first word of `.target`.
    pub(super) target: Option<String>,
    pub(super) version: Option<String>,
    /// Why there are no entries.
    pub(super) broken: Option<ParseError>,
}

/// A kernel, as its head describes it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    /// Bytes of each parameter, where its type is known.
    params: Vec<Option<u64>>,
    /// `.maxntid`: maximum number of threads, as a product over the axes.
    most_threads: Option<[u32; 3]>,
    /// `.reqntid`: these threads.
    threads: Option<[u32; 3]>,
    /// `.reqnctapercluster`.
    cluster: Option<[u32; 3]>,
}

impl Facts {
    /// Tokens are enough: PTX that the simulator does not support may still be launched.
    pub(super) fn of(ptx: &str) -> Facts {
        let mut facts = Facts::default();
        let text = without_comments(ptx);
        let mut words = Words(&text);
        while let Some(word) = words.next() {
            match word {
                ".target" => facts.target = words.next().map(str::to_owned),
                ".version" => facts.version = words.next().map(str::to_owned),
                ".entry" => facts.entries.push(Entry::of(&mut words)),
                _ => {}
            }
        }
        facts.broken = Program::parse(ptx).err().filter(|_| facts.entries.is_empty());
        facts
    }
}

impl Entry {
    /// From after `.entry` to the body.
    fn of(words: &mut Words<'_>) -> Entry {
        let mut entry = Entry { name: words.next().unwrap_or("").to_owned(), ..Entry::default() };
        let mut word = words.next();
        if word == Some("(") {
            let mut param = Vec::new();
            // A list that is not closed ends where the next kernel begins.
            while words.clone().next().is_some_and(|next| next != ".entry") {
                match words.next().unwrap_or(")") {
                    mark @ ("," | ")") => {
                        if !param.is_empty() {
                            entry.params.push(param_bytes(&param));
                            param.clear();
                        }
                        if mark == ")" {
                            break;
                        }
                    }
                    word => param.push(word),
                }
            }
            word = words.clone().next().filter(|next| *next != ".entry").and_then(|_| words.next());
        }
        while let Some(directive) = word.filter(|w| !["{", ";"].contains(w)) {
            let slot = match directive {
                ".maxntid" => &mut entry.most_threads,
                ".reqntid" => &mut entry.threads,
                ".reqnctapercluster" => &mut entry.cluster,
                _ => {
                    word = words.next();
                    continue;
                }
            };
            let mut axes = [1; 3];
            for axis in &mut axes {
                let number = words.next().and_then(|n| n.parse().ok());
                *axis = number.unwrap_or(1);
                word = words.next();
                if word != Some(",") {
                    break;
                }
            }
            *slot = Some(axes);
        }
        entry
    }
}

/// The bytes of a parameter: `.param .u64 .ptr .global .align 16 A`, `.param .align 64 .b8 map[128]`.
fn param_bytes(words: &[&str]) -> Option<u64> {
    let bits = |word: &&str| {
        let ty = word.strip_prefix('.')?;
        let digits = ty.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let (kind, bits) = (&ty[..ty.len() - digits.len()], digits.parse::<u64>().ok()?);
        (["b", "u", "s", "f", "bf"].contains(&kind) && [8, 16, 32, 64, 128].contains(&bits)).then_some(bits)
    };
    let element = words.iter().find_map(bits)? / 8;
    let name = words.last()?;
    let mut extents = name.split('[').skip(1).map(|extent| extent.trim_end_matches(']').parse::<u64>().ok());
    extents.try_fold(element, |bytes, extent| bytes.checked_mul(extent?))
}

/// Words of PTX without comments; brackets, braces, commas and semicolons are words.
#[derive(Clone)]
struct Words<'t>(&'t str);

impl<'t> Iterator for Words<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let mark = |c: char| "(){};,".contains(c);
        let text = self.0.trim_start();
        let first = text.chars().next()?;
        let end = if mark(first) { 1 } else { text.find(|c: char| c.is_whitespace() || mark(c)).unwrap_or(text.len()) };
        let (word, rest) = text.split_at(end);
        self.0 = rest;
        Some(word)
    }
}

/// The PTX with a space for each comment and string. Unclosed ones extend to the end.
fn without_comments(ptx: &str) -> String {
    let mut out = String::with_capacity(ptx.len());
    let mut rest = ptx;
    while let Some(at) = rest.find(['/', '"']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let (opening, closing) = match from {
            _ if from.starts_with("//") => (2, "\n"),
            _ if from.starts_with("/*") => (2, "*/"),
            _ if from.starts_with('"') => (1, "\""),
            _ => {
                out.push('/');
                rest = &from[1..];
                continue;
            }
        };
        out.push(' ');
        let inner = &from[opening..];
        rest = inner.find(closing).map_or("", |end| &inner[end + closing.len()..]);
    }
    out + rest
}

/// Differences between `contract` and the PTX that it launches; empty if none are visible in the PTX.
///
/// If both have a contract id, the ids decide, because PTX may be edited: its version and target are then not compared.
pub(crate) fn disagreement(contract: &Contract, ptx: &str) -> Vec<String> {
    let facts = Facts::of(ptx);
    let mut wrong = Vec::new();
    let ids = contract.id.as_deref().zip(Contract::id_in(ptx, &contract.entry));
    let name = &contract.entry;
    let Some(entry) = facts.entries.iter().find(|e| e.name == *name) else {
        if !facts.entries.is_empty() {
            let there: Vec<String> = facts.entries.iter().map(|e| format!("`{}`", e.name)).collect();
            wrong.push(format!("the PTX has no `.entry {name}`; it has {}", there.join(", ")));
        }
        return wrong;
    };
    if ids.is_none_or(|(own, of_ptx)| own != of_ptx) {
        for (what, own, of_ptx) in
            [(".target", &contract.target, &facts.target), (".version", &contract.ptx_version, &facts.version)]
        {
            if let Some(of_ptx) = of_ptx
                && own != of_ptx
            {
                wrong.push(format!("the PTX has `{what} {of_ptx}`, the description is for {own}"));
            }
        }
    }
    let axes = |[x, y, z]: [u32; 3]| format!("{x}, {y}, {z}");
    let threads = |block: [u32; 3]| block.iter().map(|n| u64::from(*n)).product::<u64>();
    let block = contract.block;
    if let Some(most) = entry.most_threads.filter(|most| threads(*most) < threads(block)) {
        wrong.push(format!("the PTX has `.maxntid {}`, the description a block of {}", axes(most), axes(block)));
    }
    if let Some(exactly) = entry.threads.filter(|exactly| *exactly != block) {
        wrong.push(format!("the PTX has `.reqntid {}`, the description a block of {}", axes(exactly), axes(block)));
    }
    if let Some(cluster) = entry.cluster.filter(|c| ![*c, [1; 3]].contains(&contract.cluster)) {
        let own = axes(contract.cluster);
        wrong.push(format!("the PTX has `.reqnctapercluster {}`, the description clusters of {own}", axes(cluster)));
    }
    let (own, of_ptx) = (contract.params.len(), entry.params.len());
    if own != of_ptx {
        let plural = if of_ptx == 1 { "" } else { "s" };
        wrong.push(format!("`{name}` takes {of_ptx} parameter{plural}, the description has {own}"));
    }
    for (i, (param, bytes)) in contract.params.iter().zip(&entry.params).enumerate().filter(|_| own == of_ptx) {
        let passed = passed_bytes(param);
        if let Some(bytes) = bytes.filter(|bytes| *bytes != passed) {
            let param = &param.name;
            wrong
                .push(format!("parameter {i} has {bytes} bytes in the PTX, `{param}` of the description has {passed}"));
        }
    }
    if let Some((own, of_ptx)) = ids.filter(|(own, of_ptx)| own != of_ptx) {
        wrong.push(format!("the PTX is launched by the contract {of_ptx}, the description is {own}"));
    }
    wrong
}

/// Bytes of a parameter as it is passed.
fn passed_bytes(param: &Param) -> u64 {
    match &param.kind {
        ParamKind::Tensor(_) | ParamKind::Pointers(_) | ParamKind::Stride { .. } => 8,
        ParamKind::Size { .. } => 4,
        ParamKind::TensorMap(_) => crate::contract::MAP_BYTES,
        ParamKind::Scalar { elem, .. } => elem.bytes_of(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::tests::gemm;

    const HEAD: &str = ".version 6.4\n.target sm_70, debug\n.address_size 64\n";
    const PARAMS: &str = ".param .u64 .ptr .global .align 16 a, .param .u64 b, .param .u64 c, .param .u32 m, .param .u32 k,
        .param .u32 n, .param .s64 x, .param .b8 y[8], .param .align 8 .b8 z[2][4], .param .f32 alpha, .param .b32 beta";

    fn ptx(directives: &str) -> String {
        format!("{HEAD}.visible .entry gemm({PARAMS})\n{directives}\n{{ ret; }}\n")
    }

    #[test]
    fn heads_of_kernels_are_read() {
        let entry =
            Words(" gemm ( .param .u32 n , .param .align 64 .b8 m[128] ) .maxntid 32, 4 .pragma \"x\"; .reqntid 7 {");
        let entry = Entry::of(&mut { entry });
        assert_eq!((entry.name.as_str(), &entry.params[..]), ("gemm", &[Some(4), Some(128)][..]));
        assert_eq!(entry.most_threads, Some([32, 4, 1]));
        assert_eq!(entry.threads, None, "a semicolon ends a declaration");
        assert_eq!(Entry::of(&mut Words("k { ret;")), Entry { name: "k".to_owned(), ..Entry::default() });
        assert_eq!(Entry::of(&mut Words("k(.param .texref t){")).params, [None]);
        assert_eq!(Entry::of(&mut Words("k(.param .b8 t[99999999999999999999])")).params, [None]);
        for cut in 0..PARAMS.len() {
            let _ = Entry::of(&mut Words(&PARAMS[cut..]));
        }
    }

    #[test]
    fn a_description_agrees_or_it_is_said_where_not() {
        let contract = gemm();
        let said = |contract: &Contract, ptx: &str| disagreement(contract, ptx).join("\n");
        assert_eq!(said(&contract, &ptx(".maxntid 128, 1, 1")), "");
        assert_eq!(said(&contract, &ptx("")), "");
        assert_eq!(said(&contract, &ptx(".maxntid 8, 32")), "", "fewer threads than the most are none too many");
        for (text, needle) in [
            (ptx("").replace("gemm(", "other("), "no `.entry gemm`; it has `other`"),
            (ptx("").replace("sm_70", "sm_80"), "`.target sm_80`, the description is for sm_70"),
            (ptx("").replace("6.4", "7.0"), "`.version 7.0`, the description is for 6.4"),
            (ptx(".maxntid 64"), "`.maxntid 64, 1, 1`, the description a block of 128, 1, 1"),
            (ptx(".reqntid 256"), "`.reqntid 256, 1, 1`"),
            (ptx("").replace("u32 n", "u64 n"), "parameter 5 has 8 bytes in the PTX, `N` of the description has 4"),
            (ptx("").replace(", .param .b32 beta", ""), "`gemm` takes 10 parameters, the description has 11"),
        ] {
            assert!(said(&contract, &text).contains(needle), "{needle}: {}", said(&contract, &text));
        }
        let mut clusters = contract;
        clusters.cluster = [2, 1, 1];
        let text = ptx(".reqnctapercluster 4");
        assert!(said(&clusters, &text).contains("`.reqnctapercluster 4, 1, 1`"), "{}", said(&clusters, &text));
    }

    #[test]
    fn ids_decide_where_both_have_one() {
        let contract = gemm().identified();
        let own = format!("// {}\n{}", contract.mark().expect("it has an id"), ptx(""));
        assert_eq!(disagreement(&contract, &own), [""; 0]);
        let edited = own.replace("6.4", "7.0").replace("ret;", "// ret;");
        assert_eq!(disagreement(&contract, &edited), [""; 0], "PTX may be edited");
        let mut other = gemm();
        other.grid[0] = "ceildiv(N, 64)".to_owned();
        let said = disagreement(&other.identified(), &own).join("\n");
        assert!(said.contains("the PTX is launched by the contract"), "{said}");
        assert_eq!(disagreement(&gemm(), &own), [""; 0], "a description by hand");
    }
}
