"""tilec: a small tile language compiled to PTX, and launched on arrays of PyTorch, CuPy, JAX and NumPy.

    import tilec
    gemm = tilec.compile("gemm.tile", T="bf16")
    gemm(A, B, C, alpha=2.0)
"""

from __future__ import annotations

import html
import json
import os
import pathlib
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Callable

from . import _tilec
from ._errors import CompileError, CompileWarning, CudaError, LaunchError, SimulationError

__version__ = _tilec.__version__
__all__ = ["CompileError", "CompileWarning", "CudaError", "Kernel", "LaunchError", "SimulationError", "Xray", "compile", "load"]

Sizes = Mapping[str, int]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


class Xray:
    """A page that shows a kernel: source, passes, PTX and machine code side by side. A notebook draws it."""

    def __init__(self, page: str, name: str) -> None:
        self.html = page
        self._name = name

    def __repr__(self) -> str:
        return f"<tilec page of {self._name}, {len(self.html)} bytes: save(PATH) writes it>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page as one HTML file."""
        pathlib.Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.html, quote=True)}" style="width: 100%; height: 40em; border: 1px solid #8888"></iframe>'


class Kernel:
    """A compiled kernel, or a program of several. Called with arrays it launches and does not wait.

    Several threads may call one kernel. A copy is the kernel itself. A pickle has the source, or the bundle: it is compiled again.
    """

    def __init__(self, inner: _tilec.Kernel, made: _Made) -> None:
        self._inner = inner
        self._made = made
        # The call of an instance is looked up on its type; this is the same without a frame of Python.
        self.launch: Callable[..., None] = inner.__call__
        """The same as calling the kernel."""

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Launches the kernel: arrays and numbers by position or name, sizes and strides by name if arrays do not give them.

        On CUDA arrays the launch is queued on the current stream, or on `stream=`. On arrays of the host it runs on the simulator.
        """
        self._inner(*args, **kwargs)

    def max_active_clusters(self, *args: Any, **kwargs: Any) -> int:
        """Clusters that the device of the arrays runs at one time, for a call with these arguments. A block of a kernel without clusters is a
        cluster of one. At least 1, also where there is nothing to launch.

        It is the size to choose where clusters share the work (`grid (s: S)`): that size need not be given here, and counts as 1. Of a
        program the answer is of the first launch whose grid depends on such a size, or of the first of all. Where the grid has other
        axes, divide by the number of clusters along them. On the simulator a multiprocessor, of which there are 4, has one block.
        """
        return int(self._inner.max_active_clusters(*args, **kwargs))

    @property
    def name(self) -> str:
        return str(self._inner.name)

    @property
    def target(self) -> str:
        return str(self._inner.target)

    @property
    def ptx(self) -> str:
        """The PTX."""
        return str(self._inner.ptx)

    @property
    def tile(self) -> str:
        """The program after all passes: what the compiler decided, as text of the language."""
        return str(self._inner.tile)

    @property
    def c_header(self) -> str:
        """A C header with all kernels of the file, for this target (docs/c.md)."""
        return str(self._inner.c_header)

    @property
    def contract(self) -> dict[str, Any]:
        """The launch contract (docs/launch-contract.md)."""
        return dict(json.loads(self._inner.contract_json))

    @property
    def report(self) -> dict[str, Any]:
        """What became of every copy, access and product."""
        return dict(json.loads(self._inner.report_json))

    @property
    def warnings(self) -> str:
        return str(self._inner.warnings)

    @property
    def remarks(self) -> str:
        """Fast paths that were not taken, and what they need."""
        return str(self._inner.remarks)

    def xray(self) -> Xray:
        """A page that shows the kernel."""
        return Xray(self._inner.xray_html(), self._made[1][1])

    def parameters(self) -> list[dict[str, Any]]:
        """What is taken by position: name, type, access, and the shape as expressions or the default."""
        return list(self._inner.parameters())

    def register(self, name: str, **options: Any) -> Any:
        """Registers the kernel as an operator of PyTorch: see `tilec.torch.register`."""
        from .torch import register

        return register(self, name, **options)

    def __repr__(self) -> str:
        return repr(self._inner)

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Kernel:
        return self

    def __reduce__(self) -> _Made:
        return self._made


# How a kernel is made again: a function of this file, and its arguments.
_Made = tuple[Callable[..., Kernel], tuple[Any, ...]]


def _compiled(text: str, name: str, target: str, params: dict[str, Any], sizes: list[dict[str, int]], variants: list[dict[str, Any]], kernel: str | None) -> Kernel:
    made = (text, name, target, params, sizes, variants, kernel)
    return Kernel(_tilec.compile(text, name, target, params, sizes, variants, [], kernel), (_compiled, made))


def _loaded(data: bytes, name: str, target: str | None, kernel: str | None) -> Kernel:
    inner = _tilec.load(data, name, target, _device(), kernel)
    return Kernel(inner, (_loaded, (data, name, inner.target, kernel)))


def compile(
    source: str | os.PathLike[str],
    *,
    target: str | None = None,
    kernel: str | None = None,
    sizes: Sizes | Sequence[Sizes] | None = None,
    variants: Sequence[Mapping[str, Any]] | None = None,
    name: str | None = None,
    **params: Any,
) -> Kernel:
    """Compiles a program: a file, or its text.

    target: such as "sm_90a"; without it, that of the current CUDA device.
    kernel: which of several kernels; a `sequence` is one too.
    sizes: sizes that `auto` parameters are chosen for. A list makes a variant for each.
    variants: values of parameters, a variant for each; the first whose preconditions hold is launched.
    name: what messages call the program.
    params: values of compile-time parameters, T="bf16", BM=128.
    """
    if target is not None and not isinstance(target, str):
        raise TypeError(f'a target is a word such as "sm_80", found {target!r}')
    text, shown = _read(source)
    chosen = [sizes] if isinstance(sizes, Mapping) else list(sizes or [])
    given = (params, [dict(one) for one in chosen], [dict(one) for one in variants or []], kernel)
    if target is None:
        target = _tilec.target_of_device(_device())
        if target is None:
            _check_parameters(text, name or shown, *given)
            raise CudaError('no CUDA device was found to compile for: target="sm_80" names a target, whose kernels run on the simulator')
    made = _compiled(text, name or shown, target, *given)
    if made.warnings:
        warnings.warn(made.warnings, CompileWarning, stacklevel=2)
    return made


def load(
    bundle: str | os.PathLike[str],
    *,
    target: str | None = None,
    kernel: str | None = None,
) -> Kernel:
    """A kernel of a bundle (docs/bundle.md), which `tilec FILE --targets sm_80,sm_90a -o k.tilec` makes; nothing is compiled.

    target: one of the bundle. Without it, the newest that the current CUDA device runs; where there is no device, the newest.
    kernel: which of several kernels; a `sequence` is one too.
    """
    path = pathlib.Path(bundle)
    return _loaded(path.read_bytes(), str(bundle), target, kernel)


def _read(source: str | os.PathLike[str]) -> tuple[str, str]:
    """The text of a program, and what it is called."""
    if isinstance(source, str) and ("\n" in source or "{" in source):
        return source, "<text>"
    if not os.fspath(source):
        raise ValueError("the source is empty: a file, or the text of a program")
    path = pathlib.Path(source)
    return path.read_text(encoding="utf-8"), str(source)


def _device() -> int:
    """The current CUDA device, in the order of the driver."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return int(torch.cuda.current_device())
    return 0


def _check_parameters(*program: Any) -> None:
    """Raises the error of a keyword that is no parameter of the program, such as a misspelt `target`."""
    text, name, *rest = program
    try:
        _compiled(text, name, "sm_80", *rest)
    except CompileError as error:
        if any(d["code"] == "E0401" for d in error.diagnostics):
            raise
