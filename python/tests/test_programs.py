"""Random programs against NumPy; `TILEC_PROGRAMS=COUNT` and `TILEC_PROGRAMS_SEED=FIRST` have it run others."""

import os
import sys
import unittest
import warnings

import numpy as np

import tilec

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import elements  # noqa: E402 - beside this file
import programs  # noqa: E402
import typed_programs  # noqa: E402

COUNT = int(os.environ.get("TILEC_PROGRAMS", "200"))
FIRST = int(os.environ.get("TILEC_PROGRAMS_SEED", "1"))
TARGETS = ("sm_70", "sm_75", "sm_80", "sm_90", "sm_90a")
# Beyond these, sums are not exact.
MOST = 1 << 20


class Programs(unittest.TestCase):
    def setUp(self) -> None:
        warnings.simplefilter("ignore", tilec.CompileWarning)
        self.refused: "dict[str, int]" = {}

    def compiled(self, seed: int, text: str) -> "tilec.Kernel | None":
        try:
            return tilec.compile(text, target=TARGETS[seed % len(TARGETS)])
        except tilec.CompileError as error:
            why = next((line for line in str(error).splitlines() if line.startswith("error")), str(error))
            self.refused[why] = seed
            return None

    def tearDown(self) -> None:
        # Some extents are refused by design; a test of nothing would pass.
        self.assertLess(len(self.refused), COUNT // 5, "\n".join(f"{seed}: {why}" for why, seed in self.refused.items()))

    def test_programs_compute_what_numpy_computes(self) -> None:
        for seed in range(FIRST, FIRST + COUNT):
            program = programs.Program(seed)
            tensors = program.tensors(seed)
            expected = program.expected(tensors)
            if np.abs(expected).max() > MOST:
                continue
            with self.subTest(seed=seed, sizes=program.sizes, text=program.text()):
                kernel = self.compiled(seed, program.text())
                if kernel is None:
                    continue
                given = [t.astype(np.float16 if name in programs.HALF else np.float32) for name, t in tensors.items()]
                found = np.full(expected.shape, np.nan, np.float32)
                kernel(*given, found)
                np.testing.assert_array_equal(found, expected)

    def test_programs_of_every_type_compute_what_numpy_computes(self) -> None:
        for seed in range(FIRST, FIRST + COUNT):
            program = typed_programs.Program(seed)
            try:
                expected = program.expected()
            except elements.Inexact:
                continue
            with self.subTest(seed=seed, sizes=program.sizes, text=program.text()):
                kernel = self.compiled(seed, program.text())
                if kernel is None:
                    continue
                given = program.arguments()
                kernel(**given)
                found = program.found(given)
                for name, numbers in expected.items():
                    np.testing.assert_array_equal(found[name], numbers, err_msg=name)
