//! Padding: the part of a launch's work that is beyond the edges of its tensors, because tiles do not divide sizes.

use super::copied_elements::Windows;
use super::work::{Bound, Env, Move, Product, Region, Work};
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Value};
use tilec_ir::kernel::{ExprData, StmtData, ValueDef};
use tilec_ir::names::Parts;
use tilec_ir::typing::resolve_view;

/// The part of the work of a launch that is padding.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Padding {
    /// Its share, 0 to 1: of the multiply-adds of products; without products, of the elements that copies move.
    pub share: f64,
    /// Whether products are counted.
    pub of_products: bool,
    /// The dimensions along which tiles hang over, most padding first.
    pub edges: Vec<Edge>,
    /// Windows that begin where data say: how much of them is padding is not known, and they count as none.
    pub by_data: Vec<ByData>,
}

/// A window along a dimension that begins where data say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ByData {
    /// The copy.
    pub span: Span,
    /// The tensor.
    pub tensor: String,
    /// Elements of a window.
    pub tile: u64,
}

/// A dimension along which tiles hang over.
#[derive(Clone, PartialEq, Debug)]
pub struct Edge {
    /// The copy.
    pub span: Span,
    /// The tensor.
    pub tensor: String,
    /// The grid index or loop variable with which its windows move; `None`: there is one window.
    pub index: Option<String>,
    /// Elements of a window.
    pub tile: u64,
    /// The compile-time parameter that this number is.
    pub parameter: Option<String>,
    /// Another number of elements computes the same: it is in the extents of no tensor and in no precondition.
    pub free: bool,
    /// The number of windows.
    pub windows: u64,
    /// Elements of the tensor that they cover.
    pub size: u64,
    /// The share of the elements of all windows that is inside of the tensor.
    pub inside: f64,
    /// If windows end before their tiles: their elements, and the compile-time parameter that decides about it.
    pub own_end: Option<(u64, Option<String>)>,
}

/// What decides that two windows are along the same dimension of the work.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Along {
    /// They move with this variable.
    Index(Value),
    /// They do not move, and are along this dimension (rows, columns, depth) of a product, or dimension of a copy.
    Dimension(usize),
}

