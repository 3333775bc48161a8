//! The search for values. For kernels with several products the passes decide legality; for others, rules of the model do.

use super::found::{Failed, Found, Ranked};
use super::one::One;
use super::several_products::SeveralProducts;
use super::space::Space;

/// The fastest combination, of those that leave a thread registers if there are any.
pub(super) fn best(space: Space<'_>) -> Result<Found, Failed> {
    if space.work.is_of_several() {
        return match SeveralProducts::of(&space).best() {
            Err(Failed::Refused(_)) => SeveralProducts::of(&Space { crowded: true, ..space }).best(),
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
        return SeveralProducts::of(&space).ranked(far);
    }
    match One::of(&space).all(far) {
        Err(Failed::NoneLegal(_)) => One::of(&Space { crowded: true, ..space }).all(far),
        found => found,
    }
}

/// The plain values; if the kernel does not allow them, the first that it allows.
pub(super) fn plain(space: Space<'_>) -> Result<Found, Failed> {
    if space.work.is_of_several() {
        return SeveralProducts::of(&space).plain();
    }
    match One::of(&space).first() {
        Err(Failed::NoneLegal(_)) => One::of(&Space { crowded: true, ..space }).first(),
        found => found,
    }
}
