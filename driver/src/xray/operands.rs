//! Operands of wgmma products in shared memory: core matrices of 8 lines by 16 bytes, where their descriptor says they are.
//!
//! Facts: PTX ISA 9.7.15.5.1. Lines are rows of A, and columns of B. Where elements are contiguous along the lines, a core matrix is 8 elements of the
//! reduction by 16 bytes of lines.

use super::lines::{self, ACROSS, DIM, HIGH, LINE, PIECE, Piece};
use super::picture::{Picture, Room};
use super::svg::{Anchor, INK, Key, STRONG, Svg, TINTS};
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::layout::hardware::PERIOD;
use tilec_ptx::report::OperandReport;

/// Core matrices along the lines, and lines of memory, that are drawn at most.
const MOST: (u64, usize) = (8, 16);
/// Width of a core matrix, and of a piece in memory.
const WIDE: f64 = 46.0;
const MARGIN: (f64, f64) = (110.0, 72.0);

/// A picture of each kind of operand: those that are read alike have one, by the name of the first.
pub(super) fn pictures(operands: &[OperandReport], prefix: &str) -> Vec<Picture> {
    // Of each kind one of its operands, without a name, and the names of all.
    let mut kinds: Vec<(OperandReport, Vec<&OperandReport>)> = Vec::new();
    for o in operands {
        let own = OperandReport { span: Default::default(), buffer: String::new(), ..o.clone() };
        match kinds.iter_mut().find(|(kind, _)| *kind == own) {
            Some((_, all)) if all.iter().any(|a| a.buffer == o.buffer) => {}
            Some((_, all)) => all.push(o),
            None => kinds.push((own, vec![o])),
        }
    }
    let mut names: Vec<&str> = Vec::new();
    let mut out = Vec::new();
    for (_, all) in &kinds {
        let first = all[0];
        names.push(&first.buffer);
        let number = names.iter().filter(|n| **n == first.buffer).count();
        let number = if number > 1 { format!("-{number}") } else { String::new() };
        let name = format!("{prefix}wgmma-{}{number}", first.buffer);
        let title = title(all);
        let mut frames = Operand { of: first, title: &title }.frames();
        let only = if frames.len() == 1 { frames.remove(0) } else { String::new() };
        out.push(Picture { title, frames, span: first.span, ..Picture::new(Room::Memory, name, only) });
    }
    out
}

/// What the lines are.
fn kind(o: &OperandReport) -> (&'static str, &'static str) {
    if o.second { ("B", "columns") } else { ("A", "rows") }
}

fn title(all: &[&OperandReport]) -> String {
    let o = all[0];
    let names = all.iter().map(|o| o.buffer.as_str()).collect::<Vec<_>>().join(", ");
    let (side, lines) = kind(o);
    let (count, depth) = o.extents;
    format!(
        "How wgmma ({}) reads {names} from shared memory as its operand {side}: {count} {lines} by {depth} elements of the reduction (k) an instruction; {}",
        o.atom,
        tilec_ir::diag::counted(o.steps.len(), "step")
    )
}

/// A piece of 16 bytes: the step that reads it, its core matrix (along the lines, along the reduction), and its row in that.
type Part = (usize, (u64, u64), u64);

struct Operand<'a> {
    of: &'a OperandReport,
    title: &'a str,
}

