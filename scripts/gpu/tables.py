"""The tables of the documents, each from committed results under docs/results. `scripts/performance_tables.py` puts them there.

A table is a function of [`Results`] that returns Markdown. `TABLES` names them all; a document says where each stands.
"""

import json
import pathlib
import re
import shlex
from collections.abc import Callable, Sequence
from typing import Any

from . import code_tables
from .results import Results, Row, between, case_of, mean, micro, number, percentile, ratio, size, table, values

ROW_PROGRAMS = ("softmax", "log_softmax", "softmax_backward", "rms_norm", "layer_norm", "cross_entropy")
# Reports of code for sm_75 to sm_90, by type and operand order.
EARLIER = ("sm80_f16", "sm80_f16_cr", "sm80_f16_rc", "sm80_f16_cc", "sm80_bf16", "sm80_f16acc", "sm75_f16", "sm80_tf32", "sm80_i8", "sm90_f64")
# Programs of the section `epilogue` of scripts/gpu_bench.sh, and variants of gemm_fused.tile.
EPILOGUES = {
    ("plain", "Out=f16"): "none", ("epilogue", "ACT=0"): "bias", ("epilogue", "ACT=1"): "bias, gelu with `tanh`", ("epilogue", "ACT=2"): "bias, gelu with `fast_tanh`",
    ("fused", "ACT=7"): "`gemm_fused.tile`, gelu with `fast_tanh` (`ACT=7`)", ("fused", "ACT=2"): "the same, gelu with `tanh` (`ACT=2`)", ("fused", "ACT=3"): "the same, gelu with `erf` (`ACT=3`)",
}  # fmt: skip
NETWORKS = {"resnet50": ("h200", "ResNet-50, 32 images"), "unet": ("h200", "U-Net of 256x256, 8 images"), "convnext": ("h200", "ConvNeXt-T, 32 images")}


# Attention and fused products.


def attention(name: str) -> Callable[[Results], str]:
    """Forward or backward against the fastest library."""

    def made(results: Results) -> str:
        rows = results.rows(name)
        # Of the backward pass also the fastest library whose results are the same in every run.
        fixed = [key for key in rows[0] if key.endswith("_deterministic_tflops")]
        head = ["D", "mask", "L", "us", "TFLOP/s", "fastest library", "its TFLOP/s", "ratio", "least, most"] + ["fastest deterministic library, TFLOP/s"] * bool(fixed)
        lines = []
        for row in rows:
            cells = [row["D"], "causal" if row["causal"] == "True" else "full", row["L"], number(row["ours_us"]), number(row["ours_tflops"])]
            cells += [row["best"], number(row[f"{row['best']}_tflops"]), ratio(row["ratio"]), between(row, "ratio")]
            if fixed:
                cells.append(f"{max(values([row], key)[0] for key in fixed if row[key]):.0f}")
            lines.append(cells)
        found = values(rows, "ratio")
        return results.origin(name) + table(head, lines) + (f"\nGeometric mean {mean(found):.2f}, least {min(found):.2f}.\n" if len(found) > 1 else "")

    return made


def fused(name: str) -> Callable[[Results], str]:
    """A fused program against the plain product's rate and PyTorch's separate steps."""

    def made(results: Results) -> str:
        head = ["sizes", "us", "TFLOP/s", "plain product TFLOP/s", "cuBLAS TFLOP/s", "share of the plain product", "least, most", "PyTorch's steps / ours"]
        lines = []
        for row in results.rows(name):
            rates = [number(row[f"{who}_tflops"]) for who in ("fused", "plain", "cublas")]
            lines.append([row["case"], number(row["fused_us"]), *rates, number(row["of_plain"], 2), between(row, "of_plain"), number(row["over_separate"], 2)])
        return results.origin(name) + table(head, lines)

    return made


# Products.


def sweep(results: Results) -> str:
    """Ratios to cuBLAS of the shapes of models, by rows of A, and the worst shapes."""
    rows = results.rows("h200/sweep.csv")
    lines = []
    for kind, words in (("overlap", "overlap"), ("plain", "do not overlap")):
        for least, most in ((1, 8192), (1, 16), (17, 128), (129, 512), (513, 2048), (2049, 8192)):
            found = sorted(values([row for row in rows if row["kind"] == kind and least <= int(row["M"]) <= most], "ratio"))
            lines.append([words, f"{least} to {most}", str(len(found)), f"{mean(found):.3f}", f"{percentile(found, 0.05):.3f}", f"{found[0]:.3f}", f"{found[-1]:.2f}"])
    text = results.origin("h200/sweep.csv") + table(["launches", "M", "shapes", "geometric mean", "5th percentile", "least", "greatest"], lines)
    lines = []
    for row in sorted((row for row in rows if row["kind"] == "overlap" and row["ratio"]), key=lambda row: float(row["ratio"]))[:8]:
        chosen = dict(word.split("=") for word in row["chosen"].split())
        tile = f"{chosen['BM']}x{chosen['BN']}x{chosen['BK']}, {chosen['STAGES']} stages"
        lines.append([size(row), number(row["us"], 1), number(row["cublas_us"], 1), number(row["ratio"], 3), tile])
    return text + "\nThe eight slowest, relative to cuBLAS, with overlapping launches:\n\n" + table(["M x N x K", "us", "cuBLAS us", "ratio", "tile"], lines)


