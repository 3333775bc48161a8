"""Committed results under docs/results, and how a document shows them: where they were measured, numbers, tables."""

import csv
import math
import pathlib
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

Row = dict[str, str]

# Of a command, what says only where files of one machine lay.
LOCAL = ("--out", "--tilec", "--tag")
# More cases than these are left out of a command that is shown; the results have the whole one.
CASES_SHOWN = 2
# A list of sizes of more characters is cut.
LIST_SHOWN = 80
LIST_HEAD = 4


class TableError(Exception):
    """Results that a table needs are missing or not as they must be."""


@dataclass
class Results:
    """The folder of results; remembers which files were read."""

    folder: pathlib.Path
    used: set[str] = field(default_factory=set)

    def path(self, name: str) -> pathlib.Path:
        """A result file, which counts as used."""
        path = self.folder / name
        if not path.is_file():
            raise TableError(f"there is no {path}")
        self.used.add(name)
        return path

    def rows(self, name: str) -> list[Row]:
        """A CSV file; every row has a value for every column."""
        with self.path(name).open(newline="", encoding="utf-8") as file:
            found = list(csv.DictReader(file))
        for number, row in enumerate(found, 1):
            if None in row or None in row.values():
                raise TableError(f"{name}: row {number} has not as many fields as there are columns")
        if not found:
            raise TableError(f"{name}: there are no rows")
        return found

    def made(self, name: str) -> Row:
        """Machine, driver, date and command of a file: from its rows, or from sources.csv where these do not say it."""
        if name.endswith(".csv"):
            first = self.rows(name)[0]
            if first.get("machine"):
                return first
        for row in self.rows("sources.csv"):
            if row["file"] == name:
                return row
        raise TableError(f"{name} does not say what it was measured on, and sources.csv has no row for it")

    def origin(self, *names: str, link: str = "") -> str:
        """The lines in front of a table: machine, versions, date, files, and the command of the first file."""
        made = self.made(names[0])
        words = [made["machine"], f"driver {made['driver']}"]
        words += [f"{title} {made[key]}" for key, title in (("torch", "PyTorch"), ("cudnn", "cuDNN"), ("cublas", "cuBLAS")) if made.get(key)]
        words.append(made["date"][:10])
        files = link or ", ".join(f"[{pathlib.Path(name).name}](results/{name})" for name in names)
        return f"{', '.join(words)}; {files}:\n\n    {command(made['command'])}\n\n"


def command(text: str) -> str:
    """A command as it is shown: without the paths of the machine that it ran on, and with few of its cases."""
    words, kept, cases, cut = shlex.split(text), [], 0, False
    at = 0
    while at < len(words):
        word = words[at]
        if word.split("=", 1)[0] in LOCAL:
            at += 1 if "=" in word else 2
            continue
        if word == "--case":
            cases += 1
            if cases > CASES_SHOWN:
                cut, at = True, at + 2
                continue
        # Of a long list of sizes, the first.
        listed = word.split(",") if len(word) > LIST_SHOWN and "x" in word else []
        kept.append(",".join([*listed[:LIST_HEAD], ".."]) if len(listed) > LIST_HEAD else word)
        at += 1
    script = kept[0] if kept[0] == "tilec" or kept[0].startswith("scripts/") else f"scripts/{kept[0]}"
    shown = shlex.join([script, *kept[1:]])
    return shown + " .." if cut else shown


def number(text: str, digits: int = 0) -> str:
    """A number with so many digits behind the point; `-` where none was measured."""
    return f"{float(text):.{digits}f}" if text else "-"


def micro(us: float | str) -> str:
    """Microseconds with three significant digits or more."""
    us = float(us)
    return f"{us:.{2 if us < 10 else 1 if us < 1000 else 0}f}"


def ratio(text: str, least: float = 1.0, digits: int = 2) -> str:
    """A ratio, bold from `least` on."""
    shown = number(text, digits)
    return f"**{shown}**" if text and float(text) >= least else shown


def between(row: Row, key: str, digits: int = 2) -> str:
    """Least and greatest of the rounds."""
    return f"{number(row[f'{key}_min'], digits)}, {number(row[f'{key}_max'], digits)}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cells) + " |" for cells in rows]
    return "\n".join(lines) + "\n"


def mean(values: Iterable[float]) -> float:
    """Geometric mean."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def values(rows: Iterable[Row], key: str) -> list[float]:
    """The numbers of a column, of rows that have one."""
    return [float(row[key]) for row in rows if row[key]]


def case_of(row: Row) -> dict[str, str]:
    """`M=1,N=2` as names and values."""
    return dict(part.split("=") for part in row["case"].split(","))


def size(case: dict[str, str]) -> str:
    """M, N and K as sizes are written."""
    m, n, k = case["M"], case["N"], case["K"]
    return f"{m}³" if m == n == k else f"{m}x{n}x{k}"


def percentile(ordered: Sequence[float], share: float) -> float:
    """Of ordered values, interpolated."""
    at = share * (len(ordered) - 1)
    low, high = ordered[math.floor(at)], ordered[math.ceil(at)]
    return low + (high - low) * (at - math.floor(at))
