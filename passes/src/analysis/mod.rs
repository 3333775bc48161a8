//! Facts about index expressions and views that several passes need.

pub mod access_width;
pub(crate) mod bounds;
pub(crate) mod conditions;
pub(crate) mod content_liveness;
pub(crate) mod contiguous_dim;
pub(crate) mod distinct;
pub(crate) mod distribution;
pub mod fold;
pub(crate) mod functions;
pub(crate) mod index_operands;
pub(crate) mod inequalities;
pub(crate) mod live_ranges;
pub(crate) mod past_end;
pub(crate) mod product_loops;
pub(crate) mod reduction;
pub(crate) mod unit_usage;
pub mod uses;
pub(crate) mod views;
pub(crate) mod wgmma;

pub use tilec_ir::facts;
