#!/usr/bin/env python3
"""Writes the tables of the documents from the committed results in docs/results, or checks that they are there.

    scripts/performance_tables.py             # rewrites what differs
    scripts/performance_tables.py --check     # exits 1, with the difference, where a document does not say what the results say
    scripts/performance_tables.py --list      # the tables, and the document of each

A table stands between `<!-- table NAME -->` and `<!-- end -->` in README.md or a document under docs/. `scripts/gpu/tables.py` makes them.
Figures whose raw results are not in the tree stand between `<!-- by hand: MACHINE, YYYY-MM-DD -->` and `<!-- end -->`; in docs/performance.md no table stands elsewhere.
`--check` also fails on a result file that no document names.
"""

import argparse
import difflib
import os
import pathlib
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from gpu.results import Results, TableError  # noqa: E402
from gpu.tables import TABLES  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPEN = re.compile(r"<!-- (?:table (?P<table>[^>]+?)|by hand: (?P<hand>[^>]+?)) -->")
BY_HAND = re.compile(r".+, \d{4}-\d{2}-\d{2}")
END = "<!-- end -->"
# Here every table is of a block.
STRICT = "docs/performance.md"


@dataclass
class Outcome:
    """What was found in the documents."""

    written: dict[str, str]
    placed: dict[str, str]
    errors: list[str]


def documents(root: pathlib.Path) -> dict[str, str]:
    """README.md and every document under docs/, by path from the root."""
    paths = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    return {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in paths if path.is_file()}


def blocks(name: str, text: str, tables: Mapping[str, str], outcome: Outcome) -> Iterator[str]:
    """The lines of a document, with the tables as they should be."""
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        if not (found := OPEN.fullmatch(line)):
            if line == END:
                outcome.errors.append(f"{name}:{number}: an end without a beginning")
            elif name == STRICT and line.startswith("|---"):
                outcome.errors.append(f"{name}:{number}: a table outside of a block")
            yield line
            continue
        inside = []
        for _, other in lines:
            if other == END or OPEN.fullmatch(other):
                break
            inside.append(other)
        else:
            other = ""
        if other != END:
            outcome.errors.append(f"{name}:{number}: `{line}` has no `{END}`")
        yield line
        if table := found["table"]:
            if table not in tables:
                outcome.errors.append(f"{name}:{number}: there is no table `{table}`")
            elif table in outcome.placed:
                outcome.errors.append(f"{name}:{number}: table `{table}` also stands in {outcome.placed[table]}")
            outcome.placed.setdefault(table, name)
            inside = linked(tables.get(table, "\n".join(inside)), name).rstrip("\n").splitlines()
        elif not BY_HAND.fullmatch(found["hand"]):
            outcome.errors.append(f"{name}:{number}: figures by hand need a machine and a date, `<!-- by hand: H100, 2026-11-27 -->`")
        yield from inside
        yield END


def linked(text: str, name: str) -> str:
    """Links from docs/ as they are from another document."""
    up = os.path.relpath("docs", pathlib.PurePosixPath(name).parent)
    return text if up == "." else text.replace("](results/", f"]({up}/results/")


def survey(root: pathlib.Path) -> Outcome:
    """Reads results and documents; nothing is written."""
    results = Results(root / "docs/results")
    outcome = Outcome({}, {}, [])
    made: dict[str, str] = {}
    for name, function in TABLES.items():
        try:
            made[name] = function(results)
        except (TableError, KeyError, ValueError) as error:
            outcome.errors.append(f"table `{name}`: {error!r}" if not isinstance(error, TableError) else f"table `{name}`: {error}")
    texts = documents(root)
    for name, text in texts.items():
        now = "\n".join(blocks(name, text, made, outcome)) + "\n"
        if now != text:
            outcome.written[name] = now
    outcome.errors += [f"no document has table `{name}`" for name in TABLES if name not in outcome.placed]
    everything = "\n".join(texts.values())
    for path in sorted((root / "docs/results").rglob("*")):
        file = path.relative_to(root / "docs/results").as_posix()
        if path.is_file() and not file.endswith(".rounds.csv") and file not in results.used and path.name not in everything:
            outcome.errors.append(f"docs/results/{file} is of no table, and no document names it")
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a document differs")
    parser.add_argument("--list", action="store_true", help="the tables, and the document of each")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="the tree (default: this one)")
    options = parser.parse_args()
    outcome = survey(options.root)
    if options.list:
        for name in TABLES:
            print(f"{name:36} {outcome.placed.get(name, '-')}")
        return 0
    for name, text in outcome.written.items():
        path = options.root / name
        if options.check:
            before = path.read_text(encoding="utf-8").splitlines()
            print("\n".join(difflib.unified_diff(before, text.splitlines(), name, f"{name} by the results", lineterm="")))
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    for error in outcome.errors:
        print(f"error: {error}", file=sys.stderr)
    return 1 if outcome.errors or (options.check and outcome.written) else 0


if __name__ == "__main__":
    sys.exit(main())
