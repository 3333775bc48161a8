//! The lines, of the PTX or of the source, that `HGMMA` and its like came from.
//!
//! The assembler's line table names a neighbour for most of them: `.loc` changes with the arithmetic of descriptors in front, which is moved. But the
//! assembler neither exchanges asynchronous products nor joins them, so the nth machine instruction is the nth `wgmma.mma_async`. That is checked by number,
//! shape and the place of the first operand; where it does not hold (loops that are unrolled, code that is not reached) the line table stays.

use crate::assembler::{SassFunction, SassInst};
use crate::compile::Compiled;
use crate::compile::source_lines::Places;
use crate::console::render::SourceFile;
use tilec_ir::diag::{Diagnostic, Span, counted};
use tilec_ir::kernel::Kernel;
use tilec_ptx::print::InstLine;

/// What every asynchronous product is called in PTX.
const OPCODE: &str = "wgmma.mma_async.";

/// The facts about a product that remain in assembled code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Product<'a> {
    /// Rows, columns, depth; as printed.
    shape: [&'a str; 3],
    /// Its first operand is in registers, not in shared memory.
    registers: bool,
}

/// Lines that instructions of a kernel are to have; `None`: there is none, and that of the line table stays.
pub(super) type LineOf<'a> = &'a dyn Fn(&Kernel, &InstLine) -> Option<u32>;

/// The line of the PTX.
pub(super) fn of_the_ptx(_: &Kernel, inst: &InstLine) -> Option<u32> {
    Some(inst.line)
}

/// The line of the source.
pub(super) fn of_the_source(source: &SourceFile) -> impl Fn(&Kernel, &InstLine) -> Option<u32> {
    |k, inst| {
        let span = k.stmt_spans[inst.origin?];
        let line = (!span.is_none()).then(|| source.position(span.start as usize).line)?;
        u32::try_from(line).ok()
    }
}

/// Gives wgmma instructions of machine code their source lines. Returns messages about functions in which the order is
/// ambiguous.
pub(super) fn attribute_wgmma(
    program: &Compiled,
    functions: &mut [SassFunction],
    line_of: LineOf<'_>,
) -> Vec<Diagnostic> {
    let text: Vec<&str> = program.ptx.lines().collect();
    let mut said = Vec::new();
    for function in functions {
        let Some(number) = program.kernels.iter().position(|k| k.contract.entry == function.name) else { continue };
        let of_kernel = program.ptx_lines.iter().filter(|l| l.function as usize == number);
        let written: Vec<_> = of_kernel.filter_map(|l| Some((l, of_ptx(text.get(l.line as usize - 1)?)?))).collect();
        let made: Vec<usize> =
            (0..function.insts.len()).filter(|&i| is_asynchronous_product(&function.insts[i])).collect();
        let products = made.iter().map(|&i| of_machine(&function.insts[i]));
        if products.eq(written.iter().map(|(_, product)| Some(*product))) {
            for (i, (line, _)) in made.into_iter().zip(&written) {
                let inst = &mut function.insts[i];
                if let Some(line) = line_of(&program.kernels[number].tile.kernel, line) {
                    inst.line = Some((inst.line.map_or(0, |(file, _)| file), line));
                }
            }
            continue;
        }
        let kernel = &program.kernels[number].tile.kernel;
        let message = format!(
            "the PTX of `{}` has {} `wgmma.mma_async`, and its machine code {} of other number, shape or operands: these have the lines of the assembler's \
             line table, which may be those of neighbours",
            function.name,
            counted(written.len(), "instruction"),
            counted(made.len(), "product")
        );
        let places = Places::new(kernel);
        let mut spans: Vec<Span> = written.iter().map(|(l, _)| places.of_statement(l.origin).span).collect();
        spans.retain(|span| !span.is_none());
        spans.dedup();
        let d = Diagnostic::remark("assembler", spans.first().copied().unwrap_or(kernel.name_span), message);
        said.push(spans.into_iter().fold(d, |d, span| d.with_place(span, "its instructions have uncertain lines")));
    }
    said
}

fn is_asynchronous_product(inst: &SassInst) -> bool {
    // HGMMA, IGMMA, QGMMA, BGMMA.
    inst.base().ends_with("GMMA")
}

