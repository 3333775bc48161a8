//! The speed of the simulator: `cargo run --release -p tilec-sim --example rate`.
//!
//! With a word as argument, runs only the measurements whose names contain it: arithmetic only, arithmetic with every
//! fourth instruction on shared memory, and a stored matrix product; all with all checks.

use std::time::Instant;

use tilec_sim::{Device, Launch, Options, Program};

/// A loop of `body`, which may use `%r0` to `%r15`, `%f0` to `%f7` and `%a`, the thread's own word of shared memory.
fn looped(body: &str, turns: u32) -> String {
    format!(
        ".version 6.4\n.target sm_70\n.address_size 64\n.entry k()\n{{\n.reg .pred %p;\n.reg .b32 %r<16>, %a, %b, %i;\n\
         .reg .f32 %f<8>;\n.shared .align 16 .b8 sm[16384];\nmov.u32 %r0, %tid.x;\nshl.b32 %a, %r0, 4;\nmov.u32 %r1, sm;\n\
         add.u32 %a, %a, %r1;\nshl.b32 %b, %r0, 2; add.u32 %b, %b, %r1; add.u32 %b, %b, 8192;\nmov.b32 %r2, 0; mov.b32 %r3, 0; mov.f32 %f0, 0f00000000; mov.f32 %f1, 0f3F000000;\n\
         st.shared.v4.b32 [%a], {{%r0, %r1, %r2, %r3}};\nst.shared.u32 [%b], %r0; mov.u32 %i, 0;\nL:\n{body}\nadd.u32 %i, %i, 1;\n\
         setp.lt.u32 %p, %i, {turns};\n@%p bra L;\nret;\n}}\n"
    )
}

#[expect(clippy::print_stdout, reason = "an example for the command line")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let alu = "add.u32 %r2, %r2, %r0; xor.b32 %r3, %r2, %i; mul.lo.u32 %r4, %r3, %r2; and.b32 %r5, %r4, 255;\n";
    let float =
        "fma.rn.f32 %f0, %f0, %f1, %f1; add.f32 %f2, %f0, %f1; mul.f32 %f3, %f2, %f1; fma.rn.f32 %f0, %f3, %f1, %f2;\n";
    let words = "ld.shared.u32 %r6, [%b]; add.u32 %r6, %r6, %r0; xor.b32 %r7, %r6, %i; st.shared.u32 [%b], %r7;\n\
                 add.u32 %r2, %r2, %r0; xor.b32 %r3, %r2, %i; mul.lo.u32 %r4, %r3, %r2; and.b32 %r5, %r4, 255;\n";
    let wide = "ld.shared.v4.b32 {%r6, %r7, %r8, %r9}, [%a]; add.u32 %r6, %r6, %r7; xor.b32 %r7, %r6, %r8; add.u32 %r8, %r8, %r9;\n";
    let only = std::env::args().nth(1).unwrap_or_default();
    let all = [("integer", alu), ("float", float), ("25% ld/st.shared.b32", words), ("25% ld.shared.v4", wide)];
    for (name, body) in all.into_iter().filter(|(name, _)| name.contains(&only)) {
        let program = Program::parse(&looped(&body.repeat(8), 4000))?;
        let launch =
            Launch { entry: "k".into(), grid: [1, 1, 1], block: [256, 1, 1], dynamic_smem: 0, params: Vec::new() };
        let start = Instant::now();
        let counters = Device::new().run(&program, &launch, &Options::default())?;
        let seconds = start.elapsed().as_secs_f64();
        println!("{name:24} {:8.1} M warp instructions/s", counters.instructions as f64 / seconds / 1e6);
    }
    if "products of registers".contains(&only) {
        products("products of registers", &narrow(), 4 * 16 * 16 * 8 * 16)?;
    }
    if "asynchronous products".contains(&only) {
        products("asynchronous products", &wide_products(), 64 * 256 * 16)?;
    }
    for (name, access) in [
        ("scattered ld.global", "ld.global.u32 %r5, [%rd1];"),
        ("scattered red.global", "red.global.add.u32 [%rd1], 1;"),
    ] {
        if name.contains(&only) {
            scattered(name, access)?;
        }
    }
    if "f16 product".contains(&only) { product(256) } else { Ok(()) }
}

/// Eight blocks whose threads access words anywhere in four megabytes.
#[expect(clippy::print_stdout, reason = "an example for the command line")]
fn scattered(name: &str, access: &str) -> Result<(), Box<dyn std::error::Error>> {
    let program = Program::parse(&format!(
        ".version 6.4\n.target sm_70\n.address_size 64\n.entry k(.param .u64 x)\n{{\n.reg .pred %p;\n.reg .b32 %r<8>;\n.reg .b64 %rd<2>;\n\
         ld.param.u64 %rd0, [x]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r0, %r1, 256, %r0;\n\
         mad.lo.u32 %r3, %r0, 1664525, 1013904223; mov.u32 %r2, 0;\nL: mad.lo.u32 %r3, %r3, 1664525, 1013904223; shr.u32 %r4, %r3, 12;\n\
         mul.wide.u32 %rd1, %r4, 4; add.u64 %rd1, %rd1, %rd0; {access}\nadd.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, 1000; @%p bra L; ret;\n}}\n"
    ))?;
    let mut device = Device::new();
    let at = device.alloc(4 << 20)?;
    device.upload(at, &vec![0; 4 << 20])?;
    let params = vec![at.to_le_bytes().to_vec()];
    let launch = Launch { entry: "k".into(), grid: [8, 1, 1], block: [256, 1, 1], dynamic_smem: 0, params };
    let start = Instant::now();
    device.run(&program, &launch, &Options::default())?;
    println!("{name:24} {:8.1} ns for each access", start.elapsed().as_secs_f64() * 1e9 / (8.0 * 256.0 * 1000.0));
    Ok(())
}

