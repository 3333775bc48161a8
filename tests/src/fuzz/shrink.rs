//! The smallest part of a failing input that fails in the same way.

use super::check;
use super::input::Input;
use super::words::split;
use crate::problem::Random;
use std::time::{Duration, Instant};

/// Removes pieces, large ones first, while the failure stays.
pub(super) fn shrink(input: &Input, class: &str) -> Input {
    let end = Instant::now() + Duration::from_secs(6);
    let fails = |input: &Input| check::check(input, &mut Random(1)).is_err_and(|f| f.class == class);
    let mut best = input.clone();
    if !fails(&best) {
        return best;
    }
    while let Some(n) = best.options.defines.len().checked_sub(1) {
        let mut less = best.clone();
        less.options.defines.truncate(n);
        if !fails(&less) {
            break;
        }
        best = less;
    }
    let mut words = split(&best.text);
    let mut size = words.len() / 2;
    while size > 0 && Instant::now() < end {
        let mut at = 0;
        while at < words.len() && Instant::now() < end {
            let mut fewer = words.clone();
            fewer.drain(at..(at + size).min(words.len()));
            let less = Input { text: fewer.concat(), ..best.clone() };
            if fails(&less) {
                words = fewer;
                best = less;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    best
}
