"""Tests of scripts/performance_tables.py; part of `python3 -m unittest gpu.tests`."""

import contextlib
import csv
import io
import pathlib
import re
import shutil
import sys
import tempfile
import unittest
from unittest import mock

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SCRIPTS))

import performance_tables as script  # noqa: E402

from . import results  # noqa: E402


class Tables(unittest.TestCase):
    """A copy of the documents and results; each test breaks one thing."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        shutil.copy(script.ROOT / "README.md", self.root)
        shutil.copytree(script.ROOT / "docs", self.root / "docs")
        self.document = self.root / "docs/performance.md"

    def run_script(self, *words: str) -> tuple[int, str]:
        """Status, and all that it said."""
        said = io.StringIO()
        with mock.patch.object(sys, "argv", ["performance_tables.py", "--root", str(self.root), *words]):
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                status = script.main()
        return status, said.getvalue()

    def change(self, before: str, after: str, path: pathlib.Path | None = None) -> None:
        path = path or self.document
        text = path.read_text(encoding="utf-8")
        self.assertIn(before, text)
        path.write_text(text.replace(before, after, 1), encoding="utf-8")

    def test_the_documents_say_what_the_results_say(self) -> None:
        self.assertEqual(self.run_script("--check"), (0, ""))

    def test_a_figure_that_was_changed(self) -> None:
        line = re.search(r"\| 512³ \| \d\.\d\d \|", self.document.read_text(encoding="utf-8"))
        assert line
        self.change(line[0], "| 512³ | 9.99 |")
        status, said = self.run_script("--check")
        self.assertEqual(status, 1)
        self.assertIn("-| 512³ | 9.99 |", said)
        self.assertIn(f"+{line[0]}", said)
        self.assertEqual(self.run_script()[0], 0)
        self.assertEqual(self.run_script("--check"), (0, ""))

    def test_new_results(self) -> None:
        path = self.root / "docs/results/h200/conv2d_resnet50.csv"
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        rows[0]["ratio"] = "0.1234"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        status, said = self.run_script("--check")
        self.assertEqual(status, 1)
        # The table itself, and the headlines of two documents.
        self.assertIn("0.123", said)
        self.assertIn("README.md by the results", said)

    def test_rows_that_were_cut(self) -> None:
        path = self.root / "docs/results/h200/conv2d_unet.csv"
        lines = path.read_text(encoding="utf-8").splitlines()
        path.write_text("\n".join([lines[0], lines[1].split(",", 3)[3]]) + "\n", encoding="utf-8")
        status, said = self.run_script("--check")
        self.assertEqual(status, 1)
        self.assertIn("conv2d_unet.csv: row 1 has not as many fields", said)

    def test_blocks(self) -> None:
        for before, after, complaint in (
            ("<!-- table sweep -->", "<!-- table swept -->", "there is no table `swept`"),
            ("<!-- table sweep -->", "", "an end without a beginning"),
            ("<!-- table sweep -->", "<!-- table summary -->", "table `summary` also stands in docs/performance.md"),
            ("<!-- end -->\n\nGaps: few tiles", "\nGaps: few tiles", "has no `<!-- end -->`"),
            ("## Products\n", "## Products\n\n| a |\n|---|\n| 1 |\n", "a table outside of a block"),
            ("## Products\n", "## Products\n\n<!-- by hand: H200 -->\n<!-- end -->\n", "need a machine and a date"),
        ):
            with self.subTest(complaint):
                text = self.document.read_text(encoding="utf-8")
                self.change(before, after)
                status, said = self.run_script("--check")
                self.assertEqual(status, 1)
                self.assertIn(complaint, said)
                self.document.write_text(text, encoding="utf-8")

    def test_results_that_no_document_names(self) -> None:
        (self.root / "docs/results/h100/of_nothing.csv").write_text("a\n1\n", encoding="utf-8")
        status, said = self.run_script("--check")
        self.assertEqual(status, 1)
        self.assertIn("h100/of_nothing.csv is of no table", said)

    def test_commands(self) -> None:
        text = "gpu_x.py --out /somewhere/r --tilec target/tilec --case A=1 --case A=2 --case A=3 --define 'T={T}'"
        self.assertEqual(results.command(text), "scripts/gpu_x.py --case A=1 --case A=2 --define 'T={T}' ..")
        self.assertEqual(results.command("tilec bench x.tile M=1"), "tilec bench x.tile M=1")

    def test_numbers(self) -> None:
        self.assertEqual([results.micro(x) for x in (3.456, 34.56, 345.6, 3456.0)], ["3.46", "34.6", "345.6", "3456"])
        self.assertEqual([results.ratio(x) for x in ("1.004", "0.994", "")], ["**1.00**", "0.99", "-"])
        self.assertAlmostEqual(results.mean([2.0, 8.0]), 4.0)
        self.assertAlmostEqual(results.percentile([0.0, 1.0, 2.0], 0.25), 0.5)
