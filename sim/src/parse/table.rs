//! The instruction table: every opcode with its modifiers and operands that the simulator executes, a row each.
//!
//! Written from the PTX manual (section 9.7), in its order of modifiers. A modifier pattern is a list of slots; a slot lists
//! its words between bars and ends in `?` if it may be absent. Widening the machine by an instruction is a row here, a
//! function in `sem`, and for a new kind of effect a variant of [`Op`] with its execution.

use super::ParseError;
use super::decode::{Arg, Cx};
use super::lex::Pos;
use super::raw::Ty;
use super::{sem, sem_float};
use crate::program::Op;

/// What a row does with resolved operands.
pub(crate) type Sem = fn(&mut Cx<'_, '_>, &Mods<'_>, &[Arg]) -> Result<Op, ParseError>;

/// One form of an instruction.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) op: &'static str,
    /// Slots of modifiers.
    pub(crate) mods: &'static str,
    /// Operands: `d` destination, `s` source, `dv`/`sv` vectors of a load or store, `d*4`/`s*4` vectors of that length, `p`
    /// predicate destination, `q` predicate source, `pq` two predicates, `dp` destination with optional predicate, `m`
    /// memory, `i` immediate, `l` label, `t` list of labels, `x`/`xd` what `mov` takes. `:type` overrides the type, which is the last type
    /// among the modifiers; `U` is the first one, `W` twice as wide. `?` allows it to be absent.
    pub(crate) args: &'static str,
    pub(crate) sem: Sem,
}

/// The modifiers of the instruction at hand.
pub(crate) struct Mods<'w> {
    pub(crate) words: &'w [&'w str],
    pub(crate) pos: Pos,
}

impl Mods<'_> {
    pub(crate) fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    pub(crate) fn last_type(&self) -> Option<Ty> {
        self.words.iter().rev().find_map(|w| Ty::from_word(w))
    }

    pub(crate) fn first_type(&self) -> Option<Ty> {
        self.words.iter().find_map(|w| Ty::from_word(w))
    }

    pub(crate) fn wide_type(&self) -> Option<Ty> {
        Some(match self.last_type()? {
            Ty::U16 => Ty::U32,
            Ty::S16 => Ty::S32,
            Ty::U32 => Ty::U64,
            Ty::S32 => Ty::S64,
            _ => return None,
        })
    }

    /// Elements of `.v2`, `.v4`.
    pub(crate) fn vector(&self) -> usize {
        if self.has("v2") {
            2
        } else if self.has("v4") {
            4
        } else {
            1
        }
    }

    pub(crate) fn ty(&self) -> Result<Ty, ParseError> {
        self.last_type().ok_or_else(|| self.pos.error("this instruction lacks a type"))
    }

    pub(crate) fn error<T>(&self, message: impl Into<String>) -> Result<T, ParseError> {
        Err(self.pos.error(message))
    }
}

/// What an operand kind is called in a message.
pub(crate) fn describe(kind: &str) -> &'static str {
    match kind {
        "p" | "pq" => "a predicate register",
        "q" => "a predicate",
        "m" => "an address in brackets",
        "l" => "a label",
        "i" => "an integer constant",
        _ => "something else",
    }
}

/// Whether `words` fill the slots of `pattern`; if not, how many words did.
pub(crate) fn matches(pattern: &str, words: &[&str]) -> Result<(), usize> {
    let mut at = 0;
    for slot in pattern.split_ascii_whitespace() {
        let (alternatives, optional) = slot.strip_suffix('?').map_or((slot, false), |s| (s, true));
        match words.get(at) {
            Some(word) if alternatives.split('|').any(|a| a == *word) => at += 1,
            _ if optional => {}
            _ => return Err(at),
        }
    }
    if at == words.len() { Ok(()) } else { Err(at) }
}

/// The rows of an opcode.
pub(crate) fn rows(op: &str) -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(move |r| r.op == op)
}

macro_rules! table {
    ($($op:literal $mods:literal, $args:literal => $sem:expr;)*) => {
        &[$(Row { op: $op, mods: $mods, args: $args, sem: $sem }),*]
    };
}

