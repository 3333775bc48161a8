"""What typed random programs are made of: expressions and windows, each with its text and its value in a block of the grid."""

import dataclasses
import math
import typing

import elements
import numpy as np
from elements import ELEMS, Array, Elem

Shape = "tuple[int, ...]"


class Block:
    """What a block of the grid sees: indices, tensors and tiles by name, and what elements outside of tensors read as."""

    def __init__(self, index: "dict[str, int]", tensors: "dict[str, Array]", scalars: "dict[str, Array]") -> None:
        self.index = index
        self.tensors = tensors
        self.scalars = scalars
        self.tiles: "dict[str, Array]" = {}
        self.fill: typing.Any = 0


@dataclasses.dataclass(frozen=True)
class Node:
    """An expression of elements: its value is what registers hold of it. Without a type it is a condition."""

    text: str
    elem: "Elem | None"
    value: "typing.Callable[[Block], Array]"
    # It has a tile of the extents of the expression, so that nothing else need say these.
    tile: bool = False
    # Its numbers are numbers of its type: it is a name, an element of memory or a conversion.
    settled: bool = False
    # It has a window or a tile of these extents.
    full: bool = False


@dataclasses.dataclass(frozen=True)
class Index:
    """A whole number that is the same in all threads."""

    text: str
    value: "typing.Callable[[Block], int]"


@dataclasses.dataclass(frozen=True)
class Range:
    """A dimension of a window: the places of its elements, None where there is none. `kind` is "range", "single" or "new"."""

    text: str
    places: "typing.Callable[[Block], list[int | None]]"
    kind: str = "range"


def number(value: int) -> Index:
    return Index(str(value), lambda b: value)


def offset(index: Index, by: int) -> Index:
    if by == 0:
        return index
    return Index(f"{index.text} {'+' if by > 0 else '-'} {abs(by)}", lambda b: index.value(b) + by)


def places(ranges: "typing.Sequence[Range]", b: Block, shape: "tuple[int, ...]") -> "tuple[Array, Array, tuple[int, ...]]":
    """Where the elements of a window are, which of them there are, and its extents."""
    extents, axes, there, axis = [], [], [], 0
    for r in ranges:
        if r.kind == "new":
            extents.append(1)
            continue
        at = r.places(b)
        inside = [p is not None and 0 <= p < shape[axis] for p in at]
        axes.append([p if ok else 0 for p, ok in zip(at, inside)])
        there.append(inside)
        if r.kind == "range":
            extents.append(len(at))
        axis += 1
    assert axis == len(shape), (ranges, shape)
    whole = there[0]
    for one in there[1:]:
        whole = np.logical_and.outer(whole, one)
    return np.ix_(*axes), np.asarray(whole), tuple(extents)


def read(tensor: Array, ranges: "typing.Sequence[Range]", b: Block, fill: typing.Any = 0) -> Array:
    """The elements of a window."""
    if tensor.size == 0:
        raise elements.Inexact
    at, there, extents = places(ranges, b, tensor.shape)
    return np.where(there, tensor[at], np.asarray(fill, tensor.dtype)).reshape(extents)


def write(tensor: Array, ranges: "typing.Sequence[Range]", b: Block, x: Array, combine: "typing.Any" = None) -> Array:
    """Stores to a window, or combines with it, one element after the other; returns the old values, zero outside."""
    at, there, extents = places(ranges, b, tensor.shape)
    x = np.broadcast_to(x, extents).reshape(there.shape)
    old = np.zeros(there.shape, tensor.dtype)
    grids = np.broadcast_arrays(*at)
    for place in np.ndindex(there.shape):
        if there[place]:
            to = tuple(int(g[place]) for g in grids)
            old[place] = tensor[to]
            tensor[to] = combine(tensor[to], x[place]) if combine else x[place]
    return old.reshape(extents)


def _whole(of: "typing.Callable[..., int]", count: int) -> "typing.Callable[..., Array]":
    made = np.frompyfunc(lambda *x: of(*map(int, x)), count, 1)
    return lambda elem, *args: elements.in_register(elem, np.asarray(made(*args), dtype=object))


def _left(elem: Elem) -> "typing.Callable[[int, int], int]":
    return lambda a, n: a << n if 0 <= n < elem.register else 0


def _right(elem: Elem) -> "typing.Callable[[int, int], int]":
    return lambda a, n: a >> n if 0 <= n < elem.register else -(a < 0)


def _shifted(of: "typing.Callable[[Elem], typing.Any]") -> "typing.Callable[..., Array]":
    return lambda elem, a, n: _whole(of(elem), 2)(elem, a, n)


