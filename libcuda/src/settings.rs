//! Settings in the environment: programs have no other way to choose the device.

use crate::code::{Code, Failure};
use tilec_ir::target::Target;
use tilec_sim::{Allowance, Landing};

/// The device that programs find.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `TILEC_SIM_TARGET`: the target that it runs, `sm_90a` by default.
    pub target: Target,
    /// `TILEC_SIM_THREADS`: threads of the host that share the blocks; all by default.
    pub threads: usize,
    /// `TILEC_SIM_LANDING`: whether asynchronous copies land `early`, the default, or `late`.
    pub landing: Landing,
    /// `TILEC_SIM_ALLOW`: names of reports that pass, with commas between.
    pub allow: Vec<Allowance>,
}

impl Default for Settings {
    fn default() -> Settings {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Settings { target: Target::Sm90a, threads, landing: Landing::Early, allow: Vec::new() }
    }
}

impl Settings {
    /// The settings of the variables that `of` knows.
    ///
    /// # Errors
    /// A variable has a value that it cannot have.
    pub fn read(of: impl Fn(&str) -> Option<String>) -> Result<Settings, Failure> {
        let mut settings = Settings::default();
        let wrong = |name: &str, value: &str, expected: &str| {
            Err(Failure::new(Code::InvalidValue, format!("{name}={value}: expected {expected}")))
        };
        if let Some(value) = of("TILEC_SIM_TARGET") {
            let Some(target) = Target::from_name(&value) else {
                let all: Vec<&str> = Target::ALL.iter().map(|t| t.name()).collect();
                return wrong("TILEC_SIM_TARGET", &value, &all.join(", "));
            };
            settings.target = target;
        }
        if let Some(value) = of("TILEC_SIM_THREADS") {
            let Some(threads) = value.parse().ok().filter(|n| (1..=1024).contains(n)) else {
                return wrong("TILEC_SIM_THREADS", &value, "1 to 1024");
            };
            settings.threads = threads;
        }
        match of("TILEC_SIM_LANDING").as_deref() {
            None | Some("early") => {}
            Some("late") => settings.landing = Landing::Latest,
            Some(value) => return wrong("TILEC_SIM_LANDING", value, "early or late"),
        }
        for name in of("TILEC_SIM_ALLOW").iter().flat_map(|names| names.split(',')).filter(|name| !name.is_empty()) {
            let Some(allowance) = Allowance::ALL.into_iter().find(|a| a.name() == name) else {
                return wrong("TILEC_SIM_ALLOW", name, &Allowance::ALL.map(Allowance::name).join(", "));
            };
            settings.allow.push(allowance);
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Settings, Failure> {
        Settings::read(|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn variables_choose_the_device() {
        let settings =
            read(&[("TILEC_SIM_TARGET", "sm_75"), ("TILEC_SIM_THREADS", "3"), ("TILEC_SIM_LANDING", "late")]);
        let settings = settings.expect("fine");
        assert_eq!((settings.target, settings.threads, settings.landing), (Target::Sm75, 3, Landing::Latest));
        let allowed = read(&[("TILEC_SIM_ALLOW", "cp-async-proxy")]).expect("fine").allow;
        assert_eq!(allowed, [Allowance::CopyProxy]);
    }

    #[test]
    fn values_that_make_no_sense_are_named() {
        for (name, value) in [
            ("TILEC_SIM_TARGET", "sm_71"),
            ("TILEC_SIM_THREADS", "0"),
            ("TILEC_SIM_LANDING", "soon"),
            ("TILEC_SIM_ALLOW", "all"),
        ] {
            let message = read(&[(name, value)]).expect_err("refused").message.expect("a sentence");
            assert!(message.starts_with(&format!("{name}={value}: expected ")), "{message}");
        }
    }
}
