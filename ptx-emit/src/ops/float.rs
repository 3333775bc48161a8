//! Rows: floating-point arithmetic, comparison and selection.
//!
//! `add.f32` and its like may be contracted into an `fma` by ptxas; the `.rn` spellings may not.

macro_rules! float_rows {
    ([$($done:tt)*] $next:ident $($rest:ident)*) => { $next! { [$($done)*

        "9.7.3" V6_0 Pure [F32] [F32I, F32I] "f32 arithmetic" {
            AddF32 "add.f32", SubF32 "sub.f32", MulF32 "mul.f32",
            AddRnF32 "add.rn.f32", SubRnF32 "sub.rn.f32", MulRnF32 "mul.rn.f32",
            DivRnF32 "div.rn.f32", DivFullF32 "div.full.f32", DivApproxF32 "div.approx.f32",
            MinF32 "min.f32", MaxF32 "max.f32",
        }
        "9.7.3.11-12" V7_0_SM80 Pure [F32] [F32I, F32I] "minimum or maximum that propagates NaN" {
            MinNanF32 "min.NaN.f32", MaxNanF32 "max.NaN.f32",
        }
        "9.7.3" V6_0 Pure [F64] [F64I, F64I] "f64 arithmetic" {
            AddF64 "add.f64", SubF64 "sub.f64", MulF64 "mul.f64",
            AddRnF64 "add.rn.f64", SubRnF64 "sub.rn.f64", MulRnF64 "mul.rn.f64",
            DivRnF64 "div.rn.f64",
            MinF64 "min.f64", MaxF64 "max.f64",
        }
        "9.7.3.6" V6_0 Pure [F32] [F32I, F32I, F32I] "`a * b + c`, rounded once" {
            FmaRnF32 "fma.rn.f32",
        }
        "9.7.3.6" V6_0 Pure [F64] [F64I, F64I, F64I] "`a * b + c`, rounded once" {
            FmaRnF64 "fma.rn.f64",
        }
        "9.7.3" V6_0 Pure [F32] [F32I] "one-operand f32 arithmetic" {
            NegF32 "neg.f32", AbsF32 "abs.f32",
            RcpRnF32 "rcp.rn.f32", RcpApproxF32 "rcp.approx.f32", RcpApproxFtzF32 "rcp.approx.ftz.f32",
            SqrtRnF32 "sqrt.rn.f32", SqrtApproxF32 "sqrt.approx.f32",
            RsqrtApproxF32 "rsqrt.approx.f32", RsqrtApproxFtzF32 "rsqrt.approx.ftz.f32",
            SinApproxF32 "sin.approx.f32", CosApproxF32 "cos.approx.f32",
            Ex2ApproxF32 "ex2.approx.f32", Ex2ApproxFtzF32 "ex2.approx.ftz.f32",
            Lg2ApproxF32 "lg2.approx.f32", Lg2ApproxFtzF32 "lg2.approx.ftz.f32",
        }
        "9.7.3.22" V7_0_SM75 Pure [F32] [F32I] "hyperbolic tangent" {
            TanhApproxF32 "tanh.approx.f32",
        }
        "9.7.3" V6_0 Pure [F64] [F64I] "one-operand f64 arithmetic" {
            NegF64 "neg.f64", AbsF64 "abs.f64",
            RcpRnF64 "rcp.rn.f64", SqrtRnF64 "sqrt.rn.f64", RsqrtApproxF64 "rsqrt.approx.f64",
        }

        "9.7.4" V6_0 Pure [B16] [B16, B16] "f16 arithmetic" {
            AddF16 "add.f16", SubF16 "sub.f16", MulF16 "mul.f16",
            AddRnF16 "add.rn.f16", SubRnF16 "sub.rn.f16", MulRnF16 "mul.rn.f16",
        }
        "9.7.4" V6_0 Pure [B32] [B32, B32] "arithmetic on two f16" {
            AddF16x2 "add.f16x2", SubF16x2 "sub.f16x2", MulF16x2 "mul.f16x2",
            AddRnF16x2 "add.rn.f16x2", SubRnF16x2 "sub.rn.f16x2", MulRnF16x2 "mul.rn.f16x2",
        }
        "9.7.4.4" V6_0 Pure [B16] [B16, B16, B16] "`a * b + c` on f16, rounded once" {
            FmaRnF16 "fma.rn.f16",
        }
        "9.7.4.4" V6_0 Pure [B32] [B32, B32, B32] "`a * b + c` on two f16, rounded once" {
            FmaRnF16x2 "fma.rn.f16x2",
        }
        "9.7.4.5" V6_0 Pure [B16] [B16] "f16 negation" {
            NegF16 "neg.f16",
        }
        "9.7.4.5" V6_0 Pure [B32] [B32] "negation of two f16" {
            NegF16x2 "neg.f16x2",
        }
        "9.7.4.6" V6_5 Pure [B16] [B16] "f16 absolute value" {
            AbsF16 "abs.f16",
        }
        "9.7.4.6" V6_5 Pure [B32] [B32] "absolute values of two f16" {
            AbsF16x2 "abs.f16x2",
        }
        "9.7.4" V7_0_SM75 Pure [B16] [B16] "one-operand f16 functions" {
            Ex2ApproxF16 "ex2.approx.f16", TanhApproxF16 "tanh.approx.f16",
        }
        "9.7.4" V7_0_SM75 Pure [B32] [B32] "one-operand functions of two f16" {
            Ex2ApproxF16x2 "ex2.approx.f16x2", TanhApproxF16x2 "tanh.approx.f16x2",
        }
        "9.7.4.7-8" V7_0_SM80 Pure [B16] [B16, B16] "minimum or maximum" {
            MinF16 "min.f16", MaxF16 "max.f16", MinBf16 "min.bf16", MaxBf16 "max.bf16",
        }
        "9.7.4.7-8" V7_0_SM80 Pure [B32] [B32, B32] "two minima or maxima" {
            MinF16x2 "min.f16x2", MaxF16x2 "max.f16x2", MinBf16x2 "min.bf16x2", MaxBf16x2 "max.bf16x2",
        }
        "9.7.4.4" V7_0_SM80 Pure [B16] [B16, B16, B16] "`a * b + c` on bf16, rounded once" {
            FmaRnBf16 "fma.rn.bf16",
        }
        "9.7.4.4" V7_0_SM80 Pure [B32] [B32, B32, B32] "`a * b + c` on two bf16, rounded once" {
            FmaRnBf16x2 "fma.rn.bf16x2",
        }
        "9.7.4" V7_8_SM90 Pure [B16] [B16, B16] "bf16 arithmetic" {
            AddBf16 "add.bf16", SubBf16 "sub.bf16", MulBf16 "mul.bf16",
        }
        "9.7.4" V7_8_SM90 Pure [B32] [B32, B32] "arithmetic on two bf16" {
            AddBf16x2 "add.bf16x2", SubBf16x2 "sub.bf16x2", MulBf16x2 "mul.bf16x2",
        }

        "9.7.6.2" V6_0 Pure [P] [B32I, B32I] "32-bit integer comparison" {
            SetpEqS32 "setp.eq.s32", SetpNeS32 "setp.ne.s32", SetpLtS32 "setp.lt.s32",
            SetpLeS32 "setp.le.s32", SetpGtS32 "setp.gt.s32", SetpGeS32 "setp.ge.s32",
            SetpEqU32 "setp.eq.u32", SetpNeU32 "setp.ne.u32", SetpLtU32 "setp.lt.u32",
            SetpLeU32 "setp.le.u32", SetpGtU32 "setp.gt.u32", SetpGeU32 "setp.ge.u32",
        }
        "9.7.6.2" V6_0 Pure [P] [B64I, B64I] "64-bit integer comparison" {
            SetpEqS64 "setp.eq.s64", SetpNeS64 "setp.ne.s64", SetpLtS64 "setp.lt.s64",
            SetpLeS64 "setp.le.s64", SetpGtS64 "setp.gt.s64", SetpGeS64 "setp.ge.s64",
            SetpEqU64 "setp.eq.u64", SetpNeU64 "setp.ne.u64", SetpLtU64 "setp.lt.u64",
            SetpLeU64 "setp.le.u64", SetpGtU64 "setp.gt.u64", SetpGeU64 "setp.ge.u64",
        }
        "9.7.6.2" V6_0 Pure [P] [F32I, F32I] "f32 comparison; false on NaN, `neu` true" {
            SetpEqF32 "setp.eq.f32", SetpNeF32 "setp.ne.f32", SetpLtF32 "setp.lt.f32",
            SetpLeF32 "setp.le.f32", SetpGtF32 "setp.gt.f32", SetpGeF32 "setp.ge.f32",
            SetpNeuF32 "setp.neu.f32",
        }
        "9.7.6.2" V6_0 Pure [P] [F64I, F64I] "f64 comparison; false on NaN, `neu` true" {
            SetpEqF64 "setp.eq.f64", SetpNeF64 "setp.ne.f64", SetpLtF64 "setp.lt.f64",
            SetpLeF64 "setp.le.f64", SetpGtF64 "setp.gt.f64", SetpGeF64 "setp.ge.f64",
            SetpNeuF64 "setp.neu.f64",
        }
        "9.7.7.2" V6_0 Pure [P] [B16, B16] "f16 comparison; false on NaN, `neu` true" {
            SetpEqF16 "setp.eq.f16", SetpNeF16 "setp.ne.f16", SetpLtF16 "setp.lt.f16",
            SetpLeF16 "setp.le.f16", SetpGtF16 "setp.gt.f16", SetpGeF16 "setp.ge.f16",
            SetpNeuF16 "setp.neu.f16",
        }
        "9.7.6.3" V6_0 Pure [B16] [B16I, B16I, P] "`a` where the predicate holds, else `b`" {
            SelpB16 "selp.b16",
        }
        "9.7.6.3" V6_0 Pure [B32] [B32I, B32I, P] "`a` where the predicate holds, else `b`" {
            SelpB32 "selp.b32",
        }
        "9.7.6.3" V6_0 Pure [B64] [B64I, B64I, P] "`a` where the predicate holds, else `b`" {
            SelpB64 "selp.b64",
        }
        "9.7.6.3" V6_0 Pure [F32] [F32I, F32I, P] "`a` where the predicate holds, else `b`" {
            SelpF32 "selp.f32",
        }
        "9.7.6.3" V6_0 Pure [F64] [F64I, F64I, P] "`a` where the predicate holds, else `b`" {
            SelpF64 "selp.f64",
        }
    ] $($rest)* } };
}
