"""Parses every program of the repository with the grammar, and runs the queries: `check.py LIBRARY TILEC`.

LIBRARY is the grammar as a shared library, and TILEC the compiler, which says what is a program. `scripts/check_editors.sh` runs this.
"""

import ctypes
import json
import pathlib
import subprocess
import sys

from tree_sitter import Language, Node, Parser, Query, QueryCursor

ROOT = pathlib.Path(__file__).resolve().parents[3]
# Captures that each example must have.
EXPECTED = {"comment", "function", "keyword", "number", "operator", "punctuation.bracket", "type", "variable.parameter"}


def language(library: str) -> Language:
    """The grammar of a shared library."""
    symbol = ctypes.CDLL(library).tree_sitter_tile
    symbol.restype = ctypes.c_void_p
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype = ctypes.py_object
    capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return Language(capsule(symbol(), b"tree_sitter.Language", None))


def refused(tilec: str, files: list[str]) -> set[str]:
    """The files that are no programs."""
    done = subprocess.run([tilec, "fmt", "--check", "--error-format", "json", *files], cwd=ROOT, capture_output=True, text=True, check=False)
    said = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    return {line["file"] for line in said if line["severity"] == "error"}


def first_error(node: Node) -> Node:
    """The first node that is an error or missing."""
    for child in node.children:
        if child.has_error or child.is_missing:
            return first_error(child)
    return node


def main() -> int:
    library, tilec = sys.argv[1:]
    tile = language(library)
    parser = Parser(tile)
    query = Query(tile, (ROOT / "editors/tree-sitter/queries/highlights.scm").read_text(encoding="utf-8"))
    listed = subprocess.run(["git", "ls-files", "*.tile"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = listed.stdout.split()
    no_program = refused(tilec, files)
    wrong = []
    for name in files:
        if name in no_program:
            continue
        root = parser.parse((ROOT / name).read_bytes()).root_node
        if root.has_error:
            wrong.append(f"{name}:{first_error(root).start_point.row + 1}: the grammar does not read this")
        elif name.startswith("examples/") and (lacks := EXPECTED - QueryCursor(query).captures(root).keys()):
            wrong.append(f"{name}: nothing is captured as {', '.join(sorted(lacks))}")
    programs = len(files) - len(no_program)
    if programs < 800 or len(files) == programs:
        wrong.append(f"{programs} of {len(files)} files are programs: that cannot be")
    # What is wrong is seen.
    if not parser.parse(b"kernel k(A: gmem f32[M]) { copy A[0..] }").root_node.has_error:
        wrong.append("a copy to nowhere is accepted")
    print("\n".join(wrong), file=sys.stderr)
    print(f"editors/tree-sitter: {programs} programs read")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