def problems(results: Results, name: str) -> list[tuple[str, float, dict[str, float]]]:
    """Of a report of `tilec bench --format json`: size, median us, ratio to cuBLAS of the first variant."""
    report = json.loads(results.path(name).read_text(encoding="utf-8"))
    firsts = [(problem["args"], next(row for row in problem["rows"] if row["variant"] == 0)) for problem in report["problems"]]
    return [(size(args), row["time"]["median"], row["ratio"]) for args, row in firsts]


def hopper(elem: str) -> list[str]:
    """The reports of a type on sm_90a."""
    return [f"h200/hopper_{elem}{part}.json" for part in (("_small", "_large") if elem in ("f16", "bf16") else ("",))]


def products(*elems: str) -> Callable[[Results], str]:
    """`tilec bench --format json`: a row a size, a column a type."""

    def made(results: Results) -> str:
        names = [name for elem in elems for name in hopper(elem)]
        found = [{sizes: (us, of) for name in hopper(elem) for sizes, us, of in problems(results, name)} for elem in elems]
        order = list(dict.fromkeys(sizes for by_size in found for sizes in by_size))
        lines = [[sizes] for sizes in order]
        for line in lines:
            for by_size in found:
                if line[0] in by_size:
                    us, of = by_size[line[0]]
                    line += [micro(us), f"{ratio(str(of['median']), digits=3)} ({of['min']:.2f}, {of['max']:.2f})"]
                else:
                    line += ["-", "-"]
        means = [f"{elem} {mean(of['median'] for _, of in by_size.values()):.3f}" for elem, by_size in zip(elems, found, strict=True)]
        head = ["M x N x K", *(cell for elem in elems for cell in (f"{elem} us", "ratio (least, most)"))]
        return results.origin(*names) + table(head, lines) + f"\nGeometric means: {', '.join(means)}.\n"

    return made


def warp_tiles(results: Results) -> str:
    """Ratios to cuBLAS of the ways to share a block of 64x64 among warps, from the tables of `tilec bench`."""
    lines = []
    for depth in (32, 64):
        text = results.path(f"h200/warp_tiles_bk{depth}.txt").read_text(encoding="utf-8")
        found: dict[str, list[str]] = {}
        for line in text.splitlines():
            if here := re.match(r"\s+WM=(\d+) WN=(\d+)\s.*%\s+\w+\s+(\d\.\d+)\s", line):
                found.setdefault(f"{here[1]}x{here[2]}", []).append(here[3])
        lines += [[str(depth), tile, *of, f"{mean(map(float, of)):.3f}"] for tile, of in found.items()]
    return results.origin("h200/warp_tiles_bk32.txt", "h200/warp_tiles_bk64.txt") + table(["depth", "warp tile", "512³", "1024³", "2048³", "4096³", "geometric mean"], lines)


def label_of(text: str, variants: list[dict[str, Any]], index: int) -> str:
    """Target and parameters of a variant: those of the command, and what the variant says."""
    label = variants[index]["label"]
    if len(variants) == 1:
        return label
    words = shlex.split(text)
    given = words[words.index("-D") + 1].replace(",", " ") if "-D" in words else ""
    return " ".join(part for part in (variants[index]["target"], given, "" if label == "as it is" else label) if part)


def bench_lines(results: Results, name: str) -> list[list[str]]:
    """Of a report of `tilec bench`: a line for each problem and variant, with the chosen tile."""
    report = json.loads(results.path(name).read_text(encoding="utf-8"))
    lines = []
    for problem in report["problems"]:
        for row in sorted(problem["rows"], key=lambda row: row["variant"]):
            us, of, chosen = row["time"]["median"], row["ratio"], dict(row["chosen"][-1]["values"])
            tile = f"{chosen['BM']}x{chosen['BN']}x{chosen['BK']}, {chosen['STAGES']} stages"
            rate = f"{row['flops'] / us / 1e6:.0f}" if row["flops"] / us > 1e7 else f"{row['flops'] / us / 1e6:.1f}"
            label = label_of(results.made(name)["command"], report["variants"], row["variant"])
            lines.append([label, size(problem["args"]), tile, micro(us), rate, ratio(str(of["median"]), digits=3), f"{of['min']:.2f}, {of['max']:.2f}"])
    return lines


