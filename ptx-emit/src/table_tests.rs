//! Consistency of the table, and a text with every row for an assembler.
//!
//! If `TILEC_DUMP_TABLE` names a file, `every_row_prints` writes modules to it: one with all rows of the lowest
//! version, and one for each later row and each of its column counts. Each is headed `// == NAME VERSION TARGET`.
//! `scripts/check_ptx_table.sh` assembles them.

use crate::check::{Limits, check, required_version};
use crate::inst::{Class, Guard, Operand, Reg, Special};
use crate::module::{ConstDecl, Function, Item, Module, Param, ParamTy, SharedDecl};
use crate::ops::{Effect, Kind, Op, Space};
use crate::print::print;
use crate::target::{Sm, Version};
use crate::{builder::FunctionBuilder, inst::Label};
use std::collections::BTreeSet;
use std::fmt::Write;

const LIMITS: Limits = Limits { static_shared_bytes: 48 << 10, shared_bytes: 96 << 10, threads: 1024 };

#[test]
fn rows_differ_in_mnemonic_or_operands() {
    let mut seen = BTreeSet::new();
    for &op in Op::ALL {
        let key = (op.mnemonic(), format!("{:?}", op.signature()));
        assert!(seen.insert(key), "`{op:?}` repeats a row");
    }
}

/// The type suffix of a mnemonic fixes the width of the first operand that has one.
#[test]
fn rows_agree_with_their_mnemonics() {
    for &op in Op::ALL {
        let (mnemonic, signature) = (op.mnemonic(), op.signature());
        let name = format!("{op:?}").to_lowercase();
        let opcode = mnemonic.split('.').next().expect("a mnemonic has an opcode");
        let is_pack = name.contains("pack");
        assert!(is_pack || name.starts_with(opcode), "`{op:?}` is named unlike `{mnemonic}`");

        let (mut n_vecs, mut n_addrs, mut n_sums) = (0, 0, 0);
        for kind in signature.kinds() {
            match kind {
                Kind::Vec(lanes, class) => {
                    assert!(lanes >= 1 && class != Class::Pred, "`{op:?}`");
                    n_vecs += 1;
                }
                Kind::Addr(space, bytes) => {
                    // Boxes begin at multiples of 128 bytes.
                    let most = if mnemonic.contains(".bulk.") { 128 } else { 16 };
                    assert!(bytes.is_power_of_two() && bytes <= most, "`{op:?}`");
                    let text = match space {
                        Space::Param => ".param",
                        Space::Global => ".global",
                        Space::Shared => ".shared",
                        Space::Const => ".const",
                    };
                    let implied = mnemonic.starts_with("mbarrier");
                    assert!(implied || mnemonic.contains(text), "`{op:?}` lacks `{text}`");
                    n_addrs += 1;
                }
                Kind::Sums(each, class) => {
                    let expected = match mnemonic {
                        m if m.contains(".s32.") => (2, Class::B32),
                        m if m.contains(".f32.") => (2, Class::F32),
                        _ => (4, Class::B32),
                    };
                    assert_eq!((each, class), expected, "`{op:?}`");
                    n_sums += 1;
                }
                Kind::Range(min, max) => assert!(min < max, "`{op:?}`"),
                Kind::Reg(_)
                | Kind::RegOrImm(_)
                | Kind::PredOrNot
                | Kind::OneOf(_)
                | Kind::Columns(_)
                | Kind::Special(_)
                | Kind::SharedSym
                | Kind::ParamSym
                | Kind::ConstSym
                | Kind::Elected
                | Kind::Sink
                | Kind::TensorMap
                | Kind::Tensor(_)
                | Kind::Label => {}
            }
        }
        let places = signature.columns().map_or(0, |_| 1);
        assert_eq!((mnemonic.matches("nN").count(), n_sums), (places, places), "`{op:?}`");
        if matches!(op.effect(), Effect::Read | Effect::Write | Effect::ReadWrite) {
            let elsewhere = mnemonic.starts_with("wgmma")
                || signature.kinds().any(|k| matches!(k, Kind::TensorMap | Kind::Tensor(_)));
            assert!(n_addrs > 0 || elsewhere, "`{op:?}` has an effect on no address");
        }
        if matches!(opcode, "ld" | "st") {
            assert_eq!(n_vecs == 1, mnemonic.contains(".v2.") || mnemonic.contains(".v4."), "`{op:?}`");
            let width: u32 = mnemonic.rsplit('.').next().and_then(|ty| ty[1..].parse().ok()).expect("a type");
            let lanes = if mnemonic.contains(".v4.") {
                4
            } else if n_vecs == 1 {
                2
            } else {
                1
            };
            let bytes = signature.kinds().find_map(|kind| match kind {
                Kind::Addr(_, bytes) => Some(bytes),
                _ => None,
            });
            assert_eq!(bytes, Some(lanes * width / 8), "`{op:?}`");
        }
    }
}

