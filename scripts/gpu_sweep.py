#!/usr/bin/env python3
"""A sweep of matrix products of published models against cuBLAS: what the model chooses without tuning, with overlapping launches and without.

    scripts/gpu_sweep.py --tilec target/release/tilec --count 252 --out /tmp/sweep
    scripts/gpu_sweep.py --dry --count 252               # compiles every shape and works out its launch, without a GPU

Shapes are drawn by the rule in gpu/model_shapes.json: bf16, B column-major (weights as [N, K]), the result in bf16. `tilec bench` measures,
a process for each `--chunk` shapes: it checks every result, takes the fastest of eight ways of cuBLAS, and interleaves all three.
OUT.csv has a row a shape and kind of launch, OUT.rounds.csv every round. A ratio above 1 says that ours is faster.
"""

import argparse
import json
import math
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from gpu import contract_host as host  # noqa: E402
from gpu.assemble import assemble, find_ptxas  # noqa: E402
from gpu.model_shapes import Shape, draw  # noqa: E402
from gpu.report import Table, driver_version, occasion, text_table  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
# How launches follow one another, and the pass that is off for it.
KINDS = {"overlap": "", "plain": "off=overlap-launches"}
COLUMNS = [
    "tag", "M", "N", "K", "layer", "kind", "us", "spread", "tflops", "cublas_us", "cublas_spread", "ratio", "ratio_min", "ratio_max", "chosen", "predicted_us",
    "registers", "local_bytes", "compared", "note", "machine", "driver", "cublas", "date", "tilec", "command",
]  # fmt: skip
Row = dict[str, Any]


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--tilec", default=os.environ.get("TILEC", str(ROOT / "target/release/tilec")), help="the compiler's binary")
    add("--file", default=str(ROOT / "examples/gemm.tile"))
    add("--target", default="sm_90a")
    add("--card", default="H200")
    add("--define", default="T=bf16,Out=bf16,LB=col", help="compile-time parameters, %(default)s")
    add("--count", type=int, default=252, help="shapes, %(default)s")
    add("--skip", type=int, default=0, help="begin behind so many of them")
    add("--chunk", type=int, default=42, help="shapes of a process, %(default)s")
    add("--rounds", type=int, default=7)
    add("--shape-seconds", type=float, default=0.3, help="seconds of measurement of a shape")
    add("--limit", type=float, default=30.0, help="seconds after which a shape is given up")
    add("--seconds", type=float, default=540.0, help="of all; what is left then is not measured")
    add("--tag", default="", help="a label for the rows")
    add("--out", default="sweep", help="path of the CSV files, without suffix")
    add("--dry", action="store_true", help="without a GPU: compile every shape, check its launch")
    add("--assemble", action="store_true", help="with --dry: assemble every distinct program, too")
    options = parser.parse_args(words)
    if not 0 <= options.skip < options.count or options.chunk < 1:
        parser.error("--skip must be below --count, and --chunk at least 1")
    return options


def bench_command(options: argparse.Namespace, shapes: list[Shape]) -> list[str]:
    """`tilec bench` for these shapes."""
    variants = [word for variant in KINDS.values() for word in ("--variant", variant)]
    measured = ["--rounds", str(options.rounds), "--seconds", str(options.shape_seconds), "--timeout", str(math.ceil(options.limit)), "--format", "json"]
    sizes = "M,N,K=" + ",".join(shape.name for shape in shapes)
    return [options.tilec, "bench", options.file, "--card", options.card, "--target", options.target, "-D", options.define, *variants, *measured, sizes]


def reports(options: argparse.Namespace, shapes: list[Shape]) -> Iterator[tuple[list[Shape], dict[str, Any] | str]]:
    """What `tilec bench` says of each chunk, or why it said nothing."""
    end = time.monotonic() + options.seconds
    for first in range(0, len(shapes), options.chunk):
        chunk = shapes[first : first + options.chunk]
        left = end - time.monotonic()
        yield chunk, run(bench_command(options, chunk), left) if left > 1 else "not measured: the time is spent"


