#!/usr/bin/env python3
"""The time of the whole command, beside that of `tilec --version`: the best of several runs each, taken in turns.

    scripts/compile_time.py [--tilec target/release/tilec] [--runs 60] [--machine 'two Xeon cores' --out docs/results/code/compile_time.csv]

Prints a row a program: milliseconds, and the ratio to `--version`. Nothing else should run beside it. `--out` writes the rows that docs/performance.md shows.
"""
import argparse
import csv
import datetime
import os
import tempfile
import time

CASES = [
    ("`gemm.tile`, all `auto`, sm_70", ["examples/gemm.tile"]),
    ("`gemm.tile`, all `auto`, sm_80", ["examples/gemm.tile", "--target", "sm_80"]),
    ("`gemm.tile`, all `auto`, sm_90a", ["examples/gemm.tile", "--target", "sm_90a"]),
    ("`attention.tile`, sm_80, tiles given", ["examples/attention.tile", "--target", "sm_80", "-D", "BQ=128,BKV=64"]),
    ("`attention.tile`, sm_80, `auto`", ["examples/attention.tile", "--target", "sm_80"]),
    ("`attention.tile`, sm_90a, tiles given", ["examples/attention.tile", "--target", "sm_90a", "-D", "BQ=128,BKV=128"]),
    ("`attention.tile`, sm_90a, `auto`", ["examples/attention.tile", "--target", "sm_90a"]),
    ("`swiglu.tile`, sm_90a, `auto`", ["examples/swiglu.tile", "--target", "sm_90a", "-D", "LB=col", "--for", "M=4096,N=14336,K=4096"]),
    ("`gemm_complex.tile`, sm_90a, `auto`", ["examples/gemm_complex.tile", "--target", "sm_90a"]),
    ("`trmm.tile`, sm_90a, `auto`", ["examples/trmm.tile", "--target", "sm_90a"]),
]


def once(command):
    """Seconds of a process whose output nobody reads."""
    silent = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
    begin = time.perf_counter()
    process = os.posix_spawn(command[0], command, os.environ, file_actions=silent)
    _, status = os.waitpid(process, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(command)} failed")
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tilec", default="target/release/tilec")
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--machine", default="this machine", help="what the rows of --out say of it")
    parser.add_argument("--out", help="a CSV file")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = ["-o", os.path.join(folder, "out.ptx")]
        commands = [("--version", [args.tilec, "--version"])]
        commands += [(name, [args.tilec, *words, *out]) for name, words in CASES]
        best = [float("inf")] * len(commands)
        for _ in range(args.runs):
            for i, (_, command) in enumerate(commands):
                best[i] = min(best[i], once(command))
    for (name, _), seconds in zip(commands, best):
        print(f"{name:40} {seconds * 1e3:7.2f} ms {seconds / best[0]:6.2f}")
    if args.out:
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
        with open(args.out, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["program", "ms", "machine", "date", "command"])
            for (name, _), seconds in zip(commands, best):
                writer.writerow([name, f"{seconds * 1e3:.2f}", args.machine, date, f"scripts/compile_time.py --runs {args.runs}"])


if __name__ == "__main__":
    main()
