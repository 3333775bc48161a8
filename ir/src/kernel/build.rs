//! Making kernels: new entities, and copies of expressions.

use crate::diag::Span;
use crate::entities::{Block, Expr, Stmt, Value};
use crate::fix_locations::FixLocation;
use crate::kernel::{ExprData, Kernel, Mma, Range, Schedule, StmtData, Table, Totals, ValueData, ValueDef, View};
use crate::ops::Op;
use cranelift_entity::{PrimaryMap, SecondaryMap};

impl Kernel {
    /// An empty kernel.
    pub fn new(name: impl Into<String>) -> Kernel {
        let mut blocks = PrimaryMap::new();
        let body = blocks.push(Vec::new());
        Kernel {
            name: name.into(),
            name_span: Span::default(),
            values: Table::new(),
            exprs: Table::new(),
            stmts: Table::new(),
            blocks,
            expr_spans: SecondaryMap::new(),
            stmt_spans: SecondaryMap::new(),
            plans: SecondaryMap::new(),
            handovers: SecondaryMap::new(),
            expects: SecondaryMap::new(),
            lanes: SecondaryMap::new(),
            recomputed: SecondaryMap::new(),
            ordered: SecondaryMap::new(),
            shared_places: SecondaryMap::new(),
            const_params: Vec::new(),
            params: Vec::new(),
            sizes: Vec::new(),
            strides: Vec::new(),
            requires: Vec::new(),
            demands: Vec::new(),
            grid: Vec::new(),
            schedule: Schedule::default(),
            clauses: Vec::new(),
            fix_locations: Vec::new(),
            body,
            lets: SecondaryMap::new(),
            numbers_count: false,
            known: Default::default(),
        }
    }

    /// The span of the first occurrence of an optional word within `within`.
    pub fn clause(&self, within: Span, word: &str) -> Option<Span> {
        let inside = |span: Span| within.start <= span.start && span.end <= within.end;
        self.clauses.iter().find(|(w, span)| w == word && inside(*span)).map(|(_, span)| *span)
    }

    /// The span of an item of the schedule.
    pub fn schedule_item(&self, word: &str) -> Option<Span> {
        self.clause(self.schedule.span, word)
    }

    /// The innermost item of the schedule, or promise of a tensor, that a part of the source belongs to.
    pub fn item_around(&self, part: Span) -> Option<Span> {
        let around = |span: &Span| span.start <= part.start && part.end <= span.end;
        let promises =
            self.fix_locations.iter().filter(|(spot, _)| *spot == FixLocation::Multiple).map(|(_, span)| *span);
        let of_schedule = |span: &Span| self.schedule.span.start <= span.start && span.end <= self.schedule.span.end;
        let items = self.clauses.iter().map(|(_, span)| *span).filter(of_schedule);
        promises.chain(items).filter(around).min_by_key(|span| span.end - span.start)
    }

    /// The last spot of this kind within a span: for nested expressions, that of the outer one.
    pub fn spot(&self, within: Span, spot: FixLocation) -> Option<Span> {
        let inside = |span: Span| within.start <= span.start && span.end <= within.end;
        self.fix_locations.iter().rfind(|(m, span)| *m == spot && inside(*span)).map(|(_, span)| *span)
    }

    /// The spots of this kind after a span, in order.
    pub fn spots_behind(&self, span: Span, spot: FixLocation) -> impl Iterator<Item = Span> {
        let behind = self.fix_locations.iter().filter(move |(m, s)| *m == spot && span.end <= s.start);
        behind.map(|(_, span)| *span).filter(move |_| !span.is_none())
    }

    /// The span of an expression written as a number; `None`: it names something else, which other parts of the source
    /// may use.
    pub fn literal(&self, e: Expr) -> Option<Span> {
        let span = self.expr_spans[e];
        self.fix_locations.contains(&(FixLocation::Number, span)).then_some(span)
    }

    /// Sets whether integers count as indices where indices are expected, although that is not written.
    pub(crate) fn have_numbers_count(&mut self, count: bool) {
        self.numbers_count = count;
        self.known = Default::default();
    }

    /// How often an entry of the tables was borrowed mutably.
    pub(crate) fn changes(&self) -> u64 {
        self.values.changes() + self.exprs.changes() + self.stmts.changes()
    }

    /// Adds an expression node.
    pub fn expr(&mut self, data: ExprData, span: Span) -> Expr {
        let e = self.exprs.push(data);
        self.expr_spans[e] = span;
        e
    }

    /// Adds an integer literal.
    pub fn int(&mut self, value: i64, span: Span) -> Expr {
        self.expr(ExprData::Int(value), span)
    }

    /// Adds a reference to a value.
    pub fn value_ref(&mut self, value: Value, span: Span) -> Expr {
        self.expr(ExprData::Ref(value), span)
    }

    /// Adds a binary operation, folding integer literals and neutral elements.
    pub fn binary(&mut self, op: Op, a: Expr, b: Expr, span: Span) -> Expr {
        let folded = match (op, self.as_int(a), self.as_int(b)) {
            (Op::Add, Some(x), Some(y)) => x.checked_add(y),
            (Op::Sub, Some(x), Some(y)) => x.checked_sub(y),
            (Op::Mul, Some(x), Some(y)) => x.checked_mul(y),
            (Op::Add, Some(0), None) => return b,
            (Op::Add | Op::Sub, None, Some(0)) | (Op::Mul, None, Some(1)) => return a,
            (Op::Mul, Some(1), None) => return b,
            _ => None,
        };
        match folded {
            Some(x) => self.int(x, span),
            None => self.expr(ExprData::Op { op, args: vec![a, b] }, span),
        }
    }

