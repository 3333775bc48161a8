//! `tilec why --not`: the premises of a property, and which of them fail where.

use super::answer::{Decision, Known, Part, unrepeated};
use super::chain::places_of;
use super::faster::Less;
use super::{by_parameters, chain, faster, larger_tiles, made, tried};
use crate::compile::attribution;
use crate::compile::demands::{self, Broken, DemandStatus};
use crate::compile::report_json::{Copy, Shared};
use crate::compile::{CompiledKernel, explain, with_preconditions};
use crate::xray::registers_of;
use std::collections::BTreeSet;
use tilec_ir::demands::{Figure, Property, What};
use tilec_ir::diag::{Diagnostic, Span, counted, declare_where};
use tilec_ir::entities::{Block, Expr, Stmt};
use tilec_ir::kernel::{ENDLESS, ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::missed_paths::FastPath;
use tilec_ir::typing::{resolve_view, type_of};
use tilec_passes::analysis::access_width::MAX_ACCESS_BYTES;
use tilec_passes::occupancy::Occupancy;

/// The answer to `--not WHAT`: of each kernel whether it holds, and why not.
pub(super) fn not(known: &Known<'_>, what: What) -> (Vec<String>, Vec<Part>) {
    let mut about = Vec::new();
    let mut parts = Vec::new();
    for kernel in &known.program.kernels {
        let name = &kernel.tile.kernel.name;
        if !is_judged(known, kernel) {
            about.push(format!(
                "`{name}` is made by `align-rows`: it copies an operand before the product, and is not judged"
            ));
            continue;
        }
        if let What::AtLeast(Figure::Resident, _) | What::AtMost(Figure::Resident, _) = what {
            parts.push(resident(known, kernel));
        }
        match judged(known, kernel, what) {
            DemandStatus::Holds => {
                about.push(format!("`{name}` meets `{what}`"));
                parts.push(in_several(known, kernel, holds(kernel, what)));
            }
            DemandStatus::Unknown(why) => {
                about.push(format!("`{what}` cannot be checked for `{name}`: {}", why.message));
                let facts = places_of(known, &why.places);
                parts.push(Part { title: format!("Where, in `{name}`"), facts, ..Part::default() });
            }
            DemandStatus::Broken(broken) => {
                let promises = promises(known, kernel, what, &broken);
                let Broken { message, path, places, notes, change } = broken;
                about.push(format!("`{name}` does not meet `{what}`: {message}"));
                let mut part = Part { title: format!("Where, in `{name}`"), ..Part::default() };
                part.facts = places_of(known, &places);
                part.facts.extend(notes);
                let change = match what {
                    What::AtMost(Figure::Padding, _) => {
                        let (tried, change) = tried::of_tiles(known, kernel);
                        part.facts.extend(tried);
                        change
                    }
                    What::AtMost(Figure::Bytes, _) => {
                        let (tried, fewer) = faster::of_parameters(known, kernel, Less::Bytes);
                        part.facts.extend(tried);
                        [fewer, change].concat()
                    }
                    What::AtLeast(Figure::Roofline, _) => {
                        let (tried, faster) = faster::of_parameters(known, kernel, Less::Time);
                        part.facts.extend(tried);
                        [faster, change].concat()
                    }
                    _ => change,
                };
                let spans: Vec<Span> = places.iter().map(|(span, _)| *span).collect();
                let premise = premise(known, path, kernel, &spans, what);
                let by_option = premise.decisions.iter().flat_map(|d| &d.change).any(|text| text.starts_with("`-D "));
                part.facts.extend(promises.filter(|_| !by_option));
                let change = change.into_iter().map(|text| by_parameters::in_words(kernel, text));
                part.facts.extend(change.map(|text| format!("to change it: {text}")));
                parts.push(part);
                parts.push(in_several(known, kernel, premise));
            }
        }
    }
    parts.retain(|p| !p.facts.is_empty() || !p.decisions.is_empty());
    (about, parts)
}

/// What preconditions do for a property that does not hold.
pub(super) fn promises(known: &Known<'_>, kernel: &CompiledKernel, what: What, broken: &Broken) -> Option<String> {
    // Of registers the assembler alone knows.
    if what.is_of_registers() {
        return None;
    }
    let asked = demands::asked_for(kernel.tile.demanding(), broken);
    let tried = with_preconditions(&known.program.source, known.options, &kernel.tile, what, &asked);
    tried.in_words(!asked.is_empty())
}

/// Whether a kernel is judged: what a pass made to bring rows into order means nothing by itself.
pub(super) fn is_judged(known: &Known<'_>, kernel: &CompiledKernel) -> bool {
    kernel.tile.source_kernel.is_some() || known.program.kernels.iter().all(|k| k.tile.source_kernel.is_none())
}

/// Whether a property holds of a kernel.
pub(super) fn judged(known: &Known<'_>, kernel: &CompiledKernel, what: What) -> DemandStatus {
    let by_assembler = (kernel.report.assembler.as_ref(), &known.program.source);
    demands::judged(kernel.tile.demanding(), &kernel.lowered, by_assembler, what)
}

/// The same part, of which kernel it is where there are several.
fn in_several(known: &Known<'_>, kernel: &CompiledKernel, part: Part) -> Part {
    if known.program.kernels.len() == 1 {
        return part;
    }
    Part { title: format!("{}, in `{}`", part.title, kernel.tile.kernel.name), ..part }
}

/// What passes said of the fast path that was not taken, and what the source itself decides at these places.
pub(super) fn premise(
    known: &Known<'_>,
    path: Option<FastPath>,
    kernel: &CompiledKernel,
    places: &[Span],
    what: What,
) -> Part {
    let title = "Which precondition fails (a pass names the first one: when it holds, another may fail)".to_owned();
    let Some(path) = path else { return Part { title, ..Part::default() } };
    // Accesses between shared memory and registers may be narrow, too, and nobody asks for that.
    let of_these = |d: &&Diagnostic| path != FastPath::Wide || places.contains(&d.span);
    let own: Vec<&Diagnostic> = demands::declined(kernel.tile.demanding(), path).filter(of_these).collect();
    let own = match path {
        FastPath::Wide => tried::of_widths(known, kernel, own),
        _ => own.into_iter().cloned().collect(),
    };
    let own: Vec<&Diagnostic> = own.iter().collect();
    let mut decisions: Vec<Decision> = Vec::new();
    for pass in explain::pass_names() {
        let said: Vec<&Diagnostic> = own.iter().copied().filter(|d| d.kind == Some(pass)).collect();
        if !said.is_empty() {
            decisions.push(chain::decision(known, pass, &said));
        }
    }
    in_one(kernel, &own, &mut decisions);
    let mut written = written(kernel, path, places);
    if path == FastPath::Ahead && decisions.is_empty() {
        written.extend(not_ahead(&kernel.tile.specialized));
    }
    if !written.is_empty() {
        let said: Vec<&Diagnostic> = written.iter().collect();
        decisions.push(chain::decision(known, "source", &said));
    }
    for decision in &mut decisions {
        let change = std::mem::take(&mut decision.change);
        decision.change = change.into_iter().map(|text| by_parameters::in_words(kernel, text)).collect();
    }
    by_alignment(known, kernel, (path, what), &mut decisions);
    let by_option = decisions.iter().flat_map(|d| &d.change).any(|text| text.starts_with("`-D "));
    let mut tried: Vec<String> = Vec::new();
    if !by_option && let Some(last) = decisions.last_mut() {
        let ordered = by_parameters::ordered(known, kernel, what);
        let ordered = ordered.map(|option| format!("`{option}`: `{what}` holds with it (tried)"));
        if let Some(text) = ordered {
            last.change.insert(0, text);
        } else if path == FastPath::Wide {
            match larger_tiles::of_wider_accesses(known, kernel, places) {
                Ok(text) => last.change.insert(0, text),
                Err(fact) => tried.extend(fact),
            }
        }
    }
    let mut facts = match path {
        FastPath::Banks => [made::by_passes(known, kernel), tried::of_conflicts(known, kernel)].concat(),
        _ => tried,
    };
    if decisions.is_empty() && facts.is_empty() {
        facts = undecided(known, kernel, (path, places), what);
    }
    if path == FastPath::TensorLoads && decisions.is_empty() && demands::has_path(known.program.target, path) {
        // Tiles come by TMA for wgmma products: what keeps these away keeps TMA away.
        let products = premise(known, Some(FastPath::Wgmma), kernel, places, What::Has(Property::Wgmma));
        decisions = products.decisions;
    }
    Part { title, facts, decisions }
}

/// A larger alignment that a parameter of the source gives, in place of the preconditions that messages request.
fn by_alignment(
    known: &Known<'_>,
    kernel: &CompiledKernel,
    (path, what): (FastPath, What),
    decisions: &mut [Decision],
) {
    let asks = |text: &String| text.starts_with("declare `where ");
    let Some(last) = decisions.iter_mut().rfind(|d| path == FastPath::Wide && d.change.iter().any(asks)) else {
        return;
    };
    if let Some(option) = by_parameters::aligned(known, kernel, what) {
        last.change.retain(|text| !asks(text));
        last.change.insert(0, format!("`{option}`: `{what}` holds with it (tried)"));
    }
}

/// The preconditions that several messages request, requested once, in one clause.
fn in_one(kernel: &CompiledKernel, said: &[&Diagnostic], decisions: &mut [Decision]) {
    let mut all: Vec<&str> = said.iter().flat_map(|d| d.needs.split(", ")).filter(|need| !need.is_empty()).collect();
    unrepeated(&mut all);
    let own: BTreeSet<String> = said.iter().filter(|d| !d.needs.is_empty()).map(|d| declare_where(&d.needs)).collect();
    let Some(last) = decisions.iter().rposition(|d| d.change.iter().any(|text| own.contains(text))) else { return };
    decisions.iter_mut().for_each(|d| d.change.retain(|text| !own.contains(text)));
    let change = &mut decisions[last].change;
    change.insert(0, declare_where(&all.join(", ")));
    if kernel.tile.specialized.clauses.iter().any(|(word, _)| word == "where") {
        change[0].push_str(", after a comma in the existing `where`");
    }
}

/// What is written in the source, so that no pass decides it: widths of accesses, layouts of buffers.
fn written(kernel: &CompiledKernel, path: FastPath, places: &[Span]) -> Vec<Diagnostic> {
    let (k, report) = (&kernel.tile.specialized, &kernel.lowered);
    let says = |span: Span, text: String, way_out: &str| {
        Diagnostic::remark("", span, text.clone()).with_why(text).with_note(way_out)
    };
    match path {
        FastPath::Wide => {
            let copies = k.stmts.iter().filter(|(s, _)| places.contains(&k.stmt_spans[*s]));
            let vec = |(s, data): (Stmt, &StmtData)| match data {
                StmtData::Copy { attrs, .. } => Some((k.stmt_spans[s], attrs.vec?)),
                _ => None,
            };
            let text = |(span, n)| {
                let way_out =
                    "leave `vec` out: `vectorize` takes the widest access that it can prove, and says what is missing";
                says(span, format!("`vec {n}` is written"), way_out)
            };
            copies.filter_map(vec).map(text).collect()
        }
        FastPath::Banks => {
            let conflicts = |name: &str| report.shared.iter().any(|s| s.buffer == name && s.conflicts() > 0);
            let fixed = |def: &ValueDef| matches!(def, ValueDef::Smem(tile) if tile.smem_layout.is_some());
            let buffers = k.values.values().filter(|v| fixed(&v.def) && conflicts(&v.name));
            let way_out = "leave `layout` out: `swizzle` looks for one without conflicts";
            buffers.map(|v| says(v.span, format!("the layout of `{}` is written", v.name), way_out)).collect()
        }
        FastPath::Wgmma => {
            let atom = |s: Stmt| match k.stmts[s] {
                StmtData::Assign { src, .. } => match &k.exprs[src] {
                    ExprData::Mma(mma) => Some((k.stmt_spans[s], mma.atom?.row().name)),
                    _ => None,
                },
                _ => None,
            };
            let text = |(span, name)| {
                let way_out = "leave the instruction out, `mma(a, b, acc)`: `select-mma` takes wgmma where it can, and says what is missing";
                says(span, format!("`mma<{name}>` is written"), way_out)
            };
            k.statements().into_iter().filter_map(atom).map(text).collect()
        }
        _ => Vec::new(),
    }
}

/// Why no pass had a fast path to decide about.
fn undecided(
    known: &Known<'_>,
    kernel: &CompiledKernel,
    (path, places): (FastPath, &[Span]),
    what: What,
) -> Vec<String> {
    let target = known.program.target;
    if !demands::has_path(target, path) {
        return vec![format!("{} has no {}: compile for sm_90a", target.name(), words(path))];
    }
    match path {
        FastPath::TensorLoads if kernel.report.mma.is_empty() => {
            vec!["the compiler itself uses TMA loads for the slots of wgmma products, and the kernel has no product: roles that are written may have them (`role`, `copy .. tma`)".to_owned()]
        }
        FastPath::TensorLoads => {
            vec![
                "the compiler itself uses TMA loads for the slots of wgmma products, and the kernel has none because:"
                    .to_owned(),
            ]
        }
        FastPath::Ahead => vec!["the kernel has no loop: nothing is there to run ahead of".to_owned()],
        FastPath::Banks if known.options.disabled.contains("swizzle") => {
            vec!["to change it: `swizzle` is switched off (`--disable-pass`)".to_owned()]
        }
        FastPath::Banks => vec![
            "`swizzle` found no layout with fewer conflicts: what is stored and what is loaded want different ones"
                .to_owned(),
        ],
        FastPath::Wide if places.iter().any(|&span| widest(kernel, span).is_some()) => {
            let mut facts: Vec<String> = places.iter().filter_map(|&span| widest(kernel, span)).collect();
            unrepeated(&mut facts);
            facts
        }
        _ => vec![format!("no pass decides about `{what}` here, or the pass is switched off (`--disable-pass`)")],
    }
}

/// What bounds the elements of an access of a statement, where some of what it accesses has larger elements and is accessed in full width.
fn widest(kernel: &CompiledKernel, span: Span) -> Option<String> {
    let own = || kernel.lowered.copies.iter().filter(|c| c.span == span);
    let full = own().find(|c| c.global_bytes.max(c.shared_bytes) >= MAX_ACCESS_BYTES)?;
    let name = if full.tensor.is_empty() { &full.dst } else { &full.src };
    Some(format!(
        "a thread moves the same number of elements of everything that the statement accesses, and `{name}` has {MAX_ACCESS_BYTES} bytes in them: smaller elements take narrower accesses"
    ))
}

/// Whether statements bring tiles from tensors to shared memory, and whether to registers.
pub(super) fn loads(k: &Kernel, body: Block) -> (bool, bool) {
    let (mut buffers, mut registers) = (false, false);
    k.walk(body, &mut |k, _, s| {
        let global = |e: Expr| resolve_view(k, e).is_some_and(|view| k.tensor_ty(view.base).is_some());
        if let StmtData::Copy { src, dst, .. } = k.stmts[s] {
            let space = resolve_view(k, dst).map(|to| to.space(k));
            buffers |= reads_tensor(k, src) && space.is_some_and(|space| space.is_of_block());
            registers |= global(src) && space.is_none_or(|space| space.in_registers());
        }
        registers |= k.stmts[s].exprs().into_iter().any(|e| reads_tensor(k, e));
    });
    (buffers, registers)
}

/// Whether statements read single elements of tensors alone.
fn reads_single_elements(k: &Kernel, body: Block) -> bool {
    let mut single = true;
    k.walk(body, &mut |k, _, s| {
        let read = k.stmts[s].exprs().into_iter().filter(|&e| reads_tensor(k, e));
        single &= read.into_iter().all(|e| type_of(k, e).is_ok_and(|ty| ty.rank() == 0));
    });
    single
}

/// Why no loop was asked whether its loads may run ahead, and what would have them.
fn not_ahead(k: &Kernel) -> Vec<Diagnostic> {
    let mut said: Vec<Diagnostic> = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        let StmtData::For { var, body, end, .. } = k.stmts[s] else { return };
        let (buffers, registers) = loads(k, body);
        let what = match k.as_int(end) == Some(ENDLESS) {
            true => "the `while` loop".to_owned(),
            false => format!("the loop over `{}`", k.values[var].name),
        };
        let (why, way_out) = match (buffers, registers) {
            (true, _) => {
                (format!("{what} fills buffers, and the pass is switched off"), "leave `--disable-pass` out".to_owned())
            }
            (false, true) if reads_single_elements(k, body) => (
                format!("{what} loads single elements straight to registers; only tiles in shared memory have slots"),
                "load what all iterations need in front of the loop".to_owned(),
            ),
            (false, true) => (
                format!("{what} loads straight to registers; only tiles in shared memory have slots"),
                "copy the tiles through a buffer: `let s = smem ..` in front of the loop, and in it `copy X[..] -> s`"
                    .to_owned(),
            ),
            (false, false) => {
                (format!("{what} loads nothing"), "nothing to change: there is no load to run ahead".to_owned())
            }
        };
        let d = Diagnostic::remark("", k.values[var].span, why.clone()).with_why(why).with_note(way_out);
        if !said.contains(&d) {
            said.push(d);
        }
    });
    said
}

