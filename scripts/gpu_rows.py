#!/usr/bin/env python3
"""Programs over the rows of a matrix against PyTorch and a copy of the same bytes.

    scripts/gpu_rows.py --kind softmax --file examples/softmax_rows.tile --tilec target/release/tilec --out /tmp/softmax
    scripts/gpu_rows.py --kind softmax --file examples/softmax_rows.tile --case M=4096,N=4096 --dry        # without a GPU

`copy` is PyTorch's copy of as many bytes as the program reads and writes, `eager` PyTorch's own function, `compiled` the same through torch.compile, `triton` a program of
scripts/gpu/triton_rows.py. All are timed in turns. `of copy` is the copy's time over the program's: the share of the memory's rate that is reached, where the program reads
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
from gpu import measure, suite  # noqa: E402
from gpu.assemble import dry  # noqa: E402
from gpu.report import case_table, machine  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = [(65536, 256), (4096, 1024), (16384, 1024), (16384, 2048), (4096, 4096), (16384, 4096), (8192, 8192), (4096, 16384), (2048, 32768)]
TORCH_TYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}
# Of a result's size: one rounding to the type, and what f32 sums of a row are off by.
BOUNDS = {"f32": 2e-5, "bf16": 2.0**-8, "f16": 2.0**-10}
# PyTorch copies more bytes at once at a lower rate.
PIECE = 1 << 28
CONTESTANTS = ["tilec", "copy", "eager", "compiled", "triton"]
# Elements of a half of a head, which rotary turns.
HALF = 64
# Bytes of a row of 16-bit elements of which a block takes two at a time, at most.
PAIRED = {"rms_norm_backward": 2048, "layer_norm_backward": 8192}
# Elements that a top-k gives of each row.
TOP = 8

COLUMNS = [
    "tag", "kind", "case", "type", *(f"{n}_{c}" for n in CONTESTANTS for c in ("us", "spread")), "gb_s", "of_copy", "of_copy_min", "of_copy_max", "over_eager",
    "over_compiled", "over_triton", "of_bound", "registers", "note", "file", "options", "contract", "machine", "driver", "torch", "cudnn", "date", "tilec", "command",
]  # fmt: skip
Case = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """What a program computes: its parameters in order, and the same in PyTorch.

    A `matrix` has rows, `shares` are one whose rows add up to 1, a `vector` is as long as a row, `labels` are a number below its length for each row, a `column` is a number for each row.
    `mean` and `scale` are columns that layer norm finds for the first matrix. `heads` is a matrix whose rows are heads of 2 * HALF elements, `angles` are HALF numbers for each row. `flat` is a matrix
    as one row, in f32 `state` that the program changes: it is given and made. `places` are numbers of elements, one for each element, `tops` and `spots` are the TOP greatest elements of
    each row and their places.
    """

    takes: tuple[str, ...]
    makes: tuple[str, ...]
    compute: Callable[..., tuple[Any, ...]]
    # Of each result the size of what its rows are differences of, where that is more than they are.
    magnitude: tuple[Callable[..., Any] | None, ...] = (None, None, None, None)
    define: str = "T={T},BM={BM},BN={BN},ALIGN={ALIGN}"
    # What PyTorch calls, where that is another function than the one in f64.
    eager: Callable[..., Any] | None = None

    def bytes_of(self, itemsize: int, elements: int) -> int:
        """Bytes of the matrices that are read or written."""
        size = {"matrix": itemsize, "shares": itemsize, "heads": itemsize, "flat": itemsize, "state": 4, "places": 4}
        return elements * sum(size.get(what, 0) for what in [*self.takes, *self.makes])


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


def terms_of_loss(x: Any, labels: Any) -> Any:
    """A loss next to 0 is the logarithm of a sum next to 1: the sum is rounded, and the logarithm off by 2^-22 (docs/numerics.md)."""
    return (x.logsumexp(1, keepdim=True) - x.gather(1, labels.long())).abs().amax(1) + 2.0**-21 / BOUNDS["f32"]


def rms_norm_backward(torch: Any, x: Any, d: Any, w: Any) -> tuple[Any, ...]:
    wide = torch.promote_types(x.dtype, torch.float32)
    v, e = x.to(wide), d.to(wide)
    g = e * w[0].to(wide)
    scale = ((v * v).mean(1, keepdim=True) + 1e-6).rsqrt()
    return (scale * (g - v * ((v * g).mean(1, keepdim=True) * scale * scale))).to(x.dtype), (e * v * scale).sum(0, keepdim=True).to(x.dtype)


def layer_norm_backward(torch: Any, x: Any, d: Any, w: Any, mean: Any, scale: Any) -> tuple[Any, ...]:
    wide = torch.promote_types(x.dtype, torch.float32)
    e, v = d.to(wide), (x.to(wide) - mean) * scale
    g = e * w[0].to(wide)
    dx = scale * (g - (g.mean(1, keepdim=True) + v * (v * g).mean(1, keepdim=True)))
    return dx.to(x.dtype), (e * v).sum(0, keepdim=True).to(x.dtype), e.sum(0, keepdim=True).to(x.dtype)


def native_layer_norm_backward(torch: Any, x: Any, d: Any, w: Any, mean: Any, scale: Any) -> Any:
    return torch.ops.aten.native_layer_norm_backward(d, x, [x.shape[1]], mean, scale, w[0], w[0], [True, True, True])


def rotary(torch: Any, x: Any, c: Any, s: Any) -> tuple[Any, ...]:
    wide = torch.promote_types(x.dtype, torch.float32)
    a, b = x[..., :HALF].to(wide), x[..., HALF:].to(wide)
    c, s = c[:, None, :], s[:, None, :]
    return (torch.cat([a * c - b * s, b * c + a * s], 2).to(x.dtype),)


def adam(torch: Any, w: Any, m: Any, v: Any, g: Any) -> tuple[Any, ...]:
    wide = g.to(w.dtype)
    m = 0.9 * m + (1.0 - 0.9) * wide
    v = 0.999 * v + (1.0 - 0.999) * wide * wide
    w = w - 0.001 * (m / (v.sqrt() + 1.0e-8))
    return w, m, v, w.to(g.dtype)


def sums_of_products(x: Any, d: Any, *_: Any) -> Any:
    """Sums over all rows, of which each of a few thousand terms is rounded: of the size of their terms."""
    return (x.double().abs() * d.double().abs()).sum(0).amax()


def sort(torch: Any, x: Any) -> tuple[Any, ...]:
    """Of equal elements the first comes first."""
    return tuple(torch.sort(x, dim=1, descending=True, stable=True))


def top(torch: Any, x: Any) -> tuple[Any, ...]:
    return tuple(t[:, :TOP] for t in sort(torch, x))


def exact(x: Any) -> Any:
    """The size of what may not differ at all."""
    return x.new_full((x.shape[0],), 1e-6)


KINDS = {
    "softmax": Kind(("matrix",), ("matrix",), lambda torch, x: (torch.softmax(x, 1),)),
    "log_softmax": Kind(("matrix",), ("matrix",), lambda torch, x: (torch.log_softmax(x, 1),)),
    "softmax_backward": Kind(("shares", "matrix"), ("matrix",), softmax_backward, (terms_of_softmax_backward,)),
    "rms_norm": Kind(("matrix", "vector"), ("matrix",), rms_norm),
    "layer_norm": Kind(("matrix", "matrix", "vector", "vector"), ("matrix", "matrix"), layer_norm),
    "cross_entropy": Kind(("matrix", "labels"), ("column", "matrix"), cross_entropy, (terms_of_loss, None)),
    "cumsum": Kind(("matrix",), ("matrix",), lambda torch, x: (torch.cumsum(x, 1),), (lambda x: x.abs().sum(1),)),
    "rms_norm_backward": Kind(("matrix", "matrix", "vector"), ("matrix", "vector"), rms_norm_backward, (None, sums_of_products), "T={T},BM={PAIR},BN={BN},ALIGN={ALIGN}"),
    "layer_norm_backward": Kind(
        ("matrix", "matrix", "vector", "mean", "scale"), ("matrix", "vector", "vector"), layer_norm_backward, (None, sums_of_products, sums_of_products),
        "T={T},BM={PAIR},BN={BN},ALIGN={ALIGN}", native_layer_norm_backward,
    ),
    "sort": Kind(("matrix",), ("matrix", "places"), sort, (exact, exact), eager=lambda torch, x: torch.sort(x, dim=1, descending=True)),
    "topk": Kind(
        ("matrix",), ("tops", "spots"), top, (exact, exact), f"T={{T}},BM={{BM}},BN={{BN}},K={TOP},ALIGN={{ALIGN}}", lambda torch, x: torch.topk(x, TOP, dim=1),
    ),
    "rotary": Kind(("heads", "angles", "angles"), ("heads",), rotary, define=f"T={{T}},D={HALF},ALIGN={{ALIGN}}"),
    "adam": Kind(("state", "state", "state", "flat"), ("state", "state", "state", "flat"), adam, define="T={T},ALIGN={ALIGN}"),
}  # fmt: skip


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--kind", required=True, choices=sorted(KINDS))
    add("--file", required=True, help="the program")
    add("--tilec", default=os.environ.get("TILEC", str(ROOT / "target/release/tilec")), help="the compiler's binary")
    add("--target", default="sm_90a")
    add("--type", default="f32", choices=sorted(TORCH_TYPES))
    add("--define", default="", help="compile-time parameters, instead of the kind's, as T={T},BM={BM},BN={BN},ALIGN={ALIGN}; BN is N, or the next power of two, PAIR 2 for short rows and 1 for long ones")
    add("--slices", type=int, default=1, help="slices of the rows of which gradients of vectors are summed, in times the blocks that run at once, %(default)s")
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
    pair = 2 if bits == 16 and 2 * columns <= PAIRED.get(options.kind, 0) else 1
    places = {"T": options.type, "BN": columns, "BM": max(1, 2048 // columns), "PAIR": pair, "ALIGN": align}
    words = ["--target", options.target, "-D", (options.define or KINDS[options.kind].define).format(**places)]
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
        size = kind.bytes_of(self.dtype.itemsize, case["M"] * n)
        count = measure.input_sets(size, torch.cuda.get_device_properties(0).L2_cache_size)
        xs = [self.all_given(kind, case) for _ in range(count)]
        # State is changed where it stands.
        ys = [[x[i] if what == "state" else self.result(what, case) for i, what in enumerate(kind.makes)] for x in xs]
        self.saved = {id(x): [t.clone() if what == "state" else None for what, t in zip(kind.takes, x, strict=True)] for x in xs}
        # A copy reads as many bytes as it writes.
        halves = [[torch.zeros(size // 2, dtype=torch.uint8, device="cuda").split(PIECE) for _ in range(2)] for _ in range(count)]
        launches = [self.bind(kernels, x, y) for x, y in zip(xs, ys, strict=True)]
        row: Case = {"note": "", "options": words, "registers": launches[0].registers()}
        row["of_bound"] = max(self.check(kind, x, y, launch) for x, y, launch in zip(xs, ys, launches, strict=True))
        first = [[y.clone() for y in out] for out in ys]
        against = self.options.against.split(",")
        eager = kind.eager or kind.compute
        compiled = torch.compile(lambda *given: kind.compute(torch, *given))
        if "compiled" in against:
            compiled(*xs[0])
        calls: dict[str, measure.Call] = {
            "tilec": lambda i: launches[i].launch(torch.cuda.current_stream().cuda_stream),
            "copy": lambda i: [to.copy_(piece) for piece, to in zip(*halves[i], strict=True)],
            "eager": lambda i: eager(torch, *xs[i]),
            "compiled": lambda i: compiled(*xs[i]),
        }
        calls = {name: call for name, call in calls.items() if name == "tilec" or name in against}
        if "triton" in against:
            calls |= self.triton(kind, case, xs, ys)
        plan = measure.Plan(rounds=self.options.rounds, turn_ms=self.options.turn_ms, seed=self.options.seed)
        row["times"] = {name: list(t.us) for name, t in measure.compare(torch, calls, count, plan).items()}
        for x, y, launch, before in zip(xs, ys, launches, first, strict=True):
            self.poison(kind, x, y)
            launch.launch(torch.cuda.current_stream().cuda_stream)
            if not all(torch.equal(a, b) for a, b in zip(y, before, strict=True)):
                raise RuntimeError("WRONG RESULT: it changed between launches")
        row["bytes"] = size
        return row

    def triton(self, kind: Kind, case: Case, xs: list[list[Any]], ys: list[list[Any]]) -> dict[str, measure.Call]:
        """The same program in Triton, if there is one, its result compared with ours."""
        from gpu import triton_rows

        tensors = [[*x, *(t for what, t in zip(kind.makes, y, strict=True) if what != "state")] for x, y in zip(xs, ys, strict=True)]
        call = triton_rows.make(self.options.kind, tensors[0], case["M"], case["N"])
        if call is None:
            return {}
        self.poison(kind, xs[0], ys[0])
        call(tensors[0])
        self.compare(kind, xs[0], ys[0])
        return {"triton": lambda i: call(tensors[i])}

    def poison(self, kind: Kind, x: list[Any], out: list[Any]) -> None:
        """Results are no numbers, and state is what it was."""
        for what, y in zip(kind.makes, out, strict=True):
            if what != "state":
                y.fill_(float("nan") if y.is_floating_point() else -1)
        for t, before in zip(x, self.saved[id(x)], strict=True):
            if before is not None:
                t.copy_(before)

    def all_given(self, kind: Kind, case: Case) -> list[Any]:
        given: list[Any] = []
        for what in kind.takes:
            if what in ("mean", "scale"):
                x = given[0].float()
                mean = x.mean(1, keepdim=True)
                given.append(mean if what == "mean" else (x.var(1, keepdim=True, unbiased=False) + 1e-5).rsqrt())
            else:
                given.append(self.given(what, case))
        return given

    def given(self, what: str, case: Case) -> Any:
        torch, m, n = self.torch, case["M"], case["N"]
        if what == "labels":
            return torch.randint(n, (m, 1), device="cuda", dtype=torch.int32)
        if what == "angles":
            return torch.randn(m, HALF, device="cuda")
        if what == "state":
            # The second moment is a mean of squares.
            return torch.rand(m * n, device="cuda")
        values = torch.randn(1 if what == "vector" else m, n, device="cuda") * 3
        return self.shaped(what, torch.softmax(values, 1) if what == "shares" else values).to(self.dtype)

    def shaped(self, what: str, t: Any) -> Any:
        """A matrix with the dimensions that it has in the program."""
        return t.flatten() if what == "flat" else t.view(t.shape[0], -1, 2 * HALF) if what == "heads" else t

    def result(self, what: str, case: Case) -> Any:
        torch, m, n = self.torch, case["M"], case["N"]
        if what == "column":
            return torch.empty(m, 1, device="cuda", dtype=torch.float32)
        if what in ("places", "spots"):
            return torch.empty(m, n if what == "places" else TOP, device="cuda", dtype=torch.int32)
        if what == "tops":
            return torch.empty(m, TOP, device="cuda", dtype=self.dtype)
        return self.shaped(what, torch.empty(1 if what == "vector" else m, n, device="cuda", dtype=self.dtype))

    def bind(self, kernels: host.LaunchFile, x: list[Any], y: list[Any]) -> "Launches":
        """Launches of the program's kernels; tensors in the order of their parameters are the inputs, and then the results that are no inputs."""
        names = next(iter(kernels.sequences.values()), list(kernels.kernels))
        contracts = [kernels.kernels[name] for name in names]
        temporary = kernels.temporaries
        params = {param["name"]: param for contract in contracts for param in contract.of_kind("tensor") if param["name"] not in temporary}
        own = [*x, *(t for t in y if not any(t is other for other in x))]
        # A vector is a matrix of one row here, and a dimension in the program.
        given = [t.flatten() if len(host.modes(param["shape"])) == 1 else t for param, t in zip(params.values(), own, strict=True)]
        tensors = {name: host.Tensor(t.data_ptr(), tuple(t.shape), tuple(t.stride()), param["type"]) for (name, param), t in zip(params.items(), given, strict=True)}
        multiprocessors = self.torch.cuda.get_device_properties(0).multi_processor_count
        loaded = [host.LoadedKernel(self.driver, kernels.ptx, contract) for contract in contracts]
        slices = self.options.slices * loaded[0].clusters_at_once(multiprocessors)
        launches, kept = [], []
        for contract, kernel in zip(contracts, loaded, strict=True):
            of = {p["name"] for p in contract.of_kind("tensor")}
            for name in sorted(of & temporary - tensors.keys()):
                known = {n: t for n, t in tensors.items() if n in of}
                shape, strides = contract.shape_of(name, contract.values(known, {"S": slices}, {}))
                kept.append(self.torch.full(shape, float("nan"), device="cuda"))
                tensors[name] = host.Tensor(kept[-1].data_ptr(), shape, strides, "f32")
            launches.append(kernel.bind({n: t for n, t in tensors.items() if n in of}))
        return Launches(launches, kept)

    def check(self, kind: Kind, x: list[Any], out: list[Any], launch: "Launches") -> float:
        """The largest deviation of a row's elements, of the bound for the row's largest."""
        self.poison(kind, x, out)
        launch.launch(self.torch.cuda.current_stream().cuda_stream)
        self.torch.cuda.synchronize()
        return self.compare(kind, x, out)

    def compare(self, kind: Kind, x: list[Any], out: list[Any]) -> float:
        """The same of what was computed; the inputs are the saved ones, where they are changed."""
        torch, worst = self.torch, 0.0
        x = [t if before is None else before for t, before in zip(x, self.saved[id(x)], strict=True)]
        whole = "vector" in kind.makes or "flat" in kind.makes
        rows = x[0].shape[0]
        for at in range(0, rows, rows if whole else 4096):
            part = slice(at, rows if whole else at + 4096)
            given = [t if what == "vector" else t[part] for what, t in zip(kind.takes, x, strict=True)]
            given = [t.double() if t.is_floating_point() else t for t in given]
            wanted = kind.compute(torch, *given)
            for what, y, exact, magnitude in zip(kind.makes, out, wanted, kind.magnitude, strict=False):
                exact = exact.reshape(exact.shape[0] if exact.dim() > 1 else 1, -1)
                size = exact.abs().amax(1) if magnitude is None else magnitude(*given)
                mine = y if what == "vector" else y[part]
                off = (mine.double().reshape(exact.shape) - exact).abs().amax(1) / size
                if not bool(torch.isfinite(off).all()):
                    raise RuntimeError("WRONG RESULT: elements are missing")
                worst = max(worst, float(off.max()) / BOUNDS["f32" if what == "column" else self.options.type])
        if worst > 1.0:
            raise RuntimeError(f"WRONG RESULT: {worst:.2f} of the bound")
        return worst


