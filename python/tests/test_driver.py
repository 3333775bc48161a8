"""Launches on a device, with a driver that writes down its calls (tests/c/libcuda.c): `scripts/python_test.sh` runs this where it built that."""

import ctypes
import os
import pathlib
import unittest

import numpy as np

import tilec

SCALE = """kernel scale(X: gmem f32[N], Y: gmem f32[N], a: f32) grid (b: ceildiv(N, 1024)) {
    copy a * X[b * 1024..+1024] -> Y[b * 1024..]
}
"""
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
CALLS = pathlib.Path(os.environ["TEST_CALLS"])
CALLS.unlink(missing_ok=True)


class Cuda:
    """An array of the CUDA array interface, that says nothing of its device."""

    def __init__(self, address: int, shape: "tuple[int, ...]", typestr: str = "<f4", strides: "tuple[int, ...] | None" = None, stream: "int | None" = None) -> None:
        self.__cuda_array_interface__ = {"shape": shape, "typestr": typestr, "data": (address, False), "version": 3, "strides": strides, "stream": stream}


def calls() -> "list[str]":
    """What the driver was asked for since the last time."""
    global SEEN
    lines = CALLS.read_text().splitlines() if CALLS.exists() else []
    new, SEEN = lines[SEEN:], len(lines)
    return [line for line in new if not line.startswith("load")]


SEEN = 0


class Launches(unittest.TestCase):
    def setUp(self) -> None:
        self.scale = tilec.compile(SCALE, target="sm_80")
        calls()

    def test_addresses_and_streams(self) -> None:
        x, y = Cuda(0x100000, (2000,)), Cuda(0x200000, (2000,))
        self.scale(x, y, 2.0)
        self.scale(x, y, 2.0, stream=0x77)
        self.scale(x, Cuda(0x300000, (2000,)), 2.0, stream=0x77)
        self.assertEqual(calls(), [
            "launch scale 2 1 1 cluster 1 stream 0: 100000 200000 40000000 7d0",
            "launch scale 2 1 1 cluster 1 stream 77: 100000 200000 40000000 7d0",
            "launch scale 2 1 1 cluster 1 stream 77: 100000 300000 40000000 7d0",
        ])  # fmt: skip

    def test_the_device_is_that_of_the_address(self) -> None:
        with self.assertRaisesRegex(ValueError, "`X` is on device 0 and `Y` on device 1"):
            self.scale(Cuda(0x100000, (4,)), Cuda(0x2000000000, (4,)), 1.0)
        with self.assertRaisesRegex(ValueError, "the driver knows no memory"):
            self.scale(Cuda(0x100, (4,)), Cuda(0x200000, (4,)), 1.0)

    def test_a_launch_waits_for_the_stream_of_an_array(self) -> None:
        self.scale(Cuda(0x100000, (4,), stream=0x55), Cuda(0x200000, (4,), stream=1), 1.0)
        self.assertEqual(calls(), ["record on 55", "0 waits", "launch scale 1 1 1 cluster 1 stream 0: 100000 200000 3f800000 4"])
        self.scale(Cuda(0x100000, (4,), stream=0x55), Cuda(0x200000, (4,)), 1.0, stream=0x55)
        self.assertEqual(calls(), ["launch scale 1 1 1 cluster 1 stream 55: 100000 200000 3f800000 4"])

    def test_overlap_is_refused(self) -> None:
        with self.assertRaisesRegex(tilec.LaunchError, "shares memory"):
            self.scale(Cuda(0x100000, (4,)), Cuda(0x100008, (4,)), 1.0)
        self.assertEqual(calls(), [])

    def test_scratch_memory_is_of_a_stream(self) -> None:
        splitk = tilec.compile(EXAMPLES / "gemm_splitk.tile", target="sm_80", BM=64, BN=64)
        a, b, c = Cuda(0x100000, (40, 256), "<f2"), Cuda(0x200000, (256, 72), "<f2"), Cuda(0x300000, (40, 72))
        for stream in (0, 0x77, 0):
            splitk(A=a, B=b, C=c, S=4, stream=stream)
        lines = [line.split(": ")[1] for line in calls() if line.startswith("launch")]
        each = len(lines) // 3
        self.assertEqual(lines[:each], lines[2 * each :])
        self.assertNotEqual(lines[:each], lines[each : 2 * each])

    def test_maps_are_kept_for_an_address(self) -> None:
        os.environ["TEST_CC"] = "90"
        gemm = tilec.compile(EXAMPLES / "gemm.tile", target="sm_90a")
        a, b, c = Cuda(0x100000, (128, 64), "<f2"), Cuda(0x200000, (64, 128), "<f2"), Cuda(0x300000, (128, 128))
        gemm(a, b, c)
        first = calls()
        self.assertIn("map at 100000", first)
        gemm(a, b, c)
        self.assertEqual([line.split(" ")[0] for line in calls()], ["launch"])
        os.environ["TEST_CC"] = "80"


class DlTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


TENSOR_OF = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DlTensor))
STREAM_OF = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Api(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p), ("others", ctypes.c_void_p * 3),
        ("tensor", TENSOR_OF), ("stream", STREAM_OF),
    ]  # fmt: skip


def exchanged(major: int = 1) -> type:
    """A class like that of PyTorch, with the exchange API of a version."""

    def tensor_of(tensor: object, to: object) -> int:
        at = to[0]
        if tensor.dtype == "torch.strange":
            return -1
        at.data, at.device_type, at.device_id = tensor.address, 2, tensor.index
        at.ndim, at.code, at.bits, at.lanes = len(tensor.shape), 2, 32, 1
        tensor.kept = (ctypes.c_int64 * len(tensor.shape))(*tensor.shape)
        at.shape, at.strides, at.byte_offset = tensor.kept, None, tensor.offset
        return 0

    def stream_of(kind: int, device: int, to: object) -> int:
        to[0] = 0x99
        return 0

    class Tensor:
        slow = 0

        def __init__(self, address: int, shape: "tuple[int, ...]", dtype: str = "torch.float32", offset: int = 0) -> None:
            self.address, self.shape, self.dtype, self.offset, self.index = address, shape, dtype, offset, 0

        is_cuda, is_cpu = True, False

        def data_ptr(self) -> int:
            Tensor.slow += 1
            return self.address + self.offset

        def get_device(self) -> int:
            return self.index

        def stride(self) -> "tuple[int, ...]":
            return (1,) * len(self.shape)

    Tensor.__module__ = "torch"
    Tensor.api = Api(major, 3, None, (None, None, None), TENSOR_OF(tensor_of), STREAM_OF(stream_of))
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    Tensor.__dlpack_c_exchange_api__ = new(ctypes.addressof(Tensor.api), b"dlpack_exchange_api", None)
    return Tensor


class Active(unittest.TestCase):
    """How many clusters run at one time: the driver is asked once for a variant."""

    def check(self, source: str, target: str, expected: int, asked: str) -> None:
        gradients = tilec.compile(source, target=target, BN=128)
        contract = gradients.contract["kernels"][0]
        asked = asked.format(contract["block"][0], contract["dynamic_smem_bytes"])
        arrays = [Cuda(0x100000 * i, (9, 52)) for i in (1, 2)] + [Cuda(0x300000, (52,)), Cuda(0x400000, (9, 52))]
        calls()
        for size in ({}, {"S": 3}):
            self.assertEqual(gradients.max_active_clusters(*arrays, dW=Cuda(0x500000, (52,)), **size), expected)
        self.assertEqual(calls(), [asked])

    def test_of_blocks_and_of_clusters(self) -> None:
        source = (EXAMPLES / "rms_norm_backward.tile").read_text()
        self.check(source, "sm_80", 3 * 7, "blocks rms_norm_rows {} {}")
        clusters = source.replace("    grid (s: S)\n", "    grid (s: S)\n    schedule { ctas 2 }\n", 1)
        self.check(clusters, "sm_90a", 5, "clusters rms_norm_rows {} {} 2")


class Exchange(unittest.TestCase):
    def setUp(self) -> None:
        self.scale = tilec.compile(SCALE, target="sm_80")
        calls()

    def test_tensors_are_asked_once(self) -> None:
        tensor = exchanged()
        for _ in range(2):
            self.scale(tensor(0x100000, (8,), offset=16), tensor(0x200000, (8,)), 1.0)
        self.assertEqual(calls(), ["launch scale 1 1 1 cluster 1 stream 99: 100010 200000 3f800000 8"] * 2)
        self.assertEqual(tensor.slow, 0)
        with self.assertRaisesRegex(tilec.LaunchError, "1 dimension .*has 2"):
            self.scale(tensor(0x100000, (8, 1)), tensor(0x200000, (8,)), 1.0)

    def test_what_it_does_not_say_is_asked_of_methods(self) -> None:
        tensor = exchanged()
        with self.assertRaisesRegex(TypeError, "torch.strange"):
            self.scale(tensor(0x100000, (8,), "torch.strange"), tensor(0x200000, (8,)), 1.0)
        self.assertEqual(tensor.slow, 1)

    def test_other_versions_are_not_believed(self) -> None:
        tensor = exchanged(2)
        self.scale(tensor(0x100000, (8,)), tensor(0x200000, (8,)), 1.0, stream=0x11)
        self.assertEqual(tensor.slow, 2)
        self.assertEqual(calls(), ["launch scale 1 1 1 cluster 1 stream 11: 100000 200000 3f800000 8"])


if __name__ == "__main__":
    unittest.main()
