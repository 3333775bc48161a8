"""Tests of the GPU scripts that need no GPU: `python3 -m unittest gpu.tests` in `scripts/`.

What needs PyTorch or tilec says that it is skipped where there is none. TILEC names the compiler.
"""

import contextlib
import ctypes
import importlib.util
import io
import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from typing import Any
from unittest import mock

from . import contract_host as host
from . import measure, supervise
from .expressions import ExpressionError, evaluate, names
from .fake import FakeDriver, word
from .fused_programs import KINDS, worst
from .links_tests import Links  # noqa: F401
from .model_shapes import Shape, draw, layer_products
from .pages_tests import Pages  # noqa: F401
from .tables_tests import Tables  # noqa: F401

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SCRIPTS))
TILEC = os.environ.get("TILEC", str(SCRIPTS.parent / "target/release/tilec"))
needs_tilec = unittest.skipUnless(shutil.which(TILEC), "skipped: scripts/gpu/tests.py: there is no tilec")
needs_torch = unittest.skipUnless(importlib.util.find_spec("torch"), "skipped: scripts/gpu/tests.py: there is no PyTorch")

GEMM = {
    "schema": "tilec.launch/1", "entry": "gemm", "target": "sm_90a", "block": [256, 1, 1], "cluster": [2, 1, 1], "programmatic": True,
    "dynamic_smem_bytes": 65536, "grid": ["min(ceildiv(M, 64) * ceildiv(N, 32), 132)", "1", "1"],
    "params": [
        {"name": "A", "kind": "tensor", "type": "bf16", "align": 16, "access": "read", "shape": ["M", "K"], "strides": ["A_ld", "1"]},
        {"name": "C", "kind": "tensor", "type": "f32", "align": 16, "access": "write", "shape": ["M", "N"], "strides": ["C_ld", "1"], "may_alias": ["D"]},
        {"name": "alpha", "kind": "scalar", "type": "f32", "default": 1.0},
        {"name": "M", "kind": "size", "type": "u32"}, {"name": "K", "kind": "size", "type": "u32"}, {"name": "N", "kind": "size", "type": "u32"},
        {"name": "A_ld", "kind": "stride", "type": "i64", "packed": "K"}, {"name": "C_ld", "kind": "stride", "type": "i64", "packed": "N"},
        {"name": "A_map", "kind": "tensor_map", "tensor": "A", "dims": [1, 0], "box": [64, 128], "swizzle": "128B"},
    ],
    "requires": ["A_ld % 8 == 0", "C_ld >= N || M == 1"],
}  # fmt: skip


class Expressions(unittest.TestCase):
    def test_values(self) -> None:
        cases = {
            "1 + 2 * 3": 7, "(1 + 2) * 3": 9, "-7 / 2": -4, "-7 % 2": 1, "7 / -2": -4, "1 - (4 - 5) / 4": 2, "ceildiv(M, 128)": 3, "ceildiv(-1, 4)": 0,
            "min(M, 5, 9)": 5, "max(1, M)": 300, "M >= 1 && M <= 2": 0, "M == 300 || 1 / 0 == 1": 1, "M != 300 && 1 % 0 == 1": 0, "!(M == 1)": 1,
            "10 - 4 - 3": 3, "100 / 10 / 5": 2, "2 * 3 % 4": 2, "1 < 2 && 2 < 3": 1,
        }  # fmt: skip
        for text, expected in cases.items():
            self.assertEqual(evaluate(text, {"M": 300}), expected, text)

    def test_refused(self) -> None:
        for text in ["", "1 +", "(1", "1)", "1 / 0", "M", "ceildiv(1)", "ceildiv(1, 0)", "1 $ 2", "1 2"]:
            with self.assertRaises(ExpressionError, msg=text):
                evaluate(text, {})

    def test_names(self) -> None:
        self.assertEqual(names("ceildiv(M, 2) + min(N_ld, 3)"), {"M", "N_ld"})


