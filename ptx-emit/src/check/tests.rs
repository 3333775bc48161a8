//! Breaks each rule once.

use super::*;
use crate::builder::FunctionBuilder;
use crate::inst::{Class, Guard, Inst, Label, Reg, Special};
use crate::module::{Param, SharedDecl};
use crate::ops::Op;
use crate::target::Sm;
use cranelift_entity::EntityRef;
use pretty_assertions::assert_eq;

const LIMITS: Limits = Limits { static_shared_bytes: 48 << 10, shared_bytes: 96 << 10, threads: 1024 };

fn shared(name: &str, align: u32, bytes: u32, dynamic: bool) -> SharedDecl {
    SharedDecl { name: name.to_string(), align, bytes, dynamic }
}

fn param(name: &str, ty: ParamTy, align: Option<u32>) -> Param {
    Param { name: name.to_string(), ty, align }
}

/// Messages for a legal module, with one defined register of each class, after `edit`.
fn messages(edit: impl FnOnce(&mut FunctionBuilder, [Reg; 6])) -> Vec<String> {
    messages_of(edit, |_| {})
}

fn messages_of(edit: impl FnOnce(&mut FunctionBuilder, [Reg; 6]), spoil: impl FnOnce(&mut Module)) -> Vec<String> {
    let mut b = FunctionBuilder::new("k");
    b.param(param("A", ParamTy::GlobalPtr, Some(16)));
    b.shared(shared("tile", 16, 64, false));
    let [p, h, r, d, f, fd] = Class::ALL.map(|class| b.new_reg(class));
    b.push(Op::MovB16, [h.into(), 0.into()]);
    b.push(Op::MovB32, [r.into(), 0.into()]);
    b.push(Op::MovB64, [d.into(), 0.into()]);
    b.push(Op::MovF32, [f.into(), 0f32.into()]);
    b.push(Op::MovF64, [fd.into(), 0f64.into()]);
    b.push(Op::SetpEqS32, [p.into(), r.into(), 0.into()]);
    edit(&mut b, [p, h, r, d, f, fd]);
    b.push(Op::Ret, []);
    let mut module = Module::new(Sm::plain(70));
    module.functions.push(b.finish());
    spoil(&mut module);
    check(&module, &LIMITS).into_iter().map(|error| error.message).collect()
}

#[test]
fn a_legal_module_has_no_errors() {
    assert_eq!(messages(|_, _| {}), Vec::<String>::new());
}

#[test]
fn operands_must_fit_their_row() {
    let foreign = Reg::new(4_000_000_000);
    let found = messages(|b, [p, h, r, d, f, fd]| {
        b.push(Op::AddS32, [r.into(), r.into()]);
        b.push(Op::AddS32, [r.into(), f.into(), d.into()]);
        b.push(Op::AddS32, [r.into(), 1f32.into(), Operand::NotPred(p)]);
        b.push(Op::AddS32, [1.into(), foreign.into(), r.into()]);
        b.push(Op::AddF32, [f.into(), 1.into(), 1f64.into()]);
        b.push(Op::MovB32, [r.into(), 0xffff_ffff.into()]);
        b.push(Op::MovB32, [r.into(), 0x1_0000_0000.into()]);
        b.push(Op::MovB16, [h.into(), (-0x8001).into()]);
        b.push(Op::BarSync, [16.into()]);
        b.push(Op::PackB32B16, [r.into(), vec![h, h, h].into()]);
        b.push(Op::MovSpecialU32, [r.into(), Special::Clock64.into()]);
        b.push(Op::MovSharedU32, [r.into(), Operand::SharedSym(1)]);
        b.push(Op::CvtF64F32, [fd.into(), vec![f].into()]);
        b.push_guarded(Some(Guard { reg: r, negated: false }), Op::Trap, []);
    });
    assert_eq!(
        found,
        [
            "has 2 operands, expected 3",
            "operand 2 `reg4` is `.f32`, expected `.b32`",
            "operand 3 `reg3` is `.b64`, expected `.b32`",
            "operand 2 is an f32 literal, expected a `.b32` register or literal",
            "operand 3 is a complemented predicate, expected a `.b32` register or literal",
            "operand 1 is an integer literal, expected a `.b32` register",
            "operand 2 `reg4000000000` is not a register of the function",
            "operand 2 is an integer literal, expected a `.f32` register or literal",
            "operand 3 is an f64 literal, expected a `.f32` register or literal",
            "operand 2 is 4294967296, which `.b32` cannot hold",
            "operand 2 is -32769, which `.b16` cannot hold",
            "operand 1 is 16, expected 0 to 15",
            "operand 2 has 3 registers, expected 2",
            "operand 2 is a special register, expected a `.b32` special register",
            "operand 2 is shared array 1, which does not exist",
            "operand 2 is a vector, expected a `.f32` register",
            "the guard `reg2` is `.b32`, expected `.pred`",
        ]
    );
}

