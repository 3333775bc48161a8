#!/usr/bin/env python3
"""Our attention against the fastest of PyTorch's backends and cuDNN's own frontend, interleaved in one process on a GPU.

    scripts/gpu_attention.py --tilec target/release/tilec --out /tmp/attention
    scripts/gpu_attention.py --dry --case Z=4,H=16,L=4096,D=128          # compiles, assembles and checks contracts, without a GPU

Each case is compiled for its head size, checked against double precision with the output filled with NaN first, timed in turns with
the libraries, and compared bit for bit with its first result after that. OUT.csv has a row a case, OUT.rounds.csv every round.
Rates count 4 * Z * H * L^2 * D operations, half of them where causal. A ratio above 1 says that ours is faster.
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
from gpu.attention_reference import judge  # noqa: E402
from gpu.library_attention import BACKENDS, library  # noqa: E402
from gpu.report import case_table, machine  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
# FlashAttention-3's protocol: 16k tokens, all heads together 2048 wide; and three cases that were measured by hand before.
TOKENS, HIDDEN = 16384, 2048
EARLIER = ["Z=4,H=16,L=4096,D=128", "Z=1,H=16,L=16384,D=128", "Z=8,H=16,L=2048,D=64"]
TORCH_TYPES = {"bf16": "bfloat16", "f16": "float16", "e4m3": "float8_e4m3fn", "f32": "float32"}
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
    add("--file", default=str(ROOT / "examples/flash_attention.tile"), help="the program")
    add("--causal-file", help="the program of causal cases, where it is another one")
    add("--target", default="sm_90a")
    add("--type", default="bf16", choices=["bf16", "f16", "e4m3"], help="elements of Q, K and V")
    add("--define", action="append", default=[], metavar="NAME=VALUE", help="compile-time parameter; {Z}, {H}, {L}, {D} and {T} are replaced. Default: T={T}, D={D}")
    add("--define-if", action="append", default=[], metavar="D=256:NAME=VALUE,..", help="more of them for cases that have this value")
    add("--causal-define", metavar="NAME=VALUE,..", help="more of them for causal cases; says that the program has a causal form")
    add("--full-define", metavar="NAME=VALUE,..", help="more of them for the others")
    add("--variant", action="append", default=[], metavar="NAME:BKV=64,..[,file=F][,option=--word]", help="another choice of ours, timed beside the first")
    add("--option", action="append", default=[], help="another option of tilec, such as --option=--for=L={L}")
    add("--kernel", help="which kernel of the file, where it has several")
    add("--tensor", action="append", default=[], metavar="Q=NAME", help="what the program calls Q, K, V or O; default: that, in either case of letters")
    add("--size", action="append", default=[], metavar="NAME=Z", help="a size that no tensor has as its extent: a number, or Z, H, L, D")
    add("--scalar", action="append", default=[], metavar="NAME=auto", help="auto: 1/sqrt(D), times log2(e) if the name holds `log2`; or a number. Default: auto for each `scale..`")
    add("--values-by-keys", action="store_true", help="keys of V are neighbours in memory, as products of 8-bit floats read them")
    add("--case", action="append", default=[], metavar="Z=4,H=16,L=4096,D=128[,causal]", help="a case, instead of the suites")
    add("--suite", default="fa3,earlier", help="fa3, earlier")
    add("--lengths", default="2048,4096,8192,16384")
    add("--head-sizes", default="64,128,256")
    add("--masks", default="full,causal")
    add("--against", default=",".join(BACKENDS), help="libraries, of %(default)s; `none`")
    add("--no-overlap", action="store_true", help="launches do not overlap, though the contract allows it")
    add("--rounds", type=int, default=9)
    add("--turn-ms", type=float, default=12.0)
    add("--seed", type=int, default=0)
    add("--limit", type=float, default=60.0, help="seconds of a case, after which its process is ended")
    add("--seconds", type=float, default=540.0, help="of all cases; what is left then is not measured")
    add("--tag", default="", help="a label for the rows")
    add("--out", default="attention", help="path of the CSV files, without suffix")
    add("--dry", action="store_true", help="without a GPU: compile, assemble, check the launches")
    add("--child", action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(last_define=[])
    options = parser.parse_args(words)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    for name in "tensor", "size", "scalar", "define":
        if any("=" not in item for item in getattr(options, name)):
            parser.error(f"--{name} takes NAME=VALUE")
    return options


def cases(options: argparse.Namespace) -> list[Case]:
    """The cases asked for, each once."""
    texts = list(options.case)
    if not texts:
        suites = options.suite.split(",")
        sizes = [(int(d), int(n)) for d in options.head_sizes.split(",") for n in options.lengths.split(",")]
        masks = ["" if mask == "full" else ",causal" for mask in options.masks.split(",")]
        if "earlier" in suites:
            texts += EARLIER
        if "fa3" in suites:
            texts += [f"Z={max(1, TOKENS // n)},H={HIDDEN // d},L={n},D={d}{mask}" for d, n in sizes for mask in masks]
    return [parse_case(text) for text in dict.fromkeys(texts)]


def parse_case(text: str) -> Case:
    """`Z=4,H=16,L=4096,D=128,causal` as a case."""
    parts = text.split(",")
    causal = "causal" in parts
    sizes = dict(part.split("=", 1) for part in parts if part != "causal")
    if set(sizes) != set("ZHLD") or not all(value.isdigit() and int(value) > 0 for value in sizes.values()):
        sys.exit(f"a case is Z=..,H=..,L=..,D=..[,causal], found {text}")
    return {"case": text, "causal": causal, **{name: int(sizes[name]) for name in "ZHLD"}}


def compile_options(options: argparse.Namespace, case: Case) -> list[str]:
    """The command line of tilec for a case, but for the file. Later definitions of a name win."""
    if case["causal"] and options.causal_define is None and options.causal_file is None:
        raise ValueError("no causal form was named: --causal-define, --causal-file")
    items = [item for text in options.define or ["T={T}", "D={D}"] for item in text.split(",")]
    for text in options.define_if:
        condition, _, more = text.partition(":")
        name, _, value = condition.partition("=")
        if str(case.get(name)) == value:
            items += more.split(",")
    items += ((options.causal_define if case["causal"] else options.full_define) or "").split(",")
    items += options.last_define
    places = {**{name: case[name] for name in "ZHLD"}, "T": options.type}
    defined = dict(item.format(**places).split("=", 1) for item in items if item)
    more_options = [text.format(**places) for text in options.option]
    return ["--target", options.target, *(word for name, value in defined.items() for word in ("-D", f"{name}={value}")), *more_options]


def variants(options: argparse.Namespace) -> dict[str, argparse.Namespace]:
    """Other choices of ours by their names, each as the options that it is compiled with."""
    found = {}
    for text in options.variant:
        name, _, words = text.partition(":")
        other = argparse.Namespace(**vars(options))
        other.last_define, other.option = [], list(options.option)
        for word in filter(None, words.split(",")):
            key, _, value = word.partition("=")
            if key == "file":
                other.file, other.causal_file = value, None
            elif key == "option":
                other.option.append(value)
            else:
                other.last_define.append(word)
        found[name] = other
    return found


def compile_case(options: argparse.Namespace, case: Case) -> tuple[host.LaunchFile, str]:
    """The compiled program, and what it was compiled from."""
    words = compile_options(options, case)
    file = options.causal_file if case["causal"] and options.causal_file else options.file
    return host.compile_file(options.tilec, file, words), " ".join(words)


class Binding:
    """What the program calls things, found in its contract."""

    def __init__(self, options: argparse.Namespace, kernels: host.LaunchFile, case: Case) -> None:
        name = options.kernel or next(iter([*kernels.dispatch, *kernels.kernels]))
        first = kernels.dispatch[name][0]["entry"] if name in kernels.dispatch else name
        self.contract = kernels.kernels[first]
        known = {param["name"]: param for param in self.contract.of_kind("tensor")}
        named = dict(item.split("=", 1) for item in options.tensor)
        self.tensors = {role: named.get(role) or next((n for n in known if n.lower() == role.lower()), role) for role in "QKVO"}
        missing = [f"{role}={name}" for role, name in self.tensors.items() if name not in known]
        if missing:
            raise ValueError(f"no tensor {', '.join(missing)} among {', '.join(known)}: --tensor")
        self.shape = [case[n] for n in "ZHLD"]
        self.by_keys = self.tensors["V"] if options.values_by_keys else None
        self.rank = len(host.modes(known[self.tensors["Q"]]["shape"]))
        self.output = str(known[self.tensors["O"]]["type"])
        self.inputs = str(known[self.tensors["Q"]]["type"])
        self.extra = [p for n, p in known.items() if n not in self.tensors.values()]
        self.scalars = self._scalars(options, case)
        self.sizes = {}
        for item in options.size:
            size, value = item.split("=", 1)
            self.sizes[size] = case[value] if value in case else int(value)

    def _scalars(self, options: argparse.Namespace, case: Case) -> dict[str, float]:
        given = {p["name"]: "auto" for p in self.contract.of_kind("scalar") if p["name"].startswith("scale")}
        given |= dict(item.split("=", 1) for item in options.scalar)
        scale = 1 / math.sqrt(case["D"])
        return {n: (scale * (math.log2(math.e) if "log2" in n else 1) if v == "auto" else float(v)) for n, v in given.items()}

    def tensor(self, address: int, elem: str, by_keys: bool) -> host.Tensor:
        """A packed tensor `[Z, H, L, D]`, with leading dimensions put together where the program has fewer."""
        shape = [math.prod(self.shape[: 5 - self.rank]), *self.shape[5 - self.rank :]]
        strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        if by_keys:
            strides[-2:] = [1, shape[-2]]
        return host.Tensor(address, tuple(shape), tuple(strides), elem)

    def arguments(self, addresses: Mapping[str, int]) -> dict[str, host.Tensor]:
        """Q, K, V and O by the program's names."""
        elems = {"O": self.output}
        named = {role: (self.tensors[role], address) for role, address in addresses.items()}
        return {name: self.tensor(address, elems.get(role, self.inputs), name == self.by_keys) for role, (name, address) in named.items()}

    def extras(self, tensors: Mapping[str, host.Tensor]) -> list[tuple[str, str, tuple[int, ...], tuple[int, ...]]]:
        """Further results that the program writes: name, type, shape and strides."""
        values = self.contract.values(tensors, self.sizes, self.scalars) if self.extra else {}
        wrong = [p["name"] for p in self.extra if p["access"] != "write" and not p.get("scratch")]
        if wrong:
            raise ValueError(f"the program also reads {', '.join(wrong)}, of which nothing is known here")
        return [(p["name"], str(p["type"]), *self.contract.shape_of(p["name"], values)) for p in self.extra]


