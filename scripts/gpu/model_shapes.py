"""Shapes of matrix products, drawn by rule from published model configurations (`model_shapes.json`, which states the rule)."""

import json
import pathlib
import random
from dataclasses import dataclass
from typing import Any

DATA = pathlib.Path(__file__).with_name("model_shapes.json")
ALIGNMENT = 8


@dataclass(frozen=True)
class Shape:
    """C[M, N] = A[M, K] * B[K, N], and the layer that it is of."""

    m: int
    n: int
    k: int
    layer: str

    @property
    def name(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"


def layer_products(model: dict[str, Any], split: int) -> dict[str, tuple[int, int]]:
    """N and K of each product on one of `split` devices; none where the model cannot be split so."""
    if model["heads"] % split or model["intermediate"] % split or model["vocab"] % split:
        return {}
    heads, hidden, inner = model["heads"] // split, model["hidden"], model["intermediate"] // split
    kv_heads = max(1, model["kv_heads"] // split)
    return {
        "qkv": ((heads + 2 * kv_heads) * model["head_dim"], hidden),
        "out": (hidden, heads * model["head_dim"]),
        "up": (inner * (2 if model["gated"] else 1), hidden),
        "down": (hidden, inner),
        "head": (model["vocab"] // split, hidden),
    }


def draw(count: int, data: dict[str, Any] | None = None) -> list[Shape]:
    """`count` different shapes, the same in every run; those of fewer are the first of those of more."""
    data = data or json.loads(DATA.read_text())
    source, shapes, drawn = random.Random(data["seed"]), list[Shape](), set[tuple[int, int, int]]()
    rows: list[int] = data["rows"]
    for attempt in range(1000 * count):
        if len(shapes) == count:
            return shapes
        turn = len(shapes)
        low = rows[turn % len(rows)]
        ragged = turn // len(rows) % 2 == 1 and low < rows[-1]
        m = source.randrange(low, 2 * low) if ragged else low
        model, split = source.choice(data["models"]), source.choice(data["tensor_parallel"])
        products = layer_products(model, split)
        if not products:
            continue
        product = source.choice(sorted(products))
        n, k = products[product]
        fits = n % ALIGNMENT == 0 and k % ALIGNMENT == 0 and m * n * k <= data["max_products"]
        if fits and (m, n, k) not in drawn and (product != "head" or m <= data["head_rows"]):
            drawn.add((m, n, k))
            shapes.append(Shape(m, n, k, f"{model['name']} {product}/{split}"))
    raise ValueError(f"the rule has fewer than {count} shapes")
