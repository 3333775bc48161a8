//! Windows whose extents follow only from broadcast tiles: `let y = X[i.., j..] - sum(x, 1)`.
//!
//! A window takes its extents from the other operands. A tile of one column is broadcast if other operands have more
//! columns: the sum of a row, a mean, a vector. Without other operands, the window would have one column. Such an
//! expression does not mean that, so it is an error: the window must give its extent.
//!
//! A tile of extent 1 with other contents does determine the extent: a loaded row, a tile of one row of sums.

use super::implicit_tiles::open_range;
use super::window_notes::{Notes, Window, leaves, window};
use crate::codes;
use crate::diag::{Diagnostic, Span};
use crate::entities::{Expr, Value};
use crate::kernel::{ExprData, Kernel, Range, StmtData, ValueDef};
use crate::print::print_expr;
use crate::typing::{Extent, let_init};
use std::collections::{BTreeMap, BTreeSet};

/// The extents of visited tiles along a dimension; [`Along::Number`] while a tile is being visited.
type Seen = BTreeMap<(Value, usize), Along>;

/// Returns what is wrong with windows that are combined, and these windows. Dimensions count from the last one here, as operands
/// align.
pub(super) fn check(k: &Kernel, notes: &Notes) -> (Vec<Diagnostic>, BTreeSet<Expr>) {
    let mut cx = Narrow { k, notes, written: written(k), wrong: Vec::new(), failed: BTreeSet::new() };
    for s in k.statement_data() {
        for e in s.exprs() {
            cx.reduced(e);
        }
        match *s {
            StmtData::Let { init, .. } if is_computed(k, init) => cx.combined(init, None),
            StmtData::Copy { src, dst, .. } => {
                if let Some(to) = window(k, notes, dst).filter(|_| is_computed(k, src)) {
                    cx.combined(src, Some(to));
                }
            }
            _ => {}
        }
    }
    (cx.wrong, cx.failed)
}

/// The extent along a dimension.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Along {
    /// The same number in all elements.
    Number,
    /// One element, which repeats.
    Repeats,
    /// As many elements as it has.
    Elements,
}

struct Narrow<'k> {
    k: &'k Kernel,
    notes: &'k Notes,
    /// The values written to all of a tile; `None`: only a part is written.
    written: BTreeMap<Value, Vec<Option<Expr>>>,
    wrong: Vec<Diagnostic>,
    /// Windows that an error is about: other uses of them are not checked.
    failed: BTreeSet<Expr>,
}

/// Whether the elements are computed: of a window or a name of one they are not.
fn is_computed(k: &Kernel, e: Expr) -> bool {
    matches!(
        k.exprs[e],
        ExprData::Op { .. }
            | ExprData::Cast { .. }
            | ExprData::Bits { .. }
            | ExprData::Round { .. }
            | ExprData::Lookup { .. }
    )
}

fn written(k: &Kernel) -> BTreeMap<Value, Vec<Option<Expr>>> {
    let mut written: BTreeMap<Value, Vec<Option<Expr>>> = BTreeMap::new();
    for s in k.statement_data() {
        let (to, from) = match *s {
            StmtData::Var { value, init: Some(src) } | StmtData::Assign { dst: value, src } => (value, Some(src)),
            StmtData::Copy { src, dst, .. } => match &k.exprs[dst] {
                ExprData::Ref(v) => (*v, Some(src)),
                ExprData::View(view) => (view.base, Some(src).filter(|_| view.ranges.is_empty())),
                _ => continue,
            },
            _ => continue,
        };
        written.entry(to).or_default().push(from);
    }
    written
}