def bench_table(*names: str, link: str = "") -> Callable[[Results], str]:
    """Reports of `tilec bench`, one after the other."""

    def made(results: Results) -> str:
        lines = [line for name in names for line in bench_lines(results, name)]
        found = [float(line[5].strip("*")) for line in lines]
        head = ["target and parameters", "M x N x K", "tile", "us", "TFLOP/s", "ratio", "least, most"]
        return results.origin(*names, link=link) + table(head, lines) + f"\nGeometric mean {mean(found):.3f}, least {min(found):.3f}.\n"

    return made


def by_pointers(results: Results) -> str:
    """Operands whose matrices are at addresses in memory, and the same matrices by TMA."""
    lines = []
    for target in ("sm_90a", "sm_80"):
        for count in (1, 8, 16):
            name = f"h200/bench_pointers_{target}_{count}.json"
            report = json.loads(results.path(name).read_text(encoding="utf-8"))
            row, args = report["problems"][0]["rows"][0], report["problems"][0]["args"]
            lines.append([f"`gemm_pointers.tile`, {target}", f"{count} of {size(args)}", micro(row["time"]["median"]), f"{row['flops'] / row['time']['median'] / 1e6:.0f}"])
    batched = "h200/bench_batched.json"
    report = json.loads(results.path(batched).read_text(encoding="utf-8"))
    row, args = report["problems"][0]["rows"][0], report["problems"][0]["args"]
    lines.append(["`gemm_batched.tile`, sm_90a, TMA", f"{args['Z']} of {size(args)}", micro(row["time"]["median"]), f"{row['flops'] / row['time']['median'] / 1e6:.0f}"])
    return results.origin("h200/bench_pointers_sm_90a_1.json", batched, link="[bench_pointers_*.json](results/h200)") + table(["program", "products", "us", "TFLOP/s"], lines)


def requantised(results: Results) -> str:
    """Two consecutive products of bytes, each requantised, against two products of PyTorch to i32."""
    name = "h200/requantised.csv"
    lines = [[row["case"], micro(row["ours_us"]), number(row["rate"]), ratio(row["ratio_torch"]), between(row, "ratio_torch")] for row in results.rows(name)]
    return results.origin(name) + table(["sizes", "us", "TOP/s", "two `torch._int_mm` / ours", "least, most"], lines)


def epilogues(results: Results) -> str:
    """What epilogues add to the plain product, 4096³."""
    names = [f"h200/bench_{name}.json" for name in ("plain", "epilogue", "fused")]
    reports = [json.loads(results.path(name).read_text(encoding="utf-8")) for name in names]
    found = {(name, report["variants"][row["variant"]]["label"]): row["time"]["median"] for name, report in zip(names, reports, strict=True) for row in report["problems"][0]["rows"]}
    plain = next(iter(found.values()))
    lines = []
    for (name, label), us in found.items():
        # `tanh` and `erf` of gemm_fused.tile were measured on an H100 with the tiles that are chosen now: docs/performance.md.
        if "fused" in name and label.split()[-1] != "ACT=7":
            continue
        words = EPILOGUES[name.split("_")[1].split(".")[0], label.split()[-1]]
        lines.append([words, micro(us), f"{(us / plain - 1) * 100:.1f} %"])
    return results.origin(*names) + table(["epilogue", "us", "more than plain"], lines)


def linear(results: Results) -> str:
    """Triangles, symmetric results and complex numbers, against cuBLAS's function and PyTorch's dense product."""
    names = [f"h200/linear_{name}.csv" for name in ("syrk_f16", "syrk_half", "syrk_tf32", "trmm_f16", "trmm_tf32", "complex_f16", "complex_tf32")]
    lines = []
    for name in names:
        for row in results.rows(name):
            program = f"`{pathlib.Path(row['file']).name}`, {row['type']}" + (", one triangle stored" if "FULL=0" in row["options"] else "")
            cells = [f"{ratio(row[f'ratio_{who}'])} ({between(row, f'ratio_{who}')})" if row[f"ratio_{who}"] else "-" for who in ("dense", "blas")]
            lines.append([program, row["case"], micro(row["ours_us"]), number(row["rate"]), *cells])
    return results.origin(*names, link="[linear_*.csv](results/h200)") + table(["program", "sizes", "us", "TFLOP/s", "dense product / ours", "cuBLAS's function / ours"], lines)


def stencils(results: Results) -> str:
    """Stencils against a copy of the matrix."""
    names = [f"h200/linear_{name}.csv" for name in ("stencil", "stencil3d")]
    rows = [row for name in names for row in results.rows(name)]
    lines = [[f"`{pathlib.Path(row['file']).name}`", row["case"], micro(row["ours_us"]), number(row["rate"]), ratio(row["ratio_copy"], 0.92), between(row, "ratio_copy")] for row in rows]
    return results.origin(*names) + table(["program", "sizes", "us", "GB/s", "share of the copy", "least, most"], lines)