/// A loop of sixteen `mma.sync` in each of four warps.
fn narrow() -> String {
    let products: String = (0..16)
        .map(|i| {
            let d = format!("{{%f{}, %f{}, %f{}, %f{}}}", 4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3);
            format!("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {d}, {{%r0,%r1,%r2,%r3}}, {{%r4,%r5}}, {d};\n")
        })
        .collect();
    of_products(&products)
}

/// A loop of `wgmma` with all columns there can be.
fn wide_products() -> String {
    let list: Vec<String> = (0..128).map(|i| format!("%f{i}")).collect();
    of_products(&format!(
        "wgmma.fence.sync.aligned;\n\
         wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {{{}}}, %rd0, %rd1, 1, 1, 1, 0, 0;\n\
         wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n",
        list.join(",")
    ))
}

/// Fills registers and 12 KiB of shared memory with fractions, and multiplies a thousand times.
fn of_products(body: &str) -> String {
    let zeros: String = (0..128).map(|i| format!("mov.f32 %f{i}, 0f00000000;\n")).collect();
    format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n.entry k()\n{{\n.reg .pred %p;\n.reg .b32 %r<16>, %a, %i;\n\
         .reg .b64 %rd<4>;\n.reg .f32 %f<128>;\n.shared .align 1024 .b8 sm[12288];\nmov.u32 %r0, %tid.x;\nmov.u32 %a, sm;\n\
         shl.b32 %r1, %r0, 2; add.u32 %a, %a, %r1; mul.lo.u32 %r2, %r0, 0x00070003; add.u32 %r0, %r2, 0x3A5F3955;\n\
         mov.u32 %r1, %r0; mov.u32 %r2, %r0; mov.u32 %r3, %r0; mov.u32 %r4, %r0; mov.u32 %r5, %r0;\nmov.u32 %i, 0;\n\
         F: st.shared.u32 [%a], %r0; add.u32 %a, %a, 512; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 24; @%p bra F;\n\
         fence.proxy.async; bar.sync 0; mov.u32 %r6, sm; shr.u32 %r6, %r6, 4; cvt.u64.u32 %rd0, %r6;\n\
         or.b64 %rd0, %rd0, 0xC000001000010000; add.s64 %rd1, %rd0, 128;\n{zeros}mov.u32 %i, 0;\nL:\n{body}\n\
         add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 1000;\n@%p bra L;\nret;\n}}\n"
    )
}

/// Measures a kernel with products of two elements, of which an iteration of its loop has `turn`.
#[expect(clippy::print_stdout, reason = "an example for the command line")]
fn products(name: &str, text: &str, turn: u64) -> Result<(), Box<dyn std::error::Error>> {
    let program = Program::parse(text)?;
    let launch = Launch { entry: "k".into(), grid: [1, 1, 1], block: [128, 1, 1], dynamic_smem: 0, params: Vec::new() };
    let start = Instant::now();
    Device::new().run(&program, &launch, &Options::default())?;
    println!("{name:24} {:8.3} ns for each product", start.elapsed().as_secs_f64() * 1e6 / turn as f64);
    Ok(())
}

/// Measures a stored kernel: an f16 product with f32 accumulators, n x n x n.
#[expect(clippy::print_stdout, reason = "an example for the command line")]
fn product(n: u32) -> Result<(), Box<dyn std::error::Error>> {
    let program = Program::parse(include_str!("../tests/data/gemm_rr_f32.ptx"))?;
    let mut device = Device::new();
    let elements = u64::from(n) * u64::from(n);
    let mut params = Vec::new();
    for bytes in [2, 2, 4] {
        let at = device.alloc(elements * bytes)?;
        // 0x3C00 is one.
        device.upload(at, &[0x00, 0x3C].repeat((elements * bytes / 2) as usize))?;
        params.push(at.to_le_bytes().to_vec());
    }
    params.extend([1f32, 0.0].map(|v| v.to_le_bytes().to_vec()));
    params.extend([n; 3].map(|v| v.to_le_bytes().to_vec()));
    params.extend([i64::from(n); 3].map(|v| v.to_le_bytes().to_vec()));
    let tiles = n.div_ceil(64);
    let launch = Launch {
        entry: "gemm".into(),
        grid: [tiles * 8, tiles.div_ceil(8), 1],
        block: [128, 1, 1],
        dynamic_smem: 0,
        params,
    };
    let start = Instant::now();
    let counters = device.run(&program, &launch, &Options::default())?;
    let seconds = start.elapsed().as_secs_f64();
    let rate = counters.instructions as f64 / seconds / 1e6;
    println!("f16 product, {n}x{n}x{n}: {seconds:.3} s, {} mma, {rate:.1} M warp instructions/s", counters.mma);
    Ok(())
}
