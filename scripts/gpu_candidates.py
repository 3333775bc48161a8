#!/usr/bin/env python3
"""Times of kernels that the model of `auto` takes for fast: rows of passes/src/choose/h200.csv, bf16 with B column-major.

    TILEC_SIZES=207x2560x4864,4096x4096x4096 cargo test --release -p tilec-passes -- --ignored --nocapture list_candidates > /tmp/candidates
    scripts/gpu_candidates.py /tmp/candidates --tilec target/release/tilec --out rows.csv
    scripts/gpu_candidates.py /tmp/candidates --dry       # compiles and assembles them, without a GPU

Of each problem the fastest by the model are compiled without its sizes, with blocks that share tiles and in pairs where that may gain, and
launched from their contracts, overlapping. The result of each on normal data is compared with PyTorch's, the output filled with NaN before; then
all of a problem take turns (gpu/measure.py). A row has the median of the rounds, in microseconds.
"""

import argparse
import collections
import math
import multiprocessing
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from gpu import contract_host as host  # noqa: E402
from gpu import measure  # noqa: E402
from gpu.assemble import find_ptxas  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
MULTIPROCESSORS = 132
# Rows or columns of a tile of which each block of a pair loads a multiple.
PERIOD = 8
TYPES = "T=bf16,Out=bf16,LB=col"
# What is beside the parameters of a row: blocks that share tiles along the reduction, and those of a cluster.
SCHEDULE = "stream_k SK cluster (CA, CB) }"
Values = dict[str, str]


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("candidates", help="what `list_candidates` printed")
    add("--tilec", default=os.environ.get("TILEC", str(ROOT / "target/release/tilec")), help="the compiler's binary")
    add("--tiles", type=int, default=9, help="tiles of a problem, %(default)s")
    add("--far", type=float, default=1.45, help="times the fastest prediction at most, %(default)s")
    add("--seconds", type=float, default=330.0, help="of all; problems that are left then are not measured")
    add("--out", default="candidates.csv", help="path of the rows")
    add("--dry", action="store_true", help="without a GPU: compile and assemble")
    return parser.parse_args(words)


def plan(path: str, options: argparse.Namespace) -> dict[str, list[str]]:
    """The programs of each problem, as definitions of compile-time parameters."""
    listed: dict[str, list[tuple[float, Values]]] = collections.defaultdict(list)
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if len(parts := line.split(";")) == 3:
            listed[parts[0]].append((float(parts[1]), dict(pair.split("=") for pair in parts[2].split(","))))
    programs = {}
    for size, candidates in listed.items():
        fastest, seen, kept = candidates[0][0], collections.Counter[tuple[str, str]](), list[Values]()
        for us, values in candidates:
            tile = values["BM"], values["BN"]
            if us <= options.far * fastest and len(kept) < options.tiles and seen[tile] < 2:
                seen[tile] += 1
                kept.append(values)
        found = [program for values in kept for program in schedules(size, values)]
        programs[size] = [",".join(f"{name}={value}" for name, value in values.items()) for values in found]
    return programs


def schedules(size: str, values: Values) -> list[Values]:
    """A tile alone, shared along the reduction, and in pairs of blocks."""
    m, n, k = map(int, size.split("x"))
    tiles = math.ceil(m / int(values["BM"])) * math.ceil(n / int(values["BN"]))
    raster = int(values["RASTER"])
    own = {**values, "RASTER": str(8 if raster >= 4 else raster), "SK": "0", "CA": "1", "CB": "1"}
    found = [own]
    if tiles % MULTIPROCESSORS and tiles < 4 * MULTIPROCESSORS and k >= 1024:
        found.append({**own, "SK": "1"})
    if tiles >= MULTIPROCESSORS // 2:
        shared = [("CA", values["BN"]), ("CB", values["BM"])]
        found += [{**own, pair: "2"} for pair, extent in shared if int(extent) % (2 * PERIOD) == 0]
    return found


def source(folder: pathlib.Path) -> pathlib.Path:
    """`examples/gemm.tile` with these parts of the schedule as parameters."""
    text = (ROOT / "examples/gemm.tile").read_text(encoding="utf-8")
    changed = text.replace("RASTER = auto,", "RASTER = auto, SK = 0, CA = 1, CB = 1,", 1).replace("promote PROMOTE }", f"promote PROMOTE {SCHEDULE}", 1)
    assert SCHEDULE in changed and "CB = 1," in changed, "examples/gemm.tile has another schedule"
    (path := folder / "gemm.tile").write_text(changed, encoding="utf-8")
    return path


def build(job: tuple[str, str, str, str]) -> tuple[str, tuple[str, str, bytes] | str]:
    """A program: its PTX, its launch file, and its machine code; or why there is none."""
    tilec, ptxas, file, program = job
    with tempfile.TemporaryDirectory() as folder:
        ptx, launch, cubin = (pathlib.Path(folder, name) for name in ("k.ptx", "k.json", "k.cubin"))
        compile_to = [tilec, file, "--target", "sm_90a", "--card", "H200", "-D", f"{TYPES},{program}", "-o"]
        for command in ([*compile_to, str(ptx)], [*compile_to, str(launch)], [ptxas, "-arch=sm_90a", str(ptx), "-o", str(cubin)]):
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
            if done.returncode:
                return program, done.stderr.strip()[:200]
        return program, (ptx.read_text(), launch.read_text(), cubin.read_bytes())


