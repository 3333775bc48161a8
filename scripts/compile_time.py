#!/usr/bin/env python3
"""The time of the whole command, beside that of `tilec --version`: the best of several runs each, taken in turns.

    scripts/compile_time.py [--tilec target/release/tilec] [--runs 60]

Prints a row a program: milliseconds, and the ratio to `--version`. Nothing else should run beside it.
"""
import argparse
import os
import tempfile
import time

CASES = [
    ("gemm sm_70", ["examples/gemm.tile"]),
    ("gemm sm_80", ["examples/gemm.tile", "--target", "sm_80"]),
    ("gemm sm_90a", ["examples/gemm.tile", "--target", "sm_90a"]),
    ("attention sm_80, tiles given", ["examples/attention.tile", "--target", "sm_80", "-D", "BQ=128,BKV=64"]),
    ("attention sm_80", ["examples/attention.tile", "--target", "sm_80"]),
    ("attention sm_90a, tiles given", ["examples/attention.tile", "--target", "sm_90a", "-D", "BQ=128,BKV=128"]),
    ("attention sm_90a", ["examples/attention.tile", "--target", "sm_90a"]),
    ("swiglu sm_90a", ["examples/swiglu.tile", "--target", "sm_90a", "-D", "LB=col", "--for", "M=4096,N=14336,K=4096"]),
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
        print(f"{name:32} {seconds * 1e3:7.2f} ms {seconds / best[0]:6.2f}")


if __name__ == "__main__":
    main()
