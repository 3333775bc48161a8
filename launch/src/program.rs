//! Programs of several kernels: the order of launches, shared parameters, and tensors that the host need not provide.
//!
//! A program launches kernels one after the other; each sees what earlier ones wrote. Parameters of one name are the
//! same number or the same tensor. A tensor that is written before it is read, and only read at last, is a *temporary*:
//! the host allocates it, and its initial and final contents do not matter. A single kernel is a program too.

pub use crate::contract::{Program, Temporary};

use crate::bind::{BindError, Bound, TensorPlan, bind};
use crate::contract::number::Args;
use crate::contract::{Access, Contract, Dimension, Param, ParamKind, TensorParam};
use std::collections::BTreeMap;

/// Why kernels make no program, in words.
pub type Misfits = Vec<String>;

impl Program {
    /// The program that launches these kernels in this order.
    ///
    /// # Errors
    /// Parameters of one name are different things.
    pub fn new(name: &str, launches: &[&Contract]) -> Result<Program, Misfits> {
        let mut misfits = Vec::new();
        for (i, contract) in launches.iter().enumerate() {
            for param in &contract.params {
                let earlier = launches[..i].iter().find_map(|c| Some((*c, c.param(&param.name)?)));
                if let Some((first, what)) = earlier.and_then(|(c, other)| Some((c, differs(other, param)?))) {
                    let (name, of) = (&param.name, &first.entry);
                    misfits.push(format!("`{name}` of `{}` and of `{of}` have {what}", contract.entry));
                }
            }
        }
        let constant =
            |c: &&Contract, name: &str| c.param(name).and_then(|p| p.kind.tensor()).is_some_and(|t| t.constant);
        for contract in launches {
            let written = contract.params.iter().filter(|p| p.kind.tensor().is_some_and(|t| t.access.writes()));
            for name in written.map(|p| &p.name) {
                if let Some(reader) = launches.iter().find(|c| constant(c, name)) {
                    let (of, by) = (&reader.entry, &contract.entry);
                    misfits.push(format!("`{name}` is `constant` in `{of}`, and `{by}` writes it"));
                }
            }
        }
        if !misfits.is_empty() {
            misfits.dedup();
            return Err(misfits);
        }
        let is_temporary = |name: &str| {
            let uses: Vec<&ParamKind> = launches.iter().filter_map(|c| Some(&c.param(name)?.kind)).collect();
            let access = |kind: Option<&&ParamKind>| match kind {
                Some(ParamKind::Tensor(tensor)) if tensor.scratch.is_none() => Some(tensor.access),
                _ => None,
            };
            access(uses.first()) == Some(Access::Write) && access(uses.last()) == Some(Access::Read)
        };
        let temporaries = names(launches).filter(|name| is_temporary(name)).map(|name| {
            let all = launches.iter().filter_map(|c| c.param(name)?.kind.tensor());
            let align = all.clone().map(|t| t.align).max().unwrap_or(1);
            Temporary { name: name.to_owned(), align, bytes: all.take(1).map(bytes).collect() }
        });
        Ok(Program {
            name: name.to_owned(),
            launches: launches.iter().map(|c| c.entry.clone()).collect(),
            temporaries: temporaries.collect(),
        })
    }
}

/// The names of all parameters, each once, in the order of the launches.
fn names<'a>(launches: &'a [&Contract]) -> impl Iterator<Item = &'a str> {
    let all = launches.iter().enumerate().flat_map(|(i, c)| c.params.iter().map(move |p| (i, p.name.as_str())));
    all.filter(|(i, name)| launches[..*i].iter().all(|c| c.param(name).is_none())).map(|(_, name)| name)
}

