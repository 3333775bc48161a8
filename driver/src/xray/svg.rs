//! What pictures are drawn with: rectangles, lines and text of one size, on white, so that they are the same on paper.

use std::fmt::Write as _;

/// Tints for cells with dark text, after the light scheme by Paul Tol. Colour-blind people tell them apart, best those that follow one another. A number or
/// word always says the same.
pub(super) const TINTS: [&str; 8] =
    ["#77aadd", "#ffaabb", "#bbcc33", "#44bb99", "#eedd88", "#99ddff", "#ee8866", "#ececec"];
/// What is wrong; it has a sign next to it.
pub(super) const BAD: &str = "#9e1b32";
/// What is measured or chosen.
pub(super) const STRONG: &str = "#0072b2";

/// What is written.
pub(super) const INK: &str = "#1a1a1a";
/// Text next to a picture.
const NOTE: &str = "#444444";

/// The side of its point on which a text is.
#[derive(Copy, Clone)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// What the legend explains: how it looks in the picture.
#[derive(Copy, Clone)]
pub(super) enum Key {
    /// A cell of this fill.
    Cell(&'static str),
    /// A round mark.
    Dot(&'static str),
    /// A mark on its corner.
    Diamond(&'static str),
    /// An upright line.
    Line(&'static str),
    /// Text.
    Text(&'static str),
}

/// Height of a line of the legend and of notes.
const LINE: f64 = 17.0;
/// Width of a sign in the legend, with its gap.
const SIGN: f64 = 22.0;
/// Lines of title and notes may be as long, whatever the picture's width.
const READABLE: f64 = 820.0;

/// A picture that is being drawn.
pub(super) struct Svg {
    width: f64,
    height: f64,
    title: String,
    /// Signs and what they mean, under the picture.
    legend: Vec<(Key, String)>,
    /// Sentences under the legend.
    notes: Vec<String>,
    /// Rectangles and lines, below.
    shapes: String,
    /// Rectangles of one colour that follow one another, which become one shape: the colour, and their outlines.
    open: (String, String),
    /// Texts, above: those that are around their point, and the others.
    centred: String,
    texts: String,
    /// Where the text that reaches furthest ends: the picture is as wide.
    right: f64,
}

/// Width of a character.
const CHARACTER: f64 = 6.7;

/// A coordinate without needless digits.
fn short(x: f64) -> String {
    let text = format!("{x:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Text in a picture.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

impl Svg {
    /// An empty picture of this size, in pixels, with its title in the first line. Legend and notes make it higher, and a title of several lines.
    pub(super) fn new(width: f64, height: f64, title: &str) -> Svg {
        Svg {
            width,
            height,
            title: title.to_owned(),
            legend: Vec::new(),
            notes: Vec::new(),
            shapes: String::new(),
            open: Default::default(),
            centred: String::new(),
            texts: String::new(),
            right: 0.0,
        }
    }

    /// The picture ends here; legend and notes follow.
    pub(super) fn end(&mut self, height: f64) {
        self.height = height;
    }

    /// What a sign means, in the legend.
    pub(super) fn key(&mut self, key: Key, text: impl Into<String>) {
        self.legend.push((key, text.into()));
    }

    /// A sentence under the picture.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// The width of a text.
    pub(super) fn wide(text: &str) -> f64 {
        text.chars().count() as f64 * CHARACTER
    }

    /// A rectangle with an edge.
    pub(super) fn rect(&mut self, (x, y): (f64, f64), (w, h): (f64, f64), fill: &str) {
        let (x, y, w, h) = (short(x), short(y), short(w.max(0.0)), short(h.max(0.0)));
        if self.open.0 != fill {
            self.close();
            fill.clone_into(&mut self.open.0);
        }
        let _ = write!(self.open.1, "M{x} {y}h{w}v{h}h-{w}z");
    }

    /// Ends a run of rectangles of one colour.
    fn close(&mut self) {
        let (fill, outlines) = std::mem::take(&mut self.open);
        if !outlines.is_empty() {
            let _ = writeln!(self.shapes, "<path fill=\"{fill}\" d=\"{outlines}\"/>");
        }
    }

    /// A text.
    pub(super) fn text(&mut self, x: f64, y: f64, anchor: Anchor, text: &str) {
        self.colored(x, y, anchor, INK, text);
    }

    /// A text in a colour.
    pub(super) fn colored(&mut self, x: f64, y: f64, anchor: Anchor, color: &str, text: &str) {
        let wide = Svg::wide(text);
        let end = match anchor {
            Anchor::Start => x + wide,
            Anchor::Middle => x + wide / 2.0,
            Anchor::End => x,
        };
        self.right = self.right.max(end + 4.0);
        let fill = if color == INK { String::new() } else { format!(" fill=\"{color}\"") };
        let (x, y, text) = (short(x), short(y), escaped(text));
        let _ = match anchor {
            Anchor::Middle => writeln!(self.centred, "<text x=\"{x}\" y=\"{y}\"{fill}>{text}</text>"),
            Anchor::Start => writeln!(self.texts, "<text x=\"{x}\" y=\"{y}\"{fill}>{text}</text>"),
            Anchor::End => {
                writeln!(self.texts, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\"{fill}>{text}</text>")
            }
        };
    }

    /// A line; dashed: what is expected, not there.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), color: &str, dashed: bool) {
        let dash = if dashed { " stroke-dasharray=\"4 3\"" } else { "" };
        self.close();
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(short);
        let _ =
            writeln!(self.shapes, "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{color}\"{dash}/>");
    }

    /// A line through points.
    pub(super) fn path(&mut self, points: &[(f64, f64)], color: &str) {
        self.close();
        let points: Vec<String> = points.iter().map(|&(x, y)| format!("{},{}", short(x), short(y))).collect();
        let _ = writeln!(
            self.shapes,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.5\"/>",
            points.join(" ")
        );
    }

    /// A mark at a point.
    pub(super) fn mark(&mut self, (x, y): (f64, f64), color: &str) {
        self.close();
        let _ = writeln!(self.shapes, "<circle cx=\"{}\" cy=\"{}\" r=\"4\" fill=\"{color}\"/>", short(x), short(y));
    }

    /// The diamond of a mark.
    pub(super) fn diamond(&mut self, (x, y): (f64, f64), color: &str) {
        self.close();
        let (left, y) = (short(x - 5.0), short(y));
        let _ = writeln!(self.shapes, "<path fill=\"{color}\" d=\"M{left} {y}l5 -5l5 5l-5 5z\"/>");
    }

    /// An arrow through points, with its head at the last.
    pub(super) fn arrow(&mut self, points: &[(f64, f64)], color: &str) {
        self.path(points, color);
        let [.., from, to] = points else { return };
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx.hypot(dy).max(1.0);
        let (ux, uy) = (dx / length * 6.0, dy / length * 6.0);
        let [x, y, lx, ly, rx, ry] =
            [to.0, to.1, to.0 - ux - uy / 2.0, to.1 - uy + ux / 2.0, to.0 - ux + uy / 2.0, to.1 - uy - ux / 2.0]
                .map(short);
        let _ = writeln!(self.shapes, "<path fill=\"{color}\" stroke=\"none\" d=\"M{x} {y}L{lx} {ly}L{rx} {ry}z\"/>");
    }

    /// Draws the legend and the notes under what there is, in lines of this width.
    fn explain(&mut self, width: f64) {
        let (mut x, mut y) = (4.0, self.height + 4.0);
        let legend = std::mem::take(&mut self.legend);
        let any = !legend.is_empty();
        for (key, text) in legend {
            let lines = wrapped(&text, width - SIGN - 8.0);
            let own = match key {
                Key::Text(text) => SIGN.max(Svg::wide(text) + 10.0),
                _ => SIGN,
            };
            let wide = own + lines.iter().map(|l| Svg::wide(l)).fold(0.0, f64::max) + 18.0;
            if x > 4.0 && x + wide > width {
                (x, y) = (4.0, y + LINE);
            }
            self.sign(key, (x, y));
            for (i, line) in lines.iter().enumerate() {
                y += if i > 0 { LINE } else { 0.0 };
                self.colored(x + own, y + 11.0, Anchor::Start, INK, line);
            }
            x += wide;
        }
        y += if any { LINE + 3.0 } else { 0.0 };
        for note in std::mem::take(&mut self.notes) {
            for line in wrapped(&note, width - 8.0) {
                self.colored(4.0, y + 11.0, Anchor::Start, NOTE, &line);
                y += LINE;
            }
        }
        self.height = if y > self.height + 4.0 { y + 4.0 } else { self.height };
    }

    /// A sign of the legend.
    fn sign(&mut self, key: Key, (x, y): (f64, f64)) {
        match key {
            Key::Cell(fill) => self.rect((x, y + 1.0), (16.0, 12.0), fill),
            Key::Dot(color) => self.mark((x + 8.0, y + 7.0), color),
            Key::Diamond(color) => self.diamond((x + 8.0, y + 7.0), color),
            Key::Line(color) => self.line((x + 8.0, y), (x + 8.0, y + 14.0), color, false),
            Key::Text(text) => self.text(x, y + 11.0, Anchor::Start, text),
        }
    }

    /// The picture.
    pub(super) fn done(mut self) -> String {
        let width = self.width.max(self.right.ceil()).max(READABLE);
        let lines = wrapped(&self.title, width - 8.0);
        let above = 16.0 * (lines.len() as f64 - 1.0);
        for (i, line) in lines.iter().enumerate() {
            self.text(4.0, 14.0 + 16.0 * i as f64 - above, Anchor::Start, line);
        }
        self.explain(width);
        self.close();
        // Whole pixels: at an edge in the middle of one, the background shows through.
        let (width, height) = (self.width.max(self.right).ceil(), (self.height + above).ceil());
        let (top, w, h) = (short(0.0 - above), short(width), short(height));
        let title = escaped(&self.title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 {top} {w} {h}\" width=\"{w}\" height=\"{h}\" \
             font-family=\"monospace\" font-size=\"11\" role=\"img\">\n<title>{title}</title>\n\
             <rect y=\"{top}\" width=\"{w}\" height=\"{h}\" fill=\"#ffffff\"/>\n<g stroke=\"#888888\">\n{}</g>\n\
             <g fill=\"{INK}\" text-anchor=\"middle\">\n{}</g>\n<g fill=\"{INK}\">\n{}</g>\n</svg>\n",
            self.shapes, self.centred, self.texts
        )
    }
}

/// A text in lines that are no wider, broken at spaces.
fn wrapped(text: &str, width: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a line");
        if !line.is_empty() && Svg::wide(line) + Svg::wide(word) + CHARACTER > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linear red, green and blue.
    fn linear(color: &str) -> [f64; 3] {
        [1, 3, 5].map(|i| {
            let x = f64::from(u8::from_str_radix(&color[i..i + 2], 16).expect("hexadecimal")) / 255.0;
            if x <= 0.04045 { x / 12.92 } else { ((x + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn times(m: &[[f64; 3]; 3], v: [f64; 3]) -> [f64; 3] {
        m.map(|row| row.iter().zip(v).map(|(a, b)| a * b).sum())
    }

    /// Of linear red, green and blue the place in CIE L*a*b*.
    fn lab(v: [f64; 3]) -> [f64; 3] {
        let m = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]];
        let f = |t: f64| if t > 0.008856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
        let [x, y, z] = times(&m, v);
        let [x, y, z] = [f(x / 0.9505), f(y), f(z / 1.089)];
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    /// How far colours are apart, for the least of: all cones, and one kind of cones missing (Machado, Oliveira, Fernandes, 2009).
    fn apart(a: &str, b: &str) -> f64 {
        let seen = [
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
            [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
            [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
        ];
        let distance = |m: &[[f64; 3]; 3]| {
            let [a, b] = [a, b].map(|c| lab(times(m, linear(c)).map(|x| x.clamp(0.0, 1.0))));
            a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
        };
        seen.iter().map(distance).fold(f64::INFINITY, f64::min)
    }

    /// A just noticeable difference is 2.3.
    #[test]
    fn pictures_have_whole_pixels() {
        let text = Svg::new(1098.8, 125.3, "title").done();
        assert!(text.contains("width=\"1099\" height=\"126\""), "{text}");
    }

    #[test]
    fn tints_are_told_apart_by_all() {
        let colors = [&TINTS[..], &["#ffffff", BAD]].concat();
        for (i, a) in colors.iter().enumerate() {
            for b in &colors[..i] {
                let least = if [*a, *b].contains(&"#ffffff") { 5.0 } else { 12.0 };
                assert!(apart(a, b) > least, "{a} and {b}: {}", apart(a, b));
            }
        }
        for (i, a) in TINTS.iter().enumerate() {
            let b = TINTS[(i + 1) % TINTS.len()];
            assert!(apart(a, b) > 25.0, "{a} and {b} follow one another: {}", apart(a, b));
            let [dark, light] =
                [INK, a].map(|c| linear(c).iter().zip([0.2126, 0.7152, 0.0722]).map(|(x, y)| x * y).sum::<f64>());
            assert!((light + 0.05) / (dark + 0.05) > 6.5, "text on {a}");
        }
    }

    /// Long titles take several lines above, and legend and notes make the picture higher.
    #[test]
    fn titles_break_and_legends_have_room() {
        let plain = Svg::new(300.0, 100.0, "a title").done();
        assert!(plain.contains("viewBox=\"0 0 300 100\""), "{plain}");
        let mut svg = Svg::new(300.0, 100.0, &"several words ".repeat(20));
        svg.key(Key::Cell(TINTS[0]), "a cell");
        svg.note("why");
        let svg = svg.done();
        assert!(svg.contains("viewBox=\"0 -32 ") && svg.contains(" height=\"177\""), "{svg}");
        assert!(svg.contains(">a cell<") && svg.contains(">why<"), "{svg}");
    }
}
