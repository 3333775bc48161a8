"""Bundles: kernels that were compiled before, on the simulator."""

import pathlib
import pickle
import struct
import tempfile
import unittest

import numpy as np

import tilec

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def bundle(kernels: "list[tilec.Kernel]") -> bytes:
    """A bundle as docs/bundle.md describes it."""
    payloads = sorted((kind, k.target, data) for k in kernels for kind, data in ((1, k._inner.contract_json.encode()), (2, k.ptx.encode())))
    table, body = b"", b""
    for kind, target, data in payloads:
        body += bytes(-len(body) % 8)
        table += struct.pack("<II16sQQ", kind, 0, target.encode(), 40 + 40 * len(payloads) + len(body), len(data))
        body += data
    checked, value = table + body, 0xCBF29CE484222325
    for byte in checked:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return struct.pack("<8sIIQQQ", b"TILECBDL", 1, len(payloads), value, 40 + len(checked), 0) + checked


class Bundles(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name) / "gemm.tilec"
        cls.kernels = [tilec.compile(EXAMPLES / "gemm.tile", target=t, BM=64, BN=64, variants=[{"ALIGN": 8}, {"ALIGN": 1}]) for t in ("sm_70", "sm_90a")]
        cls.path.write_bytes(bundle(cls.kernels))

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()

    def test_kernels_are_those_that_were_compiled(self) -> None:
        rng = np.random.default_rng(1)
        for target in ("sm_70", "sm_90a", None):
            gemm = tilec.load(self.path, target=target)
            self.assertEqual(gemm.target, target or "sm_90a")
            for n in (72, 73):
                a, b = rng.integers(-4, 5, (40, 24)).astype(np.float16), rng.integers(-4, 5, (24, n)).astype(np.float16)
                c = np.full((40, n), np.nan, np.float32)
                gemm(a, b, c, alpha=2.0)
                np.testing.assert_array_equal(c, 2 * (a.astype(np.float32) @ b.astype(np.float32)))
        self.assertEqual(gemm.ptx, self.kernels[1].ptx)
        self.assertEqual(gemm.contract, self.kernels[1].contract)
        self.assertEqual([p["name"] for p in gemm.parameters()], ["A", "B", "C", "alpha", "beta"])
        self.assertIn("gemm_launch(", gemm.c_header)
        self.assertEqual(gemm.warnings, "")

    def test_a_pickle_has_the_bundle(self) -> None:
        gemm = pickle.loads(pickle.dumps(tilec.load(self.path, target="sm_70")))
        self.assertEqual((gemm.name, gemm.target, gemm.ptx), ("gemm", "sm_70", self.kernels[0].ptx))

    def test_what_a_bundle_has_not(self) -> None:
        gemm = tilec.load(self.path, target="sm_70")
        with self.assertRaisesRegex(ValueError, "comes from a bundle, which has no source"):
            gemm.xray()
        with self.assertRaisesRegex(ValueError, "no report"):
            gemm.report
        with self.assertRaisesRegex(tilec.LaunchError, "--zero K"):
            gemm(np.ones((40, 0), np.float16), np.ones((0, 72), np.float16), np.ones((40, 72), np.float32))
        with self.assertRaisesRegex(ValueError, "no code for `sm_80`; the bundle has sm_70, sm_90a"):
            tilec.load(self.path, target="sm_80")
        with self.assertRaisesRegex(ValueError, "no kernel `other`"):
            tilec.load(self.path, kernel="other")

    def test_damage_is_said(self) -> None:
        data = bytearray(self.path.read_bytes())
        data[60] ^= 1
        damaged = self.path.with_name("damaged.tilec")
        damaged.write_bytes(data)
        with self.assertRaisesRegex(ValueError, "damaged.tilec: not a bundle: the checksum is wrong"):
            tilec.load(damaged)
        with self.assertRaises(FileNotFoundError):
            tilec.load("no_such.tilec")


if __name__ == "__main__":
    unittest.main()
