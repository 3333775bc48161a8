//! Mutations of cluster synchronisation: the cluster barrier, the blocks of a multicast copy, and the target of an
//! arrival.

use super::bulk::is_copy;
use super::edit::{Edit, Unit, delete, edit, literal};
use super::text::Statement;

/// Blocks of the largest cluster, as bits.
const BLOCKS: i64 = 0xFFFF;

pub(super) fn edits(unit: &Unit, s: &Statement) -> Vec<Edit> {
    match s.root() {
        "barrier" if s.has("cluster") => barrier(s),
        "mapa" => peer(s),
        "mov" if s.operands.iter().any(|o| o == "%cluster_ctarank") => rank(unit, s),
        _ if is_copy(s) && s.opcode.contains("multicast::cluster") => mask(unit, s),
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

/// The number of the own block: none, or one that differs in one bit.
fn rank(unit: &Unit, s: &Statement) -> Vec<Edit> {
    let [d, rank] = &s.operands[..] else { return Vec::new() };
    let first = s.rewritten(s.guard.as_ref(), "mov.b32", &[d.clone(), "0".to_owned()]);
    let own = s.rewritten(s.guard.as_ref(), &s.opcode, &[d.clone(), rank.clone()]);
    let bits = std::iter::successors(Some(1), |bit| Some(bit * 2)).take_while(|&bit| bit == 1 || bit < unit.blocks);
    let other = bits.map(|bit| {
        let name = if bit == 1 { "other rank".to_owned() } else { format!("rank {bit} further") };
        edit(name, format!("{{ {own} xor.b32 {d}, {d}, {bit}; }}"))
    });
    [edit("first rank", first)].into_iter().chain(other).collect()
}

/// The blocks that a multicast is for.
fn mask(unit: &Unit, s: &Statement) -> Vec<Edit> {
    let last = s.operands.len() - 1;
    match literal(&s.operands[last]) {
        Some(n) if n > 0 => {
            let masks =
                [("not the first", n & (n - 1)), ("not the last", n & !(1 << n.ilog2())), ("one more", n << 1 | n)];
            let fits = |m: i64| m != n && m & !BLOCKS == 0;
            let masks = masks.into_iter().filter(|(_, m)| fits(*m));
            masks.map(|(name, m)| edit(name, s.with_operand(last, m.to_string()))).collect()
        }
        Some(_) => Vec::new(),
        // Computed from the number of the block: those of its row or column.
        None => {
            let mask = &s.operands[last];
            let all = (1i64 << unit.blocks) - 1;
            let with = |name, how: &str| {
                let copy = s.with_operand(last, "%mutant".to_owned());
                edit(name, format!("{{ .reg .b16 %mutant; {how} {copy} }}"))
            };
            let highest = format!(
                ".reg .b32 %mutant1; cvt.u32.u16 %mutant1, {mask}; bfind.u32 %mutant1, %mutant1; shl.b32 %mutant1, 1, %mutant1; \
                 cvt.u16.u32 %mutant, %mutant1;"
            );
            vec![
                with("not the first", &format!("sub.s16 %mutant, {mask}, 1; and.b16 %mutant, %mutant, {mask};")),
                with("not the last", &format!("{highest} xor.b16 %mutant, %mutant, {mask};")),
                with("the others", &format!("xor.b16 %mutant, {mask}, {all};")),
                edit("all blocks", s.with_operand(last, all.to_string())),
            ]
        }
    }
}
