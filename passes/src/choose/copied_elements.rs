//! Elements that each copy moves in a launch, times its executions: elements inside of tensors, or tiles of shared
//! memory.

use super::box_rows::BoxRows;
use super::combining::Combined;
use super::cost::Part;
use super::kept::Kept;
use super::work::{Bound, Env, Move, Region, Work};
use tilec_ir::diag::Span;
use tilec_ir::entities::{Expr, Stmt, Value};
use tilec_ir::index;
use tilec_ir::kernel::StmtData;
use tilec_ir::target::SECTOR_BYTES;

/// Traffic of copies between registers or shared memory and a tensor or buffer.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Place {
    /// The copy.
    pub span: Span,
    /// The name of the tensor or buffer.
    pub of: String,
    /// It is a tensor.
    pub global: bool,
    /// Whether it is written.
    pub store: bool,
    /// Bytes of a launch.
    pub bytes: f64,
    /// The share of them that no other load of the same iteration has in common.
    pub once: f64,
    /// The rows of its boxes, if TMA may load it.
    pub rows: Option<BoxRows>,
    /// Whether windows at the edges of the tensor have fewer elements: `bytes` is a sum of unequal windows.
    pub cut: bool,
    /// Indices from memory say where its elements are.
    pub gathered: bool,
    /// Where the next iterations find the rest of sectors that an iteration uses in part.
    pub kept: Kept,
    /// Of a dimension of several modes, runs in memory are whole sectors, or as long as the window, with these sizes.
    pub whole_runs: bool,
    /// Its atomic operations.
    pub combined: Option<Combined>,
}

impl Place {
    /// Bytes between memory and the second-level cache, if all bytes of sectors are used.
    pub(super) fn memory_bytes(&self) -> f64 {
        self.combined.map_or(self.bytes * self.once, |combined| combined.moved(self.bytes))
    }
}

/// A loop whose number of iterations depends on data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Unknown {
    /// The loop.
    pub span: Span,
    /// Whether it moves tiles.
    pub moves: bool,
}

/// Most windows along a dimension that are examined one by one.
const MANY: i64 = 1 << 20;

/// Values of an index: the first one, their number, and their distance.
struct Values {
    first: i64,
    count: i64,
    step: i64,
}

/// The windows of a copy along a dimension, over blocks and iterations.
pub(super) struct Windows {
    /// The grid index or loop variable with which they move; `None`: there is one.
    pub(super) index: Option<Value>,
    /// The number of windows.
    pub(super) count: i64,
    /// The end of the tensor or of the window, from where the first one begins.
    pub(super) size: i64,
    /// The average number of elements that are inside.
    pub(super) inside: f64,
    /// The elements of a window, if it has an end of its own.
    pub(super) length: Option<u64>,
}

/// The average number of elements of a window of `width` that are in front of `end`, over the start positions `values`;
/// none is below 0.
fn mean(values: &Values, width: i64, end: i64) -> f64 {
    // Computed in 128 bits, because sizes may be near the largest integer.
    let [first, count, step, width, end] = [values.first, values.count, values.step, width, end].map(i128::from);
    let inside = |i: i128| (end - first - i * step).clamp(0, width);
    let whole = ((end - width - first).div_euclid(step) + 1).clamp(0, count);
    let cut: i128 = (whole..count).map(inside).take_while(|&n| n > 0).sum();
    (whole * width + cut) as f64 / count as f64
}

