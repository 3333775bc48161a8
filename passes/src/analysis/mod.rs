//! Facts about index expressions and views that several passes need.

pub mod fold;
pub(crate) mod order;
pub mod uses;
pub mod width;

pub use tilec_ir::facts;