/// Whether an expression reads a window of a tensor.
fn reads_tensor(k: &Kernel, e: Expr) -> bool {
    resolve_view(k, e).is_some_and(|view| k.tensor_ty(view.base).is_some())
        || k.children(e).into_iter().any(|e| reads_tensor(k, e))
}

/// What a fast path is called.
fn words(path: FastPath) -> &'static str {
    match path {
        FastPath::Wgmma => "wgmma products",
        FastPath::TensorLoads | FastPath::StagedStores => "TMA",
        FastPath::Asynchronous => "asynchronous copies (cp.async)",
        FastPath::Ahead => "loads ahead",
        FastPath::Wide => "accesses of 16 bytes",
        FastPath::Producer => "producer warps",
        FastPath::Banks => "layouts without bank conflicts",
        FastPath::Overlap => "overlap of the statements of a loop",
    }
}

/// What shows that a demand holds of a kernel.
fn holds(kernel: &CompiledKernel, what: What) -> Part {
    let r = &kernel.report;
    let mut facts: Vec<String> = match what {
        What::Has(Property::Wgmma | Property::TensorCores) => {
            r.mma.iter().map(|m| format!("`{}`: {} instructions a warp", m.atom, m.per_warp)).collect()
        }
        What::Has(Property::Pipelined) => {
            let channels = r.tiles.iter().filter(|t| t.slots > 1);
            channels.map(|t| format!("`{}` has {} slots", t.name, t.slots)).collect()
        }
        What::Has(Property::NoBankConflicts) => {
            let each = |s: &Shared| {
                let (access, buffer, n) = (&s.access, &s.buffer, counted(s.wavefronts as usize, "wavefront"));
                format!("a {access} at `{buffer}` takes {n}, as few as its width needs")
            };
            let divided = kernel.lowered.shared.iter().filter_map(|s| attribution::divided(&kernel.tile.kernel, s));
            r.shared.iter().map(each).chain(divided).collect()
        }
        What::Has(Property::Vectorised) => {
            let wide = r.copies.iter().filter(|c| c.global_bytes > 0);
            wide.map(|c| format!("`{}` -> `{}`: {} bytes an access", c.src, c.dst, c.global_bytes)).collect()
        }
        What::Has(Property::Coalesced) => {
            let moved = r.copies.iter().filter(|c| c.global_bytes > 0);
            let used = |c: &Copy| match c.sectors {
                1 => "one sector, and no access touches fewer".to_owned(),
                _ => format!("{:.0} % of its sectors", 100.0 * c.sector_use),
            };
            moved.map(|c| format!("`{}` -> `{}`: {}", c.src, c.dst, used(c))).collect()
        }
        _ => Vec::new(),
    };
    unrepeated(&mut facts);
    Part { title: "Evidence".to_owned(), facts, decisions: Vec::new() }
}

