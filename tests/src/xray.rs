//! The page of every example: whole, small, the same each time, and every link in it leads somewhere.

use std::fs;
use std::io::Write;
use std::path::Path;
use tilec::assembler::{Options, assemble, disassemble};
use tilec::compile::machine_code::by_ptx_line;
use tilec::xray::{Columns, Stage, Xray, compiled, of};
use tilec::{CompileOptions, Compiled, Target};

/// What a page may have for bytes.
const MOST: usize = 3 << 20;

fn example(name: &str, target: Target) -> Option<Compiled> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples")).join(name);
    let source = fs::read_to_string(&path).unwrap();
    let options = CompileOptions { source_name: format!("examples/{name}"), target, ..CompileOptions::default() };
    compiled(&source, &options).ok()
}

fn names() -> Vec<String> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples"));
    let all = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = all.filter(|n| n.ends_with(".tile")).collect();
    names.sort();
    names
}

/// That every number in the columns is that of a line that there is, and that nothing has lost its source.
fn check(what: &str, c: &Columns) {
    let lines = c.source.len();
    assert!(
        c.places.iter().all(|&(first, last)| 1 <= first && first <= last && last <= lines),
        "{what}: {:?}",
        c.places
    );
    assert_eq!([c.ptx_places.len(), c.ptx_statements.len()], [c.ptx.len(); 2], "{what}");
    let place = |p: &Option<usize>| p.is_none_or(|p| p < c.places.len());
    assert!(c.ptx_places.iter().all(place), "{what}");
    let mut text: &[String] = &[];
    for stage in &c.stages {
        let Stage { pass, places, changed, removed, remarks, .. } = stage;
        if let Some(own) = &stage.text {
            text = own;
            assert_eq!(text.len(), places.len(), "{what}: {pass}");
        }
        assert!(places.iter().all(place), "{what}: {pass}");
        assert!(changed.iter().all(|&l| 1 <= l && l <= text.len()), "{what}: {pass}: {changed:?}");
        assert!(removed.iter().all(|(l, _)| 1 <= *l && *l <= text.len() + 1), "{what}: {pass}");
        assert!(remarks.iter().all(|r| r.line <= lines), "{what}: {pass}");
    }
    let last = c.stages.last().expect("there are passes");
    assert_eq!(last.statements.len(), text.len(), "{what}: the last program says the statement of each line");
    // Every statement that has PTX is in the last program.
    let lost = c.ptx_statements.iter().flatten().find(|s| !last.statements.contains(&Some(**s)));
    assert_eq!(lost, None, "{what}: a statement of the PTX is not in the program");
    // Statements of the PTX are on instructions, and most instructions have one.
    let instructions = c.ptx.iter().filter(|l| l.starts_with("\t@") || l.starts_with('\t') && l.ends_with(';'));
    let (placed, all) = (c.ptx_places.iter().flatten().count(), instructions.count());
    assert!(placed * 10 >= all * 9, "{what}: {placed} of {all} instructions have a place");
    let made = c.ptx_statements.iter().flatten().count();
    assert!(made * 4 >= all, "{what}: {made} of {all} instructions have a statement");
}

fn check_page(what: &str, xray: &Xray) {
    check(what, &xray.columns);
    let names: std::collections::BTreeSet<&str> = xray.pictures.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names.len(), xray.pictures.len(), "{what}: two pictures of one name");
    for picture in &xray.pictures {
        assert!(picture.line <= xray.columns.source.len(), "{what}: {}", picture.name);
        let whole = picture.whole();
        // A background, and at least a shape on it.
        let shapes: usize = ["<rect", "<path", "<line", "<polyline"].iter().map(|s| whole.matches(s).count()).sum();
        assert!(whole.starts_with("<svg") && shapes > 1, "{what}: {}", picture.name);
    }
    let page = xray.to_html();
    assert!(page.len() <= MOST, "{what}: {} bytes", page.len());
    assert_eq!(page, xray.to_html(), "{what}");
    let (before, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").expect("the data");
    let (data, after) = rest.split_once("</script>").expect("its end");
    serde_json::from_str::<serde_json::Value>(data).expect("JSON");
    for text in [before, after] {
        for outside in ["http:", "https:", "//cdn", "src=", "@import", "url(", "fetch(", "XMLHttp"] {
            assert!(!text.contains(outside), "{what}: the page asks for `{outside}`");
        }
    }
}

