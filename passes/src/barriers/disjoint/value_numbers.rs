//! Value numbering of index expressions: two expressions with the same number are equal.
//!
//! `strip * 1` and `strip` have one number, and so have `4 * ceildiv(N, 64)` and `let g = 4` .. `g * ceildiv(N, 64)`.
//! The rules are those of [`fold_tree`](crate::analysis::fold::fold_tree) and `Kernel::binary`, so that a rewritten
//! expression keeps its number. Every expression is entered once, however often names repeat it.

use std::collections::{BTreeMap, BTreeSet};
use tilec_ir::entities::{Expr, Value};
use tilec_ir::index::{self, Scalar};
use tilec_ir::index_values::is_constant;
use tilec_ir::kernel::{ExprData, Kernel, Range, StmtData, ValueDef};
use tilec_ir::ops::Op;
use tilec_ir::types::{Elem, ElemRef};
use tilec_ir::typing::let_init;

/// Most expressions that one query about sums or bounds visits.
const WORK: u32 = 1000;

/// The number of an expression.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Form(usize);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Node {
    Int(i64),
    /// A size, a parameter, a grid index, the variable of a loop.
    Name(Value),
    Op(Op, Vec<Form>),
    /// A number in an index: an element of a tensor, or a value computed from elements in registers.
    Element(Value, Vec<Form>),
    Computed(Op, Vec<Form>),
    Converted(Elem, Form),
    /// Equal only to itself.
    Opaque(Expr),
}

/// A constant plus multiples of terms that are no sums.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Sum {
    pub(super) first: i64,
    pub(super) terms: BTreeMap<Form, i64>,
}

impl Sum {
    /// Adds `by` times another.
    pub(super) fn add(&mut self, other: &Sum, by: i64) -> Option<()> {
        self.first = self.first.checked_add(other.first.checked_mul(by)?)?;
        for (&form, &times) in &other.terms {
            let sum = self.terms.entry(form).or_default();
            *sum = sum.checked_add(times.checked_mul(by)?)?;
        }
        self.terms.retain(|_, times| *times != 0);
        Some(())
    }
}

/// The numbered expressions of a kernel.
pub(super) struct Forms<'k> {
    pub(super) k: &'k Kernel,
    nodes: Vec<Node>,
    numbers: BTreeMap<Node, Form>,
    names: BTreeMap<Value, Form>,
    /// Names of scalar numbers in indices.
    scalars: BTreeMap<Value, Form>,
}

