"""Pages whose commands run, and the list of pages of the book; part of `python3 -m unittest gpu.tests`."""

import os
import pathlib
import re
import shutil
import sys
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SCRIPTS))

import docs_pages as script  # noqa: E402

TILEC = shutil.which(os.environ.get("TILEC", str(SCRIPTS.parent / "target/release/tilec")))


class Pages(unittest.TestCase):
    @unittest.skipUnless(TILEC, "skipped: scripts/gpu/pages_tests.py: there is no tilec")
    def test_pages_show_what_happens(self) -> None:
        self.assertEqual(script.check_all(script.pages(), str(pathlib.Path(str(TILEC)).resolve())), [])

    def test_lines_may_be_left_out(self) -> None:
        self.assertTrue(script.printed(["a", "...", "d"], ["a", "b", "c", "d"]))
        self.assertTrue(script.printed(["...", "d"], ["d"]))
        self.assertFalse(script.printed(["a", "d"], ["a", "b", "d"]))
        self.assertFalse(script.printed(["a"], ["a", "b"]))

    def test_commands(self) -> None:
        text = "```console\n$ tilec x --require 'no spills'\na\n$ tilec y\n```\n"
        found = [(c.line, c.words, c.shown) for c in script.commands(text)]
        self.assertEqual(found, [(2, ["tilec", "x", "--require", "no spills"], ["a"]), (4, ["tilec", "y"], [])])

    def test_every_pass_has_a_section(self) -> None:
        table = (script.ROOT / "passes/src/table.rs").read_text(encoding="utf-8")
        page = (script.ROOT / "docs/passes/README.md").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"^## (.*)$", page, re.MULTILINE), re.findall(r'PassInfo::new\(\s*"([\w-]+)"', table))
