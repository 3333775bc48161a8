"""Calls of XLA on a device, with a driver that writes down its calls (tests/c/libcuda.c) and calls made with jaxlib's own structures
(tests/c/xla_calls.c): `scripts/python_test.sh` runs this where it built both."""

import ctypes
import os
import pathlib
import unittest

import tilec
from tilec import _tilec

SCALE = """kernel scale(X: gmem f32[N], Y: gmem f32[N], a: f32) grid (b: ceildiv(N, 1024)) {
    copy a * X[b * 1024..+1024] -> Y[b * 1024..]
}
"""
PLUS = """kernel plus(X: gmem f32[N], Y: gmem f32[N]) grid (b: ceildiv(N, 1024)) {
    copy X[b * 1024..+1024] + Y[b * 1024..+1024] -> Y[b * 1024..]
}
"""
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
CALLS = pathlib.Path(os.environ["TEST_CALLS"])
CALLS.unlink(missing_ok=True)
XLA = ctypes.CDLL(os.environ["TEST_XLA"])
XLA.call.restype = ctypes.c_char_p
SEEN = 0
EXECUTE = 3


def calls() -> "list[str]":
    """What the driver was asked for since the last time."""
    global SEEN
    lines = CALLS.read_text().splitlines() if CALLS.exists() else []
    new, SEEN = lines[SEEN:], len(lines)
    return [line for line in new if not line.startswith("load")]


def pointer(capsule: object) -> ctypes.c_void_p:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.c_void_p(get(capsule, None))


HOST, CUDA, WITH_MEMORY = (pointer(capsule) for capsule in _tilec.xla_handlers())


def call(operands: "dict[str, tuple[int, int]]", results: "dict[str, tuple[int, int]]", key: str, *, stage: int = EXECUTE, stream: int = 0x77, device: int = 0, api: int = 0, **numbers: float) -> str:
    """Calls the handler of CUDA: names with addresses and lengths."""
    arrays = [*operands.values(), *results.values()]
    texts = {"tilec.kernel": key, "tilec.operands": ",".join(operands), "tilec.results": ",".join(results)}
    names = [*texts, *numbers]

    def array(kind: type, values: "list") -> object:
        return (kind * len(values))(*values)

    return XLA.call(
        CUDA, stage, ctypes.c_void_p(stream), device, len(operands), len(results),
        array(ctypes.c_void_p, [address for address, _ in arrays]), array(ctypes.c_int64, [n for _, n in arrays]),
        len(names), array(ctypes.c_char_p, [name.encode() for name in names]),
        array(ctypes.c_char_p, [texts[name].encode() if name in texts else None for name in names]),
        array(ctypes.c_double, [numbers.get(name, 0.0) for name in names]), ctypes.c_size_t(api),
    ).decode()  # fmt: skip


class Calls(unittest.TestCase):
    def setUp(self) -> None:
        self.scale, _ = tilec.compile(SCALE, target="sm_80")._inner.share()
        calls()

    def test_what_handlers_say_of_themselves(self) -> None:
        for handler, traits in ((HOST, 0), (CUDA, 1), (WITH_MEMORY, 0)):
            major, minor = ctypes.c_int(-1), ctypes.c_int(-1)
            self.assertEqual(XLA.describe(handler, ctypes.byref(major), ctypes.byref(minor)), traits)
            self.assertEqual((major.value, minor.value), (0, 1))

    def test_launches_are_on_the_stream_of_xla(self) -> None:
        for y in (0x200000, 0x300000):
            self.assertEqual(call({"X": (0x100000, 2000)}, {"Y": (y, 2000)}, self.scale, a=2.0), "")
        self.assertEqual(call({"X": (0x2000000000, 4)}, {"Y": (0x2000010000, 4)}, self.scale, a=1.0, stream=0x55, device=1), "")
        self.assertEqual(calls(), [
            "launch scale 2 1 1 cluster 1 stream 77: 100000 200000 40000000 7d0",
            "launch scale 2 1 1 cluster 1 stream 77: 100000 300000 40000000 7d0",
            "launch scale 1 1 1 cluster 1 stream 55: 2000000000 2000010000 3f800000 4",
        ])  # fmt: skip

    def test_what_is_changed_is_one_buffer(self) -> None:
        plus, _ = tilec.compile(PLUS, target="sm_80")._inner.share()
        x, y = (0x100000, 8), (0x200000, 8)
        self.assertEqual(call({"X": x, "Y": y}, {"Y": y}, plus), "")
        self.assertEqual(calls(), ["launch plus 1 1 1 cluster 1 stream 77: 100000 200000 8"])
        self.assertEqual(call({"X": x, "Y": y}, {"Y": (0x300000, 8)}, plus), "13: XLA gave `Y` two places")
        self.assertIn("3: `Y` is written, and shares memory with `X`", call({"X": (0x200010, 8), "Y": y}, {"Y": y}, plus))
        self.assertIn("the array is read-only", call({"X": x, "Y": y}, {}, plus))
        self.assertEqual(calls(), [])

    def test_refusals_are_errors_of_xla(self) -> None:
        x, y = {"X": (0x100000, 8)}, {"Y": (0x200000, 8)}
        for text, found in (
            ("3: `Y` must have shape", call(x, {"Y": (0x200000, 9)}, self.scale, a=1.0)),
            ("3: `a` is missing", call(x, y, self.scale)),
            ("5: this process has no kernel", call(x, y, "0")),
            ("13: a call with other arrays", call({"X,Z": (0x100000, 8)}, y, self.scale, a=1.0)),
            ("13: this XLA does not say the device", call(x, y, self.scale, a=1.0, api=64)),
        ):
            with self.subTest(text):
                self.assertIn(text, found)
        self.assertEqual(calls(), [])

    def test_errors_that_xla_returns_are_ended(self) -> None:
        x, y = {"X": (0x100000, 8)}, {"Y": (0x200000, 8)}
        self.assertEqual(call(x, y, self.scale, a=1.0, stream=0), "13: XLA did not say the stream of a call: no such stream")
        self.assertEqual(call(x, y, self.scale, a=1.0, device=-1), "13: XLA did not say the device of a call: no such device")
        self.assertEqual(XLA.errors_alive(), 0)
        self.assertEqual(calls(), [])

    def test_other_stages_do_nothing(self) -> None:
        for stage in range(EXECUTE):
            self.assertEqual(call({"X": (0x100000, 8)}, {"Y": (0x200000, 8)}, self.scale, a=1.0, stage=stage), "")
        self.assertEqual(calls(), [])

    def test_code_is_loaded_before_the_first_call(self) -> None:
        # A name of its own, so that nothing of it was loaded before.
        text = SCALE.replace("scale", "before")
        key, _ = tilec.compile(text, target="sm_80")._inner.share()
        before = CALLS.read_text() if CALLS.exists() else ""
        _tilec.xla_prepare(key, [("X", "float32", [8]), ("Y", "float32", [8])], {"a": 1.0}, [0])
        loaded = CALLS.read_text()
        self.assertIn("load", loaded[len(before) :])
        self.assertEqual(call({"X": (0x100000, 8)}, {"Y": (0x200000, 8)}, key, a=1.0), "")
        self.assertNotIn("load", CALLS.read_text()[len(loaded) :])

    def test_kernels_that_need_memory_are_in_no_command_buffer(self) -> None:
        splitk = tilec.compile(EXAMPLES / "gemm_splitk.tile", target="sm_80", BM=64, BN=64)
        self.assertTrue(splitk._inner.share()[1])
        self.assertFalse(tilec.compile(SCALE, target="sm_80")._inner.share()[1])


if __name__ == "__main__":
    unittest.main()