    /// Adds a statement (to no block yet).
    pub fn stmt(&mut self, data: StmtData, span: Span) -> Stmt {
        let declared = if let StmtData::Let { value, .. } = data { Some(value) } else { None };
        let s = self.stmts.push(data);
        self.stmt_spans[s] = span;
        if let Some(value) = declared.filter(|&v| self.let_init(v).is_none()) {
            self.lets[value] = s.into();
            // The name stood for nothing up to here.
            self.known = Default::default();
        }
        s
    }

    /// Adds a block.
    pub fn block(&mut self, stmts: Vec<Stmt>) -> Block {
        self.blocks.push(stmts)
    }

    /// Replaces every statement of a block, and of nested blocks, by what `f` outputs for it; new statements take its
    /// plan.
    pub fn replace_statements(&mut self, b: Block, f: &mut dyn FnMut(&mut Kernel, Stmt, &mut Vec<Stmt>)) {
        let mut out = Vec::new();
        for s in self.blocks[b].clone() {
            for inner in self.sub_blocks(s) {
                self.replace_statements(inner, f);
            }
            let from = out.len();
            f(self, s, &mut out);
            for &new in &out[from..] {
                self.plans[new] = self.plans[s];
            }
        }
        self.blocks[b] = out;
    }

    /// Adds a named entity; if the name is taken, a number is appended.
    pub fn value(&mut self, name: &str, span: Span, def: ValueDef) -> Value {
        let name = self.fresh_name(name);
        self.values.push(ValueData { name, span, def, declared: false, padded: Vec::new() })
    }

    /// A name not yet taken, `base` itself if possible.
    pub fn fresh_name(&self, base: &str) -> String {
        let taken = |name: &str| self.values.values().any(|v| v.name == name);
        if !taken(base) {
            return base.to_owned();
        }
        (1u32..).map(|i| format!("{base}_{i}")).find(|name| !taken(name)).unwrap_or_else(|| base.to_owned())
    }

    /// Copies an expression tree, since an expression has one parent.
    pub fn copy_expr(&mut self, e: Expr) -> Expr {
        self.clone_expr(e, &mut |_, _| None)
    }

    /// Copies an expression tree; `subst` may replace a reference to a value by an expression of the caller's making.
    pub fn clone_expr(&mut self, e: Expr, subst: &mut dyn FnMut(&mut Kernel, Value) -> Option<Expr>) -> Expr {
        let span = self.expr_spans[e];
        let data = match self.exprs[e].clone() {
            d @ (ExprData::Int(_) | ExprData::Float(_)) => d,
            ExprData::Ref(v) => match subst(self, v) {
                Some(e) => return e,
                None => ExprData::Ref(v),
            },
            ExprData::Op { op, args } => {
                let args: Vec<Expr> = args.into_iter().map(|a| self.clone_expr(a, subst)).collect();
                if let [a, b] = args[..] {
                    return self.binary(op, a, b, span);
                }
                ExprData::Op { op, args }
            }
            ExprData::Cast { elem, arg } => ExprData::Cast { elem, arg: self.clone_expr(arg, subst) },
            ExprData::Bits { elem, arg } => ExprData::Bits { elem, arg: self.clone_expr(arg, subst) },
            ExprData::Round { elem, arg, word } => {
                ExprData::Round { elem, arg: self.clone_expr(arg, subst), word: self.clone_expr(word, subst) }
            }
            ExprData::Index(arg) => ExprData::Index(self.clone_expr(arg, subst)),
            ExprData::Reduce { op, axis, parts, arg } => {
                ExprData::Reduce { op, axis, parts, arg: self.clone_expr(arg, subst) }
            }
            ExprData::Scan { op, axis, exclusive, totals, arg } => {
                let arg = self.clone_expr(arg, subst);
                let totals = totals.map(|t| Totals { tile: self.clone_expr(t.tile, subst), ..t });
                ExprData::Scan { op, axis, exclusive, totals, arg }
            }
            ExprData::Combine(combine) => ExprData::Combine(Box::new(self.clone_combine(&combine, subst))),
            ExprData::Part { of, index } => ExprData::Part { of: self.clone_expr(of, subst), index },
            ExprData::Transpose(arg) => ExprData::Transpose(self.clone_expr(arg, subst)),
            ExprData::Permute { arg, order } => ExprData::Permute { arg: self.clone_expr(arg, subst), order },
            ExprData::Reshape { arg, shape, numbered } => ExprData::Reshape {
                arg: self.clone_expr(arg, subst),
                shape: shape.into_iter().map(|n| self.clone_expr(n, subst)).collect(),
                numbered,
            },
            ExprData::Concat { args, axis } => {
                ExprData::Concat { args: args.into_iter().map(|arg| self.clone_expr(arg, subst)).collect(), axis }
            }
            ExprData::Iota { axis, like } => ExprData::Iota { axis, like: self.clone_expr(like, subst) },
            ExprData::Lookup { table, index } => ExprData::Lookup { table, index: self.clone_expr(index, subst) },
            ExprData::Mma(m) => ExprData::Mma(Mma {
                a: self.clone_expr(m.a, subst),
                b: self.clone_expr(m.b, subst),
                c: self.clone_expr(m.c, subst),
                ..m
            }),
            ExprData::View(v) => {
                let ranges = v
                    .ranges
                    .into_iter()
                    .map(|r| match r {
                        Range::At(e) => Range::At(self.clone_expr(e, subst)),
                        Range::Gather(e) => Range::Gather(self.clone_expr(e, subst)),
                        Range::From { start, end } => Range::From {
                            start: self.clone_expr(start, subst),
                            end: end.map(|e| self.clone_expr(e, subst)),
                        },
                    })
                    .collect();
                ExprData::View(View { ranges, ..v })
            }
        };
        self.expr(data, span)
    }
}