def scaled(results: Results) -> str:
    """e4m3 with scales of blocks, against the same product without them and PyTorch's."""
    name = "h200/scaled_e4m3.csv"
    lines = []
    for row in results.rows(name):
        cells = [size(case_of(row)), micro(row["tilec_us"]), number(row["tflop_s"])]
        lines.append(cells + [f"{ratio(row[f'over_{who}'])} ({between(row, f'over_{who}')})" for who in ("unscaled", "tensor", "blocks")] + [ratio(row["over_fast"])])
    head = ["M x N x K", "us", "TFLOP/s", "unscaled `gemm.tile`", "`_scaled_mm`, one scale", "`_scaled_mm`, our scales", "`_scaled_mm`, one scale, fast sums"]
    return results.origin(name) + table(head, lines)


def weights(results: Results) -> str:
    """Weights of four and eight bits against cuBLAS on 16-bit weights."""
    four, eight = ({row["case"]: row for row in results.rows(f"h200/{name}_beside.csv")} for name in ("w4a16", "w8a16"))
    order = sorted(four, key=lambda case: [int(case_of(four[case])[name]) for name in "MKN"])
    lines = []
    for case in order:
        cells = [size(case_of(four[case]))]
        for row in (four[case], eight.get(case)):
            cells += [micro(row["tilec_us"]), f"{ratio(row['over_cublas'])} ({between(row, 'over_cublas')})"] if row else ["-", "-"]
        lines.append(cells)
    return results.origin("h200/w4a16_beside.csv", "h200/w8a16_beside.csv") + table(["M x N x K", "W4A16 us", "cuBLAS / ours", "W8A16 us", "cuBLAS / ours"], lines)


# Rows.


def of_rows(elem: str) -> Callable[[Results], str]:
    """Programs over rows: the share of a copy's rate, and how much longer PyTorch takes."""

    def made(results: Results) -> str:
        found = {kind: {row["case"]: row for row in results.rows(f"h200/rows_{kind}_{elem}.csv")} for kind in ROW_PROGRAMS}
        cases = sorted(found["softmax"].values(), key=lambda row: (int(case_of(row)["N"]), -int(case_of(row)["M"])))
        lines = []
        for case in cases:
            sizes = case_of(case)
            rows = [by_case[case["case"]] for by_case in found.values()]
            lines.append([f"{sizes['M']} x {sizes['N']}", *(f"{ratio(row['of_copy'], 0.92)} ({number(row['over_eager'], 2)})" if row["of_copy"] else "-" for row in rows)])
        link = f"[rows_*_{elem}.csv](results/h200)"
        return results.origin(f"h200/rows_softmax_{elem}.csv", link=link) + table([f"rows, {elem}", *ROW_PROGRAMS], lines)

    return made


def rows_beside(results: Results) -> str:
    """Programs of bf16 beside torch.compile and Triton."""
    kinds = ("softmax", "rms_norm", "layer_norm", "cross_entropy", "rotary", "adam")
    lines = []
    for kind in kinds:
        for row in results.rows(f"h200/rows_beside_{kind}.csv"):
            sizes = case_of(row)
            cells = [kind, f"{sizes['M']} x {sizes['N']}", micro(row["tilec_us"]), ratio(row["of_copy"], 0.92)]
            lines.append([*cells, number(row["over_compiled"], 2), number(row["over_triton"], 2)])
    link = "[rows_beside_*.csv](results/h200)"
    return results.origin("h200/rows_beside_softmax.csv", link=link) + table(["program", "rows", "us", "share of a copy", "torch.compile / ours", "Triton / ours"], lines)


def row_sums(results: Results) -> str:
    """Gradients of norms, and cumulative sums, whose warps share a row."""
    lines = []
    for name in ("rms_norm_backward_bf16", "rms_norm_backward_f32", "layer_norm_backward_bf16", "layer_norm_backward_f32", "cumsum_f32"):
        for row in results.rows(f"h200/rows_{name}.csv"):
            sizes = case_of(row)
            cells = [row["kind"], row["type"], f"{sizes['M']} x {sizes['N']}", micro(row["tilec_us"]), ratio(row["of_copy"], 0.88), between(row, "of_copy")]
            lines.append([*cells, number(row["over_eager"], 2) if row["over_eager"] else "-"])
    link = "[rows_*_norm_backward_*.csv and rows_cumsum_f32.csv](results/h200)"
    return results.origin("h200/rows_rms_norm_backward_bf16.csv", link=link) + table(["program", "type", "rows", "us", "share of a copy", "least, most", "PyTorch / ours"], lines)


