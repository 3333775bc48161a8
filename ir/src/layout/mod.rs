//! Layout algebra.