# Operators of integers by their texts, of `{0}` and `{1}`.
WHOLE: "dict[str, typing.Callable[..., Array]]" = {
    "({0} + {1})": _whole(lambda a, b: a + b, 2),
    "({0} - {1})": _whole(lambda a, b: a - b, 2),
    "({0} * {1})": _whole(lambda a, b: a * b, 2),
    "({0} / {1})": _whole(lambda a, b: a // b if b else 0, 2),
    "({0} % {1})": _whole(lambda a, b: a % b if b else a, 2),
    "ceildiv({0}, {1})": _whole(lambda a, b: -(-a // b) if b else 0, 2),
    "({0} & {1})": _whole(lambda a, b: a & b, 2),
    "({0} | {1})": _whole(lambda a, b: a | b, 2),
    "({0} ^ {1})": _whole(lambda a, b: a ^ b, 2),
    "({0} << {1})": _shifted(_left),
    "({0} >> {1})": _shifted(_right),
    "min({0}, {1})": _whole(min, 2),
    "max({0}, {1})": _whole(max, 2),
    "mul_high({0}, {1})": lambda elem, a, b: elements.in_register(elem, np.asarray((a * b) >> elem.register, dtype=object)),
}
# Of floats, where results are exact.
FLOAT: "dict[str, typing.Callable[..., Array]]" = {
    "({0} + {1})": lambda elem, a, b: elements.exact(a + b),
    "({0} - {1})": lambda elem, a, b: elements.exact(a - b),
    "({0} * {1})": lambda elem, a, b: elements.exact(a * b),
    "min({0}, {1})": lambda elem, a, b: np.minimum(a, b),
    "max({0}, {1})": lambda elem, a, b: np.maximum(a, b),
    "fma({0}, {1}, {1})": lambda elem, a, b: elements.exact(elements.exact(a * b) + b),
    "({0} / 4.0 + {1})": lambda elem, a, b: elements.exact(elements.exact(a / 4) + b),
}
COMPARISONS: "dict[str, typing.Callable[..., Array]]" = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


def magnitude(elem: Elem, a: Array) -> Array:
    return elements.in_register(elem, np.abs(a))


def ones(elem: Elem, a: Array) -> Array:
    """How many bits are set."""
    return np.asarray(np.frompyfunc(lambda v: (int(v) & ((1 << elem.bits) - 1)).bit_count(), 1, 1)(a), dtype=object)


def inverted(elem: Elem, a: Array) -> Array:
    return elements.wrapped(~a, elem.bits, elem.signed)


def _total(elem: Elem, x: Array, axis: int) -> Array:
    if not elem.integer:
        elements.exact(np.sum(np.abs(x), axis=axis))
    return elements.in_register(elem, np.sum(x, axis=axis, keepdims=True))


def _product(elem: Elem, x: Array, axis: int) -> Array:
    if not elem.integer:
        elements.exact(np.prod(np.maximum(np.abs(x), 1), axis=axis))
        if np.any(np.rint(x) != x):
            raise elements.Inexact
    return elements.in_register(elem, np.prod(x, axis=axis, keepdims=True))


REDUCTIONS: "dict[str, typing.Callable[..., Array]]" = {
    "sum": _total,
    "product": _product,
    "maximum": lambda elem, x, axis: np.max(x, axis=axis, keepdims=True),
    "minimum": lambda elem, x, axis: np.min(x, axis=axis, keepdims=True),
}


def _first(x: Array, axis: int, sign: int) -> Array:
    """The first place of the greatest element, or of the least."""
    of = np.array(x.tolist(), dtype=object).reshape(x.shape) * sign
    found = np.empty(np.delete(np.array(x.shape), axis), dtype=object)
    rows = np.moveaxis(of, axis, -1)
    for place in np.ndindex(found.shape):
        row = list(rows[place])
        found[place] = row.index(max(row))
    return np.expand_dims(found, axis)


PLACES = {"argmax": lambda x, axis: _first(x, axis, 1), "argmin": lambda x, axis: _first(x, axis, -1)}


def scanned(kind: str, elem: Elem, x: Array, axis: int, exclusive: bool) -> Array:
    """The scan `scan_<kind>`."""
    of = {"sum": lambda a, b: a + b, "product": lambda a, b: a * b, "maximum": np.maximum, "minimum": np.minimum}[kind]
    first: "dict[str, typing.Any]" = {"sum": 0, "product": 1, "maximum": -math.inf, "minimum": math.inf}
    if elem.integer:
        first |= {"maximum": elem.low, "minimum": elem.high}
    if kind == "product" and not elem.integer and np.any(np.rint(x) != x):
        raise elements.Inexact
    rows, taken = np.moveaxis(x, axis, 0), []
    total = np.full(rows.shape[1:], first[kind], dtype=x.dtype)
    for row in rows:
        if exclusive:
            taken.append(total)
        total = of(total, row) if kind in ("maximum", "minimum") else elements.in_register(elem, of(total, row))
        if not exclusive:
            taken.append(total)
    return np.moveaxis(np.stack([np.asarray(t, x.dtype) for t in taken]), 0, axis)


def literal(elem: Elem, value: typing.Any) -> Node:
    array = np.asarray(value, object if elem.integer else np.float64)
    return Node(str(value), elem, lambda b: array, settled=True)


def cast(to: Elem, node: Node) -> Node:
    of = node.elem
    if of is None:
        held = [0, 1] if to.integer else [0.0, 1.0]
        dtype = object if to.integer else np.float64
        return Node(f"cast<{to.name}>({node.text})", to, lambda b: np.where(node.value(b), *np.array(held, dtype)[::-1]), node.tile, True, node.full)
    return Node(f"cast<{to.name}>({node.text})", to, lambda b: elements.converted(to, of, node.value(b)), node.tile, True, node.full)


def bitcast(to: Elem, node: Node) -> Node:
    of = node.elem
    assert of is not None

    def value(b: Block) -> Array:
        x = elements.kept(of, node.value(b))
        if not of.integer and np.any((x == 0) & np.signbit(x)):
            raise elements.Inexact
        return elements.numbers(to, elements.bits(of, x))

    return Node(f"bitcast<{to.name}>({node.text})", to, value, node.tile, True, node.full)


INDICES = [ELEMS[name] for name in ("i32", "i64", "i16", "u32", "u8", "i8")]