impl Narrow<'_> {
    /// Windows that are reduced or scanned inside of `e`. The operands of tuples give each other extents.
    fn reduced(&mut self, e: Expr) {
        for child in self.k.children(e) {
            self.reduced(child);
        }
        if let ExprData::Reduce { arg, .. } | ExprData::Scan { arg, .. } = self.k.exprs[e] {
            self.combined(arg, None);
        }
    }

    /// The parts of `e`, which is stored to `to`, if that is a window.
    fn combined(&mut self, e: Expr, to: Option<Window>) {
        let mut parts = Vec::new();
        leaves(self.k, e, &mut parts);
        let (mut windows, mut tiles) = (Vec::new(), Vec::new());
        for part in parts {
            match window(self.k, self.notes, part) {
                Some(window) => windows.push((part, window)),
                None => tiles.push(part),
            }
        }
        if windows.iter().any(|(_, window)| window.is_among(&self.failed)) {
            return;
        }
        let rank = windows.iter().map(|(_, window)| window.dims.len()).max().unwrap_or(0);
        for d in 0..rank {
            let says = |window: &Window| {
                let all = |dim: &super::window_notes::Dim| dim.all.is_some_and(|n| n.known() != Some(1));
                dim(window, d).is_some_and(|dim| {
                    dim.given_extent().is_some() || !dim.repeats && (self.is_tile(window) || all(&dim))
                })
            };
            if windows.iter().map(|(_, window)| window).chain(&to).any(says) {
                continue;
            }
            // A window that gives the extent along another dimension, if nothing gives the extent along this one.
            let half = windows.iter().find(|(_, window)| {
                to.is_none() && dim(window, d).is_some_and(|dim| !dim.repeats) && gives_extent(window)
            });
            if let Some(&(e, ref window)) =
                half.filter(|_| tiles.iter().all(|&tile| self.along(tile, d, &mut Seen::new()) == Along::Number))
            {
                self.failed.extend(&window.from);
                self.wrong.push(partially_given(self.k, self.notes, (e, window), window.dims.len() - 1 - d));
                return;
            }
            let own = windows.iter().find(|(_, window)| !self.is_one(window, d));
            let along = tiles.iter().map(|&tile| (self.along(tile, d, &mut Seen::new()), tile)).max();
            if let (Some(&(e, ref window)), Some((Along::Repeats, tile))) = (own, along) {
                let d = window.dims.len() - 1 - d;
                self.failed.extend(&window.from);
                self.wrong.push(no_extent(self.k, (e, window), d, self.k.expr_spans[tile]));
                return;
            }
        }
    }

    /// Whether a window is all of a tile, which is given dimensions: `v[.., _]`.
    fn is_tile(&self, window: &Window) -> bool {
        self.k.tensor_ty(window.base).is_none() && window.dims.iter().any(|dim| dim.repeats)
    }

    /// Whether a window repeats along a dimension, or is of a tensor that has one element there.
    fn is_one(&self, window: &Window, d: usize) -> bool {
        let Some(dim) = dim(window, d).filter(|dim| !dim.repeats) else { return true };
        let ranks = |shape: &[Expr]| shape.len() == window.dims.len();
        let shape = match &self.k.values[window.base].def {
            ValueDef::Tensor(t) if ranks(&t.shape) => &t.shape,
            ValueDef::Var(t) | ValueDef::Smem(t) if ranks(&t.shape) => &t.shape,
            _ => return false,
        };
        dim.given_extent().is_none() && Extent::of(self.k, shape[shape.len() - 1 - d]).known() == Some(1)
    }

    /// The extent of `e` along a dimension.
    fn along(&self, e: Expr, d: usize, seen: &mut Seen) -> Along {
        let k = self.k;
        let mut most = |all: &[Expr]| all.iter().map(|&e| self.along(e, d, seen)).max().unwrap_or(Along::Number);
        match &k.exprs[e] {
            ExprData::Int(_) | ExprData::Float(_) | ExprData::Index(_) => Along::Number,
            ExprData::Op { args, .. } => most(args),
            ExprData::Round { arg, word, .. } => most(&[*arg, *word]),
            ExprData::Cast { arg, .. }
            | ExprData::Bits { arg, .. }
            | ExprData::Lookup { index: arg, .. }
            | ExprData::Iota { like: arg, .. }
            | ExprData::Scan { arg, .. } => most(&[*arg]),
            ExprData::Reduce { axis, parts: 0, arg, .. } if self.is_axis(*arg, *axis, d) => Along::Repeats,
            ExprData::Reduce { arg, .. } => most(&[*arg]),
            ExprData::Part { of, .. } => match &k.exprs[*of] {
                ExprData::Ref(v) => let_init(k, *v).map_or(Along::Elements, |init| self.along(init, d, seen)),
                _ => Along::Elements,
            },
            ExprData::Combine(combine) => {
                let reduces = matches!(combine.operation, crate::tuples::How::Reduce { parts: 0 });
                let rank =
                    combine.args.iter().map(|&arg| super::window_notes::rank(k, self.notes, arg)).max().unwrap_or(0);
                if reduces && rank.checked_sub(1 + d) == Some(combine.axis as usize) {
                    return Along::Repeats;
                }
                most(&combine.args)
            }
            ExprData::Ref(v) => self.named(e, *v, d, seen),
            ExprData::View(_) => match window(k, self.notes, e) {
                Some(window) if self.is_one(&window, d) => Along::Repeats,
                _ => Along::Elements,
            },
            ExprData::Transpose(arg) if d < 2 => self.along(*arg, 1 - d, seen),
            ExprData::Transpose(_) => Along::Number,
            ExprData::Permute { arg, order } => match order.len().checked_sub(1 + d) {
                Some(at) => self.along(*arg, (order.len() - 1).saturating_sub(order[at] as usize), seen),
                None => Along::Number,
            },
            ExprData::Reshape { .. } | ExprData::Concat { .. } | ExprData::Mma(_) => Along::Elements,
        }
    }

    fn is_axis(&self, arg: Expr, axis: u32, d: usize) -> bool {
        super::window_notes::rank(self.k, self.notes, arg).checked_sub(1 + d) == Some(axis as usize)
    }

    /// The extent of a name along a dimension.
    fn named(&self, e: Expr, v: Value, d: usize, seen: &mut Seen) -> Along {
        if let Some(window) = window(self.k, self.notes, e) {
            return if self.is_one(&window, d) { Along::Repeats } else { Along::Elements };
        }
        if let Some(&known) = seen.get(&(v, d)) {
            return known;
        }
        seen.insert((v, d), Along::Number);
        let found = self.place(v, d, seen);
        seen.insert((v, d), found);
        found
    }

    fn place(&self, v: Value, d: usize, seen: &mut Seen) -> Along {
        let k = self.k;
        let shape = match &k.values[v].def {
            ValueDef::Let => return let_init(k, v).map_or(Along::Elements, |init| self.along(init, d, seen)),
            ValueDef::Var(t) | ValueDef::Smem(t) if !t.shape.is_empty() => &t.shape,
            ValueDef::Channel { .. } => return Along::Elements,
            _ => return Along::Number,
        };
        match shape.len().checked_sub(1 + d) {
            None => Along::Repeats,
            Some(at) if Extent::of(k, shape[at]).known() != Some(1) => Along::Elements,
            Some(_) => {
                let all = self.written.get(&v).into_iter().flatten();
                all.map(|src| src.map_or(Along::Elements, |src| self.along(src, d, seen)))
                    .max()
                    .unwrap_or(Along::Elements)
            }
        }
    }
}