class Contracts(unittest.TestCase):
    def setUp(self) -> None:
        self.contract = host.Contract(GEMM)
        self.a = host.Tensor(0x1000, (100, 64), (72, 1), "bf16")
        self.c = host.Tensor(0x100000, (100, 40), (48, 1), "f32")

    def test_plan(self) -> None:
        plan = self.contract.plan({"A": self.a, "C": self.c}, {}, {"alpha": 2.0})
        self.assertEqual(plan.grid, (4, 1, 1))
        words = [struct.pack("<Q", 0x1000), struct.pack("<Q", 0x100000), struct.pack("<f", 2.0)]
        words += [struct.pack("<I", n) for n in (100, 64, 40)] + [struct.pack("<q", n) for n in (72, 48)]
        self.assertEqual(list(plan.arguments[:-1]), words)
        self.assertEqual(plan.arguments[-1], host.MapPlan(9, 0x1000, (64, 100), (144,), (64, 128), 3))

    def test_a_map_for_windows_with_an_end_of_their_own(self) -> None:
        of_rows = {**GEMM["params"][-1], "box": [64, 32], "ended": 1}
        plan = host.Contract({**GEMM, "params": [*GEMM["params"][:-1], of_rows]}).plan({"A": self.a, "C": self.c}, {}, {"alpha": 2.0})
        self.assertEqual(plan.arguments[-1], host.MapPlan(9, 0x1000 - 32 * 144, (64, 32, 101), (144, 144), (64, 32, 1), 3))

    def test_refusals(self) -> None:
        def refuse(words: str, a: host.Tensor = self.a, c: host.Tensor = self.c, **sizes: int) -> None:
            with self.assertRaisesRegex(host.ContractError, words):
                self.contract.plan({"A": a, "C": c}, sizes, {})

        refuse("A_ld % 8", a=host.Tensor(0x1000, (100, 64), (71, 1), "bf16"))
        refuse("no multiple of 16", a=host.Tensor(0x1008, (100, 64), (72, 1), "bf16"))
        refuse("has elements bf16", a=host.Tensor(0x1000, (100, 64), (72, 1), "f16"))
        refuse("has shape", c=host.Tensor(0x100000, (99, 40), (48, 1), "f32"))
        refuse("C_ld >= N", c=host.Tensor(0x100000, (100, 40), (1, 100), "f32"))
        refuse("has shape", c=host.Tensor(0x100000, (100, 40), (48, 2), "f32"))
        refuse("2 dimensions", c=host.Tensor(0x100000, (100, 40, 1), (48, 1, 1), "f32"))
        refuse("overlaps", c=host.Tensor(0x1000, (100, 40), (48, 1), "f32"))
        refuse("has no size", X=1)
        with self.assertRaisesRegex(host.ContractError, "no tensor `C`"):
            self.contract.plan({"A": self.a}, {"N": 40}, {})

    def test_launch(self) -> None:
        fake = FakeDriver()
        loaded = host.LoadedKernel(host.Driver(fake), ".entry", self.contract)
        self.assertEqual(fake.attributes, [(8, 65536)])
        loaded.bind({"A": self.a, "C": self.c}).launch(7)
        loaded.bind({"A": self.a, "C": self.c}, overlap=False).launch(7)
        config = fake.launches[0]
        self.assertEqual((list(config.grid), list(config.block), config.dynamic_smem, config.stream), ([4, 1, 1], [256, 1, 1], 65536, 7))
        self.assertEqual((config.n_attributes, fake.launches[1].n_attributes), (2, 1))
        self.assertEqual((config.attributes[0].id, list(config.attributes[0].value.cluster)), (4, [2, 1, 1]))
        self.assertEqual((config.attributes[1].id, config.attributes[1].value.flag), (6, 1))
        self.assertEqual(fake.maps[0], (9, 2, 0x1000, 64, 100, 144, 64, 128, 1, 1, 0, 3, 2, 0))

    def test_driver_errors(self) -> None:
        loaded = host.LoadedKernel(host.Driver(FakeDriver(status=1)), ".entry", self.contract)
        with self.assertRaisesRegex(host.CudaError, "cuLaunchKernelEx: CUDA_ERROR_FAKE"):
            loaded.bind({"A": self.a, "C": self.c}).launch(0)

    def test_structures_are_those_of_the_driver(self) -> None:
        self.assertEqual((ctypes.sizeof(host.LaunchConfig), ctypes.sizeof(host.LaunchAttribute)), (56, 72))
        self.assertEqual((host.LaunchConfig.stream.offset, host.LaunchConfig.attributes.offset, host.LaunchAttribute.value.offset), (32, 40, 8))

    def test_dispatch(self) -> None:
        small = {**GEMM, "entry": "gemm_2"}
        cases = [{"entry": "gemm", "when": ["M >= 1000"]}, {"entry": "gemm_2", "when": []}]
        text = json.dumps({"schema": "tilec.launch/2", "kernels": [GEMM, small], "dispatch": [{"kernel": "gemm", "cases": cases}]})
        file = host.LaunchFile.parse("", text)
        self.assertEqual(file.choose({"A": self.a, "C": self.c}, {}, {}).entry, "gemm_2")
        with self.assertRaisesRegex(host.ContractError, "no case"):
            file.choose({"A": host.Tensor(0x1000, (100, 64), (71, 1), "bf16"), "C": self.c}, {}, {})

    def test_scalars(self) -> None:
        self.assertEqual(host.pack_scalar("bf16", 1.0), b"\x80\x3f")
        self.assertEqual(host.pack_scalar("bf16", 1.00390625), b"\x80\x3f")  # a tie: to even
        self.assertEqual(host.pack_scalar("f16", -2.0), b"\x00\xc0")
        self.assertEqual(host.pack_scalar("i32", -1), b"\xff" * 4)


