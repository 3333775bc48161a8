//! Copies by TMA: the box in global memory by rows and sectors, and where its pieces are in shared memory.
//!
//! Extents, boxes and the mode of exchange are those of the tensor map that the copy was lowered with. In which order TMA writes is not
//! published: a phase is what the banks take at once, 128 bytes, in the order of the box.

use super::lines::{self, ACROSS, DIM, HIGH, LINE, PIECE, Piece};
use super::picture::{Picture, Room};
use super::svg::{Anchor, INK, Key, STRONG, Svg, TINTS};
use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::layout::hardware::{Exchange, PERIOD};
use tilec_ir::target::SECTOR_BYTES;
use tilec_ptx::report::BoxReport;

/// Pieces of a row that are drawn at most.
const MOST: u64 = 16;
/// Width of a piece.
const WIDE: f64 = 46.0;
const MARGIN: (f64, f64) = (74.0, 72.0);
/// Boxes whose places are written down at most.
const PLACES: usize = 8;

/// A piece of a box: its row, and its number in the row.
type At = (u64, u64);

/// A picture of each kind of copy: those whose boxes are alike have one, by the name of the first tensor.
pub(super) fn pictures(copies: &[BoxReport], prefix: &str) -> Vec<Picture> {
    let mut kinds: Vec<Vec<&BoxReport>> = Vec::new();
    let alike = |a: &BoxReport, b: &BoxReport| {
        (a.store, a.elem, a.exchange, a.blocks) == (b.store, b.elem, b.exchange, b.blocks)
            && a.extents == b.extents
            && a.places == b.places
    };
    for c in copies {
        match kinds.iter_mut().find(|kind| alike(kind[0], c)) {
            Some(kind) if kind.iter().any(|k| (&k.tensor, &k.buffer) == (&c.tensor, &c.buffer)) => {}
            Some(kind) => kind.push(c),
            None => kinds.push(vec![c]),
        }
    }
    let mut names: Vec<String> = Vec::new();
    let mut out = Vec::new();
    for kind in &kinds {
        let first = kind[0];
        let name = format!("{prefix}tma-{}-{}", first.tensor, if first.store { "store" } else { "load" });
        names.push(name.clone());
        let number = names.iter().filter(|n| **n == name).count();
        let name = if number > 1 { format!("{name}-{number}") } else { name };
        let title = title(kind);
        let frames = ShownBox { copy: first, title: &title }.frames();
        out.push(Picture { title, frames, span: first.span, ..Picture::new(Room::Memory, name, String::new()) });
    }
    out
}

fn title(kind: &[&BoxReport]) -> String {
    let c = kind[0];
    let extents: Vec<_> = c.extents.iter().map(u64::to_string).collect();
    let sides = |c: &&BoxReport| match c.store {
        true => format!("{} -> {}", c.buffer, c.tensor),
        false => format!("{} -> {}", c.tensor, c.buffer),
    };
    let sides = kind.iter().map(sides).collect::<Vec<_>>().join(", ");
    let extents = extents.join(" x ");
    let of = match c.places.len() {
        1 => "one box a tile".to_owned(),
        n => format!("{n} boxes a tile"),
    };
    let kind = match c.blocks {
        1 => format!("of {extents} elements"),
        n => format!("which {n} blocks of the cluster load in parts of {extents} elements"),
    };
    format!("How TMA moves {sides}: {of}, {kind} (the contiguous dimension first)")
}

struct ShownBox<'a> {
    copy: &'a BoxReport,
    title: &'a str,
}

