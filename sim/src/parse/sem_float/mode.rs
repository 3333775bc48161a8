//! Rounding, `.ftz` and `.sat` of an instruction.

use crate::numerics::{Mode, Round};
use crate::parse::modifiers::Mods;

pub(super) const fn round_of(r: u8) -> Round {
    match r {
        1 => Round::Zero,
        2 => Round::Down,
        3 => Round::Up,
        _ => Round::Nearest,
    }
}

pub(super) const fn mode<const R: u8, const F: bool, const S: bool>() -> Mode {
    Mode { round: round_of(R), ftz: F, sat: S }
}

pub(super) fn direction(m: &Mods<'_>) -> u8 {
    match m.words.iter().find(|w| matches!(**w, "rz" | "rm" | "rp")) {
        Some(&"rz") => 1,
        Some(&"rm") => 2,
        Some(_) => 3,
        None => 0,
    }
}

/// Rounding of a conversion.
pub(super) fn rounding(m: &Mods<'_>) -> Round {
    m.words
        .iter()
        .find_map(|w| match *w {
            "rn" | "rni" => Some(Round::Nearest),
            "rna" => Some(Round::NearestAway),
            "rz" | "rzi" => Some(Round::Zero),
            "rm" | "rmi" => Some(Round::Down),
            "rp" | "rpi" => Some(Round::Up),
            _ => None,
        })
        .unwrap_or(Round::Nearest)
}