impl Work<'_> {
    /// The part of the work that is padding.
    pub(super) fn padding(&self, env: &Env) -> Padding {
        let of_products = self.products().next().is_some();
        let (mut work, mut useful) = (0.0, 0.0);
        let mut edges: Vec<Edge> = Vec::new();
        let mut by_data: Vec<ByData> = Vec::new();
        let mut add = |amount: f64, own: Vec<(Along, Edge)>| {
            work += amount;
            useful += amount * own.iter().map(|(_, edge)| edge.inside).product::<f64>();
            let before = edges.len();
            for (_, edge) in own.into_iter().filter(|(_, edge)| edge.inside < 1.0) {
                // The windows of two loops differ only in the name of the index. Those of one product are along
                // different dimensions.
                let same = |e: &Edge| {
                    (e.tile, e.windows, e.size, &e.parameter, e.index.is_some())
                        == (edge.tile, edge.windows, edge.size, &edge.parameter, edge.index.is_some())
                        && (e.tensor == edge.tensor || e.index.is_some() && e.index == edge.index)
                };
                if !edges[..before].iter().any(same) {
                    edges.push(edge);
                }
            }
        };
        for region in &self.regions {
            let often = self.trips(env, region);
            for p in &region.products {
                let amount = often * self.elements(env, &p.shape).unwrap_or(0) as f64;
                add(amount, self.around_product(env, region, p, &mut by_data));
            }
            for m in region.moves.iter().filter(|_| !of_products) {
                let amount = often * m.elem.traffic(self.elements(env, &m.shape).unwrap_or(0) as f64);
                add(amount, self.edges(env, region, m));
                by_data.extend(self.by_data(env, region, m).map(|(_, window)| window));
            }
        }
        edges.sort_by(|a, b| a.inside.total_cmp(&b.inside));
        let share = if work > 0.0 { (1.0 - useful / work).max(0.0) } else { 0.0 };
        let mut seen: Vec<ByData> = Vec::new();
        by_data.retain(|window| {
            !seen.contains(window) && {
                seen.push(window.clone());
                true
            }
        });
        Padding { share, of_products, edges, by_data }
    }

    /// The windows of a copy along each dimension.
    fn edges(&self, env: &Env, region: &Region, m: &Move) -> Vec<(Along, Edge)> {
        let of = |(d, (&extent, bound))| {
            let tile = self.extent(env, extent)?;
            let w = self.windows(env, region, i64::try_from(tile).ok()?, bound)??;
            Some((w.index.map_or(Along::Dimension(d), Along::Index), self.edge(env, (m, bound), (extent, tile), &w)))
        };
        m.shape.iter().zip(&m.bounds).enumerate().filter_map(of).collect()
    }

    /// The windows of a copy that begin where data say, with their dimensions.
    fn by_data(&self, env: &Env, region: &Region, m: &Move) -> impl Iterator<Item = (usize, ByData)> {
        let of = |(d, (&extent, bound)): (usize, (&Expr, &Bound))| {
            let tile = self.extent(env, extent).filter(|&n| n > 1)?;
            let known = self.windows(env, region, i64::try_from(tile).ok()?, bound).is_some();
            let tensor = || self.k.values[m.tensor].name.clone();
            (!known && bound.starts.is_some())
                .then(|| (d, ByData { span: self.k.stmt_spans[m.at], tensor: tensor(), tile }))
        };
        m.shape.iter().zip(&m.bounds).enumerate().filter_map(of)
    }

    fn edge(&self, env: &Env, (m, bound): (&Move, &Bound), (extent, tile): (Expr, u64), w: &Windows) -> Edge {
        let k = self.k;
        let parameter = match k.exprs[extent] {
            ExprData::Ref(v) if matches!(k.values[v].def, ValueDef::ConstParam(_)) => Some(k.values[v].name.clone()),
            _ => None,
        };
        Edge {
            span: k.stmt_spans[m.at],
            tensor: k.values[m.tensor].name.clone(),
            index: w.index.map(|v| k.values[v].name.clone()),
            tile,
            parameter,
            free: self.is_free(extent),
            windows: u64::try_from(w.count).unwrap_or(0),
            size: u64::try_from(w.size).unwrap_or(0),
            inside: w.inside / tile as f64,
            own_end: w.length.filter(|&n| n < tile).map(|n| (n, self.length_parameter(env, bound, n))),
        }
    }

    /// The compile-time parameter in the end of a window that is the number of its elements.
    fn length_parameter(&self, env: &Env, bound: &Bound, length: u64) -> Option<String> {
        let k = self.k;
        let named = bound.ends.iter().flat_map(|&e| {
            let (mut parts, mut found) = (Parts::of(k, e), Vec::new());
            while let Some(e) = parts.take() {
                if let ExprData::Ref(v) = k.exprs[e]
                    && matches!(k.values[v].def, ValueDef::ConstParam(_))
                {
                    found.push(v);
                }
                parts.inside(e);
            }
            found
        });
        let is_length = |v: &Value| env[*v].is_some_and(|x| u64::try_from(x) == Ok(length));
        named.filter(is_length).map(|v| k.values[v].name.clone()).next()
    }

    /// Whether an extent of a tile is not prescribed: no extent of a tensor of the caller's and no precondition reads it.
    fn is_free(&self, extent: Expr) -> bool {
        let ExprData::Ref(v) = self.k.exprs[extent] else { return true };
        let tensors = self.k.values.keys().filter_map(|t| self.k.tensor_ty(t)).filter(|t| t.scratch.is_none());
        let prescribed = tensors.flat_map(|t| t.shape.iter()).chain(&self.k.requires);
        !prescribed.into_iter().any(|&e| self.reads(e, v))
    }

    /// The windows on which a product depends: along each variable the widest ones, and of windows that do not move
    /// those of its operands. Of several the fullest one counts: others may be before the start of a tensor or past its end.
    /// Into `by_data` goes what begins where data say.
    fn around_product(
        &self,
        env: &Env,
        region: &Region,
        product: &Product,
        by_data: &mut Vec<ByData>,
    ) -> Vec<(Along, Edge)> {
        let k = self.k;
        let operands = match k.stmts[product.at] {
            StmtData::Assign { src, .. } => match &k.exprs[src] {
                ExprData::Mma(mma) => [resolve_view(k, mma.a), resolve_view(k, mma.b)],
                _ => [None, None],
            },
            _ => [None, None],
        };
        // Which of rows, columns and depth a dimension of what a copy fills is.
        let role = |m: &Move, d: usize| {
            let StmtData::Copy { dst, .. } = k.stmts[m.at] else { return None };
            let filled = resolve_view(k, dst)?.base;
            let (side, view) = operands
                .iter()
                .enumerate()
                .find_map(|(i, view)| view.as_ref().filter(|view| view.base == filled).map(|view| (i, view)))?;
            let last = (d + 2).checked_sub(m.shape.len())?;
            let along = if view.transposed { 1 - last } else { last };
            Some([[0, 2], [2, 1]][side][along])
        };
        let is_around = |v: Value| region.variables.contains(&v) || k.grid.iter().any(|axis| axis.index == v);
        let mut all: Vec<(Along, Edge)> = Vec::new();
        for other in &self.regions {
            for m in &other.moves {
                let filled = self.by_data(env, other, m).filter(|(d, _)| role(m, *d).is_some());
                by_data.extend(filled.map(|(_, window)| window));
                for (along, edge) in self.edges(env, other, m) {
                    let along = match along {
                        Along::Index(v) if is_around(v) => along,
                        Along::Index(_) => continue,
                        Along::Dimension(d) => match role(m, d) {
                            Some(role) => Along::Dimension(role),
                            None => continue,
                        },
                    };
                    let fuller = |a: &Edge, b: &Edge| (a.tile, a.inside) > (b.tile, b.inside);
                    match all.iter_mut().find(|(known, _)| *known == along) {
                        Some((_, known)) if fuller(&edge, known) => *known = edge,
                        Some(_) => {}
                        None => all.push((along, edge)),
                    }
                }
            }
        }
        all
    }
}
