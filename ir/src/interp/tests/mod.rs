//! What programs compute, and what is reported as undefined.
//!
//! Programs are text; results are compared with direct loops over the same numbers, exactly wherever all numbers are small
//! integers.

mod errors;
mod fuzz;
mod gemm;
mod programs;
mod rounding;

use super::{Numbers, run};
use crate::diag::{Diagnostic, Sink};
use crate::interp::inputs::{Inputs, Options, Tensor};
use crate::kernel::{ConstValue, Kernel};
use crate::parser::parse;
use crate::types::Elem;

/// The first kernel of a source that is right.
fn kernel(source: &str) -> Kernel {
    let mut sink = Sink::new();
    match parse(source, &mut sink) {
        Ok(module) => module.kernels.into_iter().next().unwrap(),
        Err(_) => panic!("{:#?}", sink.diagnostics()),
    }
}

/// Small integers that repeat late.
fn number(i: usize) -> f64 {
    ((i * 7919 + 13) % 11) as f64 - 5.0
}

/// An allocation of `n` small integers.
fn tensor(elem: Elem, n: usize) -> Tensor {
    Tensor { elem, data: (0..n).map(number).collect::<Vec<f64>>().into() }
}

fn int(x: i64) -> ConstValue {
    ConstValue::Int(x)
}

impl Inputs {
    fn size(mut self, name: &str, n: usize) -> Inputs {
        self.sizes.insert(name.to_owned(), n as i64);
        self
    }

    fn stride(mut self, name: &str, n: usize) -> Inputs {
        self.strides.insert(name.to_owned(), n as i64);
        self
    }

    fn given(mut self, name: &str, value: ConstValue) -> Inputs {
        self.consts.insert(name.to_owned(), value);
        self
    }

    fn scalar(mut self, name: &str, x: f64) -> Inputs {
        self.scalars.insert(name.to_owned(), x.into());
        self
    }

    fn tensor(mut self, name: &str, tensor: Tensor) -> Inputs {
        self.tensors.insert(name.to_owned(), tensor);
        self
    }

    fn data(&self, name: &str) -> &[f64] {
        match &self.tensors[name].data {
            Numbers::Floats(data) => data,
            Numbers::Wide(_) => panic!("`{name}` holds i64"),
        }
    }
}

/// The result of a program that is right.
fn result(k: &Kernel, mut inputs: Inputs) -> Inputs {
    if let Err(d) = run(k, &mut inputs, &Options::default()) {
        panic!("{d:#?}");
    }
    inputs
}

/// What is reported about a program that is wrong.
fn error(k: &Kernel, mut inputs: Inputs) -> Diagnostic {
    *run(k, &mut inputs, &Options::default()).expect_err("the program is undefined")
}