/// A line of PTX, if it is such a product: `wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {..}, %rd1, %rd2, ..`.
fn of_ptx(line: &str) -> Option<Product<'_>> {
    let at = line.find(OPCODE)?;
    let (opcode, operands) = line[at..].split_once(char::is_whitespace)?;
    let shape = opcode.split('.').find_map(|part| shape(part.strip_prefix('m')?, ['n', 'k']))?;
    // Behind the sums, which are in braces.
    let (_, first) = operands.split_once('}')?;
    Some(Product { shape, registers: first.trim_start_matches([',', ' ']).starts_with('{') })
}

/// A machine instruction: `HGMMA.64x256x16.F32 R24, gdesc[UR8].tnspB, R24`.
fn of_machine(inst: &SassInst) -> Option<Product<'_>> {
    let shape = inst.opcode.split('.').find_map(|part| shape(part, ['x', 'x']))?;
    let first = inst.operands().split(',').nth(1)?.trim();
    Some(Product { shape, registers: !first.starts_with("gdesc") })
}

/// Three numbers with these letters between them.
fn shape(text: &str, [first, second]: [char; 2]) -> Option<[&str; 3]> {
    let (rows, rest) = text.split_once(first)?;
    let (columns, depth) = rest.split_once(second)?;
    let all = [rows, columns, depth];
    all.iter().all(|n| n.parse::<u32>().is_ok()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{CompileOptions, compile};
    use tilec_ir::target::Target;

    fn inst(text: &str) -> SassInst {
        let opcode = text.split(' ').next().expect("an opcode").to_owned();
        SassInst { addr: 0, predicate: None, opcode, text: text.to_owned(), line: Some((0, 1)), encoding: None }
    }

    #[test]
    fn products_are_told_by_shape_and_operands() {
        let line =
            "\twgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 1, 1, 1, 0, 1;";
        let of_memory = of_ptx(line).expect("a product");
        assert_eq!(of_memory, Product { shape: ["64", "8", "16"], registers: false });
        let line = line.replace("%rd1,", "{%r1, %r2, %r3, %r4},");
        let of_registers = of_ptx(&line).expect("a product");
        assert_eq!(of_registers, Product { registers: true, ..of_memory });
        assert_eq!(of_machine(&inst("HGMMA.64x8x16.F32 R24, gdesc[UR8].tnspB, R24")), Some(of_memory));
        assert_eq!(of_machine(&inst("QGMMA.64x8x16.F32.E4M3.E4M3 R24, R120, gdesc[UR4], R24")), Some(of_registers));
        assert_eq!(of_ptx("\twgmma.commit_group.sync.aligned;"), None);
    }

    /// Other products than those of the PTX keep their lines, and a message at the statements says so.
    #[test]
    fn other_products_keep_the_line_table() {
        let source = include_str!("../../../examples/gemm.tile");
        let options = CompileOptions { target: Target::Sm90a, ..CompileOptions::default() };
        let program = compile(source, &options).expect("a program");
        let products: Vec<&str> = program.ptx.lines().filter(|l| l.contains(OPCODE)).collect();
        let shape = of_ptx(products[0]).expect("a product").shape.join("x");
        let function = |count: usize, shape: &str| SassFunction {
            name: "gemm".to_owned(),
            insts: vec![inst(&format!("HGMMA.{shape}.F32 R24, gdesc[UR8], R24")); count],
            ..SassFunction::default()
        };
        let lines = |f: &SassFunction| f.insts.iter().map(|i| i.line.map(|(_, l)| l as usize)).collect::<Vec<_>>();
        let mut same = [function(products.len(), &shape)];
        assert!(attribute_wgmma(&program, &mut same, &of_the_ptx).is_empty());
        let text: Vec<&str> = program.ptx.lines().collect();
        assert!(
            lines(&same[0]).into_iter().zip(&products).all(|(line, own)| line.is_some_and(|l| text[l - 1] == *own))
        );
        let mut by_source = [function(products.len(), &shape)];
        assert!(attribute_wgmma(&program, &mut by_source, &of_the_source(&program.source)).is_empty());
        let of_product = source.lines().position(|l| l.contains("acc = mma(a, b, acc)")).map(|n| n + 1);
        assert!(lines(&by_source[0]).iter().all(|line| *line == of_product));
        for mut other in [function(1, &shape), function(4, "64x8x16")] {
            let said = attribute_wgmma(&program, std::slice::from_mut(&mut other), &of_the_ptx);
            assert!(said.len() == 1 && said[0].message.contains("line table"), "{said:?}");
            let span = said[0].span;
            assert_eq!(&source[span.start as usize..span.end as usize], "acc = mma(a, b, acc)");
            assert!(lines(&other).iter().all(|line| *line == Some(1)));
        }
    }
}