def row_spread(results: Results) -> str:
    """The fastest way to share a row, of all that were measured."""
    best: dict[tuple[str, str, int], Row] = {}
    for row in results.rows("h200/row_spread.csv"):
        key = (row["type"], row["kind"], int(row["length"]))
        if row["of_copy"] and (key not in best or float(row["of_copy"]) > float(best[key]["of_copy"])):
            best[key] = row
    lines = []
    for elem in ("bf16", "f32"):
        for length in sorted({at for kind, _, at in best if kind == elem}):
            cells = [best.get((elem, kind, length)) for kind in ROW_PROGRAMS]
            lines.append([elem, str(length), *(f"{number(row['of_copy'], 2)} ({row['ctas']} x {row['threads']})" if row else "-" for row in cells)])
    return results.origin("h200/row_spread.csv") + table(["type", "length", *ROW_PROGRAMS], lines)


# Convolutions.


def convolutions(name: str, title: str = "") -> Callable[[Results], str]:
    """Layers against cuDNN."""

    def made(results: Results) -> str:
        rows = results.rows(name)
        lines = []
        for row in rows:
            case = case_of(row)
            power, filters = ("³", f"{case['R']}³") if "D" in case else ("²", f"{case['R']} x {case['R']}")
            layer = f"{case['H']}{power}, {case['C']}, {case['O']}, {filters}, {case['S']}"
            lines.append([case["B"], layer, micro(row["ours_us"]), micro(row["cudnn_us"]), number(row["tflops"]), ratio(row["ratio"], digits=3), between(row, "ratio")])
        found = values(rows, "ratio")
        head = ["images", "image, channels, filters, filter, step", "us", "cuDNN us", "TFLOP/s", "ratio", "least, most"]
        return (f"{title}: " if title else "") + results.origin(name) + table(head, lines) + f"\nGeometric mean {mean(found):.3f}, least {min(found):.3f}.\n"

    return made


# Sizes from tensors.


def experts(results: Results) -> str:
    """Products of experts against one product of as many rows."""
    later = {row["case"] for row in results.rows("h200/moe_grouped_copy.csv")}
    found: dict[str, dict[str, str]] = {}
    for row in results.rows("h200/moe_grouped.csv"):
        sizes, _, how = row["case"].rpartition(",how=")
        cell = f"{micro(row['ours_us'])}, {ratio(row['ratio_dense'])}"
        found.setdefault(sizes, {})[how] = "below" if row["case"] in later else cell
    lines = [[sizes, *(by.get(how, "-") for how in ("even", "random", "skewed"))] for sizes, by in found.items()]
    return results.origin("h200/moe_grouped.csv") + table(["sizes", "even parts: us, ratio", "random", "skewed"], lines)


ELEMENTS = ("embedding", "embedding_backward", "dropout", "argmax", "histogram", "adam8")
SORTED = (("topk", "bf16"), ("sort", "bf16"), ("sort_16bit", "bf16"), ("sort", "f32"))


def elements(results: Results) -> str:
    """Programs that move elements, or read them once, against PyTorch's functions and a copy of the same bytes."""
    names = [f"h200/elements_{kind}.csv" for kind in ELEMENTS]
    lines = []
    for kind, name in zip(ELEMENTS, names, strict=True):
        for row in results.rows(name):
            lines.append([f"`{kind}.tile`", row["case"], micro(row["ours_us"]), number(row["rate"]), ratio(row["ratio_copy"], 0.85), between(row, "ratio_copy"), ratio(row["ratio_torch"])])
    return results.origin(*names) + table(["program", "sizes", "us", "GB/s", "share of the copy", "least, most", "PyTorch / ours"], lines)


def ordered(results: Results) -> str:
    """Sorting and the greatest elements of rows against PyTorch's functions."""
    names = [f"h200/rows_{program}_{elem}.csv" for program, elem in SORTED]
    found = [(of, row) for of, name in zip(SORTED, names, strict=True) for row in results.rows(name)]
    lines = [[f"`{program}.tile`", elem, row["case"], micro(row["tilec_us"]), ratio(row["over_eager"])] for (program, elem), row in found]
    return results.origin(*names) + table(["program", "type", "sizes", "us", "PyTorch / ours"], lines)


def experts_masked(results: Results) -> str:
    """Products of experts whose rows are in tensors of fixed size, of which a part counts."""
    name = "h200/moe_masked.csv"
    found: dict[str, dict[str, Row]] = {}
    for row in results.rows(name):
        sizes, _, how = row["case"].rpartition(",how=")
        found.setdefault(sizes, {})[how] = row
    ways = ("even", "random")
    lines = [[sizes, *(cell for how in ways for cell in (micro(by[how]["ours_us"]), ratio(by[how]["ratio_dense"]), ratio(by[how]["ratio_copy"], 0.92)))] for sizes, by in found.items()]
    return results.origin(name) + table(["sizes", *(f"{how} parts: {what}" for how in ways for what in ("us", "dense / ours", "copy / ours"))], lines)


