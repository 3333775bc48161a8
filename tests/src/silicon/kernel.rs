//! The PTX of a probe: a warp takes one set of operands after the other.
//!
//! Memory holds, set after set, every register of the instruction for 32 lanes, 32 or 64 bits to a lane.

use super::operand::{Operand, Width};
use super::probe::Probe;
use std::fmt::Write as _;

/// Threads of a block.
pub const BLOCK: u32 = 128;

/// A module with the kernels of these probes.
pub fn module(probes: &[&Probe]) -> String {
    let mut text = ".version 8.7\n.target sm_90\n.address_size 64\n".to_owned();
    for probe in probes {
        kernel(&mut text, probe);
    }
    text
}

fn declare(text: &mut String, prefix: &str, operands: &[Operand]) {
    for (i, operand) in operands.iter().enumerate() {
        let ty = match operand.width {
            Width::Pred => "pred",
            Width::B16 => "b16",
            Width::B32 => "b32",
            Width::B64 => "b64",
        };
        let _ = writeln!(text, "    .reg .{ty} %{prefix}{i};");
    }
}

/// Byte offsets of the registers in a set.
fn places(operands: &[Operand]) -> impl Iterator<Item = (usize, &Operand, usize)> {
    operands.iter().enumerate().scan(0, |at, (i, operand)| {
        let place = *at;
        *at += 128 * operand.width.words();
        Some((i, operand, place))
    })
}

fn kernel(text: &mut String, probe: &Probe) {
    let (read, written) = (4 * probe.input_words(), 4 * probe.output_words());
    let _ = writeln!(
        text,
        ".visible .entry {}(.param .u64 source, .param .u64 results, .param .u32 sets)\n{{\n\
         \x20   .reg .pred %done, %q0;\n    .reg .b16 %zero16;\n    .reg .b32 %set, %step, %sets, %lane, %t0, %t1, %zero;\n\
         \x20   .reg .b64 %source, %results, %lane4, %lane8, %s4, %s8, %d4, %d8;",
        probe.entry
    );
    declare(text, "i", &probe.inputs);
    declare(text, "o", &probe.outputs);
    let _ = writeln!(
        text,
        "    ld.param.u64 %source, [source];\n    ld.param.u64 %results, [results];\n    ld.param.u32 %sets, [sets];\n\
         \x20   cvta.to.global.u64 %source, %source;\n    cvta.to.global.u64 %results, %results;\n\
         \x20   mov.u32 %t0, %ctaid.x;\n    mov.u32 %t1, %ntid.x;\n    mov.u32 %lane, %tid.x;\n\
         \x20   mad.lo.u32 %set, %t0, %t1, %lane;\n    shr.u32 %set, %set, 5;\n    and.b32 %lane, %lane, 31;\n\
         \x20   mov.u32 %step, %nctaid.x;\n    mul.lo.u32 %step, %step, %t1;\n    shr.u32 %step, %step, 5;\n\
         \x20   mul.wide.u32 %lane4, %lane, 4;\n    mul.wide.u32 %lane8, %lane, 8;\n\
         \x20   mov.b32 %zero, 0;\n    mov.b16 %zero16, 0;\n\
         LOOP:\n    setp.ge.u32 %done, %set, %sets;\n    @%done bra DONE;\n\
         \x20   mad.wide.u32 %s4, %set, {read}, %source;\n    add.s64 %s8, %s4, %lane8;\n    add.s64 %s4, %s4, %lane4;\n\
         \x20   mad.wide.u32 %d4, %set, {written}, %results;\n    add.s64 %d8, %d4, %lane8;\n    add.s64 %d4, %d4, %lane4;"
    );
    for (i, operand, at) in places(&probe.inputs) {
        let _ = match operand.width {
            Width::B64 => writeln!(text, "    ld.global.b64 %i{i}, [%s8+{at}];"),
            Width::B32 => writeln!(text, "    ld.global.b32 %i{i}, [%s4+{at}];"),
            Width::B16 => writeln!(text, "    ld.global.b16 %i{i}, [%s4+{at}];"),
            Width::Pred => writeln!(
                text,
                "    ld.global.b32 %t0, [%s4+{at}];\n    and.b32 %t0, %t0, 1;\n    setp.ne.u32 %i{i}, %t0, %zero;"
            ),
        };
    }
    let _ = writeln!(text, "{}", probe.body);
    for (i, operand, at) in places(&probe.outputs) {
        let _ = match operand.width {
            Width::B64 => writeln!(text, "    st.global.b64 [%d8+{at}], %o{i};"),
            Width::B32 => writeln!(text, "    st.global.b32 [%d4+{at}], %o{i};"),
            Width::B16 => writeln!(text, "    cvt.u32.u16 %t0, %o{i};\n    st.global.b32 [%d4+{at}], %t0;"),
            Width::Pred => writeln!(text, "    selp.b32 %t0, 1, 0, %o{i};\n    st.global.b32 [%d4+{at}], %t0;"),
        };
    }
    text.push_str("    add.u32 %set, %set, %step;\n    bra LOOP;\nDONE:\n    ret;\n}\n");
}