#[test]
fn addresses_must_be_in_their_space_aligned_and_in_range() {
    let found = messages(|b, [_, _, r, d, _, _]| {
        let half = b.shared(shared("half", 8, 64, false));
        let regs: Operand = vec![r; 4].into();
        let load = |b: &mut FunctionBuilder, addr| b.push(Op::LdSharedV4B32, [regs.clone(), addr]);
        load(b, Operand::shared(0, 48));
        load(b, Operand::shared(0, 4));
        load(b, Operand::shared(0, 64));
        load(b, Operand::shared(0, -16));
        load(b, Operand::shared(half, 0));
        load(b, Operand::shared(9, 0));
        load(b, Operand::at(r, 0x7f_ffff));
        load(b, Operand::at(r, 0x80_0000));
        load(b, Operand::at(r, i64::MIN));
        load(b, Operand::at(d, 0));
        load(b, Operand::param(0, 0));
        b.push(Op::LdGlobalV4B32, [regs.clone(), Operand::shared(0, 0)]);
        b.push(Op::LdParamU64, [d.into(), Operand::param(0, 0)]);
        b.push(Op::LdParamU32, [r.into(), Operand::param(0, 2)]);
        b.push(Op::LdParamU64, [d.into(), Operand::at(d, 0)]);
        b.push(Op::LdParamU64, [d.into(), Operand::param(1, 0)]);
    });
    assert_eq!(
        found,
        [
            "operand 2 has offset 4, not a multiple of the 16 bytes accessed",
            "operand 2 reaches bytes 64..80 of 64",
            "operand 2 reaches bytes -16..0 of 64",
            "operand 2 is an access of 16 bytes to a symbol aligned to 8",
            "operand 2 is shared array 9, which does not exist",
            "operand 2 has offset 8388608, which 24 bits cannot hold",
            "operand 2 has offset -9223372036854775808, which 24 bits cannot hold",
            "operand 2 `reg3` is `.b64`, expected `.b32`",
            "operand 2 is based on a parameter, which is no shared address",
            "operand 2 is based on a shared array, which is no global address",
            "operand 2 has offset 2, not a multiple of the 4 bytes accessed",
            "operand 2 is based on a register, which is no parameter address",
            "operand 2 is parameter 1, which does not exist",
        ]
    );
}

#[test]
fn what_is_read_must_be_written_and_labels_bound_once() {
    let found = messages(|b, [_, _, r, ..]| {
        let ghost = b.new_reg(Class::B32);
        let guard = b.new_reg(Class::Pred);
        let nowhere = b.label("nowhere");
        let twice = b.label("twice");
        b.bind(twice);
        b.push(Op::AddS32, [r.into(), ghost.into(), ghost.into()]);
        b.push_guarded(Some(Guard { reg: guard, negated: true }), Op::Bra, [nowhere.into()]);
        b.bind(twice);
        b.push(Op::Bra, [Label::new(7).into()]);
        b.bind(Label::new(4_000_000_000));
        b.loc(0, 1, 1);
    });
    assert_eq!(
        found,
        [
            "label `twice` is bound 2 times",
            "`reg6` is read but written nowhere",
            "label `nowhere` is bound nowhere",
            "`reg7` is read but written nowhere",
            "label `twice` is bound 2 times",
            "operand 1 `label7` is not a label of the function",
            "`label4000000000` is not a label of the function",
            "position in file 0, the module has 0 files",
        ]
    );
}