#[test]
fn every_example_has_a_page() {
    let mut shown = 0;
    for (i, name) in names().into_iter().enumerate() {
        // A target each, in turn; of programs for one target alone, that one.
        let turn = [Target::Sm80, Target::Sm90a, Target::Sm70, Target::Sm75];
        let targets = turn.iter().cycle().skip(i).take(turn.len());
        let Some((target, program)) = targets.into_iter().find_map(|&t| Some((t, example(&name, t)?))) else {
            panic!("{name} is compiled for no target");
        };
        check_page(&format!("{name} for {}", target.name()), &of(&program, None));
        shown += 1;
    }
    assert!(shown > 20, "{shown} examples");
}

/// Programs that a pass over the whole file makes several kernels of, or loops: their texts differ in lines from pass to pass.
#[test]
fn programs_that_passes_over_files_change_have_a_page() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    // Rows are aligned for TMA copies, which sm_80 has not: there the file has the kernel that was written.
    let mut programs = vec![("docs/passes/odd.tile", None, Target::Sm90a)];
    for target in [Target::Sm80, Target::Sm90a] {
        programs.extend(["1", "2", "4"].map(|align| ("examples/gemm.tile", Some(align), target)));
    }
    for (name, align, target) in programs {
        let source = fs::read_to_string(root.join(name)).unwrap();
        let define = align.map(|n| ("ALIGN".to_owned(), n.to_owned()));
        let variants = define.map(|d| vec![vec![d]]).unwrap_or_default();
        let options = CompileOptions { source_name: name.to_owned(), target, variants, ..CompileOptions::default() };
        let program = compiled(&source, &options).expect("compiles");
        check_page(&format!("{name} {align:?} for {}", target.name()), &of(&program, None));
    }
}

/// The machine code leads back to instructions of the PTX, and its scheduling fits together: many of those that may take any time
/// set a barrier, who takes a fixed time sets none, and every barrier that is waited for is set by someone. What nvdisasm prints of the fields agrees.
#[test]
fn machine_code_leads_back_to_the_ptx() {
    for (name, target) in [
        ("gemm.tile", Target::Sm70),
        ("gemm.tile", Target::Sm75),
        ("softmax.tile", Target::Sm80),
        ("gemm.tile", Target::Sm90a),
    ] {
        let what = format!("{name} for {}", target.name());
        let program = example(name, target).expect("compiles");
        let Some(code) = by_ptx_line(&program).expect("the tools work") else {
            // Past the capture of the test harness.
            let line = format!("\nskipped: xray test: no ptxas or nvdisasm for {}\n", target.name());
            std::io::stderr().write_all(line.as_bytes()).unwrap();
            continue;
        };
        let xray = of(&program, Some(&code));
        check_page(&what, &xray);
        let machine = xray.columns.machine.as_ref().expect("there is machine code");
        let (mut led, mut set, mut waited) = (0, 0u8, 0u8);
        let (mut slow, mut slow_set) = (0, 0);
        let (mut reused, mut waits, mut early) = (0, 0, 0);
        for ((text, &line), control) in machine.text.iter().zip(&machine.ptx).zip(&machine.control) {
            let Some(control) = control else { continue };
            if line > 0 {
                let known = program.ptx_lines.iter().any(|l| l.line == line);
                assert!(known, "{what}: `{text}` is of line {line}, which is no instruction");
                led += 1;
            }
            let mut words = text.split_whitespace().skip(1).filter(|w| !w.starts_with('@'));
            let opcode = words.next().and_then(|w| w.split('.').next()).unwrap_or("");
            if ["LDG", "LDS", "S2R", "MUFU"].contains(&opcode) {
                // Of accesses in a row, whose results come in order, the last one alone may set it.
                slow += 1;
                slow_set += usize::from(control.write.is_some());
            }
            if ["IADD3", "FADD", "FMUL", "FFMA", "LOP3", "ISETP"].contains(&opcode) {
                assert_eq!((control.write, control.read), (None, None), "{what}: `{text}` sets a barrier");
            }
            // The disassembler's notation for the fields: reused operands, by operand position.
            let kept = text.matches(".reuse").count();
            assert_eq!(control.reuse.count_ones() as usize, kept, "{what}: `{text}`");
            if ["FFMA", "FMUL", "IMAD", "HMMA"].contains(&opcode) {
                let operands = text.split(',').skip(1).enumerate();
                let places = operands.filter(|(_, o)| o.contains(".reuse")).map(|(i, _)| 1u8 << i);
                assert_eq!(control.reuse, places.sum::<u8>(), "{what}: `{text}`");
            }
            reused += kept;
            waits += control.wait.count_ones();
            early += (control.wait & !set).count_ones();
            set |= control.write.map_or(0, |n| 1 << n) | control.read.map_or(0, |n| 1 << n);
            waited |= control.wait;
        }
        assert!(led * 10 > machine.control.iter().flatten().count() * 8, "{what}: {led} instructions lead to PTX");
        assert_eq!(waited & !set, 0, "{what}: a barrier is waited for that nobody sets");
        // Those that are set further down are set in the iteration before.
        assert!(
            waits > 50 && early * 50 <= waits,
            "{what}: {early} of {waits} waits are in front of who sets the barrier"
        );
        assert!(reused > 10, "{what}: {reused} operands are kept");
        assert!(slow_set * 4 > slow, "{what}: {slow_set} of {slow} that take any time set a barrier");
        let most = machine.live.iter().flatten().max().copied().unwrap_or(0);
        let registers = machine.entries.iter().map(|e| e.registers).max().unwrap_or(0);
        assert!(most > 0, "{what}: registers in use are known");
        // Warps that are given registers may use more than the kernel begins with.
        assert!(target == Target::Sm90a || most <= registers, "{what}: {most} registers in use of {registers}");
    }
}