/// What is resident, and where the registers of that come from.
fn occupancy(known: &Known<'_>, kernel: &CompiledKernel) -> (Occupancy, u64, String) {
    let (registers, from) = registers_of(kernel, known.shown.columns.machine.as_ref());
    let threads = kernel.contract.block.iter().map(|&n| u64::from(n)).product();
    let o = Occupancy::new(known.program.target, threads, registers, kernel.report.smem_bytes);
    (o, threads, format!("{registers} registers ({from})"))
}

/// What bounds the blocks of a multiprocessor.
pub(super) fn resident(known: &Known<'_>, kernel: &CompiledKernel) -> Part {
    let (o, threads, registers) = occupancy(known, kernel);
    let mut facts = vec![format!(
        "a block has {threads} threads of {registers} and {} bytes of shared memory",
        kernel.report.smem_bytes
    )];
    facts.extend(o.list().into_iter().map(|(name, n)| {
        let limit = o.as_limit(name).map_or(String::new(), |limit| format!(", which is {limit}"));
        match (name, kernel.report.smem_bytes) {
            ("shared memory", 0) => format!("{name}: none is used"),
            _ => format!("{name}: room for {n}{limit}"),
        }
    }));
    facts.push(format!(
        "resident on a multiprocessor of {}: {}",
        known.program.target.name(),
        counted(o.resident() as usize, "block")
    ));
    let predicted = kernel.tile.prediction.as_ref().map(|p| p.resident).filter(|&n| n != o.resident());
    facts.extend(predicted.map(|n| {
        let blocks = counted(n as usize, "block");
        format!(
            "the model, which was asked before there was code, predicted {blocks}: it estimates registers from tiles"
        )
    }));
    Part { title: "What limits the resident blocks of a multiprocessor".to_owned(), facts, decisions: Vec::new() }
}
