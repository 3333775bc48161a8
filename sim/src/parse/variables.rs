//! Declarations of variables and parameters, with their initial values (PTX 5.4).

use super::lex::Tok;
use super::module::{Parser, Result};
use super::raw::{RawVar, Space, Ty};

/// No array is larger: the text of a module is hostile until proven otherwise.
const MAX_ARRAY: u64 = 1 << 28;

impl<'a> Parser<'a> {
    /// `.param .u64 .ptr .global .align 16 name` or `.param .align 8 .b8 name[16]`.
    pub(super) fn parameter(&mut self) -> Result<RawVar<'a>> {
        let mut align = None;
        if self.eat_dot("align") {
            align = Some(self.int()?);
        }
        let ty = self.ty()?;
        if self.eat_dot("ptr") {
            for space in ["global", "shared", "const", "local"] {
                if self.eat_dot(space) {
                    break;
                }
            }
            if self.eat_dot("align") {
                self.int()?;
            }
        }
        self.declarator(Space::Param, ty, align, false)
    }

    fn declarator(&mut self, space: Space, ty: Ty, align: Option<u64>, external: bool) -> Result<RawVar<'a>> {
        let pos = self.pos();
        let name = self.name("a variable name")?;
        let elem = u64::from(ty.bytes());
        if elem == 0 {
            return Err(pos.error("a predicate cannot be in memory"));
        }
        let mut bytes = Some(elem);
        while self.eat(b'[') {
            if self.eat(b']') {
                bytes = None;
                continue;
            }
            let n = self.int()?;
            self.expect(b']')?;
            bytes = bytes.and_then(|b| b.checked_mul(n)).filter(|b| *b <= MAX_ARRAY);
            if bytes.is_none() {
                return Err(pos.error(format!("`{name}` is too large")));
            }
        }
        let align = align.unwrap_or(elem);
        if !align.is_power_of_two() || align > 1 << 16 {
            return Err(pos.error(format!("alignment {align} is not a power of two up to 65536")));
        }
        let mut init = Vec::new();
        if self.eat(b'=') {
            if external || !matches!(space, Space::Global | Space::Const) {
                return Err(pos.error(format!("`{name}` cannot have an initial value")));
            }
            self.initialiser(ty, &mut init)?;
            match bytes {
                None => bytes = Some(init.len() as u64),
                Some(b) if (init.len() as u64) > b => return Err(pos.error(format!("too many values for `{name}`"))),
                Some(_) => {}
            }
        }
        if bytes.is_none() && !(external && space == Space::Shared) {
            return Err(pos.error(format!("the size of `{name}` is missing")));
        }
        if external && bytes.is_some() {
            return Err(pos.error(format!("`{name}` is defined in another module: linking is not supported")));
        }
        Ok(RawVar { space, name, align, bytes, init, pos })
    }

    /// Values with any number of braces around them, in order.
    fn initialiser(&mut self, ty: Ty, out: &mut Vec<u8>) -> Result<()> {
        let mut depth = 0u32;
        loop {
            let pos = self.pos();
            if self.eat(b'{') {
                depth += 1;
                continue;
            }
            if !self.eat(b'}') {
                let negative = self.eat(b'-');
                let bits = match self.bump() {
                    Tok::Int(v) if negative => v.wrapping_neg(),
                    Tok::Int(v) => v,
                    Tok::F32(v) if ty.bytes() == 4 => u64::from(v),
                    Tok::F64(v) if ty.bytes() == 8 => v,
                    Tok::F64(v) if ty == Ty::F32 => u64::from((f64::from_bits(v) as f32).to_bits()),
                    other => return Err(pos.error(format!("expected a constant, found {}", other.show()))),
                };
                out.extend_from_slice(&bits.to_le_bytes()[..(ty.bytes() as usize).min(8)]);
            } else {
                depth = depth.checked_sub(1).ok_or_else(|| pos.error("unmatched `}`"))?;
            }
            while depth > 0 && self.eat(b'}') {
                depth -= 1;
            }
            if depth == 0 {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    /// `.shared .align 16 .b8 a[64], b[32];`.
    pub(super) fn variables(&mut self, external: bool) -> Result<Vec<RawVar<'a>>> {
        let pos = self.pos();
        let space = match self.bump() {
            Tok::Dot("shared") => Space::Shared,
            Tok::Dot("global") => Space::Global,
            Tok::Dot("const") => Space::Const,
            Tok::Dot("local") => Space::Local,
            Tok::Dot("param") => Space::Param,
            other => return Err(pos.error(format!("expected a state space, found {}", other.show()))),
        };
        let align = if self.eat_dot("align") { Some(self.int()?) } else { None };
        let ty = self.ty()?;
        let mut out = Vec::new();
        loop {
            out.push(self.declarator(space, ty, align, external)?);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b';')?;
        Ok(out)
    }
}
