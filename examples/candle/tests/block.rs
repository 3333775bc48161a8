//! A block with kernels of tilec on the simulator beside the same block with candle's operations in f32.

use candle_core::{DType, Device, Result, Tensor};
use tilec_candle::Kernels;
use tilec_candle::transformer::{Block, Config, Operations};

/// How far a tensor is from what is expected, in parts of its size.
fn distance(found: &Tensor, expected: &Tensor) -> Result<f32> {
    let (found, expected) = (found.to_dtype(DType::F32)?, expected.to_dtype(DType::F32)?);
    let size = |x: &Tensor| x.sqr()?.sum_all()?.to_scalar::<f32>();
    Ok((size(&(found - &expected)?)? / size(&expected)?).sqrt())
}

fn compare(target: &str, config: Config, [batch, length]: [usize; 2]) -> Result<()> {
    let device = Device::Cpu;
    let kernels = Kernels::simulated(target)?;
    let ours = Block::random(config, length, DType::BF16, &device)?;
    let theirs = ours.to_dtype(DType::F32)?;
    let x = Tensor::randn(0f32, 1.0, (batch, length, config.width), &device)?.to_dtype(DType::BF16)?;
    let grad = Tensor::randn(0f32, 1.0, (batch, length, config.width), &device)?.to_dtype(DType::BF16)?;
    let found = ours.forward(&x, Operations::Kernels(&kernels))?;
    let expected = theirs.forward(&x.to_dtype(DType::F32)?, Operations::CandleWithGradients)?;
    let off = distance(&found, &expected)?;
    assert!(off < 0.01, "{target} {config:?}: the result is {off} off");
    // Results of bf16 beside those of f32: a part in 256 in each of a dozen steps.
    let found = (found * &grad)?.sum_all()?.backward()?;
    let expected = (expected * grad.to_dtype(DType::F32)?)?.sum_all()?.backward()?;
    for (i, (a, b)) in ours.weights().into_iter().zip(theirs.weights()).enumerate() {
        let (Some(a), Some(b)) = (found.get(a), expected.get(b)) else { panic!("weight {i} has no gradient") };
        let off = distance(a, b)?;
        assert!(off < 0.03, "{target} {config:?}: the gradient of weight {i} is {off} off");
    }
    Ok(())
}

#[test]
fn a_block_computes_what_candle_computes() -> Result<()> {
    compare("sm_80", Config { width: 256, heads: 2, hidden: 72 }, [1, 37])?;
    compare("sm_90a", Config { width: 128, heads: 1, hidden: 136 }, [2, 21])
}

#[test]
fn what_does_not_fit_is_an_error() -> Result<()> {
    let kernels = Kernels::simulated("sm_80")?;
    let x = Tensor::zeros((3, 24), DType::BF16, &Device::Cpu)?;
    let w = Tensor::zeros((8, 32), DType::BF16, &Device::Cpu)?;
    let error = kernels.linear(&x, &w).unwrap_err().to_string();
    assert_eq!(error, "tensor `W`: its shape is [32, 8], expected [K, N] = [24, 8]; `X: [M, K]` has K = 24");
    let error = kernels.linear(&x.to_dtype(DType::F32)?, &w).unwrap_err().to_string();
    assert!(error.contains("expected bf16, found F32"), "{error}");
    let heads = Tensor::zeros((1, 1, 5, 80), DType::BF16, &Device::Cpu)?;
    assert!(kernels.attention(&heads, &heads, &heads, 1.0).is_err(), "heads of 80");
    assert!(Kernels::simulated("sm_70").is_err(), "no kernels for it");
    Ok(())
}
