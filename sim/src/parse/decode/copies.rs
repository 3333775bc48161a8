//! Which copies may read a part of their bytes.

use crate::program::types::R;
use crate::program::{CpAsync, Entry, Op};

/// Marks the copies whose size of the source is neither a constant nor chosen by `selp` between nothing and all: the assembler makes
/// another instruction of them (`LDGSTS.ZFILL`, seen in ptxas 12.9 for sm_90), which costs more. One such `selp` is taken to be all
/// that sets the register.
pub(super) fn mark_partial(entry: &mut Entry) {
    let constants = &entry.const32;
    let ends = |slot: R, size: u8| {
        constants.iter().any(|(at, value)| *at == slot && (*value == 0 || *value == u32::from(size)))
    };
    let chosen = |code: &[crate::program::Inst], copy: &CpAsync| {
        copy.src_size.is_none_or(|from| {
            let selects = |op: &Op| {
                matches!(op, Op::SelW { d, a, b, .. }
                if *d == from && ends(*a, copy.size) && ends(*b, copy.size))
            };
            ends(from, copy.size) || code.iter().any(|inst| selects(&inst.op))
        })
    };
    let partial: Vec<usize> = (0..entry.code.len())
        .filter(|at| matches!(&entry.code[*at].op, Op::CpAsync(copy) if !chosen(&entry.code, copy)))
        .collect();
    for at in partial {
        if let Op::CpAsync(copy) = &mut entry.code[at].op {
            copy.partial = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::program::{Op, Program};

    /// Whether the copies of a program are marked, in their order.
    fn marks(body: &str) -> Vec<bool> {
        let ptx = format!(
            ".version 7.4\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u32 n)\n{{\n\
             .reg .b64 %a;\n.reg .b32 %s, %n;\n.reg .pred %p;\n.shared .align 16 .b8 s[16];\n\
             ld.param.u64 %a, [a];\nld.param.u32 %n, [n];\nmov.u32 %s, s;\nsetp.ne.u32 %p, %n, 0;\n{body}\nret;\n}}\n"
        );
        let program = Program::parse(&ptx).expect("it parses");
        let code = &program.entries[0].code;
        code.iter().filter_map(|i| if let Op::CpAsync(c) = &i.op { Some(c.partial) } else { None }).collect()
    }

    #[test]
    fn sizes_of_nothing_or_all_are_seen() {
        let copy = |size: &str| format!("cp.async.cg.shared.global [%s], [%a], 16{size};");
        assert_eq!(marks(&(copy("") + &copy(", 16") + &copy(", 0") + &copy(", 8"))), [false, false, false, true]);
        assert_eq!(marks(&copy(", %n")), [true]);
        assert_eq!(marks(&format!("selp.b32 %n, 16, 0, %p; {}", copy(", %n"))), [false]);
        assert_eq!(marks(&format!("selp.b32 %n, 0, 16, %p; {}", copy(", %n"))), [false]);
        assert_eq!(marks(&format!("selp.b32 %n, 8, 0, %p; {}", copy(", %n"))), [true]);
        assert_eq!(marks(&format!("selp.b32 %n, 16, %n, %p; {}", copy(", %n"))), [true]);
    }
}