impl<'k> Forms<'k> {
    /// `same`: variables of loops with the same iterations; the second one is replaced by the first.
    pub(super) fn new(k: &'k Kernel, same: Option<(Value, Value)>) -> Forms<'k> {
        let mut forms =
            Forms { k, nodes: Vec::new(), numbers: BTreeMap::new(), names: BTreeMap::new(), scalars: BTreeMap::new() };
        if let Some((one, other)) = same {
            let form = forms.name(one);
            forms.names.insert(other, form);
        }
        // The value of a name only uses names in front of it.
        k.walk(k.body, &mut |k, _, s| {
            if let StmtData::Let { value, init } = k.stmts[s] {
                let form = forms.of(init);
                forms.names.insert(value, form);
            }
        });
        forms
    }

    fn node(&mut self, node: Node) -> Form {
        if let Some(&form) = self.numbers.get(&node) {
            return form;
        }
        let form = Form(self.nodes.len());
        self.nodes.push(node.clone());
        self.numbers.insert(node, form);
        form
    }

    pub(super) fn of(&mut self, e: Expr) -> Form {
        match &self.k.exprs[e] {
            ExprData::Int(n) => self.int(*n),
            ExprData::Ref(v) => self.name(*v),
            ExprData::Op { op, args } => {
                let args = args.iter().map(|&a| self.of(a)).collect();
                self.op(*op, args)
            }
            ExprData::Index(arg) if is_constant(self.k, *arg) => self.number(*arg),
            _ => self.node(Node::Opaque(e)),
        }
    }

    /// A scalar in a register, or an element in memory, that does not change.
    fn number(&mut self, e: Expr) -> Form {
        let k = self.k;
        let node = match &k.exprs[e] {
            ExprData::Ref(v) => match let_init(k, *v) {
                Some(init) => return self.named_number(*v, init),
                None if matches!(k.values[*v].def, ValueDef::Scalar { .. }) => Node::Name(*v),
                None => Node::Opaque(e),
            },
            ExprData::View(view) => {
                let at = |range: &Range| match range {
                    Range::At(at) => Some(*at),
                    Range::From { .. } | Range::Gather(_) => None,
                };
                match view.ranges.iter().map(at).collect::<Option<Vec<Expr>>>() {
                    Some(at) => Node::Element(view.base, at.into_iter().map(|e| self.of(e)).collect()),
                    None => Node::Opaque(e),
                }
            }
            ExprData::Cast { elem: ElemRef::Known(elem), arg } => Node::Converted(*elem, self.number(*arg)),
            ExprData::Op { op, args } => Node::Computed(*op, args.iter().map(|&arg| self.number(arg)).collect()),
            ExprData::Int(_) | ExprData::Index(_) => return self.of(e),
            _ => Node::Opaque(e),
        };
        self.node(node)
    }

    /// The form of a name's number. Each name is evaluated once, after the names that it uses.
    fn named_number(&mut self, v: Value, init: Expr) -> Form {
        if let Some(&form) = self.scalars.get(&v) {
            return form;
        }
        for (v, init) in self.k.names_below(init, |v| self.scalars.contains_key(&v)) {
            let form = self.number(init);
            self.scalars.insert(v, form);
        }
        let form = self.number(init);
        self.scalars.insert(v, form);
        form
    }

    pub(super) fn int(&mut self, n: i64) -> Form {
        self.node(Node::Int(n))
    }

    pub(super) fn name(&mut self, v: Value) -> Form {
        match self.names.get(&v) {
            Some(&form) => form,
            None => self.node(Node::Name(v)),
        }
    }

    pub(super) fn op(&mut self, op: Op, args: Vec<Form>) -> Form {
        let ints: Vec<Option<i64>> = args.iter().map(|&a| self.as_int(a)).collect();
        let folded = match ints[..] {
            [Some(x)] => index::unary(op, x).ok().and_then(Scalar::int),
            [Some(x), Some(y)] => index::binary(op, x, y).ok().and_then(Scalar::int),
            [x, y] if index::is_zero(op, [x, y]) => Some(0),
            _ => None,
        };
        if let Some(x) = folded {
            return self.int(x);
        }
        if let [x, y] = ints[..]
            && let Some(operand) = index::unchanged(op, [x, y])
        {
            return args[operand];
        }
        self.node(Node::Op(op, args))
    }

    pub(super) fn binary(&mut self, op: Op, a: Form, b: Form) -> Form {
        self.op(op, vec![a, b])
    }

    /// The number of an operation on two expressions, if the kernel contains it.
    pub(super) fn known(&self, op: Op, a: Form, b: Form) -> Option<Form> {
        self.numbers.get(&Node::Op(op, vec![a, b])).copied()
    }

    pub(super) fn as_int(&self, form: Form) -> Option<i64> {
        match self.nodes[form.0] {
            Node::Int(n) => Some(n),
            _ => None,
        }
    }

    /// The operands of an expression, if it applies the operator `op`.
    pub(super) fn args<const N: usize>(&self, form: Form, op: Op) -> Option<[Form; N]> {
        match &self.nodes[form.0] {
            Node::Op(o, args) if *o == op => args[..].try_into().ok(),
            _ => None,
        }
    }

    /// An expression as a sum.
    pub(super) fn sum(&self, form: Form) -> Option<Sum> {
        let mut sum = Sum::default();
        let mut rest = vec![(form, 1i64)];
        for _ in 0..WORK {
            let Some((form, by)) = rest.pop() else {
                sum.terms.retain(|_, times| *times != 0);
                return Some(sum);
            };
            match &self.nodes[form.0] {
                Node::Int(n) => sum.first = sum.first.checked_add(n.checked_mul(by)?)?,
                Node::Op(Op::Add, args) => rest.extend(args.iter().map(|&a| (a, by))),
                Node::Op(Op::Sub, args) if args.len() == 2 => {
                    rest.extend([(args[0], by), (args[1], by.checked_neg()?)]);
                }
                Node::Op(Op::Neg, args) => rest.extend(args.iter().map(|&a| (a, -by))),
                Node::Op(Op::Mul, args) if args.iter().any(|&a| self.as_int(a).is_some()) => {
                    let &[a, b] = &args[..] else { return None };
                    let (n, other) = match self.as_int(a) {
                        Some(n) => (n, b),
                        None => (self.as_int(b)?, a),
                    };
                    rest.push((other, by.checked_mul(n)?));
                }
                _ => {
                    let times = sum.terms.entry(form).or_default();
                    *times = times.checked_add(by)?;
                }
            }
        }
        None
    }

    /// Whether an expression consists only of literals and of names that `names` accepts.
    pub(super) fn only_names(&self, form: Form, names: &dyn Fn(Value) -> bool) -> bool {
        let mut seen = BTreeSet::from([form]);
        let mut rest = vec![form];
        while let Some(form) = rest.pop() {
            match &self.nodes[form.0] {
                Node::Int(_) => {}
                Node::Name(v) if names(*v) => {}
                Node::Name(_) | Node::Opaque(_) => return false,
                Node::Converted(_, arg) => rest.extend(Some(*arg).filter(|&arg| seen.insert(arg))),
                // An element is constant if its index is.
                Node::Op(_, args) | Node::Element(_, args) | Node::Computed(_, args) => {
                    rest.extend(args.iter().filter(|&&a| seen.insert(a)))
                }
            }
        }
        true
    }

    /// Whether `a <= b` follows from `min`, literals, and products of non-negative factors.
    pub(super) fn at_most(&self, a: Form, b: Form) -> bool {
        let mut work = WORK;
        self.bounded(a, b, &mut work)
    }

    fn bounded(&self, a: Form, b: Form, work: &mut u32) -> bool {
        let Some(left) = work.checked_sub(1) else { return false };
        *work = left;
        if a == b || self.as_int(a).zip(self.as_int(b)).is_some_and(|(x, y)| x <= y) {
            return true;
        }
        if let Some([x, y]) = self.args(a, Op::Min) {
            return self.bounded(x, b, work) || self.bounded(y, b, work);
        }
        match (self.args::<2>(a, Op::Mul), self.args::<2>(b, Op::Mul)) {
            (Some([x, n]), Some([y, m])) => n == m && self.bounded(x, y, work),
            _ => false,
        }
    }

    /// Whether an expression is obviously positive: sizes, and ceiling quotients of sizes, are.
    pub(super) fn positive(&self, form: Form) -> bool {
        let mut work = WORK;
        self.above_zero(form, &mut work)
    }

    fn above_zero(&self, form: Form, work: &mut u32) -> bool {
        let Some(left) = work.checked_sub(1) else { return false };
        *work = left;
        match &self.nodes[form.0] {
            Node::Int(n) => *n > 0,
            Node::Name(v) => matches!(self.k.values[*v].def, ValueDef::Size),
            Node::Op(Op::Max, args) => args.iter().any(|&a| self.above_zero(a, work)),
            Node::Op(Op::Min | Op::Mul | Op::CeilDiv | Op::Add, args) => args.iter().all(|&a| self.above_zero(a, work)),
            Node::Op(..) | Node::Opaque(_) | Node::Element(..) | Node::Computed(..) | Node::Converted(..) => false,
        }
    }

    /// The value of an expression that depends on a name only through its remainder, for the remainder `rest` modulo
    /// `by`.
    pub(super) fn at_remainder(&self, form: Form, name: Form, by: i64, rest: i64) -> Option<i64> {
        let mut work = WORK;
        self.valued(form, (name, by, rest), &mut work)
    }

    fn valued(&self, form: Form, (name, by, rest): (Form, i64, i64), work: &mut u32) -> Option<i64> {
        *work = work.checked_sub(1)?;
        match &self.nodes[form.0] {
            Node::Int(n) => Some(*n),
            Node::Op(Op::Rem, args) if args[0] == name && self.as_int(args[1]) == Some(by) => Some(rest),
            Node::Op(op, args) => {
                let &[a, b] = &args[..] else { return None };
                let (a, b) = (self.valued(a, (name, by, rest), work)?, self.valued(b, (name, by, rest), work)?);
                index::binary(*op, a, b).ok()?.int()
            }
            Node::Name(_) | Node::Opaque(_) | Node::Element(..) | Node::Computed(..) | Node::Converted(..) => None,
        }
    }
}
