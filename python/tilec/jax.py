"""Kernels inside of `jax.jit`: calls of the typed foreign function interface of XLA.

    gemm = tilec.jax.call(tilec.compile("gemm.tile", target="sm_90a"))
    layer = jax.jit(lambda x, w: jax.nn.relu(gemm(x, w, alpha=2.0)))

Arrays of JAX do not change. What a kernel writes is a result; what it reads too is an argument and a result, in the same memory where XLA finds that the argument is not needed
any more. On a GPU a call launches on the stream of XLA, and may be part of its command buffers; on the CPU it runs on the simulator.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _tilec
from ._operator import Operator

if TYPE_CHECKING:
    from . import Kernel

__all__ = ["call"]

# Kernels that make memory of their own when they are launched are in no command buffer.
_TARGET, _WITH_MEMORY = "tilec", "tilec.with_memory"

_DTYPES = {
    "f16": "float16", "bf16": "bfloat16", "tf32": "float32", "f32": "float32", "f64": "float64", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
    "ue8m0": "float8_e8m0fnu", "i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16", "i32": "int32", "u32": "uint32", "i64": "int64",
    "u64": "uint64", "bool": "bool",
}  # fmt: skip


@functools.cache
def _register() -> None:
    if not hasattr(jax, "ffi"):
        raise ImportError(f"tilec.jax needs JAX 0.6 or later, found {jax.__version__}")
    host, cuda, with_memory = _tilec.xla_handlers()
    for target, handler in ((_TARGET, cuda), (_WITH_MEMORY, with_memory)):
        jax.ffi.register_ffi_target(target, host, platform="cpu")
        jax.ffi.register_ffi_target(target, handler, platform="CUDA")


def _cuda_devices() -> list[int]:
    """The devices of this process, in the order of the driver."""
    try:
        return [int(device.local_hardware_id) for device in jax.local_devices(backend="cuda")]
    except RuntimeError:
        return []


def call(
    kernel: "Kernel",
    *,
    out: "Any | Sequence[Any] | Mapping[str, Any] | None" = None,
    results: Sequence[str] = (),
    vmap: str = "refuse",
    **fixed: Any,
) -> "_Call":
    """A kernel as a function of arrays of JAX, which works under `jax.jit`.

    out: shapes and types of results, `jax.ShapeDtypeStruct`: one, a sequence in the order of the source, or by name. Without it they follow from the arguments.
    results: tensors that the kernel reads and writes and that are no arguments: they begin as zeros. So do those of `out`.
    vmap: "refuse", or "sequential": a launch for each element of the batch.
    fixed: scalars and sizes by name, for every call.
    """
    if vmap not in ("refuse", "sequential"):
        raise ValueError(f'vmap="refuse" or "sequential", found {vmap!r}: a kernel has a batch dimension if the program has one')
    return _Call(kernel, out, results, vmap, fixed)


def _named_results(kernel: "Kernel", out: Any, every: list[str], results: Sequence[str]) -> dict[str, Any]:
    """The results of `out` by name: those that are only written and those of `results`, or all that is written."""
    if out is None:
        return {}
    if isinstance(out, Mapping):
        unknown = sorted(set(out) - set(every))
        if unknown:
            raise ValueError(f"out: {', '.join(unknown)} is no result of `{kernel.name}`, which writes {', '.join(every)}")
        return dict(out)
    given = list(out) if isinstance(out, Sequence) else [out]
    made = [p["name"] for p in kernel.parameters() if p["access"] == "write" or p["name"] in results]
    for names in (made, every):
        if len(names) == len(given):
            return dict(zip(names, given))
    raise ValueError(f"out: `{kernel.name}` writes {len(every)} tensors ({', '.join(every)}), found {len(given)}")


class _Call:
    """A function of arrays: arguments in the order of the source without the results, or by name. What is written is returned, in the order of the source."""

    def __init__(self, kernel: "Kernel", out: Any, results: Sequence[str], vmap: str, fixed: dict[str, Any]) -> None:
        self.kernel = kernel
        every = [p["name"] for p in kernel.parameters() if p["access"] in ("write", "read_write")]
        self._out = _named_results(kernel, out, every, results)
        self._operator = Operator(kernel, [*results, *(name for name in self._out if name not in results)])
        self._written = [p for p in self._operator.tensors if p["access"] != "read"]
        self._scalars = {p["name"] for p in self._operator.parameters if p["access"] == "scalar"}
        self._sizes = set(kernel._inner.sizes)
        self._vmap, self._fixed = vmap, fixed
        if not self._written:
            raise ValueError(f"`{kernel.name}` writes no tensor, and a function of JAX has results")
        self._key, needs_memory = kernel._inner.share()
        self._target = _WITH_MEMORY if needs_memory else _TARGET
        _register()

    def _arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name."""
        name = self.kernel.name
        given = [p["name"] for p in self._operator.given]
        if len(args) > len(given):
            raise TypeError(f"`{name}` takes at most {len(given)} arguments by position ({', '.join(given)}), found {len(args)}")
        named = {**self._fixed, **kwargs}
        for parameter, value in zip(given, args):
            if parameter in named:
                raise TypeError(f"`{parameter}` is given twice")
            named[parameter] = value
        known = {p["name"] for p in self._operator.parameters} | self._sizes
        for parameter in named:
            if parameter not in known:
                raise TypeError(f"`{name}` takes no `{parameter}`; it takes {', '.join(given)}, and the sizes and strides {', '.join(sorted(self._sizes))}")
        for p in self._operator.given:
            if p["name"] not in named and "default" not in p:
                raise TypeError(f"`{p['name']}` is missing: `{name}` takes {', '.join(given)}")
        return named

    def _numbers(self, named: dict[str, Any]) -> dict[str, Any]:
        """Scalars and sizes, which are part of the compiled program."""
        numbers = {}
        for name in self._scalars | self._sizes:
            if name not in named:
                continue
            value = named[name]
            if isinstance(value, jax.core.Tracer):
                raise TypeError(
                    f"`{name}` is known only when the program runs, and scalars of a kernel are part of the program: give a number (static_argnames of jax.jit), "
                    "or write the kernel with a tensor of one element"
                )
            number = value.item() if hasattr(value, "item") else value
            numbers[name] = number if isinstance(number, float) else int(number)
        return numbers

    def _result(self, p: dict[str, Any], values: dict[str, Any]) -> jax.ShapeDtypeStruct:
        """Shape and type of a result that is made."""
        if p["name"] in self._out:
            out = self._out[p["name"]]
            shape, dtype = tuple(out.shape), np.dtype(out.dtype)
        elif p["type"] in _DTYPES:
            shape, dtype = tuple(int(n) for n in self._operator.shape(p, values)), jnp.dtype(_DTYPES[p["type"]])
        else:
            raise ValueError(f"JAX has no element type for the result `{p['name']}`, {p['type']}: `out` says which integers hold it")
        if jax.dtypes.canonicalize_dtype(dtype) != dtype:
            raise TypeError(f'the result `{p["name"]}` is {dtype}, which JAX has only after jax.config.update("jax_enable_x64", True)')
        return jax.ShapeDtypeStruct(shape, dtype)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        named = self._arguments(args, kwargs)
        numbers = self._numbers(named)
        arrays = {p["name"]: jnp.asarray(named[p["name"]]) for p in self._operator.tensors if p["name"] in named}
        values = self._operator.values({name: (array.shape, array.ndim - 1) for name, array in arrays.items()}, numbers)
        outs = []
        for p in self._written:
            if p["name"] in arrays:
                outs.append(jax.ShapeDtypeStruct(arrays[p["name"]].shape, arrays[p["name"]].dtype))
                continue
            outs.append(self._result(p, values))
            if p["access"] == "read_write":
                arrays[p["name"]] = jnp.zeros(outs[-1].shape, outs[-1].dtype)
        shapes = {**arrays, **{p["name"]: out for p, out in zip(self._written, outs)}}
        described = [(name, str(array.dtype), list(array.shape)) for name, array in shapes.items()]
        _tilec.xla_prepare(self._key, described, numbers, _cuda_devices())
        operands = [p["name"] for p in self._operator.tensors if p["name"] in arrays]
        written = [p["name"] for p in self._written]
        attributes = {name: _attribute(value) for name, value in numbers.items()}
        attributes.update({"tilec.kernel": self._key, "tilec.operands": ",".join(operands), "tilec.results": ",".join(written)})
        function = jax.ffi.ffi_call(
            self._target,
            outs,
            vmap_method=None if self._vmap == "refuse" else self._vmap,
            input_output_aliases={operands.index(name): i for i, name in enumerate(written) if name in operands},
        )
        try:
            made = function(*(arrays[name] for name in operands), **attributes)
        except NotImplementedError as error:
            if "vmap" not in str(error):
                raise
            name = self.kernel.name
            text = f'`{name}` has no batched form: tilec.jax.call(.., vmap="sequential") launches it for each element, or give the program a dimension for the batch'
            raise NotImplementedError(text) from error
        return made[0] if len(made) == 1 else tuple(made)

    def __repr__(self) -> str:
        return f"<tilec.jax.call of {self.kernel!r}>"


def _attribute(value: "int | float") -> Any:
    """A number as an attribute of the call. Beyond 63 bits there are only texts."""
    if isinstance(value, float):
        return np.float64(value)
    return np.int64(value) if value < 1 << 63 else str(value)