/// In what two parameters of one name differ that are to be the same.
fn differs(a: &Param, b: &Param) -> Option<&'static str> {
    let same = |x: &TensorParam, y: &TensorParam| match () {
        () if x.elem != y.elem => Some("different element types"),
        () if x.shape != y.shape => Some("different shapes"),
        () if x.strides != y.strides => Some("different strides"),
        () => None,
    };
    match (&a.kind, &b.kind) {
        (ParamKind::Tensor(x), ParamKind::Tensor(y)) | (ParamKind::Pointers(x), ParamKind::Pointers(y)) => same(x, y),
        // Strides of packed tensors differ if the tensors do.
        // Each kernel has descriptors of its own.
        (ParamKind::TensorMap(_), ParamKind::TensorMap(_)) => None,
        (ParamKind::Size { .. }, ParamKind::Size { .. }) | (ParamKind::Stride { .. }, ParamKind::Stride { .. }) => None,
        (ParamKind::Scalar { elem: x, default: d }, ParamKind::Scalar { elem: y, default: e }) => match () {
            () if x != y => Some("different types"),
            // Defaults of NaN are equal.
            () if d.zip(*e).is_some_and(|(d, e)| !d.same(e)) => Some("different defaults"),
            () => None,
        },
        _ => Some("nothing but the name in common"),
    }
}

/// The tensors that `over` may alias, whichever variants are launched. Exactly one launch must use such a tensor, every
/// variant of it must allow the alias, and no later launch may use it. Each launch is given as its variants; a launch
/// without a choice has one.
pub fn may_alias<'c, V: AsRef<[&'c Contract]>>(launches: &[V], over: &str) -> Vec<String> {
    let uses = |launch: &V, name: &str| launch.as_ref().iter().any(|c| c.param(name).is_some());
    let mut users = launches.iter().enumerate().filter(|(_, launch)| uses(launch, over));
    let (Some((at, launch)), None) = (users.next(), users.next()) else { return Vec::new() };
    let variants = launch.as_ref();
    let allowed = |c: &Contract| Some(c.param(over)?.kind.tensor()?.may_alias.clone());
    let mut all = variants.first().and_then(|c| allowed(c)).unwrap_or_default();
    all.retain(|under| {
        let everywhere = variants.iter().all(|c| allowed(c).is_some_and(|these| these.contains(under)));
        everywhere && launches[at + 1..].iter().all(|launch| !uses(launch, under))
    });
    all
}

/// Launches that are decided, as [`may_alias`] takes them.
pub fn decided<'c>(launches: &[&'c Contract]) -> Vec<[&'c Contract; 1]> {
    launches.iter().map(|c| [*c]).collect()
}

/// The bytes of a tensor, as an expression.
pub(crate) fn bytes(tensor: &TensorParam) -> String {
    let one = |text: &str| {
        let word = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if word { text.to_owned() } else { format!("({text})") }
    };
    let (shape, strides) =
        (tensor.shape.iter().flat_map(Dimension::parts), tensor.strides.iter().flat_map(Dimension::parts));
    let reach = shape.zip(strides).map(|(n, s)| match s.as_str() {
        "1" => format!("{} - 1", one(n)),
        s => format!("({} - 1) * {}", one(n), one(s)),
    });
    let elements: Vec<String> = reach.chain(["1".to_owned()]).collect();
    let elements = elements.join(" + ");
    match tensor.elem.size().whole_bytes() {
        Some(bytes) => format!("({elements}) * {bytes}"),
        None => format!("ceildiv(({elements}) * {}, 8)", tensor.elem.bits()),
    }
}

/// The launches of a program worked out.
#[derive(Clone, PartialEq, Debug)]
pub struct BoundProgram {
    /// Each launch, in order.
    pub launches: Vec<Bound>,
    /// The tensors of all of them, each once. Their access is that of the whole: read, if what was there before is.
    pub tensors: Vec<TensorPlan>,
    /// The value of every size, stride and scalar.
    pub values: Args,
}

impl BoundProgram {
    /// A tensor.
    pub fn tensor(&self, name: &str) -> Option<&TensorPlan> {
        self.tensors.iter().find(|t| t.name == name)
    }
}

