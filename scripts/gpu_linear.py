#!/usr/bin/env python3
"""Products of triangles, symmetric results and complex matrices against cuBLAS, stencils against a copy of the same bytes.

    scripts/gpu_linear.py --kind syrk --tilec target/release/tilec --out /tmp/syrk
    scripts/gpu_linear.py --kind trmm --type tf32 --case M=4096,N=4096 --dry        # without a GPU

`syrk`, `trmm`: against cuBLAS's function of that name (`blas`, tf32 alone: it has none of 16 bits), and PyTorch's product of the whole matrices (`dense`). `complex`: against cuBLAS's product of
interleaved complex numbers (`blas`, tf32), and PyTorch's real product of as many operations, M x 2N x 2K (`dense`). `stencil`, `stencil3d`: against PyTorch's copy of the matrix (`copy`). All are timed in
turns. A ratio of 1 says that ours is as fast. Results are compared with sums in double precision, filled with NaN before, and must be the same after the timing.
"""

import argparse
import ctypes
import os
import pathlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from gpu import contract_host as host  # noqa: E402
from gpu import measure, suite  # noqa: E402
from gpu.assemble import dry  # noqa: E402
from gpu.report import case_table, machine  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
TORCH_TYPES = {"bf16": "bfloat16", "f16": "float16", "tf32": "float32", "f32": "float32"}
# Of what the sums of magnitudes are: what operands are rounded by, and sums in f32. The host rounds the operands of tf32 to 11 bits itself.
BOUNDS = {"bf16": 2.0**-16, "f16": 2.0**-16, "tf32": 2.0**-16, "f32": 2.0**-18}
OTHERS = ["blas", "dense", "copy"]
COLUMNS = [
    "tag", "kind", "case", "type", *(f"{n}_{c}" for n in ("ours", *OTHERS) for c in ("us", "spread")), "rate", "unit", *(f"ratio_{n}{c}" for n in OTHERS for c in ("", "_min", "_max")), "of_bound",
    "registers", "note", "file", "options", "contract", "machine", "driver", "torch", "cudnn", "date", "tilec", "command",
]  # fmt: skip
Case = dict[str, Any]


@dataclass
class Job:
    """One set of inputs: tensors by their names in the program, outputs, what they must be with the sums of magnitudes, and what is timed beside."""

    tensors: dict[str, Any]
    outputs: tuple[str, ...]
    exact: Callable[[], list[tuple[Any, Any]]]
    others: dict[str, Callable[[], Any]]


@dataclass(frozen=True)
class Kind:
    """A program."""

    file: str
    cases: tuple[str, ...]
    define: str
    make: Callable[["Bench", Case], Job]
    # Operations, or bytes, of a call.
    work: Callable[[Case, int], float]
    bytes_of: Callable[[Case, int], float]
    memory: bool = False


def syrk(bench: "Bench", case: Case) -> Job:
    torch, m, k = bench.torch, case["M"], case["K"]
    a, c = bench.random(m, k), bench.result(m, m)
    other = bench.result(m, m)

    def exact() -> list[tuple[Any, Any]]:
        x = a.double()
        # Sums of squares are of one sign: what is cut off of each sum adds up with their number.
        return [(x @ x.T, x.abs() @ x.abs().T * max(1, k / 512))]

    # The lower triangle of column-major C is A·Aᵀ of a column-major A of K rows.
    blas = bench.blas("cublasSsyrk_v2", [0, 1, m, k], [1.0], [(a, k)], [0.0], [(other, m)])
    return Job({"A": a, "C": c}, ("C",), exact, {"blas": blas, "dense": lambda: torch.mm(a, a.T)})


def trmm(bench: "Bench", case: Case) -> Job:
    torch, m, n = bench.torch, case["M"], case["N"]
    lower, b, c = bench.random(m, m), bench.random(n, m).T, bench.result(m, n)
    other = bench.result(n, m)

    def exact() -> list[tuple[Any, Any]]:
        x, y = torch.tril(lower.double()), b.double()
        return [(x @ y, x.abs() @ y.abs())]

    # Left, upper, transposed: the row-major lower triangle; B and the result are column-major.
    blas = bench.blas("cublasStrmm_v2", [0, 1, 1, 0, m, n], [1.0], [(lower, m), (b, m)], [], [(other, m)])
    return Job({"L": lower, "B": b, "C": c}, ("C",), exact, {"blas": blas, "dense": lambda: torch.mm(lower, b)})


