"""Random programs against NumPy; `TILEC_PROGRAMS=COUNT` and `TILEC_PROGRAMS_SEED=FIRST` have it run others."""

import os
import sys
import unittest
import warnings

import numpy as np

import tilec

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import programs  # noqa: E402 - beside this file

COUNT = int(os.environ.get("TILEC_PROGRAMS", "200"))
FIRST = int(os.environ.get("TILEC_PROGRAMS_SEED", "1"))
TARGETS = ("sm_70", "sm_80", "sm_90a")
# Beyond these, sums are not exact.
MOST = 1 << 20


class Programs(unittest.TestCase):
    def test_programs_compute_what_numpy_computes(self) -> None:
        warnings.simplefilter("ignore", tilec.CompileWarning)
        refused: "dict[str, int]" = {}
        for seed in range(FIRST, FIRST + COUNT):
            program = programs.Program(seed)
            tensors = program.tensors(seed)
            expected = program.expected(tensors)
            if np.abs(expected).max() > MOST:
                continue
            with self.subTest(seed=seed, sizes=program.sizes, text=program.text()):
                try:
                    kernel = tilec.compile(program.text(), target=TARGETS[seed % len(TARGETS)])
                except tilec.CompileError as error:
                    refused[str(error).splitlines()[0]] = seed
                    continue
                given = [t.astype(np.float16 if name in programs.HALF else np.float32) for name, t in tensors.items()]
                found = np.full(expected.shape, np.nan, np.float32)
                kernel(*given, found)
                np.testing.assert_array_equal(found, expected)
        # Some extents are refused by design; a test of nothing would pass.
        self.assertLess(len(refused), COUNT // 5, "\n".join(f"{seed}: {why}" for why, seed in refused.items()))
