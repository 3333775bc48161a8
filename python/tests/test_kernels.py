"""What a kernel is to Python: several threads, copies, pickles, signals."""

import copy
import pathlib
import pickle
import signal
import threading
import time
import unittest

import numpy as np

import tilec

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
SCALE = """kernel scale<T: f32 | i32 = f32>(X: gmem T[M, N], Y: gmem T[M, N], a: T) grid (i: ceildiv(M, 16), j: ceildiv(N, 64)) {
    copy a * X[i * 16..+16, j * 64..+64] -> Y[i * 16.., j * 64..]
}
"""
SLOW = """kernel slow(X: gmem f32[N], Y: gmem f32[N], n: i32) grid (i: ceildiv(N, 128)) {
    var x = reg f32[128]
    copy X[i * 128..] -> x
    for k in 0..n { x = x * 0.5 + 1.0 }
    copy x -> Y[i * 128..]
}
"""


class Threads(unittest.TestCase):
    def test_several_threads_call_one_kernel(self) -> None:
        scale = tilec.compile(SCALE, target="sm_80")
        wrong: "list[str]" = []

        def calls(rows: int) -> None:
            x = np.arange(rows * 70, dtype=np.float32).reshape(rows, 70)
            for i in range(5):
                y = np.full_like(x, np.nan)
                try:
                    scale(x, y, float(i))
                    np.testing.assert_array_equal(y, x * np.float32(i))
                except Exception as error:  # noqa: BLE001 - a thread hands it on
                    wrong.append(repr(error))

        threads = [threading.Thread(target=calls, args=(3 + i % 2,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_properties_are_read_during_a_launch(self) -> None:
        slow = tilec.compile(SLOW, target="sm_80")
        x = np.zeros(128 * 64, np.float32)
        begun, enough = threading.Event(), threading.Event()
        wrong: "list[str]" = []

        def launches() -> None:
            y = x.copy()
            try:
                while not enough.is_set():
                    begun.set()
                    slow(x, y, 2000)
            except Exception as error:  # noqa: BLE001 - a thread hands it on
                wrong.append(repr(error))

        thread = threading.Thread(target=launches)
        thread.start()
        begun.wait()
        # Launches follow one another, so nearly all of these are during one.
        for _ in range(50):
            self.assertIn(".target sm_80", slow.ptx)
            self.assertEqual((slow.name, slow.target, slow.contract["entry"]), ("slow", "sm_80", "slow"))
            time.sleep(0.002)
        enough.set()
        thread.join()
        self.assertEqual(wrong, [])

    def test_an_array_may_call_the_kernel(self) -> None:
        """Its arguments are read by code of Python, which may do anything."""
        scale = tilec.compile(SCALE, target="sm_80")
        x, y = np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32)

        class Caller:
            @property
            def __array_interface__(self) -> dict:
                scale(x, np.zeros_like(x), 1.0)
                return x.__array_interface__

        scale(Caller(), y, 3.0)
        np.testing.assert_array_equal(y, 3)


class Copies(unittest.TestCase):
    def setUp(self) -> None:
        self.x = np.arange(6, dtype=np.int32).reshape(2, 3)

    def check(self, kernel: tilec.Kernel, target: str) -> None:
        self.assertEqual(kernel.target, target)
        y = np.zeros_like(self.x)
        kernel(self.x, y, 7)
        np.testing.assert_array_equal(y, 7 * self.x)

    def test_a_copy_is_the_kernel(self) -> None:
        scale = tilec.compile(SCALE, target="sm_70", T="i32")
        self.assertIs(copy.copy(scale), scale)
        self.assertIs(copy.deepcopy({"k": [scale]})["k"][0], scale)

    def test_a_pickle_is_compiled_again(self) -> None:
        scale = tilec.compile(SCALE, target="sm_70", T="i32", name="scale.tile")
        again = pickle.loads(pickle.dumps(scale))
        self.assertEqual(again.ptx, scale.ptx)
        self.check(again, "sm_70")
        self.check(pickle.loads(pickle.dumps(again)), "sm_70")

    def test_a_pickle_of_one_of_several(self) -> None:
        reduce = tilec.compile(EXAMPLES / "gemm_splitk.tile", target="sm_80", kernel="reduce")
        self.assertEqual(pickle.loads(pickle.dumps(reduce)).name, "reduce")


TWO = """kernel two<A = 1, B = 1>(X: gmem f32[M, N], Y: gmem f32[M, N]) where M % A == 0, N % B == 0
    grid (m: M, n: ceildiv(N, 128)) {
    copy X[m, n * 128..+128] -> Y[m, n * 128..]
}
"""


class Words(unittest.TestCase):
    def test_ways_out_are_arguments(self) -> None:
        said = "give one with the keyword argument `B=...`, or a default in the source"
        with self.assertRaises(tilec.CompileError) as refused:
            tilec.compile(TWO.replace("B = 1", "B: int"), target="sm_80")
        self.assertIn(said, str(refused.exception))
        with self.assertRaises(tilec.CompileError) as refused:
            tilec.compile(TWO, target="sm_80", sizes={"M": 3, "N": 4}, A=2)
        self.assertIn('`sizes={"M": 3, "N": 4}`: `M % 2 == 0` does not hold', str(refused.exception))
        self.assertIn('`variants=[{"A": 2}, {"A": 1}]`', str(refused.exception))

    def test_a_misspelt_argument_comes_before_the_missing_device(self) -> None:
        with self.assertRaises(tilec.CompileError) as refused:
            tilec.compile(TWO, targets="sm_80")
        self.assertIn("no compile-time parameter `targets`", str(refused.exception))
        self.assertIn("did you mean the argument `target=`?", str(refused.exception))
        with self.assertRaises(tilec.CompileError) as refused:
            tilec.compile(TWO.replace("<A = 1, B = 1>", "").replace("M % A == 0, N % B == 0", "M > 0"), variant=[])
        self.assertIn("did you mean the argument `variants=`?", str(refused.exception))

    def test_a_misspelt_keyword_comes_before_the_missing_argument(self) -> None:
        scale = tilec.compile(SCALE, target="sm_80")
        x = np.ones((2, 2), np.float32)
        with self.assertRaisesRegex(TypeError, "^`scale` takes no `factor`; it takes X, Y, a, and the sizes and strides "):
            scale(x, np.zeros_like(x), factor=2.0)


class Variants(unittest.TestCase):
    def test_the_nearest_is_named_by_its_parameters(self) -> None:
        two = tilec.compile(TWO, target="sm_80", variants=[{"A": 8}, {"A": 3, "B": 5}])
        x = np.ones((4, 4), np.float32)
        with self.assertRaisesRegex(tilec.LaunchError, "^no variant fits; `A=8` came nearest: `M % 8 == 0` does not hold: M = 4$"):
            two(x, np.zeros_like(x))


class Active(unittest.TestCase):
    """How many clusters run at one time: the size `S` of the gradients of norms."""

    def setUp(self) -> None:
        self.source = (EXAMPLES / "rms_norm_backward.tile").read_text()
        rng = np.random.default_rng(0)
        self.arrays = [rng.standard_normal((9, 52), np.float32) for _ in range(2)] + [np.ones(52, np.float32)]
        self.results = {"dX": np.zeros((9, 52), np.float32), "dW": np.zeros(52, np.float32)}

    def test_a_multiprocessor_has_one_block(self) -> None:
        gradients = tilec.compile(self.source, target="sm_80", BN=128)
        active = gradients.max_active_clusters(*self.arrays, **self.results)
        self.assertEqual(active, 4)
        for size in (0, 1, 64):
            self.assertEqual(gradients.max_active_clusters(*self.arrays, **self.results, S=size), active)
        gradients(*self.arrays, **self.results, S=1)
        alone = self.results["dW"].copy()
        gradients(*self.arrays, **self.results, S=active)
        np.testing.assert_allclose(self.results["dW"], alone, rtol=1e-5, atol=1e-5)

    def test_a_cluster_is_one_of_them(self) -> None:
        clusters = self.source.replace("    grid (s: S)\n", "    grid (s: S)\n    schedule { ctas 2 }\n", 1)
        gradients = tilec.compile(clusters, target="sm_90a", BN=128)
        self.assertEqual(gradients.max_active_clusters(*self.arrays, **self.results), 2)

    def test_what_fits_no_variant_is_refused(self) -> None:
        gradients = tilec.compile(self.source, target="sm_80", BN=32)
        with self.assertRaisesRegex(tilec.LaunchError, "`N <= 32` does not hold: N = 52"):
            gradients.max_active_clusters(*self.arrays, **self.results)
        with self.assertRaisesRegex(TypeError, "`W` is missing"):
            gradients.max_active_clusters(*self.arrays[:2])


class Signals(unittest.TestCase):
    def test_a_signal_ends_a_simulation(self) -> None:
        slow = tilec.compile(SLOW, target="sm_80")
        x, y = np.zeros(128 * 1024, np.float32), np.zeros(128 * 1024, np.float32)

        def raised(*_: object) -> None:
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, raised)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            start = time.monotonic()
            with self.assertRaises(KeyboardInterrupt):
                slow(x, y, 1_000_000)
            self.assertLess(time.monotonic() - start, 10)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        self.assertFalse(y.any(), "nothing is written")
        slow(x[:128], y[:128], 1)
        self.assertTrue((y[:128] == 1).all())


if __name__ == "__main__":
    unittest.main()
