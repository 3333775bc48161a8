#!/usr/bin/env python3
"""Programs over the rows of a matrix against PyTorch and a copy of the same bytes.

    scripts/gpu_rows.py --kind softmax --file examples/softmax_rows.tile --tilec target/release/tilec --out /tmp/softmax
    scripts/gpu_rows.py --kind softmax --file examples/softmax_rows.tile --case M=4096,N=4096 --dry        # without a GPU

`copy` is PyTorch's copy of as many bytes as the program reads and writes, `eager` PyTorch's own function, `compiled` the same through torch.compile. All are timed
in turns. `of copy` is the copy's time over the program's: the share of the memory's rate that is reached, where the program reads
and writes each matrix once. Every element is compared with a reference in f64, the result filled with NaN before.
"""

import argparse
import os
import pathlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from gpu import contract_host as host  # noqa: E402
from gpu import measure, suite, supervise  # noqa: E402
from gpu.assemble import dry  # noqa: E402
from gpu.report import machine, text_table  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = [(65536, 256), (4096, 1024), (16384, 1024), (16384, 2048), (4096, 4096), (16384, 4096), (8192, 8192), (4096, 16384), (2048, 32768)]
TORCH_TYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}
# Of a result's size: one rounding to the type, and what f32 sums of a row are off by.
BOUNDS = {"f32": 2e-5, "bf16": 2.0**-8, "f16": 2.0**-10}
# PyTorch copies more bytes at once at a lower rate.
PIECE = 1 << 28
CONTESTANTS = ["tilec", "copy", "eager", "compiled"]
COLUMNS = [
    "tag", "kind", "case", "type", *(f"{n}_{c}" for n in CONTESTANTS for c in ("us", "spread")), "gb_s", "of_copy", "of_copy_min", "of_copy_max", "over_eager",
    "over_compiled", "of_bound", "registers", "note", "file", "options", "contract", "machine", "driver", "torch", "cudnn", "date", "tilec", "command",
]  # fmt: skip
Case = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """What a program computes: its parameters in order, and the same in PyTorch.

    A `matrix` has rows, `shares` are one whose rows add up to 1, a `vector` is as long as a row, `labels` are a number below its length for each row, a `column` is a number for each row.
    """

    takes: tuple[str, ...]
    makes: tuple[str, ...]
    compute: Callable[..., tuple[Any, ...]]
    # The size of what a row's results are differences of, where that is more than they are.
    magnitude: Callable[..., Any] | None = None

    def matrices(self) -> int:
        """Matrices that are read or written."""
        return sum(what in ("matrix", "shares") for what in [*self.takes, *self.makes])


def rms_norm(torch: Any, x: Any, w: Any) -> tuple[Any, ...]:
    return (torch.nn.functional.rms_norm(x, (x.shape[1],), w[0], 1e-6),)


def layer_norm(torch: Any, x: Any, r: Any, w: Any, b: Any) -> tuple[Any, ...]:
    s = x + r
    return s, torch.nn.functional.layer_norm(s, (x.shape[1],), w[0], b[0], 1e-5)


def softmax_backward(torch: Any, y: Any, d: Any) -> tuple[Any, ...]:
    return (torch._softmax_backward_data(d, y, 1, y.dtype),)


def terms_of_softmax_backward(y: Any, d: Any) -> Any:
    return (y * (d.abs() + (y * d).abs().sum(1, keepdim=True))).amax(1)


def cross_entropy(torch: Any, x: Any, labels: Any) -> tuple[Any, ...]:
    index = labels.long()
    logs = torch.log_softmax(x if x.dtype == torch.float64 else x.float(), 1)
    gradient = logs.exp()
    gradient.scatter_add_(1, index, torch.full_like(index, -1, dtype=gradient.dtype))
    return -logs.gather(1, index), gradient.to(x.dtype)


