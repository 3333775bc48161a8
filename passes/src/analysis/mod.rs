//! Facts about index expressions and views that several passes need.

pub mod facts;
pub mod fold;
pub mod uses;
pub mod width;