impl Work<'_> {
    /// The traffic of each copy in a launch of `blocks` blocks. `parts`: those of a block, in the order of the regions.
    pub(super) fn places(&self, env: &Env, blocks: f64, parts: &[Part]) -> Vec<Place> {
        let k = self.k;
        let place = |at: Stmt, v: Value, global, store, bytes| {
            let (span, of) = (k.stmt_spans[at], k.values[v].name.clone());
            Place { span, of, global, store, bytes, ..Place::default() }
        };
        let mut out: Vec<Place> = Vec::new();
        for (r, region) in self.regions.iter().enumerate() {
            let often = blocks * self.trips(env, region);
            let combined = |i: usize| parts.get(r).and_then(|part| *part.combined.get(i)?);
            let moved = region.moves.iter().enumerate().map(|(i, m)| {
                let inside = self.inside(env, region, m);
                let elements = self.elements(env, &m.shape).unwrap_or(0) as f64 * inside;
                let once = if m.load { self.loaded_once(env, region, m.tensor) } else { 1.0 };
                let span = self.statement_of(m);
                let rows = self.box_rows(env, m).filter(|_| m.load && m.buffer.is_some());
                Place {
                    once,
                    span,
                    rows,
                    cut: inside < 1.0,
                    gathered: m.window.is_none(),
                    kept: parts.get(r).and_then(|part| part.kept.get(i)).copied().unwrap_or_default(),
                    whole_runs: self.has_whole_runs(env, region, m),
                    combined: combined(i),
                    ..place(m.at, m.tensor, true, !m.load, often * m.elem.traffic(elements))
                }
            });
            let accessed = region.accesses.iter().map(|a| {
                let elements = self.elements(env, &a.shape).unwrap_or(0) as f64;
                place(a.at, a.buffer, false, a.store, often * a.elem.traffic(elements))
            });
            out.extend(moved.chain(accessed));
        }
        out
    }

    /// Whether runs of a window along a dimension of several modes are whole sectors, or as long as the window, in all
    /// iterations and blocks.
    fn has_whole_runs(&self, env: &Env, region: &Region, m: &Move) -> bool {
        let whole = || {
            let along = m.window.as_ref()?.get(m.innermost?)?;
            let width = i64::try_from(self.extent(env, along.extent?)?).ok()?.min(m.elem.per(SECTOR_BYTES).into());
            let divides = |n: i64| n % width == 0;
            let terms = |&(e, times): &(Expr, i64)| times % width == 0 || self.is_multiple(env, region, e, width);
            let last = self.int(env, m.last_mode?)?;
            Some(along.step == 1 && divides(last) && divides(along.constant) && along.starts.iter().all(terms))
        };
        whole().unwrap_or(false)
    }

    /// Whether an index is a multiple of `width` in all iterations and blocks.
    fn is_multiple(&self, env: &Env, region: &Region, e: Expr, width: i64) -> bool {
        let steps = region.variables.iter().zip(&region.loops).map(|(&v, &[start, _, step])| (v, start, step));
        let at = |changes: &[(Value, i64)]| {
            let mut env = env.clone();
            changes.iter().for_each(|&(v, x)| env[v] = Some(x));
            self.int(&env, e)
        };
        // It is linear in each variable, as far as windows begin at regular places.
        let mut first: Vec<(Value, i64)> = self.k.grid.iter().map(|axis| (axis.index, 0)).collect();
        let mut apart: Vec<(Value, i64)> = self.k.grid.iter().map(|axis| (axis.index, 1)).collect();
        for (v, start, step) in steps {
            let (Some(start), Some(step)) = (self.int(env, start), self.int(env, step)) else { return false };
            first.push((v, start));
            apart.push((v, start + step));
        }
        let with = |i: usize| {
            let mut all = first.clone();
            all[i] = apart[i];
            at(&all)
        };
        let own = at(&first).into_iter().chain((0..first.len()).filter_map(with));
        own.clone().count() == first.len() + 1 && own.into_iter().all(|x| x % width == 0)
    }

    /// The statement in which the window of a copy is written: the copy, or the `let` of a name that it computes with.
    /// A window may be loaded by a copy of its own in front of its `let`.
    fn statement_of(&self, m: &Move) -> Span {
        let k = self.k;
        let own = k.stmt_spans[m.at];
        let has = |span: Span| span.start <= m.span.start && m.span.end <= span.end;
        if m.span.is_none() {
            return own;
        }
        let lets = k.statements().into_iter().filter(|&s| matches!(k.stmts[s], StmtData::Let { .. }));
        lets.map(|s| k.stmt_spans[s]).find(|&span| has(span)).unwrap_or(own)
    }

    /// The average share of a window's elements that are inside of its tensor, over blocks and iterations.
    pub(super) fn inside(&self, env: &Env, region: &Region, m: &Move) -> f64 {
        let of = |(&extent, bound)| {
            let width = self.extent(env, extent).and_then(|n| i64::try_from(n).ok())?;
            Some(self.elements_inside(env, region, width, bound)? / width as f64)
        };
        m.shape.iter().zip(&m.bounds).map(|pair| of(pair).unwrap_or(1.0)).product()
    }

    /// The average number of a window's elements along one dimension that are inside.
    fn elements_inside(&self, env: &Env, region: &Region, width: i64, bound: &Bound) -> Option<f64> {
        let (_, fixed) = self.ends(region, bound);
        let end = fixed.into_iter().filter_map(|e| self.int(env, e)).min()?;
        let windows = self.windows(env, region, width, bound)?;
        Some(windows.map_or_else(|| width.min(end).max(0) as f64, |w| w.inside))
    }

    /// The ends of a window that move with blocks or iterations, and the others.
    fn ends(&self, region: &Region, bound: &Bound) -> (Vec<Expr>, Vec<Expr>) {
        let grid = self.k.grid.iter().map(|axis| axis.index);
        let variables: Vec<Value> = grid.chain(region.variables.iter().copied()).collect();
        bound.ends.iter().partition(|&&e| variables.iter().any(|&v| self.reads(e, v)))
    }

    /// The windows along one dimension. `None`: their places are not known; inside `None`: they are no progression.
    #[expect(clippy::option_option, reason = "what is not known, and what is known to be irregular")]
    pub(super) fn windows(&self, env: &Env, region: &Region, width: i64, bound: &Bound) -> Option<Option<Windows>> {
        let (moving, fixed) = self.ends(region, bound);
        let end = fixed.into_iter().filter_map(|e| self.int(env, e)).min()?;
        let Some(starts) = &bound.starts else { return Some(None) };
        let begin = |env: &Env| starts.iter().try_fold(0, |sum, &e| i64::checked_add(sum, self.int(env, e)?));
        let grid = self.k.grid.iter().filter_map(|axis| {
            let count = self.int(env, axis.extent)?;
            Some((axis.index, Values { first: 0, count, step: 1 }))
        });
        let loops = region.variables.iter().zip(&region.loops).filter_map(|(&v, &[start, end, step])| {
            let [first, end, step] = [self.int(env, start)?, self.int(env, end)?, self.int(env, step)?];
            Some((v, Values { first, count: i64::try_from(index::trips(first, end, step)?).ok()?, step }))
        });
        let mut varies = grid.chain(loops).filter(|(v, _)| starts.iter().any(|&e| self.reads(e, *v)));
        let (mut width, mut written) = (width, None);
        let (index, values) = match (varies.next(), varies.next()) {
            (None, _) if moving.is_empty() => (None, Values { first: begin(env)?, count: 1, step: 1 }),
            (Some((v, of)), None) if of.count > 0 => {
                let at = |i: i64| {
                    let mut env = env.clone();
                    env[v] = Some(of.first.checked_add(i.checked_mul(of.step)?)?);
                    begin(&env)
                };
                let (first, last) = (at(0)?, at(of.count - 1)?);
                let step = at(1)?.checked_sub(first)?;
                // A window's own end moves with its start, or the windows differ.
                for &e in &moving {
                    let length = |i: i64| {
                        let mut env = env.clone();
                        env[v] = Some(of.first.checked_add(i.checked_mul(of.step)?)?);
                        self.int(&env, e)?.checked_sub(begin(&env)?)
                    };
                    let own = length(0)?;
                    if length(of.count - 1)? != own {
                        return Some(None);
                    }
                    width = width.min(own).max(0);
                    written = u64::try_from(own).ok();
                }
                if step <= 0
                    || width / step > MANY
                    || i128::from(last) != i128::from(first) + i128::from(of.count - 1) * i128::from(step)
                {
                    return Some(None);
                }
                (Some(v), Values { first, count: of.count, step })
            }
            _ => return Some(None),
        };
        Some((values.first >= 0).then(|| Windows {
            index,
            count: values.count,
            size: end.saturating_sub(values.first),
            inside: mean(&values, width, end),
            length: written,
        }))
    }

    /// A loop that moves tiles (else one that computes) whose number of iterations is unknown: its end is read from
    /// memory, or a condition ends it.
    pub(super) fn unknown_loop(&self, env: &Env) -> Option<Unknown> {
        let unknown = |region: &&Region| {
            let known = |&[start, end, step]: &[tilec_ir::entities::Expr; 3]| {
                index::trips(self.int(env, start)?, self.int(env, end)?, self.int(env, step)?)
            };
            region.endless || region.loops.iter().any(|of| known(of).is_none())
        };
        let all = || self.regions.iter().filter(unknown);
        let moving = all().find(|r| !r.moves.is_empty());
        let region = moving.or_else(|| all().find(|r| !r.stmts.is_empty()))?;
        region.at.map(|s| Unknown { span: self.k.stmt_spans[s], moves: moving.is_some() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_end_with_their_tensor() {
        let of = |first, count, step, width, end| mean(&Values { first, count, step }, width, end);
        // All of 1000 in windows of 128; half of a window; overlapping windows; none.
        assert_eq!(of(0, 8, 128, 128, 1000), 125.0);
        assert_eq!(of(0, 1, 1, 4096, 2052), 2052.0);
        assert_eq!(of(0, 4, 2, 4, 7), 3.0);
        assert_eq!(of(64, 2, 64, 64, 64), 0.0);
    }
}
