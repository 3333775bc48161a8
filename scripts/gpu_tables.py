#!/usr/bin/env python3
"""The tables of docs/performance.md about attention, fused products, rows, shapes of models and Hopper code, from the committed results in docs/results.

    scripts/gpu_tables.py [FOLDER]        # default: docs/results/h200
"""

import csv
import json
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


def of_rows(folder: pathlib.Path) -> None:
    """Programs over rows: the share of a copy's rate, and how much longer PyTorch and torch.compile take."""
    for elem in ("f32", "bf16"):
        found = {path.stem.removeprefix("rows_").removesuffix(f"_{elem}"): rows(path) for path in sorted(folder.glob(f"rows_*_{elem}.csv"))}
        print(f"| rows, {elem} | " + " | ".join(found) + " |\n|" + "---|" * (len(found) + 1))
        for i, row in enumerate(next(iter(found.values()))):
            cells = [row["case"].replace("M=", "").replace(",N=", " x ")]
            for results in found.values():
                share = number(results[i]["of_copy"], 2)
                others = ", ".join(number(over, 2) for name in ("eager", "compiled") if (over := results[i][f"over_{name}"]))
                cells.append(f"{f'**{share}**' if float(share) >= 0.92 else share} ({others})")
            print("| " + " | ".join(cells) + " |")
        print()


def summary(results: list[dict[str, str]]) -> list[str]:
    """Number, geometric mean, 5th percentile, least and greatest of the ratios."""
    ratios = sorted(float(row["ratio"]) for row in results if row["ratio"])
    at = 0.05 * (len(ratios) - 1)
    low, high = ratios[math.floor(at)], ratios[math.ceil(at)]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return [str(len(ratios)), f"{mean:.3f}", f"{low + (high - low) * (at - math.floor(at)):.3f}", f"{ratios[0]:.3f}", f"{ratios[-1]:.2f}"]


def sweep(path: pathlib.Path) -> None:
    """Ratios to cuBLAS of the whole sweep, by rows of A, and its worst shapes."""
    results = rows(path)
    print("| launches | M | shapes | geometric mean | 5th percentile | least | greatest |\n|---|---|---|---|---|---|---|")
    for kind, words in (("overlap", "overlapping"), ("plain", "one behind the other")):
        for least, most in ((1, 8192), (1, 16), (17, 128), (129, 512), (513, 2048), (2049, 8192)):
            found = summary([row for row in results if row["kind"] == kind and least <= int(row["M"]) <= most])
            print(f"| {words} | {least} to {most} | " + " | ".join(found) + " |")
    print("\n| overlapping, the worst | us | cuBLAS us | ratio | chosen |\n|---|---|---|---|---|")
    for row in sorted((row for row in results if row["kind"] == "overlap" and row["ratio"]), key=lambda row: float(row["ratio"]))[:8]:
        chosen = dict(word.split("=") for word in row["chosen"].split())
        tile = f"{chosen['BM']}x{chosen['BN']}, {chosen['STAGES']} slots of {chosen['BK']}"
        print(f"| {row['M']}x{row['N']}x{row['K']} | {number(row['us'], 1)} | {number(row['cublas_us'], 1)} | {number(row['ratio'], 3)} | {tile} |")


def products(path: pathlib.Path) -> None:
    """`tilec bench --format json` of one type: a row a size."""
    report = json.loads(path.read_text(encoding="utf-8"))
    variants = len(report["problems"][0]["rows"])
    names = ["us", "ratio", "least, most"] + ["one behind the other us", "ratio"] * (variants > 1)
    print("| size | " + " | ".join(names) + " |\n|" + "---|" * (len(names) + 1))
    logs = []
    for problem in report["problems"]:
        m, n, k = (problem["args"][name] for name in "MNK")
        cells = [f"{m}³" if m == n == k else f"{m}x{n}x{k}"]
        for i, row in enumerate(sorted(problem["rows"], key=lambda row: row["variant"])):
            us, ratio = row["time"]["median"], row.get("ratio")
            cells += [f"{us:.{1 if us >= 10 else 2}f}", f"{ratio['median']:.3f}" if ratio else ""]
            if i == 0:
                cells.append(f"{ratio['min']:.2f}, {ratio['max']:.2f}" if ratio else "")
                logs += [math.log(ratio["median"])] if ratio else []
        print("| " + " | ".join(cells) + " |")
    if logs:
        print(f"\nGeometric mean {math.exp(sum(logs) / len(logs)):.3f}.")


def main() -> None:
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/results/h200"
    for name, table in [("attention", attention), ("attention_sm80", attention), ("attention_e4m3", attention), ("attention_backward", attention), ("attention_backward_stored", attention), ("swiglu", fused), ("back_to_back", fused)]:
        first = rows(folder / f"{name}.csv")[0]
        print(f"\n{name}: {first['machine']}, driver {first['driver']}, torch {first['torch']}, cuDNN {first['cudnn']}, {first['date']}\n\n    {first['command']}\n")
        table(folder / f"{name}.csv")
    first = rows(folder / "sweep.csv")[0]
    print(f"\nsweep: {first['machine']}, driver {first['driver']}, {first['date']}\n\n    {first['command']}\n")
    sweep(folder / "sweep.csv")
    first = rows(folder / "rows_softmax_f32.csv")[0]
    print(f"\nrows: {first['machine']}, driver {first['driver']}, torch {first['torch']}, {first['date']}\n\n    {first['command']}\n")
    of_rows(folder)
    for path in sorted(folder.glob("hopper_*.json")):
        print(f"\n{path.stem}\n")
        products(path)


if __name__ == "__main__":
    main()
