"""Kernels inside of `jax.jit`, on the simulator: `scripts/python_test.sh` runs this where it can install JAX."""

import os
import pathlib
import re
import threading
import unittest

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

import tilec
import tilec.jax

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
SCALE = """kernel scale<T: f16 | bf16 | f32 | f64 | i32 = f32>(X: gmem T[M, N], Y: gmem T[M, N], a: T = 1) grid (i: ceildiv(M, 16), j: ceildiv(N, 64)) {
    copy a * X[i * 16..+16, j * 64..+64] -> Y[i * 16.., j * 64..]
}
"""
COPY = """kernel same<T: type = f32>(X: gmem T[N], Y: gmem T[N]) grid (b: ceildiv(N, 256)) {
    copy X[b * 256..+256] -> Y[b * 256..]
}
"""
ADD = """kernel sums(X: gmem i64[N], Y: gmem i64[N], a: i64, b: u64 = 0) grid (i: ceildiv(N, 256)) {
    copy Y[i * 256..+256] + a * X[i * 256..+256] -> Y[i * 256..]
}
"""
SUM = """kernel plus(X: gmem f32[N], Y: gmem f32[N]) grid (b: ceildiv(N, 256)) {
    copy X[b * 256..+256] + Y[b * 256..+256] -> Y[b * 256..]
}
"""


def whole(seed: int, *shape: int, dtype: object = jnp.float16) -> jax.Array:
    """Whole numbers, so that every sum is exact."""
    return jnp.asarray(np.random.default_rng(seed).integers(-4, 5, shape), dtype)


def gemm_of(**params: object) -> object:
    kernel = tilec.compile(EXAMPLES / "gemm.tile", target="sm_80", BM=64, BN=64, **params)
    return tilec.jax.call(kernel, results=["C"])


