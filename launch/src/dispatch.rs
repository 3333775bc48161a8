//! Which variant of a kernel to launch (`docs/launch-contract.md`, "Variants").

use crate::bind::{BindError, SIZES, bind};
use crate::contract::expr;
use crate::contract::number::Args;
use crate::contract::{Contract, Dispatch, LaunchFile, Param, ParamKind, Program};
use crate::program::Misfits;
use crate::remedies::no_variant;

impl BindError {
    /// Whether other sizes could be launched.
    pub fn depends_on_size(&self) -> bool {
        match self {
            BindError::Unmet { .. } | BindError::Overlap(_) | BindError::Grid { .. } | BindError::Extent { .. } => true,
            // Another variant may be the one for a size of 0.
            BindError::Value { value, expected, .. } => *expected == SIZES && value.to_i64() == Some(0),
            BindError::Unknown { .. } | BindError::Missing { .. } | BindError::Expression { .. } => false,
        }
    }
}

/// A variant that is not launched.
#[derive(Clone, PartialEq, Debug)]
pub struct Refused {
    /// Its name: see [`Case::name`](crate::contract::Case::name).
    pub variant: String,
    /// The conditions that it fails.
    pub why: Vec<String>,
}

impl Refused {
    /// The variant that fails the fewest conditions; among equals the last one, which promises least.
    pub fn nearest(all: impl IntoIterator<Item = Refused, IntoIter: DoubleEndedIterator>) -> Option<Refused> {
        all.into_iter().rev().min_by_key(|refused| refused.why.len())
    }

    /// The words for a condition of its case.
    pub(crate) fn condition(text: &str) -> String {
        format!("`{text}` does not hold")
    }
}

/// The first variant of `contracts` whose conditions hold and for which `misfit` (such as its tensors' alignment)
/// reports nothing.
///
/// # Errors
/// The failed conditions of the nearest variant, or the errors in the arguments of all.
pub fn pick<'c>(
    dispatch: &Dispatch,
    contracts: &'c [Contract],
    args: &Args,
    mut misfit: impl FnMut(&Contract) -> Option<String>,
) -> Result<&'c Contract, NoCase> {
    let mut refused: Vec<Refused> = Vec::new();
    for case in &dispatch.cases {
        let Some(contract) = contracts.iter().find(|c| c.entry == case.entry) else { continue };
        let (values, mut why) = match bind(contract, args) {
            Ok(bound) => (bound.values, Vec::new()),
            Err(errors) if errors.iter().all(BindError::depends_on_size) => {
                (args.clone(), errors.iter().map(ToString::to_string).collect())
            }
            Err(errors) => return Err(NoCase::Arguments(errors)),
        };
        let lookup = |name: &str| values.get(name).and_then(|v| v.to_i64());
        for text in &case.when {
            match expr::condition(text, &lookup) {
                Ok(true) => {}
                Ok(false) => why.push(Refused::condition(text)),
                // Strides of packed tensors have no value where sizes are refused.
                Err(_) if !why.is_empty() => {}
                Err(error) => return Err(NoCase::Arguments(vec![BindError::Expression { text: text.clone(), error }])),
            }
        }
        why.extend(misfit(contract));
        if why.is_empty() {
            return Ok(contract);
        }
        refused.push(Refused { variant: case.name().to_owned(), why });
    }
    let none = || Refused { variant: dispatch.kernel.clone(), why: vec!["it has no variant".to_owned()] };
    Err(NoCase::Nearest(Refused::nearest(refused).unwrap_or_else(none)))
}

/// Why no variant is launched.
#[derive(Clone, PartialEq, Debug)]
pub enum NoCase {
    /// Errors in the arguments that all variants have.
    Arguments(Vec<BindError>),
    /// The variant that came nearest.
    Nearest(Refused),
}

impl std::fmt::Display for NoCase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoCase::Arguments(errors) => {
                f.write_str(&errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
            }
            NoCase::Nearest(Refused { variant, why }) => f.write_str(&no_variant(variant, &why.join("; "))),
        }
    }
}

/// A variant whose arguments differ from those of another.
pub struct Mismatch {
    /// The variant.
    pub entry: String,
    /// What is different.
    pub what: String,
}

