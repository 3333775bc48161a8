//! The way of an element as a picture: boxes in the order in which it goes, and arrows.

use super::{Link, Path, PathBuilder, element};
use crate::compile::{Compiled, CompiledKernel};
use crate::xray::picture::{Picture, Room};
use crate::xray::svg::{Anchor, INK, Key, Svg, TINTS};
use tilec_ir::diag::Span;
use tilec_ir::kernel::ValueDef;

/// Size of a box, and the space between two.
const BOX: (f64, f64) = (780.0, 36.0);
const GAP: f64 = 18.0;
/// From a line of a box to the next.
const LINE: f64 = 15.0;
/// Where boxes begin, and how far those of a branch are moved in.
const LEFT: f64 = 124.0;
const BRANCH: f64 = 26.0;
const TOP: f64 = 28.0;

/// Pictures of the ways of elements: one of each tensor that a kernel loads.
pub(in crate::xray) fn pictures(program: &Compiled, kernel: &CompiledKernel, prefix: &str) -> Vec<Picture> {
    let k = super::followed(kernel);
    let mut out = Vec::new();
    for (v, value) in k.values.iter() {
        let ValueDef::Tensor(t) = &value.def else { continue };
        // The last two dimensions somewhere in the first tile, and the first place along those in front.
        let rank = t.shape.len();
        let coords: Vec<u64> = (0..rank)
            .map(|d| (d + 2).checked_sub(rank).filter(|_| !t.repeats.contains(&d)).map_or(0, |last| [3, 5][last]))
            .collect();
        let mut way = PathBuilder::new(program, kernel);
        // A tensor that is smaller: its last element.
        let coords = way.within(v, coords);
        way.of_tensor(v, &coords);
        if way.path.steps.len() > 2 {
            let name = format!("{prefix}path-{}", value.name);
            // As the tensor is declared, without the dimensions along which it repeats.
            let declared = (0..rank).filter(|d| !t.repeats.contains(d)).map(|d| coords[d]).collect::<Vec<_>>();
            out.push(picture(name, &element(&value.name, &declared), &way.path, value.span));
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
    let path = &in_order(path);
    let count = path.steps.len();
    let depths = depths(path);
    let left = |step: usize| LEFT + depths[step] as f64 * BRANCH;
    let texts: Vec<Vec<(bool, String)>> = (0..count)
        .map(|i| {
            let (step, wide) = (&path.steps[i], LEFT + BOX.0 - left(i));
            let (what, text) = (lines(&step.what, wide), lines(&step.text, wide));
            let said = what.into_iter().map(|line| (true, line)).chain(text.into_iter().map(|line| (false, line)));
            said.collect::<Vec<_>>()
        })
        .collect();
    let height = |step: usize| BOX.1 + texts[step].len().saturating_sub(2) as f64 * LINE;
    let all: f64 = (0..count).map(|step| height(step) + GAP).sum();
    let mut svg = Svg::new(LEFT + BOX.0 + 12.0, TOP + all, &title);
    // What an element comes from is above it.
    let turned = back && !forth;
    let above = |step: usize| if turned { step + 1..count } else { 0..step };
    let top = |step: usize| TOP + above(step).map(|other| height(other) + GAP).sum::<f64>();
    for (i, step) in path.steps.iter().enumerate() {
        let (x, y) = (left(i), top(i));
        let wide = LEFT + BOX.0 - x;
        svg.colored(LEFT - 8.0, y + 22.0, Anchor::End, "#555555", step.at);
        svg.rect((x, y), (wide, height(i)), tint(step.at));
        for (n, (is_what, line)) in texts[i].iter().enumerate() {
            let color = if *is_what { INK } else { "#333333" };
            svg.colored(x + 6.0, y + 14.0 + n as f64 * LINE, Anchor::Start, color, line);
        }
    }
    for (i, link) in path.links.iter().enumerate() {
        let Some(Link { step, back }) = *link else { continue };
        // Along the rail of the one that it hangs on: straight between boxes of one depth, else around a corner.
        let rail = left(step) + 12.0;
        let above = top(step) < top(i);
        let mut points = vec![(rail, if above { top(step) + height(step) } else { top(step) })];
        if depths[step] == depths[i] {
            points.push((rail, if above { top(i) } else { top(i) + height(i) }));
        } else {
            points.extend([(rail, top(i) + height(i) / 2.0), (left(i), top(i) + height(i) / 2.0)]);
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

/// The same steps, each followed by all that hang on it: so no arrow crosses a box.
fn in_order(path: &Path) -> Path {
    let hang_on = |on: Option<usize>| (0..path.steps.len()).rev().filter(move |&i| path.links[i].map(|l| l.step) == on);
    let mut order: Vec<usize> = Vec::new();
    let mut open: Vec<usize> = hang_on(None).collect();
    while let Some(step) = open.pop() {
        order.push(step);
        open.extend(hang_on(Some(step)));
    }
    let place = |step: usize| order.iter().position(|&i| i == step).unwrap_or(0);
    let links = order.iter().map(|&i| path.links[i].map(|link| Link { step: place(link.step), ..link }));
    Path { links: links.collect(), steps: order.iter().map(|&i| path.steps[i].clone()).collect() }
}

/// How far in each step stands: of those that hang on one step the last is below it, and the others are moved in.
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

/// A text as lines that fit a box of this width.
fn lines(text: &str, wide: f64) -> Vec<String> {
    let most = ((wide - 14.0) / Svg::wide("m")) as usize;
    let mut out = vec![String::new()];
    for word in text.split(' ') {
        let line = out.last_mut().expect("it has one");
        if line.is_empty() || line.chars().count() + 1 + word.chars().count() <= most {
            line.extend((!line.is_empty()).then_some(' '));
            line.push_str(word);
        } else {
            out.push(format!("  {word}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xray::path::Step;

    /// Two reads, each of which is followed once both are found: what hangs on the first comes before the second.
    #[test]
    fn steps_that_hang_together_stand_together() {
        let step = |what: &str| Step { at: "copy", what: what.to_owned(), text: String::new(), line: 0 };
        let on = |step| Some(Link { step, back: true });
        let steps = ["store", "a", "b", "of a", "of b", "of a too"].map(step).to_vec();
        let path = in_order(&Path { steps, links: vec![None, on(0), on(0), on(1), on(2), on(1)] });
        let names: Vec<&str> = path.steps.iter().map(|s| s.what.as_str()).collect();
        assert_eq!(names, ["store", "a", "of a", "of a too", "b", "of b"]);
        assert_eq!(path.links, [None, on(0), on(1), on(1), on(0), on(4)]);
        // Between a step and the last one that hangs on it all others are further in.
        let depths = depths(&path);
        for (i, link) in path.links.iter().enumerate() {
            let Some(link) = link else { continue };
            assert!((link.step + 1..i).all(|between| depths[between] > depths[link.step]), "{depths:?}");
        }
    }

    #[test]
    fn a_long_text_goes_on_in_the_next_line() {
        let text = "byte 33594 of the block's shared memory, in slot 0: bank 12, of which the other lanes of the phase read other bytes";
        let all = lines(text, 300.0);
        assert!(all.len() > 1, "{all:?}");
        assert_eq!(all.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" "), text);
        assert_eq!(lines("short", 300.0), ["short"]);
    }
}
