"""The package on the simulator, with NumPy: what a kernel takes, gives and refuses."""

import pathlib
import re
import sys
import types
import unittest
import unittest.mock

import numpy as np

import tilec
from tilec._operator import check_name

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SCALE = """kernel scale<T: f32 | i32 = f32>(X: gmem T[M, N], Y: gmem T[M, N], a: T) grid (i: ceildiv(M, 16), j: ceildiv(N, 64)) {
    copy a * X[i * 16..+16, j * 64..+64] -> Y[i * 16.., j * 64..]
}
"""


def whole(rng: np.random.Generator, *shape: int, dtype: type = np.float16) -> np.ndarray:
    """Whole numbers, so that every sum is exact."""
    return rng.integers(-4, 5, shape).astype(dtype)


class Products(unittest.TestCase):
    def test_gemm_is_exact_on_every_target(self) -> None:
        rng = np.random.default_rng(1)
        for target in ("sm_70", "sm_80", "sm_90a"):
            gemm = tilec.compile(EXAMPLES / "gemm.tile", target=target, BM=64, BN=64)
            for m, n, k in ((40, 72, 24), (1, 8, 8), (130, 64, 200)):
                a, b = whole(rng, m, k), whole(rng, k, n)
                c = np.full((m, n), np.nan, np.float32)
                gemm(a, b, c, alpha=2.0)
                np.testing.assert_array_equal(c, 2 * (a.astype(np.float32) @ b.astype(np.float32)))

    def test_strides_are_those_of_the_arrays(self) -> None:
        rng = np.random.default_rng(2)
        gemm = tilec.compile(EXAMPLES / "gemm.tile", target="sm_80", BM=64, BN=64)
        store = np.full((40, 96), 7, np.float32)
        a, b = whole(rng, 40, 64)[:, :24], whole(rng, 24, 72)
        gemm(a, b, store[:, 8:80])
        np.testing.assert_array_equal(store[:, 8:80], a.astype(np.float32) @ b.astype(np.float32))
        self.assertTrue((store[:, :8] == 7).all() and (store[:, 80:] == 7).all())

    def test_reductions_over_nothing_are_zero(self) -> None:
        gemm = tilec.compile(EXAMPLES / "gemm.tile", target="sm_80", BM=64, BN=64)
        c = np.ones((40, 72), np.float32)
        gemm(np.ones((40, 0), np.float16), np.ones((0, 72), np.float16), c)
        np.testing.assert_array_equal(c, 0)
        # Without elements there is nothing to do.
        gemm(np.ones((0, 16), np.float16), np.ones((16, 72), np.float16), np.ones((0, 72), np.float32))

    def test_programs_of_several_kernels(self) -> None:
        rng = np.random.default_rng(3)
        splitk = tilec.compile(EXAMPLES / "gemm_splitk.tile", target="sm_80", BM=64, BN=64)
        self.assertEqual(splitk.name, "gemm_splitk")
        a, b = whole(rng, 40, 256), whole(rng, 256, 72)
        c = np.full((40, 72), np.nan, np.float32)
        splitk(A=a, B=b, C=c, S=4)
        np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
        reduce = tilec.compile(EXAMPLES / "gemm_splitk.tile", target="sm_80", kernel="reduce")
        self.assertEqual(reduce.name, "reduce")

    def test_variants_are_chosen_by_alignment(self) -> None:
        rng = np.random.default_rng(4)
        gemm = tilec.compile(EXAMPLES / "gemm.tile", target="sm_80", BM=64, BN=64, variants=[{"ALIGN": 8}, {"ALIGN": 1}])
        for n in (72, 73):
            a, b = whole(rng, 40, 24), whole(rng, 24, n)
            c = np.full((40, n), np.nan, np.float32)
            gemm(a, b, c)
            np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


