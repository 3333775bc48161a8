//! Loops that visit a different tile in every iteration.
//!
//! ```text
//! for tile in ..R * C {                                   // or less
//!     let strip = tile / (R * g)
//!     let place = tile % (R * g)
//!     let columns = max(1, min(g, C - strip * g))
//!     let row = min(place / columns, R - 1)               // or `min(..) * c + m`, where `m` is the block's
//!     let col = min(strip * g + place % columns, C - 1)
//! ```
//!
//! As `tile < R * C`, `strip * g < C`, so `columns` is the smaller of `g` and `C - strip * g`. Then
//! `place < R * columns`: in full strips because `place < R * g`, in the last one because
//! `tile - strip * R * g < R * (C - strip * g)`. So `place / columns < R`, and neither `min` changes anything. `col`
//! determines `strip` (`place % columns < g`) and `place % columns`, `row` determines `place / columns`. So they
//! determine `place`, and with it `tile`.
//!
//! Further axes are in front: `let z = min(tile / (R * C), Z - 1)`, and `tile % (R * C)` replaces `tile`, which is
//! always less than `R * C`.
//!
//! Tiles may be distributed from both ends:
//!
//! ```text
//! for unit in cta..tiles step G {
//!     let front = unit / (2 * G) * G + unit % G
//!     let tile = select(unit / G % 2 == 0, front, max(0, tiles - 1 - front))
//! ```
//!
//! Units of even rounds take the first tiles, one after the other, and units of odd rounds the last ones. There are as
//! many units as tiles, so no two units have the same tile, and `max` changes nothing.
//!
//! If blocks share tiles along the reduction (stream-K), a loop over units has
//!
//! ```text
//! let parts = max(min(ceildiv(to, steps) - first, ..), 0)             // `to` is at most `shared * steps`
//! for unit in ..parts + ceildiv(max(tiles - (shared + worker), 0), workers) {
//!     let tile = max(min(select(unit < parts, first + unit, shared + worker + (unit - parts) * workers), tiles - 1), 0)
//! ```
//!
//! Units below `parts` have tiles below `ceildiv(to, steps) <= shared`, which is at most the number of tiles. The
//! others have different tiles from `shared` on, below `tiles`. So `max` and `min` change nothing, and no two units
//! have the same tile.

use super::value_numbers::{Form, Forms};
use tilec_ir::entities::{Block, Stmt};
use tilec_ir::kernel::StmtData;
use tilec_ir::ops::Op;

/// Indices of which at least one differs by at least the given number between any two iterations.
pub(super) type Digits = Vec<(Form, i64)>;

/// Alternative sets of indices that distinguish the iterations of a loop.
pub(super) fn digits(forms: &mut Forms<'_>, s: Stmt) -> Vec<Digits> {
    let StmtData::For { var, end, step, body, .. } = forms.k.stmts[s] else { unreachable!("it is a loop") };
    let by = forms.k.as_int(step).unwrap_or(1).max(1);
    let (own, end) = (forms.name(var), forms.of(end));
    let lets = lets(forms, body);
    let mut ways = vec![vec![(own, by)]];
    let tiles = both_ends(forms, (own, by), end, &lets).or_else(|| shared(forms, own, end, &lets));
    let tile = tiles.unwrap_or((own, end));
    ways.extend(tiles.map(|(tile, _)| vec![(tile, 1)]));
    ways.extend(rasterised(forms, tile, &lets));
    ways
}

/// The values of the names in a block.
fn lets(forms: &mut Forms<'_>, body: Block) -> Vec<Form> {
    let k = forms.k;
    let named = k.blocks[body].iter().filter_map(|&s| match k.stmts[s] {
        StmtData::Let { value, .. } => Some(forms.name(value)),
        _ => None,
    });
    named.collect()
}

/// The unit without the block's rank in a cluster: `x` of `x * c + m`.
fn unit(forms: &Forms<'_>, form: Form) -> Form {
    let first = forms.args(form, Op::Add).map_or(form, |[first, _]| first);
    match forms.args(first, Op::Mul) {
        Some([x, c]) if forms.as_int(c).is_some_and(|c| c > 0) => x,
        _ => first,
    }
}

