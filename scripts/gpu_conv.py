#!/usr/bin/env python3
"""Convolutions with padding inside against cuDNN, over the layers of whole networks.

    scripts/gpu_conv.py --net resnet50 --tilec target/release/tilec --out /tmp/conv
    scripts/gpu_conv.py --net unet --way weight --dry                                   # without a GPU

`--way forward` is examples/conv2d.tile against PyTorch's `conv2d`, in `channels_last` and with cuDNN's own search for the fastest algorithm; `weight` and `data` are the gradients' programs against
`convolution_backward` for that gradient alone. `forward3d` is examples/conv3d.tile against `conv3d`, and `depthwise` examples/depthwise.tile against `conv2d` of as many groups as channels. All are timed in turns. A ratio of 1 says that ours is as fast. Data are random, and results are compared with a convolution in single precision,
filled with NaN before, and must be the same after the timing. `--case B=..,H=..,C=..,O=..,R=..,S=..,P=..` gives other layers: S is the step, P the padding. Layers in three dimensions have `D=..` planes and filters of R^3.
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

from gpu import contract_host as host  # noqa: E402
from gpu import measure, suite  # noqa: E402
from gpu.assemble import dry  # noqa: E402
from gpu.report import case_table, machine  # noqa: E402
from gpu_inference import Program  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
TORCH_TYPES = {"bf16": "bfloat16", "f16": "float16"}
FILES = {"forward": "conv2d", "weight": "conv2d_weight_grad", "data": "conv2d_data_grad", "forward3d": "conv3d", "depthwise": "depthwise"}
# One rounding of a result to the type, in relation to the size of its row.
BOUNDS = {"bf16": 2.0**-7, "f16": 2.0**-10}
COLUMNS = [
    "tag", "case", "type", "ours_us", "ours_spread", "cudnn_us", "cudnn_spread", "tflops", "ratio", "ratio_min", "ratio_max", "of_bound",
    "registers", "note", "file", "options", "machine", "driver", "torch", "cudnn", "date", "tilec", "command",
]  # fmt: skip


def layer(b: int, h: int, c: int, o: int, r: int, s: int = 1) -> str:
    """A layer whose padding is that of its network: as much as keeps the size, none where the step is the filter."""
    return f"B={b},H={h},C={c},O={o},R={r},S={s},P={0 if r == s else r // 2}"


def resnet50(b: int) -> list[str]:
    """The distinct convolutions of ResNet-50 (1512.03385, with the step in the 3 x 3)."""
    all_layers, c = [layer(b, 224, 3, 64, 7, 2)], 64
    for stage, h in enumerate((56, 28, 14, 7)):
        width, before = 64 << stage, h if stage == 0 else 2 * h
        step = 1 if stage == 0 else 2
        all_layers += [layer(b, before, c, width, 1), layer(b, before, width, width, 3, step), layer(b, h, width, 4 * width, 1)]
        all_layers += [f"B={b},H={before},C={c},O={4 * width},R=1,S={step},P=0", layer(b, h, 4 * width, width, 1), layer(b, h, width, width, 3)]
        c = 4 * width
    return list(dict.fromkeys(all_layers))


def unet(b: int) -> list[str]:
    """The 3 x 3 convolutions of a U-Net of five levels on 256 x 256, with padding."""
    down = [layer(b, 256 >> i, c, o, 3) for i in range(5) for c, o in ((3 if i == 0 else 32 << i, 64 << i), (64 << i, 64 << i))]
    return [*down, *(layer(b, 256 >> i, 128 << i, 64 << i, 3) for i in range(4))]


def convnext(b: int) -> list[str]:
    """The dense convolutions of ConvNeXt-T: the stem, the reductions between stages, and the 1 x 1 of the blocks."""
    dims = (96, 192, 384, 768)
    between = [layer(b, 56 >> i, dims[i], dims[i + 1], 2, 2) for i in range(3)]
    blocks = [layer(b, 56 >> i, c, o, 1) for i, d in enumerate(dims) for c, o in ((d, 4 * d), (4 * d, d))]
    return [layer(b, 224, 3, 96, 4, 4), *between, *blocks]


def unet3d(b: int) -> list[str]:
    """The 3 x 3 x 3 convolutions of a 3D U-Net (1606.06650) on 64 x 64 x 64, with padding."""
    down = [f"D={64 >> i},{layer(b, 64 >> i, c, o, 3)}" for i in range(4) for c, o in ((32 << i, 32 << i), (32 << i, 64 << i))]
    return [*down, *(f"D={64 >> i},{layer(b, 64 >> i, 192 << i, 64 << i, 3)}" for i in range(3))]


def convnext_depthwise(b: int) -> list[str]:
    """The depthwise convolutions of ConvNeXt-T (2201.03545)."""
    return [layer(b, 56 >> i, c, c, 7) for i, c in enumerate((96, 192, 384, 768))]


def mobilenet(b: int) -> list[str]:
    """The distinct depthwise convolutions of MobileNet V1 (1704.04861)."""
    steps = ((112, 32, 1), (112, 64, 2), (56, 128, 1), (56, 128, 2), (28, 256, 1), (28, 256, 2), (14, 512, 1), (14, 512, 2), (7, 1024, 1))
    return [layer(b, h, c, c, 3, s) for h, c, s in steps]


NETS = {"resnet50": resnet50, "unet": unet, "convnext": convnext, "unet3d": unet3d, "convnext_depthwise": convnext_depthwise, "mobilenet": mobilenet}
USUAL = {"forward3d": "unet3d", "depthwise": "convnext_depthwise"}  # The network of a way, where it is not ResNet-50.
Case = dict[str, Any]


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--net", choices=sorted(NETS), help="resnet50, unet3d or convnext_depthwise, by the way")
    add("--batch", type=int, default=32)
    add("--way", default="forward", choices=sorted(FILES))
    add("--tilec", default=os.environ.get("TILEC", str(ROOT / "target/release/tilec")), help="the compiler's binary")
    add("--target", default="sm_90a")
    add("--type", default="bf16", choices=sorted(TORCH_TYPES))
    add("--define", default="", metavar="NAME=VALUE,..", help="more compile-time parameters")
    add("--option", action="append", default=[], help="another option of tilec")
    add("--case", action="append", default=[], help="a layer, instead of the network's")
    add("--rounds", type=int, default=7)
    add("--turn-ms", type=float, default=5.0)
    add("--seed", type=int, default=0)
    add("--limit", type=float, default=60.0, help="seconds of a case, after which its process is ended")
    add("--seconds", type=float, default=540.0, help="of all cases")
    add("--tag", default="", help="a label for the rows")
    add("--out", default="conv", help="path of the CSV files, without suffix")
    add("--dry", action="store_true", help="without a GPU: compile and assemble")
    add("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    options.net = options.net or USUAL.get(options.way, "resnet50")
    options.file = str(ROOT / f"examples/{FILES[options.way]}.tile")  # recorded with the rows
    return options


def parse_case(way: str, text: str) -> Case:
    """A layer with `dims`, the extents of its image, and `outs`, those of its result."""
    case: Case = {"case": text, **{name: int(value) for name, value in (part.split("=") for part in text.split(","))}}
    if ("D" in case) != (way == "forward3d"):
        raise SystemExit(f"{text}: layers of --way forward3d have planes, `D=..`, others have none")
    if way == "depthwise" and case["C"] != case["O"]:
        raise SystemExit(f"{text}: depthwise layers have as many filters as channels")
    out = lambda n: (n + 2 * case["P"] - case["R"]) // case["S"] + 1  # noqa: E731
    case["dims"] = ([case["D"]] if "D" in case else []) + [case["H"]] * 2
    case["outs"] = [out(n) for n in case["dims"]]
    return case


def taps(case: Case) -> int:
    """Elements of a filter for one channel."""
    return case["R"] ** len(case["dims"])


def elements(way: str, case: Case) -> dict[str, tuple[int, ...]]:
    """The shapes of image, filters and result, as they lie in memory."""
    filters = [case["R"]] * len(case["dims"])
    channels = (case["C"],) if way == "depthwise" else (case["C"], case["O"])
    return {"X": (case["B"], *case["dims"], case["C"]), "F": (*filters, *channels), "E": (case["B"], *case["outs"], case["O"])}


def cases(options: argparse.Namespace) -> list[Case]:
    return [parse_case(options.way, text) for text in options.case or NETS[options.net](options.batch)]


def defines(way: str, case: Case) -> str:
    """What is promised of channels, and tiles of the reduction that lie in one pixel where there are such."""
    c, o = case["C"], case["O"]
    aligned = {name: math.gcd(n, 8) for name, n in (("c", c), ("o", o))}
    if way == "depthwise":
        return f"S={case['R']},STRIDE={case['S']},PAD={case['P']},ALIGN={aligned['c']}"
    inner = o if way == "data" else c
    one_pixel = next((n for n in (64, 32) if inner % n == 0), aligned["c"])
    pad = f"PH={case['P']},PW={case['P']}"
    if way == "data":
        steps = f"SH={case['S']},SW={case['S']}," if case["S"] > 1 else ""
        return f"{steps}{pad},ALIGN_E={aligned['o']},ALIGN_F={aligned['o']},ALIGN_G={aligned['c']},BK={64 if o > 32 else 32}"
    steps = f"SH={case['S']},SW={case['S']},{pad},ALIGN_X={aligned['c']},ALIGN_Y={aligned['o']},CALIGN={one_pixel}"
    if way == "weight":
        return f"{steps},BK=64"
    if way == "forward3d":
        steps = f"SD={case['S']},PD={case['P']},{steps}"
    # Of channels that make no groups of 16 bytes tiles may be of copied rows, which lie across pixels.
    return f"{steps},ALIGN_F={aligned['o']},BK={max(one_pixel, 32) if aligned['c'] == 8 else 64}"


def file_of(options: argparse.Namespace, case: Case) -> str:
    """The program of a layer: gradients of inputs with steps have their own."""
    name = "conv2d_data_grad_steps" if options.way == "data" and case["S"] > 1 else FILES[options.way]
    return str(ROOT / f"examples/{name}.tile")


def sizes_of(way: str, case: Case) -> dict[str, int]:
    """The sizes of the program."""
    sizes = {"R": case["R"], "P": case["outs"][-1], "Q": case["outs"][-1], "B": case["B"], "H": case["H"], "W": case["H"], "C": case["C"]}
    if way != "depthwise":
        sizes |= {"S": case["R"], "O": case["O"]}
    if way == "forward3d":
        sizes |= {"D": case["D"], "Z": case["outs"][0], "U": case["R"]}
    return sizes


def compile_case(options: argparse.Namespace, case: Case) -> tuple[host.LaunchFile, str]:
    """The program for a layer, and its options."""
    sizes = ",".join(f"{name}={n}" for name, n in sizes_of(options.way, case).items())
    types = f"T={options.type}" + ("" if options.way == "depthwise" else f",Out={options.type}")
    defined = ",".join(part for part in (types, defines(options.way, case), options.define) if part)
    words = ["--target", options.target, "--for", sizes, *(word for part in defined.split(",") for word in ("-D", part)), *options.option]
    return host.compile_file(options.tilec, file_of(options, case), words), " ".join(words)


class Bench:
    """The child's side: one device, one layer after another."""

    def __init__(self, options: argparse.Namespace) -> None:
        import torch

        self.torch, self.options = torch, options
        torch.zeros(1, device="cuda")  # makes the context of this thread
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = False
        self.driver = host.Driver()
        self.dtype = getattr(torch, TORCH_TYPES[options.type])

    def images(self, *shape: int) -> Any:
        """Random images, in memory as they are indexed here: batch, rows, columns, channels."""
        return self.torch.randn(*shape, device="cuda", dtype=self.torch.float32).to(self.dtype)

    def inputs(self, case: Case) -> dict[str, Any]:
        return {name: self.images(*shape) for name, shape in elements(self.options.way, case).items()}

    def tensors(self, case: Case, t: dict[str, Any]) -> tuple[dict[str, host.Tensor], Any]:
        """What the program takes, and its result."""
        torch, elem, way = self.torch, self.options.type, self.options.way
        flat = lambda x, *shape: host.Tensor(x.data_ptr(), shape, tuple(x.view(shape).stride()), elem)  # noqa: E731
        empty = lambda *shape: torch.full(shape, float("nan"), device="cuda", dtype=self.dtype)  # noqa: E731
        shapes, c, o, r = elements(way, case), case["C"], case["O"], taps(case)
        pixels = case["B"] * math.prod(case["outs"])
        if way == "depthwise":
            y = empty(*shapes["E"])
            return {"X": flat(t["X"], *shapes["X"]), "F": flat(t["F"], *shapes["F"]), "Y": flat(y, *shapes["E"])}, y
        if way in ("forward", "forward3d"):
            y = empty(pixels, o)
            return {"X": flat(t["X"], *shapes["X"]), "F": flat(t["F"], r * c, o), "Y": flat(y, pixels, o)}, y
        if way == "weight":
            g = empty(r * c, o)
            return {"X": flat(t["X"], *shapes["X"]), "E": flat(t["E"], pixels, o), "G": flat(g, r * c, o)}, g
        g = empty(*shapes["X"])
        inner = (shapes["F"], shapes["X"]) if case["S"] > 1 else ((r, c, o), (g.numel() // c, c))
        return {"E": flat(t["E"], *shapes["E"]), "F": flat(t["F"], *inner[0]), "G": flat(g, *inner[1])}, g

    def cudnn(self, case: Case, t: dict[str, Any], dtype: Any) -> Any:
        """A call of cuDNN on these inputs, channels last."""
        torch, way, n = self.torch, self.options.way, len(case["dims"])
        x, f, e = (t[name].to(dtype) for name in "XFE")
        space = range(1, n + 1)
        x, e = x.permute(0, n + 1, *space), e.permute(0, n + 1, *space)
        last = torch.channels_last if n == 2 else torch.channels_last_3d
        # Filters of one channel: PyTorch's own order.
        f = f.unsqueeze(-1).permute(n, n + 1, *range(n)).contiguous() if way == "depthwise" else f.permute(n + 1, n, *range(n)).contiguous(memory_format=last)
        step, pad, groups = [case["S"]] * n, [case["P"]] * n, case["C"] if way == "depthwise" else 1
        if way in ("forward", "forward3d", "depthwise"):
            convolution = torch.nn.functional.conv2d if n == 2 else torch.nn.functional.conv3d
            return lambda: convolution(x, f, stride=step, padding=pad, groups=groups)
        mask = [way == "data", way == "weight", False]
        backward = torch.ops.aten.convolution_backward
        return lambda: backward(e, x, f, None, step, pad, [1, 1], False, [0, 0], 1, mask)[mask.index(True)]

    def work(self, case: Case) -> Case:
        """A layer: check, measure, check again."""
        if case.get("hello"):
            return machine(self.torch)
        torch, options = self.torch, self.options
        kernels, words = compile_case(options, case)
        torch.manual_seed(random.Random(f"{options.seed} {case['case']}").getrandbits(62))
        bytes_of = sum(2 * math.prod(shape) for shape in elements(options.way, case).values())
        count = measure.input_sets(bytes_of, torch.cuda.get_device_properties(0).L2_cache_size)
        program = Program(torch, self.driver, kernels, True)
        sets, results, bound, library = [self.inputs(case) for _ in range(count)], [], [], []
        sizes = sizes_of(options.way, case)
        names = {param["name"] for kernel in kernels.kernels.values() for param in kernel.of_kind("size")}
        for t in sets:
            tensors, result = self.tensors(case, t)
            results.append(result)
            known = {name: n for name, n in sizes.items() if name in names}
            tensors |= self.scratch(program, tensors, known)
            bound.append(program.bind(tensors, known, {}))
            library.append(self.cudnn(case, t, self.dtype))

        def launch(index: int) -> None:
            for kernel in bound[index]:
                kernel.launch(torch.cuda.current_stream().cuda_stream)

        launch(0)
        row: Case = {"note": "", "options": words, "registers": program.registers(), "of_bound": self.deviation(case, sets[0], results[0])}
        first = results[0].clone()
        calls = {"ours": launch, "cudnn": lambda index: library[index]()}
        for call in calls.values():
            call(0)
        plan = measure.Plan(rounds=options.rounds, turn_ms=options.turn_ms, seed=options.seed)
        row["times"] = {name: list(t.us) for name, t in measure.compare(torch, calls, count, plan).items()}
        results[0].fill_(float("nan"))
        launch(0)
        if not torch.equal(results[0], first):
            raise RuntimeError("WRONG RESULT: it changed between launches")
        return row

    def scratch(self, program: Program, tensors: dict[str, host.Tensor], sizes: dict[str, int]) -> dict[str, host.Tensor]:
        """Memory of the program's own: what its kernels hand to the next, and what blocks share tiles through, which is zero before the first launch."""
        made: dict[str, host.Tensor] = {}
        for contract in (kernel.contract for kernel in program.loaded):
            names = {param["name"] for param in contract.params}
            known = {name: t for name, t in (tensors | made).items() if name in names}
            values = contract.values(known, {name: n for name, n in sizes.items() if name in names}, {})
            for param in contract.of_kind("tensor"):
                if param["name"] in known:
                    continue
                shape, strides = contract.shape_of(param["name"], values)
                dtype = getattr(self.torch, {"u32": "int32", "f32": "float32", **TORCH_TYPES}[param["type"]])
                fill = 0 if param.get("scratch") else float("nan")
                program.memory.append(self.torch.full(shape, fill, dtype=dtype, device="cuda"))
                made[param["name"]] = host.Tensor(program.memory[-1].data_ptr(), shape, strides, param["type"])
        return made

    def deviation(self, case: Case, t: dict[str, Any], got: Any) -> float:
        """The largest deviation of a row, of the bound, in relation to the row's largest element or to how large a sum of such products is, whichever is more."""
        sums = [self.cudnn(case, inputs, self.torch.float32)() for inputs in (t, {name: x.float().square() for name, x in t.items()})]
        space = range(2, len(case["dims"]) + 2)
        order = (0, *space, 1) if self.options.way != "weight" else (*space, 1, 0)
        exact, squares = (x.permute(*order).reshape(got.shape) for x in sums)
        # A row of few channels may hold nothing but sums that cancel: these are as inexact as others, not as small.
        scale = exact.abs().amax(-1).maximum(squares.sqrt().amax(-1)).clamp_min(1e-30)
        off = (got.float() - exact).abs().amax(-1) / scale
        worst = float(off.max()) / BOUNDS[self.options.type]
        if not worst <= 1.0:
            raise RuntimeError(f"WRONG RESULT: {worst:.2f} of the bound")
        return worst


def summary(options: argparse.Namespace, case: Case, answer: Case) -> Case:
    """The row of a layer."""
    row: Case = {"case": case["case"], **{key: answer[key] for key in answer if key in COLUMNS}}
    times = {name: measure.Times(tuple(us)) for name, us in answer.get("times", {}).items()}
    for name, t in times.items():
        row |= {f"{name}_us": t.median, f"{name}_spread": t.spread}
    if times:
        work = 2 * case["B"] * math.prod(case["outs"]) * taps(case) * case["O"] * (1 if options.way == "depthwise" else case["C"])
        ratio = measure.Ratio.of(times["cudnn"], times["ours"])
        row |= {"tflops": work / times["ours"].median / 1e6, "ratio": ratio.median, "ratio_min": ratio.least, "ratio_max": ratio.greatest}
    if "error" in answer:
        row["note"] = answer["error"]
    return row


def short(rows: list[Case]) -> str:
    """The table for the end of the output, with the geometric mean and the least."""
    figures = {"us": ("ours_us", 1), "cudnn us": ("cudnn_us", 1), "TFLOP/s": ("tflops", 0), "of cudnn": ("ratio", 3), "least": ("ratio_min", 3), "most": ("ratio_max", 3), "of bound": ("of_bound", 3)}
    text = case_table(rows, figures, {"registers": "registers", "note": "note"}, first="layer")
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    if ratios:
        text += f"\ngeometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}, least {min(ratios):.3f}, of {len(ratios)} of {len(rows)} layers"
    return text


def main() -> int:
    options = arguments()
    parts = suite.Parts(
        title=f"{options.way} {options.type}",
        cases=lambda: cases(options),
        dry=lambda: dry(cases(options), lambda case: compile_case(options, case)),
        work=lambda: Bench(options).work,
        row_of=lambda case, answer: summary(options, case, answer),
        table=short,
    )
    return suite.run(__file__, options, COLUMNS, parts)


if __name__ == "__main__":
    sys.exit(main())
