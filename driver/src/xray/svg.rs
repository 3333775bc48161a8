//! What pictures are drawn with: rectangles, lines and text of one size, on white, so that they are the same on paper.

use std::fmt::Write as _;

/// Light tints of the colours by Okabe and Ito, which colour-blind people tell apart. A number or word always says the same.
pub(super) const TINTS: [&str; 8] =
    ["#cfe6f5", "#fde7c2", "#c5ebdd", "#f9d9c4", "#f0dbe8", "#fbf6c4", "#dcecf7", "#e6e6e6"];
/// What is wrong; it has a sign beside.
pub(super) const BAD: &str = "#d55e00";
/// What is measured or chosen.
pub(super) const STRONG: &str = "#0072b2";

/// What is written.
pub(super) const INK: &str = "#1a1a1a";

/// Where a text stands beside its point.
#[derive(Copy, Clone)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture that is being drawn.
pub(super) struct Svg {
    width: f64,
    height: f64,
    title: String,
    /// Rectangles and lines, below.
    shapes: String,
    /// Rectangles of one colour that follow one another, which become one shape: the colour, and their outlines.
    open: (String, String),
    /// Texts, above: those that stand around their point, and the others.
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
    /// An empty picture of this size, in pixels, with its title in the first line.
    pub(super) fn new(width: f64, height: f64, title: &str) -> Svg {
        let mut svg = Svg {
            width,
            height,
            title: escaped(title),
            shapes: String::new(),
            open: Default::default(),
            centred: String::new(),
            texts: String::new(),
            right: 0.0,
        };
        svg.text(4.0, 14.0, Anchor::Start, title);
        svg
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

    /// The picture.
    pub(super) fn done(mut self) -> String {
        self.close();
        let (w, h) = (short(self.width.max(self.right.ceil())), short(self.height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" \
             font-family=\"monospace\" font-size=\"11\" role=\"img\">\n<title>{}</title>\n\
             <rect width=\"{w}\" height=\"{h}\" fill=\"#ffffff\"/>\n<g stroke=\"#888888\">\n{}</g>\n\
             <g fill=\"{INK}\" text-anchor=\"middle\">\n{}</g>\n<g fill=\"{INK}\">\n{}</g>\n</svg>\n",
            self.title, self.shapes, self.centred, self.texts
        )
    }
}