/// Each asynchronous product has the line of its own instruction. Signs tell the assembler's order: of the PTX some multiply with `-B`, and so do the same ones of
/// the machine code.
#[test]
fn asynchronous_products_have_their_own_lines() {
    for name in ["gemm.tile", "attention_backward.tile"] {
        let program = example(name, Target::Sm90a).expect("compiles");
        let Some(code) = by_ptx_line(&program).expect("the tools work") else {
            std::io::stderr().write_all(b"\nskipped: xray test: no ptxas or nvdisasm for sm_90a\n").unwrap();
            return;
        };
        let mut ptx: Vec<String> = program.ptx.lines().map(str::to_owned).collect();
        let is_negated = |line: usize| line % 7 < 3;
        let mut lines = 0;
        for (line, text) in (1..).zip(&mut ptx).filter(|(_, text)| text.contains("wgmma.mma_async")) {
            lines += 1;
            let (front, signs) = text.split_once(", 1, 1").expect("the signs of its operands");
            *text = format!("{front}, 1, {}1{signs}", if is_negated(line) { "-" } else { "" });
        }
        let arch = "sm_90a".parse().expect("an architecture");
        let signed = assemble(&ptx.join("\n"), arch, Options { line_info: false }).expect("it assembles");
        let signed = disassemble(&signed.cubin, arch).expect("a listing");
        let mut made = 0;
        for function in &code.functions {
            let same = signed.functions.iter().find(|f| f.name == function.name).expect("the same entries");
            for (inst, signed) in function.insts.iter().zip(&same.insts).filter(|(i, _)| i.base().ends_with("GMMA")) {
                let line = inst.line.expect("a line").1 as usize;
                assert!(ptx[line - 1].contains("wgmma.mma_async"), "{name}: {}: {}", inst.text, ptx[line - 1]);
                assert_eq!(signed.text.contains("negB"), is_negated(line), "{name}: {} of line {line}", signed.text);
                made += 1;
            }
        }
        assert!(made == lines && made >= 4, "{name}: {made} of {lines}");
    }
}

