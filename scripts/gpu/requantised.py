"""Two products of bytes, each requantised (examples/gemm_int8_requant.tile), beside two products of PyTorch that stop at i32."""

from typing import Any

from .inference_programs import Case, Job, Kind

ZERO = 3


def make(torch: Any, dtype: Any, case: Case) -> Job:
    m, n, k, p = (case[name] for name in "MNKP")

    def integers(*shape: int) -> Any:
        return torch.randint(-128, 128, shape, device="cuda", dtype=torch.int8)

    a, b, c = integers(m, k), integers(p, k).T, integers(n, p).T
    tensors = {"A": a, "B": b, "C": c, "D": torch.empty(m, n, device="cuda", dtype=torch.int8)}
    # Sums have a standard deviation of 74² times the square root of the length: results fill the range of i8.
    for name, extent, length in (("h", p, k), ("d", n, p)):
        tensors[f"bias_{name}"] = torch.randint(-1000, 1000, (extent,), device="cuda", dtype=torch.int32)
        tensors[f"scale_{name}"] = (0.5 + torch.rand(extent, device="cuda")) * 50 / (74 * 74 * length**0.5)
    first = integers(m, p)
    job = Job(tensors, "D", {}, {"zero_h": ZERO, "zero_d": -ZERO}, fill=-77)
    job.others["torch"] = lambda: (torch._int_mm(a, b), torch._int_mm(first, c))
    return job


def check(torch: Any, job: Job, case: Case, elem: str) -> float:
    """Every byte is that of exact sums, one multiplication in f32, and a rounding to the nearest even."""
    t = job.tensors

    def requantised(rows: Any, weights: Any, name: str, zero: int) -> Any:
        sums = (rows.double() @ weights.double()).round().long() + t[f"bias_{name}"]
        return ((sums.float() * t[f"scale_{name}"]).round() + float(zero)).clamp(-128, 127).to(torch.int8)

    for at in range(0, case["M"], 2048):
        part = slice(at, at + 2048)
        hidden = requantised(t["A"][part], t["B"], "h", job.scalars["zero_h"])
        if not torch.equal(t["D"][part], requantised(hidden, t["C"], "d", job.scalars["zero_d"])):
            return 2.0
    return 0.0


def work(case: Case) -> float:
    return 2.0 * case["M"] * case["P"] * (case["K"] + case["N"])


def bytes_of(case: Case) -> float:
    m, n, k, p = (case[name] for name in "MNKP")
    return float(m * k + k * p + p * n + m * n)


KINDS = {
    "requantised": Kind(
        "examples/gemm_int8_requant.tile", tuple(f"M={n},N={n},K={n},P={n}" for n in (2048, 4096, 8192)), lambda case: "", make, check, work, bytes_of,
        sizes=lambda case: ",".join(f"{name}={case[name]}" for name in "MNKP"), typed=False,
    ),
}  # fmt: skip
