//! The search for values. For kernels with several products, the passes decide legality; for others, rules of the model
//! do.

use super::search_result::{Failed, Ranked, SearchResult};
use super::search_space::Space;
use super::several_products::SeveralProducts;
use super::single_product::SingleProduct;

/// The fastest combination; those that leave enough registers are preferred.
pub(super) fn best(space: Space<'_>) -> Result<SearchResult, Failed> {
    if space.work.has_several_products() {
        return match SeveralProducts::of(&space).best() {
            Err(Failed::Refused(_)) => SeveralProducts::of(&Space { crowded: true, ..space }).best(),
            found => found,
        };
    }
    match SingleProduct::of(&space).fastest() {
        Err(Failed::NoneLegal(_)) => SingleProduct::of(&Space { crowded: true, ..space }).fastest(),
        found => found,
    }
}

/// The result of [`best`], and then all other legal combinations that are predicted to take at most `far` times as
/// long, fastest first.
pub(super) fn ranked(space: Space<'_>, far: f64) -> Result<Vec<Ranked>, Failed> {
    if space.work.has_several_products() {
        return SeveralProducts::of(&space).ranked(far);
    }
    match SingleProduct::of(&space).all(far) {
        Err(Failed::NoneLegal(_)) => SingleProduct::of(&Space { crowded: true, ..space }).all(far),
        found => found,
    }
}

/// The plain values; if they are not legal, the first legal ones.
pub(super) fn plain(space: Space<'_>) -> Result<SearchResult, Failed> {
    if space.work.has_several_products() {
        return SeveralProducts::of(&space).plain();
    }
    match SingleProduct::of(&space).first() {
        Err(Failed::NoneLegal(_)) => SingleProduct::of(&Space { crowded: true, ..space }).first(),
        found => found,
    }
}
