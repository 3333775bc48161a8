#!/usr/bin/env python3
"""Products of 8-bit floats with scales of 1x128 and 128x128 against the same product without scales, and cuBLAS.

    scripts/gpu_scaled.py --file examples/gemm_fp8_scaled.tile --tilec target/release/tilec --out /tmp/scaled
    scripts/gpu_scaled.py --file examples/gemm_fp8_scaled.tile --case M=4096,N=7168,K=2048 --dry        # without a GPU

Contestants, timed in turns on operands that are in no cache: `tilec`, the program; `unscaled`, `examples/gemm.tile` on the same operands, which promotes its
sums every 128 products; `tensor`, `torch._scaled_mm` with one scale for each operand and exact sums; `fast`, the same with `use_fast_accum`; `blocks`, the same
with scales of 1x128 and 128x128, where torch has it. `--also NAME=DEFINES` adds the program with other parameters. Ratios are the times of others over the
program's. Every element is compared with a product in f64 of what operands and scales stand for, the result filled with NaN before.
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
GROUP = 128
# Squares, and the layers of DeepSeek-V3 as DeepGEMM measures them: N and K, with 64, 128 and 4096 rows.
LAYERS = [(2112, 7168), (24576, 1536), (32768, 512), (7168, 16384), (4096, 7168), (7168, 2048)]
CASES = [(n, n, n) for n in (1024, 2048, 4096, 8192)] + [(m, n, k) for m in (64, 128, 4096) for n, k in LAYERS]
OTHERS = ["unscaled", "tensor", "fast", "blocks"]
UNSCALED = "T={T},LB=col,ALIGN=16,Out=bf16"
COLUMNS = [
    "tag", "case", "type", *(f"{n}_{c}" for n in ("tilec", *OTHERS) for c in ("us", "spread")), "tflop_s", *(f"over_{n}{c}" for n in OTHERS for c in ("", "_min", "_max")),
    "of_bound", "registers", "also", "note", "file", "options", "contract", "machine", "driver", "torch", "cudnn", "date", "tilec", "command",
]  # fmt: skip
Case = dict[str, Any]


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--file", required=True, help="the program")
    add("--tilec", default=os.environ.get("TILEC", str(ROOT / "target/release/tilec")), help="the compiler's binary")
    add("--target", default="sm_90a")
    add("--type", default="e4m3", choices=["e4m3"])
    add("--define", default="T={T}", help="compile-time parameters, %(default)s")
    add("--also", action="append", default=[], metavar="NAME=DEFINES", help="the program with other parameters, as one more contestant")
    add("--any-size", action="store_true", help="compile for large sizes, not for those of the case")
    add("--case", action="append", default=[], metavar="M=..,N=..,K=..")
    add("--rounds", type=int, default=9)
    add("--turn-ms", type=float, default=8.0)
    add("--seed", type=int, default=0)
    add("--limit", type=float, default=60.0, help="seconds of a case, after which its process is ended")
    add("--seconds", type=float, default=300.0, help="of all cases")
    add("--tag", default="", help="a label for the rows")
    add("--out", default="scaled", help="path of the CSV files, without suffix")
    add("--dry", action="store_true", help="without a GPU: compile and assemble")
    add("--child", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(words)


def cases(options: argparse.Namespace) -> list[Case]:
    given = [tuple(int(part.partition("=")[2]) for part in text.split(",")) for text in options.case]
    return [{"case": f"M={m},N={n},K={k}", "M": m, "N": n, "K": k} for m, n, k in given or CASES]


def compile_words(options: argparse.Namespace, file: str, define: str, case: Case) -> tuple[host.LaunchFile, str]:
    """A program with these parameters for a case, and its options."""
    words = ["--target", options.target, "-D", define.format(T=options.type)]
    if not options.any_size:
        words += ["--for", case["case"]]
    return host.compile_file(options.tilec, file, words), " ".join(words)


def compile_case(options: argparse.Namespace, case: Case) -> tuple[host.LaunchFile, str]:
    """The program for a case, and its options."""
    return compile_words(options, options.file, options.define, case)


@dataclass
class Operands:
    """One set: both operands, their scales, the result of the program, and that of others."""

    a: Any
    b: Any
    scale_a: Any
    scale_b: Any
    result: Any
    other: Any
    kept: list[Any]


class Bench:
    """The child's side: one device, one case after another."""

    def __init__(self, options: argparse.Namespace) -> None:
        import torch

        self.torch, self.options = torch, options
        torch.zeros(1, device="cuda")  # makes the context of this thread
        self.driver = host.Driver()

    def work(self, case: Case) -> Case:
        """A case: check, measure, check again."""
        if case.get("hello"):
            return machine(self.torch)
        torch = self.torch
        torch.manual_seed(self.options.seed)
        m, n, k = case["M"], case["N"], case["K"]
        size = m * k + n * k + 4 * (m * -(-k // GROUP))
        count = measure.input_sets(size, torch.cuda.get_device_properties(0).L2_cache_size)
        sets = [self.operands(case) for _ in range(count)]
        row: Case = {"note": "", "flops": 2 * m * n * k}
        kernels, row["options"] = compile_case(self.options, case)
        launches = [self.bind(kernels, x, self.scaled(x)) for x in sets]
        row["registers"] = max(part.kernel.registers() for part in launches[0])
        row["of_bound"] = max(self.check(x, launch) for x, launch in zip(sets[:2], launches, strict=False))
        calls: dict[str, measure.Call] = {"tilec": self.call(launches)}
        plain, _ = compile_words(self.options, str(ROOT / "examples/gemm.tile"), UNSCALED, case)
        calls["unscaled"] = self.call([self.bind(plain, x, {"A": x.a, "B": x.b, "C": x.other}) for x in sets])
        for text in self.options.also:
            name, _, define = text.partition("=")
            try:
                other, _ = compile_words(self.options, self.options.file, define, case)
                parts = [self.bind(other, x, self.scaled(x)) for x in sets]
                row["of_bound"] = max(row["of_bound"], *(self.check(x, launch) for x, launch in zip(sets[:2], parts, strict=False)))
                calls[name] = self.call(parts)
            except (host.CompileError, host.ContractError) as error:
                row["note"] += f"{name}: {str(error)[:160]} "
        self.add_libraries(calls, sets, row)
        for call in calls.values():
            for i in range(count):
                call(i)
        for x, launch in zip(sets, launches, strict=True):
            x.result.fill_(float("nan"))
            self.launch(launch)
        first = [x.result.clone() for x in sets]
        plan = measure.Plan(rounds=self.options.rounds, turn_ms=self.options.turn_ms, seed=self.options.seed)
        row["times"] = {name: list(t.us) for name, t in measure.compare(torch, calls, count, plan).items()}
        for x, launch, before in zip(sets, launches, first, strict=True):
            x.result.fill_(float("nan"))
            self.launch(launch)
            if not torch.equal(x.result, before):
                raise RuntimeError("WRONG RESULT: it changed between launches")
        return row

    def add_libraries(self, calls: dict[str, measure.Call], sets: list[Operands], row: Case) -> None:
        """What torch has of the same product; what it refuses is noted."""
        torch = self.torch
        one = torch.ones((), device="cuda")

        def scaled_mm(scales: Any, fast: bool) -> measure.Call:
            def call(i: int) -> Any:
                a, b = scales(sets[i])
                return torch._scaled_mm(sets[i].a, sets[i].b, scale_a=a, scale_b=b, out_dtype=torch.bfloat16, use_fast_accum=fast, out=sets[i].other)

            return call

        found = {
            "tensor": scaled_mm(lambda _: (one, one), False),
            "fast": scaled_mm(lambda _: (one, one), True),
            "blocks": scaled_mm(lambda x: (x.scale_a, x.scale_b), False),
        }
        for name, call in found.items():
            try:
                call(0)
                torch.cuda.synchronize()
                calls[name] = call
            except (RuntimeError, ValueError) as error:
                row["note"] += f"{name}: {str(error).splitlines()[0][:160]} "

    def operands(self, case: Case) -> Operands:
        torch = self.torch
        m, n, k = case["M"], case["N"], case["K"]
        groups, columns = -(-k // GROUP), -(-n // GROUP)
        # Rows of a TMA copy are multiples of 16 bytes.
        a, b = (torch.randn(rows, -(-k // 16) * 16, device="cuda").to(torch.float8_e4m3fn)[:, :k] for rows in (m, n))
        scale_a = (torch.rand(groups, -(-m // 4) * 4, device="cuda") + 0.5)[:, :m].T
        scale_b = (torch.rand(columns, -(-groups // 4) * 4, device="cuda") + 0.5)[:, :groups].T
        result, other = (torch.empty(m, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        return Operands(a, b.T, scale_a, scale_b, result, other, [])

    def scaled(self, x: Operands) -> dict[str, Any]:
        return {"A": x.a, "B": x.b, "scale_a": x.scale_a, "scale_b": x.scale_b, "C": x.result}

    def tensor(self, t: Any) -> host.Tensor:
        names = {self.torch.float8_e4m3fn: "e4m3", self.torch.float32: "f32", self.torch.bfloat16: "bf16"}
        return host.Tensor(t.data_ptr(), tuple(t.shape), tuple(t.stride()), names[t.dtype])

    def bind(self, kernels: host.LaunchFile, x: Operands, tensors: dict[str, Any]) -> list[host.BoundLaunch]:
        names = next(iter(kernels.sequences.values()), list(kernels.kernels))
        known = {name: self.tensor(t) for name, t in tensors.items()}
        launches = []
        for name in names:
            contract = kernels.kernels[name]
            for scratch, elem, shape, strides in contract.scratch(known):
                if scratch not in known:
                    room = self.torch.zeros(max(1, *shape) * max(1, *strides) * 8, dtype=self.torch.uint8, device="cuda")
                    x.kept.append(room)
                    known[scratch] = host.Tensor(room.data_ptr(), shape, strides, elem)
            own = {p["name"]: known[p["name"]] for p in contract.of_kind("tensor")}
            launches.append(host.LoadedKernel(self.driver, kernels.ptx, contract).bind(own))
        return launches

    def call(self, launches: list[list[host.BoundLaunch]]) -> measure.Call:
        return lambda i: self.launch(launches[i])

    def launch(self, parts: list[host.BoundLaunch]) -> None:
        for part in parts:
            part.launch(self.torch.cuda.current_stream().cuda_stream)

    def check(self, x: Operands, launch: list[host.BoundLaunch]) -> float:
        """The largest deviation of an element, of its bound: one rounding, what sums in f32 are off by, and what the instruction keeps of those of 128."""
        torch = self.torch
        x.result.fill_(float("nan"))
        self.launch(launch)
        torch.cuda.synchronize()
        k, n = x.b.shape
        rows = x.scale_a.repeat_interleave(GROUP, 1)[:, :k].double()
        columns = x.scale_b.repeat_interleave(GROUP, 0)[:k].repeat_interleave(GROUP, 1)[:, :n].double()
        a, b = x.a.to(torch.float32).double() * rows, x.b.to(torch.float32).double() * columns
        exact, sizes = a @ b, a.abs() @ b.abs()
        bound = 2.0**-8 * exact.abs() + (k * 2.0**-24 + 2.0**-12) * sizes
        off = ((x.result.double() - exact).abs() / bound).max()
        if not bool(torch.isfinite(x.result).all()) or float(off) > 1.0:
            raise RuntimeError(f"WRONG RESULT: {float(off):.2f} of the bound")
        return float(off)


def summary(options: argparse.Namespace, case: Case, answer: Case) -> Case:
    """The row of a case."""
    row: Case = {"case": case["case"], **{key: answer[key] for key in answer if key in COLUMNS}}
    times = {name: measure.Times(tuple(us)) for name, us in answer.get("times", {}).items()}
    also = {name for text in options.also for name in [text.partition("=")[0]]}
    for name, t in times.items():
        if name not in also:
            row |= {f"{name}_us": t.median, f"{name}_spread": t.spread}
    row["also"] = " ".join(f"{name}={times[name].median:.2f}" for name in times if name in also)
    if "tilec" in times:
        row["tflop_s"] = answer["flops"] / times["tilec"].median / 1e6
        for name in OTHERS:
            if name in times:
                ratio = measure.Ratio.of(times[name], times["tilec"])
                row |= {f"over_{name}": ratio.median, f"over_{name}_min": ratio.least, f"over_{name}_max": ratio.greatest}
    if "error" in answer:
        row["note"] = answer["error"]
    return row


def short(rows: list[Case]) -> str:
    """The table for the end of the output."""
    figures = {
        "us": ("tilec_us", 1), "TFLOP/s": ("tflop_s", 0), **{f"{n} us": (f"{n}_us", 1) for n in OTHERS}, **{f"over {n}": (f"over_{n}", 3) for n in OTHERS},
        "of bound": ("of_bound", 3), "registers": ("registers", 0),
    }  # fmt: skip
    return case_table(rows, figures, {"also": "also", "note": "note"}, width=200)


def main() -> int:
    options = arguments()
    parts = suite.Parts(
        title=f"{options.type}, scales of 1x128 and 128x128",
        cases=lambda: cases(options),
        dry=lambda: dry(cases(options), lambda case: compile_case(options, case)),
        work=lambda: Bench(options).work,
        row_of=lambda case, answer: summary(options, case, answer),
        table=short,
    )
    return suite.run(__file__, options, COLUMNS, parts)


if __name__ == "__main__":
    sys.exit(main())
