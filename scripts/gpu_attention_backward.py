#!/usr/bin/env python3
"""Our gradients of attention against PyTorch's backends and cuDNN's own frontend, interleaved in one process on a GPU.

    scripts/gpu_attention_backward.py --tilec target/release/tilec --out /tmp/backward
    scripts/gpu_attention_backward.py --dry                    # compiles, assembles and checks contracts, without a GPU

All kernels of ours are launched one behind the other, from their contracts, in one graph. Every result, ours and theirs, is compared with
double precision first, with NaN in the outputs, and ours bit for bit with its first one after the timing. OUT.csv has a row a case,
OUT.rounds.csv every round. Rates count 10 * Z * H * L^2 * D operations, half of them where causal. A ratio above 1 says that ours is faster.
"""

import argparse
import math
import os
import pathlib
import random
import sys
from collections.abc import Sequence
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import gpu_attention as forward_pass  # noqa: E402
from gpu import contract_host as host  # noqa: E402
from gpu import measure, suite  # noqa: E402
from gpu.assemble import assemble, find_ptxas  # noqa: E402
from gpu.backward_reference import NAMES, Given, forward, judge  # noqa: E402
from gpu.library_backward import BACKENDS, library  # noqa: E402
from gpu.report import case_table, machine  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = [f"Z={z},H={2048 // d},L={n},D={d}{mask}" for d in (128, 64) for z, n in ((8, 2048), (4, 4096), (1, 16384)) for mask in ("", ",causal")]
TIMES = ["us", "spread", "tflops"]
COLUMNS = [
    "tag", "case", "type", "Z", "H", "L", "D", "causal", *(f"{n}_{c}" for n in ("ours", *BACKENDS) for c in TIMES), "best", "ratio", "ratio_min", "ratio_max",
    "deviation", "of_bound", "registers", "note", "file", "options", "contract", "machine", "driver", "torch", "cudnn", "date", "tilec", "command",
]  # fmt: skip

