"""The gradients of attention in double precision, and how far a result with rounded weights may be from them."""

import math
from dataclasses import dataclass
from typing import Any

from .attention_reference import SLACK, SUMS, UNDERFLOW, UNIT, Verdict

NAMES = ("dQ", "dK", "dV")


@dataclass(frozen=True)
class Given:
    """What the gradients are computed of: tensors `[Z, H, L, D]`, and logarithms `[Z, H, L, 1]` in f32."""

    q: Any
    k: Any
    v: Any
    o: Any
    g: Any
    lse: Any
    causal: bool


def forward(torch: Any, q: Any, k: Any, v: Any, g: Any, causal: bool, rows: int = 2048) -> Given:
    """Computes the forward pass in double precision and rounds it to what a kernel would have stored."""
    o, lse = torch.empty_like(q), torch.empty((*q.shape[:3], 1), dtype=torch.float32, device=q.device)
    for z, h, first in _chunks(q, rows):
        score = _scores(torch, q[z, h, first : first + rows].double(), k[z, h].double(), first if causal else None)
        lse[z, h, first : first + rows] = torch.logsumexp(score, 1, keepdim=True).float()
        o[z, h, first : first + rows] = (torch.softmax(score, 1) @ v[z, h].double()).to(o.dtype)
    return Given(q, k, v, o, g, lse, causal)


def judge(torch: Any, given: Given, results: Any, elem: str, rows: int = 2048) -> Verdict:
    """Compares every element of dQ, dK and dV; the worst of them counts."""
    squares, norms, worst = [0.0] * 3, [0.0] * 3, 0.0
    for z in range(given.q.shape[0]):
        for h in range(given.q.shape[1]):
            for i, (expected, allowed) in enumerate(_head(torch, given, z, h, elem, rows)):
                error = (results[i][z, h].double() - expected).abs()
                if not bool(torch.isfinite(error).all()):
                    return Verdict(math.nan, math.nan)
                squares[i] += float((error**2).sum())
                norms[i] += float((expected**2).sum())
                worst = max(worst, float((error / allowed).max()))
    return Verdict(max(math.sqrt(s / n) if n > 0 else 0.0 for s, n in zip(squares, norms, strict=True)), worst)


def _chunks(q: Any, rows: int) -> Any:
    return ((z, h, first) for z in range(q.shape[0]) for h in range(q.shape[1]) for first in range(0, q.shape[2], rows))


def _scores(torch: Any, q: Any, k: Any, first: int | None) -> Any:
    score = (q @ k.T).mul_(1 / math.sqrt(q.shape[1]))
    if first is not None:
        row = torch.arange(first, first + q.shape[0], device=q.device)[:, None]
        score.masked_fill_(torch.arange(k.shape[0], device=q.device)[None, :] > row, -math.inf)
    return score


def _head(torch: Any, of: Given, z: int, h: int, elem: str, rows: int) -> list[tuple[Any, Any]]:
    """dQ, dK and dV of a head, each with the largest error of an element: weights and slopes are rounded, sums are in f32, and so is the result rounded."""
    key, value = of.k[z, h].double(), of.v[z, h].double()
    scale = 1 / math.sqrt(key.shape[1])
    sums = [torch.zeros_like(key) for _ in range(6)]
    dq, dq_most, dk, dk_most, dv, dv_most = sums
    for first in range(0, key.shape[0], rows):
        some = slice(first, first + rows)
        q, g = of.q[z, h, some].double(), of.g[z, h, some].double()
        score = _scores(torch, q, key, first if of.causal else None)
        weight = score.sub_(of.lse[z, h, some].double()).exp_()
        delta = (g * of.o[z, h, some].double()).sum(1, keepdim=True)
        slope = (g @ value.T - delta).mul_(weight)
        # What is rounded, and what is lost of differences of sums in f32.
        rounded = slope.abs().mul_(UNIT[elem]).add_(UNDERFLOW[elem])
        rounded += (g.abs() @ value.abs().T + delta.abs()).mul_(weight).mul_(SUMS)
        dq[some], dq_most[some] = slope @ key * scale, rounded @ key.abs() * scale
        dk += slope.T @ q * scale
        dk_most += rounded.T @ q.abs() * scale
        dv += weight.T @ g
        dv_most += (weight.mul_(UNIT[elem] + SUMS).add_(UNDERFLOW[elem])).T @ g.abs()
    pairs = [(dq, dq_most), (dk, dk_most), (dv, dv_most)]
    return [(x, SLACK * (most + UNIT[elem] * x.abs()) + SUMS * most + UNDERFLOW[elem] + 1e-30) for x, most in pairs]