fn dim(window: &Window, d: usize) -> Option<super::window_notes::Dim> {
    window.dims.len().checked_sub(1 + d).map(|at| window.dims[at])
}

/// Whether it gives the extent along a dimension.
fn gives_extent(window: &Window) -> bool {
    window.dims.iter().any(|dim| dim.extent.is_some())
}

/// An error for a window that gives the number of elements along some dimensions only.
fn partially_given(k: &Kernel, notes: &Notes, (mut e, window): (Expr, &Window), d: usize) -> Diagnostic {
    // The range is where the window is written, not where its name is used.
    while let ExprData::Ref(v) = k.exprs[e]
        && let Some(init) = let_init(k, v)
    {
        e = init;
    }
    let name = &k.values[window.base].name;
    let message = format!("this window of `{name}` has no extent along dimension {d}");
    match open_range(k, notes, e, window, d) {
        // `..` alone: one element, which a fix would say, is hardly meant.
        Some((open, start)) if start.is_empty() => Diagnostic::error(codes::NO_EXTENTS, open, message)
            .with_note("the elements begin with the first: write `..+64` for 64 of them"),
        Some((open, start)) => Diagnostic::error(codes::NO_EXTENTS, open, message)
            .with_note(format!("write `{start}..+64` for 64 elements, `{start}..+1` for one"))
            .with_fix(Span { start: open.end, end: open.end }, "+1"),
        None => match closed_range(k, e, window, d) {
            Some((span, [start, end])) => {
                let within = format!(
                    "`{start}..{end}` says where the window ends, and a tile has a constant number of elements"
                );
                Diagnostic::error(codes::NO_EXTENTS, span, message).with_note(format!(
                    "{within}: write `{start}..+1024` for 1024, or a loop over tiles, `for j in {start}..{end} step 1024`"
                ))
            }
            None => Diagnostic::error(codes::NO_EXTENTS, k.expr_spans[e], message)
                .with_note("`i..+1` says that there is one element from `i` on, and `i..+64` that there are 64"),
        },
    }
}

/// The range of a window's dimension that has a start and an end, and their texts.
fn closed_range(k: &Kernel, e: Expr, window: &Window, d: usize) -> Option<(Span, [String; 2])> {
    let ExprData::View(view) = k.exprs.get(e).filter(|_| window.from == [e])? else { return None };
    if view.ranges.iter().any(|range| matches!(range, Range::Gather(_))) {
        return None;
    }
    // An index leaves its dimension out.
    let mut ranges = view.ranges.iter().filter(|range| matches!(range, Range::From { .. }));
    let &Range::From { start, end: Some(end) } = ranges.nth(d)? else { return None };
    let span = Span { start: k.expr_spans[start].start, end: k.expr_spans[end].end };
    Some((span, [start, end].map(|e| print_expr(k, e))))
}

fn no_extent(k: &Kernel, (e, window): (Expr, &Window), d: usize, beside: Span) -> Diagnostic {
    let message = format!("this window has no extent along dimension {d}");
    let name = &k.values[window.base].name;
    let ranges: Vec<&str> = (0..window.dims.len()).map(|at| if at == d { "j..+64" } else { ".." }).collect();
    let written = match &k.exprs[e] {
        ExprData::View(view) if view.ranges.iter().all(|range| matches!(range, Range::From { .. })) => {
            ranges.join(", ")
        }
        _ => "j..+64".to_owned(),
    };
    Diagnostic::error(codes::NO_EXTENTS, k.expr_spans[e], message)
        .with_label("would have one element along it")
        .with_place(beside, "repeats along that dimension")
        .with_note(format!("say how many: `{name}[{written}]`, or `j..+1` for one; or load the window into a tile"))
}
