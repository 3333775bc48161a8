#!/usr/bin/env python3
"""Mixtures of experts, attention of any lengths and decoding from a paged cache, against what moves or multiplies as much.

    scripts/gpu_inference.py --kind grouped --tilec target/release/tilec --out /tmp/grouped
    scripts/gpu_inference.py --kind paged --case Z=16,H=32,G=4,L=2048,D=128,how=even --dry        # without a GPU

`grouped`, `masked`: against PyTorch's product of as many rows by one matrix (`dense`), and a copy of as many bytes as weights and rows have (`copy`): with few rows of each expert these decide. `varlen`: against examples/attention.tile on as many tokens in sequences that are all as long (`dense`), and
PyTorch's attention of these (`torch`); what counts is the rate. `paged`, `mla`, and `mla_heads` (the same of many heads, where products decide): against PyTorch's copy of as many bytes as the keys and values have (`copy`). `embedding`, `embedding_backward`, `dropout`, `argmax`, `histogram` and `adam8`: against PyTorch's functions (`torch`) and a copy of the bytes that they move. `requantised`: against two products of PyTorch to i32, without requantisation (`torch`). All are timed in turns. A ratio of 1 says
that ours is as fast. Sizes come from tensors on the device: `how=even` parts are alike, `random` ones differ by up to a factor of three, `skewed` ones by more. Results are compared with sums in
double precision, filled with NaN before, and must be the same after the timing. `--define BKV=64` gives compile-time parameters, S=8 in a case the number of parts of the keys.
"""

