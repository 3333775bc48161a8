//! PTX targets and versions.
//!
//! A target is a number and a suffix. Code for a plain target runs on every later chip; `f` code runs within one family
//! (same tens digit, same or later chip); `a` code runs on exactly one chip (PTX ISA section "PTX Module Directives:
//! .target"). The minimum `.version` of each target was found by assembling an empty kernel.

use std::fmt;
use std::str::FromStr;

/// A PTX ISA version, `(major, minor)`; tuples order as versions do.
pub type Version = (u8, u8);

/// Compatibility of code for a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    /// `sm_90`: this chip and every later one.
    Plain,
    /// `sm_100f`: this chip and later ones of its family.
    Family,
    /// `sm_90a`: this chip only.
    Exact,
}

/// A `.target`, such as `sm_70` or `sm_90a`. Table rows use it for their minimum target, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sm {
    /// Compute capability times ten: 70, 75, 80, 90, ...
    pub number: u16,
    /// The suffix.
    pub reach: Reach,
}

/// The lowest `.version` that knows each target, ascending by target.
const MIN_VERSIONS: &[(Sm, Version)] = &[
    (Sm::plain(70), (6, 0)),
    (Sm::plain(72), (6, 1)),
    (Sm::plain(75), (6, 3)),
    (Sm::plain(80), (7, 0)),
    (Sm::plain(86), (7, 1)),
    (Sm::plain(87), (7, 4)),
    (Sm::plain(88), (9, 0)),
    (Sm::plain(89), (7, 8)),
    (Sm::plain(90), (7, 8)),
    (Sm::exact(90), (8, 0)),
    (Sm::plain(100), (8, 6)),
    (Sm::family(100), (8, 8)),
    (Sm::exact(100), (8, 6)),
    (Sm::plain(103), (8, 8)),
    (Sm::family(103), (8, 8)),
    (Sm::exact(103), (8, 8)),
    (Sm::plain(110), (9, 0)),
    (Sm::family(110), (9, 0)),
    (Sm::exact(110), (9, 0)),
    (Sm::plain(120), (8, 7)),
    (Sm::family(120), (8, 8)),
    (Sm::exact(120), (8, 7)),
    (Sm::plain(121), (8, 8)),
    (Sm::family(121), (8, 8)),
    (Sm::exact(121), (8, 8)),
];

impl Sm {
    /// `sm_<number>`.
    pub const fn plain(number: u16) -> Sm {
        Sm { number, reach: Reach::Plain }
    }

    /// `sm_<number>f`.
    pub const fn family(number: u16) -> Sm {
        Sm { number, reach: Reach::Family }
    }

    /// `sm_<number>a`.
    pub const fn exact(number: u16) -> Sm {
        Sm { number, reach: Reach::Exact }
    }

    /// Whether code compiled for `self` may use a feature that requires `need`.
    pub fn has(self, need: Sm) -> bool {
        match need.reach {
            Reach::Plain => self.number >= need.number,
            Reach::Family => {
                self.reach != Reach::Plain && self.number / 10 == need.number / 10 && self.number >= need.number
            }
            Reach::Exact => self == need,
        }
    }

    /// The lowest `.version` that accepts this `.target`; `None` for a target this table does not know.
    pub fn min_version(self) -> Option<Version> {
        MIN_VERSIONS.iter().find(|(sm, _)| *sm == self).map(|&(_, version)| version)
    }
}

impl fmt::Display for Sm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.reach {
            Reach::Plain => "",
            Reach::Family => "f",
            Reach::Exact => "a",
        };
        write!(f, "sm_{}{suffix}", self.number)
    }
}

impl FromStr for Sm {
    type Err = String;

    fn from_str(text: &str) -> Result<Sm, String> {
        MIN_VERSIONS
            .iter()
            .map(|&(sm, _)| sm)
            .find(|sm| sm.to_string() == text)
            .ok_or_else(|| format!("unknown target `{text}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_carry_as_far_as_their_suffix_says() {
        assert!(Sm::plain(80).has(Sm::plain(70)));
        assert!(!Sm::plain(75).has(Sm::plain(80)));
        assert!(Sm::exact(90).has(Sm::exact(90)));
        assert!(Sm::exact(90).has(Sm::plain(90)));
        assert!(!Sm::plain(90).has(Sm::exact(90)));
        assert!(!Sm::exact(100).has(Sm::exact(90)));
        assert!(Sm::exact(103).has(Sm::family(100)));
        assert!(!Sm::exact(110).has(Sm::family(100)));
    }

    #[test]
    fn every_known_target_parses_back() {
        for &(sm, _) in MIN_VERSIONS {
            assert_eq!(sm.to_string().parse(), Ok(sm));
        }
        assert!("sm_071".parse::<Sm>().is_err());
    }
}