/// Works out the launches of a program with `args`.
///
/// # Errors
/// Everything that keeps a kernel from being launched with these arguments, each thing once.
pub fn bind_program(launches: &[&Contract], args: &Args) -> Result<BoundProgram, Vec<BindError>> {
    let mut errors: Vec<BindError> = Vec::new();
    let takes = |contract: &Contract, name: &str| contract.param(name).is_some_and(|p| p.kind.is_value());
    for name in args.keys().filter(|name| launches.iter().all(|c| !takes(c, name))) {
        let value = |name: &&str| launches.iter().any(|c| takes(c, name));
        let known = names(launches).filter(value).map(str::to_owned).collect();
        errors.push(BindError::Unknown { name: name.clone(), known });
    }
    // A scalar has its default in all kernels if it has one in any.
    let mut args = args.clone();
    for param in launches.iter().flat_map(|c| &c.params) {
        if let ParamKind::Scalar { default: Some(x), .. } = param.kind {
            args.entry(param.name.clone()).or_insert(x);
        }
    }
    let mut bound = BoundProgram { launches: Vec::new(), tensors: Vec::new(), values: Args::new() };
    for contract in launches {
        let own = args.iter().filter(|(name, _)| takes(contract, name)).map(|(name, x)| (name.clone(), *x)).collect();
        match bind(contract, &own) {
            Ok(launch) => {
                bound.values.extend(launch.values.clone());
                for plan in &launch.tensors {
                    add(&mut bound.tensors, plan);
                }
                bound.launches.push(launch);
            }
            Err(all) => {
                for error in all {
                    merge(&mut errors, error);
                }
            }
        }
    }
    if errors.is_empty() { Ok(bound) } else { Err(errors) }
}

/// Adds a later use of a tensor.
fn add(tensors: &mut Vec<TensorPlan>, plan: &TensorPlan) {
    match tensors.iter_mut().find(|t| t.name == plan.name) {
        None => tensors.push(plan.clone()),
        Some(known) => {
            if plan.access.writes() && !known.access.writes() {
                known.access = Access::ReadWrite;
            }
            known.reads_gaps |= plan.reads_gaps;
        }
    }
}

/// Adds an error unless it is known; names that are missing are named together.
fn merge(errors: &mut Vec<BindError>, error: BindError) {
    if let BindError::Missing { names } = &error
        && let Some(BindError::Missing { names: all }) =
            errors.iter_mut().find(|e| matches!(e, BindError::Missing { .. }))
    {
        let new: Vec<String> = names.iter().filter(|n| !all.contains(n)).cloned().collect();
        all.extend(new);
    } else if !errors.contains(&error) {
        errors.push(error);
    }
}

