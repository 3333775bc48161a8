#!/usr/bin/env python3
"""The tables of docs/performance.md about attention and fused products, from the committed results in docs/results.

    scripts/gpu_tables.py [FOLDER]        # default: docs/results/h200
"""

import csv
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def rows(path: pathlib.Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def number(text: str, digits: int = 0) -> str:
    return f"{float(text):.{digits}f}" if text else ""


def attention(path: pathlib.Path) -> None:
    results = rows(path)
    # Of the backward pass also the fastest library whose results are the same in every run.
    fixed = [name for name in results[0] if name.endswith("_deterministic_tflops")]
    head = ["D", "mask", "L", "ours us", "TFLOP/s", "fastest library", "TFLOP/s", "ratio", "least, most"] + ["fastest deterministic one TFLOP/s"] * bool(fixed)
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in results:
        mask = "causal" if row["causal"] == "True" else "full"
        best = row["best"]
        ratio = f"**{number(row['ratio'], 2)}**" if float(row["ratio"]) >= 1 else number(row["ratio"], 2)
        between = f"{number(row['ratio_min'], 2)}, {number(row['ratio_max'], 2)}"
        cells = [row["D"], mask, row["L"], number(row["ours_us"]), number(row["ours_tflops"]), best, number(row[best + "_tflops"]), ratio, between]
        if fixed:
            cells.append(f"{max((float(row[name]) for name in fixed if row[name]), default=0):.0f}")
        print("| " + " | ".join(cells) + " |")


def fused(path: pathlib.Path) -> None:
    print("| sizes | fused us | TFLOP/s | plain product TFLOP/s | cuBLAS TFLOP/s | of plain | least, most | over PyTorch's steps |\n|---|---|---|---|---|---|---|---|")
    for row in rows(path):
        between = f"{number(row['of_plain_min'], 2)}, {number(row['of_plain_max'], 2)}"
        rates = " | ".join(number(row[f"{name}_tflops"]) for name in ("fused", "plain", "cublas"))
        print(f"| {row['case']} | {number(row['fused_us'])} | {rates} | {number(row['of_plain'], 2)} | {between} | {number(row['over_separate'], 2)} |")


def sweep(folder: pathlib.Path) -> None:
    """Ratios to cuBLAS of the whole sweep, and of the shapes that were measured again with the refitted model."""
    print("| shapes | launches | geometric mean | 5th percentile | least | greatest |\n|---|---|---|---|---|---|")
    whole, again = (rows(folder / f"{name}.csv") for name in ("sweep", "sweep_refitted"))
    shape = lambda row: (row["M"], row["N"], row["K"])  # noqa: E731
    second = {shape(row) for row in again if row["ratio"]}
    groups = [("model before", whole), ("model before", [row for row in whole if shape(row) in second]), ("model refitted once", again)]
    for name, results in groups:
        for kind, words in (("overlap", "overlapping"), ("plain", "one behind the other")):
            ratios = sorted(float(row["ratio"]) for row in results if row["kind"] == kind and row["ratio"])
            at = 0.05 * (len(ratios) - 1)
            low, high = ratios[math.floor(at)], ratios[math.ceil(at)]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"| {len(ratios)}, {name} | {words} | {mean:.3f} | {low + (high - low) * (at - math.floor(at)):.3f} | {ratios[0]:.3f} | {ratios[-1]:.2f} |")


def main() -> None:
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/results/h200"
    for name, table in [("attention", attention), ("attention_sm80", attention), ("attention_e4m3", attention), ("attention_backward", attention), ("swiglu", fused), ("back_to_back", fused)]:
        first = rows(folder / f"{name}.csv")[0]
        print(f"\n{name}: {first['machine']}, driver {first['driver']}, torch {first['torch']}, cuDNN {first['cudnn']}, {first['date']}\n\n    {first['command']}\n")
        table(folder / f"{name}.csv")
    print("\nsweep\n")
    sweep(folder)


if __name__ == "__main__":
    main()