impl Dispatch {
    /// The first variant that takes other things than the first one; promises about them (alignment, aliases) may differ.
    pub fn misfit(&self, contracts: &[Contract]) -> Option<Mismatch> {
        let taken = |kind: &ParamKind| {
            let mut kind = kind.clone();
            if let ParamKind::Tensor(tensor) | ParamKind::Pointers(tensor) = &mut kind {
                (tensor.align, tensor.reads_gaps) = (0, false);
                tensor.may_alias.clear();
            }
            kind
        };
        let mut cases = self.cases.iter().filter_map(|case| contracts.iter().find(|c| c.entry == case.entry));
        let first = cases.next()?;
        cases.find_map(|c| {
            // Descriptors follow from tensors, and belong to the variant's own tiles.
            let given = |c: &'_ Contract| -> Vec<Param> {
                c.params.iter().filter(|p| !matches!(p.kind, ParamKind::TensorMap(_))).cloned().collect()
            };
            let (a, b) = (given(first), given(c));
            let same = |(a, b): (&Param, &Param)| a.name == b.name && taken(&a.kind) == taken(&b.kind);
            let differs = a.iter().zip(&b).find(|&pair| !same(pair)).map(|(_, p)| p.name.as_str());
            let what = match differs {
                Some(name) => format!("variants of `{}` take `{name}` differently", self.kernel),
                None if a.len() != b.len() => {
                    format!("variants of `{}` take different numbers of parameters", self.kernel)
                }
                None => return None,
            };
            Some(Mismatch { entry: c.entry.clone(), what })
        })
    }
}

impl LaunchFile {
    /// Names that can be launched: programs, kernels that have variants, and other kernels.
    pub fn names(&self) -> Vec<&str> {
        let variant = |c: &&Contract| self.dispatch.iter().any(|d| d.cases.iter().any(|case| case.entry == c.entry));
        let programs = self.programs.iter().map(|p| p.name.as_str());
        let several = self.dispatch.iter().map(|d| d.kernel.as_str());
        let alone = self.kernels.iter().filter(|c| !variant(c)).map(|c| c.entry.as_str());
        programs.chain(several).chain(alone).collect()
    }

    /// The default name: the only program, else the only kernel.
    pub fn only(&self) -> Option<&str> {
        match (self.programs.as_slice(), self.names().as_slice()) {
            ([program], _) => Some(&program.name),
            ([], [name]) => Some(name),
            _ => None,
        }
    }

    /// The launches of a name, in order: the kernels of a program, or one kernel; of variants, those for `args`.
    /// `None`: there is no such name, or a program launches a kernel that does not exist.
    ///
    /// Values that fit no variant, or that are incomplete, select one all the same; binding then rejects them.
    ///
    /// # Errors
    /// If a condition is not an expression over the kernel's arguments.
    pub fn launches(&self, name: &str, args: &Args) -> Result<Option<Vec<&Contract>>, Vec<BindError>> {
        let Some(program) = self.programs.iter().find(|p| p.name == name) else {
            return Ok(self.launch(name, args)?.map(|c| vec![c]));
        };
        // As when all is bound: each kernel gets what it takes, and a scalar has its default in all if it has one in any.
        let mut all = args.clone();
        let kernels = program.launches.iter().filter_map(|name| self.variants(name).next());
        for param in kernels.flat_map(|c| &c.params) {
            if let ParamKind::Scalar { default: Some(x), .. } = param.kind {
                all.entry(param.name.clone()).or_insert(x);
            }
        }
        let one = |name: &String| {
            let takes = |c: &Contract, arg: &str| c.param(arg).is_some_and(|p| p.kind.tensor().is_none());
            let own = |c: &Contract| all.clone().into_iter().filter(|(arg, _)| takes(c, arg)).collect();
            let args: Args = self.variants(name).next().map(own).unwrap_or_default();
            self.launch(name, &args)
        };
        program.launches.iter().map(one).collect()
    }

    /// The kernel that is launched under a name.
    fn launch(&self, name: &str, args: &Args) -> Result<Option<&Contract>, Vec<BindError>> {
        let Some(dispatch) = self.dispatch.iter().find(|d| d.kernel == name) else { return Ok(self.contract(name)) };
        match pick(dispatch, &self.kernels, args, |_| None) {
            Ok(contract) => Ok(Some(contract)),
            Err(NoCase::Arguments(errors)) if errors.iter().any(|e| matches!(e, BindError::Expression { .. })) => {
                Err(errors)
            }
            Err(_) => Ok(self.variants(name).last()),
        }
    }

    /// The kernels that may be launched under a name.
    pub(crate) fn variants(&self, name: &str) -> impl Iterator<Item = &Contract> {
        let dispatch = self.dispatch.iter().find(|d| d.kernel == name);
        let alone = if dispatch.is_none() { self.contract(name) } else { None };
        let cases = dispatch.into_iter().flat_map(|d| &d.cases).filter_map(|case| self.contract(&case.entry));
        cases.chain(alone)
    }