/// Registers that the assembler keeps in memory have lines of the source, and each instruction that stores or loads them is marked.
#[test]
fn spills_are_blamed_on_lines() {
    let source = "kernel k(A: gmem f32[M, N] multiple 8, B: gmem f32[M, N] multiple 8) grid (bm: ceildiv(M, 64)) require no spills {\n\
                  \x20   var x = reg f32[64, 256] = 0\n    var s = reg f32[64, 256] = 0\n\
                  \x20   copy A[bm * 64.., 0..] -> x\n    for n in 0..N step 256 {\n        var y = reg f32[64, 256]\n\
                  \x20       copy A[bm * 64.., n..] -> y\n        s = exp(y) * x + s\n    }\n    copy s -> B[bm * 64.., 0..]\n}\n";
    let options =
        CompileOptions { source_name: "k.tile".to_owned(), target: Target::Sm80, ..CompileOptions::default() };
    let mut program = compiled(source, &options).expect("compiles");
    let Some(code) = by_ptx_line(&program).expect("the tools work") else {
        std::io::stderr().write_all(b"\nskipped: xray test: no ptxas or nvdisasm for sm_80\n").unwrap();
        return;
    };
    // A contract that does not hold is shown, with the lines that broke it; a compilation refuses it.
    tilec::compile::machine_code::show_demands(&mut program).expect("the tools work");
    let broken = program.diagnostics.iter().find(|d| d.code == tilec_ir::codes::BROKEN_DEMAND).expect("broken");
    assert!(broken.severity == tilec_ir::diag::Severity::Warning && !broken.labels.is_empty(), "{broken:?}");
    assert!(tilec::compile::machine_code::check_demands(&mut program).is_err());
    let xray = of(&program, Some(&code));
    check_page("spills", &xray);
    let machine = xray.columns.machine.as_ref().expect("there is machine code");
    let bytes = |store: bool| machine.spills.iter().filter(|s| s.store == store).map(|s| s.bytes).sum::<u64>();
    let (_, lines) = &machine.spilled[0];
    let by_line = [lines.iter().map(|s| s.stored).sum::<u64>(), lines.iter().map(|s| s.loaded).sum()];
    assert_eq!([bytes(true), bytes(false)], by_line);
    assert_eq!(by_line[0], machine.entries[0].spilled, "ptxas counts the same bytes");
    assert!(by_line[0] > 0 && lines.iter().all(|s| (1..=10).contains(&s.line)), "{lines:?}");
    assert!(machine.spills.iter().all(|s| machine.text[s.line - 1].contains("R1")), "relative to the stack pointer");
    let said = machine.remarks.iter().find(|r| r.message.contains("spilled")).expect("ptxas warns");
    assert!(said.line == lines[0].line as usize && said.places.len() == lines.len().min(4), "{said:?}");
}

/// Copies, special functions and shared memory have rows beside the units that a schedule counts; a kernel without products has a roofline.
#[test]
fn units_beside_the_schedule_have_rows_and_rows_of_numbers_a_roofline() {
    let names = |target| {
        let program = example("attention.tile", target).expect("compiles");
        let paces = &program.kernels[0].tile.iteration_times;
        let pace = paces.first().expect("a scheduled loop");
        let names: std::collections::BTreeSet<&str> =
            pace.units.iter().chain(&pace.unmodelled).map(|(name, _)| *name).collect();
        let picture =
            of(&program, None).pictures.into_iter().find(|p| p.name == "pipeline").expect("it is drawn").whole();
        assert!(names.iter().all(|name| picture.contains(&format!(">{name}: "))), "{names:?}");
        let memory = pace.unmodelled.iter().find(|(name, _)| *name == "memory, uncached").expect("it loads").1;
        (names, memory)
    };
    let all =
        ["tensor cores", "special functions", "shared memory", "second-level cache", "memory, uncached", "issue slots"];
    let ((below, _), (hopper, memory)) = (names(Target::Sm80), names(Target::Sm90a));
    assert!(all.iter().all(|name| below.contains(name) && hopper.contains(name)), "{below:?} {hopper:?}");
    assert!(hopper.contains("tensor copies") && !below.contains("tensor copies"));
    assert!(memory > 0);
    let rows = of(&example("softmax.tile", Target::Sm80).expect("compiles"), None);
    let roofline = rows.pictures.iter().find(|p| p.name == "roofline").expect("it is memory bound");
    assert!(roofline.title.contains("its roof is the memory"), "{}", roofline.title);
}

/// Another variant may have another target, other sizes and other values; what is a size is known from the program.
#[test]
fn two_variants_may_differ_in_target_sizes_and_values() {
    let source = fs::read_to_string(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/gemm.tile"))).unwrap();
    let options = CompileOptions { target: Target::Sm80, ..CompileOptions::default() };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let values = vec![pair("M", "1024"), pair("BM", "64"), pair("BN", "64")];
    let compare = tilec::xray::VariantDiff { target: Some(Target::Sm90a), values };
    let more = tilec::xray::PageOptions { compare, ..Default::default() };
    let shown = tilec::xray::xray(&source, &options, &more).expect("both compile").beside.expect("two variants");
    assert_eq!(shown.values, "sm_90a M=1024 BM=64 BN=64");
    let figure = |name: &str| {
        let found = shown.figures.iter().find(|(own, ..)| own == name).unwrap_or_else(|| panic!("no {name}"));
        (found.1.clone(), found.2.clone())
    };
    assert_eq!(figure("target"), pair("sm_80", "sm_90a"));
    assert_eq!(figure("BM").1, "64");
    assert_ne!(figure("gemm: predicted").0, figure("gemm: predicted").1);
}
