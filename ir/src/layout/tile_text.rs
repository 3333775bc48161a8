//! Text form of register and shared-memory layouts, both ways.
//!
//! CuTe notation where it says exactly the same, else the columns themselves:
//!
//! ```text
//! ((4,8),(2,2)):((2,16),(1,8))                      registers: (threads, values)
//! bits 12 thread(0x1,0x2,0x40) value(0x4,0x18)      registers: tile bits, column of each bit
//! (128,32):(32,1) swizzle<2,3,3>                    shared memory: a mode per dimension
//! (256,(64,2)):(64,(1,11264)) swizzle<3,3,3>        shared memory: panels of 176 rows, counted by the mode of stride 11264
//! bits ((0x20,0x40,0x88),(0x1,0x2))                 shared memory: columns of each dimension's bits
//! bits ((0x20,0x40,0x88),(0x1,0x2,0x100)) pitch 8 240    shared memory: bits from 8 on count panels of 240 elements
//! ```
//!
//! Columns combine by xor. The parser also takes either kind of number, so text survives a hand edit.

use std::fmt;

use super::cute::LayoutParseError;
use super::cute_text::{Cursor, cute};
use super::f2::F2Map;
use super::smem::{Pitch, SmemLayout};
use super::swizzle::swizzle;
use super::tile::RegLayout;

/// Parses a register layout, the whole of `text`.
///
/// # Errors
/// Bad syntax, or a layout that is not F2-linear, with the byte offset.
pub fn parse_reg_layout(text: &str) -> Result<RegLayout, LayoutParseError> {
    let mut c = Cursor::new(text);
    let l = reg_layout(&mut c)?;
    c.expect_end()?;
    Ok(l)
}

/// Parses a register layout at the start of `text`; also returns the bytes consumed.
///
/// # Errors
/// As [`parse_reg_layout`], but text may follow.
pub fn parse_reg_layout_prefix(text: &str) -> Result<(RegLayout, usize), LayoutParseError> {
    let mut c = Cursor::new(text);
    let l = reg_layout(&mut c)?;
    Ok((l, c.offset()))
}

/// Parses a shared-memory layout, the whole of `text`.
///
/// # Errors
/// Bad syntax, or a layout that is not F2-linear, with the byte offset.
pub fn parse_smem_layout(text: &str) -> Result<SmemLayout, LayoutParseError> {
    let mut c = Cursor::new(text);
    let l = smem_layout(&mut c)?;
    c.expect_end()?;
    Ok(l)
}

/// Parses a shared-memory layout at the start of `text`; also returns the bytes consumed.
///
/// A swizzle belongs to the layout only if it follows on the same line.
///
/// # Errors
/// As [`parse_smem_layout`], but text may follow.
pub fn parse_smem_layout_prefix(text: &str) -> Result<(SmemLayout, usize), LayoutParseError> {
    let mut c = Cursor::new(text);
    let l = smem_layout(&mut c)?;
    Ok((l, c.offset()))
}

fn reg_layout(c: &mut Cursor<'_>) -> Result<RegLayout, LayoutParseError> {
    c.skip_space();
    let offset = c.offset();
    if !c.eat_word("bits") {
        let layout = cute(c)?;
        return RegLayout::from_cute(&layout).map_err(|e| LayoutParseError::no_layout((offset, Some(c.offset())), e));
    }
    let out_bits = c.small("number of tile bits")?;
    let thread = named_list(c, "thread")?;
    let value = named_list(c, "value")?;
    RegLayout::new(value, thread, out_bits).ok_or_else(|| {
        LayoutParseError::new(
            offset,
            format!("a column does not fit the tile's {out_bits} bits, or more than 63 columns"),
        )
    })
}

fn named_list(c: &mut Cursor<'_>, word: &str) -> Result<Vec<u64>, LayoutParseError> {
    c.skip_space();
    if !c.eat_word(word) {
        return Err(c.error(format!("expected `{word}(`")));
    }
    c.number_list()
}

fn smem_layout(c: &mut Cursor<'_>) -> Result<SmemLayout, LayoutParseError> {
    c.skip_space();
    let offset = c.offset();
    if c.eat_word("bits") {
        return smem_bits(c, offset);
    }
    let layout = cute(c)?;
    let end = c.offset();
    c.skip_blanks();
    let at_swizzle = c.offset();
    let is_swizzle = c.eat_word("swizzle") && {
        c.skip_blanks();
        c.eat('<')
    };
    c.rewind(if is_swizzle { at_swizzle } else { end });
    let swizzle = if is_swizzle { Some(swizzle(c)?) } else { None };
    SmemLayout::from_cute(swizzle, &layout).map_err(|e| LayoutParseError::no_layout((offset, Some(c.offset())), e))
}

fn smem_bits(c: &mut Cursor<'_>, offset: usize) -> Result<SmemLayout, LayoutParseError> {
    c.expect('(')?;
    let (mut cols, mut dim_bits) = (Vec::new(), Vec::new());
    loop {
        let list = c.number_list()?;
        dim_bits.push(list.len() as u32);
        cols.extend(list);
        c.skip_space();
        if c.eat(')') {
            break;
        }
        if !c.eat(',') {
            return Err(c.error("expected `,` or `)`"));
        }
    }
    let layout = F2Map::from_cols(cols)
        .and_then(|map| SmemLayout::new(map, dim_bits))
        .ok_or_else(|| LayoutParseError::new(offset, "layout has more than 63 bits"))?;
    let end = c.offset();
    c.skip_blanks();
    let at_pitch = c.offset();
    if !c.eat_word("pitch") {
        c.rewind(end);
        return Ok(layout);
    }
    c.skip_blanks();
    let bit = c.small("bit of a pitch")?;
    c.skip_blanks();
    let stride = c.number()?;
    layout.with_pitch(Pitch { bit, stride }).ok_or_else(|| LayoutParseError::new(at_pitch, "a pitch is shorter than the panels that the bits below it count, and no column has bits on both sides of it"))
}

impl fmt::Display for RegLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(layout) = self.to_cute() {
            return write!(f, "{layout}");
        }
        write!(f, "bits {} thread", self.out_bits())?;
        write_list(f, self.thread().cols())?;
        f.write_str(" value")?;
        write_list(f, self.value().cols())
    }
}

impl fmt::Display for SmemLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((swizzle, layout)) = self.to_cute() {
            write!(f, "{layout}")?;
            return swizzle.map_or(Ok(()), |s| write!(f, " {s}"));
        }
        f.write_str("bits (")?;
        for dim in 0..self.dim_bits().len() {
            f.write_str(if dim == 0 { "" } else { "," })?;
            write_list(f, self.dim_cols(dim))?;
        }
        f.write_str(")")?;
        self.pitch().map_or(Ok(()), |p| write!(f, " pitch {} {}", p.bit, p.stride))
    }
}

fn write_list(f: &mut fmt::Formatter<'_>, cols: &[u64]) -> fmt::Result {
    f.write_str("(")?;
    for (i, c) in cols.iter().enumerate() {
        write!(f, "{}{c:#x}", if i == 0 { "" } else { "," })?;
    }
    f.write_str(")")
}
