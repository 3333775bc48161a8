"""Programs over rows written in Triton, as its tutorials write them: a block has a row in registers, and reads it once.

`make(name)` gives a function of the inputs and outputs in the order of `scripts/gpu_rows.py`; the number of warps is the fastest of four, measured
for each shape. Rows of more than `LONGEST` elements are left out: a block would hold more than its registers.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

LONGEST = 65536
WARPS = (4, 8, 16, 32)
# Elements of a block of programs that have no rows.
FLAT = 1024


@triton.jit
def softmax(x_ptr, y_ptr, n, BN: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BN)
    x = tl.load(x_ptr + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * n + at, (e / tl.sum(e, 0)).to(y_ptr.dtype.element_ty), mask=at < n)


@triton.jit
def log_softmax(x_ptr, y_ptr, n, BN: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BN)
    x = tl.load(x_ptr + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    top = tl.max(x, 0)
    y = x - (top + tl.log(tl.sum(tl.exp(x - top), 0)))
    tl.store(y_ptr + row * n + at, y.to(y_ptr.dtype.element_ty), mask=at < n)


@triton.jit
def softmax_backward(y_ptr, d_ptr, x_ptr, n, BN: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BN)
    y = tl.load(y_ptr + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    d = tl.load(d_ptr + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(x_ptr + row * n + at, (y * (d - tl.sum(y * d, 0))).to(x_ptr.dtype.element_ty), mask=at < n)


@triton.jit
def rms_norm(x_ptr, w_ptr, y_ptr, n, BN: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BN)
    x = tl.load(x_ptr + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = x * tl.rsqrt(tl.sum(x * x, 0) / n + 1e-6) * w
    tl.store(y_ptr + row * n + at, y.to(y_ptr.dtype.element_ty), mask=at < n)


@triton.jit
def layer_norm(x_ptr, r_ptr, w_ptr, b_ptr, s_ptr, y_ptr, n, BN: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BN)
    x = tl.load(x_ptr + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    r = tl.load(r_ptr + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    s = x + r
    tl.store(s_ptr + row * n + at, s.to(s_ptr.dtype.element_ty), mask=at < n)
    d = tl.where(at < n, s - tl.sum(s, 0) / n, 0.0)
    scale = tl.rsqrt(tl.sum(d * d, 0) / n + 1e-5)
    w = tl.load(w_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * n + at, (d * scale * w + b).to(y_ptr.dtype.element_ty), mask=at < n)


@triton.jit
def cross_entropy(x_ptr, label_ptr, loss_ptr, d_ptr, n, BN: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BN)
    x = tl.load(x_ptr + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    label = tl.load(label_ptr + row)
    taken = tl.load(x_ptr + row * n + label).to(tl.float32)
    top = tl.max(x, 0)
    e = tl.exp(x - top)
    total = tl.sum(e, 0)
    tl.store(loss_ptr + row, tl.log(total) + (top - taken))
    d = e / total - tl.where(at == label, 1.0, 0.0)
    tl.store(d_ptr + row * n + at, d.to(d_ptr.dtype.element_ty), mask=at < n)


@triton.jit
def cumsum(x_ptr, y_ptr, n, BN: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BN)
    x = tl.load(x_ptr + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * n + at, tl.cumsum(x, 0).to(y_ptr.dtype.element_ty), mask=at < n)


@triton.jit
def rotary(x_ptr, c_ptr, s_ptr, y_ptr, n, BN: tl.constexpr, D: tl.constexpr):
    # A position of all heads, in rows of halves.
    row = tl.program_id(0).to(tl.int64)
    head, at = tl.arange(0, BN // (2 * D))[:, None], tl.arange(0, D)[None, :]
    there = head < n // (2 * D)
    first = row * n + head * 2 * D + at
    a = tl.load(x_ptr + first, mask=there, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + first + D, mask=there, other=0.0).to(tl.float32)
    c, s = tl.load(c_ptr + row * D + at), tl.load(s_ptr + row * D + at)
    tl.store(y_ptr + first, (a * c - b * s).to(y_ptr.dtype.element_ty), mask=there)
    tl.store(y_ptr + first + D, (b * c + a * s).to(y_ptr.dtype.element_ty), mask=there)


@triton.jit
def adam(w_ptr, m_ptr, v_ptr, g_ptr, h_ptr, n, BN: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BN + tl.arange(0, BN)
    there = at < n
    w, m, v = tl.load(w_ptr + at, mask=there), tl.load(m_ptr + at, mask=there), tl.load(v_ptr + at, mask=there)
    g = tl.load(g_ptr + at, mask=there).to(tl.float32)
    m = 0.9 * m + (1.0 - 0.9) * g
    v = 0.999 * v + (1.0 - 0.999) * g * g
    w = w - 0.001 * (m / (tl.sqrt(v) + 1.0e-8))
    tl.store(w_ptr + at, w, mask=there)
    tl.store(m_ptr + at, m, mask=there)
    tl.store(v_ptr + at, v, mask=there)
    tl.store(h_ptr + at, w.to(h_ptr.dtype.element_ty), mask=there)


ROWS = {
    "softmax": softmax, "log_softmax": log_softmax, "softmax_backward": softmax_backward, "rms_norm": rms_norm, "layer_norm": layer_norm,
    "cross_entropy": cross_entropy, "cumsum": cumsum, "rotary": rotary, "adam": adam,
}  # fmt: skip
Call = Callable[[Sequence[Any]], None]


def make(name: str, given: Sequence[Any], m: int, n: int) -> Call | None:
    """A call of the fastest number of warps for matrices of m rows of n elements; `None` where there is no such program. It is measured on `given`."""
    kernel = ROWS.get(name)
    if kernel is None or n > LONGEST:
        return None
    flat = name == "adam"
    size = m * n if flat else n
    block = FLAT if flat else triton.next_power_of_2(n)
    more = {"D": 64} if name == "rotary" else {}

    def of(warps: int) -> Call:
        grid = (triton.cdiv(size, block) if flat else m,)
        return lambda tensors: kernel[grid](*tensors, size, BN=block, num_warps=warps, **more)

    # No more warps than a block has elements for their lanes.
    calls = [of(warps) for warps in WARPS if warps * 32 <= block] or [of(1)]
    return min(calls, key=lambda call: _time(call, given))


def _time(call: Call, given: Sequence[Any]) -> float:
    call(given)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record()
    for _ in range(4):
        call(given)
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end))