/// Tensors that are at the address of others: written one, read one.
pub type Aliases = BTreeMap<String, String>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::number::Number;
    use crate::contract::tests::gemm;
    use pretty_assertions::assert_eq;
    use tilec_core::elem::Elem;

    fn scalar(contract: &mut Contract, name: &str, value: Option<f64>) {
        for param in contract.params.iter_mut().filter(|p| p.name == name) {
            param.kind = ParamKind::Scalar { elem: Elem::F32, default: value.map(Number::Float) };
        }
    }

    fn access(contract: &mut Contract, name: &str, access: Access) {
        for param in contract.params.iter_mut().filter(|p| p.name == name) {
            if let ParamKind::Tensor(tensor) = &mut param.kind {
                tensor.access = access;
            }
        }
    }

    /// Two kernels, of which the first leaves C to the second, which writes D.
    fn two() -> [Contract; 2] {
        let (mut first, mut second) = (gemm(), gemm());
        access(&mut first, "C", Access::Write);
        second.entry = "second".to_owned();
        access(&mut second, "C", Access::Read);
        let mut d = second.params[2].clone();
        d.name = "D".to_owned();
        if let ParamKind::Tensor(tensor) = &mut d.kind {
            tensor.access = Access::Write;
        }
        second.params = second.params.split_off(2);
        second.params.insert(0, d);
        second.params.retain(|p| !["K", "A_ld", "B_ld", "alpha"].contains(&p.name.as_str()));
        second.requires.clear();
        [first, second]
    }

    fn args(pairs: &[(&str, i64)]) -> Args {
        pairs.iter().map(|&(name, value)| (name.to_owned(), Number::Int(value))).collect()
    }

    #[test]
    fn what_is_written_and_then_read_is_a_temporary() {
        let [first, second] = two();
        let program = Program::new("p", &[&first, &second]).expect("they fit");
        assert_eq!(program.launches, ["gemm", "second"]);
        let c = Temporary { name: "C".to_owned(), align: 16, bytes: "((M - 1) * C_ld + N - 1 + 1) * 4".to_owned() };
        assert_eq!(program.temporaries, [c]);
        assert_eq!(Program::new("p", &[&second, &first]).expect("they fit").temporaries, []);
        assert_eq!(Program::new("p", &[&first]).expect("it fits itself").temporaries, []);
    }

    #[test]
    fn what_a_later_launch_reads_is_nobodys_place() {
        let [first, mut second] = two();
        if let Some(Param { kind: ParamKind::Tensor(d), .. }) = second.params.iter_mut().find(|p| p.name == "D") {
            d.may_alias = vec!["C".to_owned()];
        }
        assert_eq!(may_alias(&[[&first], [&second]], "D"), ["C"]);
        let mut third = second.clone();
        third.params.retain(|p| p.name == "C");
        assert_eq!(may_alias(&[[&first], [&second], [&third]], "D"), [""; 0], "C is read once more");
        assert_eq!(may_alias(&[[&first], [&second], [&second]], "D"), [""; 0], "D is written again");
        let mut other = second.clone();
        if let Some(ParamKind::Tensor(tensor)) = other.params.iter_mut().find(|p| p.name == "D").map(|p| &mut p.kind) {
            tensor.may_alias.clear();
        }
        let variants = [vec![&first], vec![&second, &other]];
        assert_eq!(may_alias(&variants, "D"), [""; 0], "one of the variants does not allow it");
    }

    #[test]
    fn one_name_is_one_thing() {
        let [first, mut second] = two();
        scalar(&mut second, "beta", Some(1.0));
        assert!(Program::new("p", &[&first, &second]).is_ok(), "one default is that of both");
        let mut other = first.clone();
        scalar(&mut other, "beta", Some(2.0));
        let misfits = Program::new("p", &[&other, &second]).expect_err("two defaults");
        assert_eq!(misfits, ["`beta` of `second` and of `gemm` have different defaults"]);
        let mut kept = second.clone();
        if let Some(ParamKind::Tensor(tensor)) = kept.params.iter_mut().find(|p| p.name == "C").map(|p| &mut p.kind) {
            tensor.constant = true;
        }
        let misfits = Program::new("p", &[&first, &kept]).expect_err("written in front of it");
        assert_eq!(misfits, ["`C` is `constant` in `second`, and `gemm` writes it"]);
        second.params[0].name = "M".to_owned();
        let misfits = Program::new("p", &[&first, &second]).expect_err("a size is not a tensor");
        assert_eq!(misfits[0], "`M` of `second` and of `gemm` have nothing but the name in common");
    }

    #[test]
    fn arguments_go_where_they_are_known() {
        let [mut first, second] = two();
        scalar(&mut first, "beta", Some(0.5));
        let all = args(&[("M", 200), ("N", 300), ("K", 64), ("C_ld", 320)]);
        let bound = bind_program(&[&first, &second], &all).expect("complete");
        assert_eq!((bound.launches[0].grid, bound.launches[1].grid), ([3, 2, 1], [3, 2, 1]));
        assert_eq!(bound.launches[1].values["beta"], Number::Float(0.5), "the default of the other kernel");
        let names: Vec<(&str, Access)> = bound.tensors.iter().map(|t| (t.name.as_str(), t.access)).collect();
        assert_eq!(
            names,
            [("A", Access::Read), ("B", Access::Read), ("C", Access::Write), ("D", Access::Write)],
            "what C held before is not read"
        );
        let errors = bind_program(&[&first, &second], &args(&[("M", 1), ("X", 2)])).expect_err("incomplete");
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts[0].contains("no size, stride or scalar `X`") && texts[0].contains("`beta`"), "{texts:?}");
        assert!(texts[1].starts_with("no value for `K`, `N`"), "{texts:?}");
    }
}
