//! The budget of a kernel: registers, shared memory by what lives when, occupancy, the roofline, the terms of the predicted time; and what was measured.

use super::lines::DIM;
use super::machine::Machine;
use super::measured::{Measured, fitting};
use super::padded::padding_of;
use super::picture::{Picture, Room};
use super::svg::{Anchor, BAD, INK, Key, STRONG, Svg, TINTS};
use crate::compile::{Compiled, CompiledKernel, demands};
use tilec_ir::atoms::Inputs;
use tilec_ir::demands::{Figure, What};
use tilec_ir::diag::counted;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData, ValueDef};
use tilec_ir::types::ElemRef;
use tilec_ir::typing::type_of;
use tilec_passes::choose::{Card, Prediction, Term};
use tilec_passes::occupancy::Occupancy;

const LEFT: f64 = 210.0;
const WIDTH: f64 = 560.0;
const ROW: f64 = 22.0;

/// The pictures of a kernel.
pub(super) fn pictures(
    program: &Compiled,
    kernel: &CompiledKernel,
    machine: Option<&Machine>,
    measured: &[Measured],
    prefix: &str,
) -> Vec<Picture> {
    let mut out = Vec::new();
    let mut add = |name: &str, made: Option<(String, String)>| {
        if let Some((title, svg)) = made {
            let name = format!("{prefix}{name}");
            out.push(Picture { title, span: kernel.tile.kernel.name_span, ..Picture::new(Room::Budget, name, svg) });
        }
    };
    add("occupancy", Some(occupancy(program, kernel, machine)));
    add("shared-memory", shared(&kernel.tile.kernel, kernel));
    add("registers", machine.and_then(|m| registers(m, &kernel.contract.entry, &kernel.tile.kernel)));
    if let Some(p) = kernel.tile.whole() {
        let measured = fitting(measured, program.target, kernel).ok();
        add("time", Some(terms(p, measured)));
        add("roofline", Card::from_name(p.card).and_then(|card| roofline(p, card, kernel, measured)));
    }
    out
}

/// Registers of a thread, and who says so: the assembler, else an estimate.
pub(crate) fn registers_of(kernel: &CompiledKernel, machine: Option<&Machine>) -> (u64, &'static str) {
    let entry = machine.and_then(|m| m.entries.iter().find(|e| e.entry == kernel.contract.entry));
    let assembled = entry.map(|e| e.registers).or(kernel.report.assembler.as_ref().map(|a| a.registers));
    match assembled {
        Some(registers) => (u64::from(registers), "by the assembler"),
        None => (u64::from(kernel.report.estimated_registers), "estimated"),
    }
}

fn occupancy(program: &Compiled, kernel: &CompiledKernel, machine: Option<&Machine>) -> (String, String) {
    let (registers, from) = registers_of(kernel, machine);
    let threads: u64 = kernel.contract.block.iter().map(|&n| u64::from(n)).product();
    let o = Occupancy::new(program.target, threads, registers, kernel.report.smem_bytes);
    let title = format!(
        "Occupancy: {} of {threads} threads at a time on a multiprocessor of {}, limited by {}",
        counted(o.resident() as usize, "block"),
        program.target.name(),
        o.limits().join(" and ")
    );
    let mut svg = Svg::new(LEFT + WIDTH + 60.0, 36.0 + 4.0 * ROW, &title);
    let most = o.list().iter().map(|(_, n)| *n).max().unwrap_or(1).clamp(1, 32);
    for (i, (name, n)) in o.list().into_iter().enumerate() {
        let y = 30.0 + i as f64 * ROW;
        svg.text(LEFT - 8.0, y + 15.0, Anchor::End, name);
        let limit = o.as_limit(name);
        let width = WIDTH * n.min(most) as f64 / most as f64;
        svg.rect((LEFT, y + 2.0), (width, ROW - 4.0), if limit.is_some() { TINTS[6] } else { TINTS[0] });
        let sign = limit.map_or(String::new(), |limit| format!(", {limit}"));
        let text = match name {
            "shared memory" if kernel.report.smem_bytes == 0 => "no byte is used".to_owned(),
            _ => format!("room for {}{sign}", counted(usize::try_from(n).unwrap_or(usize::MAX), "block")),
        };
        // Inside of its bar, or after one that is too short.
        let inside = width > Svg::wide(&text) + 12.0;
        svg.text(LEFT + if inside { 6.0 } else { width + 6.0 }, y + 15.0, Anchor::Start, &text);
    }
    svg.key(Key::Cell(TINTS[0]), "blocks that this resource of a multiprocessor has room for");
    svg.key(Key::Cell(TINTS[6]), "the least: the limit");
    if o.list().iter().any(|(_, n)| *n > most) {
        svg.note(format!("Bars end at {most} blocks."));
    }
    svg.note(format!(
        "A thread has {registers} registers ({from}), a block {} bytes of shared memory.",
        kernel.report.smem_bytes
    ));
    (title, svg.done())
}