Case = dict[str, Any]


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--tilec", default=os.environ.get("TILEC", str(ROOT / "target/release/tilec")), help="the compiler's binary")
    add("--file", default=str(ROOT / "examples/attention_backward.tile"), help="the program, a sequence")
    add("--target", default="sm_90a")
    add("--type", default="bf16", choices=["bf16", "f16"], help="elements of all tensors but the logarithms")
    add("--define", action="append", default=[], metavar="NAME=VALUE", help="compile-time parameter; {Z}, {H}, {L}, {D} and {T} are replaced. Default: T={T}, D={D}, BLOCK=128, TILE=64")
    add("--define-if", action="append", default=[], metavar="D=256:NAME=VALUE,..", help="more of them for cases that have this value")
    add("--causal-define", default="CAUSAL=1", metavar="NAME=VALUE,..", help="more of them for causal cases")
    add("--full-define", metavar="NAME=VALUE,..", help="more of them for the others")
    add("--option", action="append", default=[], help="another option of tilec")
    add("--case", action="append", default=[], metavar="Z=4,H=16,L=4096,D=128[,causal]", help="a case, instead of the list")
    add("--against", default=",".join(BACKENDS), help="libraries, of %(default)s; `none`")
    add("--no-overlap", action="store_true", help="launches do not overlap, though the contracts allow it")
    add("--rounds", type=int, default=7)
    add("--turn-ms", type=float, default=12.0)
    add("--seed", type=int, default=0)
    add("--limit", type=float, default=60.0, help="seconds of a case, after which its process is ended")
    add("--seconds", type=float, default=170.0, help="of all cases; what is left then is not measured")
    add("--tag", default="", help="a label for the rows")
    add("--out", default="attention_backward", help="path of the CSV files, without suffix")
    add("--dry", action="store_true", help="without a GPU: compile, assemble, check the launches")
    add("--child", action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(last_define=[])
    options = parser.parse_args(words)
    options.define = options.define or ["T={T}", "D={D}", "BLOCK=128", "TILE=64"]
    options.causal_file = None
    return options


def cases(options: argparse.Namespace) -> list[Case]:
    """The cases asked for, each once."""
    return [forward_pass.parse_case(text) for text in dict.fromkeys(options.case or CASES)]


class Program:
    """The kernels of a compiled sequence, and what they share."""

    def __init__(self, options: argparse.Namespace, case: Case) -> None:
        self.kernels, self.words = forward_pass.compile_case(options, case)
        if len(self.kernels.programs) != 1:
            raise ValueError("the file has no single sequence")
        self.contracts = [self.kernels.kernels[name] for name in self.kernels.sequences[self.kernels.programs[0]]]
        self.scale = {"scale_log2": math.log2(math.e) / math.sqrt(case["D"])}
        self.sizes = {name: case[name] for name in "ZHL"}

    def tensors(self, addresses: dict[str, int]) -> list[tuple[str, str, tuple[int, ...], tuple[int, ...]]]:
        """Every tensor of the program with packed strides: name, type, shape, strides. Those without an address are temporaries, or results."""
        found: dict[str, tuple[str, str, tuple[int, ...], tuple[int, ...]]] = {}
        for contract in self.contracts:
            values = contract.values({}, self.own_sizes(contract), {})
            for param in contract.of_kind("tensor"):
                found.setdefault(param["name"], (param["name"], str(param["type"]), *contract.shape_of(param["name"], values)))
        missing = sorted(set(addresses) - set(found))
        if missing:
            raise ValueError(f"the program has no {', '.join(missing)}")
        return list(found.values())

    def own_sizes(self, contract: host.Contract) -> dict[str, int]:
        """The sizes that a kernel has."""
        known = {p["name"] for p in contract.of_kind("size")}
        return {name: value for name, value in self.sizes.items() if name in known}

    def arguments(self, contract: host.Contract, tensors: dict[str, host.Tensor]) -> tuple[dict[str, host.Tensor], dict[str, int], dict[str, float]]:
        """What one kernel takes of all."""
        own = {p["name"]: tensors[p["name"]] for p in contract.of_kind("tensor")}
        scalars = {p["name"]: self.scale[p["name"]] for p in contract.of_kind("scalar") if p["name"] in self.scale}
        return own, self.own_sizes(contract), scalars


def dry(options: argparse.Namespace) -> int:
    """Everything but the launches, for each case. The exit status says whether all went well."""
    ptxas, failed, done = find_ptxas(), 0, dict[str, str]()
    if ptxas is None:
        print("no ptxas: what tilec wrote is not assembled")
    for case in cases(options):
        try:
            program = Program(options, case)
            listed = program.tensors(dict.fromkeys([*"QKVO", "dO", "LSE", *NAMES], 0))
            tensors = {name: host.Tensor((i + 1) << 40, shape, strides, elem) for i, (name, elem, shape, strides) in enumerate(listed)}
            plans = [(contract, contract.plan(*program.arguments(contract, tensors))) for contract in program.contracts]
            if ptxas is not None and program.words not in done:
                done[program.words] = assemble(ptxas, program.kernels)
            said = "; ".join(f"{c.entry} grid {p.grid} block {c.block} smem {c.dynamic_smem}" for c, p in plans)
            print(f"{case['case']}: {said}; {done.get(program.words, '')}")
        except (host.CompileError, host.ContractError, ValueError, RuntimeError) as error:
            failed += 1
            print(f"{case['case']}: {type(error).__name__}: {str(error)[:400]}")
    return int(failed > 0)


class Bench:
    """The child's side: one device, one case after another."""

    def __init__(self, options: argparse.Namespace, device: str = "cuda", driver: host.Driver | None = None) -> None:
        import torch

        self.torch, self.options = torch, options
        self.device = torch.device(device)
        torch.zeros(1, device=self.device)  # makes the context of this thread
        self.driver = driver or host.Driver()
        self.results: list[list[Any]] = []
        self.plan = measure.Plan(rounds=options.rounds, turn_ms=options.turn_ms, seed=options.seed)

    def work(self, case: Case) -> Case:
        """A case: check, measure, check again."""
        if case.get("hello"):
            return machine(self.torch)
        row: Case = {"note": ""}
        self.results = []
        inputs = self.inputs(case)
        contestants: dict[str, measure.Call] = {}
        try:
            contestants["ours"] = self.ours(case, inputs, row)
        except (host.CompileError, host.ContractError, ValueError) as error:
            row["note"] = str(error).splitlines()[0][:200]
        self.add_libraries(inputs, contestants, row)
        if not contestants:
            return row
        flat = [result for results in self.results for result in results]
        first = [self.torch.clone(result) for result in flat] if "ours" in contestants else []
        self.poison()
        row["times"] = {n: list(t.us) for n, t in measure.compare(self.torch, contestants, len(inputs), self.plan).items()}
        as_bytes = self.torch.uint8
        if any(not self.torch.equal(a.view(as_bytes), b.view(as_bytes)) for a, b in zip(first, flat, strict=False)):
            raise RuntimeError("WRONG RESULT: it changed between launches")
        return row

    def poison(self) -> None:
        """Fills the results with bytes that are NaN in every float type."""
        for result in (result for results in self.results for result in results):
            result.view(self.torch.uint8).fill_(0xFF)

    def inputs(self, case: Case) -> list[Given]:
        """Normal random sets with their forward pass, more than the second-level cache holds."""
        torch, shape = self.torch, [case[n] for n in "ZHLD"]
        dtype = getattr(torch, forward_pass.TORCH_TYPES[self.options.type])
        generator = torch.Generator(device=self.device).manual_seed(random.Random(f"{self.options.seed} {case['case']}").getrandbits(62))
        n_sets = measure.input_sets(5 * math.prod(shape) * dtype.itemsize, torch.cuda.get_device_properties(0).L2_cache_size)

        def tensor() -> Any:
            return torch.randn(shape, generator=generator, device=self.device).to(dtype)

        return [forward(torch, tensor(), tensor(), tensor(), tensor(), case["causal"]) for _ in range(n_sets)]

    def ours(self, case: Case, inputs: list[Given], row: Case) -> measure.Call:
        """Compiled, launched from the contracts on every set with NaN in the outputs, and right."""
        torch = self.torch
        program = Program(self.options, case)
        row["options"] = program.words
        loaded = [host.LoadedKernel(self.driver, program.kernels.ptx, contract) for contract in program.contracts]
        self.results = [[torch.empty_like(s.q) for _ in NAMES] for s in inputs]
        self.poison()
        memory, bound = [], []
        for given, results in zip(inputs, self.results, strict=True):
            own = {"Q": given.q, "K": given.k, "V": given.v, "O": given.o, "dO": given.g, "LSE": given.lse, **dict(zip(NAMES, results, strict=True))}
            tensors = {}
            for name, elem, shape, strides in program.tensors(dict.fromkeys(own, 0)):
                if name not in own:
                    extent = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1
                    # Temporaries begin as nothing, and signals as zeros.
                    signals = elem == "u32"
                    own[name] = torch.full((extent * host.BITS[elem] // 8,), 0 if signals else 0xFF, dtype=torch.uint8, device=self.device)
                    memory.append(own[name])
                tensors[name] = host.Tensor(own[name].data_ptr(), shape, strides, elem)
            overlap = not self.options.no_overlap
            bound.append([kernel.bind(*program.arguments(kernel.contract, tensors), overlap=overlap) for kernel in loaded])
        row["contract"] = ",".join(str(contract.data.get("id", "")) for contract in program.contracts)
        row["registers"] = ",".join(str(kernel.registers()) for kernel in loaded)

        def call(index: int) -> Any:
            assert memory is not None  # temporaries stay as long as the launches do
            for launch in bound[index]:
                launch.launch(torch.cuda.current_stream().cuda_stream)
            return self.results[index]

        for i, given in enumerate(inputs):
            results = call(i)
            torch.cuda.synchronize()
            verdict = judge(torch, given, results, self.options.type)
            row["deviation"] = max(row.get("deviation", 0.0), verdict.relative)
            row["of_bound"] = max(row.get("of_bound", 0.0), verdict.worst)
            if not verdict.right:
                raise RuntimeError(f"WRONG RESULT of set {i}: relative error {verdict.relative:.2e}, {verdict.worst:.2f} of the bound")
        return call

    def add_libraries(self, inputs: list[Given], contestants: dict[str, measure.Call], row: Case) -> None:
        """The libraries that take this problem and are right. Why others do not is noted."""
        for backend in self.options.against.split(",") if self.options.against != "none" else []:
            try:
                call = library(self.torch, backend, inputs)
                verdict = judge(self.torch, inputs[0], call(0), self.options.type)
                # Others round more than the bound knows of: their errors are told by the norm.
                if not verdict.relative < 0.02:
                    raise RuntimeError(f"its relative error is {verdict.relative:.2e}, {verdict.worst:.2f} of the bound")
                contestants[backend] = call
            except Exception as error:  # noqa: BLE001  each library has exceptions of its own
                self.torch.cuda.synchronize()
                row["note"] += f"{'; ' if row['note'] else ''}{backend}: {str(error).splitlines()[0][:120] if str(error) else type(error).__name__}"


def operations(case: Case) -> float:
    """Five products, by FlashAttention's count: half of them where causal."""
    return 2.5 * forward_pass.operations(case)


def summary(case: Case, answer: Case) -> Case:
    """The row of a case: medians, rates, and the ratio to the fastest library."""
    row = {**case, **{key: answer[key] for key in answer if key in COLUMNS}}
    times = {name: measure.Times(tuple(us)) for name, us in answer.get("times", {}).items()}
    for name, t in times.items():
        row |= {f"{name}_us": t.median, f"{name}_spread": t.spread, f"{name}_tflops": operations(case) / t.median / 1e6}
    others = {name: t for name, t in times.items() if name != "ours"}
    if others:
        row["best"] = min(others, key=lambda name: others[name].median)
        if "ours" in times:
            ratio = measure.Ratio.of(others[row["best"]], times["ours"])
            row |= {"ratio": ratio.median, "ratio_min": ratio.least, "ratio_max": ratio.greatest}
    if "error" in answer:
        row["note"] = answer["error"]
    return row


def short(rows: list[Case]) -> str:
    """The table for the end of the output."""
    figures = {"ours us": ("ours_us", 1), "TF/s": ("ours_tflops", 0), **{f"{n} TF/s": (f"{n}_tflops", 0) for n in BACKENDS}}
    figures |= {"ratio": ("ratio", 3), "least": ("ratio_min", 3), "most": ("ratio_max", 3), "error": ("deviation", 5)}
    return case_table(rows, figures)


def main() -> int:
    options = arguments()
    parts = suite.Parts(
        title="attention, backward",
        cases=lambda: cases(options),
        dry=lambda: dry(options),
        work=lambda: Bench(options).work,
        row_of=summary,
        table=short,
    )
    return suite.run(__file__, options, COLUMNS, parts)


if __name__ == "__main__":
    sys.exit(main())