import argparse
import os
import pathlib
import random
import sys
from collections.abc import Mapping, Sequence
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from gpu import contract_host as host  # noqa: E402
from gpu import measure, suite  # noqa: E402
from gpu.assemble import dry  # noqa: E402
from gpu import element_programs, inference_programs, requantised  # noqa: E402
from gpu.inference_programs import Case, Job, work_of_varlen  # noqa: E402
from gpu.report import case_table, machine  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = {**inference_programs.KINDS, **element_programs.KINDS, **requantised.KINDS}
TORCH_TYPES = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "i32": "int32", "i8": "int8", "u8": "uint8"}
OTHERS = ["dense", "torch", "copy"]
COLUMNS = [
    "tag", "kind", "case", "type", *(f"{n}_{c}" for n in ("ours", *OTHERS) for c in ("us", "spread")), "rate", "unit", *(f"ratio_{n}{c}" for n in OTHERS for c in ("", "_min", "_max")), "of_bound",
    "registers", "parts", "note", "file", "options", "contract", "machine", "driver", "torch", "cudnn", "date", "tilec", "command",
]  # fmt: skip


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--kind", required=True, choices=sorted(KINDS))
    add("--file", help="the program, if it is another one than the example")
    add("--tilec", default=os.environ.get("TILEC", str(ROOT / "target/release/tilec")), help="the compiler's binary")
    add("--target", default="sm_90a")
    add("--type", default="bf16", choices=["bf16", "f16"])
    add("--define", default="", metavar="NAME=VALUE,..", help="more compile-time parameters")
    add("--option", action="append", default=[], help="another option of tilec")
    add("--case", action="append", default=[], metavar="R=..,E=..,..", help="a case, instead of the kind's own")
    add("--against", default=",".join(OTHERS), help="what is timed beside the program, of %(default)s")
    add("--no-overlap", action="store_true", help="launches do not overlap, though the contracts allow it")
    add("--rounds", type=int, default=9)
    add("--turn-ms", type=float, default=10.0)
    add("--seed", type=int, default=0)
    add("--limit", type=float, default=90.0, help="seconds of a case, after which its process is ended")
    add("--seconds", type=float, default=540.0, help="of all cases")
    add("--tag", default="", help="a label for the rows")
    add("--out", default="inference", help="path of the CSV files, without suffix")
    add("--dry", action="store_true", help="without a GPU: compile and assemble")
    add("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    options.file = options.file or str(ROOT / KINDS[options.kind].file)
    return options


def parse_case(kind: str, text: str) -> Case:
    """`R=16384,E=8,K=4096,N=4096,how=even` as a case."""
    parts = dict(part.split("=", 1) for part in text.split(","))
    return {"kind": kind, "case": text, "how": "even", **{name: value if name == "how" else int(value) for name, value in parts.items()}}


def cases(options: argparse.Namespace) -> list[Case]:
    return [parse_case(options.kind, text) for text in options.case or KINDS[options.kind].cases]


def compile_case(options: argparse.Namespace, case: Case, file: str | None = None, more: str = "") -> tuple[host.LaunchFile, str]:
    """The program for a case, and its options."""
    kind = KINDS[options.kind]
    defined = ",".join(part for part in (f"T={options.type}" if kind.typed else "", more or kind.define(case), "" if more else options.define) if part)
    words = ["--target", options.target, *(word for part in defined.split(",") if part for word in ("-D", part)), *options.option]
    if kind.sizes is not None:
        words += ["--for", kind.sizes(case)]
    return host.compile_file(options.tilec, file or options.file, words), " ".join(words)


class Program:
    """The kernels of a file in the order of their launches, with temporaries for one set of inputs after another."""

    def __init__(self, torch: Any, driver: host.Driver, kernels: host.LaunchFile, overlap: bool, kernel: str = "") -> None:
        self.torch, self.overlap = torch, overlap
        names = kernels.sequences[kernels.programs[0]] if kernels.programs else list(kernels.kernels)
        self.loaded = [host.LoadedKernel(driver, kernels.ptx, kernels.kernels[name]) for name in names if kernel in ("", name)]
        self.memory: list[Any] = []

    def registers(self) -> str:
        return "/".join(str(kernel.registers()) for kernel in self.loaded)

    def bind(self, tensors: Mapping[str, host.Tensor], sizes: Mapping[str, int], scalars: Mapping[str, float]) -> list[host.BoundLaunch]:
        known, bound = dict(tensors), []
        for kernel in self.loaded:
            contract = kernel.contract
            names = {param["name"] for param in contract.params}
            own = [{name: x for name, x in given.items() if name in names} for given in (sizes, scalars)]
            values = contract.values({name: t for name, t in known.items() if name in names}, *own)
            for param in contract.of_kind("tensor"):
                if param["name"] not in known:
                    shape, strides = contract.shape_of(param["name"], values)
                    # Signals, numbers of 32 bits, are all down before a launch.
                    signals = param.get("scratch") == "signals"
                    dtype = self.torch.int32 if signals else getattr(self.torch, TORCH_TYPES[param["type"]])
                    self.memory.append(self.torch.full(shape, 0 if signals else -1, dtype=dtype, device="cuda"))
                    known[param["name"]] = host.Tensor(self.memory[-1].data_ptr(), shape, strides, param["type"])
            bound.append(kernel.bind({name: t for name, t in known.items() if name in names}, *own, overlap=self.overlap))
        return bound


class Bench:
    """The child's side: one device, one case after another."""

    def __init__(self, options: argparse.Namespace) -> None:
        import torch

        self.torch, self.options = torch, options
        torch.zeros(1, device="cuda")  # makes the context of this thread
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        self.driver = host.Driver()
        self.dtype = getattr(torch, TORCH_TYPES[options.type])
        self.elems = {getattr(torch, name): elem for elem, name in TORCH_TYPES.items()}
        # Launches have addresses alone: whose memory they are of must live as long.
        self.kept: list[Program] = []

    def tensor(self, t: Any, elem: str | None = None) -> host.Tensor:
        return host.Tensor(t.data_ptr(), tuple(t.shape), tuple(t.stride()), elem or self.elems[t.dtype])

    def work(self, case: Case) -> Case:
        """A case: check, measure, check again."""
        if case.get("hello"):
            return machine(self.torch)
        torch, kind, options = self.torch, KINDS[self.options.kind], self.options
        self.kept.clear()
        kernels, words = compile_case(options, case)
        torch.manual_seed(random.Random(f"{options.seed} {case['case']}").getrandbits(62))
        count = measure.input_sets(int(kind.bytes_of(case)), torch.cuda.get_device_properties(0).L2_cache_size)
        jobs = [kind.make(torch, self.dtype, case) for _ in range(count)]
        program = Program(torch, self.driver, kernels, not options.no_overlap, kind.kernel)
        bound = [program.bind({name: self.tensor(t, job.elems.get(name)) for name, t in job.tensors.items()}, job.sizes, job.scalars) for job in jobs]
        row: Case = {"note": "", "options": words, "registers": program.registers(), "parts": jobs[0].sizes.get("S", "")}

        def launch(index: int) -> None:
            for kernel in bound[index]:
                kernel.launch(torch.cuda.current_stream().cuda_stream)

        row["of_bound"] = max(self.check(job, case, lambda i=i: launch(i)) for i, job in enumerate(jobs))
        first = [job.tensors[job.output].clone() for job in jobs]
        calls: dict[str, measure.Call] = {"ours": launch}
        if options.kind == "varlen" and "dense" in options.against.split(","):
            calls["dense"] = self.dense_attention(case, jobs)
        for name in jobs[0].others:
            if name in options.against.split(","):
                calls[name] = lambda i, name=name: jobs[i].others[name]()
        for call in calls.values():
            call(0)
        plan = measure.Plan(rounds=options.rounds, turn_ms=options.turn_ms, seed=options.seed)
        row["times"] = {name: list(t.us) for name, t in measure.compare(torch, calls, count, plan).items()}
        for i, (job, before) in enumerate(zip(jobs, first, strict=True)):
            self.poison(job)
            launch(i)
            if job.repeats and not torch.equal(torch.nan_to_num(job.tensors[job.output]), torch.nan_to_num(before)):
                raise RuntimeError("WRONG RESULT: it changed between launches")
        row["work"] = kind.work(case)
        return row

    def poison(self, job: Job) -> None:
        job.tensors[job.output].fill_(job.fill)
        for name, before in job.state.items():
            job.tensors[name].copy_(before)

    def check(self, job: Job, case: Case, launch: Any) -> float:
        """The largest deviation, of the bound."""
        self.poison(job)
        launch()
        self.torch.cuda.synchronize()
        worst = KINDS[self.options.kind].check(self.torch, job, case, self.options.type)
        if worst > 1.0:
            raise RuntimeError(f"WRONG RESULT: {worst:.2f} of the bound")
        return worst

    def dense_attention(self, case: Case, jobs: list[Job]) -> measure.Call:
        """examples/attention.tile on the same memory, as sequences that are all as long."""
        more = f"D={case['D']},G={case['G']},CAUSAL={case['causal']}"
        kernels, _ = compile_case(self.options, case, str(ROOT / "examples/attention.tile"), more)
        program, launches = Program(self.torch, self.driver, kernels, not self.options.no_overlap), []
        self.kept.append(program)
        for job in jobs:
            out = self.torch.empty_like(job.tensors["Q"])
            program.memory.append(out)
            shaped = {name: t.view(case["Z"], case["N"] // case["Z"], -1, case["D"]).transpose(1, 2) for name, t in [*((n, job.tensors[n]) for n in "QKV"), ("O", out)]}
            launches.append(program.bind({name: self.tensor(t) for name, t in shaped.items()}, {}, job.scalars))

        def call(index: int) -> None:
            for kernel in launches[index]:
                kernel.launch(self.torch.cuda.current_stream().cuda_stream)

        return call


def summary(options: argparse.Namespace, case: Case, answer: Case) -> Case:
    """The row of a case."""
    row: Case = {"kind": options.kind, "case": case["case"], **{key: answer[key] for key in answer if key in COLUMNS}}
    times = {name: measure.Times(tuple(us)) for name, us in answer.get("times", {}).items()}
    for name, t in times.items():
        row |= {f"{name}_us": t.median, f"{name}_spread": t.spread}
    if "ours" in times:
        row["unit"] = "GB/s" if options.kind in ("paged", "mla", *element_programs.KINDS) else "TFLOP/s"
        row["rate"] = answer["work"] / times["ours"].median / (1e3 if row["unit"] == "GB/s" else 1e6)
    # Sequences that are all as long take less work than others.
    more = 1.0
    if options.kind == "varlen":
        even = [case["N"] // case["Z"]] * case["Z"]
        more = work_of_varlen(case) / work_of_varlen(case, even)
    for name in OTHERS:
        if name in times:
            ratio = measure.Ratio.of(times[name], times["ours"])
            row |= {f"ratio_{name}": more * ratio.median, f"ratio_{name}_min": more * ratio.least, f"ratio_{name}_max": more * ratio.greatest}
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
    return case_table(rows, figures, {"registers": "registers", "S": "parts", "note": "note"})


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