def variable_lengths(results: Results) -> str:
    """Attention of sequences of any lengths: the rate over that of the dense programs."""
    name = "h200/attention_varlen.csv"
    found: dict[str, dict[str, Row]] = {}
    for row in results.rows(name):
        sizes, _, how = row["case"].rpartition(",how=")
        found.setdefault(sizes, {})[how] = row
    ways = ("even", "random", "skewed")
    lines = [[sizes.replace("N=16384,", ""), *(f"{ratio(by[how]['ratio_dense'])}, {ratio(by[how]['ratio_torch'])}" for how in ways)] for sizes, by in found.items()]
    dense = [mean(values([by[how] for by in found.values()], "ratio_dense")) for how in ways]
    means = ", ".join(f"{how} {of:.2f}" for how, of in zip(ways, dense, strict=True))
    return results.origin(name) + table(["sizes", *ways], lines) + f"\nGeometric means over `attention.tile`: {means}.\n"


def experts_and_bytes(results: Results) -> str:
    """The same with few rows of each expert, beside a copy of as many bytes as they move."""
    name = "h200/moe_grouped_copy.csv"
    lines = [[row["case"], micro(row["ours_us"]), ratio(row["ratio_dense"]), ratio(row["ratio_copy"], 0.92), between(row, "ratio_copy")] for row in results.rows(name)]
    return results.origin(name) + table(["sizes", "us", "one dense product / ours", "copy / ours", "least, most"], lines)


def latent_heads(results: Results) -> str:
    """Latent attention of many heads, whose products decide."""
    name = "h200/mla_decode_heads.csv"
    lines = [[row["case"], row["parts"], micro(row["ours_us"]), number(row["rate"]), ratio(row["ratio_copy"], 0.92), between(row, "ratio_copy")] for row in results.rows(name)]
    return results.origin(name) + table(["sizes", "parts", "us", "TFLOP/s", "share of the copy", "least, most"], lines)


def pages(name: str) -> Callable[[Results], str]:
    """Decoding from pages: the share of a copy's rate, with the parts of the keys that were fastest."""

    def made(results: Results) -> str:
        # Other programs and tiles of the same run are for docs/notes.
        rows = [row for row in results.rows(name) if " -D BKV" not in row["options"] and " -D AFTER" not in row["options"]]
        best: dict[str, Row] = {}
        for row in rows:
            case = re.sub(r",S=\d+", "", row["case"])
            if case not in best or float(row["ours_us"]) < float(best[case]["ours_us"]):
                best[case] = row
        lines = [[case, row["parts"], micro(row["ours_us"]), number(row["rate"]), ratio(row["ratio_copy"], 0.92), between(row, "ratio_copy")] for case, row in best.items()]
        return results.origin(name) + table(["sizes", "parts", "us", "GB/s", "share of the copy", "least, most"], lines)

    return made


def counters(results: Results) -> str:
    """The simulator's counts beside Nsight Compute's."""
    head = ["kernel", "sizes", "requests", "of the GPU", "sectors", "of the GPU", "bytes", "of the GPU"]
    rows = results.rows("h200/ncu_examples.csv")
    lines = [[row["kernel"], row["sizes"], *(row[f"{what}_{who}"] for what in ("requests", "sectors", "bytes") for who in ("simulator", "gpu"))] for row in rows]
    return results.origin("h200/ncu_examples.csv") + table(head, lines)


# What is said first.


