//! Index arithmetic means one thing everywhere: random expressions, whose operands may be negative, have the same values in the
//! interpreter, in the compiled PTX on the simulator, in the launch contract, and by a plain evaluator that shares nothing
//! with them.

use crate::problem::Random;
use std::collections::BTreeMap;
use std::fmt;
use tilec::{CompileOptions, Target, expr};
use tilec_ir::interp;
use tilec_ir::types::Elem;
use tilec_sim::{Device, Launch, Options, Program};

/// An expression.
#[derive(Clone, Debug)]
enum Tree {
    Literal(i64),
    Name(&'static str),
    Negative(Box<Tree>),
    Abs(Box<Tree>),
    Infix(&'static str, Box<[Tree; 2]>),
    Call(&'static str, Box<[Tree; 2]>),
    Select(Box<(Condition, Tree, Tree)>),
}

#[derive(Clone, Debug)]
enum Condition {
    Compare(&'static str, Box<[Tree; 2]>),
    Both(&'static str, Box<[Condition; 2]>),
    Not(Box<Condition>),
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tree::Literal(x) if *x < 0 => write!(f, "({x})"),
            Tree::Literal(x) => write!(f, "{x}"),
            Tree::Name(name) => f.write_str(name),
            Tree::Negative(x) => write!(f, "(-{x})"),
            Tree::Abs(x) => write!(f, "abs({x})"),
            Tree::Infix(op, xs) => write!(f, "({} {op} {})", xs[0], xs[1]),
            Tree::Call(op, xs) => write!(f, "{op}({}, {})", xs[0], xs[1]),
            Tree::Select(parts) => write!(f, "select({}, {}, {})", parts.0, parts.1, parts.2),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Compare(op, xs) => write!(f, "({} {op} {})", xs[0], xs[1]),
            Condition::Both(op, xs) => write!(f, "({} {op} {})", xs[0], xs[1]),
            Condition::Not(x) => write!(f, "(!{x})"),
        }
    }
}

type Values = BTreeMap<&'static str, i64>;

/// The value, by the document: `None` where it does not fit 64 bits or something is divided by zero.
fn value(tree: &Tree, of: &Values) -> Option<i64> {
    let pair = |xs: &[Tree; 2]| Some((i128::from(value(&xs[0], of)?), i128::from(value(&xs[1], of)?)));
    let x = match tree {
        Tree::Literal(x) => i128::from(*x),
        Tree::Name(name) => i128::from(of[name]),
        Tree::Negative(x) => -i128::from(value(x, of)?),
        Tree::Abs(x) => i128::from(value(x, of)?.unsigned_abs()),
        Tree::Infix(op, xs) | Tree::Call(op, xs) => {
            let (a, b) = pair(xs)?;
            // With a positive divisor, the remainder is not negative.
            let (up, by) = if b < 0 { (-a, -b) } else { (a, b) };
            let floor = |up: i128| (by != 0).then(|| (up - up.rem_euclid(by)) / by);
            match *op {
                "+" => a + b,
                "-" => a - b,
                "*" => a * b,
                "/" => floor(up)?,
                "%" => a - floor(up)? * b,
                "ceildiv" => -floor(-up)?,
                "min" => a.min(b),
                "max" => a.max(b),
                other => panic!("no operator: {other}"),
            }
        }
        Tree::Select(parts) => i128::from(value(if holds(&parts.0, of)? { &parts.1 } else { &parts.2 }, of)?),
    };
    i64::try_from(x).ok()
}

fn holds(condition: &Condition, of: &Values) -> Option<bool> {
    Some(match condition {
        Condition::Compare(op, xs) => {
            let (a, b) = (value(&xs[0], of)?, value(&xs[1], of)?);
            match *op {
                "==" => a == b,
                "!=" => a != b,
                "<" => a < b,
                "<=" => a <= b,
                ">" => a > b,
                ">=" => a >= b,
                other => panic!("no comparison: {other}"),
            }
        }
        // The left side may decide alone.
        Condition::Both("&&", xs) => holds(&xs[0], of)? && holds(&xs[1], of)?,
        Condition::Both(_, xs) => holds(&xs[0], of)? || holds(&xs[1], of)?,
        Condition::Not(x) => !holds(x, of)?,
    })
}

/// The operands of random expressions.
struct Shape {
    names: &'static [&'static str],
    literals: &'static [i64],
    /// Divisors are literals above 0, and so is one factor of a product: compiled code takes no others.
    compiled: bool,
}

impl Shape {
    fn tree(&self, random: &mut Random, depth: u32) -> Tree {
        if depth == 0 || random.below(6) == 0 {
            return match random.below(3) {
                0 => Tree::Literal(random.of(self.literals)),
                _ => Tree::Name(random.of(self.names)),
            };
        }
        let part = |random: &mut Random| self.tree(random, depth - 1);
        match random.below(12) {
            0 => Tree::Negative(Box::new(part(random))),
            1 => Tree::Abs(Box::new(part(random))),
            2 => Tree::Select(Box::new((self.condition(random, depth - 1), part(random), part(random)))),
            kind => {
                let (op, call) = [
                    ("+", false),
                    ("-", false),
                    ("-", false),
                    ("*", false),
                    ("/", false),
                    ("%", false),
                    ("ceildiv", true),
                    ("min", true),
                    ("max", true),
                ][kind as usize - 3];
                let a = part(random);
                let b = match op {
                    "*" | "/" | "%" | "ceildiv" if self.compiled => Tree::Literal(random.between(1, 9)),
                    _ => part(random),
                };
                let parts = Box::new([a, b]);
                if call { Tree::Call(op, parts) } else { Tree::Infix(op, parts) }
            }
        }
    }

    fn condition(&self, random: &mut Random, depth: u32) -> Condition {
        let part = |random: &mut Random| self.condition(random, depth - 1);
        match random.below(if depth == 0 { 1 } else { 4 }) {
            2 => Condition::Not(Box::new(part(random))),
            3 => Condition::Both(random.of(&["&&", "||"]), Box::new([part(random), part(random)])),
            _ => {
                let op = random.of(&["==", "!=", "<", "<=", ">", ">="]);
                let depth = depth.saturating_sub(1);
                Condition::Compare(op, Box::new([self.tree(random, depth), self.tree(random, depth)]))
            }
        }
    }
}

fn seed() -> u64 {
    std::env::var("TILEC_FUZZ_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0)
}

/// The evaluator of the contract, with operands of all sizes, and what has no value.
#[test]
fn the_contract_evaluates_as_documented() {
    const ENDS: &[i64] = &[0, 1, -1, 2, -2, 3, 7, -7, 64, i64::MAX, i64::MIN, i64::MAX - 1, 1 << 31, -(1 << 40)];
    let shape = Shape { names: &["a", "b", "c"], literals: ENDS, compiled: false };
    let mut random = Random(seed());
    let mut undefined = 0;
    for _ in 0..30_000 {
        let of: Values = shape.names.iter().map(|&name| (name, random.of(ENDS))).collect();
        let lookup = |name: &str| of.get(name).copied();
        let tree = shape.tree(&mut random, 4);
        let want = value(&tree, &of);
        undefined += u32::from(want.is_none());
        assert_eq!(expr::integer(&tree.to_string(), &lookup).ok(), want, "`{tree}` of {of:?}");
        let condition = shape.condition(&mut random, 3);
        assert_eq!(
            expr::condition(&condition.to_string(), &lookup).ok(),
            holds(&condition, &of),
            "`{condition}` of {of:?}"
        );
    }
    assert!((3_000..27_000).contains(&undefined), "{undefined} have no value");
}

/// Expressions of one kernel.
const ROWS: usize = 6;
/// Blocks at most.
const BLOCKS: i64 = 5;
/// Elements that a block stores for each.
const WIDTH: usize = 32;
const UNTOUCHED: i64 = -77;

struct Case {
    source: String,
    grid: Tree,
    rows: Vec<Tree>,
    wanted: Condition,
}

fn case(random: &mut Random) -> Case {
    const SMALL: &[i64] = &[0, 1, 2, 3, 5, 8, 13, -1, -4, -6];
    let host = Shape { names: &["M", "N"], literals: SMALL, compiled: true };
    let device = Shape { names: &["M", "N", "b", "i"], literals: SMALL, compiled: true };
    let inner = host.tree(random, 3);
    let some = Tree::Call("min", Box::new([Tree::Literal(BLOCKS), inner]));
    let grid = Tree::Call("max", Box::new([Tree::Literal(1), some]));
    let wanted = host.condition(random, 3);
    let rows: Vec<Tree> = (0..ROWS).map(|_| device.tree(random, 4)).collect();
    let stores: String = rows
        .iter()
        .enumerate()
        .map(|(row, e)| format!("y = {e}\ncopy y -> Y[((b * 2 + i) * {ROWS} + {row}) * {WIDTH}..]\n"))
        .collect();
    let length = BLOCKS as usize * 2 * ROWS * WIDTH;
    let source = format!(
        "kernel f(Y: gmem i64[{length}], A: gmem f32[M], B: gmem f32[N]) where {wanted} grid (b: {grid}) {{
            var y = reg i64[{WIDTH}]
            for i in 0..2 {{
                {stores}
            }}
        }}"
    );
    Case { source, grid, rows, wanted }
}

/// The expected contents of `Y`.
fn expected(case: &Case, of: &Values) -> Option<Vec<i64>> {
    let mut out = vec![UNTOUCHED; BLOCKS as usize * 2 * ROWS * WIDTH];
    for b in 0..value(&case.grid, of)? {
        for i in 0..2 {
            let of = of.iter().map(|(&name, &x)| (name, x)).chain([("b", b), ("i", i)]).collect();
            for (row, tree) in case.rows.iter().enumerate() {
                let at = ((b as usize * 2 + i as usize) * ROWS + row) * WIDTH;
                out[at..at + WIDTH].fill(value(tree, &of)?);
            }
        }
    }
    Some(out)
}

fn interpreted(source: &str, of: &Values) -> Result<Vec<i64>, String> {
    let kernel = crate::oracle::parse_one(source)?;
    let y = vec![UNTOUCHED; BLOCKS as usize * 2 * ROWS * WIDTH].into();
    let zeros = |size: &str| interp::Numbers::zeros(Elem::F32, of[size] as usize);
    let mut inputs = interp::Inputs {
        sizes: of.iter().map(|(name, x)| ((*name).to_owned(), *x)).collect(),
        tensors: [("Y", Elem::I64, y), ("A", Elem::F32, zeros("M")), ("B", Elem::F32, zeros("N"))]
            .into_iter()
            .map(|(name, elem, data)| (name.to_owned(), interp::Tensor { elem, data }))
            .collect(),
        ..interp::Inputs::default()
    };
    interp::run(&kernel, &mut inputs, &interp::Options::default()).map_err(|d| crate::oracle::one_line(&d))?;
    Ok(inputs.tensors["Y"].data.integers().map(|x| x as i64).collect())
}

/// Launches compiled code by its contract; `None`: a condition of the contract does not hold.
fn launched(program: &Program, contract: &tilec::Contract, of: &Values) -> Option<Vec<i64>> {
    let lookup = |name: &str| of.get(name).copied();
    if !contract.requires.iter().all(|text| expr::condition(text, &lookup).unwrap()) {
        return None;
    }
    let grid = contract.grid.each_ref().map(|text| u32::try_from(expr::integer(text, &lookup).unwrap()).unwrap());
    let mut device = Device::new();
    let before: Vec<u8> =
        vec![UNTOUCHED; BLOCKS as usize * 2 * ROWS * WIDTH].iter().flat_map(|x| x.to_le_bytes()).collect();
    let y = device.alloc(before.len() as u64).unwrap();
    device.upload(y, &before).unwrap();
    let params = contract.params.iter().map(|p| match of.get(p.name.as_str()) {
        Some(&size) => (size as u32).to_le_bytes().to_vec(),
        // Only one of the tensors is accessed.
        None => y.to_le_bytes().to_vec(),
    });
    let params = params.collect();
    let (block, dynamic_smem) = (contract.block, contract.dynamic_smem_bytes);
    let launch = Launch { entry: "f".to_owned(), grid, block, dynamic_smem, params };
    device.run(program, &launch, &Options::default()).unwrap();
    let after = device.download(y, before.len()).unwrap();
    Some(after.chunks(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect())
}

#[test]
fn programs_compute_indices_as_documented() {
    let mut random = Random(seed().wrapping_add(1));
    let (mut launches, mut refused) = (0, 0);
    const CASES: u32 = 120;
    for _ in 0..CASES {
        let case = case(&mut random);
        let options = CompileOptions { target: Target::Sm70, ..CompileOptions::default() };
        let compiled = match tilec::compile(&case.source, &options) {
            Ok(compiled) => compiled,
            Err(e) => {
                // A precondition that literals decide to be false.
                let never = e.list.iter().all(|d| d.code == tilec_ir::codes::FALSE_PRECONDITION);
                assert!(never, "{}\n{:?}", case.source, e.list);
                refused += 1;
                continue;
            }
        };
        let program = Program::parse(&compiled.ptx).unwrap();
        for (m, n) in [(1, 1), (4, 9), (2, 30), (17, 3)] {
            let of = Values::from([("M", m), ("N", n)]);
            let contract = &compiled.kernels[0].contract;
            let got = launched(&program, contract, &of);
            let want = expected(&case, &of).filter(|_| holds(&case.wanted, &of) == Some(true));
            assert_eq!(got, want, "M={m} N={n}\n{}\n{}", case.source, compiled.ptx);
            assert_eq!(interpreted(&case.source, &of).ok(), want, "interpreter, M={m} N={n}\n{}", case.source);
            launches += u32::from(want.is_some());
        }
    }
    assert!(launches > CASES && refused < CASES / 2, "{launches} launches, {refused} refused");
}