class Cubin(str):
    """Machine code where the host expects PTX."""

    code: bytes

    def encode(self, *_: Any) -> bytes:
        return self.code


class Bench:
    """One device: kernels as they are loaded, one problem after another."""

    def __init__(self, built: dict[str, tuple[str, str, bytes]]) -> None:
        import torch

        self.torch, self.built = torch, built
        torch.zeros(1, device="cuda")  # makes the context of this thread
        self.driver, self.loaded = host.Driver(), dict[str, host.LoadedKernel]()
        self.cache = torch.cuda.get_device_properties(0).L2_cache_size

    def kernel(self, program: str) -> host.LoadedKernel:
        if program not in self.loaded:
            ptx, launch, code = self.built[program]
            (contract,) = host.LaunchFile.parse(ptx, launch).kernels.values()
            image = Cubin()
            image.code = code
            self.loaded[program] = host.LoadedKernel(self.driver, image, contract)
        return self.loaded[program]

    def times(self, size: str, programs: list[str]) -> dict[str, measure.Times]:
        """All programs of a problem, each right first."""
        torch = self.torch
        m, n, k = map(int, size.split("x"))
        sets = min(measure.input_sets(2 * (m * k + n * k + m * n), self.cache), 200)
        make = {"device": "cuda", "dtype": torch.bfloat16}
        a, b = ([torch.randn(rows, k, **make) for _ in range(sets)] for rows in (m, n))
        c = [torch.empty(m, n, **make) for _ in range(sets)]
        wanted, memory, contestants = (a[0] @ b[0].T).float(), list[Any](), dict[str, measure.Call]()
        for program in programs:
            kernel, scratch, bound = self.kernel(program), dict[str, host.Tensor](), []
            for i in range(sets):
                tensors = {
                    "A": host.Tensor(a[i].data_ptr(), (m, k), (k, 1), "bf16"),
                    "B": host.Tensor(b[i].data_ptr(), (k, n), (1, k), "bf16"),
                    "C": host.Tensor(c[i].data_ptr(), (m, n), (n, 1), "bf16"),
                }
                if i == 0:
                    for name, elem, extents, strides in kernel.contract.scratch(tensors):
                        elements = sum((x - 1) * s for x, s in zip(extents, strides, strict=True)) + 1
                        # Signals begin as zeros, other scratch memory as nothing.
                        memory.append(torch.full((elements * host.BITS[elem] // 8,), 0 if elem == "u32" else 0xFF, dtype=torch.uint8, device="cuda"))
                        scratch[name] = host.Tensor(memory[-1].data_ptr(), extents, strides, elem)
                bound.append(kernel.bind({**tensors, **scratch}))

            def call(index: int, bound: list[host.BoundLaunch] = bound) -> None:
                bound[index].launch(torch.cuda.current_stream().cuda_stream)

            c[0].fill_(float("nan"))
            call(0)
            torch.cuda.synchronize()
            error = float((c[0].float() - wanted).norm() / wanted.norm())
            if not error < 0.01:
                raise RuntimeError(f"WRONG RESULT: {size} {program}: relative error {error:.2e}")
            contestants[program] = call
        return measure.compare(torch, contestants, sets, measure.Plan(rounds=3, turn_ms=2.0, max_calls=max(120, sets)))


def row(size: str, program: str, us: float) -> str:
    """As passes/src/choose/h200.csv has it."""
    values = dict(pair.split("=") for pair in program.split(","))
    shared, down, right = (values.pop(name) for name in ("SK", "CA", "CB"))
    pairs = [TYPES, *(f"{name}={value}" for name, value in values.items()), f"cluster={down}/{right}", *(["stream_k=1"] if shared == "1" else [])]
    return ";".join(["sm_90a", ",".join(pairs), *size.split("x"), f"{us:.2f}"])


def main() -> int:
    options, start = arguments(), time.monotonic()
    ptxas = find_ptxas()
    if ptxas is None:
        print("no ptxas: scripts/fetch_tools.sh fetches one", file=sys.stderr)
        return 2
    problems = plan(options.candidates, options)
    programs = sorted({program for found in problems.values() for program in found})
    with tempfile.TemporaryDirectory() as folder, multiprocessing.Pool() as pool:
        file = str(source(pathlib.Path(folder)))
        answers = dict(pool.map(build, [(options.tilec, ptxas, file, program) for program in programs]))
    refused = {program: why for program, why in answers.items() if isinstance(why, str)}
    print(f"{len(problems)} problems, {len(programs)} programs, {len(refused)} refused; {time.monotonic() - start:.0f} s")
    for program, why in refused.items():
        print(f"{program}: {why}")
    if options.dry:
        return int(bool(refused))
    bench = Bench({program: answer for program, answer in answers.items() if not isinstance(answer, str)})
    order = list(problems)
    random.Random(1).shuffle(order)
    with open(options.out, "w", encoding="utf-8") as out:
        for size in order:
            if time.monotonic() - start > options.seconds:
                print(f"not measured: {size}")
                continue
            for program, times in bench.times(size, [p for p in problems[size] if p not in refused]).items():
                print(row(size, program, times.median), file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