def run(command: list[str], seconds: float) -> dict[str, Any] | str:
    """The JSON that a command writes, or why there is none. Its processes end with it."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        said, errors = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return f"ended after {seconds:.0f} s"
    try:
        return dict(json.loads(said))
    except ValueError:
        return f"status {child.returncode}: {errors.strip()[-300:]}"


def rows_of(shapes: list[Shape], report: dict[str, Any] | str) -> Iterator[tuple[Row, dict[str, list[float]]]]:
    """A row for each shape and kind of launch, and the times of each round."""
    if isinstance(report, str):
        for shape in shapes:
            for kind in KINDS:
                yield {**identity(shape), "kind": kind, "note": report}, {}
        return
    about = common(report)
    for shape, problem in zip(shapes, report["problems"], strict=True):
        assert all(problem["args"][name] == value for name, value in zip("MNK", (shape.m, shape.n, shape.k), strict=True))
        by_variant = {row["variant"]: row for row in problem["rows"]}
        for index, kind in enumerate(KINDS):
            ours = by_variant.get(index)
            row = {**identity(shape), **about, "kind": kind}
            if ours is None:
                yield {**row, "note": problem.get("failed", "no row")}, {}
                continue
            theirs = problem["references"][ours["reference"]] if ours.get("reference") is not None else None
            rounds = {kind: ours["us"], **({"cublas": theirs["us"]} if theirs and index == 0 else {})}
            yield {**row, **measured(shape, ours, theirs), "note": note(problem, ours, theirs)}, rounds


def identity(shape: Shape) -> Row:
    return {"M": shape.m, "N": shape.n, "K": shape.k, "layer": shape.layer}


def common(report: dict[str, Any]) -> Row:
    """What a report says of the machine."""
    machine, cublas = report.get("machine") or {}, report.get("cublas") or {}
    return {"machine": machine.get("name", report.get("simulated") and "simulator" or "?"), "cublas": cublas.get("version") or cublas.get("absent") or ""}


def measured(shape: Shape, ours: dict[str, Any], theirs: dict[str, Any] | None) -> Row:
    """The numbers of a row; those that were not measured are left out."""
    chosen = (ours.get("chosen") or [{}])[0]
    check, loaded = ours["check"], ours.get("loaded") or {}
    row: Row = {
        "chosen": " ".join(f"{name}={value}" for name, value in chosen.get("values", [])), "predicted_us": chosen.get("predicted_us", ""),
        "registers": loaded.get("registers", ""), "local_bytes": loaded.get("local_bytes", ""),
        "compared": check["exact"] + check["bounded"] + check["against_cublas"] + check["interpreted"],
    }  # fmt: skip
    if (us := ours.get("time")) is not None:
        row |= {"us": us["median"], "spread": (us["upper"] - us["lower"]) / us["median"], "tflops": 2e-6 * shape.m * shape.n * shape.k / us["median"]}
    if theirs and theirs["us"]:
        quartiles = statistics.quantiles(theirs["us"], n=4, method="inclusive") if len(theirs["us"]) > 1 else theirs["us"] * 3
        row |= {"cublas_us": quartiles[1], "cublas_spread": (quartiles[2] - quartiles[0]) / quartiles[1]}
    if (ratio := ours.get("ratio")) is not None and not check["wrong"]:
        row |= {"ratio": ratio["median"], "ratio_min": ratio["min"], "ratio_max": ratio["max"]}
    return row


def note(problem: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any] | None) -> str:
    """Why a row is not what it should be."""
    wrong = f"WRONG RESULT in {ours['check']['wrong']} elements" if ours["check"]["wrong"] else None
    return "; ".join(str(x) for x in [wrong, ours.get("failed"), theirs and theirs.get("refused"), *problem["notes"]] if x)


def summary(rows: list[Row]) -> str:
    """Means and the worst shapes, by kind of launch."""
    lines, worst = [], []
    for kind in KINDS:
        mine = [row for row in rows if row["kind"] == kind]
        ratios = sorted(row["ratio"] for row in mine if row.get("ratio"))
        wrong = sum("WRONG" in str(row.get("note")) for row in mine)
        if not ratios:
            lines.append([kind, "0", str(len(mine)), str(wrong), "-", "-", "-", "-"])
            continue
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
        at = 0.05 * (len(ratios) - 1)
        low, high = ratios[math.floor(at)], ratios[math.ceil(at)]
        percentile = low + (high - low) * (at - math.floor(at))
        lines.append([kind, str(len(ratios)), str(len(mine) - len(ratios)), str(wrong), *(f"{x:.3f}" for x in (mean, percentile, ratios[0], ratios[-1]))])
        for row in sorted((row for row in mine if row.get("ratio")), key=lambda row: float(row["ratio"]))[:12]:
            size = f"{row['M']}x{row['N']}x{row['K']}"
            numbers = f"{row['us']:.1f}", f"{row['cublas_us']:.1f}", f"{row['ratio']:.3f}", f"{row['ratio_min']:.3f}", f"{row['ratio_max']:.3f}"
            worst.append([f"{kind} {size}", *numbers, str(row["chosen"]).replace(" RASTER", ",R").replace(" ", ",")])
    head = ["launches", "measured", "not", "wrong", "geometric mean", "5th percentile", "least", "greatest"]
    table = text_table(["worst", "us", "cuBLAS us", "ratio", "least", "most", "chosen"], worst) + "\n\n" if worst else ""
    return table + text_table(head, lines)


def dry(options: argparse.Namespace, shapes: list[Shape]) -> int:
    """Compiles every shape both ways and works out its launch."""
    ptxas, failed, assembled = find_ptxas() if options.assemble else None, 0, dict[str, str]()
    for shape in shapes:
        words = ["--target", options.target, "--card", options.card, "-D", options.define, "--for", f"M={shape.m},N={shape.n},K={shape.k}"]
        for kind, more in (("overlap", []), ("plain", ["--disable-pass", "overlap-launches"])):
            try:
                kernels = host.compile_file(options.tilec, options.file, [*words, *more])
                tensors = {
                    "A": host.Tensor(1 << 40, (shape.m, shape.k), (shape.k, 1), "bf16"),
                    "B": host.Tensor(2 << 40, (shape.k, shape.n), (1, shape.k), "bf16"),
                    "C": host.Tensor(3 << 40, (shape.m, shape.n), (shape.n, 1), "bf16"),
                }
                plans = []
                for contract in kernels.kernels.values():
                    for i, (name, elem, extents, strides) in enumerate(contract.scratch(tensors)):
                        tensors[name] = host.Tensor((4 + i) << 40, extents, strides, elem)
                    mine = {name: tensor for name, tensor in tensors.items() if name in {p["name"] for p in contract.params}}
                    plans.append((contract.plan(mine, {}, {}).grid, contract.block[0], contract.cluster, contract.programmatic))
                if ptxas is not None and kernels.ptx not in assembled:
                    assembled[kernels.ptx] = assemble(ptxas, kernels)
                print(f"{shape.name} {kind}: {plans} {assembled.get(kernels.ptx, '')}")
                if any(plan[3] for plan in plans) != (kind == "overlap"):
                    raise ValueError(f"`programmatic` is {plans}")
            except (host.CompileError, host.ContractError, ValueError, RuntimeError) as error:
                failed += 1
                print(f"{shape.name} {kind}: {type(error).__name__}: {str(error)[:300]}")
    print(f"{len(shapes)} shapes, {failed} failed")
    return int(failed > 0)


def main() -> int:
    options = arguments()
    shapes = draw(options.count)[options.skip :]
    if options.dry:
        return dry(options, shapes)
    table = Table(pathlib.Path(f"{options.out}.csv"), COLUMNS)
    every = Table(pathlib.Path(f"{options.out}.rounds.csv"), ["tag", "M", "N", "K", "round", "contestant", "us"])
    about = {**occasion(options.tag, options.tilec), "driver": driver_version()}
    rows: list[Row] = []
    for chunk, report in reports(options, shapes):
        for row, rounds in rows_of(chunk, report):
            rows.append(row)
            table.add({**about, **row})
            for contestant, times in rounds.items():
                for i, us in enumerate(times):
                    every.add({"tag": options.tag, **{n: row[n] for n in "MNK"}, "round": i, "contestant": contestant, "us": us})
        print(f"{len(rows) // len(KINDS)} of {len(shapes)} shapes{'' if isinstance(report, dict) else ': ' + report}", flush=True)
    machine = next((row for row in rows if row.get("machine")), {})
    print(f"{machine.get('machine', '?')}, driver {about['driver']}, cuBLAS {machine.get('cublas', '?')}, {about['date']}\n{summary(rows)}")
    return int(any("WRONG" in str(row.get("note")) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
