//! What can be wrong where the blocks of a cluster meet: its barrier, the blocks a copy is for, and where an arrival goes.

use super::operators::{Edit, Unit, delete, edit, literal};
use super::tensor;
use super::text::Statement;

/// Blocks of the largest cluster, as bits.
const BLOCKS: i64 = 0xFFFF;

pub(super) fn edits(_: &Unit, s: &Statement) -> Vec<Edit> {
    match s.root() {
        "barrier" if s.has("cluster") => barrier(s),
        "mapa" => peer(s),
        "mov" if s.operands.iter().any(|o| o == "%cluster_ctarank") => rank(s),
        _ if tensor::is_copy(s) && s.opcode.contains("multicast::cluster") => mask(s),
        _ => Vec::new(),
    }
}

/// The barrier of the cluster.
fn barrier(s: &Statement) -> Vec<Edit> {
    let mut edits = vec![delete()];
    if s.has("arrive") && !s.has("relaxed") {
        let words: Vec<&str> = s.words().filter(|w| *w != "release").collect();
        let at = words.iter().position(|w| *w == "arrive").map_or(words.len(), |i| i + 1);
        let mut words = words;
        words.insert(at, "relaxed");
        edits.push(edit("relaxed", s.with_opcode(&words.join("."))));
    }
    edits
}

/// The block that an address is of: another one, or always the own.
fn peer(s: &Statement) -> Vec<Edit> {
    let [d, a, rank] = &s.operands[..] else { return Vec::new() };
    let kind = if s.has("u64") { "u64" } else { "u32" };
    let own = s.rewritten(s.guard.as_ref(), &format!("mov.{kind}"), &[d.clone(), a.clone()]);
    let other = s.with_operand(2, "%mutant".to_owned());
    vec![
        edit("own block", own),
        edit("first block", s.with_operand(2, "0".to_owned())),
        edit("other block", format!("{{ .reg .b32 %mutant; xor.b32 %mutant, {rank}, 1; {other} }}")),
    ]
}

/// The number of the own block.
fn rank(s: &Statement) -> Vec<Edit> {
    let [d, rank] = &s.operands[..] else { return Vec::new() };
    let first = s.rewritten(s.guard.as_ref(), "mov.b32", &[d.clone(), "0".to_owned()]);
    let other =
        format!("{s} xor.b32 {d}, {d}, 1;", s = s.rewritten(s.guard.as_ref(), &s.opcode, &[d.clone(), rank.clone()]));
    vec![edit("first rank", first), edit("other rank", format!("{{ {other} }}"))]
}

/// The blocks that a multicast is for.
fn mask(s: &Statement) -> Vec<Edit> {
    let last = s.operands.len() - 1;
    let Some(n) = literal(&s.operands[last]).filter(|n| *n > 0) else { return Vec::new() };
    let masks = [("not the first", n & (n - 1)), ("not the last", n & !(1 << n.ilog2())), ("one more", n << 1 | n)];
    let fits = |m: i64| m != n && m & !BLOCKS == 0;
    masks
        .into_iter()
        .filter(|(_, m)| fits(*m))
        .map(|(name, m)| edit(name, s.with_operand(last, m.to_string())))
        .collect()
}
