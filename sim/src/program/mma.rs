//! Warp-level `mma` instructions as decoded.

use crate::numerics::Round;
use crate::numerics::mma::{Acc, Elem, Form, Layout, Pairs, Shape, Small};
use crate::program::types::R;

/// An `mma` with its registers.
#[derive(Clone, Debug)]
pub(crate) struct Mma {
    pub(crate) kind: Kind,
    pub(crate) d: Vec<R>,
    pub(crate) a: Vec<R>,
    pub(crate) b: Vec<R>,
    pub(crate) c: Vec<R>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Narrow(Form),
    Small(Small),
    F64 { m: usize, k: usize, round: Round },
}

impl Mma {
    /// The instruction its modifiers name: `sync aligned shape alayout blayout [satfinite|rounding] d a b c [op popc]`.
    pub(crate) fn from_words(words: &[&str], d: Vec<R>, a: Vec<R>, b: Vec<R>, c: Vec<R>) -> Option<Mma> {
        let pairs = if words.contains(&"xor") { Some(Pairs::Xor) } else { None };
        let pairs = if words.contains(&"and") { Some(Pairs::And) } else { pairs };
        let words = words.get(..words.len() - if pairs.is_some() { 2 } else { 0 })?;
        let (shape, layouts, types) = (words.get(2)?, words.get(3..5)?, words.get(words.len().checked_sub(4)?..)?);
        let small = |word: &str| matches!(word, "s4" | "u4" | "b1");
        if small(types[1]) && small(types[2]) {
            let signed = |word: &str| word == "s4";
            let products = Pairs::Products { a_signed: signed(types[1]), b_signed: signed(types[2]) };
            let small = Small {
                m: if shape.starts_with("m16") { 16 } else { 8 },
                k: shape.rsplit('k').next()?.parse().ok()?,
                pairs: pairs.unwrap_or(products),
                satfinite: words.contains(&"satfinite"),
            };
            return Some(Mma { kind: Kind::Small(small.checked()?), d, a, b, c });
        }
        if types[0] == "f64" {
            let (m, k) = (
                if shape.starts_with("m16") { 16 } else { 8 },
                if shape.ends_with("k8") {
                    8
                } else if shape.ends_with("k16") {
                    16
                } else {
                    4
                },
            );
            let round = match words.get(5).copied() {
                Some("rz") => Round::Zero,
                Some("rm") => Round::Down,
                Some("rp") => Round::Up,
                _ => Round::Nearest,
            };
            return Some(Mma { kind: Kind::F64 { m, k, round }, d, a, b, c });
        }
        let layout = |w: &str| if w == "col" { Layout::Col } else { Layout::Row };
        let form = Form {
            shape: match *shape {
                "m8n8k4" => Shape::M8N8K4,
                "m8n8k16" => Shape::M8N8K16,
                "m16n8k4" => Shape::M16N8K4,
                "m16n8k8" => Shape::M16N8K8,
                "m16n8k16" => Shape::M16N8K16,
                "m16n8k32" => Shape::M16N8K32,
                _ => return None,
            },
            a_layout: layout(layouts[0]),
            b_layout: layout(layouts[1]),
            a: elem(types[1])?,
            b: elem(types[2])?,
            c: acc(types[3])?,
            d: acc(types[0])?,
            satfinite: words.contains(&"satfinite"),
        };
        Some(Mma { kind: Kind::Narrow(form.checked()?), d, a, b, c })
    }
}

pub(crate) fn elem(word: &str) -> Option<Elem> {
    Some(match word {
        "f16" => Elem::F16,
        "bf16" => Elem::Bf16,
        "tf32" => Elem::Tf32,
        "e4m3" => Elem::E4m3,
        "e5m2" => Elem::E5m2,
        "s8" => Elem::S8,
        "u8" => Elem::U8,
        _ => return None,
    })
}

pub(crate) fn acc(word: &str) -> Option<Acc> {
    Some(match word {
        "f16" => Acc::F16,
        "f32" => Acc::F32,
        "s32" => Acc::S32,
        _ => return None,
    })
}
