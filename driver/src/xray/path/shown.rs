//! The graph of definitions as steps: each statement once, in the order in which it is executed.

use super::forward::{Target, computes};
use super::graph::{Graph, Node, What};
use super::spot::{Run, contains};
use super::text::head;
use super::{Link, PathBuilder};
use std::collections::BTreeMap;
use tilec_ir::entities::Value;
use tilec_ir::kernel::{ExprData, StmtData};
use tilec_ir::typing::{copy_shape, resolve_view};

impl PathBuilder<'_> {
    /// What becomes of an element; `when`: at which numbers it is read first, in words.
    pub(super) fn show_forward(&mut self, graph: &Graph, when: &str) {
        let shown = graph.shown();
        let mut ends: BTreeMap<usize, Option<usize>> = BTreeMap::new();
        let begin = self.link;
        let mut first = begin.map(|link| link.step);
        for &i in &shown {
            let node = &graph.nodes[i];
            let on = node.on.and_then(|on| graph.shown_for(on, &shown)).and_then(|on| ends.get(&on).copied().flatten());
            let on = match (node.on, on) {
                (None, _) => begin.map(|link| link.step),
                (Some(_), on) => on.or(first),
            };
            self.link = on.map(|step| Link { step, back: false });
            let own = if node.on.is_none() { when } else { "" };
            let end = self.written(node, own, &self.others(graph, i));
            if node.on.is_none() && first == begin.map(|link| link.step) {
                first = end.or(first);
            }
            ends.insert(i, end);
        }
        self.link = begin;
    }

    /// Where a statement writes further elements because of this one, in words.
    fn others(&self, graph: &Graph, shown: usize) -> String {
        let own = &graph.nodes[shown];
        let What::Write(place, spot) = &own.what else { return String::new() };
        if self.k.tensor_ty(*place).is_none() {
            return String::new();
        }
        let further = graph.nodes.iter().filter(|n| n.stmt == own.stmt);
        let mut texts: Vec<String> = Vec::new();
        for n in further {
            let What::Write(p, other) = &n.what else { continue };
            let same = n.further == own.further;
            if p != place || contains(spot, other) && same {
                continue;
            }
            let Some(what) = self.stored(n, other) else { continue };
            let through = if n.level > own.level { " through reductions or scans" } else { "" };
            let names: Vec<String> = n.further.iter().map(|v| format!("`{}`", self.k.values[*v].name)).collect();
            let further = match names.is_empty() {
                true => String::new(),
                false => format!(" in further iterations of {}", names.join(", ")),
            };
            let text = format!("{what}{through}{further}");
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        if texts.is_empty() { String::new() } else { format!("; it also goes into {}", texts.join(", ")) }
    }

    /// Elements of a tensor that a statement stores.
    fn stored(&self, node: &Node, spot: &[Run]) -> Option<String> {
        let StmtData::Copy { src, dst, .. } = self.k.stmts[node.stmt] else { return None };
        let view = resolve_view(self.k, dst)?;
        let shape = copy_shape(self.k, src, dst)?;
        Some(self.window_in_words(&view, spot, &shape, &node.numbers))
    }

    /// Steps of a statement that writes what is made of the element; the last of them.
    fn written(&mut self, node: &Node, when: &str, others: &str) -> Option<usize> {
        let k = self.k;
        let What::Write(place, spot) = &node.what else { return None };
        let span = k.stmt_spans[node.stmt];
        let around = self.circumstances(node);
        let back = self.link;
        let mut end = back.map(|link| link.step);
        for via in &node.via {
            let (at, what, text) = self.combining(node, via);
            end = self.push(at, what, format!("{text}{around}"), span);
            self.link = end.map(|step| Link { step, back: false });
        }
        let own = match (&k.stmts[node.stmt], k.tensor_ty(*place)) {
            (StmtData::Copy { .. }, Some(_)) => {
                let what = self.stored(node, spot)?;
                let how = self.moved(node.stmt);
                Some(("result", what, format!("{how}: {}{around}{others}", head(&self.plain, node.stmt))))
            }
            (StmtData::Copy { .. }, None) => {
                let who = self.mover(node.stmt, self.spot_of_copy(node, spot).as_deref().unwrap_or(spot));
                let sectors = self.sectors(node.stmt, false);
                let (how, who, sectors) = match self.taken(node.stmt, spot) {
                    Some(taken) => (taken, String::new(), String::new()),
                    None => (self.moved(node.stmt), who, sectors),
                };
                let when = if when.is_empty() { String::new() } else { format!("{when}: ") };
                Some(("copy", head(&self.plain, node.stmt), format!("{when}{how}{who}{sectors}{around}")))
            }
            _ if self.is_whole(node) => None,
            _ => {
                let what = self.place_in_words(*place, spot);
                let when = if when.is_empty() { String::new() } else { format!("{when}: ") };
                Some(("computed", head(&self.plain, node.stmt), format!("{when}{what} is computed with it{around}")))
            }
        };
        if let Some((at, what, text)) = own {
            end = self.push(at, what, text, span);
            self.link = end.map(|step| Link { step, back: false });
        }
        if k.tensor_ty(*place).is_none() {
            end = self.placed(*place, spot).or(end);
        }
        self.link = back;
        end
    }

    /// Where a copy moves what it writes at `spot` of its tile.
    fn spot_of_copy(&self, node: &Node, spot: &[Run]) -> Option<Vec<Run>> {
        let StmtData::Copy { src, dst, .. } = self.k.stmts[node.stmt] else { return None };
        let (view, shape) = (resolve_view(self.k, dst)?, copy_shape(self.k, src, dst)?);
        let window = super::windows::Window { solver: &self.solver, k: self.k, view: &view, shape: &shape };
        window.inside(spot, &node.numbers)
    }

    /// Whether a statement does nothing but combine.
    fn is_whole(&self, node: &Node) -> bool {
        let Some((src, Target::Whole(_), _)) = computes(self.k, node.stmt) else { return false };
        node.via.last().is_some_and(|via| via.e == src) || matches!(self.k.exprs[src], ExprData::Part { .. })
    }

    /// What an element is made of; `when`: at which numbers it is stored, in words.
    pub(super) fn show_backward(&mut self, graph: &Graph, when: &str) {
        let shown = graph.shown();
        let mut ends: BTreeMap<usize, Option<usize>> = BTreeMap::new();
        let begin = self.link;
        for &i in &shown {
            let node = &graph.nodes[i];
            let on = node.on.and_then(|on| graph.shown_for(on, &shown)).and_then(|on| ends.get(&on).copied().flatten());
            self.link = on.map_or(begin, |step| Some(Link { step, back: true }));
            let end = self.read_or_made(node, when);
            ends.insert(i, end);
        }
        self.link = begin;
    }

    fn read_or_made(&mut self, node: &Node, when: &str) -> Option<usize> {
        let k = self.k;
        let back = self.link;
        let span = k.stmt_spans[node.stmt];
        let (place, spot): (Value, &[Run]) = match &node.what {
            What::Read(window, spot) => {
                let (what, span) = self.read_in_words(*window, spot, &node.numbers)?;
                let how = self.outside(node, *window, spot).unwrap_or_else(|| "read".to_owned());
                return self.push("global memory", what, how, span);
            }
            What::Write(place, spot) => (*place, spot),
        };
        if self.is_constant(node) {
            return back.map(|link| link.step);
        }
        let around = self.circumstances(node);
        let mut end = back.map(|link| link.step);
        let mut steps: Vec<(&'static str, String, String)> = Vec::new();
        if k.tensor_ty(place).is_some() {
            let how = self.moved(node.stmt);
            steps.push((
                "result",
                head(&self.plain, node.stmt),
                format!("{when}: {how}{}", self.sectors(node.stmt, true)),
            ));
        } else {
            if let Some(here) = self.placed(place, spot) {
                end = Some(here);
                self.link = Some(Link { step: here, back: true });
            }
            let what = self.place_in_words(place, spot);
            match k.stmts[node.stmt] {
                StmtData::Copy { .. } => {
                    let how = self.taken(node.stmt, spot).unwrap_or_else(|| self.moved(node.stmt));
                    steps.push(("copy", head(&self.plain, node.stmt), format!("{how}{around}")));
                }
                _ if self.is_whole(node) => {}
                _ => steps.push(("computed", head(&self.plain, node.stmt), format!("gives {what}{around}"))),
            }
        }
        for via in &node.via {
            steps.push(self.made_by(node, via));
        }
        for (at, what, text) in steps {
            end = self.push(at, what, text, span);
            self.link = end.map(|step| Link { step, back: true });
        }
        self.link = back;
        end
    }

    /// Whether a statement computes with no tile and no tensor.
    fn is_constant(&self, node: &Node) -> bool {
        let k = self.k;
        let reads =
            |src| k.has_part(src, |e| resolve_view(k, e).is_some() || matches!(k.exprs[e], ExprData::Combine(_)));
        computes(k, node.stmt).is_some_and(|(src, _, _)| !reads(src))
    }
}
