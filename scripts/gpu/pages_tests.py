"""Pages whose commands run, and the list of pages of the book; part of `python3 -m unittest gpu.tests`."""

import ast
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from .links_tests import CODE, LINK

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SCRIPTS))

import book  # noqa: E402
import docs_pages as script  # noqa: E402
import sentences  # noqa: E402

TILEC = shutil.which(os.environ.get("TILEC", str(SCRIPTS.parent / "target/release/tilec")))



def starlark_calls(text: str) -> list[tuple[str, dict[str, object]]]:
    """The calls of a Bazel file that stand by themselves, with their named arguments. Such files are of the syntax that Starlark shares with Python."""
    found = []
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and isinstance(statement.value.func, ast.Name):
            found.append((statement.value.func.id, {str(k.arg): ast.literal_eval(k.value) for k in statement.value.keywords}))
    return found


class Pages(unittest.TestCase):
    @unittest.skipUnless(TILEC, "skipped: scripts/gpu/pages_tests.py: there is no tilec")
    def test_pages_show_what_happens(self) -> None:
        self.assertEqual(script.check_all(script.pages(), str(pathlib.Path(str(TILEC)).resolve())), [])

    @unittest.skipUnless(TILEC, "skipped: scripts/gpu/pages_tests.py: there is no tilec")
    def test_the_page_of_diagnostics_is_generated(self) -> None:
        self.assertEqual(script.check_diagnostics(str(pathlib.Path(str(TILEC)).resolve())), [])

    def test_lines_may_be_left_out(self) -> None:
        self.assertTrue(script.printed(["a", "...", "d"], ["a", "b", "c", "d"]))
        self.assertTrue(script.printed(["...", "d"], ["d"]))
        self.assertFalse(script.printed(["a", "d"], ["a", "b", "d"]))
        self.assertFalse(script.printed(["a"], ["a", "b"]))

    def test_commands(self) -> None:
        text = "```console\n$ tilec x --require 'no spills'\na\n$ tilec y\n```\n"
        found = [(c.line, c.words, c.shown) for c in script.commands(text)]
        self.assertEqual(found, [(2, ["tilec", "x", "--require", "no spills"], ["a"]), (4, ["tilec", "y"], [])])

    def test_commands_of_indented_blocks(self) -> None:
        text = "    tilec why a.tile sm_80 --not 'resident 2'  # why\n\n    tilec bench a.tile > a.json\n    tilec xray a.tile --measured a.json\ntilec a.tile\n"
        found = [(c.line, c.words) for c in script.plain_commands(text)]
        self.assertEqual(found, [(1, ["tilec", "why", "a.tile", "sm_80", "--not", "resident 2"])])

    def test_every_pass_has_a_page(self) -> None:
        names = re.findall(r'PassInfo::new\(\s*"([\w-]+)"', (script.ROOT / "passes/src/table.rs").read_text(encoding="utf-8"))
        listed = book.listed((script.ROOT / "docs/SUMMARY.md").read_text(encoding="utf-8"))
        self.assertEqual([page for page in listed if re.match(r"passes/(?!README)", page)], [f"passes/{name}.md" for name in names])
        architecture = (script.ROOT / "docs/architecture.md").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"^\| \[`[\w-]+`\]\((passes/[\w-]+\.md)\) \|", architecture, re.MULTILINE), [f"passes/{name}.md" for name in names])
        parts = ["Needs", "Decides", "Example", "Remarks", "Decide otherwise", "In the words of the tool", "See also"]
        for name in names:
            text = (script.ROOT / f"docs/passes/{name}.md").read_text(encoding="utf-8")
            self.assertEqual(re.findall(r"^##? (.*)$", script.BLOCK.sub("", text), re.MULTILINE), [name, *parts])
            shown = [block[1].split()[-1] for pattern in (script.DIFF, script.REMARKS) for block in pattern.finditer(text)]
            self.assertEqual(set(shown), {name})
            self.assertIn(f"$ tilec explain {name}\n", text)

    def test_the_book_has_every_page(self) -> None:
        pages = [page for page in book.pages() if page not in book.OUTSIDE]
        self.assertEqual(sorted(book.listed((script.ROOT / "docs/SUMMARY.md").read_text(encoding="utf-8"))), sorted(pages))

    def test_sentences_are_short(self) -> None:
        folders = [".", "docs", "docs/decisions", "docs/notes", "docs/passes", "docs/tutorial", "examples", "python"]
        # docs/diagnostics.md is written from the table of the codes, with lists of functions in it.
        pages = [path for folder in folders for path in (script.ROOT / folder).glob("*.md") if path.name != "diagnostics.md"]
        found = [f"{path.name}: {text}" for path in pages for _, text in sentences.long_sentences(path.read_text(encoding="utf-8"))]
        self.assertEqual(found, [])
        self.assertEqual(len(sentences.long_sentences("A b. " + "word " * 26 + "end.\n")), 1)
        # Neither a semicolon nor a colon ends one.
        half = "word " * 13
        self.assertEqual(len(sentences.long_sentences(f"A {half}; `b` {half}. C {half}: D {half}.\n")), 2)

    def test_changes_are_short(self) -> None:
        """A line of the changelog has at most 40 words: what is new for a user."""
        text = (script.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        found = []
        for line in re.findall(r"^\* (.*)$", text, re.MULTILINE):
            line = re.sub(r"`[^`]*`", "Code", re.sub(r"\]\([^)]*\)", "]", line))
            if len(re.findall(r"[\w.,/-]*\w", line)) > 40:
                found.append(line)
        self.assertEqual(found, [])

    def test_files_that_contributing_names_are_there(self) -> None:
        text = (script.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
        paths = re.findall(r"`([a-z][\w.-]*(?:/[\w.-]+)+/?)`", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))
        self.assertGreater(len(paths), 10)
        self.assertEqual([path for path in paths if not path.startswith("target/") and not (script.ROOT / path).exists()], [])

    def test_links_of_the_book_stay_inside(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            staged = pathlib.Path(folder) / "book"
            book.stage(staged)
            lost = []
            for path in staged.rglob("*.md"):
                for link in LINK.findall(CODE.sub("", path.read_text(encoding="utf-8"))):
                    file = link.partition("#")[0]
                    if file and not re.match(r"[a-z]+:", link) and not (path.parent / file).is_file():
                        lost.append(f"{path.relative_to(staged)}: {link}")
        self.assertEqual(lost, [])

    @unittest.skipUnless(TILEC and shutil.which("gcc"), "skipped: scripts/gpu/pages_tests.py: there is no gcc or tilec")
    def test_the_bazel_files(self) -> None:
        page = (script.ROOT / "docs/c.md").read_text(encoding="utf-8")
        module, build = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
        called = starlark_calls(module) + starlark_calls(build)
        rules = {arguments["name"]: arguments for _, arguments in called if "name" in arguments}
        self.assertEqual(sorted(rules), ["cuda", "gemm_header", "rules_cc", "tilec", "user"])
        version = re.findall(r'^version = "(.*)"$', (script.ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)[0]
        name = f"tilec-{version}-x86_64-linux"
        self.assertEqual((rules["tilec"]["strip_prefix"], rules["tilec"]["urls"][0].split("/")[-1]), (name, f"{name}.tar.xz"))
        rule = rules["gemm_header"]
        labels = {"@tilec//:tilec": str(pathlib.Path(str(TILEC)).resolve()), "gemm.tile": "gemm.tile"}
        self.assertEqual([rule["tools"], rule["srcs"], rule["outs"]], [["@tilec//:tilec"], ["gemm.tile"], ["gemm.h"]])
        self.assertEqual((rules["user"]["srcs"], rules["user"]["deps"]), (["main.c", ":gemm_header"], ["@cuda"]))
        command = re.sub(r"\$\(execpath (\S+)\)", lambda label: labels[label[1]], rule["cmd"]).replace("$@", "gemm.h")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            shutil.copy(script.ROOT / "examples/gemm.tile", path)
            (path / "main.c").write_text('#include "gemm.h"\nint main(void) { return gemm_kernels_kind(0); }\n', encoding="utf-8")
            subprocess.run(["bash", "-c", command], cwd=folder, check=True)
            subprocess.run(["gcc", "-fsyntax-only", "-Wall", "-Werror", "-I", str(script.ROOT / "tests/c"), "main.c"], cwd=folder, check=True)

    @unittest.skipUnless(TILEC and shutil.which("gcc"), "skipped: scripts/gpu/pages_tests.py: there is no gcc or tilec")
    def test_the_programs_in_c(self) -> None:
        page = (script.ROOT / "docs/c.md").read_text(encoding="utf-8")
        tilec = str(pathlib.Path(str(TILEC)).resolve())
        gcc = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-pedantic", "-I", str(script.ROOT / "tests/c"), "-I", "."]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            for kernel in ("rms_norm", "rms_norm_backward", "gemm", "paged_decode"):
                source = str(script.ROOT / f"examples/{kernel}.tile")
                subprocess.run([tilec, source, "--targets", "sm_80,sm_90a", "-o", f"{kernel}.h"], cwd=folder, check=True)
            subprocess.run([tilec, "bundle-header", "-o", "tilec_bundle.h"], cwd=folder, check=True)
            names = []
            for number, block in enumerate(re.findall(r"^```c\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)):
                named = re.match(r"/\* (\w+\.[ch]): ", block)
                names.append(named[1] if named else f"block{number}.c")
                (path / names[-1]).write_text(block, encoding="utf-8")
            self.assertLessEqual({"first.c", "scratch.c", "engine.c", "kernels.c"}, set(names))
            for name in names:
                if name.endswith(".c"):
                    subprocess.run([*gcc, "-c", name], cwd=folder, check=True)
            # The page says what the programs print: they run on the simulator.
            simulator = pathlib.Path(tilec).with_name("libtilec_libcuda.so")
            if not simulator.is_file():
                self.skipTest("skipped: scripts/gpu/pages_tests.py: there is no libtilec_libcuda.so beside tilec")
            if simulator.stat().st_mtime + 3600 < pathlib.Path(tilec).stat().st_mtime:
                self.skipTest("skipped: scripts/gpu/pages_tests.py: libtilec_libcuda.so is of an older build than tilec")
            shutil.copy(simulator, path / "libcuda.so.1")
            subprocess.run([*gcc, "first.o", "libcuda.so.1", "-o", "first"], cwd=folder, check=True)
            subprocess.run([*gcc, "engine.o", "-ldl", "-o", "engine"], cwd=folder, check=True)
            printed = []
            for program in ("./first", "./engine"):
                environment = {**os.environ, "LD_LIBRARY_PATH": folder}
                printed.append(subprocess.run([program], cwd=folder, check=True, capture_output=True, text=True, env=environment).stdout)
        self.assertIn(f"    {printed[0]}", page)
        self.assertTrue(printed[0].startswith("Y[0] = "))
        self.assertEqual(printed[1], "on the GPU\n")

    @unittest.skipUnless(TILEC and shutil.which("g++"), "skipped: scripts/gpu/pages_tests.py: there is no g++ or tilec")
    def test_the_host_in_cpp(self) -> None:
        page = (script.ROOT / "docs/other-languages.md").read_text(encoding="utf-8")
        tilec = str(pathlib.Path(str(TILEC)).resolve())
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "copy.cpp").write_text(re.findall(r"^```cpp\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[0], encoding="utf-8")
            shutil.copy(script.ROOT / "tests/c/copy_driver.c", path / "driver.c")
            for words in (
                [tilec, str(script.ROOT / "docs/tutorial/copy.tile"), "-o", "copy.ptx"],
                [tilec, str(script.ROOT / "docs/tutorial/copy.tile"), "-o", "copy.json"],
                ["gcc", "-c", "driver.c"],
                ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "copy.cpp", "driver.o", "-o", "copy"],
            ):
                subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True)
            done = subprocess.run(["./copy"], cwd=folder, check=True, capture_output=True, text=True)
            contract = json.loads((path / "copy.json").read_text(encoding="utf-8"))
        self.assertEqual(done.stdout, "2 1 1, 128 1 1, 0\nequal\n")
        self.assertEqual(contract["block"], [128, 1, 1])
        self.assertEqual(contract["grid"], ["ceildiv(M, 32)", "ceildiv(N, 64)", "1"])
        self.assertEqual([p["name"] for p in contract["params"]], ["A", "B", "M", "N", "A_ld", "B_ld"])
        # The programs of the page check these, all of them.
        self.assertEqual(
            contract["requires"],
            [
                "A_ld % 4 == 0",
                "N % 4 == 0",
                "B_ld % 4 == 0",
                "M >= 1 && M <= 2147418112",
                "N >= 1 && N <= 2147418112",
                "A_ld >= 0 && A_ld <= 1099511627776",
                "B_ld >= 0 && B_ld <= 1099511627776",
                "ceildiv(M, 32) <= 2147483647",
                "ceildiv(N, 64) <= 65535",
                "B_ld >= N || M == 1",
            ],
        )