KINDS = {
    "softmax": Kind(("matrix",), ("matrix",), lambda torch, x: (torch.softmax(x, 1),)),
    "log_softmax": Kind(("matrix",), ("matrix",), lambda torch, x: (torch.log_softmax(x, 1),)),
    "softmax_backward": Kind(("shares", "matrix"), ("matrix",), softmax_backward, terms_of_softmax_backward),
    "rms_norm": Kind(("matrix", "vector"), ("matrix",), rms_norm),
    "layer_norm": Kind(("matrix", "matrix", "vector", "vector"), ("matrix", "matrix"), layer_norm),
    "cross_entropy": Kind(("matrix", "labels"), ("column", "matrix"), cross_entropy),
}


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--kind", required=True, choices=sorted(KINDS))
    add("--file", required=True, help="the program")
    add("--tilec", default=os.environ.get("TILEC", str(ROOT / "target/release/tilec")), help="the compiler's binary")
    add("--target", default="sm_90a")
    add("--type", default="f32", choices=sorted(TORCH_TYPES))
    add("--define", default="T={T},BM={BM},BN={BN},ALIGN={ALIGN}", help="compile-time parameters, %(default)s; BN is N, or the next power of two")
    add("--case", action="append", default=[], metavar="M=..,N=..")
    add("--against", default=",".join(CONTESTANTS[1:]), help="what is timed beside the program, %(default)s")
    add("--rounds", type=int, default=9)
    add("--turn-ms", type=float, default=8.0)
    add("--seed", type=int, default=0)
    add("--limit", type=float, default=60.0, help="seconds of a case, after which its process is ended")
    add("--seconds", type=float, default=300.0, help="of all cases")
    add("--tag", default="", help="a label for the rows")
    add("--out", default="rows", help="path of the CSV files, without suffix")
    add("--dry", action="store_true", help="without a GPU: compile and assemble")
    add("--child", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(words)


def cases(options: argparse.Namespace) -> list[Case]:
    given = [tuple(int(part.partition("=")[2]) for part in text.split(",")) for text in options.case]
    return [{"case": f"M={m},N={n}", "M": m, "N": n} for m, n in given or CASES]


def compile_case(options: argparse.Namespace, case: Case) -> tuple[host.LaunchFile, str]:
    """The program for a case, and its options: some 2048 elements for a block, or a row."""
    columns = 1 << (case["N"] - 1).bit_length()
    bits = host.BITS[options.type]
    align = next(a for a in (128 // bits, 4, 2, 1) if case["N"] % a == 0)
    places = {"T": options.type, "BN": columns, "BM": max(1, 2048 // columns), "ALIGN": align}
    words = ["--target", options.target, "-D", options.define.format(**places)]
    return host.compile_file(options.tilec, options.file, words), " ".join(words)


class Bench:
    """The child's side: one device, one case after another."""

    def __init__(self, options: argparse.Namespace) -> None:
        import torch

        self.torch, self.options = torch, options
        torch.zeros(1, device="cuda")  # makes the context of this thread
        self.driver = host.Driver()
        self.dtype = getattr(torch, TORCH_TYPES[options.type])

    def work(self, case: Case) -> Case:
        """A case: check, measure, check again."""
        if case.get("hello"):
            return machine(self.torch)
        torch, kind, n = self.torch, KINDS[self.options.kind], case["N"]
        kernels, words = compile_case(self.options, case)
        torch.manual_seed(self.options.seed)
        size = kind.matrices() * case["M"] * n * self.dtype.itemsize
        count = measure.input_sets(size, torch.cuda.get_device_properties(0).L2_cache_size)
        xs = [[self.given(what, case) for what in kind.takes] for _ in range(count)]
        ys = [[self.result(what, case) for what in kind.makes] for _ in range(count)]
        # A copy reads as many bytes as it writes.
        halves = [[torch.zeros(size // 2, dtype=torch.uint8, device="cuda").split(PIECE) for _ in range(2)] for _ in range(count)]
        launches = [self.bind(kernels, x, y) for x, y in zip(xs, ys, strict=True)]
        row: Case = {"note": "", "options": words, "registers": launches[0].kernel.registers()}
        row["of_bound"] = max(self.check(kind, x, y, launch) for x, y, launch in zip(xs, ys, launches, strict=True))
        first = [[y.clone() for y in out] for out in ys]
        against = self.options.against.split(",")
        compiled = torch.compile(lambda *given: kind.compute(torch, *given))
        if "compiled" in against:
            compiled(*xs[0])
        calls: dict[str, measure.Call] = {
            "tilec": lambda i: launches[i].launch(torch.cuda.current_stream().cuda_stream),
            "copy": lambda i: [to.copy_(piece) for piece, to in zip(*halves[i], strict=True)],
            "eager": lambda i: kind.compute(torch, *xs[i]),
            "compiled": lambda i: compiled(*xs[i]),
        }
        calls = {name: call for name, call in calls.items() if name == "tilec" or name in against}
        plan = measure.Plan(rounds=self.options.rounds, turn_ms=self.options.turn_ms, seed=self.options.seed)
        row["times"] = {name: list(t.us) for name, t in measure.compare(torch, calls, count, plan).items()}
        for y, launch, before in zip(ys, launches, first, strict=True):
            self.poison(y)
            launch.launch(torch.cuda.current_stream().cuda_stream)
            if not all(torch.equal(a, b) for a, b in zip(y, before, strict=True)):
                raise RuntimeError("WRONG RESULT: it changed between launches")
        row["bytes"] = size
        return row

    def poison(self, out: list[Any]) -> None:
        for y in out:
            y.fill_(float("nan"))

    def given(self, what: str, case: Case) -> Any:
        torch, m, n = self.torch, case["M"], case["N"]
        if what == "labels":
            return torch.randint(n, (m, 1), device="cuda", dtype=torch.int32)
        values = torch.randn(1 if what == "vector" else m, n, device="cuda") * 3
        return (torch.softmax(values, 1) if what == "shares" else values).to(self.dtype)

    def result(self, what: str, case: Case) -> Any:
        torch, m, n = self.torch, case["M"], case["N"]
        if what == "column":
            return torch.empty(m, 1, device="cuda", dtype=torch.float32)
        return torch.empty(m, n, device="cuda", dtype=self.dtype)

    def bind(self, kernels: host.LaunchFile, x: list[Any], y: list[Any]) -> host.BoundLaunch:
        contract = next(iter(kernels.kernels.values()))
        params = contract.of_kind("tensor")
        # A vector is a matrix of one row or column here, and a dimension in the program.
        given = [t.flatten() if len(host.modes(param["shape"])) == 1 else t for param, t in zip(params, [*x, *y], strict=True)]
        tensors = {
            param["name"]: host.Tensor(t.data_ptr(), tuple(t.shape), tuple(t.stride()), param["type"]) for param, t in zip(params, given, strict=True)
        }
        return host.LoadedKernel(self.driver, kernels.ptx, contract).bind(tensors)

    def check(self, kind: Kind, x: list[Any], out: list[Any], launch: host.BoundLaunch) -> float:
        """The largest deviation of a row's elements, of the bound for the row's largest."""
        torch = self.torch
        self.poison(out)
        launch.launch(torch.cuda.current_stream().cuda_stream)
        torch.cuda.synchronize()
        worst = 0.0
        for at in range(0, out[0].shape[0], 4096):
            part = slice(at, at + 4096)
            given = [t if what == "vector" else t[part] for what, t in zip(kind.takes, x, strict=True)]
            given = [t.double() if t.is_floating_point() else t for t in given]
            wanted = kind.compute(torch, *given)
            for y, exact in zip(out, wanted, strict=True):
                size = exact.abs().amax(1) if kind.magnitude is None else kind.magnitude(*given)
                off = (y[part].double() - exact).abs().amax(1) / size
                if not bool(torch.isfinite(off).all()):
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
    if "copy" in times:
        ratio = measure.Ratio.of(times["copy"], times["tilec"])
        row |= {"of_copy": ratio.median, "of_copy_min": ratio.least, "of_copy_max": ratio.greatest, "gb_s": answer["bytes"] / times["tilec"].median / 1e3}
    for name in ("eager", "compiled"):
        if name in times:
            row[f"over_{name}"] = measure.Ratio.of(times[name], times["tilec"]).median
    if "error" in answer:
        row["note"] = answer["error"]
    return row


def short(rows: list[Case]) -> str:
    """The table for the end of the output."""
    wanted = {
        "us": ("tilec_us", 1), "GB/s": ("gb_s", 0), "copy us": ("copy_us", 1), "of copy": ("of_copy", 3), "least": ("of_copy_min", 3), "most": ("of_copy_max", 3),
        "over eager": ("over_eager", 2), "over compiled": ("over_compiled", 2), "of bound": ("of_bound", 3), "registers": ("registers", 0),
    }  # fmt: skip
    cells = [[f"{row[key]:.{digits}f}" if isinstance(row.get(key), int | float) else "-" for key, digits in wanted.values()] for row in rows]
    lines = [[row["case"], *numbers, str(row.get("note", ""))[:80]] for row, numbers in zip(rows, cells, strict=True)]
    return text_table(["case", *wanted, "note"], lines)


def main() -> int:
    options = arguments()
    if options.dry:
        return dry(cases(options), lambda case: compile_case(options, case))
    if options.child:
        return supervise.answer_cases(Bench(options).work)
    rows, common = suite.measured(__file__, options, cases(options), COLUMNS, lambda case, answer: summary(options, case, answer))
    print(f"{options.kind} {options.type}: {suite.machine_of(common)}")
    print(short(rows))
    return suite.status(rows)


if __name__ == "__main__":
    sys.exit(main())
