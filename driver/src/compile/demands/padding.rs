//! Work beyond the edges of tensors, because tiles do not divide sizes: how much, along which dimensions, and what would be less.

use super::code::{Broken, compared};
use super::way_out::{By, WayOut};
use tilec_ir::demands::What;
use tilec_ir::diag::counted;
use tilec_passes::choose::{ByData, Edge, Padding, Prediction};

/// The smallest tile that is advised.
const LEAST_TILE: u64 = 8;

/// Of the share of padding along a dimension, the part that another tile may have to be advised.
const LESS: f64 = 0.5;

/// A demand on the share of padding.
pub(super) fn padding(p: &Prediction, what: What) -> Option<Broken> {
    let own = &p.padding;
    let broken = compared(what, own.share, |_| format!("{} are padding", counted_work(own)))?;
    let places = own.edges.iter().map(|edge| (edge.span, in_words(edge))).collect();
    let change = if let What::AtMost(..) = what {
        own.edges.iter().map(|e| WayOut::new(other_tile(e), By::Parameters)).collect()
    } else {
        Vec::new()
    };
    Some(Broken { places, change, ..broken })
}

/// That windows begin where data say, so that no padding of theirs is counted. `None`: there are none, or what is
/// counted is too much already.
pub(super) fn by_data(p: &Prediction, what: What) -> Option<Broken> {
    let own = &p.padding;
    let first = own.by_data.first()?;
    if let What::AtMost(_, most) = what
        && own.share > most
    {
        return None;
    }
    let message = windows_by_data(first);
    let at = |w: &ByData| (w.span, format!("windows of {} of `{}`", counted(w.tile as usize, "element"), w.tensor));
    Some(Broken { places: own.by_data.iter().map(at).collect(), ..Broken::new(message) })
}

/// That windows begin where data say.
pub(crate) fn windows_by_data(first: &ByData) -> String {
    format!(
        "windows of `{}` begin where data say, so how many of their {} belong together is not known",
        first.tensor,
        counted(first.tile as usize, "element")
    )
}

/// `12.5 % of the multiply-adds of products`.
pub(crate) fn counted_work(p: &Padding) -> String {
    let of = if p.of_products { "the multiply-adds of products" } else { "the elements that copies move" };
    format!("{} of {of}", percent(p.share))
}

/// A share that is not 0 has a digit.
fn percent(share: f64) -> String {
    let x = 100.0 * share;
    if x >= 10.0 { format!("{x:.0} %") } else { format!("{x:.1} %") }
}

/// How tiles hang over an edge.
pub(crate) fn in_words(edge: &Edge) -> String {
    let tile = counted(edge.tile as usize, "element");
    let called = edge.parameter.as_ref().map_or(String::new(), |name| format!(" (`{name}`)"));
    let padding = percent(1.0 - edge.inside);
    match &edge.index {
        Some(index) => format!(
            "along `{index}` {} of {tile}{called} {} {} of `{}`: {padding} is padding",
            counted(edge.windows as usize, "window"),
            if edge.windows == 1 { "covers" } else { "cover" },
            edge.size,
            edge.tensor
        ),
        None => {
            format!(
                "where a window of {tile}{called} has {} of `{}` in it: {padding} is padding",
                edge.size, edge.tensor
            )
        }
    }
}

/// The share of padding along an edge if its tiles have as many elements.
fn with_tile(edge: &Edge, tile: u64) -> f64 {
    let covered = edge.size.div_ceil(tile).max(1) * tile;
    1.0 - edge.size as f64 / covered as f64
}

/// Smaller tiles, the largest first.
pub(crate) fn smaller_tiles(edge: &Edge) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(edge.tile.next_power_of_two() / 2), |n| Some(n / 2)).take_while(|&n| n >= LEAST_TILE)
}

/// What has less padding along an edge.
pub(crate) fn other_tile(edge: &Edge) -> String {
    let now = 1.0 - edge.inside;
    let along = match &edge.index {
        Some(index) => format!("along `{index}`"),
        None => format!("for `{}`", edge.tensor),
    };
    if let Some((length, parameter)) = &edge.own_end {
        let fills = parameter.as_ref().map_or(String::new(), |name| format!(" (`-D {name}={}`)", edge.tile));
        return format!(
            "windows {along} end after {length} elements of a tile of {}: with as many in both{fills} there is no padding",
            edge.tile
        );
    }
    let less = smaller_tiles(edge).filter(|_| edge.free).find(|&tile| with_tile(edge, tile) <= LESS * now);
    match (less, &edge.parameter) {
        (Some(tile), name) => {
            let option = name.as_ref().map_or(String::new(), |name| format!(" (`-D {name}={tile}`)"));
            // Without a parameter somebody has to write them.
            let tried = match name {
                Some(_) => "; `tilec why` compiles them, and says which time is predicted",
                None => "",
            };
            format!(
                "tiles of {tile} elements {along}{option} have {} padding in this dimension{tried}",
                percent(with_tile(edge, tile))
            )
        }
        (None, _) if !edge.free => {
            format!(
                "extents of tensors or a `where` depend on the {} elements of tiles {along}: sizes that are multiples of {} have no padding",
                edge.tile, edge.tile
            )
        }
        (None, _) => format!(
            "no smaller tile {along} has half of the padding: sizes that are multiples of {} have none",
            edge.tile
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilec_ir::diag::Span;

    fn edge(tile: u64, size: u64) -> Edge {
        let windows = size.div_ceil(tile);
        Edge {
            span: Span::default(),
            tensor: "A".to_owned(),
            index: Some("i".to_owned()),
            tile,
            parameter: Some("BM".to_owned()),
            free: true,
            windows,
            size,
            inside: size as f64 / (windows * tile) as f64,
            own_end: None,
        }
    }

    #[test]
    fn the_largest_tile_with_half_of_the_padding_is_advised() {
        assert_eq!(
            in_words(&edge(128, 1000)),
            "along `i` 8 windows of 128 elements (`BM`) cover 1000 of `A`: 2.3 % is padding"
        );
        assert_eq!(
            other_tile(&edge(128, 1000)),
            "tiles of 16 elements along `i` (`-D BM=16`) have 0.8 % padding in this dimension; `tilec why` compiles them, and says which time is predicted"
        );
        assert!(other_tile(&edge(128, 129)).contains("tiles of 32 elements along `i` (`-D BM=32`) have 19 % padding"));
        assert!(other_tile(&edge(128, 40)).contains("tiles of 16 elements along `i` (`-D BM=16`) have 17 % padding"));
        assert!(other_tile(&edge(8, 13)).contains("sizes that are multiples of 8 have none"));
    }
}
