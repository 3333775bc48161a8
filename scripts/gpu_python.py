#!/usr/bin/env python3
"""The Python package on a GPU: results, streams, graphs, operators, and what a launch takes on the host beside Triton's.

    python3 scripts/gpu_python.py        with the package installed, PyTorch, and Triton for the comparison

Launches are timed on the host, in batches that fit into the stream's queue, with the kernel so small that the queue stays short; the two take turns, and the median of the
batches stands.
"""

import pathlib
import statistics
import sys
import time

import torch

import tilec

ROOT = pathlib.Path(__file__).resolve().parents[1]
SCALE = """kernel scale(X: gmem f32[N], Y: gmem f32[N], a: f32) grid (b: ceildiv(N, 1024)) {
    copy a * X[b * 1024..+1024] -> Y[b * 1024..]
}
"""
ADD = """kernel plus(X: gmem f32[N], Y: gmem f32[N], Z: gmem f32[N]) grid (b: ceildiv(N, 1024)) {
    copy X[b * 1024..+1024] + Y[b * 1024..+1024] -> Z[b * 1024..]
}
"""


def check(name: str, good: object) -> None:
    print(f"{name}: {'equal' if good else 'WRONG'}", flush=True)
    if not good:
        sys.exit(1)


def whole(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randint(-4, 5, shape, device="cuda").to(dtype)


def results() -> None:
    gemm = tilec.compile(ROOT / "examples/gemm.tile", T="bf16", variants=[{"ALIGN": 8}, {"ALIGN": 1}])
    print(gemm, flush=True)
    for m, n, k in ((512, 256, 128), (1000, 264, 520), (17, 33, 65), (128, 72, 0)):
        a, b = whole(m, k, dtype=torch.bfloat16), whole(k, n, dtype=torch.bfloat16)
        c = torch.full((m, n), float("nan"), device="cuda")
        gemm(a, b, c)
        check(f"gemm {m}x{n}x{k}", torch.equal(c, (a.double() @ b.double()).float()))
    a, b = whole(512, 256, dtype=torch.bfloat16), whole(256, 512, dtype=torch.bfloat16)
    side = torch.cuda.Stream()
    c = torch.full((512, 512), float("nan"), device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        gemm(a, b, c)
    side.synchronize()
    check("a stream", torch.equal(c, a.float() @ b.float()))
    splitk = tilec.compile(ROOT / "examples/gemm_splitk.tile", T="f16")
    a, b = whole(256, 2048, dtype=torch.float16), whole(2048, 128, dtype=torch.float16)
    c = torch.full((256, 128), float("nan"), device="cuda")
    splitk(A=a, B=b, C=c, S=8)
    check("split-K", torch.equal(c, (a.double() @ b.double()).float()))
    graph(gemm, splitk)
    try:
        gemm(a[:, :7], b[:7].float(), c)
    except tilec.LaunchError as error:
        print(f"refused: {error}")


def graph(gemm: tilec.Kernel, splitk: tilec.Kernel) -> None:
    a, b = whole(256, 2048, dtype=torch.bfloat16), whole(2048, 128, dtype=torch.bfloat16)
    ah, bh = a.half(), b.half()
    c, d = torch.empty(256, 128, device="cuda"), torch.empty(256, 128, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        gemm(a, b, c)
        splitk(A=ah, B=bh, C=d, S=4)
    stream.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured, stream=stream):
        gemm(a, b, c)
        splitk(A=ah, B=bh, C=d, S=4)
    for _ in range(3):
        a.copy_(whole(256, 2048, dtype=torch.bfloat16))
        ah.copy_(a)
        c.fill_(float("nan"))
        d.fill_(float("nan"))
        captured.replay()
        torch.cuda.synchronize()
        expected = (a.double() @ b.double()).float()
        check("a graph", torch.equal(c, expected) and torch.equal(d, expected))


def operators() -> None:
    kernel = tilec.compile(ROOT / "examples/gemm.tile", T="bf16", Out="bf16") if "Out" in (ROOT / "examples/gemm.tile").read_text() else tilec.compile(ROOT / "examples/gemm.tile", T="bf16")

    def setup(ctx: object, inputs: tuple, output: object) -> None:
        ctx.save_for_backward(inputs[0], inputs[1])

    def backward(ctx: object, grad: torch.Tensor) -> tuple:
        a, b = ctx.saved_tensors
        grad = grad.to(a.dtype).contiguous()
        return (product(grad, b.t().contiguous()).to(a.dtype), product(a.t().contiguous(), grad).to(b.dtype)) + (None,) * more

    more = sum(p["access"] == "scalar" for p in kernel.parameters())
    product = kernel.register("tilec_gpu::product", results=["C"], backward=backward, setup_context=setup)
    a, b = whole(256, 64, dtype=torch.bfloat16).requires_grad_(), whole(64, 128, dtype=torch.bfloat16).requires_grad_()
    c = product(a, b)
    check("an operator", torch.equal(c.float(), (a.double() @ b.double()).to(c.dtype).float()))
    c.sum().backward()
    ones = torch.ones(256, 128, device="cuda", dtype=torch.float64)
    check("its gradient", torch.equal(a.grad.double(), (ones @ b.detach().double().t()).to(a.dtype).double()))
    compiled = torch.compile(lambda x, w: torch.relu(product(x, w)) + 1, fullgraph=True)
    for m in (256, 512, 768):
        x, w = whole(m, 64, dtype=torch.bfloat16), whole(64, 128, dtype=torch.bfloat16)
        check(f"torch.compile {m}", torch.equal(compiled(x, w).float(), (torch.relu(product(x, w)) + 1).float()))


def overhead() -> None:
    scale, add, gemm = tilec.compile(SCALE), tilec.compile(ADD), tilec.compile(ROOT / "examples/gemm.tile", T="bf16")
    x, y, z = (torch.ones(1024, device="cuda") for _ in range(3))
    a, b, c = whole(128, 64, dtype=torch.bfloat16), whole(64, 128, dtype=torch.bfloat16), torch.empty(128, 128, device="cuda")
    many = [torch.ones(1024, device="cuda") for _ in range(64)]
    turn = iter(range(1 << 40))
    ways = {
        "tilec, 3 tensors": lambda: add.launch(x, y, z),
        "tilec, 2 tensors and a scalar": lambda: scale.launch(x, y, 2.0),
        "tilec, called as an object": lambda: add(x, y, z),
        "tilec, other addresses each time": lambda: add.launch(many[next(turn) % 64], y, z),
        "tilec, gemm with tensor maps": lambda: gemm.launch(a, b, c),
        "PyTorch, torch.add(out=)": lambda: torch.add(x, y, out=z),
    }
    try:
        import triton
        import triton.language as tl
    except ImportError:
        print("there is no Triton")
    else:
        scope = {"triton": triton, "tl": tl}
        path = pathlib.Path("/tmp/tilec_gpu_python_add.py")
        path.write_text(
            "import triton\nimport triton.language as tl\n\n@triton.jit\ndef add_kernel(x, y, z, n, BLOCK: tl.constexpr):\n"
            "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    mask = at < n\n"
            "    tl.store(z + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)\n",
            encoding="utf-8",
        )
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), scope)  # noqa: S102 - the text above
        add_kernel = scope["add_kernel"]
        ways["Triton, 3 tensors and a size"] = lambda: add_kernel[(1,)](x, y, z, 1024, BLOCK=1024)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn_of in range(30):
        for name, call in ways.items():
            for _ in range(20 if turn_of == 0 else 2):
                call()
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(200):
                call()
            times[name].append((time.perf_counter() - start) / 200 * 1e6)
            torch.cuda.synchronize()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}: microseconds of the host for a launch, median of 30 batches of 200 (least)")
    for name, all_times in times.items():
        print(f"  {name}: {statistics.median(all_times):.2f} ({min(all_times):.2f})")


