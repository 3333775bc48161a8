"""The parent's side of a script that measures cases in a child process: asks for each, and keeps rows and rounds as CSV files."""

import pathlib
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from . import supervise
from .report import Table, occasion, shown

Case = dict[str, Any]


@dataclass(frozen=True)
class Parts:
    """What tells one script from another."""

    title: str
    cases: Callable[[], Iterable[Case]]
    # Compiles all cases, and assembles them where there is ptxas. Returns the exit status.
    dry: Callable[[], int]
    # Made in the child, where there is a GPU: what measures a case.
    work: Callable[[], Callable[[Case], Case]]
    # The row of a case and its answer.
    row_of: Callable[[Case, Case], Case]
    # The table for the end of the output.
    table: Callable[[list[Case]], str]


def measured(script: str, options: Namespace, cases: Iterable[Case], columns: Sequence[str], row_of: Callable[[Case, Case], Case]) -> tuple[list[Case], dict[str, str]]:
    """The rows of all cases, as `row_of` makes them of a case and its answer, and what all have in common: machine, versions, date.

    `options` has what every such script takes: out, tag, tilec, file, type, limit, seconds. Ends the script where there is no GPU.
    """
    command = [sys.executable, script, *sys.argv[1:], "--child"]
    table = Table(pathlib.Path(f"{options.out}.csv"), columns)
    rounds = Table(pathlib.Path(f"{options.out}.rounds.csv"), ["tag", "case", "round", "contestant", "us"])
    common: dict[str, str] = {**occasion(options.tag, options.tilec), "file": shown(options.file), "type": options.type}
    rows: list[Case] = []
    for case, answer in supervise.run_cases(command, [{"hello": True}, *cases], options.limit, options.seconds):
        if case.get("hello"):
            if "error" in answer:
                sys.exit(f"no GPU to measure on: {answer['error']}")
            common |= answer
            continue
        row = row_of(case, answer)
        table.add({**common, **row})
        rows.append(row)
        for name, times in answer.get("times", {}).items():
            for i, us in enumerate(times):
                rounds.add({"tag": options.tag, "case": case["case"], "round": i, "contestant": name, "us": us})
    return rows, common


def machine_of(common: dict[str, str]) -> str:
    """The line over a table: the machine, and the versions of what ran on it."""
    return f"{common.get('machine')}, driver {common.get('driver')}, torch {common.get('torch')}, cuDNN {common.get('cudnn')}, {common['date']}"


def status(rows: Iterable[Case]) -> int:
    """The exit status: 1 if a result was wrong."""
    return int(any("WRONG" in str(row.get("note")) for row in rows))


def run(script: str, options: Namespace, columns: Sequence[str], parts: Parts) -> int:
    """The whole of such a script: a dry run, the child's work, or the measurement with its table at the end. Returns the exit status.

    `options` has, beside what `measured` asks for, dry and child.
    """
    if options.dry:
        return parts.dry()
    if options.child:
        return supervise.answer_cases(parts.work())
    rows, common = measured(script, options, parts.cases(), columns, parts.row_of)
    print(f"{parts.title}: {machine_of(common)}")
    print(parts.table(rows))
    return status(rows)
