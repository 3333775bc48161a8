//! Declarations of variables and parameters, with their initial values (PTX 5.4).

use super::constant::Value;
use super::cursor::Parser;
use super::error::Result;
use super::lex::{Pos, Tok};
use super::raw::{RawAddress, RawFormal, RawInit, RawReg, RawValue, RawVar};
use crate::program::types::{Space, Ty};

/// No array is larger: the text of a module is hostile until proven otherwise.
const MAX_ARRAY: u64 = 1 << 28;
const MAX_DIMENSIONS: usize = 16;

/// The variable that an initial value is for.
struct Shape<'n> {
    name: &'n str,
    ty: Ty,
    /// The last dimension is a vector, which is given whole.
    whole: bool,
    pos: Pos,
}

impl<'a> Parser<'a> {
    /// `.attribute(.managed, .unified(1, 2))`, if it is here, of a variable in `space` or of a function: host and devices see the
    /// same memory, or the same address. Whether it does.
    pub(super) fn attributes(&mut self, space: Option<Space>) -> Result<bool> {
        if !self.eat_dot("attribute") {
            return Ok(false);
        }
        self.expect(b'(')?;
        loop {
            let pos = self.pos();
            if self.eat_dot("managed") {
                if space != Some(Space::Global) {
                    return Err(pos.error("`.managed` goes with variables of `.global` alone"));
                }
            } else if self.eat_dot("unified") {
                if !matches!(space, None | Some(Space::Global)) {
                    return Err(pos.error("`.unified` goes with functions and variables of `.global` alone"));
                }
                self.expect(b'(')?;
                self.int()?;
                self.expect(b',')?;
                self.int()?;
                self.expect(b')')?;
            } else {
                return Err(self.expected("`.managed` or `.unified`"));
            }
            if !self.eat(b',') {
                self.expect(b')')?;
                return Ok(true);
            }
        }
    }

