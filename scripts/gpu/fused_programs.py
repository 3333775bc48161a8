"""Fused products: what they compute in double precision, how far a result may be from it, and the same from separate products."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Unit roundoff of the elements; sums in f32, in any order, over the sum of magnitudes.
UNIT = {"bf16": 2.0**-8, "f16": 2.0**-11}
SUMS, SLACK = 2.0e-5, 1.25
# Of x / (1 + exp(-x)), at most 1.1: how an error of the gate grows.
SILU_SLOPE = 1.1


@dataclass(frozen=True)
class Kind:
    """A fused program. `inputs`: its operands in the order of the parameters, with their extents by name."""

    name: str
    inputs: tuple[tuple[str, str, str], ...]
    output: tuple[str, str]
    plain: tuple[tuple[str, str, str], ...]
    expected: Callable[[Any, Sequence[Any], str], tuple[Any, Any]]
    separate: Callable[[Any, Sequence[Any]], Any]

    def sizes(self) -> list[str]:
        """Names of the extents, those that the table speaks of first in front."""
        used = {extent for _, *extents in self.inputs for extent in extents}
        return [name for name in "MNKP" if name in used]

    def plain_products(self, case: Mapping[str, int]) -> list[tuple[int, int, int]]:
        """M, N and K of plain products of the same number of operations."""
        return [(_extent(m, case), _extent(n, case), _extent(k, case)) for m, n, k in self.plain]

    def operations(self, case: Mapping[str, int]) -> float:
        """Floating-point operations of the products."""
        return float(sum(2 * m * n * k for m, n, k in self.plain_products(case)))


def _extent(text: str, case: Mapping[str, int]) -> int:
    return math.prod(case[word] if word in case else int(word) for word in text.split("*"))


def _swiglu(torch: Any, inputs: Sequence[Any], elem: str) -> tuple[Any, Any]:
    x, g, u = (t.double() for t in inputs)
    gate, up = x @ g, x @ u
    silu = gate * torch.sigmoid(gate)
    expected = silu * up
    gate_error, up_error = SUMS * (x.abs() @ g.abs()), SUMS * (x.abs() @ u.abs())
    return expected, SLACK * UNIT[elem] * expected.abs() + SILU_SLOPE * gate_error * up.abs() + silu.abs() * up_error + gate_error * up_error


def _back_to_back(torch: Any, inputs: Sequence[Any], elem: str) -> tuple[Any, Any]:
    a, b, c = (t.double() for t in inputs)
    first = a @ b
    expected = first @ c
    lost = SLACK * UNIT[elem] * first.abs() + SUMS * (a.abs() @ b.abs())
    return expected, lost @ c.abs() + SUMS * (first.abs() @ c.abs()) + SLACK * UNIT[elem] * expected.abs()


def _separate_swiglu(torch: Any, inputs: Sequence[Any]) -> Any:
    x, g, u = inputs
    return torch.nn.functional.silu(x @ g) * (x @ u)


def _separate_back_to_back(torch: Any, inputs: Sequence[Any]) -> Any:
    a, b, c = inputs
    return (a @ b) @ c


KINDS = {
    "swiglu": Kind("swiglu", (("x", "M", "K"), ("gate", "K", "N"), ("up", "K", "N")), ("M", "N"), (("M", "2*N", "K"),), _swiglu, _separate_swiglu),
    "back_to_back": Kind(
        "back_to_back", (("a", "M", "K"), ("b", "K", "N"), ("c", "N", "P")), ("M", "P"), (("M", "N", "K"), ("M", "P", "N")), _back_to_back, _separate_back_to_back
    ),
}


def worst(torch: Any, kind: Kind, inputs: Sequence[Any], result: Any, elem: str, rows: int = 1024) -> tuple[float, float]:
    """Norm of the error over that of the result, and the largest error over what is allowed there; NaN if an element is none."""
    squares, norm, most = 0.0, 0.0, 0.0
    for first in range(0, result.shape[0], rows):
        expected, allowed = kind.expected(torch, [inputs[0][first : first + rows], *inputs[1:]], elem)
        error = (result[first : first + rows].double() - expected).abs()
        if not bool(torch.isfinite(error).all()):
            return math.nan, math.nan
        squares, norm = squares + float((error**2).sum()), norm + float((expected**2).sum())
        most = max(most, float((error / allowed).max()))
    return math.sqrt(squares / norm), most