/// The first and the last statement, in the order of the text, that names each buffer.
fn lives(k: &Kernel) -> (usize, Vec<(Value, usize, usize)>) {
    let mut out: Vec<(Value, usize, usize)> = Vec::new();
    let mut count = 0;
    k.walk(k.body, &mut |k, _, s| {
        count += 1;
        let mut named = Vec::new();
        for e in k.stmts[s].exprs() {
            bases(k, e, &mut named);
        }
        if let StmtData::Channel { channels, .. } = &k.stmts[s] {
            named.extend(channels);
        }
        for v in named {
            if k.shared_places[v].is_none() {
                continue;
            }
            match out.iter_mut().find(|(w, ..)| *w == v) {
                Some((_, _, last)) => *last = count,
                None => out.push((v, count, count)),
            }
        }
    });
    (count.max(1), out)
}

fn bases(k: &Kernel, e: Expr, found: &mut Vec<Value>) {
    match &k.exprs[e] {
        ExprData::Ref(v) => found.push(*v),
        ExprData::View(view) => found.push(view.base),
        _ => {}
    }
    k.children(e).into_iter().for_each(|c| bases(k, c, found));
}

/// Shared memory: bytes down, the order of the text across.
fn shared(k: &Kernel, kernel: &CompiledKernel) -> Option<(String, String)> {
    let all = kernel.report.smem_bytes;
    if all == 0 || kernel.report.tiles.is_empty() {
        return None;
    }
    const HEIGHT: f64 = 260.0;
    let (count, lives) = lives(k);
    let title = format!(
        "Shared memory of a block, {all} bytes: what lies where (down), and from its first to its last use (across)"
    );
    let mut svg = Svg::new(LEFT + WIDTH + 40.0, HEIGHT + 58.0, &title);
    let y = |byte: u64| 34.0 + byte as f64 / all as f64 * HEIGHT;
    svg.rect((LEFT, y(0)), (WIDTH, HEIGHT), "#ffffff");
    let mut labelled = f64::NEG_INFINITY;
    for (i, tile) in kernel.report.tiles.iter().enumerate() {
        let value = k
            .values
            .iter()
            .find(|(_, v)| v.name == tile.name && matches!(v.def, ValueDef::Smem(_) | ValueDef::Channel { .. }));
        let life = value.and_then(|(v, _)| lives.iter().find(|(w, ..)| *w == v));
        let (from, to) = life.map_or((0, count), |&(_, a, b)| (a - 1, b));
        let x = |n: usize| LEFT + n as f64 / count as f64 * WIDTH;
        for slot in 0..tile.slots {
            let top = y(tile.offset + slot * tile.stride);
            let height = tile.bytes as f64 / all as f64 * HEIGHT;
            svg.rect((x(from), top), (x(to) - x(from), height), TINTS[i % TINTS.len()]);
            let of = if tile.slots > 1 { format!(" slot {slot}") } else { String::new() };
            let text = format!("{}{of}: {} bytes at {}", tile.name, tile.bytes, tile.offset + slot * tile.stride);
            let (wide, middle) = (Svg::wide(&text) + 12.0, top + (height / 2.0).min(18.0) + 4.0);
            if height > 12.0 && x(to) - x(from) > wide {
                svg.text(x(from) + 6.0, middle, Anchor::Start, &text);
            } else if middle - labelled >= 12.0 {
                // Beside what is too small for it; of many in one place the first.
                labelled = middle;
                match x(to) + wide < LEFT + WIDTH {
                    true => svg.text(x(to) + 6.0, middle, Anchor::Start, &text),
                    false => svg.text(x(from) - 6.0, middle, Anchor::End, &text),
                }
            }
        }
    }
    svg.key(Key::Cell(TINTS[0]), "a box is a buffer, or a slot of a channel; a tint each name");
    svg.note("Buffers that are never in use at the same time may share bytes. Left of its box nothing has used a buffer yet, right of it nothing uses it any more.");
    for m in &kernel.lowered.mbarriers {
        svg.note(format!("{} at byte {}: {}.", counted(m.count as usize, "mbarrier"), m.offset, m.kind));
    }
    svg.colored(LEFT, 34.0 + HEIGHT + 18.0, Anchor::Start, "#555555", "first statement");
    svg.colored(LEFT + WIDTH, 34.0 + HEIGHT + 18.0, Anchor::End, "#555555", "last statement");
    svg.colored(LEFT - 8.0, 46.0, Anchor::End, "#555555", "byte 0");
    svg.colored(LEFT - 8.0, 34.0 + HEIGHT, Anchor::End, "#555555", &all.to_string());
    Some((title, svg.done()))
}

