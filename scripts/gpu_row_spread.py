#!/usr/bin/env python3
"""How far rows should spread: programs over rows with every sensible number of threads and of blocks that share a row.

    scripts/gpu_row_spread.py --tilec target/release/tilec --out spread
    scripts/gpu_row_spread.py --programs softmax --lengths 65536 --dry        # without a GPU: compile and assemble

The rule of the compiler (`passes/src/select_mma/threads.rs`) rests on these measurements. All schedules of a program, a type and a length are timed in turns with a copy of
the same bytes, and every result is compared as scripts/gpu_rows.py does. `own` marks what the compiler chooses by itself.
"""

import argparse
import csv
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import gpu_rows as rows  # noqa: E402
from gpu import contract_host as host  # noqa: E402
from gpu import measure  # noqa: E402

FILES = {
    "softmax": "softmax_rows", "log_softmax": "log_softmax", "rms_norm": "rms_norm", "layer_norm": "layer_norm", "cross_entropy": "cross_entropy",
    "softmax_backward": "softmax_backward",
}  # fmt: skip
GRID = "    grid (i: ceildiv(M, BM))"
THREADS, BLOCKS, EACH = [64, 128, 256, 512, 1024], [1, 2, 4, 8, 16], [16, 32, 64, 128]
# Elements of a matrix: more than the second-level cache has, and time enough for a clock.
ELEMENTS = 1 << 25


@dataclass
class Candidate:
    """A program with a schedule, compiled."""

    kind: str
    type: str
    length: int
    ctas: int
    threads: int
    own: bool = False
    error: str = ""
    kernels: Any = None
    cubin: bytes = b""
    row: dict[str, Any] = field(default_factory=dict)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--programs", default="softmax,rms_norm,layer_norm,cross_entropy")
    add("--types", default="bf16,f32")
    add("--lengths", default="8192,16384,32768,65536,131072,262144")
    add("--tilec", default=os.environ.get("TILEC", str(rows.ROOT / "target/release/tilec")))
    add("--ptxas", default=os.environ.get("PTXAS", "ptxas"))
    add("--target", default="sm_90a")
    add("--examples", default=str(rows.ROOT / "examples"))
    add("--jobs", type=int, default=os.cpu_count() or 1)
    add("--rounds", type=int, default=3)
    add("--turn-ms", type=float, default=1.5)
    add("--out", default="spread")
    add("--dry", action="store_true")
    return parser.parse_args()


