//! IR to text: canonical and deterministic, and the parser reads it back to the same IR.
//!
//! One statement per line, four spaces per block, parentheses only where binding strength needs them, every number in a
//! form that parses to the same bits. Defaults of the grammar (`step 1`) are left out; everything a pass decided is shown.
//! The printer decides nothing and does not fail, also on IR that the verifier would refuse.

mod expr;
mod header;

use crate::entities::{Block, Expr, Stmt, Value};
use crate::kernel::{
    CopyAttrs, ENDLESS, ExprData, Kernel, Module, Range, Sequence, StmtData, StmtPlan, ValueDef, View,
};
use crate::literal::Literal;
use crate::loop_ends::{LoopEnds, implied, loop_variable};
use crate::types::{ArrivalCounts, ElemRef, Lanes, OrderedBarriers, Place, TileTy};
use expr::{Exprs, elem_text, float};

pub use expr::print_scalar;

use std::cell::OnceCell;

/// Columns that wrapped lists try to stay within.
const WIDTH: usize = 120;

/// Prints a file.
pub fn print_module(module: &Module) -> String {
    let kernels = module.kernels.iter().map(print);
    let sequences = module.sequences.iter().map(print_sequence);
    kernels.chain(sequences).collect::<Vec<_>>().join("\n")
}

/// Prints a sequence; the text ends with a line end.
pub fn print_sequence(sequence: &Sequence) -> String {
    let names: Vec<&str> = sequence.launches.iter().map(|(name, _)| name.as_str()).collect();
    format!("sequence {} {{ {} }}\n", sequence.name, names.join(", "))
}

/// Prints a kernel; the text ends with a line end.
pub fn print(kernel: &Kernel) -> String {
    whole(kernel).out
}

fn whole(kernel: &Kernel) -> Printer<'_> {
    let mut p = Printer::new(kernel);
    p.header();
    p.out.push_str("{\n");
    p.statements(kernel.body);
    p.out.push_str("}\n");
    p
}

/// A kernel as text, and the statement of each line.
#[derive(Clone, Debug)]
pub struct Printed {
    /// The text, as [`print()`] gives it.
    pub text: String,
    /// For each line its statement. If one statement ends on a line and another begins, the latter. `None`: the header,
    /// and the braces of the body.
    pub lines: Vec<Option<Stmt>>,
}

/// Prints a kernel with the statement of each line.
pub fn print_lines(kernel: &Kernel) -> Printed {
    let Printer { out: text, marks, .. } = whole(kernel);
    let mut marks = marks.into_iter().peekable();
    let (mut now, mut end) = (None, 0);
    let lines = text.split_inclusive('\n').map(|line| {
        end += line.len();
        while let Some((_, stmt)) = marks.next_if(|&(at, _)| at < end) {
            now = stmt;
        }
        now
    });
    let lines = lines.collect();
    Printed { text, lines }
}

/// Prints an expression.
pub fn print_expr(kernel: &Kernel, e: Expr) -> String {
    let mut p = Printer::new(kernel);
    p.expr(e);
    p.out
}

/// Prints the place of a copy. A window that the compiler named is spelled out.
pub fn print_place(kernel: &Kernel, e: Expr) -> String {
    let named = match kernel.exprs[e] {
        ExprData::Ref(v) if !kernel.values[v].declared => kernel.let_init(v),
        _ => None,
    };
    print_expr(kernel, named.unwrap_or(e))
}

/// Whether range `d` of a window would end with a loop if no end were written.
fn ends_with_its_loop(k: &Kernel, loops: &OnceCell<LoopEnds>, view: &View, d: usize) -> bool {
    let Range::From { start, .. } = view.ranges[d] else { return false };
    loop_variable(k, start).is_some() && implied(k, loops.get_or_init(|| LoopEnds::of(k)), view, d).is_some()
}

/// Prints what a name is declared as: `A: gmem f16[M, K] row`, `BM = 128`, `let a = smem f16[64, 32]`; `None`: it has no declaration of
/// its own (an index, a size) or is a `let` of an expression.
pub fn print_declaration(kernel: &Kernel, value: Value) -> Option<String> {
    let mut p = Printer::new(kernel);
    match &kernel.values[value].def {
        ValueDef::ConstParam(_) => p.compile_time_param(value),
        ValueDef::Tensor(_) | ValueDef::Scalar { .. } | ValueDef::Table(_) => p.param(value),
        ValueDef::Var(_) | ValueDef::Smem(_) | ValueDef::Channel { .. } => {
            p.put(if matches!(kernel.values[value].def, ValueDef::Var(_)) { "var " } else { "let " });
            p.value(value);
            p.put(" = ");
            p.place(value);
        }
        _ => return None,
    }
    Some(p.out)
}

