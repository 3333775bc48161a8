//! Which variant of a kernel to launch (`docs/launch-contract.md`, "Variants").

use crate::bind::{Args, BindError, bind};
use crate::contract::{Contract, Dispatch};
use crate::expr;

impl BindError {
    /// Whether other sizes could be launched.
    pub fn depends_on_size(&self) -> bool {
        match self {
            BindError::Unmet { .. } | BindError::Grid { .. } | BindError::Extent { .. } => true,
            BindError::Unknown { .. }
            | BindError::Missing { .. }
            | BindError::Value { .. }
            | BindError::Expression { .. } => false,
        }
    }
}

/// The first variant whose conditions hold, of those of `contracts` that `fits` (its tensors' alignment, say) lets pass.
///
/// # Errors
/// What keeps the last of them from being launched, or what is wrong with the arguments of all.
pub fn pick<'c>(
    dispatch: &Dispatch,
    contracts: &'c [Contract],
    args: &Args,
    mut fits: impl FnMut(&Contract) -> bool,
) -> Result<&'c Contract, Vec<BindError>> {
    let mut last = Vec::new();
    for case in &dispatch.cases {
        let Some(contract) = contracts.iter().find(|c| c.entry == case.entry) else { continue };
        let bound = match bind(contract, args) {
            Ok(bound) => bound,
            Err(errors) if errors.iter().all(BindError::depends_on_size) => {
                last = errors;
                continue;
            }
            Err(errors) => return Err(errors),
        };
        let lookup = |name: &str| bound.values.get(name).and_then(|v| v.to_i64()).map(i128::from);
        let mut holds = fits(contract);
        for text in &case.when {
            match expr::condition(text, &lookup) {
                Ok(truth) => holds &= truth,
                Err(error) => return Err(vec![BindError::Expression { text: text.clone(), error }]),
            }
        }
        if holds {
            return Ok(contract);
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bind::Number;
    use crate::contract::{Case, LaunchFile, tests::gemm};
    use pretty_assertions::assert_eq;

    /// `gemm_1` for multiples of 8 that are large, `gemm_2` for other multiples of 8, `gemm_3` for the rest.
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
            pick(&file.dispatch[0], &file.kernels, &args(values), fits).map(|c| c.entry.clone())
        };
        let any = |_: &Contract| true;
        assert_eq!(entry([64, 64, 8], &any).as_deref(), Ok("gemm_1"));
        // Sizes hold, the stride does not; preconditions are conditions; so is what the caller knows.
        assert_eq!(entry([4096, 8, 8], &any).as_deref(), Ok("gemm_2"));
        assert_eq!(entry([64, 64, 7], &any).as_deref(), Ok("gemm_3"));
        assert_eq!(entry([64, 64, 8], &|c| c.entry == "gemm_3").as_deref(), Ok("gemm_3"));
        assert_eq!(entry([64, 64, 8], &|_| false), Err(Vec::new()));
        assert_eq!(entry([0, 64, 8], &any).map_err(|e| e.len()), Err(1));
    }

    #[test]
    fn what_fits_none_says_why() {
        let mut file = file();
        file.kernels[2].requires = vec!["K % 4 == 0".to_owned()];
        let errors = pick(&file.dispatch[0], &file.kernels, &args([8, 8, 6]), |_| true).expect_err("none fits");
        assert!(matches!(&errors[..], [BindError::Unmet { condition, .. }] if condition == "K % 4 == 0"), "{errors:?}");
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
}