def complex_product(bench: "Bench", case: Case) -> Job:
    torch, m, n, k = bench.torch, case["M"], case["N"], case["K"]
    ar, ai, br, bi = bench.random(m, k), bench.random(m, k), bench.random(n, k).T, bench.random(n, k).T
    tensors = {"A_re": ar, "A_im": ai, "B_re": br, "B_im": bi, "C_re": bench.result(m, n), "C_im": bench.result(m, n)}

    def exact() -> list[tuple[Any, Any]]:
        x, u, y, v = (t.double() for t in (ar, ai, br, bi))
        size = x.abs() @ y.abs() + u.abs() @ v.abs()
        return [(x @ y - u @ v, size), (x @ v + u @ y, x.abs() @ v.abs() + u.abs() @ y.abs())]

    wide, tall = torch.cat([ar, ai], 1), torch.cat([torch.cat([br, bi], 1), torch.cat([-bi, br], 1)], 0).T.contiguous().T
    a, b = torch.complex(ar.float(), ai.float()), torch.complex(br.float(), bi.float()).T.contiguous().T
    others: dict[str, Callable[[], Any]] = {"dense": lambda: torch.mm(wide, tall)}
    if bench.options.type in ("tf32", "f32"):
        others["blas"] = lambda: torch.mm(a, b)
    return Job(tensors, ("C_re", "C_im"), exact, others)


def neighbours(bench: "Bench", case: Case, shape: tuple[int, ...], weights: list[float], scale: float) -> Job:
    torch = bench.torch
    x, y = bench.random(*shape), bench.result(*shape, dtype=bench.dtype)
    copied = torch.empty_like(x)

    def exact() -> list[tuple[Any, Any]]:
        grid = [x.double()]
        for d in range(len(shape)):
            # Steps along one dimension more, each of what there is, by how many dimensions neighbours lie elsewhere.
            apart = [torch.zeros_like(grid[0]) for _ in range(len(grid) + 1)]
            for i, t in enumerate(grid):
                apart[i] += t
                n = shape[d]
                near = torch.zeros_like(t)
                near.narrow(d, 1, n - 1).add_(t.narrow(d, 0, n - 1))
                near.narrow(d, 0, n - 1).add_(t.narrow(d, 1, n - 1))
                apart[i + 1] += near
            grid = apart
        change = sum(w * t for w, t in zip(weights, grid, strict=False))
        # Elements are rounded once to their type.
        return [(grid[0] + 0.1 * scale * change, (grid[0].abs() + 200 * 0.1) * (1 if bench.options.type == "f32" else 2**8))]

    return Job({"X": x, "Y": y}, ("Y",), exact, {"copy": lambda: copied.copy_(x)})


def plane(bench: "Bench", case: Case) -> Job:
    weights = [-20.0, 4.0, 1.0] if case.get("POINTS") == 9 else [-4.0, 1.0, 0.0]
    return neighbours(bench, case, (case["M"], case["N"]), weights, 1 / 6 if case.get("POINTS") == 9 else 1.0)


def space(bench: "Bench", case: Case) -> Job:
    weights = [-6.0, 1.0, 0.0, 0.0] if case.get("POINTS") == 7 else [-128.0, 14.0, 3.0, 1.0]
    return neighbours(bench, case, (case["Z"], case["M"], case["N"]), weights, 1.0)


