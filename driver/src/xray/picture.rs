//! A picture: what it is called, where it hangs, and its steps.

use serde::Serialize;
use tilec_ir::diag::Span;

/// The room of the page that a picture hangs in.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Room {
    /// Register tiles.
    Pictures,
    /// Shared memory by banks, global memory by sectors, the way of an element.
    Memory,
    /// The pipeline, slots of channels, the order of the grid.
    Time,
    /// Registers, shared memory, occupancy, the roofline.
    Budget,
}

/// A picture.
#[derive(Clone, Debug, Serialize)]
pub struct Picture {
    /// Where it hangs.
    pub room: Room,
    /// Its name: that of what it shows, after that of the kernel and a dot where there are several kernels.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The line of the source that it is about; 0: none.
    pub line: usize,
    /// The picture; of one with several steps none: these are it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub svg: String,
    /// The steps; none: there is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<String>,
    /// The place that it is about.
    #[serde(skip)]
    pub(super) span: Span,
}

impl Picture {
    /// A picture of nothing in the source, without a title.
    pub(super) fn new(room: Room, name: String, svg: String) -> Picture {
        Picture { room, name, title: String::new(), line: 0, svg, frames: Vec::new(), span: Span::default() }
    }

    /// All steps under one another, as one picture that a document takes.
    pub fn whole(&self) -> String {
        if self.frames.is_empty() {
            return self.svg.clone();
        }
        stacked(&self.frames)
    }
}

/// Pictures under one another, each of whose first line says its size.
fn stacked(frames: &[String]) -> String {
    let number = |svg: &str, name: &str| -> f64 {
        let rest = svg.split_once(&format!(" {name}=\"")).map_or("", |(_, rest)| rest);
        rest.split('"').next().and_then(|n| n.parse().ok()).unwrap_or(0.0)
    };
    let width = frames.iter().map(|f| number(f, "width")).fold(0.0, f64::max);
    let height: f64 = frames.iter().map(|f| number(f, "height")).sum();
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\">\n"
    );
    let mut y = 0.0;
    for frame in frames {
        // A picture within a picture begins where it is told.
        out.push_str(&frame.replacen("<svg ", &format!("<svg y=\"{y}\" "), 1));
        y += number(frame, "height");
    }
    out.push_str("</svg>\n");
    out
}
