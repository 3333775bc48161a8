#!/usr/bin/env python3
"""Products with quantised weights against cuBLAS on weights of 16 bits.

    scripts/gpu_quantized.py --kind w4a16 --file examples/gemm_w4a16.tile --tilec target/release/tilec --out /tmp/w4a16
    scripts/gpu_quantized.py --kind w8a16 --file examples/gemm_w8a16.tile --case M=16,N=4096,K=4096 --dry        # without a GPU

`cublas` is `torch.matmul` of the same shape, on the weights as numbers of the activations' type. Both are timed in turns, and no call finds its operands in the cache.
`over cublas` is its time over the program's. Every element is compared with a product in f64 of what the weights stand for, the result filled with NaN before.
"""

import argparse
import os
import pathlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from gpu import contract_host as host  # noqa: E402
from gpu import measure, suite  # noqa: E402
from gpu.assemble import dry  # noqa: E402
from gpu.report import case_table, machine  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
MATRICES = [(4096, 4096), (14336, 4096), (4096, 14336), (8192, 8192)]
ROWS = [1, 16, 64, 256, 1024, 4096]
TORCH_TYPES = {"bf16": "bfloat16", "f16": "float16"}
UNITS = {"bf16": 2.0**-8, "f16": 2.0**-11}
COLUMNS = [
    "tag", "kind", "case", "type", "group", *(f"{n}_{c}" for n in ("tilec", "cublas") for c in ("us", "spread")), "tflop_s", "gb_s", "over_cublas", "over_cublas_min",
    "over_cublas_max", "of_bound", "registers", "note", "file", "options", "contract", "machine", "driver", "torch", "cudnn", "date", "tilec", "command",
]  # fmt: skip
Case = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """Weights of so many bits, of a type; whether groups have zero points."""

    elem: str
    bits: int
    zeros: bool