def headline(results: Results) -> list[list[str]]:
    """Program, shapes, against whom, geometric mean, least, machine, script."""
    h200 = "H200"
    bench = "`tilec bench`"
    lines = []

    def add(program: str, shapes: str, against: str, found: Sequence[float], machine: str, made_by: str) -> None:
        lines.append([program, shapes, against, f"{mean(found):.2f}", f"{min(found):.2f}", machine, made_by])

    against = "cuBLAS, fastest of 8 heuristics"
    for kind, launches in (("overlap", "tilec's launches overlap"), ("plain", "launches do not overlap")):
        models = [row for row in results.rows("h200/sweep.csv") if row["kind"] == kind]
        add("`gemm.tile`, bf16", f"{len(models)} shapes of 28 published models, {launches}", against, values(models, "ratio"), h200, "`gpu_sweep.py`")
    for elem in ("f16", "bf16", "e4m3", "tf32", "i8"):
        found = [problem for name in hopper(elem) for problem in problems(results, name)]
        add(f"`gemm.tile`, {elem}", f"{len(found)} sizes", "the same", [of["median"] for _, _, of in found], h200, bench)
    scalar = [of["median"] for _, _, of in problems(results, "h200/bench_fma.json")]
    add("`gemm.tile`, f32", f"{len(scalar)} sizes, without tensor cores", "cuBLAS", scalar, h200, bench)
    earlier = [of["median"] for name in EARLIER if name.startswith("sm80") for _, _, of in problems(results, f"h200/bench_{name}.json")]
    add("`gemm.tile` for sm_80", f"{len(earlier)} types and operand orders at 4096³", "cuBLAS for sm_90a (wgmma)", earlier, h200, bench)
    turing = [of["median"] for _, _, of in problems(results, "h200/bench_sm75_f16.json")]
    add("`gemm.tile` for sm_75", "f16 at 4096³", "cuBLAS for sm_90a (wgmma)", turing, h200, bench)
    for name, program, shapes in (
        ("attention", "`attention.tile`", "heads of 64, 128 and 256, 2k to 16k keys"), ("attention_sm80", "`attention.tile` for sm_80", "heads of 64 and 128, 2k to 16k keys"),
        ("attention_e4m3", "`attention_fp8.tile`", "heads of 128, 8k keys"),
        ("attention_backward_stored", "`attention_backward_stored.tile`", "4 cases: heads of 128 with 2k and 8k keys, causal with 8k; heads of 64 with 8k"), ("attention_backward", "`attention_backward.tile`", "the same 4 cases"),
    ):  # fmt: skip
        against = {"attention_sm80": "FlashAttention-2 of PyTorch", "attention_e4m3": "cuDNN"}.get(name, "the fastest of cuDNN and PyTorch")
        script = "`gpu_attention_backward.py`" if "backward" in name else "`gpu_attention.py`"
        add(program, shapes, against, values(results.rows(f"h200/{name}.csv"), "ratio"), h200, script)
    add("`swiglu.tile`", "6 sizes", "PyTorch's separate steps", values(results.rows("h200/swiglu.csv"), "over_separate"), h200, "`gpu_fused.py`")
    for program, card, result, network in (
        ("conv2d", h200, "h200/conv2d_resnet50", "ResNet-50"), ("conv2d", h200, "h200/conv2d_unet", "U-Net"), ("conv2d", h200, "h200/conv2d_convnext", "ConvNeXt-T"),
        ("conv2d_weight_grad", h200, "h200/conv2d_weight_grad", "ResNet-50"), ("conv2d_data_grad", h200, "h200/conv2d_data_grad", "ResNet-50"),
        ("conv3d", h200, "h200/conv3d_unet", "a 3D U-Net"), ("depthwise", h200, "h200/depthwise_convnext", "ConvNeXt-T"), ("depthwise", h200, "h200/depthwise_mobilenet", "MobileNet"),
    ):  # fmt: skip
        layers = results.rows(f"{result}.csv")
        add(f"`{program}.tile`", f"{len(layers)} layers of {network}", "cuDNN", values(layers, "ratio"), card, "`gpu_conv.py`")
    four = results.rows("h200/w4a16_beside.csv")
    for shapes, found in (("up to 64 rows", [row for row in four if int(case_of(row)["M"]) <= 64]), ("256 to 4096 rows", [row for row in four if int(case_of(row)["M"]) > 64])):
        add("`gemm_w4a16.tile`", f"{len(found)} sizes, {shapes}", "cuBLAS on 16-bit weights", values(found, "over_cublas"), h200, "`gpu_quantized.py`")
    scales = results.rows("h200/scaled_e4m3.csv")
    add("`gemm_fp8_scaled.tile`", f"{len(scales)} sizes", "PyTorch's `_scaled_mm`, the same scales", values(scales, "over_blocks"), h200, "`gpu_scaled.py`")
    short, long = [], []
    for elem in ("f32", "bf16"):
        for kind in ROW_PROGRAMS:
            for row in results.rows(f"h200/rows_{kind}_{elem}.csv"):
                (short if int(case_of(row)["N"]) <= 16384 else long).extend(values([row], "of_copy"))
    add("softmax, norms, cross entropy", "rows of 256 to 16,384, f32 and bf16", "a copy of the same bytes", short, h200, "`gpu_rows.py`")
    add("softmax, norms, cross entropy", "rows of 32,768 to 262,144, f32 and bf16", "a copy of the same bytes", long, h200, "`gpu_rows.py`")
    gradients = [of for kind in ("rms_norm", "layer_norm") for elem in ("bf16", "f32") for of in values(results.rows(f"h200/rows_{kind}_backward_{elem}.csv"), "of_copy")]
    add("gradients of norms", "rows of 1024 to 32,768, f32 and bf16", "a copy of the same bytes", gradients, h200, "`gpu_rows.py`")
    triangles = [row for name in ("syrk_f16", "trmm_f16", "syrk_tf32", "trmm_tf32") for row in results.rows(f"h200/linear_{name}.csv")]
    add("`syrk.tile`, `trmm.tile`", f"{len(triangles)} cases, f16 and tf32", "PyTorch's product of the whole matrices", values(triangles, "ratio_dense"), h200, "`gpu_linear.py`")
    # A case that was measured again counts with its later time.
    grouped = {row["case"]: row for name in ("moe_grouped", "moe_grouped_copy") for row in results.rows(f"h200/{name}.csv")}
    experts_of = values(list(grouped.values()), "ratio_dense")
    add("`moe_grouped.tile`", f"{len(experts_of) // 3} sizes, 8 to 64 experts, rows even, random and skewed", "one dense product of as many rows", experts_of, h200, "`gpu_inference.py`")
    decoding = values(results.rows("h200/paged_decode.csv"), "ratio_copy")
    add("`paged_decode.tile`", f"{len(decoding)} cases, 34 to 537 MB of keys and values", "a copy of the same bytes", decoding, h200, "`gpu_inference.py`")
    return lines


