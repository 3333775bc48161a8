"""Attention in double precision, and how far a result with rounded weights may be from it."""

import math
from dataclasses import dataclass
from typing import Any

# Unit roundoff, and half the least subnormal: what a weight may lose in this type.
UNIT = {"bf16": 2.0**-8, "f16": 2.0**-11, "e4m3": 2.0**-4}
UNDERFLOW = {"bf16": 0.0, "f16": 2.0**-25, "e4m3": 2.0**-10}
# What a step of 32 products of 8-bit floats loses of a sum, which the tensor core keeps to 14 bits.
STEP, SHORT = 32, {"e4m3": 2.0**-13}
# For sums and exponentials in f32, and for rounding twice.
SLACK, SUMS = 1.25, 1.0e-5


@dataclass(frozen=True)
class Verdict:
    """`relative`: the norm of the error over that of the result. `worst`: the largest error over what is allowed there."""

    relative: float
    worst: float

    @property
    def right(self) -> bool:
        """NaN is never right."""
        return self.worst <= 1.0


def judge(torch: Any, inputs: Any, result: Any, causal: bool, weights: str, output: str, rows: int = 2048) -> Verdict:
    """Compares every element of a result `[Z, H, L, D]`, head after head in chunks of queries."""
    q, k, v = inputs
    squares, norm, worst = 0.0, 0.0, 0.0
    for z in range(q.shape[0]):
        for h in range(q.shape[1]):
            key, value = k[z, h].double(), v[z, h].double()
            for first in range(0, q.shape[2], rows):
                expected, allowed = _rows(torch, q[z, h, first : first + rows].double(), key, value, first if causal else None, weights, output)
                error = (result[z, h, first : first + rows].double() - expected).abs()
                if not bool(torch.isfinite(error).all()):
                    return Verdict(math.nan, math.nan)
                squares, norm = squares + float((error**2).sum()), norm + float((expected**2).sum())
                worst = max(worst, float((error / allowed).max()))
    return Verdict(math.sqrt(squares / norm), worst)


def _rows(torch: Any, q: Any, k: Any, v: Any, first: int | None, weights: str, output: str) -> tuple[Any, Any]:
    """Some rows of the result, and the largest error of each element. `first`: number of the first row, if causal."""
    score = (q @ k.T).mul_(1 / math.sqrt(q.shape[1]))
    # By Cauchy and Schwarz no sum of magnitudes of products is greater.
    largest = float(q.norm(dim=1).max() * k.norm(dim=1).max()) / math.sqrt(q.shape[1]) if weights in SHORT else 0.0
    if first is not None:
        row = torch.arange(first, first + q.shape[0], device=q.device)[:, None]
        score.masked_fill_(torch.arange(k.shape[0], device=q.device)[None, :] > row, -math.inf)
    weight = score.sub_(score.amax(1, keepdim=True)).exp_()
    total = weight.sum(1, keepdim=True)
    expected, magnitude = weight @ v / total, weight @ v.abs() / total
    lost = UNDERFLOW[weights] * v.abs().sum(0, keepdim=True) / total
    kept = UNIT[weights] * magnitude + UNIT.get(output, 0.0) * expected.abs() + lost
    allowed = SLACK * kept + (SUMS + short(weights, k, largest)) * magnitude + UNDERFLOW.get(output, 0.0)
    return expected, allowed


def short(weights: str, k: Any, largest: float) -> float:
    """What sums of few bits may be off by, relative to the magnitudes that they add up: those of the second product, and of the scores, which are exponents."""
    lost = SHORT.get(weights, 0.0)
    return lost * (k.shape[0] / STEP + k.shape[1] / STEP * 2 * largest)