class Measuring(unittest.TestCase):
    def test_sets_and_calls(self) -> None:
        self.assertEqual(measure.input_sets(200 << 20, 60 << 20), 2)
        self.assertEqual(measure.input_sets(10 << 20, 60 << 20), 9)
        plan = measure.Plan(turn_ms=10)
        self.assertEqual(measure.calls_of_a_turn(1000, 3, plan), 9)
        self.assertEqual(measure.calls_of_a_turn(1e6, 3, plan), 3)
        self.assertEqual(measure.calls_of_a_turn(1, 3, plan), 399)

    def test_ratio(self) -> None:
        ratio = measure.Ratio.of(measure.Times((2.0, 3.0, 8.0)), measure.Times((1.0, 2.0, 2.0)))
        self.assertEqual((ratio.median, ratio.least, ratio.greatest), (2.0, 1.5, 4.0))
        self.assertAlmostEqual(measure.Times((1.0, 2.0, 3.0, 4.0, 5.0)).spread, 2 / 3)


class Supervising(unittest.TestCase):
    def test_a_child_that_hangs_dies_or_fails(self) -> None:
        code = (
            "import sys, time, os; sys.path.insert(0, sys.argv[1]); from gpu import supervise\n"
            "def work(c):\n"
            "    if c['do'] == 'hang': time.sleep(60)\n"
            "    if c['do'] == 'die': os._exit(3)\n"
            "    if c['do'] == 'fail': raise ValueError('no')\n"
            "    print('noise'); return {'pid': os.getpid()}\n"
            "supervise.answer_cases(work)"
        )
        command = [sys.executable, "-c", code, str(SCRIPTS)]
        cases = [{"do": d} for d in ("a", "fail", "b", "hang", "c", "die", "d")]
        with open(os.devnull, "w") as devnull, mock.patch.object(subprocess, "Popen", _quiet(devnull)):
            answers = {case["do"]: answer for case, answer in supervise.run_cases(command, cases, 2.0)}
        self.assertEqual(answers["a"], answers["b"])
        self.assertNotEqual(answers["b"], answers["c"])
        self.assertIn("ValueError: no", answers["fail"]["error"])
        self.assertIn("no answer", answers["hang"]["error"])
        self.assertIn("status 3", answers["die"]["error"])
        self.assertIn("pid", answers["d"])

    def test_budget(self) -> None:
        answers = list(supervise.run_cases(["false"], [{}], 1.0, budget=0.0))
        self.assertIn("time is spent", answers[0][1]["error"])


