//! Loops of a persistent grid whose iterations, of all blocks together, have different tiles.
//!
//! ```text
//! grid (cta: min(rows * columns_in_all, 132))
//! for tile in cta..rows * columns_in_all step 132 {
//!     let strip = tile / (rows * 8)
//!     let place = tile % (rows * 8)
//!     let columns = max(1, min(8, columns_in_all - strip * 8))
//!     let i = min(place / columns, rows - 1)
//!     let j = min(strip * 8 + place % columns, columns_in_all - 1)
//! ```
//!
//! Blocks begin at different numbers below the step, so no number is that of two iterations. A strip has
//! `rows * columns` numbers below the end, so `place / columns` is below `rows`. Two numbers of one strip then differ in
//! the quotient or the remainder of `place`, and two strips have no column in common.

use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::kernel::{ExprData, Kernel, StmtData};
use tilec_ir::ops::Op;
use tilec_ir::typing::{let_init, same_product};

/// The grid index at which such a loop begins, and the names of the row and the column of its tiles.
pub(super) struct DistinctTiles {
    pub(super) block: Value,
    pub(super) names: [Value; 2],
}

/// What makes a loop one of distinct tiles; `None`: it is not known to be one.
pub(super) fn of_loop(k: &Kernel, s: Stmt) -> Option<DistinctTiles> {
    let StmtData::For { var: tile, start, end, step, cond: None, next: None, body, .. } = k.stmts[s] else {
        return None;
    };
    let step = k.as_int(step)?;
    let block = name(k, start)?;
    let axis = k.grid.iter().find(|axis| axis.index == block)?;
    let at_most = |e: Expr| k.as_int(e).is_some_and(|n| n <= step);
    let few = at_most(axis.extent) || operands(k, axis.extent, Op::Min).is_some_and(|[a, b]| at_most(a) || at_most(b));
    let named: Vec<Value> = k.blocks[body]
        .iter()
        .filter_map(|&s| match k.stmts[s] {
            StmtData::Let { value, .. } => Some(value),
            _ => None,
        })
        .collect();
    let form = Form { k, tile, end };
    let row = named.iter().copied().find_map(|v| Some((v, form.row(v)?)))?;
    let column = named.iter().copied().find(|&v| form.is_column(v, &row.1))?;
    few.then_some(DistinctTiles { block, names: [row.0, column] })
}

/// The number of a tile, and the end of the loop over tiles.
struct Form<'k> {
    k: &'k Kernel,
    tile: Value,
    end: Expr,
}

/// How the row of a tile is computed.
struct Row {
    place: Value,
    columns: Value,
    rows: Expr,
}

impl Form<'_> {
    /// `min(place / columns, rows - 1)`
    fn row(&self, v: Value) -> Option<Row> {
        let k = self.k;
        let [quotient, last] = operands(k, let_init(k, v)?, Op::Min)?;
        let ([place, columns], [rows, one]) = (operands(k, quotient, Op::Div)?, operands(k, last, Op::Sub)?);
        let (place, columns) = (name(k, place)?, name(k, columns)?);
        (k.as_int(one) == Some(1)).then_some(Row { place, columns, rows: unless_empty(k, rows) })
    }

    /// Whether `v` is `min(strip * width + place % columns, all - 1)`, where the other names are as they have to be.
    fn is_column(&self, v: Value, row: &Row) -> bool {
        self.column(v, row).is_some()
    }

    fn column(&self, v: Value, row: &Row) -> Option<()> {
        let k = self.k;
        let [sum, last] = operands(k, let_init(k, v)?, Op::Min)?;
        let ([first, within], [all, one]) = (operands(k, sum, Op::Add)?, operands(k, last, Op::Sub)?);
        let all = unless_empty(k, all);
        let [place, columns] = operands(k, within, Op::Rem)?;
        let (strip, width) = self.times(first)?;
        let same = name(k, place)? == row.place && name(k, columns)? == row.columns && k.as_int(one) == Some(1);
        // columns = max(1, min(width, all - strip * width))
        let [one, fewer] = operands(k, let_init(k, row.columns)?, Op::Max)?;
        let [most, left] = operands(k, fewer, Op::Min)?;
        let [whole, begun] = operands(k, left, Op::Sub)?;
        let narrow = k.as_int(one) == Some(1)
            && k.as_int(most) == Some(width)
            && same_product(k, whole, all)
            && self.times(begun)? == (strip, width);
        // strip = tile / numbers, place = tile % numbers
        let [number, by] = operands(k, let_init(k, strip)?, Op::Div)?;
        let [other, modulus] = operands(k, let_init(k, row.place)?, Op::Rem)?;
        let numbers = name(k, number)? == self.tile
            && name(k, other)? == self.tile
            && self.are_of_strip(by, row.rows, width)
            && self.are_of_strip(modulus, row.rows, width);
        (same && narrow && numbers && self.ends_with(row.rows, all)).then_some(())
    }

    /// The name and the factor of `name * factor`.
    fn times(&self, e: Expr) -> Option<(Value, i64)> {
        match operands(self.k, e, Op::Mul) {
            Some([v, by]) => Some((name(self.k, v)?, self.k.as_int(by)?)),
            None => Some((name(self.k, e)?, 1)),
        }
    }

    /// Whether `e` is `rows * width`, or at least 1.
    fn are_of_strip(&self, e: Expr, rows: Expr, width: i64) -> bool {
        let k = self.k;
        if let Some([one, more]) = operands(k, e, Op::Max) {
            return k.as_int(one) == Some(1) && self.are_of_strip(more, rows, width);
        }
        match operands(k, e, Op::Mul) {
            _ if width == 1 => same_product(k, e, rows),
            Some([a, by]) => k.as_int(by) == Some(width) && same_product(k, a, rows),
            None => false,
        }
    }

    /// Whether the loop ends at `rows * all`, or before.
    fn ends_with(&self, rows: Expr, all: Expr) -> bool {
        let k = self.k;
        let is_all =
            |e: Expr| operands(k, e, Op::Mul).is_some_and(|[a, b]| same_product(k, a, rows) && same_product(k, b, all));
        is_all(self.end) || operands(k, self.end, Op::Min).is_some_and(|[a, b]| is_all(a) || is_all(b))
    }
}

/// `n` of `max(1, n)`: they are equal unless there are no tiles.
fn unless_empty(k: &Kernel, e: Expr) -> Expr {
    operands(k, e, Op::Max).filter(|&[one, _]| k.as_int(one) == Some(1)).map_or(e, |[_, more]| more)
}

fn name(k: &Kernel, e: Expr) -> Option<Value> {
    match k.exprs[e] {
        ExprData::Ref(v) => Some(v),
        _ => None,
    }
}

/// The operands of an operation of two.
fn operands(k: &Kernel, e: Expr, of: Op) -> Option<[Expr; 2]> {
    match &k.exprs[e] {
        ExprData::Op { op, args } if *op == of => args.as_slice().try_into().ok(),
        _ => None,
    }
}