#[test]
fn products_have_the_columns_of_the_manual() {
    for &op in Op::ALL {
        let Some(columns) = op.signature().columns() else { continue };
        let sparse = op.mnemonic().contains(".s32.");
        let expected: Vec<u16> = (8..=256).step_by(8).filter(|n| !sparse || *n <= 24 || n % 16 == 0).collect();
        assert_eq!(columns, expected, "`{op:?}`");
    }
}

#[test]
fn every_row_is_no_newer_than_its_target() {
    for &op in Op::ALL {
        let known = op.min_sm().min_version().expect("rows name known targets");
        assert!(op.min_version() >= known, "`{op:?}` claims a version without its target");
    }
}

#[test]
fn every_row_prints() {
    let base: Vec<Op> = Op::ALL.iter().copied().filter(|op| op.min_version() == (6, 0)).collect();
    let later = Op::ALL.iter().copied().filter(|op| op.min_version() != (6, 0));
    let mut dump = String::new();
    let mut add = |name: &str, version: Version, sm: Sm, module: &Module| {
        assert_eq!(check(module, &LIMITS), [], "{name}");
        let (major, minor) = version;
        let text = print(module);
        assert!(text.contains(&format!(".version {major}.{minor}\n.target {sm}\n")), "{name}");
        writeln!(dump, "// == {name} {major}.{minor} {sm}\n{text}").expect("writing to a string");
    };

    let module = module_of(Sm::plain(70), &base, None);
    add("base", (6, 0), Sm::plain(70), &module);
    assert!(base.iter().all(|op| print(&module).contains(op.mnemonic())));
    for op in later {
        let mut form = |name: &str, columns| {
            add(name, op.min_version(), op.min_sm(), &module_of(op.min_sm(), &[op], columns));
        };
        match op.signature().columns() {
            None => form(&format!("{op:?}"), None),
            Some(counts) => counts.iter().for_each(|n| form(&format!("{op:?}-n{n}"), Some(*n))),
        }
    }
    let cluster = Special::ClusterCtaRank;
    let mut b = FunctionBuilder::new("k");
    let reg = b.new_reg(Class::B32);
    b.push(Op::MovSpecialU32, [reg.into(), cluster.into()]);
    b.push(Op::Ret, []);
    let mut module = Module::new(cluster.min_sm());
    module.functions.push(b.finish());
    assert_eq!(required_version(&module).0, cluster.min_version());
    add("ClusterCtaRank", cluster.min_version(), cluster.min_sm(), &module);

    if let Ok(path) = std::env::var("TILEC_DUMP_TABLE") {
        std::fs::write(path, dump).expect("writing the dump");
    }
}

/// A module that uses each of `ops` with registers, with literals where it takes them, and with a guard; `columns` for
/// products with a choice of columns.
fn module_of(target: Sm, ops: &[Op], columns: Option<u16>) -> Module {
    let mut module = Module::new(target);
    module.files.push("every row.tile".to_string());
    module.functions.push(Sample::new(columns).function(ops));
    module
}

/// Operands for any row: enough registers of each class, all written, and one array, parameter and label.
struct Sample {
    b: FunctionBuilder,
    pools: Vec<(Class, Vec<Reg>)>,
    shared: u32,
    param: u32,
    table: u32,
    label: Label,
    columns: Option<u16>,
}

impl Sample {
    fn new(columns: Option<u16>) -> Sample {
        let mut b = FunctionBuilder::new("every_row");
        b.maxntid([128, 1, 1]);
        let shared = b.shared(SharedDecl { name: "tile".to_string(), align: 128, bytes: 256, dynamic: false });
        let param = b.param(Param { name: "blob".to_string(), ty: ParamTy::Bytes(64), align: Some(16) });
        let table = b.table(ConstDecl { name: "table".to_string(), bits: 64, words: vec![1, 2] });
        let label = b.label("end");
        let mut pools = vec![];
        for class in Class::ALL {
            let regs = b.new_regs(class, if matches!(class, Class::F32 | Class::B32) { 128 } else { 8 });
            for &reg in &regs {
                let reg = Operand::Reg(reg);
                match class {
                    Class::Pred => b.push(Op::SetpEqU32, [reg, 0.into(), 0.into()]),
                    Class::B16 => b.push(Op::MovB16, [reg, 0.into()]),
                    Class::B32 => b.push(Op::MovB32, [reg, 0.into()]),
                    Class::B64 => b.push(Op::MovB64, [reg, 0.into()]),
                    Class::F32 => b.push(Op::MovF32, [reg, 0.0f32.into()]),
                    Class::F64 => b.push(Op::MovF64, [reg, 0.0f64.into()]),
                }
            }
            pools.push((class, regs));
        }
        Sample { b, pools, shared, param, table, label, columns }
    }