def _quiet(devnull: Any) -> Any:
    popen: Any = subprocess.Popen
    return lambda *a, **k: popen(*a, stderr=devnull, **k)


class _Event:
    """Time on the host stands in for that of the device."""

    def __init__(self, enable_timing: bool) -> None:
        self.at = 0.0

    def record(self) -> None:
        self.at += 1.0

    def elapsed_time(self, other: "_Event") -> float:
        return 1.0


class _Graph:
    def replay(self) -> None:
        pass


@contextlib.contextmanager
def processor_as_device() -> Any:
    """PyTorch's CUDA functions that the scripts use, for tensors of the processor. A capture runs what it captures."""
    import torch

    stream = mock.Mock(cuda_stream=5)
    fakes = {
        "Event": _Event, "CUDAGraph": _Graph, "graph": lambda g: contextlib.nullcontext(), "synchronize": lambda: None, "current_stream": lambda: stream,
        "get_device_properties": lambda i: mock.Mock(L2_cache_size=1 << 12), "get_device_name": lambda: "processor",
    }  # fmt: skip
    with contextlib.ExitStack() as stack:
        for name, value in fakes.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, value))
        yield torch


class Variants(unittest.TestCase):
    def test_a_variant_has_the_last_word(self) -> None:
        import gpu_attention

        words = ["--define", "BKV=64", "--define-if", "D=256:BKV=32", "--variant", "wide:BKV=80,option=--remarks", "--variant", "other:file=x.tile"]
        options = gpu_attention.arguments(words)
        case = gpu_attention.parse_case("Z=1,H=1,L=64,D=256")
        self.assertIn("BKV=32", gpu_attention.compile_options(options, case))
        others = gpu_attention.variants(options)
        said = gpu_attention.compile_options(others["wide"], case)
        self.assertIn("BKV=80", said)
        self.assertNotIn("BKV=32", said)
        self.assertEqual(said[-1], "--remarks")
        self.assertEqual((others["other"].file, others["wide"].file), ("x.tile", options.file))
        self.assertEqual(options.option, [])


@needs_tilec
@needs_torch
class Attention(unittest.TestCase):
    def run_case(self, text: str, spoil: float = 0.0, *words: str) -> Any:
        import gpu_attention

        with processor_as_device() as torch:
            options = gpu_attention.arguments(["--tilec", TILEC, "--against", "flash", "--rounds", "3", *words])
            fake = FakeDriver()
            bench = gpu_attention.Bench(options, "cpu", host.Driver(fake))
            case = gpu_attention.parse_case(text)
            sets = bench.inputs(case)
            setattr(bench, "inputs", lambda case: sets)  # noqa: B010

            def kernel(config: host.LaunchConfig, pointers: Any) -> None:
                q, k, v = next(s for s in sets if s[0].data_ptr() == word(pointers, 0))
                self.assertEqual([k.data_ptr(), v.data_ptr()], [word(pointers, 1), word(pointers, 2)])
                out = next(r for r in bench.results if r.data_ptr() == word(pointers, 3))
                out.copy_(torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=case["causal"]))
                out[-1, -1, -1, -1] += spoil

            fake.kernel = kernel
            answer = bench.work(case)
            return gpu_attention, fake, case, json.loads(json.dumps(answer))

    def test_right_result(self) -> None:
        module, fake, case, answer = self.run_case("Z=2,H=3,L=200,D=64")
        self.assertEqual(list(fake.launches[0].grid), [2, 3, 2])
        self.assertIn("ours", answer["times"])
        self.assertLess(answer["of_bound"], 1.0)
        row = module.summary(case, answer)
        self.assertIn("ours_us", row)
        self.assertIn(case["case"], module.short([row]))

    def test_causal(self) -> None:
        _, _, _, answer = self.run_case("Z=1,H=2,L=200,D=64,causal", 0.0, "--causal-define", "D=64")
        self.assertIn("ours", answer["times"])

    def test_a_wrong_element_is_found(self) -> None:
        for spoil in (0.1, math.nan):
            with self.assertRaisesRegex(RuntimeError, "WRONG RESULT"):
                self.run_case("Z=2,H=3,L=200,D=64", spoil)

    def test_no_causal_form(self) -> None:
        _, _, _, answer = self.run_case("Z=1,H=2,L=200,D=64,causal")
        self.assertNotIn("ours", answer.get("times", {}))
        self.assertIn("no causal form", answer["note"])