def summary(results: Results) -> str:
    """The headline of docs/performance.md."""
    return table(["program", "shapes", "against", "geometric mean", "least", "GPU", "measured by"], headline(results))


def readme(results: Results) -> str:
    """The headline of the README: what most readers ask for."""
    wanted = {
        "`gemm.tile`, bf16": ("252 shapes",), "`gemm.tile` for sm_80": ("",), "`attention.tile`": ("",), "`attention_fp8.tile`": ("",),
        "`attention_backward_stored.tile`": ("",), "`attention_backward.tile`": ("",), "`conv2d.tile`": ("ResNet-50", "ConvNeXt-T"), "`gemm_w4a16.tile`": ("8 sizes",),
        "softmax, norms, cross entropy": ("",), "gradients of norms": ("",), "`moe_grouped.tile`": ("",),
    }  # fmt: skip
    lines, against = [], ""
    for line in headline(results):
        against = against if line[2] == "the same" else line[2]
        if any(line[1].startswith(shapes) or line[1].endswith(shapes) for shapes in wanted.get(line[0], ())):
            lines.append([*line[:2], against, *line[3:6]])
    return table(["program", "shapes", "against", "geometric mean", "least", "GPU"], lines)


TABLES: dict[str, Callable[[Results], str]] = {
    **code_tables.TABLES,
    "summary": summary,
    "readme": readme,
    "sweep": sweep,
    "products of 16 bits": products("f16", "bf16"),
    "products of other types": products("e4m3", "tf32", "i8"),
    "orders": bench_table(*(f"h200/bench_orders_{elem}.json" for elem in ("bf16", "tf32", "i8"))),
    "epilogues": epilogues,
    "unaligned": bench_table(*(f"h200/bench_unaligned_{size}.json" for size in ("4095", "1111"))),
    "earlier targets": bench_table(*(f"h200/bench_{name}.json" for name in EARLIER), link="[bench_*.json](results/h200)"),
    "fma": bench_table("h200/bench_fma.json"),
    "warp tiles": warp_tiles,
    "scaled": scaled,
    "weights": weights,
    "attention": attention("h200/attention.csv"),
    "attention sm_80": attention("h200/attention_sm80.csv"),
    "attention e4m3": attention("h200/attention_e4m3.csv"),
    "attention backward stored": attention("h200/attention_backward_stored.csv"),
    "attention backward": attention("h200/attention_backward.csv"),
    "swiglu": fused("h200/swiglu.csv"),
    "back to back": fused("h200/back_to_back.csv"),
    "rows bf16": of_rows("bf16"),
    "rows f32": of_rows("f32"),
    "rows beside": rows_beside,
    "row sums": row_sums,
    "row spread": row_spread,
    "pointers": by_pointers,
    "requantised": requantised,
    **{f"convolutions {name}": convolutions(f"{card}/conv2d_{name}.csv", title) for name, (card, title) in NETWORKS.items()},
    "convolutions 256": convolutions("h200/conv2d_256.csv"),
    "convolutions few channels": convolutions("h200/conv2d_few_channels.csv", "Forward"),
    "convolutions few channels weight": convolutions("h200/conv2d_few_channels_weight.csv", "Gradients of filters"),
    "convolutions weight gradient": convolutions("h200/conv2d_weight_grad.csv"),
    "convolutions 3d": convolutions("h200/conv3d_unet.csv"),
    "convolutions depthwise": convolutions("h200/depthwise_convnext.csv", "ConvNeXt-T"),
    "convolutions mobilenet": convolutions("h200/depthwise_mobilenet.csv", "MobileNet V1"),
    "convolutions data gradient": convolutions("h200/conv2d_data_grad.csv"),
    "experts": experts,
    "pages": pages("h200/paged_decode.csv"),
    "latent": pages("h200/mla_decode.csv"),
    "latent heads": latent_heads,
    "experts and bytes": experts_and_bytes,
    "experts masked": experts_masked,
    "elements": elements,
    "ordered": ordered,
    "variable lengths": variable_lengths,
    "linear": linear,
    "stencils": stencils,
    "counters": counters,
}