    /// The program that launches these names in this order, whichever variants are selected.
    ///
    /// # Errors
    /// If there is no kernel of such a name, or parameters of one name differ.
    pub fn program(&self, name: &str, launches: &[String]) -> Result<Program, Misfits> {
        let first = |entry: &String| {
            let missing = || vec![format!("`{name}` launches `{entry}`, which is not described")];
            self.variants(entry).next().ok_or_else(missing)
        };
        let firsts: Vec<&Contract> = launches.iter().map(first).collect::<Result<_, _>>()?;
        let mut program = Program::new(name, &firsts)?;
        for (at, entry) in launches.iter().enumerate() {
            for variant in self.variants(entry).skip(1) {
                let mut with = firsts.clone();
                with[at] = variant;
                for temporary in Program::new(name, &with)?.temporaries {
                    for known in program.temporaries.iter_mut().filter(|t| t.name == temporary.name) {
                        known.align = known.align.max(temporary.align);
                    }
                }
            }
        }
        program.launches = launches.to_vec();
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::number::Number;
    use crate::contract::{Access, Case, tests::gemm};
    use pretty_assertions::assert_eq;

    /// `gemm_1` for large multiples of 8, `gemm_2` for other multiples of 8, `gemm_3` for all other sizes.
    fn file() -> LaunchFile {
        let variant = |entry: &str, requires: &[&str]| {
            let mut contract = gemm();
            entry.clone_into(&mut contract.entry);
            contract.requires = requires.iter().map(|r| (*r).to_owned()).collect();
            contract
        };
        let case = |entry: &str, when: &[&str]| Case {
            entry: entry.to_owned(),
            when: when.iter().map(|w| (*w).to_owned()).collect(),
            variant: if entry == "gemm_3" { "ALIGN=1".to_owned() } else { String::new() },
        };
        LaunchFile {
            kernels: vec![
                variant("gemm_1", &["K % 8 == 0"]),
                variant("gemm_2", &["K % 8 == 0"]),
                variant("gemm_3", &[]),
            ],
            dispatch: vec![Dispatch {
                kernel: "gemm".to_owned(),
                cases: vec![case("gemm_1", &["M * N >= 4096", "C_ld >= 64"]), case("gemm_2", &[]), case("gemm_3", &[])],
            }],
            programs: Vec::new(),
        }
    }

    fn args(values: [i64; 3]) -> Args {
        // Packed, and a scalar without a default.
        let all = ["M", "N", "K"].into_iter().zip(values).chain([("C_ld", values[1]), ("beta", 0)]);
        all.map(|(name, x)| (name.to_owned(), Number::Int(x))).collect()
    }

    #[test]
    fn the_first_that_holds_is_taken() {
        let file = file();
        let entry = |values, fits: &dyn Fn(&Contract) -> bool| {
            let misfit = |c: &Contract| (!fits(c)).then(|| "its tensors are elsewhere".to_owned());
            pick(&file.dispatch[0], &file.kernels, &args(values), misfit).map(|c| c.entry.clone())
        };
        let any = |_: &Contract| true;
        assert_eq!(entry([64, 64, 8], &any).as_deref(), Ok("gemm_1"));
        // Sizes hold, the stride does not; preconditions are conditions; so is what the caller knows.
        assert_eq!(entry([4096, 8, 8], &any).as_deref(), Ok("gemm_2"));
        assert_eq!(entry([64, 64, 7], &any).as_deref(), Ok("gemm_3"));
        assert_eq!(entry([64, 64, 8], &|c| c.entry == "gemm_3").as_deref(), Ok("gemm_3"));
        let refused = |entry: Result<String, NoCase>| entry.expect_err("none fits").to_string();
        assert_eq!(
            refused(entry([64, 64, 8], &|_| false)),
            "no variant fits; `ALIGN=1` came nearest: its tensors are elsewhere"
        );
        assert!(matches!(entry([-1, 64, 8], &any), Err(NoCase::Arguments(errors)) if errors.len() == 1));
    }

    #[test]
    fn what_fits_none_says_why() {
        let mut file = file();
        file.kernels[2].requires = vec!["K % 4 == 0".to_owned()];
        let none = |sizes, file: &LaunchFile| {
            pick(&file.dispatch[0], &file.kernels, &args(sizes), |_| None).expect_err("none fits").to_string()
        };
        assert_eq!(
            none([8, 8, 6], &file),
            "no variant fits; `ALIGN=1` came nearest: `K % 4 == 0` does not hold: K = 6"
        );
        // Fewer things keep another one from being launched.
        file.kernels[2].requires.extend(["M % 4 == 0".to_owned(), "N % 4 == 0".to_owned()]);
        assert_eq!(none([6, 6, 6], &file), "no variant fits; `gemm_2` came nearest: `K % 8 == 0` does not hold: K = 6");
        let last = file.kernels[2].requires.clone();
        file.kernels[1].requires = last;
        file.dispatch[0].cases[0].when.truncate(1);
        let first = none([6, 6, 8], &file);
        assert_eq!(first, "no variant fits; `gemm_1` came nearest: `M * N >= 4096` does not hold");
    }

    #[test]
    fn files_are_checked() {
        let good = file();
        assert_eq!(LaunchFile::from_json(&good.to_json()).expect("as written"), good);
        assert!(good.to_json().contains("tilec.launch/2"));
        let broken = |change: &dyn Fn(&mut LaunchFile)| {
            let mut file = file();
            change(&mut file);
            LaunchFile::from_json(&file.to_json()).expect_err("it is broken").to_string()
        };
        assert!(broken(&|f| f.dispatch[0].cases[2].when.push("M > 1".to_owned())).contains("some sizes have none"));
        assert!(
            broken(&|f| "other".clone_into(&mut f.dispatch[0].cases[1].entry)).contains("is no kernel of the file")
        );
        assert!(broken(&|f| f.dispatch[0].cases.clear()).contains("has no variant"));
        assert!(broken(&|f| _ = f.kernels[1].params.pop()).contains("takes other parameters"));
    }

    #[test]
    fn one_of_them_is_launched_in_a_program() {
        let mut file = file();
        for contract in &mut file.kernels {
            access(contract, Access::Write);
        }
        let ParamKind::Tensor(tensor) = &mut file.kernels[1].params[2].kind else { panic!("C is a tensor") };
        tensor.align = 64;
        let mut after = gemm();
        "after".clone_into(&mut after.entry);
        access(&mut after, Access::Read);
        after.params.retain(|p| !["A", "B", "K", "A_ld", "B_ld", "alpha"].contains(&p.name.as_str()));
        after.requires.clear();
        file.kernels.push(after);
        let launches = ["gemm".to_owned(), "after".to_owned()];
        let program = file.program("both", &launches).expect("they fit");
        assert_eq!(program.launches, launches);
        assert_eq!(program.temporaries.iter().map(|t| (t.name.as_str(), t.align)).collect::<Vec<_>>(), [("C", 64)]);
        file.programs.push(program);
        assert_eq!((file.names(), file.only()), (vec!["both", "gemm", "after"], Some("both")));
        assert_eq!(LaunchFile::from_json(&file.to_json()).expect("as written"), file);
        let entries = |name: &str, args: &Args| {
            let launches = file.launches(name, args).expect("conditions are expressions");
            launches.map(|all| all.iter().map(|c| c.entry.clone()).collect::<Vec<_>>()).unwrap_or_default()
        };
        assert_eq!(entries("both", &args([64, 64, 8])), ["gemm_1", "after"]);
        assert_eq!(entries("both", &args([64, 64, 7])), ["gemm_3", "after"]);
        // Values that fit no variant, or are incomplete, are rejected later, with all errors.
        assert_eq!(entries("both", &Args::new()), ["gemm_3", "after"]);
        assert_eq!(entries("gemm", &args([4096, 8, 8])), ["gemm_2"]);
        assert_eq!(entries("gemm_1", &args([4096, 8, 8])), ["gemm_1"]);
        assert!(entries("other", &Args::new()).is_empty());

        // A variant that leaves something else after is none.
        let ParamKind::Tensor(tensor) = &mut file.kernels[2].params[2].kind else { panic!("C is a tensor") };
        tensor.shape[0] = "2 * M".into();
        let misfits = file.program("both", &launches).expect_err("the last leaves more rows");
        assert_eq!(misfits, ["`C` of `after` and of `gemm_3` have different shapes"]);
        assert!(file.program("x", &["other".to_owned()]).expect_err("no such kernel")[0].contains("not described"));
    }

    /// How C is used.
    fn access(contract: &mut Contract, access: Access) {
        for param in contract.params.iter_mut().filter(|p| p.name == "C") {
            let ParamKind::Tensor(tensor) = &mut param.kind else { panic!("C is a tensor") };
            tensor.access = access;
        }
    }
}
