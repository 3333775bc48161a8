"""The `tilec` command of the wheel: `python -m tilec`, which the script `tilec` does too."""

import importlib
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCALE = """kernel scale(X: gmem f32[N], Y: gmem f32[N], a: f32) grid (b: ceildiv(N, 1024)) {
    copy a * X[b * 1024..+1024] -> Y[b * 1024..]
}
"""


def tilec(*words: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "tilec", *map(str, words)], capture_output=True, text=True, timeout=120, check=False)


class Commands(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "scale.tile"
        self.path.write_text(SCALE, encoding="utf-8")

    def test_it_compiles_and_runs(self) -> None:
        ptx = self.path.with_suffix(".ptx")
        done = tilec(self.path, "--target", "sm_80", "-o", ptx)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(".target sm_80", ptx.read_text(encoding="utf-8"))
        done = tilec("run", self.path, "N=3000", "a=2.5", "--device", "sim", "--check")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"Y: 3000 elements.*ok")

    def test_the_status_is_that_of_the_command(self) -> None:
        self.path.write_text(SCALE.replace("a * X", "a * Z"), encoding="utf-8")
        done = tilec(self.path)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"scale\.tile:2:\d+")
        self.assertEqual(tilec("--no-such-option").returncode, 2)
        done = tilec("--version")
        self.assertEqual((done.returncode, done.stdout.split()[0]), (0, "tilec"))

    def test_the_script_is_the_same(self) -> None:
        project = (ROOT / "python/pyproject.toml").read_text(encoding="utf-8")
        module, function = re.search(r'\[project\.scripts\]\ntilec = "([\w.]+):(\w+)"', project).groups()
        self.assertTrue(callable(getattr(importlib.import_module(module), function)))


if __name__ == "__main__":
    unittest.main()