KINDS = {"w4a16": Kind("u4", 4, True), "w8a16": Kind("i8", 8, False)}


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--kind", required=True, choices=sorted(KINDS))
    add("--file", required=True, help="the program")
    add("--tilec", default=os.environ.get("TILEC", str(ROOT / "target/release/tilec")), help="the compiler's binary")
    add("--target", default="sm_90a")
    add("--type", default="bf16", choices=sorted(TORCH_TYPES))
    add("--group", type=int, default=128, help="weights that share a scale, %(default)s")
    add("--define", default="T={T},TW={TW},G={G}", help="compile-time parameters, %(default)s")
    add("--any-size", action="store_true", help="compile for large sizes, not for those of the case")
    add("--case", action="append", default=[], metavar="M=..,N=..,K=..")
    add("--rounds", type=int, default=9)
    add("--turn-ms", type=float, default=8.0)
    add("--seed", type=int, default=0)
    add("--limit", type=float, default=60.0, help="seconds of a case, after which its process is ended")
    add("--seconds", type=float, default=300.0, help="of all cases")
    add("--tag", default="", help="a label for the rows")
    add("--out", default="quantized", help="path of the CSV files, without suffix")
    add("--dry", action="store_true", help="without a GPU: compile and assemble")
    add("--child", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(words)


def cases(options: argparse.Namespace) -> list[Case]:
    given = [tuple(int(part.partition("=")[2]) for part in text.split(",")) for text in options.case]
    return [{"case": f"M={m},N={n},K={k}", "M": m, "N": n, "K": k} for m, n, k in given or [(m, n, k) for n, k in MATRICES for m in ROWS]]


def compile_case(options: argparse.Namespace, case: Case) -> tuple[host.LaunchFile, str]:
    """The program for a case, and its options."""
    places = {"T": options.type, "TW": KINDS[options.kind].elem, "G": options.group}
    words = ["--target", options.target, "-D", options.define.format(**places)]
    if not options.any_size:
        words += ["--for", case["case"]]
    return host.compile_file(options.tilec, options.file, words), " ".join(words)


@dataclass
class Operands:
    """One set: activations, what the program is given of the weights, the weights as numbers, both results."""

    a: Any
    tensors: dict[str, host.Tensor]
    kept: list[Any]
    weights: Any
    result: Any
    other: Any


class Bench:
    """The child's side: one device, one case after another."""

    def __init__(self, options: argparse.Namespace) -> None:
        import torch

        self.torch, self.options, self.kind = torch, options, KINDS[options.kind]
        torch.zeros(1, device="cuda")  # makes the context of this thread
        self.driver = host.Driver()
        self.dtype = getattr(torch, TORCH_TYPES[options.type])

    def work(self, case: Case) -> Case:
        """A case: check, measure, check again."""
        if case.get("hello"):
            return machine(self.torch)
        torch = self.torch
        kernels, words = compile_case(self.options, case)
        torch.manual_seed(self.options.seed)
        m, n, k = case["M"], case["N"], case["K"]
        size = n * k * self.kind.bits // 8 + m * k * 2
        count = measure.input_sets(size, torch.cuda.get_device_properties(0).L2_cache_size)
        sets = [self.operands(case) for _ in range(count)]
        launches = [self.bind(kernels, case, x) for x in sets]
        row: Case = {"note": "", "options": words, "registers": launches[0].registers}
        row["of_bound"] = max(self.check(x, launch) for x, launch in zip(sets[:2], launches, strict=False))
        calls: dict[str, measure.Call] = {
            "tilec": lambda i: launches[i].launch(torch.cuda.current_stream().cuda_stream),
            "cublas": lambda i: torch.matmul(sets[i].a, sets[i].weights, out=sets[i].other),
        }
        for call in calls.values():
            for i in range(count):
                call(i)
        first = [x.result.clone() for x in sets]
        plan = measure.Plan(rounds=self.options.rounds, turn_ms=self.options.turn_ms, seed=self.options.seed)
        row["times"] = {name: list(t.us) for name, t in measure.compare(torch, calls, count, plan).items()}
        for x, launch, before in zip(sets, launches, first, strict=True):
            x.result.fill_(float("nan"))
            launch.launch(torch.cuda.current_stream().cuda_stream)
            if not torch.equal(x.result, before):
                raise RuntimeError("WRONG RESULT: it changed between launches")
        row |= {"flops": 2 * m * n * k, "bytes": size + m * n * 2}
        return row

    def operands(self, case: Case) -> Operands:
        torch, kind, group = self.torch, self.kind, self.options.group
        m, n, k = case["M"], case["N"], case["K"]
        groups = -(-k // group)
        a = torch.randn(m, k, device="cuda").to(self.dtype)
        scale = (torch.rand(groups, n, device="cuda") * 0.02 + 0.005).to(self.dtype)
        per_row = scale.repeat_interleave(group, 0)[:k]
        kept: list[Any] = [a, scale]
        shapes = (groups, n), (n, 1)
        tensors = {"scale": host.Tensor(scale.data_ptr(), *shapes, self.options.type), "A": host.Tensor(a.data_ptr(), (m, k), (k, 1), self.options.type)}
        if kind.bits == 4:
            codes = torch.randint(16, (n, k), device="cuda", dtype=torch.uint8)
            zeros = torch.randint(16, (groups, n), device="cuda", dtype=torch.uint8)
            packed, packed_zeros = (t[:, 0::2] | t[:, 1::2] << 4 for t in (codes, zeros))
            kept += [packed, packed_zeros]
            numbers = codes.T.float() - zeros.repeat_interleave(group, 0)[:k].float()
            tensors |= {"zero": host.Tensor(packed_zeros.data_ptr(), *shapes, kind.elem)}
        else:
            packed = torch.randint(-128, 128, (n, k), device="cuda", dtype=torch.int8)
            kept.append(packed)
            numbers = packed.T.float()
        weights = (numbers * per_row.float()).to(self.dtype)
        result, other = (torch.empty(m, n, device="cuda", dtype=self.dtype) for _ in range(2))
        tensors |= {"W": host.Tensor(packed.data_ptr(), (k, n), (1, k), kind.elem), "C": host.Tensor(result.data_ptr(), (m, n), (n, 1), self.options.type)}
        return Operands(a, tensors, kept, weights, result, other)

    def bind(self, kernels: host.LaunchFile, case: Case, x: Operands) -> "Launches":
        names = next(iter(kernels.sequences.values()), list(kernels.kernels))
        tensors, launches = dict(x.tensors), []
        for name in names:
            contract = kernels.kernels[name]
            for scratch, elem, shape, strides in contract.scratch(tensors):
                if scratch not in tensors:
                    room = self.torch.zeros(max(1, *shape) * max(1, *strides) * 8, dtype=self.torch.uint8, device="cuda")
                    x.kept.append(room)
                    tensors[scratch] = host.Tensor(room.data_ptr(), shape, strides, elem)
            own = {p["name"]: self.as_declared(p, tensors[p["name"]]) for p in contract.of_kind("tensor")}
            launches.append(host.LoadedKernel(self.driver, kernels.ptx, contract).bind(own))
        return Launches(launches)

    def as_declared(self, param: Any, tensor: host.Tensor) -> host.Tensor:
        """Scales of groups, for a program that has a row for each weight: of each group as a mode of stride 0."""
        if len(host.modes(param["shape"])) == len(tensor.shape):
            return tensor
        (groups, n), (ld, one) = tensor.shape, tensor.strides
        return host.Tensor(tensor.address, (groups, self.options.group, n), (ld, 0, one), tensor.elem)

    def check(self, x: Operands, launch: "Launches") -> float:
        """The largest deviation of an element, of its bound: one rounding, and what sums in f32 of so many products are off by."""
        torch = self.torch
        x.result.fill_(float("nan"))
        launch.launch(torch.cuda.current_stream().cuda_stream)
        torch.cuda.synchronize()
        exact = x.a.double() @ x.weights.double()
        sizes = x.a.abs().float() @ x.weights.abs().float()
        bound = UNITS[self.options.type] * exact.abs() + x.a.shape[1] * 2.0**-24 * sizes.double()
        off = ((x.result.double() - exact).abs() / bound).max()
        if not bool(torch.isfinite(x.result).all()) or float(off) > 1.0:
            raise RuntimeError(f"WRONG RESULT: {float(off):.2f} of the bound")
        return float(off)


@dataclass
class Launches:
    """The launches of a program, one after the other."""

    parts: list[host.BoundLaunch]

    @property
    def registers(self) -> int:
        return max(part.kernel.registers() for part in self.parts)

    def launch(self, stream: int) -> None:
        for part in self.parts:
            part.launch(stream)


def summary(options: argparse.Namespace, case: Case, answer: Case) -> Case:
    """The row of a case."""
    row: Case = {"kind": options.kind, "group": options.group, "case": case["case"], **{key: answer[key] for key in answer if key in COLUMNS}}
    times = {name: measure.Times(tuple(us)) for name, us in answer.get("times", {}).items()}
    for name, t in times.items():
        row |= {f"{name}_us": t.median, f"{name}_spread": t.spread}
    if "cublas" in times:
        ratio = measure.Ratio.of(times["cublas"], times["tilec"])
        us = times["tilec"].median
        row |= {"over_cublas": ratio.median, "over_cublas_min": ratio.least, "over_cublas_max": ratio.greatest, "gb_s": answer["bytes"] / us / 1e3, "tflop_s": answer["flops"] / us / 1e6}
    if "error" in answer:
        row["note"] = answer["error"]
    return row


def short(rows: list[Case]) -> str:
    """The table for the end of the output."""
    figures = {
        "us": ("tilec_us", 1), "cublas us": ("cublas_us", 1), "over cublas": ("over_cublas", 3), "least": ("over_cublas_min", 3), "most": ("over_cublas_max", 3),
        "TFLOP/s": ("tflop_s", 0), "GB/s": ("gb_s", 0), "of bound": ("of_bound", 3), "registers": ("registers", 0),
    }  # fmt: skip
    return case_table(rows, figures)


def main() -> int:
    options = arguments()
    parts = suite.Parts(
        title=f"{options.kind} {options.type}, groups of {options.group}",
        cases=lambda: cases(options),
        dry=lambda: dry(cases(options), lambda case: compile_case(options, case)),
        work=lambda: Bench(options).work,
        row_of=lambda case, answer: summary(options, case, answer),
        table=short,
    )
    return suite.run(__file__, options, COLUMNS, parts)


if __name__ == "__main__":
    sys.exit(main())