impl Operand<'_> {
    /// Core matrices of an instruction: along the lines, and along the reduction.
    fn cores(&self) -> (u64, u64) {
        let (lines, depth) = self.of.extents;
        let per = u64::from(self.of.elem.per(PIECE as u32));
        let (along, deep) = if self.of.descriptor.transposed { (per, PERIOD) } else { (PERIOD, per) };
        (lines / along, depth / deep)
    }

    /// Offset of a row of a core matrix in bytes, from the start of the operand.
    fn byte(&self, (step, (i, j), row): Part) -> u64 {
        let (d, elem) = (&self.of.descriptor, self.of.elem);
        let per = u64::from(elem.per(PIECE as u32));
        let plain = match d.transposed {
            true => d.plain(elem, i * per, j * PERIOD + row),
            false => d.plain(elem, i * PERIOD + row, j * per),
        };
        d.exchange.apply(self.of.steps[step] + plain)
    }

    fn of_step(&self, step: usize) -> Vec<Part> {
        let (along, deep) = self.cores();
        let cores = (0..along).flat_map(|i| (0..deep).map(move |j| (i, j)));
        cores.flat_map(|core| (0..PERIOD).map(move |row| (step, core, row))).collect()
    }

    /// Banks that a core matrix is in.
    fn banks(&self, step: usize, core: (u64, u64)) -> u64 {
        let places: BTreeSet<u64> = (0..PERIOD).map(|row| self.byte((step, core, row)) % LINE / PIECE).collect();
        places.len() as u64 * (lines::BANKS / ACROSS)
    }

    /// The number of a core matrix: those along the reduction follow one another.
    fn number(&self, (i, j): (u64, u64)) -> u64 {
        i * self.cores().1 + j
    }

    /// A picture for each step along the reduction.
    fn frames(&self) -> Vec<String> {
        (0..self.of.steps.len()).map(|step| self.draw(step)).collect()
    }

    fn draw(&self, step: usize) -> String {
        let o = self.of;
        let (along, deep) = self.cores();
        let shown = along.min(MOST.0);
        let wide = (o.steps.len() as u64 * deep) as f64 * WIDE;
        let touched: BTreeSet<u64> = self.of_step(step).iter().map(|&p| self.byte(p) / LINE * LINE).collect();
        let all = touched.len();
        let memory: Vec<u64> = touched.into_iter().take(MOST.1).collect();
        let own: BTreeMap<u64, Part> = self.of_step(step).into_iter().map(|part| (self.byte(part), part)).collect();
        let parts: Vec<(u64, Part)> =
            memory.iter().flat_map(|&line| own.range(line..line + LINE)).map(|(&byte, &part)| (byte, part)).collect();
        // Those whose rows all are on the right have their colour on the left, too.
        let rows = |core| parts.iter().filter(|(_, part)| part.1 == core).count() as u64;
        let whole: BTreeSet<u64> =
            parts.iter().map(|(_, part)| part.1).filter(|&c| rows(c) == PERIOD).map(|c| self.number(c)).collect();
        let below =
            MARGIN.1 + HIGH * (shown as f64 + if along > shown { 1.0 } else { 0.0 }).max(memory.len() as f64) + 12.0;
        let beside = MARGIN.0 + wide + 90.0;
        let mut svg = Svg::new(beside + ACROSS as f64 * WIDE + 8.0, below, self.title);
        let (first, depth) = (step as u64 * o.extents.1, o.extents.1);
        let banks = (0..along).flat_map(|i| (0..deep).map(move |j| (i, j))).map(|core| self.banks(step, core)).min();
        let said = format!(
            "step {} of {}: elements {first} to {} of the reduction; each core matrix is in {} banks",
            step + 1,
            o.steps.len(),
            first + depth - 1,
            banks.unwrap_or(0)
        );
        svg.colored(4.0, 32.0, Anchor::Start, STRONG, &said);
        svg.colored(MARGIN.0, 50.0, Anchor::Start, DIM, "the operand, by core matrices");
        svg.colored(beside, 50.0, Anchor::Start, DIM, "shared memory, by banks");
        self.grid(&mut svg, step, shown, &whole);
        let pieces = parts.iter().map(|&(byte, part)| (byte, self.look(part))).collect();
        lines::draw(&mut svg, (beside, MARGIN.1), WIDE, &memory, &pieces);
        self.legend(&mut svg, (along * deep, &whole), (all, memory.len()));
        for text in self.notes(step) {
            svg.note(text);
        }
        svg.done()
    }

    /// A piece in memory: the core matrix and the row in it.
    fn look(&self, (_, core, row): Part) -> Piece {
        let number = self.number(core);
        Piece { fill: self.tint(core), text: format!("m{number}.{row}") }
    }

    /// The tint of a core matrix.
    fn tint(&self, core: (u64, u64)) -> &'static str {
        TINTS[self.number(core) as usize % TINTS.len()]
    }

    /// Core matrices of all steps, as the product has them; `whole`: also those around them in memory.
    fn grid(&self, svg: &mut Svg, step: usize, shown: u64, whole: &BTreeSet<u64>) {
        let o = self.of;
        let (along, deep) = self.cores();
        let (lines, depth) = (o.extents.0 / along, o.extents.1 / deep);
        let (_, word) = kind(o);
        let across = o.steps.len() as u64 * deep;
        svg.colored(MARGIN.0 - 6.0, MARGIN.1 - 8.0, Anchor::End, DIM, word);
        for i in 0..shown {
            let y = MARGIN.1 + i as f64 * HIGH;
            let text = format!("{} to {}", i * lines, (i + 1) * lines - 1);
            svg.colored(MARGIN.0 - 6.0, y + 14.0, Anchor::End, DIM, &text);
            svg.rect((MARGIN.0, y), (across as f64 * WIDE, HIGH), "#ffffff");
            for at in 0..across {
                let x = MARGIN.0 + at as f64 * WIDE;
                if i == 0 {
                    let text = format!("k {}", at * depth);
                    svg.colored(x + WIDE / 2.0, MARGIN.1 - 8.0, Anchor::Middle, DIM, &text);
                }
                if at / deep == step as u64 {
                    let core = (i, at % deep);
                    let number = self.number(core);
                    let (fill, color) = if whole.contains(&number) { (self.tint(core), INK) } else { ("#ffffff", DIM) };
                    svg.rect((x, y), (WIDE, HIGH), fill);
                    svg.colored(x + WIDE / 2.0, y + 14.0, Anchor::Middle, color, &format!("m{number}"));
                }
            }
        }
        if along > shown {
            let text = format!("and so on, to {}", o.extents.0 - 1);
            svg.colored(MARGIN.0, MARGIN.1 + shown as f64 * HIGH + 14.0, Anchor::Start, DIM, &text);
        }
    }

    /// What the signs mean, and which of the core matrices are in memory.
    fn legend(&self, svg: &mut Svg, (count, whole): (u64, &BTreeSet<u64>), (all, drawn): (usize, usize)) {
        let o = self.of;
        let (_, word) = kind(o);
        let per = o.elem.per(PIECE as u32);
        let shape = match o.descriptor.transposed {
            true => format!("{PERIOD} elements of the reduction by {per} {word}"),
            false => format!("{PERIOD} {word} by {per} elements of the reduction"),
        };
        svg.key(Key::Text("m3"), format!("core matrix 3: {shape}; 8 rows of 16 bytes"));
        svg.key(Key::Text("m3.5"), "row 5 of core matrix 3: 16 bytes in 4 banks");
        svg.key(Key::Cell(TINTS[0]), "the same tint and number: the same core matrix");
        let numbers: Vec<String> = whole.iter().map(|n| format!("m{n}")).collect();
        if (whole.len() as u64) < count {
            svg.key(Key::Cell("#ffffff"), "on the left: its rows are not drawn on the right");
            let list = match numbers.as_slice() {
                [first, .., last] if numbers.len() > 8 => format!("{first} to {last}"),
                few => few.join(", "),
            };
            svg.note(format!(
                "Drawn on the right: {drawn} of the {all} rows of 128 bytes that the instruction reads, with {list} of its {count} core matrices. The others lie alike, further on by the offsets below."
            ));
        }
        svg.note("+128: bytes from where the operand's tile begins.");
    }

    /// The descriptor in words, and what is not drawn.
    fn notes(&self, step: usize) -> Vec<String> {
        let (o, d) = (self.of, &self.of.descriptor);
        let added = |bytes: &[u64]| bytes.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let (_, word) = kind(o);
        let row = o.elem.per(d.exchange.row_bytes() as u32);
        // Who needs which field, and what for: the unit ignores the others.
        let (leading, stride) = match d.transposed {
            true if o.extents.0 > u64::from(row) => (
                format!("{} bytes, from {row} {word} to the next {row}", d.leading),
                format!("{} bytes, from 8 elements of the reduction to the next 8", d.stride),
            ),
            true => (
                format!("{} bytes, not used: the {word} fit a row of {} bytes", d.leading, d.exchange.row_bytes()),
                format!("{} bytes, from 8 elements of the reduction to the next 8", d.stride),
            ),
            false => (
                format!(
                    "{} bytes, not used: the reduction of an instruction fits a row of {} bytes",
                    d.leading,
                    d.exchange.row_bytes()
                ),
                format!("{} bytes, from 8 {word} to the next 8", d.stride),
            ),
        };
        let major = if d.transposed {
            format!("{word} are contiguous (MN-major)")
        } else {
            "the reduction is contiguous (K-major)".to_owned()
        };
        let mut notes = vec![
            format!("Matrix descriptor (PTX ISA, asynchronous warpgroup instructions); {major}:"),
            format!("start address: where the tile begins + {} bytes in this step", o.steps[step]),
            format!("leading dimension byte offset: {leading}"),
            format!("stride dimension byte offset: {stride}"),
            format!(
                "swizzle mode: {} bytes, byte = p XOR 16 * ((p / 128) mod {}), where p is the byte without swizzle",
                d.exchange.row_bytes(),
                d.exchange.row_bytes() / PIECE
            ),
        ];
        if o.groups.iter().any(|&b| b > 0) {
            notes.push(format!("Bits of the warpgroup's number add to the start address: {} bytes", added(&o.groups)));
        }
        if o.repeats.len() > 1 {
            notes.push(format!(
                "A step has {} instructions, whose operands begin at bytes {}",
                o.repeats.len(),
                added(&o.repeats)
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilec_ir::bits::Bits;
    use tilec_ir::diag::Span;
    use tilec_ir::layout::hardware::{descriptor, panels, plain_offset};

    /// A tile of 64 by 64 elements, whose reduction is dimension `k`, and its layout.
    fn operand(k: usize) -> (OperandReport, tilec_ir::layout::SmemLayout) {
        let half = Bits::new(16);
        let layout = panels(&[64, 64], 1, half, false).expect("a layout");
        let d = descriptor(&layout, half, (1 - k, 6), (k, 4)).expect("a descriptor");
        let at = |i: u64| if k == 1 { [0, i] } else { [i, 0] };
        let steps = (0..64).step_by(16).map(|i| plain_offset(&layout, half, d.exchange, &at(i))).collect();
        let o = OperandReport {
            span: Span::default(),
            second: k == 0,
            buffer: "a".to_owned(),
            atom: "m64k16".to_owned(),
            elem: half,
            descriptor: d,
            extents: (64, 16),
            steps,
            repeats: vec![0],
            groups: Vec::new(),
        };
        (o, layout)
    }

    /// Core matrices are drawn where the layout of the tile has their elements, in both orders, and are in all banks.
    #[test]
    fn core_matrices_lie_where_the_layout_says() {
        for k in [1, 0] {
            let (o, layout) = operand(k);
            let of = Operand { of: &o, title: "" };
            assert_eq!(of.cores(), (8, 2));
            for part in (0..o.steps.len()).flat_map(|s| of.of_step(s)) {
                let (step, (i, j), row) = part;
                let depth = step as u64 * 16 + j * 8;
                let at = if k == 1 { [i * 8 + row, depth] } else { [depth + row, i * 8] };
                assert_eq!(layout.offset(&at) * 2, of.byte(part), "{k}: {part:?}");
                assert_eq!(of.banks(step, (i, j)), 32);
            }
            let frames = of.frames();
            assert_eq!(frames.len(), 4);
            for (i, frame) in frames.iter().enumerate() {
                assert!(frame.contains(">m0.0<"), "{frame}");
                assert!(frame.contains(&format!("elements {} to {}", i * 16, i * 16 + 15)), "{frame}");
            }
        }
    }
}