    fn function(mut self, ops: &[Op]) -> Function {
        let guard = Some(Guard { reg: self.regs(Class::Pred, 1)[0], negated: true });
        for &op in ops {
            self.b.comment(format!("{op:?}"));
            let plain: Vec<Operand> = self.operands(op, false);
            self.b.push(op, plain.clone());
            self.b.push(op, self.operands(op, true));
            if op.effect() == Effect::Pure && !op.mnemonic().contains("mma") {
                self.b.push_guarded(guard, op, plain);
            }
            for &special in Special::ALL.iter().filter(|s| s.min_version() == (6, 0)) {
                if op.signature().srcs == [Kind::Special(special.class())] {
                    let dst = self.regs(special.class(), 1)[0];
                    self.b.push(op, [dst.into(), special.into()]);
                }
            }
        }
        self.b.bind(self.label);
        self.b.push(Op::Ret, []);
        self.b.finish()
    }

    fn regs(&self, class: Class, count: usize) -> Vec<Reg> {
        let pool = self.pools.iter().find(|(c, _)| *c == class).expect("every class has a pool");
        pool.1[..count].to_vec()
    }

    fn operands(&self, op: Op, literals: bool) -> Vec<Operand> {
        op.signature().kinds().map(|kind| self.operand(kind, literals)).collect()
    }

    fn operand(&self, kind: Kind, literals: bool) -> Operand {
        match self.columns.map_or(kind, |n| kind.with_columns(n)) {
            Kind::Columns(_) => Operand::Columns(self.columns.expect("columns for a row that has them")),
            Kind::Sums(..) => panic!("sums without columns"),
            Kind::RegOrImm(class) if literals => match class {
                Class::F32 => Operand::F32(1.5),
                Class::F64 => Operand::F64(1.5),
                Class::Pred | Class::B16 | Class::B32 | Class::B64 => Operand::Imm(1),
            },
            Kind::Reg(class) | Kind::RegOrImm(class) => Operand::Reg(self.regs(class, 1)[0]),
            Kind::Vec(lanes, class) => Operand::Vec(self.regs(class, usize::from(lanes))),
            Kind::PredOrNot if literals => Operand::NotPred(self.regs(Class::Pred, 1)[0]),
            Kind::PredOrNot => Operand::Reg(self.regs(Class::Pred, 1)[0]),
            Kind::Range(min, max) => Operand::Imm(if literals { max } else { min }),
            Kind::OneOf(values) => {
                Operand::Imm(*if literals { values.last() } else { values.first() }.expect("values"))
            }
            Kind::Addr(Space::Param, bytes) => Operand::param(self.param, i64::from(bytes)),
            Kind::Addr(Space::Shared, bytes) if literals => Operand::shared(self.shared, i64::from(bytes.max(16))),
            Kind::Addr(Space::Shared, _) => Operand::at(self.regs(Class::B32, 1)[0], -16),
            Kind::Addr(Space::Global | Space::Const, _) => Operand::at(self.regs(Class::B64, 1)[0], 32),
            Kind::Special(class) => {
                Operand::Special(*Special::ALL.iter().find(|s| s.class() == class).expect("a special register"))
            }
            Kind::SharedSym => Operand::SharedSym(self.shared),
            Kind::ParamSym => Operand::ParamSym(self.param),
            Kind::ConstSym => Operand::ConstSym(self.table),
            Kind::Elected => Operand::Elected(self.regs(Class::Pred, 1)[0]),
            Kind::Sink => Operand::Sink,
            Kind::TensorMap => Operand::Tensor { map: self.regs(Class::B64, 1)[0], at: Vec::new() },
            Kind::Tensor(rank) => {
                Operand::Tensor { map: self.regs(Class::B64, 1)[0], at: self.regs(Class::B32, usize::from(rank)) }
            }
            Kind::Label => Operand::Label(self.label),
        }
    }
}

/// If the sample read undefined registers, every other test here would be meaningless.
#[test]
fn the_sample_is_checked_at_all() {
    let mut module = module_of(Sm::plain(70), &[Op::BarWarpSync], None);
    module.functions[0].body.retain(|item| !matches!(item, Item::Inst(i) if i.op == Op::MovB32));
    assert!(!check(&module, &LIMITS).is_empty());
}