    /// `(.param .b32 a, .reg .b32 b)`.
    pub(super) fn formals(&mut self) -> Result<Vec<RawFormal<'a>>> {
        self.expect(b'(')?;
        let mut out = Vec::new();
        if self.eat(b')') {
            return Ok(out);
        }
        loop {
            if self.eat_dot("param") {
                out.push(RawFormal::Var(self.parameter()?));
            } else if self.eat_dot("reg") {
                let ty = self.ty()?;
                let pos = self.pos();
                let name = self.name("a register name")?;
                out.push(RawFormal::Reg(RawReg { ty, elements: 1, name, count: None, pos }));
            } else {
                return Err(self.expected("`.param` or `.reg`"));
            }
            if !self.eat(b',') {
                self.expect(b')')?;
                return Ok(out);
            }
        }
    }

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
        self.declarator(Space::Param, (ty, 1), align, false)
    }

    fn declarator(
        &mut self,
        space: Space,
        (ty, elements): (Ty, u32),
        align: Option<u64>,
        external: bool,
    ) -> Result<RawVar<'a>> {
        let pos = self.pos();
        let name = self.name("a variable name")?;
        let elem = u64::from(ty.bytes() * elements);
        if elem == 0 {
            return Err(pos.error("a predicate cannot be in memory"));
        }
        // Extents of an array; only the first may be left to the initial values.
        let mut extents = Vec::new();
        while self.eat(b'[') {
            if extents.is_empty() && self.eat(b']') {
                extents.push(None);
                continue;
            }
            if extents.len() == MAX_DIMENSIONS {
                return Err(pos.error(format!("`{name}` has more than {MAX_DIMENSIONS} dimensions")));
            }
            extents.push(Some(self.int()?));
            self.expect(b']')?;
        }
        let known = extents.iter().flatten().try_fold(elem, |b, n| b.checked_mul(*n)).filter(|b| *b <= MAX_ARRAY);
        let Some(known) = known else { return Err(pos.error(format!("`{name}` is too large"))) };
        let mut bytes = if extents.first() == Some(&None) { None } else { Some(known) };
        let align = align.unwrap_or(elem);
        if !align.is_power_of_two() || align > 1 << 16 {
            return Err(pos.error(format!("alignment {align} is not a power of two up to 65536")));
        }
        let mut init = Vec::new();
        if self.eat(b'=') {
            if external || !matches!(space, Space::Global | Space::Const) {
                return Err(pos.error(format!("`{name}` cannot have an initial value")));
            }
            if elements > 1 {
                extents.push(Some(u64::from(elements)));
            }
            let shape = Shape { name, ty, whole: elements > 1, pos };
            let outer = self.initialiser(&shape, &extents, 0, &mut init)?;
            if bytes.is_none() {
                bytes = known.checked_mul(outer).filter(|b| *b <= MAX_ARRAY);
                if bytes.is_none() {
                    return Err(pos.error(format!("`{name}` is too large")));
                }
            }
        }
        if bytes.is_none() && !(external && space == Space::Shared) {
            return Err(pos.error(format!("the size of `{name}` is missing")));
        }
        if bytes == Some(0) && space != Space::Param {
            return Err(pos.error(format!("`{name}` has no bytes")));
        }
        if external && bytes.is_some() {
            return Err(pos.limit(format!("`{name}` is defined in another module: linking is not supported")));
        }
        Ok(RawVar { space, name, align, bytes, init, pos })
    }

    /// Initial values of an array of these extents that begins at byte `at`, braces around each dimension; what is left out is
    /// zero. How many elements of the first dimension there are.
    fn initialiser(
        &mut self,
        of: &Shape<'_>,
        extents: &[Option<u64>],
        at: u64,
        out: &mut Vec<RawInit<'a>>,
    ) -> Result<u64> {
        let Some((&extent, inner)) = extents.split_first() else {
            let value = self.initial_value(of)?;
            match (value, out.last_mut()) {
                (RawValue::Bytes(new), Some(RawInit { at: start, value: RawValue::Bytes(bytes) }))
                    if *start + bytes.len() as u64 == at =>
                {
                    bytes.extend(new);
                }
                (value, _) => out.push(RawInit { at, value }),
            }
            return Ok(1);
        };
        let step = inner.iter().flatten().product::<u64>() * u64::from(of.ty.bytes());
        self.expect(b'{')?;
        let mut n = 0;
        if !self.eat(b'}') {
            loop {
                if extent.is_some_and(|most| n >= most) || step.saturating_mul(n) > MAX_ARRAY {
                    return Err(self.pos().error(format!("too many values for `{}`", of.name)));
                }
                self.initialiser(of, inner, at + n * step, out)?;
                n += 1;
                if !self.eat(b',') {
                    self.expect(b'}')?;
                    break;
                }
            }
        }
        if of.whole && inner.is_empty() && extent.is_some_and(|all| n != all) {
            return Err(of.pos.error(format!("a vector of `{}` has fewer values than elements", of.name)));
        }
        Ok(n)
    }

    /// A number, or the address of a variable declared before.
    fn initial_value(&mut self, of: &Shape<'_>) -> Result<RawValue<'a>> {
        let (ty, pos) = (of.ty, self.pos());
        let bytes = ty.bytes().min(8) as usize;
        let mask = match (self.peek(), self.toks.get(self.at + 1)) {
            (Tok::Int(v) | Tok::Uint(v), Some((Tok::Punct(b'('), _))) => {
                self.bump();
                Some(v)
            }
            _ => None,
        };
        if mask.is_some() || matches!(self.peek(), Tok::Name(name) if name != "WARP_SZ") {
            return self.initial_address(ty, mask, pos).map(RawValue::Address);
        }
        let mismatch = |what: &str| pos.error(format!("{what} is no initial value of a {ty:?}"));
        let float = matches!(ty, Ty::F32 | Ty::F64);
        let bits = match self.peek() {
            Tok::F32(v) if matches!(ty, Ty::F32 | Ty::B32) => {
                self.bump();
                u64::from(v)
            }
            Tok::F32(_) => return Err(mismatch("a float of 32 bits")),
            _ => match self.constant()? {
                Value::Float(v) if matches!(ty, Ty::F32 | Ty::B32) => u64::from((v as f32).to_bits()),
                Value::Float(v) if matches!(ty, Ty::F64 | Ty::B64) => v.to_bits(),
                Value::Float(_) => return Err(mismatch("a float")),
                _ if float => return Err(mismatch("an integer")),
                value => value.integer(pos)?,
            },
        };
        if matches!(ty, Ty::F16 | Ty::F16x2) {
            return Err(pos.error(format!("a {ty:?} takes no initial value: declare it as bits")));
        }
        // The assembler cuts what does not fit.
        Ok(RawValue::Bytes(bits.to_le_bytes()[..bytes].to_vec()))
    }

    fn initial_address(&mut self, ty: Ty, mask: Option<u64>, pos: Pos) -> Result<RawAddress<'a>> {
        let byte = match mask {
            None => None,
            Some(mask) => {
                let byte = mask.trailing_zeros() / 8;
                if mask.checked_shr(8 * byte) != Some(0xFF) {
                    return Err(pos.error(format!("{mask:#x} is no mask of one byte of an address")));
                }
                self.expect(b'(')?;
                Some(byte)
            }
        };
        let fits = matches!(ty, Ty::U32 | Ty::U64) || byte.is_some() && matches!(ty, Ty::U8 | Ty::U16);
        if !fits {
            return Err(pos.error(format!("an address is no initial value of a {ty:?}")));
        }
        let mut name = self.name("a variable")?;
        // Global and constant addresses are generic ones here.
        if name == "generic" && self.eat(b'(') {
            name = self.name("a variable")?;
            self.expect(b')')?;
        }
        let offset = if self.eat(b'+') { self.integer()? as i64 } else { 0 };
        if byte.is_some() {
            self.expect(b')')?;
        }
        Ok(RawAddress { name, offset, byte, bytes: ty.bytes(), pos })
    }

    /// `.shared .align 16 .b8 a[64], b[32];`.
    pub(super) fn variables(&mut self, external: bool) -> Result<Vec<RawVar<'a>>> {
        // The manual has attributes after the space; ptxas takes them in front of it as well, and after the alignment.
        let attribute = self.pos();
        let attributed = self.attributes(Some(Space::Global))?;
        let pos = self.pos();
        let space = match self.bump() {
            Tok::Dot("shared") => Space::Shared,
            Tok::Dot("global") => Space::Global,
            Tok::Dot("const") => Space::Const,
            Tok::Dot("local") => Space::Local,
            Tok::Dot("param") => Space::Param,
            other => return Err(pos.error(format!("expected a state space, found {}", other.show()))),
        };
        if attributed && space != Space::Global {
            return Err(attribute.error("attributes go with variables of `.global` alone"));
        }
        self.attributes(Some(space))?;
        let align = if self.eat_dot("align") { Some(self.int()?) } else { None };
        self.attributes(Some(space))?;
        let elements = self.elements();
        let ty = self.ty()?;
        if elements > 1 && (elements * ty.bytes() > 16 || space == Space::Param) {
            let what = if space == Space::Param { "a parameter is no vector" } else { "a vector has at most 16 bytes" };
            return Err(pos.error(what));
        }
        let mut out = Vec::new();
        loop {
            out.push(self.declarator(space, (ty, elements), align, external)?);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b';')?;
        Ok(out)
    }
}
