//! The tables of `tests/cases`: a row is a test of the peer, a problem for each combination of its sizes and scalars.

use super::problem::{Problem, conforming};
use super::program::{Form, Order, Program};
use crate::number::Format;
use std::collections::BTreeMap;
use tilec::Target;

/// A table: its name, its text, and the targets of its problems. `fma`: without tensor cores.
struct Table {
    name: &'static str,
    text: &'static str,
    target: Target,
    fma: bool,
}

const TABLES: [Table; 5] = [
    Table { name: "volta", text: include_str!("../../cases/volta.csv"), target: Target::Sm70, fma: false },
    Table { name: "fma", text: include_str!("../../cases/fma.csv"), target: Target::Sm70, fma: true },
    Table { name: "turing", text: include_str!("../../cases/turing.csv"), target: Target::Sm75, fma: false },
    Table { name: "ampere", text: include_str!("../../cases/ampere.csv"), target: Target::Sm80, fma: false },
    Table { name: "hopper", text: include_str!("../../cases/hopper.csv"), target: Target::Sm90a, fma: false },
];

/// The problems of every table, with its name.
///
/// # Errors
/// A row cannot be read.
pub fn tables() -> Result<Vec<(&'static str, Vec<Problem>)>, String> {
    TABLES.iter().map(|table| Ok((table.name, table.problems()?))).collect()
}

impl Table {
    fn problems(&self) -> Result<Vec<Problem>, String> {
        let mut lines = self.text.lines().filter(|l| !l.starts_with('#'));
        let header: Vec<&str> = lines.next().unwrap_or("").split(',').collect();
        let mut all = Vec::new();
        for line in lines {
            let cells: BTreeMap<&str, &str> = header.iter().copied().zip(line.split(',')).collect();
            let row = Row { line, cells };
            all.extend(row.problems(self)?);
        }
        Ok(all)
    }
}

struct Row<'a> {
    line: &'a str,
    cells: BTreeMap<&'a str, &'a str>,
}

impl Row<'_> {
    fn cell(&self, name: &str) -> Result<&str, String> {
        self.cells.get(name).copied().ok_or_else(|| format!("no column `{name}` in: {}", self.line))
    }

    fn list<T: std::str::FromStr>(&self, name: &str) -> Result<Vec<T>, String> {
        let parse = |t: &str| t.parse().map_err(|_| format!("`{name}` is not a number in: {}", self.line));
        self.cell(name)?.split(';').filter(|t| !t.is_empty()).map(parse).collect()
    }

    fn first(&self, name: &str) -> Result<Option<i64>, String> {
        Ok(self.list(name)?.first().copied())
    }

    fn order(&self, name: &str) -> Result<Order, String> {
        let name = self.cell(name)?;
        Order::BOTH.into_iter().find(|o| o.name() == name).ok_or_else(|| format!("no order in: {}", self.line))
    }

    fn format(&self, name: &str) -> Result<Format, String> {
        Format::from_name(self.cell(name)?).ok_or_else(|| format!("`{name}` is no type we know in: {}", self.line))
    }

    /// `or` where the table has no such column.
    fn optional<T>(&self, name: &str, or: T, read: impl Fn(&Self, &str) -> Result<T, String>) -> Result<T, String> {
        if self.cells.contains_key(name) { read(self, name) } else { Ok(or) }
    }

    fn problems(&self, table: &Table) -> Result<Vec<Problem>, String> {
        let orders = [self.order("layout_A")?, self.order("layout_B")?, self.order("layout_C")?];
        let (acc, out) = (self.format("acc")?, self.format("type_C")?);
        let first = self.optional("type_A", Format::F16, Self::format)?;
        let inputs = [first, self.optional("type_B", first, Self::format)?];
        let batches = self.list::<i64>("batch")?;
        let batch = batches.first().copied().unwrap_or(1);
        let slices = self.list::<i64>("split_k")?;
        let form = match () {
            () if !multiplied_together(inputs) => Form::Mixed,
            () if batch > 1 => Form::Batched,
            () => Form::Plain,
        };
        let promised = self.first("align_A")?.unwrap_or(1);
        let other = |name: &str| self.optional(name, Some(promised), Self::first).map(|n| n.unwrap_or(1));
        let promised = [promised, other("align_B")?, other("align_C")?];
        let tb: Vec<i64> = self.cell("tb_mnk")?.split('x').filter_map(|t| t.parse().ok()).collect();
        let small = tb.iter().take(2).product::<i64>() < 128 * 128;
        // On Hopper, the large tile is the compiler's choice.
        let chosen = table.target == Target::Sm90a && !small;
        let tile = (!chosen).then_some(usize::from(small));
        let ld = [self.first("lda")?, self.first("ldb")?, self.first("ldc")?];
        let name = format!("{} {}", self.cell("source")?, self.cell("test")?);
        let (mut all, mut turn) = (Vec::new(), 0);
        for size in combinations([self.list("M")?, self.list("N")?, self.list("K")?]) {
            for [alpha, beta, _] in combinations([self.list("alpha")?, self.list("beta")?, vec![0.0]]) {
                let [m, n, k] = size;
                let (target, fma, align) = (table.target, table.fma, [1; 3]);
                let mut program = Program { target, fma, form, inputs, orders, acc, out, align, tile };
                let mut problem = Problem::new(format!("{name} {m}x{n}x{k}"), program, size, ld, [alpha, beta]);
                for (i, promised) in promised.into_iter().enumerate() {
                    program.align[i] = conforming(promised, [problem.runs()[i], problem.ld[i]].into_iter());
                }
                problem.program = program;
                problem.batch = batch;
                turn += 1;
                // If there are several numbers of slices (one means none), the problems use them in rotation, besides
                // the unsliced product.
                let cut: Vec<i64> = slices.iter().copied().filter(|&s| s > 1 && form == Form::Plain).collect();
                if let Some(&slices) = cut.get(turn % cut.len().max(1)) {
                    let program = Program { form: Form::Split, ..program };
                    let name = format!("{} in {slices} slices", problem.name);
                    all.push(Problem { name, program, slices, ..problem.clone() });
                }
                if cut.is_empty() || slices.contains(&1) {
                    all.push(problem);
                }
            }
        }
        // Further numbers of matrices are tried only with the last, largest size.
        for &batch in batches.iter().skip(1) {
            if let Some(last) = all.last().cloned() {
                let program = Program { form: Form::Batched, ..last.program };
                all.push(Problem { name: format!("{} times {batch}", last.name), program, batch, ..last });
            }
        }
        Ok(all)
    }
}