@needs_tilec
class BackwardWithoutADevice(unittest.TestCase):
    def test_dry(self) -> None:
        import gpu_attention_backward as backward

        with contextlib.redirect_stdout(io.StringIO()) as said, mock.patch.object(backward, "find_ptxas", lambda: None):
            words = ["--tilec", TILEC, "--dry", "--case", "Z=2,H=3,L=201,D=64,causal"]
            self.assertEqual(backward.dry(backward.arguments(words)), 0, said.getvalue())
            self.assertEqual(backward.dry(backward.arguments([*words, "--file", str(SCRIPTS.parent / "examples/gemm.tile")])), 1)
        self.assertRegex(said.getvalue(), r"attention_rows grid \(16, 3, 2\) block .*; attention_dkv grid .*; attention_dq grid")

    def test_summary(self) -> None:
        import gpu_attention_backward as backward

        case = {"case": "c", "Z": 1, "H": 1, "L": 100, "D": 10, "causal": True}
        row = backward.summary(case, {"times": {"ours": [1.0, 1.0], "cudnn": [2.0, 2.0], "flash": [3.0, 3.0]}})
        self.assertEqual((row["best"], row["ratio"], row["ours_tflops"]), ("cudnn", 2.0, 0.5))
        self.assertIn("2.000", backward.short([row]))


@needs_tilec
@needs_torch
class Backward(unittest.TestCase):
    def run_case(self, spoil: float) -> Any:
        import gpu_attention_backward as backward

        with processor_as_device() as torch:
            options = backward.arguments(["--tilec", TILEC, "--against", "none", "--rounds", "3"])
            fake = FakeDriver()
            bench = backward.Bench(options, "cpu", host.Driver(fake))
            case = backward.forward_pass.parse_case("Z=2,H=3,L=201,D=64,causal")
            sets = bench.inputs(case)
            setattr(bench, "inputs", lambda case: sets)  # noqa: B010

            def kernel(config: host.LaunchConfig, pointers: Any) -> None:
                # The first kernel names O; all results are written then.
                index = next((i for i, s in enumerate(sets) if s.o.data_ptr() == word(pointers, 0)), None)
                if index is None:
                    return
                given = sets[index]
                q, k, v = (t.double().requires_grad_() for t in (given.q, given.k, given.v))
                out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                for result, gradient in zip(bench.results[index], torch.autograd.grad(out, (q, k, v), given.g.double()), strict=True):
                    result.copy_(gradient)
                bench.results[index][1][-1, -1, 0, 0] += spoil

            fake.kernel = kernel
            return backward, case, json.loads(json.dumps(bench.work(case)))

    def test_right_result(self) -> None:
        module, case, answer = self.run_case(0.0)
        self.assertLess(answer["of_bound"], 1.0)
        self.assertIn("ours_us", module.summary(case, answer))

    def test_a_wrong_element_is_found(self) -> None:
        for spoil in (0.3, math.nan):
            with self.assertRaisesRegex(RuntimeError, "WRONG RESULT"):
                self.run_case(spoil)


SWIGLU = """
kernel swiglu<T: f16 | bf16 = bf16, BM = 64, BN = 32, BK = 32>(
    X: gmem T[M, K] multiple 8, G: gmem T[K, N] col multiple 8, U: gmem T[K, N] col multiple 8, D: gmem T[M, N] multiple 8)
    grid (m: ceildiv(M, BM), n: ceildiv(N, BN))
{
    let x = smem T[BM, BK]
    let g = smem T[BK, BN]
    let u = smem T[BK, BN]
    var p = reg f32[BM, BN] = 0.0
    var q = reg f32[BM, BN] = 0.0
    for k in 0..K step BK {
        copy X[m * BM.., k..] -> x
        copy G[k.., n * BN..] -> g
        copy U[k.., n * BN..] -> u
        p = mma(x, g, p)
        q = mma(x, u, q)
    }
    copy cast<T>(p / (1.0 + exp(-p)) * q) -> D[m * BM.., n * BN..]
}
"""


