//! Recognises kernels that are a matrix product, from the source program.
//!
//! A kernel is a product if all its `mma` accumulate, from zero, the product of two tensors into one register tile.
//! Every store to global memory must go to one tensor. If the stored value is `alpha * acc + beta * C`, a BLAS library
//! computes the same as the whole kernel. Any other epilogue is a fused one, and the library is measured on the bare
//! product.

mod finder;
mod form;
mod linear;
mod split;
#[cfg(test)]
mod tests;

use finder::{Finder, MAX_HOPS, of_slices};
pub use form::{AccElem, Batch, Coefficient, Extents, Operand, Product};
use tilec_ir::entities::Value;
use tilec_ir::kernel::Kernel;

impl Product {
    /// The product that kernels (compile-time parameters bound) compute, launched one after the other.
    pub fn of_program(kernels: &[&Kernel]) -> Option<Product> {
        let copies: Vec<Copied> = kernels.iter().filter_map(|k| Copied::by(k)).collect();
        let others: Vec<&Kernel> = kernels.iter().filter(|k| Copied::by(k).is_none()).copied().collect();
        let mut product = match *others {
            [one] => Product::of(one),
            [partial, reduce] => split::product(partial, reduce),
            _ => None,
        }?;
        for operand in [&mut product.a, &mut product.b] {
            if let Some(copy) = copies.iter().find(|c| c.to == operand.tensor) {
                operand.tensor.clone_from(&copy.from);
            }
        }
        Some(product)
    }

    /// The product that `kernel` (compile-time parameters bound) computes.
    pub fn of(kernel: &Kernel) -> Option<Product> {
        if split::sliced_by(kernel).is_some() { None } else { of_slices(kernel) }
    }
}

/// A kernel that does nothing but copy a tensor to another one, element by element: as it is stored, with rows of another length, or in another order.
struct Copied {
    from: String,
    to: String,
}

impl Copied {
    fn by(kernel: &Kernel) -> Option<Copied> {
        let finder = Finder::new(kernel);
        let ([], &[(src, dst)], false) = (finder.products.as_slice(), finder.stores.as_slice(), finder.fails) else {
            return None;
        };
        let (from, to) = (finder.source(src, MAX_HOPS)?, finder.source(dst, 1)?);
        let elem = |tensor: &str| {
            let named = |v: &&Value| kernel.values[**v].name == tensor;
            kernel.params.iter().find(named).and_then(|&v| Some(kernel.tensor_ty(v)?.elem))
        };
        let alike = (from.dims, &from.batch) == (to.dims, &to.batch) && elem(&from.tensor) == elem(&to.tensor);
        (alike && from.tensor != to.tensor).then_some(Copied { from: from.tensor, to: to.tensor })
    }
}
