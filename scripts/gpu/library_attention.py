"""Attention of others, to compare with: PyTorch's backends, and cuDNN through its own frontend where that package is present."""

import importlib.util
import math
from collections.abc import Callable, Sequence
from typing import Any

Call = Callable[[int], Any]
BACKENDS = ("flash", "cudnn", "frontend")


def pytorch(torch: Any, backend: str, inputs: Sequence[Sequence[Any]], causal: bool) -> Call:
    """`scaled_dot_product_attention` with one backend, and none other if that refuses."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    kind = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}[backend]
    attend = torch.nn.functional.scaled_dot_product_attention

    def call(index: int) -> Any:
        q, k, v = inputs[index]
        with torch.no_grad(), sdpa_kernel(kind):
            return attend(q, k, v, is_causal=causal)

    return call


def frontend(torch: Any, inputs: Sequence[Sequence[Any]], causal: bool) -> Call:
    """cuDNN's own graph, with the plan that its heuristics put first."""
    if importlib.util.find_spec("cudnn") is None:
        raise RuntimeError("the package nvidia-cudnn-frontend is not there")
    import cudnn  # type: ignore[import-not-found]

    q, k, v = inputs[0]
    handle = cudnn.create_handle()
    elem = {torch.bfloat16: cudnn.data_type.BFLOAT16, torch.float16: cudnn.data_type.HALF}[q.dtype]
    graph = cudnn.pygraph(
        io_data_type=elem, intermediate_data_type=cudnn.data_type.FLOAT, compute_data_type=cudnn.data_type.FLOAT, handle=handle
    )
    names = [graph.tensor(name=n, dim=list(t.shape), stride=list(t.stride()), data_type=elem) for n, t in zip("qkv", (q, k, v), strict=True)]
    result, _ = graph.sdpa(
        name="sdpa", q=names[0], k=names[1], v=names[2], generate_stats=False, attn_scale=1 / math.sqrt(q.shape[-1]), use_causal_mask=causal
    )
    result.set_output(True).set_dim(list(q.shape)).set_stride(list(q.stride())).set_data_type(elem)
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    graph.check_support()
    graph.build_plans()
    workspace = torch.empty(max(graph.get_workspace_size(), 1), device=q.device, dtype=torch.uint8)
    outputs = [torch.empty_like(q) for q, _, _ in inputs]

    def call(index: int) -> Any:
        cudnn.set_stream(handle=handle, stream=torch.cuda.current_stream().cuda_stream)
        graph.execute({**dict(zip(names, inputs[index], strict=True)), result: outputs[index]}, workspace, handle=handle)
        return outputs[index]

    return call


def frontend_fp8(torch: Any, inputs: Sequence[Sequence[Any]], causal: bool) -> Call:
    """cuDNN's graph of 8-bit floats, all factors 1: its result is in 8 bits too."""
    if importlib.util.find_spec("cudnn") is None:
        raise RuntimeError("the package nvidia-cudnn-frontend is not there")
    import cudnn  # type: ignore[import-not-found]

    # Values lie by rows here, whatever ours want.
    sets = [(q, k, v.contiguous()) for q, k, v in inputs]
    q, k, v = sets[0]
    handle, elem, f32 = cudnn.create_handle(), cudnn.data_type.FP8_E4M3, cudnn.data_type.FLOAT
    graph = cudnn.pygraph(io_data_type=elem, intermediate_data_type=f32, compute_data_type=f32, handle=handle)
    names = [graph.tensor(name=n, dim=list(t.shape), stride=list(t.stride()), data_type=elem) for n, t in zip("qkv", (q, k, v), strict=True)]
    factors = ("descale_q", "descale_k", "descale_v", "descale_s", "scale_s", "scale_o")
    ones = {n: graph.tensor(name=n, dim=[1, 1, 1, 1], stride=[1, 1, 1, 1], data_type=f32) for n in factors}
    result, _, amax_s, amax_o = graph.sdpa_fp8(
        q=names[0], k=names[1], v=names[2], **ones, generate_stats=False, attn_scale=1 / math.sqrt(q.shape[-1]), use_causal_mask=causal
    )
    result.set_output(True).set_dim(list(q.shape)).set_stride(list(q.stride())).set_data_type(elem)
    for amax in (amax_s, amax_o):
        amax.set_output(True).set_dim([1, 1, 1, 1]).set_stride([1, 1, 1, 1]).set_data_type(f32)
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    graph.check_support()
    graph.build_plans()
    workspace = torch.empty(max(graph.get_workspace_size(), 1), device=q.device, dtype=torch.uint8)
    one, largest = torch.ones(1, device=q.device), torch.zeros(2, device=q.device)
    outputs = [torch.empty_like(q) for q, _, _ in sets]
    fixed = {**{tensor: one for tensor in ones.values()}, amax_s: largest[:1], amax_o: largest[1:]}

    def call(index: int) -> Any:
        cudnn.set_stream(handle=handle, stream=torch.cuda.current_stream().cuda_stream)
        graph.execute({**dict(zip(names, sets[index], strict=True)), **fixed, result: outputs[index]}, workspace, handle=handle)
        return outputs[index]

    return call


def library(torch: Any, backend: str, inputs: Sequence[Sequence[Any]], causal: bool) -> Call:
    """A contestant by name. Raises where the backend does not take this problem."""
    if backend == "frontend":
        return (frontend_fp8 if inputs[0][0].element_size() == 1 else frontend)(torch, inputs, causal)
    return pytorch(torch, backend, inputs, causal)
