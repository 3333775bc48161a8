//! The complete text of a small module.

use super::*;
use crate::builder::FunctionBuilder;
use crate::check::{Limits, check};
use crate::inst::{Guard, Special};
use crate::module::SharedDecl;
use crate::ops::Op;
use crate::target::Sm;
use pretty_assertions::assert_eq;

const LIMITS: Limits = Limits { static_shared_bytes: 48 << 10, shared_bytes: 96 << 10, threads: 1024 };

fn param(name: &str, ty: ParamTy, align: Option<u32>) -> Param {
    Param { name: name.to_string(), ty, align }
}

fn shared(name: &str, bytes: u32, dynamic: bool) -> SharedDecl {
    SharedDecl { name: name.to_string(), align: 16, bytes, dynamic }
}

/// A loop that stages 16 bytes through shared memory, with every kind of statement and operand.
fn sample() -> Module {
    let mut b = FunctionBuilder::new("stage");
    b.maxntid([128, 1, 1]);
    b.minnctapersm(2);
    let a = b.param(param("A", ParamTy::GlobalPtr, Some(16)));
    let n = b.param(param("n", ParamTy::S32, None));
    b.param(param("map", ParamTy::Bytes(128), Some(64)));
    let dynamic = b.shared(shared("dynamic_smem", 4096, true));
    let tile = b.shared(shared("tile", 1024, false));
    // Never used, so never declared.
    b.new_reg(Class::F64);

    b.loc(0, 3, 5);
    b.comment("let a = smem\n\nsecond line");
    let base = b.def(Class::B64, Op::LdParamU64, [Operand::param(a, 0)]);
    let count = b.def(Class::B32, Op::LdParamU32, [Operand::param(n, 0)]);
    let tid = b.def(Class::B32, Op::MovSpecialU32, [Special::TidX.into()]);
    let smem = b.def(Class::B32, Op::MovSharedU32, [Operand::SharedSym(dynamic)]);
    let looped = b.label("loop_k");
    b.bind(looped);
    b.pragma("nounroll");
    let regs = b.new_regs(Class::B32, 4);
    b.push(Op::LdGlobalV4B32, [regs.clone().into(), Operand::at(base, -16)]);
    b.push(Op::StSharedV4B32, [Operand::shared(tile, 32), regs.into()]);
    b.push(Op::BarSync, [0.into()]);
    let value = b.def(Class::F32, Op::LdSharedF32, [Operand::at(smem, 4)]);
    let scaled = b.def(Class::F32, Op::MulF32, [value.into(), 1.0f32.into()]);
    let wide = b.def(Class::F64, Op::CvtF64F32, [scaled.into()]);
    b.push(Op::AddF64, [wide.into(), wide.into(), (-0.0f64).into()]);
    let more = b.def(Class::Pred, Op::SetpLtS32, [tid.into(), count.into()]);
    b.push(Op::VoteSyncAnyPred, [more.into(), Operand::NotPred(more), (-1).into()]);
    let guard = Some(Guard { reg: more, negated: true });
    b.push_guarded(guard, Op::BraUni, [looped.into()]);
    b.push(Op::Ret, []);

    let mut module = Module::new(Sm::plain(70));
    module.header.push("made by tilec".to_string());
    module.files.push("gemm.tile".to_string());
    module.functions.push(b.finish());
    module
}

const EXPECTED: &str = "\
// made by tilec
.version 6.0
.target sm_70
.address_size 64
.file 1 \"gemm.tile\"
.extern .shared .align 16 .b8 dynamic_smem[];

