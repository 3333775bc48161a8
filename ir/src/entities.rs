//! Entity references: the ids that index IR tables.
//!
//! Every named entity is a [`Value`], every expression node an [`Expr`], every statement a [`Stmt`], and a [`Block`] is
//! an ordered list of statements. Dumps print them as `v3`, `e7`, `stmt2`, `block1`; they never appear in the text
//! form, where values have names.

use cranelift_entity::entity_impl;

/// A named entity: a parameter, a run-time size or stride, a loop variable, a `let`, a register variable, a buffer.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(u32);
entity_impl!(Value, "v");

/// A node of an expression tree. Each node has exactly one parent; trees are never shared.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Expr(u32);
entity_impl!(Expr, "e");

/// A statement.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stmt(u32);
entity_impl!(Stmt, "stmt");

/// An ordered list of statements: the kernel body, a loop body, a branch, a role.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block(u32);
entity_impl!(Block, "block");
