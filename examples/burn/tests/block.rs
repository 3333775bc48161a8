//! A block with kernels of tilec on the simulator beside the same block with Burn's operations in f32.

use burn::tensor::{DType, Device, Distribution, Tensor};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use tilec_burn::transformer::{Block, Config, Operations};

/// The target of the simulator is one for the process.
static TARGET: Mutex<()> = Mutex::new(());

fn random<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::<D>::random(shape, Distribution::Normal(0.0, 1.0), device).cast(DType::BF16)
}

/// How far a tensor is from what is expected, in parts of its size.
fn distance<const D: usize>(found: Tensor<D>, expected: Tensor<D>) -> f32 {
    let (found, expected) = (found.cast(DType::F32), expected.cast(DType::F32));
    let size = |x: Tensor<D>| x.square().sum().into_scalar::<f32>();
    (size(found - expected.clone()) / size(expected)).sqrt()
}

fn compare(target: &str, config: Config, [batch, length]: [usize; 2]) {
    tilec_burn::simulate(target).unwrap();
    let device = Device::flex().autodiff();
    let ours = Block::random(config, length, DType::BF16, &device);
    let theirs = ours.cast(DType::F32);
    let x = random([batch, length, config.width], &device);
    let grad = random([batch, length, config.width], &device);
    let found = ours.forward(x.clone(), Operations::Kernels);
    let expected = theirs.forward(x.cast(DType::F32), Operations::Burn);
    let off = distance(found.clone(), expected.clone());
    assert!(off < 0.01, "{target} {config:?}: the result is {off} off");
    // Results of bf16 beside those of f32: a part in 256 in each of a dozen steps.
    let found = ours.gradients(&(found * grad.clone()).sum().backward());
    let expected = theirs.gradients(&(expected * grad.cast(DType::F32)).sum().backward());
    assert_eq!(found.len(), 6);
    for (i, (found, expected)) in found.into_iter().zip(expected).enumerate() {
        let (Some(a), Some(b)) = (found, expected) else { panic!("weight {i} has no gradient") };
        let off = distance(a, b);
        assert!(off < 0.03, "{target} {config:?}: the gradient of weight {i} is {off} off");
    }
}

#[test]
fn a_block_computes_what_burn_computes() {
    let _target = TARGET.lock();
    compare("sm_80", Config { width: 256, heads: 2, hidden: 72 }, [1, 37]);
    compare("sm_90a", Config { width: 128, heads: 1, hidden: 136 }, [2, 21]);
}

#[test]
fn without_gradients_the_kernels_run_too() {
    let _target = TARGET.lock();
    let device = Device::flex();
    let config = Config { width: 128, heads: 1, hidden: 24 };
    let block = Block::random(config, 9, DType::BF16, &device);
    let x = random([1, 9, 128], &device);
    let found = block.forward(x.clone(), Operations::Kernels);
    let expected = block.cast(DType::F32).forward(x.cast(DType::F32), Operations::Burn);
    let off = distance(found, expected);
    assert!(off < 0.01, "the result is {off} off");
}

/// A tensor that is requested no gradient has none, and the other one has its own.
#[test]
fn gradients_of_one_operand_alone() {
    let _target = TARGET.lock();
    let device = Device::flex().autodiff();
    let (x, w) = (random([5, 24], &device), random([16, 24], &device).require_grad());
    let grads = tilec_burn::linear(x.clone(), w.clone()).sum().backward();
    let of_w = w.grad(&grads).unwrap();
    assert!(x.grad(&grads).is_none());
    let expected = x.inner().sum_dim(0).repeat_dim(0, 16);
    let off = distance(of_w, expected);
    assert!(off < 0.01, "{off} off");
}

/// Tensors are read with their strides where kernels take them, and copied where not.
#[test]
fn strides() {
    let _target = TARGET.lock();
    let device = Device::flex();
    let (wide, w) = (random([3, 64], &device), random([16, 24], &device));
    let compare = |x: Tensor<2>, w: Tensor<2>, what: &str| {
        let found = tilec_burn::linear(x.clone(), w.clone());
        let off = distance(found, x.cast(DType::F32).matmul(w.cast(DType::F32).transpose()));
        assert!(off < 0.01, "{what}: {off} off");
    };
    for start in [0, 8, 12, 40] {
        compare(wide.clone().narrow(1, start, 24), w.clone(), "columns of a wider matrix");
    }
    compare(random([3, 30], &device).narrow(1, 3, 24), w.clone(), "rows of 60 bytes");
    compare(wide.clone().narrow(1, 0, 24), random([24, 16], &device).transpose(), "transposed weights");
    compare(wide.narrow(1, 0, 24).flip([0]), w, "rows backwards");
}

#[test]
fn what_does_not_fit_panics() {
    let _target = TARGET.lock();
    let device = Device::flex();
    let message = |f: &dyn Fn() -> Tensor<2>| {
        let error = catch_unwind(AssertUnwindSafe(f)).expect_err("it panics");
        error.downcast_ref::<String>().unwrap().clone()
    };
    let (x, w) = (random([3, 24], &device), random([8, 32], &device));
    let error = message(&|| tilec_burn::linear(x.clone(), w.clone()));
    assert_eq!(error, "tilec: tensor `W`: its shape is [32, 8], expected [K, N] = [24, 8]; `X: [M, K]` has K = 24");
    let error = message(&|| tilec_burn::linear(x.clone().cast(DType::F32), w.clone()));
    assert!(error.contains("expected bf16, found F32"), "{error}");
    assert!(tilec_burn::simulate("sm_70").is_err(), "no kernels for it");
}
