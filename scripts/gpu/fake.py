"""A CUDA driver for tests, which counts what it is asked and lets a function do the kernel's work."""

import ctypes
import struct
from collections.abc import Callable
from typing import Any

from .contract_host import LaunchConfig


class FakeDriver:
    """The functions that `contract_host.Driver` calls. `kernel` gets the configuration and the addresses of the parameters."""

    def __init__(self, kernel: Callable[[LaunchConfig, Any], None] | None = None, status: int = 0) -> None:
        self.kernel, self.status = kernel, status
        self.launches: list[LaunchConfig] = []
        self.attributes: list[tuple[int, int]] = []
        self.maps: list[tuple[int, ...]] = []

    def cuModuleLoadData(self, module: Any, image: bytes) -> int:
        assert image.endswith(b"\0")
        return 0

    def cuModuleGetFunction(self, function: Any, module: Any, name: bytes) -> int:
        assert name
        return 0

    def cuFuncSetAttribute(self, function: Any, attribute: int, value: int) -> int:
        self.attributes.append((attribute, value))
        return 0

    def cuFuncGetAttribute(self, value: Any, attribute: int, function: Any) -> int:
        value._obj.value = 32
        return 0

    def cuGetErrorName(self, status: int, text: Any) -> int:
        text._obj.value = b"CUDA_ERROR_FAKE"
        return 0

    def cuTensorMapEncodeTiled(self, place: Any, elem: int, rank: Any, address: Any, extents: Any, strides: Any, box: Any, steps: Any, *rest: int) -> int:
        assert ctypes.addressof(place) % 64 == 0
        self.maps.append((elem, rank.value, address.value, *extents, *strides, *box, *steps, *rest))
        place[:8] = struct.pack("<Q", address.value)
        return 0

    def cuLaunchKernelEx(self, config: Any, function: Any, pointers: Any, extra: Any) -> int:
        assert extra is None
        self.launches.append(config._obj)
        if self.kernel is not None:
            self.kernel(config._obj, pointers)
        return self.status


def word(pointers: Any, index: int) -> int:
    """A parameter of eight bytes."""
    return int(struct.unpack("<Q", ctypes.string_at(pointers[index], 8))[0])
