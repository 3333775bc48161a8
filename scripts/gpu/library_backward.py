"""The backward pass of attention of others: PyTorch's backends as operators, and cuDNN through its own frontend where that package is present.

Gradients are computed by the operators themselves, not by autograd, so that a CUDA graph holds nothing else.
"""

import importlib.util
import math
from collections.abc import Callable, Sequence
from typing import Any

from .backward_reference import Given

Call = Callable[[int], Any]
# What is said of determinism is the library's default, but for the last.
BACKENDS = ("flash", "flash_deterministic", "cudnn", "frontend", "frontend_deterministic")


def flash(torch: Any, inputs: Sequence[Given], deterministic: bool) -> Call:
    """FlashAttention-2 of PyTorch. `deterministic`: parts of dQ are added in one order (`torch.use_deterministic_algorithms`)."""
    ops = torch.ops.aten
    saved = [ops._scaled_dot_product_flash_attention(s.q, s.k, s.v, 0.0, s.causal, False) for s in inputs]

    def call(index: int) -> Any:
        s, (out, lse, cum_q, cum_k, max_q, max_k, seed, offset, *_) = inputs[index], saved[index]
        before = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(deterministic, warn_only=True)
        try:
            return ops._scaled_dot_product_flash_attention_backward(
                s.g, s.q, s.k, s.v, out, lse, cum_q, cum_k, max_q, max_k, 0.0, s.causal, seed, offset
            )[:3]
        finally:
            torch.use_deterministic_algorithms(before)

    return call


def cudnn_of_pytorch(torch: Any, inputs: Sequence[Given]) -> Call:
    """cuDNN as PyTorch calls it."""
    ops = torch.ops.aten
    saved = [ops._scaled_dot_product_cudnn_attention(s.q, s.k, s.v, None, True, 0.0, s.causal, False) for s in inputs]

    def call(index: int) -> Any:
        s, (out, lse, cum_q, cum_k, max_q, max_k, seed, offset, *_) = inputs[index], saved[index]
        return ops._scaled_dot_product_cudnn_attention_backward(
            s.g, s.q, s.k, s.v, out, lse, seed, offset, None, cum_q, cum_k, max_q, max_k, 0.0, s.causal
        )[:3]

    return call


def frontend(torch: Any, inputs: Sequence[Given], deterministic: bool) -> Call:
    """cuDNN's own graph, with the plan that its heuristics put first."""
    if importlib.util.find_spec("cudnn") is None:
        raise RuntimeError("the package nvidia-cudnn-frontend is not there")
    import cudnn  # type: ignore[import-not-found]

    first = inputs[0]
    handle = cudnn.create_handle()
    elem = {torch.bfloat16: cudnn.data_type.BFLOAT16, torch.float16: cudnn.data_type.HALF}[first.q.dtype]
    single = cudnn.data_type.FLOAT
    graph = cudnn.pygraph(io_data_type=elem, intermediate_data_type=single, compute_data_type=single, handle=handle)

    def tensor(name: str, like: Any, data_type: Any) -> Any:
        return graph.tensor(name=name, dim=list(like.shape), stride=list(like.stride()), data_type=data_type)

    names = [tensor(n, t, elem) for n, t in zip(["q", "k", "v", "o", "do"], (first.q, first.k, first.v, first.o, first.g), strict=True)]
    stats = tensor("stats", first.lse, single)
    results = graph.sdpa_backward(
        name="sdpa_backward", q=names[0], k=names[1], v=names[2], o=names[3], dO=names[4], stats=stats,
        attn_scale=1 / math.sqrt(first.q.shape[-1]), use_causal_mask=first.causal, use_deterministic_algorithm=deterministic,
    )  # fmt: skip
    for result in results:
        result.set_output(True).set_dim(list(first.q.shape)).set_stride(list(first.q.stride())).set_data_type(elem)
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    graph.check_support()
    graph.build_plans()
    workspace = torch.empty(max(graph.get_workspace_size(), 1), device=first.q.device, dtype=torch.uint8)
    outputs = [[torch.empty_like(s.q) for _ in range(3)] for s in inputs]

    def call(index: int) -> Any:
        s = inputs[index]
        cudnn.set_stream(handle=handle, stream=torch.cuda.current_stream().cuda_stream)
        given = {**dict(zip(names, (s.q, s.k, s.v, s.o, s.g), strict=True)), stats: s.lse}
        graph.execute({**given, **dict(zip(results, outputs[index], strict=True))}, workspace, handle=handle)
        return outputs[index]

    return call


def library(torch: Any, backend: str, inputs: Sequence[Given]) -> Call:
    """A contestant by name. Raises where the backend does not take this problem."""
    name, _, how = backend.partition("_")
    deterministic = how == "deterministic"
    if name == "cudnn":
        return cudnn_of_pytorch(torch, inputs)
    return flash(torch, inputs, deterministic) if name == "flash" else frontend(torch, inputs, deterministic)