@needs_tilec
class FusedWithoutADevice(unittest.TestCase):
    def test_dry(self) -> None:
        import gpu_fused

        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said, mock.patch.object(gpu_fused, "find_ptxas", lambda: None):
            path = pathlib.Path(folder, "swiglu.tile")
            path.write_text(SWIGLU)
            words = ["--tilec", TILEC, "--file", str(path), "--dry"]
            self.assertEqual(gpu_fused.dry(gpu_fused.arguments([*words, "--kind", "swiglu", "--case", "M=100,N=48,K=64"])), 0, said.getvalue())
            self.assertEqual(gpu_fused.dry(gpu_fused.arguments([*words, "--kind", "back_to_back", "--case", "M=100,N=48,K=64,P=8"])), 1)
        self.assertRegex(said.getvalue(), r"swiglu grid \(\d+, \d+, \d+\) block")


@needs_tilec
@needs_torch
class Fused(unittest.TestCase):
    def run_case(self, spoil: float) -> Any:
        import gpu_fused

        with processor_as_device() as torch, tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "swiglu.tile")
            path.write_text(SWIGLU)
            options = gpu_fused.arguments(["--tilec", TILEC, "--file", str(path), "--kind", "swiglu", "--rounds", "3"])
            fake, made = FakeDriver(), dict[int, Any]()
            bench = gpu_fused.Bench(options, "cpu", host.Driver(fake))
            matrix = bench.matrix

            def remember(memory: Any) -> Any:
                tensor = matrix(memory)
                made[tensor.data_ptr()] = tensor
                return tensor

            def kernel(config: host.LaunchConfig, pointers: Any) -> None:
                a, b = made[word(pointers, 0)], made[word(pointers, 1)]
                if word(pointers, 3) in made and made[word(pointers, 2)].shape == b.shape and made[word(pointers, 2)] is not a:
                    g, out = made[word(pointers, 2)], made[word(pointers, 3)]
                    out.copy_(torch.nn.functional.silu(a.double() @ b.double()) * (a.double() @ g.double()))
                    out[-1, -1] += spoil
                else:
                    torch.matmul(a, b, out=made[word(pointers, 2)])

            fake.kernel = kernel
            setattr(bench, "matrix", remember)  # noqa: B010
            case = gpu_fused.parse_case("swiglu", "M=100,N=48,K=64")
            answer = json.loads(json.dumps(bench.work(case)))
            return gpu_fused.short([gpu_fused.summary(options, case, answer)]), answer

    def test_right_result(self) -> None:
        table, answer = self.run_case(0.0)
        self.assertEqual(sorted(answer["times"]), ["cublas", "fused", "plain", "separate"])
        self.assertLess(answer["of_bound"], 1.0)
        self.assertIn("M=100,N=48,K=64", table)

    def test_a_wrong_element_is_found(self) -> None:
        for spoil in (0.1, math.nan):
            with self.assertRaisesRegex(RuntimeError, "WRONG RESULT"):
                self.run_case(spoil)

    def test_two_products_back_to_back(self) -> None:
        import torch

        kind = KINDS["back_to_back"]
        case = {"M": 64, "N": 16, "K": 32, "P": 24}
        self.assertEqual(kind.plain_products(case), [(64, 16, 32), (64, 24, 16)])
        operands = [torch.randn(case[a], case[b]).bfloat16() for _, a, b in kind.inputs]
        right = ((operands[0].float() @ operands[1].float()).bfloat16().float() @ operands[2].float()).bfloat16()
        self.assertLess(worst(torch, kind, operands, right, "bf16")[1], 1.0)
        right[3, 5] += 0.05 * right.abs().max()
        self.assertGreater(worst(torch, kind, operands, right, "bf16")[1], 1.0)


