#!/usr/bin/env python3
"""Fused products against the plain product's rate: SwiGLU with two products in a loop, and two products back to back.

    scripts/gpu_fused.py --kind swiglu --file examples/swiglu.tile --tilec target/release/tilec --out /tmp/swiglu
    scripts/gpu_fused.py --kind back_to_back --file F.tile --case M=16384,N=128,K=1024,P=1024 --dry        # without a GPU

The plain product has the same number of operations: of SwiGLU M x 2N x K, of (A * B) * C both products one behind the other. It is
examples/gemm.tile with what the model chooses, and cuBLAS through PyTorch; `separate` is the fused expression in PyTorch's own steps.
All are timed in turns. `of plain` is the plain product's time over that of the fused one: the share of its rate that is reached.
Operands are the parameters of the program in their order; how they lie in memory follows from the contract's strides.
"""

import argparse
import math
import os
import pathlib
import random
import sys
from collections.abc import Mapping, Sequence
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from gpu import contract_host as host  # noqa: E402
from gpu import measure, suite  # noqa: E402
from gpu.assemble import assemble, find_ptxas  # noqa: E402
from gpu.fused_programs import KINDS, worst  # noqa: E402
from gpu.report import case_table, machine  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = {
    "swiglu": ["M=4096,N=14336,K=4096", "M=8192,N=14336,K=4096", "M=4096,N=7168,K=8192", "M=2048,N=3584,K=8192", "M=4096,N=4096,K=4096", "M=512,N=14336,K=4096"],
    "back_to_back": ["M=16384,N=128,K=1024,P=1024", "M=16384,N=128,K=4096,P=4096", "M=65536,N=64,K=1024,P=1024"],
}
TORCH_TYPES = {"bf16": "bfloat16", "f16": "float16"}
CONTESTANTS = ["fused", "plain", "cublas", "separate"]
COLUMNS = [
    "tag", "kind", "case", "type", *(f"{n}_{c}" for n in CONTESTANTS for c in ("us", "spread", "tflops")), "of_plain", "of_plain_min", "of_plain_max", "of_cublas",
    "over_separate", "deviation", "of_bound", "registers", "note", "file", "options", "contract", "machine", "driver", "torch", "cudnn", "date", "tilec", "command",
]  # fmt: skip
Case = dict[str, Any]
Memory = tuple[str, str, tuple[int, ...], tuple[int, ...]]


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--kind", required=True, choices=sorted(KINDS))
    add("--file", required=True, help="the program")
    add("--plain-file", default=str(ROOT / "examples/gemm.tile"), help="the plain product, with parameters M, N, K, A, B, C")
    add("--plain-define", default="T={T},Out={T}", help="its compile-time parameters, %(default)s")
    add("--tilec", default=os.environ.get("TILEC", str(ROOT / "target/release/tilec")), help="the compiler's binary")
    add("--target", default="sm_90a")
    add("--card", default="H200")
    add("--type", default="bf16", choices=sorted(TORCH_TYPES))
    add("--define", action="append", default=[], metavar="NAME=VALUE,..", help="compile-time parameters; {T} and sizes in braces are replaced")
    add("--option", action="append", default=[], help="another option of tilec")
    add("--kernel", help="which kernel of the file, where it has several")
    add("--case", action="append", default=[], metavar="M=..,N=..,K=..[,P=..]")
    add("--no-overlap", action="store_true", help="launches do not overlap, though the contracts allow it")
    add("--rounds", type=int, default=9)
    add("--turn-ms", type=float, default=12.0)
    add("--seed", type=int, default=0)
    add("--limit", type=float, default=60.0, help="seconds of a case, after which its process is ended")
    add("--seconds", type=float, default=300.0, help="of all cases")
    add("--tag", default="", help="a label for the rows")
    add("--out", default="fused", help="path of the CSV files, without suffix")
    add("--dry", action="store_true", help="without a GPU: compile, assemble, check the launches")
    add("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    return options


def parse_case(kind: str, text: str) -> Case:
    """`M=4096,N=4096,K=4096` as a case."""
    sizes = dict(part.partition("=")[::2] for part in text.split(","))
    if sorted(sizes) != sorted(KINDS[kind].sizes()) or not all(value.isdigit() and int(value) > 0 for value in sizes.values()):
        sys.exit(f"a case of {kind} is {','.join(f'{n}=..' for n in KINDS[kind].sizes())}, found {text}")
    return {"case": text, **{name: int(value) for name, value in sizes.items()}}


def cases(options: argparse.Namespace) -> list[Case]:
    return [parse_case(options.kind, text) for text in options.case or CASES[options.kind]]


def tilec_words(options: argparse.Namespace, defines: str, sizes: Mapping[str, int]) -> list[str]:
    """tilec's options for these sizes, but for `--for`."""
    places = {**sizes, "T": options.type}
    return ["--target", options.target, "--card", options.card, *(["-D", defines.format(**places)] if defines else [])]


def chosen_for(sizes: Mapping[str, int]) -> list[str]:
    """The option that says for which sizes `auto` parameters are chosen."""
    return ["--for", ",".join(f"{name}={value}" for name, value in sizes.items())]


def compile_fused(options: argparse.Namespace, case: Case) -> tuple[host.LaunchFile, str]:
    """The fused program for a case, and its options."""
    sizes = {name: case[name] for name in KINDS[options.kind].sizes()}
    words = tilec_words(options, ",".join(options.define), sizes) + [text.format(**sizes, T=options.type) for text in options.option]
    # Some extents may be compile-time parameters of this program: its contract says which are sizes.
    known = first_contract(host.compile_file(options.tilec, options.file, words), options.kernel).of_kind("size")
    words += chosen_for({param["name"]: case[param["name"]] for param in known})
    return host.compile_file(options.tilec, options.file, words), " ".join(words)


def compile_plain(options: argparse.Namespace, product: tuple[int, int, int]) -> host.LaunchFile:
    """The plain product of M, N and K."""
    sizes = dict(zip("MNK", product, strict=True))
    return host.compile_file(options.tilec, options.plain_file, [*tilec_words(options, options.plain_define, sizes), *chosen_for(sizes)])


def first_contract(kernels: host.LaunchFile, name: str | None) -> host.Contract:
    """The contract that says what the parameters are: of variants all say the same."""
    name = name or next(iter([*kernels.dispatch, *kernels.kernels]))
    return kernels.kernels[kernels.dispatch[name][0]["entry"] if name in kernels.dispatch else name]


def memory_of(contract: host.Contract, sizes: Mapping[str, int]) -> tuple[list[Memory], Memory, list[Memory]]:
    """What the launch needs, packed: operands in order, the result, and scratch memory."""
    known = {param["name"] for param in contract.of_kind("size")}
    values = contract.values({}, {name: value for name, value in sizes.items() if name in known}, {})
    every = [(p, (p["name"], str(p["type"]), *contract.shape_of(p["name"], values))) for p in contract.of_kind("tensor")]
    operands = [memory for param, memory in every if param["access"] == "read" and not param.get("scratch")]
    results = [memory for param, memory in every if param["access"] != "read" and not param.get("scratch")]
    if len(results) != 1:
        raise ValueError(f"`{contract.entry}` writes {', '.join(name for name, *_ in results)}, expected one result")
    return operands, results[0], [memory for param, memory in every if param.get("scratch")]


def check_operands(options: argparse.Namespace, case: Case, operands: list[Memory], result: Memory) -> None:
    """The program's parameters must be those of the kind."""
    kind = KINDS[options.kind]
    wanted = [(case[a], case[b]) for _, a, b in kind.inputs]
    found = [shape for _, _, shape, _ in operands]
    if found != wanted or result[2] != (case[kind.output[0]], case[kind.output[1]]):
        raise ValueError(f"operands of {kind.name} have the shapes {wanted}, the program's {found}, and its result {result[2]}")
    if any(elem != options.type for _, elem, _, _ in [*operands, result]):
        raise ValueError(f"the program's elements are {', '.join(elem for _, elem, _, _ in [*operands, result])}, expected {options.type}")


def dry(options: argparse.Namespace) -> int:
    """Everything but the launch."""
    ptxas, failed = find_ptxas(), 0
    for case in cases(options):
        try:
            fused, _ = compile_fused(options, case)
            check_operands(options, case, *memory_of(first_contract(fused, options.kernel), case)[:2])
            programs = [(fused, case, options.kernel)]
            for product in KINDS[options.kind].plain_products(case):
                programs.append((compile_plain(options, product), dict(zip("MNK", product, strict=True)), None))
            for kernels, sizes, name in programs:
                operands, result, scratch = memory_of(first_contract(kernels, name), sizes)
                tensors = {m[0]: host.Tensor((i + 1) << 40, m[2], m[3], m[1]) for i, m in enumerate([*operands, result, *scratch])}
                contract = kernels.choose(tensors, {}, {}, name)
                plan = contract.plan(tensors, {}, {})
                said = assemble(ptxas, kernels) if ptxas else "no ptxas"
                print(f"{case['case']}: {contract.entry} grid {plan.grid} block {contract.block} smem {contract.dynamic_smem}; {said}")
        except (host.CompileError, host.ContractError, ValueError, RuntimeError) as error:
            failed += 1
            print(f"{case['case']}: {type(error).__name__}: {str(error)[:400]}")
    return int(failed > 0)


class Bench:
    """The child's side: one device, one case after another."""

    def __init__(self, options: argparse.Namespace, device: str = "cuda", driver: host.Driver | None = None) -> None:
        import torch

        self.torch, self.options, self.device = torch, options, torch.device(device)
        torch.zeros(1, device=self.device)  # makes the context of this thread
        self.driver = driver or host.Driver()
        self.plan = measure.Plan(rounds=options.rounds, turn_ms=options.turn_ms, seed=options.seed)
        self.dtype = getattr(torch, TORCH_TYPES[options.type])
        self.scratch: list[Any] = []
        self.results: list[Any] = []

    def work(self, case: Case) -> Case:
        """A case: check, measure, check again."""
        if case.get("hello"):
            return machine(self.torch)
        torch, kind = self.torch, KINDS[self.options.kind]
        self.scratch.clear()
        kernels, words = compile_fused(self.options, case)
        contract = first_contract(kernels, self.options.kernel)
        operands, result, _ = memory_of(contract, case)
        check_operands(self.options, case, operands, result)
        sets = self.sets(case, operands)
        self.results = [self.matrix(result) for _ in sets]
        fused = self.launches(kernels, self.options.kernel, [dict(zip([m[0] for m in operands], s, strict=True)) for s in sets], result[0], self.results)
        row: Case = {"note": "", "options": words, "contract": contract.data.get("id", ""), "registers": fused[0].kernel.registers()}
        row |= self.checked(sets, fused)
        first = [t.clone() for t in self.results]
        self.poison()
        calls = {"fused": lambda i: fused[i].launch(torch.cuda.current_stream().cuda_stream), **self.others(case, sets)}
        row["times"] = {name: list(t.us) for name, t in measure.compare(torch, calls, len(sets), self.plan).items()}
        as_bytes = torch.uint8
        if any(not torch.equal(self.flat(a).view(as_bytes), self.flat(b).view(as_bytes)) for a, b in zip(first, self.results, strict=True)):
            raise RuntimeError("WRONG RESULT: it changed between launches")
        row["tflop"] = kind.operations(case)
        return row

    def checked(self, sets: list[list[Any]], fused: list[host.BoundLaunch]) -> Case:
        """Every element of every set, the result filled with NaN before."""
        self.poison()
        deviation, of_bound = 0.0, 0.0
        for given, launch, result in zip(sets, fused, self.results, strict=True):
            launch.launch(self.torch.cuda.current_stream().cuda_stream)
            self.torch.cuda.synchronize()
            relative, most = worst(self.torch, KINDS[self.options.kind], given, result, self.options.type)
            if not most <= 1.0:
                raise RuntimeError(f"WRONG RESULT: relative error {relative:.2e}, {most:.2f} of the bound")
            deviation, of_bound = max(deviation, relative), max(of_bound, most)
        return {"deviation": deviation, "of_bound": of_bound}

    def others(self, case: Case, sets: list[list[Any]]) -> dict[str, measure.Call]:
        """The plain product, ours and cuBLAS's, on operands of its own, and PyTorch's separate steps."""
        torch, kind = self.torch, KINDS[self.options.kind]
        plain: list[list[host.BoundLaunch]] = []
        pairs: list[list[tuple[Any, Any, Any]]] = []
        for product in kind.plain_products(case):
            sizes = dict(zip("MNK", product, strict=True))
            kernels = compile_plain(self.options, product)
            operands, result, _ = memory_of(first_contract(kernels, None), {**sizes})
            inputs = [[self.random(memory, i, sizes["K"]) for i, memory in enumerate(operands)] for _ in sets]
            outputs = [self.matrix(result) for _ in sets]
            plain.append(self.launches(kernels, None, [dict(zip([m[0] for m in operands], s, strict=True)) for s in inputs], result[0], outputs))
            pairs.append([(s[0], s[1], out) for s, out in zip(inputs, outputs, strict=True)])
            self.check_plain(plain[-1][0], *pairs[-1][0])

        def run_plain(index: int) -> None:
            for launches in plain:
                launches[index].launch(torch.cuda.current_stream().cuda_stream)

        def run_cublas(index: int) -> None:
            for operands in pairs:
                a, b, out = operands[index]
                torch.matmul(a, b, out=out)

        return {"plain": run_plain, "cublas": run_cublas, "separate": lambda i: kind.separate(torch, sets[i])}

    def check_plain(self, launch: host.BoundLaunch, a: Any, b: Any, out: Any) -> None:
        """A plain product that is wrong is no measure."""
        launch.launch(self.torch.cuda.current_stream().cuda_stream)
        self.torch.cuda.synchronize()
        rows = slice(0, 256)
        expected = a[rows].double() @ b.double()
        error = float((out[rows].double() - expected).norm() / expected.norm())
        if not error < 0.01:
            raise RuntimeError(f"WRONG RESULT of the plain product: relative error {error:.2e}")

    def sets(self, case: Case, operands: list[Memory]) -> list[list[Any]]:
        """Normal random operands, scaled so that results are of size 1, more than the second-level cache holds."""
        torch = self.torch
        torch.manual_seed(random.Random(f"{self.options.seed} {case['case']}").getrandbits(62))
        size = sum(math.prod(shape) * self.dtype.itemsize for _, _, shape, _ in operands)
        count = measure.input_sets(size, torch.cuda.get_device_properties(0).L2_cache_size)
        return [[self.random(memory, i, memory[2][0]) for i, memory in enumerate(operands)] for _ in range(count)]

    def random(self, memory: Memory, index: int, depth: int) -> Any:
        """An operand; all but the first have a reduction of `depth` elements behind them."""
        tensor = self.matrix(memory)
        tensor.copy_(self.torch.randn(memory[2], device=self.device) / (math.sqrt(depth) if index else 1))
        return tensor

    def matrix(self, memory: Memory) -> Any:
        """A tensor with the strides of the contract."""
        return self.torch.empty_strided(memory[2], memory[3], dtype=self.dtype, device=self.device)

    def launches(self, kernels: host.LaunchFile, name: str | None, sets: list[dict[str, Any]], result: str, outputs: list[Any]) -> list[host.BoundLaunch]:
        """A launch for each set of operands."""
        loaded, bound = dict[str, host.LoadedKernel](), []
        for operands, out in zip(sets, outputs, strict=True):
            tensors = {n: host.Tensor(t.data_ptr(), tuple(t.shape), tuple(t.stride()), self.options.type) for n, t in {**operands, result: out}.items()}
            for extra, elem, shape, strides in first_contract(kernels, name).scratch(tensors):
                extent = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1
                self.scratch.append(self.torch.zeros(extent * host.BITS[elem] // 8, dtype=self.torch.uint8, device=self.device))
                tensors[extra] = host.Tensor(self.scratch[-1].data_ptr(), shape, strides, elem)
            contract = kernels.choose(tensors, {}, {}, name)
            if contract.entry not in loaded:
                loaded[contract.entry] = host.LoadedKernel(self.driver, kernels.ptx, contract)
            bound.append(loaded[contract.entry].bind(tensors, overlap=not self.options.no_overlap))
        return bound

    def flat(self, tensor: Any) -> Any:
        """All elements of a packed tensor in the order of memory."""
        return tensor.as_strided((tensor.numel(),), (1,))

    def poison(self) -> None:
        """Fills the results with bytes that are NaN in every float type."""
        for result in self.results:
            self.flat(result).view(self.torch.uint8).fill_(0xFF)


def summary(options: argparse.Namespace, case: Case, answer: Case) -> Case:
    """The row of a case."""
    row: Case = {"kind": options.kind, "case": case["case"], **{key: answer[key] for key in answer if key in COLUMNS}}
    times = {name: measure.Times(tuple(us)) for name, us in answer.get("times", {}).items()}
    for name, t in times.items():
        row |= {f"{name}_us": t.median, f"{name}_spread": t.spread, f"{name}_tflops": answer["tflop"] / t.median / 1e6}
    if times:
        ratio = measure.Ratio.of(times["plain"], times["fused"])
        row |= {"of_plain": ratio.median, "of_plain_min": ratio.least, "of_plain_max": ratio.greatest}
        row["of_cublas"] = measure.Ratio.of(times["cublas"], times["fused"]).median
        row["over_separate"] = measure.Ratio.of(times["separate"], times["fused"]).median
    if "error" in answer:
        row["note"] = answer["error"]
    return row


def short(rows: list[Case]) -> str:
    """The table for the end of the output."""
    figures = {
        "fused us": ("fused_us", 1), "TF/s": ("fused_tflops", 0), "plain": ("plain_tflops", 0), "cuBLAS": ("cublas_tflops", 0), "of plain": ("of_plain", 3),
        "least": ("of_plain_min", 3), "most": ("of_plain_max", 3), "of cuBLAS": ("of_cublas", 3), "over separate": ("over_separate", 2), "deviation": ("deviation", 5),
    }  # fmt: skip
    return case_table(rows, figures)


def main() -> int:
    options = arguments()
    parts = suite.Parts(
        title=options.kind,
        cases=lambda: cases(options),
        dry=lambda: dry(options),
        work=lambda: Bench(options).work,
        row_of=lambda case, answer: summary(options, case, answer),
        table=short,
    )
    return suite.run(__file__, options, COLUMNS, parts)


if __name__ == "__main__":
    sys.exit(main())
