//! Operands that launches of `align-rows` copy in front of a kernel, so that TMA and wgmma can read them.

use tilec_ir::diag::Span;
use tilec_ir::facts::contiguous_dim;
use tilec_ir::kernel::Kernel;
use tilec_ir::types::ElemRef;
use tilec_passes::analysis::access_width::MAX_ACCESS_BYTES;

/// An operand that a launch of its own copies.
#[derive(Clone, Debug)]
pub(crate) struct CopiedOperand {
    /// The kernel that copies it.
    pub(crate) launch: String,
    /// The tensor.
    pub(crate) tensor: String,
    /// Where it is declared.
    pub(crate) span: Span,
    /// Its elements of 16 bytes.
    pub(crate) multiple: u32,
    /// Whether the copy has another order, and not only other rows.
    pub(crate) reordered: bool,
    /// Predicted seconds of the launch.
    pub(crate) seconds: Option<f64>,
}

/// The operand that a kernel of `align-rows` copies: its first tensor, to its last one. `seconds`: of the launch.
pub(super) fn of(k: &Kernel, seconds: Option<f64>) -> Option<CopiedOperand> {
    let (&from, &to) = (k.params.first()?, k.params.last()?);
    let ElemRef::Known(elem) = k.tensor_ty(from)?.elem else { return None };
    Some(CopiedOperand {
        launch: k.name.clone(),
        tensor: k.values[from].name.clone(),
        span: k.values[from].span,
        multiple: elem.per(MAX_ACCESS_BYTES),
        reordered: contiguous_dim(k, from) != contiguous_dim(k, to),
        seconds,
    })
}

impl CopiedOperand {
    /// Why it is copied.
    pub(crate) fn reason(&self) -> String {
        let tensor = &self.tensor;
        match self.reordered {
            true => format!("`{tensor}` is not contiguous along the reduction, as wgmma reads its elements"),
            false => format!(
                "rows of `{tensor}` are not known to be multiples of 16 bytes ({} elements), as TMA reads them",
                self.multiple
            ),
        }
    }

    /// What makes the copy unnecessary.
    pub(crate) fn way_out(&self) -> String {
        let tensor = &self.tensor;
        match self.reordered {
            true => format!("store `{tensor}` contiguous along the reduction (`row`, `col`): it is read as it is"),
            false => format!(
                "rows of `{tensor}` that are multiples of {0} elements, leading dimension included (`multiple {0}`): they are read as they are",
                self.multiple
            ),
        }
    }
}