#[test]
fn an_error_names_its_place() {
    let mut b = FunctionBuilder::new("k");
    b.comment("first");
    b.push(Op::BarSync, [99.into()]);
    let mut module = Module::new(Sm::plain(70));
    module.functions.push(b.finish());
    let errors = check(&module, &LIMITS);
    assert_eq!(errors.len(), 1);
    assert_eq!((errors[0].function, errors[0].item, errors[0].op), (Some(0), Some(1), Some(Op::BarSync)));
    assert_eq!(errors[0].to_string(), "function 0, item 1 (`bar.sync`): operand 1 is 99, expected 0 to 15");
}

#[test]
fn names_are_checked_and_unique() {
    let long = "x".repeat(65);
    let found = messages_of(
        |b, _| {
            b.label("1st");
            b.param(param("A", ParamTy::U32, None));
            b.param(param("WARP_SZ", ParamTy::U32, None));
            b.shared(shared("a b", 16, 16, false));
            b.shared(shared(&long, 16, 0, true));
        },
        |module| {
            let mut again = module.functions[0].clone();
            again.params.clear();
            again.shared = vec![shared("k", 16, 0, true), shared(&long, 32, 0, true)];
            again.labels.clear();
            module.functions.push(again);
        },
    );
    let form = "is not 1 to 64 letters, digits and underscores starting with no digit";
    assert_eq!(
        found,
        [
            "entry `k` is defined twice".to_string(),
            "dynamic array `k` has the name of an entry".to_string(),
            format!("dynamic array `{long}` has two alignments"),
            "parameter name `WARP_SZ` is reserved".to_string(),
            "`A` is declared twice".to_string(),
            format!("shared array name `a b` {form}"),
            format!("shared array name `{long}` {form}"),
            format!("label name `1st` {form}"),
            format!("shared array name `{long}` {form}"),
        ]
    );
}

#[test]
fn resources_are_within_the_limits() {
    let (static_max, max) = (LIMITS.static_shared_bytes, LIMITS.shared_bytes);
    // The sample's own array takes the first 64 bytes.
    let fits = messages(|b, _| {
        b.shared(shared("s", 16, static_max - 64, false));
        b.shared(shared("d", 16, max - static_max, true));
        b.maxntid([1024, 1, 1]);
    });
    assert_eq!(fits, Vec::<String>::new());
    let found = messages(|b, _| {
        b.param(param("odd", ParamTy::U32, Some(3)));
        b.param(param("none", ParamTy::Bytes(0), None));
        b.param(param("big", ParamTy::Bytes(u32::MAX), None));
        b.shared(shared("s", 16, static_max - 63, false));
        b.shared(shared("d", 16, u32::MAX, true));
        b.shared(shared("align", 0, 4, false));
        b.shared(shared("empty", 4, 0, false));
        b.maxntid([u32::MAX; 3]);
        b.minnctapersm(0);
    });
    assert_eq!(
        found,
        [
            "parameter `odd` has alignment 3, not a power of two",
            "parameter `none` has no bytes",
            "parameters take 4294967303 bytes, more than the 4352 a kernel can have",
            "shared array `align` has alignment 0, not a power of two",
            "static shared array `empty` has no bytes",
            "49153 bytes of static shared memory, at most 49152 are possible",
            "4295016463 bytes of shared memory, the target has 98304 per block",
            "block of 4294967295x4294967295x4294967295 threads, expected 1 to 1024",
            "`.minnctapersm 0`, expected at least 1",
        ]
    );
}