/// Registers in use, instruction by instruction.
fn registers(machine: &Machine, entry: &str, k: &Kernel) -> Option<(String, String)> {
    const HEIGHT: f64 = 200.0;
    let live: Vec<(usize, u32)> = machine.lines_of(entry)?.filter_map(|i| Some((i, machine.live[i]?))).collect();
    let (at, most) = machine.most_live(entry)?;
    let title = format!(
        "Registers of a thread that hold values, instruction by instruction: at most {most}, at line {} of the machine code",
        at + 1
    );
    let mut svg = Svg::new(LEFT + WIDTH + 60.0, HEIGHT + 62.0, &title);
    let count = live.len().max(2) as f64 - 1.0;
    let point = |n: usize, x: u32| (LEFT + n as f64 / count * WIDTH, 34.0 + HEIGHT - f64::from(x) / 256.0 * HEIGHT);
    for n in [0, 64, 128, 168, 255] {
        let (_, y) = point(0, n);
        svg.line((LEFT, y), (LEFT + WIDTH, y), "#cccccc", true);
        svg.colored(LEFT - 6.0, y + 4.0, Anchor::End, "#555555", &n.to_string());
    }
    let points: Vec<(f64, f64)> = live.iter().enumerate().map(|(n, &(_, x))| point(n, x)).collect();
    svg.path(&points, STRONG);
    if let Some(n) = live.iter().position(|&(i, _)| i == at) {
        svg.mark(point(n, most), BAD);
    }
    svg.colored(LEFT, 34.0 + HEIGHT + 18.0, Anchor::Start, DIM, "first instruction");
    svg.colored(LEFT + WIDTH, 34.0 + HEIGHT + 18.0, Anchor::End, DIM, "last instruction");
    svg.colored(LEFT - 34.0, 34.0, Anchor::End, DIM, "registers");
    svg.key(Key::Line(STRONG), "registers in use at each instruction, in the order of the code");
    svg.key(Key::Dot(BAD), "most of them");
    if let Some(e) = machine.entries.iter().find(|e| e.entry == entry) {
        let loaded = if e.reloaded > 0 { format!(" ({} are loaded)", e.reloaded) } else { String::new() };
        svg.note(format!(
            "The assembler gives a thread {} registers and spills {} bytes{loaded}.",
            e.registers, e.spilled
        ));
    }
    let roles: Vec<String> = registers_of_roles(k).into_iter().map(|(name, n)| format!("role `{name}` {n}")).collect();
    if !roles.is_empty() {
        svg.note(format!("That is at the launch: `setmaxnreg` gives threads of {}.", roles.join(", of ")));
    }
    Some((title, svg.done()))
}