/// Prints a statement with the blocks it owns; the text ends with a line end.
pub fn print_stmt(kernel: &Kernel, stmt: Stmt) -> String {
    let mut p = Printer::new(kernel);
    p.stmt(stmt);
    p.out.push('\n');
    p.out
}

/// Prints the first line of a statement: of one that owns blocks, up to the first of these.
pub fn print_head(kernel: &Kernel, stmt: Stmt) -> String {
    let mut p = Printer { heads: true, ..Printer::new(kernel) };
    p.stmt(stmt);
    p.out.truncate(p.out.find('\n').unwrap_or(p.out.len()));
    p.out
}

struct Printer<'k> {
    k: &'k Kernel,
    out: String,
    indent: usize,
    /// Of blocks the beginning alone.
    heads: bool,
    /// The loops of the kernel, once they are requested.
    loops: OnceCell<LoopEnds>,
    /// The statement being printed.
    at: Option<Stmt>,
    /// From which byte on the text is of which statement.
    marks: Vec<(usize, Option<Stmt>)>,
}

impl<'k> Printer<'k> {
    fn new(k: &'k Kernel) -> Printer<'k> {
        Printer { k, out: String::new(), indent: 0, heads: false, loops: OnceCell::new(), at: None, marks: Vec::new() }
    }
}

impl Printer<'_> {
    fn expr(&mut self, e: Expr) {
        let Printer { k, out, loops, indent, .. } = self;
        let ends = |view: &View, d: usize| ends_with_its_loop(k, loops, view, d);
        Exprs { k, out, ends_with_its_loop: &ends, indent: *indent }.expr(e);
    }

    fn elem_ref(&mut self, elem: ElemRef) {
        self.put(elem_text(self.k, elem));
    }

    fn number(&mut self, x: Literal) {
        match x {
            Literal::Int(x) => self.put(&x.to_string()),
            Literal::Float(bits) => self.put(&float(f64::from_bits(bits))),
        }
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn value(&mut self, v: Value) {
        let k = self.k;
        self.put(&k.values[v].name);
    }

    /// Items separated by `, `.
    fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        for (i, x) in items.iter().enumerate() {
            if i > 0 {
                self.put(", ");
            }
            item(self, x);
        }
    }

    /// The output of `f` as a separate text.
    fn text(&mut self, f: impl FnOnce(&mut Self)) -> String {
        let before = std::mem::take(&mut self.out);
        f(self);
        std::mem::replace(&mut self.out, before)
    }

    fn statements(&mut self, block: Block) {
        let k = self.k;
        self.indent += 1;
        for &s in &k.blocks[block] {
            self.stmt(s);
            self.put("\n");
        }
        self.indent -= 1;
        // What closes the block is of the statement around it.
        self.mark(self.at);
    }

    fn start_line(&mut self) {
        for _ in 0..self.indent {
            self.put("    ");
        }
    }

    fn block(&mut self, block: Block) {
        self.put("{\n");
        if self.heads {
            return;
        }
        self.statements(block);
        self.start_line();
        self.put("}");
    }

    fn stmt(&mut self, stmt: Stmt) {
        self.start_line();
        self.stmt_here(stmt);
    }

    /// What follows is of this statement.
    fn mark(&mut self, stmt: Option<Stmt>) {
        self.marks.push((self.out.len(), stmt));
    }

    /// `@(producer, stage 1, cycle 512) `.
    fn plan(&mut self, plan: StmtPlan) {
        let mut items = Vec::new();
        items.extend(plan.producer.then(|| "producer".to_owned()));
        items.extend(plan.stage.map(|n| format!("stage {n}")));
        items.extend(plan.cycle.map(|n| format!("cycle {n}")));
        items.extend(plan.ordered.then(|| "ordered".to_owned()));
        items.extend(plan.open.then(|| "open".to_owned()));
        items.extend(plan.ragged.then(|| "ragged".to_owned()));
        self.put(&format!("@({}) ", items.join(", ")));
    }

    /// ` full 1 empty 2 at 0 stride 8192 barriers 65536`: what the last passes have decided about a buffer or channel.
    fn machine(&mut self, v: Value) {
        if let Some(ArrivalCounts { full, empty }) = self.k.handovers[v] {
            self.put(&format!(" full {full} empty {empty}"));
        }
        if let Some(Place { offset, stride, barriers }) = self.k.shared_places[v] {
            self.put(&format!(" at {offset}"));
            stride.iter().for_each(|stride| self.put(&format!(" stride {stride}")));
            barriers.iter().for_each(|barriers| self.put(&format!(" barriers {barriers}")));
        }
    }

