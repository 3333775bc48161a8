//! Elementwise expressions, group by group. A group is the elements of one access to the destination: operands in
//! memory are loaded as wide as the result is stored, and few registers are live. Reductions inside are computed first.

use super::combine_elements::{By, Join, Part};
use super::dims::Dims;
use super::operands::{Operands, Reduced};
use super::reduce::Subject;
use super::scan::ScanInputs;
use super::scope::Scope;
use super::segment_totals::{SegmentTotals, split_row};
use super::state::{Lower, NO_WHOLE_TILE};
use super::tile::Tile;
use super::windows::Access;
use crate::inst::{Class, Reg};
use std::collections::BTreeMap;
use tilec_ir::codes;
use tilec_ir::diag::{Diagnostic, Reported};
use tilec_ir::entities::Expr;
use tilec_ir::kernel::{CopyAttrs, ExprData};
use tilec_ir::layout::{RegLayout, UsedRegisters};
use tilec_ir::rounding::is_rounded;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::{Type, resolve_view, type_of};

/// Most registers of a thread for elements that are loaded before the stores of earlier groups.
const EARLY_WORDS: u64 = 16;

impl Lower<'_> {
    /// Prepares the windows of memory that an expression reads. A thread reads global memory only if `only` holds.
    pub(super) fn operands(
        &mut self,
        e: Expr,
        scope: &Scope,
        attrs: &CopyAttrs,
        only: Option<Reg>,
    ) -> Result<Operands, Reported> {
        let mut out = Operands::new(scope.clone());
        self.find_windows(e, attrs, only, &mut out)?;
        Ok(out)
    }

    fn find_windows(
        &mut self,
        e: Expr,
        attrs: &CopyAttrs,
        only: Option<Reg>,
        out: &mut Operands,
    ) -> Result<(), Reported> {
        let is_tile = matches!(self.k.exprs[e], ExprData::Ref(v) if self.tiles[v].is_some());
        if !is_tile && let Some(view) = resolve_view(self.k, e) {
            let Some(elem) = self.elem(view.base) else { return Err(self.unsupported(e, "this element type")) };
            let access = self.access(e, &view, &out.scope.layout, &out.scope.dim_bits, attrs, only)?;
            out.preds.push(access.predicates());
            out.windows.push((e, access, elem));
            return Ok(());
        }
        // Only the extents of the tile that an `iota` counts along are needed.
        if matches!(self.k.exprs[e], ExprData::Iota { .. }) {
            return Ok(());
        }
        if matches!(self.k.exprs[e], ExprData::Reduce { .. }) {
            let reduced = self.reduce(e)?;
            out.reduced.push((e, reduced));
            return Ok(());
        }
        if matches!(self.k.exprs[e], ExprData::Scan { .. }) {
            let scanned = self.scan(e)?;
            out.reduced.push((e, scanned));
            return Ok(());
        }
        if let ExprData::Ref(v) = self.k.exprs[e]
            && let Some(init) = self.deferred.init(v)
            && out.deferred.iter().all(|(w, ..)| *w != v)
        {
            self.find_windows(init, attrs, only, out)?;
            let rounded = if is_rounded(self.k, init) { None } else { self.elem_of_expr(init) };
            out.deferred.push((v, init, rounded));
        }
        for child in self.k.children(e) {
            self.find_windows(child, attrs, only, out)?;
        }
        Ok(())
    }

    /// Loads what an expression reads for group `g`, and computes the deferred `let`s that it names.
    pub(super) fn begin_group(&mut self, operands: &mut Operands, g: usize, group: &[usize]) -> Result<(), Reported> {
        self.report_operands(operands, group.len());
        operands.group = group.to_vec();
        operands.loaded.clear();
        for i in 0..operands.windows.len() {
            let regs = match operands.early.remove(&(i, g)) {
                Some(regs) => regs,
                None => self.load_window(operands, i, (g, group))?,
            };
            operands.loaded.push((operands.windows[i].0, regs));
        }
        operands.named.clear();
        operands.truths.borrow_mut().clear();
        for i in 0..operands.deferred.len() {
            let (v, init, rounded) = operands.deferred[i];
            if matches!(type_of(self.k, init), Ok(Type::Tile(t)) if t.elem == ElemRef::Known(Elem::Bool)) {
                continue;
            }
            let class = self.class_of_expr(init)?;
            let mut regs = self.eval(init, operands, group, class)?;
            if let Some(elem) = rounded {
                regs = self.rounded(init, regs, (Some(elem), elem))?;
            }
            operands.named.push((v, regs));
        }
        Ok(())
    }

    /// Loads the elements of a group from window `i` of an expression.
    fn load_window(
        &mut self,
        operands: &mut Operands,
        i: usize,
        (g, group): (usize, &[usize]),
    ) -> Result<Vec<Reg>, Reported> {
        let pred = operands.preds[i][g];
        let (expr, access, elem) = &mut operands.windows[i];
        let (expr, elem) = (*expr, *elem);
        if access.groups.get(g).is_none_or(|own| own != group) {
            return Err(self.unfit(
                expr,
                "operands that are contiguous along different dimensions, with a width (`vec`) that is written",
            ));
        }
        self.load_group(expr, access, elem, group, pred)
    }

    /// Loads what an expression reads of global memory for all groups from `g` on that [`EARLY_WORDS`] registers hold.
    /// The assembler does not move a load over a store that may be to the same address, so loads between the stores of
    /// groups would wait for each other.
    pub(super) fn load_early(
        &mut self,
        operands: &mut Operands,
        groups: &[Vec<usize>],
        g: usize,
    ) -> Result<(), Reported> {
        let global = |access: &Access| access.space.has_bounds();
        let early: Vec<usize> = (0..operands.windows.len()).filter(|&i| global(&operands.windows[i].1)).collect();
        let words = |&i: &usize| operands.windows[i].2.size().words(groups[g].len() as u64);
        let at_once = EARLY_WORDS.checked_div(early.iter().map(words).sum()).unwrap_or(0);
        let end = groups.len().min(g + usize::try_from(at_once).unwrap_or(0));
        if end < g + 2 || early.iter().any(|&i| operands.early.contains_key(&(i, g))) {
            return Ok(());
        }
        self.report_operands(operands, groups[g].len());
        for (later, group) in groups.iter().enumerate().take(end).skip(g) {
            for &i in &early {
                let regs = self.load_window(operands, i, (later, group))?;
                operands.early.insert((i, later), regs);
            }
        }
        Ok(())
    }

    /// Reports once for each window of an expression how it is read.
    fn report_operands(&mut self, operands: &mut Operands, elements: usize) {
        let Some(s) = self.emit.origin.expand().filter(|_| !std::mem::replace(&mut operands.reported, true)) else {
            return;
        };
        let attrs = CopyAttrs { vec: u32::try_from(elements).ok(), ..CopyAttrs::default() };
        for (e, access, elem) in &operands.windows {
            if let Some(view) = resolve_view(self.k, *e) {
                self.report_copy(s, *e, &view, access, *elem, &attrs, false);
            }
        }
    }

    /// The elements of group `g`, in the class the expression's type is computed in.
    pub(super) fn compute_group(
        &mut self,
        e: Expr,
        operands: &mut Operands,
        g: usize,
        group: &[usize],
    ) -> Result<Vec<Reg>, Reported> {
        self.begin_group(operands, g, group)?;
        let class = self.class_of_expr(e)?;
        self.eval(e, operands, group, class)
    }

    /// The elements of group `g`, not yet converted to the type of their destination.
    pub(super) fn compute_group_for(
        &mut self,
        to: Elem,
        e: Expr,
        operands: &mut Operands,
        (g, group): (usize, &[usize]),
    ) -> Result<Vec<Reg>, Reported> {
        self.begin_group(operands, g, group)?;
        let class = self.class_for(e, to)?;
        self.eval(e, operands, group, class)
    }

    /// The truth values of group `g`.
    fn truths_of_group(
        &mut self,
        e: Expr,
        operands: &mut Operands,
        g: usize,
        group: &[usize],
    ) -> Result<Vec<Reg>, Reported> {
        self.begin_group(operands, g, group)?;
        self.eval_bool(e, operands, group)
    }

    /// A tile of truth values that a `let` names, as predicates that are never written again.
    pub(super) fn conditions(&mut self, e: Expr, layout: RegLayout, dim_bits: Dims) -> Result<Tile, Reported> {
        let Some(held) = UsedRegisters::of(&layout, dim_bits.extents()) else {
            return Err(self.unsupported(e, NO_WHOLE_TILE));
        };
        let scope = Scope { layout: layout.clone(), dim_bits: dim_bits.clone() };
        let mut operands = self.operands(e, &scope, &CopyAttrs::default(), None)?;
        let elements: Vec<usize> = (0..1usize << layout.value_bits()).filter(|&v| held.has(v)).collect();
        let groups = match operands.windows.first() {
            Some((_, access, _)) => access.groups.clone(),
            None => elements.into_iter().map(|v| vec![v]).collect(),
        };
        let mut found: Vec<Option<Reg>> = vec![None; 1 << layout.value_bits()];
        for (g, group) in groups.iter().enumerate() {
            let regs = self.truths_of_group(e, &mut operands, g, group)?;
            for (&v, reg) in group.iter().zip(regs) {
                found[v] = Some(reg);
            }
        }
        // Predicates of absent elements are never read.
        let regs = found.into_iter().map(|reg| reg.unwrap_or_else(|| self.emit.reg(Class::Pred))).collect();
        Ok(Tile { elem: Elem::Bool, layout, dim_bits, regs, used: held, per_register: 1 })
    }

    /// `tile = e`.
    pub(super) fn assign_elementwise(&mut self, at: Expr, tile: &Tile, e: Expr) -> Result<(), Reported> {
        self.copy_elementwise(at, tile, e, &CopyAttrs::default())
    }

    /// `copy e -> tile`: windows in `e` are read as wide as the copy's attributes say.
    pub(super) fn copy_elementwise(
        &mut self,
        at: Expr,
        tile: &Tile,
        e: Expr,
        attrs: &CopyAttrs,
    ) -> Result<(), Reported> {
        if let ExprData::Ref(v) = self.k.exprs[e]
            && let Some(other) = self.tiles[v].clone().filter(|other| other.same_shape(tile))
        {
            // The bits are copied: a conversion would lose an infinity of e5m2.
            for i in tile.registers() {
                self.mov(tile.regs[i], other.regs[i]);
            }
            return Ok(());
        }
        if let Some(other) = self.tile_of(e)
            && self.unpacked(&other, tile)
        {
            return Ok(());
        }
        if self.in_pairs(tile, e)? {
            return Ok(());
        }
        let scope = Scope { layout: tile.layout.clone(), dim_bits: tile.dim_bits.clone() };
        let mut operands = self.operands(e, &scope, attrs, None)?;
        let mut values = Vec::new();
        let groups = match operands.windows.first() {
            Some((_, access, _)) => access.groups.clone(),
            None => tile.elements().into_iter().map(|v| vec![v]).collect(),
        };
        let from = self.elem_of_expr(e);
        for (g, group) in groups.iter().enumerate() {
            let xs = self.compute_group_for(tile.elem, e, &mut operands, (g, group))?;
            values.extend(group.iter().zip(xs).map(|(&v, x)| (v, self.wide_enough(x, from, tile.elem))));
        }
        self.set_computed(at, tile, &values)
    }

    /// Computes a reduction.
    fn reduce(&mut self, e: Expr) -> Result<Reduced, Reported> {
        let ExprData::Reduce { op, axis, parts, arg } = self.k.exprs[e] else {
            return Err(self.unsupported(e, "this reduction"));
        };
        let Some((found, Subject { layout, shape, elem })) = self.reduction_of(arg, axis, parts) else {
            return Err(self.unsupported(e, "a reduction of a tile that meets no register tile"));
        };
        if layout.out_bits() != Dims::of(&shape).iter().sum() {
            return Err(self.unsupported(arg, NO_WHOLE_TILE));
        }
        let reduction = match found {
            Ok(reduction) => reduction,
            Err(why) => return Err(self.no_reduction(e, axis, why)),
        };
        let Some(join) = Join::of(op, elem) else {
            return Err(self.unsupported(e, &format!("`{}` of {} elements", op.token(), elem.name())));
        };
        let in_parts = match &self.parts {
            Some((partial, of)) if of.contains(&e) => {
                if partial.lanes != reduction.lanes {
                    let message = format!(
                        "lanes that differ in bits {:?} hold what is reduced, and the tile has parts of {:?}",
                        reduction.lanes, partial.lanes
                    );
                    return Err(self.sink.report(Diagnostic::error(codes::BAD_PARTIAL, self.k.expr_spans[e], message)));
                }
                true
            }
            _ => false,
        };
        let scope = Scope { layout, dim_bits: Dims::of(&shape) };
        let mut operands = self.operands(arg, &scope, &CopyAttrs::default(), None)?;
        if operands.reads_memory() {
            return Err(self
                .unsupported(e, "a reduction that reads memory; copy the window to a register tile, and reduce that"));
        }
        let mut regs = Vec::new();
        for (g, members) in reduction.members.iter().enumerate() {
            if members.is_empty() {
                regs.push(None);
                continue;
            }
            let xs = match join {
                Join::Truth(..) => self.truths_of_group(arg, &mut operands, g, members)?,
                Join::Number(..) if let Some(xs) = self.extremes_in_pairs(op, arg, &operands, members) => xs,
                Join::Number(..) | Join::Place { .. } => self.compute_group(arg, &mut operands, g, members)?,
            };
            let (parts, ascending) = match join {
                Join::Place { .. } => self.placed(&operands.scope, axis as usize, members, &xs),
                _ => (xs.into_iter().map(|value| Part { value, place: None }).collect(), true),
            };
            let part = self.joined(join, parts, ascending);
            let part = self.with_row_index(&operands.scope, axis as usize, part);
            regs.push(Some(if in_parts { part.value } else { self.join_lanes(join, part, &reduction.lanes) }));
        }
        let mut small = shape;
        small[axis as usize] = 1 << parts.count_ones();
        Ok(Reduced { layout: reduction.layout, dim_bits: Dims::of(&small), regs })
    }

    /// Computes a scan.
    fn scan(&mut self, e: Expr) -> Result<Reduced, Reported> {
        let ExprData::Scan { op, axis, exclusive, totals, arg } = self.k.exprs[e] else {
            return Err(self.unsupported(e, "this scan"));
        };
        let parts = totals.map_or(0, |totals| totals.parts);
        let (Some(Subject { layout, shape, elem }), Some(found)) = (self.subject(arg), self.scan_of(arg, axis, parts))
        else {
            return Err(self.unsupported(e, "a scan of a tile that meets no register tile"));
        };
        let steps = match found {
            Ok(steps) => steps,
            Err(why) => return Err(self.no_scan(e, why)),
        };
        let (Some(Join::Number(class, op_of_two)), Some(held)) =
            (Join::of(op, elem), UsedRegisters::of(&layout, Dims::of(&shape).extents()))
        else {
            return Err(self.unsupported(e, NO_WHOLE_TILE));
        };
        let scope = Scope { layout: layout.clone(), dim_bits: Dims::of(&shape) };
        let mut operands = self.operands(arg, &scope, &CopyAttrs::default(), None)?;
        if operands.reads_memory() {
            return Err(
                self.unsupported(e, "a scan that reads memory; copy the window to a register tile, and scan that")
            );
        }
        let all: Vec<usize> = (0..1usize << layout.value_bits()).filter(|&v| held.has(v)).collect();
        let xs = self.compute_group(arg, &mut operands, 0, &all)?;
        let front = exclusive.then(|| self.front(op, elem, class));
        let xs = all.into_iter().zip(xs.into_iter().map(|x| vec![x])).collect();
        let scope = Scope { layout: layout.clone(), dim_bits: Dims::of(&shape) };
        let known =
            totals.map(|t| self.totals(e, (&[t.tile], &[class]), &scope, (axis as usize, parts))).transpose()?;
        let found =
            self.scanned(xs, By::Instruction(class, op_of_two), &steps, ScanInputs { front, totals: known.as_ref() })?;
        let regs = (0..1usize << layout.value_bits()).map(|v| Some(found.get(&v)?[0])).collect();
        Ok(Reduced { layout, dim_bits: Dims::of(&shape), regs })
    }

    /// The totals of segments of a tile's rows, one component in each of the tiles `totals`. The scanned tile has the
    /// layout of `scope`.
    pub(super) fn totals(
        &mut self,
        e: Expr,
        (totals, classes): (&[Expr], &[Class]),
        scope: &Scope,
        (axis, parts): (usize, u32),
    ) -> Result<SegmentTotals, Reported> {
        let shape: Vec<u64> = scope.dim_bits.extents().to_vec();
        let low = parts.trailing_zeros();
        let wanted = scope.layout.of_totals(&shape, axis, parts.count_ones());
        let mut found: BTreeMap<(Vec<u64>, usize), Vec<Reg>> = BTreeMap::new();
        for (&tile, &class) in totals.iter().zip(classes) {
            let subject = self.subject(tile);
            let fits = |found: &RegLayout| wanted.as_ref().is_some_and(|wanted| wanted.thread() == found.thread());
            let Some(subject) = subject.filter(|s| fits(&s.layout)) else {
                let what = "a scan whose totals have another layout; leave their layout out to have one found";
                return Err(self.unfit(e, what));
            };
            let own = Scope { layout: subject.layout.clone(), dim_bits: Dims::of(&subject.shape) };
            let mut operands = self.operands(tile, &own, &CopyAttrs::default(), None)?;
            let all: Vec<usize> = (0..1usize << subject.layout.value_bits()).collect();
            self.begin_group(&mut operands, 0, &all)?;
            let xs = self.eval(tile, &operands, &all, class)?;
            for (v, x) in all.into_iter().zip(xs) {
                let at = split_row(axis, own.layout.coords(0, v as u64, &own.dim_bits));
                found.entry(at).or_default().push(x);
            }
        }
        Ok(SegmentTotals::of(found, scope, (axis, low)))
    }
}