/// Registers that threads of roles get in addition to those of the launch.
pub(crate) fn registers_of_roles(k: &Kernel) -> Vec<(String, i64)> {
    let mut all = Vec::new();
    k.walk(k.body, &mut |k, _, s| {
        if let StmtData::Role { name, registers: Some(e), .. } = &k.stmts[s]
            && let Some(n) = k.as_int(*e)
        {
            all.push((name.clone(), n));
        }
    });
    all
}

fn given(p: &Prediction) -> String {
    let sizes: Vec<String> = p.sizes.iter().map(|(name, n)| format!("{name}={n}")).collect();
    format!("{} with {}", p.card, sizes.join(" "))
}

/// What the predicted time is made of.
fn terms(p: &Prediction, measured: Option<&Measured>) -> (String, String) {
    let what = match p.unknown {
        Some(_) => "A guess of the time of a launch, in which loops that run as often as data say count once",
        None => "Predicted time of a launch",
    };
    let budget = p.budget();
    let title = format!("{what}: {:.1} us on {}, most of it {}", budget.total(), given(p), budget.largest().name());
    let list: Vec<(Term, f64)> = p.terms.shown().collect();
    let mut svg =
        Svg::new(LEFT + WIDTH + 170.0, 34.0 + (list.len() + 1 + usize::from(measured.is_some())) as f64 * ROW, &title);
    let most =
        list.iter().map(|(_, s)| *s).fold(p.seconds, f64::max).max(measured.map_or(0.0, |m| m.us / 1e6)).max(1e-12);
    let mut y = 30.0;
    let wide = |us: f64| us / 1e6 / most * WIDTH;
    let mut bar = |name: &str, us: f64, (part, fill): (f64, &str), text: &str| {
        svg.text(LEFT - 8.0, y + 15.0, Anchor::End, name);
        svg.rect((LEFT, y + 2.0), (wide(us), ROW - 4.0), TINTS[0]);
        svg.rect((LEFT, y + 2.0), (wide(part), ROW - 4.0), fill);
        svg.text(LEFT + wide(us.max(part)) + 6.0, y + 15.0, Anchor::Start, text);
        y += ROW;
    };
    for (term, seconds) in list {
        let (us, part) = (1e6 * seconds, budget.part(term));
        // Parts are rounded so that they add up.
        let text = match us - part < 0.15 {
            true => format!("{part:.1} us"),
            false => format!("{part:.1} us of {us:.1}"),
        };
        bar(term.name(), us, (part, TINTS[4]), &text);
    }
    bar("predicted", 0.0, (budget.total(), TINTS[4]), &format!("{:.1} us", budget.total()));
    if let Some(m) = measured {
        bar("measured", 0.0, (m.us, TINTS[3]), &format!("{:.1} us", m.us));
    }
    svg.key(Key::Cell(TINTS[4]), "what adds to the prediction");
    svg.key(Key::Cell(TINTS[0]), "what other work hides, at the rates of the model");
    svg.note(format!("{budget}."));
    match measured {
        Some(m) => {
            svg.key(Key::Cell(TINTS[3]), "the measurement");
            svg.note(format!("Measured on {} with {} {}", m.device, m.sizes(), m.by));
        }
        None => svg.note("No measurement: `--measured FILE` takes what `tilec bench --format json` wrote."),
    }
    (title, svg.done())
}

