"""Programs that move elements, or read them once: what they take, what must come out, and what they are timed against.

`torch` is PyTorch's own function, `copy` PyTorch's copy of as many bytes as the program reads and writes.
"""

import struct
from collections.abc import Mapping
from typing import Any

from .inference_programs import Case, Job, Kind, with_copy

# One rounding to the type.
ROUNDING = {"bf16": 2.0**-8, "f16": 2.0**-11}
# What dropout leaves out, and what it multiplies the rest by: defaults of examples/dropout.tile.
SHARE = 429496730 / 2.0**32
SCALE = 1.1111112


def tokens(torch: Any, case: Case) -> Any:
    return torch.randint(case["V"], (case["M"],), device="cuda", dtype=torch.int32)


def rows_and_columns(case: Case) -> tuple[int, int]:
    return case["M"], case["N"]


def make_embedding(torch: Any, dtype: Any, case: Case) -> Job:
    (m, n), words = rows_and_columns(case), tokens(torch, case)
    weights, index = torch.randn(case["V"], n, device="cuda").to(dtype), words.long()
    y, other = (torch.empty(m, n, device="cuda", dtype=dtype) for _ in range(2))
    job = Job({"W": weights, "tokens": words, "Y": y}, "Y", {}, others={"torch": lambda: torch.index_select(weights, 0, index, out=other)})
    return with_copy(torch, job, bytes_of_embedding(case))


def check_embedding(torch: Any, job: Job, case: Case, elem: str) -> float:
    t = job.tensors
    return 0.0 if torch.equal(t["Y"], t["W"][t["tokens"].long()]) else 2.0


def bytes_of_embedding(case: Case) -> float:
    return case["M"] * (2.0 * 2 * case["N"] + 4)


def make_embedding_backward(torch: Any, dtype: Any, case: Case) -> Job:
    (m, n), words = rows_and_columns(case), tokens(torch, case)
    d, index = torch.randn(m, n, device="cuda").to(dtype), words.long()
    sums, other, wide = (torch.zeros(rows, n, device="cuda") for rows in (case["V"], case["V"], m))
    wide.copy_(d)
    job = Job({"dY": d, "tokens": words, "dW": sums}, "dW", {}, others={"torch": lambda: other.index_add_(0, index, wide)}, fill=0.0, repeats=False)
    return with_copy(torch, job, bytes_of_embedding_backward(case))


def check_embedding_backward(torch: Any, job: Job, case: Case, elem: str) -> float:
    t = job.tensors
    d, index = t["dY"].double(), t["tokens"].long()
    exact, size = (torch.zeros(t["dW"].shape, device="cuda", dtype=torch.float64) for _ in range(2))
    exact.index_add_(0, index, d)
    size.index_add_(0, index, d.abs())
    count = int(torch.bincount(index).max())
    return float(((t["dW"].double() - exact).abs() / (count * 2.0**-24 * size + 1e-30)).max())


def bytes_of_embedding_backward(case: Case) -> float:
    """Rows are read, and sums of as many elements are read and written at most."""
    return case["M"] * (2.0 * case["N"] + 4) + 2.0 * 4 * case["N"] * min(case["M"], case["V"])


def make_dropout(torch: Any, dtype: Any, case: Case) -> Job:
    m, n = rows_and_columns(case)
    x = torch.randn(m, n, device="cuda").to(dtype)
    y = torch.empty_like(x)
    job = Job({"X": x, "Y": y}, "Y", {}, others={"torch": lambda: torch.nn.functional.dropout(x, SHARE)})
    return with_copy(torch, job, bytes_of_matrices(case))


def check_dropout(torch: Any, job: Job, case: Case, elem: str) -> float:
    """Each element is left out or scaled, and the share of those left out is within six standard deviations. The bits themselves are compared with Philox in tests."""
    x, y = (job.tensors[name].double() for name in "XY")
    left_out, wanted = (y == 0) & (x != 0), SCALE * x
    count = x.numel()
    sigma = (SHARE * (1 - SHARE) / count) ** 0.5
    if abs(float(left_out.sum()) / count - SHARE) > 6 * sigma + 1e-9 + float((x == 0).sum()) / count:
        raise RuntimeError("WRONG RESULT: the share of elements that are left out")
    off = torch.where(left_out, 0.0, (y - wanted).abs() / (ROUNDING[elem] * wanted.abs() + 1e-30))
    return float(off.nan_to_num(nan=9.0).max())