/// Whether one instruction multiplies the types: one of them, or two bytes or two 8-bit floats.
fn multiplied_together([a, b]: [Format; 2]) -> bool {
    let integral = |f| matches!(f, Format::Int { .. });
    a == b || a.bytes() == 1 && b.bytes() == 1 && integral(a) == integral(b)
}

fn combinations<T: Copy>([a, b, c]: [Vec<T>; 3]) -> Vec<[T; 3]> {
    let mut all = Vec::new();
    for &x in &a {
        for &y in &b {
            all.extend(c.iter().map(|&z| [x, y, z]));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_read_completely() {
        for (table, (_, problems)) in TABLES.iter().zip(tables().unwrap()) {
            let rows = table.text.lines().filter(|l| l.starts_with("cutlass")).count();
            let expected = [("volta", 100), ("fma", 245), ("turing", 44), ("ampere", 86), ("hopper", 87)];
            assert!(expected.contains(&(table.name, rows)), "{}: {rows} rows", table.name);
            assert!(problems.len() > 2 * rows || table.name == "fma", "{}: {}", table.name, problems.len());
            assert!(problems.iter().any(|p| p.beta == 2.0), "{}", table.name);
        }
        let all: Vec<Problem> = tables().unwrap().into_iter().flat_map(|(_, problems)| problems).collect();
        assert!(all.iter().any(|p| p.batch == 3) && all.iter().any(|p| p.alpha == 1.25));
        for input in ["f16", "bf16", "tf32", "f32", "f64", "i8", "u8"] {
            assert!(all.iter().any(|p| p.program.inputs[0].name() == input), "{input}");
        }
        for form in [Form::Plain, Form::Split, Form::Batched, Form::Mixed] {
            assert!(all.iter().any(|p| p.program.form == form), "{form:?}");
        }
        let bytes = |p: &&Problem| p.program.fma && p.program.inputs[0].name() == "i8";
        assert!(all.iter().filter(bytes).count() == 47 && all.iter().any(|p| p.slices == 16));
        // One operand may promise less than another.
        assert!(all.iter().any(|p| p.program.align[0] != p.program.align[1]));
    }
}
