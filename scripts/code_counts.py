#!/usr/bin/env python3
"""Machine code of products, counted: the main loop of one warp, registers and spills, as `tilec --emit report` has them.

    scripts/code_counts.py sm_80 --tilec target/release/tilec --out docs/results/code/gemm_sm80.csv
    scripts/code_counts.py sm_70 --tilec target/release/tilec --out docs/results/code/gemm_sm70.csv
    scripts/code_counts.py ladder --tilec target/release/tilec --out docs/results/code/ladder_sm70.csv

The assemblers are those of `scripts/fetch_tools.sh`, so that counts compare from machine to machine.
"""

import argparse
import csv
import datetime
import itertools
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = "examples/gemm.tile"
# An iteration of K = 32 of a warp with 64x64 sums.
TILE = {"BK": "32", "WM": "64", "WN": "64", "KW": "1", "RASTER": "8"}
TILES = {"sm_80": [("128", "128", "4"), ("256", "128", "3")], "sm_70": [("128", "128", "2")]}
ORDERS = ("row", "col")
# Passes that are switched off, and what the others do.
STEPS = (
    ("none", ("all",)),
    ("`select-mma`, `assign-layouts` (tiled)", ("vectorize", "swizzle", "pipeline", "predicate", "schedule")),
    ("and `vectorize`", ("swizzle", "pipeline", "predicate", "schedule")),
    ("and `swizzle`", ("pipeline", "predicate", "schedule")),
    ("and `pipeline`", ("residue", "predicate", "schedule")),
    ("and `residue`, `predicate`", ("schedule",)),
    ("and `schedule` (all)", ()),
)
WIDTHS = ("ldg", "sts", "lds", "ldgsts")


@dataclass
class Case:
    """A compilation: what its row says of it, and its options."""

    labels: dict[str, str]
    defines: dict[str, str]
    disabled: tuple[str, ...] = ()


def cases(kind: str) -> Iterator[Case]:
    """The rows of a file, in order."""
    if kind == "ladder":
        (rows, cols, stages) = TILES["sm_70"][0]
        for passes, disabled in STEPS:
            yield Case({"passes": passes}, {**TILE, "BM": rows, "BN": cols, "STAGES": stages}, disabled)
        return
    for (rows, cols, stages), sums, a, b in itertools.product(TILES[kind], ("f32", "f16"), ORDERS, ORDERS):
        labels = {"tile": f"{rows}x{cols}x32", "stages": stages, "sums": sums, "a": a, "b": b}
        yield Case(labels, {**TILE, "BM": rows, "BN": cols, "STAGES": stages, "Acc": sums, "LA": a, "LB": b})


def assembler(target: str) -> dict[str, str]:
    """The environment with the pinned assembler of a target."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(pathlib.Path.home() / ".cache")
    tools = pathlib.Path(os.environ.get("TILEC_TOOLS") or f"{cache}/tilec/tools")
    old = target == "sm_70"
    return {**os.environ, "TILEC_PTXAS": str(tools / f"ptxas-{'12.9' if old else '13'}/ptxas"), "TILEC_NVDISASM": str(tools / f"nvdisasm-{'12' if old else '13'}/nvdisasm")}


def counted(tilec: str, target: str, case: Case) -> dict[str, str]:
    """What the report of a compilation counts."""
    defines = ",".join(f"{name}={value}" for name, value in case.defines.items())
    command = [tilec, PROGRAM, "--target", target, "-D", defines, "--emit", "report", "-o", "-"]
    for name in case.disabled:
        command += ["--disable-pass", name]
    done = subprocess.run(command, cwd=ROOT, env=assembler(target), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    kernel = json.loads(done.stdout)["kernels"][0]
    code = kernel.get("assembler")
    if code is None:
        raise SystemExit("no assembler was found: scripts/fetch_tools.sh brings it")
    loop = code["main_loop"]
    spills = code["spill_store_bytes"] + code["spill_load_bytes"]
    of_loop = [access for access in kernel["shared"] if access["in_loop"]]
    copied = [copy["global_bytes"] for copy in kernel["copies"] if copy["in_loop"] and copy["global_bytes"]]
    return {
        "atom": kernel["mma"][0]["atom"], "instructions": loop["total"], "mma": loop["mma_ptx"], "ldsm": loop["ldsm"], "bar": loop["bar"],
        **{name: loop[name]["b128"] for name in WIDTHS}, "registers": code["registers"], "spilled": spills,
        "global_bytes": min(copied, default=0), "shared_bytes": min((access["bytes"] for access in of_loop), default=0),
        "conflicts": max((access["conflicts"] for access in of_loop), default=0), "barriers": kernel["barriers_in_loop"], "slots": kernel["stages"],
        "assembler": code["version"],
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=["sm_80", "sm_70", "ladder"])
    parser.add_argument("--tilec", default=str(ROOT / "target/release/tilec"))
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    subprocess.run([ROOT / "scripts/fetch_tools.sh"], check=True, stdout=subprocess.DEVNULL)
    target = "sm_70" if args.kind == "ladder" else args.kind
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    rows = []
    for case in cases(args.kind):
        found = counted(os.path.abspath(args.tilec), target, case)
        rows.append({**case.labels, **found, "target": target, "date": date, "command": f"scripts/code_counts.py {args.kind}"})
    with open(args.out, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
