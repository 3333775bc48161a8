//! Layout algebra (placeholder until the algebra lands).
#[derive(Clone, PartialEq, Debug)]
pub struct RegLayout;
#[derive(Clone, PartialEq, Debug)]
pub struct SmemLayout;