KINDS = {
    "syrk": Kind(
        "examples/syrk.tile", ("M=2048,K=2048", "M=4096,K=4096", "M=8192,K=1024", "M=8192,K=8192"), "WM=64,WN=128", syrk,
        lambda c, _: c["M"] * (c["M"] + 1) * c["K"], lambda c, b: b * c["M"] * c["K"] + 4 * c["M"] ** 2,
    ),
    "trmm": Kind(
        "examples/trmm.tile", ("M=2048,N=2048", "M=4096,N=4096", "M=8192,N=2048", "M=8192,N=8192"), "LB=col", trmm,
        lambda c, _: c["M"] * (c["M"] + 1) * c["N"], lambda c, b: b * (c["M"] ** 2 / 2 + c["M"] * c["N"]) + 4 * c["M"] * c["N"],
    ),
    "complex": Kind(
        "examples/gemm_complex.tile", ("M=2048,N=2048,K=2048", "M=4096,N=4096,K=4096", "M=8192,N=4096,K=1024"), "LB=col", complex_product,
        lambda c, _: 8 * c["M"] * c["N"] * c["K"], lambda c, b: 2 * b * (c["M"] + c["N"]) * c["K"] + 8 * c["M"] * c["N"],
    ),
    "stencil": Kind(
        "examples/stencil.tile", ("M=8192,N=8192,POINTS=5", "M=8192,N=8192,POINTS=9", "M=16384,N=16384,POINTS=9"), "", plane,
        lambda c, b: 2 * b * c["M"] * c["N"], lambda c, b: 2 * b * c["M"] * c["N"], memory=True,
    ),
    "stencil3d": Kind(
        "examples/stencil3d.tile", ("Z=256,M=256,N=256,POINTS=7", "Z=512,M=512,N=512,POINTS=7", "Z=256,M=256,N=256,POINTS=27", "Z=512,M=512,N=512,POINTS=27"), "", space,
        lambda c, b: 2 * b * c["Z"] * c["M"] * c["N"], lambda c, b: 2 * b * c["Z"] * c["M"] * c["N"], memory=True,
    ),
}  # fmt: skip


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--kind", required=True, choices=sorted(KINDS))
    add("--file", help="the program, if it is another one than the example")
    add("--tilec", default=os.environ.get("TILEC", str(ROOT / "target/release/tilec")), help="the compiler's binary")
    add("--target", default="sm_90a")
    add("--type", default="f16", choices=sorted(TORCH_TYPES))
    add("--align", type=int, help="ALIGN, if it is not what 16 bytes have")
    add("--define", default="", metavar="NAME=VALUE,..", help="more compile-time parameters")
    add("--case", action="append", default=[], metavar="M=..,N=..", help="a case, instead of the kind's own; POINTS is a compile-time parameter")
    add("--against", default=",".join(OTHERS), help="what is timed beside the program, of %(default)s")
    add("--rounds", type=int, default=9)
    add("--turn-ms", type=float, default=10.0)
    add("--seed", type=int, default=0)
    add("--limit", type=float, default=60.0, help="seconds of a case, after which its process is ended")
    add("--seconds", type=float, default=300.0, help="of all cases")
    add("--tag", default="", help="a label for the rows")
    add("--out", default="linear", help="path of the CSV files, without suffix")
    add("--dry", action="store_true", help="without a GPU: compile and assemble")
    add("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    options.file = options.file or str(ROOT / KINDS[options.kind].file)
    return options


def cases(options: argparse.Namespace) -> list[Case]:
    given = options.case or KINDS[options.kind].cases
    return [{"case": text, **{name: int(value) for name, value in (part.split("=") for part in text.split(","))}} for text in given]


def compile_case(options: argparse.Namespace, case: Case) -> tuple[host.LaunchFile, str]:
    """The program for a case, and its options."""
    align = options.align or 128 // host.BITS[options.type]
    points = f"POINTS={case['POINTS']}" if "POINTS" in case else ""
    defined = ",".join(part for part in (f"T={options.type},ALIGN={align}", KINDS[options.kind].define, points, options.define) if part)
    words = ["--target", options.target, "-D", defined]
    if not KINDS[options.kind].memory:
        words += ["--for", ",".join(f"{name}={case[name]}" for name in "MNK" if name in case)]
    return host.compile_file(options.tilec, options.file, words), " ".join(words)


class Bench:
    """The child's side: one device, one case after another."""

    def __init__(self, options: argparse.Namespace) -> None:
        import torch

        self.torch, self.options = torch, options
        torch.zeros(1, device="cuda")  # makes the context of this thread
        torch.backends.cuda.matmul.allow_tf32 = options.type == "tf32"
        self.driver = host.Driver()
        self.dtype = getattr(torch, TORCH_TYPES[options.type])
        self.library = ctypes.CDLL("libcublas.so.13" if torch.version.cuda.startswith("13") else "libcublas.so.12")

    def random(self, *shape: int) -> Any:
        values = self.torch.randn(*shape, device="cuda")
        if self.options.type == "tf32":
            bits = values.view(self.torch.int32)
            values = ((bits + 0x1000) & ~0x1FFF).view(self.torch.float32)
        return values.to(self.dtype)

    def result(self, *shape: int, dtype: Any = None) -> Any:
        return self.torch.empty(*shape, device="cuda", dtype=dtype or self.torch.float32)

    def blas(self, name: str, numbers: list[int], alpha: list[float], read: list[tuple[Any, int]], beta: list[float], written: list[tuple[Any, int]]) -> Callable[[], Any]:
        """A call of cuBLAS on PyTorch's handle, of tensors of f32."""
        function = getattr(self.library, name)
        scalars = [[ctypes.byref(ctypes.c_float(x)) for x in given] for given in (alpha, beta)]
        places = [[part for t, ld in tensors for part in (ctypes.c_void_p(t.data_ptr()), ctypes.c_int(ld))] for tensors in (read, written)]

        def call(kept: Any = (read, written)) -> None:
            # Calls have addresses alone: whose memory they are of must live as long.
            handle = ctypes.c_void_p(self.torch.cuda.current_blas_handle())
            status = function(handle, *(ctypes.c_int(n) for n in numbers), *scalars[0], *places[0], *scalars[1], *places[1])
            if status:
                raise RuntimeError(f"{name} ended with status {status}")

        return call

    def work(self, case: Case) -> Case:
        """A case: check, measure, check again."""
        if case.get("hello"):
            return machine(self.torch)
        torch, kind = self.torch, KINDS[self.options.kind]
        kernels, words = compile_case(self.options, case)
        torch.manual_seed(self.options.seed)
        size = int(kind.bytes_of(case, self.dtype.itemsize))
        jobs = [kind.make(self, case) for _ in range(measure.input_sets(size, torch.cuda.get_device_properties(0).L2_cache_size))]
        contract = next(iter(kernels.kernels.values()))
        loaded = host.LoadedKernel(self.driver, kernels.ptx, contract)
        elems = {param["name"]: param["type"] for param in contract.of_kind("tensor")}
        launches = []
        for job in jobs:
            tensors = {name: host.Tensor(t.data_ptr(), tuple(t.shape), tuple(t.stride()), elems[name]) for name, t in job.tensors.items()}
            launches.append(loaded.bind(tensors))
        row: Case = {"note": "", "options": words, "registers": loaded.registers()}

        def launch(index: int) -> None:
            launches[index].launch(torch.cuda.current_stream().cuda_stream)

        row["of_bound"] = max(self.check(job, lambda i=i: launch(i)) for i, job in enumerate(jobs[:2]))
        calls: dict[str, measure.Call] = {"ours": launch}
        for name in jobs[0].others:
            is_blas = name == "blas" and kind.file != KINDS["complex"].file
            if name in self.options.against.split(",") and not (is_blas and self.options.type not in ("tf32", "f32")):
                calls[name] = lambda i, name=name: jobs[i].others[name]()
        for call in calls.values():
            call(0)
        plan = measure.Plan(rounds=self.options.rounds, turn_ms=self.options.turn_ms, seed=self.options.seed)
        row["times"] = {name: list(t.us) for name, t in measure.compare(torch, calls, len(jobs), plan).items()}
        row["of_bound"] = max(row["of_bound"], self.check(jobs[0], lambda: launch(0)))
        row["work"] = kind.work(case, self.dtype.itemsize)
        return row

    def check(self, job: Job, launch: Callable[[], None]) -> float:
        """The largest deviation, of the bound."""
        for name in job.outputs:
            job.tensors[name].fill_(float("nan"))
        launch()
        self.torch.cuda.synchronize()
        worst = 0.0
        for name, (exact, size) in zip(job.outputs, job.exact(), strict=True):
            got = job.tensors[name].double()
            if "FULL=0" in self.options.define:
                # One triangle alone is stored.
                got, exact = self.torch.tril(got), self.torch.tril(exact)
            off = (got - exact).abs() / size.clamp_min(1e-30)
            if not bool(self.torch.isfinite(off).all()):
                raise RuntimeError("WRONG RESULT: elements are missing")
            worst = max(worst, float(off.max()) / BOUNDS[self.options.type])
        if worst > 1.0:
            raise RuntimeError(f"WRONG RESULT: {worst:.2f} of the bound")
        return worst


def summary(options: argparse.Namespace, case: Case, answer: Case) -> Case:
    """The row of a case."""
    row: Case = {"kind": options.kind, "case": case["case"], **{key: answer[key] for key in answer if key in COLUMNS}}
    times = {name: measure.Times(tuple(us)) for name, us in answer.get("times", {}).items()}
    for name, t in times.items():
        row |= {f"{name}_us": t.median, f"{name}_spread": t.spread}
    if "ours" in times:
        row["unit"] = "GB/s" if KINDS[options.kind].memory else "TFLOP/s"
        row["rate"] = answer["work"] / times["ours"].median / (1e3 if row["unit"] == "GB/s" else 1e6)
    for name in OTHERS:
        if name in times:
            ratio = measure.Ratio.of(times[name], times["ours"])
            row |= {f"ratio_{name}": ratio.median, f"ratio_{name}_min": ratio.least, f"ratio_{name}_max": ratio.greatest}
    if "error" in answer:
        row["note"] = answer["error"]
    return row


def short(rows: list[Case]) -> str:
    """The table for the end of the output."""
    named = [name for name in OTHERS if any(f"ratio_{name}" in row for row in rows)]
    figures = {"us": ("ours_us", 1), "rate": ("rate", 0), "spread": ("ours_spread", 3)}
    for name in named:
        figures |= {f"{name} us": (f"{name}_us", 1), f"of {name}": (f"ratio_{name}", 3), "least": (f"ratio_{name}_min", 3), "most": (f"ratio_{name}_max", 3)}
    figures |= {"of bound": ("of_bound", 3)}
    return case_table(rows, figures, {"registers": "registers", "note": "note"})


def main() -> int:
    options = arguments()
    parts = suite.Parts(
        title=f"{options.kind} {options.type}",
        cases=lambda: cases(options),
        dry=lambda: dry(cases(options), lambda case: compile_case(options, case)),
        work=lambda: Bench(options).work,
        row_of=lambda case, answer: summary(options, case, answer),
        table=short,
    )
    return suite.run(__file__, options, COLUMNS, parts)


if __name__ == "__main__":
    sys.exit(main())
