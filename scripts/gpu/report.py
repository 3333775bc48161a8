"""Raw results as CSV, the machine they were made on, and a short table."""

import csv
import datetime
import pathlib
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def machine(torch: Any) -> dict[str, str]:
    """What a figure must carry: the card, its driver, the libraries."""
    return {
        "machine": torch.cuda.get_device_name(),
        "driver": driver_version(),
        "torch": torch.__version__,
        "cudnn": str(torch.backends.cudnn.version()),
    }


def driver_version() -> str:
    """Version of the GPU's driver."""
    return _said(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])


def shown(path: str) -> str:
    """A path as results name it: from the root of the repository, for what lies in it."""
    root, whole = pathlib.Path(__file__).resolve().parent.parent.parent, pathlib.Path(path).resolve()
    return str(whole.relative_to(root)) if whole.is_relative_to(root) else path


def occasion(tag: str, tilec: str) -> dict[str, str]:
    """When, by which command and by which compiler."""
    command = shlex.join([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]])
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%MZ")
    return {"tag": tag, "date": now, "command": command, "tilec": _said([tilec, "--version"])}


def _said(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except OSError:
        return "?"
    return done.stdout.strip() or "?"


class Table:
    """A CSV file that is written row by row, so that a run that ends early leaves what it measured."""

    def __init__(self, path: pathlib.Path, columns: Sequence[str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("w", newline="")
        self.writer = csv.DictWriter(self.file, columns, restval="")
        self.writer.writeheader()

    def add(self, row: Mapping[str, Any]) -> None:
        self.writer.writerow({key: f"{value:.4f}" if isinstance(value, float) else value for key, value in row.items()})
        self.file.flush()


def text_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns of equal width, the first to the left."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths, strict=True))).rstrip() for line in lines)


def case_table(rows: Sequence[Mapping[str, Any]], figures: Mapping[str, tuple[str, int]], texts: Mapping[str, str] | None = None, *, first: str = "case", width: int = 80) -> str:
    """A table with a line a case: `figures` has (column, digits) by heading, `texts` columns of text, of which the first `width` characters are shown."""
    texts = texts or {"note": "note"}

    def line(row: Mapping[str, Any]) -> list[str]:
        numbers = [f"{row[key]:.{digits}f}" if isinstance(row.get(key), int | float) else "-" for key, digits in figures.values()]
        return [str(row["case"]), *numbers, *(str(row.get(key, ""))[:width] for key in texts.values())]

    return text_table([first, *figures, *texts], map(line, rows))
