//! Facts about index expressions and views that several passes need.

pub(crate) mod bounds;
pub(crate) mod conditions;
pub(crate) mod distinct;
pub(crate) mod distribution;
pub(crate) mod fate;
pub mod fold;
pub(crate) mod functions;
pub(crate) mod inequalities;
pub(crate) mod live;
pub(crate) mod made_of;
pub(crate) mod order;
pub(crate) mod past_end;
pub(crate) mod reduction;
pub(crate) mod sums;
pub(crate) mod units;
pub mod uses;
pub(crate) mod views;
pub(crate) mod wgmma;
pub mod width;

pub use tilec_ir::facts;
