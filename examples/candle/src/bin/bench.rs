//! Tokens per second of a block with candle's operations and with kernels of tilec, in turn: `bench [WIDTH HEADS HIDDEN BATCH LENGTH]`.
//!
//! Each side is warmed up, then timed in rounds; a round is as many calls as take about 50 ms. The median and the range of the rounds
//! are printed, and how far the results are from each other.

use candle_core::{DType, Device, Result, Tensor};
use std::time::Instant;
use tilec_candle::Kernels;
use tilec_candle::transformer::{Block, Config, Operations};

const ROUNDS: usize = 9;

fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).map(|a| a.parse::<usize>().map_err(candle_core::Error::wrap));
    let mut next = |default: usize| numbers.next().unwrap_or(Ok(default));
    let config = Config { width: next(4096)?, heads: next(32)?, hidden: next(11008)? };
    let (batch, length) = (next(1)?, next(4096)?);
    let device = Device::new_cuda(0)?;
    let kernels = Kernels::load(&device)?;
    let block = Block::random(config, length, DType::BF16, &device)?;
    let x = Tensor::randn(0f32, 1.0, (batch, length, config.width), &device)?.to_dtype(DType::BF16)?;
    println!("{config:?}, batch {batch}, length {length}, bf16");

    let forward = |with| block.forward(&x, with);
    compare(
        "forward",
        batch * length,
        &device,
        [&|| forward(Operations::Candle), &|| forward(Operations::Kernels(&kernels))],
    )?;
    let step = |with| -> Result<Tensor> {
        let grads = block.forward(&x, with)?.sum_all()?.backward()?;
        let weights = block.weights();
        weights.first().and_then(|w| grads.get(w)).cloned().ok_or_else(|| candle_core::Error::Msg("no gradient".into()))
    };
    compare(
        "forward and backward",
        batch * length,
        &device,
        [&|| step(Operations::CandleWithGradients), &|| step(Operations::Kernels(&kernels))],
    )
}

/// Both sides in turn.
fn compare(what: &str, tokens: usize, device: &Device, sides: [&dyn Fn() -> Result<Tensor>; 2]) -> Result<()> {
    let [expected, found] = [sides[0]()?, sides[1]()?].map(|t| t.to_dtype(DType::F32));
    let (expected, found) = (expected?, found?);
    let size = |x: &Tensor| x.sqr()?.sum_all()?.to_scalar::<f32>();
    let off = (size(&(found - &expected)?)? / size(&expected)?).sqrt();
    let time = |side: usize, calls: usize| -> Result<f64> {
        device.synchronize()?;
        let start = Instant::now();
        for _ in 0..calls {
            sides[side]()?;
        }
        device.synchronize()?;
        Ok(start.elapsed().as_secs_f64() / calls as f64)
    };
    let mut seconds = [Vec::new(), Vec::new()];
    let mut calls = [1, 1];
    for side in [0, 1] {
        time(side, 3)?;
        calls[side] = (0.05 / time(side, 3)?).ceil().max(1.0) as usize;
    }
    for _ in 0..ROUNDS {
        for side in [0, 1] {
            seconds[side].push(time(side, calls[side])?);
        }
    }
    for (name, seconds) in ["candle", "tilec"].iter().zip(&mut seconds) {
        seconds.sort_by(f64::total_cmp);
        let rate = |s: f64| tokens as f64 / s;
        let (least, most) = (rate(seconds[ROUNDS - 1]), rate(seconds[0]));
        println!("{what}: {name}: {:.0} tokens/s ({least:.0} to {most:.0})", rate(seconds[ROUNDS / 2]));
    }
    println!("{what}: {:.2} times; results {off:.4} apart", seconds[0][ROUNDS / 2] / seconds[1][ROUNDS / 2]);
    Ok(())
}