.visible .entry stage(
	.param .u64 .ptr .global .align 16 A,
	.param .s32 n,
	.param .align 64 .b8 map[128]
)
.maxntid 128, 1, 1
.minnctapersm 2
{
	.reg .pred\t%p<1>;
	.reg .b32\t%r<7>;
	.reg .b64\t%rd<1>;
	.reg .f32\t%f<2>;
	.reg .f64\t%fd<1>;
	.shared .align 16 .b8 tile[1024];
	.loc\t1 3 5
	// let a = smem
	//
	// second line
	ld.param.u64\t%rd0, [A];
	ld.param.u32\t%r0, [n];
	mov.u32\t%r1, %tid.x;
	mov.u32\t%r2, dynamic_smem;
$L_loop_k:
	.pragma \"nounroll\";
	ld.global.v4.b32\t{%r3, %r4, %r5, %r6}, [%rd0+-16];
	st.shared.v4.b32\t[tile+32], {%r3, %r4, %r5, %r6};
	bar.sync\t0;
	ld.shared.f32\t%f0, [%r2+4];
	mul.f32\t%f1, %f0, 0f3F800000;
	cvt.f64.f32\t%fd0, %f1;
	add.f64\t%fd0, %fd0, 0d8000000000000000;
	setp.lt.s32\t%p0, %r1, %r0;
	vote.sync.any.pred\t%p0, !%p0, -1;
	@!%p0 bra.uni\t$L_loop_k;
	ret;
}
";

#[test]
fn a_module_prints_as_expected() {
    let module = sample();
    assert_eq!(check(&module, &LIMITS), []);
    assert_eq!(print(&module), EXPECTED);
}

/// ptxas refuses other characters even in comments, and ends a string at any quote.
#[test]
fn text_from_outside_becomes_plain_ascii() {
    let mut module = sample();
    module.header.push("naïve\r\n\u{7}.version 1.0".to_string());
    module.files[0] = "a \"b\" é\n\\c.tile".to_string();
    let text = print(&module);
    assert!(text.contains("// na\\u{ef}ve\n// \\u{7}.version 1.0\n"));
    assert!(text.contains(".file 1 \"a %22b%22 %C3%A9%0A%5Cc.tile\"\n"));
    assert!(text.bytes().all(|b| b == b'\n' || b == b'\t' || b == b' ' || b.is_ascii_graphic()));
}

#[test]
fn columns_stand_in_the_opcode() {
    let mut b = FunctionBuilder::new("k");
    let sums = b.new_regs(Class::B32, 6);
    let [d, p] = [Class::B64, Class::Pred].map(|class| b.new_reg(class));
    b.push(
        Op::WgmmaM64k16F16F16,
        [sums.into(), Operand::Columns(24), d.into(), d.into(), p.into(), 1.into(), (-1).into(), 0.into(), 1.into()],
    );
    let mut module = Module::new(Sm::exact(90));
    module.functions.push(b.finish());
    let expected = "\twgmma.mma_async.sync.aligned.m64n24k16.f16.f16.f16\t{%r0, %r1, %r2, %r3, %r4, %r5}, %rd0, %rd0, %p0, 1, -1, 0, 1;\n";
    let text = print(&module);
    assert!(text.contains(expected), "{text}");
}

/// Names depend on the order of use, not on the order in which lowering requested registers.
#[test]
fn register_names_depend_on_use_alone() {
    let text = |reversed: bool| {
        let mut b = FunctionBuilder::new("k");
        let mut regs = b.new_regs(Class::B32, 2);
        if reversed {
            regs.reverse();
        }
        b.push(Op::MovB32, [regs[0].into(), 1.into()]);
        b.push(Op::AddS32, [regs[1].into(), regs[0].into(), 2.into()]);
        b.push(Op::Ret, []);
        let mut module = Module::new(Sm::plain(70));
        module.functions.push(b.finish());
        print(&module)
    };
    assert_eq!(text(false), text(true));
}

/// Two kernels that use one dynamic array declare it once, before both.
#[test]
fn a_dynamic_array_is_declared_once() {
    let mut module = sample();
    let mut second = module.functions[0].clone();
    second.name = "second".to_string();
    module.functions.push(second);
    assert_eq!(check(&module, &LIMITS), []);
    assert_eq!(print(&module).matches(".extern .shared").count(), 1);
}