/// All of them.
pub(crate) const ROWS: &[Row] = table! {
    // 9.7.1 integer arithmetic
    "add" "u16|s16|u32|s32|u64|s64", "d s s" => sem::int2;
    "add" "sat s32", "d s s" => sem::int2;
    "sub" "u16|s16|u32|s32|u64|s64", "d s s" => sem::int2;
    "sub" "sat s32", "d s s" => sem::int2;
    "mul" "lo|hi u16|s16|u32|s32|u64|s64", "d s s" => sem::int2;
    "mul" "wide u16|s16|u32|s32", "d:W s s" => sem::mul_wide;
    "mul24" "lo|hi u32|s32", "d s s" => sem::int2;
    "mad" "lo|hi u16|s16|u32|s32|u64|s64", "d s s s" => sem::mad;
    "mad" "wide u16|s16|u32|s32", "d:W s s s:W" => sem::mad;
    "div" "u16|s16|u32|s32|u64|s64", "d s s" => sem::int2;
    "rem" "u16|s16|u32|s32|u64|s64", "d s s" => sem::int2;
    "min" "u16|s16|u32|s32|u64|s64", "d s s" => sem::int2;
    "max" "u16|s16|u32|s32|u64|s64", "d s s" => sem::int2;
    "abs" "s16|s32|s64", "d s" => sem::int1;
    "neg" "s16|s32|s64", "d s" => sem::int1;
    "popc" "b32|b64", "d:b32 s" => sem::bits1;
    "clz" "b32|b64", "d:b32 s" => sem::bits1;
    "bfind" "shiftamt? u32|s32|u64|s64", "d:b32 s" => sem::bits1;
    "brev" "b32|b64", "d s" => sem::int1;
    "sad" "u16|s16|u32|s32", "d s s s" => sem::mad;
    "dp4a" "u32|s32 u32|s32", "d:b32 s:b32 s:b32 s:b32" => sem::dp4a;
    "bfe" "u32|s32", "d s s:b32 s:b32" => sem::bfe;
    "bfe" "u64|s64", "d s s:b32 s:b32" => sem::bfe;
    "bfi" "b32", "d s s s:b32 s:b32" => sem::bfi;
    "bfi" "b64", "d s s s:b32 s:b32" => sem::bfi;
    "szext" "wrap|clamp u32|s32", "d s s:b32" => sem::int2;
    "bmsk" "wrap|clamp b32", "d s s" => sem::int2;
    // 9.7.2 extended precision
    "add" "cc u32|s32", "d s s" => sem::carry;
    "addc" "cc? u32|s32", "d s s" => sem::carry;
    "sub" "cc u32|s32", "d s s" => sem::carry;
    "subc" "cc? u32|s32", "d s s" => sem::carry;
    // 9.7.3 floating point
    "add" "rn|rz|rm|rp? ftz? sat? f32", "d s s" => sem_float::f32_2;
    "sub" "rn|rz|rm|rp? ftz? sat? f32", "d s s" => sem_float::f32_2;
    "mul" "rn|rz|rm|rp? ftz? sat? f32", "d s s" => sem_float::f32_2;
    "fma" "rn|rz|rm|rp ftz? sat? f32", "d s s s" => sem_float::f32_3;
    "mad" "rn|rz|rm|rp ftz? sat? f32", "d s s s" => sem_float::f32_3;
    "div" "rn|approx|full ftz? f32", "d s s" => sem_float::f32_2;
    "min" "ftz? NaN? f32", "d s s" => sem_float::f32_2;
    "max" "ftz? NaN? f32", "d s s" => sem_float::f32_2;
    "copysign" "f32", "d s s" => sem_float::f32_2;
    "abs" "ftz? f32", "d s" => sem_float::f32_1;
    "neg" "ftz? f32", "d s" => sem_float::f32_1;
    "rcp" "rn|approx ftz? f32", "d s" => sem_float::f32_1;
    "sqrt" "rn|approx ftz? f32", "d s" => sem_float::f32_1;
    "rsqrt" "approx ftz? f32", "d s" => sem_float::f32_1;
    "sin" "approx ftz? f32", "d s" => sem_float::f32_1;
    "cos" "approx ftz? f32", "d s" => sem_float::f32_1;
    "lg2" "approx ftz? f32", "d s" => sem_float::f32_1;
    "ex2" "approx ftz? f32", "d s" => sem_float::f32_1;
    "tanh" "approx f32", "d s" => sem_float::f32_1;
    "add" "rn? f64", "d s s" => sem_float::f64_2;
    "sub" "rn? f64", "d s s" => sem_float::f64_2;
    "mul" "rn? f64", "d s s" => sem_float::f64_2;
    "div" "rn f64", "d s s" => sem_float::f64_2;
    "min" "f64", "d s s" => sem_float::f64_2;
    "max" "f64", "d s s" => sem_float::f64_2;
    "fma" "rn f64", "d s s s" => sem_float::f64_3;
    "mad" "rn f64", "d s s s" => sem_float::f64_3;
    "abs" "f64", "d s" => sem_float::f64_1;
    "neg" "f64", "d s" => sem_float::f64_1;
    "sqrt" "rn f64", "d s" => sem_float::f64_1;
    "rcp" "rn f64", "d s" => sem_float::f64_1;
    "rcp" "approx ftz f64", "d s" => sem_float::f64_1;
    "rsqrt" "approx ftz? f64", "d s" => sem_float::f64_1;
    // 9.7.4 half precision
    "add" "rn? ftz? sat? f16|f16x2", "d s s" => sem_float::half2;
    "sub" "rn? ftz? sat? f16|f16x2", "d s s" => sem_float::half2;
    "mul" "rn? ftz? sat? f16|f16x2", "d s s" => sem_float::half2;
    "fma" "rn ftz? sat? f16|f16x2", "d s s s" => sem_float::half3;
    "fma" "rn ftz? relu f16|f16x2", "d s s s" => sem_float::half3;
    "min" "ftz? NaN? f16|f16x2", "d s s" => sem_float::half2;
    "max" "ftz? NaN? f16|f16x2", "d s s" => sem_float::half2;
    "neg" "ftz? f16|f16x2", "d s" => sem_float::half1;
    "abs" "ftz? f16|f16x2", "d s" => sem_float::half1;
    "add" "rn? bf16|bf16x2", "d s s" => sem_float::half2;
    "sub" "rn? bf16|bf16x2", "d s s" => sem_float::half2;
    "mul" "rn? bf16|bf16x2", "d s s" => sem_float::half2;
    "fma" "rn relu? bf16|bf16x2", "d s s s" => sem_float::half3;
    "min" "NaN? bf16|bf16x2", "d s s" => sem_float::half2;
    "max" "NaN? bf16|bf16x2", "d s s" => sem_float::half2;
    "neg" "bf16|bf16x2", "d s" => sem_float::half1;
    "abs" "bf16|bf16x2", "d s" => sem_float::half1;
    "ex2" "approx f16|f16x2", "d s" => sem_float::half_approx;
    "ex2" "approx ftz bf16|bf16x2", "d s" => sem_float::half_approx;
    "tanh" "approx f16|f16x2|bf16|bf16x2", "d s" => sem_float::half_approx;
    // 9.7.5 comparison and selection
    "setp" "eq|ne b16|b32|b64", "pq s s" => sem::setp;
    "setp" "eq|ne and|or|xor b16|b32|b64", "pq s s q" => sem::setp;
    "setp" "eq|ne|lt|le|gt|ge|lo|ls|hi|hs u16|u32|u64", "pq s s" => sem::setp;
    "setp" "eq|ne|lt|le|gt|ge|lo|ls|hi|hs and|or|xor u16|u32|u64", "pq s s q" => sem::setp;
    "setp" "eq|ne|lt|le|gt|ge s16|s32|s64", "pq s s" => sem::setp;
    "setp" "eq|ne|lt|le|gt|ge and|or|xor s16|s32|s64", "pq s s q" => sem::setp;
    "setp" "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan ftz? f32", "pq s s" => sem_float::setp;
    "setp" "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan f64", "pq s s" => sem_float::setp;
    "setp" "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan ftz? f16", "p s s" => sem_float::setp;
    "setp" "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan bf16", "p s s" => sem_float::setp;
    "setp" "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan and|or|xor ftz? f32", "pq s s q" => sem_float::setp;
    "setp" "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan and|or|xor f64", "pq s s q" => sem_float::setp;
    "setp" "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan and|or|xor ftz? f16", "p s s q" => sem_float::setp;
    "setp" "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan and|or|xor bf16", "p s s q" => sem_float::setp;
    "set" "eq|ne u32|s32|f32 b32", "d:U s s" => sem::set;
    "set" "eq|ne|lt|le|gt|ge|lo|ls|hi|hs u32|s32|f32 u32", "d:U s s" => sem::set;
    "set" "eq|ne|lt|le|gt|ge u32|s32|f32 s32", "d:U s s" => sem::set;
    "set" "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan ftz? u32|s32|f32 f32", "d:U s s" => sem::set;
    "set" "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan ftz? f16|u16|s16 f16", "d:U s s" => sem_float::set_half;
    "set" "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan ftz? f16x2 f16x2", "d s s" => sem_float::set_half;
    "set" "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan bf16|u16|s16 bf16", "d:b16 s s" => sem_float::set_half;
    "set" "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan bf16x2 bf16x2", "d s s" => sem_float::set_half;
    "set" "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan ftz? u32 f16x2", "d:U s s" => sem_float::set_half;
    "set" "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan u32 bf16x2", "d:U s s" => sem_float::set_half;
    "selp" "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64", "d s s q" => sem::selp;
    // 9.7.8 logic and shifts
    "and" "pred", "p q q" => sem::pred2;
    "or" "pred", "p q q" => sem::pred2;
    "xor" "pred", "p q q" => sem::pred2;
    "not" "pred", "p q" => sem::pred2;
    "and" "b16|b32|b64", "d s s" => sem::int2;
    "or" "b16|b32|b64", "d s s" => sem::int2;
    "xor" "b16|b32|b64", "d s s" => sem::int2;
    "not" "b16|b32|b64", "d s" => sem::int1;
    "cnot" "b16|b32|b64", "d s" => sem::int1;
    "shl" "b16|b32", "d s s:b32" => sem::int2;
    "shl" "b64", "d s s:b32" => sem::shift64;
    "shr" "b16|u16|s16|b32|u32|s32", "d s s:b32" => sem::int2;
    "shr" "b64|u64|s64", "d s s:b32" => sem::shift64;
    "shf" "l|r wrap|clamp b32", "d s s s" => sem::mad;
    "lop3" "b32", "d s s s i" => sem::lop3;
    "prmt" "b32 f4e|b4e|rc8|ecl|ecr|rc16?", "d s s s" => sem::mad;
    // 9.7.9 data movement
    "mov" "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64|pred", "xd x" => sem::mov;
    "ld" "volatile? const|global|local|param|shared|shared::cta? ca|cg|cs|lu|cv? nc? \
        L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate? \
        L2::64B|L2::128B|L2::256B? v2|v4? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "dv m" => sem::load;
    "ld" "weak|relaxed|acquire cta|cluster|gpu|sys? global|local|shared|shared::cta? \
        L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate? \
        L2::64B|L2::128B|L2::256B? v2|v4? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "dv m" => sem::load;
    "ldu" "global? v2|v4? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "dv m" => sem::load;
    "st" "volatile? global|local|shared|shared::cta? wb|cg|cs|wt? \
        L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate? v2|v4? \
        b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "m sv" => sem::store;
    "st" "param v2|v4? b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "m sv" => sem::store;
    "st" "weak|relaxed|release cta|cluster|gpu|sys? global|local|shared|shared::cta? \
        L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate? v2|v4? \
        b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64", "m sv" => sem::store;
    "prefetch" "global|local? L1|L2", "m" => sem::nop;
    "prefetchu" "L1", "m" => sem::nop;
    "isspacep" "const|global|local|shared|shared::cta|param", "p s:b64" => sem::isspacep;
    "cvta" "to? const|global|local|shared|shared::cta|param u64", "d s" => sem::cvta;
    "cvt" "u8|s8|u16|s16|u32|s32|u64|s64 u8|s8|u16|s16|u32|s32|u64|s64", "dv:U sv" => sem::cvt_int;
    // `.sat` is legal only where a value can be out of range.
    "cvt" "sat s8 u8", "dv:U sv" => sem::cvt_int;
    "cvt" "sat u8|u16|u32|u64 s8", "dv:U sv" => sem::cvt_int;
    "cvt" "sat u8|s8|s16 u16", "dv:U sv" => sem::cvt_int;
    "cvt" "sat u8|s8|u16|u32|u64 s16", "dv:U sv" => sem::cvt_int;
    "cvt" "sat u8|s8|u16|s16|s32 u32", "dv:U sv" => sem::cvt_int;
    "cvt" "sat u8|s8|u16|s16|u32|u64 s32", "dv:U sv" => sem::cvt_int;
    "cvt" "sat u8|s8|u16|s16|u32|s32|s64 u64", "dv:U sv" => sem::cvt_int;
    "cvt" "sat u8|s8|u16|s16|u32|s32|u64 s64", "dv:U sv" => sem::cvt_int;
    "cvt" "rn|rz|rm|rp f16|f32|f64 u8|s8|u16|s16|u32|s32|u64|s64", "d:U sv" => sem_float::cvt_from_int;
    "cvt" "rni|rzi|rmi|rpi ftz? sat? u8|s8|u16|s16|u32|s32|u64|s64 f32", "dv:U s" => sem_float::cvt_to_int;
    "cvt" "rni|rzi|rmi|rpi sat? u8|s8|u16|s16|u32|s32|u64|s64 f16|f64", "dv:U s" => sem_float::cvt_to_int;
    // To an integral value, or none at all.
    "cvt" "rni|rzi|rmi|rpi? sat? f16 f16", "d:U s" => sem_float::cvt_float;
    "cvt" "rni|rzi|rmi|rpi? ftz? sat? f32 f32", "d:U s" => sem_float::cvt_float;
    "cvt" "rni|rzi|rmi|rpi? sat? f64 f64", "d:U s" => sem_float::cvt_float;
    "cvt" "ftz? sat? f32 f16", "d:U s" => sem_float::cvt_float;
    "cvt" "ftz? sat? f64 f32", "d:U s" => sem_float::cvt_float;
    "cvt" "sat? f64 f16", "d:U s" => sem_float::cvt_float;
    "cvt" "rn|rz|rm|rp ftz? sat? f16 f32", "d:U s" => sem_float::cvt_float;
    "cvt" "rn|rz|rm|rp ftz? sat? f32 f64", "d:U s" => sem_float::cvt_float;
    "cvt" "rn|rz|rm|rp sat? f16 f64", "d:U s" => sem_float::cvt_float;
    "cvt" "rn|rz relu? bf16 f32", "d:b16 s" => sem_float::cvt_float;
    "cvt" "f32 bf16", "d:U s" => sem_float::cvt_float;
    "cvt" "rna satfinite? tf32 f32", "d:b32 s" => sem_float::cvt_float;
    "cvt" "rn|rz relu? tf32 f32", "d:b32 s" => sem_float::cvt_float;
    "cvt" "rn|rz relu? f16x2|bf16x2 f32", "d:b32 s:f32 s:f32" => sem_float::cvt_pack;
    "cvt" "rn satfinite relu? e4m3x2|e5m2x2 f32", "d:b16 s:f32 s:f32" => sem_float::cvt_pack;
    "cvt" "rn satfinite relu? e4m3x2|e5m2x2 f16x2", "d:b16 s:b32" => sem_float::cvt_fp8;
    "cvt" "rn relu? f16x2 e4m3x2|e5m2x2", "d:b32 s:b16" => sem_float::cvt_fp8;
    "cp" "async ca shared|shared::cta global L2::64B|L2::128B|L2::256B?", "m m i s:b32?" => sem::cp_async;
    "cp" "async cg shared|shared::cta global L2::64B|L2::128B|L2::256B?", "m m i s:b32?" => sem::cp_async;
    "cp" "async ca|cg shared|shared::cta global L2::64B|L2::128B|L2::256B?", "m m i q" => sem::cp_async;
    "cp" "async commit_group", "" => sem::cp_commit;
    "cp" "async wait_group", "i" => sem::cp_wait;
    "cp" "async wait_all", "" => sem::cp_wait;
    // 9.7.12 control flow
    "bra" "uni?", "l" => sem::bra;
    "brx" "idx uni?", "s:b32 t" => sem::brx;
    "ret" "uni?", "" => sem::exit;
    "exit" "", "" => sem::exit;
    "trap" "", "" => sem::trap;
    "brkpt" "", "" => sem::trap;
    // 9.7.13 synchronisation
    "bar" "cta? sync", "s:b32 s:b32?" => sem::bar;
    "bar" "cta? arrive", "s:b32 s:b32" => sem::bar;
    "barrier" "cta? sync aligned?", "s:b32 s:b32?" => sem::bar;
    "barrier" "cta? arrive aligned?", "s:b32 s:b32" => sem::bar;
    "bar" "cta? red popc u32", "d s:b32 q" => sem::bar_red;
    "bar" "cta? red popc u32", "d s:b32 s:b32 q" => sem::bar_red;
    "bar" "cta? red and|or pred", "p s:b32 q" => sem::bar_red;
    "bar" "cta? red and|or pred", "p s:b32 s:b32 q" => sem::bar_red;
    "barrier" "cta? red popc aligned? u32", "d s:b32 q" => sem::bar_red;
    "barrier" "cta? red popc aligned? u32", "d s:b32 s:b32 q" => sem::bar_red;
    "barrier" "cta? red and|or aligned? pred", "p s:b32 q" => sem::bar_red;
    "barrier" "cta? red and|or aligned? pred", "p s:b32 s:b32 q" => sem::bar_red;
    "bar" "warp sync", "s:b32" => sem::bar_warp;
    "membar" "cta|gl|sys", "" => sem::fence;
    "fence" "sc|acq_rel|acquire|release? cta|cluster|gpu|sys", "" => sem::fence;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global|shared|shared::cta? add u32|s32|u64|f32|f64", "d m s"
        => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global|shared|shared::cta? add noftz f16|f16x2|bf16|bf16x2",
        "d m s" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global|shared|shared::cta? min|max u32|s32|u64|s64", "d m s"
        => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global|shared|shared::cta? inc|dec u32", "d m s" => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global|shared|shared::cta? and|or|xor|exch b32|b64", "d m s"
        => sem::atom;
    "atom" "relaxed|acquire|release|acq_rel? cta|cluster|gpu|sys? global|shared|shared::cta? cas b16|b32|b64", "d m s s"
        => sem::atom;
    "red" "relaxed|release? cta|cluster|gpu|sys? global|shared|shared::cta? add u32|s32|u64|f32|f64", "m s" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global|shared|shared::cta? add noftz f16|f16x2|bf16|bf16x2", "m s" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global|shared|shared::cta? min|max u32|s32|u64|s64", "m s" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global|shared|shared::cta? inc|dec u32", "m s" => sem::red;
    "red" "relaxed|release? cta|cluster|gpu|sys? global|shared|shared::cta? and|or|xor b32|b64", "m s" => sem::red;
    "shfl" "sync up|down|bfly|idx b32", "dp s s s s" => sem::shfl;
    "vote" "sync all|any|uni pred", "p q s:b32" => sem::vote;
    "vote" "sync ballot b32", "d q s" => sem::vote;
    "match" "any sync b32|b64", "d:b32 s s:b32" => sem::match_sync;
    "match" "all sync b32|b64", "dp:b32 s s:b32" => sem::match_sync;
    "activemask" "b32", "d" => sem::active_mask;
    "redux" "sync add|min|max u32|s32", "d s s:b32" => sem::redux;
    "redux" "sync and|or|xor b32", "d s s:b32" => sem::redux;
    // 9.7.13.15 mbarrier
    "mbarrier" "init shared|shared::cta? b64", "m s:b32" => sem::mbarrier;
    "mbarrier" "inval shared|shared::cta? b64", "m" => sem::mbarrier;
    "mbarrier" "expect_tx|complete_tx relaxed? cta|cluster? shared|shared::cta|shared::cluster? b64", "m s:b32" => sem::mbarrier;
    "mbarrier" "arrive|arrive_drop release|relaxed? cta|cluster? shared|shared::cta|shared::cluster? b64", "d:b64 m s:b32?"
        => sem::mbarrier;
    "mbarrier" "arrive|arrive_drop expect_tx release|relaxed? cta|cluster? shared|shared::cta|shared::cluster? b64",
        "d:b64 m s:b32" => sem::mbarrier;
    "mbarrier" "arrive|arrive_drop noComplete release? cta? shared|shared::cta? b64", "d:b64 m s:b32" => sem::mbarrier;
    "mbarrier" "test_wait acquire|relaxed? cta|cluster? shared|shared::cta? b64", "p m s:b64" => sem::mbarrier;
    "mbarrier" "test_wait parity acquire|relaxed? cta|cluster? shared|shared::cta? b64", "p m s:b32" => sem::mbarrier;
    "mbarrier" "try_wait acquire|relaxed? cta|cluster? shared|shared::cta? b64", "p m s:b64 s:b32?" => sem::mbarrier;
    "mbarrier" "try_wait parity acquire|relaxed? cta|cluster? shared|shared::cta? b64", "p m s:b32 s:b32?" => sem::mbarrier;
    "mbarrier" "pending_count b64", "d:b32 s:b64" => sem::pending_count;
    "cp" "async mbarrier arrive noinc? shared|shared::cta? b64", "m" => sem::mbarrier;
    "fence" "proxy alias", "" => sem::nop;
    "fence" "mbarrier_init release cluster", "" => sem::nop;
    // 9.7.14 matrices
    "mma" "sync aligned m8n8k4 row|col row|col f32 f16 f16 f32", "d*8:f32 s*2:b32 s*2:b32 s*8:f32" => sem::mma;
    "mma" "sync aligned m8n8k4 row|col row|col f32 f16 f16 f16", "d*8:f32 s*2:b32 s*2:b32 s*4:b32" => sem::mma;
    "mma" "sync aligned m8n8k4 row|col row|col f16 f16 f16 f16", "d*4:b32 s*2:b32 s*2:b32 s*4:b32" => sem::mma;
    "mma" "sync aligned m16n8k8 row col f32 f16 f16 f32", "d*4:f32 s*2:b32 s*1:b32 s*4:f32" => sem::mma;
    "mma" "sync aligned m16n8k8 row col f16 f16 f16 f16", "d*2:b32 s*2:b32 s*1:b32 s*2:b32" => sem::mma;
    "mma" "sync aligned m16n8k16 row col f32 f16 f16 f32", "d*4:f32 s*4:b32 s*2:b32 s*4:f32" => sem::mma;
    "mma" "sync aligned m16n8k16 row col f16 f16 f16 f16", "d*2:b32 s*4:b32 s*2:b32 s*2:b32" => sem::mma;
    "mma" "sync aligned m16n8k8 row col f32 bf16 bf16 f32", "d*4:f32 s*2:b32 s*1:b32 s*4:f32" => sem::mma;
    "mma" "sync aligned m16n8k16 row col f32 bf16 bf16 f32", "d*4:f32 s*4:b32 s*2:b32 s*4:f32" => sem::mma;
    "mma" "sync aligned m16n8k4 row col f32 tf32 tf32 f32", "d*4:f32 s*2:b32 s*1:b32 s*4:f32" => sem::mma;
    "mma" "sync aligned m16n8k8 row col f32 tf32 tf32 f32", "d*4:f32 s*4:b32 s*2:b32 s*4:f32" => sem::mma;
    "mma" "sync aligned m8n8k4 row col f64 f64 f64 f64", "d*2:f64 s*1:f64 s*1:f64 s*2:f64" => sem::mma;
    "mma" "sync aligned m8n8k16 row col satfinite? s32 s8|u8 s8|u8 s32", "d*2:b32 s*1:b32 s*1:b32 s*2:b32" => sem::mma;
    "mma" "sync aligned m16n8k16 row col satfinite? s32 s8|u8 s8|u8 s32", "d*4:b32 s*2:b32 s*1:b32 s*4:b32" => sem::mma;
    "mma" "sync aligned m16n8k32 row col satfinite? s32 s8|u8 s8|u8 s32", "d*4:b32 s*4:b32 s*2:b32 s*4:b32" => sem::mma;
    "mma" "sync aligned m16n8k16 row col f32 e4m3|e5m2 e4m3|e5m2 f32", "d*4:f32 s*2:b32 s*1:b32 s*4:f32" => sem::mma;
    "mma" "sync aligned m16n8k16 row col f16 e4m3|e5m2 e4m3|e5m2 f16", "d*2:b32 s*2:b32 s*1:b32 s*2:b32" => sem::mma;
    "mma" "sync aligned m16n8k32 row col f32 e4m3|e5m2 e4m3|e5m2 f32", "d*4:f32 s*4:b32 s*2:b32 s*4:f32" => sem::mma;
    "mma" "sync aligned m16n8k32 row col f16 e4m3|e5m2 e4m3|e5m2 f16", "d*2:b32 s*4:b32 s*2:b32 s*2:b32" => sem::mma;
    "mma" "sync aligned m16n8k4 row col f64 f64 f64 f64", "d*4:f64 s*2:f64 s*1:f64 s*4:f64" => sem::mma;
    "mma" "sync aligned m16n8k8 row col f64 f64 f64 f64", "d*4:f64 s*4:f64 s*2:f64 s*4:f64" => sem::mma;
    "mma" "sync aligned m16n8k16 row col f64 f64 f64 f64", "d*4:f64 s*8:f64 s*4:f64 s*4:f64" => sem::mma;
    "ldmatrix" "sync aligned m8n8 x1 trans? shared|shared::cta? b16", "d*1:b32 m" => sem::ldmatrix;
    "ldmatrix" "sync aligned m8n8 x2 trans? shared|shared::cta? b16", "d*2:b32 m" => sem::ldmatrix;
    "ldmatrix" "sync aligned m8n8 x4 trans? shared|shared::cta? b16", "d*4:b32 m" => sem::ldmatrix;
    "movmatrix" "sync aligned m8n8 trans b16", "d:b32 s:b32" => sem::movmatrix;
    // 9.7.14.3 to 9.7.14.5 wmma
    "wmma" "load a|b sync aligned row|col m16n16k16|m8n32k16|m32n8k16 global|shared|shared::cta? f16", "d*8:b32 m s:b32?" => sem::wmma_load;
    "wmma" "load c sync aligned row|col m16n16k16|m8n32k16|m32n8k16 global|shared|shared::cta? f16", "d*4:b32 m s:b32?" => sem::wmma_load;
    "wmma" "load c sync aligned row|col m16n16k16|m8n32k16|m32n8k16 global|shared|shared::cta? f32", "d*8:f32 m s:b32?" => sem::wmma_load;
    "wmma" "load c sync aligned row|col m16n16k16|m8n32k16|m32n8k16 global|shared|shared::cta? s32", "d*8:b32 m s:b32?" => sem::wmma_load;
    "wmma" "load c sync aligned row|col m16n16k8 global|shared|shared::cta? f32", "d*8:f32 m s:b32?" => sem::wmma_load;
    "wmma" "load c sync aligned row|col m8n8k4 global|shared|shared::cta? f64", "d*2:f64 m s:b32?" => sem::wmma_load;
    "wmma" "load c sync aligned row|col m8n8k32|m8n8k128 global|shared|shared::cta? s32", "d*2:b32 m s:b32?" => sem::wmma_load;
    "wmma" "store d sync aligned row|col m16n16k16|m8n32k16|m32n8k16 global|shared|shared::cta? f16", "m s*4:b32 s:b32?" => sem::wmma_store;
    "wmma" "store d sync aligned row|col m16n16k16|m8n32k16|m32n8k16 global|shared|shared::cta? f32", "m s*8:f32 s:b32?" => sem::wmma_store;
    "wmma" "store d sync aligned row|col m16n16k16|m8n32k16|m32n8k16 global|shared|shared::cta? s32", "m s*8:b32 s:b32?" => sem::wmma_store;
    "wmma" "store d sync aligned row|col m16n16k8 global|shared|shared::cta? f32", "m s*8:f32 s:b32?" => sem::wmma_store;
    "wmma" "store d sync aligned row|col m8n8k4 global|shared|shared::cta? f64", "m s*2:f64 s:b32?" => sem::wmma_store;
    "wmma" "store d sync aligned row|col m8n8k32|m8n8k128 global|shared|shared::cta? s32", "m s*2:b32 s:b32?" => sem::wmma_store;
    "wmma" "load a sync aligned row|col m16n16k16 global|shared|shared::cta? s8|u8", "d*2:b32 m s:b32?" => sem::wmma_load;
    "wmma" "load b sync aligned row|col m16n16k16 global|shared|shared::cta? s8|u8", "d*2:b32 m s:b32?" => sem::wmma_load;
    "wmma" "load a sync aligned row|col m8n32k16 global|shared|shared::cta? s8|u8", "d*1:b32 m s:b32?" => sem::wmma_load;
    "wmma" "load b sync aligned row|col m8n32k16 global|shared|shared::cta? s8|u8", "d*4:b32 m s:b32?" => sem::wmma_load;
    "wmma" "load a sync aligned row|col m32n8k16 global|shared|shared::cta? s8|u8", "d*4:b32 m s:b32?" => sem::wmma_load;
    "wmma" "load b sync aligned row|col m32n8k16 global|shared|shared::cta? s8|u8", "d*1:b32 m s:b32?" => sem::wmma_load;
    "wmma" "load a sync aligned row|col m16n16k16 global|shared|shared::cta? bf16", "d*4:b32 m s:b32?" => sem::wmma_load;
    "wmma" "load b sync aligned row|col m16n16k16 global|shared|shared::cta? bf16", "d*4:b32 m s:b32?" => sem::wmma_load;
    "wmma" "load a sync aligned row|col m8n32k16 global|shared|shared::cta? bf16", "d*2:b32 m s:b32?" => sem::wmma_load;
    "wmma" "load b sync aligned row|col m8n32k16 global|shared|shared::cta? bf16", "d*8:b32 m s:b32?" => sem::wmma_load;
    "wmma" "load a sync aligned row|col m32n8k16 global|shared|shared::cta? bf16", "d*8:b32 m s:b32?" => sem::wmma_load;
    "wmma" "load b sync aligned row|col m32n8k16 global|shared|shared::cta? bf16", "d*2:b32 m s:b32?" => sem::wmma_load;
    "wmma" "load a|b sync aligned row|col m16n16k8 global|shared|shared::cta? tf32", "d*4:b32 m s:b32?" => sem::wmma_load;
    "wmma" "load a|b sync aligned row|col m8n8k4 global|shared|shared::cta? f64", "d*1:f64 m s:b32?" => sem::wmma_load;
    "wmma" "load a sync aligned row m8n8k32 global|shared|shared::cta? s4|u4", "d*1:b32 m s:b32?" => sem::wmma_load;
    "wmma" "load a sync aligned row m8n8k128 global|shared|shared::cta? b1", "d*1:b32 m s:b32?" => sem::wmma_load;
    "wmma" "load b sync aligned col m8n8k32 global|shared|shared::cta? s4|u4", "d*1:b32 m s:b32?" => sem::wmma_load;
    "wmma" "load b sync aligned col m8n8k128 global|shared|shared::cta? b1", "d*1:b32 m s:b32?" => sem::wmma_load;
    "wmma" "mma sync aligned row|col row|col m16n16k16|m8n32k16|m32n8k16 f16 f16", "d*4:b32 s*8:b32 s*8:b32 s*4:b32" => sem::wmma_mma;
    "wmma" "mma sync aligned row|col row|col m16n16k16|m8n32k16|m32n8k16 f16 f32", "d*4:b32 s*8:b32 s*8:b32 s*8:f32" => sem::wmma_mma;
    "wmma" "mma sync aligned row|col row|col m16n16k16|m8n32k16|m32n8k16 f32 f16", "d*8:f32 s*8:b32 s*8:b32 s*4:b32" => sem::wmma_mma;
    "wmma" "mma sync aligned row|col row|col m16n16k16|m8n32k16|m32n8k16 f32 f32", "d*8:f32 s*8:b32 s*8:b32 s*8:f32" => sem::wmma_mma;
    "wmma" "mma sync aligned row|col row|col m16n16k16 s32 s8 s8 s32 satfinite?", "d*8:b32 s*2:b32 s*2:b32 s*8:b32" => sem::wmma_mma;
    "wmma" "mma sync aligned row|col row|col m16n16k16 s32 u8 u8 s32 satfinite?", "d*8:b32 s*2:b32 s*2:b32 s*8:b32" => sem::wmma_mma;
    "wmma" "mma sync aligned row|col row|col m8n32k16 s32 s8 s8 s32 satfinite?", "d*8:b32 s*1:b32 s*4:b32 s*8:b32" => sem::wmma_mma;
    "wmma" "mma sync aligned row|col row|col m8n32k16 s32 u8 u8 s32 satfinite?", "d*8:b32 s*1:b32 s*4:b32 s*8:b32" => sem::wmma_mma;
    "wmma" "mma sync aligned row|col row|col m32n8k16 s32 s8 s8 s32 satfinite?", "d*8:b32 s*4:b32 s*1:b32 s*8:b32" => sem::wmma_mma;
    "wmma" "mma sync aligned row|col row|col m32n8k16 s32 u8 u8 s32 satfinite?", "d*8:b32 s*4:b32 s*1:b32 s*8:b32" => sem::wmma_mma;
    "wmma" "mma sync aligned row|col row|col m16n16k16 f32 bf16 bf16 f32", "d*8:f32 s*4:b32 s*4:b32 s*8:f32" => sem::wmma_mma;
    "wmma" "mma sync aligned row|col row|col m8n32k16 f32 bf16 bf16 f32", "d*8:f32 s*2:b32 s*8:b32 s*8:f32" => sem::wmma_mma;
    "wmma" "mma sync aligned row|col row|col m32n8k16 f32 bf16 bf16 f32", "d*8:f32 s*8:b32 s*2:b32 s*8:f32" => sem::wmma_mma;
    "wmma" "mma sync aligned row|col row|col m16n16k8 f32 tf32 tf32 f32", "d*8:f32 s*4:b32 s*4:b32 s*8:f32" => sem::wmma_mma;
    "wmma" "mma sync aligned row|col row|col m8n8k4 rn|rz|rm|rp? f64 f64 f64 f64", "d*2:f64 s*1:f64 s*1:f64 s*2:f64" => sem::wmma_mma;
    "wmma" "mma sync aligned row col m8n8k32 s32 s4 s4 s32 satfinite?", "d*2:b32 s*1:b32 s*1:b32 s*2:b32" => sem::wmma_mma;
    "wmma" "mma sync aligned row col m8n8k32 s32 u4 u4 s32 satfinite?", "d*2:b32 s*1:b32 s*1:b32 s*2:b32" => sem::wmma_mma;
    "wmma" "mma xor|and popc sync aligned row col m8n8k128 s32 b1 b1 s32", "d*2:b32 s*1:b32 s*1:b32 s*2:b32" => sem::wmma_mma;
    // 9.7.19 miscellaneous
    "nanosleep" "u32", "s" => sem::nop;
    "pmevent" "", "i" => sem::nop;
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_fill_slots_in_order() {
        assert_eq!(matches("rn|rz? ftz? f32", &["ftz", "f32"]), Ok(()));
        assert_eq!(matches("rn|rz? ftz? f32", &["ftz", "rn", "f32"]), Err(1));
        assert_eq!(matches("rn|rz? ftz? f32", &["rn"]), Err(1));
        assert_eq!(matches("b32", &["b32", "b32"]), Err(1));
    }
}