#[test]
fn the_target_must_have_what_is_used() {
    let found = messages_of(
        |b, [_, _, r, ..]| {
            b.push(Op::CpAsyncCommitGroup, []);
            b.push(Op::MovSpecialU32, [r.into(), Special::ClusterCtaRank.into()]);
        },
        |module| module.version = Some((7, 0)),
    );
    assert_eq!(
        found,
        [
            "`.version 7.0` is too low: `%cluster_ctarank` needs 7.8",
            "needs `sm_80`, the target is `sm_70`",
            "`%cluster_ctarank` needs `sm_90`, the target is `sm_70`",
        ]
    );
    let unknown = messages_of(|_, _| {}, |module| module.target = Sm::plain(71));
    assert_eq!(unknown, ["unknown target `sm_71`"]);
    let exact = messages_of(|b, _| b.push(Op::WgmmaFence, []), |module| module.target = Sm::plain(90));
    assert_eq!(exact, ["needs `sm_90a`, the target is `sm_90`"]);
}

/// The opcode names the columns; the accumulator has one register for two columns.
#[test]
fn sums_and_columns_of_a_product_agree() {
    let of = |op: Op, columns: Operand, sums: usize| {
        let product = |b: &mut FunctionBuilder, [p, _, _, d, ..]: [Reg; 6]| {
            let mut operands = vec![b.new_regs(Class::B32, sums).into(), columns, d.into(), d.into(), p.into()];
            if op == Op::WgmmaM64k16F16F16 {
                operands.extend([1, 1, 0, 0].map(Operand::Imm));
            }
            b.push(op, operands);
        };
        messages_of(product, |module| module.target = Sm::exact(90))
    };
    let none = Vec::<String>::new();
    let (bytes, halves) = (Op::WgmmaM64k32S32S8, Op::WgmmaM64k16F16F16);
    assert_eq!(of(bytes, Operand::Columns(24), 12), none);
    assert_eq!(of(bytes, Operand::Columns(256), 128), none);
    assert_eq!(of(halves, Operand::Columns(40), 10), none);
    assert_eq!(of(bytes, Operand::Columns(80), 32), ["operand 1 has 32 registers, expected 40"]);
    assert_eq!(of(halves, Operand::Columns(64), 32), ["operand 1 has 32 registers, expected 16"]);
    let counts = "[8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256]";
    for (columns, sums) in [(0, 0), (40, 20), (272, 136), (1024, 0)] {
        let message = format!("operand 2 is {columns} columns, expected one of {counts}");
        assert_eq!(of(bytes, Operand::Columns(columns), sums), [message]);
    }
    let message = format!("operand 2 is an integer literal, expected a count of columns, one of {counts}");
    assert_eq!(of(bytes, Operand::Imm(64), 32), [message]);
}

#[test]
fn the_lowest_version_that_works_and_who_forced_it() {
    let version_of = |target: Sm, ops: &[Op]| {
        let mut module = Module::new(target);
        module.functions.push(Function::new("first"));
        let mut func = Function::new("second");
        let inst = |&op| Item::Inst(Inst::new(op, None, vec![]));
        func.body = ops.iter().map(inst).collect();
        module.functions.push(func);
        let (version, by) = required_version(&module);
        (version, by.map(|by| (by.function, by.item, by.op)))
    };
    let mma = Op::MmaM8n8k4RowColF32;
    assert_eq!(version_of(Sm::plain(70), &[]), ((6, 0), None));
    assert_eq!(version_of(Sm::plain(70), &[Op::Ret]), ((6, 0), None));
    // Of two instructions that force the same version, the first is named.
    assert_eq!(version_of(Sm::plain(70), &[Op::Activemask, mma, mma]), ((6, 4), Some((1, 1, mma))));
    assert_eq!(version_of(Sm::plain(75), &[mma]), ((6, 4), Some((1, 0, mma))));
    // The target alone forces the version.
    assert_eq!(version_of(Sm::plain(80), &[mma]), ((7, 0), None));
    assert_eq!(version_of(Sm::exact(90), &[Op::WgmmaFence]), ((8, 0), None));
}