class Arguments(unittest.TestCase):
    def setUp(self) -> None:
        self.scale = tilec.compile(SCALE, target="sm_80")
        self.x = np.arange(12, dtype=np.float32).reshape(3, 4)
        self.y = np.full((3, 4), np.nan, np.float32)

    def test_by_position_and_by_name(self) -> None:
        for call in (lambda: self.scale(self.x, self.y, 3.0), lambda: self.scale(a=3.0, Y=self.y, X=self.x), lambda: self.scale.launch(self.x, self.y, a=3)):
            self.y[:] = np.nan
            call()
            np.testing.assert_array_equal(self.y, 3 * self.x)

    def refused(self, error: type, text: str, *args: object, **kwargs: object) -> None:
        before = self.y.copy()
        with self.assertRaisesRegex(error, text):
            self.scale(*args, **kwargs)
        np.testing.assert_array_equal(self.y, before)

    def test_what_does_not_fit_is_said(self) -> None:
        x, y = self.x, self.y
        self.refused(TypeError, "`a` is missing", x, y)
        self.refused(TypeError, "`X` is given twice", x, y, 1.0, X=x)
        self.refused(TypeError, "takes no `b`", x, y, 1.0, b=2)
        self.refused(TypeError, "at most 3", x, y, 1.0, 2.0)
        self.refused(TypeError, "^`X`: expected an array of .*; found `int`$", 5, y, 1.0)
        self.refused(TypeError, "^`Y`: expected an array of .*; found `NoneType`$", x, None, 1.0)
        self.refused(TypeError, "^`X`: no kernel takes elements of type >f4$", x.astype(">f4"), y, 1.0)
        self.refused(tilec.LaunchError, r"`X` must have shape \(M, N\) = \(5, 4\), by `M=5`; the array has \(3, 4\)", x, y, 1.0, M=5)
        self.refused(tilec.LaunchError, "`X` must have elements f32; the array has float64", x.astype(np.float64), y, 1.0)
        self.refused(tilec.LaunchError, "2 dimensions", x[0], y, 1.0)
        self.refused(tilec.LaunchError, r"`Y` must have shape \(M, N\) = \(2, 4\), by the shape of `X`; the array has \(3, 4\)", x[:2], y, 1.0)
        self.refused(tilec.LaunchError, r"`Y` must have shape \(M, N\) = \(4, 3\), by the shape of `X`; the array has \(3, 4\)", x.T, y, 1.0)
        self.refused(tilec.LaunchError, r"must have strides \(X_ld, 1\), in elements; the array has \(1, 3\); `np.ascontiguousarray", np.asfortranarray(x), y, 1.0)
        self.refused(tilec.LaunchError, "none below zero; `np.ascontiguousarray", x[::-1], y, 1.0)
        self.refused(TypeError, "`a` must be a number; found `str`", x, y, "1")
        self.refused(TypeError, "`M` must be a number; found `str`", x, y, 1.0, M="3")
        self.refused(ValueError, "`M`: .*too large", x, y, 1.0, M=2**70)
        apart = np.zeros(4 * 12 + 1, np.uint8)[1:].view(np.float32).reshape(3, 4)
        self.refused(tilec.LaunchError, "a multiple of 4 bytes; that is the size of an element: copy the array", apart, y, 1.0)
        self.refused(tilec.LaunchError, "shares memory", y, y[:, :], 1.0) if not self.aliases() else None
        y.flags.writeable = False
        self.refused(tilec.LaunchError, "read-only", x, y, 1.0)

    def test_shapes_and_strides_come_before_preconditions(self) -> None:
        """A wrong shape or order breaks preconditions, too, which are not the reason."""
        text = SCALE.replace("T[M, N],", "T[M, N] multiple 8,")
        self.assertEqual(text.count("multiple 8"), 2)
        aligned = tilec.compile(text, target="sm_80")
        x, y = np.ones((37, 40), np.float32), np.zeros((37, 40), np.float32)
        aligned(x, y, 1.0)
        turned = np.zeros((40, 37), np.float32)
        for kernel, expected, args in [
            (aligned, r"^`Y` must have shape \(M, N\) = \(37, 40\), by the shape of `X`; the array has \(40, 37\)$", (x, turned, 1.0)),
            (aligned, r"^`Y` must have shape \(M, N\) = \(37, 40\), by the shape of `X`; the array has \(37, 32\)$", (x, y[:, :32], 1.0)),
            (aligned, r"^`X` must have strides \(X_ld, 1\), in elements; the array has \(1, 37\);", (turned.T, y, 1.0)),
            (self.scale, r"^`Y` must have strides \(Y_ld, 1\), in elements; the array has \(1, 3\);", (self.x, np.asfortranarray(self.y), 1.0)),
        ]:
            with self.assertRaisesRegex(tilec.LaunchError, expected):
                kernel(*args)
        # The right shape: the precondition itself.
        with self.assertRaisesRegex(tilec.LaunchError, "% 8 == 0` does not hold"):
            aligned(np.ones((3, 4), np.float32), np.zeros((3, 4), np.float32), 1.0)

    def test_tensors_that_require_a_gradient_are_not_written(self) -> None:
        """As PyTorch has it; these classes ask as little of a tensor as the package does."""
        y = self.y

        class Tensor:
            is_cuda, is_cpu, requires_grad, dtype, shape = False, True, True, "torch.float32", (3, 4)
            data_ptr = staticmethod(lambda: y.ctypes.data)
            get_device = staticmethod(lambda: -1)
            stride = staticmethod(lambda: (4, 1))

        torch = types.ModuleType("torch")
        with unittest.mock.patch.dict(sys.modules, torch=torch):
            torch.is_grad_enabled = lambda: True
            self.refused(tilec.LaunchError, "`Y` is written and requires a gradient.*`register`", self.x, Tensor(), 2.0)
            torch.is_grad_enabled = lambda: False
            self.scale(self.x, Tensor(), 2.0)
            np.testing.assert_array_equal(y, 2 * self.x)

        class Sparse(Tensor):
            layout = "torch.sparse_coo"

            @staticmethod
            def data_ptr() -> int:
                raise RuntimeError("no storage")

        with self.assertRaisesRegex(TypeError, r"layout torch.sparse_coo.*to_dense"):
            self.scale(Sparse(), y, 2.0)

    def test_operators_have_a_namespace(self) -> None:
        with self.assertRaisesRegex(ValueError, '"linear" has no namespace: "mylib::linear"'):
            check_name("linear")
        check_name("mylib::linear")

    def test_defaults_have_the_type_of_the_scalar(self) -> None:
        scale = tilec.compile(SCALE.replace("a: T", "a: T = 3"), target="sm_80", T="i32")
        default = scale.parameters()[2]["default"]
        self.assertEqual((default, type(default)), (3, int))

    def aliases(self) -> bool:
        params = self.scale.contract["params"]
        return any("X" in param.get("may_alias", []) for param in params)

    def test_in_place_where_the_contract_allows_it(self) -> None:
        if self.aliases():
            self.scale(self.x, self.x, 2.0)
            np.testing.assert_array_equal(self.x, 2 * np.arange(12, dtype=np.float32).reshape(3, 4))
        with self.assertRaisesRegex(tilec.LaunchError, "shares memory"):
            long = np.zeros(16, np.float32)
            self.scale(long[:12].reshape(3, 4), long[4:].reshape(3, 4), 1.0)

    def test_integers(self) -> None:
        scale = tilec.compile(SCALE, target="sm_80", T="i32")
        x = np.arange(-6, 6, dtype=np.int32).reshape(3, 4)
        y = np.zeros_like(x)
        scale(x, y, -7)
        np.testing.assert_array_equal(y, -7 * x)
        with self.assertRaisesRegex(tilec.LaunchError, "whole number in the range"):
            scale(x, y, 2**40)


