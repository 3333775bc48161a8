"""Random programs on tiles of every element type, each with what NumPy computes for it.

`programs.py` has products and expressions of f32 with windows in all places; here are the other types, and what moves, reduces and orders elements:
gathers, strides, ends, loops over numbers of memory, reductions, scans, shapes, joins, sorts, tuples, atomics, conversions.
"""

import dataclasses
import itertools
import random
import typing

import elements
import numpy as np
import typed_values as values
from elements import ELEMS, Array, Elem
from typed_values import Block, Index, Node, Range, number, offset

Shape = "tuple[int, ...]"
Step = typing.Callable[[Block], None]
WORDS = ("i32", "u32", "i64", "u64")
NARROW = ("i8", "u8", "i16", "u16")
NIBBLES = ("i4", "u4", "e2m1")
FLOATS = ("f32", "f32", "f64", "f16", "bf16", "e4m3", "e5m2")


@dataclasses.dataclass
class Tensor:
    """A parameter: its type, the sizes of its dimensions, and what it holds before the launch."""

    name: str
    elem: Elem
    sizes: "tuple[str, ...]"
    values: Array
    column: bool = False
    padding: int = 0


@dataclasses.dataclass
class Tile:
    """A named tile."""

    name: str
    shape: "tuple[int, ...]"
    elem: "Elem | None"
    # "var", "let" or "smem".
    place: str


def powers(shape: "tuple[int, ...]") -> bool:
    """Whether all extents are powers of two: gathered rows are refused for other tiles."""
    return all(n & (n - 1) == 0 for n in shape)


