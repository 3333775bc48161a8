//! Postconditions of the layout algebra, at every coordinate.

mod access;
mod convert;
mod cute;
mod f2;
