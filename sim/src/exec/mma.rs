//! `mma.sync`: from modifiers to a form of `numerics`, and its execution on the registers of a warp.

use super::Fail;
use super::warp::Warp;
use crate::numerics::Round;
use crate::numerics::mma::{self, Acc, Elem, Form, Generation, Layout, MmaError, Pairs, Shape, Small};
use crate::program::R;
use crate::report::ReportKind;

/// A product with its registers.
#[derive(Clone, Debug)]
pub(crate) struct Mma {
    kind: Kind,
    d: Vec<R>,
    a: Vec<R>,
    b: Vec<R>,
    c: Vec<R>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
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

    /// Executes it; the warp is whole.
    pub(crate) fn run(&self, warp: &mut Warp, device: Generation) -> Result<(), Box<Fail>> {
        let sources = [&self.a, &self.b, &self.c];
        let defined = |warp: &Warp, r: R| match self.kind {
            Kind::Narrow(_) | Kind::Small(_) => warp.w[r as usize].ok,
            Kind::F64 { .. } => warp.l[r as usize].ok,
        };
        // An undefined element spoils elements of other lanes; which ones is not worth keeping track of.
        let all = sources.iter().flat_map(|s| s.iter()).fold(u32::MAX, |ok, r| ok & defined(warp, *r));
        let ok = if all == u32::MAX { u32::MAX } else { 0 };
        let failed = |e: MmaError| Fail::new(ReportKind::Invalid, format!("{e} ({device:?})"));
        match &self.kind {
            Kind::Small(small) => {
                let gather = |regs: &[R]| -> Vec<[u32; 32]> { regs.iter().map(|r| warp.w[*r as usize].v).collect() };
                let (a, b, c) = (gather(&self.a), gather(&self.b), gather(&self.c));
                let mut d = vec![[0u32; 32]; self.d.len()];
                small.run(device, &a, &b, &c, &mut d).map_err(failed)?;
                for (r, v) in self.d.iter().zip(&d) {
                    warp.put32(*r, u32::MAX, v, ok);
                }
            }
            Kind::Narrow(form) => {
                let gather = |regs: &[R], out: &mut [[u32; 32]; 8]| {
                    for (slot, r) in out.iter_mut().zip(regs) {
                        *slot = warp.w[*r as usize].v;
                    }
                };
                let mut parts = [[[0u32; 32]; 8]; 4];
                let [a, b, c, d] = &mut parts;
                gather(&self.a, a);
                gather(&self.b, b);
                gather(&self.c, c);
                let (na, nb, nc, nd) = (self.a.len(), self.b.len(), self.c.len(), self.d.len());
                mma::mma(form, device, &a[..na], &b[..nb], &c[..nc], &mut d[..nd]).map_err(failed)?;
                for (r, v) in self.d.iter().zip(d.iter()) {
                    warp.put32(*r, u32::MAX, v, ok);
                }
            }
            Kind::F64 { m, k, round } => {
                let gather = |regs: &[R]| -> Vec<[u64; 32]> { regs.iter().map(|r| warp.l[*r as usize].v).collect() };
                let (a, b, c) = (gather(&self.a), gather(&self.b), gather(&self.c));
                let mut d = vec![[0u64; 32]; self.d.len()];
                mma::mma_f64((*m, *k), *round, &a, &b, &c, &mut d).map_err(failed)?;
                for (r, v) in self.d.iter().zip(&d) {
                    warp.put64(*r, u32::MAX, v, ok);
                }
            }
        }
        Ok(())
    }
}

fn elem(word: &str) -> Option<Elem> {
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

fn acc(word: &str) -> Option<Acc> {
    Some(match word {
        "f16" => Acc::F16,
        "f32" => Acc::F32,
        "s32" => Acc::S32,
        _ => return None,
    })
}