def jax_calls() -> None:
    """Calls of XLA: results, a loop, what is changed in place, split-K with its memory, gradients, with command buffers and without."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        print("skipped: there is no JAX")
        return
    if not any(device.platform == "gpu" for device in jax.devices()):
        print("skipped: JAX has no GPU here")
        return
    import numpy as np

    import tilec.jax

    rng = np.random.default_rng(1)
    gemm = tilec.jax.call(tilec.compile(ROOT / "examples/gemm.tile", T="bf16", variants=[{"ALIGN": 8}, {"ALIGN": 1}]), results=["C"])
    splitk = tilec.jax.call(tilec.compile(ROOT / "examples/gemm_splitk.tile", T="bf16"), results=["C"], S=4)
    text = ADD.replace("Z: gmem f32[N]", "").replace("Y: gmem f32[N],", "Y: gmem f32[N]").replace("-> Z[", "-> Y[")
    plus = tilec.jax.call(tilec.compile(text))
    for m, n, k in ((512, 256, 128), (1000, 264, 520), (17, 33, 65), (128, 72, 0)):
        a, b = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (k, n))
        x, y = jnp.asarray(a, jnp.bfloat16), jnp.asarray(b, jnp.bfloat16)
        check(f"jax.jit {m}x{n}x{k}", np.array_equal(jax.jit(lambda x, y: gemm(x, y, alpha=2.0) + 1)(x, y), 2 * (a @ b) + 1))
    a, b = rng.integers(-4, 5, (256, 2048)), rng.integers(-4, 5, (2048, 128))
    x, y = jnp.asarray(a, jnp.bfloat16), jnp.asarray(b, jnp.bfloat16)
    check("jax.jit of split-K", np.array_equal(jax.jit(lambda x, y: splitk(A=x, B=y))(x, y), a @ b))
    v, w = jnp.asarray(rng.integers(-4, 5, 5000), jnp.float32), jnp.ones(5000, jnp.float32)
    # Without a loop, so that XLA makes a command buffer of it.
    many = jax.jit(lambda v, w: plus(v, plus(v, plus(v, plus(v, plus(v, plus(v, w)))))))
    for turn in range(4):
        check(f"jax.jit of six launches, {turn}", np.array_equal(many(v, w), np.asarray(w) + 6 * np.asarray(v)))
        w = jnp.full(5000, float(turn))
    loop = jax.jit(lambda v, w: jax.lax.fori_loop(0, 10, lambda _, w: plus(v, w), w))
    check("jax.jit of a loop", np.array_equal(loop(v, w), np.asarray(w) + 10 * np.asarray(v)))


if __name__ == "__main__":
    torch.manual_seed(1)
    results()
    overhead()
    operators()
    jax_calls()
    print("all fine")
