//! Address of an element of a tensor whose dimensions have several modes or padding: its digits in the modes, and the resulting offset.

use super::windows::{Numbers, value_of};
use std::collections::BTreeSet;
use tilec_ir::bits::Bits;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, ValueDef};
use tilec_ir::names::Parts;
use tilec_ir::padded::{mode_strides, step};
use tilec_ir::print::print_expr;
use tilec_ir::types::{DimStride, GivenStride, TensorTy};

/// The place in words; `None`: no dimension is of several modes, and there is no padding. `sizes`: the values of sizes, as far as they are known.
pub(super) fn in_memory(k: &Kernel, v: Value, (elem, coords): (Bits, &[u64]), sizes: &Numbers) -> Option<String> {
    let t = k.tensor_ty(v)?;
    if t.padded.is_empty() && (0..t.shape.len()).all(|d| t.modes(d).is_none()) {
        return None;
    }
    Some(match place(k, t, coords, sizes) {
        Ok(place) => place.in_words(elem),
        Err(unknown) => {
            let mut open = vec![unknown];
            open.extend(counted(k, t).into_iter().filter(|&e| value_of(k, e, sizes).is_none()));
            let mut names = BTreeSet::new();
            for e in open {
                let mut parts = Parts::of(k, e);
                while let Some(e) = parts.take() {
                    parts.inside(e);
                    if let ExprData::Ref(v) = k.exprs[e]
                        && matches!(k.values[v].def, ValueDef::Size)
                        && !sizes.contains_key(&v)
                    {
                        names.insert(k.values[v].name.as_str());
                    }
                }
            }
            let names: Vec<&str> = names.into_iter().collect();
            format!("; its place in memory depends on sizes: give values of `{}` after the file", names.join("`, `"))
        }
    })
}

/// The numbers that the place of an element depends on.
fn counted(k: &Kernel, t: &TensorTy) -> Vec<Expr> {
    let mut all: Vec<Expr> = t.padded.iter().flat_map(|p| [p.extent, p.behind]).collect();
    for d in 0..t.shape.len() {
        all.extend(t.modes(d).unwrap_or_default().iter().skip(1).map(|mode| mode.extent));
        let strides = mode_strides(t, d).unwrap_or_default();
        all.extend(strides.into_iter().filter_map(|e| step(k, t, e)).flat_map(|step| step.factors));
    }
    all
}

/// Where an element is.
struct Place {
    /// Its digits, as text: of dimensions of several modes.
    digits: Vec<String>,
    /// Elements in front of it that are no multiple of a run-time stride.
    constant: i64,
    /// Run-time strides, and how often each.
    terms: Vec<(i64, String)>,
    /// Why no memory holds it.
    outside: Option<String>,
}

/// The place of an element, or what must be known for it.
fn place(k: &Kernel, t: &TensorTy, coords: &[u64], sizes: &Numbers) -> Result<Place, Expr> {
    let value = |e: Expr| value_of(k, e, sizes).ok_or(e);
    let mut lines = vec![0i64; t.padded.len()];
    let mut out = Place { digits: Vec::new(), constant: 0, terms: Vec::new(), outside: None };
    for (d, &at) in coords.iter().enumerate() {
        let at = i64::try_from(at).unwrap_or(i64::MAX);
        let Some(GivenStride::Written(stride)) = t.given_stride(d) else { continue };
        let own: Vec<(i64, Expr)> = match stride {
            DimStride::One(stride) => vec![(at, *stride)],
            DimStride::Modes(modes) => {
                let mut rest = at;
                let mut own = Vec::new();
                for (i, mode) in modes.iter().enumerate().rev() {
                    // The outermost digit is what is left, so its extent only says where the tensor ends.
                    let digit = match i {
                        0 => rest,
                        _ => {
                            let extent = value(mode.extent)?.max(1);
                            let digit = rest % extent;
                            rest /= extent;
                            digit
                        }
                    };
                    own.push((digit, mode.stride));
                }
                own.reverse();
                if value(modes[0].extent).is_ok_and(|extent| own[0].0 >= extent) {
                    out.outside = Some("beyond the end of the tensor".to_owned());
                }
                let names: Vec<String> = modes.iter().map(|mode| print_expr(k, mode.extent)).collect();
                let digits: Vec<String> = own.iter().map(|(digit, _)| digit.to_string()).collect();
                out.digits.push(format!("({}) at ({})", names.join(", "), digits.join(", ")));
                own
            }
        };
        for (digit, stride) in own {
            match step(k, t, stride) {
                Some(step) => {
                    let factors = step.factors.iter().map(|&e| value(e)).collect::<Result<Vec<i64>, Expr>>()?;
                    let apart = factors.iter().fold(i64::try_from(step.literal).unwrap_or(0), |all, n| all * n);
                    lines[step.of] += digit * apart;
                }
                None => out.add(k, digit, stride),
            }
        }
    }
    for (padded, line) in t.padded.iter().zip(lines) {
        let line = line - value(padded.behind)?;
        let name = &k.values[padded.stride].name;
        if line < 0 || line >= value(padded.extent)? {
            out.outside = Some(format!("in the padding (line {line} along `{name}`)"));
        }
        if line != 0 {
            out.terms.push((line, name.clone()));
        }
    }
    Ok(out)
}

impl Place {
    /// A digit of a mode without padding.
    fn add(&mut self, k: &Kernel, digit: i64, stride: Expr) {
        match k.as_int(stride) {
            Some(n) => self.constant += digit * n,
            None if digit != 0 => self.terms.push((digit, print_expr(k, stride))),
            None => {}
        }
    }

    fn in_words(&self, elem: Bits) -> String {
        let digits = match self.digits.is_empty() {
            true => String::new(),
            false => format!("; {}", self.digits.join(", ")),
        };
        if let Some(outside) = &self.outside {
            return format!("{digits}; {outside}: no byte of memory holds it, and it reads as zero");
        }
        let factor = |(n, stride): &(i64, String)| match n {
            1 => stride.clone(),
            n => format!("{n} * {stride}"),
        };
        let mut sum: Vec<String> = self.terms.iter().map(factor).collect();
        if self.constant != 0 || sum.is_empty() {
            sum.push(self.constant.to_string());
        }
        let sum = sum.join(" + ");
        match u64::from(elem.get()) {
            8 => format!("{digits}; byte {sum} of the tensor"),
            bits if bits % 8 == 0 => format!("{digits}; byte {} * ({sum}) of the tensor", bits / 8),
            bits => format!("{digits}; element {sum} of the tensor, each of {bits} bits"),
        }
    }
}