/// `n` of `n - 1`.
fn extent(forms: &mut Forms<'_>, last: Form) -> Option<Form> {
    if let Some(n) = forms.as_int(last) {
        return n.checked_add(1).map(|n| forms.int(n));
    }
    let [n, one] = forms.args(last, Op::Sub)?;
    (forms.as_int(one) == Some(1)).then_some(n)
}

/// `form - 1`.
fn last(forms: &mut Forms<'_>, form: Form) -> Form {
    let one = forms.int(1);
    forms.binary(Op::Sub, form, one)
}

/// The indices of a tile number that is below `end`.
fn rasterised(forms: &mut Forms<'_>, (mut tile, mut end): (Form, Form), lets: &[Form]) -> Option<Digits> {
    let mut digits = Digits::new();
    // Further axes, the last one first.
    for &form in lets {
        if let Some(inner) = layer(forms, (tile, end), form) {
            digits.push((form, 1));
            tile = forms.binary(Op::Rem, tile, inner);
            end = inner;
        }
    }
    let [row, col] = lets.iter().find_map(|&form| matrix(forms, (tile, end), unit(forms, form)))?;
    digits.extend([(row, 1), (col, 1)]);
    Some(digits)
}

/// The tile number within a layer, if `form` is the index of the layer.
fn layer(forms: &mut Forms<'_>, (tile, end): (Form, Form), form: Form) -> Option<Form> {
    let [within, most] = forms.args(form, Op::Min)?;
    let most = forms.as_int(most)?;
    let [quotient, bound] = forms.args(within, Op::Min)?;
    let inner = if quotient == tile {
        forms.int(1)
    } else {
        let [t, inner] = forms.args(quotient, Op::Div)?;
        (t == tile).then_some(inner)?
    };
    let layers = extent(forms, bound)?;
    let all = forms.binary(Op::Mul, inner, layers);
    (forms.at_most(end, all) && limited(forms, layers, most.checked_add(1)?)).then_some(inner)
}

/// Whether an extent is at most `most` in every launch.
fn limited(forms: &mut Forms<'_>, form: Form, most: i64) -> bool {
    let k = forms.k;
    forms.as_int(form).is_some_and(|n| n <= most)
        || k.requires.iter().any(|&e| {
            let required = forms.of(e);
            let sides = forms.args::<2>(required, Op::Le);
            sides.is_some_and(|[x, n]| x == form && forms.as_int(n).is_some_and(|n| n <= most))
        })
}

/// Row and column of a tile, if `row` is its row.
fn matrix(forms: &mut Forms<'_>, (tile, end): (Form, Form), row: Form) -> Option<[Form; 2]> {
    let [quotient, bound] = forms.args(row, Op::Min)?;
    let rows = extent(forms, bound)?;
    let [own, columns] = forms.args(quotient, Op::Div)?;
    let [_, fewer] = forms.args(columns, Op::Max)?;
    let [g, left] = forms.args(fewer, Op::Min)?;
    forms.as_int(g).filter(|&g| g > 0)?;
    let [cols, _] = forms.args(left, Op::Sub)?;
    let all = forms.binary(Op::Mul, rows, cols);
    if !forms.at_most(end, all) {
        return None;
    }
    // The expressions of the module's documentation, for these extents and strips of `g` columns.
    let mut each = forms.binary(Op::Mul, rows, g);
    // A strip is clamped to the number of tiles: a larger strip has all tiles.
    if let Some([_, by]) = forms.args(own, Op::Rem)
        && let Some([whole, most]) = forms.args(by, Op::Min)
        && whole == each
        && forms.at_most(end, most)
    {
        each = by;
    }
    let strip = forms.binary(Op::Div, tile, each);
    let place = forms.binary(Op::Rem, tile, each);
    let before = forms.binary(Op::Mul, strip, g);
    let left = forms.binary(Op::Sub, cols, before);
    let fewer = forms.binary(Op::Min, g, left);
    let one = forms.int(1);
    let columns = forms.binary(Op::Max, one, fewer);
    let quotient = forms.binary(Op::Div, place, columns);
    let bound = last(forms, rows);
    let expected = forms.binary(Op::Min, quotient, bound);
    let within = forms.binary(Op::Rem, place, columns);
    let at = forms.binary(Op::Add, before, within);
    let bound = last(forms, cols);
    let col = forms.binary(Op::Min, at, bound);
    (row == expected).then_some([row, col])
}