class Calls(unittest.TestCase):
    def test_products_under_jit(self) -> None:
        gemm = gemm_of()
        layer = jax.jit(lambda a, b: jax.nn.relu(gemm(a, b, alpha=2.0)) + 1)
        for m, n, k in ((40, 72, 24), (1, 8, 8), (72, 64, 200), (17, 16, 0), (0, 8, 8)):
            a, b = whole(1, m, k), whole(2, k, n)
            expected = np.maximum(2 * (np.float32(a) @ np.float32(b)), 0) + 1
            np.testing.assert_array_equal(layer(a, b), expected)
            np.testing.assert_array_equal(gemm(a, b, alpha=2.0), 2 * (np.float32(a) @ np.float32(b)))

    def test_types(self) -> None:
        for name, dtype in (("f16", jnp.float16), ("bf16", jnp.bfloat16), ("f32", jnp.float32), ("i32", jnp.int32)):
            scale = jax.jit(tilec.jax.call(tilec.compile(SCALE, target="sm_80", T=name)), static_argnames="a")
            x = whole(3, 19, 67, dtype=dtype)
            got = scale(x, a=3)
            self.assertEqual(got.dtype, dtype)
            np.testing.assert_array_equal(np.float32(got), 3 * np.float32(x))
            np.testing.assert_array_equal(scale(x), x)
        for name, dtype in (("e4m3", jnp.float8_e4m3fn), ("e5m2", jnp.float8_e5m2), ("u8", jnp.uint8), ("i8", jnp.int8), ("i16", jnp.int16), ("u32", jnp.uint32)):
            x = whole(4, 300, dtype=jnp.float32).astype(dtype)
            got = jax.jit(tilec.jax.call(tilec.compile(COPY, target="sm_90a", T=name)))(x)
            self.assertEqual(got.dtype, dtype)
            np.testing.assert_array_equal(np.float32(got), np.float32(x))

    def test_scalars_keep_their_value(self) -> None:
        scale = tilec.jax.call(tilec.compile(SCALE, target="sm_80"))
        x = jnp.ones((1, 3), jnp.float32)
        for a in (0.1, -0.0, 1e-45, float("inf"), float("-inf"), float("nan"), np.float32(3.3), np.float16(0.1), True):
            np.testing.assert_array_equal(jax.jit(lambda x, a=a: scale(x, a=a))(x), np.full((1, 3), np.float32(a)))
        add = tilec.jax.call(tilec.compile(ADD, target="sm_80"))
        jax.config.update("jax_enable_x64", True)
        try:
            x, y = jnp.ones(5, jnp.int64), jnp.arange(5, dtype=jnp.int64)
            for a in (-(1 << 63), (1 << 63) - 5, (1 << 53) + 1):
                np.testing.assert_array_equal(jax.jit(lambda y, a=a: add(x, y, a, b=(1 << 64) - 1))(y), np.arange(5) + np.int64(a))
        finally:
            jax.config.update("jax_enable_x64", False)

    def test_sizes_and_programs_of_several_kernels(self) -> None:
        splitk = tilec.jax.call(tilec.compile(EXAMPLES / "gemm_splitk.tile", target="sm_80", BM=64, BN=64), results=["C"], S=4)
        a, b = whole(5, 40, 256), whole(6, 256, 72)
        got = jax.jit(lambda a, b: splitk(A=a, B=b))(a, b)
        np.testing.assert_array_equal(got, np.float32(a) @ np.float32(b))

    def test_what_is_changed_is_an_argument_and_a_result(self) -> None:
        plus = tilec.jax.call(tilec.compile(SUM, target="sm_80"))
        x, y = whole(7, 1000, dtype=jnp.float32), whole(8, 1000, dtype=jnp.float32)
        before = np.asarray(y).copy()
        twice = jax.jit(lambda x, y: plus(x, plus(x, y)))
        np.testing.assert_array_equal(twice(x, y), before + 2 * np.asarray(x))
        # Arrays of JAX do not change.
        np.testing.assert_array_equal(y, before)
        np.testing.assert_array_equal(jax.jit(lambda x: plus(x, x))(x), 2 * np.asarray(x))
        given = jax.jit(plus, donate_argnums=1)(x, jnp.array(before))
        np.testing.assert_array_equal(given, before + np.asarray(x))
        loop = jax.jit(lambda x, y: jax.lax.fori_loop(0, 5, lambda _, y: plus(x, y), y))
        np.testing.assert_array_equal(loop(x, y), before + 5 * np.asarray(x))

    def test_what_is_only_written_may_be_given(self) -> None:
        same = tilec.jax.call(tilec.compile(COPY, target="sm_80"))
        x = whole(9, 300, dtype=jnp.float32)
        np.testing.assert_array_equal(jax.jit(lambda x: same(x, Y=jnp.full(300, 7.0)))(x), x)
        self.assertIn("output_operand_alias", jax.jit(lambda x: same(x, Y=jnp.full(300, 7.0))).lower(x).as_text())

    def test_gradients(self) -> None:
        gemm = gemm_of()

        @jax.custom_vjp
        def product(a: jax.Array, b: jax.Array) -> jax.Array:
            return gemm(a, b)

        def backward(kept: tuple, g: jax.Array) -> tuple:
            a, b = kept
            g = g.astype(jnp.float16)
            return gemm(g, b.T).astype(a.dtype), gemm(a.T, g).astype(b.dtype)

        product.defvjp(lambda a, b: (gemm(a, b), (a, b)), backward)
        a, b = whole(10, 24, 16), whole(11, 16, 40)
        da, db = jax.jit(jax.grad(lambda a, b: product(a, b).sum(), argnums=(0, 1)))(a, b)
        ones = np.ones((24, 40), np.float32)
        np.testing.assert_array_equal(np.float32(da), ones @ np.float32(b).T)
        np.testing.assert_array_equal(np.float32(db), np.float32(a).T @ ones)
        with self.assertRaisesRegex(ValueError, "cannot be differentiated"):
            jax.grad(lambda a: gemm(a, b).sum())(a)

    def test_batches(self) -> None:
        kernel = tilec.compile(SUM, target="sm_80")
        x, y = whole(12, 3, 100, dtype=jnp.float32), whole(13, 100, dtype=jnp.float32)
        with self.assertRaisesRegex(NotImplementedError, "`plus` has no batched form"):
            jax.vmap(tilec.jax.call(kernel), (0, None))(x, y)
        with self.assertRaisesRegex(NotImplementedError, "vmap"):
            jax.vmap(jax.jit(tilec.jax.call(kernel)), (0, None))(x, y)
        each = jax.jit(jax.vmap(tilec.jax.call(kernel, vmap="sequential"), (0, None)))
        np.testing.assert_array_equal(each(x, y), np.asarray(x) + np.asarray(y))
        with self.assertRaisesRegex(ValueError, "sequential"):
            tilec.jax.call(kernel, vmap="expand_dims")

    def test_shapes_of_results(self) -> None:
        kernel = tilec.compile(SCALE, target="sm_80")
        x = whole(14, 5, 7, dtype=jnp.float32)
        for out in (jax.ShapeDtypeStruct((5, 7), jnp.float32), [jax.ShapeDtypeStruct((5, 7), jnp.float32)], {"Y": x}):
            np.testing.assert_array_equal(tilec.jax.call(kernel, out=out)(x), x)
        gemm = tilec.jax.call(tilec.compile(EXAMPLES / "gemm.tile", target="sm_80", BM=64, BN=64), out=jax.ShapeDtypeStruct((8, 16), jnp.float32))
        np.testing.assert_array_equal(gemm(jnp.ones((8, 24), jnp.float16), jnp.ones((24, 16), jnp.float16)), 24)

    def test_calls_on_several_threads(self) -> None:
        gemm = jax.jit(gemm_of())
        found = {}

        def work(seed: int) -> None:
            a, b = whole(seed, 16 + seed, 24), whole(seed + 50, 24, 40)
            found[seed] = np.array_equal(gemm(a, b), np.float32(a) @ np.float32(b))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, dict.fromkeys(range(6), True))


