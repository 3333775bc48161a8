//! Parts of an expression that are computed once for several elements of the result.
//!
//! In `o * (1.0 / l)`, where `l` has one number for each row, a thread divides once for each of its rows, not once for
//! each element.

use super::scope::Scope;
use crate::inst::{Class, Reg};
use std::collections::BTreeMap;
use tilec_ir::deferred_lets::reads_windows;
use tilec_ir::entities::Expr;
use tilec_ir::kernel::Kernel;
use tilec_ir::layout::{drop_dims, shape_bits};
use tilec_ir::typing::{fixed_shape, scalar_shape};

/// The computed parts of one expression.
#[derive(Default)]
pub(super) struct Repeated {
    /// The index bits of a part's coordinates; `None`: each element of the result has its own value.
    bits: BTreeMap<Expr, Option<Vec<u32>>>,
    computed: BTreeMap<(Expr, u64, Class), Reg>,
}

impl Repeated {
    /// The index in the part `e` of each element of `group`; `None`: no value is shared.
    pub(super) fn places(&mut self, k: &Kernel, e: Expr, scope: &Scope, group: &[usize]) -> Option<Vec<u64>> {
        let own = self.bits.entry(e).or_insert_with(|| {
            let shape = fixed_shape(k, e).or_else(|| scalar_shape(k, e))?;
            // A window of memory is grouped like the whole expression.
            if reads_windows(k, e) {
                return None;
            }
            let bits = if shape.is_empty() { vec![0; scope.dim_bits.len()] } else { shape_bits(&shape) };
            (bits[..] != scope.dim_bits[..]).then_some(bits)
        });
        let own = own.as_ref()?;
        group.iter().map(|&v| drop_dims(scope.layout.at(0, v as u64), &scope.dim_bits, own)).collect()
    }

    pub(super) fn get(&self, e: Expr, place: u64, class: Class) -> Option<Reg> {
        self.computed.get(&(e, place, class)).copied()
    }

    pub(super) fn set(&mut self, e: Expr, place: u64, class: Class, reg: Reg) {
        self.computed.insert((e, place, class), reg);
    }
}
