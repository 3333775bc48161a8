//! Warp-wide matrix and scalar instructions that the numerics execute per second on one core.

use std::hint::black_box;
use std::time::Instant;
use tilec_sim::numerics::half::Half;
use tilec_sim::numerics::mma::{Acc, Elem, Generation, Layout, Shape, m8n8k4, mma, row_col};
use tilec_sim::numerics::{Mode, half, packed3, single};

/// A register of a warp.
type Lanes = [u32; 32];
/// An instruction with three operands.
type Operation<'a> = &'a dyn Fn(&Lanes, &Lanes, &Lanes) -> Lanes;

/// A small generator (xorshift).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Nanoseconds of processor time of this thread if the system provides it, else of wall time.
fn now(epoch: Instant) -> f64 {
    let wall = epoch.elapsed().as_nanos() as f64;
    let on_processor = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    on_processor.and_then(|s| s.split_whitespace().next()?.parse().ok()).unwrap_or(wall)
}

fn report(name: &str, count: u32, epoch: Instant, start: f64) {
    let seconds = (now(epoch) - start) / 1e9;
    println!("{name:44} {:8.2} M/s", f64::from(count) / seconds / 1e6);
}

fn main() {
    let epoch = Instant::now();
    let mut state = 88_172_645_463_325_252;
    let cases = [
        ("m8n8k4.f32.f16 Volta", m8n8k4(Layout::Row, Layout::Col, Acc::F32, Acc::F32), Generation::Volta),
        ("m8n8k4.f16.f16 Volta", m8n8k4(Layout::Row, Layout::Col, Acc::F16, Acc::F16), Generation::Volta),
        ("m8n8k4.f32.f16 scalar", m8n8k4(Layout::Row, Layout::Col, Acc::F32, Acc::F32), Generation::Hopper),
        ("m16n8k8.f32.f16 Turing", row_col(Shape::M16N8K8, Elem::F16, Acc::F32), Generation::Turing),
        ("m16n8k16.f32.f16 Ampere", row_col(Shape::M16N8K16, Elem::F16, Acc::F32), Generation::Ampere),
        ("m16n8k16.f32.f16 Ampere, integers", row_col(Shape::M16N8K16, Elem::F16, Acc::F32), Generation::Ampere),
        ("m16n8k16.f16.f16 Ampere", row_col(Shape::M16N8K16, Elem::F16, Acc::F16), Generation::Ampere),
        ("m16n8k16.f32.bf16 Ampere", row_col(Shape::M16N8K16, Elem::Bf16, Acc::F32), Generation::Ampere),
        ("m16n8k8.f32.tf32 Ampere", row_col(Shape::M16N8K8, Elem::Tf32, Acc::F32), Generation::Ampere),
        ("m16n8k16.f32.f16 Hopper", row_col(Shape::M16N8K16, Elem::F16, Acc::F32), Generation::Hopper),
        ("m16n8k32.f32.e4m3 Ada", row_col(Shape::M16N8K32, Elem::E4m3, Acc::F32), Generation::Ada),
        ("m16n8k32.f32.e4m3 Hopper", row_col(Shape::M16N8K32, Elem::E4m3, Acc::F32), Generation::Hopper),
        ("m16n8k32.s32.s8 Ampere", row_col(Shape::M16N8K32, Elem::S8, Acc::S32), Generation::Ampere),
    ];
    for (name, form, device) in cases {
        let registers = form.registers();
        let mut fill = |n: usize| -> Vec<[u32; 32]> {
            let one = |state: &mut u64| {
                let x = next(state) as u32;
                match form.a {
                    // The integers 2 and 3 of either sign.
                    Elem::F16 if name.ends_with("integers") => (x & 0x8200_8200) | 0x4000_4000,
                    // Numbers near one, of either sign, with full fractions.
                    Elem::F16 => (x & 0x87ff_87ff) | 0x3800_3800,
                    Elem::Bf16 => (x & 0x80ff_80ff) | 0x3f00_3f00,
                    Elem::Tf32 => (x & 0x80ff_ffff) | 0x3f00_0000,
                    Elem::E4m3 | Elem::E5m2 => (x & 0x8f8f_8f8f) | 0x3030_3030,
                    Elem::S8 | Elem::U8 => x,
                }
            };
            (0..n).map(|_| std::array::from_fn(|_| one(&mut state))).collect()
        };
        let (a, b) = (fill(registers.a), fill(registers.b));
        let c = vec![[0u32; 32]; registers.c];
        let mut d = vec![[0u32; 32]; registers.d];
        let count = 200_000;
        let start = now(epoch);
        for _ in 0..count {
            mma(&form, device, black_box(&a), black_box(&b), black_box(&c), &mut d).expect("a form the device has");
            black_box(&mut d);
        }
        report(name, count, epoch, start);
    }
    let lanes: [[u32; 32]; 3] =
        std::array::from_fn(|_| std::array::from_fn(|_| (next(&mut state) as u32 & 0x83ff_83ff) | 0x3800_3800));
    let count = 1_000_000;
    let rate = |name: &str, op: Operation<'_>| {
        let start = now(epoch);
        for _ in 0..count {
            black_box(op(black_box(&lanes[0]), black_box(&lanes[1]), black_box(&lanes[2])));
        }
        report(name, count, epoch, start);
    };
    rate("fma.rn.f32", &|a, b, c| std::array::from_fn(|l| single::fma(Mode::RN, a[l], b[l], c[l])));
    rate("fma.rn.f32 through mul_add", &|a, b, c| {
        let f = f32::from_bits;
        std::array::from_fn(|l| f(a[l]).mul_add(f(b[l]), f(c[l])).to_bits())
    });
    rate("add.rn.f32", &|a, b, _| std::array::from_fn(|l| single::add(Mode::RN, a[l], b[l])));
    rate("fma.rn.f16x2", &|a, b, c| {
        std::array::from_fn(|l| packed3(a[l], b[l], c[l], |x, y, z| half::fma(Half::F16, Mode::RN, x, y, z)))
    });
    rate("fma.rn.bf16x2", &|a, b, c| {
        std::array::from_fn(|l| packed3(a[l], b[l], c[l], |x, y, z| half::fma(Half::Bf16, Mode::RN, x, y, z)))
    });
}