@dataclass
class Launches:
    """Kernels behind one another, and the memory between them."""

    all: list[host.BoundLaunch]
    kept: list[Any]

    def launch(self, stream: int) -> None:
        for launch in self.all:
            launch.launch(stream)

    def registers(self) -> int:
        return max(launch.kernel.registers() for launch in self.all)


def summary(options: argparse.Namespace, case: Case, answer: Case) -> Case:
    """The row of a case."""
    row: Case = {"kind": options.kind, "case": case["case"], **{key: answer[key] for key in answer if key in COLUMNS}}
    times = {name: measure.Times(tuple(us)) for name, us in answer.get("times", {}).items()}
    for name, t in times.items():
        row |= {f"{name}_us": t.median, f"{name}_spread": t.spread}
    if "copy" in times:
        ratio = measure.Ratio.of(times["copy"], times["tilec"])
        row |= {"of_copy": ratio.median, "of_copy_min": ratio.least, "of_copy_max": ratio.greatest, "gb_s": answer["bytes"] / times["tilec"].median / 1e3}
    for name in ("eager", "compiled", "triton"):
        if name in times:
            row[f"over_{name}"] = measure.Ratio.of(times[name], times["tilec"]).median
    if "error" in answer:
        row["note"] = answer["error"]
    return row


def short(rows: list[Case]) -> str:
    """The table for the end of the output."""
    figures = {
        "us": ("tilec_us", 1), "GB/s": ("gb_s", 0), "copy us": ("copy_us", 1), "of copy": ("of_copy", 3), "least": ("of_copy_min", 3), "most": ("of_copy_max", 3),
        "over eager": ("over_eager", 2), "over compiled": ("over_compiled", 2), "over triton": ("over_triton", 2), "of bound": ("of_bound", 3), "registers": ("registers", 0),
    }  # fmt: skip
    return case_table(rows, figures)


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
