//! `barriers`: place the barriers that shared memory needs (to be written).
use crate::Cx;
use tilec_ir::diag::Reported;
use tilec_ir::kernel::Kernel;
pub(crate) fn run(_k: &mut Kernel, _cx: &mut Cx<'_>) -> Result<(), Reported> {
    Ok(())
}
