#!/usr/bin/env python3
"""Bytes and sectors of memory-bound examples: what the simulator counts against what Nsight Compute reads.

    scripts/ncu_examples.py --tilec target/release/tilec --out counters.csv
    scripts/ncu_examples.py --dry            # without a GPU: the simulator's counts alone

Each program runs once on the simulator (`tilec run --counters=json --sim-align 256`) and once under `ncu --clock-control none`.
`requests` are warp instructions that access global memory, `sectors` the 32-byte sectors that these touch, `bytes` what threads ask
for. Where lanes of a warp load one address, the profiler counts its bytes once and the simulator once for each lane: `one address` is
then the difference, and must be fewer bytes. `dram` is what the memory sends and gets (not compared: caches decide).
Exit status 1 if a count differs.
"""

import argparse
import csv
import io
import json
import pathlib
import subprocess
import sys
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from gpu.report import Table, driver_version, occasion, text_table  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The kernel, its sizes, and what is bound of its compile-time parameters.
PROGRAMS: list[tuple[str, list[str], list[str]]] = [
    ("softmax_rows", ["M=64", "N=4096"], ["T=bf16", "BN=4096", "ALIGN=8"]),
    ("rms_norm", ["M=64", "N=4096"], ["T=bf16", "BN=4096", "ALIGN=8"]),
    ("layer_norm", ["M=63", "N=2048"], ["BN=2048"]),
    ("cross_entropy", ["M=65", "N=1000"], ["T=f16"]),
    ("rotary", ["L=50", "H=8"], ["T=f16"]),
    ("adam", ["N=100000"], []),
    ("dropout", ["M=100", "N=1000"], []),
    ("stencil", ["M=129", "N=771", "rate=0.25"], []),
]
KINDS = ["ld", "st", "ldgsts", "red"]
METRICS = {
    "requests": [f"l1tex__t_requests_pipe_lsu_mem_global_op_{k}.sum" for k in KINDS],
    "sectors": [f"l1tex__t_sectors_pipe_lsu_mem_global_op_{k}.sum" for k in KINDS],
    "bytes": ["smsp__sass_data_bytes_mem_global_op_ld.sum", "smsp__sass_data_bytes_mem_global_op_st.sum"],
    "dram": ["dram__bytes_read.sum", "dram__bytes_write.sum"],
}
COLUMNS = [
    "tag", "kernel", "sizes", *(f"{c}_{s}" for c in ("requests", "sectors", "bytes") for s in ("simulator", "gpu")), "one_address", "dram", "differs",
    "registers", "machine", "driver", "date", "tilec", "command",
]  # fmt: skip


def arguments(file: pathlib.Path, sizes: list[str], bound: list[str]) -> list[str]:
    """What `tilec` is told, but for the device."""
    return ["run", str(file), *sizes, "--target", "sm_90a", "--data", "normal", *(word for b in bound for word in ("-D", b))]


def simulated(tilec: str, entry: str, args: list[str]) -> dict[str, int]:
    """The simulator's counts of a kernel."""
    command = [tilec, *args, "--device", "sim", "--counters=json", "--sim-align", "256", "--sim-landing", "early"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    said = json.loads(done.stdout)
    total = next(k for k in said.get("launches", [said]) if k["entry"] == entry)["total"]
    return {"requests": total["requests"], "sectors": total["sectors"], "bytes": total["global_bytes"]}


def number(text: str | None) -> int:
    """A count, as the profiler writes it; what it does not know is none."""
    return int(float((text or "0").replace(",", "")))


def profiled(ncu: str, tilec: str, entry: str, args: list[str], limit: int) -> dict[str, Any]:
    """The profiler's counts of one launch, by the names of METRICS."""
    names = ",".join([m for group in METRICS.values() for m in group] + ["launch__registers_per_thread", "device__attribute_display_name"])
    command = [
        ncu, "--clock-control", "none", "--target-processes", "all", "--kernel-name", entry, "--launch-count", "1", "--csv", "--page", "raw",
        "--print-units", "base", "--metrics", names, tilec, *args, "--device", "cuda", "--repeat", "1",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
    lines = done.stdout.splitlines()
    head = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if head is None:
        sys.exit(f"no counters were read of {entry}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    # The second line has the units.
    row = list(csv.DictReader(io.StringIO("\n".join(lines[head:]))))[1]
    counts: dict[str, Any] = {name: sum(number(row.get(m)) for m in group) for name, group in METRICS.items()}
    return counts | {"registers": row.get("launch__registers_per_thread"), "machine": row.get("device__attribute_display_name")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tilec", default="target/release/tilec", help="the compiler")
    parser.add_argument("--ncu", default="ncu", help="the profiler")
    parser.add_argument("--out", default="counters.csv", help="raw results")
    parser.add_argument("--only", nargs="*", help="kernels, of those that the script has")
    parser.add_argument("--limit", type=int, default=60, help="seconds for a program")
    parser.add_argument("--dry", action="store_true", help="the simulator's counts alone")
    options = parser.parse_args()
    common = occasion("ncu_examples", options.tilec)
    rows: list[dict[str, Any]] = []
    table = None if options.dry else Table(pathlib.Path(options.out), COLUMNS)
    for name, sizes, bound in PROGRAMS:
        if options.only and name not in options.only:
            continue
        args = arguments(ROOT / "examples" / f"{name}.tile", sizes, bound)
        ours = simulated(options.tilec, name, args)
        row: dict[str, Any] = {"kernel": name, "sizes": " ".join(sizes + bound), **{f"{c}_simulator": n for c, n in ours.items()}}
        if table is not None:
            theirs = profiled(options.ncu, options.tilec, name, args, options.limit)
            row |= {f"{c}_gpu": theirs[c] for c in ours} | {k: theirs[k] for k in ("dram", "registers", "machine")}
            row["one_address"] = ours["bytes"] - theirs["bytes"]
            wrong = [c for c in ("requests", "sectors") if ours[c] != theirs[c]]
            row["differs"] = " ".join([*wrong, *(["bytes"] if row["one_address"] < 0 else [])])
            table.add({**common, "driver": driver_version(), **row})
        rows.append(row)
    columns = [c for c in COLUMNS[1:12] if any(c in row for row in rows)]
    print(text_table(columns, [[str(row.get(c, "")) for c in columns] for row in rows]))
    return int(any(row.get("differs") for row in rows))


if __name__ == "__main__":
    sys.exit(main())