impl ShownBox<'_> {
    /// Bytes of a row.
    fn row_bytes(&self) -> u64 {
        self.copy.elem.bytes_of(self.copy.extents[0])
    }

    /// Pieces of a row that are drawn.
    fn pieces(&self) -> u64 {
        self.row_bytes().div_ceil(PIECE).min(MOST)
    }

    /// Rows that are drawn: those of a period.
    fn rows(&self) -> u64 {
        self.copy.extents[1..].iter().product::<u64>().min(PERIOD)
    }

    /// Where a piece is in shared memory, in bytes from the first of its box; `exchanged`: as it does.
    fn byte(&self, (row, piece): At, exchanged: bool) -> u64 {
        let plain = row * self.row_bytes() + piece * PIECE;
        if exchanged { self.copy.exchange.apply(plain) } else { plain }
    }

    /// In how many banks of the 32 these pieces lie.
    fn banks(&self, pieces: &[At], exchanged: bool) -> u64 {
        let places: BTreeSet<u64> = pieces.iter().map(|&p| self.byte(p, exchanged) % LINE / PIECE).collect();
        places.len() as u64 * (lines::BANKS / ACROSS)
    }

    /// All that is drawn, in the order of the box.
    fn all(&self) -> Vec<At> {
        (0..self.rows()).flat_map(|row| (0..self.pieces()).map(move |piece| (row, piece))).collect()
    }

    /// The box; a phase each; a column of pieces, which a product reads.
    fn frames(&self) -> Vec<String> {
        let all = self.all();
        let row = self.row_bytes();
        let exchanged = match self.copy.exchange {
            Exchange::Plain => "no swizzle".to_owned(),
            x => format!("pieces of 16 bytes are swizzled by the row, mode {}", x.name()),
        };
        let whole = format!("the box, its first {} rows of {row} bytes each: {exchanged}", self.rows());
        let mut frames = vec![self.draw(&all, &whole)];
        let phases: Vec<&[At]> = all.chunks(ACROSS as usize).collect();
        // Of rows that are drawn in part the bytes do not follow one another.
        if phases.len() > 1 && self.pieces() * PIECE == row {
            for (i, phase) in phases.iter().enumerate() {
                let first = i as u64 * LINE;
                let banks = self.banks(phase, true);
                let each = if banks == lines::BANKS { ", each once" } else { "" };
                let said = format!(
                    "phase {} of {}: bytes {first} to {} of the box, in {banks} banks{each}",
                    i + 1,
                    phases.len(),
                    first + phase.len() as u64 * PIECE - 1
                );
                frames.push(self.draw(phase, &said));
            }
        }
        if self.rows() == PERIOD {
            let column: Vec<At> = (0..PERIOD).map(|row| (row, 0)).collect();
            let (own, plain) = (self.banks(&column, true), self.banks(&column, false));
            let beside = if self.copy.exchange == Exchange::Plain {
                String::new()
            } else {
                format!("; without the swizzle in {plain}")
            };
            frames.push(self.draw(
                &column,
                &format!("the first 16 bytes of 8 rows, as products read them: in {own} banks{beside}"),
            ));
        }
        frames
    }

    /// The box with these pieces marked.
    fn draw(&self, marked: &[At], said: &str) -> String {
        let c = self.copy;
        let (rows, pieces) = (self.rows(), self.pieces());
        let beside = MARGIN.0 + pieces as f64 * WIDE + 120.0;
        let memory: BTreeSet<u64> = self.all().iter().map(|&p| self.byte(p, true) / LINE * LINE).collect();
        let memory: Vec<u64> = memory.into_iter().collect();
        let below = MARGIN.1 + HIGH * (rows as f64).max(memory.len() as f64) + 12.0;
        let mut svg = Svg::new(beside + ACROSS as f64 * WIDE + 8.0, below, self.title);
        svg.colored(4.0, 32.0, Anchor::Start, STRONG, said);
        svg.colored(MARGIN.0, 50.0, Anchor::Start, DIM, "global memory, by sectors");
        svg.colored(beside, 50.0, Anchor::Start, DIM, "shared memory, by banks");
        svg.colored(MARGIN.0 - 6.0, MARGIN.1 - 8.0, Anchor::End, DIM, "sector");
        let sector = u64::from(SECTOR_BYTES);
        // What a step does not mark is left out: a page has many of them.
        let look = |at: At| Piece { fill: TINTS[(at.1 % ACROSS) as usize], text: format!("{}.{}", at.0, at.1) };
        for piece in (0..pieces).step_by((sector / PIECE) as usize) {
            let wide = (pieces - piece).min(sector / PIECE) as f64 * WIDE;
            let x = MARGIN.0 + piece as f64 * WIDE;
            svg.colored(x + wide / 2.0, MARGIN.1 - 8.0, Anchor::Middle, DIM, &(piece * PIECE / sector).to_string());
        }
        for row in 0..rows {
            let y = MARGIN.1 + row as f64 * HIGH;
            svg.rect((MARGIN.0, y), (pieces as f64 * WIDE, HIGH), "#ffffff");
            svg.colored(MARGIN.0 - 6.0, y + 14.0, Anchor::End, DIM, &format!("row {row}"));
        }
        let mut sorted = marked.to_vec();
        sorted.sort_by_key(|at| (at.1 % ACROSS, at.0));
        for at in sorted {
            let (x, y) = (MARGIN.0 + at.1 as f64 * WIDE, MARGIN.1 + at.0 as f64 * HIGH);
            let p = look(at);
            svg.rect((x, y), (WIDE, HIGH), p.fill);
            svg.text(x + WIDE / 2.0, y + 14.0, Anchor::Middle, &p.text);
        }
        for edge in (0..=pieces).step_by((sector / PIECE) as usize) {
            let x = MARGIN.0 + edge as f64 * WIDE;
            svg.line((x, MARGIN.1), (x, MARGIN.1 + rows as f64 * HIGH), INK, false);
        }
        let landed: BTreeMap<u64, Piece> = marked.iter().map(|&at| (self.byte(at, true), look(at))).collect();
        lines::draw(&mut svg, (beside, MARGIN.1), WIDE, &memory, &landed);
        svg.key(Key::Text("2.5"), "row 2 of the box, 16 bytes number 5 of the row");
        svg.key(Key::Cell(TINTS[0]), "equal tints: equal places in their rows");
        svg.key(Key::Line(INK), "the edge of a sector of 32 bytes");
        svg.note(match c.exchange {
            Exchange::Plain => "Swizzle mode: none. Rows lie in shared memory one after the other; +128: bytes from where the box begins there.".to_owned(),
            x => format!(
                "Swizzle mode {}: byte = p XOR 16 * ((p / 128) mod {}), where p is the byte of rows that lie one after the other; +128: bytes from where the box begins in shared memory.",
                x.name(),
                x.row_bytes() / PIECE
            ),
        });
        for text in self.places() {
            svg.note(text);
        }
        svg.done()
    }

    /// Where the boxes of a tile lie.
    fn places(&self) -> Vec<String> {
        let c = self.copy;
        let text = |(i, (start, byte)): (usize, &(Vec<u64>, u64))| {
            let start: Vec<String> = start.iter().map(u64::to_string).collect();
            let more = if i + 1 == PLACES && c.places.len() > PLACES { ", and so on" } else { "" };
            format!("Box {}: from [{}] of the window, at byte {byte} of the tile{more}.", i + 1, start.join(", "))
        };
        c.places.iter().take(PLACES).enumerate().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilec_ir::bits::Bits;
    use tilec_ir::diag::Span;
    use tilec_ir::layout::hardware::{boxes, panels};

    fn copy(shape: [u64; 2], contiguous: usize) -> BoxReport {
        let half = Bits::new(16);
        let layout = panels(&shape, contiguous, half, false).expect("a layout");
        let b = boxes(&layout, &shape, half).expect("boxes");
        BoxReport {
            span: Span::default(),
            tensor: "A".to_owned(),
            buffer: "a".to_owned(),
            store: false,
            elem: half,
            extents: b.extents,
            exchange: b.exchange,
            places: b.places,
            blocks: 1,
        }
    }

    /// Pieces are drawn where the layout of the tile has their elements, for each mode.
    #[test]
    fn pieces_lie_where_the_layout_says() {
        for columns in [16, 32, 64, 128] {
            let shape = [64, columns];
            let layout = panels(&shape, 1, Bits::new(16), false).expect("a layout");
            let c = copy(shape, 1);
            let of = ShownBox { copy: &c, title: "" };
            assert_eq!(of.rows(), 8);
            for (start, byte) in &c.places {
                for (row, piece) in of.all() {
                    let at = layout.offset(&[start[0] + row, start[1] + piece * 8]) * 2;
                    assert_eq!(at, byte + of.byte((row, piece), true), "{columns} columns: {row}.{piece}");
                }
            }
        }
    }

    /// A phase takes all banks; so does a column of pieces, because they are exchanged.
    #[test]
    fn phases_and_columns_take_all_banks() {
        for (columns, phases, plain) in [(16, 2, 16), (32, 4, 8), (64, 8, 4)] {
            let c = copy([64, columns], 1);
            let frames = ShownBox { copy: &c, title: "" }.frames();
            assert_eq!(frames.len(), 2 + phases, "{columns}");
            for frame in &frames[1..=phases] {
                assert!(frame.contains("in 32 banks, each once"), "{frame}");
            }
            let last = frames.last().expect("a column");
            assert!(last.contains(&format!("in 32 banks; without the swizzle in {plain}<")), "{columns}: {last}");
        }
    }
}
