"""What an operator made of a kernel takes and gives: the same for PyTorch and JAX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from . import Kernel

FLOATS = ("f16", "bf16", "tf32", "f32", "f64", "e4m3", "e5m2", "ue8m0", "e2m1")
_HALF_BYTES = ("i4", "u4", "e2m1")


def check_name(name: str) -> None:
    """Refuses names of operators that PyTorch does not take."""
    if name.count("::") != 1 or not all(name.split("::")):
        raise ValueError(f'"{name}" has no namespace: "mylib::{name.strip(":")}" is the name of an operator')


def _ceildiv(a: Any, b: Any) -> Any:
    return -(-a // b)


_FUNCTIONS = {"ceildiv": _ceildiv, "min": min, "max": max, "abs": abs, "select": lambda c, a, b: a if c else b}


def _extent(text: str) -> Callable[[dict[str, Any]], Any]:
    """An expression of the contract as a function of sizes, which may be symbols. Division floors, in both."""
    python = re.sub(r"(?<![/])/(?![/])", "//", text)
    python = python.replace("&&", " and ").replace("||", " or ")
    python = re.sub(r"!(?!=)", " not ", python)
    code = compile(python, f"<extent {text}>", "eval")
    return lambda values: eval(code, {"__builtins__": {}}, {**_FUNCTIONS, **values})  # noqa: S307 - text of our own compiler


class Operator:
    """Which tensors of a kernel are results, and the shapes of these.

    What a kernel only writes is a result. So is what it reads and writes if `results` names it: then it begins as zeros.
    """

    def __init__(self, kernel: "Kernel", results: Sequence[str]) -> None:
        self.kernel = kernel
        self.parameters = kernel.parameters()
        self.tensors = [p for p in self.parameters if p["access"] != "scalar"]
        unknown = sorted(set(results) - {p["name"] for p in self.tensors if p["access"] != "read"})
        if unknown:
            raise ValueError(f"`{kernel.name}` writes no {', '.join(unknown)}")
        self.made = [p for p in self.tensors if p["access"] == "write" or p["name"] in results]
        names = {p["name"] for p in self.made}
        self.given = [p for p in self.parameters if p["name"] not in names]
        self.changed = tuple(p["name"] for p in self.given if p["access"] in ("write", "read_write"))
        self._extents = {p["name"]: [(text, _extent(text)) for text in p["shape"]] for p in self.tensors}

    def values(self, shapes: "dict[str, tuple[Sequence[Any], int]]", numbers: dict[str, Any]) -> dict[str, Any]:
        """Sizes that follow from tensors: of each its extents, and the dimension in which its elements lie side by side."""
        values = dict(numbers)
        for p in self.tensors:
            if p["name"] not in shapes:
                continue
            shape, inner = shapes[p["name"]]
            for i, ((text, _), extent) in enumerate(zip(self._extents[p["name"]], shape)):
                if text.isidentifier():
                    # Elements of four bits come two to a byte.
                    values.setdefault(text, extent * 2 if i == inner and p["type"] in _HALF_BYTES else extent)
        return values

    def shape(self, p: dict[str, Any], values: dict[str, Any]) -> list[Any]:
        """The shape of a result."""
        try:
            return [extent(values) for _, extent in self._extents[p["name"]]]
        except NameError as error:
            raise ValueError(f"the shape of the result `{p['name']}` does not follow from the arguments of `{self.kernel.name}`: {error}") from None