    /// ` elected`, ` spread`.
    fn lanes(&mut self, stmt: Stmt) {
        self.put(match self.k.lanes[stmt] {
            Some(Lanes::Elected) => " elected",
            Some(Lanes::Spread) => " spread",
            Some(Lanes::Changing) => " changing",
            None => "",
        });
    }

    fn stmt_here(&mut self, stmt: Stmt) {
        let around = self.at.replace(stmt);
        self.mark(self.at);
        self.statement(stmt);
        self.at = around;
    }

    fn statement(&mut self, stmt: Stmt) {
        let k = self.k;
        if k.plans[stmt].is_some() {
            self.plan(k.plans[stmt]);
        }
        match &k.stmts[stmt] {
            StmtData::Let { .. } | StmtData::Var { .. } | StmtData::Alloc { .. } => self.declaration(stmt),
            StmtData::For { .. } | StmtData::If { .. } | StmtData::Role { .. } => self.around_blocks(stmt),
            StmtData::Assign { dst, src } => {
                self.value(*dst);
                self.put(" = ");
                self.expr(*src);
                self.lanes(stmt);
            }
            StmtData::Copy { src, dst, attrs } => {
                self.put("copy ");
                self.expr(*src);
                self.put(" -> ");
                self.expr(*dst);
                self.copy_attrs(attrs);
                self.lanes(stmt);
            }
            StmtData::Channel { op, channels, pending } => {
                self.put(op.token());
                self.put(" ");
                self.list(channels, |p, &c| p.value(c));
                if let Some(n) = pending {
                    self.put(&format!(" pending {n}"));
                }
                if !k.expects[stmt].is_empty() {
                    self.put(" expect ");
                    self.list(&k.expects[stmt], |p, n| p.put(&n.to_string()));
                }
                self.lanes(stmt);
            }
            StmtData::Barrier => self.put("barrier"),
            StmtData::Fence => self.put("fence async"),
            StmtData::Await { value, pending, after } => {
                self.put("await ");
                self.value(*value);
                self.put(&format!(", {pending}"));
                if !after.is_empty() {
                    self.put(" after ");
                    self.list(after, |p, &v| p.value(v));
                }
                self.lanes(stmt);
            }
            StmtData::Signal { op, signals, index } => {
                self.put(op.token());
                self.put(" ");
                self.value(*signals);
                self.put("[");
                self.expr(*index);
                self.put("]");
            }
            StmtData::Ordered { body } => {
                self.put("ordered ");
                if let Some(OrderedBarriers { arrivals, at }) = k.ordered[stmt] {
                    self.put(&format!("arrivals {arrivals} "));
                    at.iter().for_each(|at| self.put(&format!("at {at} ")));
                }
                self.block(*body);
            }
        }
    }

    /// `let x = ..`, `var x = ..`.
    fn declaration(&mut self, stmt: Stmt) {
        let k = self.k;
        match &k.stmts[stmt] {
            StmtData::Let { value, init } => {
                self.put("let ");
                self.value(*value);
                self.put(" = ");
                self.expr(*init);
            }
            StmtData::Var { value, init } => {
                self.put("var ");
                self.value(*value);
                self.put(" = ");
                self.place(*value);
                if let Some(init) = init {
                    self.put(" = ");
                    self.expr(*init);
                }
            }
            StmtData::Alloc { value, over } => {
                self.put("let ");
                self.value(*value);
                self.put(" = ");
                self.place(*value);
                if !over.is_empty() {
                    self.put(" over ");
                    self.list(over, |p, &v| p.value(v));
                }
                self.machine(*value);
            }
            other => panic!("bug: no declaration: {other:?}"),
        }
    }

