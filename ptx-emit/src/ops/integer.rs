//! Rows: integer arithmetic, logic and shifts.

macro_rules! integer_rows {
    ([$($done:tt)*] $next:ident $($rest:ident)*) => { $next! { [$($done)*

        "9.7.1" V6_0 Pure [B32] [B32I, B32I] "32-bit integer arithmetic; a product's low half" {
            AddS32 "add.s32", AddU32 "add.u32",
            SubS32 "sub.s32", SubU32 "sub.u32",
            MulLoS32 "mul.lo.s32", MulLoU32 "mul.lo.u32",
            MulHiS32 "mul.hi.s32", MulHiU32 "mul.hi.u32",
            DivS32 "div.s32", DivU32 "div.u32",
            RemS32 "rem.s32", RemU32 "rem.u32",
            MinS32 "min.s32", MinU32 "min.u32",
            MaxS32 "max.s32", MaxU32 "max.u32",
        }
        "9.7.1" V6_0 Pure [B64] [B64I, B64I] "64-bit integer arithmetic; a product's low half" {
            AddS64 "add.s64", AddU64 "add.u64",
            SubS64 "sub.s64", SubU64 "sub.u64",
            MulLoS64 "mul.lo.s64", MulLoU64 "mul.lo.u64",
            MulHiS64 "mul.hi.s64", MulHiU64 "mul.hi.u64",
            DivS64 "div.s64", DivU64 "div.u64",
            RemS64 "rem.s64", RemU64 "rem.u64",
            MinS64 "min.s64", MinU64 "min.u64",
            MaxS64 "max.s64", MaxU64 "max.u64",
        }
        "9.7.1.3" V6_0 Pure [B64] [B32I, B32I] "the whole product of 32-bit integers" {
            MulWideS32 "mul.wide.s32", MulWideU32 "mul.wide.u32",
        }
        "9.7.1.4" V6_0 Pure [B32] [B32I, B32I, B32I] "`a * b + c`, low half" {
            MadLoS32 "mad.lo.s32", MadLoU32 "mad.lo.u32",
        }
        "9.7.1.4" V6_0 Pure [B64] [B64I, B64I, B64I] "`a * b + c`, low half" {
            MadLoS64 "mad.lo.s64", MadLoU64 "mad.lo.u64",
        }
        "9.7.1.4" V6_0 Pure [B64] [B32I, B32I, B64I] "`a * b + c`, the whole product of 32-bit integers" {
            MadWideS32 "mad.wide.s32", MadWideU32 "mad.wide.u32",
        }
        "9.7.1" V6_0 Pure [B32] [B32I] "one-operand integer arithmetic" {
            NegS32 "neg.s32", AbsS32 "abs.s32",
            PopcB32 "popc.b32", ClzB32 "clz.b32", BrevB32 "brev.b32", BfindU32 "bfind.u32",
        }
        "9.7.1" V6_0 Pure [B64] [B64I] "one-operand integer arithmetic" {
            NegS64 "neg.s64", AbsS64 "abs.s64",
        }
        "9.7.1" V6_0 Pure [B32] [B64I] "how many bits of 64 are set" {
            PopcB64 "popc.b64",
        }
        "9.7.1.19" V6_0 Pure [B32] [B32I, B32I, B32I] "the bit field of `a` at `b` of length `c`" {
            BfeU32 "bfe.u32", BfeS32 "bfe.s32",
        }
        "9.7.1.20" V6_0 Pure [B32] [B32I, B32I, B32I, B32I] "`b` with field `a` inserted at `c` of length `d`" {
            BfiB32 "bfi.b32",
        }
        "9.7.1.23" V6_0 Pure [B32] [B32I, B32I, B32I] "dot product of four bytes, added to `c`" {
            Dp4aS32S32 "dp4a.s32.s32", Dp4aU32U32 "dp4a.u32.u32",
            Dp4aS32U32 "dp4a.s32.u32", Dp4aU32S32 "dp4a.u32.s32",
        }

        "9.7.8" V6_0 Pure [P] [P, P] "logic on predicates" {
            AndPred "and.pred", OrPred "or.pred", XorPred "xor.pred",
        }
        "9.7.8" V6_0 Pure [P] [P] "complement of a predicate" {
            NotPred "not.pred",
        }
        "9.7.8" V6_0 Pure [B16] [B16I, B16I] "bitwise logic" {
            AndB16 "and.b16", OrB16 "or.b16", XorB16 "xor.b16",
        }
        "9.7.8" V6_0 Pure [B16] [B16I] "bitwise complement" {
            NotB16 "not.b16",
        }
        "9.7.8" V6_0 Pure [B32] [B32I, B32I] "bitwise logic and shifts by up to 32 bits" {
            AndB32 "and.b32", OrB32 "or.b32", XorB32 "xor.b32",
            ShlB32 "shl.b32", ShrU32 "shr.u32", ShrS32 "shr.s32",
        }
        "9.7.8" V6_0 Pure [B32] [B32I] "bitwise complement" {
            NotB32 "not.b32",
        }
        "9.7.8" V6_0 Pure [B64] [B64I, B64I] "bitwise logic" {
            AndB64 "and.b64", OrB64 "or.b64", XorB64 "xor.b64",
        }
        "9.7.8" V6_0 Pure [B64] [B64I] "bitwise complement" {
            NotB64 "not.b64",
        }
        "9.7.8" V6_0 Pure [B64] [B64I, B32I] "shift by up to 64 bits; the count has 32 bits" {
            ShlB64 "shl.b64", ShrU64 "shr.u64", ShrS64 "shr.s64",
        }
        "9.7.8.6" V6_0 Pure [B32] [B32I, B32I, B32I, range(0, 255)] "any bitwise function of three inputs, by truth table" {
            Lop3B32 "lop3.b32",
        }
        "9.7.8.7" V6_0 Pure [B32] [B32I, B32I, B32I] "shift of the 64-bit value with low half `a` and high half `b`; one half is kept" {
            ShfLWrapB32 "shf.l.wrap.b32", ShfRWrapB32 "shf.r.wrap.b32",
            ShfLClampB32 "shf.l.clamp.b32", ShfRClampB32 "shf.r.clamp.b32",
        }
        "9.7.9.7" V6_0 Pure [B32] [B32I, B32I, B32I] "four bytes picked out of `a` (0..4) and `b` (4..8) by the nibbles of `c`" {
            PrmtB32 "prmt.b32",
        }
    ] $($rest)* } };
}