/// The tile of a unit, and the number of tiles, if tiles are distributed from both ends.
fn both_ends(forms: &mut Forms<'_>, (unit, by): (Form, i64), end: Form, lets: &[Form]) -> Option<(Form, Form)> {
    let (groups, pairs) = (forms.int(by), forms.int(by.checked_mul(2)?));
    let turn = forms.binary(Op::Div, unit, groups);
    let place = forms.binary(Op::Rem, unit, groups);
    let pair = forms.binary(Op::Div, unit, pairs);
    let before = forms.binary(Op::Mul, pair, groups);
    let front = forms.binary(Op::Add, before, place);
    let last = last(forms, end);
    let back = forms.binary(Op::Sub, last, front);
    let (zero, two) = (forms.int(0), forms.int(2));
    let back = forms.binary(Op::Max, zero, back);
    let odd = forms.binary(Op::Rem, turn, two);
    let even = forms.binary(Op::Eq, odd, zero);
    let expected = forms.op(Op::Select, vec![even, front, back]);
    lets.contains(&expected).then_some((expected, end))
}

/// The tile of a unit, and the number of tiles, if blocks share tiles.
fn shared(forms: &mut Forms<'_>, unit: Form, end: Form, lets: &[Form]) -> Option<(Form, Form)> {
    lets.iter().find_map(|&tile| shared_tile(forms, (unit, end), tile).map(|tiles| (tile, tiles)))
}

fn shared_tile(forms: &mut Forms<'_>, (unit, end): (Form, Form), tile: Form) -> Option<Form> {
    let zero = forms.int(0);
    let above_zero =
        |forms: &Forms<'_>, form: Form| forms.args(form, Op::Max).and_then(|[x, least]| (least == zero).then_some(x));
    let [chosen, bound] = forms.args(above_zero(forms, tile)?, Op::Min)?;
    let tiles = extent(forms, bound)?;
    let [_, part, whole] = forms.args(chosen, Op::Select)?;
    let [first, _] = forms.args(part, Op::Add)?;
    let [base, step] = forms.args(whole, Op::Add)?;
    let [shared, worker] = forms.args(base, Op::Add)?;
    let [behind, workers] = forms.args(step, Op::Mul)?;
    let [_, parts] = forms.args(behind, Op::Sub)?;
    above_zero(forms, worker)?;
    // The parts end within the shared tiles, which are at most all tiles.
    let [count, _] = forms.args(above_zero(forms, parts)?, Op::Min)?;
    let [up, start] = forms.args(count, Op::Sub)?;
    let one = forms.int(1);
    let [to, steps] = forms.args(up, Op::CeilDiv).unwrap_or([up, one]);
    let work = forms.binary(Op::Mul, shared, steps);
    let [_, rest, none] = forms.args(shared, Op::Select)?;
    let left = above_zero(forms, rest).and_then(|least| forms.args(least, Op::Min)).map(|[left, _]| left);
    let rounds = forms.binary(Op::Div, tiles, workers);
    let done = forms.binary(Op::Mul, rounds, workers);
    let over = forms.binary(Op::Sub, tiles, done);
    let within = start == first
        && forms.at_most(to, work)
        && forms.positive(steps)
        && none == zero
        && (left == Some(over) || forms.at_most(rest, tiles))
        && forms.positive(tiles)
        && forms.positive(workers);
    // There are at most as many units as tiles.
    let left = forms.binary(Op::Sub, tiles, base);
    let left = forms.binary(Op::Max, left, zero);
    let left = forms.binary(Op::CeilDiv, left, workers);
    let units = forms.binary(Op::Add, parts, left);
    // The tile itself.
    let below = forms.binary(Op::Lt, unit, parts);
    let part = forms.binary(Op::Add, first, unit);
    let behind = forms.binary(Op::Sub, unit, parts);
    let step = forms.binary(Op::Mul, behind, workers);
    let whole = forms.binary(Op::Add, base, step);
    let expected = forms.op(Op::Select, vec![below, part, whole]);
    (within && forms.at_most(end, units) && chosen == expected).then_some(tiles)
}
