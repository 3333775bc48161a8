//! The type of every expression, at every stage.
//!
//! A type is computed from the expression alone, bottom up: declared types of places, index arithmetic, element-by-element
//! rules of [`Op::domain`](crate::ops::Op::domain), products. Literals take the type of their context, so an integer literal is an index and a
//! fraction is [`Type::Float`] until an operand with an element type adopts it. Windows of memory have a rank but no
//! extents of their own; next to a tile they take the tile's.
//!
//! Before compile-time parameters are bound some facts are unknown: extents are then compared structurally, and two
//! things that may turn out equal are accepted.
//!
//! Invariant: typing never recurses through `let`: [`Types`] computes them in program order, so depth is that of one
//! expression tree and work is linear in the program.

mod candidates;
mod combine;
mod elementwise;
mod layouts;
mod operand_names;
mod product;
mod reduction;
mod register_tile;
mod shapes;
#[cfg(test)]
mod tests;
mod types;
mod view;

pub use candidates::{candidate_elems, may_count};
pub(crate) use elementwise::join_extent;
pub use layouts::{layout_of, layout_of_tuples, shape_of_tuples};
pub use product::{operand_shape, product_depth};
pub use register_tile::register_tile;
pub(crate) use shapes::joined;
pub(crate) use types::same_value;
pub use types::{
    Extent, TileType, Type, TypeError, Types, ViewType, const_int, elem_name, factor_list, factors, fixed_shape,
    let_init, positive, same_expr, same_product, scalar_shape, shape_text, type_of,
};
pub use view::{
    ResolvedView, ViewDim, copy_shape, is_by_element, resolve_view, window_of_registers, window_of_registers_at,
};