/// The operations a second of the fastest product of a kernel, two to a multiply-add, and what computes it; `None`: it has no product.
pub(crate) fn peak(card: &Card, k: &Kernel) -> Option<(f64, String)> {
    let elem = |e: Expr| type_of(k, e).ok().and_then(|ty| ty.elem());
    let products = k.statement_data().filter_map(|s| {
        let StmtData::Assign { dst, src } = s else { return None };
        let ExprData::Mma(mma) = k.exprs[*src] else { return None };
        match (mma.atom, elem(mma.a), elem(mma.b), k.values[*dst].def.elem()) {
            (Some(atom), Some(ElemRef::Known(a)), Some(ElemRef::Known(b)), Some(ElemRef::Known(acc))) => {
                let inputs = Inputs { a, b };
                let rate = card.rate(atom, inputs, acc) * card.clock_of(atom);
                Some((rate, format!("`{}` of {inputs} with {} sums", atom.row().name, acc.name())))
            }
            _ => None,
        }
    });
    let (rate, unit) = products.max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some((2.0 * rate * f64::from(card.sms) * 1e9, unit))
}

/// Of a kernel without products the roof is the memory's: bytes a second.
fn bandwidth(p: &Prediction, card: &Card, measured: Option<&Measured>) -> (String, String) {
    // Bytes that are used.
    let rate = |seconds: f64| p.terms.memory * card.dram / seconds;
    let share = |gb: f64| format!("{gb:.0} GB/s, {:.0} %", 100.0 * gb / card.dram);
    let title = format!(
        "Roofline of {}: no product, so its roof is the memory; {:.0} GB/s predicted, {:.0} % of {:.0}",
        given(p),
        rate(p.seconds),
        100.0 * rate(p.seconds) / card.dram,
        card.dram
    );
    let mut bars = vec![("memory of the card", card.dram, TINTS[0]), ("predicted", rate(p.seconds), TINTS[4])];
    bars.extend(measured.map(|m| ("measured", rate(m.us / 1e6), TINTS[3])));
    let most = bars.iter().map(|b| b.1).fold(1.0, f64::max);
    let mut svg = Svg::new(LEFT + WIDTH + 160.0, 34.0 + bars.len() as f64 * ROW, &title);
    let mut y = 30.0;
    for (name, gb, fill) in bars {
        let width = gb / most * WIDTH;
        svg.text(LEFT - 8.0, y + 15.0, Anchor::End, name);
        svg.rect((LEFT, y + 2.0), (width, ROW - 4.0), fill);
        svg.text(LEFT + width + 6.0, y + 15.0, Anchor::Start, &share(gb));
        y += ROW;
    }
    svg.note(format!(
        "The kernel moves {:.0} bytes, {:.2} times those of the tensors, each read or written once.",
        p.bytes,
        p.bytes / p.least_bytes.max(1.0)
    ));
    svg.note(busiest(p));
    padding_of(p).into_iter().for_each(|text| svg.note(text));
    (title, svg.done())
}

/// What a demand on the roofline compares.
fn busiest(p: &Prediction) -> String {
    if let Some(why) = demands::unknown(p, What::AtLeast(Figure::Roofline, 0.0)) {
        return format!(
            "The prediction is a guess, and `require predicted >= .. roofline` is not judged: {}.",
            why.message
        );
    }
    let (unit, share) = p.busiest();
    let unit = unit.name();
    let percent = (100.0 * share).floor();
    format!(
        "The busiest unit ({unit}), at the rate that kernels reach, works {percent} % of the predicted time: `require predicted >= {} roofline` holds.",
        percent / 100.0
    ) + &demands::estimated(p).map_or_else(String::new, |text| format!(" It is {text}."))
}

