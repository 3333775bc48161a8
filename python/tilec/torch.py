"""Kernels as operators of PyTorch: `torch.library`, fake tensors, autograd, `torch.compile`.

What a kernel only writes is a result, which the operator makes and returns. What it reads and writes is changed in place, unless `results` names it: then the
operator makes it too, filled with zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable

import torch

from ._operator import FLOATS, Operator, check_name

if TYPE_CHECKING:
    from . import Kernel

_DTYPES = {
    "f16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32, "f32": torch.float32, "f64": torch.float64,
    "e4m3": getattr(torch, "float8_e4m3fn", torch.uint8), "e5m2": getattr(torch, "float8_e5m2", torch.uint8),
    "i8": torch.int8, "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
}  # fmt: skip


class _Operator(Operator):
    """What an operator is called with, and what its results are."""

    def __init__(self, kernel: Kernel, results: Sequence[str]) -> None:
        super().__init__(kernel, results)
        for p in self.made:
            if p["type"] not in _DTYPES:
                raise ValueError(f"PyTorch has no element type for the result `{p['name']}`, {p['type']}")

    def schema(self) -> str:
        """The operator's schema."""
        arguments = []
        for p in self.given:
            if p["access"] == "scalar":
                kind = "float" if p["type"] in FLOATS else "SymInt"
                default = f"={p['default']}" if "default" in p else ""
                arguments.append(f"{kind} {p['name']}{default}")
            else:
                arguments.append(f"Tensor{f'({chr(97 + len(arguments))}!)' if p['name'] in self.changed else ''} {p['name']}")
        results = ", ".join("Tensor" for _ in self.made)
        return f"({', '.join(arguments)}) -> {f'({results})' if len(self.made) != 1 else results}"

    def make(self, arguments: Sequence[Any]) -> list[torch.Tensor]:
        """The results, which nothing has written to."""
        numbers, shapes, device = {}, {}, None
        for p, argument in zip(self.given, arguments):
            if p["access"] == "scalar":
                numbers[p["name"]] = argument
            else:
                device, strides = argument.device, argument.stride()
                shapes[p["name"]] = (argument.shape, strides.index(1) if 1 in strides else len(strides) - 1)
        values = self.values(shapes, numbers)
        made = []
        for p in self.made:
            new = torch.zeros if p["access"] == "read_write" else torch.empty
            made.append(new(self.shape(p, values), dtype=_DTYPES[p["type"]], device=device))
        return made

    def __call__(self, *arguments: Any) -> Any:
        made = self.make(arguments)
        # PyTorch has recorded the call already. A launch by itself would not write to a tensor that requires a gradient.
        named = {p["name"]: value.detach() if p["name"] in self.changed else value for p, value in zip(self.given, arguments)}
        named.update({p["name"]: value for p, value in zip(self.made, made)})
        self.kernel.launch(**named)
        return _one_or_all(made)


def _one_or_all(made: list[torch.Tensor]) -> Any:
    if not made:
        return None
    return made[0] if len(made) == 1 else tuple(made)


def register(
    kernel: Kernel,
    name: str,
    *,
    results: Sequence[str] = (),
    backward: Callable[..., Any] | None = None,
    setup_context: Callable[..., None] | None = None,
) -> Any:
    """Registers a kernel as the operator `name`, such as "mylib::gemm", and returns it.

    results: tensors that the kernel reads and writes, and that the operator makes, filled with zeros, and returns.
    backward, setup_context: as for `torch.library.register_autograd`.
    """
    check_name(name)
    operator = _Operator(kernel, results)
    if backward is not None and operator.changed:
        raise ValueError(f"`{kernel.name}` changes {', '.join(operator.changed)} in place, which has no backward; results=[..] makes results of them")
    made = torch.library.custom_op(name, operator, mutates_args=operator.changed, schema=operator.schema())
    made.register_fake(lambda *arguments: _one_or_all(operator.make(arguments)))
    if backward is not None:
        made.register_autograd(backward, setup_context=setup_context)
    return made