class Compiling(unittest.TestCase):
    def test_mistakes_have_a_caret(self) -> None:
        with self.assertRaises(tilec.CompileError) as caught:
            tilec.compile(SCALE.replace("a * X", "a * Z"), target="sm_80", name="scale.tile")
        text = str(caught.exception)
        self.assertRegex(text, r"scale\.tile:2:")
        self.assertIn("^", text)
        self.assertEqual(caught.exception.diagnostics[0]["severity"], "error")
        self.assertTrue(caught.exception.diagnostics[0]["code"].startswith("E"))

    def test_words_that_are_none(self) -> None:
        with self.assertRaisesRegex(ValueError, "no target `sm_1`"):
            tilec.compile(SCALE, target="sm_1")
        with self.assertRaisesRegex(ValueError, "no kernel `b`"):
            tilec.compile(SCALE, target="sm_80", kernel="b")
        with self.assertRaisesRegex(ValueError, "source is empty"):
            tilec.compile("", target="sm_80")
        with self.assertRaisesRegex(TypeError, 'such as "sm_80", found 80'):
            tilec.compile(SCALE, target=80)
        with self.assertRaises(FileNotFoundError):
            tilec.compile("no_such.tile", target="sm_80")
        with self.assertRaises(tilec.CompileError):
            tilec.compile(SCALE, target="sm_80", T="f17")

    def test_what_a_kernel_knows(self) -> None:
        scale = tilec.compile(SCALE, target="sm_80", name="scale.tile")
        self.assertIn(".target sm_80", scale.ptx)
        self.assertEqual(scale.contract["entry"], "scale")
        self.assertEqual(scale.report["kernels"][0]["entry"] if "kernels" in scale.report else scale.report["entry"], "scale")
        self.assertIn("remark[vectorize]", scale.remarks)
        self.assertIn("kernel scale", scale.tile)
        self.assertEqual([p["name"] for p in scale.parameters()], ["X", "Y", "a"])
        self.assertEqual(repr(scale), "<tilec kernel scale(X, Y, a) for sm_80>")
        self.assertIn("scale_launch(", scale.c_header)
        page = scale.xray()
        self.assertIn("<html", page.html)
        self.assertRegex(repr(page), r"<tilec page of scale.tile, \d+ bytes: save\(PATH\) writes it>")
        self.assertEqual([name for name in dir(tilec) if name in ("Any", "os", "json", "annotations")], [])
        self.assertEqual(tilec.compile.__annotations__["target"], "str | None")
        self.assertTrue(page._repr_html_().startswith("<iframe srcdoc="))

    def test_the_simulator_finds_what_a_gpu_lets_pass(self) -> None:
        """A size that is too large for the array is found before the launch."""
        scale = tilec.compile(SCALE, target="sm_80")
        x, y = np.zeros((3, 4), np.float32), np.zeros((3, 4), np.float32)
        with self.assertRaisesRegex(tilec.LaunchError, "must have shape"):
            scale(x, y, 1.0, M=5)


class Documents(unittest.TestCase):
    def test_snippets_run(self) -> None:
        text = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("docs/python.md", "python/README.md"))
        snippets = re.findall(r"```python\n(.*?)```", text, re.S)
        ran = 0
        for snippet in snippets:
            if "import torch" in snippet or "import jax" in snippet or "tilec.load" in snippet:
                continue  # test_torch.py runs those that need no GPU, and test_bundle.py has a bundle
            with self.subTest(snippet.splitlines()[0]):
                code = re.sub(r'"(\w+\.tile)"', lambda path: repr(str(EXAMPLES / path[1])), snippet)
                exec(compile(code, "docs/python.md", "exec"), {})  # noqa: S102 - our own document
                ran += 1
        self.assertGreaterEqual(ran, 3)


if __name__ == "__main__":
    unittest.main()
