"""The programs of an inference engine whose sizes come from tensors: what they take, what must come out, and what they are timed against.

A kind makes its inputs on the device, names the tensors as the program does, and says in double precision what is right. Outputs are filled with
NaN before; rows that the program must leave alone stay so.
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Case = dict[str, Any]
# Of the largest element of a row: one rounding to the type, and as much for that of weights.
BOUNDS = {"bf16": 2.0**-7, "f16": 2.0**-10}
SMS = 132


@dataclass
class Job:
    """One set of inputs."""

    tensors: dict[str, Any]
    output: str
    sizes: dict[str, int]
    scalars: dict[str, float] = field(default_factory=dict)
    # What is timed beside, by name.
    others: dict[str, Callable[[], Any]] = field(default_factory=dict)
    # What the output is filled with before a launch, and whether launches give the same bits.
    fill: float = math.nan
    repeats: bool = True
    # Element types that PyTorch's type does not tell, by tensor.
    elems: dict[str, str] = field(default_factory=dict)
    # What tensors that a launch changes in place hold before a launch that is checked, by tensor.
    state: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind:
    """A program."""

    file: str
    cases: tuple[str, ...]
    define: Callable[[Case], str]
    make: Callable[[Any, Any, Case], Job]
    # The largest deviation, of the bound; raises where something is wrong at once.
    check: Callable[[Any, Job, Case, str], float]
    # Operations, or bytes, of a call.
    work: Callable[[Case], float]
    bytes_of: Callable[[Case], float]
    # The kernel, of a file with several programs.
    kernel: str = ""
    # Sizes for which `auto` parameters are chosen, if they are.
    sizes: Callable[[Case], str] | None = None
    # Whether the program has a parameter `T`.
    typed: bool = True


def lengths(total: int, parts: int, how: str, seed: int) -> list[int]:
    """So many numbers that add up to `total`: alike, or drawn as tokens choose experts of different popularity (`random`), or with a few large ones (`skewed`)."""
    if how == "even":
        return [total * (i + 1) // parts - total * i // parts for i in range(parts)]
    draw = random.Random(seed)
    weights = [draw.uniform(0.5, 1.5) if how == "random" else draw.paretovariate(1.0) for _ in range(parts)]
    ends = [round(total * sum(weights[: i + 1]) / sum(weights)) for i in range(parts)]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def starts(torch: Any, parts: list[int]) -> Any:
    """Where each part begins, and where the last one ends."""
    return torch.tensor([sum(parts[:i]) for i in range(len(parts) + 1)], dtype=torch.int32, device="cuda")


def normal(torch: Any, dtype: Any, *shape: int) -> Any:
    return torch.randn(*shape, device="cuda", dtype=torch.float32).to(dtype) if math.prod(shape) < 1 << 28 else torch.randn(*shape, device="cuda", dtype=dtype)


def deviation(torch: Any, got: Any, exact: Any, elem: str) -> float:
    """Of a matrix, the largest deviation of a row in relation to its largest element, of the bound."""
    off = (got.double() - exact).abs().amax(-1) / exact.abs().amax(-1).clamp_min(1e-30)
    if not bool(torch.isfinite(off).all()):
        raise RuntimeError("WRONG RESULT: elements are missing")
    return float(off.max()) / BOUNDS[elem]


def counts_of(case: Case) -> list[int]:
    if case["kind"] == "masked":
        return [min(case["R"], n) for n in lengths(case["tokens"], case["E"], case["how"], 1)]
    return lengths(case["R"], case["E"], case["how"], 1)


def make_grouped(torch: Any, dtype: Any, case: Case) -> Job:
    r, e, k, n = (case[x] for x in ("R", "E", "K", "N"))
    x, w = normal(torch, dtype, r, k), normal(torch, dtype, e, k, n)
    y, dense = torch.empty(r, n, device="cuda", dtype=dtype), torch.empty(r, n, device="cuda", dtype=dtype)
    tensors = {"X": x, "W": w, "offsets": starts(torch, counts_of(case)), "Y": y}
    job = Job(tensors, "Y", {"E": e, "R": r}, others={"dense": lambda: torch.matmul(x, w[0], out=dense)})
    return with_copy(torch, job, moved_by_experts(case))


def check_grouped(torch: Any, job: Job, case: Case, elem: str) -> float:
    x, w, y, worst, at = job.tensors["X"], job.tensors["W"], job.tensors["Y"], 0.0, 0
    for e, n in enumerate(counts_of(case)):
        if n:
            worst = max(worst, deviation(torch, y[at : at + n], x[at : at + n].double() @ w[e].double(), elem))
        at += n
    return worst


def make_masked(torch: Any, dtype: Any, case: Case) -> Job:
    r, e, k, n = (case[x] for x in ("R", "E", "K", "N"))
    counts = counts_of(case)
    x, w = normal(torch, dtype, e, r, k), normal(torch, dtype, e, k, n)
    y, rows = torch.empty(e, r, n, device="cuda", dtype=dtype), normal(torch, dtype, sum(counts), k)
    dense = torch.empty(sum(counts), n, device="cuda", dtype=dtype)
    tensors = {"X": x, "W": w, "counts": torch.tensor(counts, dtype=torch.int32, device="cuda"), "Y": y}
    job = Job(tensors, "Y", {"E": e, "R": r}, others={"dense": lambda: torch.matmul(rows, w[0], out=dense)})
    return with_copy(torch, job, moved_by_experts(case))


def check_masked(torch: Any, job: Job, case: Case, elem: str) -> float:
    x, w, y, worst = job.tensors["X"], job.tensors["W"], job.tensors["Y"], 0.0
    for e, n in enumerate(counts_of(case)):
        if n:
            worst = max(worst, deviation(torch, y[e, :n], x[e, :n].double() @ w[e].double(), elem))
        if not bool(torch.isnan(y[e, n:]).all()):
            raise RuntimeError(f"WRONG RESULT: rows behind the {n} tokens of expert {e} are written")
    return worst


def sequences_of(case: Case) -> list[int]:
    return lengths(case["N"], case["Z"], case["how"], 2)


def make_varlen(torch: Any, dtype: Any, case: Case) -> Job:
    n, z, h, g, d = (case[x] for x in ("N", "Z", "H", "G", "D"))
    q, k, v = normal(torch, dtype, n, h, d), normal(torch, dtype, n, h // g, d), normal(torch, dtype, n, h // g, d)
    tensors = {"Q": q, "K": k, "V": v, "cu_seqlens": starts(torch, sequences_of(case)), "O": torch.empty_like(q)}
    # Sequences that are all as long: the same memory, by other shapes.
    same = [t.view(z, n // z, -1, d).transpose(1, 2) for t in (q, k, v)]

    def library() -> Any:
        return torch.nn.functional.scaled_dot_product_attention(*same, is_causal=bool(case["causal"]), enable_gqa=g > 1)

    return Job(tensors, "O", {"Z": z, "N": n}, {"scale_log2": math.log2(math.e) / math.sqrt(d)}, {"torch": library})


def check_varlen(torch: Any, job: Job, case: Case, elem: str) -> float:
    q, k, v, o = (job.tensors[name] for name in "QKVO")
    if not bool(torch.isfinite(o).all()):
        raise RuntimeError("WRONG RESULT: elements are missing")
    worst, at = 0.0, 0
    for n in sequences_of(case):
        for head in {0, case["H"] // 2, case["H"] - 1}:
            part = slice(at, at + n)
            keys, values = (t[part, head // case["G"]].double() for t in (k, v))
            scores = q[part, head].double() @ keys.T / math.sqrt(case["D"])
            if case["causal"]:
                scores.masked_fill_(torch.ones(n, n, dtype=torch.bool, device="cuda").triu(1), -math.inf)
            if n:
                worst = max(worst, deviation(torch, o[part, head], torch.softmax(scores, -1) @ values, elem))
        at += n
    return worst


def splits(case: Case, groups: int, per_sm: int, tile: int, most: int = 64) -> int:
    """Into how many parts keys are divided: the fewest rounds of blocks, each of which begins and ends with an idle pipeline."""
    room, tiles = SMS * per_sm, -(-case["L"] // tile)

    def cost(s: int) -> float:
        return -(-groups * s // room) * (-(-tiles // s) + 4) + s / 16

    return min(range(1, most + 1), key=cost)


def cache(torch: Any, case: Case, how: str) -> tuple[Any, Any, int, list[int]]:
    """Pages in any order, a length for each sequence, and how many pages there are."""
    z, page = case["Z"], 64
    lens = [max(1, n) for n in lengths(case["L"] * z, z, how, 3)]
    most = -(-max(lens) // page)
    count = sum(-(-n // page) for n in lens)
    order = torch.randperm(count, device="cuda").to(torch.int32)
    table, at = torch.zeros(z, most, dtype=torch.int32, device="cuda"), 0
    for i, n in enumerate(lens):
        own = -(-n // page)
        table[i, :own] = order[at : at + own]
        at += own
    return table, torch.tensor(lens, dtype=torch.int32, device="cuda"), count, lens


def spoil(cache_tensor: Any, table: Any, lens: list[int]) -> None:
    """What lies behind the keys of a sequence on its last page is no number."""
    for i, n in enumerate(lens):
        if n % 64:
            cache_tensor[table[i, n // 64], n % 64 :] = math.nan


def make_paged(torch: Any, dtype: Any, case: Case) -> Job:
    z, h, g, d = (case[x] for x in ("Z", "H", "G", "D"))
    table, lens, count, numbers = cache(torch, case, case["how"])
    k, v = (normal(torch, dtype, count, 64, h // g, d) for _ in range(2))
    for t in (k, v):
        spoil(t, table, numbers)
    q = normal(torch, dtype, z, h, d)
    s = case.get("S") or splits(case, z * h // g, 1, 64, 16)
    tensors = {"Q": q, "K": k, "V": v, "page_table": table, "lengths": lens, "O": torch.empty_like(q)}
    job = Job(tensors, "O", {"S": s}, {"scale_log2": math.log2(math.e) / math.sqrt(d)})
    return with_copy(torch, job, bytes_of_paged(case))


def gathered(job: Job, name: str, i: int, n: int) -> Any:
    return job.tensors[name][job.tensors["page_table"][i, : -(-n // 64)].long()].flatten(0, 1)[:n].double()


def check_paged(torch: Any, job: Job, case: Case, elem: str) -> float:
    worst = 0.0
    for i, n in enumerate(job.tensors["lengths"].tolist()):
        k, v = (gathered(job, name, i, n).repeat_interleave(case["G"], 1) for name in "KV")
        scores = torch.einsum("hd,nhd->hn", job.tensors["Q"][i].double(), k) / math.sqrt(case["D"])
        exact = torch.einsum("hn,nhd->hd", torch.softmax(scores, -1), v)
        worst = max(worst, deviation(torch, job.tensors["O"][i], exact, elem))
    return worst


def make_mla(torch: Any, dtype: Any, case: Case) -> Job:
    z, h = case["Z"], case["H"]
    table, lens, count, numbers = cache(torch, case, case["how"])
    k = normal(torch, dtype, count, 64, 576)
    spoil(k, table, numbers)
    q = normal(torch, dtype, z, h, 576)
    # Heads of a block, blocks of a multiprocessor, and keys of a tile: as `define_mla` says.
    heads, per_sm, tile = 64 if case["kind"] == "mla_heads" else 32 if h > 16 else 16, 1, 64
    s = case.get("S") or splits(case, z * -(-h // heads), per_sm, tile, 128)
    tensors = {"Q": q, "K": k, "page_table": table, "lengths": lens, "O": torch.empty(z, h, 512, device="cuda", dtype=dtype)}
    job = Job(tensors, "O", {"S": s}, {"scale_log2": math.log2(math.e) / math.sqrt(576)})
    return with_copy(torch, job, bytes_of_mla(case))


def check_mla(torch: Any, job: Job, case: Case, elem: str) -> float:
    worst = 0.0
    for i, n in enumerate(job.tensors["lengths"].tolist()):
        k = gathered(job, "K", i, n)
        weights = torch.softmax(job.tensors["Q"][i].double() @ k.T / math.sqrt(576), -1)
        worst = max(worst, deviation(torch, job.tensors["O"][i], weights @ k[:, :512], elem))
    return worst


def with_copy(torch: Any, job: Job, size: float) -> Job:
    """PyTorch's copy of as many bytes as keys and values have: half are read, half written."""
    a, b = (torch.zeros(int(size) // 2, dtype=torch.uint8, device="cuda").split(1 << 28) for _ in range(2))
    job.others["copy"] = lambda: [to.copy_(piece) for piece, to in zip(a, b, strict=True)]
    return job


def moved_by_experts(case: Case) -> float:
    """What experts read and write at least: their weights, and rows of tokens and results."""
    counts = counts_of(case)
    return 2.0 * (sum(n > 0 for n in counts) * case["K"] * case["N"] + sum(counts) * (case["K"] + case["N"]))


def bytes_of_paged(case: Case) -> float:
    return 4.0 * case["Z"] * case["L"] * case["H"] // case["G"] * case["D"]


def bytes_of_mla(case: Case) -> float:
    return 2.0 * case["Z"] * case["L"] * 576


def work_of_mla(case: Case) -> float:
    return 2.0 * case["Z"] * case["L"] * case["H"] * (576 + 512)


def rows_of(case: Case) -> int:
    return sum(counts_of(case))


def work_of_varlen(case: Case, parts: list[int] | None = None) -> float:
    squares = sum(n * n for n in parts or sequences_of(case))
    return 4.0 * squares * case["H"] * case["D"] * (0.5 if case["causal"] else 1.0)


def of_matmul(case: Case) -> float:
    return 2.0 * rows_of(case) * case["K"] * case["N"]


def define_attention(case: Case) -> str:
    bq = 192 if case["D"] == 64 else 128
    return f"D={case['D']},G={case['G']},CAUSAL={case['causal']},BQ={bq},BKV=128,CLEAN={case.get('clean', 1)}"


def define_paged(case: Case) -> str:
    return f"D={case['D']},G={case['G']},R={8 if case['G'] <= 8 else 16},PARTS=16,HC={min(case['G'], 4)}"


def define_mla(case: Case) -> str:
    return f"PARTS=128,R={32 if case['H'] > 16 else 16}"


KINDS: Mapping[str, Kind] = {
    "grouped": Kind(
        "examples/moe_grouped.tile",
        tuple(f"R={r},E={e},K={k},N={n},how={how}" for r, e, k, n in [(8192, 8, 4096, 14336), (16384, 8, 4096, 4096), (16384, 32, 4096, 4096), (16384, 64, 7168, 2048), (8192, 8, 2048, 7168), (4096, 64, 2048, 1408)] for how in ("even", "random", "skewed")),
        lambda case: f"BM={case.get('BM', 128)}", make_grouped, check_grouped, of_matmul, lambda case: 2.0 * (case["R"] * (case["K"] + case["N"]) + case["E"] * case["K"] * case["N"]),
    ),
    "masked": Kind(
        "examples/moe_masked.tile",
        tuple(f"R={r},E={e},K={k},N={n},tokens={t},how={how}" for r, e, k, n, t in [(4096, 8, 4096, 4096, 16384), (1024, 32, 7168, 4096, 16384), (1024, 32, 7168, 4096, 4096)] for how in ("even", "random")),
        lambda case: f"BM={case.get('BM', 128)}", make_masked, check_masked, of_matmul, lambda case: 2.0 * case["E"] * (case["R"] * (case["K"] + case["N"]) + case["K"] * case["N"]),
    ),
    "varlen": Kind(
        "examples/attention_varlen.tile",
        tuple(f"N=16384,Z={z},H={h},G={g},D={d},causal={causal},how={how}" for z, h, g, d in [(8, 16, 1, 128), (4, 16, 1, 128), (8, 32, 4, 128), (16, 32, 1, 64)] for causal in (0, 1) for how in ("even", "random", "skewed")),
        define_attention, make_varlen, check_varlen, work_of_varlen, lambda case: 2.0 * case["N"] * case["D"] * case["H"] * 2,
    ),
    "paged": Kind(
        "examples/paged_decode.tile",
        tuple(f"Z={z},H={h},G={g},L={n},D=128,how={how}" for z, h, g, n, how in [(1, 32, 4, 8192, "even"), (16, 32, 4, 512, "even"), (16, 32, 4, 2048, "even"), (64, 32, 4, 2048, "even"), (64, 32, 4, 2048, "random"), (8, 64, 8, 8192, "even"), (32, 32, 1, 1024, "even"), (32, 128, 16, 4096, "random"), (1, 64, 8, 65536, "even")]),
        define_paged, make_paged, check_paged, bytes_of_paged, bytes_of_paged,
    ),
    "mla": Kind(
        "examples/mla_decode.tile",
        tuple(f"Z={z},H={h},L={n},how={how}" for z, h, n, how in [(16, 16, 2048, "even"), (32, 16, 4096, "even"), (64, 16, 4096, "random"), (128, 16, 4096, "even"), (1, 16, 65536, "even"), (64, 32, 4096, "even"), (64, 128, 4096, "even")]),
        define_mla, make_mla, check_mla, bytes_of_mla, bytes_of_mla,
    ),
    "mla_heads": Kind(
        "examples/mla_decode_heads.tile",
        tuple(f"Z={z},H={h},L={n},how={how}" for z, h, n, how in [(64, 128, 4096, "even"), (64, 128, 4096, "random"), (128, 128, 2048, "even"), (8, 128, 16384, "even"), (64, 64, 4096, "even"), (132, 64, 4096, "even")]),
        lambda case: "PARTS=128,BH=64,BKV=64,STAGES=2", make_mla, check_mla, work_of_mla, bytes_of_mla,
    ),
}  # fmt: skip