    /// Loops, branches and roles: what is around blocks.
    fn around_blocks(&mut self, stmt: Stmt) {
        let k = self.k;
        match &k.stmts[stmt] {
            StmtData::For { var, start, end, step, cond, next, unroll, body } => {
                self.put("for ");
                self.value(*var);
                self.put(" in ");
                self.expr(*start);
                self.put("..");
                match k.exprs[*end] {
                    ExprData::Int(ENDLESS) => self.put("inf"),
                    _ => self.expr(*end),
                }
                if !matches!(k.exprs[*step], ExprData::Int(1)) {
                    self.put(" step ");
                    self.expr(*step);
                }
                if let Some(cond) = cond {
                    self.put(" while ");
                    self.expr(*cond);
                }
                if let Some(next) = next {
                    self.put(" next ");
                    self.value(next.channel);
                    self.put(" from ");
                    self.value(next.counter);
                }
                self.put(if *unroll { " unroll" } else { "" });
                self.put(if k.recomputed[stmt] { " recompute" } else { "" });
                self.lanes(stmt);
                self.put(" ");
                self.block(*body);
            }
            StmtData::If { cond, then, otherwise } => {
                self.put("if ");
                self.expr(*cond);
                self.put(if k.recomputed[stmt] { " recompute " } else { " " });
                self.block(*then);
                if let Some(block) = otherwise {
                    self.put(" else ");
                    match k.blocks[*block][..] {
                        [only] if matches!(k.stmts[only], StmtData::If { .. }) && !k.plans[only].is_some() => {
                            self.stmt_here(only);
                        }
                        _ => self.block(*block),
                    }
                }
            }
            StmtData::Role { name, warps, replicas, registers, body } => {
                self.put(&format!("role {name} warps "));
                self.expr(*warps);
                if let Some(n) = replicas {
                    self.put(" replicas ");
                    self.expr(*n);
                }
                if let Some(r) = registers {
                    self.put(" registers ");
                    self.expr(*r);
                }
                self.lanes(stmt);
                self.put(" ");
                self.block(*body);
            }
            other => panic!("bug: no blocks: {other:?}"),
        }
    }

    /// `reg T[..]`, `smem T[..]`, `channel T[..] slots n`.
    fn place(&mut self, value: Value) {
        let k = self.k;
        match &k.values[value].def {
            ValueDef::Var(tile) => self.tile("reg", tile),
            ValueDef::Smem(tile) => self.tile("smem", tile),
            ValueDef::Channel { tile, slots } => {
                self.tile("channel", tile);
                self.put(" slots ");
                self.expr(*slots);
            }
            // Not a place: the verifier refuses it, and so does the parser.
            _ => self.put("?"),
        }
    }

    fn tile(&mut self, space: &str, tile: &TileTy) {
        self.put(space);
        self.put(" ");
        self.elem_ref(tile.elem);
        self.shape(&tile.shape);
        if let Some(order) = tile.order {
            self.put(&format!(" {}", order.name()));
        }
        if let Some(layout) = &tile.reg_layout {
            self.put(&format!(" layout {layout}"));
        }
        if let Some(partial) = &tile.partial {
            let lanes: Vec<String> = partial.lanes.iter().map(u32::to_string).collect();
            self.put(&format!(" partial {} ({})", partial.op.token(), lanes.join(", ")));
        }
        if let Some(layout) = &tile.smem_layout {
            self.put(&format!(" layout {layout}"));
        }
    }

    fn shape(&mut self, shape: &[Expr]) {
        self.put("[");
        self.list(shape, |p, &e| p.expr(e));
        self.put("]");
    }

    fn copy_attrs(&mut self, attrs: &CopyAttrs) {
        if let Some(n) = attrs.vec {
            self.put(&format!(" vec {n}"));
        }
        if let Some(n) = attrs.unaligned() {
            self.put(&format!(" unaligned {n}"));
        }
        if let Some(layout) = &attrs.threads {
            self.put(&format!(" threads {layout}"));
        }
        if let Some(dims) = &attrs.check {
            self.put(" check (");
            self.list(dims, |p, d| p.put(&d.to_string()));
            self.put(")");
        }
        if let Some(cond) = attrs.when {
            self.put(" when ");
            self.expr(cond);
        }
        // In front of the others, because it refers to `vec`.
        if let Some(word) = attrs.mechanism.word().filter(|_| attrs.unaligned().is_none()) {
            self.put(&format!(" {word}"));
        }
        if attrs.is_multicast() {
            self.put(" multicast");
        }
        if attrs.keep {
            self.put(" keep");
        }
        if let Some(fill) = attrs.fill {
            self.put(" fill ");
            self.number(fill);
        }
        if let Some(op) = attrs.reduce {
            self.put(" ");
            self.put(op.word());
        }
        if let Some(old) = attrs.old {
            self.put(" old ");
            self.expr(old);
        }
        if attrs.apart {
            self.put(" apart");
        }
        if !attrs.held.is_empty() {
            self.put(" held ");
            self.list(&attrs.held, |p, held| {
                p.expr(held.tile);
                p.put(" (");
                p.list(&held.offset, |p, n| p.put(&n.to_string()));
                p.put(")");
            });
        }
    }
}
