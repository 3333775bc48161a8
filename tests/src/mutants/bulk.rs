//! Statements of TMA copies and of wgmma products.

use super::text::{Statement, registers};

/// Whether this is a bulk copy of a tensor.
pub(super) fn is_copy(s: &Statement) -> bool {
    s.opcode.starts_with("cp.async.bulk.tensor")
}

/// Whether this is a wgmma product.
pub(super) fn is_product(s: &Statement) -> bool {
    s.opcode.starts_with("wgmma.mma_async")
}

/// The registers that hold matrix descriptors of a product.
pub(super) fn descriptors(s: &Statement) -> Vec<&str> {
    let operands = s.operands.iter().skip(1).take(if is_product(s) { 2 } else { 0 });
    operands.filter(|o| !o.starts_with('{')).flat_map(|o| registers(o)).collect()
}