class Shapes(unittest.TestCase):
    def test_the_rule(self) -> None:
        shapes = draw(252)
        self.assertEqual(shapes[:60], draw(60))
        self.assertEqual(len({(s.m, s.n, s.k) for s in shapes}), 252)
        self.assertTrue(all(1 <= s.m <= 8192 and s.n % 8 == 0 and s.k % 8 == 0 and s.m * s.n * s.k <= 2**41 for s in shapes))
        self.assertEqual({s.m for s in shapes} & {1 << i for i in range(14)}, {1 << i for i in range(14)})
        self.assertTrue(any(s.m & (s.m - 1) for s in shapes))

    def test_a_layer(self) -> None:
        model = {"hidden": 4096, "intermediate": 14336, "heads": 32, "kv_heads": 2, "head_dim": 128, "vocab": 128256, "gated": True}
        products = {"qkv": (1280, 4096), "out": (4096, 1024), "up": (7168, 4096), "down": (4096, 3584), "head": (32064, 4096)}
        self.assertEqual(layer_products(model, 4), products)
        self.assertEqual(layer_products(model, 64), {})


class Sweep(unittest.TestCase):
    def report(self, ratios: tuple[float, float], wrong: int = 0) -> Any:
        check = {"exact": 1, "bounded": 2, "against_cublas": 3, "interpreted": 0, "wrong": wrong}
        rows = [
            {
                "variant": i, "us": [1.0, 2.0, 3.0], "time": {"median": 2.0, "lower": 1.5, "upper": 2.5, "min": 1.0, "max": 3.0}, "check": check, "reference": 0,
                "ratio": {"median": r, "min": r - 0.1, "max": r + 0.1}, "chosen": [{"values": [["BM", 64]], "predicted_us": 1.5}], "loaded": {"registers": 168, "local_bytes": 0},
            }
            for i, r in enumerate(ratios)
        ]  # fmt: skip
        references = [{"us": [2.0, 2.0, 2.5], "refused": None}]
        problem = {"args": {"M": 8, "N": 16, "K": 32}, "rows": rows, "references": references, "notes": []}
        return {"machine": {"name": "H"}, "cublas": {"version": "13"}, "problems": [problem]}

    def test_rows(self) -> None:
        import gpu_sweep

        shape = [Shape(8, 16, 32, "x")]
        rows = [row for row, _ in gpu_sweep.rows_of(shape, self.report((1.25, 0.8)))]
        self.assertEqual([(r["kind"], r["ratio"], r["us"], r["spread"], r["cublas_us"], r["compared"]) for r in rows], [("overlap", 1.25, 2.0, 0.5, 2.0, 6), ("plain", 0.8, 2.0, 0.5, 2.0, 6)])
        rows += [row for row, _ in gpu_sweep.rows_of(shape, self.report((5.0, 0.2), wrong=3))]
        rows += [row for row, _ in gpu_sweep.rows_of(shape, "ended after 3 s")]
        lines = gpu_sweep.summary(rows).splitlines()
        self.assertEqual(lines[-2].split(), ["overlap", "1", "2", "1", "1.250", "1.250", "1.250", "1.250"])
        self.assertEqual(lines[-1].split(), ["plain", "1", "2", "1", "0.800", "0.800", "0.800", "0.800"])

    def test_a_process_that_lasts_is_ended(self) -> None:
        import gpu_sweep

        self.assertEqual(gpu_sweep.run(["sleep", "30"], 0.2), "ended after 0 s")
        self.assertIn("status 1", str(gpu_sweep.run(["false"], 5)))

    @needs_tilec
    def test_the_command(self) -> None:
        import gpu_sweep

        options = gpu_sweep.arguments(["--tilec", TILEC, "--shape-seconds", "0.1"])
        shapes = [Shape(16, 64, 64, "x"), Shape(1, 128, 64, "y")]
        report = gpu_sweep.run(gpu_sweep.bench_command(options, shapes), 100)
        rows = [row for row, _ in gpu_sweep.rows_of(shapes, report)]
        self.assertEqual([row["kind"] for row in rows], ["overlap", "plain"] * 2)
        self.assertTrue(all(row["chosen"] and row["compared"] for row in rows))


if __name__ == "__main__":
    unittest.main()
