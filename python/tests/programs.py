"""Random tile programs, each with what NumPy computes for it.

The tests in Rust hold compiled programs against the interpreter, which runs what the parser made of the text. Here nothing is shared with the parser: NumPy
evaluates what was written. All numbers are small integers, so every result is exact.
"""

import dataclasses
import random
import typing

import numpy as np

FULL, ROW, COLUMN = "full", "row", "column"
REDUCTIONS = {"sum": (np.sum, 0.0), "maximum": (np.max, -9.0), "minimum": (np.min, 9.0)}
OPERATORS = {"+": np.add, "-": np.subtract, "*": np.multiply, "max": np.maximum, "min": np.minimum}
HALF = ("P", "PT", "Q", "QT")


class Block:
    """What a block of the grid sees: its place, its tiles, and what elements outside of tensors read as."""

    def __init__(self, place: "tuple[int, int]", tensors: "dict[str, np.ndarray]") -> None:
        self.place = place
        self.tensors = tensors
        self.tiles: "dict[str, np.ndarray]" = {}
        self.fill = 0.0

    def window(self, name: str, *ranges: "tuple[int, int]") -> np.ndarray:
        """The window that begins at these places and has these extents."""
        whole = np.full([extent for _, extent in ranges], self.fill)
        tensor = self.tensors[name]
        part = tensor[tuple(slice(first, first + extent) for first, extent in ranges)]
        whole[tuple(slice(0, n) for n in part.shape)] = part
        return whole


@dataclasses.dataclass
class Expr:
    """An expression: its text, its value in a block, and whether tiles and windows are in it."""

    text: str
    value: "typing.Callable[[Block], np.ndarray]"
    tile: bool = False
    window: bool = False
    # It is a window, or a name of one: a copy that says `fill` reads it with that.
    bare: bool = False


