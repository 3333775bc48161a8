//! Kernel headers, in one line if it is not too long, else a group of like parameters per line.

use super::{Printer, WIDTH};
use crate::entities::{Expr, Value};
use crate::kernel::{ConstKind, ConstValue, ValueDef};
use crate::types::{DimStride, Mode, OrderRef, Scratch, Strides, TensorTy};

impl Printer<'_> {
    pub(super) fn header(&mut self) {
        let k = self.k;
        let consts = self.groups(&k.const_params, Self::compile_time_param);
        let params = self.groups(&k.params, Self::param);
        let start = format!("kernel {}", k.name);
        let angle = |inner: &str| if k.const_params.is_empty() { String::new() } else { format!("<{inner}>") };

        let one_line = format!("{start}{}({})", angle(&consts.concat().join(", ")), params.concat().join(", "));
        if one_line.len() <= WIDTH {
            self.put(&one_line);
        } else {
            let head = format!("{start}{}(\n    ", angle(&wrap(&consts, start.len() + 1)));
            self.put(&head);
            self.put(&wrap(&params, 4));
            self.put(")");
        }
        self.put("\n");
        self.clauses();
    }

    /// Texts of parameters, a group per run of like ones.
    fn groups(&mut self, values: &[Value], item: impl Fn(&mut Self, Value)) -> Vec<Vec<String>> {
        let k = self.k;
        let class = |v: Value| match &k.values[v].def {
            ValueDef::ConstParam(p) => match p.kind {
                ConstKind::Elem(_) => 0,
                ConstKind::Order => 1,
                ConstKind::Int => 2,
            },
            ValueDef::Tensor(_) => 3,
            _ => 4,
        };
        values
            .chunk_by(|&a, &b| class(a) == class(b))
            .map(|run| run.iter().map(|&v| self.text(|p| item(p, v))).collect())
            .collect()
    }

    pub(super) fn compile_time_param(&mut self, v: Value) {
        let k = self.k;
        self.value(v);
        let ValueDef::ConstParam(param) = &k.values[v].def else {
            return;
        };
        match &param.kind {
            ConstKind::Int if param.default.is_some() => {}
            ConstKind::Int => self.put(": int"),
            ConstKind::Elem(elems) if elems.is_empty() => self.put(": type"),
            ConstKind::Elem(elems) => {
                let names: Vec<&str> = elems.iter().map(|e| e.name()).collect();
                self.put(": ");
                self.put(&names.join(" | "));
            }
            ConstKind::Order => self.put(": layout"),
        }
        match param.default {
            None => {}
            Some(ConstValue::Auto { promised: false }) => self.put(" = auto"),
            Some(ConstValue::Auto { promised: true }) => self.put(" = auto promised"),
            Some(ConstValue::Same(v)) => {
                self.put(" = ");
                self.value(v);
            }
            Some(value) => self.put(&value.text().map_or_else(String::new, |text| format!(" = {text}"))),
        }
    }

    pub(super) fn param(&mut self, v: Value) {
        let k = self.k;
        self.value(v);
        self.put(": ");
        match &k.values[v].def {
            ValueDef::Tensor(t) => self.tensor(t),
            ValueDef::Scalar { elem, default } => {
                self.elem_ref(*elem);
                if let Some(e) = default {
                    self.put(" = ");
                    self.expr(*e);
                }
            }
            ValueDef::Table(t) => {
                self.put("const ");
                self.elem_ref(t.elem);
                self.put(&format!("[{}] = (", t.values.len()));
                self.list(&t.values, |p, &x| p.number(x));
                self.put(")");
            }
            // Not a parameter: the verifier refuses it, and so does the parser.
            _ => self.put("?"),
        }
    }

    fn tensor(&mut self, t: &TensorTy) {
        self.put(if t.is_of_cluster() { "dsmem " } else { "gmem " });
        self.elem_ref(t.elem);
        self.put("[");
        for (d, &e) in t.shape.iter().enumerate() {
            self.put(if d > 0 { ", " } else { "" });
            match t.modes(d) {
                _ if t.repeats.contains(&d) => self.put("_"),
                Some(modes) => self.tuple(modes, |m| m.extent),
                None => self.expr(e),
            }
        }
        self.put("]");
        if t.is_of_cluster() {
            return;
        }
        match &t.strides {
            Strides::Ordered(OrderRef::Known(order)) => self.put(&format!(" {}", order.name())),
            Strides::Ordered(OrderRef::Param(v)) => {
                self.put(" ");
                self.value(*v);
            }
            Strides::Explicit(list) => {
                self.put(" strides (");
                self.list(list, |p, stride| match stride {
                    DimStride::One(e) => p.expr(*e),
                    DimStride::Modes(modes) => p.tuple(modes, |m| m.stride),
                });
                self.put(")");
            }
        }
        if !t.padded.is_empty() {
            self.put(" padded (");
            self.list(&t.padded, |p, padded| {
                p.value(padded.stride);
                p.put(": ");
                p.expr(padded.extent);
                p.put(" behind ");
                p.expr(padded.behind);
            });
            self.put(")");
        }
        if t.pointers {
            self.put(" pointers");
        }
        if let Some((_, word)) = Scratch::OF_HOST.iter().find(|&&(scratch, _)| t.scratch == Some(scratch)) {
            self.put(&format!(" {word}"));
        }
        if let Some(n) = t.multiple {
            self.put(" multiple ");
            self.expr(n);
        }
        if let Some(bytes) = t.align {
            self.put(&format!(" align {bytes}"));
        }
        if t.constant {
            self.put(" constant");
        }
    }

    fn tuple(&mut self, modes: &[Mode], part: impl Fn(&Mode) -> Expr) {
        self.put("(");
        self.list(modes, |p, m| p.expr(part(m)));
        self.put(")");
    }

    fn clauses(&mut self) {
        let k = self.k;
        if !k.requires.is_empty() {
            let preconditions: Vec<String> = k.requires.iter().map(|&e| self.text(|p| p.expr(e))).collect();
            self.put("    where ");
            self.put(&wrap(&[preconditions], 10));
            self.put("\n");
        }
        if !k.grid.is_empty() {
            self.put("    grid (");
            self.list(&k.grid, |p, axis| {
                p.value(axis.index);
                p.put(": ");
                p.expr(axis.extent);
            });
            self.put(")\n");
        }
        self.schedule();
        if !k.demands.is_empty() {
            let demands: Vec<String> = k.demands.iter().map(ToString::to_string).collect();
            self.put("    require ");
            self.put(&wrap(&[demands], 12));
            self.put("\n");
        }
    }

    fn schedule_item(&mut self, name: &str, e: Option<Expr>) {
        if let Some(e) = e {
            self.put(&format!(" {name} "));
            self.expr(e);
        }
    }

    fn schedule(&mut self) {
        let s = &self.k.schedule;
        let items = self.text(|p| {
            if let Some(target) = s.target {
                p.put(&format!(" target {}", target.name()));
            }
            p.schedule_item("threads", s.threads);
            if let Some((m, n)) = s.warp_tile {
                p.put(" warp_tile (");
                p.list(&[m, n], |p, &e| p.expr(e));
                p.put(")");
            }
            p.schedule_item("k_warps", s.k_warps);
            p.schedule_item("ctas", s.ctas);
            p.schedule_item("stages", s.stages);
            p.schedule_item("raster", s.raster);
            p.schedule_item("promote", s.promote);
            p.schedule_item("pending", s.pending);
            p.schedule_item("ping_pong", s.ping_pong);
            p.schedule_item("min_ctas", s.min_ctas);
            p.schedule_item("align_rows", s.align_rows);
            p.schedule_item("stage_stores", s.stage_stores);
            p.schedule_item("stream_k", s.stream_k);
            p.schedule_item("split_k", s.split_k);
            p.schedule_item("queue", s.queue);
            p.schedule_item("overlap", s.overlap);
            if !s.cluster.is_empty() {
                p.put(" cluster (");
                p.list(&s.cluster, |p, &e| p.expr(e));
                p.put(")");
            }
        });
        if !items.is_empty() {
            self.put(&format!("    schedule {{{items} }}\n"));
        }
    }
}

/// Comma-separated items: a new line for every group and where a line would become too long. Lines after the first begin
/// at column `indent`, where the first is taken to begin too.
fn wrap(groups: &[Vec<String>], indent: usize) -> String {
    let mut out = String::new();
    let mut column = indent;
    for (g, group) in groups.iter().enumerate() {
        for (i, item) in group.iter().enumerate() {
            let width = item.len() + 2;
            if g > 0 || i > 0 {
                if i == 0 || column + width > WIDTH {
                    out.push_str(",\n");
                    out.push_str(&" ".repeat(indent));
                    column = indent;
                } else {
                    out.push_str(", ");
                }
            }
            out.push_str(item);
            column += width;
        }
    }
    out
}