class Program:
    """A program of a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.RandomState(seed)
        self.seed = seed
        self.counter = itertools.count()
        self.wild = self.random.random() < 0.5
        self.tensors: "dict[str, Tensor]" = {}
        self.sizes: "dict[str, int]" = {}
        self.scalars: "dict[str, tuple[Elem, Array]]" = {}
        self.outputs: "list[str]" = []
        self.lines: "list[str]" = []
        self.indent = 1
        self.steps: "list[Step]" = []
        self.names: "list[Tile]" = []
        self.blocks = self.random.choice([1, 2, 3])
        self.sizes["G"] = self.blocks
        self.indices = [Index("i", lambda b: b.index["i"])]
        self.loops = 0
        self.elems = self.types()
        self.shapes = self.extents()
        for _ in range(self.random.randint(3, 8)):
            self.statement()
        for _ in range(self.random.randint(1, 2)):
            self.store()
        if not self.outputs:
            self.store_tile()

    # Choices.

    def types(self) -> "list[Elem]":
        pick = self.random.choice
        of = pick([WORDS, WORDS + NARROW, NARROW, FLOATS, ("f32",), ("f32", "i32"), FLOATS + WORDS + NARROW, NIBBLES + ("i32", "i8", "f16", "f32")])
        return [ELEMS[pick(of)] for _ in range(self.random.randint(1, 3))]

    def extents(self) -> "list[tuple[int, ...]]":
        pick, sized = self.random.choice, self.random.random()
        small, large = [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 33], [8, 16, 32, 20, 24, 33, 64, 48]
        if self.chance(0.5):
            small, large = [1, 2, 4, 8, 16], [8, 16, 32, 64]
        one = (pick(small if sized < 0.7 else large), pick([*small, 32] if sized < 0.7 else large))
        shapes = [one, one]
        if self.random.random() < 0.3:
            shapes.append((pick([2, 4] if max(small) == 16 else [2, 3, 4]), *one) if one[0] * one[1] <= 512 else one)
        if self.random.random() < 0.4:
            shapes.append((pick([1, 4, 8, 32, 64, 256] if max(small) == 16 else [3, 12, 17, 100]),))
        return shapes

    def chance(self, of: float) -> bool:
        return self.random.random() < of

    def name(self, letter: str) -> str:
        return f"{letter}{next(self.counter)}"

    def emit(self, line: str, step: "Step | None" = None) -> None:
        self.lines.append("    " * self.indent + line)
        if step:
            self.steps.append(step)

    # Tensors.

    def data(self, elem: Elem, shape: "tuple[int, ...]") -> Array:
        """Numbers of a type: small ones, and of integers any."""
        if elem.integer:
            low, high = max(elem.low, -9), min(elem.high, 9)
            small = elements.objects(self.numbers.randint(low, high + 1, shape).tolist()).reshape(shape)
            if not self.wild:
                return small
            bits = [self.random.getrandbits(elem.bits) for _ in range(small.size)]
            any_of = elements.wrapped(elements.objects(bits).reshape(shape), elem.bits, elem.signed)
            edges = elements.objects([self.random.choice([elem.low, elem.high, elem.high - 1, elem.low + 1]) for _ in bits]).reshape(shape)
            which = self.numbers.randint(0, 4, shape)
            return np.where(which == 0, any_of, np.where(which == 1, edges, small))
        if elem.bits == 4:
            return self.numbers.choice([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.5, -1.0, -3.0, -6.0], shape)
        whole = self.numbers.randint(-4, 5, shape).astype(np.float64)
        return elements.rounded(elem, whole / 2 if self.wild and elem.bits > 8 else whole) + 0.0

    def size(self, value: int) -> str:
        same = [name for name, of in self.sizes.items() if of == value and name != "G"]
        if same and self.chance(0.6):
            return self.random.choice(same)
        name = self.name("N")
        self.sizes[name] = value
        return name

    def tensor(self, elem: Elem, rank: int, content: "Array | None" = None) -> Tensor:
        of_kind = [t for n, t in self.tensors.items() if t.elem is elem and len(t.sizes) == rank and n[0] == "X"]
        if content is None and of_kind and self.chance(0.6):
            return self.random.choice(of_kind)
        if content is None:
            most = {1: 70, 2: 24, 3: 9}[rank]
            shape = [self.random.randint(1, most) for _ in range(rank)]
            if elem.bits == 4:
                shape[-1] = 2 * -(-shape[-1] // 2)
            content = self.data(elem, tuple(shape))
        sizes = tuple(self.size(n) for n in content.shape)
        plain = elem.bits != 4
        column, padding = plain and rank > 1 and self.chance(0.15), self.random.randint(0, 3) if plain and rank > 1 and self.chance(0.2) else 0
        made = Tensor(self.name("X"), elem, sizes, content, column, padding)
        self.tensors[made.name] = made
        return made

    def output(self, elem: Elem, shape: "tuple[int, ...]") -> Tensor:
        content = self.data(elem, shape)
        made = Tensor(self.name("Y"), elem, tuple(self.size(n) for n in shape), content, elem.bits != 4 and len(shape) > 1 and self.chance(0.1))
        self.tensors[made.name] = made
        self.outputs.append(made.name)
        return made

    # Windows.

    def start(self, extent: int, size: int) -> Index:
        """Where a window begins: often inside, sometimes in front of the tensor or past its end."""
        most = max(size - extent, 0)
        kind = self.random.random()
        if kind < 0.35:
            return number(0)
        if kind < 0.55:
            return number(self.random.randint(0, most + 1))
        if kind < 0.65:
            return number(self.random.randint(-min(extent, 4), -1))
        if kind < 0.9:
            index = self.random.choice(self.indices)
            step = self.random.choice([1, extent, 2])
            scaled = index if step == 1 else Index(f"{index.text} * {step}", lambda b: index.value(b) * step)
            return offset(scaled, self.random.randint(-2, 2))
        return self.from_memory()

    def from_memory(self) -> Index:
        """A number that a tensor or a parameter has."""
        elem = self.random.choice(values.INDICES)
        if self.chance(0.3):
            node = self.scalar(elem)
            return Index(node.text, lambda b: int(node.value(b)))
        x = self.numbered(elem, -2, 12)
        at = self.random.randrange(x.values.shape[0])
        return Index(f"{x.name}[{at}]", lambda b: int(b.tensors[x.name][at]))

    def bounded(self) -> Index:
        """A number of 32 bits that memory has."""
        x = self.numbered(ELEMS["i32"], -2, 6)
        return Index(f"{x.name}[0]", lambda b: int(b.tensors[x.name][0]))

    def numbered(self, elem: Elem, low: int, high: int) -> Tensor:
        """A vector of numbers of a range."""
        content = self.numbers.randint(max(low, elem.low), high + 1, self.random.randint(1, 40)).tolist()
        made = Tensor(self.name("I"), elem, (self.size(len(content)),), elements.objects(content))
        self.tensors[made.name] = made
        return made

    def span(self, extent: int, size: int, plain: bool = False) -> Range:
        """A range of so many elements of a dimension of this size."""
        first, kind = self.start(extent, size), self.random.random()

        def along(step: int = 1) -> "typing.Callable[[Block], list[int | None]]":
            return lambda b: [first.value(b) + step * n for n in range(extent)]

        if kind < 0.12 and not plain:
            return self.gathered(extent, size)
        if kind < 0.22 and not plain:
            step = self.random.choice([2, 3])
            return Range(f"{first.text}.. step {step}", along(step))
        if kind < 0.37:
            end = offset(first, self.random.randint(1, extent + 1)) if self.chance(0.5) else number(self.random.randint(1, size + 2))

            def until(b: Block) -> "list[int | None]":
                return [p if p is not None and p < end.value(b) else None for p in along()(b)]

            return Range(f"{first.text}..{end.text}", until)
        return Range(f"{first.text}.." + (f"+{extent}" if self.chance(0.3) or extent == 1 else ""), along())

    def gathered(self, extent: int, size: int) -> Range:
        """Elements that a tile of numbers names, some of which name nothing."""
        tile = self.index_tile(extent, size)
        form, by = self.random.choice(["", "", " / 2", " + 1"]), self.name_of_value(tile)
        of = {"": lambda v: v, " / 2": lambda v: v // 2, " + 1": lambda v: v + 1}[form]
        return Range(tile.name + form, lambda b: [int(elements.in_register(tile.elem, of(v))) for v in by(b)])

    def index_tile(self, extent: int, size: int, unique: bool = False) -> Tile:
        elem = self.random.choice([e for e in values.INDICES if not unique or e.bits >= 16])
        low = -2 if not unique else max(-2, elem.low)
        if unique:
            count = min(size + 4, 100)
            content = self.random.sample(range(low, low + max(count, extent)), max(count, extent))
            x = Tensor(self.name("I"), elem, (self.size(len(content)),), elements.objects(content))
            self.tensors[x.name] = x
        else:
            x = self.numbered(elem, low, size + 2)
        name, at = self.name("r"), self.random.randint(0, 1)
        fill = -1 if elem.signed else elem.high
        fills = unique or self.chance(0.5)
        self.emit(f"var {name} = reg {elem.name}[{extent}]")
        ranges = [Range("", lambda b: list(range(at, at + extent)))]

        def step(b: Block) -> None:
            b.tiles[name] = values.read(b.tensors[x.name], ranges, b, fill if fills else 0)

        self.emit(f"copy {x.name}[{at}..] -> {name}" + (f" fill {fill}" if fills else ""), step)
        return Tile(name, (extent,), elem, "var")

    def name_of_value(self, tile: Tile) -> "typing.Callable[[Block], Array]":
        return lambda b: b.tiles[tile.name]

    def window(self, tensor: Tensor, shape: "tuple[int, ...]", plain: bool = False, new: "typing.Collection[int]" = ()) -> "tuple[str, list[Range]]":
        """A window of these extents: dimensions of the tensor beyond them have an index each, and it lacks those of `new`."""
        ranges: "list[Range]" = []
        plain = plain or not powers(shape)
        spare = len(tensor.sizes) - len(shape) + len(new)
        axis = 0
        for place, extent in enumerate(shape):
            if place in new:
                ranges.append(Range("_", lambda b: [0], "new"))
                continue
            while spare and self.chance(0.5):
                ranges.append(self.single(tensor, axis))
                spare, axis = spare - 1, axis + 1
            of = self.span(extent, tensor.values.shape[axis], plain)
            ranges.append(of)
            axis += 1
        while spare:
            ranges.append(self.single(tensor, axis))
            spare, axis = spare - 1, axis + 1
        return f"{tensor.name}[{', '.join(r.text for r in ranges)}]", ranges

    def single(self, tensor: Tensor, axis: int) -> Range:
        size = tensor.values.shape[axis]
        index = self.from_memory() if self.chance(0.3) else number(self.random.randrange(size))
        return Range(index.text, lambda b: [index.value(b)], "single")

    def windowed(self, shape: "tuple[int, ...]", elem: Elem, plain: bool = True, within: "tuple[int, ...] | None" = None) -> Node:
        """A window of a tensor as an expression, sometimes transposed."""
        spare = self.random.choice([0, 0, 0, 1]) if len(shape) < 3 else 0
        turned = len(shape) == 2 and self.chance(0.2) and 1 not in shape
        of = shape[::-1] if turned else shape
        new = [place for place, n in enumerate(of) if n == 1 and self.chance(0.4)]
        if within:
            # It repeats along a dimension that the tensor lacks.
            turned, of = False, shape
            new = [place for place, (n, m) in enumerate(zip(shape, within[-len(shape) :])) if n == 1 and (m > 1 or place in new)]
        rank = min(max(len(shape) - len(new) + spare, 1), 3)
        tensor = self.tensor(elem, rank)
        # Beside what repeats a window says that it has one element.
        text, ranges = self.window(tensor, of, plain, new)
        name = tensor.name

        def value(b: Block) -> Array:
            x = values.read(b.tensors[name], ranges, b, b.fill)
            return x.T if turned else x

        return Node(f"transpose({text})" if turned else text, elem, value, settled=True, full=True)

    # Tiles.

    def declared(self, letter: str, shape: "tuple[int, ...]", elem: Elem, place: str = "var") -> Tile:
        # Threads store whole bytes to buffers.
        place = "var" if elem.bits == 4 else place
        tile = Tile(self.name(letter), shape, elem, place)
        extents = ", ".join(map(str, shape))
        form = "let {} = smem {}[{}]" if place == "smem" else "var {} = reg {}[{}]"
        self.emit(form.format(tile.name, elem.name, extents))
        return tile

    def keep(self, tile: Tile, node: Node, fill: typing.Any = 0) -> Step:
        """What a statement does that gives a tile its value."""

        def step(b: Block) -> None:
            b.fill = fill
            x = node.value(b)
            b.fill = 0
            b.tiles[tile.name] = np.broadcast_to(self.held(tile.elem, node, x), tile.shape)

        return step

    @staticmethod
    def held(to: "Elem | None", node: Node, x: Array) -> Array:
        """A value as a place of a type has it."""
        if to is None or node.elem is None:
            return x
        return elements.kept(to, elements.converted(to, node.elem, x) if to is not node.elem else x)

    def known(self, shape: "tuple[int, ...] | None" = None, elem: "Elem | None" = None) -> "list[Tile]":
        return [t for t in self.names if (shape is None or t.shape == shape) and (elem is None or t.elem is elem) and t.elem]

    def tile(self, shape: "tuple[int, ...]", elem: Elem) -> Tile:
        """A tile of this shape and type, loaded if there is none."""
        found = self.known(shape, elem)
        return self.random.choice(found) if found and self.chance(0.8) else self.load(shape, elem)

    def any_tile(self) -> Tile:
        found = self.known()
        if found and self.chance(0.8):
            return self.random.choice(found)
        return self.load(self.random.choice(self.shapes), self.random.choice(self.elems))

    def of_tile(self, tile: Tile) -> Node:
        return Node(tile.name, tile.elem, lambda b: b.tiles[tile.name], True, True)

    def load(self, shape: "tuple[int, ...]", elem: Elem) -> Tile:
        """A tile out of a tensor, of the same type or another of its kind."""
        of = elem
        if self.chance(0.15) and elem.bits > 4:
            kin = [ELEMS[n] for n in ((*WORDS, *NARROW) if elem.integer else ("f32", "f16", "bf16"))]
            of = self.random.choice(kin)
        place = "smem" if self.chance(0.25) else "var"
        node = self.windowed(shape, of, plain=False)
        form = self.random.random()
        if place == "var" and form < 0.2 and of is elem and not node.text.startswith("transpose") and "r" not in node.text:
            tile = Tile(self.name("t"), shape, elem, place)
            self.emit(f"var {tile.name} = reg {elem.name}[{', '.join(map(str, shape))}] = {node.text}", self.keep(tile, node))
        else:
            tile = self.declared("t", shape, elem, place)
            fill: typing.Any = self.random.choice([1, 2, 3]) if self.chance(0.25) else 0
            if fill and not of.integer:
                fill = float(fill)
            self.emit(f"copy {node.text} -> {tile.name}" + (f" fill {fill}" if fill else ""), self.keep(tile, node, fill))
        self.names.append(tile)
        return tile

    # Expressions.

    def scalar(self, elem: Elem) -> Node:
        name = next((n for n, (of, x) in self.scalars.items() if of is elem and not np.ndim(x)), None)
        if name is None or self.chance(0.3):
            name = self.name("s")
            self.scalars[name] = (elem, self.data(elem, ()) if not elem.integer else np.asarray(self.random.randint(max(elem.low, -2), 9), object))
        of = name
        return Node(name, elem, lambda b: b.scalars[of], settled=True)

    def element(self, elem: Elem) -> Node:
        tensor = self.tensor(elem, self.random.choice([1, 2]))
        text, ranges = self.window(tensor, ())
        return Node(text, elem, lambda b: values.read(b.tensors[tensor.name], ranges, b, b.fill), settled=True)

    def number(self, elem: Elem) -> Node:
        kind = self.random.random()
        if kind < 0.5 or elem.bits == 4:
            if elem.integer:
                return values.literal(elem, self.random.choice([1, 2, 3, 5, min(7, elem.high), min(elem.high, (1 << 63) - 1)] if self.wild else [1, 2, 3]))
            return values.literal(elem, self.random.choice([1.0, 2.0, 0.5, 3.0]))
        return self.scalar(elem) if kind < 0.75 and elem.bits >= 32 else self.element(elem)

    def leaf(self, shape: "tuple[int, ...]", elem: Elem) -> Node:
        kind = self.random.random()
        if kind < 0.25:
            return self.windowed(shape, elem)
        if kind < 0.4:
            return self.repeated(shape, elem)
        if kind < 0.5 and elem.integer and elem.bits >= 32:
            return self.counted(shape, elem)
        return self.of_tile(self.tile(shape, elem))

    def counted(self, shape: "tuple[int, ...]", elem: Elem) -> Node:
        axis, like = self.random.randrange(len(shape)), self.any_shaped(shape)
        array = elements.objects(np.indices(shape)[axis].tolist()).reshape(shape)
        return Node(f"cast<{elem.name}>(iota({like.name}, {axis}))", elem, lambda b: array, True, True)

    def any_shaped(self, shape: "tuple[int, ...]") -> Tile:
        found = self.known(shape)
        return self.random.choice(found) if found else self.load(shape, self.random.choice(self.elems))

    def repeated(self, shape: "tuple[int, ...]", elem: Elem) -> Node:
        """What repeats along some dimensions: a tile of extents 1 there, or one that lacks the first dimensions."""
        if len(shape) > 1 and self.chance(0.4):
            of = shape[self.random.randrange(1, len(shape)) :]
        else:
            of = tuple(1 if self.chance(0.5) else n for n in shape)
        if self.chance(0.4):
            return dataclasses.replace(self.windowed(of, elem, within=shape), full=of == shape)
        made = self.of_tile(self.tile(of, elem))
        return dataclasses.replace(made, tile=of == shape, full=of == shape)

    def whole(self, shape: "tuple[int, ...]", elem: Elem, depth: int) -> Node:
        """An expression that says its extents."""
        made = self.expression(shape, elem, depth)
        return made if made.tile else self.binary(made, self.of_tile(self.tile(shape, elem)), elem)

    def binary(self, a: Node, b: Node, elem: Elem) -> Node:
        operators = values.WHOLE if elem.integer else values.FLOAT
        text = self.random.choice(list(operators))
        of = operators[text]
        return Node(text.format(a.text, b.text), elem, lambda at: of(elem, a.value(at), b.value(at)), a.tile or b.tile, full=a.full or b.full)

    def expression(self, shape: "tuple[int, ...]", elem: Elem, depth: int) -> Node:
        kind = self.random.random()
        if depth == 0 or kind < 0.15:
            return self.leaf(shape, elem)
        if kind < 0.5:
            a = self.expression(shape, elem, depth - 1)
            b = self.number(elem) if self.chance(0.3) else self.expression(shape, elem, depth - 1)
            if self.chance(0.2) and b.text[0] != "-":
                a, b = b, a
            if a.text[0].isdigit() and b.text[0].isdigit():
                return a
            return self.binary(a, b, elem)
        if kind < 0.6:
            return self.unary(shape, elem, depth)
        if kind < 0.75:
            return self.converted(shape, elem, depth)
        if kind < 0.85:
            return self.selected(shape, elem, depth)
        tile = self.reducible(shape, elem)
        return self.reduced(tile, shape) if tile else self.leaf(shape, elem)

    def unary(self, shape: "tuple[int, ...]", elem: Elem, depth: int) -> Node:
        a = self.expression(shape, elem, depth - 1)
        if not elem.integer:
            name, of = self.random.choice([("abs({})", np.abs), ("-{}", np.negative), ("floor({})", np.floor), ("ceil({})", np.ceil), ("round({})", np.rint)])
            if a.text[0] == "-":
                return a
            return Node(name.format(a.text), elem, lambda b: of(a.value(b)), a.tile, full=a.full)
        if a.settled and self.chance(0.5):
            name, how = self.random.choice([("popcount({})", values.ones), ("~{}", values.inverted)])
            return Node(name.format(a.text), elem, lambda b: how(elem, a.value(b)), a.tile, full=a.full)
        return Node(f"abs({a.text})", elem, lambda b: values.magnitude(elem, a.value(b)), a.tile, full=a.full)

    def converted(self, shape: "tuple[int, ...]", elem: Elem, depth: int) -> Node:
        others = [e for e in self.elems if e is not elem]
        if not others:
            others = [self.random.choice([e for e in ELEMS.values() if e.bits > 4 and e is not elem])]
        other = self.random.choice(others)
        a = self.expression(shape, other, depth - 1)
        if other.bits == elem.bits and elem.bits != 4 and other.integer and elem.integer and self.chance(0.3):
            return values.bitcast(elem, a)
        return values.cast(elem, a)

    def condition(self, shape: "tuple[int, ...]", depth: int) -> Node:
        elem = self.random.choice(self.elems)
        a = self.expression(shape, elem, depth)
        b = self.number(elem) if self.chance(0.5) else self.expression(shape, elem, depth)
        name, of = self.random.choice(list(values.COMPARISONS.items()))
        made = Node(f"{a.text} {name} {b.text}", None, lambda at: of(a.value(at), b.value(at)), a.tile or b.tile, full=a.full or b.full)
        if a.text[0] == "-":
            made = dataclasses.replace(made, text=f"({a.text}) {name} {b.text}")
        if depth and self.chance(0.2):
            other = self.condition(shape, 0)
            word, both = self.random.choice([("&&", np.logical_and), ("||", np.logical_or)])
            return Node(f"({made.text} {word} {other.text})", None, lambda at: both(made.value(at), other.value(at)), made.tile or other.tile, full=made.full or other.full)
        return made

    def selected(self, shape: "tuple[int, ...]", elem: Elem, depth: int) -> Node:
        c, a = self.condition(shape, depth - 1), self.expression(shape, elem, depth - 1)
        b = self.number(elem) if self.chance(0.3) else self.expression(shape, elem, depth - 1)
        return Node(f"select({c.text}, {a.text}, {b.text})", elem, lambda at: np.where(c.value(at), a.value(at), b.value(at)), c.tile or a.tile or b.tile, full=c.full or a.full or b.full)

    # Reductions and scans.

    def reducible(self, shape: "tuple[int, ...]", elem: Elem) -> "tuple[Tile, int] | None":
        """A tile whose reduction along a dimension repeats in this shape."""
        found = [(t, axis) for t in self.known(None, elem) if len(t.shape) == len(shape) for axis in range(len(shape)) if self.fits(t.shape, axis, shape)]
        return self.random.choice(found) if found else None

    @staticmethod
    def fits(of: "tuple[int, ...]", axis: int, shape: "tuple[int, ...]") -> bool:
        return all(a == axis or n in (1, m) for a, (n, m) in enumerate(zip(of, shape)))

    def reduced(self, of: "tuple[Tile, int]", shape: "tuple[int, ...]") -> Node:
        tile, axis = of
        elem = tile.elem
        assert elem is not None
        name, how = self.random.choice(list(values.REDUCTIONS.items()))
        after = tuple(1 if a == axis else n for a, n in enumerate(tile.shape))
        return Node(f"{name}({tile.name}, {axis})", elem, lambda b: how(elem, b.tiles[tile.name], axis), after == shape)

    # Statements.

    def statement(self) -> None:
        forms = {
            self.assigned: 2,
            self.let: 3,
            self.fresh: 3,
            self.reduction: 3,
            self.scan: 2,
            self.reshaped: 2,
            self.turned: 1,
            self.joined: 2,
            self.taken: 2,
            self.put: 2,
            self.sorted: 1,
            self.tuples: 1,
            self.store: 3,
            self.atomic: 1.5,
            self.exchanged: 0.7,
            self.truth: 0.7,
            self.product: 1,
            self.table: 0.7,
        }
        if self.loops < 2:
            forms |= {self.loop: 2, self.turns: 1, self.branch: 1}
        self.random.choices(list(forms), list(forms.values()))[0]()

    def pick(self) -> "tuple[tuple[int, ...], Elem]":
        return self.random.choice(self.shapes), self.random.choice(self.elems)

    def let(self) -> None:
        shape, elem = self.pick()
        node = self.whole(shape, elem, self.random.randint(1, 3))
        if node.settled and not node.text.startswith(("cast", "bitcast")):
            return
        tile = Tile(self.name("l"), shape, elem, "let")
        self.emit(f"let {tile.name} = {node.text}", self.keep(tile, node))
        self.names.append(tile)

    def fresh(self) -> None:
        shape, elem = self.pick()
        node, form = self.expression(shape, elem, self.random.randint(1, 3)), self.random.choice(["var", "copy", "smem"])
        if not node.full and not node.tile:
            node = self.binary(node, self.of_tile(self.tile(shape, elem)), elem)
        if form == "var" and node.tile:
            tile = Tile(self.name("t"), shape, elem, "var")
            self.emit(f"var {tile.name} = reg {elem.name}[{', '.join(map(str, shape))}] = {node.text}", self.keep(tile, node))
        else:
            tile = self.declared("t", shape, elem, "smem" if form == "smem" else "var")
            self.emit(f"copy {node.text} -> {tile.name}", self.keep(tile, node))
        self.names.append(tile)

    def assigned(self) -> None:
        found = [t for t in self.names if t.place in ("var", "smem")]
        if not found:
            return self.fresh()
        tile = self.random.choice(found)
        assert tile.elem is not None
        node = self.whole(tile.shape, tile.elem, 2)
        text = f"copy {node.text} -> {tile.name}" if tile.place == "smem" or self.chance(0.3) else f"{tile.name} = {node.text}"
        self.emit(text, self.keep(tile, node))
        return None

    def named(self, letter: str, node: Node, shape: "tuple[int, ...]") -> None:
        """A name of a computed tile: `let`, or a variable."""
        assert node.elem is not None
        if self.chance(0.6):
            tile = Tile(self.name(letter), shape, node.elem, "let")
            self.emit(f"let {tile.name} = {node.text}", self.keep(tile, node))
        else:
            tile = self.declared(letter, shape, node.elem, "smem" if self.chance(0.3) else "var")
            self.emit(f"copy {node.text} -> {tile.name}", self.keep(tile, node))
        self.names.append(tile)

    def reduction(self) -> None:
        tile = self.any_tile()
        assert tile.elem is not None
        axis, elem, kind = self.random.randrange(len(tile.shape)), tile.elem, self.random.random()
        after = tuple(1 if a == axis else n for a, n in enumerate(tile.shape))
        source, value = tile.name, self.name_of_value(tile)
        if kind < 0.2:
            # Of a window that says its extents.
            tensor = self.tensor(elem, len(tile.shape))
            ranges = []
            for n, size in zip(tile.shape, tensor.values.shape):
                first = self.start(n, size)
                ranges.append(Range(f"{first.text}..+{n}", lambda b, first=first, n=n: [first.value(b) + m for m in range(n)]))
            source = f"{tensor.name}[{', '.join(r.text for r in ranges)}]"
            value = lambda b: values.read(b.tensors[tensor.name], ranges, b)  # noqa: E731
        elif kind < 0.4:
            node = self.whole(tile.shape, elem, 1)
            source, value = node.text, node.value
        if self.chance(0.2):
            name, place = self.random.choice(list(values.PLACES.items()))
            node = Node(f"{name}({source}, {axis})", ELEMS["i32"], lambda b: place(np.broadcast_to(value(b), tile.shape), axis), True)
        elif self.chance(0.15):
            name, test = self.random.choice([("any", np.any), ("all", np.all)])
            other, (word, of) = self.number(elem), self.random.choice(list(values.COMPARISONS.items()))
            truth = Node(
                f"{name}({source} {word} {other.text}, {axis})",
                None,
                lambda b: test(np.broadcast_to(of(value(b), other.value(b)), tile.shape), axis=axis, keepdims=True),
                True,
            )
            node = values.cast(self.random.choice([e for e in self.elems if e.bits > 4] or [ELEMS["i32"]]), truth)
        else:
            name, how = self.random.choice(list(values.REDUCTIONS.items()))
            node = Node(f"{name}({source}, {axis})", elem, lambda b: how(elem, np.broadcast_to(value(b), tile.shape), axis), True)
        self.named("m", node, after)

    def scan(self) -> None:
        tile = self.any_tile()
        elem, axis = tile.elem, self.random.randrange(len(tile.shape))
        assert elem is not None
        kind, exclusive = self.random.choice(["sum", "product", "maximum", "minimum"]), self.chance(0.4)
        if exclusive and not elem.integer and kind in ("maximum", "minimum"):
            exclusive = False
        text = f"scan_{kind}({tile.name}, {axis}{', exclusive' if exclusive else ''})"
        self.named("c", Node(text, elem, lambda b: values.scanned(kind, elem, b.tiles[tile.name], axis, exclusive), True), tile.shape)

    def reshaped(self) -> None:
        tile = self.any_tile()
        assert tile.elem is not None
        count = int(np.prod(tile.shape))
        factors = [n for n in range(1, count + 1) if count % n == 0]
        first = self.random.choice(factors)
        shape = self.random.choice([(first, count // first), (count,), (first, count // first, 1), (1, first, count // first)])
        rest = [n for n in factors if (count // first) % n == 0]
        if self.chance(0.5):
            second = self.random.choice(rest)
            shape = (first, second, count // first // second)
        node = Node(f"reshape({tile.name}, [{', '.join(map(str, shape))}])", tile.elem, lambda b: b.tiles[tile.name].reshape(shape), True, True)
        self.named("h", node, shape)
        if max(shape) <= 256:
            self.shapes.append(shape)

    def turned(self) -> None:
        found = [t for t in self.known() if len(t.shape) == 2]
        if not found:
            return
        tile = self.random.choice(found)
        assert tile.elem is not None
        node = Node(f"transpose({tile.name})", tile.elem, lambda b: b.tiles[tile.name].T, True, True)
        self.named("v", node, tile.shape[::-1])
        self.shapes.append(tile.shape[::-1])

    def joined(self) -> None:
        a = self.any_tile()
        assert a.elem is not None
        axis = self.random.randrange(len(a.shape))
        beside = [t for t in self.known(None, a.elem) if len(t.shape) == len(a.shape) and all(d == axis or n == m for d, (n, m) in enumerate(zip(t.shape, a.shape)))]
        parts = [a, *(self.random.choice(beside) for _ in range(self.random.randint(1, 2)))] if beside else [a, a]
        shape = tuple(sum(t.shape[axis] for t in parts) if d == axis else n for d, n in enumerate(a.shape))
        if np.prod(shape) > 4096:
            return
        node = Node(
            f"concat({', '.join(t.name for t in parts)}, {axis})", a.elem, lambda b: np.concatenate([b.tiles[t.name] for t in parts], axis), True, True
        )
        self.named("j", node, shape)
        self.shapes.append(shape)

    def part(self, tile: Tile, extents: bool) -> "tuple[str, typing.Callable[[Block], typing.Any], tuple[int, ...]]":
        """A window of a tile that is inside of it: its text, its places and its extents."""
        texts, spans, shape = [], [], []
        for n in tile.shape:
            if len(tile.shape) > 1 and self.chance(0.2):
                at = self.random.randrange(n)
                texts.append(str(at))
                spans.append((number(at), 0))
                continue
            count = self.random.randint(1, n)
            first: Index = number(self.random.randint(0, n - count))
            if n > count and self.chance(0.2):
                first = Index("i % 2", lambda b: b.index["i"] % 2)
            elif self.chance(0.2):
                first, count = number(0), n
            texts.append(f"{first.text}..+{count}" if extents else f"{first.text}..")
            spans.append((first, count))
            shape.append(count)

        def at(b: Block) -> typing.Any:
            return tuple(slice(f.value(b), f.value(b) + n) if n else f.value(b) for f, n in spans)

        return f"{tile.name}[{', '.join(texts)}]", at, tuple(shape)

    def taken(self) -> None:
        """A part of a tile."""
        tile = self.any_tile()
        assert tile.elem is not None
        text, at, shape = self.part(tile, True)
        # A transposed tile that has a name has no windows.
        if not shape or (tile.name[0] == "v" and tile.place == "let"):
            return
        node = Node(text, tile.elem, lambda b: b.tiles[tile.name][at(b)], True, True)
        form = self.random.random()
        if form < 0.4:
            part = self.declared("w", shape, tile.elem)
            self.emit(f"copy {text} -> {part.name}", self.keep(part, node))
        elif form < 0.6:
            part = Tile(self.name("w"), shape, tile.elem, "let")
            self.emit(f"let {part.name} = {text}", self.keep(part, node))
        else:
            return self.named("w", self.binary(node, self.of_tile(self.tile(shape, tile.elem)), tile.elem), shape)
        self.names.append(part)
        self.shapes.append(shape)
        return None

    def put(self) -> None:
        """A part of a tile gets other values."""
        found = [t for t in self.names if t.place in ("var", "smem")]
        if not found:
            return
        tile = self.random.choice(found)
        assert tile.elem is not None
        text, at, shape = self.part(tile, self.chance(0.5))
        if not shape:
            return
        node = self.whole(shape, tile.elem, self.random.randint(0, 2))

        def step(b: Block) -> None:
            whole = np.array(b.tiles[tile.name])
            whole[at(b)] = np.broadcast_to(self.held(tile.elem, node, node.value(b)), shape)
            b.tiles[tile.name] = whole

        self.emit(f"copy {node.text} -> {text}", step)

    def sorted(self) -> None:
        found = [(t, a) for t in self.known() if t.elem and t.elem.bits > 4 for a, n in enumerate(t.shape) if n & (n - 1) == 0]
        if not found:
            return
        tile, axis = self.random.choice(found)
        assert tile.elem is not None
        down = self.chance(0.5)
        word, keys, ranks = (">" if down else "<"), self.name("k"), self.name("p")
        component = elements.ELEMS[tile.elem.name if tile.elem.bits >= 32 else "i32" if tile.elem.integer else "f32"]
        typed = "" if component.name == "f32" else f": {component.name}"

        def step(b: Block) -> None:
            rows = np.moveaxis(b.tiles[tile.name], axis, 0)
            sign = -1 if down else 1
            order = np.empty(rows.shape, dtype=object)
            for place in np.ndindex(rows.shape[1:]):
                row = [rows[(n, *place)] for n in range(len(rows))]
                for n, m in enumerate(sorted(range(len(row)), key=lambda m: (sign * row[m], m))):
                    order[(n, *place)] = m
            at = np.take_along_axis(rows, order.astype(int), 0)
            b.tiles[keys], b.tiles[ranks] = np.moveaxis(at, 0, axis), np.moveaxis(order, 0, axis)

        self.emit(f"let ({keys}, {ranks}) = sort ({tile.name}, cast<i32>(iota({tile.name}, {axis}))) along {axis} with (a{typed}, pa: i32), (b, pb) {{")
        self.emit(f"    give a {word} b || a == b && pa < pb")
        self.emit("}", step)
        self.names += [Tile(keys, tile.shape, component, "let"), Tile(ranks, tile.shape, ELEMS["i32"], "let")]

    def tuples(self) -> None:
        """Maps `a x + h`, one after the other: their order matters, and 32 bits wrap."""
        shape = self.random.choice(self.shapes)
        elem = ELEMS[self.random.choice(WORDS)]
        a, h = self.tile(shape, elem), self.tile(shape, elem)
        axis, kind = self.random.randrange(len(shape)), self.random.choice(["reduce", "scan", "exclusive"])
        names = [self.name("q"), self.name("q")]
        after = tuple(1 if d == axis else n for d, n in enumerate(shape)) if kind == "reduce" else shape

        def step(b: Block) -> None:
            of = [np.moveaxis(b.tiles[t.name], axis, 0) for t in (a, h)]
            factor, rest = np.full(of[0].shape[1:], 1, dtype=object), np.full(of[0].shape[1:], 0, dtype=object)
            taken = []
            for row_a, row_h in zip(*of):
                if kind == "exclusive":
                    taken.append((factor, rest))
                factor, rest = elements.in_register(elem, factor * row_a), elements.in_register(elem, row_a * rest + row_h)
                if kind == "scan":
                    taken.append((factor, rest))
            if kind == "reduce":
                taken.append((factor, rest))
            for name, parts in zip(names, zip(*taken)):
                b.tiles[name] = np.moveaxis(np.stack(parts), 0, axis)

        word = "reduce" if kind == "reduce" else "scan"
        first = " exclusive (1, 0)" if kind == "exclusive" else ""
        self.emit(f"let ({', '.join(names)}) = {word} ({a.name}, {h.name}) along {axis}{first} with (a1: {elem.name}, h1: {elem.name}), (a2, h2) {{")
        self.emit("    give a1 * a2, a2 * h1 + h2")
        self.emit("}", step)
        self.names += [Tile(name, after, elem, "let") for name in names]

    # Stores.

    def placed(self, elem: Elem, shape: "tuple[int, ...]", plain: bool) -> "tuple[Tensor, str, list[Range]]":
        """A new tensor, and a window of it that no other block has."""
        sizes = [max(1, n + self.random.randint(-2, 3)) for n in shape]
        ranges = [Range("i", lambda b: [b.index["i"]], "single")]
        if elem.bits == 4 and sizes:
            sizes[-1] += sizes[-1] % 2
        for axis, (n, size) in enumerate(zip(shape, sizes)):
            last = axis == len(shape) - 1
            kind = self.random.uniform(0 if powers(shape) and not plain else 0.3, 1)
            if elem.bits == 4 and last:
                ranges.append(Range("0..", lambda b, n=n: list(range(n))))
            elif kind < 0.15:
                tile = self.index_tile(n, size, unique=True)
                ranges.append(Range(tile.name, lambda b, tile=tile: [int(v) for v in b.tiles[tile.name]]))
            elif kind < 0.3:
                step = self.random.choice([2, 3])
                first = number(self.random.randint(-1, 2))
                sizes[axis] = size + self.random.randint(0, size * (step - 1))
                ranges.append(Range(f"{first.text}.. step {step}", lambda b, n=n, f=first, s=step: [f.value(b) + s * m for m in range(n)]))
            elif kind < 0.5:
                first, end = number(self.random.randint(-2, 2)), self.random.randint(1, size + 1)
                ranges.append(
                    Range(f"{first.text}..{end}", lambda b, n=n, f=first, e=end: [f.value(b) + m if f.value(b) + m < e else None for m in range(n)])
                )
            else:
                first = number(0) if self.chance(0.5) else number(self.random.randint(-2, 2))
                ranges.append(Range(f"{first.text}..", lambda b, n=n, f=first: [f.value(b) + m for m in range(n)]))
        tensor = self.output(elem, (self.blocks, *sizes))
        tensor.sizes = ("G", *tensor.sizes[1:])
        return tensor, f"{tensor.name}[{', '.join(r.text for r in ranges)}]", ranges

    def store(self) -> None:
        # In a loop each turn would need a place of its own.
        if self.loops:
            return self.fresh()
        if self.chance(0.5):
            return self.store_tile()
        shape, elem = self.pick()
        return self.stored(self.whole(shape, elem, 2), shape, elem)

    def store_tile(self) -> None:
        tile = self.any_tile()
        assert tile.elem is not None
        return self.stored(self.of_tile(tile), tile.shape, tile.elem)

    def stored(self, node: Node, shape: "tuple[int, ...]", elem: Elem) -> None:
        to = elem
        if self.chance(0.15) and elem.bits > 4:
            to = ELEMS[self.random.choice((*WORDS, *NARROW) if elem.integer else ("f32", "f16", "bf16", "e4m3"))]
        turned = len(shape) == 2 and self.chance(0.2) and "+" not in node.text
        if turned:
            shape = shape[::-1]
            node = Node(f"transpose({node.text})", node.elem, lambda b, of=node, s=shape: np.broadcast_to(of.value(b), s[::-1]).T, True, node.settled)
        if to.bits == 4 and (not powers(shape) or shape[-1] < 2 or turned or "[" in node.text):
            to = ELEMS["i8" if elem.integer else "f16"]
            node = values.cast(to, node)
        tensor, text, ranges = self.placed(to, shape, turned)

        def step(b: Block) -> None:
            values.write(b.tensors[tensor.name], ranges, b, np.broadcast_to(self.held(to, node, node.value(b)), shape))

        self.emit(f"copy {node.text} -> {text}", step)

    def atomic(self) -> None:
        """Elements combined with memory, of all blocks: in any order the result is one."""
        elem, shape = ELEMS[self.random.choice(WORDS)], self.random.choice(self.shapes)
        if len(shape) > 2:
            return
        word = self.random.choice(["add", "min", "max"])
        combine = {"add": lambda a, x: elements.in_register(elem, a + x)[()], "min": min, "max": max}[word]
        node = self.whole(shape, elem, 1)
        rank = len(shape)
        sizes = tuple(self.random.randint(1, 20) for _ in range(rank))
        ranges = [self.span(n, size, not powers(shape)) for n, size in zip(shape, sizes)]
        tensor = self.output(elem, sizes)

        def step(b: Block) -> None:
            values.write(b.tensors[tensor.name], ranges, b, np.broadcast_to(self.held(elem, node, node.value(b)), shape), combine)

        self.emit(f"copy {node.text} -> {tensor.name}[{', '.join(r.text for r in ranges)}] {word}", step)

    def exchanged(self) -> None:
        """Elements combined with memory that no other block has, whose old values a tile gets."""
        elem, shape = ELEMS[self.random.choice(WORDS)], self.random.choice(self.shapes)
        if self.loops or len(shape) > 2:
            return
        word = self.random.choice(["add", "min", "max", "exchange"])
        combine = {"add": lambda a, x: elements.in_register(elem, a + x)[()], "min": min, "max": max, "exchange": lambda a, x: x}[word]
        node = self.whole(shape, elem, 1)
        tensor, text, ranges = self.placed(elem, shape, True)
        old = self.declared("e", shape, elem)

        def step(b: Block) -> None:
            x = np.broadcast_to(self.held(elem, node, node.value(b)), shape)
            b.tiles[old.name] = elements.objects(values.write(b.tensors[tensor.name], ranges, b, x, combine).tolist()).reshape(shape)

        self.emit(f"copy {node.text} -> {text} {word} old {old.name}", step)
        self.names.append(old)

    def truth(self) -> None:
        """A name of conditions, which choose between two tiles."""
        shape, elem = self.pick()
        condition, like = self.condition(shape, 1), self.of_tile(self.tile(shape, elem))
        name = self.name("g")
        held = Node(name, None, lambda b: b.tiles[name], True)
        if not condition.tile:
            return

        def step(b: Block) -> None:
            b.tiles[name] = np.broadcast_to(condition.value(b), shape)

        self.emit(f"let {name} = {condition.text}", step)
        other = self.expression(shape, elem, 1)
        chosen = Node(
            f"select({name}, {like.text}, {other.text})", elem, lambda b: np.where(held.value(b), like.value(b), other.value(b)), True, full=True
        )
        self.named("b", chosen, shape)

    # Control.

    def block(self, of: "typing.Callable[[], None]") -> "list[Step]":
        """The steps of statements in a block of their own."""
        steps, names = self.steps, len(self.names)
        self.steps, self.indent, self.loops = [], self.indent + 1, self.loops + 1
        of()
        made, self.steps, self.indent, self.loops = self.steps, steps, self.indent - 1, self.loops - 1
        del self.names[names:]
        return made

    def bound(self, low: int, high: int) -> Index:
        kind = self.random.random()
        if kind < 0.4:
            return number(self.random.randint(low, high))
        if kind < 0.6:
            name = self.random.choice(["G", *(size for t in self.tensors.values() for size in t.sizes)])
            return Index(name, lambda b: self.sizes[name])
        if kind < 0.8:
            index = self.from_memory()
            return Index(f"min({index.text}, {high})", lambda b: min(index.value(b), high))
        return Index("i + 2", lambda b: b.index["i"] + 2)

    def loop(self) -> None:
        """Tiles of a range, each combined with a variable."""
        shape, elem = self.pick()
        carried = self.tile_of_own(shape, elem)
        variable, axis = self.name("z"), self.random.randrange(len(shape))
        first, end = number(self.random.randint(0, 2)), self.bound(0, 30)
        step = self.random.choice([shape[axis], shape[axis], 1, 3]) if shape[axis] > 4 or self.chance(0.5) else max(shape[axis], 2)
        tensor = self.tensor(elem, len(shape))
        ranges = [self.span(n, size, plain=True) for n, size in zip(shape, tensor.values.shape)]
        form = self.random.choice(["..", "..", "..inf", "+1.."])
        extent = shape[axis]

        def along(b: Block) -> "list[int | None]":
            at = b.index[variable] + (form == "+1..")
            return [p if form != ".." or p < end.value(b) else None for p in range(at, at + extent)]

        ranges[axis] = Range({"..": f"{variable}..", "..inf": f"{variable}..inf", "+1..": f"{variable} + 1.."}[form], along)
        loaded = Tile(self.name("x"), shape, elem, "var")

        def body() -> None:
            self.indices.append(Index(variable, lambda b: b.index[variable]))
            fill = self.random.choice([0, 0, 2])
            self.emit(f"var {loaded.name} = reg {elem.name}[{', '.join(map(str, shape))}]")
            source = Node("", elem, lambda b: values.read(b.tensors[tensor.name], ranges, b, b.fill), settled=True)
            text = f"copy {tensor.name}[{', '.join(r.text for r in ranges)}] -> {loaded.name}"
            self.emit(text + (f" fill {fill}" if fill else ""), self.keep(loaded, source, fill))
            self.names.append(loaded)
            for _ in range(self.random.choice([0, 0, 1])):
                self.statement()
            self.indices.pop()
            node = self.binary(self.of_tile(carried), self.of_tile(loaded), elem)
            self.emit(f"{carried.name} = {node.text}", self.keep(carried, node))

        self.emit(f"for {variable} in {first.text}..{end.text} step {step} {{")
        steps = self.block(body)

        def run(b: Block) -> None:
            for at in range(first.value(b), end.value(b), step):
                b.index[variable] = at
                for one in steps:
                    one(b)

        self.emit("}", run)

    def tile_of_own(self, shape: "tuple[int, ...]", elem: Elem) -> Tile:
        """A variable that begins as a number."""
        tile = Tile(self.name("t"), shape, elem, "var")
        first = self.random.choice([0, 1, 2])
        text = f"{first}" if elem.integer else f"{first}.0"
        node = values.literal(elem, first)
        self.emit(f"var {tile.name} = reg {elem.name}[{', '.join(map(str, shape))}] = {text}", self.keep(tile, node))
        self.names.append(tile)
        return tile

    def turns(self) -> None:
        """A loop until a number is reached."""
        count, limit = self.name("o"), self.bounded()
        shape, elem = self.pick()
        carried = self.tile_of_own(shape, elem)

        def begin(b: Block) -> None:
            b.index[count] = 0

        self.emit(f"var {count} = reg i32[] = 0", begin)

        def more(b: Block) -> None:
            b.index[count] += 1

        def body() -> None:
            if self.chance(0.4):
                self.statement()
            node = self.whole(shape, elem, 1)
            self.emit(f"{carried.name} = {node.text}", self.keep(carried, node))
            self.emit(f"{count} = {count} + 1", more)

        self.emit(f"while {count} < {limit.text} {{")
        steps = self.block(body)

        def run(b: Block) -> None:
            while b.index[count] < limit.value(b):
                for one in steps:
                    one(b)

        self.emit("}", run)

    def branch(self) -> None:
        """What some blocks do."""
        index = self.random.choice([self.indices[0], self.from_memory()])
        word, of = self.random.choice(list(values.COMPARISONS.items()))
        limit = self.random.randint(0, 2)
        self.emit(f"if {index.text} {word} {limit} {{")
        steps = self.block(self.assigned)
        other: "list[Step]" = []
        if self.chance(0.4):
            self.emit("} else {")
            other = self.block(self.assigned)

        def run(b: Block) -> None:
            for one in steps if of(index.value(b), limit) else other:
                one(b)

        self.emit("}", run)

    def product(self) -> None:
        """A product of two tiles, as they are or transposed."""
        kinds = [("f16", "f16", "f32"), ("bf16", "bf16", "f32"), ("i8", "i8", "i32"), ("u8", "i8", "i32"), ("f64", "f64", "f64"), ("f32", "f32", "f32")]
        of_a, of_b, of_c = (ELEMS[name] for name in self.random.choice(kinds))
        pick = self.random.choice
        m, n, k = pick([3, 8, 16, 20, 32]), pick([5, 8, 16, 24]), pick([4, 8, 16, 10, 32])
        if all(powers(shape) for shape in self.shapes) or self.seed % 5 == 4:
            m, n, k = pick([8, 16, 32]), pick([8, 16, 32]), pick([8, 16, 32])
        operands, tiles = [], []
        for elem, shape in ((of_a, (m, k)), (of_b, (k, n))):
            turned = self.chance(0.3)
            tile = self.load(shape[::-1] if turned else shape, elem)
            tiles.append((tile, turned))
            operands.append(f"transpose({tile.name})" if turned else tile.name)
        carried = self.tile_of_own((m, n), of_c)

        def step(b: Block) -> None:
            x, y = (b.tiles[t.name].T if turned else b.tiles[t.name] for t, turned in tiles)
            if not of_c.integer:
                elements.exact(np.abs(x) @ np.abs(y) + np.abs(b.tiles[carried.name]))
            b.tiles[carried.name] = elements.in_register(of_c, np.dot(x, y) + b.tiles[carried.name])

        self.emit(f"{carried.name} = mma({operands[0]}, {operands[1]}, {carried.name})", step)

    def table(self) -> None:
        """Numbers that a table has."""
        found = [t for t in self.known() if t.elem and t.elem.integer and t.elem.bits <= 32]
        if not found:
            return
        tile, name = self.random.choice(found), self.name("T")
        elem = ELEMS[self.random.choice(["f32", "f16", "i32", "u8", "i8"])]
        entries = self.data(elem, (self.random.randint(2, 9),))
        self.scalars[name] = (elem, entries)

        def value(b: Block) -> Array:
            at = b.tiles[tile.name]
            inside = np.asarray([0 <= v < len(entries) for v in at.ravel()]).reshape(at.shape)
            return np.where(inside, entries[np.where(inside, at, 0).astype(int)], np.asarray(0, entries.dtype))

        self.named("d", Node(f"{name}[{tile.name}]", elem, value, True, True), tile.shape)

    # The whole.

    def text(self) -> str:
        """The program."""
        params = []
        for t in self.tensors.values():
            order = " col" if t.column else ""
            params.append(f"{t.name}: gmem {t.elem.name}[{', '.join(t.sizes)}]{order}" + (" multiple 2" if t.elem.bits == 4 else ""))
        for name, (elem, x) in self.scalars.items():
            if np.ndim(x):
                params.append(f"{name}: const {elem.name}[{len(x)}] = ({', '.join(str(v) for v in x)})")
            else:
                params.append(f"{name}: {elem.name}")
        return f"kernel random({', '.join(params)}) grid (i: G) {{\n" + "".join(f"{line}\n" for line in self.lines) + "}\n"

    def arguments(self) -> "dict[str, typing.Any]":
        """What the program is called with."""
        given: "dict[str, typing.Any]" = {}
        for t in self.tensors.values():
            array = elements.stored(t.elem, t.values)
            if t.column:
                array = np.swapaxes(np.ascontiguousarray(np.swapaxes(array, -1, -2)), -1, -2)
            if t.padding:
                wide = np.zeros((*array.shape[:-1], array.shape[-1] + t.padding), array.dtype)
                if not t.column:
                    wide[..., : array.shape[-1]] = array
                    array = wide[..., : array.shape[-1]]
            given[t.name] = array
        for name, (elem, x) in self.scalars.items():
            if not np.ndim(x):
                given[name] = int(x) if elem.integer else float(x)
        return given

    def expected(self) -> "dict[str, Array]":
        """What the program leaves in the tensors that it writes."""
        tensors = {t.name: t.values.copy() for t in self.tensors.values()}
        scalars = {name: x for name, (_, x) in self.scalars.items()}
        for i in range(self.blocks):
            block = Block({"i": i}, tensors, scalars)
            for step in self.steps:
                step(block)
        return {name: tensors[name] for name in self.outputs}

    def found(self, given: "dict[str, typing.Any]") -> "dict[str, Array]":
        """The same of the arrays after the launch."""
        return {name: elements.loaded(self.tensors[name].elem, given[name]) for name in self.outputs}