class Program:
    """A program of a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        pick, between = self.random.choice, self.random.randint
        self.large = pick([True, False])
        self.rows = pick([16, 32, 20, 48, 64, 40] if self.large else [1, 2, 3, 4, 5, 8, 16])
        self.columns = pick([8, 16, 32, 24, 40, 64] if self.large else [2, 3, 4, 6, 8, 10, 16, 32])
        self.sizes = {"M": between(1, 2 * self.rows + 3), "N": between(1, 2 * self.columns + 3), "K": between(1, 40)}
        self.names: "list[tuple[str, str, Expr]]" = []
        self.steps: "list[tuple[str, str, typing.Callable[[Block], np.ndarray], float]]" = []
        self.lines: "list[str]" = []
        for number in range(between(2, 5)):
            self.statement(number)
        self.turned = pick([True, False])
        self.result = self.expression(FULL, 2, needs_tile=True)
        if self.turned:
            self.lines.append(f"var whole = reg f32[{self.rows}, {self.columns}] = {self.result.text}")
            self.lines.append(f"copy transpose(whole) -> C[j * {self.columns}.., i * {self.rows}..]")
        else:
            self.lines.append(f"copy {self.result.text} -> C[i * {self.rows}.., j * {self.columns}..]")

    def text(self) -> str:
        """The program."""
        body = "".join(f"    {line}\n" for line in self.lines)
        out = "N, M" if self.turned else "M, N"
        return (
            "kernel random(X: gmem f32[M, N], Z: gmem f32[N, M], V: gmem f32[N], U: gmem f32[M], P: gmem f16[M, K], PT: gmem f16[K, M],\n"
            f"    Q: gmem f16[K, N], QT: gmem f16[N, K], C: gmem f32[{out}])\n"
            f"    grid (i: ceildiv(M, {self.rows}), j: ceildiv(N, {self.columns}))\n{{\n{body}}}\n"
        )

    def extents(self, shape: str) -> "tuple[int, int]":
        return {FULL: (self.rows, self.columns), ROW: (1, self.columns), COLUMN: (self.rows, 1)}[shape]

    def windows(self, shape: str) -> "list[Expr]":
        """Windows of tensors, as they are and transposed."""
        rows, columns = self.rows, self.columns

        def down(b: Block) -> "tuple[int, int]":
            return (b.place[0] * rows, rows)

        def across(b: Block) -> "tuple[int, int]":
            return (b.place[1] * columns, columns)

        i, j = f"i * {rows}..", f"j * {columns}.."
        all_of = {
            FULL: [
                (f"X[{i}, {j}]", lambda b: b.window("X", down(b), across(b))),
                (f"transpose(Z[{j}, {i}])", lambda b: b.window("Z", across(b), down(b)).T),
            ],
            ROW: [
                (f"V[_, {j}]", lambda b: b.window("V", across(b))[None, :]),
                (f"transpose(V[{j}, _])", lambda b: b.window("V", across(b))[None, :]),
            ],
            COLUMN: [
                (f"U[{i}, _]", lambda b: b.window("U", down(b))[:, None]),
                (f"transpose(U[_, {i}])", lambda b: b.window("U", down(b))[:, None]),
            ],
        }
        return [Expr(text, value, window=True, bare=True) for text, value in all_of[shape]]

    def leaf(self, shape: str) -> Expr:
        named = [expr for _, of, expr in self.names if of == shape]
        return self.random.choice(self.windows(shape) + 2 * named)

    def number(self) -> Expr:
        literal = self.random.randint(1, 3)
        element = Expr("X[0, 0]", lambda b: b.tensors["X"][0, 0])
        first = Expr("U[0]", lambda b: b.tensors["U"][0])
        return self.random.choice([Expr(f"{literal}.0", lambda b: np.float64(literal)), element, first])

    def tiles(self, shape: str) -> "list[Expr]":
        return [expr for name, of, expr in self.names if of == shape and name.startswith("t")]

    def expression(self, shape: str, depth: int, needs_tile: bool = False) -> Expr:
        made = self.any_expression(shape, depth)
        if needs_tile and not made.tile:
            whole = self.tiles(shape) or [self.filled(shape)]
            made = self.combined("+", made, whole[0])
        return made

    def filled(self, shape: str) -> Expr:
        """A tile of its own, in front of the statement."""
        name = f"t{len(self.lines)}_own"
        window = self.random.choice(self.windows(shape))
        self.lines.append(f"var {name} = reg f32[{', '.join(map(str, self.extents(shape)))}] = {window.text}")
        return self.named(name, shape, window.value)

    def named(self, name: str, shape: str, value: "typing.Callable[[Block], np.ndarray]", fill: float = 0.0) -> Expr:
        self.steps.append((name, shape, value, fill))
        expr = Expr(name, lambda b: b.tiles[name], tile=True)
        self.names.append((name, shape, expr))
        return expr

    def combined(self, operator: str, a: Expr, b: Expr) -> Expr:
        text = f"{operator}({a.text}, {b.text})" if operator.isalpha() else f"({a.text} {operator} {b.text})"
        of = OPERATORS[operator]
        return Expr(text, lambda at: of(a.value(at), b.value(at)), a.tile or b.tile, a.window or b.window)

    def any_expression(self, shape: str, depth: int) -> Expr:
        chance = self.random.random()
        if depth == 0 or chance < 0.2:
            return self.leaf(shape)
        if chance < 0.75:
            a, kind = self.any_expression(shape, depth - 1), self.random.random()
            if kind < 0.2:
                b = self.number()
            elif kind < 0.6 and shape == FULL:
                b = self.any_expression(self.random.choice([ROW, COLUMN]), depth - 1)
            else:
                b = self.any_expression(shape, depth - 1)
            a, b = self.random.choice([(a, b), (b, a)])
            return self.combined(self.random.choice(list(OPERATORS)), a, b)
        whole = self.tiles(FULL)
        if not whole:
            return self.leaf(shape)
        return self.selected(whole, depth) if shape == FULL else self.reduced(self.random.choice(whole), shape)

    def selected(self, whole: "list[Expr]", depth: int) -> Expr:
        a, b = (self.any_expression(FULL, depth - 1) for _ in range(2))
        axis, count, like = self.random.randint(0, 1), self.random.randint(0, 5), self.random.choice(whole)
        places = np.indices(self.extents(FULL))[axis]
        text = f"select(iota({like.text}, {axis}) < {count}, {a.text}, {b.text})"
        return Expr(text, lambda at: np.where(places < count, a.value(at), b.value(at)), True, a.window or b.window)

    def reduced(self, tile: Expr, shape: str) -> Expr:
        name, axis = self.random.choice(list(REDUCTIONS)), 0 if shape == ROW else 1
        of = REDUCTIONS[name][0]
        return Expr(f"{name}({tile.text}, {axis})", lambda b: of(tile.value(b), axis=axis, keepdims=True), True)

    def statement(self, number: int) -> None:
        forms = [self.let, self.tile, self.tile, self.tile, self.assigned, self.loop] + 3 * self.large * [self.product]
        self.random.choice(forms)(number)

    def let(self, number: int) -> None:
        shape = self.random.choice([FULL, FULL, FULL, ROW, COLUMN])
        made, name = self.any_expression(shape, self.random.randint(1, 3)), f"l{number}"
        if made.bare:
            self.names.append((name, shape, dataclasses.replace(made, text=name)))
        elif made.tile:
            self.named(name, shape, made.value)
        else:
            return
        self.lines.append(f"let {name} = {made.text}")

    def tile(self, number: int) -> None:
        shape = self.random.choice([FULL, FULL, FULL, ROW, COLUMN])
        made, name = self.any_expression(shape, self.random.randint(1, 3)), f"t{number}"
        form, extents = self.random.choice(["var", "copy", "fill", "smem"]), ", ".join(map(str, self.extents(shape)))
        fill = self.random.choice([1.0, -2.0]) if form == "fill" and made.window else 0.0
        if form == "var":
            self.lines.append(f"var {name} = reg f32[{extents}] = {made.text}")
        else:
            place = f"let {name} = smem" if form == "smem" else f"var {name} = reg"
            self.lines.append(f"{place} f32[{extents}]")
            self.lines.append(f"copy {made.text} -> {name}" + (f" fill {fill}" if fill else ""))
        self.named(name, shape, made.value, fill)

    def assigned(self, number: int) -> None:
        of_registers = [line.split()[1] for line in self.lines if line.startswith("var t")]
        names = [(name, shape) for name, shape, _ in self.names if name in of_registers]
        if not names:
            return self.tile(number)
        name, shape = self.random.choice(names)
        made = self.any_expression(shape, 2)
        self.lines.append(f"{name} = {made.text}")
        self.steps.append((name, shape, made.value, 0.0))
        return None

    def loop(self, number: int) -> None:
        """A reduction of whole rows, a tile at a time."""
        rows, columns, name = self.rows, self.columns, f"t{number}"
        reduction = self.random.choice(list(REDUCTIONS))
        of, first = REDUCTIONS[reduction]
        turned = self.random.choice([True, False])
        source = f"transpose(Z[q * {columns}.., i * {rows}..])" if turned else f"X[i * {rows}.., q * {columns}..]"
        step = f"{name} + sum(x{number}, 1)" if reduction == "sum" else f"{reduction[:3]}({name}, {reduction}(x{number}, 1))"
        self.lines += [
            f"var {name} = reg f32[{rows}, 1] = {first}",
            f"for q in 0..ceildiv(N, {columns}) {{",
            f"    var x{number} = reg f32[{rows}, {columns}]",
            f"    copy {source} -> x{number} fill {first}",
            f"    {name} = {step}",
            "}",
        ]

        def value(b: Block) -> np.ndarray:
            tensor = b.tensors["Z"].T if turned else b.tensors["X"]
            part = tensor[b.place[0] * rows :][:rows]
            whole = np.full((rows, 1), first)
            whole[: len(part)] = of(part, axis=1, keepdims=True)
            return whole

        self.named(name, COLUMN, value)

    def product(self, number: int) -> None:
        """A product over K, with either operand stored, loaded and multiplied in either order."""
        rows, columns, name = self.rows, self.columns, f"t{number}"
        pick = self.random.choice
        depth, factor = pick([8, 16, 5, 24]), pick([1, 1, 2])
        self.lines += [f"var {name} = reg f32[{rows}, {columns}] = 0", f"for q in 0..ceildiv(K, {depth}) {{"]
        operands, loads, sources = [], [], []
        for letter, tensor, at, extents in [
            (f"a{number}", "P", [f"i * {rows}..", f"q * {depth}.."], (rows, depth)),
            (f"b{number}", "Q", [f"q * {depth}..", f"j * {columns}.."], (depth, columns)),
        ]:
            stored, kept = pick([False, True]), pick([False, False, True])
            source = f"{tensor}T[{at[1]}, {at[0]}]" if stored else f"{tensor}[{at[0]}, {at[1]}]"
            loaded = f"transpose({source})" if stored != kept else source
            if letter[0] == "a" and factor != 1:
                loaded = f"cast<f16>(cast<f32>({loaded}) * {factor}.0)"
            shape = f"f16[{extents[1]}, {extents[0]}]" if kept else f"f16[{extents[0]}, {extents[1]}]"
            self.lines.append("    " + pick([f"let {letter} = smem {shape}", f"var {letter} = reg {shape}"]))
            loads.append(f"    copy {loaded} -> {letter}")
            operands.append(f"transpose({letter})" if kept else letter)
            sources.append((tensor + "T" if stored else tensor, stored))
        self.lines += [*loads, f"    {name} = mma({operands[0]}, {operands[1]}, {name})", "}"]

        def value(b: Block) -> np.ndarray:
            a, c = (b.tensors[of].T if stored else b.tensors[of] for of, stored in sources)
            part = factor * (a @ c)[b.place[0] * rows :, b.place[1] * columns :][:rows, :columns]
            whole = np.zeros((rows, columns))
            whole[: part.shape[0], : part.shape[1]] = part
            return whole

        self.named(name, FULL, value)

    def tensors(self, seed: int) -> "dict[str, np.ndarray]":
        """What the program reads, in the order of its parameters."""
        numbers, (m, n, k) = np.random.RandomState(seed), (self.sizes[name] for name in "MNK")
        shapes = {"X": (m, n), "Z": (n, m), "V": (n,), "U": (m,), "P": (m, k), "PT": (k, m), "Q": (k, n), "QT": (n, k)}
        return {name: numbers.randint(-3, 4, shape).astype(np.float64) for name, shape in shapes.items()}

    def expected(self, tensors: "dict[str, np.ndarray]") -> np.ndarray:
        """What the program computes of these tensors."""
        m, n, rows, columns = self.sizes["M"], self.sizes["N"], self.rows, self.columns
        whole = np.zeros((m, n))
        for place in np.ndindex(-(-m // rows), -(-n // columns)):
            block = Block(place, tensors)
            for name, shape, value, fill in self.steps:
                block.fill = fill
                block.tiles[name] = value(block) + np.zeros(self.extents(shape))
                block.fill = 0.0
            result = self.result.value(block) + np.zeros((rows, columns))
            part = whole[place[0] * rows :, place[1] * columns :][:rows, :columns]
            part[:] = result[: part.shape[0], : part.shape[1]]
        return whole.T if self.turned else whole