class Documents(unittest.TestCase):
    def test_snippets_run(self) -> None:
        text = (EXAMPLES.parent / "docs/python.md").read_text(encoding="utf-8")
        snippets = [s for s in re.findall(r"```python\n(.*?)```", text, re.S) if "import jax" in s]
        self.assertGreaterEqual(len(snippets), 2)
        for snippet in snippets:
            with self.subTest(snippet.splitlines()[3]):
                code = snippet.replace('"gemm.tile"', repr(str(EXAMPLES / "gemm.tile")))
                exec(compile(code, "docs/python.md", "exec"), {})  # noqa: S102 - our own document


class Refusals(unittest.TestCase):
    def test_arguments(self) -> None:
        scale = tilec.jax.call(tilec.compile(SCALE, target="sm_80"))
        x = jnp.ones((4, 4), jnp.float32)
        for error, text, what in (
            (TypeError, "`X` is missing", lambda: scale()),
            (TypeError, "`X` is given twice", lambda: scale(x, X=x)),
            (TypeError, "takes no `stream`", lambda: scale(x, stream=0)),
            (TypeError, "at most 2 arguments by position", lambda: scale(x, 1.0, 2.0)),
            (TypeError, "`a` is known only when the program runs", lambda: jax.jit(scale)(x, 2.0)),
            (tilec.LaunchError, "`X` must have elements f32; the array has float16", lambda: jax.jit(scale)(x.astype(jnp.float16))),
            (ValueError, "does not follow", lambda: scale(jnp.ones(4))),
            (tilec.LaunchError, r"must have shape \(M, N\) = \(4, 4\), by the shape of `X`; the array has \(4, 5\)", lambda: scale(x, Y=jnp.ones((4, 5)))),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                what()

    def test_kernels(self) -> None:
        kernel = tilec.compile(SCALE, target="sm_80")
        with self.assertRaisesRegex(ValueError, "writes no Z"):
            tilec.jax.call(kernel, results=["Z"])
        with self.assertRaisesRegex(ValueError, "Z is no result of `scale`, which writes Y"):
            tilec.jax.call(kernel, out={"Z": jnp.ones(3)})
        with self.assertRaisesRegex(ValueError, r"writes 1 tensors \(Y\), found 2"):
            tilec.jax.call(kernel, out=[jnp.ones(3)] * 2)
        double = tilec.jax.call(tilec.compile(SCALE, target="sm_80", T="f64"))
        with self.assertRaisesRegex(TypeError, "jax_enable_x64"):
            double(np.ones((3, 3)))

    def test_what_a_kernel_must_not_do_is_an_error_of_the_program(self) -> None:
        text = "kernel twice(X: gmem f32[N], Y: gmem f32[M]) grid (b: ceildiv(N, 32)) {\n    copy X[b * 32..+32] -> Y[0..]\n}\n"
        twice = jax.jit(tilec.jax.call(tilec.compile(text, target="sm_80"), out=jax.ShapeDtypeStruct((32,), jnp.float32)))
        with self.assertRaisesRegex(Exception, r"INVALID_ARGUMENT: error\[E0805\]: data race(.|\n)*<text>:2:5(.|\n)*\^\^\^"):
            twice(jnp.ones(64)).block_until_ready()

    def test_a_program_of_another_process_needs_the_kernel(self) -> None:
        attributes = {"tilec.kernel": "0" * 32, "tilec.operands": "X", "tilec.results": "Y"}
        tilec.jax.call(tilec.compile(SCALE, target="sm_80"))
        strange = jax.ffi.ffi_call("tilec", jax.ShapeDtypeStruct((3,), jnp.float32))
        with self.assertRaisesRegex(Exception, "NOT_FOUND: this process has no kernel 0{32}"):
            jax.block_until_ready(strange(jnp.ones(3), **attributes))


if __name__ == "__main__":
    unittest.main()