/// The roofline of the card, with the kernel's place: operations over bytes of memory.
fn roofline(
    p: &Prediction,
    card: &Card,
    kernel: &CompiledKernel,
    measured: Option<&Measured>,
) -> Option<(String, String)> {
    if p.bytes <= 0.0 {
        return None;
    }
    if p.flops <= 0.0 {
        return Some(bandwidth(p, card, measured));
    }
    const HEIGHT: f64 = 260.0;
    let (peak, unit) = peak(card, &kernel.tile.kernel)?;
    let (intensity, bandwidth) = (p.flops / p.bytes, card.dram * 1e9);
    let title = format!(
        "Roofline of {}: {:.1} TFLOP/s predicted, {:.0} % of the peak",
        given(p),
        p.flops / p.seconds / 1e12,
        100.0 * p.flops / p.seconds / peak,
    );
    let mut svg = Svg::new(LEFT + WIDTH + 60.0, HEIGHT + 76.0, &title);
    // Decades.
    let (x0, x1) = (-1.0, 5.0f64.max(intensity.log10().ceil()));
    let y1 = (peak / 1e9).log10().ceil() + 0.5;
    let y0 = y1 - 5.5;
    let x = |i: f64| LEFT + (i.log10() - x0) / (x1 - x0) * WIDTH;
    let y = |f: f64| 34.0 + HEIGHT - ((f / 1e9).log10() - y0).max(0.0) / (y1 - y0) * HEIGHT;
    svg.rect((LEFT, 34.0), (WIDTH, HEIGHT), "#ffffff");
    let ridge = peak / bandwidth;
    let low = 10f64.powf(x0).max(10f64.powf(y0) * 1e9 / bandwidth);
    svg.path(&[(x(low), y(low * bandwidth)), (x(ridge), y(peak)), (LEFT + WIDTH, y(peak))], "#1a1a1a");
    for d in 0..=(x1 - x0) as i32 {
        let i = 10f64.powf(x0 + f64::from(d));
        svg.colored(x(i), 34.0 + HEIGHT + 16.0, Anchor::Middle, "#555555", &format!("{i}"));
    }
    svg.colored(
        LEFT + WIDTH / 2.0,
        34.0 + HEIGHT + 34.0,
        Anchor::Middle,
        "#555555",
        "operations a byte of memory that is read or written",
    );
    for d in y0.ceil() as i32..=y1 as i32 {
        let each = 10f64.powi(d);
        let text = if d < 3 { format!("{each} GFLOP/s") } else { format!("{} TFLOP/s", each / 1e3) };
        svg.colored(LEFT - 8.0, y(each * 1e9) + 4.0, Anchor::End, "#555555", &text);
    }
    svg.text(LEFT + WIDTH - 6.0, y(peak) - 6.0, Anchor::End, &format!("{:.0} TFLOP/s", peak / 1e12));
    svg.text(x(low) + 70.0, y(low * bandwidth) - 20.0, Anchor::Start, &format!("{:.0} GB/s", card.dram));
    svg.mark((x(intensity), y(p.flops / p.seconds)), STRONG);
    let place = |rate: f64| format!("{:.1} TFLOP/s at {intensity:.0} operations a byte", rate / 1e12);
    svg.key(
        Key::Line(INK),
        format!("the roof: {:.0} GB/s of memory, and {:.1} TFLOP/s of {unit}", card.dram, peak / 1e12),
    );
    svg.key(Key::Dot(STRONG), format!("predicted: {}", place(p.flops / p.seconds)));
    if let Some(m) = measured {
        let at = p.flops / (m.us / 1e6);
        // It is above the roof where the model counts more work or traffic than there was; and no higher than the picture.
        let above = if at > peak.min(intensity * bandwidth) { ", above the roof" } else { "" };
        svg.diamond((x(intensity), y(at.min(10f64.powf(y1) * 1e9))), BAD);
        svg.key(Key::Diamond(BAD), format!("measured: {}{above}", place(at)));
    }
    svg.note(busiest(p));
    padding_of(p).into_iter().for_each(|text| svg.note(text));
    Some((title, svg.done()))
}
