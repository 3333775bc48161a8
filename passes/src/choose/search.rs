//! The search for values: of kernels with several products the passes are asked, of others rules and the model know enough.

use super::found::{Failed, Found, Ranked};
use super::one::One;
use super::several::Several;
use super::space::Space;

/// The fastest combination, of those that leave a thread registers if there are any.
pub(super) fn best(space: Space<'_>) -> Result<Found, Failed> {
    if space.work.is_of_several() {
        return match Several::of(&space).best() {
            Err(Failed::Refused(_)) => Several::of(&Space { crowded: true, ..space }).best(),
            found => found,
        };
    }
    match One::of(&space).fastest() {
        Err(Failed::NoneLegal(_)) => One::of(&Space { crowded: true, ..space }).fastest(),
        found => found,
    }
}

/// What [`best`] finds, and then everything else that is legal and not predicted to take more than `far` times as long, the fastest first.
pub(super) fn ranked(space: Space<'_>, far: f64) -> Result<Vec<Ranked>, Failed> {
    if space.work.is_of_several() {
        return Several::of(&space).ranked(far);
    }
    match One::of(&space).all(far) {
        Err(Failed::NoneLegal(_)) => One::of(&Space { crowded: true, ..space }).all(far),
        found => found,
    }
}

/// The plain values; if the kernel does not allow them, the first that it allows.
pub(super) fn plain(space: Space<'_>) -> Result<Found, Failed> {
    if space.work.is_of_several() {
        return Several::of(&space).plain();
    }
    match One::of(&space).first() {
        Err(Failed::NoneLegal(_)) => One::of(&Space { crowded: true, ..space }).first(),
        found => found,
    }
}