def dry(options: argparse.Namespace) -> int:
    """Everything but the launch, for each case. The exit status says whether all went well."""
    ptxas, failed, done = find_ptxas(), 0, dict[tuple[str, str], str]()
    if ptxas is None:
        print("no ptxas: what tilec wrote is not assembled")
    for case, options in [(case, choice) for case in cases(options) for choice in [options, *variants(options).values()]]:
        try:
            kernels, words = compile_case(options, case)
            binding = Binding(options, kernels, case)
            tensors = binding.arguments({role: (i + 1) << 40 for i, role in enumerate("QKVO")})
            for i, (name, elem, shape, strides) in enumerate(binding.extras(tensors)):
                tensors[name] = host.Tensor((i + 8) << 40, shape, strides, elem)
            contract = kernels.choose(tensors, binding.sizes, binding.scalars, options.kernel)
            plan = contract.plan(tensors, binding.sizes, binding.scalars)
            key = (words, contract.entry)
            if ptxas is not None and key not in done:
                done[key] = assemble(ptxas, kernels)
            said = f"grid {plan.grid} block {contract.block} smem {contract.dynamic_smem} overlap {contract.programmatic}"
            print(f"{case['case']}: {said}; scalars {binding.scalars}; {done.get(key, '')}")
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
        self.results: list[Any] = []
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
            contestants["ours"] = self.ours(self.options, case, inputs, row)
        except (host.CompileError, host.ContractError, ValueError) as error:
            row["note"] = str(error).splitlines()[0][:200]
        first_results = self.results
        for name, options in variants(self.options).items():
            try:
                contestants[name] = self.ours(options, case, inputs, {})
            except (host.CompileError, host.ContractError, ValueError) as error:
                row["note"] += f"{'; ' if row['note'] else ''}{name}: {str(error).splitlines()[0][:120]}"
        self.results = first_results
        self.add_libraries(case, inputs, contestants, row)
        if not contestants:
            return row
        first = [self.torch.clone(result) for result in self.results] if "ours" in contestants else []
        self.poison()
        row["times"] = {n: list(t.us) for n, t in measure.compare(self.torch, contestants, len(inputs), self.plan).items()}
        as_bytes = self.torch.uint8
        if any(not self.torch.equal(a.view(as_bytes), b.view(as_bytes)) for a, b in zip(first, self.results, strict=False)):
            raise RuntimeError("WRONG RESULT: it changed between launches")
        return row

    def poison(self) -> None:
        """Fills the results with bytes that are NaN in every float type."""
        for result in self.results:
            result.view(self.torch.uint8).fill_(0xFF)

    def inputs(self, case: Case) -> list[tuple[Any, Any, Any]]:
        """Normal random sets, more than the second-level cache holds."""
        torch, shape = self.torch, [case[n] for n in "ZHLD"]
        dtype = getattr(torch, TORCH_TYPES[self.options.type])
        generator = torch.Generator(device=self.device).manual_seed(random.Random(f"{self.options.seed} {case['case']}").getrandbits(62))
        n_sets = measure.input_sets(3 * math.prod(shape) * dtype.itemsize, torch.cuda.get_device_properties(0).L2_cache_size)

        def tensor() -> Any:
            return torch.randn(shape, generator=generator, device=self.device).to(dtype)

        def values() -> Any:
            v = tensor()
            return v.transpose(-1, -2).contiguous().transpose(-1, -2) if self.options.values_by_keys else v

        return [(tensor(), tensor(), values()) for _ in range(n_sets)]

    def ours(self, options: argparse.Namespace, case: Case, inputs: list[tuple[Any, Any, Any]], row: Case) -> measure.Call:
        """Compiled, launched from its contract on every set with NaN in the output, and right."""
        torch = self.torch
        kernels, row["options"] = compile_case(options, case)
        binding = Binding(options, kernels, case)
        dtype = getattr(torch, TORCH_TYPES[binding.output])
        self.results = results = [torch.empty([case[n] for n in "ZHLD"], dtype=dtype, device=self.device) for _ in inputs]
        self.poison()
        memory, bound, loaded = [], [], dict[str, host.LoadedKernel]()
        for (q, k, v), o in zip(inputs, results, strict=True):
            tensors = binding.arguments({role: t.data_ptr() for role, t in zip("QKVO", (q, k, v, o), strict=True)})
            for name, elem, shape, strides in binding.extras(tensors):
                extent = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1
                memory.append(torch.zeros(extent * host.BITS[elem] // 8, dtype=torch.uint8, device=self.device))
                tensors[name] = host.Tensor(memory[-1].data_ptr(), shape, strides, elem)
            contract = kernels.choose(tensors, binding.sizes, binding.scalars, options.kernel)
            if contract.entry not in loaded:
                loaded[contract.entry] = host.LoadedKernel(self.driver, kernels.ptx, contract)
            bound.append(loaded[contract.entry].bind(tensors, binding.sizes, binding.scalars, overlap=not options.no_overlap))
        row["contract"] = ",".join(str(k.contract.data.get("id", "")) for k in loaded.values())
        row["registers"] = ",".join(str(k.registers()) for k in loaded.values())

        def call(index: int) -> Any:
            assert memory is not None  # further results stay as long as the launches do
            bound[index].launch(torch.cuda.current_stream().cuda_stream)
            return results[index]

        for i, given in enumerate(inputs):
            result = call(i)
            torch.cuda.synchronize()
            verdict = judge(torch, given, result, case["causal"], binding.inputs, binding.output)
            row["deviation"] = max(row.get("deviation", 0.0), verdict.relative)
            row["of_bound"] = max(row.get("of_bound", 0.0), verdict.worst)
            if not verdict.right:
                raise RuntimeError(f"WRONG RESULT of set {i}: relative error {verdict.relative:.2e}, {verdict.worst:.2f} of the bound")
        return call

    def add_libraries(self, case: Case, inputs: list[tuple[Any, Any, Any]], contestants: dict[str, measure.Call], row: Case) -> None:
        """The libraries that take this problem and are right. Why others do not is noted."""
        for backend in self.options.against.split(",") if self.options.against != "none" else []:
            try:
                if self.options.type == "e4m3" and backend != "frontend":
                    raise RuntimeError("it has no attention of 8-bit floats")
                call = library(self.torch, backend, inputs, case["causal"])
                verdict = judge(self.torch, inputs[0], call(0), case["causal"], self.options.type, self.options.type)
                if not verdict.right:
                    raise RuntimeError(f"its relative error is {verdict.relative:.2e}, {verdict.worst:.2f} of the bound")
                contestants[backend] = call
            except Exception as error:  # noqa: BLE001  each library has exceptions of its own
                self.torch.cuda.synchronize()
                row["note"] += f"{'; ' if row['note'] else ''}{backend}: {str(error).splitlines()[0][:120] if str(error) else type(error).__name__}"


def operations(case: Case) -> float:
    """By FlashAttention's count: half of it where causal."""
    return float(4 * case["Z"] * case["H"] * case["L"] ** 2 * case["D"]) * (0.5 if case["causal"] else 1.0)


def summary(case: Case, answer: Case) -> Case:
    """The row of a case: medians, rates, and the ratio to the fastest library."""
    row = {**case, **{key: answer[key] for key in answer if key in COLUMNS}}
    times = {name: measure.Times(tuple(us)) for name, us in answer.get("times", {}).items()}
    for name in times.keys() & {"ours", *BACKENDS}:
        t = times[name]
        row |= {f"{name}_us": t.median, f"{name}_spread": t.spread, f"{name}_tflops": operations(case) / t.median / 1e6}
    others = {name: t for name, t in times.items() if name in BACKENDS}
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

    def row_of(case: Case, answer: Case) -> Case:
        times = {name: measure.Times(tuple(us)) for name, us in answer.get("times", {}).items()}
        for name in variants(options):
            if name in times and "ours" in times:
                ratio = measure.Ratio.of(times["ours"], times[name])
                print(f"{case['case']}: {name} {times[name].median:.1f} us, {ratio.median:.3f} of ours (least {ratio.least:.3f}, most {ratio.greatest:.3f})")
        return summary(case, answer)

    parts = suite.Parts(
        title="attention",
        cases=lambda: cases(options),
        dry=lambda: dry(options),
        work=lambda: Bench(options).work,
        row_of=row_of,
        table=short,
    )
    return suite.run(__file__, options, COLUMNS, parts)


if __name__ == "__main__":
    sys.exit(main())
