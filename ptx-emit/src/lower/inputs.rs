//! Pairs of operand types of products.

use tilec_ir::atoms::Inputs;
use tilec_ir::types::Elem::{self, E4M3, E5M2, I8, U8};

pub(super) const fn both(elem: Elem) -> Inputs {
    Inputs::both(elem)
}

pub(super) const I8_U8: Inputs = Inputs { a: I8, b: U8 };
pub(super) const U8_I8: Inputs = Inputs { a: U8, b: I8 };
pub(super) const E4M3_E5M2: Inputs = Inputs { a: E4M3, b: E5M2 };
pub(super) const E5M2_E4M3: Inputs = Inputs { a: E5M2, b: E4M3 };
