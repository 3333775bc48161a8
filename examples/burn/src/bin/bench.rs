//! Tokens per second of a block with Burn's operations and with kernels of tilec, in turn: `bench [WIDTH HEADS HIDDEN BATCH LENGTH]`.
//!
//! Each side is warmed up, then timed in rounds; a round is as many calls as take about 50 ms. The median and the range of the rounds
//! are printed, and how far the results are from each other.

use burn::tensor::{DType, Device, Distribution, Tensor};
use std::error::Error;
use std::time::Instant;
use tilec_burn::transformer::{Block, Config, Operations};

const ROUNDS: usize = 9;
/// Burn compiles kernels and chooses among them in its first calls.
const WARM: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<usize> = std::env::args().skip(1).map(|a| a.parse()).collect::<Result<_, _>>()?;
    let number = |i: usize, default: usize| numbers.get(i).copied().unwrap_or(default);
    let config = Config { width: number(0, 4096), heads: number(1, 32), hidden: number(2, 11008) };
    let (batch, length) = (number(3, 1), number(4, 4096));
    println!("{config:?}, batch {batch}, length {length}, bf16");
    for (what, device) in [("forward", Device::cuda(0)), ("forward and backward", Device::cuda(0).autodiff())] {
        let block = Block::random(config, length, DType::BF16, &device);
        let normal = Distribution::Normal(0.0, 1.0);
        let x = Tensor::<3>::random([batch, length, config.width], normal, &device).cast(DType::BF16);
        let run = |with| {
            let y = block.forward(x.clone(), with);
            if !device.is_autodiff() {
                return Some(y.reshape([-1]));
            }
            block.gradients(&y.sum().backward()).into_iter().next().flatten()
        };
        compare(what, batch * length, &device, run)?;
    }
    Ok(())
}

/// Both sides in turn.
fn compare(
    what: &str,
    tokens: usize,
    device: &Device,
    run: impl Fn(Operations) -> Option<Tensor<1>>,
) -> Result<(), Box<dyn Error>> {
    let sides = [Operations::Burn, Operations::Kernels];
    let time = |side: usize, calls: usize| -> Result<f64, Box<dyn Error>> {
        device.sync()?;
        let start = Instant::now();
        for _ in 0..calls {
            run(sides[side]).ok_or("no gradient")?;
        }
        device.sync()?;
        Ok(start.elapsed().as_secs_f64() / calls as f64)
    };
    let mut seconds = [Vec::new(), Vec::new()];
    let mut calls = [1, 1];
    for side in [0, 1] {
        time(side, WARM)?;
        calls[side] = (0.05 / time(side, 3)?).ceil().max(1.0) as usize;
    }
    for _ in 0..ROUNDS {
        for side in [0, 1] {
            seconds[side].push(time(side, calls[side])?);
        }
    }
    for (name, seconds) in ["burn", "tilec"].iter().zip(&mut seconds) {
        seconds.sort_by(f64::total_cmp);
        let rate = |s: f64| tokens as f64 / s;
        let (least, most) = (rate(seconds[ROUNDS - 1]), rate(seconds[0]));
        println!("{what}: {name}: {:.0} tokens/s ({least:.0} to {most:.0})", rate(seconds[ROUNDS / 2]));
    }
    let result = |side: usize| run(sides[side]).ok_or("no gradient").map(|t| t.cast(DType::F32));
    let (expected, found) = (result(0)?, result(1)?);
    let size = |x: Tensor<1>| x.square().sum().into_scalar::<f32>();
    let off = (size(found - expected.clone()) / size(expected)).sqrt();
    println!("{what}: {:.2} times; results {off:.4} apart", seconds[0][ROUNDS / 2] / seconds[1][ROUNDS / 2]);
    Ok(())
}