def schedules(length: int) -> list[tuple[int, int]]:
    """Blocks of a row and threads of a block. (0, 0): what the compiler chooses."""
    return [(0, 0), *((c, t) for c in BLOCKS for t in THREADS if length // (c * t) in EACH and length % (c * t) == 0)]


def compiled(options: argparse.Namespace, c: Candidate, folder: str) -> None:
    """Compiles and assembles a candidate."""
    text = (pathlib.Path(options.examples) / f"{FILES[c.kind]}.tile").read_text()
    if GRID not in text:
        c.error = "no grid of rows"
        return
    if c.threads:
        text = text.replace(GRID, f"{GRID} schedule {{ threads {c.threads} ctas {c.ctas} }}")
    name = f"{c.kind}_{c.type}_{c.length}_{c.ctas}_{c.threads}"
    source, ptx, cubin = (pathlib.Path(folder) / f"{name}.{end}" for end in ("tile", "ptx", "cubin"))
    source.write_text(text)
    places = f"T={c.type},BN={c.length},BM=1,ALIGN={128 // host.BITS[c.type]}"
    try:
        c.kernels = host.compile_file(options.tilec, str(source), ["--target", options.target, "-D", places])
        contract = next(iter(c.kernels.kernels.values()))
        if not c.threads:
            c.own, c.ctas, c.threads = True, contract.cluster[0], contract.data["block"][0]
        if shutil.which(options.ptxas) is None:
            # The driver assembles.
            c.cubin = c.kernels.ptx.encode() + b"\0"
            return
        ptx.write_text(c.kernels.ptx)
        done = subprocess.run([options.ptxas, f"-arch={options.target}", "-v", str(ptx), "-o", str(cubin)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr[:200])
        c.cubin = cubin.read_bytes()
        c.row["spills"] = sum(int(part.split()[-4]) for part in done.stderr.split(",") if "bytes spill stores" in part)
    except Exception as e:
        c.error = str(e).replace("\n", " ")[:200]


class Bench(rows.Bench):
    """The bench of gpu_rows.py, with kernels that are assembled already."""

    def group(self, kind_name: str, n: int, group: list[Candidate]) -> None:
        torch, kind = self.torch, rows.KINDS[kind_name]
        case = {"case": "", "M": ELEMENTS // n, "N": n}
        size = kind.bytes_of(self.dtype.itemsize, ELEMENTS)
        xs = [[self.given(what, case) for what in kind.takes] for _ in range(2)]
        ys = [[self.result(what, case) for what in kind.makes] for _ in range(2)]
        # None of these programs changes what it is given.
        self.saved = {id(x): [None] * len(x) for x in xs}
        halves = [[torch.zeros(size // 2, dtype=torch.uint8, device="cuda").split(rows.PIECE) for _ in range(2)] for _ in range(2)]
        calls: dict[str, measure.Call] = {"copy": lambda i: [to.copy_(piece) for piece, to in zip(*halves[i], strict=True)]}
        for at, c in enumerate(group):
            try:
                launches = [self.bind_cubin(c, x, y) for x, y in zip(xs, ys, strict=True)]
                c.row["registers"] = launches[0].kernel.registers()
                c.row["of_bound"] = self.check(kind, xs[0], ys[0], launches[0])
                calls[str(at)] = lambda i, launches=launches: launches[i].launch(torch.cuda.current_stream().cuda_stream)
            except Exception as e:
                c.error = str(e).replace("\n", " ")[:200]
        plan = measure.Plan(rounds=self.options.rounds, turn_ms=self.options.turn_ms)
        times = measure.compare(torch, calls, 2, plan)
        for at, c in enumerate(group):
            if str(at) in times:
                c.row |= {"us": times[str(at)].median, "of_copy": measure.Ratio.of(times["copy"], times[str(at)]).median}

    def bind_cubin(self, c: Candidate, x: list[Any], y: list[Any]) -> host.BoundLaunch:
        contract = next(iter(c.kernels.kernels.values()))
        params = contract.of_kind("tensor")
        given = [t.flatten() if len(host.modes(param["shape"])) == 1 else t for param, t in zip(params, [*x, *y], strict=True)]
        tensors = {
            param["name"]: host.Tensor(t.data_ptr(), tuple(t.shape), tuple(t.stride()), param["type"]) for param, t in zip(params, given, strict=True)
        }
        return host.LoadedKernel(self.driver, c.cubin, contract).bind(tensors)


def main() -> int:
    options = arguments()
    groups = [(t, k, int(n)) for t in options.types.split(",") for k in options.programs.split(",") for n in options.lengths.split(",")]
    all_of = {g: [Candidate(g[1], g[0], g[2], *s) for s in schedules(g[2])] for g in groups}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda c: compiled(options, c, folder), [c for group in all_of.values() for c in group]))
    if options.dry:
        for c in (c for group in all_of.values() for c in group):
            print(c.kind, c.type, c.length, c.ctas, c.threads, "own" if c.own else "", c.row, c.error)
        return int(any(c.error for group in all_of.values() for c in group))
    columns = ["kind", "type", "length", "ctas", "threads", "own", "registers", "spills", "us", "of_copy", "of_bound", "error"]
    with open(f"{options.out}.csv", "w", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(columns)
        for (of, kind, n), group in all_of.items():
            options.type = of
            Bench(options).group(kind, n, [c for c in group if not c.error])
            for c in group:
                values = {"kind": c.kind, "type": c.type, "length": c.length, "ctas": c.ctas, "threads": c.threads, "own": int(c.own), "error": c.error} | c.row
                table.writerow([f"{v:.4g}" if isinstance(v := values.get(name, ""), float) else v for name in columns])
            out.flush()
            best = sorted((c for c in group if "of_copy" in c.row), key=lambda c: -c.row["of_copy"])
            shown = [f"{c.ctas}x{c.threads}{'*' if c.own else ''} {c.row['of_copy']:.3f}" for c in best]
            print(f"{kind} {of} {n}: {', '.join(shown)}", *(f"| {c.ctas}x{c.threads} {c.error[:80]}" for c in group if c.error), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
