//! Operands of wgmma products in shared memory: core matrices of 8 lines by 16 bytes, where their descriptor says they are.
//!
//! Facts: PTX ISA 9.7.15.5.1. Lines are rows of A, and columns of B. Where elements are contiguous along the lines, a core matrix is 8 elements of the
//! reduction by 16 bytes of lines.

use super::lines::{self, ACROSS, DIM, HIGH, LINE, PIECE, Piece};
use super::picture::{Picture, Room};
use super::svg::{Anchor, STRONG, Svg, TINTS};
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::layout::hardware::PERIOD;
use tilec_ptx::report::OperandReport;

/// Core matrices along the lines, and lines of memory, that are drawn at most.
const MOST: (u64, usize) = (8, 8);
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
    let order = if o.descriptor.transposed { lines } else { "the reduction" };
    let (count, depth) = o.extents;
    format!(
        "{names} as {side} of wgmma ({}): {count} {lines} by {depth} of the reduction an instruction, contiguous along {order}; {}",
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

    /// Where a row of a core matrix lies, in bytes from where the operand begins.
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

    /// Banks that a core matrix lies in.
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
        let memory: Vec<u64> = touched.into_iter().take(MOST.1).collect();
        let below = MARGIN.1 + HIGH * (shown as f64).max(memory.len() as f64) + 16.0;
        let beside = MARGIN.0 + wide + 90.0;
        let mut svg = Svg::new(beside + ACROSS as f64 * WIDE + 8.0, below + 58.0, self.title);
        let (first, depth) = (step as u64 * o.extents.1, o.extents.1);
        let banks = (0..along).flat_map(|i| (0..deep).map(move |j| (i, j))).map(|core| self.banks(step, core)).min();
        let said = format!(
            "step {} of {}: elements {first} to {} of the reduction; each core matrix lies in {} banks",
            step + 1,
            o.steps.len(),
            first + depth - 1,
            banks.unwrap_or(0)
        );
        svg.colored(4.0, 32.0, Anchor::Start, STRONG, &said);
        self.grid(&mut svg, step, shown);
        let own: BTreeMap<u64, Part> = self.of_step(step).into_iter().map(|part| (self.byte(part), part)).collect();
        let pieces = memory.iter().flat_map(|&line| own.range(line..line + LINE));
        let pieces = pieces.map(|(&byte, &part)| (byte, self.look(part))).collect();
        lines::draw(&mut svg, (beside, MARGIN.1), WIDE, &memory, &pieces);
        for (i, text) in self.notes(step).iter().enumerate() {
            svg.colored(4.0, below + 16.0 * i as f64 + 12.0, Anchor::Start, DIM, text);
        }
        svg.done()
    }

    /// A piece in memory: the core matrix and the row in it.
    fn look(&self, (_, core, row): Part) -> Piece {
        let number = self.number(core);
        Piece { fill: TINTS[number as usize % TINTS.len()], text: format!("m{number}.{row}") }
    }

    /// Core matrices of all steps, as the product has them.
    fn grid(&self, svg: &mut Svg, step: usize, shown: u64) {
        let o = self.of;
        let (along, deep) = self.cores();
        let (lines, depth) = (o.extents.0 / along, o.extents.1 / deep);
        let (_, word) = kind(o);
        svg.colored(MARGIN.0 - 6.0, MARGIN.1 - 8.0, Anchor::End, DIM, word);
        for i in 0..shown {
            let y = MARGIN.1 + i as f64 * HIGH;
            let text = format!("{} to {}", i * lines, (i + 1) * lines - 1);
            svg.colored(MARGIN.0 - 6.0, y + 14.0, Anchor::End, DIM, &text);
            let across = o.steps.len() as u64 * deep;
            svg.rect((MARGIN.0, y), (across as f64 * WIDE, HIGH), "#ffffff");
            for at in 0..across {
                let x = MARGIN.0 + at as f64 * WIDE;
                if i == 0 {
                    let text = format!("k {}", at * depth);
                    svg.colored(x + WIDE / 2.0, MARGIN.1 - 8.0, Anchor::Middle, DIM, &text);
                }
                if at / deep == step as u64 {
                    let number = self.number((i, at % deep));
                    svg.rect((x, y), (WIDE, HIGH), TINTS[number as usize % TINTS.len()]);
                    svg.text(x + WIDE / 2.0, y + 14.0, Anchor::Middle, &format!("m{number}"));
                }
            }
        }
    }

    /// The descriptor in words, and what is not drawn.
    fn notes(&self, step: usize) -> Vec<String> {
        let (o, d) = (self.of, &self.of.descriptor);
        let added = |bytes: &[u64]| bytes.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let leading = if d.transposed { format!("leading {}, ", d.leading) } else { String::new() };
        let mut notes = vec![format!(
            "descriptor: {leading}stride {} bytes, exchange {}; this step begins {} bytes on",
            d.stride,
            d.exchange.name(),
            o.steps[step]
        )];
        if o.groups.iter().any(|&b| b > 0) {
            notes.push(format!("bits of the warpgroup's number add {} bytes", added(&o.groups)));
        }
        if o.repeats.len() > 1 {
            notes.push(format!("instructions of a step begin at bytes {}", added(&o.repeats)));
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

    /// Core matrices are drawn where the layout of the tile has their elements, in both orders, and lie in all banks.
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