def bytes_of_matrices(case: Case) -> float:
    return 2.0 * 2 * case["M"] * case["N"]


def make_argmax(torch: Any, dtype: Any, case: Case) -> Job:
    m, n = rows_and_columns(case)
    x = torch.randn(m, n, device="cuda").to(dtype)
    y = torch.empty(m, 1, device="cuda", dtype=torch.int32)
    job = Job({"X": x, "Y": y}, "Y", {}, others={"torch": lambda: torch.argmax(x, 1)}, fill=-1)
    return with_copy(torch, job, bytes_of_argmax(case))


def check_argmax(torch: Any, job: Job, case: Case, elem: str) -> float:
    """The first of the greatest elements."""
    x, y = job.tensors["X"], job.tensors["Y"].long()
    greatest = x == x.amax(1, keepdim=True)
    return 0.0 if torch.equal(y, greatest.int().argmax(1, keepdim=True)) else 2.0


def bytes_of_argmax(case: Case) -> float:
    return case["M"] * (2.0 * case["N"] + 4)


def make_histogram(torch: Any, dtype: Any, case: Case) -> Job:
    n, k = case["N"], case["K"]
    x = torch.randint(k, (n,), device="cuda", dtype=torch.int32)
    if case["how"] == "skewed":
        # Half of the integers are one number.
        x.masked_fill_(torch.rand(n, device="cuda") < 0.5, k // 3)
    numbers, counts = x.float(), torch.empty(k, device="cuda", dtype=torch.int32)
    # PyTorch's function on f32 does not wait for the device, unlike `bincount`.
    job = Job({"X": x, "Counts": counts}, "Counts", {}, others={"torch": lambda: torch.histc(numbers, k, 0, k)}, fill=-1, elems={"Counts": "u32"})
    return with_copy(torch, job, bytes_of_histogram(case))


def check_histogram(torch: Any, job: Job, case: Case, elem: str) -> float:
    x, counts = job.tensors["X"], job.tensors["Counts"]
    return 0.0 if torch.equal(counts.long(), torch.bincount(x, minlength=case["K"])) else 2.0


def bytes_of_histogram(case: Case) -> float:
    return 4.0 * case["N"] + 8.0 * case["K"]


# Defaults of examples/adam8.tile, as f32: what is left of 1 has few digits.
BETA1, BETA2 = (struct.unpack("f", struct.pack("f", x))[0] for x in (0.9, 0.999))


def step_of_adam8(torch: Any, wide: Any, w: Any, g: Any, m8: Any, mscale: Any, v8: Any, vscale: Any) -> tuple[Any, ...]:
    """Weights, moments, and the scales of their blocks, after a step."""
    grad = g.to(wide)
    root = v8.to(wide) * vscale
    m = BETA1 * (m8.to(wide) * mscale) + (1.0 - BETA1) * grad
    v = (BETA2 * root * root + (1.0 - BETA2) * grad * grad).sqrt()
    w = w - 0.001 * (m / (v + 1.0e-8))
    mtop, vtop = m.abs().amax(1, keepdim=True) / 127.0, v.amax(1, keepdim=True) / 255.0
    return w, m / mtop, mtop, v / vtop, vtop


def make_adam8(torch: Any, dtype: Any, case: Case) -> Job:
    r = case["N"] // 256
    t = {
        "W": torch.randn(r, 256, device="cuda"), "G": torch.randn(r, 256, device="cuda").to(dtype), "H": torch.empty(r, 256, device="cuda", dtype=dtype),
        "M8": torch.randint(-127, 128, (r, 256), device="cuda", dtype=torch.int8), "Mscale": torch.rand(r, 1, device="cuda") / 127 + 1e-3,
        "V8": torch.randint(256, (r, 256), device="cuda", dtype=torch.uint8), "Vscale": torch.rand(r, 1, device="cuda") / 255 + 1e-3,
    }  # fmt: skip
    names = ("W", "M8", "Mscale", "V8", "Vscale")
    given = [t[name].clone() for name in ("W", "G", "M8", "Mscale", "V8", "Vscale")]

    @torch.compile
    def compiled(w: Any, g: Any, m8: Any, mscale: Any, v8: Any, vscale: Any) -> None:
        new, m, mtop, v, vtop = step_of_adam8(torch, torch.float32, w, g, m8, mscale, v8, vscale)
        m8.copy_(m.round())
        v8.copy_(v.round())
        for to, of in ((w, new), (mscale, mtop), (vscale, vtop)):
            to.copy_(of)
        h.copy_(new)

    h = torch.empty_like(t["H"])
    job = Job(t, "H", {}, others={"torch": lambda: compiled(*given)}, state={name: t[name].clone() for name in names})
    return with_copy(torch, job, bytes_of_adam8(case))


def check_adam8(torch: Any, job: Job, case: Case, elem: str) -> float:
    """Moments are at most one step off where what is rounded is next to the middle of two steps."""
    t, old = job.tensors, job.state
    w, m, mtop, v, vtop = step_of_adam8(torch, torch.float64, old["W"].double(), t["G"], old["M8"], old["Mscale"].double(), old["V8"], old["Vscale"].double())
    size = w.abs() + old["W"].double().abs() + 1e-3
    off = [
        (t["W"].double() - w).abs() / (2.0**-20 * size), (t["H"].double() - w).abs() / (ROUNDING[elem] * size),
        (t["Mscale"].double() - mtop).abs() / (2.0**-20 * mtop), (t["Vscale"].double() - vtop).abs() / (2.0**-20 * vtop),
        (t["M8"].double() - m).abs() / 0.5001, (t["V8"].double() - v).abs() / 0.5001,
    ]  # fmt: skip
    return max(float(part.nan_to_num(nan=9.0).max()) for part in off)


def bytes_of_adam8(case: Case) -> float:
    """Of an element the weight and two moments are read and written, the gradient read, and the weight written in 16 bits."""
    return case["N"] * (2.0 * (4 + 1 + 1) + 2 + 2 + 2 * (4 + 4) / 256)


EMBEDDINGS = ("M=8192,N=4096,V=32000", "M=16384,N=8192,V=128256", "M=65536,N=1024,V=50257")
MATRICES = ("M=4096,N=4096", "M=16384,N=4096", "M=8192,N=8192", "M=2048,N=32768")

HISTOGRAMS = ("N=67108864,K=10", "N=67108864,K=256", "N=67108864,K=256,how=skewed", "N=67108864,K=1024", "N=67108864,K=8192", "N=4194304,K=256")

KINDS: Mapping[str, Kind] = {
    "embedding": Kind("examples/embedding.tile", EMBEDDINGS, lambda case: "ALIGN=8", make_embedding, check_embedding, bytes_of_embedding, bytes_of_embedding),
    "embedding_backward": Kind(
        "examples/embedding_backward.tile", EMBEDDINGS, lambda case: "ALIGN=8", make_embedding_backward, check_embedding_backward, bytes_of_embedding_backward, bytes_of_embedding_backward,
    ),
    "dropout": Kind("examples/dropout.tile", MATRICES, lambda case: "ALIGN=8", make_dropout, check_dropout, bytes_of_matrices, bytes_of_matrices, "dropout"),
    "histogram": Kind(
        "examples/histogram.tile", HISTOGRAMS, lambda case: f"BINS={min(8192, max(256, 1 << (case['K'] - 1).bit_length()))}", make_histogram, check_histogram, bytes_of_histogram, bytes_of_histogram, typed=False,
    ),
    "adam8": Kind("examples/adam8.tile", ("N=33554432", "N=134217728", "N=8388608"), lambda case: "", make_adam8, check_adam8, bytes_of_adam8, bytes_of_adam8),
    "argmax": Kind("examples/argmax.tile", MATRICES, lambda case: f"BN={512 if case['N'] <= 8192 else 2048},ALIGN=8", make_argmax, check_argmax, bytes_of_argmax, bytes_of_argmax),
}  # fmt: skip
