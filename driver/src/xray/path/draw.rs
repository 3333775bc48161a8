//! The way of an element as a picture: boxes in the order in which it goes, and arrows.

use super::{Link, Path, Way, element};
use crate::compile::{Compiled, CompiledKernel};
use crate::xray::picture::{Picture, Room};
use crate::xray::svg::{Anchor, INK, Key, Svg, TINTS};
use tilec_ir::diag::Span;
use tilec_ir::kernel::ValueDef;

/// Size of a box, and the space between two.
const BOX: (f64, f64) = (780.0, 36.0);
const GAP: f64 = 18.0;
/// Where boxes begin, and how far those of a branch are moved in.
const LEFT: f64 = 124.0;
const BRANCH: f64 = 26.0;
const TOP: f64 = 28.0;

/// Pictures of the ways of elements: one of each tensor that a kernel loads.
pub(in crate::xray) fn pictures(program: &Compiled, kernel: &CompiledKernel, prefix: &str) -> Vec<Picture> {
    let k = &kernel.tile.specialized;
    let mut out = Vec::new();
    for (v, value) in k.values.iter() {
        let ValueDef::Tensor(t) = &value.def else { continue };
        // The last two dimensions somewhere in the first tile, and the first place along those in front.
        let rank = t.shape.len();
        let coords: Vec<u64> = (0..rank)
            .map(|d| if t.repeats.contains(&d) { 0 } else { [3, 5].get(d + 2 - rank.min(d + 2)).copied().unwrap_or(0) })
            .collect();
        let mut way = Way::new(program, kernel);
        way.of_tensor(v, &coords);
        if way.path.steps.len() > 2 {
            let name = format!("{prefix}path-{}", value.name);
            out.push(picture(name, &element(&value.name, &coords), &way.path, value.span));
        }
    }
    out
}

/// The way of one element as a picture.
pub(in crate::xray) fn picture(name: String, what: &str, path: &Path, span: Span) -> Picture {
    let back = path.links.iter().flatten().any(|link| link.back);
    let forth = path.links.iter().flatten().any(|link| !link.back);
    let title = match (back, forth) {
        (true, true) => format!("Where {what} comes from, and what reads it"),
        (true, false) => {
            format!("Where {what} comes from: from the tensors that it is made of (top) to its store (bottom)")
        }
        (false, _) => format!("The way of {what} from global memory to where it ends"),
    };
    let count = path.steps.len();
    let mut svg = Svg::new(LEFT + BOX.0 + 12.0, TOP + count as f64 * (BOX.1 + GAP), &title);
    // What an element comes from stands above it.
    let turned = back && !forth;
    let top = |step: usize| TOP + if turned { count - 1 - step } else { step } as f64 * (BOX.1 + GAP);
    let depths = depths(path);
    let left = |step: usize| LEFT + depths[step] as f64 * BRANCH;
    for (i, step) in path.steps.iter().enumerate() {
        let (x, y) = (left(i), top(i));
        let wide = LEFT + BOX.0 - x;
        svg.colored(LEFT - 8.0, y + 22.0, Anchor::End, "#555555", step.at);
        svg.rect((x, y), (wide, BOX.1), tint(step.at));
        svg.text(x + 6.0, y + 14.0, Anchor::Start, &cut(&step.what, wide));
        svg.colored(x + 6.0, y + 29.0, Anchor::Start, "#333333", &cut(&step.text, wide));
    }
    for (i, link) in path.links.iter().enumerate() {
        let Some(Link { step, back }) = *link else { continue };
        // Along the rail of the one that it hangs on: straight between boxes of one depth, else around a corner.
        let rail = left(step) + 12.0;
        let above = top(step) < top(i);
        let mut points = vec![(rail, if above { top(step) + BOX.1 } else { top(step) })];
        if depths[step] == depths[i] {
            points.push((rail, if above { top(i) } else { top(i) + BOX.1 }));
        } else {
            points.extend([(rail, top(i) + BOX.1 / 2.0), (left(i), top(i) + BOX.1 / 2.0)]);
        }
        if back {
            points.reverse();
        }
        svg.arrow(&points, INK);
    }
    for (at, text) in [
        ("global memory", "global memory"),
        ("shared memory", "shared memory"),
        ("registers", "registers"),
        ("product", "a product or another computation"),
        ("copy", "a copy"),
    ] {
        svg.key(Key::Cell(tint(at)), text);
    }
    svg.note("Arrows go with the data. A box has the statement or the place, and below it where exactly and by what.");
    if count == super::MOST {
        svg.note(format!("The first {count} steps are shown."));
    }
    Picture { title, span, ..Picture::new(Room::Memory, name, svg.done()) }
}

/// How far in each step stands: of those that hang on one step the last stands below it, and the others are moved in.
fn depths(path: &Path) -> Vec<usize> {
    let mut out: Vec<usize> = Vec::new();
    for (i, link) in path.links.iter().enumerate() {
        let depth = link.map_or(0, |link| {
            let later = path.links[i + 1..].iter().flatten().any(|other| other.step == link.step);
            out[link.step] + usize::from(later)
        });
        out.push(depth);
    }
    out
}

fn tint(at: &str) -> &'static str {
    match at {
        "global memory" | "result" => TINTS[4],
        "shared memory" => TINTS[5],
        "registers" => TINTS[2],
        "product" | "computed" => TINTS[1],
        _ => "#ffffff",
    }
}

/// A text that fits a box of this width.
fn cut(text: &str, wide: f64) -> String {
    let most = ((wide - 14.0) / Svg::wide("m")) as usize;
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => format!("{} ...", text.chars().take(most.saturating_sub(4)).collect::<String>()),
    }
}
